"""A small result as `newfound.result.result.Result` holds it, and a reader of the page."""

from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

from newfound.data.collection import Collection
from newfound.report.page import render_report

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")

VOID = frozenset(["meta", "br", "link", "img", "input", "hr", "path"])


def make_result(
    n_per_category=12,
    names=("ant", "bee", "new-001", "new-002"),
    *,
    paths=None,
    texts=None,
    ids=None,
    labels=None,
    run=None,
    skipped=(),
    seed=0,
):
    """Well separated categories; those not called "new-…" are known, every second item labelled."""
    rng = np.random.default_rng(seed)
    K = len(names)
    codes = np.repeat(np.arange(K), n_per_category)
    n = len(codes)
    V = (3 * np.eye(K, 6)[codes] + 0.3 * rng.standard_normal((n, 6))).astype(np.float32)
    features = np.hstack([V, rng.standard_normal((n, 2))])
    kinds = ["novel" if name.startswith("new-") else "known" for name in names]
    ids = [f"item-{i}" for i in range(n)] if ids is None else list(ids)
    y = np.array(
        [names[c] if kinds[c] == "known" and i % 2 else None for i, c in enumerate(codes)],
        dtype=object,
    )
    if labels is not None:
        y = np.asarray(labels, dtype=object)
    given = [str(label) if label is not None else None for label in y]
    codes = np.array(
        [names.index(g) if g is not None else c for g, c in zip(given, codes, strict=True)]
    )
    members = [np.flatnonzero(codes == c) for c in range(K)]
    confidence = rng.uniform(0.5, 1, n)
    table = pd.DataFrame(
        {
            "id": ids,
            "path": None if paths is None else [str(path) for path in paths],
            "given_label": given,
            "category": [names[c] for c in codes],
            "kind": [kinds[c] for c in codes],
            "confidence": confidence,
            "runner_up": [names[(c + 1) % K] for c in codes],
            "outlier_score": rng.uniform(0, 1, n),
        }
    )
    categories = pd.DataFrame(
        {
            "category": list(names),
            "kind": kinds,
            "size": [len(rows) for rows in members],
            "n_labelled": [sum(given[i] is not None for i in rows) for rows in members],
            "stability": [0.9, np.nan, *rng.uniform(0, 1, K - 2)],
            "mean_confidence": [confidence[rows].mean() for rows in members],
            "nearest": [*names[1:], names[0]],
            "exemplars": ["; ".join(ids[i] for i in rows[:6]) for rows in members],
            "borderline": ["; ".join(ids[i] for i in rows[6:9]) for rows in members],
            "why_not_split": [f"Its halves differ less ({c})." for c in range(K)],
            "why_not_merged": [f"It is far away ({c})." for c in range(K)],
        }
    )
    contents = {"paths": paths} if paths is not None else {"texts": texts}
    if paths is None and texts is None:
        contents = {"features": features}
    return SimpleNamespace(
        table=table,
        categories=categories,
        run={**RUN, **(run or {})},
        features=features,
        prototypes=np.stack([V[rows].mean(axis=0) for rows in members]),
        V=V,
        collection=Collection(ids, y, skipped=list(skipped), **contents),
        mixture=None,
    )


RUN = {
    "version": "0.1.0",
    "command": "newfound discover pictures --seed 3",
    "settings": {"n_init": 3},
    "seed": 3,
    "encoder": "pixels",
    "n_novel_interval": [1.6, 3.2],
    "rehearsal": {"n_draws": 4, "ratios": [0.8, 1.0, 1.0, 1.2]},
    "history": {"unit": "pass", "n_components": [3, 5, 4]},
    "timings": {"encode": 1.5},
    "source": "pictures",
    "warnings": ["Few classes are known."],
    "sentence": "2 new categories were found beside 2 known categories in 48 items.",
    "trust": "There are 2 to 3 new ones, 9 times in 10.",
}


class Page(HTMLParser):
    """The page as a browser reads it: elements with attributes, and texts by element."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.source = source
        self.elements = []
        self.open = []
        self.texts = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attributes):
        element = {"tag": tag, **dict(attributes)}
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1]["tag"] == tag, f"</{tag}> closes <{self.open[-1]['tag']}>"
        self.open.pop()

    def handle_data(self, text):
        self.texts.append((self.open[-1]["tag"] if self.open else None, text))

    def find(self, tag=None, **attributes):
        return [
            element
            for element in self.elements
            if (tag is None or element["tag"] == tag)
            and all(element.get(name) == value for name, value in attributes.items())
        ]

    def with_class(self, name):
        return [e for e in self.elements if name in (e.get("class") or "").split()]

    def text(self):
        """All that a person reads."""
        return " ".join(text for tag, text in self.texts if tag not in ("script", "style"))

    def script(self, which):
        """Content of the script elements: the data first, then the program."""
        return [text for tag, text in self.texts if tag == "script"][which]


@pytest.fixture
def result_of():
    return make_result


@pytest.fixture
def no_tsne(monkeypatch):
    """Maps by PCA, as without openTSNE, which takes its time."""
    monkeypatch.setattr("newfound.report.map._has_tsne", lambda: False)


@pytest.fixture
def page_of(no_tsne):
    """Render a result and read the page."""
    return lambda result, **settings: Page(render_report(result, **settings))


@pytest.fixture
def picture_paths(tmp_path):
    """Write n small pictures, each of one colour."""
    pillow = pytest.importorskip("PIL.Image")

    def write(n, size=(40, 30)):
        paths = []
        for i in range(n):
            paths.append(tmp_path / f"{i:04d}.png")
            pillow.new("RGB", size, colour(i)).save(paths[-1])
        return paths

    return write


def colour(i):
    return (37 * i) % 256, (91 * i + 40) % 256, (149 * i + 80) % 256
