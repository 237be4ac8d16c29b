"""The page as a whole: what changes elsewhere is shown, keys, the palette, addresses, and the page as an app."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from folio.app import App
from tests.helpers.browser import PHONE, WIDE, Tab
from tests.helpers.factories import OTTERS, small_papers, write_pdf
from tests.helpers.live_server import Live, builtin_app, until
from tests.helpers.page import reader_shows
from tests.helpers.paths import ROOT

pytestmark = pytest.mark.slow

SLEEP = "How do sea otters sleep?"
MIDDLE = (1024, 800)
HOSTILE = '<img src=x onerror="alert(1)"> \u202eevil [Ghost 1999, p. 9] ' + "long " * 60
# Another process that reads the folder of papers into the library, as a terminal does
INGEST = """
import sys
from pathlib import Path
from tests.helpers.live_server import builtin_app
folder = Path(sys.argv[1])
builtin_app(folder, folder / "papers")
"""

Open = Callable[..., Tab]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> App:
    folder = tmp_path_factory.mktemp("shell")
    small_papers(folder / "papers")
    write_pdf(folder / "papers" / "hostile.pdf", OTTERS[1:], HOSTILE)
    return builtin_app(folder, folder / "papers")


@pytest.fixture(scope="module")
def live(app: App) -> Iterator[Live]:
    with Live(app) as made:
        yield made


@pytest.fixture
def show(opened: Open, live: Live) -> Open:
    """A function that opens a view of the page, in a window of a size."""
    return lambda size=WIDE, place="#ask": opened(live, size, place)


def palette(tab: Tab) -> Locator:
    return tab.page.get_by_role("dialog", name="Find anything")


def options(tab: Tab) -> Locator:
    return palette(tab).get_by_role("option")


def in_group(tab: Tab, name: str) -> Locator:
    return palette(tab).get_by_role("group", name=name).get_by_role("option")


# What changes elsewhere


def connections(page: Page) -> list[str]:
    """The addresses of the events that a tab asks for from now on."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/events") else None)
    return asked


def test_two_tabs_and_a_terminal_stay_in_step(opened: Open, tmp_path: Path) -> None:
    small_papers(tmp_path / "papers")
    with Live(builtin_app(tmp_path, tmp_path / "papers")) as live:
        tab = opened(live, WIDE, "#library")
        line = "#foot-line"
        expect(tab.find(line)).to_contain_text("2 papers")
        other = tab.context.new_page()
        asked = connections(other)
        other.goto(f"{live.url}/#library")
        expect(other.locator(line)).to_contain_text("2 papers")
        write_pdf(tmp_path / "papers" / "fourth.pdf", OTTERS[:1], "The Fourth")
        subprocess.run([sys.executable, "-c", INGEST, str(tmp_path)], cwd=ROOT, check=False, timeout=120)
        for page in (tab.page, other):
            expect(page.locator(line)).to_contain_text("3 papers")
            expect(page.locator("#view-library")).to_contain_text("The Fourth")
        assert asked == []  # the first tab has the connection
        with other.expect_request("**/events"):
            tab.page.goto("about:blank")
        with live.client() as client:
            (id,) = (each["id"] for each in client.get("/papers").json()["papers"] if each["title"] == "The Fourth")
            assert client.patch(f"/papers/{id}", json={"title": "Another Name"}).status_code == 200
        expect(other.locator("#view-library")).to_contain_text("Another Name")


def test_a_load_that_fails_once_is_tried_again(opened: Open, live: Live) -> None:
    """What shows that Folio is not responding would stay, though the server tells its changes."""
    tab = opened(live, WIDE, "#library")
    expect(tab.find("#foot-line")).to_contain_text("3 papers")
    tab.page.route("**/health", lambda route: route.abort("aborted"), times=2)
    tab.page.reload()
    expect(tab.find("#foot-line")).to_contain_text("not responding")
    expect(tab.find("#foot-line")).to_contain_text("3 papers")


def test_without_locks_each_tab_has_its_own_connection(opened: Open, live: Live) -> None:
    tab = opened(live)
    without = (
        "Object.defineProperty(Navigator.prototype, 'locks', { value: undefined });delete Navigator.prototype.locks;"
    )
    for _ in range(2):
        page = tab.context.new_page()
        page.add_init_script(without)
        with page.expect_request("**/events"):
            page.goto(f"{live.url}/#ask")


# Addresses


