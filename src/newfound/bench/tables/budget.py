"""The budget of a table: how long and on what its runs were trained. A table shows one budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from newfound.bench.case import Case
from newfound.bench.record import Record
from newfound.bench.tables.plan import Row, TablePlan
from newfound.bench.tables.selection import fits
from newfound.errors import InputError

#: Changed settings that are part of the budget. Others, such as the learning rate, may be tuned.
_SETTINGS = frozenset(
    {"n_labelled_per_batch", "n_unlabelled_per_batch", "accumulate", "n_stored_views"}
    | {"image_size", "trainable", "crop_min", "crop_max", "padding", "flip", "rotation"}
    | {"color_jitter"}
)
#: Methods without anything to tune fit in tables of tuned and of untuned runs.
_NEVER_TUNED = frozenset({"gpc-literal"})


class Budget(NamedTuple):
    """Epochs, whether hyper-parameters were tuned, and changed settings of batches and views."""

    epochs: int
    tuned: bool
    changes: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        words = [f"{self.epochs} epochs", *(["tuned"] if self.tuned else [])]
        return ", ".join([*words, *(f"{name}={value}" for name, value in self.changes)])

    def admits(self, case: Case, row: Row) -> bool:
        """Whether a run has this budget, or 1.5 times the epochs where the row asks for it."""
        if case.epochs == 0:
            return True
        epochs = 1.5 * self.epochs if row.longer else self.epochs
        tuned = self.tuned if case.method in _NEVER_TUNED else budget_of(case).tuned
        own = budget_of(case)
        return abs(own.epochs - epochs) < 1 and own.changes == self.changes and tuned == self.tuned


def budget_of(case: Case) -> Budget:
    """The budget of a run."""
    changes = {name: value for name, value in case.changes.items() if name in _SETTINGS}
    return Budget(case.epochs, case.trial is not None, tuple(sorted(changes.items())))


def choose_budget(
    plan: TablePlan, records: Sequence[Record], epochs: int | None
) -> tuple[Budget | None, str]:
    """The budget that a table shows, and a note that says how it was chosen.

    Parameters
    ----------
    plan : TablePlan
        The table.
    records : sequence of Record
        Records of one backbone.
    epochs : int, optional
        Only budgets with this many epochs.

    Returns
    -------
    Budget or None
        The budget that fills most cells (of equal ones the tuned one, then the longest); for a
        table of the longest run, the longest. None if no run was trained.
    str
        The note; "" without a choice.

    Raises
    ------
    InputError
        If no run has that many epochs.
    """
    filled: dict[Budget, set[tuple[int, int]]] = {}
    for record in records:
        if record.case.epochs == 0:
            continue
        for i, row in enumerate(plan.rows):
            for j, column in enumerate(plan.columns):
                if not row.longer and fits(record.case, row, column):
                    filled.setdefault(budget_of(record.case), set()).add((i, j))
    asked = {b: cells for b, cells in filled.items() if epochs in (None, b.epochs)}
    if filled and not asked:
        there = ", ".join(str(n) for n in sorted({budget.epochs for budget in filled}))
        raise InputError(f"No run of this table has {epochs} epochs; there are runs of {there}.")
    if not asked:
        return None, ""

    def rank(budget: Budget) -> tuple[int, int, bool, int, str]:
        length = budget.epochs if plan.longest else 0
        return length, len(asked[budget]), budget.tuned, budget.epochs, str(budget.changes)

    best = max(asked, key=rank)
    others = [
        f"{budget} ({len(cells)} cells)" for budget, cells in filled.items() if budget != best
    ]
    if not others:
        return best, ""
    how = "as asked" if epochs is not None else "the budget that fills most cells"
    how = "the longest" if plan.longest and epochs is None else how
    return best, (
        f"Only runs of one budget are shown: {best}, {how} ({len(asked[best])} cells). Other runs "
        f"are left out: {'; '.join(sorted(others))}. Choose with --epochs."
    )
