"""Names of classes are for people: a class that is renamed must not change a result."""

import numpy as np
import pytest
from samples import Blobs, Digits

from newfound import (
    ConstrainedDBSCAN,
    ConstrainedWard,
    SemiSupervisedKMeans,
    SplitMergeMixture,
    count_categories,
    rehearse,
)
from newfound.labels import encode_labels
from newfound.mixture.class_order import ClassOrder
from newfound.mixture.rows import row_keys

pytestmark = pytest.mark.filterwarnings("ignore:The count speaks", "ignore:Only .* known")


def data_of(sample):
    """Features and labels; overlapping blobs, so that starts and ties matter."""
    if sample == "digits":
        return Digits.X[:300], list(Digits.y[:300])
    rng = np.random.default_rng(5)
    if sample == "ties":  # many equal rows, some of them with different labels
        noise = rng.normal(size=(len(Blobs.X), 4))
        return np.round(Blobs.X[:, :4] / 5 + 0.5 * noise), list(Blobs.y)
    return (Blobs.X + 3 * rng.normal(size=Blobs.X.shape)).astype(np.float32), list(Blobs.y)


def renamed(y, seed):
    """Labels under other names, and old name → new name; novel categories keep theirs."""
    classes = sorted({name for name in y if name is not None})
    shuffled = np.random.default_rng(seed).permutation(classes).tolist()
    assert shuffled != classes
    names = dict(zip(classes, shuffled, strict=True))
    return [names.get(name) for name in y], names


def check_same(first, second, names):
    """The same categories under new names, in the order of these names."""
    names_of = [str(names.get(name, name)) for name in first.category_names_]
    np.testing.assert_array_equal(sorted(second.classes_), second.classes_)
    np.testing.assert_array_equal(
        np.array(names_of)[first.labels_], second.category_names_[second.labels_]
    )
    return [names_of.index(name) for name in second.category_names_]


samples = pytest.mark.parametrize("sample", ["digits", "blobs", "ties"])
seeds = pytest.mark.parametrize("seed", [0, 1])


@samples
@seeds
def test_count(sample, seed):
    X, y = data_of(sample)
    other, _ = renamed(y, seed)
    assert count_categories(X, y, random_state=0) == count_categories(X, other, random_state=0)


@samples
@pytest.mark.parametrize(
    "settings",
    [{}, {"whiten": True, "assign": "soft", "max_passes": 2}, {"acceptance": "literal"}],
    ids=str,
)
def test_mixture(sample, settings):
    X, y = data_of(sample)
    other, names = renamed(y, 0)
    first, second = (
        SplitMergeMixture(n_init=2, random_state=0, **settings).fit(X, labels)
        for labels in (y, other)
    )
    assert first.n_novel_ == second.n_novel_
    assert first.n_novel_interval_ == second.n_novel_interval_
    order = check_same(first, second, names)
    for name in ("means_", "covariances_", "weights_", "prototypes_", "offsets_", "stability_"):
        np.testing.assert_array_equal(getattr(second, name), getattr(first, name)[order])
    np.testing.assert_array_equal(second.predict_proba(X), first.predict_proba(X)[:, order])
    np.testing.assert_array_equal(np.array(order)[second.predict(X)], first.predict(X))


def test_moves_are_told_with_the_numbers_of_the_names():
    X, y = data_of("digits")
    other, names = renamed(y, 0)
    told = []
    first = SplitMergeMixture(n_init=1, random_state=0).fit(X, y)
    second = SplitMergeMixture(n_init=1, random_state=0, callback=told.append).fit(X, other)
    assert told == second.history_
    number_of = np.array([second.classes_.tolist().index(names[name]) for name in first.classes_])
    merges_with_known = 0
    for before, after in zip(first.history_, second.history_, strict=True):
        for one, two in zip(before.moves, after.moves, strict=True):
            assert (one.kind, one.accepted) == (two.kind, two.accepted)
            assert one.log_ratio == two.log_ratio
            merges_with_known += one.kind == "merge" and one.parents[0] < 5
            for numbers, others in ((one.parents, two.parents), (one.children, two.children)):
                assert tuple(number_of[i] if i < 5 else i for i in numbers) == others
    assert merges_with_known


