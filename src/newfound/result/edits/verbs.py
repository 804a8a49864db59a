"""`result.merge("new-003", "new-007")` and its like: each adds a row to ``edits.csv``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from newfound.errors import InputError
from newfound.result.edits.decisions import Obeyed, as_sentence, decide
from newfound.result.edits.log import Edit, add_edit, read_edits

if TYPE_CHECKING:
    from newfound.result.result import Result


def add_checked(result: Result, edit: Edit) -> Edit:
    """Add an edit to the file of a run, unless it cannot be obeyed.

    Parameters
    ----------
    result : Result
        In a run folder.
    edit : Edit
        What a person has decided.

    Returns
    -------
    Edit
        As it was written, with its id.

    Raises
    ------
    InputError
        If the edit names something that is not there, or contradicts an earlier one.
    """
    if result.folder is None:
        raise InputError(
            "This result is in no run folder, so edits have no place. Pass out=... to discover, or "
            "read the run with newfound.result.store.read_result."
        )
    edits, obeyed = read_edits(result.folder), Obeyed.read(result.folder)
    before = decide(result, edits, obeyed).problems
    row = max((other.row for other in edits), default=1) + 1
    tried = Edit(**{**vars(edit), "id": edit.id or "new", "row": row})
    after = decide(result, [*edits, tried], obeyed).problems
    new = [words for problem in after if problem not in before for words in problem[1:]]
    if new:
        raise InputError(f"This cannot be done: {as_sentence(new[0])}")
    return add_edit(result.folder, edit)


class Editable:
    """Decisions about a result that ``newfound update`` obeys.

    Each method adds a row to ``edits.csv`` in the run folder and returns its id, which `undo`
    takes. The result itself stays as it is, until `newfound.workflows.update.update` is called.
    """

    folder: Path | None

    def merge(self, first: str, second: str, name: str = "", *, note: str = "") -> str:
        """Make two categories one.

        Parameters
        ----------
        first, second : str
            Names of the categories. The result has the name of the first, or that of the one
            that has labels.
        name : str, optional
            Another name.
        note : str, optional
            Whatever you want to remember.

        Returns
        -------
        str
            Id of the edit.
        """
        return self._add(Edit("merge", first, second, name, note=note))

    def split(self, category: str, items: Iterable[str], name: str = "", *, note: str = "") -> str:
        """Make some items of a category a category of their own, with a name if it has one."""
        return self._add(Edit("split", category, _lines(items), name, note=note))

    def rename(self, category: str, name: str, *, note: str = "") -> str:
        """Give a category a name; all items of a novel one then have it as their label."""
        return self._add(Edit("rename", category, value=name, note=note))

    def confirm(self, category: str, *, note: str = "") -> str:
        """Say that a category is right: its items stay together, under its name."""
        return self._add(Edit("confirm", category, note=note))

    def reject(self, category: str, *, note: str = "") -> str:
        """Say that this is not one category: its items go to the nearest others."""
        return self._add(Edit("reject", category, note=note))

    def relabel(self, items: str | Iterable[str], label: str | None, *, note: str = "") -> str:
        """Give items another label; None takes their label away, the same label keeps it."""
        return self._add(Edit("relabel", _lines(items), value=label or "", note=note))

    def move(self, items: str | Iterable[str], category: str, *, note: str = "") -> str:
        """Put items into another category, where they stay."""
        return self._add(Edit("move", _lines(items), category, note=note))

    def different(
        self,
        first: str,
        second: str,
        *,
        items: bool = False,
        probability: float | None = None,
        note: str = "",
    ) -> str:
        """Say that two categories, or two items, are never one; `items` if names are ambiguous.

        `probability` is that with which a sampler drew the pair of items, if it did.
        """
        drawn = "" if probability is None else repr(float(probability))
        return self._add(
            Edit("different", first, second, "items" if items else "", probability=drawn, note=note)
        )

    def same(
        self, first: str, second: str, *, probability: float | None = None, note: str = ""
    ) -> str:
        """Say that two items are of the same category.

        `probability` is that with which a sampler drew the pair, if it did.
        """
        drawn = "" if probability is None else repr(float(probability))
        return self._add(Edit("same", first, second, probability=drawn, note=note))

    def granularity(self, k: int, *, note: str = "") -> str:
        """Choose the level of k categories, as `at` shows it; items stay where it puts them."""
        return self._add(Edit("granularity", str(k), note=note))

    def undo(self, edit: str) -> str:
        """Undo an edit by its id; to redo it, undo the undoing."""
        return self._add(Edit("undo", edit))

    def _add(self, edit: Edit) -> str:
        return add_checked(cast("Result", self), edit).id


def _lines(items: str | Iterable[str]) -> str:
    return items if isinstance(items, str) else "\n".join(items)
