"""The commands, mostly inside this process."""

import csv
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from typing import Literal, get_args, get_origin

import numpy as np
import pandas as pd
import pytest
import typer
from samples import Digits
from typer.testing import CliRunner

import newfound
from newfound.__main__ import main
from newfound.cli.answers import print_skipped, size_sentence
from newfound.cli.main import app
from newfound.data.collection import Skipped
from newfound.deep.settings import Settings
from newfound.errors import InputError
from newfound.mixture.counting.count import CategoryCount
from newfound.result.store import read_result
from newfound.workflows.demo import Category, Demo

N = 200
GREY = "pixels-8x8-grey"
COMMANDS = [
    *["count", "train", "pretrain", "discover", "embed", "predict", "update", "report", "export"],
    *["trust", "review", "demo"],
]
#: A network that is trained in a second.
SMALL = [
    *["--model", "test_resnet", "--weights", "random", "--image-size", "8", "--crop-min", "1"],
    *["--crop-max", "1", "--epochs", "1", "--n-labelled-per-batch", "16"],
    *["--n-unlabelled-per-batch", "16", "--learning-rate", "0.05", "--no-rehearse"],
]


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def succeed(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


def fail(*arguments):
    """The one line that tells what is wrong."""
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)  # nothing that would end in a traceback
    assert result.stdout == ""
    (line,) = [line for line in result.stderr.splitlines() if line.strip()]
    assert line.startswith("newfound: ")
    return line


@pytest.fixture(scope="module", autouse=True)
def no_tsne():
    """The map of the report has tests of its own, and takes long where cores are few."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("newfound.report.map._has_tsne", lambda: False)
        yield


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """`pictures`, one of them broken, with `labels.csv`; `more` pictures; a file of features."""
    root = tmp_path_factory.mktemp("digits")
    Digits.write(root / "pictures", range(N))
    (root / "pictures" / "broken.png").write_bytes(b"no picture")
    Digits.write(root / "more", range(N, N + 40))
    Digits.write_labels(root / "labels.csv", range(N))
    np.save(root / "f.npy", Digits.X[:N])
    np.savez(root / "f.npz", X=Digits.X[:N], y=np.array([label or "" for label in Digits.y[:N]]))
    return root


@pytest.fixture(scope="module")
def discovered(root):
    """A run of discover, with what it printed."""
    out = root / "run"
    printed = succeed(
        *["discover", root / "pictures", "--labels", root / "labels.csv", "--out", out],
        *["--encoder", GREY, "--no-rehearse"],
    )
    return out, printed


def read_table(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# ------------------------------------------------------------------------------------ the program


def test_version():
    assert succeed("--version") == f"newfound {newfound.__version__}"


def test_help_says_what_the_program_does_and_lists_the_commands():
    shown = succeed("--help")
    assert "categories that your labels don't have yet" in shown
    for command in COMMANDS:
        assert f" {command} " in shown


def test_these_are_all_commands():
    assert set(typer.main.get_command(app).commands) == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help(command):
    shown = succeed(command, "--help")
    assert f"Usage: root {command} " in shown


def test_without_arguments_the_help_is_shown():
    assert "Usage:" in run().output


@pytest.mark.parametrize("arguments", [["no-such-command"], ["--no-such-option"]])
def test_unknown_arguments_are_named(arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert arguments[0] in result.output


def test_the_console_script_is_the_module():
    (script,) = entry_points(group="console_scripts", name="newfound")
    assert script.load() is main


def test_python_m_newfound():
    command = [sys.executable, "-m", "newfound", "--version"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == f"newfound {newfound.__version__}"


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"]])
def test_help_is_quick_because_it_imports_nothing_heavy(arguments):
    program = f"""
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
sys.argv = ["newfound", *{arguments!r}]
from newfound.__main__ import main
main()
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0
    assert "Usage:" in result.stdout
    loaded = result.stderr.split()
    assert "newfound.cli.main" in loaded
    heavy = ["torch", "torchvision", "timm", "lightning_fabric", "pandas", "matplotlib", "plotly"]
    assert set(loaded).isdisjoint(heavy)


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_the_extra_the_pip_command_is_the_answer(missing, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)  # as if it were not installed
    with pytest.raises(SystemExit) as caught:
        main()
    assert f"'{missing}'" in caught.value.code
    assert "pip install 'newfound[cli]'" in caught.value.code


def test_without_the_extra_the_exit_status_is_not_zero():
    program = "import sys; sys.modules['typer'] = None; from newfound.__main__ import main; main()"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 1
    assert "pip install 'newfound[cli]'" in result.stderr
    assert "Traceback" not in result.stderr


