"""Cases of the study of K: which data, which labels, which method, and the lines of a results file.

`find_k.py` runs them; `find_k_report.py` and `find_k_situations.py` print tables of them.
"""

import json
from dataclasses import asdict, dataclass
from functools import lru_cache

import numpy as np

SHARES = (0.2, 0.5, 0.8)
RATES = (0.5, 0.2)
N_PERMUTATIONS = 5
ALL_STARTS, FEW_STARTS = (3, 5, 10, 20, 30, 50, 100), (3, 20, 100)
RIVAL_RATE, COVERAGE_START = 0.5, 20
SPECIAL = ("long tail", "partial overlap", "no novel class", "20 known")
RIVALS = (
    "brent_search",
    "ward_labelled_score",
    "silhouette",
    "bic_mixture",
    "dirichlet_process",
    "deep_dpm_rule",
)
SITUATION_RIVALS = ("brent_search", "ward_labelled_score")
SITUATION_START, OTHER_STARTS = 20, (3, 100)  # the others for the first permutation only
NEIGHBOUR = "1-NN"


@dataclass(frozen=True)
class Situation:
    """What differs from the usual case.

    Usually half of the classes are known, half of their rows are labelled, and sizes are those of
    the set.
    """

    share: float = 0.5
    rate: float = 0.5
    n_known: int | None = None  # number of known classes, instead of a share
    quota: int | None = None  # labels per known class, instead of a rate
    absent: bool = False  # a quarter of the known classes has no unlabelled row
    sizes: str | None = None  # how class sizes are cut, see `cut_sizes`


NOTHING_NOVEL = "nothing novel"
SITUATIONS = {
    "like sizes": Situation(),
    "80 % known": Situation(share=0.8),
    "20 % known": Situation(share=0.2),
    "label rate 20 %": Situation(rate=0.2),
    "novel a third": Situation(sizes="novel a third"),
    "known a third": Situation(sizes="known a third"),
    "long tail over all": Situation(sizes="long tail"),
    "long tail, large known": Situation(sizes="long tail, large known"),
    "long tail, small known": Situation(sizes="long tail, small known"),
    "ten labels a class": Situation(quota=10),
    "four labels a class": Situation(quota=4),
    "three labels a class": Situation(quota=3),
    "two labels a class": Situation(quota=2),
    "a quarter absent": Situation(absent=True),
    NOTHING_NOVEL: Situation(share=1.0),
    "three known": Situation(n_known=3),
    "two known": Situation(n_known=2),
}


@dataclass(frozen=True)
class Source:
    """A feature set: an .npz file, or scikit-learn's digits."""

    name: str
    path: str | None
    max_rows: int


@dataclass(frozen=True)
class Case:
    """One line of the results: which data, which labels, which method."""

    set: str
    scenario: str
    permutation: int
    share: float
    rate: float | None  # None where each known class has a quota of labels
    method: str  # "mixture", "given K", "count", "1-NN", or the name of a rival
    init: int | None = None
    code: str = "now"  # which version of the package ran

    @property
    def key(self):
        return json.dumps(list(asdict(self).values()))

    @property
    def data(self):
        """The fields that decide rows and labels. They do not include the method."""
        return self.set, self.scenario, self.permutation, self.share, self.rate


def list_cases(sources, quick, special, only):
    """All cases, permutation by permutation, so that an interrupted run covers every set."""
    cases = []
    for permutation in range(1 if quick else N_PERMUTATIONS):
        starts = ALL_STARTS if permutation == 0 and not quick else FEW_STARTS
        for source in sources:
            for scenario, share, rate in draws_of(source, special):
                methods = [("count", None), ("given K", None)]
                methods += [("mixture", start) for start in starts]
                methods += [(name, None) for name in RIVALS if rate == RIVAL_RATE]
                cases += [
                    Case(source.name, scenario, permutation, share, rate, method, start)
                    for method, start in methods
                    if only in (None, part_of(method))
                ]
    return cases


