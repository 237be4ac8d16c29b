"""What tests of the page look at: the page of a paper that is open, and the clipboard."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, expect

from tests.helpers.browser import Tab


def viewer_shows(tab: Tab, page: int) -> None:
    """Waits until this page is named and rendered."""
    expect(tab.find("#page-name")).to_contain_text(f"p. {page} of ")
    expect(tab.find("#picture")).to_have_attribute("alt", re.compile(f"^Page {page} of "))
    expect(tab.find("#sheet")).not_to_have_class(re.compile("waiting"))


def clipboard(tab: Tab) -> str:
    return str(tab.page.evaluate("navigator.clipboard.readText()"))


def rows(tab: Tab) -> Locator:
    """The rows of the library's table; only those near the view have elements."""
    return tab.find(".table-rows > .table-row")


def row(tab: Tab, text: str) -> Locator:
    return rows(tab).filter(has_text=text)


def act(tab: Tab, text: str, action: str) -> None:
    """Selects the only row with this text, and presses a button of what can be done with it."""
    row(tab, text).locator(".state").click()
    tab.find(".library-actions").get_by_role("button", name=action, exact=True).click()
