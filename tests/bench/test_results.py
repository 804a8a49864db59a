"""Results files: what goes in comes out; half lines are survived, garbage is not."""

import dataclasses
import json
import math
import multiprocessing
import os
import pickle
import subprocess
import sys
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.bench import results as results_module
from newfound.bench.case import Case
from newfound.bench.record import Record
from newfound.bench.results import Results, RowsId, read_records, results_file
from newfound.errors import DiscoveryWarning, InputError

FACTS = {
    "split": "5ec0de",
    "n_labelled": 1498,
    "n_unlabelled": 4496,
    "n_known": 100,
    "n_novel_true": 100,
    "n_components": 202,
    "n_novel": 102,
    "k_source": "mixture",
    "checkpoint": "last epoch",
    "all": 54.9,
    "old": 60.5,
    "new": 52.1,
    "nmi": 0.7,
    "ari": 0.4,
    "n_novel_of_mixture": None,
    "n_novel_by_epoch": [90, 102],
    "seconds": 81.5,
    "seconds_per_epoch": 1.9,
    "e_step_share": 0.1,
    "machine": "none",
    "versions": {"newfound": "0.1.0"},
    "date": "2024-05-01T12:00:00+00:00",
}


def record_of(method="gpc", dataset="cub", date=FACTS["date"], **case):
    return Record(case=Case(method, dataset, **case), **{**FACTS, "date": date})


def same(a, b):
    """Equal, NaN to NaN."""
    return repr(a) == repr(b)


text = st.text(max_size=8)
numbers = st.floats(allow_infinity=False)
cases = st.builds(
    Case,
    method=text,
    dataset=text,
    seed=st.integers(),
    k=st.sampled_from(["known", "brent"]),
    k_init=st.none() | st.integers(),
    labelled_only=st.none() | text,
    changes=st.dictionaries(text, st.integers() | text | st.lists(st.integers())),
)
records = st.builds(
    lambda case, **values: Record(case=case, **{**FACTS, **values}),
    case=cases,
    old=numbers,
    new=numbers,
    machine=text,
    n_novel_of_mixture=st.none() | st.integers(),
    versions=st.dictionaries(text, text),
)


@settings(deadline=None, max_examples=40)
@given(st.lists(records, max_size=4))
def test_what_goes_in_comes_out(tmp_path_factory, written):
    file = tmp_path_factory.mktemp("results") / "new" / "bench.jsonl"
    for record in written:
        Results(file).add(record)
    assert same(read_records(file.parent), written)


def test_lines_are_standard_json_without_nan(tmp_path):
    file = tmp_path / "bench.jsonl"
    Results(file).add(dataclasses.replace(record_of(), new=math.nan))
    line = file.read_text()
    assert line.endswith("}\n")
    values = json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert values["new"] is None
    assert math.isnan(read_records(tmp_path)[0].new)


