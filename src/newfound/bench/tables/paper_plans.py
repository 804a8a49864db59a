"""The plans of the paper's tables: their rows and columns, and which runs belong in a cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from newfound.bench.case import PARTS, KSource
from newfound.bench.tables.plan import DATASETS, METHODS, PAPER, Column, Row, TablePlan, Where

# the rows that the paper compares: GCD without PCA, GPC with it
_VAZE: Where = {"method": "gcd", "k": "brent", "pca": False}
_GPC: Where = {"method": "gpc", "k": "count", "pca": True}
#: Source of K → its name in a row.
_K: dict[KSource, str] = {"known": "given", "brent": "Brent", "count": "count", "own": "own"}
_GENERIC = ("cifar10", "cifar100", "imagenet100")
_FINE = ("cub", "cars", "aircraft")
_LONG_TAILS = ("cifar100-lt", "cub-lt", "cars-lt", "tiny-imagenet-lt")
_COUNTED = (*_GENERIC, "cub", "cars")


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _k(method: str, known: bool) -> KSource:
    return "known" if known else METHODS[method].own_k


def _title(dataset: str) -> str:
    return str(DATASETS[dataset]["title"]) if dataset in DATASETS else dataset


def _scores(group: str, where: Where, paper: str) -> list[Column]:
    names = ("All", "Old", "New")
    return [
        Column(group, name, where, paper, name.lower(), place) for place, name in enumerate(names)
    ]


def _scores_on(datasets: Iterable[str]) -> tuple[Column, ...]:
    return tuple(
        column for name in datasets for column in _scores(_title(name), {"dataset": name}, name)
    )


def _on(datasets: Iterable[str], group: str, show: str) -> tuple[Column, ...]:
    return tuple(Column(group, _title(name), {"dataset": name}, name, show) for name in datasets)


def _variants(method: str, k: KSource, **where: Any) -> list[tuple[str, str, Where]]:
    """Variants of a method: PCA in words, key of the paper's figures, fields of the case."""
    base = {"method": method, "k": k, **where}
    known = {"known": "known", METHODS[method].own_k: "unknown"}.get(k)
    key = f"{method} {known}" if known else ""
    if not METHODS[method].has_pca:
        return [("no", key, base)]
    with_pca = f"{key} pca" if known else ""
    return [("no", key, base | {"pca": False}), ("yes", with_pca, base | {"pca": True})]


def _main(name: str, datasets: Iterable[str], *, numbered: bool = True) -> TablePlan:
    """Every method, with K from each source, with and without PCA; then where the gain is."""
    figures = PAPER[name]["rows"]
    # numbers are the paper's, so rows that only we have get none
    numbers = {key: f"({number})" for number, key in enumerate(figures, start=1)}
    first = 0 if numbered else 1
    rows = [
        Row(
            (numbers.get(key, ""), METHODS[method].title, _K[k], pca)[first:],
            where,
            key if key in figures else "",
            ruled=method == "kmeans" and k != "known" and pca == "no",
        )
        for k in _K
        for method in METHODS
        if k != "own" or METHODS[method].own_k == "own"
        for pca, key, where in _variants(method, k)
    ]
    rows += [
        Row(("", title, _K[k], pca)[first:], {**where, "k": k}, ruled=ruled and k == "known")
        for title, pca, where, ruled in _gains()
        for k in ("known", "brent", "count")
    ]
    stub = ("No.", "Method", "K", "PCA")[first:]
    return TablePlan(name, stub, tuple(rows), _scores_on(datasets), figures, paired=True)


def _gains() -> Iterable[tuple[str, str, Where, bool]]:
    """Rows that show where the gain is: our mixture on rivals' features, GPC without a part."""
    rivals = ("rankstats", "dualrank", "uno", "orca", "gcd", "cms", "dccl", "simgcd", "bacon")
    for number, method in enumerate(rivals):
        where = {"method": method, "clustering": "mixture", "pca": False}
        yield f"{METHODS[method].title} + our mixture", "yes", where, number == 0
    for number, part in enumerate(PARTS):
        where = {"method": "gpc", "without": part, "pca": True}
        yield f"GPC without {part}", "yes", where, number == 0


