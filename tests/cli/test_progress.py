"""Bars on standard error, as a terminal would get them."""

import re

import pytest

from newfound.cli.progress import TrainingBar, bar, steps
from newfound.deep.records import Epoch

RECORD = Epoch(
    epoch=1,
    loss=2.34567,
    pcl_weight=0.5,
    learning_rate=0.1,
    n_components=17,
    n_novel=7,
    accuracy=0.875,
    seconds=1.0,
    e_step_seconds=0.5,
    images_per_second=1234.5,
)
WITHOUT_CATEGORIES = Epoch(0, 3.0, 0.0, 0.1, None, None, None, 1.0, 0.5, 100.0)


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
    with bar("Reading pictures") as tell:
        tell(3, 12)
    text = shown()
    assert "Reading pictures" in text
    assert " 3/12" in text


def test_a_bar_is_taken_away_at_the_end(shown):
    with bar("Reading pictures") as tell:
        tell(12, 12)
    assert shown().endswith("\x1b[1A\x1b[2K")  # the line above is cleared


def test_steps_show_the_last_one(shown):
    with steps() as tell:
        tell("Encoding", 5, 5)
        tell("Finding categories", 2, 9)
    drawn, _, _ = shown().rpartition("\x1b[?25h")
    last = drawn.rpartition("\x1b[2K")[2]
    assert "Finding categories" in last
    assert "2/9" in last
    assert "Encoding" not in last


def test_a_total_that_nobody_knows_is_a_question_mark(shown):
    with steps() as tell:
        tell("Finding categories", 7, 0)
    assert "7/?" in shown()
    with bar("Reading pictures") as tell:
        tell(0, 0)
    assert "0/?" in shown()


def test_the_total_of_one_step_is_not_that_of_the_next(shown):
    with steps() as tell:
        tell("Encoding", 40, 40)
        tell("Finding categories", 7, 0)
    assert "7/?" in shown()


def test_a_bar_that_hears_nothing_says_that_it_starts(shown):
    with steps():
        pass
    assert "Starting" in shown()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_errors_pass_and_leave_the_terminal_as_it_was(shown, error):
    def work():
        with steps() as tell:
            tell("Encoding", 1, 2)
            raise error

    with pytest.raises(error):
        work()
    text = shown()
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")  # the cursor is shown again


def test_where_there_is_no_terminal_nothing_is_written(monkeypatch, capsys):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    with steps() as tell:
        tell("Encoding", 1, 2)
    training = TrainingBar()
    training.start(3, 0)
    training.batch(0, 1, 4)
    training.end()
    out, err = capsys.readouterr()
    assert out == ""
    assert err.strip() == ""


# --- the bar of a training


def test_the_training_bar_goes_over_the_batches_of_all_epochs(shown):
    training = TrainingBar()
    training.start(4, 0)
    training.batch(1, 5, 10)  # 15 of 40
    training.end()
    text = shown()
    assert "Epoch 2 of 4" in text
    assert "38 %" in text


def test_the_training_bar_shows_the_numbers_of_an_epoch(shown):
    training = TrainingBar()
    training.start(4, 0)
    training.batch(1, 10, 10)
    training.epoch(RECORD)
    training.end()
    numbers = "loss 2.346 · λ 0.50 · K 17 · labelled accuracy 87.5% · 1,234 images/s"
    assert numbers in shown()


def test_the_training_bar_leaves_out_what_a_method_does_not_have(shown):
    training = TrainingBar()
    training.start(4, 0)
    training.epoch(WITHOUT_CATEGORIES)
    training.end()
    assert "loss 3.000 · 100 images/s" in shown()


@pytest.mark.parametrize(("first_epoch", "is_told"), [(2, True), (0, False)])
def test_the_training_bar_says_that_a_run_goes_on(shown, first_epoch, is_told):
    training = TrainingBar()
    training.start(3, first_epoch)
    training.end()
    assert (f"Going on from epoch {first_epoch} of 3." in shown()) == is_told


def test_the_training_bar_says_what_comes_after_the_epochs(shown):
    training = TrainingBar()
    training.start(1, 0)
    training.say("Rehearsing with hidden classes")
    training.end()
    assert "Rehearsing with hidden classes" in shown()


def test_the_training_bar_survives_totals_that_nobody_knows(shown):
    training = TrainingBar()
    training.start(0, 0)
    training.batch(0, 0, 0)
    training.say("Finding the categories")
    training.end()
    assert "  0 %" in shown()
