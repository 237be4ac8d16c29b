"""Projects over the API: their papers are worked out when asked, scopes are in words, and changes can be undone."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from folio.papers.metadata import Field, Metadata
from tests.helpers.fakes import HashingApp
from tests.helpers.web_client import ask, client_of, json_of, papers_by_file, refusal, small_app

KEY = "0123456789abcdef"


@pytest.fixture
def app(tmp_path: Path) -> HashingApp:
    return small_app(tmp_path)


@pytest.fixture
def client(app: HashingApp) -> TestClient:
    return client_of(app)


@pytest.fixture
def papers(client: TestClient) -> dict[str, str]:
    return {file: paper["id"] for file, paper in papers_by_file(client).items()}


def make(client: TestClient, name: str = "Sea", **parts: Any) -> dict[str, Any]:
    return json_of(client.post("/projects", json={"name": name, **parts}), 201)


def change(client: TestClient, project: dict[str, Any], undo: str = "", **changes: Any) -> dict[str, Any]:
    return json_of(client.post(f"/projects/{project['id']}/parts", json=changes, params={"undo": undo} if undo else {}))


def line(client: TestClient, **filters: Any) -> dict[str, Any]:
    return json_of(client.post("/scope", json=filters))


def tag(client: TestClient, paper: str, name: str) -> None:
    json_of(client.post("/papers/edits", json={"papers": [paper], "add_tags": [name]}))


def in_collection(app: HashingApp, paper: str, path: str) -> None:
    with closing(app.open_library()) as library:
        said = Metadata(collections=Field((path,), "zotero", True))
        library.set_metadata(paper, "zotero", said)


def test_a_project_has_papers_by_hand_and_by_rules_that_follow_new_ones(
    client: TestClient, papers: dict[str, str]
) -> None:
    otters, glaciers = papers["otters.pdf"], papers["alps/glaciers.pdf"]
    sea = make(client, papers=[otters], rules=[{"tag": ["cold"]}], about="For the review.")
    assert (sea["name"], sea["about"], sea["own"], sea["papers"]) == ("Sea", "For the review.", True, 1)
    assert (sea["paper_ids"], sea["by_hand"], sea["missing"], sea["excluded"]) == ([otters], [otters], [], [])
    assert [rule["tag"] for rule in sea["rules"]] == [["cold"]]
    tag(client, glaciers, "Cold")
    assert set(json_of(client.get(f"/projects/{sea['id']}"))["paper_ids"]) == {otters, glaciers}
    out = change(client, sea, remove={"papers": [glaciers, otters]})
    assert (out["paper_ids"], out["by_hand"]) == ([], [])
    assert out["excluded"] == [{"paper": glaciers, "title": "The Aletsch Glacier"}]  # its rule finds it
    assert change(client, sea, add={"papers": [glaciers]})["excluded"] == []
    listed = json_of(client.get("/projects"))["projects"]
    assert [(each["name"], each["papers"], each["own"]) for each in listed] == [("Sea", 1, True)]


def test_a_project_keeps_removed_papers_and_has_them_again(client: TestClient, papers: dict[str, str]) -> None:
    sea = make(client, papers=list(papers.values()))
    json_of(client.delete(f"/papers/{papers['otters.pdf']}"))
    now = json_of(client.get(f"/projects/{sea['id']}"))
    assert now["paper_ids"] == [papers["alps/glaciers.pdf"]]
    assert now["missing"] == [{"paper": papers["otters.pdf"], "title": "On Sea Otters"}]
    json_of(client.post("/removed/restore", json={"papers": [papers["otters.pdf"]]}))
    assert len(json_of(client.get(f"/projects/{sea['id']}"))["paper_ids"]) == 2


def test_a_collection_is_a_project_that_is_changed_elsewhere_and_copied(
    app: HashingApp, client: TestClient, papers: dict[str, str]
) -> None:
    in_collection(app, papers["otters.pdf"], "Animals/Sea")
    listed = json_of(client.get("/projects"))["projects"]
    assert [(each["name"], each["papers"], each["own"]) for each in listed] == [
        ("Animals", 1, False),
        ("Animals/Sea", 1, False),
    ]
    sea = listed[1]["id"]
    assert json_of(client.get(f"/projects/{sea}"))["paper_ids"] == [papers["otters.pdf"]]
    expected = "“Animals/Sea” is a collection of Zotero or a bibliography."
    for reply in (
        client.patch(f"/projects/{sea}", json={"name": "x"}),
        client.delete(f"/projects/{sea}"),
        client.post(f"/projects/{sea}/parts", json={}),
    ):
        assert refusal(reply, 400) == expected
    copy = make(client, "My sea", copy_of=sea, papers=[papers["alps/glaciers.pdf"]])
    assert len(copy["paper_ids"]) == 2
    in_collection(app, papers["otters.pdf"], "Land")  # the copy follows the collection
    assert json_of(client.get(f"/projects/{copy['id']}"))["paper_ids"] == [papers["alps/glaciers.pdf"]]


def test_names_are_taken_once_and_found_however_written(client: TestClient, papers: dict[str, str]) -> None:
    make(client, "  Sëa  ", papers=[papers["otters.pdf"]])
    assert refusal(client.post("/projects", json={"name": "sëa"}), 409) == "There is a project called “sëa” already."
    assert line(client, project=["SËA"]) == {"line": "1 paper in Sëa", "papers": 1, "restricted": True}
    unknown = line(client, project=["Sëas"])
    assert unknown["line"].startswith("No project is called “Sëas”. Similar names: Sëa")
    assert (unknown["papers"], unknown["restricted"]) == (0, True)
    assert refusal(client.get(f"/projects/{'0' * 16}"), 404) == "There is no such project."
    assert "name" in refusal(client.post("/projects", json={"name": "  "}), 422)


def test_changes_of_a_project_are_undone(client: TestClient, papers: dict[str, str]) -> None:
    sea = make(client, papers=[papers["otters.pdf"]], rules=[{"year": ["1999"]}])
    json_of(client.patch(f"/projects/{sea['id']}", json={"name": "Ocean"}, params={"undo": KEY}))
    change(client, sea, KEY, add={"papers": [papers["alps/glaciers.pdf"]]}, remove={"rules": [{"year": ["1999"]}]})
    assert client.delete(f"/projects/{sea['id']}", params={"undo": KEY}).status_code == 204
    assert json_of(client.get("/projects")) == {"projects": []}
    assert client.post(f"/undo/{KEY}").status_code == 204
    now = json_of(client.get(f"/projects/{sea['id']}"))
    assert {**now, "updated": ""} == {**sea, "updated": ""}


def test_scopes_are_said_in_words(app: HashingApp, client: TestClient, papers: dict[str, str]) -> None:
    otters, glaciers = papers["otters.pdf"], papers["alps/glaciers.pdf"]
    for paper in (otters, glaciers):
        json_of(client.patch(f"/papers/{paper}", json={"year": 2012, "authors": ["Ada Byte"]}))
    in_collection(app, otters, "Animals")
    tag(client, otters, "x")
    sea = make(client, papers=[otters, glaciers])
    assert line(client) == {"line": "All 2 papers", "papers": 2, "restricted": False}
    for filters, expected in (
        ({"project": [sea["id"]], "year": ["2000-2015"]}, "2 papers in Sea, 2000 to 2015"),
        ({"project": ["Animals"]}, "1 paper in Animals"),
        ({"project": ["Sea", "Animals"]}, "2 papers in Sea or Animals"),
        ({"papers": [otters]}, "“On Sea Otters”"),
        ({"papers": [otters, glaciers]}, "2 chosen papers"),
        ({"year": ["2012-"], "author": ["Byte"]}, "2 papers, from 2012, by Byte"),
        ({"year": ["-2012", "2014"], "tag": ["x"]}, "1 paper, until 2012 or 2014, tagged x"),
    ):
        assert line(client, **filters)["line"] == expected
    empty = make(client, "Empty")
    assert line(client, project=[empty["id"]])["line"] == "No paper fits the project."
    assert line(client, year=["2031"])["papers"] == 0


def test_an_answer_and_a_refusal_keep_what_was_asked(client: TestClient, papers: dict[str, str]) -> None:
    sea = make(client, papers=[papers["alps/glaciers.pdf"]])
    asked = {"project": [sea["id"]]}
    found = ask(client, "What is the length of the Aletsch glacier?", **asked)
    assert (found["refused"], found["searched"]) == (False, "1 paper in Sea")
    assert {citation["paper"] for citation in found["citations"]} == {papers["alps/glaciers.pdf"]}
    refused = ask(client, "What do sea otters eat?", **asked)
    assert refused["answer"] == "Not found in the one paper of Sea."
    everywhere = ask(client, "What do sea otters eat?")
    assert (everywhere["refused"], everywhere["searched"]) == (False, "All 2 papers")
    json_of(client.patch(f"/projects/{sea['id']}", json={"name": "Ice"}))  # what was said stays
    kept = json_of(client.get(f"/conversations/{refused['conversation']}"))["turns"][-1]
    assert (kept["searched"], kept["answer"]) == ("1 paper in Sea", "Not found in the one paper of Sea.")
    assert kept["scope"]["project"] == [sea["id"]]
    text = client.get(f"/conversations/{refused['conversation']}/markdown").text
    assert "Asked: 1 paper in Sea" in client.get(f"/conversations/{found['conversation']}/markdown").text
    assert "Not found in the one paper of Sea." in text


def test_a_question_of_a_project_begins_a_conversation_in_it(client: TestClient, papers: dict[str, str]) -> None:
    sea = make(client, papers=[papers["otters.pdf"]])
    asked = ask(client, "What do sea otters eat?", project=["Sea"], listed=True)
    ask(client, "And what else?", conversation=asked["conversation"], project=["Sea"])
    now = json_of(client.get(f"/projects/{sea['id']}"))
    assert [each["id"] for each in now["conversations"]] == [asked["conversation"]]
    note = {"quotes": [{"paper": papers["alps/glaciers.pdf"], "page": 1}], "conversation": asked["conversation"]}
    made = json_of(client.post("/notes", json=note), 201)
    on_paper = json_of(client.post("/notes", json={"quotes": [{"paper": papers["otters.pdf"], "page": 1}]}), 201)
    json_of(client.post("/notes", json={"quotes": [{"paper": papers["alps/glaciers.pdf"], "page": 1}]}), 201)
    noted = json_of(client.get("/notes", params={"project": sea["id"]}))
    assert {each["id"] for each in noted["notes"]} == {made["id"], on_paper["id"]}
    assert json_of(client.get(f"/projects/{sea['id']}"))["notes"] == 2
    assert client.delete(f"/conversations/{asked['conversation']}", params={"undo": KEY}).status_code == 204
    assert json_of(client.get(f"/projects/{sea['id']}"))["conversations"] == []
    assert client.post(f"/undo/{KEY}").status_code == 204
    assert len(json_of(client.get(f"/projects/{sea['id']}"))["conversations"]) == 1


def test_a_project_is_a_scope_of_the_openai_compatible_endpoint(client: TestClient, papers: dict[str, str]) -> None:
    make(client, "Sea & ice", papers=[papers["otters.pdf"]])
    models = [each["id"] for each in json_of(client.get("/v1/models"))["data"]]
    assert "folio:project=Sea & ice" in models
    asked = {"model": "folio:project=Sea & ice", "messages": [{"role": "user", "content": "How long is the glacier?"}]}
    reply = json_of(client.post("/v1/chat/completions", json=asked))
    assert reply["choices"][0]["message"]["content"].startswith("*Not found in the one paper of Sea \\& ice.*")
