"""The chat model on Ollama: what is sent, and what its failures are translated to."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from time import monotonic, sleep
from typing import Any

import pytest

from folio.errors import ModelError, ModelFailed, ModelMissing, OllamaError
from folio.models.ollama import OllamaServer
from folio.models.ollama_chat import MAX_BLANKS, STOPPED, TRIES, ChatModel, FirstToken
from tests.helpers.ollama_models import Json, Scripted
from tests.helpers.ollama_server import STOPPED as STOPPED_RUNNER
from tests.helpers.ollama_server import OllamaStandIn, closed_url

LLAMA = "llama3.1:8b"


@pytest.fixture
def model(ollama_server: OllamaStandIn) -> ChatModel:
    return ChatModel(OllamaServer(ollama_server.url, 5.0), LLAMA, first_wait_s=0.01)


def ended(model: ChatModel, *, context: int = 4096, longest: int = 1000, **kwargs: Any) -> tuple[str, str]:
    """A reply's text, and the reason why it ended."""
    pieces = list(model.stream("", "Why?", context=context, longest=longest, **kwargs))
    (reason,) = [piece.response_metadata["done_reason"] for piece in pieces if piece.response_metadata]
    return "".join(str(piece.content) for piece in pieces), reason


def wait_until(is_so: Callable[[], bool]) -> None:
    end = monotonic() + 10
    while not is_so():
        assert monotonic() < end
        sleep(0.01)


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


# How a reply ends


def test_a_reply_says_how_it_ended(model: ChatModel, ollama_server: OllamaStandIn) -> None:
    ollama_server.reply = ["Because it is so.", "word " * 40, Scripted("So it", ending="stopped"), "- " * 40]
    assert ended(model) == ("Because it is so.", "stop")
    assert ended(model, longest=3) == ("word word word ", "length")
    assert ended(model) == ("So it", STOPPED)
    assert ended(model) == ("- " * 31, STOPPED)  # the server stops a model that repeats itself


def test_blanks_without_end_are_cut(model: ChatModel, ollama_server: OllamaStandIn) -> None:
    indented = '{"code": "if x:' + 300 * " " + 'y"}'
    ollama_server.reply = [indented, '{"statements": ']
    ollama_server.split = lambda text: re.findall(r"\s{1,50}|\S+", text)  # so that the server does not see repeats
    assert ended(model) == (indented, "stop")
    ollama_server.faults.endless = "blanks"
    text, reason = ended(model)
    assert text.strip() == '{"statements":'
    assert len(text) == len(text.strip()) + MAX_BLANKS + 1
    assert reason == STOPPED
    wait_until(lambda: ollama_server.left == 1)  # the server need not go on


@pytest.mark.parametrize(
    ("scripted", "happened"),
    [
        (Scripted(refused=500, error=STOPPED_RUNNER), "Ollama could not keep llama3.1:8b running: "),
        (Scripted(refused=500, error="strange"), "responded with status 500 for llama3.1:8b: strange."),
        (Scripted(refused=503, error="server busy"), "is busy with other requests."),
        (Scripted(ending="error"), "Ollama stopped while it was running llama3.1:8b: unexpected EOF."),
        (Scripted(ending="cut"), "broke off in the middle of an answer from llama3.1:8b."),
        (Scripted(ending="stopped"), "broke off in the middle of an answer from llama3.1:8b."),  # without a piece
    ],
    ids=["500", "another 500", "503", "error line", "cut", "empty"],
)
def test_a_failure_before_the_first_piece_is_tried_again(
    model: ChatModel, ollama_server: OllamaStandIn, scripted: Scripted, happened: str
) -> None:
    ollama_server.reply = [scripted, scripted, "Because it is so.", *[scripted] * 9]
    assert ended(model) == ("Because it is so.", "stop")
    assert len(ollama_server.bodies("/api/chat")) == TRIES
    with pytest.raises(ModelFailed) as caught:
        ended(model)
    assert happened in caught.value.happened
    assert "OLLAMA_HOST" not in caught.value.remedy
    assert len(ollama_server.bodies("/api/chat")) == 2 * TRIES
    with pytest.raises(ModelFailed):
        model.first_token("", "Why?", context=4096)


