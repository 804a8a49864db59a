import numpy as np
import pytest

from newfound.mixture.lloyd import PinnedRows, run_lloyd

DTYPES = [np.float64, np.float32]


def slow_lloyd(X, codes, centres, weights):
    """Textbook loops: pinned rows stay, the others go to the nearest mean, until none moves."""
    centres = [list(centre) for centre in centres]
    labels, n_iter = None, 0
    while True:
        n_iter += 1
        previous, labels = labels, []
        for x, code in zip(X, codes, strict=True):
            distances = [sum((a - b) ** 2 for a, b in zip(x, c, strict=True)) for c in centres]
            labels.append(code if code != -1 else distances.index(min(distances)))
        if labels == previous:
            inertia = sum(
                w * sum((a - b) ** 2 for a, b in zip(x, centres[label], strict=True))
                for x, label, w in zip(X, labels, weights, strict=True)
            )
            return labels, centres, inertia, n_iter
        for k in range(len(centres)):
            members = [i for i, label in enumerate(labels) if label == k]
            assert members, "this reference knows no empty clusters"
            total = sum(weights[i] for i in members)
            for column in range(len(centres[k])):
                centres[k][column] = sum(weights[i] * X[i][column] for i in members) / total


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_known", [0, 1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_lloyd_is_the_textbook_algorithm(seed, n_known, weighted):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 2))
    codes = np.full(60, -1)
    codes[: 5 * n_known] = np.repeat(np.arange(n_known), 5)
    weights = rng.uniform(0.5, 2, size=60) if weighted else np.ones(60)
    centres = X[rng.choice(np.arange(15, 60), size=n_known + 3, replace=False)]
    found = run_lloyd(
        PinnedRows.of(X, codes, n_known, weights=weights), centres, max_iter=300, threshold=0.0
    )
    labels, slow_centres, inertia, n_iter = slow_lloyd(
        X.tolist(), codes.tolist(), centres, weights.tolist()
    )
    assert found.labels.tolist() == labels
    assert found.n_iter == n_iter
    assert found.inertia == pytest.approx(inertia)
    np.testing.assert_allclose(found.centres, slow_centres, atol=1e-12)


def test_an_empty_cluster_moves_to_the_row_that_is_worst_served():
    X = np.array([[0.0], [1.0], [2.0], [50.0]])
    pinned = PinnedRows.of(X, np.full(4, -1), 0)
    found = run_lloyd(pinned, np.array([[1.0], [1000.0]]), max_iter=1, threshold=0.0)
    assert found.centres.ravel().tolist() == [1.0, 50.0]
    assert found.labels.tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_empty_clusters_are_seeded_anew(cloud, dtype):
    X, y = cloud[0].astype(dtype), cloud[1]
    centres = np.zeros((7, 3))
    centres[2:] = 1e6  # five novel clusters that no row is near to
    found = run_lloyd(PinnedRows.of(X, y, 2), centres, max_iter=300, threshold=0.0)
    assert np.unique(found.labels).tolist() == list(range(7))
    assert np.abs(found.centres).max() < 10


def test_an_offset_does_not_matter(cloud):
    """From the same start: k-means++ draws by content, and an offset is other content."""
    X, y = cloud
    centres = X[40:46]
    near = run_lloyd(PinnedRows.of(X, y, 2), centres, 300, 0.0)
    far = run_lloyd(PinnedRows.of(X + 1e6, y, 2), centres + 1e6, 300, 0.0)
    assert far.labels.tolist() == near.labels.tolist()
    assert far.n_iter == near.n_iter
    assert far.inertia == pytest.approx(near.inertia, rel=1e-6)
