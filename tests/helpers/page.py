"""What tests of the page look at: the page of a paper that is open, and the clipboard."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.helpers.browser import Tab


def viewer_shows(tab: Tab, page: int) -> None:
    """Waits until this page is named and rendered."""
    expect(tab.find("#page-name")).to_contain_text(f"p. {page} of ")
    expect(tab.find("#picture")).to_have_attribute("alt", re.compile(f"^Page {page} of "))
    expect(tab.find("#sheet")).not_to_have_class(re.compile("waiting"))


def clipboard(tab: Tab) -> str:
    return str(tab.page.evaluate("navigator.clipboard.readText()"))
