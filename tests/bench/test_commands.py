"""``newfound bench run`` and ``newfound bench table``."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from newfound.bench.case import Case
from newfound.bench.commands import app
from newfound.bench.methods import NAMES
from newfound.bench.protocol import bench_settings
from newfound.bench.results import Results, read_records
from newfound.bench.run import Place
from newfound.deep.settings import Settings

torch.set_num_threads(1)
pytestmark = pytest.mark.usefixtures("few_pictures")

QUICK = ["--epochs", 1, "--n-labelled-per-batch", 16, "--n-unlabelled-per-batch", 48]


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def succeed(*arguments):
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def fail(*arguments):
    """The one line that tells what is wrong."""
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)  # nothing that would end in a traceback
    (line,) = [line for line in result.stderr.splitlines() if line.strip()]
    assert line.startswith("newfound: ")
    return line


class Call(NamedTuple):
    case: Case
    settings: Settings
    place: Place
    source: str
    options: dict[str, Any]


@pytest.fixture
def calls(monkeypatch):
    """What would be run; nothing is."""
    seen = []

    def run_case(case, settings, place, source, **options):
        seen.append(Call(case, settings, place, source, options))

    monkeypatch.setattr("newfound.bench.run.run_case", run_case)
    return seen


@pytest.fixture
def feature_file(tmp_path, few_digits):
    X = few_digits.pixels[:, 0].reshape(len(few_digits.truth), -1) / 255
    np.savez(tmp_path / "dino.npz", X=X, y=few_digits.truth, known=np.arange(5))
    return tmp_path / "dino.npz"


# --- what is run


def test_methods_data_sets_seeds_and_k_make_all_runs(calls, feature_file):
    succeed("run", "kmeans,gpc", f"digits,{feature_file}", "--seed", 0, "--seed", 2, "--k", "both")
    found = [(call.case.dataset, call.case.seed, call.case.method, call.case.k) for call in calls]
    assert found == [
        (dataset, seed, method, known)
        for dataset in ("digits", "dino")
        for seed in (0, 2)
        for method in ("kmeans", "gpc")
        for known in ("known", "brent" if method == "kmeans" else "count")
    ]
    assert all(call.settings.run.seed == call.case.seed for call in calls)
    assert {call.source for call in calls} == {"digits", str(feature_file)}


@pytest.mark.parametrize(
    ("k", "known"),
    [
        ("known", ["known"]),
        ("unknown", ["count"]),
        (None, ["count"]),
        ("brent", ["brent"]),
        ("all", ["known", "brent", "count"]),
    ],
)
def test_k_is_unknown_unless_it_is_said(calls, k, known):
    succeed("run", "gpc", "digits", *([] if k is None else ["--k", k]))
    assert [call.case.k for call in calls] == known
    assert {call.case.seed for call in calls} == {0}


def test_all_are_all_methods_and_for_features_all_that_take_them(calls, feature_file):
    succeed("run", "all", f"digits,{feature_file}")
    names = [call.case.method for call in calls]
    assert names == [*NAMES, "kmeans", "mixture", "gcd", "pim", "cms", "dccl", "gpc-literal", "gpc"]


@pytest.mark.parametrize(
    ("method", "option", "expected"),
    [
        ("kmeans", ["--pca"], {"pca": True}),
        ("gpc", ["--no-pca"], {"pca": False}),
        ("gpc", [], {"pca": True}),
        ("gcd", [], {"pca": False}),
        ("gpc", ["--k-init", 4], {"k_init": 4}),
        ("gpc", ["--overlap", 2], {"overlap": 2}),
        ("gpc", ["--n-old", 3], {"n_old": 3}),
        ("gpc", ["--labelled-only", "3/2"], {"labelled_only": "3/2"}),
        ("gpc", ["--prototypes", "ward"], {"prototypes": "ward"}),
        ("rankstats", ["--joint"], {"joint": True}),
        ("gpc", ["--pretraining", "Target"], {"pretraining": "Target"}),
        ("gpc", [], {"pretraining": "none"}),
        ("gcd", ["--n-starts", 5], {"changes": {"n_starts": 5}}),
        ("gpc", ["--epochs", 3], {"epochs": 3, "changes": {}}),
        ("gpc", ["--learning-rate", 0.3], {"changes": {"learning_rate": 0.3}}),
        ("gpc", ["--no-projection-head"], {"changes": {"projection_head": False}}),
        ("gpc", ["--image-size", 12], {"changes": {}}),  # which it is for digits anyway
        ("gpc", ["--image-size", 224], {"changes": {"image_size": 224}}),
    ],
)
def test_options_reach_the_case(calls, method, option, expected):
    succeed("run", method, "digits", *option)
    (call,) = calls
    assert {name: getattr(call.case, name) for name in expected} == expected


def test_settings_are_those_of_the_data_set_but_for_what_is_written(calls):
    succeed("run", "gpc", "digits,cub", "--learning-rate", 0.3, "--seed", 4)
    for call in calls:
        expected = bench_settings(call.source).with_changes(learning_rate=0.3, seed=4)
        assert call.settings == expected
    assert [call.settings.optimiser.epochs for call in calls] == [80, 200]
    calls.clear()
    succeed("run", "gpc", "cifar10", "--model", "resnet18")
    assert calls[0].settings == bench_settings("cifar10", "resnet18")


def test_folders_reach_the_run(calls, tmp_path):
    folders = [tmp_path / name for name in ("data", "work", "results.jsonl")]
    options = [
        part
        for pair in zip(["--root", "--work", "--results"], folders, strict=True)
        for part in pair
    ]
    succeed("run", "gpc", "cub", *options, "--incomplete")
    succeed("run", "gpc", "cub")
    assert calls[0].place == Place(*folders, incomplete=True)
    assert [call.place.incomplete for call in calls] == [True, False]
    assert calls[1].place == Place(Path("data"), Path("runs/bench"), Path("runs/bench"))


# --- what is refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gpc,k-means", "digits"], "no method 'k-means'; choose one of kmeans, "),
        (
            ["gpc", "digits", "--k", "maybe"],
            "--k is known, brent, count, unknown, both, all; got 'maybe'",
        ),
        (["gpc,simgcd", "digits", "--joint"], "no variant joint"),
        (["gpc", "digits", "--prototypes", "birch"], "'birch'"),
        (["gpc", "digits", "--epochs", 0], "epochs must be at least 1"),
        (["gpc", "digits", "--acceptance", "all"], "acceptance must be one of"),
        (["gpc", "digits", "--weights", "no-such-file"], "no file of weights no-such-file"),
        (["gpc,simgcd", "a.npz"], "SimGCD learns from images"),
    ],
)
def test_what_is_wrong_is_one_line_before_anything_runs(calls, arguments, message):
    assert message in fail("run", *arguments)
    assert calls == []


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("mnist", "There is no data set 'mnist'. Give one of cifar10, "),
        ("nowhere/to/be/found.npz", "found.npz"),
    ],
)
def test_a_data_set_that_there_is_not(tmp_path, source, message):
    options = ["--work", tmp_path, "--results", tmp_path / "r.jsonl", "--root", tmp_path]
    assert message in fail("run", "gpc", source, *options)
    assert not (tmp_path / "r.jsonl").exists()


def test_an_impossible_split(tmp_path):
    options = ["--work", tmp_path, "--results", tmp_path / "r.jsonl"]
    assert "n_old is 9" in fail("run", "kmeans", "digits", "--n-old", 9, *options)


def test_without_the_extra_the_pip_command_is_the_answer(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightning_fabric", None)  # as if it were not installed
    assert "pip install 'newfound[train]'" in fail("run", "gpc", "digits")


# --- runs


def test_a_run_is_printed_recorded_and_not_made_twice(tmp_path):
    results, work = tmp_path / "results" / "new.jsonl", tmp_path / "work"
    command = ["run", "gcd,kmeans", "digits", "--k", "both", "--n-starts", 2, *QUICK]
    command += ["--work", work, "--results", results]
    told = succeed(*command)
    records = read_records(results)
    assert [(record.case.method, record.case.k) for record in records] == [
        ("gcd", "known"),
        ("gcd", "brent"),
        ("kmeans", "known"),
        ("kmeans", "brent"),
    ]
    first = records[0]
    assert "gcd on digits, seed 0, K known …" in told
    assert f"All {first.all:.1f}, Old {first.old:.1f}, New {first.new:.1f}" in told
    assert f"K^n 2 of 2 (given); {first.seconds:.0f} s; split {first.split}" in told
    assert "Brent search on the features before training" in told
    assert list(work.glob("gcd-*/tensorboard/*"))
    again = succeed(*command)
    assert again.count("already in the results") == 4
    assert read_records(results) == records


def test_features_are_run_too(tmp_path, feature_file):
    results = tmp_path / "results" / "new.jsonl"
    options = ["--work", tmp_path / "work", "--results", results, "--n-starts", 2]
    succeed("run", "all", feature_file, "--k", "known", *options)
    records = read_records(results)
    names = ["kmeans", "mixture", "gcd", "pim", "cms", "dccl", "gpc-literal", "gpc"]
    assert [record.case.method for record in records] == names
    assert {record.case.dataset for record in records} == {"dino"}
    assert str(tmp_path) not in results.read_text()


# --- tuning


def test_tuning_lists_six_trials_of_each_method_that_trains(calls):
    succeed("tune", "kmeans,simgcd,gpc", "digits")
    found = [(call.case.method, call.case.trial, call.case.changes) for call in calls]
    assert [one[:2] for one in found] == [(m, n) for m in ("simgcd", "gpc") for n in range(6)]
    assert found[1][2] == {"weight_average": 0.99}
    assert found[4][2] == {"entropy_weight": 1.0}
    assert found[7][2] == {"weight_average": 0.0}
    for call in calls:
        assert (call.case.hidden, call.case.k, call.case.epochs) == (True, "brent", 30)
    calls.clear()
    succeed("tune", "simgcd", "digits", "--trials", 2, "--epochs", 3, "--n-stored-views", 4)
    assert [call.case.trial for call in calls] == [0, 1]
    assert calls[0].settings.optimiser.epochs == 3
    assert calls[0].case.changes == {"n_stored_views": 4}


@pytest.mark.filterwarnings("ignore:Only 3 classes are known")
def test_a_tuned_run_has_the_values_of_its_best_trial(tmp_path):
    options = [*QUICK, "--work", tmp_path / "work"]
    file, results = tmp_path / "tuning.jsonl", tmp_path / "runs.jsonl"
    told = succeed("tune", "simgcd", "digits", *options, "--results", file)
    assert "simgcd on digits, seed 0, K brent, trial 5 …" in told
    trials = read_records(file)
    best = max(trials, key=lambda record: (record.all, -record.case.trial))
    options += ["--results", results, "--tuned", file]
    succeed("run", "simgcd,kmeans", "digits", "--k", "known", *options)
    tuned, plain = read_records(results)
    assert (tuned.case.trial, tuned.case.hidden) == (best.case.trial, False)
    assert tuned.case.changes == best.case.changes
    assert plain.case.trial is None
    assert "bench tune uno digits" in fail("run", "uno", "digits", *options)
    assert "takes the trials of digits" in fail("tune", "simgcd", "digits-lt")


# --- tables


@pytest.fixture(scope="module")
def results(tmp_path_factory, few_pictures):
    """A record of k-means, said to be of CIFAR-10 with the field's backbone."""
    folder = tmp_path_factory.mktemp("results")
    own = folder / "own"
    succeed(
        *["run", "kmeans", "digits", "--k", "known"],
        *["--work", folder / "work", "--results", own / "own.jsonl"],
    )
    (record,) = read_records(own / "own.jsonl")
    case = Case("kmeans", "cifar10", k="known", pca=False, epochs=0)
    record = replace(record, case=case, all=12.34, old=23.45, new=34.56)
    Results(folder / "made" / "bench.jsonl").add(record)
    return folder / "made"


