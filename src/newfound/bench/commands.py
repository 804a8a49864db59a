"""``newfound bench``: run methods under one protocol, print the paper's tables beside ours."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from newfound.bench.methods import NAMES
from newfound.cli.options import clear_errors, is_given, with_settings
from newfound.deep.settings import Settings
from newfound.errors import InputError, require

if TYPE_CHECKING:
    from newfound.bench.case import Record
    from newfound.deep.records import Listener

app = typer.Typer(help="Every method under one protocol.", no_args_is_help=True)

ResultsFile = Annotated[Path, typer.Option(help="File that results are added to.")]
ResultsFolder = Annotated[Path, typer.Option(help="Folder of results, *.jsonl.")]
#: Options of their own, or what the runner sets.
_WITHOUT = frozenset({"seed", "pca", "n_components", "n_components_init", "rehearse"})
_K = {"known": [True], "unknown": [False], "both": [True, False]}


@app.command()
@with_settings(Settings(selection="last", rehearse=False), _WITHOUT)
def run(
    context: typer.Context,
    methods: Annotated[
        str, typer.Argument(help=f"One or more of {', '.join(NAMES)}, with commas; or all.")
    ],
    datasets: Annotated[
        str,
        typer.Argument(
            help="cifar10, cifar100, imagenet100, cub, cars, aircraft, herbarium, tiny-imagenet, "
            "digits, or a file of features; with commas."
        ),
    ],
    *,
    seed: Annotated[list[int] | None, typer.Option(help="Seed; again for more. [0]")] = None,
    k: Annotated[str, typer.Option(help="Tell the method K? known, unknown or both.")] = "unknown",
    pca: Annotated[bool | None, typer.Option(help="128 principal directions. [GPC only]")] = None,
    k_init: Annotated[int | None, typer.Option(help="K^n that the mixture starts with.")] = None,
    overlap: Annotated[
        int | None, typer.Option(help="Known classes that the unlabelled part holds.")
    ] = None,
    n_old: Annotated[int | None, typer.Option(help="Number of known classes.")] = None,
    labelled_only: Annotated[
        str | None, typer.Option(help="K^l/K^n: labelled images alone, K^n classes hidden.")
    ] = None,
    prototypes: Annotated[
        str, typer.Option(help="GPC's prototypes by mixture, dbscan, ward or kmeans.")
    ] = "mixture",
    joint: Annotated[
        bool, typer.Option("--joint", help="Our mixture inside rankstats, dualrank or gcd.")
    ] = False,
    pretraining: Annotated[
        str | None, typer.Option(help="What the weights have seen: ImageNet, Target or none.")
    ] = None,
    n_starts: Annotated[int, typer.Option(help="Starts of GCD's k-means.")] = 100,
    root: Annotated[Path, typer.Option(help="Folder of the data sets.")] = Path("data"),
    work: Annotated[Path, typer.Option(help="Folder for checkpoints.")] = Path("runs/bench"),
    results: ResultsFile = Path("docs/results/bench.jsonl"),
    incomplete: Annotated[
        bool, typer.Option("--incomplete", help="Accept a data set with missing images.")
    ] = False,
    download: Annotated[
        bool, typer.Option("--download", help="Fetch what is missing, where that is allowed.")
    ] = False,
    **settings: Any,
) -> None:
    """Run methods on data sets; what the results have already is skipped."""
    options: dict[str, Any] = {
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
    given = {name: value for name, value in settings.items() if is_given(context, name)}
    with clear_errors():
        for package in ("torch", "lightning_fabric"):
            require(package, extra="train")
        from newfound.bench.plan import bench_settings, make_case
        from newfound.bench.run import Place, run_case

        if k not in _K:
            raise InputError(f"--k is known, unknown or both; got {k!r}.")
        place = Place(root, work, results)
        runs = []  # all are checked before the first one starts
        for source, one_seed in product(datasets.split(","), seed or [0]):
            base = bench_settings(source, given.get("model"))
            chosen = base.with_changes(**given, seed=one_seed)
            for name, known_k in product(_methods_for(methods, source), _K[k]):
                case = make_case(name, source, chosen, known_k=known_k, **options)
                runs.append((case, chosen, source))
        for case, chosen, source in runs:
            known = "known" if case.known_k else "unknown"
            print(f"{case.method} on {source}, seed {case.seed}, K {known} …", flush=True)
            record = run_case(
                case,
                chosen,
                place,
                source,
                listener=_listener,
                incomplete=incomplete,
                download=download,
            )
            print("  in the results already" if record is None else f"  {_sentence(record)}")


@app.command()
def table(
    number: Annotated[str, typer.Argument(help="Number of the table in the paper, such as 3.")],
    style: Annotated[
        str, typer.Option("--format", help="terminal, markdown, latex or html.")
    ] = "terminal",
    results: ResultsFolder = Path("docs/results"),
    out: Annotated[Path | None, typer.Option(help="File to write instead of the screen.")] = None,
) -> None:
    """Print a table of the paper, the paper's figures and ours side by side."""
    from newfound.bench.results import read_records
    from newfound.bench.tables.build import make_tables
    from newfound.bench.tables.rendering import render
    from newfound.files import write_atomically

    with clear_errors():
        text = render(make_tables(number, read_records(results)), style)
        if out is None:
            print(text)
        else:
            write_atomically(out, text.encode())
            print(f"Written: {out}")


def _methods_for(text: str, source: str) -> list[str]:
    """Ids with commas between them; "all" on a file of features are those that take features."""
    from newfound.bench.methods import find_method
    from newfound.bench.plan import is_file_of_features

    if text != "all":
        return text.split(",")
    any_will_do = not is_file_of_features(source)
    return [name for name in NAMES if any_will_do or find_method(name).takes_features]


@app.command()
def figure(
    name: Annotated[
        str, typer.Argument(help="tsne, prototypes, variance, directions or k (K^n over epochs).")
    ],
    datasets: Annotated[
        str, typer.Argument(help="Data set; several with commas for variance alone.")
    ],
    out: Annotated[Path, typer.Option(help="File to write: .png, .svg or .pdf.")],
    root: Annotated[Path, typer.Option(help="Folder of the data sets.")] = Path("data"),
    work: Annotated[Path, typer.Option(help="Folder of the runs.")] = Path("runs/bench"),
    results: ResultsFolder = Path("docs/results"),
    model: Annotated[
        str | None, typer.Option(help="Backbone of the runs, in timm's name. [the newest run's]")
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="Its weights: hub, offline, random or a file.")
    ] = None,
    incomplete: Annotated[
        bool, typer.Option("--incomplete", help="Accept a data set with missing images.")
    ] = False,
) -> None:
    """Draw a figure of the paper from runs that are there; says which run is missing."""
    with clear_errors():
        for package in ("torch", "lightning_fabric", "matplotlib"):
            require(package, extra="train")
        from newfound.bench.figures import draw_figure
        from newfound.bench.figures.runs import Runs

        runs = Runs(root, work, results, model, weights, incomplete)
        draw_figure(name, datasets.split(","), runs, out)
        print(f"Written: {out}")


def _listener(folder: Path) -> Listener:
    from newfound.cli.progress import TrainingBar
    from newfound.deep.logs import Several, TensorBoard

    return Several([TrainingBar(), TensorBoard(folder / "tensorboard")])


def _sentence(record: Record) -> str:
    return (
        f"All {record.all:.1f}, Old {record.old:.1f}, New {record.new:.1f}; "
        f"K^n {record.n_novel} of {record.n_novel_true} ({record.k_source}); "
        f"{record.seconds:.0f} s; split {record.split}"
    )
