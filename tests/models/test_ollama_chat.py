"""The chat model on Ollama: what is sent, and what its failures are translated to."""

from __future__ import annotations

import pytest

from folio.errors import OllamaError
from folio.models.ollama import OllamaServer
from folio.models.ollama_chat import ChatModel
from tests.helpers.ollama_models import Json
from tests.helpers.ollama_server import OllamaStandIn, closed_url

LLAMA = "llama3.1:8b"


def reply(url: str, rules: str = "", shape: Json | None = None) -> str:
    pieces = ChatModel(OllamaServer(url, 5.0), LLAMA).stream(rules, "Why?", context=4096, longest=32, shape=shape)
    return "".join(str(piece.content) for piece in pieces)


def test_request_body() -> None:
    shape = {"type": "object", "properties": {"question": {"type": "string"}}}
    with OllamaStandIn(reply=lambda messages: "Because it is so.") as server:
        assert reply(server.url, "Be brief.", shape) == '{"question": "Because it is so."}'
        assert reply(server.url) == "Because it is so."
        first, second = server.bodies("/api/chat")
    assert [(message["role"], message["content"]) for message in first["messages"]] == [
        ("system", "Be brief."),
        ("user", "Why?"),
    ]
    assert first["model"] == LLAMA
    assert first["format"] == shape
    assert {name: first["options"][name] for name in ("temperature", "num_ctx", "num_predict")} == {
        "temperature": 0,
        "num_ctx": 4096,
        "num_predict": 32,
    }
    assert (first["truncate"], first["shift"]) == (False, False)
    assert [message["role"] for message in second["messages"]] == ["user"]
    assert not second.get("format")


def test_a_reply_that_breaks_off_is_an_error() -> None:
    with OllamaStandIn(reply=lambda messages: "Because it is so.") as server:
        for fault in ("break_after", "end_after"):
            setattr(server.faults, fault, 2)
            with pytest.raises(OllamaError, match="broke off in the middle of an answer"):
                reply(server.url)
            setattr(server.faults, fault, None)


def test_a_reply_can_be_abandoned() -> None:
    with OllamaStandIn(reply=lambda messages: "Because it is so.") as server:
        model = ChatModel(OllamaServer(server.url, 5.0), LLAMA)
        assert str(next(model.stream("", "Why?", context=4096, longest=32)).content) != ""


def test_a_server_that_is_down_is_reported() -> None:
    with pytest.raises(OllamaError, match="No Ollama server answers at"):
        reply(closed_url())
