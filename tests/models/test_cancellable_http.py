"""Requests to Ollama: cancelled while the server is silent, their replies bounded, and errors on the way."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable
from time import monotonic, sleep

import httpcore
import httpx
import ollama
import pytest

from folio.errors import ModelError, ModelServerError
from folio.models.chat_model import ChatModel
from folio.models.ollama import OllamaServer, client_kwargs
from folio.models.server_errors import translate
from folio.models.server_http import MAX_BODY, MAX_LINE, MAX_STREAM, POLL_S, CancellableTransport
from tests.helpers.endless_server import endless_server
from tests.helpers.ollama_models import Json
from tests.helpers.ollama_server import OllamaStandIn, closed_url

CHAT: Json = {"model": "llama3.1:8b", "messages": [{"role": "user", "content": "?"}]}


class LeftError(Exception):
    """The client left."""


def chat(url: str, check_cancelled: Callable[[], None] = lambda: None, timeout_s: float = 10.0) -> list[str]:
    """The lines of a streamed reply."""
    with (
        httpx.Client(transport=CancellableTransport(check_cancelled), timeout=timeout_s, trust_env=False) as client,
        client.stream("POST", f"{url}/api/chat", json=CHAT) as response,
    ):
        return list(response.iter_lines())


def leave_after(seconds: float) -> Callable[[], None]:
    end = monotonic() + seconds

    def check_cancelled() -> None:
        if monotonic() > end:
            raise LeftError

    return check_cancelled


def test_reply_arrives_whole_and_no_connection_is_kept(ollama_server: OllamaStandIn) -> None:
    ollama_server.reply = lambda messages: "one two three"
    transport = CancellableTransport(lambda: None)
    with httpx.Client(transport=transport, trust_env=False) as client:
        ports = set()
        for _ in range(2):
            with client.stream("POST", f"{ollama_server.url}/api/chat", json=CHAT) as response:
                ports.add(response.extensions["network_stream"].get_extra_info("client_addr")[1])
                assert list(response.iter_lines())[-1].endswith("}")
    assert len(ports) == 2


def test_cancelled_while_the_server_is_silent(ollama_server: OllamaStandIn) -> None:
    ollama_server.faults.first_byte_s = 30
    started = monotonic()
    with pytest.raises(LeftError):
        chat(ollama_server.url, leave_after(0.3), timeout_s=30)
    assert monotonic() - started < 20  # the server is silent for longer


def test_cancelled_in_the_middle_of_a_reply_closes_the_connection(ollama_server: OllamaStandIn) -> None:
    ollama_server.reply = lambda messages: "one two three"
    ollama_server.faults.endless, ollama_server.faults.between_pieces_s = "nothing", 0.01
    with pytest.raises(LeftError):
        chat(ollama_server.url, leave_after(0.3))
    end = monotonic() + 10
    while not ollama_server.left and monotonic() < end:
        sleep(0.01)
    assert ollama_server.left == 1


def test_timeout_counts_the_silence_and_not_the_polls(ollama_server: OllamaStandIn) -> None:
    ollama_server.faults.first_byte_s = 30
    started = monotonic()
    with pytest.raises(httpx.ReadTimeout):
        chat(ollama_server.url, timeout_s=3 * POLL_S)
    assert monotonic() - started >= 3 * POLL_S


def test_errors_on_the_way_are_httpx_errors(ollama_server: OllamaStandIn) -> None:
    with pytest.raises(httpx.ConnectError):
        chat(closed_url())
    ollama_server.faults.dropped = 1
    with pytest.raises(httpx.RemoteProtocolError):
        chat(ollama_server.url)
    ollama_server.faults.break_after = 1
    with pytest.raises(httpx.RemoteProtocolError):
        chat(ollama_server.url)


def test_httpx_has_an_error_for_each_of_httpcore(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [kind for kind in vars(httpcore).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    kinds.remove(httpcore.ConnectionNotAvailable)  # httpcore handles it
    assert httpcore.ReadTimeout in kinds
    for kind in kinds:

        def fail(request: httpcore.Request, kind: type[Exception] = kind) -> httpcore.Response:
            raise kind("why")

        transport = CancellableTransport(lambda: None)
        monkeypatch.setattr(transport._connections, "handle_request", fail)
        with pytest.raises(getattr(httpx, kind.__name__), match="why"):
            transport.handle_request(httpx.Request("GET", "http://127.0.0.1"))


# Replies that are no Ollama server's

PIECE = b'{"message": {"role": "assistant", "content": "", "more": "%s"}}\n'
CALLS: dict[str, Callable[[OllamaServer], object]] = {
    "tags": lambda server: server.models(),
    "show": lambda server: server._show("m"),
    "pull": lambda server: server.pull("m", lambda *_: None),
    "chat": lambda server: sum(1 for _ in ChatModel(server, "m").stream("", "?", context=4096, longest=100)),
    "embed": lambda server: ollama.Client(server.url, **client_kwargs(10)).embed("m", ["text"] * 32),
}


def refusal(call: str, url: str) -> ModelError:
    """How Folio's own use of a server ends."""
    try:
        CALLS[call](OllamaServer(url, timeout_s=10))
    except Exception as error:
        return translate(error, "m", url)
    pytest.fail("nothing was raised")


