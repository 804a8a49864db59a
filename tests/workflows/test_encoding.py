"""Features from the encoder of an earlier run."""

from dataclasses import replace
from pathlib import Path

import pytest

from newfound.errors import InputError
from newfound.workflows.encoding import encode_like, weights_identity, with_absolute_path
from newfound.workflows.job import Job


def test_other_weights_under_the_same_name_are_noticed(finished, tmp_path):
    result, out = finished
    (tmp_path / "weights").write_bytes(b"one")
    name = f"net={tmp_path / 'weights'}"
    encoder = {"kind": "network", "name": name, **weights_identity(name)}
    (tmp_path / "weights").write_bytes(b"two")
    with pytest.raises(InputError, match="are not those that the run in"):
        encode_like(replace(result, encoder=encoder), out, result.collection, Job())


def test_the_path_of_weights_means_the_same_from_every_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert with_absolute_path("net=weights") == f"net={tmp_path / 'weights'}"
    assert with_absolute_path("net=/a/file") == f"net={Path('/a/file')}"
    assert with_absolute_path("auto") == "auto"
