"""Pictures: from a file to upright RGB pixels. No other module opens a picture.

Pictures come in more forms than a network can read: rotated by an EXIF tag, with 16 bits, in CMYK,
with a palette, transparent, animated, truncated. Here each becomes an RGB picture of 8 bits, or a
`PictureError` that gives the reason, so that one bad file is listed and never stops a run.
"""

from __future__ import annotations

import functools
import stat
import threading
import warnings
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from newfound.errors import InputError, require
from newfound.limits import MAX_MEGAPIXELS, max_pixels

if TYPE_CHECKING:
    from PIL import Image

#: Endings of the files that count as pictures when a folder is listed.
PICTURE_SUFFIXES = frozenset(
    [
        *[".avif", ".bmp", ".gif", ".jfif", ".jp2", ".jpe", ".jpeg", ".jpg", ".pbm", ".pgm"],
        *[".png", ".pnm", ".ppm", ".tga", ".tif", ".tiff", ".webp"],
    ]
)

#: Endings of photos as iPhones and some cameras store them; reading them takes the extra ``heic``.
HEIC_SUFFIXES = frozenset([".heic", ".heif", ".hif"])
#: Endings of raw photos, as cameras store them on request; each maker has a format of its own.
RAW_SUFFIXES = frozenset(
    [
        *[".3fr", ".arw", ".cr2", ".cr3", ".crw", ".dng", ".erf", ".kdc", ".mrw", ".nef", ".nrw"],
        *[".orf", ".pef", ".raf", ".raw", ".rw2", ".sr2", ".srw", ".x3f"],
    ]
)
#: Why such a file is left out where the extra is not installed.
NO_HEIC = "a HEIC photo; to read it: pip install 'newfound[heic]'"

_ALPHA_MODES = frozenset(["RGBA", "RGBa", "LA", "PA", "P"])
_DEEP_MODES = frozenset(["I", "F", "I;16", "I;16L", "I;16B", "I;16N"])

#: Pillow opens these by starting Ghostscript, or by calling a reader of the operating system.
_FORMATS_WITH_PROGRAMS = frozenset(["EPS", "WMF"])
#: Boxes at the start of a HEIC file, in bytes 4 to 12.
_HEIC_BRANDS = tuple(b"ftyp" + brand for brand in (b"heic", b"heix", b"hevc", b"heim", b"mif1"))

#: How to turn a picture upright: EXIF orientation → name of Pillow's `Transpose`.
_UPRIGHT = {
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}
_EXIF_ORIENTATION = 0x0112


class PictureError(InputError):
    """A file that cannot be read as a picture.

    Parameters
    ----------
    path : Path
        The file.
    reason : str
        What is wrong with it, in a few words.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


def read_picture(path: Path, at_least: int | None = None) -> Image.Image:
    """Open a picture: upright, RGB, 8 bits, its first frame.

    Grey of 16 bits is scaled to 8 bits. Other deep pictures (32 bits, floating point) are scaled
    from their darkest to their brightest value. Transparent parts are shown on white.

    Parameters
    ----------
    path : Path
        The file. Its content decides what it is, not its name.
    at_least : int, optional
        The length of the shorter side that the caller needs, in pixels. A JPEG that is much
        larger is decoded at a half, a quarter or an eighth of its size, but never at less than
        twice this length. That saves most of the time and memory, and the difference is hardly
        visible.

    Returns
    -------
    PIL.Image.Image
        A picture in memory, with the file closed.

    Raises
    ------
    PictureError
        If the file is missing, empty, truncated, damaged, too large or not a picture.
    MissingExtraError
        If Pillow is not installed.
    """
    pillow = require("PIL.Image", "train")
    try:
        with _SILENCE:
            _check_file(path)
            # An open file, not its path: Pillow maps a path into memory, and then rotated TIFFs
            # come out scrambled.
            with (
                path.open("rb") as file,
                pillow.open(file, formats=_safe_formats(pillow)) as picture,
            ):
                if at_least is not None:
                    picture.draft(None, (2 * at_least, 2 * at_least))
                _check_size(path, picture)  # by the header: nothing is unpacked yet
                picture.load()  # rotates a TIFF; in older Pillows its size changes only here
                return _turn_upright(pillow, picture, _to_rgb(pillow, picture))
    except InputError:
        raise
    except Exception as error:  # decoders raise all kinds of errors on damaged files
        raise PictureError(path, _reason(pillow, path, error)) from error


def has_heic() -> bool:
    """Whether HEIC photos can be read here."""
    return _register_heic() is not None


@functools.cache
def _register_heic() -> ModuleType | None:
    """Teach Pillow to read HEIC, once; None if the extra is not installed, or is broken."""
    try:
        plugin = require("pillow_heif", "heic")
        plugin.register_heif_opener()  # loads its library, which may be missing
    except ImportError:
        return None
    return plugin


def square_pixels(picture: Image.Image, size: int) -> npt.NDArray[np.uint8]:
    """Scale the shorter side to `size` and crop the centre.

    Parameters
    ----------
    picture : PIL.Image.Image
        A picture as `read_picture` gives it.
    size : int
        Side of the square, in pixels.

    Returns
    -------
    ndarray of uint8, shape (size, size, 3)
        The pixels, unchanged where the picture has this size already.
    """
    pillow = require("PIL.Image", "train")
    width, height = picture.size
    side = min(width, height)
    left, top = (width - side) // 2, (height - side) // 2
    square = picture.resize(
        (size, size), pillow.Resampling.BICUBIC, box=(left, top, left + side, top + side)
    )
    return np.array(square if square.mode == "RGB" else square.convert("RGB"))


def upright_size(path: Path) -> tuple[int, int]:
    """Width and height of a picture as a person sees it.

    Parameters
    ----------
    path : Path
        The file. For most formats only its beginning is read.

    Returns
    -------
    tuple of int
        Width and height in pixels, after the rotation that `read_picture` applies.

    Raises
    ------
    PictureError
        If the file cannot be read as a picture.
    """
    pillow = require("PIL.Image", "train")
    try:
        with (
            _SILENCE,
            path.open("rb") as file,
            pillow.open(file, formats=_safe_formats(pillow)) as picture,
        ):
            # Some versions of Pillow rotate a TIFF when it is opened, others when it is loaded.
            if picture.format == "TIFF":
                return read_picture(path).size
            width, height = picture.size
            is_turned = picture.getexif().get(_EXIF_ORIENTATION, 1) in (5, 6, 7, 8)
    except InputError:
        raise
    except Exception as error:  # decoders raise all kinds of errors on damaged files
        raise PictureError(path, _reason(pillow, path, error)) from error
    return (height, width) if is_turned else (width, height)


def _check_file(path: Path) -> None:
    """Refuse what no decoder is needed for, such as a pipe, which would be read for ever."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise PictureError(path, "is not a file")
    if status.st_size == 0:
        raise PictureError(path, "the file is empty")


