"""The result of a run: which category each item is in, and what the categories are.

A `Result` is what `newfound.discover` returns and what a run folder holds. It keeps codes and row
numbers; names and sentences are joined to them when a table is made or a page is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from newfound.arrays import Bools, Doubles, Floats, Ints
from newfound.data.collection import Collection
from newfound.data.tables import Table, as_objects, make_table
from newfound.errors import InputError
from newfound.mixture.estimator import SplitMergeMixture
from newfound.result.assign import Assigned, Singles, unsure_items
from newfound.result.edits.verbs import Editable
from newfound.result.levels import Level, Levels, level_of
from newfound.result.notebook import show_result
from newfound.result.profiles import CategoryProfiles
from newfound.result.record import RunRecord
from newfound.result.sentences import (
    answer_sentence,
    trust_sentence,
    unsure_sentence,
    why_not_merged,
    why_not_split,
)

#: Stands between the ids in one cell of a table.
SEPARATOR = "; "


@dataclass(frozen=True, eq=False)
class Result(Editable):
    """What was found in a collection.

    A category is identified by its code, which is its position in `names`: known classes come
    first, then novel categories. An item is identified by its row in the collection.

    Attributes
    ----------
    collection : Collection
        The items. Read from a run folder, its labels are texts.
    features : ndarray of shape (n, d)
        What was clustered; d is 0 if it was read from a run folder without a model.
    mixture : SplitMergeMixture or None
        Fitted; None if it was read from a run folder without a model.
    names : tuple of str
        Names of the categories.
    assigned : Assigned
        For each item the code of its category, the confidence, the runner-up, the distance.
    outlier_scores : ndarray of shape (n,)
        For each item, the share of the labelled items that lie nearer to their prototype.
    profiles : CategoryProfiles
        For each category its size, its nearest category, exemplars and more.
    record : RunRecord
        What was asked, what was found, how long it took, and how to repeat it.
    prototypes : ndarray of shape (K, q)
        Prototypes of the categories, in the mixture's space.
    V : ndarray of shape (n, q), float32
        The items in the mixture's space.
    encoder : dict
        What made the features, as it is stored with the model.
    folder : Path or None
        The run folder; None if the result is in none.
    stored_levels : Levels or None
        The tree as it was read from the run folder. `levels` is what to use.
    """

    collection: Collection
    features: Floats
    mixture: SplitMergeMixture | None
    names: tuple[str, ...]
    assigned: Assigned
    outlier_scores: Doubles
    profiles: CategoryProfiles
    record: RunRecord
    prototypes: Floats
    V: Singles
    encoder: dict[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    stored_levels: Levels | None = None

    def __len__(self) -> int:
        return len(self.collection)

    @property
    def n_known(self) -> int:
        """K^l, number of categories that have labels."""
        return self.record.n_known

    @property
    def n_novel(self) -> int:
        """K^n, number of categories without labels."""
        return self.record.n_novel

    @property
    def kinds(self) -> list[str]:
        """For each category, "known" or "novel"."""
        return ["known" if code < self.n_known else "novel" for code in range(len(self.names))]

    @property
    def answer(self) -> str:
        """How many categories there are; a second sentence warns of bad features."""
        return answer_sentence(self.record)

    @property
    def trust(self) -> str:
        """How far that number can be trusted, in a few sentences."""
        return trust_sentence(self.record)

    @cached_property
    def is_unsure(self) -> Bools | None:
        """For each item whether it has no label and a confidence below `min_confidence`.

        None if the run was made without `min_confidence`.
        """
        share = self.record.settings.min_confidence
        return unsure_items(self.assigned.confidence, self.collection.is_labelled, share)

    @property
    def unsure(self) -> str | None:
        """How many items that are, in one sentence; None without `min_confidence`."""
        marks = self.is_unsure
        return unsure_sentence(0 if marks is None else int(marks.sum()), self.record)

    @cached_property
    def table(self) -> Table:
        """One row for each item, in the order of the collection, as a DataFrame.

        The columns are

        - ``id``;
        - ``path``: None unless the items are picture files;
        - ``text``: only where the items are texts;
        - ``given_label``: as text, None for an unlabelled item;
        - ``category``: name of the category, which is the given label if there is one;
        - ``kind``: "known" or "novel";
        - ``confidence``: probability of the category. For a labelled item it is the probability
          of its class if the label were not known: look again at labels with low values;
        - ``runner_up``: the most probable other category, None if there is no other;
        - ``outlier_score``: share of the labelled items that are nearer to their prototype; 1 is
          far from everything;
        - ``is_unsure``: whether the item has no label and a confidence below `min_confidence`.
          Without `min_confidence` there is no such column.
        """
        return item_table(
            self.collection,
            self.assigned,
            self.outlier_scores,
            self.names,
            self.n_known,
            self.is_unsure,
        )

    @cached_property
    def categories(self) -> Table:
        """One row for each category, in the order of their codes, as a DataFrame.

        The columns are

        - ``category``, ``kind``, ``size``, ``n_labelled``;
        - ``stability``: how far the starts of the mixture agree on it, NaN for a single start;
        - ``mean_confidence``: mean over its items;
        - ``nearest``: name of the nearest category, None if there is no other;
        - ``exemplars``: ids of the items nearest to its prototype, joined by "; ";
        - ``exemplar_texts``: their texts, joined likewise; only where the items are texts;
        - ``borderline``: ids of its unlabelled items of least confidence, joined likewise;
        - ``why_not_split``, ``why_not_merged``: sentences, None if a run folder does not say.

        For rows instead of ids, see `profiles`.
        """
        return category_table(self)

    @cached_property
    def levels(self) -> Levels | None:
        """The categories from coarse to fine; None without a model."""
        if self.stored_levels is not None and self.stored_levels.fits(self):
            return self.stored_levels
        return None if self.mixture is None else Levels.of(self)

    def at(self, k: int) -> Level:
        """The categories on a coarser or finer level.

        Parameters
        ----------
        k : int
            Number of categories, known and novel together. Levels are nested: a coarser one
            merges novel categories, a finer one splits them. Known categories stay.

        Returns
        -------
        Level
            Names, codes and a table. With the result's own K it is the result itself.

        Raises
        ------
        InputError
            If no level has this number; the message says which there are.
        """
        if self.levels is None:
            raise InputError(
                "The run folder has neither levels nor a model. Restore its folder 'model', or run "
                "newfound discover again."
            )
        return level_of(self, self.levels, k)

    def __repr__(self) -> str:
        return f"<Result: {self.answer}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the answer, and the new categories with some of their items."""
        return self._shown

    @cached_property
    def _shown(self) -> str:
        # Pictures are read once, however often a cell is run.
        return show_result(self)


