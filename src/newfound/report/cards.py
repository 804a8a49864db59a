"""The cards: one for each category, with its items and the evidence for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from newfound.arrays import Ints
from newfound.report.doubt import SIGNS, Judgement, Word
from newfound.report.items import Items, View
from newfound.result.result import evidence_sentences
from newfound.result.sentences import move_numbers
from newfound.result.telling import nearest_known, telling_values, telling_words

#: Most items on a card, by kind: a text takes the room of two pictures.
N_EXEMPLARS = {"pictures": 6, "texts": 4, "features": 6}
N_BORDERLINE = {"pictures": 6, "texts": 2, "features": 6}


@dataclass(frozen=True)
class Card:
    """A category as the page shows it.

    Attributes
    ----------
    code : int
        Code of the category; its anchor on the page is ``#c-{code}``.
    name, kind : str
        Its name, and "known" or "novel".
    size, n_labelled, n_unsure : int
        Number of items, of items with a given label, and of items that are marked as unsure.
    share : float
        Its share of all items.
    stability, confidence : float or None
        From 0 to 1; None if unknown.
    word : {"clear", "doubtful", "mixed"}
        How far to trust the category.
    weak : list of str
        Why it is not clear, in words.
    doubt : float
        Number of weak signs, plus a number from 0 to 1 computed from stability and confidence:
        categories to check first have high values.
    hue : int
        Its colour, in degrees.
    nearest : int or None
        Code of the category with the nearest prototype.
    words, values, like : list of str
        What sets it apart, in words and in values of further columns, and for a novel category the
        known ones nearest to it.
    exemplars, borderline : list of View
        Items nearest to the prototype, and those of least confidence.
    why_not_split, why_not_merged : str or None
        Why it is one category, and why it is not part of another.
    numbers : list of str
        The numbers behind both.
    """

    code: int
    name: str
    kind: str
    size: int
    n_labelled: int
    n_unsure: int
    share: float
    stability: float | None
    confidence: float | None
    word: Word
    weak: list[str]
    doubt: float
    hue: int
    nearest: int | None
    words: list[str]
    values: list[str]
    like: list[str]
    exemplars: list[View]
    borderline: list[View]
    why_not_split: str | None
    why_not_merged: str | None
    numbers: list[str]


def featured_rows(items: Items) -> list[int]:
    """Rows that the cards show and that the page must therefore have."""
    return [
        row
        for code in range(len(items.names))
        for row in (*_exemplars(items, code), *_borderline(items, code))
    ]


def make_cards(items: Items, judgement: Judgement) -> list[Card]:
    """Make a card for each category, novel ones first, the largest first.

    Parameters
    ----------
    items : Items
        Items of the page, drawn.
    judgement : Judgement
        How clear each category is.

    Returns
    -------
    list of Card
        In the order in which the page shows them until a person sorts them.
    """
    tellers = (telling_words, telling_values, nearest_known)
    told = zip(*(tell(items.result) for tell in tellers), strict=True)
    cards = [_make_card(items, judgement, code, of_code) for code, of_code in enumerate(told)]
    return sorted(cards, key=lambda card: (card.kind != "novel", -card.size, card.code))


def cards_to_check(cards: Sequence[Card]) -> list[Card]:
    """The cards to look at: new categories that are not clear, and known ones that are mixed.

    Parameters
    ----------
    cards : sequence of Card
        All of them.

    Returns
    -------
    list of Card
        New categories first, those with the most weak signs first.
    """
    # One known category in ten has a weak sign by the rule itself, so one sign is no news there.
    listed = [card for card in cards if card.word == "mixed" or (card.weak and _is_novel(card))]
    return sorted(listed, key=lambda card: (not _is_novel(card), -card.doubt, card.code))


def _is_novel(card: Card) -> bool:
    return card.kind == "novel"


def _make_card(items: Items, judgement: Judgement, code: int, told: tuple[list[str], ...]) -> Card:
    profiles = items.result.profiles
    stability = _number(profiles.stability[code])
    confidence = _number(profiles.mean_confidence[code])
    # Unknown counts as certain: doubt is for what a person can act on.
    certainty = (1.0 if stability is None else stability) * (
        1.0 if confidence is None else confidence
    )
    size, nearest = int(profiles.sizes[code]), int(profiles.nearest[code])
    split, merged = evidence_sentences(items.result, code)
    evidence = profiles.evidence
    weak = [SIGNS[name].format(things=items.things) for name in judgement.weak[code]]
    return Card(
        code=code,
        name=items.names[code],
        kind=items.kinds[code],
        size=size,
        n_labelled=int(profiles.n_labelled[code]),
        n_unsure=int(items.is_unsure[items.codes == code].sum()),
        share=size / max(1, len(items.codes)),
        stability=stability,
        confidence=confidence,
        word=judgement.words[code],
        weak=weak,
        doubt=round(len(weak) + 1 - certainty, 4),
        hue=items.hue(code),
        nearest=None if nearest < 0 else nearest,
        words=told[0],
        values=told[1],
        like=told[2],
        exemplars=[items.view(row) for row in _exemplars(items, code)],
        borderline=[items.view(row) for row in _borderline(items, code)],
        why_not_split=split,
        why_not_merged=merged,
        numbers=[] if evidence is None else move_numbers(evidence, code, items.names),
    )


def _exemplars(items: Items, code: int) -> list[int]:
    """Exemplars of the category, or its most certain items if the result names none."""
    n_rows = N_EXEMPLARS[items.collection.kind]
    rows: Ints = items.result.profiles.exemplars[code]
    if not len(rows):
        members = np.flatnonzero(items.codes == code)
        rows = members[np.argsort(-items.confidence[members], kind="stable")]
    return rows[:n_rows].tolist()


def _borderline(items: Items, code: int) -> list[int]:
    rows = items.result.profiles.borderline[code]
    return rows[: N_BORDERLINE[items.collection.kind]].tolist()


def _number(value: float) -> float | None:
    """A plain number, None for NaN."""
    return None if math.isnan(value) else float(value)
