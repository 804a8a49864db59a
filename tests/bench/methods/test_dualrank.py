"""The two branches of DualRank and what they teach each other, against loops."""

import math

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import normalize

from newfound.bench.methods import find_method
from newfound.bench.methods.dualrank import (
    Branches,
    DualRank,
    DualRanking,
    Memory,
    PartDictionary,
    mutual_loss,
    similarities,
)
from newfound.bench.methods.rankstats import branch_loss, consistency_weight
from newfound.deep.checkpoint import LAST, load_checkpoint
from newfound.deep.method import Batch
from newfound.deep.network.backbone import load_backbone
from newfound.deep.network.head import Network
from newfound.deep.records import Listener
from newfound.deep.settings import Settings
from newfound.errors import InputError
from newfound.metrics import discovery_scores
from newfound.workflows.demo import DIGITS

torch.set_num_threads(1)

N_ROWS, N_FEATURES, N_PLACES, N_COMPONENTS = 7, 6, 4, 5
CODES = {
    "some": [0, 1, -1, -1, 1, -1, -1],
    "none": [-1] * N_ROWS,
    "all": [0, 1, 1, 0, 0, 1, 0],
}


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def slow_softmax(row):
    exps = [math.exp(value - max(row)) for value in row]
    return [value / sum(exps) for value in exps]


def slow_divergence(p, q):
    return sum(a * (math.log(a) - math.log(b)) for a, b in zip(p, q, strict=True))


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("seed", [0, 4])
def test_mutual_distillation_is_the_mean_of_both_divergences(name, seed):
    a, b = randn(2, N_ROWS, 9, seed=seed).double().requires_grad_()
    rows = [i for i, code in enumerate(CODES[name]) if code < 0]
    terms = []
    for i in rows:
        p, q = slow_softmax(a[i].tolist()), slow_softmax(b[i].tolist())
        terms.append((slow_divergence(p, q) + slow_divergence(q, p)) / 2)
    expected = sum(terms) / len(terms) if terms else 0.0
    loss = mutual_loss(a, b, torch.tensor(CODES[name]) < 0)
    assert loss.item() == pytest.approx(expected, abs=1e-12)
    assert mutual_loss(a, a, torch.ones(N_ROWS, dtype=torch.bool)).item() == 0


def test_similarities_are_cosines_by_temperature():
    f_a, f_b = normalize(randn(2, N_ROWS, N_FEATURES), dim=2)
    memory = normalize(randn(3, N_FEATURES, seed=2), dim=1)
    found = similarities(f_a, f_b, memory)
    assert found.shape == (N_ROWS, 4)
    for i in range(N_ROWS):
        others = [f_b[i], *memory]
        expected = [float(f_a[i] @ other) / 0.07 for other in others]
        assert found[i].tolist() == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("size", [3, 5, 20])
def test_a_memory_is_a_ring_of_the_rows_that_are_wanted(size):
    memory = Memory(size, 2)
    ring = memory.rows().tolist()
    place = 0
    rng = np.random.default_rng(0)
    for step in range(6):
        rows = randn(4, 2, seed=step)
        wanted = torch.from_numpy(rng.random(4) < 0.6)
        memory.add(rows, wanted)
        for row in rows[wanted].tolist()[:size]:
            ring[place] = row
            place = (place + 1) % size
        torch.testing.assert_close(memory.rows(), torch.tensor(ring))
    assert (memory.store[-1] == 0).all()


def slow_bag(parts, words, spread):
    bags = []
    for image in parts.tolist():
        total = [0.0] * len(words)
        for part in image:
            squared = [
                sum((a - b) ** 2 for a, b in zip(part, word, strict=True))
                for word in words.tolist()
            ]
            shares = slow_softmax([-15 / spread * value for value in squared])
            total = [a + b / len(image) for a, b in zip(total, shares, strict=True)]
        bags.append(total)
    return torch.tensor(bags)


