"""The desk: one run and its edits, as they look together. It is the truth for all tabs."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from newfound.errors import InputError
from newfound.report.items import shorten
from newfound.result.edits.decisions import Decisions, Obeyed, as_sentence, decide
from newfound.result.edits.log import (
    COLUMNS,
    EDITS,
    Edit,
    active_edits,
    add_edit,
    check_cells,
    read_edits,
)
from newfound.result.levels import steps_for_page
from newfound.result.result import Result
from newfound.result.run_folder import RUN
from newfound.result.store import read_result
from newfound.result.telling import (
    nearest_known,
    suggested_name,
    telling_values,
    telling_words,
)
from newfound.result.trust import read_trust, trust_tables
from newfound.review.number import NumberQueue
from newfound.review.queues import Pair, Queues, in_order, smaller_half
from newfound.words import things

#: Items on a card, and most items of a category in one answer.
N_SHOWN = 9
MAX_MEMBERS = 1000
#: Steps of this angle spread any number of hues evenly over the colour wheel, as in the report.
_GOLDEN_ANGLE = 137.508


class Desk:
    """A run that is under review.

    Parameters
    ----------
    folder : Path
        The run folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self.version = 0
        self._lock = threading.RLock()
        self._seen: tuple[Any, ...] = ()
        self._view: dict[str, Any] | None = None
        self.view()  # so that the first page is there at once

    # ------------------------------------------------------------------------------- reading

    def refresh(self) -> int:
        """Read what another program has changed, and return the version."""
        with self._lock:
            seen = tuple(_stamp(self.folder / name) for name in (RUN, EDITS))
            if seen != self._seen:
                if seen[:1] != self._seen[:1]:
                    self._read_run()
                self._read_edits()
                self._seen = seen
            return self.version

    def _read_run(self) -> None:
        self.result: Result = read_result(self.folder)
        self.obeyed = Obeyed.read(self.folder)
        edits = read_edits(self.folder)
        decided = decide(self.result, edits, self.obeyed).state.decided
        self.number = NumberQueue(self.result, self.obeyed, edits)
        self.queues = Queues(self.result, decided)
        self._confidence = np.nan_to_num(self.result.assigned.confidence).round(3).tolist()
        self._row_of = {item: row for row, item in enumerate(self.result.collection.ids)}
        tellers = (telling_words, telling_values, nearest_known)
        told = zip(*(tell(self.result) for tell in tellers), strict=True)
        self._told = dict(zip(self.result.names, told, strict=True))
        names = enumerate(self.result.names)
        self._hues = {name: round(20 + code * _GOLDEN_ANGLE) % 360 for code, name in names}

    def _read_edits(self) -> None:
        try:
            self.edits, self.trouble = read_edits(self.folder), ""
        except InputError as error:  # the page shows what to correct; the run itself is fine
            self.edits, self.trouble = [], str(error)
        self._take(decide(self.result, self.edits, self.obeyed))

    def _take(self, decisions: Decisions) -> None:
        self.decisions = decisions
        self._view = None
        self.version += 1

    # ------------------------------------------------------------------------------- writing

    def add(self, edit: Edit) -> Edit:
        """Write a decision, if it can be obeyed; it is on the disk when this returns.

        Items that were moved or relabelled before go where they are sent last.

        Raises
        ------
        InputError
            If it names something that is not there, or contradicts an earlier decision.
        """
        check_cells(edit)
        with self._lock:
            self.refresh()
            if self.trouble:
                raise InputError(self.trouble)
            new_edits = [*self._superseding(edit), edit]
            first = max((other.row for other in self.edits), default=1) + 1
            tried = [replace(e, id=f"new {i}", row=first + i) for i, e in enumerate(new_edits)]
            decisions = decide(self.result, [*self.edits, *tried], self.obeyed)
            before = self.decisions.problems
            new = [words for row, words in decisions.problems if (row, words) not in before]
            if new:
                raise InputError(f"This cannot be done: {as_sentence(new[0])}")
            self.edits += [add_edit(self.folder, e) for e in new_edits]
            self._take(decisions)
            self._seen = (*self._seen[:1], _stamp(self.folder / EDITS))
            return self.edits[-1]

    def _superseding(self, edit: Edit) -> list[Edit]:
        """Rows that take back where items went before, for a person who moves them again."""
        if edit.action not in ("move", "relabel"):
            return []
        items, rows = set(edit.subject.split("\n")), []
        for old in active_edits(self.edits):
            others = old.subject.split("\n")
            if old.action in ("move", "relabel") and old.id and not items.isdisjoint(others):
                rows.append(Edit("undo", old.id))
                rest = "\n".join(item for item in others if item not in items)
                rows += [replace(old, subject=rest, id="", time="")] if rest else []
        return rows

    def undo(self) -> Edit:
        """Undo the last decision that counts."""
        with self._lock:
            self.refresh()
            candidates = [edit for edit in active_edits(self.edits) if edit.id]
            if not candidates:
                raise InputError("There is nothing to undo.")
            self.add(Edit("undo", candidates[-1].id))
            return candidates[-1]

    def redo(self) -> Edit:
        """Bring back what was undone last, if nothing was decided since."""
        with self._lock:
            self.refresh()
            undone = self._undone()
            if not undone:
                raise InputError("There is nothing to redo.")
            self.add(Edit("undo", undone[-1].id))
            return next(edit for edit in self.edits if edit.id == undone[-1].subject)

    def _undone(self) -> list[Edit]:
        """The undoings that can be taken back: those after the last decision."""
        last = max((i for i, e in enumerate(self.edits) if e.action != "undo"), default=-1)
        is_undo = {edit.id for edit in self.edits if edit.action == "undo"}
        taken_back = {edit.subject for edit in self.edits if edit.action == "undo"}
        tail = self.edits[last + 1 :]
        return [e for e in tail if e.subject not in is_undo and e.id not in taken_back]

    # ------------------------------------------------------------------------------- showing

    def view(self) -> dict[str, Any]:
        """Everything that the page shows, in plain values."""
        with self._lock:
            self.refresh()
            if self._view is None:
                self._view = self._make_view()
            return self._view

    def _make_view(self) -> dict[str, Any]:
        result, state = self.result, self.decisions.state
        kind = result.collection.kind
        cards = in_order([self._card(name) for name in state.categories], self.queues.pairs)
        names = {card["name"] for card in cards}
        questions = [pair for pair in self.queues.pairs if self._is_open(pair, names)]
        suspects = [s for s in self.queues.suspects if s["id"] not in state.decided]
        shown = {row for card in cards for row in card["rows"]}
        shown |= {r for s in suspects for r in (s["row"], *s["given_rows"], *s["suggested_rows"])}
        counted = {edit.id for edit in active_edits(self.edits)}
        trust = read_trust(self.folder)
        number = self.number.view(self.edits, state)
        for pair in number["questions"] if number else ():
            shown |= {pair["first"], pair["second"]}
        return {
            "version": self.version,
            "run": self.folder.resolve().name,
            "answer": result.answer,
            "kind": kind,
            "thing": things(kind, 1),
            "things": things(kind),
            "cards": cards,
            "questions": [pair._asdict() for pair in questions],
            "number": number,
            "suspects": suspects,
            "n_suspects": len(suspects) + self.queues.n_suspects - len(self.queues.suspects),
            "items": {row: self.item(row) for row in sorted(shown)},
            "history": [
                {**{name: getattr(edit, name) for name in COLUMNS}, "counts": edit.id in counted}
                for edit in self.edits[-200:]
            ],
            "problems": self.decisions.told,
            "trouble": self.trouble,
            "n_pending": self._n_pending(),
            "can_undo": bool(counted - {""}),
            "can_redo": bool(self._undone()),
            "levels": self._levels(),
            "trust": None if trust is None else trust_tables(trust, result.names),
            "has_report": (self.folder / "report.html").is_file(),
            "has_changes": (self.folder / "changes.html").is_file(),
        }

    def _levels(self) -> dict[str, Any] | None:
        """The levels from coarse to fine, and the one that is chosen; None if there is only one."""
        levels = self.result.levels
        if levels is None or levels.tree.coarsest == levels.tree.finest:
            return None
        chosen = len(self.decisions.state.categories)
        is_level = levels.tree.coarsest <= chosen <= levels.tree.finest
        return {
            "steps": steps_for_page(levels),
            "chosen": chosen if is_level else len(self.result.names),
            "counted": levels.counted,
        }

    def _n_pending(self) -> int:
        """Decisions that differ from what the run has obeyed."""
        now, before = set(self.decisions.obeyed.effects), set(self.obeyed.effects)
        return len(now ^ before)

    def _card(self, name: str) -> dict[str, Any]:
        result, state = self.result, self.decisions.state
        rows = self._rows(name)
        doubt = self.queues.doubts.get(name)
        words, values, like = self._told.get(name, ([], [], []))
        is_class = state.is_class(name)
        is_decided = is_class and all(state.labels[result.collection.ids[row]] for row in rows)
        return {
            "name": name,
            "kind": "known" if is_class else "novel",
            "size": len(rows),
            "decided": is_decided,
            "word": "decided" if is_decided else doubt.word if doubt else "changed",
            "weak": [] if is_decided or doubt is None else doubt.weak,
            "doubt": 0.0 if doubt is None else doubt.doubt,
            "hue": self._hues.get(name, sum(map(ord, name)) % 360),
            "words": words,
            "values": values,
            "like": like,
            "suggested": "" if is_class else suggested_name(words, values),
            "rows": rows[:N_SHOWN],
        }

    def _rows(self, name: str) -> list[int]:
        """Rows of a category, the most typical first."""
        rows = np.array(
            [self._row_of[item] for item in self.decisions.state.members(name)], dtype=np.int64
        )
        distance = np.nan_to_num(self.result.assigned.distance[rows])
        return rows[np.argsort(distance, kind="stable")].tolist()

    def _is_open(self, pair: Pair, names: set[str]) -> bool:
        """Whether nobody has said yet whether two categories are one."""
        if not {pair.first, pair.second} <= names:
            return False
        state = self.decisions.state
        if all(state.is_class(name) for name in pair[:2]):
            return False
        sides = [set(state.members(name)) for name in pair[:2]]
        for _, first, second in state.apart:
            judged = [set(first), set(second)]
            if all(a & b for a, b in zip(sides, judged, strict=True)) or all(
                a & b for a, b in zip(sides, judged[::-1], strict=True)
            ):
                return False
        return True

    def item(self, row: int) -> dict[str, Any]:
        """What the page needs to draw an item."""
        result = self.result
        texts, label = result.collection.texts, result.collection.y[row]
        return {
            "id": result.collection.ids[row],
            "text": None if texts is None else shorten(texts[row]),
            "label": None if label is None else str(label),
            "confidence": self._confidence[row],
        }

    def path_of(self, row: int) -> Path | None:
        """The picture of an item; None if there is none."""
        paths = self.result.collection.paths
        return paths[row] if paths is not None and 0 <= row < len(paths) else None

    def members(self, name: str, offset: int = 0) -> dict[str, Any]:
        """Items of a category, the most typical first, at most `MAX_MEMBERS` at a time."""
        with self._lock:
            self.refresh()
            if name not in self.decisions.state.categories:
                raise InputError(f"There is no category {name!r} any more.")
            rows = self._rows(name)
            some = rows[offset : offset + MAX_MEMBERS]
            items = {row: self.item(row) for row in some}
            found = {"name": name, "size": len(rows), "rows": some, "items": items}
            return found if offset else {**found, "half": smaller_half(self.result, rows)}


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
