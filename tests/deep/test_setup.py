"""How the network is brought to the device."""

import numpy as np
import pytest
import torch

from newfound.deep.engine import start_engine
from newfound.deep.method import PrototypicalContrast
from newfound.deep.settings import Settings
from newfound.deep.setup import set_up

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 3, 64, 64), dtype=np.uint8)


@pytest.fixture
def made():
    def make(**values):
        settings = Settings(
            model="test_efficientnet",
            weights="random",
            trainable="last",
            image_size=64,
            device="cpu",
            **values,
        )
        fabric = start_engine(settings.run, 4)
        return set_up(PIXELS, settings, PrototypicalContrast(settings), fabric)

    return make


def test_a_compiled_network_is_compiled_past_its_frozen_part_too(made, monkeypatch):
    called = []

    def compiled(function, **options):
        def run(*arguments, **named):
            called.append(named)
            return function(*arguments, **named)

        return run

    monkeypatch.setattr(torch, "compile", compiled)
    setup = made(compile=True)
    images = torch.randn(4, 3, 64, 64)
    whole, _ = setup.wrapped(images)
    inputs = setup.network.backbone.before(images)
    rest, _ = setup.wrapped(inputs, past_frozen_part=True)
    assert [named.get("past_frozen_part", False) for named in called] == [False, True]
    assert whole.shape == rest.shape == (4, setup.network.backbone.n_features)
    called.clear()
    made().wrapped(images)
    assert not called


@pytest.mark.parametrize("precision", ["bf16-mixed", "32-true"])
def test_convolutions_in_bf16_have_their_channels_last(made, precision):
    network = made(precision=precision).network
    weights = [p for p in network.parameters() if p.ndim == 4 and p.shape[1] > 1 < p.shape[2]]
    assert weights
    last = [p.is_contiguous(memory_format=torch.channels_last) for p in weights]
    assert last == [precision == "bf16-mixed"] * len(last)
