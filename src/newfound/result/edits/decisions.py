"""What the edits of a run mean for its items: labels, links and vetoes, or contradictions.

An edit speaks of categories, which change from run to run. So what it means for single items is
worked out once, when it is first obeyed, and kept in ``decisions.json`` beside what the items were
before. An edit that is undone, deleted or changed later leaves no trace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from newfound.errors import InputError
from newfound.files import read_json
from newfound.mixture.counting.count import CategoryCount
from newfound.result.digests import CheckedFiles
from newfound.result.edits.log import EDITS, Edit, active_edits
from newfound.result.edits.resolve import RowError, effect_of
from newfound.result.edits.state import Effect, State
from newfound.result.run_folder import RUN, read_settled
from newfound.words import plural

if TYPE_CHECKING:
    from newfound.result.result import Result

DECISIONS = "decisions.json"
_MOST_PROBLEMS = 10
#: Between the cells of an edit in its key: the character for it, which hardly any text has.
_UNIT = "\x1f"


@dataclass(frozen=True)
class Obeyed:
    """What a run has obeyed so far, as ``decisions.json`` holds it.

    Attributes
    ----------
    effects : dict of Effect
        What each edit meant, by its content.
    unedited : dict of list
        Item → its category and its label without any edit, and the label that edits gave it.
    base_count : CategoryCount or None
        The count without answers about drawn pairs; None if there were none.
    """

    effects: dict[str, Effect] = field(default_factory=dict)
    unedited: dict[str, list[str | None]] = field(default_factory=dict)
    base_count: CategoryCount | None = None

    @property
    def levels(self) -> list[str]:
        """The levels that were chosen, in the order of the edits."""
        return [key for key in self.effects if key.split(_UNIT)[0] == "granularity"]

    @classmethod
    def read(cls, folder: Path) -> Obeyed:
        """Read it; nothing was obeyed if there is no such file.

        Raises
        ------
        InputError
            If it is not what newfound wrote: items would silently go elsewhere.
        """
        if not (Path(folder) / DECISIONS).is_file():
            return cls()
        return read_settled(Path(folder), lambda: cls._read_file(Path(folder)))

    @classmethod
    def _read_file(cls, folder: Path) -> Obeyed:
        path = folder / DECISIONS
        try:
            files = CheckedFiles(folder, read_json(folder / RUN))
            content = read_json(files.file(DECISIONS) if files.has(DECISIONS) else path)
            effects = {key: Effect(**value) for key, value in content["effects"].items()}
            count = content.get("count")
            base = None if count is None else CategoryCount.from_plain(count)
            return cls(effects, dict(content["unedited"]), base)
        except (InputError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{path} is damaged ({error}). Restore it from a copy; or delete it, and the rows "
                f"of {EDITS} that this result has obeyed already."
            ) from error

    def as_json(self, base_count: CategoryCount | None = None) -> dict[str, Any]:
        """Plain values, with the count without answers."""
        effects = {key: effect.as_json() for key, effect in self.effects.items()}
        count = None if base_count is None else base_count.as_plain()
        return {"effects": effects, "unedited": self.unedited, "count": count}


@dataclass(frozen=True)
class Decisions:
    """The edits of a run, replayed.

    Attributes
    ----------
    state : State
        Where items are after the last edit.
    obeyed : Obeyed
        To be stored with the result that obeys them.
    problems : list of (int, str)
        Row and what is wrong with it. Such rows have no effect.
    is_new : bool
        Whether anything differs from what the run has obeyed.
    """

    state: State
    obeyed: Obeyed
    problems: list[tuple[int, str]]
    is_new: bool

    @property
    def told(self) -> list[str]:
        """The problems in sentences."""
        return [f"Row {row}: {as_sentence(words)}" for row, words in self.problems]

    def check(self) -> None:
        """Refuse edits that cannot be obeyed, or that contradict each other, by row."""
        if self.problems:
            listed = self.told[:_MOST_PROBLEMS]
            n_more = len(self.problems) - len(listed)
            more = [f"And {plural(n_more, 'more problem')}."] if n_more else []
            raise InputError(
                f"{EDITS} cannot be obeyed as it is, and nothing was changed. Correct or delete "
                "these rows:\n" + "\n".join([*listed, *more])
            )


def as_sentence(words: str) -> str:
    """Words with a full stop, unless they end with a question."""
    return words if words.endswith("?") else f"{words}."


def decide(result: Result, edits: Sequence[Edit], obeyed: Obeyed) -> Decisions:
    """Replay the edits of a run.

    Parameters
    ----------
    result : Result
        The result of the run.
    edits : sequence of Edit
        All rows of the file, from `read_edits`.
    obeyed : Obeyed
        What the result has obeyed already.

    Returns
    -------
    Decisions
        With the problems, if there are some.
    """
    state = _without_edits(result, obeyed)
    before = dict(state.place), dict(state.labels)
    problems = _check_undos(edits)
    effects: dict[str, Effect] = {}
    counted = active_edits(edits)
    sent: dict[str, tuple[int, str]] = {}
    last_id = result.record.last_id
    for edit, key in zip(counted, _keys(counted), strict=True):
        names = set(state.categories)
        try:
            _check_moved_twice(edit, sent)
            effect = obeyed.effects.get(key) or effect_of(edit, state, last_id)
        except RowError as error:
            problems.append((edit.row, str(error)))
            continue
        effects[key] = effect
        state.apply(effect, edit.row)
        _note_gone(names, effect, edit.row, state)
    problems += _contradictions(state)
    unedited = {
        item: [before[0][item], before[1][item], state.labels[item]]
        for item in state.place
        if item in state.put_by or before[1][item] != state.labels[item]
    }
    is_new = list(effects) != list(obeyed.effects)
    return Decisions(state, Obeyed(effects, unedited), sorted(problems), is_new)


def _without_edits(result: Result, obeyed: Obeyed) -> State:
    """Categories and labels as they would be without any edit."""
    names = result.names
    place = {
        item: names[code]
        for item, code in zip(result.collection.ids, result.assigned.labels, strict=True)
    }
    found = dict(place)
    labels = {
        item: None if label is None else str(label)
        for item, label in zip(result.collection.ids, result.collection.y, strict=True)
    }
    for item, (category, label, edited) in obeyed.unedited.items():
        if item not in place:
            continue
        if labels[item] == edited:  # else a newer label was given elsewhere
            labels[item] = label
        place[item] = labels[item] or category or place[item]

    def at(k: int) -> dict[str, str]:
        return dict(zip(result.collection.ids, result.at(k).table["category"], strict=True))

    return State(place, labels, found, at)


def _keys(edits: Sequence[Edit]) -> list[str]:
    """A key for each edit that depends on what it says: a changed row is a new one."""
    seen: Counter[str] = Counter()
    keys = []
    for edit in edits:
        content = _UNIT.join(edit.content)
        seen[content] += 1
        keys.append(content if seen[content] == 1 else f"{content}{_UNIT}{seen[content]}")
    return keys


def _check_undos(edits: Sequence[Edit]) -> list[tuple[int, str]]:
    problems = []
    rows = {edit.id: edit.row for edit in edits if edit.id}
    for id_, n in Counter(edit.id for edit in edits if edit.id).items():
        if n > 1:
            problems.append((rows[id_], f"the id {id_!r} occurs twice. Give this row another one"))
    for edit in edits:
        if edit.action == "undo" and rows.get(edit.subject.strip(), edit.row) >= edit.row:
            words = f"no row above has the id {edit.subject!r}. The column subject takes the id"
            problems.append((edit.row, words))
    return problems


def _check_moved_twice(edit: Edit, sent: dict[str, tuple[int, str]]) -> None:
    """Refuse an item that an earlier row has put into another place, one by one."""
    if edit.action not in ("move", "relabel"):
        return
    to = edit.object if edit.action == "move" else edit.value
    for item in edit.subject.split("\n"):
        row, there = sent.setdefault(item, (edit.row, to))
        if there != to:
            raise RowError(
                f"{item!r} goes to {to!r}, but row {row} puts it into {there!r}. Keep one of the "
                "two"
            )


def _note_gone(names: set[str], effect: Effect, row: int, state: State) -> None:
    """Remember which edit took a name away, for the message about later rows that use it."""
    groups = {**effect.labelled, **effect.placed}
    for name in names - set(state.categories):
        state.gone[name] = row, next(iter(groups), "")


def _contradictions(state: State) -> list[tuple[int, str]]:
    """Pairs that are to be apart and together."""
    problems = []
    for row, first, second in state.apart:
        shared = state.where_both(first, second)
        if shared is None or not _is_settled([*first[:1], *second[:1]], state):
            continue
        others = {state.put_by[i] for i in (*first, *second) if state.put_by.get(i, row) != row}
        if others:
            problems.append((max(row, max(others)), _both_ways(shared, row, max(others))))
    groups = linked_groups(state)
    for row, first, second in state.apart:
        if len(first) == len(second) == 1 and groups.get(first[0], -1) == groups.get(second[0], -2):
            words = f"{first[0]!r} and {second[0]!r} are different, but other rows link them"
            problems.append((row, f"{words} as the same. Keep one of the two"))
    for row, one, other in state.together:
        places = [state.place[item] for item in (one, other)]
        if places[0] != places[1] and all(_is_settled([item], state) for item in (one, other)):
            words = f"{one!r} and {other!r} are the same, but they are in {places[0]!r} and"
            problems.append((row, f"{words} {places[1]!r} by their labels or by other rows"))
    return problems


def _both_ways(shared: str, row: int, other: int) -> str:
    return (
        f"row {row} says that two are different, but row {other} puts both into {shared!r}. Keep "
        "one of the two rows"
    )


def _is_settled(items: Sequence[str], state: State) -> bool:
    """Whether a label or a move holds all of these items in their place."""
    return all(state.labels[item] is not None or item in state.held for item in items)


def linked_groups(state: State) -> dict[str, int]:
    """Items that are "the same", directly or through others: item → number of its group."""
    root: dict[str, str] = {}

    def find(item: str) -> str:
        while root.setdefault(item, item) != item:
            item = root[item]
        return item

    for _, one, other in state.together:
        root[find(one)] = find(other)
    numbers = {item: number for number, item in enumerate(sorted({find(item) for item in root}))}
    return {item: numbers[find(item)] for item in root}
