"""The page: whole, alone, inert whatever people wrote, and light."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from importlib import resources
from types import SimpleNamespace

import numpy as np
import pytest

from newfound import SplitMergeMixture
from newfound.data.collection import Collection, Skipped
from newfound.report.audit import DuplicatePair
from newfound.report.items import Items
from newfound.report.page import MAX_DUPLICATES, _view_pair, embed_json, write_report
from newfound.result.build import result_from
from newfound.result.record import History, NovelSizeRecord, Request, RunFacts
from newfound.result.sentences import trust_sentence
from newfound.result.store import read_result, write_result

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


def with_profiles(result, **changes):
    return replace(result, profiles=result.profiles._replace(**changes))


def test_words_and_nearest_known_categories_are_shown_as_text(page_of, result_of):
    texts = ["<b>refund</b> please" if i >= 36 else "other words" for i in range(48)]
    page = page_of(result_of(names=("<i>ant</i>", "bee", "new-001", "new-002"), texts=texts))
    text = " ".join(page.text().split())
    assert "Words: please , refund" in text.replace(" ,", " ,") or "please, refund" in text
    assert "Nearest known: " in text
    assert "<i>ant</i>" not in page.source
    assert "<b>refund" not in page.source


# ---------------------------------------------------------------------------- whole and alone


def test_the_page_is_well_formed_and_says_the_answer(page_of, result_of):
    page = page_of(result_of())
    assert page.open == []
    assert page.source.startswith("<!DOCTYPE html>")
    text = page.text()
    assert "2 new categories were found in 48 items, in addition to 2 known categories." in text
    assert "90 % interval for the number of new categories: 2 to 3." in text
    assert "Few classes are known." in text
    assert "newfound discover pictures --seed 3" in text
    assert "over 3 passes of splits and merges: from 3 to 4" in " ".join(text.split())


def test_above_the_answer_stands_the_name_of_the_source_not_its_path(page_of, result_of):
    result = result_of()
    record = replace(result.record, source="/home/somebody/projects/birds")
    source = page_of(replace(result, record=record)).source
    assert '<p class="source"><bdi>birds</bdi></p>' in source


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


def style():
    """The style sheet without its comments."""
    text = resources.files("newfound.report").joinpath("style.css").read_text(encoding="utf-8")
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def test_links_land_where_they_lead():
    """Smooth scrolling over cards of guessed height ended up to 4,300 pixels off its target."""
    assert "smooth" not in style()
    assert "content-visibility" not in style()
    assert "contain-intrinsic-size" not in style()


def test_a_phone_cuts_neither_navigation_nor_names():
    rules = dict(re.findall(r"^([^{}\n]+?) \{([^}]*)\}", style(), flags=re.MULTILINE))
    assert "flex-wrap: wrap" in rules["nav"]
    assert "overflow" not in rules["nav"]
    assert "ellipsis" not in rules[".mosaic .name"]
    assert ".mosaic .name { display: none" not in style()


def test_what_is_said_about_two_texts_stands_below_them():
    """Beside them there was room for 9 letters, and names were broken: card_accepta-nce."""
    rules = dict(re.findall(r"^ *([^{}\n]+?) \{([^}]*)\}", style(), flags=re.MULTILINE))
    assert "grid-template-columns: 1fr 1fr" in rules[".duplicates li:has(.quote)"]
    assert "grid-column: 1 / -1" in rules[".findings li:has(.quote) > div"]


def test_thumbnails_wait_until_they_come_near(page_of, result_of, picture_paths):
    page = page_of(result_of(paths=picture_paths(48)))
    tiles = [
        inside
        for element, inside in zip(page.elements, page.inside, strict=True)
        if "tile" in (element.get("class") or "").split()
    ]
    assert len(tiles) > 30
    at_once = [inside for inside in tiles if not inside & {"card", "lazy"}]
    assert all("mosaic" in inside for inside in at_once)
    assert len(at_once) == 2  # the overview has one of each new category
    assert ".scripted :is(.card, .lazy):not(.near) .tile { background-image: none; }" in style()
    assert "IntersectionObserver" in page.script(1)
    assert "beforeprint" in page.script(1)  # paper has no window to come near to


def test_the_map_fills_its_frame_and_its_names_keep_apart(page_of, result_of):
    program = page_of(result_of()).script(1)
    assert "(width - 2 * MARGIN) / span(X)" in program
    assert "(height - 2 * MARGIN) / span(Y)" in program
    assert "taken.some((other) => overlap(box, other))" in program


@pytest.mark.parametrize("kind", ["pictures", "texts", "features"])
def test_one_word_for_new_and_one_for_what_is_shown(page_of, result_of, picture_paths, kind):
    contents = {
        "pictures": {"paths": picture_paths(48)},
        "texts": {"texts": [f"words {i}" for i in range(48)]},
        "features": {},
    }[kind]
    record = {"rerun": None, "source": "somewhere"}
    page = page_of(result_of(ids=[f"x{i}" for i in range(48)], record=record, **contents))
    names = ("title", "aria-label", "placeholder")
    said = page.text() + " ".join(e[name] for e in page.elements for name in names if name in e)
    assert not re.search(r"\bnovel\b", said)
    word = {"pictures": "picture", "texts": "text", "features": "item"}[kind]
    assert set(re.findall(r"\b(picture|text|item)s?\b", said)) == {word}


def test_texts_are_shown_wherever_items_are(page_of, result_of):
    """In the overview, in the section to look at, on the cards and in the lists."""
    result = result_of(texts=[f"words {i}" for i in range(48)])
    page = page_of(result)
    shown = [text for _, text in page.texts if text.startswith("words ")]
    n_in_overview = 2  # one of each new category
    assert page.with_class("quotes")
    assert len(shown) == len(page.with_class("quote")) + n_in_overview
    assert not page.with_class("chip")


# ---------------------------------------------------------------------------- what people wrote


def test_hostile_names_are_text_and_nothing_else(page_of, result_of):
    names = ("</script><script>alert(2)</script>", "<b onclick=x>", "new-001", "new-002")
    ids = hostile_ids(48)
    result = result_of(
        names=names,
        ids=ids,
        skipped=[Skipped("<i>skipped</i>", "<u>reason</u>")],
        record={
            "rerun": "newfound discover '<script>'",
            "source": "<script>source</script>",
            "warnings": ("<script>warning</script>",),
            "encoder": "</p><script>",
            "settings": Request(training={"<em>": "</dd><script>"}),
            "versions": {"<u>": "<em>"},
        },
    )
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
        f"It differs from {names[1]}, ",
        "<em>",
        "newfound discover '<script>'",
    ):
        assert wrote in text
    data = page.data()
    assert sorted(data["id"]) == sorted(ids)
    assert data["categories"][0]["name"] == names[0]
    titles = {e.get("data-name") for e in page.with_class("card")}
    assert titles == set(names)


def test_hostile_texts_are_shown_as_text(page_of, result_of):
    texts = [f"{HOSTILE[i % len(HOSTILE)]} text {i}" for i in range(48)]
    page = page_of(result_of(texts=texts))
    assert page.open == []
    assert len(page.find("script")) == 2
    assert page.data()["text"] == [
        " ".join(texts[int(name.split("-")[1])].split()) for name in page.data()["id"]
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


def test_missing_values_are_no_obstacle(page_of, result_of):
    result = with_profiles(
        result_of(record={"rehearsal": None, "n_novel_interval": None, "history": History()}),
        stability=np.full(4, np.nan),
        mean_confidence=np.full(4, np.nan),
        nearest=np.full(4, -1),
        borderline=(np.array([], dtype=int),) * 4,
        evidence=None,
    )
    assigned = result.assigned._replace(runner_up=np.full(48, -1))
    assigned.confidence[0] = np.nan
    result = replace(
        result,
        assigned=assigned,
        outlier_scores=np.full(48, np.nan),
        features=np.empty((48, 0)),
        V=np.empty((48, 0), dtype=np.float32),
    )
    page = page_of(result)
    assert page.open == []
    assert page.data()["runner"] == [-1] * 48
    assert not page.find("canvas")
    assert "Why it is one category" not in page.text()


def test_one_item_and_no_label(page_of, result_of):
    result = result_of(n_per_category=1, names=("new-001", "new-002"))
    page = page_of(result)
    assert "No item has a label." in page.text()
    assert len(page.with_class("card")) == 2


# ---------------------------------------------------------------------------- what to look at


def test_wrong_labels_are_listed_with_where_they_sit(page_of, result_of):
    result = result_of()
    labels = result.collection.y.copy()
    labels[1] = "bee"  # an ant
    page = page_of(result_of(labels=labels))
    text = " ".join(page.text().split())
    assert "1 of 12 labelled items lies among items of another category" in text
    assert "item-1 labelled bee , lies in ant" in text
    assert "None of the 12 given labels looks wrong" in " ".join(page_of(result).text().split())


def test_duplicates_are_listed(page_of, result_of, picture_paths):
    paths = picture_paths(48)
    paths[0].write_bytes(paths[1].read_bytes())  # the second has a label
    result = result_of(paths=paths)
    text = " ".join(page_of(result).text().split())
    assert "1 pair of equal or nearly equal pictures" in text
    assert "item-1 item-0 the same file" in text
    assert "both in ant" in text


def test_a_cosine_below_one_never_reads_as_one(result_of):
    items = Items(result_of())
    items.choose([0, 1])
    assert _view_pair(items, DuplicatePair(1, 0, 0.99996, False, False))["cosine"] == "0.999"
    assert _view_pair(items, DuplicatePair(1, 0, 1.0, False, False))["cosine"] == "1.000"


def test_long_lists_are_cut_and_say_so(page_of, result_of):
    result = result_of(n_per_category=200)
    X = np.random.default_rng(0).standard_normal((800, 16))
    X[0:100:2] = X[1:100:2]  # fifty copies of labelled items
    page = page_of(replace(result, features=X))
    text = " ".join(page.text().split())
    assert "50 pairs" in text
    assert f"The first {MAX_DUPLICATES}:" in text
    assert text.count("similarity 1.000") == MAX_DUPLICATES


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


# ---------------------------------------------------------------------------- run it again


@pytest.fixture
def found(blobs):
    """What a workflow hands over: a collection, features, and a fitted mixture."""
    names = np.array(["ant", "bee", "cat", None], dtype=object)
    collection = Collection([f"{i}.png" for i in range(200)], names[blobs.y], features=blobs.X)
    mixture = SplitMergeMixture(n_components=5, n_init=1, random_state=0)
    return collection, blobs.X, mixture.fit(blobs.X, collection.y)


def test_the_whole_command_is_shown(page_of, found):
    """From the facts of a workflow to the page, with nothing in between made up here."""
    command = "newfound discover 'my items.npz' --out run --n-categories 5 --seed 3"
    facts = RunFacts(rerun=command, seed=3, settings=Request(n_categories=5))
    page = page_of(result_from(*found, facts))
    assert [text for tag, text in page.texts if tag == "code"] == [command]
    assert page.find(id="copy")
    assert "5 categories in 200 items, as requested" in page.text()


def test_a_run_from_python_says_that_no_command_repeats_it(page_of, found):
    page = page_of(result_from(*found, RunFacts()))
    assert "This run was started from Python, so no command repeats it." in page.text()
    assert not page.find("code")
    assert not page.find(id="copy")


def test_the_command_survives_a_run_folder(page_of, found, tmp_path):
    write_result(result_from(*found, RunFacts(rerun="newfound discover x")), tmp_path)
    assert "newfound discover x" in page_of(read_result(tmp_path)).text()


def test_unsure_items_have_a_mark(page_of, result_of, picture_paths):
    settings = Request(min_confidence=0.75)
    for contents in ({}, {"texts": ["words"] * 48}, {"paths": picture_paths(48)}):
        result = result_of(record={"settings": settings}, **contents)
        page = page_of(result)
        marks = result.is_unsure
        assert 0 < marks.sum() < len(marks)
        assert result.unsure in page.text()
        assert bool(page.find(id="map")) == ("Rings are unsure" in page.text())
        data = page.data()
        by_id = dict(zip(result.collection.ids, marks.astype(int).tolist(), strict=True))
        assert data["unsure"] == [by_id[name] for name in data["id"]]
        shown = [element for element in page.elements if "data-item" in element]
        assert shown
        for element in shown:
            is_marked = "unsure" in element["class"].split()
            assert is_marked == data["unsure"][int(element["data-item"])]
            if contents.get("paths"):
                assert element["aria-label"].endswith(", unsure") == is_marked
        n_on_cards = [int(marks[result.assigned.labels == code].sum()) for code in range(4)]
        for n in n_on_cards:
            assert f"{n}  unsure" in page.text()


def test_without_a_least_confidence_nothing_is_marked(page_of, result_of):
    page = page_of(result_of())
    assert "A question mark marks them" not in page.text()
    assert "Rings are unsure" not in page.text()
    assert "is_unsure" not in page.text()
    assert not [element for element in page.with_class("unsure") if "data-item" in element]
    assert not any(page.data()["unsure"])


@pytest.mark.parametrize(
    ("contents", "size", "sentence"),
    [
        (
            {},
            NovelSizeRecord(14.2, (10.1, 21.3), 40.0, "data"),
            "New categories seem about a third as large as known ones (14 items on average, 90 % "
            "interval: 10 to 21), judged by how many items lie close to each other.",
        ),
        (
            {"texts": [f"text {i}" for i in range(48)]},
            NovelSizeRecord(40.0, (9.0, 1200.0), 40.0, "prior"),
            "The texts do not tell how large new categories are, so the interval allows for 9 to "
            "1,200 texts in each, on average (known categories: 40). If you know that they are "
            "about as large as known ones, --sizes alike narrows it.",
        ),
        (
            {},
            NovelSizeRecord(40.0, (1.0, 48.0), None, "prior"),
            "The items do not tell how large new categories are, so the interval allows for 1 to "
            "48 items in each, on average. If you know that they are about as large as known ones, "
            "--sizes alike narrows it.",
        ),
        (
            {},
            NovelSizeRecord(20.0, (19.0, 21.0), 40.0, "given"),
            "The number assumes that new categories are about half as large as known ones; if that "
            "is wrong, so is the number.",
        ),
    ],
)
def test_the_page_says_how_large_new_categories_are(page_of, result_of, contents, size, sentence):
    page = page_of(result_of(record={"novel_size": size}, **contents))
    assert f"categories: 2 to 3. {sentence} In a rehearsal" in page.text()


def test_without_new_categories_nothing_is_said_about_their_size(result_of):
    record = result_of(
        record={"novel_size": NovelSizeRecord(9.0, (5.0, 20.0), 40.0, "data")}
    ).record
    assert "New categories seem" in trust_sentence(record)
    assert "New categories seem" not in trust_sentence(replace(record, n_novel=0))
