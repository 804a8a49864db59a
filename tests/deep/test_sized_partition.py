"""The partition that heeds expected sizes: with rows on a device, and with held-out labels."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import adjusted_rand_score

from newfound.deep import sized_partition
from newfound.deep.holdout import LabelSplit, hold_out
from newfound.deep.partition import Clusters
from newfound.deep.prototypes import prototypes_from
from newfound.deep.settings import EStepSettings
from newfound.deep.sized_partition import heed_sizes
from newfound.mixture.assignment import nearest_labels, prototypes_of
from newfound.mixture.projection import unit_rows
from newfound.mixture.rows import nearest_centre
from newfound.mixture.sizes import FittedSizes, expect_sizes, fit_sizes, share_by_distance

CPU = torch.device("cpu")
TAU = 0.1  # of the prototypical loss
NAN = float("nan")


def clusters_of(V, codes, labels, prototypes=None):
    n_known = int(codes.max()) + 1
    if prototypes is None:
        prototypes = prototypes_of(V, codes, labels, n_known)
    return Clusters(labels, n_known, V, prototypes.astype(np.float64), None)


def given(codes, held_out=None):
    """Labels, of which some may be held out."""
    if held_out is None:
        held_out = np.zeros(len(codes), dtype=bool)
    return LabelSplit(np.where(held_out, -1, codes), codes, held_out, [])


def heed(clusters, codes, sizes="alike", n_novel_rows=NAN, held_out=None):
    return heed_sizes(clusters, given(codes, held_out), sizes, n_novel_rows, CPU)


class Eight:
    """Eight classes of 60 rows, six of them known by about 20 labels each."""

    rng = np.random.default_rng(5)
    truth = np.repeat(np.arange(8), 60)
    V = unit_rows(np.eye(8, 10)[truth] + 0.15 * rng.normal(size=(480, 10))).astype(np.float32)
    n_labels = np.array([17, 23, 20, 16, 24, 20, 0, 0])  # as a draw may give them
    codes = np.where(np.arange(480) % 60 < n_labels[truth], truth, -1)
    # two novel classes as one, and a component of five rows in the midst of a known class
    labels = np.where(truth == 7, 6, truth)
    labels[np.flatnonzero((truth == 0) & (codes == -1))[:5]] = 7


def unequal(codes=Eight.codes, labels=Eight.labels):
    return clusters_of(Eight.V, codes, labels)


def sizes_of(clusters, codes):
    return np.bincount(clusters.labels[codes == -1], minlength=clusters.n_components)


@pytest.mark.parametrize(
    ("sizes", "n_novel_rows"), [("alike", NAN), (1.0, NAN), ("unknown", 120.0)]
)
def test_sizes_come_near_those_to_be_expected(sizes, n_novel_rows):
    before = unequal()
    after = heed(before, Eight.codes, sizes, n_novel_rows)
    expected = expect_sizes(Eight.codes, before.labels, 8, sizes, n_novel_rows)
    assert expected.log_variance == 0  # the sizes are to be reached
    np.testing.assert_allclose(after.sizes, expected.unlabelled, rtol=0.03)
    assert sizes_of(before, Eight.codes)[6:].tolist() == [120, 5]
    assert np.abs(sizes_of(after, Eight.codes) - expected.unlabelled).max() <= 4
    assert adjusted_rand_score(Eight.truth, after.labels) > 0.96


def test_nearest_prototypes_alone_would_not_have_come_there():
    """So that the test above is one of the sizes."""
    labels = nearest_labels(Eight.V, Eight.codes, Eight.labels, 6, 100)
    assert adjusted_rand_score(Eight.truth, labels) < 0.9


def test_the_device_and_numpy_find_the_same():
    before, free = unequal(), Eight.codes == -1
    after = heed(before, Eight.codes)
    expected = expect_sizes(Eight.codes, before.labels, 8, "alike", NAN)
    V = Eight.V[free]
    fitted = fit_sizes(share_by_distance(V), before.prototypes, 6, expected)
    assert fitted.converged
    labels = nearest_centre(V, fitted.prototypes.astype(np.float32), fitted.offsets)[0]
    np.testing.assert_array_equal(after.labels[free], labels)
    np.testing.assert_allclose(after.prototypes, fitted.prototypes, atol=0.02)
    np.testing.assert_allclose(after.sizes, fitted.sizes, rtol=0.04)
    np.testing.assert_array_equal(after.prototypes[:6], before.prototypes[:6])


@pytest.mark.parametrize("n_entries", [1 << 26, 56, 3200])  # all, 7 and 400 rows at a time
def test_one_round_on_the_device_is_one_of_numpy(n_entries, monkeypatch):
    monkeypatch.setattr(sized_partition, "_CHUNK_ENTRIES", n_entries)
    prototypes = unequal().prototypes
    log_weights = np.linspace(-3, 2, 8)
    rows = torch.from_numpy(Eight.V)
    shared = sized_partition._share_on_device(rows)(prototypes, log_weights)
    for found, slow in zip(
        shared, share_by_distance(Eight.V)(prototypes, log_weights), strict=True
    ):
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, slow, rtol=1e-3, atol=1e-3)
    offsets = 0.04 * log_weights
    labels = sized_partition._nearest(rows, prototypes, offsets)
    np.testing.assert_array_equal(
        labels, nearest_centre(Eight.V, prototypes.astype(np.float32), offsets)[0]
    )


def test_a_component_far_from_all_rows_holds_more_than_nothing():
    rows = torch.tensor([[1.0, 0.0]]).repeat(5, 1)
    share = sized_partition._share_on_device(rows)
    held, _ = share(np.array([[1.0, 0.0], [-1e3, 0.0]]), np.zeros(2))
    assert (held > 0).all()


@pytest.mark.parametrize("n_entries", [8, 56, 2872])  # 1, 7 and 359 rows at a time
def test_rows_are_dealt_in_chunks(n_entries, monkeypatch):
    whole = heed(unequal(), Eight.codes)
    monkeypatch.setattr(sized_partition, "_CHUNK_ENTRIES", n_entries)
    chunked = heed(unequal(), Eight.codes)
    np.testing.assert_array_equal(chunked.labels, whole.labels)
    # rounding may end the search a step earlier or later, within its tolerance
    np.testing.assert_allclose(chunked.prototypes, whole.prototypes, atol=0.02)


def test_labelled_rows_never_move():
    codes = Eight.codes.copy()
    far = np.flatnonzero(codes == 0)[:3]
    codes[far] = 1  # in the midst of another class
    before = unequal(codes, np.where(codes >= 0, codes, Eight.labels))
    after = heed(before, codes)
    labelled = codes >= 0
    np.testing.assert_array_equal(after.labels[labelled], codes[labelled])
    assert (after.labels != before.labels).any()


def test_what_was_given_stays_as_it_was():
    before = unequal()
    kept = replace(
        before, labels=before.labels.copy(), V=before.V.copy(), prototypes=before.prototypes.copy()
    )
    codes = Eight.codes.copy()
    heed(before, codes)
    for name in ("labels", "V", "prototypes"):
        np.testing.assert_array_equal(getattr(before, name), getattr(kept, name))
    np.testing.assert_array_equal(codes, Eight.codes)
    assert before.sizes is None


# --- when the partition stays as it is


def test_where_a_component_would_be_left_without_rows(monkeypatch):
    def far_too_small(share_rows, prototypes, n_known, expected, start):
        offsets = np.where(np.arange(8) == 7, -10.0, 0.0)
        return FittedSizes(prototypes, offsets, expected.unlabelled, converged=True, n_rounds=1)

    monkeypatch.setattr(sized_partition, "fit_sizes", far_too_small)
    before = unequal()
    assert heed(before, Eight.codes) is before


def test_where_sizes_are_not_reached(monkeypatch):
    monkeypatch.setattr("newfound.mixture.sizes._N_ROUNDS", 1)
    before = unequal()
    assert heed(before, Eight.codes) is before


def test_where_nothing_is_said_about_sizes():
    before = unequal()
    assert heed(before, Eight.codes, None) is before


def test_without_a_known_class():
    codes = np.full(480, -1)
    before = clusters_of(Eight.V, codes, Eight.labels)
    assert heed(before, codes) is before


def test_with_every_row_labelled():
    before = clusters_of(Eight.V, Eight.truth, Eight.truth)
    assert heed(before, Eight.truth) is before


def test_with_labels_by_quota():
    codes = np.where((Eight.truth < 6) & (np.arange(480) % 60 < 20), Eight.truth, -1)
    before = unequal(codes)
    assert heed(before, codes) is before


# --- held-out labels


class Hundred:
    """100 classes of 30 rows; half of the labels of 80 are drawn, a tenth of each held out."""

    truth = np.repeat(np.arange(100), 30)
    rng = np.random.default_rng(0)
    V = unit_rows(np.eye(100)[truth] + 0.04 * rng.normal(size=(3000, 100))).astype(np.float32)
    drawn = rng.permutation(2400)[:1200]
    codes = np.full(3000, -1)
    codes[drawn] = truth[drawn]
    held_out = hold_out(codes, 0.1, seed=0)


def test_how_labels_were_drawn_shows_in_all_of_them():
    """What is left after a tenth of each class is held out varies less than by chance."""
    before = clusters_of(Hundred.V, np.where(Hundred.held_out, -1, Hundred.codes), Hundred.truth)
    after = heed(before, Hundred.codes, "unknown", 600.0, Hundred.held_out)
    assert after is not before
    expected = expect_sizes(Hundred.codes, Hundred.truth, 100, "unknown", 600.0).unlabelled
    held_out = np.bincount(Hundred.codes[Hundred.held_out], minlength=100)
    assert held_out.sum() > 100
    # held-out rows are among those that are to be dealt out
    np.testing.assert_allclose(after.sizes.sum(), expected.sum() + held_out.sum())
    assert (after.labels == Hundred.truth).mean() > 0.99
    in_sight = ~Hundred.held_out & (Hundred.codes >= 0)
    np.testing.assert_array_equal(after.labels[in_sight], Hundred.codes[in_sight])


def test_held_out_rows_are_expected_in_their_classes(monkeypatch):
    seen = []

    def watch(share_rows, prototypes, n_known, expected, start):
        seen.append(expected.unlabelled)
        return fit_sizes(share_rows, prototypes, n_known, expected)

    monkeypatch.setattr(sized_partition, "fit_sizes", watch)
    held_out = np.zeros(480, dtype=bool)
    held_out[np.flatnonzero(Eight.codes == 2)[:7]] = True
    in_sight = np.where(held_out, -1, Eight.codes)
    before = unequal(in_sight)
    heed(before, Eight.codes, "alike", NAN, held_out)
    expected = expect_sizes(Eight.codes, before.labels, 8, "alike", NAN).unlabelled
    np.testing.assert_allclose(seen[0], expected + 7 * (np.arange(8) == 2))


# --- what follows


def test_the_order_of_rows_does_not_matter():
    order = np.random.default_rng(1).permutation(480)
    after = heed(unequal(), Eight.codes)
    shuffled = clusters_of(Eight.V[order], Eight.codes[order], Eight.labels[order])
    again = heed(shuffled, Eight.codes[order])
    np.testing.assert_array_equal(again.labels, after.labels[order])
    np.testing.assert_allclose(again.prototypes, after.prototypes, atol=0.02)


def test_prototypes_know_how_much_too_large_each_component_is():
    settings, z = EStepSettings(pca="off"), torch.from_numpy(Eight.V)
    after = heed(unequal(), Eight.codes)
    prototypes = prototypes_from(z, Eight.codes, after, None, settings, TAU).to(CPU)
    free = z[torch.from_numpy(Eight.codes == -1)].float()
    shares = (free @ prototypes.means.T / TAU).softmax(dim=1)
    expected = (
        shares.mean(dim=0) / torch.from_numpy(after.sizes / after.sizes.sum()).float()
    ).log()
    torch.testing.assert_close(prototypes.excess, expected, atol=1e-5, rtol=1e-5)
    assert expected.abs().max() > 1e-3
    without = prototypes_from(z, Eight.codes, unequal(), None, settings, TAU).to(CPU)
    assert without.excess is None


def test_the_excess_is_added_up_in_chunks(monkeypatch):
    z, after = torch.from_numpy(Eight.V), heed(unequal(), Eight.codes)
    given = (z, Eight.codes, after, None, EStepSettings(pca="off"), TAU)
    whole = prototypes_from(*given).excess
    monkeypatch.setattr("newfound.deep.prototypes._CHUNK", 7)
    torch.testing.assert_close(prototypes_from(*given).excess, whole)
