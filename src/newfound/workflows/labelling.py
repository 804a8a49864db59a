"""Labels from other tools for the items of a run."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from newfound.data.annotations import Annotation, read_annotations
from newfound.data.tables import as_objects
from newfound.errors import InputError
from newfound.result.result import Result
from newfound.words import plural
from newfound.workflows.merging import MergedItems

_MOST_PROBLEMS = 10


def label_items(result: Result, path: Path) -> MergedItems:
    """The items of a run with labels from a file.

    Parameters
    ----------
    result : Result
        The run.
    path : Path
        As for `read_annotations`.

    Returns
    -------
    MergedItems
        The same items; new labels go before old ones.

    Raises
    ------
    InputError
        If an annotation names no item or several, or gives two labels, with its place in the file;
        or if no label is new.
    """
    place = _Places(result)
    y, problems = result.collection.y.copy(), []
    given: dict[int, Annotation] = {}
    for note in read_annotations(path):
        rows, problem = place.find(note) if not note.problem else ([], note.problem)
        for row in rows:
            before, label = given.setdefault(row, note), note.label
            if before.label != label:
                problem = f"it gets {label!r}, but {before.where} gives it {before.label!r}"
            elif label is not None:
                label = place.category_of.get(label, label)
                is_news = note.by_person or label != result.names[result.assigned.labels[row]]
                y[row] = label if is_news else y[row]
        if problem:
            problems.append(f"{note.where[:1].upper()}{note.where[1:]}: {problem}.")
    if problems:
        n_more = len(problems) - _MOST_PROBLEMS
        more = [f"And {plural(n_more, 'more problem')}."] if n_more > 0 else []
        raise InputError(
            f"{path} cannot be used as it is, and nothing was changed. Correct or remove these:\n"
            + "\n".join([*problems[:_MOST_PROBLEMS], *more])
        )
    before_y = [None if label is None else str(label) for label in result.collection.y]
    if y.tolist() == before_y:
        raise InputError(f"{path} has no label that the run does not have already.")
    collection = replace(result.collection, y=as_objects(y.tolist()))
    return MergedItems(collection, result.features, result.assigned.labels, old_changed=True)


class _Places:
    """Finds the rows of an item by any of its names."""

    def __init__(self, result: Result) -> None:
        collection = result.collection
        self.rows = {item: [row] for row, item in enumerate(collection.ids)}
        more: defaultdict[str, list[int]] = defaultdict(list)
        for row, path in enumerate(collection.paths or ()):
            # a path may begin at any folder above the picture
            parts = path.parts
            for start in range(1, len(parts)):
                more["/".join(parts[start:])].append(row)
            more[str(path)].append(row)
            more[path.stem].append(row)
        self.texts: defaultdict[str, list[int]] = defaultdict(list)
        for row, text in enumerate(collection.texts or ()):
            self.texts[text].append(row)
        self.more = more
        # a choice stands on one line, whatever the name of the category
        self.category_of = {" ".join(name.split()): name for name in result.names}

    def find(self, note: Annotation) -> tuple[list[int], str]:
        """Rows that an annotation is about, or what is wrong with it."""
        if note.label is None:
            return [], ""
        for name in note.names:
            rows = self.rows.get(name) or self.texts.get(name)  # equal texts have equal labels
            if rows:
                return rows, ""
            rows = self.more.get(name.replace("\\", "/"), [])
            if len(rows) > 1:
                return [], f"{name!r} may be {len(rows)} items of the run. Give the whole path"
            if rows:
                return rows, ""
        named = repr(note.names[0][:80]) if note.names else "an item without a name"
        return [], f"{named} is no item of the run. Add it with MORE, or leave it out"
