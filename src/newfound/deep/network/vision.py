"""The door to timm and torchvision: the one place where they are imported.

The wheels of torchvision on the package index are built for CUDA. Beside a CPU build of torch
their compiled operators do not load, and ``import torchvision``, hence ``import timm``, fails with
"operator torchvision::nms does not exist". Nothing here uses these operators: with their two
schemas declared, everything but ``torchvision.io`` and the box operators works.
"""

from __future__ import annotations

from types import ModuleType

from newfound.errors import require

_OPERATORS = ("nms", "qnms")
_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


def _import_torchvision() -> ModuleType:
    """Import torchvision, declaring its operators if its compiled part did not."""
    try:
        return require("torchvision", "train")
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
    _declare_operators()
    return require("torchvision", "train")


def _declare_operators() -> None:
    """Declare those operators that are not there yet; a second call finds them all."""
    torch = require("torch", "train")
    for name in _OPERATORS:
        if not hasattr(torch.ops.torchvision, name):
            torch.library.define(f"torchvision::{name}", _SCHEMA)


_import_torchvision()
v2 = require("torchvision.transforms.v2", "train")
timm = require("timm", "train")

__all__ = ["timm", "v2"]