def test_an_image_has_the_shares_of_words_of_its_parts():
    torch.manual_seed(0)
    dictionary = PartDictionary(12, 3)
    parts = randn(4, 5, 3)
    words = dictionary.words.rows()
    squared = (parts[:, :, None] - words).square().sum(dim=3)
    nearest = squared.amin(dim=2).mean().item()
    torch.testing.assert_close(dictionary(parts), slow_bag(parts, words, nearest))
    # one part of each image is a word now, and its own nearest
    new = dictionary.words.rows()
    for image, word in zip(parts, new[:4], strict=True):
        assert (image == word).all(dim=1).any()
    torch.testing.assert_close(new[4:], words[4:])
    dictionary(parts)
    again = (parts[:, :, None] - new).square().sum(dim=3).amin(dim=2).mean().item()
    assert dictionary.spread.item() == pytest.approx(0.99 * nearest + 0.01 * again, rel=1e-5)
    kept = {name: value.clone() for name, value in dictionary.state_dict().items()}
    bag = dictionary.eval()(parts)
    expected = slow_bag(parts, dictionary.words.rows(), kept["spread"].item())
    torch.testing.assert_close(bag, expected)
    for name, value in dictionary.state_dict().items():
        assert torch.equal(value, kept[name])


@pytest.fixture
def learner():
    torch.manual_seed(0)
    learner = DualRanking(Settings(epochs=20), 2, N_COMPONENTS)
    classifier = nn.Linear(N_FEATURES, N_COMPONENTS)
    learner.branches = Branches(classifier, N_FEATURES, N_COMPONENTS, 10, 16)
    return learner


def some_batch(learner, codes, features, places):
    h = learner.branches(features.flatten(0, 1), places.flatten(0, 1))
    return Batch(
        normalize(features, dim=2),
        h.view(2, N_ROWS, -1),
        torch.tensor(codes),
        torch.zeros(N_ROWS, dtype=torch.long),
        None,
        epoch=3,
    )


@pytest.mark.parametrize("name", CODES)
def test_the_loss_is_the_sum_of_its_parts(learner, name):
    features = randn(2, N_ROWS, N_FEATURES, seed=1).requires_grad_()
    places = randn(2, N_ROWS, N_PLACES, N_FEATURES, seed=2).requires_grad_()
    batch = some_batch(learner, CODES[name], features, places)
    branches = learner.branches
    memories = [branches.whole_memory.rows(), branches.local_memory.rows()]
    whole = branches.classifier(features)
    pooled = places.mean(dim=2)  # the MLP at each place adds nothing at the start
    local = branches.local(pooled)
    weight = consistency_weight(3, 20)
    f = normalize(pooled, dim=2)
    unlabelled = batch.codes < 0
    expected = (
        branch_loss(whole, features[0], batch.codes, weight)
        + branch_loss(local, batch.h[0, :, -10:], batch.codes, weight)
        + mutual_loss(
            similarities(*batch.z, memories[0]), similarities(*f, memories[1]), unlabelled
        )
    )
    loss = learner.loss(batch)
    torch.testing.assert_close(loss, expected)
    loss.backward()
    for tensor in (features, places, branches.refine[-1].weight):
        assert torch.isfinite(tensor.grad).all()
        assert (tensor.grad != 0).any()
    n_new = int(unlabelled.sum())
    torch.testing.assert_close(branches.whole_memory.rows()[:n_new], batch.z[1][unlabelled])
    torch.testing.assert_close(branches.local_memory.rows()[:n_new], f[1][unlabelled].detach())
    torch.testing.assert_close(branches.local_memory.rows()[n_new:], memories[1][n_new:])


def test_the_parts_are_compared_without_gradient(learner):
    places = randn(3, N_PLACES, N_FEATURES).requires_grad_()
    *_, pooled, bag = learner.branches.split(learner.branches(randn(3, N_FEATURES), places))
    torch.testing.assert_close(bag.sum(dim=1), torch.ones(3))
    assert torch.autograd.grad(bag.sum(), places, retain_graph=True)[0].abs().max() == 0
    assert pooled.requires_grad


