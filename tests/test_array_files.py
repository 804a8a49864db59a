"""Arrays from files that are damaged, hostile or larger than they look."""

import contextlib
import struct
import zipfile

import numpy as np
import pytest

from newfound.array_files import read_archive, read_array, read_digested, write_array
from newfound.errors import InputError

X, Y = np.arange(12.0).reshape(6, 2), np.array([0, 1, -1, 0, 1, -1])


def header(shape, descr="<f4"):
    """The start of an .npy file of version 1.0."""
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


#: What stands in place of an array.
BROKEN = {
    "nothing": b"",
    "no magic": b"\x93NUM",
    "not a header": b"\x93NUMPY\x01\x00\x10\x00{not a header!!}",
    "open bracket": b"\x93NUMPY\x01\x00\x10\x00" + b"(" * 15 + b"\n",
    "unknown version": b"\x93NUMPY\x09\x00\x10\x00" + b" " * 16,
    "objects": header("(1,)", "|O"),
    "no such type": header("(1,)", "zz9"),
    "too many rows": header("(1000000000000, 8)") + bytes(100),
    "more than a machine word": header("(99999999999999999999999, 2)"),
    "product overflows": header("(9223372036854775807, 9223372036854775807)"),
    "negative": header("(-5, 8)"),
    "half a row": header("(3.5, 2)"),
    "cut short": header("(3, 2)") + bytes(23),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_array_is_reported(tmp_path, name):
    (tmp_path / "a.npy").write_bytes(BROKEN[name])
    with pytest.raises(InputError, match=r"a\.npy cannot be read as a plain array"):
        read_array(tmp_path / "a.npy")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", BROKEN[name])
    with pytest.raises(InputError, match=r"a\.npz cannot be read as an \.npz"):
        read_archive(tmp_path / "a.npz", ["X"])


def test_arrays_are_read(tmp_path):
    np.save(tmp_path / "a.npy", X)
    np.testing.assert_array_equal(read_array(tmp_path / "a.npy"), X)
    assert isinstance(read_array(tmp_path / "a.npy", mapped=True), np.memmap)
    np.savez_compressed(tmp_path / "a.npz", X=X, y=Y, other=Y)
    assert list(read_archive(tmp_path / "a.npz", ["X", "y"])) == ["X", "y"]
    assert list(read_archive(tmp_path / "a.npz", [], optional=["y", "z"])) == ["y"]


def test_a_digest_notices_every_flipped_byte(tmp_path):
    path = tmp_path / "a.npy"
    write_array(path, X)
    np.testing.assert_array_equal(read_digested(path), X)
    np.testing.assert_array_equal(np.load(path), X)
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        if place >= 128:  # the array and the digest, after the header
            with pytest.raises(InputError):
                read_digested(path)
        else:
            with contextlib.suppress(InputError):
                np.testing.assert_array_equal(read_digested(path), X)
    path.write_bytes(b"")
    with pytest.raises(InputError):
        read_digested(path)


def test_an_archive_is_no_array_and_an_array_is_no_archive(tmp_path):
    np.savez(tmp_path / "a.npz", X=X)
    with pytest.raises(InputError, match="is an archive of arrays"):
        read_array(tmp_path / "a.npz")
    np.save(tmp_path / "a.npy", X)
    with pytest.raises(InputError, match=r"is not an \.npz archive"):
        read_archive(tmp_path / "a.npy", ["X"])
    with pytest.raises(InputError, match=r"There is no file .*b\.npz"):
        read_archive(tmp_path / "b.npz", ["X"])


def changed(content, local, central, value):
    """An archive with a byte of each header of an entry changed."""
    content = bytearray(content)
    for i in range(len(content) - 4):
        if content[i : i + 4] == b"PK\x03\x04":
            content[i + local] = value
        if content[i : i + 4] == b"PK\x01\x02":
            content[i + central] = value
    return bytes(content)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        (lambda content: content[:200] + b"\xff" * 40 + content[240:], "rror|CRC|zlib"),
        (lambda content: changed(content, 6, 8, 1), "encrypted"),
        (lambda content: changed(content, 8, 10, 99), "compression"),
    ],
)
def test_a_damaged_archive_is_reported(tmp_path, how, reason):
    np.savez_compressed(tmp_path / "a.npz", X=np.random.default_rng(0).normal(size=(60, 2)))
    (tmp_path / "a.npz").write_bytes(how((tmp_path / "a.npz").read_bytes()))
    with pytest.raises(InputError, match=rf"cannot be read as an \.npz.*({reason})"):
        read_archive(tmp_path / "a.npz", ["X"])


def test_an_array_far_larger_than_its_file_is_refused(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "a.npz", X=np.zeros((1000, 1000)))
    monkeypatch.setenv("NEWFOUND_MAX_GB", "0.007")
    with pytest.raises(InputError, match=r"take 0\.008 GB; the limit is 0\.007 GB.*MAX_GB=1\."):
        read_archive(tmp_path / "a.npz", ["X"])
    monkeypatch.setenv("NEWFOUND_MAX_GB", "0.008")
    assert read_archive(tmp_path / "a.npz", ["X"])["X"].shape == (1000, 1000)


def test_an_array_as_large_as_its_file_is_read(tmp_path, monkeypatch):
    np.savez(tmp_path / "a.npz", X=np.zeros((1000, 1000)))
    np.save(tmp_path / "a.npy", np.zeros((1000, 1000)))
    monkeypatch.setenv("NEWFOUND_MAX_GB", "0.001")
    assert read_archive(tmp_path / "a.npz", ["X"])["X"].shape == (1000, 1000)
    assert read_array(tmp_path / "a.npy").shape == (1000, 1000)


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "four"])
def test_a_limit_that_makes_no_sense_is_reported(tmp_path, monkeypatch, value):
    np.savez(tmp_path / "a.npz", X=X)
    monkeypatch.setenv("NEWFOUND_MAX_GB", value)
    with pytest.raises(InputError, match="NEWFOUND_MAX_GB must be a number above 0"):
        read_archive(tmp_path / "a.npz", ["X"])
