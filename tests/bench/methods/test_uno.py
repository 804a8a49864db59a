"""UNO+: its plan and its loss against loops over rows, and that it learns."""

import math
from typing import NamedTuple

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from newfound.bench.methods import find_method
from newfound.bench.methods.uno import UNO, UNOLearner, deal_evenly, swapped_prediction
from newfound.deep.checkpoint import LAST, load_checkpoint
from newfound.deep.method import Batch
from newfound.deep.settings import Settings
from newfound.metrics import discovery_scores
from newfound.workflows.demo import DIGITS

torch.set_num_threads(1)

N_KNOWN = 4
N_HEADS = 4


class Pictures(NamedTuple):
    """Pictures of six digits, of which four are known."""

    pixels: np.ndarray
    truth: np.ndarray
    y: np.ndarray


@pytest.fixture(scope="module")
def digits():
    X, truth = load_digits(return_X_y=True)
    rows = np.sort(np.concatenate([np.flatnonzero(truth == digit)[:60] for digit in range(6)]))
    X, truth = X[rows], truth[rows]
    grey = (X.reshape(-1, 1, 8, 8) * 255 / 16).astype(np.uint8)
    half = np.random.default_rng(0).random(len(truth)) < 0.5
    y = np.where((truth < N_KNOWN) & half, truth, -1)
    return Pictures(np.repeat(grey, 3, axis=1), truth, y)


def fit(digits, folder, n_components=6, **changes):
    settings = DIGITS.with_changes(**{"epochs": 15, **changes})
    return UNO(n_components, settings=settings, folder=folder).fit(digits.pixels, digits.y)


def scores(digits, labels):
    hidden = digits.y == -1
    return discovery_scores(digits.truth[hidden], labels[hidden], np.arange(N_KNOWN))


