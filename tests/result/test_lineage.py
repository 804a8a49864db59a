"""Ids that stay: matching, naming, and what changed."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from newfound.result.lineage import Partition, compare, highest_number, keep_ids, novel_ids


def partition(text, known=()):
    """One item for each letter; capital letters are known classes, which come first."""
    kinds = [*known, *sorted({letter for letter in text if letter.islower()})]
    labels = np.array([kinds.index(letter) for letter in text])
    return Partition([f"item {i:02d}" for i in range(len(text))], labels, list(known))


def before(text):
    """Old ids by item: a digit for each, a dot where an item was not in a novel category."""
    return {f"item {i:02d}": f"new-00{digit}" for i, digit in enumerate(text) if digit != "."}


def named(old, new, known=(), after=0):
    """The name of each letter of `new`."""
    now = partition(new, known)
    names = keep_ids(before(old), now, after)
    return {letter: names[label] for letter, label in zip(new, now.labels, strict=True)}


# ------------------------------------------------------------------------------------------- ids


def test_ids_count_on():
    assert novel_ids(3) == ["new-001", "new-002", "new-003"]
    assert novel_ids(2, after=998) == ["new-999", "new-1000"]
    assert novel_ids(0) == []


def test_a_name_that_a_known_class_has_is_left_out():
    assert novel_ids(3, ["cat", "new-002"]) == ["new-001", "new-003", "new-004"]


def test_the_highest_number_is_of_ids_only():
    assert highest_number(["new-003", "new-012", "cat", "new-york", "renew-999"]) == 12
    assert highest_number(["cat"]) == highest_number([]) == 0


# -------------------------------------------------------------------------------------- matching


def test_categories_keep_their_ids_whatever_their_number():
    assert named("1122233", "bbcccaa", after=3) == {"a": "new-003", "b": "new-001", "c": "new-002"}


def test_the_larger_part_of_a_split_keeps_the_id():
    assert named("11111", "aabbb", after=1) == {"b": "new-001", "a": "new-002"}


def test_a_merger_keeps_the_id_of_the_larger_one():
    assert named("1122222", "aaaaaaa", after=2) == {"a": "new-002"}


def test_the_largest_new_category_has_the_first_free_number():
    assert named(".....", "aabbb", after=7) == {"b": "new-008", "a": "new-009"}


def test_an_id_that_is_gone_is_not_given_again():
    assert named("11....", "aabbbb", after=5) == {"a": "new-001", "b": "new-006"}


def test_a_category_that_grew_keeps_its_id():
    assert named("11.......", "aaaaaaaaa", after=1) == {"a": "new-001"}


def test_a_few_shared_items_do_not_make_the_same_category():
    # 1 of 6 old items went to a category of 5
    assert named("111111....", "AAAAAbbbbb", known="A", after=1)["b"] == "new-002"
    # 3 of 6 did
    assert named("111111....", "AAAbbbbbbb", known="A", after=1)["b"] == "new-001"


def test_the_total_of_shared_items_counts_not_the_first_best():
    # a shares 3 with 1 and 1 with 2; b shares 1 with 1: a→1 alone shares 3, a→2 and b→1 only 2
    assert named("11121", "aaaab", after=2) == {"a": "new-001", "b": "new-003"}
    # a: 4 of 1, 3 of 2; b: 4 of 1. a→2, b→1 shares 7, a→1 alone 4
    assert named("11112221111", "aaaaaaabbbb", after=2) == {"a": "new-002", "b": "new-001"}


def test_an_id_that_is_now_a_class_of_its_own_is_not_given_to_another():
    now = Partition(["a", "b", "c", "d"], np.array([0, 0, 1, 1]), ["new-001"])
    old = {"a": "new-001", "b": "new-001", "c": "new-001", "d": "new-001"}
    assert keep_ids(old, now, 1) == ["new-001", "new-002"]


def test_the_name_of_a_known_class_is_not_given_to_a_new_category():
    now = Partition(["a", "b"], np.array([0, 1]), ["new-002"])
    assert keep_ids({}, now, 1) == ["new-002", "new-003"]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2)])
@pytest.mark.parametrize("numbers", [(0, 1), (1, 0)])
def test_of_equal_new_categories_the_one_with_the_first_id_comes_first(order, numbers):
    items = [("a", 0), ("b", 1), ("c", 1), ("d", 0)]
    ids = [items[i][0] for i in order]
    labels = np.array([numbers[items[i][1]] for i in order])
    names = keep_ids({}, Partition(ids, labels, []), 0)
    assert names[labels[ids.index("a")]] == "new-001"


def test_known_classes_have_their_names():
    now = partition("AABBc", known="AB")
    assert keep_ids({}, now, 0) == ["A", "B", "new-001"]


def test_without_novel_categories_there_is_nothing_to_match():
    assert keep_ids(before("11"), partition("AA", known="A"), 1) == ["A"]


partitions = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        st.lists(st.sampled_from(".123"), min_size=n, max_size=n),
        st.lists(st.integers(0, 4), min_size=n, max_size=n),
    )
)


def names_by_item(old, ids, labels, n_known):
    now = Partition(ids, labels, [f"class {i}" for i in range(n_known)])
    names = keep_ids(old, now, 3)
    assert len(names) == len(set(names)) == max(n_known, labels.max() + 1)
    return {name: names[label] for name, label in zip(ids, labels, strict=True)}


@given(partitions, st.randoms(use_true_random=False))
def test_numbers_and_order_play_no_part(case, random):
    old_text, raw = case
    old = before("".join(old_text))
    labels = np.unique(raw, return_inverse=True)[1]
    ids = [f"item {i:02d}" for i in range(len(raw))]
    expected = names_by_item(old, ids, labels, 0)
    n = int(labels.max()) + 1
    renumbered = np.array(random.sample(range(n), n))[labels]
    order = random.sample(range(len(ids)), len(ids))
    assert names_by_item(old, [ids[i] for i in order], renumbered[order], 0) == expected


@given(partitions)
def test_the_matching_shares_the_most_items(case):
    """Against all matchings, one by one."""
    old_text, raw = case
    old = before("".join(old_text))
    labels = np.unique(raw, return_inverse=True)[1]
    ids = [f"item {i:02d}" for i in range(len(raw))]
    found = names_by_item(old, ids, labels, 0)
    kept = sum(old.get(name) == found[name] for name in ids)
    olds, news = sorted(set(old.values())), range(labels.max() + 1)
    best = 0
    for chosen in itertools.permutations([*olds, *[None] * len(news)], len(news)):
        best = max(best, sum(old.get(n, "") == chosen[k] for n, k in zip(ids, labels, strict=True)))
    dropped = 0.5 * min(len(olds), len(news)) * len(ids)  # matches that share too little
    assert best - dropped <= kept <= best
    if set(found.values()) >= set(olds):
        assert kept == best


@given(st.lists(st.sampled_from("123"), min_size=1, max_size=12))
def test_the_same_partition_has_the_same_ids(text):
    old = before("".join(text))
    labels = np.unique(text, return_inverse=True)[1]
    ids = [f"item {i:02d}" for i in range(len(text))]
    assert names_by_item(old, ids, labels, 0) == old


# ---------------------------------------------------------------------------------- what changed


def table(**categories):
    return pd.DataFrame({"id": list(categories), "category": list(categories.values())})


@pytest.fixture
def changes():
    return compare(
        table(a="cat", b="cat", c="new-001", d="new-001", e="new-001", f="new-002", g="new-003"),
        table(a="cat", b="cat", c="cat", d="owl", e="owl", f="new-002", h="new-004", i="new-002"),
    )


def test_changes_are_listed(changes):
    assert changes.as_dict() == {
        "n_before": 7,
        "n_after": 8,
        "added": ["h", "i"],
        "removed": ["g"],
        "moved": [("c", "new-001", "cat"), ("d", "new-001", "owl"), ("e", "new-001", "owl")],
        "new": {"new-004": 1, "owl": 2},
        "gone": {"new-001": "owl", "new-003": ""},
        "resized": {"cat": (2, 3), "new-002": (1, 2)},
        "renamed": {"new-001": "owl"},
        "merged": {},
        "split": {},
    }


def test_changes_are_told_in_words(changes):
    assert str(changes).splitlines() == [
        "8 items, 7 before: 2 added, 1 removed, 1 in another category.",
        "Renamed: new-001 is now owl.",
        "New category: new-004 (1 item).",
        "Gone: new-003.",
        "Grown: cat, from 2 to 3 items.",
        "Grown: new-002, from 1 to 2 items.",
    ]
    assert changes.in_words("picture") == str(changes).replace("item", "picture")


def test_merged_and_split_categories_are_told():
    before = table(a="x", b="x", c="y", d="y", e="z", f="z")
    changes = compare(before, table(a="x", b="x", c="x", d="x", e="z", f="new-001"))
    assert changes.merged == {"x": ["x", "y"]}
    assert changes.split == {"z": ["new-001", "z"]}
    assert str(changes).splitlines()[1:4] == [
        "Merged into x: y.",
        "Split: z is now new-001, z.",
        "New category: new-001 (1 item).",
    ]
    assert "Gone" not in str(changes)


def test_a_category_that_was_given_up_is_gone_and_not_split():
    before = table(a="x", b="x", c="x", d="x", e="y", f="y", g="y", h="z")
    now = table(a="owl", b="owl", c="z", d="z", e="owl", f="owl", g="owl", h="z")
    changes = compare(before, now)
    assert (changes.renamed, changes.split) == ({"y": "owl"}, {})
    assert "Gone: x; most of its items are now in owl." in str(changes)


def test_the_parts_of_a_split_are_told_once():
    changes = compare(table(a="x", b="x", c="x", d="x"), table(a="p", b="p", c="q", d="q"))
    assert changes.split == {"x": ["p", "q"]}
    assert "Gone" not in str(changes)


def test_a_category_may_shrink():
    changes = compare(table(a="x", b="x", c="y"), table(a="x", b="y", c="y"))
    assert "Shrunk: x, from 2 to 1 item." in str(changes)


def test_no_change_is_told_too():
    same = table(a="x", b="y")
    assert str(compare(same, same)).endswith("The categories are the same as before.")
    swapped = compare(same, table(a="y", b="x"))
    assert "same as before" not in str(swapped)
