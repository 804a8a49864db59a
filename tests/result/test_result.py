"""The tables that a result makes, and what a notebook shows."""

from dataclasses import replace

import numpy as np
import pytest

COLUMNS = [
    *["id", "path", "given_label", "category", "kind", "confidence", "runner_up"],
    "outlier_score",
]


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


def test_numbers_as_labels_become_names(blobs, fit):
    found = fit([None if code < 0 else int(code) for code in blobs.y], blobs.X, 5)
    assert found.categories["category"].tolist() == ["0", "1", "2", "new-001", "new-002"]
    assert set(found.table["given_label"][blobs.y >= 0]) == {"0", "1", "2"}


@pytest.mark.filterwarnings("ignore::newfound.errors.DiscoveryWarning")
def test_without_novel_categories(blobs, fit):
    y = [f"class {t}" if i % 2 else None for i, t in enumerate(blobs.truth)]
    found = fit(y, blobs.X, 5)
    assert (found.n_known, found.n_novel) == (5, 0)
    reasons = set(found.categories["why_not_merged"].str.replace(r"class \d", "X", regex=True))
    assert reasons == {"The nearest category, X, has other labels."}


@pytest.mark.filterwarnings("ignore::newfound.errors.DiscoveryWarning")
def test_a_single_category(blobs, fit):
    found = fit(["only", *[None] * 199], blobs.X, 1)
    assert found.table["runner_up"].tolist() == [None] * 200
    assert found.table["confidence"].tolist() == [1] * 200
    assert found.categories["nearest"].tolist() == [None]
    assert found.categories["why_not_merged"].tolist() == ["There is no other category."]


def test_a_notebook_shows_the_answer_and_the_categories(result):
    shown = result._repr_html_()
    assert result.answer in shown
    assert result.trust in shown
    assert all(name in shown for name in result.names)
    assert result.answer in repr(result)


def test_a_notebook_runs_nothing_that_is_in_a_name(blobs, fit):
    y = [None if code < 0 else ["<script>x</script>", "b", "c"][code] for code in blobs.y]
    found = fit(y, blobs.X, 5)
    found = replace(found, record=replace(found.record, warnings=("<b>bold</b>",)))
    shown = found._repr_html_()
    assert "<script>" not in shown
    assert "<b>bold" not in shown
    assert "&lt;b&gt;bold" in shown


def test_codes_are_joined_to_names_in_the_tables(result):
    names = np.array(result.names)
    assert result.table["category"].tolist() == names[result.assigned.labels].tolist()
    assert result.table["runner_up"].tolist() == names[result.assigned.runner_up].tolist()
    assert result.categories["category"].tolist() == list(result.names)
    assert result.categories["nearest"].tolist() == names[result.profiles.nearest].tolist()
    assert result.categories["kind"].tolist() == result.kinds == ["known"] * 5 + ["novel"] * 5
    for column in ("exemplars", "borderline"):
        for cell, rows in zip(
            result.categories[column], getattr(result.profiles, column), strict=True
        ):
            assert cell == "; ".join(result.collection.ids[row] for row in rows)


def test_tables_are_made_once(result):
    assert result.table is result.table
    assert result.categories is result.categories
    again = replace(result, names=tuple(f"c{i}" for i in range(10)))
    assert again.categories["category"].tolist() == list(again.names)


def test_without_evidence_there_are_no_reasons(result):
    silent = replace(result, profiles=result.profiles._replace(evidence=None))
    assert silent.categories["why_not_split"].tolist() == [None] * 10
    assert silent.categories["why_not_merged"].tolist() == [None] * 10
