"""What edits mean for items, and which of them contradict each other."""

import numpy as np
import pytest
from samples import collection_of

from newfound.errors import InputError
from newfound.result.edits.decisions import Obeyed, decide
from newfound.result.edits.log import Edit

OWL = {"cat": "ab", "new-001": "c", "owl": "d", "new-002": "ef"}
THIRD = {"cat": "ab", "new-001": "c", "new-003": "d", "new-002": "ef"}
DOG = {"dog": "a", "cat": "b", "new-001": "cd", "new-002": "ef"}


@pytest.fixture
def small(make_result):
    """Six items: a and b are cats, c and d in new-001, e and f in new-002; a has a label."""
    y = ["cat", None, None, None, None, None]
    collection = collection_of(np.zeros((6, 2)), y, list("abcdef"))
    return make_result(collection, [0, 0, 1, 1, 2, 2], ("cat", "new-001", "new-002"), 1)


def replay(result, *rows, obeyed=None):
    edits = [Edit(*row, **{"id": f"e{i}", "row": i + 1}) for i, row in enumerate(rows, start=1)]
    return decide(result, edits, obeyed or Obeyed())


def groups(decisions):
    found = {}
    for item, category in decisions.state.place.items():
        found[category] = found.get(category, "") + item
    return found


@pytest.mark.parametrize(
    ("row", "after", "labelled"),
    [
        (("merge", "new-001", "new-002"), {"cat": "ab", "new-001": "cdef"}, "acdef"),
        (("merge", "new-001", "cat"), {"cat": "abcd", "new-002": "ef"}, "acd"),
        (("merge", "cat", "new-001", "tom"), {"tom": "abcd", "new-002": "ef"}, "acd"),
        (("split", "new-001", "d", "owl"), OWL, "acd"),
        (("split", "new-001", "d"), THIRD, "acd"),
        (("rename", "new-001", "", "owl"), {"cat": "ab", "owl": "cd", "new-002": "ef"}, "acd"),
        (("rename", "cat", "", "tom"), {"tom": "ab", "new-001": "cd", "new-002": "ef"}, "a"),
        (("confirm", "new-002"), {"cat": "ab", "new-001": "cd", "new-002": "ef"}, "aef"),
        (("reject", "new-001"), {"cat": "ab", "": "cd", "new-002": "ef"}, "a"),
        (("relabel", "a", "", "dog"), DOG, "a"),
        (("relabel", "a", "", "new-001"), {"cat": "b", "new-001": "acd", "new-002": "ef"}, ""),
        (("relabel", "a"), {"cat": "ab", "new-001": "cd", "new-002": "ef"}, ""),
        (("move", "c\nd", "cat"), {"cat": "abcd", "new-002": "ef"}, "acd"),
        (("move", "c", "new-002"), {"cat": "ab", "new-001": "d", "new-002": "cef"}, "a"),
    ],
)  # fmt: skip
def test_each_action(small, row, after, labelled):
    decisions = replay(small, row)
    decisions.check()
    assert {name: "".join(sorted(items)) for name, items in groups(decisions).items()} == after
    labels = decisions.state.labels
    assert "".join(item for item in labels if labels[item] is not None) == labelled
    assert all(labels[item] in (None, decisions.state.place[item]) for item in labels)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([("murge", "a", "b")], r"Row 2: the action 'murge' is unknown.*Did you mean 'merge'"),
        ([("merge", "new-001")], "Row 2: merge needs a text in the column object"),
        ([("merge", "new-01", "cat")], "Row 2: there is no category 'new-01'. Did you mean"),
        ([("move", "g", "cat")], "Row 2: there is no item 'g'"),
        ([("split", "new-001", "e")], "'e' is in 'new-002', not in 'new-001'"),
        ([("split", "new-001", "c\nd")], "all items of 'new-001'"),
        ([("rename", "new-001", "", "cat")], "a category 'cat' already. To make them one, use"),
        ([("rename", "new-001", "", " x")], "cannot be a name"),
        ([("reject", "cat")], "'cat' has labels"),
        ([("merge", "cat", "cat")], "cannot be merged with itself"),
        ([("undo", "e9")], "Row 2: no row above has the id 'e9'"),
        (
            [("different", "new-001", "new-002"), ("merge", "new-001", "new-002")],
            "Row 3: row 2 says that two are different, but row 3 puts both into 'new-001'",
        ),
        (
            [("merge", "new-001", "new-002"), ("different", "new-001", "new-002")],
            "Row 3: there is no category 'new-002' any more: row 2 changed it; its items are now",
        ),
        (
            [("move", "c", "cat"), ("move", "c\nb", "new-002")],
            "Row 3: 'c' goes to 'new-002', but row 2 puts it into 'cat'",
        ),
        ([("confirm", "new-001"), ("reject", "new-001")], "Row 3: 'new-001' has labels"),
        ([("same", "c", "e"), ("different", "c", "e")], "Row 3: 'c' and 'e' are different, but"),
        (
            [("same", "c", "d"), ("same", "d", "e"), ("different", "e", "c")],
            "Row 4: 'e' and 'c' are different, but other rows link them",
        ),
        (
            [("confirm", "new-001"), ("same", "a", "c")],
            "Row 3: 'a' and 'c' are the same, but they are in 'cat' and 'new-001'",
        ),
        (
            [("different", "c", "d"), ("confirm", "new-001")],
            "Row 3: row 2 says that two are different, but row 3 puts both",
        ),
    ],
)
def test_what_cannot_be_obeyed_is_told_by_row(small, rows, words):
    with pytest.raises(InputError, match=words):
        replay(small, *rows).check()


