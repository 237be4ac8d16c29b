"""The Ollama server as Folio sees it: its address, its models, its errors."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from time import monotonic
from typing import Any

import httpx
import ollama
import pytest
from langchain_ollama import ChatOllama

from folio.errors import (
    CloudModel,
    ContextTooSmall,
    ModelError,
    ModelFailed,
    ModelMissing,
    ModelServerError,
    UsageError,
    WrongModel,
)
from folio.models.model_server import Capability, ModelInfo, is_local
from folio.models.ollama import OllamaServer, base_url, client_kwargs, modelfile_digests
from folio.models.server_errors import broke_off, is_transient, translate
from tests.helpers.ollama_models import KILLED, LLAMA, MINILM, NOMIC, VERSION, Model
from tests.helpers.ollama_server import OllamaStandIn, closed_url

URL = "http://127.0.0.1:11434"


@pytest.mark.parametrize(
    ("hosts", "url"),
    [
        (("", " 127.0.0.1 ", "0.0.0.0", "http://0.0.0.0:11434/"), "http://127.0.0.1:11434"),
        (('"localhost"', " 'localhost ' ", '" localhost"', "“localhost”\n"), "http://localhost:11434"),
        (("localhost:11500",), "http://localhost:11500"),
        ((":11500",), "http://127.0.0.1:11500"),
        (("0.0.0.0:80",), "http://127.0.0.1:80"),
        (("[::]", "::", "::1"), "http://[::1]:11434"),
        (("[::1]:11500",), "http://[::1]:11500"),
        (("http://example.com",), "http://example.com:80"),
        (("https://example.com", "HTTPS://Example.com"), "https://example.com:443"),
        (("https://example.com:8443/ollama/",), "https://example.com:8443/ollama"),
        (("my_host.lan/path/to",), "http://my_host.lan:11434/path/to"),
    ],
)
def test_base_url(hosts: tuple[str, ...], url: str) -> None:
    assert [base_url(host) for host in (*hosts, url)] == [url] * (len(hosts) + 1)


@pytest.mark.parametrize(
    "host", ["", "1.2.3.4", "1.2.3.4:5678", "http://1.2.3.4", "https://host/path", "host:1/path/", "[::1]:56"]
)
def test_base_url_agrees_with_the_ollama_client(host: str) -> None:
    with ollama.Client(host) as client, ollama.Client(base_url(host)) as ours:
        assert ours._client.base_url == client._client.base_url


@pytest.mark.parametrize(
    "host",
    ["ftp://host", "host:port", "host:70000", "a b", "http://me:secret@host", "host?x=1", "host#x", "[::1", "h/a b"],
)
def test_a_bad_host_is_a_usage_error(host: str) -> None:
    with pytest.raises(UsageError, match="OLLAMA_HOST is"):
        base_url(host)


def test_is_local() -> None:
    here = ("http://127.0.0.1:11434", "http://127.8.0.1:1", "http://[::1]:11434", "https://localhost:443/x")
    assert all(map(is_local, here))
    assert not any(map(is_local, ("http://192.168.1.4:11434", "http://localhost.example.com:11434")))


def test_the_version_tells_whether_a_server_is_there(ollama_server: OllamaStandIn) -> None:
    server = OllamaServer(ollama_server.url)
    assert server.version() == VERSION
    assert OllamaServer(closed_url()).version() is None
    ollama_server.faults.paths = ("/api/version",)
    for garbage in ("html", "json", "list"):
        ollama_server.faults.garbage = garbage
        assert server.version() is None


def test_models_and_their_full_names(ollama_server: OllamaStandIn) -> None:
    server = OllamaServer(ollama_server.url)
    assert list(server.models()) == ["llama3.1:8b", "nomic-embed-text:latest", "gpt-oss:120b-cloud"]
    assert server.models()["llama3.1:8b"] == LLAMA.digest
    digest = ollama_server.models["nomic-embed-text:latest"].digest
    for name in ("nomic-embed-text", "nomic-embed-text:latest", "Nomic-Embed-Text"):
        assert server.resolve(name) == ("nomic-embed-text:latest", digest)
    with pytest.raises(ModelMissing, match=r"does not have the model llama3\.1") as missing:
        server.resolve("llama3.1")
    assert missing.value.remedy == "Get it with `ollama pull llama3.1`."
    with pytest.raises(ModelServerError, match=r"No Ollama server answers at http://127\.0\.0\.1") as down:
        OllamaServer(closed_url()).resolve("llama3.1:8b")
    assert "`ollama serve`" in down.value.remedy
    assert "LLM=builtin" in down.value.remedy


BGE = replace(MINILM, name="bge-m3:latest", weights=("bge",))
FAR = replace(LLAMA, name="helper:latest", remote_host="https://far.example")


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What another test's server told of its models is forgotten."""
    monkeypatch.setattr("folio.models.ollama._CAN_CHAT", {})


