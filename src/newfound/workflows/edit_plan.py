"""What the edits of a run ask of an update, and when: before new items come, and after."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from newfound.errors import InputError
from newfound.mixture.counting.answers import Answer
from newfound.result.edits.decisions import Decisions, Obeyed, decide
from newfound.result.edits.drawn import drawn_answers, without_drawn
from newfound.result.edits.log import Edit, read_edits
from newfound.result.result import Result
from newfound.workflows.answering import obey_again, recount, with_count
from newfound.workflows.job import Job
from newfound.workflows.obeying import obey


class EditPlan(NamedTuple):
    """The edits of a run, replayed on its result."""

    edits: list[Edit]
    obeyed: Obeyed  # what the run has obeyed so far
    decisions: Decisions
    level: list[Edit]  # the row of the level that was asked for, which is not in the file yet
    answers: Sequence[Answer]  # about pairs that the sampler drew

    @classmethod
    def read(cls, run: Path, old: Result, granularity: int | None) -> EditPlan:
        """Read the edits of a run and check that they can be obeyed.

        Parameters
        ----------
        run : Path
            The run folder.
        old : Result
            Its result.
        granularity : int or None
            The number of categories that is asked for.
        """
        edits = read_edits(run)
        level = [] if granularity is None else [_row_of_level(granularity, old, edits)]
        edits, obeyed = [*edits, *level], Obeyed.read(run)
        decisions = decide(old, edits, obeyed)
        decisions.check()
        return cls(edits, obeyed, decisions, level, drawn_answers(old, edits))

    def obey_now(self, old: Result, job: Job, line: str | None) -> Result:
        """The result in which all edits are obeyed, but those of drawn pairs.

        Drawn pairs move items, which must not change what the pairs say: they come last.
        """
        result = with_count(old, self.obeyed.base_count)
        if not self.decisions.is_new:
            return result
        first = self.decisions
        if self.answers:
            first = decide(result, without_drawn(self.edits), self.obeyed)
        edited = obey(result, first, job, line)
        if self.decisions.obeyed.levels != self.obeyed.levels:
            edited = _with_count_of(result, edited)
        return edited

    def obey_later(
        self, result: Result, job: Job, line: str | None, *, has_changed: bool
    ) -> tuple[Result, dict[str, Any]]:
        """Obey the edits in the partition of all items, and the answers at the end.

        Parameters
        ----------
        result : Result
            From `obey_now`, perhaps with more items or labels.
        job, line
            As for `newfound.workflows.obeying.obey`.
        has_changed : bool
            Whether items or labels were added since.

        Returns
        -------
        result : Result
            The result of the update.
        obeyed : dict
            What was obeyed, for ``decisions.json``.
        """
        decisions, base = self.decisions, None
        if has_changed and decisions.obeyed.effects:
            decisions = decide(result, self.edits, decisions.obeyed)
            result = obey(result, decisions, job, line)
        if self.answers or self.obeyed.base_count:
            base = result.mixture.count_ if self.answers and result.mixture else None
            result = recount(result, self.answers, job, line)
            decisions = decide(result, self.edits, decisions.obeyed)
            result = obey_again(result, decisions, job, line)
        return result, decisions.obeyed.as_json(base)


def _row_of_level(k: int, old: Result, edits: list[Edit]) -> Edit:
    if k == len(old.names):
        raise InputError(f"The run has {k} categories already.")
    row = max((edit.row for edit in edits), default=1) + 1
    return Edit("granularity", str(k), id="the level", row=row)


def _with_count_of(old: Result, result: Result) -> Result:
    """A result on another level: what was counted, and the tree, stay as they were."""
    assert old.mixture is not None  # `obey` has refused a run without a model
    assert result.mixture is not None
    mixture = copy.copy(result.mixture)
    mixture.count_, mixture.n_novel_interval_ = old.mixture.count_, old.mixture.n_novel_interval_
    record = replace(result.record, n_novel_interval=old.record.n_novel_interval)
    return replace(result, mixture=mixture, record=record, stored_levels=old.levels)
