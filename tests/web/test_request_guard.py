"""The request guard around a small app: what it lets through, what it refuses, and the headers it adds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.cookies import SimpleCookie

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from folio.system.network import is_loopback
from folio.web.guard import (
    ALWAYS,
    MAX_HEAD_BYTES,
    MAX_HEADERS,
    POLICIES,
    AccessRules,
    RequestGuard,
)

pytestmark = pytest.mark.fast

HERE = AccessRules("127.0.0.1", 8420)
TOKEN = "a-token-of-24-characters"
BEARER = ("authorization", f"Bearer {TOKEN}")
IN_THE_OFFICE = AccessRules("192.168.1.5", 8420, TOKEN, ("tower",))
BALANCED = AccessRules("0.0.0.0", 8420, TOKEN, ("folio-1",), "https://papers.example.org")
HOST = ("host", "127.0.0.1:8420")
JSON = ("content-type", "application/json")
CHUNKED = ("transfer-encoding", "chunked")
SITE, ORIGIN = "sec-fetch-site", ("origin", "http://127.0.0.1:8420")
LIMIT = 20


@dataclass(frozen=True)
class Response:
    """A response; the body has one piece for each message."""

    status: int
    headers: list[tuple[str, str]]
    pieces: list[bytes]

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]

    @property
    def refusal(self) -> dict[str, str]:
        """The error's JSON; asserts that it has the usual form."""
        found: dict[str, str] = json.loads(b"".join(self.pieces))
        assert self.all("content-type") == ["application/json"]
        assert self.all("content-length") == [str(len(b"".join(self.pieces)))]
        assert list(found) == ["error", "remedy"]
        assert all(sentence.endswith(".") for sentence in found.values())
        return found


@dataclass
class RecordingApp:
    """An app that records its requests, and each piece of body that it received."""

    status: int = 200
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    disconnected: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.requests.append(f"{scope['method']} {scope['path']}")
        more = True
        while more:
            message = await receive()
            self.disconnected = message["type"] == "http.disconnect"
            self.bodies.append(message.get("body", b""))
            more = message.get("more_body", False)
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await send({"type": "http.response.body", "body": b"served"})


def guarded(app: ASGIApp, rules: AccessRules = HERE) -> RequestGuard:
    return RequestGuard(app, rules, lambda path: 1000 if path == "/papers" else LIMIT)


def ask(
    app: ASGIApp, method: str, target: str, *headers: tuple[str, str], pieces: Iterable[bytes] = (b"",)
) -> Response:
    """Sends a request as a server passes it on: no headers are added or corrected."""
    path, _, query = target.partition("?")
    scope: Scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
    }
    waiting, sent = list(pieces), list[Message]()

    async def receive() -> Message:
        if not waiting:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": waiting.pop(0), "more_body": bool(waiting)}

    async def send(message: Message) -> None:
        sent.append(message)

    async def serve() -> None:
        await app(scope, receive, send)

    asyncio.run(serve())
    start, *rest = sent
    assert start["type"] == "http.response.start"
    assert {message["type"] for message in rest} == {"http.response.body"}
    found = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in start["headers"]]
    return Response(start["status"], found, [message["body"] for message in rest if message.get("body")])


def outcome(rules: AccessRules, method: str, *headers: tuple[str, str], path: str = "/chat") -> int:
    """The status of a request; asserts that it reached the app if and only if the status is 200."""
    recorder = RecordingApp()
    response = ask(guarded(recorder, rules), method, path, *headers)
    assert bool(recorder.requests) == (response.status == 200)
    if response.status != 200:
        assert response.refusal
    return response.status


# Addresses


def test_loopback_addresses() -> None:
    others = ("", "0.0.0.0", "::", "192.168.1.5", "localhost.", "example.org", "127.0.0.1.x")
    assert all(map(is_loopback, ("127.0.0.1", "127.8.9.10", "::1", "localhost", "LocalHost")))
    assert not any(map(is_loopback, others))


