"""The review page in a real browser."""

import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from playwright.sync_api import expect
from review_server import HOSTILE, serving

from newfound.result.edits.log import read_edits
from newfound.result.store import read_result
from newfound.review.server import ReviewServer, review


def card(page, name):
    return page.locator(f'.card[aria-label^="{name},"]')


def novel(folder):
    result = read_result(folder)
    return list(result.names[result.n_known :])


def written(folder):
    return [edit.content for edit in read_edits(folder)]


def press(page, name, *keys):
    card(page, name).focus()
    for key in keys:
        page.keyboard.press(key)


def test_merge_rename_undo_and_redo_by_keys_and_reload(page, run):
    first, second, third = novel(run)[:3]
    press(page, first, "m")
    press(page, second, "m")
    expect(card(page, second)).to_have_count(0)
    press(page, third, "r")
    page.fill("#ask-input", 'owl, "or" not')
    page.keyboard.press("Enter")
    expect(page.locator(".card", has_text='owl, "or" not')).to_have_count(1)
    assert written(run) == [
        ("merge", first, second, ""),
        ("rename", third, "", 'owl, "or" not'),
    ]
    page.keyboard.press("u")
    expect(card(page, third)).to_have_count(1)
    page.keyboard.press("u")
    expect(card(page, second)).to_have_count(1)
    page.keyboard.press("Shift+U")
    expect(card(page, second)).to_have_count(0)
    page.reload()
    expect(card(page, third)).to_have_count(1)
    expect(card(page, second)).to_have_count(0)
    expect(page.locator("#apply")).to_have_text("Apply 1")


def test_split_by_picking_and_move(page, run):
    first, second = novel(run)[:2]
    press(page, first, "Enter")
    page.wait_for_selector(".pick")
    for key in ("Space", "ArrowRight", "Space"):
        page.keyboard.press(key)
    picked = page.locator('.pick[aria-selected="true"]')
    expect(picked).to_have_count(2)
    ids = [one.get_attribute("title") for one in picked.all()]
    page.keyboard.press("s")
    page.fill("#ask-input", "two of them")
    page.keyboard.press("Enter")
    expect(card(page, "two of them")).to_contain_text("2 pictures")
    card(page, first).get_by_role("button", name="Open").click()
    page.locator(".pick").first.click()
    page.click("#open-move")
    page.fill("#ask-input", second)
    page.keyboard.press("Enter")
    expect(page.locator("#open")).to_be_hidden()
    edits = written(run)
    assert edits[0] == ("split", first, "\n".join(ids), "two of them")
    assert (edits[1][0], edits[1][2]) == ("move", second)


def test_tab_stops_at_one_card_and_its_buttons(page, run):
    press(page, novel(run)[0], "ArrowRight")
    stops = page.locator('.card[tabindex="0"], .card [tabindex="0"]')
    expect(stops).to_have_count(6)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent").startswith("Confirm")
    page.keyboard.press("Enter")  # presses the button
    expect(page.locator(".card.decided")).to_have_count(1)


def test_merge_by_dragging(page, run):
    first, second = novel(run)[:2]
    card(page, first).locator("h3").drag_to(card(page, second).locator("h3"))
    expect(card(page, first)).to_have_count(0)
    assert written(run) == [("merge", second, first, "")]


def has_pictures(page, root):
    """Wait until the pictures that are in view are drawn."""
    page.wait_for_function(
        """root => {
          const all = [...document.querySelectorAll(`${root} img`)];
          const seen = all.filter((image) => image.getBoundingClientRect().top < innerHeight);
          return seen.length && seen.every((image) => image.naturalWidth > 0);
        }""",
        arg=root,
    )
    return True


def test_pictures_are_drawn_on_cards_and_in_questions(page, run):
    assert has_pictures(page, "#cards")
    for key, root in (("2", "#questions-panel"), ("3", "#suspects-panel")):
        page.keyboard.press(key)
        assert has_pictures(page, root)


def test_questions_and_labels_by_keys(page, run):
    page.keyboard.press("2")
    expect(page.locator("#questions-panel .sides img").first).to_be_visible()
    n = int(page.locator("#tab-questions .count").inner_text())
    page.keyboard.press("n")
    page.keyboard.press("d")
    expect(page.locator("#tab-questions .count")).to_have_text(str(n - 1))
    assert written(run)[0][0] == "different"
    page.keyboard.press("3")
    n = page.locator("#tab-suspects .count").inner_text()
    assert int(n) > 1
    given = page.locator("#suspects-panel .look-head bdi").first.inner_text()
    page.keyboard.press("k")
    expect(page.locator("#tab-suspects .count")).to_have_text(str(int(n) - 1))
    assert (written(run)[1][0], written(run)[1][3]) == ("relabel", given)
    page.keyboard.press("4")
    expect(page.locator(".log tr")).to_have_count(2)


def test_what_is_refused_is_told_and_nothing_is_written(page, run):
    first, second = novel(run)[:2]
    sent = "edit => ask('api/edit', edit).catch(error => error.message)"
    page.evaluate(sent, {"action": "different", "subject": first, "object": second})
    press(page, first, "m")
    press(page, second, "m")
    expect(page.locator("#toast.bad")).to_contain_text("row 2 says that two are different")
    assert len(written(run)) == 1
    assert "no action" in page.evaluate(sent, {"action": "delete", "subject": first})
    assert "is a text" in page.evaluate(sent, {"action": "confirm", "subject": [first]})
    assert "bytes" in page.evaluate(
        "edit => ask('api/edit', {...edit, note: 'x'.repeat(3e6)}).catch(error => error.message)",
        {"action": "confirm", "subject": first},
    )


