"""DualRank: ranking statistics of whole images and of their parts, which teach each other."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from newfound.bench.method import ClassifierLearner
from newfound.bench.methods.joint import JointClassifier, JointMixture, OpenClassifier
from newfound.bench.methods.rankstats import Ranking, branch_loss, consistency_weight
from newfound.deep.method import Batch
from newfound.errors import InputError

#: Words of the dictionary of parts, and features that the branches compare an image with.
N_WORDS, N_REMEMBERED = 2048, 2048
#: δ: how sharply a part chooses its word, in mean distances to the nearest word.
SHARPNESS = 15.0
#: Share of the mean distance that is kept from batch to batch.
_KEEP = 0.99
#: τ of the similarities that the branches teach each other.
TEMPERATURE = 0.07


class DualRank(JointClassifier):
    """DualRank: a global and a local branch, each with its ranking statistics and its classifier.

    The global branch is RankStats+: s_ij from the k = 5 greatest values of the backbone's feature.
    The local branch looks at the parts u_il of image i, the vectors at the places l = 1…L of the
    feature map, and at a dictionary of 2048 words c_m, parts of earlier images. A part says how
    near it is to each word, and an image is the mean of what its parts say:

    b_im = mean_l softmax_m (-15 |u_il - c_m|² / d̄), with d̄ the running mean of the squared
    distance from a part to its nearest word.

    Two images are of one class for the local branch if the 5 greatest values of b are those of the
    same words. With p from the branch's own classifier on its pooled feature, f^g or f^l, each
    branch has the loss of RankStats+, L_CE + L_BCE + ω(t)·L_MSE. Mutual distillation makes them
    agree on which images are alike: for unlabelled rows, with unit-length features f of the one
    view and f′ of the other, and a memory M of 2048 earlier f′ of each branch,

    a_i = softmax([f_i·f_i′, f_i·M_1, …] / 0.07),
    L_MKD = mean_i (KL(a^g_i ‖ a^l_i) + KL(a^l_i ‖ a^g_i)) / 2,
    L = Σ_branches (L_CE + L_BCE + ω(t)·L_MSE) + L_MKD.

    Departures
    ----------
    - The original finds novel classes only, with two classifiers in each branch. As in RankStats+
      a branch has one of K outputs, with the cross-entropy over all of them.
    - The branches share the backbone's last block or stage; in the original each has its own copy.
      The local branch has instead a residual MLP of its own at each place of the map, which adds
      nothing at the start, as the original's copies start alike.
    - The outermost places of the map take part too. The original leaves them out, because of the
      padding; a ViT has none, and small maps would have no others.
    - The global branch names the cluster of an image. The paper's code does so by default, too.
    - The local classifier takes the local feature, and L_BCE of the local branch the two views, as
      the paper says; in the authors' code the one takes the global feature and the other the same
      view twice.
    - Both views add parts to the dictionary, a part of each image; in the authors' code the first.
    - d̄ starts at its value in the first batch; in the authors' code at 0.5 whatever the scale.
    - Ramp-up, ranking and pairs as in `RankStats`, with the departures that are listed there.
    - With ``joint=True`` the mixture works on the global branch's classifier; the local one has as
      many outputs in use, and a new one starts from random weights: outputs of the two branches
      need not mean the same category beyond the known classes.
    """

    title: ClassVar[str] = "DualRank"
    source: ClassVar[str] = (
        "Zhao, Han: Novel Visual Category Discovery with Dual Ranking Statistics and Mutual "
        "Knowledge Distillation. NeurIPS 2021"
    )

    def learner(self, n_known: int, n_components: int) -> ClassifierLearner:
        """What is learnt."""
        kind = JointDualRanking if self.joint else DualRanking
        return kind(self.settings, n_known, n_components)


class DualRanking(Ranking):
    """The two branches and the loss of DualRank."""

    def head(self, n_features: int) -> nn.Module:
        """Two classifiers and what they need."""
        width = self.n_components
        self.branches = Branches(self.classifier_for(n_features), n_features, width)
        return self.branches

    def loss(self, batch: Batch) -> Tensor:
        """Σ_branches (L_CE + L_BCE + ω·L_MSE) + L_MKD; the memories move on."""
        whole, local, f_local, bag = self.branches.split(batch.h.float())
        weight = consistency_weight(batch.epoch, self.settings.optimiser.epochs)
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
    """The same with a global classifier whose outputs the mixture splits and merges."""


def similarities(f_a: Tensor, f_b: Tensor, memory: Tensor) -> Tensor:
    """Logits of a: how like an image is to its other view and to images before.

    Parameters
    ----------
    f_a, f_b : Tensor of shape (n, d)
        Unit-length features of the two views.
    memory : Tensor of shape (M, d)
        Unit-length features of other images.

    Returns
    -------
    Tensor of shape (n, 1 + M)
        Cosines by temperature.
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
        Scalar, the mean over the rows that count; 0 without any.
    """
    log_a, log_b = a.log_softmax(dim=1), b.log_softmax(dim=1)
    # KL(a‖b) + KL(b‖a) = Σ (a - b)(log a - log b)
    both = ((log_a.exp() - log_b.exp()) * (log_a - log_b)).sum(dim=1)
    return torch.where(rows, both / 2, 0).sum() / rows.sum().clamp(min=1)


class Memory(nn.Module):
    """The last rows that were added, a ring of fixed length; random directions at the start.

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
        store[-1] = 0  # where rows go that are not to be kept
        self.register_buffer("store", store)
        self.register_buffer("next", torch.zeros((), dtype=torch.long))

    def rows(self) -> Tensor:
        """A copy of what is kept, (M, d)."""
        return self.store[:-1].clone()

    @torch.no_grad()
    def add(self, rows: Tensor, wanted: Tensor) -> None:
        """Keep some rows in place of the oldest; the shapes are the same however many.

        Parameters
        ----------
        rows : Tensor of shape (n, d)
            Features.
        wanted : Tensor of bool, shape (n,)
            Those to keep; the first M of them.
        """
        size = len(self.store) - 1
        order = wanted.cumsum(dim=0)
        wanted = wanted & (order <= size)
        place = torch.where(wanted, (self.next + order - 1) % size, size)
        self.store[place] = rows.detach().to(self.store.dtype)
        self.store[-1] = 0
        self.next.copy_((self.next + wanted.sum()) % size)


class PartDictionary(nn.Module):
    """Parts of earlier images, and what a new image has of them.

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
        """Shares of the words in each image; in training, one part of each becomes a word.

        Parameters
        ----------
        parts : Tensor of shape (n, L, d)
            Vectors at the places of the maps.

        Returns
        -------
        Tensor of shape (n, n_words)
            b, with sum 1 in each row.
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
        Of the global branch, with `n_outputs` outputs.
    n_features, n_outputs : int
        d and K.
    n_words, n_remembered : int
        Lengths of the dictionary and of the memories.
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
        """Outputs of both branches side by side; without a map, of the global one alone.

        Parameters
        ----------
        features : Tensor of shape (n, d)
            Of whole images.
        places : Tensor of shape (n, L, d), optional
            Vectors at the places of their maps.
        """
        whole: Tensor = self.classifier(features)
        if places is None:
            return whole
        if places.shape[2] != features.shape[1]:
            raise InputError(
                f"DualRank compares parts with whole images: the network's map has "
                f"{places.shape[2]} channels and its feature {features.shape[1]}. Take another "
                "model, such as a ViT, ResNet or ConvNeXt."
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
