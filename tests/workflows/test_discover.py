"""The main job, on scikit-learn's digits as features and as pictures."""

import json
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from samples import Blobs, Digits, collection_of

from newfound.deep.settings import Settings
from newfound.encode import Encoded
from newfound.encode import pictures as picture_files
from newfound.errors import InputError
from newfound.progress import NOTE
from newfound.report.page import render_report
from newfound.result.record import Request, RunRecord
from newfound.result.run_folder import open_run
from newfound.result.sentences import answer_sentence, trust_sentence
from newfound.result.store import read_result
from newfound.workflows import encoding, fitting
from newfound.workflows.discover import discover
from newfound.workflows.finished import NOT_REHEARSED, is_complete
from newfound.workflows.source import fingerprint

GREY = "pixels-8x8-grey"
N = 300


def test_a_folder_of_pictures(pictures, finished):
    result, out = finished
    assert len(result) == N
    assert result.n_known == 5
    assert result.table["category"].notna().all()
    labelled = result.table["given_label"].notna()
    assert result.table["given_label"].tolist() == list(Digits.y[:N])
    assert (result.table["category"] == result.table["given_label"])[labelled].all()
    assert [(item.path, item.reason) for item in result.collection.skipped] == [
        ("broken.png", "not a picture in a format that can be read")
    ]
    assert result.record.encoder == GREY
    assert result.encoder == {"kind": "network", "name": GREY}
    assert result.record.source == str(pictures / "pictures")
    assert "broken.png" in (out / "skipped.csv").read_text()


def test_what_is_returned_is_what_is_written(finished):
    result, out = finished
    again = read_result(out)
    pd.testing.assert_frame_equal(again.table, result.table)
    pd.testing.assert_frame_equal(again.categories, result.categories)
    assert again.record == result.record
    written = json.loads((out / "run.json").read_text())
    assert RunRecord.from_json(written) == result.record
    assert written["sentence"] == answer_sentence(result.record)


def test_the_run_says_how_to_do_it_again(pictures, finished):
    result, out = finished
    assert result.record.rerun == (
        f"newfound discover {pictures}/pictures --no-rehearse --labels {pictures}/labels.csv "
        f"--out {out} --encoder {GREY} --seed 0"
    )
    assert set(result.record.timings) == {"read", "encode", "fit", "total"}
    assert {"python", "numpy", "scikit-learn"} <= set(result.record.versions)
    assert result.record.settings == Request(rehearse=False, encoder=GREY)


