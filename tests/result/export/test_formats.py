"""Exports: opened by the tools' own readers, or held against what their pages say; hostile names.

FiftyOne (a database comes with it) and Label Studio's SDK (opencv and 40 packages) are no
dependencies of the tests: `check_fiftyone` and `check_label_studio` are their pages, and, for
FiftyOne, the steps of its importer.
"""

import contextlib
import csv
import io
import json
import os
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path, PurePosixPath
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pandas as pd
import pytest

import newfound
from newfound.data.collection import Collection
from newfound.data.pictures import PictureError, read_picture
from newfound.errors import InputError
from newfound.result.assign import Assigned
from newfound.result.export import formats as exports
from newfound.result.export.formats import FORMATS, export
from newfound.result.profiles import CategoryProfiles
from newfound.result.record import RunRecord
from newfound.result.result import Result
from newfound.result.store import read_result, write_result

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


def make_result(collection, codes, names=CATEGORIES, n_known=2):
    """A result with categories that are given by their codes, without a model."""
    n, K = len(collection), len(names)
    codes = np.asarray(codes)
    is_labelled = collection.is_labelled
    assigned = Assigned(codes, np.linspace(0.25, 1, n), (codes + 1) % K, np.full(n, np.nan))
    profiles = CategoryProfiles(
        sizes=np.bincount(codes, minlength=K),
        n_labelled=np.bincount(codes[is_labelled], minlength=K),
        stability=np.full(K, np.nan),
        mean_confidence=np.full(K, np.nan),
        nearest=np.full(K, -1),
        exemplars=tuple(np.flatnonzero(codes == code) for code in range(K)),
        borderline=tuple(np.flatnonzero(codes == code) for code in range(K)),
        evidence=None,
    )
    record = RunRecord(
        kind=collection.kind,
        n_items=n,
        n_labelled=int(is_labelled.sum()),
        n_known=n_known,
        n_novel=K - n_known,
        source=None if collection.root is None else str(collection.root),
    )
    no_columns = np.zeros((n, 0), np.float32)
    return Result(
        collection=collection,
        features=no_columns,
        mixture=None,
        names=tuple(names),
        assigned=assigned,
        outlier_scores=np.linspace(0, 1, n),
        profiles=profiles,
        record=record,
        prototypes=np.zeros((K, 0)),
        V=no_columns,
    )


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


NAMES = ["a/1.png", "a/2.png", "b/1.png", "b/1.PNG", "c d/ü & ?#%=+;3.png", "top.jpg", "top.png"]
CODES = [0, 1, 0, 0, 2, 3, 3]


@pytest.fixture
def root(tmp_path):
    return tmp_path / "my pictures"


@pytest.fixture
def result(root):
    y = ["cat", "dog", *[None] * 5]
    return make_result(make_pictures(root, NAMES, y), CODES)


@pytest.fixture
def texts():
    collection = Collection(["t1", "t2"], objects(["cat", None]), texts=["miau <b>", "“?”\n"])
    return make_result(collection, [0, 2])


@pytest.fixture
def features():
    return make_result(Collection(["x", "y"], objects(["cat", None]), features=np.eye(2)), [0, 2])


def hostile(root):
    """One picture in each of the categories with hostile names; half of them are labelled."""
    y = [name if i % 2 else None for i, name in enumerate(HOSTILE)]
    pictures = make_pictures(root, [f"{i:02d}.png" for i in range(len(HOSTILE))], y)
    return make_result(pictures, range(len(HOSTILE)), HOSTILE, n_known=10)


def read_csv(path):
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode(), newline="")))


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# -------------------------------------------------------------------------------------- tables


def test_parquet_comes_back_the_same(result, tmp_path):
    out = export(result, "parquet", tmp_path / "new" / "table.parquet")
    assert out == tmp_path / "new" / "table.parquet"
    again = pd.read_parquet(out)
    assert list(again) == list(result.table)
    for name in again:
        values = again[name].astype(object).where(again[name].notna(), None)
        assert values.tolist() == result.table[name].tolist()


