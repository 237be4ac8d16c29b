"""Opened citations in the page, and "Your questions": how many are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.helpers.browser import PHONE, WIDE, Tab
from tests.helpers.factories import small_papers
from tests.helpers.live_server import Live, builtin_app, until

pytestmark = pytest.mark.slow


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with Live(builtin_app(tmp_path, small_papers(tmp_path / "papers"))) as made:
        yield made


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_an_opened_citation_is_measured(live: Live, opened: Callable[..., Tab], size: tuple[int, int]) -> None:
    tab = opened(live, size)

    def known() -> int:
        with live.client() as client:
            return int(client.get("/own-questions").json()["opened"])

    tab.ask("How long is the Aletsch glacier?")
    expect(tab.find(".turn .sources a.source").first).to_be_visible()
    assert known() == 0
    tab.find(".turn .sources a.source").first.click()
    until(lambda: known() == 1)
    tab.page.keyboard.press("Escape")
    tab.page.get_by_role("button", name="Your questions").focus()
    tab.page.keyboard.press("Enter")
    panel = tab.find("#own-questions")
    expect(panel).to_contain_text("1 question can be measured.")
    expect(panel).to_contain_text("1 of them counts only because you opened a citation, which is weak evidence.")
    panel.get_by_role("button", name="Measure").click()
    expect(panel.locator(".own-found")).to_have_text("Your questions: found 1 of 1", timeout=60_000)
    expect(panel.get_by_role("row").last).to_contain_text("TOP_K=")
    expect(panel.get_by_role("row").last).to_contain_text("Never finds fewer; gives more to read")
    assert tab.inaccessible() == []
    assert tab.scrolls_sideways() == []
    tab.page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
