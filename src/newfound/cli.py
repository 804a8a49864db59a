"""The command line. Each command is thin: it reads options, calls the library, shows the answer."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from rich.console import Console
from rich.table import Table

import newfound
from newfound.deep.settings import Settings
from newfound.errors import InputError, MissingExtraError

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
    except (InputError, MissingExtraError, OSError) as error:
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


def _with_settings(base: Settings) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for every setting, with the values of `base` as defaults."""

    def add_options(command: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(command, eval_str=True).parameters.values())
        hints = get_type_hints(Settings)
        added = [
            inspect.Parameter(
                item.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=getattr(base, item.name),
                annotation=Annotated[
                    _option_type(hints[item.name]),
                    typer.Option(help=_option_help(item.metadata["help"], hints[item.name])),
                ],
            )
            for item in fields(Settings)
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
@_with_settings(Settings())
def train(
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
    from newfound.training import train_on_pictures

    with _clear_errors():
        changes = {name: value for name, value in settings.items() if value != _DEFAULTS[name]}
        chosen = Settings.paper(**changes) if paper else Settings(**settings)
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


_DEFAULTS = Settings().as_dict()


@app.command()
@_with_settings(Settings.pretraining())
def pretrain(pictures: Pictures, *, out: Out = Path("pretrained"), **settings: Any) -> None:
    """Learn features of pictures from nothing, without any label."""
    from newfound.training import train_on_pictures

    with _clear_errors():
        train_on_pictures(pictures, None, Settings(**settings), out, pretraining=True)
    print(f"Use the features with: newfound train … --weights {out / 'backbone.safetensors'}")


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
