"""Two views of each image of a batch: new ones in every epoch, or from a store.

If only the last block or stage is trained, most of an epoch's time goes into the frozen part, which
always gives the same output for the same view. The store passes a few random views of each image
through the frozen part once; a batch then takes two of them for each image.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator

import numpy as np
import torch
from lightning_fabric import Fabric
from torch import Tensor

from newfound.arrays import Floats, Ints
from newfound.deep.engine import share_of
from newfound.deep.images.extraction import SHARE_OF_MEMORY, chunk_size, free_memory
from newfound.deep.images.feed import Feed
from newfound.deep.images.views import Views, draw
from newfound.deep.network.backbone import Backbone
from newfound.errors import InputError
from newfound.progress import no_progress

#: Images whose views are drawn together, so that chunks of any size get the same views.
_DRAWN_TOGETHER = 512


class Shelf:
    """Place for the views of one store, so that trainings one after another can share them.

    Attributes
    ----------
    key : str
        Identity of images, views, seed and frozen part.
    inputs : Tensor of shape (n, n_views, ...), or None
        The outputs of the frozen part. A process may get them from another one.
    """

    def __init__(self) -> None:
        self.key = ""
        self.inputs: Tensor | None = None


_shelf: Shelf | None = None


@contextlib.contextmanager
def shared_views(shelf: Shelf | None = None) -> Iterator[None]:
    """Within it, a training takes its stored views from the shelf, or puts them there.

    Parameters
    ----------
    shelf : Shelf, optional
        Keeps the views of the last training, and their memory; by default the one that is used
        already, or a new one.
    """
    global _shelf
    outer = _shelf
    _shelf = shelf or outer or Shelf()
    try:
        yield
    finally:
        _shelf = outer


class FreshViews:
    """New random views in every epoch.

    Parameters
    ----------
    views : Views
        How a view is made.
    feed : Feed
        The images.
    fabric : Fabric
        The engine; each process works on its share of a batch.
    seed : int
        Seed of the draws, together with epoch and batch.
    """

    past_frozen_part = False

    def __init__(self, views: Views, feed: Feed, fabric: Fabric, *, seed: int) -> None:
        self._views, self._feed, self._fabric, self._seed = views, feed, fabric, seed

    def batches(self, rows: Ints, epoch: int, first: int = 0) -> Iterator[Tensor]:
        """Yield the views of each batch, (2·m, 3, s, s): all first views, then all second ones.

        Parameters
        ----------
        rows : ndarray of shape (n_batches, n)
            Images of the whole batches.
        epoch : int
            Epoch that the draws are made for.
        first : int, default=0
            The batch to start at; those before it are not made.
        """
        mine = share_of(np.arange(rows.shape[1]), self._fabric)
        for i, images in enumerate(self._feed.batches(rows[first:, mine]), start=first):
            draws = draw(rows.shape[1], seed=self._seed, epoch=epoch, batch=i)[:, mine]
            two = self._views.random(torch.cat([images, images]), np.concatenate(draws))
            if two.device.type == "cuda":
                two = two.contiguous(memory_format=torch.channels_last)
            yield two


class StoredViews:
    """A few random views of every image, as the outputs of the frozen part.

    Parameters
    ----------
    backbone : Backbone
        A network with a frozen part.
    views : Views
        How a view is made.
    feed : Feed
        The images.
    fabric : Fabric
        The engine; each process stores the views of all images.
    n_views : int
        Views of each image, at least 2.
    seed : int
        Seed of the views, and of the choice among them.
    progress : callable, optional
        Called with the number of images that are done, and of all.
    """

    past_frozen_part = True

    def __init__(
        self,
        backbone: Backbone,
        views: Views,
        feed: Feed,
        fabric: Fabric,
        *,
        n_views: int,
        seed: int,
        progress: Callable[[int, int], object] = no_progress,
    ) -> None:
        if n_views < 2:
            raise InputError(f"n_stored_views must be 0, or at least 2; got {n_views}.")
        if not backbone.is_split:
            raise InputError(
                f"n_stored_views={n_views} needs a network with a frozen part. All of "
                f"{backbone.name} is trained, or its parts are not known. Set n_stored_views=0."
            )
        self._fabric, self._n_views, self._seed = fabric, n_views, seed
        shelf = _shelf or Shelf()
        key = "" if _shelf is None else _key(backbone, views, feed, n_views, seed)
        if shelf.inputs is None or shelf.key != key:
            shelf.inputs = None  # its memory is needed
            shelf.key, shelf.inputs = key, self._compute(backbone, views, feed, progress)
        self._inputs = shelf.inputs

    def _compute(
        self,
        backbone: Backbone,
        views: Views,
        feed: Feed,
        progress: Callable[[int, int], object],
    ) -> Tensor:
        """Random views of all images through the frozen part, (n, n_views, ...)."""
        chunks = list(self._chunks(len(feed), chunk_size(self._fabric.device, backbone.image_size)))
        stored: Tensor | None = None
        was_training = backbone.training
        backbone.eval()
        with torch.no_grad(), self._fabric.autocast():
            batches = feed.batches([rows for rows, _ in chunks])
            for (rows, all_draws), images in zip(chunks, batches, strict=True):
                for view, draws in enumerate(all_draws):
                    seen = _compact(backbone.before(views.random(images, draws)))
                    if stored is None:
                        _check_room(seen, len(feed), self._n_views)
                        stored = seen.new_empty((len(feed), self._n_views, *seen.shape[1:]))
                    stored[rows[0] : rows[-1] + 1, view] = seen
                progress(int(rows[-1]) + 1, len(feed))
        backbone.train(was_training)
        assert stored is not None  # training needs images
        return stored

    def _chunks(self, n_images: int, size: int) -> Iterator[tuple[Ints, Floats]]:
        """At most `size` images at a time, and the random numbers of their views."""
        for place, start in enumerate(range(0, n_images, _DRAWN_TOGETHER)):
            rows = np.arange(start, min(start + _DRAWN_TOGETHER, n_images))
            draws = draw(len(rows), seed=self._seed, epoch=0, batch=place, n_views=self._n_views)
            for i in range(0, len(rows), size):
                yield rows[i : i + size], draws[:, i : i + size]

    def batches(self, rows: Ints, epoch: int, first: int = 0) -> Iterator[Tensor]:
        """Yield the inputs of the trained part for each batch, (2·m, ...).

        Parameters
        ----------
        rows : ndarray of shape (n_batches, n)
            Images of the whole batches.
        epoch : int
            Epoch that the views are chosen for.
        first : int, default=0
            The batch to start at; those before it are not made.
        """
        rng = np.random.default_rng([self._seed, epoch, 1])  # 1: apart from the batches
        one = rng.integers(self._n_views, size=rows.shape)
        other = (one + rng.integers(1, self._n_views, size=rows.shape)) % self._n_views
        mine = share_of(np.arange(rows.shape[1]), self._fabric)
        chosen = np.stack([one, other], axis=1)[:, :, mine].reshape(len(rows), -1)
        images = np.tile(rows[:, mine], (1, 2))
        index = torch.from_numpy(np.stack([images, chosen], axis=1)).to(self._inputs.device)
        for image, view in index[first:]:
            yield self._inputs[image, view].float()


def _key(backbone: Backbone, views: Views, feed: Feed, n_views: int, seed: int) -> str:
    """Identity of stored views: images, how views are made and drawn, and the frozen part."""
    digest = hashlib.blake2b(f"{feed.digest()} {views} {n_views} {seed}".encode(), digest_size=16)
    for name, value in backbone.frozen_tensors().items():
        digest.update(f"{name} {tuple(value.shape)}".encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _compact(inputs: Tensor) -> Tensor:
    """Half precision on a GPU, where the network computes in bf16 anyway."""
    return inputs.half() if inputs.device.type == "cuda" else inputs


def _check_room(first: Tensor, n_images: int, n_views: int) -> None:
    need = first[0].numel() * first.element_size() * n_images * n_views
    room = SHARE_OF_MEMORY * free_memory(first.device)
    if need > room:
        raise InputError(
            f"{n_views} stored views need {need / 2**30:.1f} GiB, more than the "
            f"{room / 2**30:.1f} GiB to spare. Set n_stored_views lower, or 0 to draw new views "
            "in every epoch."
        )
