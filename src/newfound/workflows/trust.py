"""`newfound trust`: how far to believe a run, measured and kept in its folder."""

from __future__ import annotations

import functools
from pathlib import Path

from newfound.errors import InputError
from newfound.files import write_json
from newfound.mixture.trust.report import Effort, trust_report
from newfound.mixture.trust.verdict import TrustReport
from newfound.progress import Progress, no_progress
from newfound.result.run_folder import TRUST, reopen_run
from newfound.result.store import read_result

#: Up to this many numbers (rows × columns), one process is faster: starting more takes longer.
_MIN_NUMBERS_FOR_PROCESSES = 500_000


def check_trust(
    run: Path | str, *, effort: Effort | None = None, progress: Progress | None = None
) -> TrustReport:
    """Measure how far a run can be believed, and write it to ``trust.json`` in its folder.

    Parameters
    ----------
    run : path
        The run folder. Its result stays as it is; a later `update` removes the file, because it
        is about another result then.
    effort : Effort, optional
        How much to measure.
    progress : callable, optional
        As for `discover`.

    Returns
    -------
    TrustReport
        One word, the reasons, and the numbers.

    Raises
    ------
    InputError
        If there is no finished run with a model.
    """
    run = Path(run)
    with reopen_run(run):
        result = read_result(run)
        if result.mixture is None:
            raise InputError(
                "The run folder has no model, so nothing can be checked. Restore its folder "
                "'model', or run newfound discover again."
            )
        report = trust_report(
            result.features,
            result.collection.y,
            mixture=result.mixture,
            calibration=result.record.calibration,
            effort=effort,
            n_jobs=-1 if result.features.size > _MIN_NUMBERS_FOR_PROCESSES else 1,
            random_state=result.record.seed or 0,
            progress=functools.partial(progress or no_progress, "Checking how far to trust it"),
        )
        write_json(run / TRUST, report.as_json())
    return report
