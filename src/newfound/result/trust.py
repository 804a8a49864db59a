"""What ``trust.json`` in a run folder says, if somebody has asked for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from newfound.files import explained_errors, read_json
from newfound.mixture.trust.verdict import BAD_JACCARD, ClassCheck, TrustReport
from newfound.result.run_folder import TRUST
from newfound.words import plural

#: Longest lists; the file has all of them.
_MOST_SHOWN = 20
_AGAIN = "Run newfound trust again."


def read_trust(folder: Path | None) -> TrustReport | None:
    """The report of `newfound trust`; None if there is none."""
    if folder is None or not (folder / TRUST).is_file():
        return None
    with explained_errors(folder / TRUST, "is damaged", _AGAIN):
        return TrustReport.from_json(read_json(folder / TRUST))


def trust_tables(report: TrustReport, names: tuple[str, ...]) -> dict[str, Any]:
    """The parts of a report for a page or a terminal, in plain values.

    Parameters
    ----------
    report : TrustReport
        What was measured.
    names : tuple of str
        Names of the categories of the result.
    """
    measures = report.measures
    lost = sorted(
        (check.jaccard, names[check.code])
        for check in measures.categories
        if check.code < len(names)
    )
    check = measures.confidence
    return {
        "word": report.word,
        "reasons": report.reasons,
        "classes": [
            (known.name, _fate(known))
            for known in measures.classes
            if known.n_found < known.n_hidden
        ][:_MOST_SHOWN],
        "unstable": [(name, f"{value:.2f}") for value, name in lost if value < BAD_JACCARD][
            :_MOST_SHOWN
        ],
        "confidence": None
        if check is None
        else f"Confidences of items whose label was hidden are {check.said:.0%} on average, and "
        f"{check.was:.0%} are right (calibration error {100 * check.error:.0f} points).",
    }


def _fate(check: ClassCheck) -> str:
    """What became of a class that was hidden, in words."""
    parts = [f"split {plural(check.n_split, 'time')}"] if check.n_split else []
    if check.n_swallowed:
        by = check.swallowed_by or "a new category"
        parts.append(f"swallowed {plural(check.n_swallowed, 'time')}, mostly by {by}")
    return f"hidden {plural(check.n_hidden, 'time')}: {', '.join(parts)}"