def test_features_without_a_run_folder(digits_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = discover(digits_file, rehearse=False)
    assert result.features.shape == (N, 64)
    assert result.record.kind == "features"
    assert list(tmp_path.iterdir()) == []


def test_the_order_of_the_items_does_not_matter():
    collection = collection_of(Digits.X[:N], Digits.y[:N])
    order = np.random.default_rng(1).permutation(N)
    first = discover(collection, rehearse=False)
    second = discover(collection.take(order), rehearse=False)
    expected = first.table.iloc[order].reset_index(drop=True)
    assert second.table["id"].tolist() == expected["id"].tolist()
    assert second.table["category"].tolist() == expected["category"].tolist()
    np.testing.assert_allclose(second.table["confidence"], expected["confidence"], atol=1e-4)


@pytest.mark.parametrize("data", [Digits, Blobs])
def test_the_names_of_the_classes_do_not_matter(data, monkeypatch):
    monkeypatch.setattr(fitting, "N_DRAWS_OF_MOST_ROWS", 2)
    n_rows = min(N, len(data.X))
    classes = sorted({name for name in data.y if name is not None})
    shuffled = np.random.default_rng(0).permutation(classes)
    names = {**dict(zip(classes, shuffled, strict=True)), None: None}
    first = discover(collection_of(data.X[:n_rows], data.y[:n_rows]))
    renamed = collection_of(data.X[:n_rows], [names[name] for name in data.y[:n_rows]])
    second = discover(renamed)
    expected = first.table.replace({"category": names, "runner_up": names})
    assert second.table["category"].tolist() == expected["category"].tolist()
    np.testing.assert_array_equal(second.table["confidence"], first.table["confidence"])
    for fact in ("n_novel", "n_novel_interval", "label_rate", "novel_share", "rehearsal"):
        assert getattr(second.record, fact) == getattr(first.record, fact)


def test_the_seed_is_read(digits_file):
    seen = [discover(digits_file, rehearse=False, seed=seed).mixture for seed in (0, 0, 9)]
    assert [mixture.random_state for mixture in seen] == [0, 0, 9]
    np.testing.assert_array_equal(seen[0].labels_, seen[1].labels_)


def test_texts(tmp_path, monkeypatch):
    lines = ["text,label", *[f"text {i},{Digits.y[i] or ''}" for i in range(N)]]
    (tmp_path / "texts.csv").write_text("\n".join(lines))

    def encode_texts(texts, cache, progress):
        assert cache == tmp_path / "run" / "cache"
        progress(N, N)
        return Encoded(Digits.X[:N], np.arange(N), [], "sentences")

    monkeypatch.setattr(encoding, "encode_texts", encode_texts)
    result = discover(tmp_path / "texts.csv", out=tmp_path / "run", rehearse=False)
    assert (result.record.kind, result.record.encoder) == ("texts", "sentences")
    assert read_result(tmp_path / "run").collection.texts[7] == "text 7"


def test_the_number_of_categories_may_be_given(digits_file):
    result = discover(digits_file, n_categories=8)
    assert len(result.categories) == 8
    assert result.record.rehearsal is None
    assert "as requested" in answer_sentence(result.record)
    assert result.record.settings.n_categories == 8


def test_a_rehearsal_says_how_far_to_trust_the_number(digits_file, monkeypatch):
    monkeypatch.setattr(fitting, "N_DRAWS_OF_MOST_ROWS", 3)
    seen = []
    result = discover(digits_file, progress=lambda *step: seen.append(step))
    assert result.record.rehearsal.n_draws == len(result.record.rehearsal.ratios) == 3
    assert "rehearsal" in trust_sentence(result.record)
    assert [step for step in seen if step[0] == "Rehearsing"] == [
        ("Rehearsing", done, 3) for done in range(4)
    ]
    passes = [step for step in seen if step[0] == "Finding categories"]
    assert passes[:2] == [("Finding categories", 0, 0), ("Finding categories", 1, 0)]
    assert result.mixture.callback is None


@pytest.fixture
def stopped(digits_file, tmp_path, monkeypatch):
    """A run folder whose process was stopped during the rehearsal, and what it had said."""
    monkeypatch.setattr(fitting, "N_DRAWS_OF_MOST_ROWS", 2)
    monkeypatch.setattr(fitting, "N_CHECKS", 2)
    seen = []

    def stop(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fitting, "rehearse", stop)
        with pytest.raises(KeyboardInterrupt):
            discover(digits_file, out=tmp_path / "run", progress=lambda *step: seen.append(step[0]))
    return tmp_path / "run", seen


def test_the_result_is_there_before_the_rehearsal(digits_file, stopped):
    """A rehearsal can take long, and a kill lost everything."""
    out, seen = stopped
    early = read_result(out)
    assert NOT_REHEARSED in early.record.warnings
    assert not is_complete(out)
    note = next(step for step in seen if step.startswith(NOTE))
    assert note.startswith(f"{NOTE}{early.answer} It is in {out}: ")
    assert re.search(r"for about \d+ seconds?\.$", note)
    again, whole = discover(digits_file, out=out), discover(digits_file)
    assert is_complete(out)
    assert read_result(out).record.rehearsal == again.record.rehearsal == whole.record.rehearsal
    assert NOT_REHEARSED not in again.record.warnings
    pd.testing.assert_frame_equal(again.table, whole.table)
    assert early.table["category"].tolist() == again.table["category"].tolist()


def test_a_missing_rehearsal_can_be_left_out_but_nothing_else_changed(digits_file, stopped):
    out, _ = stopped
    with pytest.raises(InputError, match=r"seed 0 \(now 1\)"):
        discover(digits_file, out=out, seed=1)
    assert discover(digits_file, out=out, rehearse=False).record.rehearsal is None
    assert is_complete(out)


def test_few_labels_among_many_rows_are_rehearsed_less_often():
    codes = np.full(10_000, -1)
    codes[:50] = np.arange(50) % 5
    assert fitting._n_draws(codes) == 9
    codes[:5000] = np.arange(5000) % 5
    assert fitting._n_draws(codes) == 19


def test_few_known_classes_are_not_rehearsed():
    y = [label if label in ("digit 0", "digit 1", "digit 2") else None for label in Digits.y[:N]]
    result = discover(collection_of(Digits.X[:N], y))
    assert result.record.rehearsal is None
    assert len(result.record.warnings) == 1
    assert "Only 3 classes are known" in result.record.warnings[0]


@pytest.mark.parametrize("labels", ["drawn", "quota"])
def test_it_says_so_if_sizes_were_expected(labels):
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(8), 60)
    X = (np.eye(8)[truth] + 0.4 * rng.normal(size=(480, 8))).astype(np.float32)
    chosen = rng.permutation(360)[:180] if labels == "drawn" else np.arange(0, 360, 2)
    y = np.full(480, None, dtype=object)
    y[chosen] = [f"class {code}" for code in truth[chosen]]
    run = discover(collection_of(X, y.tolist()), n_categories=8).record
    assert any("The borders between" in text for text in run.warnings) == (labels == "drawn")


