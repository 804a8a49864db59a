"""Short runs of Algorithm 1, and what tests of the trainer use to stop, watch and compare them."""

import contextlib
import json
from dataclasses import asdict
from unittest.mock import patch

import numpy as np
import torch
from samples import SMALL_TRAINING
from torch import nn

from newfound.deep.checkpoint import LAST, load_checkpoint
from newfound.deep.method import Method, PrototypicalContrast
from newfound.deep.records import Listener
from newfound.deep.settings import Settings
from newfound.deep.trainer import train

SMALL = {
    **SMALL_TRAINING,
    "padding": 0.125,
    "epochs": 3,
    "warmup_epochs": 2,
    "projection_head": False,
    "moves_every": 2,
    "validation_share": 0.25,
    "contrastive_temperature": 0.1,  # at 1, so few steps hardly change the network
}
N_STEPS = 4  # 112 pictures in batches of 32


def small(**changes):
    return Settings(**{**SMALL, **changes})


def run(digits, folder, settings=None, **options):
    return train(digits.pixels, digits.y, settings or small(), folder, **options)


@contextlib.contextmanager
def reached_sizes(**more):
    """Few pictures and few labels: labels are taken as drawn, and sizes to be those expected."""

    def known_sizes(n_labels, rate):
        return np.full(len(n_labels), n_labels.mean() / rate), 0.0

    changes = {"labelled_by_class": lambda *given: False, "_known_sizes": known_sizes}
    with patch.multiple("newfound.mixture.sizes", **changes, **more):
        yield


def without_time(record):
    timed = {"seconds", "e_step_seconds", "images_per_second"}
    return {name: value for name, value in record.items() if name not in timed}


def assert_same_bits(folder, other_folder, name=LAST):
    """The same tensors and plain values, apart from how long it took."""
    tensors, plain = load_checkpoint(folder / name)
    others, other_plain = load_checkpoint(other_folder / name)
    assert tensors.keys() == others.keys()
    for key, value in tensors.items():
        assert torch.equal(value, others[key]), key
    for values in (plain, other_plain):
        values["history"] = [without_time(record) for record in values["history"]]
    assert json.dumps(plain) == json.dumps(other_plain)  # as texts: NaN is NaN


def assert_same_outcome(trained, other):
    np.testing.assert_array_equal(trained.features, other.features)
    np.testing.assert_array_equal(trained.mixture.labels_, other.mixture.labels_)
    assert trained.selected_epoch == other.selected_epoch
    histories = [
        [without_time(asdict(record)) for record in one.history] for one in (trained, other)
    ]
    assert histories[0] == histories[1]


def averaged(folder):
    """Weights of the last checkpoint by their names in the network: means where there are any."""
    tensors, _ = load_checkpoint(folder / LAST)
    return {
        name.removeprefix("network."): tensors.get(f"average.{name}", value)
        for name, value in tensors.items()
        if name.startswith("network.")
    }


def last_step(folder):
    """Weights of the last checkpoint as the last step left them."""
    tensors, _ = load_checkpoint(folder / LAST)
    return {
        name.removeprefix("network."): value
        for name, value in tensors.items()
        if name.startswith("network.")
    }


class Interrupted(Exception):
    """What stops a run in these tests."""


class StopAt(Listener):
    """Stops a run when it hears of a batch, of the end of an epoch, or of the last part."""

    def __init__(self, event, epoch=1, n_done=2):
        self.stop = (event, epoch, n_done)

    def batch(self, epoch, n_done, n_batches):
        if ("batch", epoch, n_done) == self.stop:
            raise Interrupted

    def epoch(self, record):
        if (self.stop[0], record.epoch) == ("epoch", self.stop[1]):
            raise Interrupted

    def say(self, text):
        if self.stop[0] == "say":
            raise Interrupted


class Notes(Listener):
    """Remembers everything it hears."""

    def __init__(self):
        self.heard = []

    def start(self, n_epochs, first_epoch):
        self.heard.append(("start", n_epochs, first_epoch))

    def batch(self, epoch, n_done, n_batches):
        self.heard.append(("batch", epoch, n_done, n_batches))

    def epoch(self, record):
        self.heard.append(("epoch", record.epoch))

    def end(self):
        self.heard.append(("end",))


class Usual(PrototypicalContrast):
    """The usual loss, but in one batch what is made of it; notes how many rows are labelled."""

    def __init__(self, settings=None, otherwise=None, at=-1):
        super().__init__(settings or small())
        self.otherwise, self.at = otherwise, at
        self.n_labelled = []

    def loss(self, batch):
        loss = super().loss(batch)
        if len(self.n_labelled) == self.at:
            loss = self.otherwise(loss, batch)
        self.n_labelled.append(int((batch.codes >= 0).sum()))
        return loss


class Collect(Method):
    """A method that keeps its batches."""

    uses_prototypes = True

    def __init__(self, settings):
        super().__init__(settings)
        self.batches = []

    def head(self, n_features):
        return nn.Linear(n_features, 4)

    def loss(self, batch):
        self.batches.append(batch)
        return batch.h.square().mean()
