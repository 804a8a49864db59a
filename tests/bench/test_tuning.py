"""Tuning: trials of all methods, hidden known classes, and nothing of the novel ones."""

from dataclasses import replace

import numpy as np
import pytest

from newfound.bench import run as module
from newfound.bench.methods import NAMES, find_method
from newfound.bench.protocol import bench_settings, make_case
from newfound.bench.results import read_records
from newfound.bench.run import Place, run_case
from newfound.bench.splits import WITHHELD, Split, hide_known, make_split
from newfound.bench.tuning import best_trial, trials_of
from newfound.errors import InputError
from newfound.metrics import discovery_scores

pytestmark = [
    pytest.mark.usefixtures("few_pictures"),
    pytest.mark.filterwarnings("ignore:Only 3 classes are known"),
]
TUNED = [name for name in NAMES if name not in ("kmeans", "mixture", "gpc-literal")]
QUICK = {"epochs": 1, "n_labelled_per_batch": 16, "n_unlabelled_per_batch": 48}


def run_trial(name, number, folder):
    base = bench_settings("digits", method=name)
    values = dict(trials_of(name, base)[number])
    knob = find_method(name).knob.name
    own = {} if knob in base.as_dict() else {"knob": values.pop(knob, None)}
    settings = base.with_changes(**{**QUICK, **values})
    case = make_case(
        name, "digits", settings, hidden=True, trial=number, k="brent", n_starts=2, **own
    )
    place = Place(folder / "data", folder / "work", folder / "tuning.jsonl", commit="c0ffee")
    return run_case(case, settings, place, "digits")


# --- hidden classes


def test_half_of_the_known_classes_lose_their_labels_and_novel_truth_is_withheld(small_set):
    split = make_split(small_set)
    hidden = hide_known(split)
    assert len(hidden.known) == 3
    assert set(hidden.known) < set(split.known)
    assert set(hidden.y) == {-1, *hidden.known}
    kept = np.isin(split.y, hidden.known)
    np.testing.assert_array_equal(hidden.y[kept], split.y[kept])
    novel = ~np.isin(split.truth, split.known)
    assert set(hidden.truth[novel]) == {WITHHELD}
    np.testing.assert_array_equal(hidden.truth[~novel], split.truth[~novel])
    np.testing.assert_array_equal(hidden.is_scored, hidden.is_unlabelled & ~novel)
    assert hidden.n_novel == 2
    np.testing.assert_array_equal(hidden.all_labels, split.y)


def test_two_classes_can_be_hidden_from_each_other_and_one_cannot():
    truth = np.array([0, 0, 1, 1])
    split = Split(np.arange(4), np.array([0, -1, 1, -1]), truth, (0, 1))
    assert len(hide_known(split).known) == 1
    with pytest.raises(InputError, match="hides half of the known classes; there is 1"):
        hide_known(replace(split, known=(0,)))


# --- trials


@pytest.mark.parametrize("name", TUNED)
def test_every_method_has_six_trials_that_change_one_thing_each(name):
    base = bench_settings("digits", method=name)
    trials = trials_of(name, base)
    assert [len(values) for values in trials] == [0, 1, 1, 1, 1, 1]
    assert [set(values) for values in trials[1:4]] == [
        {"weight_average"},
        {"learning_rate"},
        {"weight_decay"},
    ]
    on = base.optimiser.weight_average > 0
    assert (trials[1]["weight_average"] > 0) is not on
    knob = find_method(name).knob
    assert [values[knob.name] for values in trials[4:]] == list(knob.others)
    defaults = {**base.as_dict(), knob.name: knob.value}
    assert all(value != defaults[n] for values in trials for n, value in values.items())


def test_what_does_not_train_or_is_printed_is_not_tuned():
    for name in ("kmeans", "mixture", "gpc-literal"):
        assert trials_of(name, bench_settings("digits")) == []