@pytest.mark.parametrize(
    ("rules", "url"),
    [
        (HERE, "http://127.0.0.1:8420/"),
        (AccessRules("::1", 80), "http://[::1]:80/"),
        (AccessRules("tower.example", 1), "http://tower.example:1/"),
        (AccessRules("0.0.0.0", 8420, TOKEN, ("tower",)), "http://tower:8420/"),
        (AccessRules("::", 8420, TOKEN, ("tower",)), "http://tower:8420/"),
        (BALANCED, "https://papers.example.org/"),
    ],
)
def test_url_is_the_address_to_open(rules: AccessRules, url: str) -> None:
    assert rules.url == url


# Host


@pytest.mark.parametrize(
    ("rules", "status", "hosts"),
    [
        (HERE, 200, ("127.0.0.1:8420", "localhost:8420", "LOCALHOST:8420", "[::1]:8420")),
        (
            HERE, 403,
            (
                "", "evil.example", "evil.example:8420", "127.0.0.1", "localhost:80", "127.0.0.1:8421",
                "127.0.0.1:84200", "localhost.:8420", "127.0.0.1.:8420", "localhost:", "localhost:8420:8420",
                "localhost:8420,evil.example",
                "user@localhost:8420", "evil.example@localhost:8420", "localhost:8420@evil.example", "[::1:8420",
                "http://localhost:8420", "localhost:8420/", "localhost:8420 ", "local host:8420", "127.0.0.1:+8420",
                "127.0.0.1:\xb28420", "::1:8420", "0.0.0.0:8420", "[::]:8420", "192.168.1.5:8420", "127.1:8420",
                "2130706433:8420", "tower:8420", "127.0.0.1.evil.example:8420", "localhost.evil.example:8420",
                "evil.localhost:8420", "[::ffff:127.0.0.1]:8420", "[::1]x:8420", "\xe9vil:8420",
            ),
        ),
        (IN_THE_OFFICE, 200, ("192.168.1.5:8420", "tower:8420", "Tower:8420", "10.0.0.9:8420", "[fd00::7]:8420")),
        (IN_THE_OFFICE, 403, ("evil.example:8420", "192.168.1.5", "tower.:8420", "1.2.3:8420", "[fd00:8420")),
        (BALANCED, 200, ("papers.example.org", "Papers.example.org:443", "folio-1:8420", "10.0.0.9:8420")),
        (BALANCED, 403, ("papers.example.org:80", "papers.example.org:8420", "other.example.org", "")),
        (AccessRules("Tower.example", 8420, TOKEN), 200, ("tower.example:8420",)),
        (AccessRules("127.0.0.1", 80), 200, ("localhost", "localhost:80")),
    ],
)  # fmt: skip
def test_a_host_is_a_known_name_or_an_ip_address(rules: AccessRules, status: int, hosts: tuple[str, ...]) -> None:
    assert {host: outcome(rules, "GET", ("host", host), BEARER) for host in hosts} == dict.fromkeys(hosts, status)


PUBLIC = ("host", "papers.example.org")
OFFICE = ("host", "192.168.1.5:8420")


@pytest.mark.parametrize(
    ("rules", "method", "headers", "status"),
    [
        # A host comes once
        (HERE, "GET", [], 403),
        (HERE, "GET", [HOST, HOST], 403),
        (HERE, "GET", [HOST, ("Host", "evil.example")], 403),
        # A balancer's word about its client does not count
        (BALANCED, "GET", [("host", "evil.example"), ("x-forwarded-host", "papers.example.org"), BEARER], 403),
        # An origin comes once, and is the page's own
        (HERE, "POST", [HOST, ORIGIN, ORIGIN], 403),
        (IN_THE_OFFICE, "POST", [OFFICE, BEARER, ("origin", "http://192.168.1.5:8420")], 200),
        (IN_THE_OFFICE, "POST", [OFFICE, BEARER, ("origin", "http://192.168.1.66:8420")], 403),
        *(
            (BALANCED, "POST", [PUBLIC, BEARER, ("origin", f"https://papers.example.org{port}")], status)
            for port, status in (("", 200), (":443", 200), (".evil.example", 403))
        ),
        *(
            (BALANCED, "POST", [PUBLIC, BEARER, ("origin", origin)], 403)
            for origin in ("http://papers.example.org", "http://folio-1:8420", "null", "https://")
        ),
        # Programs other than browsers send neither
        *((HERE, method, [HOST], 200) for method in ("GET", "HEAD", "POST", "DELETE", "OPTIONS")),
        (HERE, "POST", [HOST, ORIGIN, (SITE, "cross-site"), ("sec-fetch-mode", "cors")], 403),
        (HERE, "POST", [HOST, (SITE, "same-origin"), (SITE, "cross-site")], 403),
        # The length of a body
        (HERE, "POST", [HOST, ("content-length", "0")], 200),
        (HERE, "POST", [HOST, JSON, ("content-length", "1"), ("content-length", "21")], 413),
        *(
            (HERE, "POST", [HOST, JSON, ("content-length", length)], 400)
            for length in ("-1", "+5", "0x10", "5 ", "5, 5", "", "9" * 5000, "\xb2")
        ),
    ],
)  # fmt: skip
def test_headers_that_admit_a_request(
    rules: AccessRules, method: str, headers: list[tuple[str, str]], status: int
) -> None:
    assert outcome(rules, method, *headers) == status


