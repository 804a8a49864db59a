"""Stored features: found again, expired, damaged."""

import json
import os

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from newfound.encode import encode_pictures
from newfound.errors import InputError


def digit(i):
    """One of scikit-learn's digits: 8 × 8 pixels, grey."""
    return np.uint8(load_digits().images[i] * 15)


def shelves(cache):
    """The files with features, the oldest first."""
    return sorted(cache.glob("*/*.rows"), key=lambda path: path.stat().st_mtime_ns)


def test_a_second_run_decodes_nothing_and_gives_the_same(pictures, tmp_path, read):
    name = "pixels-8x8-grey"
    first = encode_pictures(pictures, name, cache=tmp_path / "cache", batch_size=5)
    assert sum(read.values()) == 12
    again = encode_pictures(pictures, name, cache=tmp_path / "cache", batch_size=3)
    assert sum(read.values()) == 12
    np.testing.assert_array_equal(again.features, first.features)
    assert again.encoder == name


def test_features_do_not_depend_on_names_and_order(pictures, tmp_path, read):
    first = encode_pictures(pictures, "pixels-8x8-grey", cache=tmp_path / "cache")
    moved = [path.rename(tmp_path / f"moved {path.name}") for path in pictures]
    again = encode_pictures(moved[::-1], "pixels-8x8-grey", cache=tmp_path / "cache")
    assert sum(read.values()) == 12
    np.testing.assert_array_equal(again.features, first.features[::-1])


def test_a_changed_file_is_encoded_again_and_only_that(pictures, tmp_path, read):
    first = encode_pictures(pictures, "pixels-8x8-grey", cache=tmp_path / "cache")
    status = pictures[4].stat()
    Image.fromarray(255 - digit(4)).save(pictures[4])
    os.utime(pictures[4], ns=(status.st_atime_ns, status.st_mtime_ns))  # by content, not by date
    read.clear()
    again = encode_pictures(pictures, "pixels-8x8-grey", cache=tmp_path / "cache")
    assert read == {"04.png": 1}
    np.testing.assert_allclose(again.features[4], 1 - first.features[4], atol=1e-6)
    np.testing.assert_array_equal(np.delete(again.features, 4, 0), np.delete(first.features, 4, 0))


def test_another_encoder_finds_nothing(pictures, tmp_path, read):
    encode_pictures(pictures, "pixels-8x8-grey", cache=tmp_path / "cache")
    result = encode_pictures(pictures, "pixels-4x4-grey", cache=tmp_path / "cache")
    assert sum(read.values()) == 24
    assert result.features.shape == (12, 16)
    told = {json.loads(p.read_text())["model"] for p in (tmp_path / "cache").glob("*/*.json")}
    assert told == {"pixels-8x8-grey", "pixels-4x4-grey"}


class Killed(BaseException):
    """What stops a run in these tests."""


def test_a_run_killed_while_it_writes_leaves_nothing_half(pictures, tmp_path, read, monkeypatch):
    def die(source, target):
        if str(target).endswith(".rows"):
            raise Killed
        return rename(source, target)

    rename = os.replace
    monkeypatch.setattr(os, "replace", die)
    with pytest.raises(Killed):
        encode_pictures(pictures, "pixels-8x8-grey", cache=tmp_path / "cache", batch_size=4)
    monkeypatch.undo()
    assert shelves(tmp_path / "cache") == []
    result = encode_pictures(pictures, "pixels-8x8-grey", cache=tmp_path / "cache")
    assert len(result.kept) == 12


def damage(path, how):
    content = bytearray(path.read_bytes())
    if how == "truncated":
        del content[len(content) // 2 :]
    elif how == "empty":
        content.clear()
    elif how == "another value":
        content[-1] ^= 1
    elif how == "another key":
        content[32 + 128] ^= 1
    elif how == "longer":
        content += b"more"
    path.write_bytes(content)


@pytest.mark.parametrize("how", ["truncated", "empty", "another value", "another key", "longer"])
def test_a_damaged_file_of_the_cache_is_computed_again(how, pictures, tmp_path, read):
    options = {"cache": tmp_path / "cache", "batch_size": 4}
    first = encode_pictures(pictures, "pixels-8x8-grey", **options)
    hurt = shelves(tmp_path / "cache")[1]
    damage(hurt, how)
    read.clear()
    again = encode_pictures(pictures, "pixels-8x8-grey", **options)
    assert read == {"04.png": 1, "05.png": 1, "06.png": 1, "07.png": 1}
    np.testing.assert_array_equal(again.features, first.features)
    read.clear()
    encode_pictures(pictures, "pixels-8x8-grey", **options)
    assert read == {}
    damage(hurt, how)
    encode_pictures(pictures, "pixels-8x8-grey", cache=tmp_path / "cache", batch_size=3)
    assert not hurt.exists()


def test_nothing_in_the_cache_is_unpickled(pictures, tmp_path):
    encode_pictures(pictures, "pixels-8x8-grey", cache=tmp_path / "cache")
    (path,) = shelves(tmp_path / "cache")
    content = path.read_bytes()
    assert content[32:].count(b"NUMPY") == 2
    assert b"|O" not in content


def test_a_cache_that_cannot_be_written_is_said(pictures, tmp_path):
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(InputError, match=r"cache.* cannot be written to"):
        encode_pictures(pictures, "pixels", cache=tmp_path / "cache")


def test_a_full_disk_is_said_and_what_was_kept_stays(pictures, tmp_path, read, monkeypatch):
    plain = os.fsync
    written = []

    def sync(number):
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        written.append(number)
        plain(number)

    monkeypatch.setattr(os, "fsync", sync)
    with pytest.raises(InputError, match=r"disk with .* is full.*resumes where it stopped"):
        encode_pictures(pictures, "pixels-8x8-grey", cache=tmp_path / "cache", batch_size=4)
    monkeypatch.setattr(os, "fsync", plain)
    assert list((tmp_path / "cache").glob("*/.*")) == []
    read.clear()
    encode_pictures(pictures, "pixels-8x8-grey", cache=tmp_path / "cache", batch_size=4)
    assert sum(read.values()) == 4
