"""Clear messages about data that cannot be used: which file, which rows, what to do."""

import errno
import re

import dask.array as da
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from newfound import SemiSupervisedKMeans, scale
from newfound.errors import InputError
from newfound.labels import encode_labels
from newfound.scale import writing
from newfound.scale.rows import held_rows


def cluster(rows, y=None):
    return SemiSupervisedKMeans(12, max_iter=2, random_state=0).fit(rows, y)


def says(*texts):
    return ".*".join(re.escape(text) for text in texts)


def test_nan_names_the_file_and_the_rows(collection, write_parts):
    X = collection.X.copy()
    X[2600, 3], X[2611, 0] = np.nan, np.inf
    folder = write_parts(collection._replace(X=X))
    rows = scale.from_parquet(folder)
    expected = says("NaN or infinity in 2 rows", f"row 100 of {folder / 'p1.parquet'}, row 111 of")
    with pytest.raises(InputError, match=expected):
        cluster(rows)


def test_nan_in_an_array_names_the_row(collection):
    X = collection.X.copy()
    X[4321] = np.nan
    for given in (X, da.from_array(X, 1000)):
        with pytest.raises(InputError, match=says("NaN or infinity in 1 row", "row 4321")):
            cluster(given)


def test_an_overflow_of_float16_is_explained(collection):
    X = collection.X.copy()
    X[17] = 1e6
    with np.errstate(over="ignore"):
        half = X.astype(np.float16)
    with pytest.raises(InputError, match=says("row 17", "65,504 become inf in float16")):
        cluster(half)


def test_large_finite_numbers_are_no_error(collection):
    X = collection.X.copy()
    X[:5] = 3e38  # their sum overflows
    np.testing.assert_array_equal(held_rows(X, encode_labels(None, 6000)).read_all()[0], X)


def test_a_truncated_part_is_named(collection, write_parts):
    folder = write_parts(collection)
    broken = folder / "p1.parquet"
    broken.write_bytes(broken.read_bytes()[:1000])
    with pytest.raises(InputError, match=says("p1.parquet cannot be read as Parquet")):
        scale.from_parquet(folder)


def test_a_part_that_disappears_is_named(collection, write_parts):
    folder = write_parts(collection)
    rows = scale.from_parquet(folder)
    (folder / "p2.parquet").unlink()
    with pytest.raises(InputError, match=says("p2.parquet cannot be read", "No such file")):
        cluster(rows)
    with pytest.raises(InputError, match=says("There is no file", "p2.parquet")):
        scale.from_parquet([folder / "p1.parquet", folder / "p2.parquet"])


def test_a_pattern_without_files_is_named(tmp_path):
    with pytest.raises(InputError, match=says("There is no Parquet file", "nothing-*.parquet")):
        scale.from_parquet(f"{tmp_path}/nothing-*.parquet")


def test_parts_of_other_columns_are_named(collection, write_parts):
    folder = write_parts(collection, as_lists=False)
    table = parquet.read_table(folder / "p1.parquet")
    parquet.write_table(table.drop_columns(["f3"]), folder / "p1.parquet")
    with pytest.raises(InputError, match=says("p1.parquet has other columns than", "f3")):
        scale.from_parquet(folder)
    parquet.write_table(table.append_column("f16", table["f0"]), folder / "p1.parquet")
    with pytest.raises(InputError, match=says("p1.parquet has other columns than", "f16")):
        scale.from_parquet(folder)


def test_lists_of_other_lengths_are_named(tmp_path):
    lists = pa.array([[1.0, 2.0]] * 100 + [[1.0]] + [[1.0, 2.0]] * 100)
    parquet.write_table(pa.table({"embedding": lists}), tmp_path / "a.parquet")
    rows = scale.from_parquet(tmp_path)
    assert rows.shape == (201, 2)
    with pytest.raises(InputError, match=says("a.parquet has lists of other lengths than 2")):
        cluster(rows)


def test_a_missing_label_column_is_named(collection, write_parts):
    with pytest.raises(InputError, match=says("p0.parquet", "kind")):
        scale.from_parquet(write_parts(collection), label_column="kind")


def test_chunks_of_other_widths_are_refused(collection):
    def chunk(block_info=None):
        (low, high), _ = block_info[None]["array-location"]
        width = 16 if low < 3000 else 15
        return np.zeros((high - low, width), dtype=np.float32)

    X = da.map_blocks(chunk, chunks=((1000,) * 6, (16,)), dtype=np.float32, meta=np.empty((0, 0)))
    with pytest.raises(InputError, match="same columns"):
        cluster(X)


