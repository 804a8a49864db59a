"""The page that says what an update changed."""

from __future__ import annotations

from pathlib import Path

from newfound.files import write_atomically
from newfound.report.page import template
from newfound.result.lineage import Changes

#: Most items that the page lists; changes.json has all of them.
_MOST_ITEMS = 1000


def write_changes(changes: Changes, path: Path) -> None:
    """Write the page: one file without script, beside the report.

    Parameters
    ----------
    changes : Changes
        The differences between two results.
    path : Path
        The file, ``changes.html``.
    """
    page = template("changes.html").render(
        lines=str(changes).splitlines(),
        moved=changes.moved[:_MOST_ITEMS],
        n_more=max(0, len(changes.moved) - _MOST_ITEMS),
    )
    write_atomically(path, page.encode("utf-8", "replace"))
