"""The library's table and the pages of papers, in the installed Chromium."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.helpers.browser import PHONE, WIDE, Tab
from tests.helpers.live_server import Live, builtin_app
from tests.helpers.page import act, clipboard, row, rows
from tests.helpers.sectioned import CITES_OTTERS, ICE, ICE_TITLE, OTTER_TITLE, RAFT, sectioned_pdf

pytestmark = pytest.mark.slow

MEDIUM = (1024, 768)
SEALS = "SealCam: Counting Seals by Sound"
WORDS = ("replica", "otter", "kelp", "glacier", "quorum", "latency", "vector", "graph", "storage", "commit", "index")
Open = Callable[..., Tab]


@pytest.fixture(scope="module")
def live(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("library")
    sectioned_pdf(folder / "papers" / "otters.pdf", OTTER_TITLE, RAFT)
    sectioned_pdf(folder / "papers" / "ice.pdf", ICE_TITLE, ICE, CITES_OTTERS)
    seals = {name: text.replace("OtterNet", "SealCam").replace("sea otter", "seal") for name, text in RAFT.items()}
    sectioned_pdf(folder / "papers" / "seals.pdf", SEALS, seals)
    with Live(builtin_app(folder, folder / "papers")) as made:
        yield made


@pytest.fixture
def show(opened: Open, live: Live) -> Open:
    """A function that opens a place of the page, in a window of a size."""

    def open_place(size: tuple[int, int] = WIDE, place: str = "#library") -> Tab:
        tab = opened(live, size, place)
        if place.startswith("#library"):
            expect(rows(tab).first).to_be_visible()
        return tab

    return open_place


def papers(tab: Tab) -> dict[str, dict[str, Any]]:
    """The papers as the server knows them, by file."""
    listed = tab.context.request.get(f"{tab.url}/papers").json()["papers"]
    return {paper["file"]: paper for paper in listed}


def hash_of(tab: Tab) -> str:
    return str(tab.page.evaluate("location.hash"))


def titles(tab: Tab) -> list[str]:
    return rows(tab).locator(".title").all_inner_texts()


def selected(tab: Tab) -> list[str]:
    return tab.find('.table-row[aria-selected="true"] .title').all_inner_texts()


# The table


def test_the_table_is_used_with_the_keyboard(show: Open) -> None:
    tab = show()
    press = tab.page.keyboard.press
    first, second, third = titles(tab)
    tab.find("#filter").focus()
    press("ArrowDown")
    expect(row(tab, first)).to_be_focused()
    assert tab.focus_shows()
    press("j")
    expect(row(tab, second)).to_be_focused()
    press("x")
    press("j")
    press("x")
    assert selected(tab) == [second, third]
    press("x")
    press("k")
    press("k")
    assert selected(tab) == [second]
    press("Shift+End")
    assert selected(tab) == [first, second, third]
    press("Shift+K")
    assert selected(tab) == [first, second]
    expect(tab.find(".selected")).to_have_text("2 selected")
    press("Escape")
    assert selected(tab) == []
    press("Home")
    press("Enter")
    expect(tab.find("#view-paper h1")).to_be_focused()
    expect(tab.find("#view-paper h1")).to_have_text(first)
    tab.page.go_back()
    expect(row(tab, first)).to_be_focused()
    tab.find("#main").focus()  # the keys work where nothing else has the focus
    press("j")
    expect(row(tab, second)).to_be_focused()
    assert tab.find(".table-row[tabindex='0']").count() == 1  # one stop of Tab


def test_rows_are_selected_with_the_mouse(show: Open) -> None:
    tab = show()
    first, second, third = titles(tab)
    row(tab, first).locator(".state").click()
    row(tab, third).locator(".state").click(modifiers=["Shift"])
    assert selected(tab) == [first, second, third]
    row(tab, second).get_by_role("checkbox").uncheck()
    assert selected(tab) == [first, third]
    row(tab, second).locator(".state").click(modifiers=["Control"])
    row(tab, third).locator(".state").click()
    assert selected(tab) == [third]
    tab.page.get_by_role("checkbox", name="Select all").check()
    assert selected(tab) == [first, second, third]
    tab.find("#filter").fill("seal")
    expect(tab.find(".selected")).to_have_text("1 selected")  # what is not shown is not selected
    tab.page.get_by_role("button", name="Clear", exact=True).click()
    assert selected(tab) == []


def test_what_is_shown_has_an_address(show: Open) -> None:
    tab = show()
    header = tab.page.get_by_role("columnheader", name="Title")
    expect(header).to_have_attribute("aria-sort", "ascending")
    header.get_by_role("button").click()
    expect(header).to_have_attribute("aria-sort", "descending")
    assert titles(tab) == [SEALS, OTTER_TITLE, ICE_TITLE]
    tab.find("#filter").fill("sound")
    tab.find(".facets").get_by_label("Unread").check()
    expect(tab.find("#library-count")).to_have_text("2 of 3 papers")
    assert hash_of(tab) == "#library?q=sound&unread=1&sort=-title"
    tab.reload()
    expect(rows(tab)).to_have_count(2)
    assert titles(tab) == [SEALS, OTTER_TITLE]
    expect(tab.find("#filter")).to_have_value("sound")
    expect(tab.find(".facets").get_by_label("Unread")).to_be_checked()
    row(tab, SEALS).get_by_role("link").click()
    expect(tab.find("#view-paper h1")).to_have_text(SEALS)
    tab.page.go_back()
    assert titles(tab) == [SEALS, OTTER_TITLE]
    tab.page.get_by_role("button", name="Clear filters").click()
    expect(rows(tab)).to_have_count(3)
    expect(tab.find("#filter")).to_have_value("")


def test_what_is_selected_is_exported(show: Open) -> None:
    tab = show()
    row(tab, SEALS).get_by_role("checkbox").check()
    for name, file in (("Export BibTeX", "folio.bib"), ("Export CSL-JSON", "folio.json")):
        with tab.page.expect_download() as download:
            tab.page.get_by_role("link", name=name).click()
        assert download.value.suggested_filename == file
        text = download.value.path().read_text(encoding="utf-8")
        assert "SealCam" in text
        assert "OtterNet" not in text


def listed(number: int) -> str:
    """A list of made-up papers, as the server sends it."""

    def words(at: int, count: int) -> str:
        return " ".join(islice(cycle(WORDS), at * 7 % len(WORDS), at * 7 % len(WORDS) + count))

    found = [
        {
            "id": f"{at:064x}",
            "key": f"K{at}",
            "file": f"paper-{at}.pdf",
            "title": f"{words(at, 6)} {at}",
            "authors": [f"Ann {words(at, 1).title()}{at}", f"Bo Author{at % 900}"],
            "year": 1980 + at % 45,
            "venue": f"Journal of {words(at, 1)}",
            "doi": f"10.1000/{at}",
            "arxiv": "",
            "tags": [words(at, 1), words(at + 1, 1)],
            "collections": [f"Systems/{words(at, 1)}"],
            "unsure": ["title"] if at % 40 == 0 else [],
            "pages": 12,
            "chunks": 40,
            "added": "2026-10-01T00:00:00Z",
            "problems": [],
            "notice": None,
            "match": None,
            "read": "",
            "read_page": 0,
        }
        for at in range(number)
    ]
    return json.dumps({"papers": found, "failures": [], "notice": ""})


def with_papers(tab: Tab, number: int) -> Page:
    """The library with so many papers."""
    body = listed(number)
    tab.page.route("**/papers", lambda route: route.fulfill(body=body, content_type="application/json"))
    tab.page.route("**/papers?query=*", lambda route: route.fulfill(body=listed(0), content_type="application/json"))
    tab.reload()
    expect(tab.find("#library-count")).to_have_text(f"{number:,} papers")
    return tab.page


TYPE = """async (words) => {
  const field = document.querySelector("#filter");
  for (let end = 1; end <= words.length; end += 1) {
    field.value = words.slice(0, end);
    field.dispatchEvent(new Event("input"));
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  }
}"""


def test_a_keystroke_in_the_filter_is_cheap(show: Open) -> None:
    tab = show()
    page = with_papers(tab, 5000)
    devtools = tab.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})  # what other programs take is left out

    def script_s() -> float:
        metrics = devtools.send("Performance.getMetrics")["metrics"]
        return float(next(metric["value"] for metric in metrics if metric["name"] == "ScriptDuration"))

    costs = []
    for words in ("graph storage", "kelp 12", "otter"):
        before = script_s()
        page.evaluate(TYPE, words)
        costs.append((script_s() - before) / len(words))
    assert statistics.median(costs) < 0.050
    expect(tab.find("#library-count")).to_contain_text(" of 5,000 papers")


def test_many_papers_are_a_screen_of_rows(show: Open) -> None:
    tab = show()
    page = with_papers(tab, 5000)
    view = tab.find(".library-scroll").bounding_box()
    assert view is not None
    inside = page.locator(".table-rows > .table-row").evaluate_all(
        """(found, [top, bottom]) => found.map((node) => node.getBoundingClientRect())
          .filter((box) => box.top >= top && box.bottom <= bottom).length""",
        [view["y"], view["y"] + view["height"]],
    )
    assert inside >= 25
    assert rows(tab).count() < 100
    rows(tab).first.focus()
    page.keyboard.press("End")
    expect(tab.focused()).to_have_attribute("aria-rowindex", "5001")
    expect(tab.focused()).to_be_in_viewport()
    expect(tab.find(".table")).to_have_attribute("aria-rowcount", "5001")
    page.keyboard.press("Home")
    expect(tab.focused()).to_have_attribute("aria-rowindex", "2")
    expect(tab.focused()).to_be_in_viewport(ratio=1)
    assert tab.inaccessible(colours=False) == []


# Removed papers


def test_a_removed_paper_is_brought_back(opened: Open, tmp_path: Path) -> None:
    sectioned_pdf(tmp_path / "papers" / "otters.pdf", OTTER_TITLE, RAFT)
    sectioned_pdf(tmp_path / "papers" / "ice.pdf", ICE_TITLE, ICE)
    with Live(builtin_app(tmp_path, tmp_path / "papers")) as live:
        tab = opened(live, WIDE, "#library")
        act(tab, OTTER_TITLE, "Remove")
        tab.find("#confirm-do").click()
        expect(rows(tab)).to_have_count(1)
        expect(tab.find("#toast")).to_contain_text("Removed. The file is now .removed/otters.pdf")
        tab.find("#toast").get_by_role("button", name="Undo").click()
        expect(rows(tab)).to_have_count(2)
        assert (tmp_path / "papers" / "otters.pdf").is_file()

        def remove_all() -> None:
            tab.page.get_by_role("checkbox", name="Select all").check()
            tab.find(".library-actions").get_by_role("button", name="Remove").click()
            tab.find("#confirm-do").click()
            expect(tab.find("#library-count")).to_contain_text("No papers yet")

        remove_all()
        removed = tab.find(".removed")
        removed.locator("summary").click()
        expect(removed.locator("summary")).to_have_text("Removed today: 2")
        assert (tab.inaccessible(), tab.scrolls_sideways()) == ([], [])
        removed.get_by_role("button", name="Bring all back").click()
        expect(rows(tab)).to_have_count(2)
        expect(tab.find("#toast")).to_have_text("2 papers: back in your library.")
        expect(removed).to_be_hidden()
        remove_all()
        tab.reload()
        removed.locator("summary").click()
        removed.get_by_role("button", name=f"Bring back : {ICE_TITLE}").click()
        expect(rows(tab)).to_have_count(1)
        expect(removed.locator("summary")).to_have_text("Removed today: 1")
        expect(tab.find("#toast")).to_have_text(f"{ICE_TITLE}: back in your library.")
        removed.get_by_role("button", name="Delete their files now").click()
        tab.find("#confirm-do").click()
        expect(tab.find("#toast")).to_have_text("1 file deleted.")
        expect(removed).to_be_hidden()
        assert not (tmp_path / "papers" / ".removed").exists()
        tab.page.goto("about:blank")


# The page of a paper


def section(tab: Tab, name: str) -> Locator:
    heading = tab.page.get_by_role("heading", name=name, exact=True)
    return tab.find("#view-paper section").filter(has=heading)


@pytest.mark.parametrize("size", [PHONE, MEDIUM, WIDE], ids=str)
def test_a_paper_has_a_page(show: Open, size: tuple[int, int]) -> None:
    tab = show(size)
    otters = papers(tab)["otters.pdf"]["id"]
    row(tab, OTTER_TITLE).get_by_role("link").click()
    page = tab.find("#view-paper")
    expect(page.locator("h1")).to_have_text(OTTER_TITLE)
    expect(tab.page).to_have_title(f"{OTTER_TITLE} · Folio")
    expect(page.locator(".authors")).to_have_text("Ada Byte")
    expect(section(tab, "Abstract").locator(".paper-abstract")).to_have_text(RAFT["Abstract"])
    about = section(tab, "What it is about")
    expect(about.locator("figcaption")).to_have_text(["Claim", "Method", "Result", "Limits"])
    expect(about.locator("blockquote").nth(2)).to_contain_text("OtterNet counts 95 percent")
    expect(section(tab, "Outline").get_by_role("link")).to_have_text(
        ["Abstract", "1 Introduction", "2 Methods", "3 Results", "4 Limitations"]
    )
    expect(section(tab, "Cited here by").get_by_role("link")).to_have_text([ICE_TITLE])
    expect(section(tab, "Similar papers").get_by_role("link").first).to_have_text(SEALS)
    expect(section(tab, "Notes").get_by_role("status")).to_contain_text("No notes")
    for empty in ("References", "Conversations that cite it"):
        expect(section(tab, empty)).to_have_count(0)
    assert (tab.scrolls_sideways(), tab.inaccessible()) == ([], [])
    page.get_by_role("button", name="Copy BibTeX").click()
    assert "title = {" in clipboard(tab)
    assert OTTER_TITLE.split(":")[0] in clipboard(tab)

    section(tab, "Cited here by").get_by_role("link").click()
    expect(page.locator("h1")).to_have_text(ICE_TITLE)
    references = section(tab, "References")
    expect(references.locator(".about").first).to_have_text("3 references on its pages, 1 in your library.")
    expect(references.locator(".here")).to_have_text([f"{OTTER_TITLE} (2001)"])
    expect(references.locator(".here a")).to_have_attribute("href", f"#paper/{otters}")
    assert (tab.scrolls_sideways(), tab.inaccessible()) == ([], [])
    tab.page.go_back()
    expect(page.locator("h1")).to_have_text(OTTER_TITLE)


def test_what_a_paper_says_opens_its_page(show: Open) -> None:
    tab = show()
    paper = papers(tab)["otters.pdf"]["id"]
    quotes = tab.context.request.get(f"{tab.url}/papers/{paper}/about").json()["quotes"]
    tab.open(f"#paper/{paper}")
    section(tab, "What it is about").get_by_role("link").nth(1).click()
    span = f"?from={quotes[1]['start']}&to={quotes[1]['end']}"
    assert hash_of(tab) == f"#paper/{paper}/p/1{span}"
    tab.page.go_back()
    assert hash_of(tab) == f"#paper/{paper}"
    section(tab, "Outline").get_by_role("link", name="3 Results").click()
    assert re.fullmatch(f"#paper/{paper}/p/1\\?from=\\d+&to=\\d+", hash_of(tab))


def test_conversations_and_notes_about_a_paper_are_linked(show: Open) -> None:
    tab = show(WIDE, "#ask")
    tab.ask("How many sea otters does OtterNet count?")
    conversation = hash_of(tab)
    paper = papers(tab)["otters.pdf"]["id"]
    quote = "OtterNet needs neither boats nor aeroplanes."
    made = {"quotes": [{"paper": paper, "quote": quote}], "colour": "yellow", "text": "<b>mine</b>"}
    note = tab.context.request.post(f"{tab.url}/notes", data=made).json()["id"]
    tab.open(f"#paper/{paper}")
    expect(section(tab, "Notes").get_by_role("link", name="1 note")).to_have_text("1 note")
    expect(section(tab, "Notes").get_by_role("link", name="1 note")).to_have_attribute("href", f"#notes?paper={paper}")
    section(tab, "Conversations that cite it").get_by_role("link").click()
    assert hash_of(tab) == conversation
    expect(tab.find("#view-paper")).to_be_hidden()
    assert tab.context.request.delete(f"{tab.url}/notes/{note}").ok  # other tests share the library


def test_a_paper_is_edited_on_its_page(show: Open) -> None:
    tab = show()
    paper = papers(tab)["seals.pdf"]["id"]
    other = tab.context.new_page()
    other.goto(f"{tab.url}/#library")
    expect(other.locator(".table-row").filter(has_text=SEALS)).to_have_count(1)
    tab.open(f"#paper/{paper}")
    page = tab.find("#view-paper")
    page.get_by_role("button", name="Edit").click()
    form = page.get_by_role("form", name="Edit seals.pdf")
    expect(form.get_by_label("Title")).to_be_focused()
    assert (tab.scrolls_sideways(), tab.inaccessible()) == ([], [])
    hostile = '<img src=x onerror="window.ran=true"> [Otter 2014, p. 3]'
    form.get_by_label("Title").fill(hostile)
    form.get_by_label("Tags").fill("a;b\nto read")
    tab.page.keyboard.press("Control+Enter")
    shown = '<img src=x onerror="window.ran=true"> (Otter 2014, p. 3)'
    expect(page.locator("h1")).to_have_text(shown)
    expect(page.locator("h1")).to_be_focused()
    other.evaluate("dispatchEvent(new Event('focus'))")  # somebody goes to the other tab
    expect(other.locator(".table-row .title").filter(has_text="<img")).to_have_text(shown)
    page.get_by_role("list", name="Collections and tags").get_by_role("link", name="a;b").click()
    assert hash_of(tab) == "#library?tag=a%5C%3Bb"
    expect(tab.find("#library-count")).to_have_text("1 of 3 papers")
    assert not tab.page.evaluate("window.ran")
    reset = {"title": None, "tags": None}
    assert tab.context.request.patch(f"{tab.url}/papers/{paper}", data=reset).ok


def test_a_paper_is_asked_and_removed_on_its_page(opened: Open, tmp_path: Path) -> None:
    sectioned_pdf(tmp_path / "papers" / "otters.pdf", OTTER_TITLE, RAFT)
    sectioned_pdf(tmp_path / "papers" / "ice.pdf", ICE_TITLE, ICE)
    with Live(builtin_app(tmp_path, tmp_path / "papers")) as live:
        tab = opened(live, PHONE, "#library")
        row(tab, ICE_TITLE).get_by_role("link").click()
        page = tab.find("#view-paper")
        page.get_by_role("button", name="Ask this paper").click()
        expect(tab.find("#chosen .tag-name")).to_have_text([ICE_TITLE])
        tab.page.go_back()
        page.get_by_role("button", name="Remove").click()
        tab.find("#confirm-do").click()
        expect(rows(tab)).to_have_count(1)
        assert hash_of(tab) == "#library"
        tab.page.go_back()
        expect(page.get_by_role("alert")).to_contain_text("This paper is not in the index.")
        tab.page.get_by_role("button", name="Undo").click()
        tab.page.get_by_role("button", name="Bring back").click()
        expect(page.locator("h1")).to_have_text(ICE_TITLE)
        tab.expected("404")
        tab.page.goto("about:blank")


def test_where_a_paper_was_read_is_kept(show: Open) -> None:
    tab = show()
    expect(row(tab, OTTER_TITLE).locator(".state")).to_have_text("Unread")
    paper = papers(tab)["otters.pdf"]["id"]
    with tab.page.expect_response(re.compile(f"/papers/{paper}/reading")) as kept:
        tab.page.evaluate("(place) => { location.hash = place }", f"#library?read={paper}&p=1")
    assert kept.value.ok
    tab.open("#library")
    tab.reload()
    expect(row(tab, OTTER_TITLE).locator(".state")).to_have_text("p. 1 of 1")
    expect(tab.find(".facets").get_by_text("Unread")).to_be_visible()
    tab.find(".facets").get_by_label("Unread").check()
    expect(rows(tab)).to_have_count(2)


# Accessibility and layout


@pytest.mark.parametrize("size", [PHONE, MEDIUM, WIDE], ids=str)
def test_the_library_is_accessible_and_fits(show: Open, size: tuple[int, int]) -> None:
    tab = show(size)
    facets = tab.find(".facets")
    if not facets.is_visible():
        tab.page.get_by_role("button", name="Filters", exact=True).click()
    facets.get_by_label("Unread").check()
    row(tab, SEALS).get_by_role("checkbox").check()
    expect(tab.find(".selected")).to_be_visible()
    assert (tab.scrolls_sideways(), tab.inaccessible()) == ([], [])
    if size == PHONE:
        expect(tab.page.get_by_role("columnheader", name="Title")).to_be_hidden()
        tab.find("#sort").select_option("Sort by Year")
        assert hash_of(tab) == "#library?unread=1&sort=-year"
    small = """(found) => found.filter((node) => node.checkVisibility() && Math.min(node.offsetHeight,
      node.offsetWidth) < 24).map((node) => node.outerHTML)"""
    assert tab.page.locator("#view-library :is(button, a.button, select)").evaluate_all(small) == []
