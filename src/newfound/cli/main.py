"""The command line. Each command is thin: it reads options, calls the library, shows the answer."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from rich.console import Console
from rich.table import Table

from newfound._version import __version__
from newfound.deep.settings import Settings
from newfound.errors import InputError, MissingExtraError

app = typer.Typer(
    help="Finds the categories that your labels don't have yet, and how many there are.",
    no_args_is_help=True,
    add_completion=False,
)


@contextmanager
def clear_errors() -> Iterator[None]:
    """Show what a person can mend as one line and exit code 2, without a traceback."""
    try:
        yield
    except (InputError, MissingExtraError, OSError) as error:
        print(f"newfound: {error}", file=sys.stderr)
        raise typer.Exit(2) from error
    except KeyboardInterrupt as error:
        print("newfound: stopped. Run the same command again to go on.", file=sys.stderr)
        raise typer.Exit(2) from error


def _print_version(asked: bool) -> None:
    if asked:
        print(f"newfound {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Declare the options that stand before a command."""


@app.command()
def count(
    file: Annotated[
        Path, typer.Argument(help="An .npz with the arrays X (features) and y (labels).")
    ],
    level: Annotated[float, typer.Option(help="Probability of the interval.")] = 0.9,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
) -> None:
    """Say how many novel categories there are, before any clustering."""
    from newfound.data.features import load_features
    from newfound.mixture.counting.count import count_categories

    with clear_errors():
        X, y = load_features(file)
        with Console(stderr=True).status(f"Counting in {len(X):,} rows …"):
            found = count_categories(X, y, level=level, random_state=seed)
    low, high = found.interval
    print(
        f"{found.n_known} categories are known; about {found.n_novel:.1f} more are not "
        f"({level:.0%} interval {low:.1f} to {high:.1f})."
    )
    print(
        f"{found.novel_share:.0%} of the unlabelled rows belong to them; "
        f"{found.label_rate:.0%} of the rows of known categories are labelled."
    )


