"""Pretraining on pictures alone: weights, and no categories."""

import json

import numpy as np
import pytest
from samples import SMALL_TRAINING, Digits

torch = pytest.importorskip("torch")

from newfound.deep.checkpoint import load_checkpoint  # noqa: E402
from newfound.deep.settings import Settings  # noqa: E402
from newfound.errors import InputError  # noqa: E402
from newfound.workflows.pretrain import pretrain  # noqa: E402
from newfound.workflows.train import train  # noqa: E402

torch.set_num_threads(1)
pytestmark = pytest.mark.filterwarnings("ignore:The count suggests")

N = 120
SMALL = Settings(**SMALL_TRAINING, supervised_weight=0.0, selection="last")


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    root = tmp_path_factory.mktemp("digits")
    Digits.write(root / "pictures", range(N))
    (root / "pictures" / "050-broken.png").write_bytes(b"no picture")
    return pretrain(root / "pictures", SMALL, root / "out"), root


def test_pretraining_leaves_weights_and_no_categories(pretrained):
    (collection, trained), root = pretrained
    assert trained.mixture is None
    assert [item.path for item in collection.skipped] == ["050-broken.png"]
    names = [path.name for path in (root / "out").iterdir() if not path.name.startswith(".")]
    assert sorted(names) == [
        "backbone.safetensors",
        "pictures",
        "pretraining.json",
        "skipped.csv",
        "started.json",
        "train",
    ]
    assert sorted(path.name for path in (root / "out" / "train").iterdir()) == [
        "epochs.jsonl",
        "history.png",
        "last.safetensors",
        "tensorboard",
    ]
    summary = json.loads((root / "out" / "pretraining.json").read_text())
    assert Settings(**summary["settings"]) == SMALL
    assert summary["n_pictures"] == N
    assert "050-broken.png" in (root / "out" / "skipped.csv").read_text()


def test_class_folders_do_not_change_a_pretraining(pretrained, tmp_path):
    def name_of(i):
        return f"{'a' if i < 60 else 'b'}/{i:03d}.png"

    Digits.write(tmp_path / "pictures", range(N), name_of)
    collection, trained = pretrain(tmp_path / "pictures", SMALL, tmp_path / "run")
    assert collection.is_labelled.all()
    np.testing.assert_array_equal(trained.features, pretrained[0].trained.features)


def test_training_starts_from_the_weights_of_a_pretraining(pretrained, tmp_path):
    (_, before), root = pretrained
    Digits.write_labels(tmp_path / "labels.csv", range(N))
    settings = SMALL.with_changes(
        weights=str(root / "out" / "backbone.safetensors"),
        epochs=1,
        learning_rate=0.0,
        trainable="all",
    )
    train(root / "pictures", tmp_path / "labels.csv", settings, tmp_path / "run")
    # A rate of 0 leaves the parameters as they are; only running means of the norms move.
    after, _ = load_checkpoint(tmp_path / "run" / "backbone.safetensors")
    for name, value in before.network.backbone.network.named_parameters():
        assert torch.equal(after[name], value), name


def test_a_file_of_features_is_refused(tmp_path):
    np.savez(tmp_path / "f.npz", X=np.eye(4), y=np.array(["a", "", "b", ""]))
    with pytest.raises(InputError, match=r"needs a folder of pictures; .*f\.npz holds feature"):
        pretrain(tmp_path / "f.npz", SMALL, tmp_path / "run")
    assert not (tmp_path / "run").exists()
