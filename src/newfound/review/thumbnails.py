"""Pictures of a run as the page asks for them: by row, small or large, and only those it shows."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from io import BytesIO
from pathlib import Path

from newfound.data.pictures import PictureError, read_picture, square_pixels
from newfound.errors import require

#: Sides of the pictures that are served, in pixels.
SIZES = {"small": 128, "large": 640}
#: Most bytes of pictures that are kept.
_MAX_KEPT = 64_000_000


class Thumbnails:
    """Pictures of files, drawn when they are first asked for."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Path, str], bytes] = OrderedDict()
        self._n_bytes = 0
        self._lock = threading.Lock()
        # More at a time would only keep other requests waiting.
        self._drawing = threading.BoundedSemaphore(os.cpu_count() or 1)

    def draw(self, path: Path, size: str) -> bytes | None:
        """A JPEG; None if there is no such size, or if the file cannot be read."""
        if size not in SIZES:
            return None
        key = path, size
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        with self._drawing:
            picture = _draw(path, size)
        if picture is not None:
            self._keep(key, picture)
        return picture

    def _keep(self, key: tuple[Path, str], picture: bytes) -> None:
        with self._lock:
            if key not in self._kept:
                self._kept[key] = picture
                self._n_bytes += len(picture)
            while self._n_bytes > _MAX_KEPT:
                self._n_bytes -= len(self._kept.popitem(last=False)[1])


def _draw(path: Path, size: str) -> bytes | None:
    side = SIZES[size]
    try:
        picture = read_picture(path, at_least=side)
    except PictureError:
        return None
    if size == "small":
        picture = require("PIL.Image", "report").fromarray(square_pixels(picture, side))
    else:
        picture.thumbnail((side, side))
    buffer = BytesIO()
    picture.save(buffer, "JPEG", quality=82)
    return buffer.getvalue()
