"""Evidence tables on the page, in the installed Chromium: made, filled, read, edited, sorted and found."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from folio.schema.tables import ChangedCells, TableJson
from tests.helpers.browser import PHONE, WIDE, Tab
from tests.helpers.live_server import Live, builtin_app, until
from tests.helpers.main_thread import longest_tasks
from tests.helpers.page import reader_shows, row
from tests.helpers.sectioned import CITES_OTTERS, ICE, ICE_TITLE, OTTER_TITLE, RAFT, sectioned_pdf

pytestmark = pytest.mark.slow

SEALS = "<img src=x onerror=alert(1)> Counting Seals"
LENGTH = {"name": "Length", "question": "What length does the glacier have?", "kind": "number", "unit": "km"}
NIGHTS = {"name": "Census", "question": "How long did the census take?"}
OTHERS = {"question": "", "kind": "text", "unit": "", "choices": []}
FRAME_MS = 50
Open = Callable[..., Tab]


@pytest.fixture(scope="module")
def live(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("tables")
    sectioned_pdf(folder / "papers" / "otters.pdf", OTTER_TITLE, RAFT)
    sectioned_pdf(folder / "papers" / "ice.pdf", ICE_TITLE, ICE, CITES_OTTERS)
    sectioned_pdf(folder / "papers" / "seals.pdf", SEALS, {"Abstract": "Seals were counted on the ice of the bay."})
    with Live(builtin_app(folder, folder / "papers")) as made:
        yield made


def papers(live: Live) -> dict[str, str]:
    """The ids of the papers by their files."""
    return {paper["file"]: paper["id"] for paper in live.send("GET", "/papers")["papers"]}


def table(live: Live, *columns: dict[str, Any], name: str = "Animals", **more: Any) -> str:
    """A new table, filled."""
    asked = [OTHERS | column for column in columns]
    made = live.send("POST", "/tables", {"name": name, "columns": asked, "fill": bool(asked)} | more)
    until(lambda: not live.send("GET", f"/tables/{made['id']}")["filling"])
    return str(made["id"])


@pytest.fixture
def show(opened: Open, live: Live) -> Iterator[Callable[..., Tab]]:
    """A function that makes a table and opens it."""

    def open_table(*columns: dict[str, Any], size: tuple[int, int] = WIDE, query: str = "", **more: Any) -> Tab:
        id = table(live, *(columns or (LENGTH, NIGHTS)), **more)
        tab = opened(live, size, f"#tables/{id}{query}")
        expect(rows(tab).first).to_be_visible()
        tabs.append(tab)
        return tab

    tabs: list[Tab] = []
    yield open_table
    for tab in tabs:
        tab.tolerated(r"404 .*/tables/")  # the page may ask for a table that is deleted now
    for each in live.send("GET", "/tables")["tables"]:
        live.send("DELETE", f"/tables/{each['id']}")


def rows(tab: Tab) -> Locator:
    return tab.find(".tables-rows > .tables-row")


def cell(tab: Tab, title: str, column: str) -> Locator:
    """A cell, by the words of its paper and the name of its column."""
    return rows(tab).filter(has_text=title).locator(f'[data-name="{column}"]')


def titles(tab: Tab) -> list[str]:
    return [text.strip() for text in tab.find(".tables-rows .tables-paper").all_inner_texts()]


def press(tab: Tab, name: str) -> None:
    tab.page.get_by_role("button", name=name, exact=True).click()


def choose(tab: Tab, menu: str, name: str) -> None:
    press(tab, menu)
    press(tab, name)


# Making and filling one


def test_a_table_is_made_of_selected_papers_and_filled(opened: Open, live: Live) -> None:
    tab = opened(live, WIDE, "#library")
    row(tab, ICE_TITLE).locator(".state").click()
    row(tab, OTTER_TITLE).locator(".state").click(modifiers=["Control"])
    tab.find(".library-actions").get_by_role("button", name="Make table").click()
    dialog = tab.page.get_by_role("dialog", name="New table")
    expect(dialog.get_by_label("The 2 chosen papers")).to_be_checked()
    dialog.get_by_label("Name").fill("Sounds")
    dialog.get_by_label("Your own questions").fill("What length does the glacier have?\nHow long did the census take?")
    dialog.get_by_role("button", name="Make table").click()
    expect(tab.page.get_by_role("heading", name="Sounds")).to_be_visible()
    expect(rows(tab)).to_have_count(2)
    asked = tab.page.get_by_role("columnheader", name="What length does the glacier have?")
    expect(asked).to_be_visible()
    length = cell(tab, ICE_TITLE, "What length does the glacier have?")
    expect(length).to_contain_text("23 kilometres")
    expect(tab.find(".tables-bar progress")).to_be_hidden()
    assert tab.find(".tables-rows [data-state=waiting]").count() == 0
    length.get_by_role("link", name="p. 1").click()
    reader_shows(tab, 1)
    expect(tab.find(".page-mark.quote").first).to_be_visible()
    live.send("DELETE", f"/tables/{live.send('GET', '/tables')['tables'][0]['id']}")


def test_suggested_columns_are_added_with_one_press(show: Open, live: Live) -> None:
    tab = show(NIGHTS)
    press(tab, "Add column")
    dialog = tab.page.get_by_role("dialog", name="Add a column")
    chips = dialog.get_by_role("list", name="Suggested columns").get_by_role("button")
    name = chips.first.inner_text()
    chips.first.click()
    expect(dialog).to_be_hidden()
    expect(tab.page.get_by_role("columnheader", name=name)).to_be_visible()
    expect(tab.find(".tables-rows [data-state=waiting], .tables-rows [data-state=running]")).to_have_count(0)


def test_columns_are_added_changed_moved_and_removed(show: Open) -> None:
    tab = show(NIGHTS)
    heads = tab.page.get_by_role("columnheader")
    press(tab, "Add column")
    form = tab.page.get_by_role("dialog", name="Add a column")
    form.get_by_label("Name", exact=True).fill("Length")
    form.get_by_label("Question").fill("What length does the glacier have?")
    expect(form.get_by_label("Unit")).to_be_hidden()
    form.get_by_label("A number").check()
    form.get_by_label("Unit").fill("m")
    form.get_by_role("button", name="Add column").click()
    expect(cell(tab, ICE_TITLE, "Length")).to_contain_text("23 kilometres")
    assert [text.split("\n")[0].strip() for text in heads.all_inner_texts()] == ["Paper", "Census", "Length m"]
    choose(tab, "Change the column Length", "Move left")
    expect(heads.nth(1)).to_contain_text("Length")
    choose(tab, "Change the column Length", "Edit column")
    form = tab.page.get_by_role("dialog", name="Edit column")
    form.get_by_label("Name", exact=True).fill("Glacier")
    form.get_by_role("button", name="Save column").click()
    expect(heads.nth(1)).to_contain_text("Glacier")
    expect(cell(tab, ICE_TITLE, "Glacier")).to_contain_text("23 kilometres")  # it was not asked again
    choose(tab, "Change the column Glacier", "Remove column")
    expect(heads).to_have_count(2)
    press(tab, "Undo")
    expect(heads).to_have_count(3)
    expect(cell(tab, ICE_TITLE, "Glacier")).to_contain_text("23 kilometres")


def test_columns_are_ordered_without_the_heads(show: Open) -> None:
    """On a phone the grid has no heads."""
    tab = show(size=PHONE)
    choose(tab, "More", "Columns")
    dialog = tab.page.get_by_role("dialog", name="Columns")
    dialog.get_by_role("button", name=re.compile("Move down.*Length")).click()
    expect(dialog.get_by_role("listitem").first).to_contain_text("Census")
    expect(dialog.get_by_role("button", name=re.compile("Move up.*Length"))).to_be_focused()  # it is the last
    dialog.get_by_role("button", name="Close").click()
    expect(rows(tab).first.locator(".tables-cell").nth(1)).to_have_attribute("data-name", "Census")


# Cells


def test_the_grid_is_used_with_the_keyboard(show: Open) -> None:
    tab = show()
    key = tab.page.keyboard.press
    at = tab.focused
    tab.page.get_by_role("searchbox", name="Find in this table").focus()
    key("ArrowDown")
    expect(at()).to_have_text(re.compile("^Paper"))  # the first head
    key("ArrowDown")
    first = titles(tab)[0]
    expect(at()).to_contain_text(first)
    assert tab.focus_shows()
    key("ArrowRight")
    expect(at()).to_have_attribute("data-name", "Length")
    key("End")
    expect(at()).to_have_attribute("data-name", "Census")
    key("ArrowRight")
    expect(at()).to_have_attribute("aria-colindex", "3")  # it ends there
    key("Control+End")
    expect(at().locator("xpath=..")).to_have_attribute("aria-rowindex", "4")
    key("Home")
    expect(at()).to_have_role("rowheader")
    key("Control+Home")
    expect(at()).to_have_text(re.compile("^Paper"))
    assert tab.find(".tables-grid [tabindex='0']").count() == 1  # one stop of Tab
    key("Control+End")
    key("Enter")
    detail = tab.page.get_by_role("dialog", name="Census: ")
    expect(detail).to_be_visible()
    assert at().evaluate("(node) => node.closest('.tables-detail') !== null")
    key("Escape")
    expect(detail).to_be_hidden()
    expect(at()).to_have_attribute("data-name", "Census")
    key("Home")
    last = titles(tab)[-1]
    key("Enter")
    expect(tab.find("#view-paper h1")).to_have_text(last)


def test_a_cell_is_edited_and_the_edit_undone(show: Open) -> None:
    tab = show(LENGTH)
    length = cell(tab, ICE_TITLE, "Length")
    length.click(position={"x": 5, "y": 5})
    detail = tab.find(".tables-detail")
    expect(detail.locator("blockquote")).to_contain_text("The results show that the Aletsch glacier")
    detail.get_by_role("button", name="Edit").click()
    words = detail.get_by_role("textbox", name="Your words for this cell")
    expect(words).to_be_focused()
    words.fill("24 km, by eye")
    tab.reload()  # what was typed is kept with the cell
    length.click(position={"x": 5, "y": 5})
    expect(words).to_have_value("24 km, by eye")
    detail.get_by_role("button", name="Save").click()
    expect(length).to_contain_text("24 km, by eye")
    expect(length).to_contain_text("Edited by you")
    expect(length).to_be_focused()
    tab.reload()
    expect(length).to_contain_text("24 km, by eye")
    length.click(position={"x": 5, "y": 5})
    expect(detail).to_contain_text("What was found:")
    detail.get_by_role("button", name="Undo your edit").click()
    expect(length).not_to_contain_text("Edited by you")
    expect(length).to_contain_text("23 kilometres")
    tab.page.keyboard.press("Escape")
    press(tab, "Undo")
    expect(length).to_contain_text("24 km, by eye")


def test_a_cell_that_was_not_found_shows_the_closest_place_as_no_answer(show: Open, live: Live) -> None:
    tab = show(LENGTH)
    length = cell(tab, OTTER_TITLE, "Length")
    expect(length).to_have_text("Not found")
    length.click(position={"x": 5, "y": 5})
    detail = tab.find(".tables-detail")
    expect(detail).to_contain_text("The closest place in the paper, which may not answer:")
    expect(detail.locator(".tables-closest blockquote")).to_be_visible()
    otters = re.compile(f"#paper/{papers(live)['otters.pdf']}/p/1")
    expect(detail.get_by_role("link", name=re.compile("^Open p. 1"))).to_have_attribute("href", otters)


def test_a_cell_is_asked_again(show: Open) -> None:
    tab = show(LENGTH)
    cell(tab, ICE_TITLE, "Length").click(position={"x": 5, "y": 5})
    with tab.page.expect_response(re.compile("/ask$")) as asked:
        tab.find(".tables-detail").get_by_role("button", name="Ask again").click()
    assert asked.value.status == 202
    expect(cell(tab, ICE_TITLE, "Length")).to_contain_text("23 kilometres")


def test_words_of_hostile_papers_are_words(opened: Open, live: Live) -> None:
    hostile = "It took <script>alert(2)</script> four weeks, [see Otter 2001, p. 3]"
    content = many_cells(1)
    content["rows"][0] |= {"title": SEALS, "label": "<b>Seal</b>"}
    content["columns"][1] |= {"name": "<i>Census</i>"}
    found = next(each for each in content["cells"] if each["findings"])["findings"][0]
    content["cells"][1] |= {"state": "found", "findings": [found | {"quote": hostile, "value": "<u>x</u>"}]}
    tab = opened(live, WIDE, "#tables")
    body = TableJson.model_validate(content).model_dump_json()
    serve_instead(tab, content["id"], lambda: body, lambda: "{}")
    tab.open(f"#tables/{content['id']}")
    asked = cell(tab, SEALS, "<i>Census</i>")
    expect(asked).to_contain_text("<script>alert(2)</script> four weeks, (see Otter 2001, p. 3)")  # no citation
    asked.click(position={"x": 5, "y": 5})
    detail = tab.find(".tables-detail")
    expect(detail).to_contain_text("<script>alert(2)</script> four weeks, (see Otter 2001, p. 3)")
    assert tab.find(":is(.tables-sheet, .tables-detail) :is(img, script, b, i, u)").count() == 0


def test_a_removed_paper_keeps_its_row(show: Open, live: Live) -> None:
    tab = show(NIGHTS | {"question": "How many nights did the census of Monterey take?"})
    otters = papers(live)["otters.pdf"]
    before = cell(tab, OTTER_TITLE, "Census").locator(".tables-quote").inner_text()
    live.send("POST", "/removed", {"papers": [otters]})
    expect(rows(tab).filter(has_text=OTTER_TITLE)).to_contain_text("Removed from the library")
    removed = cell(tab, OTTER_TITLE, "Census")
    expect(removed.locator(".tables-quote")).to_have_text(before)
    assert removed.get_by_role("link").count() == 0
    live.send("POST", "/removed/restore", {"papers": [otters]})
    expect(removed.get_by_role("link").first).to_be_visible()


# Order, filters, and the table as a whole


def test_rows_are_sorted_and_found_and_have_an_address(show: Open) -> None:
    tab = show()
    head = tab.page.get_by_role("columnheader", name="Length")
    head.get_by_role("button", name="Length", exact=False).first.click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    assert titles(tab)[0] == ICE_TITLE  # the only one with a number
    head.get_by_role("button", name="Length", exact=False).first.click()
    expect(head).to_have_attribute("aria-sort", "descending")
    assert titles(tab)[0] == ICE_TITLE  # rows without one come last either way
    tab.page.get_by_role("searchbox", name="Find in this table").fill("glacier")
    expect(rows(tab)).to_have_count(1)
    expect(tab.find(".tables-tools .status")).to_have_text("1 of 3 papers")
    tab.reload()
    expect(rows(tab)).to_have_count(1)
    tab.page.get_by_role("searchbox", name="Find in this table").fill("")
    tab.page.get_by_role("combobox", name="Rows to show").select_option("With something not found")
    tab.page.get_by_role("combobox", name="Columns to look in").select_option("In Length")
    expect(rows(tab)).to_have_count(2)
    assert ICE_TITLE not in titles(tab)


def test_a_row_is_removed_and_added_again(show: Open) -> None:
    tab = show(NIGHTS)
    choose(tab, f"What to do with {ICE_TITLE}", "Remove from the table")
    expect(rows(tab)).to_have_count(2)
    choose(tab, "More", "Add papers")
    dialog = tab.page.get_by_role("dialog", name="Add papers")
    expect(dialog.get_by_role("checkbox")).to_have_count(1)
    dialog.get_by_label(ICE_TITLE).check()
    dialog.get_by_role("button", name="Add 1 paper").click()
    expect(rows(tab)).to_have_count(3)


def test_a_review_asks_the_papers_and_questions_of_a_table(show: Open) -> None:
    tab = show(LENGTH, OTHERS | {"name": "Raft of otters"})
    choose(tab, "More", "Review")
    dialog = tab.page.get_by_role("dialog", name="Review of 3 papers")
    questions = dialog.get_by_label("Questions to put to each paper")
    expect(questions).to_have_value("What length does the glacier have?\nRaft of otters")
    dialog.get_by_label("Title").fill("Animals and ice")
    dialog.get_by_role("button", name="Write the review").click()
    expect(tab.find(".review h1")).to_have_text("Animals and ice", timeout=30_000)
    expect(tab.find(".review h2").first).to_have_text("What length does the glacier have?")
    expect(tab.find(".review")).to_contain_text("23 kilometres")


def test_a_table_is_renamed_exported_and_deleted(show: Open) -> None:
    tab = show(name="Beasts")
    choose(tab, "More", "Rename")
    dialog = tab.page.get_by_role("dialog", name="Rename")
    dialog.get_by_label("Name").fill("<b>Animals</b>")
    dialog.get_by_role("button", name="Save").click()
    expect(tab.page.get_by_role("heading", name="<b>Animals</b>")).to_be_visible()
    press(tab, "Export")
    links = tab.find(".tables-actions .menu a")
    assert links.all_inner_texts() == ["CSV", "Markdown", "Word", "BibTeX of the papers", "JSON with positions"]
    with tab.page.expect_download() as saved:
        links.first.click()
    assert "23 kilometres" in Path(saved.value.path()).read_text(encoding="utf-8-sig")
    choose(tab, "More", "Delete table")
    expect(tab.page.get_by_role("heading", name="Tables")).to_be_visible()
    expect(tab.find(".tables-list li")).to_have_count(0)
    press(tab, "Undo")
    expect(tab.page.get_by_role("heading", name="<b>Animals</b>")).to_be_visible()
    expect(rows(tab)).to_have_count(3)


def test_another_tab_follows_and_a_deleted_table_says_so(show: Open, opened: Open, live: Live) -> None:
    tab = show(LENGTH)
    id = tab.page.evaluate("location.hash").split("/")[1]
    other = opened(live, WIDE, f"#tables/{id}")
    cell(tab, ICE_TITLE, "Length").click(position={"x": 5, "y": 5})
    tab.find(".tables-detail").get_by_role("button", name="Edit").click()
    tab.page.keyboard.insert_text("Very long")
    tab.find(".tables-detail").get_by_role("button", name="Save").click()
    expect(cell(other, ICE_TITLE, "Length")).to_contain_text("Very long")
    live.send("DELETE", f"/tables/{id}")
    expect(other.find(".tables-sheet .problem")).to_contain_text("This table was deleted.")


# Room, and many papers


@pytest.mark.parametrize("size", [WIDE, PHONE, (360, 225)], ids=str)
def test_it_fits_and_is_accessible(show: Open, size: tuple[int, int]) -> None:
    tab = show(size=size)
    found = []
    low = size[1] < 500
    tab.page.emulate_media(forced_colors="active" if low else "none")

    def look() -> None:
        sideways = [each for each in tab.scrolls_sideways() if "tables-scroll" not in each]
        found.extend([*sideways, *tab.inaccessible(colours=size == WIDE)])

    look()
    assert (size == WIDE) == tab.find(".tables-head").is_visible()
    cell(tab, ICE_TITLE, "Length").focus()
    tab.page.keyboard.press("Enter")
    expect(tab.find(".tables-detail blockquote")).to_be_visible()
    look()
    tab.page.keyboard.press("Escape")
    press(tab, "Add column")
    look()
    tab.page.keyboard.press("Escape")
    tab.open("#tables")
    expect(tab.find(".tables-list li")).to_have_count(1)
    look()
    press(tab, "New table")
    look()
    tab.page.emulate_media(forced_colors="none")
    assert found == []


WORDS = "otter study kelp ice trial dose group placebo mean change week patients randomised outcome risk ratio".split()


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def many_cells(numbers: int) -> dict[str, Any]:
    """The JSON of a table of so many papers by 10 columns, filled, some of it by a model, some with two places."""
    drawn = random.Random(1)

    def some_words(count: int) -> str:
        return " ".join(drawn.choices(WORDS, k=count)).capitalize()

    def finding(is_number: bool) -> dict[str, Any]:
        quote, number = f"{some_words(drawn.randint(8, 40))}.", drawn.randint(10, 9000)
        by_model = not is_number and drawn.random() < 0.2
        value = f"{number} mg" if is_number else some_words(6) if by_model else ""
        place = {"page": drawn.randint(1, 9), "label": "4", "section": "§2 Methods", "start": 0, "end": len(quote)}
        read = {"number": float(number), "unit": "mg"} if is_number else {"number": None, "unit": ""}
        return {"quote": quote, "span": [0, len(quote)], "value": value, "by_model": by_model} | place | read

    columns = [
        {"id": sha(str(at))[:16], "name": f"Column {at}", "question": "", "choices": []}
        | ({"kind": "number", "unit": "mg"} if at % 3 == 0 else {"kind": "text", "unit": ""})
        for at in range(10)
    ]
    about = [(sha(f"paper {at}"), at) for at in range(numbers)]
    listed = [
        {"paper": paper, "key": f"k{at}", "label": f"Otter {at}", "title": some_words(9), "year": 1980 + at % 44}
        | {"file": f"{at}.pdf", "state": "here"}
        for paper, at in about
    ]
    cells = []
    for (paper, _), column in ((each, column) for each in about for column in columns):
        count = drawn.choices((0, 1, 2), (2, 7, 1))[0]
        found = [finding(column["kind"] == "number") for _ in range(count)]
        state = {"state": "found" if found else "not_found", "edit": "", "edit_number": None, "stale": False}
        state["closest"] = None
        cells.append({"paper": paper, "column": column["id"], "findings": found, "error": None, "changed": 1} | state)
    counts = {"found": len(cells), "not_found": 0, "waiting": 0, "failed": 0, "filling": False, "problem": None}
    named = {"id": sha("many")[:16], "name": "Many papers", "project": "", "updated": "2026-11-28T10:00:00Z"}
    scope = {"scope": f"{numbers} papers", "filter": {}, "follows": True, "changed": 1}
    return named | counts | scope | {"columns": columns, "rows": listed, "cells": cells}


SCROLL = """async ([pixels, frames]) => {
  const scroller = document.querySelector(".tables-scroll");
  for (let frame = 0; frame < frames; frame += 1) {
    scroller.scrollTop += pixels;
    await new Promise(requestAnimationFrame);
  }
}"""
PLACE = "(node) => [node.parentElement.dataset.paper, node.getBoundingClientRect().top]"
TELL = """(id) => new BroadcastChannel(`folio-events ${location.pathname}`).postMessage(
  { kind: "tables", data: { changed: [id], deleted: [] } })"""


class Filling:
    """A table that is being filled: each time that its cells are asked for, twenty more are there."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.full = content
        self.id = content["id"]
        self.done = 0

    def whole(self) -> str:
        cells = [cell | {"state": "waiting", "findings": [], "changed": 0} for cell in self.full["cells"]]
        empty = self.full | {"cells": cells, "waiting": len(cells), "found": 0, "filling": True, "changed": 0}
        return TableJson.model_validate(empty).model_dump_json()

    def more(self) -> str:
        cells = self.full["cells"][self.done : self.done + 20]
        self.done += len(cells)
        left = len(self.full["cells"]) - self.done
        counts = {"found": self.done, "not_found": 0, "waiting": left, "failed": 0, "filling": left > 0}
        landed = [cell | {"changed": self.done} for cell in cells]
        changed = {"cells": landed, "running": [], "reload": False, "changed": self.done, "problem": None} | counts
        return ChangedCells.model_validate(changed).model_dump_json()


