"""Algorithm 1 on pictures of digits: what it leaves behind, and that it can be stopped anywhere."""

import dataclasses
import json
import math
import os
import subprocess
import sys
from copy import deepcopy
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from torch import nn

from newfound.deep import estep, final_mixture, holdout, method, partial_epoch
from newfound.deep.checkpoint import BEST, LAST, load_checkpoint
from newfound.deep.holdout import hold_out
from newfound.deep.images.batches import epoch_batches
from newfound.deep.images.views import draw
from newfound.deep.method import Method, PrototypicalContrast
from newfound.deep.optimiser import cosine_rate
from newfound.deep.partition import Clusters
from newfound.deep.pretrain import pretrain
from newfound.deep.records import Listener
from newfound.deep.settings import Settings
from newfound.deep.trainer import train
from newfound.errors import InputError

# few pictures and few epochs: K is not what these tests are about
pytestmark = pytest.mark.filterwarnings("ignore:The count suggests")

SMALL = {
    "model": "test_resnet",
    "weights": "random",
    "image_size": 8,
    "crop_min": 1.0,
    "crop_max": 1.0,
    "padding": 0.125,
    "epochs": 3,
    "n_labelled_per_batch": 16,
    "n_unlabelled_per_batch": 16,
    "learning_rate": 0.05,
    "warmup_epochs": 2,
    "projection_head": False,
    "n_directions": 8,
    "moves_every": 2,
    "validation_share": 0.25,
    "rehearse": False,
}
N_STEPS = 4  # 112 pictures in batches of 32


def small(**changes):
    return Settings(**{**SMALL, **changes})


def run(digits, folder, settings=None, **options):
    return train(digits.pixels, digits.y, settings or small(), folder, **options)


def without_time(record):
    timed = {"seconds", "e_step_seconds", "images_per_second"}
    return {name: value for name, value in record.items() if name not in timed}


def assert_same_bits(folder, other_folder, name=LAST):
    """The same tensors and plain values, apart from how long it took."""
    tensors, plain = load_checkpoint(folder / name)
    others, other_plain = load_checkpoint(other_folder / name)
    assert tensors.keys() == others.keys()
    for key, value in tensors.items():
        assert torch.equal(value, others[key]), key
    for values in (plain, other_plain):
        values["history"] = [without_time(record) for record in values["history"]]
    assert json.dumps(plain) == json.dumps(other_plain)  # as texts: NaN is NaN


def assert_same_outcome(trained, other):
    np.testing.assert_array_equal(trained.features, other.features)
    np.testing.assert_array_equal(trained.mixture.labels_, other.mixture.labels_)
    assert trained.selected_epoch == other.selected_epoch
    histories = [
        [without_time(asdict(record)) for record in one.history] for one in (trained, other)
    ]
    assert histories[0] == histories[1]


@pytest.fixture
def alike_sizes(monkeypatch):
    """Labels are taken to speak for categories of like sizes."""
    monkeypatch.setattr(estep, "sizes_are_alike", lambda *given: True)


class Interrupted(Exception):
    """What stops a run in these tests."""


class StopAt(Listener):
    """Stops a run when it hears of a batch, of the end of an epoch, or of the last part."""

    def __init__(self, event, epoch=1, n_done=2):
        self.stop = (event, epoch, n_done)

    def batch(self, epoch, n_done, n_batches):
        if ("batch", epoch, n_done) == self.stop:
            raise Interrupted

    def epoch(self, record):
        if (self.stop[0], record.epoch) == ("epoch", self.stop[1]):
            raise Interrupted

    def say(self, text):
        if self.stop[0] == "say":
            raise Interrupted


class Notes(Listener):
    """Remembers everything it hears."""

    def __init__(self):
        self.heard = []

    def start(self, n_epochs, first_epoch):
        self.heard.append(("start", n_epochs, first_epoch))

    def batch(self, epoch, n_done, n_batches):
        self.heard.append(("batch", epoch, n_done, n_batches))

    def epoch(self, record):
        self.heard.append(("epoch", record.epoch))

    def end(self):
        self.heard.append(("end",))


@pytest.fixture(scope="module")
def undisturbed(digits, tmp_path_factory):
    """A run of three epochs from beginning to end, with its folder and what was heard of it."""
    folder = tmp_path_factory.mktemp("undisturbed")
    notes = Notes()
    return run(digits, folder, listener=notes), folder, notes.heard


class UsualBatches(PrototypicalContrast):
    """The usual method, which keeps its batches."""

    def __init__(self, settings):
        super().__init__(settings)
        self.batches = []

    def loss(self, batch):
        self.batches.append(batch)
        return super().loss(batch)


# --- what a run leaves


def test_the_loop_leaves_categories_history_and_files(digits, undisturbed):
    trained, folder, _ = undisturbed
    assert trained.features.shape == (112, 96)
    mixture = trained.mixture
    assert mixture.n_known_ == 5
    labelled = digits.y != -1
    np.testing.assert_array_equal(mixture.labels_[labelled], digits.y[labelled])
    assert [record.epoch for record in trained.history] == [0, 1, 2]
    for record in trained.history:
        assert math.isfinite(record.loss)
        assert record.n_components >= 5
        assert record.n_novel == record.n_components - 5
        assert 0 <= record.accuracy <= 1
        assert record.seconds >= record.e_step_seconds >= 0
        assert record.images_per_second > 0
    assert [record.pcl_weight for record in trained.history] == [0, 0.5, 1]
    assert sorted(path.name for path in folder.iterdir()) == [BEST, "epochs.jsonl", LAST]


