"""A small run, a server of its review page, and a browser."""

import csv
import shutil

import pytest
from playwright.sync_api import expect, sync_playwright
from review_server import HOSTILE, serving
from samples import Blobs, Digits

from newfound.result.edits.log import EDITS
from newfound.workflows.discover import discover

N = 150


@pytest.fixture(scope="session", autouse=True)
def no_tsne():
    """The map of the report has tests of its own, and takes long where cores are few."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("newfound.report.map._has_tsne", lambda: False)
        yield


@pytest.fixture(scope="session")
def digits_run(tmp_path_factory):
    """150 pictures of digits, five classes known; one has a hostile name, two labels are wrong."""
    root = tmp_path_factory.mktemp("review")
    Digits.write(root / "pictures", range(N))
    wrong = [i for i in range(N) if Digits.y[i] == "digit 1"][:2]
    with (root / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "label"])
        for i in range(N):
            if Digits.y[i] is not None:
                label = "digit 4" if i in wrong else Digits.y[i]
                writer.writerow([f"{i:03d}.png", label.replace("digit 0", HOSTILE)])
    options = {"encoder": "pixels-8x8-grey", "n_categories": 9, "rehearse": False}
    discover(root / "pictures", root / "labels.csv", out=root / "run", **options)
    return root / "run"


@pytest.fixture(scope="session")
def blobs_run(tmp_path_factory):
    """A run on features: eight categories, two of them new."""
    out = tmp_path_factory.mktemp("blobs") / "run"
    discover(Blobs.without(8), out=out, rehearse=False)
    return out


@pytest.fixture(scope="module")
def server(digits_run, tmp_path_factory):
    """A server for all tests of a file; `run` takes their decisions away again."""
    folder = shutil.copytree(digits_run, tmp_path_factory.mktemp("served") / "run")
    with serving(folder) as server:
        yield server


@pytest.fixture
def run(server):
    """The run on pictures that is served, without decisions."""
    yield server.desk.folder
    (server.desk.folder / EDITS).unlink(missing_ok=True)


@pytest.fixture
def own_run(digits_run, tmp_path):
    """A copy of the run on pictures, which a test may change."""
    return shutil.copytree(digits_run, tmp_path / "run")


@pytest.fixture
def features_run(blobs_run, tmp_path):
    return shutil.copytree(blobs_run, tmp_path / "run")


@pytest.fixture(scope="session")
def chromium():
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    assert program, "Chromium is missing: `make browser` installs it (apt-get install chromium)."
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def browser(chromium):
    """A browser without cookies; errors on its pages fail the test."""
    expect.set_options(timeout=15_000)
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(15_000)
    faults = []
    context.on("weberror", lambda error: faults.append(str(error.error)))
    yield context
    context.close()
    assert faults == []


@pytest.fixture
def visit(browser):
    """Open the review page of a server."""

    def visit(server):
        page = browser.new_page()
        page.goto(server.address)
        page.wait_for_selector(".card")
        return page

    return visit


@pytest.fixture
def page(visit, server, run):
    """The review page of the run on pictures."""
    return visit(server)
