"""CMS: mean shift and loss against loops over rows, cuts against scipy, and that it learns."""

import math

import numpy as np
import pytest
import torch
from scipy.cluster import hierarchy
from sklearn.metrics import adjusted_rand_score

from newfound.bench.method import BenchMethod
from newfound.bench.methods import cms as module
from newfound.bench.methods.cms import CMS, MeanShiftContrast, accuracy, mean_shift, remember, shift
from newfound.bench.protocol import bench_settings, make_case
from newfound.bench.run_files import run_folder
from newfound.deep.checkpoint import LAST, load_checkpoint
from newfound.deep.method import Batch
from newfound.deep.records import Listener
from newfound.deep.settings import Settings
from newfound.errors import InputError
from newfound.metrics import discovery_scores
from newfound.workflows.demo import DIGITS

QUICK = DIGITS.with_changes(epochs=2, n_labelled_per_batch=16, n_unlabelled_per_batch=48)


def units(*shape, seed=0):
    v = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.nn.functional.normalize(v, dim=-1)


# --- slow references


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def unit(a):
    return [x / math.sqrt(dot(a, a)) for x in a]


def slow_shift(v, memory, own):
    """The mean shift of one embedding."""
    others = [row for j, row in enumerate(memory) if j != own]
    nearest = sorted(others, key=lambda row: -dot(v, row))[:8]
    mean = [sum(values) / len(nearest) for values in zip(*nearest, strict=True)]
    return unit([0.5 * a + 0.5 * b for a, b in zip(v, mean, strict=True)])


def slow_loss(v, codes, memory, rows, tau, share):
    """Row by row."""
    z = [[slow_shift(v[a][i], memory, rows[i]) for i in range(len(rows))] for a in range(2)]
    n, info, supervised = len(rows), 0.0, []
    for a in range(2):
        for i in range(n):
            total = sum(math.exp(dot(z[a][i], z[1 - a][j]) / tau) for j in range(n))
            info -= math.log(math.exp(dot(z[a][i], z[1 - a][i]) / tau) / total) / (2 * n)
    views = [(v[a][i], codes[i]) for a in range(2) for i in range(n) if codes[i] >= 0]
    for i, (one, code) in enumerate(views):
        others = [view for j, view in enumerate(views) if j != i]
        total = sum(math.exp(dot(one, other) / 0.07) for other, _ in others)
        same = [dot(one, other) / 0.07 - math.log(total) for other, c in others if c == code]
        supervised.append(-sum(same) / len(same))
    return (1 - share) * info + share * sum(supervised) / max(1, len(supervised))


@pytest.mark.parametrize("n_rows", [5, 12])
def test_the_mean_shift_is_that_of_the_paper(n_rows):
    memory, v, rows = units(n_rows, 4), units(2, 3, 4, seed=1), torch.tensor([4, 0, 2])
    found = mean_shift(v, memory, rows)
    for a in range(2):
        for i, row in enumerate(rows.tolist()):
            expected = slow_shift(v[a, i].tolist(), memory.tolist(), row)
            assert found[a, i].tolist() == pytest.approx(expected)


@pytest.mark.parametrize("codes", [[0, 1, 0, -1, -1], [-1, -1, -1], [0, 1, 1, 0]])
@pytest.mark.parametrize("share", [0.0, 0.35, 1.0])
def test_the_loss_is_that_of_the_paper(codes, share):
    learner = MeanShiftContrast(
        Settings(supervised_weight=share, contrastive_temperature=0.3), n_rows=11
    )
    head = learner.head(16)
    head.memory.copy_(units(11, 16))
    h, rows = units(2, len(codes), 16, seed=3).float(), torch.arange(len(codes)) * 2
    memory, codes = head.memory.tolist(), torch.tensor(codes)
    loss = learner.loss(Batch(h, (3 * h).requires_grad_(), codes, codes, None, 0, rows))
    expected = slow_loss(h.tolist(), codes.tolist(), memory, rows.tolist(), 0.3, share)
    assert loss.item() == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_the_memory_keeps_the_latest_embedding_and_the_first_epoch_has_no_nan():
    learner = MeanShiftContrast(Settings(), n_rows=6)
    head, codes = learner.head(16), torch.tensor([0, -1])
    h = units(2, 2, 16).float().requires_grad_()
    loss = learner.loss(Batch(h, h, codes, codes, None, 0, torch.tensor([4, 1])))
    loss.backward()
    assert torch.isfinite(h.grad).all()
    expected = torch.nn.functional.normalize(h.detach().sum(dim=0), dim=1)
    torch.testing.assert_close(head.memory[[4, 1]], expected)
    assert (head.memory[[0, 2, 3, 5]] == 0).all()


