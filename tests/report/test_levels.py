"""The slider and the dendrogram of the report, and what `newfound trust` adds to it."""

import re

import pytest
from samples import Blobs

from newfound.files import write_json
from newfound.mixture.trust.report import Effort
from newfound.report.levels import draw_dendrogram, view_levels
from newfound.report.page import render_report
from newfound.result.run_folder import TRUST
from newfound.workflows.discover import discover
from newfound.workflows.trust import check_trust
from newfound.workflows.update import update


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("levels") / "run"
    return discover(Blobs.take(range(270)), out=out, rehearse=False)


@pytest.fixture(autouse=True)
def no_tsne(monkeypatch):
    monkeypatch.setattr("newfound.report.map._has_tsne", lambda: False)


def test_the_slider_marks_the_count_and_shades_the_interval(run):
    view = view_levels(run)
    assert [step["k"] for step in view["steps"]] == list(range(7, 13))
    assert [step["k"] for step in view["steps"] if step["counted"]] == [9]
    assert [step["k"] for step in view["steps"] if step["inside"]] == [9]
    assert view["mark"] == view["band"][0] == pytest.approx(40)


def test_the_dendrogram_has_each_category_and_each_merge_once(run):
    tree = draw_dendrogram(run.levels, run.names)
    assert sorted(name for _, name, _ in tree.leaves) == ["new-001", "new-002", "new-003"]
    assert [k for _, k, _ in tree.joins] == [8, 7]
    ends = [float(re.search(r"H([\d.]+)V", path)[1]) for path, _, _ in tree.joins]
    assert ends == sorted(ends)
    assert ends[-1] <= tree.width


def test_the_page_shows_levels_and_the_verdict_only_if_there_is_one(run):
    page = render_report(run)
    assert 'id="level"' in page
    assert "<svg" in page
    assert "verdict" not in page.split("</style>")[-1].split("<script")[0]
    report = check_trust(run.folder, effort=Effort(n_draws=2, n_fits=1))
    page = render_report(run)
    assert f">{report.word}</b>" in page.replace("&#39;", "'")
    assert all(reason in page.replace("&#39;", "'") for reason in report.reasons)


def test_a_damaged_verdict_says_what_to_do(run):
    from newfound.errors import InputError

    write_json(run.folder / TRUST, {"word": "fine"})
    with pytest.raises(InputError, match="newfound trust again"):
        render_report(run)
    # It is about this result: another one removes it.
    update(run.folder, granularity=8)
    assert not (run.folder / TRUST).exists()
