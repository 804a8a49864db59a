"""The judge of a training: what it sets aside, and which features it prefers."""

import numpy as np
import pytest
from samples import Blobs, objects

from newfound.deep.settings import Settings
from newfound.workflows.comparison import Comparison, compare_features, set_aside

N = len(Blobs.X)
NOISE = np.random.default_rng(5).normal(size=(N, 12)).astype(np.float32)
SETTINGS = Settings(weights="offline")


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


@pytest.mark.parametrize(("n_known", "whole_classes"), [(1, True), (2, True), (9, False)])
def test_with_few_classes_some_labels_of_each_are_set_aside(n_known, whole_classes):
    y = labels_of(n_known)
    aside = set_aside(y, seed=0, whole_classes=whole_classes)
    assert aside.n_classes == 0
    for i in range(n_known):
        assert aside.rows[y == f"class {i}"].sum() == 2
        assert aside.y.count(f"class {i}") == 8


def compare(before, after, y=Blobs.y, **changes):
    y = objects(y)
    return compare_features(before, after, y, set_aside(y, 0), SETTINGS.with_changes(**changes))


def test_a_training_that_ruins_the_features_is_not_kept():
    found = compare(Blobs.X, NOISE)
    assert found.n_right_before == found.n_rows > found.n_right_after
    assert not found.is_better
    assert found.as_json()["kept"] == "untrained"
    assert found.sentence.startswith("The result before training was kept, because")
    assert "whose labels the training did not see" in found.sentence


def test_a_training_that_helps_is_kept():
    found = compare(NOISE, Blobs.X)
    assert found.n_right_after > found.n_right_before
    assert found.is_better
    assert found.as_json()["kept"] == "trained"
    assert "against" in found.sentence


def test_features_that_are_not_better_are_not_kept():
    found = compare(Blobs.X, 2 * Blobs.X)
    assert found.n_right_before == found.n_right_after
    assert not found.is_better


def test_labels_that_the_training_saw_are_not_judged():
    """Of 6 known classes 2 are hidden; of the 60 labels of the others, 1 in 10 is held out."""
    assert compare(Blobs.X, Blobs.X).n_rows == 30 + 4 * 2
    assert compare(Blobs.X, Blobs.X, selection="last").n_rows == 30


def test_features_that_shine_on_the_seen_classes_only_are_not_kept():
    """What a judge on trained classes would miss: those are perfect, all others are mixed up."""
    y = objects(Blobs.y)
    aside = set_aside(y, 0)
    is_seen = np.isin([f"class {t}" for t in Blobs.truth], [name for name in aside.y if name])
    after = np.where(is_seen[:, None], 10 * Blobs.X, NOISE)
    found = compare(Blobs.X, after)
    assert found.n_right_after < found.n_right_before
    assert not found.is_better


def test_two_known_classes_can_be_judged():
    y = [name if name in ("class 0", "class 1") else None for name in Blobs.y]
    found = compare(Blobs.X, NOISE, y)
    assert found.n_classes == 0
    assert found.n_rows > 0
    assert not found.is_better


@pytest.mark.parametrize(
    ("won", "lost", "is_better"), [(0, 0, False), (1, 0, False), (2, 0, True), (30, 24, False)]
)
def test_a_difference_must_be_larger_than_chance(monkeypatch, won, lost, is_better):
    right = iter([np.arange(60) < lost, (np.arange(60) >= lost) & (np.arange(60) < lost + won)])
    monkeypatch.setattr("newfound.workflows.comparison._right_rows", lambda *given: next(right))
    assert compare(Blobs.X, Blobs.X).is_better == is_better


def test_nothing_to_judge_is_said():
    assert "too few labels" in Comparison(0, 0, 0, 0, is_better=False).sentence
