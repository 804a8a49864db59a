"""The tests on every Python that is supported and installed.

nox -s tests          # everything, with torch
nox -s light          # without torch: what needs numpy, scipy, scikit-learn and the tables
"""

import nox

nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False
nox.options.sessions = ["tests"]
PYTHONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
LIGHT = ["tests/mixture", "tests/data", "tests/result", "tests/test_metrics.py"]


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Install everything and run all tests, or the parts that are named behind ``--``."""
    session.install(
        "-c", "constraints/cpu.txt", "-e", ".[cli,train,report,scale,review,offline,dev]"
    )
    session.run("pytest", "-n", "2", *session.posargs, env=ONE_THREAD)


@nox.session(python=PYTHONS)
def light(session: nox.Session) -> None:
    """Install what needs no torch and run its tests."""
    session.install("-e", ".[cli,report,scale,dev]")
    session.run("pytest", *(session.posargs or LIGHT), env=ONE_THREAD)
