"""DCCL: its loss and its prototypes against loops over rows, K, and that it learns."""

import math

import numpy as np
import pytest
import torch

from newfound.bench.methods import dccl as module
from newfound.bench.methods.dccl import DCCL, CommunityContrast, find_categories, follow
from newfound.bench.protocol import bench_settings
from newfound.deep.checkpoint import LAST, load_checkpoint
from newfound.deep.method import Batch, mixed_contrast
from newfound.deep.prototypes import Prototypes, Space
from newfound.deep.records import Listener
from newfound.deep.settings import Settings
from newfound.metrics import discovery_scores
from newfound.workflows.demo import DIGITS

QUICK = DIGITS.with_changes(
    epochs=2, n_labelled_per_batch=16, n_unlabelled_per_batch=48, moves_every=1
)


def units(*shape, seed=0):
    v = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(v, dim=-1)


def slow_follow(mu, z, labels):
    """Prototype by prototype."""
    moved = []
    for k, old in enumerate(mu):
        rows = [row for row, label in zip(z, labels, strict=True) if label == k]
        if rows:
            mean = [sum(values) / len(rows) for values in zip(*rows, strict=True)]
            old = [0.9 * a + 0.1 * b for a, b in zip(old, mean, strict=True)]
            length = math.sqrt(sum(a * a for a in old))
            old = [a / length for a in old]
        moved.append(old)
    return moved


def slow_term(z, mu, labels, tau):
    """The community term, row by row."""
    total = 0.0
    for row, label in zip(z, labels, strict=True):
        scores = [math.exp(sum(a * b for a, b in zip(row, m, strict=True)) / tau) for m in mu]
        total -= math.log(scores[label] / sum(scores)) / len(z)
    return total


def test_prototypes_follow_the_rows_of_a_batch():
    mu, z, labels = units(4, 5), units(6, 5, seed=1), torch.tensor([0, 2, 2, 0, 3, 0])
    expected = slow_follow(mu.tolist(), z.tolist(), labels.tolist())
    np.testing.assert_allclose(follow(mu, z, labels), expected, rtol=1e-5)


def test_the_loss_has_both_terms_and_prototypes_move_within_an_epoch():
    settings = Settings(prototype_temperature=0.2, contrastive_temperature=1.0)
    learner = CommunityContrast(settings, 2, 40)
    head = learner.head(16)
    means, assigned = units(3, 16), torch.tensor([0, 2, 1, 2])
    mu, codes = means.tolist(), torch.tensor([0, -1, 1, -1])
    for epoch, seed in ((3, 5), (3, 6), (4, 7)):
        if epoch == 4:  # an E-step gives new means
            mu = means.tolist()
        z, h = units(2, 4, 16, seed=seed), units(2, 4, 16, seed=seed + 9).requires_grad_()
        loss = learner.loss(Batch(z, h, codes, assigned, Prototypes(means, Space(())), epoch))
        rows, labels = z.flatten(0, 1).tolist(), [*assigned.tolist(), *assigned.tolist()]
        expected = slow_term(rows, mu, labels, 0.2)
        expected += mixed_contrast(h, codes, settings.losses).item()
        assert loss.item() == pytest.approx(expected, rel=1e-4)
        mu = slow_follow(mu, rows, labels)
        np.testing.assert_allclose(head.prototypes[:3], mu, rtol=1e-4, atol=1e-6)


@pytest.fixture(scope="module")
def blobs():
    """Five classes of 30 rows; three are known, half of their rows are labelled."""
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(5), 30)
    Z = (np.eye(8)[truth] + 0.2 * rng.normal(size=(150, 8))).astype(np.float32)
    return Z, truth, np.where((truth < 3) & (rng.random(150) < 0.5), truth, -1)


