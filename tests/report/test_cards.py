"""The cards: one for each category, with its items and the evidence for it."""

from dataclasses import replace

import numpy as np

from newfound.report.cards import N_EXEMPLARS, featured_rows
from newfound.report.items import Items


def with_profiles(result, **changes):
    return replace(result, profiles=result.profiles._replace(**changes))


def test_every_category_has_a_card_with_its_evidence(page_of, result_of):
    result = result_of()
    page = page_of(result)
    cards = {card["id"]: card for card in page.with_class("card")}
    assert set(cards) == {"c-0", "c-1", "c-2", "c-3"}
    for code, record in enumerate(result.categories.to_dict("records")):
        card = cards[f"c-{code}"]
        assert card["data-name"] == record["category"]
        assert card["data-kind"] == record["kind"]
        assert card["data-size"] == str(record["size"])
        assert record["why_not_split"] in page.text()
        assert record["why_not_merged"] in page.text()
    assert [c["data-kind"] for c in page.with_class("card")] == ["novel"] * 2 + ["known"] * 2


def test_doubt_grows_as_stability_and_confidence_fall(page_of, result_of):
    stability, confidence = [1.0, 0.5, np.nan, 0.1], [1.0, 1.0, 0.8, 0.5]
    result = with_profiles(
        result_of(), stability=np.array(stability), mean_confidence=np.array(confidence)
    )
    doubts = {c["id"]: float(c["data-doubt"]) for c in page_of(result).with_class("card")}
    # c-1 has one weak sign, its stability; c-3 has two.
    assert doubts == {"c-0": 0.0, "c-1": 1.5, "c-2": 0.2, "c-3": 2.95}


def test_exemplars_stand_on_the_card_in_their_order(page_of, result_of):
    result = result_of(ids=[f"x; y {i}; z" for i in range(48)])
    page = page_of(result)
    data = page.data()
    shown = [
        data["id"][int(e["data-item"])]
        for e, inside in zip(page.elements, page.inside, strict=True)
        if "data-item" in e and "card" in inside
    ]
    first = page.with_class("card")[0]["data-code"]
    expected = [
        result.collection.ids[i] for i in np.flatnonzero(result.table["category"] == "new-001")
    ]
    assert first == "2"
    assert shown[:9] == expected[:9]  # six exemplars and three on the border; ids hold "; "


def test_without_exemplars_the_surest_items_stand_in(result_of):
    result = with_profiles(result_of(), exemplars=(np.array([], dtype=int),) * 4)
    result.assigned.confidence[30] = 1.0
    rows = featured_rows(Items(result))
    assert rows[2 * (N_EXEMPLARS["features"] + 3)] == 30
    assert len(rows) == 4 * (N_EXEMPLARS["features"] + 3)


def test_numbers_stand_behind_a_fold_within_the_reasons(page_of, result_of):
    page = page_of(result_of())
    folds = {
        depth for (_, text), depth in zip(page.texts, page.folded, strict=True) if "log H =" in text
    }
    assert folds == {2}
    text = " ".join(page.text().split())
    assert "Its two most different halves are closer to each other than any two categories" in text


def test_a_plain_word_stands_on_each_card(page_of, result_of):
    result = with_profiles(
        result_of(), stability=np.array([1, 1, 1, 0.1]), mean_confidence=np.array([1, 1, 1, 0.3])
    )
    page = page_of(result)
    words = [
        element["class"]
        for element, inside in zip(page.elements, page.inside, strict=True)
        if "card" in inside and "word" in (element.get("class") or "").split()
    ]
    assert words == ["word clear", "word mixed", "word clear", "word clear"]


def test_doubtful_categories_come_first_in_a_section_of_their_own(page_of, result_of):
    result = with_profiles(
        result_of(names=("ant", "bee", "new-001", "new-002", "new-003")),
        stability=np.array([0.1, 1, 0.6, 1, 0.2]),
        mean_confidence=np.array([0.9, 1, 0.95, 1, 0.3]),
    )
    page = page_of(result)
    (section,) = page.find("section", id="look")
    assert page.elements.index(section) < page.elements.index(page.with_class("card")[0])
    linked = [
        element["href"]
        for element, inside in zip(page.elements, page.inside, strict=True)
        if element["tag"] == "a" and "look-head" in inside
    ]
    assert linked == ["#c-4", "#c-2"]  # mixed, doubtful; a known one with one sign is not listed
    text = " ".join(page.text().split())
    assert "1 of 3 new categories are clear." in text
    assert "Two or more: mixed , which means" in text  # the rule, in words


def test_nothing_to_look_at_no_section(page_of, result_of):
    result = with_profiles(result_of(), stability=np.ones(4), mean_confidence=np.ones(4))
    page = page_of(result)
    assert not page.find("section", id="look")
    assert not page.find("a", href="#look")
