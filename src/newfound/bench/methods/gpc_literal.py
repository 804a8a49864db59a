"""GPC exactly as printed, to show what the paper's equations do when taken literally."""

from __future__ import annotations

from typing import ClassVar

from newfound.bench.case import KSource
from newfound.bench.method import Knob
from newfound.bench.methods.gpc import GPCMethod
from newfound.deep.settings import Settings


class GPCLiteralMethod(GPCMethod):
    """The literal paper, `Settings.paper()`: no projection head, min(1, H), n!, a PCA per batch.

    Departures
    ----------
    - None known. Choices that the paper leaves open are in `docs/deviations.md`.
    """

    title = "GPC (literal)"
    source = "Zhao, Wen and Han, Learning Semi-supervised Gaussian Mixture Models, ICCV 2023"
    own_k: ClassVar[KSource] = "own"  # by its moves, without a count
    knob: ClassVar[Knob | None] = None  # what is printed cannot be tuned
    variants = frozenset({"prototypes"})

    def loop_settings(self) -> Settings:
        """Settings of the paper. What the paper leaves open is as in the benchmark."""
        settings = super().loop_settings().to_the_letter()
        return settings.with_changes(pca="off") if self.settings.estep.pca == "off" else settings
