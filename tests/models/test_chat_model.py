"""The chat model on Ollama: what is sent, and what its failures are translated to."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from time import monotonic, sleep
from typing import Any, Literal

import httpx
import pytest

from folio.errors import ModelError, ModelFailed, ModelMissing, ThoughtAlone
from folio.models.chat_model import MAX_BLANKS, STOPPED, TRIES, ChatModel, FirstToken
from folio.models.model_server import THOUGHT
from folio.models.ollama import OllamaServer
from folio.models.thinking import LOW_ROOM
from tests.helpers.endless_server import endless_server
from tests.helpers.ollama_models import GPT_OSS, QWEN3, Json, Model, Scripted
from tests.helpers.ollama_server import STOPPED as STOPPED_RUNNER
from tests.helpers.ollama_server import OllamaStandIn, closed_url
from tests.helpers.paths import ROOT

LLAMA = "llama3.1:8b"


@pytest.fixture
def model(ollama_server: OllamaStandIn) -> ChatModel:
    ollama_server.reply = lambda messages: "Because."
    return ChatModel(OllamaServer(ollama_server.url, 5.0), LLAMA, first_wait_s=0.01)


Open = Callable[..., ChatModel]


@pytest.fixture
def opened(ollama_server: OllamaStandIn) -> Open:
    """A function that opens a model of the server, a thinking one if it is given, with a setting of THINK."""
    ollama_server.reply = lambda messages: "Because."

    def open_model(thinker: Model | None = None, think: Any = "auto") -> ChatModel:
        if thinker:
            ollama_server.models[thinker.name] = thinker
        server = OllamaServer(ollama_server.url, 5.0, think, keep_alive="30m")
        return ChatModel.open(server, thinker.name if thinker else LLAMA)

    return open_model


def write(model: ChatModel) -> str:
    return model.write("", "Why?", context=8192, longest=32)


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
def test_a_failure_during_a_reply_is_an_error_at_once(
    model: ChatModel, ollama_server: OllamaStandIn, ending: Any
) -> None:
    ollama_server.reply = [Scripted("Because it", ending=ending), "Because it is so."]
    pieces = model.stream("", "Why?", context=4096, longest=32)
    assert [str(next(pieces).content) for _ in range(2)] == ["Because ", "it"]
    with pytest.raises(ModelFailed) as caught:
        list(pieces)
    assert "OLLAMA_HOST" not in caught.value.remedy
    assert len(ollama_server.bodies("/api/chat")) == 1


def test_a_killed_runner_is_reported_with_a_remedy(model: ChatModel, ollama_server: OllamaStandIn) -> None:
    ollama_server.reply = [Scripted("Because", ending="error")]
    with pytest.raises(ModelFailed) as caught:
        ended(model)
    assert caught.value.happened == "Ollama stopped while it was running llama3.1:8b: unexpected EOF."
    assert caught.value.remedy == (
        "Try again; if it happens again, close other programs to free memory, or choose a smaller model."
    )


@pytest.mark.parametrize(
    ("shape", "context", "missing", "happened"),
    [
        ({"type": "objekt"}, 4096, False, "invalid JSON schema in format"),
        (None, 1, False, "longer than the context"),
        (None, 4096, True, "does not have the model"),
    ],
)
def test_a_bad_request_is_not_tried_again(
    model: ChatModel, ollama_server: OllamaStandIn, shape: Json | None, context: int, missing: bool, happened: str
) -> None:
    if missing:
        ollama_server.models.clear()
    with pytest.raises(ModelError, match=happened) as caught:
        ended(model, context=context, shape=shape)
    assert isinstance(caught.value, ModelMissing) == missing
    assert not isinstance(caught.value, ModelFailed)
    assert missing or "OLLAMA_HOST" not in caught.value.remedy
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


# Thinking


@pytest.mark.parametrize(
    ("thinker", "think", "predicted"), [(None, None, 32), (QWEN3, False, 32), (GPT_OSS, "low", 32 + LOW_ROOM)]
)
def test_a_thinking_model_is_sent_its_level(
    ollama_server: OllamaStandIn, opened: Open, thinker: Model | None, think: Any, predicted: int
) -> None:
    assert write(opened(thinker)) == "Because."
    (body,) = ollama_server.bodies("/api/chat")
    assert (body.get("think"), body["options"]["num_predict"], body["keep_alive"]) == (think, predicted, "30m")


@pytest.mark.parametrize(("thinker", "refused"), [(QWEN3, (False,)), (GPT_OSS, ("low", "medium"))])
def test_a_server_that_refuses_the_field_is_asked_without_it(
    ollama_server: OllamaStandIn, opened: Open, thinker: Model, refused: tuple[object, ...]
) -> None:
    ollama_server.refused_thinking = refused
    model = opened(replace(thinker, thought="Hm, why is it so?"))
    assert [write(model) for _ in range(2)] == ["Because."] * 2
    assert [body.get("think") for body in ollama_server.bodies("/api/chat")] == [refused[0], None, None]


def test_a_model_that_always_thinks_gets_room(ollama_server: OllamaStandIn, opened: Open) -> None:
    model = opened(replace(QWEN3, name="stubborn:8b", takes_levels_only=True))
    pieces = list(model.stream("", "Why?", context=model.context_for(3000), longest=100))
    assert "".join(str(piece.content) for piece in pieces) == "Because."
    assert pieces[0].additional_kwargs[THOUGHT] == "Okay, "
    assert [piece.response_metadata["done_reason"] for piece in pieces if piece.response_metadata] == ["stop"]
    first, second = ollama_server.bodies("/api/chat")
    assert (first["think"], first["options"]["num_predict"]) == (False, 100)
    assert (second["think"], second["options"]["num_predict"]) == ("low", 100 + LOW_ROOM)
    assert second["messages"] == first["messages"]
    assert model.context_for(3000) == 8192


ENDINGS: tuple[Literal["done", "stopped"], ...] = ("done", "stopped")
LONG_THOUGHT = " ".join(f"thought{n}" for n in range(6000))
ENDED = "qwen3:8b only thought, and ended without an answer."
SPENT = "qwen3:8b only thought: 4,128 tokens were spent before it wrote an answer."
OTHER_MODEL = "choose a model for LLM_MODEL that does not think, for example llama3.1:8b."


@pytest.mark.parametrize(
    ("thinker", "setting", "reply", "happened", "remedy"),
    [
        (replace(QWEN3, thought=LONG_THOUGHT), "on", Scripted("Because."), SPENT, f"Set THINK=off, or {OTHER_MODEL}"),
        *(
            (QWEN3, "low", reply, ENDED, f"Set THINK=off, or {OTHER_MODEL}")
            for reply in (Scripted(""), Scripted("\n\n"), Scripted("", ending="stopped"))
        ),
        # No setting is named that would change nothing
        *((GPT_OSS, setting, Scripted(""), "", "Choose a model for LLM_MODEL") for setting in ("auto", "off", "low")),
        (GPT_OSS, "on", Scripted(""), "", "Set THINK=low, or choose a model for LLM_MODEL"),
        *(
            (None, "auto", Scripted(said, ending=ending), "llama3.1:8b only thought, and ended without an answer.", "")
            for said in ("<think>Hm, why is", "<think>Hm, why is it so?</think>\n", "<think>Hm, why <")
            for ending in ENDINGS
        ),
    ],
)  # fmt: skip
def test_a_thought_without_an_answer_is_an_error(
    ollama_server: OllamaStandIn,
    opened: Open,
    thinker: Model | None,
    setting: str,
    reply: Any,
    happened: str,
    remedy: str,
) -> None:
    model = opened(thinker, setting)
    ollama_server.reply = lambda messages: reply
    with pytest.raises(ThoughtAlone) as caught:
        write(model)
    assert caught.value.happened.startswith(happened)
    assert caught.value.remedy.startswith(remedy)
    assert not model.only_thinks


def test_a_reply_without_a_thought_and_without_words_is_empty(ollama_server: OllamaStandIn, opened: Open) -> None:
    model = opened()
    ollama_server.reply = ["", "\n"]
    assert [write(model).strip() for _ in range(2)] == ["", ""]


def test_a_failure_during_a_thought_is_an_error_at_once(ollama_server: OllamaStandIn, opened: Open) -> None:
    model = opened(QWEN3, "on")
    ollama_server.reply = [Scripted("Because", ending="error")]
    with pytest.raises(ModelFailed):
        write(model)
    assert len(ollama_server.bodies("/api/chat")) == 1


# The context


@pytest.mark.parametrize(
    ("loaded", "tokens", "context"),
    [
        (8192, 3000, 8192),
        (5000, 3000, 5000),  # whoever loaded it so
        (2048, 3000, 4096),
        (8192, 9000, 16384),
        (200_000, 150_000, 131_072),
    ],
)
def test_a_context_that_is_loaded_and_enough_is_used(
    ollama_server: OllamaStandIn, opened: Open, loaded: int, tokens: int, context: int
) -> None:
    model = opened()
    assert model.context_for(3000) == 4096
    body = {"model": LLAMA, "options": {"num_ctx": loaded}}
    httpx.post(f"{ollama_server.url}/api/chat", json=body, trust_env=False, verify=False)
    assert model.context_for(tokens) == context
    list(model.stream("", "Why?", context=context, longest=32))
    assert len(ollama_server.loads) == (1 if min(loaded, 131_072) == context else 2)


@pytest.mark.parametrize(
    "loaded", ["1e999", "-1", "true", "4096.5", '"8192"', "null", "1" + "0" * 30, "9" * 5000, "[]"]
)
def test_a_context_that_no_model_has_is_not_taken(loaded: str) -> None:
    with endless_server(f'{{"models": [{{"name": "{LLAMA}", "context_length": {loaded}}}]}}'.encode()) as url:
        assert ChatModel(OllamaServer(url, 5.0), LLAMA, largest=131072).context_for(3000) == 4096


def test_an_endless_list_of_loaded_models_is_ignored() -> None:
    with endless_server(b"[" * 200_000) as url:
        assert OllamaServer(url, 5.0).loaded_context(LLAMA) == 0


@pytest.mark.parametrize("garbage", ["html", "json", "list"])
def test_without_a_loaded_context_the_smallest_is_requested(
    ollama_server: OllamaStandIn, opened: Open, garbage: Any
) -> None:
    model = opened()
    list(model.stream("", "Why?", context=16384, longest=32))
    assert model.context_for(3000) == 16384
    ollama_server.faults.paths, ollama_server.faults.garbage = ("/api/ps",), garbage
    assert model.context_for(3000) == 4096
    assert replace(model, server=OllamaServer(closed_url(), 5.0)).context_for(3000) == 4096


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SSL_CERT_FILE", "/gone/cert.pem"), ("SSL_CERT_DIR", "/gone"), ("ALL_PROXY", "socks5://127.0.0.1:9"),
        ("http_proxy", "gopher://x"), ("OLLAMA_HOST", "\"{}\""), ("OLLAMA_HOST", " '{} ' "),
        ("SSLKEYLOGFILE", "/gone/keys"), ("OLLAMA_API_KEY", "ключ"),
    ],
)  # fmt: skip
def test_the_environment_stops_no_request(ollama_server: OllamaStandIn, name: str, value: str) -> None:
    ollama_server.reply = lambda messages: "Because."
    code = (
        "import os; from folio.models.ollama import OllamaServer, base_url;"
        " from folio.models.chat_model import ChatModel;"
        f" before = dict(os.environ); server = OllamaServer(base_url({value.format(ollama_server.url[7:])!r}"
        f" if {name == 'OLLAMA_HOST'} else {ollama_server.url!r}), 5.0);"
        f" print(ChatModel.open(server, {LLAMA!r}).write('', 'Why?', context=4096, longest=9));"
        " assert os.environ == before"
    )
    environment = os.environ | {name: value.format(ollama_server.url[7:])}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("Because.\n", "")
