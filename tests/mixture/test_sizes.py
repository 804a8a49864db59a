"""Expected sizes by hand, for all kinds of labels; when to expect them, and how they come about."""

import math

import numpy as np
import pytest
from scipy.special import softmax

from newfound.mixture import sizes as module
from newfound.mixture.projection import unit_rows
from newfound.mixture.rows import nearest_centre
from newfound.mixture.sizes import (
    SOFTNESS,
    ExpectedSizes,
    expect_sizes,
    fit_sizes,
    share_by_distance,
)

NAN = math.nan


def rows(n_labelled, sizes):
    """Codes with so many labelled rows of each known class, and a partition with these sizes.

    Labelled rows are the first ones of their components; known components come first.
    """
    labels = np.repeat(np.arange(len(sizes)), sizes)
    codes = np.full(len(labels), -1)
    for code, n in enumerate(n_labelled):
        codes[np.flatnonzero(labels == code)[:n]] = code
    return codes, labels


def expected(n_labelled, partition, sizes="unknown", n_novel_rows=NAN):
    return expect_sizes(*rows(n_labelled, partition), len(partition), sizes, n_novel_rows)


#: Half of the rows of five classes of 100, with a variance of 12.5; by chance it would be 25.
DRAWN = [47, 53, 50, 46, 54]


def test_of_classes_of_one_size_each_has_n_over_k_rows():
    found = expected(DRAWN, [100, 90, 110, 95, 105, 60, 200, 40])  # 800 rows
    np.testing.assert_allclose(found.unlabelled, [53, 47, 50, 54, 46, 100, 100, 100])
    assert found.log_variance == 0


#: Half of 320, 200, 120, 80 and 280 rows.
TAIL = np.array([160, 100, 60, 40, 140])


def test_a_long_tail_of_known_classes_is_that_of_all():
    found = expected(TAIL, [320, 200, 120, 80, 280, 100, 500, 300, 100])  # 2000 rows
    # of the variance of the sizes by labels, the draw of half of 200 rows explains 200
    real = (120**2 + 0 + 80**2 + 120**2 + 80**2) / 4 - 200
    known = 200 + real / (real + 200) * np.array([120, 0, -80, -120, 80])
    # of the novel components, two have the same size, and one of these is to have more
    novel = np.quantile(known, [0.125, 0.375, 0.625, 0.875])
    novel *= 1000 / novel.sum()
    np.testing.assert_allclose(found.unlabelled[:5], known - TAIL)
    np.testing.assert_allclose(np.sort(found.unlabelled[5:]), novel)
    np.testing.assert_allclose(found.unlabelled[[6, 7]], novel[[3, 2]])  # the largest the highest
    assert found.log_variance == pytest.approx(math.log(1 + real / 200**2))


@pytest.mark.parametrize("n_novel_rows", [200.0, 300.0, 400.0])
def test_novel_rows_are_as_many_as_were_counted(n_novel_rows):
    found = expected(DRAWN, [100] * 5 + [60, 200, 40], n_novel_rows=n_novel_rows)
    np.testing.assert_allclose(found.unlabelled[5:], n_novel_rows / 3)
    assert found.unlabelled.sum() == pytest.approx(550)


def test_without_a_count_they_are_those_of_the_partition():
    partition = [100] * 5 + [60, 200, 40]
    without, counted = expected(DRAWN, partition), expected(DRAWN, partition, n_novel_rows=300)
    np.testing.assert_array_equal(without.unlabelled, counted.unlabelled)


@pytest.mark.parametrize(("sizes", "ratio"), [("alike", 1), (1.0, 1), (0.5, 0.5), (2, 2)])
def test_said_sizes_say_how_many_rows_are_novel(sizes, ratio):
    """Whatever was counted, and however many rows the partition has in novel components."""
    found = expected(DRAWN, [100] * 5 + [60, 200, 40], sizes, n_novel_rows=7.0)
    novel = 800 * ratio * 3 / (ratio * 3 + 5)
    np.testing.assert_allclose(found.unlabelled[5:], novel / 3)
    known = (found.unlabelled[:5] + DRAWN).mean()
    assert novel / 3 / known == pytest.approx(ratio)


