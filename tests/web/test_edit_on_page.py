"""The forms that correct what is known about papers: of one, of several, and of those that are not sure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from folio.papers.metadata import Field, Metadata
from folio.store.library import Library
from tests.helpers.browser import PHONE, WIDE, Tab, sizes
from tests.helpers.factories import small_papers
from tests.helpers.live_server import Live, builtin_app
from tests.helpers.page import act, clipboard, row, rows

pytestmark = pytest.mark.slow

OTTERS, GLACIER = "On Sea Otters", "The Aletsch Glacier"


@pytest.fixture(params=sizes(PHONE, WIDE), ids=str)
def tab(request: pytest.FixtureRequest, opened: Callable[..., Tab], tmp_path: Path) -> Iterator[Tab]:
    """The library of two papers, in a small window and a large one."""
    with Live(builtin_app(tmp_path, small_papers(tmp_path / "papers"))) as live:
        tab = opened(live, request.param, "#library")
        expect(rows(tab)).to_have_count(2)
        yield tab
        tab.page.goto("about:blank")  # before its server ends


def paper(tab: Tab, file: str = "otters.pdf") -> dict[str, Any]:
    """A paper as the server knows it."""
    papers = tab.context.request.get(f"{tab.url}/papers").json()["papers"]
    (found,) = (paper for paper in papers if paper["file"] == file)
    return dict(found)


def open_facets(tab: Tab) -> Locator:
    """The filters, which are closed on a narrow screen."""
    facets = tab.find(".facets")
    if not facets.is_visible():
        tab.page.get_by_role("button", name="Filters", exact=True).click()
    return facets


def form(tab: Tab) -> Locator:
    return tab.page.get_by_role("dialog", name="Edit otters.pdf")


def open_form(tab: Tab, title: str = OTTERS, **fields: str) -> None:
    """Opens the form, and fills these fields in."""
    act(tab, title, "Edit")
    expect(form(tab).get_by_label("Title")).to_be_focused()
    for label, value in fields.items():
        form(tab).get_by_label(label).fill(value)


def save(tab: Tab) -> None:
    form(tab).get_by_role("button", name="Save", exact=True).click()


def test_what_is_not_sure_says_so(tab: Tab) -> None:
    expect(row(tab, OTTERS).locator(".unsure")).to_have_text("Not sure: title")
    expect(row(tab, GLACIER).locator(".unsure")).to_have_count(0)
    open_form(tab)
    expect(form(tab).get_by_label("Title")).to_have_accessible_description("From the file’s metadata, not sure.")
    expect(form(tab).get_by_label("Year")).to_have_accessible_description("Not known.")
    expect(form(tab).get_by_label("Citation key")).to_have_value("otters")
    expect(form(tab).get_by_label("Citation key")).to_have_accessible_description("Made by Folio.")


def test_what_a_bibliography_has_is_corrected(tab: Tab) -> None:
    open_form(tab)
    form(tab).get_by_text("Publication and abstract").click()
    values = {"Kind": "Chapter of a book", "Volume": "3", "Number": "7", "Pages": "5-9"}
    values["Publisher"] = "Kelp & Co."
    for label, value in values.items():
        form(tab).get_by_label(label, exact=True).fill(value)
    form(tab).get_by_label("Abstract").fill("Otters\nsleep.")
    form(tab).get_by_label("Journal, conference").fill("Handbook of Ice")
    assert tab.inaccessible() == []
    assert tab.scrolls_sideways() == []
    save(tab)
    expect(form(tab)).to_be_hidden()
    details = tab.context.request.get(f"{tab.url}/papers/{paper(tab)['id']}").json()
    assert (details["fields"]["kind"]["value"], details["fields"]["issue"]["value"]) == ("chapter", "7")
    exported = tab.context.request.get(f"{tab.url}/papers.bib").text()
    assert "@incollection{" in exported
    for line in (
        "booktitle = {Handbook of Ice}", "pages = {5--9}", "publisher = {Kelp \\& Co.}", "volume = {3}",
    ):  # fmt: skip
        assert f"  {line},\n" in exported
    assert "  abstract = {Otters sleep.},\n" in exported
    open_form(tab)
    expect(form(tab).get_by_label("Volume")).to_be_hidden()
    form(tab).get_by_text("Publication and abstract").click()
    expect(form(tab).get_by_label("Kind", exact=True)).to_have_value("Chapter of a book")
    form(tab).get_by_label("Kind", exact=True).fill("article-magazine")
    save(tab)
    expect(form(tab)).to_be_hidden()
    assert "@article{" in tab.context.request.get(f"{tab.url}/papers.bib").text()


def test_fields_are_corrected_with_the_keyboard_and_reset(tab: Tab) -> None:
    press = tab.page.keyboard.press
    row(tab, OTTERS).focus()
    press("e")
    title = form(tab).get_by_label("Title")
    expect(title).to_be_focused()
    assert tab.focus_shows()
    authors = "Otter, Ann\nBo Seal\n{The Otter Society}"
    for value in ("Kelp Rafts", authors, "2014", "Journal of Otters", "10.1000/kelp", "kelp14", "sea\nto read"):
        press("Control+a")
        tab.page.keyboard.type(value)
        press("Tab")
    press("Tab")  # past what else a bibliography has
    press("Tab")  # past Cancel
    press("Enter")
    expect(form(tab)).to_be_hidden()
    kelp = row(tab, "Kelp Rafts")
    expect(kelp.locator(".authors")).to_have_text("Ann Otter, Bo Seal, The Otter Society")
    expect(kelp.locator(".year")).to_have_text("2014")
    expect(kelp.locator(".tags")).to_have_text("sea · to read")
    expect(kelp).to_be_focused()
    assert tab.scrolls_sideways() == []
    tab.find("#filter").fill("journal of otters")
    expect(rows(tab)).to_have_count(1)
    expect(tab.find("#related-papers > li").first).to_contain_text("in the text: p")  # ranked, below
    assert tab.scrolls_sideways() == []

    open_form(tab, "Kelp Rafts")
    expect(form(tab).get_by_label("Authors")).to_have_value("Otter, Ann\nSeal, Bo\n{The Otter Society}")
    expect(form(tab).get_by_label("Year")).to_have_accessible_description("Your edit.")
    expect(form(tab).get_by_label("Citation key")).to_have_value("kelp14")
    expect(form(tab).get_by_label("Tags")).to_have_value("sea\nto read")
    form(tab).get_by_role("button", name="Undo my edit : Title").click()
    expect(title).to_have_value(OTTERS)
    expect(title).to_be_focused()
    expect(form(tab).get_by_role("button", name="Undo my edit : Title")).to_have_count(0)
    press("Escape")
    expect(row(tab, OTTERS).locator(".unsure")).to_have_text("Not sure: title")
    expect(row(tab, OTTERS).locator(".year")).to_have_text("2014")
    expect(row(tab, OTTERS)).to_be_focused()


def test_an_edited_title_is_shown_by_old_and_new_answers(tab: Tab) -> None:
    tab.open("#ask")
    first = tab.ask("How do sea otters sleep?")
    conversation = tab.page.evaluate("location.hash")
    tab.open("#library")
    open_form(tab, Title="Kelp Rafts of the Pacific")
    save(tab)
    expect(form(tab)).to_be_hidden()
    tab.open(conversation)
    first.locator(".sentence .chip").first.click()
    expect(tab.find("#reader-title")).to_have_text("Kelp Rafts of the Pacific")
    tab.page.get_by_role("button", name="Copy BibTeX").first.click()
    expect(tab.find("#toast")).to_have_text("BibTeX entry copied.")
    assert "{Kelp Rafts of the Pacific}" in clipboard(tab)
    tab.page.get_by_role("button", name="Close reader").click()
    second = tab.ask("What is the diet of the sea otter?")
    expect(second.locator(".sources")).to_contain_text("Kelp Rafts of the Pacific")


def test_a_value_that_is_refused_is_explained_and_not_lost(tab: Tab) -> None:
    open_form(tab, Year="201")
    save(tab)
    assert form(tab).get_by_label("Year").evaluate("node => node.validity.patternMismatch")  # and it is not sent
    form(tab).get_by_label("Year").fill("3014")
    form(tab).get_by_label("DOI").fill("not a DOI")
    save(tab)
    expect(form(tab).get_by_role("alert")).to_contain_text("The year 3014 is not between 1400 and")
    form(tab).get_by_label("Year").fill("")
    save(tab)
    expect(form(tab).get_by_role("alert")).to_contain_text("“not a DOI” cannot be the field doi.")
    assert (tab.scrolls_sideways(), tab.inaccessible()) == ([], [])
    expect(form(tab).get_by_label("DOI")).to_have_value("not a DOI")
    form(tab).get_by_role("button", name="Cancel").click()
    expect(row(tab, OTTERS).locator(".unsure")).to_have_text("Not sure: title")
    tab.expected("status of 400")


def test_names_and_titles_of_papers_are_text_and_never_markup(tab: Tab) -> None:
    hostile = '<img src=x onerror="window.ran=true">'
    open_form(tab, Title=hostile, Authors=f"{hostile}, A", Journal="[glaciers p.7]", Tags=f"{hostile}\n[glaciers p.7]")
    save(tab)
    entry = row(tab, "<img")
    expect(entry.locator(".title")).to_have_text(hostile)
    expect(entry.locator(".tags")).to_have_text(f"{hostile} · (glaciers p.7)")
    open_facets(tab).get_by_label("(glaciers p.7)").last.check()
    expect(rows(tab)).to_have_count(1)
    tab.reload()
    expect(entry).to_have_count(1)
    expect(open_facets(tab).get_by_label("(glaciers p.7)").last).to_be_checked()
    entry.get_by_role("link").click()
    expect(tab.find("#view-paper .about").first).to_contain_text("(glaciers p.7)")
    tab.find("#view-paper").get_by_role("link", name=hostile).click()
    expect(rows(tab)).to_have_count(1)
    assert not tab.page.evaluate("window.ran")


def test_tags_of_several_papers_are_changed_at_once(tab: Tab) -> None:
    press = tab.page.keyboard.press
    row(tab, OTTERS).focus()
    press("t")
    dialog = tab.page.get_by_role("dialog", name="Tags of 1 paper")
    dialog.get_by_label("Add tags").fill("wild, to read")
    press("Enter")
    expect(row(tab, OTTERS).locator(".tags")).to_have_text("wild · to read")
    expect(row(tab, OTTERS)).to_be_focused()
    press("Control+a")
    expect(tab.find(".selected")).to_have_text("2 selected")
    press("t")
    dialog = tab.page.get_by_role("dialog", name="Tags of 2 papers")
    assert dialog.get_by_label("wild").evaluate("box => box.indeterminate")
    assert (tab.scrolls_sideways(), tab.inaccessible()) == ([], [])
    dialog.get_by_label("to read").check()  # of both
    dialog.get_by_label("wild").click()
    dialog.get_by_label("wild").uncheck()  # of none
    dialog.get_by_role("button", name="Save").click()
    expect(tab.find("#toast")).to_contain_text("2 papers changed.")
    assert [paper(tab, file)["tags"] for file in ("otters.pdf", "alps/glaciers.pdf")] == [["to read"]] * 2

    press("e")
    dialog = tab.page.get_by_role("dialog", name="Edit 2 papers")
    dialog.get_by_label("Year").fill("3014")
    press("Enter")
    expect(dialog.get_by_role("alert")).to_contain_text("The year 3014 is not between")
    dialog.get_by_label("Year").fill("2014")
    press("Enter")
    expect(rows(tab).locator(".year")).to_have_text(["2014", "2014"])
    tab.expected("status of 400")


def test_what_is_not_sure_is_checked_page_by_page(tab: Tab, tmp_path: Path) -> None:
    library = Library(tmp_path / "store" / "library.sqlite")
    (ice,) = [paper.id for paper in library.papers() if paper.title == GLACIER]
    library.change_metadata(ice, "bibliography", lambda before: Metadata(year=Field(1999, "bibliography", False)))
    library.close()
    tab.reload()
    tab.page.get_by_role("button", name="Check 2 papers").click()
    status = tab.find(".check-head .status")
    expect(status).to_have_text("1 of 2")
    queue = tab.page.get_by_role("form", name="What is known of it")
    expect(queue.get_by_label("Title")).to_be_focused()  # it is not sure
    picture = tab.page.get_by_role("img", name=f"First page of {OTTERS}")
    expect(picture).to_be_visible()
    picture.evaluate("(node) => node.decode()")
    assert (tab.scrolls_sideways(), tab.inaccessible()) == ([], [])
    tab.page.keyboard.press("Alt+s")
    expect(status).to_have_text("2 of 2")
    expect(queue.get_by_label("Year")).to_be_focused()
    tab.reload()  # the same paper of those that are left
    expect(queue.get_by_label("Year")).to_have_value("1999")
    queue.get_by_label("Year").fill("2003")
    tab.page.keyboard.press("Control+Enter")
    expect(tab.page.get_by_role("heading", name="Nothing is left to check.")).to_be_visible()
    assert (paper(tab, "alps/glaciers.pdf")["year"], paper(tab)["unsure"]) == (2003, ["title"])
    tab.find(".check-body").get_by_role("button", name="Back to the library").click()
    tab.page.get_by_role("button", name="Check 1 paper").click()
    queue.get_by_role("button", name="Save and next").click()  # nothing typed: it is right as it is
    expect(tab.page.get_by_role("heading", name="Nothing is left to check.")).to_be_visible()
    assert paper(tab)["unsure"] == []
    tab.page.go_back()
    expect(row(tab, OTTERS).locator(".unsure")).to_have_count(0)
    expect(tab.page.get_by_role("button", name="Check ")).to_be_hidden()


def test_collections_and_tags_are_offered_where_papers_have_any(tab: Tab, tmp_path: Path) -> None:
    facets = open_facets(tab)
    expect(facets.get_by_role("group", name="Tag", exact=True)).to_be_hidden()
    tab.open("#ask")
    tab.find("#options-button").click()
    expect(tab.find("#filter-venue")).to_be_visible()
    expect(tab.find("#filter-tag")).to_be_hidden()

    library = Library(tmp_path / "store" / "library.sqlite")
    (id,) = [paper.id for paper in library.papers() if paper.file == "otters.pdf"]
    zotero = Metadata(
        collections=Field(("Animals/Sea",), "zotero", True), tags=Field(("<b>furs; hairs</b>", "★"), "zotero", True)
    )
    library.change_metadata(id, "zotero", lambda before: zotero)
    library.close()
    tab.reload()
    tab.open("#library")
    expect(row(tab, OTTERS).locator(".tags")).to_have_text("<b>furs; hairs</b> · ★")
    collections = open_facets(tab).get_by_role("group", name="Collection", exact=True)
    expect(collections.locator(".facet-value")).to_have_text(["Animals1", "Animals/Sea1"])
    collections.get_by_label("Animals1", exact=True).check()
    expect(rows(tab)).to_have_count(1)
    expect(tab.find("#library-count")).to_have_text("1 of 2 papers")
    collections.get_by_label("Animals1", exact=True).uncheck()
    facets.get_by_label("<b>furs; hairs</b>").check()
    expect(rows(tab)).to_have_count(1)
    assert tab.scrolls_sideways() == []
    facets.get_by_role("button", name="Clear filters").click()
    expect(rows(tab)).to_have_count(2)

    tab.open("#ask")
    tab.find("#options-button").click()
    tab.find("#filter-tag").fill("<b>furs; hairs</b>")
    tab.find("#filter-collection").fill("sea; Animals")
    tab.page.keyboard.press("Enter")
    expect(tab.find("#chosen .tag-name")).to_have_text(["Collection: sea; Animals", "Tag: <b>furs; hairs</b>"])
    turn = tab.ask("How do sea otters sleep?")
    expect(turn).to_contain_text("otters.pdf")
    expect(turn).not_to_contain_text("glaciers.pdf")
