"""Features before training, image by image, and what k-means measures distances in."""

import numpy as np
import pytest
import torch

from newfound.bench.start import start_features, to_cluster
from newfound.deep.images.views import Views
from newfound.deep.network.backbone import load_backbone
from newfound.workflows.demo import DIGITS

torch.set_num_threads(1)


def features_slowly(pixels, settings):
    """One image at a time through the network of the seed, in evaluation mode."""
    torch.manual_seed(settings.run.seed)
    backbone = load_backbone(
        settings.network.model, settings.network.weights, image_size=settings.network.image_size
    )
    backbone.eval()
    views = Views(
        settings.network.image_size,
        backbone.mean,
        backbone.std,
        crop_min=settings.views.crop_min,
        crop_max=settings.views.crop_max,
    )
    with torch.no_grad():
        return np.stack(
            [backbone(views.centre(torch.from_numpy(row)[None]))[0].numpy() for row in pixels]
        )


@pytest.mark.parametrize("changes", [{}, {"seed": 3}, {"image_size": 16}, {"crop_max": 0.8}])
def test_features_are_those_of_the_middle_views(few_digits, changes):
    settings = DIGITS.with_changes(**changes)
    pixels = few_digits.pixels[:12]
    found = start_features(pixels, settings)
    np.testing.assert_allclose(found, features_slowly(pixels, settings), rtol=1e-4, atol=1e-5)
    assert np.ptp(np.linalg.norm(found, axis=1)) > 1e-3  # not normalised


def test_the_seed_decides_and_training_has_no_say(few_digits):
    pixels = few_digits.pixels[:12]
    first = start_features(pixels, DIGITS)
    torch.manual_seed(99)  # what was drawn before does not matter
    others = {"learning_rate": 0.5, "epochs": 3, "trainable": "last", "rotation": 0.0}
    np.testing.assert_array_equal(start_features(pixels, DIGITS.with_changes(**others)), first)
    assert not np.allclose(start_features(pixels, DIGITS.with_changes(seed=1)), first)


def rows_with_offset():
    return np.random.default_rng(0).normal(size=(30, 6)) * [9, 5, 3, 2, 1, 0.5] + 4


def test_without_pca_rows_are_at_unit_length():
    X = rows_with_offset()
    expected = np.stack([row / np.sqrt(sum(row**2)) for row in X])
    np.testing.assert_allclose(to_cluster(X, DIGITS.with_changes(pca="off")), expected)


@pytest.mark.parametrize("n_directions", [1, 3, 6, 128])
def test_with_pca_rows_are_on_the_principal_directions_at_unit_length(n_directions):
    X = rows_with_offset()
    found = to_cluster(X, DIGITS.with_changes(pca="all", n_directions=n_directions))
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    centred = unit - unit.mean(axis=0)
    _, vectors = np.linalg.eigh(np.cov(centred.T))
    expected = centred @ vectors[:, ::-1][:, : min(n_directions, 6)]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert found.shape == expected.shape
    # the signs of the directions are free
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-9)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-9)