def test_one_line_of_json_for_each_epoch(undisturbed):
    trained, folder, _ = undisturbed
    lines = (folder / "epochs.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [asdict(record) for record in trained.history]


def test_listeners_hear_of_every_batch_and_epoch(undisturbed):
    expected = [("start", 3, 0)]
    for epoch in range(3):
        expected += [("batch", epoch, i + 1, N_STEPS) for i in range(N_STEPS)]
        expected += [("epoch", epoch)]
    assert undisturbed[2] == [*expected, ("end",)]


def test_the_same_seed_gives_the_same_bits_and_another_one_others(digits, undisturbed, tmp_path):
    trained, folder, _ = undisturbed
    torch.manual_seed(7)
    np.random.seed(7)  # noqa: NPY002
    assert_same_outcome(run(digits, tmp_path / "a"), trained)
    assert_same_bits(tmp_path / "a", folder)
    other = run(digits, tmp_path / "b", small(seed=1))
    assert other.history[0].loss != trained.history[0].loss


def test_training_lowers_the_loss(digits, tmp_path):
    settings = small(epochs=5, supervised_weight=0.0, prototype_weight=0.0)
    losses = [record.loss for record in run(digits, tmp_path, settings).history]
    assert losses[-1] < losses[0] - 0.5


def test_the_learning_rate_is_that_of_the_cosine(undisturbed):
    rates = [record.learning_rate for record in undisturbed[0].history]
    assert rates == pytest.approx([0.05, 0.0375125, 0.0125375])


def test_k_stays_between_rounds_of_moves(digits, tmp_path):
    settings = small(epochs=5, moves_every=3)
    counts = [record.n_components for record in run(digits, tmp_path, settings).history]
    assert counts[0] == counts[1] == counts[2]
    assert counts[3] == counts[4]


def test_a_known_k_is_kept_from_the_first_epoch_to_the_last(digits, tmp_path):
    trained = run(digits, tmp_path, small(n_components=9))
    assert [record.n_components for record in trained.history] == [9, 9, 9]
    assert trained.mixture.n_components_ == 9


@pytest.mark.parametrize("pca", ["batch", "all", "off"])
def test_the_letter_of_the_paper_runs(digits, tmp_path, pca):
    changes = {**SMALL, "projection_head": False, "moves_every": 1, "pca": pca}
    trained = run(digits, tmp_path, Settings.paper(**changes))
    assert len(trained.history) == 3
    _, plain = load_checkpoint(tmp_path / LAST)
    assert plain["settings"]["acceptance"] == "literal"
    # the loop has brought K to where it is, and the end keeps it there
    assert trained.mixture.history_ == []
    if trained.selected_epoch == 3:
        assert trained.mixture.n_components_ == trained.history[-1].n_components


def test_the_paper_splits_and_merges_after_the_epoch(digits, tmp_path, monkeypatch):
    calls = []

    def watch(Z, codes, labels, settings, round):
        calls.append((None if labels is None else int(labels.max()) + 1, round.moves, Z.copy()))
        return original(Z, codes, labels, settings, round)

    original = method.find_clusters
    monkeypatch.setattr(method, "find_clusters", watch)
    changes = {**SMALL, "projection_head": False, "moves_every": 1, "epochs": 2}
    trained = run(digits, tmp_path, Settings.paper(**changes))
    assert [moves for _, moves, _ in calls] == [False, True, False, True, False]
    for before, after in ((0, 1), (2, 3)):  # on the features from before the epoch, as printed
        np.testing.assert_array_equal(calls[before][2], calls[after][2])
    assert calls[0][0] is None
    assert calls[1][0] == 7  # K^l + K^l / 2
    assert [calls[2][0], calls[4][0]] == [record.n_components for record in trained.history]


def test_the_whole_of_the_default_settings_runs_with_a_head_and_a_rehearsal(digits, tmp_path):
    settings = small(epochs=1, projection_head=True, rehearse=True, color_jitter=0.5)
    trained = run(digits, tmp_path, settings)
    assert trained.network.head(torch.ones(1, 96)).shape == (1, 96)
    assert trained.rehearsal is not None


def test_only_the_last_part_of_a_network_is_trained_and_stored(digits, tmp_path):
    settings = small(model="test_vit", image_size=16, trainable="last", selection="last")
    trained = run(digits, tmp_path, settings)
    stored = {name for name in load_checkpoint(tmp_path / LAST)[0] if name.startswith("network.")}
    names = {
        f"network.{name}"
        for name, value in trained.network.named_parameters()
        if value.requires_grad
    }
    assert names <= stored
    assert len(names) < len(list(trained.network.parameters()))
    before = run(digits, tmp_path / "other", settings.with_changes(learning_rate=0.0, epochs=1))
    for (name, value), old in zip(
        trained.network.named_parameters(), before.network.parameters(), strict=True
    ):
        assert torch.equal(value, old) != value.requires_grad, name


def test_kept_inputs_change_no_bit(digits, tmp_path):
    settings = small(model="test_vit", image_size=16, trainable="last")
    outcomes = [
        run(digits, tmp_path / str(kept), settings.with_changes(token_cache=kept))
        for kept in (True, False)
    ]
    assert_same_outcome(*outcomes)


def test_pretraining_needs_no_label_and_finds_no_category(digits, tmp_path):
    habits = {name: SMALL[name] for name in ("model", "image_size", "n_labelled_per_batch")}
    settings = Settings.pretraining(
        **habits,
        n_unlabelled_per_batch=16,
        projection_head=False,
        learning_rate=0.1,
        epochs=6,
    )
    trained = pretrain(digits.pixels, settings, tmp_path)
    assert trained.mixture is None
    assert trained.features.shape == (112, 96)
    assert trained.history[-1].loss < trained.history[0].loss
    # nothing uses a mean of the weights: the result is that of the last step
    assert settings.optimiser.weight_average > 0
    tensors, _ = load_checkpoint(tmp_path / LAST)
    assert not [name for name in tensors if name.startswith("average.")]
    for name, value in trained.network.state_dict().items():
        assert torch.equal(value, tensors[f"network.{name}"]), name
    with pytest.raises(InputError, match="method was 'Contrast' and is 'PrototypicalContrast'"):
        run(digits, tmp_path, settings)


# --- the mean of the weights


def averaged(folder):
    """Weights of the last checkpoint by their names in the network: means where there are any."""
    tensors, _ = load_checkpoint(folder / LAST)
    return {
        name.removeprefix("network."): tensors.get(f"average.{name}", value)
        for name, value in tensors.items()
        if name.startswith("network.")
    }


def last_step(folder):
    """Weights of the last checkpoint as the last step left them."""
    tensors, _ = load_checkpoint(folder / LAST)
    return {
        name.removeprefix("network."): value
        for name, value in tensors.items()
        if name.startswith("network.")
    }


def features_with(trained, digits, weights):
    """Features of the pictures with other weights in the network."""
    network = deepcopy(trained.network)
    network.load_state_dict(weights, strict=False)
    return replace(trained, network=network).encoder.features(digits.pixels)


def test_a_checkpoint_to_go_on_from_has_the_mean_of_each_weight(undisturbed):
    _, folder, _ = undisturbed
    tensors, _ = load_checkpoint(folder / LAST)
    weights = {name for name in tensors if name.startswith("network.")}
    floats = {name for name in weights if tensors[name].is_floating_point()}
    means = {name for name in tensors if name.startswith("average.")}
    assert means == {f"average.{name}" for name in floats}
    assert weights - floats  # numbers of batches
    best, _ = load_checkpoint(folder / BEST)  # is the mean
    assert not [name for name in best if name.startswith("average.")]


@pytest.mark.parametrize("model", ["test_resnet", "test_vit"])
def test_the_features_of_the_result_are_those_of_the_averaged_weights(digits, tmp_path, model):
    size = {"test_resnet": 8, "test_vit": 16}[model]
    settings = small(model=model, image_size=size, selection="last", weight_average=0.8)
    trained = run(digits, tmp_path, settings)
    means = averaged(tmp_path)
    for name, value in trained.network.state_dict().items():
        assert torch.equal(value, means[name]), name
    again = features_with(trained, digits, means)
    np.testing.assert_allclose(trained.features, again, rtol=1e-4, atol=1e-5)
    others = features_with(trained, digits, last_step(tmp_path))
    assert np.abs(trained.features - others).max() > 1e-2


def test_the_e_step_sees_the_features_of_the_averaged_weights(digits, tmp_path, monkeypatch):
    settings = small(selection="last", weight_average=0.8)
    with pytest.raises(Interrupted):
        run(digits, tmp_path, settings, listener=StopAt("epoch", epoch=0))
    means, others = averaged(tmp_path), last_step(tmp_path)
    seen = []

    def watch(extractor, *progress):
        seen.append(original(extractor, *progress))
        return seen[-1]

    original = estep.Extractor.features
    monkeypatch.setattr(estep.Extractor, "features", watch)
    trained = run(digits, tmp_path, settings)
    expected = features_with(trained, digits, means)
    np.testing.assert_allclose(seen[0].numpy(), expected, rtol=1e-4, atol=1e-5)
    assert np.abs(expected - features_with(trained, digits, others)).max() > 1e-2


def test_training_goes_on_from_the_weights_of_the_last_step(digits, tmp_path):
    """With no prototypes in the loss, what the E-steps see makes no difference to a weight."""
    for decay in (0.0, 0.8):
        settings = small(prototype_weight=0.0, selection="last", weight_average=decay)
        run(digits, tmp_path / str(decay), settings)
    (tensors, plain), (others, other_plain) = (
        load_checkpoint(tmp_path / str(decay) / LAST) for decay in (0.0, 0.8)
    )
    names = [name for name in tensors if name.startswith(("network.", "momentum."))]
    assert not [name for name in tensors if name.startswith("average.")]
    for name in names:
        assert torch.equal(tensors[name], others[name]), name
    losses = [[record["loss"] for record in each["history"]] for each in (plain, other_plain)]
    assert losses[0] == losses[1]


# --- sizes that may be expected


@pytest.mark.parametrize("size_weight", [0.0, 1.0])
def test_the_loss_has_expected_sizes_if_the_settings_say_so(
    digits, tmp_path, size_weight, alike_sizes
):
    settings = small(size_weight=size_weight, epochs=1, selection="last")
    method = UsualBatches(settings)
    trained = run(digits, tmp_path, settings, method=method)
    excess = method.batches[0].prototypes.excess
    if size_weight == 0:
        assert excess is None
        return
    assert excess.shape == (trained.history[0].n_components,)
    assert excess.isfinite().all()
    assert excess.min() < 0 < excess.max()  # shares of both kinds sum to 1


def test_the_rows_of_a_batch_are_in_the_balanced_components(
    digits, tmp_path, monkeypatch, alike_sizes
):
    made = []

    def watch(*given):
        made.append((given, original(*given)))
        return made[-1][1]

    original = estep.fit_expected_sizes
    monkeypatch.setattr(estep, "fit_expected_sizes", watch)
    settings = small(epochs=1, selection="last")
    method = UsualBatches(settings)
    run(digits, tmp_path, settings, method=method)
    (_, codes, _), balanced = made[0]
    np.testing.assert_array_equal(codes, digits.y)
    rows = epoch_batches(digits.y != -1, 16, 16, seed=0, epoch=0)
    for batch, drawn in zip(method.batches, rows, strict=True):
        np.testing.assert_array_equal(batch.assigned.numpy(), balanced.labels[drawn])


@pytest.mark.parametrize("n_absent", [0, 1])
def test_sizes_are_left_alone_where_known_classes_are_absent(
    digits, tmp_path, monkeypatch, n_absent, alike_sizes
):
    original = estep.count_categories

    def count(*given, **options):
        return dataclasses.replace(original(*given, **options), n_absent=n_absent)

    monkeypatch.setattr(estep, "count_categories", count)
    settings = small(epochs=1, selection="last", count_on="start")
    method = UsualBatches(settings)
    trained = run(digits, tmp_path, settings, method=method)
    assert (method.batches[0].prototypes.excess is None) == (n_absent > 0)
    assert trained.mixture.expect_sizes == (n_absent == 0)


def test_sizes_are_left_alone_where_labels_do_not_speak_for_them(digits, tmp_path, monkeypatch):
    monkeypatch.setattr(estep, "sizes_are_alike", lambda *given: False)
    settings = small(epochs=1, selection="last")
    method = UsualBatches(settings)
    trained = run(digits, tmp_path, settings, method=method)
    assert method.batches[0].prototypes.excess is None
    assert not trained.mixture.expect_sizes


@pytest.mark.parametrize(
    ("changes", "expect_sizes"),
    [
        ({}, None),
        ({"size_weight": 0.0}, False),
        ({"size_weight": 0.0, "acceptance": "literal"}, False),
    ],
)
def test_the_rehearsal_looks_for_k_and_for_sizes_as_the_run_did(
    digits, tmp_path, monkeypatch, alike_sizes, changes, expect_sizes
):
    seen = []
    monkeypatch.setattr(
        final_mixture, "rehearse", lambda mixture, *given, **more: seen.append(mixture)
    )
    run(digits, tmp_path, small(epochs=1, selection="last", rehearse=True, **changes))
    assert [mixture.n_components for mixture in seen] == [None]  # not the K that was found
    assert [mixture.expect_sizes for mixture in seen] == [expect_sizes]


def test_sizes_need_common_directions(digits, tmp_path, alike_sizes):
    settings = small(epochs=1, selection="last", pca="batch")
    method = UsualBatches(settings)
    trained = run(digits, tmp_path, settings, method=method)
    assert method.batches[0].prototypes.excess is None
    assert not trained.mixture.expect_sizes


def test_a_method_that_expects_no_sizes_gets_none(digits, tmp_path, alike_sizes):
    settings = small(epochs=1, selection="last")
    method = Collect(settings)
    trained = run(digits, tmp_path, settings, method=method)
    assert method.batches[0].prototypes.excess is None
    assert not trained.mixture.expect_sizes


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({}, True), ({"n_components": 9}, True), ({"size_weight": 0.0}, False)],
)
def test_the_mixture_of_the_result_expects_sizes_as_the_loop_does(
    digits, tmp_path, changes, expected, alike_sizes
):
    mixture = run(digits, tmp_path, small(epochs=1, selection="last", **changes)).mixture
    assert mixture.expect_sizes is expected
    assert (mixture.offsets_ != 0).any() == expected


