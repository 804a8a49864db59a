import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from newfound import CategoryCount, SplitMergeMixture
from newfound.errors import DiscoveryWarning, InputError
from newfound.mixture.prior import NIWPrior
from newfound.mixture.sizes import expected_sizes, fit_sizes

few_classes = pytest.mark.filterwarnings(
    "ignore:No row is labelled", "ignore:Only .* known", "ignore:The count speaks"
)


@pytest.mark.filterwarnings("ignore::newfound.errors.DiscoveryWarning")
@parametrize_with_checks([SplitMergeMixture(), SplitMergeMixture(assign="soft", max_passes=2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    X, truth = load_digits(return_X_y=True)
    X, truth = X[:700], truth[:700]
    rng = np.random.default_rng(0)
    y = np.where((truth < 5) & (rng.random(len(truth)) < 0.5), truth, -1)
    return X, truth, y


def fitted(digits, **settings):
    X, _, y = digits
    return SplitMergeMixture(random_state=0, **settings).fit(X, y)


def same_partition(a, b):
    return adjusted_rand_score(a, b) == 1


@pytest.mark.parametrize("assign", ["nearest", "soft"])
def test_fitted_attributes_agree_with_each_other(digits, assign):
    X, _, y = digits
    mixture = fitted(
        digits,
        assign=assign,
        acceptance="literal",
        n_directions=20,
        n_components_init=12,
        max_passes=3,
    )
    k = mixture.n_components_
    assert mixture.n_known_ == 5
    assert mixture.n_novel_ == k - 5
    assert set(mixture.labels_) == set(range(k))
    np.testing.assert_array_equal(mixture.labels_[y != -1], y[y != -1])
    np.testing.assert_array_equal(mixture.classes_, np.arange(5))
    assert mixture.means_.shape == mixture.prototypes_.shape == (k, 20)
    assert mixture.covariances_.shape == (k, 20, 20)
    assert mixture.weights_.sum() == pytest.approx(1)
    np.testing.assert_allclose(mixture.weights_, np.bincount(mixture.labels_) / len(X))
    assert mixture.n_iter_ == len(mixture.history_) == 3
    assert mixture.history_[-1].n_components == k
    sizes = np.bincount(mixture.labels_)[5:]
    assert (np.diff(sizes) <= 0).all()  # the largest novel category comes first


def test_a_part_of_many_labelled_rows_is_enough_for_the_variance(digits, monkeypatch):
    X, _, _ = digits
    all_rows = fitted(digits, n_components=10).predict_proba(X).max(axis=1)
    monkeypatch.setattr("newfound.mixture.estimator._ROWS_FOR_VARIANCE", 100)  # every second
    some_rows = fitted(digits, n_components=10).predict_proba(X).max(axis=1)
    assert (some_rows != all_rows).any()
    assert abs(some_rows.mean() - all_rows.mean()) < 0.03


def test_means_and_prototypes_are_those_of_the_paper(digits):
    X, _, y = digits
    mixture = fitted(digits, n_components=10)
    V = mixture.projection_.transform(X)
    for code in range(5):
        np.testing.assert_allclose(mixture.prototypes_[code], V[y == code].mean(axis=0))
    for code in range(10):
        np.testing.assert_allclose(mixture.means_[code], V[mixture.labels_ == code].mean(axis=0))


@pytest.mark.parametrize("assign", ["nearest", "soft"])
def test_probabilities_agree_with_predictions(digits, assign):
    X, _, _ = digits
    settings = {"n_components": 10, "n_directions": 20, "expect_sizes": False}
    mixture = fitted(digits, assign=assign, **settings)
    probabilities = mixture.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), mixture.predict(X))
    if assign == "nearest":
        free = digits[2] == -1
        np.testing.assert_array_equal(mixture.predict(X)[free], mixture.labels_[free])
        np.testing.assert_array_equal(mixture.predict(X), mixture.nearest_prototype(X))
        np.testing.assert_array_equal(mixture.transform(X).argmin(axis=1), mixture.predict(X))


def overlapping_blobs(seed=0):
    """Five classes of 60 rows; of the two novel ones, the wide one reaches into the dense one."""
    rng = np.random.default_rng(seed)
    centres, spreads = np.eye(6)[:5], np.array([0.1, 0.1, 0.1, 0.05, 0.3])
    centres[4] = centres[3] + 0.5 * np.eye(6)[4]
    truth = np.repeat(np.arange(5), 60)
    X = centres[truth] + spreads[truth, None] * rng.normal(size=(300, 6))
    return X, truth, np.where((truth < 3) & (np.arange(300) % 2 == 0), truth, -1)


@few_classes
@pytest.mark.parametrize("seed", range(3))
def test_with_expected_sizes_novel_categories_are_more_alike(seed):
    blobs = overlapping_blobs(seed)
    plain = fitted(blobs, n_components=5, expect_sizes=False)
    sized = fitted(blobs, n_components=5, expect_sizes=True)
    large, small = np.bincount(plain.labels_)[3:]
    assert large - small >= 20
    large_sized, small_sized = np.bincount(sized.labels_)[3:]
    assert large_sized - small_sized < large - small
    np.testing.assert_array_equal(sized.prototypes_[:3], plain.prototypes_[:3])


def test_offsets_are_those_of_the_expected_sizes(digits):
    X, _, y = digits
    plain = fitted(digits, n_components=10, expect_sizes=False)
    V, labels, free = plain.projection_.transform(X), plain.labels_, y == -1
    sizes = expected_sizes(y, labels, 10)
    prototypes, offsets = fit_sizes(V[free], plain.prototypes_, 5, sizes)
    squared = ((V[:, None] - prototypes) ** 2).sum(axis=2)
    expected = np.where(free, (squared - offsets).argmin(axis=1), y)
    assert (expected != labels).any()
    sized = fitted(digits, n_components=10, expect_sizes=True)
    order = [int(np.square(prototypes - p).sum(axis=1).argmin()) for p in sized.prototypes_]
    assert sorted(order) == list(range(10))
    np.testing.assert_allclose(sized.offsets_, offsets[order], atol=1e-6)
    np.testing.assert_allclose(sized.prototypes_, prototypes[order], atol=1e-6)
    np.testing.assert_array_equal(np.argsort(order)[expected], sized.labels_)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("random_state", range(3))
def test_with_expected_sizes_predictions_labels_and_numbers_agree(digits, dtype, random_state):
    X, _, y = digits
    X, free = X.astype(dtype), y == -1
    mixture = SplitMergeMixture(
        n_components=10, expect_sizes=True, n_init=1, random_state=random_state
    ).fit(X, y)
    assert mixture.offsets_.shape == (10,)
    assert (mixture.offsets_ != 0).all()
    predicted = mixture.predict(X)
    np.testing.assert_array_equal(predicted[free], mixture.labels_[free])
    np.testing.assert_array_equal(predicted, mixture.nearest_prototype(X))
    probabilities = mixture.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), predicted)
    np.testing.assert_array_equal(mixture.labels_[~free], y[~free])
    sizes = np.bincount(mixture.labels_)
    assert (np.diff(sizes[5:]) <= 0).all()
    np.testing.assert_allclose(mixture.weights_, sizes / len(X))
    # distances are true ones, whatever the offsets
    V = mixture.projection_.transform(X)
    distances = np.linalg.norm(V[:, None] - mixture.prototypes_, axis=2)
    np.testing.assert_allclose(mixture.transform(X), distances, rtol=1e-4)
    assert (distances.argmin(axis=1) != predicted).any()


