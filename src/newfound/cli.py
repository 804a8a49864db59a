"""The command line. Each command is thin: it reads options, calls the library, shows the answer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import newfound
from newfound.errors import InputError

app = typer.Typer(
    help="Finds the categories that your labels don't have yet, and how many there are.",
    no_args_is_help=True,
    add_completion=False,
)


@contextmanager
def _clear_errors() -> Iterator[None]:
    """Show what a person can mend as one line and exit code 2, without a traceback."""
    try:
        yield
    except (InputError, OSError) as error:
        print(f"newfound: {error}", file=sys.stderr)
        raise typer.Exit(2) from error


def _print_version(asked: bool) -> None:
    if asked:
        print(f"newfound {newfound.__version__}")
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
    from newfound.features import load_features
    from newfound.mixture.counting import count_categories

    with _clear_errors():
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


@app.command()
def demo(
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
) -> None:
    """Find the digits that nobody labelled: scikit-learn's digits, 5 of 10 classes known."""
    from newfound.demo import run_demo

    result = run_demo(seed)
    table = Table(title="Categories found in 1,797 pictures of digits")
    for heading in ("category", "kind", "pictures", "mostly", "share"):
        table.add_column(heading)
    for row in result.categories:
        table.add_row(row.name, row.kind, str(row.size), row.mostly, f"{row.share:.0%}")
    console = Console()
    console.print(table)
    console.print(result.sentence)
