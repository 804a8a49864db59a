"""A pass over the rows: one function, called for each group, here or on a worker."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from newfound.scale.blocks import Block, Features, Labels, Statistics, read_blocks

#: From the blocks of a group, and arguments that are the same for all groups.
PassFunction = Callable[..., Statistics]


class Call(NamedTuple):
    """A pass to be made."""

    function: PassFunction  # importable, because it may be called in another process
    arguments: tuple[Any, ...]  # arrays, numbers and None
    classes: npt.NDArray[Any]  # the known classes
    block_rows: int  # rows of a block

    def digest(self) -> str:
        """Text that differs if the function or an argument differs."""
        digest = hashlib.sha256(self.function.__qualname__.encode())
        for argument in (self.classes, self.block_rows, *self.arguments):
            array = np.asarray("None" if argument is None else argument)
            digest.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
        return digest.hexdigest()


def run_group(
    call: Call, features: Features, labels: Labels, bounds: tuple[int, int]
) -> Statistics:
    """Call the function of a pass with the blocks of one group."""
    if call.function is count_labels:  # the one pass that does not read features
        return count_labels(labels, bounds)
    blocks = read_blocks(features, labels, bounds, call.classes, call.block_rows)
    return call.function(blocks, *call.arguments)


def count_labels(labels: Labels, bounds: tuple[int, int]) -> Statistics:
    """Known classes in one group of rows, and the number of labels of each."""
    return labels.counted(*bounds)


def read_group(blocks: Iterator[Block]) -> Statistics:
    """Features and codes of one group of rows."""
    read = list(blocks)
    return np.concatenate([b.X for b in read]), np.concatenate([b.codes for b in read])
