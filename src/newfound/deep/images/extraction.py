"""From images to features: the one way through a backbone in evaluation mode.

`features_of` runs chunks of inputs; `Extractor` does so for all images of a training, where the
outputs of the frozen part can be kept, and `features_of_pictures` for a stack of pictures.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from lightning_fabric import Fabric
from torch import Tensor

from newfound.deep.images.feed import Feed
from newfound.deep.images.views import Views
from newfound.deep.network.backbone import Backbone
from newfound.deep.shard import Shard
from newfound.errors import DiscoveryWarning

#: Images at a time on a GPU, and at most elsewhere.
_ON_GPU, _ELSEWHERE = 512, 64
#: Pixels at a time on a CPU: what a layer computes from more of them does not stay in its cache.
_PIXELS_ON_CPU = 8 * 224**2
#: Kept inputs take no more than this share of the free memory.
SHARE_OF_MEMORY = 0.4


def chunk_size(device: torch.device, image_size: int) -> int:
    """How many images a network works on at a time, when nothing is trained.

    Parameters
    ----------
    device : device
        Where it computes.
    image_size : int
        Side of the square images.
    """
    if device.type == "cuda":
        return _ON_GPU
    if device.type == "cpu":
        return max(1, min(_ELSEWHERE, _PIXELS_ON_CPU // image_size**2))
    return _ELSEWHERE


def features_of(
    backbone: Backbone, images: Iterable[Tensor], *, past_frozen_part: bool = False
) -> Tensor:
    """Features of chunk after chunk, in evaluation mode and without gradients.

    Parameters
    ----------
    backbone : Backbone
        The network; afterwards it is in the mode that it was in before.
    images : iterable of Tensor of shape (m, 3, s, s)
        Normalised images. A chunk is asked for when the one before it is done.
    past_frozen_part : bool, default=False
        Whether the chunks are what `Backbone.before` returned instead.

    Returns
    -------
    Tensor of shape (n, d), float32
        Features, not normalised, on the device.
    """
    was_training = backbone.training
    backbone.eval()
    try:
        with torch.no_grad():
            run = backbone.after if past_frozen_part else backbone
            parts = [run(chunk.float()).float() for chunk in images]
    finally:
        backbone.train(was_training)
    return torch.cat(parts)


def features_of_pictures(
    backbone: Backbone, pictures: npt.NDArray[np.uint8]
) -> npt.NDArray[np.float32]:
    """Features of a stack of pictures that have the network's own size.

    Parameters
    ----------
    backbone : Backbone
        The network.
    pictures : ndarray of shape (n, s, s, 3), uint8
        Pictures, RGB.

    Returns
    -------
    ndarray of shape (n, d), float32
        Features, not normalised.
    """
    device = next(backbone.parameters()).device
    # writable: torch warns about arrays that it could write to but must not
    pixels = torch.from_numpy(np.require(pictures, requirements=["C", "W"])).to(device)
    chunks = torch.split(pixels.permute(0, 3, 1, 2), chunk_size(device, pictures.shape[1]))
    mean, std = (torch.tensor(v).to(device)[:, None, None] for v in (backbone.mean, backbone.std))
    images = ((chunk.float() / 255 - mean) / std for chunk in chunks)
    return features_of(backbone, images).cpu().numpy()


class Extractor:
    """Features of the middle view of images, again and again while the network is trained.

    Between two calls only the trained part of the backbone can have changed. The outputs of the
    frozen part can therefore be kept, and an E-step then costs no more than the trained part.

    Parameters
    ----------
    backbone : Backbone
        The network, by reference: its present weights are used.
    views : Views
        Whose middle view is taken.
    feed : Feed
        The images.
    fabric : Fabric, optional
        The engine, if there is one: its number format is used, and each process works on its
        own images, those of its `Shard`.
    keep_inputs : bool, default=False
        Whether to keep the inputs of the trained part, if they fit into memory.
    chunk : int, optional
        Images at a time; by default as many as suit the device.
    """

    def __init__(
        self,
        backbone: Backbone,
        views: Views,
        feed: Feed,
        fabric: Fabric | None = None,
        *,
        keep_inputs: bool = False,
        chunk: int | None = None,
    ) -> None:
        self._backbone = backbone
        self._views = views
        self._feed = feed
        self._fabric = fabric
        self._mine = np.arange(len(feed))[Shard(len(feed), fabric).own]
        device = next(backbone.parameters()).device if fabric is None else fabric.device
        self._chunk = chunk or chunk_size(device, backbone.image_size)
        self._keep = keep_inputs and backbone.is_split
        self._kept: list[Tensor] = []

    def features(self, progress: Callable[[int, int], object] | None = None) -> Tensor:
        """Features of own images, shape (m, d), float32, not normalised, on the device.

        With one process these are all images.

        Parameters
        ----------
        progress : callable, optional
            Called with the number of images that are done, and of all.
        """
        inputs = self._inputs()
        if progress is not None:
            inputs = self._reporting(inputs, progress)
        with nullcontext() if self._fabric is None else self._fabric.autocast():
            return features_of(self._backbone, inputs, past_frozen_part=True)

    def _reporting(
        self, inputs: Iterable[Tensor], progress: Callable[[int, int], object]
    ) -> Iterator[Tensor]:
        """The same inputs; progress is reported when the next ones are asked for."""
        done = 0
        for chunk in inputs:
            yield chunk
            done += len(chunk)
            progress(done, len(self._mine))

    def _inputs(self) -> Iterable[Tensor]:
        if self._kept:
            return self._kept
        return self._run_frozen_part()

    def _run_frozen_part(self) -> Iterator[Tensor]:
        """Inputs of the trained part; they are kept if they fit into memory."""
        chunks = [
            self._mine[start : start + self._chunk]
            for start in range(0, len(self._mine), self._chunk)
        ]
        kept: list[Tensor] = []
        for images in self._feed.batches(chunks):
            inputs = self._backbone.before(self._views.centre(images))
            if self._keep and not kept:
                self._keep = self._fits(inputs)
            if self._keep:
                inputs = inputs.half() if inputs.device.type == "cuda" else inputs
                kept.append(inputs)
            yield inputs
        self._kept = kept
        if torch.cuda.is_available():
            torch.cuda.empty_cache()  # the frozen part needs far more memory than what follows

    def _fits(self, first: Tensor) -> bool:
        """Whether the inputs of all images fit into the device's free memory."""
        width = 2 if first.device.type == "cuda" else first.element_size()
        need = first[0].numel() * width * len(self._mine)
        room = SHARE_OF_MEMORY * free_memory(first.device)
        if need > room:
            warnings.warn(
                f"The inputs of the trained part need {need / 2**30:.1f} GiB, more than the "
                f"{room / 2**30:.1f} GiB to spare. Features are computed from the images each "
                "time, which is slower.",
                DiscoveryWarning,
                stacklevel=2,
            )
        return need <= room


def free_memory(device: torch.device) -> int:
    """Bytes of memory that are free, on the device."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if "MemAvailable" in line)
    except (OSError, StopIteration):  # not Linux: half of what there is
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
