"""Squares of the pictures of a data set."""

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def write_square(load_study):
    return load_study("squares").write_square


def test_the_middle_of_a_picture_becomes_a_square_in_the_same_folder(write_square, tmp_path):
    wide = np.zeros((300, 500, 3), np.uint8)
    wide[:, :100] = wide[:, 400:] = (255, 0, 0)  # what the square leaves out
    wide[:, 100:250] = (0, 0, 255)
    picture = tmp_path / "cub" / "train" / "001.Bird" / "a.png"
    picture.parent.mkdir(parents=True)
    Image.fromarray(wide).save(picture)
    write_square(tmp_path / "squares", tmp_path / "cub", picture)
    with Image.open(tmp_path / "squares" / "train" / "001.Bird" / "a.jpg") as square:
        pixels = np.asarray(square).astype(int)
    assert pixels.shape == (224, 224, 3)
    assert abs(pixels[:, :100] - (0, 0, 255)).max() < 20
    assert abs(pixels[:, 124:]).max() < 20


def test_a_square_that_is_there_stays(write_square, tmp_path):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "a.jpg").write_bytes(b"here already")
    write_square(tmp_path / "new", tmp_path / "old", tmp_path / "old" / "a.png")
    assert (tmp_path / "new" / "a.jpg").read_bytes() == b"here already"
