"""A result in the files of its run folder: written together, read without running anything."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from newfound.array_files import read_array
from newfound.arrays import Floats, Ints
from newfound.data.collection import Collection, Skipped
from newfound.data.tables import (
    AGAIN,
    DAMAGED,
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
from newfound.files import (
    explained_errors,
    json_bytes,
    read_json,
    whole_file,
    write_atomically,
    write_json,
)
from newfound.mixture.estimator import SplitMergeMixture
from newfound.result.assign import Assigned, Singles, distances_from_prototypes, project
from newfound.result.digests import DIGESTS, KEY, CheckedFiles, write_digests
from newfound.result.evidence import MoveEvidence, weigh_moves
from newfound.result.levels import LEVELS, Levels
from newfound.result.model_file import NUMBERS, WORDS, load_mixture, save_mixture
from newfound.result.profiles import CategoryProfiles
from newfound.result.record import RunRecord
from newfound.result.result import SEPARATOR, Result
from newfound.result.roots import KEY as ROOTS
from newfound.result.roots import check_roots, roots_of
from newfound.result.run_folder import LABELS, RUN, check_run, read_settled, staged

#: Columns of ``categories.parquet`` with the evidence as numbers; 0.1.0 kept sentences only.
_EVIDENCE = ("split_gap", "split_log_ratio", "merge_gap", "merge_log_ratio")
_PARTNER = "merge_partner"
#: Further columns of a person's table, one row for each item. Runs without any have no such file.
METADATA = "metadata.parquet"


def write_result(
    result: Result, folder: Path, *, labels: Path | None = None, **json_files: Any
) -> None:
    """Write a result to a run folder, all of it or nothing.

    The files are ``assignments.csv`` and ``.parquet``, ``categories.csv`` and ``.parquet``,
    ``skipped.csv``, ``levels.json``, ``run.json`` and the folder ``model``; for texts also
    ``texts.parquet``, and for further columns of a person's table ``metadata.parquet``. In the CSV
    files, a text that a spreadsheet would run as a formula begins with an apostrophe.

    Parameters
    ----------
    result : Result
        What to write.
    folder : Path
        The run folder; it is created if needed. Files of an earlier result are replaced.
    labels : Path, optional
        A folder with the categories of all rows, if the result shows a sample of them. It is moved
        to ``labels`` in the run folder, together with the result.
    **json_files
        Further JSON files, such as ``changes``: name without the ending → plain values.
    """
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
        if collection.metadata:
            columns = {name: as_objects(cells) for name, cells in collection.metadata.items()}
            write_parquet(make_table(columns), stage / METADATA)
        write_csv(result.table, stage / "assignments.csv")
        write_parquet(result.table, stage / "assignments.parquet")
        write_csv(result.categories, stage / "categories.csv")
        write_parquet(_stored_categories(result), stage / "categories.parquet")
        write_skipped(collection.skipped, stage / "skipped.csv")
        if result.levels is not None:
            write_json(stage / LEVELS, result.levels.as_json())
        for name, content in json_files.items():
            write_json(stage / f"{name}.json", content)
        # The sentences are for people who open the file. They are not read back.
        sentences = {"sentence": result.answer, "trust": result.trust}
        roots = {ROOTS: roots_of(collection)}
        run = json_bytes({**result.record.as_json(), **sentences, **roots, KEY: DIGESTS})
        write_digests(stage, run=run)
        if labels is not None:
            os.replace(labels, stage / LABELS)
        write_atomically(stage / RUN, run)
    # Edits go to the folder that the result is in. The class is frozen for everybody else.
    object.__setattr__(result, "folder", Path(folder))


def write_skipped(skipped: Sequence[Skipped], path: Path) -> None:
    """Write the table of files that could not be used, with the reasons."""
    columns = {
        "path": as_objects([item.path for item in skipped]),
        "reason": as_objects([item.reason for item in skipped]),
    }
    write_csv(make_table(columns), path)


def _stored_categories(result: Result) -> Table:
    """The table of categories for Parquet: ids in lists, and the evidence as numbers."""
    ids, profiles = result.collection.ids, result.profiles
    columns = {name: result.categories[name].to_numpy() for name in result.categories}
    for name, rows in (("exemplars", profiles.exemplars), ("borderline", profiles.borderline)):
        columns[name] = as_objects([[ids[row] for row in some] for some in rows])
    if profiles.evidence is not None:
        columns |= {name: getattr(profiles.evidence, name) for name in _EVIDENCE}
        partners = [None if i < 0 else result.names[i] for i in profiles.evidence.merge_partner]
        columns[_PARTNER] = as_objects(partners)
    return make_table(columns)


# ---------------------------------------------------------------------------------------- reading


def read_result(folder: Path) -> Result:
    """Read what `write_result` wrote, also by version 0.1.0; nothing is unpickled.

    Parameters
    ----------
    folder : Path
        The run folder.

    Returns
    -------
    Result
        The result as it was written, except that the collection's labels are texts. Without the
        folder ``model`` it has no mixture, features and prototypes have no columns, and distances
        are NaN.

    Raises
    ------
    InputError
        If the folder holds no finished run, a run of another version, or damaged files.
    """
    folder = Path(folder)
    check_run(folder)
    return read_settled(folder, lambda: _read_files(folder))


def _read_files(folder: Path) -> Result:
    """The files of a result, which must not change meanwhile."""
    run = read_json(folder / RUN)
    files = CheckedFiles(folder, run)
    files.file(RUN)
    record = RunRecord.from_json(run)
    table = read_parquet(files.file("assignments.parquet"))
    categories = read_parquet(files.file("categories.parquet"))
    model = _read_model(files, folder / "model", len(table), len(categories))
    paths = _paths_from(table, run, folder) if record.kind == "pictures" else None
    with explained_errors(folder / "categories.parquet", DAMAGED, AGAIN):
        names = tuple(categories["category"])
        assigned = _assigned_from(table, names, model)
        profiles = _profiles_from(categories, table["id"].tolist(), assigned.labels, model)
        scores = table["outlier_score"].to_numpy(dtype=np.float64)
        labels = table["given_label"].to_numpy(dtype=object)
        texts = None
        if record.kind == "texts":
            texts = read_parquet(files.file("texts.parquet"))["text"].tolist()
        collection = Collection(
            ids=table["id"].tolist(),
            y=labels,
            paths=paths,
            features=model.features if record.kind == "features" else None,
            texts=texts,
            skipped=_read_skipped(folder / "skipped.csv"),
            root=None if record.source is None else Path(record.source),
        )
        if files.has(METADATA):
            further = read_parquet(files.file(METADATA))
            metadata = {name: further[name].tolist() for name in further}
            collection = replace(collection, metadata=metadata)
        levels = _read_levels(files, folder)
    return Result(
        collection=collection,
        features=model.features,
        mixture=model.mixture,
        names=names,
        assigned=assigned,
        outlier_scores=scores,
        profiles=profiles,
        record=record,
        prototypes=model.prototypes,
        V=model.V,
        encoder=model.encoder,
        folder=folder,
        stored_levels=levels,
    )


def _paths_from(table: Table, run: dict[str, Any], folder: Path) -> list[Path]:
    """Where the pictures are, all of them below the roots of the run."""
    with explained_errors(folder / "assignments.parquet", DAMAGED, AGAIN):
        paths = [Path(path) for path in table["path"]]
    check_roots(paths, run, folder)
    return paths


def _read_levels(files: CheckedFiles, folder: Path) -> Levels | None:
    """The tree from coarse to fine; None in a folder from before there was one."""
    if not (folder / LEVELS).is_file():
        return None
    path = files.file(LEVELS)
    with explained_errors(path, DAMAGED, AGAIN):
        return Levels.from_json(read_json(path))


class _Model(NamedTuple):
    """What the folder ``model`` holds, and what follows from it.

    If the folder is missing, all arrays have 0 columns.
    """

    mixture: SplitMergeMixture | None
    encoder: dict[str, Any]
    features: Floats
    prototypes: Floats
    V: Singles


def _read_model(files: CheckedFiles, folder: Path, n_rows: int, n_categories: int) -> _Model:
    if not folder.is_dir():
        no_features = np.zeros((n_rows, 0), dtype=np.float32)
        return _Model(None, {}, no_features, np.zeros((n_categories, 0)), no_features)
    for name in (NUMBERS, WORDS):
        files.file(f"model/{name}")
    mixture, encoder = load_mixture(folder)
    features = _read_features(files.file("model/features.npy"), n_rows)
    return _Model(mixture, encoder, features, mixture.prototypes_, project(mixture, features))


def _read_features(path: Path, n_rows: int) -> Floats:
    try:
        features: Floats = read_array(path)
    except InputError as error:
        raise damaged(path, error.__cause__) from error
    if features.ndim != 2 or len(features) != n_rows:
        raise damaged(path, f"it holds {len(features)} rows for {n_rows} items")
    return features


def _read_skipped(path: Path) -> list[Skipped]:
    pandas = require("pandas", "report")
    with explained_errors(path, DAMAGED, AGAIN):
        table = pandas.read_csv(path, dtype=str, na_filter=False)
        rows = list(zip(table["path"], table["reason"], strict=True))
    return [Skipped(unescape_formula(name), unescape_formula(reason)) for name, reason in rows]


# --------------------------------------------------------------------------- from names to codes


def _assigned_from(table: Table, names: Sequence[str], model: _Model) -> Assigned:
    """The columns of the table of items as codes; distances from the model, if there is one."""
    labels = _codes(table["category"], names)
    distance = np.full(len(table), np.nan)
    if model.mixture is not None:
        distance = distances_from_prototypes(model.V, model.prototypes, labels)
    confidence = table["confidence"].to_numpy(dtype=np.float64)
    return Assigned(labels, confidence, _codes(table["runner_up"], names), distance)


def _profiles_from(
    categories: Table, ids: Sequence[str], labels: Ints, model: _Model
) -> CategoryProfiles:
    """The columns of the table of categories as numbers, codes and rows."""
    row_of = {name: row for row, name in enumerate(ids)}
    names = categories["category"].tolist()
    exemplars, borderline = (
        tuple(_rows(cell, row_of) for cell in categories[name])
        for name in ("exemplars", "borderline")
    )
    return CategoryProfiles(
        sizes=categories["size"].to_numpy(dtype=np.int64),
        n_labelled=categories["n_labelled"].to_numpy(dtype=np.int64),
        stability=categories["stability"].to_numpy(dtype=np.float64),
        mean_confidence=categories["mean_confidence"].to_numpy(dtype=np.float64),
        nearest=_codes(categories["nearest"], names),
        exemplars=exemplars,
        borderline=borderline,
        evidence=_evidence_from(categories, names, labels, model),
    )


def _evidence_from(
    categories: Table, names: Sequence[str], labels: Ints, model: _Model
) -> MoveEvidence | None:
    """The evidence as stored.

    A folder of version 0.1.0 has none: it is computed again from the model, or None if there is no
    model.
    """
    if _PARTNER in categories:
        numbers = {name: categories[name].to_numpy(dtype=np.float64) for name in _EVIDENCE}
        return MoveEvidence(**numbers, merge_partner=_codes(categories[_PARTNER], names))
    return None if model.mixture is None else weigh_moves(model.mixture, model.V, labels)


def _codes(column: Iterable[str | None], names: Sequence[str]) -> Ints:
    """Codes of names, -1 for None."""
    code_of: dict[str | None, int] = {name: code for code, name in enumerate(names)}
    code_of[None] = -1
    return np.array([code_of[name] for name in column], dtype=np.int64)


def _rows(cell: str | Iterable[str], row_of: Mapping[str, int]) -> Ints:
    """Rows of the ids in a cell: a list of ids, or the joined text of version 0.1.0."""
    if not isinstance(cell, str):
        return np.array([row_of[name] for name in cell], dtype=np.int64)
    rows: list[int] = []
    name = ""
    # An id may hold the separator itself, so parts are put together until they are an id.
    for part in cell.split(SEPARATOR) if cell else []:
        name = f"{name}{SEPARATOR}{part}" if name else part
        if name in row_of:
            rows.append(row_of[name])
            name = ""
    return np.array(rows, dtype=np.int64)
