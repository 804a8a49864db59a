"""The result: which category each item is in, how sure that is, and what the categories are.

`Result` is what `newfound.discover` returns and what a run folder holds: one row for each item, one
row for each category, and what was run. It is derived from a fitted mixture alone, with no draw
and no further choice, and it is read back without running anything that is in a file.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from newfound._version import __version__
from newfound.arrays import Bools, Doubles, Floats, Ints
from newfound.data.collection import Collection, Skipped
from newfound.data.tables import (
    Table,
    as_objects,
    damaged,
    make_table,
    read_parquet,
    unescape_formula,
    write_csv,
    write_parquet,
)
from newfound.errors import InputError, require
from newfound.files import read_json, whole_file, write_json
from newfound.mixture.acceptance import Proposals
from newfound.mixture.estimator import SplitMergeMixture
from newfound.mixture.rows import row_blocks, row_keys, squared_distances
from newfound.mixture.split_merge import SMALLEST_HALF, Components, Rules, split_merge_pass
from newfound.result.lineage import highest_number, novel_ids
from newfound.result.model_file import load_mixture, save_mixture
from newfound.result.run_folder import RUN, check_run, staged

#: Items named for each category, nearest to the prototype or least sure.
N_EXAMPLES = 6
#: Fewer labelled rows than this say too little of how far from its prototype a row may lie.
ENOUGH_LABELS = 20
#: Ids in one cell stand between these.
SEPARATOR = "; "
#: Hidden classes that come back as this many components each, or as the inverse, are found well.
WELL_FOUND = 1.25


@dataclass(frozen=True, eq=False)
class Result:
    """What was found in a collection.

    Attributes
    ----------
    table : DataFrame
        One row for each item, in the order of the collection, with the columns

        - ``id``, and ``path``, None where an item is no file;
        - ``given_label``: as text, None where there is none;
        - ``category``: its name, which is the given label where there is one;
        - ``kind``: "known" or "novel";
        - ``confidence``: probability of the category. Of a labelled item it is what the item
          itself says for its class: low values are labels to look at again;
        - ``runner_up``: the most probable other category, None if there is no other;
        - ``outlier_score``: share of the labelled items that are nearer to their prototype, see
          `outlier_scores`; 1 is far from everything.
    categories : DataFrame
        One row for each category, in the order of `prototypes`, with the columns ``category``,
        ``kind``, ``size``, ``n_labelled``, ``stability`` (how far the starts agree, NaN for a
        single one), ``mean_confidence``, ``nearest`` (None if there is no other), ``exemplars``
        (ids nearest to the prototype) and ``borderline`` (unlabelled ones that are least sure;
        both see `rows_of`), ``why_not_split``, ``why_not_merged``.
    run : dict
        What was run and what it says, in plain values: ``version``, ``command``, ``settings``,
        ``seed``, ``encoder``, ``kind`` (pictures, features or texts), ``n_items``,
        ``n_labelled``, ``n_known``, ``n_novel``, ``n_novel_interval`` ([low, high] or None),
        ``label_rate`` and ``novel_share`` (None without a count), ``rehearsal`` (None, or
        {"n_draws": int, "ratios": list}), ``history`` ({"unit": "pass" or "epoch",
        "n_components": list}), ``timings`` (seconds by step), ``versions``, ``source``,
        ``n_skipped``, ``warnings`` (texts), ``last_id`` (highest number of an id so far),
        ``sentence``, ``trust``.
    features : ndarray of shape (n, d)
        What was clustered; d is 0 if it was read from a folder without a model.
    prototypes : ndarray of shape (K, q)
        Of the categories, in the mixture's space.
    V : ndarray of shape (n, q), float32
        The items in that space.
    collection : Collection
        The items. Read back from a folder, its labels are texts.
    mixture : SplitMergeMixture or None
        Fitted; None if it was read from a folder without a model.
    encoder : dict
        Where the features came from, as it is kept with the model.
    """

    table: Table
    categories: Table
    run: dict[str, Any]
    features: Floats
    prototypes: Floats
    V: npt.NDArray[np.float32]
    collection: Collection
    mixture: SplitMergeMixture | None
    encoder: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.table)

    @property
    def n_known(self) -> int:
        """K^l, categories that have labels."""
        return int((self.categories["kind"] == "known").sum())

    @property
    def n_novel(self) -> int:
        """K^n, categories that have none."""
        return int((self.categories["kind"] == "novel").sum())

    def rows_of(self, ids: str) -> list[int]:
        """Rows of the ids in a cell of `categories`, also where an id holds the separator."""
        places = {name: row for row, name in enumerate(self.collection.ids)}
        rows: list[int] = []
        name = ""
        for part in ids.split(SEPARATOR) if ids else []:
            name = f"{name}{SEPARATOR}{part}" if name else part
            if name in places:
                rows.append(places[name])
                name = ""
        return rows

    def __repr__(self) -> str:
        return f"<Result: {self.run['sentence']}>"

    def _repr_html_(self) -> str:
        shown = ["category", "kind", "size", "n_labelled", "mean_confidence", "nearest"]
        table = self.categories[shown].to_html(
            index=False, max_rows=40, na_rep="", float_format="%.2f", border=0
        )
        texts = (self.run["sentence"], self.run["trust"], *self.run["warnings"])
        lines = [f"<p>{html.escape(text)}</p>" for text in texts if text]
        return "\n".join(["<div>", *lines, table, "</div>"])


# --------------------------------------------------------------------------- from the mixture


class Assigned(NamedTuple):
    """Where rows belong.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        Category of each row.
    confidence : ndarray of shape (n,)
        Its probability.
    runner_up : ndarray of shape (n,)
        The most probable other category, -1 if there is no other.
    distance : ndarray of shape (n,)
        From the prototype of the category, in the mixture's space.
    """

    labels: Ints
    confidence: Doubles
    runner_up: Ints
    distance: Doubles


def result_from(
    collection: Collection,
    features: Floats,
    mixture: SplitMergeMixture,
    *,
    run: dict[str, Any],
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
    run : dict
        What was run. What can be derived is added: numbers, the sentence, what to trust.
    names : sequence of str, optional
        Of the categories. By default the known classes, then ``new-001`` and on.
    encoder : dict, optional
        Where the features came from, to be kept with the model.

    Returns
    -------
    Result
        Tables and what stands behind them.
    """
    if not len(collection) == len(features) == len(mixture.labels_):
        raise InputError(
            f"The collection has {len(collection)} items, but there are {len(features)} rows of "
            f"features, and the mixture was fitted to {len(mixture.labels_)}."
        )
    names = _default_names(mixture) if names is None else list(names)
    is_labelled = collection.is_labelled
    assigned = assign(mixture, features, np.where(is_labelled, mixture.labels_, -1))
    apart = _without_own_part(assigned, is_labelled, mixture.n_known_)
    scores = outlier_scores(apart, _reference(apart, is_labelled))
    table = item_table(collection, assigned, scores, names, mixture.n_known_)
    V = _project(mixture, features)
    categories = _describe_categories(table, assigned, names, mixture)
    weighed = _weigh_moves(mixture, V, assigned.labels, features)
    return Result(
        table=table,
        categories=_with_evidence(categories, weighed),
        run=_complete(run, collection, mixture, names),
        features=features,
        prototypes=mixture.prototypes_,
        V=V,
        collection=collection,
        mixture=mixture,
        encoder=encoder or {},
    )


