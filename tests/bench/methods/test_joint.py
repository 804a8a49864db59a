"""A classifier whose outputs the mixture splits and merges."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch.nn.functional import normalize

from newfound.bench.methods.dualrank import DualRank, JointDualRanking
from newfound.bench.methods.joint import N_SPARE, OpenClassifier, survivors
from newfound.bench.methods.rankstats import JointRanking, RankStats
from newfound.deep.method import Batch
from newfound.deep.settings import Settings
from newfound.errors import InputError
from newfound.metrics import discovery_scores
from newfound.workflows.demo import DIGITS

torch.set_num_threads(1)

# few pictures and few epochs: K is not what these tests are about
pytestmark = pytest.mark.filterwarnings("ignore:The count suggests")


def blobs(n_classes=6, n_rows=30, n_known=4, noise=0.05, seed=0):
    """Unit rows around orthogonal directions, of which the first are known in part."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(n_classes), n_rows)
    X = np.eye(8)[truth] + noise * rng.standard_normal((len(truth), 8))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    known = (truth < n_known) & (rng.random(len(truth)) < 0.5)
    return X.astype(np.float32), truth, np.where(known, truth, -1)


def open_learner(n_known=4, n_outputs=20, **settings):
    torch.manual_seed(0)
    values = {"pca": "off", "rehearse": False, **settings}
    learner = JointRanking(Settings(**values), n_known, n_outputs)
    learner.head(8)
    return learner


def find(learner, X, codes, labels=None, *, moves=True, seed=0):
    return learner.partition(X, codes, labels, moves=moves, seed=seed, count=None)


def test_an_output_is_a_cosine_or_silent():
    classifier = OpenClassifier(5, 7, 0.1)
    classifier.write(np.array([], dtype=np.int64), 3 * np.eye(5)[:4])
    z = torch.randn(6, 5, requires_grad=True)
    logits = classifier(z)
    torch.testing.assert_close(logits[:, :4], normalize(z, dim=1)[:, :4] / 0.1)
    assert (logits[:, 4:] == -torch.inf).all()
    (10 * logits).softmax(dim=1).square().sum().backward()
    assert torch.isfinite(classifier.weight.grad).all()
    assert (classifier.weight.grad[4:] == 0).all()
    assert (classifier.weight.grad[:4] != 0).any()
    assert torch.isfinite(z.grad).all()


def test_new_outputs_leave_the_others_and_those_just_left_alone():
    classifier = OpenClassifier(3, 6, 0.1)
    classifier.write(np.array([], dtype=np.int64), np.eye(3))
    before = classifier.weight.detach().clone()
    fresh = np.array([[0.0, 3, 4], [0, -2, 0]])
    classifier.write(np.array([0, 2]), fresh)  # output 1 goes out of use
    assert classifier.slots().tolist() == [0, 2, 3, 4]
    torch.testing.assert_close(classifier.weight[:3], before[:3])
    np.testing.assert_allclose(classifier.centres()[2:], [[0, 0.6, 0.8], [0, -1, 0]], atol=1e-6)
    classifier.write(np.array([0]), np.eye(3))  # outputs 1 and 5 wait, 2 has just gone
    assert classifier.slots().tolist() == [0, 1, 2, 5]
    with pytest.raises(
        InputError, match="found 7 categories, but the classifier has only 6 outputs"
    ):
        classifier.write(np.array([0]), np.ones((6, 3)))


def slow_survivors(before, after, n_known):
    found = []
    for j in range(max(after) + 1):
        names = [j] if j < n_known else range(n_known, max(before) + 1)
        same = -1
        for i in names:
            a = {row for row, name in enumerate(before) if name == i}
            b = {row for row, name in enumerate(after) if name == j}
            if j < n_known or (2 * len(a & b) > len(a) and 2 * len(a & b) > len(b)):
                same = i
        found.append(same)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_a_category_survives_with_most_of_its_rows(seed):
    rng = np.random.default_rng(seed)
    before = np.concatenate([np.arange(6), rng.integers(6, size=40)])
    moved = rng.random(len(before)) < 0.05 * seed
    after = np.where(moved, rng.integers(7, size=len(before)), before)
    after = np.concatenate([after, np.arange(7)])
    before = np.concatenate([before, np.arange(6), [3]])
    names = np.concatenate([[0, 1], 2 + rng.permutation(5)])[after]
    assert survivors(before, names, 2).tolist() == slow_survivors(before, names, 2)


def test_the_first_partition_is_the_mixtures_and_its_prototypes_are_the_weights():
    X, truth, codes = blobs()
    learner = open_learner()
    clusters = find(learner, X, codes)
    assert clusters.n_components == 6
    assert learner.classifier.slots().tolist() == list(range(6))
    for component, centre in enumerate(learner.classifier.centres()):
        rows = (codes if component < 4 else clusters.labels) == component
        mean = X[rows].mean(axis=0)
        np.testing.assert_allclose(centre, mean / np.linalg.norm(mean), atol=1e-5)
    logits = learner.logits(learner.classifier(torch.from_numpy(X)))
    scores = discovery_scores(truth[codes < 0], logits.argmax(dim=1).numpy()[codes < 0], range(4))
    assert scores.all == 1


@pytest.mark.parametrize("moves", [False, True])
def test_categories_that_stay_keep_output_and_weights(moves):
    X, _, codes = blobs()
    learner = open_learner()
    clusters = find(learner, X, codes)
    with torch.no_grad():  # as training would, a little
        learner.classifier.weight += 0.02 * torch.randn(20, 8)
    weights = learner.classifier.weight.detach().clone()
    again = find(learner, X, codes, clusters.labels, moves=moves, seed=1)
    np.testing.assert_array_equal(again.labels, clusters.labels)
    assert torch.equal(learner.classifier.weight, weights)
    assert learner.classifier.slots().tolist() == list(range(6))


