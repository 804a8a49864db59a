"""Listeners: progress for a person, the log of TensorBoard, and the plot."""

import re
import subprocess
import sys
from dataclasses import asdict, replace

import pytest
from PIL import Image

from newfound.deep.logs import ProgressListener, Several, TensorBoard, draw_history
from newfound.deep.records import Epoch, Listener

event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")


def record(epoch, **changes):
    values = Epoch(
        epoch=epoch,
        loss=4.0 - epoch,
        pcl_weight=epoch / 4,
        learning_rate=0.1,
        n_components=10 + epoch,
        n_novel=epoch,
        accuracy=0.5 + epoch / 8,
        seconds=2.0,
        e_step_seconds=1.0,
        images_per_second=512.0,
    )
    return replace(values, **changes)


WITHOUT_CATEGORIES = {"n_components": None, "n_novel": None, "accuracy": None}


def log(folder, records, first_epoch=0):
    board = TensorBoard(folder)
    board.start(4, first_epoch)
    for one in records:
        board.epoch(one)
    board.end()


def read(folder):
    """Scalars by name: a list of (step, value)."""
    events = event_accumulator.EventAccumulator(str(folder)).Reload()
    return {
        name: [(event.step, event.value) for event in events.Scalars(name)]
        for name in events.Tags()["scalars"]
    }


# --- progress


def test_progress_is_over_the_batches_of_all_epochs():
    calls = []
    listener = ProgressListener(lambda *given: calls.append(given))
    listener.start(4, 1)
    listener.batch(1, 1, 5)
    listener.batch(3, 5, 5)
    listener.epoch(record(3))
    listener.say("Rehearsing")
    listener.end()
    assert calls == [
        ("Training", 1, 4),
        ("Training", 6, 20),
        ("Training", 20, 20),
        ("Rehearsing", 0, 0),
    ]


def test_listeners_need_no_torch():
    program = "import sys, newfound.deep.logs, newfound.deep.records; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert loaded.returncode == 0, loaded.stderr
    assert set(re.split(r"\s+", loaded.stdout)).isdisjoint(["torch", "timm", "tensorboard"])


# --- TensorBoard


def test_tensorboard_reads_every_number_of_every_epoch(tmp_path):
    records = [record(0), record(1), record(2)]
    log(tmp_path / "board", records)
    scalars = read(tmp_path / "board")
    assert set(scalars) == set(asdict(records[0])) - {"epoch"}
    for name, points in scalars.items():
        expected = [getattr(one, name) for one in records]
        assert [step for step, _ in points] == [0, 1, 2]
        assert [value for _, value in points] == pytest.approx(expected), name


def test_numbers_that_a_method_does_not_have_are_not_written(tmp_path):
    log(tmp_path, [record(0, **WITHOUT_CATEGORIES)])
    assert set(read(tmp_path)).isdisjoint(WITHOUT_CATEGORIES)
    assert read(tmp_path)["loss"] == [(0, 4.0)]


def test_epochs_that_are_done_again_take_the_place_of_the_old_ones(tmp_path):
    log(tmp_path, [record(0), record(1, loss=99.0), record(2, loss=99.0)])
    log(tmp_path, [record(1), record(2), record(3)], first_epoch=1)
    assert read(tmp_path)["loss"] == [(0, 4.0), (1, 3.0), (2, 2.0), (3, 1.0)]


def test_a_finished_run_that_is_started_again_keeps_its_log(tmp_path):
    log(tmp_path, [record(0), record(1)])
    log(tmp_path, [], first_epoch=2)
    assert [step for step, _ in read(tmp_path)["loss"]] == [0, 1]


def test_nothing_is_written_before_training_begins(tmp_path):
    TensorBoard(tmp_path / "board")
    assert not (tmp_path / "board").exists()


# --- several listeners


class Notes(Listener):
    """Writes what it hears into a list that it shares with others."""

    def __init__(self, name, heard):
        self.name, self.heard = name, heard

    def start(self, n_epochs, first_epoch):
        self.heard.append((self.name, "start", n_epochs, first_epoch))

    def batch(self, epoch, n_done, n_batches):
        self.heard.append((self.name, "batch", epoch, n_done, n_batches))

    def epoch(self, record):
        self.heard.append((self.name, "epoch", record))

    def say(self, text):
        self.heard.append((self.name, "say", text))

    def step(self, text, done, total):
        self.heard.append((self.name, "step", text, done, total))

    def end(self):
        self.heard.append((self.name, "end"))


def test_several_listeners_hear_everything_in_their_order():
    heard = []
    several = Several([Notes("a", heard), Notes("b", heard)])
    several.start(5, 2)
    several.batch(3, 1, 7)
    several.epoch(record(3))
    several.say("Rehearsing")
    several.step("Reading", 1, 4)
    several.end()
    events = [
        ("start", 5, 2),
        ("batch", 3, 1, 7),
        ("epoch", record(3)),
        ("say", "Rehearsing"),
        ("step", "Reading", 1, 4),
        ("end",),
    ]
    assert heard == [(name, *event) for event in events for name in ("a", "b")]


def test_several_may_be_none():
    several = Several([])
    several.start(1, 0)
    several.end()


# --- the plot


@pytest.mark.parametrize(
    ("changes", "n_panels"), [({}, 3), ({"accuracy": None}, 2), (WITHOUT_CATEGORIES, 1)]
)
def test_the_plot_has_a_panel_for_each_number_that_there_is(tmp_path, changes, n_panels):
    draw_history([record(i, **changes) for i in range(3)], tmp_path / "history.png")
    with Image.open(tmp_path / "history.png") as picture:
        assert picture.format == "PNG"
        assert picture.size == (480 * n_panels, 360)
        assert len(picture.convert("L").getcolors()) > 10  # something is drawn


def test_the_curves_are_those_of_the_history(tmp_path):
    rising = [record(i, **WITHOUT_CATEGORIES, loss=float(i)) for i in range(4)]
    falling = [record(i, **WITHOUT_CATEGORIES, loss=float(3 - i)) for i in range(4)]
    for name, history in {"a": rising, "b": falling, "c": rising}.items():
        draw_history(history, tmp_path / f"{name}.png")
    pixels = [Image.open(tmp_path / f"{name}.png").tobytes() for name in "abc"]
    assert pixels[0] != pixels[1]
    assert pixels[0] == pixels[2]


def test_the_ending_says_the_format(tmp_path):
    draw_history([record(0)], tmp_path / "history.pdf")
    assert (tmp_path / "history.pdf").read_bytes().startswith(b"%PDF")
