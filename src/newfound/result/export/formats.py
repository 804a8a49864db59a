"""Exports: a result in the files that other tools read.

`FORMATS` names them: tables (csv, parquet), folders of pictures, and the formats of FiftyOne, Label
Studio and COCO. Nothing that exists is overwritten, names that people gave to categories never
become paths as they are, and pictures are hard links or copies, never symbolic links.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from newfound.data.pictures import (
    _EXIF_ORIENTATION,
    _SILENCE,
    PictureError,
    _reason,
    _safe_formats,
    read_picture,
)
from newfound.data.tables import write_csv, write_parquet
from newfound.errors import InputError, require
from newfound.files import disk_errors, write_atomically, write_json
from newfound.result.result import Result
from newfound.result.run_folder import LITTER

#: Name of a file in two parts, of which a number may come between.
NameParts: TypeAlias = tuple[str, str]

#: Bytes of a name; file systems take 255, and a number and an ending are still to come.
_LONGEST_NAME = 120
_LONGEST_SUFFIX = 16  # characters
_FORBIDDEN = frozenset('<>:"/\\|?*')
#: No file may be called so on Windows, with any ending.
_RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])\s*(\..*)?", re.I)
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def export(result: Result, to: str, out: Path) -> Path:
    """Write a result in the format of another tool.

    Parameters
    ----------
    result : Result
        As `discover` returns it or `read_result` reads it.
    to : str
        One of `FORMATS`:

        - ``csv``, ``parquet``: a file, the table of items as it is;
        - ``folders``: a folder for each category with its pictures, ``categories.csv`` with the
          name of each folder's category, ``files.csv`` with the origin of each file;
        - ``fiftyone``: a folder to load as ``fiftyone.types.FiftyOneImageClassificationDataset``;
        - ``label-studio``: a folder with ``tasks.json``, ``label_config.xml`` and a
          ``README.txt`` that says where these go; for pictures and texts;
        - ``coco``: a JSON file in which the whole of each picture is one object.

        Pictures in folders are hard links where the file system has them, else copies: to
        delete one leaves the original, to paint in one does not.
    out : Path
        The file or folder to write, which must not exist, or be empty.

    Returns
    -------
    Path
        What was written.

    Raises
    ------
    InputError
        If the format is unknown or not for such items, `out` is taken or cannot be written to,
        or a picture is no longer there.
    """
    if to not in FORMATS:
        raise InputError(f"There is no format {to!r} to export to. Give one of {_listed(FORMATS)}.")
    out = Path(os.path.abspath(out))
    FORMATS[to](result, out)
    return out


# -------------------------------------------------------------------------------------- tables


def _to_csv(result: Result, out: Path) -> None:
    _check_new_file(out)
    write_csv(result.table, out)


def _to_parquet(result: Result, out: Path) -> None:
    require("pyarrow", "report")
    _check_new_file(out)
    write_parquet(result.table, out)


# ------------------------------------------------------------------------------------- folders


def _to_folders(result: Result, out: Path) -> None:
    pandas = require("pandas", "report")
    paths = _pictures_of(result, "folders", out)
    folders = _folders_of(result.categories["category"])
    places = [folders[name] for name in result.table["category"]]
    names = _file_names(paths, places)
    files = [f"{place}/{name}" for place, name in zip(places, names, strict=True)]
    of_files = result.table[["id", "path", "category", "confidence"]]
    with _new_folder(out):
        for folder in folders.values():
            (out / folder).mkdir()
        for path, file in zip(paths, files, strict=True):
            _place(path, out / file)
        of_folders = result.categories[["category", "kind", "size"]]
        categories = pandas.concat([_column("folder", folders.values()), of_folders], axis=1)
        write_csv(categories, out / "categories.csv")
        write_csv(pandas.concat([_column("file", files), of_files], axis=1), out / "files.csv")


def _folders_of(categories: Iterable[str]) -> dict[str, str]:
    """A folder for each category."""
    categories = list(categories)
    parts = [(_safe_name(name), "") for name in categories]
    taken = ("categories.csv", "files.csv")
    return dict(zip(categories, _distinct(parts, _same_file, taken), strict=True))


def _file_names(paths: list[Path], places: list[str]) -> list[str]:
    """The original names, with a number where two would meet in one place."""
    pairs = zip(places, map(_split, paths), strict=True)
    names = _distinct((f"{place}/{stem}", end) for place, (stem, end) in pairs)
    return [name.rpartition("/")[2] for name in names]


def _column(name: str, values: Iterable[str]) -> Any:
    return require("pandas", "report").Series(list(values), name=name, dtype=object)


# ------------------------------------------------------------------------------------ FiftyOne


def _to_fiftyone(result: Result, out: Path) -> None:
    """https://docs.voxel51.com/user_guide/import_datasets.html, FiftyOneImageClassificationDataset.

    Its form for predictions, with a confidence and attributes. A picture is known by its name
    without the ending.
    """
    paths = _pictures_of(result, "fiftyone", out)
    classes = result.categories["category"].tolist()
    code_of = {name: code for code, name in enumerate(classes)}
    names = _distinct([_split(path) for path in paths], _same_stem)
    labels = {
        os.path.splitext(name)[0]: {
            "label": code_of[row.category],
            "confidence": float(row.confidence),
            "attributes": _attributes(row),
        }
        for name, row in zip(names, result.table.itertuples(), strict=True)
    }
    with _new_folder(out):
        (out / "data").mkdir()
        for path, name in zip(paths, names, strict=True):
            _place(path, out / "data" / name)
        write_json(out / "labels.json", {"classes": classes, "labels": labels})


def _attributes(row: Any) -> dict[str, Any]:
    """What a row says beside its category; `id` is a name that tools keep for themselves."""
    values = {
        "item": row.id,
        "kind": row.kind,
        "given_label": row.given_label,
        "runner_up": row.runner_up,
        "outlier_score": float(row.outlier_score),
    }
    return {name: value for name, value in values.items() if value is not None}


# -------------------------------------------------------------------------------- Label Studio


def _to_label_studio(result: Result, out: Path) -> None:
    """https://labelstud.io/guide/predictions, and for annotations https://labelstud.io/guide/tasks.

    A category that cannot stand in XML has another name among the choices; the task's data has
    its own.
    """
    shown = _choices_of(result.categories["category"])
    field, contents, how = _label_studio_contents(result)
    model = f"newfound {result.record.version}"
    tasks = [
        _task(row, {field: content}, shown[row.category], model)
        for row, content in zip(result.table.itertuples(), contents, strict=True)
    ]
    with _new_folder(out):
        write_atomically(out / "label_config.xml", _label_config(field, shown.values()).encode())
        write_atomically(out / "README.txt", how.encode())
        write_json(out / "tasks.json", tasks)


def _label_studio_contents(result: Result) -> tuple[str, list[str], str]:
    """What a task shows: the name of the field, a value for each item, and what to set up."""
    collection = result.collection
    if collection.texts is not None:
        return "text", collection.texts, _HOW_TO_IMPORT
    paths = _paths_of(result, "label-studio")
    folder = _folder_above(paths, collection.root)
    # Label Studio wants the folder of a storage to lie below its root, not to be it
    urls = [_URL + quote(_relative(path, folder.parent)) for path in paths]
    return "image", urls, _HOW_TO_SERVE.format(root=folder.parent, folder=folder) + _HOW_TO_IMPORT


_URL = "/data/local-files/?d="
_HOW_TO_SERVE = """\
Before Label Studio is started, let it read the pictures where they are:

    LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true
    LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT={root}

