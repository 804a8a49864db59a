"""Rows that processes share out. What they send is tested in `test_trainer_processes`."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from newfound.deep.shard import ALONE, Shard
from newfound.errors import InputError


def process(rank, world_size):
    """What a shard looks at in a Fabric before anything is sent."""
    return SimpleNamespace(global_rank=rank, world_size=world_size)


@pytest.mark.parametrize("world_size", [2, 3, 7])
def test_each_row_is_in_one_process_and_their_order_stays(world_size):
    parts = [np.arange(23)[Shard(23, process(rank, world_size)).own] for rank in range(world_size)]
    np.testing.assert_array_equal(np.concatenate(parts), np.arange(23))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("shard", [ALONE, Shard(5, process(0, 1))])
def test_one_process_has_everything_as_it_is(shard):
    rows = torch.arange(10.0).reshape(5, 2)
    assert rows[shard.own].shape == rows.shape
    for same in (shard.total, shard.whole, shard.collect, shard.same, shard.deal):
        assert same(rows) is rows
    assert (shard.count(5), shard.largest(5)) == (5, 5)
    assert torch.equal(shard.mean(rows), rows.mean(dim=0))


def test_fewer_images_than_processes_are_refused():
    with pytest.raises(InputError, match="2 images cannot be shared out among 3 processes"):
        Shard(2, process(0, 3))
