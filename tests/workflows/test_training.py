"""The one path of training, through `discover`."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from newfound.deep.checkpoint import load_checkpoint  # noqa: E402
from newfound.deep.quick import shorten  # noqa: E402
from newfound.deep.settings import Settings  # noqa: E402
from newfound.deep.trained import load_trained  # noqa: E402
from newfound.errors import InputError  # noqa: E402
from newfound.result.store import read_result  # noqa: E402
from newfound.workflows import training_plan  # noqa: E402
from newfound.workflows.encoding import encode_like  # noqa: E402
from newfound.workflows.job import Job  # noqa: E402
from newfound.workflows.predict import predict  # noqa: E402
from newfound.workflows.training import training_request  # noqa: E402
from newfound.workflows.training_plan import encoder_of, plan_training  # noqa: E402
from newfound.workflows.update import update  # noqa: E402

torch.set_num_threads(1)
N = 300

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
def trained(run_pictures, tmp_path_factory):
    out = tmp_path_factory.mktemp("trained") / "run"
    steps = []
    result = run_pictures(
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
    assert result.record.history.unit == "epoch"
    assert len(result.record.history.n_components) == 2
    assert result.record.settings.training["seed"] == 4
    assert result.record.settings.training["rehearse"] is False
    assert result.record.encoder == "test_resnet.r160_in1k, trained"
    assert ("Decoding", N + 1, N + 1) in steps
    done = [step for step in steps if step[0].startswith("Training")][-1]
    assert done[1] == done[2] > 2
    assert [item.path for item in result.collection.skipped] == ["broken.png"]


def test_a_rehearsal_on_trained_features_is_said_to_be_optimistic(trained, run_pictures, tmp_path):
    assert not any("too optimistic" in text for text in trained[0].record.warnings)
    options = {"encoder": "auto", "train": True, "settings": SMALL.with_changes(epochs=1)}
    result = run_pictures(tmp_path / "run", rehearse=True, **options)
    assert result.record.rehearsal is not None
    assert any("too optimistic" in text for text in result.record.warnings)


def test_a_trained_network_predicts(trained, pictures, tmp_path):
    result, out, _ = trained
    again = encode_like(read_result(out), out, result.collection, Job())
    np.testing.assert_allclose(again.features, result.features, rtol=1e-4, atol=1e-5)
    found, changes = update(out, pictures / "more", out=tmp_path / "next")
    assert len(changes.added) == 150
    table = predict(tmp_path / "next", pictures / "more")
    assert table["category"].notna().all()
    (tmp_path / "next" / "train" / found.encoder["checkpoint"]).unlink()
    with pytest.raises(InputError, match="which holds the trained weights, is missing"):
        predict(tmp_path / "next", pictures / "more")


def test_a_network_without_a_best_epoch_has_the_averaged_weights(run_pictures, tmp_path):
    settings = SMALL.with_changes(epochs=1, selection="last", weight_average=0.8)
    out = tmp_path / "run"
    result = run_pictures(out, encoder="auto", train=True, settings=settings)
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
    again = encode_like(read_result(out), out, result.collection, Job())
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
    job = Job(7, 12, True)
    given = Settings(model="resnet18", weights="random", seed=1)
    plan = plan_training(given, encoder, job)
    assert (plan.network.model, plan.network.weights) == (model, weights)
    assert (plan.run.seed, plan.estep.n_components, plan.run.rehearse) == (7, 12, True)


# --- the network that "auto" stands for


@pytest.mark.parametrize("settings", [None, Settings(epochs=3)])
def test_auto_trains_the_offline_network_where_there_is_no_hub(monkeypatch, settings):
    monkeypatch.setattr(training_plan, "best_encoder", lambda: "efficientnet-lite2")
    network = plan_training(settings, "auto", Job()).network
    assert (network.model, network.weights) == ("tf_efficientnet_lite2", "offline")
    assert encoder_of(network) == "efficientnet-lite2"


def test_auto_trains_the_network_of_the_paper_where_it_can(monkeypatch):
    monkeypatch.setattr(training_plan, "best_encoder", lambda: "vit_base_patch16_224.dino")
    assert plan_training(None, "auto", Job(rehearse=True)) == Settings()


def test_without_any_network_the_options_of_discover_are_named(monkeypatch):
    monkeypatch.setattr(training_plan, "best_encoder", lambda: "pixels")
    with pytest.raises(InputError, match="There is no network to train") as caught:
        plan_training(None, "auto", Job())
    assert "--encoder NAME=FILE" in str(caught.value)
    assert "pip install 'newfound[offline]'" in str(caught.value)
    assert "--weights" not in str(caught.value)


def test_a_network_without_weights_is_said_with_the_options_of_discover(
    run_pictures, tmp_path, monkeypatch
):
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.raises(InputError, match="could not be downloaded from timm's hub") as caught:
        run_pictures(None, encoder="test_vit", train=True)
    assert "--encoder NAME=FILE" in str(caught.value)
    assert "--weights" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "encoder"),
    [
        ({"weights": "random"}, None),
        ({"model": "tf_efficientnet_lite1.in1k", "weights": "offline"}, "efficientnet-lite1"),
        ({"model": "resnet50"}, "resnet50"),
        ({"model": "resnet50", "weights": "/a/file"}, "resnet50=/a/file"),
    ],
)
def test_the_encoder_with_the_same_weights(changes, encoder):
    assert encoder_of(Settings(**changes).network) == encoder


def test_quick_settings_are_those_of_the_deep_room():
    given = Settings(model="test_resnet", weights="/a/file", seed=5)
    assert plan_training(given, "auto", Job(5, rehearse=True), quick=True) == shorten(given)


def test_what_is_known_about_sizes_reaches_the_training():
    given = Settings(model="resnet18", weights="random", sizes="alike")
    plans = [plan_training(given, "auto", Job(sizes=s)) for s in ("unknown", "alike", 0.5, None)]
    assert [plan.estep.sizes for plan in plans] == ["alike", "alike", "0.5", "none"]
    requests = [training_request(plan, Job()) for plan in plans]
    assert [request.sizes for request in requests] == ["alike", "alike", 0.5, None]


def test_a_network_that_was_trained_before_there_were_sizes_encodes(trained):
    result, out, _ = trained
    values = {**result.encoder["settings"], "size_weight": 1.0}
    del values["sizes"]
    older = replace(result, encoder={**result.encoder, "settings": values})
    again = encode_like(older, out, result.collection, Job())
    np.testing.assert_allclose(again.features, result.features, rtol=1e-4, atol=1e-5)