def _splits() -> TablePlan:
    """Numbers of classes and images: the paper's, the field's, and those of our records."""
    # the paper gives no numbers of images; these are the field's
    figures = {
        name: {
            "n_known": [str(facts["n_known"])],
            "n_novel_true": [str(facts["n_novel"])],
            **{size: [_size(facts, size)] for size in ("n_labelled", "n_unlabelled")},
        }
        for name, facts in DATASETS.items()
    }
    rows = tuple(Row((_title(name),), {"dataset": name}, name) for name in DATASETS)
    columns = tuple(
        Column(group, title, {}, show, show)
        for group, title, show in (
            ("Classes", "labelled", "n_known"),
            ("Classes", "unlabelled", "n_novel_true"),
            ("Images", "|D^l|", "n_labelled"),
            ("Images", "|D^u|", "n_unlabelled"),
        )
    )
    return TablePlan("2", ("Data set",), rows, columns, figures, block="all")


def _size(facts: Mapping[str, Any], size: str) -> str:
    return f"{facts[size] / 1000:.1f}k" if facts["rounded"] else f"{facts[size]:,}"


def _first_guesses(name: str, guesses: Iterable[int], *, labelled_only: bool) -> TablePlan:
    """K^n for several K^n_init, and without one."""
    figures = PAPER[name]["rows"]
    rows = []
    for dataset, line in figures.items():
        known, novel = line["known"][0], line["novel"][0]
        where = {"dataset": dataset}
        if labelled_only:
            where["labelled_only"] = f"{known}/{novel}"
        rows.append(Row((_title(dataset), known, novel), where, dataset))
    columns = [] if labelled_only else [Column("", "Vaze et al.", _VAZE, "vaze", "n_novel")]
    columns += [
        Column("GPC, K^n_init =", str(k), {**_GPC, "k_init": k}, str(k), "n_novel") for k in guesses
    ]
    columns.append(Column("GPC, K^n_init =", "none given", _GPC, "", "n_novel"))
    return TablePlan(name, ("Data set", "K^l", "True K^n"), tuple(rows), tuple(columns), figures)


def _longer_training() -> TablePlan:
    gcd = {"method": "gcd", "k": "known", "pca": False}
    rows = (
        Row(("Vaze et al. (GCD)",), gcd, "gcd"),
        Row(("Vaze et al. (GCD), epochs × 1.5",), gcd, "gcd longer", longer=True),
        Row(("GPC",), {**_GPC, "k": "known"}, "gpc"),
    )
    columns = []
    for name in ("cub", "imagenet100"):
        columns += _scores(_title(name), {"dataset": name}, name)
        columns.append(Column(_title(name), "seconds", {"dataset": name}, "", "seconds"))
    return TablePlan("6", ("Method",), rows, tuple(columns), PAPER["6"]["rows"])


def _prototypes() -> TablePlan:
    titles = {
        "dbscan": "DBSCAN (Ester et al.)",
        "ward": "Ward (Murtagh et al.)",
        "kmeans": "semi-supervised k-means (Vaze et al.)",
        "mixture": "mixture (GPC)",
    }
    own = {"dbscan": "own", "ward": "brent", "kmeans": "brent", "mixture": "count"}
    rows = tuple(
        Row((title, _yes(k == "known")), {**_GPC, "k": k, "prototypes": key}, key)
        for key, title in titles.items()
        for k in ("known", own[key])
    )
    columns = _on(("cub", "imagenet100", "cars"), "All", "all")
    return TablePlan("7a", ("Prototypes by", "Known K"), rows, columns, PAPER["7a"]["rows"])


def _joint() -> TablePlan:
    others = ("rankstats", "dualrank", "gcd")
    rows = tuple(
        Row(
            (f"{METHODS[name].title} with our mixture",),
            {"method": name, "k": "own", "joint": True},
            name,
        )
        for name in others
    )
    columns = _on(("cub", "imagenet100", "cars"), "All", "all")
    figures = PAPER["7b"]["rows"]
    return TablePlan("7b", ("Method",), (*rows, Row(("GPC",), _GPC, "gpc")), columns, figures)


