"""The mean of the weights over the steps: where it is used, and where it is not."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from trainer_runs import Interrupted, StopAt, averaged, last_step, run, small

from newfound.deep import estep
from newfound.deep.checkpoint import BEST, LAST, load_checkpoint

# few pictures and few epochs: K is not what these tests are about
pytestmark = pytest.mark.filterwarnings("ignore:The count suggests")


def features_with(trained, digits, weights):
    """Features of the pictures with other weights in the network."""
    network = deepcopy(trained.network)
    network.load_state_dict(weights, strict=False)
    return replace(trained, network=network).encoder.features(digits.pixels)


def test_a_checkpoint_to_go_on_from_has_the_mean_of_each_weight(undisturbed):
    _, folder, _ = undisturbed
    tensors, _ = load_checkpoint(folder / LAST)
    weights = {name for name in tensors if name.startswith("network.")}
    floats = {name for name in weights if tensors[name].is_floating_point()}
    means = {name for name in tensors if name.startswith("average.")}
    assert means == {f"average.{name}" for name in floats}
    assert weights - floats  # numbers of batches
    best, _ = load_checkpoint(folder / BEST)  # is the mean
    assert not [name for name in best if name.startswith("average.")]


@pytest.mark.parametrize("model", ["test_resnet", "test_vit"])
def test_the_features_of_the_result_are_those_of_the_averaged_weights(digits, tmp_path, model):
    size = {"test_resnet": 8, "test_vit": 16}[model]
    settings = small(model=model, image_size=size, selection="last", weight_average=0.8)
    trained = run(digits, tmp_path, settings)
    means = averaged(tmp_path)
    for name, value in trained.network.state_dict().items():
        assert torch.equal(value, means[name]), name
    again = features_with(trained, digits, means)
    np.testing.assert_allclose(trained.features, again, rtol=1e-4, atol=1e-5)
    others = features_with(trained, digits, last_step(tmp_path))
    assert np.abs(trained.features - others).max() > 1e-2


def test_the_e_step_sees_the_features_of_the_averaged_weights(digits, tmp_path, monkeypatch):
    settings = small(selection="last", weight_average=0.8)
    with pytest.raises(Interrupted):
        run(digits, tmp_path, settings, listener=StopAt("epoch", epoch=0))
    means, others = averaged(tmp_path), last_step(tmp_path)
    seen = []

    def watch(extractor, *progress):
        seen.append(original(extractor, *progress))
        return seen[-1]

    original = estep.Extractor.features
    monkeypatch.setattr(estep.Extractor, "features", watch)
    trained = run(digits, tmp_path, settings)
    expected = features_with(trained, digits, means)
    np.testing.assert_allclose(seen[0].numpy(), expected, rtol=1e-4, atol=1e-5)
    assert np.abs(expected - features_with(trained, digits, others)).max() > 1e-2


def test_training_goes_on_from_the_weights_of_the_last_step(digits, tmp_path):
    """With no prototypes in the loss, what the E-steps see makes no difference to a weight."""
    for decay in (0.0, 0.8):
        settings = small(prototype_weight=0.0, selection="last", weight_average=decay)
        run(digits, tmp_path / str(decay), settings)
    (tensors, plain), (others, other_plain) = (
        load_checkpoint(tmp_path / str(decay) / LAST) for decay in (0.0, 0.8)
    )
    names = [name for name in tensors if name.startswith(("network.", "momentum."))]
    assert not [name for name in tensors if name.startswith("average.")]
    for name in names:
        assert torch.equal(tensors[name], others[name]), name
    losses = [[record["loss"] for record in each["history"]] for each in (plain, other_plain)]
    assert losses[0] == losses[1]
