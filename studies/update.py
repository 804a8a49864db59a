"""What `newfound update` does with new species, and with none: fitted again, and extended.

    python studies/update.py NAME=FILE.npz[,FILE.npz] ... [--seeds 10] [--cases new none ...]

The files have ``X`` and ``Y`` (or ``y``). For each seed, 24 known and 16 novel classes of 38 rows
are drawn; half of the rows of known classes are labelled. A mixture is fitted. Then rows are added:

new      45 rows of a class never seen, 140 of the old classes
three    20 rows of each of three classes never seen, 125 of the old classes
none     185 rows of the old classes
five     5 rows of a class never seen
few      5 rows of the old classes
grown    a novel class that had 13 rows gets 26 more; 140 of the other old classes
tripled  a novel class of 38 rows gets 76 more; 140 of the other old classes (large classes only)
burst    185 rows of the old classes, each twice with a small difference
shifted  185 rows of the old classes, all moved in one direction (as if by another camera)

small    a run of 10 known and 7 novel classes; added rows as in "new"
sparse   the same with 15 rows of each class instead of 38

"refit" fits the mixture again from the old partition, "extend" is what `update` does. One line for
each, means over the seeds: the share of a new class in one new category, in %; the share of its
rows in known classes; old items that stay in their category; new categories; those of them that
hold less than 30 % of any new class; accuracy of old and of added rows.
"""

import argparse
import warnings
from typing import NamedTuple

import measure  # noqa: F401  (fixes the threads before numpy loads)
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone

from newfound import SplitMergeMixture
from newfound.mixture.extension import extended
from newfound.result.lineage import Partition, keep_ids, novel_ids


class Case(NamedTuple):
    """What is drawn for a run, and what is added to it."""

    new: tuple[int, ...] = ()  # sizes of the new classes
    n_more: int = 140  # added rows of old classes
    grown: tuple[int, int] | None = None  # rows of the grown class, before and added
    n_known: int = 24
    n_novel: int = 16
    n_before: int = 38  # rows of each old class


CASES = {
    "new": Case(new=(45,)),
    "three": Case(new=(20, 20, 20), n_more=125),
    "none": Case(n_more=185),
    "five": Case(new=(5,), n_more=0),
    "few": Case(n_more=5),
    "grown": Case(grown=(13, 26)),
    "tripled": Case(grown=(38, 76)),
    "burst": Case(n_more=92),
    "shifted": Case(n_more=185),
    "small": Case(new=(45,), n_known=10, n_novel=7),
    "sparse": Case(new=(45,), n_known=10, n_novel=7, n_before=15),
}
COLUMNS = "share known stay new false old added"


def load(files):
    """Features and classes as numbers of one or several files."""
    parts = []
    for file in files.split(","):
        with np.load(file, allow_pickle=False) as archive:
            parts.append((archive["X"], archive["Y"] if "Y" in archive else archive["y"]))
    classes = np.unique(np.concatenate([names for _, names in parts]), return_inverse=True)[1]
    return np.concatenate([X for X, _ in parts]).astype(np.float32), classes


def draw(classes, case, seed):
    """Rows of the run, added rows, partial labels of the run, and the new classes."""
    drawn = CASES[case]
    rng = np.random.default_rng(seed)
    sizes = np.bincount(classes)
    new = rng.permutation(np.flatnonzero(sizes >= 45))[: len(drawn.new)]
    pool = np.setdiff1d(np.flatnonzero(sizes >= drawn.n_before + 4), new)
    pool = rng.permutation(pool)[: drawn.n_known + drawn.n_novel]
    before, rest, added = [], [], []
    for place, k in enumerate(pool):
        rows = rng.permutation(np.flatnonzero(classes == k))
        if drawn.grown and place == drawn.n_known:
            before.extend(rows[: drawn.grown[0]])
            added.extend(rows[drawn.grown[0] : sum(drawn.grown)])
        else:
            before.extend(rows[: drawn.n_before])
            rest.extend(rows[drawn.n_before :])
    added.extend(rng.permutation(rest)[: drawn.n_more])
    for k, size in zip(new, drawn.new, strict=True):
        added.extend(rng.permutation(np.flatnonzero(classes == k))[:size])
    before, added = np.array(before), np.array(added)
    is_labelled = np.isin(classes[before], pool[: drawn.n_known]) & (rng.random(len(before)) < 0.5)
    return before, added, np.where(is_labelled, classes[before], -1), new


