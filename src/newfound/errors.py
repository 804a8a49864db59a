"""Errors and warnings. Their messages say what was given, what is expected and what to do."""

from __future__ import annotations

import importlib
from types import ModuleType


class InputError(ValueError):
    """The data or a setting cannot be used; the message says what to do instead."""


class MissingExtraError(ImportError):
    """Packages that a part of newfound needs are not installed; the message has the command."""


class DiscoveryWarning(UserWarning):
    """The result is valid, but less certain than usual; the message says why."""


class ExportWarning(UserWarning):
    """The export is complete, but not as it was asked for; the message says what differs."""


def require(module: str, extra: str) -> ModuleType:
    """Import `module`, or say which pip command installs it.

    Parameters
    ----------
    module : str
        Dotted name of the module to import.
    extra : str
        The extra of this package that installs it.

    Returns
    -------
    ModuleType
        The imported module.

    Raises
    ------
    MissingExtraError
        If the import fails. A package that is installed but broken is reported with its own error.
    """
    try:
        return importlib.import_module(module)
    # Not ModuleNotFoundError only: an installed package may fail to load one of its libraries.
    except ImportError as error:
        raise MissingExtraError(
            f"{module!r} could not be imported ({error}). "
            f"This part of newfound needs the extra '{extra}': "
            f"pip install 'newfound[{extra}]'"
        ) from error
