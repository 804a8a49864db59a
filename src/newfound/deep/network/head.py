"""The network that is trained: a backbone, and a head for the losses."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from newfound.deep.network.backbone import Backbone


class ProjectionHead(nn.Sequential):
    """MLP d → 2048 → 2048 → 256 for the contrastive losses; narrower for a small backbone."""

    def __init__(self, n_features: int) -> None:
        n_hidden, n_out = min(2048, 4 * n_features), min(256, n_features)
        super().__init__(
            nn.Linear(n_features, n_hidden),
            nn.GELU(),
            nn.Linear(n_hidden, n_hidden),
            nn.GELU(),
            nn.Linear(n_hidden, n_out),
        )
        for layer in self:
            if isinstance(layer, nn.Linear):
                # random biases would outweigh small features, and all outputs would be alike
                nn.init.zeros_(layer.bias)
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")


class Network(nn.Module):
    """From images to unit-length features for the mixture and head outputs for the losses.

    Attributes
    ----------
    backbone : Backbone
        From images to features.
    head : nn.Module
        From features to what the method's loss takes. A head with ``takes_map = True`` gets the
        vectors at each place of the map, (n, L, C), as a second argument.
    """

    def __init__(self, backbone: Backbone, head: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head

    def forward(self, images: Tensor, *, past_frozen_part: bool = False) -> tuple[Tensor, Tensor]:
        """Features (n, d) with unit length, and head outputs (n, p).

        Parameters
        ----------
        images : Tensor of shape (n, 3, s, s)
            Normalised views.
        past_frozen_part : bool, default=False
            Whether `images` are inputs of the trained part instead.
        """
        if getattr(self.head, "takes_map", False):
            inputs = images if past_frozen_part else self.backbone.before(images)
            map = self.backbone.map(inputs)
            features = self.backbone.pool(map)
            h = self.head(features, self.backbone.locations(map))
            return functional.normalize(features.float(), dim=1), h
        features = self.backbone.after(images) if past_frozen_part else self.backbone(images)
        return functional.normalize(features.float(), dim=1), self.head(features)
