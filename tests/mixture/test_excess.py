"""Where added rows crowd."""

import numpy as np
import pytest
from scipy.special import xlogy

from newfound.mixture.excess import LARGEST, largest_excess, log_excess_ratio, neighbourhoods


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.fixture
def rows():
    """Two categories of 60 rows and a lump of 12 within the first, in a random order."""
    rng = np.random.default_rng(4)
    centres = np.repeat(np.eye(3, 8), [60, 60, 12], axis=0)
    centres[120:, 0] += 0.6
    V = unit(centres + 0.15 * rng.normal(size=centres.shape))
    part = np.repeat([0, 1, 2], [60, 60, 12])
    order = rng.permutation(len(V))
    return V[order], part[order]


def test_neighbourhoods_are_sorted_by_distance_and_begin_with_the_row_itself(rows):
    V = rows[0]
    nearest = neighbourhoods(V)
    assert nearest.shape == (len(V), LARGEST)
    np.testing.assert_array_equal(nearest[:, 0], np.arange(len(V)))
    distances = np.linalg.norm(V[5] - V, axis=1)
    np.testing.assert_array_equal(nearest[5], np.argsort(distances)[:LARGEST])


@pytest.mark.parametrize(("a", "e", "k"), [(6, 2.5, 9), (9, 2.5, 9), (2, 2.5, 9), (0, 0.0, 4)])
def test_the_ratio_is_that_of_two_binomial_likelihoods(a, e, k):
    def log_likelihood(share):
        return xlogy(a, share) + xlogy(k - a, 1 - share)

    slow = log_likelihood(a / k) - log_likelihood(e / k) if a > e else 0
    fast = log_excess_ratio(np.array([[float(a)]]), np.array([[e]]), np.array([k]))
    np.testing.assert_allclose(fast, slow)


def test_a_lump_of_added_rows_is_found(rows):
    V, part = rows
    rng = np.random.default_rng(0)
    is_added = (part == 2) | (rng.random(len(V)) < 0.1)
    excess = largest_excess(neighbourhoods(V), is_added, np.minimum(part, 1) * (part != 2), rng)
    assert excess.p_value == 1 / 200
    assert (part[excess.rows] == 2).mean() > 0.7


def test_a_category_that_grew_everywhere_is_no_excess(rows):
    V, part = rows
    rng = np.random.default_rng(0)
    is_added = rng.random(len(V)) < np.where(part == 1, 0.7, 0.1)
    labels = (part == 1).astype(int)
    assert largest_excess(neighbourhoods(V), is_added, labels, rng).p_value > 0.05
    # without the categories it would be one
    assert largest_excess(neighbourhoods(V), is_added, 0 * labels, rng).p_value == 1 / 200


def test_p_values_are_right_if_nothing_is_new(rows):
    V, part = rows
    rng = np.random.default_rng(1)
    nearest, labels = neighbourhoods(V), part
    p_values = [
        largest_excess(nearest, rng.random(len(V)) < 0.3, labels, rng).p_value for _ in range(20)
    ]
    assert 0.3 < np.mean(p_values) < 0.7
    assert np.mean(np.array(p_values) <= 0.1) < 0.25


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_few_rows_are_no_excess(n):
    V = unit(np.random.default_rng(0).normal(size=(n, 3)))
    everything = np.ones(n, dtype=bool)
    nearest = neighbourhoods(V)
    excess = largest_excess(nearest, everything, np.zeros(n, int), np.random.default_rng(0))
    assert (excess.p_value, len(excess.rows)) == (1.0, 0)
