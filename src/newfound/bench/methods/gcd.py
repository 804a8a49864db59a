"""Generalized Category Discovery (Vaze et al. 2022): contrastive learning, then pinned k-means."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from newfound.arrays import Floats, Ints
from newfound.bench.method import BenchMethod
from newfound.bench.rivals import brent_search
from newfound.bench.start import to_cluster
from newfound.deep.method import Contrast
from newfound.deep.partition import mixture_for
from newfound.mixture.kmeans import SemiSupervisedKMeans

#: τ of the self-supervised term in the authors' code; the supervised term has 0.07.
TEMPERATURE = 1.0


class GCD(BenchMethod):
    """0.65·InfoNCE + 0.35·SupCon on a projection head; then semi-supervised k-means.

    Without K, Brent's search on the finished features finds it: the K in [K^l, 1000] whose k-means
    agrees best with the labelled rows. With `joint`, our mixture takes the place of both (the
    paper's Table 7b): GCD has no classifier that it could change during training.

    Departures
    ----------
    - Batches hold exactly 64 labelled and 64 unlabelled images, the authors' only in expectation.
    - Brent's search runs over log K, in its favour (see `newfound.bench.rivals.brent_search`),
      and on 128 principal directions.
    - `n_starts` starts of k-means: the authors have 100, the default here too.
    """

    title = "GCD"
    source = "Vaze, Han, Vedaldi and Zisserman, Generalized Category Discovery, CVPR 2022"
    takes_features = True
    learns_without_k = True
    finds_k = True
    uses_pca = True

    variants = frozenset({"joint"})

    def __init__(self, *args: Any, joint: bool = False, **options: Any) -> None:
        super().__init__(*args, **options)
        self.joint = joint

    def _fit_images(self, pixels: npt.NDArray[np.uint8], codes: Ints) -> None:
        clustering = self.settings
        # what comes after the training is no part of it
        self.settings = clustering.with_changes(pca="off", n_components_init=None)
        habits = self.settings.with_changes(contrastive_temperature=TEMPERATURE)
        self._train(Contrast(habits), pixels, codes)
        self.settings = clustering
        self._fit_features(self.features_, codes)

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
