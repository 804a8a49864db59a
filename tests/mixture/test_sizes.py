"""Expected sizes by hand, for all kinds of labels; when to expect them, and how they come about."""

import math

import numpy as np
import pytest
from scipy.special import softmax

from newfound.mixture.projection import unit_rows
from newfound.mixture.sizes import SOFTNESS, expected_sizes, fit_sizes, sizes_are_alike


def rows(n_labelled, sizes):
    """Codes with so many labelled rows of each known class, and a partition with these sizes.

    Labelled rows are the first ones of their components; known components come first.
    """
    labels = np.repeat(np.arange(len(sizes)), sizes)
    codes = np.full(len(labels), -1)
    for code, n in enumerate(n_labelled):
        codes[np.flatnonzero(labels == code)[:n]] = code
    return codes, labels


def expected(n_labelled, sizes):
    return expected_sizes(*rows(n_labelled, sizes), len(sizes))


def test_of_classes_of_one_size_each_has_n_over_k_rows():
    sizes = expected([50, 50, 50], [100, 90, 110, 60, 200, 40])  # 600 rows, six components
    np.testing.assert_allclose(sizes, [50, 50, 50, 100, 100, 100])


def test_what_the_draw_of_labels_explains_makes_no_class_larger():
    # 47 to 53 of 100 rows: the binomial draw has a standard deviation of 5
    sizes = expected([47, 53, 50], [100] * 6)
    np.testing.assert_allclose(sizes, [53, 47, 50, 100, 100, 100])


def test_a_long_tail_of_known_classes_is_that_of_all():
    n_labelled = np.array([160, 100, 60, 40])  # half of 320, 200, 120 and 80
    partition = [320, 200, 120, 80, 100, 500, 20, 100]
    sizes = expected(n_labelled, partition)  # 1440 rows: 180 a class
    # of the variance of the sizes by labels, the draw of half of 180 rows explains 180
    share = 1 - 180 / ((140**2 + 20**2 + 60**2 + 100**2) / 3)
    known = 180 + share * np.array([140, 20, -60, -100])
    # of the novel components, the second and third have the same size, and so they are to have
    novel = np.interp([0.375, 1.5, 1.5, 2.625], [0, 1, 2, 3], np.sort(known))
    scale = (1440 - 360) / (known.sum() - 360 + novel.sum())
    np.testing.assert_allclose(sizes[:4], scale * (known - n_labelled))
    np.testing.assert_allclose(np.sort(sizes[4:]), scale * novel)
    np.testing.assert_allclose(sizes[[6, 5]], scale * novel[[0, 3]])  # the largest the highest
    # all but proportional to the labels, as it is half of the rows of each class that is left
    np.testing.assert_allclose(sizes[:4] / sizes[:4].sum(), n_labelled / 360, rtol=0.05)


def test_where_all_of_a_known_class_is_labelled_its_size_is_the_number_of_labels():
    # 300 + 100 labelled rows of known classes of 200 in the mean: the label rate is 1
    sizes = expected([300, 100], [300, 100, 150, 250])
    # novel: quantiles 0.25 and 0.75 of 100 and 300; known: the least there is, 20; sum 400
    np.testing.assert_allclose(sizes, np.array([20, 20, 150, 250]) * 400 / 440)


@pytest.mark.parametrize(
    ("n_labelled", "sizes"),
    [
        ([5, 5], [10, 10, 10]),
        ([1, 40, 3], [7, 90, 11, 2, 30]),
        ([2, 2], [3, 300, 1, 1, 1]),
        ([30, 1], [30, 3, 5]),
        ([], [4, 5, 6]),
        ([9], [20, 5]),
        ([4, 6], [10, 8]),
        ([10, 10, 9], [10, 10, 10, 1]),
    ],
)
def test_the_sum_is_that_of_the_unlabelled_rows_and_every_component_has_some(n_labelled, sizes):
    found = expected(n_labelled, sizes)
    assert found.shape == (len(sizes),)
    assert found.sum() == pytest.approx(sum(sizes) - sum(n_labelled))
    assert (found > 0).all()


def test_classes_with_more_labels_than_expected_rows_are_at_the_floor():
    sizes = expected([90, 10], [90, 30, 30])  # 150 rows, 50 a class; the rate is 1
    # by labels 90 and 10, all of them labelled; the novel one is the middle, 50
    np.testing.assert_allclose(sizes, np.array([5, 5, 50]) * 50 / 60)


