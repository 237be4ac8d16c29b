"""Requests are polite, bounded, and go nowhere else, whatever a server does."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from email.utils import formatdate
from itertools import pairwise
from pathlib import Path

import pytest

from folio.errors import SourceError, UsageError
from folio.services import http
from folio.services.addresses import ServiceAddresses, is_public
from folio.services.cache import ResponseCache
from folio.services.http import HttpClient, Identity
from tests.helpers.permissions import read_only
from tests.helpers.source_server import Answer, FakeClock, SourceServer
from tests.helpers.stores import Notices

ME = Identity("me@example.org", "open-secret", "s2-secret")
PDF = b"%PDF-1.7\n" + b"x" * 5000 + b"\n%%EOF\n"
DAY = 24 * 3600


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def notices() -> Notices:
    return Notices()


@pytest.fixture
def client(server: SourceServer, clock: FakeClock, notices: Notices, tmp_path: Path) -> Iterator[HttpClient]:
    cache = ResponseCache(tmp_path / "cache", clock)
    addresses = ServiceAddresses(server.url)
    with HttpClient(addresses, ME, cache, notice=notices, clock=clock, silence_s=0.5) as made:
        yield made


def fetched(client: HttpClient, url: str, largest: int = 10**6) -> bytes:
    file = io.BytesIO()
    client.download(url, file, largest)
    return file.getvalue()


def refused(client: HttpClient, url: str, largest: int = 10**6) -> str:
    with pytest.raises(SourceError) as caught:
        fetched(client, url, largest)
    return caught.value.happened


def test_an_answer_is_kept_for_a_day(
    server: SourceServer, client: HttpClient, clock: FakeClock, tmp_path: Path
) -> None:
    server.add("/openalex/works/W1", Answer(b'{"id": "W1"}', headers={"ETag": '"7"'}), Answer(status=304))
    first = client.get("openalex", "/works/W1", {"select": "id"})
    assert (first.status, first.text) == (200, '{"id": "W1"}')
    assert server.asked[0].parameters == {"select": "id", "mailto": "me@example.org", "api_key": "open-secret"}
    assert "(mailto:me@example.org)" in server.asked[0].headers["user-agent"]
    assert "x-api-key" not in server.asked[0].headers
    clock.time += DAY - 1
    assert client.get("openalex", "/works/W1", {"select": "id"}) == first
    assert len(server.asked) == 1
    clock.time += 2
    again = client.get("openalex", "/works/W1", {"select": "id"})
    assert (again.text, again.stored) == (first.text, clock.time)
    assert server.asked[1].headers["if-none-match"] == '"7"'
    (kept,) = (tmp_path / "cache").iterdir()
    assert "secret" not in kept.read_text() + repr(ME)
    assert "example.org" not in kept.read_text()


def test_keys_go_to_their_service_alone(server: SourceServer, client: HttpClient) -> None:
    for service in ("arxiv", "openalex", "semanticscholar", "crossref", "unpaywall"):
        client.get(service, "/x", {})
    said = {asked.path: (asked.parameters, asked.headers.get("x-api-key")) for asked in server.asked}
    assert said == {
        "/arxiv/x": ({}, None),
        "/openalex/x": ({"mailto": "me@example.org", "api_key": "open-secret"}, None),
        "/semanticscholar/x": ({}, "s2-secret"),
        "/crossref/x": ({"mailto": "me@example.org"}, None),
        "/unpaywall/x": ({"email": "me@example.org"}, None),
    }


def test_an_old_answer_stands_where_the_service_is_down(
    server: SourceServer, client: HttpClient, clock: FakeClock, notices: Notices
) -> None:
    server.add("/crossref/works/1", Answer(b'"one"'), Answer(status=503))
    client.get("crossref", "/works/1", {})
    clock.time += 2 * DAY
    assert client.get("crossref", "/works/1", {}).text == '"one"'
    assert notices[-1] == "Crossref answers 503. Its answer of an earlier day is used."


def test_an_answer_that_is_no_answer_is_not_kept(server: SourceServer, client: HttpClient, tmp_path: Path) -> None:
    server.add("/crossref/x", Answer(b"{", 200), Answer(b"{}", 400), Answer(b"{}"))
    server.add("/arxiv/x", Answer(b"<feed>"), Answer(b"<feed></feed>"))
    assert [client.get("crossref", "/x", {}).status for _ in range(4)] == [200, 400, 200, 200]
    assert [client.get("arxiv", "/x", {}).text for _ in range(3)] == ["<feed>", "<feed></feed>", "<feed></feed>"]
    assert len(server.asked) == 5
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_a_damaged_cache_is_asked_again(server: SourceServer, client: HttpClient, tmp_path: Path) -> None:
    server.add("/crossref/works/1", Answer(b'"one"'))
    client.get("crossref", "/works/1", {})
    (kept,) = (tmp_path / "cache").iterdir()
    for damage in (b"", b"[]", b'{"url": 7}', b"\xff", kept.read_bytes().replace(b"works/1", b"works/2")):
        kept.write_bytes(damage)
        assert client.get("crossref", "/works/1", {}).text == '"one"'


@pytest.mark.parametrize("obstacle", ["read-only", "a file"])
def test_a_cache_that_cannot_be_written_costs_only_itself(
    server: SourceServer, client: HttpClient, tmp_path: Path, notices: Notices, obstacle: str
) -> None:
    for number in (1, 2):
        server.add(f"/openalex/works/W{number}", Answer(b'{"id": "W%d"}' % number))
    if obstacle == "a file":
        (tmp_path / "cache").write_text("in the way")
    with read_only(tmp_path) if obstacle == "read-only" else nullcontext():
        found = [client.get("openalex", f"/works/W{number}", {}).text for number in (1, 2, 1)]
    assert found == ['{"id": "W1"}', '{"id": "W2"}', '{"id": "W1"}']
    assert len(server.asked) == 3
    (notice,) = notices
    assert notice.startswith(f"{tmp_path / 'cache'}")
    assert notice.endswith("Answers of services are not kept: the next run asks for them again.")


def test_each_service_is_asked_at_its_rate(server: SourceServer, client: HttpClient, clock: FakeClock) -> None:
    times = []
    for number in range(5):
        client.get("arxiv", f"/{number}", {})
        times.append(clock.time)
    assert all(later - earlier >= 3 for earlier, later in pairwise(times))
    assert times[-1] - times[0] < 12.1
    server.add("/pdf/1", Answer(PDF))
    began = clock.time
    for _ in range(4):
        fetched(client, f"{server.url}/pdf/1")
    assert 3 <= clock.time - began < 3.1
    began = clock.time
    for number in range(17):
        client.get("openalex", f"/{number}", {})
    assert 2 <= clock.time - began < 2.1


@pytest.mark.parametrize(
    ("written", "waits"),
    [("7", 7.0), ("", 1.0), ("soon", 1.0), ("-1", 1.0), (formatdate(1_800_000_005, usegmt=True), 5.0)],
)
def test_what_a_server_asks_to_wait_is_waited(
    server: SourceServer, client: HttpClient, clock: FakeClock, written: str, waits: float
) -> None:
    server.add("/crossref/x", Answer(status=429, headers={"Retry-After": written}), Answer(b"ok"))
    assert client.get("crossref", "/x", {}).text == "ok"
    assert clock.slept == [pytest.approx(waits, abs=0.1)]


def test_a_server_that_asks_for_an_hour_is_left_alone(
    server: SourceServer, client: HttpClient, clock: FakeClock
) -> None:
    server.add("/crossref/x", Answer(status=429, headers={"Retry-After": "3600"}))
    for path in ("/x", "/y", "/z"):
        with pytest.raises(SourceError, match="Crossref answers 429 and asks to wait 3,600 s"):
            client.get("crossref", path, {})
    assert len(server.asked) == 1
    assert clock.slept == []


def test_only_a_passing_failure_is_tried_again(server: SourceServer, client: HttpClient, clock: FakeClock) -> None:
    server.add("/crossref/busy", Answer(status=503))
    with pytest.raises(SourceError, match="Crossref answers 503"):
        client.get("crossref", "/busy", {})
    assert clock.slept == [1, 2, 4]
    server.add("/openalex/closed", Answer(status=403))
    with pytest.raises(SourceError, match="OpenAlex answers 403"):
        client.get("openalex", "/closed", {})
    assert server.paths() == ["/crossref/busy"] * 4 + ["/openalex/closed"]


@pytest.mark.parametrize(
    "answer", [Answer(is_silent=True), Answer(b"half", length=900), Answer(b"x", length=-5), Answer(b"x", 777)]
)
def test_silence_and_cut_answers_are_failures(server: SourceServer, client: HttpClient, answer: Answer) -> None:
    server.add("/crossref/x", answer)
    with pytest.raises(SourceError, match=r"Crossref (did not answer|could not be reached|answers 777)"):
        client.get("crossref", "/x", {})


def test_a_server_that_drips_is_left_in_time(
    server: SourceServer, client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_ANSWER_S", 0.4)
    server.add("/crossref/x", Answer(length=10**6, drips=True))
    with pytest.raises(SourceError, match="Crossref did not answer in time"):
        client.get("crossref", "/x", {})


def test_giant_and_compressed_answers_are_not_read(
    server: SourceServer, client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "LARGEST_ANSWER", 1000)
    server.add("/crossref/declared", Answer(b"x", length=10**15))
    server.add("/crossref/sent", Answer(b"x" * 5000, length=-1))
    server.add("/crossref/packed", Answer(b"x", headers={"Content-Encoding": "gzip"}))
    for path, match in (("/declared", "larger"), ("/sent", "larger"), ("/packed", "compressed")):
        with pytest.raises(SourceError, match=match):
            client.get("crossref", path, {})


def test_a_pdf_is_written_whole(server: SourceServer, client: HttpClient) -> None:
    server.add("/pdf/1", Answer(PDF[:1000], length=len(PDF)), Answer(PDF[:2000], length=-1), Answer(PDF, length=-1))
    assert fetched(client, f"{server.url}/pdf/1") == PDF
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("answer", "happened"),
    [
        (Answer(b"<!DOCTYPE html><title>Just a moment...</title>"), 'sent a page that asks "are you a robot?" instead'),
        (Answer(b"<html>Sign in</html>"), "sent a web page instead of a PDF"),
        (Answer(b"\x89PNG"), "sent something else instead of a PDF"),
        (Answer(b""), "sent nothing instead of a PDF"),
        (Answer(b"<html>captcha</html>", 403), "asks whether you are a robot"),
        (Answer(b"", 404), "answers 404 (not found)"),
        (Answer(PDF * 300, length=-1), "is larger than 1 MB"),
        (Answer(PDF, length=10**12), "is larger than 1 MB"),
    ],
)
def test_what_is_no_pdf_is_named(server: SourceServer, client: HttpClient, answer: Answer, happened: str) -> None:
    server.add("/pdf/1", answer)
    assert happened in refused(client, f"{server.url}/pdf/1")
    assert len(server.asked) == 1


def test_redirects_are_followed_within_bounds(server: SourceServer, client: HttpClient) -> None:
    server.add("/pdf/1", Answer(status=302, headers={"Location": "/files/1.pdf"}))
    server.add("/files/1.pdf", Answer(PDF))
    assert fetched(client, f"{server.url}/pdf/1") == PDF
    server.add("/pdf/2", Answer(status=302, headers={"Location": "/pdf/2"}))
    assert "redirects without end" in refused(client, f"{server.url}/pdf/2")


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:9/x", "https://127.0.0.1/x", "https://10.0.0.1/x", "https://169.254.169.254/latest/meta-data",
        "file:///etc/passwd", "https://example.org/x", "http://[::1]:80/", "https://[", "ftp://example.org/", "//a@b/",
    ],
)  # fmt: skip
def test_hostile_redirects_are_not_followed(server: SourceServer, client: HttpClient, target: str) -> None:
    server.add("/pdf/1", Answer(status=302, headers={"Location": target}))
    assert refused(client, f"{server.url}/pdf/1")
    server.add("/crossref/x", Answer(status=302, headers={"Location": target}))
    with pytest.raises(SourceError):
        client.get("crossref", "/x", {})
    assert server.paths() == ["/pdf/1", "/crossref/x"]


# Without a stand-in: nothing below opens a connection.

PRIVATE = ["127.0.0.1", "10.1.2.3", "192.168.0.1", "169.254.169.254", "::1", "fe80::1%eth0", "fc00::1", "0.0.0.0", "x",
           "::ffff:127.0.0.1", "::ffff:10.0.0.1", "2002:7f00:1::", "64:ff9b::7f00:1", "224.0.0.1",
           "100.64.0.1"]  # fmt: skip


def test_private_addresses_are_known() -> None:
    assert [address for address in PRIVATE if is_public(address)] == []
    assert [is_public(address) for address in ("151.101.3.42", "2a04:4e42::810")] == [True, True]


@pytest.fixture
def real(tmp_path: Path, clock: FakeClock, notices: Notices) -> Callable[..., HttpClient]:
    def make(*addresses: str) -> HttpClient:
        cache = ResponseCache(tmp_path, clock)
        found = list(addresses)
        return HttpClient(ServiceAddresses(), ME, cache, notice=notices, clock=clock, resolve=lambda host, port: found)

    return make


def test_a_name_for_a_private_address_is_refused(real: Callable[..., HttpClient]) -> None:
    for address in PRIVATE:
        with real("151.101.3.42", address) as client:
            with pytest.raises(SourceError, match=r"export\.arxiv\.org is in a private network"):
                client.get("arxiv", "/query", {})
            assert "arxiv.org is in a private network" in refused(client, "https://arxiv.org/pdf/1")


@pytest.mark.parametrize(
    "url",
    [
        "http://arxiv.org/pdf/1", "https://example.org/1.pdf", "https://arxiv.org.example.org/1", "https://arxiv.org:8/1",
        "https://arxiv.org@example.org/1", "https://me@arxiv.org/1", "https://127.0.0.1/1", "http://127.0.0.1:8000/1",
        "https://notarxiv.org/1", "file:///etc/passwd", "", "https:///x", "https://[::1]/", "javascript:1",
        "https://example.org\\.arxiv.org/", "https://arxiv.org/a b", "https://arxiv.org\n.example.org/",
    ],
)  # fmt: skip
def test_pdfs_come_from_known_hosts_over_https(real: Callable[..., HttpClient], url: str) -> None:
    with real() as client:
        assert refused(client, url).startswith("Not asked: ")
        assert client.requests == 0


def test_hosts_of_pdfs_may_redirect_to_public_https_alone() -> None:
    addresses = ServiceAddresses()
    addresses.require_redirect("https://files.example.org/1.pdf")
    for url in ("http://files.example.org/1.pdf", "https://x:99/", "https://a@b/", "data:,x"):
        with pytest.raises(SourceError):
            addresses.require_redirect(url)
    with pytest.raises(SourceError):
        addresses.require_api("https://files.example.org/1.pdf")


@pytest.mark.parametrize(
    "url", ["http://example.org:80", "https://127.0.0.1:80", "http://127.0.0.1", "http://10.0.0.1:80", "x", "http://["]
)
def test_a_stand_in_is_on_this_computer(url: str) -> None:
    with pytest.raises(UsageError, match="SOURCES_STAND_IN"):
        ServiceAddresses(url)
