"""Table 7b: another method's classifier, of which our mixture finds how many outputs it needs.

"We treat the weights of the classifier as the cluster centers and run our GMM to automatically
determine the category number during representation learning."
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from newfound.arrays import Floats, Ints
from newfound.bench.method import Classifier, ClassifierLearner
from newfound.deep.partition import Clusters, Round, find_clusters
from newfound.errors import InputError
from newfound.labels import UNLABELLED
from newfound.mixture.assignment import prototypes_of
from newfound.mixture.counting.count import CategoryCount
from newfound.mixture.rows import nearest_centre
from newfound.mixture.split_merge import number_components

#: Outputs beside those of the known classes. The field looks for K up to 1000.
N_SPARE = 1000


class OpenClassifier(nn.Module):
    """A normalised classifier with more outputs than are in use.

    Output k is cos(z, w_k) / τ if it is in use, else -inf: its probability is 0, and so is its
    gradient.

    Parameters
    ----------
    n_features : int
        d.
    n_outputs : int
        How many there can be.
    temperature : float
        τ.

    Attributes
    ----------
    weight : Parameter of shape (n_outputs, d)
        w; its rows are at unit length when they are written, and their lengths never matter.
    active : Tensor of bool, shape (n_outputs,)
        Outputs in use; none at the start.
    """

    active: Tensor

    def __init__(self, n_features: int, n_outputs: int, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature
        rows = functional.normalize(torch.randn(n_outputs, n_features), dim=1)
        self.weight = nn.Parameter(rows)
        self.register_buffer("active", torch.zeros(n_outputs, dtype=torch.bool))

    def forward(self, features: Tensor) -> Tensor:
        """Outputs (n, n_outputs) for features (n, d) of any length."""
        # in float32 also where half is the rule: the temperature magnifies what bfloat16 drops
        with torch.autocast(features.device.type, enabled=False):
            z = functional.normalize(features.float(), dim=1)
            logits = z @ functional.normalize(self.weight, dim=1).T / self.temperature
        return logits.masked_fill(~self.active, -torch.inf)

    def slots(self) -> Ints:
        """Numbers of the outputs in use."""
        return np.flatnonzero(self.active.cpu().numpy())

    @torch.no_grad()
    def centres(self) -> Floats:
        """Weights of the outputs in use, at unit length, shape (K, d)."""
        rows = self.weight.detach().cpu()[self.active.cpu()]
        return functional.normalize(rows.float(), dim=1).numpy()

    @torch.no_grad()
    def write(self, kept: Ints, fresh: Floats) -> None:
        """Leave some outputs as they are, put others in use and all the rest out of use.

        Parameters
        ----------
        kept : ndarray of shape (m,)
            Numbers of the outputs that stay.
        fresh : ndarray of shape (K - m, d)
            Weights of those to come. They take outputs that are not in use now, as far as there
            are any: the optimiser has forgotten what it did with these.
        """
        free = np.ones(len(self.active), dtype=bool)
        free[kept] = False
        waiting = self.active.cpu().numpy()
        places = np.lexsort((np.arange(len(free)), waiting))  # those out of use come first
        places = places[free[places]]
        if len(places) < len(fresh):
            raise InputError(
                f"The mixture has found {len(kept) + len(fresh)} categories, and the classifier "
                f"has {len(free)} outputs. Joint training cannot go on from there."
            )
        places = places[: len(fresh)]
        device = self.weight.device
        rows = torch.as_tensor(fresh, dtype=self.weight.dtype, device=device)
        self.weight[torch.from_numpy(places).to(device)] = functional.normalize(rows, dim=1)
        self.active.zero_()
        self.active[torch.from_numpy(np.concatenate([kept, places])).to(device)] = True


class JointMixture(ClassifierLearner):
    """A learner whose classifier the mixture splits and merges; put it before the learner's class.

    Before each epoch every unlabelled row goes to the output whose weights are nearest, labelled
    rows to their class, and the mixture goes on from there (`find_clusters`): with splits and
    merges when they are due, without otherwise. Then the classifier follows the partition. The
    known classes have the first K^l outputs, and these keep their weights. So does a novel output
    that shares more than half of its rows with a component that shares more than half of its own:
    it is the same category. All other components are new and start at their prototypes, the mean
    of their unit-length features; outputs without a component go out of use.

    Notes
    -----
    The optimiser's momentum belongs to the output, not to the category. So a category keeps its
    output for as long as it lives, and a new one takes an output that was out of use: that had no
    gradients, and its momentum has died away.

    At the start no weights are learnt: the first partition is the mixture's own. So are those of
    the loop's warm-up, in which it starts afresh at each round of splits and merges, and any with
    splits and merges that no novel output has lived to see: known classes do not split. Outputs
    survive a fresh start in the same way.
    """

    uses_prototypes = True
    ends_with_mixture = False
    classifier: OpenClassifier

    def classifier_for(self, n_features: int) -> nn.Module:
        """A normalised classifier, whose weights are in the space of the unit-length features."""
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            raise InputError("Joint training with the mixture runs in one process only.")
        tau = self.settings.losses.prototype_temperature
        self.classifier = OpenClassifier(n_features, self.n_components, tau)
        return self.classifier

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
        """The mixture's partition from the classifier's on; the classifier follows it.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Unit-length features.
        codes : ndarray of shape (n,)
            Known class of each row or -1.
        labels : ndarray of shape (n,) or None
            The last partition; only None counts, which asks for a fresh start.
        moves : bool
            Whether components may split and merge.
        seed : int
            Of the mixture.
        count : CategoryCount or None
            What the moves are steered by.
        """
        slots = self.classifier.slots()
        start = None
        if len(slots):
            start, slots = self._nearest(X, codes, slots)
        go_on = labels is not None and not (moves and len(slots) <= self.n_known)
        # on principal directions: a component has a covariance for each pair of columns
        clusters = find_clusters(
            X,
            codes,
            start if go_on else None,
            self.settings.with_changes(pca="all").estep,
            Round(moves, seed, count),
        )
        self._follow(X, codes, start, slots, clusters)
        return clusters

    def _nearest(self, X: Floats, codes: Ints, slots: Ints) -> tuple[Ints, Ints]:
        """Rows by their nearest output, numbered without gaps, and the output of each number."""
        nearest, _ = nearest_centre(X, self.classifier.centres().astype(X.dtype))
        start = np.where(codes == UNLABELLED, nearest, codes)
        numbers = number_components(start, self.n_known, len(slots))
        return numbers[start], slots[numbers >= 0]

    def _follow(
        self, X: Floats, codes: Ints, start: Ints | None, slots: Ints, clusters: Clusters
    ) -> None:
        """Write the partition into the classifier."""
        prototypes = prototypes_of(X, codes, clusters.labels, self.n_known)
        old = np.full(len(prototypes), -1)
        if start is not None:
            old = survivors(start, clusters.labels, self.n_known)
        kept = slots[old[old >= 0]]
        self.classifier.write(kept, prototypes[old < 0])


def survivors(before: Ints, after: Ints, n_known: int) -> Ints:
    """Which component of one partition each component of another is.

    Parameters
    ----------
    before, after : ndarray of shape (n,)
        Components of the rows, numbered without gaps, known classes first.
    n_known : int
        K^l.

    Returns
    -------
    ndarray of shape (K,)
        For each component after, the number of the one before with which it has more than half
        of the rows of both in common, or -1; a known class is itself.
    """
    n_before, n_after = (max(int(part.max()) + 1, n_known) for part in (before, after))
    common = np.zeros((n_before, n_after), dtype=np.int64)
    np.add.at(common, (before, after), 1)
    most = np.maximum(common.sum(axis=0), common.sum(axis=1, keepdims=True))
    same = 2 * common > most
    same[:n_known], same[:, :n_known] = False, False
    same[np.arange(n_known), np.arange(n_known)] = True
    return np.where(same.any(axis=0), same.argmax(axis=0), -1)


class JointClassifier(Classifier):
    """A classifier that can be trained together with the mixture, which then finds K.

    Parameters
    ----------
    n_components : int, optional
        K; needed unless `joint`.
    joint : bool, default=False
        Whether the mixture splits and merges the outputs of the classifier (Table 7b). Then
        features have no principal directions, and nothing is rehearsed at the end.
    **options
        Those of `BenchMethod`.
    """

    variants: ClassVar[frozenset[str]] = frozenset({"joint"})

    def __init__(
        self, n_components: int | None = None, *, joint: bool = False, **options: Any
    ) -> None:
        super().__init__(n_components, **options)
        self.joint = self.finds_k = joint
        if joint:
            self.settings = self.settings.with_changes(
                pca="off", rehearse=False, n_components=n_components
            )

    def _fit_images(self, pixels: npt.NDArray[np.uint8], codes: Ints) -> None:
        if not self.joint:
            super()._fit_images(pixels, codes)
            return
        n_known = int(codes.max()) + 1
        learner = self.learner(n_known, n_known + N_SPARE)
        assert isinstance(learner, JointMixture)
        trained = self._train(learner, pixels, codes)
        head = trained.network.head.eval()
        with torch.no_grad():
            features = torch.from_numpy(trained.features).to(learner.classifier.weight.device)
            best = learner.logits(head(features)).argmax(dim=1).cpu().numpy()
        slots = learner.classifier.slots()
        self.labels_ = np.searchsorted(slots, best)
        self.n_components_ = len(slots)
