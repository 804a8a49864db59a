"""The page that says what an update changed, the most important change first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from newfound.files import write_atomically
from newfound.report.items import View, shorten
from newfound.report.page import read_part, sheet_rules, template
from newfound.report.sprites import Sprites, draw_sprites, place_of
from newfound.result.lineage import Changes
from newfound.words import plural, things

if TYPE_CHECKING:
    from newfound.result.result import Result

#: Most moved items that the page lists; changes.json has all of them.
_MOST_ITEMS = 1000

#: Most items shown of a new category, and of one that is gone.
_MOST_STILLS = 12
_SIZE = 80
_BYTES = 6_000_000


def write_changes(changes: Changes, path: Path, result: Result | None = None) -> None:
    """Write the page: one file without script, beside the report.

    Parameters
    ----------
    changes : Changes
        The differences between two results.
    path : Path
        The file, ``changes.html``.
    result : Result, optional
        The result as it is now; with it, the page shows pictures and texts, not only ids.
    """
    kind = "features" if result is None else result.collection.kind
    shown = changes.moved[:_MOST_ITEMS]
    stills = _Stills(result)
    new = [
        {"name": name, "size": size, "stills": stills.rows(_exemplars(result, name))}
        for name, size in _largest_first(changes.new)
    ]
    gone = [
        {"name": name, "now": now, "stills": stills.ids(_moved_from(changes, name))}
        for name, now in changes.gone.items()
    ]
    moved = [
        {"before": before, "now": now, "n": len(ids), "stills": stills.ids(ids)}
        for (before, now), ids in _groups(shown, changes)
    ]
    sprites = stills.draw()
    page = template("changes.html").render(
        style=read_part("style.css"),
        sheets=sheet_rules(sprites, None),
        headline=headline(changes, kind),
        thing=things(kind, 1),
        things=things(kind),
        changes=changes,
        lineage=lineage(changes),
        new=stills.finish(new),
        gone=stills.finish(gone),
        resized=sorted(
            ((name, before, now) for name, (before, now) in changes.resized.items()),
            key=lambda entry: (-abs(entry[2] - entry[1]), entry[0]),
        ),
        moved=stills.finish(moved),
        n_more=max(0, len(changes.moved) - _MOST_ITEMS),
    )
    write_atomically(path, page.encode("utf-8", "replace"))


def lineage(changes: Changes) -> list[tuple[str, list[str], list[str]]]:
    """What became of categories: a word, their names before, and their names now."""
    return [
        *(("Renamed", [before], [now]) for before, now in changes.renamed.items()),
        *(("Merged", before, [now]) for now, before in changes.merged.items()),
        *(("Split", [before], now) for before, now in changes.split.items()),
    ]


def headline(changes: Changes, kind: str = "features") -> str:
    """The most important change in one sentence.

    Parameters
    ----------
    changes : Changes
        The differences between two results.
    kind : {"pictures", "texts", "features"}
        What the items are, for the words.

    Returns
    -------
    str
        A sentence.
    """
    told = {*changes.renamed.values(), *(now for nows in changes.split.values() for now in nows)}
    lost = {*changes.renamed, *(old for olds in changes.merged.values() for old in olds)}
    new = [name for name in changes.new if name not in {*told, *changes.merged}]
    gone = [name for name in changes.gone if name not in {*lost, *changes.split}]
    counts = {
        "found": (new, "new category was", "new categories were"),
        "renamed": (changes.renamed, "category was", "categories were"),
        "merged": (lost - {*changes.renamed}, "category was", "categories were"),
        "split": (changes.split, "category was", "categories were"),
        "gone": (gone, "category is", "categories are"),
    }
    parts = [
        f"{plural(len(names), *words)} {what}{_name_of_one(names)}"
        for what, (names, *words) in counts.items()
        if names
    ]
    if parts:
        return ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1] + "."
    if changes.moved:
        n = len(changes.moved)
        is_ = "is" if n == 1 else "are"
        return f"The categories are the same, but {n:,} {things(kind, n)} {is_} in another one."
    return "The categories are the same as before."


def _name_of_one(named: Iterable[str]) -> str:
    """The name, if there is only one: then it is what a person wants to know."""
    names = list(named)
    return f" ({names[0]})" if len(names) == 1 else ""


def _largest_first(sizes: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(sizes.items(), key=lambda entry: (-entry[1], entry[0]))


def _exemplars(result: Result | None, name: str) -> list[int]:
    """Rows of the most typical items of a category."""
    if result is None or name not in result.names:
        return []
    code = result.names.index(name)
    nearest = result.profiles.exemplars[code].tolist()
    others = np.flatnonzero(result.assigned.labels == code).tolist()
    return list(dict.fromkeys([*nearest, *others]))[:_MOST_STILLS]


def _moved_from(changes: Changes, name: str) -> list[str]:
    """Ids of items that were in a category that is gone."""
    return list(islice((item for item, before, _ in changes.moved if before == name), _MOST_STILLS))


def _groups(
    moved: Iterable[tuple[str, str, str]], changes: Changes
) -> list[tuple[tuple[str, str], list[str]]]:
    """Moved items by where they came from and went to: into new categories first, large first."""
    groups: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for item, before, now in moved:
        groups[before, now].append(item)
    return sorted(groups.items(), key=lambda g: (g[0][1] not in changes.new, -len(g[1]), g[0]))


class _Stills:
    """Items of the page: asked for one after the other, drawn all at once."""

    def __init__(self, result: Result | None) -> None:
        self.collection = None if result is None else result.collection
        ids: Sequence[str] = [] if self.collection is None else self.collection.ids
        self._row_of = {name: row for row, name in enumerate(ids)}
        self._tile_of: dict[int, int] = {}
        self._sprites: Sprites | None = None

    def rows(self, rows: Iterable[int]) -> list[int | str]:
        """Note that these rows will be shown."""
        noted: list[int | str] = []
        for row in rows:
            self._tile_of.setdefault(row, len(self._tile_of))
            noted.append(row)
        return noted

    def ids(self, ids: Iterable[str]) -> list[int | str]:
        """Note that these items will be shown; those that no row is known of by their id."""
        noted: list[int | str] = []
        for name in ids:
            row = self._row_of.get(name)
            noted += [name] if row is None else self.rows([row])
        return noted

    def draw(self) -> Sprites | None:
        """Draw the thumbnails of all pictures that were noted."""
        paths = None if self.collection is None else self.collection.paths
        if paths is not None and self._tile_of:
            shown = [paths[row] for row in self._tile_of]
            self._sprites = draw_sprites(shown, _SIZE, max_bytes=_BYTES)
        return self._sprites

    def finish(self, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The entries, with a `View` in the place of each row and id."""
        return [
            {**entry, "stills": [self._view(it) for it in entry["stills"]]} for entry in entries
        ]

    def _view(self, item: int | str) -> View:
        if isinstance(item, str) or self.collection is None:
            return View(-1, str(item), None, None, "")
        tile, position = None, ""
        if self._sprites is not None:
            sheet, x, y = place_of(self._tile_of[item], self._sprites)
            tile, position = f"tile s{sheet}", f"{x}% {y}%"
        texts = self.collection.texts
        text = None if texts is None else shorten(texts[item])
        return View(item, self.collection.ids[item], text, tile, position)
