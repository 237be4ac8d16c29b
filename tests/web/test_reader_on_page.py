"""The reader in Chromium: pages, marks, what is selected, found and noted; tabs, keys, a phone, and a lost server."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pymupdf
import pytest
from playwright.sync_api import Browser, Locator, Route, expect

from folio.app import App
from tests.helpers.browser import WIDE, Tab, sizes
from tests.helpers.factories import small_papers, write_pdf
from tests.helpers.live_server import Live, builtin_app, until
from tests.helpers.page import STAYS, clipboard, marks, page_in, reader_shows, words_on
from tests.helpers.paths import SAMPLE
from tests.helpers.pdfs import save

pytestmark = pytest.mark.slow

PHONE, TABLET = (390, 844), (1024, 768)
SLEEP = "How do sea otters sleep?"
LEFT, RIGHT = 60.0, 320.0  # points: where the columns begin
PAGES = 12
RUN = "window.ran=true"
HOSTILE_TITLE = f"\u202eMoss <img src=x onerror={RUN}> [Otter 2014, p. 3]"
HOSTILE = f"The moss <img src=x onerror={RUN}> grows on [Otter 2014, p. 3] the north side of each tree."
HEBREW = "לוטרת הים חיה בים ואוכלת קיפודי ים וסרטנים בכל יום ויום"


def ferns(folder: Path) -> Path:
    """Page 1 has two columns, with a word broken between them, and links to page 9 and to an address."""
    prose = [f"Fern bed {number:02d} of the valley was mapped by boat in June." for number in range(40)]
    left = [*prose[:36], "The royal fern of the valley opens its photosyn-"]
    right = ["thetic leaves before the month of April, and the", "frost harms them then.", *prose[3:36]]
    spots = [(x, 100 + 15 * n, line) for x, lines in ((LEFT, left), (RIGHT, right)) for n, line in enumerate(lines)]
    more = [
        [
            (LEFT, 100 + 15 * n, f"Page {page} line {n} of the ferns tells of spores and of {page} islands.")
            for n in range(40)
        ]
        for page in range(2, PAGES + 1)
    ]
    path = save(folder / "ferns.pdf", [spots, *more], metadata={"title": "Ferns of the Valley"})
    with pymupdf.open(path) as document:
        page = document[0]
        page.insert_link({"kind": pymupdf.LINK_GOTO, "from": pymupdf.Rect(60, 60, 200, 80), "page": 8})
        page.insert_link(
            {"kind": pymupdf.LINK_URI, "from": pymupdf.Rect(320, 60, 460, 80), "uri": "https://ferns.example/a"}
        )
        document.saveIncr()
    return path


LINES = {"On the tides of kelp": 610, "Rafts of kelp in bays": 630, "Ice and kelp": 650}


def citing(folder: Path) -> Path:
    """Page 1 cites by a link, "[1]", without one, "[2, 3]", and by a name. Page 3 has the references, below prose."""
    cites = [
        "The tide moves the kelp in each bay of the coast [1].",
        "Its rafts are known [2, 3], as [96, 192] are not.",
        "Seals were counted (Walrus & Whale, 2010).",
    ]
    spots = [(LEFT, 200 + 15 * n, line) for n, line in enumerate(cites)]
    entries = [
        "[1] A. Otter and B. Seal. On the tides of kelp. Journal of Tides, 24(4):1-9, 2001.",
        "[2] C. Walrus and D. Whale. Rafts of kelp in bays. Journal of Rafts, 3(1):10-19, 2010.",
        "[3] E. Penguin. Ice and kelp, revisited. Journal of Ice, 21(2):79-85, 1999.",
    ]
    prose = [(LEFT, 100 + 15 * n, f"Line {n} of the page tells of the bay.") for n in range(30)]
    path = save(folder / "citing.pdf", [spots, prose, prose], metadata={"title": "Kelp and Tides"})
    with pymupdf.open(path) as document:
        (box,) = document[0].search_for("[1]")
        document[2].insert_text((LEFT, 595), "References", fontsize=14, fontname="hebo")
        for n, entry in enumerate(entries):
            document[2].insert_text((LEFT, 620 + 20 * n), entry, fontsize=10)
        place = pymupdf.Point(LEFT, 610)
        document[0].insert_link({"kind": pymupdf.LINK_GOTO, "from": box, "page": 2, "to": place, "zoom": 0})
        document.saveIncr()
    return path


def hebrew(folder: Path) -> Path:
    document = pymupdf.open()
    for _ in range(2):
        document.new_page().insert_htmlbox(
            (72, 72, 500, 400), "".join(f'<p dir="rtl">{HEBREW} {n}</p>' for n in range(9))
        )
    document.set_metadata({"title": "Otters in Hebrew"})
    document.save(folder / "hebrew.pdf")
    document.close()
    return folder / "hebrew.pdf"


@pytest.fixture(scope="module")
def app(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> App:
    folder = tmp_path_factory.mktemp("reader")
    papers = small_papers(folder / "papers")
    ferns(papers)
    citing(papers)
    hebrew(papers)
    write_pdf(papers / "moss.pdf", [HOSTILE, HOSTILE.replace("moss", "lichen")], HOSTILE_TITLE)
    (papers / SAMPLE.name).write_bytes(SAMPLE.read_bytes() + b"\n% A copy\n")
    return builtin_app(folder, papers)


@pytest.fixture(scope="module")
def live(app: App) -> Iterator[Live]:
    with Live(app) as made:
        yield made


Show = Callable[..., Tab]


@pytest.fixture
def show(opened: Callable[..., Tab], live: Live) -> Show:
    """A function that opens a page of a paper, given its file, in a window of a size."""

    def open_paper(file: str, page: int = 1, size: tuple[int, int] = WIDE, **span: int) -> Tab:
        tab = opened(live, size)
        tab.open(place(tab, file, page, **span))
        expect(tab.find("#reader")).to_be_visible()
        return tab

    return open_paper


def id_of(tab: Tab, file: str) -> str:
    papers: list[dict[str, Any]] = tab.context.request.get(f"{tab.url}/papers").json()["papers"]
    return str(next(paper["id"] for paper in papers if paper["file"] == file))


def place(tab: Tab, file: str, page: int, **span: int) -> str:
    query = "&".join(f"{name.strip('_')}={value}" for name, value in span.items())
    return f"#search?read={id_of(tab, file)}&p={page}" + (f"&{query}" if query else "")


def text_of(tab: Tab, file: str, page: int) -> dict[str, Any]:
    found: dict[str, Any] = tab.context.request.get(f"{tab.url}/papers/{id_of(tab, file)}/pages/{page}/text").json()
    return found


def span_of(tab: Tab, file: str, page: int, words: str) -> dict[str, int]:
    """The parameters of an address that marks these words."""
    text = text_of(tab, file, page)
    start = text["start"] + text["text"].index(words)
    return {"from_": start, "to": start + len(words)}


def word(tab: Tab, page: int, text: str) -> dict[str, float]:
    """The box of a word on the screen."""
    found = page_in(tab, page).locator(".word").filter(has_text=re.compile(f"^{re.escape(text)}$")).first
    box = found.bounding_box()
    assert box
    return {"x": box["x"], "y": box["y"], "width": box["width"], "height": box["height"]}


def drag(tab: Tab, start: dict[str, float], end: dict[str, float]) -> None:
    """Selects with the mouse, over the blank space beside the words too."""
    mouse = tab.page.mouse
    top, bottom = (box["y"] + box["height"] / 2 for box in (start, end))
    mouse.move(start["x"] + 1, top)
    mouse.down()
    mouse.move(start["x"] + start["width"] + 60, top + 40, steps=4)
    mouse.move(end["x"] + end["width"] - 1, bottom, steps=6)
    mouse.up()


def test_a_selection_may_begin_and_end_in_the_gap_beside_a_word(show: Show) -> None:
    tab = show("ferns.pdf", 1)
    reader_shows(tab, 1)
    words = page_in(tab, 1).locator(".word")
    for first, last, before, after in ((12, 15, 1.5, -1), (14, 21, 1, 1), (23, 30, 2, 1.5)):
        start, end = (words.nth(number).bounding_box() for number in (first, last))
        assert start
        assert end
        tab.page.evaluate("getSelection().removeAllRanges()")  # selected words would be dragged
        tab.page.mouse.move(start["x"] - before, start["y"] + start["height"] / 2)
        tab.page.mouse.down()
        expect(toolbar(tab)).to_be_hidden()  # the one of the words before is in nobody's way
        tab.page.mouse.move(end["x"] + end["width"] + after, end["y"] + end["height"] / 2, steps=5)
        tab.page.mouse.up()
        said = "".join(tab.page.evaluate("getSelection().toString()").split())
        assert said == "".join(words.nth(number).inner_text().strip() for number in range(first, last + 1))
        expect(toolbar(tab)).to_be_visible()


def toolbar(tab: Tab) -> Locator:
    return tab.page.get_by_role("toolbar", name="Selected words")


def go_to(tab: Tab, page: int) -> None:
    field = tab.page.get_by_label("Page number")
    field.fill(str(page))
    field.press("Enter")


# Pages


def test_pages_scroll_on_and_a_reload_shows_the_same(show: Show) -> None:
    tab = show("ferns.pdf", 1)
    reader_shows(tab, 1)
    go_to(tab, 7)
    reader_shows(tab, 7)
    expect(tab.page).to_have_url(re.compile("p=7"))
    assert tab.find("#reader .page").count() < PAGES  # only those near the view
    sheet, page = page_in(tab, 7).locator(".page-sheet").bounding_box(), page_in(tab, 7).bounding_box()
    assert sheet
    assert page
    assert sheet["x"] + sheet["width"] / 2 == pytest.approx(page["x"] + page["width"] / 2, abs=1)
    tab.find(".reader-pages").focus()
    tab.find(".reader-pages").evaluate("(node) => node.dispatchEvent(new Event('wheel'))")
    height = page_in(tab, 7).bounding_box()
    assert height
    tab.find(".reader-pages").evaluate("(node, by) => { node.scrollTop += by; }", height["height"])
    reader_shows(tab, 8)
    expect(tab.page).to_have_url(re.compile("p=8"))
    tab.reload()
    reader_shows(tab, 8)
    tab.page.keyboard.press("Escape")
    expect(tab.find("#reader")).to_be_hidden()


def test_a_picture_has_the_resolution_that_the_size_needs(show: Show) -> None:
    tab = show("ferns.pdf", 1)
    reader_shows(tab, 1)
    width = "document.querySelector('.page[data-page=\"1\"] img').naturalWidth"
    fitted = tab.page.evaluate(width)
    tab.page.get_by_label("Zoom", exact=True).select_option("300%")
    until(lambda: tab.page.evaluate(width) > fitted)
    shown = page_in(tab, 1).locator(".page-sheet").bounding_box()
    assert shown
    assert tab.page.evaluate(width) >= shown["width"] - 2
    tab.page.get_by_label("Zoom", exact=True).select_option("Fit page")
    sheet, view = (tab.find(name).first.bounding_box() for name in (".page-sheet", ".reader-pages"))
    assert sheet
    assert view
    assert view["height"] - 60 < sheet["height"] <= view["height"]
    tab.reload()
    expect(tab.page.get_by_label("Zoom", exact=True)).to_have_value("page")  # remembered


def test_marks_go_over_a_page_break_and_stay_after_a_reload(show: Show, app: App) -> None:
    tab = show("ferns.pdf", 2)
    first, second = text_of(tab, "ferns.pdf", 2), text_of(tab, "ferns.pdf", 3)
    start = first["start"] + first["text"].index("Page 2 line 39")
    end = second["start"] + second["text"].index("Page 3 line 1 ")
    tab.open(place(tab, "ferns.pdf", 2, from_=start, to=end))
    for _ in range(2):
        reader_shows(tab, 2)
        expect(page_in(tab, 3).locator(".page-mark.quote").first).to_be_visible()
        path = app.settings.PAPERS_DIR / "ferns.pdf"
        assert words_on(path, 2, marks(tab, 2)).startswith("Page 2 line 39 of the ferns")
        assert words_on(path, 3, marks(tab, 3)) == "Page 3 line 0 of the ferns tells of spores and of 3 islands."
        tab.reload()


LOADED_TWICE = """async ([module, address]) => {
  const { PageView } = await import(module);
  const text = await (await fetch(address)).json();
  const view = new PageView(1, "Page 1", { formatLead: () => "" });
  document.body.append(view.node);
  view.setText(text, []);
  view.setText(structuredClone(text), []);
  await new Promise((resolve) => setTimeout(resolve, 500));
  const words = view.words.childElementCount;
  view.node.remove();
  return words;
}"""


def test_a_text_that_is_loaded_again_at_once_can_be_selected(show: Show) -> None:
    tab = show("ferns.pdf", 1)
    reader_shows(tab, 1)
    address = f"/papers/{id_of(tab, 'ferns.pdf')}/pages/1/text"
    assert tab.page.evaluate(LOADED_TWICE, [tab.module("reader/page_view.js"), address]) > 0


def test_links_in_the_paper(show: Show) -> None:
    tab = show("ferns.pdf", 1)
    reader_shows(tab, 1)
    tab.page.get_by_role("link", name="Go to page 9").click()
    reader_shows(tab, 9)
    tab.page.go_back()
    reader_shows(tab, 1)
    tab.page.get_by_role("button", name="Open https://ferns.example/a").click()
    expect(tab.find("#confirm-text")).to_have_text("https://ferns.example/a")
    with tab.context.expect_page() as other:
        tab.find("#confirm-do").click()
    assert other.value.evaluate("window.opener") is None
    tab.expected("window: .*", "elsewhere: https://ferns.example/a|failed|window")


def place_of(tab: Tab, page: int) -> float:
    """Pixels from the top of the view to the first mark on a page."""
    mark = page_in(tab, page).locator(".page-mark.quote:visible").first.bounding_box()
    view = tab.find(".reader-pages").bounding_box()
    assert mark
    assert view
    assert view["y"] < mark["y"] < view["y"] + view["height"]
    return mark["y"] - view["y"]


@pytest.mark.parametrize(
    ("at", "entry"),
    [(0, "On the tides of kelp"), (1, "Rafts of kelp in bays"), (2, "Ice and kelp"), (3, "Rafts of kelp in bays")],
)
def test_a_citation_shows_its_reference_and_leads_to_its_line(show: Show, at: int, entry: str) -> None:
    tab = show("citing.pdf", 1)
    reader_shows(tab, 1)
    cited = page_in(tab, 1).locator("a.page-link")
    expect(cited).to_have_count(4)
    cited.nth(at).hover()
    expect(tab.find(".card blockquote")).to_contain_text(entry)
    tab.page.keyboard.press("Escape")
    expect(tab.find(".card")).to_have_count(0)
    before = page_in(tab, 1).bounding_box()
    cited.nth(at).click()
    reader_shows(tab, 3)
    assert place_of(tab, 3) > 100
    ((_, top, *_), *_) = marks(tab, 3)
    assert top == pytest.approx(LINES[entry], abs=8)
    tab.page.go_back()
    reader_shows(tab, 1)
    assert page_in(tab, 1).bounding_box() == before


def test_a_citation_in_the_text_is_read_by_keyboard_and_by_touch(show: Show) -> None:
    tab = show("citing.pdf", 1, PHONE)
    cited = page_in(tab, 1).locator(".page-text a.page-link")
    expect(cited).to_have_text(["[1]", "[2", "3]", "Walrus & Whale, 2010"])
    tab.find(".reader-pages").focus()
    tab.page.keyboard.press("Tab")
    expect(cited.first).to_be_focused()
    expect(tab.find(".card blockquote")).to_contain_text("On the tides of kelp")
    tab.page.keyboard.press("Escape")
    expect(tab.find("#reader")).to_be_visible()
    box = cited.nth(3).bounding_box()
    assert box
    touch = {"x": box["x"] + 5, "y": box["y"] + 5}
    session = tab.context.new_cdp_session(tab.page)
    session.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    for kind, points in (("touchStart", [touch]), ("touchEnd", [])):
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    expect(tab.find(".card blockquote")).to_contain_text("Rafts of kelp in bays")
    tab.find(".card").get_by_role("button", name="Go to page 3").click()
    expect(tab.find("#reader .page-field")).to_have_value("3")
    expect(page_in(tab, 3).locator("mark.quote")).to_contain_text("Rafts of kelp in bays")
    place_of(tab, 3)


def test_papers_are_tabs(show: Show) -> None:
    tab = show("ferns.pdf", 3)
    reader_shows(tab, 3)
    tab.open(place(tab, "otters.pdf", 2))
    expect(tab.find("#reader-title")).to_have_text("On Sea Otters")
    reader_shows(tab, 2)
    tab.reload()
    names = tab.find(".reader-tabs .tab")
    expect(names).to_have_text(["Ferns of the Valley", "On Sea Otters"])
    names.first.click()
    reader_shows(tab, 3)
    expect(names.first).to_have_attribute("aria-current", "true")
    names.first.focus()
    tab.page.keyboard.press("ArrowRight")
    expect(names.last).to_be_focused()
    tab.page.keyboard.press("Delete")
    expect(tab.find(".reader-tabs")).to_be_hidden()
    reader_shows(tab, 3)
    assert tab.inaccessible(colours=False) == []


def test_the_reader_is_resized_by_keys(show: Show) -> None:
    tab = show("ferns.pdf", 2)
    reader_shows(tab, 2)
    edge = tab.page.get_by_role("separator", name="Width of the reader")
    before = int(edge.get_attribute("aria-valuenow") or 0)
    edge.focus()
    assert tab.focus_shows()
    tab.page.keyboard.press("ArrowLeft")
    expect(edge).to_have_attribute("aria-valuenow", str(before + 2))
    box = tab.find("#reader").bounding_box()
    assert box
    assert box["width"] == pytest.approx(WIDE[0] * (before + 2) / 100, abs=2)
    tab.reload()
    expect(edge).to_have_attribute("aria-valuenow", str(before + 2))


def test_outline_and_small_pictures(show: Show) -> None:
    tab = show(SAMPLE.name, 1)
    reader_shows(tab, 1)
    tab.page.get_by_role("button", name="Contents").click()
    section = tab.find(".section-link").filter(has_text="When the power fails")
    section.click()
    reader_shows(tab, 3)
    assert "When the power fails" in words_on(SAMPLE, 3, marks(tab, 3))
    assert place_of(tab, 3) >= 0
    expect(section).to_have_attribute("aria-current", "true")
    tab.page.get_by_role("button", name="Pages", exact=True).click()
    thumbnail = tab.page.get_by_role("button", name="p. 2", exact=True)
    expect(thumbnail.locator("img")).to_be_visible()
    thumbnail.click()
    reader_shows(tab, 2)
    expect(thumbnail).to_have_attribute("aria-current", "true")
    tab.page.go_back()
    reader_shows(tab, 3)
    tab.reload()
    expect(tab.find(".thumbnails")).to_be_visible()  # remembered


# Words


def test_a_selection_over_columns_and_a_hyphen_is_the_library_s_text(show: Show) -> None:
    tab = show("ferns.pdf", 1)
    reader_shows(tab, 1)
    page_in(tab, 1).locator(".word").filter(has_text="royal").scroll_into_view_if_needed()
    text = text_of(tab, "ferns.pdf", 1)["text"]
    expected = text[text.index("royal fern") : text.index("thetic leaves") + len("thetic")]
    assert "bed" not in expected
    # Down the left column, then to the top of the right one: what lies between in the text is selected, and no more.
    tab.page.evaluate(
        """() => { const words = [...document.querySelectorAll('.word')];
          const find = (text) => words.find((node) => node.textContent.startsWith(text)).firstChild;
          getSelection().setBaseAndExtent(find('royal'), 0, find('thetic'), 6); }"""
    )
    expect(toolbar(tab)).to_be_visible()
    tab.find(".reader-pages").focus()
    tab.page.keyboard.press("Control+c")
    assert clipboard(tab) == expected
    tab.page.keyboard.press("Escape")
    expect(toolbar(tab)).to_be_hidden()
    first, last = word(tab, 1, "royal"), word(tab, 1, "opens")
    drag(tab, first, last)
    expect(toolbar(tab)).to_be_visible()
    tab.page.keyboard.press("Control+c")
    assert clipboard(tab) == text[text.index("royal fern") : text.index(" its photosyn")]


def test_selected_words_are_copied_with_their_reference(show: Show) -> None:
    tab = show("otters.pdf", 1)
    reader_shows(tab, 1)
    drag(tab, word(tab, 1, "float"), word(tab, 1, "rafts"))
    toolbar(tab).get_by_role("button", name="Copy with citation").click()
    toolbar(tab).get_by_role("button", name="LaTeX and BibTeX").click()
    expect(tab.find("#toast")).to_have_text("Quote copied.")
    copied = clipboard(tab)
    key = re.match(r"``float in rafts''~\\cite\[p\.~1\]\{([^}]+)\}\n\n", copied)
    assert key
    assert f"@misc{{{key[1]}," in copied
    expect(toolbar(tab)).to_be_hidden()


def test_a_selection_by_keyboard_is_asked_about(show: Show) -> None:
    tab = show("otters.pdf", 1)
    reader_shows(tab, 1)
    expect(page_in(tab, 1).locator(".word").first).to_be_attached()
    tab.find(".reader-pages").focus()
    tab.page.keyboard.press("s")
    expect(toolbar(tab)).to_be_visible()
    tab.page.keyboard.press("Enter")
    expect(toolbar(tab).get_by_role("button", name="Ask about this")).to_be_focused()
    tab.page.keyboard.press("Enter")
    meaning = toolbar(tab).get_by_role("button", name="What does this mean?")
    expect(meaning).to_be_focused()
    assert tab.focus_shows()
    assert tab.inaccessible() == []
    tab.page.keyboard.press("Enter")
    expect(tab.find(".turn").first).to_contain_text("What does this mean?")
    expect(toolbar(tab)).to_be_hidden()


def test_a_selection_by_touch_has_the_tools(show: Show) -> None:
    tab = show("otters.pdf", 1)
    reader_shows(tab, 1)
    floats = page_in(tab, 1).locator(".word").filter(has_text="float").first
    floats.dispatch_event("pointerdown", {"pointerType": "touch", "bubbles": True})
    floats.evaluate("(node) => getSelection().selectAllChildren(node)")
    floats.dispatch_event("pointercancel", {"pointerType": "touch", "bubbles": True})
    expect(toolbar(tab)).to_be_visible()
    toolbar(tab).get_by_role("button", name="Note", exact=True).click()
    expect(tab.page.get_by_role("region", name="Note").locator("blockquote")).to_have_text("float")


def test_words_are_found(show: Show, app: App) -> None:
    tab = show("ferns.pdf", 1)
    reader_shows(tab, 1)
    tab.find(".reader-pages").focus()
    tab.page.keyboard.press("Control+f")
    field = tab.page.get_by_label("Find in this paper").and_(tab.find("input"))
    expect(field).to_be_focused()
    tab.page.keyboard.type("LINE 7 of the férns")
    status = tab.find(".reader-find .status")
    expect(status).to_have_text(f"1 of {PAGES - 1}")
    reader_shows(tab, 2)
    path = app.settings.PAPERS_DIR / "ferns.pdf"
    assert words_on(path, 2, marks(tab, 2, "current")) == "line 7 of the ferns"
    tab.page.keyboard.press("Enter")
    expect(status).to_have_text(f"2 of {PAGES - 1}")
    reader_shows(tab, 3)
    tab.page.keyboard.press("Shift+Enter")
    tab.page.keyboard.press("Shift+Enter")
    expect(status).to_have_text(f"{PAGES - 1} of {PAGES - 1}")
    reader_shows(tab, PAGES)
    field.fill("zebra")
    expect(status).to_have_text("Not in this paper")
    tab.page.keyboard.press("Escape")
    expect(field).to_be_hidden()
    expect(tab.find(".reader-pages")).to_be_focused()
    assert marks(tab, PAGES, "current") == []


def test_words_are_found_in_the_text_whose_letters_grow(show: Show) -> None:
    tab = show("ferns.pdf", 1)
    tab.open(place(tab, "ferns.pdf", 1, **span_of(tab, "ferns.pdf", 1, "Fern bed 00")))
    reader_shows(tab, 1)
    tab.page.get_by_role("button", name="Show as text").click()
    paragraph = page_in(tab, 1).locator(".page-text p").last
    size = "(node) => parseFloat(getComputedStyle(node).fontSize)"
    before = float(paragraph.evaluate(size))
    tab.page.get_by_role("button", name="Zoom in").click()
    tab.page.keyboard.press("+")
    assert float(paragraph.evaluate(size)) >= 1.2 * before
    tab.find(".reader-pages").focus()
    tab.page.keyboard.press("Control+f")
    tab.page.keyboard.type("Fern bed 35")
    hit = page_in(tab, 1).locator("mark.current")
    expect(hit.last).to_be_in_viewport()
    expect(page_in(tab, 1).locator("mark.quote")).not_to_be_in_viewport()
    tab.reload()
    assert float(page_in(tab, 1).locator(".page-text p").last.evaluate(size)) >= 1.2 * before
    tab.page.evaluate("localStorage.clear()")


def test_a_page_says_that_it_is_loaded(show: Show) -> None:
    tab = show("otters.pdf", 1)
    reader_shows(tab, 1)
    expect(page_in(tab, 1).locator(".page-waiting")).to_be_hidden()
    held: list[Route] = []
    tab.page.route(re.compile(r"/pages/\d+(\.png|/text)"), lambda route: held.append(route))
    tab.open(place(tab, "ferns.pdf", 5))
    expect(page_in(tab, 5).locator(".page-waiting")).to_have_text("Loading")
    expect(page_in(tab, 5).locator(".page-waiting")).to_be_in_viewport()
    assert held
    tab.page.unroute_all()  # which lets them go on
    reader_shows(tab, 5)
    expect(page_in(tab, 5).locator(".page-waiting")).to_be_hidden()


def test_text_from_the_right_is_marked_and_selected(show: Show) -> None:
    tab = show("hebrew.pdf", 1)
    reader_shows(tab, 1)
    text = text_of(tab, "hebrew.pdf", 1)
    assert text["direction"] == "rtl"
    first, second = text["words"][:2]
    tab.open(place(tab, "hebrew.pdf", 1, from_=first[0], to=second[1]))
    reader_shows(tab, 1)
    (box,) = marks(tab, 1)
    assert (box[0], box[2]) == pytest.approx((second[2], first[4]), abs=0.2)
    words = page_in(tab, 1).locator(".word")
    words.first.evaluate("(node) => getSelection().setBaseAndExtent(node.firstChild, 1, node.nextElementSibling, 1)")
    expect(toolbar(tab)).to_be_visible()
    tab.find(".reader-pages").focus()
    tab.page.keyboard.press("Control+c")
    assert clipboard(tab) == text["text"][first[0] + 1 - text["start"] : second[1] - text["start"]]


def test_a_screen_reader_gets_headings_and_text_but_no_picture(show: Show) -> None:
    tab = show(SAMPLE.name, 3)
    reader_shows(tab, 3)
    page = tab.page.get_by_role("article", name=re.compile("^Page 3 of"))
    expect(page.get_by_role("heading", name=re.compile("When the power fails"))).to_have_count(1)
    assert "A paper lands in the library in one transaction" in page.aria_snapshot()
    assert "img" not in page.aria_snapshot()


# Notes


def test_a_highlight_survives_a_reload_and_becomes_a_note(show: Show, app: App) -> None:
    tab = show("otters.pdf", 1)
    reader_shows(tab, 1)
    drag(tab, word(tab, 1, "Sea"), word(tab, 1, "backs"))
    toolbar(tab).get_by_role("button", name="Highlight in green").click()
    path = app.settings.PAPERS_DIR / "otters.pdf"
    for _ in range(2):
        expect(page_in(tab, 1).locator(".page-mark.green")).to_have_count(1)
        assert words_on(path, 1, marks(tab, 1, "green")) == "Sea otters sleep on their backs"
        tab.reload()
        reader_shows(tab, 1)
    expect(page_in(tab, 1).locator(".page-mark.green")).to_be_visible()
    box = page_in(tab, 1).locator(".page-mark.green").bounding_box()
    assert box
    tab.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    card = tab.page.get_by_role("region", name="Note")
    words = card.get_by_label("Your note", exact=True)
    expect(words).to_be_focused()
    assert tab.inaccessible() == []
    words.fill(f"<img src=x onerror={RUN}> Like people.")
    card.get_by_label("pink").check()
    card.get_by_role("button", name="Save note").click()
    expect(page_in(tab, 1).locator(".page-mark.pink")).to_have_count(1)
    tab.page.get_by_role("button", name="Like people.").focus()
    tab.page.keyboard.press("Enter")
    expect(words).to_have_value(f"<img src=x onerror={RUN}> Like people.")
    words.fill("Unlike people.")
    tab.page.keyboard.press("Escape")  # what was typed is kept
    expect(card).to_be_hidden()
    tab.page.get_by_role("button", name="Unlike people.").click()
    expect(words).to_have_value("Unlike people.")
    card.get_by_role("button", name="Delete note").click()
    expect(page_in(tab, 1).locator(".page-mark.noted")).to_have_count(0)
    assert tab.page.evaluate("window.ran") is None


def write_note(tab: Tab, where: str, words: str) -> None:
    tab.page.get_by_role("button", name="Notes, turning and questions").click()
    tab.page.get_by_role("button", name=f"Note on {where}").click()
    if where == "an area":
        draw_area(tab)
    tab.page.get_by_label("Your note", exact=True).fill(words)
    tab.page.get_by_role("button", name="Save note").click()
    expect(tab.find(".note-card")).to_be_hidden()


def draw_area(tab: Tab) -> None:
    """Around the words of two lines of page 3, on the screen."""
    first, last = word(tab, 3, "4"), word(tab, 3, "9")
    tab.page.mouse.move(first["x"] - 20, first["y"] - 4)
    tab.page.mouse.down()
    tab.page.mouse.move(last["x"] + 60, last["y"] + last["height"] + 4, steps=4)
    tab.page.mouse.up()


@pytest.fixture
def uncluttered(live: Live) -> Iterator[None]:
    """No notes are left by a test."""
    yield
    with live.client() as client:
        for note in client.get("/notes").json()["notes"]:
            client.delete(f"/notes/{note['id']}")


@pytest.mark.usefixtures("uncluttered")
@pytest.mark.parametrize("turns", [1, 2, 3])
def test_an_area_is_drawn_with_alt_on_a_turned_page(show: Show, turns: int) -> None:
    tab = show("ferns.pdf", 3)
    reader_shows(tab, 3)
    more = tab.page.get_by_role("button", name="Notes, turning and questions")
    more.click()
    tab.page.keyboard.press("Escape")
    expect(tab.page.get_by_role("button", name="Turn all pages")).to_be_hidden()
    for _ in range(turns):
        more.click()
        tab.page.get_by_role("button", name="Turn all pages").click()
    tab.page.get_by_label("Zoom", exact=True).select_option("Fit page")
    page_in(tab, 3).evaluate(STAYS)
    boxes = [word(tab, 3, "4"), word(tab, 3, "9")]
    left, top = (min(box[side] for box in boxes) - 3 for side in ("x", "y"))
    right = max(box["x"] + box["width"] for box in boxes) + 3
    bottom = max(box["y"] + box["height"] for box in boxes) + 3
    tab.page.keyboard.down("Alt")
    tab.page.mouse.move(right, top)
    tab.page.mouse.down()
    tab.page.mouse.move(left, bottom, steps=3)
    tab.page.mouse.up()
    tab.page.keyboard.up("Alt")
    tab.page.get_by_label("Your note", exact=True).fill("Turned.")
    tab.page.get_by_role("button", name="Save note").click()
    assert page_in(tab, 3).locator(".page-mark.area").evaluate(NUMBERS_IN) == ["4", "5", "6", "7", "8", "9"]


@pytest.mark.usefixtures("uncluttered")
def test_a_note_on_a_page_on_an_area_and_on_the_paper(show: Show) -> None:
    tab = show("ferns.pdf", 3)
    reader_shows(tab, 3)
    for where in ("this page", "an area", "this paper"):
        write_note(tab, where, f"On {where}.")
    tab.reload()
    reader_shows(tab, 3)
    expect(page_in(tab, 3).get_by_role("button", name="Note on “On this page.”")).to_be_visible()
    expect(page_in(tab, 3).locator(".page-mark.area")).to_have_count(1)
    assert page_in(tab, 3).locator(".page-mark.area").evaluate(NUMBERS_IN) == ["4", "5", "6", "7", "8", "9"]
    tab.open("#notes")
    places = tab.find("#view-notes .note-quote figcaption")
    expect(places).to_have_count(3)
    assert sorted(places.all_inner_texts()) == [
        "Ferns of the Valley, an area of p. 3",
        "Ferns of the Valley, p. 3",
        "Ferns of the Valley, the whole paper",
    ]
    tab.page.get_by_role("link", name="Ferns of the Valley, the whole paper").click()
    reader_shows(tab, 1)
    page_in(tab, 1).get_by_role("button", name="Note on “On this paper.”").click()
    expect(tab.page.get_by_label("Your note", exact=True)).to_have_value("On this paper.")
    tab.page.keyboard.press("Escape")
    tab.page.get_by_role("link", name="Ferns of the Valley, an area of p. 3").click()
    reader_shows(tab, 3)
    expect(page_in(tab, 3).locator(".page-mark.area")).to_be_in_viewport()
    tab.page.get_by_role("button", name="Show as text").click()
    page_in(tab, 3).get_by_role("button", name="Note on “On an area.”").click()
    expect(tab.page.get_by_label("Your note", exact=True)).to_have_value("On an area.")
    tab.page.get_by_role("button", name="Delete note").click()


NUMBERS_IN = """(area) => {
  const box = area.getBoundingClientRect();
  const inside = [...area.closest(".page").querySelectorAll(".word")].filter((word) => {
    const { left, right, top, bottom } = word.getBoundingClientRect();
    const [x, y] = [(left + right) / 2, (top + bottom) / 2];
    return x > box.left && x < box.right && y > box.top && y < box.bottom;
  });
  return inside.map((word) => word.textContent).filter((text) => /^\\d+$/.test(text));
}"""
COVERED = """(dot) => {
  const { left, top, width, height } = dot.getBoundingClientRect();
  const [x, y, radius] = [left + width / 2, top + height / 2, width / 4];
  const view = dot.closest(".reader-pages").getBoundingClientRect();
  const words = [...dot.closest(".page").querySelectorAll(".word")].filter((word) => {
    const box = word.getBoundingClientRect();
    return box.left < x + radius && box.right > x - radius && box.top < y + radius && box.bottom > y - radius;
  });
  const isSeen = x - radius >= view.left && x + radius <= view.right;
  return [words.map((word) => word.textContent).join(" "), isSeen];
}"""


@pytest.mark.usefixtures("uncluttered")
def test_the_dots_of_notes_hide_no_letter(show: Show) -> None:
    tab = show("ferns.pdf", 1)
    for words in ("Fern bed 03 of", "bed 04 of the valley", "harms them then.", "thetic leaves before"):
        span = span_of(tab, "ferns.pdf", 1, words)
        quote = {"paper": id_of(tab, "ferns.pdf"), "start": span["from_"], "end": span["to"]}
        assert tab.context.request.post(f"{tab.url}/notes", data={"quotes": [quote], "colour": "pink"}).ok
    tab.reload()
    reader_shows(tab, 1)
    dots = page_in(tab, 1).locator(".page-note")
    for zoom in ("Fit text", "Fit page", "50%"):
        tab.page.get_by_label("Zoom", exact=True).select_option(zoom)
        page_in(tab, 1).evaluate(STAYS)
        expect(dots).to_have_count(4)
        assert [dot.evaluate(COVERED) for dot in dots.all()] == [["", True]] * 4, zoom
        middles = {dot.evaluate("(node) => node.style.left + node.style.top") for dot in dots.all()}
        assert len(middles) == 4, zoom


def test_pages_are_turned_and_stay_so(show: Show) -> None:
    tab = show("ferns.pdf", 3)
    tab.open(place(tab, "ferns.pdf", 3, **span_of(tab, "ferns.pdf", 3, "line 20 of the ferns")))
    reader_shows(tab, 3)
    upright = page_in(tab, 3).locator(".page-sheet").bounding_box()
    assert upright
    tab.page.get_by_role("button", name="Notes, turning and questions").click()
    tab.page.get_by_role("button", name="Turn this page").click()
    for _ in range(2):
        page_in(tab, 3).evaluate(STAYS)
        turned, other = (page_in(tab, page).locator(".page-sheet").bounding_box() for page in (3, 4))
        assert turned
        assert other
        assert turned["width"] / turned["height"] == pytest.approx(upright["height"] / upright["width"], rel=0.02)
        assert other["height"] > other["width"]
        mark = page_in(tab, 3).locator(".page-mark.quote").bounding_box()
        assert mark
        assert mark["height"] > mark["width"]
        assert turned["x"] < mark["x"] < turned["x"] + turned["width"]
        assert turned["y"] < mark["y"] < turned["y"] + turned["height"]
        first = word(tab, 3, "4")  # its line is right of line 9, as the page is turned to the right
        assert first["x"] > word(tab, 3, "9")["x"]
        tab.reload()
        reader_shows(tab, 3)
    for _ in range(3):
        tab.page.get_by_role("button", name="Notes, turning and questions").click()
        tab.page.get_by_role("button", name="Turn all pages").click()
    page_in(tab, 3).evaluate(STAYS)
    again = page_in(tab, 3).locator(".page-sheet").bounding_box()
    assert again
    assert again["height"] > again["width"]


def test_words_of_a_text_that_was_read_again_are_those_that_were_selected(show: Show, app: App) -> None:
    tab = show("otters.pdf", 2)
    words = "Sea otters sleep on their backs"
    start = span_of(tab, "otters.pdf", 1, words)["from_"]
    shift = 9  # characters that the paper had before these words when the page was opened

    def read_earlier(route: Route) -> None:
        reply = route.fetch()
        text = reply.json()
        for each in (*text["words"], *text["paragraphs"]):
            each[:2] = [each[0] + shift, each[1] + shift]
        route.fulfill(response=reply, json={**text, "start": text["start"] + shift, "end": text["end"] + shift})

    tab.page.route("**/pages/1/text", read_earlier)
    tab.page.reload()
    go_to(tab, 1)
    first = page_in(tab, 1).locator(".word").filter(has_text=re.compile("^Sea$")).first
    expect(first).to_have_attribute("data-start", str(start + shift))
    drag(tab, word(tab, 1, "Sea"), word(tab, 1, "backs"))
    toolbar(tab).get_by_role("button", name="Highlight in blue").click()
    expect(page_in(tab, 1).locator(".page-mark.blue")).to_have_count(1)
    path, paper = app.settings.PAPERS_DIR / "otters.pdf", id_of(tab, "otters.pdf")
    (note,) = tab.context.request.get(f"{tab.url}/notes?colour=blue").json()["notes"]
    assert (note["quotes"][0]["quote"], note["quotes"][0]["start"]) == (words, start)
    assert words_on(path, 1, marks(tab, 1, "blue")) == words
    tab.page.unroute("**/pages/1/text")
    tab.context.request.patch(f"{tab.url}/papers/{paper}", data={"tags": ["read again"]})
    expect(first).to_have_attribute("data-start", str(start))
    assert words_on(path, 1, marks(tab, 1, "blue")) == words
    tab.context.request.delete(f"{tab.url}/notes/{note['id']}")


# Every state


def test_hostile_text_is_text(show: Show) -> None:
    tab = show("moss.pdf", 1)
    tab.open(place(tab, "moss.pdf", 1, **span_of(tab, "moss.pdf", 1, "The moss <img")))
    reader_shows(tab, 1)
    expect(tab.find("#reader-title")).to_contain_text(f"Moss <img src=x onerror={RUN}> (Otter 2014, p. 3)")
    tab.page.get_by_role("button", name="Show as text").click()
    expect(page_in(tab, 1).locator(".page-text")).to_contain_text(
        f"<img src=x onerror={RUN}> grows on (Otter 2014, p. 3)"
    )
    expect(page_in(tab, 1).locator("mark.quote")).to_contain_text("The moss <img")
    assert tab.find("#reader img[src='x']").count() == 0
    assert tab.page.evaluate("window.ran") is None
    assert tab.scrolls_sideways() == []


def test_a_phone_shows_paragraphs_with_the_quote_marked(show: Show) -> None:
    tab = show("otters.pdf", 1, PHONE)
    tab.open(place(tab, "otters.pdf", 2, **span_of(tab, "otters.pdf", 2, "urchins, clams and crabs")))
    text = page_in(tab, 2).locator(".page-text")
    expect(text.locator("mark.quote")).to_have_text("urchins, clams and crabs")
    expect(text.locator("mark.quote")).to_be_in_viewport()
    assert text.evaluate("(node) => getComputedStyle(node).fontSize") == "16px"
    tab.page.get_by_role("button", name="Show as text").click()
    expect(page_in(tab, 2).locator(".page-picture img")).to_be_visible()
    expect(page_in(tab, 2).locator(".page-mark.quote")).to_be_in_viewport()
    tab.reload()
    expect(page_in(tab, 2).locator(".page-picture img")).to_be_visible()  # remembered
    assert tab.scrolls_sideways() == []
    tab.page.get_by_role("button", name="Close reader").click()
    expect(tab.find("#reader")).to_be_hidden()


@pytest.mark.parametrize("size", sizes(WIDE, TABLET, PHONE), ids=str)
def test_every_state_is_accessible(show: Show, size: tuple[int, int]) -> None:
    tab = show(SAMPLE.name, 3, size)
    if tab.page.get_by_role("button", name="Show as text").get_attribute("aria-pressed") == "true":
        assert tab.inaccessible() == []
        tab.page.get_by_role("button", name="Show as text").click()
    reader_shows(tab, 3)
    tab.page.get_by_role("button", name="Dark pages").click()
    assert tab.inaccessible() == []
    tab.find(".reader-pages").focus()
    tab.page.keyboard.press("s")
    expect(toolbar(tab)).to_be_visible()
    tab.page.keyboard.press("Escape")
    tab.page.get_by_role("button", name="Contents").click()
    tab.page.get_by_role("button", name="Find in this paper").click()
    assert (tab.inaccessible(), tab.scrolls_sideways()) == ([], [])


def test_a_server_that_stops_is_reported_and_asked_again(opened: Callable[..., Tab], app: App) -> None:
    with Live(app) as first:
        tab = opened(first)
        tab.open(place(tab, "ferns.pdf", 1))
        reader_shows(tab, 1)
        port = first.port
    go_to(tab, 10)
    problem = page_in(tab, 10).get_by_role("alert")
    expect(problem).to_contain_text("Folio is not responding.")
    with Live(app, port):
        problem.get_by_role("button", name="Try again").click()
        reader_shows(tab, 10)
        expect(problem).to_have_count(0)
