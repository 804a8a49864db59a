"""What an export says about each item, besides the category."""

from __future__ import annotations

from typing import Any


def attributes_of(row: Any) -> dict[str, Any]:
    """What a row of `Result.table` says besides its category and confidence, without gaps."""
    values = {
        "item": row.id,  # not "id", a name that FiftyOne reserves
        "kind": row.kind,
        "given_label": row.given_label,
        "runner_up": row.runner_up,
        "outlier_score": float(row.outlier_score),
        "is_unsure": getattr(row, "is_unsure", None),  # only in a run with min_confidence
    }
    return {name: value for name, value in values.items() if value is not None}
