"""How long a training will take, from its first batches. This module does not need torch."""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence

from newfound.deep.records import Epoch

#: Batches whose times are remembered.
_N_REMEMBERED = 50
#: An estimate is stable after so many batches that took so many seconds together, …
_STABLE_BATCHES, _STABLE_SECONDS = 2, 10.0
#: … or after so many epochs.
_STABLE_EPOCHS = 2


class Pace:
    """Measures batches and epochs, and says how many seconds are left.

    The first batch of an epoch is not measured: the E-step comes before it. The time of E-steps is
    known from finished epochs, without the first one: it also passes all pictures through the
    frozen part, counts the categories and fills the stores.

    Parameters
    ----------
    clock : callable
        Seconds from any start.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._n_epochs = 0
        self._batches: deque[float] = deque(maxlen=_N_REMEMBERED)
        self._epochs: list[Epoch] = []
        self._last: tuple[int, float] | None = None  # epoch and time of the last batch
        self._place = (0, 0, 1)  # epoch, batches done in it, batches of an epoch

    def start(self, n_epochs: int) -> None:
        """A training of so many epochs starts, or is resumed."""
        self._n_epochs = n_epochs

    def batch(self, epoch: int, n_done: int, n_batches: int) -> None:
        """A batch is done."""
        now = self._clock()
        if self._last is not None and self._last[0] == epoch:
            self._batches.append(now - self._last[1])
        self._last, self._place = (epoch, now), (epoch, n_done, n_batches)

    def epoch(self, record: Epoch) -> None:
        """An epoch is done."""
        self._epochs.append(record)

    @property
    def batch_seconds(self) -> float | None:
        """Seconds of one batch; None if none was measured yet."""
        if self._batches:
            return statistics.median(self._batches)
        if len(self._epochs) < _STABLE_EPOCHS:
            return None
        # epochs of a single batch
        return statistics.median(e.seconds - e.e_step_seconds for e in self._epochs[1:])

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the last epoch is done; None if no batch was measured yet."""
        batch, (epoch, n_done, n_batches) = self.batch_seconds, self._place
        if batch is None:
            return None
        later = self._n_epochs - epoch - 1
        e_steps = [e.e_step_seconds for e in self._epochs[1:]]
        e_step = statistics.fmean(e_steps) if e_steps else 0.0
        return batch * (n_batches - n_done) + later * (batch * n_batches + e_step)

    @property
    def is_stable(self) -> bool:
        """Whether enough was measured to tell a person."""
        enough = len(self._batches) >= _STABLE_BATCHES and sum(self._batches) >= _STABLE_SECONDS
        return enough or len(self._epochs) >= _STABLE_EPOCHS


#: Length of each unit in seconds, and its name.
_UNITS: Sequence[tuple[float, str]] = ((86400, "days"), (3600, "hours"), (60, "minutes"))


def duration(seconds: float) -> str:
    """A duration in words, with no more precision than an estimate has.

    Parameters
    ----------
    seconds : float
        Length of time.

    Examples
    --------
    >>> duration(50), duration(700), duration(5400), duration(250_000)
    ('50 seconds', '12 minutes', '1.5 hours', '2.9 days')
    """
    for length, name in _UNITS:
        if seconds >= 1.5 * length:
            n = seconds / length
            return f"{n:.0f} {name}" if n >= 10 or name == "minutes" else f"{n:.1f} {name}"
    n = max(1, round(seconds))
    return "1 second" if n == 1 else f"{n} seconds"
