"""From a row of ``edits.csv`` to what it means for single items, or to what is wrong with it."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from newfound.errors import InputError
from newfound.result.edits.log import ACTIONS, Edit
from newfound.result.edits.state import NOWHERE, Effect, State
from newfound.result.lineage import highest_number, novel_ids
from newfound.words import any_of

#: In the column ``value`` of "different": the two are items, although categories have these names.
ITEMS = "items"
#: Longer numbers of categories are mistakes.
_MOST_DIGITS = 9


class RowError(Exception):
    """A row that cannot be obeyed; the message says why and what to do."""


def effect_of(edit: Edit, state: State, last_id: int) -> Effect:
    """What an edit means for items, as categories are now.

    Parameters
    ----------
    edit : Edit
        Any edit but an ``undo``.
    state : State
        Where items are before it.
    last_id : int
        Highest number that an id of a novel category has had.

    Raises
    ------
    RowError
        If it cannot be obeyed.
    """
    if edit.action not in _RESOLVERS:
        raise RowError(
            f"the action {edit.action!r} is unknown. Write {any_of(ACTIONS)}"
            f"{_did_you_mean(edit.action, ACTIONS)}"
        )
    empty = [name for name in ACTIONS[edit.action] if not getattr(edit, name).strip()]
    if empty:
        raise RowError(f"{edit.action} needs a text in the column {' and '.join(empty)}")
    return _RESOLVERS[edit.action](edit, state, last_id)


def _merge(edit: Edit, state: State, _: int) -> Effect:
    first, second = _category(edit.subject, state), _category(edit.object, state)
    if first == second:
        raise RowError(f"{first!r} cannot be merged with itself")
    if state.is_class(second) and not state.is_class(first):
        first, second = second, first  # a class keeps its name, a novel category only had a number
    if edit.value and edit.value not in (first, second):
        _check_new_name(edit.value, state)
    name = edit.value or first
    groups = [category for category in (first, second) if category != name]
    if not state.is_class(first) and first not in groups:
        groups.insert(0, first)
    return _as_one(groups, name, state)


def _rename(edit: Edit, state: State, _: int) -> Effect:
    category = _category(edit.subject, state)
    if edit.value == category:
        return _confirm(edit, state, 0)
    _check_new_name(edit.value, state)
    return _as_one([category], edit.value, state)


def _as_one(categories: list[str], name: str, state: State) -> Effect:
    """All items of novel categories get a label; unlabelled items of classes only move."""
    labelled: list[str] = []
    placed: list[str] = []
    for category in categories:
        free = state.is_class(category)
        for item in state.members(category):
            (placed if free and state.labels[item] is None else labelled).append(item)
    return Effect(labelled={name: labelled}, placed={name: placed} if placed else {})


def _confirm(edit: Edit, state: State, _: int) -> Effect:
    category = _category(edit.subject, state)
    return Effect(labelled={category: state.members(category)})


def _split(edit: Edit, state: State, last_id: int) -> Effect:
    category = _category(edit.subject, state)
    items = _items(edit.object, state)
    strangers = [item for item in items if state.place[item] != category]
    if strangers:
        raise RowError(
            f"{strangers[0]!r} is in {state.place[strangers[0]]!r}, not in {category!r}. Split "
            "takes items of one category; use move for the others"
        )
    rest = [item for item in state.members(category) if item not in set(items)]
    if not rest:
        raise RowError(f"these are all items of {category!r}. To give it a name, use rename")
    names = state.categories
    name = edit.value or novel_ids(1, names, max(last_id, highest_number(names)))[0]
    _check_new_name(name, state)
    labelled = {name: items}
    if not state.is_class(category):
        labelled[category] = rest
    return Effect(labelled=labelled)


def _reject(edit: Edit, state: State, _: int) -> Effect:
    category = _category(edit.subject, state)
    if state.is_class(category):
        raise RowError(
            f"{category!r} has labels, so it is a category. Relabel or move its items, or undo "
            "the edit that made it one"
        )
    return Effect(dissolved=state.members(category))


def _relabel(edit: Edit, state: State, _: int) -> Effect:
    items = _items(edit.subject, state)
    if not edit.value:
        return Effect(unlabelled=items)
    return _into(edit.value, items, state, must_exist=False)


def _move(edit: Edit, state: State, _: int) -> Effect:
    return _into(_category(edit.object, state), _items(edit.subject, state), state)


def _into(category: str, items: list[str], state: State, must_exist: bool = True) -> Effect:
    """Items in a class get its label; in a novel category, which has no labels, they are held."""
    if state.is_class(category) or (not must_exist and category not in state.categories):
        return Effect(labelled={category: items})
    return Effect(held={category: items})


def _different(edit: Edit, state: State, _: int) -> Effect:
    cells = edit.subject, edit.object
    names = state.categories
    if edit.value.strip() != ITEMS and all(cell in names for cell in cells):
        sides = [state.members(cell) for cell in cells]
    elif all(cell in state.place for cell in cells):
        sides = [[cell] for cell in cells]
    else:  # say which of the two is unknown
        sides = [state.members(_category(cell, state)) for cell in cells]
    if sides[0] == sides[1]:
        raise RowError(f"{edit.subject!r} cannot differ from itself")
    return Effect(apart=(sides[0], sides[1]))


def _same(edit: Edit, state: State, _: int) -> Effect:
    pair = [_items(cell, state)[0] for cell in (edit.subject, edit.object)]
    return Effect(together=pair)


def _granularity(edit: Edit, state: State, _: int) -> Effect:
    """Every item without a label stays where the level puts it."""
    assert state.at is not None  # `decide` gives it to every state
    if not edit.subject.strip().isdecimal() or len(edit.subject) > _MOST_DIGITS:
        given = edit.subject[:20]
        raise RowError(f"granularity takes a number of categories; got {given!r}")
    try:
        level = state.at(int(edit.subject))
    except InputError as error:
        raise RowError(str(error).rstrip(".")) from error
    if any(state.place[item] not in (found, NOWHERE) for item, found in state.found.items()):
        raise RowError(
            "levels are those of the last result, and rows above have changed it. Obey these "
            "first (Apply, or newfound update), then choose a level"
        )
    held: dict[str, list[str]] = {}
    for item, category in level.items():
        if state.labels[item] is None:
            held.setdefault(category, []).append(item)
    return Effect(held=held)


_RESOLVERS: dict[str, Callable[[Edit, State, int], Effect]] = {
    "merge": _merge,
    "split": _split,
    "rename": _rename,
    "confirm": _confirm,
    "reject": _reject,
    "relabel": _relabel,
    "move": _move,
    "same": _same,
    "different": _different,
    "granularity": _granularity,
}


# ------------------------------------------------------------------------------------ names and ids


def _category(name: str, state: State) -> str:
    names = state.categories
    if name in names:
        return name
    if name in state.gone:
        row, now = state.gone[name]
        after = f"; its items are now in {now!r}" if now else ""
        raise RowError(f"there is no category {name!r} any more: row {row} changed it{after}")
    raise RowError(f"there is no category {name!r}{_did_you_mean(name, names)}")


def _items(cell: str, state: State) -> list[str]:
    """Ids in a cell, one in each line."""
    found: list[str] = []
    name = ""
    # An id may hold a line break itself, so lines are put together until they are an id.
    for line in cell.split("\n"):
        name = f"{name}\n{line}" if name else line.removesuffix("\r")
        if name in state.place:
            found.append(name)
            name = ""
        elif name.strip() in state.place:
            found.append(name.strip())
            name = ""
    if name.strip():
        raise RowError(
            f"there is no item {name.strip()!r}{_did_you_mean(name, state.place)}. The column id "
            "of assignments.csv has the ids; write one in each line"
        )
    if not found:
        raise RowError("no item is named")
    return list(dict.fromkeys(found))


def _check_new_name(name: str, state: State) -> None:
    if name in state.categories:
        raise RowError(f"there is a category {name!r} already. To make them one, use merge")
    if name != name.strip() or name in ("-1", "nan") or len(name) > 200:
        raise RowError(
            f"{name[:60]!r} cannot be a name: it must not begin or end with a blank, be -1 or nan, "
            "or have more than 200 characters"
        )


def _did_you_mean(name: str, names: object) -> str:
    close = difflib.get_close_matches(name, list(names)[:20_000], 1, 0.7)  # type: ignore[call-overload]
    return f". Did you mean {close[0]!r}?" if close else ""
