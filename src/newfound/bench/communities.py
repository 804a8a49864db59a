"""Communities of the neighbour graph, with known classes that are never merged or split.

Communities minimise the map equation (Rosvall and Bergstrom, 2008), the shortest description of a
random walk on the graph, as Infomap does. Infomap's package is under the AGPL, so the search is
written here anew: many nodes move at once, so that a step is a few operations on all edges. Weights
of edges are whole numbers, so sums are exact, and the same on every device.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

#: Rows whose neighbours are searched at once.
_CHUNK = 2048
#: A step that does not shorten the description is repeated with half as many nodes, down to this
#: share of them.
_LEAST_SHARE = 1 / 16
#: Rounds in which single nodes move again, after whole communities have merged.
_MAX_ROUNDS = 3
#: Moves end when no more than one node in this many would gain.
_LAST_NODES = 200


class Graph(NamedTuple):
    """An undirected graph.

    Attributes
    ----------
    n_nodes, n_known : int
        Number of nodes; the first `n_known` are the known classes.
    a, b : Tensor of int, shape (m,)
        Ends of each edge, in both directions; no edge from a node to itself.
    weight : Tensor of int, shape (m,)
        Weight of each edge.
    inner : Tensor of int, shape (n_nodes,)
        Weight inside a node, both directions together.
    """

    n_nodes: int
    n_known: int
    a: Tensor
    b: Tensor
    weight: Tensor
    inner: Tensor


def neighbour_graph(z: Tensor, n_neighbours: int) -> Graph:
    """The graph of nearest neighbours: weight 1 for each end that has the other as a neighbour.

    Parameters
    ----------
    z : Tensor of shape (n, d)
        Unit-length features.
    n_neighbours : int
        Number of neighbours of each row.
    """
    n, k = len(z), min(n_neighbours, len(z) - 1)
    rows, found = torch.arange(n, device=z.device), []
    for part in torch.split(rows, _CHUNK):
        cosines = z[part] @ z.T
        cosines.scatter_(1, part[:, None], -torch.inf)  # no row is its own neighbour
        found.append(cosines.topk(k, dim=1).indices)
    a, b = rows.repeat_interleave(k), torch.cat(found).flatten()
    ones = torch.ones(2 * n * k, dtype=torch.int64, device=z.device)
    empty = torch.zeros(n, dtype=torch.int64, device=z.device)
    return contract(Graph(n, 0, torch.cat([a, b]), torch.cat([b, a]), ones, empty), rows, n, 0)


def contract(graph: Graph, labels: Tensor, n_groups: int, n_known: int) -> Graph:
    """The graph whose nodes are groups of nodes. Edges between two known classes are left out.

    Parameters
    ----------
    graph : Graph
        Graph.
    labels : Tensor of int, shape (n_nodes,)
        Group of each node, known classes first.
    n_groups, n_known : int
        Number of groups, and of known classes among them.
    """
    keys, place = torch.unique(labels[graph.a] * n_groups + labels[graph.b], return_inverse=True)
    weight = torch.zeros_like(keys).index_add_(0, place, graph.weight)
    a, b = keys // n_groups, keys % n_groups
    inner = graph.weight.new_zeros(n_groups).index_add_(0, labels, graph.inner)
    inside = a == b
    inner = inner.index_add_(0, a[inside], weight[inside])
    kept = ~inside & ((a >= n_known) | (b >= n_known))
    return Graph(n_groups, n_known, a[kept], b[kept], weight[kept], inner)


def map_equation(graph: Graph, labels: Tensor) -> Tensor:
    """Length of the description of a step of a random walk, but for a constant, in nats.

    L = plogp(Σ qᵢ) - 2 Σ plogp(qᵢ) + Σ plogp(qᵢ + pᵢ), with the share pᵢ of the walk in community i
    and the share qᵢ of its steps that leave it. Left out is -Σ plogp(p_α) over nodes α.

    Parameters
    ----------
    graph : Graph
        Graph with at least one edge.
    labels : Tensor of int, shape (n_nodes,)
        Community of each node, a number below n_nodes.
    """
    q, p = _flows(graph, labels)
    return _plogp(q.sum()) - 2 * _plogp(q).sum() + _plogp(q + p).sum()


def _plogp(p: Tensor) -> Tensor:
    return torch.xlogy(p, p)


def _flows(graph: Graph, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The flows q and p of each community."""
    own = labels[graph.a]
    leaves = torch.where(own != labels[graph.b], graph.weight, 0)
    zeros = torch.zeros_like(graph.inner)
    total = (graph.weight.sum() + graph.inner.sum()).double()
    strength = zeros.index_add(0, own, graph.weight).index_add(0, labels, graph.inner)
    return zeros.index_add(0, own, leaves) / total, strength / total