def test_many_rows_are_not_rehearsed(digits_file, monkeypatch):
    monkeypatch.setattr(fitting, "MAX_ROWS_TO_REHEARSE", N)
    assert discover(digits_file).record.rehearsal is None


def test_progress_counts_the_pictures(run_pictures, tmp_path):
    seen = []
    run_pictures(tmp_path / "run", progress=lambda *step: seen.append(step))
    assert ("Encoding", N + 1, N + 1) in seen


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_categories": 4}, r"n_categories is 4, but 5 categories have labels\. Give the total"),
        ({"n_categories": 301}, "n_categories is 301, but there are only 300 items"),
        ({"n_categories": 0}, "n_categories must be a whole number of at least 1; got 0"),
        ({"n_categories": 7.0}, "n_categories must be a whole number"),
        ({"seed": -1}, "seed must be a whole number from 0"),
        ({"seed": "x"}, "seed must be a whole number from 0"),
        ({"settings": Settings()}, "pass train=True with them"),
        ({"train": True}, "needs a folder of pictures; .* holds features"),
    ],
)
def test_settings_that_cannot_be_used(digits_file, options, message):
    with pytest.raises(InputError, match=message):
        discover(digits_file, **options)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([None] * N, "None of the 300 rows of features has a label"),
        (["a"] * N, "All 300 rows of features have a label"),
    ],
)
def test_labels_that_leave_nothing_to_do(y, message):
    with pytest.raises(InputError, match=message):
        discover(collection_of(Digits.X[:N], y))


def test_further_labels_for_a_collection_are_refused(pictures):
    with pytest.raises(InputError, match="has labels of its own"):
        discover(collection_of(Digits.X[:N], Digits.y[:N]), pictures / "labels.csv")


def test_an_empty_folder(tmp_path):
    with pytest.raises(InputError, match=r"There are no pictures in .* Check the path"):
        discover(tmp_path, out=tmp_path / "run")


def test_pictures_none_of_which_can_be_read(tmp_path):
    for name in ("a", "b"):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        (tmp_path / "pictures" / name / "1.png").write_bytes(b"x")
    (tmp_path / "pictures" / "2.png").write_bytes(b"y")
    message = r"no pictures .* 3 items were skipped; the first is 2\.png: no"
    with pytest.raises(InputError, match=message):
        discover(tmp_path / "pictures", encoder=GREY)


