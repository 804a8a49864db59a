"""A loss that breaks, few labels, and few rows."""

import math

import numpy as np
import pytest
import torch
from trainer_runs import N_STEPS, Usual, assert_same_outcome, run, small

from newfound.deep.checkpoint import LAST, load_checkpoint
from newfound.deep.trainer import train
from newfound.errors import InputError

# few pictures and few epochs: K is not what these tests are about
pytestmark = pytest.mark.filterwarnings("ignore:The count suggests")


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_no_number_stops_with_epoch_and_batch(
    digits, tmp_path, value, saving_within_epochs
):
    method = Usual(otherwise=lambda loss, _: loss * value, at=N_STEPS + 2)
    with pytest.raises(InputError, match=rf"became {value} in epoch 1, batch 2\b") as caught:
        run(digits, tmp_path, method=method)
    assert str(tmp_path / LAST) in str(caught.value)
    assert "learning_rate" in str(caught.value)
    tensors, plain = load_checkpoint(tmp_path / LAST)
    assert plain["epoch"] == 1
    assert all(torch.isfinite(value.float()).all() for value in tensors.values())


def test_a_loss_that_is_no_number_in_the_first_epoch(digits, tmp_path):
    method = Usual(otherwise=lambda loss, _: loss * math.nan, at=0)
    with pytest.raises(InputError, match=r"in epoch 0, batch 0\b.*none yet"):
        run(digits, tmp_path, method=method)


def test_weights_that_are_no_numbers_are_not_kept_as_a_checkpoint(digits, tmp_path):
    """The loss is finite, but its gradient is not, in the last batch of an epoch."""

    def without_gradient(loss, batch):
        return loss + (0 * batch.h).sqrt().sum()

    method = Usual(otherwise=without_gradient, at=2 * N_STEPS - 1)
    with pytest.raises(InputError, match=r"in epoch [12]\b"):
        run(digits, tmp_path, method=method)
    tensors, plain = load_checkpoint(tmp_path / LAST)
    assert plain["epoch"] == 1
    assert all(torch.isfinite(value.float()).all() for value in tensors.values())


# --- few labels, few rows


@pytest.mark.parametrize("pca", ["all", "batch"])
@pytest.mark.parametrize("paper", [False, True])
def test_a_single_unlabelled_row(digits, tmp_path, pca, paper):
    rows = np.flatnonzero(digits.truth < 5)[:40]
    y = digits.truth[rows].copy()
    y[7] = -1
    settings = small(pca=pca, epochs=1, acceptance="literal", moves_after_epoch=paper)
    trained = train(digits.pixels[rows], y, settings, tmp_path)
    np.testing.assert_array_equal(trained.mixture.labels_[y != -1], y[y != -1])


@pytest.mark.filterwarnings("ignore:Every known class has a single label")
def test_classes_of_a_single_labelled_row_are_trained_with_it(digits, tmp_path):
    y = np.full(len(digits.y), -1)
    for code in range(5):
        y[np.flatnonzero(digits.truth == code)[0]] = code
    trained = run(digits._replace(y=y), tmp_path)
    assert trained.mixture.n_known_ == 5
    assert trained.history[0].accuracy == 1  # none can be held out, so the known ones are asked


@pytest.mark.filterwarnings("ignore:No row is labelled")
@pytest.mark.parametrize("count_on", ["now", "start"])
def test_without_any_label(digits, tmp_path, count_on):
    settings = small(epochs=1, count_on=count_on)
    trained = run(digits._replace(y=np.full(len(digits.y), -1)), tmp_path, settings)
    assert trained.mixture.n_known_ == 0
    assert trained.history[0].accuracy is None


def test_with_every_row_labelled(digits, tmp_path):
    settings = small(epochs=1, selection="last")
    trained = run(digits._replace(y=digits.truth), tmp_path, settings)
    np.testing.assert_array_equal(trained.mixture.labels_, digits.truth)


def test_names_of_classes_are_kept(digits, undisturbed, tmp_path):
    names = np.array(["ant", "bee", "cat", "dog", "eel", ""])
    trained = run(digits._replace(y=names[digits.y]), tmp_path)
    assert_same_outcome(trained, undisturbed[0])
    assert list(trained.mixture.classes_) == ["ant", "bee", "cat", "dog", "eel"]


@pytest.mark.parametrize("n_rows", [0, 1])
def test_fewer_than_two_images_are_refused(digits, tmp_path, n_rows):
    with pytest.raises(InputError, match=rf"at least two images; there are {n_rows}\."):
        train(digits.pixels[:n_rows], digits.y[:n_rows], small(), tmp_path)


def test_labels_of_another_length_are_refused(digits, tmp_path):
    with pytest.raises(InputError, match="111"):
        train(digits.pixels, digits.y[:-1], small(), tmp_path)
