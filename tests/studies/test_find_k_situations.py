"""Measures and tables of the situations of the study of K."""

import json

import pytest


@pytest.fixture
def situations(load_study):
    return load_study("find_k_situations")


def line_of(n_novel, interval, truth, **changes):
    line = {"set": "a", "scenario": "like sizes", "permutation": 0, "share": 0.5, "rate": 0.5}
    line |= {"method": "count", "init": None, "code": "now", "truth": truth}
    return line | {"n_novel": n_novel, "interval": interval} | changes


def test_an_interval_is_widened_by_a_half(situations):
    assert situations.holds(line_of(7, [5.5, 9], truth=5))
    assert not situations.holds(line_of(7, [5.6, 9], truth=5))
    assert situations.holds(line_of(7, [5, 9.5], truth=10))


def test_interval_score(situations):
    # width 4 of 10; the truth lies 2 beyond the upper end, of which 1/2 is forgiven
    assert situations.interval_score(line_of(6, [4, 8], truth=10)) == pytest.approx(
        0.4 + 20 * 1.5 / 10
    )
    assert situations.interval_score(line_of(9, [8, 12], truth=10)) == pytest.approx(0.4)


def test_without_a_novel_class_the_number_found_is_shown(situations):
    lines = [line_of(0.2, [0, 1], truth=0), line_of(1.2, [0, 3], truth=0)]
    assert situations.error_cell(lines) == "0.7, 1/2"
    assert situations.width_cell(lines) == "2.0"


def test_report_compares_codes_and_rivals(situations, load_study, tmp_path, capsys):
    lines = [
        line_of(20, [18, 22], 10, code="before"),
        line_of(11, [8, 14], 10),
        line_of(15, None, 10, method="brent_search"),
        line_of(11, [8, 14], 10, method="mixture", init=20, all=0.7),
        line_of(14, [8, 14], 10, method="mixture", init=3, all=0.6),
        line_of(10, None, 10, method="given K", all=0.75),
        line_of(None, None, 0, method="1-NN", scenario="whole set", accuracy=0.8),
    ]
    file = tmp_path / "lines.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    situations.report_situations(load_study("find_k_cases").latest_lines([file]))
    printed = capsys.readouterr().out
    rows = [row.split() for row in printed.splitlines()]
    assert ["like", "sizes", "95%", "5%", "5%", "45%"] in rows  # count before, now, mixture, Brent
    assert ["like", "sizes", "0%", "100%", "40%", "60%", "1540%", "60%"] in rows
    assert ["like", "sizes", "75.0", "-5.0", "30%"] in rows
    assert printed.strip().endswith("at least 50%: a")
