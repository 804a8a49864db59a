"""The M-step, in torch: network, views, batches, losses, and Algorithm 1 around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from newfound.deep.gpc import GPC
    from newfound.deep.settings import Settings

__all__ = ["GPC", "Settings"]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that settings can be read without torch."""
    if name == "GPC":
        from newfound.deep.gpc import GPC

        return GPC
    if name == "Settings":
        from newfound.deep.settings import Settings

        return Settings
    raise AttributeError(f"module 'newfound.deep' has no attribute {name!r}")