def assign(mixture: SplitMergeMixture, features: Floats, fixed: Ints | None = None) -> Assigned:
    """Put rows into the most probable category, a block at a time.

    Parameters
    ----------
    mixture : SplitMergeMixture
        Fitted.
    features : ndarray of shape (n, d)
        The rows.
    fixed : ndarray of shape (n,), optional
        Category of the rows that have theirs already, -1 for the others.

    Returns
    -------
    Assigned
        Categories, with probabilities and distances that belong to them.
    """
    fixed = np.full(len(features), -1) if fixed is None else fixed
    prototypes = mixture.prototypes_
    labels, runner_up = np.empty(len(features), np.int64), np.empty(len(features), np.int64)
    confidence, distance = np.empty(len(features)), np.empty(len(features))
    for block in row_blocks(len(features), max(features.shape[1], len(prototypes))):
        rows = np.arange(block.stop - block.start)
        probabilities = mixture.predict_proba(features[block])
        best = np.where(fixed[block] >= 0, fixed[block], probabilities.argmax(axis=1))
        apart = _project(mixture, features[block]) - prototypes[best]
        labels[block], confidence[block] = best, probabilities[rows, best]
        distance[block] = np.sqrt(np.square(apart).sum(axis=1))
        probabilities[rows, best] = -1
        runner_up[block] = probabilities.argmax(axis=1) if len(prototypes) > 1 else -1
    return Assigned(labels, confidence.clip(0, 1), runner_up, distance)


