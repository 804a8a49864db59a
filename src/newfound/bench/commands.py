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
_K = {
    **{k: [k] for k in ("known", "brent", "count", "unknown")},
    "both": ["known", "unknown"],
    "all": ["known", "brent", "count"],
}
_SETTINGS = frozenset(item.name for item in Settings.options())
#: Where trials are written by default.
_TUNING = RESULTS_FOLDER / "tuning.jsonl"
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
    draw: options.Draw = 0,
    k: options.KChoice = "unknown",
    pca: options.PCA = None,
    k_init: options.KInit = None,
    overlap: options.Overlap = None,
    n_old: options.NOld = None,
    labelled_only: options.LabelledOnly = None,
    prototypes: options.PrototypesBy = "mixture",
    joint: options.Joint = False,
    clustering: options.Clustering = "own",
    without: options.Without = None,
    pretraining: options.Pretraining = None,
    n_starts: options.NStarts = 100,
    knob: options.KnobValue = None,
    tuned: options.Tuned = None,
    commit: options.CommitName = None,
    root: options.DataRoot = _DATA,
    work: options.WorkFolder = RESULTS_FOLDER,
    results: options.ResultsPlace = RESULTS_FOLDER,
    incomplete: options.Incomplete = False,
    download: options.Download = False,
    **settings: Any,
) -> None:
    """Run methods on data sets. Runs that the results already contain are skipped."""
    variant = {
        "k": k,
        "draw": draw,
        "pca": pca,
        "k_init": k_init,
        "overlap": overlap,
        "n_old": n_old,
        "labelled_only": labelled_only,
        "prototypes": prototypes,
        "joint": joint,
        "clustering": clustering,
        "without": without,
        "pretraining": pretraining,
        "n_starts": n_starts,
        "knob": knob,
    }
    changes = {name: value for name, value in settings.items() if is_given(context, name)}
    with clear_errors():
        _require("torch", "lightning_fabric")
        from newfound.bench.run import Place

        place = Place(root, work, results, incomplete, download, commit)
        trials = None if tuned is None else read_records(tuned)
        # the whole list is made first, so that a mistake is reported before hours of training
        _run_all(_list_runs(methods, datasets, seed or [0], changes, variant, trials), place)


@app.command()
@with_settings(Settings(selection="last", rehearse=False, epochs=30), _WITHOUT)
def tune(
    context: typer.Context,
    methods: options.MethodNames,
    datasets: options.DatasetNames,
    *,
    trials: options.Trials = 6,
    pretraining: options.Pretraining = None,
    n_starts: options.NStarts = 100,
    commit: options.CommitName = None,
    root: options.DataRoot = _DATA,
    work: options.WorkFolder = RESULTS_FOLDER,
    results: options.ResultsPlace = _TUNING,
    incomplete: options.Incomplete = False,
    download: options.Download = False,
    **settings: Any,
) -> None:
    """Try a few values of each method's hyper-parameters, judged by hidden known classes."""
    changes = {name: value for name, value in settings.items() if is_given(context, name)}
    changes.setdefault("epochs", settings["epochs"])
    variant = {"pretraining": pretraining, "n_starts": n_starts}
    with clear_errors():
        _require("torch", "lightning_fabric")
        from newfound.bench.run import Place

        place = Place(root, work, results, incomplete, download, commit)
        _run_all(_list_trials(methods, datasets, trials, changes, variant), place)


@app.command()
def table(
    number: options.TableNumber,
    style: options.TableStyle = "terminal",
    results: options.ResultsPlace = RESULTS_FOLDER,
    out: options.TableFile = None,
    epochs: options.TableEpochs = None,
    draw: options.Draw = 0,
) -> None:
    """Print a table of the paper, with the paper's figures and ours side by side."""
    from newfound.bench.tables.rendering import render
    from newfound.bench.tables.table import make_tables
    from newfound.files import write_atomically

    with clear_errors():
        records = read_records(results)
        text = render(make_tables(number, records, epochs=epochs, draw=draw), style)
        if not records:
            print(_advice(results), file=sys.stderr)
        if out is None:
            print(text)
        else:
            write_atomically(out, text.encode())
            print(f"Written: {out}")


