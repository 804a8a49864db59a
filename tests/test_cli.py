"""The commands, mostly inside this process."""

import re
import subprocess
import sys
from importlib.metadata import entry_points

import numpy as np
import pytest
from sklearn.datasets import load_digits
from typer.testing import CliRunner

import newfound
from newfound.__main__ import main
from newfound.cli import app
from newfound.demo import Category, Demo


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_version():
    result = run("--version")
    assert result.exit_code == 0
    assert result.output.strip() == f"newfound {newfound.__version__}"


def test_help_says_what_the_program_does_and_lists_the_commands():
    result = run("--help")
    assert result.exit_code == 0
    assert "categories that your labels don't have yet" in " ".join(result.output.split())
    assert "demo" in result.output


def test_without_arguments_the_help_is_shown():
    assert "Usage:" in run().output


@pytest.mark.parametrize("arguments", [["no-such-command"], ["--no-such-option"]])
def test_unknown_arguments_are_named(arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert arguments[0] in result.output


def test_demo_shows_categories_and_the_sentence(monkeypatch):
    seeds = []

    def fake_demo(seed):
        seeds.append(seed)
        categories = [
            Category("3", "known", 180, "digit 3", 0.987),
            Category("new-001", "novel", 171, "digit 7", 1.0),
        ]
        return Demo(categories, 1, 0.9, "One new category was found.")

    monkeypatch.setattr("newfound.demo.run_demo", fake_demo)
    result = run("demo", "--seed", "5")
    assert result.exit_code == 0
    assert seeds == [5]
    for shown in ("new-001", "novel", "171", "digit 7", "99%", "One new category was found."):
        assert shown in result.output


def test_the_console_script_is_the_module():
    (script,) = entry_points(group="console_scripts", name="newfound")
    assert script.load() is main


def test_python_m_newfound():
    command = [sys.executable, "-m", "newfound", "--version"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == f"newfound {newfound.__version__}"


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


def test_count_says_how_many(tmp_path):
    X, truth = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "f.npz", X=X, y=np.where((truth < 5) & (rng.random(1797) < 0.5), truth, -1))
    result = run("count", str(tmp_path / "f.npz"), "--seed", "1")
    assert result.exit_code == 0
    found = float(re.search(r"5 categories are known; about ([\d.]+) more", result.stdout)[1])
    assert found == pytest.approx(5, abs=1)
    assert "90% interval" in result.stdout


def test_count_of_a_bad_file_is_one_line_and_exit_code_2(tmp_path):
    result = run("count", str(tmp_path / "none.npz"))
    assert result.exit_code == 2
    assert "There is no file" in result.stderr
    assert "Traceback" not in result.stderr