def serve_instead(tab: Tab, id: str, whole: Callable[[], str], more: Callable[[], str]) -> None:
    def send(content: Callable[[], str]) -> Callable[[Any], None]:
        return lambda route: route.fulfill(body=content(), content_type="application/json")

    tab.page.route(f"**/tables/{id}", send(whole))
    tab.page.route(f"**/tables/{id}/cells?*", send(more))


def test_200_papers_by_10_columns_scroll_sort_and_filter_within_a_frame(opened: Open, live: Live) -> None:
    content = many_cells(200)
    tab = opened(live, WIDE, "#tables")
    body = TableJson.model_validate(content).model_dump_json()
    serve_instead(tab, content["id"], lambda: body, lambda: "{}")
    tab.open(f"#tables/{content['id']}")
    expect(rows(tab).first).to_be_visible()
    assert rows(tab).count() < 40  # those in view, of 200
    expect(tab.find(".tables-grid")).to_have_attribute("aria-rowcount", "201")
    field = tab.page.get_by_role("searchbox", name="Find in this table")

    def type_words() -> None:
        field.press_sequentially("kelp patients placebo", delay=30)
        field.fill("")

    acts: dict[str, Callable[[], object]] = {
        "scroll down": lambda: tab.page.evaluate(SCROLL, [100, 150]),
        "scroll up": lambda: tab.page.evaluate(SCROLL, [-300, 80]),
        "sort": lambda: tab.find(".tables-sort").nth(1).click(),
        "filter": type_words,
        "state": lambda: tab.page.get_by_role("combobox", name="Rows to show").select_option("differ"),
    }
    longest = {name: min(longest_tasks(tab, act)[0] for _ in range(4)) for name, act in acts.items()}
    assert max(longest.values()) < FRAME_MS, longest


