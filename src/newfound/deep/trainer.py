"""Algorithm 1: the EM-like loop in which categories and representation are learnt together."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path

import torch
from lightning_fabric import Fabric
from torch import Tensor

from newfound.arrays import ArrayLike, LabelsLike
from newfound.deep.checkpoint import Checkpoints, TrainingState, run_identity
from newfound.deep.components import FoundComponents
from newfound.deep.engine import start_engine
from newfound.deep.estep import EStep
from newfound.deep.final_mixture import Finished, can_rehearse, fit_final_mixture, rehearse_final
from newfound.deep.holdout import LabelSplit, split_labels
from newfound.deep.losses import pcl_weight
from newfound.deep.method import Method, PrototypicalContrast
from newfound.deep.mstep import MStep
from newfound.deep.optimiser import cosine_rate
from newfound.deep.partial_epoch import PartialEpoch, SaveTimer
from newfound.deep.records import Epoch, Listener
from newfound.deep.settings import Settings
from newfound.deep.setup import TrainingSetup, set_up
from newfound.deep.trained import Trained
from newfound.errors import InputError
from newfound.labels import PartialLabels, encode_labels

__all__ = ["Trained", "train"]


def train(
    pixels: ArrayLike,
    y: LabelsLike,
    settings: Settings,
    folder: Path,
    *,
    method: Method | None = None,
    fingerprint: str = "",
    listener: Listener | None = None,
    fabric: Fabric | None = None,
) -> Trained:
    """Learn the representation and the categories together.

    Parameters
    ----------
    pixels : ndarray of uint8, shape (n, 3, s, s)
        All images, labelled and unlabelled; may be a `PixelFile`.
    y : array-like of shape (n,)
        Partial labels.
    settings : Settings
        All settings.
    folder : Path
        Run folder. If it holds a checkpoint of the same run, that run is resumed.
    method : Method, optional
        What is learnt; by default the paper's prototypical contrastive loss.
    fingerprint : str, default=""
        Identity of the images, compared when a run is resumed.
    listener : Listener, optional
        Called after every batch and epoch.
    fabric : Fabric, optional
        The engine, if it is running already.

    Returns
    -------
    Trained
        Network, categories and history.
    """
    partial = encode_labels(y, len(pixels))
    if len(pixels) < 2:
        raise InputError(f"Training needs at least two images; there are {len(pixels)}.")
    method = method or PrototypicalContrast(settings)
    fabric = fabric or start_engine(settings.run, settings.optimiser.batch_size)
    labels = _labels_for(partial, settings, method)
    setup = set_up(pixels, settings, method, fabric)
    identity = run_identity(
        settings, partial.codes, fingerprint=fingerprint, method=type(method).__name__
    )
    checkpoints = Checkpoints(folder, setup, identity)
    listener = listener or Listener()
    m_step = MStep(setup, labels.codes, settings, method, folder, listener)
    e_step = EStep(setup, labels, settings, method, listener)
    return _Loop(settings, method, e_step, m_step, checkpoints, setup).run(listener)


def _labels_for(partial: PartialLabels, settings: Settings, method: Method) -> LabelSplit:
    """Hold out labels if an epoch is to be selected by them."""
    run = settings.run
    selects = run.selection == "validation" and method.uses_prototypes
    return split_labels(partial, run.validation_share if selects else 0.0, run.seed)


class _Loop:
    """Algorithm 1, with its parts."""

    def __init__(
        self,
        settings: Settings,
        method: Method,
        e_step: EStep,
        m_step: MStep,
        checkpoints: Checkpoints,
        setup: TrainingSetup,
    ) -> None:
        self.setup, self.settings, self.method = setup, settings, method
        self.e_step, self.m_step, self.checkpoints = e_step, m_step, checkpoints
        self.labels = e_step.labels
        self.timer = SaveTimer()

    def run(self, listener: Listener) -> Trained:
        """Train from the beginning, or from the last checkpoint."""
        state = self.checkpoints.resume()
        try:
            listener.start(self.settings.optimiser.epochs, state.epoch)
            while state.epoch < self.settings.optimiser.epochs:
                self._epoch(state)
                with self.timer.saving():
                    self.checkpoints.save_last(state)
                listener.epoch(state.history[-1])
            return self._finish(state, listener)
        finally:
            listener.end()

    def _epoch(self, state: TrainingState) -> None:
        """One round of Algorithm 1: E-step, M-step and, as the paper prints it, moves."""
        partial = state.partial or self._start_epoch(state)
        state.partial = None
        started = time.perf_counter() - partial.seconds

        def keep(losses: Tensor) -> None:
            if self.timer.is_due():
                seconds = time.perf_counter() - started
                self._save_within(state, replace(partial, losses=losses, seconds=seconds))

        loss, found = self.m_step.train_epoch(state.epoch, partial, keep), partial.found
        if found is not None and self.settings.estep.moves_after_epoch:
            found = self.e_step.move_after_epoch(found, state)
        times = time.perf_counter() - started, partial.e_step_seconds
        state.history.append(self._record(state.epoch, found, loss, *times))
        if found is not None:
            state.labels = found.labels
        state.epoch += 1

    def _start_epoch(self, state: TrainingState) -> PartialEpoch:
        """The E-step: an epoch of which no batch is done."""
        started = time.perf_counter()
        with self.setup.average.in_place():
            found = self.e_step.run(state)
            self._keep_best(state, found)
        seconds = time.perf_counter() - started
        return PartialEpoch(found, torch.zeros(0), seconds, seconds)

    def _save_within(self, state: TrainingState, partial: PartialEpoch) -> None:
        """Write a checkpoint in the middle of an epoch, unless the training has diverged."""
        with self.timer.saving():
            if self.m_step.is_finite(partial.losses):  # else the end of the epoch says so
                self.checkpoints.save_last(replace(state, partial=partial))

    def _keep_best(self, state: TrainingState, found: FoundComponents | None) -> None:
        """Keep the present weights, if they are the best so far on held-out labels."""
        if found is None or found.accuracy is None or not self.labels.held_out.any():
            return
        # before λ(t) is 1 the prototypes do not have their full weight: such epochs do not count
        warmup = min(self.settings.losses.warmup_epochs, self.settings.optimiser.epochs)
        if state.epoch >= warmup and found.accuracy >= state.best_accuracy:
            state.best_accuracy, state.best_epoch = found.accuracy, state.epoch
            self.checkpoints.save_best(state)

    def _record(
        self,
        epoch: int,
        found: FoundComponents | None,
        loss: float,
        seconds: float,
        e_step_seconds: float,
    ) -> Epoch:
        """The line of an epoch."""
        optimiser = self.settings.optimiser
        n_rows, size = len(self.labels.codes), optimiser.batch_size
        n_views = 2 * math.ceil(n_rows / size) * size
        return Epoch(
            epoch=epoch,
            loss=loss,
            pcl_weight=pcl_weight(epoch, self.settings.losses.warmup_epochs),
            learning_rate=cosine_rate(epoch, optimiser.epochs, optimiser.learning_rate),
            n_components=None if found is None else found.n_components,
            n_novel=None if found is None else found.n_components - found.n_known,
            accuracy=None if found is None else found.accuracy,
            seconds=round(seconds, 3),
            e_step_seconds=round(e_step_seconds, 3),
            images_per_second=round(n_views / seconds, 1),
        )

    def _finish(self, state: TrainingState, listener: Listener) -> Trained:
        """Select the weights, then fit the mixture to the finished features."""
        listener.say("Finding the categories in the finished features")
        setup, fabric = self.setup, self.setup.fabric
        setup.average.swap()
        if not self.method.uses_prototypes:
            Z = self.e_step.features()
            return Trained(setup.network, setup.views, Z, None, None, state.history, state.epoch)
        self._keep_best(state, self.e_step.run(state))
        selected = state.epoch
        fabric.barrier()  # until the first process has written the best weights
        if self.settings.run.selection == "validation" and state.best_epoch >= 0:
            selected, state.labels = self.checkpoints.restore_best()
        Z = self.e_step.features()
        mixture = rehearsal = None
        if fabric.is_global_zero and self.method.ends_with_mixture:
            labels = state.labels
            assert labels is not None  # an E-step came before
            sizes = self.e_step.sizes_to_heed(state) if self.method.sizes_at_end else None
            finished = Finished(Z, self.labels.y, labels, state.count, sizes)
            mixture = fit_final_mixture(finished, self.settings)
            if can_rehearse(mixture, self.settings):
                listener.say("Rehearsing with hidden classes")
                rehearsal = rehearse_final(mixture, finished, self.settings)
        mixture, rehearsal = fabric.broadcast((mixture, rehearsal))
        return Trained(setup.network, setup.views, Z, mixture, rehearsal, state.history, selected)