def test_shifting_all_rows_in_parts_is_the_same(monkeypatch):
    v = units(20, 5)
    whole = shift(v)
    monkeypatch.setattr(module, "_CHUNK", 7)
    torch.testing.assert_close(shift(v), whole)
    expected = [slow_shift(row, v.tolist(), i) for i, row in enumerate(v.tolist())]
    np.testing.assert_allclose(whole, expected)


def test_of_a_row_that_occurs_twice_in_a_batch_the_last_embedding_is_remembered():
    rows, values, memory = torch.tensor([4, 1, 4, 0, 1, 4]), units(6, 3), torch.zeros(6, 3).double()
    remember(memory, rows, values)
    expected = torch.zeros_like(memory)
    for row, value in zip(rows.tolist(), values, strict=True):
        expected[row] = value
    torch.testing.assert_close(memory, expected)


# --- K


@pytest.fixture(scope="module")
def blobs():
    """Five classes on a sphere that overlap a little; three are known, half of them labelled."""
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(5), 24)
    Z = (np.eye(8)[truth] + 0.35 * rng.normal(size=(120, 8))).astype(np.float32)
    return Z, truth, np.where((truth < 3) & (rng.random(120) < 0.5), truth, -1)


def test_cuts_are_those_of_scipys_tree(blobs):
    Z, _, y = blobs
    tree = hierarchy.ward(Z.astype(np.float64))
    cuts = list(module.ward_cuts(Z, y, None, 0))
    assert [len(np.unique(labels)) for labels in cuts] == list(range(60, 2, -1))
    for labels in cuts:
        expected = hierarchy.fcluster(tree, labels.max() + 1, "maxclust")
        assert adjusted_rand_score(labels, expected) == 1
    (given,) = module.ward_cuts(Z, y, 5, 0)
    np.testing.assert_array_equal(given, cuts[55])


def test_the_match_is_over_all_labelled_rows_and_the_accuracy_over_the_judged_ones():
    codes = np.array([0, 0, 0, 1, 1, 1, -1])
    labels = np.array([5, 5, 7, 3, 3, 3, 7])
    judged = np.array([False, True, True, False, False, True, False])
    assert accuracy(codes, labels, judged) == pytest.approx(2 / 3)
    # each judged row alone in a cluster would fit any match over these rows only
    alone = np.array([0, 1, 2, 3, 3, 4, 5])
    assert accuracy(codes, alone, judged) < 1
    assert accuracy(np.full(7, -1), labels, np.zeros(7, dtype=bool)) == 0


def test_k_is_found_and_given(blobs, tmp_path):
    Z, truth, y = blobs
    found = CMS(settings=DIGITS, folder=tmp_path).fit(Z, y)
    assert found.k_source_ == "Ward's tree on the finished features"
    assert len(np.unique(found.labels_)) == found.n_components_ >= 3
    given = CMS(5, settings=DIGITS, folder=tmp_path).fit(Z, y)
    assert (given.n_components_, given.k_source_) == (5, "given")
    free = y == -1
    assert discovery_scores(truth[free], given.labels_[free], [0, 1, 2]).all > 0.9
    # the rows are shifted at least once, because that helps here
    (unshifted,) = module.ward_cuts(Z, y, 5, 0)
    assert accuracy(y, given.labels_, y >= 0) > accuracy(y, unshifted, y >= 0)


def test_shifts_end_when_the_accuracy_stops_rising(blobs, tmp_path, monkeypatch):
    accuracies = iter([0.5, 0.7, 0.7, 0.9])
    monkeypatch.setattr(module, "accuracy", lambda *_: next(accuracies))
    CMS(5, settings=DIGITS, folder=tmp_path).fit(blobs[0], blobs[2])
    assert list(accuracies) == [0.9]