def test_training_without_torch_is_answered_with_the_pip_command(root, tmp_path):
    program = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
sys.argv = ["newfound", "train", {str(root / "pictures")!r}, "--out", {str(tmp_path)!r}]
sys.argv += ["--labels", {str(root / "labels.csv")!r}]
from newfound.__main__ import main
main()
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 2
    assert "pip install 'newfound[train]'" in result.stderr


# --------------------------------------------------------------------------------------- settings


def options_of(command):
    return {
        option: parameter
        for parameter in typer.main.get_command(app).commands[command].params
        for option in parameter.opts
    }


def option(name):
    return "--" + name.replace("_", "-")


@pytest.mark.parametrize("command", ["train", "pretrain"])
def test_every_setting_is_an_option_with_its_help(command):
    options = options_of(command)
    for item in Settings.options():
        assert item.help in options[option(item.name)].help


@pytest.mark.parametrize(
    ("command", "base"), [("train", Settings()), ("pretrain", Settings.pretraining())]
)
def test_the_options_have_the_values_of_the_settings(command, base):
    options = options_of(command)
    for name, value in base.as_dict().items():
        assert options[option(name)].default == value


def other_value(name, value):
    """A value that a setting may have beside the one that it has."""
    hint = next(item.hint for item in Settings.options() if item.name == name)
    kinds = [kind for kind in get_args(hint) if kind is not type(None)] or [hint]
    kind = kinds[0] if type(None) in get_args(hint) else hint
    if get_origin(kind) is Literal:
        return next(choice for choice in get_args(kind) if choice != value)
    if kind is bool:
        return not value
    if kind is int:
        return (value or 0) + 3
    if kind is float:
        return value / 2 or 0.25
    return "alike" if name == "sizes" else "other"


def as_options(settings):
    for name, value in settings.items():
        if isinstance(value, bool):
            yield option(name) if value else option("no_" + name)
        else:
            yield from (option(name), str(value))


@pytest.fixture
def asked(monkeypatch):
    """What the commands ask the workflows for, instead of training."""
    calls = []

    def train(pictures, labels, settings, out, *, progress, **options):
        given = {"pictures": pictures, "labels": labels, "settings": settings, "out": out}
        calls.append(SimpleNamespace(**given, **options))
        raise InputError("enough")

    def pretrain(pictures, settings, out, *, progress):
        calls.append(SimpleNamespace(pictures=pictures, settings=settings, out=out))
        return SimpleNamespace(skipped=[Skipped("a.png", "it is empty")]), None

    monkeypatch.setattr("newfound.workflows.train.train", train)
    monkeypatch.setattr("newfound.workflows.pretrain.pretrain", pretrain)
    return calls


@pytest.mark.parametrize(
    ("command", "base"), [("train", Settings()), ("pretrain", Settings.pretraining())]
)
def test_every_option_reaches_the_training(asked, command, base):
    wanted = {name: other_value(name, value) for name, value in base.as_dict().items()}
    run(command, "somewhere", *as_options(wanted))
    assert asked[0].settings.as_dict() == wanted
    assert all(wanted[name] != value for name, value in base.as_dict().items())


def test_train_asks_for_a_least_confidence(asked):
    fail("train", "somewhere")
    fail("train", "somewhere", "--min-confidence", "0.7")
    assert [call.min_confidence for call in asked] == [None, 0.7]


def test_train_asks_for_what_was_given(asked):
    fail("train", "somewhere", "--labels", "l.csv", "--out", "there")
    (call,) = asked
    assert (str(call.pictures), str(call.labels), str(call.out)) == ("somewhere", "l.csv", "there")
    assert call.settings == Settings()


def test_train_takes_the_letter_of_the_paper_with_changes(asked):
    fail("train", "somewhere", "--paper", "--epochs", "7", "--no-flip")
    assert asked[0].settings == Settings.paper(epochs=7, flip=False)


def test_an_option_that_is_given_goes_before_the_paper(asked):
    fail("train", "somewhere", "--paper", "--pca", "all", "--projection-head")
    assert asked[0].settings == Settings.paper(pca="all", projection_head=True)


def test_pretrain_reads_no_labels(asked):
    printed = succeed("pretrain", "somewhere", "--out", "there")
    (call,) = asked
    assert call.settings == Settings.pretraining()
    skipped = "1 file was skipped. The first is a.png: it is empty. All reasons: there/skipped.csv."
    assert skipped in printed
    assert "newfound train … --weights there/backbone.safetensors" in printed


