"""PIM: on GCD's features, a linear head that maximises mutual information and fits the labels."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from newfound.arrays import Floats, Ints
from newfound.bench.classifier import labelled_cross_entropy
from newfound.bench.methods.gcd import GCD
from newfound.bench.rivals.brent import best_k
from newfound.bench.rivals.rival_input import LARGEST_TOTAL
from newfound.deep.device import current_device
from newfound.labels import UNLABELLED
from newfound.metrics import discovery_scores
from newfound.mixture.kmeans import SemiSupervisedKMeans
from newfound.mixture.projection import unit_rows

#: Factor of the logits.
SCALE = 25.0
#: Adam on all rows at once, as in the authors' code.
LEARNING_RATE, WEIGHT_DECAY, N_STEPS = 1e-3, 1e-2, 1000
#: Values of λ that are tried.
WEIGHTS = tuple(round(0.1 * step, 1) for step in range(1, 11))
#: Starts of k-means for the search of λ and K.
N_STARTS = 3


class PIM(GCD):
    """PIM: parametric information maximisation on the features of GCD.

    With unit-length features zᵢ and a weight wₖ for each category, pᵢ = softmax(25 w·zᵢ), and

    L = λ·mean_u H(pᵢ) - H(p̄) + mean_l ℓ(yᵢ, pᵢ),

    with the entropy H over unlabelled rows, the mean p̄ over all rows and the cross-entropy ℓ over
    labelled ones. The weights start at the centres of semi-supervised k-means. λ, which allows for
    classes of different sizes, is the value for which the same loss without labels, started from
    k-means, agrees best with the labelled rows. If K is not given, it is the one that agrees best
    with them, by Brent's search. The cluster of a row is its largest pᵢ.

    Departures
    ----------
    - The features are those of our GCD, with its departures; the authors use GCD's published ones.
    - λ is one of 0.1, 0.2, …, 1; the authors try steps of 0.05 from 0.1 on.
    - Brent's search runs over log K, as everywhere here, and uses the best λ for each K.
    - The k-means of these searches has 3 starts; the authors use scikit-learn's.
    """

    title = "PIM"
    source = (
        "Chiaroni, Dolz, Masud, Mitiche, Ben Ayed: Parametric Information Maximization for "
        "Generalized Category Discovery. ICCV 2023"
    )
    uses_pca = False
    variants = frozenset()
    trained_as = "gcd"

    def _fit_features(self, X: Floats, codes: Ints) -> None:
        Z, seed = unit_rows(X).astype(np.float32), self.settings.run.seed
        n_components = self.n_components
        if n_components is None:
            n_known = int(codes.max()) + 1
            largest = max(n_known, min(LARGEST_TOTAL, len(Z) // 2))
            n_components = best_k(lambda k: max(self._accuracies(Z, codes, k)), n_known, largest)
            self.k_source_ = "Brent search with PIM on the finished features"
        weight = WEIGHTS[int(np.argmax(self._accuracies(Z, codes, n_components)))]
        k_means = SemiSupervisedKMeans(
            n_components, n_init=self.n_starts, max_iter=200, random_state=seed
        ).fit(Z, codes)
        self.labels_ = partition(Z, codes, k_means.cluster_centers_, weight, supervised=True)
        self.n_components_ = n_components

    def _accuracies(self, Z: Floats, codes: Ints, n_components: int) -> list[float]:
        """Accuracy on labelled rows of the head without labels, for each λ."""
        seed, labelled = self.settings.run.seed, codes != UNLABELLED
        k_means = SemiSupervisedKMeans(n_components, n_init=N_STARTS, random_state=seed).fit(Z)
        found = []
        for weight in WEIGHTS:
            labels = partition(Z, codes, k_means.cluster_centers_, weight, supervised=False)
            given = codes[labelled]
            found.append(discovery_scores(given, labels[labelled], given).all)
        return found


def partition(Z: Floats, codes: Ints, centres: Floats, weight: float, *, supervised: bool) -> Ints:
    """Clusters of rows by a linear head, trained on all of them.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Unit-length features.
    codes : ndarray of shape (n,)
        Known class of each row or -1.
    centres : ndarray of shape (K, d)
        Weights to start from; those of the known classes first.
    weight : float
        λ.
    supervised : bool
        Whether the labels are fitted.
    """
    device = current_device()
    z, given = torch.from_numpy(Z).to(device), torch.from_numpy(codes).to(device)
    w = torch.from_numpy(np.asarray(centres, dtype=np.float32)).to(device).requires_grad_()
    optimiser = torch.optim.Adam([w], lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    for _ in range(N_STEPS):
        logits = SCALE * z @ w.T
        loss = information_loss(logits, given < 0, weight)
        if supervised:
            loss = loss + labelled_cross_entropy(logits, given)
        (w.grad,) = torch.autograd.grad(loss, [w])
        optimiser.step()
    with torch.no_grad():
        return (z @ w.T).argmax(dim=1).cpu().numpy()


def information_loss(logits: Tensor, unlabelled: Tensor, weight: float) -> Tensor:
    """λ·mean H(pᵢ) over unlabelled rows - H(p̄) over all rows.

    Parameters
    ----------
    logits : Tensor of shape (n, K)
        Outputs of the head.
    unlabelled : Tensor of bool, shape (n,)
        Which rows are unlabelled; at least one.
    weight : float
        λ.

    Returns
    -------
    Tensor
        Scalar.
    """
    log_p = functional.log_softmax(logits, dim=1)
    p = log_p.exp()
    entropies = -(p * log_p).sum(dim=1)
    mean = p.mean(dim=0)
    return weight * entropies[unlabelled].mean() + torch.xlogy(mean, mean.clamp(min=1e-30)).sum()
