"""What an export says about the run and about each item, besides the category."""

from __future__ import annotations

from typing import Any

from newfound._version import __version__
from newfound.result.result import Result


def version_of(result: Result) -> str:
    """The version of newfound that made the result."""
    return str(result.run.get("version", __version__))


def answer_of(result: Result) -> str:
    """The result in one sentence."""
    return str(result.run.get("sentence", ""))


def attributes_of(row: Any) -> dict[str, Any]:
    """What a row of `Result.table` says besides its category and confidence, without gaps."""
    values = {
        "item": row.id,  # not "id", a name that FiftyOne reserves
        "kind": row.kind,
        "given_label": row.given_label,
        "runner_up": row.runner_up,
        "outlier_score": float(row.outlier_score),
    }
    return {name: value for name, value in values.items() if value is not None}
