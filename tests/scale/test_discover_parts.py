"""`newfound discover` and `predict` on Parquet parts: the run folder, all labels, the report."""

import shlex

import numpy as np
import pandas
import pytest
from pyarrow import parquet
from typer.main import get_command
from typer.testing import CliRunner

from newfound import discover
from newfound.cli.main import app
from newfound.errors import InputError
from newfound.progress import NOTE
from newfound.result.store import read_result
from newfound.scale import writing
from newfound.workflows import parts, rehearsed
from newfound.workflows.finished import NOT_REHEARSED
from newfound.workflows.fitting import Fitted
from newfound.workflows.job import Job
from newfound.workflows.rerun import discover_command
from newfound.workflows.update import update


@pytest.fixture(autouse=True)
def _few_rows_shown(monkeypatch):
    monkeypatch.setattr(parts, "ROWS_SHOWN", 300)


def newfound(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def test_discover_labels_all_rows_and_shows_a_sample(collection, in_memory, write_parts, tmp_path):
    folder, run = write_parts(collection), tmp_path / "run"
    words = ["--label-column", "label", "--out", run, "--n-categories", 12, "--sizes", "alike"]
    printed = newfound("discover", f"{folder}/*.parquet", *words, "--no-rehearse")
    assert "of 6,000 rows. The categories of all rows are in" in printed
    table = parquet.read_table(run / "labels").to_pandas()
    assert len(table) == 6000
    # three starts instead of one: the same partition up to a few rows
    known = collection.y >= 0
    assert (table["category"][known] == collection.names[known]).all()
    assert (table["label"].to_numpy() == in_memory.labels_).mean() > 0.99
    shown = pandas.read_csv(run / "assignments.csv")
    assert 300 <= len(shown) < 400
    places = shown["id"].to_numpy()
    assert (shown["category"].to_numpy() == table["category"].to_numpy()[places]).all()
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "of 6,000 rows" in page
    assert not (run / "passes").exists()
    again = newfound("discover", f"{folder}/*.parquet", *words, "--no-rehearse")
    assert "is finished" in again
    predict = ["predict", run, f"{folder}/*.parquet", "--out"]
    refused = CliRunner().invoke(app, [str(word) for word in [*predict, folder]])
    assert refused.exit_code == 2
    assert "is a folder that holds p0.parquet. It is not replaced." in refused.output
    refused = CliRunner().invoke(app, [*map(str, predict), "new", "--min-confidence", "0.5"])
    assert "leave --min-confidence out" in refused.output
    printed = newfound(*predict, tmp_path / "more.csv")
    assert "6,000 rows" in printed
    result, _ = update(run, granularity=11)
    assert f"`newfound predict {run} PARTS` writes those after it" in result.record.warnings[-1]
    predicted = parquet.read_table(tmp_path / "more").to_pandas()
    free = collection.y < 0
    assert (predicted["label"][free] == table["label"][free]).all()


@pytest.mark.parametrize("n_rows", [1000, 6000])
def test_the_command_of_a_run_repeats_it(collection, write_parts, tmp_path, n_rows):
    """Parsed by the real command, few rows and many: everything that was asked for comes back."""
    small = collection._replace(X=collection.X[:n_rows], names=collection.names[:n_rows])
    asked = {
        "source": write_parts(small, sizes=(n_rows,)),
        "out": tmp_path / "run",
        "n_categories": 12,
        "sizes": "0.7",
        "rehearse": False,
        "min_confidence": 0.25,
        "seed": 3,
        "label_column": "label",
    }
    result = discover(**{**asked, "sizes": 0.7})
    words = shlex.split(result.record.rerun)
    assert words[:2] == ["newfound", "discover"]
    given = get_command(app).commands["discover"].make_context("discover", words[2:]).params
    assert {name: given[name] for name in asked} == asked
    assert given["workers"] is given["scheduler"] is None
    where = {"scheduler": "tcp://127.0.0.1:9", "workers": 2, "label_column": "kind of bird"}
    words = shlex.split(
        discover_command("P/*.parquet", job=Job(), **parts.Parts("P", **where).options)
    )
    given = get_command(app).commands["discover"].make_context("discover", words[2:]).params
    assert {name: given[name] for name in where} == where


def test_a_run_that_is_redone_keeps_its_labels_until_the_end(
    collection, write_parts, tmp_path, monkeypatch
):
    folder, run = write_parts(collection), tmp_path / "run"
    options = {"label_column": "label", "out": run, "rehearse": False, "sizes": "alike"}
    discover(folder, **options, n_categories=12)

    def labels():
        return parquet.read_table(run / "labels")["label"].to_numpy()

    old, original = labels(), writing.write_part
    monkeypatch.setattr(writing, "_PART_ROWS", 1000)

    def write(part, start, *rest):
        if start == 3000:
            raise KeyboardInterrupt
        original(part, start, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(writing, "write_part", write)
        with pytest.raises(KeyboardInterrupt):
            discover(folder, **options, n_categories=13, overwrite=True)
    np.testing.assert_array_equal(labels(), old)
    assert len(read_result(run).names) == 12
    discover(folder, **options, n_categories=13, overwrite=True)
    assert len(np.unique(labels())) == len(read_result(run).names) == 13
    assert len(list((run / "labels").iterdir())) == 6
    # another run, of few rows: labels of the old one would be taken for its own
    few = tmp_path / "few.npz"
    np.savez(few, X=collection.X[:500], y=collection.y[:500])
    discover(few, out=run, n_categories=12, rehearse=False, overwrite=True)
    assert not (run / "labels").exists()


def test_the_result_is_written_before_the_rehearsal(collection, write_parts, tmp_path, monkeypatch):
    run, notes, written = tmp_path / "run", [], []
    options = {"label_column": "label", "out": run, "n_categories": 12, "sizes": "alike"}
    options["progress"] = lambda step, done, total: notes.append(step)
    original = writing.write_part
    monkeypatch.setattr(writing, "write_part", lambda *a: (written.append(a), original(*a)))

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(rehearsed, "check_on_hidden_classes", interrupt)
    with pytest.raises(KeyboardInterrupt):
        discover(write_parts(collection), **options)
    (note,) = [step for step in notes if step.startswith(NOTE)]
    assert "12 categories in 6,000 items" in note
    assert f"It is in {run}" in note
    assert len(parquet.read_table(run / "labels")) == 6000
    assert NOT_REHEARSED in read_result(run).record.warnings
    monkeypatch.setattr(rehearsed, "check_on_hidden_classes", lambda m, *rest: Fitted(m, None))
    result = discover(tmp_path / "parts", **options)
    assert NOT_REHEARSED not in result.record.warnings
    assert result.record.n_rows == 6000
    assert len(written) == 1  # once
    assert len(parquet.read_table(run / "labels")) == 6000


@pytest.mark.parametrize("name", ["labels", "passes"])
def test_a_link_in_a_run_folder_is_not_followed(collection, write_parts, tmp_path, name):
    run, mine = tmp_path / "run", tmp_path / "mine"
    run.mkdir()
    mine.mkdir()
    (mine / "part-00000.parquet").touch()
    (run / name).symlink_to(mine)
    options = {"label_column": "label", "n_categories": 12, "overwrite": True}
    with pytest.raises(InputError, match=f"{name} is a link"):
        discover(write_parts(collection), out=run, **options)
    assert [path.name for path in mine.iterdir()] == ["part-00000.parquet"]


def test_few_rows_are_searched_as_a_whole(collection, write_parts, tmp_path):
    small = collection._replace(X=collection.X[:1000], names=collection.names[:1000])
    folder = write_parts(small, sizes=(600, 400))
    options = {"n_categories": 12, "rehearse": False, "sizes": "alike"}
    result = discover(folder, label_column="label", **options)
    assert len(result.collection) == 1000
    np.testing.assert_array_equal(result.collection.y, small.names)


def test_many_rows_need_a_run_folder(collection, write_parts):
    with pytest.raises(InputError, match="need a run folder"):
        discover(write_parts(collection), label_column="label", n_categories=12)


def test_parts_are_not_trained_on(collection, write_parts):
    with pytest.raises(InputError, match="name the column with --label-column"):
        discover(write_parts(collection), "labels.csv")


def test_a_scheduler_or_workers(collection, write_parts, tmp_path):
    folder = write_parts(collection)
    with pytest.raises(InputError, match="a scheduler or a number of workers, not both"):
        discover(folder, out=tmp_path / "run", scheduler="tcp://127.0.0.1:9", workers=2)
