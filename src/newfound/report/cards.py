"""The cards: one for each category, with what it holds and what speaks for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from newfound.report.items import Items, View

#: Items on a card, by what they are: a text takes the room of two pictures.
N_EXEMPLARS = {"pictures": 6, "texts": 4, "features": 6}
N_BORDERLINE = {"pictures": 6, "texts": 2, "features": 6}


@dataclass(frozen=True)
class Card:
    """A category as the page shows it.

    Attributes
    ----------
    code : int
        Its row in the table of categories; its anchor is ``#c-{code}``.
    name, kind : str
        What it is called, and whether it is "known" or "novel".
    size, n_labelled : int
        Items, and those with a given label.
    share : float
        Of all items.
    stability, confidence : float or None
        0 … 1, None where it is not known.
    doubt : float
        0 … 1, from both; what to look at first.
    hue : int
        Its colour, in degrees.
    nearest : int or None
        Code of the category that is most like it.
    exemplars, borderline : list of View
        Items nearest to the prototype, and the least certain ones.
    why_not_split, why_not_merged : str
        The evidence for its being one category, and not part of its nearest.
    """

    code: int
    name: str
    kind: str
    size: int
    n_labelled: int
    share: float
    stability: float | None
    confidence: float | None
    doubt: float
    hue: int
    nearest: int | None
    exemplars: list[View]
    borderline: list[View]
    why_not_split: str
    why_not_merged: str


def featured_rows(items: Items) -> list[int]:
    """Rows that the cards show, whatever else is on the page."""
    return [
        row
        for record in items.result.categories.to_dict("records")
        for row in (*_exemplars(items, record), *_borderline(items, record))
    ]


def make_cards(items: Items) -> list[Card]:
    """Make a card for each category, novel ones first, the largest first.

    Parameters
    ----------
    items : Items
        Of the page, drawn.

    Returns
    -------
    list of Card
        As they stand on the page before a person sorts them.
    """
    records = items.result.categories.to_dict("records")
    cards = [_make_card(items, code, record) for code, record in enumerate(records)]
    return sorted(cards, key=lambda card: (card.kind != "novel", -card.size, card.code))


def _make_card(items: Items, code: int, record: dict[str, Any]) -> Card:
    stability = _number(record.get("stability"))
    confidence = _number(record.get("mean_confidence"))
    sure = (1.0 if stability is None else stability) * (1.0 if confidence is None else confidence)
    size = int(record["size"])
    return Card(
        code=code,
        name=items.names[code],
        kind=items.kinds[code],
        size=size,
        n_labelled=int(record["n_labelled"]),
        share=size / max(1, len(items.codes)),
        stability=stability,
        confidence=confidence,
        doubt=round(1 - sure, 4),
        hue=items.hue(code),
        nearest=items.code_of.get(_words(record.get("nearest"))),
        exemplars=[items.view(row) for row in _exemplars(items, record)],
        borderline=[items.view(row) for row in _borderline(items, record)],
        why_not_split=_words(record.get("why_not_split")),
        why_not_merged=_words(record.get("why_not_merged")),
    )


def _exemplars(items: Items, record: dict[str, Any]) -> list[int]:
    """Those of the table, or the surest items where it names none."""
    n_rows = N_EXEMPLARS[items.collection.kind]
    rows = items.rows_of(record.get("exemplars"), n_rows)
    if rows:
        return rows
    members = np.flatnonzero(items.codes == items.code_of[str(record["category"])])
    order = np.argsort(-items.confidence[members], kind="stable")
    return members[order][:n_rows].tolist()


def _borderline(items: Items, record: dict[str, Any]) -> list[int]:
    return items.rows_of(record.get("borderline"), N_BORDERLINE[items.collection.kind])


def _number(value: Any) -> float | None:
    """A number, None for what is none."""
    if value is None or not isinstance(value, (int, float, np.number)):
        return None
    return None if math.isnan(value) else float(value)


def _words(value: Any) -> str:
    """A text, empty for None and NaN."""
    return "" if value is None or value != value else str(value)
