"""CIFAR-10 and CIFAR-100 in the binary version: fixed records of labels and 3 · 32 · 32 bytes.

The version for Python is pickled, and opening a pickle can run code from it. So it is never opened.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from newfound.bench.datasets.listing import Listing
from newfound.errors import InputError

_SIDE = 32
_PAGE = "https://www.cs.toronto.edu/~kriz/cifar.html"


def read_cifar10(base: Path) -> Listing | None:
    """The 50,000 training images, in the order of data_batch_1.bin … data_batch_5.bin.

    Parameters
    ----------
    base : Path
        Folder that may hold ``cifar-10-batches-bin``.
    """
    folder = base / "cifar-10-batches-bin"
    if not folder.is_dir():
        return None
    names = [f"data_batch_{i}.bin" for i in range(1, 6)]
    return _read(folder, names, n_labels=1, class_file="batches.meta.txt")


def read_cifar100(base: Path) -> Listing | None:
    """The 50,000 training images in the order of train.bin, with the fine labels.

    Parameters
    ----------
    base : Path
        Folder that may hold ``cifar-100-binary``.
    """
    folder = base / "cifar-100-binary"
    if not folder.is_dir():
        return None
    return _read(folder, ["train.bin"], n_labels=2, class_file="fine_label_names.txt")


def _read(folder: Path, names: list[str], n_labels: int, class_file: str) -> Listing:
    """Read records of `n_labels` bytes, the last of which is the label, and planes of pixels.

    `class_file` has the names of the classes, one per line.
    """
    missing = [name for name in [*names, class_file] if not (folder / name).is_file()]
    if missing:
        raise InputError(
            f"{folder} lacks {', '.join(missing)}. Unpack the binary version of {_PAGE} again."
        )
    class_names = (folder / class_file).read_text(encoding="utf-8").split()
    length = n_labels + 3 * _SIDE * _SIDE
    data = [np.fromfile(folder / name, np.uint8) for name in names]
    for name, part in zip(names, data, strict=True):
        if len(part) % length:
            raise InputError(
                f"{folder / name} has {len(part):,} bytes, which is not a multiple of {length}: "
                f"it is truncated. Unpack the binary version of {_PAGE} again."
            )
    records = np.concatenate(data).reshape(-1, length)
    # CIFAR-100 has a coarse and a fine label; the field uses the fine one, which is the last
    truth = records[:, n_labels - 1].astype(np.int64)
    if len(truth) and truth.max() >= len(class_names):
        raise InputError(
            f"{folder} has the label {truth.max()}, but {class_file} names {len(class_names)} "
            f"classes. Unpack the binary version of {_PAGE} again."
        )
    images = np.ascontiguousarray(records[:, n_labels:]).reshape(-1, 3, _SIDE, _SIDE)
    return Listing(truth, tuple(class_names), folder, array=images)