In the project: Settings > Cloud Storage > Add Source Storage > Local files, with the absolute
local path {folder}
Save it, and do not sync it: the tasks come from tasks.json.

"""
_HOW_TO_IMPORT = """\
Settings > Labeling Interface > Code: put label_config.xml there. Then import tasks.json.
Categories that were found are predictions, with their confidence as score; labels that were given
are annotations.
"""


def _choices_of(categories: Iterable[str]) -> dict[str, str]:
    """How each category is shown: on one line, in characters that XML has."""
    categories = list(categories)
    parts = [(" ".join(_NOT_IN_XML.sub("\ufffd", name).split()) or "_", "") for name in categories]
    return dict(zip(categories, _distinct(parts, lambda stem, end: stem + end), strict=True))


def _label_config(field: str, choices: Iterable[str]) -> str:
    tag = {"image": "Image", "text": "Text"}[field]
    lines = [f"    <Choice value={quoteattr(choice)}/>" for choice in choices]
    return "\n".join(
        [
            "<View>",
            f'  <{tag} name="item" value="${field}"/>',
            '  <Choices name="category" toName="item" choice="single" showInline="true">',
            *lines,
            "  </Choices>",
            "</View>\n",
        ]
    )


def _task(row: Any, content: dict[str, str], choice: str, model: str) -> dict[str, Any]:
    def chosen(by: str) -> list[dict[str, Any]]:
        names = {"from_name": "category", "to_name": "item", "type": "choices"}
        return [{"id": f"{by}-{row.Index}", **names, "value": {"choices": [choice]}}]

    score = float(row.confidence)
    predictions = [{"model_version": model, "score": score, "result": chosen("newfound")}]
    annotations = [] if row.given_label is None else [{"result": chosen("given")}]
    data = {**content, "category": row.category, **_attributes(row)}
    return {"data": data, "predictions": predictions, "annotations": annotations}


# ---------------------------------------------------------------------------------------- COCO


def _to_coco(result: Result, out: Path) -> None:
    """https://cocodataset.org/#format-data, with the whole picture as the one object in it."""
    _check_new_file(out)
    paths = _paths_of(result, "coco")
    _check_there(paths)
    folder = _folder_above(paths, result.collection.root)
    names = result.categories["category"].tolist()
    code_of = {name: code for code, name in enumerate(names, start=1)}
    images, annotations = [], []
    for row, path in zip(result.table.itertuples(), paths, strict=True):
        number, (width, height) = row.Index + 1, _upright_size(path)
        sizes = {"width": width, "height": height}
        images.append({"id": number, "file_name": _relative(path, folder), **sizes})
        annotations.append(_annotation(row, number, code_of[row.category], width, height))
    kinds = zip(code_of.items(), result.categories["kind"], strict=True)
    content = {
        "info": {"description": result.answer, "folder": str(folder)},
        "licenses": [],
        "images": images,
        "annotations": annotations,
        "categories": [{"id": i, "name": name, "supercategory": kind} for (name, i), kind in kinds],
    }
    write_json(out, content)


