"""A training can be stopped anywhere and resumed; another run in its folder is refused."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn
from trainer_runs import (
    N_STEPS,
    SMALL,
    Interrupted,
    Notes,
    StopAt,
    assert_same_bits,
    assert_same_outcome,
    run,
    small,
)

from newfound.deep.checkpoint import BEST, LAST, load_checkpoint
from newfound.deep.method import PrototypicalContrast
from newfound.deep.trainer import train
from newfound.errors import InputError

# few pictures and few epochs: K is not what these tests are about
pytestmark = pytest.mark.filterwarnings("ignore:The count suggests")


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


@pytest.mark.parametrize(
    "changes",
    [
        {"count_on": "start", "moves_every": 1},
        {"n_components": 9},
        {"acceptance": "literal", "moves_after_epoch": True, "pca": "batch"},
        {"model": "test_vit", "image_size": 16, "trainable": "last", "selection": "last"},
        {"weight_average": 0.0, "target_temperature": 0.0, "sizes": "none"},
        {"weight_average": 0.5, "accumulate": 3, "selection": "last"},
        {"model": "test_vit", "image_size": 16, "trainable": "last", "n_stored_views": 3},
    ],
    ids=lambda changes: "-".join(changes),
)
def test_runs_of_all_kinds_go_on_to_the_same_bits(
    digits, tmp_path, changes, sizes_are_reached, saving_within_epochs
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
