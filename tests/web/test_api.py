"""The web API: replies, the order of streamed events, and errors."""

from __future__ import annotations

import json
import logging
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from folio.answer_types import REFUSAL
from folio.models import discovery
from folio.search.pool import RetrieverPool
from folio.store.bm25 import TantivyIndex
from folio.store.conversations import Conversations
from folio.store.library import Library
from folio.store.query_log import LogCounts, QueryLog
from folio.system import workers
from folio.web import api
from tests.helpers import fakes
from tests.helpers.answers import REFUSED
from tests.helpers.factories import GLACIERS, OTTERS, write_pdf
from tests.helpers.fakes import hashing_app, read_here
from tests.helpers.ollama_models import MINILM, QWEN3
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.openai_server import OpenAIStandIn
from tests.helpers.scripted_answerer import FALSE, REASON, every_outcome, script_answers
from tests.helpers.web_client import (
    NOBODY,
    ask,
    ask_streamed,
    client_of,
    events_in,
    papers_by_file,
    refusal,
    small_app,
)

LENGTH = "What length has the Aletsch glacier?"
THICK = "And what thickness has its ice at the Konkordiaplatz?"
IS_LONG = "The Aletsch glacier has a length of 23 kilometres"
SLEEP = "How do sea otters sleep?"
PAINTED = "Who painted the ceiling of the Sistine chapel in Rome?"
CHOSEN = {"LLM": "builtin", "RERANKER": "builtin"}
Open = Callable[..., TestClient]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """A function that opens an API client for a store in tmp_path, with these settings."""
    monkeypatch.setattr(workers, "run_guarded", read_here)
    with ExitStack() as stack:

        def client(*, papers: bool = True, **settings: Any) -> TestClient:
            if not papers:
                (tmp_path / "papers").mkdir(exist_ok=True)
                return stack.enter_context(client_of(hashing_app(tmp_path, **{**CHOSEN, **settings})))
            return stack.enter_context(client_of(small_app(tmp_path, **settings)))

        yield client


@pytest.fixture
def client(opened: Open) -> TestClient:
    return opened()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose papers no test changes."""
    made = tmp_path_factory.mktemp("shared")
    small_app(made)
    return made


@pytest.fixture(scope="module")
def shared(folder: Path) -> Iterator[TestClient]:
    with client_of(small_app(folder)) as opened:
        yield opened


@pytest.fixture
def chosen(folder: Path) -> Iterator[Open]:
    """A function that opens a client for that store with these settings."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(client_of(small_app(folder, **settings)))


def logged(folder: Path) -> LogCounts:
    with closing(small_app(folder).open_library()) as library:
        return QueryLog(library.database).counts()


# Health


def test_health_of_a_store(shared: TestClient) -> None:
    health = shared.get("/health").json()
    assert (health["status"], health["store"]["papers"], health["fingerprint"]["embedder"]) == ("ready", 2, "hashing")
    assert health["models"] == {"embedder": "hashing", "reranker": "built in", "llm": "extractive (built in)"}
    assert (health["chat_models"], health["logged"]) == ([], True)


def test_an_empty_store_says_that_there_is_no_index(opened: Open) -> None:
    client = opened(papers=False)
    assert client.get("/health").json().items() >= {"status": "empty", "store": None}.items()
    assert client.get("/papers").json() == {"papers": [], "failures": [], "notice": ""}
    assert client.get("/conversations").json() == {"conversations": []}
    assert [client.get(path).status_code for path in ("/papers.bib", "/papers.csl.json")] == [200, 200]
    for path, body in (("/chat", {"message": "x"}), ("/chat/stream", {"message": "x"}), ("/search", {"query": "x"})):
        assert "There is no index" in refusal(client.post(path, json=body), 409)


def test_health_says_what_is_missing_and_what_would_improve_answers(chosen: Open) -> None:
    with_more = chosen(LLM="auto", RERANKER="auto", CROSS_ENCODER="nobody/has-this").get("/health").json()
    assert with_more["better"] == ["install the cross-encoder", "start Ollama, then get llama3.1:8b in Settings"]
    missing = chosen(LLM="ollama").get("/health").json()
    assert (missing["status"], missing["models"]["llm"]) == ("ready", "")
    assert missing["better"][0].startswith("No Ollama server answers at http://127.0.0.1:11434.")