def _annotation(row: Any, number: int, code: int, width: int, height: int) -> dict[str, Any]:
    """One object, as large as the picture."""
    score = float(row.confidence)
    return {
        "id": number,
        "image_id": number,
        "category_id": code,
        "bbox": [0, 0, width, height],
        "area": width * height,
        "segmentation": [[0, 0, width, 0, width, height, 0, height]],
        "iscrowd": 0,
        "score": score,  # where COCO's own results have it; the attributes are CVAT's place
        "attributes": {"score": score, **_attributes(row)},
    }


def _upright_size(path: Path) -> tuple[int, int]:
    """Width and height as a person sees them; of most files only the beginning is read."""
    pillow = require("PIL.Image", "train")
    try:
        with (
            _SILENCE,
            path.open("rb") as file,
            pillow.open(file, formats=_safe_formats(pillow)) as picture,
        ):
            if picture.format == "TIFF":  # turned on opening or on loading, as Pillow's age is
                return read_picture(path).size
            width, height = picture.size
            is_turned = picture.getexif().get(_EXIF_ORIENTATION, 1) in (5, 6, 7, 8)
    except PictureError:
        raise
    except Exception as error:  # decoders raise whatever a damaged file leads them to
        raise PictureError(path, _reason(pillow, error)) from error
    return (height, width) if is_turned else (width, height)


# ------------------------------------------------------------------------------------ pictures


def _pictures_of(result: Result, to: str, out: Path) -> list[Path]:
    """The pictures, which are there and will not be found twice by the next run."""
    paths = _paths_of(result, to)
    root = result.collection.root
    if root is not None and Path(os.path.realpath(out)).is_relative_to(os.path.realpath(root)):
        raise InputError(
            f"{out} lies in {root}, where the next run would find each picture twice. Choose a "
            "folder outside of it."
        )
    _check_there(paths)
    return paths


def _paths_of(result: Result, to: str) -> list[Path]:
    """Absolute paths of the pictures."""
    collection = result.collection
    if collection.paths is None:
        others = ["csv", "parquet", *(["label-studio"] if collection.kind == "texts" else [])]
        raise InputError(
            f"{to!r} is for pictures, but this run is on {collection.kind}. Export it to "
            f"{_listed(others)}."
        )
    return [Path(os.path.abspath(path)) for path in collection.paths]


def _check_there(paths: list[Path]) -> None:
    gone = [path for path in paths if not path.is_file()]
    if gone:
        raise InputError(
            f"{len(gone)} of {len(paths)} pictures are no longer where they were, the first "
            f"{gone[0]}. Put them back, or run newfound discover on the folder as it is now."
        )


