"""The library's form that corrects what is known about a paper, in the installed Chromium."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from folio.papers.metadata import Field, Metadata
from folio.store.library import Library
from tests.helpers.browser import PHONE, WIDE, Tab, sizes
from tests.helpers.factories import small_papers
from tests.helpers.live_server import Live, builtin_app
from tests.helpers.page import clipboard

pytestmark = pytest.mark.slow


@pytest.fixture(params=sizes(PHONE, WIDE), ids=str)
def tab(request: pytest.FixtureRequest, opened: Callable[..., Tab], tmp_path: Path) -> Iterator[Tab]:
    """The library of two papers, in a small window and a large one."""
    with Live(builtin_app(tmp_path, small_papers(tmp_path / "papers"))) as live:
        tab = opened(live, request.param, "#library")
        expect(tab.find(".papers > li")).to_have_count(2)
        yield tab
        tab.page.goto("about:blank")  # before its server ends


def otters(tab: Tab) -> Locator:
    return tab.find(".papers > li").filter(has_text="otters.pdf")


def form(tab: Tab) -> Locator:
    return tab.page.get_by_role("dialog", name="Edit otters.pdf")


def open_form(tab: Tab, **fields: str) -> None:
    """Opens the form, and fills these fields in."""
    otters(tab).get_by_role("button", name="Edit").click()
    expect(form(tab).get_by_label("Title")).to_be_focused()
    for label, value in fields.items():
        form(tab).get_by_label(label).fill(value)


def save(tab: Tab) -> None:
    form(tab).get_by_role("button", name="Save", exact=True).click()


def test_what_is_not_sure_says_so(tab: Tab) -> None:
    expect(otters(tab).locator("h2")).to_have_text("On Sea Otters (title not sure)")
    glaciers = tab.find(".papers > li").filter(has_text="glaciers.pdf")
    expect(glaciers.locator(".unsure")).to_have_count(0)
    open_form(tab)
    expect(form(tab).get_by_label("Title")).to_have_accessible_description("From the file’s metadata, not sure.")
    expect(form(tab).get_by_label("Year")).to_have_accessible_description("Not known.")


def test_fields_are_corrected_with_the_keyboard_and_reset(tab: Tab) -> None:
    press = tab.page.keyboard.press
    otters(tab).get_by_role("button", name="Edit").focus()
    press("Enter")
    title = form(tab).get_by_label("Title")
    expect(title).to_be_focused()
    assert tab.focus_shows()
    authors = "Otter, Ann\nBo Seal\n{The Otter Society}"
    for value in ("Kelp Rafts", authors, "2014", "Journal of Otters", "10.1000/kelp"):
        press("Control+a")
        tab.page.keyboard.type(value)
        press("Tab")
    press("Tab")  # past Cancel
    press("Enter")
    expect(form(tab)).to_be_hidden()
    expect(otters(tab).locator("h2")).to_have_text("Kelp Rafts")
    expect(otters(tab).locator(".authors")).to_have_text("Ann Otter, Bo Seal, The Otter Society")
    expect(otters(tab).locator(".about")).to_have_text("2014 · Journal of Otters · 2 pages · otters.pdf")
    expect(otters(tab).get_by_role("button", name="Edit : Kelp Rafts")).to_be_focused()
    assert tab.scrolls_sideways() == []
    tab.find("#filter").fill("journal of otters")
    expect(tab.find("#papers > li")).to_have_count(1)
    expect(tab.find("#related-papers > li").first).to_contain_text("in the text: p")  # ranked, below
    assert tab.scrolls_sideways() == []

    open_form(tab)
    expect(form(tab).get_by_label("Authors")).to_have_value("Otter, Ann\nSeal, Bo\n{The Otter Society}")
    expect(form(tab).get_by_label("Year")).to_have_accessible_description("Your edit.")
    form(tab).get_by_role("button", name="Undo my edit : Title").click()
    expect(title).to_have_value("On Sea Otters")
    expect(title).to_be_focused()
    expect(form(tab).get_by_role("button", name="Undo my edit : Title")).to_have_count(0)
    press("Escape")
    expect(otters(tab).locator("h2")).to_have_text("On Sea Otters (title not sure)")
    expect(otters(tab).locator(".about")).to_contain_text("2014")
    expect(otters(tab).get_by_role("button", name="Edit : On Sea Otters")).to_be_focused()


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
    tab.page.get_by_role("button", name="Copy BibTeX").click()
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
    expect(otters(tab).locator("h2")).to_have_text("On Sea Otters (title not sure)")
    tab.expected("status of 400")


def test_names_and_titles_of_papers_are_text_and_never_markup(tab: Tab) -> None:
    hostile = '<img src=x onerror="window.ran=true">'
    open_form(tab, Title=hostile, Authors=f"{hostile}, A", Journal="[glaciers p.7]")
    save(tab)
    expect(otters(tab).locator("h2")).to_have_text(hostile)
    expect(otters(tab).locator(".about")).to_contain_text("(glaciers p.7)")
    assert not tab.page.evaluate("window.ran")


def test_collections_and_tags_are_offered_where_papers_have_any(tab: Tab, tmp_path: Path) -> None:
    collections = tab.page.get_by_role("combobox", name="Collection", exact=True)
    tags = tab.page.get_by_role("combobox", name="Tag", exact=True)
    expect(tags).to_be_hidden()
    tab.open("#ask")
    tab.find("#options-button").click()
    expect(tab.find("#filter-venue")).to_be_visible()
    expect(tab.find("#filter-tag")).to_be_hidden()

    library = Library(tmp_path / "store" / "library.sqlite")
    (paper,) = [paper.id for paper in library.papers() if paper.file == "otters.pdf"]
    zotero = Metadata(
        collections=Field(("Animals/Sea",), "zotero", True), tags=Field(("<b>furs; hairs</b>", "★"), "zotero", True)
    )
    library.change_metadata(paper, "zotero", lambda before: zotero)
    library.close()
    tab.reload()
    tab.open("#library")
    expect(collections.locator("option")).to_have_text(["All collections", "Animals", "Animals/Sea"])
    expect(otters(tab).locator(".groups")).to_have_text(["Collections: Animals/Sea", "Tags: <b>furs; hairs</b> · ★"])
    collections.select_option("Animals")
    expect(tab.find(".papers > li")).to_have_count(1)
    expect(tab.find("#library-count")).to_have_text("1 of 2 papers")
    collections.select_option("")
    tags.select_option("★")
    expect(tab.find(".papers > li")).to_have_count(1)
    tags.select_option("")
    assert tab.scrolls_sideways() == []

    tab.open("#ask")
    tab.find("#options-button").click()
    tab.find("#filter-tag").fill("<b>furs; hairs</b>")
    tab.find("#filter-collection").fill("sea; Animals")
    tab.page.keyboard.press("Enter")
    expect(tab.find("#chosen .tag-name")).to_have_text(["Collection: sea; Animals", "Tag: <b>furs; hairs</b>"])
    turn = tab.ask("How do sea otters sleep?")
    expect(turn).to_contain_text("otters.pdf")
    expect(turn).not_to_contain_text("glaciers.pdf")
