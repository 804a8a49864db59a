"""Every option of every command with generated values: an answer, or one line and exit code 2."""

import os
import traceback

import numpy as np
import pytest
import typer.main
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from samples import Blobs
from typer.testing import CliRunner

from newfound.bench.commands import app as bench_app
from newfound.cli.main import app
from newfound.workflows.discover import discover

MORE = int(os.environ.get("NEWFOUND_FAULTS", "1"))
#: What each command gets besides the option. Trainings and the server end before they begin.
COMMANDS = {
    "count": ["few.npz"],
    "discover": ["few.npz", "--no-rehearse"],
    "embed": ["empty"],
    "train": ["empty"],
    "pretrain": ["empty"],
    "predict": ["run", "few.npz", "--overwrite"],
    "update": ["run"],
    "trust": ["absent"],
    "review": ["absent"],
    "report": ["run"],
    "export": ["run", "--to", "csv", "--out", "items.csv"],
    "demo": ["--out", "few.npz"],
    "bench run": ["kmeans", "absent.npz"],
    "bench tune": ["gcd", "absent.npz"],
    "bench table": ["3"],
    "bench records": ["gpc", "cub"],
    "bench figure": ["tsne", "cub", "--out", "figure.png"],
}
GROUPS = {"": typer.main.get_command(app), "bench": typer.main.get_command(bench_app)}


def options_of(name):
    """Options with a value that a command has."""
    *group, last = name.split()
    command = GROUPS["".join(group)].commands[last]
    found = [one.opts[0] for one in command.params if one.opts[0].startswith("--")]
    switches = {one.opts[0] for one in command.params if getattr(one, "is_flag", False)}
    return [option for option in found if option not in switches]


#: Where a value would let the demo train, it is not tried.
PAIRS = [
    (name, option)
    for name in COMMANDS
    for option in options_of(name)
    if (name, option) != ("demo", "--out")
]
CORPUS = ["", " ", "-1", "0", "1e999", "nan", "-inf", "9" * 30, "1.5", "0x10", "None", "run", "few"]
CORPUS += ["few.npz", "..", "/", "/dev/null", "a\x00b", "=", "--", "x" * 300, "\ud800", "💥", "%s"]
VALUES = st.sampled_from(CORPUS) | st.text(max_size=9) | st.integers().map(str)
VALUES |= st.floats().map(str)


def test_every_command_is_here():
    names = {*GROUPS[""].commands, *(f"bench {name}" for name in GROUPS["bench"].commands)}
    assert set(COMMANDS) == names
    assert len(PAIRS) > 200


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("options")
    few = Blobs.take(range(0, 240, 3))
    y = ["" if label is None else label for label in few.y]
    np.savez(folder / "few.npz", X=few.features, y=np.array(y, dtype=str))
    (folder / "empty").mkdir()
    discover(few, out=folder / "run", n_categories=8, rehearse=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


@settings(
    derandomize=True,
    max_examples=25 if MORE == 1 else 60 * MORE,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(pair=st.sampled_from(PAIRS), value=VALUES)
def test_a_value_is_taken_or_refused_in_words(folder, pair, value):
    name, option = pair
    group = bench_app if name.startswith("bench ") else app
    arguments = [name.split()[-1], *COMMANDS[name], option, value]
    done = CliRunner().invoke(group, arguments)
    error = done.exception
    assert error is None or isinstance(error, SystemExit), traceback.format_exception(error)
    assert done.exit_code in (0, 2), done.output
