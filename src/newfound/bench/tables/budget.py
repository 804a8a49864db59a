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


class Budgets(NamedTuple):
    """What a table shows: the part that all data sets share, and the whole of some of them."""

    shared: Budget
    on: dict[str, Budget]

    def admits(self, case: Case, row: Row) -> bool:
        """Whether a run was not trained, or has the budget of its data set.

        If the row asks for it, 1.5 times the epochs.
        """
        if case.epochs == 0:
            return True
        budget, own = self.on.get(case.dataset, self.shared), budget_of(case)
        epochs = 1.5 * budget.epochs if row.longer else budget.epochs
        tuned = budget.tuned if case.method in _NEVER_TUNED else own.tuned
        same = own.changes == budget.changes and tuned == budget.tuned
        return same and abs(own.epochs - epochs) < 1


def budget_of(case: Case) -> Budget:
    """The budget of a run."""
    changes = {name: value for name, value in case.changes.items() if name in _SETTINGS}
    return Budget(case.epochs, case.trial is not None, tuple(sorted(changes.items())))


def choose_budgets(
    plan: TablePlan, records: Sequence[Record], epochs: int | None
) -> tuple[Budgets | None, str]:
    """The budgets that a table shows, and a note that says how they were chosen.

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
    Budgets or None
        Epochs, tuning and views are those that fill most cells (of equal ones the tuned one, then
        the longest); for a table of the longest run, the longest. Batches and the size of images
        are those that fill most cells of the data set. None if no run was trained.
    str
        The note; "" without a choice.

    Raises
    ------
    InputError
        If no run has that many epochs.
    """
    filled = _cells_filled(plan, records)
    asked: dict[Budget, int] = defaultdict(int)
    for (_, budget), n_cells in filled.items():
        if epochs in (None, budget.epochs):
            asked[budget.shared] += n_cells
    if filled and not asked:
        there = ", ".join(str(n) for n in sorted({budget.epochs for _, budget in filled}))
        raise InputError(f"No run of this table has {epochs} epochs; there are runs of {there}.")
    if not asked:
        return None, ""

    def rank(budget: Budget) -> tuple[int, int, bool, int, str]:
        length = budget.epochs if plan.longest else 0
        return length, asked[budget], budget.tuned, budget.epochs, str(budget.changes)

    best, on = max(asked, key=rank), {}
    for name, budget in sorted(filled, key=lambda key: (filled[key], str(key[1]))):
        if budget.shared == best:
            on[name] = budget  # the last one fills most cells
    how = "as asked" if epochs is not None else "the budget that fills most cells"
    how = "the longest" if plan.longest and epochs is None else how
    return Budgets(best, on), _note(on, filled, f"{how} ({asked[best]} cells)")


def _cells_filled(plan: TablePlan, records: Sequence[Record]) -> dict[tuple[str, Budget], int]:
    """How many cells the runs of a data set with one budget fill."""
    filled: dict[tuple[str, Budget], set[tuple[int, int]]] = defaultdict(set)
    for case in (record.case for record in records if record.case.epochs > 0):
        for i, row in enumerate(plan.rows):
            for j, column in enumerate(plan.columns):
                if not row.longer and fits(case, row, column):
                    filled[case.dataset, budget_of(case)].add((i, j))
    return {key: len(cells) for key, cells in filled.items()}


def _note(on: dict[str, Budget], filled: dict[tuple[str, Budget], int], how: str) -> str:
    """What is shown and what is left out; "" if nothing is."""
    others = sorted(
        f"{budget} ({name}: {n_cells} cells)"
        for (name, budget), n_cells in filled.items()
        if budget != on.get(name)
    )
    shown = " or ".join(sorted({str(budget) for budget in on.values()}))
    if not others:
        return ""
    return (
        f"Only runs of one budget are shown: {shown}, {how}. Other runs are left out: "
        f"{'; '.join(others)}. Choose with --epochs."
    )