# --- kill and resume


@pytest.mark.parametrize(
    "stop",
    [
        StopAt("batch", epoch=1, n_done=2),
        StopAt("batch", epoch=2, n_done=N_STEPS),
        StopAt("epoch", epoch=0),
        StopAt("say"),
    ],
    ids=lambda stop: "-".join(map(str, stop.stop)),
)
def test_a_run_that_was_stopped_goes_on_to_the_same_bits(digits, undisturbed, tmp_path, stop):
    trained, folder, _ = undisturbed
    with pytest.raises(Interrupted):
        run(digits, tmp_path, listener=stop)
    assert_same_outcome(run(digits, tmp_path), trained)
    for name in (LAST, BEST):
        assert_same_bits(tmp_path, folder, name)
    assert len((tmp_path / "epochs.jsonl").read_text().splitlines()) == 3


@pytest.fixture
def saving_within_epochs(monkeypatch):
    """A checkpoint after every step of the optimiser."""
    monkeypatch.setattr(partial_epoch, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(partial_epoch, "SAVE_SHARE", math.inf)


@pytest.mark.parametrize(
    "changes",
    [
        {"count_on": "start", "moves_every": 1},
        {"n_components": 9},
        {"acceptance": "literal", "moves_after_epoch": True, "pca": "batch"},
        {"model": "test_vit", "image_size": 16, "trainable": "last", "selection": "last"},
        {"weight_average": 0.0, "target_temperature": 0.0, "size_weight": 0.0},
        {"weight_average": 0.5, "accumulate": 3, "selection": "last"},
        {"model": "test_vit", "image_size": 16, "trainable": "last", "n_stored_views": 3},
    ],
    ids=lambda changes: "-".join(changes),
)
def test_runs_of_all_kinds_go_on_to_the_same_bits(
    digits, tmp_path, changes, alike_sizes, saving_within_epochs
):
    settings, notes = small(**changes), Notes()
    trained = run(digits, tmp_path / "undisturbed", settings)
    with pytest.raises(Interrupted):
        run(digits, tmp_path / "stopped", settings, listener=StopAt("batch", epoch=2, n_done=3))
    assert_same_outcome(run(digits, tmp_path / "stopped", settings, listener=notes), trained)
    assert_same_bits(tmp_path / "stopped", tmp_path / "undisturbed")
    # three of the four batches of epoch 2 were not trained again
    assert notes.heard[:2] == [("start", 3, 2), ("batch", 2, 4, N_STEPS)]


def test_a_second_stop_in_the_same_epoch(digits, undisturbed, tmp_path, saving_within_epochs):
    trained, folder, _ = undisturbed
    for n_done in (1, 2, 3):
        with pytest.raises(Interrupted):
            run(digits, tmp_path, listener=StopAt("batch", epoch=1, n_done=n_done))
    assert_same_outcome(run(digits, tmp_path), trained)
    for name in (LAST, BEST):
        assert_same_bits(tmp_path, folder, name)


KILLED = """
import os, signal, sys
from pathlib import Path
import numpy as np, torch
from newfound.deep import partial_epoch
from newfound.deep.settings import Settings
from newfound.deep.records import Listener
from newfound.deep.trainer import train

class Kill(Listener):
    def batch(self, epoch, n_done, n_batches):
        if (epoch, n_done) == (1, 3):
            os.kill(os.getpid(), signal.SIGKILL)

torch.set_num_threads(1)
partial_epoch.SAVE_SECONDS, partial_epoch.SAVE_SHARE = float(sys.argv[2]), float("inf")
data = np.load("data.npz")
settings = Settings(**eval(sys.argv[1]))
train(data["pixels"], data["y"], settings, Path("run"), listener=Kill())
"""


@pytest.mark.parametrize(("save_seconds", "n_saved"), [(1e9, 0), (0, 3)])
def test_kill_9_in_the_middle_of_an_epoch(digits, undisturbed, tmp_path, save_seconds, n_saved):
    trained, folder, _ = undisturbed
    np.savez(tmp_path / "data.npz", pixels=digits.pixels, y=digits.y)
    (tmp_path / "script.py").write_text(KILLED)
    command = [sys.executable, "script.py", repr(SMALL), str(save_seconds)]
    killed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert killed.returncode == -9, killed.stderr
    assert load_checkpoint(tmp_path / "run" / LAST)[1]["epoch"] == 1
    notes = Notes()
    assert_same_outcome(run(digits, tmp_path / "run", listener=notes), trained)
    assert notes.heard[:2] == [("start", 3, 1), ("batch", 1, n_saved + 1, N_STEPS)]
    assert_same_bits(tmp_path / "run", folder)


def test_a_kill_while_a_checkpoint_is_written_leaves_the_one_before(
    digits, undisturbed, tmp_path, monkeypatch
):
    trained, folder, _ = undisturbed
    original = os.replace

    def stop_second_time(source, target):
        if os.path.basename(target) == LAST and os.path.exists(target):
            raise Interrupted
        original(source, target)

    monkeypatch.setattr(os, "replace", stop_second_time)
    with pytest.raises(Interrupted):
        run(digits, tmp_path)
    monkeypatch.undo()
    assert load_checkpoint(tmp_path / LAST)[1]["epoch"] == 1
    assert_same_outcome(run(digits, tmp_path), trained)
    assert_same_bits(tmp_path, folder)


def test_a_finished_run_is_not_trained_again(digits, undisturbed, tmp_path):
    trained, folder, _ = undisturbed
    for name in (LAST, BEST):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    notes = Notes()
    assert_same_outcome(run(digits, tmp_path, listener=notes), trained)
    assert notes.heard == [("start", 3, 3), ("end",)]


class WithDropout(PrototypicalContrast):
    """A method whose head draws at random in every step."""

    def head(self, n_features):
        return nn.Sequential(nn.Linear(n_features, 8), nn.Dropout(0.5))


def test_chance_inside_the_network_is_resumed_too(digits, tmp_path, saving_within_epochs):
    settings = small(epochs=2)

    def with_dropout(folder, **options):
        return run(digits, folder, settings, method=WithDropout(settings), **options)

    trained = with_dropout(tmp_path / "undisturbed")
    with pytest.raises(Interrupted):
        with_dropout(tmp_path / "stopped", listener=StopAt("batch", epoch=1, n_done=2))
    torch.manual_seed(99)
    assert_same_outcome(with_dropout(tmp_path / "stopped"), trained)
    assert_same_bits(tmp_path / "stopped", tmp_path / "undisturbed")


# --- other settings, other data


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epochs": 4}, "epochs was 3 and is 4"),
        ({"learning_rate": 0.1}, "learning_rate was 0.05 and is 0.1"),
        ({"model": "test_vit", "image_size": 16}, "image_size was 8 and is 16, model was 'test_r"),
        ({"seed": 1, "pca": "off"}, "pca was 'all' and is 'off', seed was 0 and is 1"),
    ],
)
def test_a_run_of_other_settings_is_refused_with_the_difference(
    digits, undisturbed, changes, words
):
    folder = undisturbed[1]
    before = (folder / LAST).read_bytes()
    with pytest.raises(InputError, match=f"with other settings: {words}") as caught:
        run(digits, folder, small(**changes))
    assert str(folder) in str(caught.value)
    assert (folder / LAST).read_bytes() == before


