import numpy as np
import pytest
from scipy import sparse

from newfound.mixture import hiding


@pytest.fixture
def evidence():
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(8), 30)
    X = np.eye(8)[truth] + 0.1 * rng.normal(size=(240, 8))
    codes = np.where((truth < 6) & (rng.random(240) < 0.5), truth, -1)
    found = hiding.gather_evidence(X, codes, by_class=False, rng=np.random.default_rng(1))
    return found, codes, truth


def test_every_labelled_row_is_hidden_and_held_out_equally_often(evidence):
    found, codes, _ = evidence
    labels = np.bincount(codes[codes >= 0])
    rounds = hiding.N_FOLDS * hiding.N_REPEATS
    # hidden once in each fold of each repeat
    np.testing.assert_array_equal(np.bincount(found.hidden.own), labels * rounds)
    # held out in one fold of each repeat, in the rounds that do not hide its class
    times = hiding.N_REPEATS * (hiding.N_HIDINGS - 1)
    np.testing.assert_array_equal(np.bincount(found.held_out.own), labels * times)
    assert len(found.unlabelled.own) == (codes < 0).sum() * rounds * hiding.N_HIDINGS


def test_held_out_rows_are_near_their_class_and_hidden_rows_near_none(evidence):
    found, _, _ = evidence
    assert (found.held_out.nearest == found.held_out.own).mean() > 0.9
    assert not (found.hidden.nearest == found.hidden.own).any()
    assert found.held_out.affinity.mean() > 3 * found.hidden.affinity.mean()


def test_unlabelled_rows_look_like_what_they_are(evidence):
    found, codes, truth = evidence
    repeats = len(found.unlabelled.own) // (codes < 0).sum()
    is_novel = np.tile(truth[codes < 0] >= 6, repeats)
    affinity = found.unlabelled.affinity[:, 1]
    assert affinity[is_novel].mean() == pytest.approx(found.hidden.affinity[:, 1].mean(), abs=0.1)


def test_walks_are_powers_of_the_graph():
    rng = np.random.default_rng(0)
    graph = rng.random((6, 6))
    walks = hiding._walk(sparse.csr_array(graph), np.array([1, 4]), np.array([0, 1]), 2)
    for mass, steps in zip(walks, (1, 2, 4), strict=True):
        expected = np.linalg.matrix_power(graph, steps)[:, [1, 4]]
        np.testing.assert_allclose(mass, expected, rtol=1e-5)


def test_folds_by_class_divide_every_class_evenly():
    classes = np.repeat(np.arange(4), 10)
    fold = hiding._draw_folds(classes, True, np.random.default_rng(0))
    for code in range(4):
        np.testing.assert_array_equal(np.bincount(fold[classes == code]), 2)
    pooled = hiding._draw_folds(classes, False, np.random.default_rng(0))
    np.testing.assert_array_equal(np.bincount(pooled), 8)


def test_rows_that_are_all_alike_show_nothing():
    codes = np.array([0, 1, 0, 1, -1, -1, -1])
    rng = np.random.default_rng(0)
    assert hiding.gather_evidence(np.ones((7, 3)), codes, by_class=False, rng=rng) is None
