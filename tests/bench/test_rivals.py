"""Every rival finds K where it is easy; what each promises, against a slow second way."""

from itertools import permutations

import numpy as np
import pytest
from scipy.cluster import hierarchy
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from newfound.bench import rivals
from newfound.bench.rivals import RIVALS
from newfound.errors import InputError

#: What these ask of the labels is their number of classes.
NEED_NO_LABEL = ["silhouette", "bic_mixture", "dirichlet_process", "deep_dpm_rule"]
NEED_LABELS = ["brent_search", "ward_labelled_score"]


@pytest.fixture(scope="module")
def sphere():
    """Six tight blobs on the unit sphere; half of the rows of three of them are labelled."""
    rng = np.random.default_rng(6)
    centres = rng.normal(size=(6, 8))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    truth = rng.permutation(np.repeat(np.arange(6), 40))
    X = centres[truth] + 0.2 * rng.normal(size=(240, 8)) / np.sqrt(8)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where((truth < 3) & (rng.random(240) < 0.5), truth, -1)


def test_the_rivals_are_all_there():
    assert sorted(RIVALS) == sorted(NEED_NO_LABEL + NEED_LABELS)


@pytest.mark.parametrize("n_max", [None, 12])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", RIVALS)
def test_each_finds_the_number(name, seed, n_max, sphere):
    """Exactly; Brent within 1, for novel categories may merge or split and labels don't see it."""
    found = RIVALS[name](*sphere, n_max=n_max, random_state=seed)
    assert abs(found - 3) <= (1 if name == "brent_search" else 0)


@pytest.mark.parametrize("name", RIVALS)
def test_the_same_seed_gives_the_same_number_in_any_order_of_rows(name, blobs):
    order = np.random.default_rng(0).permutation(len(blobs.X))
    found = [
        RIVALS[name](X, y, random_state=3)
        for X, y in [
            (blobs.X, blobs.y),
            (blobs.X, blobs.y),
            (blobs.X[order], blobs.y[order]),
            (blobs.X, np.array(["no", "yes", "maybe", ""])[blobs.y]),
        ]
    ]
    assert len(set(found)) == 1
    assert isinstance(found[0], int)
    assert found[0] >= 0


@pytest.mark.parametrize("name", NEED_NO_LABEL)
def test_without_labels_all_categories_are_novel(name, sphere):
    assert RIVALS[name](sphere[0], None, n_max=12, random_state=0) == 6


@pytest.mark.parametrize("name", NEED_LABELS)
def test_a_score_on_labelled_rows_needs_one(name, sphere):
    with pytest.raises(InputError, match=f"{name} .* labels none of the 240 rows"):
        RIVALS[name](sphere[0], np.full(240, -1))


@pytest.mark.parametrize("name", RIVALS)
def test_few_rows(name):
    X = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
    assert 0 <= RIVALS[name](X, [0, -1, -1, -1], random_state=0) <= 3


@pytest.mark.parametrize("name", RIVALS)
def test_equal_rows(name):
    assert RIVALS[name](np.ones((20, 3)), [0] * 10 + [-1] * 10, random_state=0) >= 0


@pytest.mark.parametrize("name", RIVALS)
def test_no_novel_category_is_a_possible_answer(name, sphere):
    X, y = sphere
    assert RIVALS[name](X, y, n_max=3, random_state=0) == 0


@pytest.mark.parametrize("name", RIVALS)
@pytest.mark.parametrize(
    ("y", "n_max", "message"),
    [
        ([0] * 239, None, "y has 239 labels, but X has 240 rows"),
        ([0.5] * 240, None, "which is no class"),
        ([0, 1, 2] * 80, 2, "n_max=2, but y names 3 known classes"),
        ([0, 1, 2] * 80, 0, "n_max must be a whole number"),
        ([0, 1, 2] * 80, 2.5, "n_max must be a whole number"),
    ],
)
def test_bad_input(name, y, n_max, message, sphere):
    with pytest.raises(InputError, match=message):
        RIVALS[name](sphere[0], y, n_max=n_max)


