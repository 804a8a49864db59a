"""Folders of `newfound train` and `pretrain` 0.1.0, made into run folders.

Version 0.1.0 put checkpoints at the top of the folder and wrote no full result. The same command,
given again, moves them to where training looks for them now. It finds the training finished, and
only the result is computed and written anew.
"""

from __future__ import annotations

import os
from pathlib import Path

from newfound.result.run_folder import record_start

_CHECKPOINT = "last.safetensors"
_MOVED = ("best.safetensors", "epochs.jsonl", "history.png", "tensorboard")
#: Replaced by files of the same name and another format.
_REPLACED = ("run.json", "assignments.csv", "skipped.csv")


def is_training_0_1_0(folder: Path) -> bool:
    """Whether a folder has the layout of a training by version 0.1.0."""
    return (folder / _CHECKPOINT).is_file()


def convert_training(folder: Path, *, command: str, data: str) -> None:
    """Make a training by version 0.1.0 into a run folder that can be resumed.

    Parameters
    ----------
    folder : Path
        The folder.
    command : str
        The command that made it, "train" or "pretrain".
    data : str
        Fingerprint of the collection.
    """
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
