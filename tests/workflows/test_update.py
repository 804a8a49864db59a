"""The categories again, with more items or labels."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from samples import Blobs, Digits, Species, collection_of, objects

from newfound.errors import InputError
from newfound.files import read_json
from newfound.mixture.estimator import SplitMergeMixture
from newfound.result.run_folder import open_run
from newfound.result.sentences import answer_sentence
from newfound.result.store import read_result
from newfound.workflows import fitting
from newfound.workflows.discover import discover
from newfound.workflows.source import fingerprint
from newfound.workflows.update import update

N = 300


def categories_of(table, truth):
    """Category of most items of each true class."""
    rows = table["id"].str.split().str[-1].astype(int)
    return {int(t): table["category"][truth[rows] == t].mode()[0] for t in np.unique(truth[rows])}


@pytest.fixture
def blob_run(tmp_path):
    """A run on eight of the nine categories."""
    result = discover(Blobs.without(8), out=tmp_path / "run", rehearse=False)
    assert result.n_novel == 2
    return result, tmp_path / "run"


def test_a_new_category_gets_the_next_id_and_the_others_keep_theirs(blob_run):
    old, out = blob_run
    before = categories_of(old.table, Blobs.truth)
    result, changes = update(out, Blobs.take(np.flatnonzero(Blobs.truth == 8)))
    after = categories_of(result.table, Blobs.truth)
    assert after == {**before, 8: "new-003"}
    assert changes.new == {"new-003": 30}
    assert (len(changes.added), changes.moved, changes.gone) == (30, [], {})
    assert result.record.command == "update"
    assert result.record.last_id == 3
    pd.testing.assert_frame_equal(read_result(out).table, result.table)
    assert json.loads((out / "changes.json").read_text())["new"] == {"new-003": 30}


def test_the_partition_begins_where_it_was(blob_run, monkeypatch):
    old, out = blob_run
    seen = {}
    refit = SplitMergeMixture.refit

    def listen(mixture, X, y, labels):
        seen.update(labels=labels, y=y)
        return refit(mixture, X, y, labels)

    monkeypatch.setattr(SplitMergeMixture, "refit", listen)
    # a label for an old item is a reason to fit again
    free = int(np.flatnonzero((Blobs.truth == 4) & (np.arange(270) % 2 == 0))[0])
    rows = [free, *np.flatnonzero(Blobs.truth == 8)[:5]]
    update(out, replace(Blobs.take(rows), y=objects(["class 4", *[None] * 5])))
    codes = old.table["category"].map({name: i for i, name in enumerate(old.categories.category)})
    assert seen["labels"][:240].tolist() == codes.tolist()
    nearest = old.mixture.predict(Blobs.X[Blobs.truth == 8][:5])
    assert seen["labels"][240:].tolist() == nearest.tolist()


def test_a_new_species_is_found_and_old_items_stay(tmp_path):
    old = discover(Species.take(Species.before), out=tmp_path, rehearse=False)
    more = np.append(Species.late, Species.hidden)
    result, changes = update(tmp_path, Species.take(more))
    assert len(changes.new) == 1
    (name,) = changes.new
    of_hidden = result.table["category"][-len(Species.hidden) :]
    assert (of_hidden == name).mean() > 0.8
    assert len(changes.moved) < 0.02 * len(old)
    assert changes.gone == {}


def test_more_of_the_same_brings_no_new_category(tmp_path):
    discover(Species.take(Species.before), out=tmp_path, rehearse=False)
    _, changes = update(tmp_path, Species.take(Species.late))
    assert (changes.new, changes.gone, changes.moved) == ({}, {}, [])


def test_more_new_items_than_old_ones_are_a_reason_to_fit_again(tmp_path, monkeypatch):
    rows = Species.before[::3]
    discover(Species.take(rows), out=tmp_path, rehearse=False)
    calls = []
    refit = SplitMergeMixture.refit
    monkeypatch.setattr(
        SplitMergeMixture, "refit", lambda *values: calls.append(1) or refit(*values)
    )
    update(tmp_path, Species.take(np.setdiff1d(Species.before, rows)))
    assert calls == [1]


def test_a_run_can_be_updated_into_another_folder(blob_run, tmp_path):
    out = blob_run[1]
    result, _ = update(out, Blobs.take(np.flatnonzero(Blobs.truth == 8)), out=tmp_path / "next")
    assert len(read_result(out)) == 240
    assert len(read_result(tmp_path / "next")) == len(result) == 270
    again, changes = update(tmp_path / "next", Blobs.take(range(270)))
    assert str(changes).endswith("The categories are the same as before.")
    assert again.table["category"].tolist() == result.table["category"].tolist()


@pytest.mark.parametrize("elsewhere", [False, True])
def test_an_update_that_was_killed_after_its_commit_is_only_shown(blob_run, tmp_path, elsewhere):
    _, out = blob_run
    more = Blobs.take(np.flatnonzero(Blobs.truth == 8))
    options = {"out": tmp_path / "next"} if elsewhere else {}
    target = tmp_path / "next" if elsewhere else out
    (out / "report.html").write_text("about the old result")
    result, changes = update(out, more, **options)
    assert (out / "report.html").exists() == elsewhere
    before = {path: path.read_bytes() for path in target.rglob("*.*") if path.is_file()}
    again, repeated = update(out, more, **options)
    assert repeated == changes
    pd.testing.assert_frame_equal(again.table, result.table)
    assert {path: path.read_bytes() for path in before} == before
    assert read_json(target / "started.json")["command"] == "update"


def test_the_same_items_with_a_new_label_are_another_update(blob_run):
    _, out = blob_run
    more = Blobs.take(np.flatnonzero(Blobs.truth == 8))
    update(out, more)
    result, changes = update(out, replace(more, y=objects(["owl"] * 5 + [None] * 25)))
    assert (changes.added, changes.gone) == ([], {"new-003": "owl"})
    assert "owl" in result.names


def test_a_novel_category_that_a_person_names_becomes_that_class(tmp_path):
    out = tmp_path / "run"
    # 4 labels of 30, beside 15 of 30, are no equal label rate: novel categories would seem smaller
    old = discover(Blobs.without(8), out=out, rehearse=False)
    name = categories_of(old.table, Blobs.truth)[7]
    rows = np.flatnonzero(Blobs.truth == 7)
    labelled = replace(Blobs.take(rows), y=objects(["owl"] * 4 + [None] * 26))
    result, changes = update(out, labelled)
    assert (result.n_known, result.n_novel) == (7, 1)
    assert categories_of(result.table, Blobs.truth)[7] == "owl"
    assert changes.gone == {name: "owl"}
    other = categories_of(old.table, Blobs.truth)[6]
    assert categories_of(result.table, Blobs.truth)[6] == other


def test_new_labels_go_first_and_old_ones_stay(blob_run):
    old, out = blob_run
    # an item that has a label, one that has none, and one whose label is not given again
    first, second = (np.flatnonzero(old.table["given_label"].notna())[:2]).tolist()
    free = int(np.flatnonzero(old.table["given_label"].isna())[0])
    rows = [first, second, free]
    more = replace(old.collection.take(rows), y=objects(["class 5", None, "class 4"]))
    result, _ = update(out, more)
    labels = result.table["given_label"]
    assert labels[first] == result.table["category"][first] == "class 5"
    assert labels[second] == old.table["given_label"][second]
    assert labels[free] == "class 4"
    assert labels.notna().sum() == old.table["given_label"].notna().sum() + 1


def test_ids_that_are_taken_get_the_name_of_their_file(blob_run, tmp_path):
    old, out = blob_run
    rows = np.flatnonzero(Blobs.truth == 8)[:10]
    same_ids = old.collection.ids[:10]
    more = collection_of(Blobs.X[rows], [None] * 10, same_ids, root=tmp_path / "more.npz")
    result, changes = update(out, more)
    assert changes.added == [f"more.npz/{name}" for name in same_ids]
    assert len(result) == 250
    again, repeated = update(out, more)
    assert (len(again), repeated) == (250, changes)
    other = replace(more, features=more.features + 1)
    with pytest.raises(InputError, match="already has an item 'item 000' with other content"):
        update(out, other)


def test_pictures_of_another_folder_are_other_pictures(finished, pictures, tmp_path):
    result, out = finished
    folder = tmp_path / "more"
    Digits.write(folder, range(5))
    for i in reversed(range(5)):
        (folder / f"{i:03d}.png").rename(folder / f"{i + 1:03d}.png")
    found, changes = update(out, folder, out=tmp_path / "next")
    assert changes.added == [f"more/{i:03d}.png" for i in range(1, 6)]
    assert found.collection.paths[-1] == folder / "005.png"
    same, changes = update(out, pictures / "pictures", out=tmp_path / "same")
    assert (len(same), changes.added) == (N, [])
    assert same.table["given_label"].tolist() == result.table["given_label"].tolist()


def test_more_labels_for_the_pictures_of_a_run(finished, pictures, tmp_path):
    result, out = finished
    (tmp_path / "labels.csv").write_text("path,label\n005.png,a five\n015.png,a five\n")
    found, _ = update(out, pictures / "pictures", tmp_path / "labels.csv", out=tmp_path / "next")
    assert found.n_known == 6
    assert found.table["category"][[5, 15]].tolist() == ["a five", "a five"]
    kept = result.table["given_label"].notna()
    assert (found.table["given_label"] == result.table["given_label"])[kept].all()


def test_an_update_rehearses_if_the_run_did(tmp_path, monkeypatch):
    monkeypatch.setattr(fitting, "N_DRAWS_OF_MOST_ROWS", 2)
    discover(Blobs.without(8), out=tmp_path)
    more = Blobs.take(np.flatnonzero(Blobs.truth == 8))
    assert update(tmp_path, more)[0].record.rehearsal.n_draws == 2


def test_a_given_number_stays(tmp_path):
    discover(Blobs.without(8), out=tmp_path, n_categories=8)
    result, _ = update(tmp_path, Blobs.take(np.flatnonzero(Blobs.truth == 8)))
    assert len(result.categories) == 8
    assert "as requested" in answer_sentence(result.record)


def test_ctrl_c_leaves_the_run_as_it_was(blob_run, stop_at):
    old, out = blob_run
    more = Blobs.take(np.flatnonzero(Blobs.truth == 8))
    with pytest.raises(KeyboardInterrupt):
        update(out, more, progress=stop_at("Finding categories", 0))
    pd.testing.assert_frame_equal(read_result(out).table, old.table)
    assert len(update(out, more)[0]) == 270


def test_a_run_in_use_is_not_updated(blob_run):
    old, out = blob_run
    data = fingerprint(old.collection)
    with (
        open_run(out, command="discover", data=data),
        pytest.raises(InputError, match="in use"),
    ):
        update(out, Blobs.take([0]))


def test_after_an_update_the_first_command_is_refused(blob_run):
    out = blob_run[1]
    update(out, Blobs.take(np.flatnonzero(Blobs.truth == 8)))
    with pytest.raises(InputError, match="holds a run of `newfound update`"):
        discover(Blobs.without(8), out=out)


def test_folders_of_which_nothing_can_be_used_are_named(finished, tmp_path):
    Digits.write(tmp_path / "more", range(N, N + 5))
    for name, content in {"owl/IMG_1.CR2": b"raw", "hawk/broken.png": b"no picture"}.items():
        (tmp_path / "more" / name).parent.mkdir()
        (tmp_path / "more" / name).write_bytes(content)
    result, _ = update(finished[1], tmp_path / "more", out=tmp_path / "next")
    warned = [text for text in result.record.warnings if "skipped.csv" in text]
    assert warned == [
        "1 folder has no file that could be used, and no part in the result: owl. skipped.csv has "
        "the reasons.",
        "1 class lost all labelled items, because none of them could be read: hawk. skipped.csv "
        "has the reasons.",
    ]
    skipped = pd.read_csv(tmp_path / "next" / "skipped.csv")["path"].tolist()
    assert {"owl/IMG_1.CR2", "hawk/broken.png"} <= set(skipped)


def test_an_update_keeps_the_least_confidence_or_takes_another(marked, tmp_path):
    _, run = marked
    more = collection_of(Digits.X[N:350], [None] * 50, [f"more {i}" for i in range(50)])
    for given, least in ((None, 0.9), (0.5, 0.5)):
        out = tmp_path / str(given)
        result, _ = update(run, more, out=out, min_confidence=given)
        is_free = result.table["given_label"].isna()
        is_low = result.table["confidence"] < least
        assert result.table["is_unsure"].tolist() == (is_low & is_free).tolist()
        assert read_result(out).record.settings.min_confidence == least
    with pytest.raises(InputError, match="min_confidence must be"):
        update(run, more, out=tmp_path / "no", min_confidence=2)


@pytest.mark.parametrize("relabelled", [False, True])
def test_an_update_keeps_what_was_said_about_sizes(tmp_path, relabelled):
    discover(Blobs.without(8), out=tmp_path / "run", rehearse=False, sizes="alike")
    rows = np.flatnonzero(Blobs.truth == (0 if relabelled else 8))
    more = Blobs.take(rows)
    if relabelled:  # a label of an old item: the mixture is fitted again
        more = replace(more, y=objects(["class 0"] * len(rows)))
    result, _ = update(tmp_path / "run", more)
    assert result.mixture.sizes == "alike"
    assert result.record.settings.sizes == "alike"
    assert result.record.novel_size.decided_by == "given"
    assert "The number assumes that new categories are about as large as known ones" in result.trust
