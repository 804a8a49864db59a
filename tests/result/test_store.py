"""A result to files and back."""

import csv
import io
import json
import pickle
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from newfound.data.collection import Skipped
from newfound.errors import InputError
from newfound.result.build import predict_table, result_from
from newfound.result.record import RunFacts
from newfound.result.run_folder import check_same
from newfound.result.store import read_result, write_result


@pytest.fixture
def folder(result, tmp_path):
    write_result(result, tmp_path / "run")
    return tmp_path / "run"


def forget_digests(folder):
    """Make a folder as if it had been written by somebody else, on purpose."""
    (folder / "digests.json").unlink(missing_ok=True)
    run = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({k: run[k] for k in run if k != "digests"}))


def assert_same_profiles(first, second):
    for name in ("sizes", "n_labelled", "stability", "mean_confidence", "nearest"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    for name in ("exemplars", "borderline"):
        pairs = zip(getattr(first, name), getattr(second, name), strict=True)
        assert all(rows.tolist() == others.tolist() for rows, others in pairs)
    for numbers, others in zip(first.evidence, second.evidence, strict=True):
        np.testing.assert_array_equal(numbers, others)


def assert_same_result(first, second):
    pd.testing.assert_frame_equal(first.table, second.table, check_exact=True)
    pd.testing.assert_frame_equal(first.categories, second.categories, check_exact=True)
    assert first.record == second.record
    assert first.names == second.names
    for name in ("labels", "confidence", "runner_up", "distance"):
        np.testing.assert_array_equal(
            getattr(first.assigned, name), getattr(second.assigned, name), strict=True
        )
    np.testing.assert_array_equal(first.outlier_scores, second.outlier_scores)
    assert_same_profiles(first.profiles, second.profiles)
    for name in ("features", "V", "prototypes"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
        assert getattr(first, name).dtype == getattr(second, name).dtype
    assert first.encoder == second.encoder
    assert first.collection.skipped == second.collection.skipped
    assert first.collection.ids == second.collection.ids
    assert first.collection.y.tolist() == second.collection.y.tolist()
    assert first.collection.root == second.collection.root


def test_a_result_comes_back_the_same(result, folder):
    again = read_result(folder)
    assert_same_result(again, result)
    np.testing.assert_array_equal(
        again.mixture.predict_proba(result.features), result.mixture.predict_proba(result.features)
    )
    assert result.V.dtype == np.float32


def test_the_files_of_a_run(folder):
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert names == [
        *["assignments.csv", "assignments.parquet", "categories.csv", "categories.parquet"],
        *["digests.json", "levels.json"],
        *["model/features.npy", "model/mixture.json", "model/mixture.safetensors"],
        *["run.json", "skipped.csv"],
    ]


def read_csv(path):
    return list(csv.reader(io.StringIO(path.read_bytes().decode(), newline="")))


def test_tables_as_csv(result, folder):
    for name, table in (("assignments", result.table), ("categories", result.categories)):
        rows = read_csv(folder / f"{name}.csv")
        assert rows[0] == list(table)
        assert [row[0] for row in rows[1:]] == table.iloc[:, 0].tolist()
    first = pd.read_csv(folder / "assignments.csv")
    np.testing.assert_allclose(first["confidence"], result.table["confidence"], rtol=1e-5)
    assert first["given_label"].isna().tolist() == result.table["given_label"].isna().tolist()


FORMULAS = ["=1+1", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1"]


def test_formulas_are_texts_in_csv_only(tmp_path, blobs, fit):
    y = [None if code < 0 else ["=HYPERLINK(0)", "-c", "a-b"][code] for code in blobs.y]
    ids = [*FORMULAS, "'=x", *[f"i{i}" for i in range(193)]]
    found = fit(y, blobs.X, 5, ids=ids, skipped=[Skipped(text, text) for text in FORMULAS])
    write_result(found, tmp_path)
    assert_same_result(read_result(tmp_path), found)
    for path in tmp_path.glob("*.csv"):
        for row in read_csv(path):
            for cell in row:
                is_number = cell.removeprefix("-").replace(".", "").replace("e-", "").isdecimal()
                assert is_number or not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    rows = read_csv(tmp_path / "assignments.csv")
    assert [row[0] for row in rows[1:8]] == [*[f"'{text}" for text in FORMULAS], "'=x"]
    assert "a-b" in {row[3] for row in rows}


def test_pictures_come_back_as_pictures(result, tmp_path):
    paths = [tmp_path / f"{i}.png" for i in range(400)]
    pictures = replace(result.collection, features=None, paths=paths, root=tmp_path)
    found = result_from(
        pictures, result.features, result.mixture, RunFacts(), encoder={"name": "e"}
    )
    write_result(found, tmp_path / "run")
    again = read_result(tmp_path / "run")
    assert_same_result(again, found)
    assert again.collection.paths == paths
    assert again.table["path"].tolist() == [str(path) for path in paths]
    assert (again.collection.kind, again.encoder) == ("pictures", {"name": "e"})


def test_texts_come_back_as_texts(result, tmp_path):
    texts = [f"text, “{i}”\n" for i in range(400)]
    found = result_from(
        replace(result.collection, features=None, texts=texts),
        result.features,
        result.mixture,
        RunFacts(),
    )
    write_result(found, tmp_path)
    again = read_result(tmp_path)
    assert_same_result(again, found)
    assert again.collection.texts == texts


def test_metadata_come_back_and_those_of_an_earlier_result_do_not(result, folder):
    n = len(result.collection)
    metadata = {"site": [None, *["=dune"] * (n - 1)], "id": ["7"] * n}
    write_result(replace(result, collection=replace(result.collection, metadata=metadata)), folder)
    assert read_result(folder).collection.metadata == metadata
    write_result(result, folder)
    assert read_result(folder).collection.metadata == {}


def join_ids(folder):
    """Store the ids of exemplars and borderline items as version 0.1.0 did, and no numbers."""
    path = folder / "categories.parquet"
    table = pd.read_parquet(path)
    for column in ("exemplars", "borderline"):
        table[column] = ["; ".join(ids) for ids in table[column]]
    numbers = [name for name in table if name.startswith(("split_", "merge_"))]
    assert len(numbers) == 5
    table.drop(columns=numbers).to_parquet(path)
    forget_digests(folder)


@pytest.mark.parametrize("version", ["now", "0.1.0"])
def test_ids_that_hold_the_separator_are_found(blobs, fit, tmp_path, version):
    ids = [f"a; {i}; b" for i in range(200)]
    y = [None if code < 0 else f"c{code}" for code in blobs.y]
    found = fit(y, blobs.X, 5, ids=ids)
    write_result(found, tmp_path)
    if version == "0.1.0":
        join_ids(tmp_path)
    again = read_result(tmp_path)
    assert_same_result(again, found)
    assert [len(rows) for rows in again.profiles.exemplars] == [6] * 5


def test_a_category_without_borderline_items_comes_back(blobs, fit, tmp_path):
    y = [f"c{code}" if code < 1 or i % 2 else None for i, code in enumerate(blobs.truth)]
    found = fit(y, blobs.X, 5)
    assert len(found.profiles.borderline[0]) == 0
    write_result(found, tmp_path)
    assert_same_result(read_result(tmp_path), found)
    join_ids(tmp_path)
    assert_same_result(read_result(tmp_path), found)


def test_ids_are_lists_in_parquet_and_text_in_csv(result, folder):
    stored = pd.read_parquet(folder / "categories.parquet")
    rows = read_csv(folder / "categories.csv")
    for column in ("exemplars", "borderline"):
        place = rows[0].index(column)
        assert [row[place] for row in rows[1:]] == ["; ".join(ids) for ids in stored[column]]
        assert stored[column][7][0] == result.collection.ids[getattr(result.profiles, column)[7][0]]
    assert rows[0] == list(result.categories)


def test_run_json_has_the_keys_of_0_1_0_and_sentences_for_people(result, folder):
    stored = json.loads((folder / "run.json").read_text())
    assert set(stored) == {
        *["version", "command", "settings", "seed", "encoder", "kind", "n_items", "n_labelled"],
        *["n_known", "n_novel", "n_novel_interval", "label_rate", "novel_share", "rehearsal"],
        *["history", "timings", "versions", "source", "n_skipped", "n_rows", "warnings", "last_id"],
        *[
            "rerun",
            "roots",
            "sentence",
            "trust",
            "label_accuracy",
            "content",
            "calibration",
            "novel_size",
        ],
        "digests",
    }
    assert (stored["sentence"], stored["trust"]) == (result.answer, result.trust)
    (folder / "run.json").write_text(json.dumps({**stored, "sentence": "x", "trust": None}))
    forget_digests(folder)
    assert read_result(folder).record == result.record


def test_a_folder_without_a_model_is_read_without_it(result, folder):
    shutil.rmtree(folder / "model")
    again = read_result(folder)
    assert again.mixture is None
    assert (again.features.shape, again.V.shape, again.prototypes.shape) == (
        (400, 0),
        (400, 0),
        (10, 0),
    )
    pd.testing.assert_frame_equal(again.table, result.table)
    pd.testing.assert_frame_equal(again.categories, result.categories)
    assert np.isnan(again.assigned.distance).all()
    with pytest.raises(InputError, match="has no model"):
        predict_table(again, result.collection, result.features)


def test_further_files_can_be_written_with_it(result, tmp_path):
    write_result(result, tmp_path, changes={"new": [1]})
    assert json.loads((tmp_path / "changes.json").read_text()) == {"new": [1]}


def test_a_result_that_cannot_be_written_leaves_the_old_one(result, folder):
    broken = replace(result, record=replace(result.record, timings={"oops": object()}))
    with pytest.raises(TypeError):
        write_result(broken, folder)
    assert_same_result(read_result(folder), result)


@pytest.mark.parametrize(
    "name", ["assignments.parquet", "categories.parquet", "model/features.npy", "skipped.csv"]
)
@pytest.mark.parametrize("how", ["missing", "cut short"])
def test_a_damaged_folder_is_reported(folder, name, how):
    if how == "missing":
        (folder / name).unlink()
    else:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2] if len(content) > 99 else b"x")
    with pytest.raises(InputError, match=rf"{Path(name).name} is missing or damaged .* again"):
        read_result(folder)


@pytest.mark.parametrize("name", ["run.json", "model/mixture.json"])
@pytest.mark.parametrize("content", ["[]", "3", "{}", "[" * 100_000, "", '{"version": 2}', "\xff"])
def test_json_of_another_kind_is_reported(folder, name, content):
    (folder / name).write_text(content, encoding="latin-1")
    with pytest.raises(InputError):
        read_result(folder)
    (folder / "started.json").write_text(content, encoding="latin-1")
    with pytest.raises(InputError):
        check_same(folder, command="discover", data="data")


FILES = [
    *["assignments.parquet", "categories.parquet", "model/features.npy", "model/mixture.json"],
    *["model/mixture.safetensors", "run.json", "digests.json"],
]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("how", ["flipped", "zeroed"])
def test_every_damage_of_a_file_that_newfound_alone_writes_is_noticed(folder, name, how):
    content = (folder / name).read_bytes()
    places = np.random.default_rng(0).choice(len(content), 8, replace=False).tolist()
    for place in places:
        damaged = bytearray(content)
        n = 1 if how == "flipped" else 5
        new = bytes(b ^ 4 if how == "flipped" else 0 for b in content[place : place + n])
        damaged[place : place + n] = new
        if bytes(damaged) == content:
            continue
        (folder / name).write_bytes(damaged)
        with pytest.raises(InputError):
            read_result(folder)


def test_tables_for_people_may_be_saved_again(result, folder):
    for name in ("assignments.csv", "categories.csv", "skipped.csv"):
        table = pd.read_csv(folder / name)
        table.to_csv(folder / name, index=False)
    assert_same_result(read_result(folder), result)


def test_without_digests_a_newer_run_is_not_read(folder):
    (folder / "digests.json").unlink()
    with pytest.raises(InputError, match=r"digests\.json cannot be read"):
        read_result(folder)


@pytest.mark.parametrize("column", ["category", "id", "confidence", "given_label"])
def test_a_table_without_a_column_is_reported(folder, column):
    path = folder / "assignments.parquet"
    pd.read_parquet(path).drop(columns=column).to_parquet(path)
    forget_digests(folder)
    with pytest.raises(InputError, match="damaged"):
        read_result(folder)


class Bomb:
    """Goes off when it is unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("something was unpickled",))


def test_nothing_is_unpickled(folder):
    np.save(folder / "model" / "features.npy", np.array([Bomb()], object), allow_pickle=True)
    with pytest.raises(InputError, match="damaged"):
        read_result(folder)
    (folder / "model" / "features.npy").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(InputError, match="damaged"):
        read_result(folder)


def test_features_of_other_items_are_told_of(folder):
    np.save(folder / "model" / "features.npy", np.zeros((3, 64)))
    forget_digests(folder)
    with pytest.raises(InputError, match="holds 3 rows for 400 items"):
        read_result(folder)


def test_tables_that_do_not_belong_together_are_told_of(result, folder):
    table = pd.read_parquet(folder / "assignments.parquet")
    table.loc[3, "category"] = "a stranger"
    table.to_parquet(folder / "assignments.parquet")
    forget_digests(folder)
    with pytest.raises(InputError, match=r"damaged .*a stranger"):
        read_result(folder)
