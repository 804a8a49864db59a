"""ORCA, UNO, AutoNovel, DualRank, BaCon and DCCL: our losses against numbers of the authors' code.

The authors' public code was run once on the inputs that this file makes from a seed, and what it
returned is stored in one JSON file per method, with the repository, the commit and the name of the
function. None of that code is here. Where ours departs on purpose, the input is one for which the
departure makes no difference; the field "note" says how.
"""

import json
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch.nn.functional import normalize

from newfound.bench.classifier import CosineClassifier
from newfound.bench.communities import Graph, find_communities, map_equation, neighbour_graph
from newfound.bench.methods import bacon, dccl, rankstats, simgcd, uno
from newfound.bench.methods.dualrank import DualRanking, PartDictionary
from newfound.bench.methods.orca import ORCALearner
from newfound.deep.losses import prototype_loss, supervised_contrastive_loss
from newfound.deep.method import Batch
from newfound.deep.settings import Settings

torch.set_num_threads(1)

FOLDER = Path(__file__).parent


def theirs(method, name):
    """What the authors' code returned."""
    checks = json.loads((FOLDER / f"{method}.json").read_text())["checks"]
    return next(check["value"] for check in checks if check["name"] == name)


def assert_same(ours, method, name, rel=2e-5, abs=2e-6):
    ours = ours.detach().numpy() if isinstance(ours, torch.Tensor) else np.asarray(ours)
    np.testing.assert_allclose(ours, np.asarray(theirs(method, name)), rtol=rel, atol=abs)


def floats(rng, *shape):
    return torch.from_numpy(rng.standard_normal(shape)).float()


def units(rng, *shape):
    return normalize(floats(rng, *shape), dim=-1)


def set_parameters(module, rng):
    """The same parameters whatever the version of torch."""
    with torch.no_grad():
        for value in module.parameters():
            value.copy_(0.3 * floats(rng, *value.shape))


# --- ORCA


def orca_inputs():
    """Two views of 7 labelled and 9 unlabelled rows, and prototypes of 6 classes, 4 of them known.

    No class has more than two labelled rows: its pairs are the same with and without a draw.
    """
    rng = np.random.default_rng(11)
    codes = torch.tensor([0, 1, 1, 2, 0, 3, 3, *[-1] * 9])
    return SimpleNamespace(
        features=floats(rng, 2, 16, 5), prototypes=floats(rng, 6, 5), codes=codes
    )


def our_orca(uncertainty):
    """The learner, its head, and a function that makes the batch of an epoch."""
    inputs = orca_inputs()
    learner = ORCALearner(Settings(), 4, 6)
    head = learner.head(5)
    head.classifier.prototypes.data.copy_(inputs.prototypes)
    head.uncertainty.fill_(uncertainty)

    def batch(epoch):
        h = head(inputs.features.flatten(0, 1)).view(2, 16, 6)
        return Batch(normalize(inputs.features, dim=2), h, inputs.codes, inputs.codes, None, epoch)

    return learner, head, batch


@pytest.mark.parametrize("uncertainty", [0.0, 0.3, 0.8])
def test_orca_trains_by_the_authors_loss(uncertainty):
    learner, head, batch = our_orca(uncertainty)
    loss = learner.loss(batch(0))
    # the authors leave out the constant log K
    assert_same(loss - math.log(6), "orca", f"loss, uncertainty {uncertainty}")
    loss.backward()
    gradient = head.classifier.prototypes.grad
    assert_same(gradient, "orca", f"gradient, uncertainty {uncertainty}")


def test_orca_is_as_uncertain_as_the_authors_say():
    learner, head, batch = our_orca(1.0)
    learner.loss(batch(0))
    learner.loss(batch(1))
    assert_same(head.uncertainty, "orca", "uncertainty")


# --- UNO