def test_slide_to_a_coarser_level_by_keys_and_undo(page, run):
    before = len(novel(run))
    page.keyboard.press("g")
    expect(page.locator("#level")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#level-use")).to_have_text(f"Use the level of {before + 5 - 1}")
    expect(page.locator("#level-words")).to_contain_text("is divided into")
    page.keyboard.press("Enter")
    expect(page.locator(".card.novel")).to_have_count(before - 1)
    assert written(run) == [("granularity", str(before + 5 - 1), "", "")]
    page.click("#undo")
    expect(page.locator(".card.novel")).to_have_count(before)


def test_two_tabs_see_each_other_and_a_person_at_the_file(page, browser, server, run):
    other = browser.new_page()
    other.goto(server.address.partition("?")[0])  # the cookie is enough
    other.wait_for_selector(".card")
    first, second = novel(run)[:2]
    press(page, first, "c")
    expect(card(other, first)).to_have_class("card known decided")
    press(other, second, "c")
    expect(card(page, second)).to_have_class("card known decided")
    with (run / "edits.csv").open("a") as file:
        file.write(f",,rename,{second},,by hand\n,,confirm,nobody\n")
    for tab in (page, other):
        expect(card(tab, "by hand")).to_have_count(1)
        expect(tab.locator("#notices")).to_contain_text("Row 5: there is no category 'nobody'")


def test_apply_obeys_and_says_what_changed(visit, own_run):
    with serving(own_run) as server:
        apply_and_look(visit(server), own_run)


def apply_and_look(page, run):
    first, second = novel(run)[:2]
    press(page, first, "r")
    page.fill("#ask-input", HOSTILE + "2")
    page.keyboard.press("Enter")
    expect(card(page, first)).to_have_count(0)
    press(page, second, "c", "a")
    expect(page.locator("#changes-lines")).to_contain_text(f"Renamed: {first} is now {HOSTILE}2")
    expect(page.locator("#apply")).to_have_text("Apply")
    expect(page.locator("#progress")).to_be_hidden()
    assert HOSTILE + "2" in read_result(run).names
    assert page.title() != "owned"
    page.goto(page.url + "run/changes.html")
    expect(page.locator("h1")).to_contain_text("renamed")
    assert page.title() != "owned"


def test_a_label_with_html_is_only_text(page):
    expect(page.locator(".card h3", has_text="<img src=x")).to_have_count(1)
    assert page.locator('img[src="x"]').count() == 0
    assert page.title() != "owned"
    assert page.locator("#names option").count() == 0
    press(page, "new-001", "r")
    assert HOSTILE in page.locator("#names option").evaluate_all("all => all.map(o => o.value)")


def test_a_killed_server_loses_nothing(browser, run):
    def start():
        command = [sys.executable, "-m", "newfound", "review", str(run), "--no-browser"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        return process, process.stdout.readline().split()[-1]

    process, address = start()
    page = browser.new_page()
    page.goto(address)
    page.wait_for_selector(".card")
    first = novel(run)[0]
    press(page, first, "c")
    expect(card(page, first)).to_have_class("card known decided")
    process.kill()
    process.wait(timeout=20)
    process.stdout.close()
    press(page, first, "u")
    expect(page.locator("#toast.bad")).to_contain_text("nothing is lost")
    assert written(run) == [("confirm", first, "", "")]
    with serving(run) as server:
        page.goto(server.address)
        expect(card(page, first)).to_have_class("card known decided")
        expect(page.locator("#apply")).to_have_text("Apply 1")


def test_ctrl_c_stops_the_server_and_says_what_to_do_next(features_run):
    read_result(features_run).confirm("new-001")
    command = [sys.executable, "-m", "newfound", "review", str(features_run), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    address = process.stdout.readline().split()[-1]
    process.stdout.readline()
    with pytest.raises(urllib.error.HTTPError, match="403"):  # it answers
        urllib.request.urlopen(address.partition("?")[0], timeout=30)
    process.send_signal(signal.SIGINT)
    printed, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "")
    assert printed == f"Stopped. To obey what you decided: newfound update {features_run}\n"


def test_a_review_without_decisions_leaves_nothing_to_do(features_run, monkeypatch, capsys):
    monkeypatch.setattr(ReviewServer, "serve", lambda server: server._listener.close())
    review(features_run, open_browser=False)
    assert capsys.readouterr().out.endswith("Stopped. Nothing is left to do.\n")


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_window(page, width):
    page.set_viewport_size({"width": width, "height": 700})
    for key in "12345":
        page.keyboard.press(key)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        expect(page.locator("[role=tab][aria-selected=true]")).to_be_in_viewport(ratio=1)


def test_a_decision_is_a_few_lines_on_a_phone(page, run):
    read_result(run).rename(novel(run)[0], "a_name_that_is_rather_long_for_a_phone")
    page.set_viewport_size({"width": 360, "height": 700})
    page.keyboard.press("4")
    row = page.locator(".log tr")
    expect(row).to_contain_text("a_name_that")
    assert row.bounding_box()["height"] < 120


def test_features_have_a_page_as_well(visit, features_run):
    with serving(features_run) as server:
        page = visit(server)
        expect(page.locator(".card .chip").first).to_be_visible()
        press(page, "new-001", "Enter")
        expect(page.locator(".pick")).to_have_count(30)


def test_questions_about_the_number_by_keys(visit, features_run):
    with serving(features_run) as server:
        page = visit(server)
        page.keyboard.press("5")
        panel = page.locator("#number-panel")
        expect(panel).to_contain_text("30 questions to be sure of the number")
        page.keyboard.press("d")
        expect(panel).to_contain_text("1 of 30 answered")
        page.keyboard.press("n")
        expect(panel).to_contain_text("90 % interval")
    (edit,) = read_edits(features_run)
    assert (edit.action, edit.value) == ("different", "items")
    assert 0 < float(edit.probability) < 1
