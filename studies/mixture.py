"""The E-step against scikit-learn: time, growth with the number of rows, memory, profile.

python studies/mixture.py [--features FILE.npz]
"""

import argparse
import cProfile
import io
import pstats
import warnings
from functools import partial

from measure import (  # imported first, because it sets the number of threads
    cpu_seconds,
    load_features,
    partial_labels,
    peak_extra_mebibytes,
    print_table,
)

import numpy as np
from sklearn.cluster import KMeans
from sklearn.mixture import BayesianGaussianMixture

from newfound import SemiSupervisedKMeans, SplitMergeMixture, count_categories
from newfound.mixture.acceptance import accept_literal
from newfound.mixture.assignment import nearest_labels
from newfound.mixture.prior import NIWPrior
from newfound.mixture.split_merge import Components, Rules, split_merge_pass
from newfound.mixture.stats import GaussianStats

MEMORY_CODE = """
import numpy as np
from newfound import SplitMergeMixture
rng = np.random.default_rng(0)
n, d, k = 200_000, 256, 120
classes = rng.integers(0, 100, n)
X = rng.standard_normal((n, d), dtype=np.float32)
centres = rng.standard_normal((100, d), dtype=np.float32)
for start in range(0, n, 1000):
    X[start : start + 1000] += centres[classes[start : start + 1000]]
y = np.where((classes < 80) & (rng.random(n) < 0.5), classes, -1)
literal = SplitMergeMixture(k, max_passes=2, n_init=1, random_state=0, acceptance="literal")
literal.set_params(n_components_init=3).fit(X[:1000], y[:1000] * 0)
ready()
mixture = literal.set_params(n_components_init=k).fit(X, y)
"""


def literal_mixture(passes=30):
    return SplitMergeMixture(120, acceptance="literal", max_passes=passes, n_init=1, random_state=0)


def compare(X, y):
    ours, fitted = cpu_seconds(lambda: literal_mixture().fit(X, y))
    k_means, peer = cpu_seconds(lambda: KMeans(100, n_init=1, random_state=0).fit(X))
    n_slice = len(X) // 10
    bayes, _ = cpu_seconds(
        lambda: BayesianGaussianMixture(
            n_components=150,
            covariance_type="full",
            max_iter=3,
            random_state=0,
            init_params="random",
        ).fit(X[:n_slice])
    )
    bayes *= 10 * 10  # ten times the rows, ten times the iterations
    print_table(
        f"fit, {X.shape[0]:,} x {X.shape[1]}, K_init = 120, {len(fitted.history_)} passes",
        [
            (
                "against KMeans(100), " + f"{peer.n_iter_} iterations",
                f"{ours / k_means:.2f} x ({ours:.1f} / {k_means:.1f} s)",
                "<= 3 x",
            ),
            (
                "faster than BayesianGaussianMixture(150), 30 iterations",
                f"{bayes / ours:.0f} x (scaled from a tenth: {bayes:.0f} s)",
                ">= 20 x",
            ),
        ],
    )


def growth(X, y):
    """One pass at K = 120 for several numbers of rows: moves, then five rounds of assignment.

    Whole fits cannot be compared, because the literal rule makes more components from more rows.
    """
    rng = np.random.default_rng(0)
    labels = SemiSupervisedKMeans(120, random_state=0, max_iter=20).fit(X, y).labels_
    rows, first = [], None
    for factor in (1, 2, 4, 8):
        V = np.concatenate([X] * factor)
        V += 0.01 * rng.standard_normal(V.shape, dtype=np.float32)
        run = partial(one_pass, V, np.tile(y, factor), np.tile(labels, factor))
        seconds = min(cpu_seconds(run)[0] for _ in range(3))
        first = first or seconds
        measured = f"{seconds:.2f} s, {seconds / first / factor:.2f} x linear"
        rows.append((f"{len(V):,} rows", measured, "<= 1.15 x"))
    print_table("Time of a pass as the rows grow", rows)


def one_pass(V, codes, labels):
    whole = GaussianStats.from_points(V)
    classes = GaussianStats.from_labels(V, codes, int(codes.max()) + 1)
    rules = Rules(NIWPrior.from_classes(classes, whole), accept_literal)
    keys = np.zeros(len(V), dtype=np.uint64)
    components = Components.of(V, labels, len(classes), rules, keys)
    split_merge_pass(V, components, rules, seed=0)
    nearest_labels(V, codes, labels, len(classes), n_rounds=5)


def counting(X, y):
    rng = np.random.default_rng(0)
    twice = np.concatenate([X, X]) + 0.01 * rng.standard_normal((2 * len(X), X.shape[1]))
    seconds, _ = cpu_seconds(
        lambda: count_categories(twice.astype(np.float32), np.tile(y, 2), random_state=0)
    )
    print_table(
        f"count_categories, {len(twice):,} x {X.shape[1]}", [("CPU", f"{seconds:.1f} s", "<= 60 s")]
    )


def profile(X, y):
    profiler = cProfile.Profile()
    profiler.runcall(literal_mixture().fit, X, y)
    text = io.StringIO()
    pstats.Stats(profiler, stream=text).sort_stats("tottime").print_stats(8)
    lines = [line for line in text.getvalue().splitlines() if line.strip()][4:]
    print("\nProfile, by own time")
    for line in lines:
        print("  " + line[:46] + line[46:].split("site-packages/")[-1].split("/src/")[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", help=".npz file with X and Y; by default synthetic features")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    X, classes = load_features(arguments.features)
    y = partial_labels(classes)
    compare(X, y)
    growth(X, y)
    counting(X, y)
    # V is 200,000 x 128 in float32; one (K, q, q) array of statistics with K = 120
    projected, statistics = 200_000 * 128 * 4 / 2**20, 120 * 128 * 128 * 8 / 2**20
    extra = peak_extra_mebibytes(MEMORY_CODE) - projected
    quarter = 0.25 * 200_000 * 256 * 4 / 2**20
    print_table(
        f"Memory above X and V, 200,000 x 256, one set of K q² statistics is {statistics:.0f} MiB",
        [("peak", f"{extra:.0f} MiB", f"<= {quarter:.0f} MiB + statistics")],
    )
    profile(X, y)


if __name__ == "__main__":
    main()
