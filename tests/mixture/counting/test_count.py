import numpy as np
import pytest
from sklearn.datasets import load_digits

from newfound import count_categories
from newfound.errors import InputError
from newfound.mixture.counting import count as counting
from newfound.mixture.projection import unit_rows


def blobs(n_classes, n_each, spread, seed=0, d=24):
    rng = np.random.default_rng(seed)
    centres = unit_rows(rng.normal(size=(n_classes, d)))
    truth = np.repeat(np.arange(n_classes), n_each)
    return centres[truth] + spread * rng.normal(size=(len(truth), d)), truth


def hide(truth, n_known, rate, seed=0):
    rng = np.random.default_rng(seed)
    return np.where((truth < n_known) & (rng.random(len(truth)) < rate), truth, -1)


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


@pytest.mark.parametrize("rate", [0.5, 0.2])
def test_digits_are_counted(digits, rate):
    X, truth = digits
    count = count_categories(X, hide(truth, 5, rate), random_state=0)
    assert count.n_novel == pytest.approx(5, abs=1)
    assert count.label_rate == pytest.approx(rate, rel=0.15)
    assert count.n_known == 5
    low, high = count.interval
    assert low <= count.n_novel <= high


@pytest.mark.parametrize("n_known", [6, 15, 24])
def test_overlapping_classes_are_counted(n_known):
    X, truth = blobs(30, 40, 0.17)
    count = count_categories(X, hide(truth, n_known, 0.5), random_state=0)
    assert count.n_novel == pytest.approx(30 - n_known, abs=3)
    novel_rows = 40 * (30 - n_known)
    share = novel_rows / (len(X) - (truth < n_known).sum() / 2)
    assert count.novel_share == pytest.approx(share, abs=0.1)


def test_no_novel_class_is_a_possible_answer():
    X, truth = blobs(20, 40, 0.15)
    count = count_categories(X, hide(truth, 20, 0.5), random_state=0)
    assert round(count.n_novel) <= 1
    assert count.interval[0] == 0


def test_all_labelled_leaves_nothing_novel(digits):
    X, truth = digits
    count = count_categories(X, truth)
    assert (count.n_novel, count.interval, count.label_rate) == (0, (0, 0), 1)


def test_the_interval_is_wider_for_a_higher_level(digits):
    X, truth = digits
    y = hide(truth, 5, 0.3)
    narrow, wide = (count_categories(X, y, level=p, random_state=0).interval for p in (0.5, 0.95))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_unequal_classes_widen_the_interval():
    rng = np.random.default_rng(0)
    X, truth = blobs(20, 100, 0.15)
    kept = rng.random(len(truth)) < np.geomspace(1, 0.1, 20)[rng.permutation(20)][truth]

    def relative_width(X, truth):
        count = count_categories(X, hide(truth, 10, 0.5), random_state=0)
        return (count.interval[1] - count.interval[0]) / count.n_novel

    assert relative_width(X[kept], truth[kept]) > 2 * relative_width(X, truth)


def test_row_order_does_not_matter_and_the_seed_does(digits):
    X, truth = digits
    y = hide(truth, 5, 0.3)
    order = np.random.default_rng(1).permutation(len(X))
    first = count_categories(X, y, random_state=0)
    assert count_categories(X[order], y[order], random_state=0) == first
    assert count_categories(X, y, random_state=1) != first


def test_many_rows_are_sampled(digits, monkeypatch):
    X, truth = digits
    monkeypatch.setattr(counting, "MAX_ROWS", 600)
    count = count_categories(X, hide(truth, 5, 0.5), random_state=0)
    assert count.n_novel == pytest.approx(5, abs=1.5)


def test_names_of_classes_do_not_matter(digits):
    X, truth = digits
    y = hide(truth, 5, 0.5)
    names = np.array(["a", "b", "c", "d", "e", None], dtype=object)
    assert count_categories(X, names[y], random_state=0) == count_categories(X, y, random_state=0)


@pytest.mark.parametrize("X", [np.ones((20, 3)), np.zeros((20, 3))])
def test_rows_that_are_all_alike_leave_everything_open(X):
    count = count_categories(X, [0, 1] * 3 + [-1] * 14)
    assert count.interval[0] == 0
    assert count.interval[1] == pytest.approx(2 * (20 / 6 - 1))


@pytest.mark.parametrize("y", [[0] * 5 + [-1] * 15, [-1] * 20])
def test_fewer_than_two_classes_are_refused(y):
    with pytest.raises(InputError, match="at least 2 known classes"):
        count_categories(np.random.default_rng(0).normal(size=(20, 3)), y)


def test_an_impossible_level_is_refused(digits):
    with pytest.raises(InputError, match="level must lie between 0 and 1; got 90"):
        count_categories(*digits, level=90)


def test_labels_given_class_by_class_are_noticed_and_counted_alike():
    X, truth = blobs(30, 40, 0.17)
    rng = np.random.default_rng(0)
    place = np.concatenate([rng.permutation(40) for _ in range(30)])
    y = np.where((truth < 15) & (place < 10), truth, -1)  # 10 labels in each of 15 classes
    assert counting._labelled_by_class(np.full(15, 10))
    assert not counting._labelled_by_class(np.random.default_rng(0).binomial(40, 0.25, 15))
    assert count_categories(X, y, random_state=0).n_novel == pytest.approx(15, abs=3)


def test_known_classes_without_unlabelled_rows_are_found():
    X, truth = blobs(30, 60, 0.15)
    y = hide(truth, 15, 0.5)
    present = (truth >= 5) | (y >= 0)  # classes 0 to 4 lose all their unlabelled rows
    count = count_categories(X[present], y[present], random_state=0)
    assert count.n_absent >= 3
    assert count.n_novel == pytest.approx(15, abs=4)
    assert count_categories(X, y, random_state=0).n_absent == 0


def test_of_many_present_classes_none_is_taken_for_absent():
    """That one class of 60 lies two standard errors low is chance, and does not make it absent."""
    X, truth = blobs(75, 30, 0.2)
    for seed in range(3):
        assert count_categories(X, hide(truth, 60, 0.3, seed), random_state=0).n_absent == 0


def test_a_sample_keeps_every_class(digits, monkeypatch):
    monkeypatch.setattr(counting, "MAX_ROWS", 30)
    codes = np.where(np.arange(500) % 100 == 0, np.arange(500) // 100, -1)
    sampled = counting._sample(np.arange(500), codes, np.random.default_rng(0))
    assert set(codes[sampled]) == {-1, 0, 1, 2, 3, 4}
    assert 30 <= len(sampled) <= 35
