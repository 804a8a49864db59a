"""Categories, confidences and outlier scores, against slow loops."""

import numpy as np
import pytest

from newfound.mixture.rows import row_blocks
from newfound.result.assign import (
    Assigned,
    assign,
    distances_from_prototypes,
    leave_one_out,
    outlier_scores,
    project,
    unsure_items,
    usual_distances,
)
from newfound.result.build import predict_table


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
    again, V = assign(result.mixture, result.features, np.full(400, -1))
    whole = result.mixture.predict_proba(result.features)
    assert again.labels.tolist() == whole.argmax(axis=1).tolist()
    np.testing.assert_allclose(again.confidence, whole.max(axis=1), rtol=1e-5)
    np.testing.assert_allclose(V, result.V, atol=1e-6)


def test_the_projection_is_that_of_the_mixture(result, tiny_blocks):
    """Block by block with the same bits, whether rows are assigned or only projected."""
    assigned, V = assign(result.mixture, result.features)
    np.testing.assert_array_equal(V, project(result.mixture, result.features))
    blocks = [*row_blocks(400, 64)]
    assert len(blocks) == 25
    for block in blocks:
        projected = result.mixture.projection_.transform(result.features[block])
        np.testing.assert_array_equal(V[block], projected)
    assert V.dtype == np.float32
    for i in range(0, 400, 37):
        prototype = result.prototypes[assigned.labels[i]]
        distance = np.sqrt(((V[i] - prototype) ** 2).sum())
        assert assigned.distance[i] == pytest.approx(distance)


def test_rows_of_double_precision_are_assigned_in_double_precision(result):
    X = result.features.astype(np.float64)
    assigned, V = assign(result.mixture, X)
    assert V.dtype == np.float32
    np.testing.assert_array_equal(assigned.confidence, result.mixture.predict_proba(X).max(axis=1))


def test_distances_do_not_depend_on_blocks(result, tiny_blocks):
    labels = result.assigned.labels
    again = distances_from_prototypes(result.V, result.prototypes, labels)
    np.testing.assert_array_equal(again, result.assigned.distance)


def test_outlier_scores_against_a_loop(result, fit):
    # prototypes of novel categories are plain means if no sizes are expected
    result = fit(result.collection.y, result.features, 10, sizes=None)
    V, P = result.V.astype(np.float64), result.prototypes
    codes = result.assigned.labels
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
        assert result.outlier_scores[i] == pytest.approx(score, abs=1.5 / len(usual))


def test_outlier_scores_are_shares_of_what_is_usual():
    scores = outlier_scores(np.array([0.0, 1.0, 2.5, 9.0, np.inf]), np.array([1.0, 2.0, 3.0, 4.0]))
    assert scores.tolist() == [0, 0, 0.5, 1, 1]
    assert outlier_scores(np.array([1.0]), np.array([])).tolist() == [0]


def test_an_item_that_is_far_from_everything_scores_highest(result, make_collection):
    noise = np.random.default_rng(1).normal(size=(20, 64)).astype(np.float32)
    scores = predict_table(result, make_collection([None] * 20, noise), noise)["outlier_score"]
    assert scores.min() > 0.97
    same = predict_table(result, result.collection, result.features)["outlier_score"]
    assert same.mean() < 0.6


def test_with_few_labels_all_items_are_the_measure(blobs, fit):
    known = np.flatnonzero(blobs.y >= 0)
    y = [None] * 200
    for place in known[:12]:
        y[place] = f"class {blobs.y[place]}"
    scores = fit(y, blobs.X, 5).outlier_scores
    assert sorted(scores) == pytest.approx(np.arange(200) / 200)


def test_an_item_alone_in_its_category_is_far_from_the_others():
    labels = np.array([0, 0, 0, 1, 2])
    assigned = Assigned(labels, np.ones(5), labels, np.array([1.0, 2.0, 3.0, 0.0, 0.0]))
    labelled = np.array([True, True, False, True, False])
    distance = leave_one_out(assigned, labelled, n_known=2)
    assert distance.tolist() == [2, 4, 3, 0, np.inf]


@pytest.mark.parametrize("n_labelled", [0, 19, 20, 30])
def test_labelled_rows_say_what_is_usual_if_there_are_enough(n_labelled):
    distance = np.arange(40.0, 0, -1)
    distance[-1] = 0  # the only label of its class
    is_labelled = np.arange(40) < n_labelled
    is_labelled[-1] = True
    usual = usual_distances(distance, is_labelled)
    expected = [d for d, labelled in zip(distance, is_labelled, strict=True) if labelled and d]
    assert usual.tolist() == sorted(distance if n_labelled < 20 else expected)


def test_unsure_items_have_no_label_and_too_little_confidence():
    confidence = np.array([0.5, 0.8, 0.79999, 0.1, 1.0, np.nan])
    is_labelled = np.array([False, False, False, True, False, False])
    marks = unsure_items(confidence, is_labelled, 0.8)
    assert marks.tolist() == [True, False, True, False, False, True]
    assert unsure_items(confidence, is_labelled, None) is None
