"""Who may ask the web server, from which page, and how much: what keeps it safe from other sites.

A browser sends to 127.0.0.1 whatever a page of any site asks it to. What stands against that:

- Host: a site whose name was made to point to this computer (DNS rebinding) is told by the name that it asks under.
- Origin and Sec-Fetch-Site: a page of another site, or of another server on this computer, is told by where it is from.
  https://www.w3.org/TR/fetch-metadata/ has the rules; programs that are no browsers send neither, and pass.
- Content-Type: what a page can post without asking first (text/plain, a form) reaches no handler.
- A token, where the server can be reached from other computers.

Every answer has headers by which a page loads nothing from outside and is shown inside no other. Nothing is held back
on its way: events arrive as they are sent.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import parse_qs

from folio.errors import FolioError
from folio.offline import is_loopback

# ASGI's own types: https://asgi.readthedocs.io/en/latest/specs/www.html
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

COOKIE = "folio_token"
_CLOSED = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
# Path and what is below it -> its Content-Security-Policy. Swagger UI sets styles in its HTML, and has data: pictures.
POLICIES: Mapping[str, str] = {
    "/": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    + _CLOSED,
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

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
_EVERYWHERE = frozenset({"0.0.0.0", "::"})  # to be bound to, not to be opened
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[0-9a-z._-]+)(?::([0-9]{1,5}))?")
_SAFE = frozenset({"GET", "HEAD"})
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_MEDIA_TYPES = frozenset({"application/json", "multipart/form-data"})


@dataclass(frozen=True)
class Allowed:
    """How the server may be addressed, and what a request must bring.

    host: the address or name that the server is bound to
    port: the port that it listens on
    token: what each request must bring; None where none is needed
    names: other names of this computer that it may be addressed by
    """

    host: str
    port: int
    token: str | None = None
    names: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        """Where a person opens it, without the token: "http://127.0.0.1:8420/"."""
        host = self.names[0] if self.names and self.host in _EVERYWHERE else self.host
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}/"

    def place(self, authority: str) -> tuple[str, int] | None:
        """The name and port of a Host header ("LOCALHOST:8420" -> "localhost", 8420); None where it is not allowed.

        An address in numbers is nothing that another site's name could be, so any of them will do where the server can
        be reached under more than one.
        """
        found = _AUTHORITY.fullmatch(authority.lower())
        if not found or int(found[2] or 80) != self.port:
            return None
        name = found[1]
        known = _LOOPBACK | {self.host.lower(), *(other.lower() for other in self.names)}
        if name in known or (not is_loopback(self.host) and _is_address(name)):
            return name, self.port
        return None


def _is_address(name: str) -> bool:
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


class RequestGuard:
    """An ASGI app around another one. A request that is refused does not reach it."""

    def __init__(
        self, app: ASGIApp, allowed: Allowed, limit: Callable[[str], int], policies: Mapping[str, str] = POLICIES
    ) -> None:
        """limit: the most bytes of a body, by path. policies: the Content-Security-Policy of a path, "/" among them."""
        self.app = app
        self.allowed = allowed
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
        exchange = _Exchange(receive, send, self._headers(scope["path"]), limit)
        request = _Request(scope)
        try:
            place = _require_host(request, self.allowed)
            _require_same_site(request, place, self.allowed)
            if self._is_sign_in(request):
                await exchange.answer(303, b"", [(b"location", b"/"), (b"set-cookie", self._cookie())])
                return
            self._require_token(request)
            _require_body(request, limit)
        except _Refused as refused:
            await exchange.refuse(refused)
            return
        try:
            await self.app(scope, exchange.receive, exchange.send)
        except Exception:
            if exchange.cut_off:
                return
            if not exchange.started:
                # Said here and not further out, so that this answer has its headers too.
                await exchange.refuse(_FAILED)
            raise

    def _headers(self, path: str) -> Mapping[str, str]:
        above = (prefix for prefix in self.policies if f"{path}/".startswith(f"{prefix.rstrip('/')}/"))
        return {**ALWAYS, "content-security-policy": self.policies[max(above, key=len, default="/")]}

    def _is_sign_in(self, request: _Request) -> bool:
        """Whether it is `/?token=T` with the right T."""
        if self.allowed.token is None or request.method != "GET" or request.path != "/":
            return False
        return any(self._is_token(given) for given in parse_qs(request.query).get("token", []))

    def _cookie(self) -> bytes:
        return f"{COOKIE}={self.allowed.token}; Path=/; HttpOnly; SameSite=Strict".encode()

    def _is_token(self, given: str) -> bool:
        return self.allowed.token is not None and hmac.compare_digest(given.encode(), self.allowed.token.encode())

    def _require_token(self, request: _Request) -> None:
        if self.allowed.token is None:
            return
        schemes = (line.partition(" ") for line in request.all("authorization"))
        given = [value for scheme, _, value in schemes if scheme.lower() == "bearer"]
        cookies = (cookie.strip().partition("=") for line in request.all("cookie") for cookie in line.split(";"))
        given += [value for name, _, value in cookies if name == COOKIE]
        if not any(self._is_token(value) for value in given):
            raise _Refused(
                401,
                "The token is wrong." if given else "This needs the token that Folio was started with.",
                f"Open {self.allowed.url}?token=... with it, or send it as `Authorization: Bearer ...`.",
                [(b"www-authenticate", b"Bearer")],
            )


class _Refused(FolioError):
    """A request that the app does not get, with the status that says so."""

    def __init__(self, status: int, happened: str, remedy: str, headers: Headers | None = None) -> None:
        super().__init__(happened, remedy)
        self.status = status
        self.headers = headers or []


@dataclass(frozen=True)
class _Request:
    """What is checked of a request."""

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
        """Every header of this name: one that comes twice is read in two ways by two programs."""
        return [value.decode("latin-1") for key, value in self.scope["headers"] if key.lower() == name.encode()]


def _require_host(request: _Request, allowed: Allowed) -> tuple[str, int]:
    """The name and port that the request was sent to."""
    hosts = request.all("host")
    place = allowed.place(hosts[0]) if len(hosts) == 1 else None
    if place is None:
        raise _Refused(403, "This is not an address that Folio answers at.", f"Open {allowed.url}.")
    return place


def _require_same_site(request: _Request, place: tuple[str, int], allowed: Allowed) -> None:
    """A page may ask the place that it came from; another site may only link to Folio.

    The port counts: another server on this computer is another origin.
    """
    origins, sites = request.all("origin"), set(request.all("sec-fetch-site"))
    if origins:
        scheme, _, authority = origins[0].partition("://")
        wrong = len(origins) > 1 or scheme != "http" or allowed.place(authority) != place
    else:
        wrong = request.method not in _SAFE and not sites <= {"same-origin", "none"}
    if sites & {"cross-site", "same-site"}:
        followed_link = (
            request.method == "GET"
            and request.all("sec-fetch-mode") == ["navigate"]
            and request.all("sec-fetch-dest") == ["document"]
        )
        wrong = wrong or not followed_link
    if wrong:
        raise _Refused(403, "A page of another site asked for this.", f"Use the page at {allowed.url}.")


def _require_body(request: _Request, limit: int) -> None:
    lengths = request.all("content-length")
    if lengths and not all(re.fullmatch("[0-9]{1,18}", length) for length in lengths):
        raise _Refused(400, "The length of the request is no number.", "Send Content-Length as digits.")
    length = max(map(int, lengths), default=0)
    if request.method in _WITH_BODY and (length or request.all("transfer-encoding")):
        types = [line.partition(";")[0].strip().lower() for line in request.all("content-type")]
        if len(types) != 1 or types[0] not in _MEDIA_TYPES:
            raise _Refused(
                415, "The request is neither JSON nor a file.", "Send JSON as `Content-Type: application/json`."
            )
    if length > limit:
        raise _too_large(limit)


def _too_large(limit: int) -> _Refused:
    return _Refused(
        413,
        f"The request is larger than the {limit:,} bytes that are taken here.",
        "Send less; for a paper, the setting MAX_FILE_MB says how large it may be.",
    )


_FAILED = _Refused(500, "Something in Folio failed.", "The terminal that it runs in says what; please report it.")


class _Exchange:
    """A request and its answer, passed on piece by piece: bodies counted, headers added."""

    def __init__(self, receive: Receive, send: Send, headers: Mapping[str, str], limit: int) -> None:
        self._receive = receive
        self._send = send
        self._headers = headers
        self._limit = limit
        self._received = 0
        self.started = False
        self.cut_off = False

    async def receive(self) -> Message:
        """The next piece of the body; for an app whose request has become too large, that the client has left."""
        if not self.cut_off:
            message = await self._receive()
            self._received += len(message.get("body", b""))
            if self._received <= self._limit:
                return message
            self.cut_off = True
            if not self.started:
                await self.refuse(_too_large(self._limit))
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if not self.cut_off:
            await self._pass_on(message)

    async def _pass_on(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            message = {**message, "headers": self._completed(message.get("headers", []))}
        await self._send(message)

    def _completed(self, headers: Headers) -> Headers:
        kept = [(name, value) for name, value in headers if name.lower().decode("latin-1") not in self._headers]
        if not any(name.lower() == b"cache-control" for name, _ in kept):
            kept.append((b"cache-control", b"no-store"))
        return kept + [(name.encode(), value.encode()) for name, value in self._headers.items()]

    async def refuse(self, refused: _Refused) -> None:
        body = json.dumps({"error": refused.happened, "remedy": refused.remedy}, ensure_ascii=False).encode()
        await self.answer(refused.status, body, [(b"content-type", b"application/json"), *refused.headers])

    async def answer(self, status: int, body: bytes, headers: Headers) -> None:
        length = (b"content-length", str(len(body)).encode())
        await self._pass_on({"type": "http.response.start", "status": status, "headers": [length, *headers]})
        await self._pass_on({"type": "http.response.body", "body": body})
