"""From features to the space of the mixture: unit length, q principal directions, unit length.

The paper projects v = Vᵀz on the first q principal directions of a mini-batch. Here the basis is
fitted once on all features (deviation D1 in docs/deviations.md).
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
from newfound.mixture.eigen import eigh
from newfound.mixture.rows import content_order, row_keys
from newfound.mixture.space import BLOCK_ROWS as _BLOCK_ROWS
from newfound.mixture.space import ROUNDING as ROUNDING  # many rooms import both from here
from newfound.mixture.space import Space, coordinates, project_in_order
from newfound.mixture.space import unit_rows as unit_rows

#: Up to this many columns the basis is exact, from the (d, d) covariance; above it is randomised,
#: because that matrix would be too large.
EXACT_COLUMNS = 2048
#: Fewer known classes than this say too little about the directions in which classes vary.
_CLASSES_TO_WHITEN = 10


class Projection(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Scale rows to unit length, project on principal directions, scale to unit length again.

    Parameters
    ----------
    n_directions : int, default=128
        Number of principal directions q, reduced to ``min(n - 1, d)`` if that is smaller.
    whiten : bool, default=False
        Divide by the pooled within-class covariance of the labelled rows (with Ledoit-Wolf
        shrinkage), so that directions in which a class varies within itself count less.

    Attributes
    ----------
    components_ : ndarray of shape (n_directions, d)
        The directions, ordered by variance; the largest entry of each is positive.
    mean_ : ndarray of shape (d,)
        Mean of the unit-length rows.
    explained_variance_ratio_ : ndarray of shape (n_directions,)
        Share of the variance along each direction.
    n_directions_ : int
        Number of directions that were kept.
    whitening_ : ndarray of shape (n_directions, n_directions) or None
        Projected rows are multiplied by it from the right; None without `whiten`.
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
            Partial labels; only used by `whiten`.

        Returns
        -------
        Projection
            This transformer.
        """
        check_positive_int("n_directions", self.n_directions)
        X = check_rows(self, X, ensure_min_samples=2)
        codes = encode_labels(y, len(X)).codes if self.whiten else None
        return self.fit_in_order(X, codes, content_order(row_keys(X)))

    def fit_in_order(self, X: Floats, codes: Ints | None, order: Ints) -> Projection:
        """Fit to rows that were already checked, adding them up in the given order.

        If that order comes from the content of the rows, the order of the input has no influence,
        down to the last bit.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Features.
        codes : ndarray of int, shape (n,), or None
            Known class of each row without gaps, -1 if unlabelled; only used by `whiten`.
        order : ndarray of int, shape (n,)
            Order of the rows.

        Returns
        -------
        Projection
            This transformer.
        """
        q = min(self.n_directions, len(X) - 1, X.shape[1])
        find_basis = _exact_basis if X.shape[1] <= EXACT_COLUMNS else _randomised_basis
        self._keep(*find_basis(X, order, q))
        self.whitening_ = self._fit_whitening(X, codes, order) if self.whiten else None
        return self

    @classmethod
    def from_moments(cls, mean: Doubles, covariance: Doubles, within: Doubles | None) -> Projection:
        """Build a projection on all directions from moments of unit-length rows.

        Parameters
        ----------
        mean : ndarray of shape (d,)
            Mean of the rows.
        covariance : ndarray of shape (d, d)
            Covariance of the rows.
        within : ndarray of shape (d, d) or None
            Covariance within classes, to whiten by; None not to whiten.

        Returns
        -------
        Projection
            Fitted.
        """
        projection = cls(len(mean), whiten=within is not None)
        directions, variances = sorted_directions(covariance, len(mean))
        projection._keep(mean, directions, variances, np.trace(covariance))
        projection.whitening_ = None
        if within is not None:
            projection.whitening_ = inverse_root(directions @ within @ directions.T)
        return projection

    def transform(self, X: ArrayLike) -> Floats:
        """Project rows, shape (n, n_directions), in the precision of X."""
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        return self.transform_in_order(X, np.arange(len(X)))

    def transform_in_order(self, X: Floats, order: Ints) -> Floats:
        """Project the rows ``X[order]``, which were already checked, block by block."""
        return project_in_order(X, order, self.space)

    @property
    def space(self) -> Space:
        """All that the projection of a row needs; small enough to travel."""
        return Space(self.mean_, self.components_, self.whitening_)

    @property
    def directions(self) -> Doubles:
        """Principal directions and whitening as one matrix, shape (d, n_directions)."""
        directions: Doubles = self.components_.T
        return directions if self.whitening_ is None else directions @ self.whitening_

    def _keep(self, mean: Doubles, basis: Doubles, variances: Doubles, total: float) -> None:
        """Set all that was learnt except the whitening."""
        self.mean_, self.components_ = mean, basis
        self.explained_variance_ratio_ = variances / total if total > 0 else 0 * variances
        self.n_directions_, self.n_features_in_ = basis.shape
        self._n_features_out = self.n_directions_

    def _project(self, X: Floats) -> Floats:
        """Coordinates of unit-length rows along the directions, in float64."""
        return coordinates(X, Space(self.mean_, self.components_, None))

    def _fit_whitening(self, X: Floats, codes: Ints | None, order: Ints) -> Floats:
        """Inverse square root of the labelled classes' pooled within-class covariance."""
        if codes is None:
            codes = np.full(len(X), UNLABELLED)
        labelled = codes != UNLABELLED
        sizes = np.bincount(codes[labelled])
        if not (sizes > 1).any():
            raise InputError(
                "whiten=True needs a known class with at least 2 labelled rows; "
                f"y labels {int(labelled.sum())} rows. Label more rows or set whiten=False."
            )
        order = order[labelled[order]]
        return within_class_whitening(self._project(X[order]), codes[order])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def enough_to_whiten(codes: Ints) -> bool:
    """Whether there are enough labels to see in which directions a class varies.

    That takes ten known classes, and two labelled rows per class on average (deviation D11).
    """
    n_known = int(codes.max()) + 1
    n_labelled = np.count_nonzero(codes != UNLABELLED)
    return bool(n_known >= _CLASSES_TO_WHITEN and n_labelled >= 2 * n_known)


