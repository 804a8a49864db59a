"""What people have, as one `Collection`: ids, the given labels, and pictures, features or texts.

A folder of pictures with a table of labels, class folders, a file of embeddings, a table of texts.
Files are listed here and opened later; what cannot be used is listed with the reason. Items are in
the order of their ids (rows without ids: in the order of the file), so that the order in which a
file system gives its files changes nothing.
"""

from __future__ import annotations

import csv
import os
import posixpath
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PureWindowsPath
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from newfound.arrays import Bools, Floats, Ints
from newfound.data.features import load_features
from newfound.data.pictures import PICTURE_SUFFIXES
from newfound.errors import InputError, require
from newfound.labels import encode_labels

Labels: TypeAlias = npt.NDArray[np.object_]
Table: TypeAlias = Any  # a pandas.DataFrame

_UNLABELLED_FOLDERS = ("unlabelled", "unlabeled", "unknown")
_TABLE_SUFFIXES = (".csv", ".tsv", ".parquet", ".pq")
_PARQUET_SUFFIXES = (".parquet", ".pq")

#: Columns that have a meaning; all others are features or of no concern.
_COLUMNS = ("id", "label", "path", "text")

#: How tables write "no label", beside what `encode_labels` knows.
_NO_LABEL = frozenset(["", "nan", "<na>", "-1"])


@dataclass(frozen=True)
class Skipped:
    """An item that is left out.

    Attributes
    ----------
    path : str
        Its id: the path within the folder, or the row's id.
    reason : str
        Why, in a few words.
    """

    path: str
    reason: str


@dataclass(frozen=True, eq=False)
class Collection:
    """Items of which some are labelled; pictures, features or texts.

    Attributes
    ----------
    ids : list of str
        One for each item, unique: its path within the folder (with ``/``), the id that its table
        gives it, or the number of its row, from 0.
    y : ndarray of object, shape (n,)
        The label as it was given, text or number; None where an item is unlabelled.
    paths : list of Path, optional
        Picture files.
    features : ndarray of shape (n, d), optional
        Embeddings.
    texts : list of str, optional
        Texts. One of `paths`, `features` and `texts` is given.
    skipped : list of Skipped
        What was found and left out.
    root : Path, optional
        The folder or file that it was read from.
    """

    ids: list[str]
    y: Labels
    paths: list[Path] | None = None
    features: Floats | None = None
    texts: list[str] | None = None
    skipped: list[Skipped] = field(default_factory=list)
    root: Path | None = None

    def __post_init__(self) -> None:
        contents = [part for part in (self.paths, self.features, self.texts) if part is not None]
        lengths = [len(self.ids), *[len(part) for part in (self.y, *contents)]]
        if len(contents) != 1 or len(set(lengths)) != 1:
            raise InputError(
                "A Collection has one of paths, features and texts, and as many ids and labels. "
                f"Got {len(contents)} of them, and the lengths {lengths}."
            )
        _check_ids(self.ids, "the collection")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def kind(self) -> Literal["pictures", "features", "texts"]:
        """What the items are."""
        if self.paths is not None:
            return "pictures"
        return "features" if self.features is not None else "texts"

    @property
    def is_labelled(self) -> Bools:
        """Which items have a label, shape (n,)."""
        return np.array([label is not None for label in self.y], dtype=bool)

    def take(self, indices: Ints | Bools | Sequence[int]) -> Collection:
        """Some of the items, in the order of `indices`; what was skipped stays listed."""
        rows = np.arange(len(self))[np.asarray(indices, dtype=None if len(indices) else int)]
        return replace(
            self,
            ids=[self.ids[i] for i in rows],
            y=self.y[rows],
            paths=None if self.paths is None else [self.paths[i] for i in rows],
            features=None if self.features is None else self.features[rows],
            texts=None if self.texts is None else [self.texts[i] for i in rows],
        )

    def without(self, skips: Iterable[tuple[int, str]]) -> Collection:
        """The items that could be used: `skips` has the index and the reason for the others."""
        reasons = dict(skips)
        rest = self.take([i for i in range(len(self)) if i not in reasons])
        gone = [Skipped(self.ids[i], reason) for i, reason in sorted(reasons.items())]
        return replace(rest, skipped=[*self.skipped, *gone])


