"""GCD (Vaze et al. 2022): contrastive learning, then semi-supervised k-means."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from newfound.arrays import Floats, Ints
from newfound.bench.method import BenchMethod, Knob
from newfound.bench.rivals import brent_search
from newfound.bench.start import to_cluster
from newfound.deep.method import Contrast
from newfound.deep.partition import mixture_for
from newfound.deep.settings import Settings
from newfound.mixture.kmeans import SemiSupervisedKMeans

#: τ of the self-supervised term in the authors' code; that of the supervised term is 0.07.
TEMPERATURE = 1.0


class GCD(BenchMethod):
    """GCD: 0.65·InfoNCE + 0.35·SupCon on a projection head, then semi-supervised k-means.

    If K is not given, Brent's search on the finished features finds it: the K in [K^l, 1000] whose
    k-means agrees best with the labelled rows. With `joint`, our mixture replaces both search and
    k-means (the paper's Table 7b): GCD has no classifier that the mixture could change during
    training.

    Departures
    ----------
    - Batches hold exactly 64 labelled and 64 unlabelled images; the authors' only on average.
    - Brent's search runs over log K, which helps it (see `newfound.bench.rivals.brent_search`),
      and on 128 principal directions.
    - The projection head has 256 outputs, as that of all methods here; in the authors' code it has
      65,536, DINO's default.
    - The last epoch is scored. The authors keep the one that is best on the Old classes of the test
      set.
    - k-means has `n_starts` starts. The authors use 100, which is also the default here.
    """

    title = "GCD"
    source = "Vaze, Han, Vedaldi and Zisserman, Generalized Category Discovery, CVPR 2022"
    takes_features = True
    learns_without_k = True
    uses_starts = True
    finds_k = True
    uses_pca = True
    knob = Knob("temperature", TEMPERATURE, (0.1, 0.3))

    variants = frozenset({"joint"})

    def __init__(self, *args: Any, joint: bool = False, **options: Any) -> None:
        super().__init__(*args, **options)
        self.joint = joint

    def _fit_images(self, pixels: npt.NDArray[np.uint8], codes: Ints) -> None:
        clustering = self.settings
        # PCA and K_init apply to the clustering afterwards, and must not change the training
        self.settings = clustering.with_changes(pca="off", n_components_init=None)
        self._train(Contrast(self.own_settings()), pixels, codes)
        self.settings = clustering
        self._fit_features(self.features_, codes)

    def own_settings(self) -> Settings:
        """The settings, with GCD's temperature of InfoNCE."""
        return self.settings.with_changes(contrastive_temperature=self.knob_value)

    def _fit_features(self, X: Floats, codes: Ints) -> None:
        n_components, seed = self.n_components, self.settings.run.seed
        if self.joint:
            settings = self.settings.with_changes(n_components=n_components, pca="all")
            mixture = mixture_for(settings.estep, X.shape[1], random_state=seed).fit(X, codes)
            self.labels_, self.n_components_ = mixture.labels_, mixture.n_components_
            return
        if n_components is None:
            n_novel = brent_search(X, codes, random_state=seed)
            n_components = int(codes.max()) + 1 + n_novel
            self.k_source_ = "Brent search on the finished features"
        k_means = SemiSupervisedKMeans(
            n_components, n_init=self.n_starts, max_iter=200, random_state=seed
        )
        self.labels_ = k_means.fit(to_cluster(X, self.settings), codes).labels_
        self.n_components_ = k_means.n_components_