def test_labels_of_unreadable_pictures_do_not_count(tmp_path):
    Digits.write(tmp_path / "pictures", range(20))
    (tmp_path / "pictures" / "cat").mkdir()
    (tmp_path / "pictures" / "cat" / "1.png").write_bytes(b"x")
    with pytest.raises(InputError, match="None of the 20 pictures has a label"):
        discover(tmp_path / "pictures", encoder=GREY)


def test_a_run_folder_among_the_pictures_is_refused(pictures, run_pictures):
    with pytest.raises(InputError, match="is inside the folder of pictures"):
        run_pictures(pictures / "pictures" / "run")
    assert not (pictures / "pictures" / "run").exists()


def test_a_run_folder_in_use_is_refused(run_pictures, tmp_path):
    with (
        open_run(tmp_path, command="discover", data="other"),
        pytest.raises(InputError, match="in use by process"),
    ):
        run_pictures(tmp_path)


def test_the_run_folder_of_other_data_is_refused(pictures, digits_file, finished):
    result, out = finished
    with pytest.raises(InputError, match="holds a run on another collection"):
        discover(digits_file, out=out)
    with pytest.raises(InputError, match="holds a run on another collection"):
        discover(result.collection.take(range(100)), out=out)
    assert read_result(out).record == result.record


def test_other_features_of_the_same_length_are_other_data(tmp_path):
    collection = collection_of(Digits.X[:N], Digits.y[:N])
    discover(collection, out=tmp_path, n_categories=5, rehearse=False)
    changed = replace(collection, features=Digits.X[:N][::-1])
    with pytest.raises(InputError, match="another collection"):
        discover(changed, out=tmp_path, n_categories=5, rehearse=False)


def test_ctrl_c_while_encoding_keeps_what_was_encoded(
    run_pictures, finished, stop_at, tmp_path, monkeypatch
):
    with pytest.raises(KeyboardInterrupt):
        run_pictures(tmp_path, progress=stop_at("Encoding", 130))
    with pytest.raises(InputError, match="did not finish"):
        read_result(tmp_path)
    opened = []
    read_picture = picture_files.read_picture

    def count(path, **options):
        opened.append(path)
        return read_picture(path, **options)

    monkeypatch.setattr(picture_files, "read_picture", count)
    result = run_pictures(tmp_path)
    assert 0 < len(opened) <= N + 1 - 64
    pd.testing.assert_frame_equal(result.table, finished[0].table)


