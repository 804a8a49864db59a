"""A network that is loaded from a run gives the features of the run."""

import numpy as np
import pytest
import torch
from samples import SMALL_TRAINING

from newfound.deep.checkpoint import BEST, LAST, load_checkpoint
from newfound.deep.settings import Settings
from newfound.deep.trained import load_trained
from newfound.deep.trainer import train

pytestmark = pytest.mark.filterwarnings("ignore:The count suggests")

SMALL = {**SMALL_TRAINING, "warmup_epochs": 0}


@pytest.mark.parametrize("selection", ["validation", "last"])
def test_the_features_are_those_of_the_run(digits, tmp_path, selection):
    settings = Settings(**SMALL, selection=selection)
    trained = train(digits.pixels, digits.y, settings, tmp_path)
    network = load_trained(settings, tmp_path / (BEST if selection == "validation" else LAST))
    features = network.features(digits.pixels)
    np.testing.assert_allclose(features, trained.features, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(features, trained.encoder.features(digits.pixels))


def test_the_weights_are_the_averaged_ones(digits, tmp_path):
    settings = Settings(**SMALL, selection="last", weight_average=0.8)
    train(digits.pixels, digits.y, settings, tmp_path)
    tensors, _ = load_checkpoint(tmp_path / LAST)
    backbone = load_trained(settings, tmp_path / LAST).backbone
    names = [name for name, _ in backbone.named_parameters()]
    assert names
    for name, value in backbone.named_parameters():
        assert torch.equal(value, tensors[f"average.network.backbone.{name}"]), name


def test_features_leave_the_mode_of_the_network_alone(digits, tmp_path):
    settings = Settings(**SMALL)
    train(digits.pixels, digits.y, settings, tmp_path)
    network = load_trained(settings, tmp_path / LAST)
    for mode in (True, False):
        network.backbone.train(mode)
        network.features(digits.pixels)
        assert network.backbone.training == mode
