"""Ranking statistics and their losses against loops over pairs, and on pictures of digits."""

import math

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch.nn.functional import normalize

from newfound.bench.methods import find_method
from newfound.bench.methods.rankstats import (
    Ranking,
    RankStats,
    branch_loss,
    consistency_weight,
    pairwise_loss,
    same_ranking,
)
from newfound.deep.method import Batch
from newfound.deep.settings import Settings
from newfound.errors import InputError
from newfound.metrics import discovery_scores
from newfound.workflows.demo import DIGITS

torch.set_num_threads(1)

N_ROWS, N_FEATURES, N_KNOWN, N_COMPONENTS = 7, 6, 2, 5
CODES = {
    "some": [0, 1, -1, -1, 1, -1, -1],
    "none": [-1] * N_ROWS,
    "all": [0, 1, 1, 0, 0, 1, 0],
    "one unlabelled": [0, 1, 1, 0, 0, 1, -1],
}


def randn(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def slow_same(features, top_k):
    """Sets of places; of equal values the first in order."""
    tops = []
    for row in features.tolist():
        places = sorted(range(len(row)), key=lambda place: (-abs(row[place]), place))
        tops.append(set(places[:top_k]))
    return [[a == b for b in tops] for a in tops]


def slow_pairs(p_a, p_b, same, rows):
    terms = []
    for i in rows:
        for j in rows:
            agreement = sum(float(a) * float(b) for a, b in zip(p_a[i], p_b[j], strict=True))
            terms.append(-math.log((agreement if same[i][j] else 1 - agreement) + 1e-7))
    return sum(terms) / len(terms) if terms else 0.0


def slow_softmax(row):
    exps = [math.exp(value) for value in row]
    return [value / sum(exps) for value in exps]


def slow_branch(logits, statistic, codes, weight):
    p_a, p_b = ([slow_softmax(row) for row in view] for view in logits.tolist())
    labelled = [i for i, code in enumerate(codes) if code >= 0]
    known = [-math.log(p_a[i][codes[i]]) for i in labelled]
    squares = [
        (a - b) ** 2
        for row_a, row_b in zip(p_a, p_b, strict=True)
        for a, b in zip(row_a, row_b, strict=True)
    ]
    free = [i for i, code in enumerate(codes) if code < 0]
    return (
        (sum(known) / len(known) if known else 0.0)
        + slow_pairs(p_a, p_b, slow_same(statistic, 5), free)
        + weight * sum(squares) / len(squares)
    )


@pytest.mark.parametrize("top_k", [1, 2, 5, 6, 40])
@pytest.mark.parametrize("kind", ["random", "ties", "zeros"])
def test_the_ranking_statistic_compares_sets(top_k, kind):
    features = randn(30, N_FEATURES)
    if kind == "ties":
        features = features.round()
    if kind == "zeros":
        features = features.clamp(min=0.8) - 0.8
    same = same_ranking(features, top_k)
    assert same.tolist() == slow_same(features, top_k)
    assert same.diagonal().all()
    if top_k >= N_FEATURES:
        assert same.all()
    elif top_k > 1:
        assert not same.all()
        assert same.sum() > len(same)


def test_neither_sign_nor_length_nor_the_order_of_the_top_matters():
    features = torch.tensor([[9.0, -8, 1, 0], [0.8, 0.9, 0, 0.1], [-8, 1, 9, 0]])
    same = same_ranking(features, 2)
    assert same.tolist() == [[True, True, False], [True, True, False], [False, False, True]]
    torch.testing.assert_close(same_ranking(normalize(features, dim=1), 2), same)


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("seed", [0, 5])
def test_the_pairwise_loss_is_a_mean_over_pairs(name, seed):
    p_a, p_b = randn(2, N_ROWS, 4, seed=seed).softmax(dim=2)
    same = same_ranking(randn(N_ROWS, 3, seed=seed + 1), 1)
    codes = torch.tensor(CODES[name])
    rows = np.flatnonzero(codes < 0).tolist()
    expected = slow_pairs(p_a, p_b, same.tolist(), rows)
    loss = pairwise_loss(p_a, p_b, same, codes < 0)
    assert loss.item() == pytest.approx(expected, abs=1e-9)


def test_certain_and_contrary_probabilities_have_finite_gradients():
    logits = torch.tensor([[200.0, 0], [200.0, 0], [0, 200.0]], requires_grad=True)
    p = logits.softmax(dim=1)
    for same in (torch.ones(3, 3, dtype=torch.bool), torch.zeros(3, 3, dtype=torch.bool)):
        loss = pairwise_loss(p, p, same, torch.ones(3, dtype=torch.bool))
        (gradient,) = torch.autograd.grad(loss, logits, retain_graph=True)
        assert torch.isfinite(loss)
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("weight", [0.0, 50.0])
@pytest.mark.parametrize("seed", [0, 3])
def test_the_loss_of_a_branch_is_its_equation(name, weight, seed):
    logits = randn(2, N_ROWS, N_COMPONENTS, seed=seed).requires_grad_()
    statistic = randn(N_ROWS, N_FEATURES, seed=seed + 1)
    loss = branch_loss(logits, statistic, torch.tensor(CODES[name]), weight)
    assert loss.item() == pytest.approx(slow_branch(logits, statistic, CODES[name], weight))
    loss.backward()
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad != 0).any()


