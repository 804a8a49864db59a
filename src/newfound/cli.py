"""The command line. Each command is thin: it reads options, calls the library, shows the answer."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import newfound

app = typer.Typer(
    help="Finds the categories that your labels don't have yet, and how many there are.",
    no_args_is_help=True,
    add_completion=False,
)


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