def slow_accuracy(codes, labels):
    """Try every match of clusters to classes."""
    classes, clusters = np.unique(codes), np.unique(labels)
    slots = [*classes, *[-1] * max(0, len(clusters) - len(classes))]
    return max(
        sum(
            np.sum((labels == cluster) & (codes == slot))
            for cluster, slot in zip(clusters, match, strict=False)
        )
        for match in permutations(slots)
    ) / len(codes)


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 5])
def test_accuracy_is_that_of_the_best_match_on_labelled_rows(n_clusters):
    rng = np.random.default_rng(n_clusters)
    codes, labels = rng.integers(-1, 3, 40), rng.integers(0, n_clusters, 40)
    rows = rivals._Rows(np.empty((40, 1)), np.empty((40, 1)), codes, 3, 40, 0)
    labelled = codes >= 0
    assert rows.accuracy(labels) == pytest.approx(slow_accuracy(codes[labelled], labels[labelled]))


def test_ward_is_scipys_tree_cut_at_every_height(blobs):
    """On rows that overlap, so that the answer is not the easy one."""
    rng = np.random.default_rng(1)
    X = blobs.X + 5 * rng.normal(size=blobs.X.shape)
    rows = rivals._prepare(X, blobs.y, None, 0)
    tree = hierarchy.ward(rows.V)
    accuracies = {k: rows.accuracy(hierarchy.fcluster(tree, k, "maxclust")) for k in range(3, 101)}
    best = max(accuracies, key=lambda k: (accuracies[k], k))
    assert rivals.ward_labelled_score(X, blobs.y) == best - 3
    assert accuracies[best] < 1


def test_many_rows_are_grouped_before_ward(sphere, monkeypatch):
    monkeypatch.setattr(rivals, "N_WARD_LEAVES", 60)
    assert rivals.ward_labelled_score(*sphere, random_state=0) == 3


def test_silhouette_agrees_with_a_plain_search(sphere):
    X, y = sphere
    rows = rivals._prepare(X, y, 12, 0)
    scores = {
        k: silhouette_score(rows.V, KMeans(k, n_init=5, random_state=0).fit_predict(rows.V))
        for k in range(3, 13)
    }
    assert max(scores, key=scores.get) - 3 == rivals.silhouette(X, y, n_max=12, random_state=0)


def test_silhouette_of_a_part_of_the_rows(sphere, monkeypatch):
    monkeypatch.setattr(rivals, "N_SILHOUETTE_ROWS", 100)
    assert rivals.silhouette(*sphere, random_state=0) == 3


@pytest.mark.parametrize("peak", [1, 2, 7, 60, 399, 400])
def test_the_grid_finds_a_single_peak(peak):
    tried = []

    def score(k):
        tried.append(k)
        return -abs(np.log(k / peak))

    found = rivals._best_on_grid(score, 1, 400)
    assert found == pytest.approx(peak, rel=0.05)
    assert len(tried) == len(set(tried)) <= rivals.N_COARSE + rivals.N_FINE
    assert {1, 400} <= set(tried)


def test_the_grid_is_left_when_it_only_gets_worse():
    tried = []
    rivals._best_on_grid(lambda k: tried.append(k) or -abs(k - 5), 1, 10_000, n_worse=3)
    assert max(tried) < 200


def test_brent_looks_at_each_number_once_and_at_few(sphere, monkeypatch):
    tried = []
    plain = rivals._k_means
    monkeypatch.setattr(rivals, "_k_means", lambda rows, k, n: tried.append(k) or plain(rows, k, n))
    rivals.brent_search(*sphere, random_state=0)
    assert len(tried) == len(set(tried)) <= rivals.N_EVALUATIONS
    assert 3 <= min(tried) <= max(tried) <= 120


def test_deep_dpm_has_its_own_prior_and_no_labels(sphere, monkeypatch):
    seen = {}

    class Spy(rivals.SplitMergeMixture):
        def fit(self, X, y=None):
            seen.update(self.get_params(), y=y, V=None)
            super().fit(X, y)
            seen.update(V=self.projection_.transform(X))
            return self

    monkeypatch.setattr(rivals, "SplitMergeMixture", Spy)
    rivals.deep_dpm_rule(*sphere, random_state=0)
    prior = seen["prior"]
    assert (seen["y"], seen["acceptance"], seen["n_components_init"]) == (None, "literal", 10)
    assert (prior.kappa, prior.nu) == (1e-4, 8 + 2)
    np.testing.assert_allclose(prior.nu * prior.psi, 0.005 * np.eye(8), atol=1e-15)
    np.testing.assert_allclose(prior.m, seen["V"].mean(axis=0), atol=1e-12)


def test_the_largest_total_bounds_deep_dpm(sphere):
    assert rivals.deep_dpm_rule(*sphere, n_max=4, random_state=0) == 1