def test_chat_models_are_those_that_can_complete(ollama_server: OllamaStandIn) -> None:
    ollama_server.models |= {model.name: model for model in (BGE, MINILM, FAR)}
    for number in range(30):
        ollama_server.models[f"m{number:02}:latest"] = replace(LLAMA, name=f"m{number:02}:latest")
    server = OllamaServer(ollama_server.url)
    offered = ["llama3.1:8b", *[f"m{number:02}:latest" for number in range(30)]]
    assert server.chat_models() == offered
    assert len(ollama_server.bodies("/api/show")) == 35  # no cloud model is asked about
    assert OllamaServer(ollama_server.url).chat_models() == offered
    assert len(ollama_server.bodies("/api/show")) == 35  # what is known of a digest stays so
    ollama_server.models["m00:latest"] = replace(MINILM, name="m00:latest")
    assert server.chat_models() == [name for name in offered if name != "m00:latest"]
    assert len(ollama_server.bodies("/api/show")) == 36


def test_many_chat_models_are_asked_about_at_once(ollama_server: OllamaStandIn) -> None:
    for number in range(30):
        ollama_server.models[f"m{number:02}:latest"] = replace(LLAMA, name=f"m{number:02}:latest")
    ollama_server.faults.paths, ollama_server.faults.first_byte_s = ("/api/show",), 0.5
    began = monotonic()
    assert len(OllamaServer(ollama_server.url).chat_models()) == 31
    assert monotonic() - began < 0.5 * 32 / 2  # one after the other would take all of that


def test_chat_models_of_an_old_server_are_recognised_by_name(ollama_server: OllamaStandIn) -> None:
    ollama_server.version = "0.6.3"
    server = OllamaServer(ollama_server.url)
    assert server.chat_models() == ["llama3.1:8b"]
    ollama_server.models[BGE.name] = BGE
    assert server.chat_models() == ["bge-m3:latest", "llama3.1:8b"]
    ollama_server.version = VERSION  # the server is updated
    assert server.chat_models() == ["llama3.1:8b"]


def test_a_model_whose_description_fails_hides_no_other(ollama_server: OllamaStandIn) -> None:
    ollama_server.models[BGE.name] = BGE
    ollama_server.faults.paths, ollama_server.faults.fails = ("/api/show",), 3
    server = OllamaServer(ollama_server.url)
    assert server.chat_models() == ["bge-m3:latest", "llama3.1:8b"]  # by their names
    assert server.chat_models() == ["llama3.1:8b"]


def test_describe(ollama_server: OllamaStandIn) -> None:
    server = OllamaServer(ollama_server.url)
    ollama_server.models[MINILM.name] = MINILM
    chats, embeds = frozenset({"completion", "tools"}), frozenset({"embedding"})
    assert server.describe("llama3.1:8b") == ModelInfo(
        "llama3.1:8b", LLAMA.digest, 131072, 4096, "", None, LLAMA.blobs[0], chats
    )
    assert server.describe("all-minilm") == ModelInfo(
        "all-minilm:latest", MINILM.digest, 512, 384, "", 256, MINILM.blobs[0], embeds
    )
    assert server.describe("gpt-oss:120b-cloud").remote == "https://ollama.com:443"
    ollama_server.version = "0.6.3"
    assert server.describe("llama3.1:8b").capabilities is None


