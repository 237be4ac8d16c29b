"""Projects in the page: made from the library, asked, changed, undone; the line that says what is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.helpers.browser import PHONE, WIDE, Tab
from tests.helpers.factories import small_papers
from tests.helpers.live_server import Live, builtin_app, until
from tests.helpers.page import act

pytestmark = pytest.mark.slow

Open = Callable[..., Tab]
LENGTH = "What is the length of the Aletsch glacier?"


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with Live(builtin_app(tmp_path, small_papers(tmp_path / "papers"))) as made:
        yield made


def make(live: Live, name: str = "Sea", title: str = "On Sea Otters", **more: Any) -> str:
    """A project with this paper; returns its id."""
    with live.client() as client:
        listed = client.get("/papers").json()["papers"]
        papers = [each["id"] for each in listed if each["title"] == title]
        reply = client.post("/projects", json={"name": name, "papers": papers, **more})
        assert reply.status_code == 201, reply.text
        return str(reply.json()["id"])


def ask(tab: Tab, question: str) -> None:
    tab.find("#question").fill(question)
    tab.find("#send").click()


def test_a_project_is_made_of_selected_papers_and_asked(live: Live, opened: Open) -> None:
    tab = opened(live, WIDE, "#library")
    act(tab, "On Sea Otters", "Add to a project")
    dialog = tab.find("#add-to-project")
    expect(dialog.get_by_role("heading")).to_have_text("Add 1 paper to a project")
    dialog.get_by_label("Name").fill("Sea")
    dialog.get_by_label("Name").press("Enter")
    view = tab.find("#view-projects")
    expect(view.get_by_role("heading", name="Sea", exact=True)).to_be_visible()
    expect(view.locator(".project-papers li")).to_have_text(["On Sea Otters"])
    expect(tab.find(".side-projects li")).to_have_text(["Sea"])
    view.get_by_role("button", name="Ask this project").click()
    line = tab.find("#scope-line .scope-text")
    expect(line).to_have_text("Asking 1 paper in Sea")
    ask(tab, LENGTH)
    expect(tab.find(".refused")).to_have_text("Not found in the one paper of Sea.")
    tab.reload()  # the conversation stays in its project
    expect(line).to_have_text("Asking 1 paper in Sea")
    expect(tab.find(".refused")).to_have_text("Not found in the one paper of Sea.")
    tab.find(".refusal").get_by_role("button", name="Ask all papers").click()
    expect(tab.find(".turn").last.locator(".sentence").first).to_contain_text("23 kilometres")
    expect(line).to_have_text("Asking all 2 papers")
    tab.page.goto(f"{live.url}#projects")
    view.get_by_role("link", name="Sea").click()
    expect(view.get_by_role("link", name=LENGTH)).to_be_visible()


def test_the_line_switches_between_projects_and_a_new_conversation_stays(live: Live, opened: Open) -> None:
    make(live)
    ice = make(live, "Ice", "The Aletsch Glacier")
    tab = opened(live, WIDE, "#ask")
    line, switcher = tab.find("#scope-line .scope-text"), tab.page.get_by_label("Project", exact=True)
    expect(line).to_have_text("Asking all 2 papers")
    expect(tab.find("#scope-all")).to_be_hidden()
    switcher.select_option("Ice")
    expect(line).to_have_text("Asking 1 paper in Ice")
    assert tab.page.evaluate("location.hash") == f"#ask?project={ice}"
    turn = tab.ask(LENGTH)
    assert tab.find(".turn").count() == 1, tab.find("#turns").inner_text()
    expect(turn.locator(".asked-only").first).to_contain_text("Asked: 1 paper in Ice")
    ask(tab, "And how thick is its ice?")  # a follow-up
    expect(tab.find(".turn").last.locator(".sentence").first).to_contain_text("800 metres")
    tab.find("#new").click()
    expect(tab.find(".turn")).to_have_count(0)
    expect(line).to_have_text("Asking 1 paper in Ice")
    tab.find("#scope-all").click()
    expect(line).to_have_text("Asking all 2 papers")
    expect(tab.find("#question")).to_be_focused()
    switcher.select_option("Sea")
    expect(line).to_have_text("Asking 1 paper in Sea")
    with live.client() as client:  # another tab deletes it
        sea = next(each for each in client.get("/projects").json()["projects"] if each["name"] == "Sea")
        assert client.delete(f"/projects/{sea['id']}").status_code == 204
    expect(line).to_have_text("Asking all 2 papers")
    expect(tab.find("#toast")).to_contain_text("This project was deleted.")


def test_a_deep_answer_keeps_its_project(live: Live, opened: Open) -> None:
    make(live)
    tab = opened(live, WIDE, "#ask")
    tab.page.get_by_label("Project", exact=True).select_option("Sea")
    tab.find("#deep").check()
    ask(tab, "Who invented the telephone?")
    expect(tab.find(".refused")).to_have_text("Not found in the one paper of Sea.")
    ask(tab, "What is the diet of the sea otter made of?")
    expect(tab.find(".asked-only:not([hidden])").last).to_contain_text("Asked: 1 paper in Sea")


def test_a_filter_of_the_library_is_a_rule(live: Live, opened: Open) -> None:
    with live.client() as client:
        for paper in client.get("/papers").json()["papers"]:
            if paper["title"] == "On Sea Otters":
                client.post("/papers/edits", json={"papers": [paper["id"]], "add_tags": ["fur"]})
            else:
                other = paper["id"]
    tab = opened(live, WIDE, "#library?tag=fur")
    tab.find(".library-actions").get_by_role("button", name="Add to a project").click()
    dialog = tab.find("#add-to-project")
    expect(dialog.get_by_label("What fits the filter")).to_be_checked()
    dialog.get_by_label("Name").fill("Furry")
    dialog.get_by_role("button", name="Add", exact=True).click()
    view = tab.find("#view-projects")
    expect(view.locator(".tag-name")).to_have_text(["tag fur"])
    with live.client() as client:
        client.post("/papers/edits", json={"papers": [other], "add_tags": ["fur"]})
    expect(view.locator(".project-papers li")).to_have_count(2)
    view.get_by_role("button", name="Take “The Aletsch Glacier” out of the project").click()
    expect(view.locator(".project-papers.absent li")).to_contain_text(["The Aletsch Glacier"])
    tab.find("#toast").get_by_role("button", name="Undo").click()
    expect(view.locator(".project-papers.absent")).to_have_count(0)
    view.get_by_role("button", name="Rename").click()
    view.get_by_label("Name").fill("Warm")
    view.get_by_label("Description").fill("For <b>the</b> review.")
    view.get_by_role("button", name="Save").click()
    expect(view.locator(".project-about")).to_have_text("For <b>the</b> review.")
    view.get_by_role("button", name="Delete project").click()
    expect(view.get_by_role("heading", name="Projects", exact=True)).to_be_visible()
    expect(tab.find(".side-projects li")).to_have_count(0)
    tab.page.keyboard.press("Control+z")
    expect(view.get_by_role("heading", name="Warm", exact=True)).to_be_visible()


def test_collections_are_made_in_the_library_and_copied(live: Live, opened: Open) -> None:
    tab = opened(live, WIDE, "#library")
    act(tab, "The Aletsch Glacier", "Tags")
    dialog = tab.find("#bulk")
    dialog.get_by_label("Put into collections").fill("Ice/Alps")
    dialog.get_by_label("Put into collections").press("Enter")
    expect(dialog).to_have_count(0)
    tab.page.goto(f"{live.url}#projects")
    view = tab.find("#view-projects")
    expect(view.locator(".project-list li a")).to_have_text(["Ice", "Ice/Alps"])
    view.locator("li").filter(has_text="Ice/Alps").get_by_role("button", name="Copy to a project").click()
    expect(view.get_by_role("heading", name="Alps", exact=True)).to_be_visible()
    tab.page.goto(f"{live.url}#projects")
    view.get_by_role("link", name="Ice/Alps").click()
    view.get_by_role("button", name="Make table").click()
    tab.page.get_by_role("dialog", name="New table").get_by_role("button", name="Make table").click()
    expect(tab.find("#view-tables h1").last).to_have_text("1 paper, in the collection Ice/Alps")
    tab.page.goto(f"{live.url}#projects")
    view.get_by_role("link", name="Alps", exact=True).click()
    expect(view.locator(".tag-name")).to_have_text(["collection Ice/Alps"])
    expect(view.locator(".project-papers li")).to_contain_text(["The Aletsch Glacier"])


def test_notes_of_a_project_are_listed_alone(live: Live, opened: Open) -> None:
    sea = make(live)
    with live.client() as client:
        for paper in client.get("/papers").json()["papers"]:
            quotes = {"quotes": [{"paper": paper["id"], "page": 1}], "text": f"On {paper['title']}"}
            assert client.post("/notes", json=quotes).status_code == 201
    tab = opened(live, WIDE, f"#projects?project={sea}")
    tab.find("#view-projects").get_by_role("link", name="1 note").click()
    status = tab.find("#view-notes h1 + .status")
    expect(status).to_have_text("1 note")
    tab.find("#view-notes").get_by_role("button", name="Project: Sea").click()
    expect(status).to_have_text("2 notes")


def test_a_table_is_made_of_a_project_and_belongs_to_it(live: Live, opened: Open) -> None:
    sea = make(live)
    tab = opened(live, WIDE, f"#projects?project={sea}")
    view = tab.find("#view-projects")
    expect(view).to_contain_text("puts the same questions to all papers of the project")
    view.get_by_role("button", name="Make table").click()
    dialog = tab.page.get_by_role("dialog", name="New table")
    expect(dialog.get_by_label("The paper of Sea, and papers that are added to it later")).to_be_checked()
    dialog.get_by_role("button", name="Make table").click()
    expect(tab.page.get_by_role("heading", name="1 paper, in Sea", exact=True)).to_be_visible()
    (made,) = live.send("GET", f"/tables?project={sea}")["tables"]
    assert (made["name"], made["rows"], made["project"]) == ("1 paper, in Sea", 1, sea)
    tab.page.goto(f"{live.url}#projects?project={sea}")
    view.locator(".project-tables").get_by_role("link", name="1 paper, in Sea").click()
    assert tab.page.evaluate("location.hash") == f"#tables/{made['id']}"
    tab.page.goto(f"{live.url}#projects?project={sea}")
    expect(view.locator(".project-tables li")).to_have_count(1)
    live.send("DELETE", f"/tables/{made['id']}")  # as in another tab
    expect(view.locator(".project-tables")).to_have_count(0)


def choose(tab: Tab, project: str) -> None:
    """Adds what the dialog is open for to this project."""
    dialog = tab.find("#add-to-project")
    dialog.get_by_label("Project").select_option(project)
    assert tab.inaccessible() == []
    assert tab.scrolls_sideways() == []
    dialog.get_by_role("button", name="Add", exact=True).press("Enter")
    expect(dialog).to_have_count(0)
    expect(tab.find("#toast")).to_contain_text(f"Added to “{project}”.")


def kept(live: Live, project: str) -> tuple[list[str], list[str], list[str]]:
    """The conversations, notes and tables of a project."""
    now = live.send("GET", f"/projects/{project}")
    return [each["id"] for each in now["conversations"]], now["note_ids"], now["tables"]


@pytest.mark.parametrize("size", [WIDE, PHONE])
def test_a_conversation_is_added_by_its_menu(live: Live, opened: Open, size: tuple[int, int]) -> None:
    sea = make(live)
    tab = opened(live, size, "#ask")
    tab.ask(LENGTH)
    if size == PHONE:
        tab.find(".drawer-button").press("Enter")
    more = tab.find("#conversations").get_by_role("button", name=f"Change “{LENGTH}”")
    more.press("Enter")
    tab.find("#conversations .menu").get_by_role("button", name="Add to a project").press("Enter")
    expect(tab.find("#add-to-project h2")).to_have_text("Add this conversation to a project")
    choose(tab, "Sea")
    (conversation,) = kept(live, sea)[0]
    tab.find("#toast").get_by_role("button", name="Undo").click()
    until(lambda: kept(live, sea)[0] == [])
    live.send("POST", f"/projects/{sea}/parts", {"add": {"conversations": [conversation]}})
    tab.page.goto(f"{live.url}#projects?project={sea}")
    out = tab.find("#view-projects").get_by_role("button", name=f"Take “{LENGTH}” out of the project")
    out.press("Enter")
    expect(tab.find(".project-conversations")).to_have_count(0)
    expect(tab.find("#view-projects h1")).to_be_focused()
    assert kept(live, sea)[0] == []
    tab.find("#toast").get_by_role("button", name="Undo").click()
    expect(tab.find(".project-conversations li")).to_contain_text([LENGTH])


@pytest.mark.parametrize("size", [WIDE, PHONE])
def test_notes_are_added_one_by_one_and_together(live: Live, opened: Open, size: tuple[int, int]) -> None:
    sea = make(live, title="")
    (paper, *_) = live.send("GET", "/papers")["papers"]
    notes = [
        live.send("POST", "/notes", {"quotes": [{"paper": paper["id"], "page": 1}], "text": text})["id"]
        for text in ("First", "Second", "Third")
    ]
    tab = opened(live, size, "#notes")
    item = tab.find(f'.note-item[data-id="{notes[0]}"]')
    item.get_by_role("button", name="Add to a project").press("Enter")
    expect(tab.find("#add-to-project h2")).to_have_text("Add 1 note to a project")
    choose(tab, "Sea")
    assert kept(live, sea)[1] == [notes[0]]
    together = tab.find(".notes-chosen").get_by_role("button", name="Add to a project")
    expect(together).to_be_hidden()
    for note in notes[1:]:
        tab.find(f'.note-item[data-id="{note}"] input').check()
    together.press("Enter")
    expect(tab.find("#add-to-project h2")).to_have_text("Add 2 notes to a project")
    choose(tab, "Sea")
    assert set(kept(live, sea)[1]) == set(notes)
    tab.page.goto(f"{live.url}#projects?project={sea}")
    items = tab.find(".project-notes li")
    expect(items).to_have_count(3)
    assert tab.inaccessible() == []
    assert tab.scrolls_sideways() == []
    items.first.get_by_role("button").press("Enter")
    expect(items).to_have_count(2)
    expect(items.first.get_by_role("button")).to_be_focused()
    assert len(kept(live, sea)[1]) == 2
    tab.page.keyboard.press("Control+z")
    expect(items).to_have_count(3)


@pytest.mark.parametrize("size", [WIDE, PHONE])
def test_a_table_is_added_by_its_menu_to_several_projects(live: Live, opened: Open, size: tuple[int, int]) -> None:
    sea, ice = make(live), make(live, "Ice", "The Aletsch Glacier")
    table = live.send("POST", "/tables", {"name": "Sizes", "columns": [], "filter": {}})["id"]
    tab = opened(live, size, f"#tables/{table}")
    for project in ("Sea", "Ice"):
        tab.find(".tables-actions").get_by_role("button", name="More").press("Enter")
        tab.find(".tables-actions .menu").get_by_role("button", name="Add to a project").press("Enter")
        choose(tab, project)
    assert (kept(live, sea)[2], kept(live, ice)[2]) == ([table], [table])
    tab.page.goto(f"{live.url}#projects?project={sea}")
    items = tab.find(".project-tables li")
    expect(items).to_contain_text(["Sizes"])  # although the table is in "Ice" too, which comes first by name
    items.get_by_role("button", name="Take “Sizes” out of the project").click()
    expect(items).to_have_count(0)
    assert (kept(live, sea)[2], kept(live, ice)[2]) == ([], [table])
    tab.find("#toast").get_by_role("button", name="Undo").click()
    expect(items).to_contain_text(["Sizes"])


@pytest.mark.parametrize("size", [WIDE, PHONE, (320, 256)])
def test_the_views_fit_and_are_accessible(live: Live, opened: Open, size: tuple[int, int]) -> None:
    sea = make(live, "Sea " + "and very long words " * 8, rules=[{"tag": ["x" * 80]}])
    tab = opened(live, size, f"#projects?project={sea}")
    expect(tab.find("#view-projects h1")).to_be_visible()
    for place in (f"#projects?project={sea}", "#projects", f"#ask?project={sea}"):
        tab.page.goto(f"{live.url}{place}")
        expect(tab.find("#view-ask" if place.startswith("#ask") else "#view-projects")).to_be_visible()
        assert tab.scrolls_sideways() == []
        assert tab.inaccessible() == []