@app.command()
def records(
    methods: options.MethodNames = "all",
    datasets: options.DatasetsShown = "all",
    results: options.ResultsPlace = RESULTS_FOLDER,
) -> None:
    """Print every record behind the tables: scores, seed, commit, and the command to repeat it."""
    from newfound.bench.repeating import command_of

    with clear_errors():
        wanted = list(NAMES) if methods == "all" else methods.split(",")
        for name in wanted:
            find_method(name)
        found = read_records(results)
        if not found:
            print(_advice(results), file=sys.stderr)
        for record in found:
            case = record.case
            if case.method in wanted and (datasets == "all" or case.dataset in datasets.split(",")):
                trial = "" if case.trial is None else f", trial {case.trial}"
                print(f"{case.method} on {case.dataset}, seed {case.seed}, K {case.k}{trial}")
                print(f"  {_sentence(record)}")
                print(f"  {_origin(record)}")
                print(f"  {command_of(case)}")


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
    changes: dict[str, Any],
    variant: dict[str, Any],
    trials: list[Record] | None = None,
) -> list[_Run]:
    """All runs that the options ask for, with their settings checked."""
    from newfound.bench.tuning import best_trial

    k = variant["k"]
    if k not in _K:
        raise InputError(f"--k is {', '.join(_K)}; got {k!r}.")
    runs = []
    for source, seed in product(datasets.split(","), seeds):
        for name in _methods_for(methods, source):
            best = None if trials is None else best_trial(name, source, changes, trials)
            values = {} if best is None else best.values
            if both := sorted(values.keys() & changes.keys()):
                raise InputError(f"{both[0]} of {name} was tuned; give it or --tuned, not both.")
            extra = {} if best is None else {"trial": best.number}
            for one_k in _K[k]:
                own = {**variant, **extra, "k": one_k}
                runs.append(_make_run(name, source, {**values, **changes, "seed": seed}, own))
    return runs


def _list_trials(
    methods: str, datasets: str, n_trials: int, changes: dict[str, Any], variant: dict[str, Any]
) -> list[_Run]:
    """All trials of the methods that have something to tune."""
    from newfound.bench.tuning import trials_on

    return [
        _make_run(
            name,
            source,
            {**changes, **values},
            {**variant, "hidden": True, "trial": number, "k": "brent"},
        )
        for source in datasets.split(",")
        for name in _methods_for(methods, source)
        for number, values in enumerate(trials_on(name, source, changes.get("model"))[:n_trials])
    ]


def _make_run(name: str, source: str, values: dict[str, Any], variant: dict[str, Any]) -> _Run:
    """One run. A value that is no setting is that of the method's own hyper-parameter."""
    from newfound.bench.protocol import bench_settings, make_case

    knob = find_method(name).knob
    if knob is not None and knob.name in values and knob.name not in _SETTINGS:
        values = dict(values)
        variant = {**variant, "knob": values.pop(knob.name)}
    settings = bench_settings(source, values.get("model"), method=name).with_changes(**values)
    return _Run(make_case(name, source, settings, **variant), settings, source)


def _methods_for(text: str, source: str) -> list[str]:
    """Ids of methods; for a feature file, "all" means all methods that take features."""
    from newfound.bench.datasets.feature_file import is_feature_file

    if text != "all":
        return text.split(",")
    has_images = not is_feature_file(source)
    return [name for name in NAMES if has_images or find_method(name).takes_features]


def _run_all(runs: list[_Run], place: Place) -> None:
    """Run one case after another; those of one seed share their stored views."""
    from newfound.deep.images.view_pairs import shared_views

    with shared_views():
        for one in runs:
            _run(one, place)


def _run(one: _Run, place: Place) -> None:
    """Run one case and print what came out."""
    from newfound.bench.run import run_case

    case, settings, source = one
    trial = "" if case.trial is None else f", trial {case.trial}"
    print(f"{case.method} on {source}, seed {case.seed}, K {case.k}{trial} …", flush=True)
    with show_progress() as progress:
        listener = functools.partial(_listener, progress)
        record = run_case(case, settings, place, source, listener=listener)
    print("  already in the results" if record is None else f"  {_sentence(record)}")
    if record is not None and not record.commit:
        print("Note: the commit is not recorded; give it as --commit.", file=sys.stderr)


def _listener(progress: Progress, folder: Path) -> Listener:
    from newfound.deep.logs import ProgressListener, Several, TensorBoard

    return Several([ProgressListener(progress), TensorBoard(folder / "tensorboard")])


def _sentence(record: Record) -> str:
    return (
        f"All {record.all:.1f}, Old {record.old:.1f}, New {record.new:.1f}; "
        f"K^n {record.n_novel} of {record.n_novel_true} ({record.k_source}); "
        f"{record.seconds:.0f} s; split {record.split}"
    )


def _origin(record: Record) -> str:
    changed = "" if record.clean else ", changed"
    commit = f"commit {record.commit}{changed}" if record.commit else "commit not recorded"
    files = f", files {record.files}" if record.files else ""
    return f"{commit}; {record.date}; {record.machine}; weights {record.case.weights}{files}"


def _advice(place: Path) -> str:
    """What to do when there are no results."""
    return (
        f"newfound: {results_file(place)} has no results yet, so only the paper's figures are "
        "shown. Run a method first, such as `newfound bench run gpc digits`, or name a place with "
        "results: `--results results` for the published ones in a checkout of the repository."
    )
