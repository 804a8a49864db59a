"""Generated content for every reader of files: values, or `InputError`, and nothing else."""

import contextlib
import os

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from newfound.array_files import read_archive, read_array, read_digested
from newfound.data.row_files import read_row_file
from newfound.errors import InputError
from newfound.files import read_json
from newfound.result.record import RunRecord

#: Examples for each reader; `make faults` takes more.
FEW = settings(
    derandomize=True,
    max_examples=60 * int(os.environ.get("NEWFOUND_FAULTS", "1")),
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
@given(name=FIELDS, value=JSON)
def test_records(name, value):
    small = {"kind": "features", "n_items": 9, "n_labelled": 3, "n_known": 2, "n_novel": 1}
    with contextlib.suppress(InputError):
        RunRecord.from_json({**small, name: value})
