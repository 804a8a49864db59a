"""From a record to the command that repeats it."""

from __future__ import annotations

import json
import shlex
from typing import Any

from newfound.bench.case import USUAL, Case
from newfound.bench.methods import find_method
from newfound.bench.protocol import bench_settings, own_k
from newfound.bench.tuning import trials_of
from newfound.deep.settings import Settings
from newfound.workflows.rerun import as_options

#: Fields of a case that are options of the same name, left out where they have these values.
_OPTIONS: dict[str, Any] = {"draw": 0, **USUAL}


def command_of(case: Case) -> str:
    """The command of a run, as a person would type it, with the values that its tuning chose.

    ``FILE`` stands for a file of weights with the checksum of the case, or for a feature file. A
    trial of tuning is repeated together with the other trials of its method. A trial that is not
    one of the method's own is a line of the plan of ``studies/benchmark.py``.

    Parameters
    ----------
    case : Case
        Of a record.
    """
    if case.hidden and case.trial is None:
        parts = [f"{name}={_as_text(value)}" for name, value in _changes(case).items()]
        return f"try {','.join(parts) or 'base'} {case.seed}"
    if case.hidden:
        return shlex.join(["newfound", "bench", "tune", case.method, case.dataset, *_rest(case)])
    source = case.dataset if case.model else "FILE.npz"
    options = {
        "k": "unknown" if case.k == own_k(case) else case.k,
        "seed": case.seed,
        **{name: getattr(case, name) for name in _OPTIONS if getattr(case, name) != _OPTIONS[name]},
    }
    cls = find_method(case.method)
    if cls.uses_pca and case.pca != cls.pca_by_default:
        options["pca"] = case.pca
    words = ["newfound", "bench", "run", case.method, source, *as_options(options)]
    return shlex.join([*words, *_rest(case)])


def _rest(case: Case) -> list[str]:
    """Options of the network, of the budget, and of other changes."""
    options: dict[str, Any] = {}
    if case.model:  # else finished features
        options["epochs"] = case.epochs or None
        base, is_random = bench_settings(case.dataset, case.model), case.weights == "random"
        if case.model != bench_settings(case.dataset).network.model:
            options["model"] = case.model
        if case.weights != base.network.weights:
            is_file = case.weights not in ("hub", "offline", "random")
            options["weights"] = "FILE" if is_file else case.weights
        if case.pretraining != ("none" if is_random else "ImageNet"):
            options["pretraining"] = case.pretraining
    return as_options({**options, **_changes(case)})


def _changes(case: Case) -> dict[str, Any]:
    """What else was changed; a value that is no setting is that of the method's own knob."""
    names = {item.name for item in Settings.options()} | {"n_starts"}
    chosen: dict[str, Any] = {}
    if case.hidden and case.trial is not None:  # `bench tune` changes it by itself
        base = bench_settings(case.dataset, case.model, method=case.method)
        chosen = trials_of(case.method, base)[case.trial]
    return {
        name if name in names else "knob": value
        for name, value in case.changes.items()
        if name not in chosen
    }


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