def test_the_commonest_reason_is_said_not_the_first(capsys):
    """Among photos from a phone, the first file by name was often a sidecar of no interest."""
    skipped = [Skipped("1.AAE", "no picture"), Skipped("2.HEIC", "HEIC"), Skipped("3.HEIC", "HEIC")]
    print_skipped(skipped)
    said = "3 files were skipped, 2 of them for the same reason. The first is 2.HEIC: HEIC."
    assert capsys.readouterr().out.strip() == said


# ----------------------------------------------------------------------------------- the commands


@pytest.mark.parametrize("seed", ["-1", "4294967296"])
def test_a_seed_that_numpy_does_not_take_is_refused(seed, tmp_path):
    np.savez(tmp_path / "f.npz", X=Digits.X, y=np.where(Digits.is_labelled, Digits.truth, -1))
    assert run("count", tmp_path / "f.npz", "--seed", seed).exit_code == 2


def test_count_says_how_many(tmp_path):
    np.savez(tmp_path / "f.npz", X=Digits.X, y=np.where(Digits.is_labelled, Digits.truth, -1))
    printed = succeed("count", tmp_path / "f.npz", "--seed", "1", "--sizes", "alike")
    found = float(re.search(r"5 known categories, and about ([\d.]+) new ones", printed)[1])
    assert found == pytest.approx(5, abs=1)
    assert "90% interval: " in printed


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_count_reads_what_discover_reads(kind, tmp_path):
    X, y = Digits.X.copy(), np.where(Digits.is_labelled, Digits.truth, -1)
    np.savez(tmp_path / "f.npz", X=X[1:], y=y[1:])
    X[0, 0] = np.nan
    np.save(tmp_path / "f.npy", X)
    pd.DataFrame({"label": y}).to_csv(tmp_path / "labels.csv", index=False)
    pd.DataFrame({"label": y, "f": list(X)}).to_parquet(tmp_path / "f.parquet")
    labels = ["--labels", tmp_path / "labels.csv"] if kind == "npy" else []
    printed = succeed("count", tmp_path / f"f.{kind}", *labels)
    skipped = "1 row was skipped. The first is 0: a feature is not a finite number."
    assert printed == f"{succeed('count', tmp_path / 'f.npz')} {skipped}"


@pytest.mark.filterwarnings("ignore:The count speaks")
def test_pretrain_then_train(root, tmp_path):
    pytest.importorskip("torch").set_num_threads(1)
    first, second = tmp_path / "pretrained", tmp_path / "run"
    succeed("pretrain", root / "pictures", "--out", first, *SMALL)
    weights = first / "backbone.safetensors"
    printed = succeed(
        *["train", root / "pictures", "--labels", root / "labels.csv", "--out", second],
        *[*SMALL, "--weights", weights],
    )
    record = read_result(second).record
    assert record.settings.training["weights"] == str(weights)
    assert read_result(second).answer in printed
    assert "1 file was skipped." in printed
    assert f"Report: {second}/report.html. Table: {second}/assignments.csv." in printed
    assert "newfound train" in (second / "report.html").read_text(encoding="utf-8")
    assert len(read_table(second / "assignments.csv")) == N


def test_the_other_commands_understand_a_run_of_train(root, tmp_path):
    """The walk of a person: train, report, predict, export, update."""
    pytest.importorskip("torch").set_num_threads(1)
    out = tmp_path / "run"
    succeed(
        *["train", root / "pictures", "--labels", root / "labels.csv", "--out", out],
        *[*SMALL, "--n-components", "10"],
    )
    assert succeed("report", out) == f"Report: {out / 'report.html'}"
    succeed("predict", out, root / "more", "--out", tmp_path / "p.csv")
    assert len(read_table(tmp_path / "p.csv")) == 40
    succeed("export", out, "--to", "csv", "--out", tmp_path / "a.csv")
    assert len(read_table(tmp_path / "a.csv")) == N
    succeed("update", out, root / "more")
    assert len(read_result(out)) == N + 40


def test_a_machine_without_the_report_extra_still_trains(root, tmp_path, monkeypatch):
    pytest.importorskip("torch").set_num_threads(1)
    monkeypatch.setitem(sys.modules, "jinja2", None)  # as if it were not installed
    out = tmp_path / "run"
    printed = succeed(
        *["train", root / "pictures", "--labels", root / "labels.csv", "--out", out],
        *[*SMALL, "--n-components", "10"],
    )
    assert f"For a report, run `newfound report {out}`" in printed
    assert len(read_result(out)) == N


