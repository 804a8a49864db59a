import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import pytest
from PIL import Image

import newfound.deep.images.cache as cache_module
from newfound.data.pictures import read_picture, square_pixels
from newfound.deep.images.cache import cache_pictures
from newfound.errors import InputError

SIZE = 6
ROW_BYTES = 3 * SIZE * SIZE


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(cache_module, "_CHUNK_ROWS", 4)


@pytest.fixture
def decoded(monkeypatch):
    """Names of the files that were opened, since the list was last emptied."""
    names = []

    def read(path, **options):
        names.append(path.name)
        return read_picture(path, **options)

    monkeypatch.setattr(cache_module, "read_picture", read)
    return names


def draw(path, seed):
    """A picture that no other seed gives, larger than SIZE."""
    pixels = np.random.default_rng(seed).integers(0, 256, (8, 11, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)


@pytest.fixture
def paths(tmp_path):
    """Eleven pictures; the third and the seventh are broken."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    paths = [folder / f"{i:02d}.png" for i in range(11)]
    for i, path in enumerate(paths):
        draw(path, i)
    paths[2].write_bytes(b"")
    paths[6].write_bytes(paths[5].read_bytes()[:150])
    return paths


def touch_later(path):
    """Move the time of change on, as a later write would."""
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 10**9))


def slow_reference(paths):
    """Rows of the pictures that can be read, one after the other."""
    rows = []
    for path in paths:
        try:
            picture = read_picture(path, at_least=SIZE)
        except InputError:
            continue
        rows.append(np.moveaxis(square_pixels(picture, SIZE), 2, 0))
    return np.array(rows)


def assert_right(cache, paths):
    np.testing.assert_array_equal(cache.pixels, slow_reference(paths))
    assert sorted([*cache.kept.tolist(), *[i for i, _ in cache.skipped]]) == list(range(len(paths)))
    assert len(cache.kept) == len(cache.pixels)


def test_rows_are_the_pictures_that_can_be_read(tmp_path, paths):
    cache = cache_pictures(paths, SIZE, tmp_path / "cache")
    assert cache.pixels.dtype == np.uint8
    assert cache.pixels.shape == (9, 3, SIZE, SIZE)
    assert cache.kept.tolist() == [0, 1, 3, 4, 5, 7, 8, 9, 10]
    assert [i for i, _ in cache.skipped] == [2, 6]
    assert cache.skipped[0][1] == "the file is empty"
    assert cache.skipped[1][1].startswith("truncated")
    assert_right(cache, paths)


@pytest.mark.parametrize(("n_threads", "used"), [(1, 1), (5, 5), (None, 3)])
def test_order_does_not_depend_on_the_threads(tmp_path, paths, monkeypatch, n_threads, used):
    class Pool(ThreadPoolExecutor):
        def __init__(self, max_workers, name):
            assert max_workers == used
            super().__init__(max_workers, name)

    monkeypatch.setattr(cache_module, "ThreadPoolExecutor", Pool)
    monkeypatch.setattr(joblib, "cpu_count", lambda: 3)
    folder = tmp_path / "run" / "cache"  # neither is there yet
    assert_right(cache_pictures(paths, SIZE, folder, n_threads=n_threads), paths)


def test_squares_of_one_pixel(tmp_path, paths):
    assert cache_pictures(paths, 1, tmp_path / "cache").pixels.shape == (9, 3, 1, 1)


def test_a_second_call_decodes_nothing_that_is_there(tmp_path, paths, decoded):
    first = cache_pictures(paths, SIZE, tmp_path / "cache")
    assert sorted(decoded) == [path.name for path in paths]
    decoded.clear()
    second = cache_pictures(paths, SIZE, tmp_path / "cache")
    assert sorted(decoded) == ["02.png", "06.png"]  # they may have been mended
    np.testing.assert_array_equal(second.pixels, first.pixels)
    assert second.fingerprint == first.fingerprint
    assert second.skipped == first.skipped


def test_the_journal_grows_no_further_when_nothing_changes(tmp_path, paths):
    del paths[6], paths[2]
    journal = tmp_path / "cache" / "index.jsonl"
    cache_pictures(paths, SIZE, tmp_path / "cache")
    before = journal.read_bytes()
    cache_pictures(paths, SIZE, tmp_path / "cache")
    assert journal.read_bytes() == before


class StopError(Exception):
    pass


def failing_fsync(n_calls, error):
    """Fail at one of the moments at which the disk is waited for."""
    real_fsync, calls = os.fsync, []

    def fsync(descriptor):
        calls.append(descriptor)
        if len(calls) == n_calls:
            raise error
        real_fsync(descriptor)

    return fsync


def test_an_exception_in_the_middle_costs_a_chunk(tmp_path, paths, decoded):
    del paths[6], paths[2]

    def stop(done, total):
        if done == 4:
            raise StopError

    with pytest.raises(StopError):
        cache_pictures(paths, SIZE, tmp_path / "cache", progress=stop)
    assert not [thread for thread in threading.enumerate() if "newfound" in thread.name]
    decoded.clear()
    cache = cache_pictures(paths, SIZE, tmp_path / "cache")
    assert sorted(decoded) == [path.name for path in paths[4:]]
    assert_right(cache, paths)


def test_pixels_reach_the_disk_before_the_journal(tmp_path, paths, monkeypatch):
    """What power failure can do cannot be tried here; the order of the calls can."""
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    cache_pictures(paths, SIZE, tmp_path / "cache")
    pixels, journal = (
        (tmp_path / "cache" / name).stat().st_ino for name in ("pixels.bin", "index.jsonl")
    )
    chunks = [synced[i : i + 2] for i in range(len(synced) - 6, len(synced), 2)]
    assert chunks == [[pixels, journal]] * 3


def test_at_most_two_chunks_are_in_memory(tmp_path, paths, decoded):
    seen = []
    cache_pictures(
        paths, SIZE, tmp_path / "cache", progress=lambda done, _: seen.append((done, len(decoded)))
    )
    assert [done for done, _ in seen] == [0, 4, 8, 11]
    assert seen[1][1] <= 8


def test_kill_9_and_go_on(tmp_path, paths, decoded):
    program = """
import os, signal, sys
from pathlib import Path
from newfound.deep.images import cache
cache._CHUNK_ROWS = 4
def kill(done, total):
    if done >= 8:
        os.kill(os.getpid(), signal.SIGKILL)
paths = [Path(line) for line in sys.argv[2:]]
cache.cache_pictures(paths, 6, Path(sys.argv[1]), progress=kill)
"""
    arguments = [sys.executable, "-c", program, tmp_path / "cache", *paths]
    assert subprocess.run(arguments).returncode == -signal.SIGKILL
    cache = cache_pictures(paths, SIZE, tmp_path / "cache")
    assert sorted(set(decoded)) == ["02.png", "06.png", "08.png", "09.png", "10.png"]
    assert_right(cache, paths)


def test_a_kill_at_any_moment(tmp_path, paths, decoded):
    """Whatever part of the journal is on the disk, its end cut off or not, the result is right."""
    whole = cache_pictures(paths, SIZE, tmp_path / "cache")
    expected = np.array(whole.pixels)
    journal = (tmp_path / "cache" / "index.jsonl").read_bytes()
    for length in range(0, len(journal) + 1, 11):
        folder = tmp_path / str(length)
        folder.mkdir()
        (folder / "index.jsonl").write_bytes(journal[:length])
        shutil.copy(tmp_path / "cache" / "pixels.bin", folder)
        # rows that the journal does not speak of may be there in part, or hold anything
        n_rows = journal[:length].count(b', ""]\n')
        with (folder / "pixels.bin").open("r+b") as file:
            file.seek(n_rows * ROW_BYTES)
            file.write(b"\xff" * 50)
        cache = cache_pictures(paths, SIZE, folder)
        np.testing.assert_array_equal(cache.pixels, expected)
        assert cache.fingerprint == whole.fingerprint
        assert cache.skipped == whole.skipped
        decoded.clear()
        cache_pictures(paths, SIZE, folder)
        assert sorted(decoded) == ["02.png", "06.png"]


@pytest.mark.parametrize("n_bytes", [0, 1, 3 * ROW_BYTES, 8 * ROW_BYTES + 1])
def test_pixels_that_were_lost_are_decoded_again(tmp_path, paths, n_bytes):
    cache_pictures(paths, SIZE, tmp_path / "cache")
    os.truncate(tmp_path / "cache" / "pixels.bin", n_bytes)
    assert_right(cache_pictures(paths, SIZE, tmp_path / "cache"), paths)


def test_garbage_in_the_journal_ends_it(tmp_path, paths, decoded):
    cache_pictures(paths, SIZE, tmp_path / "cache")
    journal = tmp_path / "cache" / "index.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:6]) + bytes(20) + b"\n" + b"".join(lines[6:]))
    decoded.clear()
    assert_right(cache_pictures(paths, SIZE, tmp_path / "cache"), paths)
    assert "04.png" not in decoded
    assert {"05.png", "10.png"} <= set(decoded)


def test_a_changed_file_is_decoded_again_and_no_other(tmp_path, paths, decoded):
    del paths[6], paths[2]
    before = cache_pictures(paths, SIZE, tmp_path / "cache")
    draw(paths[3], seed=99)
    touch_later(paths[3])
    decoded.clear()
    after = cache_pictures(paths, SIZE, tmp_path / "cache")
    assert decoded == [paths[3].name]
    assert_right(after, paths)
    assert after.fingerprint != before.fingerprint
    decoded.clear()
    again = cache_pictures(paths, SIZE, tmp_path / "cache")
    assert decoded == []
    assert again.fingerprint == after.fingerprint


def test_a_file_of_another_length_is_decoded_again(tmp_path, paths, decoded):
    cache_pictures(paths, SIZE, tmp_path / "cache")
    status = paths[4].stat()
    Image.new("RGB", (9, 9), "red").save(paths[4])
    os.utime(paths[4], ns=(status.st_atime_ns, status.st_mtime_ns))
    decoded.clear()
    assert_right(cache_pictures(paths, SIZE, tmp_path / "cache"), paths)
    assert sorted(decoded) == ["02.png", "04.png", "06.png"]


def test_files_that_break_and_files_that_are_mended(tmp_path, paths):
    """Rows behind them move; the result is that of a new cache."""
    cache_pictures(paths, SIZE, tmp_path / "cache")
    draw(paths[2], seed=2)  # mended
    paths[4].write_bytes(b"")  # broken
    draw(paths[8], seed=88)  # changed
    touch_later(paths[8])
    paths[9].unlink()  # gone
    cache = cache_pictures(paths, SIZE, tmp_path / "cache")
    assert cache.kept.tolist() == [0, 1, 2, 3, 5, 7, 8, 10]
    assert_right(cache, paths)
    assert cache.fingerprint == cache_pictures(paths, SIZE, tmp_path / "new").fingerprint
    assert_right(cache_pictures(paths, SIZE, tmp_path / "cache"), paths)


def empty(path):
    path.write_bytes(b"")


def redraw(path):
    draw(path, seed=99)
    touch_later(path)


@pytest.mark.parametrize("restored", [True, False])
@pytest.mark.parametrize("change", [empty, redraw])
@pytest.mark.parametrize("place", [0, 3, 10])
def test_a_kill_while_rows_change(tmp_path, paths, monkeypatch, place, change, restored):
    """What is forgotten is forgotten on the disk before its rows are written over."""
    content, status = paths[place].read_bytes(), paths[place].stat()

    def restore():
        paths[place].write_bytes(content)  # as it was, time of change and all
        os.utime(paths[place], ns=(status.st_atime_ns, status.st_mtime_ns))

    for n_calls in range(1, 8):
        restore()
        cache_pictures(paths, SIZE, tmp_path / "cache")
        change(paths[place])
        with monkeypatch.context() as patch, contextlib.suppress(StopError):
            patch.setattr(os, "fsync", failing_fsync(n_calls, StopError()))
            cache_pictures(paths, SIZE, tmp_path / "cache")
        if restored:
            restore()
        assert_right(cache_pictures(paths, SIZE, tmp_path / "cache"), paths)


@pytest.mark.parametrize("change", ["size", "path", "order", "fewer", "ids"])
def test_another_collection_is_another_cache(tmp_path, paths, decoded, change):
    cache_pictures(paths, SIZE, tmp_path / "cache")
    others, size, ids = list(paths), SIZE, None
    if change == "size":
        size = 5
    elif change == "path":
        others[3] = tmp_path / "other.png"
        shutil.copy2(paths[4], others[3])
    elif change == "order":
        others.reverse()
    elif change == "fewer":
        others.pop()
    else:
        ids = [str(i) for i in range(len(paths))]
    decoded.clear()
    cache = cache_pictures(others, size, tmp_path / "cache", ids=ids)
    assert len(decoded) == len(others)
    assert cache.pixels.shape[-1] == size
    if change != "size":
        assert_right(cache, others)
    assert (tmp_path / "cache" / "pixels.bin").stat().st_size == cache.pixels.nbytes


def test_a_cache_that_is_in_use_is_not_cut_off_when_it_is_replaced(tmp_path, paths):
    old = cache_pictures(paths, SIZE, tmp_path / "cache")
    cache_pictures(paths[:1], SIZE, tmp_path / "cache")
    np.testing.assert_array_equal(old.pixels, slow_reference(paths))


def moved(paths, folder):
    folder.mkdir()
    return [Path(shutil.copy(path, folder)) for path in paths]


def test_the_fingerprint_is_of_the_data_not_of_its_place(tmp_path, paths):
    """Other folder, other times of change, other broken files: the same data."""
    here = cache_pictures(paths, SIZE, tmp_path / "cache")
    there = moved(paths, tmp_path / "elsewhere")
    there[2].write_bytes(b"broken otherwise")
    assert cache_pictures(there, SIZE, tmp_path / "b").fingerprint == here.fingerprint


def test_the_fingerprint_tells_data_apart(tmp_path, paths):
    del paths[6], paths[2]
    ids = [f"birds/{path.name}" for path in paths]
    changed = moved(paths, tmp_path / "elsewhere")
    draw(changed[5], seed=99)
    prints = [
        cache_pictures(paths, SIZE, tmp_path / "a").fingerprint,
        cache_pictures(paths, SIZE + 1, tmp_path / "b").fingerprint,
        cache_pictures(paths, SIZE, tmp_path / "c", ids=ids).fingerprint,
        cache_pictures(paths[::-1], SIZE, tmp_path / "d").fingerprint,
        cache_pictures(paths[:-1], SIZE, tmp_path / "e").fingerprint,
        cache_pictures(changed, SIZE, tmp_path / "f").fingerprint,
    ]
    assert len(set(prints)) == len(prints)


def test_progress_counts_to_the_end(tmp_path, paths):
    seen = []
    cache_pictures(paths, SIZE, tmp_path / "cache", progress=lambda *done: seen.append(done))
    assert seen == [(0, 11), (4, 11), (8, 11), (11, 11)]
    seen.clear()
    touch_later(paths[0])
    cache_pictures(paths, SIZE, tmp_path / "cache", progress=lambda *done: seen.append(done))
    assert seen == [(8, 11), (11, 11)]


@pytest.mark.parametrize(
    ("n_bytes", "counts"), [(2 * ROW_BYTES, [0, 2, 4, 6, 8, 10, 11]), (1, list(range(12)))]
)
def test_large_squares_come_in_smaller_chunks(tmp_path, paths, monkeypatch, n_bytes, counts):
    monkeypatch.setattr(cache_module, "_CHUNK_BYTES", n_bytes)
    seen = []
    cache_pictures(paths, SIZE, tmp_path / "cache", progress=lambda done, _: seen.append(done))
    assert seen == counts


def test_too_little_room_is_said_before_the_start(tmp_path, paths, decoded, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=100 * 1000**2)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(
        InputError, match=r"11 pictures of 2000 x 2000 pixels need 132.0 MB, and 100.0 MB"
    ):
        cache_pictures(paths, 2000, tmp_path / "cache")
    assert decoded == []


def test_rows_that_are_there_need_no_room(tmp_path, paths, monkeypatch):
    del paths[6], paths[2]
    cache_pictures(paths, SIZE, tmp_path / "cache")
    usage = shutil.disk_usage(tmp_path)._replace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    assert_right(cache_pictures(paths, SIZE, tmp_path / "cache"), paths)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fills_up_keeps_what_is_done(tmp_path, paths, decoded, monkeypatch, code):
    del paths[6], paths[2]
    # the journal's header; pixels, journal; pixels and, fifth, journal of the second chunk
    monkeypatch.setattr(os, "fsync", failing_fsync(5, OSError(code, os.strerror(code))))
    with pytest.raises(InputError, match=r"The disk is full.*Make room"):
        cache_pictures(paths, SIZE, tmp_path / "cache")
    decoded.clear()
    assert_right(cache_pictures(paths, SIZE, tmp_path / "cache"), paths)
    assert {path.name for path in paths[:4]}.isdisjoint(decoded)


def test_a_device_that_is_full(paths, tmp_path, monkeypatch):
    """Linux has one to try this on: what is written to /dev/full does not fit."""
    folder = tmp_path / "cache"
    cache_pictures(paths[:1], SIZE, folder)
    real_open = Path.open

    def open_file(path, mode):
        return real_open(Path("/dev/full") if path.name == "pixels.bin" else path, mode)

    monkeypatch.setattr(Path, "open", open_file)
    with pytest.raises(InputError, match="The disk is full"):
        cache_pictures(paths, SIZE, folder)


def test_a_disk_without_room_for_a_folder(tmp_path, paths, monkeypatch):
    def mkdir(path, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "mkdir", mkdir)
    with pytest.raises(InputError, match="The disk is full"):
        cache_pictures(paths, SIZE, tmp_path / "run" / "cache")


def test_other_errors_of_the_disk_pass(tmp_path, paths, monkeypatch):
    error = OSError(errno.EIO, os.strerror(errno.EIO))
    monkeypatch.setattr(os, "fsync", failing_fsync(3, error))
    with pytest.raises(OSError, match="Input/output error"):
        cache_pictures(paths, SIZE, tmp_path / "cache")


def test_a_folder_that_cannot_be_made(tmp_path, paths):
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "cache"):
        with pytest.raises(InputError, match="Choose a folder that you can write to"):
            cache_pictures(paths, SIZE, folder)


def test_nothing_but_broken_files(tmp_path, paths):
    with pytest.raises(InputError, match=r"None of the 2 pictures .* 02.png: the file is empty"):
        cache_pictures([paths[2], paths[6]], SIZE, tmp_path / "cache")


@pytest.mark.parametrize(
    ("n_paths", "size", "ids"), [(0, SIZE, None), (2, SIZE, ["a"]), (2, 0, None)]
)
def test_bad_arguments(tmp_path, paths, n_paths, size, ids):
    with pytest.raises(InputError, match=f"Got {n_paths} paths"):
        cache_pictures(paths[:n_paths], size, tmp_path / "cache", ids=ids)
    assert not (tmp_path / "cache").exists()


# --------------------------------------------------------------------------------------- damage


@pytest.mark.parametrize("how", ["flipped", "cut short"])
def test_damaged_pixels_are_noticed_when_they_are_read(tmp_path, paths, how):
    cache = cache_pictures(paths, SIZE, tmp_path / "cache")
    file = tmp_path / "cache" / "pixels.bin"
    first = cache.pixels[[0]]
    content = bytearray(file.read_bytes())
    if how == "flipped":
        content[-1] ^= 1
        file.write_bytes(content)
    else:
        os.truncate(file, len(content) - 1)
    again = cache_pictures(paths, SIZE, tmp_path / "cache") if how == "flipped" else cache
    np.testing.assert_array_equal(again.pixels[[0]], first)
    with pytest.raises(InputError, match=r"pixels\.bin is damaged: the pixels of row 8"):
        again.pixels[:]


def test_rows_are_taken_as_from_an_array(tmp_path, paths):
    pixels = cache_pictures(paths, SIZE, tmp_path / "cache").pixels
    expected = slow_reference(paths)
    for rows in (3, -1, slice(2, 5), [4, 0, 4], np.arange(9) % 2 == 0, slice(0, 0)):
        np.testing.assert_array_equal(pixels[rows], expected[rows])
    np.testing.assert_array_equal(np.asarray(pixels), expected)
    assert (len(pixels), pixels.ndim, pixels.nbytes) == (9, 4, expected.nbytes)


@pytest.mark.parametrize(
    "line", ['[99, 1, 1, "00", ""]', "[-1]", "{}", "[0, 1]", "3", "[0, 1, 1, 7, 7]", "[" * 9999]
)
def test_lines_of_the_journal_that_make_no_sense_are_decoded_again(tmp_path, paths, line):
    first = cache_pictures(paths, SIZE, tmp_path / "cache")
    journal = tmp_path / "cache" / "index.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join([*lines[:3], line + "\n", *lines[3:]]))
    again = cache_pictures(paths, SIZE, tmp_path / "cache")
    np.testing.assert_array_equal(again.pixels, first.pixels)
    assert again.fingerprint == first.fingerprint
