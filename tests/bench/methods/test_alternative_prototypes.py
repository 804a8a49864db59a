"""GPC around prototypes of another clustering: in the loop, and by itself."""

import numpy as np
import pytest
import torch

from newfound.bench.methods.alternative_prototypes import AlternativePrototypes
from newfound.bench.methods.gpc import GPCMethod
from newfound.deep import estep
from newfound.deep.partition import mixture_space
from newfound.errors import InputError
from newfound.mixture.alternatives import ConstrainedDBSCAN, ConstrainedWard
from newfound.mixture.kmeans import SemiSupervisedKMeans
from newfound.workflows.demo import DIGITS

torch.set_num_threads(1)

SETTINGS = DIGITS.with_changes(
    epochs=4,
    rehearse=False,
    moves_every=2,
    warmup_epochs=1,
    n_labelled_per_batch=16,
    n_unlabelled_per_batch=48,
)
CLUSTERINGS = {
    "dbscan": lambda seed: ConstrainedDBSCAN(),
    "ward": lambda seed: ConstrainedWard(7, random_state=seed),
    "kmeans": lambda seed: SemiSupervisedKMeans(7, random_state=seed),
}


def features_of(digits):
    return digits.pixels[:, 0].reshape(len(digits.truth), -1) / 255


@pytest.mark.parametrize("name", CLUSTERINGS)
@pytest.mark.parametrize("labels", [None, "given"])
def test_where_components_may_change_all_is_clustered_anew(few_digits, name, labels):
    X, y = features_of(few_digits), few_digits.y
    before = None if labels is None else few_digits.truth
    learner = AlternativePrototypes(SETTINGS, name, 7)
    found = learner.partition(X, y, before, moves=True, seed=3, count=None)
    V, _ = mixture_space(X, y, SETTINGS.estep)
    reference = CLUSTERINGS[name](3).fit(V, y)
    np.testing.assert_array_equal(found.labels, reference.labels_)
    np.testing.assert_array_equal(found.prototypes, reference.prototypes_)
    np.testing.assert_array_equal(found.V, V)
    assert found.n_known == 5


@pytest.mark.parametrize("name", ["ward", "kmeans"])
def test_all_but_dbscan_need_k(tmp_path, few_digits, name):
    with pytest.raises(InputError, match=f"Prototypes from {name} need n_components"):
        AlternativePrototypes(SETTINGS, name, None)
    with pytest.raises(InputError, match="cannot find K"):
        GPCMethod(settings=SETTINGS, folder=tmp_path, prototypes=name).fit(
            few_digits.pixels, few_digits.y
        )


@pytest.mark.parametrize("name", CLUSTERINGS)
def test_in_the_loop_labelled_rows_stay_in_their_class(few_digits, tmp_path, monkeypatch, name):
    seen = []

    def spy_on(function, clusters_anew):
        def spy(*given, **options):
            seen.append((clusters_anew, function(*given, **options)))
            return seen[-1][1]

        return spy

    partition = spy_on(AlternativePrototypes.partition, True)
    monkeypatch.setattr(AlternativePrototypes, "partition", partition)
    monkeypatch.setattr(estep, "reassign", spy_on(estep.reassign, False))
    n_components = None if name == "dbscan" else 7
    method = GPCMethod(n_components, settings=SETTINGS, folder=tmp_path, prototypes=name)
    method.fit(few_digits.pixels, few_digits.y)
    # epochs 0 and 2 cluster anew; the last two calls: after the last epoch, and the answer
    assert [anew for anew, _ in seen] == [True, False, True, False, True, True]
    labelled = few_digits.y != -1
    for _, found in seen:
        np.testing.assert_array_equal(found.labels[labelled], few_digits.y[labelled])
        assert len(found.prototypes) == found.n_components
        if n_components is not None:
            assert found.n_components == n_components
    answer = seen[-1][1]
    np.testing.assert_array_equal(method.labels_, answer.labels)
    assert method.n_components_ == answer.n_components
    trained_with = [epoch.n_components for epoch in method.history_]
    assert trained_with == [found.n_components for _, found in seen[:4]]


@pytest.mark.parametrize(
    ("name", "known_k"), [("ward", True), ("kmeans", True), ("dbscan", True), ("dbscan", False)]
)
def test_finished_features_are_clustered_by_it_too(few_digits, tmp_path, name, known_k):
    X, y = features_of(few_digits), few_digits.y
    settings = SETTINGS.with_changes(seed=3)
    method = GPCMethod(7 if known_k else None, settings=settings, folder=tmp_path, prototypes=name)
    method.fit(X, y)
    V, _ = mixture_space(X, y, SETTINGS.estep)
    np.testing.assert_array_equal(method.labels_, CLUSTERINGS[name](3).fit(V, y).labels_)
    # DBSCAN is not told K, and says so
    assert method.k_source_ == ("DBSCAN" if name == "dbscan" else "given")
