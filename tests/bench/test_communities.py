"""Communities: the map equation and its moves against loops, and what labels forbid."""

import math

import numpy as np
import pytest
import torch

from newfound.bench.communities import (
    Graph,
    _best_moves,
    contract,
    find_communities,
    label_communities,
    map_equation,
    neighbour_graph,
)


def some_graph(n_nodes=9, n_edges=16, seed=0, n_known=0):
    """A random graph with weights, and with something inside the nodes."""
    rng = np.random.default_rng(seed)
    pairs = {tuple(sorted(rng.choice(n_nodes, 2, replace=False))) for _ in range(n_edges)}
    pairs = [(int(a), int(b)) for a, b in pairs if b >= n_known or a >= n_known]
    weights = [int(rng.integers(1, 4)) for _ in pairs]
    a, b = zip(*pairs, strict=True)
    inner = torch.from_numpy(2 * rng.integers(0, 2, size=n_nodes))
    return Graph(
        n_nodes, n_known, torch.tensor(a + b), torch.tensor(b + a), torch.tensor(2 * weights), inner
    )


def slow_length(graph, labels):
    """The map equation, edge by edge."""
    labels = list(labels)
    total = int(graph.weight.sum() + graph.inner.sum())
    leaves, inside = dict.fromkeys(labels, 0.0), dict.fromkeys(labels, 0.0)
    for a, b, weight in zip(*(part.tolist() for part in graph[2:5]), strict=True):
        inside[labels[a]] += weight / total
        if labels[a] != labels[b]:
            leaves[labels[a]] += weight / total
    for node, weight in enumerate(graph.inner.tolist()):
        inside[labels[node]] += weight / total

    def plogp(p):
        return p * math.log(p) if p > 0 else 0.0

    length = plogp(sum(leaves.values())) - 2 * sum(plogp(q) for q in leaves.values())
    return length + sum(plogp(leaves[c] + inside[c]) for c in leaves)


@pytest.mark.parametrize("seed", range(4))
def test_the_length_is_that_of_the_map_equation(seed):
    graph = some_graph(seed=seed)
    labels = torch.from_numpy(np.random.default_rng(seed).integers(0, 4, size=9))
    assert map_equation(graph, labels).item() == pytest.approx(slow_length(graph, labels.tolist()))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("up", [False, True])
def test_each_node_takes_the_move_that_helps_most(seed, up):
    graph = some_graph(seed=seed, n_known=2)
    labels = np.random.default_rng(seed).integers(2, 5, size=9)
    labels[:2] = 0, 1
    target, gains = _best_moves(graph, torch.from_numpy(labels), up=up)
    now = slow_length(graph, labels.tolist())
    for node in range(9):
        near = labels[graph.b[graph.a == node].numpy()]
        lengths = {}
        for there in sorted({int(c) for c in near if (c > labels[node]) == up} - {labels[node]}):
            moved = labels.copy()
            moved[node] = there
            lengths[there] = slow_length(graph, moved.tolist())
        helps = node >= 2 and bool(lengths) and min(lengths.values()) < now - 1e-12
        assert bool(gains[node]) == helps
        if helps:
            assert lengths[int(target[node])] == pytest.approx(min(lengths.values()))
        else:
            assert target[node] == labels[node]


def test_groups_as_nodes_have_the_same_length():
    graph = some_graph()
    groups = torch.tensor([0, 0, 1, 2, 2, 3, 3, 3, 4])
    coarse = contract(graph, groups, 5, 0)
    labels = torch.tensor([0, 1, 1, 0, 2])
    assert torch.isclose(map_equation(coarse, labels), map_equation(graph, labels[groups]))


def partitions(n_nodes):
    """All partitions of a few nodes."""
    if n_nodes == 0:
        yield []
        return
    for rest in partitions(n_nodes - 1):
        for label in range(max(rest, default=-1) + 2):
            yield [*rest, label]


@pytest.mark.parametrize("seed", range(3))
def test_of_a_few_starts_one_finds_the_best_of_all_partitions(seed):
    graph = some_graph(8, 11, seed)
    best = min(slow_length(graph, labels) for labels in partitions(8))
    starts = [find_communities(graph, torch.Generator().manual_seed(i)) for i in range(3)]
    found = min(slow_length(graph, labels.tolist()) for labels in starts)
    assert found == pytest.approx(best)


def test_the_graph_has_each_neighbour_once_and_mutual_ones_twice():
    z = torch.nn.functional.normalize(
        torch.randn(30, 4, generator=torch.Generator().manual_seed(0)), dim=1
    )
    graph = neighbour_graph(z, 3)
    expected = {}
    for i, row in enumerate((z @ z.T).tolist()):
        others = [j for j in sorted(range(30), key=lambda j: -row[j]) if j != i]
        for j in others[:3]:
            expected[i, j] = expected.get((i, j), 0) + 1
            expected[j, i] = expected.get((j, i), 0) + 1
    pairs = zip(graph.a.tolist(), graph.b.tolist(), strict=True)
    assert dict(zip(pairs, graph.weight.tolist(), strict=True)) == expected


@pytest.fixture(scope="module")
def blobs():
    """Six classes of 30 rows."""
    truth = np.repeat(np.arange(6), 30)
    noise = 0.2 * np.random.default_rng(0).normal(size=(180, 8))
    return torch.from_numpy(np.eye(8)[truth] + noise), torch.from_numpy(truth)


def test_communities_are_the_classes(blobs):
    X, truth = blobs
    found = label_communities(X, torch.full((180,), -1), 12, 0)
    assert (found[:, None] == found).equal(truth[:, None] == truth)


def test_labels_join_and_part_rows_and_known_classes_come_first(blobs):
    X, _ = blobs
    # one class is labelled as two, and two classes as one
    codes = torch.full((180,), -1)
    codes[:10], codes[20:30], codes[30:40], codes[60:70] = 0, 1, 2, 2
    found = label_communities(X, codes, 12, 0)
    assert (found[codes >= 0] == codes[codes >= 0]).all()
    assert set(found[:30].tolist()) == {0, 1}
    assert (found[30:90] == 2).float().mean() > 0.9
    assert sorted(set(found.tolist())) == list(range(6))
    assert (found == label_communities(X, codes, 12, 0)).all()


def test_two_rows_are_enough():
    found = label_communities(torch.eye(2), torch.tensor([0, -1]), 5, 0)
    assert found.tolist() in ([0, 0], [0, 1])
    assert label_communities(torch.eye(2), torch.tensor([0, 1]), 5, 0).tolist() == [0, 1]
