"""Each loss against a loop over pairs that is read off its equation."""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from newfound.deep.losses import (
    contrastive_loss,
    pcl_weight,
    prototype_loss,
    shares_of_other_view,
    size_loss,
    supervised_contrastive_loss,
)


def unit_rows(n_rows, n_columns, seed):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(n_rows, n_columns, generator=generator, dtype=torch.float64)
    return normalize(rows, dim=1).requires_grad_()


def two_views(n_rows, seed=0, n_columns=5):
    return unit_rows(n_rows, n_columns, seed), unit_rows(n_rows, n_columns, seed + 1)


@torch.no_grad()
def slow_contrastive(z_a, z_b, temperature):
    total = 0.0
    for i in range(len(z_a)):
        exps = [math.exp(float(z_a[i] @ z_b[j]) / temperature) for j in range(len(z_b))]
        total += -math.log(exps[i] / sum(exps))
    return total / len(z_a)


@torch.no_grad()
def slow_prototype(v, prototypes, assigned, temperature):
    n_prototypes = len(prototypes)
    taus = np.broadcast_to(np.asarray(temperature), n_prototypes)
    total = 0.0
    for i in range(len(v)):
        exps = [math.exp(float(v[i] @ prototypes[j]) / taus[j]) for j in range(n_prototypes)]
        total += -math.log(exps[assigned[i]] / sum(exps))
    return total / len(v)


@torch.no_grad()
def slow_shares(v, prototypes, temperature):
    """softmax(v·μ/τ), row by row."""
    rows = []
    for row in v:
        exps = [math.exp(float(row @ mu) / temperature) for mu in prototypes]
        rows.append([value / sum(exps) for value in exps])
    return rows


@torch.no_grad()
def slow_size(v, prototypes, excess, is_free, temperature):
    rows = [
        p for p, free in zip(slow_shares(v, prototypes, temperature), is_free, strict=True) if free
    ]
    total = 0.0
    for k in range(len(prototypes) if rows else 0):
        total += sum(p[k] for p in rows) / len(rows) * float(excess[k])
    return total


@torch.no_grad()
def slow_supervised(z_a, z_b, labels, temperature):
    views = [
        (row, view, z[row])
        for view, z in enumerate((z_a, z_b))
        for row in range(len(labels))
        if labels[row] >= 0
    ]
    total = 0.0
    for row, view, z in views:
        others = [other for other in views if other[:2] != (row, view)]
        below = sum(math.exp(float(z @ other) / temperature) for _, _, other in others)
        logs = [
            math.log(math.exp(float(z @ other) / temperature) / below)
            for other_row, _, other in others
            if labels[other_row] == labels[row]
        ]
        total += -sum(logs) / len(logs)
    return total / len(views) if views else 0.0


def finite_gradients(loss, *inputs):
    assert loss.shape == ()
    assert torch.isfinite(loss)
    gradients = torch.autograd.grad(loss, inputs)
    assert all(torch.isfinite(gradient).all() for gradient in gradients)
    return gradients


