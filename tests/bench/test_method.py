"""What every method has in common, and what the tables read of it."""

import re

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from newfound.bench.method import BenchMethod, Classifier, ClassifierLearner
from newfound.bench.methods import NAMES, find_method
from newfound.bench.tables.plan import METHODS
from newfound.deep.checkpoint import LAST
from newfound.deep.method import Batch
from newfound.deep.records import Listener
from newfound.deep.settings import Settings
from newfound.errors import InputError
from newfound.workflows.demo import DIGITS

torch.set_num_threads(1)

QUICK = DIGITS.with_changes(
    epochs=1, rehearse=False, n_labelled_per_batch=16, n_unlabelled_per_batch=48
)
CLASSIFIERS = ["rankstats", "dualrank", "uno", "orca", "simgcd"]


# --- the registry


@pytest.mark.parametrize("name", NAMES)
def test_every_method_is_found_and_says_what_it_is(name):
    cls = find_method(name)
    assert issubclass(cls, BenchMethod)
    assert not cls.__abstractmethods__
    assert cls.title.strip()
    assert re.search(r"\b(19|20)\d\d\b", cls.source)
    # of its own: a docstring is not inherited
    departures = re.search(r"\n +Departures\n +-{10}\n +- (.+)", cls.__doc__)
    assert departures, f"{cls.__name__} does not say where it departs from its source"


def test_titles_are_all_different_and_the_tables_have_all_methods():
    assert len({find_method(name).title for name in NAMES}) == len(NAMES)
    assert set(METHODS) == set(NAMES)
    for name, row in METHODS.items():
        cls = find_method(name)
        assert (cls.uses_pca, cls.own_k) == (row.has_pca, row.own_k), name


def test_what_methods_can_do():
    found = {name: find_method(name) for name in NAMES}

    def those(attribute):
        return {name for name, cls in found.items() if getattr(cls, attribute)}

    assert those("takes_features") == {
        *("kmeans", "mixture", "gcd", "pim", "cms", "dccl", "gpc", "gpc-literal")
    }
    assert those("learns") == set(NAMES) - {"kmeans", "mixture"}
    assert those("learns_without_k") == {"gcd", "pim", "cms", "dccl"}
    assert those("uses_starts") == {"gcd", "pim", "dccl", "bacon"}
    assert those("finds_k") == {*("mixture", "gcd", "pim", "cms", "dccl", "gpc", "gpc-literal")}
    assert those("pca_by_default") == {"mixture", "gpc", "gpc-literal"}
    assert {name for name, cls in found.items() if "joint" in cls.variants} == {
        *("rankstats", "dualrank", "gcd")
    }
    assert {name for name, cls in found.items() if issubclass(cls, Classifier)} == set(CLASSIFIERS)


@pytest.mark.parametrize("name", ["", "GPC", "k-means", "gpc_literal"])
def test_an_unknown_method_is_answered_with_those_there_are(name):
    with pytest.raises(InputError, match=rf"no method '{name}'.*kmeans.*gpc-literal, gpc"):
        find_method(name)


# --- fit


class Recorder(BenchMethod):
    """Keeps what it was given."""

    title = "Recorder"
    takes_features = True

    def _fit_images(self, pixels, codes):
        self.given = ("images", pixels, codes)

    def _fit_features(self, X, codes):
        self.given = ("features", X, codes)


class Finder(Recorder):
    """One that finds K."""

    finds_k = True


def test_labels_of_any_kind_become_codes(tmp_path):
    X = np.zeros((5, 2))
    method = Recorder(3, settings=QUICK, folder=tmp_path)
    assert method.fit(X, ["dog", None, "cat", "", "dog"]) is method
    kind, given, codes = method.given
    assert kind == "features"
    assert codes.tolist() == [1, -1, 0, -1, 1]
    np.testing.assert_array_equal(given, X)
    assert method.features_ is given
    assert method.history_ == []
    images = np.zeros((3, 3, 8, 8), np.uint8)
    assert Recorder(3, settings=QUICK, folder=tmp_path).fit(images, [4, -1, 2]).given[0] == "images"


def test_where_k_came_from(tmp_path):
    X, y = np.zeros((2, 2)), [0, -1]
    options = {"settings": QUICK, "folder": tmp_path}
    assert Recorder(2, **options).fit(X, y).k_source_ == "given"
    assert Finder(2, **options).fit(X, y).k_source_ == "given"
    assert Finder(**options).fit(X, y).k_source_ == "mixture"
    with pytest.raises(InputError, match="Recorder cannot find K; give n_components"):
        Recorder(**options).fit(X, y)