def test_csv_comes_back_the_same(result, tmp_path):
    rows = read_csv(export(result, "csv", tmp_path / "table.csv"))
    assert list(rows[0]) == list(result.table)
    for row, expected in zip(rows, result.table.to_dict("records"), strict=True):
        for name, value in expected.items():
            if isinstance(value, float):
                assert float(row[name]) == pytest.approx(value, rel=1e-5)
            else:
                assert row[name] == (value or "")


def test_formulas_are_texts_in_csv(root, tmp_path):
    found = hostile(root)
    rows = read_csv(export(found, "csv", tmp_path / "t.csv"))
    folders = read_csv(export(found, "folders", tmp_path / "f") / "categories.csv")
    for table in (rows, folders):
        cells = [row["category"] for row in table]
        assert "'=1+1" in cells
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in cells)


@pytest.mark.parametrize("to", ["csv", "parquet"])
def test_tables_are_for_all_kinds(texts, features, tmp_path, to):
    assert export(texts, to, tmp_path / "1").stat().st_size > 0
    assert export(features, to, tmp_path / "2").stat().st_size > 0


def test_what_was_read_from_a_run_folder_can_be_exported(result, tmp_path):
    write_result(result, tmp_path / "run")
    again = read_result(tmp_path / "run")
    for to in FORMATS:
        one, two = export(result, to, tmp_path / f"1-{to}"), export(again, to, tmp_path / f"2-{to}")
        if one.is_file():
            assert one.read_bytes() == two.read_bytes()
        else:
            assert files_in(one) == files_in(two)
            assert all(
                (one / name).read_bytes() == (two / name).read_bytes() for name in files_in(one)
            )


# ------------------------------------------------------------------------------------- folders


def test_a_folder_for_each_category(result, tmp_path):
    out = export(result, "folders", tmp_path / "out")
    assert files_in(out) == [
        *["cat/1-2.png", "cat/1-3.PNG", "cat/1.png", "categories.csv", "dog/2.png", "files.csv"],
        *["new-001/ü & _#%=+;3.png", "new-002/top.jpg", "new-002/top.png"],
    ]
    for row, path in zip(read_csv(out / "files.csv"), result.collection.paths, strict=True):
        assert os.path.samefile(out / row["file"], path)  # a hard link
        assert not (out / row["file"]).is_symlink()
        assert (row["path"], row["file"].split("/")[0]) == (str(path), row["category"])
    folders = read_csv(out / "categories.csv")
    assert [(row["folder"], row["category"], row["kind"], row["size"]) for row in folders] == [
        *[("cat", "cat", "known", "3"), ("dog", "dog", "known", "1")],
        *[("new-001", "new-001", "novel", "1"), ("new-002", "new-002", "novel", "2")],
    ]


def no_links(*args, **kwargs):
    raise OSError("no links here")