def test_chunks_of_unknown_sizes_are_refused(collection):
    X = da.from_array(collection.X, 1000)
    with pytest.raises(InputError, match=says("X.compute_chunk_sizes()")):
        cluster(X[X[:, 0] > 0])


@pytest.mark.parametrize("wrap", [np.asarray, da.from_array])
def test_labels_of_another_length_are_refused(collection, wrap):
    X = da.from_array(collection.X, 1000)
    with pytest.raises(InputError, match=says("y has 5,999 labels, but X has 6,000 rows")):
        cluster(X, wrap(collection.y[:-1]))


def test_labels_are_given_once(collection, write_parts):
    rows = scale.from_parquet(write_parts(collection), label_column="label")
    with pytest.raises(InputError, match="Keep one"):
        cluster(rows, collection.y)


def test_predict_checks_the_number_of_columns(collection):
    fitted = cluster(collection.X, collection.y)
    with pytest.raises(InputError, match=says("X has 3 features", "fitted to 16 features")):
        fitted.predict(da.from_array(collection.X[:, :3]))


def test_no_scheduler_at_an_address(monkeypatch):
    monkeypatch.setattr("newfound.scale.workers._SECONDS_TO_CONNECT", 1)
    with pytest.raises(InputError, match=says("no Dask scheduler at tcp://127.0.0.1:9")):
        scale.connect("tcp://127.0.0.1:9")


def test_a_full_disk_loses_no_finished_pass(collection, write_parts, tmp_path, monkeypatch):
    rows = scale.from_parquet(write_parts(collection), resume=tmp_path / "passes")
    written, original = [], np.savez

    def save(file, **arrays):
        if len(written) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        original(file, **arrays)
        written.append(file.name)

    monkeypatch.setattr("newfound.scale.journal.np.savez", save)
    with pytest.raises(InputError, match=says("The disk with", "passes is full", "resumes")):
        cluster(rows)
    assert len(list((tmp_path / "passes").iterdir())) == 2


def test_labels_are_not_written_over(tmp_path):
    labels = np.arange(5) % 2
    (file,) = scale.write_labels(labels, tmp_path / "labels", names=np.array(["a", "b"]))
    table = parquet.read_table(file).to_pydict()
    assert table == {"row": [0, 1, 2, 3, 4], "label": [0, 1, 0, 1, 0], "category": [*"ababa"]}
    with pytest.raises(InputError, match=says("labels is a folder that holds part-00000", "new")):
        scale.write_labels(labels, tmp_path / "labels")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").touch()
    with pytest.raises(InputError, match=says("notes is a folder that holds mine.txt")):
        scale.write_labels(labels, tmp_path / "notes")
    with pytest.raises(InputError, match=says("part-00000.parquet is a file")):
        scale.write_labels(labels, file)


@pytest.mark.parametrize("as_given", [np.asarray, lambda labels: da.from_array(labels, 5)])
def test_labels_appear_when_all_are_written(tmp_path, monkeypatch, as_given):
    monkeypatch.setattr(writing, "_PART_ROWS", 5)
    folder, original = tmp_path / "labels", writing.write_part
    folder.mkdir()  # an empty one is fine
    left = tmp_path / ".labels.999999999.part"  # by a process that was killed
    left.mkdir()
    (left / "part-00000.parquet").touch()

    def write(labels, start, path, names):
        assert not list(folder.iterdir())
        if start == 10 and not is_writable:
            raise OSError(errno.ENOSPC, "No space left on device")
        original(labels, start, path, names)

    monkeypatch.setattr(writing, "write_part", write)
    labels, is_writable = as_given(np.arange(20)), False
    with pytest.raises(OSError, match="No space left"):
        scale.write_labels(labels, folder)
    assert [path.name for path in tmp_path.rglob("*")] == ["labels"]
    is_writable = True
    assert len(scale.write_labels(labels, folder)) == 4
    assert parquet.read_table(folder)["label"].to_pylist() == list(range(20))


def test_workers_must_see_the_folder(tmp_path, monkeypatch):
    """They would write to a folder of their own machine, and nobody would find the labels."""
    original = writing.write_part

    def elsewhere(labels, start, path, names):
        original(labels, start, tmp_path / "another machine" / path.name, names)

    monkeypatch.setattr(writing, "write_part", elsewhere)
    with pytest.raises(
        InputError, match=says("Workers do not see the folder", "all workers share")
    ):
        scale.write_labels(da.from_array(np.arange(20), 5), tmp_path / "labels")
    assert not list(tmp_path.iterdir())