def read_collection(
    source: Path, labels: Path | None = None, *, unlabelled_folder: str = "unlabelled"
) -> Collection:
    """Read what a person has.

    Parameters
    ----------
    source : Path
        One of

        - a folder of pictures, with `labels`;
        - a folder of class folders, with those that have no class in `unlabelled_folder` or
          directly in the folder;
        - ``.npz`` with the arrays ``X`` and ``y``, or ``.npy`` with the features;
        - ``.parquet`` with the columns ``label``, ``id`` (both optional) and numbers: a column
          for each feature, or one column of lists;
        - ``.csv``, ``.tsv`` or ``.parquet`` with the columns ``text`` and, optional, ``label``
          and ``id``.
    labels : Path, optional
        A ``.csv``, ``.tsv`` or ``.parquet`` with the column ``label`` and, for pictures,
        ``path``, relative to the folder; for features and texts ``id``, or no second column and
        a label for each row. An empty label means unlabelled, and so does a picture that the
        table does not name.
    unlabelled_folder : str, default="unlabelled"
        Name of the folder beside the class folders that has no class. ``unlabeled`` and
        ``unknown`` are understood too, unless another name is given.

    Returns
    -------
    Collection
        Items and their labels. `check_discoverable` says whether there is anything to do.

    Raises
    ------
    InputError
        If a file is missing or cannot be read, a path leads out of the folder or to no file, an
        item has two labels, or ids are not unique.
    """
    source = Path(source)
    if source.is_dir():
        return _read_folder(source, labels, unlabelled_folder)
    rows = _read_rows(source)
    if labels is not None:
        rows = _label_rows(rows, Path(labels), source)
    return _as_collection(rows, source)


def check_discoverable(collection: Collection) -> None:
    """Refuse a collection in which there is nothing to discover, and say what is missing.

    Parameters
    ----------
    collection : Collection
        As `read_collection` gives it.

    Raises
    ------
    InputError
        If it is empty, has no label at all, or has no unlabelled item.
    """
    n, things = len(collection), _THINGS[collection.kind]
    if n == 0:
        where = "" if collection.root is None else f" in {collection.root}"
        raise InputError(f"There are no {things}{where}.{_first_skipped(collection)}")
    if not collection.is_labelled.any():
        raise InputError(
            f"None of the {n} {things} has a label. newfound looks for new categories beside "
            f"known ones, so it needs some labels: {_HOW_TO_LABEL[collection.kind]}."
        )
    if collection.is_labelled.all():
        sizes = [f"{name!r}: {n}" for name, n in Counter(collection.y).most_common(3)]
        raise InputError(
            f"All {n} {things} have a label (most often {_listed(sizes)}), so there is nothing to "
            f"discover. {_HOW_TO_LEAVE_OPEN[collection.kind]}."
        )


_THINGS = {"pictures": "pictures", "features": "rows of features", "texts": "texts"}
_HOW_TO_LABEL = {
    "pictures": "give a table with the columns path and label, or sort some into class folders",
    "features": "give a table with the columns id and label, or save y beside X",
    "texts": "give them in a column 'label'",
}
_HOW_TO_LEAVE_OPEN = {
    "pictures": (
        "Leave the label empty where the category is not known, or put those pictures into a "
        "folder 'unlabelled'"
    ),
    "features": "Write -1 or an empty label where the category is not known",
    "texts": "Leave the label empty where the category is not known",
}


def _first_skipped(collection: Collection) -> str:
    if not collection.skipped:
        return " Check the path."
    first = collection.skipped[0]
    return f" {len(collection.skipped)} were skipped, the first {first.path}: {first.reason}."


