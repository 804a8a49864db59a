"""Pairs that the sampler drew: the questions about the number of categories, and the answers.

Only rows of ``edits.csv`` with a drawing probability enter the number. A pair that a person chose
is obeyed like any other, but says nothing about pairs that nobody looked at.
"""

from __future__ import annotations

from collections.abc import Sequence

from newfound.mixture.counting.answers import Answer, Partition
from newfound.result.edits.log import Edit, active_edits
from newfound.result.result import Result


def partition_of(result: Result) -> Partition:
    """Rows and categories of a result, as the sampler takes them."""
    labels, is_labelled = result.assigned.labels, result.collection.is_labelled
    return Partition(result.V, labels, is_labelled, result.n_known)


def drawn_answers(result: Result, edits: Sequence[Edit]) -> list[Answer]:
    """Answers about pairs that were drawn, in the order of the file; each pair counts once."""
    row_of = {item: row for row, item in enumerate(result.collection.ids)}
    answers: dict[tuple[int, int], Answer] = {}
    for edit in active_edits(edits):
        rows = row_of.get(edit.subject), row_of.get(edit.object)
        if edit.action in ("same", "different") and None not in rows and is_drawn(edit):
            first, second = rows[0] or 0, rows[1] or 0
            answers[first, second] = Answer(first, second, edit.action == "same")
    return list(answers.values())


def is_drawn(edit: Edit) -> bool:
    """Whether a row has a probability, which only the sampler writes."""
    try:
        return 0 < float(edit.probability) <= 1
    except ValueError:
        return False


def without_drawn(edits: Sequence[Edit]) -> list[Edit]:
    """The edits that count and that a person chose."""
    return [edit for edit in active_edits(edits) if not is_drawn(edit)]
