"""GPC as in this project: the whole EM-like loop, with K unknown or given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from newfound.arrays import Floats, Ints
from newfound.bench.case import KSource
from newfound.bench.method import BenchMethod, Knob
from newfound.bench.methods.alternative_prototypes import Alternative, AlternativePrototypes
from newfound.deep.method import PrototypicalContrast
from newfound.deep.partition import mixture_for
from newfound.deep.settings import Settings
from newfound.mixture.estimator import SplitMergeMixture

#: Deviation → settings without it. D27 and D28 are one setting, so the loop is told apart.
WITHOUT: dict[str, dict[str, Any]] = {
    "D25": {"weight_average": 0.0},
    "D26": {"target_temperature": 0.0},
    "D27": {},
    "D28": {},
    "D30": {"known_rows": "labelled"},
}


class GPCMethod(BenchMethod):
    """GPC: the mixture finds K and the prototypes, and the network learns around them.

    Departures
    ----------
    - Those of `docs/deviations.md`. `without` leaves out one of D25 to D28 and D30, to measure it:
      the average of the weights, soft targets, sizes during training, sizes in the final mixture,
      prototypes of known classes from all rows.
    """

    title = "GPC (ours)"
    source = "Zhao, Wen and Han, ICCV 2023; this project"
    takes_features = True
    finds_k = True
    uses_pca = True
    pca_by_default = True
    own_k: ClassVar[KSource] = "count"
    defaults: ClassVar[Mapping[str, Any]] = {}
    knob: ClassVar[Knob | None] = Knob("contrastive_temperature", 1.0, (0.1, 0.3))

    variants = frozenset({"prototypes", "without"})

    def __init__(
        self,
        *args: Any,
        prototypes: Literal["mixture"] | Alternative = "mixture",
        without: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.prototypes = prototypes
        self.without = without
        # Ward and k-means need K, which the runner then finds by Brent's search
        self.finds_k = prototypes in ("mixture", "dbscan")

    def _fit_images(self, pixels: npt.NDArray[np.uint8], codes: Ints) -> None:
        self.settings = self.loop_settings()
        if self.prototypes == "mixture":
            contrast = PrototypicalContrast(self.settings)
            contrast.sizes_in_training = self.without != "D27"
            contrast.sizes_at_end = self.without != "D28"
            mixture = self._train(contrast, pixels, codes).mixture
            assert mixture is not None
            self._take(mixture)
            return
        learner = AlternativePrototypes(self.settings, self.prototypes, self.n_components)
        self._train(learner, pixels, codes)
        self._partition(learner, self.features_, codes)

    def _fit_features(self, X: Floats, codes: Ints) -> None:
        settings = self.loop_settings()
        if self.prototypes == "mixture":
            mixture = mixture_for(settings.estep, X.shape[1], random_state=settings.run.seed)
            self._take(mixture.fit(X, codes))
            return
        learner = AlternativePrototypes(settings, self.prototypes, self.n_components)
        self._partition(learner, X, codes)

    def _take(self, mixture: SplitMergeMixture) -> None:
        self.labels_, self.n_components_ = mixture.labels_, mixture.n_components_
        self.n_novel_interval_ = mixture.n_novel_interval_

    def _partition(self, learner: AlternativePrototypes, X: Floats, codes: Ints) -> None:
        """Cluster finished features in the same way as the loop."""
        seed = self.settings.run.seed
        clusters = learner.partition(X, codes, None, moves=True, seed=seed, count=None)
        self.labels_, self.n_components_ = clusters.labels, clusters.n_components
        if self.prototypes == "dbscan":
            self.k_source_ = "DBSCAN"  # it always finds its own K, even if K is given

    def loop_settings(self) -> Settings:
        """Settings of the loop. They include K if it is given."""
        changes = {"known_rows": self.settings.known_rows}
        changes |= WITHOUT[self.without] if self.without else {}
        return self.settings.with_changes(n_components=self.n_components, **changes)

    def own_settings(self) -> Settings:
        """Settings of the loop."""
        return self.loop_settings()
