"""One case from beginning to end: what a method is given, what is recorded, what is done twice."""

import json
import math
import platform
from dataclasses import replace
from importlib.metadata import version
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

import newfound
from newfound.bench import finding_k, provenance
from newfound.bench import run as module
from newfound.bench.case import Case
from newfound.bench.datasets import DataSet
from newfound.bench.method import BenchMethod
from newfound.bench.methods import NAMES
from newfound.bench.protocol import bench_settings, make_case
from newfound.bench.provenance import files_checksum, versions
from newfound.bench.results import read_records
from newfound.bench.rivals import brent_search
from newfound.bench.run import Place, rows_of, run_case
from newfound.bench.run_files import outcome_file, run_folder
from newfound.bench.splits import make_split
from newfound.bench.start import start_features
from newfound.deep import estep, trainer
from newfound.deep.network.backbone import load_backbone
from newfound.deep.network.identity import weights_id
from newfound.deep.partition import mixture_for, mixture_space
from newfound.deep.records import Listener
from newfound.deep.settings import Settings
from newfound.errors import InputError
from newfound.mixture.alternatives import ConstrainedDBSCAN, ConstrainedWard
from newfound.mixture.counting.count import count_categories
from newfound.mixture.estimator import SplitMergeMixture
from newfound.mixture.kmeans import SemiSupervisedKMeans
from newfound.own_folder import FolderInUseError
from newfound.workflows.demo import DIGITS

torch.set_num_threads(1)
pytestmark = pytest.mark.usefixtures("few_pictures")

FINDERS = {"gcd", "pim", "cms", "dccl", "mixture", "gpc", "gpc-literal"}
UNTRAINED = ("kmeans", "mixture")
TAKE_FEATURES = ["kmeans", "mixture", "gcd", "pim", "cms", "dccl", "gpc", "gpc-literal"]
QUICK = {"epochs": 2, "n_labelled_per_batch": 16, "n_unlabelled_per_batch": 48}
#: What is not the same when the same run is made twice.
TIMES = {"seconds": 0.0, "seconds_per_epoch": 0.0, "e_step_share": 0.0, "date": ""}


class Stop(Exception):
    """What ends a run in these tests."""


class Given(NamedTuple):
    """What a method was given."""

    n_components: int | None
    settings: Settings
    n_starts: int
    X: Any
    y: np.ndarray
    method: BenchMethod


class Run(NamedTuple):
    case: Case
    record: Any
    given: Given
    labels: np.ndarray
    features: np.ndarray


def place_in(folder):
    results = folder / "results" / "bench.jsonl"
    return Place(folder / "data", folder / "work", results, commit="c0ffee-dirty")


def prepare(name, source="digits", *, changes=None, **options):
    settings = bench_settings(str(source), method=name)
    settings = settings.with_changes(**{**QUICK, **(changes or {})})
    options = {"n_starts": 3} | options
    return make_case(name, str(source), settings, **options), settings


def go(name, folder, source="digits", *, changes=None, listener=None, **options):
    case, settings = prepare(name, source, changes=changes, **options)
    return run_case(case, settings, place_in(folder), str(source), listener=listener)


