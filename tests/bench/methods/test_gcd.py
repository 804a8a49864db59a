"""GCD: the loss it trains with, its two ways to cluster, and that it learns."""

import numpy as np
import pytest
import torch

from newfound.bench.methods import gcd as module
from newfound.bench.methods.gcd import GCD
from newfound.bench.rivals import brent_search
from newfound.deep.method import Contrast
from newfound.deep.trainer import train
from newfound.metrics import discovery_scores
from newfound.mixture.estimator import SplitMergeMixture
from newfound.mixture.kmeans import SemiSupervisedKMeans
from newfound.mixture.projection import Projection, unit_rows
from newfound.workflows.demo import DIGITS

torch.set_num_threads(1)

N_KNOWN = 5
SETTINGS = DIGITS.with_changes(epochs=15, rehearse=False, pca="off", weight_average=0.0)


def fit(digits, folder, n_components=None, *, joint=False, **changes):
    settings = SETTINGS.with_changes(**changes)
    method = GCD(n_components, settings=settings, folder=folder, n_starts=4, joint=joint)
    return method.fit(digits.pixels, digits.y)


def scores(digits, labels):
    free = digits.y == -1
    return discovery_scores(digits.truth[free], labels[free], range(N_KNOWN))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Of the one training that the tests share: it is the same whatever K is."""
    return tmp_path_factory.mktemp("gcd")


@pytest.fixture(scope="module")
def learnt(seven_digits, folder):
    return fit(seven_digits, folder, 7)


def test_it_learns(seven_digits, learnt, tmp_path):
    before = scores(
        seven_digits, fit(seven_digits, tmp_path, 7, epochs=1, learning_rate=0.0).labels_
    )
    after = scores(seven_digits, learnt.labels_)
    assert after.all > before.all + 0.1
    assert after.old > before.old + 0.02  # 0.05 to 0.09 more, depending on the processor
    assert after.new > before.new + 0.1
    assert len(learnt.history_) == 15
    assert learnt.k_source_ == "given"


def test_labelled_rows_keep_their_class(seven_digits, learnt):
    labelled = seven_digits.y != -1
    np.testing.assert_array_equal(learnt.labels_[labelled], seven_digits.y[labelled])


@pytest.mark.parametrize("pca", ["off", "all"])
@pytest.mark.parametrize("n_components", [5, 7, 11])
def test_the_last_step_is_semi_supervised_k_means(
    seven_digits, learnt, tmp_path, pca, n_components
):
    Z, y = learnt.features_, seven_digits.y
    settings = SETTINGS.with_changes(pca=pca, n_directions=12, seed=3)
    method = GCD(n_components, settings=settings, folder=tmp_path, n_starts=4).fit(Z, y)
    # draws go by what a row holds, to the last bit
    V = Projection(12).fit(Z).transform(Z) if pca == "all" else unit_rows(Z)
    reference = SemiSupervisedKMeans(n_components, n_init=4, max_iter=200, random_state=3).fit(V, y)
    np.testing.assert_array_equal(method.labels_, reference.labels_)
    assert method.n_components_ == reference.n_components_ == n_components
    assert method.history_ == []


def test_images_are_clustered_by_their_finished_features(seven_digits, learnt, tmp_path):
    again = GCD(7, settings=SETTINGS, folder=tmp_path, n_starts=4)
    np.testing.assert_array_equal(
        again.fit(learnt.features_, seven_digits.y).labels_, learnt.labels_
    )


@pytest.mark.parametrize("n_starts", [1, 6])
def test_starts_reach_k_means(seven_digits, learnt, tmp_path, monkeypatch, n_starts):
    seen = []

    class Spy(SemiSupervisedKMeans):
        def fit(self, *arguments):
            seen.append((self.n_init, self.n_clusters))
            return super().fit(*arguments)

    monkeypatch.setattr(module, "SemiSupervisedKMeans", Spy)
    GCD(7, settings=SETTINGS, folder=tmp_path, n_starts=n_starts).fit(
        learnt.features_, seven_digits.y
    )
    assert seen == [(n_starts, 7)]


def test_by_default_there_are_a_hundred_starts(tmp_path):
    assert GCD(settings=SETTINGS, folder=tmp_path).n_starts == 100


def test_without_k_brent_finds_it_in_the_finished_features(seven_digits, learnt, folder):
    n_novel = brent_search(learnt.features_, seven_digits.y, random_state=SETTINGS.run.seed)
    unknown = fit(seven_digits, folder)
    assert unknown.n_components_ == N_KNOWN + n_novel
    assert unknown.k_source_ == "Brent search on the finished features"
    # the same folder: nothing was trained again
    np.testing.assert_array_equal(unknown.features_, learnt.features_)


def test_the_training_is_that_of_the_authors(few_digits, tmp_path):
    """InfoNCE at τ = 1 and SupCon at 0.07, behind a head, in the common loop."""
    settings = SETTINGS.with_changes(epochs=1)
    assert settings.optimiser.weight_average == 0  # as GCD has it by default
    method = fit(few_digits, tmp_path / "a", 7, epochs=1)
    contrast = Contrast(settings.with_changes(contrastive_temperature=1.0))
    expected = train(few_digits.pixels, few_digits.y, settings, tmp_path / "b", method=contrast)
    np.testing.assert_array_equal(method.features_, expected.features)
    assert (settings.losses.supervised_weight, settings.losses.supervised_temperature) == (
        0.35,
        0.07,
    )
    warm = Contrast(settings.with_changes(contrastive_temperature=0.1))
    other = train(few_digits.pixels, few_digits.y, settings, tmp_path / "c", method=warm)
    assert not np.array_equal(method.features_, other.features)


@pytest.mark.parametrize("n_components", [None, 7, 9])
def test_joint_is_our_mixture_on_the_finished_features(
    seven_digits, learnt, tmp_path, n_components
):
    Z, y = learnt.features_, seven_digits.y
    method = GCD(n_components, settings=SETTINGS, folder=tmp_path, joint=True).fit(Z, y)
    mixture = SplitMergeMixture(
        n_components=n_components,
        n_directions=SETTINGS.estep.n_directions,  # also where k-means has no PCA
        random_state=SETTINGS.run.seed,
    ).fit(Z, y)
    np.testing.assert_array_equal(method.labels_, mixture.labels_)
    assert method.n_components_ == mixture.n_components_ == (n_components or mixture.n_components_)
    assert method.k_source_ == ("mixture" if n_components is None else "given")