def test_a_table_has_the_papers_figures_and_ours(results):
    shown = succeed("table", "1", "--results", results)
    for figure in ("k-means", "GPC", "12.3", "23.4", "34.6", "83.6"):  # the paper's k-means: 83.6
        assert figure in shown


@pytest.mark.parametrize(
    ("style", "mark"), [("markdown", "| "), ("latex", r"\begin{tabular}"), ("html", "<table")]
)
def test_a_table_in_other_formats_and_into_a_file(results, tmp_path, style, mark):
    shown = succeed("table", "1", "--format", style, "--results", results)
    assert mark in shown
    file = tmp_path / "new" / "table"
    told = succeed("table", "1", "--format", style, "--results", results, "--out", file)
    assert file.read_text(encoding="utf-8").strip() == shown.strip()
    assert told.strip() == f"Written: {file}"


def test_results_are_a_folder_or_a_file(results):
    of_folder = succeed("table", "1", "--results", results)
    assert succeed("table", "1", "--results", results / "bench.jsonl") == of_folder


def test_the_published_results_are_in_the_folder_results():
    shown = invoke("table", "3", "--results", Path(__file__).parents[2] / "results")
    assert shown.exit_code == 0
    assert "tf_efficientnet_lite2" in shown.stdout
    assert shown.stderr == ""


