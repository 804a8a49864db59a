import numpy as np
import pytest
from scipy import stats as distributions
from scipy.special import log_softmax
from sklearn.datasets import load_digits

from newfound.mixture.assignment import (
    assign_soft,
    log_joint,
    mixture_parameters,
    nearest_labels,
    prototypes_of,
    spherical_variance,
)
from newfound.mixture.estimator import SplitMergeMixture
from newfound.mixture.prior import NIWPrior
from newfound.mixture.stats import GaussianStats


def partially_labelled(seed=0, n=40):
    rng = np.random.default_rng(seed)
    X = np.concatenate(
        [rng.normal(size=(n, 2)) + 6 * np.array(c) for c in ((0, 0), (1, 0), (0, 1))]
    )
    truth = np.repeat(np.arange(3), n)
    codes = np.where((truth < 2) & (rng.random(3 * n) < 0.5), truth, -1)
    return X, truth, codes


def test_prototypes_of_known_classes_are_their_labelled_means():
    X, truth, codes = partially_labelled()
    found = prototypes_of(X, codes, truth, n_known=2)
    for code in (0, 1):
        np.testing.assert_allclose(found[code], X[codes == code].mean(axis=0))
    np.testing.assert_allclose(found[2], X[truth == 2].mean(axis=0))


@pytest.mark.parametrize("assign", ["nearest", "soft"])
def test_rows_find_their_component_and_labels_stay(assign):
    X, truth, codes = partially_labelled()
    rng = np.random.default_rng(1)
    start = np.where(rng.random(len(X)) < 0.2, rng.integers(0, 3, len(X)), truth)
    start = np.where(codes >= 0, codes, start)
    # a labelled row in the middle of another class
    misplaced = np.flatnonzero(codes == 0)[0]
    X[misplaced] = X[truth == 2].mean(axis=0)
    if assign == "nearest":
        labels = nearest_labels(X, codes, start, n_known=2, n_rounds=5)
    else:
        prior = NIWPrior(np.zeros(2), 0.01, 4.0, np.eye(2) / 4)
        labels = assign_soft(X, codes, start, 2, prior)
    assert (labels[codes >= 0] == codes[codes >= 0]).all()
    assert (labels == truth).mean() > 0.97


def test_nearest_assignment_is_a_fixed_point():
    X, truth, codes = partially_labelled(seed=3)
    labels = nearest_labels(X, codes, truth, n_known=2, n_rounds=50)
    prototypes = prototypes_of(X, codes, labels, 2)
    squared = ((X[:, None] - prototypes[None]) ** 2).sum(axis=2)
    free = codes < 0
    np.testing.assert_array_equal(labels[free], squared[free].argmin(axis=1))


def test_a_component_may_lose_all_its_rows():
    X = np.array([[0.0, 0.0], [4.0, 0.0], [-4.0, 0.0], [4.1, 0.0], [-4.1, 0.0], [0.1, 0.0]])
    codes = np.array([0, -1, -1, -1, -1, -1])
    # component 1 holds the two outer rows, and its mean lies among those of class 0
    labels = nearest_labels(X, codes, np.array([0, 1, 1, 2, 3, 0]), n_known=1, n_rounds=5)
    np.testing.assert_array_equal(labels, [0, 2, 3, 2, 3, 0])


def test_log_joint_is_equation_4():
    rng = np.random.default_rng(4)
    V = rng.normal(size=(7, 3))
    means, weights = rng.normal(size=(2, 3)), np.array([0.3, 0.7])
    roots = rng.normal(size=(2, 3, 3))
    covariances = roots @ roots.transpose(0, 2, 1) + np.eye(3)
    found = np.exp(log_joint(V, means, covariances, weights)).sum(axis=1)
    expected = sum(
        weight * distributions.multivariate_normal(mean, covariance).pdf(V)
        for weight, mean, covariance in zip(weights, means, covariances, strict=True)
    )
    np.testing.assert_allclose(found, expected)


def test_parameters_are_shrunk_by_the_posterior():
    X = np.random.default_rng(5).normal(size=(4, 3))
    prior = NIWPrior(np.zeros(3), 0.5, 6.0, np.eye(3))
    stats = GaussianStats.from_labels(X, np.array([0, 0, 0, 1]), 3)
    means, covariances, weights = mixture_parameters(stats, prior)
    np.testing.assert_allclose(weights, [0.75, 0.25, 0.0])
    np.testing.assert_allclose(means[1], X[3])
    np.testing.assert_allclose(means[2], prior.m)
    np.testing.assert_allclose(covariances[0], prior.update(stats[0]).expected_covariance())
    assert all(np.linalg.eigvalsh(covariance)[0] > 0 for covariance in covariances)