@pytest.mark.parametrize("what", ["images", "labels", "n_rows", "method"])
def test_a_run_of_other_data_is_refused_with_the_difference(digits, undisturbed, what):
    pixels, y, options = digits.pixels, digits.y.copy(), {}
    if what == "images":
        options["fingerprint"] = "other pictures"
    elif what == "labels":
        y[np.flatnonzero(y == -1)[0]] = 0
    elif what == "n_rows":
        pixels, y = pixels[:-1], y[:-1]
    else:
        options["method"] = WithDropout(small())
    with pytest.raises(InputError, match=f"with other data: .*{what} was .* and is "):
        train(pixels, y, small(), undisturbed[1], **options)


def test_how_the_work_is_spread_does_not_make_it_another_run(digits, undisturbed, tmp_path):
    trained, folder, _ = undisturbed
    for name in (LAST, BEST):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    assert_same_outcome(run(digits, tmp_path, small(token_cache=False, devices=1)), trained)


@pytest.mark.parametrize("content", [b"", b"something else"])
def test_another_file_under_the_name_of_the_checkpoint_is_refused(digits, tmp_path, content):
    (tmp_path / LAST).write_bytes(content)
    with pytest.raises(InputError, match="is not a checkpoint"):
        run(digits, tmp_path)
    assert (tmp_path / LAST).read_bytes() == content


