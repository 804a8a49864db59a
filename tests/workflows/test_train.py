"""Training on a folder of pictures: what the run folder holds, and that a run can go on."""

import csv
import json
import shutil

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.datasets import load_digits

torch = pytest.importorskip("torch")

from newfound.cli.progress import TrainingBar  # noqa: E402
from newfound.deep.checkpoint import load_checkpoint  # noqa: E402
from newfound.deep.logs import TensorBoard  # noqa: E402
from newfound.deep.network.backbone import load_backbone  # noqa: E402
from newfound.deep.settings import Settings  # noqa: E402
from newfound.errors import InputError  # noqa: E402
from newfound.workflows.train import train_on_pictures  # noqa: E402

torch.set_num_threads(1)
pytestmark = pytest.mark.filterwarnings("ignore:The count speaks")

N = 120
SMALL = Settings(
    model="test_resnet",
    weights="random",
    image_size=8,
    crop_min=1.0,
    crop_max=1.0,
    epochs=2,
    n_labelled_per_batch=16,
    n_unlabelled_per_batch=16,
    learning_rate=0.05,
    warmup_epochs=1,
    n_directions=8,
    rehearse=False,
)
PRETRAINING = SMALL.with_changes(supervised_weight=0.0, selection="last")


class Digits:
    """Some digits; about half of the labels of five classes."""

    X, truth = load_digits(return_X_y=True)
    X, truth = (X[:N].reshape(-1, 8, 8) * 255 / 16).astype(np.uint8), truth[:N]
    half = np.random.default_rng(0).random(N) < 0.5
    is_labelled = (truth < 5) & half


def write_pictures(folder, name_of):
    for i in range(N):
        path = folder / name_of(i)
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(Digits.X[i]).save(path)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder with `pictures`, of which one is broken, and `labels.csv`."""
    root = tmp_path_factory.mktemp("digits")
    write_pictures(root / "pictures", lambda i: f"{i:03d}.png")
    (root / "pictures" / "050-broken.png").write_bytes(b"no picture")
    rows = [f"{i:03d}.png,digit {Digits.truth[i]}" for i in np.flatnonzero(Digits.is_labelled)]
    (root / "labels.csv").write_text("\n".join(["path,label", *rows]))
    return root


def train(root, out, settings=SMALL, **options):
    return train_on_pictures(root / "pictures", root / "labels.csv", settings, out, **options)


@pytest.fixture(scope="module")
def finished(root, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    return train(root, out), out


@pytest.fixture(scope="module")
def pretrained(root, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "pretrained"
    trained = train_on_pictures(root / "pictures", None, PRETRAINING, out, pretraining=True)
    return trained, out


def read_table(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def contents(folder):
    """What a person takes away, without the logs and the caches."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


# --- what a run leaves


def test_the_files_of_a_run(finished):
    _, out = finished
    assert sorted(path.name for path in out.iterdir()) == [
        "assignments.csv",
        "backbone.safetensors",
        "best.safetensors",
        "epochs.jsonl",
        "history.png",
        "last.safetensors",
        "pictures",
        "run.json",
        "skipped.csv",
        "tensorboard",
    ]
    assert len((out / "epochs.jsonl").read_text().splitlines()) == 2
    assert len(list((out / "tensorboard").iterdir())) == 1
    with Image.open(out / "history.png") as picture:
        assert picture.format == "PNG"


def test_a_file_that_cannot_be_read_is_listed_with_the_reason(finished):
    (collection, _), out = finished
    reason = "not a picture in a format that can be read"
    assert [(item.path, item.reason) for item in collection.skipped] == [("050-broken.png", reason)]
    assert read_table(out / "skipped.csv") == [{"path": "050-broken.png", "reason": reason}]
    assert len(collection) == N


def test_every_other_picture_has_a_category(finished):
    (collection, trained), out = finished
    rows = read_table(out / "assignments.csv")
    assert [row["path"] for row in rows] == [f"{i:03d}.png" for i in range(N)]
    mixture = trained.mixture
    for row, label, truth, is_labelled in zip(
        rows, mixture.labels_, Digits.truth, Digits.is_labelled, strict=True
    ):
        assert row["given_label"] == (f"digit {truth}" if is_labelled else "")
        assert row["category"] == mixture.category_names_[label]
        assert row["given_label"] in ("", row["category"])
        assert row["kind"] == ("known" if row["category"].startswith("digit ") else "novel")
    assert list(collection.y) == [row["given_label"] or None for row in rows]


