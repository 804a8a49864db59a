"""Sinkhorn's plan against plain scalings, and the partition that is made of it."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import adjusted_rand_score

from newfound.deep.partition import Clusters
from newfound.deep.prototypes import prototypes_from
from newfound.deep.settings import EStepSettings
from newfound.deep.sized_partition import fit_expected_sizes, transport_plan
from newfound.mixture.assignment import nearest_labels, prototypes_of
from newfound.mixture.projection import unit_rows
from newfound.mixture.sizes import expected_sizes

CPU = torch.device("cpu")
TAU = 0.1  # of the prototypical loss


def slow_transport(cost, sizes, softness, n_scalings=10):
    """Rows and columns of exp(-cost/ε) are scaled by turns, number by number."""
    n_rows, n_columns = len(cost), len(sizes)
    plan = [[math.exp(-float(c) / softness) for c in row] for row in cost]
    for _ in range(n_scalings):
        for i in range(n_rows):
            total = sum(plan[i])
            plan[i] = [value / total for value in plan[i]]
        for j in range(n_columns):
            total = sum(plan[i][j] for i in range(n_rows))
            for i in range(n_rows):
                plan[i][j] *= float(sizes[j]) / total
    return np.array(plan)


def plan_of(cost, sizes, softness, n_rows=None):
    """The plan in one piece, from chunks of so many rows."""
    chunks = cost.split(n_rows or len(cost))
    return torch.cat(list(transport_plan(lambda: chunks, sizes, softness)))


def some_cost(n_rows=30, n_columns=4, seed=0):
    return 2 * np.random.default_rng(seed).random((n_rows, n_columns))


@pytest.mark.parametrize("softness", [0.04, 0.3])
@pytest.mark.parametrize("sizes", [[7.5, 7.5, 7.5, 7.5], [20.0, 6.0, 3.0, 1.0]])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_plan_is_that_of_plain_scalings(softness, sizes, seed):
    cost = some_cost(seed=seed)
    given = torch.from_numpy(cost), torch.tensor(sizes, dtype=torch.float64)
    plan = plan_of(*given, softness).numpy()
    np.testing.assert_allclose(plan, slow_transport(cost, sizes, softness), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(plan.sum(axis=0), sizes, rtol=1e-12)
    single = plan_of(*(values.float() for values in given), softness).numpy()
    np.testing.assert_allclose(single, plan, atol=1e-4)
    np.testing.assert_allclose(single.sum(axis=0), sizes, rtol=1e-4)


@pytest.mark.parametrize("sizes", [[75.0, 75.0, 75.0, 75.0], [200.0, 60.0, 30.0, 10.0]])
def test_rows_sum_to_all_but_1(sizes):
    plan = plan_of(torch.from_numpy(some_cost(300)), torch.tensor(sizes).double(), 0.3)
    np.testing.assert_allclose(plan.sum(dim=1).numpy(), 1, atol=5e-3)
    assert (plan > 0).all()


def test_what_costs_a_row_or_a_column_the_same_everywhere_changes_nothing():
    rng = np.random.default_rng(0)
    cost, sizes = some_cost(), torch.tensor([12.0, 9.0, 6.0, 3.0]).double()
    shifted = cost + rng.random((30, 1))
    plan, other = (plan_of(torch.from_numpy(c), sizes, 0.1) for c in (cost, shifted))
    torch.testing.assert_close(plan, other)


def test_far_columns_get_their_rows_without_overflow():
    cost = torch.tensor([[0.0, 4.0]]).repeat(10, 1)  # e^-400 in the second column
    plan = plan_of(cost, torch.tensor([7.0, 3.0]), 0.01)
    torch.testing.assert_close(plan, torch.tensor([[0.7, 0.3]]).repeat(10, 1))


@pytest.mark.parametrize("n_rows", [1, 7, 29])
def test_the_plan_of_chunks_is_that_of_the_whole(n_rows):
    given = torch.from_numpy(some_cost()), torch.tensor([20.0, 6.0, 3.0, 1.0]).double(), 0.04
    torch.testing.assert_close(plan_of(*given, n_rows), plan_of(*given), rtol=1e-10, atol=0)


# --- the partition


def clusters_of(V, codes, labels, prototypes=None):
    n_known = int(codes.max()) + 1
    if prototypes is None:
        prototypes = prototypes_of(V, codes, labels, n_known)
    return Clusters(labels, n_known, V, prototypes.astype(np.float64), None)


class Four:
    """Four classes of 60 rows, two of them known by 20 labels each."""

    rng = np.random.default_rng(5)
    truth = np.repeat(np.arange(4), 60)
    V = unit_rows(np.eye(4, 6)[truth] + 0.2 * rng.normal(size=(240, 6))).astype(np.float32)
    codes = np.where((truth < 2) & (np.arange(240) % 3 == 0), truth, -1)
    # two novel classes as one, and a component of five rows in the midst of a known class
    labels = np.where(truth == 3, 2, truth)
    labels[np.flatnonzero((truth == 0) & (codes == -1))[:5]] = 3


def unequal(codes=Four.codes, labels=Four.labels):
    return clusters_of(Four.V, codes, labels)


def sizes_of(clusters, codes):
    return np.bincount(clusters.labels[codes == -1], minlength=clusters.n_components)


def test_sizes_come_near_those_to_be_expected():
    before = unequal()
    after = fit_expected_sizes(before, Four.codes, CPU)
    expected = expected_sizes(Four.codes, before.labels, 4)
    np.testing.assert_allclose(expected, [40, 40, 60, 60])
    np.testing.assert_array_equal(after.sizes, expected)
    np.testing.assert_array_equal(sizes_of(before, Four.codes), [35, 40, 120, 5])
    assert np.abs(sizes_of(after, Four.codes) - expected).max() <= 2
    assert adjusted_rand_score(Four.truth, after.labels) > 0.98


def test_nearest_prototypes_alone_would_not_have_come_there():
    """So that the test above is one of the plan."""
    labels = nearest_labels(Four.V, Four.codes, Four.labels, 2, 100)
    assert adjusted_rand_score(Four.truth, labels) < 0.8


def test_a_plan_and_its_prototypes_by_turns():
    before = unequal()
    after = fit_expected_sizes(before, Four.codes, CPU)
    free = Four.codes == -1
    V, prototypes = Four.V[free].astype(np.float64), before.prototypes.copy()
    for _ in range(8):
        cost = ((V[:, None] - prototypes) ** 2).sum(axis=2)
        plan = slow_transport(cost, after.sizes, 0.04)
        for novel in (2, 3):
            prototypes[novel] = np.average(V, axis=0, weights=plan[:, novel])
    np.testing.assert_allclose(after.prototypes, prototypes, atol=1e-4)
    np.testing.assert_array_equal(after.prototypes[:2], before.prototypes[:2].astype(np.float32))
    np.testing.assert_array_equal(after.labels[free], plan.argmax(axis=1))


@pytest.mark.parametrize("n_entries", [1, 28, 797])  # 1, 7 and 199 of 200 rows at a time
def test_rows_are_dealt_in_chunks(n_entries, monkeypatch):
    whole = fit_expected_sizes(unequal(), Four.codes, CPU)
    monkeypatch.setattr("newfound.deep.sized_partition._CHUNK_ENTRIES", n_entries)
    chunked = fit_expected_sizes(unequal(), Four.codes, CPU)
    np.testing.assert_array_equal(chunked.labels, whole.labels)
    np.testing.assert_allclose(chunked.prototypes, whole.prototypes, atol=1e-6)


def test_labelled_rows_never_move():
    codes = Four.codes.copy()
    far = np.flatnonzero(codes == 0)[:3]
    codes[far] = 1  # in the midst of another class
    before = unequal(codes, np.where(codes >= 0, codes, Four.labels))
    after = fit_expected_sizes(before, codes, CPU)
    labelled = codes >= 0
    np.testing.assert_array_equal(after.labels[labelled], codes[labelled])
    assert (after.labels != before.labels).any()


def test_what_was_given_stays_as_it_was():
    before = unequal()
    kept = replace(
        before, labels=before.labels.copy(), V=before.V.copy(), prototypes=before.prototypes.copy()
    )
    codes = Four.codes.copy()
    fit_expected_sizes(before, codes, CPU)
    for name in ("labels", "V", "prototypes"):
        np.testing.assert_array_equal(getattr(before, name), getattr(kept, name))
    np.testing.assert_array_equal(codes, Four.codes)
    assert before.sizes is None


def test_where_a_component_would_be_left_without_rows_the_partition_stays():
    truth = np.repeat([0, 1, 2], [80, 20, 60])
    V = unit_rows(np.eye(3)[truth] + 0.1 * np.random.default_rng(0).normal(size=(160, 3)))
    codes = np.full(160, -1)
    codes[:40], codes[80:90] = 0, 1  # a long tail, so that of two novel ones one is the smaller
    labels = truth.copy()
    labels[-10:] = 3
    means = np.eye(3)[[0, 1, 2, 2]]  # both in one place: every row is more of the larger
    before = clusters_of(V.astype(np.float32), codes, labels, means)
    after = fit_expected_sizes(before, codes, CPU)
    assert after.labels is before.labels
    assert after.prototypes is before.prototypes
    np.testing.assert_array_equal(before.prototypes, means)
    np.testing.assert_array_equal(after.sizes, expected_sizes(codes, labels, 4))


def test_without_a_known_class_nothing_is_to_be_expected():
    codes = np.full(240, -1)
    before = clusters_of(Four.V, codes, Four.labels)
    assert fit_expected_sizes(before, codes, CPU) is before


def test_with_every_row_labelled_nothing_is_to_be_moved():
    before = clusters_of(Four.V, Four.truth, Four.truth)
    assert fit_expected_sizes(before, Four.truth, CPU) is before


def test_the_order_of_rows_does_not_matter():
    order = np.random.default_rng(1).permutation(240)
    after = fit_expected_sizes(unequal(), Four.codes, CPU)
    shuffled = clusters_of(Four.V[order], Four.codes[order], Four.labels[order])
    again = fit_expected_sizes(shuffled, Four.codes[order], CPU)
    np.testing.assert_array_equal(again.labels, after.labels[order])
    np.testing.assert_allclose(again.prototypes, after.prototypes, atol=1e-5)


def test_prototypes_know_how_much_too_large_each_component_is():
    settings, z = EStepSettings(pca="off"), torch.from_numpy(Four.V)
    after = fit_expected_sizes(unequal(), Four.codes, CPU)
    prototypes = prototypes_from(z, Four.codes, after, None, settings, TAU).to(CPU)
    free = z[torch.from_numpy(Four.codes == -1)].float()
    shares = (free @ prototypes.means.T / TAU).softmax(dim=1)
    expected = (shares.mean(dim=0) / torch.tensor([0.2, 0.2, 0.3, 0.3])).log()
    torch.testing.assert_close(prototypes.excess, expected, atol=1e-5, rtol=1e-5)
    assert expected.abs().max() > 1e-3
    without = prototypes_from(z, Four.codes, unequal(), None, settings, TAU).to(CPU)
    assert without.excess is None


def test_the_excess_is_added_up_in_chunks(monkeypatch):
    z, after = torch.from_numpy(Four.V), fit_expected_sizes(unequal(), Four.codes, CPU)
    given = (z, Four.codes, after, None, EStepSettings(pca="off"), TAU)
    whole = prototypes_from(*given).excess
    monkeypatch.setattr("newfound.deep.prototypes._CHUNK", 7)
    torch.testing.assert_close(prototypes_from(*given).excess, whole)