# --- a loss that breaks


class Usual(PrototypicalContrast):
    """The usual loss, but in one batch what is made of it; notes how many rows are labelled."""

    def __init__(self, settings=None, otherwise=None, at=-1):
        super().__init__(settings or small())
        self.otherwise, self.at = otherwise, at
        self.n_labelled = []

    def loss(self, batch):
        loss = super().loss(batch)
        if len(self.n_labelled) == self.at:
            loss = self.otherwise(loss, batch)
        self.n_labelled.append(int((batch.codes >= 0).sum()))
        return loss


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_no_number_stops_with_epoch_and_batch(
    digits, tmp_path, value, saving_within_epochs
):
    method = Usual(otherwise=lambda loss, _: loss * value, at=N_STEPS + 2)
    with pytest.raises(InputError, match=rf"became {value} in epoch 1, batch 2\b") as caught:
        run(digits, tmp_path, method=method)
    assert str(tmp_path / LAST) in str(caught.value)
    assert "learning_rate" in str(caught.value)
    tensors, plain = load_checkpoint(tmp_path / LAST)
    assert plain["epoch"] == 1
    assert all(torch.isfinite(value.float()).all() for value in tensors.values())


def test_a_loss_that_is_no_number_in_the_first_epoch(digits, tmp_path):
    method = Usual(otherwise=lambda loss, _: loss * math.nan, at=0)
    with pytest.raises(InputError, match=r"in epoch 0, batch 0\b.*none yet"):
        run(digits, tmp_path, method=method)


