"""Labels that training does not see."""

import numpy as np
import pytest

from newfound.deep.holdout import hold_out, split_labels
from newfound.labels import encode_labels


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_a_share_of_each_class_is_held_out_and_never_all_of_one(share):
    sizes = [1, 2, 3, 10, 100]
    codes = np.random.default_rng(0).permutation(np.repeat([-1, 0, 1, 2, 3, 4], [50, *sizes]))
    held_out = hold_out(codes, share, seed=0)
    assert not held_out[codes == -1].any()
    for code, size in enumerate(sizes):
        n_held = held_out[codes == code].sum()
        assert n_held < size
        assert n_held == min(round(share * size), size - 1)
    np.testing.assert_array_equal(hold_out(codes, share, seed=0), held_out)
    if 0 < share < 1:
        assert (hold_out(codes, share, seed=1) != held_out).any()


def test_the_numbers_of_the_classes_do_not_matter():
    codes = np.random.default_rng(0).integers(-1, 5, size=200)
    renumbered = np.array([3, 1, 4, 0, 2, -1])[codes]  # -1, the last, stays
    np.testing.assert_array_equal(hold_out(codes, 0.3, seed=0), hold_out(renumbered, 0.3, seed=0))


def test_nothing_is_held_out_without_labels():
    assert not hold_out(np.full(5, -1), 0.5, seed=0).any()


def test_training_does_not_see_held_out_labels_and_the_end_sees_all():
    y = ["a", None, "b", "a", "b", "a", None, "b"]
    partial = encode_labels(y, len(y))
    split = split_labels(partial, 0.5, 0)
    assert split.y == y
    np.testing.assert_array_equal(split.all_codes, partial.codes)
    np.testing.assert_array_equal(split.held_out, hold_out(partial.codes, 0.5, 0))
    assert split.held_out.sum() == 4
    np.testing.assert_array_equal(split.codes, np.where(split.held_out, -1, partial.codes))


def test_with_a_share_of_nothing_training_sees_all_labels():
    partial = encode_labels([0, 1, 1, None], 4)
    split = split_labels(partial, 0.0, 0)
    assert not split.held_out.any()
    np.testing.assert_array_equal(split.codes, partial.codes)
