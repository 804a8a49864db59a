"""The page that says what an update changed."""

from __future__ import annotations

from pathlib import Path

from newfound.files import write_atomically
from newfound.report.page import template
from newfound.result.lineage import Changes

#: Items that are listed by name; the file of changes has all.
_MOST_ITEMS = 1000


def write_changes(changes: Changes, path: Path) -> None:
    """Write the page, one file without script that stands beside the report.

    Parameters
    ----------
    changes : Changes
        What is otherwise than before.
    path : Path
        The file, ``changes.html``.
    """
    page = template("changes.html").render(
        lines=str(changes).splitlines(),
        moved=changes.moved[:_MOST_ITEMS],
        n_more=max(0, len(changes.moved) - _MOST_ITEMS),
    )
    write_atomically(path, page.encode("utf-8", "replace"))
