"""What was deleted or changed on the page is undone: by the button, by Ctrl+Z, after a reload, in every tab."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.helpers.browser import WIDE, Tab
from tests.helpers.factories import small_papers
from tests.helpers.live_server import Live, builtin_app
from tests.helpers.page import open_reader, page_in, reader_shows, row, rows

pytestmark = pytest.mark.slow

QUESTION = "How long is the Aletsch glacier?"
OTTERS, GLACIER = "On Sea Otters", "The Aletsch Glacier"
Open = Callable[..., Tab]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("undo_on_page")
    with Live(builtin_app(folder, small_papers(folder / "papers"))) as made:
        yield made


def state(live: Live) -> list[Any]:
    """All that a person made."""
    listed = [live.send("GET", path) for path in ("/papers", "/notes", "/conversations")]
    return [*listed, *(live.send("GET", f"/conversations/{each['id']}") for each in listed[2]["conversations"])]


def press_undo(tab: Tab, said: str) -> None:
    expect(tab.find("#toast")).to_contain_text(said)
    tab.page.keyboard.press("Control+z")
    expect(tab.find("#toast")).to_have_text("Undone.")


def test_a_conversation_and_its_name_come_back_in_every_tab(live: Live, opened: Open) -> None:
    asked = live.send("POST", "/chat", {"message": QUESTION, "listed": True})["conversation"]
    live.send("PATCH", f"/conversations/{asked}", {"pinned": True})
    before = state(live)
    tab = opened(live, WIDE, f"#c/{asked}")
    other = tab.context.new_page()
    other.goto(tab.url)
    expect(other.locator("#conversations a")).to_have_count(1)
    expect(tab.find(".turn .actions")).to_be_visible()

    def choose(what: str) -> None:
        tab.find("#conversations li button").first.click()
        tab.page.get_by_role("button", name=what).click()

    choose("Delete")
    expect(other.locator("#conversations a")).to_have_count(0)
    expect(tab.question).to_be_focused()  # of a new conversation
    press_undo(tab, "and its answers are deleted")
    expect(other.locator("#conversations a")).to_have_count(1)
    expect(tab.find(".turn .actions")).to_be_visible()  # it is shown again
    assert state(live) == before
    other.close()

    choose("Rename")
    tab.page.keyboard.type("Ice")
    tab.page.keyboard.press("Enter")
    expect(tab.find("#conversations .title")).to_have_text("Ice")
    tab.question.fill("What now?")
    tab.page.keyboard.press("Control+z")  # is the field's own
    expect(tab.question).to_have_value("")
    tab.page.keyboard.press("Control+Shift+z")
    expect(tab.question).to_have_value("What now?")
    expect(tab.find("#conversations .title")).to_have_text("Ice")
    tab.reload()
    expect(tab.find(".turn .actions")).to_be_visible()
    tab.find("#ask-scroll").focus()
    tab.page.keyboard.press("Control+z")
    expect(tab.find("#conversations .title")).to_have_text(QUESTION)
    assert state(live) == before
    tab.page.keyboard.press("Control+z")  # nothing is left to undo
    assert state(live) == before


def test_a_note_comes_back_in_the_reader_and_an_edit_is_undone(live: Live, opened: Open) -> None:
    paper = next(each["id"] for each in live.send("GET", "/papers")["papers"] if each["title"] == GLACIER)
    for quote, text in (("23 kilometres", "Mine."), ("largest glacier", "")):
        quotes = [{"paper": paper, "quote": quote}]
        live.send("POST", "/notes", {"quotes": quotes, "text": text, "colour": "pink"})
    before = live.send("GET", "/notes")
    tab = opened(live, WIDE, "#ask")
    open_reader(tab, paper)
    reader_shows(tab, 1)
    card = tab.find(".note-card")
    note = tab.page.get_by_role("button", name="Mine.")
    note.click()
    card.get_by_role("button", name="Delete note").click()
    expect(note).to_have_count(0)
    press_undo(tab, "Note deleted.")
    note.click()
    card.get_by_role("textbox").fill("Changed.")
    card.get_by_label("green").check()
    card.get_by_role("button", name="Save").click()
    expect(page_in(tab, 1).locator(".page-mark.green")).to_have_count(1)
    press_undo(tab, "Note changed.")
    expect(page_in(tab, 1).locator(".page-mark.green")).to_have_count(0)
    assert live.send("GET", "/notes") == before

    tab.open("#notes")
    tab.find(".note-item").first.get_by_role("button", name=re.compile("^Delete")).click()
    expect(tab.find(".note-item")).to_have_count(1)
    tab.find("#toast").get_by_role("button", name="Undo").click()
    expect(tab.find(".note-item")).to_have_count(2)
    tab.find(".note-item").last.get_by_role("button", name=re.compile("^Delete")).click()
    expect(tab.find(".note-item")).to_have_count(1)
    tab.page.keyboard.press("Control+k")
    tab.page.keyboard.type("Undo")
    tab.page.keyboard.press("Enter")
    expect(tab.find(".note-item")).to_have_count(2)
    assert live.send("GET", "/notes") == before


def test_tags_and_fields_are_undone_and_what_was_changed_since_stays(live: Live, opened: Open) -> None:
    before = state(live)
    tab = opened(live, WIDE, "#library")
    expect(rows(tab)).to_have_count(2)
    for key, field, text in (("t", "Add tags", "to read"), ("e", "Year", "2001")):
        row(tab, OTTERS).focus()
        tab.page.keyboard.press("Control+a")
        tab.page.keyboard.press(key)
        tab.page.get_by_role("dialog").get_by_label(field).fill(text)
        tab.page.keyboard.press("Enter")
        press_undo(tab, "2 papers changed.")
        assert state(live) == before
    tab.page.keyboard.press("Escape")
    row(tab, OTTERS).focus()
    tab.page.keyboard.press("e")
    tab.page.get_by_role("dialog").get_by_label("Title").fill("Otters")
    tab.page.keyboard.press("Control+Enter")
    expect(row(tab, "Otters")).to_be_visible()
    press_undo(tab, "Saved.")
    assert state(live) == before

    row(tab, OTTERS).focus()
    tab.page.keyboard.press("t")
    tab.page.get_by_role("dialog").get_by_label("Add tags").fill("furs")
    tab.page.keyboard.press("Enter")
    expect(tab.find("#toast")).to_contain_text("1 paper changed.")
    paper = next(each["id"] for each in live.send("GET", "/papers")["papers"] if each["title"] == OTTERS)
    live.send("PATCH", f"/papers/{paper}", {"tags": ["fur"]})
    tab.page.keyboard.press("Control+z")
    expect(tab.find("#toast")).to_have_text("This paper was changed again since. It stays as it is now.")
    tab.expected("409")
    assert live.send("GET", f"/papers/{paper}")["tags"] == ["fur"]
