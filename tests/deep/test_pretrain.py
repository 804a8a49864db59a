"""Learning from the pictures alone."""

import math

import numpy as np
import pytest
import torch

from newfound.deep.checkpoint import BEST, LAST, load_checkpoint
from newfound.deep.method import Contrast
from newfound.deep.pretrain import pretrain
from newfound.deep.settings import Settings
from newfound.deep.trainer import train
from newfound.errors import InputError


def small(**changes):
    values = {
        "model": "test_resnet",
        "image_size": 8,
        "crop_min": 0.7,
        "color_jitter": 0.0,
        "flip": False,
        "epochs": 8,
        "n_labelled_per_batch": 16,
        "n_unlabelled_per_batch": 16,
        "learning_rate": 0.05,
    }
    return Settings.pretraining(**{**values, **changes})


@pytest.fixture(scope="module")
def pretrained(digits, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pretrained")
    return pretrain(digits.pixels, small(), folder), folder


def losses(trained):
    return [record.loss for record in trained.history]


def test_the_loss_falls(pretrained):
    values = losses(pretrained[0])
    assert len(values) == 8
    # 32 pictures in a batch, of which one is the other view: guessing has log(63)
    assert values[0] < math.log(63) + 0.5
    assert np.mean(values[-2:]) < np.mean(values[:2]) - 0.3


def test_nothing_is_clustered(digits, pretrained):
    trained, folder = pretrained
    assert trained.mixture is None
    assert trained.rehearsal is None
    assert trained.features.shape == (len(digits.pixels), 96)
    assert np.isfinite(trained.features).all()
    for record in trained.history:
        assert (record.n_components, record.n_novel, record.accuracy) == (None, None, None)
    assert sorted(path.name for path in folder.iterdir()) == ["epochs.jsonl", LAST]
    assert not (folder / BEST).exists()


def test_the_last_weights_are_kept(pretrained):
    trained, folder = pretrained
    assert trained.selected_epoch == 8
    tensors, _ = load_checkpoint(folder / LAST)
    for name, value in trained.network.named_parameters():
        assert torch.equal(tensors[f"network.{name}"], value), name


def test_it_is_contrast_among_pictures_of_which_none_has_a_label(digits, tmp_path):
    settings = small(epochs=1)
    alone = pretrain(digits.pixels, settings, tmp_path / "alone")
    runs = {
        name: train(digits.pixels, y, settings, tmp_path / name, method=Contrast(settings))
        for name, y in {"none": np.full(len(digits.y), -1), "some": digits.y}.items()
    }
    assert losses(alone) == losses(runs["none"])
    assert losses(alone) != losses(runs["some"])  # labels decide on the batches
    data = [load_checkpoint(tmp_path / name / LAST)[1]["data"] for name in ("alone", "none")]
    assert data[0] == data[1]


def test_pretraining_goes_on_where_it_was(digits, pretrained):
    trained, folder = pretrained
    before = (folder / LAST).read_bytes()
    again = pretrain(digits.pixels, small(), folder)
    assert losses(again) == losses(trained)
    np.testing.assert_array_equal(again.features, trained.features)
    assert (folder / LAST).read_bytes() == before


def test_the_folder_of_a_pretraining_is_not_taken_for_another_training(digits, pretrained):
    with pytest.raises(InputError, match="method was 'Contrast' and is 'PrototypicalContrast'"):
        train(digits.pixels, digits.y, small(), pretrained[1])


def test_other_pictures_are_refused(digits, tmp_path):
    settings = small(epochs=1)
    pretrain(digits.pixels, settings, tmp_path, fingerprint="some")
    with pytest.raises(InputError, match="images was 'some' and is 'others'"):
        pretrain(digits.pixels, settings, tmp_path, fingerprint="others")
