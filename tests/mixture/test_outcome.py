import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from newfound import CategoryCount, SplitMergeMixture
from newfound.mixture import outcome
from newfound.mixture.outcome import vote
from newfound.mixture.sizes import FittedSizes, expect_sizes, fit_sizes, share_by_distance

few_classes = pytest.mark.filterwarnings(
    "ignore:No row is labelled", "ignore:Only .* known", "ignore:The count suggests"
)

# The vote


def test_alone_a_partition_stays_and_says_nothing_of_its_stability():
    labels, stability = vote(np.array([0, 1, 1]), [], n_known=1)
    np.testing.assert_array_equal(labels, [0, 1, 1])
    assert np.isnan(stability).all()


def test_other_numbers_for_the_same_partition_agree_fully():
    reference = np.array([0, 0, 1, 1, 2, 2, 3])
    renumbered = np.array([0, 0, 3, 3, 1, 1, 2])
    labels, stability = vote(reference, [renumbered, renumbered], n_known=1)
    np.testing.assert_array_equal(labels, reference)
    np.testing.assert_array_equal(stability, 1)


def test_known_classes_only_match_themselves():
    # the rows of class 0 and 1 changed places: no renaming, but disagreement
    labels, stability = vote(np.array([0, 0, 1, 1]), [np.array([1, 1, 0, 0])] * 2, n_known=2)
    np.testing.assert_array_equal(labels, [1, 1, 0, 0])
    np.testing.assert_array_equal(stability, 0)


def test_the_majority_wins_and_a_tie_goes_to_the_reference():
    reference = np.array([0, 0, 0, 1, 1, 1])
    moved = np.array([0, 0, 1, 1, 1, 1])
    np.testing.assert_array_equal(vote(reference, [moved], 0)[0], reference)
    labels, stability = vote(reference, [moved, moved], 0)
    np.testing.assert_array_equal(labels, moved)
    assert stability == pytest.approx([2 / 3, 3 / 4])


def test_more_and_fewer_components_than_the_reference():
    reference = np.array([0, 0, 1, 1, 2, 2])
    fewer, more = np.array([0, 0, 1, 1, 1, 1]), np.array([0, 1, 2, 2, 3, 4])
    labels, stability = vote(reference, [fewer, more], n_known=0)
    np.testing.assert_array_equal(labels, reference)
    assert stability[0] == pytest.approx((1 + 1 / 2) / 2)
    # one of the two that `fewer` holds together finds a partner in it, the other none
    assert stability[1] + stability[2] == pytest.approx((1 / 2 + 0) / 2 + (1 + 1 / 2) / 2)


def test_no_component_is_voted_away():
    reference = np.array([0, 0, 0, 0, 1, 2, 2, 2, 2])
    other = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1])
    labels, stability = vote(reference, [other, other], n_known=0)
    np.testing.assert_array_equal(labels, reference)
    assert stability[1] == 0


# Sizes, numbering and the variance


def overlapping_blobs(seed=0):
    """Eight classes of 60 rows; of the two novel ones, the wide one reaches into the dense one."""
    rng = np.random.default_rng(seed)
    centres, spreads = np.eye(9)[:8], np.array([0.1] * 6 + [0.05, 0.3])
    centres[7] = centres[6] + 0.5 * np.eye(9)[7]
    truth = np.repeat(np.arange(8), 60)
    X = centres[truth] + spreads[truth, None] * rng.normal(size=(480, 9))
    return X, truth, labels_of(truth, N_DRAWN)


#: Labels of each of six classes of 60 rows, as a draw may give them; and a quota.
N_DRAWN, QUOTA = np.array([27, 33, 30, 26, 34, 30]), np.full(6, 30)


def labels_of(truth, n_labels):
    """Labels of the first rows of each of six classes of 60."""
    of_known = truth < 6
    return np.where(of_known & (np.arange(len(truth)) % 60 < n_labels[truth * of_known]), truth, -1)