def outlier_scores(distance: Doubles, reference: Doubles) -> Doubles:
    """How far out rows lie: the share of reference distances that are smaller.

    Parameters
    ----------
    distance : ndarray of shape (n,)
        Of rows from the prototype of their category.
    reference : ndarray of shape (m,)
        What is usual, sorted: distances of labelled rows from the prototype of their class as it
        would be without them. With fewer than 20 of these, distances of all rows.

    Returns
    -------
    ndarray of shape (n,)
        From 0 to 1, which is beyond all of the reference.
    """
    scores: Doubles = np.searchsorted(reference, distance, side="left") / max(1, len(reference))
    return scores


def usual_distances(result: Result) -> Doubles:
    """The reference of `outlier_scores` for rows that are new to a result with a model."""
    mixture = _need_model(result)
    is_labelled = result.collection.is_labelled
    assigned = assign(mixture, result.features, np.where(is_labelled, mixture.labels_, -1))
    return _reference(_without_own_part(assigned, is_labelled, mixture.n_known_), is_labelled)


def predict_table(result: Result, collection: Collection, features: Floats) -> Table:
    """Put more items into the categories of a result, which stay as they are.

    Parameters
    ----------
    result : Result
        With its model.
    collection : Collection
        More items. Their labels, if any, are shown beside the category, and not used.
    features : ndarray of shape (n, d)
        From the same encoder.

    Returns
    -------
    DataFrame
        The columns of `Result.table`.
    """
    mixture = _need_model(result)
    if features.shape[1] != result.features.shape[1]:
        raise InputError(
            f"The items have {features.shape[1]} features, but the run was made with "
            f"{result.features.shape[1]}. Give features from the same encoder."
        )
    assigned = assign(mixture, features)
    scores = outlier_scores(assigned.distance, usual_distances(result))
    return item_table(
        collection, assigned, scores, result.categories["category"].tolist(), mixture.n_known_
    )


def _need_model(result: Result) -> SplitMergeMixture:
    if result.mixture is None:
        raise InputError(
            "The run folder has no model, so that nothing can be predicted from it. Restore its "
            "folder 'model', or run newfound discover again."
        )
    return result.mixture


def _default_names(mixture: SplitMergeMixture) -> list[str]:
    known = [str(name) for name in mixture.classes_.tolist()]
    return [*known, *novel_ids(mixture.n_novel_, known)]


def _project(mixture: SplitMergeMixture, features: Floats) -> npt.NDArray[np.float32]:
    return mixture.projection_.transform(features).astype(np.float32, copy=False)


