"""The page keeps what a person typed, chose or asked while replies are late or fail and other views change things."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.helpers.browser import WIDE, Tab
from tests.helpers.factories import small_papers
from tests.helpers.live_server import Live, builtin_app, until
from tests.helpers.page import open_reader, page_in, reader_shows

pytestmark = pytest.mark.slow

EDITED = "How thick is the ice of the Aletsch glacier?"
QUESTION, OTTERS, GLACIER = "How long is the Aletsch glacier?", "On Sea Otters", "The Aletsch Glacier"
Open = Callable[..., Tab]


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with Live(builtin_app(tmp_path, small_papers(tmp_path / "papers"))) as made:
        yield made


@pytest.fixture
def papers(live: Live) -> dict[str, str]:
    """Title -> id."""
    with live.client() as client:
        return {each["title"]: each["id"] for each in client.get("/papers").json()["papers"]}


def add_note(live: Live, paper: str, quote: str) -> str:
    return str(live.send("POST", "/notes", {"quotes": [{"paper": paper, "quote": quote}], "text": "Mine."})["id"])


def texts(live: Live) -> list[str]:
    return sorted(note["text"] for note in live.send("GET", "/notes")["notes"])


def turns(tab: Tab) -> Locator:
    return tab.find(".turn h2")


def edit(tab: Tab, note: str, text: str) -> Locator:
    item = tab.find(f".note-item[data-id='{note}']")
    item.get_by_role("button", name=re.compile("^Edit")).click()
    field = item.get_by_role("textbox", name="Your note")
    field.fill(text)
    return field


# Conversations and the reader


def test_an_answer_stays_when_the_reader_beside_it_is_closed(live: Live, papers: dict[str, str], opened: Open) -> None:
    tab = opened(live, WIDE, "#ask")
    open_reader(tab, papers[OTTERS])
    reader_shows(tab, 1)
    tab.ask(QUESTION)
    tab.find(".reader-pages").focus()
    tab.page.keyboard.press("Escape")
    expect(tab.find("#reader")).to_be_hidden()
    expect(turns(tab)).to_have_text([QUESTION])
    assert re.fullmatch(r"#c/[\w-]+", tab.page.evaluate("location.hash"))
    tab.reload()
    expect(turns(tab)).to_have_text([QUESTION])


def test_an_answer_that_came_beside_another_view_is_there_on_return(live: Live, opened: Open) -> None:
    tab = opened(live, WIDE, "#ask")
    held: list[Route] = []
    tab.page.route("**/chat/stream", lambda route: held.append(route))
    with tab.page.expect_request("**/chat/stream"):
        tab.question.fill(QUESTION)
        tab.page.keyboard.press("Enter")
    tab.find(".views a[href='#library']").click()
    expect(tab.find("#library-count")).to_contain_text("2 papers")
    held.pop().continue_()
    expect(tab.find("#conversations a")).to_have_count(1)
    tab.page.go_back()
    expect(tab.find(".turn .actions")).to_be_visible()
    expect(turns(tab)).to_have_text([QUESTION])
    assert re.fullmatch(r"#c/[\w-]+", tab.page.evaluate("location.hash"))


def test_a_conversation_that_is_deleted_elsewhere_moves_no_other_view(live: Live, opened: Open) -> None:
    tab, other = opened(live), opened(live)
    tab.ask(QUESTION)
    tab.find(".views a[href='#library']").click()
    tab.find("#filter").fill("otter")
    expect(other.find("#conversations a")).to_have_count(1)  # the server has told of it
    (conversation,) = live.send("GET", "/conversations")["conversations"]
    live.send("DELETE", f"/conversations/{conversation['id']}")
    expect(tab.find("#toast")).to_contain_text("deleted")
    expect(tab.find("#filter")).to_be_focused()
    expect(tab.find("#view-library")).to_be_visible()


def test_back_counts_while_another_branch_is_being_loaded(live: Live, opened: Open) -> None:
    first = live.send("POST", "/chat", {"message": QUESTION})
    conversation = first["conversation"]
    live.send("POST", "/chat", {"message": EDITED, "conversation": conversation, "replaces": first["turn"]})
    tab = opened(live, WIDE, f"#c/{conversation}")
    expect(turns(tab)).to_have_text([EDITED])
    held: list[Route] = []
    tab.page.route(re.compile(r"\?turn="), lambda route: held.append(route))
    with tab.page.expect_request(re.compile(r"\?turn=")):
        tab.find(".branches").get_by_role("button", name="Previous branch").click()
    with tab.page.expect_response(re.compile(f"/conversations/{conversation}$")):
        tab.page.go_back()
    with tab.page.expect_response(re.compile(r"\?turn=")):
        held.pop().continue_()
    tab.page.wait_for_timeout(300)
    expect(turns(tab)).to_have_text([EDITED])
    assert tab.page.evaluate("location.hash") == f"#c/{conversation}"


@pytest.mark.parametrize("is_reloaded", [False, True], ids=["at once", "after a reload"])
def test_a_filter_that_was_typed_beside_the_reader_stays(
    live: Live, papers: dict[str, str], opened: Open, is_reloaded: bool
) -> None:
    add_note(live, papers[OTTERS], "Sea otters")
    add_note(live, papers[GLACIER], "23 kilometres")
    tab = opened(live, WIDE, "#notes")
    tab.find(".note-item").first.locator(".source").click()
    reader_shows(tab, 1)
    if is_reloaded:
        tab.reload()
        reader_shows(tab, 1)
    tab.page.get_by_label("Find in your notes").fill("kilometres")
    expect(tab.find(".note-item")).to_have_count(1)
    tab.find("#reader").get_by_role("button", name="Close reader").click()
    expect(tab.find("#reader")).to_be_hidden()
    expect(tab.find(".note-item")).to_have_count(1)
    assert tab.page.evaluate("location.hash") == "#notes?q=kilometres"


def test_a_paper_that_could_not_be_loaded_is_tried_again(live: Live, papers: dict[str, str], opened: Open) -> None:
    tab = opened(live)
    address = re.compile(f"/papers/{papers[OTTERS]}$")
    tab.page.route(address, lambda route: route.abort())
    tab.open(f"#ask?read={papers[OTTERS]}&p=1")
    reader_shows(tab, 1)  # its text has come
    again = tab.find("#reader").get_by_role("button", name="Try again")
    expect(again).to_be_visible()
    tab.page.unroute(address)
    again.click()
    expect(again).to_have_count(0)
    expect(tab.find("#reader").get_by_role("button", name="Copy citation")).to_be_enabled()
    tab.expected("ERR_FAILED")


# Notes


@pytest.mark.parametrize("way", ["another note", "Escape", "another view"])
def test_a_note_that_is_left_is_saved(live: Live, papers: dict[str, str], opened: Open, way: str) -> None:
    note, other = (add_note(live, papers[OTTERS], words) for words in ("Sea otters", "rafts of kelp"))
    tab = opened(live, WIDE, f"#paper/{papers[OTTERS]}")
    field = edit(tab, note, "They sleep.")
    if way == "another note":
        tab.find(f".note-item[data-id='{other}']").get_by_role("button", name=re.compile("^Edit")).click()
        expect(tab.find(f".note-item[data-id='{other}'] textarea")).to_be_focused()
    elif way == "Escape":
        field.press("Escape")
        expect(field).to_have_count(0)
    else:
        tab.open("#notes")
    expect(tab.find(".note-item:visible").filter(has_text="They sleep.")).to_have_count(1)
    assert texts(live) == ["Mine.", "They sleep."]


def test_a_note_that_was_deleted_while_it_was_edited_is_edited_no_more(
    live: Live, papers: dict[str, str], opened: Open
) -> None:
    note, other = (add_note(live, papers[OTTERS], words) for words in ("Sea otters", "rafts of kelp"))
    tab = opened(live, WIDE, "#notes")
    tab.find(f".note-item[data-id='{note}']").get_by_role("checkbox").check()
    edit(tab, note, "They sleep.")
    tab.find(".notes-chosen").get_by_role("button", name="Delete").click()
    expect(tab.find(".note-item")).to_have_count(1)
    edit(tab, other, "They swim.").press("Control+Enter")
    expect(tab.find(".note-item")).to_contain_text("They swim.")
    tab.page.goto("about:blank")
    until(lambda: texts(live) == ["They swim."])


def test_a_note_is_typed_on_while_its_paper_is_tagged_elsewhere(
    live: Live, papers: dict[str, str], opened: Open
) -> None:
    note = add_note(live, papers[OTTERS], "Sea otters")
    tab = opened(live, WIDE, f"#paper/{papers[OTTERS]}")
    field = edit(tab, note, "They sleep.")
    live.send("PATCH", f"/papers/{papers[OTTERS]}", {"tags": ["fur"]})
    expect(tab.find("#view-paper .paper-head")).to_contain_text("fur")
    expect(field).to_be_focused()
    expect(field).to_have_value("They sleep.")


def test_a_note_that_is_saved_twice_is_one(live: Live, papers: dict[str, str], opened: Open) -> None:
    tab = opened(live, WIDE, f"#paper/{papers[OTTERS]}/p/1")
    reader_shows(tab, 1)
    expect(page_in(tab, 1).locator(".word").first).to_be_attached()
    tab.find(".reader-pages").focus()
    tab.page.keyboard.press("s")
    tab.page.get_by_role("toolbar", name="Selected words").get_by_role("button", name="Note", exact=True).click()
    card = tab.page.get_by_role("region", name="Note", exact=True)
    card.get_by_role("textbox").fill("They sleep.")
    card.get_by_role("button", name="Save").dblclick()
    expect(card).to_be_hidden()
    assert texts(live) == ["They sleep."]


# Search, library and papers


def test_a_search_follows_its_scope(live: Live, opened: Open) -> None:
    tab = opened(live, WIDE, "#ask?year=1901")
    tab.find("#to-search").click()
    tab.find("#query").fill("otters")
    tab.page.keyboard.press("Enter")
    expect(tab.page).to_have_url(re.compile("#search\\?year=1901&q=otters$"))
    problem = tab.find("#search-problem").get_by_role("alert")
    expect(problem).to_be_visible()
    tab.find("#query").fill("otters asleep")
    tab.find("#view-search").get_by_role("button", name=re.compile("^Remove|1901")).first.click()
    expect(problem).to_have_count(0)
    expect(tab.find("#hits > li").first).to_contain_text(OTTERS)
    expect(tab.find("#query")).to_have_value("otters asleep")
    tab.expected("404")


def test_a_library_that_is_not_loaded_is_not_said_to_be_empty(live: Live, opened: Open) -> None:
    tab = opened(live)
    held: list[Route] = []
    tab.page.route(re.compile("/papers$"), lambda route: held.append(route))
    tab.open("#library")
    with tab.page.expect_request(re.compile("/papers$")):
        tab.reload()
    expect(tab.find("#library-count")).to_have_text("Loading")
    tab.find(".views a[href='#notes']").click()
    tab.find(".views a[href^='#library']").click()
    expect(tab.find("#library-count")).to_have_text("Loading")
    held.pop().continue_()
    expect(tab.find("#library-count")).to_contain_text("2 papers")


def test_a_title_that_was_changed_elsewhere_is_shown_after_an_edit(
    live: Live, papers: dict[str, str], opened: Open
) -> None:
    tab = opened(live, WIDE, f"#paper/{papers[OTTERS]}")
    head = tab.find("#view-paper .paper-head")
    head.get_by_role("button", name="Edit").click()
    field = head.get_by_label("Title")
    field.fill("Being typed")
    with tab.page.expect_response(re.compile("/papers$")):
        live.send("PATCH", f"/papers/{papers[OTTERS]}", {"title": "Otters of the Sea"})
    expect(field).to_have_value("Being typed")
    head.get_by_role("button", name="Cancel").click()
    expect(head.locator("h1")).to_have_text("Otters of the Sea")


def test_the_focus_stays_while_papers_come_back(live: Live, papers: dict[str, str], opened: Open) -> None:
    live.send("POST", "/removed", {"papers": list(papers.values())})
    tab = opened(live, WIDE, "#library")
    removed = tab.find(".removed")
    removed.locator("summary").click()
    removed.get_by_role("button", name=f"Bring back : {OTTERS}").focus()
    tab.page.keyboard.press("Enter")
    expect(removed.locator("summary")).to_have_text("Removed today: 1")
    expect(removed.get_by_role("button", name=f"Bring back : {GLACIER}")).to_be_focused()