def test_infinity_cannot_be_written(tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        Results(tmp_path / "a.jsonl").add(dataclasses.replace(record_of(), all=math.inf))
    assert not (tmp_path / "a.jsonl").exists()


def test_a_place_is_a_file_or_a_folder_with_bench_jsonl(tmp_path):
    Results(tmp_path).add(record_of(seed=1))
    Results(tmp_path / "other.jsonl").add(record_of(seed=2))
    (tmp_path / "find_k.jsonl").write_text('{"method": "mixture"}\n')  # a log of another kind
    (tmp_path / "notes.md").write_text("no record")
    assert results_file(tmp_path) == tmp_path / "bench.jsonl"
    assert results_file(tmp_path / "other.jsonl") == tmp_path / "other.jsonl"
    for place in (tmp_path, tmp_path / "bench.jsonl"):
        assert [record.case.seed for record in read_records(place)] == [1]
    assert [record.case.seed for record in read_records(tmp_path / "other.jsonl")] == [2]


def test_a_folder_of_folders_has_the_records_of_all(tmp_path):
    for seed, name in enumerate(("b", "a")):
        Results(tmp_path / name).add(record_of(seed=seed))
    Results(tmp_path / "old" / "other.jsonl").add(record_of(seed=2))
    assert [record.case.seed for record in read_records(tmp_path)] == [1, 0]
    Results(tmp_path).add(record_of(seed=3))
    assert [record.case.seed for record in read_records(tmp_path)] == [3]


def test_a_file_in_place_of_a_folder_is_refused_and_so_is_the_opposite(tmp_path):
    (tmp_path / "notes.md").write_text("no record")
    (tmp_path / "folder.jsonl").mkdir()
    for place in ("notes.md", "notes.md/deeper", "notes.md/a.jsonl"):
        with pytest.raises(InputError, match=r"notes\.md is a file; expected a folder"):
            read_records(tmp_path / place)
    with pytest.raises(InputError, match="is a folder; expected a file"):
        read_records(tmp_path / "folder.jsonl")


def test_a_place_that_is_not_there_has_no_records(tmp_path):
    assert read_records(tmp_path / "nowhere") == []
    assert read_records(tmp_path / "nowhere.jsonl") == []


def test_a_record_cut_anywhere_is_left_out_with_a_warning_and_the_next_is_whole(tmp_path):
    file = tmp_path / "bench.jsonl"
    Results(file).add(record_of(seed=0))
    whole = file.read_bytes()
    for length in range(1, len(whole) - 1):  # without its line break it is complete
        file.write_bytes(whole + whole[:length])
        with pytest.warns(DiscoveryWarning, match=r"bench\.jsonl, line 2: .*cut off"):
            assert len(read_records(tmp_path)) == 1
    Results(file).add(record_of(seed=1))
    with pytest.warns(DiscoveryWarning, match="line 2"):
        assert [record.case.seed for record in read_records(tmp_path)] == [0, 1]


def test_a_last_line_without_its_line_break_counts_and_is_not_written_into(tmp_path):
    file = tmp_path / "bench.jsonl"
    Results(file).add(record_of(seed=0))
    file.write_bytes(file.read_bytes().rstrip(b"\n"))
    Results(file).add(record_of(seed=1))
    assert [record.case.seed for record in read_records(tmp_path)] == [0, 1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("hello", "not a line of a results file"),
        ('{"method": "gpc"}}', "not a line of a results file"),
        ('{"method": }', "not a line of a results file"),
        ("[1, 2]", "object in braces"),
        ('{"method": "gpc", "dataset": "cub"}', "setting"),
        ("{}", "method"),
    ],
)
def test_garbage_is_refused_with_file_and_line(tmp_path, line, message):
    file = tmp_path / "bench.jsonl"
    Results(file).add(record_of())
    with file.open("a") as stream:
        stream.write(f"\n{line}\n")
    with pytest.raises(InputError, match=rf"bench\.jsonl, line 3: .*{message}"):
        read_records(tmp_path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "bench.jsonl").write_bytes(b"\xff\xfe\n")
    with pytest.raises(InputError, match="line 1"):
        read_records(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"), [("all", "54.9"), ("n_novel", 1.5), ("n_known", True), ("versions", [])]
)
def test_values_of_a_wrong_type_are_refused(tmp_path, name, value):
    values = record_of().as_dict() | {name: value}
    (tmp_path / "bench.jsonl").write_text(json.dumps(values))
    with pytest.raises(InputError, match=f"line 1: {name} must be "):
        read_records(tmp_path)


def test_settings_of_a_wrong_type_and_unknown_ones_are_refused(tmp_path):
    values = record_of().as_dict()
    for setting in ({"epochs": "200"}, {"colour": "red"}):
        line = json.dumps(values | {"setting": values["setting"] | setting})
        (tmp_path / "bench.jsonl").write_text(line)
        with pytest.raises(InputError, match=f"line 1: .*{next(iter(setting))}"):
            read_records(tmp_path)


def test_every_field_has_a_type_that_can_be_checked():
    for part in (Case, Record):
        assert {item.type for item in dataclasses.fields(part)} <= set(results_module._TYPES)


def test_lines_of_epochs_among_the_records_are_skipped(tmp_path):
    file = tmp_path / "bench.jsonl"
    file.write_text('{"run": "a", "epoch": 0, "loss": 0.8}\n')
    Results(file).add(record_of())
    assert len(read_records(tmp_path)) == 1


