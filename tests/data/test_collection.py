import numpy as np
import pytest

from newfound.data.collection import Collection, Skipped, check_discoverable
from newfound.data.reading import read_collection
from newfound.errors import InputError

X = np.arange(12.0).reshape(4, 3)


def objects(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


@pytest.fixture
def collection():
    return Collection(
        ids=["a", "b", "c"],
        y=objects(["x", None, 3]),
        features=np.eye(3),
        skipped=[Skipped("z", "was broken")],
    )


@pytest.mark.parametrize("indices", [[2, 0], np.array([2, 0])])
def test_take(collection, indices):
    part = collection.take(indices)
    assert part.ids == ["c", "a"]
    assert part.y.tolist() == [3, "x"]
    np.testing.assert_array_equal(part.features, np.eye(3)[[2, 0]])
    assert part.skipped == collection.skipped


def test_take_of_everything_that_a_collection_has(tmp_path):
    y = objects(["x", None])
    pictures = Collection(ids=["a", "b"], y=y, paths=[tmp_path / "a", tmp_path / "b"])
    assert pictures.take([1]).paths == [tmp_path / "b"]
    texts = Collection(ids=["a", "b"], y=y, texts=["first", "second"])
    assert texts.take([1]).texts == ["second"]


def test_take_by_a_mask_and_nothing(collection):
    assert collection.take(np.array([True, False, True])).ids == ["a", "c"]
    assert len(collection.take([])) == 0
    assert collection.take([]).features.shape == (0, 3)


def test_without(collection):
    rest = collection.without([(2, "is empty"), (0, "is broken")])
    assert rest.ids == ["b"]
    assert rest.skipped == [
        Skipped("z", "was broken"),
        Skipped("a", "is broken"),
        Skipped("c", "is empty"),
    ]
    assert collection.without([]).ids == collection.ids


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ids": ["a", "b"]}, r"the lengths \[2, 3, 3\]"),
        ({"y": objects(["x"])}, r"the lengths \[3, 1, 3\]"),
        ({"features": np.eye(2)}, r"the lengths \[3, 3, 2\]"),
        ({"features": None}, "Got 0 of the three"),
        ({"texts": ["1", "2", "3"]}, "Got 2 of the three"),
        ({"ids": ["a", "b", "a"]}, "must be unique"),
        ({"ids": ["a", "b", ""]}, "is empty"),
    ],
)
def test_collections_that_do_not_fit_together(change, message):
    fields = {"ids": ["a", "b", "c"], "y": objects(["x", None, 3]), "features": np.eye(3)}
    with pytest.raises(InputError, match=message):
        Collection(**{**fields, **change})


def test_something_to_discover(collection):
    check_discoverable(collection)


@pytest.mark.parametrize(
    ("content", "thing", "hint"),
    [
        ({"features": np.eye(2)}, "rows of features", "y beside X"),
        ({"texts": ["one", "two"]}, "texts", "column 'label'"),
        ({"paths": ["a.jpg", "b.jpg"]}, "pictures", "class folders"),
    ],
)
def test_no_labels_at_all(content, thing, hint):
    collection = Collection(ids=["a", "b"], y=objects([None, None]), **content)
    message = f"None of the 2 {thing} has a label.*needs some labels.*{hint}"
    with pytest.raises(InputError, match=message):
        check_discoverable(collection)


def test_all_labelled(tmp_path, place):
    place(tmp_path, "cat/1.jpg", "cat/2.jpg", "owl/3.jpg")
    message = r"All 3 pictures have a label \(most often 'cat': 2, 'owl': 1\).*'unlabelled'"
    with pytest.raises(InputError, match=message):
        check_discoverable(read_collection(tmp_path))


def test_an_empty_folder(tmp_path):
    with pytest.raises(InputError, match=f"There are no pictures in {tmp_path}. Check the path"):
        check_discoverable(read_collection(tmp_path))


def test_a_folder_in_which_all_is_skipped(tmp_path):
    (tmp_path / "a.jpg").symlink_to("nothing")
    with pytest.raises(
        InputError, match=r"1 item was skipped; the first is a.jpg: a link to a file"
    ):
        check_discoverable(read_collection(tmp_path))


def test_a_folder_of_photos_from_a_phone_says_what_is_missing(tmp_path, place, no_heic):
    place(tmp_path, "0.txt", "IMG_1.HEIC", "IMG_2.HEIC")
    message = (
        r"There are no pictures in .*\. 3 items were skipped, 2 of them for the same reason; the "
        r"first is IMG_1\.HEIC: a HEIC photo; to read it: pip install 'newfound\[heic\]'\."
    )
    with pytest.raises(InputError, match=message):
        check_discoverable(read_collection(tmp_path))
