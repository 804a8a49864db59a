"""The page: whole, alone, inert whatever people wrote, and light."""

import base64
import hashlib
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from newfound.data.collection import Skipped
from newfound.report import items as items_module
from newfound.report.cards import N_EXEMPLARS
from newfound.report.items import MAX_TEXT, Items
from newfound.report.page import MAX_TWINS, embed_json, write_report

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"' onmouseover='alert(1)",
    "a\u2028b\u2029c",
    "{{ 7 * 7 }}{% raw %}",
    "<!-- <script>",
    "</style><b>",
    "\u202egnp.exe & ünïcode 🦉",
    "x; y",
]


def hostile_ids(n):
    return [f"{HOSTILE[i % len(HOSTILE)]} {i}" for i in range(n)]


def data_of(page):
    return json.loads(page.script(0))


# ---------------------------------------------------------------------------- whole and alone


def test_the_page_is_well_formed_and_says_the_answer(page_of, result_of):
    page = page_of(result_of())
    assert page.open == []
    assert page.source.startswith("<!DOCTYPE html>")
    text = page.text()
    assert "2 new categories were found beside 2 known categories" in text
    assert "There are 2 to 3 new ones, 9 times in 10." in text
    assert "Few classes are known." in text
    assert "newfound discover pictures --seed 3" in text
    assert "over 3 passes: from 3 to 4" in " ".join(text.split())


def test_nothing_is_asked_of_the_network(page_of, result_of, picture_paths):
    page = page_of(result_of(paths=picture_paths(48)))
    for element in page.elements:
        assert element["tag"] not in ("link", "iframe", "img", "object", "embed", "base")
        assert "src" not in element
        assert element.get("href", "#").startswith("#")
        assert not [name for name in element if name.startswith("on")]
    urls = re.findall(r"url\(([^)]{0,30})", page.source)
    assert urls
    assert all(url.startswith('"data:image/') for url in urls)
    assert re.findall(r"(?:https?:)?//[a-z0-9]", page.source.split('<style id="sheets">')[0]) == []
    program = page.script(1)
    for word in ("fetch(", "XMLHttpRequest", "WebSocket", "import(", "innerHTML", "eval("):
        assert word not in program


