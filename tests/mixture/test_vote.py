import tracemalloc

import numpy as np
import pytest

from newfound.mixture import outcome
from newfound.mixture.outcome import vote


def dense_vote(reference, aligned, n_components):
    """The vote with an array of rows × components."""
    votes = np.zeros((len(reference), n_components))
    votes[np.arange(len(reference)), reference] = 1.5
    for labels in aligned:
        voted = np.flatnonzero(labels >= 0)
        votes[voted, labels[voted]] += 1
    return votes.argmax(axis=1)


@pytest.mark.parametrize("n_others", [1, 2, 3, 4, 7])
def test_the_vote_is_that_of_an_array_of_rows_and_components(n_others):
    rng = np.random.default_rng(n_others)
    candidates = rng.integers(-1, 5, size=(1 + n_others, 2000))
    candidates[0] = rng.integers(0, 5, size=2000)
    np.testing.assert_array_equal(
        outcome._most_voted(candidates, 5), dense_vote(candidates[0], candidates[1:], 5)
    )


def test_the_vote_needs_no_array_of_rows_and_components():
    n, n_components = 20_000, 400
    reference = np.arange(n) % n_components
    tracemalloc.start()
    vote(reference, [np.roll(reference, 1), reference], n_known=10)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < n * n_components * 4 / 2