def test_health_responds_while_ollama_is_silent(chosen: Open, ollama_server: OllamaStandIn) -> None:
    ollama_server.faults.first_byte_s, ollama_server.faults.paths = 600, ("/api/tags",)
    client = chosen(LLM="auto", OLLAMA_HOST=ollama_server.url)
    found = client.get("/health").json()
    assert found["models"]["llm"] == "extractive (built in)"
    assert "start Ollama, then get llama3.1:8b in Settings" in found["better"]


def test_health_names_the_only_model_of_another_server(chosen: Open) -> None:
    with OpenAIStandIn(dimension=64) as server:
        health = chosen(LLM="openai", OPENAI_BASE_URL=server.url).get("/health").json()
        assert health["models"]["llm"] == f"llama3.1:8b ({server.url.removeprefix('http://')})"
        assert (health["model"], health["chat_models"]) == ("llama3.1:8b", ["llama3.1:8b"])
        server.models.clear()
        health = chosen(LLM="openai", OPENAI_BASE_URL=server.url).get("/health").json()
        assert (health["model"], health["chat_models"]) == ("", [])
        assert "has no chat model. Load one there" in health["better"][0]


def test_model_servers_are_looked_for_when_asked_to(
    shared: TestClient, ollama_server: OllamaStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = int(ollama_server.url.rpartition(":")[2])
    monkeypatch.setattr(discovery, "PORTS", (port,))
    assert shared.get("/health").status_code == 200
    assert ollama_server.requests == []
    (found,) = shared.get("/model-servers").json()["servers"]
    assert (found["url"], found["chat_models"]) == (ollama_server.url, ["llama3.1:8b"])
    assert found["settings"] == f"LLM=ollama OLLAMA_HOST=127.0.0.1:{port}"


# Search


def test_search_finds_passages_with_their_pages(shared: TestClient) -> None:
    papers = papers_by_file(shared)
    found = shared.post("/search", json={"query": LENGTH, "top_k": 2}).json()
    best = found["hits"][0]
    assert (len(found["hits"]), best["pages"][0], best["file"], found["query"]) == (2, 1, "alps/glaciers.pdf", LENGTH)
    assert best["paper"] == papers["alps/glaciers.pdf"]["id"]
    chosen = shared.post("/search", json={"query": LENGTH, "papers": [papers["otters.pdf"]["id"]]}).json()
    assert {hit["file"] for hit in chosen["hits"]} == {"otters.pdf"}


@pytest.mark.parametrize(
    ("given", "status", "happened"),
    [
        ({"year": ["1800-1801"]}, 404, "No paper fits the year."),
        ({"author": ["Darwin"]}, 404, "No paper in the index is by “Darwin”."),
        ({"venue": ["Nature"]}, 404, "No paper in the index is of a venue called “Nature”."),
        ({"section": ["methods"]}, 404, "No paper fits the section."),
        ({"collection": ["Systems"]}, 404, "No paper in the index is in a collection called “Systems”."),
        ({"tag": ["to read"]}, 404, "No paper in the index has the tag “to read”."),
        ({"papers": [NOBODY]}, 404, ""),
        ({"year": ["2014", "2020-2010"]}, 400, "The years “2020-2010” end before they begin."),
    ],
)
def test_a_filter_that_nothing_fits_is_named(
    shared: TestClient, given: dict[str, Any], status: int, happened: str
) -> None:
    before = shared.get("/conversations").json()
    for path, question in (("/search", "query"), ("/chat", "message"), ("/chat/stream", "message")):
        assert refusal(shared.post(path, json={question: LENGTH, **given}), status).startswith(happened)
    assert shared.get("/conversations").json() == before
    assert refusal(shared.get("/papers", params={"year": "2020-2010"}), 400).startswith("The years “2020-2010” end")


def test_search_without_the_reranker(shared: TestClient) -> None:
    with_it = shared.post("/search", json={"query": LENGTH}).json()
    without = shared.post("/search", json={"query": LENGTH, "use_reranker": False}).json()
    assert (with_it["models"]["reranker"], without["models"]["reranker"]) == ("built in", "none")
    assert ask(shared, LENGTH, use_reranker=False)["models"]["reranker"] == "none"
    reranked, fused = with_it["hits"], without["hits"]
    assert sorted(hit["text"] for hit in reranked) == sorted(hit["text"] for hit in fused)
    assert [hit["score"] for hit in reranked] != [hit["score"] for hit in fused]


# Answers


def test_an_answer_cites_a_page_for_every_sentence(shared: TestClient) -> None:
    reply = ask(shared, LENGTH)
    assert reply["message"] == LENGTH
    assert IS_LONG in reply["answer"]
    assert (reply["refused"], reply["turn"], reply["feedback"]) == (False, 1, "")
    assert reply["sources_used"][0] == "alps/glaciers.pdf"
    first = reply["citations"][0]
    assert (first["file"], first["page"]) == ("alps/glaciers.pdf", 1)
    assert " ".join(first["quote"].split()) in GLACIERS[0]
    assert all(sentence["citations"] for sentence in reply["sentences"])
    assert reply["elapsed_ms"] > 0


def test_a_question_the_papers_do_not_answer_is_refused(shared: TestClient) -> None:
    reply = ask(shared, PAINTED)
    assert (reply["answer"], reply["refused"]) == (REFUSAL, True)
    assert (reply["sentences"], reply["citations"], reply["sources_used"]) == ([], [], [])
    assert reply["hits"]
    sent = ask_streamed(shared, PAINTED)
    assert [kind for kind, _ in sent] == ["retrieved", "citations", "done"]
    assert sent[-1][1]["answer"] == REFUSAL


def test_a_follow_up_uses_its_own_conversation(shared: TestClient) -> None:
    first, other = ask(shared, LENGTH), ask(shared, SLEEP)
    assert first["conversation"] != other["conversation"]
    follow_up = ask(shared, THICK, conversation=first["conversation"])
    assert follow_up["standalone_question"] == "What thickness has the Aletsch Glacier’s ice at the Konkordiaplatz?"
    assert ("thickness of 800 metres" in follow_up["answer"], follow_up["turn"]) == (True, 2)
    assert ask(shared, THICK)["standalone_question"] == THICK


def test_the_understood_question_is_shown_only_if_set(chosen: Open) -> None:
    client = chosen(SHOW_UNDERSTOOD=False)
    follow_up = ask(client, THICK, conversation=ask(client, LENGTH)["conversation"])
    assert follow_up["standalone_question"] == THICK  # the page and exports show it where it differs
    assert "thickness of 800 metres" in follow_up["answer"]


def test_an_answer_uses_the_chosen_papers_and_number_of_passages(shared: TestClient) -> None:
    otters = papers_by_file(shared)["otters.pdf"]["id"]
    reply = ask(shared, "What do sea otters eat?", papers=[otters], top_k=1)
    assert {hit["file"] for hit in reply["hits"]} == {"otters.pdf"}
    assert len(reply["hits"]) == 1


def test_a_report_has_sections(shared: TestClient) -> None:
    reply = ask(shared, LENGTH, style="report")
    assert reply["style"] == "report"
    assert reply["sentences"][0]["section"] == "Summary"
    assert reply["answer"].startswith(f"## Summary\n\n- {reply['sentences'][0]['text']}")


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({}, "message"),
        *(({"message": message}, "message") for message in ("", " \n ", "x" * 10_001)),
        *(
            ({"message": "x", name.partition(".")[0]: value}, name)
            for name, value in (
                ("top_k", 0), ("conversation", "../../etc"), ("papers.0", ["../x"]), ("style", "poem"),
                ("section", "methods"), ("year.0", ["soon"]), ("author.0", [" "]), ("unknown", 1), ("mode", "slow"),
            )
        ),
    ],
)  # fmt: skip
def test_an_invalid_field_is_refused_by_name(shared: TestClient, body: dict[str, Any], names: str) -> None:
    for path in ("/chat", "/chat/stream"):
        assert refusal(shared.post(path, json=body), 422).startswith(f"{names}: ")


