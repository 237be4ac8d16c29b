"""What tests of the page look at: the pages that are open in the reader, what is marked on them, and the clipboard."""

from __future__ import annotations

from pathlib import Path

import pymupdf
from playwright.sync_api import Locator, expect

from folio.pdf.letters import Rect
from tests.helpers.browser import Tab

# Resolves once an element stays where it is: the reader fits a page when its text is known
STAYS = """(node) => new Promise((resolve) => {
  let before = "";
  const look = () => {
    const { x, y, width } = node.getBoundingClientRect();
    if (before === `${x} ${y} ${width}`) return resolve();
    before = `${x} ${y} ${width}`;
    setTimeout(look, 150);
  };
  look();
})"""


def open_reader(tab: Tab, paper: str) -> None:
    """Opens a paper beside what is shown."""
    opens = "([module, paper]) => import(module).then((router) => router.openReading({ paper, page: 1 }))"
    tab.page.evaluate(opens, [tab.module("base/router.js"), paper])


def page_in(tab: Tab, page: int) -> Locator:
    """A page in the reader."""
    return tab.find(f'#reader .page[data-page="{page}"]')


def reader_shows(tab: Tab, page: int) -> None:
    """Waits until this page is the one in view, and its picture or, on a phone, its text is there."""
    expect(tab.find("#reader .page-field")).to_have_value(str(page))
    expect(page_in(tab, page).locator(".page-picture img, .page-text:not([hidden]) p").first).to_be_attached()
    expect(page_in(tab, page).and_(tab.find(".ready"))).to_have_count(1)
    page_in(tab, page).evaluate(STAYS)


def marks(tab: Tab, page: int, kind: str = "quote") -> list[Rect]:
    """The boxes that are marked on a page, in points."""
    return [
        (box[0], box[1], box[0] + box[2], box[1] + box[3])
        for box in page_in(tab, page)
        .locator(f".page-mark.{kind}")
        .evaluate_all(
            "(nodes) => nodes.map(({ style }) => [style.left, style.top, style.width, style.height].map(parseFloat))"
        )
    ]


def words_on(path: Path, page: int, boxes: list[Rect]) -> str:
    """The words of a page of a PDF whose middle is in one of these boxes."""
    with pymupdf.open(path) as document:
        words = document[page - 1].get_text("words", sort=False)
    middles = [((x0 + x1) / 2, (y0 + y1) / 2, word) for x0, y0, x1, y1, word, *_ in words]
    return " ".join(word for x, y, word in middles if any(x0 <= x <= x1 and y0 <= y <= y1 for x0, y0, x1, y1 in boxes))


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
