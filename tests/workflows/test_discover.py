"""The main job, on scikit-learn's digits as features and as pictures, and on blobs."""

import json
import signal
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from newfound.data.collection import Collection
from newfound.deep.checkpoint import load_checkpoint
from newfound.deep.settings import Settings
from newfound.deep.trained import load_trained
from newfound.encode import Encoded
from newfound.encode import pictures as picture_files
from newfound.errors import DiscoveryWarning, InputError
from newfound.result.result import read_result
from newfound.result.run_folder import open_run
from newfound.workflows import discover as discovery
from newfound.workflows.discover import discover, predict, update

GREY = "pixels-8x8-grey"
N = 300


def objects(values):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def collection_of(X, y, ids=None, **changes):
    ids = [f"item {i:03d}" for i in range(len(X))] if ids is None else ids
    return Collection(ids=ids, y=objects(y), features=X, **changes)


class Digits:
    """Some digits; about half of the labels of five classes."""

    X, truth = load_digits(return_X_y=True)
    X, truth = X[:450].astype(np.float32), truth[:450]
    half = np.random.default_rng(0).random(450) < 0.5
    y = tuple(f"digit {t}" if t < 5 and h else None for t, h in zip(truth, half, strict=True))

    @classmethod
    def write(cls, folder, rows):
        folder.mkdir(parents=True, exist_ok=True)
        for i in rows:
            grey = (cls.X[i].reshape(8, 8) * 255 / 16).astype(np.uint8)
            Image.fromarray(grey).save(folder / f"{i:03d}.png")

    @classmethod
    def write_labels(cls, path, rows):
        lines = [f"{i:03d}.png,{cls.y[i]}" for i in rows if cls.y[i] is not None]
        path.write_text("\n".join(["path,label", *lines]))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """A folder with `pictures`, `labels.csv`, and `more` pictures."""
    root = tmp_path_factory.mktemp("digits")
    Digits.write(root / "pictures", range(N))
    Digits.write_labels(root / "labels.csv", range(N))
    Digits.write(root / "more", range(N, 450))
    (root / "pictures" / "broken.png").write_bytes(b"no picture")
    (root / "more" / "empty.png").touch()
    return root


def run_pictures(pictures, out, **changes):
    options = {"encoder": GREY, "rehearse": False, "out": out, **changes}
    return discover(pictures / "pictures", pictures / "labels.csv", **options)


@pytest.fixture(scope="module")
def finished(pictures, tmp_path_factory):
    """A run on pictures."""
    out = tmp_path_factory.mktemp("runs") / "run"
    return run_pictures(pictures, out), out


@pytest.fixture(scope="module")
def digits_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("features") / "digits.npz"
    np.savez(path, X=Digits.X[:N], y=np.array([label or "" for label in Digits.y[:N]]))
    return path


class Blobs:
    """Nine categories that lie far apart, 30 items each, the first six known."""

    rng = np.random.default_rng(3)
    truth = np.tile(np.arange(9), 30)
    X = (10 * np.eye(9, 12)[truth] + rng.normal(size=(270, 12))).astype(np.float32)
    y = tuple(f"class {t}" if t < 6 and i % 2 else None for i, t in enumerate(truth))

    @classmethod
    def take(cls, rows, **changes):
        rows = np.asarray(rows)
        y = [cls.y[i] for i in rows]
        return collection_of(cls.X[rows], y, [f"item {i:03d}" for i in rows], **changes)

    @classmethod
    def without(cls, *classes):
        return cls.take(np.flatnonzero(~np.isin(cls.truth, classes)))


def categories_of(table, truth):
    """Category of most items of each true class."""
    rows = table["id"].str.split().str[-1].astype(int)
    return {int(t): table["category"][truth[rows] == t].mode()[0] for t in np.unique(truth[rows])}


# ------------------------------------------------------------------------------------ discover


