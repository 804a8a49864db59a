"""Coarser and finer on the page: a slider over the levels, and a dendrogram as plain SVG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from newfound.result.levels import Levels, steps_for_page

if TYPE_CHECKING:
    from newfound.result.result import Result

#: Height of a leaf and width of the tree, in pixels of the SVG.
ROW, WIDTH = 22, 420
#: A tree of more categories is no picture any more.
MAX_LEAVES = 150
#: Longer names are cut off in the picture.
MAX_NAME = 28


@dataclass(frozen=True)
class Dendrogram:
    """The merges of the run's novel categories, drawn.

    Attributes
    ----------
    leaves : list of (float, str, int or None)
        Height of the middle, name, and code of the category if the result has it.
    joins : list of (str, int, str)
        SVG path, the number of categories that it leads to, and what to say about it.
    width, height, margin : int
        Size of the tree, and room for the names on its left.
    """

    leaves: list[tuple[float, str, int | None]]
    joins: list[tuple[str, int, str]]
    width: int
    height: int
    margin: int


def view_levels(result: Result) -> dict[str, Any] | None:
    """What the page shows of the levels; None if there is only one."""
    levels = result.levels
    if levels is None or levels.tree.coarsest == levels.tree.finest:
        return None
    steps = steps_for_page(levels)
    last = max(1, len(steps) - 1)
    inside = [place for place, step in enumerate(steps) if step["inside"]]
    return {
        "steps": steps,
        "chosen": len(result.names),
        "counted": levels.counted,
        "n_known": levels.tree.n_known,
        "mark": 100 * (levels.counted - steps[0]["k"]) / last,
        "band": (100 * inside[0] / last, 100 * (inside[-1] - inside[0]) / last) if inside else None,
        "max_name": MAX_NAME,
        "tree": draw_dendrogram(levels, result.names),
    }


def draw_dendrogram(levels: Levels, names: tuple[str, ...]) -> Dendrogram | None:
    """Draw the merges below the counted K; None with fewer than two or too many categories.

    Parameters
    ----------
    levels : Levels
        The tree.
    names : tuple of str
        Names of the result's categories, for links.
    """
    tree = levels.tree
    numbers = range(levels.counted - 1, tree.coarsest - 1, -1)
    merges = [(tree.joins[tree.finest - k - 1], k) for k in numbers]
    n_leaves = tree.n_components - tree.n_known
    if not merges or n_leaves > MAX_LEAVES:
        return None
    members = {leaf: [leaf] for leaf in range(tree.n_known, tree.n_components)}
    for join, _ in merges:
        members[join.first] += members.pop(join.second)
    order = [leaf for group in members.values() for leaf in group]
    code_of = {name: code for code, name in enumerate(names)}
    place = {leaf: ROW * (row + 0.5) for row, leaf in enumerate(order)}
    leaves = [(place[leaf], levels.names[leaf], code_of.get(levels.names[leaf])) for leaf in order]
    reach = max(join.gap for join, _ in merges) ** 0.5 or 1.0
    x = dict.fromkeys(order, 0.0)
    joins = []
    for join, k in merges:
        one, other = join.first, join.second
        # square roots, because gaps are squares: small ones can be seen beside large ones
        end = round(4 + (WIDTH - 8) * join.gap**0.5 / reach, 1)
        path = f"M{x[one]} {place[one]}H{end}V{place[other]}H{x[other]}"
        words = f"{k} categories: {levels.names[one]} with {levels.names[other]}"
        joins.append((path, k, words))
        x[one], place[one] = end, round((place[one] + place[other]) / 2, 1)
    longest = max(len(levels.names[leaf]) for leaf in order)
    return Dendrogram(leaves, joins, WIDTH, ROW * len(order), 16 + 7 * min(longest, MAX_NAME))