@few_classes
@pytest.mark.parametrize(
    ("expect_sizes", "assign", "labels"),
    [
        (False, "nearest", "some"),
        (True, "soft", "some"),
        (True, "nearest", "none"),
        (True, "nearest", "all"),
    ],
)
def test_without_sizes_to_expect_offsets_are_zero(expect_sizes, assign, labels):
    X, truth, y = overlapping_blobs()
    y = {"some": y, "none": np.full(300, -1), "all": truth}[labels]
    settings = {"n_components": 5, "assign": assign, "random_state": 0}
    mixture = SplitMergeMixture(expect_sizes=expect_sizes, **settings).fit(X, y)
    np.testing.assert_array_equal(mixture.offsets_, np.zeros(5))
    plain = SplitMergeMixture(expect_sizes=False, **settings).fit(X, y)
    np.testing.assert_array_equal(mixture.labels_, plain.labels_)


def test_no_category_is_given_up_for_its_size(digits, monkeypatch):
    def far_too_small(V, prototypes, n_known, sizes):
        return prototypes, np.where(np.arange(len(sizes)) == 7, -10.0, 0.0)

    monkeypatch.setattr("newfound.mixture.estimator.fit_sizes", far_too_small)
    X, _, _ = digits
    sized = fitted(digits, n_components=10, expect_sizes=True)
    plain = fitted(digits, n_components=10, expect_sizes=False)
    np.testing.assert_array_equal(sized.offsets_, np.zeros(10))
    np.testing.assert_array_equal(sized.labels_, plain.labels_)
    np.testing.assert_array_equal(sized.predict_proba(X), plain.predict_proba(X))