@pytest.mark.parametrize(
    ("call", "sent"),
    [
        ("tags", "a reply of more than 4 MB"),
        ("show", "a reply of more than 4 MB"),
        ("pull", "a line of more than 1 MB"),
        ("chat", "a line of more than 1 MB"),
        ("embed", "a reply of more than 12 MB"),
    ],
)
def test_a_line_that_never_ends_is_left(call: str, sent: str) -> None:
    with endless_server(b'{"message": {"content": "', b"a" * 2**16) as url:
        tracemalloc.start()
        try:
            error = refusal(call, url)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert OllamaServer(url).version() is None
    assert type(error) is ModelServerError  # not one that is tried again
    assert error.happened == f"What answers at {url} cannot be an Ollama server: it sent {sent}."
    assert error.remedy == "Check that OLLAMA_HOST points to Ollama."
    assert peak < 40 * 2**20


@pytest.mark.parametrize("call", CALLS)
def test_replies_and_errors_that_never_end_are_left(call: str) -> None:
    if call == "chat":
        with endless_server(again=PIECE % (b"a" * (MAX_LINE - 100))) as url:
            assert refusal("chat", url).happened.endswith("it sent a reply of more than 8 MB.")
        assert MAX_STREAM == 8 * 2**20
    with endless_server(again=b"a" * 2**16, status=500) as url:
        assert refusal(call, url).happened.endswith("it sent a reply of more than 4 MB.")


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("status", [200, 500])
def test_a_compressed_reply_is_refused_before_it_grows(call: str, status: int) -> None:
    bomb = gzip.compress(b"a" * 2**24)
    with endless_server(bomb, status=status, headers={"Content-Encoding": "gzip"}) as url:
        error = refusal(call, url)
    assert error.happened.endswith("it sent a compressed reply, which was not requested.")


def test_no_server_is_asked_to_compress(ollama_server: OllamaStandIn) -> None:
    OllamaServer(ollama_server.url).models()
    ollama.Client(ollama_server.url, **client_kwargs(10)).embed("nomic-embed-text", "text")
    list(ChatModel(OllamaServer(ollama_server.url), "llama3.1:8b").stream("", "?", context=4096, longest=100))
    assert {request.path: request.headers["accept-encoding"] for request in ollama_server.requests} == {
        "/api/tags": "identity",
        "/api/embed": "identity",
        "/api/chat": "identity",
    }


@pytest.mark.parametrize("call", CALLS)
def test_a_reply_nested_without_end_is_no_reply(call: str) -> None:
    with endless_server(b"[" * (MAX_LINE - 1)) as url:
        error = refusal(call, url)
        assert OllamaServer(url).version() is None
    asked_for = "the list of models" if call == "tags" else "m"
    assert error.happened == f"{url} did not answer like an Ollama server when called for {asked_for}."


@pytest.mark.parametrize("call", CALLS)
def test_an_error_is_always_read_as_utf_8(call: str) -> None:
    headers = {"Content-Type": "application/json; charset=zlib"}
    with endless_server('{"error": "zu groß"}'.encode(), status=400, headers=headers) as url:
        error = refusal(call, url)
    assert "responded with status 400" in error.happened
    assert error.happened.endswith(": zu groß.")


def test_a_large_reply_of_a_real_server_arrives_whole() -> None:
    row = "[" + ",".join(["-0.0073454645"] * 4096) + "]"
    with endless_server(f'{{"model": "m", "embeddings": [{",".join([row] * 64)}]}}'.encode()) as url:
        reply = ollama.Client(url, **client_kwargs(10)).embed("m", ["text"] * 64)
    assert [len(vector) for vector in reply.embeddings] == [4096] * 64
    described = b'{"modelfile": "' + b"x" * (MAX_BODY - 100) + b'"}'
    with endless_server(described) as url:
        assert len(OllamaServer(url)._show("m")["modelfile"]) == MAX_BODY - 100
