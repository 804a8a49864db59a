"""What `trust_report` measures, and the word that follows from it."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from samples import Blobs

from newfound import trust_report
from newfound.errors import DiscoveryWarning
from newfound.mixture.trust.drawing import best_jaccards
from newfound.mixture.trust.report import Effort
from newfound.mixture.trust.verdict import (
    CategoryStability,
    DesignCheck,
    Measures,
    TrustReport,
    judge,
)

SMALL = Effort(n_draws=3, n_fits=1)
GOOD = DesignCheck([2, 2], [2.0, 2.0], inside=1.0, accuracy=0.9)
MEASURES = Measures(6, 2, (1.0, 3.0), GOOD, GOOD, categories=[CategoryStability(6, 0.9, 0.8)])


@pytest.fixture(scope="module")
def report():
    return trust_report(Blobs.X, list(Blobs.y), effort=SMALL)


def test_categories_far_apart_are_found_again(report):
    measures = report.measures
    assert measures.hidden.accuracy > 0.9
    assert measures.labelled.accuracy > 0.9
    assert measures.labelled.n_hidden == [3, 3, 3]
    assert {check.name for check in measures.classes} <= {f"class {i}" for i in range(6)}
    assert all(check.n_swallowed == 0 for check in measures.classes)
    assert [check.code for check in measures.categories] == [6, 7, 8]
    assert min(check.jaccard for check in measures.categories) > 0.8
    assert 0 <= measures.confidence.error < 0.2


def test_neither_row_order_nor_names_matter(report):
    order = np.random.default_rng(1).permutation(270)
    y = [Blobs.y[i] and f"z{9 - int(Blobs.y[i][-1])}" for i in order]
    other = trust_report(Blobs.X[order], y, effort=SMALL)
    assert other.word == report.word
    assert other.measures.hidden == report.measures.hidden
    assert other.measures.labelled == report.measures.labelled


def test_noise_is_not_called_solid():
    X = np.random.default_rng(0).normal(size=(200, 8))
    y = [i % 5 if i < 100 else -1 for i in range(200)]
    report = trust_report(X, y, effort=SMALL)
    assert report.word == "don't"
    assert report.measures.hidden.accuracy < 0.5


def test_a_class_that_looks_like_another_is_swallowed_by_it():
    X, y = Blobs.X.copy(), list(Blobs.y)
    rng = np.random.default_rng(0)
    X[Blobs.truth == 1] = X[Blobs.truth == 0] + 0.05 * rng.normal(size=(30, 12))
    checks = {check.name: check for check in trust_report(X, y, effort=SMALL).measures.classes}
    swallowed = [checks[name] for name in ("class 0", "class 1") if name in checks]
    assert any(c.n_swallowed and c.swallowed_by in ("class 0", "class 1") for c in swallowed)


def test_too_few_classes_are_said_and_never_solid():
    warnings.simplefilter("ignore", DiscoveryWarning)
    y = [label if label in ("class 0", "class 1", "class 2") else None for label in Blobs.y]
    report = trust_report(Blobs.X, y, effort=SMALL)
    assert report.word != "solid"
    assert "Only 3 classes have labels" in str(report)


def test_it_survives_json(report):
    assert TrustReport.from_json(json.loads(json.dumps(report.as_json()))) == report


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, "solid"),
        ({"labelled": replace(GOOD, inside=0.8)}, "shaky"),
        ({"hidden": replace(GOOD, inside=0.4)}, "don't"),
        ({"hidden": replace(GOOD, n_found=[3.0, 3.0])}, "shaky"),
        ({"labelled": replace(GOOD, n_found=[0.0, 1.0])}, "solid"),
        ({"hidden": replace(GOOD, n_found=[0.0, 1.0])}, "don't"),
        ({"interval": (3.0, 13.0)}, "shaky"),
        ({"interval": (3.0, 30.0)}, "don't"),
        ({"hidden": replace(GOOD, accuracy=0.1)}, "don't"),
        ({"categories": [CategoryStability(6, 0.9, 0.3)]}, "don't"),
        ({"interval": None}, "shaky"),
        ({"hidden": None, "labelled": None}, "shaky"),
    ],
)
def test_the_worst_finding_decides(changes, word):
    report = judge(replace(MEASURES, **changes))
    assert report.word == word
    assert len(report.reasons) >= 2


def test_jaccards_by_hand():
    reference, other = np.array([0, 0, 0, 1, 1, 2]), np.array([5, 5, 1, 1, 1, 0])
    assert best_jaccards(reference, other, [0, 1, 2]) == pytest.approx([2 / 3, 2 / 3, 1])
