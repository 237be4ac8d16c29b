"""Addresses have what is shown: a reload, a copied address, Back and a server under a path show the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest
from playwright.sync_api import Browser, expect

from folio.app import App
from tests.helpers.browser import WIDE, Tab, tabs
from tests.helpers.factories import small_papers
from tests.helpers.live_server import Live, builtin_app
from tests.helpers.page import page_in, reader_shows
from tests.helpers.path_proxy import PathProxy

pytestmark = pytest.mark.slow

TOKEN = "a-token-of-24-characters"
QUESTION = "How long is the Aletsch glacier?"
Open = Callable[..., Tab]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> App:
    folder = tmp_path_factory.mktemp("addresses")
    return builtin_app(folder, small_papers(folder / "papers"))


@pytest.fixture(scope="module")
def live(app: App) -> Iterator[Live]:
    with Live(app) as made:
        yield made


@pytest.fixture
def proxied(app: App) -> Iterator[PathProxy]:
    """A server with a token behind a proxy that has it under a path of its own."""
    proxy = PathProxy("/desk/folio")
    try:
        with Live(app, token=TOKEN, public_url=f"{proxy.url}/") as made:
            proxy.forward_to(made.url)
            yield proxy
    finally:
        proxy.close()


# A public address with a path


def test_everything_works_under_a_path(browser: Browser, proxied: PathProxy) -> None:
    with tabs(browser) as open_tab:
        tab = open_tab(proxied.url, WIDE, f"?token={TOKEN}")
        tab.expected("401")  # before the token was given
        assert tab.page.url == f"{proxied.url}/"
        (cookie,) = tab.context.cookies()
        assert (cookie["path"], cookie["httpOnly"]) == ("/desk/folio/", True)
        turn = tab.ask(QUESTION)
        turn.locator(".chip").first.click()
        reader_shows(tab, 1)
        tab.find(".views a[href^='#library']").click()
        with tab.page.expect_download() as download:
            tab.find("#export-bibtex").click()
        assert "Aletsch" in Path(download.value.path()).read_text()
        with tab.context.expect_page() as other:  # what one tab does is told to the others
            tab.page.evaluate("open(location.href)")
        expect(other.value.locator("#foot-line")).to_contain_text("2 papers")
        tab.expected("window: ")
        manifest = urljoin(tab.page.url, str(tab.find("link[rel=manifest]").get_attribute("href")))
        start = tab.context.request.get(manifest).json()["start_url"]
        assert urljoin(manifest, start) == f"{proxied.url}/"
        described = tab.context.request.get(f"{proxied.url}/openapi.json").json()
        assert described["servers"] == [{"url": "/desk/folio/"}]


# The scope of a search and of a question


def hits(tab: Tab) -> list[str]:
    expect(tab.find("#search-status")).to_contain_text(re.compile(r"\d passages? in"))
    return tab.find("#hits .source").all_inner_texts()


def test_a_search_has_its_scope_in_the_address(live: Live, opened: Open) -> None:
    tab = opened(live, WIDE, "#search?q=sea+otters")
    both = hits(tab)
    tab.find("#to-ask").click()
    tab.find("#options-button").click()
    tab.find("#paper-filter").fill("glacier")
    tab.find(".choices input").check()
    tab.find("#to-search").click()
    tab.find("#query").fill("sea otters")
    tab.page.keyboard.press("Enter")
    expect(tab.find("#search-chosen .tag-name")).to_have_text(["The Aletsch Glacier"])
    ice = hits(tab)
    assert len(both) > len(ice) > 0
    address = tab.page.url
    tab.reload()
    expect(tab.find("#search-chosen .tag-name")).to_have_text(["The Aletsch Glacier"])
    assert hits(tab) == ice
    copied = opened(live, WIDE, address.partition("/")[2].partition("/")[2].partition("/")[2])
    assert hits(copied) == ice
    tab.find("#to-library").click()
    tab.open("#search?q=sea+otters")
    assert hits(tab) == both
    expect(tab.find("#search-chosen")).to_be_hidden()
    tab.page.go_back()
    tab.page.go_back()
    expect(tab.find("#search-chosen .tag-name")).to_have_text(["The Aletsch Glacier"])
    assert hits(tab) == ice
    tab.page.go_forward()
    tab.page.go_forward()
    expect(tab.find("#search-chosen")).to_be_hidden()
    assert hits(tab) == both


def test_an_address_cannot_ask_for_what_no_field_takes(live: Live, opened: Open) -> None:
    tab = opened(live, WIDE, "#search?q=sea+otters&year=banana&n=1000000")
    assert hits(tab)
    expect(tab.find("#search-chosen")).to_be_hidden()


def test_a_year_that_is_none_clears_nothing(live: Live, opened: Open) -> None:
    tab = opened(live, WIDE, "#library?year=1900-")
    from_ = tab.page.get_by_role("textbox", name="From year")
    expect(tab.find("#library-count")).to_have_text("0 of 2 papers")
    from_.fill("abc")
    from_.press("Enter")
    expect(tab.find(".fault")).to_have_text("Enter a year of four digits.")
    expect(from_).to_have_value("abc")
    expect(tab.page).to_have_url(re.compile("year=1900-"))
    expect(tab.find("#library-count")).to_have_text("0 of 2 papers")
    tab.page.get_by_role("button", name="Clear filters").click()
    expect(tab.find(".fault")).to_have_count(0)
    expect(from_).to_have_value("")


def test_what_the_server_refuses_is_said_in_words(live: Live, opened: Open) -> None:
    tab = opened(live)
    failed = """async ([module, name, ...given]) => {
      const api = await import(module);
      return api[name](...given).then(() => "", ({ error, remedy }) => `${error} ${remedy}`);
    }"""
    for name, given, problem in (
        ("search", [{"query": "otters", "top_k": 1000}], "is more than 50"),
        ("editPapers", [{"papers": ["otters"], "add_tags": ["fur"]}], "is not the id of a paper"),
        ("addNote", [{"quotes": [], "text": 5}], "has too few entries"),
    ):
        said = tab.page.evaluate(failed, [tab.module("base/api.js"), name, *given])
        assert said == f"What was entered {problem}. Change it, then try again."
    tab.expected("422")


# The reader


def look(tab: Tab) -> tuple[str, ...]:
    """How the reader shows the page."""
    find = tab.find("#reader .reader-find input")
    return (
        tab.find("#reader .page-field").input_value(),
        tab.find("#reader select.zoom").input_value(),
        "text" if tab.find("#reader .reader-bar.as-text").count() else "picture",
        "".join(tab.find("#reader .contents:not([hidden]) [aria-pressed=true]").all_inner_texts()),
        find.input_value() if find.is_visible() else "",
    )


def place_of(tab: Tab) -> str:
    return str(tab.page.evaluate("location.hash"))


def test_the_reader_is_in_the_address_as_it_was_left(live: Live, app: App, opened: Open) -> None:
    with live.client() as client:
        glacier = next(each["id"] for each in client.get("/papers").json()["papers"] if "Aletsch" in each["title"])
    tab = opened(live, WIDE, f"#library?read={glacier}&p=1")
    reader_shows(tab, 1)
    plain = look(tab)
    tab.find("#reader select.zoom").select_option("125")
    tab.find("#reader").get_by_role("button", name="Contents").first.click()
    tab.find("#reader .contents").get_by_role("button", name="Pages").click()
    tab.find(".reader-pages").focus()
    tab.page.keyboard.press("Control+F")
    tab.page.keyboard.type("glacier")
    expect(tab.page).to_have_url(re.compile("zoom=125&pane=pages&find=glacier$"))
    left, address = look(tab), place_of(tab)
    assert left[1:] == ("125", "picture", "Pages", "glacier")
    tab.reload()
    reader_shows(tab, int(left[0]))
    expect(tab.find("#reader .page-mark.current").first).to_be_attached()
    assert (look(tab), place_of(tab)) == (left, address)
    copied = opened(live, WIDE, address)
    reader_shows(copied, int(left[0]))
    assert look(copied) == left
    tab.open(f"#library?read={glacier}&p=1")
    expect(tab.find("#reader .reader-find")).to_be_hidden()
    assert look(tab) == plain
    tab.page.go_back()
    expect(tab.find("#reader .reader-find")).to_be_visible()
    assert look(tab) == left
    tab.find("#reader").get_by_role("button", name="text", exact=False).first.click()
    expect(tab.page).to_have_url(re.compile("as=text"))
    tab.find("#reader").get_by_role("button", name="Close reader").click()
    expect(tab.find("#reader")).to_be_hidden()
    assert "zoom" not in place_of(tab)


def test_an_exported_note_links_to_its_page_and_opens(live: Live, opened: Open) -> None:
    with live.client() as client:
        glacier = next(each["id"] for each in client.get("/papers").json()["papers"] if "Aletsch" in each["title"])
        for text in ("First.", "Second."):
            client.post("/notes", json={"quotes": [{"paper": glacier, "quote": "the river Massa"}], "text": text})
        (link, _) = re.findall(r"\[Open in Folio\]\((\S+)\)", client.get("/notes.md").text)
    tab = opened(live)
    assert link.startswith(f"{live.url}/#paper/{glacier}/p/3?")
    tab.page.goto(link)
    reader_shows(tab, 3)
    expect(tab.find("#view-paper h1")).to_have_text("The Aletsch Glacier")
    expect(tab.find("#reader .note-card textarea")).to_have_value("First.")
    expect(page_in(tab, 3).locator(".page-mark.quote").first).to_be_in_viewport()
    tab.find("#reader .note-card textarea").press("Escape")
    expect(tab.find("#reader .note-card")).to_be_hidden()
    expect(tab.page).not_to_have_url(re.compile("note="))


# Links


def test_what_leads_to_a_page_is_a_link(live: Live, opened: Open) -> None:
    tab = opened(live)
    turn = tab.ask(QUESTION)
    tab.open("#search?q=sea+otters+kelp")
    expect(tab.find("#hits .source").first).to_be_visible()
    led = []
    for link in (turn.locator(".chip").first, turn.locator(".sources .source").first, tab.find("#hits .source").first):
        href = str(link.evaluate("(link) => link.href"))
        assert re.search(r"#paper/[0-9a-f]{64}/p/\d+\?from=\d+&to=\d+", href)
        led.append(href)
    with tab.context.expect_page() as other:  # as a middle click does
        tab.find("#hits .source").first.click(modifiers=["ControlOrMeta"])
    other.value.close()  # on a busy machine Playwright may miss that its navigation ended
    other_page = tab.context.new_page()
    other_page.goto(led[-1])
    expect(other_page.locator("#reader .page-mark.quote").first).to_be_attached()
    expect(tab.find("#reader")).to_be_hidden()
    tab.find("#hits .source").first.press("Enter")
    reader_shows(tab, 1)
    assert "#search?q=" in tab.page.url
