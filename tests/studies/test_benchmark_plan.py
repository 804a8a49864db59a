"""The lines of the benchmark's plan that are still missing in published results."""

import sys
from pathlib import Path

import pytest

from newfound.own_folder import FolderInUseError

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture
def lines(load_study, capsys, monkeypatch):
    def printed(results):
        places = {"root": "data", "work": "work", "results": results}
        tuned = RESULTS / "cub" / "tuning.jsonl"
        network = {"model": "tf_efficientnet_lite2", "weights": "50bddc33679f", "tuned": tuned}
        options = [f"--{name}={value}" for name, value in {**places, **network}.items()]
        monkeypatch.setattr(sys, "argv", ["benchmark.py", "cub", *options])
        load_study("benchmark").main()
        return capsys.readouterr().out.splitlines()

    return printed


def test_what_has_a_record_is_not_missing(lines, tmp_path):
    everything, left = lines(tmp_path), lines(RESULTS / "cub")
    assert len(left) < len(everything)
    for done in ("run gpc known 0", "run gpc count 2", "run cms brent 1", "run kmeans known 0"):
        assert done in everything
        assert done not in left
    for open_line in ("run gpc known 0 --draw 1", "run gpc count 1 --without D26"):
        assert open_line in left
    assert not any(line.startswith("tune") for line in left)


def test_a_line_with_one_of_its_records_missing_is_run_again(lines):
    assert "run gcd brent 0" in lines(RESULTS / "cub")  # PIM, which it has with it, is not there


def test_the_best_two_rivals_have_other_draws(lines):
    drawn = [line for line in lines(RESULTS / "cub") if "--draw" in line]
    assert [line.split()[1] for line in drawn] == ["cms", "cms", "gcd", "gcd", "gpc", "gpc"]


def test_a_line_waits_for_a_training_that_it_shares(load_study, monkeypatch):
    study = load_study("benchmark")

    def busy(*_):
        raise FolderInUseError("in use")

    monkeypatch.setattr(study, "do", busy)
    assert study.attempt(["run", "gcd", "count", "0"], None, None) is None
