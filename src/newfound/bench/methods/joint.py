"""Table 7b: our mixture inside another method finds how many outputs its classifier needs.

The paper says: "We treat the weights of the classifier as the cluster centers and run our GMM to
automatically determine the category number during representation learning."
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

#: Outputs in addition to those of the known classes. The field searches for K up to 1000.
N_SPARE = 1000


class OpenClassifier(nn.Module):
    """A normalised classifier with more outputs than are in use.

    Output k is cos(z, w_k) / τ if it is in use, and -inf otherwise. Then its probability and its
    gradient are 0.

    Parameters
    ----------
    n_features : int
        d.
    n_outputs : int
        Largest number of outputs.
    temperature : float
        τ.

    Attributes
    ----------
    weight : Parameter of shape (n_outputs, d)
        w. Rows have unit length when they are written; later their lengths do not matter.
    active : Tensor of bool, shape (n_outputs,)
        Which outputs are in use; none at the start.
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
        # in float32 even under autocast: the temperature magnifies the rounding of bfloat16
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
        """Keep some outputs, start new ones, and take all others out of use.

        Parameters
        ----------
        kept : ndarray of shape (m,)
            Numbers of the outputs that are kept.
        fresh : ndarray of shape (K - m, d)
            Weights of the new outputs. They take outputs that are not in use now, as long as there
            are any, because the optimiser's momentum has faded there.
        """
        free = np.ones(len(self.active), dtype=bool)
        free[kept] = False
        waiting = self.active.cpu().numpy()
        places = np.lexsort((np.arange(len(free)), waiting))  # outputs out of use come first
        places = places[free[places]]
        if len(places) < len(fresh):
            raise InputError(
                f"The mixture has found {len(kept) + len(fresh)} categories, but the classifier "
                f"has only {len(free)} outputs. Joint training cannot continue."
            )
        places = places[: len(fresh)]
        device = self.weight.device
        rows = torch.as_tensor(fresh, dtype=self.weight.dtype, device=device)
        self.weight[torch.from_numpy(places).to(device)] = functional.normalize(rows, dim=1)
        self.active.zero_()
        self.active[torch.from_numpy(np.concatenate([kept, places])).to(device)] = True


class JointMixture(ClassifierLearner):
    """A mix-in for a learner whose classifier the mixture splits and merges.

    Name it before the learner in the list of base classes. Before each epoch, unlabelled rows are
    assigned to the output with the nearest weights and labelled rows to their class. The mixture
    continues from there (`find_clusters`), with splits and merges in the epochs that have them.
    Then the classifier follows the partition:

    - The known classes have the first K^l outputs and keep their weights.
    - A novel output is kept if it and a component share more than half of the rows of both: they
      are the same category.
    - All other components are new. They start at their prototypes, the means of their unit-length
      features.
    - Outputs without a component go out of use.

    Notes
    -----
    The optimiser's momentum belongs to the output, not to the category. So a category keeps its
    output as long as it exists. A new category takes an output that was out of use: that had no
    gradients, so its momentum has faded.

    The mixture makes its own partition, without the classifier, in three cases: at the start,
    because no weights are trained yet; in each round of splits and merges of the warm-up; and in a
    round without a novel output, because known classes do not split. Outputs are kept by the same
    rule after such a fresh start.
    """

    uses_prototypes = True
    ends_with_mixture = False
    reassigns = False
    classifier: OpenClassifier

    def classifier_for(self, n_features: int) -> nn.Module:
        """A normalised classifier, whose weights are in the space of unit-length features."""
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
        """Continue from the classifier's partition with the mixture, then update the classifier.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Unit-length features.
        codes : ndarray of shape (n,)
            Known class of each row or -1.
        labels : ndarray of shape (n,) or None
            The last partition. Only None matters, which asks for a fresh start.
        moves : bool
            Whether components may split and merge.
        seed : int
            Seed of the mixture.
        count : CategoryCount or None
            Estimated number of categories, which steers the moves.
        """
        slots = self.classifier.slots()
        start = None
        if len(slots):
            start, slots = self._nearest(X, codes, slots)
        continues = labels is not None and not (moves and len(slots) <= self.n_known)
        # with PCA, because a component has a covariance for each pair of columns
        clusters = find_clusters(
            X,
            codes,
            start if continues else None,
            self.settings.with_changes(pca="all").estep,
            Round(moves, seed, count),
        )
        self._follow(X, codes, start, slots, clusters)
        return clusters

    def _nearest(self, X: Floats, codes: Ints, slots: Ints) -> tuple[Ints, Ints]:
        """The nearest output of each row, numbered without gaps, and the output of each number."""
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
    """Match the components of a partition with those of an earlier one.

    Parameters
    ----------
    before, after : ndarray of shape (n,)
        Components of the rows, numbered without gaps, known classes first.
    n_known : int
        K^l.

    Returns
    -------
    ndarray of shape (K,)
        For each component after, the number of the component before with which it shares more than
        half of the rows of both, or -1. A known class is matched with itself.
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
        K; required unless `joint` is true.
    joint : bool, default=False
        Whether the mixture splits and merges the outputs of the classifier (Table 7b). Then
        training uses neither a PCA, nor a rehearsal at its end, nor an average of the weights.
    **options
        Options of `BenchMethod`.
    """

    variants: ClassVar[frozenset[str]] = frozenset({"joint"})

    def __init__(
        self, n_components: int | None = None, *, joint: bool = False, **options: Any
    ) -> None:
        super().__init__(n_components, **options)
        self.joint = self.finds_k = joint
        if joint:
            # the mixture writes into the classifier, which an average of weights would undo
            self.settings = self.settings.with_changes(
                pca="off", rehearse=False, n_components=n_components, weight_average=0.0
            )

    def _fit_images(self, pixels: npt.NDArray[np.uint8], codes: Ints) -> None:
        if not self.joint:
            super()._fit_images(pixels, codes)
            return
        n_known = int(codes.max()) + 1
        learner = self.learner(n_known, n_known + N_SPARE)
        assert isinstance(learner, JointMixture)
        learner.knob = self.knob_value
        trained = self._train(learner, pixels, codes)
        head = trained.network.head.eval()
        with torch.no_grad():
            features = torch.from_numpy(trained.features).to(learner.classifier.weight.device)
            best = learner.logits(head(features)).argmax(dim=1).cpu().numpy()
        slots = learner.classifier.slots()
        self.labels_ = np.searchsorted(slots, best)
        self.n_components_ = len(slots)
