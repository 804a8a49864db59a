"""The only place that imports timm and torchvision.

The torchvision wheels on the package index are built for CUDA. With a CPU build of torch their
compiled operators do not load, and ``import torchvision`` (and with it ``import timm``) fails with
"operator torchvision::nms does not exist". Nothing here uses these operators. Once their two
schemas are declared, everything works but ``torchvision.io`` and the box operators.
"""

from __future__ import annotations

from types import ModuleType

from newfound.errors import require

_OPERATORS = ("nms", "qnms")
_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


def _import_torchvision() -> ModuleType:
    """Import torchvision; declare its operators if its compiled part did not load."""
    try:
        return require("torchvision", "train")
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
    _declare_operators()
    return require("torchvision", "train")


def _declare_operators() -> None:
    """Declare the operators that do not exist yet."""
    torch = require("torch", "train")
    for name in _OPERATORS:
        if not hasattr(torch.ops.torchvision, name):
            torch.library.define(f"torchvision::{name}", _SCHEMA)


_import_torchvision()
v2 = require("torchvision.transforms.v2", "train")
timm = require("timm", "train")

__all__ = ["timm", "v2"]