def _read_folder(folder: Path, labels: Path | None, unlabelled_folder: str) -> Collection:
    root = folder.absolute()
    found, skipped = _list_pictures(root)
    if labels is None:
        named = _labels_of_folders(root, found, unlabelled_folder)
    else:
        named = _labels_of_paths(root, found, Path(labels))
    ids = sorted({*found, *named})
    return Collection(
        ids=ids,
        y=_object_array([named.get(name) for name in ids]),
        paths=[root / name for name in ids],
        skipped=sorted(skipped, key=lambda item: item.path),
        root=root,
    )


def _list_pictures(root: Path) -> tuple[list[str], list[Skipped]]:
    """Paths of the pictures below a folder, relative to it, and what is left out."""
    found: list[str] = []
    skipped: list[Skipped] = []
    pending = [""]
    while pending:
        prefix = pending.pop()
        try:
            entries = list(os.scandir(root / prefix))
        except OSError as error:
            if not prefix:
                raise InputError(f"The folder {root} cannot be read: {error.strerror}.") from error
            skipped.append(
                Skipped(_printable(prefix), f"the folder cannot be read: {error.strerror}")
            )
            continue
        for entry in entries:
            name = prefix + entry.name
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                pending.append(name + "/")
            elif reason := _why_not(root, name, entry.is_symlink()):
                skipped.append(Skipped(_printable(name), reason))
            elif _is_named_as_picture(name) and os.path.isfile(entry.path):
                found.append(name)
    return found, skipped


def _is_named_as_picture(name: str) -> bool:
    return posixpath.splitext(name)[1].lower() in PICTURE_SUFFIXES


def _why_not(root: Path, name: str, is_link: bool) -> str:
    """Why a folder, or a file that looks like a picture, is left out, or nothing."""
    path = root / name
    if is_link and path.is_dir():
        return "a link to a folder, which is not followed; copy the folder"
    if not _is_named_as_picture(name):
        return ""
    if _printable(name) != name:
        return "its name is not UTF-8; give it another"
    if is_link and not os.path.isfile(path):
        return "a link to a file that is not there"
    if is_link and not _is_within(root, path):
        return "a link that leads out of the folder; copy the file"
    return ""


def _is_within(root: Path, path: Path) -> bool:
    """Whether a file lies in the folder when all links are followed."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def _printable(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _labels_of_folders(root: Path, found: list[str], unlabelled_folder: str) -> dict[str, Any]:
    """Take the first folder of each path for its class."""
    without_class = [unlabelled_folder.lower()]
    if unlabelled_folder in _UNLABELLED_FOLDERS:
        without_class.extend(_UNLABELLED_FOLDERS)
    elif not (root / unlabelled_folder).is_dir():
        raise InputError(
            f"There is no folder {unlabelled_folder!r} in {root}. Name the one that holds the "
            "pictures without a class."
        )
    classes = {name: name.partition("/")[0] for name in found if "/" in name}
    return {
        name: None if folder.lower() in without_class else folder
        for name, folder in classes.items()
    }


def _labels_of_paths(root: Path, found: list[str], labels: Path) -> dict[str, Any]:
    """Labels from a table of paths, by id."""
    table = _read_table(labels)
    given = [_text(path) for path in _column(table, "path", labels)]
    known = {_composed(name): name for name in found} | {name: name for name in found}
    located = [_locate(root, path, known) for path in given]
    leaving = [path for path, name in zip(given, located, strict=True) if name == _OUTSIDE]
    if leaving:
        raise InputError(
            f"{labels} names files outside of {root}: {_listed(leaving)}. Only pictures in the "
            "folder are read; copy them there, or give a folder that holds them all."
        )
    missing = [path for path, name in zip(given, located, strict=True) if name == _MISSING]
    if missing:
        raise InputError(
            f"{len(missing)} of {len(given)} paths in {labels} lead to no file: "
            f"{_listed(missing)}. Paths are relative to {root}{_near_miss(missing[0], known)}."
        )
    return _one_label_each(located, _column(table, "label", labels), labels)


_OUTSIDE, _MISSING = "..", "."  # no file has these names


def _locate(root: Path, given: str, known: dict[str, str]) -> str:
    """The id of a path in a table, or `_OUTSIDE`, or `_MISSING`."""
    with_slashes = given.replace("\\", "/")
    if listed := _look_up(given, known) or _look_up(with_slashes, known):
        return listed
    name = _relative_to(root, with_slashes)
    if listed := _look_up(name, known):
        return listed
    if not _is_within(root, root / name):
        return _OUTSIDE
    return name if os.path.isfile(root / name) else _MISSING


def _look_up(path: str, known: dict[str, str]) -> str | None:
    name = posixpath.normpath(path)
    return known.get(name) or known.get(_composed(name))


def _relative_to(root: Path, given: str) -> str:
    """A path as seen from the folder, which may itself be given by way of a link."""
    if PureWindowsPath(given).drive and os.name != "nt":
        return _OUTSIDE
    for base in (root, Path(os.path.realpath(root))):
        name = os.path.relpath(base / given, base).replace(os.sep, "/")
        if name.partition("/")[0] != "..":
            return name
    return _OUTSIDE


def _composed(name: str) -> str:
    """One spelling of letters with accents, of which file systems and tables know two."""
    return unicodedata.normalize("NFC", name)


def _near_miss(path: str, known: dict[str, str]) -> str:
    """Help with the commonest mistake: the folder's own name, or a part of it, before the path."""
    parts = path.replace("\\", "/").split("/")
    tails = ["/".join(parts[i:]) for i in range(1, len(parts))]
    return next((f"; is {path} meant to be {tail}?" for tail in tails if tail in known), "")


