"""The study of the word of `trust_report`."""

import json

import numpy as np
import pytest
from sklearn.datasets import make_blobs


@pytest.fixture
def study(load_study):
    return load_study("trust")


@pytest.fixture
def blobs(tmp_path):
    X, classes = make_blobs(120, 4, centers=4, cluster_std=0.2, random_state=0)
    np.savez(tmp_path / "blobs.npz", X=X, Y=classes)
    return tmp_path / "blobs.npz"


def test_a_run_writes_lines_and_prints_how_many_of_each_word_hold(
    study, blobs, tmp_path, capsys, monkeypatch
):
    out = tmp_path / "results" / "trust.jsonl"
    command = ["run", str(blobs.parent), "--situations", "two known", "--out", str(out)]
    study.main(command)
    [line] = map(json.loads, out.read_text().splitlines())
    assert (line["set"], line["scenario"], line["truth"]) == ("blobs", "two known", 2)
    printed = capsys.readouterr().out
    assert "1 runs; truth in the interval: 1 of 1 (100%)" in printed
    study.main(command)  # what is in the file is not run again
    assert "1 cases, 1 of them done before" in capsys.readouterr().out
    assert len(out.read_text().splitlines()) == 1


def test_a_case_that_fails_is_a_line_and_is_tried_again(
    study, blobs, tmp_path, capsys, monkeypatch
):
    out = tmp_path / "trust.jsonl"
    command = ["run", str(blobs), "--situations", "two known", "--out", str(out)]
    with monkeypatch.context() as patch:
        patch.setattr(study, "trust_report", lambda *_, **__: 1 / 0)
        study.main(command)
    assert "1 runs failed, for example: ZeroDivisionError" in capsys.readouterr().out
    study.main(command)
    lines = [json.loads(text) for text in out.read_text().splitlines()]
    assert ["error" in line for line in lines] == [True, False]


@pytest.mark.parametrize(
    ("interval", "truth", "is_right"),
    [((3.4, 6.6), 7, True), ((3.4, 6.6), 8, False), ((3.6, 6.6), 3, False), ((2, np.inf), 9, True)],
)
def test_the_interval_is_rounded_as_the_report_shows_it(study, interval, truth, is_right):
    assert study.is_right({"measures": {"interval": interval}, "truth": truth}) is is_right


def test_sets_that_are_not_there_and_two_of_one_name_are_refused(study, blobs, tmp_path):
    with pytest.raises(SystemExit, match=r"no feature set at .*absent\.npz"):
        study.main(["run", str(tmp_path / "absent.npz")])
    with pytest.raises(SystemExit, match="several files are called blobs"):
        study.main(["run", str(blobs), str(tmp_path)])