def test_a_table_without_results_has_the_papers_figures_and_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments, file in (([], "runs/bench/bench.jsonl"), (["--results", "a"], "a/bench.jsonl")):
        shown = invoke("table", "1", *arguments)
        assert shown.exit_code == 0
        assert "83.6" in shown.stdout
        assert f"{file} has no results yet" in shown.stderr
        assert "newfound bench run gpc digits" in shown.stderr
        assert "--results results" in shown.stderr


@pytest.mark.parametrize("arguments", [["99"], ["1", "--format", "word"]])
def test_tables_and_formats_that_there_are_not(results, arguments):
    assert arguments[-1] in fail("table", *arguments, "--results", results)


def test_garbage_in_the_results_is_one_line(tmp_path):
    (tmp_path / "bench.jsonl").write_text("hello\n")
    assert "bench.jsonl, line 1" in fail("table", "1", "--results", tmp_path)


# --- the program


def test_bench_is_a_command_of_newfound():
    program = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
sys.argv = ["newfound", "bench", "--help"]
from newfound.__main__ import main
main()
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0
    assert "newfound bench" in result.stdout
    for command in ("run", "table"):
        assert f" {command} " in result.stdout
    assert "torch" not in result.stderr.split()  # help is quick


def test_help_of_a_run_lists_methods_and_settings():
    shown = " ".join(succeed("run", "--help").split())
    for word in ("gpc-literal", "--k-init", "--learning-rate", "--labelled-only"):
        assert word in shown
    for word in ("--rehearse", "--n-components"):  # the runner sets them
        assert word not in shown
