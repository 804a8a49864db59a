import hashlib
import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from newfound.bench.datasets import DataSet, load_dataset
from newfound.bench.splits import Split, make_split
from newfound.errors import InputError


def data_set(truth, known, **others):
    truth = np.asarray(truth, dtype=np.int64)
    names = tuple(f"class {code}" for code in range(truth.max() + 1))
    return DataSet("made", truth, names, tuple(known), array=np.zeros((len(truth), 1)), **others)


@pytest.fixture
def shuffled():
    """Eight classes of 20 rows in no order; 1, 2, 4, 5 and 7 are known."""
    truth = np.random.default_rng(3).permutation(np.repeat(np.arange(8), 20))
    return data_set(truth, (1, 2, 4, 5, 7))


def split_slowly(truth, known, share=0.5):
    """The field's split, a row at a time; its code draws from a range, with seed 0."""
    old_rows = [row for row, code in enumerate(truth) if code in known]
    state = np.random.RandomState(0)
    drawn = state.choice(range(len(old_rows)), replace=False, size=int(share * len(old_rows)))
    labelled = {old_rows[place] for place in drawn}
    return [int(code) if row in labelled else -1 for row, code in enumerate(truth)]


def test_the_split_is_the_fields(shuffled):
    split = make_split(shuffled)
    assert split.y.tolist() == split_slowly(shuffled.truth, shuffled.known)
    assert split.rows.tolist() == list(range(160))
    np.testing.assert_array_equal(split.truth, shuffled.truth)
    assert split.known == (1, 2, 4, 5, 7)
    assert (split.n_labelled, split.n_unlabelled, split.n_known, split.n_novel) == (50, 110, 5, 3)
    np.testing.assert_array_equal(split.is_unlabelled, split.y == -1)


@given(
    st.lists(st.integers(0, 4), min_size=8, max_size=60),
    st.sets(st.integers(0, 4), min_size=1),
    st.floats(0.05, 1),
)
def test_the_split_is_the_fields_whatever_the_data(codes, known, share):
    truth = [0, 1, 2, 3, 4, *codes]
    known = tuple(sorted(known))
    expected = split_slowly(truth, known, share)
    if all(code == -1 for code in expected):
        with pytest.raises(InputError, match="less than one row"):
            make_split(data_set(truth, known), label_share=share)
    else:
        assert make_split(data_set(truth, known), label_share=share).y.tolist() == expected


@pytest.mark.parametrize(
    ("n_classes", "n_known", "sizes"), [(10, 5, (12_500, 37_500)), (100, 80, (20_000, 30_000))]
)
def test_sizes_of_cifar(n_classes, n_known, sizes):
    truth = np.random.default_rng(0).permutation(np.arange(50_000) % n_classes)
    data = data_set(truth, range(n_known), n_labelled=sizes[0], n_unlabelled=sizes[1])
    split = make_split(data)
    assert (split.n_labelled, split.n_unlabelled) == sizes


def test_other_sizes_than_the_fields_are_an_error_if_the_data_set_is_complete(shuffled):
    wrong = replace(shuffled, n_labelled=51, n_unlabelled=109)
    with pytest.raises(InputError, match=r"50 labelled and 110 unlabelled.*51 and 109"):
        make_split(wrong)
    assert make_split(replace(wrong, complete=False)).n_labelled == 50
    assert make_split(wrong, n_old=4).n_labelled == 40  # of these the field gives no sizes
    assert make_split(wrong, label_share=0.2).n_labelled == 20


def test_the_digits_have_this_split_on_every_machine(tmp_path):
    split = make_split(load_dataset("digits", tmp_path))
    assert (split.n_labelled, split.n_unlabelled, split.n_known, split.n_novel) == (450, 1347, 5, 5)
    assert split.checksum == "80ef08b14cf6"


def test_the_checksum_is_that_of_little_endian_numbers():
    truth, y, known = [3, 1, 2, 1], [-1, 1, -1, -1], (1,)
    digest = hashlib.sha256(struct.pack("<9q", *truth, *y, *known)).hexdigest()
    for kind in (np.int64, np.int32, ">i8"):
        split = Split(np.arange(4), np.array(y, kind), np.array(truth, kind), known)
        assert split.checksum == digest[:12]


def test_the_checksum_sees_truth_labels_and_known_classes(shuffled):
    split = make_split(shuffled)
    others = [
        replace(split, truth=np.roll(split.truth, 1)),
        replace(split, y=np.roll(split.y, 1)),
        replace(split, known=(1, 2, 4, 5)),
    ]
    assert len({split.checksum, *(other.checksum for other in others)}) == 4