@pytest.mark.parametrize("name", TUNED)
def test_every_trial_reaches_the_method(name, small_set, monkeypatch, tmp_path):
    seen = []

    def stop(self, X, y):
        seen.append(self.resolved())
        raise InterruptedError

    monkeypatch.setattr(find_method(name), "fit", stop)
    monkeypatch.setattr("newfound.bench.finding_k.brent_search", lambda *a, **o: 3)
    trials = trials_of(name, bench_settings("digits", method=name))
    for number in range(len(trials)):
        with pytest.raises(InterruptedError):
            run_trial(name, number, tmp_path)
    for values, used in zip(trials, seen, strict=True):
        assert {n: used[n] for n in values} == values
        different = {n for n in used if used[n] != seen[0][n]}
        assert different <= set(values) | {"contrastive_temperature"}  # GCD's is a setting too


@pytest.fixture(scope="module")
def trials(tmp_path_factory, few_pictures):
    folder = tmp_path_factory.mktemp("tuning")
    return folder, [run_trial("gpc", n, folder) for n in (0, 2)] + [run_trial("gcd", 0, folder)]


def test_novel_classes_cannot_be_reached_from_a_trial(trials, small_set, tmp_path, monkeypatch):
    """Other novel classes, and more of them: the same trial to the bit."""
    truth = small_set.truth.copy()
    novel = ~np.isin(truth, small_set.known)
    truth[novel] = 50 + np.random.default_rng(1).integers(6, size=novel.sum())
    other = replace(small_set, truth=truth)
    monkeypatch.setattr(module, "load_dataset", lambda *arguments, **options: other)
    first = trials[1][0]
    again = run_trial("gpc", 0, tmp_path)
    times = dict.fromkeys(("seconds", "seconds_per_epoch", "e_step_share"), 0.0) | {"date": ""}
    assert replace(again, **times) == replace(first, **times)
    # the names of files contain digests of what is in them
    names = [{p.name for p in f.glob("work/outcomes/gpc*")} for f in (tmp_path, trials[0])]
    assert names[0] <= names[1]


def test_a_trial_is_scored_on_rows_of_known_classes(trials, small_set):
    folder, records = trials
    record = records[0]
    hidden = hide_known(make_split(small_set))
    (file,) = (folder / "work" / "outcomes").glob("gcd-*.npz")
    labels = np.load(file)["labels"]
    rows = hidden.is_scored
    scores = discovery_scores(hidden.truth[rows], labels[rows], hidden.known)
    assert records[2].all == round(100 * scores.all, 2)
    assert (record.case.hidden, record.case.trial, record.n_novel_true) == (True, 0, 2)
    # K is the same for all methods: all known classes, and Brent's K^n with all labels
    assert records[2].n_components == record.n_components > 5
    assert record.k_source == "Brent search on the features before training"


def test_the_best_trial_is_taken_and_must_be_whole(trials):
    records = read_records(trials[0] / "tuning.jsonl")
    gpc = [record for record in records if record.case.method == "gpc"]
    with pytest.raises(InputError, match=r"trials \[0, 2\] of gpc on digits"):
        best_trial("gpc", "digits", {}, records)
    with pytest.raises(InputError, match="bench tune uno digits"):
        best_trial("uno", "digits", {}, records)
    other = replace(gpc[0], case=replace(gpc[0].case, trial=1))
    with pytest.raises(InputError, match="another value of weight_average"):
        best_trial("gpc", "digits", {}, [*gpc, other])
    longer = replace(other, case=replace(other.case, epochs=9))
    with pytest.raises(InputError, match="differ in epochs or images"):
        best_trial("gpc", "digits", {}, [*gpc, longer])
    with pytest.raises(InputError, match=r"trials \[\] of gpc on digits"):
        best_trial("gpc", "digits", {"weights": "hub"}, records)
    settings = gpc[0].settings | {"weight_average": 0.0}
    whole = [*gpc, replace(other, settings=settings)]
    scored = [replace(r, all=a) for r, a in zip(whole, (50.0, 60.0, 60.0), strict=True)]
    best = best_trial("gpc", "digits", {}, scored)  # of equal ones the first
    assert best == (1, {"weight_average": 0.0})
    assert best_trial("kmeans", "digits", {}, []) is None
    assert best_trial("gpc", "digits-lt", {}, scored) == best  # nothing is chosen on a long tail
