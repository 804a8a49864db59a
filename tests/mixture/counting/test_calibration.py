"""Confidences that say how often a category is right."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix

from newfound import SplitMergeMixture
from newfound.mixture.counting.calibration import (
    ConfidenceMap,
    calibrate_confidence,
    fit_map,
)


@pytest.fixture(scope="module")
def overlapping():
    """Twelve classes that overlap, eight of them known, half of whose rows are labelled."""
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(12), 40)
    X = (3.2 * np.eye(12)[truth] + rng.normal(size=(480, 12))).astype(np.float32)
    y = np.where((truth < 8) & (rng.random(480) < 0.5), truth, -1)
    return X, y, SplitMergeMixture(random_state=0).fit(X, y)


def test_the_map_keeps_order_and_its_neutral_element():
    p = np.linspace(0.01, 0.99, 50)
    np.testing.assert_allclose(ConfidenceMap(1.0, 0.0, 1.0)(p), p)
    mapped = ConfidenceMap(0.7, -0.5, 0.9)(np.array([0.0, 0.2, 0.9, 1.0]))
    assert (np.diff(mapped) > 0).all()
    assert mapped.max() <= 0.9


def test_the_map_is_found_again():
    """Rows drawn from a known map bring that map back."""
    rng = np.random.default_rng(1)
    true = ConfidenceMap(0.6, -0.4, 0.92)
    p = rng.uniform(0.05, 0.999, 40_000)
    is_right = rng.random(len(p)) < true(p)
    found = fit_map(p, is_right, np.ones(len(p)))
    grid = np.linspace(0.1, 0.99, 20)
    np.testing.assert_allclose(found(grid), true(grid), atol=0.02)


def test_weights_count():
    p = np.full(200, 0.8)
    is_right = np.arange(200) < 100  # the first half is right, the second wrong
    mostly_right = fit_map(p, is_right, np.where(is_right, 9.0, 1.0))(np.array([0.8]))
    mostly_wrong = fit_map(p, is_right, np.where(is_right, 1.0, 9.0))(np.array([0.8]))
    assert mostly_right > 0.8 > 0.3 > mostly_wrong


def two_halves_each(seed):
    """Features of twelve classes, each of two halves, and the class of each row."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(12), 40)
    halves = rng.choice([-0.6, 0.6], size=(480, 1)) * rng.normal(size=(12, 24))[truth]
    return 3.2 * np.eye(12, 24)[truth] + halves + rng.normal(size=(480, 24)), truth


def test_confidences_are_nearer_to_the_share_that_is_right():
    """Where a class is no single Gaussian, the mixture is too sure. On average, not in each set."""
    errors = []
    for seed in range(4):
        X, truth = two_halves_each(seed)
        y = np.where((truth < 8) & (np.random.default_rng(seed).random(480) < 0.5), truth, -1)
        mixture, free = SplitMergeMixture(random_state=0).fit(X, y), y == -1
        shared = contingency_matrix(mixture.labels_, truth)
        match = dict(zip(*linear_sum_assignment(-shared), strict=True))
        right = np.array([match.get(label, -1) for label in mixture.labels_]) == truth
        raw = mixture.predict_proba(X).max(axis=1)[free]
        mapped = calibrate_confidence(mixture, X, y, random_state=0)(raw)
        errors.append([raw.mean() - right[free].mean(), mapped.mean() - right[free].mean()])
    before, after = np.abs(errors).mean(axis=0)
    assert after < before


def test_neither_names_nor_the_order_of_rows_matter(overlapping):
    X, y, mixture = overlapping
    first = calibrate_confidence(mixture, X, y, n_draws=2, random_state=3)
    order = np.random.default_rng(2).permutation(len(X))
    names = np.array(["h", "c", "a", "f", "b", "g", "e", "d", ""], dtype=object)  # -1 is the last
    renamed = names[y]
    again = SplitMergeMixture(random_state=0).fit(X[order], renamed[order])
    second = calibrate_confidence(again, X[order], renamed[order], n_draws=2, random_state=3)
    assert first == second


def test_few_known_classes_say_nothing(overlapping):
    X, y, mixture = overlapping
    assert calibrate_confidence(mixture, X, np.where(y < 3, y, -1)) is None


def test_progress_is_reported(overlapping):
    X, y, mixture = overlapping
    seen = []
    calibrate_confidence(
        mixture, X, y, n_draws=2, random_state=0, progress=lambda *step: seen.append(step)
    )
    assert seen == [(1, 2), (2, 2)]
