"""Every code block of the pages runs, on a small collection in a temporary folder.

Blocks of Python and of the shell are fenced: ```python and ```sh. In the shell, lines that begin
with `newfound` are run; installations are not. A block that needs what a test does not have says
so behind its language, such as ```sh needs-gpu; its commands are still parsed.
"""

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer.main
from PIL import Image
from samples import Digits
from typer.testing import CliRunner

torch = pytest.importorskip("torch")

from newfound.bench.commands import app as bench_app  # noqa: E402
from newfound.cli.main import app  # noqa: E402
from newfound.deep.settings import Settings  # noqa: E402
from newfound.mixture.trust import report  # noqa: E402
from newfound.result.export.targets import Target  # noqa: E402
from newfound.result.store import read_result  # noqa: E402
from newfound.workflows import fitting  # noqa: E402
from newfound.workflows.discover import discover  # noqa: E402

torch.set_num_threads(1)
pytestmark = pytest.mark.filterwarnings("ignore")  # pages show answers, not warnings

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if "_build" not in page.parts]
MARKS = {"needs-gpu", "needs-data", "needs-download", "needs-code", "needs-cluster"}
#: Commands of others that pages show: they install, or begin a session of their own.
OTHERS = {"pip", "make", "git", "torchrun", "ssh", "for", "python", "nox"}
GROUPS = {
    name: typer.main.get_command(one) for name, one in (("newfound", app), ("bench", bench_app))
}
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks_of(page):
    """Language, mark and content of each block of Python or of the shell."""
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    return [(kind, mark.strip(), text) for kind, mark, text in found if kind in ("python", "sh")]


WITH_CODE = [page for page in PAGES if blocks_of(page)]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The files that pages speak of."""
    world = tmp_path_factory.mktemp("world")
    names = ["a.jpg", "b.jpg", *(f"{i:03d}.jpg" for i in range(2, 220))]
    for folder, rows in (("PICTURES", range(200)), ("MORE_PICTURES", range(200, 220))):
        (world / folder).mkdir()
        for i in rows:
            Image.fromarray(Digits.images[i]).save(world / folder / names[i], quality=95)
    rows = [f"{names[i]},{Digits.y[i]}" for i in range(200) if Digits.y[i] is not None]
    (world / "labels.csv").write_text("\n".join(["path,label", *rows]))
    unlabelled = next(i for i in range(200) if Digits.y[i] is None and Digits.truth[i] == 3)
    (world / "checked.csv").write_text(f"id,label\n{names[unlabelled]},digit 3\n")
    y = np.where(Digits.is_labelled, Digits.truth, -1)[:400]
    np.savez(world / "features.npz", X=Digits.X[:400], y=y)
    (world / "PARTS").mkdir()
    for part in (slice(0, 200), slice(200, 400)):
        labels = [None if label == -1 else str(label) for label in y[part]]
        table = pa.table({"embedding": list(Digits.X[part].astype(np.float32)), "label": labels})
        pq.write_table(table, world / "PARTS" / f"part-{part.start}.parquet")
    shutil.copy(ROOT / "docs" / "data" / "banking77.csv", world)
    (world / "results").symlink_to(ROOT / "results")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(world)
        make_quick(patch)
        discover("PICTURES", "labels.csv", out="RUN")
    return world


def make_quick(patch):
    """Pixels and one draw, where the program takes a network and ten: both are tested elsewhere."""
    patch.setattr("newfound.encode.pictures.best_encoder", lambda paths: "pixels")
    patch.setattr(fitting, "_n_processes", lambda X: 1)
    patch.setattr(fitting, "N_DRAWS_OF_MOST_ROWS", 1)
    patch.setattr(fitting, "N_CHECKS", 1)
    little = report.Effort(n_draws=1, n_fits=1)
    patch.setattr(report, "Effort", lambda: little)


def commands_of(text):
    """Words of each line, without comments; a line that ends with a backslash goes on."""
    lines = text.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def run_shell(text):
    for words in commands_of(text):
        if words[0] != "newfound":
            assert words[0] in OTHERS or words[0].startswith(".venv/bin/"), words
            continue
        group = bench_app if words[1] == "bench" else app
        done = CliRunner().invoke(group, words[2 if words[1] == "bench" else 1 :])
        assert done.exit_code == 0, f"{' '.join(words)}\n{done.output}"


def parse_shell(text):
    values = dict(re.findall(r'^(\w)="?([^"#\n]*)"?', text, re.MULTILINE))
    for words in commands_of(re.sub(r"\$(\w)\b", lambda name: values.get(name[1], "x"), text)):
        if words[0] != "newfound":
            continue
        bench = words[1] == "bench"
        command = GROUPS["bench" if bench else "newfound"].commands[words[1 + bench]]
        command.make_context(words[1], words[2 + bench :]).close()


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_of_a_page_runs(page, world, tmp_path, monkeypatch):
    folder = tmp_path / "world"
    shutil.copytree(world, folder, symlinks=True)
    monkeypatch.chdir(folder)
    make_quick(monkeypatch)
    monkeypatch.setattr(
        "newfound.review.server.ReviewServer.serve",
        lambda server: read_result(folder / "RUN").confirm("new-001"),
    )
    monkeypatch.setattr("webbrowser.open", lambda address: True)
    with np.load("features.npz") as file:
        names = {"X": file["X"], "y": file["y"], "result": read_result(folder / "RUN")}
    for kind, mark, text in blocks_of(page):
        if kind == "sh":
            (parse_shell if mark else run_shell)(text)
        elif not mark:
            exec(compile(text, f"{page.name}: {text.splitlines()[0]}", "exec"), names)


def test_what_contributing_builds_works(world, tmp_path):
    names = {}
    for kind, mark, text in blocks_of(ROOT / "CONTRIBUTING.md"):
        if kind == "python" and not mark:
            exec(compile(text, "CONTRIBUTING.md", "exec"), names)
    y = np.where(Digits.is_labelled, Digits.truth, -1)[:200]
    ward = names["WardMethod"](8, settings=Settings(), folder=tmp_path)
    assert ward.fit(Digits.X[:200], y).n_components_ == 8
    encoder = names["colour_encoder"]()
    prepared = [encoder.prepare(path) for path in sorted((world / "PICTURES").iterdir())[:3]]
    np.testing.assert_allclose(encoder.load()(prepared).sum(axis=1), 1, rtol=1e-5)
    names["export_jsonl"](read_result(world / "RUN"), Target(tmp_path / "items.jsonl"))
    assert len((tmp_path / "items.jsonl").read_text().splitlines()) == 200


def test_blocks_that_are_not_run_are_rare():
    marks = [mark for page in PAGES for _, mark, _ in blocks_of(page)]
    assert set(marks) <= {"", *MARKS}
    assert len(marks) >= 50
    assert sum(map(bool, marks)) <= 18


def test_no_command_hides_in_an_indented_block():
    for page in PAGES:
        text = FENCE.sub("", page.read_text(encoding="utf-8"))
        assert not re.search(r"^    newfound ", text, re.MULTILINE), page
