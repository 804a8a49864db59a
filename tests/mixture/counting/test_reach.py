"""How large novel classes are: the reach by hand, and as the sizes of classes change."""

import numpy as np
import pytest

from newfound.mixture.counting import reach as reaching
from newfound.mixture.counting.reach import Novelty, measure_reach
from newfound.mixture.projection import unit_rows


def sized(known, novel, seed=0, spread=0.1, rate=0.5, d=16):
    """Blobs of so many known and novel rows, and codes with a share of the known rows labelled."""
    rng = np.random.default_rng(seed)
    sizes = [*known, *novel]
    truth = np.repeat(np.arange(len(sizes)), sizes)
    centres = unit_rows(rng.normal(size=(len(sizes), d)))
    V = unit_rows(centres[truth] + spread * rng.normal(size=(len(truth), d))).astype(np.float32)
    labelled = (truth < len(known)) & (rng.random(len(truth)) < rate)
    return V, np.where(labelled, truth, -1), truth


def novelty_of(truth, n_known, known=0.0, novel=1.0):
    """Every row looks like what it is; hidden rows look like novel ones."""
    looks = np.where(truth < n_known, known, novel)
    return Novelty(looks, np.full(len(truth), known), np.full(len(truth), novel))


def measure(V, codes, truth, seed=1, odds_error=0.01, **looks):
    n_known = int(codes.max()) + 1
    n_labelled = (codes >= 0).sum()
    odds = ((truth < n_known).sum() - n_labelled) / n_labelled
    novelty = novelty_of(truth, n_known, **looks)
    rng = np.random.default_rng(seed)
    return measure_reach(V, codes, novelty, odds=odds, odds_error=odds_error, rng=rng)


# --- against plain loops


def slow_counts(rows, V, squared_distances):
    counts = [
        [sum(float(np.square(v - row).sum()) <= within + 1e-6 for v in V) for row in rows]
        for within in squared_distances
    ]
    return np.array(counts).T


def test_rows_within_reach_are_counted_as_in_a_loop(request):
    V, _, _ = sized([10, 10], [10])
    distances = np.array([0.013, 0.11, 0.7])
    expected = slow_counts(V[:12], V, distances)
    np.testing.assert_array_equal(reaching._count_within(V[:12], V, distances), expected)
    request.getfixturevalue("tiny_blocks")
    np.testing.assert_array_equal(reaching._count_within(V[:12], V, distances), expected)


def test_the_ratio_is_that_of_the_equations(monkeypatch):
    """Rows look novel by 0.7 or 0.2: known rows are subtracted, unseen novel rows made up for."""
    V, codes, _ = sized([12, 9, 14], [6, 8, 5, 9])
    distances = np.array([0.1, 0.2, 0.4])
    monkeypatch.setattr(reaching, "_choose_distances", lambda *given: distances)
    rng = np.random.default_rng(0)
    as_free, as_known, as_hidden = rng.uniform(0.5, 0.9, (3, len(V)))
    as_known *= 0.2
    odds = 0.8
    found = measure_reach(
        V,
        codes,
        Novelty(as_free, as_known, as_hidden),
        odds=odds,
        odds_error=0.05,
        rng=np.random.default_rng(1),
    )
    share = 1 / slow_counts(V, V, distances)
    labelled, free = np.flatnonzero(codes >= 0), np.flatnonzero(codes == -1)
    n_novel = len(free) - odds * len(labelled)
    ratios = []
    for place in range(3):
        one = share[:, place]
        of_known = sum(as_known[i] * one[i] for i in labelled) * odds
        seen = sum(as_hidden[i] * one[i] for i in labelled) / sum(one[i] for i in labelled)
        of_novel = (sum(as_free[i] * one[i] for i in free) - of_known) / seen
        ratios.append(np.log(of_novel / n_novel / np.mean([one[i] for i in labelled])))
    assert found.log_ratio == pytest.approx(np.mean(ratios), rel=1e-6)
    assert found.own_variance == pytest.approx((0.05 * len(labelled) / n_novel) ** 2)
    assert found.n_known == 3


def test_known_classes_make_about_one_cluster_each_at_the_distances():
    V, codes, truth = sized([30] * 10, [30] * 10, rate=0.4)
    labelled = np.flatnonzero(codes >= 0)
    weight = (truth < 10).sum() / len(labelled) / 10  # (1 + odds) / K^l
    distances = reaching._choose_distances(V, labelled, weight, np.random.default_rng(0))
    assert len(distances) == 8
    assert (np.diff(distances) > 0).all()
    rows = V[truth < 10]
    clusters = (1 / reaching._count_within(rows, V, distances)).sum(axis=0) / 10
    np.testing.assert_allclose(clusters, np.geomspace(2.8, 0.7, 8), rtol=0.15)


def test_the_slope_is_that_of_plain_loops(monkeypatch):
    monkeypatch.setattr(reaching, "_N_SPLITS", 3)
    V, codes, _ = sized([10, 8, 12, 9], [10, 10])
    labelled, odds = np.flatnonzero(codes >= 0), 0.9
    rows, classes, distances = V[labelled], codes[labelled], np.array([0.15, 0.3])
    within = reaching._count_within(rows, V, distances)
    splits = reaching._Splits.draw(classes, 4, np.random.default_rng(0))
    found = reaching._slope(rows, within, distances, splits, odds)
    products = squares = 0.0
    for split in range(3):
        for side in (1, 0):
            half = splits.in_half[:, split] == side
            gone = half & (splits.dropped[:, split] == 1)
            stay, other = half & ~gone, ~half
            if stay.sum() < 2 or not gone.any():
                continue
            tau = np.log(half.sum() * (1 + odds) / (half.sum() * (1 + odds) - gone.sum()))
            changes = []
            for place, distance in enumerate(distances):
                before = slow_counts(rows, V, [distance])[:, 0]
                after = before - slow_counts(rows, rows[gone], [distance])[:, 0]
                of_half = np.mean(1 / after[stay]) / np.mean(1 / before[stay])
                of_other = np.mean(1 / after[other]) / np.mean(1 / before[other])
                changes.append(np.log(of_half) - np.log(of_other))
                np.testing.assert_array_equal(before, within[:, place])
            products += np.mean(changes) * tau
            squares += tau**2
    assert found == pytest.approx(products / squares, rel=1e-4)


