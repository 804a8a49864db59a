"""The record of a run: to JSON and back, and versions."""

import json

import numpy as np
import pytest

from newfound.errors import InputError
from newfound.result.record import (
    History,
    RehearsalRecord,
    Request,
    RunRecord,
    installed_versions,
)

SMALL = {"kind": "features", "n_items": 9, "n_labelled": 3, "n_known": 2, "n_novel": 1}


def test_a_record_comes_back_from_json():
    record = RunRecord(
        **SMALL,
        command="train",
        rerun="newfound train x",
        settings=Request(3, True, False, {"epochs": 2}),
        n_novel_interval=(0.5, 2.0),
        rehearsal=RehearsalRecord(2, (0.5, 1.0)),
        history=History("epoch", (3, None, 4)),
        timings={"fit": 0.5},
        warnings=("Look out.",),
    )
    values = json.loads(json.dumps(record.as_json(), allow_nan=False))
    assert RunRecord.from_json(values) == record
    assert RunRecord.from_json({**values, "sentence": "words", "more": [1]}) == record


def test_missing_and_empty_values_have_defaults():
    nothing = dict.fromkeys(["rehearsal", "history", "settings", "warnings", "n_novel_interval"])
    assert RunRecord.from_json({**SMALL, **nothing}) == RunRecord(**SMALL)
    assert RunRecord.from_json(SMALL).history == History("pass", ())


@pytest.mark.parametrize(
    "changes",
    [
        *[{"n_novel_interval": [1]}, {"n_novel_interval": "ab"}, {"rehearsal": {"n_draws": 2}}],
        *[{"history": [1]}, {"settings": [1]}, {"kind": "sounds"}, {"n_items": "9"}],
        *[{"n_known": None}, {"timings": [1]}, {"timings": {"fit": "long"}}, {"source": 3}],
        *[{"settings": {"sizes": "large"}}, {"settings": {"train": 1}}, {"last_id": 1.5}],
        *[{"calibration": {"slope": "a", "shift": 0, "ceiling": 1}}, {"seed": True}],
    ],
)
def test_a_damaged_record_is_reported(changes):
    with pytest.raises(InputError, match=r"run\.json is damaged"):
        RunRecord.from_json({**SMALL, **changes})


def test_a_record_without_numbers_is_reported():
    with pytest.raises(InputError, match=r"run\.json is damaged .*n_items"):
        RunRecord.from_json({"kind": "features"})


def test_versions_are_those_of_loaded_packages():
    versions = installed_versions()
    assert next(iter(versions)) == "python"
    assert versions["numpy"] == np.__version__
    assert "scikit-learn" in versions


def test_named_packages_are_looked_up_whether_loaded_or_not():
    assert installed_versions(["numpy", "no-such-package"]) == {
        "python": installed_versions()["python"],
        "numpy": np.__version__,
        "no-such-package": "not installed",
    }
