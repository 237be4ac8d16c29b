"""The page follows what changes and says what it did: names, filters, columns, Back, and papers added elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from folio.app import App
from folio.models import discovery
from tests.helpers.browser import PHONE, WIDE, Tab
from tests.helpers.factories import OTTERS, small_papers, write_pdf
from tests.helpers.live_server import Live, builtin_app, ingest
from tests.helpers.ollama_server import closed_url
from tests.helpers.page import act, clipboard, marks, reader_shows, words_on
from tests.helpers.pdfs import Spot, save

pytestmark = pytest.mark.slow

SLEEP, LENGTH = "How do sea otters sleep?", "How long is the Aletsch glacier?"
NONSENSE = "xqzzyv blorfgh"
LEFT, RIGHT = 60.0, 320.0  # points: where the columns begin
PAGE = 595.0  # points: the width of a page
LONG_TITLE = f"A Survey of the Lichens of the Churchyards of the North and of {'Their Very Slow Growth ' * 6}in Stone"


def lines(x: float, top: float, *said: str) -> list[Spot]:
    return [(x, top + 14 * number, line) for number, line in enumerate(said)]


def two_columns(folder: Path) -> Path:
    """A paper in two columns: the right one of page 1 tells of the heron, and goes on at the top of page 2."""
    prose = [f"Reed bed {number} of the delta was mapped by boat in June." for number in range(24)]
    heron = [
        "The grey heron of the delta waits for its prey",
        "without a movement for up to forty minutes, and",
        "it strikes in less than a tenth of a second. The",
    ]
    on = ["heron then carries the eel to the bank, and there", "it turns the eel until it can swallow the head first."]
    first = [*lines(LEFT, 120, *prose), *lines(RIGHT, 120, *prose[:-3]), *lines(RIGHT, 120 + 14 * 21, *heron)]
    second = [*lines(LEFT, 80, *on), *lines(LEFT, 108, *prose[:9])]
    return save(folder / "herons.pdf", [first, second], metadata={"title": "Herons of the Delta"})


@pytest.fixture(scope="module")
def app(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> App:
    folder = tmp_path_factory.mktemp("follows")
    papers = small_papers(folder / "papers")
    two_columns(papers)
    write_pdf(papers / "lichens-of-the-churchyards-of-the-north-and-of-their-slow-growth.pdf", OTTERS[1:], LONG_TITLE)
    return builtin_app(folder, papers)


@pytest.fixture(scope="module")
def live(app: App) -> Iterator[Live]:
    with Live(app) as made:
        yield made


Open = Callable[..., Tab]


@pytest.fixture
def show(opened: Open, live: Live) -> Open:
    """A function that opens a view of the page, in a window of a size."""
    return lambda size=WIDE, place="#ask": opened(live, size, place)


# Names


def test_an_edit_reaches_chips_copies_and_the_open_page(show: Open) -> None:
    tab = show()
    turn = tab.ask(SLEEP)
    chip = turn.locator(".sentence .chip").first
    expect(chip).to_contain_text("otters.pdf p.1")
    turn.locator(".sources summary").click()  # folded, and it stays so
    chip.click()
    expect(tab.find("#reader-title")).to_have_text("On Sea Otters")
    tab.find("a[href='#library']").click()
    try:
        act(tab, "On Sea Otters", "Edit")
        form = tab.page.get_by_role("dialog", name="Edit otters.pdf")
        form.get_by_label("Title").fill("Kelp Rafts")
        form.get_by_label("Authors").fill("Otter, Ann")
        form.get_by_label("Year").fill("2014")
        form.get_by_role("button", name="Save", exact=True).click()
        expect(form).to_be_hidden()
        tab.find("#to-ask").click()
        expect(chip).to_have_text("Otter 2014, p. 1: open the page")
        expect(chip).to_have_class(re.compile("shown"))  # its page is open still
        expect(tab.find("#reader-title")).to_have_text("Kelp Rafts")
        expect(turn.locator(".sources")).not_to_have_attribute("open", "")
        turn.get_by_role("button", name="Copy", exact=True).click()
        expect(tab.find("#toast")).to_have_text("Answer copied.")
        assert "[Otter 2014, p. 1]" in clipboard(tab)
        assert "1. Kelp Rafts, otters.pdf, p. 1" in clipboard(tab)
        assert "On Sea Otters" not in clipboard(tab)
        turn.get_by_role("button", name="Good answer").click()
        expect(turn.get_by_role("button", name="Good answer")).to_have_attribute("aria-pressed", "true")
    finally:
        (id,) = (each["id"] for each in papers_of(tab) if each["file"] == "otters.pdf")
        reset = {"title": None, "authors": None, "year": None}
        assert tab.context.request.patch(f"{tab.url}/papers/{id}", data=reset).ok


def papers_of(tab: Tab) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tab.context.request.get(f"{tab.url}/papers").json()["papers"]
    return found


def test_no_name_is_cut(show: Open) -> None:
    tab = show(PHONE, "#library")
    act(tab, "Lichens", "Ask this paper")
    turn = tab.ask("What is the diet of the sea otter?")
    turn.locator(".chip").first.click()
    expect(tab.find("#reader")).to_be_visible()
    cut = """(found) => found.filter((node) => getComputedStyle(node).overflow !== "visible"
      && (node.scrollWidth > node.clientWidth + 1 || node.scrollHeight > node.clientHeight + 1))
      .map((node) => node.className || node.id)"""
    for shown in ("#chosen .tag-name", ".chip .key", "#reader-title", "#foot-line", "#conversations .title"):
        assert tab.find(shown).count() >= 1, shown
        assert tab.page.locator(shown).evaluate_all(cut) == [], shown
    assert tab.scrolls_sideways() == []


# What was asked


def test_a_filter_belongs_to_its_conversation(show: Open) -> None:
    tab = show(WIDE, "#library")
    act(tab, "On Sea Otters", "Ask this paper")
    turn = tab.ask(LENGTH)
    expect(turn.locator(".refusal")).to_contain_text("Not found in “On Sea Otters”.")
    follow_up = tab.ask(SLEEP)
    expect(follow_up.locator(".asked-only:not([hidden])")).to_contain_text("Asked: “On Sea Otters”")
    kept = tab.page.evaluate("location.hash.split('?')[0]")
    tab.page.get_by_role("button", name="New conversation").click()
    expect(tab.find("#chosen")).to_be_hidden()
    expect(tab.ask(LENGTH).locator(".sentences")).to_contain_text("23 kilometres")
    tab.find(f"#conversations a[href$='{kept}']").click()
    expect(tab.find("#chosen .tag-name")).to_have_text(["On Sea Otters"])
    tab.reload()
    expect(tab.find("#chosen .tag-name")).to_have_text(["On Sea Otters"])
    expect(tab.find(".turn .asked-only:not([hidden])").last).to_contain_text("Asked: “On Sea Otters”")
    tab.find(".turn").first.get_by_role("button", name="Ask all papers").click()
    expect(tab.find(".turn").nth(2).locator(".sentences")).to_contain_text("23 kilometres")
    expect(tab.find("#chosen")).to_be_hidden()


def test_a_remark_is_shown_at_once_and_after_a_reload(show: Open) -> None:
    tab = show()
    turn = tab.ask("How many papers are there?")
    said = turn.locator(".remark")
    expect(said).to_have_text(re.compile("^The library has 4 papers"))
    expect(tab.find("#said")).to_have_text(said.inner_text())
    tab.reload()
    expect(said).to_be_visible()


def test_an_export_has_the_papers_that_are_listed(show: Open) -> None:
    tab = show(WIDE, "#library")
    link = tab.find("#export-bibtex")
    expect(link).to_have_text("Export BibTeX")
    tab.find("#filter").fill("Aletsch")
    expect(link).to_have_text("Export BibTeX of 1 paper")
    for each, name in ((link, "folio.bib"), (tab.find("#export-csl"), "folio.json")):
        with tab.page.expect_download() as download:
            each.click()
        assert download.value.suggested_filename == name
        text = download.value.path().read_text(encoding="utf-8")
        assert "Aletsch" in text
        assert "Otters" not in text
    tab.find("#filter").fill(NONSENSE)
    expect(link).to_be_hidden()


def test_nonsense_finds_nothing_best_and_nothing_related(show: Open) -> None:
    tab = show(WIDE, "#library")
    with tab.page.expect_response(re.compile("/papers\\?query=")) as asked:
        tab.find("#filter").fill(NONSENSE)
    assert asked.value.json()["papers"] == []
    expect(tab.find("#library-count")).to_have_text("0 of 4 papers")
    expect(tab.find("#related")).to_be_hidden()
    tab.open("#search")
    search(tab, NONSENSE)
    expect(tab.find("#search-status")).to_have_text("None of these words is in your papers. Try other words.")
    expect(tab.find("#hits > li")).to_have_count(0)
    search(tab, "automobile")
    expect(tab.find("#search-status")).to_contain_text("No passage has these words. These are the nearest in meaning.")
    expect(tab.find("#search-status")).not_to_contain_text("best")
    search(tab, "glacier")
    expect(tab.find("#search-status")).to_contain_text("best first.")


def search(tab: Tab, words: str) -> None:
    tab.find("#query").fill(words)
    tab.find("#query").press("Enter")


# The page of a paper


def on_yellow(tab: Tab, app: App, page: int) -> str:
    """The words of a page of the paper on herons that are marked."""
    return words_on(app.settings.PAPERS_DIR / "herons.pdf", page, marks(tab, page))


def test_every_page_of_a_passage_is_marked(show: Open, app: App) -> None:
    tab = show(WIDE, "#search")
    search(tab, "grey heron waits for its prey and strikes")
    hit = tab.find("#hits > li").first
    expect(hit.locator(".source")).to_have_text("Herons of the Delta, pp. 1–2")
    hit.locator(".source").click()
    reader_shows(tab, 1)
    assert on_yellow(tab, app, 1).endswith("it strikes in less than a tenth of a second. The")
    tab.page.get_by_role("button", name="Next page").click()
    reader_shows(tab, 2)
    assert on_yellow(tab, app, 2).startswith("heron then carries the eel to the bank, and there it turns the eel")

    tab.open("#ask")
    turn = tab.ask("How long does the grey heron of the delta wait for its prey?")
    turn.locator(".sentence .chip").first.click()
    reader_shows(tab, 1)
    expect(tab.find("#reader [role=status].unseen")).to_have_text("Page 1 of 2, the quote is marked.")
    assert min(left for left, *_ in marks(tab, 1)) > RIGHT - 5  # the quote is in the right column


# A phone


def test_back_closes_what_is_open_on_a_phone(show: Open) -> None:
    tab = show(PHONE)
    turn = tab.ask(SLEEP)
    conversation = tab.page.evaluate("location.hash")
    chip = turn.locator(".sentence .chip").first
    for leave in ("back", "button", "back"):
        chip.click()
        expect(tab.find("#reader")).to_be_visible()
        if leave == "back":
            tab.page.go_back()
        else:
            tab.page.get_by_role("button", name="Close reader").click()
        expect(tab.find("#reader")).to_be_hidden()
        assert tab.page.evaluate("location.hash") == conversation
        expect(turn).to_be_visible()
    tab.page.get_by_role("button", name="Conversations").click()
    expect(tab.find("#side")).to_be_visible()
    tab.page.go_back()
    expect(tab.find("#side")).to_be_hidden()
    expect(turn).to_be_visible()
    tab.find("a[href='#library']").click()
    act(tab, "On Sea Otters", "Edit")
    expect(tab.find("#edit")).to_be_visible()
    tab.page.go_back()
    expect(tab.find("#edit")).to_be_hidden()
    expect(tab.find("#view-library")).to_be_visible()
    tab.page.go_back()
    expect(turn).to_be_visible()
    # A conversation that is chosen in the list opens, and Back leads to the one before.
    tab.page.get_by_role("button", name="Conversations").click()
    tab.page.get_by_role("button", name="New conversation").click()
    expect(tab.find("#welcome")).to_be_visible()
    expect(tab.find("#side")).to_be_hidden()
    assert tab.page.evaluate("location.hash") == "#ask"


def test_a_problem_is_shown_where_the_button_is(show: Open) -> None:
    tab = show(PHONE, "#library")
    problem = tab.find(".library-problem").get_by_role("alert")

    def fail(route: Route) -> None:
        error = "It cannot be removed." if route.request.method == "POST" else "The library is busy."
        route.fulfill(status=409, json={"error": error, "remedy": "Run `python ingest.py` again."})

    tab.page.route(re.compile("/papers/[0-9a-f]{64}$"), fail)
    act(tab, "Herons", "Edit")
    expect(problem).to_contain_text("The library is busy.")
    tab.page.route(re.compile("/removed\\?"), fail)
    expect(problem).to_be_in_viewport()
    expect(problem.locator("code")).to_have_text("python ingest.py")
    act(tab, "Herons", "Remove")
    tab.find("#confirm-do").click()
    expect(problem).to_have_text(re.compile("^It cannot be removed."))
    expect(problem).to_be_in_viewport()
    tab.page.unroute_all()
    problem.get_by_role("button", name="Try again").click()
    tab.find("#confirm-cancel").click()
    act(tab, "Herons", "Edit")
    form = tab.find("#edit")
    form.get_by_label("Year").fill("3014")
    form.get_by_label("Title").focus()
    tab.page.keyboard.press("Tab")
    form.locator("form").evaluate("(form) => form.requestSubmit()")
    expect(form.get_by_role("alert")).to_contain_text("The year 3014 is not between")
    expect(form.get_by_role("alert")).to_be_in_viewport(ratio=0.9)
    tab.expected("409", "400")


# What the page says


def test_models_keys_and_commands_are_described(show: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "PORTS", (int(closed_url().rpartition(":")[2]),))
    tab = show()
    views = tab.find(".views a").count()
    expect(tab.find(".keys kbd").nth(1)).to_have_text(f"Alt+1 … {views}")
    tab.page.keyboard.press(f"Alt+{views}")
    expect(tab.find("#view-tables")).to_be_visible()
    tab.find("#models-button").click()
    said = tab.find("#models-text")
    expect(said).to_contain_text("Your settings choose built-in models. Others can be chosen in Settings.")
    expect(said).not_to_contain_text("best models")
    said.get_by_role("button", name="Find model servers").click()
    expect(said.get_by_role("status")).to_have_text("No model server answers at the usual ports of this computer.")
    tab.page.keyboard.press("Escape")

    def with_commands(route: Route) -> None:
        found = route.fetch(headers={"accept": "application/json"}).json()  # whole, also if the page has the list
        found["failures"] = [{"file": "a.pdf", "error": "It is `damaged`.", "remedy": "Run `python ingest.py`."}]
        route.fulfill(json=found)

    tab.page.route("**/papers", with_commands)
    tab.reload()
    tab.open("#library")
    expect(tab.find("#failures code")).to_have_text(["damaged", "python ingest.py"])
    assert "`" not in tab.find("main").inner_text()


def test_a_wrong_year_is_explained_in_words(show: Open) -> None:
    tab = show()
    tab.page.get_by_role("button", name="Options").click()
    tab.page.get_by_label("Years", exact=True).fill("soon")
    tab.page.get_by_label("Years", exact=True).press("Enter")
    expect(tab.find("#filter-year-fault")).to_have_text("Enter years such as 2014, 2010-2015, 2020- or -1999.")
    assert tab.inaccessible() == []
    tab.question.fill(SLEEP)
    tab.page.keyboard.press("Enter")  # what would be asked is not what was entered
    expect(tab.page.get_by_label("Years", exact=True)).to_be_focused()
    tab.page.get_by_label("Years", exact=True).fill("2014; 2020-")
    tab.page.get_by_label("Years", exact=True).press("Enter")
    expect(tab.find(".fault")).to_have_count(0)
    expect(tab.find("#chosen .tag-name")).to_have_text(["Years: 2014; 2020-"])


def test_papers_added_elsewhere_appear(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    app = builtin_app(tmp_path, tmp_path / "papers")
    with Live(app) as live:
        tab = opened(live)
        tab.page.clock.install()
        tab.reload()
        expect(tab.page.get_by_role("heading", name="Add your papers first")).to_be_visible()
        write_pdf(tmp_path / "papers" / "otters.pdf", OTTERS, "On Sea Otters")
        assert ingest(app) == ["added"]  # as in the terminal
        tab.page.evaluate("dispatchEvent(new Event('focus'))")  # somebody comes back to the page
        expect(tab.find("#welcome")).to_contain_text("Ask about 1 paper.")
        expect(tab.question).to_be_enabled()
        small_papers(tmp_path / "papers")
        assert sorted(ingest(app)) == ["added", "replaced"]
        tab.open("#library")
        tab.page.clock.fast_forward(31_000)  # and without
        expect(tab.find("#library-count")).to_have_text("2 papers")
        expect(tab.find("#foot-line")).to_contain_text("2 papers")
        tab.page.goto("about:blank")  # before its server ends
