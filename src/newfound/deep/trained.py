"""What training leaves: the outcome of a run, and a trained network that gives features."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from newfound.arrays import ArrayLike, Floats
from newfound.deep.average import weights_of_result
from newfound.deep.checkpoint import as_checkpoint, load_checkpoint
from newfound.deep.images.extraction import Extractor
from newfound.deep.images.feed import Feed
from newfound.deep.images.views import Views, views_for
from newfound.deep.network.backbone import Backbone, backbone_for
from newfound.deep.network.head import Network
from newfound.deep.records import Epoch
from newfound.deep.settings import Settings
from newfound.mixture.counting.rehearsal import Rehearsal
from newfound.mixture.estimator import SplitMergeMixture

#: Images per forward pass: few, so that the memory of a small machine is enough.
_CHUNK = 64


@dataclass(frozen=True)
class TrainedNetwork:
    """A network that gives features of images.

    Attributes
    ----------
    backbone : Backbone
        With its trained weights.
    views : Views
        Makes the central view that the network gets.
    """

    backbone: Backbone
    views: Views

    def features(self, pixels: ArrayLike) -> Floats:
        """Features of the middle view of each image, shape (n, d), not normalised.

        Parameters
        ----------
        pixels : ndarray of uint8, shape (n, 3, s, s)
            Images, stored as for the training.
        """
        device = next(self.backbone.parameters()).device
        extractor = Extractor(self.backbone, self.views, Feed(pixels, device), chunk=_CHUNK)
        return extractor.features().cpu().numpy()


@dataclass(frozen=True)
class Trained:
    """The outcome of training.

    Attributes
    ----------
    network : Network
        With the selected weights.
    views : Views
        How views of images are made for the network.
    features : ndarray of shape (n, d)
        Features of all images.
    mixture : SplitMergeMixture or None
        Fitted to the features; None for a method that has none.
    rehearsal : Rehearsal or None
        What became of hidden known classes; None if there was no rehearsal.
    history : list of Epoch
        One record for each epoch.
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

    @property
    def encoder(self) -> TrainedNetwork:
        """The network for features of further images."""
        return TrainedNetwork(self.network.backbone, self.views)


def load_trained(settings: Settings, checkpoint: Path) -> TrainedNetwork:
    """The network of a run, with the weights of one of its checkpoints.

    Parameters
    ----------
    settings : Settings
        The settings of the run.
    checkpoint : Path
        ``best.safetensors`` or ``last.safetensors``.

    Returns
    -------
    TrainedNetwork
        Ready to give features, on the CPU.
    """
    backbone = backbone_for(settings.network)
    tensors, _ = load_checkpoint(checkpoint)
    weights = {
        name.removeprefix("backbone."): value
        for name, value in weights_of_result(tensors).items()
        if name.startswith("backbone.")
    }
    with as_checkpoint(checkpoint):
        backbone.load_state_dict(weights, strict=False)  # frozen parameters are not in the file
    return TrainedNetwork(backbone, views_for(backbone, settings.views))