def uno_inputs(labelled):
    """Cosines of 4 heads, two views, 10 rows: 3 known and 4 novel outputs, or 7 novel ones."""
    rng = np.random.default_rng(12)
    known, novel = (torch.tanh(floats(rng, *shape)) for shape in ((2, 10, 3), (4, 2, 10, 4)))
    known = known.expand(4, 2, 10, 3)
    codes = {
        "all": torch.from_numpy(rng.integers(0, 3, size=10)),
        "some": torch.tensor([0, 2, 1, -1, -1, 0, -1, -1, -1, -1]),
        "none": torch.full((10,), -1),
    }[labelled]
    return SimpleNamespace(cosines=torch.cat([known, novel], dim=-1), codes=codes)


def test_uno_spreads_rows_as_the_authors_do():
    cosines = uno_inputs("none").cosines[0, 0]
    assert_same(uno.deal_evenly(cosines, torch.ones(10, dtype=torch.bool)), "uno", "targets")


@pytest.mark.parametrize("labelled", ["all", "some", "none"])
def test_uno_predicts_the_other_view_as_the_authors_do(labelled):
    inputs = uno_inputs(labelled)
    cosines = inputs.cosines.clone().requires_grad_()
    losses = uno.swapped_prediction(cosines, inputs.codes)
    assert_same(losses, "uno", f"losses of the heads, {labelled} labelled")
    losses.mean().backward()
    assert_same(cosines.grad[1, 0, :, 3:], "uno", f"gradient, {labelled} labelled")


def test_uno_has_the_authors_head():
    rng = np.random.default_rng(13)
    rows, head = units(rng, 5, 6), uno._projected_classifier(6, 3)
    set_parameters(head, rng)
    assert_same(head(rows), "uno", "cosines of a head")


# --- AutoNovel


def autonovel_inputs():
    """Logits of two views, 6 labelled and 14 unlabelled rows, and features without negatives."""
    rng = np.random.default_rng(14)
    codes = torch.tensor([0, 1, 2, 1, 0, 2, *[-1] * 14])
    return SimpleNamespace(
        logits=2 * floats(rng, 2, 20, 5), features=floats(rng, 20, 7).abs(), codes=codes
    )


@pytest.mark.parametrize("epoch", [0, 40, 160])
def test_autonovel_has_the_authors_loss(epoch):
    inputs = autonovel_inputs()
    logits = inputs.logits.clone().requires_grad_()
    learner = rankstats.Ranking(Settings(epochs=200), 3, 5)
    batch = Batch(inputs.features[None], logits, inputs.codes, inputs.codes, None, epoch)
    loss = learner.loss(batch)
    assert_same(loss, "autonovel", f"loss, epoch {epoch}")
    loss.backward()
    assert_same(logits.grad[:, ::4], "autonovel", f"gradient, epoch {epoch}")


def test_autonovel_ranks_as_the_authors_do():
    inputs = autonovel_inputs()
    same = rankstats.same_ranking(inputs.features[inputs.codes < 0])
    assert len(same) < same.sum() < same.numel() / 2  # some pairs agree
    assert_same(same.int(), "autonovel", "pairs")


def test_autonovel_ramps_up_as_the_authors_do():
    weights = [rankstats.consistency_weight(t, 200) for t in (0, 1, 10, 75, 149, 150, 199)]
    assert_same(weights, "autonovel", "ramp-up", rel=1e-12)


# --- DualRank


def dualrank_inputs():
    """A batch of 6 labelled and 14 unlabelled rows, seen by both branches."""
    rng = np.random.default_rng(15)
    local = floats(rng, 20, 5)
    return SimpleNamespace(
        whole=2 * floats(rng, 2, 20, 5),
        local=torch.stack([local, local]),  # both views alike
        features=floats(rng, 2, 20, 7).abs(),
        local_features=floats(rng, 2, 20, 7).abs(),
        bag=floats(rng, 20, 2048).abs(),
        memories=units(rng, 2, 2048, 7),
        codes=torch.tensor([0, 1, 2, 1, 0, 2, *[-1] * 14]),
    )


def coarse_bag(bag):
    """Shares of words such that the same few words are the largest in many images."""
    return torch.cat([3 + bag[:, :7], bag[:, 7:] / 10], dim=1)


