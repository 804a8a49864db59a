"""Parts of several methods: a classifier by cosines with prototypes, and two losses."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class CosineClassifier(nn.Module):
    """Cosines of features (n, d) with prototypes (K, d), in float32 even under autocast.

    Parameters
    ----------
    n_features, n_outputs : int
        d and K. K may be 0.
    """

    def __init__(self, n_features: int, n_outputs: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(n_features)
        self.prototypes = nn.Parameter(torch.empty(n_outputs, n_features).uniform_(-bound, bound))

    def forward(self, features: Tensor) -> Tensor:
        """Cosines of shape (n, K)."""
        # cosines are divided by small temperatures, which would magnify the rounding of bfloat16
        with torch.autocast(features.device.type, enabled=False):
            z = functional.normalize(features.float(), dim=1)
            return z @ functional.normalize(self.prototypes, dim=1).T


def entropy_gap(probabilities: Tensor) -> Tensor:
    """Distance of the mean prediction from uniform: KL(p̄ ‖ uniform) = log K - H(p̄).

    Parameters
    ----------
    probabilities : Tensor of shape (..., K)
        Predicted probabilities.

    Returns
    -------
    Tensor
        Scalar, at least 0.
    """
    n_classes = probabilities.shape[-1]
    mean = probabilities.reshape(-1, n_classes).mean(dim=0)
    return math.log(n_classes) + torch.xlogy(mean, mean.clamp(min=1e-30)).sum()


def labelled_cross_entropy(logits: Tensor, codes: Tensor) -> Tensor:
    """Cross-entropy over the labelled rows.

    Parameters
    ----------
    logits : Tensor of shape (..., n, K)
        Logits of one or several views.
    codes : Tensor of int, shape (n,)
        Known class of each row or -1.

    Returns
    -------
    Tensor
        Scalar, the mean over labelled rows and views; 0 if no row is labelled.
    """
    labelled = codes >= 0
    target = codes.clamp(min=0).expand(logits.shape[:-1])
    picked = logits.log_softmax(dim=-1).gather(-1, target[..., None])[..., 0]
    n_views = picked.numel() // len(codes)
    return -torch.where(labelled, picked, 0).sum() / (n_views * labelled.sum()).clamp(min=1)
