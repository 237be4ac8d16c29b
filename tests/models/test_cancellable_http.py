"""Requests that are cancelled while the server is silent, and what httpx makes of the errors on the way."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep

import httpcore
import httpx
import pytest

from folio.models.cancellable_http import POLL_S, CancellableTransport
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
    assert monotonic() - started < 0.3 + 20 * POLL_S


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