def some_cosines(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.tanh(torch.randn(*shape, generator=generator))


def some_batch(codes, n_components, n_known=3, epoch=0, seed=0):
    codes = torch.tensor(codes)
    n_outputs = n_known + 4 * N_HEADS * (n_components - n_known)
    h = some_cosines(2, len(codes), n_outputs, seed=seed).requires_grad_()
    return Batch(some_cosines(2, len(codes), 5), h, codes, codes, None, epoch)


def learner_with_head(n_known, n_components):
    learner = UNOLearner(Settings(), n_known, n_components)
    return learner, learner.head(5)


# --- slow references


def slow_plan(cosines, epsilon, n_iterations):
    """Columns, then rows, of a matrix of positive numbers."""
    plan = [[math.exp(float(value) / epsilon) for value in row] for row in cosines]
    n_rows, n_columns = len(plan), len(plan[0]) if plan else 0
    for _ in range(n_iterations):
        for k in range(n_columns):
            total = sum(plan[i][k] for i in range(n_rows))
            for i in range(n_rows):
                plan[i][k] *= n_rows / n_columns / total
        for i in range(n_rows):
            total = sum(plan[i])
            plan[i] = [value / total for value in plan[i]]
    return plan


def slow_swapped(cosines, codes):
    """The loss of one head, row by row; cosines (2, n, K)."""
    hidden = [i for i, code in enumerate(codes) if code < 0]
    n_outputs = cosines.shape[-1]
    targets = []
    for view in cosines:
        plan = dict(zip(hidden, slow_plan([view[i] for i in hidden], 0.05, 3), strict=True))
        given = {i: [float(k == code) for k in range(n_outputs)] for i, code in enumerate(codes)}
        targets.append([plan.get(i, given[i]) for i in range(len(codes))])
    total = 0.0
    for view in range(2):
        for i in range(len(codes)):
            exps = [math.exp(float(value) / 0.1) for value in cosines[view][i]]
            for target, value in zip(targets[1 - view][i], exps, strict=True):
                total -= target * math.log(value / sum(exps)) / (2 * len(codes))
    return total


# --- Sinkhorn-Knopp


@pytest.mark.parametrize("n_rows", [1, 3, 8])
@pytest.mark.parametrize("n_outputs", [1, 4, 11])
@pytest.mark.parametrize("epsilon", [0.05, 0.5])
@pytest.mark.parametrize("n_iterations", [1, 3])
def test_the_plan_is_sinkhorns(n_rows, n_outputs, epsilon, n_iterations):
    cosines = some_cosines(n_rows, n_outputs).double()
    rows = torch.ones(n_rows, dtype=torch.bool)
    plan = deal_evenly(cosines, rows, epsilon=epsilon, n_iterations=n_iterations)
    expected = slow_plan(cosines, epsilon, n_iterations)
    np.testing.assert_allclose(plan.numpy(), expected, rtol=1e-9, atol=1e-12)


def test_rows_sum_to_one_and_columns_are_alike():
    cosines = some_cosines(3, 12, 5)
    plan = deal_evenly(cosines, torch.ones(12, dtype=torch.bool), epsilon=0.3, n_iterations=200)
    torch.testing.assert_close(plan.sum(dim=-1), torch.ones(3, 12))
    torch.testing.assert_close(plan.sum(dim=-2), torch.full((3, 5), 12 / 5), rtol=1e-3, atol=1e-3)
    short = deal_evenly(cosines, torch.ones(12, dtype=torch.bool))
    torch.testing.assert_close(short.sum(dim=-1), torch.ones(3, 12))


def test_rows_that_have_no_part_change_nothing():
    cosines = some_cosines(2, 9, 4)
    rows = torch.tensor([True, False, True, True, False, True, False, True, True])
    alone = deal_evenly(cosines[:, rows], torch.ones(6, dtype=torch.bool))
    torch.testing.assert_close(deal_evenly(cosines, rows)[:, rows], alone)
    nobody = deal_evenly(cosines, torch.zeros(9, dtype=torch.bool))
    assert torch.isfinite(nobody).all()


def test_outputs_nobody_is_near_get_their_share_too():
    cosines = torch.cat([torch.ones(8, 1), -torch.ones(8, 3)], dim=1)
    plan = deal_evenly(cosines, torch.ones(8, dtype=torch.bool))
    torch.testing.assert_close(plan.sum(dim=0), torch.full((4,), 2.0))


# --- the loss

CODES = [[0, 1, 0, -1, -1, -1, -1], [-1, -1, -1], [0, 1, 1, 2], [2], [-1]]


@pytest.mark.parametrize("codes", CODES)
@pytest.mark.parametrize("n_components", [3, 4, 6])
def test_the_loss_is_swapped_prediction_by_every_head(codes, n_components):
    learner, head = learner_with_head(3, n_components)
    batch = some_batch(codes, n_components)
    loss = learner.loss(batch)
    h, n_novel = batch.h.detach(), n_components - 3
    of_heads = []
    start = 3
    for size in [n_novel] * N_HEADS + [3 * n_novel] * N_HEADS:
        cosines = torch.cat([h[..., :3], h[..., start : start + size]], dim=-1)
        of_heads.append(slow_swapped(cosines, codes))
        start += size
    assert start == h.shape[-1]
    assert loss.item() == pytest.approx(np.mean(of_heads), rel=1e-4)
    np.testing.assert_allclose(head.losses.numpy(), of_heads[:N_HEADS], rtol=1e-4)
    loss.backward()
    assert torch.isfinite(batch.h.grad).all()


def test_views_may_change_places():
    cosines, codes = some_cosines(4, 2, 6, 5), torch.tensor([0, 1, -1, -1, -1, 2])
    torch.testing.assert_close(
        swapped_prediction(cosines.flip(1), codes), swapped_prediction(cosines, codes)
    )


def test_half_precision_of_the_network_is_widened():
    learner, _ = learner_with_head(3, 5)
    batch = some_batch([0, 1, -1, -1], 5)
    narrow = Batch(batch.z, batch.h.bfloat16(), batch.codes, batch.codes, None, 0)
    assert learner.loss(narrow).dtype == torch.float32


# --- the heads


def test_losses_of_heads_add_up_over_an_epoch_and_start_again_with_the_next():
    learner, head = learner_with_head(3, 5)
    batches = [
        some_batch([0, -1, -1, 2, -1], 5, epoch=epoch, seed=i)
        for i, epoch in ((0, 0), (1, 0), (2, 1))
    ]
    alone = []
    for batch in batches:
        single, other = learner_with_head(3, 5)
        single.loss(batch)
        alone.append(other.losses.clone())
        learner.loss(batch)
        expected = alone[0] + alone[1] if len(alone) == 2 else alone[-1]
        torch.testing.assert_close(head.losses, expected)
    assert not head.losses.requires_grad
    assert {"losses", "epoch"} <= dict(head.named_buffers()).keys()


def test_the_head_with_the_least_loss_names_the_clusters():
    learner, head = learner_with_head(3, 5)
    features = some_cosines(6, 5)
    h = head.eval()(features)
    for best in range(N_HEADS):
        head.losses.copy_(torch.arange(N_HEADS) != best)
        z = torch.nn.functional.normalize(features, dim=1)
        expected = torch.cat([head.known(z), head.novel[best](z)], dim=1)
        torch.testing.assert_close(learner.logits(h), expected)


@pytest.mark.parametrize(("n_known", "n_components"), [(3, 3), (3, 7), (0, 4)])
def test_there_may_be_no_novel_or_no_known_output(n_known, n_components):
    learner, head = learner_with_head(n_known, n_components)
    h = head(some_cosines(6, 5))
    assert h.shape == (6, n_known + 16 * (n_components - n_known))
    assert learner.logits(h).shape == (6, n_components)


# --- learning


def test_it_learns_known_and_novel_digits(digits, tmp_path):
    assert digits.y.max() < N_KNOWN  # no label of a novel digit
    before = scores(digits, fit(digits, tmp_path / "before", epochs=1, learning_rate=0.0).labels_)
    method = fit(digits, tmp_path / "after")
    after = scores(digits, method.labels_)
    assert after.old > max(0.85, before.old + 0.3)
    assert after.all > max(0.7, before.all + 0.3)
    assert method.n_components_ == 6
    # the first outputs are the known classes, without any match
    known = (digits.truth < N_KNOWN) & (digits.y == -1)
    assert (method.labels_[known] == digits.truth[known]).mean() > 0.8
    assert (load_checkpoint(tmp_path / "after" / LAST)[0]["network.head.losses"] > 0).all()


@pytest.mark.parametrize("n_components", [N_KNOWN, 9])
def test_any_number_of_novel_outputs_will_do(digits, tmp_path, n_components):
    labels = fit(digits, tmp_path, n_components, epochs=1).labels_
    assert set(labels) <= set(range(n_components))
    # a finished run is read from its folder: the same head is the best one
    np.testing.assert_array_equal(fit(digits, tmp_path, n_components, epochs=1).labels_, labels)


def test_it_runs_without_a_label(digits, tmp_path):
    method = fit(digits._replace(y=np.full(len(digits.y), -1)), tmp_path, epochs=1)
    assert math.isfinite(method.history_[0].loss)


def test_it_is_found_by_its_name():
    assert find_method("uno") is UNO
    assert UNO.title == "UNO+"
    assert "2021" in UNO.source