@pytest.mark.parametrize("said", ["1e999", '"much"', "true", "-5", "1" + "0" * 30, "0", "[4096]"])
def test_a_length_that_no_model_has_is_not_known(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    details = f'{{"general.architecture": "a", "a.context_length": {said}, "a.embedding_length": {said}}}'
    shown = json.loads(f'{{"model_info": {details}, "parameters": "num_ctx {"9" * 40}"}}')
    server = OllamaServer("http://127.0.0.1:9", 1.0)
    monkeypatch.setattr(OllamaServer, "models", lambda self: {"m:latest": "d"})
    monkeypatch.setattr(OllamaServer, "_show", lambda self, name: shown)
    info = server.describe("m")
    assert (info.context_length, info.embedding_length, info.num_ctx) == (None, None, None)


def test_weights_are_identified_by_their_digests(ollama_server: OllamaStandIn) -> None:
    server = OllamaServer(ollama_server.url)

    def described(model: Model) -> tuple[str, str]:
        ollama_server.models["m:latest"] = replace(model, name="m:latest")
        found = server.describe("m")
        return found.digest, found.weights

    digest, weights = described(NOMIC)
    assert re.fullmatch("[0-9a-f]{64}", weights)
    other_digest, same_weights = described(replace(NOMIC, parameters="num_ctx 512"))
    assert (other_digest != digest, same_weights) == (True, weights)
    assert described(replace(NOMIC, weights=("v2",)))[1] != weights
    with_adapter = described(replace(NOMIC, weights=("v1", "adapter")))[1]
    assert with_adapter.split("+")[0] == weights
    assert len(with_adapter.split("+")) == 2


@pytest.mark.parametrize(
    ("modelfile", "weights"),
    [
        ("", []),
        ("# FROM /models/blobs/sha256-{0}\nFROM llama3.1:8b\n", []),
        ("FROM /models/blobs/sha256-{0}\nFROM /models/blobs/sha256-{1}\nTEMPLATE x\n", [0, 1]),
        ("FROM /models/blobs/sha256-{0}\r\nADAPTER /models/blobs/sha256-{1}\r\n", [0, 1]),
        ('FROM "C:\\Users\\A B\\.ollama\\models\\blobs\\sha256-{0}"\n', [0]),
        ('FROM /m/sha256-{0}\nLICENSE """\nFROM the sha256-{1} of\nFROM NOW ON\n"""\n', [0]),
    ],
)
def test_weights_in_a_modelfile(modelfile: str, weights: list[int]) -> None:
    digests = ["a" * 64, "b" * 64]
    assert modelfile_digests(modelfile.format(*digests)) == [digests[number] for number in weights]


@pytest.mark.parametrize(
    ("model", "capability", "happened", "remedy"),
    [
        ("llama3.1:8b", "embedding", "llama3.1:8b is not an embedding model", "nomic-embed-text"),
        ("nomic-embed-text", "completion", "nomic-embed-text cannot write text", "llama3.1:8b"),
    ],
)
def test_a_model_for_something_else_is_refused(
    ollama_server: OllamaStandIn, model: str, capability: Capability, happened: str, remedy: str
) -> None:
    server = OllamaServer(ollama_server.url)
    with pytest.raises(WrongModel) as caught:
        server.require_local(model, capability)
    assert caught.value.happened.startswith(happened)
    assert remedy in caught.value.remedy
    ollama_server.version = "0.6.3"
    assert server.require_local(model, capability).name.startswith(model)


def test_a_cloud_model_is_refused_by_name_without_a_request(ollama_server: OllamaStandIn) -> None:
    server = OllamaServer(ollama_server.url)
    for name in ("gpt-oss:120b-cloud", "glm-4.6:cloud", "GLM-4.6:Cloud", "some-cloud", "some-cloud:latest"):
        with pytest.raises(CloudModel, match="would send the papers' text to another computer"):
            server.require_local(name, "completion")
        with pytest.raises(CloudModel):
            server.pull(name, lambda *_: None)
    assert ollama_server.requests == []


def test_a_cloud_model_under_another_name_is_refused(ollama_server: OllamaStandIn) -> None:
    ollama_server.models["helper:latest"] = replace(LLAMA, name="helper:latest", remote_host="https://far.example")
    server = OllamaServer(ollama_server.url)
    with pytest.raises(CloudModel, match=r"https://far\.example"):
        server.require_local("helper", "completion")
    assert server.require_local("llama3.1:8b", "completion").name == "llama3.1:8b"


def test_pull(ollama_server: OllamaStandIn) -> None:
    server = OllamaServer(ollama_server.url)
    seen: list[tuple[str, int, int]] = []
    server.pull("all-minilm", lambda *step: seen.append(step))
    label = f"pulling {MINILM.digest[:12]}"
    assert seen == [
        ("pulling manifest", 0, 0),
        (label, 0, 1024),
        (label, 512, 1024),
        (label, 1024, 1024),
        ("verifying sha256 digest", 0, 0),
        ("success", 0, 0),
    ]
    assert server.resolve("all-minilm") == ("all-minilm:latest", MINILM.digest)
    with pytest.raises(ModelError, match="could not download no-such: pull model manifest: file does not exist"):
        server.pull("no-such", lambda *_: None)
    ollama_server.faults.paths = ("/api/pull",)
    for fault in ("end_after", "break_after"):
        setattr(ollama_server.faults, fault, 2)
        with pytest.raises(ModelServerError, match="broke off"):
            server.pull("all-minilm", lambda *_: None)
    ollama_server.faults.busy = 1
    with pytest.raises(ModelServerError, match="busy"):
        server.pull("all-minilm", lambda *_: None)


def test_only_the_configured_host_is_contacted_without_a_key(
    ollama_server: OllamaStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OllamaStandIn() as other:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, other.url)
        monkeypatch.setenv("OLLAMA_API_KEY", "secret")
        chat = ChatOllama(model="llama3.1:8b", base_url=ollama_server.url, client_kwargs=client_kwargs(5))
        chat.invoke("?")
        OllamaServer(ollama_server.url).describe("llama3.1:8b")
        assert len(ollama_server.requests) == 3
        assert [r for r in ollama_server.requests if "authorization" in r.headers] == []
        ollama_server.faults.paths = ("/api/chat", "/api/tags")
        ollama_server.faults.redirect_to = other.url
        with pytest.raises(ModelServerError, match="redirects to another address"):
            OllamaServer(ollama_server.url).models()
        with pytest.raises(ollama.ResponseError) as caught:
            chat.invoke("?")
        assert "redirects" in translate(caught.value, "llama3.1:8b", ollama_server.url).happened
        assert other.requests == []


def ask(url: str, stream: bool = True, timeout_s: float = 60) -> Exception:
    """What the real chat client raises."""
    with ollama.Client(url, **client_kwargs(timeout_s)) as client:
        try:
            list(client.chat("llama3.1:8b", [{"role": "user", "content": "?"}], stream=stream))
        except Exception as error:
            return error
    pytest.fail("the client raised nothing")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("fault", "value", "kind", "happened", "passes"),
    [
        ("busy", 1, ModelFailed, "is busy with other requests", True),
        ("fails", 1, ModelFailed, "could not keep llama3.1:8b running", True),
        ("dropped", 1, ModelFailed, "broke off in the middle", True),
        ("first_byte_s", 5, ModelServerError, "was silent for too long", False),
        ("models", None, ModelMissing, "does not have the model llama3.1:8b", False),
        *(
            ("garbage", garbage, ModelServerError, "did not answer like an Ollama", False)
            for garbage in ("html", "json", "list")
        ),
    ],
)
def test_errors_of_the_real_client_are_translated(
    ollama_server: OllamaStandIn,
    stream: bool,
    fault: str,
    value: Any,
    kind: type[ModelError],
    happened: str,
    passes: bool,
) -> None:
    if fault == "models":
        ollama_server.models.clear()
    else:
        setattr(ollama_server.faults, fault, value)
    error = ask(ollama_server.url, stream, 0.2 if fault == "first_byte_s" else 60)
    translated = translate(error, "llama3.1:8b", ollama_server.url)
    assert type(translated) is kind
    assert happened in translated.happened
    assert translated.remedy.endswith(".")
    assert is_transient(error) is passes


