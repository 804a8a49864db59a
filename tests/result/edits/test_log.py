"""The file edits.csv, however a person leaves it."""

import csv

import pytest

from newfound.errors import InputError
from newfound.result.edits.log import COLUMNS, EDITS, Edit, active_edits, add_edit, read_edits

ODD = ['<script>alert("1")</script>', 'a, b; "c"', "two\nlines", "cr\r", "=1+1", " blank", "é"]


@pytest.mark.parametrize("text", ODD)
def test_any_text_comes_back_as_it_was(tmp_path, text):
    add_edit(tmp_path, Edit("rename", text, value=text, note=text))
    (edit,) = read_edits(tmp_path)
    assert (edit.subject, edit.value, edit.note) == (text, text, text)


def test_rows_get_ids_and_times_and_a_spreadsheet_can_read_them(tmp_path):
    first, second = (add_edit(tmp_path, Edit("confirm", name)) for name in ("a", "b"))
    assert [edit.id for edit in (first, second)] == ["e1", "e2"]
    assert read_edits(tmp_path) == [first, second]
    assert (first.row, second.row) == (2, 3)
    with (tmp_path / EDITS).open(newline="") as file:
        rows = list(csv.reader(file))
    assert tuple(rows[0]) == COLUMNS
    assert rows[1][2:4] == ["confirm", "a"]


def test_a_file_that_a_person_wrote_is_read_and_continued(tmp_path):
    path = tmp_path / EDITS
    path.write_text("Subject;Action;Colour\nnew-001; Confirm;red\n\nnew-002;reject", "utf-8-sig")
    assert [edit.content[:2] for edit in read_edits(tmp_path)] == [
        ("confirm", "new-001"),
        ("reject", "new-002"),
    ]
    assert [edit.row for edit in read_edits(tmp_path)] == [2, 4]
    add_edit(tmp_path, Edit("rename", "new-003", value="owl; or not"))
    add_edit(tmp_path, Edit("confirm", "new-004"))
    edits = read_edits(tmp_path)
    assert [edit.subject for edit in edits] == ["new-001", "new-002", "new-003", "new-004"]
    assert edits[2].value == "owl; or not"
    assert ";red" in path.read_text("utf-8-sig")


def test_a_row_is_added_after_a_last_line_without_end(tmp_path):
    add_edit(tmp_path, Edit("confirm", "a"))
    path = tmp_path / EDITS
    path.write_text(path.read_text().rstrip("\n"))
    add_edit(tmp_path, Edit("confirm", "b"))
    assert [edit.subject for edit in read_edits(tmp_path)] == ["a", "b"]


def test_no_file_and_an_empty_file_have_no_edits(tmp_path):
    assert read_edits(tmp_path) == []
    (tmp_path / EDITS).touch()
    assert read_edits(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"a,b\n1,2\n", "needs a header"), ("action,subject\né".encode("latin-1"), "not in UTF-8")],
)
def test_what_is_no_table_of_edits_is_told(tmp_path, content, words):
    (tmp_path / EDITS).write_bytes(content)
    with pytest.raises(InputError, match=words):
        read_edits(tmp_path)


def edit(id_, action="confirm", subject="x"):
    return Edit(action, subject, id=id_)


def test_undo_and_redo():
    rows = [edit("e1"), edit("e2"), edit("e3", "undo", "e1")]
    assert [e.id for e in active_edits(rows)] == ["e2"]
    rows.append(edit("e4", "undo", "e3"))
    assert [e.id for e in active_edits(rows)] == ["e1", "e2"]
    rows.append(edit("e5", "undo", "e4"))
    assert [e.id for e in active_edits(rows)] == ["e2"]
