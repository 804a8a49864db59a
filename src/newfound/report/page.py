"""The page: one HTML file that needs no network, no server and no second file.

What people wrote (file names, labels, texts) is only ever text: Jinja escapes it in the markup,
`embed_json` in the data, the script puts it in by `textContent`, and the page's own policy lets
no script run but the one that came with it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections import Counter
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from newfound.errors import require
from newfound.files import write_atomically
from newfound.report.audit import Suspect, Twins, audit_labels, find_twins
from newfound.report.cards import Card, featured_rows, make_cards
from newfound.report.charts import (
    balance_sentence,
    confidence_bins,
    history_line,
    interval_range,
    rehearsal_dots,
)
from newfound.report.items import Items
from newfound.report.sprites import COLUMNS, Progress, Sprites

if TYPE_CHECKING:
    from newfound.result.result import Result

#: Rows of the lists; the page says how many there are beyond.
MAX_SUSPECTS = 36
MAX_TWINS = 36
MAX_SKIPPED = 500
MAX_MOSAIC = 35

_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def write_report(result: Result, path: Path, *, progress: Progress | None = None) -> None:
    """Write the page of a result.

    Parameters
    ----------
    result : Result
        What was found.
    path : Path
        The file, ``report.html``; it is there whole or not at all.
    progress : callable, optional
        Called with the number of thumbnails that are drawn and their number.

    Raises
    ------
    MissingExtraError
        If Jinja is not installed, or Pillow for pictures.
    """
    write_atomically(path, render_report(result, progress=progress).encode("utf-8", "replace"))


def render_report(result: Result, *, progress: Progress | None = None) -> str:
    """The page of a result, as text; see `write_report`."""
    layout = template("page.html")
    items = Items(result)
    suspects = audit_labels(result.V, items.codes, items.is_labelled)
    twins = find_twins(result.features, items.codes, items.collection.y, items.collection.paths)
    items.choose(
        [
            *featured_rows(items),
            *(suspect.row for suspect in suspects[:MAX_SUSPECTS]),
            *(row for pair in twins[:MAX_TWINS] for row in (pair.row, pair.other)),
        ]
    )
    items.draw(progress)
    cards = make_cards(items)
    script = _read("script.js")
    page: str = layout.render(
        style=_read("style.css"),
        sheets=_sheet_rules(items),
        script=script,
        script_hash=_hash(script),
        data=embed_json(items.payload()),
        answer=_answer(result, items),
        cards=cards,
        names=items.names,
        mosaic=_mosaic(items, cards),
        map=items.map,
        n_shown=len(items.shown),
        charts=_charts(result, items, cards),
        suspects=[_view_suspect(items, suspect) for suspect in suspects[:MAX_SUSPECTS]],
        n_suspects=len(suspects),
        twins=[_view_twins(items, pair) for pair in twins[:MAX_TWINS]],
        n_twins=len(twins),
        skipped=_skipped(result),
        rerun=_rerun(result),
    )
    return page


def embed_json(value: Any) -> str:
    """JSON that can stand in a script element, whatever it holds.

    Parameters
    ----------
    value : object
        Plain values.

    Returns
    -------
    str
        JSON in ASCII, in which nothing can end the element or begin a comment.
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.translate(_ESCAPES)


def template(name: str) -> Any:
    """A template of this folder, with every value escaped unless it says `safe`."""
    jinja2 = require("jinja2", "report")
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(_read),
    )
    environment.filters["percent"] = lambda share: f"{100 * share:.0f} %"
    environment.filters["thousands"] = lambda number: f"{number:,}"
    return environment.get_template(name)


def _read(name: str) -> str:
    """A file that stands beside this one."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """How the page's policy names its one script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _sheet_rules(items: Items) -> str:
    """CSS with the sprite sheets: class s0 for the first sheet of small tiles, l0 of large ones."""

    def rules(prefix: str, sprites: Sprites | None) -> list[str]:
        if sprites is None:
            return []
        return [
            f'.{prefix}{i}{{background-image:url("{uri}");'
            f"background-size:{100 * COLUMNS}% {100 * n_rows}%}}"
            for i, (uri, n_rows) in enumerate(zip(sprites.sheets, sprites.n_rows, strict=True))
        ]

    return "\n".join([*rules("s", items.small), *rules("l", items.large)])


