"""How much of the unlabelled part is novel: the odds of known classes, with their error."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

from newfound.arrays import Bools, Doubles, Ints
from newfound.mixture.counting.hiding import Evidence
from newfound.mixture.counting.odds import Odds, estimate_odds, find_present, without_absent


class Mass(NamedTuple):
    """How many of the unlabelled rows are known."""

    evidence: Evidence  # of known classes with unlabelled rows
    odds: Odds
    odds_error: float
    present: Bools  # known classes with unlabelled rows
    n_labels: Ints  # of each of these
    n_unlabelled: int

    def n_alike(self, odds: Doubles | float) -> Doubles:
        """K^n if novel classes are as large as known ones."""
        n_labelled = int(self.n_labels.sum())
        known = np.minimum(np.asarray(odds) * n_labelled, self.n_unlabelled)
        n_novel: Doubles = len(self.n_labels) * (self.n_unlabelled - known) / (n_labelled + known)
        return n_novel

    def quantiles(self, at: Doubles) -> Doubles:
        """Quantiles of the odds: Student's t around the estimate, cut off at 0."""
        freedom = max(1, len(self.present) - 1)
        negative = stats.t.cdf(-self.odds.value / self.odds_error, freedom)
        places = stats.t.ppf(negative + at * (1 - negative), freedom)
        found: Doubles = np.maximum(0.0, self.odds.value + self.odds_error * places)
        return found


def weigh(evidence: Evidence, codes: Ints) -> Mass:
    """Estimate the odds, without known classes that have no unlabelled rows.

    Parameters
    ----------
    evidence : Evidence
        From `gather_evidence`.
    codes : ndarray of int, shape (n,)
        Known class of each row, -1 if unlabelled.
    """
    n_labels = np.bincount(codes[codes >= 0])
    n_unlabelled = int((codes < 0).sum())
    odds = estimate_odds(evidence, n_unlabelled)
    present = find_present(evidence, odds, len(n_labels), n_unlabelled)
    # a class with labels but without unlabelled rows would lower the odds of all others
    if not present.all():
        evidence = without_absent(evidence, present, n_labels)
        odds = estimate_odds(evidence, n_unlabelled)
    mass = Mass(evidence, odds, 0.0, present, n_labels[present], n_unlabelled)
    error = _standard_error(evidence, odds, float(mass.n_alike(max(0.0, odds.value))), n_unlabelled)
    # where novel classes are not like hidden ones, for example much larger, the shortest walk
    # alone gives other odds than all measures of nearness together
    simple = estimate_odds(evidence.by_shortest_walk(), n_unlabelled)
    return mass._replace(odds_error=float(np.hypot(error, odds.value - simple.value)))


def _standard_error(evidence: Evidence, odds: Odds, n_novel: float, n_unlabelled: int) -> float:
    """Standard error of the odds.

    Two things were decided by chance: first, which classes are known (and so can be hidden) and
    which are novel; second, which rows of the known classes are labelled. Nearness is mutual: if
    one class (or labelled row) is close to another, the other is close to it. The terms of a mean
    therefore come in equal pairs, which doubles its variance.
    """
    n_classes = len(np.unique(evidence.hidden.own))
    by_class = (1 - odds.share) ** 2 * odds.class_variance
    by_class *= 2 / n_classes + 1 / max(1.0, n_novel)
    by_row = odds.share**2 * odds.row_variance
    by_row *= 2 / evidence.n_kept + 1 / max(1.0, odds.share * n_unlabelled)
    # rows vary around the means of their own classes, which takes one from each class
    n_labels = len(np.unique(evidence.held_out.row))
    by_row *= n_labels / max(1, n_labels - len(np.unique(evidence.held_out.own)))
    scale = n_unlabelled / evidence.n_kept
    return max(scale * float(np.sqrt(by_class + by_row)), 1e-9)