def test_discover_answers_in_a_sentence_and_leaves_a_report(discovered):
    out, printed = discovered
    result = read_result(out)
    assert result.answer in printed
    assert result.trust in printed
    assert f"Report: {out}/report.html. Table: {out}/assignments.csv." in printed
    assert "<html" in (out / "report.html").read_text(encoding="utf-8")
    assert len(read_table(out / "assignments.csv")) == N


def test_discover_passes_everything_on(monkeypatch):
    seen = {}

    def discover(source, labels, **options):
        seen.update(source=str(source), labels=str(labels), **options)
        raise InputError("enough")

    monkeypatch.setattr("newfound.workflows.discover.discover", discover)
    options = ["--encoder", "e", "--n-categories", "7", "--train", "--quick", "--no-rehearse"]
    options += ["--seed", "3", "--min-confidence", "0.8", "--device", "cpu", "--overwrite"]
    options += ["--sizes", "0.5"]
    fail("discover", "somewhere", "--labels", "l.csv", "--out", "there", *options)
    assert callable(seen.pop("progress"))
    assert str(seen.pop("out")) == "there"
    assert seen == {
        **{"source": "somewhere", "labels": "l.csv", "encoder": "e", "n_categories": 7},
        **{"train": True, "quick": True, "rehearse": False, "min_confidence": 0.8, "seed": 3},
        **{"device": "cpu", "overwrite": True, "sizes": 0.5},
        **{"label_column": None, "scheduler": None, "workers": None},
    }


def test_a_finished_run_is_shown_and_not_done_again(root, discovered, tmp_path, monkeypatch):
    out, printed = discovered
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    command = [
        *["discover", root / "pictures", "--labels", root / "labels.csv", "--out", out],
        *["--encoder", GREY, "--no-rehearse"],
    ]
    with monkeypatch.context() as patch:
        patch.setattr("newfound.workflows.discover.fit_mixture", None)
        again = succeed(*command)
    done = f"The run in {out} is finished. To do it again, add --overwrite. Its answer: "
    assert again == done + printed
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    copy = tmp_path / "run"
    shutil.copytree(out, copy)
    (copy / "report.html").unlink()
    command[command.index(out)] = copy
    assert succeed(*command).startswith("The run in ")
    assert (copy / "report.html").is_file()  # a report that is missing is written
    assert "is finished" not in succeed(*command, "--overwrite")


def test_a_finished_training_is_shown_and_not_done_again(asked, tmp_path, monkeypatch):
    (tmp_path / "run.json").write_text('{"version": "0.2.0"}')
    result = SimpleNamespace(
        answer="7 categories.",
        trust="Well.",
        unsure=None,
        record=SimpleNamespace(warnings=(), kind="pictures"),
        collection=SimpleNamespace(skipped=[]),
    )
    monkeypatch.setattr("newfound.workflows.train.train", lambda *a, **options: result)
    (tmp_path / "report.html").write_text("the old one")
    printed = succeed("train", "somewhere", "--out", tmp_path)
    assert printed.startswith(f"The run in {tmp_path} is finished. To do it again, add --overwrite")
    assert (tmp_path / "report.html").read_text() == "the old one"


def test_train_passes_overwrite_on(asked):
    fail("train", "somewhere", "--overwrite")
    fail("train", "somewhere")
    assert [call.overwrite for call in asked] == [True, False]


def test_predict_replaces_a_table_on_request(root, discovered, tmp_path):
    (tmp_path / "p.csv").write_text("old")
    out = ["--out", tmp_path / "p.csv"]
    fail("predict", discovered[0], root / "more", *out)
    assert (tmp_path / "p.csv").read_text() == "old"
    succeed("predict", discovered[0], root / "more", *out, "--overwrite")
    assert len(read_table(tmp_path / "p.csv")) == 40