def test_a_run_resumes_after_ctrl_c_while_clustering(run_pictures, finished, stop_at, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run_pictures(tmp_path, progress=stop_at("Finding categories", 1))
    result = run_pictures(tmp_path)
    pd.testing.assert_frame_equal(result.table, finished[0].table)
    pd.testing.assert_frame_equal(result.categories, finished[0].categories)


KILLED = """
import sys
from newfound.workflows.discover import discover
def progress(name, done, total):
    if name == "Finding categories":
        print("there", flush=True)
        sys.stdin.read()
discover(sys.argv[1], sys.argv[2], out=sys.argv[3], encoder=sys.argv[4], rehearse=False,
         progress=progress)
"""


def test_a_run_resumes_after_a_kill(pictures, run_pictures, finished, tmp_path):
    arguments = [pictures / "pictures", pictures / "labels.csv", tmp_path, GREY]
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout.readline() == "there\n"
        with pytest.raises(InputError, match=f"in use by process {process.pid}"):
            run_pictures(tmp_path)
        process.send_signal(signal.SIGKILL)
    result = run_pictures(tmp_path)
    pd.testing.assert_frame_equal(result.table, finished[0].table)


def test_the_same_command_gives_the_same_again(run_pictures, finished):
    result, out = finished
    again = run_pictures(out)
    pd.testing.assert_frame_equal(again.table, result.table)


def test_items_below_a_confidence_are_marked(finished, marked):
    result, out = marked
    table = result.table
    is_low, is_free = table["confidence"] < 0.9, table["given_label"].isna()
    assert (is_low & is_free).any()
    assert (is_low & ~is_free).any()  # a labelled item is not marked, however unlikely it is
    assert table["is_unsure"].tolist() == (is_low & is_free).tolist()
    assert (table["category"] == np.array(result.names)[result.assigned.labels]).all()
    assert result.record.settings == Request(rehearse=False, min_confidence=0.9)
    assert result.record.rerun.endswith("--min-confidence 0.9 --seed 0")
    again = read_result(out)
    pd.testing.assert_frame_equal(again.table, table)
    assert again.unsure == result.unsure
    assert pd.read_csv(out / "assignments.csv")["is_unsure"].tolist() == table["is_unsure"].tolist()
    assert pd.read_parquet(out / "assignments.parquet")["is_unsure"].dtype == bool
    plain, _ = finished
    assert (plain.is_unsure, plain.unsure) == (None, None)
    assert "is_unsure" not in plain.table


def test_a_confidence_that_makes_no_sense_is_refused(digits_file):
    with pytest.raises(InputError, match="min_confidence must be a number from 0 to 1"):
        discover(digits_file, min_confidence=90)


# ------------------------------------------------------------------------- a run that is finished


def files_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def copied(finished, tmp_path):
    """A copy of the finished run, and what is in it."""
    shutil.copytree(finished[1], tmp_path / "run")
    return tmp_path / "run"


def test_a_finished_run_is_not_computed_again(run_pictures, finished, copied, monkeypatch):
    """The same command recomputed the run and replaced its files."""
    before = files_of(copied)
    monkeypatch.setattr("newfound.workflows.discover.fit_mixture", None)
    monkeypatch.setattr(encoding, "encode_pictures", None)
    again = run_pictures(copied)
    pd.testing.assert_frame_equal(again.table, finished[0].table)
    assert files_of(copied) == before


def test_a_finished_run_is_redone_on_request(run_pictures, finished, copied):
    (copied / "report.html").write_text("of the old result")
    before = files_of(copied)
    again = run_pictures(copied, overwrite=True, seed=1)
    assert again.record.seed == read_result(copied).record.seed == 1
    assert files_of(copied)[copied / "run.json"] != before[copied / "run.json"]
    assert not (copied / "report.html").exists()
    assert "redo" not in json.loads((copied / "started.json").read_text())


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"seed": 1}, r"seed 0 \(now 1\)"),
        ({"n_categories": 8}, r"n_categories None \(now 8\)"),
        ({"rehearse": True}, r"rehearse False \(now True\)"),
        ({"encoder": "pixels"}, rf"encoder {GREY} \(now pixels\)"),
        ({"seed": 1, "n_categories": 8}, r"seed 0 \(now 1\); n_categories None \(now 8\)"),
    ],
)
def test_another_request_is_said_and_nothing_is_lost(run_pictures, copied, changes, difference):
    before = files_of(copied)
    message = f"holds a finished run with another request: {difference}\\. .*--overwrite"
    with pytest.raises(InputError, match=message):
        run_pictures(copied, **changes)
    assert files_of(copied) == before


def test_labels_are_part_of_the_request(pictures, copied, tmp_path):
    lines = (pictures / "labels.csv").read_text().splitlines()
    name, label = lines[1].split(",")
    (tmp_path / "labels.csv").write_text("\n".join([lines[0], f"{name},heron", *lines[3:]]))
    options = {"out": copied, "encoder": GREY, "rehearse": False}
    with pytest.raises(InputError, match=rf"2 labels differ \(first {name}: {label}, now heron\)"):
        discover(pictures / "pictures", tmp_path / "labels.csv", **options)


def test_other_pictures_of_the_same_names_are_another_request(pictures, copied, tmp_path):
    shutil.copytree(pictures, tmp_path / "other")
    options = {"out": copied, "encoder": GREY, "rehearse": False}
    discover(tmp_path / "other" / "pictures", pictures / "labels.csv", **options)  # only moved
    Digits.write(tmp_path / "other" / "pictures", [450], lambda i: "007.png")
    with pytest.raises(InputError, match="the content of the items differs"):
        discover(tmp_path / "other" / "pictures", pictures / "labels.csv", **options)


