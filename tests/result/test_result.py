"""The result: against slow loops, in words, to files and back."""

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
from sklearn.datasets import load_digits

import newfound
from newfound import SplitMergeMixture
from newfound.data.collection import Collection, Skipped
from newfound.errors import InputError
from newfound.mixture.hastings import log_merge_ratio
from newfound.mixture.stats import GaussianStats
from newfound.result import result as assignments
from newfound.result.result import (
    Assigned,
    assign,
    outlier_scores,
    predict_table,
    read_result,
    result_from,
    write_result,
)

COLUMNS = [
    *["id", "path", "given_label", "category", "kind", "confidence", "runner_up"],
    "outlier_score",
]


def objects(values):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def make_collection(y, X, **changes):
    ids = [f"item {i:04d}" for i in range(len(y))]
    return Collection(**{"ids": ids, "y": objects(y), "features": X, **changes})


def fit(y, X, n_components, expect_sizes=None, **changes):
    collection = make_collection(y, X, **changes)
    settings = {"n_components": n_components, "expect_sizes": expect_sizes}
    mixture = SplitMergeMixture(random_state=0, n_init=2, **settings)
    return result_from(collection, X, mixture.fit(X, collection.y), run={"seed": 5})


@pytest.fixture(scope="module")
def result():
    """400 digits of ten classes, five of them known."""
    X, truth = load_digits(return_X_y=True)
    X, truth = X[:400].astype(np.float32), truth[:400]
    half = np.random.default_rng(0).random(400) < 0.5
    y = [f"digit {t}" if t < 5 and h else None for t, h in zip(truth, half, strict=True)]
    return fit(y, X, 10, skipped=[Skipped("=broken.png", "the file is empty")])


@pytest.fixture
def folder(result, tmp_path):
    write_result(result, tmp_path / "run")
    return tmp_path / "run"


# ----------------------------------------------------------------------------------- the items


def test_every_item_has_a_row_in_the_order_of_the_collection(result):
    assert list(result.table) == COLUMNS
    assert result.table["id"].tolist() == result.collection.ids
    assert not result.table.drop(columns=["path", "given_label"]).isna().any(axis=None)
    assert len(result) == 400


def test_labelled_items_keep_their_label(result):
    labelled = result.collection.is_labelled
    assert labelled.sum() > 50
    assert result.table["given_label"][labelled].tolist() == list(result.collection.y[labelled])
    assert result.table["given_label"][~labelled].tolist() == [None] * (~labelled).sum()
    assert result.table["category"][labelled].tolist() == list(result.collection.y[labelled])


def test_the_category_is_that_of_the_mixture(result):
    names = result.mixture.category_names_
    assert result.table["category"].tolist() == names[result.mixture.labels_].tolist()
    is_known = result.table["category"].str.startswith("digit")
    assert result.table["kind"].tolist() == ["known" if known else "novel" for known in is_known]


def test_confidence_and_runner_up_agree_with_the_category(result):
    """Against a loop over the items."""
    names = result.categories["category"].tolist()
    probabilities = result.mixture.predict_proba(result.features)
    n_overruled = 0
    for row, p in zip(result.table.itertuples(), probabilities, strict=True):
        ranking = [names[i] for i in np.argsort(-p, kind="stable")]
        assert row.confidence == pytest.approx(p[names.index(row.category)], rel=1e-6, abs=1e-12)
        if row.given_label is None:
            assert row.category == ranking[0]
            assert row.confidence >= 1 / len(names)
        n_overruled += row.category != ranking[0]
        ranking.remove(row.category)
        assert row.runner_up == ranking[0]
    assert n_overruled > 0  # some labels are not where the item lies


def test_blocks_do_not_show(result, tiny_blocks):
    again = assign(result.mixture, result.features, np.full(400, -1))
    whole = result.mixture.predict_proba(result.features)
    assert again.labels.tolist() == whole.argmax(axis=1).tolist()
    np.testing.assert_allclose(again.confidence, whole.max(axis=1), rtol=1e-5)