def test_cells_land_within_a_frame_and_keep_what_is_read_in_place(opened: Open, live: Live) -> None:
    filling = Filling(many_cells(200))
    tab = opened(live, WIDE, "#tables")
    serve_instead(tab, filling.id, filling.whole, filling.more)
    tab.open(f"#tables/{filling.id}?sort=-year")
    expect(rows(tab).first).to_be_visible()
    tab.page.evaluate(SCROLL, [100, 20])
    rows(tab).nth(8).locator(".tables-cell").nth(2).focus()
    kept = tab.focused().evaluate(PLACE)

    def fill() -> None:
        for _ in range(25):
            tab.page.evaluate(TELL, filling.id)
            tab.page.wait_for_timeout(120)

    longest = longest_tasks(tab, fill)[0]
    assert filling.done >= 100
    expect(tab.find(".tables-bar .status")).to_have_text(re.compile(r"Filling: [\d,]+ of 2,000 cells"))
    assert kept == tab.focused().evaluate(PLACE)
    assert longest < FRAME_MS, longest


def test_a_thousand_papers_are_listed_to_the_last(opened: Open, live: Live) -> None:
    content = many_cells(1000)
    tab = opened(live, WIDE, "#tables")
    body = TableJson.model_validate(content).model_dump_json()
    serve_instead(tab, content["id"], lambda: body, lambda: "{}")
    tab.open(f"#tables/{content['id']}")
    rows(tab).first.locator(".tables-cell").nth(1).focus()
    tab.page.keyboard.press("Control+End")
    expect(tab.focused().locator("xpath=..")).to_have_attribute("aria-rowindex", "1001")
    assert rows(tab).count() < 45
