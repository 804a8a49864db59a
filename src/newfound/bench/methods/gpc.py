"""GPC as in this project: the whole EM-like loop, with K unknown or given."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from newfound.arrays import Floats, Ints
from newfound.bench.method import BenchMethod
from newfound.bench.methods.alternative_prototypes import Alternative, AlternativePrototypes
from newfound.deep.method import PrototypicalContrast
from newfound.deep.partition import mixture_for
from newfound.deep.settings import Settings


class GPCMethod(BenchMethod):
    """GPC: the mixture finds K and the prototypes, and the network learns around them.

    Departures
    ----------
    - Those of `docs/deviations.md`.
    """

    title = "GPC (ours)"
    source = "Zhao, Wen and Han, ICCV 2023; this project"
    takes_features = True
    finds_k = True
    uses_pca = True
    pca_by_default = True

    variants = frozenset({"prototypes"})

    def __init__(
        self, *args: Any, prototypes: Literal["mixture"] | Alternative = "mixture", **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self.prototypes = prototypes
        # Ward and k-means need K, which the runner then finds by Brent's search
        self.finds_k = prototypes in ("mixture", "dbscan")

    def _fit_images(self, pixels: npt.NDArray[np.uint8], codes: Ints) -> None:
        self.settings = self.loop_settings()
        if self.prototypes == "mixture":
            mixture = self._train(PrototypicalContrast(self.settings), pixels, codes).mixture
            assert mixture is not None
            self.labels_, self.n_components_ = mixture.labels_, mixture.n_components_
            return
        learner = AlternativePrototypes(self.settings, self.prototypes, self.n_components)
        self._train(learner, pixels, codes)
        self._partition(learner, self.features_, codes)

    def _fit_features(self, X: Floats, codes: Ints) -> None:
        settings = self.loop_settings()
        if self.prototypes == "mixture":
            mixture = mixture_for(settings.estep, X.shape[1], random_state=settings.run.seed)
            mixture.fit(X, codes)
            self.labels_, self.n_components_ = mixture.labels_, mixture.n_components_
            return
        learner = AlternativePrototypes(settings, self.prototypes, self.n_components)
        self._partition(learner, X, codes)

    def _partition(self, learner: AlternativePrototypes, X: Floats, codes: Ints) -> None:
        """Cluster finished features in the same way as the loop."""
        seed = self.settings.run.seed
        clusters = learner.partition(X, codes, None, moves=True, seed=seed, count=None)
        self.labels_, self.n_components_ = clusters.labels, clusters.n_components
        if self.prototypes == "dbscan":
            self.k_source_ = "DBSCAN"  # it always finds its own K, even if K is given

    def loop_settings(self) -> Settings:
        """Settings of the loop. They include K if it is given."""
        return self.settings.with_changes(n_components=self.n_components)
