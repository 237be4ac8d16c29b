"""A server on the loopback in place of arXiv, OpenAlex, Semantic Scholar, Crossref and Unpaywall; it can misbehave."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit


@dataclass
class Answer:
    """What the server sends once."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    length: int | None = None  # the Content-Length, if it lies; -1 for none
    is_silent: bool = False  # never sends a byte
    drips: bool = False  # sends a byte now and then, without end


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    path: str  # decoded
    parameters: dict[str, str]
    headers: dict[str, str]  # names in lower case


def json_answer(value: Any, **more: Any) -> Answer:
    return Answer(json.dumps(value).encode(), headers={"Content-Type": "application/json"}, **more)


class SourceServer:
    """Serves what `add` gives it, and 404 for the rest. Use it as a context manager."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._answers: dict[str, list[tuple[dict[str, str], list[Answer]]]] = {}
        self._closing = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server._serve(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def add(self, path: str, *answers: Answer, parameters: Mapping[str, str] | None = None) -> None:
        """Answer a path, decoded, one after the other; the last one again and again. The newest that fits counts.

        parameters: what the request must have, besides others.
        """
        self._answers.setdefault(path, []).insert(0, (dict(parameters or {}), list(answers)))

    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        asked = Asked(
            unquote(parts.path),
            dict(parse_qsl(parts.query, keep_blank_values=True)),
            {name.lower(): value for name, value in handler.headers.items()},
        )
        self.asked.append(asked)
        try:
            self._send(handler, self._answer(asked))
        except ConnectionError:  # the client has heard enough
            handler.close_connection = True

    def _answer(self, asked: Asked) -> Answer:
        for parameters, answers in self._answers.get(asked.path, ()):
            if parameters.items() <= asked.parameters.items():
                return answers.pop(0) if len(answers) > 1 else answers[0]
        return Answer(b"Resource not found.", 404)

    def _send(self, handler: BaseHTTPRequestHandler, answer: Answer) -> None:
        handler.close_connection = True
        if answer.is_silent:
            self._closing.wait(30)
            return
        handler.send_response(answer.status)
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        if answer.length != -1 and answer.status != 304:
            handler.send_header("Content-Length", str(len(answer.body) if answer.length is None else answer.length))
        handler.end_headers()
        handler.wfile.write(answer.body)
        while answer.drips and not self._closing.wait(0.05):
            handler.wfile.write(b"x")
            handler.wfile.flush()

    def __enter__(self) -> SourceServer:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()


class FakeClock:
    """A clock that only `sleep` moves."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.time = now
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
