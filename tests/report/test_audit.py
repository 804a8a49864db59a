"""Labels that may be wrong, and items that are there twice."""

import numpy as np
import pytest

from newfound.report import audit
from newfound.report.audit import audit_labels, find_duplicates


@pytest.fixture
def blobs():
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(4), 30)
    V = 4 * np.eye(4, 10)[codes] + 0.5 * rng.standard_normal((120, 10))
    return V, codes, np.arange(120) % 2 == 0


def slow_audit(V, codes, is_labelled):
    """One item at a time: is another prototype nearer than the own one without the item?"""
    found = {}
    for i in np.flatnonzero(is_labelled):
        others = np.arange(len(V)) != i
        gaps = {
            c: np.linalg.norm(V[i] - V[others & (codes == c)].mean(axis=0)) ** 2
            for c in set(codes[others])
        }
        if codes[i] not in gaps:
            continue
        own = gaps.pop(codes[i])
        best = min(gaps, key=gaps.get)
        near = np.argsort(
            [np.inf if j == i else np.linalg.norm(V[i] - V[j]) for j in range(len(V))]
        )
        votes = codes[near[:10]]
        if own > gaps[best] and (votes == best).sum() > (votes == codes[i]).sum():
            share = own / (own + gaps[best])
            found[int(i)] = (int(best), (share + (votes == best).mean()) / 2)
    return found


def test_planted_wrong_labels_are_found_and_nothing_else(blobs):
    V, codes, is_labelled = blobs
    assert audit_labels(V, codes, is_labelled) == []
    wrong = {2: 1, 40: 3, 64: 0}
    planted = codes.copy()
    for row, code in wrong.items():
        planted[row] = code
    suspects = audit_labels(V, planted, is_labelled)
    assert {s.row for s in suspects} == set(wrong)
    assert all(s.elsewhere == codes[s.row] for s in suspects)
    assert all(s.n_neighbours >= 9 and s.n_asked == 10 for s in suspects)
    assert [s.score for s in suspects] == sorted((s.score for s in suspects), reverse=True)
    assert all(0.5 < s.score <= 1 for s in suspects)


@pytest.mark.parametrize("seed", range(4))
def test_against_a_slow_loop(seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(4, size=60)
    V = np.eye(4, 5)[codes] + 0.6 * rng.standard_normal((60, 5))
    is_labelled = rng.random(60) < 0.7
    suspects = audit_labels(V, codes, is_labelled)
    expected = slow_audit(V, codes, is_labelled)
    assert len(expected) > 2
    assert {s.row: s.elsewhere for s in suspects} == {i: best for i, (best, _) in expected.items()}
    for s in suspects:
        assert s.score == pytest.approx(expected[s.row][1])


def test_unlabelled_items_are_no_suspects(blobs):
    V, codes, is_labelled = blobs
    planted = codes.copy()
    planted[3] = 2  # not labelled
    assert audit_labels(V, planted, is_labelled) == []


def test_an_item_alone_in_its_category_is_not_judged():
    V = np.array([[0.0], [0.1], [0.2], [0.15]])
    codes = np.array([0, 0, 0, 1])
    assert audit_labels(V, codes, np.array([False, False, False, True])) == []


def test_nothing_to_audit():
    V = np.zeros((3, 2))
    assert audit_labels(V, np.array([0, 1, 1]), np.zeros(3, dtype=bool)) == []
    assert audit_labels(V, np.zeros(3, dtype=int), np.ones(3, dtype=bool)) == []


def test_near_duplicates_are_found(blobs):
    X, codes, _ = blobs
    labels = [f"c{c}" if i % 2 == 0 else None for i, c in enumerate(codes)]
    assert find_duplicates(X, codes, labels) == []
    X[1] = X[0] + 0.05 * (-1.0) ** np.arange(10)  # unlabelled, beside a labelled one
    X[3] = 2 * X[64]  # the same direction
    X[5] = X[7]  # both unlabelled
    pairs = find_duplicates(X, codes, labels)
    assert [(p.row, p.other, p.is_conflict, p.is_same_file) for p in pairs] == [
        (64, 3, True, False),  # conflicts first
        (0, 1, False, False),
    ]
    assert pairs[0].cosine == pytest.approx(1)
    assert 0.99 < pairs[1].cosine < 0.9999


def test_how_far_novel_items_are_does_not_count_for_what_is_near():
    rng = np.random.default_rng(1)
    codes = np.repeat([0, 1, 2], 40)
    X = 3 * np.eye(3, 12)[codes] + 0.3 * rng.standard_normal((120, 12))
    labels = ["a" if c == 0 and i % 2 else None for i, c in enumerate(codes)]
    assert find_duplicates(X, codes, labels) == []


def test_a_collection_of_copies_still_shows_them():
    rng = np.random.default_rng(0)
    half = rng.standard_normal((20, 8))
    near = half[0] + 0.05 * (-1.0) ** np.arange(8)
    X = np.vstack([half, half, near, rng.standard_normal((4, 8))])
    labels = ["a"] * 20 + [None] * 25
    pairs = find_duplicates(X, np.zeros(45, dtype=int), labels)
    copies = [(i, i + 20) for i in range(20)]
    assert [(p.row, p.other) for p in pairs] == [*copies, (0, 40)]


def test_equal_files_are_found_by_content(tmp_path):
    contents = [b"one", b"two", b"one", b"two", b"six", b"one", b"", b""]
    paths = [tmp_path / f"{i}" for i in range(len(contents) + 1)]
    for path, content in zip(paths, contents, strict=False):
        path.write_bytes(content)
    labels = [None, "a", "a", "b", None, None, "a", None, None]  # the last file is missing
    codes = np.array([0, 0, 0, 1, 0, 0, 0, 0, 0])
    X = np.random.default_rng(0).standard_normal((9, 6))
    same = [(p.row, p.other) for p in find_duplicates(X, codes, labels, paths) if p.is_same_file]
    assert sorted(same) == [(1, 3), (2, 0), (2, 5)]  # labelled first; no pair without a label
    assert find_duplicates(X, codes, labels, paths)[0].is_conflict  # one file, two labels


def test_without_features_files_are_still_compared(tmp_path):
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        path.write_bytes(b"same")
    pairs = find_duplicates(np.empty((2, 0)), np.zeros(2, dtype=int), ["x", None], paths)
    assert [(p.row, p.other) for p in pairs] == [(0, 1)]


def test_what_costs_too_much_is_sampled(blobs, monkeypatch):
    X, codes, _ = blobs
    X[1] = X[0]
    labels = [f"c{c}" if i % 2 == 0 else None for i, c in enumerate(codes)]
    monkeypatch.setattr(audit, "_MAX_PRODUCTS", 10 * 60 * 10)  # ten of sixty unlabelled rows
    asked = []
    blocks = audit._blocks
    monkeypatch.setattr(audit, "_blocks", lambda n, m: asked.append(n) or blocks(n, m))
    find_duplicates(X, codes, labels)
    assert asked == [10]


def test_blocks_cover_all_rows(monkeypatch):
    monkeypatch.setattr(audit, "_BLOCK_ROWS", 7)
    rows = np.concatenate([np.arange(20)[block] for block in audit._blocks(20, 3)])
    assert rows.tolist() == list(range(20))
