"""Scores, compared with slow and obvious implementations."""

from collections import Counter
from fractions import Fraction
from itertools import combinations, permutations
from math import comb, log, sqrt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from newfound.errors import InputError
from newfound.metrics import count_error, discovery_scores, match_clusters

partitions = st.integers(1, 40).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 5), min_size=n, max_size=n),
        st.lists(st.integers(0, 7), min_size=n, max_size=n),
        st.sets(st.integers(0, 5)).map(sorted),
    )
)


def most_agreeing_rows(y_true, labels):
    """Try every way to give each cluster a class of its own, or none."""
    overlap = Counter(zip(labels, y_true, strict=True))
    clusters, classes = sorted(set(labels)), sorted(set(y_true))
    if len(clusters) <= len(classes):
        matches = (
            zip(clusters, some, strict=True) for some in permutations(classes, len(clusters))
        )
    else:
        matches = (zip(some, classes, strict=True) for some in permutations(clusters, len(classes)))
    return max(sum(overlap[pair] for pair in match) for match in matches)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_clusters", range(1, 7))
@pytest.mark.parametrize("n_classes", range(1, 7))
def test_match_is_the_best_of_all(n_classes, n_clusters, seed):
    rng = np.random.default_rng([n_classes, n_clusters, seed])
    y_true = rng.integers(n_classes, size=30).tolist()
    labels = rng.integers(n_clusters, size=30).tolist()
    best = most_agreeing_rows(y_true, labels)
    match = match_clusters(y_true, labels)
    agreeing = sum(match.get(label) == truth for truth, label in zip(y_true, labels, strict=True))
    scores = discovery_scores(y_true, labels, known_classes=[0])
    assert agreeing == best
    assert scores.n_correct_old + scores.n_correct_new == best


@given(partitions)
def test_no_two_clusters_get_one_class(case):
    y_true, labels, _ = case
    match = match_clusters(y_true, labels)
    assert len(set(match.values())) == len(match) == min(len(set(y_true)), len(set(labels)))


@given(partitions)
def test_all_is_the_weighted_mean_of_old_and_new(case):
    y_true, labels, known = case
    scores = discovery_scores(y_true, labels, known)
    n = scores.n_old + scores.n_new
    w = Fraction(scores.n_old, n)
    old = Fraction(scores.n_correct_old, scores.n_old or 1)
    new = Fraction(scores.n_correct_new, scores.n_new or 1)
    assert n == len(y_true)
    assert scores.n_old == sum(truth in known for truth in y_true)
    assert scores.all == float(w * old + (1 - w) * new)
    assert scores.old == pytest.approx(float(old) if scores.n_old else np.nan, nan_ok=True)
    assert scores.new == pytest.approx(float(new) if scores.n_new else np.nan, nan_ok=True)


@given(partitions, st.permutations(range(8)))
def test_the_names_of_clusters_do_not_matter(case, other_names):
    y_true, labels, known = case
    scores = discovery_scores(y_true, labels, known)
    renamed = discovery_scores(y_true, [other_names[label] for label in labels], known)
    assert renamed.all == scores.all
    assert (renamed.nmi, renamed.ari) == pytest.approx((scores.nmi, scores.ari))


