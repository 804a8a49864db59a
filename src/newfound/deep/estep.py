"""The E-step of the loop: from the present weights to components and their prototypes."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import replace

from torch import Tensor
from torch.nn import functional

from newfound.arrays import Floats, Ints
from newfound.deep.checkpoint import TrainingState
from newfound.deep.components import FoundComponents
from newfound.deep.holdout import LabelSplit
from newfound.deep.images.batches import epoch_seed
from newfound.deep.images.extraction import Extractor
from newfound.deep.losses import pcl_weight
from newfound.deep.method import Method
from newfound.deep.partition import (
    Clusters,
    known_count,
    reassign,
    share_out,
    sizes_in_learnt_features,
)
from newfound.deep.prototypes import principal_space, prototypes_from
from newfound.deep.records import Listener
from newfound.deep.settings import Settings
from newfound.deep.setup import TrainingSetup
from newfound.deep.shard import Shard
from newfound.deep.sized_partition import heed_sizes
from newfound.errors import DiscoveryWarning
from newfound.labels import UNLABELLED
from newfound.mixture.counting.count import CategoryCount, count_categories
from newfound.mixture.counting.novel_size import Sizes, parse_sizes


class EStep:
    """Finds K and the components in the features of all images.

    Each process holds the features of its own images, see `Shard`. Between moves only sums over
    them are sent, and the component of each image.

    Parameters
    ----------
    setup : TrainingSetup
        Network and images.
    labels : LabelSplit
        Labels for training and for the accuracy.
    settings : Settings
        How categories are found, and when they may split and merge.
    method : Method
        Makes the partition.
    listener : Listener
        Hears how far the first pass through the network is, which is the slow one.
    """

    def __init__(
        self,
        setup: TrainingSetup,
        labels: LabelSplit,
        settings: Settings,
        method: Method,
        listener: Listener,
    ) -> None:
        self._first_pass: Callable[[int, int], object] | None = functools.partial(
            listener.step, "Passing pictures through the network"
        )
        self._shard = Shard(len(setup.feed), setup.fabric)
        self.labels, self._method = labels, method
        self._settings = settings.with_changes(known_rows=settings.known_rows)
        self._extractor = Extractor(
            setup.network.backbone,
            setup.views,
            setup.feed,
            setup.fabric,
            keep_inputs=settings.run.token_cache,
        )

    def features(self) -> Floats:
        """Features of all images, shape (n, d), not normalised, in each process."""
        return self._shard.whole(self._own_features().cpu().numpy())

    def _own_features(self) -> Tensor:
        """Features of the images of this process, shape (m, d), not normalised."""
        progress, self._first_pass = self._first_pass, None
        return self._extractor.features(progress)

    def run(self, state: TrainingState) -> FoundComponents | None:
        """Find the components, starting from the last partition.

        Parameters
        ----------
        state : TrainingState
            Epoch, last partition and count; the partition and the first count are written back.

        Returns
        -------
        FoundComponents or None
            None for a method without prototypes.
        """
        if not self._method.uses_prototypes:
            return None
        Z = self._own_features()
        if state.epoch == 0 and state.count is None:
            state.count = self._count(Z)
        z = functional.normalize(Z, dim=1)
        settings = self._settings.estep
        due = state.epoch % settings.moves_every == 0
        found = self._find(z, state, moves=due and not settings.moves_after_epoch)
        if settings.moves_after_epoch:  # a checkpoint within the epoch needs those of all images
            found = replace(found, z=self._shard.whole(z))
        state.labels = found.labels
        return found

    def move_after_epoch(self, found: FoundComponents, state: TrainingState) -> FoundComponents:
        """Split and merge after the epoch, but on the features from before it (Algorithm 1).

        Parameters
        ----------
        found : FoundComponents
            The components found at the start of this epoch.
        state : TrainingState
            Epoch, last partition and count.
        """
        due = (state.epoch + 1) % self._settings.estep.moves_every == 0
        return self._find(found.z[self._shard.own], state, moves=due)

    def sizes_to_heed(self, state: TrainingState) -> Sizes | None:
        """What to expect of the sizes of components; None if nothing can be expected.

        Parameters
        ----------
        state : TrainingState
            The state of the training; only its count is used.
        """
        # the size of a known class without unlabelled rows cannot be estimated
        all_present = state.count is None or state.count.n_absent == 0
        settings = self._settings.estep
        able = self._method.expects_sizes and all_present and settings.pca != "batch"
        return parse_sizes(settings.sizes) if able else None

    def _n_novel_rows(self, state: TrainingState) -> float:
        """How many rows are novel; NaN if nobody has counted."""
        share = float("nan") if state.count is None else state.count.novel_share
        return share * int((self.labels.all_codes == UNLABELLED).sum())

    def _count(self, Z: Tensor) -> CategoryCount | None:
        """Count the categories before training has drawn the known classes together."""
        # how labels were drawn shows in all of them, not in those that are left for training
        settings, codes = self._settings.estep, self.labels.all_codes
        if settings.acceptance == "literal" or int(codes.max()) + 1 < 2:
            return None
        # features of random weights mean nothing before training
        by_default = "now" if self._settings.network.weights == "random" else "start"
        is_random = (settings.count_on or by_default) == "now"
        k, sizes, count = settings.n_components, parse_sizes(settings.sizes), None
        if k is not None and (is_random or sizes != "unknown"):
            return known_count(codes, k, float("nan"))  # the share of novel rows is not needed
        if is_random:
            return None
        everything = self._shard.collect(Z.cpu().numpy())
        if everything is not None:
            count = count_categories(
                everything,
                codes,
                sizes=(sizes or "alike") if k is None else "alike",
                random_state=self._settings.run.seed,
            )
            if k is not None:
                count = known_count(codes, k, count.novel_share)
        return self._shard.same(count)

    def _count_now(self, X: Floats, seed: int) -> CategoryCount | None:
        """Count with the held-out labels; None if the mixture counts itself, or not at all."""
        settings, labels = self._settings.estep, self.labels
        counts = settings.acceptance == "calibrated" and settings.n_components is None
        if not counts or not labels.held_out.any() or int(labels.codes.max()) + 1 < 2:
            return None
        sizes = sizes_in_learnt_features(parse_sizes(settings.sizes)) or "alike"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DiscoveryWarning)  # the end of training warns once
            return count_categories(X, labels.all_codes, sizes=sizes, random_state=seed)

    def _find(self, z: Tensor, state: TrainingState, *, moves: bool) -> FoundComponents:
        """Partition and prototypes, from the features of this process."""
        settings, codes = self._settings.estep, self.labels.codes
        n_directions = z.shape[1] if settings.pca == "off" else settings.n_directions
        reduced = principal_space(z, n_directions, self._shard)
        X = reduced.project(z).cpu().numpy()
        labels = self._start(state, moves=moves)
        if labels is None or moves or not self._method.reassigns:
            clusters = self._search(X, labels, state, moves=moves)
        else:
            clusters = reassign(X, codes, labels, settings, self._shard)
        sizes = self.sizes_to_heed(state) if self._method.sizes_in_training else None
        n_novel_rows = self._n_novel_rows(state)
        clusters = heed_sizes(clusters, self.labels, sizes, n_novel_rows, z.device)
        temperature = self._settings.losses.prototype_temperature
        return FoundComponents(
            z=z.new_empty(0, z.shape[1]),
            labels=clusters.labels,
            n_known=clusters.n_known,
            prototypes=prototypes_from(z, codes, clusters, reduced, settings, temperature),
            accuracy=clusters.accuracy(self.labels.all_codes, self.labels.held_out),
        )

    def _start(self, state: TrainingState, *, moves: bool) -> Ints | None:
        """The partition to start from; None for k-means."""
        calibrated = self._settings.estep.acceptance == "calibrated"
        warming_up = pcl_weight(state.epoch, self._settings.losses.warmup_epochs) < 1
        # partitions of the warm-up are poor starts: k-means is better
        return None if calibrated and moves and warming_up else state.labels

    def _search(
        self, X: Floats, labels: Ints | None, state: TrainingState, *, moves: bool
    ) -> Clusters:
        """Find components among all rows in the first process, and share the result with all."""
        everything, found = self._shard.collect(X), None
        if everything is not None:
            seed, count = epoch_seed(self._settings.run.seed, state.epoch), state.count
            if count is None and moves:
                count = self._count_now(everything, seed)
            found = self._method.partition(
                everything, self.labels.codes, labels, moves=moves, seed=seed, count=count
            )
        return share_out(found, self._shard)