def _without_own_part(assigned: Assigned, is_labelled: Bools, n_known: int) -> Doubles:
    """Distances as they would be if a row had no part in the mean that is its prototype.

    Of n rows, one that lies d from their mean lies d n / (n - 1) from the mean of the others
    (nearly so from a mean that is weighted by the shares of the rows, where sizes are expected). A
    row that makes up a novel category alone is infinitely far from the others; one that is the
    only label of its class has nothing to be compared with and keeps its 0.
    """
    takes_part = is_labelled | (assigned.labels >= n_known)
    n = np.bincount(assigned.labels, takes_part)[assigned.labels]
    factor = np.where(takes_part & (n > 1), n / np.maximum(n - 1, 1), 1)
    alone = takes_part & ~is_labelled & (n == 1)
    return np.where(alone, np.inf, factor * assigned.distance)


def _reference(apart: Doubles, is_labelled: Bools) -> Doubles:
    """What is usual: distances of labelled rows, or of all, if there are few."""
    labelled = apart[is_labelled & (apart > 0)]
    return np.sort(labelled if len(labelled) >= ENOUGH_LABELS else apart)


# -------------------------------------------------------------------------------------- tables


def item_table(
    collection: Collection, assigned: Assigned, scores: Doubles, names: Sequence[str], n_known: int
) -> Table:
    """The table of items: one row each, with the columns of `Result.table`."""
    name_of = np.array([*names, None], dtype=object)  # -1 is None
    columns = {
        "id": as_objects(collection.ids),
        "path": as_objects(
            [None] * len(collection)
            if collection.paths is None
            else [str(path) for path in collection.paths]
        ),
        "given_label": as_objects([None if y is None else str(y) for y in collection.y]),
        "category": name_of[assigned.labels],
        "kind": np.where(assigned.labels < n_known, "known", "novel").astype(object),
        "confidence": assigned.confidence,
        "runner_up": name_of[assigned.runner_up],
        "outlier_score": scores,
    }
    return make_table(columns)


def _describe_categories(
    table: Table, assigned: Assigned, names: Sequence[str], mixture: SplitMergeMixture
) -> Table:
    """The table of categories, without the evidence."""
    n = len(names)
    is_labelled = table["given_label"].notna().to_numpy()
    ids = table["id"].to_numpy()
    sizes = np.bincount(assigned.labels, minlength=n)
    sums = np.bincount(assigned.labels, assigned.confidence, minlength=n)
    free = np.flatnonzero(~is_labelled)
    columns = {
        "category": as_objects(names),
        "kind": as_objects(["known" if i < mixture.n_known_ else "novel" for i in range(n)]),
        "size": sizes,
        "n_labelled": np.bincount(assigned.labels[is_labelled], minlength=n),
        "stability": np.asarray(mixture.stability_, dtype=np.float64),
        "mean_confidence": np.where(sizes > 0, sums / np.maximum(sizes, 1), np.nan),
        "nearest": as_objects([None if i < 0 else names[i] for i in _nearest(mixture.prototypes_)]),
        "exemplars": _first_ids(ids, assigned.labels, assigned.distance, n),
        "borderline": _first_ids(ids[free], assigned.labels[free], assigned.confidence[free], n),
    }
    return make_table(columns)


def _nearest(prototypes: Floats) -> list[int]:
    """The prototype nearest to each, -1 for a single one."""
    if len(prototypes) < 2:
        return [-1] * len(prototypes)
    distances = squared_distances(prototypes, prototypes)
    np.fill_diagonal(distances, np.inf)
    return [int(i) for i in distances.argmin(axis=1)]


def _first_ids(ids: npt.NDArray[Any], labels: Ints, values: Doubles, n: int) -> npt.NDArray[Any]:
    """Ids of the rows of each category that have the smallest values, in one text."""
    order = np.lexsort((values, labels))
    starts = np.searchsorted(labels[order], np.arange(n + 1))
    return as_objects(
        [
            SEPARATOR.join(ids[order[start : min(start + N_EXAMPLES, end)]])
            for start, end in itertools.pairwise(starts)
        ]
    )


# ------------------------------------------------------------------------------------ evidence


class _Weighed(NamedTuple):
    """What each move that could still be made would bring; keys are categories."""

    splits: dict[int, tuple[float, float]]  # gap between the halves, log H
    merges: dict[int, tuple[float, float, int]]  # smallest gap to another, log H, the other