def test_a_folder_of_pictures(pictures, finished):
    result, out = finished
    assert len(result) == N
    assert result.n_known == 5
    assert result.table["category"].notna().all()
    labelled = result.table["given_label"].notna()
    assert result.table["given_label"].tolist() == list(Digits.y[:N])
    assert (result.table["category"] == result.table["given_label"])[labelled].all()
    assert [(item.path, item.reason) for item in result.collection.skipped] == [
        ("broken.png", "no picture in a format that can be read")
    ]
    assert result.run["encoder"] == GREY
    assert result.encoder == {"kind": "network", "name": GREY}
    assert result.run["source"] == str(pictures / "pictures")
    assert "broken.png" in (out / "skipped.csv").read_text()


def test_what_is_returned_is_what_is_written(finished):
    result, out = finished
    again = read_result(out)
    pd.testing.assert_frame_equal(again.table, result.table)
    pd.testing.assert_frame_equal(again.categories, result.categories)
    assert again.run == result.run == json.loads((out / "run.json").read_text())


def test_the_run_says_how_to_do_it_again(pictures, finished):
    result, out = finished
    assert result.run["rerun"] == (
        f"newfound discover {pictures}/pictures --labels {pictures}/labels.csv --out {out} "
        f"--encoder {GREY} --seed 0 --no-rehearse"
    )
    assert set(result.run["timings"]) == {"read", "encode", "fit", "total"}
    assert {"python", "numpy", "scikit-learn"} <= set(result.run["versions"])
    assert result.run["settings"] == {
        **{"n_categories": None, "train": False, "rehearse": False, "training": None},
    }


def test_features_without_a_run_folder(digits_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = discover(digits_file, rehearse=False)
    assert result.features.shape == (N, 64)
    assert result.run["kind"] == "features"
    assert list(tmp_path.iterdir()) == []


def test_the_order_of_the_items_does_not_matter():
    collection = collection_of(Digits.X[:N], Digits.y[:N])
    order = np.random.default_rng(1).permutation(N)
    first = discover(collection, rehearse=False)
    second = discover(collection.take(order), rehearse=False)
    expected = first.table.iloc[order].reset_index(drop=True)
    assert second.table["id"].tolist() == expected["id"].tolist()
    assert second.table["category"].tolist() == expected["category"].tolist()
    np.testing.assert_allclose(second.table["confidence"], expected["confidence"], atol=1e-4)


def test_the_seed_is_read(digits_file):
    seen = [discover(digits_file, rehearse=False, seed=seed).mixture for seed in (0, 0, 9)]
    assert [mixture.random_state for mixture in seen] == [0, 0, 9]
    np.testing.assert_array_equal(seen[0].labels_, seen[1].labels_)


def test_texts(tmp_path, monkeypatch):
    lines = ["text,label", *[f"text {i},{Digits.y[i] or ''}" for i in range(N)]]
    (tmp_path / "texts.csv").write_text("\n".join(lines))

    def encode_texts(texts, cache, progress):
        assert cache == tmp_path / "run" / "cache"
        progress(N, N)
        return Encoded(Digits.X[:N], np.arange(N), [], "sentences")

    monkeypatch.setattr(discovery, "encode_texts", encode_texts)
    result = discover(tmp_path / "texts.csv", out=tmp_path / "run", rehearse=False)
    assert (result.run["kind"], result.run["encoder"]) == ("texts", "sentences")
    assert read_result(tmp_path / "run").collection.texts[7] == "text 7"


def test_the_number_of_categories_may_be_given(digits_file):
    result = discover(digits_file, n_categories=8)
    assert len(result.categories) == 8
    assert result.run["rehearsal"] is None
    assert "as asked for" in result.run["sentence"]
    assert result.run["settings"]["n_categories"] == 8


def test_a_rehearsal_says_how_far_to_trust_the_number(digits_file, monkeypatch):
    monkeypatch.setattr(discovery, "N_DRAWS", 3)
    seen = []
    result = discover(digits_file, progress=lambda *step: seen.append(step))
    assert result.run["rehearsal"]["n_draws"] == len(result.run["rehearsal"]["ratios"]) == 3
    assert "rehearsal came back as" in result.run["trust"]
    assert [step for step in seen if step[0] == "Rehearsing"] == [
        ("Rehearsing", done, 3) for done in range(4)
    ]
    passes = [step for step in seen if step[0] == "Finding categories"]
    assert passes[:2] == [("Finding categories", 0, 0), ("Finding categories", 1, 0)]
    assert result.mixture.callback is None


def test_few_known_classes_are_not_rehearsed():
    y = [label if label in ("digit 0", "digit 1", "digit 2") else None for label in Digits.y[:N]]
    result = discover(collection_of(Digits.X[:N], y))
    assert result.run["rehearsal"] is None
    assert len(result.run["warnings"]) == 1
    assert "Only 3 classes are known" in result.run["warnings"][0]


@pytest.mark.parametrize("labels", ["drawn", "quota"])
def test_it_says_so_if_sizes_were_expected(labels):
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(8), 60)
    X = (np.eye(8)[truth] + 0.3 * rng.normal(size=(480, 8))).astype(np.float32)
    chosen = rng.permutation(360)[:180] if labels == "drawn" else np.arange(0, 360, 2)
    y = np.full(480, None, dtype=object)
    y[chosen] = [f"class {code}" for code in truth[chosen]]
    run = discover(collection_of(X, y.tolist()), n_categories=8).run
    assert any("as large as known ones" in text for text in run["warnings"]) == (labels == "drawn")