def list_situation_cases(sources, permutations, count_permutations, only):
    """All cases of the situations. The count is quick, so it can have more permutations."""
    cases = [Case(source.name, "whole set", 0, 1.0, None, NEIGHBOUR) for source in sources]
    for permutation in range(max(permutations, count_permutations)):
        methods = [("count", None)] if permutation < count_permutations else []
        if permutation < permutations:
            starts = (SITUATION_START, *(OTHER_STARTS if permutation == 0 else ()))
            methods += [("given K", None)]
            methods += [("mixture", start) for start in starts]
            methods += [(name, None) for name in SITUATION_RIVALS]
        for source in sources:
            n_classes = len(np.unique(read_set(source)[1]))
            for name, situation in SITUATIONS.items():
                share = situation.n_known / n_classes if situation.n_known else situation.share
                rate = None if situation.quota else situation.rate
                cases += [
                    Case(source.name, name, permutation, share, rate, method, start)
                    for method, start in methods
                    if only in (None, part_of(method))
                ]
    return cases


def draws_of(source, special):
    """Scenario, known share and label rate of all draws from a set."""
    if not special:
        return [("plain", share, rate) for share in SHARES for rate in RATES]
    n_classes = len(np.unique(load(source)[1]))
    shares = (0.5, 0.5, 1.0, 20 / n_classes)
    wanted = SPECIAL if n_classes >= 100 else SPECIAL[:3]
    return [(name, share, 0.5) for name, share in zip(wanted, shares, strict=False)]


def part_of(method):
    return "rivals" if method in RIVALS else "count" if method == "count" else "mixture"


@lru_cache(maxsize=1)
def read_set(source):
    """Features in float32 and classes 0 … K - 1, all rows."""
    if source.path is None:
        from sklearn.datasets import load_digits

        X, Y = load_digits(return_X_y=True)
    else:
        with np.load(source.path, allow_pickle=False) as archive:
            X, Y = archive["X"], archive["Y" if "Y" in archive.files else "y"]
    return np.ascontiguousarray(X, dtype=np.float32), np.unique(Y, return_inverse=True)[1]


def load(source):
    """Features in float32 and classes 0 … K - 1, at most `max_rows` rows."""
    X, Y = read_set(source)
    if len(X) > source.max_rows:
        chosen = np.sort(np.random.default_rng(0).permutation(len(X))[: source.max_rows])
        X, Y = X[chosen], Y[chosen]
    return X, np.unique(Y, return_inverse=True)[1]


def draw(source, case):
    """Features, classes, partial labels and known classes of a case."""
    if case.scenario in SITUATIONS:
        return draw_situation(*read_set(source), case, source.max_rows)
    return draw_plain(*load(source), case)


def draw_plain(X, classes, case):
    """Draw a case of the plain study or of its special cases.

    In one permutation, a larger known share or label rate only adds to a smaller one.
    """
    rng = np.random.default_rng([case.permutation, 4])
    n_classes = int(classes.max()) + 1
    order = rng.permutation(n_classes)
    known = order[: number_known(case.share, n_classes, least=1)]
    luck = rng.random(len(classes))
    if case.scenario == "long tail":
        largest = max(5, min(500, np.bincount(classes).max()))
        sizes = np.geomspace(5, largest, n_classes).round()
        kept = np.sort(thin(classes, sizes[rng.permutation(n_classes)], luck))
        X, classes, luck = X[kept], classes[kept], rng.random(len(kept))
    rates = rates_of_classes(known, n_classes, case.rate, case.scenario == "partial overlap")
    return X, classes, label_by_rate(classes, rates, luck), np.sort(known)


