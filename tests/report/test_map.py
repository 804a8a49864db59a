"""The map: near is alike, whichever way it is drawn."""

import numpy as np
import pytest

from newfound.report import map as map_module
from newfound.report.map import EXTENT, draw_map, sample_rows


def blobs(n_each=30, K=3, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.repeat(np.arange(K), n_each))
    return 4 * np.eye(K, 8)[codes] + 0.2 * rng.standard_normal((len(codes), 8)), codes


def nearest_share(points, codes):
    """Share of the points whose nearest other point is of their own category."""
    gaps = ((points[:, None] - points[None]) ** 2).sum(axis=2).astype(float)
    np.fill_diagonal(gaps, np.inf)
    return (codes[gaps.argmin(axis=1)] == codes).mean()


@pytest.mark.parametrize("method", ["t-SNE", "PCA"])
def test_near_is_alike(method, monkeypatch):
    if method == "t-SNE":
        pytest.importorskip("openTSNE")
    monkeypatch.setattr(map_module, "_has_tsne", lambda: method == "t-SNE")
    V, codes = blobs()
    drawn = draw_map(V, n_jobs=1)
    assert drawn.method == method
    assert nearest_share(drawn.points, codes) > 0.95
    assert drawn.points.min() >= 0
    assert drawn.points.max() <= EXTENT
    spans = np.ptp(drawn.points, axis=0)
    assert spans[0] == EXTENT or spans[1] == EXTENT
    assert np.allclose(drawn.points.min(axis=0) + drawn.points.max(axis=0), EXTENT, atol=1.5)


def test_the_long_direction_lies_along_x(no_tsne):
    t = np.linspace(0, 1, 50)
    points = draw_map(np.stack([t, 5 * t**2, np.sin(9 * t)], axis=1)).points
    assert points[:, 0].std() > points[:, 1].std()


def test_the_same_map_twice():
    pytest.importorskip("openTSNE")
    V, _ = blobs(8)
    assert np.array_equal(draw_map(V, n_jobs=1).points, draw_map(V, n_jobs=1).points)


@pytest.mark.parametrize("V", [np.zeros((3, 4)), np.ones((12, 1)), np.arange(4.0)[:, None]])
def test_few_equal_or_flat_items_have_a_map(V):
    points = draw_map(V, n_jobs=1).points
    assert points.shape == (len(V), 2)
    assert ((points >= 0) & (points <= EXTENT)).all()


def test_a_sample_keeps_what_must_be_shown_and_small_categories():
    codes = np.repeat([0, 1, 2], [9000, 900, 4])
    must = np.array([5, 8999])
    rows = sample_rows(codes, must, 500)
    assert len(rows) == 500
    assert (np.diff(rows) > 0).all()
    assert set(must) <= set(rows)
    shown = np.bincount(codes[rows])
    assert shown[2] == 4
    assert shown[0] > shown[1] > 50
    assert np.array_equal(rows, sample_rows(codes, must, 500))


def test_without_need_nothing_is_left_out():
    assert sample_rows(np.zeros(5, dtype=int), np.array([1]), 5).tolist() == [0, 1, 2, 3, 4]
    assert len(sample_rows(np.arange(50), np.arange(20), 10)) == 20
