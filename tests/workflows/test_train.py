"""Training on a folder of pictures: the run that it leaves, and how it resumes."""

import csv
import json
import shutil

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from samples import SMALL_TRAINING, Digits

torch = pytest.importorskip("torch")

from newfound.deep.checkpoint import load_checkpoint  # noqa: E402
from newfound.deep.images.views import views_for  # noqa: E402
from newfound.deep.logs import TensorBoard  # noqa: E402
from newfound.deep.network.backbone import load_backbone  # noqa: E402
from newfound.deep.settings import Settings  # noqa: E402
from newfound.errors import InputError  # noqa: E402
from newfound.files import read_json, write_json  # noqa: E402
from newfound.own_folder import locked  # noqa: E402
from newfound.report.page import render_report  # noqa: E402
from newfound.result.export import export  # noqa: E402
from newfound.result.run_folder import record_start  # noqa: E402
from newfound.result.store import read_result  # noqa: E402
from newfound.workflows.predict import predict  # noqa: E402
from newfound.workflows.train import train  # noqa: E402
from newfound.workflows.update import update  # noqa: E402

torch.set_num_threads(1)
pytestmark = pytest.mark.filterwarnings("ignore:The count suggests")

N = 120
SMALL = Settings(**SMALL_TRAINING)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder with `pictures`, of which one is broken, and `labels.csv`."""
    root = tmp_path_factory.mktemp("digits")
    Digits.write(root / "pictures", range(N))
    Digits.write(root / "more", range(N, N + 20))
    (root / "pictures" / "050-broken.png").write_bytes(b"no picture")
    Digits.write_labels(root / "labels.csv", range(N))
    return root


def train_on(root, out, settings=SMALL, **options):
    return train(root / "pictures", root / "labels.csv", settings, out, **options)


@pytest.fixture(scope="module")
def finished(root, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    return train_on(root, out), out


def read_table(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def contents(folder):
    """Files of the run itself, without times, logs and caches."""
    files = [*folder.glob("*.csv"), *folder.glob("*.parquet"), *(folder / "model").iterdir()]
    return {path.name: path.read_bytes() for path in files}


# --- what a run leaves


def test_the_files_of_a_run(finished):
    _, out = finished
    assert sorted(path.name for path in out.iterdir() if not path.name.startswith(".")) == [
        "assignments.csv",
        "assignments.parquet",
        "backbone.safetensors",
        "categories.csv",
        "categories.parquet",
        "digests.json",
        "levels.json",
        "model",
        "pictures",
        "run.json",
        "skipped.csv",
        "started.json",
        "train",
    ]
    assert sorted(path.name for path in (out / "train").iterdir()) == [
        "best.safetensors",
        "epochs.jsonl",
        "history.png",
        "last.safetensors",
        "tensorboard",
    ]
    assert len((out / "train" / "epochs.jsonl").read_text().splitlines()) == 2
    assert len(list((out / "train" / "tensorboard").iterdir())) == 1
    with Image.open(out / "train" / "history.png") as picture:
        assert picture.format == "PNG"


def test_a_file_that_cannot_be_read_is_listed_with_the_reason(finished):
    result, out = finished
    reason = "not a picture in a format that can be read"
    skipped = result.collection.skipped
    assert [(item.path, item.reason) for item in skipped] == [("050-broken.png", reason)]
    assert read_table(out / "skipped.csv") == [{"path": "050-broken.png", "reason": reason}]
    assert len(result) == N


def test_every_other_picture_has_a_category(finished):
    result, out = finished
    rows = read_table(out / "assignments.csv")
    assert [row["id"] for row in rows] == [f"{i:03d}.png" for i in range(N)]
    for row, truth, is_labelled in zip(rows, Digits.truth, Digits.is_labelled, strict=False):
        assert row["given_label"] == (f"digit {truth}" if is_labelled else "")
        assert row["given_label"] in ("", row["category"])
        assert row["kind"] == ("known" if row["category"].startswith("digit ") else "novel")
    labels = result.mixture.labels_
    assert [row["category"] for row in rows] == [result.names[label] for label in labels]


def test_the_record(root, finished):
    result, out = finished
    record = read_result(out).record
    assert record == result.record
    assert Settings(**record.settings.training) == SMALL
    assert (record.command, record.n_items, record.n_known) == ("train", N, 5)
    assert record.n_novel_interval == result.mixture.n_novel_interval_
    assert record.history.unit == "epoch"
    assert len(record.history.n_components) == 2
    assert record.rehearsal is None
    assert record.rerun.startswith(
        f"newfound train {root}/pictures --model test_resnet --weights random --image-size 8 "
    )
    assert record.rerun.endswith(f"--no-rehearse --labels {root}/labels.csv --out {out}")


def test_the_other_commands_understand_the_run(root, finished, tmp_path):
    """What `report`, `predict`, `export` and `update` do with the folder of `train`."""
    result, out = finished
    page = render_report(read_result(out))
    assert "newfound train" in page
    table = predict(out, root / "more")
    assert len(table) == 20
    assert set(table["category"]) <= set(result.names)
    export(read_result(out), "coco", tmp_path / "categories.json")
    assert len(json.loads((tmp_path / "categories.json").read_text())["images"]) == N
    grown, changes = update(out, root / "more", out=tmp_path / "next")
    assert (len(grown), len(changes.added)) == (N + 20, 20)
    assert read_result(tmp_path / "next").record.command == "update"


def test_the_weights_give_the_features_of_the_run(finished):
    result, out = finished
    backbone = load_backbone(
        "test_resnet", weights=str(out / "backbone.safetensors"), image_size=8
    ).eval()
    images = torch.from_numpy(np.repeat(Digits.images[:N, None], 3, axis=1))
    with torch.no_grad():
        features = backbone(views_for(backbone, SMALL.views).centre(images)).numpy()
    np.testing.assert_allclose(features, result.features, atol=1e-5)
    _, made_by = load_checkpoint(out / "backbone.safetensors")
    assert made_by == {"model": "test_resnet", "image_size": 8}


def test_progress_names_the_steps(root, tmp_path):
    steps = []
    train_on(
        root,
        tmp_path / "run",
        progress=lambda *step: steps.append(step),
    )
    assert ("Decoding", N + 1, N + 1) in steps
    name, done, total = [step for step in steps if step[0].startswith("Training")][-1]
    assert done == total > 2
    assert "loss" in name
    assert "images/s" in name


def test_a_rehearsal_is_in_the_record(root, tmp_path):
    result = train_on(root, tmp_path, SMALL.with_changes(epochs=1, rehearse=True))
    assert len(result.record.rehearsal.ratios) > 0
    assert read_result(tmp_path).record.rehearsal == result.record.rehearsal


def test_class_folders_need_no_table(tmp_path):
    def name_of(i):
        folder = f"digit {Digits.truth[i]}" if Digits.is_labelled[i] else "unlabelled"
        return f"{folder}/{i:03d}.png"

    Digits.write(tmp_path / "pictures", range(N), name_of)
    settings = SMALL.with_changes(epochs=1)
    result = train(tmp_path / "pictures", None, settings, tmp_path / "run")
    assert result.collection.is_labelled.sum() == Digits.is_labelled[:N].sum()
    rows = read_table(tmp_path / "run" / "assignments.csv")
    assert {row["given_label"] for row in rows} == {"", *[f"digit {i}" for i in range(5)]}


# --- again


def test_the_same_again_changes_nothing(root, finished, tmp_path):
    result, out = finished
    copy = tmp_path / "run"
    shutil.copytree(out, copy)
    before, epochs = contents(copy), (copy / "train" / "epochs.jsonl").read_bytes()
    again = train_on(root, copy)
    assert contents(copy) == before
    np.testing.assert_array_equal(again.features, result.features)
    # The lines hold the seconds of each epoch: no epoch was trained again.
    assert (copy / "train" / "epochs.jsonl").read_bytes() == epochs


def test_an_interrupted_run_is_resumed(root, finished, tmp_path, monkeypatch):
    def interrupt(self, record):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(TensorBoard, "epoch", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train_on(root, tmp_path)
    assert len((tmp_path / "train" / "epochs.jsonl").read_text().splitlines()) == 1
    assert not (tmp_path / "assignments.csv").exists()
    again = train_on(root, tmp_path)
    result, out = finished
    np.testing.assert_array_equal(again.features, result.features)
    assert contents(tmp_path) == contents(out)
    name = "backbone.safetensors"
    assert (tmp_path / name).read_bytes() == (out / name).read_bytes()


def test_other_settings_in_the_same_folder_are_refused(root, finished):
    with pytest.raises(InputError, match=r"another request: learning_rate 0\.05 \(now 0\.2\)\."):
        train_on(root, finished[1], SMALL.with_changes(learning_rate=0.2))


def test_other_pictures_in_the_same_folder_are_refused(root, finished, tmp_path):
    shutil.copytree(root, tmp_path / "other")
    shutil.copytree(finished[1], tmp_path / "run")
    Image.fromarray(255 - Digits.images[7]).save(tmp_path / "other" / "pictures" / "007.png")
    with pytest.raises(InputError, match="the content of the items differs"):
        train_on(tmp_path / "other", tmp_path / "run")


def test_a_finished_training_is_not_done_again_unasked(root, finished, tmp_path, monkeypatch):
    result, out = finished
    copy = tmp_path / "run"
    shutil.copytree(out, copy)
    with monkeypatch.context() as patch:
        patch.setattr("newfound.workflows.training.start_processes", None)  # nothing may start
        again = train_on(root, copy, SMALL.with_changes(device="cpu"))  # the same result
    pd.testing.assert_frame_equal(again.table, result.table)
    lines = (copy / "train" / "epochs.jsonl").read_bytes()
    redone = train_on(root, copy, overwrite=True)
    assert (copy / "train" / "epochs.jsonl").read_bytes() != lines  # the seconds differ
    np.testing.assert_array_equal(redone.features, result.features)


def test_an_interrupted_redo_is_resumed(root, finished, tmp_path, monkeypatch):
    copy = tmp_path / "run"
    shutil.copytree(finished[1], copy)
    settings = SMALL.with_changes(learning_rate=0.1)

    def interrupt(self, record):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(TensorBoard, "epoch", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train_on(root, copy, settings, overwrite=True)
    pd.testing.assert_frame_equal(read_result(copy).table, finished[0].table)  # still there
    first = (copy / "train" / "epochs.jsonl").read_bytes()
    train_on(root, copy, settings, overwrite=True)
    assert (copy / "train" / "epochs.jsonl").read_bytes().startswith(first)
    assert read_result(copy).record.settings.training["learning_rate"] == 0.1
    assert "redo" not in json.loads((copy / "started.json").read_text())


def as_by_0_1_0(out, folder):
    """The folder that version 0.1.0 left for the same training."""
    folder.mkdir()
    for path in (*(out / "train").iterdir(), out / "backbone.safetensors"):
        copy = shutil.copytree if path.is_dir() else shutil.copy2
        copy(path, folder / path.name)
    shutil.copytree(out / "pictures", folder / "pictures")
    (folder / "run.json").write_text(json.dumps({"settings": SMALL.as_dict(), "n_pictures": N}))
    (folder / "assignments.csv").write_text("path,given_label,category,kind\n")
    (folder / "skipped.csv").write_text("path,reason\n")


def test_the_same_command_converts_a_folder_of_0_1_0(root, finished, tmp_path):
    _, out = finished
    as_by_0_1_0(out, tmp_path / "old")
    with pytest.raises(InputError, match=r"by `newfound train` of version 0\.1\.0.*again"):
        read_result(tmp_path / "old")
    epochs = (out / "train" / "epochs.jsonl").read_bytes()
    train_on(root, tmp_path / "old")
    assert contents(tmp_path / "old") == contents(out)
    assert (tmp_path / "old" / "train" / "epochs.jsonl").read_bytes() == epochs
    assert not (tmp_path / "old" / "last.safetensors").exists()


@pytest.mark.parametrize("stranger", ["notes.txt", "newer run.json", "checkpoint"])
def test_the_files_of_a_stranger_are_not_taken_for_a_training(root, finished, tmp_path, stranger):
    folder = tmp_path / "old"
    as_by_0_1_0(finished[1], folder)
    if stranger == "notes.txt":
        (folder / "notes.txt").write_text("mine")
    elif stranger == "newer run.json":
        (folder / "run.json").write_text('{"version": "3"}')
    else:
        (folder / "last.safetensors").write_text("mine")
    before = {path.name: path.read_bytes() for path in folder.glob("*.*") if path.is_file()}
    with pytest.raises(InputError, match=r"is not empty .* no run folder|started\.json cannot"):
        train_on(root, folder)
    after = {path.name: path.read_bytes() for path in folder.glob("*.*") if path.name in before}
    assert after == before


def test_the_run_of_another_command_is_not_trained_over(root, finished, tmp_path):
    copy = shutil.copytree(finished[1], tmp_path / "run")
    record_start(copy, command="discover", data=read_json(copy / "started.json")["data"])
    before = contents(copy)
    with pytest.raises(InputError, match="holds a run of `newfound discover`"):
        train_on(root, copy)
    with locked(copy), pytest.raises(InputError, match="in use"):
        train_on(root, copy, overwrite=True)
    assert contents(copy) == before


def test_a_checkpoint_outside_of_the_run_is_neither_read_nor_written(root, finished, tmp_path):
    copy = shutil.copytree(finished[1], tmp_path / "run")
    words = read_json(copy / "model" / "mixture.json")
    words["encoder"]["checkpoint"] = "../../precious"
    write_json(copy / "model" / "mixture.json", words)
    # Whoever changes a file on purpose removes the digests too.
    (copy / "digests.json").unlink()
    run = read_json(copy / "run.json")
    write_json(copy / "run.json", {key: run[key] for key in run if key != "digests"})
    (tmp_path / "precious").write_text("mine")
    for use in (predict, lambda *names: update(*names, out=tmp_path / "a" / "next")):
        with pytest.raises(InputError, match=r"its checkpoint is .*precious"):
            use(copy, root / "more")
    assert (tmp_path / "precious").read_text() == "mine"


# --- what cannot be used


def test_a_file_of_features_is_refused(tmp_path):
    np.savez(tmp_path / "f.npz", X=np.eye(4), y=np.array(["a", "", "b", ""]))
    with pytest.raises(InputError, match=r"needs a folder of pictures; .*f\.npz holds feature"):
        train(tmp_path / "f.npz", None, SMALL, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_pictures_without_any_label_are_refused(root, tmp_path):
    with pytest.raises(InputError, match="None of the 121 pictures has a label"):
        train(root / "pictures", None, SMALL, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_folder_without_a_readable_picture_is_refused(tmp_path):
    for name in ("a/1.png", "unlabelled/2.png"):
        (tmp_path / "pictures" / name).parent.mkdir(parents=True)
        (tmp_path / "pictures" / name).write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"None of the 2 pictures can be read.*a/1\.png"):
        train(tmp_path / "pictures", None, SMALL, tmp_path / "run")


def test_labels_of_broken_files_only_are_no_labels(tmp_path):
    Digits.write(tmp_path / "pictures", range(N), "unlabelled/{:03d}.png".format)
    (tmp_path / "pictures" / "a").mkdir()
    (tmp_path / "pictures" / "a" / "broken.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match="None of the 120 pictures has a label"):
        train(tmp_path / "pictures", None, SMALL.with_changes(epochs=1), tmp_path / "run")


def test_a_run_folder_among_the_pictures_is_refused(root, tmp_path):
    shutil.copytree(root, tmp_path / "copy")
    with pytest.raises(InputError, match="is inside the folder of pictures"):
        train_on(tmp_path / "copy", tmp_path / "copy" / "pictures" / "run")


def test_the_label_zero_is_written(root, tmp_path):
    rows = np.flatnonzero(Digits.is_labelled[:N])
    table = {"path": [f"{i:03d}.png" for i in rows], "label": Digits.truth[rows]}
    pd.DataFrame(table).to_parquet(tmp_path / "labels.parquet")
    train(
        root / "pictures",
        tmp_path / "labels.parquet",
        SMALL.with_changes(epochs=1),
        tmp_path / "run",
    )
    given = {row["given_label"] for row in read_table(tmp_path / "run" / "assignments.csv")}
    assert given == {"", "0", "1", "2", "3", "4"}


def test_pictures_below_a_confidence_are_marked(root, tmp_path):
    marked = train_on(root, tmp_path / "run", min_confidence=0.9)
    is_free = marked.table["given_label"].isna()
    is_low = marked.table["confidence"] < 0.9
    assert marked.table["is_unsure"].tolist() == (is_low & is_free).tolist()
    assert marked.table["is_unsure"].any()
    assert read_result(tmp_path / "run").record.settings.min_confidence == 0.9
    assert marked.record.rerun.endswith(" --min-confidence 0.9")
    with pytest.raises(InputError, match="min_confidence must be"):
        train_on(root, tmp_path / "no", min_confidence=90)
    assert not (tmp_path / "no").exists()


def test_no_table_holds_a_text_that_a_spreadsheet_would_run(tmp_path):
    Digits.write(tmp_path / "pictures", range(60), "=cmd{:03d}.png".format)
    (tmp_path / "pictures" / "+broken.png").write_bytes(b"no picture")
    rows = [f'=cmd{i:03d}.png,"=1+{Digits.y[i]}"' for i in range(60) if Digits.y[i]]
    (tmp_path / "labels.csv").write_text("\n".join(["path,label", *rows]))
    train_on(tmp_path, tmp_path / "run")
    cells = [
        cell
        for path in (tmp_path / "run").rglob("*.csv")
        for row in read_table(path)
        for cell in row.values()
    ]
    assert "'=cmd000.png" in cells
    assert "'+broken.png" in cells
    assert any(cell.startswith("'=1+digit") for cell in cells)
    assert not any(cell.startswith(("=", "+", "@", "\t")) for cell in cells)
    names = read_result(tmp_path / "run").names
    assert any(name.startswith("=1+digit") for name in names)