@pytest.mark.parametrize(
    ("n_labelled", "partition", "sizes"),
    [
        ([1, 40, 3, 9, 20], [7, 90, 11, 20, 31, 2, 30], "unknown"),
        ([2, 9, 4, 6, 1, 3], [3, 300, 9, 9, 9, 9, 1, 1, 1], "unknown"),
        ([30, 1, 12, 5, 9], [33, 3, 15, 9, 20, 5], "unknown"),
        ([30, 1, 12, 5, 9], [33, 3, 15, 9, 20, 5], "alike"),
        ([30, 1, 12, 5, 9], [33, 3, 15, 9, 20, 5], 0.1),
        ([15, 1, 9, 5, 9], [20, 20, 20, 20, 20, 500], "unknown"),
    ],
)
def test_the_sum_is_that_of_the_unlabelled_rows_and_every_component_has_some(
    n_labelled, partition, sizes
):
    found = expected(n_labelled, partition, sizes)
    assert found.unlabelled.shape == (len(partition),)
    assert found.unlabelled.sum() == pytest.approx(sum(partition) - sum(n_labelled))
    assert (found.unlabelled > 0).all()
    assert found.log_variance >= 0


def test_the_order_of_rows_does_not_matter():
    codes, labels = rows(TAIL, [320, 200, 120, 80, 280, 100, 500])
    order = np.random.default_rng(0).permutation(len(codes))
    shuffled = expect_sizes(codes[order], labels[order], 7, "unknown", 500.0)
    straight = expect_sizes(codes, labels, 7, "unknown", 500.0)
    np.testing.assert_array_equal(shuffled.unlabelled, straight.unlabelled)


# --- when nothing can be expected


