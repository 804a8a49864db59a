"""Rows in blocks, rows by content, nearest centres: each against plain loops."""

import numpy as np
import pytest

from newfound.mixture.rows import (
    assign_and_sum,
    content_order,
    mix,
    nearest_centre,
    row_blocks,
    row_keys,
    squared_distances,
    sum_by_label,
)

DTYPES = [np.float64, np.float32]


@pytest.fixture
def X():
    return np.random.default_rng(1).normal(size=(70, 3))


@pytest.fixture
def centres():
    return np.random.default_rng(2).normal(size=(5, 3))


def slow_squared_distances(X, centres):
    return np.array([[sum((x - c) ** 2) for c in centres] for x in X])


@pytest.mark.parametrize("n_rows", [0, 1, 16, 17, 1000])
@pytest.mark.parametrize("block_bytes", [1, 8 * 5 * 30, 1 << 22])
def test_blocks_hold_every_row_once_and_fit_the_buffer(n_rows, block_bytes, monkeypatch):
    monkeypatch.setattr("newfound.mixture.rows.BLOCK_BYTES", block_bytes)
    blocks = list(row_blocks(n_rows, 5))
    assert [row for block in blocks for row in range(n_rows)[block]] == list(range(n_rows))
    longest = max(16, block_bytes // (8 * 5))
    assert all(block.stop - block.start <= longest for block in blocks)


def test_keys_follow_the_rows(X):
    order = np.random.default_rng(0).permutation(len(X))
    assert (row_keys(X[order]) == row_keys(X)[order]).all()


def test_keys_of_equal_rows_are_equal(X):
    keys = row_keys(np.concatenate([X, X]))
    assert (keys[: len(X)] == keys[len(X) :]).all()


def test_keys_of_other_rows_differ(X):
    """Also rows that hold the same numbers in other columns, or differ in the last digit."""
    others = [X, X[:, ::-1], -X, np.nextafter(X, np.inf), X * 2]
    assert len(np.unique(row_keys(np.concatenate(others)))) == 5 * len(X)


def test_keys_are_the_same_in_single_and_double_precision(X):
    single = X.astype(np.float32)
    assert (row_keys(single) == row_keys(single.astype(np.float64))).all()


def test_the_sign_of_zero_does_not_matter():
    assert row_keys(np.array([[0.0, 1.0]])) == row_keys(np.array([[-0.0, 1.0]]))


def test_the_layout_in_memory_does_not_matter(X):
    assert (row_keys(np.asfortranarray(X)) == row_keys(X)).all()


def test_keys_do_not_depend_on_blocks(X, request):
    keys = row_keys(X)
    request.getfixturevalue("tiny_blocks")
    assert (row_keys(X) == keys).all()


def test_order_by_content_is_the_same_for_shuffled_rows(X):
    shuffled = X[np.random.default_rng(0).permutation(len(X))]
    in_order = X[content_order(row_keys(X))]
    assert (in_order == shuffled[content_order(row_keys(shuffled))]).all()
    assert sorted(in_order.tolist()) == sorted(X.tolist())


def test_equal_rows_are_ordered_by_class():
    keys = np.array([9, 2, 9, 9], dtype=np.uint64)
    assert content_order(keys, np.array([3, 0, -1, 1])).tolist() == [1, 2, 3, 0]


def test_mixing_loses_no_key_and_flips_half_of_the_bits():
    keys = np.arange(1, 4097, dtype=np.uint64)
    mixed = mix(keys)
    assert len(np.unique(mixed)) == len(keys)
    bits = np.unpackbits((mixed[1:] ^ mixed[:-1]).view(np.uint8)).mean()
    assert bits == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.usefixtures("tiny_blocks")
def test_distances(X, centres, dtype):
    squared = squared_distances(X.astype(dtype), centres.astype(dtype))
    assert squared.dtype == dtype
    np.testing.assert_allclose(squared, slow_squared_distances(X, centres), rtol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.usefixtures("tiny_blocks")
def test_nearest_centre(X, centres, dtype):
    slow = slow_squared_distances(X, centres)
    labels, squared = nearest_centre(X.astype(dtype), centres.astype(dtype))
    assert labels.tolist() == slow.argmin(axis=1).tolist()
    np.testing.assert_allclose(squared, slow.min(axis=1), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.usefixtures("tiny_blocks")
def test_nearest_centre_with_offsets(X, centres, dtype):
    slow = slow_squared_distances(X, centres)
    offsets = np.array([0.0, 3.0, -1.0, 0.5, -4.0])
    nearest = (slow - offsets).argmin(axis=1)
    assert len({*nearest.tolist()}) > 1
    assert np.mean(nearest != slow.argmin(axis=1)) > 0.2
    labels, squared = nearest_centre(X.astype(dtype), centres.astype(dtype), offsets)
    assert labels.tolist() == nearest.tolist()
    assert squared.dtype == dtype
    # the distance is the true one, with nothing taken off
    np.testing.assert_allclose(squared, slow[np.arange(70), nearest], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_offsets_of_zero_change_no_bit(X, centres, dtype):
    rows, some = X.astype(dtype), centres.astype(dtype)
    for with_zeros, without in zip(
        nearest_centre(rows, some, np.zeros(5)), nearest_centre(rows, some), strict=True
    ):
        np.testing.assert_array_equal(with_zeros, without)


def test_of_two_equal_centres_the_first_is_nearest(X):
    labels, _ = nearest_centre(X, np.zeros((3, 3)))
    assert (labels == 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_on_a_centre_is_at_distance_zero(X, dtype):
    rows = X.astype(dtype)
    assert (np.diagonal(squared_distances(rows, rows)) == 0).all()


@pytest.mark.parametrize(("dtype", "offset"), [(np.float64, 1e6), (np.float32, 1e4)])
def test_an_offset_costs_distances_no_digits(X, centres, dtype, offset):
    rows, moved_centres = (X + offset).astype(dtype), (centres + offset).astype(dtype)
    exact = slow_squared_distances(rows.astype(np.float64), moved_centres.astype(np.float64))
    np.testing.assert_allclose(squared_distances(rows, moved_centres), exact, rtol=1e-5)


def test_a_small_distance_between_far_rows_keeps_its_digits():
    """|x|² - 2x·c + |c|² alone would answer 0 or worse here."""
    centres = np.array([[1e6, 0.0], [-1e6, 0.0]])
    squared = squared_distances(np.array([[1e6 + 1e-3, 0.0]]), centres)
    assert squared[0, 0] == pytest.approx(1e-6, rel=1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.usefixtures("tiny_blocks")
def test_chosen_rows_are_assigned_and_added_up(X, centres, dtype, weighted):
    chosen = np.arange(0, 70, 2)
    weights = np.random.default_rng(0).uniform(0.5, 2, size=70).astype(dtype)
    labels, sums, totals = assign_and_sum(
        X.astype(dtype), chosen, centres.astype(dtype), weights if weighted else None
    )
    slow_sums, slow_totals = np.zeros((5, 3)), np.zeros(5)
    for place, row in enumerate(chosen):
        distances = [sum((X[row] - centre) ** 2) for centre in centres]
        nearest = distances.index(min(distances))
        weight = weights[row] if weighted else 1
        slow_sums[nearest] += weight * X[row]
        slow_totals[nearest] += weight
        assert labels[place] == nearest
    assert sums.dtype == np.float64
    np.testing.assert_allclose(sums, slow_sums, atol=1e-5)
    np.testing.assert_allclose(totals, slow_totals, rtol=1e-6)


def test_assignment_leaves_the_rows_as_they_were(X, centres):
    before = X.copy()
    assign_and_sum(X, np.arange(len(X)), centres)
    assert (before == X).all()


@pytest.mark.usefixtures("tiny_blocks")
def test_sums_by_label(X):
    labels = np.random.default_rng(0).integers(3, size=70)  # the fourth label stays empty
    weights = np.random.default_rng(1).uniform(size=70)
    sums = sum_by_label(X, labels, 4, weights)
    for label in range(4):
        rows = [weights[i] * X[i] for i in range(70) if labels[i] == label]
        np.testing.assert_allclose(sums[label], sum(rows, start=np.zeros(3)), atol=1e-12)
