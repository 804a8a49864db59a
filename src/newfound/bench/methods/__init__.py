"""The methods of the benchmark, one file each, and the registry that the command line reads.

A method is imported when it is looked up, because all of them need torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from newfound.errors import InputError

if TYPE_CHECKING:
    from newfound.bench.method import BenchMethod


def _kmeans() -> type[BenchMethod]:
    from newfound.bench.methods.kmeans import KMeansMethod

    return KMeansMethod


def _rankstats() -> type[BenchMethod]:
    from newfound.bench.methods.rankstats import RankStats

    return RankStats


def _dualrank() -> type[BenchMethod]:
    from newfound.bench.methods.dualrank import DualRank

    return DualRank


def _uno() -> type[BenchMethod]:
    from newfound.bench.methods.uno import UNO

    return UNO


def _orca() -> type[BenchMethod]:
    from newfound.bench.methods.orca import ORCA

    return ORCA


def _gcd() -> type[BenchMethod]:
    from newfound.bench.methods.gcd import GCD

    return GCD


def _pim() -> type[BenchMethod]:
    from newfound.bench.methods.pim import PIM

    return PIM


def _cms() -> type[BenchMethod]:
    from newfound.bench.methods.cms import CMS

    return CMS


def _dccl() -> type[BenchMethod]:
    from newfound.bench.methods.dccl import DCCL

    return DCCL


def _bacon() -> type[BenchMethod]:
    from newfound.bench.methods.bacon import BaCon

    return BaCon


def _simgcd() -> type[BenchMethod]:
    from newfound.bench.methods.simgcd import SimGCD

    return SimGCD


def _gpc_literal() -> type[BenchMethod]:
    from newfound.bench.methods.gpc_literal import GPCLiteralMethod

    return GPCLiteralMethod


def _gpc() -> type[BenchMethod]:
    from newfound.bench.methods.gpc import GPCMethod

    return GPCMethod


def _mixture() -> type[BenchMethod]:
    from newfound.bench.methods.frozen_mixture import FrozenMixture

    return FrozenMixture


#: Id on the command line → function that imports the method.
_LOADERS: dict[str, Callable[[], type[BenchMethod]]] = {
    "kmeans": _kmeans,
    "mixture": _mixture,
    "rankstats": _rankstats,
    "dualrank": _dualrank,
    "uno": _uno,
    "orca": _orca,
    "gcd": _gcd,
    "pim": _pim,
    "cms": _cms,
    "dccl": _dccl,
    "simgcd": _simgcd,
    "bacon": _bacon,
    "gpc-literal": _gpc_literal,
    "gpc": _gpc,
}
NAMES = tuple(_LOADERS)


def find_method(name: str) -> type[BenchMethod]:
    """The method with an id.

    Parameters
    ----------
    name : str
        One of `NAMES`.

    Raises
    ------
    InputError
        If there is no such method.
    """
    if name not in _LOADERS:
        raise InputError(f"There is no method {name!r}; choose one of {', '.join(NAMES)}.")
    return _LOADERS[name]()
