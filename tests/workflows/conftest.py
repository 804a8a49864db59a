"""Runs that the tests of the workflows share."""

import shutil

import numpy as np
import pytest
from samples import Blobs, Digits

from newfound.result.store import read_result
from newfound.workflows.discover import discover

GREY = "pixels-8x8-grey"
N = 300


@pytest.fixture(scope="session")
def pictures(tmp_path_factory):
    """A folder with `pictures`, one of them broken, `labels.csv`, and `more` pictures."""
    root = tmp_path_factory.mktemp("digits")
    Digits.write(root / "pictures", range(N))
    Digits.write_labels(root / "labels.csv", range(N))
    Digits.write(root / "more", range(N, 450))
    (root / "pictures" / "broken.png").write_bytes(b"no picture")
    (root / "more" / "empty.png").touch()
    return root


@pytest.fixture(scope="session")
def run_pictures(pictures):
    """Call `discover` on the pictures."""

    def run(out, **changes):
        options = {"encoder": GREY, "rehearse": False, "out": out, **changes}
        return discover(pictures / "pictures", pictures / "labels.csv", **options)

    return run


@pytest.fixture(scope="session")
def finished(run_pictures, tmp_path_factory):
    """A run on pictures, with its folder."""
    out = tmp_path_factory.mktemp("runs") / "run"
    return run_pictures(out), out


@pytest.fixture(scope="session")
def digits_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("features") / "digits.npz"
    np.savez(path, X=Digits.X[:N], y=np.array([label or "" for label in Digits.y[:N]]))
    return path


@pytest.fixture(scope="session")
def marked(digits_file, tmp_path_factory):
    """A run on features in which items of little confidence are marked, with its folder."""
    out = tmp_path_factory.mktemp("marked") / "run"
    return discover(digits_file, rehearse=False, min_confidence=0.9, out=out), out


@pytest.fixture(scope="session")
def blobs(tmp_path_factory):
    """A run on eight of nine categories; two of the eight are new."""
    out = tmp_path_factory.mktemp("blobs") / "run"
    discover(Blobs.without(8), out=out, rehearse=False)
    return out


@pytest.fixture
def run(blobs, tmp_path):
    """A copy of it, which a test may change."""
    return read_result(shutil.copytree(blobs, tmp_path / "run"))


@pytest.fixture
def stop_at():
    """A progress callback that presses Ctrl-C when so much of a step is done."""

    def make(step, count):
        def progress(name, done, total):
            if name == step and done >= count:
                raise KeyboardInterrupt

        return progress

    return make
