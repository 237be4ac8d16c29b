"""What a person types: the keys of input methods, and what is kept of it when the page is left, reloaded or crashes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.helpers.browser import WIDE, Tab
from tests.helpers.factories import small_papers
from tests.helpers.live_server import Live, builtin_app

pytestmark = pytest.mark.slow

QUESTION, EDITED = "How long is the Aletsch glacier?", "How thick is the ice of the Aletsch glacier?"
OTTERS, GLACIER = "On Sea Otters", "The Aletsch Glacier"
Open = Callable[..., Tab]


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with Live(builtin_app(tmp_path, small_papers(tmp_path / "papers"))) as made:
        yield made


def send(live: Live, method: str, path: str, body: Any = None) -> Any:
    with live.client() as client:
        reply = client.request(method, path, json=body)
        assert reply.is_success, reply.text
        return reply.json() if reply.content else None


def conversations(live: Live) -> list[Any]:
    listed: list[Any] = send(live, "GET", "/conversations")["conversations"]
    return listed


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
    expect(tab.find("#conversations .title")).to_have_text("氷河")
    assert [(each["turns"], each["title"]) for each in conversations(live)] == [(1, "氷河")]

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
