import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from newfound import CategoryCount, SplitMergeMixture
from newfound.errors import DiscoveryWarning
from newfound.mixture import estimator, target


def test_default_start_is_half_more_than_the_known_classes(digits, monkeypatch):
    seen = []

    def watch(pinned, n_clusters, random_state):
        seen.append(n_clusters)
        return original(pinned, n_clusters, random_state)

    original = estimator.fit_labels
    monkeypatch.setattr(estimator, "fit_labels", watch)
    X, _, y = digits
    SplitMergeMixture(max_passes=1, n_init=1, acceptance="literal").fit(X, y)
    SplitMergeMixture(max_passes=1, n_init=1, sizes="alike").fit(X, y)
    with pytest.warns(DiscoveryWarning, match="Only one class is known"):
        SplitMergeMixture(max_passes=1, n_init=1).fit(X, np.where(y == 0, 0, -1))
    with pytest.warns(DiscoveryWarning, match="No row is labelled"):
        SplitMergeMixture(max_passes=1, n_init=1).fit(X)
    SplitMergeMixture(17, max_passes=1, n_init=2).fit(X, y)
    assert seen == [7, 10, 2, 10, 17, 17]  # the second is led to 5 novel ones and starts there


@pytest.mark.parametrize("start", [6, 15, 60])
def test_the_count_decides_from_any_start(digits, start):
    X, truth, y = digits
    mixture = SplitMergeMixture(start, sizes="alike", random_state=0).fit(X, y)
    assert mixture.n_novel_ == round(mixture.count_.n_novel) == 5
    assert mixture.n_novel_interval_ == mixture.count_.interval
    assert mixture.converged_
    assert adjusted_rand_score(truth, mixture.labels_) > 0.6


def test_given_k_and_the_letter_of_the_paper_need_no_count(digits, fitted):
    assert fitted(digits, n_components=9).count_ is None
    literal = fitted(digits, acceptance="literal", max_passes=1)
    assert literal.count_ is None
    assert literal.n_novel_interval_ is None
    assert literal.projection_.whitening_ is None


def test_few_known_classes_are_said_to_be_few(digits):
    X, _, y = digits
    with pytest.warns(DiscoveryWarning, match="Only 3 classes are known"):
        SplitMergeMixture(random_state=0, n_init=1, max_passes=1).fit(X, np.where(y < 3, y, -1))


def test_a_partition_that_cannot_follow_the_count_is_reported(digits, monkeypatch):
    count = CategoryCount(300.0, (250.0, 350.0), 0.9, 0.5, 0.5, 5, 0)
    monkeypatch.setattr(target, "count_checked", lambda *a, **k: count)
    X, _, y = digits
    with pytest.warns(DiscoveryWarning, match=r"suggests 300\.0 novel .* rows were divided into"):
        SplitMergeMixture(n_components_init=6, random_state=0, n_init=1, max_passes=1).fit(
            X[:100], y[:100]
        )


def test_fewer_components_than_classes_warns(digits, fitted):
    with pytest.warns(DiscoveryWarning, match="y names 5 known classes: 5 components are used"):
        mixture = fitted(digits, n_components=3)
    assert mixture.n_components_ == 5