@pytest.mark.parametrize("name", [name for name in NAMES if not find_method(name).finds_k])
def test_k_must_be_given_where_it_cannot_be_found(tmp_path, name, few_digits):
    method = find_method(name)(settings=QUICK, folder=tmp_path / "run")
    with pytest.raises(InputError, match="cannot find K"):
        method.fit(few_digits.pixels, few_digits.y)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_features_are_no_images(tmp_path, name):
    with pytest.raises(InputError, match="learns from images; it cannot use features"):
        find_method(name)(3, settings=QUICK, folder=tmp_path).fit(np.zeros((4, 5)), [0, 1, -1, -1])


def test_labels_must_fit_the_rows(tmp_path):
    with pytest.raises(InputError):
        Recorder(2, settings=QUICK, folder=tmp_path).fit(np.zeros((4, 5)), [0, 1, -1])


# --- classifiers


class LinearLearner(ClassifierLearner):
    """Outputs behind two others that do not count."""

    def head(self, n_features):
        return nn.Linear(n_features, 2 + self.n_components)

    def logits(self, h):
        return h[..., 2:]

    def loss(self, batch):
        labelled = batch.codes >= 0
        logits = self.logits(batch.h[0])[labelled]
        return nn.functional.cross_entropy(logits, batch.codes[labelled])


class Linear(Classifier):
    """A classifier of labelled rows."""

    title = "Linear"

    def learner(self, n_known, n_components):
        self.made = LinearLearner(self.settings, n_known, n_components)
        return self.made

    def _train(self, *arguments):
        self.trained = super()._train(*arguments)
        return self.trained


class Counter(Listener):
    """Counts epochs."""

    n_epochs = 0

    def epoch(self, record):
        self.n_epochs += 1


def test_a_row_belongs_to_the_greatest_output_for_its_finished_feature(tmp_path, few_digits):
    counter = Counter()
    method = Linear(
        9, settings=QUICK.with_changes(epochs=2), folder=tmp_path / "run", listener=counter
    )
    method.fit(few_digits.pixels, few_digits.y)
    assert (method.made.n_known, method.made.n_components) == (5, 9)
    weight, bias = (value.detach().numpy() for value in method.trained.network.head.parameters())
    outputs = method.features_ @ weight.T + bias
    np.testing.assert_array_equal(method.labels_, outputs[:, 2:].argmax(axis=1))
    assert method.labels_.shape == few_digits.truth.shape
    assert method.n_components_ == 9
    assert method.k_source_ == "given"
    assert len(method.history_) == counter.n_epochs == 2
    assert (tmp_path / "run" / LAST).exists()


@pytest.mark.parametrize("n_components", [0, 1, 4])
def test_there_are_no_fewer_outputs_than_known_classes(n_components):
    with pytest.raises(InputError, match=rf"5 known classes.*n_components={n_components}\."):
        LinearLearner(Settings(), 5, n_components)


def test_as_many_outputs_as_known_classes_will_do():
    assert LinearLearner(Settings(), 5, 5).n_components == 5


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_classifier_refuses_too_small_a_k_before_it_trains(tmp_path, name, few_digits):
    method = find_method(name)(4, settings=QUICK, folder=tmp_path / "run")
    with pytest.raises(InputError, match="5 known classes"):
        method.fit(few_digits.pixels, few_digits.y)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "joint"),
    [*((name, False) for name in CLASSIFIERS), ("rankstats", True), ("dualrank", True)],
)
def test_the_value_of_the_knob_reaches_what_is_trained(few_digits, tmp_path, name, joint):
    cls, seen = find_method(name), []

    def stop(self, learner, pixels, codes):
        seen.append(learner.knob)
        raise InterruptedError

    options = {"joint": True} if joint else {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BenchMethod, "_train", stop)
        for value in (None, 0.7):
            method = cls(7, settings=DIGITS, folder=tmp_path, knob_value=value, **options)
            with pytest.raises(InterruptedError):
                method.fit(few_digits.pixels, few_digits.y)
    assert seen == [cls.knob.value, 0.7]


@pytest.mark.parametrize("name", ["rankstats", "uno", "orca", "simgcd"])
def test_the_knob_changes_the_loss(name, tmp_path):
    torch.manual_seed(0)
    learner = find_method(name)(7, settings=DIGITS, folder=tmp_path).learner(5, 7)
    head, z = learner.head(16), functional.normalize(torch.randn(2, 12, 16), dim=-1)
    h = head(z.flatten(0, 1)).unflatten(0, (2, 12))
    batch = Batch(z, h, torch.arange(12) % 6 - 1, torch.zeros(12, dtype=torch.int64), None, 5)
    losses = []
    for value in (learner.knob, 3 * learner.knob):
        learner.knob = value
        losses.append(learner.loss(batch).item())
    assert losses[0] != losses[1]
