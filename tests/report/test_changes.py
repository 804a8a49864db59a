from newfound.report.changes import write_changes
from newfound.result.lineage import Changes

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


def test_the_page_tells_what_changed_and_runs_no_script(tmp_path):
    write_changes(CHANGES, tmp_path / "changes.html")
    page = (tmp_path / "changes.html").read_text(encoding="utf-8")
    assert "4 items, 3 before" in page
    assert "New category: new-002 (1 item)." in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;.png" in page
    assert "<script" not in page
    assert "http://" not in page
    assert "https://" not in page


def test_a_long_list_is_cut_and_says_so(tmp_path):
    many = Changes(2000, 2000, [], [], [(f"{i}.png", "a", "b") for i in range(1200)], {}, {}, {})
    write_changes(many, tmp_path / "changes.html")
    page = (tmp_path / "changes.html").read_text(encoding="utf-8")
    assert page.count("<tr>") == 1 + 1000
    assert "200 more items moved" in page
