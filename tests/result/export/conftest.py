"""Results to export: pictures, texts, features, and categories with hostile names."""

import csv
import io

import numpy as np
import pytest

from newfound.data.collection import Collection
from newfound.result.export import FORMATS

Image = pytest.importorskip("PIL.Image")

CATEGORIES = ["cat", "dog", "new-001", "new-002"]
HOSTILE = [
    *["..", ".", "../../etc/passwd", "/etc/passwd", "a/b", "a\\b", "a\0b", "CON", "con.txt", "nul"],
    *["COM1", "lpt¹.x", "x" * 5000, "é" * 300, " lead", "trail. ", ".hidden", "", " ", "C:\\x"],
    *["Case", "case", "CASE", "e\u0301", "é", "\u2028", "\x7f\n\r\t", "<script>", "&amp;\"'", "$x"],
    *["categories.csv", "FILES.CSV", "-rf", "~", "*?", "=1+1", "日本", "🐈" * 80, "]]>", "--"],
]  # fmt: skip


def objects(values):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


@pytest.fixture
def make_pictures():
    def make_pictures(root, names, y=None, **changes):
        for i, name in enumerate(names):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (4 + i % 7, 3), (i % 256, 0, 0)).save(root / name, format="PNG")
        collection = {
            "ids": list(names),
            "y": objects(y or [None] * len(names)),
            "paths": [root / name for name in names],
            "root": root,
        }
        return Collection(**{**collection, **changes})

    return make_pictures


NAMES = ["a/1.png", "a/2.png", "b/1.png", "b/1.PNG", "c d/ü & ?#%=+;3.png", "top.jpg", "top.png"]
CODES = [0, 1, 0, 0, 2, 3, 3]


@pytest.fixture
def root(tmp_path):
    return tmp_path / "my pictures"


@pytest.fixture
def result(root, make_result, make_pictures):
    y = ["cat", "dog", *[None] * 5]
    return make_result(make_pictures(root, NAMES, y), CODES)


@pytest.fixture
def texts(make_result):
    collection = Collection(["t1", "t2"], objects(["cat", None]), texts=["miau <b>", "“?”\n"])
    return make_result(collection, [0, 2])


@pytest.fixture
def features(make_result):
    return make_result(Collection(["x", "y"], objects(["cat", None]), features=np.eye(2)), [0, 2])


@pytest.fixture
def hostile(root, make_result, make_pictures):
    """One picture in each of the categories with hostile names; half of them are labelled."""
    y = [name if i % 2 else None for i, name in enumerate(HOSTILE)]
    pictures = make_pictures(root, [f"{i:02d}.png" for i in range(len(HOSTILE))], y)
    return make_result(pictures, range(len(HOSTILE)), HOSTILE, n_known=10)


@pytest.fixture
def read_csv():
    def read_csv(path):
        return list(csv.DictReader(io.StringIO(path.read_bytes().decode(), newline="")))

    return read_csv


@pytest.fixture
def files_in():
    def files_in(folder):
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())

    return files_in


@pytest.fixture
def out_for(tmp_path):
    """A name for what a format writes: a file with its ending, or a folder."""

    def out_for(to, stem="out"):
        return tmp_path / (stem if FORMATS[to].is_folder else stem + FORMATS[to].endings[0])

    return out_for
