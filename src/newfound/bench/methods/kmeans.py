"""k-means on the features before training: the row that every method has to beat."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from newfound.arrays import Floats, Ints
from newfound.bench.method import BenchMethod
from newfound.bench.start import start_features, to_cluster
from newfound.mixture.kmeans import SemiSupervisedKMeans

#: Number of starts; the one with the smallest inertia counts.
N_STARTS = 10


class KMeansMethod(BenchMethod):
    """k-means of all rows, scaled to unit length. Labels are not used.

    Departures
    ----------
    - None known. The paper does not say how many starts it uses; here there are 10.
    """

    title = "k-means"
    source = "MacQueen 1967; as in Vaze et al., Generalized Category Discovery, CVPR 2022"
    takes_features = True
    learns = False
    uses_pca = True

    def _fit_images(self, pixels: npt.NDArray[np.uint8], codes: Ints) -> None:
        self.features_, self.history_ = start_features(pixels, self.settings, self.start_file), []
        self._fit_features(self.features_, codes)

    def _fit_features(self, X: Floats, codes: Ints) -> None:
        assert self.n_components is not None
        # without labels this is plain k-means
        k_means = SemiSupervisedKMeans(
            self.n_components, n_init=N_STARTS, random_state=self.settings.run.seed
        )
        self.labels_ = k_means.fit(to_cluster(X, self.settings)).labels_
        self.n_components_ = self.n_components
