"""Cases of the study of K: which data, which labels, which method, and the lines of a results file.

`find_k.py` runs them and `find_k_report.py` prints tables of them.
"""

import json
from dataclasses import asdict, dataclass

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
    rate: float
    method: str  # "mixture", "given K", "count", or the name of a rival
    init: int | None = None

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


def load(source):
    """Features in float32 and classes 0 … K - 1, at most `max_rows` rows."""
    if source.path is None:
        from sklearn.datasets import load_digits

        X, Y = load_digits(return_X_y=True)
    else:
        with np.load(source.path, allow_pickle=False) as archive:
            X, Y = archive["X"], archive["Y"]
    if len(X) > source.max_rows:
        chosen = np.sort(np.random.default_rng(0).permutation(len(X))[: source.max_rows])
        X, Y = X[chosen], Y[chosen]
    return np.ascontiguousarray(X, dtype=np.float32), np.unique(Y, return_inverse=True)[1]


def draw(X, classes, case):
    """Features, classes and partial labels of a case.

    In one permutation, a larger known share or label rate only adds to a smaller one.
    """
    rng = np.random.default_rng([case.permutation, 4])
    n_classes = int(classes.max()) + 1
    order = rng.permutation(n_classes)
    n_known = max(1, round(case.share * n_classes))
    if case.share < 1:
        n_known = min(n_known, n_classes - 1)
    known = order[:n_known]
    luck = rng.random(len(classes))
    if case.scenario == "long tail":
        kept = thin(classes, rng.permutation(n_classes), luck)
        X, classes, luck = X[kept], classes[kept], rng.random(len(kept))
    rates = np.zeros(n_classes)
    rates[known] = case.rate
    if case.scenario == "partial overlap":
        rates[known[: max(1, n_known // 4)]] = 1.0
    # at least one row of every known class is labelled
    luckiest = np.full(n_classes, np.inf)
    np.minimum.at(luckiest, classes, luck)
    luck = np.where(luck == luckiest[classes], 0.0, luck)
    return X, classes, np.where(luck < rates[classes], classes, -1), np.sort(known)


def thin(classes, ranks, luck):
    """Rows such that class sizes fall geometrically from 500, or the largest size, to 5."""
    available = np.bincount(classes)
    sizes = np.geomspace(5, max(5, min(500, available.max())), len(available)).round()
    by_luck = np.lexsort((luck, classes))
    place = np.empty(len(classes), dtype=int)
    place[by_luck] = np.arange(len(classes)) - np.repeat(
        np.cumsum(available) - available, available
    )
    return np.flatnonzero(place < sizes[ranks][classes])


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


def case_of(line):
    return Case(**{name: line[name] for name in Case.__dataclass_fields__})


def key_of(line):
    return case_of(line).key
