"""The grid of K finds a single peak with few evaluations."""

import numpy as np
import pytest

from newfound.bench.rivals.grid import N_COARSE, N_FINE, best_on_grid


@pytest.mark.parametrize("peak", [1, 2, 7, 60, 399, 400])
def test_the_grid_finds_a_single_peak(peak):
    tried = []

    def score(k):
        tried.append(k)
        return -abs(np.log(k / peak))

    found = best_on_grid(score, 1, 400)
    assert found == pytest.approx(peak, rel=0.05)
    assert len(tried) == len(set(tried)) <= N_COARSE + N_FINE
    assert {1, 400} <= set(tried)


def test_the_grid_is_left_when_it_only_gets_worse():
    tried = []
    best_on_grid(lambda k: tried.append(k) or -abs(k - 5), 1, 10_000, n_worse=3)
    assert max(tried) < 200
