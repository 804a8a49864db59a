"""The count and a person's answers."""

from dataclasses import replace

import numpy as np
import pytest

from newfound.mixture.counting.answers import (
    Answer,
    AnswerCounter,
    Partition,
    draw_questions,
    partner_probabilities,
)
from newfound.mixture.counting.count import CategoryCount

N_CLASSES, N_KNOWN, SIZE = 16, 8, 30


@pytest.fixture(scope="module")
def world():
    """Sixteen blobs, eight of them known and half labelled."""
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(N_CLASSES), SIZE)
    V = rng.normal(size=(N_CLASSES, 8))[truth] * 2 + rng.normal(size=(len(truth), 8))
    is_labelled = (truth < N_KNOWN) & (rng.random(len(truth)) < 0.5)
    return V.astype(np.float32), truth, is_labelled


def partition_of(world, labels):
    V, _, is_labelled = world
    return Partition(V, labels, is_labelled, N_KNOWN)


def believed(n_novel):
    return CategoryCount(n_novel, (n_novel / 2, n_novel * 2), 0.9, 0.5, 0.6, N_KNOWN, 0)


def answered(world, partition, n, seed=0):
    truth = world[1]
    questions = draw_questions(partition, n, np.random.default_rng(seed))
    return [Answer(q.first, q.second, bool(truth[q.first] == truth[q.second])) for q in questions]


@pytest.mark.parametrize(("way", "n_believed"), [("halved", 4), ("right", 8), ("doubled", 16)])
def test_answers_lead_to_the_true_number_and_the_interval_shrinks(world, way, n_believed):
    truth = world[1]
    labels = {
        "halved": np.where(truth < N_KNOWN, truth, N_KNOWN + (truth - N_KNOWN) // 2),
        "right": truth,
        "doubled": np.where(truth < N_KNOWN, truth, 2 * truth - 8 + np.arange(len(truth)) % 2),
    }[way]
    partition, count = partition_of(world, labels), believed(float(n_believed))
    answers = answered(world, partition, 120)
    counter = AnswerCounter(count, partition)
    some, all_ = counter.count(answers[:30]), counter.count(answers)
    assert all_.interval[0] <= 8 <= all_.interval[1]
    assert all_.n_novel == pytest.approx(8, rel=0.35)
    widths = [np.log(c.interval[1] / c.interval[0]) for c in (count, some, all_)]
    assert widths == sorted(widths, reverse=True)


def test_without_a_usable_answer_the_count_stays(world):
    partition, count = partition_of(world, world[1]), believed(5.0)
    assert AnswerCounter(count, partition).count([]) == count
    labelled = int(np.flatnonzero(world[2])[0])
    assert AnswerCounter(count, partition).count([Answer(labelled, labelled + 1, True)]) == count


def test_draws_have_the_probabilities_that_they_say(world):
    partition = partition_of(world, world[1])
    rng = np.random.default_rng(1)
    questions = [draw_questions(partition, 2, rng)[0] for _ in range(400)]
    p = {q.first: partner_probabilities(partition, q.first) for q in questions}
    assert all(partition.is_novel[first] and p[first][first] == 0 for first in p)
    sizes, n_novel = partition.sizes, N_CLASSES - N_KNOWN
    for q in questions:
        assert q.probability == pytest.approx(p[q.first][q.second] / sizes[q.first] / n_novel)
    near = [partition.ranks(q.first)[q.second] < SIZE for q in questions]
    expected = [p[q.first][partition.ranks(q.first) < SIZE].sum() for q in questions]
    assert np.mean(near) == pytest.approx(np.mean(expected), abs=0.08)
    longer = draw_questions(partition, 40, np.random.default_rng(2))
    assert draw_questions(partition, 10, np.random.default_rng(2)) == longer[:10]


def test_nothing_is_asked_where_nothing_is_novel(world):
    partition = partition_of(world, np.minimum(world[1], N_KNOWN - 1))
    assert draw_questions(partition, 10, np.random.default_rng(0)) == []


def test_a_count_that_is_sure_of_itself_can_be_overruled(world):
    truth = world[1]
    labels = np.where(truth < N_KNOWN, truth, N_KNOWN + (truth - N_KNOWN) // 4)
    partition = partition_of(world, labels)
    sure = replace(believed(2.0), interval=(1.95, 2.05))
    found = AnswerCounter(sure, partition).count(answered(world, partition, 60))
    assert found.n_novel > 5
