"""What an update changed: the most important change first, with pictures, and no script."""

import re
from dataclasses import replace

import pytest

from newfound.report.changes import headline, write_changes
from newfound.result.lineage import Changes

pytest.importorskip("jinja2")

CHANGES = Changes(
    n_before=3,
    n_after=4,
    added=["d.png"],
    removed=[],
    moved=[("<script>alert(1)</script>.png", "cat", "new-001")],
    new={"new-002": 1},
    gone={},
    resized={"cat": (2, 1)},
)


def page_of(changes, folder, result=None):
    write_changes(changes, folder / "changes.html", result)
    return (folder / "changes.html").read_text(encoding="utf-8")


def seen(page):
    """What a person reads, without the style."""
    text = re.sub(r"<style.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL)
    return " ".join(text.split())


def test_the_page_tells_what_changed_and_runs_no_script(tmp_path):
    page = page_of(CHANGES, tmp_path)
    assert "1 new category was found (new-002)." in seen(page)
    assert "4 items now" in re.sub(r"(items now) (\d)", r"\2 \1", seen(page))
    assert "&lt;script&gt;alert(1)&lt;/script&gt;.png" in page
    assert "<script" not in page
    assert "http://" not in page
    assert "https://" not in page
    assert "--paper" in page  # the look of the report


def test_a_long_list_is_cut_and_says_so(tmp_path):
    many = Changes(2000, 2000, [], [], [(f"{i}.png", "a", "b") for i in range(1200)], {}, {}, {})
    page = page_of(many, tmp_path)
    assert page.count('class="chip"') == 1000
    assert "200 more items moved" in page


@pytest.fixture
def changed():
    """Every kind of change; items 24 to 35 are in new-001."""
    return Changes(
        n_before=47,
        n_after=48,
        added=["item-47"],
        removed=[],
        moved=[("item-0", "bee", "ant"), ("item-1", "old", "ant"), ("item-24", "ant", "new-001")],
        new={"new-001": 12},
        gone={"old": "ant"},
        resized={"bee": (12, 13), "ant": (20, 12)},
    )


def test_the_most_important_change_comes_first(changed, tmp_path):
    page = seen(page_of(changed, tmp_path))
    places = [
        page.index(words)
        for words in (
            "1 new category was found (new-001) and 1 category is gone (old).",
            "A new category new-001",
            "Gone: most of its items are now in ant",
            "ant 20 12 -8",
            "bee 12 13 +1",
            "Items in another category than before",
            "ant → new-001",
        )
    ]
    assert places == sorted(places)


def test_changes_are_shown_with_pictures(changed, tmp_path, result_of, picture_paths):
    page = page_of(changed, tmp_path, result_of(paths=picture_paths(48)))
    assert 'url("data:image/' in page
    new = page[page.index('id="new-title"') : page.index('id="gone-title"')]
    assert len(re.findall(r'class="tile s0"', new)) == 12
    assert "12 pictures" in seen(new)
    assert page.count('class="chip"') == 0


def test_changes_of_texts_show_the_texts(changed, tmp_path, result_of):
    page = page_of(changed, tmp_path, result_of(texts=[f"<b>{i}</b>" for i in range(48)]))
    assert "&lt;b&gt;24&lt;/b&gt;" in page
    assert "Texts in another category than before" in page


def test_an_item_that_is_no_longer_there_is_named(changed, tmp_path, result_of, picture_paths):
    lost = replace(changed, moved=[("lost.png", "bee", "ant")])
    assert "lost.png" in page_of(lost, tmp_path, result_of(paths=picture_paths(48)))


def test_the_headline_is_the_most_important_change(changed):
    quiet = replace(changed, new={}, gone={})
    assert (
        headline(quiet, "texts") == "The categories are the same, but 3 texts are in another one."
    )
    assert headline(replace(quiet, moved=[])) == "The categories are the same as before."
    assert headline(replace(changed, new={})) == "1 category is gone (old)."
