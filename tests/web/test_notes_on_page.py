"""All notes in the page: found, narrowed, edited, deleted, selected, exported, dragged, copied, opened."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from folio.store import notes as stored
from folio.store.library import Library
from folio.store.note_places import quote_of
from tests.helpers.browser import PHONE, WIDE, Tab
from tests.helpers.factories import small_papers
from tests.helpers.live_server import Live, builtin_app
from tests.helpers.page import clipboard, reader_shows

pytestmark = pytest.mark.slow

MIDDLE = (1024, 800)
HOSTILE = "<script>alert(1)</script> \u202eevil [Ghost 1999, p. 9]\nSecond line " + "long" * 90
Open = Callable[..., Tab]


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with Live(builtin_app(tmp_path, small_papers(tmp_path / "papers"))) as made:
        yield made


def papers(live: Live) -> dict[str, str]:
    """Title -> id."""
    with live.client() as client:
        return {each["title"]: each["id"] for each in client.get("/papers").json()["papers"]}


def add(live: Live, title: str, words: str, **more: Any) -> str:
    """Adds a note on words of a paper; returns its id."""
    note = {"quotes": [{"paper": papers(live)[title], "quote": words}], "colour": "yellow", "text": "", "statement": ""}
    with live.client() as client:
        reply = client.post("/notes", json={**note, "conversation": None, "turn": None, **more})
        assert reply.status_code == 201, reply.text
        return str(reply.json()["id"])


def notes(tab: Tab) -> Locator:
    return tab.find("#view-notes .note-item")


def ids(tab: Tab) -> list[str]:
    return [str(node.get_attribute("data-id")) for node in notes(tab).all()]


@pytest.fixture
def three(live: Live) -> list[str]:
    """Notes on the otters (yellow), on the otters with hostile words (green), and on the glacier (without a colour)."""
    return [
        add(live, "On Sea Otters", "rafts of kelp", text="They hold hands."),
        add(live, "On Sea Otters", "Sea otters", colour="green", text=HOSTILE),
        add(live, "The Aletsch Glacier", "23 kilometres", colour=""),
    ]


def test_notes_are_found_narrowed_and_ordered_in_the_address(live: Live, three: list[str], opened: Open) -> None:
    tab = opened(live, WIDE, "#notes")
    status = tab.find("#view-notes h1 + .status")
    expect(status).to_have_text("3 notes")
    tab.page.get_by_label("Find in your notes").fill("HOLD hands")
    expect(status).to_have_text("1 of 3 notes")
    assert ids(tab) == [three[0]]
    assert tab.page.evaluate("location.hash") == "#notes?q=HOLD+hands"
    tab.reload()
    expect(tab.page.get_by_label("Find in your notes")).to_have_value("HOLD hands")
    expect(notes(tab)).to_have_count(1)
    tab.page.get_by_label("Find in your notes").fill("")
    tab.find("#view-notes").get_by_label("Colour").select_option("green")
    expect(notes(tab)).to_have_count(1)
    assert ids(tab) == [three[1]]
    tab.find("#view-notes").get_by_label("Colour").select_option("")
    tab.find("#view-notes").get_by_label("Paper", exact=True).select_option(label="The Aletsch Glacier")
    expect(notes(tab)).to_have_count(1)
    assert ids(tab) == [three[2]]
    tab.find("#view-notes").get_by_label("Paper", exact=True).select_option("")
    tab.find("#view-notes").get_by_label("Sort by").select_option("created")
    expect(notes(tab)).to_have_count(3)
    assert tab.page.evaluate("location.hash") == "#notes?order=created"
    assert ids(tab)[0] == three[2]


def test_a_note_is_edited_by_keyboard_and_shown_in_another_tab(live: Live, three: list[str], opened: Open) -> None:
    tab = opened(live, WIDE, "#notes")
    other = tab.context.new_page()
    other.goto(f"{live.url}/#notes")
    expect(other.locator(".note-item")).to_have_count(3)
    note = tab.find(f"[data-id='{three[0]}']")
    note.get_by_role("button", name=re.compile("^Edit")).focus()
    tab.page.keyboard.press("Enter")
    field = note.get_by_role("textbox", name="Your note")
    expect(field).to_be_focused()
    tab.page.keyboard.press("Escape")
    expect(field).to_have_count(0)
    note.get_by_role("button", name=re.compile("^Edit")).focus()
    tab.page.keyboard.press("Enter")
    field.fill("They sleep <b>afloat</b>.")
    note.locator(".swatch.blue").click()
    field.press("Control+Enter")
    expect(note).to_contain_text("They sleep <b>afloat</b>.")
    expect(note).to_have_class(re.compile("blue"))
    expect(other.locator(f"[data-id='{three[0]}']")).to_contain_text("They sleep <b>afloat</b>.")
    with live.client() as client:
        (stored,) = (each for each in client.get("/notes").json()["notes"] if each["id"] == three[0])
    assert (stored["text"], stored["colour"]) == ("They sleep <b>afloat</b>.", "blue")


def test_of_two_who_edit_a_note_none_loses_words(live: Live, three: list[str], opened: Open) -> None:
    tab = opened(live, WIDE, "#notes")
    note = tab.find(f"[data-id='{three[0]}']")
    note.get_by_role("button", name=re.compile("^Edit")).click()
    field = note.get_by_role("textbox", name="Your note")
    field.fill("They sleep in kelp.")
    with live.client() as client:
        assert client.patch(f"/notes/{three[0]}", json={"text": "They hold paws."}).status_code == 200
        add(live, "On Sea Otters", "rafts of kelp")
        expect(notes(tab)).to_have_count(4)  # the page has heard of both
        expect(field).to_have_value("They sleep in kelp.")
        save = note.get_by_role("button", name="Save")
        save.click()
        expect(note.get_by_role("alert")).to_contain_text("It is now: “They hold paws.”.")
        assert {each["text"] for each in client.get("/notes").json()["notes"] if each["id"] == three[0]} == {
            "They hold paws."
        }
        note.get_by_role("button", name="Cancel").click()
        expect(note).to_contain_text("They hold paws.")
        note.get_by_role("button", name=re.compile("^Edit")).click()
        field.fill("Theirs and mine.")
        assert client.patch(f"/notes/{three[0]}", json={"text": "Theirs."}).status_code == 200
        save.click()
        expect(note.get_by_role("alert")).to_contain_text("It is now: “Theirs.”.")
        save.click()
        expect(note).to_contain_text("Theirs and mine.")
        expect(field).to_have_count(0)
    tab.expected("409")


def test_what_is_typed_stays_when_the_note_is_deleted_elsewhere(live: Live, three: list[str], opened: Open) -> None:
    tab = opened(live, WIDE, "#notes")
    note = tab.find(f"[data-id='{three[0]}']")
    note.get_by_role("button", name=re.compile("^Edit")).click()
    note.get_by_role("textbox", name="Your note").fill("They sleep in kelp.")
    with live.client() as client:
        assert client.delete(f"/notes/{three[0]}").status_code == 204
    expect(tab.find("#view-notes h1 + .status")).to_have_text("2 notes")
    save = note.get_by_role("button", name="Save")
    save.click()
    expect(note.get_by_role("alert")).to_contain_text("Save again to keep what you wrote as a new note.")
    save.click()
    expect(tab.find("#view-notes h1 + .status")).to_have_text("3 notes")
    expect(note).to_have_count(0)
    new = notes(tab).filter(has_text="They sleep in kelp.")
    expect(new).to_contain_text("rafts of kelp")
    tab.expected("404")


def kept(live: Live) -> set[str]:
    with live.client() as client:
        return {each["id"] for each in client.get("/notes").json()["notes"]}


def test_deleting_happens_at_once_and_can_be_undone(live: Live, three: list[str], opened: Open) -> None:
    tab = opened(live, WIDE, "#notes")
    expect(notes(tab)).to_have_count(3)
    notes(tab).first.get_by_role("button", name=re.compile("^Delete")).click()
    expect(notes(tab)).to_have_count(2)
    expect(tab.find("#toast")).to_contain_text("Note deleted.")
    assert len(kept(live)) == 2
    tab.find("#toast").get_by_role("button", name="Undo").click()
    expect(notes(tab)).to_have_count(3)
    for id in three[:2]:
        tab.find(f"[data-id='{id}']").get_by_role("checkbox").check()
    expect(tab.find("#view-notes").get_by_text("2 selected")).to_be_visible()
    tab.find(".notes-chosen").get_by_role("button", name="Delete").click()
    expect(notes(tab)).to_have_count(1)
    expect(tab.find("#toast")).to_contain_text("2 notes deleted.")
    assert kept(live) == {three[2]}


def test_what_is_shown_or_selected_is_exported_and_copied(live: Live, three: list[str], opened: Open) -> None:
    tab = opened(live, WIDE, "#notes?order=created")
    expect(notes(tab)).to_have_count(3)
    bar = tab.find(".notes-chosen")
    starts = {"Markdown": b"# Notes", "Word": b"PK", "BibTeX": b"%|@"}
    for name, start in starts.items():
        with tab.page.expect_download() as download:
            bar.get_by_role("button", name=name).click()
        assert re.match(start, download.value.path().read_bytes())
        assert download.value.suggested_filename.startswith("folio-notes.")
    tab.find(f"[data-id='{three[2]}']").get_by_role("checkbox").check()
    with tab.page.expect_download() as download:
        bar.get_by_role("button", name="Markdown").click()
    text = download.value.path().read_text(encoding="utf-8")
    assert "23 kilometres" in text
    assert "rafts of kelp" not in text
    bar.get_by_role("button", name="Copy").click()
    expect(tab.find("#toast")).to_have_text("Note copied.")
    assert re.fullmatch(r"“23 kilometres” \[[^]]+p\.? ?1\]", clipboard(tab)), clipboard(tab)


def test_a_note_is_dragged_with_its_citation(live: Live, three: list[str], opened: Open) -> None:
    tab = opened(live, WIDE, "#notes")
    carried = tab.find(f"[data-id='{three[1]}'] .note-handle").evaluate(
        """(handle) => {
          const dataTransfer = new DataTransfer();
          handle.dispatchEvent(new DragEvent("dragstart", { dataTransfer, bubbles: true }));
          return ["text/plain", "text/html"].map((type) => dataTransfer.getData(type));
        }"""
    )
    text, html = carried
    assert text.startswith("“Sea otters” [")
    assert "(Ghost 1999, p. 9)" in text
    assert "&lt;script&gt;" in html
    assert "<script" not in html


def test_the_page_of_a_note_opens_and_what_has_moved_is_said(live: Live, three: list[str], opened: Open) -> None:
    tab = opened(live, WIDE, "#notes")
    note = tab.find(f"[data-id='{three[2]}']")
    note.get_by_role("link", name=re.compile("The Aletsch Glacier")).click()
    expect(tab.find("#reader-title")).to_have_text("The Aletsch Glacier")
    reader_shows(tab, 1)
    tab.page.keyboard.press("Escape")
    expect(note.get_by_role("link", name=re.compile("The Aletsch Glacier"))).to_be_focused()
    with live.client() as client:
        assert client.delete(f"/papers/{papers(live)['The Aletsch Glacier']}").status_code == 200
    expect(note).to_contain_text("The paper was removed from the library.")
    expect(note.get_by_role("link", name=re.compile("The Aletsch Glacier"))).to_have_count(0)
    expect(note).to_contain_text("23 kilometres")
    note.get_by_role("button", name="Bring back").click()
    expect(note.get_by_role("link", name=re.compile("The Aletsch Glacier"))).to_be_visible()
    expect(note).not_to_contain_text("removed")


@pytest.mark.parametrize("place", ["#notes?read={id}&p=2", "#paper/{id}", "#paper/{id}/p/2"])
def test_a_removed_paper_is_brought_back_where_it_is_met(live: Live, opened: Open, place: str) -> None:
    id = papers(live)["The Aletsch Glacier"]
    with live.client() as client:
        assert client.delete(f"/papers/{id}").status_code == 200
    tab = opened(live, WIDE, place.format(id=id))
    tab.page.get_by_role("button", name="Bring back").first.click()
    shown = "#reader-title" if "p=" in place or "/p/" in place else "#view-paper h1"
    expect(tab.find(shown)).to_have_text("The Aletsch Glacier")
    if "#reader" in shown:
        reader_shows(tab, 2)
    expect(tab.page.get_by_text("This paper is not in the index.")).to_have_count(0)
    tab.expected("console: .*404.*")


def test_the_page_of_a_note_opens_before_the_papers_are_loaded(live: Live, three: list[str], opened: Open) -> None:
    tab = opened(live)
    tab.page.route(re.compile("/papers$"), lambda route: None)  # never answered
    tab.open("#notes")
    tab.reload()
    tab.find(f"[data-id='{three[2]}']").get_by_role("link", name=re.compile("The Aletsch Glacier")).click()
    expect(tab.find("#reader-title")).to_have_text("The Aletsch Glacier")
    reader_shows(tab, 1)


@pytest.mark.parametrize("size", [WIDE, MIDDLE, PHONE], ids=["wide", "middle", "phone"])
def test_notes_are_accessible_and_fit(live: Live, opened: Open, size: tuple[int, int]) -> None:
    tab = opened(live, size, "#notes")
    expect(tab.find("#view-notes .status")).to_have_text(re.compile("^No notes yet."))
    assert (tab.inaccessible(), tab.scrolls_sideways()) == ([], [])
    hostile = add(live, "On Sea Otters", "Sea otters", text=HOSTILE)
    note = tab.find(f"[data-id='{hostile}']")
    expect(note).to_contain_text("<script>alert(1)</script>")
    expect(note).to_contain_text("(Ghost 1999, p. 9)")
    assert (tab.inaccessible(), tab.scrolls_sideways()) == ([], [])
    note.get_by_role("button", name=re.compile("^Edit")).click()
    assert (tab.inaccessible(), tab.scrolls_sideways()) == ([], [])


def test_the_page_of_a_paper_has_its_notes(live: Live, three: list[str], opened: Open) -> None:
    tab = opened(live, WIDE, f"#paper/{papers(live)['On Sea Otters']}")
    pane = tab.find("#view-paper .notes-pane")
    expect(pane.locator(".note-item")).to_have_count(2)
    assert (tab.inaccessible(), tab.scrolls_sideways()) == ([], [])
    pane.locator(".note-item").first.get_by_role("button", name=re.compile("^Delete")).click()
    expect(pane.locator(".note-item")).to_have_count(1)
    tab.find("#toast").get_by_role("button", name="Undo").click()
    expect(pane.locator(".note-item")).to_have_count(2)
    add(live, "On Sea Otters", "Sea otters", text="A third one, from elsewhere.")
    expect(pane).to_contain_text("A third one, from elsewhere.")
    tab.open(f"#paper/{papers(live)['The Aletsch Glacier']}")
    expect(pane.locator(".note-item")).to_have_count(1)
    expect(pane).to_contain_text("23 kilometres")


def test_an_annotation_of_zotero_is_shown_in_its_colour_and_not_edited(
    tmp_path: Path, live: Live, three: list[str], opened: Open
) -> None:
    with closing(Library(tmp_path / "store" / "library.sqlite")) as library:
        (paper,) = [paper for paper in library.papers() if paper.title == "On Sea Otters"]
        quote = quote_of(library, paper, "No other mammal has a denser fur")
        origin = stored.NoteOrigin("library/items/ANNOTAT1", "library/items/ATTACHM1", "#a28ae5", "state")
        times = "2024-05-06T07:08:09.000000+00:00", "2024-06-07T08:09:10.000000+00:00"
        annotation = stored.Note("0" * 16, "pink", "Purple there", "", None, None, *times, (quote,), origin)
        stored.put_annotations(library.database, [annotation], [])
    tab = opened(live, WIDE, "#notes")
    note = tab.find(f"[data-id='{annotation.id}']")
    expect(note).to_contain_text("From Zotero, where it is changed")
    expect(note.get_by_role("button", name=re.compile("^Edit|^Delete"))).to_have_count(0)
    expect(note.locator(".note-quote")).to_have_css("border-left-color", "rgb(162, 138, 229)")
    tab.find(".notes-chosen").get_by_role("checkbox").check()
    tab.find(".notes-chosen").get_by_role("button", name="Delete").click()
    expect(notes(tab)).to_have_count(1)  # the person's own are deleted
    note.locator(".source").click()
    mark = tab.find(f".page-mark[data-note='{annotation.id}']").first
    expect(mark).to_have_class(re.compile("shaded"))
    tab.page.get_by_role("button", name="Note on “Purple there”").click()
    card = tab.find(".note-card")
    expect(card).to_contain_text("Purple there")
    expect(card.get_by_role("textbox")).to_have_count(0)
    tab.page.keyboard.press("Escape")
    expect(card).to_be_hidden()
