"""Servers with OpenAI's API: what they differ in, what they refuse, and what the environment may not do."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from config import Settings
from folio.answer.parser import schema
from folio.app import App
from folio.errors import (
    CloudModel,
    ContextTooSmall,
    ModelError,
    ModelFailed,
    ModelMissing,
    ModelServerError,
    StoreMismatch,
    UsageError,
    WrongModel,
)
from folio.models.chat_model import STOPPED, TRIES, ChatModel
from folio.models.model_server import THOUGHT
from folio.models.openai_server import OpenAIServer, Ways, server_url
from folio.models.server_embedder import ServerEmbedder, known_prefixes
from folio.store.fingerprint import differences
from folio.store.indexes import require_same
from tests.helpers.endless_server import endless_server
from tests.helpers.ollama_models import LLAMA, NOMIC, QWEN3, Json, Scripted
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.openai_server import CHAT, EMBED, OpenAIStandIn
from tests.helpers.paths import ROOT

MODEL = LLAMA.name
SHAPE = schema(12, "plain")


@pytest.fixture
def stand_in() -> Any:
    with OpenAIStandIn(dimension=64) as server:
        yield server


def server_of(stand_in: OllamaStandIn, **options: Any) -> OpenAIServer:
    return OpenAIServer(f"{stand_in.url}/v1", 5.0, **options)


def chats(stand_in: OpenAIStandIn) -> list[Json]:
    return [each.body for each in stand_in.requests if each.path == CHAT]


def write(model: ChatModel, **options: Any) -> str:
    return model.write("Be brief.", "Why?", context=model.context_for(400), longest=100, **options)


# Addresses


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("127.0.0.1:8080", "http://127.0.0.1:8080/v1"),
        ("http://localhost:8080/", "http://localhost:8080/v1"),
        ("https://127.0.0.1/v1/", "https://127.0.0.1:443/v1"),
        ("0.0.0.0:8000/api/v3", "http://127.0.0.1:8000/api/v3"),
        ("[::1]", "http://[::1]:1234/v1"),
    ],
)
def test_an_address_without_a_path_gets_v1(address: str, url: str) -> None:
    assert server_url(address, allow_remote=False) == url


@pytest.mark.parametrize("address", ["https://api.openai.com/v1", "192.168.1.7:1234", "http://127.0.0.1.example.org"])
def test_another_computer_has_to_be_allowed(address: str) -> None:
    with pytest.raises(UsageError, match=r"OPENAI_BASE_URL is .*, another computer") as caught:
        server_url(address, allow_remote=False)
    assert "ALLOW_REMOTE_OLLAMA=true" in caught.value.remedy
    assert server_url(address, allow_remote=True)


@pytest.mark.parametrize("address", ["http://user:key@127.0.0.1:80/v1", "ftp://127.0.0.1", "127.0.0.1:80?x=1"])
def test_an_address_with_a_password_is_none(address: str) -> None:
    with pytest.raises(UsageError, match=r"OPENAI_BASE_URL is .*, which is not a server address"):
        server_url(address, allow_remote=True)


# What servers refuse


@pytest.mark.parametrize("status", [400, 422, 500])
@pytest.mark.parametrize("kinds", [("json_schema", "json_object"), ("json_object",), ("json_schema",), ()])
def test_a_schema_is_sent_in_the_way_that_the_server_takes(
    stand_in: OpenAIStandIn, kinds: tuple[str, ...], status: int
) -> None:
    stand_in.habits.schema, stand_in.habits.refusal = kinds, status
    stand_in.reply = ["It is the ice."] * 2
    model = ChatModel.open(server_of(stand_in), MODEL)
    replies = [write(model, shape=SHAPE) for _ in range(2)]
    assert all(("statements" in reply) == bool(kinds) for reply in replies)
    asked = [(body.get("response_format") or {}).get("type") for body in chats(stand_in)]
    tried = ["json_schema", "json_object", None]
    taken = kinds[0] if kinds else None
    assert asked == [*tried[: tried.index(taken) + 1], taken]  # what is refused once is not sent again


def test_a_schema_may_be_refused_within_a_stream(stand_in: OpenAIStandIn) -> None:
    refused = Scripted(ending="error", error="failed to parse grammar")
    stand_in.reply, stand_in.ignores_format = [refused, refused, "It is the ice."], True
    model = ChatModel.open(server_of(stand_in), MODEL)
    assert write(model, shape=SHAPE) == "It is the ice."
    assert ["response_format" in body for body in chats(stand_in)] == [True, True, False]


def test_a_schema_has_no_lengths(stand_in: OpenAIStandIn) -> None:
    stand_in.reply = ["It is the ice."]
    write(ChatModel.open(server_of(stand_in), MODEL), shape=SHAPE)
    (body,) = chats(stand_in)
    assert "Length" not in json.dumps(body["response_format"])
    assert (body["max_tokens"], body["temperature"]) == (100, 0)


@pytest.mark.parametrize(("habit", "requests"), [("given", 1), ("ignored", 1), ("refused", 3)])
def test_log_probabilities(stand_in: OpenAIStandIn, habit: Any, requests: int) -> None:
    stand_in.habits.logprobs = habit
    stand_in.reply = [Scripted("no", (("yes", -2.5), ("no", -0.25)))] * 2
    model = ChatModel.open(server_of(stand_in), MODEL)
    token = model.first_token("", "Why?", context=8192)
    assert len(chats(stand_in)) == requests
    assert token.alternatives == ((("no", -0.25), ("yes", -2.5)) if habit == "given" else ())
    assert token.yes == pytest.approx(0.095 if habit == "given" else 0.0, abs=0.001)
    model.first_token("", "Why?", context=8192)
    assert len(chats(stand_in)) == requests + 1


@pytest.mark.parametrize("field", ["repeat_penalty", "stream_options", "chat_template_kwargs"])
@pytest.mark.parametrize("status", [400, 422])
def test_an_unknown_field_is_left_out(stand_in: OpenAIStandIn, field: str, status: int) -> None:
    stand_in.habits.refuses, stand_in.habits.refusal = (field,), status
    stand_in.reply = ["Because."] * 2
    model = ChatModel.open(server_of(stand_in), MODEL)
    assert [write(model) for _ in range(2)] == ["Because."] * 2
    assert [field in body for body in chats(stand_in)] == [True, False, False]


def test_a_refusal_without_a_reason_leaves_out_one_thing_after_the_other() -> None:
    request: Any = type("Request", (), {"shape": SHAPE, "top_logprobs": 20})
    ways, seen = Ways(), []
    while fewer := ways.fewer(request, "bad request"):
        ways = fewer
        seen.append((ways.penalty, ways.usage, ways.logprobs, ways.schema))
    assert seen == [
        (False, True, (20, 5), ("json_schema", "json_object")),
        (False, False, (20, 5), ("json_schema", "json_object")),
        (False, False, (5,), ("json_schema", "json_object")),
        (False, False, (), ("json_schema", "json_object")),
        (False, False, (), ("json_object",)),
        (False, False, (), ()),
    ]


def test_a_request_that_is_wrong_anyway_gives_the_first_error(stand_in: OpenAIStandIn) -> None:
    stand_in.reply = [Scripted(refused=400, error="the first reason")] + [Scripted(refused=400, error="another")] * 9
    server = server_of(stand_in)
    with pytest.raises(ModelServerError, match=r"status 400 for llama3\.1:8b: the first reason"):
        write(ChatModel.open(server, MODEL))
    assert server.ways == {}


# Thinking


@pytest.mark.parametrize("way", ["reasoning_content", "reasoning", "content"])
def test_a_thought_is_known_wherever_it_comes(stand_in: OpenAIStandIn, way: Any) -> None:
    stand_in.habits.thought = way
    stand_in.models["q:1"] = replace(QWEN3, name="q:1", takes_levels_only=True, thought="Hm, why is it so? " * 20)
    stand_in.reply = ["Because."] * 2
    model = ChatModel.open(server_of(stand_in), "q:1")
    pieces = list(model.stream("", "Why?", context=8192, longest=30))
    assert "".join(str(piece.content) for piece in pieces).strip() == "Because."
    assert any(THOUGHT in piece.additional_kwargs for piece in pieces)
    first, second = chats(stand_in)
    assert first["chat_template_kwargs"] == {"enable_thinking": False}
    assert (second["reasoning_effort"], second["max_tokens"]) == ("low", 30 + 2048)


def test_a_thought_whose_beginning_is_in_the_template_is_learnt(stand_in: OpenAIStandIn) -> None:
    stand_in.habits.thought, stand_in.habits.opens_thought = "content", False
    stand_in.models["q:1"] = replace(QWEN3, name="q:1", takes_levels_only=True, thought="Hm, why is it so? Because.")
    stand_in.reply = ["It is so."] * 2
    model = ChatModel.open(server_of(stand_in), "q:1")
    list(model.stream("", "Why?", context=8192, longest=300))
    assert model.thinking.is_begun
    pieces = list(model.stream("", "Why?", context=8192, longest=300))
    assert "".join(str(piece.content) for piece in pieces).strip() == "It is so."


# The context


@pytest.mark.parametrize(
    ("told", "setting", "largest"),
    [("props", 0, 6000), ("list", 0, 6000), ("studio", 0, 6000), ("", 0, 4096), ("", 9000, 9000), ("props", 5000, 5000),
     ("props", 9000, 6000)],
)  # fmt: skip
def test_the_context_is_told_or_set(stand_in: OpenAIStandIn, told: Any, setting: int, largest: int) -> None:
    stand_in.habits.tells_context, stand_in.habits.context = told, 6000
    model = ChatModel.open(server_of(stand_in, context=setting), MODEL)
    assert (model.largest, model.context_for(100)) == (largest, largest)


@pytest.mark.parametrize("counts", ["/tokenize", "/extras/tokenize/count"])
def test_a_prompt_is_counted_before_it_is_sent(stand_in: OpenAIStandIn, counts: Any) -> None:
    stand_in.habits.counts, stand_in.habits.cuts = counts, True
    model = ChatModel.open(server_of(stand_in), MODEL)
    with pytest.raises(ContextTooSmall, match="The prompt has 9,164 tokens"):
        model.write("", "a " * 7000, context=8192, longest=32)
    assert chats(stand_in) == []
    stand_in.reply = ["Because."]
    assert model.write("", "word. " * 4000, context=8192, longest=32) == "Because."  # its estimate is too high
    assert stand_in.cut == []


def test_a_prompt_that_was_cut_in_silence_is_an_error(stand_in: OpenAIStandIn) -> None:
    stand_in.habits = replace(stand_in.habits, counts="", cuts=True, tells_context="", context=2000)
    stand_in.reply = ["Because."] * 2
    model = ChatModel.open(server_of(stand_in, context=8192), MODEL)  # the person's setting is wrong
    with pytest.raises(ContextTooSmall, match=r"read only 2,000 of at least 3,00\d tokens") as caught:
        model.write("", "word " * 3000, context=8192, longest=32)
    assert "OPENAI_CONTEXT" in caught.value.remedy
    assert stand_in.cut


def test_a_stream_that_ends_without_a_word_is_asked_why(stand_in: OpenAIStandIn) -> None:
    stand_in.habits = replace(stand_in.habits, counts="", tells_context="", context=2000, is_silent=True)
    model = ChatModel.open(server_of(stand_in), MODEL)
    with pytest.raises(ContextTooSmall) as caught:
        model.write("", "word " * 2500, context=4096, longest=32)
    assert caught.value.remedy.startswith("Set OPENAI_CONTEXT to the context")


# Failures


@pytest.mark.parametrize(
    ("fault", "value", "kind", "happened", "requests"),
    [
        ("busy", 9, ModelFailed, "is busy with other requests", TRIES),
        ("fails", 9, ModelFailed, "could not keep llama3.1:8b running", TRIES),
        ("dropped", 9, ModelFailed, "broke off in the middle", TRIES),
        ("error_after", 0, ModelFailed, "could not keep llama3.1:8b running", TRIES),
        ("error_after", 1, ModelFailed, "could not keep llama3.1:8b running", 1),
        ("break_after", 1, ModelFailed, "broke off in the middle", 1),
        ("redirect_to", "http://127.0.0.1:9", ModelServerError, "redirects to another address", 1),
    ],
)
def test_failures(
    stand_in: OpenAIStandIn, fault: str, value: Any, kind: type[ModelError], happened: str, requests: int
) -> None:
    stand_in.reply = ["Because it is so."] * 9
    model = ChatModel.open(server_of(stand_in), MODEL)
    setattr(stand_in.faults, fault, value)
    with pytest.raises(kind, match=happened) as caught:
        write(model)
    assert type(caught.value) is kind
    assert not {"Ollama", "OLLAMA_HOST"} & set(f"{caught.value.happened} {caught.value.remedy}".split())
    assert len(chats(stand_in)) == requests


def test_a_failure_that_passes_is_not_noticed(stand_in: OpenAIStandIn) -> None:
    stand_in.reply = ["Because."]
    model = ChatModel.open(server_of(stand_in), MODEL)
    stand_in.faults.busy, stand_in.faults.dropped = 1, 1
    assert write(model) == "Because."


def test_a_stream_that_stops_without_a_reason_keeps_what_came(stand_in: OpenAIStandIn) -> None:
    stand_in.reply = [Scripted("So it", ending="stopped")]
    pieces = list(ChatModel.open(server_of(stand_in), MODEL).stream("", "Why?", context=8192, longest=30))
    assert "".join(str(piece.content) for piece in pieces) == "So it"
    assert pieces[-1].response_metadata == {"done_reason": STOPPED}


def test_an_endless_list_of_models_is_no_server() -> None:
    with endless_server(b"[" * 5_000_000) as url, pytest.raises(ModelServerError, match="cannot be an OpenAI-comp"):
        OpenAIServer(f"{url}/v1", 5.0).models()


def test_a_key(stand_in: OpenAIStandIn) -> None:
    stand_in.habits.key, stand_in.reply = "sk-1", ["Because."]
    with pytest.raises(ModelServerError, match="refused the key: Incorrect API key provided") as caught:
        ChatModel.open(server_of(stand_in), MODEL)
    assert "OPENAI_API_KEY" in caught.value.remedy
    assert write(ChatModel.open(server_of(stand_in, key="sk-1"), MODEL)) == "Because."
    assert {each.headers.get("authorization") for each in stand_in.requests} == {None, "Bearer sk-1"}


# Models


def test_a_model_is_found_by_the_name_of_its_file(stand_in: OpenAIStandIn) -> None:
    stand_in.models = {name: replace(LLAMA, name=name) for name in ("/models/Qwen2.5-1.5B.gguf", "org/other")}
    server = server_of(stand_in)
    assert ChatModel.open(server, "qwen2.5-1.5b").name == "/models/Qwen2.5-1.5B.gguf"
    assert ChatModel.open(server, "other").name == "org/other"
    with pytest.raises(ModelMissing, match=r"It has /models/Qwen2\.5-1\.5B\.gguf, org/other"):
        ChatModel.open(server, "third")
    with pytest.raises(ModelMissing, match="has 2 chat models: "):
        ChatModel.open(server, "")
    del stand_in.models["org/other"]
    assert ChatModel.open(server, "").name == "/models/Qwen2.5-1.5B.gguf"


@pytest.mark.parametrize("name", ["gpt-oss:120b-cloud", "GPT-OSS:120b-Cloud"])
def test_a_cloud_model_behind_a_local_port_is_refused(stand_in: OpenAIStandIn, name: str) -> None:
    with pytest.raises(CloudModel):
        ChatModel.open(server_of(stand_in), name)
    assert chats(stand_in) == []


def test_ollama_is_asked_by_its_own_api(stand_in: OpenAIStandIn) -> None:
    stand_in.habits.is_ollama, stand_in.habits.tells_context = True, ""
    with pytest.raises(UsageError, match="is an Ollama server") as caught:
        ChatModel.open(server_of(stand_in), MODEL)
    assert f"OLLAMA_HOST={stand_in.url.removeprefix('http://')}" in caught.value.remedy


def test_a_wrong_kind_of_model_is_refused(stand_in: OpenAIStandIn) -> None:
    with pytest.raises(WrongModel, match="cannot write text"):
        ChatModel.open(server_of(stand_in), NOMIC.name)
    with pytest.raises(WrongModel, match="is not an embedding model"):
        ServerEmbedder(server_of(stand_in), MODEL, 8).embed_query("ice")
    stand_in.habits.tells_context = "studio"
    with pytest.raises(WrongModel, match="is not an embedding model"):
        ServerEmbedder(server_of(stand_in), MODEL, 8)
    per_token = b'{"object": "list", "data": [{"index": 0, "embedding": [[0.1, 0.2], [0.3, 0.4]]}]}'
    with endless_server(per_token) as url, pytest.raises(WrongModel):
        OpenAIServer(f"{url}/v1", 5.0).embed("tiny", ["ice"], 512)


def test_a_change_of_a_model_changes_its_digest(stand_in: OpenAIStandIn) -> None:
    server = server_of(stand_in)
    before = server.describe(MODEL).digest
    assert server.describe(MODEL).digest == before
    stand_in.habits.tells_context, stand_in.habits.context = "list", 5000
    assert server.describe(MODEL).digest != before


# Embedding


@pytest.mark.parametrize(
    "name",
    ["text-embedding-nomic-embed-text-v1.5", "/models/nomic-embed-text-v1.5.Q8_0.gguf", "nomic-ai/nomic-embed-text"],
)
def test_the_prefixes_of_a_model_under_the_names_that_servers_give_it(name: str) -> None:
    assert known_prefixes(name) == known_prefixes("nomic-embed-text")


def test_workers_make_the_same_embedder(stand_in: OpenAIStandIn, tmp_path: Path) -> None:
    settings: Any = {"EMBEDDER": "openai", "OPENAI_BASE_URL": stand_in.url, "VECTORSTORE_DIR": tmp_path}
    app = App(Settings(_env_file=None, **settings), pytest.fail)  # type: ignore[call-arg]
    embedder = app.new_embedder()
    (make,) = app.worker_embedders(embedder)
    assert pickle.loads(pickle.dumps(make))().identity() == embedder.identity()


def test_another_model_at_the_same_name_is_refused(stand_in: OpenAIStandIn) -> None:
    embedder = ServerEmbedder(server_of(stand_in), NOMIC.name, 8)
    made_with = embedder.identity()
    assert len(made_with["probe"].split()) == 32
    stand_in.models[NOMIC.name] = replace(NOMIC, embedding_length=60)
    other = ServerEmbedder(server_of(stand_in), NOMIC.name, 8).identity()
    assert differences(made_with, other) == ["dimension", "probe"]
    with pytest.raises(StoreMismatch):
        require_same(made_with, other)


@pytest.mark.parametrize(
    ("now", "differ"),
    [
        ("1.00 -0.50 0.25 2.00", []),
        ("1.01 -0.49 0.26 1.98", []),  # another quantisation
        ("1.00 0.50 0.25 -2.00", ["probe"]),
        ("1.00 -0.50 0.25", ["probe"]),
        ("0.00 0.00 0.00 0.00", ["probe"]),
        ("", ["probe"]),
    ],
)
def test_nearly_the_same_vectors_are_of_the_same_model(now: str, differ: list[str]) -> None:
    assert differences({"probe": "1.00 -0.50 0.25 2.00"}, {"probe": now}) == differ


@pytest.mark.parametrize("garbage", ["count", "dimension", "no list", "nan", "zero", "text", "true"])
def test_vectors_that_cannot_be_are_refused(stand_in: OpenAIStandIn, garbage: str) -> None:
    embedder = ServerEmbedder(server_of(stand_in), NOMIC.name, 8)
    assert embedder.dimension == 64
    stand_in.faults.garbage = garbage
    with pytest.raises(ModelServerError):
        embedder.embed_passages(["ice", "snow"])


def test_a_text_that_was_cut_in_silence_is_an_error(stand_in: OpenAIStandIn) -> None:
    stand_in.habits.cuts, stand_in.habits.tells_context = True, ""
    embedder = ServerEmbedder(server_of(stand_in, context=2000), NOMIC.name, 8)  # the person's setting is wrong
    stand_in.habits.context = 50
    with pytest.raises(ContextTooSmall, match="read only 50 of at least"):
        embedder.embed_passages(["a b c d " * 60])


# The environment

_ASK = """
import os
from folio.models.chat_model import ChatModel
from folio.models.openai_server import OpenAIServer
before = dict(os.environ)
model = ChatModel.open(OpenAIServer({url!r}, 5.0), {model!r})
print(model.write("", "Why?", context=4096, longest=9))
assert os.environ == before
"""


ENVIRONMENT = {
         "OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_BASE": "http://127.0.0.1:9/v1",
         "OPENAI_API_KEY": "sk-other", "OPENAI_ADMIN_KEY": "sk-admin", "OPENAI_ORG_ID": "org", "OPENAI_PROJECT_ID": "p",
         "OPENAI_ORGANIZATION": "org", "OPENAI_CUSTOM_HEADERS": "X-Mine: yes", "OPENAI_API_TYPE": "azure",
         "AZURE_OPENAI_ENDPOINT": "http://127.0.0.1:9", "OPENAI_LOG": "debug",
         "OPENAI_PROXY": "http://127.0.0.1:9", "ALL_PROXY": "socks5://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9",
         "SSL_CERT_FILE": "/gone/cert.pem", "SSLKEYLOGFILE": "/gone/keys", "LANGSMITH_GATEWAY": "true",
         "LANGSMITH_GATEWAY_API_KEY": "k", "LANGSMITH_GATEWAY_BASE_URL": "http://127.0.0.1:9",
}  # fmt: skip


def test_the_environment_diverts_no_request_and_adds_no_header(stand_in: OpenAIStandIn) -> None:
    stand_in.reply = lambda messages: "Because."
    code = _ASK.format(url=f"{stand_in.url}/v1", model=MODEL)
    ran = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | ENVIRONMENT, cwd=ROOT, capture_output=True, text=True
    )
    assert (ran.stdout, ran.stderr) == ("Because.\n", "")
    (sent,) = [each.headers for each in stand_in.requests if each.path == CHAT]
    assert set(sent) <= {"host", "accept", "accept-encoding", "connection", "content-type", "content-length",
                         "user-agent"}  # fmt: skip


def test_the_embedder_is_sent_as_numbers_and_not_in_base64(stand_in: OpenAIStandIn) -> None:
    ServerEmbedder(server_of(stand_in), NOMIC.name, 8).embed_query("ice")
    assert {each.body["encoding_format"] for each in stand_in.requests if each.path == EMBED} == {"float"}
