"""The M-step, in torch: backbone, views, batches, losses and the loop around them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from newfound.deep.gpc import GPC
    from newfound.deep.settings import Settings

#: Public name → module. Resolved on first use: the settings are read without torch.
_HOMES = {"GPC": "newfound.deep.gpc", "Settings": "newfound.deep.settings"}

__all__ = ["GPC", "Settings"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'newfound.deep' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
