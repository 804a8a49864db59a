"""A real cluster of two processes on loopback: the same labels, also if a process is killed."""

import functools
import os
import pickle
import signal
import subprocess
import sys

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Status
from pyarrow import parquet

from newfound import SplitMergeMixture, scale
from newfound.errors import InputError
from newfound.scale import workers
from newfound.scale.blocks import group_bounds
from newfound.scale.passes import read_group
from newfound.scale.workers import active_client, run_on_workers


@pytest.fixture(scope="module")
def client():
    dask.config.set({"distributed.admin.system-monitor.disk": False})
    with scale.connect(workers=2) as client:
        yield client


def fit(rows, y=None):
    return SplitMergeMixture(n_components=12, sizes="alike", n_init=1, random_state=0).fit(rows, y)


def test_workers_give_the_same_labels_and_write_them(
    client, collection, in_memory, write_parts, tmp_path
):
    rows = scale.from_parquet(write_parts(collection), label_column="label")
    found = fit(rows)
    assert isinstance(found.labels_, da.Array)
    np.testing.assert_array_equal(found.labels_.compute(), in_memory.labels_)
    np.testing.assert_array_equal(found.prototypes_, in_memory.prototypes_)
    files = scale.write_labels(found.labels_, tmp_path / "labels", names=found.category_names_)
    table = parquet.read_table(tmp_path / "labels").to_pandas()
    assert len(files) == 8
    np.testing.assert_array_equal(table["row"], np.arange(6000))
    np.testing.assert_array_equal(table["label"], in_memory.labels_)
    assert table["category"].iloc[0] == found.category_names_[in_memory.labels_[0]]


def test_two_clusters_at_once(client):
    with scale.connect(workers=1) as second:
        assert second.submit(sum, [1, 2]).result() == 3
        assert active_client() is second
    assert active_client() is client


def test_a_dask_array_is_read_on_the_workers(client, collection, in_memory):
    X, y = da.from_array(collection.X, (1000, 7)), da.from_array(collection.y, 900)
    expected = in_memory.labels_.copy()
    found = fit(X, y)
    np.testing.assert_array_equal(found.labels_.compute(), expected)


def test_a_worker_is_killed_in_mid_pass(client, collection, in_memory, write_parts):
    killed = []

    def kill_one(step, done, total):
        if step.startswith("Settling") and done == 2 and not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    rows = scale.from_parquet(write_parts(collection), label_column="label")
    found = fit(rows.with_progress(kill_one))
    assert len(killed) == 1
    np.testing.assert_array_equal(found.labels_.compute(), in_memory.labels_)


def test_workers_without_memory_and_disk_are_not_waited_for(
    client, collection, write_parts, monkeypatch
):
    """They are paused for ever, as with a full disk; then there is room, and they go on."""
    monkeypatch.setattr(workers, "_SECONDS_BETWEEN_LOOKS", 0.5)

    def limit(fraction, status, dask_worker):
        dask_worker.memory_manager.memory_pause_fraction = fraction
        dask_worker.status = status

    rows = scale.from_parquet(write_parts(collection), label_column="label")
    client.wait_for_workers(2)  # the one that was killed is started again
    client.run(functools.partial(limit, 1e-6, Status.paused))
    with pytest.raises(InputError, match=r"All workers are paused: .* the folder .* Make room"):
        rows.run(read_group, step="Reading", classes=np.empty(0))
    client.run(functools.partial(limit, 0.8, Status.running))
    assert len(rows.classes) == 8


def test_errors_of_workers_arrive_as_they_are(client, collection, write_parts):
    X = collection.X.copy()
    X[2600] = np.nan
    rows = scale.from_parquet(write_parts(collection._replace(X=X)))
    with pytest.raises(InputError, match=r"row 100 of .*p1\.parquet"):
        fit(rows)


def test_what_travels_does_not_grow_with_the_rows(client, collection, write_parts, monkeypatch):
    travelled = {}

    def watch(client, rows, call, progress):
        results = run_on_workers(client, rows, call, progress)
        cuts = [rows.features.cut(*group) for group in group_bounds(len(rows))]
        sent = len(pickle.dumps(call)) + max(len(pickle.dumps(cut)) for cut in cuts) * len(cuts)
        came = sum(array.nbytes for group in results for array in group)
        travelled[len(rows), call.function.__name__] = sent + came
        return results

    monkeypatch.setattr("newfound.scale.rows.run_on_workers", watch)
    part = write_parts(collection, sizes=(6000,)) / "p0.parquet"
    for n_parts in (2, 4):
        fit(scale.from_parquet([part] * n_parts, label_column="label"))
    small, large = travelled[12000, "sum_rows"], travelled[24000, "sum_rows"]
    assert large < 1.02 * small  # a group may lie in one more file
    assert large < collection.X.nbytes / 2


PROGRAM = """
import os, sys
from newfound import SplitMergeMixture, scale
from newfound.mixture import sampling
from newfound.scale import blocks, journal

journal.SECONDS_BETWEEN_WRITES = 0
sampling.SAMPLE_ROWS, sampling.ROWS_PER_CATEGORY = 1500, 1
blocks.BLOCK_ROWS, blocks.N_GROUPS = 300, 8

def stop(step, done, total):
    if "(pass 2)" in step and done == 3:
        os._exit(9)

rows = scale.from_parquet(sys.argv[1], label_column="label", resume=sys.argv[2])
mixture = SplitMergeMixture(n_components=12, sizes="alike", n_init=1, random_state=0)
mixture.fit(rows.with_progress(stop))
"""


def test_a_fit_that_was_killed_resumes_from_the_last_pass(
    collection, in_memory, write_parts, tmp_path
):
    folder, journal = write_parts(collection), tmp_path / "passes"
    ended = subprocess.run([sys.executable, "-c", PROGRAM, folder, journal], check=False)
    assert ended.returncode == 9
    steps = []
    rows = scale.from_parquet(folder, label_column="label", resume=journal)
    found = fit(rows.with_progress(lambda *done: steps.append(done)))
    np.testing.assert_array_equal(np.asarray(found.labels_), in_memory.labels_)
    # all earlier passes were in the journal, and two groups of this one
    assert steps[0] == ("Settling categories (pass 2)", 2, 8)


def test_a_journal_of_other_rows_or_settings_is_not_used(collection, write_parts, tmp_path):
    folder, journal = write_parts(collection), tmp_path / "passes"
    fit(scale.from_parquet(folder, label_column="label", resume=journal))
    n_files = len(list(journal.iterdir()))
    fit(scale.from_parquet(folder, label_column="label", resume=journal))
    assert len(list(journal.iterdir())) == n_files
    for file in journal.iterdir():
        file.write_bytes(file.read_bytes()[:50])  # damaged: made again
    os.utime(folder / "p1.parquet", (0, 0))  # another file, as far as one can see
    steps = []
    rows = scale.from_parquet(folder, label_column="label", resume=journal)
    fit(rows.with_progress(lambda step, done, total: steps.append(step)))
    assert steps[0] == "Reading labels"
    assert len(list(journal.iterdir())) == 2 * n_files
