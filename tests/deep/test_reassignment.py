"""The E-step on the device against the mixture's own way."""

import numpy as np
import pytest
import torch
from sklearn.covariance import ledoit_wolf

from newfound.deep import reassignment
from newfound.deep.reassignment import fit_projection, nearest_rounds, project
from newfound.mixture.assignment import nearest_labels
from newfound.mixture.projection import Projection, shrunk_covariance, unit_rows

N_ROWS, N_KNOWN, N_COMPONENTS, WIDE = 400, 4, 7, 10


class Some:
    """Rows around seven places, some of four classes labelled."""

    rng = np.random.default_rng(0)
    truth = rng.integers(0, N_COMPONENTS, N_ROWS)
    stretch = np.linspace(0.2, 1.5, WIDE)
    X = unit_rows(
        (
            2 * rng.normal(size=(N_COMPONENTS, WIDE))[truth]
            + rng.normal(size=(N_ROWS, WIDE)) * stretch
        ).astype(np.float32)
    )
    codes = np.where((truth < N_KNOWN) & (rng.random(N_ROWS) < 0.5), truth, -1)
    labels = np.where(codes >= 0, codes, rng.integers(0, N_COMPONENTS, N_ROWS))


@pytest.fixture(params=[8192, 32, 1])
def chunks(request, monkeypatch):
    monkeypatch.setattr(reassignment, "_CHUNK", request.param)


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("whiten", [False, True])
def test_the_projection_is_that_of_the_mixture(whiten):
    expected = Projection(WIDE, whiten=whiten).fit_in_order(Some.X, Some.codes, np.arange(N_ROWS))
    found = fit_projection(torch.from_numpy(Some.X), torch.from_numpy(Some.codes), whiten=whiten)
    np.testing.assert_allclose(found.mean_, expected.mean_, atol=1e-7)
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-6)
    ratio = found.explained_variance_ratio_
    np.testing.assert_allclose(ratio, expected.explained_variance_ratio_, atol=1e-7)
    if whiten:
        np.testing.assert_allclose(found.whitening_, expected.whitening_, rtol=1e-5, atol=1e-5)
    else:
        assert found.whitening_ is None
    V = expected.transform(Some.X)
    np.testing.assert_allclose(project(torch.from_numpy(Some.X), found).numpy(), V, atol=1e-5)
    np.testing.assert_allclose(found.transform(Some.X), V, atol=1e-5)


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("n_rounds", [0, 1, 2, 5, 50])
def test_rows_go_where_the_mixture_puts_them(n_rounds):
    V = Projection(WIDE).fit(Some.X).transform(Some.X)
    expected = nearest_labels(V, Some.codes, Some.labels, N_KNOWN, n_rounds)
    given = (torch.from_numpy(a) for a in (V, Some.codes, Some.labels))
    found = nearest_rounds(*given, N_KNOWN, n_rounds)
    np.testing.assert_array_equal(found.numpy(), expected)
    assert n_rounds == 0 or (expected != Some.labels).any()


def test_a_component_may_lose_all_its_rows():
    V = np.array([[0.0], [0.1], [1.0], [1.1], [0.6], [0.45]], dtype=np.float32)
    codes = np.array([0, 0, 1, 1, -1, -1])
    labels = np.array([0, 0, 1, 1, 2, 3])
    V[4:] = [[1.05], [0.05]]
    labels[4:] = 2  # their mean is far from both
    expected = nearest_labels(V, codes, labels, 2, 5)
    given = (torch.from_numpy(a) for a in (V, codes, labels))
    found = nearest_rounds(*given, 2, 5).numpy()
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found, [0, 0, 1, 1, 1, 0])


@pytest.mark.parametrize("n_rows", [3, 12, 200])
def test_the_shrunk_covariance_is_ledoit_and_wolfs(n_rows):
    X = np.random.default_rng(n_rows).normal(size=(n_rows, 5)) * [3, 1, 1, 0.5, 0.1]
    moments = X.T @ X / n_rows, float((np.square(X).sum(axis=1) ** 2).mean())
    expected, _ = ledoit_wolf(X, assume_centered=True)
    np.testing.assert_allclose(shrunk_covariance(*moments, n_rows), expected, rtol=1e-10)


def test_one_row_has_a_covariance():
    covariance = shrunk_covariance(np.outer([1.0, 2.0], [1.0, 2.0]), 25.0, 1)
    assert np.isfinite(covariance).all()