def test_dualrank_has_the_authors_loss():
    inputs = dualrank_inputs()
    learner = DualRanking(Settings(epochs=200), 3, 5)
    branches = learner.head(7)
    for memory, rows in zip(
        (branches.whole_memory, branches.local_memory), inputs.memories, strict=True
    ):
        memory.store[:-1] = rows
    bag = coarse_bag(inputs.bag).expand(2, -1, -1)
    h = torch.cat([inputs.whole, inputs.local, inputs.local_features, bag], dim=2)
    h.requires_grad_()
    z = normalize(inputs.features, dim=2)
    loss = learner.loss(Batch(z, h, inputs.codes, inputs.codes, None, 40))
    assert_same(loss, "dualrank", "loss")
    loss.backward()
    assert_same(h.grad[0, ::4, :5], "dualrank", "gradient of the global logits")
    assert_same(h.grad[0, 10, 10:17], "dualrank", "gradient of a local feature")
    rows = branches.local_memory.rows()
    assert_same(rows[:16, 0], "dualrank", "memory after the batch")


def part_inputs():
    """Maps of 3 × 2 inner positions with 4 channels, as parts (5, 6, 4), and 8 words."""
    rng = np.random.default_rng(16)
    return SimpleNamespace(parts=floats(rng, 5, 6, 4), words=floats(rng, 8, 4))


def test_dualrank_shares_words_as_the_authors_do():
    inputs = part_inputs()
    dictionary = PartDictionary(8, 4)
    dictionary.words.store[:-1] = inputs.words
    dictionary.spread.fill_(0.5)
    assert_same(dictionary(inputs.parts), "dualrank", "shares of words")
    assert_same(dictionary.spread, "dualrank", "mean distance to the nearest word")


# --- BaCon


def bacon_inputs():
    """Outputs of both branches for 8 labelled and 16 unlabelled rows, 6 classes, 3 of them known.

    `draws` are the uniform numbers that decide which rows take part.
    """
    rng = np.random.default_rng(17)
    return SimpleNamespace(
        cosines=0.4 * torch.tanh(floats(rng, 2, 24, 6)),
        projected=units(rng, 2, 24, 9),
        codes=torch.tensor([0, 1, 0, 1, 1, 0, 1, 0, *[-1] * 16]),
        sizes=torch.tensor([40.0, 25.0, 11.0, 60.0, 17.0, 5.0]),
        draws=torch.from_numpy(rng.random(24)).float(),
    )


def bacon_clusters():
    """Clusters of 300 rows with 7 classes, of which 4 are known, and the labels of some."""
    rng = np.random.default_rng(18)
    truth = rng.choice(7, size=300, p=[0.3, 0.2, 0.15, 0.1, 0.12, 0.08, 0.05])
    found = np.where(rng.random(300) < 0.7, truth, rng.integers(0, 7, size=300))
    clusters = rng.permutation(7)[found]
    labelled = (truth < 4) & (rng.random(300) < 0.5)
    return SimpleNamespace(clusters=clusters, truth=truth, codes=np.where(labelled, truth, -1))


def test_bacon_estimates_the_authors_sizes():
    inputs = bacon_clusters()
    sizes = bacon.estimate_sizes(inputs.clusters, inputs.codes, 7)
    assert_same(sizes, "bacon", "sizes", rel=0)


def test_bacon_draws_sizes_as_the_authors_do():
    inputs = bacon_inputs()
    cosines = inputs.cosines.clone().requires_grad_()
    gap = bacon.sized_gap((cosines / 0.1).softmax(dim=-1), inputs.sizes)
    assert_same(gap, "bacon", "regularisation")
    gap.backward()
    assert_same(cosines.grad[0, ::6], "bacon", "gradient of the regularisation")


@pytest.mark.parametrize("epoch", [0, 13, 150])
def test_bacon_distils_as_the_authors_do(epoch):
    cosines = bacon_inputs().cosines
    tau = simgcd.teacher_temperature(epoch, 200)
    loss = simgcd.distillation_loss(cosines / simgcd.STUDENT_TEMPERATURE, cosines / tau)
    assert_same(loss, "bacon", f"distillation, epoch {epoch}")


