"""Samples of large collections, and labels given at random or by quota."""

import numpy as np

from newfound.mixture.counting.drawing import labelled_by_class, sample_rows


def test_a_sample_keeps_every_class():
    codes = np.where(np.arange(500) % 100 == 0, np.arange(500) // 100, -1)
    taken = sample_rows(codes, 30, np.random.default_rng(0))
    assert set(codes[taken]) == {-1, 0, 1, 2, 3, 4}
    assert 30 <= taken.sum() <= 35


def test_a_class_with_one_label_is_in_every_sample():
    codes = np.full(150, -1)
    codes[77] = 0
    for seed in range(10):
        assert sample_rows(codes, 20, np.random.default_rng(seed))[77]


def test_few_rows_are_all_taken():
    assert sample_rows(np.array([0, -1, 1]), 3, np.random.default_rng(0)).all()


def test_equal_numbers_of_labels_are_a_quota():
    assert labelled_by_class(np.full(15, 10))
    assert not labelled_by_class(np.random.default_rng(0).binomial(40, 0.25, 15))