def test_an_unknown_conversation_is_refused(client: TestClient) -> None:
    for path in ("/chat", "/chat/stream"):
        refusal(client.post(path, json={"message": "x", "conversation": "A" * 16}), 404)
    assert client.get("/conversations").json() == {"conversations": []}


def test_a_model_is_chosen_by_name(chosen: Open, ollama_server: OllamaStandIn) -> None:
    client = chosen(OLLAMA_HOST=ollama_server.url)
    ollama_server.reply = [f"{IS_LONG} [1]."]
    assert ask(client, LENGTH)["models"]["llm"] == "extractive (built in)"
    assert ask(client, LENGTH, model="llama3.1:8b")["models"]["llm"] == "llama3.1:8b (Ollama)"
    for name in ("all-minilm:latest", "bge-m3:latest"):
        ollama_server.models[name] = replace(MINILM, name=name)
    assert client.get("/health").json()["chat_models"] == ["llama3.1:8b"]
    asked = len(ollama_server.bodies("/api/show"))
    assert client.get("/health").json()["chat_models"] == ["llama3.1:8b"]
    assert len(ollama_server.bodies("/api/show")) == asked  # what is known of a model is not asked again
    refused = client.post("/chat", json={"message": LENGTH, "model": "nobody-has-this"})
    assert "does not have the model nobody-has-this" in refusal(refused, 503)
    ((kind, error),) = ask_streamed(client, LENGTH, model="nobody")
    assert (kind, error["model_failed"]) == ("error", True)
    assert "does not have the model nobody" in error["error"]


