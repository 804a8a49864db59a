"""Checkpoints are whole or not there, and say what they are not."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from newfound.deep.checkpoint import (
    differences,
    load_checkpoint,
    run_identity,
    save_checkpoint,
)
from newfound.deep.settings import Settings
from newfound.errors import InputError
from newfound.files import write_atomically


def some_tensors():
    return {
        "weights": torch.randn(3, 4),
        "labels": torch.arange(5),
        "counter": torch.tensor(7),
        "flags": torch.tensor([True, False]),
        "half": torch.randn(2).bfloat16(),
        "empty": torch.empty(0, 3),
    }


STATE = {"epoch": 3, "history": [{"loss": 0.1, "accuracy": None}], "name": "τ of Eq. 1"}


def test_round_trip(tmp_path):
    tensors = some_tensors()
    save_checkpoint(tmp_path / "c.safetensors", tensors, STATE)
    loaded, state = load_checkpoint(tmp_path / "c.safetensors")
    assert state == STATE
    assert loaded.keys() == tensors.keys()
    for name, value in tensors.items():
        assert loaded[name].dtype == value.dtype
        assert torch.equal(loaded[name], value)


def test_floats_of_the_state_come_back_to_the_last_bit(tmp_path):
    state = {"loss": 0.1 + 0.2, "best": -1.0, "tiny": 5e-324}
    save_checkpoint(tmp_path / "c.safetensors", {}, state)
    assert load_checkpoint(tmp_path / "c.safetensors") == ({}, state)


def test_tensors_may_share_storage_be_transposed_and_want_gradients(tmp_path):
    base = torch.randn(4, 6, requires_grad=True)
    tensors = {"base": base, "again": base, "transposed": base.T, "part": base[1:3, ::2]}
    save_checkpoint(tmp_path / "c.safetensors", tensors, {})
    loaded, _ = load_checkpoint(tmp_path / "c.safetensors")
    for name, value in tensors.items():
        assert torch.equal(loaded[name], value)
        assert not loaded[name].requires_grad


def test_a_later_change_of_the_tensor_does_not_reach_the_file(tmp_path):
    weights = torch.ones(3)
    save_checkpoint(tmp_path / "c.safetensors", {"weights": weights}, {})
    weights += 1
    assert torch.equal(load_checkpoint(tmp_path / "c.safetensors")[0]["weights"], torch.ones(3))


def test_the_same_content_is_the_same_bytes(tmp_path):
    tensors = some_tensors()
    for name in ("a", "b"):
        save_checkpoint(tmp_path / name, tensors, STATE)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_folders_are_made_and_nothing_else_is_left(tmp_path):
    path = tmp_path / "run" / "deep" / "c.safetensors"
    save_checkpoint(path, some_tensors(), STATE)
    save_checkpoint(path, some_tensors(), STATE | {"epoch": 4})
    assert load_checkpoint(path)[1]["epoch"] == 4
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("step", ["write", "flush", "fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.EIO, "no"), KeyboardInterrupt()])
def test_a_write_that_breaks_off_leaves_the_old_file(tmp_path, monkeypatch, step, error):
    path = tmp_path / "c.safetensors"
    save_checkpoint(path, some_tensors(), {"epoch": 1})
    before = path.read_bytes()
    break_off(monkeypatch, step, error)
    with pytest.raises(type(error)):
        save_checkpoint(path, some_tensors(), {"epoch": 2})
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert load_checkpoint(path)[1] == {"epoch": 1}


class BrokenFile:
    """A file of which one step fails, after half of the content is on the disk."""

    def __init__(self, path, mode, step, error):
        self.file = open(path, mode, buffering=0)  # noqa: SIM115
        self.step, self.error = step, error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def write(self, content):
        if self.step == "write":
            self.file.write(content[: len(content) // 2])
            raise self.error
        return self.file.write(content)

    def flush(self):
        if self.step == "flush":
            raise self.error

    def fileno(self):
        return self.file.fileno()


def break_off(monkeypatch, step, error):
    def fail(*_):
        raise error

    if step in ("fsync", "replace"):
        monkeypatch.setattr(os, step, fail)
    else:
        monkeypatch.setattr(Path, "open", lambda path, mode: BrokenFile(path, mode, step, error))


@pytest.mark.parametrize("step", ["write", "flush", "fsync", "replace"])
def test_a_full_disk_is_said_in_words(tmp_path, monkeypatch, step):
    path = tmp_path / "c.safetensors"
    write_atomically(path, b"old")
    break_off(monkeypatch, step, OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(InputError, match=r"disk with .* is full\. Make room"):
        write_atomically(path, bytes(3 * 2**20))
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]  # the half that was written is gone


def test_another_error_is_passed_on_and_leaves_no_half_file(tmp_path, monkeypatch):
    break_off(monkeypatch, "write", OSError(errno.EIO, "broken disk"))
    with pytest.raises(OSError, match="broken disk"):
        write_atomically(tmp_path / "c.safetensors", b"new")
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


def test_content_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    path = tmp_path / "c.safetensors"
    calls = []
    for step in ("fsync", "replace"):
        original = getattr(os, step)
        monkeypatch.setattr(
            os,
            step,
            lambda *given, step=step, original=original: (calls.append(step), original(*given)),
        )
    write_atomically(path, b"new")
    assert calls[:2] == ["fsync", "replace"]


def test_a_safetensors_file_of_others_is_refused(tmp_path):
    save_file({"w": torch.ones(2)}, tmp_path / "theirs.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"theirs\.safetensors was not written by newfound"):
        load_checkpoint(tmp_path / "theirs.safetensors")
    save_file({"w": torch.ones(2)}, tmp_path / "bare.safetensors")
    with pytest.raises(InputError, match="was not written by newfound"):
        load_checkpoint(tmp_path / "bare.safetensors")


@pytest.mark.parametrize("content", [b"", b"no tensors here", b"\x80\x04\x95" + bytes(30)])
def test_a_file_of_another_kind_is_refused(tmp_path, content):
    (tmp_path / "c.safetensors").write_bytes(content)
    with pytest.raises(InputError, match=r"c\.safetensors is not a checkpoint"):
        load_checkpoint(tmp_path / "c.safetensors")


@pytest.mark.parametrize("share", [0.01, 0.3, 0.99])
def test_a_truncated_file_is_refused(tmp_path, share):
    path = tmp_path / "c.safetensors"
    save_checkpoint(path, {"weights": torch.randn(100, 100)}, STATE)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match="is not a checkpoint"):
        load_checkpoint(path)


def test_a_flipped_byte_is_noticed_wherever_it_is(tmp_path):
    path = tmp_path / "c.safetensors"
    save_checkpoint(path, some_tensors(), STATE)
    content = path.read_bytes()
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(InputError):
            load_checkpoint(path)


def test_a_checkpoint_without_a_digest_is_read(tmp_path):
    text = json.dumps(STATE)
    save_file({"a": torch.zeros(1)}, tmp_path / "c.safetensors", metadata={"newfound": text})
    assert load_checkpoint(tmp_path / "c.safetensors")[1] == STATE


@pytest.mark.parametrize("state", ["[]", "{", "[" * 100_000])
def test_a_header_of_another_kind_is_refused(tmp_path, state):
    save_file({"a": torch.zeros(1)}, tmp_path / "c.safetensors", metadata={"newfound": state})
    with pytest.raises(InputError, match="is not a checkpoint"):
        load_checkpoint(tmp_path / "c.safetensors")


def test_nothing_is_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("the file was unpickled",))

    torch.save({"weights": Trap()}, tmp_path / "c.pt")
    with pytest.raises(InputError, match="is not a checkpoint"):
        load_checkpoint(tmp_path / "c.pt")


def test_differences_in_words():
    before = {"epochs": 3, "seed": 0, "pca": "all"}
    assert differences(before, dict(before)) == ""
    words = differences(before, {"epochs": 4, "seed": 0, "pca": "off"})
    assert words == "epochs was 3 and is 4, pca was 'all' and is 'off'"


def test_differences_see_what_was_added_and_what_is_gone():
    assert differences({"a": 1}, {"b": 2}) == "a was 1 and is None, b was None and is 2"


def test_differences_do_not_see_the_way_through_a_file():
    settings = {"rate": 0.1 + 0.2, "share": 5e-5, "n": None, "flip": True}
    assert differences(json.loads(json.dumps(settings)), settings) == ""


def test_the_identity_of_a_run_names_weights_by_their_content(tmp_path):
    def identity(name):
        settings = Settings(weights=str(tmp_path / name))
        return run_identity(settings, np.zeros(2, dtype=np.int64), fingerprint="", method="m")

    for name, content in (("a.pt", b"1"), ("b.pt", b"1"), ("c.pt", b"2")):
        (tmp_path / name).write_bytes(content)
    assert identity("a.pt") == identity("b.pt") != identity("c.pt")
