"""From features to the space the mixture works in: unit length, q directions, unit length.

The paper projects v = Vᵀz on the q first principal directions of a mini-batch. Here the basis is
fitted once on all features (deviation 1 in docs/deviations.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from newfound.arrays import ArrayLike, Doubles, Floats, Ints, LabelsLike
from newfound.errors import InputError
from newfound.labels import UNLABELLED, encode_labels
from newfound.mixture.clustering import check_positive_int, check_rows
from newfound.mixture.rows import content_order, row_keys

#: Up to this many columns the basis is exact, from the (d, d) covariance; above, randomised.
EXACT_COLUMNS = 2048
_BLOCK_ROWS = 4096
#: A unit-length row that is no farther than this from the mean lies on it, but for rounding.
ROUNDING = 1e-12


def unit_rows(X: Floats) -> Floats:
    """Scale each row to length 1; a row of zeros stays as it is."""
    largest = np.abs(X).max(axis=1, keepdims=True)
    scaled = X / np.where(largest > 0, largest, 1)  # first, so that no square over- or underflows
    norms = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))[:, None]
    scaled /= np.where(norms > 0, norms, 1)
    return scaled


class Projection(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Unit-length rows on their first principal directions, at unit length again.

    Parameters
    ----------
    n_directions : int, default=128
        Number of principal directions q; reduced to ``min(n - 1, d)`` where that is less.
    whiten : bool, default=False
        Divide by the pooled within-class covariance of the labelled rows (with Ledoit-Wolf
        shrinkage), so that directions in which one class varies count less.

    Attributes
    ----------
    components_ : ndarray of shape (n_directions_, d)
        The directions, ordered by variance; the largest entry of each is positive.
    mean_ : ndarray of shape (d,)
        Mean of the unit-length rows.
    explained_variance_ratio_ : ndarray of shape (n_directions_,)
        Share of the variance along each direction.
    n_directions_ : int
        Directions that were kept.
    whitening_ : ndarray of shape (n_directions_, n_directions_) or None
        Multiplied from the right when `whiten` is set.
    """

    def __init__(self, n_directions: int = 128, *, whiten: bool = False) -> None:
        self.n_directions = n_directions
        self.whiten = whiten

    def fit(self, X: ArrayLike, y: LabelsLike = None) -> Projection:
        """Find the directions.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features.
        y : array-like of shape (n,), optional
            Partial labels; read by `whiten` only.

        Returns
        -------
        Projection
            This transformer.
        """
        check_positive_int("n_directions", self.n_directions)
        X = check_rows(self, X, ensure_min_samples=2)
        return self.fit_in_order(X, y, content_order(row_keys(X)))

    def fit_in_order(self, X: Floats, y: LabelsLike, order: Ints) -> Projection:
        """Fit to rows that were already checked, adding them up in the given order.

        The order of the rows then has no influence, down to the last bit.
        """
        q = min(self.n_directions, len(X) - 1, X.shape[1])
        find_basis = _exact_basis if X.shape[1] <= EXACT_COLUMNS else _randomised_basis
        self._keep(*find_basis(X, order, q))
        self.whitening_ = self._fit_whitening(X, y, order) if self.whiten else None
        return self

    @classmethod
    def from_moments(cls, mean: Doubles, covariance: Doubles, within: Doubles | None) -> Projection:
        """All directions, from moments of unit-length rows; `within` classes is what whitens."""
        projection = cls(len(mean), whiten=within is not None)
        directions, variances = sorted_directions(covariance, len(mean))
        projection._keep(mean, directions, variances, np.trace(covariance))
        projection.whitening_ = None
        if within is not None:
            projection.whitening_ = inverse_root(directions @ within @ directions.T)
        return projection

    def transform(self, X: ArrayLike) -> Floats:
        """Project rows, shape (n, n_directions_), in the precision of X."""
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        return self.transform_in_order(X, np.arange(len(X)))

    def transform_in_order(self, X: Floats, order: Ints) -> Floats:
        """Project the rows ``X[order]``, which were already checked, block by block."""
        projected = np.empty((len(order), self.n_directions_), dtype=X.dtype)
        for start in range(0, len(order), _BLOCK_ROWS):
            block = self._project(X[order[start : start + _BLOCK_ROWS]])
            block[np.abs(block).max(axis=1) < ROUNDING] = 0
            if self.whitening_ is not None:
                block = block @ self.whitening_
            projected[start : start + _BLOCK_ROWS] = unit_rows(block)
        return projected

    @property
    def directions(self) -> Doubles:
        """Principal directions and whitening as one matrix, shape (d, n_directions_)."""
        directions: Doubles = self.components_.T
        return directions if self.whitening_ is None else directions @ self.whitening_

    def _keep(self, mean: Doubles, basis: Doubles, variances: Doubles, total: float) -> None:
        """Set what was learnt, but for the whitening."""
        self.mean_, self.components_ = mean, basis
        self.explained_variance_ratio_ = variances / total if total > 0 else 0 * variances
        self.n_directions_, self.n_features_in_ = basis.shape
        self._n_features_out = self.n_directions_

    def _project(self, X: Floats) -> Floats:
        """Coordinates of unit-length rows along the directions, in float64."""
        coordinates: Floats = (unit_rows(X.astype(np.float64)) - self.mean_) @ self.components_.T
        return coordinates

    def _fit_whitening(self, X: Floats, y: LabelsLike, order: Ints) -> Floats:
        """Inverse square root of the labelled classes' pooled within-class covariance."""
        codes = encode_labels(y, len(X)).codes
        labelled = codes != UNLABELLED
        sizes = np.bincount(codes[labelled])
        if not (sizes > 1).any():
            raise InputError(
                "whiten=True needs a known class with at least 2 labelled rows; "
                f"y labels {int(labelled.sum())} rows. Label more rows or set whiten=False."
            )
        order = order[labelled[order]]
        rows, codes = self._project(X[order]), codes[order]
        means = np.zeros((len(sizes), rows.shape[1]))
        np.add.at(means, codes, rows)
        residuals = rows - (means / sizes[:, None])[codes]
        fourth = float(np.square(np.square(residuals).sum(axis=1)).mean())
        moments = residuals.T @ residuals / len(residuals), fourth
        return inverse_root(shrunk_covariance(*moments, len(residuals), len(sizes)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def shrunk_covariance(
    covariance: Doubles, fourth_moment: float, n_rows: int, n_means: int = 0
) -> Doubles:
    """Ledoit and Wolf's estimate of a covariance, from what is known of n centred rows x.

    Parameters
    ----------
    covariance : ndarray of shape (q, q)
        Mean of x·xᵀ.
    fourth_moment : float
        Mean of |x|⁴.
    n_rows, n_means : int
        n, and how many means were estimated to centre them.

    Returns
    -------
    ndarray of shape (q, q)
        A mean of the covariance and a multiple of the identity.
    """
    q = len(covariance)
    scale = np.trace(covariance) / q
    square = float(np.einsum("ij,ij->", covariance, covariance))
    distance = (square - q * scale**2) / q
    error = min((fourth_moment - square) / (q * n_rows), distance)
    share = error / distance if error > 0 else 0.0
    shrunk: Doubles = (1 - share) * covariance + share * scale * np.eye(q)
    return shrunk * (n_rows / max(1, n_rows - n_means))


def inverse_root(covariance: Doubles) -> Doubles:
    """Inverse square root of a covariance; directions without variance do not go to infinity."""
    values, vectors = linalg.eigh(covariance)
    floor = 1e-10 * max(values.max(), np.finfo(float).tiny)
    root: Doubles = (vectors / np.sqrt(values.clip(min=floor))) @ vectors.T
    return root


def sorted_directions(covariance: Doubles, q: int) -> tuple[Doubles, Doubles]:
    """The first q principal directions (q, d), signs fixed, and their variances."""
    d = len(covariance)
    values, vectors = linalg.eigh(covariance, subset_by_index=[d - q, d - 1])
    return _fix_signs(vectors.T[::-1]), values[::-1].clip(min=0)


def _blocks(X: Floats, order: Ints) -> Iterator[Doubles]:
    """Unit-length rows in float64, block by block."""
    for start in range(0, len(order), _BLOCK_ROWS):
        yield unit_rows(X[order[start : start + _BLOCK_ROWS]].astype(np.float64))


def _mean_of_units(X: Floats, order: Ints) -> Doubles:
    mean = np.zeros(X.shape[1])
    for block in _blocks(X, order):
        mean += block.sum(axis=0)
    return mean / len(X)


def _exact_basis(X: Floats, order: Ints, q: int) -> tuple[Doubles, Doubles, Doubles, float]:
    """Mean, directions (q, d), their variances and the total variance, from the covariance."""
    mean = _mean_of_units(X, order)
    scatter = np.zeros((X.shape[1], X.shape[1]))
    for block in _blocks(X, order):
        block -= mean
        scatter += block.T @ block
    directions, variances = sorted_directions(scatter, q)
    return mean, directions, variances / len(X), np.trace(scatter) / len(X)


def _randomised_basis(X: Floats, order: Ints, q: int) -> tuple[Doubles, Doubles, Doubles, float]:
    """Like `_exact_basis` by subspace iteration: memory d × (q + 16), never d × d."""
    mean = _mean_of_units(X, order)
    rng = np.random.default_rng(0)  # a fixed start: the same data, the same basis
    basis = linalg.qr(rng.standard_normal((X.shape[1], q + 16)), mode="economic")[0]
    total = 0.0
    for _ in range(5):
        image, total = np.zeros_like(basis), 0.0
        for block in _blocks(X, order):
            block -= mean
            image += block.T @ (block @ basis)
            total += float(np.einsum("ij,ij->", block, block))
        basis = linalg.qr(image, mode="economic")[0]
    small = np.zeros((basis.shape[1], basis.shape[1]))
    for block in _blocks(X, order):
        block -= mean
        coordinates = block @ basis
        small += coordinates.T @ coordinates
    values, rotation = linalg.eigh(small)
    directions = _fix_signs((basis @ rotation).T[::-1][:q])
    return mean, directions, values[::-1][:q].clip(min=0) / len(X), total / len(X)


def _fix_signs(directions: Floats) -> Floats:
    """Flip directions so that the entry of largest magnitude is positive."""
    largest = np.abs(directions).argmax(axis=1)
    signs = np.sign(directions[np.arange(len(directions)), largest])
    fixed: Floats = directions * np.where(signs == 0, 1, signs)[:, None]
    return fixed