def run_and_watch(name, folder, source="digits", **options):
    """A run with what the method was given, and what was kept of it."""
    given = []
    fit = BenchMethod.fit

    def spy(self, X, y):
        given.append(Given(self.n_components, self.settings, self.n_starts, X, np.array(y), self))
        return fit(self, X, y)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BenchMethod, "fit", spy)
        record = go(name, folder, source, **options)
    with np.load(outcome_file(record.case, place_in(folder).work)) as outcome:
        return Run(record.case, record, given[0], outcome["labels"], outcome["features"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def runs(folder, few_pictures):
    """Every method once, K unknown."""
    return {name: run_and_watch(name, folder) for name in NAMES}


@pytest.fixture
def asked(monkeypatch):
    """What methods are given; nothing is fitted."""
    given = []

    def stop(self, X, y):
        given.append(Given(self.n_components, self.settings, self.n_starts, X, y, self))
        raise Stop

    monkeypatch.setattr(BenchMethod, "fit", stop)

    def ask(*arguments, **options):
        with pytest.raises(Stop):
            go(*arguments, **options)
        return given[-1]

    return ask


@pytest.fixture
def feature_file(tmp_path, few_digits):
    path = tmp_path / "somewhere" / "dino.npz"
    path.parent.mkdir()
    X = few_digits.pixels[:, 0].reshape(len(few_digits.truth), -1) / 255
    np.savez(path, X=X, y=few_digits.truth, known=np.arange(5))
    return path


def without_times(record):
    return replace(record, **TIMES)


# --- nothing is given that must not be known


def test_no_method_sees_the_truth_of_novel_classes(runs, small_set, tmp_path, monkeypatch):
    """Other novel classes, and three times as many: the same answer to the bit."""
    true_split = make_split(small_set)
    truth = true_split.truth.copy()
    novel = ~np.isin(truth, true_split.known)
    truth[novel] = 50 + np.random.default_rng(1).integers(6, size=novel.sum())
    other = replace(true_split, truth=truth)
    assert (other.n_novel, true_split.n_novel) == (6, 2)
    monkeypatch.setattr(module, "make_split", lambda dataset, **options: other)
    for name, run in runs.items():
        again = run_and_watch(name, tmp_path)
        np.testing.assert_array_equal(again.labels, run.labels, err_msg=name)
        np.testing.assert_array_equal(again.features, run.features, err_msg=name)
        assert again.record.n_components == run.record.n_components, name
        assert again.record.n_novel_true == 6
        assert again.record.split != run.record.split


@pytest.mark.parametrize("name", NAMES)
def test_labels_are_those_of_the_split_and_none_is_of_a_novel_class(runs, small_set, name):
    split = make_split(small_set)
    given = runs[name].given
    np.testing.assert_array_equal(given.y, split.y)
    assert set(given.y) == {-1, 0, 1, 2, 3, 4}
    np.testing.assert_array_equal(given.X, small_set.array)


@pytest.mark.parametrize("name", NAMES)
def test_without_k_a_method_gets_none_or_brents_number(runs, small_set, name):
    given = runs[name].given
    record = runs[name].record
    if name in FINDERS:
        assert given.n_components is None
        searches = {
            "gcd": "Brent search on the finished features",
            "pim": "Brent search with PIM on the finished features",
            "cms": "Ward's tree on the finished features",
            "dccl": "communities of the finished features",
        }
        assert record.k_source == searches.get(name, "mixture")
        return
    Z = start_features(small_set.array, given.settings)
    n_novel = brent_search(Z, make_split(small_set).y, random_state=0)
    assert given.n_components == 5 + n_novel
    assert record.k_source == "Brent search on the features before training"
    assert (record.n_components, record.n_novel) == (5 + n_novel, n_novel)


@pytest.mark.parametrize("name", NAMES)
def test_with_k_a_method_is_given_known_and_novel_together(asked, tmp_path, name):
    assert asked(name, tmp_path, k="known").n_components == 7


@pytest.mark.parametrize("name", ["rankstats", "dualrank", "gcd"])
def test_a_joint_method_is_given_k_only_if_it_is_known(asked, tmp_path, name):
    given = asked(name, tmp_path, joint=True)
    assert given.n_components is None
    assert given.settings.estep.n_components is None
    assert given.method.joint
    given = asked(name, tmp_path, joint=True, k="known")
    assert given.n_components == 7
    if name != "gcd":  # which has no loop that would split and merge
        assert given.settings.estep.n_components == 7


def test_a_joint_method_keeps_a_known_k(tmp_path):
    record = go("gcd", tmp_path, joint=True, k="known")
    assert (record.n_components, record.k_source) == (7, "given")
    record = go("gcd", tmp_path, joint=True)
    assert record.k_source == "mixture"


@pytest.mark.parametrize(
    ("prototypes", "k"), [("mixture", None), ("dbscan", None), ("ward", 9), ("kmeans", 9)]
)
def test_prototypes_that_need_k_get_brents(asked, tmp_path, monkeypatch, prototypes, k):
    monkeypatch.setattr(finding_k, "brent_search", lambda Z, y, random_state: 4)
    given = asked("gpc", tmp_path, prototypes=prototypes)
    assert given.n_components == k
    assert given.method.prototypes == prototypes


def test_dbscan_finds_its_own_k_also_where_it_is_known(tmp_path):
    record = go("gpc", tmp_path, prototypes="dbscan", k="known", changes={"epochs": 1})
    assert record.k_source == "DBSCAN"
    assert record.n_novel == record.n_components - 5


# --- the record


def slow_scores(truth, labels, known):
    """The greatest number of right rows, and the numbers of right known rows that go with it.

    Clusters come one after the other; each takes a class that is free, or none.
    """
    classes = sorted(set(truth))
    found = {0: {(0, 0)}}  # classes taken, as bits → (right, right of known classes)
    for cluster in sorted(set(labels)):
        grown = {taken: set(values) for taken, values in found.items()}
        for place, name in enumerate(classes):
            right = sum(t == name and k == cluster for t, k in zip(truth, labels, strict=True))
            old = right if name in known else 0
            for taken, values in found.items():
                if not taken >> place & 1:
                    more = {(total + right, olds + old) for total, olds in values}
                    grown.setdefault(taken | 1 << place, set()).update(more)
        found = grown
    best = max(total for values in found.values() for total, _ in values)
    return best, {old for values in found.values() for total, old in values if total == best}


def slow_information(truth, labels):
    """Mutual information over the mean of the entropies."""
    n = len(truth)

    def entropy(values):
        counts = [values.count(value) for value in set(values)]
        return -sum(count / n * math.log(count / n) for count in counts)

    truth, labels = list(truth), list(labels)
    h_truth, h_labels = entropy(truth), entropy(labels)
    mutual = h_truth + h_labels - entropy(list(zip(truth, labels, strict=True)))
    return mutual / ((h_truth + h_labels) / 2)


def slow_rand(truth, labels):
    """Adjusted Rand index by counting pairs."""
    n = len(truth)
    both = same_truth = same_labels = 0
    for i in range(n):
        for j in range(i):
            both += truth[i] == truth[j] and labels[i] == labels[j]
            same_truth += truth[i] == truth[j]
            same_labels += labels[i] == labels[j]
    expected = same_truth * same_labels / (n * (n - 1) / 2)
    return (both - expected) / ((same_truth + same_labels) / 2 - expected)


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_those_of_the_labels_that_were_kept(runs, small_set, name):
    record, split = runs[name].record, make_split(small_set)
    rows = [row for row in range(len(split.y)) if split.y[row] == -1]
    truth = [int(split.truth[row]) for row in rows]
    labels = [int(runs[name].labels[row]) for row in rows]
    right, of_old = slow_scores(truth, labels, {0, 1, 2, 3, 4})
    n_old = sum(t < 5 for t in truth)
    n_new = len(truth) - n_old
    assert record.all == round(100 * right / len(truth), 2)
    assert record.old in {round(100 * old / n_old, 2) for old in of_old}
    assert record.new in {round(100 * (right - old) / n_new, 2) for old in of_old}
    assert record.nmi == pytest.approx(slow_information(truth, labels), abs=1e-4)
    assert record.ari == pytest.approx(slow_rand(truth, labels), abs=1e-4)
    share = n_old / len(truth)
    assert record.all == pytest.approx(share * record.old + (1 - share) * record.new, abs=0.011)


@pytest.mark.parametrize("name", NAMES)
def test_a_record_says_what_was_run(runs, small_set, name):
    run, split = runs[name], make_split(small_set)
    record = run.record
    assert (record.case.method, record.case.dataset, record.case.seed) == (name, "digits", 0)
    own = {"gpc": "count", "mixture": "count"}
    own |= dict.fromkeys(("gpc-literal", "cms", "dccl"), "own")
    assert record.case.k == own.get(name, "brent")
    assert record.case.pca is (name in ("mixture", "gpc", "gpc-literal"))
    assert record.case.epochs == (0 if name in UNTRAINED else 2)
    assert (record.case.model, record.case.weights) == (DIGITS.network.model, "random")
    assert record.case.pretraining == "none"
    assert record.split == split.checksum
    assert record.layout == "official"
    assert (record.n_labelled, record.n_unlabelled) == (50, 90)
    assert (record.n_known, record.n_novel_true) == (5, 2)
    assert record.n_components == run.given.method.n_components_
    assert record.n_novel == record.n_components - 5
    checkpoints = {
        "kmeans": "no training",
        "mixture": "no training",
        "gpc-literal": "best on held-out labels",
    }
    assert record.checkpoint == checkpoints.get(name, "last epoch")
    assert record.machine == module.machine()
    assert record.n_novel_of_mixture is None
    assert record.settings == run.given.method.resolved()
    assert record.settings["n_directions"] == run.given.settings.estep.n_directions
    assert record.files == files_checksum(small_set, split)
    assert (record.commit, record.clean) == ("c0ffee", False)
    assert record.seconds >= 0
    assert "T" in record.date
    assert record.date.endswith("+00:00")


@pytest.mark.parametrize("name", NAMES)
def test_epochs_are_those_of_the_log(runs, folder, name):
    record = runs[name].record
    given = runs[name].given.n_components
    log = run_folder(record.case, folder / "work", given) / "epochs.jsonl"
    if name in UNTRAINED:
        assert not log.exists()
        assert (record.seconds_per_epoch, record.e_step_share) == (0, 0)
        assert record.n_novel_by_epoch == []
        return
    epochs = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(epochs) == 2
    found = [epoch["n_novel"] for epoch in epochs if epoch["n_novel"] is not None]
    assert record.n_novel_by_epoch == found
    assert len(found) == (2 if name in ("dccl", "bacon", "gpc", "gpc-literal") else 0)
    assert record.seconds_per_epoch == round(median(epoch["seconds"] for epoch in epochs), 3)
    share = sum(epoch["e_step_seconds"] for epoch in epochs)
    assert record.e_step_share == round(share / sum(epoch["seconds"] for epoch in epochs), 3)


def test_versions_are_those_that_are_installed():
    found = versions()
    assert found.pop("python") == platform.python_version()
    assert found.pop("newfound") == newfound.__version__
    names = {"numpy", "scikit-learn", "torch", "timm"}
    assert found == {name: version(name) for name in names}


def test_a_package_that_is_not_there_is_said_so(monkeypatch):
    monkeypatch.setattr(provenance, "_PACKAGES", ("no-such-package",))
    assert versions()["no-such-package"] == "not installed"


def test_records_are_lines_of_the_results_file(runs, folder):
    found = read_records(folder / "results")
    assert found[: len(NAMES)] == [run.record for run in runs.values()]
    assert found[0].versions == versions()


def test_the_outcome_holds_features_and_labels(runs):
    for run in runs.values():
        np.testing.assert_array_equal(run.labels, run.given.method.labels_)
        assert run.features.dtype == np.float16
        np.testing.assert_array_equal(run.features, run.given.method.features_.astype(np.float16))


@pytest.mark.parametrize("name", ["gcd", "rankstats", "orca"])
def test_the_mixture_counts_in_the_features_of_others_where_k_is_known(small_set, tmp_path, name):
    run = run_and_watch(name, tmp_path, k="known", changes={"seed": 1})
    if name == "orca":
        assert run.record.n_novel_of_mixture is None
        return
    mixture = SplitMergeMixture(n_init=1, random_state=1)
    mixture.fit(run.given.method.features_, make_split(small_set).y)
    assert run.record.n_novel_of_mixture == mixture.n_novel_


def test_epochs_are_compared_only_where_there_is_something_to_compare_them_by(tmp_path):
    options = {"changes": {"selection": "validation", "epochs": 1}, "k": "known"}
    assert go("simgcd", tmp_path, **options).checkpoint == "last epoch"
    assert go("gpc", tmp_path, **options).checkpoint == "best on held-out labels"


# --- what reaches the split and the method


@pytest.mark.parametrize(
    ("options", "n_known", "n_novel"),
    [({"n_old": 3}, 3, 4), ({"overlap": 2}, 5, 2), ({"labelled_only": "3/2"}, 3, 2)],
)
def test_the_variant_of_the_split_is_made(small_set, tmp_path, options, n_known, n_novel):
    run = run_and_watch("kmeans", tmp_path, k="known", **options)
    split, record = make_split(small_set, **options), run.record
    assert record.split == split.checksum != make_split(small_set).checksum
    assert (record.n_known, record.n_novel_true) == (n_known, n_novel)
    assert record.n_components == n_known + n_novel
    assert (record.n_labelled, record.n_unlabelled) == (split.n_labelled, split.n_unlabelled)
    np.testing.assert_array_equal(run.given.X, small_set.array[split.rows])
    np.testing.assert_array_equal(run.given.y, split.y)
    (name,) = options
    assert getattr(record.case, name) == options[name]


@pytest.mark.parametrize(("k_init", "expected"), [(None, None), (0, 5), (4, 9)])
def test_k_init_counts_the_novel_ones(asked, tmp_path, k_init, expected):
    assert asked("gpc", tmp_path, k_init=k_init).settings.estep.n_components_init == expected


@pytest.mark.parametrize(
    "name", [name for name in TAKE_FEATURES if name not in ("pim", "cms", "dccl")]
)
@pytest.mark.parametrize("pca", [None, True, False])
def test_pca_is_the_methods_own_unless_it_is_asked_for(asked, tmp_path, name, pca):
    given = asked(name, tmp_path, pca=pca, k="known")
    on = name in ("mixture", "gpc", "gpc-literal") if pca is None else pca
    assert given.settings.estep.pca == ("all" if on else "off")


def test_methods_without_principal_directions_have_none(asked, tmp_path):
    assert asked("simgcd", tmp_path, pca=True, k="known").settings.estep.pca == "off"
    assert prepare("simgcd", pca=True)[0].pca is False
    assert prepare("pim", pca=True)[0].pca is False
    assert prepare("cms", pca=True)[0].pca is False
    assert prepare("dccl", pca=True)[0].pca is False


def test_all_other_settings_reach_the_method(asked, tmp_path):
    changes = {"seed": 3, "learning_rate": 0.03, "warmup_epochs": 1}
    given = asked("gpc", tmp_path, changes=changes, k="known", n_starts=8)
    expected = bench_settings("digits").with_changes(**{**QUICK, **changes}, pca="all")
    assert given.settings == expected
    assert asked("gcd", tmp_path, k="known", n_starts=8).n_starts == 8
    assert asked("gcd", tmp_path, k="known", n_starts=100).n_starts == 100


def test_images_are_taken_as_they_are_or_made_smaller(tmp_path, small_set):
    settings = DIGITS.with_changes(image_size=8, crop_max=1.0)
    split = make_split(small_set)
    assert rows_of(small_set, split, settings, tmp_path) is small_set.array
    assert rows_of(small_set, split, DIGITS, tmp_path) is small_set.array  # views enlarge
    smaller = rows_of(small_set, split, settings.with_changes(image_size=4), tmp_path)
    assert smaller.shape == (140, 3, 4, 4)
    windows = settings.with_changes(image_size=4, crop_max=0.6, crop_min=0.5)
    assert rows_of(small_set, split, windows, tmp_path).shape == (140, 3, 7, 7)
    part = make_split(small_set, overlap=0)
    np.testing.assert_array_equal(
        rows_of(small_set, part, DIGITS, tmp_path), small_set.array[part.rows]
    )


@pytest.mark.parametrize(("side", "expected"), [(6, 6), (None, 8), (20, 8)])
def test_files_of_small_images_are_stored_at_their_own_side(tmp_path, side, expected):
    paths = [tmp_path / "a" / f"{i}.png" for i in range(4)]
    paths[0].parent.mkdir()
    for path in paths:
        Image.new("RGB", (6, 6), "red").save(path)
    data = DataSet("files", np.array([0, 0, 1, 1]), ("a", "b"), (0,), paths=paths, side=side)
    settings = DIGITS.with_changes(image_size=8, crop_max=1.0)
    stored = rows_of(data, make_split(data), settings, tmp_path / "work")
    assert stored.shape == (4, 3, expected, expected)


# --- no path is recorded


def strings_in(values):
    if isinstance(values, dict):
        return [text for pair in values.items() for part in pair for text in strings_in(part)]
    if isinstance(values, list):
        return [text for value in values for text in strings_in(value)]
    return [values] if isinstance(values, str) else []


def test_no_path_stands_in_a_record(tmp_path, feature_file):
    file = tmp_path / "secret" / "mine.safetensors"
    file.parent.mkdir()
    torch.manual_seed(5)
    backbone = load_backbone(DIGITS.network.model, "random", image_size=12)
    save_file(backbone.network.state_dict(), file)
    changes = {"weights": str(file), "epochs": 1}
    record = go("gpc", tmp_path, changes=changes, k="known")
    assert record.case.weights == weights_id(str(file))
    assert record.case.pretraining == "ImageNet"
    go("kmeans", tmp_path, changes=changes)
    go("kmeans", tmp_path, feature_file)
    text = (tmp_path / "results" / "bench.jsonl").read_text()
    assert len(text.splitlines()) == 3
    for line in text.splitlines():
        for value in strings_in(json.loads(line)):
            assert "/" not in value
            assert "\\" not in value
            assert not {"secret", "mine", "somewhere"} & set(value.replace(".", " ").split())


# --- twice


def test_what_the_results_have_is_skipped(runs, folder, monkeypatch):
    before = (folder / "results" / "bench.jsonl").read_bytes()

    def fail(*arguments, **options):
        pytest.fail("something was done again")

    monkeypatch.setattr(BenchMethod, "fit", fail)
    monkeypatch.setattr(module, "rows_of", fail)
    monkeypatch.setattr(finding_k, "brent_search", fail)
    for name in runs:
        assert go(name, folder) is None
    assert (folder / "results" / "bench.jsonl").read_bytes() == before


def test_a_run_on_other_rows_is_not_taken_for_it(runs, folder, monkeypatch):
    class Stop(Exception):
        pass

    def stop(*arguments, **options):
        raise Stop

    monkeypatch.setattr(module, "files_checksum", lambda dataset, split: "another")
    monkeypatch.setattr(module, "rows_of", stop)
    with pytest.raises(Stop):
        go("kmeans", folder)


def test_another_seed_is_another_case(runs, folder, asked):
    assert asked("gpc", folder, changes={"seed": 1}).settings.run.seed == 1


class StopAfter(Listener):
    """Stops a run after a batch, or remembers where it began."""

    def __init__(self, epoch=None):
        self.stop, self.first = epoch, None

    def start(self, n_epochs, first_epoch):
        self.first = first_epoch

    def batch(self, epoch, n_done, n_batches):
        if epoch == self.stop:
            raise Stop


@pytest.mark.parametrize("name", ["gpc", "gpc-literal", "gcd", "simgcd", "dualrank"])
def test_a_run_that_was_killed_resumes_to_the_same_record(runs, tmp_path, name):
    listeners = []

    def listen(folder, epoch):
        given = runs[name].given.n_components
        assert folder == run_folder(runs[name].case, tmp_path / "work", given)
        listeners.append(StopAfter(epoch))
        return listeners[-1]

    with pytest.raises(Stop):
        go(name, tmp_path, listener=lambda folder: listen(folder, 1))
    assert read_records(tmp_path / "results") == []
    record = go(name, tmp_path, listener=lambda folder: listen(folder, None))
    assert [listener.first for listener in listeners] == [0, 1]
    assert without_times(record) == without_times(runs[name].record)
    with np.load(outcome_file(record.case, tmp_path / "work")) as outcome:
        np.testing.assert_array_equal(outcome["labels"], runs[name].labels)
        np.testing.assert_array_equal(outcome["features"], runs[name].features)


def test_gcd_is_trained_once_whatever_k_is(runs, folder):
    listeners = []

    def listen(where):
        listeners.append(StopAfter())
        return listeners[-1]

    for options in ({"k": "known"}, {"joint": True}, {"n_starts": 2}):
        record = go("gcd", folder, listener=listen, **options)
        assert run_folder(record.case, folder) == run_folder(runs["gcd"].case, folder)
    assert [listener.first for listener in listeners] == [2, 2, 2]  # all epochs were there
    seeds = [prepare("gcd", changes={"seed": seed})[0] for seed in (0, 1)]
    assert run_folder(seeds[0], folder) != run_folder(seeds[1], folder)


def test_a_training_that_another_process_makes_is_left_alone(tmp_path):
    """K given and K unknown share a training; the second one must not write into its folder."""

    class Meanwhile(Listener):
        def batch(self, epoch, n_done, n_batches):
            with pytest.raises(FolderInUseError, match="is in use by process"):
                go("gcd", tmp_path, k="known")
            raise Stop

    with pytest.raises(Stop):
        go("gcd", tmp_path, listener=lambda folder: Meanwhile())
    with pytest.raises(Stop):  # the lock is gone with the run that stopped
        go("gcd", tmp_path, k="known", listener=lambda folder: StopAfter(0))


# --- Brent's search


@pytest.fixture
def searched(monkeypatch):
    """Calls of Brent's search, which finds 4."""
    calls = []

    def search(Z, y, *, random_state):
        calls.append((Z.shape, random_state))
        return 4

    monkeypatch.setattr(finding_k, "brent_search", search)
    return calls


def test_brents_number_is_found_once_and_read_back(asked, searched, tmp_path, monkeypatch):
    given = [asked(name, tmp_path).n_components for name in NAMES if name not in FINDERS]
    assert given == [9] * (len(NAMES) - len(FINDERS))
    assert searched == [((140, 96), 0)]
    (file,) = (tmp_path / "work").glob("brent-*.json")
    values = json.loads(file.read_text())
    assert values["n_novel"] == 4
    file.write_text(json.dumps(values | {"n_novel": 11}))
    assert asked("uno", tmp_path).n_components == 16
    assert asked("uno", tmp_path, k="known").n_components == 7
    assert len(searched) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"changes": {"seed": 1}},
        {"changes": {"image_size": 16}},
        {"changes": {"crop_max": 0.9}},
        {"changes": {"model": "test_efficientnet"}},
        {"n_old": 4},
        {"overlap": 1},
    ],
)
def test_other_features_are_searched_again(asked, searched, tmp_path, options):
    asked("kmeans", tmp_path)
    asked("kmeans", tmp_path, **options)
    assert len(searched) == 2