def within_class_whitening(rows: Doubles, codes: Ints) -> Doubles:
    """Inverse square root of the pooled within-class covariance, with Ledoit-Wolf shrinkage.

    Parameters
    ----------
    rows : ndarray of shape (n, q)
        Labelled rows.
    codes : ndarray of int, shape (n,)
        Class of each row, without gaps.

    Returns
    -------
    ndarray of shape (q, q)
        Rows are whitened by multiplying them with it from the right.
    """
    sizes = np.bincount(codes)
    means = np.zeros((len(sizes), rows.shape[1]))
    np.add.at(means, codes, rows)
    residuals = rows - (means / sizes[:, None])[codes]
    # Ledoit and Wolf's shrinkage needs the fourth moment beside the covariance
    fourth = float(np.square(np.square(residuals).sum(axis=1)).mean())
    moments = residuals.T @ residuals / len(residuals), fourth
    return inverse_root(shrunk_covariance(*moments, len(residuals), len(sizes)))


def shrunk_covariance(
    covariance: Doubles, fourth_moment: float, n_rows: int, n_means: int = 0
) -> Doubles:
    """Ledoit and Wolf's estimate of a covariance, from moments of n centred rows x.

    Parameters
    ----------
    covariance : ndarray of shape (q, q)
        Mean of x·xᵀ.
    fourth_moment : float
        Mean of |x|⁴.
    n_rows, n_means : int
        n, and the number of means that were estimated to centre the rows.

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
    """Inverse square root of a covariance; finite in directions without variance, too."""
    values, vectors = eigh(covariance)
    floor = 1e-10 * max(values.max(), np.finfo(float).tiny)
    root: Doubles = (vectors / np.sqrt(values.clip(min=floor))) @ vectors.T
    return root


def sorted_directions(covariance: Doubles, q: int) -> tuple[Doubles, Doubles]:
    """The first q principal directions (q, d), signs fixed, and their variances."""
    values, vectors = eigh(covariance, q)
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
    """Do the same as `_exact_basis` by subspace iteration, with memory d × (q + 16)."""
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
    values, rotation = eigh(small)
    directions = _fix_signs((basis @ rotation).T[::-1][:q])
    return mean, directions, values[::-1][:q].clip(min=0) / len(X), total / len(X)


def _fix_signs(directions: Floats) -> Floats:
    """Flip directions so that the largest entry is positive; eigenvectors have no sign."""
    largest = np.abs(directions).argmax(axis=1)
    signs = np.sign(directions[np.arange(len(directions)), largest])
    fixed: Floats = directions * np.where(signs == 0, 1, signs)[:, None]
    return fixed
