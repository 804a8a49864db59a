"""`GPC`: Algorithm 1 as an estimator on images."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from newfound.arrays import Doubles, Floats, Ints, LabelsLike
from newfound.deep.images.cache import cache_pictures
from newfound.deep.records import Listener
from newfound.deep.settings import Settings
from newfound.deep.trained import Trained
from newfound.deep.trainer import train
from newfound.errors import InputError
from newfound.mixture.estimator import SplitMergeMixture

Images = npt.NDArray[np.uint8] | Sequence[str | Path]


class GPC:
    """Learns the representation and the categories of images together.

    Parameters
    ----------
    settings : Settings, optional
        All settings. The defaults follow the paper, with the habits of later work;
        `Settings.paper()` is the paper to the letter.
    out : path, optional
        Run folder, for checkpoints and one line per epoch. A second `fit` with the same images
        and settings resumes an interrupted run. By default a temporary folder.
    listener : Listener, optional
        Called after every batch and epoch.
    **changes
        Single settings, such as ``epochs=20``.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Category of each image; labelled images keep their class.
    n_known_, n_novel_, n_components_ : int
        K^l, K^n and K.
    n_novel_interval_ : tuple of float or None
        90 % interval of K^n.
    classes_, category_names_ : ndarray
        Names of the known classes and of all categories.
    mixture_ : SplitMergeMixture
        The mixture, fitted to the finished features.
    trained_ : Trained
        Network, features and history.
    history_ : list of Epoch
        One record for each epoch.

    Examples
    --------
    >>> from newfound.deep import GPC
    >>> gpc = GPC(model="vit_small_patch16_224.dino", epochs=50)  # doctest: +SKIP
    >>> gpc.fit(paths, y).n_novel_  # doctest: +SKIP
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        out: str | Path | None = None,
        listener: Listener | None = None,
        **changes: Any,
    ) -> None:
        self.settings = (settings or Settings()).with_changes(**changes)
        self.out = out
        self.listener = listener

    def fit(self, X: Images, y: LabelsLike) -> GPC:
        """Train on images, and find their categories.

        Parameters
        ----------
        X : ndarray of uint8, shape (n, h, w), (n, h, w, 3) or (n, 3, h, w), or paths
            All images, labelled and unlabelled.
        y : array-like of shape (n,)
            Partial labels; -1, None, NaN or an empty text where an image is unlabelled.

        Returns
        -------
        GPC
            This estimator.
        """
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(self.out or temporary)
            pixels, fingerprint = self._pixels(X, folder)
            self.trained_ = train(
                pixels, y, self.settings, folder, fingerprint=fingerprint, listener=self.listener
            )
        self.mixture_ = _mixture_of(self.trained_)
        self.history_ = self.trained_.history
        for name in ("labels_", "n_known_", "n_novel_", "n_components_", "n_novel_interval_"):
            setattr(self, name, getattr(self.mixture_, name))
        self.classes_ = self.mixture_.classes_
        self.category_names_ = self.mixture_.category_names_
        return self

    def transform(self, X: Images) -> Floats:
        """Features of images, shape (n, d)."""
        with tempfile.TemporaryDirectory() as temporary:
            pixels, _ = self._pixels(X, Path(temporary))
            return self.trained_.encoder.features(pixels)

    def predict(self, X: Images) -> Ints:
        """Category of each image, by the nearest prototype."""
        return self.mixture_.predict(self.transform(X))

    def predict_proba(self, X: Images) -> Doubles:
        """Probability of each category for each image, shape (n, K)."""
        return self.mixture_.predict_proba(self.transform(X))

    def _pixels(self, X: Images, folder: Path) -> tuple[npt.NDArray[np.uint8], str]:
        """Images in the format of the trainer, and their identity."""
        if isinstance(X, np.ndarray) and X.dtype.kind not in "OUS":
            pixels = as_pixels(X)
            return pixels, hashlib.sha256(pixels.tobytes()).hexdigest()[:16]
        paths = [Path(path) for path in X]
        cache = cache_pictures(paths, stored_size(self.settings), folder / "pictures")
        if cache.skipped:
            index, reason = cache.skipped[0]
            raise InputError(
                f"{len(cache.skipped)} of {len(paths)} pictures cannot be read, for instance "
                f"{paths[index]}: {reason}. Leave them out, or use `newfound train`, which "
                "skips them."
            )
        return cache.pixels, cache.fingerprint


def stored_size(settings: Settings) -> int:
    """Side at which pictures are stored: the largest window then fills the network's input."""
    return round(settings.network.image_size / settings.views.crop_max)


def as_pixels(X: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Convert images of any usual shape to uint8 (n, 3, s, s).

    Parameters
    ----------
    X : ndarray of uint8
        Shape (n, h, w), (n, h, w, 3) or (n, 3, h, w), with h = w.
    """
    given = X.shape
    if X.dtype != np.uint8:
        raise InputError(f"Images must be uint8 from 0 to 255; got {X.dtype}.")
    if X.ndim == 3:
        X = np.repeat(X[:, None], 3, axis=1)
    elif X.ndim == 4 and X.shape[3] == 3 and X.shape[1] != 3:
        X = X.transpose(0, 3, 1, 2)
    if X.ndim != 4 or X.shape[1] != 3 or X.shape[2] != X.shape[3]:
        raise InputError(
            "Images must be square, with the shape (n, s, s), (n, s, s, 3) or (n, 3, s, s); got "
            f"{given}. Pass paths instead to have pictures cropped to squares."
        )
    return np.ascontiguousarray(X)


def _mixture_of(trained: Trained) -> SplitMergeMixture:
    if trained.mixture is None:
        raise InputError("This method finds no categories. Fit a mixture to its features.")
    return trained.mixture
