import numpy as np
import pytest
from scipy import sparse

from newfound.mixture.counting import hiding
from newfound.mixture.counting.neighbours import Surroundings, nearest_rows, survey


def around(X):
    """The rows as they are, with their neighbours."""
    return Surroundings(X, nearest_rows(X, min(100, len(X) - 1))[0])


POOLED, BY_CLASS = hiding._Draws(False, 5, 3), hiding._Draws(True, 5, 3)


@pytest.fixture
def evidence():
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(8), 30)
    X = np.eye(8)[truth] + 0.1 * rng.normal(size=(240, 8))
    codes = np.where((truth < 6) & (rng.random(240) < 0.5), truth, -1)
    found = hiding.gather_evidence(around(X), codes, by_class=False, rng=np.random.default_rng(1))
    return found, codes, truth


def test_every_labelled_row_is_hidden_once_and_held_out_once_in_each_repeat(evidence):
    found, codes, _ = evidence
    labels = np.bincount(codes[codes >= 0])
    np.testing.assert_array_equal(np.bincount(found.hidden.own), labels * found.n_repeats)
    # but for the rows whose class is hidden in the round that holds them out
    times = np.bincount(found.held_out.own) / labels / found.n_repeats
    assert (times <= 1).all()
    assert times.mean() == pytest.approx(1 - 1 / hiding.N_HIDINGS, abs=0.1)
    rounds = found.n_folds * found.n_repeats
    assert len(found.unlabelled.own) == (codes < 0).sum() * rounds


@pytest.mark.parametrize("n_known", [2, 3, 4, 5])
def test_few_classes_take_turns_in_hiding(n_known):
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(n_known), 10)
    X = np.eye(n_known)[codes] + 0.1 * rng.normal(size=(len(codes), n_known))
    codes = np.where(np.arange(len(codes)) % 2, codes, -1)
    found = hiding.gather_evidence(around(X), codes, by_class=False, rng=rng)
    times = np.bincount(found.hidden.own, minlength=n_known) / 5
    assert times.max() - times.min() <= 1


def test_the_space_does_not_know_rows_that_are_held_out_or_hidden(monkeypatch):
    """Held-out rows must lie in it as unlabelled ones do, rows of hidden classes as novel ones."""
    learnt = []
    whiten = hiding.whiten_by_classes

    def spy(V, rows, classes):
        learnt.append(rows)
        return whiten(V, rows, classes)

    monkeypatch.setattr(hiding, "whiten_by_classes", spy)
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(8), 20)
    X = np.eye(8)[truth] + 0.1 * rng.normal(size=(160, 8))
    codes = np.where((truth < 6) & (rng.random(160) < 0.5), truth, -1)
    near = survey(X, rng)
    for held_out, hidden, _, n_kept in hiding._run_rounds(near, codes, POOLED, rng):
        assert (codes[learnt[-1]] >= 0).all()
        assert not set(codes[learnt[-1]]) & set(hidden.own)
        assert len(learnt[-1]) + len(held_out.own) == n_kept


def test_held_out_rows_are_near_their_class_and_hidden_rows_near_none(evidence):
    found, _, _ = evidence
    assert (found.held_out.nearest == found.held_out.own).mean() > 0.9
    assert not (found.hidden.nearest == found.hidden.own).any()
    assert (found.held_out.affinity.mean(axis=0) > 2 * found.hidden.affinity.mean(axis=0)).all()


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
    fold = hiding._draw_folds(classes, BY_CLASS, np.random.default_rng(0))
    for code in range(4):
        np.testing.assert_array_equal(np.bincount(fold[classes == code]), 2)
    pooled = hiding._draw_folds(classes, POOLED, np.random.default_rng(0))
    np.testing.assert_array_equal(np.bincount(pooled), 8)


@pytest.mark.parametrize("n_labels", [2, 3, 4, 5, 8])
def test_with_few_labels_of_each_class_each_part_has_one_of_every_class(n_labels):
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(6), 12)
    X = np.eye(6)[truth] + 0.1 * rng.normal(size=(72, 6))
    codes = np.where((truth < 4) & (np.arange(72) % 12 < n_labels), truth, -1)
    found = hiding.gather_evidence(around(X), codes, by_class=True, rng=rng)
    assert found.n_folds == min(5, n_labels)
    assert found.n_folds * found.n_repeats >= 15
    assert len(np.unique(found.held_out.row)) >= 0.9 * 4 * n_labels
    for group, is_free in (
        (found.held_out, False),
        (found.hidden, False),
        (found.unlabelled, True),
    ):
        np.testing.assert_array_equal(group.own, codes[group.row])
        assert ((group.own == -1) == is_free).all()
    assert (found.held_out.nearest == found.held_out.own).mean() > 0.9


def test_with_one_label_of_each_class_none_can_be_held_out():
    codes = np.where(np.arange(24) % 6 == 0, np.arange(24) // 6, -1)
    X = np.random.default_rng(0).normal(size=(24, 3))
    rng = np.random.default_rng(0)
    assert hiding.gather_evidence(around(X), codes, by_class=True, rng=rng) is None