def test_it_is_the_weights_that_the_mixture_goes_on_from():
    X, truth, codes = blobs()
    learner = open_learner()
    clusters = find(learner, X, codes)
    with torch.no_grad():  # the two novel outputs change places: rows follow them, not the labels
        learner.classifier.weight[[4, 5]] = learner.classifier.weight[[5, 4]]
    again = find(learner, X, codes, clusters.labels, moves=False)
    novel = truth >= 4
    np.testing.assert_array_equal(again.labels[novel], 9 - clusters.labels[novel])
    np.testing.assert_array_equal(again.labels[~novel], clusters.labels[~novel])


def test_a_split_takes_new_outputs_and_an_empty_one_goes_out_of_use():
    X, truth, codes = blobs()
    learner = open_learner()
    # one novel output between two categories, and one that no row is near to
    novel = np.stack([X[truth >= 4].mean(axis=0), -X.mean(axis=0)])
    learner.classifier.write(np.array([], dtype=np.int64), np.concatenate([np.eye(8)[:4], novel]))
    clusters = find(learner, X, codes, np.zeros(len(X), dtype=np.int64))
    assert clusters.n_components == 6
    slots = learner.classifier.slots()
    assert slots.tolist() == [0, 1, 2, 3, 6, 7]
    cosines = learner.classifier.centres() @ np.eye(8)[:6].T
    assert sorted(cosines[4:].argmax(axis=1).tolist()) == [4, 5]


def test_without_a_novel_output_the_mixture_starts_afresh_when_it_may_move():
    X, _, codes = blobs()
    learner = open_learner()
    labels = np.where(codes < 0, 0, codes)
    learner.classifier.write(np.array([], dtype=np.int64), np.eye(8)[:4])
    assert find(learner, X, codes, labels, moves=False).n_components == 4
    assert find(learner, X, codes, labels, moves=True).n_components == 6


@pytest.mark.parametrize("codes", [[0, 1, -1, -1], [-1] * 4, [0, 1, 1, 0]])
@pytest.mark.parametrize("kind", [JointRanking, JointDualRanking])
def test_outputs_out_of_use_get_no_gradient(kind, codes):
    torch.manual_seed(0)
    learner = kind(Settings(), 2, 9)
    head = learner.head(6)
    learner.classifier.write(np.array([], dtype=np.int64), np.eye(6)[:3])
    features, places = torch.randn(8, 6), torch.randn(8, 4, 6)
    h = head(features, places) if kind is JointDualRanking else head(features)
    batch = Batch(
        normalize(features, dim=1).view(2, 4, 6),
        h.view(2, 4, -1),
        torch.tensor(codes),
        torch.zeros(4, dtype=torch.long),
        None,
        epoch=0,
    )
    loss = learner.loss(batch)
    loss.backward()
    assert torch.isfinite(loss)
    weights = [learner.classifier.weight]
    weights += [head.local.weight] if kind is JointDualRanking else []
    for weight in weights:
        assert (weight.grad[3:] == 0).all()
        assert torch.isfinite(weight.grad).all()
        assert (weight.grad[:3] != 0).any()


def test_several_processes_are_refused(monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    with pytest.raises(InputError, match="in one process only"):
        open_learner()


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


@pytest.mark.parametrize("method", [RankStats, DualRank])
def test_it_finds_k_while_it_learns(method, tmp_path):
    pixels, truth, y = pictures(40, 8)
    settings = DIGITS.with_changes(epochs=16, warmup_epochs=3, moves_every=3)
    joint = method(settings=settings, folder=tmp_path, joint=True)
    assert joint.finds_k
    joint.fit(pixels, y)
    assert 7 <= joint.n_components_ <= 10
    assert joint.labels_.max() < joint.n_components_
    assert joint.k_source_ == "mixture"
    assert all(5 <= record.n_components <= 5 + N_SPARE for record in joint.history_)
    free, labelled = y == -1, y != -1
    scores = discovery_scores(truth[free], joint.labels_[free], range(5))
    assert scores.all > 0.5
    assert (joint.labels_[labelled] == y[labelled]).mean() > 0.65


@pytest.mark.parametrize("weight_average", [0.0, 0.9])
def test_training_starts_from_what_was_written_into_the_classifier(
    tmp_path, monkeypatch, weight_average
):
    events = []

    def write(classifier, kept, fresh):
        original_write(classifier, kept, fresh)
        events.append(("write", classifier.centres()))

    def forward(classifier, features):
        if classifier.training:
            events.append(("train", classifier.centres()))
        return original_forward(classifier, features)

    original_write, original_forward = OpenClassifier.write, OpenClassifier.forward
    monkeypatch.setattr(OpenClassifier, "write", write)
    monkeypatch.setattr(OpenClassifier, "forward", forward)
    pixels, _, y = pictures(20, 7)
    settings = DIGITS.with_changes(epochs=1, weight_average=weight_average)
    RankStats(settings=settings, folder=tmp_path, joint=True).fit(pixels, y)
    # all outputs are new before the first epoch, and none has been trained yet
    assert [name for name, _ in events[:2]] == ["write", "train"]
    np.testing.assert_allclose(events[1][1], events[0][1], atol=1e-6)


def test_a_known_k_is_kept(tmp_path):
    pixels, _, y = pictures(20, 7)
    settings = DIGITS.with_changes(epochs=2, moves_every=1)
    joint = RankStats(7, settings=settings, folder=tmp_path, joint=True).fit(pixels, y)
    assert joint.settings.estep.n_components == 7
    assert joint.settings.estep.pca == "off"
    assert joint.k_source_ == "given"
    assert joint.n_components_ <= 7
