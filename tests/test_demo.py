"""The demonstration on scikit-learn's digits."""

import pytest
from sklearn.datasets import load_digits

from newfound.demo import run_demo


@pytest.fixture(scope="module")
def demo():
    return run_demo(seed=0)


def test_every_picture_is_in_a_category(demo):
    assert sum(category.size for category in demo.categories) == len(load_digits().target)
    assert all(category.size > 0 for category in demo.categories)


def test_known_digits_come_first_under_their_own_names(demo):
    known = [category.name for category in demo.categories if category.kind == "known"]
    assert known == ["0", "1", "2", "3", "4"]
    assert [category.name for category in demo.categories[:5]] == known


def test_novel_categories_are_numbered(demo):
    novel = [category.name for category in demo.categories if category.kind == "novel"]
    assert novel == [f"new-{i:03d}" for i in range(1, demo.n_novel + 1)]


def test_share_is_that_of_the_most_frequent_of_ten_digits(demo):
    for category in demo.categories:
        assert 0.1 <= category.share <= 1
        assert (category.share * category.size) == pytest.approx(
            round(category.share * category.size)
        )


def test_the_sentence_contains_the_numbers(demo):
    assert f"{demo.n_novel} new ones were found" in demo.sentence
    assert "5 categories were known" in demo.sentence
    assert f"{demo.accuracy:.1%} of the unlabelled pictures" in demo.sentence