# Streams


def test_a_stream_has_hits_then_sentences_then_the_reply(shared: TestClient) -> None:
    response = shared.post("/chat/stream", json={"message": LENGTH})
    assert response.headers["content-type"].startswith("text/event-stream")
    (_, asked), *sent = events_in(response.text)
    kinds = [kind for kind, _ in sent]
    assert kinds == ["retrieved", *["sentence"] * (len(kinds) - 3), "citations", "done"]
    done = sent[-1][1]
    assert [data for kind, data in sent if kind == "sentence"] == done["sentences"]
    assert sent[0][1]["hits"] == done["hits"]
    for event in (asked, sent[0][1]):
        assert event.items() >= {"conversation": done["conversation"], "turn": 1}.items()
    assert sent[-2][1] == {"citations": done["citations"]}
    assert done.keys() == ask(shared, LENGTH).keys()


def test_a_stream_says_that_the_model_thinks(chosen: Open, ollama_server: OllamaStandIn) -> None:
    ollama_server.models[QWEN3.name] = QWEN3
    for think, begins in (("on", ["retrieved", "thinking", "sentence"]), ("auto", ["retrieved", "sentence"])):
        client = chosen(LLM="ollama", OLLAMA_HOST=ollama_server.url, LLM_MODEL=QWEN3.name, THINK=think, VERIFIER="none")
        sent = ask_streamed(client, LENGTH)
        assert [kind for kind, _ in sent][: len(begins)] == begins
        assert [data for kind, data in sent if kind == "thinking"] == (
            [{"model": "qwen3:8b (Ollama)"}] if think == "on" else []
        )
        assert sent[-1][0] == "done"


