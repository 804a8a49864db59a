"""Which categories to look at: judged by the known ones."""

from dataclasses import replace

import numpy as np
import pytest

from newfound.report.doubt import judge_categories

KNOWN = tuple(f"class {i}" for i in range(6))


def with_profiles(result, **changes):
    return replace(result, profiles=result.profiles._replace(**changes))


@pytest.fixture
def found(result_of):
    """Six known categories, four new ones, all of them clear; noise in all directions."""
    result = result_of(n_per_category=24, names=(*KNOWN, *(f"new-00{i}" for i in range(1, 5))))
    rng = np.random.default_rng(1)
    V = 3 * np.eye(10, 12)[result.assigned.labels] + 0.3 * rng.standard_normal((240, 12))
    certain = with_profiles(result, stability=np.ones(10), mean_confidence=np.ones(10))
    return replace(certain, V=V.astype(np.float32))


def halved(result, code, other):
    """The result with `code` and `other` as two arbitrary halves of one category."""
    V = result.V.copy()
    labels = result.assigned.labels
    V[labels == other] += 3 * (np.eye(10, 12)[code] - np.eye(10, 12)[other]).astype(np.float32)
    return replace(result, V=V)


def test_well_separated_categories_are_clear(found):
    judged = judge_categories(found)
    assert set(judged.words) == {"clear"}
    assert set(judged.weak) == {()}
    assert judged.pairs == ()


def test_a_sign_is_weak_if_nearly_all_known_categories_are_better(found):
    stability = np.array([0.7, 0.8, 0.8, 0.9, 0.9, 1, 0.76, 0.6, 1, np.nan])
    confidence = np.array([0.8, 0.9, 0.9, 0.9, 1, 1, 1, 0.5, 0.84, 0.99])
    judged = judge_categories(with_profiles(found, stability=stability, mean_confidence=confidence))
    assert judged.words[6:] == ("clear", "mixed", "doubtful", "clear")
    assert judged.weak[7] == ("stability", "confidence")
    assert judged.weak[8] == ("confidence",)


def test_what_is_good_is_not_weak_because_the_known_are_perfect(found):
    judged = judge_categories(with_profiles(found, stability=np.repeat([1, 0.93], [6, 4])))
    assert set(judged.words) == {"clear"}


def test_neighbours_in_other_categories_are_a_weak_sign(found):
    labels = found.assigned.labels.copy()
    mixed = np.flatnonzero(labels >= 6)[::4]  # every fourth item of the new ones, as one category
    labels[mixed] = 6
    judged = judge_categories(replace(found, assigned=found.assigned._replace(labels=labels)))
    assert "neighbours" in judged.weak[6]
    assert judged.words[:6] == ("clear",) * 6


def test_halves_that_differ_more_than_categories_are_a_weak_sign(found):
    evidence = found.profiles.evidence
    gaps = evidence.split_gap.copy()
    gaps[9] = evidence.merge_gap.min() + 1
    changed = with_profiles(found, evidence=evidence._replace(split_gap=gaps))
    assert judge_categories(changed).weak[9] == ("halves",)


def test_two_halves_of_one_category_are_suggested_for_a_merge(found):
    (pair,) = judge_categories(halved(found, 7, 9)).pairs
    assert (pair.first, pair.second) == (7, 9)
    assert pair.mixing == pytest.approx(1, abs=0.3)  # arbitrary halves mix as by chance


def test_few_known_categories_are_no_measure(result_of):
    result = with_profiles(
        result_of(n_per_category=20),
        stability=np.array([0.5, 1, 0.8, 0.7]),
        mean_confidence=np.ones(4),
    )
    assert judge_categories(result).words == ("doubtful", "clear", "clear", "doubtful")
    V = result.V.copy()
    V[60:] = V[40:60] + 0.1
    (pair,) = judge_categories(replace(result, V=V)).pairs
    assert (pair.first, pair.second) == (2, 3)


@pytest.mark.parametrize("n_per_category", [1, 2])
def test_tiny_categories_and_lost_models_are_no_obstacle(result_of, n_per_category):
    result = result_of(n_per_category=n_per_category)
    assert len(judge_categories(result).words) == 4
    nothing = np.empty((4 * n_per_category, 0), dtype=np.float32)
    judged = judge_categories(with_profiles(replace(result, V=nothing), evidence=None))
    assert judged.pairs == ()


def test_the_pair_stands_side_by_side_on_the_page(found, page_of):
    page = page_of(halved(found, 7, 9))
    assert "Perhaps one category, not two" in page.text()
    linked = [
        element["href"]
        for element, inside in zip(page.elements, page.inside, strict=True)
        if element["tag"] == "a" and "pairs" in inside
    ]
    assert linked == ["#c-7", "#c-9"]
