"""After training: the mixture of the finished features, and the rehearsal that tests its K."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from newfound.arrays import Floats, Ints
from newfound.deep.partition import mixture_for, sizes_in_learnt_features
from newfound.deep.settings import Settings
from newfound.errors import DiscoveryWarning
from newfound.mixture.counting.count import CategoryCount
from newfound.mixture.counting.novel_size import Sizes
from newfound.mixture.counting.rehearsal import Rehearsal, rehearse
from newfound.mixture.estimator import SplitMergeMixture

#: With fewer known classes, too few are left when half of them are hidden.
_CLASSES_TO_REHEARSE = 4


@dataclass(frozen=True)
class Finished:
    """What the loop leaves for the final mixture.

    Attributes
    ----------
    features : ndarray of shape (n, d)
        Features of all images, not normalised.
    y : list
        Names of the classes of all labelled images, None for the others.
    labels : ndarray of shape (n,)
        Component of each image in the last E-step.
    count : CategoryCount or None
        The count in the features before training.
    sizes : {"unknown", "alike"}, float or None
        What is known about the mean size of novel categories; None to expect nothing.
    """

    features: Floats
    y: list[Any]
    labels: Ints
    count: CategoryCount | None
    sizes: Sizes | None


def fit_final_mixture(finished: Finished, settings: Settings) -> SplitMergeMixture:
    """Fit the mixture once more, with all labels and all starts.

    Parameters
    ----------
    finished : Finished
        Features, labels, last partition.
    settings : Settings
        How categories are found, and the seed.

    Returns
    -------
    SplitMergeMixture
        Fitted.
    """
    Z, y, estep, seed = finished.features, finished.y, settings.estep, settings.run.seed
    n_found = int(finished.labels.max()) + 1
    if estep.acceptance == "literal" and estep.n_components in (None, n_found):
        # the paper has no final fit: its K is the one that the loop has reached
        mixture = mixture_for(estep, Z.shape[1], n_components=n_found, n_init=1)
        with warnings.catch_warnings():
            if estep.n_components is None:  # nobody asked for this K
                warnings.filterwarnings("ignore", "n_components=", DiscoveryWarning)
            return mixture.set_params(random_state=seed).refit(Z, y, finished.labels)
    counted_before = finished.count is not None
    sizes = finished.sizes if counted_before else sizes_in_learnt_features(finished.sizes)
    changes = {"random_state": seed, "sizes": sizes}
    mixture = mixture_for(estep, Z.shape[1], count=finished.count, **changes)
    with warnings.catch_warnings():
        if estep.n_components is not None:  # a count that stands for a given K is no estimate
            warnings.filterwarnings("ignore", "The count suggests", DiscoveryWarning)
        mixture.fit(Z, y)
    if finished.count is not None and estep.n_components not in (None, mixture.n_components_):
        # splits and merges did not reach the given K, so k-means with that K is used
        mixture = mixture_for(estep, Z.shape[1], **changes)
        mixture.fit(Z, y)
    return mixture


def can_rehearse(mixture: SplitMergeMixture, settings: Settings) -> bool:
    """Whether K is to be tested with hidden classes, and can be.

    Parameters
    ----------
    mixture : SplitMergeMixture
        The final one.
    settings : Settings
        Whether a rehearsal is wanted, and whether K was given.
    """
    k_given = settings.estep.n_components is not None
    return settings.run.rehearse and not k_given and mixture.n_known_ >= _CLASSES_TO_REHEARSE


def rehearse_final(mixture: SplitMergeMixture, finished: Finished, settings: Settings) -> Rehearsal:
    """Hide known classes, look for them as the run did, and compare.

    Parameters
    ----------
    mixture : SplitMergeMixture
        The final one.
    finished : Finished
        Features and labels.
    settings : Settings
        How categories are found, and the seed.

    Returns
    -------
    Rehearsal
        What became of the hidden classes.
    """
    seed = settings.run.seed
    quick = mixture_for(
        settings.estep,
        finished.features.shape[1],
        n_init=1,
        random_state=seed,
        sizes=sizes_in_learnt_features(mixture.sizes),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscoveryWarning)  # about the draws, not about the result
        return rehearse(quick, finished.features, finished.y, random_state=seed)
