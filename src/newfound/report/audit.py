"""What a person should check: labels that may be wrong, and items that occur twice."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from newfound.arrays import Bools, Doubles, Floats, Ints, LabelsLike
from newfound.mixture.projection import unit_rows

_N_NEIGHBOURS = 10
_MAX_CANDIDATES = 2000
_BLOCK_ROWS = 1024

#: Most multiplications for near-duplicates: about half a minute on one core.
_MAX_PRODUCTS = 5e11

#: A near-duplicate is closer than this share of the usual distance to the nearest labelled item.
_NEAR_SHARE = 0.1
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Suspect:
    """A labelled item that lies among items of another category.

    Attributes
    ----------
    row : int
        Row of the item.
    elsewhere : int
        Code of the category that it lies in.
    score : float
        How clearly, from 0 to 1.
    n_neighbours : int
        Number of its nearest items that are in that category.
    n_asked : int
        Number of nearest items that were looked at.
    """

    row: int
    elsewhere: int
    score: float
    n_neighbours: int
    n_asked: int


@dataclass(frozen=True)
class DuplicatePair:
    """Two items that are equal or nearly so.

    Attributes
    ----------
    row : int
        Row of a labelled item.
    other : int
        Row of an unlabelled item, or of one with another label.
    cosine : float
        Cosine of their features.
    is_same_file : bool
        Whether the files are equal, byte for byte.
    is_conflict : bool
        Whether they are in different categories.
    """

    row: int
    other: int
    cosine: float
    is_same_file: bool
    is_conflict: bool


def audit_labels(V: Floats, codes: Ints, is_labelled: Bools) -> list[Suspect]:
    """Find labelled items that lie in the region of another category.

    An item is a suspect if another prototype is nearer to it than its own, where its own prototype
    is computed without the item, and if more of its nearest items belong to that other category
    than to its own.

    Parameters
    ----------
    V : ndarray of shape (n, q)
        Items in the mixture's space.
    codes : ndarray of int, shape (n,)
        Category of each item.
    is_labelled : ndarray of bool, shape (n,)
        Items with a given label, which is their category.

    Returns
    -------
    list of Suspect
        In descending order of the score.
    """
    V = np.asarray(V, dtype=np.float64)
    rows = np.flatnonzero(is_labelled)
    own, elsewhere, other = _distances_without_self(V, codes, rows)
    shares = own / np.maximum(own + other, np.finfo(float).tiny)
    candidates = np.flatnonzero(own > other)
    candidates = candidates[np.argsort(-shares[candidates], kind="stable")][:_MAX_CANDIDATES]
    if not len(candidates):
        return []
    votes = codes[_nearest_rows(V, rows[candidates])]
    return _judge(rows[candidates], elsewhere[candidates], shares[candidates], votes, codes)


def find_duplicates(
    features: Floats,
    codes: Ints,
    labels: LabelsLike,
    paths: Sequence[Path] | None = None,
) -> list[DuplicatePair]:
    """Find items that occur twice, once with a label and once without or with another label.

    Equal files are found by their content. Other pairs count as near-duplicates if their cosine
    distance is less than a tenth of the usual one, which is the median distance between an
    unlabelled item of a known category and the nearest labelled item.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Features of the items.
    codes : ndarray of int, shape (n,)
        Category of each item.
    labels : sequence of length n
        Given labels, None where there is none.
    paths : sequence of Path, optional
        Files of the items.

    Returns
    -------
    list of DuplicatePair
        Pairs in different categories first, then in descending order of the cosine.
    """
    units = np.asarray(features, dtype=np.float32)
    units = unit_rows(units) if units.size else units
    is_labelled = np.array([label is not None for label in labels], dtype=bool)
    same = {
        _labelled_first(pair, is_labelled)
        for pair in _same_files(paths or [])
        if labels[pair[0]] != labels[pair[1]]
    }
    near = _near_pairs(units, codes, is_labelled)
    pairs = [
        DuplicatePair(i, j, _cosine(units, i, j), (i, j) in same, bool(codes[i] != codes[j]))
        for i, j in sorted(same | near)
    ]
    return sorted(pairs, key=lambda pair: (not pair.is_conflict, -pair.cosine, pair.row))


def _distances_without_self(V: Floats, codes: Ints, rows: Ints) -> tuple[Doubles, Ints, Doubles]:
    """Squared distances from the own prototype without the row, and from the nearest other one."""
    K = int(codes.max()) + 1
    sizes = np.bincount(codes, minlength=K)
    sums = np.zeros((K, V.shape[1]))
    np.add.at(sums, codes, V)
    means = sums / np.maximum(sizes, 1)[:, None]
    here = codes[rows]
    rest = (sums[here] - V[rows]) / np.maximum(sizes[here] - 1, 1)[:, None]
    own = ((V[rows] - rest) ** 2).sum(axis=1)
    own[sizes[here] < 2] = 0.0  # alone in its category: nothing to compare with
    squares = (V[rows] ** 2).sum(axis=1)[:, None] - 2 * V[rows] @ means.T + (means**2).sum(axis=1)
    squares[:, sizes == 0] = np.inf
    squares[np.arange(len(rows)), here] = np.inf
    elsewhere = squares.argmin(axis=1)
    return own, elsewhere, squares[np.arange(len(rows)), elsewhere].clip(min=0)


def _nearest_rows(V: Floats, rows: Ints) -> Ints:
    """The nearest other rows of each row, shape (m, k)."""
    k = min(_N_NEIGHBOURS, len(V) - 1)
    squares = (V**2).sum(axis=1)
    found = np.empty((len(rows), k), dtype=np.int64)
    for block in _blocks(len(rows), len(V)):
        distances = squares - 2 * V[rows[block]] @ V.T
        distances[np.arange(len(distances)), rows[block]] = np.inf
        found[block] = np.argpartition(distances, k - 1, axis=1)[:, :k]
    return found


def _judge(rows: Ints, elsewhere: Ints, shares: Doubles, votes: Ints, codes: Ints) -> list[Suspect]:
    """Keep the candidates whose neighbours agree with the prototypes, in order of the score."""
    for_other = (votes == elsewhere[:, None]).sum(axis=1)
    for_own = (votes == codes[rows][:, None]).sum(axis=1)
    n_asked = votes.shape[1]
    scores = (shares + for_other / n_asked) / 2
    order = np.argsort(-scores, kind="stable")
    return [
        Suspect(int(rows[i]), int(elsewhere[i]), float(scores[i]), int(for_other[i]), n_asked)
        for i in order
        if for_other[i] > for_own[i]
    ]


def _same_files(paths: Sequence[Path]) -> Iterator[tuple[int, int]]:
    """Pairs of equal files; only files of equal size are read."""
    by_size = defaultdict(list)
    for i, path in enumerate(paths):
        try:
            by_size[path.stat().st_size].append(i)
        except OSError:
            continue
    for size, rows in by_size.items():
        if size and len(rows) > 1:
            by_content = defaultdict(list)
            for i in rows:
                by_content[_digest(paths[i])].append(i)
            for content, group in by_content.items():
                # A file that occurs a thousand times would make half a million pairs.
                yield from combinations(group[:50], 2) if content else ()


def _digest(path: Path) -> bytes:
    """Hash of a file's content; empty if it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        return b""