def test_pictures_are_copied_where_there_are_no_links(result, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", no_links)
    out = export(result, "folders", tmp_path / "out")
    for row, path in zip(read_csv(out / "files.csv"), result.collection.paths, strict=True):
        assert (out / row["file"]).read_bytes() == path.read_bytes()
        assert not os.path.samefile(out / row["file"], path)


@pytest.mark.parametrize("to", ["folders", "fiftyone"])
def test_a_symbolic_link_becomes_a_file(root, tmp_path, to):
    pictures = make_pictures(root, ["a.png"])
    (root / "b.png").symlink_to("a.png")
    found = make_result(replace(pictures, ids=["b.png"], paths=[root / "b.png"]), [0])
    out = export(found, to, tmp_path / "out")
    (copy,) = out.rglob("b.png")
    assert not copy.is_symlink()
    assert copy.read_bytes() == (root / "a.png").read_bytes()


def assert_is_safe(name):
    """One part of a path, on any system."""
    assert name not in ("", ".", "..")
    assert len(name.encode()) <= 200
    assert not set(name) & set('<>:"/\\|?*')
    assert name.isprintable()
    assert name == name.strip(" ").rstrip(".")
    assert name[0] != "."
    stem = name.split(".")[0].upper()
    assert stem not in {"CON", "PRN", "AUX", "NUL"}
    assert not (stem[:3] in ("COM", "LPT") and stem[3:] and stem[3:] in "0123456789¹²³")


def test_hostile_categories_stay_in_the_folder(root, tmp_path):
    found = hostile(root)
    (tmp_path / "outer").mkdir()
    out = export(found, "folders", tmp_path / "outer" / "out")
    assert os.listdir(tmp_path / "outer") == ["out"]
    assert len(files_in(out)) == len(HOSTILE) + 2
    rows = read_csv(out / "categories.csv")
    folders = [row["folder"] for row in rows]
    for folder in folders:
        assert_is_safe(folder.removeprefix("'"))  # of the CSV: "-rf"
    assert len({exports._same_file(name, "") for name in [*folders, "files.csv"]}) == len(rows) + 1
    undo = [row["category"].removeprefix("'") if row["category"][1:] in HOSTILE else row["category"]
            for row in rows]  # fmt: skip
    assert undo == HOSTILE
    for folder, path in zip(folders, found.collection.paths, strict=True):
        assert os.path.samefile(out / folder.removeprefix("'") / path.name, path)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Golden Retriever", "Golden Retriever"), ("St. Bernard", "St. Bernard"), ("..", "_"),
        ("a/b\\c", "a_b_c"), (".git", "_git"), ("aux.h", "_aux.h"), ("auxiliary", "auxiliary"),
        ("com10", "com10"), ("x. .", "x"), ("x" * 300, "x" * 120), ("é" * 99, "é" * 60),
    ],
)  # fmt: skip
def test_safe_names(text, name):
    assert exports._safe_name(text) == name


def test_numbers_in_names_are_not_given_twice():
    parts = [("a", ".png"), ("a-2", ".png"), ("A", ".png"), ("a", ".PNG"), ("a", ".jpg")]
    assert exports._distinct(parts) == ["a.png", "a-2.png", "A-3.png", "a-4.PNG", "a.jpg"]
    assert exports._distinct([("a", "")] * 3, taken=["A"]) == ["a-2", "a-3", "a-4"]


def test_hostile_file_names(root, tmp_path):
    names = ["con.png", "a:b.png", "x" * 240 + ".png", "y.png" + "z" * 100, "1.", "-.png"]
    found = make_result(make_pictures(root, names), [0] * len(names))
    out = export(found, "folders", tmp_path / "out")
    written = [row["file"].removeprefix("cat/") for row in read_csv(out / "files.csv")]
    for name in written:
        assert_is_safe(name)
    assert written[:2] == ["_con.png", "a_b.png"]
    assert written[2] == "x" * 120 + ".png"


# ------------------------------------------------------------------------------------ FiftyOne


def check_fiftyone(folder):
    """Read as https://docs.voxel51.com/user_guide/import_datasets.html says, by path.

    Section FiftyOneImageClassificationDataset, the form with confidences and attributes, with
    the steps of `FiftyOneImageClassificationDatasetImporter` (1.22): a UUID is a path below
    ``data`` without its ending, and attributes become keyword arguments of `Classification`.
    """
    assert sorted(os.listdir(folder)) == ["data", "labels.json"]
    content = json.loads((folder / "labels.json").read_text(encoding="utf-8"))
    assert set(content) == {"classes", "labels"}
    assert all(isinstance(name, str) for name in content["classes"])
    files = files_in(folder / "data")
    by_uuid = {os.path.splitext(name)[0]: folder / "data" / name for name in files}
    assert len(by_uuid) == len(files)
    assert set(by_uuid) == set(content["labels"])
    read = {}
    for uuid, target in content["labels"].items():
        assert set(target) == {"label", "confidence", "attributes"}
        assert type(target["label"]) is int
        assert type(target["confidence"]) is float
        assert not set(target["attributes"]) & {"id", "label", "confidence", "tags", "logits"}
        read[by_uuid[uuid]] = (content["classes"][target["label"]], target)
    return content["classes"], read


