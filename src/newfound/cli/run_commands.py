"""Commands on a finished run: update, trust, review, report and export."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated

import typer

from newfound.cli import options
from newfound.cli.answers import print_answer, print_trust, write_page
from newfound.cli.options import clear_errors, noted_warnings
from newfound.cli.progress import show_progress
from newfound.words import things


def update(
    run: options.Run,
    more: options.MoreOrNone = None,
    labels: options.MoreLabels = None,
    out: options.NextRun = None,
    granularity: options.Granularity = None,
    min_confidence: options.MinConfidence = None,
) -> None:
    """Obey the edits of a run (edits.csv), and add items or labels; categories keep their names."""
    from newfound.report.changes import write_changes
    from newfound.workflows.update import update

    target = out or run
    with clear_errors(), show_progress() as progress:
        result, changes = update(
            *(run, more, labels),
            out=out,
            granularity=granularity,
            min_confidence=min_confidence,
            progress=progress,
        )
        # A new result has removed the pages about the one before.
        if not (target / "report.html").is_file():
            write_page(result, target, progress)
        if not (target / "changes.html").is_file():
            write_changes(changes, target / "changes.html", result)
    print_answer(result, target)
    print(changes.in_words(things(result.collection.kind, 1)))
    print(f"What changed: {target / 'changes.html'}.")


def trust(run: options.Run) -> None:
    """Measure how far to believe a run: solid, shaky or don't, with the numbers behind it."""
    from newfound.result.store import read_result
    from newfound.workflows.trust import check_trust

    with clear_errors(), show_progress() as progress:
        found = check_trust(run, progress=progress)
        result = read_result(run)
        write_page(result, run, progress)
    print_trust(found, result.names)
    print(f"Report: {run / 'report.html'}. Numbers: {run / 'trust.json'}.")


def review(run: options.Run, browser: options.Browser = True, port: options.Port = 0) -> None:
    """Decide on the categories of a run, on a page in your browser; update obeys it."""
    from newfound.review.server import review

    with clear_errors():
        review(run, port=port, open_browser=browser)


def report(run: options.Run) -> None:
    """Write the report of a run again."""
    from newfound.result.store import read_result

    with clear_errors(), show_progress() as progress:
        write_page(read_result(run), run, progress)
    print(f"Report: {run / 'report.html'}")


def export(
    run: options.Run,
    to: Annotated[str, typer.Option(help="csv, parquet, folders, fiftyone, label-studio or coco.")],
    out: Annotated[
        Path,
        typer.Option(
            help="What to write: a file for csv, parquet and coco, a folder for the others, either "
            "for label-studio."
        ),
    ],
    link: options.Link = False,
) -> None:
    """Write the result of a run in the format of another tool."""
    from newfound.result.export import export
    from newfound.result.store import read_result

    with clear_errors(), show_progress() as progress, noted_warnings():
        step = functools.partial(progress, "Writing pictures")
        written = export(read_result(run), to, out, link=link, progress=step)
    print(f"Written: {written}")
