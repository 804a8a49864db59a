"""The command line that repeats a run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from newfound.data.collection import Collection
from newfound.deep.settings import Settings
from newfound.mixture.counting.novel_size import sizes_as_text
from newfound.workflows.job import Job
from newfound.workflows.source import Source


def command_line(command: str, source: Source, *arguments: Any, **options: Any) -> str | None:
    """A command of newfound as a person would type it.

    Parameters
    ----------
    command : str
        Such as "discover".
    source : path or Collection
        The first argument. No command line can name a collection that was made in Python.
    *arguments
        Further words, which follow the source as they are.
    **options
        Option → value; None leaves an option out.

    Returns
    -------
    str or None
        None for a collection.
    """
    if isinstance(source, Collection):
        return None
    words = ["newfound", command, str(source), *map(str, arguments)]
    return shlex.join([*words, *as_options(options)])


def discover_command(source: Source, *words: str, job: Job, **options: Any) -> str | None:
    """The ``newfound discover`` command that repeats a job, with further words and options."""
    return command_line(
        "discover",
        source,
        *words,
        *([] if job.rehearse else ["--no-rehearse"]),
        **options,
        n_categories=job.n_categories,
        sizes=None if job.sizes == "unknown" else sizes_as_text(job.sizes),
        min_confidence=job.min_confidence,
        seed=job.seed,
    )


def settings_as_options(settings: Settings) -> list[str]:
    """The options of ``newfound train`` for all settings that are not the defaults."""
    defaults = Settings().as_dict()
    values = settings.as_dict().items()
    return as_options({name: value for name, value in values if value != defaults[name]})


def as_options(values: Mapping[str, Any]) -> list[str]:
    """Values by their names as the words of a command line; None is left out.

    Parameters
    ----------
    values : dict
        Name of the option, with underscores → its value.
    """
    words: list[str] = []
    for name, value in values.items():
        if isinstance(value, bool):
            words.append(_option(name) if value else _option(f"no_{name}"))
        elif value is not None:
            words += [_option(name), str(value)]
    return words


def train_command(
    source: Source,
    labels: Path | str | None,
    settings: Settings,
    out: Path | str | None,
    *,
    min_confidence: float | None = None,
) -> str | None:
    """The ``newfound train`` command with these settings."""
    options = settings_as_options(settings)
    return command_line(
        "train", source, *options, labels=labels, out=out, min_confidence=min_confidence
    )


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")
