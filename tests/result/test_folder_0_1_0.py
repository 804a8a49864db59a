"""A run folder that version 0.1.0 wrote: 60 items, four known classes and one novel category."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from newfound.data.tables import read_parquet
from newfound.result.record import History, Request
from newfound.result.store import read_result, write_result

HERE = Path(__file__).parent / "folder_0_1_0"


@pytest.fixture
def folder(tmp_path):
    return Path(shutil.copytree(HERE, tmp_path / "run"))


def test_the_tables_are_those_that_were_written(folder):
    result = read_result(folder)
    pd.testing.assert_frame_equal(
        result.table, read_parquet(folder / "assignments.parquet"), check_exact=True
    )
    stored = read_parquet(folder / "categories.parquet")
    same = [name for name in stored if not name.startswith("why_")]
    pd.testing.assert_frame_equal(result.categories[same], stored[same], check_exact=True)
    assert [list(rows) for rows in result.profiles.exemplars] == [
        [int(name) for name in ids.split("; ")] for ids in stored["exemplars"]
    ]


def test_the_record_is_typed(folder):
    record = read_result(folder).record
    stored = json.loads((folder / "run.json").read_text())
    assert record.version == "0.1.0"
    assert record.settings == Request(None, False, True, None)
    assert record.rerun == "newfound discover items.npz --out folder_0_1_0 --seed 0"
    assert record.history == History("pass", tuple(stored["history"]["n_components"]))
    assert record.rehearsal.ratios == tuple(stored["rehearsal"]["ratios"])
    assert (record.n_items, record.n_known, record.n_novel) == (60, 4, 1)


def test_the_model_says_the_same_as_the_tables(folder):
    result = read_result(folder)
    is_free = ~result.collection.is_labelled
    predicted = result.mixture.predict(result.features)
    np.testing.assert_array_equal(predicted[is_free], result.assigned.labels[is_free])
    assert (result.assigned.distance < 1).all()
    assert result.mixture.sizes == "unknown"  # it says: expect_sizes null
    assert result.mixture.count_.sizes_from == "given"  # it was taken for granted


def test_reasons_are_worked_out_again_where_there_is_a_model(folder):
    stored = pd.read_parquet(folder / "categories.parquet")
    result = read_result(folder)
    pattern = r"It differs from ([^,]+?)(?: by|,) "  # 0.1.0 wrote the numbers into the sentence
    now, then = (
        table["why_not_merged"].str.extract(pattern, expand=False)
        for table in (result.categories, stored)
    )
    assert now.notna().any()
    assert now.tolist() == then.tolist()
    assert result.categories["why_not_split"][4].startswith("It is too small to split")
    shutil.rmtree(folder / "model")
    assert read_result(folder).profiles.evidence is None


def test_written_again_it_is_a_folder_of_today(folder, tmp_path):
    result = read_result(folder)
    write_result(result, tmp_path / "again")
    again = read_result(tmp_path / "again")
    pd.testing.assert_frame_equal(again.table, result.table, check_exact=True)
    pd.testing.assert_frame_equal(again.categories, result.categories, check_exact=True)
    assert again.record == result.record


@pytest.fixture
def give():
    """Run a command as a person gives it."""
    runner = pytest.importorskip("typer.testing").CliRunner()
    from newfound.cli.main import app

    def run(*words):
        done = runner.invoke(app, [str(word) for word in words])
        assert done.exit_code == 0, done.output

    return run


@pytest.fixture(autouse=True)
def no_tsne(monkeypatch):
    """Maps by PCA, which is faster."""
    monkeypatch.setattr("newfound.report.map._has_tsne", lambda: False)


def test_report_predict_and_export_take_it(folder, tmp_path, give):
    give("report", folder)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "newfound discover items.npz --out folder_0_1_0 --seed 0</code>" in page
    result = read_result(folder)
    np.save(tmp_path / "more.npy", result.features[:7])
    give("predict", folder, tmp_path / "more.npy", "--out", tmp_path / "more.csv")
    predicted = pd.read_csv(tmp_path / "more.csv")
    assert predicted["category"].tolist() == result.table["category"][:7].tolist()
    give("export", folder, "--to", "csv", "--out", tmp_path / "table.csv")
    exported = pd.read_csv(tmp_path / "table.csv")
    assert exported["category"].tolist() == result.table["category"].tolist()


@pytest.mark.filterwarnings("ignore::newfound.errors.DiscoveryWarning")
def test_update_takes_it(folder, tmp_path, give):
    run = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**run, "rehearsal": None}))  # it takes seconds
    old = read_result(folder)
    np.save(tmp_path / "more.npy", 1.001 * old.features[:7])
    give("update", folder, tmp_path / "more.npy", "--out", tmp_path / "updated")
    new = read_result(tmp_path / "updated")
    assert (len(new), new.record.command, new.names) == (67, "update", old.names)
    assert "newfound update" in (tmp_path / "updated" / "report.html").read_text()