def test_outlier_scores_against_a_loop(result):
    # prototypes of novel categories are plain means if no sizes are expected
    result = fit(result.collection.y, result.features, 10, expect_sizes=False)
    V, P = result.V.astype(np.float64), result.prototypes
    names = result.categories["category"].tolist()
    codes = np.array([names.index(name) for name in result.table["category"]])
    labelled = result.collection.is_labelled
    usual = []
    for i in np.flatnonzero(labelled):
        others = labelled & (codes == codes[i]) & (np.arange(400) != i)
        usual.append(np.linalg.norm(V[i] - V[others].mean(axis=0)))
    for i in range(400):
        prototype = P[codes[i]]
        if labelled[i] or codes[i] >= 5:  # leave the item itself out
            others = (codes == codes[i]) & (np.arange(400) != i) & (labelled | (codes >= 5))
            prototype = V[others].mean(axis=0)
        score = np.mean(np.array(usual) < np.linalg.norm(V[i] - prototype))
        assert result.table["outlier_score"][i] == pytest.approx(score, abs=1.5 / len(usual))


def test_outlier_scores_are_shares_of_what_is_usual():
    scores = outlier_scores(np.array([0.0, 1.0, 2.5, 9.0, np.inf]), np.array([1.0, 2.0, 3.0, 4.0]))
    assert scores.tolist() == [0, 0, 0.5, 1, 1]
    assert outlier_scores(np.array([1.0]), np.array([])).tolist() == [0]


def test_an_item_that_is_far_from_everything_scores_highest(result):
    noise = np.random.default_rng(1).normal(size=(20, 64)).astype(np.float32)
    scores = predict_table(result, make_collection([None] * 20, noise), noise)["outlier_score"]
    assert scores.min() > 0.97
    same = predict_table(result, result.collection, result.features)["outlier_score"]
    assert same.mean() < 0.6


def test_with_few_labels_all_items_are_the_measure(blobs):
    known = np.flatnonzero(blobs.y >= 0)
    y = objects([None] * 200)
    for place in known[:12]:
        y[place] = f"class {blobs.y[place]}"
    scores = fit(y, blobs.X, 5).table["outlier_score"]
    assert sorted(scores) == pytest.approx(np.arange(200) / 200)


def test_an_item_alone_in_its_category_is_far_from_the_others():
    labels = np.array([0, 0, 0, 1, 2])
    assigned = Assigned(labels, np.ones(5), labels, np.array([1.0, 2.0, 3.0, 0.0, 0.0]))
    labelled = np.array([True, True, False, True, False])
    apart = assignments._without_own_part(assigned, labelled, n_known=2)
    assert apart.tolist() == [2, 4, 3, 0, np.inf]


# ----------------------------------------------------------------------------- the categories


def test_categories_against_loops(result):
    V, P = result.V.astype(np.float64), result.prototypes
    assert len(result.categories) == len(P) == 10
    assert (result.n_known, result.n_novel) == (5, 5)
    for i, row in enumerate(result.categories.itertuples()):
        members = result.table[result.table["category"] == row.category]
        assert row.kind == members["kind"].iloc[0]
        assert row.size == len(members)
        assert row.n_labelled == members["given_label"].notna().sum()
        assert row.mean_confidence == pytest.approx(members["confidence"].mean())
        assert row.stability == result.mixture.stability_[i]
        distances = np.linalg.norm(P - P[i], axis=1)
        distances[i] = np.inf
        assert row.nearest == result.categories["category"][distances.argmin()]
        from_prototype = pd.Series(np.linalg.norm(V[members.index] - P[i], axis=1), members.index)
        nearest = from_prototype.sort_values().index[:6]
        assert result.rows_of(row.exemplars) == nearest.tolist()
        free = members[members["given_label"].isna()].sort_values("confidence", kind="stable")
        assert result.rows_of(row.borderline) == free.index[:6].tolist()