def test_only_the_pages_own_script_may_run(page_of, result_of):
    page = page_of(result_of())
    policy = page.find("meta", **{"http-equiv": "Content-Security-Policy"})[0]["content"]
    digest = base64.b64encode(hashlib.sha256(page.script(1).encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert [e.get("type") for e in page.find("script")] == ["application/json", None]


def test_links_within_the_page_lead_somewhere(page_of, result_of):
    page = page_of(result_of(skipped=[Skipped("a", "b")]))
    targets = {element["id"] for element in page.elements if "id" in element}
    assert {e["href"][1:] for e in page.find("a")} <= targets
    ids = [element["id"] for element in page.elements if "id" in element]
    assert len(ids) == len(set(ids))


def test_the_script_finds_what_it_looks_for(page_of, result_of):
    page = page_of(result_of())
    ids = {element.get("id") for element in page.elements}
    asked = set(re.findall(r'\$\("#([a-z-]+)', page.script(1)))
    assert {"search", "sort", "viewer", "spot"} <= asked
    assert asked <= ids


# ---------------------------------------------------------------------------- what people wrote


def test_hostile_names_are_text_and_nothing_else(page_of, result_of):
    names = ("</script><script>alert(2)</script>", "<b onclick=x>", "new-001", "new-002")
    ids = hostile_ids(48)
    result = result_of(
        names=names,
        ids=ids,
        skipped=[Skipped("<i>skipped</i>", "<u>reason</u>")],
        run={
            "command": "newfound discover '<script>'",
            "source": "<script>source</script>",
            "sentence": "<script>sentence</script>",
            "trust": "</p><script>",
            "warnings": ["<script>warning</script>"],
            "settings": {"<em>": "</dd><script>"},
        },
    )
    result.categories["why_not_split"] = "<script>why</script>"
    page = page_of(result)
    assert page.open == []
    assert len(page.find("script")) == 2
    assert not [page.find(tag) for tag in ("img", "u", "em") if page.find(tag)]
    assert all(e.keys() <= {"tag", "class", "style"} for e in page.find("i") + page.find("b"))
    text = page.text()
    for wrote in (
        names[0],
        ids[4],
        "<i>skipped</i>",
        "<u>reason</u>",
        "<script>why</script>",
        "<em>",
    ):
        assert wrote in text
    data = data_of(page)
    assert sorted(data["id"]) == sorted(ids)
    assert data["categories"][0]["name"] == names[0]
    titles = {e.get("data-name") for e in page.with_class("card")}
    assert titles == set(names)


def test_hostile_texts_are_shown_as_text(page_of, result_of):
    texts = [f"{HOSTILE[i % len(HOSTILE)]} text {i}" for i in range(48)]
    page = page_of(result_of(texts=texts))
    assert page.open == []
    assert len(page.find("script")) == 2
    assert data_of(page)["text"] == [
        " ".join(texts[int(name.split("-")[1])].split()) for name in data_of(page)["id"]
    ]
    assert "</script><script>alert(1)</script> text 0" in page.text()


def test_texts_that_are_no_unicode_do_not_stop_the_page(result_of, tmp_path, no_tsne):
    texts = [f"caf\udce9 {i}" for i in range(48)]
    write_report(result_of(texts=texts), tmp_path / "report.html")
    assert "caf? 0" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("value", HOSTILE)
def test_embedded_json_holds_no_sign_that_html_reads(value):
    text = embed_json({"a": [value], value: None})
    assert json.loads(text) == {"a": [value], value: None}
    assert not set(text) & set("<>&\u2028\u2029")
    assert text.isascii()


# ---------------------------------------------------------------------------- cards and items


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
    result = result_of()
    result.categories["stability"] = [1.0, 0.5, np.nan, 0.1]
    result.categories["mean_confidence"] = [1.0, 1.0, 0.8, 0.5]
    doubts = {c["id"]: float(c["data-doubt"]) for c in page_of(result).with_class("card")}
    assert doubts == {"c-0": 0.0, "c-1": 0.5, "c-2": 0.2, "c-3": 0.95}


def test_exemplars_stand_on_the_card_in_their_order(page_of, result_of):
    result = result_of(ids=hostile_ids(48))
    page = page_of(result)
    data = data_of(page)
    shown = [data["id"][int(e["data-item"])] for e in page.find("button") if "data-item" in e]
    first = page.with_class("card")[0]["data-code"]
    expected = [
        result.collection.ids[i] for i in np.flatnonzero(result.table["category"] == "new-001")
    ]
    assert first == "2"
    assert shown[:9] == expected[:9]  # six exemplars and three on the border; ids hold "; "


def test_without_exemplars_the_surest_items_stand_in(result_of):
    result = result_of()
    result.categories["exemplars"] = ""
    result.table.loc[30, "confidence"] = 1.0
    from newfound.report.cards import featured_rows

    rows = featured_rows(Items(result))
    assert rows[2 * (N_EXEMPLARS["features"] + 3)] == 30
    assert len(rows) == 4 * (N_EXEMPLARS["features"] + 3)


def test_the_data_tells_of_every_item(page_of, result_of):
    result = result_of()
    data = data_of(page_of(result))
    table = result.table.set_index("id")
    assert sorted(data["id"]) == sorted(table.index)
    for i, name in enumerate(data["id"]):
        row = table.loc[name]
        assert data["categories"][data["category"][i]]["name"] == row["category"]
        assert data["categories"][data["runner"][i]]["name"] == row["runner_up"]
        assert data["confidence"][i] == round(100 * row["confidence"])
        assert data["outlier"][i] == round(100 * row["outlier_score"])
        assert data["labelled"][i] == isinstance(row["given_label"], str)
    assert data["category"] == sorted(data["category"])
    assert len(data["x"]) == len(data["y"]) == 48
    assert data["small"] is None


def test_features_show_ids_and_long_texts_are_cut(page_of, result_of):
    page = page_of(result_of())
    assert len(page.with_class("chip")) > 20
    assert not page.with_class("tile")
    texts = ["word " * 400 for _ in range(48)]
    page = page_of(result_of(texts=texts))
    assert page.with_class("quote")
    assert all(len(text) <= MAX_TEXT + 2 for text in data_of(page)["text"])


def test_missing_values_are_no_obstacle(page_of, result_of):
    result = result_of(run={"rehearsal": None, "n_novel_interval": None, "history": None})
    result.table["runner_up"] = None
    result.table["outlier_score"] = np.nan
    result.table.loc[0, "confidence"] = np.nan
    for column in ("stability", "mean_confidence", "nearest", "why_not_split", "borderline"):
        result.categories[column] = None
    result.features = np.empty((48, 0))
    result.V = np.empty((48, 0), dtype=np.float32)
    page = page_of(result)
    assert page.open == []
    assert data_of(page)["runner"] == [-1] * 48
    assert not page.find("canvas")


def test_one_item_and_no_label(page_of, result_of):
    result = result_of(n_per_category=1, names=("new-001", "new-002"))
    page = page_of(result)
    assert "No item has a label." in page.text()
    assert len(page.with_class("card")) == 2


# ---------------------------------------------------------------------------- pictures


def test_every_picture_has_a_thumbnail(page_of, result_of, picture_paths):
    told = []
    page = page_of(
        result_of(paths=picture_paths(48)), progress=lambda done, total: told.append((done, total))
    )
    data = data_of(page)
    assert (data["small"]["size"], data["small"]["rows"]) == (64, [2])
    sheets = re.findall(r'\.([sl]\d+)\{background-image:url\("data:', page.source)
    assert sheets == ["s0", "l0"]
    classes = {c for tile in page.with_class("tile") for c in tile["class"].split()}
    assert classes <= {"tile", *sheets}
    assert len(data["largeTile"]) == 36  # nine on each card
    assert sorted(data["largeTile"].values()) == list(range(36))
    assert told[0] == (1, 84)
    assert told[-1] == (84, 84)
    assert [e["href"] for e in page.find("a") if e.get("title")] == ["#c-2", "#c-3"]  # the mosaic


def test_a_large_collection_is_sampled(page_of, result_of, monkeypatch):
    monkeypatch.setitem(items_module.MAX_ITEMS, "features", 40)
    page = page_of(result_of())
    assert len(data_of(page)["id"]) == 40
    assert "40 of 48 are drawn" in page.text()


def test_many_pictures_stay_light(result_of, picture_paths, tmp_path, no_tsne):
    pillow = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    paths = picture_paths(400)
    for path in paths:  # noise: the worst there is for a thumbnail
        pillow.fromarray(rng.integers(0, 256, (50, 50, 3), dtype=np.uint8)).save(path)
    write_report(result_of(n_per_category=100, paths=paths), tmp_path / "report.html")
    n_bytes = (tmp_path / "report.html").stat().st_size
    assert n_bytes < 400 * 10_000 + 400_000
    assert list(tmp_path.glob(".*")) == []


def test_sheets_share_twenty_megabytes():
    assert items_module._SMALL_BYTES + items_module._LARGE_BYTES < 17_000_000


# ---------------------------------------------------------------------------- what to look at


def test_wrong_labels_are_listed_with_where_they_sit(page_of, result_of):
    result = result_of()
    labels = result.collection.y.copy()
    labels[1] = "bee"  # an ant
    page = page_of(result_of(labels=labels))
    text = " ".join(page.text().split())
    assert "1 of 12 labelled items sits among items of another category" in text
    assert "item-1 labelled bee , sits in ant" in text
    assert "None of the 12 given labels stands out" in " ".join(page_of(result).text().split())


def test_twins_are_listed(page_of, result_of, picture_paths):
    paths = picture_paths(48)
    paths[0].write_bytes(paths[1].read_bytes())  # the second has a label
    result = result_of(paths=paths)
    text = " ".join(page_of(result).text().split())
    assert "1 pair of items that are equal or nearly so" in text
    assert "item-1 item-0 the same file" in text
    assert "both ant" in text


def test_a_cosine_below_one_never_reads_as_one(result_of):
    from newfound.report.audit import Twins
    from newfound.report.page import _view_twins

    items = Items(result_of())
    items.choose([0, 1])
    assert _view_twins(items, Twins(1, 0, 0.99996, False, False))["cosine"] == "0.999"
    assert _view_twins(items, Twins(1, 0, 1.0, False, False))["cosine"] == "1.000"


def test_long_lists_are_cut_and_say_so(page_of, result_of):
    result = result_of(n_per_category=200)
    X = np.random.default_rng(0).standard_normal((800, 16))
    X[0:100:2] = X[1:100:2]  # fifty copies of labelled items
    result.features = X
    page = page_of(result)
    text = " ".join(page.text().split())
    assert "50 pairs" in text
    assert f"The first {MAX_TWINS}:" in text
    assert text.count("cosine 1.000") == MAX_TWINS


def test_skipped_files_are_listed_by_reason(page_of, result_of):
    skipped = [Skipped(f"{i}.png", "the file is empty") for i in range(3)]
    page = page_of(result_of(skipped=[*skipped, Skipped("x.gif", "damaged")]))
    text = " ".join(page.text().split())
    assert "4 files could not be used: 3 the file is empty 1 damaged" in text
    assert "x.gif" in text
    assert not page_of(result_of()).find(id="skipped")


def test_the_file_is_the_page(result_of, tmp_path, monkeypatch):
    from newfound.report import page

    monkeypatch.setattr(page, "render_report", lambda result, progress: "<p>é</p>")
    path = tmp_path / "sub" / "report.html"
    write_report(SimpleNamespace(), path)
    assert path.read_bytes() == "<p>é</p>".encode()