def _cosine(units: Floats, i: int, j: int) -> float:
    """Cosine of two rows, rounded to the digits of float32, so that copies have exactly 1."""
    return round(float(units[i] @ units[j]), 6)


def _labelled_first(pair: tuple[int, int], is_labelled: Bools) -> tuple[int, int]:
    i, j = pair
    return (i, j) if is_labelled[i] else (j, i)


def _near_pairs(units: Floats, codes: Ints, is_labelled: Bools) -> set[tuple[int, int]]:
    """Pairs of an unlabelled row and its nearest labelled one that are nearly equal."""
    labelled, unlabelled = np.flatnonzero(is_labelled), np.flatnonzero(~is_labelled)
    if not len(labelled) or not len(unlabelled) or not units.size:
        return set()
    n_affordable = int(_MAX_PRODUCTS / (len(labelled) * units.shape[1]))
    if len(unlabelled) > n_affordable:
        draws = np.random.default_rng(0)
        unlabelled = np.sort(draws.choice(unlabelled, max(1, n_affordable), replace=False))
    nearest = np.empty(len(unlabelled), dtype=np.int64)
    gaps = np.empty(len(unlabelled))
    for block in _blocks(len(unlabelled), len(labelled)):
        cosines = units[unlabelled[block]] @ units[labelled].T
        nearest[block] = cosines.argmax(axis=1)
        gaps[block] = 1 - cosines.max(axis=1)
    # Items of novel categories have no labelled item near, so they say nothing about the usual.
    in_known = np.isin(codes[unlabelled], codes[labelled])
    is_near = gaps <= _near_threshold(gaps[in_known] if in_known.any() else gaps)
    return {
        (int(i), int(j))
        for i, j in zip(labelled[nearest[is_near]], unlabelled[is_near], strict=True)
    }


def _near_threshold(gaps: Doubles) -> float:
    """Largest distance that counts as nearly equal.

    Copies are left out of the median: if half of a collection were copies, it would be 0.
    """
    usual = gaps[gaps > _ROUNDING]
    typical = float(np.median(usual)) if len(usual) else 0.0
    return max(_ROUNDING, _NEAR_SHARE * typical)


def _blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Blocks of rows such that a product with `n_columns` has at most 32 million entries."""
    step = max(1, min(_BLOCK_ROWS, 2**25 // max(1, n_columns)))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))
