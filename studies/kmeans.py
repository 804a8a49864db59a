"""Semi-supervised k-means against scikit-learn's Lloyd and the field's broadcast form.

python studies/kmeans.py [--features FILE.npz]
"""

import argparse
import warnings

from measure import (  # imported first, because it sets the number of threads
    cpu_seconds,
    load_features,
    partial_labels,
    peak_extra_mebibytes,
    print_table,
)

import numpy as np
from sklearn.cluster import KMeans

from newfound import SemiSupervisedKMeans

MEMORY_CODE = """
import numpy as np
from newfound import SemiSupervisedKMeans
X = np.random.default_rng(0).standard_normal((1_000_000, 128), dtype=np.float32)
y = np.where(np.arange(len(X)) % 4 == 0, np.arange(len(X)) // 4 % 100, -1)
SemiSupervisedKMeans(4, max_iter=1).fit(X[:100])
ready()
SemiSupervisedKMeans(500, max_iter=2, random_state=0).fit(X, y)
"""


def seconds_per_iteration(make, X, y):
    """Seconds per iteration without start-up: the difference between 22 and 2 iterations."""
    times = []
    for n_iterations in (2, 22):
        estimator = make(n_iterations)
        seconds, fitted = cpu_seconds(lambda e=estimator: e.fit(X, y))
        times.append((seconds, fitted.n_iter_))
    return (times[1][0] - times[0][0]) / (times[1][1] - times[0][1])


def broadcast_start(X, labelled, classes, n_clusters, n_slice):
    """One start as in the field's code, on a slice of the rows; the caller scales the time up.

    For each new centre, k-means++ computes the distances to all centres again, from differences of
    broadcast rows.
    """
    centres = np.stack(
        [X[labelled & (classes == c)].mean(axis=0) for c in np.unique(classes[labelled])]
    )
    rows = X[~labelled][:n_slice]
    while len(centres) < n_clusters:
        distances = ((rows[:, None, :] - centres[None, :, :]) ** 2).sum(axis=-1).min(axis=1)
        centres = np.vstack([centres, rows[distances.argmax()]])
    return centres


def broadcast_iteration(X, centres, n_slice):
    rows = X[:n_slice]
    return ((rows[:, None, :] - centres[None, :, :]) ** 2).sum(axis=-1).argmin(axis=1)


def compare_with_lloyd(features):
    X, classes = load_features(features)
    y = partial_labels(classes)
    rows = []
    for name, labels in (("no labels", None), ("half of 80 classes labelled", y)):
        ours = seconds_per_iteration(
            lambda n: SemiSupervisedKMeans(150, max_iter=n, tol=0, random_state=0), X, labels
        )
        peer = seconds_per_iteration(
            lambda n: KMeans(150, n_init=1, max_iter=n, tol=0, algorithm="lloyd", random_state=0),
            X,
            None,
        )
        rows.append(
            (name, f"{ours / peer:.2f} x ({ours * 1e3:.0f} / {peer * 1e3:.0f} ms)", "<= 1.3 x")
        )
    print_table(
        f"CPU time per iteration against KMeans, {X.shape[0]:,} x {X.shape[1]}, K = 150", rows
    )


def compare_with_broadcast():
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(200), 30)
    X = rng.normal(size=(200, 768))[classes] + 2 * rng.normal(size=(6000, 768))
    y = partial_labels(classes, n_known=100)
    ours, fitted = cpu_seconds(lambda: SemiSupervisedKMeans(200, random_state=0).fit(X, y))
    n_slice, labelled = 40, y >= 0
    seeding, centres = cpu_seconds(lambda: broadcast_start(X, labelled, classes, 200, n_slice))
    iteration, _ = cpu_seconds(lambda: broadcast_iteration(X, centres, n_slice))
    field = seeding * (~labelled).sum() / n_slice + iteration * fitted.n_iter_ * len(X) / n_slice
    measured = f"{field / ours:.0f} x ({ours:.2f} s / {field:.0f} s)"
    print_table(
        "One start at CUB size, 6,000 x 768, K = 200",
        [("field's form / ours", measured, ">= 50 x")],
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", help=".npz file with X and Y; by default synthetic features")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    compare_with_lloyd(arguments.features)
    compare_with_broadcast()
    extra = peak_extra_mebibytes(MEMORY_CODE)
    print_table(
        "Memory above X, 1,000,000 x 128, K = 500", [("peak", f"{extra:.0f} MiB", "<= 512 MiB")]
    )


if __name__ == "__main__":
    main()