class _Rows(NamedTuple):
    """Rows as a file has them."""

    ids: list[str] | None
    y: Labels | None
    content: Floats | list[str]


def _read_rows(source: Path) -> _Rows:
    suffix = source.suffix.lower()
    if not source.is_file():
        raise InputError(f"There is no file or folder {source}.")
    if suffix == ".npz":
        X, y = load_features(source)
        features = _as_features(X, source)
        return _Rows(None, _as_labels(y, len(features)), features)
    if suffix == ".npy":
        return _Rows(None, None, _as_features(_load_array(source), source))
    if suffix in _TABLE_SUFFIXES:
        return _rows_of_table(_read_table(source), source)
    raise InputError(
        f"{source} is of no kind that can be read. Give a folder of pictures, embeddings as .npz, "
        ".npy or .parquet, or texts as .csv, .tsv or .parquet."
    )


def _load_array(path: Path) -> npt.NDArray[Any]:
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise InputError(
            f"{path} cannot be read as a plain array ({error}). Save numbers, not Python objects: "
            "np.save(path, X)."
        ) from error
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path} is an archive of arrays. Name it .npz, with the arrays X and y.")
    return array


def _as_features(X: npt.NDArray[Any], source: Path) -> Floats:
    """Floating point numbers of shape (n, d), single precision where that is enough."""
    if X.ndim != 2 or X.dtype.kind not in "fiub" or X.shape[1] == 0:
        raise InputError(
            f"The features in {source} have the shape {X.shape} and the type {X.dtype}. "
            "Give numbers, a row for each item and a column for each feature."
        )
    return X.astype(np.result_type(X.dtype, np.float32), copy=False)


def _rows_of_table(table: Table, source: Path) -> _Rows:
    names = [name for name in ("id", "path") if name in table]
    ids = [_text(value) for value in _column(table, names[0], source)] if names else None
    y = _as_labels(_column(table, "label", source)) if "label" in table else None
    X = _features_of_table(table, source)
    if X is not None and "text" in table:
        raise InputError(
            f"{source} has a column 'text' and {X.shape[1]} features. Keep the one or the other."
        )
    if X is not None:
        return _Rows(ids, y, X)
    if "text" in table:
        return _Rows(ids, y, [_text(value) for value in _column(table, "text", source)])
    hint = f" For pictures give their folder, and {source.name} as the labels." * ("path" in table)
    raise InputError(
        f"{source} has the columns {_listed(table.columns, 8)}, but no 'text' and no numbers to "
        f"use as features. Give texts in a column 'text', or embeddings as .parquet.{hint}"
    )