def test_fiftyone_reads_it(result, tmp_path):
    classes, read = check_fiftyone(export(result, "fiftyone", tmp_path / "out"))
    assert classes == CATEGORIES
    by_item = {target["attributes"]["item"]: (path, name, target)
               for path, (name, target) in read.items()}  # fmt: skip
    for row in result.table.itertuples():
        path, name, target = by_item[row.id]
        assert os.path.samefile(path, row.path)
        assert (name, target["confidence"]) == (row.category, row.confidence)
        assert target["attributes"].get("given_label") == row.given_label
    assert {path.name for path in read} == {
        *["1.png", "2.png", "1-2.png", "1-3.PNG", "ü & _#%=+;3.png", "top.jpg", "top-2.png"]
    }


def test_fiftyone_reads_hostile_names(root, tmp_path):
    classes, read = check_fiftyone(export(hostile(root), "fiftyone", tmp_path / "out"))
    assert classes == HOSTILE
    assert sorted(name for name, _ in read.values()) == sorted(HOSTILE)


# -------------------------------------------------------------------------------- Label Studio


def check_label_studio(folder):
    """Hold the files against https://labelstud.io/guide/predictions and /guide/task_format.

    A task has `data` with the field that the object tag names, `predictions` with a result, a
    score and a version, `annotations` with a result; ids of results are all different, and a
    result names a control and an object tag of the configuration and one of its choices.
    """
    config = ElementTree.fromstring((folder / "label_config.xml").read_bytes())
    (control,), (seen,) = config.findall("Choices"), [e for e in config if e.tag != "Choices"]
    assert (config.tag, control.get("toName")) == ("View", seen.get("name"))
    choices = [choice.get("value") for choice in control]
    assert len(set(choices)) == len(choices)
    tasks = json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
    ids = []
    for task in tasks:
        assert set(task) == {"data", "predictions", "annotations"}
        assert isinstance(task["data"][seen.get("value").removeprefix("$")], str)
        (prediction,) = task["predictions"]
        assert set(prediction) == {"model_version", "score", "result"}
        assert 0 <= prediction["score"] <= 1
        assert all(set(annotation) == {"result"} for annotation in task["annotations"])
        for region in [part["result"] for part in (prediction, *task["annotations"])]:
            ids.append(region[0]["id"])
            assert [(r["from_name"], r["to_name"], r["type"]) for r in region] == [
                (control.get("name"), seen.get("name"), "choices")
            ]
            (choice,) = region[0]["value"]["choices"]
            assert choice in choices
    assert len(set(ids)) == len(ids)
    return seen.tag, choices, tasks


def test_label_studio_reads_it(result, tmp_path, root):
    out = export(result, "label-studio", tmp_path / "out")
    tag, choices, tasks = check_label_studio(out)
    assert (tag, choices) == ("Image", CATEGORIES)
    for task, row in zip(tasks, result.table.itertuples(), strict=True):
        (prediction,) = task["predictions"]
        assert prediction["result"][0]["value"]["choices"] == [row.category]
        assert prediction["score"] == row.confidence
        assert prediction["model_version"] == f"newfound {newfound.__version__}"
        assert len(task["annotations"]) == (row.given_label is not None)
        assert (task["data"]["item"], task["data"]["category"]) == (row.id, row.category)
    told = (out / "README.txt").read_text(encoding="utf-8")
    assert f"DOCUMENT_ROOT={root.parent}\n" in told
    assert f"local path {root}\n" in told


def test_label_studio_finds_the_pictures(result, tmp_path):
    """As its view of local files does: the value of d, decoded once, below the document root."""
    _, _, tasks = check_label_studio(export(result, "label-studio", tmp_path / "out"))
    for task, path in zip(tasks, result.collection.paths, strict=True):
        url = urlsplit(task["data"]["image"])
        assert url.path == "/data/local-files/"
        assert not url.fragment
        (relative,) = parse_qs(url.query, strict_parsing=True)["d"]
        assert not PurePosixPath(relative).is_absolute()
        assert os.path.samefile(tmp_path / relative, path)


