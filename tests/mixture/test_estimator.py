import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from newfound import CategoryCount, SplitMergeMixture
from newfound.errors import InputError
from newfound.mixture.prior import NIWPrior
from newfound.mixture.projection import Projection

few_classes = pytest.mark.filterwarnings(
    "ignore:No row is labelled",
    "ignore:Only .* known",
    "ignore:The count suggests",
    "ignore:Every known class has a single label",
)


@pytest.mark.filterwarnings("ignore::newfound.errors.DiscoveryWarning")
@parametrize_with_checks([SplitMergeMixture(), SplitMergeMixture(assign="soft", max_passes=2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def same_partition(a, b):
    return adjusted_rand_score(a, b) == 1


@pytest.mark.parametrize("assign", ["nearest", "soft"])
def test_fitted_attributes_agree_with_each_other(digits, assign, fitted):
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


def test_means_and_prototypes_are_those_of_the_paper(digits, fitted):
    X, _, y = digits
    mixture = fitted(digits, n_components=10)
    V = mixture.projection_.transform(X)
    for code in range(5):
        np.testing.assert_allclose(mixture.prototypes_[code], V[y == code].mean(axis=0))
    for code in range(10):
        np.testing.assert_allclose(mixture.means_[code], V[mixture.labels_ == code].mean(axis=0))


@pytest.mark.parametrize("value", ["no", "none", 0, -1.0, True, False, [1.0]])
def test_other_sizes_are_refused(digits, value):
    X, _, y = digits
    with pytest.raises(InputError, match='sizes must be "unknown", "alike", or a number'):
        SplitMergeMixture(sizes=value).fit(X, y)


def test_sizes_are_a_setting_as_any_other():
    assert SplitMergeMixture().get_params()["sizes"] == "unknown"
    mixture = SplitMergeMixture().set_params(sizes=0.5)
    assert mixture.sizes == 0.5
    assert clone(mixture).get_params()["sizes"] == 0.5


@pytest.mark.parametrize("sizes", ["unknown", "alike", 0.5, None])
def test_sizes_enter_the_count(digits, monkeypatch, sizes):
    seen = []

    def watch(*given, sizes, **more):
        seen.append(sizes)
        return CategoryCount(5.0, (4.0, 6.0), 0.9, 0.5, 0.7, 5, 0)

    monkeypatch.setattr("newfound.mixture.target.count_checked", watch)
    X, _, y = digits
    SplitMergeMixture(sizes=sizes, n_init=1, random_state=0).fit(X, y)
    assert seen == [sizes or "alike"]


@pytest.mark.parametrize(
    ("changes", "counted"),
    [
        ({}, ["alike"]),  # for the number of novel rows
        ({"sizes": "alike"}, []),
        ({"sizes": None}, []),
        ({"assign": "soft"}, []),
        ({"acceptance": "literal"}, []),
    ],
)
def test_with_a_given_k_novel_rows_are_counted_if_sizes_need_them(
    digits, monkeypatch, changes, counted
):
    seen = []

    def watch(*given, sizes, **more):
        seen.append(sizes)
        return CategoryCount(5.0, (4.0, 6.0), 0.9, 0.5, 0.7, 5, 0)

    monkeypatch.setattr("newfound.mixture.estimator.count_checked", watch)
    X, _, y = digits
    mixture = SplitMergeMixture(n_components=10, n_init=1, random_state=0, **changes)
    assert mixture.fit(X, y).count_ is None
    assert seen == counted


def test_a_given_k_needs_no_advice_about_the_count(digits):
    """One label of each class: no warning, and the sizes are left alone."""
    X, truth, _ = digits
    first = np.unique(truth, return_index=True)[1]
    y = np.full(len(X), -1)
    y[first[:6]] = truth[first[:6]]
    mixture = SplitMergeMixture(n_components=10, n_init=1, random_state=0).fit(X, y)
    assert not mixture.offsets_.any()


def test_labels_are_encoded_and_rows_hashed_once(digits, fitted, monkeypatch):
    from newfound.mixture import estimator, lloyd, projection, sampling
    from newfound.mixture.counting import count

    calls = []

    def watched(name, original):
        def watch(*args):
            calls.append((name, args[0].shape))
            return original(*args)

        return watch

    for module in (estimator, sampling, lloyd, projection, count):
        for name in {"encode_labels", "row_keys"} & set(vars(module)):
            monkeypatch.setattr(module, name, watched(name, getattr(module, name)))
    X, _, y = digits
    fitted(digits, whiten=True)
    assert calls == [("encode_labels", y.shape), ("row_keys", X.shape)]


def test_last_digits_of_the_projection_do_not_decide_on_draws(digits, fitted, monkeypatch):
    """They differ between machines; results must not."""
    expected = fitted(digits, n_components=10, n_init=1)
    original = Projection.transform_in_order

    def rounded_otherwise(self, X, order):
        return original(self, X, order) * (1 + 1e-15)

    monkeypatch.setattr(Projection, "transform_in_order", rounded_otherwise)
    found = fitted(digits, n_components=10, n_init=1)
    assert (found.prototypes_ != expected.prototypes_).any()
    np.testing.assert_array_equal(found.labels_, expected.labels_)


def test_same_seed_same_bits(digits, fitted):
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


def test_names_of_classes_do_not_matter(digits, fitted):
    X, _, y = digits
    numbered = fitted(digits, n_components_init=12, max_passes=4)
    names = np.array(["ostrich", "emu", "kiwi", "rhea", "auk", ""], dtype=object)
    named = SplitMergeMixture(12, max_passes=4, random_state=0).fit(X, names[y])
    assert same_partition(named.labels_, numbered.labels_)
    assert list(named.classes_) == ["auk", "emu", "kiwi", "ostrich", "rhea"]
    assert named.category_names_[named.labels_[np.flatnonzero(y == 0)[0]]] == "ostrich"


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


def test_refit_from_its_own_end_stays_there(digits, fitted):
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


@few_classes
def test_one_labelled_row_a_class_is_no_reason_to_whiten():
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(14), 30)
    X = rng.normal(size=(14, 20))[truth] + 0.3 * rng.normal(size=(420, 20))
    y = np.where((np.arange(420) % 30 == 0) & (truth < 12), truth, -1)
    mixture = SplitMergeMixture(random_state=0, n_init=1, max_passes=1).fit(X, y)
    assert mixture.projection_.whitening_ is None


def test_clone_pickle_and_pandas_output(digits, fitted):
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
def test_bad_settings_say_what_to_do(digits, settings, message, fitted):
    with pytest.raises(InputError, match=message):
        fitted(digits, **settings)


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