def _finished_features() -> TablePlan:
    rows = [
        Row(("Truth",), {}, "truth", "n_novel_true"),
        Row(("Vaze et al. (GCD)",), _VAZE, "vaze", ruled=True),
    ]
    for name in ("rankstats", "dualrank", "gcd"):
        where = {"method": name, "k": "known"} | ({"pca": False} if name == "gcd" else {})
        title = f"Our mixture on features of {METHODS[name].title}"
        rows.append(Row((title,), where, name, "n_novel_of_mixture", ruled=name == "rankstats"))
    rows.append(Row(("GPC",), _GPC, "gpc", ruled=True))
    columns = _on(("cifar100", "cub", "cars", "imagenet100"), "K^n", "n_novel")
    return TablePlan("8", ("Representation",), tuple(rows), columns, PAPER["8"]["rows"])


def _overlap() -> TablePlan:
    rows = tuple(
        Row(
            (METHODS[name].title, _yes(known)),
            {"method": name, "k": _k(name, known), "pca": name == "gpc"},
            name,
        )
        for name in ("gcd", "gpc")
        for known in (True, False)
    )
    columns = tuple(
        column
        for n in (25, 50, 75)
        for column in _scores(f"{n} classes shared", {"dataset": "cub", "overlap": n}, str(n))
    )
    return TablePlan("9", ("Method", "Known K"), rows, columns, PAPER["9"]["rows"])


def _ratios() -> TablePlan:
    rows = (Row(("Vaze et al. (GCD)",), _VAZE, "gcd"), Row(("GPC",), _GPC, "gpc"))
    figures = PAPER["10"]["rows"]
    columns = tuple(
        Column("Old/New", ratio, {"dataset": "cub", "n_old": n_old}, ratio, "n_novel")
        for ratio in figures["gpc"]
        for n_old in [int(ratio.partition("/")[0])]
    )
    return TablePlan("10", ("Method",), rows, columns, figures)


def _epochs() -> TablePlan:
    figures = PAPER["12"]["rows"]
    columns = [
        Column("K^n at epoch", epoch, {}, epoch, f"n_novel_by_epoch@{epoch}")
        for epoch in figures["gpc"]
    ]
    columns.append(Column("K^n at epoch", "last", {}, "", "n_novel_by_epoch@0"))
    rows = (Row(("GPC",), {**_GPC, "dataset": "cub"}, "gpc"),)
    return TablePlan("12", ("Method",), rows, tuple(columns), figures, longest=True)


def _count_bars() -> TablePlan:
    rows = (
        Row(("GPC",), _GPC, "gpc"),
        Row(("GPC literal",), {**_GPC, "method": "gpc-literal", "k": "own"}),
        Row(("Vaze et al. (GCD)",), _VAZE, "gcd"),
        Row(("Truth",), {}, "truth", "n_novel_true", ruled=True),
    )
    columns = _on(_COUNTED, "K^n", "n_novel")
    return TablePlan("15", ("Method",), rows, columns, PAPER["15"]["rows"])


def _pretraining(name: str, datasets: Iterable[str]) -> TablePlan:
    rows = tuple(
        Row(
            (METHODS[method].title, source, _yes(known_k), pca),
            where,
            f"{method} {source}" if known_k and pca == "no" else "",
            ruled=(source, method, known_k) == ("Target", "orca", True),
        )
        for source in ("ImageNet", "Target")
        for method in ("orca", "gpc")
        for known_k in (True, False)
        for pca, _, where in _variants(method, _k(method, known_k), pretraining=source)
    )
    stub = ("Method", "Pretraining", "Known K", "PCA")
    columns, figures = _scores_on(datasets), PAPER[name]["rows"]
    return TablePlan(name, stub, rows, columns, figures, block="model")


PLANS = {
    plan.name: plan
    for plan in (
        _main("1", _GENERIC),
        _splits(),
        _main("3", _FINE),
        _main("4", ("herbarium",), numbered=False),
        _first_guesses("5", (3, 5, 10, 20, 30, 50, 100), labelled_only=False),
        _longer_training(),
        _prototypes(),
        _joint(),
        _finished_features(),
        _overlap(),
        _ratios(),
        _first_guesses("11", (1, 3, 5, 10, 20, 25, 50), labelled_only=True),
        _epochs(),
        _main("13", _GENERIC),
        _main("14", _FINE),
        _count_bars(),
        _pretraining("16", _GENERIC),
        _pretraining("17", _FINE),
        _main("lt", _LONG_TAILS, numbered=False),
    )
}
