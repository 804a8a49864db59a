"""Folders of `newfound train` and `pretrain` 0.1.0, made into run folders.

Version 0.1.0 put checkpoints at the top of the folder and wrote no full result. The same command,
given again, moves them to where training looks for them now. It finds the training finished, and
only the result is computed and written anew.
"""

from __future__ import annotations

import os
from pathlib import Path

from newfound.files import is_litter, parse_json, read_json
from newfound.own_folder import locked
from newfound.result.run_folder import record_start

_CHECKPOINT = "last.safetensors"
_MOVED = ("best.safetensors", "epochs.jsonl", "history.png", "tensorboard")
#: Replaced by files of the same name and another format.
_REPLACED = ("run.json", "assignments.csv", "skipped.csv")
#: All that such a folder holds, also if a conversion was interrupted.
_LAYOUT = frozenset(
    [
        *[_CHECKPOINT, *_MOVED, *_REPLACED, "pictures", "train", "started.json"],
        *["backbone.safetensors", "pretraining.json"],
    ]
)
#: Bytes; that of a checkpoint with the history of thousands of epochs is shorter.
_LONGEST_HEADER = 100 * 2**20


def is_training_0_1_0(folder: Path) -> bool:
    """Whether a folder has the layout of a training by version 0.1.0, and nothing else in it."""
    if not (folder / _CHECKPOINT).is_file() or not _is_checkpoint(folder / _CHECKPOINT):
        return False
    names = {path.name for path in folder.iterdir() if not is_litter(path.name)}
    run = folder / "run.json"
    return names <= _LAYOUT and not (run.is_file() and "version" in read_json(run))


def _is_checkpoint(path: Path) -> bool:
    """Whether the header of a safetensors file says that newfound wrote it."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        try:
            header = parse_json(file.read(min(length, _LONGEST_HEADER)))
        except ValueError:
            return False
    return "newfound" in (header.get("__metadata__") or {})


def convert_training(folder: Path, *, command: str, data: str) -> None:
    """Make a training by version 0.1.0 into a run folder that can be resumed; else do nothing.

    Parameters
    ----------
    folder : Path
        The folder.
    command : str
        The command that made it, "train" or "pretrain".
    data : str
        Fingerprint of the collection.
    """
    if not is_training_0_1_0(folder):
        return
    with locked(folder):
        target = folder / "train"
        target.mkdir(exist_ok=True)
        for name in _MOVED:
            if (folder / name).exists():
                os.replace(folder / name, target / name)
        for name in _REPLACED:
            (folder / name).unlink(missing_ok=True)
        record_start(folder, command=command, data=data)
        # The checkpoint is moved last, so that an interrupted conversion is repeated.
        os.replace(folder / _CHECKPOINT, target / _CHECKPOINT)