def item_table(
    collection: Collection,
    assigned: Assigned,
    scores: Doubles,
    names: Sequence[str],
    n_known: int,
    is_unsure: Bools | None,
) -> Table:
    """A table of items with the columns of `Result.table`."""
    name_of = np.array([*names, None], dtype=object)  # -1 is None
    paths = [None] * len(collection) if collection.paths is None else map(str, collection.paths)
    columns = {
        "id": as_objects(collection.ids),
        "path": as_objects([*paths]),
        "given_label": as_objects([None if y is None else str(y) for y in collection.y]),
        "category": name_of[assigned.labels],
        "kind": np.where(assigned.labels < n_known, "known", "novel").astype(object),
        "confidence": assigned.confidence,
        "runner_up": name_of[assigned.runner_up],
        "outlier_score": scores,
    }
    if is_unsure is not None:
        columns["is_unsure"] = is_unsure
    if collection.texts is not None:  # beside the id, which says little about a text
        texts = {"text": as_objects(collection.texts)}
        columns = {"id": columns["id"], **texts, **columns}
    return make_table(columns)


def category_table(result: Result) -> Table:
    """The table of categories with the columns of `Result.categories`."""
    names, profiles = result.names, result.profiles
    name_of = np.array([*names, None], dtype=object)  # -1 is None
    columns = {
        "category": as_objects(names),
        "kind": as_objects(result.kinds),
        "size": profiles.sizes,
        "n_labelled": profiles.n_labelled,
        "stability": profiles.stability,
        "mean_confidence": profiles.mean_confidence,
        "nearest": name_of[profiles.nearest],
        "exemplars": _joined(result.collection.ids, profiles.exemplars),
        "borderline": _joined(result.collection.ids, profiles.borderline),
    }
    if result.collection.texts is not None:
        columns["exemplar_texts"] = _joined(result.collection.texts, profiles.exemplars)
    reasons = [evidence_sentences(result, code) for code in range(len(names))]
    columns["why_not_split"] = as_objects([split for split, _ in reasons])
    columns["why_not_merged"] = as_objects([merged for _, merged in reasons])
    return make_table(columns)


def evidence_sentences(result: Result, code: int) -> tuple[str | None, str | None]:
    """Why a category is neither split nor merged; None if a run folder does not say."""
    evidence, n_known = result.profiles.evidence, result.n_known
    if evidence is None:
        return None, None
    nearest = int(result.profiles.nearest[code])
    return (
        why_not_split(evidence, code, n_known),
        why_not_merged(evidence, code, n_known, result.names, nearest),
    )


def _joined(texts: Sequence[str], rows: Iterable[Ints]) -> np.typing.NDArray[np.object_]:
    return as_objects([SEPARATOR.join(texts[row] for row in some) for some in rows])
