"""Items that cannot be used, batches, and runs that are interrupted."""

import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from newfound.encode import encode_pictures, encoding
from newfound.encode import pictures as picture_files
from newfound.encode.encoder import Encoder
from newfound.errors import InputError


def digit(i):
    """One of scikit-learn's digits: 8 × 8 pixels, grey."""
    return np.uint8(load_digits().images[i] * 15)


def shelves(cache):
    """The files with features, the oldest first."""
    return sorted(cache.glob("*/*.rows"), key=lambda path: path.stat().st_mtime_ns)


def test_bad_files_are_listed_and_stop_nothing(pictures, tmp_path):
    good = pictures[1].read_bytes()
    pictures[1].write_bytes(good[: len(good) // 2])
    pictures[4].write_bytes(b"")
    pictures[7].write_text("no picture")
    pictures[9].unlink()
    pictures[10].unlink()
    pictures[10].mkdir()
    os.mkfifo(tmp_path / "pipe")
    result = encode_pictures([*pictures, tmp_path / "pipe"], "pixels", cache=tmp_path / "cache")
    assert result.kept.tolist() == [0, 2, 3, 5, 6, 8, 11]
    reasons = dict(result.skipped)
    assert list(reasons) == [1, 4, 7, 9, 10, 12]
    assert "damaged" in reasons[1]
    assert reasons[4] == "the file is empty"
    assert "not a picture" in reasons[7]
    assert reasons[9] == "there is no such file"
    assert reasons[10] == reasons[12] == "is not a file"
    np.testing.assert_allclose(result.features[3] * 255, digit(5).ravel(), rtol=1e-6)


def test_a_file_that_may_not_be_read_is_listed(pictures, monkeypatch):
    plain = Path.open

    def refuse(self, *args, **options):  # `chmod` would not stop a test that runs as root
        if self == pictures[3]:
            raise PermissionError(13, "Permission denied")
        return plain(self, *args, **options)

    monkeypatch.setattr(Path, "open", refuse)
    assert encode_pictures(pictures, "pixels").skipped == [(3, "cannot be read: Permission denied")]


def test_a_file_that_goes_away_in_the_middle_is_listed(pictures, monkeypatch):
    plain = picture_files.read_picture

    def read_last(path, at_least=None):
        picture = plain(path)
        if path == pictures[3]:
            path.unlink()
        return picture

    monkeypatch.setattr(picture_files, "read_picture", read_last)
    result = encode_pictures(pictures, "pixels-8x8-grey")
    assert result.skipped == [(3, "there is no such file")]


def test_a_file_that_changes_while_it_is_read_is_not_kept_under_its_old_content(
    pictures, monkeypatch, tmp_path
):
    plain = picture_files.read_picture
    old = pictures[3].read_bytes()

    def read_new(path, at_least=None):
        if path == pictures[3]:
            Image.fromarray(255 - digit(3)).save(path)
        return plain(path)

    monkeypatch.setattr(picture_files, "read_picture", read_new)
    result = encode_pictures(pictures, "pixels-8x8-grey", cache=tmp_path / "cache")
    assert result.skipped == [(3, "the file changed while it was read")]
    pictures[3].write_bytes(old)
    monkeypatch.setattr(picture_files, "read_picture", plain)
    again = encode_pictures(pictures, "pixels-8x8-grey", cache=tmp_path / "cache")
    np.testing.assert_allclose(again.features[3] * 255, digit(3).ravel(), rtol=1e-6)


def test_nothing_in_gives_nothing_out(tmp_path):
    for paths in ([], [tmp_path / "absent.png"]):
        result = encode_pictures(paths, "pixels", cache=tmp_path / "cache")
        assert result.features.shape == (0, 0)
        assert len(result.kept) == 0
        assert len(result.skipped) == len(paths)


def test_features_that_are_not_finite_are_skipped(pictures, monkeypatch, tmp_path):
    def network(prepared):
        features = np.stack(prepared)
        features[features[:, 3] == features[:, 3].max()] = np.nan
        return features

    plain = picture_files._pixels

    def broken(name, paths):
        whole = plain(name, paths)
        return Encoder(whole.name, whole.identity, whole.prepare, lambda: network)

    monkeypatch.setattr(picture_files, "_pixels", broken)
    result = encode_pictures(pictures, "pixels", cache=tmp_path / "cache")
    assert len(result.skipped) + len(result.kept) == 12
    assert {reason for _, reason in result.skipped} == {"its features are not finite"}
    assert np.isfinite(result.features).all()
    monkeypatch.setattr(picture_files, "_pixels", plain)
    again = encode_pictures(pictures, "pixels", cache=tmp_path / "cache")
    expected = np.stack([digit(i).ravel() for i in range(12)]) / 255
    np.testing.assert_allclose(again.features, expected, rtol=1e-6)


def test_equal_files_are_encoded_once(pictures, tmp_path, read):
    for path in pictures[1:6]:
        path.write_bytes(pictures[0].read_bytes())
    pictures[8].write_bytes(b"broken")
    pictures[9].write_bytes(b"broken")
    result = encode_pictures(pictures, "pixels-8x8-grey")
    assert sum(read.values()) == 12 - 5 - 1
    assert [index for index, _ in result.skipped] == [8, 9]
    np.testing.assert_array_equal(result.features[:6], np.repeat(result.features[:1], 6, axis=0))


def test_progress_counts_every_item_once(pictures, tmp_path):
    pictures[2].write_bytes(b"broken")
    pictures[3].write_bytes(pictures[4].read_bytes())
    pictures[5].unlink()
    calls = []

    def run():
        calls.clear()
        encode_pictures(
            pictures,
            "pixels-8x8-grey",
            cache=tmp_path / "cache",
            batch_size=4,
            progress=lambda *call: calls.append(call),
        )
        assert {total for _, total in calls} == {12}
        done = [call[0] for call in calls]
        assert done == sorted(done)
        assert done[-1] == 12
        return done

    assert len(set(run())) > 3
    for path in shelves(tmp_path / "cache"):  # the same features twice, as two runs may leave them
        shutil.copy(path, path.with_stem("copy"))
    run()


class Killed(BaseException):
    """What a test stops a run with."""


def test_a_stopped_run_goes_on_where_it_stopped(pictures, tmp_path, read):
    def stop(done, total):
        if done >= 8:
            raise Killed

    options = {"cache": tmp_path / "cache", "batch_size": 4}
    with pytest.raises(Killed):
        encode_pictures(pictures, "pixels-8x8-grey", progress=stop, **options)
    assert len(shelves(tmp_path / "cache")) == 2
    read.clear()
    calls = []
    result = encode_pictures(
        pictures, "pixels-8x8-grey", progress=lambda *call: calls.append(call), **options
    )
    assert read == {"08.png": 1, "09.png": 1, "10.png": 1, "11.png": 1}
    expected = encode_pictures(pictures, "pixels-8x8-grey")
    np.testing.assert_array_equal(result.features, expected.features)
    done = [call[0] for call in calls]
    assert done == sorted(done)
    assert 8 in done
    assert calls[-1] == (12, 12)


def test_a_killed_run_goes_on_where_it_was_killed(pictures, tmp_path, read):
    program = f"""
import os, signal
from pathlib import Path
from newfound.encode import encode_pictures


def kill(done, total):
    if done >= 8:
        os.kill(os.getpid(), signal.SIGKILL)
paths = sorted(Path({str(pictures[0].parent)!r}).iterdir())
cache = Path({str(tmp_path / "cache")!r})
encode_pictures(paths, "pixels-8x8-grey", cache=cache, batch_size=4, progress=kill)
"""
    assert subprocess.run([sys.executable, "-c", program]).returncode == -signal.SIGKILL
    encode_pictures(pictures, "pixels-8x8-grey", cache=tmp_path / "cache")
    assert sum(read.values()) == 4


def test_batch_size_is_checked():
    with pytest.raises(InputError, match="batch_size is 0; expected at least 1"):
        encode_pictures([], "pixels", batch_size=0)


def test_results_come_in_order_and_only_so_far_ahead():
    started, taken = [], []

    class Pool:
        def submit(self, function, item):
            started.append(item)
            assert len(started) - len(taken) <= 4
            future = Future()
            future.set_result(function(item))
            return future

    for result in encoding._in_order(Pool(), lambda item: -item, range(20), ahead=3):
        taken.append(result)
    assert taken == [-i for i in range(20)]
