"""The report page: one HTML file that needs no network, no server and no other file.

File names, labels and texts are written by other people, so they are only ever shown as text: Jinja
escapes them in the markup, `embed_json` in the data, and the script inserts them by `textContent`.
The page's content security policy allows no script except its own.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from newfound.errors import require
from newfound.files import write_atomically
from newfound.progress import StepProgress
from newfound.report.audit import DuplicatePair, Suspect, audit_labels, find_duplicates
from newfound.report.audit_table import undecided_labels
from newfound.report.cards import Card, cards_to_check, featured_rows, make_cards
from newfound.report.charts import (
    balance_sentence,
    confidence_bins,
    history_line,
    interval_range,
    rehearsal_dots,
    steady_sentence,
)
from newfound.report.doubt import Judgement, judge_categories
from newfound.report.items import Items
from newfound.report.levels import view_levels
from newfound.report.sprites import COLUMNS, Sprites
from newfound.result.sentences import rerun_sentence
from newfound.result.trust import read_trust, trust_tables
from newfound.words import things

if TYPE_CHECKING:
    from newfound.result.record import RunRecord
    from newfound.result.result import Result

#: Longest lists; the page says how many entries it leaves out.
MAX_SUSPECTS = 36
MAX_DUPLICATES = 36
MAX_SKIPPED = 500
MAX_MOSAIC = 35
MAX_QUOTES = 12
MAX_PAIRS = 12
MAX_TO_CHECK = 12

#: JavaScript once took the last two for line ends; the others have a meaning in HTML.
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def write_report(result: Result, path: Path, *, progress: StepProgress | None = None) -> None:
    """Write the page of a result.

    Parameters
    ----------
    result : Result
        What was found.
    path : Path
        The file, ``report.html``; it is written completely or not at all.
    progress : callable, optional
        Called with the number of thumbnails drawn so far and their total number.

    Raises
    ------
    MissingExtraError
        If Jinja is not installed, or Pillow for pictures.
    """
    # File names may hold bytes that are no UTF-8; they must not stop the page.
    write_atomically(path, render_report(result, progress=progress).encode("utf-8", "replace"))


def render_report(result: Result, *, progress: StepProgress | None = None) -> str:
    """The page of a result, as text; see `write_report`."""
    page_template = template("page.html")
    items = Items(result)
    suspects = audit_labels(result.V, items.codes, undecided_labels(result))
    collection = result.collection
    duplicates = find_duplicates(result.features, items.codes, collection.y, collection.paths)
    # Whatever the page mentions must be among the items that it holds.
    items.choose(
        [
            *featured_rows(items),
            *(suspect.row for suspect in suspects[:MAX_SUSPECTS]),
            *(row for pair in duplicates[:MAX_DUPLICATES] for row in (pair.row, pair.other)),
        ]
    )
    items.draw(progress)
    judgement = judge_categories(result)
    cards = make_cards(items, judgement)
    levels, trust = view_levels(result), read_trust(result.folder)
    steps = [] if levels is None else levels["steps"]
    script = "\n".join(["(() => {", read_part("script.js"), read_part("map.js"), "})();"])
    page: str = page_template.render(
        style=read_part("style.css"),
        sheets=sheet_rules(items.small, items.large),
        script=script,
        script_hash=_hash(script),
        data=embed_json({**items.payload(), "levels": steps}),
        answer=_answer(result, items),
        thing=things(items.collection.kind, 1),
        things=items.things,
        cards=cards,
        look=_look(judgement, cards),
        names=items.names,
        mosaic=_overview(cards, MAX_MOSAIC) if items.collection.paths is not None else [],
        quotes=_overview(cards, MAX_QUOTES) if items.collection.texts is not None else [],
        map=items.map,
        n_shown=len(items.shown),
        charts=_charts(result, items, cards),
        suspects=[_view_suspect(items, suspect) for suspect in suspects[:MAX_SUSPECTS]],
        n_suspects=len(suspects),
        duplicates=[_view_pair(items, pair) for pair in duplicates[:MAX_DUPLICATES]],
        n_duplicates=len(duplicates),
        skipped=_skipped(result),
        rerun=_rerun(result.record),
        levels=levels,
        checked=None if trust is None else trust_tables(trust, result.names),
    )
    return page


def embed_json(value: Any) -> str:
    """JSON that is safe inside a script element, whatever texts it holds.

    Parameters
    ----------
    value : object
        Plain values.

    Returns
    -------
    str
        JSON in ASCII, in which nothing can end the element or start a comment.
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.translate(_ESCAPES)


def template(name: str) -> Any:
    """A template of this folder; it escapes every value that it does not mark `safe`."""
    jinja2 = require("jinja2", "report")
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,  # a misspelt name is an error, not an empty page
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(read_part),
    )
    environment.filters["percent"] = lambda share: f"{100 * share:.0f} %"
    environment.filters["thousands"] = lambda number: f"{number:,}"
    return environment.get_template(name)


