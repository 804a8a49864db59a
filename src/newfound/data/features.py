"""Features and labels from a file."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from newfound.arrays import Floats, LabelsLike
from newfound.errors import InputError


def load_features(path: Path) -> tuple[Floats, LabelsLike]:
    """Read features and partial labels.

    Parameters
    ----------
    path : Path
        An ``.npz`` archive with the arrays ``X`` of shape (n, d) and ``y`` of shape (n,).
        Arrays of Python objects are refused: to read them would be to run what is in the file.

    Returns
    -------
    X : ndarray of shape (n, d)
        Features.
    y : ndarray of shape (n,)
        Partial labels; -1 or an empty text where a row is unlabelled.

    Raises
    ------
    InputError
        If the file is no such archive, lacks an array, or an array holds objects.
    """
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path} is no .npz archive. Save one with np.savez(path, X=X, y=y).")
    try:
        with np.load(path, allow_pickle=False) as archive:
            missing = [name for name in ("X", "y") if name not in archive]
            if missing:
                raise InputError(
                    f"{path} has the arrays {', '.join(archive) or 'none'}, but no "
                    f"{' and no '.join(missing)}. Save it with np.savez(path, X=X, y=y)."
                )
            X, y = archive["X"], archive["y"]
    except (zipfile.BadZipFile, ValueError, TypeError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path} cannot be read as an .npz of plain arrays ({error}). Save numbers or texts, "
            "not Python objects: np.savez(path, X=X, y=np.array(labels, dtype=str))."
        ) from error
    if X.dtype == np.float16:
        X = X.astype(np.float32)
    return X, y
