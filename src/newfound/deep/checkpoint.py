"""Checkpoints: training can be stopped at any moment and resumed.

On a CPU, the result is then exactly the same as without the interruption.
A checkpoint is one safetensors file; whatever is not a tensor is JSON in its header. A file gets
its name only when it is complete, so a kill leaves the last good one. Nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from newfound.arrays import Ints
from newfound.deep.network.identity import weights_id
from newfound.deep.partial_epoch import PartialEpoch
from newfound.deep.records import Epoch
from newfound.deep.settings import HARDWARE, Settings
from newfound.errors import InputError
from newfound.files import explained_errors, parse_json, write_atomically
from newfound.mixture.counting.count import CategoryCount

if TYPE_CHECKING:
    from newfound.deep.setup import TrainingSetup

#: Names of the two checkpoints in a run folder: the latest one, and that of the best epoch.
LAST, BEST = "last.safetensors", "best.safetensors"
#: Key of the text in the header: a digest and JSON. One key, since safetensors writes several in
#: any order, and the same content shall be the same bytes.
_HEADER = "newfound"


def save_checkpoint(path: Path, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Write tensors and plain values to one file.

    Parameters
    ----------
    path : Path
        Ends in ``.safetensors``.
    tensors : dict of Tensor
        Tensors by name.
    state : dict
        Values that JSON can hold.
    """
    # clones: safetensors refuses two names for one storage, and views of a larger one
    plain = {name: value.detach().cpu().clone().contiguous() for name, value in tensors.items()}
    text = json.dumps(state)
    write_atomically(path, save(plain, metadata={_HEADER: f"{_digest_of(text, plain)} {text}"}))


