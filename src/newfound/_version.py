"""The version, in a leaf that imports nothing."""

from __future__ import annotations

__version__ = "0.2.0"