def test_many_rows_are_not_rehearsed(digits_file, monkeypatch):
    monkeypatch.setattr(discovery, "ROWS_TO_REHEARSE", N)
    assert discover(digits_file).run["rehearsal"] is None


def test_other_warnings_pass():
    job = discovery._Job(0, None, False, discovery._say_nothing)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with job.heeding():
            warnings.warn("ours", DiscoveryWarning, stacklevel=1)
            warnings.warn("other", UserWarning, stacklevel=1)
    assert [str(warning.message) for warning in caught] == ["other"]
    assert job.warnings == ["ours"]


def test_progress_tells_of_the_pictures(pictures, tmp_path):
    seen = []
    run_pictures(pictures, tmp_path / "run", progress=lambda *step: seen.append(step))
    assert ("Encoding", N + 1, N + 1) in seen


# ------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_categories": 4}, r"n_categories is 4, but 5 categories have labels\. Give the total"),
        ({"n_categories": 301}, "n_categories is 301, but there are only 300 items"),
        ({"n_categories": 0}, "n_categories must be a whole number of at least 1; got 0"),
        ({"n_categories": 7.0}, "n_categories must be a whole number"),
        ({"seed": -1}, "seed must be a whole number from 0"),
        ({"seed": "x"}, "seed must be a whole number from 0"),
        ({"settings": Settings()}, "pass train=True with them"),
        ({"train": True}, "train=True needs pictures, but these are features"),
        ({"train": True, "encoder": "pixels"}, "Pixels cannot be trained"),
    ],
)
def test_settings_that_cannot_be_used(digits_file, options, message):
    with pytest.raises(InputError, match=message):
        discover(digits_file, **options)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([None] * N, "None of the 300 rows of features has a label"),
        (["a"] * N, "All 300 rows of features have a label"),
    ],
)
def test_labels_that_leave_nothing_to_do(y, message):
    with pytest.raises(InputError, match=message):
        discover(collection_of(Digits.X[:N], y))


def test_further_labels_for_a_collection_are_refused(pictures):
    with pytest.raises(InputError, match="has labels of its own"):
        discover(collection_of(Digits.X[:N], Digits.y[:N]), pictures / "labels.csv")


