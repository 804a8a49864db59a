"""When a checkpoint within an epoch is due."""

import pytest

from newfound.deep.partial_epoch import SAVE_SECONDS, SAVE_SHARE, SaveTimer


class Clock:
    """A clock that a test sets."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize(("cost", "pause"), [(0.1, SAVE_SECONDS), (6.0, 6.0 / SAVE_SHARE)])
def test_checkpoints_are_rare_and_cost_a_small_share_of_the_time(cost, pause):
    clock = Clock()
    timer = SaveTimer(clock)
    assert not timer.is_due()
    clock.now += SAVE_SECONDS
    assert timer.is_due()
    with timer.saving():
        clock.now += cost
    clock.now += pause - 0.01
    assert not timer.is_due()
    clock.now += 0.01
    assert timer.is_due()
    assert SAVE_SECONDS <= 300
    assert cost / pause <= 0.01
