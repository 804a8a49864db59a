"""Records: what goes into a line of JSON comes out of it."""

import dataclasses
import json

import pytest

from newfound.bench.case import Case
from newfound.bench.record import Record
from newfound.errors import InputError

CASE = Case(
    "gpc",
    "cub",
    seed=2,
    draw=1,
    k="known",
    pca=False,
    epochs=30,
    model="resnet18",
    weights="0123456789ab",
    pretraining="Target",
    k_init=5,
    overlap=3,
    n_old=50,
    labelled_only="25/25",
    prototypes="ward",
    joint=True,
    clustering="mixture",
    without="D25",
    hidden=True,
    trial=3,
    changes={"learning_rate": 0.2, "whiten": None},
)
RECORD = Record(
    case=CASE,
    split="80ef08b14cf6",
    n_labelled=1498,
    n_unlabelled=4496,
    n_known=100,
    n_novel_true=100,
    n_components=202,
    n_novel=102,
    k_source="mixture",
    checkpoint="last epoch",
    all=54.9,
    old=60.5,
    new=52.1,
    nmi=0.7,
    ari=0.4,
    n_novel_of_mixture=99,
    n_novel_by_epoch=[90, 102],
    seconds=81.5,
    seconds_per_epoch=1.9,
    e_step_share=0.1,
    machine="none",
    versions={"newfound": "0.1.0"},
    date="2024-05-01T12:00:00+00:00",
    files="0123456789ab",
    settings={"epochs": 30},
    commit="c0ffee",
    clean=True,
    n_novel_interval=[95.5, 110.25],
    layout="class folders",
    protocol="ours",
)


def test_no_field_of_the_examples_is_left_at_its_default():
    for example, plain in ((CASE, Case("gcd", "cars")), (RECORD, None)):
        for item in dataclasses.fields(example):
            default = getattr(plain, item.name) if plain is not None else item.default
            assert getattr(example, item.name) != default, item.name


def test_a_record_goes_through_json_and_back():
    line = json.dumps(RECORD.as_dict(), allow_nan=False)
    assert Record.from_dict(json.loads(line)) == RECORD


def test_method_and_data_set_stand_first_and_the_rest_of_the_case_beside():
    values = RECORD.as_dict()
    assert list(values)[:2] == ["method", "dataset"]
    assert (values["method"], values["dataset"]) == ("gpc", "cub")
    assert "case" not in values
    fields = {item.name for item in dataclasses.fields(Case)}
    assert set(values["setting"]) == fields - {"method", "dataset"}
    assert {"method": "gpc", "dataset": "cub"} | values["setting"] == CASE.as_dict()


def test_plain_values_are_copies():
    CASE.as_dict()["changes"]["learning_rate"] = 9
    RECORD.as_dict()["n_novel_by_epoch"].append(9)
    assert CASE.changes["learning_rate"] == 0.2
    assert RECORD.n_novel_by_epoch == [90, 102]
    values = RECORD.as_dict()
    Record.from_dict(values)
    assert values == RECORD.as_dict()


@pytest.mark.parametrize("name", ["method", "dataset", "setting", "split", "all"])
def test_a_line_without_a_field_is_refused(name):
    values = RECORD.as_dict()
    del values[name]
    with pytest.raises(InputError, match=name):
        Record.from_dict(values)


@pytest.mark.parametrize(
    ("method", "known_k", "k_source", "k"),
    [
        ("gpc", True, "given", "known"),
        ("gpc", False, "mixture", "count"),
        ("gpc", False, "Brent search on the features before training", "brent"),
        ("gpc", False, "DBSCAN", "own"),
        ("gpc-literal", False, "mixture", "own"),
        ("gcd", False, "Brent search on the finished features", "brent"),
    ],
)
def test_older_lines_say_only_whether_k_was_given(method, known_k, k_source, k):
    values = RECORD.as_dict() | {"method": method, "k_source": k_source}
    values["setting"]["known_k"] = known_k
    for name in ("k", "draw", "clustering", "without", "hidden", "trial"):
        del values["setting"][name]
    record = Record.from_dict(values)
    assert (record.case.k, record.case.draw, record.case.trial) == (k, 0, None)


@pytest.mark.parametrize("name", ["layout", "protocol", "files", "commit", "clean"])
def test_fields_that_came_later_may_be_missing(name):
    values = RECORD.as_dict()
    del values[name]
    (default,) = (item.default for item in dataclasses.fields(Record) if item.name == name)
    assert getattr(Record.from_dict(values), name) == default


def test_fields_that_there_are_not_are_refused():
    with pytest.raises(InputError, match="colour"):
        Record.from_dict(RECORD.as_dict() | {"colour": "red"})
    values = RECORD.as_dict()
    values["setting"]["colour"] = "red"
    with pytest.raises(InputError, match="colour"):
        Record.from_dict(values)
