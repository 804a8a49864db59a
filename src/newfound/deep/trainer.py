"""Algorithm 1: the EM-like loop in which categories and representation are learnt together."""

from __future__ import annotations

import hashlib
import json
import math
import time
import warnings
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from lightning_fabric import Fabric
from torch import Tensor, nn
from torch.nn import functional

from newfound.arrays import Bools, Floats, Ints, LabelsLike
from newfound.deep.average import WeightAverage
from newfound.deep.balance import balance
from newfound.deep.checkpoint import (
    differences,
    load_checkpoint,
    save_checkpoint,
)
from newfound.deep.engine import gather, start_engine, whole_order
from newfound.deep.estep import (
    Prototypes,
    known_count,
    mixture_for,
    principal_space,
    prototypes_from,
)
from newfound.deep.images.batches import epoch_batches
from newfound.deep.images.extraction import Extractor
from newfound.deep.images.feed import Feed
from newfound.deep.images.pairs import FreshViews, StoredViews
from newfound.deep.images.views import Views, views_for
from newfound.deep.losses import pcl_weight
from newfound.deep.method import Batch, Method, PrototypicalContrast
from newfound.deep.network.backbone import load_backbone
from newfound.deep.network.head import Network
from newfound.deep.records import Epoch, Listener
from newfound.deep.settings import OptimiserSettings, Settings
from newfound.errors import DiscoveryWarning, InputError
from newfound.files import write_atomically
from newfound.labels import UNLABELLED, PartialLabels, encode_labels
from newfound.mixture.counting.count import CategoryCount, count_categories
from newfound.mixture.counting.rehearsal import Rehearsal, rehearse
from newfound.mixture.estimator import SplitMergeMixture
from newfound.mixture.sizes import sizes_are_alike

LAST, BEST = "last.safetensors", "best.safetensors"


@dataclass
class _State:
    """What a checkpoint holds beside the weights."""

    epoch: int = 0  # the next one
    labels: Ints | None = None
    count: CategoryCount | None = None  # in the features before training
    history: list[Epoch] = field(default_factory=list)
    best_accuracy: float = -1.0
    best_epoch: int = -1


@dataclass(frozen=True)
class _Found:
    """What an E-step hands to the M-step."""

    z: Tensor  # unit-length features
    labels: Ints
    n_known: int
    prototypes: Prototypes
    accuracy: float | None

    @property
    def n_components(self) -> int:
        return len(self.prototypes.means)


@dataclass(frozen=True)
class Trained:
    """The outcome of training.

    Attributes
    ----------
    network : Network
        With the selected weights.
    views : Views
        What the network takes.
    features : ndarray of shape (n, d)
        Of all images.
    mixture : SplitMergeMixture or None
        Fitted to them; None for a method that has none.
    rehearsal : Rehearsal or None
        What became of hidden known classes.
    history : list of Epoch
        One for each epoch.
    selected_epoch : int
        After how many epochs the weights were taken.
    """

    network: Network
    views: Views
    features: Floats
    mixture: SplitMergeMixture | None
    rehearsal: Rehearsal | None
    history: list[Epoch]
    selected_epoch: int