def _folder_above(paths: list[Path], root: Path | None) -> Path:
    """The folder that the items were read from, or else one that holds them all."""
    if root is not None:
        folder = Path(os.path.abspath(root))
        if all(path.is_relative_to(folder) for path in paths):
            return folder
    try:
        return Path(os.path.commonpath([path.parent for path in paths]))
    except ValueError as error:
        raise InputError(
            f"The pictures lie on several drives, or there are none ({error}). Bring them into one "
            "folder, and run newfound discover on that."
        ) from error


def _relative(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


def _place(source: Path, target: Path) -> None:
    """Link or copy a picture; the file itself, also where the source is a symbolic link."""
    origin = os.path.realpath(source)
    try:
        os.link(origin, target)
        return
    except OSError:  # another disk, no such links there, another owner, too many of them
        pass
    try:
        file = open(origin, "rb")  # noqa: SIM115
    except OSError as error:
        raise PictureError(source, f"cannot be read: {error.strerror}") from error
    with file, target.open("xb") as copy:
        shutil.copyfileobj(file, copy)


# --------------------------------------------------------------------------------------- names


def _safe_name(text: str) -> str:
    """A name that is one in every file system: no path, nothing hidden, reserved or too long."""
    name = "".join("_" if _is_unsafe(sign) else sign for sign in text).strip(" ")
    name = name.encode()[:_LONGEST_NAME].decode("utf-8", "ignore").rstrip(" .")
    if name.startswith("."):
        name = f"_{name[1:]}"
    return f"_{name}" if not name or _RESERVED.fullmatch(name) else name


def _is_unsafe(sign: str) -> bool:
    return sign in _FORBIDDEN or unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp")


def _split(path: Path) -> NameParts:
    """The name of a file without and with its ending, both safe."""
    stem, end = os.path.splitext(path.name)
    end = "".join("_" if _is_unsafe(sign) else sign for sign in end[:_LONGEST_SUFFIX])
    return _safe_name(stem), end.rstrip(" .")


def _same_file(stem: str, end: str) -> str:
    """What two names share that some file system takes for one."""
    return unicodedata.normalize("NFC", (stem + end)).casefold()


def _same_stem(stem: str, end: str) -> str:
    del end
    return _same_file(stem, "")


def _distinct(
    parts: Iterable[NameParts],
    key: Callable[[str, str], str] = _same_file,
    taken: Iterable[str] = (),
) -> list[str]:
    """Names that differ in their key: those that would not get a number, in the order given."""
    used = {key(name, "") for name in taken}
    numbers: Counter[str] = Counter()
    names = []
    for stem, end in parts:
        first, new = key(stem, end), stem
        while key(new, end) in used:
            numbers[first] += 1
            new = f"{stem}-{numbers[first] + 1}"
        used.add(key(new, end))
        names.append(new + end)
    return names


# ------------------------------------------------------------------------------------- targets


def _check_new_file(out: Path) -> None:
    if out.is_dir():
        raise InputError(f"{out} is a folder, but a file is written. Give the name of a new file.")
    if out.exists() and out.stat().st_size > 0:
        raise InputError(f"{out} exists already. Remove it, or give the name of a new file.")


@contextlib.contextmanager
def _new_folder(out: Path) -> Iterator[None]:
    """A folder to write to; if that fails, what was written is removed."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file, but a folder is written. Give a new folder.")
    with disk_errors(out):
        is_new = not out.exists()
        out.mkdir(parents=True, exist_ok=True)
        before = set(out.iterdir())
        _check_empty(out, before)
        try:
            yield
        except BaseException:
            for path in set(out.iterdir()) - before:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            if is_new:
                out.rmdir()
            raise


def _check_empty(out: Path, entries: Iterable[Path]) -> None:
    names = sorted(path.name for path in entries)
    strangers = [name for name in names if not name.startswith(".") and name not in LITTER]
    if strangers:
        raise InputError(
            f"{out} is not empty (it holds {', '.join(strangers[:3])}). Remove it if it is an "
            "older export, or choose a new folder."
        )


def _listed(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}"


#: Everything that a result can be exported to.
FORMATS: Mapping[str, Callable[[Result, Path], None]] = {
    "csv": _to_csv,
    "parquet": _to_parquet,
    "folders": _to_folders,
    "fiftyone": _to_fiftyone,
    "label-studio": _to_label_studio,
    "coco": _to_coco,
}