def test_what_does_not_change_the_features_does_not_change_the_number(asked, searched, tmp_path):
    asked("kmeans", tmp_path)
    asked("simgcd", tmp_path, changes={"learning_rate": 0.3, "epochs": 9, "rotation": 1.0})
    assert len(searched) == 1


def test_other_features_of_the_same_rows_are_searched_again(
    asked, searched, tmp_path, feature_file, few_digits
):
    asked("kmeans", tmp_path, feature_file)
    other = feature_file.with_name("clip.npz")
    X = np.random.default_rng(0).normal(size=(140, 5))
    np.savez(other, X=X, y=few_digits.truth, known=np.arange(5))
    asked("kmeans", tmp_path, other)
    np.savez(feature_file, X=X[:, :3], y=few_digits.truth, known=np.arange(5))
    asked("kmeans", tmp_path, feature_file)
    assert [shape for shape, _ in searched] == [(140, 64), (140, 5), (140, 3)]
    asked("kmeans", tmp_path, other)
    assert len(searched) == 3


# --- K in three ways


@pytest.mark.parametrize("name", NAMES)
def test_each_method_takes_k_from_the_count_or_from_brent(
    asked, searched, tmp_path, small_set, name
):
    counted = asked(name, tmp_path, k="count").n_components
    if name in ("mixture", "gpc"):
        assert counted is None  # they count by themselves
    else:
        settings = prepare(name)[1]
        Z = start_features(small_set.array, settings)
        count = count_categories(Z, make_split(small_set).y, random_state=0)
        assert counted == 5 + round(count.n_novel)
    assert asked(name, tmp_path, k="brent").n_components == (None if name in ("gcd", "pim") else 9)


