"""What a fitted mixture says about rows: components, probabilities, distances, density."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from newfound.arrays import ArrayLike, Doubles, Floats, Ints, LabelsLike
from newfound.mixture.assignment import log_joint
from newfound.mixture.clustering import check_rows
from newfound.mixture.projection import Projection
from newfound.mixture.rows import row_blocks, row_keys, squared_distances
from newfound.mixture.settling import nearest_prototype, predict_rows
from newfound.scale.rows import as_rows

#: Bytes of one array (rows, K) of intermediate results.
_CHUNK_BYTES = 2**25


class MixturePredictionMixin(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """The methods of `SplitMergeMixture` that read what was learnt and change nothing."""

    assign: Literal["nearest", "soft"]
    projection_: Projection
    means_: Doubles
    covariances_: Doubles
    weights_: Doubles
    prototypes_: Doubles
    offsets_: Doubles
    _spherical_variance: float

    def predict(self, X: ArrayLike) -> Ints:
        """Component of each row of X, the argmax of `predict_proba`; labels are not used.

        X may be a Dask array or rows from `newfound.scale`; with a Dask client, the result is a
        Dask array.
        """
        if self.assign == "soft":
            return self.predict_proba(X).argmax(axis=1)
        rows = as_rows(X)
        if rows is None:
            return self.nearest_prototype(X)
        check_is_fitted(self)
        return predict_rows(rows, self.projection_.space, self.prototypes_, self.offsets_)

    def predict_proba(self, X: ArrayLike) -> Doubles:
        """Probability of each component for each row of X, shape (n, K).

        With ``assign="soft"`` these are the responsibilities of the mixture. With
        ``assign="nearest"`` they are those of spherical components with one common variance,
        which are equally probable where `offsets_` are 0; the component that `predict` chooses
        is the most probable. The variance is the one that predicts the labelled rows best, so
        that among rows with a probability of 0.9 about 9 in 10 are right.
        """
        return self.proba_of_projected(self._project(X))

    def proba_of_projected(self, V: Floats) -> Doubles:
        """`predict_proba` of rows that are already projected.

        Parameters
        ----------
        V : ndarray of shape (n, q)
            ``projection_.transform(X)``, in the precision of X.

        Returns
        -------
        ndarray of shape (n, K)
            The same numbers as ``predict_proba(X)``.
        """
        check_is_fitted(self)
        order = self._by_content()
        probabilities = np.empty((len(V), len(order)))
        for chunk in self._chunks(V):
            probabilities[chunk, order] = softmax(self._logits(V[chunk], order), axis=1)
        return probabilities

    def _logits(self, V: Floats, order: Ints) -> Doubles:
        """Logarithms of the probabilities of components, in this order, up to a constant."""
        if self.assign == "soft":
            return log_joint(V, self.means_, self.covariances_, self.weights_)[:, order]
        centres = self.prototypes_[order].astype(V.dtype)
        logits: Doubles = squared_distances(V, centres).astype(np.float64)
        logits -= self.offsets_[order]
        logits *= -0.5 / self._spherical_variance
        return logits

    def _chunks(self, V: Floats) -> Iterator[slice]:
        """Slices over the rows, so that a few arrays (rows, K) are small beside the rows."""
        # Whole blocks of `log_joint` and `squared_distances`: the last digits stay the same.
        n_columns = max(self.prototypes_.shape)
        block = next(row_blocks(max(1, len(V)), n_columns)).stop
        n_rows = block * max(1, _CHUNK_BYTES // (8 * len(self.prototypes_) * block))
        yield from (slice(start, start + n_rows) for start in range(0, len(V), n_rows))

    def nearest_prototype(self, X: ArrayLike) -> Ints:
        """Index of the prototype with the smallest squared distance minus `offsets_`.

        This is how the paper assigns rows; its offsets are 0.
        """
        return nearest_prototype(self._project(X), self.prototypes_, self.offsets_)[0]

    def transform(self, X: ArrayLike) -> Floats:
        """Distances of the rows to the prototypes in the projected space, shape (n, K).

        The nearest prototype is the one that `predict` chooses, unless `offsets_` differ from 0.
        """
        V = self._project(X)
        return np.sqrt(squared_distances(V, self.prototypes_.astype(V.dtype)))

    def score_samples(self, X: ArrayLike) -> Doubles:
        """Log density of each row under the mixture (Eq. 4), in the projected space."""
        V = self._project(X)
        density = np.empty(len(V))
        for chunk in self._chunks(V):
            joint = log_joint(V[chunk], self.means_, self.covariances_, self.weights_)
            density[chunk] = logsumexp(joint, axis=1)
        return density

    def score(self, X: ArrayLike, y: LabelsLike = None) -> float:
        """Mean log density of the rows of X; `y` is not used."""
        return float(self.score_samples(X).mean())

    def _by_content(self) -> Ints:
        """Components in an order in which names play no part; it decides ties and last digits."""
        return np.argsort(row_keys(self.prototypes_), kind="stable")

    def _project(self, X: ArrayLike) -> Floats:
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        return self.projection_.transform(X)
