"""From a fitted mixture to a result, and from a result to the categories of more items."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from newfound.arrays import Floats
from newfound.data.collection import Collection
from newfound.data.tables import Table
from newfound.errors import InputError
from newfound.mixture.counting.count import CategoryCount
from newfound.mixture.estimator import SplitMergeMixture
from newfound.mixture.label_accuracy import label_accuracy
from newfound.result.assign import (
    assign,
    calibrated,
    leave_one_out,
    outlier_scores,
    unsure_items,
    usual_distances,
)
from newfound.result.lineage import highest_number, novel_ids
from newfound.result.profiles import profile_categories
from newfound.result.record import History, NovelSizeRecord, RunFacts, RunRecord
from newfound.result.result import Result, item_table


def result_from(
    collection: Collection,
    features: Floats,
    mixture: SplitMergeMixture,
    run: RunFacts,
    *,
    names: Sequence[str] | None = None,
    encoder: dict[str, Any] | None = None,
) -> Result:
    """Derive the result from a fitted mixture.

    Parameters
    ----------
    collection : Collection
        The items; every one of them is assigned.
    features : ndarray of shape (n, d)
        What the mixture was fitted to.
    mixture : SplitMergeMixture
        Fitted to the features and to the collection's labels.
    run : RunFacts
        What only the workflow knows about the run.
    names : sequence of str, optional
        Names of the categories. By default the known classes, then ``new-001``, ``new-002`` ….
    encoder : dict, optional
        What made the features, to be stored with the model.

    Returns
    -------
    Result
        Every item with its category.

    Raises
    ------
    InputError
        If the numbers of items, features and rows of the mixture differ.
    """
    if not len(collection) == len(features) == len(mixture.labels_):
        raise InputError(
            f"The collection has {len(collection)} items, but there are {len(features)} rows of "
            f"features, and the mixture was fitted to {len(mixture.labels_)}."
        )
    names = _default_names(mixture) if names is None else names
    # Labelled items keep their class; the confidence in it is computed without using the label.
    is_labelled = collection.is_labelled
    assigned, V = assign(mixture, features, np.where(is_labelled, mixture.labels_, -1))
    assigned = calibrated(assigned, run.calibration)
    distance = leave_one_out(assigned, is_labelled, mixture.n_known_)
    return Result(
        collection=collection,
        features=features,
        mixture=mixture,
        names=tuple(names),
        assigned=assigned,
        outlier_scores=outlier_scores(distance, usual_distances(distance, is_labelled)),
        profiles=profile_categories(mixture, V, assigned, is_labelled),
        record=_make_record(run, collection, features, mixture, names),
        prototypes=mixture.prototypes_,
        V=V,
        encoder=encoder or {},
    )


def with_held_rows(result: Result, held: Mapping[int, int]) -> Result:
    """The same result with some unlabelled items in the category that a person wants.

    Parameters
    ----------
    result : Result
        With its model.
    held : mapping of int
        Row → code of its category.

    Returns
    -------
    Result
        Its prototypes are the same; sizes, exemplars and outlier scores are those of the new
        categories.
    """
    if not held:
        return result
    assert result.mixture is not None
    is_labelled, calibration = result.collection.is_labelled, result.record.calibration
    fixed = np.where(is_labelled, result.assigned.labels, -1)
    fixed[list(held)] = list(held.values())
    mixture = copy.copy(result.mixture)
    mixture.labels_ = np.where(fixed >= 0, fixed, mixture.labels_)
    assigned, V = assign(mixture, result.features, fixed)
    assigned = calibrated(assigned, calibration)
    distance = leave_one_out(assigned, is_labelled, mixture.n_known_)
    return replace(
        result,
        mixture=mixture,
        assigned=assigned,
        outlier_scores=outlier_scores(distance, usual_distances(distance, is_labelled)),
        profiles=profile_categories(mixture, V, assigned, is_labelled),
    )


def _default_names(mixture: SplitMergeMixture) -> list[str]:
    known = [str(name) for name in mixture.classes_.tolist()]
    return [*known, *novel_ids(mixture.n_novel_, known)]


def _make_record(
    run: RunFacts,
    collection: Collection,
    features: Floats,
    mixture: SplitMergeMixture,
    names: Sequence[str],
) -> RunRecord:
    """The facts of the workflow, with everything that can be derived."""
    count = mixture.count_
    passes = tuple(done.n_components for done in mixture.history_)
    return RunRecord(
        kind=collection.kind,
        n_items=len(collection),
        n_labelled=int(collection.is_labelled.sum()),
        n_known=mixture.n_known_,
        n_novel=mixture.n_novel_,
        command=run.command,
        rerun=run.rerun,
        source=None if collection.root is None else str(collection.root),
        encoder=run.encoder,
        settings=run.settings,
        seed=run.seed,
        n_skipped=len(collection.skipped),
        n_novel_interval=None if count is None else _as_floats(count.interval),
        label_rate=None if count is None else _number_or_none(count.label_rate),
        novel_share=None if count is None else _number_or_none(count.novel_share),
        novel_size=None if count is None else _novel_size(count),
        label_accuracy=label_accuracy(mixture.projection_, features, collection.y),
        rehearsal=run.rehearsal,
        history=History("pass", passes) if run.history is None else run.history,
        timings=run.timings,
        versions=run.versions,
        warnings=run.warnings,
        # Ids of novel categories are never used twice, also if a category is gone.
        last_id=max(highest_number(names[mixture.n_known_ :]), run.last_id),
        calibration=run.calibration,
        content=run.content,
    )


def _number_or_none(value: float) -> float | None:
    """A plain number; None for NaN: a value that was not estimated because K was given."""
    return None if math.isnan(value) else float(value)


def _novel_size(count: CategoryCount) -> NovelSizeRecord | None:
    """How large novel categories are; None for a count that does not say it."""
    is_compared = count.sizes_from == "prior" or not math.isnan(count.known_size)
    if math.isnan(count.novel_size) or not is_compared:
        return None
    return NovelSizeRecord(
        float(count.novel_size),
        _as_floats(count.novel_size_interval),
        _number_or_none(count.known_size),
        count.sizes_from,
    )


def _as_floats(interval: tuple[float, float]) -> tuple[float, float]:
    """Convert NumPy numbers to plain floats, which JSON can hold."""
    low, high = interval
    return float(low), float(high)


def predict_table(
    result: Result,
    collection: Collection,
    features: Floats,
    *,
    min_confidence: float | None = None,
) -> Table:
    """Assign more items to the categories of a result, which stay as they are.

    Parameters
    ----------
    result : Result
        With its model.
    collection : Collection
        More items. Their labels, if any, are shown beside the category and not used.
    features : ndarray of shape (n, d)
        Features of these items, from the same encoder.
    min_confidence : float, optional
        The lowest confidence that is sure enough. By default that of the run.

    Returns
    -------
    DataFrame
        The columns of `Result.table`.

    Raises
    ------
    InputError
        If the result has no model, or was made with another number of features.
    """
    mixture = result.mixture
    if mixture is None:
        raise InputError(
            "The run folder has no model, so nothing can be predicted from it. Restore its folder "
            "'model', or run newfound discover again."
        )
    if features.shape[1] != result.features.shape[1]:
        raise InputError(
            f"The items have {features.shape[1]} features, but the run was made with "
            f"{result.features.shape[1]}. Give features from the same encoder."
        )
    assigned = calibrated(assign(mixture, features)[0], result.record.calibration)
    # New items did not contribute to the prototypes, so the distances that they are compared with
    # are leave-one-out distances.
    is_labelled = result.collection.is_labelled
    distance = leave_one_out(result.assigned, is_labelled, result.n_known)
    scores = outlier_scores(assigned.distance, usual_distances(distance, is_labelled))
    if min_confidence is None:
        min_confidence = result.record.settings.min_confidence
    is_unsure = unsure_items(assigned.confidence, collection.is_labelled, min_confidence)
    return item_table(collection, assigned, scores, result.names, result.n_known, is_unsure)