def _check_size(path: Path, picture: Any) -> None:
    width, height = picture.size
    if width * height > max_pixels():
        raise PictureError(path, f"{_too_large()} ({width} x {height})")


def _too_large() -> str:
    return f"more than {max_pixels() / 1e6:g} million pixels; {MAX_MEGAPIXELS} sets the limit"


def _safe_formats(pillow: ModuleType) -> list[str]:
    """Every format that Pillow reads by itself, and HEIC if its plugin is installed."""
    pillow.init()
    _register_heic()
    return [name for name in pillow.OPEN if name not in _FORMATS_WITH_PROGRAMS]


def _to_rgb(pillow: ModuleType, picture: Any) -> Any:
    """Convert a picture of any mode to RGB of 8 bits."""
    if picture.mode in _DEEP_MODES:
        return pillow.fromarray(_eight_bits(np.asarray(picture))).convert("RGB")
    if picture.mode in _ALPHA_MODES or "transparency" in picture.info:
        canvas = pillow.new("RGBA", picture.size, "white")
        canvas.alpha_composite(picture.convert("RGBA"))
        return canvas.convert("RGB")
    return picture.convert("RGB")


def _eight_bits(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Scale deep grey to 0 … 255; Pillow's own conversion clips everything above 255.

    Grey of 16 bits has the scale 0 … 65535. Pillow gives it as "I;16" or, within 32 bits, as "I".
    Values without a known scale (floating point, negative, larger) are scaled from the lowest to
    the highest one.
    """
    if values.dtype.kind in "iu" and values.min() >= 0 and values.max() <= 65535:
        return ((values.astype(np.uint32) + 128) // 257).astype(np.uint8)
    known = np.isfinite(values)
    low, high = (values[known].min(), values[known].max()) if known.any() else (0, 0)
    shares = (np.where(known, values, low) - np.float64(low)) / max(float(high) - low, 1e-300)
    return np.round(255 * shares).astype(np.uint8)


def _turn_upright(pillow: ModuleType, opened: Any, rgb: Any) -> Any:
    """Apply the EXIF orientation, which some formats store after the pixels: load first."""
    try:
        turn = _UPRIGHT.get(opened.getexif().get(_EXIF_ORIENTATION, 1))
    except Exception:  # a damaged tag is not a reason to skip the picture
        turn = None
    return rgb if turn is None else rgb.transpose(pillow.Transpose[turn])


def _reason(pillow: ModuleType, path: Path, error: Exception) -> str:
    """What is wrong with a file, in a few words that help a person to mend it."""
    if isinstance(error, pillow.DecompressionBombError):
        return _too_large()
    if isinstance(error, pillow.UnidentifiedImageError):
        if not has_heic() and _is_heic(path):
            return NO_HEIC
        return "not a picture in a format that can be read"
    if isinstance(error, MemoryError):
        return "too large for the free memory"
    if isinstance(error, OSError) and error.errno is not None:
        return f"cannot be read: {error.strerror}"
    return f"truncated or damaged ({error})" if str(error) else "truncated or damaged"


def _is_heic(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(12)[4:] in _HEIC_BRANDS


class _Silence:
    """Turn warnings off, and set Pillow's limit, while at least one thread reads a picture.

    `warnings.catch_warnings` restores the filters that it found. If two threads left it in another
    order than they entered it, the warnings of the whole program would stay off. So the first
    thread to come enters it, and the last thread to go leaves it. Pillow refuses pictures of more
    than twice its limit as soon as it opens them; a JPEG may become smaller before it is unpacked.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers = 0
        self._caught = warnings.catch_warnings()
        self._limit: int | None = None

    def __enter__(self) -> None:
        with self._lock:
            if self._readers == 0:
                pillow, limit = require("PIL.Image", "train"), max_pixels()
                self._limit = pillow.MAX_IMAGE_PIXELS
                pillow.MAX_IMAGE_PIXELS = limit  # type: ignore[attr-defined]
                self._caught = warnings.catch_warnings()
                self._caught.__enter__()
                warnings.simplefilter("ignore")
            self._readers += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            self._readers -= 1
            if self._readers == 0:
                self._caught.__exit__(kind, error, traceback)
                pillow = require("PIL.Image", "train")
                pillow.MAX_IMAGE_PIXELS = self._limit  # type: ignore[attr-defined]


_SILENCE = _Silence()