def test_outputs_out_of_use_are_silent():
    used = torch.tensor([True, True, False, True, False, True])
    logits = randn(2, N_ROWS, 6).requires_grad_()
    masked = logits.masked_fill(~used, -torch.inf)
    statistic, codes = randn(N_ROWS, N_FEATURES, seed=1), torch.tensor(CODES["some"])
    loss = branch_loss(masked, statistic, codes, 50.0)
    torch.testing.assert_close(loss, branch_loss(logits[..., used], statistic, codes, 50.0))
    (gradient,) = torch.autograd.grad(loss, logits)
    assert (gradient[..., ~used] == 0).all()
    assert torch.isfinite(gradient).all()
    assert (gradient[..., used] != 0).all(dim=(0, 1)).any()


def test_the_consistency_rises_to_its_weight_in_three_quarters_of_the_epochs():
    weights = [consistency_weight(epoch, 200) for epoch in range(200)]
    assert weights[0] == pytest.approx(50 * math.exp(-5))
    assert weights[75] == pytest.approx(50 * math.exp(-5 / 4))
    assert (np.diff(weights[:151]) > 0).all()
    assert weights[150:] == [50.0] * 50
    assert consistency_weight(0, 1) == pytest.approx(50 * math.exp(-5))


def some_batch(codes, **changes):
    values = {
        "z": normalize(randn(2, N_ROWS, N_FEATURES).float(), dim=-1),
        "h": randn(2, N_ROWS, N_COMPONENTS, seed=1).float(),
        "codes": torch.tensor(codes),
        "assigned": torch.zeros(N_ROWS, dtype=torch.long),
        "prototypes": None,
        "epoch": 3,
    }
    return Batch(**{**values, **changes})


@pytest.mark.parametrize("name", CODES)
def test_the_learner_ranks_the_features_of_the_first_view(name):
    learner = Ranking(Settings(epochs=20), N_KNOWN, N_COMPONENTS)
    batch = some_batch(CODES[name])
    expected = slow_branch(batch.h, batch.z[0], CODES[name], consistency_weight(3, 20))
    assert learner.loss(batch).item() == pytest.approx(expected, rel=1e-5)
    narrow = learner.loss(some_batch(CODES[name], h=batch.h.bfloat16()))
    assert narrow.dtype == torch.float32
    assert not learner.uses_prototypes
    head = learner.head(N_FEATURES)
    assert learner.logits(head(batch.z[0])).shape == (N_ROWS, N_COMPONENTS)


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
    before = RankStats(7, settings=untrained, folder=tmp_path / "before").fit(pixels, y)
    after = RankStats(7, settings=settings, folder=tmp_path / "after").fit(pixels, y)
    free = y == -1
    scores = [
        discovery_scores(truth[free], method.labels_[free], range(5)) for method in (before, after)
    ]
    assert scores[1].old > scores[0].old + 0.25
    assert scores[1].all > scores[0].all + 0.15
    assert after.history_[-1].loss < 0.7 * after.history_[0].loss
    # the outputs of known classes are these classes
    labelled = y != -1
    assert (after.labels_[labelled] == y[labelled]).mean() > 0.75
    assert after.n_components_ == 7
    assert after.features_.shape == (len(pixels), 96)


def test_k_must_be_given_and_images_too(tmp_path):
    method = RankStats(settings=DIGITS, folder=tmp_path)
    assert not method.finds_k
    with pytest.raises(InputError, match=r"RankStats\+ cannot find K"):
        method.fit(np.zeros((4, 3, 8, 8), np.uint8), [0, 1, -1, -1])
    with pytest.raises(InputError, match="learns from images"):
        RankStats(3, settings=DIGITS, folder=tmp_path).fit(np.zeros((4, 5)), [0, 1, -1, -1])


def test_what_the_tables_read():
    assert find_method("rankstats") is RankStats
    assert RankStats.title == "RankStats+"
    assert "2021" in RankStats.source
    assert "Departures" in RankStats.__doc__
    assert "joint" in RankStats.variants
