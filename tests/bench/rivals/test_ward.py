"""Ward's tree against that of scipy."""

import numpy as np
from scipy.cluster import hierarchy

from newfound.bench.rivals import ward, ward_labelled_score
from newfound.bench.rivals.rival_input import prepare_input


def test_ward_is_scipys_tree_cut_at_every_height(blobs):
    """On rows that overlap, so that the answer is not the easy one."""
    rng = np.random.default_rng(1)
    X = blobs.X + 5 * rng.normal(size=blobs.X.shape)
    rows = prepare_input(X, blobs.y, None, 0)
    tree = hierarchy.ward(rows.V)
    accuracies = {k: rows.accuracy(hierarchy.fcluster(tree, k, "maxclust")) for k in range(3, 101)}
    best = max(accuracies, key=lambda k: (accuracies[k], k))
    assert ward_labelled_score(X, blobs.y) == best - 3
    assert accuracies[best] < 1


def test_many_rows_are_grouped_before_ward(sphere, monkeypatch):
    monkeypatch.setattr(ward, "N_WARD_LEAVES", 60)
    assert ward_labelled_score(*sphere, random_state=0) == 3
