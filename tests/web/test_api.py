"""The web API: replies, the order of streamed events, and errors."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from folio import workers
from folio.answer_types import REFUSAL
from folio.store.bm25_index import TantivyIndex
from folio.store.conversations import Conversations
from folio.store.library import Library
from folio.store.query_log import LogCounts, QueryLog
from folio.web.api import make_web
from folio.web.request_guard import AccessRules
from tests.helpers import fakes
from tests.helpers.answers import REFUSED
from tests.helpers.factories import GLACIERS, OTTERS, small_papers, write_pdf
from tests.helpers.fakes import hashing_app, read_here
from tests.helpers.ollama_models import MINILM, QWEN3
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.scripted_answerer import FALSE, REASON, every_outcome, script_answers

LENGTH = "What length has the Aletsch glacier?"
THICK = "And what thickness has its ice at the Konkordiaplatz?"
IS_LONG = "The Aletsch glacier has a length of 23 kilometres"
NOBODY = "0" * 64

Open = Callable[..., TestClient]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """A function that opens an API client for a store in tmp_path, with these settings."""
    monkeypatch.setattr(workers, "run_guarded", read_here)
    clients: list[TestClient] = []

    def client(*, papers: bool = True, **settings: Any) -> TestClient:
        chosen = {"LLM": "builtin", "RERANKER": "builtin", "CHUNK_SIZE": 300, "CHUNK_OVERLAP": 50, **settings}
        app = hashing_app(tmp_path, **chosen)
        app.settings.PAPERS_DIR.mkdir(exist_ok=True)
        if papers and not app.library_path.exists():
            small_papers(app.settings.PAPERS_DIR)
            app.run()
        web = make_web(app, AccessRules(host="127.0.0.1", port=8420))
        made = TestClient(web, base_url="http://127.0.0.1:8420", raise_server_exceptions=False)
        clients.append(made)
        return made.__enter__()

    yield client
    for made in clients:
        made.__exit__(None, None, None)


@pytest.fixture
def client(opened: Open) -> TestClient:
    return opened()


def said(client: TestClient, message: str, **more: Any) -> dict[str, Any]:
    response = client.post("/chat", json={"message": message, **more})
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def events(text: str) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for block in text.replace("\r\n", "\n").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found


def refusal(response: Any, status: int) -> str:
    """The error message of a response with this status."""
    assert response.status_code == status, response.text
    body = response.json()
    assert body.keys() == {"error", "remedy"}
    assert body["remedy"]
    happened: str = body["error"]
    return happened


def papers(client: TestClient) -> dict[str, dict[str, Any]]:
    return {paper["file"]: paper for paper in client.get("/papers").json()["papers"]}


def logged(folder: Path) -> LogCounts:
    library = hashing_app(folder, CHUNK_SIZE=300, CHUNK_OVERLAP=50).open_library()
    try:
        return QueryLog(library.database).counts()
    finally:
        library.close()


# Health


def test_health_of_a_store(client: TestClient) -> None:
    found = client.get("/health").json()
    assert found["status"] == "ready"
    assert found["store"]["papers"] == 2
    assert found["fingerprint"]["embedder"] == "hashing"
    assert found["models"] == {"embedder": "hashing", "reranker": "built in", "llm": "extractive (built in)"}
    assert (found["chat_models"], found["logged"]) == ([], True)


def test_an_empty_store_says_that_there_is_no_index(opened: Open) -> None:
    client = opened(papers=False)
    assert client.get("/health").json().items() >= {"status": "empty", "store": None}.items()
    assert client.get("/papers").json() == {"papers": [], "failures": [], "notice": ""}
    assert client.get("/conversations").json() == {"conversations": []}
    for path, body in (("/chat", {"message": "x"}), ("/chat/stream", {"message": "x"}), ("/search", {"query": "x"})):
        assert "There is no index" in refusal(client.post(path, json=body), 409)


def test_health_says_what_would_improve_answers(opened: Open) -> None:
    client = opened(LLM="auto", RERANKER="auto", CROSS_ENCODER="nobody/has-this")
    better = client.get("/health").json()["better"]
    assert better == ["run `make models`", "start Ollama, then run `ollama pull llama3.1:8b`"]


def test_health_reports_a_configured_model_that_is_missing(opened: Open) -> None:
    found = opened(LLM="ollama").get("/health").json()
    assert (found["status"], found["models"]["llm"]) == ("ready", "")
    assert found["better"][0].startswith("No Ollama server answers at http://127.0.0.1:11434.")


def test_health_responds_while_ollama_is_silent(opened: Open, ollama_server: OllamaStandIn) -> None:
    ollama_server.faults.first_byte_s, ollama_server.faults.paths = 600, ("/api/tags",)
    client = opened(LLM="auto", OLLAMA_HOST=ollama_server.url)
    found = client.get("/health").json()
    assert found["models"]["llm"] == "extractive (built in)"
    assert "start Ollama, then run `ollama pull llama3.1:8b`" in found["better"]


# Search


def test_search_finds_passages_with_their_pages(client: TestClient) -> None:
    found = client.post("/search", json={"query": LENGTH, "top_k": 2}).json()
    assert (len(found["hits"]), found["hits"][0]["pages"][0]) == (2, 1)
    assert found["hits"][0]["file"] == "alps/glaciers.pdf"
    assert found["hits"][0]["paper"] == papers(client)["alps/glaciers.pdf"]["id"]
    assert found["query"] == LENGTH


def test_search_only_chosen_papers(client: TestClient) -> None:
    otters = papers(client)["otters.pdf"]["id"]
    found = client.post("/search", json={"query": LENGTH, "papers": [otters]}).json()
    assert {hit["file"] for hit in found["hits"]} == {"otters.pdf"}
    assert "not in the index" in refusal(client.post("/search", json={"query": LENGTH, "papers": [NOBODY]}), 404)


@pytest.mark.parametrize(
    ("given", "happened"),
    [
        ({"year": ["1800-1801"]}, "No paper fits the year."),
        ({"author": ["Darwin"]}, "No paper in the index is by “Darwin”."),
        ({"venue": ["Nature"]}, "No paper in the index is of a venue called “Nature”."),
        ({"section": ["methods"]}, "No paper fits the section."),
        ({"collection": ["Systems"]}, "No paper in the index is in a collection called “Systems”."),
        ({"tag": ["to read"]}, "No paper in the index has the tag “to read”."),
    ],
)
def test_filters_that_nothing_fits_are_told(client: TestClient, given: dict[str, Any], happened: str) -> None:
    assert refusal(client.post("/search", json={"query": LENGTH, **given}), 404).startswith(happened)
    for path in ("/chat", "/chat/stream"):
        assert refusal(client.post(path, json={"message": LENGTH, **given}), 404).startswith(happened)
    assert client.get("/conversations").json() == {"conversations": []}


def test_years_that_end_before_they_begin_are_refused(client: TestClient) -> None:
    told = "The years “2020-2010” end before they begin."
    for path, question in (("/search", "query"), ("/chat", "message"), ("/chat/stream", "message")):
        asked = client.post(path, json={question: LENGTH, "year": ["2014", "2020-2010"]})
        assert refusal(asked, 400).startswith(told)
    assert refusal(client.get("/papers", params={"year": "2020-2010"}), 400).startswith(told)


def test_search_without_the_reranker(client: TestClient) -> None:
    with_it = client.post("/search", json={"query": LENGTH}).json()
    without = client.post("/search", json={"query": LENGTH, "use_reranker": False}).json()
    assert (with_it["models"]["reranker"], without["models"]["reranker"]) == ("built in", "none")
    assert said(client, LENGTH, use_reranker=False)["models"]["reranker"] == "none"
    reranked, fused = with_it["hits"], without["hits"]
    assert sorted(hit["text"] for hit in reranked) == sorted(hit["text"] for hit in fused)
    assert [hit["score"] for hit in reranked] != [hit["score"] for hit in fused]


# Answers


def test_an_answer_cites_a_page_for_every_sentence(client: TestClient) -> None:
    reply = said(client, LENGTH)
    assert reply["message"] == LENGTH
    assert IS_LONG in reply["answer"]
    assert (reply["refused"], reply["turn"], reply["feedback"]) == (False, 1, "")
    assert reply["sources_used"][0] == "alps/glaciers.pdf"
    first = reply["citations"][0]
    assert (first["file"], first["page"]) == ("alps/glaciers.pdf", 1)
    assert " ".join(first["quote"].split()) in GLACIERS[0]
    assert all(sentence["citations"] for sentence in reply["sentences"])
    assert reply["elapsed_ms"] > 0


def test_a_question_the_papers_do_not_answer_is_refused(client: TestClient) -> None:
    reply = said(client, "Who painted the ceiling of the Sistine chapel in Rome?")
    assert (reply["answer"], reply["refused"]) == (REFUSAL, True)
    assert (reply["sentences"], reply["citations"], reply["sources_used"]) == ([], [], [])
    assert reply["hits"]


def test_a_follow_up_uses_its_own_conversation(client: TestClient) -> None:
    first, other = said(client, LENGTH), said(client, "How do sea otters sleep?")
    assert first["conversation"] != other["conversation"]
    follow_up = said(client, THICK, conversation=first["conversation"])
    assert follow_up["standalone_question"] == "What thickness has the Aletsch glacier’s ice at the Konkordiaplatz?"
    assert follow_up["turn"] == 2
    assert "thickness of 800 metres" in follow_up["answer"]
    assert said(client, THICK)["standalone_question"] == THICK


def test_how_a_follow_up_was_understood_is_told_only_if_the_settings_say_so(opened: Open) -> None:
    client = opened(SHOW_UNDERSTOOD=False)
    follow_up = said(client, THICK, conversation=said(client, LENGTH)["conversation"])
    assert follow_up["standalone_question"] == THICK  # the page and exports show it where it differs
    assert "thickness of 800 metres" in follow_up["answer"]


def test_an_answer_uses_the_chosen_papers_and_number_of_passages(client: TestClient) -> None:
    otters = papers(client)["otters.pdf"]["id"]
    reply = said(client, "What do sea otters eat, and how do they sleep?", papers=[otters], top_k=1)
    assert {hit["file"] for hit in reply["hits"]} == {"otters.pdf"}
    assert len(reply["hits"]) == 1


def test_a_report_has_sections(client: TestClient) -> None:
    reply = said(client, LENGTH, style="report")
    assert reply["style"] == "report"
    assert reply["sentences"][0]["section"] == "Summary"


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({}, "message"),
        ({"message": ""}, "message"),
        ({"message": "x" * 10_001}, "message"),
        ({"message": "x", "top_k": 0}, "top_k"),
        ({"message": "x", "conversation": "../../etc"}, "conversation"),
        ({"message": "x", "papers": ["../x"]}, r"papers.0"),
        ({"message": "x", "style": "poem"}, "style"),
        ({"message": "x", "section": "methods"}, "section"),
        ({"message": "x", "year": ["soon"]}, r"year.0"),
        ({"message": "x", "author": [" "]}, r"author.0"),
        ({"message": "x", "unknown": 1}, "unknown"),
    ],
)
def test_an_invalid_field_is_refused_by_name(client: TestClient, body: dict[str, Any], names: str) -> None:
    for path in ("/chat", "/chat/stream"):
        assert refusal(client.post(path, json=body), 422).startswith(f"{names}: ")


def test_an_empty_message_and_an_unknown_conversation_are_refused(client: TestClient) -> None:
    assert refusal(client.post("/chat", json={"message": " \n "}), 422) == "message: must not be empty."
    unknown = {"message": "x", "conversation": "A" * 16}
    for path in ("/chat", "/chat/stream"):
        refusal(client.post(path, json=unknown), 404)
    assert client.get("/conversations").json() == {"conversations": []}


def test_a_model_is_chosen_by_name(opened: Open, ollama_server: OllamaStandIn) -> None:
    client = opened(OLLAMA_HOST=ollama_server.url)
    ollama_server.reply = [f"{IS_LONG} [1]."]
    assert said(client, LENGTH)["models"]["llm"] == "extractive (built in)"
    assert said(client, LENGTH, model="llama3.1:8b")["models"]["llm"] == "llama3.1:8b (Ollama)"
    for name in ("all-minilm:latest", "bge-m3:latest"):
        ollama_server.models[name] = replace(MINILM, name=name)
    assert client.get("/health").json()["chat_models"] == ["llama3.1:8b"]
    asked = len(ollama_server.bodies("/api/show"))
    assert client.get("/health").json()["chat_models"] == ["llama3.1:8b"]
    assert len(ollama_server.bodies("/api/show")) == asked  # what is known of a model is not asked again
    refused = client.post("/chat", json={"message": LENGTH, "model": "nobody-has-this"})
    assert "does not have the model nobody-has-this" in refusal(refused, 503)
    (kind, error), *others = events(client.post("/chat/stream", json={"message": LENGTH, "model": "nobody"}).text)
    assert (kind, others) == ("error", [])
    assert "does not have the model nobody" in error["error"]


# Streams


def test_a_stream_sends_the_hits_then_each_sentence_then_the_whole_reply(client: TestClient) -> None:
    response = client.post("/chat/stream", json={"message": LENGTH})
    assert response.headers["content-type"].startswith("text/event-stream")
    told = events(response.text)
    kinds = [kind for kind, _ in told]
    assert kinds == ["retrieved", *["sentence"] * (len(kinds) - 3), "citations", "done"]
    done = told[-1][1]
    assert [data for kind, data in told if kind == "sentence"] == done["sentences"]
    assert told[0][1]["hits"] == done["hits"]
    assert told[0][1].items() >= {"conversation": done["conversation"], "turn": 1}.items()
    assert told[-2][1] == {"citations": done["citations"]}
    assert done.keys() == said(client, LENGTH).keys()


def test_a_stream_says_that_the_model_thinks(opened: Open, ollama_server: OllamaStandIn) -> None:
    ollama_server.models[QWEN3.name] = QWEN3
    for think, begins in (("on", ["retrieved", "thinking", "sentence"]), ("auto", ["retrieved", "sentence"])):
        client = opened(LLM="ollama", OLLAMA_HOST=ollama_server.url, LLM_MODEL=QWEN3.name, THINK=think, VERIFIER="none")
        told = events(client.post("/chat/stream", json={"message": LENGTH}).text)
        assert [kind for kind, _ in told][: len(begins)] == begins
        assert [data for kind, data in told if kind == "thinking"] == (
            [{"model": "qwen3:8b (Ollama)"}] if think == "on" else []
        )
        assert told[-1][0] == "done"


def test_a_stream_says_what_waits_for_its_verifier(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    script_answers(monkeypatch, every_outcome)
    told = events(client.post("/chat/stream", json={"message": LENGTH}).text)
    assert [(kind, data.get("count", data.get("outcome"))) for kind, data in told[1:-2]] == [
        ("sentence", "quoted"),
        ("checking", 1),
        ("checking", 2),
        ("sentence", "reworded"),
        ("checking", 1),
        ("checking", 0),
        ("sentence", "quoted"),
        ("sentence", "reworded"),
    ]
    done = told[-1][1]
    assert [data for kind, data in told if kind == "sentence"] == done["sentences"]
    assert done["sentences"][2]["instead_of"] == FALSE
    assert done["left_out"][0] == {"text": FALSE, "reason": REASON}
    assert (done["dropped_sentences"], len(done["left_out"])) == (2, 2)
    kept = client.get(f"/conversations/{done['conversation']}").json()["turns"]
    assert kept == [done]
    exported = client.get(f"/conversations/{done['conversation']}/markdown").text
    assert "≈ Its tongue gets shorter" in exported
    assert f"### Left out\n\nThe papers do not support these statements of the model:\n\n- {FALSE}\\\n" in exported


def test_an_answer_that_an_older_folio_kept_is_shown(client: TestClient, tmp_path: Path) -> None:
    done = said(client, LENGTH)
    older = {name: value for name, value in done.items() if name != "left_out"} | {"dropped_sentences": 1}
    added = ("outcome", "verified_by", "instead_of")
    older["sentences"] = [
        {name: value for name, value in sentence.items() if name not in added} for sentence in done["sentences"]
    ]
    with closing(Conversations(tmp_path / "store" / "library.sqlite")) as conversations:
        conversation = conversations.begin()
        conversations.add(conversation, older, REFUSED, None)
    (turn,) = client.get(f"/conversations/{conversation}").json()["turns"]
    assert turn == done | {"dropped_sentences": 1}
    assert LENGTH in client.get(f"/conversations/{conversation}/markdown").text


def test_a_streamed_refusal_has_no_sentences(client: TestClient) -> None:
    told = events(client.post("/chat/stream", json={"message": "Who painted the Sistine chapel in Rome?"}).text)
    assert [kind for kind, _ in told] == ["retrieved", "citations", "done"]
    assert told[-1][1]["answer"] == REFUSAL


# Conversations


def test_conversations_are_listed_shown_exported_and_deleted(opened: Open, tmp_path: Path) -> None:
    client = opened()
    first = said(client, LENGTH)
    second = said(client, THICK, conversation=first["conversation"])
    other = said(client, "How do sea otters sleep?", listed=True)
    listed = client.get("/conversations").json()["conversations"]
    assert [(one["id"], one["title"], one["turns"]) for one in listed] == [
        (other["conversation"], "How do sea otters sleep?", 1),
        (first["conversation"], LENGTH, 2),
    ]
    path = f"/conversations/{first['conversation']}"
    shown = opened().get(path).json()  # by another server over the same store
    assert shown["turns"] == [first, second]
    exported = client.get(f"{path}/markdown")
    assert exported.headers["content-type"].startswith("text/markdown")
    day = client.get(path).json()["updated"][:10]
    name = f"folio-what-length-has-the-aletsch-glacier-{day}.md"
    assert exported.headers["content-disposition"] == f'attachment; filename="{name}"'
    assert LENGTH in exported.text
    assert IS_LONG in exported.text
    note = client.get(f"{path}/zotero-note", params={"turn": 1})
    assert note.headers["content-type"] == "text/plain; charset=utf-8"
    assert note.text.startswith(f'<div data-schema-version="9"><h1>{LENGTH}</h1>')
    assert f"<h2>{THICK}</h2>" in client.get(f"{path}/zotero-note").text
    refusal(client.get(f"{path}/zotero-note", params={"turn": 3}), 404)
    assert client.delete(path).status_code == 204
    for gone in (client.get(path), client.delete(path), client.get(f"{path}/markdown")):
        refusal(gone, 404)
    assert [one["id"] for one in client.get("/conversations").json()["conversations"]] == [other["conversation"]]
    assert logged(tmp_path).questions == 1  # deleted from the log too


def test_a_conversation_continues_after_a_restart(opened: Open) -> None:
    first = said(opened(), LENGTH)
    follow_up = said(opened(), THICK, conversation=first["conversation"])
    assert "thickness of 800 metres" in follow_up["answer"]
    assert follow_up["turn"] == 2


def test_without_a_log_conversations_are_not_stored(opened: Open) -> None:
    client = opened(QUERY_LOG=False)
    first = said(client, LENGTH)
    assert said(client, THICK, conversation=first["conversation"])["turn"] == 2
    assert len(client.get("/conversations").json()["conversations"]) == 1
    body = {"conversation": first["conversation"], "turn": 1, "feedback": "good"}
    assert "not in the log" in refusal(client.post("/feedback", json=body), 400)
    other = opened(QUERY_LOG=False)
    assert other.get("/conversations").json() == {"conversations": []}


def test_an_answer_that_cannot_be_saved_has_a_notice(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("folio.store.conversations.BUSY_TIMEOUT_S", 0.1)
    said(client, LENGTH)
    writer = sqlite3.connect(tmp_path / "store" / "user.sqlite", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    reply = said(client, LENGTH)
    assert IS_LONG in reply["answer"]
    assert "This answer could not be saved: Another process is writing to the library" in reply["notice"]
    assert events(client.post("/chat/stream", json={"message": LENGTH}).text)[-1][0] == "done"
    writer.execute("ROLLBACK")
    writer.close()
    refusal(client.get(f"/conversations/{reply['conversation']}"), 404)
    assert logged(tmp_path).questions == 1


def test_feedback_marks_the_right_answer(client: TestClient, tmp_path: Path) -> None:
    first, other = said(client, LENGTH), said(client, "How do sea otters sleep?")
    body = {"conversation": first["conversation"], "turn": 1, "feedback": "bad"}
    assert client.post("/feedback", json=body).status_code == 204
    shown = client.get(f"/conversations/{first['conversation']}").json()
    assert shown["turns"][0]["feedback"] == "bad"
    assert client.get(f"/conversations/{other['conversation']}").json()["turns"][0]["feedback"] == ""
    counts = logged(tmp_path)
    assert (counts.questions, counts.good, counts.bad) == (2, 0, 1)
    refusal(client.post("/feedback", json={**body, "turn": 2}), 404)
    refusal(client.post("/feedback", json={**body, "conversation": "A" * 16}), 404)


# Papers


def test_papers_are_listed_with_their_details(client: TestClient) -> None:
    otters = papers(client)["otters.pdf"]
    assert otters.items() >= {"title": "On Sea Otters", "authors": [], "year": None, "pages": 2, "problems": []}.items()
    details = client.get(f"/papers/{otters['id']}").json()
    assert otters.pop("match") is None  # without a query
    assert details.items() >= otters.items()
    assert details["labels"] == ["", ""]
    assert "On Sea Otters" in details["reference"]
    assert "% title not sure: On Sea Otters (from the PDF's metadata)" in details["bibtex"]
    refusal(client.get(f"/papers/{NOBODY}"), 404)
    refusal(client.get("/papers/..%2f..%2fetc%2fpasswd"), 404)
    refusal(client.get("/papers/otters.pdf"), 422)


def test_a_page_picture_has_its_quote_marked(client: TestClient) -> None:
    citation = said(client, LENGTH)["citations"][0]
    path = f"/papers/{citation['paper']}/pages/{citation['page']}.png"
    marked = client.get(path, params={"quote": [citation["quote"], "Nobody wrote this sentence here."]})
    assert marked.headers["content-type"] == "image/png"
    assert marked.headers["folio-marked"] == "1,0"
    assert marked.content.startswith(b"\x89PNG")
    plain = client.get(path)
    assert (plain.status_code, plain.headers["folio-marked"]) == (200, "")
    assert plain.content != marked.content
    assert "has no page 4" in refusal(client.get(f"/papers/{citation['paper']}/pages/4.png"), 404)
    refusal(client.get(f"/papers/{citation['paper']}/pages/0.png"), 422)
    refusal(client.get(f"/papers/{NOBODY}/pages/1.png"), 404)


def test_a_pdf_is_served_whole_and_in_ranges(client: TestClient, tmp_path: Path) -> None:
    otters = papers(client)["otters.pdf"]["id"]
    content = (tmp_path / "papers" / "otters.pdf").read_bytes()
    whole = client.get(f"/pdf/{otters}")
    assert (whole.content, whole.headers["content-type"]) == (content, "application/pdf")
    assert whole.headers["content-disposition"].startswith("inline")
    part = client.get(f"/pdf/{otters}", headers={"Range": "bytes=5-9"})
    assert (part.status_code, part.content) == (206, content[5:10])
    beyond = client.get(f"/pdf/{otters}", headers={"Range": "bytes=9999999-"})
    assert "no such range" in refusal(beyond, 416)
    assert beyond.headers["content-range"] == f"bytes */{len(content)}"
    for wrong in ("bytes=9-5", "lines=1-2", "?"):
        assert "no such range" in refusal(client.get(f"/pdf/{otters}", headers={"Range": wrong}), 400)
    (tmp_path / "papers" / "otters.pdf").unlink()
    assert "is missing or has changed" in refusal(client.get(f"/pdf/{otters}"), 422)
    refusal(client.get(f"/pdf/{NOBODY}"), 404)


def test_adding_a_pdf_reports_progress(opened: Open, tmp_path: Path) -> None:
    client = opened(papers=False)
    content = write_pdf(tmp_path / "made.pdf", OTTERS, "On Sea Otters").read_bytes()
    told = events(client.post("/papers", files={"file": ("../../otters.pdf", content)}).text)
    assert [kind for kind, _ in told][:2] == ["saved", "progress"]
    assert told[0][1] == {"file": "otters.pdf"}
    *_, (last, progress), (kind, done) = told
    assert (last, progress["stage"], progress["done"]) == ("progress", "embedding", progress["of"])
    assert (kind, done["status"], done["paper"]["title"]) == ("done", "added", "On Sea Otters")
    assert (tmp_path / "papers" / "otters.pdf").read_bytes() == content
    assert said(client, "How do sea otters sleep?")["sources_used"] == ["otters.pdf"]
    again = events(client.post("/papers", files={"file": ("other.pdf", content)}).text)
    assert again[-1][1]["status"] == "duplicate"
    assert again[-1][1]["notes"] == ["The same file as otters.pdf."]


def test_a_damaged_pdf_or_another_file_is_not_added(client: TestClient, tmp_path: Path) -> None:
    before = papers(client)
    page = client.post("/papers", files={"file": ("a.pdf", b"<html>")})
    assert "not a PDF" in refusal(page, 422)
    told = events(client.post("/papers", files={"file": ("a.pdf", b"%PDF-1.7 torn")}).text)
    assert [kind for kind, _ in told] == ["saved", "progress", "error"]
    assert told[-1][1]["remedy"]
    refusal(client.post("/papers"), 422)
    assert papers(client) == before
    assert sorted(path.name for path in (tmp_path / "papers").iterdir()) == ["alps", "otters.pdf"]


def test_an_upload_that_is_too_large_is_refused(opened: Open) -> None:
    client = opened(MAX_FILE_MB=1)
    too_large = client.post("/papers", files={"file": ("a.pdf", b"%PDF-1.7" + b" " * 12_000_000)})
    refusal(too_large, 413)


PART = b'--x\r\nContent-Disposition: form-data; name="file"%s\r\n\r\n%s\r\n'


@pytest.mark.parametrize(
    "part", [PART % (b"", b"y" * 900_000), PART % (b'; filename="a.pdf"', b"%PDF-1.7")], ids=["fields", "files"]
)
def test_a_form_is_one_file(client: TestClient, part: bytes) -> None:
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    response = client.post("/papers", content=part * 5 + b"--x--\r\n", headers=kind)
    assert refusal(response, 400) == "The form could not be read."


def test_an_urlencoded_form_is_refused(client: TestClient) -> None:
    assert "neither JSON" in refusal(client.post("/papers", data={"file": "x" * 2_000_000}), 415)


def test_a_paper_is_removed_and_its_file_kept(client: TestClient, tmp_path: Path) -> None:
    otters = papers(client)["otters.pdf"]["id"]
    assert client.delete(f"/papers/{otters}").json() == {"file": "otters.pdf", "kept_at": ".removed/otters.pdf"}
    assert list(papers(client)) == ["alps/glaciers.pdf"]
    assert (tmp_path / "papers" / ".removed" / "otters.pdf").exists()
    assert said(client, "How do sea otters sleep?")["sources_used"] in ([], ["alps/glaciers.pdf"])
    refusal(client.delete(f"/papers/{otters}"), 404)


def test_an_unusable_folder_is_named(client: TestClient, tmp_path: Path) -> None:
    otters = papers(client)["otters.pdf"]["id"]
    (tmp_path / "papers" / ".removed").touch()
    happened = refusal(client.delete(f"/papers/{otters}"), 500)
    assert happened == f"{tmp_path / 'papers' / '.removed'} cannot be used: File exists."
    assert list(papers(client)) == ["alps/glaciers.pdf"]
    assert [entry["file"] for entry in json.loads((tmp_path / "ingested.json").read_text())] == ["alps/glaciers.pdf"]


# Errors and documentation


def test_every_error_has_the_same_form(client: TestClient) -> None:
    assert "nothing at this address" in refusal(client.get("/nothing"), 404)
    assert "does not support that method" in refusal(client.put("/papers", json={}), 405)
    broken = client.post("/search", content=b"{", headers={"Content-Type": "application/json"})
    refusal(broken, 422)
    assert refusal(client.post("/papers", content=b"x", headers={"Content-Type": "multipart/form-data"}), 400)
    halves = client.post("/search", content=b'{"query": "\\ud800"}', headers={"Content-Type": "application/json"})
    refusal(halves, 422)


def test_the_api_documentation_needs_no_network(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    assert {"/chat", "/chat/stream", "/search", "/papers/{paper}", "/health"} <= described["paths"].keys()
    page = client.get("/docs").text
    assert "https://" not in page
    for asset in ("/docs/assets/swagger-ui-bundle.js", "/docs/assets/swagger-ui.css", "/assets/docs.js"):
        assert f'"{asset}"' in page
        assert client.get(asset).status_code == 200


class Panic(BaseException):
    """As a panic in Rust reaches Python: not an Exception."""


RAISED = [
    Panic("a panic"),
    RuntimeError("a bug"),
    SystemExit(3),
    MemoryError(),
    OSError(5, "I/O error"),
    Panic("\udcff"),
]


@pytest.mark.parametrize("raised", RAISED, ids=repr)
def test_a_stream_ends_with_an_error_and_a_chat_has_the_usual_form_whatever_is_raised(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, raised: BaseException
) -> None:
    def fails(*_: object) -> None:
        raise raised

    # pytest-xdist cannot send a captured log with a lone surrogate.
    monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)
    monkeypatch.setattr(Conversations, "begin", fails)
    sent = events(client.post("/chat/stream", json={"message": LENGTH}).text)
    assert [kind for kind, _ in sent] == ["error"]
    assert sent[0][1].keys() == {"error", "remedy"}
    assert refusal(client.post("/chat", json={"message": LENGTH}), 500) == sent[0][1]["error"]


@pytest.mark.parametrize("raised", RAISED[:2], ids=repr)
def test_an_engine_that_fails_every_time_is_an_error_in_the_usual_form(
    opened: Open, monkeypatch: pytest.MonkeyPatch, raised: BaseException
) -> None:
    def fails(*_: object) -> None:
        raise raised

    notices: list[str] = []
    monkeypatch.setattr(fakes, "_no_notice", notices.append)
    client = opened()
    monkeypatch.setattr(TantivyIndex, "_search", fails)
    for path in ("/chat", "/search"):
        body = {"message": LENGTH} if path == "/chat" else {"query": LENGTH}
        assert "BM25 index cannot be read" in refusal(client.post(path, json=body), 500)
    sent = events(client.post("/chat/stream", json={"message": LENGTH}).text)
    assert [kind for kind, _ in sent] == ["error"]


def test_any_route_gives_the_usual_form_whatever_is_raised(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise Panic("a panic")

    monkeypatch.setattr(Library, "papers", fails)
    assert refusal(client.get("/papers"), 500) == "Folio failed with an internal error."


def test_the_library_is_exported_as_bibtex_and_csl_json(opened: Open) -> None:
    client = opened()
    bib = client.get("/papers.bib")
    assert bib.headers["content-type"].startswith("application/x-bibtex")
    assert bib.headers["content-disposition"] == 'attachment; filename="folio.bib"'
    assert bib.text.count("\n@misc{") + bib.text.startswith("@misc{") == 2
    assert "  file = {:alps/glaciers.pdf:PDF},\n" in bib.text
    csl = client.get("/papers.csl.json")
    assert len(csl.json()) == 2
    empty = opened(papers=False)
    assert (empty.get("/papers.bib").status_code, empty.get("/papers.csl.json").status_code) == (200, 200)