def test_another_order_of_the_rows_is_another_draw_of_the_same_size(shuffled):
    order = np.argsort(shuffled.truth, kind="stable")
    ordered = replace(shuffled, truth=shuffled.truth[order])
    one, other = make_split(shuffled), make_split(ordered)
    assert one.n_labelled == other.n_labelled
    assert one.checksum != other.checksum
    assert set(np.flatnonzero(one.y != -1)) != set(order[other.y != -1])


# Table 10


def test_fewer_known_classes(shuffled):
    split = make_split(shuffled, n_old=2)
    assert split.known == (1, 2)
    assert split.y.tolist() == split_slowly(shuffled.truth, (1, 2))
    assert len(split.rows) == 160
    assert (split.n_labelled, split.n_unlabelled, split.n_known, split.n_novel) == (20, 140, 2, 6)


def test_all_known_classes_are_the_default(shuffled):
    assert make_split(shuffled, n_old=5).checksum == make_split(shuffled).checksum


@pytest.mark.parametrize("n_old", [-1, 0, 6])
def test_impossible_numbers_of_known_classes(shuffled, n_old):
    with pytest.raises(InputError, match=f"n_old is {n_old}, but made has 5 known classes"):
        make_split(shuffled, n_old=n_old)


# Table 9


def test_partial_overlap_leaves_out_unlabelled_rows_of_the_other_known_classes(shuffled):
    whole, part = make_split(shuffled), make_split(shuffled, overlap=2)
    gone = [row for row in range(160) if whole.y[row] == -1 and whole.truth[row] in (4, 5, 7)]
    assert sorted(set(range(160)) - set(part.rows.tolist())) == gone
    np.testing.assert_array_equal(part.y, whole.y[part.rows])
    np.testing.assert_array_equal(part.truth, shuffled.truth[part.rows])
    assert set(part.truth[part.is_unlabelled]) == {0, 1, 2, 3, 6}
    assert (part.n_labelled, part.known, part.n_novel) == (50, whole.known, 3)


def test_no_overlap_and_full_overlap(shuffled):
    none = make_split(shuffled, overlap=0)
    assert set(none.truth[none.is_unlabelled]) == {0, 3, 6}
    assert make_split(shuffled, overlap=5).checksum == make_split(shuffled).checksum


def test_overlap_of_fewer_known_classes(shuffled):
    split = make_split(shuffled, n_old=3, overlap=1)
    assert set(split.truth[split.is_unlabelled]) == {1, 0, 3, 5, 6, 7}
    assert split.known == (1, 2, 4)
    with pytest.raises(InputError, match="overlap is 4, but there are 3 known classes"):
        make_split(shuffled, n_old=3, overlap=4)


@pytest.mark.parametrize("overlap", [-1, 6])
def test_impossible_overlaps(shuffled, overlap):
    with pytest.raises(InputError, match=f"overlap is {overlap}, but there are 5"):
        make_split(shuffled, overlap=overlap)


# Table 11


def test_labelled_rows_alone(shuffled):
    whole, split = make_split(shuffled), make_split(shuffled, labelled_only="2/2")
    rows = [row for row in range(160) if whole.y[row] in (1, 2, 4, 5)]  # 7 takes no part
    assert split.rows.tolist() == rows
    assert split.truth.tolist() == whole.y[rows].tolist()
    assert split.y.tolist() == split_slowly(whole.y[rows], (1, 2))
    assert (split.known, split.n_known, split.n_novel) == ((1, 2), 2, 2)


def test_the_share_of_labelled_rows_alone_is_that_of_the_second_draw(shuffled):
    half, most = (make_split(shuffled, labelled_only="2/3", label_share=s) for s in (0.5, 0.9))
    np.testing.assert_array_equal(half.rows, most.rows)
    n_old_rows = int(np.isin(half.truth, (1, 2)).sum())
    assert (half.n_labelled, most.n_labelled) == (int(0.5 * n_old_rows), int(0.9 * n_old_rows))


@pytest.mark.parametrize("text", ["3/3", "0/2", "2/0", "2", "a/b", "2/2/1", "-1/2", ""])
def test_impossible_divisions_of_the_labelled_classes(shuffled, text):
    with pytest.raises(InputError, match=f"labelled_only is '{text}'; expected two numbers"):
        make_split(shuffled, labelled_only=text)


@pytest.mark.parametrize("other", [{"n_old": 2}, {"overlap": 2}])
def test_labelled_rows_alone_go_with_no_other_variant(shuffled, other):
    with pytest.raises(InputError, match="without n_old and overlap"):
        make_split(shuffled, labelled_only="2/2", **other)


@pytest.mark.parametrize("share", [0, -0.5, 1.01, float("nan")])
def test_impossible_shares(shuffled, share):
    with pytest.raises(InputError, match="more than 0 and at most 1"):
        make_split(shuffled, label_share=share)