def test_the_record_has_the_interval_of_a_count_and_of_no_other_k(runs, tmp_path):
    low, high = go("kmeans", tmp_path, k="count").n_novel_interval
    assert low <= high
    own = runs["mixture"].given.method.n_novel_interval_
    assert runs["mixture"].record.n_novel_interval == [round(end, 2) for end in own]
    assert runs["gcd"].record.n_novel_interval is None
    assert go("mixture", tmp_path, k="known").n_novel_interval is None


def test_a_training_is_shared_where_two_ways_give_the_same_k(tmp_path, monkeypatch):
    monkeypatch.setattr(finding_k, "brent_search", lambda Z, y, random_state: 2)
    listeners = []

    def listen(where):
        listeners.append(StopAfter())
        return listeners[-1]

    records = [go("simgcd", tmp_path, k=k, listener=listen) for k in ("known", "brent")]
    assert [listener.first for listener in listeners] == [0, 2]  # all epochs were there
    assert (records[0].all, records[0].k_source) == (records[1].all, "given")


# --- rows that show where the gain is


def test_our_mixture_clusters_the_finished_features_of_a_run(runs, folder, small_set):
    record = go("simgcd", folder, k="brent", clustering="mixture")
    run = runs["simgcd"]
    settings = run.given.settings.with_changes(pca="all", n_components=run.record.n_components)
    mixture = mixture_for(settings.estep, run.features.shape[1], random_state=0)
    mixture.fit(run.features.astype(np.float32), make_split(small_set).y)
    with np.load(outcome_file(record.case, folder / "work")) as outcome:
        np.testing.assert_array_equal(outcome["labels"], mixture.labels_)
        np.testing.assert_array_equal(outcome["features"], run.features)
    assert record.checkpoint == "features of the finished run"
    assert (record.case.epochs, record.n_components) == (2, run.record.n_components)
    assert record.settings == run.record.settings


