import numpy as np
import pytest
from scipy.special import gammaln

from newfound.errors import InputError
from newfound.mixture.hastings import (
    log_count,
    log_merge_ratio,
    log_split_ratio,
)
from newfound.mixture.prior import NIWPrior
from newfound.mixture.stats import GaussianStats


@pytest.fixture
def prior():
    return NIWPrior(np.zeros(3), 0.5, 6.0, 0.4 * np.eye(3))


def stats_of(n, seed, shift=0.0):
    X = np.random.default_rng(seed).normal(size=(n, 3)) + shift
    return GaussianStats.from_points(X)


def slow_log_factorial(n):
    return sum(np.log(i) for i in range(1, n + 1))


@pytest.mark.parametrize(("term", "less"), [("gamma", 1), ("factorial", 0)])
def test_split_ratio_is_equation_5(prior, term, less):
    first, second = stats_of(9, 0), stats_of(14, 1)
    whole = first + second
    expected = (
        slow_log_factorial(9 - less)
        + prior.log_marginal(first)
        + slow_log_factorial(14 - less)
        + prior.log_marginal(second)
        - slow_log_factorial(23 - less)
        - prior.log_marginal(whole)
    )
    assert log_split_ratio(whole, first, second, prior, term) == pytest.approx(expected)


@pytest.mark.parametrize("term", ["gamma", "factorial"])
def test_merging_undoes_splitting(prior, term):
    a, b = stats_of(8, 2), stats_of(30, 3, shift=1.0)
    assert log_merge_ratio(a, b, prior, term) == -log_split_ratio(a + b, a, b, prior, term)


def test_ratios_are_symmetric_and_stack(prior):
    a, b, c = stats_of(8, 4), stats_of(9, 5), stats_of(20, 6, shift=2.0)
    forward = log_merge_ratio(a, c, prior)
    assert forward == pytest.approx(log_merge_ratio(c, a, prior))
    stacked = log_merge_ratio(GaussianStats.stack([a, b]), GaussianStats.stack([c, c]), prior)
    np.testing.assert_allclose(stacked, [forward, log_merge_ratio(b, c, prior)])


def test_distant_groups_split_and_one_group_does_not(prior):
    near = log_split_ratio(
        stats_of(40, 7) + stats_of(40, 8), stats_of(40, 7), stats_of(40, 8), prior
    )
    far_half = stats_of(40, 8, shift=8.0)
    far = log_split_ratio(stats_of(40, 7) + far_half, stats_of(40, 7), far_half, prior)
    assert near < 0 < far


def test_count_term_of_nothing_is_finite():
    assert log_count(np.array(0.0)) == 0
    np.testing.assert_allclose(log_count(np.array([5.0])), gammaln(5))
    with pytest.raises(InputError, match="'gamma' or 'factorial'"):
        log_count(np.array(1.0), "n!")