def test_without_labels_k_must_be_given(blobs, tmp_path):
    none = np.full(120, -1)
    with pytest.raises(InputError, match=r"there are none\. Give n_components"):
        CMS(settings=DIGITS, folder=tmp_path).fit(blobs[0], none)
    assert CMS(4, settings=DIGITS, folder=tmp_path).fit(blobs[0], none).n_components_ == 4


# --- learning


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cms")


@pytest.fixture(scope="module")
def trained(folder, seven_digits):
    settings = QUICK.with_changes(epochs=10)
    return CMS(7, settings=settings, folder=folder).fit(seven_digits.pixels, seven_digits.y)


def test_it_learns_known_and_novel_digits(trained, seven_digits, tmp_path):
    def old(method):
        free = seven_digits.y == -1
        return discovery_scores(seven_digits.truth[free], method.labels_[free], range(5)).old

    options = {"settings": QUICK.with_changes(epochs=1, learning_rate=0.0), "folder": tmp_path}
    before = CMS(7, **options).fit(seven_digits.pixels, seven_digits.y)
    assert old(trained) > old(before) + 0.1
    assert len(trained.history_) == 10


def test_k_known_and_unknown_share_a_training(trained, folder, seven_digits, tmp_path):
    settings = bench_settings("digits", method="cms")
    cases = [make_case("cms", "digits", settings, k=k) for k in ("known", "own", "brent")]
    assert len({run_folder(case, tmp_path, k) for k, case in enumerate(cases, start=7)}) == 1

    class None_(Listener):
        def epoch(self, record):
            raise AssertionError("it trains again")

    found = CMS(settings=QUICK.with_changes(epochs=10), folder=folder, listener=None_())
    found.fit(seven_digits.pixels, seven_digits.y)
    np.testing.assert_array_equal(found.features_, trained.features_)
    assert found.n_components_ >= 5


def test_an_interrupted_training_resumes_to_the_same_bits(few_digits, tmp_path):
    class Stop(Listener):
        def epoch(self, record):
            raise InterruptedError

    whole = CMS(7, settings=QUICK, folder=tmp_path / "a").fit(few_digits.pixels, few_digits.y)
    with pytest.raises(InterruptedError):
        CMS(7, settings=QUICK, folder=tmp_path / "b", listener=Stop()).fit(
            few_digits.pixels, few_digits.y
        )
    resumed = CMS(7, settings=QUICK, folder=tmp_path / "b").fit(few_digits.pixels, few_digits.y)
    np.testing.assert_array_equal(resumed.features_, whole.features_)
    memories = [load_checkpoint(tmp_path / x / LAST)[0]["network.head.memory"] for x in "ab"]
    assert torch.equal(*memories)
    assert (memories[0].norm(dim=1) > 0).all()  # two epochs have seen all images


def test_a_batch_knows_its_rows(few_digits, tmp_path, monkeypatch):
    loss, seen = MeanShiftContrast.loss, []

    def spy(self, batch):
        seen.append((batch.rows, batch.codes))
        return loss(self, batch)

    monkeypatch.setattr(MeanShiftContrast, "loss", spy)
    settings = QUICK.with_changes(epochs=1, validation_share=0.0)
    CMS(7, settings=settings, folder=tmp_path).fit(few_digits.pixels, few_digits.y)
    rows, codes = (torch.cat(parts).numpy() for parts in zip(*seen, strict=True))
    np.testing.assert_array_equal(codes, few_digits.y[rows])
    assert len(set(codes)) == 6


def test_training_does_not_see_the_held_out_labels(few_digits, tmp_path, monkeypatch):
    seen = []

    def stop(self, learner, pixels, codes):
        seen.append((codes, learner.settings.losses.contrastive_temperature))
        raise InterruptedError

    monkeypatch.setattr(BenchMethod, "_train", stop)
    for value in (None, 0.7):
        with pytest.raises(InterruptedError):
            CMS(7, settings=DIGITS, folder=tmp_path, knob_value=value).fit(
                few_digits.pixels, few_digits.y
            )
    (codes, default), (_, tuned) = seen
    assert (default, tuned) == (0.3, 0.7)
    hidden = (codes == -1) & (few_digits.y >= 0)
    assert 0 < hidden.sum() < 0.2 * (few_digits.y >= 0).sum()
    assert set(codes) == set(few_digits.y)
