"""A run obeys the edits of a person, whatever the model says."""

import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from samples import Blobs

from newfound.errors import InputError
from newfound.report.audit_table import undecided_labels, write_audit
from newfound.result.edits.decisions import Obeyed, decide
from newfound.result.edits.log import EDITS, read_edits
from newfound.result.store import read_result
from newfound.workflows.discover import discover
from newfound.workflows.job import Job
from newfound.workflows.obeying import obey
from newfound.workflows.update import update

ODD = '<img src=x onerror="alert(1)">, a; "b"\nand so on'


def members(result, category):
    return set(result.table["id"][result.table["category"] == category])


def of_truth(result, *classes):
    rows = result.table["id"].str.split().str[-1].astype(int).to_numpy()
    return set(result.table["id"][np.isin(Blobs.truth[rows], classes)])


def rest(result, *categories):
    """Category of every item that is in none of these."""
    kept = ~result.table["category"].isin(categories)
    return dict(zip(result.table["id"][kept], result.table["category"][kept], strict=True))


def test_merged_categories_are_one_and_the_others_stay(run):
    run.merge("new-001", "new-002")
    result, changes = update(run.folder)
    assert members(result, "new-001") == of_truth(run, 6, 7)
    assert (result.n_known, result.n_novel) == (7, 0)
    assert changes.merged == {"new-001": ["new-001", "new-002"]}
    assert rest(result, "new-001") == rest(run, "new-001", "new-002")
    pd.testing.assert_frame_equal(read_result(run.folder).table, result.table)


def test_a_novel_category_that_is_a_known_one(run):
    run.merge("class 0", "new-002")
    result, changes = update(run.folder)
    assert members(result, "class 0") == members(run, "class 0") | members(run, "new-002")
    assert changes.merged == {"class 0": ["class 0", "new-002"]}


def test_a_split_category_is_two(run):
    picked = sorted(members(run, "new-001"))[:9]
    run.split("new-001", picked, "small owl")
    result, changes = update(run.folder)
    assert members(result, "small owl") == set(picked)
    assert members(result, "new-001") == members(run, "new-001") - set(picked)
    assert changes.split == {"new-001": ["new-001", "small owl"]}


def test_a_name_with_anything_in_it_stays(run):
    run.rename("new-001", ODD)
    result, changes = update(run.folder)
    assert members(result, ODD) == members(run, "new-001")
    assert changes.renamed == {"new-001": ODD}
    assert read_result(run.folder).names == result.names
    assert ODD in result.names[: result.n_known]
    assert rest(result, ODD) == rest(run, "new-001")


def test_confirming_what_is_right_leaves_the_number_of_categories(run):
    run.confirm("new-001")
    result, changes = update(run.folder)
    assert len(result.names) == len(run.names)
    assert (result.n_known, result.n_novel) == (7, 1)
    assert result.record.n_novel_interval[0] == pytest.approx(
        max(0, run.record.n_novel_interval[0] - 1)
    )
    assert changes.moved == []


def test_items_of_a_rejected_category_are_distributed_anew(run):
    run.reject("new-001")
    result, changes = update(run.folder)
    assert "new-001" not in result.names
    assert len(result.names) == len(run.names) - 1
    assert {item for item, _, _ in changes.moved} == members(run, "new-001")
    more = Blobs.take(np.flatnonzero(Blobs.truth == 8))
    later, _ = update(run.folder, more)
    homes = later.table.set_index("id")["category"][sorted(members(run, "new-001"))]
    shares = homes.value_counts()
    others = [len(members(later, name)) for name in shares.index]
    assert all(n <= 0.5 * max(30, m) for n, m in zip(shares, others, strict=True))


@pytest.mark.parametrize("category", ["class 0", "new-002"])
def test_a_moved_item_keeps_its_place(run, category):
    item = min(members(run, "new-001"))
    run.move(item, category)
    result, changes = update(run.folder)
    assert item in members(result, category)
    assert changes.moved == [(item, "new-001", category)]
    later, _ = update(run.folder, Blobs.take(np.flatnonzero(Blobs.truth == 8)))
    assert item in members(later, category)
    assert result.n_known == run.n_known


def test_a_relabelled_item_has_its_new_label(run):
    labelled = run.table[run.table["given_label"] == "class 1"]["id"].tolist()
    run.relabel(labelled[0], "class 2")
    run.relabel(labelled[1], "class 1")  # a label that was doubted and is kept
    run.relabel(labelled[2], None)
    table = update(run.folder)[0].table.set_index("id")
    assert table["given_label"][labelled[:3]].tolist() == ["class 2", "class 1", None]
    assert table["category"][labelled[:3]].tolist() == ["class 2", "class 1", "class 1"]


def test_pairs_of_items_hold(run):
    same = min(members(run, "new-001")), min(members(run, "new-002"))
    apart = sorted(members(run, "new-001"))[1:4]
    run.same(*same, probability=0.125)
    run.different(apart[0], apart[1])
    run.different(apart[0], apart[2])
    run.different(apart[1], apart[2])
    result, _ = update(run.folder)
    category = result.table.set_index("id")["category"]
    assert category[same[0]] == category[same[1]]
    assert len(set(category[apart])) == 3
    assert read_edits(run.folder)[0].probability == "0.125"
    later, _ = update(run.folder, Blobs.take(np.flatnonzero(Blobs.truth == 8)))
    category = later.table.set_index("id")["category"]
    assert category[same[0]] == category[same[1]]
    assert len(set(category[apart])) == 3


