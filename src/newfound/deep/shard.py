"""Rows that several processes share out: each holds the features of its own part.

Whatever the E-step needs of all rows is a sum over rows, which is added up over the processes, or
one number for each row. With one process nothing is sent, and every method returns what it got.
"""

from __future__ import annotations

import itertools
from typing import Any, TypeVar

import numpy.typing as npt
import torch
from lightning_fabric import Fabric
from torch import Tensor

from newfound.arrays import Floats
from newfound.errors import InputError
from newfound.words import plural

Values = TypeVar("Values", Tensor, npt.NDArray[Any])
Anything = TypeVar("Anything")


class Shard:
    """The rows of this process, and what all processes make of theirs together.

    Each method with the word "all" must be called in all processes.

    Parameters
    ----------
    n_rows : int, default=0
        Number of rows of all processes.
    fabric : Fabric, optional
        The engine; without one, there is a single process.

    Attributes
    ----------
    own : slice
        The rows of this process among all rows.
    """

    def __init__(self, n_rows: int = 0, fabric: Fabric | None = None) -> None:
        self._fabric = fabric if fabric is not None and fabric.world_size > 1 else None
        self.own = slice(None)
        if self._fabric is None:
            return
        world = self._fabric.world_size
        if n_rows < world:
            raise InputError(
                f"{plural(n_rows, 'image')} cannot be shared out among {world} processes. Start "
                f"{n_rows} processes at most."
            )
        edges = [rank * n_rows // world for rank in range(world + 1)]
        self._parts = [slice(*part) for part in itertools.pairwise(edges)]
        self.own = self._parts[self._fabric.global_rank]

    def total(self, part: Values) -> Values:
        """Sum over all processes, added up in float64."""
        if self._fabric is None:
            return part
        # a copy, because the sum is written in place
        summed = self._on_device(part).to(torch.float64, copy=True)
        torch.distributed.all_reduce(summed)
        return _like(summed, part)

    def count(self, n: int) -> int:
        """Sum of a number over all processes."""
        return int(self.total(torch.tensor(n)))

    def largest(self, n: int) -> int:
        """Largest of the numbers of all processes."""
        if self._fabric is None:
            return n
        number = torch.tensor(n, device=self._fabric.device)
        torch.distributed.all_reduce(number, torch.distributed.ReduceOp.MAX)
        return int(number)

    def mean(self, rows: Tensor) -> Tensor:
        """Mean over the rows of all processes."""
        if self._fabric is None:
            return rows.mean(dim=0)
        return self.total(rows.sum(dim=0)) / self.count(len(rows))

    def same(self, value: Anything) -> Anything:
        """What the first of all processes has."""
        if self._fabric is None:
            return value
        if not isinstance(value, Tensor):
            return self._fabric.broadcast(value)
        torch.distributed.broadcast(value, 0)  # stays on the device
        return value

    def whole(self, part: Values) -> Values:
        """Rows of all processes, in each of them."""
        if self._fabric is None:
            return part
        padded = self._padded(part)
        parts = [torch.empty_like(padded) for _ in self._parts]
        torch.distributed.all_gather(parts, padded)
        return _like(self._joined(parts), part)

    def collect(self, part: Values) -> Values | None:
        """Rows of all processes, in the first of them; None in the others."""
        if self._fabric is None:
            return part
        padded = self._padded(part)
        if not self._fabric.is_global_zero:
            torch.distributed.gather(padded)
            return None
        parts = [torch.empty_like(padded) for _ in self._parts]
        torch.distributed.gather(padded, parts)
        return _like(self._joined(parts), part)

    def deal(self, rows: Floats | None) -> Floats:
        """Own rows in each process, of all rows that the first one has."""
        own: list[Any] = [rows]
        if self._fabric is not None:
            parts = None if rows is None else [rows[part] for part in self._parts]
            torch.distributed.scatter_object_list(own, parts)
        dealt: Floats = own[0]
        return dealt

    def _on_device(self, part: Values) -> Tensor:
        assert self._fabric is not None
        return torch.as_tensor(part, device=self._fabric.device)

    def _padded(self, part: Values) -> Tensor:
        """Own rows, and a row of zeros if other processes have one more: all send equal numbers."""
        rows = self._on_device(part)
        most = max(other.stop - other.start for other in self._parts)
        return torch.cat([rows, rows.new_zeros(most - len(rows), *rows.shape[1:])])

    def _joined(self, parts: list[Tensor]) -> Tensor:
        sizes = [part.stop - part.start for part in self._parts]
        return torch.cat([rows[:size] for rows, size in zip(parts, sizes, strict=True)])


#: All rows in one process.
ALONE = Shard()


def _like(result: Tensor, part: Values) -> Values:
    """The result in the type and place of the part."""
    if isinstance(part, Tensor):
        return result.to(part)
    return result.cpu().numpy().astype(part.dtype, copy=False)