def test_an_empty_folder(tmp_path):
    with pytest.raises(InputError, match=r"There are no pictures in .* Check the path"):
        discover(tmp_path, out=tmp_path / "run")


def test_pictures_none_of_which_can_be_read(tmp_path):
    for name in ("a", "b"):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        (tmp_path / "pictures" / name / "1.png").write_bytes(b"x")
    (tmp_path / "pictures" / "2.png").write_bytes(b"y")
    with pytest.raises(InputError, match=r"no pictures .* 3 were skipped, the first 2\.png: no"):
        discover(tmp_path / "pictures", encoder=GREY)


def test_labels_of_unreadable_pictures_do_not_count(tmp_path):
    Digits.write(tmp_path / "pictures", range(20))
    (tmp_path / "pictures" / "cat").mkdir()
    (tmp_path / "pictures" / "cat" / "1.png").write_bytes(b"x")
    with pytest.raises(InputError, match="None of the 20 pictures has a label"):
        discover(tmp_path / "pictures", encoder=GREY)


def test_a_run_folder_among_the_pictures_is_refused(pictures):
    with pytest.raises(InputError, match="lies in the folder of pictures"):
        run_pictures(pictures, pictures / "pictures" / "run")
    assert not (pictures / "pictures" / "run").exists()


def test_a_run_folder_in_use_is_refused(pictures, tmp_path):
    with (
        open_run(tmp_path, command="discover", data="other"),
        pytest.raises(InputError, match="in use by process"),
    ):
        run_pictures(pictures, tmp_path)


def test_the_run_folder_of_other_data_is_refused(pictures, digits_file, finished):
    result, out = finished
    with pytest.raises(InputError, match="holds a run on another collection"):
        discover(digits_file, out=out)
    with pytest.raises(InputError, match="holds a run on another collection"):
        discover(result.collection.take(range(100)), out=out)
    assert read_result(out).run == result.run


def test_other_features_of_the_same_length_are_other_data(tmp_path):
    collection = collection_of(Digits.X[:N], Digits.y[:N])
    discover(collection, out=tmp_path, n_categories=5, rehearse=False)
    changed = replace(collection, features=Digits.X[:N][::-1])
    with pytest.raises(InputError, match="another collection"):
        discover(changed, out=tmp_path, n_categories=5, rehearse=False)


# ---------------------------------------------------------------------------- stopped, and going on


def stop_at(step, count):
    """Press Ctrl-C when so much of a step is done."""

    def progress(name, done, total):
        if name == step and done >= count:
            raise KeyboardInterrupt

    return progress