def test_different_categories_stay_two_and_contradictions_change_nothing(run):
    run.different("new-001", "new-002")
    with pytest.raises(InputError, match="row 2 says that two are different, but row 3 puts both"):
        run.merge("new-001", "new-002")
    assert len(read_edits(run.folder)) == 1
    with (run.folder / EDITS).open("a") as file:
        file.write(",,merge,new-001,new-002\n")
    with pytest.raises(InputError, match=r"nothing was changed(.|\n)*Row 3"):
        update(run.folder)
    pd.testing.assert_frame_equal(read_result(run.folder).table, run.table)


def test_undo_brings_everything_back_also_after_it_was_obeyed(run):
    merged = run.merge("new-001", "new-002")
    run.rename("class 0", "zero")
    result, _ = update(run.folder)
    undone = result.undo(merged)
    back, _ = update(run.folder)
    assert members(back, "new-001") == members(run, "new-001")
    assert members(back, "new-002") == members(run, "new-002")
    assert back.n_novel == 2
    assert members(back, "zero") == members(run, "class 0")
    back.undo(undone)  # redo
    assert members(update(run.folder)[0], "new-001") == of_truth(run, 6, 7)


def test_a_row_that_a_person_deletes_is_undone(run):
    run.rename("new-001", "owl")
    update(run.folder)
    (run.folder / EDITS).unlink()
    back, _ = update(run.folder)
    assert back.names == run.names
    assert back.table["given_label"].tolist() == run.table["given_label"].tolist()


def test_a_replay_gives_the_same_result(run, blobs, tmp_path):
    run.rename("new-001", "owl")
    run.move(min(members(run, "new-002")), "owl")
    run.reject("new-002")
    first, _ = update(run.folder)
    again, changes = update(run.folder)
    assert str(changes).endswith("The categories are the same as before.")
    other = shutil.copytree(blobs, tmp_path / "other")
    shutil.copy(run.folder / EDITS, other)
    replayed, _ = update(other)
    for result in (again, replayed):
        pd.testing.assert_frame_equal(result.table, first.table)


def test_edits_go_with_the_run_into_another_folder(run, tmp_path):
    run.rename("new-001", "owl")
    result, _ = update(run.folder, out=tmp_path / "next")
    assert read_result(run.folder).names == run.names
    assert "owl" in result.names
    assert [edit.action for edit in read_edits(tmp_path / "next")] == ["rename"]
    assert result.folder == tmp_path / "next"


def test_edits_and_more_items_at_once(run):
    run.rename("new-001", "owl")
    run.merge("owl", "new-002")
    result, changes = update(run.folder, Blobs.take(np.flatnonzero(Blobs.truth == 8)))
    assert members(result, "owl") == of_truth(run, 6, 7)
    assert changes.new == {"new-003": 30, "owl": 60}
    assert result.record.last_id == 3


def test_a_person_may_decide_on_everything(run):
    for name in run.names:
        run.confirm(name)
    result, _ = update(run.folder)
    assert result.collection.is_labelled.all()
    assert (result.n_known, result.n_novel) == (8, 0)


def test_categories_kept_apart_get_an_id_of_their_own(run):
    run.different("new-001", "new-002")
    result, _ = update(run.folder)
    # as if a later fit had put them together
    other = result.names.index("new-002")
    labels = np.where(result.assigned.labels == other, other - 1, result.assigned.labels)
    merged = replace(result, assigned=result.assigned._replace(labels=labels))
    decisions = decide(merged, read_edits(run.folder), Obeyed.read(run.folder))
    parted = obey(merged, decisions, Job(), None)
    assert members(parted, "new-001") == members(run, "new-001")
    assert members(parted, "new-003") == members(run, "new-002")


def test_a_given_number_changes_with_what_is_merged(tmp_path):
    run = discover(Blobs.without(8), out=tmp_path / "run", n_categories=8, rehearse=False)
    run.merge("new-001", "new-002")
    result, _ = update(run.folder)
    assert (len(result.names), result.record.settings.n_categories) == (7, 7)
    # a given number is a reason to fit again
    later, _ = update(run.folder, Blobs.take(np.flatnonzero(Blobs.truth == 8)))
    assert len(later.names) == 7
    assert of_truth(run, 6, 7) <= members(later, "new-001")


def test_labels_that_follow_from_decisions_are_not_audited(run):
    for name in run.names:
        run.confirm(name)
    result, _ = update(run.folder)
    assert not undecided_labels(result).any()
    assert write_audit(result, run.folder / "audit.csv") == 0


def test_nothing_to_do_is_told(run):
    with pytest.raises(InputError, match="nothing to do"):
        update(run.folder)


def test_a_result_in_no_folder_takes_no_edits(run):
    result = discover(Blobs.without(8), rehearse=False, n_categories=8)
    with pytest.raises(InputError, match="in no run folder"):
        result.confirm("new-001")


def test_what_was_obeyed_is_not_read_from_a_changed_file(run):
    run.rename("new-001", "owl")
    update(run.folder)
    path = run.folder / "decisions.json"
    path.write_text(path.read_text().replace("owl", "elk", 1))
    with pytest.raises(InputError, match=r"decisions\.json is damaged .* or delete it"):
        update(run.folder)
    for name in (path, run.folder / EDITS):
        name.unlink()
    read_result(run.folder).rename("new-002", "elk")
    result, _ = update(run.folder)
    assert {"owl", "elk"} <= set(result.names)