def test_the_variance_is_fitted_with_the_offsets(digits, monkeypatch):
    from newfound.mixture import estimator

    seen = []

    def watch(squared, codes, sizes, fallback, offsets):
        seen.append(offsets)
        return original(squared, codes, sizes, fallback, offsets)

    original = estimator.spherical_variance
    monkeypatch.setattr(estimator, "spherical_variance", watch)
    mixture = fitted(digits, n_components=10, n_init=1, expect_sizes=True)
    np.testing.assert_array_equal(seen, [mixture.offsets_])


def test_row_order_does_not_matter_to_sizes(digits):
    X, _, y = digits
    order = np.random.default_rng(1).permutation(len(X))
    settings = {"n_components": 10, "expect_sizes": True, "random_state": 3}
    straight = SplitMergeMixture(**settings).fit(X, y)
    shuffled = SplitMergeMixture(**settings).fit(X[order], y[order])
    np.testing.assert_array_equal(shuffled.offsets_, straight.offsets_)
    np.testing.assert_array_equal(shuffled.labels_, straight.labels_[order])


def classes_of_one_size(labels="drawn"):
    """Six known and two novel classes of 60 rows; half of the labels drawn, or 30 of each."""
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(8), 60)
    X = np.eye(8)[truth] + 0.3 * rng.normal(size=(480, 8))
    chosen = rng.permutation(360)[:180] if labels == "drawn" else np.arange(0, 360, 2)
    y = np.full(480, -1)
    y[chosen] = truth[chosen]
    return X, truth, y


@pytest.mark.parametrize(
    ("labels", "settings", "expects"),
    [
        ("drawn", {}, True),
        ("quota", {}, False),
        ("quota", {"expect_sizes": True}, True),
        ("drawn", {"expect_sizes": False}, False),
        ("drawn", {"acceptance": "literal"}, False),
    ],
)
def test_sizes_are_expected_where_labels_speak_for_them(labels, settings, expects):
    X, _, y = classes_of_one_size(labels)
    mixture = SplitMergeMixture(n_components=8, random_state=0, **settings).fit(X, y)
    assert mixture.offsets_.any() == expects


@pytest.mark.parametrize("n_absent", [0, 1])
def test_where_the_count_sees_a_known_class_absent_sizes_are_left_alone(n_absent):
    X, _, y = classes_of_one_size()
    count = CategoryCount(2.0, (1.0, 3.0), 0.9, 0.5, 0.4, 6, n_absent)
    mixture = SplitMergeMixture(count=count, random_state=0).fit(X, y)
    assert mixture.offsets_.any() == (n_absent == 0)