def test_the_evidence_is_that_of_the_categories_shown(result):
    """log H of the merger that a sentence speaks of, from the items themselves."""
    names = result.categories["category"].tolist()
    codes = np.array([names.index(name) for name in result.table["category"]])
    stats = GaussianStats.from_labels(result.V, codes, 10)
    for i, row in enumerate(result.categories.itertuples()):
        other = names.index(row.why_not_merged.split(" from ")[1].split(" by ")[0])
        log_ratio = float(log_merge_ratio(stats[i], stats[other], result.mixture.prior_))
        assert row.why_not_merged.endswith(f"; log H = {log_ratio:+.0f}.")
        shared = stats.count * stats.count[i] / (stats.count + stats.count[i])
        gaps = shared * np.square(stats.mean - stats.mean[i]).sum(axis=1)
        assert f" by {gaps[other]:.3g}, " in row.why_not_merged
        if i >= 5:  # of the three nearest, the one that it differs least from
            nearest = np.argsort(np.linalg.norm(stats.mean - stats.mean[i], axis=1))[1:4]
            assert other == nearest[gaps[nearest].argmin()]


def test_words_for_categories_that_may_split(result):
    reasons = result.categories["why_not_split"]
    assert reasons[:5].tolist() == ["Its labels say that it is one category."] * 5
    assert all("log H = " in reason for reason in reasons[5:])
    assert all("halves differ" in reason for reason in reasons[5:])


@pytest.mark.parametrize(
    ("splits", "merges", "split", "merged"),
    [
        ({1: (2.0, -3.0)}, {0: (5.0, -7.0, 1), 1: (5.0, -7.0, 0)},
         "Its halves differ less (2) than any two categories do (5); log H = -3.",
         "It differs from cat by 5, more than the halves of any category do (2); log H = -7."),
        ({1: (9.0, 4.0)}, {0: (5.0, 6.0, 1), 1: (5.0, 6.0, 0)},
         "Its halves differ by 9, more than the two closest categories do (5), but that would be "
         "one category too many; log H = +4.",
         "It differs from cat by 5, less than the halves of some category do (9): look at both; "
         "log H = +6."),
        ({}, {},
         "It is too small: a half would have 5 items or fewer.",
         "The nearest category, cat, is too far away."),
    ],
)  # fmt: skip
def test_evidence_in_words(splits, merges, split, merged):
    categories = pd.DataFrame(
        {"category": ["cat", "new-001"], "kind": ["known", "novel"], "nearest": ["new-001", "cat"]}
    )
    weighed = assignments._Weighed(splits, merges)
    assert assignments._why_not_split(1, categories, weighed) == split
    assert assignments._why_not_merged(1, categories, weighed) == merged


@pytest.mark.filterwarnings("ignore::newfound.errors.DiscoveryWarning")
def test_without_novel_categories(blobs):
    y = [f"class {t}" if i % 2 else None for i, t in enumerate(blobs.truth)]
    found = fit(y, blobs.X, 5)
    assert (found.n_known, found.n_novel) == (5, 0)
    reasons = set(found.categories["why_not_merged"].str.replace(r"class \d", "X", regex=True))
    assert reasons == {"The nearest category, X, has other labels."}


@pytest.mark.filterwarnings("ignore::newfound.errors.DiscoveryWarning")
def test_a_single_category(blobs):
    found = fit(["only", *[None] * 199], blobs.X, 1)
    assert found.table["runner_up"].tolist() == [None] * 200
    assert found.table["confidence"].tolist() == [1] * 200
    assert found.categories["nearest"].tolist() == [None]
    assert found.categories["why_not_merged"].tolist() == ["There is no other category."]


def test_an_id_that_a_person_uses_as_a_name_is_not_given_again(blobs):
    y = [None if code < 0 else ["new-001", "cat", "dog"][code] for code in blobs.y]
    found = fit(y, blobs.X, 5)
    assert found.categories["category"].tolist() == ["cat", "dog", "new-001", "new-002", "new-003"]
    assert found.run["last_id"] == 3


def test_numbers_as_labels_become_names(blobs):
    found = fit([None if code < 0 else int(code) for code in blobs.y], blobs.X, 5)
    assert found.categories["category"].tolist() == ["0", "1", "2", "new-001", "new-002"]
    assert set(found.table["given_label"][blobs.y >= 0]) == {"0", "1", "2"}


def test_a_mixture_of_other_items_is_refused(result):
    with pytest.raises(InputError, match=r"has 10 items, but there are 400 rows .* fitted to 400"):
        result_from(result.collection.take(range(10)), result.features, result.mixture, run={})