@samples
def test_refit(sample):
    X, y = data_of(sample)
    other, names = renamed(y, 0)
    start = SplitMergeMixture(n_init=1, random_state=1).fit(X, y)
    number_of = np.arange(start.n_components_)
    classes = sorted(names)
    number_of[: len(names)] = [classes.index(names[name]) for name in classes]
    first = SplitMergeMixture(random_state=0).refit(X, y, start.labels_)
    second = SplitMergeMixture(random_state=0).refit(X, other, number_of[start.labels_])
    check_same(first, second, names)


@samples
@seeds
def test_k_means(sample, seed):
    X, y = data_of(sample)
    other, names = renamed(y, seed)
    first, second = (
        SemiSupervisedKMeans(10, n_init=2, random_state=0).fit(X, labels) for labels in (y, other)
    )
    order = check_same(first, second, names)
    np.testing.assert_array_equal(second.cluster_centers_, first.cluster_centers_[order])
    assert first.inertia_ == second.inertia_


@samples
@pytest.mark.parametrize("make", [ConstrainedWard, ConstrainedDBSCAN])
def test_alternatives(sample, make):
    X, y = data_of(sample)
    other, names = renamed(y, 0)
    first, second = make().fit(X, y), make().fit(X, other)
    order = check_same(first, second, names)
    np.testing.assert_array_equal(second.prototypes_, first.prototypes_[order])


@samples
@pytest.mark.parametrize("design", ["hidden", "labelled"])
def test_rehearsal(sample, design):
    X, y = data_of(sample)
    other, _ = renamed(y, 0)
    shuffle = np.random.default_rng(2).permutation(len(X))
    mixture, settings = SplitMergeMixture(), {"design": design, "n_draws": 2, "random_state": 0}
    first = rehearse(mixture, X, y, **settings)
    second = rehearse(mixture, X[shuffle], [other[i] for i in shuffle], **settings)
    np.testing.assert_array_equal(first.n_hidden, second.n_hidden)
    np.testing.assert_array_equal(first.n_components, second.n_components)


def test_numbers_there_and_back():
    X = np.random.default_rng(0).normal(size=(12, 2))
    partial = encode_labels(["b", "a", "c", "d", None, "a"] * 2, 12)
    order = ClassOrder.of(partial, row_keys(X))
    labels = np.array([-1, 0, 1, 2, 3, 4, 9])
    assert order.number_by_content(labels)[[0, 5, 6]].tolist() == [-1, 4, 9]
    np.testing.assert_array_equal(order.number_by_name(order.number_by_content(labels)), labels)
    components = np.array([*partial.classes[order.by_name], "new"])
    assert order.sort_by_name(components).tolist() == ["a", "b", "c", "d", "new"]


def test_the_order_depends_on_rows_and_weights_only():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.array(["a", "b", "c", "d"] * 10)
    weights = np.arange(40) % 3
    keys = row_keys(X)

    def classes_in_order(y, keys, weights=None):
        partial = encode_labels(y, len(y))
        return partial.classes[ClassOrder.of(partial, keys, weights).by_name].tolist()

    expected = classes_in_order(y, keys)
    shuffle = np.random.default_rng(1).permutation(40)
    assert classes_in_order(y[shuffle], keys[shuffle]) == expected
    names = dict(zip("abcd", "dcab", strict=True))
    other = np.array([names[name] for name in y])
    assert classes_in_order(other, keys) == [names[name] for name in expected]
    repeated = np.repeat(np.arange(40), weights)
    assert classes_in_order(y[repeated], keys[repeated]) == classes_in_order(y, keys, weights)


def test_classes_of_the_same_rows_are_told_apart_by_how_often_they_have_them():
    keys = np.array([7, 7, 7, 8, 8], dtype=np.uint64)
    for y in (["a", "a", "b", "a", "b"], ["b", "b", "a", "b", "a"]):
        partial = encode_labels(y, 5)
        first = partial.classes[ClassOrder.of(partial, keys).by_name][0]
        assert first == y[2]


def test_without_labels_there_is_nothing_to_order():
    order = ClassOrder.of(encode_labels(None, 3), row_keys(np.eye(3)))
    np.testing.assert_array_equal(order.number_by_content(np.array([2, 0, 1])), [2, 0, 1])
    assert len(order.by_content) == len(order.by_name) == 0