def test_a_stream_says_what_waits_for_its_verifier(shared: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    script_answers(monkeypatch, every_outcome)
    sent = ask_streamed(shared, LENGTH)
    quoted, reworded = ("sentence", "quoted"), ("sentence", "reworded")
    assert [(kind, data.get("count", data.get("outcome"))) for kind, data in sent[1:-2]] == [
        quoted, ("checking", 1), ("checking", 2), reworded, ("checking", 1), ("checking", 0), quoted, reworded,
    ]  # fmt: skip
    done = sent[-1][1]
    assert [data for kind, data in sent if kind == "sentence"] == done["sentences"]
    assert done["sentences"][2]["instead_of"] == FALSE
    assert done["left_out"][0] == {"text": FALSE, "reason": REASON}
    assert (done["dropped_sentences"], len(done["left_out"])) == (2, 2)
    path = f"/conversations/{done['conversation']}"
    assert shared.get(path).json()["turns"] == [done]
    exported = shared.get(f"{path}/markdown").text
    assert "≈ Its tongue gets shorter" in exported
    assert f"### Left out\n\nThe papers do not support these statements of the model:\n\n- {FALSE}\\\n" in exported


def test_an_answer_that_an_older_folio_kept_is_shown(client: TestClient, tmp_path: Path) -> None:
    done = ask(client, LENGTH)
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


# Conversations


def test_conversations_are_listed_shown_exported_and_deleted(opened: Open, tmp_path: Path) -> None:
    client = opened()
    first = ask(client, LENGTH)
    second = ask(client, THICK, conversation=first["conversation"])
    other = ask(client, SLEEP, listed=True)
    listed = client.get("/conversations").json()["conversations"]
    assert [(one["id"], one["title"], one["turns"]) for one in listed] == [
        (other["conversation"], SLEEP, 1),
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
    follow_up = ask(opened(), THICK, conversation=ask(opened(), LENGTH)["conversation"])
    assert ("thickness of 800 metres" in follow_up["answer"], follow_up["turn"]) == (True, 2)


def test_without_a_log_conversations_are_not_stored(opened: Open) -> None:
    client = opened(QUERY_LOG=False)
    first = ask(client, LENGTH)
    assert ask(client, THICK, conversation=first["conversation"])["turn"] == 2
    assert len(client.get("/conversations").json()["conversations"]) == 1
    body = {"conversation": first["conversation"], "turn": 1, "feedback": "good"}
    assert "not in the log" in refusal(client.post("/feedback", json=body), 400)
    other = opened(QUERY_LOG=False)
    assert other.get("/conversations").json() == {"conversations": []}


def test_an_answer_that_cannot_be_saved_has_a_notice(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("folio.store.conversations.BUSY_TIMEOUT_S", 0.1)
    ask(client, LENGTH)
    writer = sqlite3.connect(tmp_path / "store" / "user.sqlite", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    reply = ask(client, LENGTH)
    assert IS_LONG in reply["answer"]
    assert "This answer could not be saved: Another process is writing to the library" in reply["notice"]
    assert ask_streamed(client, LENGTH)[-1][0] == "done"
    writer.execute("ROLLBACK")
    writer.close()
    refusal(client.get(f"/conversations/{reply['conversation']}"), 404)
    assert logged(tmp_path).questions == 1


def test_feedback_marks_the_right_answer(client: TestClient, tmp_path: Path) -> None:
    first, other = ask(client, LENGTH), ask(client, SLEEP)
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


def test_papers_are_listed_with_their_details(shared: TestClient) -> None:
    otters = papers_by_file(shared)["otters.pdf"]
    assert otters.items() >= {"title": "On Sea Otters", "authors": [], "year": None, "pages": 2, "problems": []}.items()
    details = shared.get(f"/papers/{otters['id']}").json()
    assert otters.pop("match") is None  # without a query
    assert (otters.pop("read"), otters.pop("read_page")) == ("", 0)  # it was never open in the reader
    assert details.items() >= otters.items()
    assert details["labels"] == ["", ""]
    assert "On Sea Otters" in details["reference"]
    assert "% title not sure: On Sea Otters (from the PDF's metadata)" in details["bibtex"]
    refusal(shared.get(f"/papers/{NOBODY}"), 404)
    refusal(shared.get("/papers/..%2f..%2fetc%2fpasswd"), 404)
    refusal(shared.get("/papers/otters.pdf"), 422)


def test_a_page_picture_has_its_quote_marked(shared: TestClient) -> None:
    citation = ask(shared, LENGTH)["citations"][0]
    path = f"/papers/{citation['paper']}/pages/{citation['page']}.png"
    marked = shared.get(path, params={"quote": [citation["quote"], "Nobody wrote this sentence here."]})
    assert marked.headers["content-type"] == "image/png"
    assert marked.headers["folio-marked"] == "1,0"
    assert marked.content.startswith(b"\x89PNG")
    plain = shared.get(path)
    assert (plain.status_code, plain.headers["folio-marked"]) == (200, "")
    assert plain.content != marked.content
    assert "has no page 4" in refusal(shared.get(f"/papers/{citation['paper']}/pages/4.png"), 404)
    refusal(shared.get(f"/papers/{citation['paper']}/pages/0.png"), 422)
    refusal(shared.get(f"/papers/{NOBODY}/pages/1.png"), 404)


def test_a_pdf_is_served_whole_and_in_ranges(client: TestClient, tmp_path: Path) -> None:
    otters = papers_by_file(client)["otters.pdf"]["id"]
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
    sent = events_in(client.post("/papers", files={"file": ("../../otters.pdf", content)}).text)
    assert [kind for kind, _ in sent][:2] == ["saved", "progress"]
    assert sent[0][1] == {"file": "otters.pdf"}
    *_, (last, progress), (kind, done) = sent
    assert (last, progress["stage"], progress["done"]) == ("progress", "embedding", progress["of"])
    assert (kind, done["status"], done["paper"]["title"]) == ("done", "added", "On Sea Otters")
    assert (tmp_path / "papers" / "otters.pdf").read_bytes() == content
    assert ask(client, SLEEP)["sources_used"] == ["otters.pdf"]
    again = events_in(client.post("/papers", files={"file": ("other.pdf", content)}).text)
    assert again[-1][1]["status"] == "duplicate"
    assert again[-1][1]["notes"] == ["The same file as otters.pdf."]


def test_a_damaged_pdf_is_not_added(client: TestClient, tmp_path: Path) -> None:
    before = papers_by_file(client)
    sent = events_in(client.post("/papers", files={"file": ("a.pdf", b"%PDF-1.7 torn")}).text)
    assert [kind for kind, _ in sent] == ["saved", "progress", "error"]
    assert sent[-1][1]["remedy"]
    assert papers_by_file(client) == before
    assert sorted(path.name for path in (tmp_path / "papers").iterdir()) == ["alps", "otters.pdf"]


PART = b'--x\r\nContent-Disposition: form-data; name="file"%s\r\n\r\n%s\r\n'
FORM = "multipart/form-data; boundary=x"


@pytest.mark.parametrize(
    ("content", "kind", "status", "happened"),
    [
        (PART % (b"", b"y" * 900_000) * 5 + b"--x--\r\n", FORM, 400, "The form could not be read."),
        (PART % (b'; filename="a.pdf"', b"%PDF-1.7") * 5 + b"--x--\r\n", FORM, 400, "The form could not be read."),
        (b"x", "multipart/form-data", 400, ""),
        (b"--x--\r\n", FORM, 422, ""),
        (b"file=" + b"x" * 2_000_000, "application/x-www-form-urlencoded", 415, ""),
        (PART % (b'; filename="a.pdf"', b"%PDF-1.7" + b" " * 12_000_000) + b"--x--\r\n", FORM, 413, ""),
        (PART % (b'; filename="a.pdf"', b"<html>") + b"--x--\r\n", FORM, 422, "The file is not a PDF."),
    ],
    ids=["fields", "files", "no boundary", "no file", "urlencoded", "too large", "no PDF"],
)
def test_a_form_is_one_file(opened: Open, content: bytes, kind: str, status: int, happened: str) -> None:
    client = opened(papers=False, MAX_FILE_MB=1)
    response = client.post("/papers", content=content, headers={"Content-Type": kind})
    assert refusal(response, status).startswith(happened)


def test_a_paper_is_removed_and_its_file_kept(client: TestClient, tmp_path: Path) -> None:
    otters = papers_by_file(client)["otters.pdf"]["id"]
    assert client.delete(f"/papers/{otters}").json() == {"file": "otters.pdf", "kept_at": ".removed/otters.pdf"}
    assert list(papers_by_file(client)) == ["alps/glaciers.pdf"]
    assert (tmp_path / "papers" / ".removed" / "otters.pdf").exists()
    assert ask(client, SLEEP)["sources_used"] in ([], ["alps/glaciers.pdf"])
    refusal(client.delete(f"/papers/{otters}"), 404)


def test_an_unusable_folder_is_named(client: TestClient, tmp_path: Path) -> None:
    otters = papers_by_file(client)["otters.pdf"]["id"]
    (tmp_path / "papers" / ".removed").touch()
    happened = refusal(client.delete(f"/papers/{otters}"), 500)
    assert happened == f"{tmp_path / 'papers' / '.removed'} cannot be used: File exists."
    assert list(papers_by_file(client)) == ["alps/glaciers.pdf"]
    assert [entry["file"] for entry in json.loads((tmp_path / "ingested.json").read_text())] == ["alps/glaciers.pdf"]


# Errors and documentation


def test_every_error_has_the_same_form(shared: TestClient) -> None:
    assert "nothing at this address" in refusal(shared.get("/nothing"), 404)
    assert "does not support that method" in refusal(shared.put("/papers", json={}), 405)
    for content in (b"{", b'{"query": "\\ud800"}'):
        refusal(shared.post("/search", content=content, headers={"Content-Type": "application/json"}), 422)


def test_the_api_documentation_needs_no_network(shared: TestClient) -> None:
    described = shared.get("/openapi.json").json()
    assert {"/chat", "/chat/stream", "/search", "/papers/{paper}", "/health"} <= described["paths"].keys()
    page = shared.get("/docs").text
    assert "https://" not in page
    for asset in ("/docs/assets/swagger-ui-bundle.js", "/docs/assets/swagger-ui.css", "/assets/docs.js"):
        assert f'"{asset[1:]}"' in page  # the page may have an address with a path
        assert shared.get(asset).status_code == 200


def test_browsers_keep_the_files_of_the_page_until_one_changes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    copied, forever = shutil.copytree(api.STATIC, tmp_path / "static"), "private, max-age=31536000, immutable"
    monkeypatch.setattr(api, "STATIC", copied)
    with client_of(small_app(folder)) as client:

        def address() -> str:
            (found,) = re.findall(r'src="(assets/\w+/app.js)"', client.get("/").text)
            return f"/{found}"

        def cache_control(path: str) -> str:
            reply = client.get(path)
            assert reply.status_code == 200
            return str(reply.headers["cache-control"])

        app = address()
        value = app.replace("app.js", "base/value.js")
        assert app == address()
        assert cache_control(app) == cache_control(value) == forever
        assert cache_control("/") == cache_control("/assets/app.js") == "no-store"
        with (copied / "base" / "value.js").open("a", encoding="utf-8") as file:
            file.write("\n")
        assert cache_control(value) == "no-store"  # for a page of before
        assert address() != app
        assert cache_control(app) == "no-store"


class Panic(BaseException):
    """As a panic in Rust reaches Python: not an Exception."""


RAISED = [Panic("a panic"), RuntimeError("a bug"), SystemExit(3), MemoryError(), OSError(5, "full"), Panic("\udcff")]


def raises(error: BaseException) -> Callable[..., None]:
    """A function that raises this error."""

    def function(*_: object) -> None:
        raise error

    return function


@pytest.mark.parametrize("raised", RAISED, ids=repr)
def test_an_answer_ends_with_an_error_whatever_is_raised(
    shared: TestClient, monkeypatch: pytest.MonkeyPatch, raised: BaseException
) -> None:
    # pytest-xdist cannot send a captured log with a lone surrogate.
    monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)
    monkeypatch.setattr(RetrieverPool, "acquire", raises(raised))
    ((kind, error),) = ask_streamed(shared, LENGTH)
    assert (kind, list(error), error["model_failed"]) == ("error", ["error", "remedy", "model_failed"], False)
    assert refusal(shared.post("/chat", json={"message": LENGTH}), 500) == error["error"]


@pytest.mark.parametrize("raised", RAISED[:2], ids=repr)
def test_an_engine_that_fails_every_time_is_an_error(
    opened: Open, monkeypatch: pytest.MonkeyPatch, raised: BaseException
) -> None:
    notices: list[str] = []
    monkeypatch.setattr(fakes, "_no_notice", notices.append)
    client = opened()
    monkeypatch.setattr(TantivyIndex, "_search", raises(raised))
    for path, body in (("/chat", {"message": LENGTH}), ("/search", {"query": LENGTH})):
        assert "BM25 index cannot be read" in refusal(client.post(path, json=body), 500)
    assert [kind for kind, _ in ask_streamed(client, LENGTH)] == ["error"]


def test_any_route_gives_the_usual_form_whatever_is_raised(shared: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Library, "papers", raises(Panic("a panic")))
    assert refusal(shared.get("/papers"), 500) == "Folio failed with an internal error."


def test_the_library_is_exported_as_bibtex_and_csl_json(shared: TestClient) -> None:
    bib = shared.get("/papers.bib")
    assert bib.headers["content-type"].startswith("application/x-bibtex")
    assert bib.headers["content-disposition"] == 'attachment; filename="folio.bib"'
    assert len(re.findall("^@misc{", bib.text, re.MULTILINE)) == 2
    assert "  file = {:alps/glaciers.pdf:PDF},\n" in bib.text
    assert len(shared.get("/papers.csl.json").json()) == 2