def _digest_of(text: str, tensors: dict[str, Tensor]) -> str:
    """Digest of all that a checkpoint holds."""
    digest = hashlib.blake2b(text.encode(), digest_size=16)
    for name, value in sorted(tensors.items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def load_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_checkpoint` wrote.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    tensors : dict of Tensor
        Tensors by name, on the CPU.
    state : dict
        The plain values.
    """
    with as_checkpoint(path):
        with safe_open(path, framework="pt", device="cpu") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if _HEADER not in metadata:
            raise InputError(f"{path} was not written by newfound. Choose another run folder.")
        text = metadata[_HEADER]
        if not text.startswith("{"):  # checkpoints of 0.1.0 have no digest
            digest, _, text = text.partition(" ")
            if digest != _digest_of(text, tensors):
                raise ValueError("its content is not what was written")
        return tensors, parse_json(text)


def as_checkpoint(path: Path) -> AbstractContextManager[None]:
    """Say which checkpoint is damaged, if what is read from it cannot be used."""
    return explained_errors(path, "is not a checkpoint", "Remove it to start again.")


# ------------------------------------------------------------------------------ the state of a run


@dataclass
class TrainingState:
    """What a run carries from epoch to epoch beside the weights.

    Attributes
    ----------
    epoch : int
        The next epoch.
    labels : ndarray of shape (n,) or None
        Component of each image.
    count : CategoryCount or None
        The count in the features before training.
    history : list of Epoch
        One record for each epoch so far.
    best_accuracy, best_epoch : float and int
        Of the best epoch so far on held-out labels; -1 if there is none.
    partial : PartialEpoch or None
        What is done of the next epoch; None between epochs.
    """

    epoch: int = 0
    labels: Ints | None = None
    count: CategoryCount | None = None
    history: list[Epoch] = field(default_factory=list)
    best_accuracy: float = -1.0
    best_epoch: int = -1
    partial: PartialEpoch | None = None

    @classmethod
    def from_checkpoint(
        cls, tensors: dict[str, Tensor], plain: dict[str, Any], device: torch.device
    ) -> TrainingState:
        """The state that a checkpoint holds.

        Parameters
        ----------
        tensors : dict of Tensor
            Tensors of the checkpoint.
        plain : dict
            Its other values.
        device : torch.device
            Where prototypes are put.
        """
        count, partial = plain["count"], plain.get("partial")
        if count is not None:
            count = CategoryCount.from_plain(count)
        return cls(
            epoch=plain["epoch"],
            labels=tensors["labels"].numpy() if "labels" in tensors else None,
            count=count,
            history=[Epoch(**record) for record in plain["history"]],
            best_accuracy=plain["best_accuracy"],
            best_epoch=plain["best_epoch"],
            partial=None
            if partial is None
            else PartialEpoch.from_checkpoint(tensors, partial, device),
        )

    def as_json(self) -> dict[str, Any]:
        """Everything but labels and other tensors."""
        partial = {} if self.partial is None else {"partial": self.partial.as_json()}
        return partial | {
            "epoch": self.epoch,
            "history": [asdict(record) for record in self.history],
            "count": None if self.count is None else self.count.as_plain(),
            "best_accuracy": self.best_accuracy,
            "best_epoch": self.best_epoch,
        }


class Checkpoints:
    """The checkpoints in a run folder.

    Parameters
    ----------
    folder : Path
        The run folder.
    setup : TrainingSetup
        Whose weights are written and restored.
    identity : dict
        What `run_identity` returned: a checkpoint of another run is refused.
    """

    def __init__(self, folder: Path, setup: TrainingSetup, identity: dict[str, Any]) -> None:
        self._folder, self._setup, self._identity = folder, setup, identity

    def save_last(self, state: TrainingState) -> None:
        """Write all that is needed to resume, and the line of each epoch so far.

        Parameters
        ----------
        state : TrainingState
            After an epoch, or within one.
        """
        slots = self._setup.optimiser.state
        momentum = {
            f"momentum.{name}": slots[value]["momentum_buffer"]
            for name, value in self._setup.network.named_parameters()
            if slots.get(value, {}).get("momentum_buffer") is not None
        }
        more = self._setup.average.tensors | momentum
        if state.partial is not None:
            with_features = self._identity["settings"]["moves_after_epoch"]
            more |= state.partial.tensors(with_features=with_features)
        self._save(LAST, state, more)
        if self._setup.fabric.is_global_zero:
            lines = "".join(json.dumps(asdict(record)) + "\n" for record in state.history)
            write_atomically(self._folder / "epochs.jsonl", lines.encode())

    def save_best(self, state: TrainingState) -> None:
        """Write the present weights as those of the best epoch so far.

        Parameters
        ----------
        state : TrainingState
            The state before an epoch.
        """
        self._save(BEST, state, {})

    def _save(self, name: str, state: TrainingState, more: dict[str, Tensor]) -> None:
        if not self._setup.fabric.is_global_zero:
            return
        tensors = self._setup.weights() | more
        if state.labels is not None:
            tensors["labels"] = torch.from_numpy(state.labels)
        save_checkpoint(self._folder / name, tensors, state.as_json() | self._identity)

    def resume(self) -> TrainingState:
        """Restore the last checkpoint, if there is one.

        Returns
        -------
        TrainingState
            The state in the checkpoint, or that of a run that has not begun.

        Raises
        ------
        InputError
            If the checkpoint belongs to a run with other settings or data.
        """
        path = self._folder / LAST
        if not path.exists():
            return TrainingState()
        with as_checkpoint(path):
            return self._restore(*load_checkpoint(path))

    def _restore(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> TrainingState:
        """Take over weights, momentum and state of a checkpoint of the same run."""
        for part in ("settings", "data"):
            difference = differences(plain[part], self._identity[part])
            if difference:
                raise InputError(
                    f"{self._folder} holds a run with other {part}: {difference}. Choose another "
                    "folder, or remove this one to start again."
                )
        self._setup.set_weights(tensors)
        self._setup.average.load(tensors)
        for name, value in self._setup.network.named_parameters():
            if f"momentum.{name}" in tensors:
                buffer = tensors[f"momentum.{name}"].to(value.device)
                self._setup.optimiser.state[value]["momentum_buffer"] = buffer
        return TrainingState.from_checkpoint(tensors, plain, self._setup.fabric.device)

    def restore_best(self) -> tuple[int, Ints]:
        """Restore the weights of the best epoch.

        Returns
        -------
        epoch : int
            After how many epochs they were taken.
        labels : ndarray of shape (n,)
            Component of each image then.
        """
        path = self._folder / BEST
        with as_checkpoint(path):
            tensors, plain = load_checkpoint(path)
            self._setup.set_weights(tensors)
            return plain["epoch"], tensors["labels"].numpy()


def run_identity(
    settings: Settings, codes: Ints, *, fingerprint: str, method: str
) -> dict[str, Any]:
    """All that the result of a run depends on; compared before a run is resumed.

    Parameters
    ----------
    settings : Settings
        Those that only spread the work over devices and memory are left out.
    codes : ndarray of shape (n,)
        Known class of each row or -1.
    fingerprint : str
        Identity of the images.
    method : str
        Name of the method.

    Returns
    -------
    dict
        With the parts ``settings`` and ``data``.
    """
    values = {**settings.as_dict(), "weights": weights_id(settings.network.weights)}
    return {
        "settings": {name: value for name, value in values.items() if name not in HARDWARE},
        "data": {
            "images": fingerprint,
            "n_rows": len(codes),
            "labels": hashlib.sha256(np.ascontiguousarray(codes).tobytes()).hexdigest()[:16],
            "method": method,
        },
    }


def differences(before: dict[str, Any], now: dict[str, Any]) -> str:
    """What differs between two dicts, in words.

    Parameters
    ----------
    before, now : dict
        Values by name; a name that is missing counts as None.

    Returns
    -------
    str
        Name, old and new value of each difference; empty if there is none.
    """
    names = sorted(set(before) | set(now))
    return ", ".join(
        f"{name} was {before.get(name)!r} and is {now.get(name)!r}"
        for name in names
        if before.get(name) != now.get(name)
    )