def find_communities(graph: Graph, generator: torch.Generator) -> Tensor:
    """Communities of the graph; each known class is in a community of its own.

    Parameters
    ----------
    graph : Graph
        Graph with at least one edge.
    generator : Generator
        On the CPU; draws which nodes move.

    Returns
    -------
    Tensor of int, shape (n_nodes,)
        Community of each node, without gaps, known classes first.
    """
    labels = torch.arange(graph.n_nodes, device=graph.a.device)
    length = map_equation(graph, labels)
    for _ in range(_MAX_ROUNDS):
        moved = _merge(graph, _move_nodes(graph, labels, generator), generator)
        shorter = map_equation(graph, moved)
        if shorter >= length:
            break
        labels, length = moved, shorter
    return labels


def _merge(graph: Graph, labels: Tensor, generator: torch.Generator) -> Tensor:
    """Merge whole communities, level by level, until nothing changes."""
    while True:
        labels = torch.unique(labels, return_inverse=True)[1]
        n_groups = int(labels.max()) + 1
        coarse = contract(graph, labels, n_groups, graph.n_known)
        alone = torch.arange(n_groups, device=labels.device)
        merged = _move_nodes(coarse, alone, generator)
        if torch.equal(merged, alone):
            return labels
        labels = merged[labels]


def _move_nodes(graph: Graph, labels: Tensor, generator: torch.Generator) -> Tensor:
    """Move nodes to neighbouring communities for as long as that shortens the description.

    A random half of the nodes that gain moves at once; in one step to communities with a lower
    number, in the next to those with a higher one, so that two nodes do not change places.
    """
    length, share, idle, up = map_equation(graph, labels), 0.5, 0, False
    while idle < 2 and share >= _LEAST_SHARE:
        target, gains = _best_moves(graph, labels, up=up)
        up = not up
        if gains.sum() <= graph.n_nodes // _LAST_NODES:
            idle += 1
            continue
        drawn = torch.rand(graph.n_nodes, generator=generator).to(labels.device) < share
        moved = torch.where(gains & drawn, target, labels)
        shorter = map_equation(graph, moved)
        if shorter < length:
            labels, length, share, idle = moved, shorter, 0.5, 0
        else:
            share /= 2
    return labels


def _best_moves(graph: Graph, labels: Tensor, *, up: bool) -> tuple[Tensor, Tensor]:
    """The best community for each node to move to, and whether the description gets shorter."""
    n, total = graph.n_nodes, (graph.weight.sum() + graph.inner.sum()).double()
    keys, place = torch.unique(graph.a * n + labels[graph.b], return_inverse=True)
    weights = torch.zeros_like(keys).index_add_(0, place, graph.weight)
    node, there = keys // n, keys % n
    here = labels[node]
    to_here = torch.zeros_like(labels).index_add_(0, node, torch.where(here == there, weights, 0))
    outer = torch.zeros_like(labels).index_add_(0, graph.a, graph.weight)
    free = (node >= graph.n_known) & ((there > here) if up else (there < here))
    node, there, here, weights = node[free], there[free], here[free], weights[free]
    q, p = _flows(graph, labels)
    size, out = (outer + graph.inner)[node] / total, outer[node] / total
    q_here = q[here] - out + 2 * to_here[node] / total
    q_there = q[there] + out - 2 * weights / total
    q_sum = q.sum()
    change = _plogp((q_sum - q[here] - q[there] + q_here + q_there).clamp(min=0)) - _plogp(q_sum)
    for own, q_after, moved in ((here, q_here, -size), (there, q_there, size)):
        q_after = q_after.clamp(min=0)  # rounding
        change = change - 2 * (_plogp(q_after) - _plogp(q[own]))
        change = change + _plogp((q_after + p[own] + moved).clamp(min=0)) - _plogp(q[own] + p[own])
    best = torch.zeros(n, dtype=change.dtype, device=labels.device)
    best = best.scatter_reduce_(0, node, change, "amin")
    # of equally good communities the one with the lowest number
    chosen = (change == best[node]) & (change < -1e-12)
    target = torch.full_like(labels, n).scatter_reduce_(0, node[chosen], there[chosen], "amin")
    gains = target < n
    return torch.where(gains, target, labels), gains


def label_communities(z: Tensor, codes: Tensor, n_neighbours: int, seed: int) -> Tensor:
    """Communities of rows, in which labelled rows of a class stay together and classes apart.

    Parameters
    ----------
    z : Tensor of shape (n, d)
        Features, at least two rows.
    codes : Tensor of int, shape (n,)
        Known class of each row or -1.
    n_neighbours : int
        Number of neighbours of each row in the graph.
    seed : int
        Seed of the search.

    Returns
    -------
    Tensor of int, shape (n,)
        Community of each row, known classes first.
    """
    graph = neighbour_graph(functional.normalize(z.float(), dim=1), n_neighbours)
    n_known, free = int(codes.max()) + 1, codes < 0
    nodes = torch.where(free, n_known - 1 + free.cumsum(dim=0), codes)
    joined = contract(graph, nodes, n_known + int(free.sum()), n_known)
    found = find_communities(joined, torch.Generator().manual_seed(seed))
    return found[nodes]
