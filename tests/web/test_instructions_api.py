"""Instructions over the API: kept, chosen by questions and projects, shown with answers and in exports."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from folio.answer.instructions import NEEDS_MODEL, READY
from folio.store import instructions
from tests.helpers.fakes import HashingApp, hashing_app
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.web_client import ask, client_of, json_of, refusal, small_app

QUESTION = "Which mammal has the densest fur?"
P1, P2, P3 = "1" * 16, "2" * 16, "3" * 16  # projects
HOSTILE = "<script>alert(1)</script> *b* [x](javascript:x) `c` | # Always answer."


def add(client: TestClient, name: str = "Brief", text: str = "Answer in one sentence.") -> dict[str, Any]:
    return json_of(client.post("/instructions", json={"name": name, "text": text}), 201)


def test_instructions_are_added_changed_deleted_and_brought_back(client: TestClient) -> None:
    ready = [{"id": each.id, "name": each.name, "text": each.text, "ready": True} for each in READY]
    assert json_of(client.get("/instructions")) == {"instructions": ready, "projects": {}}
    brief = add(client)
    assert brief == {"id": brief["id"], "name": "Brief", "text": "Answer in one sentence.", "ready": False}
    assert "BRIEF” already" in refusal(client.post("/instructions", json={"name": "BRIEF", "text": "x"}), 409)
    assert "already" in refusal(client.post("/instructions", json={"name": READY[0].name, "text": "x"}), 409)
    for wrong in ({"name": "", "text": "x"}, {"name": "x" * 61, "text": "x"}, {"name": "x", "text": "y" * 601}):
        assert client.post("/instructions", json=wrong).status_code == 422
    key = "0" * 16
    path = f"/instructions/{brief['id']}"
    assert json_of(client.patch(f"{path}?undo={key}", json={"text": "In two."}))["text"] == "In two."
    assert client.post(f"/undo/{key}").status_code == 204
    assert json_of(client.get("/instructions"))["instructions"] == [*ready, brief]
    chosen = {"instruction": brief["id"]}
    assert client.put(f"/instructions/of-project/{P1}", json=chosen).status_code == 204
    assert client.put(f"/instructions/of-project/{P2}", json={"instruction": "newcomer"}).status_code == 204
    assert client.put(f"/instructions/of-project/{P3}", json={"instruction": "nobody"}).status_code == 404
    assert json_of(client.get("/instructions"))["projects"] == {P1: brief["id"], P2: "newcomer"}
    assert client.delete(f"{path}?undo={key}").status_code == 204
    assert json_of(client.get("/instructions")) == {"instructions": ready, "projects": {P2: "newcomer"}}
    assert client.post(f"/undo/{key}").status_code == 204
    assert json_of(client.get("/instructions"))["projects"] == {P1: brief["id"], P2: "newcomer"}
    assert client.put(f"/instructions/of-project/{P1}", json={"instruction": None}).status_code == 204
    assert json_of(client.get("/instructions"))["projects"] == {P2: "newcomer"}
    for act in (client.delete, lambda path: client.patch(path, json={})):
        assert refusal(act("/instructions/newcomer"), 400) == "This instruction comes with Folio."
        assert refusal(act("/instructions/nobody"), 404) == "There is no such instruction."


def test_an_answer_without_a_model_says_that_its_instruction_needs_one(client: TestClient) -> None:
    brief = add(client)
    plain = ask(client, QUESTION)
    reply = ask(client, QUESTION, instruction=brief["id"])
    assert reply["instruction"] == {name: brief[name] for name in ("id", "name", "text")}
    assert plain["instruction"] is None
    assert NEEDS_MODEL[:16] not in plain["notice"]
    assert reply["notice"].endswith(NEEDS_MODEL.format("Brief"))
    for field in ("answer", "sentences", "citations", "refused", "missing", "hits"):
        assert reply[field] == plain[field]
    refused = ask(client, "Who painted the Mona Lisa?", instruction=brief["id"])
    assert (refused["refused"], refused["notice"]) == (True, "")
    unknown = client.post("/chat", json={"message": "x", "instruction": "nobody"})
    assert "no instruction “nobody”" in refusal(unknown, 404)


def test_an_answer_keeps_the_words_of_its_instruction(client: TestClient) -> None:
    hostile = add(client, "<b>mine</b>", HOSTILE)
    reply = ask(client, QUESTION, instruction=hostile["id"])
    assert client.delete(f"/instructions/{hostile['id']}").status_code == 204
    kept = json_of(client.get(f"/conversations/{reply['conversation']}"))["turns"][0]
    assert kept["instruction"]["text"] == HOSTILE
    path = f"/conversations/{reply['conversation']}"
    exported = client.get(f"{path}/markdown").text
    assert "Instruction “\\<b\\>mine\\</b\\>”: " in exported
    assert "<script>" not in exported
    note = client.get(f"{path}/zotero-note").text
    assert "Instruction “&lt;b&gt;mine" in note
    assert "<script>" not in note


def test_a_model_gets_the_instruction_and_nothing_else_changes(tmp_path: Path, ollama_server: OllamaStandIn) -> None:
    small_app(tmp_path)
    chosen: dict[str, Any] = {"LLM": "ollama", "VERIFIER": "none", "RERANKER": "builtin", "CHUNK_SIZE": 300}
    app: HashingApp = hashing_app(tmp_path, OLLAMA_HOST=ollama_server.url, CHUNK_OVERLAP=50, **chosen)
    with client_of(app) as client:
        plain = ask(client, QUESTION)
        first = len(ollama_server.answering)
        reply = ask(client, QUESTION, instruction="two-sentences")
        prompts = [body["messages"][-1]["content"] for body in ollama_server.answering]
    assert first
    assert all(READY[0].text not in prompt for prompt in prompts[:first])
    assert READY[0].text in prompts[first]
    assert [sentence["text"] for sentence in reply["sentences"]] == [s["text"] for s in plain["sentences"]]
    assert reply["instruction"]["id"] == "two-sentences"


def test_a_deleted_instruction_is_said_before_the_question_is_kept(client: TestClient, app: HashingApp) -> None:
    brief = add(client)
    with closing(app.open_library()) as library:
        instructions.remove(library.database, brief["id"])
    before = json_of(client.get("/conversations"))
    response = client.post("/chat", json={"message": QUESTION, "instruction": brief["id"], "listed": True})
    assert "There is no instruction" in refusal(response, 404)
    assert json_of(client.get("/conversations")) == before


@pytest.mark.parametrize("path", ["/instructions"])
def test_the_list_is_there_before_the_first_paper(tmp_path: Path, path: str) -> None:
    with client_of(hashing_app(tmp_path, LLM="builtin", RERANKER="builtin")) as client:
        assert len(json_of(client.get(path))["instructions"]) == len(READY)
        assert client.post(path, json={"name": "x", "text": "y"}).status_code >= 400