def test_label_studio_reads_hostile_names(root, tmp_path):
    _, choices, tasks = check_label_studio(export(hostile(root), "label-studio", tmp_path / "o"))
    assert [task["data"]["category"] for task in tasks] == HOSTILE
    assert [task["predictions"][0]["result"][0]["value"]["choices"][0] for task in tasks] == choices
    for name, choice in zip(HOSTILE, choices, strict=True):
        if name.isprintable() and name == name.strip() != "":
            assert choice == name


def test_label_studio_reads_texts(texts, tmp_path):
    out = export(texts, "label-studio", tmp_path / "out")
    tag, _, tasks = check_label_studio(out)
    assert tag == "Text"
    assert [task["data"]["text"] for task in tasks] == ["miau <b>", "“?”\n"]
    assert "LOCAL_FILES" not in (out / "README.txt").read_text()


def test_pictures_from_several_folders_are_named_from_the_one_above(result, tmp_path):
    make_pictures(tmp_path, ["elsewhere/x.png"])
    paths = [*result.collection.paths[:-1], tmp_path / "elsewhere" / "x.png"]
    found = replace(result, collection=replace(result.collection, paths=paths))
    _, _, tasks = check_label_studio(export(found, "label-studio", tmp_path / "out"))
    assert tasks[-1]["data"]["image"].endswith(f"?d={tmp_path.name}/elsewhere/x.png")
    content = json.loads(export(found, "coco", tmp_path / "coco.json").read_text())
    assert content["images"][-1]["file_name"] == "elsewhere/x.png"
    assert content["images"][0]["file_name"] == "my pictures/a/1.png"


# ---------------------------------------------------------------------------------------- COCO


def read_coco(path):
    coco = pytest.importorskip("pycocotools.coco").COCO
    with contextlib.redirect_stdout(io.StringIO()):
        return coco(str(path))


@pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")  # pycocotools' own masks
def test_coco_reads_it(result, tmp_path, root):
    coco = read_coco(export(result, "coco", tmp_path / "coco.json"))
    assert [category["name"] for category in coco.loadCats(coco.getCatIds())] == CATEGORIES
    assert {category["supercategory"] for category in coco.cats.values()} == {"known", "novel"}
    assert min(coco.getCatIds()) == min(coco.getImgIds()) == min(coco.getAnnIds()) == 1
    for row in result.table.itertuples():
        (image,) = [image for image in coco.imgs.values() if image["file_name"] == row.id]
        with Image.open(root / image["file_name"]) as picture:
            assert (image["width"], image["height"]) == picture.size
        (annotation,) = coco.loadAnns(coco.getAnnIds(imgIds=[image["id"]]))
        assert coco.cats[annotation["category_id"]]["name"] == row.category
        assert annotation["bbox"] == [0, 0, image["width"], image["height"]]
        assert annotation["attributes"]["score"] == annotation["score"] == row.confidence
        mask = coco.annToMask(annotation)
        assert mask.shape == (image["height"], image["width"])
        assert mask.all()
    assert len(coco.getImgIds(catIds=[coco.getCatIds(catNms=["cat"])[0]])) == 3


def test_coco_reads_hostile_names(root, tmp_path):
    coco = read_coco(export(hostile(root), "coco", tmp_path / "coco.json"))
    assert [category["name"] for category in coco.loadCats(coco.getCatIds())] == HOSTILE


@pytest.mark.parametrize("turn", range(1, 9))
@pytest.mark.parametrize("ending", ["jpg", "png", "tif", "webp"])
def test_sizes_are_those_of_upright_pictures(tmp_path, turn, ending):
    exif = Image.Exif()
    exif[0x0112] = turn
    Image.new("RGB", (12, 5)).save(tmp_path / f"x.{ending}", exif=exif)
    size = read_picture(tmp_path / f"x.{ending}").size
    assert exports._upright_size(tmp_path / f"x.{ending}") == size