def test_a_search_has_an_address_and_back_returns_to_the_one_before(show: Open) -> None:
    tab = show(place="#search?q=otters&n=20")
    expect(tab.find("#query")).to_have_value("otters")
    expect(tab.find("#search-count")).to_have_value("20")
    expect(tab.find("#hits")).to_contain_text("On Sea Otters")
    expect(tab.page).to_have_title("otters · Search · Folio")
    tab.find("#query").fill("glacier ice")
    tab.find("#query").press("Enter")
    expect(tab.find("#hits .hit").first).to_contain_text("The Aletsch Glacier")
    assert tab.page.evaluate("location.hash") == "#search?q=glacier+ice&n=20"
    tab.page.go_back()
    expect(tab.find("#hits .hit").first).to_contain_text("Otters")
    tab.page.go_forward()
    tab.reload()
    expect(tab.find("#query")).to_have_value("glacier ice")
    expect(tab.find("#hits .hit").first).to_contain_text("The Aletsch Glacier")


def test_the_navigation_names_the_view(show: Open) -> None:
    tab = show(place="#library")
    for place in ("#ask", "#search?q=otters", "#library", "#find", "#notes"):
        tab.open(place)
        view, _, _ = place.partition("?")
        expect(tab.find(".views a[aria-current=page]")).to_have_attribute("href", view)
        expect(tab.find(f"#view-{view[1:]}")).to_be_visible()
        expect(tab.find("main > section:visible")).to_have_count(1)
        expect(tab.page).to_have_title(re.compile("Folio$"))


# The palette


def test_the_palette_finds_papers_passages_conversations_and_commands(show: Open) -> None:
    tab = show()
    tab.ask(SLEEP)
    tab.page.keyboard.press("Control+K")
    field = palette(tab).get_by_role("combobox")
    expect(field).to_be_focused()
    expect(palette(tab).get_by_text("New conversation")).to_be_visible()
    tab.page.keyboard.type("sea otters")
    expect(palette(tab).get_by_role("group", name="Papers").get_by_role("option").first).to_contain_text(
        "On Sea Otters"
    )
    expect(palette(tab).get_by_role("group", name="Conversations").get_by_role("option")).to_have_count(1)
    expect(palette(tab).get_by_role("group", name="Passages").get_by_role("option").first).to_contain_text("p. 1")
    assert tab.inaccessible() == []
    selected = palette(tab).locator("[role=option][aria-selected=true]")
    expect(selected).to_have_count(1)
    assert field.get_attribute("aria-activedescendant") == selected.get_attribute("id")
    tab.page.keyboard.press("ArrowUp")  # around to the last, a passage
    assert field.get_attribute("aria-activedescendant") == options(tab).last.get_attribute("id")
    tab.page.keyboard.press("Enter")
    expect(palette(tab)).to_be_hidden()
    expect(tab.find("#reader-title")).to_be_visible()
    tab.page.keyboard.press("Escape")
    tab.page.keyboard.press("Control+K")
    tab.page.keyboard.type("aletsch")
    tab.page.keyboard.press("Enter")
    expect(tab.find("#view-paper")).to_contain_text("The Aletsch Glacier")
    tab.page.keyboard.press("Control+K")
    tab.page.keyboard.type("show notes")
    tab.page.keyboard.press("Enter")
    expect(tab.find("#view-notes")).to_be_visible()
    tab.page.keyboard.press("Control+K")
    tab.page.keyboard.type("xqzzyv blorfgh")
    expect(palette(tab).get_by_role("status")).to_have_text("Nothing fits these words.")
    tab.page.keyboard.press("Escape")
    expect(palette(tab)).to_be_hidden()


def test_the_palette_shows_hostile_titles_as_text(show: Open) -> None:
    tab = show(PHONE)
    tab.page.get_by_role("button", name="Find anything").click()
    tab.page.keyboard.type("evil")
    option = options(tab).first
    expect(option).to_contain_text("<img src=x")
    expect(option).to_contain_text("(Ghost 1999, p. 9)")
    assert "\u202e" not in option.inner_text()
    assert tab.scrolls_sideways() == []


def test_an_open_palette_takes_papers_that_come_late(show: Open) -> None:
    tab = show()
    waiting: list[Route] = []
    tab.page.route(re.compile(r"/papers$"), lambda route: waiting.append(route))
    tab.reload()

    def opens() -> bool:
        tab.page.keyboard.press("Control+K")  # it may come before the page has started
        return palette(tab).is_visible()

    until(opens)
    tab.page.keyboard.type("aletsch")
    expect(palette(tab).get_by_role("group", name="Passages").get_by_role("option").first).to_be_visible()
    expect(palette(tab).get_by_role("group", name="Papers")).to_have_count(0)
    while waiting:
        waiting.pop().continue_()
    expect(palette(tab).get_by_role("group", name="Papers")).to_contain_text("The Aletsch Glacier")


MEASURE = """async () => {
  const field = document.querySelector(".palette-field");
  const times = [];
  for (const word of ["deep", "deep learning", "zhang 2019", "a", "x", "paper 4", "nothing like it"]) {
    field.value = word;
    const before = performance.now();
    field.dispatchEvent(new Event("input"));
    times.push(performance.now() - before);
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
  return times;
}"""


