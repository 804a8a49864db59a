"""``newfound bench``: run methods under one protocol, print tables and draw figures.

The commands only read options and show answers. They import torch and the methods when they run,
so that ``--help`` is quick.
"""

from __future__ import annotations

import functools
import sys
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from newfound.bench import options
from newfound.bench.methods import NAMES, find_method
from newfound.bench.results import RESULTS_FOLDER, read_records, results_file
from newfound.cli.options import Commands, clear_errors, is_given, with_settings
from newfound.cli.progress import show_progress
from newfound.deep.settings import Settings
from newfound.errors import InputError, require
from newfound.progress import Progress

if TYPE_CHECKING:
    from newfound.bench.case import Case
    from newfound.bench.record import Record
    from newfound.bench.run import Place
    from newfound.deep.records import Listener

app = Commands(help="Compare methods under one protocol.")

#: Settings without an option: they have an option of another name, or the runner sets them.
_WITHOUT = frozenset({"seed", "pca", "n_components", "n_components_init", "rehearse"})
_KNOWN_K = {"known": [True], "unknown": [False], "both": [True, False]}
_DATA = Path("data")


class _Run(NamedTuple):
    """One run that was asked for."""

    case: Case
    settings: Settings
    source: str


@app.command()
@with_settings(Settings(selection="last", rehearse=False), _WITHOUT)
def run(
    context: typer.Context,
    methods: options.MethodNames,
    datasets: options.DatasetNames,
    *,
    seed: options.Seeds = None,
    k: options.KnownK = "unknown",
    pca: options.PCA = None,
    k_init: options.KInit = None,
    overlap: options.Overlap = None,
    n_old: options.NOld = None,
    labelled_only: options.LabelledOnly = None,
    prototypes: options.PrototypesBy = "mixture",
    joint: options.Joint = False,
    pretraining: options.Pretraining = None,
    n_starts: options.NStarts = 100,
    root: options.DataRoot = _DATA,
    work: options.WorkFolder = RESULTS_FOLDER,
    results: options.ResultsPlace = RESULTS_FOLDER,
    incomplete: options.Incomplete = False,
    download: options.Download = False,
    **settings: Any,
) -> None:
    """Run methods on data sets. Runs that the results already contain are skipped."""
    variant = {
        "pca": pca,
        "k_init": k_init,
        "overlap": overlap,
        "n_old": n_old,
        "labelled_only": labelled_only,
        "prototypes": prototypes,
        "joint": joint,
        "pretraining": pretraining,
        "n_starts": n_starts,
    }
    changes = {name: value for name, value in settings.items() if is_given(context, name)}
    with clear_errors():
        _require("torch", "lightning_fabric")
        from newfound.bench.run import Place

        place = Place(root, work, results, incomplete, download)
        # the whole list is made first, so that a mistake is reported before hours of training
        for one in _list_runs(methods, datasets, seed or [0], k, changes, variant):
            _run(one, place)


@app.command()
def table(
    number: options.TableNumber,
    style: options.TableStyle = "terminal",
    results: options.ResultsPlace = RESULTS_FOLDER,
    out: options.TableFile = None,
) -> None:
    """Print a table of the paper, with the paper's figures and ours side by side."""
    from newfound.bench.tables.rendering import render
    from newfound.bench.tables.table import make_tables
    from newfound.files import write_atomically

    with clear_errors():
        records = read_records(results)
        text = render(make_tables(number, records), style)
        if not records:
            print(_advice(results), file=sys.stderr)
        if out is None:
            print(text)
        else:
            write_atomically(out, text.encode())
            print(f"Written: {out}")


@app.command()
def figure(
    name: options.FigureName,
    datasets: options.FigureDatasets,
    out: options.FigureFile,
    root: options.DataRoot = _DATA,
    work: options.WorkFolder = RESULTS_FOLDER,
    results: options.ResultsPlace = RESULTS_FOLDER,
    model: options.Backbone = None,
    weights: options.Weights = None,
    incomplete: options.Incomplete = False,
) -> None:
    """Draw a figure of the paper from finished runs. If a run is missing, show its command."""
    with clear_errors():
        _require("torch", "lightning_fabric", "matplotlib")
        from newfound.bench.figures import draw_figure
        from newfound.bench.figures.runs import Runs

        runs = Runs(root, work, results, model, weights, incomplete)
        draw_figure(name, datasets.split(","), runs, out)
        print(f"Written: {out}")


def _require(*packages: str) -> None:
    """Raise an error with the pip command if a package of the training is not installed."""
    for package in packages:
        require(package, extra="train")


def _list_runs(
    methods: str,
    datasets: str,
    seeds: list[int],
    k: str,
    changes: dict[str, Any],
    variant: dict[str, Any],
) -> list[_Run]:
    """All runs that the options ask for, with their settings checked."""
    from newfound.bench.protocol import bench_settings, make_case

    if k not in _KNOWN_K:
        raise InputError(f"--k is known, unknown or both; got {k!r}.")
    runs = []
    for source, seed in product(datasets.split(","), seeds):
        base = bench_settings(source, changes.get("model"))
        settings = base.with_changes(**changes, seed=seed)
        for name, known_k in product(_methods_for(methods, source), _KNOWN_K[k]):
            case = make_case(name, source, settings, known_k=known_k, **variant)
            runs.append(_Run(case, settings, source))
    return runs


def _methods_for(text: str, source: str) -> list[str]:
    """Ids of methods; for a feature file, "all" means all methods that take features."""
    from newfound.bench.datasets.feature_file import is_feature_file

    if text != "all":
        return text.split(",")
    has_images = not is_feature_file(source)
    return [name for name in NAMES if has_images or find_method(name).takes_features]


def _run(one: _Run, place: Place) -> None:
    """Run one case and print what came out."""
    from newfound.bench.run import run_case

    case, settings, source = one
    known = "known" if case.known_k else "unknown"
    print(f"{case.method} on {source}, seed {case.seed}, K {known} …", flush=True)
    with show_progress() as progress:
        listener = functools.partial(_listener, progress)
        record = run_case(case, settings, place, source, listener=listener)
    print("  already in the results" if record is None else f"  {_sentence(record)}")


def _listener(progress: Progress, folder: Path) -> Listener:
    from newfound.deep.logs import ProgressListener, Several, TensorBoard

    return Several([ProgressListener(progress), TensorBoard(folder / "tensorboard")])


def _sentence(record: Record) -> str:
    return (
        f"All {record.all:.1f}, Old {record.old:.1f}, New {record.new:.1f}; "
        f"K^n {record.n_novel} of {record.n_novel_true} ({record.k_source}); "
        f"{record.seconds:.0f} s; split {record.split}"
    )


def _advice(place: Path) -> str:
    """What to do when there are no results."""
    return (
        f"newfound: {results_file(place)} has no results yet, so only the paper's figures are "
        "shown. Run a method first, such as `newfound bench run gpc digits`, or name a place with "
        "results: `--results results` for the published ones in a checkout of the repository."
    )
