"""The ratio of sizes: what may be said about it, the prior, and the evidence."""

import math

import numpy as np
import pytest
from scipy import stats

from newfound.errors import InputError
from newfound.mixture.counting import novel_size
from newfound.mixture.counting.novel_size import check_sizes, judge_sizes, parse_sizes
from newfound.mixture.counting.reach import Reach


def reach_of(tau, slope=0.8, class_variance=0.05, own_variance=1e-4, n_known=20):
    """Evidence without noise for this τ."""
    return Reach(slope * tau, slope, class_variance, own_variance, n_known)


def mean(ratio):
    return float(ratio.values @ ratio.weights)


def deviation(ratio):
    return math.sqrt(float(np.square(ratio.values - mean(ratio)) @ ratio.weights))


# --- what may be said


@pytest.mark.parametrize("sizes", ["unknown", "alike", 0.5, 1, 3.0, np.float32(0.5), np.int64(2)])
def test_words_and_ratios_are_taken(sizes):
    check_sizes(sizes)


@pytest.mark.parametrize(
    "sizes",
    *[["", "none", "0.5", "Alike", 0, -1.0, math.nan, math.inf, True, False, None, [0.5], {}, 1j]],
)
def test_anything_else_is_refused(sizes):
    with pytest.raises(InputError, match='sizes must be "unknown", "alike", or a number') as caught:
        check_sizes(sizes)
    assert repr(sizes) in str(caught.value)


def test_so_is_an_array():
    with pytest.raises(InputError, match="sizes must be"):
        check_sizes(np.array([0.5, 1.0]))


@pytest.mark.parametrize(
    ("text", "sizes"),
    [("unknown", "unknown"), ("alike", "alike"), ("none", None), ("0.5", 0.5), ("2", 2.0)],
)
def test_texts_are_read(text, sizes):
    assert parse_sizes(text) == sizes


@pytest.mark.parametrize("text", ["", "Unknown", "half", "0", "-1", "nan", "inf", "1:2", "None"])
def test_other_texts_are_refused(text):
    with pytest.raises(
        InputError, match="sizes must be unknown, alike, or the mean size"
    ) as caught:
        parse_sizes(text)
    assert repr(text) in str(caught.value)


# --- the distribution of τ


@pytest.mark.parametrize("tau", [-1.5, -0.7, 0.7, 1.5])
def test_clear_evidence_is_followed(tau):
    """τ > 0: known classes are the larger ones."""
    ratio = judge_sizes("unknown", reach_of(tau), 15, 0.05)
    assert ratio.weights.sum() == pytest.approx(1)
    assert mean(ratio) == pytest.approx(tau, abs=0.35 * abs(tau))
    assert mean(ratio) * tau > 0
    assert abs(mean(ratio) - tau) < 2 * deviation(ratio)
    assert ratio.alike < 0.1
    assert ratio.decided_by == "data"


def test_evidence_for_one_size_is_followed_too():
    ratio = judge_sizes("unknown", reach_of(0.0), 15, 0.05)
    assert mean(ratio) == pytest.approx(0, abs=0.02)
    assert ratio.alike > 0.8
    assert ratio.decided_by == "data"


@pytest.mark.parametrize("reach", [None, reach_of(1.0, slope=0.02), reach_of(1, own_variance=9)])
def test_without_evidence_the_prior_decides(reach):
    ratio = judge_sizes("unknown", reach, 15, 0.05)
    assert ratio.decided_by == "prior"
    assert ratio.alike == pytest.approx(0.6, abs=0.1)
    # two bells around 0: 0.4 of it log 4 wide, the rest 0.05 wide
    assert deviation(ratio) == pytest.approx(math.sqrt(0.4) * math.log(4), rel=0.2)
    assert mean(ratio) == pytest.approx(0, abs=0.2)


def test_the_weights_are_those_of_the_prior_times_the_density():
    given = Reach(0.5, 0.7, 0.08, 0.01, 12)
    ratio = judge_sizes("unknown", given, 9.0, 0.2)
    logs = []
    some = slice(0, None, 20)
    for tau in ratio.values[some]:
        step = 0.01  # bells are as wide as the grid, at least
        narrow, wide = math.hypot(0.2, step), math.hypot(math.log(4), step)
        prior = 0.6 * stats.norm.pdf(tau, 0, narrow) + 0.4 * stats.norm.pdf(tau, 0, wide)
        variance = 0.08 * (1 / 12 + 1 / max(1, 9.0 * math.exp(tau))) + 0.01
        variance += (0.5 * 0.7 * tau) ** 2 + 1e-6
        density = stats.t.logpdf(0.5, 11, loc=0.7 * tau, scale=math.sqrt(variance))
        logs.append(math.log(prior) + density)
    expected = np.exp(np.array(logs) - max(logs))
    weights = ratio.weights[some] / ratio.weights[some].sum()
    np.testing.assert_allclose(weights, expected / expected.sum(), rtol=1e-6, atol=1e-12)


def test_the_sign_of_the_evidence_is_that_of_the_ratio():
    small, large = (judge_sizes("unknown", reach_of(tau), 15, 0.05) for tau in (1.0, -1.0))
    assert mean(small) > 0 > mean(large)


def test_less_noise_and_more_classes_leave_less_open():
    widths = [
        deviation(judge_sizes("unknown", reach_of(1.0, class_variance=noise, n_known=n), 15, 0.05))
        for noise, n in [(1.0, 20), (0.05, 20), (0.05, 200)]
    ]
    assert widths[0] > widths[1] > widths[2]


@pytest.mark.parametrize("ratio", [0.1, 0.5, 1.0, 3.0])
def test_a_given_ratio_is_obeyed_whatever_the_evidence(ratio):
    alike = judge_sizes("alike", reach_of(1.0), 15, 0.2)
    given = judge_sizes(ratio, reach_of(1.0), 15, 0.2)
    np.testing.assert_allclose(given.values, alike.values - math.log(ratio))
    np.testing.assert_array_equal(given.weights, alike.weights)
    assert given.decided_by == alike.decided_by == "given"
    assert deviation(given) == pytest.approx(0.2, rel=0.01)
    assert mean(alike) == pytest.approx(0, abs=1e-9)
    assert (alike.alike, given.alike) == (1, 0)


def test_with_sizes_that_all_are_equal_a_given_ratio_has_one_value():
    ratio = judge_sizes("alike", None, 15, 0.0)
    assert deviation(ratio) <= novel_size._GRID[1] - novel_size._GRID[0]
