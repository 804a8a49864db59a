"""A small collection that counts as large: blocks, groups and samples are made small."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from newfound import SplitMergeMixture
from newfound.mixture import sampling
from newfound.scale import blocks


class Collection(NamedTuple):
    X: np.ndarray
    truth: np.ndarray
    y: np.ndarray
    names: np.ndarray  # y as texts, None where a row is unlabelled


@pytest.fixture(scope="session")
def collection():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 12, 6000)
    centres = rng.normal(size=(12, 16))
    X = (centres[truth] + 0.35 * rng.normal(size=(6000, 16))).astype(np.float32)
    y = np.where((truth < 8) & (rng.random(6000) < 0.5), truth, -1)
    names = np.array([None if code < 0 else f"class {code}" for code in y], dtype=object)
    return Collection(X, truth, y, names)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(sampling, "SAMPLE_ROWS", 1500)
    monkeypatch.setattr(sampling, "ROWS_PER_CATEGORY", 1)
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 300)
    monkeypatch.setattr(blocks, "N_GROUPS", 8)


@pytest.fixture
def mixture():
    """A mixture without a count, which takes most of the time."""
    return SplitMergeMixture(n_components=12, sizes="alike", n_init=1, random_state=0)


@pytest.fixture
def in_memory(mixture, collection):
    """The result for the array itself."""
    return mixture.fit(collection.X, collection.y)


@pytest.fixture
def write_parts(tmp_path):
    """Write a collection as Parquet parts of unequal sizes and row groups; returns the folder."""

    def write(collection, *, as_lists=True, dtype=np.float32, sizes=(2500, 700, 2800)):
        folder, start = tmp_path / "parts", 0
        folder.mkdir()
        for index, size in enumerate(sizes):
            X = collection.X[start : start + size].astype(dtype)
            columns = {f"f{i}": X[:, i] for i in range(X.shape[1])}
            if as_lists:
                columns = {"embedding": pa.FixedSizeListArray.from_arrays(X.ravel(), X.shape[1])}
            columns["label"] = pa.array(collection.names[start : start + size].tolist())
            parquet.write_table(pa.table(columns), folder / f"p{index}.parquet", row_group_size=450)
            start += size
        return folder

    return write