def test_weights_that_are_no_numbers_are_not_kept_as_a_checkpoint(digits, tmp_path):
    """The loss is finite, but its gradient is not, in the last batch of an epoch."""

    def without_gradient(loss, batch):
        return loss + (0 * batch.h).sqrt().sum()

    method = Usual(otherwise=without_gradient, at=2 * N_STEPS - 1)
    with pytest.raises(InputError, match=r"in epoch [12]\b"):
        run(digits, tmp_path, method=method)
    tensors, plain = load_checkpoint(tmp_path / LAST)
    assert plain["epoch"] == 1
    assert all(torch.isfinite(value.float()).all() for value in tensors.values())


# --- few labels, few rows


@pytest.mark.parametrize("pca", ["all", "batch"])
@pytest.mark.parametrize("paper", [False, True])
def test_a_single_unlabelled_row(digits, tmp_path, pca, paper):
    rows = np.flatnonzero(digits.truth < 5)[:40]
    y = digits.truth[rows].copy()
    y[7] = -1
    settings = small(pca=pca, epochs=1, acceptance="literal", moves_after_epoch=paper)
    trained = train(digits.pixels[rows], y, settings, tmp_path)
    np.testing.assert_array_equal(trained.mixture.labels_[y != -1], y[y != -1])


def test_classes_of_a_single_labelled_row_are_trained_with_it(digits, tmp_path):
    y = np.full(len(digits.y), -1)
    for code in range(5):
        y[np.flatnonzero(digits.truth == code)[0]] = code
    trained = run(digits._replace(y=y), tmp_path)
    assert trained.mixture.n_known_ == 5
    assert trained.history[0].accuracy == 1  # none can be held out, so the known ones are asked


@pytest.mark.filterwarnings("ignore:No row is labelled")
@pytest.mark.parametrize("count_on", ["now", "start"])
def test_without_any_label(digits, tmp_path, count_on):
    settings = small(epochs=1, count_on=count_on)
    trained = run(digits._replace(y=np.full(len(digits.y), -1)), tmp_path, settings)
    assert trained.mixture.n_known_ == 0
    assert trained.history[0].accuracy is None


def test_with_every_row_labelled(digits, tmp_path):
    settings = small(epochs=1, selection="last")
    trained = run(digits._replace(y=digits.truth), tmp_path, settings)
    np.testing.assert_array_equal(trained.mixture.labels_, digits.truth)


def test_names_of_classes_are_kept(digits, undisturbed, tmp_path):
    names = np.array(["ant", "bee", "cat", "dog", "eel", ""])
    trained = run(digits._replace(y=names[digits.y]), tmp_path)
    assert_same_outcome(trained, undisturbed[0])
    assert list(trained.mixture.classes_) == ["ant", "bee", "cat", "dog", "eel"]


@pytest.mark.parametrize("n_rows", [0, 1])
def test_fewer_than_two_images_are_refused(digits, tmp_path, n_rows):
    with pytest.raises(InputError, match=rf"at least two images; there are {n_rows}\."):
        train(digits.pixels[:n_rows], digits.y[:n_rows], small(), tmp_path)


def test_labels_of_another_length_are_refused(digits, tmp_path):
    with pytest.raises(InputError, match="111"):
        train(digits.pixels, digits.y[:-1], small(), tmp_path)


# --- held-out labels and selection


@pytest.mark.parametrize("count_on", ["now", "start"])
def test_held_out_labels_have_no_say_in_training(digits, tmp_path, monkeypatch, count_on):
    held_out = hold_out(digits.y, 0.3, seed=0)
    monkeypatch.setattr(holdout, "hold_out", lambda *_: held_out)
    other = digits.y.copy()
    other[held_out] = (other[held_out] + 1) % 5  # all wrong
    settings = small(warmup_epochs=10, count_on=count_on)  # the end is what is selected
    outcomes = [
        run(digits._replace(y=y), tmp_path / str(i), settings)
        for i, y in enumerate((digits.y, other))
    ]
    (tensors, plain), (others, other_plain) = (
        load_checkpoint(tmp_path / str(i) / LAST) for i in range(2)
    )
    for name, value in tensors.items():
        assert torch.equal(value, others[name]), name
    assert [record["loss"] for record in plain["history"]] == [
        record["loss"] for record in other_plain["history"]
    ]
    np.testing.assert_array_equal(outcomes[0].features, outcomes[1].features)
    assert plain["history"][0]["accuracy"] != other_plain["history"][0]["accuracy"]


