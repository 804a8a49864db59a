"""One file for each method; the registry that the command line reads."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from newfound.errors import InputError

if TYPE_CHECKING:
    from newfound.bench.method import BenchMethod

#: Id on the command line → module and class.
_HOMES = {
    "kmeans": ("kmeans", "KMeans"),
    "rankstats": ("rankstats", "RankStats"),
    "dualrank": ("dualrank", "DualRank"),
    "uno": ("uno", "UNO"),
    "orca": ("orca", "ORCA"),
    "gcd": ("gcd", "GCD"),
    "simgcd": ("simgcd", "SimGCD"),
    "gpc-literal": ("gpc_literal", "GPCLiteral"),
    "gpc": ("gpc", "GPC"),
}
NAMES = tuple(_HOMES)


def find_method(name: str) -> type[BenchMethod]:
    """The method of an id.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    """
    if name not in _HOMES:
        raise InputError(f"There is no method {name!r}; there are {', '.join(NAMES)}.")
    module, cls = _HOMES[name]
    found: type[BenchMethod] = getattr(import_module(f"newfound.bench.methods.{module}"), cls)
    return found
