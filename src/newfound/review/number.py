"""The questions about the number of categories: which pairs to ask about, and what is known so far.

They are drawn at random, by similarity, so that dozens of answers speak for all pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from newfound.mixture.counting.answers import AnswerCounter, Question, draw_questions
from newfound.mixture.counting.count import CategoryCount
from newfound.result.edits.decisions import Obeyed
from newfound.result.edits.drawn import drawn_answers, partition_of
from newfound.result.edits.log import Edit
from newfound.result.edits.state import State
from newfound.result.result import Result

#: After so many answers the page says that they are enough, and how many it can ask at most.
ENOUGH = 30
MAX_QUESTIONS = 120


class NumberQueue:
    """Questions about pairs of items of one run.

    Parameters
    ----------
    result : Result
        The run.
    obeyed : Obeyed
        With the count without answers, if answers were obeyed already.
    edits : sequence of Edit
        The answers so far; each round of questions is drawn anew.
    """

    def __init__(self, result: Result, obeyed: Obeyed, edits: Sequence[Edit]) -> None:
        self.result = result
        self._counter: AnswerCounter | None = None
        self._questions: list[Question] = []
        count = None if result.mixture is None else result.mixture.count_
        if count is None or result.n_novel == 0:
            return
        self._before = obeyed.base_count or count
        partition = partition_of(result)
        self._counter = AnswerCounter(self._before, partition)
        n_obeyed = 0 if obeyed.base_count is None else len(drawn_answers(result, edits))
        rng = np.random.default_rng([result.record.seed or 0, n_obeyed])
        self._questions = draw_questions(partition, MAX_QUESTIONS, rng)

    def view(self, edits: Sequence[Edit], state: State) -> dict[str, Any] | None:
        """What the page shows; None if K was given, or if there is nothing to ask about."""
        if self._counter is None:
            return None
        ids = self.result.collection.ids
        answers = drawn_answers(self.result, edits)
        asked = {(a.first, a.second) for a in answers}
        still_open = [
            {"first": q.first, "second": q.second, "probability": repr(q.probability)}
            for q in self._questions
            if (q.first, q.second) not in asked and state.labels[ids[q.first]] is None
        ]
        return {
            "questions": still_open,
            "n_answers": len(answers),
            "enough": ENOUGH,
            "before": _plain(self._before),
            "now": _plain(self._counter.count(answers)),
        }


def _plain(count: CategoryCount) -> dict[str, float]:
    low, high = count.interval
    return {"n": round(count.n_novel), "low": round(low, 1), "high": round(high, 1)}