class _Refusal:
    """Hears all proposals and accepts none."""

    def __call__(self, splits: Proposals, merges: Proposals, n_novel: int) -> tuple[Bools, Bools]:
        del n_novel
        self.splits, self.merges = splits, merges
        return np.zeros(len(splits.parents), bool), np.zeros(len(merges.parents), bool)


def _weigh_moves(mixture: SplitMergeMixture, V: Floats, labels: Ints, features: Floats) -> _Weighed:
    """Propose one more pass of moves over the finished partition.

    The ledger of the last pass speaks of components before the starts voted and the rows
    settled; this speaks of the categories that are shown.
    """
    refusal = _Refusal()
    rules = Rules(mixture.prior_, refusal, mixture.count_term)
    components = Components.of(V, labels, mixture.n_known_, rules, row_keys(features))
    split_merge_pass(V, components, rules, seed=0)
    splits, merges = refusal.splits, refusal.merges
    weighed = _Weighed({}, {})
    for (i,), gap, log_ratio in zip(splits.parents, splits.gaps, splits.log_ratios, strict=True):
        weighed.splits[int(i)] = (float(gap), float(log_ratio))
    for place in np.argsort(-merges.gaps, kind="stable"):  # the smallest stays
        i, j = (int(parent) for parent in merges.parents[place])
        gap, log_ratio = float(merges.gaps[place]), float(merges.log_ratios[place])
        weighed.merges[i], weighed.merges[j] = (gap, log_ratio, j), (gap, log_ratio, i)
    return weighed


def _with_evidence(categories: Table, weighed: _Weighed) -> Table:
    """The table of categories, with the reasons why each is neither split nor merged."""
    columns = {name: categories[name].to_numpy() for name in categories}
    for name, reason in (("why_not_split", _why_not_split), ("why_not_merged", _why_not_merged)):
        columns[name] = as_objects([reason(i, categories, weighed) for i in range(len(categories))])
    return make_table(columns)


def _why_not_split(i: int, categories: Table, weighed: _Weighed) -> str:
    if categories["kind"][i] == "known":
        return "Its labels say that it is one category."
    if i not in weighed.splits:
        return f"It is too small: a half would have {SMALLEST_HALF} items or fewer."
    gap, log_ratio = weighed.splits[i]
    closest = min((other for other, _, _ in weighed.merges.values()), default=np.inf)
    if gap <= closest:
        words = f"Its halves differ less ({gap:.3g}) than any two categories do ({closest:.3g})"
    else:
        words = (
            f"Its halves differ by {gap:.3g}, more than the two closest categories do "
            f"({closest:.3g}), but that would be one category too many"
        )
    return f"{words}; log H = {log_ratio:+.0f}."


def _why_not_merged(i: int, categories: Table, weighed: _Weighed) -> str:
    if len(categories) == 1:
        return "There is no other category."
    if i not in weighed.merges:
        nearest = categories["nearest"][i]
        what = "has other labels" if categories["kind"][i] == "known" else "is too far away"
        return f"The nearest category, {nearest}, {what}."
    gap, log_ratio, other = weighed.merges[i]
    widest = max((split for split, _ in weighed.splits.values()), default=0.0)
    words = f"It differs from {categories['category'][other]} by {gap:.3g}, "
    if gap >= widest:
        words += f"more than the halves of any category do ({widest:.3g})"
    else:
        words += f"less than the halves of some category do ({widest:.3g}): look at both"
    return f"{words}; log H = {log_ratio:+.0f}."


# ------------------------------------------------------------------------- what the run says