def test_a_keystroke_in_the_palette_is_quick_with_5000_papers(show: Open) -> None:
    tab = show()

    def many(route: Route) -> None:
        reply = route.fetch(headers={}).json()
        (paper, *_) = reply["papers"]
        reply["papers"] = [
            {
                **paper,
                "id": f"{number:064x}",
                "title": f"Paper {number} on deep learning of rivers",
                "authors": [f"Ann Zhang{number}", "Bo Li"],
                "year": 1990 + number % 30,
            }
            for number in range(5000)
        ]
        route.fulfill(json=reply, headers={"ETag": '"many"'})

    tab.page.route("**/papers", many)
    tab.reload()
    tab.page.wait_for_function(
        "document.querySelectorAll('#view-library tbody tr, #view-library [role=row]').length > 0"
    )
    tab.page.keyboard.press("Control+K")
    times = tab.page.evaluate(MEASURE)
    assert sorted(times)[len(times) // 2] < 50, times


# Keys


def test_keys_are_listed_and_work(show: Open) -> None:
    tab = show(place="#search?q=otters")
    expect(tab.find("#hits .hit").first).to_be_visible()
    tab.page.keyboard.type("?")  # into the field, which has the focus
    expect(tab.find("#query")).to_have_value("otters?")
    tab.find("#main").focus()
    tab.page.keyboard.press("?")
    keys = tab.page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(keys).to_contain_text("Open the next citation")
    for number, name in enumerate(("Ask", "Search", "Library", "Find papers", "Notes"), 1):
        row = keys.locator("dt").filter(has_text=f"Alt+{number}").locator("xpath=following-sibling::dd[1]")
        expect(row).to_have_text(f"Show {name}")
    assert tab.inaccessible() == []
    tab.page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    for digit, view in enumerate(("ask", "search", "library", "find", "notes"), 1):
        tab.page.keyboard.press(f"Alt+{digit}")
        expect(tab.find(f"#view-{view}")).to_be_visible()
    tab.page.keyboard.press("Alt+2")
    tab.find("#main").focus()
    tab.page.keyboard.press("/")
    expect(tab.find("#query")).to_be_focused()


def test_n_and_p_step_through_the_citations(show: Open) -> None:
    tab = show()
    turn = tab.ask("What do sea otters do, and how long is the Aletsch glacier?")
    chips = turn.locator(".sentences .chip")
    count = chips.count()
    assert count >= 2
    tab.find("#main").focus()
    tab.page.keyboard.press("n")
    expect(chips.nth(0)).to_have_class(re.compile("shown"))
    reader_shows(tab, 1)
    tab.page.keyboard.press("n")
    expect(chips.nth(1)).to_have_class(re.compile("shown"))
    tab.page.keyboard.press("p")
    expect(chips.nth(0)).to_have_class(re.compile("shown"))
    tab.page.keyboard.press("p")
    expect(chips.nth(count - 1)).to_have_class(re.compile("shown"))
    tab.question.focus()
    tab.page.keyboard.type("no pun")
    expect(tab.question).to_have_value("no pun")


# The page as an app


def test_the_page_can_be_installed(show: Open) -> None:
    tab = show()
    devtools = tab.context.new_cdp_session(tab.page)
    devtools.send("Page.enable")
    manifest = devtools.send("Page.getAppManifest")
    assert manifest["errors"] == []
    told: dict[str, Any] = json.loads(manifest["data"])
    assert (told["name"], told["display"], urljoin(manifest["url"], told["start_url"])) == (
        "Folio", "standalone", f"{tab.url}/",
    )  # fmt: skip
    for icon in told["icons"]:
        reply = tab.context.request.get(urljoin(manifest["url"], icon["src"]))
        assert reply.headers["content-type"] == "image/png"
        assert struct.unpack(">II", reply.body()[16:24]) == tuple(map(int, icon["sizes"].split("x")))
    assert tab.page.evaluate("navigator.serviceWorker.getRegistrations().then((all) => all.length)") == 0


# Every state


@pytest.mark.parametrize("size", [WIDE, MIDDLE, PHONE], ids=["wide", "middle", "phone"])
def test_palette_and_keys_are_accessible_and_fit(show: Open, size: tuple[int, int]) -> None:
    tab = show(size)
    tab.page.keyboard.press("Control+K")
    tab.page.keyboard.type("otters")
    expect(options(tab).first).to_be_visible()
    assert (tab.inaccessible(), tab.scrolls_sideways()) == ([], [])
    tab.page.keyboard.press("Escape")
    tab.page.get_by_role("button", name="Find anything").click()
    tab.page.keyboard.type("keyboard")
    tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    assert (tab.inaccessible(), tab.scrolls_sideways()) == ([], [])
