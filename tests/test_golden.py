"""Results are those of the golden files, which `studies/golden.py` checks to the last label.

Here a hundredth may differ: on another processor sums have another order.
"""

import importlib.util
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from newfound import discover

STUDIES = Path(__file__).parents[1] / "studies"


def load_study(name):
    spec = importlib.util.spec_from_file_location(name, STUDIES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_discover_on_digits_finds_the_golden_labels(tmp_path, monkeypatch):
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "1")  # the study sets them, and this test leaves no trace
    golden = load_study("golden")
    digits = load_digits()
    golden.features_with_labels(digits.data, digits.target, tmp_path / "digits.npz", 2000)
    table = discover(tmp_path / "digits.npz", rehearse=False).table
    before = golden.read(golden.STORE / "digits.csv")
    found = dict(zip(table["id"], table["category"], strict=True))
    assert found.keys() == before.keys()
    assert set(found.values()) == set(before.values())
    assert np.mean([found[name] == before[name] for name in found]) >= 0.99
