"""The numbers behind the charts."""

import math

import numpy as np
import pytest

from newfound.report.charts import (
    N_BINS,
    balance_sentence,
    confidence_bins,
    history_line,
    interval_range,
    rehearsal_dots,
    steady_sentence,
)
from newfound.result.record import History


def test_the_histogram_counts_every_item_once():
    confidence = np.array([0.0, 0.04, 0.05, 0.5, 0.99, 1.0, 1.0])
    is_novel = np.array([True, False, False, True, True, False, True])
    bins = confidence_bins(confidence, is_novel)
    assert len(bins) == N_BINS
    counts = {b.low: (b.n_known, b.n_novel) for b in bins if b.n_known + b.n_novel}
    assert counts == {0: (1, 1), 5: (1, 0), 50: (0, 1), 95: (1, 2)}
    tallest = max(b.known_height + b.novel_height for b in bins)
    assert tallest == pytest.approx(100, abs=0.02)
    assert bins[10].novel_height == pytest.approx(100 / 3, abs=0.01)


@pytest.mark.parametrize(
    ("history", "unit"),
    [
        (History("epoch", (4, 8, 6)), "epoch"),
        (History("pass", (4, 8, 6)), "pass"),
        (History("epoch", (4, None, 8, 6)), "epoch"),
    ],
)
def test_the_history_as_a_line(history, unit):
    line = history_line(history)
    assert (line.unit, line.n_steps, line.first, line.last) == (unit, 3, 4, 6)
    assert (line.low, line.high) == (4, 8)
    assert line.path == "M0.0 92.0 L50.0 8.0 L100.0 50.0"


@pytest.mark.parametrize("history", [History(), History("pass", (3,)), History("epoch", (None, 3))])
def test_no_history_no_line(history):
    assert history_line(history) is None


def test_a_number_that_never_changed_is_a_sentence_and_no_flat_line():
    steady = History("pass", (42, 42, 42, 42))
    assert history_line(steady) is None
    assert steady_sentence(steady) == (
        "The number of categories, known and new, was 42 in all of 4 passes."
    )
    assert steady_sentence(History("epoch", (4, 8))) is None
    assert steady_sentence(History()) is None


def test_the_interval_is_where_its_numbers_are():
    drawn = interval_range(5, [4.0, 10.0])
    top = 10 / ((drawn.left + drawn.width) / 100)
    assert top == pytest.approx(12)
    assert drawn.left == pytest.approx(100 * 4 / 12)
    assert drawn.mark == pytest.approx(100 * 5 / 12)
    assert [tick for _, tick in drawn.ticks] == [0, 2, 4, 6, 8, 10, 12]
    assert drawn.ticks[-1][0] == pytest.approx(100)


@pytest.mark.parametrize("high", [None, math.inf])
def test_an_interval_without_end_goes_to_the_edge(high):
    drawn = interval_range(5, [3.0, high])
    assert drawn.left + drawn.width == pytest.approx(100)
    assert drawn.high == math.inf


def test_no_interval():
    assert interval_range(5, None) is None
    assert interval_range(0, [0.0, 0.0]).mark == 0


def test_rehearsal_dots_stand_around_one_and_pile_up():
    plot = rehearsal_dots([0.5, 1.0, 1.0, 2.0])
    assert [(left, height) for left, height, _ in plot.dots] == [
        *[(5.0, 0), (50.0, 0)],
        *[(50.0, 1), (95.0, 0)],
    ]
    assert plot.one == 50.0
    assert plot.tallest == 2
    assert [text for _, text in plot.ticks] == ["½", "1", "2"]


@pytest.mark.parametrize("ratios", [[0.0, 1.0], [30.0, 1.0], [1e-9], [1.0]])
def test_extreme_ratios_stay_on_the_axis(ratios):
    plot = rehearsal_dots(ratios)
    assert all(0 <= left <= 100 for left, _, _ in plot.dots)


def test_no_ratios_no_dots():
    assert rehearsal_dots([]) is None
    assert rehearsal_dots([math.nan, None]) is None


def test_how_unbalanced_in_words():
    words = balance_sentence(np.array([10, 100, 10, 20, 0]))
    assert "10 times as many" in words
    assert "the 1 largest of 4" in words
    assert "2.5 times" in balance_sentence(np.array([5, 2]))
    assert "half of all pictures are" in balance_sentence(np.array([5, 2]), "pictures")
    assert balance_sentence(np.array([5])) == "There is one category."