def _features_of_table(table: Table, source: Path) -> Floats | None:
    """A column of lists, or all columns of numbers; None if there is neither."""
    types = require("pandas", "report").api.types
    others = table[[name for name in table if name not in _COLUMNS]]
    lists = [name for name in others if _holds_lists(others[name])]
    if len(lists) > 1:
        raise InputError(f"{source} has several columns of lists: {_listed(lists)}. Keep one.")
    if lists:
        return _as_features(_stacked(others[lists[0]].tolist(), source), source)
    numbers = [
        name
        for name in others
        if types.is_numeric_dtype(others[name]) and not types.is_bool_dtype(others[name])
    ]
    if not numbers:
        return None
    single = all(others[name].dtype in (np.float32, np.float16) for name in numbers)
    X = others[numbers].to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)
    return _as_features(X, source)


def _holds_lists(column: Any) -> bool:
    first = next((value for value in column if value is not None), None)
    return isinstance(first, (list, tuple, np.ndarray))


def _stacked(lists: list[Any], source: Path) -> npt.NDArray[Any]:
    """Lists of one length as rows; a missing one as a row of NaN, which is skipped later."""
    lengths = Counter(len(value) for value in lists if value is not None)
    if len(lengths) > 1:
        raise InputError(
            f"The lists in {source} have different lengths: {_listed(sorted(lengths))}. "
            "Every row needs the same number of features."
        )
    missing = np.full(max(lengths), np.nan, dtype=np.float32)
    return np.array([missing if value is None else value for value in lists])


def _label_rows(rows: _Rows, labels: Path, source: Path) -> _Rows:
    """Take the labels from a table: in the order of the rows, or by id."""
    if rows.y is not None and any(label is not None for label in rows.y):
        raise InputError(f"{source} has labels of its own, and {labels} has others. Keep one.")
    table = _read_table(labels)
    given = _column(table, "label", labels)
    n = len(rows.content)
    if "id" not in table:
        if len(given) != n:
            raise InputError(
                f"{labels} has {len(given)} labels, but {source} has {n} rows. Give a label for "
                "each row, empty where there is none, or a column 'id'."
            )
        return rows._replace(y=_as_labels(given))
    named = [_text(value) for value in _column(table, "id", labels)]
    ids = rows.ids or [str(i) for i in range(n)]
    strangers = sorted(set(named) - set(ids))
    if strangers and rows.ids is None and len(named) == n:
        return rows._replace(ids=named, y=_as_labels(given))  # names for the rows, in their order
    if strangers:
        raise InputError(
            f"{len(strangers)} ids in {labels} are not in {source}: {_listed(strangers)}. "
            + ("Rows without ids are numbered from 0." if rows.ids is None else "Check the ids.")
        )
    by_id = _one_label_each(named, given, labels)
    return rows._replace(y=_object_array([by_id.get(name) for name in ids]))


def _as_collection(rows: _Rows, source: Path) -> Collection:
    """Order the rows by id, and leave out those that hold nothing."""
    n, content = len(rows.content), rows.content
    if rows.ids is not None:
        _check_ids(rows.ids, str(source))
    collection = Collection(
        ids=rows.ids or [str(i) for i in range(n)],
        y=_object_array([None] * n) if rows.y is None else rows.y,
        features=content if isinstance(content, np.ndarray) else None,
        texts=content if isinstance(content, list) else None,
        root=source.absolute(),
    )
    if isinstance(content, np.ndarray):
        bad = np.flatnonzero(~np.isfinite(content).all(axis=1))
        skips = [(int(i), "a feature is not a finite number") for i in bad]
    else:
        skips = [(i, "the text is empty") for i in range(n) if not content[i]]
    collection = collection.without(skips)
    if rows.ids is None:
        return collection
    return collection.take(sorted(range(len(collection)), key=collection.ids.__getitem__))


