"""The command line. Each command is thin: it reads options, calls a workflow, shows the answer."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from newfound._version import __version__
from newfound.cli.options import (
    Labels,
    More,
    Out,
    Pictures,
    Run,
    Seed,
    chosen_settings,
    clear_errors,
    with_settings,
)
from newfound.cli.progress import show_progress
from newfound.deep.settings import Settings
from newfound.errors import MissingExtraError
from newfound.progress import Progress
from newfound.words import plural
from newfound.workflows.processes import is_first_process

if TYPE_CHECKING:
    from newfound.result.result import Result

app = typer.Typer(
    help="Finds the categories that your labels don't have yet, and how many there are.",
    no_args_is_help=True,
    add_completion=False,
)


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
    """Hold the options that come before a command."""


@app.command()
def count(
    file: Annotated[
        Path, typer.Argument(help="An .npz file with the arrays X (features) and y (labels).")
    ],
    level: Annotated[float, typer.Option(help="Probability of the interval.")] = 0.9,
    seed: Seed = 0,
) -> None:
    """Estimate how many new categories there are, without clustering."""
    from newfound.data.features import load_features
    from newfound.mixture.counting.count import count_categories

    with clear_errors():
        X, y = load_features(file)
        with Console(stderr=True).status(f"Counting in {len(X):,} rows …"):
            found = count_categories(X, y, level=level, random_state=seed)
    low, high = found.interval
    known = plural(found.n_known, "known category", "known categories")
    print(
        f"{known}, and about {found.n_novel:.1f} new ones "
        f"({level:.0%} interval: {low:.1f} to {high:.1f})."
    )
    print(
        f"{found.novel_share:.0%} of the unlabelled rows belong to new categories; "
        f"{found.label_rate:.0%} of the rows of known categories are labelled."
    )


@app.command()
@with_settings(Settings())
def train(
    context: typer.Context,
    pictures: Pictures,
    *,
    labels: Labels = None,
    out: Out = Path("run"),
    paper: Annotated[bool, typer.Option("--paper", help="Follow the paper to the letter.")] = False,
    **settings: Any,
) -> None:
    """Train a network and find the categories of pictures together (the paper's Algorithm 1)."""
    from newfound.workflows.train import train

    with clear_errors(), show_progress() as progress:
        chosen = chosen_settings(context, Settings.paper if paper else Settings, settings)
        result = train(pictures, labels, chosen, out, progress=progress)
        if is_first_process():
            has_report = _write_report_if_possible(result, out, progress)
    if is_first_process():
        _print_answer(result, out, has_report=has_report)
        print(f"Weights: {out / 'backbone.safetensors'}. Epochs: {out / 'train' / 'history.png'}.")


@app.command()
@with_settings(Settings.pretraining())
def pretrain(pictures: Pictures, *, out: Out = Path("pretrained"), **settings: Any) -> None:
    """Learn features from pictures alone, without labels and without pretrained weights."""
    from newfound.workflows.pretrain import pretrain

    with clear_errors(), show_progress() as progress:
        collection, _ = pretrain(pictures, Settings(**settings), out, progress=progress)
    if is_first_process():
        _print_skipped(collection.skipped)
        print(f"Use the features with: newfound train … --weights {out / 'backbone.safetensors'}")


@app.command()
def discover(
    source: Annotated[
        Path,
        typer.Argument(
            help="A folder of pictures, or a file of features (.npz, .npy, .parquet) or texts "
            "(.csv)."
        ),
    ],
    labels: Labels = None,
    out: Out = Path("run"),
    encoder: Annotated[
        str,
        typer.Option(
            help="What to encode pictures with: a timm name, NAME=FILE, efficientnet-lite0, or "
            "pixels. auto takes the best that is available."
        ),
    ] = "auto",
    n_categories: Annotated[
        int | None,
        typer.Option(help="Number of known and new categories together, if you know it."),
    ] = None,
    train: Annotated[
        bool,
        typer.Option(
            "--train", help="Train the network too; the result before training is kept if better."
        ),
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="With --train: train for minutes, not hours.")
    ] = False,
    rehearse: Annotated[
        bool,
        typer.Option(help="Hide some known classes to see how far the number can be trusted."),
    ] = True,
    seed: Seed = 0,
) -> None:
    """Find the categories that the labels don't have yet. This is the main job."""
    from newfound.workflows.discover import discover

    with clear_errors(), show_progress() as progress:
        result = discover(
            source,
            labels,
            out=out,
            encoder=encoder,
            n_categories=n_categories,
            train=train,
            quick=quick,
            rehearse=rehearse,
            seed=seed,
            progress=progress,
        )
        _write_report(result, out, progress)
    _print_answer(result, out)


