"""Unit length, principal directions, unit length, against numpy's SVD."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from newfound.errors import InputError
from newfound.mixture.projection import Projection, unit_rows


@parametrize_with_checks([Projection(), Projection(2)])
def test_scikit_learn_accepts_the_transformer(estimator, check):
    check(estimator)


@pytest.fixture
def X():
    """Rows around a point, with a spectrum in which every direction has a variance of its own."""
    rng = np.random.default_rng(3)
    return rng.normal(size=(60, 6)) * [3, 2.2, 1.6, 1.1, 0.7, 0.4] + [1, -2, 0, 4, 1, 0]


def slow_units(X):
    return np.array([row / np.sqrt(sum(value**2 for value in row)) for row in X.tolist()])


def slow_basis(X):
    """Mean, directions with their largest entry positive, variances; from an SVD."""
    units = slow_units(X)
    mean = units.mean(axis=0)
    _, singular, directions = np.linalg.svd(units - mean, full_matrices=False)
    for direction in directions:
        if direction[np.abs(direction).argmax()] < 0:
            direction *= -1
    return mean, directions, singular**2 / len(X)


def test_basis_is_that_of_the_svd(X):
    mean, directions, variances = slow_basis(X)
    projection = Projection(4).fit(X)
    np.testing.assert_allclose(projection.mean_, mean, atol=1e-12)
    np.testing.assert_allclose(projection.components_, directions[:4], atol=1e-8)
    np.testing.assert_allclose(
        projection.explained_variance_ratio_, variances[:4] / variances.sum(), atol=1e-12
    )


def test_transform_is_centre_project_normalise(X):
    mean, directions, _ = slow_basis(X)
    expected = slow_units((slow_units(X) - mean) @ directions[:3].T)
    np.testing.assert_allclose(Projection(3).fit_transform(X), expected, atol=1e-8)


def test_new_rows_are_projected_on_the_old_basis(X):
    mean, directions, _ = slow_basis(X[:40])
    new = Projection(3).fit(X[:40]).transform(X[40:])
    expected = slow_units((slow_units(X[40:]) - mean) @ directions[:3].T)
    np.testing.assert_allclose(new, expected, atol=1e-8)


def test_directions_are_orthonormal(X):
    components = Projection(5).fit(X).components_
    np.testing.assert_allclose(components @ components.T, np.eye(5), atol=1e-12)


def test_all_directions_explain_all_variance(X):
    ratios = Projection(6).fit(X).explained_variance_ratio_
    assert ratios.sum() == pytest.approx(1)
    assert (np.diff(ratios) <= 0).all()


def test_projected_rows_have_unit_length(X):
    lengths = np.linalg.norm(Projection(3).fit_transform(X), axis=1)
    np.testing.assert_allclose(lengths, 1)


@pytest.mark.parametrize("exact_columns", [2048, 0], ids=["exact", "randomised"])
def test_the_order_of_rows_changes_neither_basis_nor_signs(X, exact_columns, monkeypatch):
    monkeypatch.setattr("newfound.mixture.projection.EXACT_COLUMNS", exact_columns)
    forward, backward = Projection(4).fit(X), Projection(4).fit(X[::-1])
    assert forward.components_.tobytes() == backward.components_.tobytes()


@pytest.mark.parametrize("exact_columns", [2048, 0], ids=["exact", "randomised"])
def test_the_largest_entry_of_each_direction_is_positive(X, exact_columns, monkeypatch):
    monkeypatch.setattr("newfound.mixture.projection.EXACT_COLUMNS", exact_columns)
    components = Projection(6).fit(X).components_
    assert (components.max(axis=1) == np.abs(components).max(axis=1)).all()


@pytest.mark.parametrize("scale", [1e-200, 1e-6, 1e6, 1e200])
def test_the_unit_of_measurement_does_not_matter(X, scale):
    scaled = Projection(3).fit_transform(X * scale)
    np.testing.assert_allclose(scaled, Projection(3).fit_transform(X), atol=1e-10)


def test_the_length_of_a_row_does_not_matter(X):
    lengths = np.random.default_rng(0).uniform(0.1, 10, size=(len(X), 1))
    stretched = Projection(3).fit_transform(X * lengths)
    np.testing.assert_allclose(stretched, Projection(3).fit_transform(X), atol=1e-10)


def test_unit_rows_leave_zeros_alone():
    rows = unit_rows(np.array([[3.0, 4.0], [0.0, 0.0], [1e-300, 0.0], [1e300, 1e300]]))
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0, 0], [1, 0], [0.5**0.5, 0.5**0.5]])


def test_rows_of_zeros_are_projected_to_finite_numbers(X):
    X[::7] = 0
    assert np.isfinite(Projection(3).fit_transform(X)).all()


def test_only_zeros_give_only_zeros():
    projection = Projection(3)
    assert (projection.fit_transform(np.zeros((5, 4))) == 0).all()
    assert (projection.explained_variance_ratio_ == 0).all()


def test_columns_of_zeros_have_no_part_in_the_directions(X):
    padded = np.insert(X, 2, 0.0, axis=1)
    projection = Projection(4).fit(padded)
    np.testing.assert_allclose(projection.components_[:, 2], 0, atol=1e-12)
    np.testing.assert_allclose(
        np.delete(projection.components_, 2, axis=1), Projection(4).fit(X).components_, atol=1e-10
    )


@pytest.mark.parametrize(
    ("n", "d", "q", "kept"), [(5, 8, 128, 4), (50, 8, 128, 8), (50, 8, 3, 3), (2, 8, 3, 1)]
)
def test_no_more_directions_than_rows_or_columns_allow(n, d, q, kept):
    X = np.random.default_rng(0).normal(size=(n, d))
    projection = Projection(q).fit(X)
    assert projection.n_directions_ == kept
    assert projection.components_.shape == (kept, d)
    assert projection.transform(X).shape == (n, kept)
    if kept < q:
        assert projection.explained_variance_ratio_.sum() == pytest.approx(1)


@pytest.mark.parametrize("q", [1, 5, 60])
def test_randomised_basis_agrees_with_the_exact_one(q, monkeypatch):
    """Against the exact basis, on a spectrum that decays as that of features does."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 60)) * 0.8 ** np.arange(60) + rng.normal(size=60)
    exact = Projection(q).fit(X)
    monkeypatch.setattr("newfound.mixture.projection.EXACT_COLUMNS", 10)
    randomised = Projection(q).fit(X)
    leading = min(q, 20)
    np.testing.assert_allclose(
        randomised.components_[:leading], exact.components_[:leading], atol=1e-5
    )
    np.testing.assert_allclose(
        randomised.explained_variance_ratio_, exact.explained_variance_ratio_, atol=1e-8
    )


