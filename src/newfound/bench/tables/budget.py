"""The budget of a table: how long and on what its runs were trained. A table shows one budget.

Only batches and the size of images may differ between data sets.
"""

from __future__ import annotations

from collections import defaultdict
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
#: Those of them that follow the data set: they are the same for all methods on it.
_OF_DATASET = frozenset({"image_size", "n_labelled_per_batch", "n_unlabelled_per_batch"})
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

    @property
    def shared(self) -> Budget:
        """The part that is the same on all data sets."""
        kept = tuple(pair for pair in self.changes if pair[0] not in _OF_DATASET)
        return self._replace(changes=kept)

    def admits(self, case: Case, row: Row) -> bool:
        """Whether a run has this budget, or 1.5 times the epochs where the row asks for it."""
        epochs = 1.5 * self.epochs if row.longer else self.epochs
        tuned = self.tuned if case.method in _NEVER_TUNED else budget_of(case).tuned
        own = budget_of(case)
        return abs(own.epochs - epochs) < 1 and own.changes == self.changes and tuned == self.tuned


def budget_of(case: Case) -> Budget:
    """The budget of a run."""
    changes = {name: value for name, value in case.changes.items() if name in _SETTINGS}
    return Budget(case.epochs, case.trial is not None, tuple(sorted(changes.items())))


def choose_budgets(
    plan: TablePlan, records: Sequence[Record], epochs: int | None
) -> tuple[dict[str, Budget] | None, str]:
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
    dict of str to Budget, or None
        By data set. Epochs, tuning and views are those that fill most cells (of equal ones the
        tuned one, then the longest); for a table of the longest run, the longest. Batches and the
        size of images follow the data set: those that fill most of its cells. None if no run was
        trained.
    str
        The note; "" without a choice.

    Raises
    ------
    InputError
        If no run has that many epochs.
    """
    filled: dict[Budget, set[tuple[int, int]]] = defaultdict(set)
    on_set: dict[str, dict[Budget, set[tuple[int, int]]]] = defaultdict(lambda: defaultdict(set))
    for record in records:
        case, budget = record.case, budget_of(record.case)
        for i, row in enumerate(plan.rows):
            for j, column in enumerate(plan.columns):
                if case.epochs > 0 and not row.longer and fits(case, row, column):
                    filled[budget.shared].add((i, j))
                    on_set[case.dataset][budget].add((i, j))
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
    chosen = {
        name: max(able, key=lambda budget: (len(able[budget]), str(budget)))
        for name, found in on_set.items()
        if (able := {b: cells for b, cells in found.items() if b.shared == best})
    }
    shown = sorted({str(budget) for budget in chosen.values()})
    others = {
        f"{budget} ({name}: {len(cells)} cells)"
        for name, found in on_set.items()
        for budget, cells in found.items()
        if budget != chosen.get(name)
    }
    if not others:
        return chosen, ""
    how = "as asked" if epochs is not None else "the budget that fills most cells"
    how = "the longest" if plan.longest and epochs is None else how
    return chosen, (
        f"Only runs of one budget are shown: {' or '.join(shown)}, {how} ({len(asked[best])} "
        f"cells). Other runs are left out: {'; '.join(sorted(others))}. Choose with --epochs."
    )
