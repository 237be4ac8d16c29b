"""A small working Ollama server on the loopback, for tests, with everything that goes wrong with the real one.

As the fixture `ollama_server`, or:

    with OllamaStandIn(dimension=64) as server:
        server.faults.busy = 2  # the next two model calls get 503, then all is well
        server.reply = ["first answer", Scripted("no", (("no", -0.1), ("yes", -2.4))), Scripted("The", ending="cut")]
        ... ask server.url ...
        assert server.embedded() == ["search_document: text"]
"""

from __future__ import annotations

import itertools
import json
import math
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self

from tests.helpers.ollama_models import (
    NOMIC,
    CutError,
    Json,
    OllamaModels,
    RefusedError,
    Reply,
    answer_from_evidence,
    asks_whether_stated,
    tried,
    words_of,
)

# What a spoilt vector is made of
SPOILT: dict[str, object] = {
    "nan": math.nan, "zero": 0.0, "large": 1e308, "huge": 10**400, "tiny": 1e-320, "true": True, "text": "0.5",
}  # fmt: skip
STOPPED = "model runner has unexpectedly stopped, this may be due to resource limitations or an internal error"


@dataclass
class Faults:
    """What goes wrong, for requests to these paths. Settable at any time; the counts run down to 0."""

    paths: tuple[str, ...] = ("/api/embed", "/api/chat")
    busy: int = 0  # requests that get 503
    dropped: int = 0  # requests whose connection closes without an answer
    fails: int = 0  # requests that get `status`, as when a runner dies
    status: int = 500  # 400 for a runner that dies while it embeds
    first_byte_s: float = 0.0
    between_pieces_s: float = 0.0
    break_after: int | None = None  # pieces after which the connection is cut
    end_after: int | None = None  # pieces after which the stream ends in good order, but without `done`
    error_after: int | None = None  # pieces after which a line {"error": ...} comes
    garbage: str = ""  # "html", "json", "list"; of vectors "count", "dimension", "opposite", "no list", SPOILT
    redirect_to: str = ""  # a URL
    error: str = STOPPED  # the words of that line, and of a 500
    endless: Literal["", "words", "blanks", "nothing"] = ""  # what follows an answer for ever, whatever num_predict is
    ignores_truncate: bool = False  # an old server: it cuts in silence even when asked not to


@dataclass(frozen=True)
class Request:
    path: str
    body: Json
    headers: dict[str, str]  # names in lower case


