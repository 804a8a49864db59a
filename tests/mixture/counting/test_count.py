import json
import math
from dataclasses import asdict, replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from newfound import count_categories
from newfound.errors import DiscoveryWarning, InputError
from newfound.mixture.counting import count as counting
from newfound.mixture.counting import reach as reaching
from newfound.mixture.counting.count import CategoryCount
from newfound.mixture.projection import unit_rows


def blobs(n_classes, n_each, spread, seed=0, d=24):
    """Rows around so many centres, and their classes; n_each may differ from class to class."""
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


def test_few_digits_say_little_about_sizes(digits):
    """A digit may be one cluster or two: the interval holds 5, and the estimate is not far off."""
    X, truth = digits
    count = count_categories(X, hide(truth, 5, 0.5), random_state=0)
    assert count.interval[0] <= 5 <= count.interval[1]
    assert 4 <= count.n_novel <= 10


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


def test_labels_given_class_by_class_are_counted_alike():
    X, truth = blobs(30, 40, 0.17)
    rng = np.random.default_rng(0)
    place = np.concatenate([rng.permutation(40) for _ in range(30)])
    y = np.where((truth < 15) & (place < 10), truth, -1)  # 10 labels in each of 15 classes
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


# --- sizes of novel categories


def unequal(known, novel, seed=0):
    """(number, size) of known and of novel classes: rows and labels of half the known rows."""
    sizes = [known[1]] * known[0] + [novel[1]] * novel[0]
    X, truth = blobs(len(sizes), sizes, 0.15, seed)
    return X, hide(truth, known[0], 0.5, seed)


@pytest.fixture(scope="module")
def small_novel():
    """15 known classes of 36 rows, and 30 novel classes a third as large."""
    X, y = unequal((15, 36), (30, 12))
    return X, y, count_categories(X, y, random_state=0)


def assert_holds(count, truth):
    """The interval holds the truth and the estimate, and so does that of the size."""
    assert count.interval[0] <= truth <= count.interval[1]
    assert count.interval[0] <= count.n_novel <= count.interval[1]
    low, high = count.novel_size_interval
    assert low <= count.novel_size <= high


def assert_sane(count):
    values = [count.n_novel, *count.interval, count.label_rate, count.novel_share, count.alike]
    values += [count.novel_size, *count.novel_size_interval]
    assert np.isfinite(values).all()
    assert 0 <= count.novel_share <= 1
    assert 0 < count.label_rate <= 1
    assert 0 <= count.alike <= 1
    assert_holds(count, count.n_novel)


def test_novel_classes_a_third_as_large_are_counted(small_novel):
    X, y, count = small_novel
    assert_holds(count, 30)
    assert count.n_novel == pytest.approx(30, abs=7)
    assert count.novel_size == pytest.approx(12, abs=3)
    assert count.novel_size_interval[0] < 12 < count.novel_size_interval[1] < 24
    assert (count.sizes_from, count.alike < 0.05) == ("data", True)
    alike = count_categories(X, y, sizes="alike", random_state=0)
    assert alike.interval[1] < 15  # mass, not classes
    assert alike.label_rate == count.label_rate
    assert alike.novel_share == count.novel_share


def test_novel_classes_three_times_as_large_are_counted():
    X, y = unequal((30, 12), (15, 36))
    count = count_categories(X, y, random_state=0)
    assert_holds(count, 15)
    assert count.n_novel == pytest.approx(15, abs=4)
    assert (count.sizes_from, count.alike < 0.05) == ("data", True)
    assert count_categories(X, y, sizes="alike", random_state=0).interval[0] > 30


@pytest.fixture(scope="module")
def like_sizes():
    """Twelve known and twelve novel classes of 20 rows, and the count of classes that are alike."""
    X, y = unequal((12, 20), (12, 20))
    return X, y, count_categories(X, y, sizes="alike", random_state=0)


def test_classes_of_like_sizes_are_counted_as_if_that_was_said(like_sizes):
    X, y, alike = like_sizes
    unknown = count_categories(X, y, random_state=0)
    assert_holds(unknown, 12)
    assert unknown.n_novel == pytest.approx(alike.n_novel, rel=0.1)
    assert unknown.novel_size == pytest.approx(20, abs=3)
    assert unknown.alike > 0.6
    assert (unknown.sizes_from, alike.sizes_from, alike.alike) == ("data", "given", 1)
    # to say it makes the interval narrower
    assert np.ptp(alike.interval) <= np.ptp(unknown.interval)


@pytest.mark.parametrize("ratio", [1, 0.25])
def test_a_given_ratio_is_obeyed(like_sizes, ratio):
    X, y, alike = like_sizes
    given = count_categories(X, y, sizes=ratio, random_state=0)
    assert given.n_novel == pytest.approx(alike.n_novel / ratio)
    np.testing.assert_allclose(given.interval, np.array(alike.interval) / ratio)
    assert given.novel_size == pytest.approx(alike.novel_size * ratio)
    np.testing.assert_allclose(
        given.novel_size_interval, np.array(alike.novel_size_interval) * ratio
    )
    assert (given.sizes_from, given.label_rate) == ("given", alike.label_rate)


@pytest.mark.parametrize("sizes", ["other", 0, -0.5, None, True])
def test_other_sizes_are_refused(like_sizes, sizes):
    with pytest.raises(InputError, match="sizes must be"):
        count_categories(*like_sizes[:2], sizes=sizes)