def read_part(name: str) -> str:
    """Text of a file in this folder."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """Hash by which the content security policy allows the page's own script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def sheet_rules(small: Sprites | None, large: Sprites | None) -> str:
    """CSS of the sprite sheets: class s0 is the first sheet of small tiles, l0 of large ones."""

    def rules(prefix: str, sprites: Sprites | None) -> list[str]:
        if sprites is None:
            return []
        return [
            f'.{prefix}{i}{{background-image:url("{uri}");'
            f"background-size:{100 * COLUMNS}% {100 * n_rows}%}}"
            for i, (uri, n_rows) in enumerate(zip(sprites.sheets, sprites.n_rows, strict=True))
        ]

    return "\n".join([*rules("s", small), *rules("l", large)])


def _answer(result: Result, items: Items) -> dict[str, Any]:
    """The answer and how far to trust it."""
    record = result.record
    rehearsal = record.rehearsal
    return {
        "sentence": result.answer,
        "trust": result.trust,
        "warnings": record.warnings,
        "source": Path(record.source or "").name,  # the whole path is among the settings
        "n_items": len(result),
        "n_labelled": int(items.is_labelled.sum()),
        "n_known": result.n_known,
        "n_novel": result.n_novel,
        "n_in_novel": int(items.is_novel.sum()),
        "n_unsure": int(items.is_unsure.sum()),
        "unsure": result.unsure,
        "interval": interval_range(result.n_novel, record.n_novel_interval),
        "rehearsal": rehearsal_dots(() if rehearsal is None else rehearsal.ratios),
        "n_draws": None if rehearsal is None else rehearsal.n_draws,
    }


def _look(judgement: Judgement, cards: Sequence[Card]) -> dict[str, Any]:
    """Categories to look at first: pairs that may be one, and those that are not clear."""
    card_of = {card.code: card for card in cards}
    to_check = cards_to_check(cards)
    return {
        "pairs": [
            (card_of[pair.first], card_of[pair.second]) for pair in judgement.pairs[:MAX_PAIRS]
        ],
        "n_pairs": len(judgement.pairs),
        "to_check": to_check[:MAX_TO_CHECK],
        "n_to_check": len(to_check),
        "n_clear": sum(card.word == "clear" for card in cards if card.kind == "novel"),
    }


def _overview(cards: Sequence[Card], at_most: int) -> list[Card]:
    """Novel categories for the overview at the top, the largest first."""
    return [card for card in cards if card.kind == "novel" and card.exemplars][:at_most]


def _charts(result: Result, items: Items, cards: Sequence[Card]) -> dict[str, Any]:
    """Numbers behind the charts."""
    by_size = sorted(cards, key=lambda card: -card.size)
    largest = max((card.size for card in by_size), default=1)
    unlabelled = ~items.is_labelled
    confidence, is_novel = items.confidence[unlabelled], items.is_novel[unlabelled]
    return {
        "history": history_line(result.record.history),
        "bins": confidence_bins(confidence, is_novel) if len(confidence) else [],
        "share_confident": float((confidence >= 0.9).mean()) if len(confidence) else None,
        "sizes": [(card, round(100 * card.size / max(1, largest), 2)) for card in by_size],
        "balance": balance_sentence(np.array([card.size for card in cards]), items.collection.kind),
        "steady": steady_sentence(result.record.history),
    }


def _view_suspect(items: Items, suspect: Suspect) -> dict[str, Any]:
    return {
        "item": items.view(suspect.row),
        "given": int(items.codes[suspect.row]),
        "given_name": items.names[items.codes[suspect.row]],
        "elsewhere": suspect.elsewhere,
        "elsewhere_name": items.names[suspect.elsewhere],
        "score": suspect.score,
        "n_neighbours": suspect.n_neighbours,
        "n_asked": suspect.n_asked,
    }


def _view_pair(items: Items, pair: DuplicatePair) -> dict[str, Any]:
    return {
        "items": [items.view(pair.row), items.view(pair.other)],
        "names": [items.names[items.codes[row]] for row in (pair.row, pair.other)],
        "is_labelled": [bool(items.is_labelled[row]) for row in (pair.row, pair.other)],
        # Rounded down: 0.99997 must not look like 1, which is a copy.
        "cosine": f"{math.floor(pair.cosine * 1000) / 1000:.3f}",
        "is_same_file": pair.is_same_file,
        "is_conflict": pair.is_conflict,
    }


def _skipped(result: Result) -> dict[str, Any]:
    """Files that were left out, by reason."""
    skipped = result.collection.skipped
    reasons = Counter(item.reason for item in skipped)
    return {
        "n": len(skipped),
        "reasons": reasons.most_common(),
        "listed": [(item.path, item.reason) for item in skipped[:MAX_SKIPPED]],
    }


def _rerun(record: RunRecord) -> dict[str, Any]:
    """The command that repeats the run, or why there is none, and what it was run with."""
    facts = [
        ("newfound", record.version),
        ("Encoder", record.encoder),
        ("Seed", record.seed),
        ("Source", record.source),
        *((f"Time: {name}", f"{seconds:.1f} s") for name, seconds in record.timings.items()),
        *sorted(record.versions.items()),
    ]
    return {
        "command": record.rerun,
        "reason": None if record.rerun else rerun_sentence(record),
        "facts": [(name, _plain(value)) for name, value in facts if value is not None],
        "settings": [(name, _plain(value)) for name, value in asdict(record.settings).items()],
    }


def _plain(value: Any) -> str:
    """A setting as a person would write it."""
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
