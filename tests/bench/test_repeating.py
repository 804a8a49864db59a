"""The command that repeats a record makes the same case."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from newfound.bench import commands
from newfound.bench.case import Case, case_key
from newfound.bench.repeating import command_of
from newfound.bench.results import read_records

RESULTS = Path(__file__).parents[2] / "results"
CUB = {"model": "resnet18", "weights": "0123456789ab", "epochs": 100}
FINISHED = [
    Case("gpc", "cub", k="known", without="D26", trial=1, changes={"weight_average": 0.0}, **CUB),
    Case("gpc", "cub", seed=2, draw=1, pca=False, k="brent", k_init=5, overlap=25, **CUB),
    Case("gpc", "cub", k="own", prototypes="dbscan", changes={"flip": False}, **CUB),
    Case("simgcd", "cub", k="count", pca=False, changes={"entropy_weight": 4.0}, **CUB),
    Case("rankstats", "cub", k="brent", pca=False, clustering="mixture", **CUB),
    Case("rankstats", "cub", k="own", pca=False, joint=True, **CUB),
    Case("gcd", "cars", k="brent", changes={"n_starts": 20}, pretraining="Target", **CUB),
]


@pytest.fixture
def listed(monkeypatch):
    """Runs that a command would have made."""
    runs = []
    monkeypatch.setattr(commands, "_run_all", lambda found, place: runs.extend(found))
    return runs


def cases_of(command, weights, runs):
    """The cases of a command; weights are named by their checksum instead of a file."""
    runs.clear()
    words = [weights if word == "FILE" else word for word in shlex.split(command)]
    assert words[:2] == ["newfound", "bench"]
    CliRunner().invoke(commands.app, words[2:], catch_exceptions=False, standalone_mode=False)
    return [case_key(run.case, without=("trial",)) for run in runs]


@pytest.mark.parametrize("case", FINISHED, ids=command_of)
def test_the_command_makes_the_same_case(case, listed):
    assert cases_of(command_of(case), case.weights, listed) == [case_key(case, without=("trial",))]


@pytest.mark.parametrize(
    "place",
    [
        *("cub", "cub/tuning.jsonl", "cars", "cars/tuning.jsonl", "cifar100"),
        *("cifar100/tuning.jsonl", "cub-lt", "cars-lt", "cifar100-lt"),
    ],
)
def test_every_record_can_be_repeated(place, listed):
    """The published ones, so that a reader can go from any number to its command."""
    known = {}
    for record in read_records(RESULTS / place):
        command = command_of(record.case)
        if command not in known:
            known[command] = cases_of(command, record.case.weights, listed)
        assert case_key(record.case, without=("trial",)) in known[command]
        assert len(known[command]) == (6 if record.case.hidden else 1)
        assert record.commit
        assert record.clean


def test_finished_features_need_no_network():
    case = Case("gcd", "birds", k="known", model="", weights="0123456789ab", epochs=0, pca=False)
    assert command_of(case) == "newfound bench run gcd FILE.npz --k known --seed 0"


def test_another_trial_is_a_line_of_a_plan():
    changes = {"learning_rate": 0.03, "known_rows": "labelled", "flip": False}
    case = Case("gpc", "cub", seed=2, k="brent", hidden=True, changes=changes, **CUB)
    assert command_of(case) == "try learning_rate=0.03,known_rows=labelled,flip=false 2"


def test_records_are_printed_with_scores_commit_and_command():
    words = ["records", "gpc", "cub", "--results", str(RESULTS / "cub")]
    text = CliRunner().invoke(commands.app, words, catch_exceptions=False).output
    of_gpc = [record for record in read_records(RESULTS / "cub") if record.case.method == "gpc"]
    assert len(of_gpc) >= 5
    for record in of_gpc:
        case = record.case
        head = (
            f"gpc on cub, seed {case.seed}, K {case.k}, trial {case.trial}\n  All {record.all:.1f}"
        )
        assert head in text
        assert f"  commit {record.commit}; {record.date}; " in text
        assert f"\n  {command_of(case)}\n" in text
    assert "gcd on cub" not in text


@pytest.mark.parametrize(
    ("words", "said"),
    [(["gpcc"], "There is no method 'gpcc'"), (["gpc", "cub"], "has no results yet")],
)
def test_a_wrong_method_and_no_results_are_said(words, said, tmp_path):
    done = CliRunner().invoke(commands.app, ["records", *words, "--results", str(tmp_path)])
    assert said in done.stderr
    assert done.stdout == ""


def test_a_reader_that_has_seen_enough_is_no_error():
    command = [sys.executable, "-m", "newfound", "bench", "records", "--results", RESULTS / "cub"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
