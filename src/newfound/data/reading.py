"""Read any source, a folder or a file, into a `Collection`."""

from __future__ import annotations

from pathlib import Path

from newfound.data.collection import Collection
from newfound.data.folders import read_folder
from newfound.data.row_files import read_row_file


def read_collection(
    source: Path, labels: Path | None = None, *, unlabelled_folder: str = "unlabelled"
) -> Collection:
    """Read a folder of pictures, or a file of features or texts.

    Parameters
    ----------
    source : Path
        One of

        - a folder of pictures, with `labels`;
        - a folder of class folders; pictures without a class are in `unlabelled_folder` or
          directly in the folder;
        - ``.npz`` with the arrays ``X`` and ``y``, or ``.npy`` with the features;
        - ``.parquet`` with the columns ``label`` and ``id`` (both optional) and numbers: one
          column for each feature, or one column of lists;
        - ``.csv``, ``.tsv`` or ``.parquet`` with the column ``text`` and optionally ``label``
          and ``id``.
    labels : Path, optional
        A ``.csv``, ``.tsv`` or ``.parquet`` with the column ``label``. For pictures it also has
        the column ``path``, relative to the folder. For features and texts it has the column
        ``id``, or one label for each row. An empty label means unlabelled, and so does a picture
        that the table does not name. Further columns become metadata (`newfound.data.metadata`).
    unlabelled_folder : str, default="unlabelled"
        Name of the folder beside the class folders whose pictures have no class. ``unlabeled``
        and ``unknown`` are understood too, unless another name is given.

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
        return read_folder(source, labels, unlabelled_folder)
    return read_row_file(source, labels)