def test_a_damaged_picture_is_told_of(result, tmp_path, root):
    (root / NAMES[1]).write_text("no picture")
    with pytest.raises(PictureError, match=r"a/2.png: no picture in a format"):
        export(result, "coco", tmp_path / "coco.json")
    assert os.listdir(tmp_path) == ["my pictures"]


# --------------------------------------------------------------------------------- what is refused


def test_an_unknown_format_is_refused(result, tmp_path):
    expected = "no format 'xlsx' .* csv, parquet, folders, fiftyone, label-studio or coco"
    with pytest.raises(InputError, match=expected):
        export(result, "xlsx", tmp_path / "out")


@pytest.mark.parametrize("to", ["folders", "fiftyone", "coco"])
def test_what_is_no_picture_is_refused(texts, features, tmp_path, to):
    with pytest.raises(InputError, match=f"'{to}' is for pictures, .* on features.*csv or parquet"):
        export(features, to, tmp_path / "out")
    with pytest.raises(InputError, match=r"on texts\. Export it to csv, parquet or label-studio"):
        export(texts, to, tmp_path / "out")
    with pytest.raises(InputError, match=r"'label-studio' is for pictures, .* on features"):
        export(features, "label-studio", tmp_path / "out")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("to", FORMATS)
def test_what_exists_is_left_alone(result, tmp_path, to):
    out = export(result, to, tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in [out, *out.rglob("*")]}
    with pytest.raises(InputError, match="Remove it"):
        export(result, to, out)
    assert before == {path: path.stat().st_mtime_ns for path in [out, *out.rglob("*")]}


@pytest.mark.parametrize("to", FORMATS)
def test_an_empty_target_is_used(result, tmp_path, to):
    out = tmp_path / "out"
    if to in ("csv", "parquet", "coco"):
        out.touch()
    else:
        out.mkdir()
        (out / ".DS_Store").touch()
    assert export(result, to, out) == out


@pytest.mark.parametrize("to", FORMATS)
def test_a_target_of_the_other_kind_is_refused(result, tmp_path, to):
    out = tmp_path / "out"
    is_file = to in ("csv", "parquet", "coco")
    out.mkdir() if is_file else out.touch()
    with pytest.raises(InputError, match="is a folder, but" if is_file else "is a file, but"):
        export(result, to, out)


def test_a_folder_among_the_pictures_is_refused(result, root):
    for to in ("folders", "fiftyone"):
        with pytest.raises(InputError, match="find each picture twice"):
            export(result, to, root / "out")
    assert not (root / "out").exists()


@pytest.mark.parametrize("to", ["folders", "fiftyone", "coco"])
def test_pictures_that_are_gone_are_told_of(result, root, tmp_path, to):
    (root / NAMES[2]).unlink()
    with pytest.raises(
        InputError, match=r"1 of 7 pictures are no longer .*b/1.png\. Put them back"
    ):
        export(result, to, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "full")])
def test_a_folder_that_cannot_be_finished_is_removed(result, tmp_path, monkeypatch, error):
    def fail(*args):
        raise error

    monkeypatch.setattr(exports, "write_json", fail)
    (tmp_path / "was there").mkdir()
    (tmp_path / "was there" / ".keep").touch()
    for out in (tmp_path / "new", tmp_path / "was there"):
        with pytest.raises((KeyboardInterrupt, InputError), match=r"full|^$"):
            export(result, "fiftyone", out)
    assert not (tmp_path / "new").exists()
    assert os.listdir(tmp_path / "was there") == [".keep"]


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root reads everything")
def test_a_picture_that_cannot_be_read_is_named(result, tmp_path, root, monkeypatch):
    monkeypatch.setattr(os, "link", no_links)
    (root / NAMES[0]).chmod(0)
    with pytest.raises(PictureError, match=r"a/1.png: cannot be read: Permission denied"):
        export(result, "folders", tmp_path / "out")


def test_a_relative_target_becomes_absolute(result, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert export(result, "csv", Path("x.csv")) == tmp_path / "x.csv"