def test_the_summary(finished):
    (_, trained), out = finished
    summary = json.loads((out / "run.json").read_text())
    assert Settings(**summary["settings"]) == SMALL
    assert summary["n_pictures"] == N
    assert summary["n_known"] == 5
    assert summary["n_novel"] == trained.mixture.n_novel_
    assert summary["n_novel_interval"] == list(trained.mixture.n_novel_interval_)
    assert summary["selected_epoch"] == trained.selected_epoch
    assert "rehearsal_ratios" not in summary


def test_the_weights_give_the_features_of_the_run(finished):
    (_, trained), out = finished
    backbone = load_backbone(
        "test_resnet", weights=str(out / "backbone.safetensors"), image_size=8
    ).eval()
    images = torch.from_numpy(np.repeat(Digits.X[:, None], 3, axis=1))
    with torch.no_grad():
        features = backbone(trained.views.centre(images)).numpy()
    np.testing.assert_allclose(features, trained.features, atol=1e-5)
    _, made_by = load_checkpoint(out / "backbone.safetensors")
    assert made_by == {"model": "test_resnet", "image_size": 8}


def test_progress_goes_to_standard_error(root, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    train(root, tmp_path, SMALL.with_changes(epochs=1))
    out, err = capsys.readouterr()
    assert out == ""
    for shown in ("Reading pictures", "Finding the categories", "images/s"):
        assert shown in err


def test_a_rehearsal_is_in_the_summary(root, tmp_path):
    _, trained = train(root, tmp_path, SMALL.with_changes(epochs=1, rehearse=True))
    ratios = json.loads((tmp_path / "run.json").read_text())["rehearsal_ratios"]
    assert ratios == trained.rehearsal.ratios.tolist()
    assert len(ratios) > 0


def test_class_folders_need_no_table(tmp_path):
    def name_of(i):
        folder = f"digit {Digits.truth[i]}" if Digits.is_labelled[i] else "unlabelled"
        return f"{folder}/{i:03d}.png"

    write_pictures(tmp_path / "pictures", name_of)
    settings = SMALL.with_changes(epochs=1)
    collection, _ = train_on_pictures(tmp_path / "pictures", None, settings, tmp_path / "run")
    assert collection.is_labelled.sum() == Digits.is_labelled.sum()
    rows = read_table(tmp_path / "run" / "assignments.csv")
    assert {row["given_label"] for row in rows} == {"", *[f"digit {i}" for i in range(5)]}


# --- again


def test_the_same_again_changes_nothing(root, finished, tmp_path):
    (_, trained), out = finished
    copy = tmp_path / "run"
    shutil.copytree(out, copy)
    before = contents(copy)
    _, again = train(root, copy)
    assert contents(copy) == before
    np.testing.assert_array_equal(again.features, trained.features)
    assert again.history == trained.history  # with their times: no epoch was trained again


def test_an_interrupted_run_goes_on(root, finished, tmp_path, monkeypatch):
    def interrupt(self, record):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(TensorBoard, "epoch", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train(root, tmp_path)
    assert len((tmp_path / "epochs.jsonl").read_text().splitlines()) == 1
    assert not (tmp_path / "assignments.csv").exists()
    _, again = train(root, tmp_path)
    (_, trained), out = finished
    np.testing.assert_array_equal(again.features, trained.features)
    for name in ("assignments.csv", "backbone.safetensors", "run.json", "skipped.csv"):
        assert (tmp_path / name).read_bytes() == (out / name).read_bytes(), name


def test_an_interrupted_run_takes_its_bar_away(root, tmp_path, monkeypatch):
    events = []

    def interrupt(self, epoch, n_done, n_batches):
        raise KeyboardInterrupt

    monkeypatch.setattr(TrainingBar, "batch", interrupt)
    monkeypatch.setattr(TrainingBar, "end", lambda self: events.append("end"))
    with pytest.raises(KeyboardInterrupt):
        train(root, tmp_path)
    assert events == ["end"]


def test_other_settings_in_the_same_folder_are_refused(root, finished):
    with pytest.raises(InputError, match=r"other settings: learning_rate was 0\.05 and is 0\.2"):
        train(root, finished[1], SMALL.with_changes(learning_rate=0.2))


def test_other_pictures_in_the_same_folder_are_refused(root, finished, tmp_path):
    shutil.copytree(root, tmp_path / "other")
    shutil.copytree(finished[1], tmp_path / "run")
    Image.fromarray(255 - Digits.X[7]).save(tmp_path / "other" / "pictures" / "007.png")
    with pytest.raises(InputError, match="other data: images was"):
        train(tmp_path / "other", tmp_path / "run")


# --- what cannot be used


def test_a_file_of_features_is_refused(tmp_path):
    np.savez(tmp_path / "f.npz", X=np.eye(4), y=np.array(["a", "", "b", ""]))
    for pretraining in (False, True):
        with pytest.raises(InputError, match=r"needs a folder of pictures; .*f\.npz holds feature"):
            train_on_pictures(
                tmp_path / "f.npz", None, SMALL, tmp_path / "run", pretraining=pretraining
            )
    assert not (tmp_path / "run").exists()


def test_pictures_without_any_label_are_refused(root, tmp_path):
    with pytest.raises(InputError, match="None of the 121 pictures has a label"):
        train_on_pictures(root / "pictures", None, SMALL, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_folder_without_a_readable_picture_is_refused(tmp_path):
    for name in ("a/1.png", "unlabelled/2.png"):
        (tmp_path / "pictures" / name).parent.mkdir(parents=True)
        (tmp_path / "pictures" / name).write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"None of the 2 pictures can be read.*a/1\.png"):
        train_on_pictures(tmp_path / "pictures", None, SMALL, tmp_path / "run")


def test_labels_of_broken_files_only_are_no_labels(tmp_path):
    write_pictures(tmp_path / "pictures", lambda i: f"unlabelled/{i:03d}.png")
    (tmp_path / "pictures" / "a").mkdir()
    (tmp_path / "pictures" / "a" / "broken.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match="None of the 120 pictures has a label"):
        train_on_pictures(
            tmp_path / "pictures", None, SMALL.with_changes(epochs=1), tmp_path / "run"
        )


def test_a_run_folder_among_the_pictures_is_refused(root, tmp_path):
    shutil.copytree(root, tmp_path / "copy")
    with pytest.raises(InputError, match="lies in the folder of pictures"):
        train(tmp_path / "copy", tmp_path / "copy" / "pictures" / "run")


def test_the_label_zero_is_written(root, tmp_path):
    rows = np.flatnonzero(Digits.is_labelled)
    table = {"path": [f"{i:03d}.png" for i in rows], "label": Digits.truth[rows]}
    pd.DataFrame(table).to_parquet(tmp_path / "labels.parquet")
    train_on_pictures(
        root / "pictures",
        tmp_path / "labels.parquet",
        SMALL.with_changes(epochs=1),
        tmp_path / "run",
    )
    given = {row["given_label"] for row in read_table(tmp_path / "run" / "assignments.csv")}
    assert given == {"", "0", "1", "2", "3", "4"}


# --- pretraining


def test_pretraining_leaves_weights_and_no_categories(pretrained):
    (collection, trained), out = pretrained
    assert trained.mixture is None
    assert [item.path for item in collection.skipped] == ["050-broken.png"]
    assert sorted(path.name for path in out.iterdir()) == [
        "backbone.safetensors",
        "epochs.jsonl",
        "history.png",
        "last.safetensors",
        "pictures",
        "run.json",
        "skipped.csv",
        "tensorboard",
    ]
    summary = json.loads((out / "run.json").read_text())
    assert set(summary) == {"settings", "selected_epoch", "n_pictures"}
    assert summary["selected_epoch"] == 2


def test_class_folders_do_not_change_a_pretraining(pretrained, tmp_path):
    write_pictures(tmp_path / "pictures", lambda i: f"{'a' if i < 60 else 'b'}/{i:03d}.png")
    collection, trained = train_on_pictures(
        tmp_path / "pictures", None, PRETRAINING, tmp_path / "run", pretraining=True
    )
    assert collection.is_labelled.all()
    np.testing.assert_array_equal(trained.features, pretrained[0].trained.features)


def test_training_begins_with_the_weights_of_a_pretraining(root, pretrained, tmp_path):
    (_, before), out = pretrained
    file = out / "backbone.safetensors"
    settings = SMALL.with_changes(weights=str(file), epochs=1, learning_rate=0.0, trainable="all")
    _, trained = train(root, tmp_path, settings)
    old = before.network.backbone.state_dict()
    for name, value in trained.network.backbone.named_parameters():
        assert torch.equal(value, old[name]), name
