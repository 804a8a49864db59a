"""A job: what was asked for, seconds and warnings."""

import warnings

import pytest

from newfound.errors import DiscoveryWarning, InputError
from newfound.workflows.job import Job


def test_other_warnings_are_passed_on():
    job = Job()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with job.collecting_warnings():
            warnings.warn("ours", DiscoveryWarning, stacklevel=1)
            warnings.warn("other", UserWarning, stacklevel=1)
    assert [str(warning.message) for warning in caught] == ["other"]
    assert job.warnings == ["ours"]


def test_the_seconds_of_a_step_are_kept():
    job = Job()
    with job.timed("read"):
        pass
    assert job.timings["read"] >= 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 2**32}, "seed must be a whole number from 0"),
        ({"seed": 1.0}, "seed must be a whole number from 0"),
        ({"n_categories": 0}, "n_categories must be a whole number of at least 1"),
        ({"min_confidence": 80}, r"from 0 to 1, such as 0\.8; got 80"),
        ({"min_confidence": -0.1}, "min_confidence must be a number"),
        ({"min_confidence": float("nan")}, "min_confidence must be a number"),
        ({"min_confidence": True}, "min_confidence must be a number"),
        ({"min_confidence": "0.8"}, "min_confidence must be a number"),
    ],
)
def test_values_that_make_no_sense_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        Job(**options).check()
