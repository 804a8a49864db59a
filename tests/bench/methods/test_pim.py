"""PIM: its loss against a slow one, its head, and what it shares with GCD."""

import math

import numpy as np
import pytest
import torch

from newfound.bench.method import BenchMethod
from newfound.bench.methods import pim as module
from newfound.bench.methods.pim import PIM, information_loss, partition
from newfound.bench.protocol import bench_settings, make_case
from newfound.bench.run_files import run_folder
from newfound.metrics import discovery_scores
from newfound.workflows.demo import DIGITS


def slow_loss(logits, unlabelled, weight):
    """Row by row."""
    shares = []
    for row in logits.tolist():
        total = sum(math.exp(value) for value in row)
        shares.append([math.exp(value) / total for value in row])

    def entropy(p):
        return -sum(value * math.log(value) for value in p)

    of_rows = [entropy(p) for p, is_free in zip(shares, unlabelled, strict=True) if is_free]
    mean = [sum(p[k] for p in shares) / len(shares) for k in range(len(shares[0]))]
    return weight * sum(of_rows) / len(of_rows) - entropy(mean)


@pytest.mark.parametrize("weight", [0.1, 1.0])
@pytest.mark.parametrize("shape", [(6, 3), (9, 5)])
def test_the_loss_is_that_of_the_paper(weight, shape):
    logits = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    unlabelled = torch.arange(shape[0]) % 3 > 0
    expected = slow_loss(logits, unlabelled, weight)
    assert information_loss(logits, unlabelled, weight).item() == pytest.approx(expected)


def test_an_output_that_is_never_used_gives_no_nan():
    logits = torch.tensor([[0.0, -1e6], [0.0, -1e6]], requires_grad=True)
    loss = information_loss(logits, torch.tensor([True, True]), 0.5)
    loss.backward()
    assert loss.item() == 0
    assert torch.isfinite(logits.grad).all()


@pytest.fixture(scope="module")
def blobs():
    """Four classes of unequal sizes in the plane of 8 dimensions; two are known."""
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(4), (60, 30, 45, 15))
    Z = np.eye(8)[truth] + 0.15 * rng.normal(size=(150, 8))
    y = np.where((truth < 2) & (rng.random(150) < 0.5), truth, -1)
    return (Z / np.linalg.norm(Z, axis=1, keepdims=True)).astype(np.float32), truth, y


def test_the_head_fits_the_labels_and_keeps_unequal_sizes(blobs):
    Z, truth, y = blobs
    centres = np.eye(8, dtype=np.float32)[:4]
    labels = partition(Z, y, centres, 0.5, supervised=True)
    np.testing.assert_array_equal(labels[y >= 0], y[y >= 0])
    assert (labels == truth).mean() > 0.95


def test_k_is_found_and_given(blobs, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "N_STEPS", 60)
    Z, truth, y = blobs
    found = PIM(settings=DIGITS, folder=tmp_path, n_starts=2).fit(Z, y)
    assert found.k_source_ == "Brent search with PIM on the finished features"
    assert 2 <= found.n_components_ <= 75
    given = PIM(4, settings=DIGITS, folder=tmp_path, n_starts=2).fit(Z, y)
    assert (given.n_components_, given.k_source_) == (4, "given")
    free = y == -1
    assert discovery_scores(truth[free], given.labels_[free], [0, 1]).all > 0.9


def test_its_training_is_that_of_gcd(tmp_path, few_digits, monkeypatch):
    settings = bench_settings("digits", method="gcd")
    cases = [make_case(name, "digits", settings, k="known") for name in ("gcd", "pim")]
    assert len({run_folder(case, tmp_path) for case in cases}) == 1
    trained = []

    def train(self, learner, pixels, codes):
        trained.append((type(learner).__name__, learner.settings))
        self.features_, self.history_ = pixels.reshape(len(pixels), -1) / 255.0, []

    monkeypatch.setattr(BenchMethod, "_train", train)
    monkeypatch.setattr(module, "N_STEPS", 2)
    PIM(7, settings=settings, folder=tmp_path, n_starts=1).fit(few_digits.pixels, few_digits.y)
    ((name, used),) = trained
    assert name == "Contrast"
    assert used.losses.contrastive_temperature == 1.0
