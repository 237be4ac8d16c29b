"""What was deleted or changed is put back as it was, over the web API."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.helpers.factories import small_papers
from tests.helpers.live_server import builtin_app
from tests.helpers.web_client import client_of

KEY, OTHER, THIRD = "0123456789abcdef", "fedcba9876543210", "0" * 16


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("undo")
    with client_of(builtin_app(folder, small_papers(folder / "papers"))) as opened:
        yield opened


def send(client: TestClient, method: str, path: str, body: Any = None, *, undo: str | None = None) -> Any:
    reply = client.request(method, path, json=body, params={"undo": undo} if undo else None)
    assert reply.is_success, reply.text
    return reply.json() if reply.content else None


def undo(client: TestClient, key: str = KEY) -> tuple[int, str]:
    reply = client.post(f"/undo/{key}")
    return reply.status_code, "" if reply.is_success else reply.json()["error"]


def test_a_conversation_comes_back_with_its_pin_its_log_and_its_notes(client: TestClient, tmp_path: Path) -> None:
    asked = {"message": "How long is the Aletsch glacier?", "listed": True}
    reply = send(client, "POST", "/chat", asked)
    path = f"/conversations/{reply['conversation']}"
    send(client, "POST", "/chat", {**asked, "message": "And how thick?", "conversation": reply["conversation"]})
    send(client, "POST", "/feedback", {"conversation": reply["conversation"], "turn": 1, "feedback": "good"})
    send(client, "PATCH", path, {"pinned": True})
    cited = reply["citations"][0]
    quotes = [{"paper": cited["paper"], "quote": cited["quote"], "page": cited["page"]}]
    made = {"quotes": quotes, "conversation": reply["conversation"], "turn": 1}
    note = send(client, "POST", "/notes", made)["id"]

    def state() -> list[Any]:
        return [send(client, "GET", each) for each in ("/conversations", path, "/notes")]

    before = state()
    send(client, "DELETE", path, undo=KEY)
    assert client.get(path).status_code == 404
    assert send(client, "GET", "/notes")["notes"][0]["conversation"] is None
    assert undo(client, OTHER)[0] == 404
    assert undo(client) == (204, "")
    assert state() == before
    assert undo(client) == (404, "This can no longer be undone.")
    send(client, "PATCH", path, {"title": "Ice"}, undo=KEY)
    assert undo(client) == (204, "")
    assert state()[1]["title"] == before[1]["title"]
    send(client, "DELETE", f"/notes/{note}")
    send(client, "DELETE", path)


def test_notes_come_back_together_unless_they_were_changed_again(client: TestClient) -> None:
    paper = send(client, "GET", "/papers")["papers"][0]["id"]
    words = send(client, "GET", f"/papers/{paper}/pages/1/text")["text"].split(".")[0]
    new = {"quotes": [{"paper": paper, "quote": words}], "text": "Mine.", "colour": "green"}
    ids = [send(client, "POST", "/notes", new)["id"] for _ in range(3)]
    before = send(client, "GET", "/notes")
    for id in ids[:2]:
        send(client, "DELETE", f"/notes/{id}", undo=KEY)
    send(client, "PATCH", f"/notes/{ids[2]}", {"text": "Other.", "colour": "blue"}, undo=KEY)
    assert send(client, "GET", "/notes")["count"] == 1
    assert undo(client) == (204, "")
    assert send(client, "GET", "/notes") == before
    send(client, "PATCH", f"/notes/{ids[2]}", {"text": "Other."}, undo=KEY)
    send(client, "PATCH", f"/notes/{ids[2]}", {"text": "Theirs."})
    assert undo(client) == (409, "This note was changed again since.")
    assert [note["text"] for note in send(client, "GET", "/notes")["notes"]].count("Theirs.") == 1
    send(client, "DELETE", f"/notes/{ids[0]}")  # without a key it cannot be undone
    assert send(client, "GET", "/notes")["count"] == 2


def test_edits_of_papers_are_undone_field_by_field(client: TestClient) -> None:
    papers = [each["id"] for each in send(client, "GET", "/papers")["papers"]]
    send(client, "PATCH", f"/papers/{papers[0]}", {"tags": ["ice"], "venue": "Tides"})

    def state() -> list[Any]:
        return [send(client, "GET", f"/papers/{paper}") for paper in papers]

    before = state()
    edits = {"venue": "Nature", "year": 2001, "title": "Another"}
    send(client, "POST", "/papers/edits", {"papers": papers, "add_tags": ["new"], "edits": edits}, undo=THIRD)
    assert [(each["venue"], each["title"]) for each in state()] == [("Nature", "Another")] * 2
    assert all("new" in each["tags"] for each in state())
    send(client, "PATCH", f"/papers/{papers[0]}", {"doi": "10.21105/jose.00013"})  # another field stays
    assert undo(client, THIRD) == (204, "")
    send(client, "PATCH", f"/papers/{papers[0]}", {"doi": None})
    assert state() == before
    send(client, "PATCH", f"/papers/{papers[0]}", {"venue": None, "citation_key": "mine"}, undo=THIRD)
    send(client, "PATCH", f"/papers/{papers[0]}", {"venue": "Science"}, undo=OTHER)
    assert undo(client, THIRD) == (409, "This paper was changed again since.")
    assert undo(client, OTHER) == (204, "")
    assert undo(client, THIRD) == (204, "")
    assert state() == before


def test_removed_papers_come_back(client: TestClient) -> None:
    before = send(client, "GET", "/papers")
    send(client, "POST", "/removed", {"papers": [before["papers"][0]["id"]]}, undo=OTHER)
    assert len(send(client, "GET", "/papers")["papers"]) == len(before["papers"]) - 1
    assert undo(client, OTHER) == (204, "")
    now = send(client, "GET", "/papers")
    assert sorted(each["title"] for each in now["papers"]) == sorted(each["title"] for each in before["papers"])