@pytest.mark.parametrize("name", ["run.json", "assignments.csv"])
def test_predict_and_embed_never_replace_a_file_of_a_run(root, discovered, name):
    file = discovered[0] / name
    before = file.read_bytes()
    for command in (["predict", discovered[0], root / "more"], ["embed", root / "more"]):
        assert "a file of a run" in fail(*command, "--out", file, "--overwrite")
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    "variables", [{"RANK": "1"}, {"LOCAL_RANK": "1"}, {"LOCAL_RANK": "0", "NODE_RANK": "2"}]
)
def test_an_error_is_printed_by_the_first_process_only(variables, tmp_path, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    result = run("train", tmp_path / "none")
    assert (result.exit_code, result.output.strip()) == (2, "")  # older rich ends its line

    def read_result(run):
        raise OSError("the disk of this machine is gone")

    monkeypatch.setattr("newfound.result.store.read_result", read_result)
    assert fail("report", "run") == "newfound: the disk of this machine is gone"


@pytest.mark.parametrize("command", [[], *[[name] for name in COMMANDS]])
def test_the_help_shows_no_type_for_flags(command):
    shown = run(*command, "--help").output
    assert "--help" in shown
    assert "<bool>" not in shown
    assert "list[" not in shown


def test_warnings_of_a_run_are_shown(root, tmp_path):
    y = [label if label in ("digit 0", "digit 1") else "" for label in Digits.y[:N]]
    np.savez(tmp_path / "f.npz", X=Digits.X[:N], y=np.array(y))
    printed = succeed("discover", tmp_path / "f.npz", "--out", tmp_path / "run")
    assert "Note: Only 2 classes are known" in printed


def test_embed_writes_features_for_other_commands(root, tmp_path):
    out = tmp_path / "features.npz"
    printed = succeed(
        *["embed", root / "pictures", "--labels", root / "labels.csv"],
        *["--out", out, "--encoder", GREY],
    )
    assert f"200 × 64 features by {GREY}: {out}" in printed
    listed = tmp_path / "features.skipped.csv"
    reason = "not a picture in a format that can be read"
    skipped = f"1 file was skipped. The first is broken.png: {reason}. All reasons: {listed}."
    assert skipped in printed
    assert [row["reason"] for row in read_table(listed)] == [reason]
    assert "5 known categories" in succeed("count", out)


def test_predict_writes_a_table(root, discovered, tmp_path):
    run_folder, _ = discovered
    (root / "more" / "empty.png").touch()
    printed = succeed("predict", run_folder, root / "more", "--out", tmp_path / "p.csv")
    (root / "more" / "empty.png").unlink()
    rows = read_table(tmp_path / "p.csv")
    assert [row["id"] for row in rows] == [f"{i:03d}.png" for i in range(N, N + 40)]
    n_novel = sum(row["kind"] == "novel" for row in rows)
    assert f"40 pictures, {n_novel} of them in new categories: {tmp_path}/p.csv" in printed
    listed = tmp_path / "p.skipped.csv"
    assert (
        f"1 file was skipped. The first is empty.png: the file is empty. All reasons: {listed}"
        in (printed)
    )
    known = set(read_result(run_folder).categories["category"])
    assert {row["category"] for row in rows} <= known


def test_update_says_what_changed_and_leaves_the_old_run(root, discovered, tmp_path):
    run_folder, _ = discovered
    before = (run_folder / "assignments.csv").read_bytes()
    printed = succeed("update", run_folder, root / "more", "--out", tmp_path / "new")
    assert len(read_result(tmp_path / "new")) == N + 40
    changes = re.search(r"new/assignments\.csv\. (.*) What changed: (\S+)\.$", printed)
    assert changes[1].startswith("240 pictures, 200 before: 40 added, 0 removed,")
    assert "<html" in Path(changes[2]).read_text(encoding="utf-8")
    assert (tmp_path / "new" / "report.html").exists()
    assert (run_folder / "assignments.csv").read_bytes() == before


def test_update_obeys_edits_and_stops_at_rows_that_it_cannot(discovered, tmp_path):
    copy = shutil.copytree(discovered[0], tmp_path / "copy")
    assert "nothing to do" in fail("update", copy)
    (copy / "edits.csv").write_text("action,subject,value\nrename,new-001,seven\nconfirm,nobody\n")
    refused = run("update", copy)
    assert refused.exit_code == 2
    assert "Row 3: there is no category 'nobody'." in refused.stderr.splitlines()
    (copy / "edits.csv").write_text("action,subject,value\nrename,new-001,seven\n")
    assert "Renamed: new-001 is now seven." in succeed("update", copy)
    assert "seven" in read_result(copy).names
    assert "1 category was renamed (new-001)" in (copy / "changes.html").read_text()
    rows = pd.read_csv(copy / "audit.csv")
    assert list(rows) == ["id", "label", "suggested_label", "score", "n_neighbours", "n_asked"]
    assert rows["score"].is_monotonic_decreasing


def test_review_of_no_run_is_told(tmp_path):
    assert "no run folder" in fail("review", tmp_path / "nothing", "--no-browser")


def test_report_draws_the_page_again(discovered):
    run_folder, _ = discovered
    page = run_folder / "report.html"
    page.unlink()
    assert succeed("report", run_folder) == f"Report: {page}"
    assert "<html" in page.read_text(encoding="utf-8")


def test_export_says_what_was_written(discovered, tmp_path):
    run_folder, _ = discovered
    printed = succeed("export", run_folder, "--to", "folders", "--out", tmp_path / "sorted")
    assert printed == f"Written: {tmp_path / 'sorted'}"
    copies = list((tmp_path / "sorted").glob("*/*.png"))
    assert [path.stat().st_nlink for path in copies] == [1] * N


def test_export_says_where_links_were_not_possible(discovered, tmp_path, monkeypatch):
    run_folder, _ = discovered
    arguments = ["export", run_folder, "--to", "folders", "--link", "--out"]
    assert succeed(*arguments, tmp_path / "1") == f"Written: {tmp_path / '1'}"
    assert {path.stat().st_nlink for path in (tmp_path / "1").glob("*/*.png")} == {2}

    def link(*args):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr("os.link", link)
    printed = succeed(*arguments, tmp_path / "2")
    assert printed.startswith(f"Note: {N} pictures were copied, not linked, because")
    assert printed.endswith(f"(Invalid cross-device link). Written: {tmp_path / '2'}")


def test_demo_shows_categories_and_the_sentence(discovered, tmp_path, monkeypatch):
    run_folder, _ = discovered
    asked = {}

    def run_demo(folder, *, seed, epochs, progress):
        progress("Training", 1, 2)
        asked.update(folder=folder, seed=seed, epochs=epochs)
        categories = [
            Category("3", "known", 180, "digit 3", 0.987),
            Category("new-001", "novel", 171, "digit 7", 1.0),
        ]
        result = read_result(run_folder)
        return Demo(tmp_path, result, categories, 0.9, "In truth there are 5 new ones.")

    monkeypatch.setattr("newfound.workflows.demo.run_demo", run_demo)
    printed = succeed("demo", "--seed", "5", "--epochs", "2", "--out", "there")
    assert asked == {"folder": Path("there"), "seed": 5, "epochs": 2}
    for shown in ("new-001", "novel", "171", "digit 7", "99%", "In truth there are 5 new ones."):
        assert shown in printed
    assert read_result(run_folder).answer in printed
    assert (tmp_path / "report.html").exists()


# --------------------------------------------------------------------------- what cannot be done


BAD = {
    "count: no file": (["count", "{tmp}/none.npz"], "There is no file"),
    "count: no features": (["count", "{root}/labels.csv"], r"no numbers to use as features"),
    "count: pictures": (
        ["count", "{root}/pictures"],
        r"pictures holds pictures, but features are needed\. Make them with `newfound embed ",
    ),
    "count: no labels": (["count", "{root}/f.npy"], r"has a label.* give a table with"),
    "embed: taken": (
        ["embed", "{root}/pictures", "--out", "{root}/f.npz"],
        r"f\.npz exists already\. To replace it, pass --overwrite",
    ),
    "predict: taken": (
        ["predict", "{root}/run", "{root}/more", "--out", "{root}/labels.csv"],
        r"labels\.csv exists already\. To replace it, pass --overwrite",
    ),
    "discover: another request": (
        [
            *[
                "discover",
                "{root}/pictures",
                "--labels",
                "{root}/labels.csv",
                "--out",
                "{root}/run",
            ],
            *["--encoder", GREY, "--no-rehearse", "--seed", "1"],
        ],
        r"another request: seed 0 \(now 1\)\. Choose another folder, or pass --overwrite",
    ),
    "discover: no device": (
        [
            *["discover", "{root}/pictures", "--labels", "{root}/labels.csv", "--device", "gpu"],
            *["--encoder", "efficientnet-lite0"],
        ],
        r"device is 'gpu', which this machine does not have",
    ),
    "train: no folder": (["train", "{tmp}/none"], "none"),
    "train: features": (["train", "{root}/f.npz"], "needs a folder of pictures"),
    "train: no labels": (["train", "{root}/pictures"], "None of the 201 pictures has a label"),
    "train: no table": (["train", "{root}/pictures", "--labels", "{tmp}/no.csv"], r"no\.csv"),
    "train: too small": (["train", "{root}/pictures", "--epochs", "0"], "epochs must be at least"),
    "train: no choice": (
        ["train", "{root}/pictures", "--pca", "some"],
        "pca must be one of all, batch, off; got 'some'",
    ),
    "train: no model": (
        ["train", "{root}/pictures", "--labels", "{root}/labels.csv", "--model", "no_such_net"],
        "has no model 'no_such_net'",
    ),
    "pretrain: no folder": (["pretrain", "{tmp}/none"], "none"),
    "pretrain: too small": (["pretrain", "{root}/pictures", "--image-size", "0"], "image_size"),
    "discover: no source": (["discover", "{tmp}/none"], "none"),
    "discover: too few": (["discover", "{root}/f.npz", "--n-categories", "4"], "n_categories is 4"),
    "discover: seed": (["discover", "{root}/f.npz", "--seed", "-1"], "seed must be"),
    "discover: run among pictures": (
        [
            *["discover", "{root}/pictures", "--labels", "{root}/labels.csv"],
            *["--encoder", GREY, "--out", "{root}/pictures/run"],
        ],
        "is inside the folder of pictures",
    ),
    "discover: pixels": (
        ["discover", "{root}/pictures", "--train", "--encoder", "pixels"],
        "Raw pixels have no network to train",
    ),
    "discover: quick": (["discover", "{root}/f.npz", "--quick"], "`quick` is for training"),
    "discover: folder in use": (
        ["discover", "{root}/f.npz", "--out", "{root}"],
        "is no run folder",
    ),
    "embed: features": (["embed", "{root}/f.npz"], "holds features already"),
    "embed: no folder": (["embed", "{tmp}/none"], "none"),
    "embed: no encoder": (
        ["embed", "{root}/more", "--encoder", "pixels-none"],
        "The encoder is 'pixels-none'",
    ),
    "predict: no run": (["predict", "{tmp}/none", "{root}/more"], "There is no run folder"),
    "predict: other kind": (["predict", "{root}/run", "{root}/f.npz"], "Give pictures"),
    "predict: nowhere": (
        ["predict", "{root}/run", "{root}/more", "--out", "{root}/f.npz/p.csv"],
        "cannot be written to",
    ),
    "update: no run": (["update", "{root}/more", "{root}/more"], "no finished run"),
    "update: other kind": (["update", "{root}/run", "{root}/f.npz"], "Give pictures"),
    "report: no run": (["report", "{tmp}/none"], "There is no run folder"),
    "export: no run": (
        ["export", "{tmp}/none", "--to", "csv", "--out", "{tmp}/a.csv"],
        "There is no run folder",
    ),
    "export: no format": (
        ["export", "{root}/run", "--to", "excel", "--out", "{tmp}/a"],
        "There is no format 'excel'",
    ),
    "export: a file for a folder": (
        ["export", "{root}/run", "--to", "folders", "--out", "{tmp}/a.json"],
        "'folders' writes a folder, but",
    ),
    "export: a folder for a file": (
        ["export", "{root}/run", "--to", "coco", "--out", "{tmp}/a/"],
        "'coco' writes a file that ends in .json",
    ),
    "export: taken": (
        ["export", "{root}/run", "--to", "csv", "--out", "{root}/labels.csv"],
        r"labels\.csv",
    ),
    "demo: too small": (["demo", "--epochs", "0", "--out", "{tmp}/demo"], "epochs must be at leas"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_a_person_can_mend_is_one_line_and_exit_code_2(
    case, root, discovered, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)  # for the default of --out
    arguments, message = BAD[case]
    line = fail(*[argument.format(root=root, tmp=tmp_path) for argument in arguments])
    assert re.search(message, line)


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied", "/x"), OSError("full")])
def test_errors_of_the_system_are_one_line(monkeypatch, error):
    def read_result(run):
        raise error

    monkeypatch.setattr("newfound.result.store.read_result", read_result)
    assert fail("report", "run") == f"newfound: {error}"


WORK = {
    "count": ("newfound.workflows.source.read_features", ["f.npz"]),
    "train": ("newfound.workflows.train.train", ["pictures"]),
    "pretrain": ("newfound.workflows.pretrain.pretrain", ["pictures"]),
    "discover": ("newfound.workflows.discover.discover", ["pictures"]),
    "embed": ("newfound.workflows.embed.embed", ["pictures"]),
    "predict": ("newfound.workflows.predict.predict", ["run", "more"]),
    "update": ("newfound.workflows.update.update", ["run", "more"]),
    "trust": ("newfound.workflows.trust.check_trust", ["run"]),
    "report": ("newfound.result.store.read_result", ["run"]),
    "review": ("newfound.review.server.review", ["run"]),
    "export": ("newfound.result.store.read_result", ["run", "--to", "csv", "--out", "a.csv"]),
    "demo": ("newfound.workflows.demo.run_demo", []),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_is_exit_code_2_and_a_hint(command, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    work, arguments = WORK[command]
    monkeypatch.setattr(work, interrupt)
    line = fail(command, *arguments)
    assert line == "newfound: stopped. Run the same command again to resume."


def test_an_error_of_the_program_itself_is_not_hidden(monkeypatch):
    def read_result(run):
        raise ZeroDivisionError

    monkeypatch.setattr("newfound.result.store.read_result", read_result)
    result = run("report", "run")
    assert isinstance(result.exception, ZeroDivisionError)


def test_items_below_a_confidence_are_marked_in_all_that_is_written(root, tmp_path):
    printed = succeed(
        *["discover", root / "f.npz", "--no-rehearse", "--min-confidence", "0.9"],
        *["--out", tmp_path / "run"],
    )
    result = read_result(tmp_path / "run")
    n_unsure = int(result.is_unsure.sum())
    assert n_unsure > 0
    assert result.unsure in printed
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert result.unsure in page
    rows = read_table(tmp_path / "run" / "assignments.csv")
    assert sum(row["is_unsure"] == "True" for row in rows) == n_unsure
    succeed("report", tmp_path / "run")
    assert (tmp_path / "run" / "report.html").read_text(encoding="utf-8") == page
    succeed("export", tmp_path / "run", "--to", "csv", "--out", tmp_path / "a.csv")
    assert read_table(tmp_path / "a.csv") == rows
    np.save(tmp_path / "more.npy", Digits.X[N : N + 40])
    predicted = ["predict", tmp_path / "run", tmp_path / "more.npy", "--out", tmp_path / "p.csv"]
    printed = succeed(*predicted)
    rows = read_table(tmp_path / "p.csv")
    n_unsure = sum(row["is_unsure"] == "True" for row in rows)
    assert f"in new categories, {n_unsure} unsure: " in printed
    assert [row["is_unsure"] for row in rows] == [str(float(r["confidence"]) < 0.9) for r in rows]
    assert fail(*predicted, "--overwrite", "--min-confidence", "90").endswith(
        "such as 0.8; got 90.0."
    )


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    path = tmp_path_factory.mktemp("features") / "f.npz"
    np.savez(path, X=Digits.X, y=np.where(Digits.is_labelled, Digits.truth, -1))
    return path


@pytest.mark.parametrize(
    ("sizes", "n_novel", "words"),
    [
        ("alike", 5, "as you said."),
        ("0.5", 10, "as you said."),
        ("unknown", None, "the rows do not tell, so the interval covers whatever is plausible."),
    ],
)
def test_count_says_how_large_new_categories_are(features, sizes, n_novel, words):
    printed = succeed("count", features, "--sizes", sizes)
    assert printed.endswith(words)
    found = float(re.search(r"and about ([\d.]+) new ones", printed)[1])
    if n_novel is not None:
        assert found == pytest.approx(n_novel, abs=1)
    line = (
        r"A new category has about (\d+) rows \(90% interval: (\d+) to (\d+)\), a known one (\d+)"
    )
    size, low, high, known = map(int, re.search(line, printed).groups())
    assert low <= size <= high
    if sizes != "unknown":
        assert size / known == pytest.approx(1 if sizes == "alike" else 0.5, abs=0.01)


def test_count_says_if_the_rows_do_not_tell_sizes():
    count = CategoryCount(
        *(4.0, (2.0, 9.0), 0.8, 0.5, 0.6, 7, 0),
        novel_size=21.4,
        novel_size_interval=(8.0, 60.0),
        sizes_from="prior",
    )
    reason = "the rows do not tell, so the interval covers whatever is plausible."
    about = "A new category has about 21 rows (80% interval: 8 to 60)"
    assert size_sentence(count) == f"{about}: {reason}"
    assert size_sentence(replace(count, known_size=30.2)) == f"{about}, a known one 30: {reason}"


def test_discover_takes_sizes_and_says_what_was_said(root, tmp_path):
    printed = succeed(
        *["discover", root / "f.npz", "--no-rehearse", "--out", tmp_path / "run"],
        *["--sizes", "0.5"],
    )
    assert "The number assumes that new categories are about half as large as known ones" in printed
    record = read_result(tmp_path / "run").record
    assert record.settings.sizes == 0.5
    assert "--sizes 0.5" in record.rerun
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "--sizes 0.5" in page
    assert "about half as large as known ones" in page


@pytest.mark.parametrize("sizes", ["nonsense", "-1", "0", "nan", "inf", ""])
@pytest.mark.parametrize("command", ["count", "discover"])
def test_sizes_that_make_no_sense(features, tmp_path, command, sizes):
    out = ["--out", tmp_path / "run"] if command == "discover" else []
    line = fail(command, features, *out, f"--sizes={sizes}")
    assert line.endswith(
        "sizes must be unknown, alike, or the mean size of novel categories over that of known "
        f"ones, such as 0.5; got {sizes!r}."
    )
    assert not (tmp_path / "run").exists()