def test_what_auto_stood_for_is_the_same_request(run_pictures, pictures, tmp_path, monkeypatch):
    monkeypatch.setattr(picture_files, "best_encoder", lambda paths: "pixels")
    first = run_pictures(tmp_path / "run", encoder="auto")
    assert first.record.settings.encoder == "auto"
    for same in ("auto", first.record.encoder):
        again = run_pictures(tmp_path / "run", encoder=same)
        assert again.record == first.record


def test_overwrite_replaces_the_run_of_other_data(digits_file, copied):
    result = discover(digits_file, out=copied, rehearse=False, overwrite=True)
    assert read_result(copied).record == result.record
    assert result.record.kind == "features"


def test_overwrite_does_not_touch_a_folder_that_is_no_run(digits_file, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="is no run folder"):
        discover(digits_file, out=tmp_path, overwrite=True)
    assert (tmp_path / "thesis.txt").read_text() == "mine"


# ------------------------------------------------------------------------------ what is left out


def test_folders_of_which_nothing_can_be_used_are_named(tmp_path):
    for i in range(60):
        Digits.write(tmp_path / "p", [i], lambda i: f"{Digits.y[i] or 'unlabelled'}/{i}.png")
    (tmp_path / "p" / "owl").mkdir()
    (tmp_path / "p" / "owl" / "IMG_1.CR2").write_bytes(b"raw")
    (tmp_path / "p" / "hawk").mkdir()
    (tmp_path / "p" / "hawk" / "broken.png").write_bytes(b"no picture")
    result = discover(tmp_path / "p", encoder=GREY, rehearse=False, out=tmp_path / "run")
    warned = [text for text in result.record.warnings if "skipped.csv" in text]
    assert warned == [
        "1 folder has no file that could be used, and no part in the result: owl. skipped.csv has "
        "the reasons.",
        "1 class lost all labelled items, because none of them could be read: hawk. skipped.csv "
        "has the reasons.",
    ]
    listed = pd.read_csv(tmp_path / "run" / "skipped.csv")["path"].tolist()
    assert listed == ["owl/IMG_1.CR2", "hawk/broken.png"]
    assert result.record.n_skipped == 2


def test_features_that_know_nothing_are_said_in_the_headline(tmp_path, monkeypatch):
    """Noise was answered with the same confident sentence as good features."""
    monkeypatch.setattr("newfound.report.map._has_tsne", lambda: False)  # it takes long
    noise = np.random.default_rng(0).normal(size=(N, 64)).astype(np.float32)
    result = discover(collection_of(noise, Digits.y[:N]), out=tmp_path, rehearse=False)
    assert result.record.label_accuracy == pytest.approx(0.2, abs=0.12)
    assert "Do not rely on this" in result.answer
    assert "Do not rely on this" in render_report(result).partition("</h1>")[0]
    assert read_result(tmp_path).record.label_accuracy == result.record.label_accuracy


def test_good_features_are_not_warned_of(finished):
    result, _ = finished
    assert result.record.label_accuracy > 0.8
    assert "rely" not in result.answer


@pytest.mark.parametrize("kind", ["npz", "npy", "parquet", "collection"])
def test_rows_that_are_not_finite_are_skipped_and_listed(kind, tmp_path):
    X, y = Digits.X[:N].copy(), [label or "" for label in Digits.y[:N]]
    X[3, 5], X[7, 0] = np.nan, -np.inf
    path, labels = tmp_path / f"f.{kind}", None
    if kind == "npz":
        np.savez(path, X=X, y=np.array(y))
    elif kind == "npy":
        np.save(path, X)
        labels = tmp_path / "labels.csv"
        labels.write_text("\n".join(["label", *[label or "-1" for label in y]]))
    elif kind == "parquet":
        pd.DataFrame({"f": list(X), "label": y}).to_parquet(path)
    else:
        path = collection_of(X, Digits.y[:N], [str(i) for i in range(N)])
    result = discover(path, labels, out=tmp_path / "run", rehearse=False)
    assert len(result) == N - 2
    reason = "a feature is not a finite number"
    assert (tmp_path / "run" / "skipped.csv").read_text().split() == (
        ["path,reason", *f"3,{reason} 7,{reason}".split()]
    )