def labelled_distances(seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(4), 50)
    rows = 2 * np.eye(4)[codes] + spread * rng.normal(size=(200, 4))
    means = np.stack([rows[codes == code].mean(axis=0) for code in range(4)])
    return ((rows[:, None] - means) ** 2).sum(axis=2), codes, np.bincount(codes)


@pytest.mark.parametrize("spread", [0.5, 1.0, 2.0])
def test_spherical_variance_is_that_of_spherical_classes(spread):
    found = spherical_variance(*labelled_distances(spread=spread), 1.0, np.zeros(4))
    assert found == pytest.approx(spread**2, rel=0.35)


def test_spherical_variance_does_not_depend_on_the_scale_it_is_searched_from():
    given = labelled_distances()
    assert spherical_variance(*given, 0.5, np.zeros(4)) == pytest.approx(
        spherical_variance(*given, 0.9, np.zeros(4)), rel=1e-3
    )


def slow_log_likelihood(variance, squared, codes, sizes, offsets):
    """Mean log probability of the labelled rows' own classes, a row at a time."""
    total = 0.0
    for row, code in zip(squared, codes, strict=True):
        distances = row.copy()
        distances[code] *= (sizes[code] / (sizes[code] - 1)) ** 2
        terms = np.exp(-0.5 * (distances - offsets) / variance)
        total += np.log(terms[code] / terms.sum())
    return total / len(codes)


@pytest.mark.parametrize("offsets", [[0, 0, 0, 0], [1, -1, 0.5, 0], [0, 3, 0, 0]])
def test_spherical_variance_is_the_likeliest_with_the_offsets(offsets):
    given = labelled_distances()
    found = spherical_variance(*given, 1.0, np.array(offsets))
    best = slow_log_likelihood(found, *given, offsets)
    for factor in (0.5, 0.9, 1.1, 2):
        assert slow_log_likelihood(factor * found, *given, offsets) < best


@pytest.mark.parametrize("n", [2, 3, 5])
def test_the_prototype_of_a_labelled_row_is_the_mean_of_the_other_rows_of_its_class(n):
    """In classes of few rows, the own row pulls the mean far towards itself."""
    rng = np.random.default_rng(n)
    codes = np.repeat(np.arange(40), n)
    rows = 2 * rng.normal(size=(40, 6))[codes] + rng.normal(size=(40 * n, 6))
    means = np.stack([rows[codes == code].mean(axis=0) for code in range(40)])
    squared = ((rows[:, None] - means) ** 2).sum(axis=2)
    left_out = squared.copy()
    for i, code in enumerate(codes):
        others = np.flatnonzero((codes == code) & (np.arange(len(codes)) != i))
        left_out[i, code] = ((rows[i] - rows[others].mean(axis=0)) ** 2).sum()
    variances = np.exp(np.linspace(-2, 4, 600))
    likelihoods = [
        (log_softmax(-0.5 * left_out / variance, axis=1)[np.arange(len(codes)), codes]).mean()
        for variance in variances
    ]
    found = spherical_variance(squared, codes, np.full(40, n), 1.0, np.zeros(40))
    assert found == pytest.approx(variances[np.argmax(likelihoods)], rel=0.02)


def test_offsets_make_another_variance_unless_they_are_all_equal():
    given = labelled_distances()
    without = spherical_variance(*given, 1.0, np.zeros(4))
    assert spherical_variance(*given, 1.0, np.full(4, 7.0)) == pytest.approx(without)
    # classes that are drawn nearer than they are make rows less certain
    assert spherical_variance(*given, 1.0, np.array([0, 3.0, 0, 0])) > 1.2 * without


def test_without_two_rows_of_a_class_the_variance_is_the_fallback():
    single, one_class = (np.array([0, 1]), np.array([1, 1])), (np.zeros(3, int), np.array([3]))
    assert spherical_variance(np.ones((2, 3)), *single, 0.7, np.zeros(3)) == 0.7
    assert spherical_variance(np.ones((3, 1)), *one_class, 0.7, np.zeros(1)) == 0.7


def test_confidence_of_digits_is_near_the_share_that_is_right():
    X, truth = load_digits(return_X_y=True)
    y = np.where((truth < 5) & (np.arange(len(truth)) % 2 == 0), truth, -1)
    mixture = SplitMergeMixture(n_components=10, random_state=0).fit(X, y)
    sure = (mixture.predict_proba(X).max(axis=1) > 0.9) & (y == -1)
    majority = [np.bincount(truth[mixture.labels_ == k]).argmax() for k in range(10)]
    right = np.array(majority)[mixture.labels_] == truth
    assert sure.mean() > 0.1
    assert right[sure].mean() > 0.9
