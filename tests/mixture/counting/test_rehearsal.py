import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_digits

from newfound import SplitMergeMixture
from newfound.errors import InputError
from newfound.mixture.counting import count, draws
from newfound.mixture.counting.draws import n_rows_of_draw
from newfound.mixture.counting.neighbours import survey
from newfound.mixture.counting.rehearsal import Rehearsal, rehearse


@pytest.fixture(scope="module")
def digits():
    X, truth = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    return X, np.where((truth < 6) & (rng.random(len(truth)) < 0.5), truth, -1)


@pytest.mark.parametrize("design", ["hidden", "labelled"])
def test_hidden_digits_come_out_as_one_component_each(digits, design):
    calls = []

    def progress(done, total):
        calls.append((done, total))

    mixture = SplitMergeMixture(random_state=0)
    found = rehearse(mixture, *digits, design=design, n_draws=3, random_state=0, progress=progress)
    assert calls == [(1, 3), (2, 3), (3, 3)]
    np.testing.assert_array_equal(found.n_hidden, 3)
    assert found.ratios == pytest.approx(1, abs=0.45)
    assert not hasattr(mixture, "labels_")  # the settings were copied


class FindsFour(BaseEstimator):
    """Always finds four novel categories."""

    def __init__(self, n_init=3, verbose=1, callback=print, random_state=None):
        self.n_init = n_init
        self.verbose = verbose
        self.callback = callback
        self.random_state = random_state

    def fit(self, X, y=None):
        assert (self.n_init, self.verbose, self.callback) == (1, 0, None)
        self.labels_ = np.zeros(len(X), dtype=int)
        self.n_known_, self.n_novel_, self.n_components_ = 3, 4, 7
        return self


def test_any_estimator_with_the_same_attributes_can_be_rehearsed(digits):
    found = rehearse(FindsFour(), *digits, design="labelled", n_draws=2, random_state=0)
    np.testing.assert_array_equal(found.n_components, [4, 4])


def test_same_seed_same_draws(digits):
    first, second = (
        rehearse(SplitMergeMixture(), *digits, design="labelled", n_draws=2, random_state=5)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.n_components, second.n_components)


def test_over_segmentation_is_corrected_and_the_interval_is_an_order_statistic():
    ratios = np.linspace(1.5, 2.5, 19)
    rehearsal = Rehearsal("hidden", np.full(19, 10), 10 * ratios)
    corrected, interval = rehearsal.correct(20)
    assert corrected == pytest.approx(10)
    assert interval == pytest.approx((20 / 2.5, 20 / 1.5))
    narrower = rehearsal.correct(20, level=0.5)[1]
    assert narrower == pytest.approx((20 / ratios[-5], 20 / ratios[4]))


def test_too_few_draws_leave_the_interval_open():
    rehearsal = Rehearsal("hidden", np.full(5, 10), np.full(5, 10.0))
    assert rehearsal.correct(20)[1] == (0, np.inf)


def test_bad_input(digits):
    X, y = digits
    with pytest.raises(InputError, match="at least 4; y names 2"):
        rehearse(SplitMergeMixture(), X, np.where(y < 2, y, -1))
    with pytest.raises(InputError, match="design must be"):
        rehearse(SplitMergeMixture(), X, y, design="both")
    with pytest.raises(InputError, match="n_draws must be"):
        rehearse(SplitMergeMixture(), X, y, n_draws=0)


def test_draws_of_a_large_collection_take_a_sample_with_enough_labels():
    codes = np.full(50_000, -1)
    codes[:25_000] = np.arange(25_000) % 50
    assert n_rows_of_draw(codes) == 3_000
    codes[:25_000] = np.arange(25_000) % 250
    assert n_rows_of_draw(codes) == 15_000
    assert n_rows_of_draw(np.where(np.arange(50_000) < 100, codes, -1)) == 20_000
    assert n_rows_of_draw(codes[::50]) == 1_000


def test_a_draw_counts_with_the_surroundings_that_were_found_once(digits, monkeypatch):
    surveyed = []

    def watch(X, *arguments):
        surveyed.append(len(X))
        return survey(X, *arguments)

    mixture = SplitMergeMixture(random_state=0).fit(*digits)
    for module in (draws, count):
        monkeypatch.setattr(module, "survey", watch)
    rehearse(mixture, *digits, n_draws=2, random_state=0)
    assert surveyed == [len(digits[0])]
    monkeypatch.setattr(draws, "_LEAST_ROWS", 500)
    monkeypatch.setattr(draws, "_LABELS_PER_CLASS", 5)
    rehearse(mixture, *digits, n_draws=2, random_state=0)
    assert len(surveyed) == 5
    assert all(500 <= n <= 510 for n in surveyed[1:])  # and a labelled row of every class
