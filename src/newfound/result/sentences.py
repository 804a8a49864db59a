"""Sentences: a run and its categories in words, made where they are shown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from newfound.mixture.split_merge import SMALLEST_HALF
from newfound.result.evidence import MoveEvidence
from newfound.result.record import NovelSizeRecord, RehearsalRecord, RunRecord
from newfound.words import things, times_as_large

#: A rehearsal is fine if it finds at most this many categories for each hidden class, and no
#: fewer than the inverse.
GOOD_RATIO = 1.25

#: Features are bad if their accuracy on labelled items is less than halfway from chance to 1. On
#: photos and sentences, networks get 60 to 95 % of the way, and raw pixels of photos 7 %.
ENOUGH_SKILL = 0.5
#: One-sided 95 % quantile of the normal distribution: few labels say little about the features.
_CLEARLY = 1.645

_ITEMS = {"pictures": "pictures", "features": "items", "texts": "texts"}


def answer_sentence(record: RunRecord) -> str:
    """How many categories there are, in one sentence; a second one warns of bad features."""
    answer = _number_sentence(record)
    if has_bad_features(record):
        return f"{answer} Do not rely on this: the features hardly tell known categories apart."
    return answer


def has_bad_features(record: RunRecord) -> bool:
    """Whether the features tell the known classes apart badly.

    The accuracy on labelled items a is compared with chance c = 1 / K^l: (a - c) / (1 - c) is 0
    for features that know nothing and 1 for perfect ones, whatever the number of classes. Features
    are bad if it is below 0.5, by more than the number of labelled items explains. False if the
    accuracy is not known.
    """
    if record.label_accuracy is None:
        return False
    enough = record.chance + ENOUGH_SKILL * (1 - record.chance)
    error = np.sqrt(enough * (1 - enough) / max(1, record.n_labelled))
    return bool(record.label_accuracy < enough - _CLEARLY * error)


def _features_sentence(record: RunRecord) -> str:
    """How badly the features tell the known classes apart, and what to do about it."""
    advice = {
        "pictures": "Use another encoder (--encoder), or train one (--train)",
        "texts": "Give embeddings from another encoder",
        "features": "Give features from another encoder",
    }
    return (
        f"With their labels hidden, only {record.label_accuracy:.0%} of the labelled items are put "
        f"into the right one of the {record.n_known} known categories (by chance: "
        f"{record.chance:.0%}), so the new categories are not reliable either. "
        f"{advice[record.kind]}, and check the labels."
    )


def _number_sentence(record: RunRecord) -> str:
    known, novel = _categories(record.n_known, "known"), _categories(record.n_novel, "new")
    where = f"in {record.n_rows or record.n_items:,} {_ITEMS[record.kind]}"
    if record.is_k_given:
        n = record.n_known + record.n_novel
        return f"{_categories(n)} {where}, as requested: {known} and {novel}."
    if record.n_novel == 0:
        return f"No new category was found {where}, in addition to {known}."
    was = "was" if record.n_novel == 1 else "were"
    return f"{novel} {was} found {where}, in addition to {known}."


def _categories(n: int, kind: str = "") -> str:
    words = [str(n), kind, "category" if n == 1 else "categories"]
    return " ".join(word for word in words if word)


def trust_sentence(record: RunRecord) -> str:
    """How far the number of new categories can be trusted; bad features are said first."""
    trust = _interval_sentence(record)
    return f"{_features_sentence(record)} {trust}" if has_bad_features(record) else trust


def _interval_sentence(record: RunRecord) -> str:
    if record.is_k_given:
        return "The number of categories was given, so this run cannot say whether it is right."
    if record.n_novel_interval is None and record.n_known < 2:
        return (
            "Fewer than two classes have labels, which is too few to say how far the number of "
            "categories can be trusted."
        )
    if record.n_novel_interval is None:
        return "The number was found by the paper's own rule, which gives no interval."
    low, high = (round(end) for end in record.n_novel_interval)
    interval = f"{low}" if low == high else f"{low} to {high}"
    words = f"90 % interval for the number of new categories: {interval}."
    if record.novel_size is not None and record.n_novel > 0:
        words += f" {_size_sentence(record.novel_size, things(record.kind))}"
    if record.rehearsal is None:
        return f"{words} There was no rehearsal with hidden categories."
    return f"{words} {_rehearsal_sentence(record.rehearsal, record.n_novel)}"


def _size_sentence(size: NovelSizeRecord, items: str) -> str:
    """How large new categories are, which decides their number, and how that is known."""
    low, high = (f"{end:,.0f}" for end in size.interval)
    if size.decided_by == "prior":
        known = "" if size.known_mean is None else f" (known categories: {size.known_mean:,.0f})"
        return (
            f"The {items} do not tell how large new categories are, so the interval allows for "
            f"{low} to {high} {items} in each, on average{known}. If you know that they are about "
            "as large as known ones, --sizes alike narrows it."
        )
    assert size.known_mean is not None  # only the prior does without
    how_large = times_as_large(size.mean / size.known_mean)
    if size.decided_by == "given":
        return (
            f"The number assumes that new categories are {how_large} as known ones; if that is "
            "wrong, so is the number."
        )
    return (
        f"New categories seem {how_large} as known ones ({size.mean:,.0f} {items} on average, "
        f"90 % interval: {low} to {high}), judged by how many {items} lie close to each other."
    )


def _rehearsal_sentence(rehearsal: RehearsalRecord, n_novel: int) -> str:
    """What the rehearsal says about the number of new categories."""
    ratios = rehearsal.ratios
    middle = float(np.median(ratios))
    words = (
        f"In a rehearsal, some known categories were hidden {rehearsal.n_draws} times: for each "
        f"hidden category, {middle:.1f} were found ({min(ratios):.1f} to {max(ratios):.1f})"
    )
    if middle > GOOD_RATIO:
        return f"{words}, so there may be fewer new categories: about {n_novel / middle:.0f}."
    if middle < 1 / GOOD_RATIO:
        # Near zero the quotient says nothing any more.
        about = f": about {n_novel / middle:.0f}" if middle > 0.1 else ""
        return f"{words}, so there may be more new categories{about}."
    return f"{words}, which is close to the correct value, 1."


def unsure_sentence(n_unsure: int, record: RunRecord) -> str | None:
    """How many items are marked as unsure, in one sentence; None if marks were not asked for."""
    share = record.settings.min_confidence
    if share is None:
        return None
    are = "is unsure: its" if n_unsure == 1 else "are unsure: their"
    return (
        f"{n_unsure:,} of {record.n_items - record.n_labelled:,} {_ITEMS[record.kind]} without a "
        f"label {are} confidence is below {100 * share:g} %."
    )


def rerun_sentence(record: RunRecord) -> str:
    """Why there is no command line that repeats a run."""
    if record.command == "update":
        return "This run was continued with newfound update, so no single command repeats it."
    # Version 0.1.0 recorded no command for training runs, whether they were started from Python or
    # from the command line.
    if record.settings.train:
        return "No command was recorded that repeats this training run."
    return "This run was started from Python, so no command repeats it."


# ------------------------------------------------------------------------------------ categories


def why_not_split(evidence: MoveEvidence, code: int, n_known: int) -> str:
    """Why a category is not two.

    Parameters
    ----------
    evidence : MoveEvidence
        Numbers for all categories.
    code : int
        The category.
    n_known : int
        K^l, number of known classes.

    Returns
    -------
    str
        A sentence.
    """
    if code < n_known:
        return "Its labels say that it is one category."
    gap = evidence.split_gap[code]
    if np.isnan(gap):
        return f"It is too small to split: a half would have {SMALLEST_HALF} items or fewer."
    closest = _closest(evidence)
    if np.isinf(closest):
        return "There is no other category to compare its two halves with."
    if gap <= closest:
        return (
            "Its two most different halves are closer to each other than any two categories here."
        )
    return (
        "Its two halves differ more than the two closest categories here. It was kept as one, "
        "because a split would make one category too many: look whether it holds two kinds."
    )


def why_not_merged(
    evidence: MoveEvidence, code: int, n_known: int, names: Sequence[str], nearest: int
) -> str:
    """Why a category is not part of another.

    Parameters
    ----------
    evidence : MoveEvidence
        Numbers for all categories.
    code : int
        The category.
    n_known : int
        K^l, number of known classes.
    names : sequence of str
        Names of all categories.
    nearest : int
        Code of the category with the nearest prototype, -1 if there is no other.

    Returns
    -------
    str
        A sentence.
    """
    if nearest < 0:
        return "There is no other category."
    partner = evidence.merge_partner[code]
    if partner < 0:
        reason = "has other labels" if code < n_known else "is too far away"
        return f"The nearest category, {names[nearest]}, {reason}."
    other = f"It differs from {names[partner]}, the category most like it,"
    widest = _widest(evidence)
    if np.isnan(widest):
        return f"{other} and no category has halves to compare that with."
    if evidence.merge_gap[code] >= widest:
        return f"{other} more than the two halves of any category differ from each other."
    return (
        f"{other} less than the two halves of some category differ from each other: "
        "compare the two."
    )


def move_numbers(evidence: MoveEvidence, code: int, names: Sequence[str]) -> list[str]:
    """The numbers behind `why_not_split` and `why_not_merged`, for those who want them.

    Parameters
    ----------
    evidence : MoveEvidence
        Numbers for all categories.
    code : int
        The category.
    names : sequence of str
        Names of all categories.

    Returns
    -------
    list of str
        A sentence for each move that was weighed.
    """
    lines = []
    gap, closest, widest = evidence.split_gap[code], _closest(evidence), _widest(evidence)
    if not np.isnan(gap):
        words = f"Gap between its halves: {gap:.3g}, log H = {evidence.split_log_ratio[code]:+.0f}."
        if np.isfinite(closest):
            words += f" Smallest gap between two categories: {closest:.3g}."
        lines.append(words)
    partner, gap = evidence.merge_partner[code], evidence.merge_gap[code]
    if partner >= 0:
        words = (
            f"Gap to {names[partner]}: {gap:.3g}, log H = {evidence.merge_log_ratio[code]:+.0f}."
        )
        if not np.isnan(widest):
            words += f" Largest gap between the halves of a category: {widest:.3g}."
        lines.append(words)
    return lines


def _closest(evidence: MoveEvidence) -> float:
    """The smallest gap between two categories, infinite without any."""
    gaps = evidence.merge_gap[~np.isnan(evidence.merge_gap)]
    return float(gaps.min(initial=np.inf))


def _widest(evidence: MoveEvidence) -> float:
    """The largest gap between the halves of a category, NaN without any."""
    gaps = evidence.split_gap[~np.isnan(evidence.split_gap)]
    return float(gaps.max()) if len(gaps) else float("nan")