def test_an_item_without_links_differs_from_linked_ones(small):
    rows = [("same", "c", "d"), ("different", "e", "c"), ("different", "c", "a")]
    assert replay(small, *rows).problems == []


def test_all_bad_rows_are_told_at_once(small):
    decisions = replay(small, ("confirm", "x"), ("confirm", "cat"), ("confirm", "y"))
    with pytest.raises(InputError, match=r"nothing was changed(.|\n)*Row 2(.|\n)*Row 4"):
        decisions.check()
    assert "Row 3" not in str(decisions.problems)


def test_an_undone_row_leaves_no_trace_even_after_it_was_obeyed(small, make_result):
    merged = replay(small, ("merge", "new-001", "new-002"))
    y = list(merged.state.labels.values())
    collection = collection_of(np.zeros((6, 2)), y, list("abcdef"))
    after = make_result(collection, [0, 0, 1, 1, 1, 1], ("cat", "new-001"), 2)
    again = replay(after, ("merge", "new-001", "new-002"), obeyed=merged.obeyed)
    assert not again.is_new
    again.check()  # new-002 is gone, but what the row meant is known
    assert groups(again) == {"cat": "ab", "new-001": "cdef"}
    undone = replay(after, ("merge", "new-001", "new-002"), ("undo", "e1"), obeyed=merged.obeyed)
    assert undone.is_new
    assert groups(undone) == {"cat": "ab", "new-001": "cd", "new-002": "ef"}
    assert list(undone.state.labels.values()) == ["cat", None, None, None, None, None]


def test_later_rows_see_what_earlier_ones_did(small):
    decisions = replay(
        small,
        ("rename", "new-001", "", "<b>owl</b>"),
        ("move", "e", "<b>owl</b>"),
        ("merge", "<b>owl</b>", "new-002"),
    )
    decisions.check()
    assert {k: sorted(v) for k, v in groups(decisions).items()} == {
        "cat": list("ab"),
        "<b>owl</b>": list("cdef"),
    }


def test_a_rejected_category_that_forms_again_is_dissolved_again(small):
    rejected = replay(small, ("reject", "new-001"))
    again = replay(small, ("reject", "new-001"), obeyed=rejected.obeyed)
    assert groups(again) == {"cat": "ab", "": "cd", "new-002": "ef"}


def test_different_categories_that_the_model_puts_together_are_parted_again(small, make_result):
    apart = replay(small, ("different", "new-001", "new-002"))
    merged = make_result(small.collection, [0, 0, 1, 1, 1, 1], ("cat", "new-001"), 1)
    again = replay(merged, ("different", "new-001", "new-002"), obeyed=apart.obeyed)
    again.check()
    assert sorted(groups(again).values()) == ["ab", "cd", "ef"]


def test_an_id_with_a_line_break_is_one_item(make_result):
    ids = ["a\nb", "a", "c", "d"]
    collection = collection_of(np.zeros((4, 2)), ["cat", None, None, None], ids)
    result = make_result(collection, [0, 0, 1, 1], ("cat", "new-001"), 1)
    decisions = replay(result, ("move", "a\nb", "new-001"))
    # the first line is an id of its own, and the rest is not
    assert "no item 'b'" in str(decisions.problems)
    decisions = replay(result, ("move", "c\nd", "cat"))
    assert decisions.problems == []


def test_categories_and_items_of_the_same_name(make_result):
    collection = collection_of(np.zeros((4, 2)), ["1", "0", None, None], list("0123"))
    result = make_result(collection, [1, 0, 2, 2], ("0", "1", "new-001"), 2)
    of_categories = replay(result, ("different", "0", "1"))
    of_items = replay(result, ("different", "0", "1", "items"))
    assert of_categories.state.apart == [(2, ["1"], ["0"])]
    assert of_items.state.apart == [(2, ["0"], ["1"])]
