"""From features to a partition."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from newfound.deep import partition
from newfound.deep.partition import (
    Round,
    find_clusters,
    known_count,
    mixture_for,
)
from newfound.deep.settings import EStepSettings
from newfound.errors import InputError
from newfound.mixture.projection import unit_rows

WIDE = 9  # columns of the features


@pytest.fixture
def features(blobs):
    """Blobs in nine columns at unit length, as float32, as a network gives them."""
    rng = np.random.default_rng(1)
    turn = np.linalg.qr(rng.normal(size=(WIDE, WIDE)))[0][:4]
    Z = blobs.X @ turn + 0.1 * rng.normal(size=(200, WIDE)) + 1
    return unit_rows(Z.astype(np.float32))


def found(features, codes, labels=None, moves=True, seed=0, count=None, **settings):
    return find_clusters(
        features, codes, labels, EStepSettings(**settings), Round(moves, seed, count)
    )


@pytest.fixture
def mixtures(monkeypatch):
    """The mixtures that are made while a test runs."""
    made = []

    def watch(*given, **changes):
        made.append(original(*given, **changes))
        return made[-1]

    original = partition.mixture_for
    monkeypatch.setattr(partition, "mixture_for", watch)
    return made


def split_further(truth, n_components):
    """A partition of more components than there are classes, known ones first."""
    labels = truth.copy()
    for new in range(5, n_components):
        rows = np.flatnonzero(labels == 3 + new % 2)
        labels[rows[::2]] = new
    return labels


def test_five_classes_are_found(features, blobs):
    clusters = found(features, blobs.y, sizes="alike")  # three known classes say little
    assert (clusters.n_known, clusters.n_components) == (3, 5)
    np.testing.assert_array_equal(clusters.labels[blobs.truth < 3], blobs.truth[blobs.truth < 3])
    assert adjusted_rand_score(clusters.labels, blobs.truth) == 1


@pytest.mark.parametrize("n_components", [5, 6, 8])
def test_without_moves_k_is_carried_over(features, blobs, n_components):
    labels = split_further(blobs.truth, n_components)
    clusters = found(features, blobs.y, labels, moves=False)
    assert clusters.n_components == n_components
    assert clusters.labels.max() + 1 == n_components
    again = found(features, blobs.y, clusters.labels, moves=False, seed=1)
    assert again.n_components == n_components


def test_without_moves_the_partition_is_taken_on_and_not_found_anew(features, blobs):
    wrong = np.where(blobs.truth == 4, 3, blobs.truth)  # two classes as one
    clusters = found(features, blobs.y, wrong, moves=False)
    assert clusters.n_components == 4
    assert np.mean(clusters.labels == wrong) > 0.95  # but for rows that are nearer elsewhere


def test_with_moves_k_goes_on_from_the_last_partition(features, blobs):
    assert found(features, blobs.y, split_further(blobs.truth, 8), sizes="alike").n_components == 5
    wrong = np.where(blobs.truth == 4, 3, blobs.truth)
    assert found(features, blobs.y, wrong, sizes="alike").n_components == 5


def test_rows_move_to_the_nearest_prototype_when_features_have_changed(features, blobs):
    labels = blobs.truth.copy()
    labels[np.flatnonzero((blobs.y == -1) & (blobs.truth == 4))[:3]] = 0
    clusters = found(features, blobs.y, labels, moves=False)
    assert adjusted_rand_score(clusters.labels, blobs.truth) == 1  # the larger of two is first


@pytest.mark.parametrize("labels", ["none", "some"])
@pytest.mark.parametrize("n_components", [4, 6])
def test_a_known_k_is_kept(features, blobs, mixtures, labels, n_components):
    start = None if labels == "none" else split_further(blobs.truth, n_components)
    if n_components == 4 and start is not None:
        start = np.minimum(start, 3)
    clusters = found(features, blobs.y, start, n_components=n_components)
    assert clusters.n_components == n_components
    assert all(mixture.history_ == [] for mixture in mixtures)


@pytest.mark.parametrize("n_components", [4, 5, 6])
@pytest.mark.parametrize("labels", ["none", "some"])
def test_a_count_that_is_given_steers_the_moves(features, blobs, n_components, labels):
    start = None if labels == "none" else split_further(blobs.truth, 8)
    count = known_count(blobs.y, n_components, 0.4)
    for settings in ({}, {"n_components": n_components}):
        clusters = found(features, blobs.y, start, count=count, **settings)
        assert clusters.n_components == n_components


def test_a_known_k_leaves_what_is_not_known_to_novel_classes():
    codes = np.array([0, 1, 2, -1])
    count = known_count(codes, 5, 0.4)
    assert (count.n_known, count.n_novel, count.novel_share) == (3, 2, 0.4)
    assert known_count(codes, 2, 0.4).n_novel == 0


@pytest.mark.parametrize(
    ("n_known", "asked", "expected"),
    [(0, None, 10), (0, 4, 4), (1, None, 2), (3, None, 4), (3, 7, 7), (3, 2, 3)],
)
def test_with_moves_after_the_epoch_the_first_k_is_that_of_the_paper(
    features, blobs, mixtures, n_known, asked, expected
):
    codes = np.where(blobs.y < n_known, blobs.y, -1)
    options = {"moves_after_epoch": True, "n_components_init": asked}
    assert found(features, codes, moves=False, **options).n_components == expected
    assert mixtures[0].history_ == []


def test_the_first_k_is_no_more_than_the_rows(features):
    few = features[[0, 40, 80, 120, 160]]
    codes = np.array([0, 1, 2, 3, -1])  # K^l + K^l / 2 is 6
    assert found(few, codes, moves=False, moves_after_epoch=True).n_components <= 5
    for options in ({}, {"n_components_init": 8}):
        clusters = found(few, np.full(5, -1), moves=False, moves_after_epoch=True, **options)
        assert clusters.n_components <= 5


def test_the_paper_makes_one_pass(features, blobs, mixtures):
    start = split_further(blobs.truth, 8)
    found(features, blobs.y, start, acceptance="literal", n_directions=4)
    found(features, blobs.y, start)
    literal, calibrated = (len(mixture.history_) for mixture in mixtures)
    assert literal == 1
    assert calibrated > 1


def test_the_same_seed_gives_the_same_partition(features, blobs):
    noise = np.random.default_rng(0).normal(size=features.shape).astype(np.float32)
    partitions = [found(noise, blobs.y, n_components=12, seed=seed).labels for seed in (3, 3, 4)]
    np.testing.assert_array_equal(partitions[0], partitions[1])
    assert (partitions[0] != partitions[2]).any()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("n_components_init", 6),
        ("n_components", 6),
        ("n_directions", 3),
        ("acceptance", "literal"),
        ("count_term", "factorial"),
        ("whiten", True),
    ],
)
def test_the_mixture_has_the_settings_of_its_name(setting, value):
    mixture = mixture_for(EStepSettings(**{setting: value}), WIDE)
    assert getattr(mixture, setting) == value
    assert getattr(mixture_for(EStepSettings(), WIDE), setting) == getattr(EStepSettings(), setting)


def test_changes_to_the_mixture_go_before_settings():
    assert mixture_for(EStepSettings(n_components=4), WIDE, n_components=7).n_components == 7


def test_without_principal_directions_the_mixture_has_all_columns(features, blobs):
    for labels in (None, blobs.truth):
        options = {"labels": labels, "moves": labels is None, "n_directions": 2}
        assert found(features, blobs.y, pca="off", **options).V.shape[1] == WIDE
        assert found(features, blobs.y, **options).V.shape[1] == 2


@pytest.mark.parametrize("whiten", [False, True])
def test_a_partition_that_is_carried_over_is_in_the_space_of_the_mixture(features, blobs, whiten):
    fitted = found(features, blobs.y, whiten=whiten)
    carried = found(features, blobs.y, fitted.labels, moves=False, whiten=whiten)
    np.testing.assert_array_equal(carried.labels, fitted.labels)
    assert (carried.projection.whitening_ is not None) == whiten
    np.testing.assert_allclose(carried.V @ carried.V.T, fitted.V @ fitted.V.T, atol=1e-4)
    np.testing.assert_allclose(
        carried.prototypes @ carried.prototypes.T,
        fitted.prototypes @ fitted.prototypes.T,
        atol=1e-4,
    )


def test_components_without_rows_are_left_out(features, blobs):
    labels = np.where(blobs.truth >= 3, blobs.truth + 4, blobs.truth)  # 7 and 8; no 3 to 6
    clusters = found(features, blobs.y, labels, moves=False)
    assert clusters.n_components == 5
    assert set(clusters.labels) == set(range(5))


# --- accuracy


def test_accuracy_is_the_share_of_held_out_rows_next_to_their_class(features, blobs):
    held_out = np.zeros(200, dtype=bool)
    held_out[np.flatnonzero(blobs.y >= 0)[:20]] = True
    clusters = found(features, np.where(held_out, -1, blobs.y))
    assert clusters.accuracy(blobs.y, held_out) == 1
    wrong = blobs.y.copy()
    rows = np.flatnonzero(held_out)[:5]
    wrong[rows] = (wrong[rows] + 1) % 3
    assert clusters.accuracy(wrong, held_out) == 0.75
    wrong[~held_out] = -1  # other rows have no say
    assert clusters.accuracy(wrong, held_out) == 0.75


def test_accuracy_of_all_labelled_rows_where_none_is_held_out(features, blobs):
    clusters = found(features, blobs.y)
    none = np.zeros(200, dtype=bool)
    assert clusters.accuracy(blobs.y, none) == 1
    wrong = blobs.y.copy()
    rows = np.flatnonzero(blobs.y == 0)
    wrong[rows] = 1
    share = 1 - len(rows) / (blobs.y >= 0).sum()
    assert clusters.accuracy(wrong, none) == pytest.approx(share)
    assert clusters.accuracy(np.full(200, -1), none) is None


# --- principal directions


def test_more_categories_than_rows_are_refused(features, blobs):
    with pytest.raises(InputError, match="n_components=300"):
        found(features, blobs.y, n_components=300)


def test_a_partition_knows_the_prototypes_of_the_one_before(features, blobs):
    """In the new space, so that a search among them can go on from there."""
    labels = split_further(blobs.truth, 7)
    clusters = found(features, blobs.y, labels, moves=False)
    last = np.where(blobs.y == -1, labels, blobs.y)
    for k in range(3, 7):
        mean = clusters.V[last == k].mean(axis=0)
        np.testing.assert_allclose(clusters.before[k], mean, atol=1e-5)
    assert clusters.before.shape == clusters.prototypes.shape
    assert found(features, blobs.y).before is None


def test_a_component_that_is_lost_has_no_prototype_before(features, blobs):
    """Rows of all classes: their mean is far from each of them, and they go back."""
    labels = blobs.truth.copy()
    for code in range(5):
        labels[np.flatnonzero((blobs.truth == code) & (blobs.y == -1))[:4]] = 5
    clusters = found(features, blobs.y, labels, moves=False)
    assert clusters.n_components == 5
    for k in (3, 4):
        mean = clusters.V[labels == k].mean(axis=0)
        np.testing.assert_allclose(clusters.before[k], mean, atol=1e-5)
    assert clusters.before.shape == clusters.prototypes.shape
    # a given K is kept by rows that the partition before did not have together
    assert found(features, blobs.y, labels, moves=False, n_components=6).before is None
