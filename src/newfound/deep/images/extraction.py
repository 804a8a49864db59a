"""Features of all images for the E-step, from the inputs of the trained part where they fit."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import torch
from lightning_fabric import Fabric
from torch import Tensor

from newfound.deep.engine import gather
from newfound.deep.images.feed import Feed
from newfound.deep.images.views import Views
from newfound.deep.network.backbone import Backbone
from newfound.errors import DiscoveryWarning

#: Images at a time; on a CPU few, so that memory stays small.
CHUNK = {"cuda": 512, "cpu": 64}
#: The cache takes no more than this share of the free memory.
SHARE_OF_MEMORY = 0.4


class Extractor:
    """Features of the middle view of every image.

    Only the last part of the backbone may have changed since the last time; then the inputs of
    that part are kept, and an E-step costs no more than the trained part.

    Parameters
    ----------
    backbone : Backbone
        The network, by reference: its present weights count.
    views : Views
        Whose middle view is taken.
    feed : Feed
        The images.
    fabric : Fabric
        The engine; each process works on its share.
    keep_inputs : bool
        Whether to keep the inputs of the trained part, if they fit.
    """

    def __init__(
        self, backbone: Backbone, views: Views, feed: Feed, fabric: Fabric, *, keep_inputs: bool
    ) -> None:
        self._backbone = backbone
        self._views = views
        self._feed = feed
        self._fabric = fabric
        self._mine = np.arange(fabric.global_rank, len(feed), fabric.world_size)
        self._chunk = CHUNK.get(fabric.device.type, 64)
        self._keep = keep_inputs and backbone.is_split
        self._kept: list[Tensor] = []

    @torch.no_grad()
    def features(self, tell: Callable[[int, int], object] | None = None) -> Tensor:
        """Features of all images, shape (n, d), float32, not normalised, on the device.

        Parameters
        ----------
        tell : callable, optional
            Called with the number of images done and to do.
        """
        was_training = self._backbone.training
        self._backbone.eval()
        parts = []
        done = 0
        with self._fabric.autocast():
            for inputs in self._inputs():
                parts.append(self._backbone.after(inputs.float()).float())
                done += len(inputs)
                if tell is not None:
                    tell(done, len(self._mine))
        self._backbone.train(was_training)
        return self._put_together(torch.cat(parts))

    def _inputs(self) -> Iterable[Tensor]:
        if self._kept:
            return self._kept
        return self._run_frozen_part()

    def _run_frozen_part(self) -> Iterator[Tensor]:
        """Inputs of the trained part, kept on the way if they fit."""
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

    def _fits(self, first: Tensor) -> bool:
        """Whether the inputs of all images fit into the device's free memory."""
        width = 2 if first.device.type == "cuda" else first.element_size()
        need = first[0].numel() * width * len(self._mine)
        room = SHARE_OF_MEMORY * free_memory(first.device)
        if need > room:
            warnings.warn(
                f"The inputs of the trained part take {need / 2**30:.1f} GiB, more than the "
                f"{room / 2**30:.1f} GiB to spare: features are computed from the images each "
                "time, which is slower.",
                DiscoveryWarning,
                stacklevel=2,
            )
        return need <= room

    def _put_together(self, mine: Tensor) -> Tensor:
        """The features of all processes in the order of the images."""
        world = self._fabric.world_size
        if world == 1:
            return mine
        n_rows = len(self._feed)
        short = -(-n_rows // world) - len(mine)  # processes gather equal numbers of rows
        padded = torch.cat([mine, mine.new_zeros(short, mine.shape[1])])
        gathered = gather(padded[None], self._fabric)  # (world, rows, d)
        return gathered.transpose(0, 1).flatten(0, 1)[:n_rows]


def free_memory(device: torch.device) -> int:
    """Bytes of memory that are free, on the device."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if "MemAvailable" in line)
    except (OSError, StopIteration):  # not Linux: half of what there is
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