def _answer(result: Result, items: Items) -> dict[str, Any]:
    """The answer and how far to trust it."""
    run = result.run
    n_novel = items.kinds.count("novel")
    rehearsal = run.get("rehearsal") or {}
    return {
        "sentence": str(run["sentence"]),
        "trust": str(run.get("trust") or ""),
        "warnings": [str(text) for text in run.get("warnings") or []],
        "source": str(run.get("source") or ""),
        "n_items": len(items.codes),
        "n_labelled": int(items.is_labelled.sum()),
        "n_known": items.kinds.count("known"),
        "n_novel": n_novel,
        "n_in_novel": int(np.isin(items.codes, _novel_codes(items)).sum()),
        "interval": interval_range(n_novel, run.get("n_novel_interval")),
        "rehearsal": rehearsal_dots(rehearsal.get("ratios") or []),
        "n_draws": rehearsal.get("n_draws"),
    }


def _novel_codes(items: Items) -> list[int]:
    return [code for code, kind in enumerate(items.kinds) if kind == "novel"]


def _mosaic(items: Items, cards: Sequence[Card]) -> list[Card]:
    """Novel categories to show at a glance, the largest first; pictures only."""
    if items.collection.paths is None:
        return []
    return [card for card in cards if card.kind == "novel" and card.exemplars][:MAX_MOSAIC]


def _charts(result: Result, items: Items, cards: Sequence[Card]) -> dict[str, Any]:
    """Numbers of the charts."""
    by_size = sorted(cards, key=lambda card: -card.size)
    largest = max((card.size for card in by_size), default=1)
    free = ~items.is_labelled
    is_novel = np.isin(items.codes, _novel_codes(items))
    return {
        "history": history_line(result.run.get("history")),
        "bins": confidence_bins(items.confidence[free], is_novel[free]) if free.any() else [],
        "share_sure": float((items.confidence[free] >= 0.9).mean()) if free.any() else None,
        "sizes": [(card, round(100 * card.size / max(1, largest), 2)) for card in by_size],
        "balance": balance_sentence(np.array([card.size for card in cards])),
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


def _view_twins(items: Items, pair: Twins) -> dict[str, Any]:
    return {
        "items": [items.view(pair.row), items.view(pair.other)],
        "names": [items.names[items.codes[row]] for row in (pair.row, pair.other)],
        "is_labelled": [bool(items.is_labelled[row]) for row in (pair.row, pair.other)],
        # 0.99997 is not 1: what differs must not look the same
        "cosine": f"{math.floor(pair.cosine * 1000) / 1000:.3f}",
        "is_same_file": pair.is_same_file,
        "is_conflict": pair.is_conflict,
    }


def _skipped(result: Result) -> dict[str, Any]:
    """What was left out, by reason."""
    skipped = result.collection.skipped
    reasons = Counter(item.reason for item in skipped)
    return {
        "n": len(skipped),
        "reasons": reasons.most_common(),
        "listed": [(item.path, item.reason) for item in skipped[:MAX_SKIPPED]],
    }


def _rerun(result: Result) -> dict[str, Any]:
    """How to run it again, and what it was run with."""
    run = result.run
    command = run.get("command") or "discover"
    command = command if isinstance(command, str) else " ".join(map(str, command))
    if not command.startswith("newfound"):
        command = f"newfound {command}"
    facts = [
        ("newfound", run.get("version")),
        ("Encoder", run.get("encoder")),
        ("Seed", run.get("seed")),
        ("Source", run.get("source")),
        *((f"Time: {name}", f"{seconds:.1f} s") for name, seconds in _timings(run)),
        *sorted((run.get("versions") or {}).items()),
    ]
    return {
        "command": command,
        "facts": [(name, _plain(value)) for name, value in facts if value is not None],
        "settings": [(k, _plain(v)) for k, v in (run.get("settings") or {}).items()],
    }


def _timings(run: dict[str, Any]) -> list[tuple[str, float]]:
    timings = run.get("timings") or {}
    return [(name, t) for name, t in timings.items() if isinstance(t, (int, float))]


def _plain(value: Any) -> str:
    """A setting as a person would write it."""
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