def test_bacon_has_the_authors_soft_term(monkeypatch):
    inputs = bacon_inputs()
    monkeypatch.setattr(torch, "rand", lambda n: inputs.draws[:n])
    soft = bacon.soft_labels(inputs.cosines / 0.1, inputs.sizes)
    rows = bacon.draw_rows(soft, inputs.codes, inputs.sizes)
    assert 8 < rows.sum() < 24  # some of the unlabelled rows
    h = inputs.projected.clone().requires_grad_()
    loss = bacon.soft_contrastive_loss(h, soft, rows, 0.07)
    assert_same(loss, "bacon", "soft contrastive term")
    loss.backward()
    assert_same(h.grad[:, ::6], "bacon", "gradient of the soft contrastive term")


def test_bacon_has_the_authors_supervised_term():
    inputs = bacon_inputs()
    loss = supervised_contrastive_loss(*inputs.projected, inputs.codes, 0.07)
    assert_same(loss, "bacon", "supervised contrastive term")


# --- DCCL


def dccl_inputs():
    """5 prototypes and one row of each of four communities, so that no order matters."""
    rng = np.random.default_rng(19)
    return SimpleNamespace(
        prototypes=units(rng, 5, 6), rows=units(rng, 4, 6), labels=torch.tensor([3, 0, 4, 2])
    )


def test_dccl_draws_rows_to_prototypes_as_the_authors_do():
    inputs = dccl_inputs()
    z = inputs.rows.clone().requires_grad_()
    loss = prototype_loss(z, inputs.prototypes, inputs.labels, dccl.TEMPERATURE)
    assert_same(loss, "dccl", "community term")
    loss.backward()
    # theirs goes through the scaling to unit length: along the row there is no gradient
    along = (z.grad * inputs.rows).sum(dim=1, keepdim=True) * inputs.rows
    assert_same(z.grad - along, "dccl", "gradient of the community term")
    moved = dccl.follow(inputs.prototypes, inputs.rows, inputs.labels)
    assert_same(moved, "dccl", "prototypes after a batch")


def random_graph(seed):
    """60 nodes, about 150 edges with weights 1 to 3, and a partition into 9 communities."""
    rng = np.random.default_rng(seed)
    pairs = sorted({tuple(sorted(rng.choice(60, 2, replace=False).tolist())) for _ in range(150)})
    weights = rng.integers(1, 4, size=len(pairs)).tolist()
    a, b = (list(ends) for ends in zip(*pairs, strict=True))
    graph = Graph(
        60,
        0,
        torch.tensor(a + b),
        torch.tensor(b + a),
        torch.tensor(weights + weights),
        torch.zeros(60, dtype=torch.int64),
    )
    return graph, torch.from_numpy(rng.integers(0, 9, size=60))


def length_in_bits(graph, labels):
    """The whole map equation, with the entropy of the nodes that `map_equation` leaves out."""
    strength = torch.zeros(graph.n_nodes, dtype=torch.float64)
    strength.index_add_(0, graph.a, graph.weight.double())
    share = strength / strength.sum()
    return (map_equation(graph, labels) - torch.xlogy(share, share).sum()) / math.log(2)


@pytest.mark.parametrize("seed", [20, 21, 22])
def test_communities_have_the_code_length_of_infomap(seed):
    length = length_in_bits(*random_graph(seed))
    assert_same(length, "dccl", f"code length, seed {seed}", rel=1e-9)


def digit_graph():
    """The graph of the 10 nearest neighbours of 1,797 pictures of digits."""
    X, _ = load_digits(return_X_y=True)
    return neighbour_graph(normalize(torch.from_numpy(X), dim=1), 10)


def test_communities_are_nearly_as_short_as_those_of_infomap():
    graph = digit_graph()
    found = [find_communities(graph, torch.Generator().manual_seed(seed)) for seed in range(3)]
    lengths = [float(length_in_bits(graph, labels)) for labels in found]
    shortest = theirs("dccl", "shortest code length on digits")
    assert max(lengths) < 1.02 * shortest


def test_a_classifier_of_cosines_is_the_authors():
    inputs = orca_inputs()
    classifier = CosineClassifier(5, 6)
    classifier.prototypes.data.copy_(inputs.prototypes)
    assert_same(10 * classifier(inputs.features[0]), "orca", "logits")