# Host


def test_the_cookie_of_an_encrypted_address_is_secure() -> None:
    app = guarded(RecordingApp(), BALANCED)
    (cookie,) = ask(app, "GET", f"/?token={TOKEN}", ("host", "papers.example.org")).all("set-cookie")
    assert cookie == f"folio_token={TOKEN}; Path=/; HttpOnly; SameSite=Strict; Secure"


def test_the_health_check_of_a_balancer_needs_no_token() -> None:
    assert outcome(BALANCED, "GET", ("host", "folio-1:8420"), path="/alive") == 200
    assert outcome(BALANCED, "GET", ("host", "folio-1:8420"), path="/alive/") == 401
    assert outcome(BALANCED, "GET", ("host", "evil.example:8420"), path="/alive") == 403


# Origin and Sec-Fetch


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize("host", ["127.0.0.1:8420", "localhost:8420", "[::1]:8420"])
def test_own_page_may_send_requests(method: str, host: str) -> None:
    assert outcome(HERE, method, ("host", host), ("origin", f"http://{host}"), (SITE, "same-origin")) == 200


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE", "OPTIONS"])
@pytest.mark.parametrize(
    "origin",
    [
        *("null", "", "http://evil.example", "https://127.0.0.1:8420", "http://127.0.0.1", "http://127.0.0.1:3000"),
        *("http://127.0.0.1:8420/", "http://127.0.0.1:8420.evil.example", "http://user@127.0.0.1:8420", "file://"),
        *("http://localhost:8420", "http://[::1]:8420", "127.0.0.1:8420", "http://127.0.0.1:8420 http://evil.example"),
    ],
)
def test_page_of_another_origin_is_refused(method: str, origin: str) -> None:
    assert outcome(HERE, method, HOST, ("origin", origin)) == 403


@pytest.mark.parametrize(
    ("method", "site", "mode", "dest", "status"),
    [
        (*request.split(), status)
        for status, requests in (
            # The page itself: typed address, resources, requests; and a link on another site or of another server here
            (200, ("GET none navigate document", "GET same-origin no-cors image", "POST same-origin cors empty",
                   "DELETE none cors empty", "GET cross-site navigate document", "GET same-site navigate document")),
            # Anything else from another site, and a value that no standard defines
            (403, ("HEAD cross-site navigate document", "POST cross-site navigate document",
                   "GET cross-site navigate iframe", "GET cross-site navigate embed", "GET cross-site no-cors image",
                   "GET cross-site no-cors script", "GET cross-site cors empty", "GET same-site no-cors image",
                   "GET cross-site cors document", "POST same-site no-cors empty", "DELETE cross-site cors empty",
                   "OPTIONS cross-site cors empty", "POST near-by cors empty")),
        )
        for request in requests
    ],
)  # fmt: skip
def test_fetch_metadata(method: str, site: str, mode: str, dest: str, status: int) -> None:
    sent = ((SITE, site), ("sec-fetch-mode", mode), ("sec-fetch-dest", dest))
    assert outcome(HERE, method, HOST, *sent) == status


