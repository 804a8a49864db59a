"""Words that set categories apart."""

import math

import numpy as np
import pytest
from samples import objects

from newfound.data.collection import Collection
from newfound.result.telling import (
    nearest_known,
    suggested_name,
    telling_values,
    telling_words,
)

HOSTILE = "<script>alert(1)</script> refund"
TEXTS = [
    *("where is my card", "the card has not come", "is the card lost"),
    *(HOSTILE, "i want a refund", "the refund is missing"),
]


CODES, Y = [0, 0, 0, 1, 1, 1], ["cards", *[None] * 5]


@pytest.fixture
def make(make_result):
    """A result of two categories of three items."""

    def of(ids=tuple("012345"), **content):
        collection = Collection(ids=list(ids), y=objects(Y), **content)
        return make_result(collection, CODES, ("cards", "new-001"), 1)

    return of


def test_words_are_ranked_by_class_based_tf_idf(make):
    cards, refunds = telling_words(make(texts=TEXTS))
    assert cards[0] == "card"
    assert refunds == ["refund"]  # the only word that two of its texts have and is rare elsewhere
    assert suggested_name(cards, []).startswith("card")


def test_words_that_name_nothing_are_left_out(make):
    texts = [*["why is it so, and where is my card?"] * 3, *["I haven't topped up"] * 3]
    assert telling_words(make(texts=texts)) == [["card"], ["topped", "up"]]


def slow_words(texts, codes):
    """The same by loops over texts."""
    bags = [
        [w for t, c in zip(texts, codes, strict=True) if c == k for w in set(t.split())]
        for k in (0, 1)
    ]
    mean = sum(map(len, bags)) / 2
    ranked = []
    for bag in bags:
        score = {
            w: bag.count(w) * math.log(1 + mean / (bags[0] + bags[1]).count(w))
            for w in bag
            if bag.count(w) >= 2
        }
        ranked.append(sorted(score, key=lambda w: (-score[w], w))[:4])
    return ranked


def test_the_formula(make):
    texts = ["aa bb", "aa cc", "aa bb dd", "bb ee", "ee bb ff", "ee gg"]
    assert telling_words(make(texts=texts)) == slow_words(texts, [0, 0, 0, 1, 1, 1])


def test_file_names_are_used_only_if_they_tell_something(make):
    features = np.zeros((6, 2))
    numbered = [f"IMG_{i:04d}.png" for i in range(6)]
    assert telling_words(make(numbered, features=features)) == [[], []]
    named = ["owl/1.png", "owl/2.png", "x/3.png", "harbour/4.png", "harbour/5.png", "x/6.png"]
    assert telling_words(make(named, features=features)) == [["owl"], ["harbour"]]


def test_values_of_further_columns_that_set_a_category_apart(make):
    metadata = {
        "site": ["dune", "dune", None, "lake: north", "lake: north", "dune"],
        "camera": ["a", "a", "a", "a", "a", "b"],  # most have it in both categories
    }
    dunes, lakes = telling_values(make(features=np.zeros((6, 2)), metadata=metadata))
    assert (dunes, lakes) == ([], ["site: lake: north"])  # a third of the dunes is elsewhere
    assert suggested_name([], lakes) == "lake: north"
    assert suggested_name([], dunes) == ""


def test_nearest_known_categories_of_new_ones(result):
    found = nearest_known(result)
    assert all(not names for names in found[: result.n_known])
    assert all(
        len(names) == 2 and set(names) <= set(result.names[: result.n_known])
        for names in found[result.n_known :]
    )
