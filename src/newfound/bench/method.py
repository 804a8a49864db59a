"""The interface of all methods of the benchmark: `fit(images or features, y)`.

A method never sees a label of a novel class. It gets the number of classes K as `n_components` for
rows of a table with "known K"; otherwise it finds K itself, or the runner estimates K for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from newfound.arrays import Floats, Ints, LabelsLike
from newfound.bench.case import KSource
from newfound.deep.method import Method
from newfound.deep.network.identity import weights_id
from newfound.deep.records import Epoch, Listener
from newfound.deep.settings import Settings
from newfound.deep.trainer import Trained, train
from newfound.errors import InputError
from newfound.labels import encode_labels
from newfound.own_folder import locked

Self = TypeVar("Self", bound="BenchMethod")


class Knob(NamedTuple):
    """A method's own hyper-parameter: its name, its value, and two other values for tuning.

    The name is that of a setting, or one that only this method has.
    """

    name: str
    value: float
    others: tuple[float, float]


class BenchMethod(ABC):
    """A method of the benchmark.

    Parameters
    ----------
    n_components : int, optional
        K, known and novel together. Without it, the method finds K itself if it can.
    settings : Settings
        Settings of the training, the same for all methods: backbone, views, epochs, optimiser,
        seed.
    folder : Path
        Folder for checkpoints. An interrupted training resumes from the same folder.
    listener : Listener, optional
        Called after every batch and epoch.
    n_starts : int, default=100
        Number of starts of semi-supervised k-means, for methods that use it.
    start_file : Path, optional
        File for the features before training, for methods that cluster them.
    knob_value : float, optional
        Value of the method's own hyper-parameter, `knob`, if it is not a setting.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Cluster of each row.
    n_components_ : int
        K that was given or found.
    k_source_ : str
        Where K came from.
    features_ : ndarray of shape (n, d)
        The features that were clustered: those after training, or the given ones.
    history_ : list of Epoch
        One for each epoch; empty without training.
    n_novel_interval_ : tuple of 2 float, or None
        90 % interval of K^n, if the method counts.
    """

    title: ClassVar[str]
    source: ClassVar[str]
    #: Whether it can also cluster finished features.
    takes_features: ClassVar[bool] = False
    #: Whether it trains, and whether its training does not depend on K.
    learns: ClassVar[bool] = True
    learns_without_k: ClassVar[bool] = False
    #: Whether it ends with semi-supervised k-means, whose number of starts is then recorded.
    uses_starts: ClassVar[bool] = False
    #: Whether it can use principal directions, and whether the paper's main row uses them.
    uses_pca: ClassVar[bool] = False
    pca_by_default: ClassVar[bool] = False
    #: Variants of the paper that it has: "joint", "prototypes".
    variants: ClassVar[frozenset[str]] = frozenset()
    #: Whether it finds K itself.
    finds_k: bool = False
    #: How it finds K, or how K is found for it, if nothing else is asked for.
    own_k: ClassVar[KSource] = "brent"
    #: Settings that differ from those that all methods share, unless they are given.
    defaults: ClassVar[Mapping[str, Any]] = {"weight_average": 0.0, "known_rows": "labelled"}
    #: Id of the method whose training it shares, if it only clusters in another way.
    trained_as: ClassVar[str] = ""
    #: Its own hyper-parameter; None if nothing is tuned.
    knob: ClassVar[Knob | None] = None

    labels_: Ints
    n_components_: int
    k_source_: str
    #: Identity of images and K, checked when an interrupted training is resumed.
    fingerprint: str = ""
    features_: Floats
    history_: list[Epoch]
    n_novel_interval_: tuple[float, float] | None = None

    def __init__(
        self,
        n_components: int | None = None,
        *,
        settings: Settings,
        folder: Path,
        listener: Listener | None = None,
        n_starts: int = 100,
        start_file: Path | None = None,
        knob_value: float | None = None,
    ) -> None:
        default = 0.0 if self.knob is None else self.knob.value
        self.knob_value = default if knob_value is None else knob_value
        self.start_file = start_file
        self.n_starts = n_starts
        self.n_components = n_components
        self.settings = settings
        self.folder = folder
        self.listener = listener

    def resolved(self, *, trains: bool = True) -> dict[str, Any]:
        """All settings that the method uses, and its own hyper-parameters, for a record.

        Parameters
        ----------
        trains : bool
            Whether it has images to train on. Otherwise, or for a method that does not train,
            settings of the optimiser and of the losses are left out.
        """
        settings, values = self.own_settings(), self.own_settings().as_dict()
        values["weights"] = weights_id(settings.network.weights)  # no path in a record
        if self.uses_starts:
            values["n_starts"] = self.n_starts
        if not (trains and self.learns):
            unused = {**asdict(settings.optimiser), **asdict(settings.losses)}
            return {name: value for name, value in values.items() if name not in unused}
        own = {} if self.knob is None else {self.knob.name: self.knob_value}
        return {**own, **values}

    def own_settings(self) -> Settings:
        """The settings, with the values of this method where they differ."""
        return self.settings

    def fit(self: Self, X: npt.NDArray[Any], y: LabelsLike) -> Self:
        """Learn from images or cluster features.

        Parameters
        ----------
        X : ndarray of uint8, shape (n, 3, s, s), or of float, shape (n, d)
            Images, or features.
        y : array-like of shape (n,)
            Partial labels.
        """
        codes = encode_labels(y, len(X)).codes
        if self.n_components is None and not self.finds_k:
            raise InputError(f"{self.title} cannot find K; give n_components.")
        self.k_source_ = "mixture" if self.n_components is None else "given"
        if X.ndim == 4:
            self._fit_images(X, codes)
        elif self.takes_features:
            self.history_, self.features_ = [], np.asarray(X)
            self._fit_features(self.features_, codes)
        else:
            raise InputError(f"{self.title} learns from images; it cannot use features.")
        return self

    @abstractmethod
    def _fit_images(self, pixels: npt.NDArray[np.uint8], codes: Ints) -> None:
        """Train, and set all attributes."""

    def _fit_features(self, X: Floats, codes: Ints) -> None:
        """Cluster finished features, and set `labels_` and `n_components_`."""
        raise AssertionError(f"{type(self).__name__} says that it takes features")

    def _train(self, learner: Method, pixels: npt.NDArray[np.uint8], codes: Ints) -> Trained:
        """Run the training loop that all methods share; sets `features_` and `history_`."""
        learner.averages_weights = True  # offered to all methods; the setting says whether
        self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.folder):  # cases that share a training may be run at the same time
            trained = train(
                pixels,
                codes,
                self.settings,
                self.folder,
                method=learner,
                fingerprint=self.fingerprint,
                listener=self.listener,
            )
        self.features_, self.history_ = trained.features, trained.history
        return trained


class Classifier(BenchMethod):
    """A method that trains a classifier with K outputs, those of the known classes first."""

    @abstractmethod
    def learner(self, n_known: int, n_components: int) -> ClassifierLearner:
        """The head and the loss that are trained."""

    def _fit_images(self, pixels: npt.NDArray[np.uint8], codes: Ints) -> None:
        assert self.n_components is not None
        learner = self.learner(int(codes.max()) + 1, self.n_components)
        learner.knob = self.knob_value
        trained = self._train(learner, pixels, codes)
        head = trained.network.head.eval()
        device = next(head.parameters()).device
        with torch.no_grad():
            features = torch.from_numpy(trained.features).to(device)
            logits = learner.logits(head(features))
        self.labels_ = logits.argmax(dim=1).cpu().numpy()
        self.n_components_ = self.n_components


class ClassifierLearner(Method):
    """A head whose outputs include K logits, and a loss on them.

    Parameters
    ----------
    settings : Settings
        Settings of the training loop.
    n_known, n_components : int
        K^l and K; the first K^l outputs are the known classes.

    Attributes
    ----------
    knob : float
        Value of the method's own hyper-parameter.

    Raises
    ------
    InputError
        If K is less than K^l.
    """

    knob: float

    def __init__(self, settings: Settings, n_known: int, n_components: int) -> None:
        super().__init__(settings)
        if n_components < n_known:
            raise InputError(
                f"A classifier has an output for each of the {n_known} known classes; got "
                f"n_components={n_components}. Give {n_known} or more."
            )
        self.n_known = n_known
        self.n_components = n_components

    @abstractmethod
    def logits(self, h: torch.Tensor) -> torch.Tensor:
        """The K logits (n, K) whose maximum is the cluster, from outputs of the head (n, p)."""