def test_noise_says_nothing_about_sizes():
    X = np.random.default_rng(0).normal(size=(400, 12))
    count = count_categories(X, hide(np.arange(400) % 20, 10, 0.5), random_state=0)
    assert count.sizes_from == "prior"
    assert count.alike == pytest.approx(0.6, abs=0.1)
    assert_holds(count, 10)
    least, most = count.novel_size_interval
    assert most > 6 * least


def test_a_rotation_does_not_matter(small_novel):
    """But for the draws: rows are sorted by their hashes."""
    X, y, count = small_novel
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(24, 24)))[0]
    turned = count_categories(X @ turn, y, random_state=0)
    assert turned.n_novel == pytest.approx(count.n_novel, rel=0.1)
    np.testing.assert_allclose(turned.interval, count.interval, rtol=0.15)


def test_a_sample_says_how_large_classes_of_the_whole_are(small_novel, monkeypatch):
    X, y, _ = small_novel
    monkeypatch.setattr(counting, "MAX_ROWS", 600)
    monkeypatch.setattr(reaching, "MAX_ROWS", 400)
    count = count_categories(X, y, random_state=0)
    assert_sane(count)
    assert count.interval[0] <= 30 <= count.interval[1]
    assert count.novel_size_interval[0] < 12 < count.novel_size_interval[1]
    assert count.n_novel > 15


def few(n_known=6, n_novel=6, size=16, seed=0):
    X, truth = blobs(n_known + n_novel, size, 0.15, seed)
    return X, truth, hide(truth, n_known, 0.5, seed)


def test_rows_that_appear_three_times():
    X, _, y = few()
    assert_sane(count_categories(np.repeat(X, 3, axis=0), np.repeat(y, 3), random_state=0))


def test_classes_of_equal_rows():
    _, truth, y = few()
    assert_sane(count_categories(np.eye(12)[truth], y, random_state=0))


@pytest.mark.parametrize("n_novel", [0, 1])
def test_one_novel_row_or_none(n_novel):
    X, truth, y = few()
    kept = (truth < 6) | (np.arange(len(truth)) < 6 * 16 + n_novel)
    count = count_categories(X[kept], y[kept], random_state=0)
    assert_sane(count)
    assert count.n_novel < 0.5
    assert count.sizes_from == "prior"  # no row tells how large a class of so few rows is


@pytest.mark.parametrize("n_labels", [2, 3, 8])
def test_two_known_classes(n_labels):
    X, truth, _ = few()
    y = np.where((truth < 2) & (np.arange(len(truth)) % 16 < n_labels), truth, -1)
    count = count_categories(X, y, random_state=0)
    assert_sane(count)
    assert count.n_known == 2


def test_one_unlabelled_row():
    X, truth, _ = few(6, 0)
    y = np.where(np.arange(len(truth)) == 5, -1, truth)
    assert_sane(count_categories(X, y, random_state=0))


def by_quota(quota):
    """20 known and 20 novel classes of 20 rows; so many labels of each known class."""
    X, truth = blobs(40, 20, 0.15)
    rng = np.random.default_rng(0)
    place = np.concatenate([rng.permutation(20) for _ in range(40)])
    return X, np.where((truth < 20) & (place < quota), truth, -1)


@pytest.mark.parametrize("quota", [2, 3, 4])
def test_few_labels_of_each_class_are_enough(quota):
    count = count_categories(*by_quota(quota), random_state=0)
    assert_sane(count)
    assert_holds(count, 20)
    assert count.n_novel == pytest.approx(20, abs=4)


def test_one_label_of_each_class_is_not():
    X, y = by_quota(1)
    with pytest.warns(DiscoveryWarning, match="Every known class has a single label"):
        count = count_categories(X, y, random_state=0)
    assert_holds(count, count.n_novel)
    assert count.interval == (0, 780)  # every unlabelled row might be a category
    assert count.novel_size_interval == (1, 800)
    assert count.sizes_from == "prior"
    assert np.isnan([count.label_rate, count.novel_share, count.alike]).all()


# --- a count as text


def test_a_count_comes_back_from_json(small_novel):
    count = small_novel[2]
    plain = json.loads(json.dumps(count.as_plain(), allow_nan=False))
    assert CategoryCount.from_plain(plain) == count


def test_nan_becomes_nothing_and_comes_back():
    count = CategoryCount(2.0, (1.0, 3.0), 1.0, math.nan, math.nan, 5, 0)
    plain = json.loads(json.dumps(count.as_plain(), allow_nan=False))
    assert plain["label_rate"] is None
    assert plain["novel_size_interval"] == [None, None]
    assert plain["interval"] == [1, 3]
    again = CategoryCount.from_plain(plain)
    assert repr(again) == repr(count)  # NaN does not equal NaN
    assert isinstance(again.interval, tuple)
    assert isinstance(again.novel_size_interval, tuple)


def test_a_count_from_before_sizes_were_asked_is_one_of_given_sizes():
    count = CategoryCount(2.0, (1.0, 3.0), 0.9, 0.5, 0.4, 5, 0)
    new = {"novel_size", "novel_size_interval", "sizes_from", "alike"}
    old = {name: value for name, value in asdict(count).items() if name not in new}
    again = CategoryCount.from_plain({**old, "interval": [1.0, 3.0]})
    assert repr(again) == repr(count)
    assert (again.sizes_from, again.alike) == ("given", 1)
    assert replace(again, novel_size=3.0).novel_size == 3
