"""Long tails: sizes, order of the classes, and the rows that stay."""

import numpy as np
import pytest

from newfound.bench.datasets import DataSet, load_dataset
from newfound.bench.datasets.long_tail import LONG_TAILS, LongTail, cut_long_tail
from newfound.bench.protocol import bench_settings
from newfound.bench.splits import make_split


@pytest.fixture
def whole():
    """Ten classes of 100 rows, mixed; the odd ones are known."""
    truth = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 100))
    array = np.arange(1000).reshape(-1, 1, 1, 1)  # its own row number is the image
    return DataSet("x", truth, tuple("abcdefghij"), (1, 3, 5, 7, 9), array=array, n_labelled=9)


def test_sizes_fall_by_a_factor_and_rows_keep_their_order(whole, monkeypatch):
    monkeypatch.setitem(LONG_TAILS, "x-lt", LongTail("x", 10, known_first=True))
    cut = cut_long_tail(whole, "x-lt")
    expected = [int(100 * 10 ** (-rank / 9) + 1e-9) for rank in range(10)]
    assert expected[0] == 100
    assert expected[-1] == 10
    order = [1, 3, 5, 7, 9, 0, 2, 4, 6, 8]  # known classes are the large ones
    assert [int((cut.truth == number).sum()) for number in order] == expected
    rows = cut.array.ravel()
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(cut.truth, whole.truth[rows])
    assert (cut.name, cut.known, cut.n_labelled) == ("x-lt", whole.known, None)
    again = cut_long_tail(whole, "x-lt")
    np.testing.assert_array_equal(again.array, cut.array)
    make_split(cut)  # the field's sizes are not expected


def test_known_and_novel_classes_share_the_tail_of_bacon(whole, monkeypatch):
    monkeypatch.setitem(LONG_TAILS, "x-lt", LongTail("x", 100, known_first=False))
    sizes = np.bincount(cut_long_tail(whole, "x-lt").truth)
    assert sorted(sizes) == sorted(int(100 * 100 ** (-r / 9) + 1e-9) for r in range(10))
    known = sizes[[1, 3, 5, 7, 9]]
    assert known.min() < 10
    assert sizes[[0, 2, 4, 6, 8]].max() > 10


def test_a_long_tail_is_a_data_set_of_the_benchmark(tmp_path):
    digits = load_dataset("digits-lt", tmp_path)
    sizes = np.bincount(digits.truth)
    assert sizes[0] > 9 * sizes[9]
    assert len(digits.array) == len(digits.truth) == sizes.sum() < 1797
    assert bench_settings("digits-lt") == bench_settings("digits")
    assert bench_settings("cifar100-lt", "resnet18").network.image_size == 32


def test_a_class_that_is_small_already_keeps_all_its_rows(whole, monkeypatch):
    truth = whole.truth.copy()
    truth[truth == 3] = 1  # 200 of one, none of the other
    truth[np.flatnonzero(truth == 1)[:20]] = 3
    monkeypatch.setitem(LONG_TAILS, "x-lt", LongTail("x", 2, known_first=True))
    cut = cut_long_tail(
        DataSet("x", truth, whole.class_names, whole.known, array=whole.array), "x-lt"
    )
    assert (cut.truth == 3).sum() == 20
