"""The judge of a training: what it sets aside, and which features it prefers."""

import numpy as np
import pytest
from samples import Blobs, objects
from sklearn.metrics import average_precision_score

from newfound.workflows.comparison import (
    Comparison,
    average_precisions,
    compare_features,
    set_aside,
)

N = len(Blobs.X)
NOISE = np.random.default_rng(5).normal(size=(N, 12)).astype(np.float32)


def labels_of(n_classes, n_each=10, n_free=20):
    named = np.repeat([f"class {i}" for i in range(n_classes)], n_each)
    return objects([*named.tolist(), *[None] * n_free])


@pytest.mark.parametrize(
    ("n_known", "n_hidden"), [(3, 1), (4, 1), (5, 2), (10, 2), (24, 5), (100, 10)]
)
def test_whole_classes_are_set_aside(n_known, n_hidden):
    y = labels_of(n_known)
    aside = set_aside(y, seed=3)
    hidden = set(y[aside.rows])
    assert len(hidden) == aside.n_classes == n_hidden
    assert not hidden & set(aside.y)
    expected = [None if name in hidden else name for name in y]
    assert aside.y == expected
    assert set_aside(y, seed=3).y == aside.y


def test_another_seed_sets_other_classes_aside():
    y = labels_of(24)
    assert len({tuple(set_aside(y, seed).rows) for seed in range(4)}) == 4


@pytest.mark.parametrize("whole_classes", [True, False])
def test_names_do_not_decide_what_is_set_aside(whole_classes):
    y = labels_of(12)
    names = np.random.default_rng(0).permutation(12)
    renamed = objects([name and f"class {names[int(name[6:])]}" for name in y])
    first, second = (set_aside(labels, 3, whole_classes=whole_classes) for labels in (y, renamed))
    np.testing.assert_array_equal(first.rows, second.rows)


@pytest.mark.parametrize(("n_known", "whole_classes"), [(1, True), (2, True), (9, False)])
def test_with_few_classes_some_labels_of_each_are_set_aside(n_known, whole_classes):
    y = labels_of(n_known)
    aside = set_aside(y, seed=0, whole_classes=whole_classes)
    assert aside.n_classes == 0
    for i in range(n_known):
        assert aside.rows[y == f"class {i}"].sum() == 2
        assert aside.y.count(f"class {i}") == 8


def compare(before, after, y=Blobs.y):
    y = objects(y)
    return compare_features(before, after, y, set_aside(y, 0))


def test_average_precision_is_that_of_scikit_learn():
    codes = np.where(Blobs.truth < 6, Blobs.truth, -1)
    rows = codes >= 3
    found = average_precisions(NOISE, codes, rows)
    unit = NOISE / np.linalg.norm(NOISE, axis=1, keepdims=True)
    unit = unit - unit.mean(axis=0)
    unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    for i, row in enumerate(np.flatnonzero(rows)):
        others = [other for other in range(N) if codes[other] >= 0 and other != row]
        is_same = [codes[other] == codes[row] for other in others]
        similarity = [float(unit[other] @ unit[row]) for other in others]
        expected = average_precision_score(is_same, similarity)
        assert found[i] == pytest.approx(expected, abs=1e-6)


def test_an_item_that_is_alone_in_its_class_cannot_be_judged():
    codes = np.array([0, 0, 1, 2, 2, -1])
    X = np.eye(6, 4) + 0.1
    found = average_precisions(X, codes, np.array([True, False, True, False, True, False]))
    assert np.isnan(found).tolist() == [False, True, False]


def test_a_training_that_ruins_the_features_is_not_kept():
    found = compare(Blobs.X, NOISE)
    assert found.before == 1
    assert found.after < 0.5
    assert not found.is_better
    assert found.as_json()["kept"] == "untrained"
    assert found.sentence.startswith("The result before training was kept, because")
    assert "whose labels the training did not see" in found.sentence


def test_a_training_that_helps_is_kept():
    found = compare(NOISE, Blobs.X)
    assert found.is_better
    assert found.as_json()["kept"] == "trained"
    assert found.sentence.startswith("The trained network was kept: of the 30 items of 2 known")


def test_features_that_are_not_better_are_not_kept():
    found = compare(Blobs.X, 2 * Blobs.X)
    assert found.before == found.after
    assert not found.is_better


def test_features_that_shine_on_the_seen_classes_only_are_not_kept():
    """What a judge on trained classes would miss: those are perfect, all others are mixed up."""
    aside = set_aside(objects(Blobs.y), 0)
    is_seen = np.isin([f"class {t}" for t in Blobs.truth], [name for name in aside.y if name])
    middling = Blobs.X + 3 * NOISE
    found = compare(middling, np.where(is_seen[:, None], 10 * Blobs.X, NOISE))
    assert found.after < found.before
    assert not found.is_better


def test_names_and_order_of_the_seen_classes_do_not_matter():
    codes, rows = np.where(Blobs.truth < 6, Blobs.truth, -1), Blobs.truth == 2
    other = np.where(codes >= 0, (codes * 5 + 3) % 6, -1)
    first, second = (average_precisions(NOISE, c, rows) for c in (codes, other))
    np.testing.assert_array_equal(first, second)


def test_two_known_classes_can_be_judged():
    y = [name if name in ("class 0", "class 1") else None for name in Blobs.y]
    found = compare(Blobs.X, NOISE, y)
    assert (found.n_classes, found.n_items) == (0, 6)
    assert not found.is_better


@pytest.mark.parametrize(("gain", "is_better"), [(-0.1, False), (0.05, False), (0.09, True)])
def test_a_difference_must_be_larger_than_chance(gain, is_better):
    assert Comparison(30, 2, 0.5, 0.5 + gain, 0.04).is_better == is_better


def test_nothing_to_judge_is_said():
    y = ["class 0", "class 1", *[None] * (N - 2)]
    found = compare(NOISE, Blobs.X, y)
    assert found.n_items == 0
    assert not found.is_better
    assert "too few labels" in found.sentence