def watch_codes(monkeypatch):
    """The labels that every E-step is given."""
    seen = []

    def watch(X, codes, *rest, **options):
        seen.append(codes.copy())
        return original(X, codes, *rest, **options)

    original = method.find_clusters
    monkeypatch.setattr(method, "find_clusters", watch)
    return seen


def test_held_out_rows_are_unlabelled_rows_to_the_method_and_to_the_mixture(
    digits, tmp_path, monkeypatch
):
    settings = small()
    held_out = hold_out(digits.y, settings.run.validation_share, settings.run.seed)
    assert held_out.sum() >= 5
    seen = watch_codes(monkeypatch)
    method = Usual(settings)
    trained = run(digits, tmp_path, settings, method=method)
    for codes in seen:
        np.testing.assert_array_equal(codes, np.where(held_out, -1, digits.y))
    assert set(method.n_labelled) == {16}
    labelled = digits.y != -1  # the last mixture has them all
    np.testing.assert_array_equal(trained.mixture.labels_[labelled], digits.y[labelled])


def test_without_selection_nothing_is_held_out(digits, tmp_path, monkeypatch):
    seen = watch_codes(monkeypatch)
    trained = run(digits, tmp_path, small(selection="last"))
    for codes in seen:
        np.testing.assert_array_equal(codes, digits.y)
    assert trained.selected_epoch == 3
    assert not (tmp_path / BEST).exists()


def select(digits, folder, monkeypatch, good_epochs, *, warmup_epochs, listener=None):
    """A run in which the held-out rows are in their class in some epochs only."""
    settings = small(selection="validation", warmup_epochs=warmup_epochs)
    held_out = hold_out(digits.y, settings.run.validation_share, settings.run.seed)
    epochs = iter(range(100))

    def accuracy(_, codes, rows):
        np.testing.assert_array_equal(codes, digits.y)
        np.testing.assert_array_equal(rows, held_out)
        return 0.9 if next(epochs) in good_epochs else 0.5

    with monkeypatch.context() as patch:
        patch.setattr(Clusters, "accuracy", accuracy)
        return run(digits, folder, settings, listener=listener)


@pytest.mark.parametrize(
    ("good_epochs", "warmup_epochs", "selected"),
    [
        ({1}, 0, 1),
        ({1, 2}, 0, 2),  # the later of two
        ({0, 2}, 1, 2),
        ({0, 3}, 0, 3),
        ({0, 1}, 3, 3),  # before λ = 1 none is selected
    ],
)
def test_the_best_epoch_on_held_out_labels_is_selected(
    digits, tmp_path, monkeypatch, good_epochs, warmup_epochs, selected
):
    trained = select(digits, tmp_path, monkeypatch, good_epochs, warmup_epochs=warmup_epochs)
    assert trained.selected_epoch == selected
    tensors, plain = load_checkpoint(tmp_path / BEST)
    assert plain["epoch"] == selected
    for name, value in trained.network.named_parameters():
        assert torch.equal(value, tensors[f"network.{name}"])


def test_the_selected_weights_are_those_from_before_that_epoch(digits, tmp_path, monkeypatch):
    trained = select(digits, tmp_path / "whole", monkeypatch, {1}, warmup_epochs=0)
    stop = StopAt("epoch", epoch=0)
    with pytest.raises(Interrupted):
        select(digits, tmp_path / "part", monkeypatch, {1}, warmup_epochs=0, listener=stop)
    means = averaged(tmp_path / "part")
    for name, value in trained.network.state_dict().items():
        assert torch.equal(value, means[name]), name


def test_the_best_epoch_is_remembered_over_a_stop(digits, tmp_path, monkeypatch):
    stop = StopAt("batch", epoch=2, n_done=1)
    with pytest.raises(Interrupted):
        select(digits, tmp_path, monkeypatch, {1}, warmup_epochs=0, listener=stop)
    assert select(digits, tmp_path, monkeypatch, {}, warmup_epochs=0).selected_epoch == 1


# --- what a batch is made of


class Collect(Method):
    """A method that keeps its batches."""

    uses_prototypes = True

    def __init__(self, settings):
        super().__init__(settings)
        self.batches = []

    def head(self, n_features):
        return nn.Linear(n_features, 4)

    def loss(self, batch):
        self.batches.append(batch)
        return batch.h.square().mean()


def test_batches_are_two_views_of_the_rows_that_were_drawn(digits, tmp_path):
    settings = small(
        model="test_vit", image_size=16, learning_rate=0.0, selection="last", epochs=2, seed=3
    )
    method = Collect(settings)
    trained = run(digits, tmp_path, settings, method=method)
    network = trained.network  # its weights have not changed
    pixels = torch.from_numpy(digits.pixels)
    batches = iter(method.batches)
    for epoch in range(2):
        assigned = None
        for i, rows in enumerate(epoch_batches(digits.y != -1, 16, 16, seed=3, epoch=epoch)):
            batch = next(batches)
            assert batch.epoch == epoch
            np.testing.assert_array_equal(batch.codes.numpy(), digits.y[rows])
            draws = draw(32, seed=3, epoch=epoch, batch=i)
            for view in range(2):
                images = trained.views.random(pixels[rows], draws[view])
                with torch.no_grad():
                    z, h = network(images)
                torch.testing.assert_close(batch.z[view], z, rtol=0, atol=1e-5)
                torch.testing.assert_close(batch.h[view], h, rtol=0, atol=1e-5)
            # labelled rows are assigned to their class, each row to one component throughout
            labelled = batch.codes >= 0
            assert torch.equal(batch.assigned[labelled], batch.codes[labelled])
            assigned = np.full(112, -1) if assigned is None else assigned
            known = assigned[rows] >= 0
            np.testing.assert_array_equal(assigned[rows][known], batch.assigned.numpy()[known])
            assigned[rows] = batch.assigned.numpy()
        n_components = trained.history[epoch].n_components
        assert set(assigned[assigned >= 0]) <= set(range(n_components))
        assert assigned.max() >= 5