def test_where_all_that_is_known_has_its_label_sizes_are_left_alone():
    X, truth, _ = classes_of_one_size()
    sizes = np.array([50, 44, 39, 47, 41, 52, 60, 60])
    kept = np.flatnonzero(np.arange(480) % 60 < sizes[truth])
    X, y = X[kept], np.where(truth < 6, truth, -1)[kept]
    mixture = SplitMergeMixture(n_components=8, random_state=0).fit(X, y)
    assert not mixture.offsets_.any()


@pytest.mark.parametrize("value", ["no", 2, 0.5])
def test_expect_sizes_is_true_false_or_none(value):
    X, _, y = classes_of_one_size()
    with pytest.raises(InputError, match="expect_sizes must be True, False or None"):
        SplitMergeMixture(expect_sizes=value).fit(X, y)


def test_expected_sizes_are_a_setting_as_any_other():
    assert SplitMergeMixture().get_params()["expect_sizes"] is None
    mixture = SplitMergeMixture().set_params(expect_sizes=True)
    assert mixture.expect_sizes
    assert clone(mixture).get_params()["expect_sizes"] is True


def test_score_is_the_mean_log_density(digits):
    X, _, _ = digits
    mixture = fitted(digits, n_components=10, n_directions=20)
    assert mixture.score(X) == pytest.approx(mixture.score_samples(X).mean())
    noise = np.random.default_rng(0).normal(size=X.shape)
    assert mixture.score(X) > mixture.score(noise)


def test_known_k_makes_no_moves(digits):
    mixture = fitted(digits, n_components=9)
    assert mixture.n_components_ == 9
    assert mixture.history_ == []
    assert mixture.converged_


def test_default_start_is_half_more_than_the_known_classes(digits, monkeypatch):
    from newfound.mixture import estimator

    seen = []

    def watch(V, codes, n_known, n_clusters, random_state):
        seen.append(n_clusters)
        return original(V, codes, n_known, n_clusters, random_state)

    original = estimator.fit_labels
    monkeypatch.setattr(estimator, "fit_labels", watch)
    X, _, y = digits
    SplitMergeMixture(max_passes=1, n_init=1, acceptance="literal").fit(X, y)
    SplitMergeMixture(max_passes=1, n_init=1).fit(X, y)
    with pytest.warns(DiscoveryWarning, match="Only one class is known"):
        SplitMergeMixture(max_passes=1, n_init=1).fit(X, np.where(y == 0, 0, -1))
    with pytest.warns(DiscoveryWarning, match="No row is labelled"):
        SplitMergeMixture(max_passes=1, n_init=1).fit(X)
    SplitMergeMixture(17, max_passes=1, n_init=2).fit(X, y)
    assert seen == [7, 10, 2, 10, 17, 17]  # the second is steered to 5 novel ones and starts there


def test_same_seed_same_bits(digits):
    first, second = fitted(digits, max_passes=4), fitted(digits, max_passes=4)
    np.testing.assert_array_equal(first.labels_, second.labels_)
    np.testing.assert_array_equal(first.covariances_, second.covariances_)
    assert first.history_ == second.history_


@pytest.mark.parametrize("assign", ["nearest", "soft"])
def test_row_order_does_not_matter(digits, assign):
    X, _, y = digits
    order = np.random.default_rng(1).permutation(len(X))
    settings = {"random_state": 3, "n_directions": 10, "max_passes": 2, "assign": assign}
    straight = SplitMergeMixture(12, **settings).fit(X, y)
    shuffled = SplitMergeMixture(12, **settings).fit(X[order], y[order])
    np.testing.assert_array_equal(shuffled.labels_, straight.labels_[order])


