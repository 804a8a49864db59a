"""The command line. Each command is thin: it reads options, calls a workflow, shows the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from newfound._version import __version__
from newfound.cli import options
from newfound.cli.answers import (
    print_answer,
    print_count,
    print_digits,
    print_done,
    print_predictions,
    print_skipped,
    write_page,
    write_page_if_possible,
)
from newfound.cli.options import (
    Commands,
    chosen_settings,
    clear_errors,
    with_settings,
)
from newfound.cli.progress import show_progress
from newfound.cli.run_commands import export, report, review, trust, update
from newfound.deep.settings import Settings
from newfound.errors import InputError
from newfound.files import check_new_file
from newfound.mixture.counting.novel_size import parse_sizes
from newfound.words import plural
from newfound.workflows.processes import is_first_process

app = Commands(
    help="Finds the categories that your labels don't have yet, and how many there are.",
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
        Path,
        typer.Argument(
            help="Features: .npz with the arrays X and y, .npy, or .parquet with numbers."
        ),
    ],
    level: Annotated[
        float,
        typer.Option(help="Probability that the interval contains the true number, such as 0.9."),
    ] = 0.9,
    labels: Annotated[
        Path | None,
        typer.Option(help="Table with the column label, and id or one row for each item."),
    ] = None,
    sizes: options.Sizes = "unknown",
    seed: options.Seed = 0,
) -> None:
    """Estimate how many new categories there are, without clustering."""
    from newfound.mixture.counting.count import count_categories
    from newfound.workflows.job import Job
    from newfound.workflows.source import read_features

    with clear_errors():
        Job(seed).check()
        known_sizes = parse_sizes(sizes) or "alike"
        rows = read_features(file, labels)
        with Console(stderr=True).status(f"Counting in {len(rows):,} rows …"):
            found = count_categories(
                rows.features, rows.y, level=level, sizes=known_sizes, random_state=seed
            )
    print_count(found)
    print_skipped(rows.skipped, "row")


@app.command()
@with_settings(Settings())
def train(
    context: typer.Context,
    pictures: options.Pictures,
    *,
    labels: options.Labels = None,
    out: options.Out = Path("run"),
    paper: Annotated[bool, typer.Option("--paper", help="Follow the paper to the letter.")] = False,
    min_confidence: options.MinConfidence = None,
    overwrite: options.Redo = False,
    **settings: Any,
) -> None:
    """Train a network and find the categories of pictures together (the paper's Algorithm 1)."""
    from newfound.workflows.finished import is_complete
    from newfound.workflows.train import train

    with clear_errors(), show_progress() as progress:
        chosen = chosen_settings(context, Settings.paper if paper else Settings, settings)
        is_done = is_complete(out) and not overwrite
        result = train(
            *(pictures, labels, chosen, out),
            min_confidence=min_confidence,
            overwrite=overwrite,
            progress=progress,
        )
        if is_first_process():
            has_report = write_page_if_possible(result, out, progress, is_done)
    if is_first_process():
        print_done(out, is_done)
        print_answer(result, out, has_report=has_report)
        print(f"Weights: {out / 'backbone.safetensors'}. Epochs: {out / 'train' / 'history.png'}.")


@app.command()
@with_settings(Settings.pretraining())
def pretrain(
    pictures: options.Pictures, *, out: options.Out = Path("pretrained"), **settings: Any
) -> None:
    """Learn features from pictures alone, without labels and without pretrained weights."""
    from newfound.workflows.pretrain import pretrain

    with clear_errors(), show_progress() as progress:
        collection, _ = pretrain(pictures, Settings(**settings), out, progress=progress)
    if is_first_process():
        print_skipped(collection.skipped, listed=out / "skipped.csv")
        print(f"Use the features with: newfound train … --weights {out / 'backbone.safetensors'}")


@app.command()
def discover(
    source: options.Items,
    labels: options.Labels = None,
    out: options.Out = Path("run"),
    encoder: options.Encoder = "auto",
    n_categories: options.NCategories = None,
    sizes: options.Sizes = "unknown",
    train: options.Train = False,
    quick: options.Quick = False,
    rehearse: options.Rehearse = True,
    min_confidence: options.MinConfidence = None,
    seed: options.Seed = 0,
    device: options.Device = None,
    overwrite: options.Redo = False,
    label_column: options.LabelColumn = None,
    scheduler: options.Scheduler = None,
    workers: options.Workers = None,
) -> None:
    """Find the categories that the labels don't have yet. This is the main job."""
    from newfound.workflows.discover import discover
    from newfound.workflows.finished import is_complete

    with clear_errors(), show_progress() as progress:
        is_done = is_complete(out) and not overwrite
        result = discover(
            source,
            labels,
            out=out,
            encoder=encoder,
            n_categories=n_categories,
            sizes=parse_sizes(sizes),
            train=train,
            quick=quick,
            rehearse=rehearse,
            min_confidence=min_confidence,
            seed=seed,
            device=device,
            overwrite=overwrite,
            label_column=label_column,
            scheduler=scheduler,
            workers=workers,
            progress=progress,
        )
        if is_first_process() and not (is_done and (out / "report.html").is_file()):
            write_page(result, out, progress)
    if is_first_process():
        print_done(out, is_done)
        print_answer(result, out)


@app.command()
def embed(
    pictures: options.Pictures,
    out: Annotated[
        Path, typer.Option(help="The .npz file to write, with the arrays X, y and ids.")
    ] = Path("features.npz"),
    labels: options.Labels = None,
    encoder: options.Encoder = "auto",
    device: options.Device = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Encode pictures and stop there: features for `count`, `discover` or your own code."""
    from newfound.workflows.embed import embed, skipped_file

    with clear_errors(), show_progress() as progress:
        encoded = embed(
            *(pictures, labels, out),
            encoder=encoder,
            device=device,
            overwrite=overwrite,
            progress=progress,
        )
    n_rows, n_columns = encoded.features.shape
    print(f"{n_rows:,} × {n_columns} features by {encoded.encoder['name']}: {out}")
    print_skipped(encoded.collection.skipped, listed=skipped_file(out))


@app.command()
def predict(
    run: options.Run,
    more: options.More,
    out: Annotated[
        Path, typer.Option(help="The CSV table to write; a new folder for Parquet parts.")
    ] = Path("predictions.csv"),
    min_confidence: options.MinConfidence = None,
    overwrite: options.Overwrite = False,
    scheduler: options.Scheduler = None,
    workers: options.Workers = None,
) -> None:
    """Put more items into the categories of a run, which stay as they are."""
    from newfound.data.collection import Skipped
    from newfound.data.tables import write_csv, write_skipped
    from newfound.workflows.embed import skipped_file
    from newfound.workflows.parts import Parts, names_parts, predict_parts
    from newfound.workflows.predict import predict

    if names_parts(more) or scheduler or workers:
        parts = Parts(str(more), None, scheduler, workers)
        folder = out.with_suffix("") if out.suffix == ".csv" else out
        with clear_errors(), show_progress() as progress:
            if min_confidence is not None:
                raise InputError(
                    "Rows of Parquet parts get no confidence: leave --min-confidence out."
                )
            n_rows = predict_parts(run, parts, folder, progress=progress)
        print(f"{plural(n_rows, 'row')} with their categories: {folder}")
        return
    with clear_errors(), show_progress() as progress:
        check_new_file(out, overwrite)
        table = predict(run, more, min_confidence=min_confidence, progress=progress)
        write_csv(table, out)
        skipped = [Skipped(*item) for item in table.attrs["skipped"]]
        if skipped:
            write_skipped(skipped, skipped_file(out))
    print_predictions(table, out)
    print_skipped(skipped, listed=skipped_file(out))


for command in (update, trust, review, report, export):
    app.command()(command)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the pictures and the run.")] = Path(
        "runs/demo"
    ),
    seed: options.Seed = 0,
    epochs: Annotated[int, typer.Option(help="Number of epochs of training.")] = 80,
) -> None:
    """Find the digits that nobody labelled: 1,797 pictures, 5 of 10 classes known."""
    from newfound.workflows.demo import run_demo

    with clear_errors(), show_progress() as progress:
        shown = run_demo(out, seed=seed, epochs=epochs, progress=progress)
        write_page(shown.result, shown.run, progress)
    print_digits(shown.categories)
    print_answer(shown.result, shown.run)
    print(shown.sentence)