@app.command()
def embed(
    pictures: Pictures,
    out: Annotated[
        Path, typer.Option(help="The .npz file to write, with the arrays X, y and ids.")
    ] = Path("features.npz"),
    labels: Labels = None,
    encoder: Annotated[str, typer.Option(help="As for discover.")] = "auto",
) -> None:
    """Encode pictures and stop there: features for `count`, `discover` or your own code."""
    from newfound.workflows.embed import embed

    with clear_errors(), show_progress() as progress:
        encoded = embed(pictures, labels, out, encoder=encoder, progress=progress)
    n_rows, n_columns = encoded.features.shape
    print(f"{n_rows:,} × {n_columns} features by {encoded.encoder}: {out}")
    if encoded.skipped:
        skipped = plural(len(encoded.skipped), "file was", "files were")
        print(f"{skipped} skipped; the first one: {encoded.skipped[0][1]}.")


@app.command()
def predict(
    run: Run,
    more: More,
    out: Annotated[Path, typer.Option(help="The CSV table to write.")] = Path("predictions.csv"),
) -> None:
    """Put more items into the categories of a run, which stay as they are."""
    from newfound.data.tables import write_csv
    from newfound.workflows.predict import predict

    with clear_errors(), show_progress() as progress:
        table = predict(run, more, progress=progress)
        write_csv(table, out)
    n_novel = int((table["kind"] == "novel").sum())
    print(f"{plural(len(table), 'item')}, {n_novel:,} of them in new categories: {out}")
    _print_skipped(table.attrs["skipped"])


@app.command()
def update(
    run: Run,
    more: More,
    labels: Labels = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Another run folder for the result; by default RUN itself is updated."),
    ] = None,
) -> None:
    """Find the categories again with more items or labels; categories keep their names."""
    from newfound.report.changes import write_changes
    from newfound.workflows.update import update

    target = out or run
    with clear_errors(), show_progress() as progress:
        result, changes = update(run, more, labels, out=out, progress=progress)
        _write_report(result, target, progress)
        write_changes(changes, target / "changes.html")
    _print_answer(result, target)
    print(changes)
    print(f"What changed: {target / 'changes.html'}.")


@app.command()
def report(run: Run) -> None:
    """Write the report of a run again."""
    from newfound.result.store import read_result

    with clear_errors(), show_progress() as progress:
        _write_report(read_result(run), run, progress)
    print(f"Report: {run / 'report.html'}")


@app.command()
def export(
    run: Run,
    to: Annotated[str, typer.Option(help="csv, parquet, folders, fiftyone, label-studio or coco.")],
    out: Annotated[Path, typer.Option(help="File or folder to write.")],
) -> None:
    """Write the result of a run in the format of another tool."""
    from newfound.result.export import export
    from newfound.result.store import read_result

    with clear_errors():
        print(f"Written: {export(read_result(run), to, out)}")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the pictures and the run.")] = Path(
        "runs/demo"
    ),
    seed: Seed = 0,
    epochs: Annotated[int, typer.Option(help="Number of epochs of training.")] = 80,
) -> None:
    """Find the digits that nobody labelled: 1,797 pictures, 5 of 10 classes known."""
    from newfound.workflows.demo import run_demo

    with clear_errors(), show_progress() as progress:
        shown = run_demo(out, seed=seed, epochs=epochs, progress=progress)
        _write_report(shown.result, shown.run, progress)
    table = Table(title="Categories found in 1,797 pictures of digits")
    for heading in ("category", "kind", "pictures", "mostly", "share"):
        table.add_column(heading)
    for row in shown.categories:
        table.add_row(row.name, row.kind, str(row.size), row.mostly, f"{row.share:.0%}")
    Console().print(table)
    _print_answer(shown.result, shown.run)
    print(shown.sentence)


def _write_report(result: Result, folder: Path, progress: Progress) -> None:
    from newfound.report.page import write_report

    def report_progress(done: int, total: int) -> None:
        progress("Drawing the report", done, total)

    write_report(result, folder / "report.html", progress=report_progress)


def _write_report_if_possible(result: Result, folder: Path, progress: Progress) -> bool:
    """Write the report; a machine for training may lack what the page needs."""
    try:
        _write_report(result, folder, progress)
    except MissingExtraError:
        return False
    return True


def _print_answer(result: Result, folder: Path, *, has_report: bool = True) -> None:
    """Print the answer, how far to trust it, and where to look."""
    print(result.answer)
    print(result.trust)
    for warning in result.record.warnings:
        print(f"Note: {warning}")
    _print_skipped(result.collection.skipped)
    page = f"Report: {folder / 'report.html'}."
    if not has_report:
        page = f"For a report, run `newfound report {folder}` where newfound[report] is installed."
    print(f"{page} Table: {folder / 'assignments.csv'}.")


def _print_skipped(skipped: Iterable[object]) -> None:
    if n_skipped := len(list(skipped)):
        print(f"{plural(n_skipped, 'file was', 'files were')} skipped.")
