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
    assert doubts == {"c-0": 0.0, "c-1": 0.5, "c-2": 0.2, "c-3": 0.95}


def test_exemplars_stand_on_the_card_in_their_order(page_of, result_of):
    result = result_of(ids=[f"x; y {i}; z" for i in range(48)])
    page = page_of(result)
    data = page.data()
    shown = [data["id"][int(e["data-item"])] for e in page.find("button") if "data-item" in e]
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
