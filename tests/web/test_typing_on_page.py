"""What a person types: the keys of input methods, and what is kept of it when the page is left, reloaded or crashes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.helpers.browser import WIDE, Tab
from tests.helpers.factories import small_papers
from tests.helpers.live_server import Live, builtin_app, until
from tests.helpers.page import open_reader, reader_shows, row, rows

pytestmark = pytest.mark.slow

QUESTION, EDITED = "How long is the Aletsch glacier?", "How thick is the ice of the Aletsch glacier?"
OTTERS, GLACIER = "On Sea Otters", "The Aletsch Glacier"
Open = Callable[..., Tab]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("typing")
    with Live(builtin_app(folder, small_papers(folder / "papers"))) as made:
        yield made


def ask(live: Live, question: str) -> str:
    """Asks a question; returns its conversation."""
    return str(live.send("POST", "/chat", {"message": question, "listed": True})["conversation"])


# Input methods


def confirm_word(tab: Tab, key: str = "Enter") -> None:
    """A key that an input method takes, in the order of Safari: the composition has ended already."""
    code = {"Enter": "Enter", "Escape": "Escape"}[key]
    pressed = {"key": key, "code": code, "windowsVirtualKeyCode": 229}
    devtools = tab.context.new_cdp_session(tab.page)
    devtools.send("Input.dispatchKeyEvent", {"type": "rawKeyDown", **pressed})
    devtools.send("Input.dispatchKeyEvent", {"type": "keyUp", **pressed})


def test_enter_that_confirms_a_word_of_an_input_method_sends_nothing(live: Live, opened: Open) -> None:
    tab = opened(live, WIDE, "#ask")
    tab.question.fill(QUESTION)
    tab.question.focus()
    confirm_word(tab)
    expect(tab.question).to_have_value(QUESTION)
    tab.page.keyboard.press("Enter")
    expect(tab.find(".turn .actions")).to_be_visible()

    tab.find(".turn").get_by_role("button", name="Edit this question").click()
    edited = tab.page.get_by_role("textbox", name="Edited question")
    edited.fill(EDITED)
    for key in ("Enter", "Escape"):
        confirm_word(tab, key)
        expect(edited).to_have_value(EDITED)
    tab.page.keyboard.press("Escape")

    tab.find("#conversations li button").first.click()
    tab.page.get_by_role("button", name="Rename").click()
    name = tab.page.get_by_role("textbox", name="Title of the conversation")
    name.fill("氷河")
    for key in ("Enter", "Escape"):
        confirm_word(tab, key)
        expect(name).to_be_focused()
    tab.page.keyboard.press("Enter")
    expect(tab.find("#conversations .title").first).to_have_text("氷河")
    listed = live.send("GET", "/conversations")["conversations"]
    assert (listed[0]["turns"], listed[0]["title"]) == (1, "氷河")

    tab.page.keyboard.press("Control+k")
    field = tab.page.get_by_role("dialog", name="Find anything").get_by_role("combobox")
    field.fill("Library")
    confirm_word(tab)
    expect(field).to_be_focused()
    tab.page.keyboard.press("Escape")


# The first papers


def test_the_first_files_are_chosen_by_keyboard(tmp_path: Path, opened: Open) -> None:
    (tmp_path / "papers").mkdir()
    with Live(builtin_app(tmp_path, tmp_path / "papers")) as live:
        tab = opened(live, WIDE, "#ask")
        choose = tab.find("#welcome").get_by_role("button", name="choose files")
        expect(choose).to_be_visible()
        tab.find("#main").focus()
        for _ in range(5):
            tab.page.keyboard.press("Tab")
            if choose.evaluate("(node) => node === document.activeElement"):
                break
        expect(choose).to_be_focused()
        assert tab.focus_shows()
        for key in ("Enter", "Space"):
            with tab.page.expect_file_chooser():
                tab.page.evaluate("0")  # by now the browser hands its choosers over
                tab.page.keyboard.press(key)


# Drafts


@pytest.fixture
def papers(live: Live) -> dict[str, str]:
    """Title -> id."""
    return {each["title"]: each["id"] for each in live.send("GET", "/papers")["papers"]}


def test_each_conversation_has_a_question_of_its_own(live: Live, opened: Open) -> None:
    first, second = ask(live, QUESTION), ask(live, EDITED)
    tab = opened(live, WIDE, f"#c/{first}")
    expect(tab.find(".turn .actions")).to_be_visible()
    tab.question.fill("And the first?")
    tab.open(f"#c/{second}")
    expect(tab.question).to_have_value("")
    tab.question.fill("And the second?")
    tab.find("#new").click()
    expect(tab.question).to_have_value("")
    tab.question.fill("Something new")
    tab.find(".views a[href='#library']").click()
    tab.page.go_back()
    expect(tab.question).to_have_value("Something new")
    tab.reload()
    expect(tab.question).to_have_value("Something new")
    other = tab.context.new_page()
    other.goto(f"{tab.url}/#c/{first}")
    expect(other.locator(".turn .actions")).to_be_visible()
    expect(other.locator("#question")).to_have_value("")  # a draft is its tab's alone
    other.close()
    tab.open(f"#c/{first}")
    expect(tab.question).to_have_value("And the first?")
    tab.page.keyboard.press("Enter")
    expect(tab.find(".turn .actions")).to_have_count(2)
    tab.reload()
    expect(tab.find(".turn .actions")).to_have_count(2)
    expect(tab.question).to_have_value("")
    with tab.page.expect_response(re.compile("followups")):
        tab.open(f"#c/{second}")
    expect(tab.question).to_have_value("And the second?")
    live.send("DELETE", f"/conversations/{second}")
    expect(tab.find("#toast")).to_contain_text("deleted")
    expect(tab.question).to_have_value("Something new")  # it was there before


def test_a_question_goes_on_in_a_new_conversation_when_its_own_is_deleted(live: Live, opened: Open) -> None:
    conversation = ask(live, QUESTION)
    tab = opened(live, WIDE, f"#c/{conversation}")
    expect(tab.find(".turn .actions")).to_be_visible()
    tab.question.fill("And its")
    live.send("DELETE", f"/conversations/{conversation}")
    tab.tolerated(r"404 .*/followups")  # of the conversation that was deleted meanwhile
    expect(tab.find("#toast")).to_contain_text("deleted")
    tab.question.press_sequentially(" neighbours?")
    expect(tab.question).to_have_value("And its neighbours?")
    tab.reload()
    expect(tab.question).to_have_value("And its neighbours?")


def test_forms_come_back_after_escape_a_reload_and_another_view(
    live: Live, papers: dict[str, str], opened: Open
) -> None:
    tab = opened(live, WIDE, f"#paper/{papers[OTTERS]}")
    tab.find(".paper-actions").get_by_role("button", name="Edit").click()
    venue = tab.page.get_by_role("textbox", name="Journal")
    venue.fill("Marine Ecology")
    tab.page.reload()
    expect(venue).to_have_value("Marine Ecology")
    tab.page.keyboard.press("Alt+3")
    tab.page.go_back()
    expect(venue).to_have_value("Marine Ecology")
    venue.press("Escape")
    tab.find(".paper-actions").get_by_role("button", name="Edit").click()
    expect(venue).to_have_value("Marine Ecology")
    tab.page.get_by_role("button", name="Cancel").click()
    tab.find(".paper-actions").get_by_role("button", name="Edit").click()
    expect(venue).to_have_value("")

    def write(button: str, name: str, text: str) -> Locator:
        tab.open("#library")
        expect(rows(tab)).to_have_count(2)
        row(tab, OTTERS).focus()
        tab.page.keyboard.press("Control+a")
        tab.find(".library-actions").get_by_role("button", name=button, exact=True).click()
        field = tab.page.get_by_role("dialog").get_by_label(name)
        if text:
            field.fill(text)
        return field

    for button, name, text in (("Tags", "Add tags", "to read"), ("Edit", "Journal", "Ecology")):
        write(button, name, text)
        tab.page.go_back()
        expect(tab.page.get_by_role("dialog")).to_have_count(0)
        tab.page.goto("about:blank")
        expect(write(button, name, "")).to_have_value(text)
        tab.page.get_by_role("dialog").get_by_role("button", name="Save").click()
        expect(tab.find("#toast")).to_contain_text("changed")
        tab.page.goto("about:blank")
        expect(write(button, name, "")).to_have_value("")
        tab.page.goto("about:blank")


def is_renamed_from(tab: Tab, name: Locator, value: str) -> bool:
    """Opens the field for the name of the first conversation; whether it has this value. It may have been saved when
    the page was left, and be listed a moment later."""
    if name.count():
        name.press("Escape")
    tab.find("#conversations li button").first.click()
    tab.page.get_by_role("button", name="Rename").click()
    return name.input_value() == value


def test_notes_and_names_come_back(live: Live, papers: dict[str, str], opened: Open) -> None:
    quotes = [{"paper": papers[GLACIER], "quote": "23 kilometres"}]
    note = live.send("POST", "/notes", {"quotes": quotes, "text": "Mine."})["id"]
    tab = opened(live, WIDE, "#notes")
    item = tab.find(f".note-item[data-id='{note}']")
    item.get_by_role("button", name="Edit").click()
    words = item.get_by_role("textbox", name="Your note")
    words.fill("Mine, and more.")
    item.get_by_role("radio", name="Green").check()
    tab.page.reload()
    expect(words).to_have_value("Mine, and more.")
    expect(item.get_by_role("radio", name="Green")).to_be_checked()
    live.send("PATCH", f"/notes/{note}", {"text": "Theirs."})
    tab.page.reload()
    item.get_by_role("button", name="Save").click()
    expect(item).to_contain_text("Theirs.")  # of two who edit a note none loses words
    expect(words).to_have_value("Mine, and more.")
    tab.expected("409")
    live.send("DELETE", f"/notes/{note}")
    tab.page.reload()
    expect(words).to_have_value("Mine, and more.")
    item.get_by_role("button", name="Cancel").click()
    expect(tab.find(".note-item")).to_have_count(0)

    tab.open("#ask")
    open_reader(tab, papers[GLACIER])
    reader_shows(tab, 1)
    tab.find(".reader-pages").focus()
    tab.page.keyboard.press("s")
    tab.find(".selection-bar").get_by_role("button", name="Note", exact=True).click()
    card = tab.find(".note-card").get_by_role("textbox", name="Your note")
    card.fill("A new one")
    tab.page.reload()
    expect(card).to_have_value("A new one")
    tab.find(".note-card").get_by_role("button", name="Save").click()
    expect(tab.find(".note-card")).to_be_hidden()
    tab.page.reload()
    reader_shows(tab, 1)
    expect(tab.find(".note-card")).to_be_hidden()
    assert [each["text"] for each in live.send("GET", "/notes")["notes"]] == ["A new one"]

    conversation = ask(live, QUESTION)
    tab.open(f"#c/{conversation}")
    name = tab.page.get_by_role("textbox", name="Title of the conversation")
    for before in ("", "Glaciers", "Glaciers"):
        until(partial(is_renamed_from, tab, name, before or QUESTION))
        name.fill("Glaciers")
        if before:
            name.press("Escape")
        else:
            tab.page.reload()
    tab.find(".turn").get_by_role("button", name="Edit this question").click()
    edited = tab.page.get_by_role("textbox", name="Edited question")
    edited.fill(EDITED)
    edited.press("Escape")
    tab.page.reload()
    tab.find(".turn").get_by_role("button", name="Edit this question").click()
    expect(edited).to_have_value(EDITED)


def test_leaving_is_asked_for_only_where_words_are_not_kept(live: Live, opened: Open) -> None:
    tab = opened(live, WIDE, "#ask")
    tab.question.press_sequentially("How")
    tab.page.reload()
    expect(tab.question).to_have_value("How")
    tab.page.evaluate(
        """() => { for (let size = 2 ** 22; size >= 1; size /= 2)
          try { for (;;) sessionStorage.setItem(`full ${sessionStorage.length}`, "x".repeat(size)); } catch {} }"""
    )
    tab.question.press_sequentially(" long is this glacier, really?")
    tab.find(".views a[href='#library']").click()
    tab.page.go_back()
    expect(tab.question).to_have_value("How long is this glacier, really?")
    with tab.page.expect_event("dialog") as asked:
        tab.page.evaluate("setTimeout(() => location.reload())")
    assert asked.value.type == "beforeunload"
    expect(tab.question).to_have_value("How long is this glacier, really?")
    tab.expected("dialog: ")
    tab.question.fill("")  # nothing is left to lose
    tab.page.evaluate("sessionStorage.clear()")
    tab.page.reload()
    expect(tab.question).to_have_value("")
