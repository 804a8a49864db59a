"""A small result, and a reader of the page."""

import json
from html.parser import HTMLParser

import numpy as np
import pytest

from newfound.data.collection import Collection
from newfound.report.page import render_report
from newfound.result.assign import Assigned
from newfound.result.evidence import MoveEvidence
from newfound.result.profiles import CategoryProfiles
from newfound.result.record import History, RehearsalRecord, Request, RunRecord
from newfound.result.result import Result

pytest.importorskip("pandas")
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
    record=None,
    skipped=(),
    seed=0,
):
    """Well separated categories; those not called "new-…" are known, every second item labelled."""
    rng = np.random.default_rng(seed)
    K = len(names)
    n_known = sum(not name.startswith("new-") for name in names)
    codes = np.repeat(np.arange(K), n_per_category)
    n = len(codes)
    V = (3 * np.eye(K, 6)[codes] + 0.3 * rng.standard_normal((n, 6))).astype(np.float32)
    features = np.hstack([V, rng.standard_normal((n, 2))])
    ids = [f"item-{i}" for i in range(n)] if ids is None else list(ids)
    y = np.array(
        [names[c] if c < n_known and i % 2 else None for i, c in enumerate(codes)],
        dtype=object,
    )
    if labels is not None:
        y = np.asarray(labels, dtype=object)
    codes = np.array(
        [c if label is None else names.index(label) for label, c in zip(y, codes, strict=True)]
    )
    assigned = Assigned(codes, rng.uniform(0.5, 1, n), (codes + 1) % K, np.zeros(n))
    contents = {"paths": paths} if paths is not None else {"texts": texts}
    if paths is None and texts is None:
        contents = {"features": features}
    collection = Collection(ids, y, skipped=list(skipped), **contents)
    is_labelled = collection.is_labelled
    counts = {"n_items": n, "n_labelled": int(is_labelled.sum()), "n_known": n_known}
    return Result(
        collection=collection,
        features=features,
        mixture=None,
        names=tuple(names),
        assigned=assigned,
        outlier_scores=rng.uniform(0, 1, n),
        profiles=make_profiles(assigned, is_labelled, K, rng),
        record=RunRecord(
            kind=collection.kind, **counts, n_novel=K - n_known, **{**RECORD, **(record or {})}
        ),
        prototypes=np.stack([V[codes == c].mean(axis=0) for c in range(K)]),
        V=V,
    )


def make_profiles(assigned, is_labelled, K, rng):
    members = [np.flatnonzero(assigned.labels == c) for c in range(K)]
    return CategoryProfiles(
        sizes=np.array([len(rows) for rows in members]),
        n_labelled=np.array([is_labelled[rows].sum() for rows in members]),
        stability=np.array([0.9, np.nan, *rng.uniform(0, 1, K - 2)]),
        mean_confidence=np.array([assigned.confidence[rows].mean() for rows in members]),
        nearest=(np.arange(K) + 1) % K,
        exemplars=tuple(rows[:6] for rows in members),
        borderline=tuple(rows[6:9] for rows in members),
        evidence=MoveEvidence(
            split_gap=1 + np.arange(float(K)),
            split_log_ratio=-10 - np.arange(float(K)),
            merge_gap=30 + np.arange(float(K)),
            merge_log_ratio=-50 - np.arange(float(K)),
            merge_partner=(np.arange(K) + 1) % K,
        ),
    )


RECORD = {
    "rerun": "newfound discover pictures --seed 3",
    "settings": Request(rehearse=True),
    "seed": 3,
    "encoder": "pixels",
    "n_novel_interval": (1.6, 3.2),
    "rehearsal": RehearsalRecord(4, (0.8, 1.0, 1.0, 1.2)),
    "history": History("pass", (3, 5, 4)),
    "timings": {"encode": 1.5},
    "source": "pictures",
    "warnings": ("Few classes are known.",),
}


class Page(HTMLParser):
    """The page as a browser reads it: elements with attributes, and texts by element."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.source = source
        self.elements = []
        self.open = []
        self.texts = []
        self.folded = []  # how many folds (details) stand around each text
        self.inside = []  # for each element, the classes of those around it
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attributes):
        element = {"tag": tag, **dict(attributes)}
        self.elements.append(element)
        self.inside.append({c for e in self.open for c in (e.get("class") or "").split()})
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
        self.folded.append(sum(element["tag"] == "details" for element in self.open))

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

    def data(self):
        """What the program works with."""
        return json.loads(self.script(0))


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
