"""Partial labels in every form that people use."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from newfound.errors import InputError
from newfound.labels import category_names, encode_labels

MISSING = [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT, "", "  ", -1, -1.0, "-1", "nan"]


def codes_and_classes(y):
    partial = encode_labels(y)
    return partial.codes.tolist(), partial.classes.tolist()


@pytest.mark.parametrize("marker", MISSING, ids=repr)
@pytest.mark.parametrize("classes", [["cat", "dog"], [3, 5]], ids=["texts", "numbers"])
def test_every_marker_of_no_label_means_unlabelled(marker, classes):
    first, second = classes
    assert codes_and_classes([second, marker, first, marker]) == ([1, -1, 0, -1], classes)


def test_all_markers_may_stand_in_one_list():
    assert codes_and_classes(["cat", *MISSING])[0] == [0] + [-1] * len(MISSING)


@pytest.mark.parametrize(
    ("y", "codes", "classes"),
    [
        (np.array([7, -1, 3, 7]), [1, -1, 0, 1], [3, 7]),
        (np.array([7, -1, 3], dtype=np.int8), [1, -1, 0], [3, 7]),
        (np.array([255, 0], dtype=np.uint8), [1, 0], [0, 255]),
        (np.array([2.0, np.nan, -1.0, 1.0]), [1, -1, -1, 0], [1, 2]),
        (np.array([-2, -1, 0]), [0, -1, 1], [-2, 0]),
        (np.array([True, False]), [1, 0], [False, True]),
        (np.array([[4], [-1]]), [0, -1], [4]),
        (np.array(["b", "a", ""]), [1, 0, -1], ["a", "b"]),
        (np.array(["cat", -1, float("nan")]), [0, -1, -1], ["cat"]),
        (np.array(["cat", None, -1], dtype=object), [0, -1, -1], ["cat"]),
        (["b", None, "a"], [1, -1, 0], ["a", "b"]),
        (("b", "a"), [1, 0], ["a", "b"]),
        (dict.fromkeys(["b", "a"]).keys(), [1, 0], ["a", "b"]),
        ([2, None, 1.0], [1, -1, 0], [1, 2]),
        (["10", "9", "-1"], [0, 1, -1], ["10", "9"]),
    ],
    ids=repr,
)
def test_arrays_and_lists(y, codes, classes):
    assert codes_and_classes(y) == (codes, classes)


@pytest.mark.parametrize(
    ("y", "codes", "classes"),
    [
        (pd.Series(["b", None, "a"], dtype=object), [1, -1, 0], ["a", "b"]),
        (pd.Series(["b", None, "", "a"], dtype="string"), [1, -1, -1, 0], ["a", "b"]),
        (pd.Series(["b", None, "a"], dtype="category"), [1, -1, 0], ["a", "b"]),
        (pd.Series([7, None, -1, 3], dtype="Int64"), [1, -1, -1, 0], [3, 7]),
        (pd.Series([7, 3], dtype="Int64"), [1, 0], [3, 7]),
        (pd.Series([7, None, 3], dtype="category"), [1, -1, 0], [3, 7]),
        (pd.Series([7.0, np.nan, 3.0]), [1, -1, 0], [3, 7]),
        (pd.Series(["b", "a"], index=[10, 11]), [1, 0], ["a", "b"]),
        (pd.Index(["b", "a"]), [1, 0], ["a", "b"]),
        (pd.DataFrame({"label": [7, -1]}), [0, -1], [7]),
    ],
    ids=lambda y: str(getattr(y, "dtype", type(y).__name__)),
)
def test_pandas(y, codes, classes):
    assert codes_and_classes(y) == (codes, classes)


@pytest.mark.parametrize(
    "y", [[True, None, False], pd.Series([True, None, False], dtype="boolean")], ids=["list", "pd"]
)
def test_booleans_stay_booleans_beside_missing_labels(y):
    partial = encode_labels(y)
    assert partial.codes.tolist() == [1, -1, 0]
    assert [type(name) for name in category_names(partial.classes, 2)] == [bool, bool]


@pytest.mark.parametrize("y", [np.array([4, -1, 2]), np.array(["b", "", "a"])], ids=repr)
def test_classes_keep_the_type_they_were_given_in(y):
    assert encode_labels(y).classes.dtype.kind == y.dtype.kind


@given(st.lists(st.sampled_from(["ant", "bee", "cät", " dog ", "10", None, ""])))
def test_texts_round_trip(y):
    partial = encode_labels(y)
    back = [str(partial.classes[code]) if code >= 0 else None for code in partial.codes]
    assert back == [name or None for name in y]


@given(st.lists(st.integers(-5, 5), min_size=1), st.sampled_from([np.int64, np.float64, object]))
def test_numbers_round_trip(y, dtype):
    partial = encode_labels(np.array(y, dtype=dtype))
    back = [int(partial.classes[code]) if code >= 0 else -1 for code in partial.codes]
    assert back == y


def test_all_rows_labelled():
    partial = encode_labels(["a", "b"])
    assert partial.is_labelled.tolist() == [True, True]
    assert partial.n_known == 2


@pytest.mark.parametrize("y", [[-1, -1], ["", None], np.array([np.nan, np.nan])], ids=repr)
def test_no_row_labelled(y):
    partial = encode_labels(y)
    assert partial.is_labelled.tolist() == [False, False]
    assert partial.n_known == 0


def test_no_labels_at_all_leaves_every_row_unlabelled():
    partial = encode_labels(None, n_rows=3)
    assert partial.codes.tolist() == [-1, -1, -1]
    assert partial.n_known == 0


def test_one_known_class():
    assert codes_and_classes([None, "cat", "cat"]) == ([-1, 0, 0], ["cat"])


def test_names_of_known_classes_survive_and_novel_ones_are_numbered():
    classes = encode_labels(["wolf", None, "lynx"]).classes
    assert category_names(classes, 4).tolist() == ["lynx", "wolf", "new-001", "new-002"]


def test_names_of_numbered_classes_are_numbers():
    names = category_names(encode_labels([30, -1, 20]).classes, 3).tolist()
    assert names == [20, 30, "new-001"]
    assert type(names[0]) is int


def test_codes_lead_back_to_the_names():
    partial = encode_labels(["wolf", "lynx", "wolf"])
    assert category_names(partial.classes, 2)[partial.codes].tolist() == ["wolf", "lynx", "wolf"]


@pytest.mark.parametrize("y", [["cat", 17], [None, 17, "", "cat"], pd.Series(["cat", 17])], ids=str)
def test_mixed_types_name_an_example_of_each(y):
    with pytest.raises(InputError, match=r"'cat'.*17.*one type"):
        encode_labels(y)


@pytest.mark.parametrize("y", [[1, 0.25], np.array([1, 0.25]), [None, 0.25]], ids=repr)
def test_fractions_are_no_classes(y):
    with pytest.raises(InputError, match=r"0\.25.*whole numbers or texts"):
        encode_labels(y)


def test_infinity_is_no_class():
    with pytest.raises(InputError, match="inf"):
        encode_labels([1.0, np.inf])


@pytest.mark.parametrize("item", [b"cat", ("cat",), ["cat"], 2j], ids=repr)
def test_objects_that_are_no_labels_are_named(item):
    with pytest.raises(InputError, match=f"a {type(item).__name__}.*texts or whole numbers"):
        encode_labels([item, None])


def test_complex_labels_are_refused():
    with pytest.raises(InputError, match="complex"):
        encode_labels(np.array([1j, 2]))


def test_wrong_length_names_both_lengths():
    with pytest.raises(InputError, match=r"2 labels, but X has 3 rows.*-1, None or an empty text"):
        encode_labels(["a", "b"], n_rows=3)


def test_one_hot_labels_get_the_advice_to_take_the_argmax():
    with pytest.raises(InputError, match=r"shape \(3, 3\).*argmax"):
        encode_labels(np.eye(3, dtype=int))


@pytest.mark.parametrize("y", ["cat", b"cat", 5])
def test_a_single_value_is_no_column_of_labels(y):
    with pytest.raises(InputError, match=f"sequence of labels.*got {type(y).__name__}"):
        encode_labels(y)


def test_no_labels_and_no_number_of_rows():
    with pytest.raises(InputError, match="n_rows was not given"):
        encode_labels(None)
