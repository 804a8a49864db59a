"""What an E-step hands to the M-step."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from newfound.arrays import Ints
from newfound.deep.prototypes import Prototypes


@dataclass(frozen=True)
class FoundComponents:
    """What an E-step hands to the M-step.

    Attributes
    ----------
    z : Tensor of shape (n, d)
        Unit-length features of all images, if moves come after the epoch; else no row.
    labels : ndarray of shape (n,)
        Component of each image, known classes first.
    n_known : int
        K^l.
    prototypes : Prototypes
        Of all components.
    accuracy : float or None
        On held-out labels, see `Clusters.accuracy`.
    """

    z: Tensor
    labels: Ints
    n_known: int
    prototypes: Prototypes
    accuracy: float | None

    @property
    def n_components(self) -> int:
        """K."""
        return len(self.prototypes.means)
