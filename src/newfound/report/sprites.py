"""Thumbnails of many pictures in a few sprite sheets, as data URIs.

Ten thousand small pictures would have ten thousand headers, and a browser would have to decode each
of them. A sheet holds a square of tiles and is decoded once, when its first tile is shown.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
import numpy.typing as npt

from newfound.data.pictures import PictureError, read_picture, square_pixels
from newfound.errors import require
from newfound.progress import StepProgress

Tiles = npt.NDArray[np.uint8]

#: Tiles along each side of a sheet.
COLUMNS = 24

#: Qualities to try until the sheets are small enough, the best first.
_QUALITIES = (82, 68, 52, 36, 20, 8, 0)

#: Grey of a tile whose picture could not be read; the page draws its lines in the same grey.
_BLANK = 200
_READ_AHEAD = 512


@dataclass(frozen=True)
class Sprites:
    """Thumbnails in sheets.

    Attributes
    ----------
    size : int
        Side of a tile in pixels.
    sheets : list of str
        Data URIs. Tile i is on sheet ``i // COLUMNS**2``, in rows of `COLUMNS`.
    n_rows : list of int
        Number of rows of tiles on each sheet.
    n_tiles : int
        Number of thumbnails on all sheets.
    unreadable : list of int
        Tiles that stay blank because their picture cannot be read.
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
    progress: StepProgress | None = None,
) -> Sprites:
    """Draw a thumbnail of each picture.

    Parameters
    ----------
    paths : sequence of Path
        Picture files.
    size : int
        Side of a thumbnail in pixels. A multiple of 16 keeps colours from bleeding into the next
        tile, because compression works on blocks of 16 pixels.
    max_bytes : int
        Largest total length of the data URIs. The best quality that fits is used, or the lowest
        one if none fits.
    progress : callable, optional
        Called with the number of pictures done so far and their total number.

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
    """Sheet of a tile, and its position there as CSS `background-position` in percent.

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
        From 0 to 100. In CSS, 100 % shows the last tile; it is not where the sheet ends.
    """
    sheet, place = divmod(tile, COLUMNS**2)
    row, column = divmod(place, COLUMNS)
    last_row = max(sprites.n_rows[sheet] - 1, 1)
    return sheet, round(100 * column / (COLUMNS - 1), 3), round(100 * row / last_row, 3)


def _read_tiles(paths: Sequence[Path], size: int) -> Iterator[Tiles | None]:
    """Read pictures in several threads and yield them in order, at most a few hundred ahead."""

    def read(path: Path) -> Tiles | None:
        try:
            return square_pixels(read_picture(path, at_least=size), size)
        except PictureError:
            return None

    # Pillow decodes without holding the interpreter lock, so threads are enough.
    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        for start in range(0, len(paths), _READ_AHEAD):
            yield from pool.map(read, paths[start : start + _READ_AHEAD])


def _paste(tiles: Tiles) -> Tiles:
    """One sheet: tiles of shape (m, s, s, 3) side by side, in rows of `COLUMNS`."""
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
    """Encode all sheets; None if they exceed `max_bytes`."""
    sheets: list[str] = []
    n_bytes = 0
    for page in pages:
        sheets.append(_encode(page, quality))
        n_bytes += len(sheets[-1])
        if n_bytes > max_bytes:
            return None
    return sheets


def _encode(page: Tiles, quality: int) -> str:
    """A sheet as a data URI: WebP, or JPEG if Pillow was built without WebP."""
    picture = require("PIL.Image", "train").fromarray(page)
    kind = "webp" if require("PIL.features", "train").check("webp") else "jpeg"
    buffer = BytesIO()
    picture.save(buffer, kind.upper(), quality=quality)
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"