def test_without_a_run_there_is_nothing_to_cluster(tmp_path):
    with pytest.raises(InputError, match="Run the same command first without --clustering"):
        go("simgcd", tmp_path, k="known", clustering="mixture")
    assert read_records(tmp_path / "results") == []


@pytest.mark.parametrize(
    ("part", "setting"), [("D25", "weight_average"), ("D26", "target_temperature")]
)
def test_gpc_without_a_part_that_is_a_setting(asked, tmp_path, part, setting):
    given = asked("gpc", tmp_path, without=part, k="known")
    with_it = asked("gpc", tmp_path, k="known")
    used, plain = given.method.resolved(), with_it.method.resolved()
    assert {name for name in used if used[name] != plain[name]} == {setting}
    assert used[setting] == 0


@pytest.mark.parametrize(("part", "heeded"), [(None, "both"), ("D27", "end"), ("D28", "training")])
def test_gpc_without_sizes_in_training_or_at_the_end(tmp_path, monkeypatch, part, heeded):
    seen = {"training": set(), "end": set()}

    def heed(clusters, labels, sizes, *arguments):
        seen["training"].add(sizes)
        return clusters

    def finish(finished, settings):
        seen["end"].add(finished.sizes)
        raise Stop

    monkeypatch.setattr(estep, "heed_sizes", heed)
    monkeypatch.setattr(trainer, "fit_final_mixture", finish)
    with pytest.raises(Stop):
        go("gpc", tmp_path, without=part, k="known", changes={"epochs": 1})
    expected = {name: {"unknown"} if heeded in (name, "both") else {None} for name in seen}
    assert seen == expected


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_weights_of_any_method_are_averaged_if_asked_for(tmp_path, monkeypatch, average):
    decays = []

    def average_of(weights, decay):
        decays.append(decay)
        raise Stop

    monkeypatch.setattr("newfound.deep.setup.WeightAverage", average_of)
    for name in ("simgcd", "gcd", "rankstats"):
        with pytest.raises(Stop):
            go(name, tmp_path, k="known", changes={"weight_average": average})
    assert decays == [average] * 3