def with_settings(
    base: Settings, without: frozenset[str] = frozenset()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for every setting, with the values of `base` as defaults.

    Parameters
    ----------
    base : Settings
        Where the defaults are from.
    without : frozenset of str
        Settings that get no option.
    """

    def add_options(command: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(command, eval_str=True).parameters.values())
        defaults = base.as_dict()
        added = [
            inspect.Parameter(
                item.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=defaults[item.name],
                annotation=Annotated[
                    _option_type(item.hint),
                    typer.Option(help=_option_help(item.help, item.hint)),
                ],
            )
            for item in Settings.options()
            if item.name not in without
        ]
        parameters = [p for p in own if p.kind is not inspect.Parameter.VAR_KEYWORD]
        command.__signature__ = inspect.Signature([*parameters, *added])  # type: ignore[attr-defined]
        return command

    return add_options


def _kinds(hint: Any) -> list[Any]:
    """The types that a setting may have, None left out."""
    options = get_args(hint) if type(None) in get_args(hint) else (hint,)
    return [kind for kind in options if kind is not type(None)]


def _option_type(hint: Any) -> Any:
    """What the command line reads: a choice is a text, which the settings check."""
    kind = _kinds(hint)[0]
    kind = str if get_origin(kind) is Literal else kind
    return kind | None if type(None) in get_args(hint) else kind


def _option_help(text: str, hint: Any) -> str:
    choices = [c for kind in _kinds(hint) if get_origin(kind) is Literal for c in get_args(kind)]
    return f"{text} One of {', '.join(choices)}." if choices else text


Pictures = Annotated[Path, typer.Argument(help="Folder of pictures.")]
Out = Annotated[Path, typer.Option(help="Folder of the run; an interrupted one goes on.")]


@app.command()
@with_settings(Settings())
def train(
    context: typer.Context,
    pictures: Pictures,
    *,
    labels: Annotated[
        Path | None, typer.Option(help="Table with path,label; none for class folders.")
    ] = None,
    out: Out = Path("run"),
    paper: Annotated[bool, typer.Option("--paper", help="The paper to the letter.")] = False,
    **settings: Any,
) -> None:
    """Learn representation and categories of pictures together: the paper's Algorithm 1."""
    from newfound.workflows.train import train_on_pictures

    with clear_errors():
        given = {name: value for name, value in settings.items() if is_given(context, name)}
        chosen = Settings.paper(**given) if paper else Settings(**given)
        collection, trained = train_on_pictures(pictures, labels, chosen, out)
    mixture = trained.mixture
    assert mixture is not None
    interval = mixture.n_novel_interval_
    likely = f" (90 % interval {interval[0]:.1f} to {interval[1]:.1f})" if interval else ""
    print(
        f"{mixture.n_known_} categories were known, {mixture.n_novel_} new ones were found{likely} "
        f"in {len(collection):,} pictures; {len(collection.skipped)} files were skipped."
    )
    print(f"Categories of all pictures: {out / 'assignments.csv'}. Epochs: {out / 'history.png'}.")


def is_given(context: typer.Context, name: str) -> bool:
    """Whether a person wrote the option, be it with the value that it has anyway."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


@app.command()
@with_settings(Settings.pretraining())
def pretrain(pictures: Pictures, *, out: Out = Path("pretrained"), **settings: Any) -> None:
    """Learn features of pictures from nothing, without any label."""
    from newfound.workflows.train import train_on_pictures

    with clear_errors():
        train_on_pictures(pictures, None, Settings(**settings), out, pretraining=True)
    print(f"Use the features with: newfound train … --weights {out / 'backbone.safetensors'}")


@app.command()
def discover(
    source: Annotated[
        Path,
        typer.Argument(
            help="Folder of pictures, or a file of features (.npz, .npy, .parquet) or texts (.csv)."
        ),
    ],
    labels: Annotated[
        Path | None,
        typer.Option(help="Table with path,label; none for class folders."),
    ] = None,
    out: Out = Path("run"),
    encoder: Annotated[
        str,
        typer.Option(
            help="A timm name, NAME=FILE, efficientnet-lite0, pixels; auto is the best at hand."
        ),
    ] = "auto",
    n_categories: Annotated[
        int | None, typer.Option(help="Number of categories, known and new, if you know it.")
    ] = None,
    train: Annotated[bool, typer.Option("--train", help="Train the network, too.")] = False,
    rehearse: Annotated[
        bool, typer.Option(help="Hide known classes to see how far to trust K.")
    ] = True,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
) -> None:
    """Find the categories that the labels don't have yet: the main job."""
    from newfound.workflows.discover import discover

    with clear_errors(), _steps() as progress:
        result = discover(
            source,
            labels,
            out=out,
            encoder=encoder,
            n_categories=n_categories,
            train=train,
            rehearse=rehearse,
            seed=seed,
            progress=progress,
        )
        _write_report(result, out, progress)
    _tell(result, out)


@app.command()
def embed(
    pictures: Pictures,
    out: Annotated[Path, typer.Option(help="The .npz to write: X, y and ids.")] = Path(
        "features.npz"
    ),
    labels: Annotated[Path | None, typer.Option(help="Table with path,label.")] = None,
    encoder: Annotated[str, typer.Option(help="As for discover.")] = "auto",
) -> None:
    """Encode pictures and stop there: features for `count`, `discover` or your own code."""
    from newfound.workflows.embed import embed

    with clear_errors(), _steps() as progress:
        encoded = embed(pictures, labels, out, encoder=encoder, progress=progress)
    n_rows, n_columns = encoded.features.shape
    print(f"{n_rows:,} × {n_columns} features by {encoded.encoder}: {out}")
    if encoded.skipped:
        print(f"{len(encoded.skipped)} files were skipped; the first: {encoded.skipped[0][1]}.")


Run = Annotated[Path, typer.Argument(help="Folder that discover wrote.")]
More = Annotated[Path, typer.Argument(help="More items of the same kind.")]


@app.command()
def predict(
    run: Run,
    more: More,
    out: Annotated[Path, typer.Option(help="The table to write, .csv.")] = Path("predictions.csv"),
) -> None:
    """Put more items into the categories of a run, which stay as they are."""
    from newfound.result.result import write_csv
    from newfound.workflows.discover import predict

    with clear_errors(), _steps() as progress:
        table = predict(run, more, progress=progress)
        write_csv(table, out)
    n_novel = int((table["kind"] == "novel").sum())
    print(f"{len(table):,} items, {n_novel:,} of them in novel categories: {out}")
    if table.attrs["skipped"]:
        print(f"{len(table.attrs['skipped'])} files were skipped.")


@app.command()
def update(
    run: Run,
    more: More,
    labels: Annotated[Path | None, typer.Option(help="Table with path,label.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Another folder for the result; RUN is brought up to date.")
    ] = None,
) -> None:
    """Find the categories again with more items or labels; names of categories stay."""
    from newfound.report.changes import write_changes
    from newfound.workflows.discover import update

    target = out or run
    with clear_errors(), _steps() as progress:
        result, changes = update(run, more, labels, out=out, progress=progress)
        _write_report(result, target, progress)
        write_changes(changes, target / "changes.html")
    _tell(result, target)
    print(changes)
    print(f"What changed: {target / 'changes.html'}.")


@app.command()
def report(run: Run) -> None:
    """Draw the page of a run again."""
    from newfound.result.result import read_result

    with clear_errors(), _steps() as progress:
        _write_report(read_result(run), run, progress)
    print(f"Report: {run / 'report.html'}")


@app.command()
def export(
    run: Run,
    to: Annotated[str, typer.Option(help="csv, parquet, folders, fiftyone, label-studio or coco.")],
    out: Annotated[Path, typer.Option(help="File or folder to write.")],
) -> None:
    """Hand the result of a run to another tool."""
    from newfound.result.export.formats import export
    from newfound.result.result import read_result

    with clear_errors():
        print(f"Written: {export(read_result(run), to, out)}")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for pictures and result.")] = Path("runs/demo"),
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    epochs: Annotated[int, typer.Option(help="Epochs of training.")] = 80,
) -> None:
    """Find the digits that nobody labelled: 1,797 pictures, 5 of 10 classes known."""
    from newfound.workflows.demo import run_demo

    with clear_errors(), _steps() as progress:
        shown = run_demo(out, seed=seed, epochs=epochs, progress=progress)
        _write_report(shown.result, shown.run, progress)
    table = Table(title="Categories found in 1,797 pictures of digits")
    for heading in ("category", "kind", "pictures", "mostly", "share"):
        table.add_column(heading)
    for row in shown.categories:
        table.add_row(row.name, row.kind, str(row.size), row.mostly, f"{row.share:.0%}")
    Console().print(table)
    _tell(shown.result, shown.run)
    print(shown.sentence)


@contextmanager
def _steps() -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar that is told the step, how much is done and how much there is."""
    from newfound.cli.progress import steps

    with steps() as tell:
        yield tell


def _write_report(result: Any, folder: Path, progress: Callable[[str, int, int], None]) -> None:
    from newfound.report.page import write_report

    def tell(done: int, total: int) -> None:
        progress("Drawing the report", done, total)

    write_report(result, folder / "report.html", progress=tell)


def _tell(result: Any, folder: Path) -> None:
    """The answer, how far to trust it, and where to look."""
    print(result.run["sentence"])
    print(result.run["trust"])
    for warning in result.run["warnings"]:
        print(f"Mind: {warning}")
    print(f"Report: {folder / 'report.html'}. Table: {folder / 'assignments.csv'}.")
