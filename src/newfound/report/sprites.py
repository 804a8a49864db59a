"""Thumbnails of many pictures in few files: sprite sheets, as data URIs.

Ten thousand small pictures would be ten thousand headers, and ten thousand things for a browser
to decode. A sheet holds a square of tiles and is decoded once, when the first of them is seen.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
import numpy.typing as npt

from newfound.data.pictures import PictureError, read_picture, square_pixels
from newfound.errors import require

Progress = Callable[[int, int], object]
Tiles = npt.NDArray[np.uint8]

#: Tiles along each side of a sheet.
COLUMNS = 24

#: Qualities to try until the sheets fit, the best first.
_QUALITIES = (82, 68, 52, 36, 20, 8, 0)

#: Stands for a picture that could not be read again: the grey of the page's own lines.
_BLANK = 200
_READ_AHEAD = 512


@dataclass(frozen=True)
class Sprites:
    """Thumbnails in sheets.

    Attributes
    ----------
    size : int
        Side of a tile, in pixels.
    sheets : list of str
        Data URIs. Tile i is on sheet ``i // COLUMNS**2``, in rows of `COLUMNS`.
    n_rows : list of int
        Rows of tiles on each sheet.
    n_tiles : int
        Thumbnails on all sheets.
    unreadable : list of int
        Tiles that stay blank, since their picture cannot be read.
    """

    size: int
    sheets: list[str]
    n_rows: list[int]
    n_tiles: int
    unreadable: list[int]


def draw_sprites(
    paths: Sequence[Path],
    size: int,
    *,
    max_bytes: int,
    progress: Progress | None = None,
) -> Sprites:
    """Draw a thumbnail of each picture.

    Parameters
    ----------
    paths : sequence of Path
        Picture files.
    size : int
        Side of a thumbnail in pixels; a multiple of 16 keeps colours from running into the next.
    max_bytes : int
        The data URIs are no longer than this in all, at the best quality for which that holds
        (or at the lowest there is).
    progress : callable, optional
        Called with the number of pictures that are done and their number.

    Returns
    -------
    Sprites
        The sheets. A picture that cannot be read has a blank tile.
    """
    tiles = np.full((len(paths), size, size, 3), _BLANK, dtype=np.uint8)
    unreadable = []
    for i, tile in enumerate(_read_tiles(paths, size)):
        if tile is None:
            unreadable.append(i)
        else:
            tiles[i] = tile
        if progress is not None:
            progress(i + 1, len(paths))
    pages = [_paste(tiles[i : i + COLUMNS**2]) for i in range(0, len(tiles), COLUMNS**2)]
    n_rows = [page.shape[0] // size for page in pages]
    return Sprites(size, _encode_within(pages, max_bytes), n_rows, len(tiles), unreadable)


def place_of(tile: int, sprites: Sprites) -> tuple[int, float, float]:
    """Sheet of a tile, and its place there as CSS's `background-position` in percent.

    Parameters
    ----------
    tile : int
        Index of the thumbnail.
    sprites : Sprites
        The sheets.

    Returns
    -------
    sheet : int
        Index of the sheet.
    x, y : float
        0 … 100. In CSS 100 % is where the last tile is seen, not where the sheet ends.
    """
    sheet, place = divmod(tile, COLUMNS**2)
    row, column = divmod(place, COLUMNS)
    last_row = max(sprites.n_rows[sheet] - 1, 1)
    return sheet, round(100 * column / (COLUMNS - 1), 3), round(100 * row / last_row, 3)


def _read_tiles(paths: Sequence[Path], size: int) -> Iterator[Tiles | None]:
    """Read pictures side by side, in order, a few hundred ahead at most."""

    def read(path: Path) -> Tiles | None:
        try:
            return square_pixels(read_picture(path, at_least=size), size)
        except PictureError:
            return None

    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        for start in range(0, len(paths), _READ_AHEAD):
            yield from pool.map(read, paths[start : start + _READ_AHEAD])


def _paste(tiles: Tiles) -> Tiles:
    """One sheet: tiles (m, s, s, 3) side by side, in rows of `COLUMNS`."""
    m, size = tiles.shape[:2]
    n_rows = -(-m // COLUMNS)
    full = np.full((n_rows * COLUMNS, size, size, 3), _BLANK, dtype=np.uint8)
    full[:m] = tiles
    rows = full.reshape(n_rows, COLUMNS, size, size, 3).swapaxes(1, 2)
    return rows.reshape(n_rows * size, COLUMNS * size, 3)


def _encode_within(pages: Sequence[Tiles], max_bytes: int) -> list[str]:
    """Encode all sheets at the best quality that stays within `max_bytes`."""
    for quality in _QUALITIES[:-1]:
        sheets = _encode_all(pages, quality, max_bytes)
        if sheets is not None:
            return sheets
    return [_encode(page, _QUALITIES[-1]) for page in pages]


def _encode_all(pages: Sequence[Tiles], quality: int, max_bytes: int) -> list[str] | None:
    """Encode all sheets; None as soon as they are too large."""
    sheets: list[str] = []
    n_bytes = 0
    for page in pages:
        sheets.append(_encode(page, quality))
        n_bytes += len(sheets[-1])
        if n_bytes > max_bytes:
            return None
    return sheets


def _encode(page: Tiles, quality: int) -> str:
    """A sheet as a data URI: WebP, or JPEG where Pillow was built without it."""
    picture = require("PIL.Image", "train").fromarray(page)
    kind = "webp" if require("PIL.features", "train").check("webp") else "jpeg"
    buffer = BytesIO()
    picture.save(buffer, kind.upper(), quality=quality)
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"
