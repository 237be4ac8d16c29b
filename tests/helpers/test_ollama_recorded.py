"""The stand-in for an Ollama server answers what a real server was asked, in the same shape.

The exchanges were recorded with a server of May 2026, an embedding model, a chat model of random weights, and a tiny
one that thinks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.helpers.ollama_models import LLAMA, MINILM, Json, Scripted, split_words
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.paths import SHARED

EXCHANGES = SHARED / "apis" / "ollama" / "exchanges.jsonl"
OF_THINKING = SHARED / "apis" / "ollama" / "exchanges_thinking.jsonl"
COUNT, COUNT_OF_THINKING = 50, 24
UNUSED = ("/v1/", "/api/generate")  # what Folio does not ask, and the stand-in does not answer
THOUGHT = (
    "Okay, the question asks about the glacier. Let me look at the sentences. Sentence 1 says how far it retreated, and"
    " that is what is asked. So I write one statement and name sentence 1.\n"
)
LONG = "word " * 8000  # stands for <<LONG>> in a recorded request
WRITTEN = "uthors Engineering incre Security self were not recorded"

pytestmark = pytest.mark.skipif(not EXCHANGES.exists(), reason=f"there are no recorded exchanges at {EXCHANGES}")


@dataclass(frozen=True)
class Shape:
    """What the two servers must agree in."""

    status: int
    media_type: str
    text: str | None  # of an answer that is not JSON
    objects: tuple[object, ...]  # the keys of each JSON object; those of consecutive ones that are alike stand once
    error: object
    ending: tuple[object, object]  # `done` and `done_reason` of the last object


@cache
def recorded(file: Path = EXCHANGES) -> list[Json]:
    exchanges = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [exchange for exchange in exchanges if not exchange["path"].startswith(UNUSED)]


@pytest.fixture(scope="module")
def server() -> Iterator[OllamaStandIn]:
    """A server with the models that the real one had."""
    with OllamaStandIn(reply=lambda messages: WRITTEN) as server:
        # Tags and details in the recorded order; MiniLM's weights went under both names.
        names = ("nomic-embed-text:latest", "all-minilm:latest")
        chat = replace(LLAMA, embedding_length=128, capabilities=("completion",))
        server.models = {name: replace(MINILM, name=name) for name in names} | {chat.name: chat}
        yield server


@pytest.fixture(scope="module")
def thinking_server() -> Iterator[OllamaStandIn]:
    """A server with the models that the real one had when it was asked about thinking."""
    with OllamaStandIn(reply=lambda messages: "yes") as server:
        chat = replace(LLAMA, embedding_length=128, context_length=40960, capabilities=("completion",))
        thinks = replace(chat, name="qwen3:8b", capabilities=("completion", "thinking"), thought=THOUGHT)
        parsed = replace(thinks, name="p-qwen3.5:latest", has_parser=True)
        nomic = replace(MINILM, name="nomic-embed-text:latest")
        server.models = {one.name: one for one in (chat, thinks, parsed, nomic, replace(chat, name="big:latest"))}
        yield server


def keys(value: object) -> object:
    """The keys of an object and of the objects in it, without their values; one item for all those of a list."""
    if isinstance(value, dict):
        kept = {name: part for name, part in value.items() if name != "model_info"}
        return {name: keys(part) for name, part in sorted(kept.items())}
    if isinstance(value, list):
        kinds = [keys(part) for part in value]
        return [kind for at, kind in enumerate(kinds) if kind not in kinds[:at]]
    return None


def shape(status: int, content_type: str, body: str) -> Shape:
    media_type = content_type.partition(";")[0]
    lines = [line for line in body.splitlines() if line]
    if media_type == "text/plain":
        return Shape(status, media_type, body, (), None, (None, None))
    objects: list[Json] = [json.loads(line) for line in lines]
    last = objects[-1]
    alike = tuple(kind for kind, _ in groupby(map(keys, objects)))
    return Shape(status, media_type, None, alike, last.get("error"), (last.get("done"), last.get("done_reason")))


def expected(exchange: Json) -> Shape:
    # Long vectors were cut when the exchange was recorded, and their true length noted as "dimension".
    pieces = [piece["text"] for piece in exchange["pieces"]]
    texts = [json.dumps(_without_note(json.loads(text))) if text[:1] == "{" else text for text in pieces]
    return shape(exchange["status"], exchange["headers"]["content-type"], "\n".join(texts))


def _without_note(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_note(part) for name, part in value.items() if name != "dimension"}
    return [_without_note(part) for part in value] if isinstance(value, list) else value


def ask(server: OllamaStandIn, exchange: Json) -> httpx.Response:
    request = exchange["request"]
    # Under a schema the recorded model wrote letter by letter; in plain JSON it wrote blanks only.
    shaped = isinstance(request, dict) and "format" in request
    server.split = (lambda text: [*text]) if shaped else split_words
    server.reply = lambda messages: "{" + 40 * "\n" if shaped and request["format"] == "json" else WRITTEN
    return send(server, exchange)


def send(server: OllamaStandIn, exchange: Json) -> httpx.Response:
    request = exchange["request"]
    content = request if isinstance(request, str) else json.dumps(request).replace("<<LONG>>", LONG)
    body = None if request is None else content.encode()
    with httpx.Client(trust_env=False, verify=False, timeout=30) as client:
        return client.request(exchange["method"], server.url + exchange["path"], content=body)


def test_every_exchange_is_there() -> None:
    assert len(recorded()) == COUNT


@pytest.mark.parametrize("at", range(COUNT))
def test_the_stand_in_answers_in_the_recorded_shape(server: OllamaStandIn, at: int) -> None:
    exchange = recorded()[at]
    if exchange["path"] == "/api/ps":  # what was used before, and so is loaded, whichever tests ran before this one
        httpx.post(f"{server.url}/api/embed", json={"model": "nomic-embed-text"}, trust_env=False, verify=False)
    answer = ask(server, exchange)
    assert shape(answer.status_code, answer.headers["content-type"], answer.text) == expected(exchange)
    if exchange["headers"].get("allow"):
        assert answer.headers["allow"] == exchange["headers"]["allow"]
    if answer.headers["content-type"] == "application/x-ndjson":
        assert answer.headers["transfer-encoding"] == exchange["ended"] == "chunked"
    if exchange["path"] == "/api/show" and exchange["status"] == 200:
        facts, real = answer.json()["model_info"], json.loads(exchange["pieces"][0]["text"])["model_info"]
        assert facts.items() <= real.items()
        assert len(facts) == 3
    if exchange["path"] == "/api/embed" and exchange["status"] == 200:
        real = json.loads(exchange["pieces"][0]["text"])
        lengths = {len(row) for row in answer.json()["embeddings"]}
        assert lengths == ({real["dimension"]} if "dimension" in real else set())


def test_every_exchange_about_thinking_is_there() -> None:
    assert len(recorded(OF_THINKING)) == COUNT_OF_THINKING


@pytest.mark.parametrize("at", range(COUNT_OF_THINKING))
def test_the_stand_in_thinks_as_recorded(thinking_server: OllamaStandIn, at: int) -> None:
    server, exchange = thinking_server, recorded(OF_THINKING)[at]
    real = json.loads(exchange["pieces"][0]["text"]) if exchange["pieces"][0]["text"][:1] == "{" else {}
    server.reply = lambda messages: "yes"
    dies = exchange["name"].endswith(("runner killed", "runner killed, whole"))
    if dies and exchange["path"] == "/api/embed":
        server.faults.fails, server.faults.status, server.faults.error = 1, 400, real["error"]
    elif dies:
        server.reply = lambda messages: Scripted("Escape Barycentric", ending="error")
    elif exchange["name"] == "chat, its runner killed before":
        server.reply = lambda messages: "Escape Barycentric tone"
    elif exchange["path"] == "/api/ps":  # what was used before, and so is loaded
        for path, body in (("embed", {"model": "nomic-embed-text"}), ("chat", {"model": "llama3.1:8b"})):
            httpx.post(f"{server.url}/api/{path}", json=body, trust_env=False, verify=False)
    answer = send(server, exchange)
    assert shape(answer.status_code, answer.headers["content-type"], answer.text) == expected(exchange)
    if exchange["path"] == "/api/chat" and real.get("message") and exchange["request"].get("stream") is False:
        given = json.loads(answer.text)["message"]
        # Whether it thought, and whether the schema was held.
        assert bool(given.get("thinking")) == bool(real["message"].get("thinking"))
        assert (given["content"][:1] == "{") == (real["message"]["content"][:1] == "{")
    if exchange["path"] == "/api/show":
        assert answer.json()["capabilities"] == real["capabilities"] == ["completion", "thinking"]
