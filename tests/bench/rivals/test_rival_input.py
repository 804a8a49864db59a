"""The accuracy of a partition on labelled rows, against a slow second way."""

from itertools import permutations

import numpy as np
import pytest

from newfound.bench.rivals.rival_input import RivalInput


def slow_accuracy(codes, labels):
    """Try every match of clusters to classes."""
    classes, clusters = np.unique(codes), np.unique(labels)
    slots = [*classes, *[-1] * max(0, len(clusters) - len(classes))]
    return max(
        sum(
            np.sum((labels == cluster) & (codes == slot))
            for cluster, slot in zip(clusters, match, strict=False)
        )
        for match in permutations(slots)
    ) / len(codes)


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 5])
def test_accuracy_is_that_of_the_best_match_on_labelled_rows(n_clusters):
    rng = np.random.default_rng(n_clusters)
    codes, labels = rng.integers(-1, 3, 40), rng.integers(0, n_clusters, 40)
    rows = RivalInput(np.empty((40, 1)), np.empty((40, 1)), codes, 3, 40, 0)
    labelled = codes >= 0
    assert rows.accuracy(labels) == pytest.approx(slow_accuracy(codes[labelled], labels[labelled]))