@pytest.mark.parametrize("sizes", ["unknown", "alike", 1.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_with_expected_sizes_novel_categories_are_more_alike(seed, sizes, fitted):
    blobs = overlapping_blobs(seed)
    plain = fitted(blobs, n_components=8, n_init=1, sizes=None)
    sized = fitted(blobs, n_components=8, n_init=1, sizes=sizes)
    large, small = np.bincount(plain.labels_)[6:]
    assert large - small >= 20
    large_sized, small_sized = np.bincount(sized.labels_)[6:]
    assert large_sized - small_sized < large - small
    np.testing.assert_array_equal(sized.prototypes_[:6], plain.prototypes_[:6])


def test_offsets_are_those_of_the_expected_sizes(digits, fitted):
    X, _, y = digits
    plain = fitted(digits, n_components=10, sizes=None)
    V, labels, free = plain.projection_.transform(X), plain.labels_, y == -1
    expected = expect_sizes(y, labels, 10, "alike", np.nan)
    fit = fit_sizes(share_by_distance(V[free]), plain.prototypes_, 5, expected)
    prototypes, offsets = fit.prototypes, fit.offsets
    squared = ((V[:, None] - prototypes) ** 2).sum(axis=2)
    expected = np.where(free, (squared - offsets).argmin(axis=1), y)
    assert (expected != labels).any()
    sized = fitted(digits, n_components=10, sizes="alike")
    order = [int(np.square(prototypes - p).sum(axis=1).argmin()) for p in sized.prototypes_]
    assert sorted(order) == list(range(10))
    np.testing.assert_allclose(sized.offsets_, offsets[order], atol=1e-6)
    np.testing.assert_allclose(sized.prototypes_, prototypes[order], atol=1e-6)
    np.testing.assert_array_equal(np.argsort(order)[expected], sized.labels_)


@few_classes
@pytest.mark.parametrize(
    ("sizes", "assign", "labels"),
    [
        (None, "nearest", "some"),
        ("alike", "soft", "some"),
        ("unknown", "soft", "some"),
        ("alike", "nearest", "none"),
        ("alike", "nearest", "all"),
        ("unknown", "nearest", "none"),
        ("unknown", "nearest", "all"),
    ],
)
def test_without_sizes_to_expect_offsets_are_zero(sizes, assign, labels):
    X, truth, y = overlapping_blobs()
    y = {"some": y, "none": np.full(480, -1), "all": truth}[labels]
    settings = {"n_components": 8, "assign": assign, "random_state": 0}
    mixture = SplitMergeMixture(sizes=sizes, **settings).fit(X, y)
    np.testing.assert_array_equal(mixture.offsets_, np.zeros(8))
    plain = SplitMergeMixture(sizes=None, **settings).fit(X, y)
    np.testing.assert_array_equal(mixture.labels_, plain.labels_)


def test_no_category_is_given_up_for_its_size(digits, monkeypatch, fitted):
    def far_too_small(share_rows, prototypes, n_known, expected):
        offsets = np.where(np.arange(len(prototypes)) == 7, -10.0, 0.0)
        return FittedSizes(prototypes, offsets, expected.unlabelled, converged=True, n_rounds=1)

    monkeypatch.setattr("newfound.mixture.outcome.fit_sizes", far_too_small)
    assert_same_as_without_sizes(digits, fitted)


@pytest.mark.parametrize("random_state", [3, 4, 7])
def test_sizes_and_prototypes_do_not_go_round_in_circles(digits, random_state):
    """As they do if prototypes move in every round."""
    X, truth, y = digits
    plain, sized = (
        SplitMergeMixture(n_components=10, sizes=sizes, n_init=1, random_state=random_state)
        .fit(X, y)
        .labels_
        for sizes in (None, "alike")
    )
    assert adjusted_rand_score(truth, sized) > adjusted_rand_score(truth, plain) + 0.03


def test_sizes_that_are_not_reached_change_nothing(digits, monkeypatch, fitted):
    assert fitted(digits, n_components=10, sizes="alike").offsets_.any()
    monkeypatch.setattr("newfound.mixture.sizes._N_ROUNDS", 1)
    assert_same_as_without_sizes(digits, fitted)


def assert_same_as_without_sizes(data, fitted):
    sized = fitted(data, n_components=10, sizes="alike")
    plain = fitted(data, n_components=10, sizes=None)
    np.testing.assert_array_equal(sized.offsets_, np.zeros(10))
    np.testing.assert_array_equal(sized.labels_, plain.labels_)
    np.testing.assert_array_equal(sized.predict_proba(data[0]), plain.predict_proba(data[0]))


def test_the_variance_is_fitted_with_the_offsets(digits, monkeypatch, fitted):
    seen = []

    def watch(squared, codes, sizes, fallback, offsets):
        seen.append(offsets)
        return original(squared, codes, sizes, fallback, offsets)

    original = outcome.spherical_variance
    monkeypatch.setattr(outcome, "spherical_variance", watch)
    mixture = fitted(digits, n_components=10, n_init=1, sizes="alike")
    assert len(seen) == 1
    np.testing.assert_array_equal(np.sort(seen[0]), np.sort(mixture.offsets_))


def test_a_part_of_many_labelled_rows_is_enough_for_the_variance(digits, monkeypatch, fitted):
    X, _, _ = digits
    all_rows = fitted(digits, n_components=10).predict_proba(X).max(axis=1)
    monkeypatch.setattr("newfound.mixture.outcome._ROWS_FOR_VARIANCE", 100)  # every second
    some_rows = fitted(digits, n_components=10).predict_proba(X).max(axis=1)
    assert (some_rows != all_rows).any()
    assert abs(some_rows.mean() - all_rows.mean()) < 0.03


def test_row_order_does_not_matter_to_sizes(digits):
    X, _, y = digits
    order = np.random.default_rng(1).permutation(len(X))
    settings = {"n_components": 10, "sizes": "alike", "random_state": 3}
    straight = SplitMergeMixture(**settings).fit(X, y)
    shuffled = SplitMergeMixture(**settings).fit(X[order], y[order])
    np.testing.assert_array_equal(shuffled.offsets_, straight.offsets_)
    np.testing.assert_array_equal(shuffled.labels_, straight.labels_[order])


def classes_of_one_size(labels="drawn"):
    """Six known and two novel classes of 60 rows; half of the labels drawn, or 30 of each."""
    truth = np.repeat(np.arange(8), 60)
    X = np.eye(8)[truth] + 0.3 * np.random.default_rng(0).normal(size=(480, 8))
    return X, truth, labels_of(truth, N_DRAWN if labels == "drawn" else QUOTA)


@pytest.mark.parametrize(
    ("labels", "settings", "expects"),
    [
        ("drawn", {}, True),
        ("quota", {}, False),
        ("drawn", {"sizes": "alike"}, True),
        ("drawn", {"sizes": 0.9}, True),
        ("quota", {"sizes": "alike"}, False),
        ("drawn", {"sizes": None}, False),
        ("drawn", {"acceptance": "literal"}, False),
        ("drawn", {"acceptance": "literal", "sizes": "alike"}, False),
    ],
)
def test_sizes_are_expected_where_labels_speak_for_them(labels, settings, expects):
    X, _, y = classes_of_one_size(labels)
    mixture = SplitMergeMixture(n_components=8, random_state=0, **settings).fit(X, y)
    assert mixture.offsets_.any() == expects


@pytest.mark.parametrize("n_absent", [0, 1])
def test_where_the_count_sees_a_known_class_absent_sizes_are_left_alone(n_absent):
    X, _, y = classes_of_one_size()
    count = CategoryCount(2.0, (1.0, 3.0), 0.9, 0.5, 0.4, 6, n_absent)
    mixture = SplitMergeMixture(count=count, random_state=0).fit(X, y)
    assert mixture.offsets_.any() == (n_absent == 0)


@pytest.mark.parametrize("sizes", ["unknown", "alike"])
def test_where_all_that_is_known_has_its_label_sizes_are_left_alone(sizes):
    X, truth, _ = classes_of_one_size()
    n_rows = np.array([50, 44, 39, 47, 41, 52, 50, 50])
    kept = np.flatnonzero(np.arange(480) % 60 < n_rows[truth])
    X, y = X[kept], np.where(truth < 6, truth, -1)[kept]
    mixture = SplitMergeMixture(n_components=8, sizes=sizes, random_state=0).fit(X, y)
    assert not mixture.offsets_.any()


def test_more_starts_keep_the_most_probable(digits):
    X, _, y = digits
    settings = {"acceptance": "literal", "max_passes": 3, "random_state": 7}
    one = SplitMergeMixture(8, n_init=1, **settings).fit(X, y)
    many = SplitMergeMixture(8, n_init=4, **settings).fit(X, y)
    assert many.history_[-1].log_likelihood >= one.history_[-1].log_likelihood
    assert np.isnan(one.stability_).all()
    assert ((many.stability_ >= 0) & (many.stability_ <= 1)).all()
    assert len(many.stability_) == many.n_components_