# --- files of features


@pytest.mark.parametrize("k", ["known", "unknown"])
@pytest.mark.parametrize("name", TAKE_FEATURES)
def test_features_are_a_data_set(tmp_path, feature_file, small_set, name, k):
    run = run_and_watch(name, tmp_path, feature_file, k=k)
    record, case = run.record, run.case
    assert (case.dataset, case.epochs, case.model) == ("dino", 0, "")
    assert case.weights == weights_id(str(feature_file))
    assert (case.pretraining, record.checkpoint) == ("none", "no training")
    assert record.layout == "features"
    assert record.split == make_split(small_set).checksum
    assert (record.n_known, record.n_novel_true) == (5, 2)
    assert record.all > 50
    assert record.n_novel_by_epoch == []
    if k == "known":
        assert (record.n_components, record.k_source) == (7, "given")
    assert go(name, tmp_path, feature_file, k=k) is None
    assert not run_folder(case, tmp_path / "work").exists()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in TAKE_FEATURES])
def test_other_methods_refuse_features_before_anything_is_searched(
    searched, tmp_path, feature_file, name
):
    with pytest.raises(InputError, match="learns from images; it cannot use features"):
        go(name, tmp_path, feature_file)
    assert searched == []


def test_only_what_matters_to_features_is_a_change(tmp_path, feature_file):
    changes = {"learning_rate": 0.3, "n_directions": 9, "whiten": True, "image_size": 16}
    record = go("gcd", tmp_path, feature_file, changes=changes, k="known", n_starts=2)
    assert record.case.changes == {"n_directions": 9, "whiten": True, "n_starts": 2}
    record = go("kmeans", tmp_path, feature_file, changes=changes, k="known")
    assert record.case.changes == {"n_directions": 9}


