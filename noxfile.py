"""The tests on every Python that is supported and installed: ``nox``, or ``nox -s tests-3.12``."""

import nox

nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False


@nox.session(python=["3.10", "3.11", "3.12", "3.13", "3.14"])
def tests(session: nox.Session) -> None:
    """Install everything and run the tests, or the parts that are named behind ``--``."""
    session.install(*("-c", "constraints/cpu.txt", "-e", ".[cli,train,report,review,offline,dev]"))
    session.run(
        *("pytest", "-n", "2", *session.posargs),
        env={"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
