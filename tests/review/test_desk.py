"""What the page shows, and what it writes."""

import pytest

from newfound.errors import InputError
from newfound.result.edits.log import Edit, read_edits
from newfound.result.store import read_result
from newfound.review.desk import Desk
from newfound.review.queues import Pair, in_order
from newfound.workflows.update import update


def names(desk):
    return {card["name"] for card in desk.view()["cards"]}


def test_undo_and_redo_in_any_depth(features_run):
    desk = Desk(features_run)
    before = names(desk)
    desk.add(Edit("rename", "new-001", value="owl"))
    desk.add(Edit("rename", "new-002", value="hawk"))
    after = names(desk)
    assert [desk.undo().value, desk.undo().value] == ["hawk", "owl"]
    assert names(desk) == before
    assert [desk.redo().value, desk.redo().value] == ["owl", "hawk"]
    assert names(desk) == after
    with pytest.raises(InputError, match="nothing to redo"):
        desk.redo()
    desk.undo()
    desk.add(Edit("confirm", "new-002"))
    with pytest.raises(InputError, match="nothing to redo"):
        desk.redo()
    assert names(Desk(features_run)) == names(desk)


def test_questions_that_are_answered_are_not_asked_again(features_run):
    desk = Desk(features_run)
    (question, *_) = desk.view()["questions"]
    asked = question["first"], question["second"]
    desk.add(Edit("different", *asked))
    assert question not in desk.view()["questions"]
    desk.undo()
    assert question in desk.view()["questions"]
    desk.add(Edit("merge", *asked))
    assert question not in desk.view()["questions"]
    update(features_run)
    assert not set(asked) <= names(desk)
    assert desk.view()["n_pending"] == 0


def test_a_file_that_cannot_be_read_is_told_and_not_overwritten(features_run):
    desk = Desk(features_run)
    (features_run / "edits.csv").write_text("nonsense\n")
    assert "needs a header" in desk.view()["trouble"]
    with pytest.raises(InputError, match="needs a header"):
        desk.add(Edit("confirm", "new-001"))
    assert (features_run / "edits.csv").read_text() == "nonsense\n"


def test_doubtful_categories_come_first_then_pairs_then_size_times_doubt():
    def card(name, weak=(), size=10, doubt=0.5, kind="novel", decided=False):
        return {"name": name, "weak": list(weak), "size": size, "doubt": doubt} | {
            "kind": kind,
            "decided": decided,
        }

    cards = [
        card("decided", ["a", "b"], decided=True),
        card("known", ["a"], kind="known"),
        card("small"),
        card("large", size=99),
        card("paired", size=1),
        card("mixed", ["a", "b"]),
        card("doubtful", ["a"]),
    ]
    pairs = [Pair("paired", "known", 0.7), Pair("small", "large", None)]
    ordered = [c["name"] for c in in_order(cards, pairs)]
    assert ordered == ["mixed", "doubtful", "paired", "large", "small", "known", "decided"]


def test_all_members_are_there_the_most_typical_first(features_run):
    desk = Desk(features_run)
    result = read_result(features_run)
    members = desk.members("new-001")
    code = result.names.index("new-001")
    assert sorted(members["rows"]) == (result.assigned.labels == code).nonzero()[0].tolist()
    distances = result.assigned.distance[members["rows"]]
    assert (distances[:-1] <= distances[1:]).all()
    assert desk.members("new-001", 25)["rows"] == members["rows"][25:]
    with pytest.raises(InputError, match="no category"):
        desk.members("nobody")


def test_a_mixed_category_is_halved_where_it_divides(features_run):
    desk = Desk(features_run)
    sides = [set(desk.members(name)["rows"]) for name in ("new-001", "new-002")]
    desk.add(Edit("merge", "new-001", "new-002"))
    assert set(desk.members("new-001")["half"]) in sides


def test_items_that_are_moved_again_go_where_they_are_sent_last(features_run):
    desk = Desk(features_run)
    ids = [desk.item(row)["id"] for row in desk.members("new-001")["rows"][:2]]
    desk.add(Edit("move", "\n".join(ids), "class 0"))
    desk.add(Edit("move", ids[0], "new-002"))
    place = desk.decisions.state.place
    assert [place[item] for item in ids] == ["new-002", "class 0"]
    assert desk.decisions.problems == []
    assert [edit.action for edit in read_edits(features_run)] == ["move", "undo", "move", "move"]
    update(features_run)
    table = read_result(features_run).table.set_index("id")
    assert table["category"][ids].tolist() == ["new-002", "class 0"]


def test_edits_of_a_page_are_those_of_python(features_run):
    Desk(features_run).add(Edit("confirm", "new-001"))
    read_result(features_run).confirm("new-002")
    assert [edit.id for edit in read_edits(features_run)] == ["e1", "e2"]


def test_answers_to_drawn_questions_narrow_the_number_and_can_be_undone(features_run):
    desk = Desk(features_run)
    number = desk.view()["number"]
    first = number["questions"][0]
    pair = [desk.item(first[side])["id"] for side in ("first", "second")]
    desk.add(Edit("different", *pair, value="items", probability=first["probability"]))
    after = desk.view()["number"]
    assert first not in after["questions"]
    assert (number["n_answers"], after["n_answers"]) == (0, 1)
    assert number["now"] == number["before"] == after["before"]
    desk.add(Edit("different", pair[1], pair[0], value="items"))  # nobody drew this one
    assert desk.view()["number"]["now"] == after["now"]
    desk.undo()
    desk.undo()
    assert desk.view()["number"] == number
