"""SimGCD: its losses against loops over rows, and that it learns."""

import math
from typing import NamedTuple

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from newfound.bench.methods import find_method
from newfound.bench.methods.simgcd import (
    SimGCD,
    SimGCDLearner,
    distillation_loss,
    teacher_temperature,
)
from newfound.deep.method import Batch, mixed_contrast
from newfound.deep.settings import Settings
from newfound.metrics import discovery_scores
from newfound.workflows.demo import DIGITS

torch.set_num_threads(1)

N_KNOWN = 4


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
    settings = DIGITS.with_changes(**{"epochs": 20, **changes})
    return SimGCD(n_components, settings=settings, folder=folder).fit(digits.pixels, digits.y)


def scores(digits, labels):
    hidden = digits.y == -1
    return discovery_scores(digits.truth[hidden], labels[hidden], np.arange(N_KNOWN))


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def some_batch(codes, n_components, epoch=0, seed=0):
    codes = torch.tensor(codes)
    cosines = torch.tanh(randn(2, len(codes), n_components, seed=seed))
    h = torch.cat([cosines, randn(2, len(codes), 5, seed=seed + 1)], dim=-1).float()
    z = torch.nn.functional.normalize(randn(2, len(codes), 7, seed=seed + 2), dim=-1).float()
    return Batch(z, h.requires_grad_(), codes, codes, None, epoch)


# --- slow references


def softmax(row, temperature=1.0):
    exps = [math.exp(float(value) / temperature) for value in row]
    return [value / sum(exps) for value in exps]


def cross_entropy(target, prediction):
    return -sum(t * math.log(p) for t, p in zip(target, prediction, strict=True))


def slow_classification(cosines, codes, tau, share, epsilon):
    """The parts of the loss that are SimGCD's own, row by row."""
    n_views, n_rows, n_classes = cosines.shape
    student = [[softmax(row, 0.1) for row in view] for view in cosines]
    teacher = [[softmax(row, tau) for row in view] for view in cosines]
    distilled = supervised = 0.0
    mean = [0.0] * n_classes
    for view in range(n_views):
        for i in range(n_rows):
            distilled += cross_entropy(teacher[1 - view][i], student[view][i]) / (2 * n_rows)
            mean = [m + p / (2 * n_rows) for m, p in zip(mean, student[view][i], strict=True)]
            if codes[i] >= 0:
                supervised += -math.log(student[view][i][codes[i]])
    n_labelled = sum(code >= 0 for code in codes)
    supervised /= max(1, 2 * n_labelled)
    gap = math.log(n_classes) + sum(m * math.log(m) for m in mean)
    return (1 - share) * (distilled + epsilon * gap) + share * supervised


CODES = [[0, 1, 0, -1, -1, -1], [-1, -1, -1], [0, 1, 1, 2], [2], [-1]]


@pytest.mark.parametrize("codes", CODES)
@pytest.mark.parametrize("n_components", [3, 5])
@pytest.mark.parametrize("share", [0.0, 0.35, 1.0])
@pytest.mark.parametrize("epoch", [0, 7, 40])
def test_the_loss_is_that_of_the_paper(codes, n_components, share, epoch):
    settings = Settings(supervised_weight=share)
    batch = some_batch(codes, n_components, epoch)
    loss = SimGCDLearner(settings, 3, n_components).loss(batch)
    tau = 0.07 - 0.03 * min(1, epoch / 29)
    cosines = batch.h[..., :n_components].detach()
    expected = slow_classification(cosines, codes, tau, share, 2.0)
    # InfoNCE has the authors' temperature, whatever the settings say
    authors = Settings(supervised_weight=share, contrastive_temperature=1.0)
    expected += mixed_contrast(batch.h[..., n_components:], batch.codes, authors.losses).item()
    assert loss.item() == pytest.approx(expected, rel=1e-5, abs=1e-6)
    loss.backward()
    assert torch.isfinite(batch.h.grad).all()


def test_the_teacher_has_no_gradient():
    student, teacher = randn(2, 4, 3).requires_grad_(), randn(2, 4, 3, seed=1).requires_grad_()
    distillation_loss(student, teacher).backward()
    assert teacher.grad is None
    assert (student.grad != 0).any()


@pytest.mark.parametrize(
    ("n_epochs", "warmup"), [(400, 30), (200, 30), (100, 15), (20, 3), (10, 2), (1, 1)]
)
def test_the_teacher_grows_sharper_over_the_warm_up(n_epochs, warmup):
    expected = np.append(np.linspace(0.07, 0.04, warmup), np.full(n_epochs - warmup, 0.04))
    temperatures = [teacher_temperature(epoch, n_epochs) for epoch in range(n_epochs)]
    np.testing.assert_allclose(temperatures, expected)


def test_half_precision_of_the_network_is_widened():
    batch = some_batch([0, 1, -1, -1], 3)
    narrow = Batch(batch.z, batch.h.bfloat16(), batch.codes, batch.codes, None, 0)
    assert SimGCDLearner(Settings(), 2, 3).loss(narrow).dtype == torch.float32


def test_the_head_gives_cosines_and_a_projection():
    learner = SimGCDLearner(Settings(), 2, 5)
    features = randn(4, 8).float()
    head = learner.head(8)
    h = head(features)
    assert h.shape == (4, 5 + 8)
    torch.testing.assert_close(learner.logits(h), head.classifier(features))
    torch.testing.assert_close(h[:, 5:], head.projection(features))


# --- learning


def test_it_learns_known_and_novel_digits(digits, tmp_path):
    assert digits.y.max() < N_KNOWN  # no label of a novel digit
    before = scores(digits, fit(digits, tmp_path / "before", epochs=1, learning_rate=0.0).labels_)
    method = fit(digits, tmp_path / "after")
    after = scores(digits, method.labels_)
    assert after.old > max(0.85, before.old + 0.3)
    assert after.all > max(0.65, before.all + 0.3)
    assert method.n_components_ == 6
    assert len(method.history_) == 20
    # the first outputs are the known classes, without any match
    known = (digits.truth < N_KNOWN) & (digits.y == -1)
    assert (method.labels_[known] == digits.truth[known]).mean() > 0.8


@pytest.mark.parametrize("n_components", [N_KNOWN, 9])
def test_any_number_of_novel_outputs_will_do(digits, tmp_path, n_components):
    method = fit(digits, tmp_path, n_components, epochs=1)
    assert set(method.labels_) <= set(range(n_components))
    assert math.isfinite(method.history_[0].loss)


def test_it_runs_without_a_label(digits, tmp_path):
    method = fit(digits._replace(y=np.full(len(digits.y), -1)), tmp_path, epochs=1)
    assert math.isfinite(method.history_[0].loss)


def test_it_is_found_by_its_name():
    assert find_method("simgcd") is SimGCD
    assert SimGCD.title == "SimGCD"
    assert "2023" in SimGCD.source
