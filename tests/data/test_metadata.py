"""Further columns of a person's tables."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from newfound.data.metadata import joined, read_metadata
from newfound.data.reading import read_collection


@pytest.fixture
def pictures(tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    for name in "dcba":
        Image.new("RGB", (8, 8)).save(folder / f"{name}.png")
    return folder


def test_pictures_have_the_further_columns_of_their_labels(pictures, tmp_path):
    rows = "path,label,site,note\nb.png,owl, dune ,x\na.png,,dune,y\nd.png,,,z\n"
    (tmp_path / "labels.csv").write_text(rows)
    collection = read_collection(pictures, tmp_path / "labels.csv")
    assert collection.metadata == {"site": ["dune", "dune", None, None]}  # no note occurs twice
    assert collection.take([2, 1]).metadata == {"site": [None, "dune"]}


def test_texts_have_those_of_their_table_and_of_their_labels(tmp_path):
    texts = "id,text,channel\n2,two,mail\n1,one,mail\n"
    (tmp_path / "texts.csv").write_text(texts)
    (tmp_path / "labels.csv").write_text("id,label,country\n1,a,FR\n2,,FR\n")
    collection = read_collection(tmp_path / "texts.csv", tmp_path / "labels.csv")
    assert collection.texts == ["one", "two"]
    assert collection.metadata == {"channel": ["mail"] * 2, "country": ["FR"] * 2}


def test_features_have_those_of_their_labels(tmp_path):
    np.savez(tmp_path / "X.npz", X=np.eye(2), y=["", ""])
    (tmp_path / "labels.csv").write_text("label,site\na,dune\n,dune\n")
    collection = read_collection(tmp_path / "X.npz", tmp_path / "labels.csv")
    assert collection.metadata == {"site": ["dune", "dune"]}


def test_numbers_with_a_fraction_lists_and_unique_values_are_no_metadata():
    table = pd.DataFrame(
        {"id": ["a", "b"], "x": [0.5, 0.5], "v": [[1], [1]], "n": [1, 2], "year": [7, 7]}
    )
    assert read_metadata(table) == {"year": ["7", "7"]}


def test_parts_without_a_column_have_no_value_in_it():
    parts = [({"site": ["dune"]}, 1), ({}, 2), ({"year": ["7"]}, 1)]
    assert joined(parts) == {
        "site": ["dune", None, None, None],
        "year": [None, None, None, "7"],
    }
