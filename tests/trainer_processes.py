"""Short trainings in one process or several, and what their E-steps find and send.

Run as a script by torchrun, in a folder with ``data.npz``.
"""

import contextlib
import json
import math
import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from torch import distributed
from trainer_runs import SMALL, reached_sizes

from newfound.deep.estep import EStep
from newfound.deep.settings import Settings
from newfound.deep.trainer import train

_COMMON = {
    **SMALL,
    "n_labelled_per_batch": 15,
    "n_unlabelled_per_batch": 15,
    "model": "test_vit",
    "image_size": 16,
    "learning_rate": 0.01,
    "contrastive_temperature": 0.5,
    "supervised_temperature": 0.5,
    "prototype_temperature": 0.5,
}
CASES = {
    # moves hang on the last bit of a feature, which is not the same; the end is selected, whose
    # checkpoint is written by one process and read by all
    "digits": {**_COMMON, "moves_every": 5, "warmup_epochs": 3},
    # colours are far enough from each other for moves, before and after the warm-up
    "colours": {**_COMMON, "warmup_epochs": 1, "moves_every": 2},
    # batch norm, with an activation in the same layer
    "norms": {**_COMMON, "epochs": 2, "moves_every": 5, "model": "test_efficientnet"},
    # prototypes in the space of the features, and K that is kept
    "wide": {**_COMMON, "epochs": 1, "moves_every": 5, "pca": "off", "n_components": 9},
}
#: What sends something, and where in its arguments that is.
_SENDERS = {
    "all_reduce": 0,
    "all_gather": 1,
    "gather": 0,
    "broadcast": 0,
    "broadcast_object_list": 0,
    "scatter_object_list": 1,
}


def train_and_note(name, data, folder):
    """Train one of the cases; what each E-step has found, by name, and what it has sent."""
    found, sent, e_step = {}, [], EStep.run

    def note(self, state):
        sent.append([])
        with contextlib.ExitStack() as stack:
            for sender, place in _SENDERS.items():
                stack.enter_context(_watched(sender, place, sent[-1]))
            components = e_step(self, state)
        number = len(sent) - 1
        found[f"labels.{number}"] = components.labels
        found[f"means.{number}"] = components.prototypes.means.numpy()
        if components.prototypes.excess is not None:
            found[f"excess.{number}"] = components.prototypes.excess.numpy()
        return components

    with patch.object(EStep, "run", note), reached_sizes(_TOLERANCE=math.inf):
        settings = Settings(**CASES[name])
        trained = train(data[f"{name}.pixels"], data[f"{name}.y"], settings, folder)
    found |= {"features": trained.features, "labels": trained.mixture.labels_}
    return trained, found, sent


def _watched(sender, place, sent):
    """Note type and shape of what is sent."""
    original = getattr(distributed, sender)

    def send(*given, **options):
        value = given[place]
        if isinstance(value, torch.Tensor):
            sent.append([sender, str(value.dtype), list(value.shape)])
        else:
            sent.append([sender, type((value or [None])[0]).__name__, []])
        return original(*given, **options)

    return patch.object(distributed, sender, send)


if __name__ == "__main__":
    torch.set_num_threads(1)
    everything = np.load("data.npz")
    for case in CASES:
        _, noted, traffic = train_and_note(case, everything, Path(case))
        rank = distributed.get_rank()
        np.savez(f"{case}.{rank}.npz", **noted)
        Path(f"{case}.{rank}.json").write_text(json.dumps(traffic))
    sys.exit(0)
