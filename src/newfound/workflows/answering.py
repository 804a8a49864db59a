"""The number of novel categories after a person has judged pairs that the sampler drew.

The count without answers is kept beside the decisions. So an answer that is undone leaves no trace,
and none enters twice.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

from sklearn.base import clone

from newfound.mixture.counting.answers import Answer, AnswerCounter
from newfound.mixture.counting.count import CategoryCount
from newfound.result.build import result_from
from newfound.result.edits.decisions import Decisions
from newfound.result.edits.drawn import partition_of
from newfound.result.lineage import Partition, keep_ids
from newfound.result.result import Result
from newfound.workflows.fitting import reporting_passes
from newfound.workflows.job import Job
from newfound.workflows.merging import MergedItems, start_partition
from newfound.workflows.obeying import facts_like, obey


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
        With the partition as it was, if it has that number of categories already; else with one
        that was found from it, in which the edits must be obeyed once more.
    """
    if result.mixture is None or result.mixture.count_ is None:
        return result
    target = AnswerCounter(result.mixture.count_, partition_of(result)).count(answers)
    if round(target.n_novel) == result.n_novel:
        return with_count(result, target)
    start = MergedItems(result.collection, result.features, result.assigned.labels, True)
    mixture = clone(result.mixture).set_params(n_components=None, count=target)
    with reporting_passes(mixture, job), job.timed("fit"), job.collecting_warnings():
        mixture.refit(result.features, result.collection.y, start_partition(result, start))
    mixture.set_params(count=None)
    before = {
        item: result.names[code]
        for item, code in zip(result.collection.ids, result.assigned.labels, strict=True)
        if code >= result.n_known
    }
    known = [str(name) for name in mixture.classes_.tolist()]
    now = Partition(result.collection.ids, mixture.labels_, known)
    names = keep_ids(before, now, result.record.last_id)
    facts = facts_like(result, job, line, names)
    new = result_from(
        result.collection, result.features, mixture, facts, names=names, encoder=result.encoder
    )
    record = replace(new.record, label_accuracy=result.record.label_accuracy)
    return replace(new, record=record, folder=result.folder)


def obey_again(result: Result, decisions: Decisions, job: Job, line: str | None) -> Result:
    """Obey all edits in a result that was counted again; its count stays."""
    if not decisions.obeyed.effects or result.mixture is None:
        return result
    return with_count(obey(result, decisions, job, line), result.mixture.count_)
