"""Bars on standard error, as a terminal would get them."""

import re

import pytest
from rich.console import Console

from newfound.cli.progress import PlainLines, show_progress


@pytest.fixture
def terminal(monkeypatch):
    """A wide terminal."""
    for name, value in {"FORCE_COLOR": "1", "TERM": "dumb", "COLUMNS": "160"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("rich.console.Console.is_dumb_terminal", False)


@pytest.fixture
def shown(terminal, capsys):
    """What was written to standard error, without colours; nothing goes to standard output."""

    def read():
        out, err = capsys.readouterr()
        assert out == ""
        return re.sub(r"\x1b\[[\d;]*m", "", err)

    return read


def test_a_bar_shows_what_is_done_and_how_far_it_is(shown):
    with show_progress() as progress:
        progress("Reading pictures", 3, 12)
    text = shown()
    assert "Reading pictures" in text
    assert " 3/12" in text


def test_a_bar_is_taken_away_at_the_end(shown):
    with show_progress() as progress:
        progress("Reading pictures", 12, 12)
    assert shown().endswith("\x1b[1A\x1b[2K")  # the line above is cleared


def test_a_note_stays_and_the_bar_goes_on(shown):
    with show_progress() as progress:
        progress("Training", 1, 9)
        progress("Note: Training will take about 3 hours [see --quick].", 0, 0)
        progress("Training", 2, 9)
    text = shown()
    assert text.count("Note: Training will take about 3 hours [see --quick].\n") == 1
    assert " 2/9" in text


def test_steps_show_the_last_one(shown):
    with show_progress() as progress:
        progress("Encoding", 5, 5)
        progress("Finding categories", 2, 9)
    drawn, _, _ = shown().rpartition("\x1b[?25h")
    last = drawn.rpartition("\x1b[2K")[2]
    assert "Finding categories" in last
    assert "2/9" in last
    assert "Encoding" not in last


def test_an_unknown_total_is_a_question_mark(shown):
    with show_progress() as progress:
        progress("Finding categories", 7, 0)
    assert "7/?" in shown()
    with show_progress() as progress:
        progress("Reading pictures", 0, 0)
    assert "0/?" in shown()


def test_the_total_of_one_step_is_not_that_of_the_next(shown):
    with show_progress() as progress:
        progress("Encoding", 40, 40)
        progress("Finding categories", 7, 0)
    assert "7/?" in shown()


def test_a_bar_without_a_report_says_that_it_starts(shown):
    with show_progress():
        pass
    assert "Starting" in shown()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_errors_pass_and_leave_the_terminal_as_it_was(shown, error):
    def work():
        with show_progress() as progress:
            progress("Encoding", 1, 2)
            raise error

    with pytest.raises(error):
        work()
    text = shown()
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")  # the cursor is shown again


def test_where_there_is_no_terminal_nothing_is_written(monkeypatch, capsys):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    with show_progress() as progress:
        progress("Encoding", 1, 2)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.strip() == ""


def test_a_detail_changes_while_the_step_and_its_bar_stay(shown):
    with show_progress() as progress:
        progress("Training", 1, 40)
        progress("Training · loss 2.346 · K 17", 20, 40)
    drawn, _, _ = shown().rpartition("\x1b[?25h")
    last = drawn.rpartition("\x1b[2K")[2]
    assert "Training · loss 2.346 · K 17" in last
    assert "20/40" in last


def test_a_log_file_gets_a_plain_line_each_half_minute(capsys):
    seconds = iter([0, 10, 30, 31, 59, 61, 62])
    lines = PlainLines(Console(stderr=True), clock=lambda: next(seconds))
    lines("Reading pictures", 1, 9)
    lines("Finding categories", 0, 0)
    lines("Note: It is in [run].", 0, 0)
    lines("Rehearsing", 1, 19)
    lines("Rehearsing", 2, 19)
    lines("Rehearsing", 3, 19)
    assert capsys.readouterr().err.splitlines() == [
        "Finding categories",
        "Note: It is in [run].",
        "Rehearsing: 2 of 19",
    ]


def test_without_a_terminal_there_are_no_bars(capsys):
    with show_progress() as progress:
        progress("Reading pictures", 12, 12)
        progress("Note: It is in run.", 0, 0)
    assert capsys.readouterr().err == "Note: It is in run.\n"
