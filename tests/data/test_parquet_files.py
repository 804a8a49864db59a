"""Parquet files that are larger than they look."""

import contextlib

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from newfound.data.parquet_files import load_parquet
from newfound.errors import InputError

ONE_TEXT = pa.DictionaryArray.from_arrays(np.zeros(5000, "i4"), pa.array(["x" * 400_000]))


def load(path):
    return load_parquet(path, "cannot be read", "Write it again.")


@pytest.mark.parametrize(
    ("columns", "size"),
    [
        ({"x": np.zeros(1_000_000)}, r"0\.008"),
        ({"x": pa.ListArray.from_arrays([0, 1_000_000], np.zeros(1_000_000))}, r"0\.008"),
        ({"text": ONE_TEXT}, "2"),
        ({"text": pa.ListArray.from_arrays([0, 4000, 5000], ONE_TEXT)}, "2"),
    ],
    ids=["numbers", "lists", "texts", "lists of texts"],
)
@pytest.mark.parametrize("store_schema", [True, False])
def test_a_table_far_larger_than_its_file_is_refused(
    tmp_path, monkeypatch, columns, size, store_schema
):
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", store_schema=store_schema)
    assert (tmp_path / "a.parquet").stat().st_size < 100_000
    monkeypatch.setenv("NEWFOUND_MAX_GB", "0.007")
    with pytest.raises(InputError, match=rf"would take {size}(\.\d+)? GB"):
        load(tmp_path / "a.parquet")


def test_repeated_texts_are_read_where_they_are_short(tmp_path, monkeypatch):
    texts = ["a cat", None, "a dog"] * 20_000
    pd.DataFrame({"text": texts}).to_parquet(tmp_path / "a.parquet")
    monkeypatch.setattr("newfound.data.parquet_files._HARMLESS_BYTES", 0)
    monkeypatch.setenv("NEWFOUND_MAX_GB", "0.001")
    assert load(tmp_path / "a.parquet")["text"].isna().sum() == 20_000


def test_a_damaged_file_is_reported(tmp_path):
    pd.DataFrame({"text": ["a", "b"]}).to_parquet(tmp_path / "a.parquet")
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    for place in range(0, len(content), 61):
        flipped = content.copy()
        flipped[place] ^= 0xFF
        (tmp_path / "a.parquet").write_bytes(flipped)
        with contextlib.suppress(InputError):  # and no other error
            load(tmp_path / "a.parquet")