# --- as sizes change


def test_the_ratio_grows_as_novel_classes_become_smaller():
    """At one number of novel rows: 6, 12 and 24 classes, so that τ is -log 2, 0 and log 2."""
    found = [measure(*sized([24] * 12, [size] * (288 // size))) for size in (48, 24, 12)]
    ratios = [reach.log_ratio for reach in found]
    assert ratios[1] == pytest.approx(0, abs=0.15)
    slope = found[1].slope
    assert ratios[0] == pytest.approx(-slope * np.log(2), abs=0.2)
    assert ratios[2] == pytest.approx(slope * np.log(2), abs=0.2)


@pytest.mark.parametrize(("known", "novel"), [(0.1, 0.9), (0.0, 0.4), (0.25, 0.6)])
def test_rows_that_look_less_like_what_they_are_change_little(known, novel):
    data = sized([24] * 12, [12] * 24)
    sure, unsure = measure(*data), measure(*data, known=known, novel=novel)
    assert unsure.log_ratio == pytest.approx(sure.log_ratio, abs=0.12)


@pytest.mark.parametrize("spread", [0.05, 0.1, 0.4, 1.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_slope_lies_between_0_and_1(spread, seed):
    """Up to chance: 1 if classes lie apart, and less the more they overlap."""
    slope = measure(*sized([24] * 10, [24] * 10, seed=seed, spread=spread)).slope
    assert 0 < slope < 1.1
    assert (slope > 0.7) == (spread <= 0.1)


@pytest.mark.parametrize("seed", range(3))
def test_the_noise_explains_the_ratio_of_classes_of_one_size(seed):
    found = measure(*sized([24] * 12, [24] * 12, seed=seed))
    variance = found.class_variance * (1 / 12 + 1 / 12) + found.own_variance
    assert abs(found.log_ratio) < 3 * np.sqrt(variance)
    assert 0 < found.class_variance < 1


def test_classes_of_other_density_make_the_noise_larger():
    V, codes, truth = sized([24] * 12, [24] * 12)
    spreads = np.where(truth % 2, 0.02, 0.2)
    rng = np.random.default_rng(0)
    rows = unit_rows(np.eye(24)[truth] + spreads[:, None] * rng.normal(size=(len(truth), 24)))
    mixed = measure(rows.astype(np.float32), codes, truth)
    assert mixed.class_variance > 3 * measure(V, codes, truth).class_variance


def test_labels_of_other_classes_are_background():
    """Rows of absent classes are neither known nor novel, but lie within reach of others."""
    V, codes, truth = sized([24] * 6, [24] * 6)
    absent = np.tile(V[codes == 0], (3, 1))
    codes_with = np.concatenate([codes, np.full(len(absent), -2)])
    truth_with = np.concatenate([truth, np.full(len(absent), -1)])
    novelty = novelty_of(truth_with, 6)
    rng = np.random.default_rng(1)
    n_labelled = (codes >= 0).sum()
    odds = ((truth < 6).sum() - n_labelled) / n_labelled
    found = measure_reach(
        np.concatenate([V, absent]), codes_with, novelty, odds=odds, odds_error=0.01, rng=rng
    )
    assert found.n_known == 6
    assert found.log_ratio > measure(V, codes, truth).log_ratio  # class 0 seems to be larger


# --- when there is nothing to tell


@pytest.mark.parametrize(
    ("odds", "odds_error"),
    [
        (2.0, 0.01),  # more known rows than there are unlabelled ones
        (0.99, 5.0),  # how many are known is uncertain by more than all novel ones
    ],
)
def test_with_too_few_novel_rows_nothing_is_told(odds, odds_error):
    V, codes, truth = sized([20] * 4, [20])
    rng = np.random.default_rng(0)
    novelty = novelty_of(truth, 4)
    assert measure_reach(V, codes, novelty, odds=odds, odds_error=odds_error, rng=rng) is None


def test_rows_that_look_known_throughout_tell_nothing():
    V, codes, truth = sized([20] * 4, [20])
    assert measure(V, codes, truth, known=0.5, novel=1e-9) is None


def test_one_class_cannot_be_compared_with_another():
    assert measure(*sized([40], [20, 20])) is None


@pytest.mark.parametrize("quota", [1, 2])
def test_so_few_labels_that_hardly_any_can_be_dropped(quota):
    V, _, truth = sized([10, 10], [10, 10])
    codes = np.where((truth < 2) & (np.arange(40) % 10 < quota), truth, -1)
    found = measure(V, codes, truth)
    assert np.isfinite([*found]).all()
    assert found.slope >= 0.02


# --- samples


def test_many_rows_are_sampled(monkeypatch):
    V, codes, truth = sized([60] * 8, [20] * 24)
    whole = measure(V, codes, truth)
    monkeypatch.setattr(reaching, "MAX_ROWS", 480)
    sampled = measure(V, codes, truth)
    assert sampled.log_ratio != whole.log_ratio
    assert sampled.log_ratio == pytest.approx(whole.log_ratio, abs=0.35)
