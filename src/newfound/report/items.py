"""The items that the page shows: which ones, in which order, and how each is drawn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from newfound.arrays import Bools, Doubles, Ints
from newfound.progress import StepProgress
from newfound.report.map import Map, draw_map, sample_rows
from newfound.report.sprites import COLUMNS, Sprites, draw_sprites, place_of
from newfound.words import things

if TYPE_CHECKING:
    from newfound.result.result import Result

#: Most items on a page; a larger collection is sampled. Thumbnails take more bytes than points.
MAX_ITEMS = {"pictures": 12_000, "texts": 20_000, "features": 20_000}
MAX_TEXT = 320

#: Most bytes for the thumbnails of all items, and for the larger ones on the cards.
_SMALL_BYTES = 11_000_000
_LARGE_BYTES = 5_000_000
_SMALL_SIZES = ((3000, 64), (MAX_ITEMS["pictures"], 48))
_LARGE_SIZE = 128
_MAX_LARGE = 2000

#: Steps of this angle spread any number of hues evenly over the colour wheel.
_GOLDEN_ANGLE = 137.508


@dataclass(frozen=True)
class View:
    """What a template needs to draw one item.

    Attributes
    ----------
    index : int
        Position among the items of the page.
    id : str
        Id of the item.
    text : str or None
        Beginning of the text, in a collection of texts.
    tile : str or None
        CSS classes of the thumbnail.
    position : str
        CSS `background-position` of the thumbnail.
    is_unsure : bool
        Whether its confidence is below what a person asked for.
    """

    index: int
    id: str
    text: str | None
    tile: str | None
    position: str
    is_unsure: bool = False


class Items:
    """The items of a result, and those that its page shows.

    Parameters
    ----------
    result : Result
        What was found.
    """

    def __init__(self, result: Result) -> None:
        self.result = result
        self.collection = result.collection
        self.names = result.names
        self.kinds = result.kinds
        self.codes: Ints = result.assigned.labels
        self.shown: Ints = np.empty(0, dtype=np.int64)
        self.small: Sprites | None = None
        self.large: Sprites | None = None
        self.map: Map | None = None
        self._index_of: dict[int, int] = {}
        self._large_tile_of: dict[int, int] = {}

    @cached_property
    def is_labelled(self) -> Bools:
        """Items with a given label."""
        return self.collection.is_labelled

    @cached_property
    def confidence(self) -> Doubles:
        """From 0 to 1; NaN counts as 0."""
        return np.nan_to_num(self.result.assigned.confidence).clip(0, 1)

    @cached_property
    def is_novel(self) -> Bools:
        """Items in novel categories."""
        return self.codes >= self.result.n_known

    @cached_property
    def is_unsure(self) -> Bools:
        """Items that are marked as unsure; none if the run was made without marks."""
        marks = self.result.is_unsure
        return np.zeros(len(self.codes), dtype=bool) if marks is None else marks

    @property
    def things(self) -> str:
        """What the items are called: pictures, texts or items."""
        return things(self.collection.kind)

    def choose(self, featured: Iterable[int]) -> None:
        """Decide which items are on the page: all, or a sample that has the featured rows."""
        must = np.array(sorted(set(featured)), dtype=np.int64)
        rows = sample_rows(self.codes, must, MAX_ITEMS[self.collection.kind])
        # By category, highest confidence first: the thumbnails of a card are then on one sheet.
        self.shown = rows[np.lexsort((rows, -self.confidence[rows], self.codes[rows]))]
        self._index_of = {int(row): index for index, row in enumerate(self.shown)}
        # More large thumbnails than this would fit only at poor quality.
        if len(must) <= _MAX_LARGE:
            self._large_tile_of = {int(row): tile for tile, row in enumerate(must)}

    def draw(self, progress: StepProgress | None = None) -> None:
        """Draw thumbnails and the map."""
        paths = self.collection.paths
        if paths is not None:
            n_small, n_large = len(self.shown), len(self._large_tile_of)
            size = next(size for most, size in _SMALL_SIZES if n_small <= most)
            self.small = draw_sprites(
                [paths[row] for row in self.shown],
                size,
                max_bytes=_SMALL_BYTES,
                progress=_part(progress, 0, n_small + n_large),
            )
            self.large = draw_sprites(
                [paths[row] for row in self._large_tile_of],
                _LARGE_SIZE,
                max_bytes=_LARGE_BYTES,
                progress=_part(progress, n_small, n_small + n_large),
            )
        if self.result.V.shape[1] and len(self.shown) > 1:
            self.map = draw_map(self.result.V[self.shown])

    def view(self, row: int) -> View:
        """What a template needs to draw the item of this row."""
        index = self._index_of[row]
        text = None
        if self.collection.texts is not None:
            text = shorten(self.collection.texts[row])
        tile, position = self._tile(row, index)
        is_unsure = bool(self.is_unsure[row])
        return View(index, self.collection.ids[row], text, tile, position, is_unsure)

    def _tile(self, row: int, index: int) -> tuple[str | None, str]:
        if self.small is None or self.large is None:
            return None, ""
        if row in self._large_tile_of:
            sheet, x, y = place_of(self._large_tile_of[row], self.large)
            return f"tile l{sheet}", f"{x}% {y}%"
        sheet, x, y = place_of(index, self.small)
        return f"tile s{sheet}", f"{x}% {y}%"

    def hue(self, code: int) -> int:
        """Hue of a category in degrees; categories with adjacent codes get distant hues."""
        return round(20 + code * _GOLDEN_ANGLE) % 360

    def payload(self) -> dict[str, Any]:
        """The data for the page's script, in plain values."""
        result, rows = self.result, self.shown
        texts = self.collection.texts
        outliers = np.nan_to_num(result.outlier_scores[rows])
        return {
            "kind": self.collection.kind,
            "thing": things(self.collection.kind, 1),
            "things": self.things,
            "categories": [
                {
                    "name": name,
                    "kind": kind,
                    "hue": self.hue(code),
                    "size": int(result.profiles.sizes[code]),
                }
                for code, (name, kind) in enumerate(zip(self.names, self.kinds, strict=True))
            ],
            "id": [self.collection.ids[row] for row in rows],
            "text": None if texts is None else [shorten(texts[row]) for row in rows],
            "category": self.codes[rows].tolist(),
            "labelled": self.is_labelled[rows].astype(int).tolist(),
            "confidence": np.round(100 * self.confidence[rows]).astype(int).tolist(),
            "unsure": self.is_unsure[rows].astype(int).tolist(),
            "runner": result.assigned.runner_up[rows].tolist(),
            "outlier": np.round(100 * outliers).astype(int).tolist(),
            "x": None if self.map is None else self.map.points[:, 0].tolist(),
            "y": None if self.map is None else self.map.points[:, 1].tolist(),
            "small": None if self.small is None else _describe(self.small),
            "large": None if self.large is None else _describe(self.large),
            "largeTile": {self._index_of[row]: t for row, t in self._large_tile_of.items()},
        }


def _describe(sprites: Sprites) -> dict[str, Any]:
    return {"size": sprites.size, "columns": COLUMNS, "rows": sprites.n_rows}


def shorten(text: str) -> str:
    """The beginning of a text, up to the last whole word."""
    words = " ".join(text[: 2 * MAX_TEXT].split())
    return words if len(words) <= MAX_TEXT else words[:MAX_TEXT].rsplit(" ", 1)[0] + " …"


def _part(progress: StepProgress | None, start: int, total: int) -> StepProgress | None:
    """Progress of one part of the thumbnails, reported as progress of all of them."""
    if progress is None:
        return None
    return lambda done, _: progress(start + done, total)
