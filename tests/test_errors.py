"""Errors, and the message for a missing extra."""

import math

import pytest

from newfound.errors import DiscoveryWarning, InputError, MissingExtraError, require


def test_require_gives_the_module():
    assert require("math", extra="cli") is math


def test_require_of_a_missing_module_names_the_pip_command():
    with pytest.raises(MissingExtraError, match=r"pip install 'newfound\[report\]'") as caught:
        require("no_such_module_at_all", extra="report")
    assert "'no_such_module_at_all' could not be imported" in str(caught.value)


def test_require_keeps_the_reason_why_an_import_failed():
    with pytest.raises(MissingExtraError) as caught:
        require("no_such_module_at_all.inner", extra="train")
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


@pytest.mark.parametrize(
    ("error", "base"),
    [(InputError, ValueError), (MissingExtraError, ImportError), (DiscoveryWarning, UserWarning)],
)
def test_errors_are_caught_by_their_usual_names(error, base):
    with pytest.raises(base):
        raise error
