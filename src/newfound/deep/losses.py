"""The losses of the M-step, each a pure function of tensors: Eq. 1, Eq. 2 and their relatives.

All take unit-length features and return the mean over rows. All are 0, with a gradient of 0, where
there is nothing to compare: no labelled row, or a single prototype.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def contrastive_loss(z_a: Tensor, z_b: Tensor, temperature: float) -> Tensor:
    """Self-supervised contrastive loss of one view against the other.

    Eq. 1: L_CL = -log [exp(zᵢ·zᵢ′/τ) / Σⱼ exp(zᵢ·zⱼ′/τ)], j over the n rows of the batch.

    Parameters
    ----------
    z_a, z_b : Tensor of shape (n, d)
        The two views of the same images, row by row, with unit length.
    temperature : float
        τ.

    Returns
    -------
    Tensor
        Scalar, the mean over i.
    """
    logits = z_a @ z_b.T / temperature
    return functional.cross_entropy(logits, torch.arange(len(z_a), device=z_a.device))


def prototype_loss(
    v: Tensor, prototypes: Tensor, assigned: Tensor, temperature: float | Tensor
) -> Tensor:
    """Prototypical contrastive loss.

    Eq. 2: L_PCL = -log [exp(vᵢ·μₛ/τ) / Σⱼ exp(vᵢ·μⱼ/τ)], s the prototype of row i.

    Parameters
    ----------
    v : Tensor of shape (n, q)
        Features in the space of the prototypes.
    prototypes : Tensor of shape (K, q)
        μ.
    assigned : Tensor of int, shape (n,), or of float, shape (n, K)
        s, the prototype of each row; or its shares in all prototypes.
    temperature : float or Tensor of shape (K,)
        τ, one for all prototypes or one for each.

    Returns
    -------
    Tensor
        Scalar, the mean over i; 0 with a single prototype.
    """
    return functional.cross_entropy(v @ prototypes.T / temperature, assigned)


def shares_of_other_view(
    v: Tensor, prototypes: Tensor, assigned: Tensor, is_free: Tensor, temperature: float
) -> Tensor:
    """Targets of L_PCL: unlabelled rows are drawn to the prototypes of their other view.

    Parameters
    ----------
    v : Tensor of shape (2·n, q)
        Features in the space of the prototypes; all first views come before all second ones.
    prototypes : Tensor of shape (K, q)
        μ.
    assigned : Tensor of int, shape (n,)
        The prototype of each row.
    is_free : Tensor of bool, shape (n,)
        Which rows are unlabelled.
    temperature : float
        τ of the shares; lower than that of the loss, so that the targets are sharper.

    Returns
    -------
    Tensor of shape (2·n, K)
        softmax(v′·μ/τ) with the other view v′; 1 for the class of a labelled row. No gradient.
    """
    with torch.no_grad():
        soft = (v @ prototypes.T / temperature).softmax(dim=1)
        soft = soft.view(2, len(is_free), -1).flip(0)
        hard = functional.one_hot(assigned, len(prototypes)).to(soft.dtype)
        return torch.where(is_free[:, None], soft, hard).flatten(0, 1)


def size_loss(
    v: Tensor, prototypes: Tensor, excess: Tensor, is_free: Tensor, temperature: float
) -> Tensor:
    """Push rows out of components that are too large.

    L_size = Σₖ p̄ₖ·log(Pₖ/πₖ), with p̄ the mean of softmax(v·μ/τ) over the unlabelled rows of the
    batch, P that over all unlabelled rows at the last E-step, and π the expected shares. Its
    gradient is that of Σₖ Pₖ·log(Pₖ/πₖ), estimated on the batch. (With p̄ in place of P it would
    be biased: in a batch of few rows, every class that is present looks too large, and a small
    class most of all.)

    Parameters
    ----------
    v : Tensor of shape (n, q)
        Features in the space of the prototypes.
    prototypes : Tensor of shape (K, q)
        μ.
    excess : Tensor of shape (K,)
        log(P/π).
    is_free : Tensor of bool, shape (n,)
        Which rows are unlabelled.
    temperature : float
        τ.

    Returns
    -------
    Tensor
        Scalar; 0 without unlabelled rows.
    """
    shares = (v @ prototypes.T / temperature).softmax(dim=1)
    # labelled rows get the weight 0: cutting them out would change shapes from batch to batch
    return (shares @ excess * is_free).sum() / is_free.sum().clamp(min=1)


def supervised_contrastive_loss(
    z_a: Tensor, z_b: Tensor, labels: Tensor, temperature: float
) -> Tensor:
    """Supervised contrastive loss (Khosla et al.), over the labelled rows of a batch.

    For each view zᵢ of a labelled row, with P(i) the other views of its class and A(i) all other
    views of labelled rows:
    L = -1/|P(i)| Σ_{p ∈ P(i)} log [exp(zᵢ·z_p/τ) / Σ_{a ∈ A(i)} exp(zᵢ·z_a/τ)].

    Parameters
    ----------
    z_a, z_b : Tensor of shape (n, d)
        The two views, with unit length.
    labels : Tensor of int, shape (n,)
        Class of each row; negative where it is unlabelled.
    temperature : float
        τ.

    Returns
    -------
    Tensor
        Scalar, the mean over the 2·n_l views; 0 without a labelled row.
    """
    labels = torch.cat([labels, labels])
    views = torch.cat([z_a, z_b])
    labelled = labels >= 0
    itself = torch.eye(len(views), dtype=torch.bool, device=views.device)
    # unlabelled views are masked: cutting them out would change shapes from batch to batch
    logits = views @ views.T / temperature
    logits = logits.masked_fill(itself | ~labelled, -torch.inf)
    logits = torch.where(labelled[:, None], logits, 0)  # not -inf alone, if no row is labelled
    same = (labels[:, None] == labels) & labelled & ~itself
    log_share = logits - logits.logsumexp(dim=1, keepdim=True)
    per_view = -torch.where(same, log_share, 0).sum(dim=1) / same.sum(dim=1).clamp(min=1)
    return per_view.sum() / labelled.sum().clamp(min=1)


def pcl_weight(epoch: int, warmup_epochs: int = 20) -> float:
    """Weight of the prototypical loss, λ(t) = min(1, t/T).

    Parameters
    ----------
    epoch : int
        t, counted from 0.
    warmup_epochs : int, default=20
        T; with 0 the weight is 1 from the start.

    Returns
    -------
    float
        λ(t).
    """
    return 1.0 if warmup_epochs == 0 else min(1.0, epoch / warmup_epochs)