def test_without_a_map_the_global_branch_speaks(learner):
    features, places = randn(3, N_FEATURES), randn(3, N_PLACES, N_FEATURES)
    branches = learner.branches.eval()
    alone = learner.logits(branches(features))
    torch.testing.assert_close(alone, branches.classifier(features))
    torch.testing.assert_close(learner.logits(branches(features, places)), alone)


def test_a_map_of_another_width_is_refused(learner):
    with pytest.raises(InputError, match="map has 4 channels, but its feature has 6"):
        learner.branches(randn(3, N_FEATURES), randn(3, N_PLACES, 4))


@pytest.mark.parametrize(("model", "n_places"), [("test_vit", 16), ("test_resnet", 4)])
def test_the_network_hands_over_the_map(model, n_places):
    torch.manual_seed(0)
    backbone = load_backbone(model, "random", image_size=64)
    learner = DualRanking(Settings(), 2, N_COMPONENTS)
    network = Network(backbone, learner.head(backbone.n_features)).eval()
    seen = []
    learner.branches.dictionary.register_forward_hook(lambda _, args, out: seen.append(args[0]))
    z, h = network(randn(2, 3, 64, 64))
    assert seen[0].shape == (2, n_places, backbone.n_features)
    assert z.shape == (2, backbone.n_features)
    assert h.shape == (2, 2 * N_COMPONENTS + backbone.n_features + 2048)


def pictures(n_rows, n_classes):
    """Digits as images, of which 0 to 4 are known and half of these labelled."""
    X, truth = load_digits(return_X_y=True)
    rows = np.sort(
        np.concatenate([np.flatnonzero(truth == digit)[:n_rows] for digit in range(n_classes)])
    )
    grey = (X[rows].reshape(-1, 1, 8, 8) * 255 / 16).astype(np.uint8)
    truth = truth[rows]
    half = np.random.default_rng(0).random(len(truth)) < 0.5
    return np.repeat(grey, 3, axis=1), truth, np.where((truth < 5) & half, truth, -1)


def test_it_learns(tmp_path):
    pixels, truth, y = pictures(40, 7)
    settings = DIGITS.with_changes(epochs=20)
    untrained = settings.with_changes(epochs=1, learning_rate=0.0)
    before = DualRank(7, settings=untrained, folder=tmp_path / "before").fit(pixels, y)
    after = DualRank(7, settings=settings, folder=tmp_path / "after").fit(pixels, y)
    free = y == -1
    scores = [
        discovery_scores(truth[free], method.labels_[free], range(5)) for method in (before, after)
    ]
    assert scores[1].old > scores[0].old + 0.25
    assert scores[1].all > scores[0].all + 0.15
    labelled = y != -1
    assert (after.labels_[labelled] == y[labelled]).mean() > 0.75
    assert after.n_components_ == 7


class Stop(Listener):
    """Ends a run after an epoch, as a kill would."""

    def epoch(self, record):
        if record.epoch == 0:
            raise KeyboardInterrupt


def test_a_run_goes_on_with_its_memories(tmp_path):
    pixels, _, y = pictures(10, 7)
    settings = DIGITS.with_changes(epochs=2, image_size=40)
    with pytest.raises(KeyboardInterrupt):
        DualRank(7, settings=settings, folder=tmp_path / "a", listener=Stop()).fit(pixels, y)
    stopped = DualRank(7, settings=settings, folder=tmp_path / "a").fit(pixels, y)
    through = DualRank(7, settings=settings, folder=tmp_path / "b").fit(pixels, y)
    np.testing.assert_array_equal(stopped.labels_, through.labels_)
    tensors, others = (load_checkpoint(tmp_path / name / LAST)[0] for name in "ab")
    for name in ("dictionary.words.store", "dictionary.spread", "local_memory.store"):
        assert f"network.head.{name}" in tensors
    for name, value in tensors.items():
        assert torch.equal(value, others[name]), name


def test_what_the_tables_read():
    assert find_method("dualrank") is DualRank
    assert DualRank.title == "DualRank"
    assert "2021" in DualRank.source
    assert "Departures" in DualRank.__doc__
    assert "joint" in DualRank.variants