def test_features_of_which_no_row_is_finite_are_refused(tmp_path):
    np.savez(tmp_path / "f.npz", X=np.full((5, 3), np.nan), y=np.array(["a", "b", "", "", ""]))
    message = "no rows of features .* 5 items were skipped; the first is 0: a feature is not"
    with pytest.raises(InputError, match=message):
        discover(tmp_path / "f.npz")


@pytest.mark.parametrize("sizes", ["alike", 0.5, None])
def test_what_is_known_about_sizes_is_part_of_the_request(digits_file, tmp_path, sizes):
    out = tmp_path / "run"
    result = discover(digits_file, rehearse=False, sizes=sizes, out=out)
    assert result.mixture.sizes == sizes
    assert result.record.settings == Request(rehearse=False, sizes=sizes)
    assert result.record.rerun == (
        f"newfound discover {digits_file} --no-rehearse --out {out} "
        f"--sizes {'none' if sizes is None else sizes} --seed 0"
    )
    assert read_result(out).record == result.record
    assert read_result(out).mixture.sizes == sizes
    assert len(discover(digits_file, rehearse=False, sizes=sizes, out=out)) == len(result)
    with pytest.raises(InputError, match=rf"another request: sizes {sizes} \(now unknown\)"):
        discover(digits_file, rehearse=False, out=out)


def test_sizes_decide_the_number(digits_file):
    alike, half = (
        discover(digits_file, rehearse=False, sizes=sizes).record for sizes in ("alike", 0.5)
    )
    assert half.n_novel == pytest.approx(2 * alike.n_novel, abs=1)
    assert half.novel_size.decided_by == alike.novel_size.decided_by == "given"
    assert half.novel_size.mean == pytest.approx(half.novel_size.known_mean / 2)
    assert alike.novel_size.mean == pytest.approx(alike.novel_size.known_mean)


def test_a_run_without_sizes_is_read(finished):
    result, _ = finished
    written = result.record.as_json()
    del written["settings"]["sizes"], written["novel_size"]
    read = RunRecord.from_json(written)
    assert read == replace(result.record, novel_size=None)
    assert read.settings.sizes == "unknown"
    low, high = (round(end) for end in read.n_novel_interval)
    assert trust_sentence(read).startswith(
        f"90 % interval for the number of new categories: {low} to {high}. There was no rehearsal"
    )


def test_sizes_that_make_no_sense_are_refused(digits_file):
    for sizes in ("some", 0, -1.0, True):
        with pytest.raises(InputError, match='sizes must be "unknown", "alike", or a number'):
            discover(digits_file, sizes=sizes)


def test_a_rehearsal_hides_classes_that_are_as_large_as_known_ones(monkeypatch):
    """Hidden classes do not have the size that was given for novel ones."""
    monkeypatch.setattr(fitting, "N_DRAWS_OF_MOST_ROWS", 3)
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(24), [60] * 12 + [20] * 12)
    X = (rng.normal(size=(24, 40))[truth] + 0.8 * rng.normal(size=(len(truth), 40))).astype("f4")
    is_labelled = (truth < 12) & (rng.random(len(truth)) < 0.5)
    y = [f"class {t}" if free else None for t, free in zip(truth, is_labelled, strict=True)]
    result = discover(collection_of(X, y), sizes=1 / 3)
    assert result.n_novel == pytest.approx(12, abs=1)
    assert np.median(result.record.rehearsal.ratios) == pytest.approx(1, abs=0.25)
    assert "which is close to the correct value" in result.trust


def test_further_columns_belong_to_the_data_of_a_run(marked):
    """A run that was made without them is not the run that is asked for."""
    collection = marked[0].collection
    more = replace(collection, metadata={"site": ["dune"] * len(collection)})
    assert fingerprint(more) != fingerprint(collection)