@pytest.mark.parametrize("ending", ["error", "cut"])
def test_a_failure_after_the_first_piece_is_an_error_at_once(
    model: ChatModel, ollama_server: OllamaStandIn, ending: Any
) -> None:
    ollama_server.reply = [Scripted("Because it", ending=ending), "Because it is so."]
    pieces = model.stream("", "Why?", context=4096, longest=32)
    assert [str(next(pieces).content) for _ in range(2)] == ["Because ", "it"]
    with pytest.raises(ModelFailed) as caught:
        list(pieces)
    assert "OLLAMA_HOST" not in caught.value.remedy
    assert len(ollama_server.bodies("/api/chat")) == 1


def test_a_killed_runner_is_told_with_what_helps(model: ChatModel, ollama_server: OllamaStandIn) -> None:
    ollama_server.reply = [Scripted("Because", ending="error")]
    with pytest.raises(ModelFailed) as caught:
        ended(model)
    assert caught.value.happened == "Ollama stopped while it was running llama3.1:8b: unexpected EOF."
    assert caught.value.remedy == (
        "Try again; if it happens again, close other programs to free memory, or choose a smaller model."
    )


@pytest.mark.parametrize(
    ("shape", "context", "happened"),
    [({"type": "objekt"}, 4096, "invalid JSON schema in format"), (None, 1, "longer than the context")],
)
def test_a_bad_request_is_not_tried_again(
    model: ChatModel, ollama_server: OllamaStandIn, shape: Json | None, context: int, happened: str
) -> None:
    with pytest.raises(ModelError, match=happened) as caught:
        ended(model, context=context, shape=shape)
    assert not isinstance(caught.value, ModelFailed)
    assert "OLLAMA_HOST" not in caught.value.remedy
    assert len(ollama_server.bodies("/api/chat")) == 1


def test_a_missing_model_is_not_tried_again(model: ChatModel, ollama_server: OllamaStandIn) -> None:
    ollama_server.models.clear()
    with pytest.raises(ModelMissing):
        ended(model)
    assert len(ollama_server.bodies("/api/chat")) == 1


def test_waiting_for_another_try_can_be_cancelled(model: ChatModel, ollama_server: OllamaStandIn) -> None:
    ollama_server.faults.busy = 9
    waits = replace(model, first_wait_s=60)

    def check_cancelled() -> None:
        if ollama_server.bodies("/api/chat"):
            raise KeyError("cancelled")

    began = monotonic()
    with pytest.raises(KeyError, match="cancelled"):
        ended(waits, check_cancelled=check_cancelled)
    assert monotonic() - began < 10
    assert len(ollama_server.bodies("/api/chat")) == 1


# One token


def test_the_first_token_and_its_alternatives(model: ChatModel, ollama_server: OllamaStandIn) -> None:
    ollama_server.reply = [Scripted(" Yes", ((" No", -2.5), (" Yes", -0.25), ("Maybe", -5.0))), "Because it is so."]
    ollama_server.split = lambda text: [text]
    found = model.first_token("Be brief.", "Why?", context=8192)
    assert found == FirstToken(" Yes", ((" Yes", -0.25), (" No", -2.5), ("Maybe", -5.0)))
    list(model.stream("Be brief.", "Why?", context=8192, longest=32))
    one, whole = ollama_server.bodies("/api/chat")
    assert one["messages"] == whole["messages"]  # so that the server reuses what it has computed for them
    assert one["options"] == {**whole["options"], "num_predict": 1}
    assert (one["logprobs"], one["top_logprobs"], one.get("format")) == (True, 20, None)
    assert one["options"]["temperature"] == 0


def test_a_server_that_gives_no_log_probabilities(model: ChatModel, ollama_server: OllamaStandIn) -> None:
    ollama_server.version = "0.12.10"
    ollama_server.reply = ["no, it is not", Scripted("")]
    assert model.first_token("", "Why?", context=4096) == FirstToken("no, ", ())
    assert model.first_token("", "Why?", context=4096) == FirstToken("", ())


# Other ends


def test_a_reply_can_be_abandoned() -> None:
    with OllamaStandIn(reply=lambda messages: "Because it is so.") as server:
        model = ChatModel(OllamaServer(server.url, 5.0), LLAMA)
        assert str(next(model.stream("", "Why?", context=4096, longest=32)).content) != ""


def test_a_server_that_is_down_is_reported() -> None:
    with pytest.raises(OllamaError, match="No Ollama server answers at"):
        reply(closed_url())
