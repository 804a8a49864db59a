"""Features of images before training: k-means clusters them, Brent's search finds K in them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from newfound.array_files import read_digested, write_array
from newfound.arrays import Floats
from newfound.deep.engine import start_engine
from newfound.deep.images.extraction import Extractor
from newfound.deep.images.feed import Feed
from newfound.deep.images.views import views_for
from newfound.deep.network.backbone import load_backbone
from newfound.deep.settings import Settings
from newfound.errors import InputError
from newfound.mixture.projection import Projection, unit_rows


def start_features(
    pixels: npt.NDArray[np.uint8], settings: Settings, file: Path | None = None
) -> Floats:
    """Features of the centre view of each image from the untrained backbone.

    Parameters
    ----------
    pixels : ndarray of uint8, shape (n, 3, s, s)
        Images.
    settings : Settings
        Backbone, weights, image size and seed.
    file : Path, optional
        File for the features. It is read if it exists, and written otherwise.

    Returns
    -------
    ndarray of shape (n, d)
        Features, not normalised.
    """
    if file is not None and file.exists():
        with contextlib.suppress(InputError):  # damaged: computed again
            return read_digested(file)
    fabric = start_engine(settings.run, settings.optimiser.batch_size)
    torch.manual_seed(settings.run.seed)  # decides random weights
    backbone = load_backbone(
        settings.network.model,
        settings.network.weights,
        image_size=settings.network.image_size,
        trainable="all",
    ).to(fabric.device)
    views = views_for(backbone, settings.views)
    extractor = Extractor(backbone, views, Feed(pixels, fabric.device), fabric, keep_inputs=False)
    features = extractor.features().cpu().numpy()
    if file is not None:
        write_array(file, features)
    return features


def to_cluster(X: Floats, settings: Settings) -> Floats:
    """Rows scaled to unit length, projected on principal directions if the settings say so.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features.
    settings : Settings
        Whether to use a PCA, and with how many directions.

    Returns
    -------
    ndarray of shape (n, q) or (n, d)
        The space in which k-means measures distances.
    """
    if settings.estep.pca == "off":
        return unit_rows(X)
    return Projection(settings.estep.n_directions).fit(X).transform(X)