def drawn(sizes, rate=0.5, seed=0):
    """Codes of which a share is drawn among the first half of the classes, and the classes."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    known = np.flatnonzero(labels < len(sizes) // 2)
    codes = np.full(len(labels), -1)
    chosen = rng.permutation(known)[: round(rate * len(known))]
    codes[chosen] = labels[chosen]
    return codes, labels


def test_not_without_a_wish():
    assert expected(DRAWN, [100] * 8, None) is None


@pytest.mark.parametrize("sizes", ["unknown", "alike"])
@pytest.mark.parametrize(
    "n_labelled",
    [
        [8] * 5,
        [8] * 20,
        [8, 8, 8, 7, 8, 8, 8, 8, 8, 8] * 2,
        [29, 30, 31, 30, 30],
    ],
)
def test_a_quota_says_nothing(n_labelled, sizes):
    assert expected(n_labelled, [60] * 2 * len(n_labelled), sizes) is None


@pytest.mark.parametrize("n_known", [0, 1, 4])
def test_nor_do_few_known_classes(n_known):
    codes, labels = drawn([60] * 10, seed=1)
    assert expect_sizes(codes, labels, 10, "alike", NAN) is not None
    codes = np.where(codes < n_known, codes, -1)
    assert expect_sizes(codes, labels, 10, "alike", NAN) is None


def test_nor_is_there_anything_without_novel_components_or_novel_rows():
    assert expected(DRAWN, [100] * 5, "alike") is None
    assert expected(DRAWN, [100] * 8, n_novel_rows=2.9) is None
    assert expected(DRAWN, [100] * 8, n_novel_rows=3.0) is not None


@pytest.mark.parametrize(
    ("sizes", "novel", "n_novel_rows"),
    [("unknown", 80, NAN), ("unknown", 80, 760.0), ("unknown", 80, 800.0), ("alike", 50, NAN)],
)
def test_nor_where_all_that_is_known_has_its_label(sizes, novel, n_novel_rows):
    known = np.random.default_rng(0).normal(50, 7, size=10).astype(int)
    assert expected(known, [*known, *[novel] * 10], sizes, n_novel_rows) is None
    assert expected(known // 2, [*known, *[novel] * 10], sizes) is not None


# --- how much it counts


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("n_known", [5, 20, 100])
def test_labels_drawn_from_classes_of_one_size_leave_hardly_any_variance(n_known, rate):
    found = [
        expect_sizes(*drawn([60] * 2 * n_known, rate, seed), 2 * n_known, "unknown", NAN)
        for seed in range(20)
    ]
    variances = [0.0 if one is None else one.log_variance for one in found]
    assert sum(one is None for one in found) <= 3  # 1 % look like a quota
    assert np.mean(variances) < 0.03
    assert np.mean(np.array(variances) == 0) > 0.3


@pytest.mark.parametrize("seed", range(3))
def test_a_long_tail_is_seen_in_the_variance(seed):
    sizes = (100 * 10 ** -np.random.default_rng(seed).random(40)).astype(int)
    found = expect_sizes(*drawn(sizes, seed=seed), 40, "unknown", NAN)
    real = np.log1p(sizes[:20].var(ddof=1) / sizes[:20].mean() ** 2)
    assert found.log_variance == pytest.approx(real, rel=0.3)


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


def fit(V, prototypes, n_known, sizes, log_variance=0.0):
    return fit_sizes(share_by_distance(V), prototypes, n_known, ExpectedSizes(sizes, log_variance))


def slow_fit(V, prototypes, n_known, sizes, gain, tolerance):
    """The equations as they are written: weights by plain steps, then a move, again and again."""
    prototypes, log_weights = prototypes.copy(), np.zeros(len(sizes))
    while True:
        number = -1
        step = math.inf
        while step >= tolerance:
            number += 1
            held = soft_sizes(V, prototypes, SOFTNESS * log_weights)
            wanted = gain * (log_weights + np.log(sizes / held))
            step, log_weights = np.abs(wanted - log_weights).max(), wanted
        if number == 0:  # the move has changed nothing
            return prototypes, SOFTNESS * log_weights
        squared = ((V[:, None] - prototypes) ** 2).sum(axis=2)
        shares = softmax(log_weights - squared / SOFTNESS, axis=1)
        for k in range(n_known, len(sizes)):
            prototypes[k] = (shares[:, k, None] * V).sum(axis=0) / shares[:, k].sum()


@pytest.mark.parametrize("share", [0.0, 0.4])  # of the differences that true sizes explain
@pytest.mark.parametrize("n_known", [0, 2, 4])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-7), (np.float32, 1e-4)])
def test_prototypes_and_offsets_are_those_of_a_plain_loop(
    dtype, tolerance, n_known, share, monkeypatch
):
    monkeypatch.setattr(module, "_TOLERANCE", tolerance)
    V, given, sizes = unit_length(n=60)
    found = np.square(np.log(sizes / soft_sizes(V, given, np.zeros(4)))).mean()
    fitted = fit(V.astype(dtype), given, n_known, sizes, share * found)
    slow, slow_offsets = slow_fit(V, given, n_known, sizes, 1 - share, tolerance / 10)
    assert fitted.converged
    assert fitted.offsets.dtype == fitted.prototypes.dtype == np.float64
    if share == 0:  # a factor that is common to all weights changes nothing
        slow_offsets += (fitted.offsets - slow_offsets).mean()
    np.testing.assert_allclose(fitted.offsets, slow_offsets, atol=200 * tolerance)
    np.testing.assert_allclose(fitted.prototypes, slow, atol=200 * tolerance)
    np.testing.assert_array_equal(fitted.prototypes[:n_known], given[:n_known])


@pytest.mark.parametrize("seed", range(10))
def test_it_comes_to_an_end_with_many_components(seed):
    """Weights are found before prototypes move, so that neither goes round in circles."""
    rng = np.random.default_rng(seed)
    centres = unit_rows(rng.normal(size=(24, 16)))
    V = unit_rows(np.repeat(centres, 25, axis=0) + 0.15 * rng.normal(size=(600, 16)))
    start = V[rng.choice(600, 24, replace=False)]
    fitted = fit(V, start, 8, np.full(24, 25.0))
    assert fitted.converged
    assert fitted.n_rounds < 500
    np.testing.assert_allclose(soft_sizes(V, fitted.prototypes, fitted.offsets), 25, rtol=0.03)


def test_steps_that_look_back_need_fewer_rounds(monkeypatch):
    V, prototypes, sizes = unit_length(n=400, k=9)
    quick = fit(V, prototypes, 9, sizes)
    monkeypatch.setattr(module._Steps, "next", lambda self, point, error: point + error)
    plain = fit(V, prototypes, 9, sizes)
    assert quick.converged
    assert quick.n_rounds < 0.7 * plain.n_rounds


@pytest.mark.parametrize("k", [2, 4, 9])
@pytest.mark.parametrize("seed", range(3))
def test_if_all_classes_are_of_one_size_sizes_come_out_as_expected(k, seed, monkeypatch):
    monkeypatch.setattr(module, "_N_ROUNDS", 2000)
    V, prototypes, sizes = unit_length(k=k, seed=seed)
    before = soft_sizes(V, prototypes, np.zeros(k))
    assert np.abs(before / sizes - 1).max() > 0.1
    for n_known in (k, k // 2):  # with none, or some of the prototypes moving
        fitted = fit(V, prototypes, n_known, sizes)
        assert fitted.converged
        found = soft_sizes(V, fitted.prototypes, fitted.offsets)
        np.testing.assert_allclose(found, sizes, rtol=0.03)
        np.testing.assert_allclose(fitted.sizes, found, rtol=1e-6)


def test_the_more_true_sizes_differ_the_less_is_changed():
    V, prototypes, sizes = unit_length()
    before = soft_sizes(V, prototypes, np.zeros(4))
    apart = np.square(np.log(sizes / before)).mean()
    distances = []
    for share in (0.0, 0.3, 0.6, 0.9):
        fitted = fit(V, prototypes, 4, sizes, share * apart)
        assert fitted.converged
        distances.append(np.square(np.log(sizes / fitted.sizes)).mean())
    assert (np.diff(distances) > 0).all()
    assert distances[0] < 0.001 < distances[-1] < apart


@pytest.mark.parametrize("factor", [1.0, 5.0])
def test_if_they_differ_as_much_as_what_was_found_nothing_is_changed(factor):
    V, prototypes, sizes = unit_length()
    before = soft_sizes(V, prototypes, np.zeros(4))
    variance = factor * np.square(np.log(sizes / before)).mean() + 1e-9
    fitted = fit(V, prototypes, 1, sizes, variance)
    assert fitted.converged
    np.testing.assert_array_equal(fitted.prototypes, prototypes)
    np.testing.assert_array_equal(fitted.offsets, 0)
    np.testing.assert_allclose(fitted.sizes, before)


def gain_of_a_merged_pair(sizes, seed):
    """g for a partition in which two of the novel classes are one component."""
    rng = np.random.default_rng(seed)
    codes, labels = drawn(sizes, seed=seed)
    merged = np.where(labels == 23, 22, labels)
    expected = expect_sizes(codes, merged, 23, "unknown", NAN)
    free = codes == -1
    V = unit_rows(np.eye(24)[labels[free]] + 0.05 * rng.normal(size=(free.sum(), 24)))
    prototypes = np.array([V[merged[free] == k].mean(axis=0) for k in range(23)])
    held = soft_sizes(V, prototypes, np.zeros(23))
    found = np.square(np.log(expected.unlabelled / held)).mean()
    return max(0.0, 1 - expected.log_variance / found)


def test_known_classes_show_how_much_the_expectation_counts():
    """That one component is twice as large is a surprise, unless sizes have a long tail."""
    equal = [gain_of_a_merged_pair(np.full(24, 60), seed) for seed in range(7)]
    tails = [(120 * 10 ** -np.random.default_rng(seed).random(24)).astype(int) for seed in range(7)]
    uneven = [gain_of_a_merged_pair(sizes, seed) for seed, sizes in enumerate(tails)]
    assert np.median(equal) > 0.5  # by chance, the numbers of labels differ a little more or less
    assert max(equal) == 1
    assert max(uneven) < 0.3


def test_it_stops_where_sizes_are_as_expected():
    V = np.repeat(np.eye(3), 20, axis=0)
    fitted = fit(V, np.eye(3), 1, np.full(3, 20.0))
    np.testing.assert_allclose(fitted.prototypes, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(fitted.offsets, 0, atol=1e-12)
    np.testing.assert_allclose(fitted.sizes, 20)
    assert fitted.converged


def test_it_says_so_if_it_has_not_come_to_an_end(monkeypatch):
    V, prototypes, sizes = unit_length()
    assert fit(V, prototypes, 2, sizes).converged
    monkeypatch.setattr(module, "_N_ROUNDS", 2)
    assert not fit(V, prototypes, 2, sizes).converged


def test_what_was_given_stays_as_it_was():
    V, prototypes, sizes = unit_length()
    kept = V.copy(), prototypes.copy(), sizes.copy()
    fit(V, prototypes, 2, sizes)
    for given, before in zip((V, prototypes, sizes), kept, strict=True):
        np.testing.assert_array_equal(given, before)


def test_a_known_prototype_far_from_all_rows_is_given_its_size_too():
    V, _, _ = unit_length()
    V = unit_rows(V + 10 * np.eye(5)[0])
    prototypes = np.array([[1.0, 0, 0, 0, 0], [-1.0, 0, 0, 0, 0]])
    sizes = np.array([153.0, 50.0])
    for dtype in (np.float64, np.float32):
        fitted = fit(V.astype(dtype), prototypes, 2, sizes)
        assert fitted.offsets[1] - fitted.offsets[0] > 3  # of squared distances of nearly 4
        np.testing.assert_allclose(
            soft_sizes(V, fitted.prototypes, fitted.offsets), sizes, rtol=0.02
        )


def test_rows_go_where_the_squared_distance_less_the_offset_is_smallest():
    V, prototypes, sizes = unit_length()
    fitted = fit(V, prototypes, 2, sizes)
    squared = ((V[:, None] - fitted.prototypes) ** 2).sum(axis=2)
    labels = nearest_centre(V, fitted.prototypes, fitted.offsets)[0]
    np.testing.assert_array_equal(labels, (squared - fitted.offsets).argmin(axis=1))
    assert (labels != squared.argmin(axis=1)).any()


def test_blocks_of_few_rows_change_nothing(request):
    V, given, sizes = unit_length()
    whole = fit(V, given, 2, sizes)
    request.getfixturevalue("tiny_blocks")
    for blocks, one in zip(fit(V, given, 2, sizes), whole, strict=True):
        np.testing.assert_allclose(blocks, one, rtol=1e-7)


def test_a_start_near_the_end_needs_few_rounds_and_the_gain_stays():
    """The gain is that of the partition without sizes, wherever the search starts."""
    V, prototypes, sizes = unit_length(n=400, k=9)
    found = np.square(np.log(sizes / soft_sizes(V, prototypes, np.zeros(9)))).mean()
    for share in (0.0, 0.4):
        expected_sizes = ExpectedSizes(sizes, share * found)
        first = fit_sizes(share_by_distance(V), prototypes, 3, expected_sizes)
        again = fit_sizes(share_by_distance(V), prototypes, 3, expected_sizes, first.prototypes)
        assert again.converged
        assert again.n_rounds < 0.7 * first.n_rounds
        np.testing.assert_allclose(again.sizes, first.sizes, rtol=0.1)
        np.testing.assert_array_equal(again.prototypes[:3], prototypes[:3])
