"""Room to read at every size: little height, narrow windows, a phone that is turned, filters beside a paper, print."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pymupdf
import pytest
from playwright.sync_api import Browser, expect

from tests.helpers.browser import PHONE, WIDE, Tab, sizes
from tests.helpers.factories import small_papers
from tests.helpers.live_server import Live, builtin_app
from tests.helpers.page import page_in, reader_shows, row
from tests.helpers.pdfs import save

pytestmark = pytest.mark.slow

UNKNOWN = "Who won the football world cup in 1998?"
SLEEP = "How do sea otters sleep?"
# 1440x900 at 400 %, 1280x1024 at 400 %, a phone on its side, 1440x900 at 200 %
LITTLE = sizes((360, 225), (320, 256), (844, 390), (720, 450))
OVER = ("models", "conversations", "palette", "contents", "note")  # they are over what is read
Open = Callable[..., Tab]

# Parts that scroll and have little height, though more of the window is there
CRAMPED = """() => [...document.querySelectorAll("*")]
  .filter((node) => /auto|scroll/.test(getComputedStyle(node).overflowY) && node.checkVisibility())
  .filter((node) => node.scrollHeight > node.clientHeight + 1 && !node.matches("textarea"))
  .filter((node) => node.clientHeight < Math.min(200, innerHeight * 0.6))
  .map((node) => `${node.tagName} ${node.id} ${node.className}: ${node.clientHeight}`)"""

# The share of the window's height that moves when what is at its middle is scrolled
ROOM = """() => {
  const isFixed = (node) => node && !node.matches("dialog, .reader-inside, body") &&
    (/fixed|sticky/.test(getComputedStyle(node).position) || isFixed(node.parentElement));
  const heights = Array.from({ length: 50 }, (_, at) => ((at + 0.5) * innerHeight) / 50);
  const free = heights.filter((y) => !isFixed(document.elementFromPoint(innerWidth / 2, y)));
  return free.length / heights.length;
}"""

# The focused element, if it cannot be seen: it is out of the window, or something is over its middle
SEEN = """() => {
  const { left, right, top, bottom } = document.activeElement.getBoundingClientRect();
  const between = (start, end, most) => (Math.max(0, start) + Math.min(most, end)) / 2;
  const middle = document.elementFromPoint(between(left, right, innerWidth), between(top, bottom, innerHeight));
  const shown = document.activeElement.closest("label") ?? document.activeElement;
  return shown.contains(middle) || middle?.contains(shown) ? "" : document.activeElement.outerHTML.slice(0, 200);
}"""


@pytest.fixture(scope="module")
def live(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """Two small papers and one of twelve full pages."""
    folder = tmp_path_factory.mktemp("layout")
    papers = small_papers(folder / "papers")
    lines = [[(60.0, 100 + 15 * n, f"Page {page} line {n} of the ferns.") for n in range(40)] for page in range(1, 13)]
    save(papers / "ferns.pdf", lines, metadata={"title": "Ferns of the Valley"})
    with Live(builtin_app(folder, papers)) as made:
        yield made


def paper(tab: Tab, file: str) -> str:
    papers = tab.context.request.get(f"{tab.url}/papers").json()["papers"]
    return str(next(each["id"] for each in papers if each["file"] == file))


def press(tab: Tab, name: str) -> None:
    tab.page.get_by_role("button", name=name, exact=True).click()


def answer(tab: Tab) -> None:
    tab.ask(SLEEP)


def read(tab: Tab) -> None:
    tab.open(f"#search?read={paper(tab, 'ferns.pdf')}&p=7")
    reader_shows(tab, 7)


def find(tab: Tab) -> None:
    press(tab, "Find in this paper")
    tab.page.keyboard.type("line 9")
    expect(tab.find(".reader-find .status")).to_have_text("7 of 12")  # it begins at the page in view


def search(tab: Tab) -> None:
    tab.find("#query").fill("ferns")
    tab.page.keyboard.press("Enter")
    expect(tab.find("#hits > li").first).to_be_visible()


def filters(tab: Tab) -> None:
    if not tab.find(".facets").is_visible():
        press(tab, "Filters")
    expect(tab.find(".facets")).to_be_visible()


def edit(tab: Tab) -> None:
    row(tab, "Ferns").locator(".state").click()
    tab.find(".library-actions").get_by_role("button", name="Edit").click()


def keys(tab: Tab) -> None:
    tab.find("#main").focus()
    tab.page.keyboard.press("?")


def notes(tab: Tab) -> None:
    """The note that was begun is kept, and is listed."""
    tab.find(".note-card textarea").fill("Ferns are old.")
    press(tab, "Save note")
    expect(tab.find(".note-card")).to_be_hidden()
    tab.open("#notes")
    expect(tab.find(".note-item").first).to_be_visible()


def remove(tab: Tab) -> None:
    row(tab, "Ferns").locator(".state").click()
    tab.find(".library-actions").get_by_role("button", name="Remove").click()
    expect(tab.find("#confirm")).to_be_visible()


def side(tab: Tab) -> None:
    """On a narrow screen the list of conversations opens over the page."""
    button = tab.page.get_by_role("button", name="Conversations")
    if button.is_visible():
        button.click()
    expect(tab.find("#conversations li").first).to_be_visible()


def note(tab: Tab) -> None:
    """The form of a note on the words that the keyboard selects."""
    read(tab)
    if tab.page.get_by_role("button", name="Show as text").get_attribute("aria-pressed") == "true":
        press(tab, "Show as text")
        reader_shows(tab, 7)
    tab.find(".reader-pages").focus()
    tab.page.keyboard.press("s")
    tab.page.get_by_role("toolbar", name="Selected words").get_by_role("button", name="Note", exact=True).click()
    expect(tab.find(".note-card textarea")).to_be_focused()


# Each continues from the one before it, unless it has a place to open first.
STATES: dict[str, tuple[str, Callable[[Tab], object]]] = {
    "start": ("#ask", lambda tab: expect(tab.question).to_be_enabled()),
    "answer": ("", answer),
    "refusal": ("", lambda tab: tab.ask(UNKNOWN)),
    "options": ("", lambda tab: press(tab, "Options")),
    "models": ("#ask", lambda tab: tab.find("#models").evaluate("(node) => node.showPopover()")),
    "conversations": ("#ask", side),
    "search": ("#search", search),
    "library": ("#library", lambda tab: expect(row(tab, "Ferns")).to_be_visible()),
    "filters": ("", filters),
    "edit": ("", edit),
    "confirm": ("#library", remove),
    "paper": ("#paper", lambda tab: tab.open(f"#paper/{paper(tab, 'ferns.pdf')}")),
    "palette": ("#ask", lambda tab: tab.page.keyboard.press("Control+K")),
    "keys": ("#notes", keys),
    "reader": ("#search", read),
    "find": ("", find),
    "contents": ("", lambda tab: press(tab, "Contents")),
    "note": ("#search", note),
    "notes": ("", notes),
}


@pytest.mark.parametrize("size", [WIDE, PHONE, *LITTLE], ids=str)
def test_every_state_fits_and_is_accessible(opened: Open, live: Live, size: tuple[int, int]) -> None:
    """Wide in light and dark colours; where there is little height in a system's own, and with room to read."""
    tab = opened(live, size)
    tab.page.emulate_media(forced_colors="active" if size in LITTLE else "none")
    found = {}
    for name, (place, reach) in STATES.items():
        if place:
            tab.page.goto("about:blank")
            tab.open(place)
        reach(tab)
        found[name] = tab.scrolls_sideways()
        if size != PHONE:
            found[name] += tab.inaccessible(colours=size == WIDE)
        if size in LITTLE:
            room = 1 if name in OVER else tab.page.evaluate(ROOM)
            found[name] += [*tab.page.evaluate(CRAMPED), *([f"room: {room}"] if room < 0.6 else [])]
    tab.page.emulate_media(forced_colors="none")
    assert {name: problems for name, problems in found.items() if problems} == {}


