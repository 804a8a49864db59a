"""Our mixture on the features before training: what GPC has before it learns anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from newfound.arrays import Ints
from newfound.bench.methods.gpc import GPCMethod
from newfound.bench.start import start_features


class FrozenMixture(GPCMethod):
    """The mixture of GPC without any training, with K counted or given.

    Departures
    ----------
    - Those of `docs/deviations.md` that concern the mixture.
    """

    title = "our mixture, frozen"
    source = "Zhao, Wen and Han, ICCV 2023; this project"
    defaults: ClassVar[Mapping[str, Any]] = {"known_rows": "labelled"}  # nothing is trained
    learns = False
    knob = None
    variants = frozenset()

    def _fit_images(self, pixels: npt.NDArray[np.uint8], codes: Ints) -> None:
        self.features_, self.history_ = start_features(pixels, self.settings, self.start_file), []
        self._fit_features(self.features_, codes)