def disturb(added, truth, case, seed):
    """Added rows as the case has them: doubled, moved, or as they are."""
    rng = np.random.default_rng([1, seed])
    spread = added.std(axis=0)
    if case == "burst":
        near = added + 0.1 * spread * rng.normal(size=added.shape)
        return np.vstack([added, near.astype(added.dtype)]), np.tile(truth, 2)
    if case == "shifted":
        return added + (0.3 * spread * rng.normal(size=added.shape[1])).astype(added.dtype), truth
    return added, truth


def judge(before, now, truth, new):
    """The figures of one update; `truth` has a class for each row."""
    ids = [f"{row:06d}" for row in range(len(truth))]
    n_before = len(before.labels_)
    known = [str(name) for name in before.classes_]
    old_names = np.array([*known, *novel_ids(before.n_novel_, known)], dtype=object)
    was = old_names[before.labels_]
    novel = {ids[i]: was[i] for i in np.flatnonzero(before.labels_ >= before.n_known_)}
    partition = Partition(ids, now.labels_, known)
    names = np.array(keep_ids(novel, partition, before.n_novel_), dtype=object)
    category = names[now.labels_]
    fresh = [name for name in names if name not in set(old_names)]
    shares = np.array([[(category[truth == k] == f).mean() for f in fresh] for k in new])
    shares = shares.reshape(len(new), len(fresh))
    rows, columns = linear_sum_assignment(-shares)
    matched = shares[rows, columns]
    is_new = np.isin(truth, new)
    right = is_right(now.labels_, truth)
    return (
        matched.sum() / len(new) if len(new) else np.nan,
        np.isin(category[is_new], known).mean() if len(new) else np.nan,
        (category[:n_before] == was).mean(),
        len(fresh),
        len(fresh) - (matched >= 0.3).sum(),
        right[:n_before].mean(),
        right[n_before:].mean(),
    )


def is_right(labels, truth):
    """Whether each row is in the category that is matched with its class."""
    truth = np.unique(truth, return_inverse=True)[1]
    shared = np.zeros((labels.max() + 1, truth.max() + 1))
    np.add.at(shared, (labels, truth), 1)
    categories, classes = linear_sum_assignment(-shared)
    match = np.full(labels.max() + 1, -1)
    match[categories] = classes
    return match[labels] == truth


def run(X, classes, case, seed):
    """Figures of both ways to update."""
    before, added, y, new = draw(classes, case, seed)
    more, truth = disturb(X[added], classes[added], case, seed)
    mixture = SplitMergeMixture(random_state=0).fit(X[before], y)
    rows, labels = np.vstack([X[before], more]), np.append(y, np.full(len(more), -1))
    truth = np.append(classes[before], truth)
    start = np.append(mixture.labels_, mixture.predict(more))
    again = clone(mixture).refit(rows, labels, start)
    return {
        "refit": judge(mixture, again, truth, new),
        "extend": judge(mixture, extended(mixture, rows, labels), truth, new),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="+", metavar="NAME=FILE.npz[,FILE.npz]")
    parser.add_argument("--seeds", type=int, default=10, help="seeds 0, 1 … are used")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=["new", "three", "none"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    head = "".join(f"{column:>7s}" for column in COLUMNS.split())
    print(f"{'':28s}{head}   share (new categories) of each seed")
    for argument in options.files:
        name, _, files = argument.partition("=")
        X, classes = load(files)
        for case in options.cases:
            results = [run(X, classes, case, seed) for seed in range(options.seeds)]
            for way in ("refit", "extend"):
                figures = np.array([result[way] for result in results])
                means = figures.mean(axis=0) * [100, 100, 100, 1, 1, 100, 100]
                cells = "".join(f"{mean:7.1f}" for mean in means)
                each = [f"{100 * row[0]:.0f} ({row[3]:.0f})" for row in figures]
                print(f"{name:12s}{case:9s}{way:7s}{cells}   {', '.join(each)}", flush=True)


if __name__ == "__main__":
    main()