def test_names_of_classes_do_not_matter(digits):
    X, _, y = digits
    numbered = fitted(digits, n_components_init=12, max_passes=4)
    names = np.array(["ostrich", "emu", "kiwi", "rhea", "auk", ""], dtype=object)
    named = SplitMergeMixture(12, max_passes=4, random_state=0).fit(X, names[y])
    assert same_partition(named.labels_, numbered.labels_)
    assert list(named.classes_) == ["auk", "emu", "kiwi", "ostrich", "rhea"]
    assert named.category_names_[named.labels_[np.flatnonzero(y == 0)[0]]] == "ostrich"


def test_history_tells_every_pass(digits):
    told = []
    mixture = fitted(digits, n_components_init=14, max_passes=4, n_init=1, callback=told.append)
    assert told == mixture.history_
    for done in told:
        kinds = {move.kind for move in done.moves}
        assert kinds <= {"split", "merge"}
        assert np.isfinite(done.log_likelihood)


def test_verbose_prints_a_line_a_pass(digits, capsys):
    mixture = fitted(digits, verbose=1, max_passes=2, n_init=1)
    assert len(capsys.readouterr().out.splitlines()) == len(mixture.history_)


def test_more_starts_keep_the_most_likely(digits):
    X, _, y = digits
    settings = {"acceptance": "literal", "max_passes": 3, "random_state": 7}
    one = SplitMergeMixture(8, n_init=1, **settings).fit(X, y)
    many = SplitMergeMixture(8, n_init=4, **settings).fit(X, y)
    assert many.history_[-1].log_likelihood >= one.history_[-1].log_likelihood
    assert np.isnan(one.stability_).all()
    assert ((many.stability_ >= 0) & (many.stability_ <= 1)).all()
    assert len(many.stability_) == many.n_components_


def test_refit_starts_from_a_partition(digits):
    X, truth, y = digits
    given_k = SplitMergeMixture(n_components=10, random_state=0).refit(X, y, truth)
    assert given_k.n_components_ == 10
    assert adjusted_rand_score(truth, given_k.labels_) > 0.7
    # component numbers with gaps, and labelled rows in wrong places, are put right
    spread = np.where(y == -1, truth * 3 + 5, 0)
    again = SplitMergeMixture(n_components=10, random_state=0).refit(X, y, spread)
    np.testing.assert_array_equal(again.labels_[y != -1], y[y != -1])
    assert set(again.labels_) == set(range(again.n_components_))


def test_refit_from_its_own_end_stays_there(digits):
    X, _, y = digits
    mixture = fitted(digits, max_passes=50, acceptance="literal", n_init=1)
    assert mixture.converged_
    again = SplitMergeMixture(random_state=0, acceptance="literal").refit(X, y, mixture.labels_)
    assert same_partition(again.labels_, mixture.labels_)
    assert len(again.history_) == 1


@pytest.mark.parametrize("labels", [np.zeros(3, int), np.full(700, -1), np.zeros(700)])
def test_refit_refuses_what_is_no_partition(digits, labels):
    X, _, y = digits
    with pytest.raises(InputError, match="one component number >= 0 for each of the 700 rows"):
        SplitMergeMixture().refit(X, y, labels)


@few_classes
def test_blobs_far_apart_are_found_from_any_start():
    """In few dimensions, with well separated groups, the paper's letter is enough too."""
    rng = np.random.default_rng(0)
    centres = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    X = np.concatenate([c + 0.02 * rng.normal(size=(60, 8)) for c in centres])
    truth = np.repeat(np.arange(8), 60)
    y = np.where((truth < 4) & (rng.random(480) < 0.5), truth, -1)
    for start in (5, 8, 14):
        for acceptance in ("literal", "calibrated"):
            mixture = SplitMergeMixture(start, acceptance=acceptance, random_state=0).fit(X, y)
            assert mixture.n_novel_ == 4
            assert adjusted_rand_score(truth, mixture.labels_) == 1


@pytest.mark.parametrize("start", [6, 15, 60])
def test_the_count_decides_from_any_start(digits, start):
    X, truth, y = digits
    mixture = SplitMergeMixture(start, random_state=0).fit(X, y)
    assert mixture.n_novel_ == round(mixture.count_.n_novel) == 5
    assert mixture.n_novel_interval_ == mixture.count_.interval
    assert mixture.converged_
    assert adjusted_rand_score(truth, mixture.labels_) > 0.6