@pytest.mark.parametrize("exact_columns", [2048, 0], ids=["exact", "randomised"])
def test_blocks_of_rows_give_the_same_basis(X, exact_columns, monkeypatch):
    monkeypatch.setattr("newfound.mixture.projection.EXACT_COLUMNS", exact_columns)
    whole = Projection(4).fit(X)
    monkeypatch.setattr("newfound.mixture.projection._BLOCK_ROWS", 7)
    blocked = Projection(4).fit(X)
    np.testing.assert_allclose(blocked.components_, whole.components_, atol=1e-10)
    np.testing.assert_allclose(blocked.transform(X), whole.transform(X), atol=1e-10)


def test_float32_rows_are_projected_to_float32(X):
    single = Projection(3).fit_transform(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, Projection(3).fit_transform(X), atol=1e-5)


def within_class_covariance(rows, classes):
    residuals = np.concatenate(
        [rows[classes == c] - rows[classes == c].mean(0) for c in set(classes)]
    )
    return residuals.T @ residuals / (len(residuals) - len(set(classes)))


@pytest.fixture
def elongated():
    """Six classes, four of them known, that vary most in two columns without information."""
    rng = np.random.default_rng(11)
    truth = np.repeat(np.arange(6), 500)
    spread = np.array([0.2, 0.2, 0.2, 0.2, 1.0, 1.0, 0.2])
    centres = np.zeros((6, 7))
    centres[:, :4], centres[:, 6] = rng.normal(size=(6, 4)), 8
    X = centres[truth] + spread * rng.normal(size=(3000, 7))
    y = np.where((truth < 4) & (rng.random(3000) < 0.7), truth, -1)
    return X, truth, y


def test_whitening_makes_classes_round(elongated):
    """Before the last normalisation the labelled classes have covariance I on average."""
    X, _, y = elongated
    projection = Projection(6, whiten=True).fit(X, y)
    labelled = y >= 0
    plain = projection._project(X[labelled])
    whitened = within_class_covariance(plain @ projection.whitening_, y[labelled])
    assert np.linalg.cond(within_class_covariance(plain, y[labelled])) > 20
    np.testing.assert_allclose(whitened, np.eye(6), atol=0.05)


def separation(rows, truth):
    """Squared distance between the means of classes, over that of rows to their own mean."""
    means = np.array([rows[truth == c].mean(axis=0) for c in np.unique(truth)])
    between = ((means[:, None] - means) ** 2).sum(axis=2).mean()
    return between / ((rows - means[truth]) ** 2).sum(axis=1).mean()


def test_whitening_separates_classes_known_and_novel(elongated):
    X, truth, y = elongated
    plain = Projection(6).fit_transform(X)
    whitened = Projection(6, whiten=True).fit(X, y).transform(X)
    assert separation(whitened, truth) > 3 * separation(plain, truth)
    novel = truth >= 4
    assert separation(whitened[novel], truth[novel] - 4) > separation(
        plain[novel], truth[novel] - 4
    )


def test_without_whitening_labels_are_not_read(X):
    with_labels = Projection(3).fit(X, np.arange(len(X)) % 2)
    assert with_labels.whitening_ is None
    assert (with_labels.transform(X) == Projection(3).fit_transform(X)).all()


def test_whitening_with_one_row_more_than_classes_stays_finite(X):
    y = np.full(len(X), -1)
    y[:4] = [0, 0, 1, 2]
    assert np.isfinite(Projection(5, whiten=True).fit(X, y).transform(X)).all()


def test_whitening_by_labelled_rows_that_are_all_the_same_stays_finite(X):
    X[:10] = X[0]
    y = np.where(np.arange(len(X)) < 10, 0, -1)
    assert np.isfinite(Projection(5, whiten=True).fit(X, y).transform(X)).all()


@pytest.mark.parametrize("y", [None, [-1] * 60, [*range(60)]], ids=["None", "none", "singles"])
def test_whitening_needs_a_class_with_two_rows(X, y):
    n_labelled = 0 if y is None else sum(label >= 0 for label in y)
    with pytest.raises(InputError, match=f"at least 2 labelled.*labels {n_labelled} rows.*Label"):
        Projection(whiten=True).fit(X, y)


@pytest.mark.parametrize("n_directions", [0, -1, 2.5, "3", None, True])
def test_number_of_directions_must_be_a_positive_whole_number(X, n_directions):
    with pytest.raises(InputError, match=f"n_directions.*at least 1; got {n_directions!r}"):
        Projection(n_directions).fit(X)


def test_columns_are_named_after_the_class(X):
    frame = Projection(2).set_output(transform="pandas").fit_transform(X)
    assert frame.columns.tolist() == ["projection0", "projection1"]
