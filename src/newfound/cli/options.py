"""Options of the commands, one option for every setting, and how errors look."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from newfound.deep.settings import Settings
from newfound.errors import ExportWarning, InputError, MissingExtraError
from newfound.workflows.processes import is_first_process

Items = Annotated[
    Path,
    typer.Argument(
        help="A folder of pictures, a file of features (.npz, .npy, .parquet) or texts (.csv), or "
        "features in Parquet parts: a folder, or a pattern in quotes ('PARTS/*.parquet')."
    ),
]
Pictures = Annotated[Path, typer.Argument(help="Folder of pictures.")]
Labels = Annotated[
    Path | None,
    typer.Option(help="Table with the columns path,label. Not needed for class folders."),
]
MoreLabels = Annotated[
    Path | None,
    typer.Option(
        help="Labels of MORE, as a table. Without MORE, labels of the run's own items: a table, "
        "Label Studio's JSON, a COCO file, a FiftyOne data set, or audit.csv."
    ),
]
Out = Annotated[Path, typer.Option(help="Run folder. An interrupted run in it is resumed.")]
LabelColumn = Annotated[
    str | None, typer.Option(help="Column of labels, if SOURCE is Parquet parts.")
]
Scheduler = Annotated[
    str | None, typer.Option(help="Work on a Dask cluster: the address of its scheduler.")
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, help="Work in so many processes of this machine (for Parquet parts)."),
]
Run = Annotated[Path, typer.Argument(help="Run folder of discover, train or update.")]
More = Annotated[Path, typer.Argument(help="More items of the same kind.")]
MoreOrNone = Annotated[
    Path | None,
    typer.Argument(help="More items of the same kind. Without them, only edits are obeyed."),
]
NextRun = Annotated[
    Path | None,
    typer.Option(help="Another run folder for the result; by default RUN itself is updated."),
]
Browser = Annotated[
    bool, typer.Option("--browser/--no-browser", help="Open the page, or only print where.")
]
Port = Annotated[int, typer.Option(help="Port on this machine; 0 takes a free one.")]
Encoder = Annotated[
    str,
    typer.Option(
        help="What to encode pictures with: a timm name, NAME=FILE, efficientnet-lite0, or "
        "pixels. auto takes the best that is available."
    ),
]
NCategories = Annotated[
    int | None, typer.Option(help="Number of known and new categories together, if you know it.")
]
Sizes = Annotated[
    str,
    typer.Option(
        help="What you know about the sizes of new categories: unknown, alike (as large as known "
        "ones on average), or the ratio of the mean sizes, new to known, such as 0.5."
    ),
]
Train = Annotated[
    bool,
    typer.Option(
        "--train", help="Train the network too; the result before training is kept if better."
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="With --train: train for minutes, not hours.")]
Rehearse = Annotated[
    bool, typer.Option(help="Hide some known classes to see how far the number can be trusted.")
]
MinConfidence = Annotated[
    float | None,
    typer.Option(
        help="Mark unlabelled items whose confidence is lower, from 0 to 1, as unsure. They keep "
        "their category. predict and update take the value of the run by default."
    ),
]
Granularity = Annotated[
    int | None,
    typer.Option(
        help="Make the coarser or finer level with this number of categories, known and new "
        "together, the result."
    ),
]
Link = Annotated[
    bool,
    typer.Option(
        "--link",
        help="Make hard links to the pictures instead of copies. They take no space, but to edit "
        "one is to edit the original.",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a file that exists.")]
Redo = Annotated[
    bool, typer.Option("--overwrite", help="Replace the run in the run folder, if there is one.")
]
Device = Annotated[
    str | None,
    typer.Option(
        help="Where networks compute: cpu, cuda, cuda:1 or mps. By default on a GPU if there is "
        "one."
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of all random numbers.")]


@contextmanager
def clear_errors() -> Iterator[None]:
    """Show errors that a person can fix in one line, without a traceback; exit with code 2."""
    try:
        yield
    except (InputError, MissingExtraError) as error:
        # All processes of a run read the same files and find the same mistake.
        if is_first_process():
            print(f"newfound: {error}", file=sys.stderr)
        raise typer.Exit(2) from error
    except BrokenPipeError:
        raise  # the reader of our output, such as `head`, has seen enough: click ends in silence
    except OSError as error:  # of this machine only: a disk or a connection
        print(f"newfound: {error}", file=sys.stderr)
        raise typer.Exit(2) from error
    except KeyboardInterrupt as error:
        if is_first_process():
            print("newfound: stopped. Run the same command again to resume.", file=sys.stderr)
        raise typer.Exit(2) from error


@contextmanager
def noted_warnings() -> Iterator[None]:
    """Show what was not done as asked as notes, after the work, without the line of code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ExportWarning)
        yield
    for warning in caught:
        print(f"Note: {warning.message}")


def _without_type_of_flags(parameters: list[Any]) -> list[Any]:
    """Options for the help; a flag takes no value, so the help shows no type for it."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
    return parameters


class _Command(TyperCommand):
    """A command whose help shows no ``<bool>``."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_type_of_flags(super().get_params(ctx))


class _Group(TyperGroup):
    """A group of commands whose help shows no ``<bool>``."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_type_of_flags(super().get_params(ctx))


class Commands(typer.Typer):
    """The commands of a program, with plain help."""

    def __init__(self, **options: Any) -> None:
        super().__init__(cls=_Group, no_args_is_help=True, **options)

    def command(self, name: str | None = None, **options: Any) -> Callable[..., Any]:
        """Make a function a command."""
        return super().command(name, cls=_Command, **options)


def with_settings(
    base: Settings, without: frozenset[str] = frozenset()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for every setting, with the values of `base` as defaults.

    Parameters
    ----------
    base : Settings
        The defaults.
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
    """The types that a setting may have, without None."""
    options = get_args(hint) if type(None) in get_args(hint) else (hint,)
    return [kind for kind in options if kind is not type(None)]


def _option_type(hint: Any) -> Any:
    """The type that the command line reads. A choice is read as text; the settings check it."""
    kind = _kinds(hint)[0]
    kind = str if get_origin(kind) is Literal else kind
    return kind | None if type(None) in get_args(hint) else kind


def _option_help(text: str, hint: Any) -> str:
    choices = [c for kind in _kinds(hint) if get_origin(kind) is Literal for c in get_args(kind)]
    return f"{text} One of {', '.join(choices)}." if choices else text


def chosen_settings(
    context: typer.Context, make: Callable[..., Settings], options: dict[str, Any]
) -> Settings:
    """Settings from the options that a person wrote; `make` supplies all others."""
    return make(**{name: options[name] for name in options if is_given(context, name)})


def is_given(context: typer.Context, name: str) -> bool:
    """Whether a person wrote the option, even if with its default value."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"