# --- steps of the optimiser


class Slope(nn.Module):
    """A number that does not depend on the images."""

    def __init__(self):
        super().__init__()
        self.number = nn.Parameter(torch.zeros(1))

    def forward(self, features):
        return 0 * features[:, :1] + self.number


class Downhill(Method):
    """A method whose loss is a number of its head: a step lowers it by the learning rate."""

    def __init__(self, settings):
        super().__init__(settings)
        self.numbers = []

    def head(self, n_features):
        return Slope()

    def loss(self, batch):
        loss = batch.h.mean()
        self.numbers.append(loss.item())
        return loss


@pytest.mark.parametrize(
    ("accumulate", "n_steps"), [(1, [0, 1, 2, 3]), (2, [0, 0, 1, 1]), (4, [0, 0, 0, 0])]
)
def test_a_step_is_the_learning_rate_times_the_mean_gradient(digits, tmp_path, accumulate, n_steps):
    settings = small(accumulate=accumulate, momentum=0.0, epochs=2, learning_rate=0.1)
    method = Downhill(settings)
    trained = run(digits, tmp_path, settings, method=method)
    per_epoch = N_STEPS // accumulate
    rates = [0.1, cosine_rate(1, 2, 0.1)]
    expected = [-rates[0] * n for n in n_steps]
    expected += [-rates[0] * per_epoch - rates[1] * n for n in n_steps]
    np.testing.assert_allclose(method.numbers, expected, rtol=1e-5, atol=1e-7)
    end = -per_epoch * sum(rates)
    assert trained.network.head.number.item() == pytest.approx(end, rel=1e-5)


class DownhillWithCategories(Downhill):
    """The same with E-steps, and with a mean of the weights."""

    uses_prototypes = True
    averages_weights = True
    ends_with_mixture = False


@pytest.mark.parametrize("accumulate", [1, 2, 3])
@pytest.mark.parametrize("decay", [0.0, 0.7])
def test_the_mean_is_over_the_steps_of_the_optimiser(digits, tmp_path, accumulate, decay):
    settings = small(
        accumulate=accumulate,
        momentum=0.0,
        epochs=2,
        learning_rate=0.1,
        selection="last",
        weight_average=decay,
    )
    method = DownhillWithCategories(settings)
    trained = run(digits, tmp_path, settings, method=method)
    number = mean = 0.0
    n_steps = 0
    for rate in (0.1, cosine_rate(1, 2, 0.1)):
        for _ in range(math.ceil(N_STEPS / accumulate)):
            number -= rate
            delta = min(decay, (1 + n_steps) / (10 + n_steps))
            mean = delta * mean + (1 - delta) * number
            n_steps += 1
    assert trained.network.head.number.item() == pytest.approx(mean, rel=1e-5)
    assert last_step(tmp_path)["head.number"].item() == pytest.approx(number, rel=1e-5)
    assert averaged(tmp_path)["head.number"].item() == pytest.approx(mean, rel=1e-5)


def test_batches_that_are_left_are_not_carried_into_the_next_epoch(digits, tmp_path):
    settings = small(accumulate=3, momentum=0.0, epochs=2)
    method = Downhill(settings)
    run(digits, tmp_path, settings, method=method)
    numbers = method.numbers
    assert numbers[0] == numbers[1] == numbers[2] > numbers[3] > numbers[4]
    assert numbers[4] == numbers[5] == numbers[6] > numbers[7]


# --- several processes

SPREAD = """
import json, sys
from dataclasses import asdict
from pathlib import Path
import numpy as np, torch
from newfound.deep.settings import Settings
from newfound.deep.trainer import train

torch.set_num_threads(1)
data = np.load("data.npz")
trained = train(data["pixels"], data["y"], Settings(**eval(sys.argv[1])), Path("run"))
rank = torch.distributed.get_rank()
np.savez(f"rank{rank}.npz", features=trained.features, labels=trained.mixture.labels_)
"""


def run_processes(folder, settings, n_processes=2):
    (folder / "script.py").write_text(SPREAD)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc_per_node", str(n_processes), "script.py", repr(settings)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_two_processes_agree_with_one(digits, tmp_path):
    pixels, y = digits.pixels[:111], digits.y[:111]  # an odd number: one has a row less
    np.savez(tmp_path / "data.npz", pixels=pixels, y=y)
    settings = {
        **SMALL,
        "model": "test_vit",
        "image_size": 16,
        "learning_rate": 0.01,
        "contrastive_temperature": 0.5,
        "supervised_temperature": 0.5,
        "prototype_temperature": 0.5,
        "moves_every": 5,  # moves hang on the last bit of a feature, which is not the same
        # the end is selected, whose checkpoint is written by one process and read by both
        "warmup_epochs": 3,
    }
    result = run_processes(tmp_path, settings)
    assert result.returncode == 0, result.stderr
    alone = train(pixels, y, Settings(**settings), tmp_path / "alone")
    lines = (tmp_path / "run" / "epochs.jsonl").read_text().splitlines()
    assert len(lines) == 3
    for record, one in zip(map(json.loads, lines), alone.history, strict=True):
        assert record["loss"] == pytest.approx(one.loss, abs=1e-5)
        assert record["n_components"] == one.n_components
        assert record["accuracy"] == one.accuracy
    first, second = (np.load(tmp_path / f"rank{rank}.npz") for rank in range(2))
    np.testing.assert_array_equal(first["features"], second["features"])
    np.testing.assert_array_equal(first["labels"], second["labels"])
    np.testing.assert_allclose(first["features"], alone.features, atol=1e-4)
