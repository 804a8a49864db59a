import tracemalloc

import numpy as np

from newfound import SemiSupervisedKMeans


def test_rows_that_are_too_many_to_keep_give_the_same_clusters(blobs, monkeypatch, tiny_blocks):
    kept = SemiSupervisedKMeans(7, random_state=3).fit(blobs.X, blobs.y)
    monkeypatch.setattr("newfound.mixture.seeding._KEPT_BYTES", 0)
    read_again = SemiSupervisedKMeans(7, random_state=3).fit(blobs.X, blobs.y)
    np.testing.assert_array_equal(read_again.labels_, kept.labels_)


def test_memory_does_not_grow_with_rows_times_clusters(monkeypatch):
    monkeypatch.setattr("newfound.mixture.rows.BLOCK_BYTES", 1 << 15)
    X = np.random.default_rng(0).normal(size=(8_000, 4))
    model = SemiSupervisedKMeans(100, max_iter=2, random_state=0)
    tracemalloc.start()
    model.fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8_000 * 100 * 8 / 3