def draw_situation(X, classes, case, max_rows):
    """Draw a case of `SITUATIONS`: cut the sizes, then the number of rows, then draw labels."""
    situation = SITUATIONS[case.scenario]
    rng = np.random.default_rng([case.permutation, 17])
    n_classes = int(classes.max()) + 1
    order = rng.permutation(n_classes)
    n_known = number_known(case.share, n_classes, least=2)
    known = order[:n_known]
    sizes = cut_sizes(situation.sizes, np.bincount(classes), order, n_known, rng)
    kept = thin(classes, sizes, rng.random(len(classes)))
    if len(kept) > max_rows:
        kept = rng.permutation(kept)[:max_rows]
    kept = np.sort(kept)
    X, classes = X[kept], classes[kept]
    luck = rng.random(len(classes))
    if situation.quota is not None:
        labelled = np.isin(classes, known) & (places(classes, luck) < situation.quota)
        y = np.where(labelled, classes, -1)
    else:
        rates = rates_of_classes(known, n_classes, case.rate, situation.absent)
        y = label_by_rate(classes, rates, luck)
    return X, classes, y, np.intersect1d(known, classes)


def number_known(share, n_classes, least):
    """Number of known classes. At least one class is novel, unless all are known."""
    if share == 1:
        return n_classes
    return min(max(least, round(share * n_classes)), n_classes - 1)


def cut_sizes(rule, sizes, order, n_known, rng):
    """Number of rows to keep of each class. `order` lists the known classes first."""
    known, novel = order[:n_known], order[n_known:]
    n_classes = len(sizes)
    if rule is None:
        return sizes
    if rule in ("novel a third", "known a third"):
        kept = sizes.copy()
        small = novel if rule == "novel a third" else known
        kept[small] = np.maximum(1, (sizes[small] / 3).round())
        return kept
    ranks = np.empty(n_classes, dtype=int)
    if rule == "long tail":
        ranks = rng.permutation(n_classes) + 1
    elif rule == "long tail, large known":
        ranks[order] = np.arange(n_classes) + 1
    elif rule == "long tail, small known":
        ranks[np.concatenate([novel, known])] = np.arange(n_classes) + 1
    else:
        raise ValueError(f"no rule {rule!r} for class sizes")
    return np.minimum(sizes, np.maximum(6, (sizes.max() * ranks**-0.8).round()))


def places(classes, luck):
    """Place of each row within its class, by luck: 0 for the smallest."""
    by_luck = np.lexsort((luck, classes))
    sizes = np.bincount(classes)
    place = np.empty(len(classes), dtype=int)
    place[by_luck] = np.arange(len(classes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return place


def thin(classes, sizes, luck):
    """The luckiest rows of each class, as many as `sizes` says, class by class."""
    kept = places(classes, luck) < sizes[classes]
    by_luck = np.lexsort((luck, classes))
    return by_luck[kept[by_luck]]


def rates_of_classes(known, n_classes, rate, absent):
    """Label rate of each class. With `absent`, a quarter of the known ones is labelled fully."""
    rates = np.zeros(n_classes)
    rates[known] = rate
    if absent:
        rates[known[: max(1, len(known) // 4)]] = 1.0
    return rates


def label_by_rate(classes, rates, luck):
    """Partial labels. At least one row of every known class is labelled."""
    luck = np.where(places(classes, luck) == 0, 0.0, luck)
    return np.where(luck < rates[classes], classes, -1)


def read_lines(path):
    """Lines of a results file. A line that was cut off by a kill is skipped."""
    if not path.exists():
        return []
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError:
            continue
    return lines


def latest_lines(paths):
    """The last line of every case. A line with an error does not replace one without."""
    latest = {}
    for path in paths:
        for line in read_lines(path):
            if "error" not in line or "error" in latest.get(key_of(line), line):
                latest[key_of(line)] = line
    return list(latest.values())


def case_of(line):
    """The case of a line. Older lines have no `code`."""
    return Case(**{name: line[name] for name in Case.__dataclass_fields__ if name in line})


def key_of(line):
    return case_of(line).key


def code_of(line):
    return case_of(line).code


def is_of_situations(line):
    return line["scenario"] in SITUATIONS or line["method"] == NEIGHBOUR
