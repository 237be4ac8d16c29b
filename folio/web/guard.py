"""Protects the server from other sites: checks each request's host, origin, token and body before the app sees it.

A browser sends requests to 127.0.0.1 on behalf of any page of any site. The checks:

- Host: a site whose name resolves to this computer (DNS rebinding) still sends its own name.
- Origin and Sec-Fetch-Site: these name the page that sent the request, on another site or another server of this
  computer. https://www.w3.org/TR/fetch-metadata/ has the rules; programs other than browsers send neither and pass.
- Content-Type: a body that a page can post without a CORS preflight (text/plain, a form) reaches no handler.
- A token, if other computers can reach the server; only ALIVE needs none.

Behind a balancer, Host and Origin have the public address (AccessRules.public_url). X-Forwarded-* headers are ignored,
because anybody may send them. If that address has a path, the balancer takes it off what it passes on.

The headers of every response forbid loading anything from outside and being shown in a frame. Nothing is buffered:
events are sent at once.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from folio.errors import FolioError
from folio.schema.openai import error_at
from folio.schema.web import ErrorBody
from folio.system.network import is_loopback

Headers = list[tuple[bytes, bytes]]

COOKIE = "folio_token"
_CLOSED = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
# Path prefix -> Content-Security-Policy. Swagger UI needs inline styles and data: images.
POLICIES: Mapping[str, str] = {
    "/": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "manifest-src 'self'; " + _CLOSED,
    "/docs": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; " + _CLOSED,
}
ALWAYS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}

MAX_HEADERS = 100  # browsers send about 20
MAX_HEAD_BYTES = 2**16  # of the address and the headers
# How much is read of a request after a response that did not need it. With a shorter body, it is read to its end.
LINGER_S, LINGER_BYTES = 2.0, 2**26
_SHORT_BODY = 2**16

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
_EVERYWHERE = frozenset({"0.0.0.0", "::"})  # can be bound to, but not opened
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[0-9a-z._-]+)(?::([0-9]{1,5}))?")
# Tells balancers, which have no token, that the server is alive, and nothing else
ALIVE = "/alive"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_SAFE = frozenset({"GET", "HEAD"})
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
# Links to these from other sites are refused: they would make Folio contact services on the internet.
_NOT_LINKED = frozenset({"/discover"})
_MEDIA_TYPES = frozenset({"application/json", "application/pdf", "multipart/form-data"})


@dataclass(frozen=True)
class AccessRules:
    """The hosts and the token that requests must have.

    host: address or name that the server is bound to
    port: port that it listens on
    token: token that each request must send; None if none is needed
    names: further names of this computer that are accepted as host
    public_url: address of a balancer in front of the server, such as "https://papers.example.org" or
        "https://example.org/folio"; "" without one
    """

    host: str
    port: int
    token: str | None = None
    names: tuple[str, ...] = ()
    public_url: str = ""

    @property
    def url(self) -> str:
        """The page's address without the token: "http://127.0.0.1:8420/"."""
        if self.public_url:
            return f"{self.public_url.rstrip('/')}/"
        host = self.names[0] if self.names and self.host in _EVERYWHERE else self.host
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}/"

    @property
    def is_private(self) -> bool:
        """Whether nobody but this computer is to reach the server: whoever asks is the person at it, who may change
        settings."""
        return self.token is None and not self.public_url and is_loopback(self.host)

    @property
    def public(self) -> Origin | None:
        """The origin of the public address; None without one."""
        return parse_origin("/".join(self.public_url.split("/")[:3]))

    @property
    def path(self) -> str:
        """The path of the public address: "/", "/folio/"."""
        return "/".join(["", *filter(None, self.public_url.split("/")[3:]), ""])

    def parse_host(self, authority: str) -> Origin | None:
        """The target of a request with this Host header; None if it is not accepted.

        A server that other computers can reach accepts every IP address: DNS rebinding needs a name.
        """
        public = self.public
        if public and _origin(public.scheme, authority) == public:
            return public
        host = _origin("http", authority)
        if host is None or host.port != self.port:
            return None
        known = _LOOPBACK | {self.host.lower(), *(name.lower() for name in self.names)}
        is_accepted = host.name in known or (not is_loopback(self.host) and _is_ip_address(host.name))
        return host if is_accepted else None


class Origin(NamedTuple):
    """The origin of a page: "http", "localhost", 8420."""

    scheme: str
    name: str
    port: int


def parse_origin(text: str) -> Origin | None:
    """The parts of "http://LOCALHOST:8420"; None for anything else than the origin of a web page."""
    scheme, _, authority = text.partition("://")
    return _origin(scheme, authority)


def _origin(scheme: str, authority: str) -> Origin | None:
    match = _AUTHORITY.fullmatch(authority.lower())
    default = _DEFAULT_PORTS.get(scheme)
    return Origin(scheme, match[1], int(match[2] or default)) if match and default else None


def _is_ip_address(name: str) -> bool:
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