def test_ctrl_c_while_encoding_keeps_what_was_encoded(pictures, finished, tmp_path, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        run_pictures(pictures, tmp_path, progress=stop_at("Encoding", 130))
    with pytest.raises(InputError, match="did not finish; give its command again"):
        read_result(tmp_path)
    opened = []
    read_picture = picture_files.read_picture

    def count(path, **options):
        opened.append(path)
        return read_picture(path, **options)

    monkeypatch.setattr(picture_files, "read_picture", count)
    result = run_pictures(pictures, tmp_path)
    assert 0 < len(opened) <= N + 1 - 64
    pd.testing.assert_frame_equal(result.table, finished[0].table)


def test_ctrl_c_while_clustering_can_be_gone_on_from(pictures, finished, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run_pictures(pictures, tmp_path, progress=stop_at("Finding categories", 1))
    result = run_pictures(pictures, tmp_path)
    pd.testing.assert_frame_equal(result.table, finished[0].table)
    pd.testing.assert_frame_equal(result.categories, finished[0].categories)


KILLED = """
import sys
from newfound.workflows.discover import discover
def progress(name, done, total):
    if name == "Finding categories":
        print("there", flush=True)
        sys.stdin.read()
discover(sys.argv[1], sys.argv[2], out=sys.argv[3], encoder=sys.argv[4], rehearse=False,
         progress=progress)
"""


def test_a_kill_can_be_gone_on_from(pictures, finished, tmp_path):
    arguments = [pictures / "pictures", pictures / "labels.csv", tmp_path, GREY]
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout.readline() == "there\n"
        with pytest.raises(InputError, match=f"in use by process {process.pid}"):
            run_pictures(pictures, tmp_path)
        process.send_signal(signal.SIGKILL)
    result = run_pictures(pictures, tmp_path)
    pd.testing.assert_frame_equal(result.table, finished[0].table)


def test_the_same_command_gives_the_same_again(pictures, finished):
    result, out = finished
    again = run_pictures(pictures, out)
    pd.testing.assert_frame_equal(again.table, result.table)


# -------------------------------------------------------------------------------------- predict


def test_more_pictures_are_predicted_without_refitting(pictures, finished):
    result, out = finished
    before = (out / "model" / "mixture.safetensors").read_bytes()
    table = predict(out, pictures / "more")
    assert list(table) == list(result.table)
    assert table["id"].tolist() == [f"{i:03d}.png" for i in range(N, 450)]
    X = (Digits.X[N:450] * 255 / 16).astype(np.uint8) / np.float32(255)
    names = result.categories["category"].to_numpy()
    assert table["category"].tolist() == names[result.mixture.predict(X)].tolist()
    assert table.attrs["skipped"] == [["empty.png", "the file is empty"]]
    assert (out / "model" / "mixture.safetensors").read_bytes() == before


def test_the_same_items_are_predicted_the_same(finished):
    result, out = finished
    table = predict(out, result.collection)
    free = result.table["given_label"].isna()
    for name in ("category", "runner_up"):
        assert table[name][free].tolist() == result.table[name][free].tolist()


def test_items_of_another_kind_are_refused(finished, digits_file):
    with pytest.raises(InputError, match="is on pictures, but these are features"):
        predict(finished[1], digits_file)
    with pytest.raises(InputError, match="is on pictures, but these are features"):
        update(finished[1], digits_file)


def test_an_empty_folder_of_more_is_refused(finished, tmp_path):
    with pytest.raises(InputError, match="There are no pictures in"):
        predict(finished[1], tmp_path)


def test_features_of_another_width_are_refused(tmp_path):
    discover(Blobs.without(8), out=tmp_path, rehearse=False)
    narrow = collection_of(np.zeros((3, 5), dtype=np.float32), [None] * 3)
    with pytest.raises(InputError, match=r"have 5 features, but the run in .* was made with 12"):
        predict(tmp_path, narrow)


def test_a_run_without_its_model_cannot_predict(finished, pictures, tmp_path):
    out = finished[1]
    copy = tmp_path / "run"
    copy.mkdir()
    for path in out.iterdir():
        if path.is_file():
            (copy / path.name).write_bytes(path.read_bytes())
    with pytest.raises(InputError, match="has no folder 'model'"):
        predict(copy, pictures / "more")


def test_other_weights_under_the_same_name_are_noticed(finished, tmp_path, pictures):
    result, out = finished
    (tmp_path / "weights").write_bytes(b"one")
    name = f"net={tmp_path / 'weights'}"
    encoder = {"kind": "network", "name": name, **discovery._file_identity(name)}
    (tmp_path / "weights").write_bytes(b"two")
    job = discovery._Job(0, None, False, discovery._say_nothing)
    with pytest.raises(InputError, match="are not those that the run in"):
        discovery._encode_like(replace(result, encoder=encoder), out, result.collection, job)


# --------------------------------------------------------------------------------------- update


@pytest.fixture
def blob_run(tmp_path):
    """A run on eight of the nine categories."""
    result = discover(Blobs.without(8), out=tmp_path / "run", rehearse=False)
    assert result.n_novel == 2
    return result, tmp_path / "run"


def test_a_new_category_gets_the_next_id_and_the_others_keep_theirs(blob_run):
    old, out = blob_run
    before = categories_of(old.table, Blobs.truth)
    result, changes = update(out, Blobs.take(np.flatnonzero(Blobs.truth == 8)))
    after = categories_of(result.table, Blobs.truth)
    assert after == {**before, 8: "new-003"}
    assert changes.new == {"new-003": 30}
    assert (len(changes.added), changes.moved, changes.gone) == (30, [], {})
    assert result.run["command"] == "update"
    assert result.run["last_id"] == 3
    pd.testing.assert_frame_equal(read_result(out).table, result.table)
    assert json.loads((out / "changes.json").read_text())["new"] == {"new-003": 30}


def test_the_partition_begins_where_it_was(blob_run, monkeypatch):
    old, out = blob_run
    seen = {}
    refit = discovery.SplitMergeMixture.refit

    def listen(mixture, X, y, labels):
        seen.update(labels=labels, y=y)
        return refit(mixture, X, y, labels)

    monkeypatch.setattr(discovery.SplitMergeMixture, "refit", listen)
    update(out, Blobs.take(np.flatnonzero(Blobs.truth == 8)[:5]))
    codes = old.table["category"].map({name: i for i, name in enumerate(old.categories.category)})
    assert seen["labels"][:240].tolist() == codes.tolist()
    nearest = old.mixture.predict(Blobs.X[Blobs.truth == 8][:5])
    assert seen["labels"][240:].tolist() == nearest.tolist()


def test_a_run_can_be_updated_into_another_folder(blob_run, tmp_path):
    out = blob_run[1]
    result, _ = update(out, Blobs.take(np.flatnonzero(Blobs.truth == 8)), out=tmp_path / "next")
    assert len(read_result(out)) == 240
    assert len(read_result(tmp_path / "next")) == len(result) == 270
    again, changes = update(tmp_path / "next", Blobs.take(range(270)))
    assert str(changes).endswith("The categories are the same as before.")
    assert again.table["category"].tolist() == result.table["category"].tolist()


def test_a_novel_category_that_a_person_names_becomes_that_class(blob_run):
    old, out = blob_run
    name = categories_of(old.table, Blobs.truth)[7]
    rows = np.flatnonzero(Blobs.truth == 7)
    labelled = replace(Blobs.take(rows), y=objects(["owl"] * 4 + [None] * 26))
    result, changes = update(out, labelled)
    assert (result.n_known, result.n_novel) == (7, 1)
    assert categories_of(result.table, Blobs.truth)[7] == "owl"
    assert changes.gone == {name: "owl"}
    other = categories_of(old.table, Blobs.truth)[6]
    assert categories_of(result.table, Blobs.truth)[6] == other


def test_new_labels_go_first_and_old_ones_stay(blob_run):
    old, out = blob_run
    # an item that has a label, one that has none, and one whose label is not given again
    first, second = (np.flatnonzero(old.table["given_label"].notna())[:2]).tolist()
    free = int(np.flatnonzero(old.table["given_label"].isna())[0])
    rows = [first, second, free]
    more = replace(old.collection.take(rows), y=objects(["class 5", None, "class 4"]))
    result, _ = update(out, more)
    labels = result.table["given_label"]
    assert labels[first] == result.table["category"][first] == "class 5"
    assert labels[second] == old.table["given_label"][second]
    assert labels[free] == "class 4"
    assert labels.notna().sum() == old.table["given_label"].notna().sum() + 1


def test_ids_that_are_taken_get_the_name_of_their_file(blob_run, tmp_path):
    old, out = blob_run
    rows = np.flatnonzero(Blobs.truth == 8)[:10]
    same_ids = old.collection.ids[:10]
    more = collection_of(Blobs.X[rows], [None] * 10, same_ids, root=tmp_path / "more.npz")
    result, changes = update(out, more)
    assert changes.added == [f"more.npz/{name}" for name in same_ids]
    assert len(result) == 250
    again, changes = update(out, more)
    assert (len(again), changes.added) == (250, [])
    other = replace(more, features=more.features + 1)
    with pytest.raises(InputError, match="has an item 'item 000' already, with other content"):
        update(out, other)


def test_pictures_of_another_folder_are_other_pictures(finished, pictures, tmp_path):
    result, out = finished
    folder = tmp_path / "more"
    Digits.write(folder, range(5))
    for i in reversed(range(5)):
        (folder / f"{i:03d}.png").rename(folder / f"{i + 1:03d}.png")
    found, changes = update(out, folder, out=tmp_path / "next")
    assert changes.added == [f"more/{i:03d}.png" for i in range(1, 6)]
    assert found.collection.paths[-1] == folder / "005.png"
    same, changes = update(out, pictures / "pictures", out=tmp_path / "same")
    assert (len(same), changes.added) == (N, [])
    assert same.table["given_label"].tolist() == result.table["given_label"].tolist()


def test_more_labels_for_the_pictures_of_a_run(finished, pictures, tmp_path):
    result, out = finished
    (tmp_path / "labels.csv").write_text("path,label\n005.png,a five\n015.png,a five\n")
    found, _ = update(out, pictures / "pictures", tmp_path / "labels.csv", out=tmp_path / "next")
    assert found.n_known == 6
    assert found.table["category"][[5, 15]].tolist() == ["a five", "a five"]
    kept = result.table["given_label"].notna()
    assert (found.table["given_label"] == result.table["given_label"])[kept].all()


def test_an_update_rehearses_if_the_run_did(tmp_path, monkeypatch):
    monkeypatch.setattr(discovery, "N_DRAWS", 2)
    discover(Blobs.without(8), out=tmp_path)
    more = Blobs.take(np.flatnonzero(Blobs.truth == 8))
    assert update(tmp_path, more)[0].run["rehearsal"]["n_draws"] == 2


def test_a_given_number_stays(tmp_path):
    discover(Blobs.without(8), out=tmp_path, n_categories=8)
    result, _ = update(tmp_path, Blobs.take(np.flatnonzero(Blobs.truth == 8)))
    assert len(result.categories) == 8
    assert "as asked for" in result.run["sentence"]


def test_ctrl_c_leaves_the_run_as_it_was(blob_run):
    old, out = blob_run
    more = Blobs.take(np.flatnonzero(Blobs.truth == 8))
    with pytest.raises(KeyboardInterrupt):
        update(out, more, progress=stop_at("Finding categories", 1))
    pd.testing.assert_frame_equal(read_result(out).table, old.table)
    assert len(update(out, more)[0]) == 270


def test_a_run_in_use_is_not_updated(blob_run):
    old, out = blob_run
    data = discovery._fingerprint(old.collection)
    with (
        open_run(out, command="discover", data=data),
        pytest.raises(InputError, match="in use"),
    ):
        update(out, Blobs.take([0]))


def test_after_an_update_the_first_command_is_refused(blob_run):
    out = blob_run[1]
    update(out, Blobs.take(np.flatnonzero(Blobs.truth == 8)))
    with pytest.raises(InputError, match="holds a run of `newfound update`"):
        discover(Blobs.without(8), out=out)


# ------------------------------------------------------------------------------------- training

SMALL = Settings(
    model="test_resnet.r160_in1k",
    weights="random",
    image_size=16,
    epochs=2,
    warmup_epochs=1,
    n_labelled_per_batch=16,
    n_unlabelled_per_batch=48,
    learning_rate=0.01,
    precision="32-true",
)


@pytest.fixture(scope="module")
def trained(pictures, tmp_path_factory):
    out = tmp_path_factory.mktemp("trained") / "run"
    steps = []
    result = run_pictures(
        pictures,
        out,
        encoder="auto",
        train=True,
        settings=SMALL,
        seed=4,
        progress=lambda *step: steps.append(step),
    )
    return result, out, steps


def test_training(trained):
    result, _, steps = trained
    assert len(result) == N
    assert result.n_known == 5
    labelled = result.table["given_label"].notna()
    assert (result.table["category"] == result.table["given_label"])[labelled].all()
    assert result.run["history"]["unit"] == "epoch"
    assert len(result.run["history"]["n_components"]) == 2
    assert result.run["settings"]["training"]["seed"] == 4
    assert result.run["settings"]["training"]["rehearse"] is False
    assert result.run["encoder"] == "test_resnet.r160_in1k, trained"
    assert ("Decoding", N + 1, N + 1) in steps
    done = [step for step in steps if step[0] == "Training"][-1]
    assert done[1] == done[2] > 2
    assert [item.path for item in result.collection.skipped] == ["broken.png"]


def test_a_rehearsal_on_trained_features_is_said_to_flatter(trained, pictures, tmp_path):
    assert not any("flatters" in text for text in trained[0].run["warnings"])
    options = {"encoder": "auto", "train": True, "settings": SMALL.with_changes(epochs=1)}
    result = run_pictures(pictures, tmp_path / "run", rehearse=True, **options)
    assert result.run["rehearsal"] is not None
    assert any("flatters" in text for text in result.run["warnings"])


def test_a_trained_network_predicts(trained, pictures, tmp_path):
    result, out, _ = trained
    job = discovery._Job(0, None, False, discovery._say_nothing)
    again = discovery._encode_like(read_result(out), out, result.collection, job)
    np.testing.assert_allclose(again.features, result.features, rtol=1e-4, atol=1e-5)
    found, changes = update(out, pictures / "more", out=tmp_path / "next")
    assert len(changes.added) == 150
    table = predict(tmp_path / "next", pictures / "more")
    assert table["category"].notna().all()
    (tmp_path / "next" / "train" / found.encoder["checkpoint"]).unlink()
    with pytest.raises(InputError, match="with the weights that were trained, is missing"):
        predict(tmp_path / "next", pictures / "more")


def test_a_network_without_a_best_epoch_has_the_averaged_weights(pictures, tmp_path):
    settings = SMALL.with_changes(epochs=1, selection="last", weight_average=0.8)
    out = tmp_path / "run"
    result = run_pictures(pictures, out, encoder="auto", train=True, settings=settings)
    assert result.encoder["checkpoint"] == "last.safetensors"
    path = out / "train" / "last.safetensors"
    tensors, _ = load_checkpoint(path)
    backbone = load_trained(settings, path).backbone
    n_other = 0
    for name, value in backbone.state_dict().items():
        last = tensors[f"network.backbone.{name}"]
        expected = tensors.get(f"average.network.backbone.{name}", last)
        np.testing.assert_array_equal(value.numpy(), expected.numpy(), err_msg=name)
        n_other += bool((expected != last).any())
    assert n_other > 0
    job = discovery._Job(0, None, False, discovery._say_nothing)
    again = discovery._encode_like(read_result(out), out, result.collection, job)
    np.testing.assert_allclose(again.features, result.features, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("encoder", "model", "weights"),
    [
        ("auto", "resnet18", "random"),
        ("efficientnet-lite1", "tf_efficientnet_lite1", "offline"),
        ("vit_small_patch16_224.dino", "vit_small_patch16_224.dino", "hub"),
        ("resnet50=/a/file", "resnet50", "/a/file"),
    ],
)
def test_the_network_to_train(encoder, model, weights):
    job = discovery._Job(7, 12, True, discovery._say_nothing)
    given = Settings(model="resnet18", weights="random", seed=1)
    plan = discovery._plan_training(given, encoder, job)
    assert (plan.network.model, plan.network.weights) == (model, weights)
    assert (plan.run.seed, plan.estep.n_components, plan.run.rehearse) == (7, 12, True)