def test_passes_at_the_target_go_on_only_while_the_fit_improves(digits, monkeypatch):
    from newfound.mixture import estimator

    inertias = []
    original = estimator.split_merge_pass

    def watch(V, components, rules, seed):
        if len(components.stats) == 10:
            inertias.append(components.inertia)
        return original(V, components, rules, seed)

    monkeypatch.setattr(estimator, "split_merge_pass", watch)
    X, _, y = digits
    mixture = SplitMergeMixture(5 + 12, n_init=1, random_state=0).fit(X, y)
    assert mixture.n_components_ == 10
    assert len(inertias) >= 2
    assert (np.diff(inertias) < 0).all()
    assert mixture.converged_


def test_given_k_and_the_letter_of_the_paper_need_no_count(digits):
    assert fitted(digits, n_components=9).count_ is None
    literal = fitted(digits, acceptance="literal", max_passes=1)
    assert literal.count_ is None
    assert literal.n_novel_interval_ is None
    assert literal.projection_.whitening_ is None


def test_whitening_waits_for_ten_known_classes():
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(14), 30)
    X = rng.normal(size=(14, 20))[truth] + 0.3 * rng.normal(size=(420, 20))
    settings = {"random_state": 0, "n_init": 1, "max_passes": 1}
    for n_known, whitens in ((9, False), (10, True)):
        y = np.where((truth < n_known) & (rng.random(420) < 0.5), truth, -1)
        mixture = SplitMergeMixture(**settings).fit(X, y)
        assert (mixture.projection_.whitening_ is not None) == whitens
        forced = SplitMergeMixture(whiten=not whitens, **settings).fit(X, y)
        assert (forced.projection_.whitening_ is not None) != whitens


def test_few_known_classes_are_said_to_be_few(digits):
    X, _, y = digits
    with pytest.warns(DiscoveryWarning, match="Only 3 classes are known"):
        SplitMergeMixture(random_state=0, n_init=1, max_passes=1).fit(X, np.where(y < 3, y, -1))


def test_one_labelled_row_a_class_is_no_reason_to_whiten():
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(14), 30)
    X = rng.normal(size=(14, 20))[truth] + 0.3 * rng.normal(size=(420, 20))
    y = np.where((np.arange(420) % 30 == 0) & (truth < 12), truth, -1)
    mixture = SplitMergeMixture(random_state=0, n_init=1, max_passes=1).fit(X, y)
    assert mixture.projection_.whitening_ is None


def test_a_partition_that_cannot_follow_the_count_is_reported(digits, monkeypatch):
    from newfound.mixture import estimator

    count = CategoryCount(300.0, (250.0, 350.0), 0.9, 0.5, 0.5, 5, 0)
    monkeypatch.setattr(estimator, "count_categories", lambda *a, **k: count)
    X, _, y = digits
    with pytest.warns(DiscoveryWarning, match=r"speaks for 300\.0 novel .* rows divide into"):
        SplitMergeMixture(n_components_init=6, random_state=0, n_init=1, max_passes=1).fit(
            X[:100], y[:100]
        )


def test_settings_reach_the_mixture(digits):
    gamma = fitted(digits, max_passes=1, n_components_init=12)
    factorial = fitted(digits, max_passes=1, n_components_init=12, count_term="factorial")
    assert gamma.history_[0].moves[0].log_ratio != factorial.history_[0].moves[0].log_ratio
    prior = NIWPrior(np.zeros(10), 1.0, 12.0, 0.01 * np.eye(10))
    assert fitted(digits, n_directions=10, prior=prior, max_passes=1).prior_ is prior