def test_preflight_from_another_site_is_refused() -> None:
    asked = (("origin", "http://evil.example"), ("access-control-request-method", "DELETE"))
    response = ask(guarded(RecordingApp()), "OPTIONS", "/chat", HOST, *asked)
    assert response.status == 403
    assert not [name for name, _ in response.headers if name.startswith("access-control-")]


# The token


@pytest.mark.parametrize(
    ("name", "status", "values"),
    [
        ("authorization", 200, (f"Bearer {TOKEN}", f"bearer {TOKEN}")),
        ("cookie", 200, (f"folio_token={TOKEN}", f"theme=dark; folio_token={TOKEN}; x=y")),
        ("authorization", 401, ("Bearer another-token-of-24-chars", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}",
                                "Bearer \xfctoken", "Bearer ", f"Basic {TOKEN}", TOKEN)),
        ("cookie", 401, ("folio_token=", f"other={TOKEN}", f"xfolio_token={TOKEN}")),
        ("x-token", 401, (TOKEN,)),
    ],
)  # fmt: skip
def test_token_is_required_if_set(name: str, status: int, values: tuple[str, ...]) -> None:
    for value in values:
        assert outcome(IN_THE_OFFICE, "GET", ("host", "tower:8420"), (name, value)) == status, value


def test_error_without_a_token_says_how_to_send_it() -> None:
    response = ask(guarded(RecordingApp(), IN_THE_OFFICE), "GET", "/papers", ("host", "tower:8420"))
    assert response.status == 401
    assert response.all("www-authenticate") == ["Bearer"]
    assert response.refusal == {
        "error": "This server needs the token that it was started with.",
        "remedy": "Open http://192.168.1.5:8420/?token=TOKEN, or send `Authorization: Bearer TOKEN`.",
    }
    assert TOKEN not in str(response)


def test_opening_the_page_with_the_token_sets_a_cookie() -> None:
    recorder = RecordingApp()
    response = ask(guarded(recorder, IN_THE_OFFICE), "GET", f"/?token={TOKEN}", ("host", "tower:8420"))
    assert (response.status, response.all("location"), b"".join(response.pieces)) == (303, ["/"], b"")
    (line,) = response.all("set-cookie")
    cookie = SimpleCookie(line)["folio_token"]
    assert (cookie.value, cookie["path"], cookie["samesite"], cookie["httponly"]) == (TOKEN, "/", "Strict", True)
    assert (cookie["domain"], cookie["max-age"], cookie["expires"]) == ("", "", "")
    assert recorder.requests == []
    followed = ask(guarded(recorder, IN_THE_OFFICE), "GET", "/", ("host", "tower:8420"), ("cookie", line.split(";")[0]))
    assert followed.status == 200


FRAMED = ((SITE, "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe"))


@pytest.mark.parametrize(
    ("method", "target", "headers", "status"),
    [
        ("GET", "/?token=wrong-token-of-24-characters", [("host", "tower:8420")], 401),
        ("GET", "/?token=", [("host", "tower:8420")], 401),
        ("GET", f"/papers?token={TOKEN}", [("host", "tower:8420")], 401),
        ("POST", f"/?token={TOKEN}", [("host", "tower:8420")], 401),
        ("GET", f"/?token={TOKEN}", [("host", "evil.example:8420")], 403),
        ("GET", f"/?token={TOKEN}", [("host", "tower:8420"), *FRAMED], 403),
    ],
)
def test_token_in_the_address_opens_only_the_page(
    method: str, target: str, headers: list[tuple[str, str]], status: int
) -> None:
    response = ask(guarded(RecordingApp(), IN_THE_OFFICE), method, target, *headers)
    assert (response.status, response.all("set-cookie")) == (status, [])
    assert ask(guarded(RecordingApp()), "GET", target, HOST).status == 200  # without a token, it reaches the app


# Bodies


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
@pytest.mark.parametrize(
    ("status", "types"),
    [
        *((200, [kind]) for kind in ("application/json", "Application/JSON; charset=utf-8",
                                     "multipart/form-data; boundary=x")),
        # Bodies that any page can post without a preflight; [] is a Blob without a type
        *((415, [kind]) for kind in ("text/plain", "text/plain; application/json", "application/x-www-form-urlencoded",
                                     "application/jsonp", "application/json, text/plain")),
        (415, []),
        (415, ["application/json", "text/plain"]),
    ],
)  # fmt: skip
def test_body_is_json_or_a_form_with_a_file(method: str, types: list[str], status: int) -> None:
    headers = [("content-type", kind) for kind in types]
    for length in (("content-length", "2"), CHUNKED):
        assert outcome(HERE, method, HOST, length, *headers) == status