def _complete(
    run: dict[str, Any], collection: Collection, mixture: SplitMergeMixture, names: Sequence[str]
) -> dict[str, Any]:
    """What was run, with all that can be derived."""
    count = mixture.count_
    basis: dict[str, Any] = {
        **{"version": __version__, "command": "discover", "settings": {}, "seed": None},
        **{"encoder": None, "rehearsal": None, "timings": {}, "versions": {}, "warnings": []},
        "history": {"unit": "pass", "n_components": [p.n_components for p in mixture.history_]},
    }
    derived = {
        "kind": collection.kind,
        "n_items": len(collection),
        "n_labelled": int(collection.is_labelled.sum()),
        "n_known": mixture.n_known_,
        "n_novel": mixture.n_novel_,
        "n_novel_interval": None if count is None else [float(end) for end in count.interval],
        "label_rate": None if count is None else float(count.label_rate),
        "novel_share": None if count is None else float(count.novel_share),
        "source": None if collection.root is None else str(collection.root),
        "n_skipped": len(collection.skipped),
        "last_id": max(highest_number(names[mixture.n_known_ :]), run.get("last_id", 0)),
    }
    whole = {**basis, **run, **derived}
    is_given = whole["settings"].get("n_categories", mixture.n_components) is not None
    return {**whole, "sentence": _sentence(whole, is_given), "trust": _trust(whole, is_given)}


_THINGS = {"pictures": "pictures", "features": "items", "texts": "texts"}


def _sentence(run: dict[str, Any], is_given: bool) -> str:
    """The answer."""
    known, novel = _categories(run["n_known"], "known"), _categories(run["n_novel"], "new")
    where = f"in {run['n_items']:,} {_THINGS[run['kind']]}"
    if is_given:
        n = run["n_known"] + run["n_novel"]
        return f"{_categories(n, '')} {where}, as asked for: {known} and {novel}.".strip()
    if run["n_novel"] == 0:
        return f"No new category was found beside {known} {where}."
    return f"{novel} {'was' if run['n_novel'] == 1 else 'were'} found beside {known} {where}."


def _categories(n: int, what: str) -> str:
    return " ".join([f"{n}", *([what] if what else []), "category" if n == 1 else "categories"])


def _trust(run: dict[str, Any], is_given: bool) -> str:
    """What the interval and the rehearsal say of the number of new categories."""
    if is_given:
        return "The number of categories was given, so nothing here says whether it is right."
    interval, rehearsal = run["n_novel_interval"], run["rehearsal"]
    if interval is None and run["n_known"] < 2:
        return "Too little is labelled to say how far the number of categories can be trusted."
    if interval is None:
        return "The paper's own rule found the number; it does not say how far to trust it."
    low, high = (round(end) for end in interval)
    between = f"{low}" if low == high else f"{low} to {high}"
    words = f"Going by how known categories look, there are {between} new ones, 9 times in 10"
    if rehearsal is None:
        return f"{words}; this was not rehearsed with hidden categories."
    return f"{words}; {_rehearsed(rehearsal, run['n_novel'])}."


def _rehearsed(rehearsal: dict[str, Any], n_novel: int) -> str:
    """What the rehearsal says of the number of new categories."""
    ratios = rehearsal["ratios"]
    middle = float(np.median(ratios))
    words = (
        f"known categories that were hidden for a rehearsal came back as {middle:.1f} each "
        f"({min(ratios):.1f} to {max(ratios):.1f} in {rehearsal['n_draws']} draws)"
    )
    if middle > WELL_FOUND:
        return f"{words}, so that there may be fewer: about {n_novel / middle:.0f}"
    if middle < 1 / WELL_FOUND:
        more = f": about {n_novel / middle:.0f}" if middle > 0.1 else ""
        return f"{words}, so that there may be more{more}"
    return f"{words}, which is as it should be"


# ---------------------------------------------------------------------------- to and from files