def test_a_stream_that_breaks(ollama_server: OllamaStandIn) -> None:
    ollama_server.reply = ["one two three"] * 2
    for fault, happened in (("break_after", broke_off("m", URL).happened), ("error_after", "could not keep m running")):
        setattr(ollama_server.faults, fault, 1)
        error = ask(ollama_server.url)
        assert happened in translate(error, "m", URL).happened
        assert is_transient(error)
        setattr(ollama_server.faults, fault, None)


@pytest.mark.parametrize("stream", [True, False])
def test_a_server_that_is_down(stream: bool) -> None:
    error = ask(closed_url(), stream)
    assert type(error) is (httpx.ConnectError if stream else ConnectionError)
    assert translate(error, "m", URL).happened == f"No Ollama server answers at {URL}."
    assert is_transient(error)


@pytest.mark.parametrize(
    ("error", "kind", "happened", "passes"),
    [
        (ollama.ResponseError('{"error": "the input length exceeds the context length"}', 400), ContextTooSmall,
         "The text is longer than the context of m: the input length exceeds the context length.", False),
        (ollama.ResponseError("exceeds the context length", 500), ContextTooSmall, "longer than the context", False),
        (ollama.ResponseError("404 page not found", 404), ModelServerError, "with status 404 for m: 404", False),
        (ollama.ResponseError("strange", -1), ModelFailed, "reported an error for m: strange.", True),
        (ollama.ResponseError("strange", 500), ModelFailed, "responded with status 500 for m: strange.", True),
        (ollama.ResponseError(KILLED, -1), ModelFailed, "stopped while it was running m: unexpected EOF.", True),
        (ollama.ResponseError("unexpected EOF", 500), ModelFailed, "stopped while it was running m: un", True),
        (ollama.ResponseError("invalid JSON schema in format", 500), ModelServerError, "invalid JSON schema", False),
        (ollama.ResponseError('option "num_ctx" must be of type integer', 500), ModelServerError, "num_ctx", False),
        (ollama.ResponseError("", 502), ModelServerError, "responded with status 502 for m: no reason given.", True),
        (ollama.ResponseError("x\n" * 500, 418), ModelServerError, "x x x…", False),
        (httpx.ConnectTimeout("slow"), ModelServerError, "No Ollama server answers", True),
        (ConnectionResetError("reset"), ModelFailed, "broke off", True),
        (RuntimeError("odd"), ModelServerError, "failed: RuntimeError: odd.", False),
        (CloudModel("a", "b"), CloudModel, "a", False),
    ],
)  # fmt: skip
def test_other_errors(error: Exception, kind: type[ModelError], happened: str, passes: bool) -> None:
    translated = translate(error, "m", URL)
    assert type(translated) is kind
    assert happened in translated.happened
    # Where Ollama itself has answered, its address is right.
    answered = isinstance(error, ollama.ResponseError) and error.status_code in (-1, 400, 500, 503)
    assert not (answered and "OLLAMA_HOST" in translated.remedy)
    assert is_transient(error) is passes
