"""GPC with prototypes from another clustering than the mixture (the paper's Table 7a)."""

from __future__ import annotations

from typing import Any, Literal

from newfound.arrays import Floats, Ints
from newfound.deep.method import PrototypicalContrast
from newfound.deep.partition import Clusters, mixture_space
from newfound.deep.settings import Settings
from newfound.errors import InputError
from newfound.mixture.alternatives import ConstrainedDBSCAN, ConstrainedWard
from newfound.mixture.counting.count import CategoryCount
from newfound.mixture.kmeans import SemiSupervisedKMeans

Alternative = Literal["dbscan", "ward", "kmeans"]


class AlternativePrototypes(PrototypicalContrast):
    """GPC's losses around prototypes of DBSCAN, Ward or semi-supervised k-means.

    These clusterings keep labelled rows of one class together and of two classes apart. They work
    in the space of the mixture, and run in the epochs in which the mixture would split and merge.

    Parameters
    ----------
    settings : Settings
        Settings of the training loop.
    clustering : {"dbscan", "ward", "kmeans"}
        What finds the prototypes.
    n_components : int or None
        K. DBSCAN does not use it.
    """

    ends_with_mixture = False
    expects_sizes = False

    def __init__(
        self, settings: Settings, clustering: Alternative, n_components: int | None
    ) -> None:
        super().__init__(settings)
        if n_components is None and clustering != "dbscan":
            raise InputError(f"Prototypes from {clustering} need n_components.")
        self.clustering = clustering
        self.n_components = n_components

    def partition(
        self,
        X: Floats,
        codes: Ints,
        labels: Ints | None,
        *,
        moves: bool,
        seed: int,
        count: CategoryCount | None,
    ) -> Clusters:
        """Cluster; between moves, the loop itself continues from the last partition."""
        V, projection = mixture_space(X, codes, self.settings.estep)
        found = self._clusterer(seed).fit(V, codes)
        return Clusters(found.labels_, found.n_known_, V, found.prototypes_, projection)

    def _clusterer(self, seed: int) -> Any:
        if self.clustering == "dbscan":
            return ConstrainedDBSCAN()
        assert self.n_components is not None
        if self.clustering == "ward":
            return ConstrainedWard(self.n_components, random_state=seed)
        return SemiSupervisedKMeans(self.n_components, random_state=seed)
