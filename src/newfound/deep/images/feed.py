"""Stored images on their way to the device: all at once if they fit, else batch by batch."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from newfound.arrays import ArrayLike, Ints
from newfound.deep.images.pixel_file import PixelFile

#: Images stay on the device if they need no more than this share of its free memory.
_SHARE_OF_MEMORY = 0.25


class Feed:
    """Rows of a uint8 array as tensors on a device.

    Parameters
    ----------
    pixels : ndarray of uint8, shape (n, 3, s, s)
        Stored images; may be a `PixelFile`.
    device : torch.device
        Device of the tensors.
    """

    def __init__(self, pixels: ArrayLike, device: torch.device) -> None:
        self._pixels = pixels
        self._device = device
        self._resident: Tensor | None = None
        if device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(device)
            if pixels.nbytes <= _SHARE_OF_MEMORY * free:
                with warnings.catch_warnings():
                    # decoded pictures are read-only, and nothing here writes to them
                    warnings.filterwarnings("ignore", "The given NumPy array is not writable")
                    self._resident = torch.from_numpy(np.ascontiguousarray(pixels)).to(device)

    def __len__(self) -> int:
        return len(self._pixels)

    def digest(self) -> str:
        """Identity of the images."""
        if isinstance(self._pixels, PixelFile):
            return self._pixels.digest()
        whole = hashlib.blake2b(str(self._pixels.shape).encode(), digest_size=16)
        whole.update(np.ascontiguousarray(self._pixels).data)
        return whole.hexdigest()

    def rows(self, indices: Ints) -> Tensor:
        """Images (len(indices), 3, s, s) on the device."""
        if self._resident is not None:
            return self._resident[torch.from_numpy(indices).to(self._device, non_blocking=True)]
        return self._to_device(self._read(indices))

    def batches(self, all_indices: Iterable[Ints]) -> Iterator[Tensor]:
        """Yield the images of each batch; the next batch is read while this one is used."""
        if self._resident is not None:
            yield from (self.rows(indices) for indices in all_indices)
            return
        with ThreadPoolExecutor(max_workers=1) as reader:
            waiting = None
            for indices in all_indices:
                coming = reader.submit(self._read, indices)
                if waiting is not None:
                    yield self._to_device(waiting.result())
                waiting = coming
            if waiting is not None:
                yield self._to_device(waiting.result())

    def _read(self, indices: Ints) -> Tensor:
        images = torch.from_numpy(np.ascontiguousarray(self._pixels[indices]))
        return images.pin_memory() if self._device.type == "cuda" else images

    def _to_device(self, images: Tensor) -> Tensor:
        return images.to(self._device, non_blocking=True)
