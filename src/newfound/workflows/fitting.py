"""The mixture on finished features, and the rehearsal that says how far to trust its K."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import dataclass

from joblib import effective_n_jobs

from newfound.arrays import Floats, Ints, LabelsLike
from newfound.data.collection import check_discoverable
from newfound.labels import encode_labels
from newfound.mixture.counting.calibration import ConfidenceMap, calibrate_confidence
from newfound.mixture.counting.draws import n_rows_of_draw
from newfound.mixture.counting.rehearsal import Rehearsal, rehearse
from newfound.mixture.estimator import SplitMergeMixture
from newfound.result.record import History, RehearsalRecord, Request, RunFacts, installed_versions
from newfound.workflows.encoding import EncodedItems
from newfound.workflows.job import Job
from newfound.workflows.source import check_number

#: Number of times that the rehearsal hides classes, in samples and in most of the rows.
N_DRAWS, N_DRAWS_OF_MOST_ROWS = 19, 9
#: Number of times that classes are hidden to check confidences.
N_CHECKS = 6
#: Seconds of a draw for each second of the fit, with as many rows; and to start processes.
_COST_OF_DRAW, _SECONDS_TO_START = 0.5, 2.0
#: With fewer known classes, too few are left when half of them are hidden.
MIN_CLASSES_TO_REHEARSE = 4
#: From this many rows on a rehearsal takes too long to be a default.
MAX_ROWS_TO_REHEARSE = 100_000
#: Up to this many numbers (rows × columns), one process is faster: starting more takes longer.
_MIN_NUMBERS_FOR_PROCESSES = 150_000


@dataclass(frozen=True)
class Fitted:
    """What was found.

    Attributes
    ----------
    mixture : SplitMergeMixture
        Fitted to all items.
    rehearsal : Rehearsal or None
        None if there was none.
    history : History or None
        Number of components over epochs, if a network was trained.
    calibration : ConfidenceMap or None
        How often a probability of the mixture is right; None if it was not learnt.
    """

    mixture: SplitMergeMixture
    rehearsal: Rehearsal | None
    history: History | None = None
    calibration: ConfidenceMap | None = None


def fit_mixture(items: EncodedItems, job: Job) -> SplitMergeMixture:
    """Fit the mixture to features."""
    collection = items.collection
    # Unreadable files are gone by now, and labels may have gone with them.
    check_discoverable(collection)
    check_number(collection, job.n_categories)
    mixture = SplitMergeMixture(
        n_components=job.n_categories, sizes=job.sizes, random_state=int(job.seed)
    )
    with reporting_passes(mixture, job), job.timed("fit"), job.collecting_warnings():
        mixture.fit(items.features, collection.y)
    return mixture


def can_check(mixture: SplitMergeMixture, X: Floats, job: Job) -> bool:
    """Whether `check_on_hidden_classes` has something to do."""
    is_possible = mixture.n_known_ >= MIN_CLASSES_TO_REHEARSE and len(X) < MAX_ROWS_TO_REHEARSE
    return job.rehearse and is_possible


def seconds_of_check(X: Floats, y: LabelsLike, job: Job) -> float:
    """Roughly how long `check_on_hidden_classes` will take, from the seconds of the fit."""
    codes = encode_labels(y, len(X)).codes
    share = n_rows_of_draw(codes) / len(X)
    n_draws = _n_draws(codes) + N_CHECKS
    n_processes = min(n_draws, effective_n_jobs(_n_processes(X)))
    start = _SECONDS_TO_START if n_processes > 1 else 0.0
    return start + n_draws * _COST_OF_DRAW * share * job.timings["fit"] / n_processes


def check_on_hidden_classes(
    mixture: SplitMergeMixture, X: Floats, y: LabelsLike, job: Job
) -> Fitted:
    """Hide known classes to learn how far to trust the number and the confidences."""
    return Fitted(
        mixture,
        run_rehearsal(mixture, X, y, job),
        calibration=run_calibration(mixture, X, y, job),
    )


def run_calibration(
    mixture: SplitMergeMixture, X: Floats, y: LabelsLike, job: Job
) -> ConfidenceMap | None:
    """Learn how often confidences are right, where a rehearsal is asked for and possible."""
    if not can_check(mixture, X, job):
        return None
    with job.timed("calibrate"), job.collecting_warnings():
        return calibrate_confidence(
            mixture,
            X,
            y,
            n_draws=N_CHECKS,
            n_jobs=_n_processes(X),
            random_state=int(job.seed),
            progress=functools.partial(job.progress, "Checking confidences"),
        )


def _n_draws(codes: Ints) -> int:
    """How often to hide classes: less often where a draw takes most rows, and so as long as a fit.

    The range of 19 draws holds a further one with a probability of 90 %, that of 9 with 80 %.
    """
    return N_DRAWS if 2 * n_rows_of_draw(codes) <= len(codes) else N_DRAWS_OF_MOST_ROWS


def _n_processes(X: Floats) -> int:
    return -1 if X.size > _MIN_NUMBERS_FOR_PROCESSES else 1


@contextlib.contextmanager
def reporting_passes(mixture: SplitMergeMixture, job: Job) -> Iterator[None]:
    """Report every pass of a mixture as progress."""
    n_passes = 0

    def report(done: object) -> None:
        nonlocal n_passes
        n_passes += 1
        job.progress("Finding categories", n_passes, 0)

    job.progress("Finding categories", 0, 0)
    mixture.set_params(callback=report)
    try:
        yield
    finally:
        mixture.set_params(callback=None)


def run_rehearsal(
    mixture: SplitMergeMixture, X: Floats, y: LabelsLike, job: Job
) -> Rehearsal | None:
    """Run the rehearsal if it was asked for and is possible; otherwise return None.

    It needs a count of the categories, enough known classes and not too many rows.
    """
    if not can_check(mixture, X, job) or mixture.count_ is None:
        return None
    n_draws = _n_draws(encode_labels(y, len(X)).codes)
    job.progress("Rehearsing", 0, n_draws)
    with job.timed("rehearse"), job.collecting_warnings():
        return rehearse(
            mixture,
            X,
            y,
            n_draws=n_draws,
            n_jobs=_n_processes(X),
            random_state=int(job.seed),
            progress=functools.partial(job.progress, "Rehearsing"),
        )


def facts_of(
    job: Job, fitted: Fitted, items: EncodedItems, request: Request, rerun: tuple[str, str | None]
) -> RunFacts:
    """What only the workflow knows about a run, for its record.

    Parameters
    ----------
    job, fitted, items, request
        The job, the fitted mixture, the items that it was fitted to, and what was asked for.
    rerun : tuple of str and (str or None)
        The command, and the command line that repeats it.
    """
    rehearsal = fitted.rehearsal
    command, line = rerun
    return RunFacts(
        command=command,
        rerun=line,
        settings=request,
        seed=int(job.seed),
        encoder=items.encoder["name"],
        rehearsal=None
        if rehearsal is None
        else RehearsalRecord(len(rehearsal.ratios), tuple(rehearsal.ratios.tolist())),
        history=fitted.history,
        calibration=fitted.calibration,
        timings={**job.timings, "total": round(sum(job.timings.values()), 3)},
        versions=installed_versions(),
        warnings=tuple(dict.fromkeys([*job.warnings, *_note_on_borders(fitted.mixture)])),
        content=job.content,
    )


def _note_on_borders(mixture: SplitMergeMixture) -> list[str]:
    """A note where expected sizes have moved the borders between categories."""
    if not mixture.offsets_.any():
        return []
    return ["The borders between categories take into account how large each is expected to be."]
