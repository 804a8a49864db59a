"""From features to a partition: which component each row belongs to.

The component of each row is the only state that is carried from one epoch to the next. Means,
prototypes and covariances are derived from it and from the present features, because they do not
survive a change of the features; a partition does.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from newfound.arrays import Doubles, Floats, Ints
from newfound.deep.reassignment import fit_projection, nearest_rounds, on_device, project
from newfound.deep.settings import EStepSettings
from newfound.deep.shard import ALONE, Shard
from newfound.errors import DiscoveryWarning
from newfound.labels import UNLABELLED
from newfound.mixture.assignment import N_ROUNDS, prototypes_of
from newfound.mixture.counting.count import CategoryCount, count_categories
from newfound.mixture.counting.novel_size import Sizes, parse_sizes
from newfound.mixture.estimator import SplitMergeMixture
from newfound.mixture.projection import EXACT_COLUMNS, Projection, enough_to_whiten
from newfound.mixture.refill import nearest_in_k
from newfound.mixture.rows import nearest_centre
from newfound.mixture.split_merge import number_components


@dataclass(frozen=True)
class Clusters:
    """A partition, and the space that it was found in.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        Component of each row, known classes first.
    n_known : int
        K^l.
    V : ndarray of shape (m, q)
        Rows of this process in the space of the mixture; with one process m = n.
    prototypes : ndarray of shape (K, q)
        Mean of the labelled rows of a known class; mean of all rows of a novel category, weighted
        if sizes are expected.
    projection : Projection
        The map from the reduced features to V.
    sizes : ndarray of shape (K,) or None
        Expected number of unlabelled rows in each component.
    shard : Shard
        Which rows this process has.
    before : ndarray of shape (K, q) or None
        Prototypes of the partition that this one was made from, in the same space.
    """

    labels: Ints
    n_known: int
    V: Floats
    prototypes: Doubles
    projection: Projection
    sizes: Doubles | None = None
    shard: Shard = ALONE
    before: Doubles | None = None

    @property
    def n_components(self) -> int:
        """K."""
        return len(self.prototypes)

    def accuracy(self, codes: Ints, held_out: Ints) -> float | None:
        """Share of labelled rows whose nearest prototype is that of their class.

        Parameters
        ----------
        codes : ndarray of shape (n,)
            Known class of each row or -1, including held-out rows.
        held_out : ndarray of bool, shape (n,)
            Rows to evaluate; if there is none, all labelled rows are evaluated.

        Returns
        -------
        float or None
            The share; None if no row is labelled.
        """
        rows = held_out if held_out.any() else codes != UNLABELLED
        if not rows.any():
            return None
        own = self.shard.own
        V = self.V[rows[own]]
        nearest, _ = nearest_centre(V, self.prototypes.astype(self.V.dtype))
        n_right = int((nearest == codes[own][rows[own]]).sum())
        return self.shard.count(n_right) / int(rows.sum())

    def prototypes_in(self, X: Floats, codes: Ints) -> Doubles:
        """Prototypes (K, d) in another space, from the rows X (m, d) of this process there."""
        shard = self.shard
        return prototypes_of(X, codes, self.labels, self.n_known, shard.own, shard.total)


def mixture_for(settings: EStepSettings, n_columns: int, **changes: object) -> SplitMergeMixture:
    """The mixture with the parameters of the settings.

    Parameters
    ----------
    settings : EStepSettings
        K, acceptance, principal directions.
    n_columns : int
        d, the width of the features.
    **changes
        Parameters of the mixture that differ from the settings.
    """
    parameters: dict[str, object] = {
        "n_components_init": settings.n_components_init,
        "n_components": None if changes.get("count") else settings.n_components,
        "n_directions": n_columns if settings.pca == "off" else settings.n_directions,
        "acceptance": settings.acceptance,
        "count_term": settings.count_term,
        "whiten": settings.whiten,
        "sizes": parse_sizes(settings.sizes),
    }
    return SplitMergeMixture(**{**parameters, **changes})  # type: ignore[arg-type]


def sizes_in_learnt_features(sizes: Sizes | None) -> Sizes | None:
    """What may be said about sizes in features that were trained on the labels.

    Training draws known classes together, so that fewer rows are near a novel one whatever its
    size: in such features sizes cannot be measured, and are taken to be alike.
    """
    return "alike" if sizes == "unknown" else sizes


def known_count(codes: Ints, n_components: int, novel_share: float) -> CategoryCount:
    """The count when K is given: components may still split and merge, in pairs.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Known class of each row or -1.
    n_components : int
        K.
    novel_share : float
        Share of the unlabelled rows that is novel.
    """
    n_known = int(codes.max()) + 1
    n_novel = max(0, n_components - n_known)
    return CategoryCount(
        n_novel=float(n_novel),
        interval=(float(n_novel), float(n_novel)),
        level=1.0,
        label_rate=float("nan"),
        novel_share=novel_share,
        n_known=n_known,
        n_absent=0,
    )


@dataclass(frozen=True)
class Round:
    """What one E-step may do.

    Attributes
    ----------
    moves : bool
        Whether components may split and merge; otherwise K stays what it is.
    seed : int
        Seed of the mixture.
    count : CategoryCount or None
        The count that decides how many moves are made; None for a count in the features at hand.
    """

    moves: bool
    seed: int
    count: CategoryCount | None = None


def find_clusters(
    X: Floats,
    codes: Ints,
    labels: Ints | None,
    settings: EStepSettings,
    task: Round,
) -> Clusters:
    """Update a partition: nearest prototypes and, if allowed, splits and merges.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features, reduced or not.
    codes : ndarray of shape (n,)
        Known class of each row or -1.
    labels : ndarray of shape (n,) or None
        The partition to start from; None to start with k-means.
    settings : EStepSettings
        How categories are found.
    task : Round
        What this E-step may do.

    Returns
    -------
    Clusters
        The new partition.
    """
    if labels is not None and not (task.moves and (task.count or settings.n_components is None)):
        return reassign(X, codes, labels, settings)
    changes: dict[str, object] = {"n_init": 1, "random_state": task.seed, "count": task.count}
    changes["sizes"] = None  # the loop itself heeds expected sizes
    if settings.acceptance == "literal":
        changes["max_passes"] = 1  # Algorithm 1 makes one pass per epoch
    if not task.moves and settings.n_components is None:
        changes["n_components"] = _first_k(codes, settings)
    mixture = mixture_for(settings, X.shape[1], **changes)
    sizes = sizes_in_learnt_features(parse_sizes(settings.sizes))
    counts = settings.acceptance == "calibrated" and codes.max() > 0 and task.count is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscoveryWarning)  # the end of training warns once
        if counts and mixture.n_components is None and sizes is not None:
            # the mixture is not told about sizes, but they enter the count
            count = count_categories(X, codes, sizes=sizes, random_state=task.seed)
            mixture.set_params(count=count)
        if labels is None:
            mixture.fit(X, codes)
        else:
            mixture.refit(X, codes, labels)
    V = mixture.projection_.transform(X)
    return Clusters(mixture.labels_, mixture.n_known_, V, mixture.prototypes_, mixture.projection_)


def reassign(
    X: Floats, codes: Ints, labels: Ints, settings: EStepSettings, shard: Shard = ALONE
) -> Clusters:
    """Keep the components and move each row to its nearest prototype in the new features.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        Features of this process, reduced or not.
    codes : ndarray of shape (n,)
        Known class of each row of all processes or -1.
    labels : ndarray of shape (n,)
        The partition to start from.
    settings : EStepSettings
        Number of directions, whether to whiten, and K if it is given.
    shard : Shard, optional
        Which rows this process has.

    Returns
    -------
    Clusters
        The new partition.
    """
    n_known = int(codes.max()) + 1
    x, given = on_device(X), on_device(codes[shard.own])
    keeps_all = settings.pca == "off" or X.shape[1] <= settings.n_directions
    if keeps_all and X.shape[1] < len(codes) and X.shape[1] <= EXACT_COLUMNS:
        projection = fit_projection(x, given, whiten=_whitens(codes, settings), shard=shard)
        v = project(x, projection)
    else:  # some directions are left out: needs the mixture's own projection, of all rows
        V, projection = mixture_space(shard.whole(X), codes, settings)
        v = on_device(V[shard.own])
    labels = np.where(codes == UNLABELLED, labels, codes)
    labels = number_components(labels, n_known)[labels]
    V, k = v.cpu().numpy(), settings.n_components
    before = prototypes_of(V, codes, labels, n_known, shard.own, shard.total)
    own = nearest_rounds(v, given, on_device(labels[shard.own]), n_known, N_ROUNDS, shard)
    labels = shard.whole(own.cpu().numpy())
    number_of = number_components(labels, n_known, len(before))
    labels, before = number_of[labels], before[number_of >= 0]
    if k is not None and int(labels.max()) + 1 < k:
        labels = _refill(V, codes, labels, k, shard)
    prototypes = prototypes_of(V, codes, labels, n_known, shard.own, shard.total)
    same = before if len(before) == len(prototypes) else None
    return Clusters(labels, n_known, V, prototypes, projection, shard=shard, before=same)


def _refill(V: Floats, codes: Ints, labels: Ints, n_components: int, shard: Shard) -> Ints:
    """Give rows to components that have lost all of theirs; looks at all rows together."""
    n_known, everything = int(codes.max()) + 1, shard.collect(V)
    if everything is not None:
        labels = nearest_in_k(everything, codes, labels, n_known, N_ROUNDS, n_components)
        labels = number_components(labels, n_known)[labels]
    return shard.same(labels)


def share_out(found: Clusters | None, shard: Shard) -> Clusters:
    """Hand a partition of all rows to all processes, each with the rows of its own.

    Parameters
    ----------
    found : Clusters or None
        The partition in the first process; None in the others.
    shard : Shard
        Which rows this process has.
    """
    V = shard.deal(None if found is None else found.V)
    found = shard.same(None if found is None else replace(found, V=V[:0]))
    assert found is not None  # the first process has one
    return replace(found, V=V, shard=shard)


def mixture_space(X: Floats, codes: Ints, settings: EStepSettings) -> tuple[Floats, Projection]:
    """Rows in the space of the mixture, and the map to it.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features, reduced or not.
    codes : ndarray of shape (n,)
        Known class of each row or -1.
    settings : EStepSettings
        Number of directions, and whether to whiten.

    Returns
    -------
    V : ndarray of shape (n, q)
        The rows.
    projection : Projection
        The map from X to V.
    """
    q = X.shape[1] if settings.pca == "off" else settings.n_directions
    projection = Projection(q, whiten=_whitens(codes, settings))
    projection.fit_in_order(X, codes, np.arange(len(X)))
    return projection.transform_in_order(X, np.arange(len(X))), projection


def _whitens(codes: Ints, settings: EStepSettings) -> bool:
    """Whether the mixture divides by the labelled classes' covariance."""
    if settings.whiten is None:
        return settings.acceptance == "calibrated" and enough_to_whiten(codes)
    return settings.whiten


def _first_k(codes: Ints, settings: EStepSettings) -> int:
    """K_init: what was asked for, or K^l + K^l / 2, and 10 without labels."""
    n_known = int(codes.max()) + 1
    if settings.n_components_init is not None:
        return min(max(settings.n_components_init, n_known), len(codes))
    return min(n_known + max(1, n_known // 2) if n_known else 10, len(codes))