class RequestGuard:
    """ASGI middleware. A refused request does not reach the app."""

    def __init__(
        self, app: ASGIApp, rules: AccessRules, limit: Callable[[str], int], policies: Mapping[str, str] = POLICIES
    ) -> None:
        """limit: maximum bytes of a body, by path. policies: Content-Security-Policy by path prefix, "/" included."""
        self.app = app
        self.rules = rules
        self.limit = limit
        self.policies = policies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # a websocket
            await send({"type": "websocket.close", "code": 1008})
            return
        limit = self.limit(scope["path"])
        request = _Request(scope)
        headers = self._headers(request.path)
        exchange = _Exchange(request.path, receive, send, headers, limit, is_long=_has_long_body(request))
        try:
            _require_short_head(request)
            host = _require_host(request, self.rules)
            _require_same_site(request, host, self.rules)
            if self._is_sign_in(request):
                path = self.rules.path if host == self.rules.public else "/"
                await exchange.respond(303, b"", [(b"location", path.encode()), (b"set-cookie", self._cookie(path))])
                return
            self._require_token(request)
            _require_body(request, limit)
        except _Refused as refused:
            await exchange.refuse(refused)
            return
        try:
            await self.app(scope, exchange.receive, exchange.send)
        except (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit):
            raise  # the server is stopping
        except BaseException as error:
            if exchange.cut_off:
                return
            if not exchange.started:
                await exchange.refuse(_FAILED)  # here and not in the server, to add the security headers
            if isinstance(error, Exception):
                raise
            raise RuntimeError(f"{type(error).__name__}: {error}") from error  # such as a panic in Rust

    def _headers(self, path: str) -> Mapping[str, str]:
        matching = (prefix for prefix in self.policies if f"{path}/".startswith(f"{prefix.rstrip('/')}/"))
        return {**ALWAYS, "content-security-policy": self.policies[max(matching, key=len, default="/")]}

    def _is_sign_in(self, request: _Request) -> bool:
        """Whether the request is `GET /?token=T` with the right token."""
        if self.rules.token is None or request.method != "GET" or request.path != "/":
            return False
        return any(map(self._is_token, parse_qs(request.query).get("token", [])))

    def _cookie(self, path: str) -> bytes:
        secure = "; Secure" if self.rules.public_url.startswith("https://") else ""
        return f"{COOKIE}={self.rules.token}; Path={path}; HttpOnly; SameSite=Strict{secure}".encode()

    def _is_token(self, text: str) -> bool:
        return self.rules.token is not None and hmac.compare_digest(text.encode(), self.rules.token.encode())

    def _require_token(self, request: _Request) -> None:
        if self.rules.token is None or request.path == ALIVE:
            return
        schemes = (line.partition(" ") for line in request.all("authorization"))
        tokens = [value for scheme, _, value in schemes if scheme.lower() == "bearer"]
        cookies = (cookie.strip().partition("=") for line in request.all("cookie") for cookie in line.split(";"))
        tokens += [value for name, _, value in cookies if name == COOKIE]
        if not any(map(self._is_token, tokens)):
            raise _Refused(
                401,
                "The token is wrong." if tokens else "This server needs the token that it was started with.",
                f"Open {self.rules.url}?token=TOKEN, or send `Authorization: Bearer TOKEN`.",
                [(b"www-authenticate", b"Bearer")],
            )


class _Refused(FolioError):
    """A request that is refused with this status."""

    def __init__(self, status: int, happened: str, remedy: str, headers: Headers | None = None) -> None:
        super().__init__(happened, remedy)
        self.status = status
        self.headers = headers or []


@dataclass(frozen=True)
class _Request:
    """The parts of a request that are checked."""

    scope: Scope

    @property
    def method(self) -> str:
        return str(self.scope["method"])

    @property
    def path(self) -> str:
        return str(self.scope["path"])

    @property
    def query(self) -> str:
        return bytes(self.scope["query_string"]).decode("latin-1")

    def all(self, name: str) -> list[str]:
        """All headers with this name. Programs disagree on which of two they read, so both are checked."""
        return [value.decode("latin-1") for key, value in self.scope["headers"] if key.lower() == name.encode()]


def _require_short_head(request: _Request) -> None:
    """Raise _Refused if the head is too long: the server limits only a head that arrives in pieces."""
    headers = request.scope["headers"]
    size = len(request.path) + len(request.query) + sum(len(name) + len(value) for name, value in headers)
    if len(headers) > MAX_HEADERS or size > MAX_HEAD_BYTES:
        raise _Refused(431, "The headers of the request are too large.", "Send fewer or shorter ones.")


def _require_host(request: _Request, rules: AccessRules) -> Origin:
    """The target of the request. Raises _Refused."""
    hosts = request.all("host")
    host = rules.parse_host(hosts[0]) if len(hosts) == 1 else None
    if host is None:
        raise _Refused(403, "Folio does not accept requests for this address.", f"Open {rules.url}.")
    return host