def test_starts_of_k_means_reach_gcd_on_features(asked, tmp_path, feature_file):
    assert asked("gcd", tmp_path, feature_file, n_starts=2).n_starts == 2


@pytest.mark.parametrize(
    ("prototypes", "clusterer"),
    [
        ("ward", ConstrainedWard(7, random_state=0)),
        ("kmeans", SemiSupervisedKMeans(7, random_state=0)),
        ("dbscan", ConstrainedDBSCAN()),
    ],
)
def test_prototypes_of_features(tmp_path, feature_file, prototypes, clusterer):
    run = run_and_watch("gpc", tmp_path, feature_file, k="known", prototypes=prototypes)
    V, _ = mixture_space(run.given.X, run.given.y, run.given.settings.estep)
    np.testing.assert_array_equal(run.labels, clusterer.fit(V, run.given.y).labels_)
    assert run.record.case.prototypes == prototypes


@pytest.mark.parametrize("option", ["incomplete", "download"])
def test_a_set_that_is_incomplete_or_not_there_must_be_asked_for(tmp_path, monkeypatch, option):
    seen = []

    def load(name, root, **options):
        seen.append((name, root, options[option]))
        raise Stop

    monkeypatch.setattr(module, "load_dataset", load)
    case, settings = prepare("kmeans", "cub")
    for asked in (False, True):
        with pytest.raises(Stop):
            run_case(case, settings, replace(place_in(tmp_path), **{option: asked}), "cub")
    assert seen == [("cub", tmp_path / "data", False), ("cub", tmp_path / "data", True)]
