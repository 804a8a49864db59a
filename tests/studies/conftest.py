import importlib
from pathlib import Path

import pytest

STUDIES = Path(__file__).parents[2] / "studies"


@pytest.fixture
def load_study(monkeypatch):
    """Import a module of `studies/`, which is no package."""
    monkeypatch.syspath_prepend(STUDIES)
    return importlib.import_module
