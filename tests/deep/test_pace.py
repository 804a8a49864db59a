"""How long a training will take, with a clock that the tests set."""

import pytest

from newfound.deep.logs import ProgressListener
from newfound.deep.pace import Pace, duration
from newfound.deep.records import Epoch


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def record(epoch, seconds, e_step_seconds):
    return Epoch(epoch, 1.0, 1.0, 0.1, 5, 2, 0.5, seconds, e_step_seconds, 9.0)


def train(listener, clock, *, n_epochs, n_batches, batch, e_step, stop=None):
    """Hear of a training whose first E-step takes five times as long; stop after some batches."""
    listener.start(n_epochs, 0)
    n_heard = 0
    for epoch in range(n_epochs):
        clock.now += e_step * (1 if epoch else 5)
        for i in range(n_batches):
            clock.now += batch
            listener.batch(epoch, i + 1, n_batches)
            n_heard += 1
            if n_heard == stop:
                return
        seconds = e_step * (1 if epoch else 5)
        listener.epoch(record(epoch, seconds + batch * n_batches, seconds))


def listen(**training):
    clock, calls = Clock(), []
    listener = ProgressListener(
        lambda *given: calls.append(given), "Shorter: --quick.", Pace(clock)
    )
    train(listener, clock, **training)
    return calls


def test_a_person_is_told_after_three_batches():
    calls = listen(n_epochs=200, n_batches=12, batch=84.0, e_step=60.0, stop=20)
    notes = [i for i, call in enumerate(calls) if call[0].startswith("Note: ")]
    assert len(notes) == 1
    assert calls[notes[0]] == (
        "Note: Training will take about 2.3 days more on this machine (2,397 batches, 84 s each). "
        "Shorter: --quick.",
        0,
        0,
    )
    assert calls[notes[0] - 1] == ("Training · about 2.3 days left", 3, 2400)
    assert calls[1] == ("Training", 1, 2400)  # one batch says nothing: the E-step came before it


def test_later_e_steps_are_part_of_the_estimate():
    clock = Clock()
    pace = Pace(clock)
    listener = ProgressListener(lambda *given: None, pace=pace)
    train(listener, clock, n_epochs=10, n_batches=4, batch=2.0, e_step=3.0, stop=12)
    # epochs 0 and 1 are known, all batches of epoch 2 are done: 7 epochs of 3 + 4·2 s are left
    assert pace.seconds_left == pytest.approx(7 * (3 + 8))
    assert pace.batch_seconds == pytest.approx(2.0)


def test_epochs_of_one_batch_are_measured_as_a_whole():
    calls = listen(n_epochs=100, n_batches=1, batch=8.0, e_step=2.0, stop=3)
    assert "Training will take about 16 minutes" in calls[-1][0]  # 97 epochs of 10 s


@pytest.mark.parametrize(
    ("batch", "is_told", "has_advice"),
    [(0.01, False, False), (1.0, True, False), (20.0, True, True)],
)
def test_a_short_training_needs_no_advice(batch, is_told, has_advice):
    calls = listen(n_epochs=10, n_batches=20, batch=batch, e_step=0.0)
    notes = [name for name, *_ in calls if name.startswith("Note: ")]
    assert bool(notes) == is_told
    assert ("--quick" in "".join(notes)) == has_advice
    assert "left" not in calls[-1][0]  # all is done


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "1 second"),
        (89, "89 seconds"),
        (91, "2 minutes"),
        (700, "12 minutes"),
        (7200, "2.0 hours"),
        (40_000, "11 hours"),
        (250_000, "2.9 days"),
    ],
)
def test_durations_in_words(seconds, words):
    assert duration(seconds) == words