def _require_same_site(request: _Request, host: Origin, rules: AccessRules) -> None:
    """Raise _Refused unless the request comes from Folio's own page, from a link, or from a program.

    The port is part of the origin: another server on this computer is another site.
    """
    origins, sites = request.all("origin"), set(request.all("sec-fetch-site"))
    if origins:
        wrong = len(origins) > 1 or parse_origin(origins[0]) != host
    else:
        wrong = request.method not in _SAFE and not sites <= {"same-origin", "none"}
    if sites & {"cross-site", "same-site"}:
        followed_link = (
            request.method == "GET"
            and request.path not in _NOT_LINKED
            and request.all("sec-fetch-mode") == ["navigate"]
            and request.all("sec-fetch-dest") == ["document"]
        )
        wrong = wrong or not followed_link
    if wrong:
        raise _Refused(403, "The request came from a page of another site.", f"Use the page at {rules.url}.")


def _require_body(request: _Request, limit: int) -> None:
    lengths = request.all("content-length")
    if lengths and not all(re.fullmatch("[0-9]{1,18}", length) for length in lengths):
        raise _Refused(400, "The Content-Length of the request is not a number.", "Send it as digits.")
    length = max(map(int, lengths), default=0)
    if request.method in _WITH_BODY and (length or request.all("transfer-encoding")):
        types = [line.partition(";")[0].strip().lower() for line in request.all("content-type")]
        if len(types) != 1 or types[0] not in _MEDIA_TYPES:
            raise _Refused(
                415, "The request is neither JSON nor a file upload.", "Send JSON as `Content-Type: application/json`."
            )
    if length > limit:
        raise _too_large(limit)


def _has_long_body(request: _Request) -> bool:
    lengths = [int(length) for length in request.all("content-length") if re.fullmatch("[0-9]{1,18}", length)]
    return bool(request.all("transfer-encoding")) or max(lengths, default=0) > _SHORT_BODY


def _too_large(limit: int) -> _Refused:
    return _Refused(
        413,
        f"The request is larger than {limit:,} bytes, the limit for this address.",
        "Send less. The setting MAX_FILE_MB limits the size of a paper.",
    )


_FAILED = _Refused(
    500, "Folio failed with an internal error.", "The terminal that Folio runs in shows details. Please report them."
)


class _Exchange:
    """One request and its response, streamed: counts the bytes of the body and adds headers."""

    def __init__(
        self, path: str, receive: Receive, send: Send, headers: Mapping[str, str], limit: int, *, is_long: bool
    ) -> None:
        """path: of the request. is_long: whether the request has a long body, or one of unknown length."""
        self._path = path
        self._is_long = is_long  # until it was read to its end
        self._closes = False  # whether the connection ends with the response
        self._receive = receive
        self._send = send
        self._headers = headers
        self._limit = limit
        self._received = 0
        self.started = False
        self.cut_off = False

    async def receive(self) -> Message:
        """The next part of the body. Once the body is too large, the app gets a disconnect instead."""
        if not self.cut_off:
            message = await self._receive()
            self._received += len(message.get("body", b""))
            if self._received <= self._limit:
                self._is_long = self._is_long and bool(message.get("more_body"))
                return message
            self.cut_off = True
            if not self.started:
                await self.refuse(_too_large(self._limit))
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if not self.cut_off:
            await self._forward(message)

    async def _forward(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            message = {**message, "headers": self._add_headers(message.get("headers", []))}
        elif self._closes and not message.get("more_body"):
            await self._send({**message, "more_body": True})
            await self._discard_some()
            message = {"type": "http.response.body"}
        await self._send(message)

    def _add_headers(self, headers: Headers) -> Headers:
        kept = [(name, value) for name, value in headers if name.lower().decode("latin-1") not in self._headers]
        if not any(name.lower() == b"cache-control" for name, _ in kept):
            kept.append((b"cache-control", b"no-store"))
        if self._is_long:  # it was not read to its end, and is not
            self._closes = True
            kept.append((b"connection", b"close"))
        return kept + [(name.encode(), value.encode()) for name, value in self._headers.items()]

    async def refuse(self, refused: _Refused) -> None:
        body = error_at(self._path, refused.status, ErrorBody(error=refused.happened, remedy=refused.remedy))
        headers = [(b"content-type", b"application/json"), *refused.headers]
        await self.respond(refused.status, body.model_dump_json().encode(), headers)

    async def respond(self, status: int, body: bytes, headers: Headers) -> None:
        length = (b"content-length", str(len(body)).encode())
        await self._forward({"type": "http.response.start", "status": status, "headers": [length, *headers]})
        await self._forward({"type": "http.response.body", "body": body})

    async def _discard_some(self) -> None:
        """Take some more of the request: a client that still sends would lose the reply if the connection was closed at
        once (RFC 9112, 9.6)."""
        size = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                while size < LINGER_BYTES:
                    message = await self._receive()
                    if not message.get("more_body"):
                        return
                    size += len(message["body"])
