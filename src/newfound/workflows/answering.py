"""The number of novel categories after a person has judged pairs that the sampler drew.

The count without answers is kept beside the decisions. So an answer that is undone leaves no trace,
and none enters twice.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from newfound.mixture.counting.answers import Answer, AnswerCounter
from newfound.mixture.counting.count import CategoryCount
from newfound.result.edits.decisions import Decisions
from newfound.result.edits.drawn import partition_of
from newfound.result.result import Result
from newfound.workflows.job import Job
from newfound.workflows.obeying import obey, rearranged


def with_count(result: Result, count: CategoryCount | None) -> Result:
    """The same result with another count; None leaves it as it is."""
    if result.mixture is None or count is None:
        return result
    mixture = copy.copy(result.mixture)
    mixture.count_, mixture.n_novel_interval_ = count, count.interval
    record = replace(result.record, n_novel_interval=(float(count.interval[0]), count.interval[1]))
    return replace(result, mixture=mixture, record=record)


def recount(result: Result, answers: Sequence[Answer], job: Job, line: str | None) -> Result:
    """The result with the number of novel categories that the answers speak for.

    Parameters
    ----------
    result : Result
        In which all edits are obeyed, with the count without answers.
    answers : sequence of Answer
        From `newfound.result.edits.drawn.drawn_answers`; may be empty if all were undone.
    job, line
        As for `newfound.workflows.obeying.obey`.

    Returns
    -------
    Result
        With the partition as it was, if it has that number of categories already; else on the level
        with that number, or the nearest one that there is. The edits must be obeyed once more.

    Notes
    -----
    A mixture that is fitted again moves all borders. Where a person has confirmed categories, it
    would also take their labels for a random draw and expect half as many unlabelled items in the
    classes that are labelled in part.
    """
    if result.mixture is None or result.mixture.count_ is None:
        return result
    target = AnswerCounter(result.mixture.count_, partition_of(result)).count(answers)
    if round(target.n_novel) == result.n_novel:
        return with_count(result, target)
    levels = result.levels
    if levels is None:
        return with_count(result, target)
    wanted = result.n_known + round(target.n_novel)
    k = min(max(wanted, levels.tree.coarsest), levels.tree.finest)
    free = np.zeros(len(result), dtype=bool)
    level = rearranged(result, result.collection, levels.places_at(k), free, job, line)
    return with_count(level, target)


def obey_again(result: Result, decisions: Decisions, job: Job, line: str | None) -> Result:
    """Obey all edits in a result that was counted again; its count stays."""
    if not decisions.obeyed.effects or result.mixture is None:
        return result
    return with_count(obey(result, decisions, job, line), result.mixture.count_)
