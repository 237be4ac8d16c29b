"""Finding papers on the page, adding them, and their citations: in the installed Chromium, over a loopback stand-in."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from folio.services.addresses import RATES
from folio.system import workers
from tests.helpers.browser import PHONE, WIDE, Tab, sizes
from tests.helpers.citing_papers import FISH, ICE_TITLE, OTTER_TITLE, WATER, citing_papers, stand_in_app
from tests.helpers.factories import GLACIERS, write_pdf
from tests.helpers.fakes import read_here
from tests.helpers.five_services import five_services
from tests.helpers.live_server import Live, until
from tests.helpers.page import reader_shows, rows
from tests.helpers.page import row as paper_row
from tests.helpers.source_records import openalex_list, openalex_work
from tests.helpers.source_server import Answer, SourceServer, json_answer

pytestmark = pytest.mark.slow

RUN = "window.ran=true"
HOSTILE = f"Otters <img src=x onerror={RUN} \u202e and"  # a tag that is closed is taken out when it comes
HALF = Answer(b"%PDF-1.7\n" + b"x" * 5000, drips=True, length=10**6)
Open = Callable[..., Tab]


@pytest.fixture(autouse=True)
def read_without_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "run_guarded", read_here)


def offered(server: SourceServer, number: int, title: str, author: str = "Ada Byte", **more: Any) -> dict[str, Any]:
    """A work of OpenAlex that has a PDF somewhere."""
    link = {"is_oa": True, "pdf_url": f"{server.url}/files/{number}"}
    work = openalex_work(number, title, author, best_oa_location=link, **more)
    server.add(f"/openalex/works/W{number}", json_answer(work))
    return work


def row(tab: Tab, title: str) -> Locator:
    return tab.find("#found > li").filter(has_text=title)


def search(tab: Tab, words: str) -> None:
    expect(tab.find("#find-query")).to_be_visible()
    tab.page.keyboard.press("/")
    expect(tab.find("#find-query")).to_be_focused()
    tab.find("#find-query").fill(words)
    tab.page.keyboard.press("Enter")


def citations(tab: Tab) -> Locator:
    """What services know of a paper, on its page."""
    return tab.find("#view-paper .citations")


def test_off_the_page_says_so_and_asks_nobody(opened: Open, server: SourceServer, tmp_path: Path) -> None:
    off = "Off: this Folio contacts no service on the internet."
    start = "Turn it on in Settings, under Internet."
    with Live(citing_papers(tmp_path, server)) as live:
        tab = opened(live, PHONE, "#ask")
        tab.page.keyboard.press("Alt+4")
        expect(tab.find("#find-note")).to_have_text(f"{off} {start}")
        assert tab.page.title() == "Find papers · Folio"
        expect(tab.find("#find")).to_be_hidden()
        assert (tab.inaccessible(), tab.scrolls_sideways()) == ([], [])
        tab.open("#ask")
        expect(tab.ask("Who painted the Sistine chapel?").locator(".refused, .missing")).to_have_count(1)
        tab.open("#library")
        rows(tab).first.get_by_role("link").click()
        citations(tab).locator("summary").click()
        unknown = f"What this paper cites has not been looked up yet. {off} {start}"
        expect(citations(tab).get_by_role("status")).to_have_text(unknown)
        expect(citations(tab).get_by_role("button")).to_be_hidden()
    assert server.asked == []


def test_what_is_typed_stays_when_the_library_changes(opened: Open, server: SourceServer, tmp_path: Path) -> None:
    with Live(citing_papers(tmp_path, server), is_online=True) as live, live.client() as client:
        tab = opened(live, WIDE, "#find")
        expect(tab.find("#foot-line")).to_contain_text("2 papers")
        tab.page.get_by_label("Since", exact=True).fill("2015")
        tab.page.get_by_label("Free to read").check()
        client.delete(f"/papers/{client.get('/papers').json()['papers'][0]['id']}")
        expect(tab.find("#foot-line")).to_contain_text("1 paper ")
        expect(tab.page.get_by_label("Since", exact=True)).to_have_value("2015")
        expect(tab.page.get_by_label("Free to read")).to_be_checked()
    assert server.asked == []


@pytest.mark.parametrize("size", sizes(PHONE, WIDE), ids=str)
def test_papers_are_found_filtered_and_added(
    opened: Open, server: SourceServer, tmp_path: Path, size: tuple[int, int]
) -> None:
    app = citing_papers(tmp_path, server)
    here = openalex_work(12, ICE_TITLE, "Ada Ice", doi="10.1234/ice")
    works = [
        here,
        offered(server, 13, HOSTILE, f"Cy <svg onload={RUN}", is_retracted=True),
        offered(server, 21, "Half a File"),
    ]
    server.add("/files/21", HALF)
    server.add("/openalex/works", json_answer(openalex_list(*works)), parameters={"search": "otters"})
    with Live(app, is_online=True) as live:
        tab = opened(live, size, "#find")
        expect(tab.find("#find-note")).to_contain_text("On: searches go to OpenAlex")
        tab.page.get_by_label("Since", exact=True).fill("2015")
        tab.page.get_by_label("Free to read").check()
        search(tab, "otters")
        expect(tab.find("#find-status")).to_have_text("3 works, 1 in your library.")
        expect(row(tab, ICE_TITLE)).to_contain_text("In your library")
        expect(row(tab, ICE_TITLE).get_by_role("button", name="Add")).to_have_count(0)
        hostile = row(tab, "onerror")
        expect(hostile.locator("h2")).to_contain_text(f"<img src=x onerror={RUN}")
        expect(hostile).to_contain_text("Retracted")
        expect(hostile.get_by_role("link")).to_have_attribute("href", "https://openalex.org/W13")
        expect(hostile.get_by_role("link")).to_have_attribute("rel", "noopener noreferrer")
        searches = [each.parameters for each in server.asked if each.parameters.get("search") == "otters"]
        filters = searches[-1]["filter"]
        assert "2015" in filters
        assert "is_oa:true" in filters
        assert (tab.inaccessible(colours=size == WIDE), tab.scrolls_sideways()) == ([], [])
        tab.find("#find-query").focus()
        for _ in range(14):  # the filters, "Add all", and the first works
            tab.page.keyboard.press("Tab")
            assert tab.focus_shows(), tab.page.evaluate("document.activeElement.outerHTML")

        add = hostile.get_by_role("button", name="Add")
        add.focus()
        tab.page.keyboard.press("Enter")
        expect(hostile).to_contain_text("Added, 1 page")
        expect(hostile.get_by_role("button", name="Ask this paper")).to_be_focused()
        expect(tab.find("#foot-line")).to_contain_text("3 papers")

        half = row(tab, "Half a File")
        half.get_by_role("button", name="Add").click()
        expect(half).to_contain_text("Downloading")
        until(lambda: "/files/21" in server.paths())
        half.get_by_role("button", name="Stop").click()
        expect(half).to_contain_text("Stopped.")
        server.add("/files/21", Answer(b"<!doctype html><title>Are you a robot?</title>"))
        half.get_by_role("button", name="Add").click()
        expect(half.get_by_role("alert")).to_contain_text("are you a robot?")
        expect(half.get_by_role("alert").get_by_role("button", name="Try again")).to_be_focused()
        assert (tab.inaccessible(), tab.scrolls_sideways()) == ([], [])

        tab.find("#find-source").select_option("arXiv")  # asks again, and arXiv is not here
        expect(tab.page.get_by_label("Cited at least")).to_be_disabled()
        expect(tab.find("#find-problem")).to_contain_text("arXiv sent something that cannot be read.")
        tab.find("#find-problem").get_by_role("button", name="Try again").wait_for()
        assert tab.find("main script, main svg[onload], img[onerror]").count() == 0
        assert tab.page.evaluate("window.ran") is None
        assert len(tab.context.pages) == 1
        tab.expected("status of 502")
    assert {path.name for path in (tmp_path / "papers").iterdir()} >= {"glaciers.pdf", "otters.pdf"}


def test_citations_are_looked_up_added_and_listed(opened: Open, server: SourceServer, tmp_path: Path) -> None:
    app = citing_papers(tmp_path, server)
    with Live(app, is_online=True) as live:
        tab = opened(live, PHONE, "#library")
        paper_row(tab, OTTER_TITLE).get_by_role("link").click()
        expect(citations(tab)).to_be_visible()
        citations(tab).locator("summary").first.focus()
        tab.page.keyboard.press("Enter")
        citations(tab).get_by_role("button", name="Look up references").click()
        status = citations(tab).get_by_role("status").first
        expect(status).to_have_text("4 references, cited by 1 work, among the works looked up.")
        named = citations(tab).locator(".citation-lists > ol").first.locator("h2")
        expect(named).to_have_text([ICE_TITLE, WATER, FISH])
        expect(citations(tab).get_by_text("1 work known only by identifier")).to_be_visible()
        assert (tab.inaccessible(), tab.scrolls_sideways()) == ([], [])
        fish = citations(tab).locator(".works > li").filter(has_text=FISH)
        fish.get_by_role("button", name="Add").click()
        expect(fish).to_contain_text("Added, 1 page")
        here = citations(tab).locator(".works > li").filter(has_text=ICE_TITLE)
        here.get_by_role("link", name=re.compile("^Open")).click()
        expect(tab.find("#reader-title")).to_have_text(ICE_TITLE)
        reader_shows(tab, 1)
        tab.page.go_back()
        tab.open("#library")
        expect(rows(tab)).to_have_count(3)
        expect(tab.find(".between .size")).to_have_text("3 papers")
        tab.find(".between summary").click()
        cites = tab.find(".between-papers > li").filter(has_text=f"{OTTER_TITLE}cites").locator(".cites li")
        expect(cites).to_have_text([ICE_TITLE, FISH])  # by title
        assert (tab.inaccessible(), tab.scrolls_sideways()) == ([], [])
    assert not [path for path in tab.asked if not path.startswith((f"{live.url}/", "blob:", "data:"))]


def test_a_question_without_an_answer_leads_to_papers_and_is_asked_again(
    opened: Open, server: SourceServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RATES, "arxiv", (100, 1.0))
    five_services(tmp_path, server)
    write_pdf(tmp_path / "papers" / "glaciers.pdf", GLACIERS, ICE_TITLE)
    with Live(stand_in_app(tmp_path, server), is_online=True) as live, live.client() as client:
        tab = opened(live, PHONE, "#ask")
        turn = tab.ask("How dense is the fur of a sea otter?")
        expect(turn).to_contain_text("Not found in the provided papers.")
        box = turn.locator(".missing")
        box.get_by_role("button", name="Search for papers").click()
        expect(box.get_by_label("Search 1")).to_have_value("dense fur sea otter")
        expect(box.get_by_label("Search 1")).to_be_focused()
        assert server.asked == []
        box.get_by_label("Search 1").fill("otter fur")
        box.get_by_label("Search 2").fill("")
        box.get_by_role("button", name="Send").click()
        found = box.locator(".works > li")
        expect(found).to_have_count(4)
        expect(found.first).to_contain_text("The fur of a sea otter is dense .")
        assert "otter fur" in {asked.parameters.get("search") for asked in server.asked}
        assert "" not in {asked.parameters.get("search") for asked in server.asked}
        assert (tab.inaccessible(), tab.scrolls_sideways()) == ([], [])
        found.first.get_by_role("button", name="Add").click()
        expect(found.first).to_contain_text("Added")
        expect(tab.find("#foot-line")).to_contain_text("2 papers")
        expect(box).to_be_visible()  # it stays when the library changes
        box.get_by_role("button", name="Ask again").click()
        expect(tab.find(".turn").last).to_contain_text("The fur of a sea otter has about 155,000 hairs")
        expect(tab.find(".turn").last.locator(".missing")).to_have_count(0)
        assert len(client.get("/papers").json()["papers"]) == 2