def test_names_may_be_given(result):
    names = [*result.categories["category"][:5], *[f"new-00{i}" for i in (9, 4, 7, 2, 8)]]
    again = result_from(
        result.collection, result.features, result.mixture, run={"last_id": 3}, names=names
    )
    assert again.categories["category"].tolist() == names
    assert set(again.table["category"]) == set(names)
    assert again.run["last_id"] == 9


# ------------------------------------------------------------------------------ what the run says


def test_the_run_has_all_that_readers_look_for(result):
    assert set(result.run) == {
        *["version", "command", "settings", "seed", "encoder", "kind", "n_items", "n_labelled"],
        *["n_known", "n_novel", "n_novel_interval", "label_rate", "novel_share", "rehearsal"],
        *["history", "timings", "versions", "source", "n_skipped", "warnings", "last_id"],
        *["sentence", "trust"],
    }
    assert json.loads(json.dumps(result.run, allow_nan=False)) == result.run
    assert result.run["seed"] == 5
    assert result.run["version"] == newfound.__version__
    assert (result.run["n_items"], result.run["n_skipped"]) == (400, 1)
    assert result.run["n_labelled"] == result.collection.is_labelled.sum()


def said(**changes):
    run = {
        **{"n_known": 5, "n_novel": 4, "n_items": 1234, "kind": "pictures"},
        **{"n_novel_interval": [2.7, 6.2], "rehearsal": None, **changes},
    }
    return assignments._sentence(run, False), assignments._trust(run, False)


def rehearsed(*ratios):
    return said(rehearsal={"n_draws": len(ratios), "ratios": list(ratios)})[1]


def test_the_answer_in_words():
    assert said()[0] == "4 new categories were found beside 5 known categories in 1,234 pictures."
    assert said(n_novel=1, n_known=1, kind="texts")[0] == (
        "1 new category was found beside 1 known category in 1,234 texts."
    )
    assert said(n_novel=0)[0] == "No new category was found beside 5 known categories in " + (
        "1,234 pictures."
    )
    run = {"n_known": 5, "n_novel": 4, "n_items": 10, "kind": "features"}
    assert assignments._sentence(run, True) == (
        "9 categories in 10 items, as asked for: 5 known categories and 4 new categories."
    )


def test_trust_in_words():
    assert said()[1] == (
        "Going by how known categories look, there are 3 to 6 new ones, 9 times in 10; this was "
        "not rehearsed with hidden categories."
    )
    assert "there are 4 new ones" in said(n_novel_interval=[3.6, 4.4])[1]
    assert "The number of categories was given" in assignments._trust({}, True)
    assert "Too little is labelled" in said(n_novel_interval=None, n_known=1)[1]
    assert "does not say how far to trust it" in said(n_novel_interval=None)[1]


def test_the_rehearsal_in_words():
    assert rehearsed(0.9, 1.0, 1.2).endswith(
        "came back as 1.0 each (0.9 to 1.2 in 3 draws), which is as it should be."
    )
    assert rehearsed(1.0, 2.0, 3.0).endswith("so that there may be fewer: about 2.")
    assert rehearsed(0.4, 0.5, 0.6).endswith("so that there may be more: about 8.")
    assert rehearsed(0.0, 0.0, 0.1).endswith("so that there may be more.")


def test_a_count_is_passed_on(blobs):
    collection = make_collection([None if c < 0 else f"c{c}" for c in blobs.y], blobs.X)
    with pytest.warns(newfound.errors.DiscoveryWarning):
        mixture = SplitMergeMixture(random_state=0).fit(blobs.X, collection.y)
    run = result_from(collection, blobs.X, mixture, run={}).run
    assert run["n_novel_interval"] == list(mixture.count_.interval)
    assert run["label_rate"] == mixture.count_.label_rate
    assert run["novel_share"] == mixture.count_.novel_share
    passes = [done.n_components for done in mixture.history_]
    assert run["history"] == {"unit": "pass", "n_components": passes}


# -------------------------------------------------------------------------------- in a notebook


def test_a_notebook_shows_the_answer_and_the_categories(result):
    shown = result._repr_html_()
    assert result.run["sentence"] in shown
    assert all(f"<td>{name}</td>" in shown for name in result.categories["category"])
    assert result.run["sentence"] in repr(result)


