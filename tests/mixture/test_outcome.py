import numpy as np
import pytest

from newfound.mixture.outcome import agree


def test_alone_a_partition_stays_and_says_nothing_of_its_stability():
    labels, stability = agree(np.array([0, 1, 1]), [], n_known=1)
    np.testing.assert_array_equal(labels, [0, 1, 1])
    assert np.isnan(stability).all()


def test_other_numbers_for_the_same_partition_agree_fully():
    reference = np.array([0, 0, 1, 1, 2, 2, 3])
    renumbered = np.array([0, 0, 3, 3, 1, 1, 2])
    labels, stability = agree(reference, [renumbered, renumbered], n_known=1)
    np.testing.assert_array_equal(labels, reference)
    np.testing.assert_array_equal(stability, 1)


def test_known_classes_only_match_themselves():
    # the rows of class 0 and 1 changed places: no renaming, but disagreement
    labels, stability = agree(np.array([0, 0, 1, 1]), [np.array([1, 1, 0, 0])] * 2, n_known=2)
    np.testing.assert_array_equal(labels, [1, 1, 0, 0])
    np.testing.assert_array_equal(stability, 0)


def test_the_majority_wins_and_a_tie_goes_to_the_reference():
    reference = np.array([0, 0, 0, 1, 1, 1])
    moved = np.array([0, 0, 1, 1, 1, 1])
    np.testing.assert_array_equal(agree(reference, [moved], 0)[0], reference)
    labels, stability = agree(reference, [moved, moved], 0)
    np.testing.assert_array_equal(labels, moved)
    assert stability == pytest.approx([2 / 3, 3 / 4])


def test_more_and_fewer_components_than_the_reference():
    reference = np.array([0, 0, 1, 1, 2, 2])
    fewer, more = np.array([0, 0, 1, 1, 1, 1]), np.array([0, 1, 2, 2, 3, 4])
    labels, stability = agree(reference, [fewer, more], n_known=0)
    np.testing.assert_array_equal(labels, reference)
    assert stability[0] == pytest.approx((1 + 1 / 2) / 2)
    # one of the two that `fewer` holds together finds a partner in it, the other none
    assert stability[1] + stability[2] == pytest.approx((1 / 2 + 0) / 2 + (1 + 1 / 2) / 2)


def test_no_component_is_voted_away():
    reference = np.array([0, 0, 0, 0, 1, 2, 2, 2, 2])
    other = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1])
    labels, stability = agree(reference, [other, other], n_known=0)
    np.testing.assert_array_equal(labels, reference)
    assert stability[1] == 0