def test_k_is_found_and_given(blobs, tmp_path):
    Z, truth, y = blobs
    found = DCCL(settings=DIGITS, folder=tmp_path).fit(Z, y)
    assert (found.n_components_, found.k_source_) == (5, "communities of the finished features")
    np.testing.assert_array_equal(found.labels_[y >= 0], y[y >= 0])
    given = DCCL(5, settings=DIGITS, folder=tmp_path, n_starts=2).fit(Z, y)
    assert (given.n_components_, given.k_source_) == (5, "given")
    for method in (found, given):
        free = y == -1
        assert discovery_scores(truth[free], method.labels_[free], [0, 1, 2]).all > 0.95


def test_the_number_of_neighbours_is_chosen_by_labels_that_communities_do_not_see(blobs):
    Z, _, y = blobs
    noisy = Z + 0.2 * np.random.default_rng(1).normal(size=Z.shape).astype(np.float32)
    assert module.choose_neighbours(noisy, y, 0) > 5  # five neighbours part the classes
    assert module.choose_neighbours(Z, np.full(150, -1), 0) == 100  # all are equal


def test_there_are_no_more_communities_than_in_other_searches(blobs, monkeypatch):
    Z, _, y = blobs
    many = find_categories(Z, y, 3, 0)
    monkeypatch.setattr(module, "LARGEST_TOTAL", 6)
    few = find_categories(Z, y, 3, 0)
    assert many.max() + 1 > 6
    assert sorted(set(few)) == list(range(6))
    np.testing.assert_array_equal(few[y >= 0], y[y >= 0])


@pytest.fixture
def few_numbers(monkeypatch):
    """Fewer numbers of neighbours to choose from."""
    monkeypatch.setattr(module, "N_NEIGHBOURS", (5, 10))


@pytest.mark.usefixtures("few_numbers")
def test_it_learns_known_and_novel_digits(seven_digits, tmp_path):
    method = DCCL(settings=QUICK.with_changes(epochs=5), folder=tmp_path)
    method.fit(seven_digits.pixels, seven_digits.y)
    free = seven_digits.y == -1
    scores = discovery_scores(seven_digits.truth[free], method.labels_[free], range(5))
    assert scores.old > 0.6
    assert method.n_components_ >= 5
    assert len(method.history_) == 5
    assert all(epoch.n_novel is not None for epoch in method.history_)


@pytest.mark.usefixtures("few_numbers")
def test_an_interrupted_training_resumes_to_the_same_bits(few_digits, tmp_path):
    class Stop(Listener):
        def epoch(self, record):
            raise InterruptedError

    def fit(folder, **options):
        method = DCCL(7, settings=QUICK, folder=tmp_path / folder, n_starts=1, **options)
        return method.fit(few_digits.pixels, few_digits.y)

    whole = fit("a")
    with pytest.raises(InterruptedError):
        fit("b", listener=Stop())
    np.testing.assert_array_equal(fit("b").features_, whole.features_)
    stored = [load_checkpoint(tmp_path / name / LAST)[0] for name in "ab"]
    assert stored[0]["network.head.n_neighbours"] in module.N_NEIGHBOURS
    for name in ("prototypes", "n_neighbours", "epoch"):
        assert torch.equal(*(tensors[f"network.head.{name}"] for tensors in stored))


@pytest.mark.usefixtures("few_numbers")
def test_between_moves_communities_stay(few_digits, tmp_path):
    settings = QUICK.with_changes(moves_every=2)
    method = DCCL(7, settings=settings, folder=tmp_path, n_starts=1)
    method.fit(few_digits.pixels, few_digits.y)
    ks = [epoch.n_components for epoch in method.history_]
    assert ks[1] <= ks[0]


def test_its_settings_are_recorded(tmp_path):
    assert DCCL.knob.value == bench_settings("digits", method="dccl").losses.prototype_temperature
    settings = DIGITS.with_changes(prototype_temperature=0.07)
    resolved = DCCL(settings=settings, folder=tmp_path).resolved()
    assert resolved["prototype_temperature"] == 0.07
    assert (resolved["contrastive_temperature"], resolved["n_starts"]) == (1.0, 100)
