"""How well features tell the known classes apart."""

import numpy as np
import pytest

from newfound.mixture.label_accuracy import label_accuracy
from newfound.mixture.projection import Projection
from newfound.mixture.rows import row_keys


def data(n=400, d=12, n_classes=5, spread=1.0, share=0.5, seed=0):
    """Classes around random centres, with labels for some rows."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n)
    X = rng.normal(size=(n_classes, d))[truth] + spread * rng.normal(size=(n, d))
    return X, np.where(rng.random(n) < share, truth, -1)


def accuracy(X, y, **options):
    return label_accuracy(Projection(**options).fit(X, y), X, y)


def test_it_is_the_accuracy_of_the_nearest_mean_fold_by_fold():
    """Compared with a slow loop over rows."""
    X, y = data()
    projection = Projection(6).fit(X)
    V = projection.transform(X)
    labelled = np.flatnonzero(y >= 0)
    rows = labelled[np.argsort(row_keys(X[labelled]))]
    shares = []
    for label in range(5):
        own = [row for row in rows if y[row] == label]
        right = 0
        for rank, row in enumerate(own):
            means = []
            for other in range(5):
                members = [r for r in rows if y[r] == other]
                left = [r for k, r in enumerate(members) if k % 5 != rank % 5]
                means.append(V[left].mean(axis=0))
            right += np.argmin([np.sum((V[row] - mean) ** 2) for mean in means]) == label
        shares.append(right / len(own))
    assert label_accuracy(projection, X, y) == pytest.approx(np.mean(shares), abs=1e-12)


@pytest.mark.parametrize("n_classes", [2, 5, 20])
@pytest.mark.parametrize("whiten", [False, True])
def test_features_that_know_nothing_are_at_chance(n_classes, whiten):
    """Also if the projection is whitened: it must not have seen the labels that are hidden."""
    X, _ = data(n=1200, d=40, n_classes=2, spread=1.0)
    y = np.random.default_rng(1).integers(0, n_classes, len(X))
    y[::3] = -1
    got = accuracy(X, y, whiten=whiten)
    assert got == pytest.approx(1 / n_classes, abs=3 / np.sqrt(800))


def test_classes_that_are_far_apart_are_told_apart():
    X, y = data(spread=0.05)
    assert accuracy(X, y) == 1.0
    assert accuracy(X, y, whiten=True) == 1.0


def test_large_classes_do_not_count_more():
    """Chance is 1 / K whatever the sizes are: a large class that is right is not enough."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 8))
    y = np.where(np.arange(600) < 560, "large", "small")
    assert accuracy(X, y) == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("whiten", [False, True])
def test_neither_order_nor_names_matter(whiten):
    X, y = data(n=500, n_classes=12, spread=1.0)
    order = np.random.default_rng(2).permutation(len(X))
    names = np.array([*"lkjihgfedcba", ""])
    projection = Projection(whiten=whiten).fit(X, y)
    expected = label_accuracy(projection, X, y)
    assert 0.2 < expected < 0.95  # so that a change would be seen
    assert label_accuracy(projection, X[order], y[order]) == expected
    assert label_accuracy(projection, X, names[y]) == expected


def test_too_few_labels_say_nothing():
    X, _ = data(n=30)
    y = np.full(30, -1)
    y[:3] = [0, 0, 1]
    assert accuracy(X, y) is None  # class 1 cannot be left out
    y[3] = 1
    assert accuracy(X, y) is not None
    assert accuracy(X, np.where(y == 0, 0, -1)) is None


def test_a_class_with_one_label_is_a_candidate_and_not_scored():
    y = np.array([0] * 5 + [1] * 5 + [2])
    X = np.eye(4)[y] + 1e-3 * np.arange(44).reshape(11, 4)
    assert accuracy(X, y) == 1.0
    X[0] = X[10] + 1e-4  # nearer to the only row of class 2
    assert accuracy(X, y) == pytest.approx(0.9)


def test_many_rows_are_sampled(monkeypatch):
    X, y = data(n=2000, spread=1.2)
    whole = accuracy(X, y)
    monkeypatch.setattr("newfound.mixture.label_accuracy._MAX_ROWS", 300)
    assert accuracy(X, y) != whole
    assert accuracy(X, y) == pytest.approx(whole, abs=0.1)
