"""Apply: the edits are obeyed in the background, and the report is drawn again."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from newfound.report.audit_table import write_audit
from newfound.report.changes import headline, write_changes
from newfound.report.page import write_report
from newfound.words import things
from newfound.workflows.update import update


class Apply:
    """The one update that may be under way.

    Parameters
    ----------
    folder : Path
        The run folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._status: dict[str, Any] = {"state": "idle"}
        self.n_done = 0

    def start(self) -> bool:
        """Begin; False if an update is under way."""
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return False
            self._status = {"state": "running", "step": "Starting", "done": 0, "total": 0}
            self._thread = threading.Thread(target=self._work, name="apply", daemon=True)
            self._thread.start()
            return True

    def status(self) -> dict[str, Any]:
        """What it is doing, or what it has done."""
        return {**self._status, "n": self.n_done}

    def wait(self) -> None:
        """Wait until it is done, so that a stopped server leaves no half-drawn page."""
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        try:
            result, changes = update(self.folder, progress=self._progress)
        except Exception as error:  # shown on the page; the server goes on
            self._status = {"state": "failed", "error": str(error) or type(error).__name__}
            return
        self.n_done += 1
        done = {
            "state": "drawing",
            "headline": headline(changes, result.collection.kind),
            "lines": changes.in_words(things(result.collection.kind, 1)).splitlines(),
        }
        self._status = done
        try:  # the decisions are obeyed by now; the pages only show it
            write_changes(changes, self.folder / "changes.html", result)
            write_audit(result, self.folder / "audit.csv")
            write_report(result, self.folder / "report.html")
        except Exception as error:
            self._status = {**done, "state": "done", "error": f"The report was not drawn: {error}"}
            return
        self._status = {**done, "state": "done"}

    def _progress(self, step: str, done: int, total: int) -> None:
        self._status = {"state": "running", "step": step, "done": done, "total": total}