def test_find_knows_a_case_by_all_of_its_fields(tmp_path):
    results = Results(tmp_path / "bench.jsonl")
    case = Case("gpc", "cub", changes={"crop": (0.5, 1.0), "a": 1})
    used = {"epochs": 200, "device": None, "n_components": None}
    record = dataclasses.replace(record_of(), case=case, files="f11e5", settings=used)
    rows = RowsId(record.split, record.layout, record.files)
    where = (rows, used | {"device": "cuda", "n_components": 200})
    assert results.find(case, *where) is None
    results.add(record)
    same = Case("gpc", "cub", changes={"a": 1, "crop": (0.5, 1.0)})
    assert results.find(same, *where) is not None
    for other in ({"seed": 1}, {"k": "known"}, {"changes": {}}, {"dataset": "cars"}):
        assert results.find(dataclasses.replace(case, **other), *where) is None
    for name in rows._fields:
        assert results.find(same, rows._replace(**{name: "another"}), used) is None
    assert results.find(same, rows, used | {"epochs": 100}) is None


def test_a_line_without_settings_is_never_taken_for_a_run(tmp_path):
    results, record = Results(tmp_path / "bench.jsonl"), record_of()
    results.add(record)
    rows = RowsId(record.split, record.layout, record.files)
    assert results.find(record.case, rows, {"epochs": 200}) is None


def test_find_gives_the_newest(tmp_path):
    results = Results(tmp_path / "bench.jsonl")
    results.add(record_of(date="2024-06-01"))
    results.add(record_of(date="2024-05-01"))
    rows = RowsId(record_of().split, "official", "")
    assert results.find(Case("gpc", "cub"), rows, {}).date == "2024-06-01"


def test_a_full_disk_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "write", lambda handle, line: len(line) - 1)
    with pytest.raises(InputError, match="Free some disk space"):
        Results(tmp_path / "bench.jsonl").add(record_of())


def add_many(file, method, n):
    for seed in range(n):
        Results(file).add(record_of(method, seed=seed))


def start(file, method, n):
    worker = multiprocessing.get_context("fork").Process(target=add_many, args=(file, method, n))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks, from Python 3.12 on
        worker.start()
    return worker


def test_two_processes_add_to_one_file(tmp_path):
    workers = [start(tmp_path / "bench.jsonl", name, 50) for name in ("gpc", "gcd")]
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    found = {(record.case.method, record.case.seed) for record in read_records(tmp_path)}
    assert found == {(name, seed) for name in ("gpc", "gcd") for seed in range(50)}


def test_kill_9_loses_one_line_at_most(tmp_path):
    file = tmp_path / "bench.jsonl"
    worker = start(file, "gpc", 100_000)
    while not file.exists() or file.stat().st_size < 20_000:
        assert worker.is_alive()
    worker.kill()
    worker.join()
    Results(file).add(record_of("gcd"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscoveryWarning)
        found = read_records(tmp_path)
    assert [record.case.seed for record in found[:-1]] == list(range(len(found) - 1))
    assert found[-1].case.method == "gcd"
    assert len(found) > 10


_RACER = """
import pickle, sys
from newfound.bench.results import Results
record, rows, file = pickle.loads(sys.stdin.buffer.read())
print(Results(file).add(record, unless=rows))
"""


def test_two_processes_that_run_the_same_case_leave_one_record(tmp_path):
    """Both had looked before either had finished, and the record was there twice."""
    record = record_of()
    rows = RowsId(record.split, record.layout, record.files)
    given = pickle.dumps((record, rows, tmp_path / "bench.jsonl"))
    command = [sys.executable, "-c", _RACER]
    racers = [subprocess.Popen(command, stdin=-1, stdout=-1) for _ in range(2)]
    for racer in racers:
        racer.stdin.write(given)
        racer.stdin.flush()
    added = sorted(racer.communicate()[0].strip() for racer in racers)
    assert added == [b"False", b"True"]
    assert len(read_records(tmp_path)) == 1