@pytest.mark.parametrize("place", ["ask", "library", "reader"])
def test_each_tab_stop_can_be_seen_where_there_is_little_height(opened: Open, live: Live, place: str) -> None:
    tab = opened(live, (320, 256), "#library" if place == "library" else "#ask")
    if place == "reader":
        read(tab)
        tab.find(".reader-head button").focus()
    elif place == "library":
        expect(row(tab, "Ferns")).to_be_visible()
        tab.find("#main").focus()
    else:
        answer(tab)
        tab.find("#main").focus()
    last = tab.page.get_by_role("button", name="Copy BibTeX") if place == "reader" else tab.find("#models-button")
    hidden = []
    for _ in range(60):
        tab.page.keyboard.press("Tab")
        hidden += [seen for seen in [tab.page.evaluate(SEEN)] if seen]
        if last.evaluate("(node) => node === document.activeElement"):
            break
    expect(last).to_be_focused()
    assert hidden == []


def test_what_is_read_stays_in_view_when_a_phone_is_turned(opened: Open, live: Live) -> None:
    upright, sideways = {"width": 390, "height": 844}, {"width": 844, "height": 390}
    tab = opened(live, (390, 844), "#ask")
    for _ in range(3):
        answer(tab)
    second = tab.find(".turn").nth(1).locator(".asked")
    second.evaluate("(node) => node.scrollIntoView({ block: 'center' })")
    tab.page.wait_for_timeout(300)
    for turned in (sideways, upright):
        tab.page.set_viewport_size(turned)  # type: ignore[arg-type]
        expect(second).to_be_in_viewport()
        tab.page.wait_for_timeout(300)
    read(tab)
    if tab.page.get_by_role("button", name="Show as text").get_attribute("aria-pressed") == "true":
        press(tab, "Show as text")
        reader_shows(tab, 7)
    for turned in (sideways, upright):
        tab.page.set_viewport_size(turned)  # type: ignore[arg-type]
        reader_shows(tab, 7)
        expect(page_in(tab, 7)).to_be_in_viewport()


