"""BaCon: its losses and its estimate of sizes against loops over rows, and that it learns."""

import math

import numpy as np
import pytest
import torch

from newfound.bench.method import BenchMethod
from newfound.bench.methods.bacon import (
    BaCon,
    BaConLearner,
    draw_rows,
    estimate_sizes,
    sized_gap,
    soft_contrastive_loss,
    soft_labels,
)
from newfound.bench.methods.simgcd import distillation_loss, teacher_temperature
from newfound.deep.checkpoint import LAST, load_checkpoint
from newfound.deep.method import Batch, mixed_contrast
from newfound.deep.records import Listener
from newfound.deep.settings import Settings
from newfound.errors import InputError
from newfound.metrics import discovery_scores
from newfound.workflows.demo import DIGITS

QUICK = DIGITS.with_changes(epochs=2, n_labelled_per_batch=16, n_unlabelled_per_batch=48)


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def units(*shape, seed=0):
    return torch.nn.functional.normalize(randn(*shape, seed=seed), dim=-1)


# --- slow references


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def softmax(row):
    exps = [math.exp(value) for value in row]
    return [value / sum(exps) for value in exps]


def slow_gap(probabilities, sizes):
    rows = probabilities.reshape(-1, len(sizes)).tolist()
    means = [sum(row[k] for row in rows) / len(rows) / sizes[k] ** 1.1 for k in range(len(sizes))]
    means = [value / sum(means) for value in means]
    return math.log(len(sizes)) + sum(value * math.log(value) for value in means)


def slow_soft_loss(h, soft, rows, tau):
    """View by view."""
    views = [(h[a][i], i) for a in range(2) for i in range(len(soft)) if rows[i]]
    losses = []
    for place, (one, i) in enumerate(views):
        others = [view for other, view in enumerate(views) if other != place]
        total = sum(math.exp(dot(one, other) / tau) for other, _ in others)
        weights = [1.0 if i == j else dot(soft[i], soft[j]) for _, j in others]
        terms = [
            weight * (dot(one, other) / tau - math.log(total))
            for weight, (other, _) in zip(weights, others, strict=True)
        ]
        losses.append(-sum(terms) / sum(weights))
    return sum(losses) / max(1, len(losses))


def slow_draws(soft, codes, sizes, chances):
    """Class by class, with the same draws."""
    taken = [code >= 0 for code in codes]
    for k in range(len(sizes)):
        rate = 1.0 if k in codes else math.sqrt(min(sizes) / sizes[k])
        own = [i for i, s in enumerate(soft) if codes[i] < 0 and s.index(max(s)) == k]
        n_drawn = sum(chances[i] < rate for i in own)
        for i in sorted(own, key=lambda i: -max(soft[i]))[:n_drawn]:
            taken[i] = True
    return taken


@pytest.mark.parametrize("shape", [(2, 6, 3), (2, 4, 5)])
def test_the_regularisation_expects_unequal_sizes(shape):
    p, sizes = randn(*shape).softmax(dim=-1), torch.arange(1, shape[-1] + 1).double()
    assert sized_gap(p, sizes).item() == pytest.approx(slow_gap(p, sizes.tolist()))
    wanted = (sizes**1.1 / (sizes**1.1).sum()).expand(shape)
    assert sized_gap(wanted, sizes).item() == pytest.approx(0, abs=1e-12)


def test_soft_labels_favour_small_classes():
    logits, sizes = randn(2, 5, 3), torch.tensor([9.0, 4.0, 1.0]).double()
    rows = []
    for i in range(5):
        views = [
            softmax([logits[a, i, k].item() - math.log(math.sqrt(sizes[k] / 14)) for k in range(3)])
            for a in range(2)
        ]
        rows.append([sum(pair) / 2 for pair in zip(*views, strict=True)])
    np.testing.assert_allclose(soft_labels(logits, sizes), rows)


@pytest.mark.parametrize("rows", [[True] * 5, [True, False, True, True, False], [False] * 5])
def test_the_soft_loss_is_that_of_the_authors(rows):
    h, soft = units(2, 5, 4).requires_grad_(), randn(5, 3, seed=1).softmax(dim=1)
    loss = soft_contrastive_loss(h, soft, torch.tensor(rows), 0.3)
    assert loss.item() == pytest.approx(slow_soft_loss(h.tolist(), soft.tolist(), rows, 0.3))
    loss.backward()
    assert torch.isfinite(h.grad).all()


@pytest.mark.parametrize("seed", range(4))
def test_the_most_confident_rows_are_drawn(seed):
    soft = (3 * randn(40, 4, seed=seed)).softmax(dim=1)
    codes = torch.tensor([0, 0, 1, *([-1] * 37)])
    sizes = torch.tensor([5.0, 60.0, 20.0, 1.0])
    torch.manual_seed(seed)
    chances = torch.rand(40).tolist()
    torch.manual_seed(seed)
    found = draw_rows(soft, codes, sizes)
    expected = slow_draws(soft.tolist(), codes.tolist(), sizes.tolist(), chances)
    assert found.tolist() == expected
    assert 3 < sum(expected) < 40


