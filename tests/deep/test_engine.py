"""How a batch is shared out among processes and put together again."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from newfound.deep import engine
from newfound.deep.engine import gather, share_of, start_engine, whole_order
from newfound.deep.settings import RunSettings
from newfound.errors import InputError


def process(rank, world_size):
    """What these functions look at in a Fabric."""
    return SimpleNamespace(global_rank=rank, world_size=world_size)


@pytest.mark.parametrize("world_size", [1, 2, 4])
def test_shares_put_one_behind_the_other_are_the_whole(world_size):
    batch = np.random.default_rng(0).permutation(16)
    shares = [share_of(batch, process(rank, world_size)) for rank in range(world_size)]
    assert {len(share) for share in shares} == {16 // world_size}
    np.testing.assert_array_equal(np.sort(np.concatenate(shares)), np.arange(16))
    for rank in range(world_size):
        whole = whole_order(batch, process(rank, world_size))
        np.testing.assert_array_equal(whole, np.concatenate(shares))


def test_one_process_has_the_batch_as_it_is():
    batch = np.array([3, 1, 2])
    alone = process(0, 1)
    np.testing.assert_array_equal(share_of(batch, alone), batch)
    np.testing.assert_array_equal(whole_order(batch, alone), batch)
    part = torch.ones(2, 3, requires_grad=True)
    assert gather(part, alone, 1) is part


def test_every_process_has_labelled_and_unlabelled_rows():
    batch = np.arange(8)  # the labelled ones are first
    for rank in range(2):
        assert (share_of(batch, process(rank, 2)) < 4).sum() == 2


def test_one_process_by_default():
    fabric = start_engine(RunSettings(precision="32-true"), 128)
    assert (fabric.world_size, fabric.global_rank) == (1, 0)
    assert fabric.is_global_zero


def test_a_batch_that_does_not_divide_among_the_processes_is_refused(monkeypatch):
    three = SimpleNamespace(world_size=3, launch=lambda: None)
    monkeypatch.setattr(engine, "Fabric", lambda **_: three)
    with pytest.raises(InputError, match="batch of 128 images does not divide among 3 processes"):
        start_engine(RunSettings(), 128)
    assert start_engine(RunSettings(), 126) is three


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"devices": 10_000}, r"10000 processes were asked for \(devices\).*processor cores?\."),
        ({"num_nodes": 2}, "not started by torchrun. Start it on each machine"),
        ({"devices": 2}, "batch of 127 images does not divide among 2 processes"),
    ],
)
def test_what_cannot_work_is_refused_before_a_process_is_started(monkeypatch, changes, message):
    monkeypatch.setattr(engine, "Fabric", lambda **_: pytest.fail("started"))
    with pytest.raises(InputError, match=message):
        start_engine(RunSettings(device="cpu", **changes), 127)


def test_the_device_of_the_settings_is_taken(monkeypatch):
    asked = []
    one = SimpleNamespace(world_size=1, launch=lambda: None)
    monkeypatch.setattr(engine, "Fabric", lambda **options: asked.append(options) or one)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for device in ("cpu", "cuda", "cuda:1"):
        start_engine(RunSettings(device=device), 128)
    start_engine(RunSettings(), 128)
    wanted = [("cpu", 1), ("cuda", 1), ("cuda", [1]), ("auto", 1)]
    assert [(options["accelerator"], options["devices"]) for options in asked] == wanted
    precisions = [options["precision"] for options in asked]
    assert precisions == ["32-true", "bf16-mixed", "bf16-mixed", "bf16-mixed"]
    assert {options["strategy"] for options in asked} == {"auto"}
    with pytest.raises(InputError, match=r"device is 'cuda:2', .* It has: cpu, cuda"):
        start_engine(RunSettings(device="cuda:2"), 128)