def test_without_labels_all_are_alike():
    np.testing.assert_allclose(expected([], [1, 2, 30, 7]), [10, 10, 10, 10])


def test_with_every_row_labelled_nothing_is_left():
    np.testing.assert_array_equal(expected([10, 20], [10, 20]), [0, 0])


def test_one_known_class_says_nothing_of_the_spread():
    np.testing.assert_allclose(expected([30], [100, 10, 40, 50]), [20, 50, 50, 50])


def test_without_novel_components_the_known_ones_share_the_rows():
    np.testing.assert_allclose(expected([10, 10], [70, 30]), [40, 40])


def test_the_order_of_rows_does_not_matter():
    codes, labels = rows([20, 10, 4], [40, 30, 10, 33, 12])
    order = np.random.default_rng(0).permutation(len(codes))
    shuffled = expected_sizes(codes[order], labels[order], 5)
    np.testing.assert_array_equal(shuffled, expected_sizes(codes, labels, 5))


# --- whether sizes are alike


def drawn(sizes, rate=0.5, seed=0):
    """Codes of which a share is drawn among the first half of the classes, and the classes."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    known = np.flatnonzero(labels < len(sizes) // 2)
    codes = np.full(len(labels), -1)
    chosen = rng.permutation(known)[: round(rate * len(known))]
    codes[chosen] = labels[chosen]
    return codes, labels


@pytest.mark.parametrize("n_known", [5, 20, 100])
@pytest.mark.parametrize("rate", [0.2, 0.5, 0.8])
def test_labels_drawn_from_classes_of_one_size_speak_for_it(n_known, rate):
    said = [
        sizes_are_alike(*drawn([60] * 2 * n_known, rate, seed), 2 * n_known) for seed in range(40)
    ]
    assert np.mean(said) >= 0.85  # 3 % look like a quota, and some of few classes like a tail


@pytest.mark.parametrize("seed", range(5))
def test_sizes_that_differ_a_little_are_alike(seed):
    sizes = np.random.default_rng(seed).normal(60, 9, size=40).astype(int)
    assert sizes_are_alike(*drawn(sizes, seed=seed), 40)


@pytest.mark.parametrize("seed", range(5))
def test_sizes_with_a_long_tail_are_not(seed):
    sizes = (100 * 10 ** -np.random.default_rng(seed).random(40)).astype(int)
    assert not sizes_are_alike(*drawn(sizes, seed=seed), 40)


@pytest.mark.parametrize(
    "n_labelled",
    [
        [8] * 5,
        [8] * 20,
        [8, 8, 8, 7, 8, 8, 8, 8, 8, 8] * 2,
        [20, 22, 19, 21, 20],
        [29, 30, 31, 30, 30],
    ],
)
def test_a_quota_says_nothing(n_labelled):
    codes, labels = rows(n_labelled, [60] * 2 * len(n_labelled))
    assert not sizes_are_alike(codes, labels, 2 * len(n_labelled))


@pytest.mark.parametrize("n_known", [0, 1, 4])
def test_nor_do_few_known_classes(n_known):
    codes, labels = drawn([60] * 10, seed=1)
    assert sizes_are_alike(codes, labels, 10)
    codes = np.where(codes < n_known, codes, -1)
    assert not sizes_are_alike(codes, labels, 10)


@pytest.mark.parametrize("seed", range(5))
def test_sizes_are_left_alone_where_all_that_is_known_has_its_label(seed):
    rng = np.random.default_rng(seed)
    sizes = np.concatenate([rng.normal(50, 7, size=10).astype(int), np.full(10, 80)])
    labels = np.repeat(np.arange(20), sizes)
    codes = np.where(labels < 10, labels, -1)
    assert not sizes_are_alike(codes, labels, 20)
    few_astray = np.where((codes < 0) & (rng.random(len(labels)) < 0.03), 3, labels)
    assert not sizes_are_alike(codes, few_astray, 20)


def test_and_where_known_classes_hold_far_too_many_rows():
    codes, labels = drawn([60] * 20, rate=0.8, seed=1)
    assert sizes_are_alike(codes, labels, 20)
    assert not sizes_are_alike(codes, np.where(labels >= 14, 0, labels), 20)


# --- prototypes and offsets


def unit_length(n=203, k=4, seed=0):
    """Random rows and prototypes, and sizes that are far from those of the nearest prototype."""
    rng = np.random.default_rng(seed)
    V = unit_rows(rng.normal(size=(n, 5)))
    prototypes = 0.8 * unit_rows(rng.normal(size=(k, 5)))
    sizes = rng.uniform(1, 4, size=k)
    return V, prototypes, n * sizes / sizes.sum()


def soft_sizes(V, prototypes, offsets):
    """Sum over the rows of the share that each prototype has in them."""
    squared = ((V[:, None] - prototypes) ** 2).sum(axis=2)
    return softmax((offsets - squared) / SOFTNESS, axis=1).sum(axis=0)


def slow_fit(V, prototypes, n_known, sizes, n_rounds):
    """The equations as they are written, row by row."""
    weights, prototypes = [1.0] * len(sizes), [np.array(p) for p in prototypes]
    for _ in range(n_rounds):
        held, sums = [0.0] * len(sizes), [np.zeros(V.shape[1]) for _ in sizes]
        for v in V:
            parts = [
                weight * math.exp(-sum((v - prototype) ** 2) / 0.04)
                for weight, prototype in zip(weights, prototypes, strict=True)
            ]
            for k, part in enumerate(parts):
                held[k] += part / sum(parts)
                sums[k] = sums[k] + part / sum(parts) * v
        weights = [w * size / h for w, size, h in zip(weights, sizes, held, strict=True)]
        for k in range(n_known, len(sizes)):
            prototypes[k] = sums[k] / held[k]
    return np.array(prototypes), [0.04 * math.log(weight) for weight in weights]


@pytest.mark.parametrize("n_known", [0, 2, 4])
@pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-9), (np.float32, 1e-4)])
def test_prototypes_and_offsets_are_those_of_a_plain_loop(dtype, atol, n_known, monkeypatch):
    monkeypatch.setattr("newfound.mixture.sizes._N_ROUNDS", 7)
    V, given, sizes = unit_length(n=60)
    prototypes, offsets = fit_sizes(V.astype(dtype), given, n_known, sizes)
    slow, slow_offsets = slow_fit(V, given, n_known, sizes, 7)
    assert offsets.dtype == prototypes.dtype == np.float64
    np.testing.assert_allclose(offsets, slow_offsets, atol=atol)
    np.testing.assert_allclose(prototypes, slow, atol=atol)
    np.testing.assert_array_equal(prototypes[:n_known], given[:n_known])


@pytest.mark.parametrize("k", [2, 4, 9, 20])
@pytest.mark.parametrize("seed", range(3))
def test_sizes_come_out_as_expected(k, seed, monkeypatch):
    monkeypatch.setattr("newfound.mixture.sizes._N_ROUNDS", 1000)
    V, prototypes, sizes = unit_length(k=k, seed=seed)
    before = soft_sizes(V, prototypes, np.zeros(k))
    assert np.abs(before / sizes - 1).max() > 0.1
    found, offsets = fit_sizes(V, prototypes, k, sizes)  # none of them moves
    np.testing.assert_allclose(soft_sizes(V, found, offsets), sizes, rtol=0.02)
    found, offsets = fit_sizes(V, prototypes, k // 2, sizes)
    np.testing.assert_allclose(soft_sizes(V, found, offsets), sizes, rtol=0.15)


def test_it_stops_when_no_row_changes_and_sizes_are_near():
    V = np.repeat(np.eye(3), 20, axis=0)
    prototypes, offsets = fit_sizes(V, np.eye(3), 1, np.full(3, 20.0))
    np.testing.assert_allclose(prototypes, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(offsets, 0, atol=1e-12)


def test_a_known_prototype_far_from_all_rows_is_given_its_size_too():
    V, _, _ = unit_length()
    V = unit_rows(V + 10 * np.eye(5)[0])
    prototypes = np.array([[1.0, 0, 0, 0, 0], [-1.0, 0, 0, 0, 0]])
    sizes = np.array([153.0, 50.0])
    for dtype in (np.float64, np.float32):
        found, offsets = fit_sizes(V.astype(dtype), prototypes, 2, sizes)
        assert offsets[1] - offsets[0] > 3  # of squared distances of nearly 4
        np.testing.assert_allclose(soft_sizes(V, found, offsets), sizes, rtol=0.02)


def test_blocks_of_few_rows_change_nothing(request):
    V, given, sizes = unit_length()
    whole = fit_sizes(V, given, 2, sizes)
    request.getfixturevalue("tiny_blocks")
    for blocks, expected in zip(fit_sizes(V, given, 2, sizes), whole, strict=True):
        np.testing.assert_allclose(blocks, expected, rtol=1e-7)
