"""From a mixture to a result with its record; more items into its categories."""

from dataclasses import fields

import numpy as np
import pytest

import newfound
from newfound import SplitMergeMixture
from newfound.errors import InputError
from newfound.result.build import predict_table, result_from
from newfound.result.record import History, RehearsalRecord, Request, RunFacts


def test_an_id_that_a_person_uses_as_a_name_is_not_given_again(blobs, fit):
    y = [None if code < 0 else ["new-001", "cat", "dog"][code] for code in blobs.y]
    found = fit(y, blobs.X, 5)
    assert found.categories["category"].tolist() == ["cat", "dog", "new-001", "new-002", "new-003"]
    assert found.record.last_id == 3


def test_a_mixture_of_other_items_is_refused(result):
    with pytest.raises(InputError, match=r"has 10 items, but there are 400 rows .* fitted to 400"):
        result_from(result.collection.take(range(10)), result.features, result.mixture, RunFacts())


def test_names_may_be_given(result):
    names = [*result.categories["category"][:5], *[f"new-00{i}" for i in (9, 4, 7, 2, 8)]]
    again = result_from(
        result.collection, result.features, result.mixture, RunFacts(last_id=3), names=names
    )
    assert again.categories["category"].tolist() == names
    assert set(again.table["category"]) == set(names)
    assert again.record.last_id == 9


def test_the_record_has_what_the_workflow_says_and_what_follows(result):
    facts = RunFacts(
        command="train",
        rerun="newfound train pictures",
        settings=Request(n_categories=10, train=True, rehearse=False, training={"epochs": 2}),
        seed=7,
        encoder="pixels",
        rehearsal=RehearsalRecord(2, (0.5, 1.5)),
        timings={"fit": 1.5},
        versions={"python": "3"},
        warnings=("Look out.",),
    )
    record = result_from(result.collection, result.features, result.mixture, facts).record
    for item in fields(facts):
        if item.name not in ("history", "last_id"):
            assert getattr(record, item.name) == getattr(facts, item.name)
    assert record.version == newfound.__version__
    assert (record.kind, record.n_items, record.n_skipped) == ("features", 400, 1)
    assert record.n_labelled == result.collection.is_labelled.sum()
    assert (record.n_known, record.n_novel, record.last_id) == (5, 5, 5)
    assert (record.source, record.n_novel_interval, record.label_rate) == (None, None, None)


def test_a_count_is_passed_on(blobs, make_collection):
    collection = make_collection([None if c < 0 else f"c{c}" for c in blobs.y], blobs.X)
    with pytest.warns(newfound.errors.DiscoveryWarning):
        mixture = SplitMergeMixture(random_state=0).fit(blobs.X, collection.y)
    record = result_from(collection, blobs.X, mixture, RunFacts()).record
    assert record.n_novel_interval == tuple(mixture.count_.interval)
    assert record.label_rate == mixture.count_.label_rate
    assert record.novel_share == mixture.count_.novel_share
    passes = tuple(done.n_components for done in mixture.history_)
    assert record.history == History("pass", passes)
    epochs = RunFacts(history=History("epoch", (4, None, 5)))
    again = result_from(collection, blobs.X, mixture, epochs)
    assert again.record.history == epochs.history


def test_more_items_have_the_same_columns(result):
    table = predict_table(result, result.collection, result.features)
    assert list(table) == list(result.table)
    free = ~result.collection.is_labelled
    assert table["category"][free].tolist() == result.table["category"][free].tolist()
    assert table["given_label"].tolist() == result.table["given_label"].tolist()
    predicted = result.mixture.predict(result.features)
    names = result.mixture.category_names_
    assert table["category"].tolist() == names[predicted].tolist()  # labels are not looked at
    assert (table["category"] != result.table["category"]).any()


def test_features_of_another_width_are_refused(result, make_collection):
    X = np.zeros((3, 63), dtype=np.float32)
    with pytest.raises(InputError, match=r"have 63 features, but the run was made with 64"):
        predict_table(result, make_collection([None] * 3, X), X)