def write_result(result: Result, folder: Path, **more: Any) -> None:
    """Write a result to a run folder, all of it or nothing.

    ``assignments.csv`` and ``.parquet``, ``categories.csv`` and ``.parquet``, ``skipped.csv``,
    ``run.json`` and ``model/``; for texts also ``texts.parquet``. In the CSV files a text that a
    spreadsheet would run as a formula has an apostrophe before it.

    Parameters
    ----------
    result : Result
        What to write.
    folder : Path
        The run folder, made if need be. What was there of these files is replaced.
    **more
        Further JSON files, such as ``changes``: name without ending → plain values.
    """
    pandas = require("pandas", "report")
    require("pyarrow", "report")
    collection = result.collection
    with staged(Path(folder)) as stage:
        if result.mixture is not None:
            save_mixture(result.mixture, stage / "model", encoder=result.encoder)
            with whole_file(stage / "model" / "features.npy") as file:
                np.save(file, result.features, allow_pickle=False)
        if collection.texts is not None:
            texts = {"id": as_objects(collection.ids), "text": as_objects(collection.texts)}
            write_parquet(make_table(texts), stage / "texts.parquet")
        for name, table in (("assignments", result.table), ("categories", result.categories)):
            write_parquet(table, stage / f"{name}.parquet")
            write_csv(table, stage / f"{name}.csv")
        skipped = [(item.path, item.reason) for item in collection.skipped]
        write_csv(pandas.DataFrame(skipped, columns=["path", "reason"]), stage / "skipped.csv")
        for name, content in more.items():
            write_json(stage / f"{name}.json", content)
        write_json(stage / RUN, result.run)


def read_result(folder: Path) -> Result:
    """Read what `write_result` wrote; nothing is unpickled.

    Parameters
    ----------
    folder : Path
        The run folder.

    Returns
    -------
    Result
        As it was written, but that the collection's labels are texts. Without the folder
        ``model`` it has no mixture, and features and prototypes without columns.

    Raises
    ------
    InputError
        If the folder holds no finished run, one of another version, or a damaged one.
    """
    folder = Path(folder)
    check_run(folder)
    run = read_json(folder / RUN)
    table = read_parquet(folder / "assignments.parquet")
    categories = read_parquet(folder / "categories.parquet")
    mixture: SplitMergeMixture | None = None
    encoder: dict[str, Any] = {}
    features: Floats = np.zeros((len(table), 0), dtype=np.float32)
    if (folder / "model").is_dir():
        mixture, encoder = load_mixture(folder / "model")
        features = _read_features(folder / "model" / "features.npy", len(table))
    no_columns = np.zeros((len(categories), 0))
    return Result(
        table=table,
        categories=categories,
        run=run,
        features=features,
        prototypes=no_columns if mixture is None else mixture.prototypes_,
        V=features.astype(np.float32) if mixture is None else _project(mixture, features),
        collection=_read_items(folder, run, table, features),
        mixture=mixture,
        encoder=encoder,
    )


def _read_items(folder: Path, run: dict[str, Any], table: Table, features: Floats) -> Collection:
    """The collection, from the tables."""
    kind = run["kind"]
    texts = read_parquet(folder / "texts.parquet")["text"].tolist() if kind == "texts" else None
    paths = [Path(path) for path in table["path"]] if kind == "pictures" else None
    return Collection(
        ids=table["id"].tolist(),
        y=table["given_label"].to_numpy(dtype=object),
        paths=paths,
        features=features if kind == "features" else None,
        texts=texts,
        skipped=_read_skipped(folder / "skipped.csv"),
        root=None if run["source"] is None else Path(run["source"]),
    )


def _read_features(path: Path, n_rows: int) -> Floats:
    try:
        features: Floats = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise damaged(path, error) from error
    if features.ndim != 2 or len(features) != n_rows:
        raise damaged(path, f"it holds {len(features)} rows for {n_rows} items")
    return features


def _read_skipped(path: Path) -> list[Skipped]:
    pandas = require("pandas", "report")
    try:
        table = pandas.read_csv(path, dtype=str, na_filter=False)
        rows = list(zip(table["path"], table["reason"], strict=True))
    except (OSError, ValueError, KeyError) as error:
        raise damaged(path, error) from error
    return [Skipped(unescape_formula(name), unescape_formula(reason)) for name, reason in rows]
