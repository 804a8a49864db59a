"""Pairs of items that a person has judged: the same stay together, different ones stay apart."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from newfound.arrays import Ints
from newfound.errors import InputError
from newfound.mixture.rows import squared_distances
from newfound.result.edits.decisions import linked_groups
from newfound.result.edits.state import State
from newfound.result.result import Result


def rows_to_move(result: Result, state: State) -> dict[int, int]:
    """Where single items must go so that all judged pairs hold.

    Items that are linked move as one. A group with an item that has its place by a label or a move
    follows that item. Any other group takes the nearest category in which nothing is that it
    differs from; those with the nearest prototype choose first.

    Parameters
    ----------
    result : Result
        What the mixture found.
    state : State
        With the pairs.

    Returns
    -------
    dict
        Row → code of its category, for all items of judged pairs.

    Raises
    ------
    InputError
        If there are too few categories for items that all differ.
    """
    row_of = {item: row for row, item in enumerate(result.collection.ids)}
    groups, vetoes = _groups(state, row_of)
    if not groups:
        return {}
    is_fixed = np.zeros(len(row_of), dtype=bool)
    is_fixed[[row_of[item] for item in state.held]] = True
    is_fixed |= result.collection.is_labelled
    ranked = {group: _ranked_categories(result, rows) for group, rows in groups.items()}
    settled: dict[int, int] = {}
    for group, rows in groups.items():
        fixed = [row for row in rows if is_fixed[row]]
        if fixed:
            settled[group] = int(result.assigned.labels[fixed[0]])
    free = [group for group in groups if group not in settled]
    for group in sorted(free, key=lambda group: (ranked[group][1], group)):
        taken = {settled[other] for other in vetoes[group] if other in settled}
        choices = [int(code) for code in ranked[group][0] if code not in taken]
        if not choices:
            item = result.collection.ids[groups[group][0]]
            raise InputError(
                f"edits.csv says that {item!r} differs from items in every category. Split a "
                "category, so that there is a place for it."
            )
        settled[group] = choices[0]
    return {row: settled[group] for group, rows in groups.items() for row in rows}


def _groups(
    state: State, row_of: dict[str, int]
) -> tuple[dict[int, list[int]], dict[int, set[int]]]:
    """Rows of linked items by group, and the groups that each group differs from."""
    number_of = linked_groups(state)
    pairs = [(a[0], b[0]) for _, a, b in state.apart if len(a) == len(b) == 1]
    for pair in pairs:
        for item in pair:
            number_of.setdefault(item, len(number_of))
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for item, group in number_of.items():
        groups[group].append(row_of[item])
    vetoes: defaultdict[int, set[int]] = defaultdict(set)
    for one, other in pairs:
        vetoes[number_of[one]].add(number_of[other])
        vetoes[number_of[other]].add(number_of[one])
    return dict(groups), vetoes


def _ranked_categories(result: Result, rows: list[int]) -> tuple[Ints, float]:
    """Codes of the categories, the nearest to these rows first, and the distance of the first."""
    mean = result.V[rows].mean(axis=0, keepdims=True).astype(np.float64)
    squares = squared_distances(mean, result.prototypes)[0]
    if result.mixture is not None:
        squares = squares - result.mixture.offsets_
    order = np.argsort(squares, kind="stable")
    return order, float(squares[order[0]])
