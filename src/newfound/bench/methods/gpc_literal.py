"""GPC as it is printed: what the equations do when they are taken by the letter."""

from __future__ import annotations

from newfound.bench.methods.gpc import GPCMethod
from newfound.deep.settings import Settings


class GPCLiteralMethod(GPCMethod):
    """The paper to the letter, `Settings.paper()`: no projection head, min(1, H), n!, PCA a batch.

    Departures
    ----------
    - None that is known; what the paper does not say is in `docs/deviations.md`.
    """

    title = "GPC (to the letter)"
    source = "Zhao, Wen and Han, Learning Semi-supervised Gaussian Mixture Models, ICCV 2023"

    def loop_settings(self) -> Settings:
        """Settings of the paper; only what it leaves open is the benchmark's."""
        settings = super().loop_settings().to_the_letter()
        return settings.with_changes(pca="off") if self.settings.pca == "off" else settings
