"""`discover --train`: the result before training first, and the better one at the end."""

import json
from dataclasses import replace

import numpy as np
import pytest
from samples import Digits

torch = pytest.importorskip("torch")

from newfound.deep import final_mixture  # noqa: E402
from newfound.deep.checkpoint import save_checkpoint  # noqa: E402
from newfound.deep.network.backbone import load_backbone  # noqa: E402
from newfound.deep.settings import Settings  # noqa: E402
from newfound.errors import InputError  # noqa: E402
from newfound.mixture.counting.rehearsal import Rehearsal  # noqa: E402
from newfound.report.page import render_report  # noqa: E402
from newfound.result.store import read_result  # noqa: E402
from newfound.workflows import fitting, trained_discovery  # noqa: E402
from newfound.workflows.comparison import Comparison  # noqa: E402
from newfound.workflows.discover import discover  # noqa: E402
from newfound.workflows.predict import predict  # noqa: E402

torch.set_num_threads(1)
pytestmark = pytest.mark.filterwarnings("ignore:The count speaks")

N = 120
SMALL = Settings(
    image_size=16,
    epochs=2,
    warmup_epochs=1,
    n_labelled_per_batch=16,
    n_unlabelled_per_batch=48,
    learning_rate=0.01,
    precision="32-true",
)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A network with weights in a file: NAME=FILE."""
    torch.manual_seed(0)
    backbone = load_backbone("test_resnet", "random", image_size=160)
    path = tmp_path_factory.mktemp("weights") / "weights.safetensors"
    save_checkpoint(path, backbone.network.state_dict(), {})
    return f"test_resnet={path}"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("digits")
    Digits.write(root / "pictures", range(N))
    Digits.write_labels(root / "labels.csv", range(N))
    Digits.write(root / "more", range(N, N + 10))
    return root


@pytest.fixture(scope="module")
def run(root, encoder):
    def run(out, train=True, **options):
        options = {"encoder": encoder, "rehearse": False, "out": out, **options}
        if train:
            options = {"train": True, "settings": SMALL, **options}
        return discover(root / "pictures", root / "labels.csv", **options)

    return run


@pytest.fixture(scope="module")
def untrained(run):
    return run(None, train=False)


@pytest.fixture(scope="module")
def ruin():
    """A training whose features are noise."""
    original = trained_discovery.train_network

    def train_network(*given):
        trained = original(*given)
        noise = np.random.default_rng(0).normal(size=trained.features.shape)
        return replace(trained, features=noise.astype(np.float32))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trained_discovery, "train_network", train_network)
        yield


@pytest.fixture(scope="module")
def ruined(run, ruin, tmp_path_factory):
    out, steps = tmp_path_factory.mktemp("ruined") / "run", []
    return run(out, progress=lambda *step: steps.append(step)), out, steps


@pytest.fixture
def prefer_trained(monkeypatch):
    """A judge that prefers the trained network, and a rehearsal that takes no time."""
    verdict = Comparison(40, 2, 0.2, 0.9, 0.1)
    rehearsal = Rehearsal("hidden", np.array([2, 2]), np.array([2.0, 3.0]))
    monkeypatch.setattr(trained_discovery, "compare_features", lambda *given: verdict)
    monkeypatch.setattr(fitting, "rehearse", lambda *given, **options: rehearsal)
    monkeypatch.setattr(final_mixture, "rehearse", lambda *given, **options: rehearsal)


def files(folder):
    names = ["assignments.parquet", "categories.parquet", "model/features.npy"]
    return {name: (folder / name).read_bytes() for name in names}


def test_a_training_that_makes_it_worse_leaves_the_result_before_it(ruined, untrained):
    result, out, _ = ruined
    np.testing.assert_array_equal(result.assigned.labels, untrained.assigned.labels)
    np.testing.assert_array_equal(result.features, untrained.features)
    assert result.record.encoder == untrained.record.encoder
    assert "The result before training was kept" in result.record.warnings[-1]
    assert not any("has not finished" in text for text in result.record.warnings)
    assert result.record.settings.train
    assert result.record.settings.training["epochs"] == 2
    said = json.loads((out / "train" / "comparison.json").read_text())
    assert said["kept"] == "untrained"
    assert said["after"] < said["before"]
    assert not (out / "backbone.safetensors").exists()


def test_the_run_is_a_run_like_any_other(ruined, root):
    result, out, _ = ruined
    again = read_result(out)
    assert again.record == result.record
    assert "The result before training was kept" in render_report(again)
    assert len(predict(out, root / "more")) == 10


def test_a_person_is_told_the_first_result_before_training_begins(ruined, untrained):
    _, out, steps = ruined
    names = [name for name, *_ in steps]
    note = next(name for name in names if name.startswith("Note: Before training: "))
    assert untrained.answer in note
    assert f"newfound report {out}" in note
    assert names.index(note) < next(i for i, n in enumerate(names) if n.startswith("Training"))


def test_an_interrupted_training_leaves_a_finished_run_and_is_resumed(
    run, ruined, untrained, tmp_path
):
    def stop(name, done, total):
        if name.startswith("Training") and done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", progress=stop)
    first = read_result(tmp_path / "run")
    np.testing.assert_array_equal(first.assigned.labels, untrained.assigned.labels)
    assert "the training has not finished" in first.record.warnings[-1]
    assert not first.record.settings.train
    assert not (tmp_path / "run" / "train" / "comparison.json").exists()
    run(tmp_path / "run")
    assert files(tmp_path / "run") == files(ruined[1])


def test_the_training_does_not_see_the_labels_that_judge_it(run, monkeypatch):
    seen = {}

    def watch(cache, y, settings, place, job):
        seen["trained on"] = y
        raise InputError("enough")

    monkeypatch.setattr(trained_discovery, "train_network", watch)
    with pytest.raises(InputError, match="enough"):
        run(None)
    assert len({name for name in seen["trained on"] if name}) == 3  # of five known classes


def test_a_training_that_helps_is_kept_with_all_labels(run, root, prefer_trained, tmp_path):
    out = tmp_path / "run"
    result = run(out, rehearse=True)
    assert result.n_known == 5
    labelled = result.table["given_label"].notna()
    assert (result.table["category"] == result.table["given_label"])[labelled].all()
    assert result.record.encoder == "test_resnet, trained"
    assert result.record.history.unit == "epoch"
    assert any("The trained network was kept" in text for text in result.record.warnings)
    assert any("too optimistic" in text for text in result.record.warnings)
    assert result.record.rehearsal.ratios == (1.0, 1.5)
    assert (out / "backbone.safetensors").exists()
    assert read_result(out).record == result.record
    assert len(predict(out, root / "more")) == 10
    before = files(out)
    run(out, rehearse=True)  # again: nothing is trained, nothing changes
    assert files(out) == before


def test_quick_needs_train(run):
    with pytest.raises(InputError, match="`quick` is for training"):
        run(None, train=False, quick=True)