def closed_url() -> str:
    """The URL of a port where nothing listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


class OllamaStandIn(OllamaModels):
    """The server, at `url` while its `with` block lasts; what it takes is explained in OllamaModels."""

    def __init__(
        self,
        dimension: int = NOMIC.embedding_length,
        reply: Reply = answer_from_evidence,
        count_tokens: Callable[[str], int] = words_of,
    ) -> None:
        super().__init__(dimension, reply, count_tokens)
        self.faults = Faults()
        self.stopping = threading.Event()
        self.left = 0  # clients that closed the connection before the end of an answer
        self._requests: list[Request] = []
        self._http = _Server(("127.0.0.1", 0), self.handler())
        self._http.stand_in = self
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    @staticmethod
    def handler() -> type[Handler]:
        """What answers a request."""
        return Handler

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._http.server_close()

    @property
    def requests(self) -> list[Request]:
        """Every request so far, in the order in which they came."""
        with self.lock:
            return list(self._requests)

    def bodies(self, path: str) -> list[Json]:
        """What was asked at a path, but for the trials of a judge."""
        return [each.body for each in self.requests if each.path == path and self.counts(each.body)]

    def counts(self, body: Json) -> bool:
        """Whether a test has to do with a request: with the trials of a judge only if the server judges badly."""
        return self.judges_badly or tried(body.get("messages") or []) is None

    @property
    def answering(self) -> list[Json]:
        """The chats that do more than ask whether the evidence states the answer."""
        return [body for body in self.bodies("/api/chat") if not asks_whether_stated(body.get("messages") or [])]

    def embedded(self) -> list[str]:
        """Every text that was sent to be embedded, in order, failed requests included."""
        inputs = (body["input"] for body in self.bodies("/api/embed"))
        return [text for given in inputs for text in ([given] if isinstance(given, str) else given)]

    def record(self, request: Request) -> None:
        with self.lock:
            self._requests.append(request)

    def take(self, fault: Literal["busy", "dropped", "fails"]) -> bool:
        """Whether this fault is due; counts it down."""
        with self.lock:
            left: int = getattr(self.faults, fault)
            setattr(self.faults, fault, max(0, left - 1))
            return left > 0

    def wait(self, seconds: float) -> None:
        """Sleeps, but not beyond the server's end."""
        if seconds:
            self.stopping.wait(seconds)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    stand_in: OllamaStandIn

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is counted; anything else is a fault of this file and is printed."""
        if isinstance(sys.exception(), ConnectionError):
            self.stand_in.left += 1
        else:
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """Ollama's API. A subclass has another, with the same faults."""

    stream_type = "application/x-ndjson"
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        self._serve({})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            body = json.loads(raw)
        except ValueError:
            self._send(400, {"error": "unexpected EOF"})
        else:
            self._serve(body)

    def do_HEAD(self) -> None:
        self._serve({})

    def log_message(self, format: str, *args: object) -> None:
        """Keeps the tests' output free of a line for each request."""

    def _serve(self, body: Json) -> None:
        stand_in, faults = self.server.stand_in, self.server.stand_in.faults
        stand_in.record(Request(self.path, body, {name.lower(): value for name, value in self.headers.items()}))
        if self._has_faults(body):
            stand_in.wait(faults.first_byte_s)
            if stand_in.take("dropped"):
                self.close_connection = True
                return
            if self._spoilt():
                return
            if faults.ignores_truncate:
                body = {**body, "truncate": True}
        try:
            self._route(body)
        except RefusedError as refused:
            self._refuse(refused)
        except CutError:
            self.close_connection = True

    def _has_faults(self, body: Json) -> bool:
        """Whether the faults concern a request: a judge's trials, which no test counts, are answered without."""
        return self.path in self.server.stand_in.faults.paths and self.server.stand_in.counts(body)

    def _refuse(self, refused: RefusedError) -> None:
        self._send(refused.status, {"error": str(refused)})

    def _spoilt(self) -> bool:
        """Whether a fault has taken the place of the answer."""
        faults = self.server.stand_in.faults
        if self.server.stand_in.take("busy"):
            self._send(503, {"error": "server busy, please try again.  maximum pending requests exceeded"})
        elif self.server.stand_in.take("fails"):
            self._send(faults.status, {"error": faults.error})
        elif faults.redirect_to:
            self._send(307, "", {"Location": faults.redirect_to + self.path})
        elif faults.garbage == "html":
            self._send(200, "<html><body>Please log in</body></html>", {"Content-Type": "text/html"})
        elif faults.garbage in ("json", "list"):
            self._send(200, '{"model": ' if faults.garbage == "json" else "[1]")
        else:
            return False
        return True

    def _route(self, body: Json) -> None:
        stand_in = self.server.stand_in
        match self.command, self.path:
            case "GET" | "HEAD", "/":
                self._send(200, "Ollama is running", {"Content-Type": "text/plain; charset=utf-8"})
            case "GET", "/api/version":
                self._send(200, {"version": stand_in.version})
            case "GET", "/api/tags":
                self._send(200, stand_in.tags())
            case "POST", "/api/show":
                self._send(200, stand_in.show(body))
            case "POST", "/api/embed":
                self._send(200, spoil_vectors(stand_in.embed(body), stand_in.faults.garbage))
            case "POST", "/api/chat":
                self._answer(stand_in.chat(body), body)
            case "POST", "/api/pull":
                self._answer(stand_in.pull(body), body)
            case "GET", "/api/ps":
                self._send(200, stand_in.running())
            case "GET", "/api/chat" | "/api/embed" | "/api/show" | "/api/pull":
                self._send(405, "405 method not allowed", {"Content-Type": "text/plain", "Allow": "POST"})
            case _:
                self._send(404, "404 page not found", {"Content-Type": "text/plain"})

    def _answer(self, parts: Iterator[Json], body: Json) -> None:
        first = next(parts, None)
        parts = itertools.chain([first] if first else [], parts)
        # Loading a model is answered with one object, whether a stream was asked for or not.
        if body.get("stream") is not False and not (first and first.get("done_reason") in ("load", "unload")):
            self._stream(parts, body)
            return
        every = list(parts)
        last = every[-1]
        if "error" in last:
            raise RefusedError(500, last["error"])
        if "message" in last:
            names = ("content", "thinking")
            text, thought = ("".join(part["message"].get(name, "") for part in every) for name in names)
            message = {"role": "assistant", "content": text, **({"thinking": thought} if thought else {})}
            last = {**last, "message": message}
        if logprobs := [each for part in every for each in part.get("logprobs", [])]:
            last = {**last, "logprobs": logprobs}
        self._send(200, last)

    def _stream(self, parts: Iterator[Json], body: Json) -> None:
        """Send the parts as they come. Raises CutError to close the connection."""
        stand_in = self.server.stand_in
        # One copy: a test may set the faults of the next request while this one is still going.
        faults = replace(stand_in.faults) if self._has_faults(body) else Faults()
        self.send_response(200)
        self.send_header("Content-Type", self.stream_type)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if faults.endless:
            parts = _without_end(parts, faults.endless, stand_in.stopping)
        for sent, part in enumerate(parts):
            if sent == faults.break_after:
                raise CutError
            if sent == faults.end_after:
                break
            if sent == faults.error_after:
                self._put({"error": faults.error}, body)
                break
            stand_in.wait(faults.between_pieces_s if sent else 0)
            self._put(part, body)
        self.wfile.write(b"0\r\n\r\n")

    def _put(self, part: Json, body: Json) -> None:
        """Send one part of a stream. body: of the request."""
        self._chunk(f"{json.dumps(part)}\n")

    def _chunk(self, text: str) -> None:
        line = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))

    def _send(self, status: int, body: Json | str, headers: dict[str, str] | None = None) -> None:
        content = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json; charset=utf-8", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _without_end(parts: Iterator[Json], kind: str, stopping: threading.Event) -> Iterator[Json]:
    """The pieces of an answer, then pieces for ever: a word each that was not said before, a blank, or nothing."""
    *pieces, last = parts
    yield from pieces
    for number in itertools.count(10_000):
        if stopping.is_set():
            return
        said = {"role": "assistant", "content": {"words": f"word{number} ", "blanks": "\n"}.get(kind, "")}
        yield {"model": last["model"], "created_at": last["created_at"], "message": said, "done": False}


def spoil_vectors(answer: Json, garbage: str) -> Json:
    """The answer with its last vector missing, one number short, opposite to the one before, or of other numbers."""
    *others, last = answer["embeddings"] or [[]]
    match garbage:
        case "count":
            return {**answer, "embeddings": others}
        case "dimension":
            return {**answer, "embeddings": [*others, last[:-1]]}
        case "opposite":
            return {**answer, "embeddings": [*others, [-number for number in others[-1]]]}
        case "no list":
            return {**answer, "embeddings": {str(at): vector for at, vector in enumerate([*others, last])}}
    if garbage in SPOILT:
        return {**answer, "embeddings": [*others, [SPOILT[garbage]] * len(last)]}
    return answer