def test_a_notebook_runs_nothing_that_is_in_a_name(blobs):
    y = [None if code < 0 else ["<script>x</script>", "b", "c"][code] for code in blobs.y]
    found = fit(y, blobs.X, 5)
    found = replace(found, run={**found.run, "warnings": ["<b>bold</b>"]})
    shown = found._repr_html_()
    assert "<script>" not in shown
    assert "<b>bold" not in shown
    assert "&lt;b&gt;bold" in shown


# ------------------------------------------------------------------------------ files, both ways


def assert_same_result(first, second):
    pd.testing.assert_frame_equal(first.table, second.table, check_exact=True)
    pd.testing.assert_frame_equal(first.categories, second.categories, check_exact=True)
    assert first.run == second.run
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


def test_formulas_are_texts_in_csv_only(tmp_path, blobs):
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
    found = result_from(pictures, result.features, result.mixture, run={}, encoder={"name": "e"})
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
        run={},
    )
    write_result(found, tmp_path)
    again = read_result(tmp_path)
    assert_same_result(again, found)
    assert again.collection.texts == texts


def test_ids_that_hold_the_separator_are_found(blobs):
    ids = [f"a; {i}; b" for i in range(200)]
    y = [None if code < 0 else f"c{code}" for code in blobs.y]
    found = fit(y, blobs.X, 5, ids=ids)
    for row in found.categories.itertuples():
        rows = found.rows_of(row.exemplars)
        assert "; ".join(ids[i] for i in rows) == row.exemplars
        assert len(rows) == 6
    assert found.rows_of("") == []


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
    with pytest.raises(InputError, match="has no model"):
        predict_table(again, result.collection, result.features)


def test_further_files_can_be_written_with_it(result, tmp_path):
    write_result(result, tmp_path, changes={"new": [1]})
    assert json.loads((tmp_path / "changes.json").read_text()) == {"new": [1]}


def test_a_result_that_cannot_be_written_leaves_the_old_one(result, folder):
    broken = replace(result, run={**result.run, "oops": object()})
    with pytest.raises(TypeError):
        write_result(broken, folder)
    assert_same_result(read_result(folder), result)


@pytest.mark.parametrize(
    "name", ["assignments.parquet", "categories.parquet", "model/features.npy", "skipped.csv"]
)
@pytest.mark.parametrize("how", ["missing", "cut short"])
def test_a_damaged_folder_is_told_of(folder, name, how):
    if how == "missing":
        (folder / name).unlink()
    else:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2] if len(content) > 99 else b"x")
    with pytest.raises(InputError, match=rf"{Path(name).name} is missing or damaged .* again"):
        read_result(folder)


class Bomb:
    """Goes off when it is unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("something was unpickled",))


def test_nothing_is_unpickled(folder):
    np.save(folder / "model" / "features.npy", objects([Bomb()]), allow_pickle=True)
    with pytest.raises(InputError, match="damaged"):
        read_result(folder)
    (folder / "model" / "features.npy").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(InputError, match="damaged"):
        read_result(folder)


def test_features_of_other_items_are_told_of(folder):
    np.save(folder / "model" / "features.npy", np.zeros((3, 64)))
    with pytest.raises(InputError, match="holds 3 rows for 400 items"):
        read_result(folder)


# ------------------------------------------------------------------------------------ more items


def test_more_items_have_the_same_columns(result):
    table = predict_table(result, result.collection, result.features)
    assert list(table) == COLUMNS
    free = ~result.collection.is_labelled
    assert table["category"][free].tolist() == result.table["category"][free].tolist()
    assert table["given_label"].tolist() == result.table["given_label"].tolist()
    predicted = result.mixture.predict(result.features)
    names = result.mixture.category_names_
    assert table["category"].tolist() == names[predicted].tolist()  # labels are not looked at
    assert (table["category"] != result.table["category"]).any()


def test_features_of_another_width_are_refused(result):
    X = np.zeros((3, 63), dtype=np.float32)
    with pytest.raises(InputError, match=r"have 63 features, but the run was made with 64"):
        predict_table(result, make_collection([None] * 3, X), X)
