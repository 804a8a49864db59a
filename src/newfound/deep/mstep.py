"""The M-step of the loop: one epoch of the method's loss over batches of two views."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from newfound.arrays import Floats, Ints
from newfound.deep.checkpoint import LAST
from newfound.deep.engine import gather, whole_order
from newfound.deep.images.batches import batch_seed, epoch_batches
from newfound.deep.images.view_pairs import FreshViews, StoredViews
from newfound.deep.method import Batch, Method
from newfound.deep.optimiser import cosine_rate
from newfound.deep.partial_epoch import PartialEpoch
from newfound.deep.records import Listener
from newfound.deep.settings import Settings
from newfound.deep.setup import TrainingSetup
from newfound.errors import InputError
from newfound.labels import UNLABELLED


class MStep:
    """Trains the network for an epoch.

    Parameters
    ----------
    setup : TrainingSetup
        Network, optimiser and images.
    codes : ndarray of shape (n,)
        Known class of each image, -1 where it is unlabelled or held out.
    settings : Settings
        Batches, learning rate, seed, stored views.
    method : Method
        Has the loss.
    folder : Path
        Run folder, named in the error if the loss diverges.
    listener : Listener
        Called after each batch.
    """

    def __init__(
        self,
        setup: TrainingSetup,
        codes: Ints,
        settings: Settings,
        method: Method,
        folder: Path,
        listener: Listener,
    ) -> None:
        self._setup, self._fabric, self._codes = setup, setup.fabric, codes
        self._settings, self._method = settings, method
        self._folder, self._listener = folder, listener
        self._stored: StoredViews | None = None

    def train_epoch(
        self, epoch: int, partial: PartialEpoch, keep: Callable[[Tensor], object]
    ) -> float:
        """Train for one epoch, or for the rest of it.

        Parameters
        ----------
        epoch : int
            Counted from 0; batches and views are drawn for it.
        partial : PartialEpoch
            The outcome of this epoch's E-step, and the losses of the batches that are done.
        keep : callable
            Called after each step of the optimiser with the losses so far: a moment at which the
            epoch could be left and resumed.

        Returns
        -------
        float
            Mean loss over the batches.

        Raises
        ------
        InputError
            If a loss or a weight is not finite any more.
        """
        settings = self._settings.optimiser
        for group in self._setup.optimiser.param_groups:
            group["lr"] = cosine_rate(epoch, settings.epochs, settings.learning_rate)
        rows = epoch_batches(
            self._codes != UNLABELLED,
            settings.n_labelled_per_batch,
            settings.n_unlabelled_per_batch,
            seed=self._settings.run.seed,
            epoch=epoch,
        )
        codes, found = self._setup.put(self._codes), partial.found
        assigned = codes if found is None else self._setup.put(found.labels)
        prototypes = None if found is None else found.prototypes
        seen = None
        if found is not None and len(found.z) == len(codes):
            seen = found.z
        losses = torch.zeros(len(rows), device=self._fabric.device)
        first = len(partial.losses)
        losses[:first] = partial.losses.to(losses.device)
        self._setup.wrapped.train()
        pairs = self._view_pairs()
        for i, two in enumerate(pairs.batches(rows, epoch, first), start=first):
            torch.manual_seed(batch_seed(self._settings.run.seed, epoch, i))  # for dropout
            whole = self._setup.put(whole_order(rows[i], self._fabric))
            z, h = self._forward(two, past_frozen_part=pairs.past_frozen_part)
            batch = Batch(z, h, codes[whole], assigned[whole], prototypes, epoch, whole)
            if seen is not None:
                batch = replace(batch, seen=seen[whole])
            loss = self._method.loss(batch)
            is_step = self._step(loss, i, len(rows))
            losses[i] = loss.detach()
            if is_step and i + 1 < len(rows):
                keep(losses[: i + 1])
            self._listener.batch(epoch, i + 1, len(rows))
        return self._mean_loss(losses.cpu().numpy(), epoch)

    def _step(self, loss: Tensor, i: int, n_batches: int) -> bool:
        """Add up gradients; take a step after `accumulate` batches, and after the last one."""
        accumulate = self._settings.optimiser.accumulate
        first = i - i % accumulate
        self._fabric.backward(loss / min(accumulate, n_batches - first))
        is_due = (i + 1) % accumulate == 0 or i + 1 == n_batches
        if is_due:
            self._setup.optimiser.step()
            self._setup.optimiser.zero_grad(set_to_none=True)
            self._setup.average.update()
        return is_due

    def is_finite(self, losses: Tensor) -> bool:
        """Whether all of these losses and all weights are finite."""
        values = [losses, *self._setup.weights().values()]
        return all(bool(value.isfinite().all()) for value in values)

    def _view_pairs(self) -> FreshViews | StoredViews:
        """Where views come from; the store is filled when it is first used."""
        run, setup = self._settings.run, self._setup
        if run.n_stored_views == 0:
            return FreshViews(setup.views, setup.feed, self._fabric, seed=run.seed)
        if self._stored is None:
            text = "Passing views through the frozen part"
            self._listener.say(text)
            self._stored = StoredViews(
                setup.network.backbone,
                setup.views,
                setup.feed,
                self._fabric,
                n_views=run.n_stored_views,
                seed=run.seed,
                progress=functools.partial(self._listener.step, text),
            )
        return self._stored

    def _forward(self, two: Tensor, *, past_frozen_part: bool) -> tuple[Tensor, Tensor]:
        """Features (2, n, d) and head outputs (2, n, p) of two views, of all processes."""
        z, h = self._setup.wrapped(two, past_frozen_part=past_frozen_part)
        shape = (2, len(two) // 2, -1)
        return gather(z.view(shape), self._fabric, 1), gather(h.view(shape), self._fabric, 1)

    def _mean_loss(self, losses: Floats, epoch: int) -> float:
        """The mean loss; stops the run if a loss or a weight is not finite."""
        if self.is_finite(torch.from_numpy(losses)):
            return float(losses.mean())
        bad = np.flatnonzero(~np.isfinite(losses))
        batch = int(bad[0]) if len(bad) else len(losses) - 1
        last = self._folder / LAST
        rate = self._settings.optimiser.learning_rate
        raise InputError(
            f"The loss became {losses[batch]} in epoch {epoch}, batch {batch}, or a weight was not "
            f"finite after it. The last good checkpoint: "
            f"{last if last.exists() else 'none yet'}. "
            f"Try a learning_rate below {rate}, in a new run folder."
        )
