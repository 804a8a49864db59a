"""Generated content for every reader of files: values, or `InputError`, and nothing else."""

import contextlib
import os

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from newfound.array_files import read_archive, read_array, read_digested
from newfound.data.annotations import read_annotations
from newfound.data.pictures import read_picture
from newfound.data.row_files import read_row_file
from newfound.deep.checkpoint import load_checkpoint
from newfound.errors import InputError
from newfound.files import read_json
from newfound.result.edits.log import read_edits
from newfound.result.record import RunRecord

MORE = int(os.environ.get("NEWFOUND_FAULTS", "1"))
#: Examples for each test; `make faults` takes 30,000.
FEW = settings(
    derandomize=True,
    max_examples=60 if MORE == 1 else 1000 * MORE,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
PREFIXES = st.sampled_from(
    [
        b"",
        b"\x93NUMPY\x01\x00",
        b"PK\x03\x04",
        b"PAR1",
        b"text,label\n",
        b'{"version": ',
        b"[" * 2000,
        b"action,subject,object,value\nmerge,",
        b'[{"id": 1, "annotations": ',
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
        b"\xff\xd8\xff\xe0\x00\x10JFIF\x00",
        b"\x10\x00\x00\x00\x00\x00\x00\x00{",  # the header of a safetensors file
    ]
)
CONTENT = st.builds(lambda start, rest: start + rest, PREFIXES, st.binary(max_size=200))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=3,
)
FIELDS = st.sampled_from(["kind", "n_items", "history", "settings", "warnings", "novel_size"])


@FEW
@given(content=CONTENT)
def test_arrays_and_json(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    for read in (read_array, read_digested, read_json, lambda path: read_archive(path, ["X"])):
        with contextlib.suppress(InputError):
            read(path)


@FEW
@given(content=CONTENT, suffix=st.sampled_from([".npz", ".npy", ".csv", ".tsv", ".parquet"]))
def test_files_of_items(tmp_path, content, suffix):
    path = tmp_path / f"file{suffix}"
    path.write_bytes(content)
    with contextlib.suppress(InputError):
        read_row_file(path, None)
    with contextlib.suppress(InputError):
        read_row_file(path, path)


@FEW
@given(content=CONTENT)
def test_decisions_labels_pictures_and_checkpoints(tmp_path, content):
    for name in ("edits.csv", "file.json", "file.csv"):
        (tmp_path / name).write_bytes(content)
    for read in (
        lambda: read_edits(tmp_path),
        lambda: read_annotations(tmp_path / "file.json"),
        lambda: read_annotations(tmp_path / "file.csv"),
        lambda: read_picture(tmp_path / "file.json"),
        lambda: load_checkpoint(tmp_path / "file.json"),
    ):
        with contextlib.suppress(InputError):
            read()


@FEW
@given(name=FIELDS, value=JSON)
def test_records(name, value):
    small = {"kind": "features", "n_items": 9, "n_labelled": 3, "n_known": 2, "n_novel": 1}
    with contextlib.suppress(InputError):
        RunRecord.from_json({**small, name: value})