@pytest.mark.parametrize(
    ("count", "length", "query", "status"),
    [
        (MAX_HEADERS - 1, 1, 0, 200),
        (MAX_HEADERS, 1, 0, 431),
        (20_000, 1, 0, 431),
        (1, MAX_HEAD_BYTES, 0, 431),
        (1, 1, MAX_HEAD_BYTES, 431),
        (1, 1, MAX_HEAD_BYTES // 2, 200),
    ],
)
def test_number_and_length_of_headers_are_limited(count: int, length: int, query: int, status: int) -> None:
    recorder = RecordingApp()
    headers = [("x", "y" * length)] * count
    response = ask(guarded(recorder), "GET", f"/health?{'q' * query}", HOST, *headers)
    assert (response.status, bool(recorder.requests)) == (status, status == 200)
    assert status == 200 or "headers" in response.refusal["error"]


def test_body_at_the_limit_reaches_the_app_whole() -> None:
    recorder, pieces = RecordingApp(), [b"0123456789", b"", b"abcdefghij"]
    response = ask(guarded(recorder), "POST", "/chat", HOST, JSON, CHUNKED, pieces=pieces)
    assert (response.status, response.pieces, recorder.bodies) == (200, [b"served"], pieces)


TOO_LARGE = {
    "error": "The request is larger than 20 bytes, the limit for this address.",
    "remedy": "Send less. The setting MAX_FILE_MB limits the size of a paper.",
}


@pytest.mark.parametrize(
    ("method", "length", "pieces", "read"),
    [
        *((method, CHUNKED, [b"0123456789", b"abcdefghij", b"!", b"more"], [b"0123456789", b"abcdefghij", b""])
          for method in ("POST", "GET", "DELETE")),
        ("POST", ("content-length", "5"), [b"x" * 21], [b""]),
        ("POST", ("content-length", "21"), [b"x" * 21], []),
    ],
)  # fmt: skip
def test_a_body_over_the_limit_never_reaches_the_app(
    method: str, length: tuple[str, str], pieces: list[bytes], read: list[bytes]
) -> None:
    recorder = RecordingApp()
    response = ask(guarded(recorder), method, "/chat", HOST, JSON, length, pieces=pieces)
    assert (response.status, response.refusal, recorder.bodies) == (413, TOO_LARGE, read)
    assert recorder.disconnected == bool(read)


def test_each_path_has_its_own_limit() -> None:
    form = ("content-type", "multipart/form-data; boundary=x")
    sent = (HOST, form, ("content-length", "1000"))
    assert ask(guarded(RecordingApp()), "POST", "/papers", *sent, pieces=[b"x" * 1000]).status == 200
    assert ask(guarded(RecordingApp()), "POST", "/chat", *sent, pieces=[b"x" * 1000]).status == 413


def test_app_that_fails_after_the_cut_off_does_no_harm() -> None:
    async def reads(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        raise RuntimeError("The client has left.")

    response = ask(guarded(reads), "POST", "/chat", HOST, JSON, CHUNKED, pieces=[b"x" * 21])
    assert response.status == 413


def test_a_started_response_ends_when_the_body_is_too_large() -> None:
    async def echoes(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        message: Message = {"more_body": True}
        while message.get("more_body"):
            message = await receive()
            await send({"type": "http.response.body", "body": message.get("body", b""), "more_body": True})

    sent = (HOST, JSON, CHUNKED)
    response = ask(guarded(echoes), "POST", "/chat", *sent, pieces=[b"x" * 20, b"y" * 20, b"z"])
    assert (response.status, response.pieces) == (200, [b"x" * 20])


# Headers


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (200, [HOST]),
        (404, [HOST]),
        (500, [HOST]),
        (403, [("host", "evil.example")]),
        (403, [HOST, ("origin", "null")]),
        (401, [("host", "tower:8420")]),
        (415, [HOST, ("content-length", "2")]),
        (413, [HOST, JSON, ("content-length", "21")]),
        (400, [HOST, ("content-length", "x")]),
    ],
)
def test_every_response_has_the_headers(status: int, headers: list[tuple[str, str]]) -> None:
    recorder = RecordingApp(status=status if headers == [HOST] else 200)
    response = ask(guarded(recorder, IN_THE_OFFICE if status == 401 else HERE), "POST", "/chat", *headers)
    assert response.status == status
    expected = {**ALWAYS, "content-security-policy": POLICIES["/"], "cache-control": "no-store"}
    assert {name: response.all(name) for name in expected} == {name: [value] for name, value in expected.items()}


def test_the_headers() -> None:
    response = ask(guarded(RecordingApp()), "GET", "/", HOST)
    assert dict(response.headers) == {
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "x-frame-options": "DENY",
        "permissions-policy": "camera=(), microphone=(), geolocation=()",
        "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
        "img-src 'self' data: blob:; connect-src 'self'; manifest-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    }


def test_app_may_set_cache_control_but_no_security_header() -> None:
    headers = [(b"Cache-Control", b"max-age=60"), (b"X-Frame-Options", b"SAMEORIGIN"), (b"folio-marked", b"1,0")]
    response = ask(guarded(RecordingApp(headers=headers)), "GET", "/", HOST)
    assert [value for name, value in response.headers if name.lower() == "cache-control"] == ["max-age=60"]
    assert [value for name, value in response.headers if name.lower() == "x-frame-options"] == ["DENY"]
    assert response.all("folio-marked") == ["1,0"]


@pytest.mark.parametrize(
    ("path", "policy"),
    [("/", "/"), ("/docs", "/docs"), ("/docs/", "/docs"), ("/docs/x.js", "/docs"), ("/docsx", "/"), ("*", "/")],
)
def test_policy_depends_on_the_path(path: str, policy: str) -> None:
    response = ask(guarded(RecordingApp()), "GET", path, HOST)
    assert response.all("content-security-policy") == [POLICIES[policy]]


def test_a_failure_has_the_headers_and_reaches_the_server() -> None:
    async def fails(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError("a secret")

    raised: list[RuntimeError] = []

    async def server(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await guarded(fails)(scope, receive, send)
        except RuntimeError as error:
            raised.append(error)

    response = ask(server, "GET", "/", HOST)
    assert [str(error) for error in raised] == ["a secret"]
    assert response.status == 500
    assert response.refusal == {
        "error": "Folio failed with an internal error.",
        "remedy": "The terminal that Folio runs in shows details. Please report them.",
    }
    assert response.all("content-security-policy") == [POLICIES["/"]]


def test_failure_during_a_response_reaches_the_server() -> None:
    async def breaks(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        ask(guarded(breaks), "GET", "/", HOST)


# Streams, websockets, lifespan


def test_each_response_piece_arrives_before_the_next_is_made() -> None:
    arrived = asyncio.Event()
    log: list[str] = []

    async def streams(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for number in range(3):
            log.append(f"made {number}")
            await send({"type": "http.response.body", "body": b"%d" % number, "more_body": number < 2})
            await arrived.wait()
            arrived.clear()

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            log.append(f"arrived {message['body'].decode()}")
            arrived.set()

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": [(b"host", b"[::1]:8420")]}
    asyncio.run(guarded(streams)(scope, receive, send))
    assert log == [f"{what} {number}" for number in range(3) for what in ("made", "arrived")]


def test_app_learns_that_the_client_disconnected() -> None:
    recorder = RecordingApp()
    ask(guarded(recorder), "GET", "/", HOST, pieces=[])
    assert recorder.disconnected


def test_websocket_is_refused_and_lifespan_passed_on() -> None:
    reached: list[str] = []
    sent: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        reached.append(scope["type"])

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    for kind in ("websocket", "lifespan"):
        asyncio.run(guarded(app)({"type": kind, "path": "/", "headers": [(b"host", b"localhost:8420")]}, receive, send))
    assert reached == ["lifespan"]
    assert sent == [{"type": "websocket.close", "code": 1008}]
