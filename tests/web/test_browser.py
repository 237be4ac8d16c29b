"""The page in the installed Chromium, on a running server with the built-in models."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pymupdf
import pytest
from playwright.sync_api import Browser, Locator, expect

from folio.app import App
from folio.papers.metadata import Field, Metadata
from folio.pdf.render import quote_boxes
from tests.helpers.browser import PHONE, WIDE, Tab, drop, yellow
from tests.helpers.factories import small_papers
from tests.helpers.live_server import Live, builtin_app, until
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.page import act, clipboard, marks, page_in, reader_shows, row, rows, words_on
from tests.helpers.paths import SAMPLE
from tests.helpers.pdfs import save

pytestmark = pytest.mark.slow

# The sample paper as a paper like any other: the file that Folio ships with steps back where there are others
COPY = SAMPLE.read_bytes() + b"\n% A copy\n"
LOST_POWER = "What happens to the index of Folio when the computer loses power during an ingest?"  # its sample paper
RERANKS, OTHERWISE = "Which cross-encoder reranks the passages?", "And what takes over when its files are not there?"
WITHOUT = "When the files of the cross-encoder are not on the computer, nothing waits for a network."
UNKNOWN = "Who won the football world cup in 1998?"
SLEEP = "How do sea otters sleep?"
LOW = (1440, 600)  # a window so low that the reader must scroll to the quote

# A paper that would take over the page if its text were inserted as markup
RUN = "window.ran=true"
HOSTILE = f"<img src=x onerror={RUN}>.pdf"
HOSTILE_TITLE = f"On <script>{RUN}</script> lichens \u202eand \u2067their <img src=x onerror={RUN}> growth"
HOSTILE_AUTHOR = f"Ada <svg onload={RUN}> Byte"
LONG = "lichenometry" * 42
GROWTH = "How was the growth of the lichen measured?"
GROWTH_SAID = f"Its growth was measured with <script>{RUN}</script> callipers and [rulers](javascript:{RUN})."
LONGEST = "Which name did the author of the survey give to the yellow species?"


def hostile_paper(folder: Path) -> Path:
    lines = [
        f"The yellow lichen <img src=x onerror={RUN}> grows three millimetres each year on bare granite.",
        GROWTH_SAID,
        "The author of the survey gave to the yellow species the name",
        *(LONG[at : at + 84] for at in range(0, len(LONG), 84)),
        "as it is found on many gravestones of the parish.",
    ]
    drawn = [(40.0, 80.0 + 16 * number, line) for number, line in enumerate(lines)]
    return save(folder / HOSTILE, [drawn], metadata={"title": HOSTILE_TITLE, "author": HOSTILE_AUTHOR})


@pytest.fixture(scope="module")
def ollama(browser: Browser) -> Iterator[OllamaStandIn]:
    with OllamaStandIn(dimension=64) as server:
        yield server


@pytest.fixture(scope="module")
def app(browser: Browser, ollama: OllamaStandIn, tmp_path_factory: pytest.TempPathFactory) -> App:
    """The sample paper, two small ones and the hostile one; extractive answers, or the chat model if chosen."""
    folder = tmp_path_factory.mktemp("web")
    papers = small_papers(folder / "papers")
    (papers / SAMPLE.name).write_bytes(COPY)
    hostile_paper(papers)
    return builtin_app(folder, papers, OLLAMA_HOST=ollama.url, ANSWER_FORMAT="statements")


@pytest.fixture(scope="module")
def live(app: App) -> Iterator[Live]:
    with Live(app) as made:
        yield made


Open = Callable[..., Tab]


@pytest.fixture
def tab(opened: Open, live: Live) -> Tab:
    return opened(live)


# From adding a paper to the marked quote


def test_a_paper_is_added_and_opened_at_the_marked_quote(browser: Browser, opened: Open, tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    small = small_papers(tmp_path / "elsewhere")
    with Live(builtin_app(tmp_path, tmp_path / "papers")) as live:
        tab = opened(live, LOW)
        expect(tab.page.get_by_role("heading", name="Add your papers first")).to_be_visible()
        expect(tab.question).to_be_disabled()
        with tab.page.expect_file_chooser() as chooser:
            tab.find("#welcome").get_by_text("choose files").click()
        chooser.value.set_files(SAMPLE)
        expect(tab.find(".upload")).to_contain_text("Added: How Folio Answers")
        expect(rows(tab)).to_have_count(1)
        drop(tab, small / "otters.pdf")
        expect(tab.find(".upload").nth(1)).to_contain_text("Added: On Sea Otters, 2 pages.")
        drop(tab, SAMPLE)
        expect(tab.find(".upload").nth(2)).to_contain_text("Already in the library")
        expect(rows(tab)).to_have_count(2)
        expect(tab.find("#library-count")).to_have_text("2 papers")
        expect(tab.find("#foot-line")).to_have_text(
            "2 papers · search: all-MiniLM-L6-v2 (built in) · ranking: built in · answers: extractive (built in)"
        )
        assert sorted(path.name for path in (tmp_path / "papers").iterdir()) == ["folio-sample.pdf", "otters.pdf"]

        tab.page.keyboard.press("Alt+1")
        turn = tab.ask(LOST_POWER)
        expect(turn.locator(".sentence").first).to_contain_text("at most the paper in flight")
        chip = turn.locator(".sentence .chip").first
        expect(chip).to_contain_text(re.compile(r"p\. ?3"))
        chip.click()
        reader_shows(tab, 3)
        assert_quote_is_marked(tab, page=3)
        assert_pages_turn(tab, chip)


def assert_quote_is_marked(tab: Tab, page: int) -> None:
    boxes = marks(tab, page)
    quote = unicodedata.normalize("NFKC", words_on(SAMPLE, page, boxes))
    assert quote.startswith("A paper lands in the library in one transaction")  # the paragraph's beginning
    assert "A crash, a kill signal or a power failure costs" in quote
    with pymupdf.open(SAMPLE) as paper:
        (expected,) = quote_boxes(paper[page - 1], [quote])
        width = paper[page - 1].rect.width
    assert np.array(boxes) == pytest.approx(np.array(expected), abs=2)
    # They are scrolled into view: the yellow in the window is where the boxes are.
    sheet, view = (one.bounding_box() for one in (page_in(tab, page).locator(".page-sheet"), tab.find(".reader-pages")))
    assert sheet
    assert view
    assert sheet["y"] < view["y"]
    top, left = max(view["y"], sheet["y"]), max(view["x"], sheet["x"])
    bottom = min(view["y"] + view["height"], sheet["y"] + sheet["height"])
    right = min(view["x"] + view["width"], sheet["x"] + sheet["width"])
    seen = yellow(tab.seen(x=left, y=top, width=right - left, height=bottom - top))
    scale = sheet["width"] / width
    rows, columns = np.nonzero(seen)
    aside, above = left - sheet["x"], top - sheet["y"]
    assert ((columns.min() + aside) / scale, (columns.max() + aside) / scale) == pytest.approx(
        (min(box[0] for box in boxes), max(box[2] for box in boxes)), abs=2
    )
    assert ((rows.min() + above) / scale, (rows.max() + above) / scale) == pytest.approx(
        (min(box[1] for box in boxes), max(box[3] for box in boxes)), abs=2
    )


def assert_pages_turn(tab: Tab, chip: Locator) -> None:
    press = tab.page.keyboard.press
    tab.page.get_by_role("button", name="Next page").click()
    reader_shows(tab, 4)
    assert marks(tab, 4) == []
    link = tab.page.get_by_role("link", name="Open PDF")
    expect(link).to_have_attribute("href", re.compile("^pdf/[0-9a-f]{64}#page=4$"))
    press("ArrowLeft")
    reader_shows(tab, 3)
    press("ArrowRight")
    reader_shows(tab, 4)
    tab.page.get_by_role("button", name="Back to the quote on p. 3").click()
    reader_shows(tab, 3)
    expect(link).to_have_attribute("href", re.compile("^pdf/[0-9a-f]{64}#page=3$"))
    expect(link).to_have_attribute("target", "_blank")
    pdf = tab.context.request.get(f"{tab.url}/{link.get_attribute('href')}")
    assert pdf.headers["content-type"] == "application/pdf"
    assert pdf.body().startswith(SAMPLE.read_bytes())
    tab.find(".reader-pages").focus()
    press("Escape")
    expect(tab.find("#reader")).to_be_hidden()
    expect(chip).to_be_focused()


# Conversations


def test_a_conversation_is_continued_stored_exported_and_deleted(tab: Tab) -> None:
    tab.ask(RERANKS)
    turn = tab.ask(OTHERWISE)
    expect(turn.locator(".understood")).to_contain_text("How Folio Answers’ files")
    expect(turn.locator(".sentences")).to_contain_text(WITHOUT)
    address = tab.page.url
    identity = re.search(r"#c/([\w-]{16})$", address)
    assert identity

    tab.page.get_by_role("button", name="New conversation").click()
    expect(tab.find(".turn")).to_have_count(0)
    expect(tab.question).to_be_focused()
    turn = tab.ask(SLEEP)
    expect(turn.locator(".understood")).to_be_hidden()
    expect(turn.locator(".sentences")).to_contain_text("on their backs")
    expect(tab.find("#conversations li").first).to_contain_text(SLEEP)

    entry = tab.find(f"#conversations li:has(a[href$='{identity[1]}'])")
    kept = entry.get_by_role("link")
    expect(kept).to_contain_text("2 questions")
    kept.click()
    expect(tab.find(".turn")).to_have_count(2)
    assert tab.page.url == address
    expect(kept).to_have_attribute("aria-current", "page")
    good = tab.find(".turn").last.get_by_role("button", name="Good answer")
    good.click()
    expect(good).to_have_attribute("aria-pressed", "true")
    tab.reload()
    expect(tab.find(".turn")).to_have_count(2)
    expect(good).to_have_attribute("aria-pressed", "true")
    expect(tab.find(".turn h2").first).to_have_text(RERANKS)
    assert tab.page.title() == f"{RERANKS} · Folio"

    with tab.page.expect_download() as download:
        tab.page.get_by_role("link", name="Markdown").click()
    name = r"folio-which-cross-encoder-reranks-the-passages-\d{4}-\d\d-\d\d\.md"
    assert re.fullmatch(name, download.value.suggested_filename)
    exported = " ".join(download.value.path().read_text(encoding="utf-8").split())
    for part in (RERANKS, OTHERWISE, WITHOUT, "folio-sample.pdf", "p. 4"):
        assert part in exported

    entry.get_by_role("button", name="Change").click()
    entry.get_by_role("button", name="Delete").click()
    tab.find("#toast").get_by_role("button", name="Undo").click()
    expect(kept).to_be_visible()
    entry.get_by_role("button", name="Change").click()
    entry.get_by_role("button", name="Delete").click()
    expect(kept).to_have_count(0)
    expect(tab.page.get_by_role("heading", name="What do you want to know?")).to_be_visible()
    tab.page.goto(address)
    tab.reload()
    expect(tab.page.get_by_role("alert")).to_contain_text("There is no such conversation")
    tab.expected("status of 404")


def test_a_citation_is_copied_as_text_and_as_bibtex(tab: Tab) -> None:
    tab.ask(LOST_POWER).locator(".chip").first.click()
    reader_shows(tab, 3)
    tab.page.get_by_role("button", name="Copy citation").click()
    expect(tab.find("#toast")).to_have_text("Citation copied.")
    copied = clipboard(tab)
    assert copied.startswith("“A paper lands in the library in one transaction, whole or not at all.")
    assert copied.endswith("How Folio Answers: Page-True Evidence from a Folder of Papers. folio-sample.pdf, p. 3.")
    tab.page.get_by_role("button", name="Copy BibTeX").click()
    expect(tab.find("#toast")).to_have_text("BibTeX entry copied.")
    entry = clipboard(tab)
    assert "\n@misc{" in entry  # below what is not sure
    assert "title = {" in entry
    assert entry.count("{") == entry.count("}")


def test_a_report_on_chosen_papers(tab: Tab) -> None:
    tab.page.get_by_role("button", name="Options").click()
    tab.page.get_by_label("Style", exact=True).select_option("Report with headings")
    tab.find(".choices").get_by_label("On Sea Otters").check()
    tab.page.get_by_role("button", name="Options").click()
    expect(tab.find("#chosen .tag-name")).to_have_text(["On Sea Otters", "report"])
    turn = tab.ask("How do sea otters sleep, and what do they eat?")
    expect(turn.locator("h3").first).to_have_text("Summary")
    expect(turn.locator(".references")).to_contain_text("On Sea Otters. otters.pdf")
    expect(tab.ask(LOST_POWER).locator(".refused")).to_be_visible()
    tab.page.get_by_role("button", name="Remove: On Sea Otters").click()
    tab.page.get_by_role("button", name="Remove: report").click()
    expect(tab.find("#chosen")).to_be_hidden()
    expect(tab.ask(LOST_POWER).locator(".sentences")).to_contain_text("at most the paper in flight")


# Sections

SLOPE, STEEP = "How steep is the slope below the terminus?", "The slope below the terminus is twelve degrees steep."
CAPTION = "Figure 2: Where the slope was surveyed with a theodolite."
CITED = "A. Alpine. The slope below the terminus of other glaciers is steep. Journal of Ice, 1987."


def survey(folder: Path) -> Path:
    """A paper with sections, a caption in one of them, and references that say much about its question."""
    folder.mkdir(parents=True)
    document = pymupdf.open()
    page = document.new_page(width=595, height=842)
    drawn = (
        (90, "hebo", 18, "A Survey of Slopes"), (130, "hebo", 13, "1 Introduction"),
        (150, "helv", 10, "Glaciers move down their valleys, and the valleys are of many shapes."),
        (190, "hebo", 13, "2 Methods"), (210, "helv", 10, "The slope was surveyed in the summer of 1990."),
        (250, "helv", 10, CAPTION), (290, "hebo", 13, "3 Results"), (310, "helv", 10, STEEP),
        (350, "hebo", 13, "References"), *((370 + 15 * n, "helv", 10, f"[{n}] {CITED}") for n in range(1, 9)),
    )  # fmt: skip
    for top, font, size, text in drawn:
        page.insert_text((72, top), text, fontname=font, fontsize=size)
    document.save(folder / "survey.pdf")
    return folder


@pytest.fixture(scope="module")
def sectioned(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("sections")
    with Live(builtin_app(folder, survey(folder / "papers"), CHUNK_SIZE="160", CHUNK_OVERLAP="0")) as made:
        yield made


def test_the_page_names_the_section_of_hits_citations_and_evidence(opened: Open, sectioned: Live) -> None:
    tab = opened(sectioned)
    turn = tab.ask(SLOPE)
    expect(turn.locator(".sentences")).to_contain_text("twelve degrees steep")
    expect(turn.locator(".sources")).to_contain_text("§3 Results")
    tab.open("#search")
    tab.find("#query").fill("slope surveyed theodolite")
    tab.find("#search").get_by_role("button", name="Search").click()
    expect(tab.find("#hits .about").first).to_contain_text("survey.pdf · ")
    expect(tab.find("#hits")).to_contain_text("§2 Methods")
    expect(tab.find("#hits")).not_to_contain_text("Journal of Ice")


def test_the_options_restrict_what_is_searched(opened: Open, sectioned: Live) -> None:
    tab = opened(sectioned, PHONE)
    tab.page.get_by_role("button", name="Options").click()
    section = tab.page.get_by_label("Section", exact=True)
    section.fill("references")
    # What is typed stays while the options are shown anew
    tab.page.evaluate("(module) => import(module).then((state) => state.loadHealth())", tab.module("base/state.js"))
    section.press("Enter")
    expect(tab.find("#chosen .tag-name")).to_have_text(["Section: references"])
    box = tab.find("#options-panel").bounding_box()
    assert box is not None
    assert 0 <= box["x"] <= box["x"] + box["width"] <= PHONE[0]
    turn = tab.ask(SLOPE)
    expect(turn).to_contain_text("References")
    expect(turn).not_to_contain_text("twelve degrees")
    tab.page.get_by_role("button", name="Options").click()
    tab.page.get_by_label("Years", exact=True).fill("-1800")
    tab.page.get_by_label("Years", exact=True).press("Enter")
    expect(tab.find("#chosen .tag-name")).to_have_text(["Years: -1800", "Section: references"])
    tab.question.fill(SLOPE)
    tab.page.keyboard.press("Enter")
    expect(tab.find(".problem")).to_contain_text("No paper fits the year.")
    tab.page.get_by_role("button", name="Remove: Section: references").click()
    expect(section).to_have_value("")
    tab.expected("404")


# Without an answer


def test_a_refusal_shows_the_closest_passages(tab: Tab) -> None:
    turn = tab.ask(UNKNOWN)
    expect(turn.locator(".refused")).to_have_text("Not found in the provided papers.")
    expect(turn.locator(".sentence")).to_have_count(0)
    turn.locator(".closest .source").first.click()
    expect(tab.find("#reader")).to_be_visible()
    expect(tab.find("#reader .page-picture img").first).to_be_visible()
    expect(tab.find("#reader .page-mark.quote").first).to_be_visible()


def test_a_slow_answer_is_stopped_and_asked_again(tab: Tab, ollama: OllamaStandIn) -> None:
    tab.page.get_by_role("button", name="Options").click()
    tab.page.get_by_label("Model", exact=True).select_option("llama3.1:8b")
    left = ollama.left
    ollama.faults.endless, ollama.faults.between_pieces_s = "nothing", 0.02
    tab.question.fill(SLEEP)
    tab.page.keyboard.press("Enter")
    turn = tab.find(".turn")
    expect(turn.get_by_text("Reading")).to_be_visible()
    expect(tab.find("#send")).to_be_hidden()
    tab.page.get_by_role("button", name="Stop").click()
    expect(turn).to_contain_text("This answer was stopped.")
    expect(tab.question).to_be_focused()
    until(lambda: ollama.left > left)
    ollama.faults.endless, ollama.faults.between_pieces_s = "", 0.0
    turn.get_by_role("button", name="Ask again").click()
    expect(turn.locator(".sentence")).to_contain_text("Sea otters sleep on their backs")
    expect(turn.locator(".made")).to_contain_text("llama3.1:8b")
    expect(tab.find(".turn")).to_have_count(1)


def test_a_lost_server_is_reported_and_can_be_retried(app: App, opened: Open) -> None:
    with Live(app) as first:
        tab = opened(first)
        tab.tolerated("500")  # a picture that is loaded ahead is cut off with the server
        tab.ask(SLEEP)
    tab.question.fill(LOST_POWER)
    tab.page.keyboard.press("Enter")
    turn = tab.find(".turn").nth(1)
    expect(turn.get_by_role("alert")).to_contain_text("Folio is not responding.")
    expect(turn.get_by_role("alert")).to_contain_text("still running in its terminal")
    expect(tab.find("#foot-line")).to_have_text("Folio is not responding")
    tab.find("a[href='#search']").click()
    tab.find("#query").fill("otters")
    tab.page.keyboard.press("Enter")
    expect(tab.find("#search-problem")).to_contain_text("Folio is not responding.")
    with Live(app, port=first.port):
        tab.find("#search-problem").get_by_role("button", name="Try again").click()
        expect(tab.find("#hits > li").first).to_contain_text("On Sea Otters")
        expect(tab.find("#foot-line")).to_contain_text("papers")
        tab.page.keyboard.press("Alt+1")
        turn.get_by_role("button", name="Ask again").click()
        expect(tab.find(".turn").nth(1).locator(".sentences")).to_contain_text("at most the paper in flight")


# A hostile paper


def test_text_of_a_paper_is_shown_and_never_runs(opened: Open, live: Live) -> None:
    tab = opened(live, PHONE)
    tab.open("#library")
    entry = row(tab, "lichens")
    expect(entry.locator(".title")).to_contain_text(f"On <script>{RUN}</script> lichens")
    expect(entry.locator(".authors")).to_have_text("")  # nobody is called so
    act(tab, "lichens", "Remove")
    expect(tab.find("#confirm-text")).to_contain_text(f"<img src=x onerror={RUN}> growth")
    tab.page.get_by_role("button", name="Cancel").click()
    entry.get_by_role("link").click()
    expect(tab.find("#view-paper h1")).to_contain_text(f"On <script>{RUN}</script> lichens")
    expect(tab.find("#view-paper .about").first).to_contain_text(HOSTILE)
    tab.find("#view-paper").get_by_role("button", name="Ask this paper").click()
    expect(tab.find("#chosen")).to_contain_text(f"<script>{RUN}</script>")
    turn = tab.ask(GROWTH)
    expect(turn.locator(".sentence").first).to_contain_text(GROWTH_SAID)
    expect(turn.locator("blockquote")).to_have_count(0)  # the excerpt stands there once
    assert tab.scrolls_sideways() == []
    turn.locator(".chip").first.click()
    reader_shows(tab, 1)
    expect(tab.find("#reader-title")).to_contain_text(f"<script>{RUN}</script>")
    assert marks(tab, 1)
    assert tab.scrolls_sideways() == []
    tab.page.keyboard.press("Escape")
    turn = tab.ask(LONGEST)
    expect(turn.locator(".made")).to_contain_text("extractive")  # a word of 500 letters is no sentence to show
    assert tab.scrolls_sideways() == []
    tab.ask(f"What does <img src=x onerror={RUN}> \u202e {LONG} <script>{RUN}</script> mean?")
    assert tab.scrolls_sideways() == []
    tab.open("#search")
    tab.page.get_by_label("Keywords or a question").fill(f"lichen <script>{RUN}</script> .* [ (")
    tab.page.keyboard.press("Enter")
    expect(tab.find("#hits .source").first).to_contain_text(f"<script>{RUN}</script>")
    expect(tab.find("#hits .passage").first).to_contain_text(GROWTH_SAID)
    assert tab.scrolls_sideways() == []
    assert tab.find("main script, main svg[onload], img[onerror], a[href^='javascript:']").count() == 0
    assert tab.page.evaluate("window.ran") is None


def test_injected_markup_does_not_run_and_is_reported(tab: Tab) -> None:
    tab.page.evaluate(
        """(run) => document.body.insertAdjacentHTML("beforeend",
          `<img src="data:," onerror="${run}"><a id="trap" href="javascript:${run}">x</a>
           <img src="https://example.org/a.png">`)""",
        RUN,
    )
    tab.page.evaluate("document.querySelector('#trap').click()")
    until(lambda: (tab.page.evaluate("0"), len(tab.problems) >= 3)[1])
    assert tab.page.evaluate("window.ran") is None
    tab.expected("script-src", "img-src", "console: inline", "https://example.org/a.png")


# Keyboard


def move_focus(tab: Tab, target: Locator, key: str = "Tab", most: int = 40) -> None:
    """Presses the key until the target has the focus; asserts that the focus is visible at every step."""
    for _ in range(most):
        tab.page.keyboard.press(key)
        assert tab.focus_shows(), tab.page.evaluate("document.activeElement.outerHTML")
        if target.evaluate("(node) => node === document.activeElement"):
            return
    raise AssertionError("the target was not reached")


def test_asking_and_opening_a_page_by_keyboard_alone(tab: Tab) -> None:
    press = tab.page.keyboard.press
    question = tab.question
    expect(question).to_be_focused()
    expect(question).to_be_enabled()
    move_focus(tab, tab.find("#models-button"))
    press("/")
    expect(question).to_be_focused()
    assert tab.focus_shows()
    tab.page.keyboard.type(LOST_POWER)
    press("Enter")
    chip = tab.find(".chip").first
    expect(tab.find(".actions")).to_be_visible()
    move_focus(tab, chip, "Shift+Tab")
    press("Enter")
    reader_shows(tab, 3)
    expect(tab.find(".reader-pages")).to_be_focused()
    move_focus(tab, tab.page.get_by_role("button", name="Copy BibTeX"))
    press("Escape")
    expect(tab.find("#reader")).to_be_hidden()
    expect(tab.find(".with-reader")).to_have_count(0)  # the browser has told the page, and nothing moves any more
    expect(chip).to_be_focused()
    assert tab.focus_shows()
    press("/")
    expect(question).to_be_focused()


@pytest.mark.parametrize("view", ["ask", "search", "library"])
def test_focus_is_visible_at_every_tab_stop(tab: Tab, view: str) -> None:
    tab.open(f"#{view}")
    if view == "ask":
        options(tab)
    elif view == "search":
        search(tab)
    else:
        expect(rows(tab)).to_have_count(4)
    # The elements around the views are the same in each.
    tab.find("#skip" if view == "ask" else "#main").focus()
    move_focus(tab, tab.find("#models-button"), most=80)


# Accessibility and layout


def search(tab: Tab) -> None:
    tab.page.get_by_label("Keywords or a question").fill("otters and their fur")
    tab.page.keyboard.press("Enter")
    expect(tab.find("#hits > li").first).to_be_visible()


def options(tab: Tab) -> None:
    tab.page.get_by_role("button", name="Options").click()
    tab.find(".choices input").first.check()


@pytest.mark.parametrize("size", [PHONE, WIDE], ids=["phone", "wide"])
def test_the_empty_library_is_accessible_and_fits(opened: Open, tmp_path: Path, size: tuple[int, int]) -> None:
    (tmp_path / "papers").mkdir()
    with Live(builtin_app(tmp_path, tmp_path / "papers")) as live:
        tab = opened(live, size)
        for place, text in (("#ask", "Add your papers first"), ("#library", "No papers yet. Papers that you add")):
            tab.open(place)
            expect(tab.find(f"#view-{place[1:]}").get_by_text(text)).to_be_visible()
            assert tab.scrolls_sideways() == []
            assert tab.inaccessible() == []


def test_a_paper_from_zotero_opens_there(browser: Browser, opened: Open, tmp_path: Path) -> None:
    app = builtin_app(tmp_path, small_papers(tmp_path / "papers"))
    with closing(app.open_library()) as library:
        for paper in library.papers():
            if paper.title == "On Sea Otters":
                item = Field("library/items/ABCD2345", "zotero", True)
                library.set_metadata(paper.id, "zotero", Metadata(zotero=item))
    link = "zotero://open-pdf/library/items/ABCD2345?page="
    with Live(app) as live:
        tab = opened(live)
        answer = tab.ask(SLEEP)
        expect(answer.locator(".sources").get_by_role("link", name="Open in Zotero").first).to_have_attribute(
            "href", f"{link}1"
        )
        answer.get_by_role("button", name="Copy Zotero note").click()
        expect(tab.find("#toast")).to_have_text("Zotero note copied.")
        read = "navigator.clipboard.read().then(([item]) => item.getType('text/html')).then((blob) => blob.text())"
        assert f'<a href="{link}1">' in tab.page.evaluate(read)
        assert "rafts of kelp" in clipboard(tab)
        answer.locator(".chip").first.click()
        reader_shows(tab, 1)
        in_zotero = tab.find(".reader-foot").locator("a").filter(has_text="Open in Zotero")
        expect(in_zotero).to_have_attribute("href", f"{link}1")
        tab.page.get_by_role("button", name="Next page").click()
        expect(in_zotero).to_have_attribute("href", f"{link}2")
        other = tab.ask("How long is the Aletsch glacier?")
        expect(other.get_by_role("button", name="Copy Zotero note")).to_have_count(0)
        other.locator(".chip").first.click()
        reader_shows(tab, 1)
        expect(in_zotero).to_be_hidden()