def test_the_header_fits_every_width(opened: Open, live: Live) -> None:
    tab = opened(live, (320, 700), "#ask")
    for width in (320, 360, 369, 400, 559, 560, 600, 640, 679, 680, 760, 860, 1200):
        tab.page.set_viewport_size({"width": width, "height": 700})
        outside = tab.page.evaluate(
            """() => [...document.querySelectorAll(".top :is(a, button)")]
              .filter((node) => node.checkVisibility())
              .map((node) => [node.id, node.getBoundingClientRect()])
              .filter(([_, { left, right, height }]) => left < 0 || right > innerWidth || height > 40 || height < 24)"""
        )
        assert (width, outside) == (width, [])
        assert tab.find(".top").evaluate("(node) => node.offsetHeight") < 60, width


def test_filters_and_papers_have_room_beside_an_open_paper(opened: Open, live: Live) -> None:
    tab = opened(live, WIDE, "#library")
    facets, papers = tab.find(".facets"), tab.find(".library-scroll")
    expect(facets).to_be_visible()
    tab.open(f"#library?read={paper(tab, 'ferns.pdf')}&p=3")
    expect(facets).to_be_hidden()
    press(tab, "Filters")
    for part in (facets, papers):
        box = part.bounding_box() or {"width": 0, "height": 0}
        assert (box["width"] > 400, box["height"] > 200) == (True, True)
    expect(tab.page.get_by_role("combobox", name="Sort")).to_be_visible()  # the table has no heads there
    press(tab, "Close reader")
    expect(facets).to_be_visible()
    assert papers.evaluate("(node) => node.clientWidth") > 700


def test_a_printed_conversation_has_its_sources(opened: Open, live: Live, tmp_path: Path) -> None:
    tab = opened(live, WIDE, "#ask")
    answer(tab)
    sources = tab.find(".sources")
    sources.evaluate("(node) => (node.open = false)")
    tab.page.pdf(path=tmp_path / "printed.pdf")
    with pymupdf.open(tmp_path / "printed.pdf") as document:
        printed = " ".join("".join(page.get_text() for page in document).split())
    assert "On Sea Otters, p. 1 otters.pdf" in printed
    assert "Ask again" not in printed
    expect(sources).not_to_have_attribute("open", "")