@given(partitions, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(case, random):
    y_true, labels, known = case
    rows = list(zip(y_true, labels, strict=True))
    random.shuffle(rows)
    shuffled = discovery_scores(*zip(*rows, strict=True), known)
    assert shuffled.all == discovery_scores(y_true, labels, known).all


def test_old_and_new_share_one_match():
    """Cluster 0 holds an old and a new class: with two matches, both would count as right."""
    scores = discovery_scores([0, 0, 0, 1, 1], [0, 0, 0, 0, 0], known_classes=[0])
    assert (scores.all, scores.old, scores.new) == (0.6, 1.0, 0.0)


def test_rows_of_surplus_clusters_are_errors():
    scores = discovery_scores([0, 0, 0, 0], [5, 5, 6, 7], known_classes=[0])
    assert match_clusters([0, 0, 0, 0], [5, 5, 6, 7]) == {5: 0}
    assert scores.all == 0.5


def test_rows_of_surplus_classes_are_errors():
    assert discovery_scores([0, 0, 1, 2], [5, 5, 5, 5], known_classes=[0]).all == 0.5


def test_accuracy_of_each_class():
    scores = discovery_scores([0, 0, 0, 0, 1, 1], [3, 3, 3, 4, 4, 4], known_classes=[0])
    assert scores.per_class == {0: 0.75, 1: 1.0}


def test_perfect_partition():
    scores = discovery_scores(["a", "b", "c"], [2, 0, 1], known_classes=["a"])
    assert (scores.all, scores.old, scores.new) == (1.0, 1.0, 1.0)
    assert (scores.nmi, scores.ari) == pytest.approx((1.0, 1.0))


@pytest.mark.parametrize("column", [list, np.array, pd.Series, pd.Categorical])
def test_classes_may_be_texts(column):
    y_true = column(["cat", "cat", "elk"])
    scores = discovery_scores(y_true, [1, 1, 0], known_classes=["cat"])
    assert match_clusters(y_true, [1, 1, 0]) == {0: "elk", 1: "cat"}
    assert scores.per_class == {"cat": 1.0, "elk": 1.0}
    assert (scores.n_old, scores.n_new) == (2, 1)


def test_match_speaks_in_plain_python_values():
    ((cluster, name),) = match_clusters(np.array([4, 4]), np.array([9, 9])).items()
    assert (type(cluster), type(name)) == (int, int)


@pytest.mark.parametrize("known", [[], [7]])
def test_without_rows_of_known_classes_old_is_nan(known):
    scores = discovery_scores([0, 1], [0, 1], known)
    assert np.isnan(scores.old)
    assert scores.new == scores.all == 1.0


def test_without_rows_of_novel_classes_new_is_nan():
    scores = discovery_scores([0, 1], [0, 0], known_classes=[0, 1])
    assert np.isnan(scores.new)
    assert scores.old == scores.all == 0.5


@pytest.mark.parametrize("seed", range(3))
def test_rand_index_by_counting_pairs(seed):
    y_true, labels = np.random.default_rng(seed).integers(4, size=(2, 25)).tolist()
    pairs = list(combinations(range(25), 2))
    in_class = sum(y_true[i] == y_true[j] for i, j in pairs)
    in_cluster = sum(labels[i] == labels[j] for i, j in pairs)
    in_both = sum(y_true[i] == y_true[j] and labels[i] == labels[j] for i, j in pairs)
    expected = in_class * in_cluster / comb(25, 2)
    index = (in_both - expected) / ((in_class + in_cluster) / 2 - expected)
    assert discovery_scores(y_true, labels, [0]).ari == pytest.approx(index)


@pytest.mark.parametrize("seed", range(3))
def test_mutual_information_by_its_definition(seed):
    y_true, labels = np.random.default_rng(seed).integers(4, size=(2, 25)).tolist()
    p_class, p_cluster = Counter(y_true), Counter(labels)
    information = sum(
        n / 25 * log(25 * n / (p_class[truth] * p_cluster[label]))
        for (truth, label), n in Counter(zip(y_true, labels, strict=True)).items()
    )
    entropies = [-sum(n / 25 * log(n / 25) for n in p.values()) for p in (p_class, p_cluster)]
    mean = sum(entropies) / 2
    assert sqrt(entropies[0] * entropies[1]) != pytest.approx(mean, rel=1e-9)  # which mean matters
    assert discovery_scores(y_true, labels, [0]).nmi == pytest.approx(information / mean)


@pytest.mark.parametrize(
    ("n_found", "n_true", "error"),
    [(10, 10, 0.0), (12, 10, 0.2), (5, 10, 0.5), (9.5, 10, 0.05), (3, 0, 3.0), (0, 0, 0.0)],
)
def test_error_of_the_number_of_categories(n_found, n_true, error):
    assert count_error(n_found, n_true) == pytest.approx(error)


@pytest.mark.parametrize(("n_found", "error"), [(10.5, 0.0), (9.5, 0.0), (12, 0.15), (8, 0.15)])
def test_tolerance_is_forgiven_on_both_sides(n_found, error):
    assert count_error(n_found, 10, tolerance=0.5) == pytest.approx(error)


@pytest.mark.parametrize(
    ("y_true", "labels", "shapes"),
    [
        ([], [], r"\(0,\) and \(0,\)"),
        ([1, 2], [1, 2, 3], r"\(2,\) and \(3,\)"),
        ([[1], [2]], [[1], [2]], r"\(2, 1\) and \(2, 1\)"),
        (1, 1, r"\(\) and \(\)"),
    ],
    ids=["empty", "mismatched", "2-d", "scalars"],
)
def test_input_of_the_wrong_shape_is_named(y_true, labels, shapes):
    with pytest.raises(InputError, match=f"shape .n,. with n > 0.*got {shapes}"):
        discovery_scores(y_true, labels, known_classes=[1])
    with pytest.raises(InputError, match=shapes):
        match_clusters(y_true, labels)