def _read_table(path: Path) -> Table:
    """A table with the names of its columns in small letters; a CSV all in texts."""
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    if path.suffix.lower() not in _TABLE_SUFFIXES:
        raise InputError(f"{path} is no table that can be read. Give a .csv, .tsv or .parquet.")
    read = _read_parquet if path.suffix.lower() in _PARQUET_SUFFIXES else _read_csv
    table = read(path)
    small = {name: str(name).strip().lower() for name in table}
    special = {name: to for name, to in small.items() if to in _COLUMNS}
    twice = [to for to, count in Counter(special.values()).items() if count > 1]
    if twice:
        raise InputError(f"{path} has several columns {_listed(twice)}. Keep one of each.")
    return table.rename(columns=special)


def _read_csv(path: Path) -> Table:
    """Read a CSV; nothing is taken for a number or for missing: 001 stays 001, NA stays NA."""
    pandas = require("pandas", "report")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = next((line for line in file if line.strip()), "")
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            return pandas.read_csv(
                path,
                sep=_separator(header),
                dtype=str,
                na_filter=False,
                index_col=False,
                skipinitialspace=True,
                encoding="utf-8-sig",
            )
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not in UTF-8. Save it as 'CSV UTF-8'.") from error
    except (pandas.errors.ParserWarning, ValueError) as error:
        raise InputError(
            f"{path} cannot be read as a CSV ({str(error).strip()}). Give a header, as many values "
            "in each line, and put texts that have a comma in quotes."
        ) from error


def _separator(header: str) -> str:
    """The character that cuts the header into the most columns of names that are known here."""

    def n_known(sign: str) -> int:
        names = next(csv.reader([header], delimiter=sign), [])
        return sum(name.strip().lower() in _COLUMNS for name in names)

    return max(",;\t|", key=n_known)


def _read_parquet(path: Path) -> Table:
    require("pyarrow", "report")
    try:
        return require("pandas", "report").read_parquet(path, engine="pyarrow")
    except (ValueError, OSError) as error:
        raise InputError(f"{path} cannot be read as Parquet ({error}).") from error


def _column(table: Table, name: str, path: Path) -> list[Any]:
    if name not in table:
        raise InputError(
            f"{path} has the columns {_listed(table.columns, 8)}, but no {name!r}. "
            "Its first line must name the columns."
        )
    return [
        None if missing else value
        for value, missing in zip(table[name].tolist(), table[name].isna(), strict=True)
    ]


def _text(value: Any) -> str:
    """A cell as text; nothing for a missing one."""
    return "" if value is None else str(value).strip()


def _as_labels(values: list[Any] | npt.NDArray[Any], n_rows: int | None = None) -> Labels:
    """Labels as they were given, None where there is none."""
    y = [_label(value) for value in values] if isinstance(values, list) else values
    partial = encode_labels(y, n_rows)
    names = [*partial.classes.tolist(), None]  # the code of "no label" is -1, the last one
    return _object_array([names[code] for code in partial.codes])


def _label(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = value.strip()
    return None if text.lower() in _NO_LABEL else text


def _one_label_each(ids: list[str], given: list[Any], path: Path) -> dict[str, Any]:
    """Labels by id; the same item may stand in several rows, with one label."""
    by_id: dict[str, Any] = {}
    for name, label in zip(ids, _as_labels(given), strict=True):
        known = by_id.get(name)
        if known is not None and label is not None and known != label:
            raise InputError(
                f"{path} gives {name} two labels, {known!r} and {label!r}. Keep one of them."
            )
        by_id[name] = label if known is None else known
    return by_id


def _object_array(values: list[Any]) -> Labels:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _check_ids(ids: Sequence[str], where: str) -> None:
    if "" in ids:
        raise InputError(f"An id in {where} is empty. Give every item one, or none.")
    if len(set(ids)) < len(ids):
        twice = [name for name, count in Counter(ids).items() if count > 1]
        raise InputError(f"Ids in {where} must be unique; these are not: {_listed(twice)}.")


def _listed(names: Iterable[Any], n: int = 5) -> str:
    """The first few, and how many more there are."""
    texts = [str(name) or "(empty)" for name in names]
    more = f" and {len(texts) - n} more" if len(texts) > n else ""
    return ", ".join(texts[:n]) + more