def train(
    pixels: npt.NDArray[np.uint8],
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
        All images, labelled and unlabelled; may be memory-mapped.
    y : array-like of shape (n,)
        Partial labels.
    settings : Settings
        All settings.
    folder : Path
        Of the run. If it holds a checkpoint of the same run, that is continued.
    method : Method, optional
        What is learnt; by default the paper's prototypical contrastive loss.
    fingerprint : str, default=""
        Identity of the images, compared when a run is continued.
    listener : Listener, optional
        Told of every batch and epoch.
    fabric : Fabric, optional
        The engine, if it was started already.

    Returns
    -------
    Trained
        Network, categories and history.
    """
    partial = encode_labels(y, len(pixels))
    _check_rows(partial)
    method = method or PrototypicalContrast(settings)
    loop = _Loop(
        pixels,
        partial,
        settings,
        folder,
        method,
        fabric or start_engine(settings.run, settings.optimiser.batch_size),
    )
    return loop.run(fingerprint, listener or Listener())


class _Loop:
    """The parts of Algorithm 1 and what they share."""

    def __init__(
        self,
        pixels: npt.NDArray[np.uint8],
        partial: PartialLabels,
        settings: Settings,
        folder: Path,
        method: Method,
        fabric: Fabric,
    ) -> None:
        self.settings, self.folder, self.method = settings, folder, method
        self.fabric = fabric
        self.all_codes = partial.codes
        names = [*partial.classes.tolist(), None]
        self.y = [names[code] for code in partial.codes]  # -1 is the last: None
        self.held_out = (
            hold_out(partial.codes, settings.run.validation_share, settings.run.seed)
            if settings.run.selection == "validation" and method.uses_prototypes
            else np.zeros(len(pixels), dtype=bool)
        )
        self.codes = np.where(self.held_out, UNLABELLED, partial.codes)
        torch.manual_seed(settings.run.seed)  # of the weights that start at random
        backbone = load_backbone(
            settings.network.model,
            settings.network.weights,
            image_size=settings.network.image_size,
            trainable=settings.network.trainable,
        )
        self.views = views_for(backbone, settings.views)
        self.network = Network(backbone, method.head(backbone.n_features))
        self.optimiser = make_optimiser(self.network, settings.optimiser)
        if self.fabric.world_size > 1 and self.fabric.device.type == "cuda":
            self.network = nn.SyncBatchNorm.convert_sync_batchnorm(  # type: ignore[no-untyped-call]
                self.network
            )
        if self.fabric.device.type == "cuda":
            # twice as fast for convolutions
            self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if settings.run.compile:
            backbone.compile()
        self.wrapped, self.optimiser = self.fabric.setup(self.network, self.optimiser)
        decay = settings.optimiser.weight_average if method.averages_weights else 0.0
        self.average = WeightAverage(self._weights(), decay)
        self.feed = Feed(pixels, self.fabric.device)
        self.stored: StoredViews | None = None
        self.extractor = Extractor(
            backbone, self.views, self.feed, self.fabric, keep_inputs=settings.run.token_cache
        )

    def run(self, fingerprint: str, listener: Listener) -> Trained:
        """Train from the beginning, or from the folder's checkpoint on."""
        identity = {
            "settings": _what_matters(self.settings),
            "data": {
                "images": fingerprint,
                "n_rows": len(self.codes),
                "labels": _fingerprint(self.all_codes),
                "method": type(self.method).__name__,
            },
        }
        state = self._resume(identity)
        try:
            listener.start(self.settings.optimiser.epochs, state.epoch)
            return self._epochs(state, identity, listener)
        finally:
            listener.end()

    def _epochs(self, state: _State, identity: dict[str, Any], listener: Listener) -> Trained:
        """Algorithm 1."""
        while state.epoch < self.settings.optimiser.epochs:
            started = time.perf_counter()
            with self.average.in_place():
                found = self._e_step(state)
                self._keep_best(state, found, identity)
            e_step_seconds = time.perf_counter() - started
            loss = self._train_epoch(state, found, listener)
            if found is not None and self.settings.estep.moves_after_epoch:
                found = self._moves(found, state)
            seconds = time.perf_counter() - started
            self._end_epoch(state, found, loss, seconds, e_step_seconds)
            self._save(LAST, state, identity, momentum=True)
            listener.epoch(state.history[-1])
        return self._finish(state, identity, listener)

    # --- E-step

    def _e_step(self, state: _State) -> _Found | None:
        """Features of all images; then K and the components, from the last partition on."""
        if not self.method.uses_prototypes:
            return None
        Z = self.extractor.features()
        if state.epoch == 0 and state.count is None:
            state.count = self._count(Z)
        z = functional.normalize(Z, dim=1)
        due = state.epoch % self.settings.estep.moves_every == 0
        moves = due and not self.settings.estep.moves_after_epoch
        found = self._find(z, state, moves=moves)
        state.labels = found.labels
        return found

    def _count(self, Z: Tensor) -> CategoryCount | None:
        """Count the categories before labels have drawn known classes together."""
        settings, n_known = self.settings, int(self.codes.max()) + 1
        if settings.estep.acceptance == "literal" or n_known < 2:
            return None
        if settings.estep.n_components is not None:
            return known_count(self.codes, settings.estep.n_components)
        # random weights say nothing before training
        if (
            settings.estep.count_on or ("now" if settings.network.weights == "random" else "start")
        ) == "now":
            return None
        count = None
        if self.fabric.is_global_zero:
            X = Z.cpu().numpy()
            count = count_categories(X, self.codes, random_state=settings.run.seed)
        return self.fabric.broadcast(count)

    def _find(self, z: Tensor, state: _State, *, moves: bool) -> _Found:
        """Fit the mixture in the first process, for all."""
        epoch, labels = state.epoch, state.labels
        steered = self.settings.estep.acceptance == "calibrated"
        if steered and moves and pcl_weight(epoch, self.settings.losses.warmup_epochs) < 1:
            labels = None  # the first partitions are poor ones to go on from
        found = None
        if self.fabric.is_global_zero:
            seed = _seed_of(self.settings.run.seed, epoch)
            reduced = principal_space(
                z,
                z.shape[1]
                if self.settings.estep.pca == "off"
                else self.settings.estep.n_directions,
            )
            X = reduced.project(z).cpu().numpy()
            clusters = self.method.partition(
                X, self.codes, labels, moves=moves, seed=seed, count=state.count
            )
            if self._expects_sizes(state, clusters.labels, clusters.n_components):
                clusters = balance(clusters, self.codes, z.device)
            prototypes = prototypes_from(
                z,
                self.codes,
                clusters,
                reduced,
                self.settings.estep,
                self.settings.losses.prototype_temperature,
            )
            found = _Found(
                z=z.cpu()[:0],  # each process has its own
                labels=clusters.labels,
                n_known=clusters.n_known,
                prototypes=prototypes.to(torch.device("cpu")),
                accuracy=clusters.accuracy(self.all_codes, self.held_out),
            )
        shared: _Found = self.fabric.broadcast(found)  # type: ignore[assignment]
        return replace(shared, z=z, prototypes=shared.prototypes.to(self.fabric.device))

    def _expects_sizes(self, state: _State, labels: Ints, n_components: int) -> bool:
        """Whether components are to have the sizes that known classes suggest."""
        wanted = self.method.expects_sizes and self.settings.losses.size_weight > 0
        # a known class that no unlabelled row is of has no size to expect
        all_there = state.count is None or state.count.n_absent == 0
        able = wanted and all_there and self.settings.estep.pca != "batch"
        return able and sizes_are_alike(self.codes, labels, n_components)

    def _moves(self, found: _Found, state: _State) -> _Found:
        """Splits and merges after the epoch, on the features from before it, as printed."""
        due = (state.epoch + 1) % self.settings.estep.moves_every == 0
        return self._find(found.z, state, moves=due)

    def _keep_best(self, state: _State, found: _Found | None, identity: dict[str, Any]) -> None:
        """Keep the present weights, if they are the best so far on held-out labels."""
        if found is None or found.accuracy is None or not self.held_out.any():
            return
        # before λ(t) is 1 the prototypes have not yet had their say
        early = state.epoch < min(
            self.settings.losses.warmup_epochs, self.settings.optimiser.epochs
        )
        if not early and found.accuracy >= state.best_accuracy:
            state.best_accuracy, state.best_epoch = found.accuracy, state.epoch
            self._save(BEST, state, identity, momentum=False)

    # --- M-step

    def _train_epoch(
        self,
        state: _State,
        found: _Found | None,
        listener: Listener,
    ) -> float:
        """One epoch of the method's loss; returns its mean."""
        settings, epoch = self.settings, state.epoch
        for group in self.optimiser.param_groups:
            group["lr"] = cosine(epoch, settings.optimiser.epochs, settings.optimiser.learning_rate)
        rows = epoch_batches(
            self.codes != UNLABELLED,
            settings.optimiser.n_labelled_per_batch,
            settings.optimiser.n_unlabelled_per_batch,
            seed=settings.run.seed,
            epoch=epoch,
        )
        codes = self._put(self.codes)
        assigned = codes if found is None else self._put(found.labels)
        losses = torch.zeros(len(rows), device=self.fabric.device)
        torch.manual_seed(_seed_of(settings.run.seed, epoch))  # chance inside the network
        self.wrapped.train()
        pairs = self._pairs(listener)
        for i, two in enumerate(pairs.batches(rows, epoch)):
            whole = self._put(whole_order(rows[i], self.fabric))
            z, h = self._forward(two, past_frozen_part=pairs.past_frozen_part)
            batch = Batch(
                z,
                h,
                codes[whole],
                assigned[whole],
                None if found is None else found.prototypes,
                epoch,
            )
            loss = self.method.loss(batch)
            first = i - i % settings.optimiser.accumulate
            self.fabric.backward(loss / min(settings.optimiser.accumulate, len(rows) - first))
            if (i + 1) % settings.optimiser.accumulate == 0 or i + 1 == len(rows):
                self.optimiser.step()
                self.optimiser.zero_grad(set_to_none=True)
                self.average.update()
            losses[i] = loss.detach()
            listener.batch(epoch, i + 1, len(rows))
        return self._mean_loss(losses.cpu().numpy(), epoch)

    def _pairs(self, listener: Listener) -> FreshViews | StoredViews:
        """Where views come from; the store is filled at its first use."""
        settings = self.settings
        if settings.run.n_stored_views == 0:
            return FreshViews(self.views, self.feed, self.fabric, seed=settings.run.seed)
        if self.stored is None:
            listener.say("Putting views through the frozen part")
            self.stored = StoredViews(
                self.network.backbone,
                self.views,
                self.feed,
                self.fabric,
                n_views=settings.run.n_stored_views,
                seed=settings.run.seed,
            )
        return self.stored

    def _forward(self, two: Tensor, *, past_frozen_part: bool) -> tuple[Tensor, Tensor]:
        """Features (2, n, d) and head outputs (2, n, p) of two views, of all processes."""
        z, h = self.wrapped(two, past_frozen_part=past_frozen_part)
        shape = (2, len(two) // 2, -1)
        return gather(z.view(shape), self.fabric, 1), gather(h.view(shape), self.fabric, 1)

    def _put(self, values: Ints) -> Tensor:
        return torch.from_numpy(values).to(self.fabric.device, non_blocking=True)

    def _mean_loss(self, losses: Floats, epoch: int) -> float:
        """The mean loss; stops if a loss or a weight is no number any more."""
        bad = np.flatnonzero(~np.isfinite(losses))
        if len(bad) == 0 and all(bool(w.isfinite().all()) for w in self._weights().values()):
            return float(losses.mean())
        batch = int(bad[0]) if len(bad) else len(losses) - 1
        last = self.folder / LAST
        raise InputError(
            f"The loss became {losses[batch]} in epoch {epoch}, batch {batch}, or a weight no "
            f"number after it. The last good checkpoint: {last if last.exists() else 'none yet'}. "
            f"Try a learning_rate below {self.settings.optimiser.learning_rate}, in a new "
            "run folder."
        )

    # --- between epochs

    def _end_epoch(
        self,
        state: _State,
        found: _Found | None,
        loss: float,
        seconds: float,
        e_step_seconds: float,
    ) -> None:
        settings = self.settings
        batch_size = settings.optimiser.batch_size
        n_views = 2 * math.ceil(len(self.codes) / batch_size) * batch_size
        record = Epoch(
            epoch=state.epoch,
            loss=loss,
            pcl_weight=pcl_weight(state.epoch, settings.losses.warmup_epochs),
            learning_rate=cosine(
                state.epoch, settings.optimiser.epochs, settings.optimiser.learning_rate
            ),
            n_components=None if found is None else found.n_components,
            n_novel=None if found is None else found.n_components - found.n_known,
            accuracy=None if found is None else found.accuracy,
            seconds=round(seconds, 3),
            e_step_seconds=round(e_step_seconds, 3),
            images_per_second=round(n_views / seconds, 1),
        )
        if found is not None:
            state.labels = found.labels
        state.history.append(record)
        state.epoch += 1

    def _finish(self, state: _State, identity: dict[str, Any], listener: Listener) -> Trained:
        """Select the weights, then fit the mixture once more with all labels and all starts."""
        listener.say("Finding the categories in the finished features")
        self.average.take_over()
        if not self.method.uses_prototypes:
            Z = self.extractor.features().cpu().numpy()
            return Trained(self.network, self.views, Z, None, None, state.history, state.epoch)
        self._keep_best(state, self._e_step(state), identity)
        selected = state.epoch
        self.fabric.barrier()  # until the best weights are written
        if self.settings.run.selection == "validation" and state.best_epoch >= 0:
            tensors, best = load_checkpoint(self.folder / BEST)
            self._set_weights(tensors)
            selected, state.labels = best["epoch"], tensors["labels"].numpy()
        Z = self.extractor.features().cpu().numpy()
        mixture = rehearsal = None
        if self.fabric.is_global_zero and self.method.ends_with_mixture:
            mixture = self._final_mixture(Z, state)
            rehearsal = self._rehearse(mixture, Z, listener)
        mixture, rehearsal = self.fabric.broadcast((mixture, rehearsal))
        return Trained(self.network, self.views, Z, mixture, rehearsal, state.history, selected)

    def _final_mixture(self, Z: Floats, state: _State) -> SplitMergeMixture:
        seed, labels = self.settings.run.seed, state.labels
        assert labels is not None  # an E-step came before
        n_found = int(labels.max()) + 1
        literal = self.settings.estep.acceptance == "literal"
        if literal and self.settings.estep.n_components in (None, n_found):
            # the paper's K is where the loop has brought it
            mixture = mixture_for(self.settings.estep, Z.shape[1], n_components=n_found, n_init=1)
            return mixture.set_params(random_state=seed).refit(Z, self.y, labels)
        sized = self._expects_sizes(state, labels, n_found)
        changes = {"random_state": seed, "expect_sizes": sized}
        mixture = mixture_for(self.settings.estep, Z.shape[1], count=state.count, **changes)
        mixture.fit(Z, self.y)
        if self.settings.estep.n_components not in (None, mixture.n_components_):
            # moves did not come to the K that is known: k-means does
            mixture = mixture_for(self.settings.estep, Z.shape[1], **changes)
            mixture.fit(Z, self.y)
        return mixture

    def _rehearse(
        self, mixture: SplitMergeMixture, Z: Floats, listener: Listener
    ) -> Rehearsal | None:
        k_given = self.settings.estep.n_components is not None
        if not self.settings.run.rehearse or k_given or mixture.n_known_ < 4:
            return None
        listener.say("Rehearsing with hidden classes")
        # whether sizes are alike is asked again in each draw, if it was to be asked at all
        sized = None if mixture.expect_sizes else False
        changes = {"random_state": self.settings.run.seed, "expect_sizes": sized}
        quick = mixture_for(self.settings.estep, Z.shape[1], n_init=1, **changes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DiscoveryWarning)
            return rehearse(quick, Z, self.y, random_state=self.settings.run.seed)

    # --- checkpoints

    def _weights(self) -> dict[str, Tensor]:
        """What training changes: parameters that are trained, and all buffers."""
        trained = {
            name: value for name, value in self.network.named_parameters() if value.requires_grad
        }
        return {f"network.{name}": value for name, value in trained.items()} | {
            f"network.{name}": value for name, value in self.network.named_buffers()
        }

    def _set_weights(self, tensors: dict[str, Tensor]) -> None:
        with torch.no_grad():
            for name, value in self._weights().items():
                value.copy_(tensors[name])

    def _save(self, name: str, state: _State, identity: dict[str, Any], *, momentum: bool) -> None:
        """Write a checkpoint and the lines of all epochs so far."""
        if not self.fabric.is_global_zero:
            return
        tensors = self._weights()
        if momentum:
            tensors |= self.average.tensors
            slots = self.optimiser.state
            tensors |= {
                f"momentum.{key}": slots[value]["momentum_buffer"]
                for key, value in self.network.named_parameters()
                if slots.get(value, {}).get("momentum_buffer") is not None
            }
        if state.labels is not None:
            tensors["labels"] = torch.from_numpy(state.labels)
        plain = {
            "epoch": state.epoch,
            "history": [asdict(record) for record in state.history],
            "count": None if state.count is None else asdict(state.count),
            "best_accuracy": state.best_accuracy,
            "best_epoch": state.best_epoch,
        }
        save_checkpoint(self.folder / name, tensors, plain | identity)
        if name == LAST:
            lines = "".join(json.dumps(asdict(record)) + "\n" for record in state.history)
            write_atomically(self.folder / "epochs.jsonl", lines.encode())

    def _resume(self, identity: dict[str, Any]) -> _State:
        """Go on from the folder's checkpoint, if there is one of the same run."""
        path = self.folder / LAST
        if not path.exists():
            return _State()
        tensors, plain = load_checkpoint(path)
        for what in ("settings", "data"):
            difference = differences(plain[what], identity[what])
            if difference:
                raise InputError(
                    f"{self.folder} holds a run with other {what}: {difference}. Choose another "
                    "folder, or remove this one to start again."
                )
        self._set_weights(tensors)
        self.average.load(tensors)
        for name, value in self.network.named_parameters():
            if f"momentum.{name}" in tensors:
                buffer = tensors[f"momentum.{name}"].to(value.device)
                self.optimiser.state[value]["momentum_buffer"] = buffer
        return _State(
            epoch=plain["epoch"],
            labels=tensors["labels"].numpy() if "labels" in tensors else None,
            count=_count_from(plain["count"]),
            history=[Epoch(**record) for record in plain["history"]],
            best_accuracy=plain["best_accuracy"],
            best_epoch=plain["best_epoch"],
        )


def hold_out(codes: Ints, share: float, seed: int) -> Bools:
    """Labelled rows that training does not see: a share of each class, never all of one.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Known class of each row or -1.
    share : float
        Of the labelled rows of each class, rounded to the nearest.
    seed : int
        Of the draw.

    Returns
    -------
    ndarray of bool, shape (n,)
        Rows that are held out.
    """
    held_out = np.zeros(len(codes), dtype=bool)
    rng = np.random.default_rng(seed)
    for code in range(int(codes.max()) + 1):
        rows = rng.permutation(np.flatnonzero(codes == code))
        held_out[rows[: min(round(share * len(rows)), len(rows) - 1)]] = True
    return held_out


def make_optimiser(network: Network, settings: OptimiserSettings) -> torch.optim.SGD:
    """SGD over what is trained; no decay on biases and norms."""
    trained = [value for value in network.parameters() if value.requires_grad]
    matrices = [value for value in trained if value.ndim > 1]
    vectors = [value for value in trained if value.ndim <= 1]
    groups = [
        {"params": matrices, "weight_decay": settings.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.SGD(groups, lr=settings.learning_rate, momentum=settings.momentum)


def cosine(epoch: int, n_epochs: int, learning_rate: float) -> float:
    """Learning rate of an epoch: a half cosine from `learning_rate` to a thousandth of it."""
    least = learning_rate * 1e-3
    return least + (learning_rate - least) * (1 + math.cos(math.pi * epoch / n_epochs)) / 2


def _seed_of(seed: int, epoch: int) -> int:
    """A seed for an epoch, the same whether or not the run was interrupted before it."""
    return int(np.random.default_rng([seed, epoch]).integers(2**31))


def _count_from(plain: dict[str, Any] | None) -> CategoryCount | None:
    """A count as JSON gave it back."""
    if plain is None:
        return None
    low, high = plain["interval"]
    return CategoryCount(**{**plain, "interval": (low, high)})


def _check_rows(partial: PartialLabels) -> None:
    n_rows = len(partial.codes)
    if n_rows < 2:
        raise InputError(f"Training needs at least two images; there are {n_rows}.")


def _what_matters(settings: Settings) -> dict[str, Any]:
    """Settings that change the result; how the work is spread over devices does not."""
    spread = {"devices", "num_nodes", "compile", "token_cache"}
    return {name: value for name, value in settings.as_dict().items() if name not in spread}


def _fingerprint(codes: Ints) -> str:
    return hashlib.sha256(np.ascontiguousarray(codes).tobytes()).hexdigest()[:16]
