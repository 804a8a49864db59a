"""The command line that repeats a run."""

import shlex

from samples import Blobs
from typer.main import get_command

from newfound.cli.main import app
from newfound.deep.settings import Settings
from newfound.workflows.rerun import command_line, settings_as_options, train_command


def test_a_command_line_can_be_pasted():
    line = command_line("discover", "my pictures", "--train", labels="l.csv", out=None, seed=3)
    assert line == "newfound discover 'my pictures' --train --labels l.csv --seed 3"


def test_no_command_line_names_a_collection():
    assert command_line("discover", Blobs.without(8)) is None


def test_settings_that_are_defaults_need_no_option():
    assert settings_as_options(Settings()) == []


def test_the_options_bring_back_the_settings():
    """Parsed by the real command, every setting that differs comes back."""
    for settings in (Settings.paper(), Settings.pretraining(), Settings(epochs=7, whiten=True)):
        words = shlex.split(train_command("pictures", "l.csv", settings, "out"))[2:]
        context = get_command(app).commands["train"].make_context("train", words)
        given = {name: context.params[name] for name in settings.as_dict()}
        assert Settings(**given) == settings