@pytest.mark.parametrize("n_rows", [1, 2, 7])
@pytest.mark.parametrize("temperature", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("seed", [0, 2])
def test_contrastive_loss_is_eq_1(n_rows, temperature, seed):
    z_a, z_b = two_views(n_rows, seed)
    expected = slow_contrastive(z_a, z_b, temperature)
    assert contrastive_loss(z_a, z_b, temperature).item() == pytest.approx(expected, abs=1e-12)


def test_contrastive_loss_by_hand():
    z = torch.eye(2, dtype=torch.float64)  # e against e + 1
    assert contrastive_loss(z, z, 1.0).item() == pytest.approx(math.log(1 + math.exp(-1)))


@pytest.mark.parametrize("n_prototypes", [1, 2, 6])
@pytest.mark.parametrize("temperature", [0.1, 1.0, "each"])
@pytest.mark.parametrize("seed", [0, 2])
def test_prototype_loss_is_eq_2(n_prototypes, temperature, seed):
    v, prototypes = unit_rows(8, 5, seed), unit_rows(n_prototypes, 5, seed + 1)
    assigned = torch.from_numpy(np.random.default_rng(seed).integers(n_prototypes, size=8))
    if temperature == "each":
        temperature = torch.linspace(0.1, 2, n_prototypes, dtype=torch.float64)
    expected = slow_prototype(v, prototypes, assigned, temperature)
    loss = prototype_loss(v, prototypes, assigned, temperature)
    assert loss.item() == pytest.approx(expected, abs=1e-12)


def test_one_temperature_is_the_same_one_for_each_prototype():
    v, prototypes, assigned = unit_rows(8, 5, 0), unit_rows(3, 5, 1), torch.arange(8) % 3
    each = torch.full((3,), 0.3, dtype=torch.float64)
    one = prototype_loss(v, prototypes, assigned, 0.3)
    torch.testing.assert_close(prototype_loss(v, prototypes, assigned, each), one)


@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_prototype_loss_of_shares_is_their_cross_entropy(temperature):
    v, prototypes = unit_rows(8, 5, 0), unit_rows(4, 5, 1)
    shares = torch.rand(8, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    shares /= shares.sum(dim=1, keepdim=True)
    expected = sum(
        float(shares[i, k]) * slow_prototype(v[i : i + 1], prototypes, [k], temperature) / 8
        for i in range(8)
        for k in range(4)
    )
    loss = prototype_loss(v, prototypes, shares, temperature)
    assert loss.item() == pytest.approx(expected, abs=1e-12)


def test_all_of_a_row_in_one_prototype_is_its_number():
    v, prototypes, assigned = unit_rows(8, 5, 0), unit_rows(3, 5, 1), torch.arange(8) % 3
    shares = torch.eye(3, dtype=torch.float64)[assigned]
    torch.testing.assert_close(
        prototype_loss(v, prototypes, shares, 0.2), prototype_loss(v, prototypes, assigned, 0.2)
    )


# --- shares of the other view

FREE = {
    "some": [True, False, True, True, False],
    "all": [True] * 5,
    "none": [False] * 5,
}


@pytest.mark.parametrize("is_free", FREE.values(), ids=FREE)
@pytest.mark.parametrize("temperature", [0.05, 0.3])
@pytest.mark.parametrize("n_prototypes", [1, 2, 4])
def test_unlabelled_rows_have_the_shares_of_their_other_view(is_free, temperature, n_prototypes):
    v, prototypes = unit_rows(10, 6, 0), unit_rows(n_prototypes, 6, 1)
    assigned = [k % n_prototypes for k in (3, 1, 0, 2, 2)]
    slow = slow_shares(v, prototypes, temperature)
    expected = []
    for view in range(2):
        for i in range(5):
            of_class = [float(k == assigned[i]) for k in range(n_prototypes)]
            expected.append(slow[i + 5 * (1 - view)] if is_free[i] else of_class)
    found = shares_of_other_view(
        v, prototypes, torch.tensor(assigned), torch.tensor(is_free), temperature
    )
    assert found.dtype == v.dtype
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)
    np.testing.assert_allclose(found.sum(dim=1).numpy(), 1)


def test_views_that_change_places_change_those_of_the_shares():
    v, prototypes = unit_rows(10, 6, 0), unit_rows(4, 6, 1)
    given = torch.tensor([3, 1, 0, 2, 2]), torch.tensor(FREE["some"]), 0.1
    found = shares_of_other_view(v, prototypes, *given)
    swapped = shares_of_other_view(v.roll(5, dims=0), prototypes, *given)
    torch.testing.assert_close(swapped, found.roll(5, dims=0))
    assert not torch.allclose(swapped, found)


def test_the_component_of_an_unlabelled_row_has_no_say_in_its_shares():
    v, prototypes, is_free = unit_rows(10, 6, 0), unit_rows(4, 6, 1), torch.tensor(FREE["some"])
    one, other = torch.tensor([3, 1, 0, 2, 2]), torch.tensor([0, 1, 3, 1, 2])
    assert torch.equal(
        shares_of_other_view(v, prototypes, one, is_free, 0.1),
        shares_of_other_view(v, prototypes, other, is_free, 0.1),
    )


def test_no_gradient_goes_through_the_shares():
    v, prototypes = unit_rows(10, 6, 0), unit_rows(4, 6, 1)
    assigned, is_free = torch.tensor([3, 1, 0, 2, 2]), torch.tensor(FREE["some"])
    shares = shares_of_other_view(v, prototypes, assigned, is_free, 0.1)
    assert not shares.requires_grad
    loss = prototype_loss(v, prototypes, shares, 0.2)
    given = prototype_loss(v, prototypes, shares.clone(), 0.2)  # as if they were numbers
    for gradient, other in zip(
        finite_gradients(loss, v, prototypes), finite_gradients(given, v, prototypes), strict=True
    ):
        assert torch.equal(gradient, other)


# --- sizes


def some_excess(n_prototypes):
    return torch.linspace(-1, 2, n_prototypes, dtype=torch.float64)


@pytest.mark.parametrize("is_free", FREE.values(), ids=FREE)
@pytest.mark.parametrize("temperature", [0.1, 1.0])
@pytest.mark.parametrize("n_prototypes", [1, 2, 4])
def test_size_loss_is_the_mean_of_the_excess(is_free, temperature, n_prototypes):
    v, prototypes, excess = (
        unit_rows(5, 6, 0),
        unit_rows(n_prototypes, 6, 1),
        some_excess(n_prototypes),
    )
    expected = slow_size(v, prototypes, excess, is_free, temperature)
    loss = size_loss(v, prototypes, excess, torch.tensor(is_free), temperature)
    assert loss.item() == pytest.approx(expected, abs=1e-12)


def test_over_all_rows_the_gradient_is_that_of_the_divergence():
    v, prototypes = unit_rows(7, 6, 0), unit_rows(3, 6, 1)
    is_free, expected = torch.ones(7, dtype=torch.bool), torch.tensor([0.5, 0.3, 0.2]).double()
    shares = (v @ prototypes.T / 0.2).softmax(dim=1).mean(dim=0)
    divergence = (shares * (shares / expected).log()).sum()
    (whole,) = torch.autograd.grad(divergence, v, retain_graph=True)
    excess = (shares / expected).log().detach()
    (gradient,) = torch.autograd.grad(size_loss(v, prototypes, excess, is_free, 0.2), v)
    torch.testing.assert_close(gradient, whole)


def test_over_batches_the_mean_gradient_is_that_over_all_rows():
    v, prototypes, excess = unit_rows(12, 6, 0), unit_rows(3, 6, 1), some_excess(3)
    (whole,) = torch.autograd.grad(
        size_loss(v, prototypes, excess, torch.ones(12, dtype=torch.bool), 0.2), v
    )
    batches = sum(
        size_loss(rows, prototypes, excess, torch.ones(3, dtype=torch.bool), 0.2)
        for rows in v.split(3)
    )
    (gradient,) = torch.autograd.grad(batches / 4, v)
    torch.testing.assert_close(gradient, whole)


def test_a_step_down_the_size_loss_goes_to_the_component_that_has_too_little():
    v, prototypes = unit_rows(6, 4, 0), torch.eye(4, dtype=torch.float64)[:2]
    is_free, excess = torch.ones(6, dtype=torch.bool), torch.tensor([1.5, -0.5]).double()
    (gradient,) = torch.autograd.grad(size_loss(v, prototypes, excess, is_free, 0.5), v)
    assert (gradient[:, 0] > 0).all()
    assert (gradient[:, 1] < 0).all()


def test_labelled_rows_have_no_say_in_the_sizes():
    v, prototypes, excess = unit_rows(5, 6, 0), unit_rows(3, 6, 1), some_excess(3)
    is_free = torch.tensor(FREE["some"])
    loss = size_loss(v, prototypes, excess, is_free, 0.1)
    alone = size_loss(v[is_free], prototypes, excess, torch.ones(3, dtype=torch.bool), 0.1)
    torch.testing.assert_close(loss, alone)
    (gradient,) = torch.autograd.grad(loss, v)
    assert (gradient[~is_free] == 0).all()
    assert (gradient[is_free] != 0).any()


def test_without_an_unlabelled_row_there_is_no_size_loss():
    v, prototypes = unit_rows(5, 6, 0), unit_rows(3, 6, 1)
    loss = size_loss(v, prototypes, some_excess(3), torch.zeros(5, dtype=torch.bool), 0.1)
    assert loss == 0
    for gradient in torch.autograd.grad(loss, (v, prototypes)):
        assert (gradient == 0).all()


@pytest.mark.parametrize("temperature", [0.005, 0.01, 0.1])
@pytest.mark.parametrize("n_prototypes", [1, 3])
def test_size_gradients_are_finite(temperature, n_prototypes):
    v, prototypes = unit_rows(5, 6, 0), unit_rows(n_prototypes, 6, 1)
    is_free, excess = torch.tensor(FREE["some"]), some_excess(n_prototypes).float()
    loss = size_loss(v.float(), prototypes.float(), excess, is_free, temperature)
    finite_gradients(loss, v, prototypes)


# --- the supervised loss


@pytest.mark.parametrize(
    "labels",
    [
        [0, 0, 0, 0],
        [0, 1, 2, 3],
        [2, 0, 2, 1, 0, 2],
        [-1, 0, 1, 0, -1, 5],
        [-1, -1, 3],
        [0],
        [-1, -1],
    ],
)
@pytest.mark.parametrize("temperature", [0.07, 1.0])
def test_supervised_contrastive_loss_is_khoslas(labels, temperature):
    z_a, z_b = two_views(len(labels))
    expected = slow_supervised(z_a, z_b, labels, temperature)
    loss = supervised_contrastive_loss(z_a, z_b, torch.tensor(labels), temperature)
    assert loss.item() == pytest.approx(expected, abs=1e-12)


def test_the_supervised_loss_does_not_look_at_unlabelled_rows():
    z_a, z_b = two_views(6)
    labels = torch.tensor([0, -1, 1, 0, -1, 1])
    loss = supervised_contrastive_loss(z_a, z_b, labels, 0.1)
    labelled = labels >= 0
    alone = supervised_contrastive_loss(z_a[labelled], z_b[labelled], labels[labelled], 0.1)
    torch.testing.assert_close(loss, alone)
    for gradient in torch.autograd.grad(loss, (z_a, z_b)):
        assert (gradient[~labelled] == 0).all()
        assert (gradient[labelled] != 0).any()


def test_the_order_of_rows_and_the_names_of_classes_do_not_matter():
    z_a, z_b = two_views(7)
    labels = torch.tensor([0, 1, 0, -1, 2, 2, 1])
    order = torch.tensor([3, 6, 0, 5, 1, 4, 2])
    renamed = torch.tensor([5, 0, 9, -1])[labels]
    torch.testing.assert_close(
        contrastive_loss(z_a[order], z_b[order], 0.2), contrastive_loss(z_a, z_b, 0.2)
    )
    torch.testing.assert_close(
        supervised_contrastive_loss(z_a[order], z_b[order], renamed[order], 0.2),
        supervised_contrastive_loss(z_a, z_b, labels, 0.2),
    )


def test_numbering_the_prototypes_otherwise_changes_nothing():
    v, prototypes, assigned = unit_rows(8, 5, 0), unit_rows(4, 5, 1), torch.arange(8) % 4
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(
        prototype_loss(v, prototypes[order], order.argsort()[assigned], 0.2),
        prototype_loss(v, prototypes, assigned, 0.2),
    )


@pytest.mark.parametrize("temperature", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("n_rows", [1, 4])
@pytest.mark.parametrize("identical", [False, True])
def test_contrastive_gradients_are_finite(n_rows, identical, temperature):
    z_a, z_b = two_views(n_rows)
    if identical:
        z_b = z_a
    loss = contrastive_loss(z_a.float(), z_b.float(), temperature)
    finite_gradients(loss, z_a, z_b)
    if n_rows == 1:
        assert loss == 0


@pytest.mark.parametrize("n_prototypes", [1, 3])
def test_prototype_gradients_are_finite(n_prototypes):
    v, prototypes = unit_rows(6, 5, 0), unit_rows(n_prototypes, 5, 1)
    loss = prototype_loss(v.float(), prototypes.float(), torch.arange(6) % n_prototypes, 0.01)
    gradients = finite_gradients(loss, v, prototypes)
    if n_prototypes == 1:
        assert loss == 0
        assert all((gradient == 0).all() for gradient in gradients)


@pytest.mark.parametrize("labels", [[-1, -1, -1, -1], [0, -1, -1, -1], [0, 1, 2, -1], [0, 0, 0, 0]])
@pytest.mark.parametrize("identical", [False, True])
def test_supervised_gradients_are_finite(labels, identical):
    z_a, z_b = two_views(4)
    if identical:
        z_b = z_a
    loss = supervised_contrastive_loss(z_a.float(), z_b.float(), torch.tensor(labels), 0.01)
    finite_gradients(loss, z_a, z_b)


def test_without_a_labelled_row_there_is_no_supervised_loss():
    z_a, z_b = two_views(3)
    loss = supervised_contrastive_loss(z_a, z_b, torch.full((3,), -1), 0.1)
    assert loss == 0
    for gradient in torch.autograd.grad(loss, (z_a, z_b)):
        assert (gradient == 0).all()


def test_the_weight_of_the_prototypical_loss_rises_to_1():
    assert [pcl_weight(t, 4) for t in range(7)] == [0, 0.25, 0.5, 0.75, 1, 1, 1]
    assert pcl_weight(10) == 0.5  # T = 20
    assert pcl_weight(0, 0) == 1
