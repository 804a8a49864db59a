"""Self-supervised pretraining on the user's own images: the paper's "Target" rows.

It minimises InfoNCE (SimCLR) in the same loop, with the same checkpoints. Labels are not read.
"""

from __future__ import annotations

from pathlib import Path

from lightning_fabric import Fabric

from newfound.arrays import ArrayLike
from newfound.deep.method import Contrast
from newfound.deep.records import Listener
from newfound.deep.settings import Settings
from newfound.deep.trained import Trained
from newfound.deep.trainer import train


def pretrain(
    pixels: ArrayLike,
    settings: Settings,
    folder: Path,
    *,
    fingerprint: str = "",
    listener: Listener | None = None,
    fabric: Fabric | None = None,
) -> Trained:
    """Learn a representation without any label.

    Parameters
    ----------
    pixels : ndarray of uint8, shape (n, 3, s, s)
        All images.
    settings : Settings
        `Settings.pretraining()` is a good start for small images.
    folder : Path
        Run folder. An interrupted run in it is resumed.
    fingerprint : str, default=""
        Identity of the images, compared when a run is resumed.
    listener : Listener, optional
        Called after every batch and epoch.
    fabric : Fabric, optional
        The engine, if it is running already.

    Returns
    -------
    Trained
        Network and history, without categories.
    """
    return train(
        pixels,
        None,
        settings,
        folder,
        method=Contrast(settings),
        fingerprint=fingerprint,
        listener=listener,
        fabric=fabric,
    )
