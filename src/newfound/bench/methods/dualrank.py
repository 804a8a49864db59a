"""DualRank: ranking statistics of whole images and of image parts, which teach each other."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from newfound.bench.method import ClassifierLearner
from newfound.bench.methods.joint import JointClassifier, JointMixture, OpenClassifier
from newfound.bench.methods.rankstats import KNOB, Ranking, branch_loss, consistency_weight
from newfound.deep.method import Batch
from newfound.errors import InputError

#: Number of words in the dictionary of parts, and of earlier features that are remembered.
N_WORDS, N_REMEMBERED = 2048, 2048
#: δ, how sharply a part chooses its word, relative to the mean distance to the nearest word.
SHARPNESS = 15.0
#: Decay of the running mean of that distance, per batch.
_KEEP = 0.99
#: τ of the similarities on which the branches agree.
TEMPERATURE = 0.07


class DualRank(JointClassifier):
    """DualRank: a global and a local branch, each with its ranking statistics and its classifier.

    The global branch is RankStats+: s_ij comes from the k = 5 largest values of the backbone's
    feature. The local branch uses the parts u_il of image i, which are the vectors at the
    positions l = 1…L of the feature map, and a dictionary of 2048 words c_m, which are parts of
    earlier images. A part has a share in each word, and an image is the mean of its parts:

    b_im = mean_l softmax_m (-15 |u_il - c_m|² / d̄), with d̄ the running mean of the squared
    distance from a part to its nearest word.

    In the local branch two images count as one class if the 5 largest values of b belong to the
    same words. Each branch has its own classifier on its pooled feature, f^g or f^l, and the loss
    of RankStats+, L_CE + L_BCE + ω(t)·L_MSE. Mutual distillation makes the branches agree on which
    images are alike: for unlabelled rows, with unit-length features f of the first view and f′ of
    the second, and a memory M of 2048 earlier f′ of each branch,

    a_i = softmax([f_i·f_i′, f_i·M_1, …] / 0.07),
    L_MKD = mean_i (KL(a^g_i ‖ a^l_i) + KL(a^l_i ‖ a^g_i)) / 2,
    L = Σ_branches (L_CE + L_BCE + ω(t)·L_MSE) + L_MKD.

    Departures
    ----------
    - The original finds novel classes only, with two classifiers in each branch. As in RankStats+
      each branch has one classifier with K outputs, and the cross-entropy is over all of them.
    - The branches share the backbone's last block or stage; in the original each has its own copy.
      Instead, the local branch has its own residual MLP at each position of the map. It adds
      nothing at the start, because the original's copies are equal at the start.
    - The outermost positions of the map are used. The original leaves them out because of the
      padding, but a ViT has no padding, and a small map may have no inner positions.
    - The global branch decides the cluster of an image, as in the authors' code by default.
    - The local classifier uses the local feature, and L_BCE of the local branch uses both views, as
      the paper says. The authors' code uses the global feature, and the same view twice.
    - Both views add one part of each image to the dictionary; in the authors' code only the first.
    - d̄ starts at its value in the first batch; in the authors' code at 0.5 on any scale.
    - Ramp-up, ranking and pairs are as in `RankStats`, with the departures that are listed there.
    - With ``joint=True`` the mixture changes the classifier of the global branch. The local one has
      the same number of outputs in use, and a new output starts from random weights. So beyond the
      known classes the outputs of the two branches need not mean the same category.
    """

    title: ClassVar[str] = "DualRank"
    knob = KNOB
    source: ClassVar[str] = (
        "Zhao, Han: Novel Visual Category Discovery with Dual Ranking Statistics and Mutual "
        "Knowledge Distillation. NeurIPS 2021"
    )

    def learner(self, n_known: int, n_components: int) -> ClassifierLearner:
        """The head and the loss that are trained."""
        kind = JointDualRanking if self.joint else DualRanking
        return kind(self.settings, n_known, n_components)


class DualRanking(Ranking):
    """The two branches and the loss of DualRank."""

    def head(self, n_features: int) -> nn.Module:
        """Both classifiers, the dictionary and the memories."""
        width = self.n_components
        self.branches = Branches(self.classifier_for(n_features), n_features, width)
        return self.branches

    def loss(self, batch: Batch) -> Tensor:
        """Σ_branches (L_CE + L_BCE + ω·L_MSE) + L_MKD; also updates the memories."""
        whole, local, f_local, bag = self.branches.split(batch.h.float())
        weight = consistency_weight(batch.epoch, self.settings.optimiser.epochs, self.knob)
        loss = branch_loss(whole, batch.z[0], batch.codes, weight)
        loss = loss + branch_loss(local, bag[0], batch.codes, weight)
        z, f_local = batch.z.float(), functional.normalize(f_local, dim=2)
        unlabelled = batch.codes < 0
        alike = similarities(z[0], z[1], self.branches.whole_memory.rows())
        alike_local = similarities(f_local[0], f_local[1], self.branches.local_memory.rows())
        self.branches.whole_memory.add(z[1], unlabelled)
        self.branches.local_memory.add(f_local[1], unlabelled)
        return loss + mutual_loss(alike, alike_local, unlabelled)

    def logits(self, h: Tensor) -> Tensor:
        """Outputs of the global branch."""
        return h[..., : self.n_components]


class JointDualRanking(JointMixture, DualRanking):
    """`DualRanking` with a global classifier whose outputs the mixture splits and merges."""


def similarities(f_a: Tensor, f_b: Tensor, memory: Tensor) -> Tensor:
    """Logits of a: similarities of an image to its other view and to earlier images.

    Parameters
    ----------
    f_a, f_b : Tensor of shape (n, d)
        Unit-length features of the two views.
    memory : Tensor of shape (M, d)
        Unit-length features of earlier images.

    Returns
    -------
    Tensor of shape (n, 1 + M)
        Cosines divided by the temperature.
    """
    own = (f_a * f_b).sum(dim=1, keepdim=True)
    return torch.cat([own, f_a @ memory.T], dim=1) / TEMPERATURE


def mutual_loss(a: Tensor, b: Tensor, rows: Tensor) -> Tensor:
    """Mutual knowledge distillation: the mean of both Kullback-Leibler divergences.

    Parameters
    ----------
    a, b : Tensor of shape (n, m)
        Logits of the two branches.
    rows : Tensor of bool, shape (n,)
        Which rows count.

    Returns
    -------
    Tensor
        Scalar, the mean over the rows that count; 0 if there are none.
    """
    log_a, log_b = a.log_softmax(dim=1), b.log_softmax(dim=1)
    # KL(a‖b) + KL(b‖a) = Σ (a - b)(log a - log b)
    both = ((log_a.exp() - log_b.exp()) * (log_a - log_b)).sum(dim=1)
    return torch.where(rows, both / 2, 0).sum() / rows.sum().clamp(min=1)


class Memory(nn.Module):
    """The latest rows, in a ring of fixed length. It starts with random directions.

    Parameters
    ----------
    n_rows, n_features : int
        M and d.
    """

    store: Tensor
    next: Tensor

    def __init__(self, n_rows: int, n_features: int) -> None:
        super().__init__()
        store = functional.normalize(torch.randn(n_rows + 1, n_features), dim=1)
        store[-1] = 0  # a spare slot for rows that are not kept, see `add`
        self.register_buffer("store", store)
        self.register_buffer("next", torch.zeros((), dtype=torch.long))

    def rows(self) -> Tensor:
        """A copy of the stored rows, (M, d)."""
        return self.store[:-1].clone()

    @torch.no_grad()
    def add(self, rows: Tensor, wanted: Tensor) -> None:
        """Store some rows in place of the oldest ones.

        All shapes are fixed, however many rows are wanted, so that no step waits for the GPU.

        Parameters
        ----------
        rows : Tensor of shape (n, d)
            Features.
        wanted : Tensor of bool, shape (n,)
            Which rows to store; at most the first M of them.
        """
        size = len(self.store) - 1
        order = wanted.cumsum(dim=0)
        wanted = wanted & (order <= size)
        place = torch.where(wanted, (self.next + order - 1) % size, size)
        self.store[place] = rows.detach().to(self.store.dtype)
        self.store[-1] = 0
        self.next.copy_((self.next + wanted.sum()) % size)


class PartDictionary(nn.Module):
    """Parts of earlier images as words, and the shares of these words in an image.

    Parameters
    ----------
    n_words, n_features : int
        Number and width of the words.
    """

    spread: Tensor

    def __init__(self, n_words: int, n_features: int) -> None:
        super().__init__()
        self.words = Memory(n_words, n_features)
        self.register_buffer("spread", torch.zeros(()))

    @torch.no_grad()
    def forward(self, parts: Tensor) -> Tensor:
        """Shares of the words in each image. In training, one part per image becomes a word.

        Parameters
        ----------
        parts : Tensor of shape (n, L, d)
            Vectors at the positions of the maps.

        Returns
        -------
        Tensor of shape (n, n_words)
            b; each row sums to 1.
        """
        n_images, n_places, _ = parts.shape
        squared = torch.cdist(parts.flatten(0, 1), self.words.rows()).square()
        if self.training:
            nearest = squared.amin(dim=1).mean()
            moved = _KEEP * self.spread + (1 - _KEEP) * nearest
            self.spread.copy_(torch.where(self.spread == 0, nearest, moved))
            chosen = torch.randint(n_places, (n_images,), device=parts.device)
            rows = parts[torch.arange(n_images, device=parts.device), chosen]
            self.words.add(rows, torch.ones(n_images, dtype=torch.bool, device=parts.device))
        sharpness = SHARPNESS / self.spread.clamp(min=torch.finfo(parts.dtype).tiny)
        shares = (-sharpness * squared).softmax(dim=1)
        return shares.view(n_images, n_places, -1).mean(dim=1)


class Branches(nn.Module):
    """The global and the local classifier, the dictionary of parts and the two memories.

    Parameters
    ----------
    classifier : nn.Module
        Classifier of the global branch, with `n_outputs` outputs.
    n_features, n_outputs : int
        d and K.
    n_words, n_remembered : int
        Sizes of the dictionary and of the memories.
    """

    takes_map = True

    def __init__(
        self,
        classifier: nn.Module,
        n_features: int,
        n_outputs: int,
        n_words: int = N_WORDS,
        n_remembered: int = N_REMEMBERED,
    ) -> None:
        super().__init__()
        self.widths = [n_outputs, n_outputs, n_features, n_words]
        self.classifier = classifier
        self.refine = nn.Sequential(
            nn.Linear(n_features, n_features), nn.GELU(), nn.Linear(n_features, n_features)
        )
        for value in self.refine[-1].parameters():
            nn.init.zeros_(value)
        self.local = nn.Linear(n_features, n_outputs)
        self.dictionary = PartDictionary(n_words, n_features)
        self.whole_memory = Memory(n_remembered, n_features)
        self.local_memory = Memory(n_remembered, n_features)

    def forward(self, features: Tensor, places: Tensor | None = None) -> Tensor:
        """Outputs of both branches side by side; without a map, only those of the global branch.

        Parameters
        ----------
        features : Tensor of shape (n, d)
            Features of whole images.
        places : Tensor of shape (n, L, d), optional
            Vectors at the positions of their maps.
        """
        whole: Tensor = self.classifier(features)
        if places is None:
            return whole
        if places.shape[2] != features.shape[1]:
            raise InputError(
                f"DualRank compares parts with whole images: the network's map has "
                f"{places.shape[2]} channels, but its feature has {features.shape[1]}. Choose "
                "another model, such as a ViT, ResNet or ConvNeXt."
            )
        parts = places + self.refine(places)
        pooled = parts.mean(dim=1)
        local = self.local(pooled)
        if isinstance(self.classifier, OpenClassifier):
            local = local.masked_fill(~self.classifier.active, -torch.inf)
        with torch.autocast(places.device.type, enabled=False):
            bag = self.dictionary(parts.detach().float())
        return torch.cat([whole.float(), local.float(), pooled.float(), bag], dim=1)

    def split(self, h: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Global outputs, local outputs, local features and shares of words, from (…, p)."""
        whole, local, pooled, bag = torch.split(h, self.widths, dim=-1)
        return whole, local, pooled, bag