def test_sizes_are_those_of_matched_clusters():
    # cluster 2 is mostly class 0, cluster 0 class 1; clusters 1 and 3 have no label
    labels = np.repeat([0, 1, 2, 3], [6, 9, 4, 12])
    codes = np.full(31, -1)
    codes[[0, 1, 2]], codes[[15, 16]] = 1, 0
    assert estimate_sizes(labels, codes, 4).tolist() == [4, 6, 12, 9]
    # a class with fewer labels than another is not larger
    codes[3:6] = 1
    labels = np.repeat([2, 1, 0, 3], [6, 9, 14, 12])[:31]
    assert estimate_sizes(labels, codes, 4).tolist() == [6, 14, 9, 2]
    assert estimate_sizes(np.zeros(5, dtype=np.int64), np.full(5, -1), 2).tolist() == [5, 1]


@pytest.mark.parametrize("epoch", [0, 3])
@pytest.mark.parametrize("codes", [[0, 1, 0, -1, -1], [-1, -1, -1]])
def test_the_whole_loss(epoch, codes):
    settings = Settings(contrastive_temperature=1.0)
    learner = BaConLearner(settings, 2, 4)
    learner.knob = 0.7
    learner.head(16).sizes.copy_(torch.tensor([3.0, 1.0, 2.0, 1.0]))
    sizes, codes = learner._head.sizes.float(), torch.tensor(codes)
    cosines, proj = torch.tanh(randn(2, len(codes), 4)).float(), units(2, len(codes), 16).float()
    h = torch.cat([cosines, proj], dim=-1).requires_grad_()
    torch.manual_seed(1)
    loss = learner.loss(Batch(proj, h, codes, codes, None, epoch))
    student = cosines / 0.1
    cls = distillation_loss(student, cosines / teacher_temperature(epoch, 200)).item()
    cls = 0.65 * (cls + 0.7 * slow_gap(student.softmax(dim=-1), sizes.tolist()))
    known = [(a, i) for a in range(2) for i in range(len(codes)) if codes[i] >= 0]
    for a, i in known:
        cls -= 0.35 * math.log(softmax(student[a, i].tolist())[codes[i]]) / len(known)
    con = mixed_contrast(proj, codes, settings.losses).item()
    if epoch:
        info = mixed_contrast(proj, torch.full_like(codes, -1), settings.losses).item()
        soft = soft_labels(student, sizes)
        torch.manual_seed(1)
        rows = draw_rows(soft, codes, sizes).tolist()
        extra = slow_soft_loss(proj.tolist(), soft.tolist(), rows, 0.07)
        con = info + (con - info) / 2 + 0.35 / 2 * extra
    assert loss.item() == pytest.approx(cls + con, rel=1e-4)
    loss.backward()
    assert torch.isfinite(h.grad).all()


# --- learning


def test_it_learns_known_and_novel_digits(seven_digits, tmp_path):
    method = BaCon(7, settings=QUICK.with_changes(epochs=8), folder=tmp_path, n_starts=2)
    method.fit(seven_digits.pixels, seven_digits.y)
    free = seven_digits.y == -1
    scores = discovery_scores(seven_digits.truth[free], method.labels_[free], range(5))
    assert scores.old > 0.6
    assert (method.n_components_, method.k_source_) == (7, "given")


def test_an_interrupted_training_resumes_to_the_same_bits(few_digits, tmp_path):
    class Stop(Listener):
        def epoch(self, record):
            raise InterruptedError

    def fit(folder, **options):
        method = BaCon(8, settings=QUICK, folder=tmp_path / folder, n_starts=1, **options)
        return method.fit(few_digits.pixels, few_digits.y)

    whole = fit("a")
    with pytest.raises(InterruptedError):
        fit("b", listener=Stop())
    np.testing.assert_array_equal(fit("b").features_, whole.features_)
    sizes = [load_checkpoint(tmp_path / name / LAST)[0]["network.head.sizes"] for name in "ab"]
    assert torch.equal(*sizes)
    assert sizes[0].sum() == len(few_digits.y)


def test_k_is_no_less_than_the_number_of_known_classes(few_digits, tmp_path):
    with pytest.raises(InputError, match="5 known classes"):
        BaCon(4, settings=QUICK, folder=tmp_path / "run").fit(few_digits.pixels, few_digits.y)
    assert not (tmp_path / "run").exists()


def test_the_value_of_the_knob_reaches_what_is_trained(few_digits, tmp_path, monkeypatch):
    seen = []

    def stop(self, learner, pixels, codes):
        seen.append(learner.knob)
        raise InterruptedError

    monkeypatch.setattr(BenchMethod, "_train", stop)
    for value in (None, 0.7):
        with pytest.raises(InterruptedError):
            BaCon(7, settings=QUICK, folder=tmp_path, knob_value=value).fit(
                few_digits.pixels, few_digits.y
            )
    assert seen == [1.0, 0.7]
