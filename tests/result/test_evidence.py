"""What one more pass of moves would bring, from the items themselves."""

import numpy as np
import pytest

from newfound.mixture.hastings import log_merge_ratio
from newfound.mixture.stats import GaussianStats
from newfound.result.evidence import weigh_moves


def test_the_evidence_is_that_of_the_categories_shown(result):
    """Gap and log H of the merge with its partner, from the items themselves."""
    evidence, codes = result.profiles.evidence, result.assigned.labels
    stats = GaussianStats.from_labels(result.V, codes, 10)
    for i, row in enumerate(result.categories.itertuples()):
        other = evidence.merge_partner[i]
        assert f"It differs from {result.names[other]}, " in row.why_not_merged
        log_ratio = float(log_merge_ratio(stats[i], stats[other], result.mixture.prior_))
        assert evidence.merge_log_ratio[i] == pytest.approx(log_ratio)
        shared = stats.count * stats.count[i] / (stats.count + stats.count[i])
        gaps = shared * np.square(stats.mean - stats.mean[i]).sum(axis=1)
        assert evidence.merge_gap[i] == pytest.approx(gaps[other])
        if i >= 5:  # of the three nearest, the one that it differs least from
            nearest = np.argsort(np.linalg.norm(stats.mean - stats.mean[i], axis=1))[1:4]
            assert other == nearest[gaps[nearest].argmin()]


def test_splits_are_weighed_for_novel_categories_only(result):
    evidence = result.profiles.evidence
    assert np.isnan(evidence.split_gap[:5]).all()
    assert np.isnan(evidence.split_log_ratio[:5]).all()
    assert (evidence.split_gap[5:] > 0).all()
    assert np.isfinite(evidence.split_log_ratio[5:]).all()


def test_the_evidence_of_a_result_can_be_worked_out_again(result):
    again = weigh_moves(result.mixture, result.V, result.assigned.labels)
    for first, second in zip(again, result.profiles.evidence, strict=True):
        np.testing.assert_array_equal(first, second)
