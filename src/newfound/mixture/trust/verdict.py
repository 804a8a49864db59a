"""From what was measured to one word: solid, shaky or don't, with the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from newfound.words import plural

Word = Literal["solid", "shaky", "don't"]

#: Hidden classes come back as this many categories each, or as few as the inverse: beyond the
#: first the number is shaky, beyond the second it says nothing.
GOOD_RATIO, BAD_RATIO = 1.25, 2.0
#: Upper end of the interval over its lower end, with 1 added to both: a wide one says little.
GOOD_WIDTH, BAD_WIDTH = 2.0, 5.0
#: The 90 % interval held the truth in at least this share of the draws.
GOOD_COVERAGE, BAD_COVERAGE = 0.9, 0.5
#: Rows of hidden classes that are put where they belong.
GOOD_ACCURACY, BAD_ACCURACY = 0.6, 0.3
#: Jaccard index of novel categories over seeds and subsamples. Hennig (2007): from 0.75 on a
#: cluster is stable, below 0.5 it is dissolved.
GOOD_JACCARD, BAD_JACCARD = 0.75, 0.5


@dataclass(frozen=True)
class DesignCheck:
    """Hidden classes in one design.

    Attributes
    ----------
    n_hidden, n_found : list
        For each draw, the number of hidden classes and of components found in their place.
    inside : float
        Share of the draws in which the interval held the true number.
    accuracy : float
        Share of the rows of hidden classes in the right component, mean over draws and classes.
    """

    n_hidden: list[int]
    n_found: list[float]
    inside: float
    accuracy: float

    @property
    def ratio(self) -> float:
        """Components found for each hidden class, over all draws; 1 is right."""
        return sum(self.n_found) / sum(self.n_hidden)

    @property
    def k_error(self) -> float:
        """Mean absolute error of the number of hidden classes, as a share of it."""
        pairs = zip(self.n_found, self.n_hidden, strict=True)
        return float(np.mean([abs(found - hidden) / hidden for found, hidden in pairs]))


@dataclass(frozen=True)
class ClassCheck:
    """What became of a known class when it was hidden.

    Attributes
    ----------
    name : str
        The class.
    n_hidden, n_found, n_split, n_swallowed : int
        How often it was hidden; found as one category; found in parts; not found.
    swallowed_by : str or None
        The class that most often swallowed it; "" for a novel category, None for none.
    """

    name: str
    n_hidden: int
    n_found: int
    n_split: int
    n_swallowed: int
    swallowed_by: str | None


@dataclass(frozen=True)
class CategoryStability:
    """How similar a novel category is to its like in other fits.

    Attributes
    ----------
    code : int
        Its number in the result.
    seeds, subsamples : float or None
        Mean Jaccard index with other seeds, and on subsamples; None if it could not be measured.
    """

    code: int
    seeds: float | None
    subsamples: float | None

    @property
    def jaccard(self) -> float:
        """The lower one of the two; 0 if neither was measured."""
        return min(
            (value for value in (self.seeds, self.subsamples) if value is not None), default=0
        )


@dataclass(frozen=True)
class ConfidenceCheck:
    """Confidences against how often they are right, on rows whose label was hidden.

    Attributes
    ----------
    said, was : float
        Mean confidence, and share that is right.
    error : float
        Expected calibration error over ten bins.
    bins : list of (float, float, int)
        Mean confidence, share right, and number of rows.
    """

    said: float
    was: float
    error: float
    bins: list[tuple[float, float, int]]


@dataclass(frozen=True)
class Measures:
    """Everything that was measured.

    Attributes
    ----------
    n_known, n_novel : int
        K^l and K^n of the result.
    interval : tuple of float or None
        Its 90 % interval of K^n.
    hidden, labelled : DesignCheck or None
        Hidden classes among all rows, and among the labelled rows; None with too few classes.
    classes : list of ClassCheck
        Known classes, the worst found first.
    categories : list of CategoryStability
        Novel categories.
    confidence : ConfidenceCheck or None
        None with too few classes.
    """

    n_known: int
    n_novel: int
    interval: tuple[float, float] | None
    hidden: DesignCheck | None
    labelled: DesignCheck | None
    classes: list[ClassCheck] = field(default_factory=list)
    categories: list[CategoryStability] = field(default_factory=list)
    confidence: ConfidenceCheck | None = None


@dataclass(frozen=True)
class TrustReport:
    """How far to believe a result.

    Attributes
    ----------
    word : {"solid", "shaky", "don't"}
        In one word.
    reasons : list of str
        Why, in sentences: the worst first.
    measures : Measures
        The numbers.
    """

    word: Word
    reasons: list[str]
    measures: Measures

    def __str__(self) -> str:
        return "\n".join([f"{self.word}.", *self.reasons])

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> TrustReport:
        """Read what `as_json` made; a KeyError, TypeError or ValueError if it is damaged."""
        found = dict(values["measures"])
        for name in ("hidden", "labelled"):
            found[name] = None if found[name] is None else DesignCheck(**found[name])
        found["classes"] = [ClassCheck(**check) for check in found["classes"]]
        found["categories"] = [CategoryStability(**check) for check in found["categories"]]
        check = found["confidence"]
        if check is not None:
            bins = [(said, was, int(n)) for said, was, n in check["bins"]]
            found["confidence"] = ConfidenceCheck(**{**check, "bins": bins})
        ends = found["interval"]
        found["interval"] = None if ends is None else (float(ends[0]), float(ends[1]))
        reasons = [str(reason) for reason in values["reasons"]]
        if values["word"] not in ("solid", "shaky", "don't"):
            raise ValueError(f"the word {values['word']!r} is unknown")
        return cls(values["word"], reasons, Measures(**found))


#: A part of the verdict: 0 is good, 1 shaky, 2 bad; and the sentence.
_Finding = tuple[int, str]


def judge(measures: Measures) -> TrustReport:
    """Put what was measured into one word: that of the worst finding.

    Parameters
    ----------
    measures : Measures
        What was measured.
    """
    findings: list[_Finding] = []
    if measures.hidden is None or measures.labelled is None:
        few = f"Only {plural(measures.n_known, 'class has', 'classes have')} labels"
        findings.append((1, f"{few}: too few to hide some, so nobody can check the number."))
    else:
        findings += [_judge_interval(measures), _judge_number(measures.hidden, measures.labelled)]
        findings.append(_judge_accuracy(measures.hidden))
    if measures.interval is None:
        findings.append((1, "The number of categories was given, not counted."))
    else:
        findings.append(_judge_width(*measures.interval))
    if measures.categories:
        findings.append(_judge_stability(measures.categories))
    worst = max(level for level, _ in findings)
    words: tuple[Word, Word, Word] = ("solid", "shaky", "don't")
    ordered = sorted(findings, key=lambda finding: -finding[0])
    return TrustReport(words[worst], [sentence for _, sentence in ordered], measures)


def _judge_interval(measures: Measures) -> _Finding:
    """How often intervals held the truth where it is known."""
    assert measures.hidden is not None
    assert measures.labelled is not None
    share = measures.labelled.inside
    n = len(measures.labelled.n_hidden)
    words = (
        f"With half of the known classes hidden among labelled items, the 90 % interval held their "
        f"number in {round(share * n)} of {n} draws; among all items, it agreed with the run's own "
        f"count in {round(measures.hidden.inside * len(measures.hidden.n_hidden))} of "
        f"{len(measures.hidden.n_hidden)}."
    )
    worse = min(share, measures.hidden.inside)
    return _level(worse, GOOD_COVERAGE, BAD_COVERAGE), words


def _judge_width(low: float, high: float) -> _Finding:
    times = (1 + high) / (1 + low)
    words = f"The 90 % interval for the number of new categories is {low:.0f} to {high:.0f}."
    return _level(1 / times, 1 / GOOD_WIDTH, 1 / BAD_WIDTH), words


def _judge_number(hidden: DesignCheck, labelled: DesignCheck) -> _Finding:
    """How many categories stand for a hidden class.

    All items decide: among labelled items alone, a class has so few labels left that the task is
    harder than the real one.
    """
    times = max(hidden.ratio, 1 / max(hidden.ratio, 1e-9))
    words = (
        f"For each hidden class, {hidden.ratio:.2f} categories were found among all items and "
        f"{labelled.ratio:.2f} among labelled ones (1 is right; a single draw is off by "
        f"{hidden.k_error:.0%} and {labelled.k_error:.0%})."
    )
    return _level(1 / times, 1 / GOOD_RATIO, 1 / BAD_RATIO), words


def _judge_accuracy(hidden: DesignCheck) -> _Finding:
    words = f"{hidden.accuracy:.0%} of the items of hidden classes were put where they belong."
    return _level(hidden.accuracy, GOOD_ACCURACY, BAD_ACCURACY), words


def _judge_stability(categories: list[CategoryStability]) -> _Finding:
    jaccards = np.array([category.jaccard for category in categories])
    median = float(np.median(jaccards))
    n_lost = int((jaccards < BAD_JACCARD).sum())
    words = (
        f"With other seeds and on subsamples, {n_lost} of "
        f"{plural(len(jaccards), 'new category', 'new categories')} did not come back (median "
        f"Jaccard index {median:.2f})."
    )
    return _level(median, GOOD_JACCARD, BAD_JACCARD), words


def _level(value: float, good: float, bad: float) -> int:
    """0 from `good` on, 2 below `bad`, 1 between; rounding decides nothing."""
    return 0 if value >= good - 1e-9 else 2 if value < bad - 1e-9 else 1