def test_clone_pickle_and_pandas_output(digits):
    X, _, _ = digits
    mixture = fitted(digits, n_components=10)
    assert clone(mixture).get_params() == mixture.get_params()
    restored = pickle.loads(pickle.dumps(mixture))
    np.testing.assert_array_equal(restored.predict(X), mixture.predict(X))
    table = mixture.set_output(transform="pandas").transform(X)
    assert table.columns[0] == "splitmergemixture0"
    assert table.shape == (700, 10)


@few_classes
def test_few_rows_reduce_the_directions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 40))
    mixture = SplitMergeMixture(3, random_state=0).fit(X, [0, 0, 1, 1] + [-1] * 8)
    assert mixture.n_directions_ == 11


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_components": 701}, "n_components=701 is more than the n_samples=700"),
        ({"n_components_init": 701}, "n_components_init=701 is more than"),
        ({"n_components_init": 0}, "n_components_init must be a whole number"),
        ({"n_directions": 2.5}, "n_directions must be a whole number"),
        ({"max_passes": 0}, "max_passes must be a whole number"),
        ({"assign": "closest"}, "assign must be one of nearest, soft; got 'closest'"),
        ({"acceptance": "always"}, "acceptance must be one of"),
        ({"count_term": "n!"}, "count_term must be one of gamma, factorial"),
        (
            {"prior": NIWPrior(np.zeros(2), 1.0, 4.0, np.eye(2))},
            "prior has 2 dimensions, but the rows are projected on 64",
        ),
    ],
)
def test_bad_settings_say_what_to_do(digits, settings, message):
    with pytest.raises(InputError, match=message):
        fitted(digits, **settings)


def test_fewer_components_than_classes_warns(digits):
    with pytest.warns(DiscoveryWarning, match="y names 5 known classes: 5 components are used"):
        mixture = fitted(digits, n_components=3)
    assert mixture.n_components_ == 5


@few_classes
@pytest.mark.parametrize(
    "y",
    [
        None,
        [0] + [-1] * 29,
        [0] * 30,
        list(range(5)) + [-1] * 25,
        ["a"] * 10 + ["b"] * 2 + [None] * 18,
    ],
    ids=["no label", "one labelled row", "all labelled", "one row a class", "texts"],
)
@pytest.mark.parametrize("kind", ["noise", "duplicates", "constant column", "zeros"])
def test_poor_data_never_gives_nan(y, kind):
    X = np.random.default_rng(0).normal(size=(30, 6))
    if kind == "duplicates":
        X[:] = X[0]
    elif kind == "constant column":
        X[:, 2] = 5.0
    elif kind == "zeros":
        X[:] = 0.0
    for assign in ("nearest", "soft"):
        mixture = SplitMergeMixture(6, assign=assign, random_state=0, max_passes=3).fit(X, y)
        for value in (mixture.means_, mixture.covariances_, mixture.weights_, mixture.prototypes_):
            assert np.isfinite(value).all()
        assert np.isfinite(mixture.predict_proba(X)).all()
        assert np.isfinite(mixture.score_samples(X)).all()


@few_classes
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    n=st.integers(8, 60),
    d=st.integers(1, 12),
    n_classes=st.integers(0, 4),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 1000),
)
def test_any_shape_labels_and_scale(n, d, n_classes, scale, dtype, seed):
    rng = np.random.default_rng(seed)
    X = (scale * (rng.normal(size=(n, d)) + 3 * rng.integers(0, 3, size=(n, 1)))).astype(dtype)
    y = np.where(rng.random(n) < 0.4, rng.integers(0, max(1, n_classes), n), -1)
    if n_classes == 0:
        y[:] = -1
    mixture = SplitMergeMixture(random_state=seed, max_passes=4).fit(X, y)
    known = {code: i for i, code in enumerate(mixture.classes_.tolist())}
    assert all(mixture.labels_[i] == known[y[i]] for i in np.flatnonzero(y != -1))
    assert (np.bincount(mixture.labels_, minlength=mixture.n_components_) > 0).all()
    for value in (mixture.means_, mixture.covariances_, mixture.predict_proba(X)):
        assert np.isfinite(value).all()
