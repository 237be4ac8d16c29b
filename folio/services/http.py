"""The one module that speaks HTTP to the internet: rates, retries, limits, a cache. Only `folio fetch` and
`folio serve --online` use it.

Every request goes to a service of services/addresses.py or to a host that PDFs are taken from, over https, to a public
address. What comes back is bounded while it arrives.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from ssl import SSLContext
from threading import Lock
from time import monotonic
from typing import Any, BinaryIO, TypeVar
from urllib.parse import urljoin

import httpcore
import httpx
from pyrate_limiter import InMemoryBucket, Rate, RateItem
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt

from folio import __version__
from folio.errors import DiskFull, SourceError
from folio.services.addresses import NAMES, PDF_RATE, RATES, Service, ServiceAddresses, host_of
from folio.services.cache import Clock, Reply, ResponseCache, SystemClock
from folio.system.files import unusable
from folio.system.transport import PooledTransport

# What a server sends, bounded while it arrives: answers, PDFs, refusals, and how long it asks to wait.

LONGEST_WAIT_S = 120.0  # that a server may ask for; beyond, it is asked no more
REDIRECTED = frozenset({301, 302, 303, 307, 308})
REMEDY = "Try again later."
_PASSING = frozenset({429, 500, 502, 503, 504})
_CHUNK = 2**16  # bytes
_HEAD = 4096  # bytes that tell what a file is
_TAIL = 2048  # bytes in which a PDF says that it ends
_HTML = re.compile(rb"\s*(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html|head|\?xml)", re.I)
_ROBOT = re.compile(rb"captcha|robot|just a moment|cloudflare|verify (?:that )?you are|unusual traffic", re.I)


class Passing(Exception):
    """A failure that another attempt may not meet; the text goes behind the server's name."""

    def __init__(self, happened: str, wait_s: float | None = None) -> None:
        """wait_s: seconds that the server asks to wait; None if it does not say."""
        super().__init__(happened)
        self.wait_s = wait_s


def raise_if_passing(response: httpx.Response, now: float) -> None:
    """Raise Passing for a status that says "later". now: seconds since 1970."""
    if response.status_code not in _PASSING:
        return
    wait_s = _retry_after(response.headers.get("retry-after", ""), now)
    if wait_s is not None and wait_s > LONGEST_WAIT_S:
        raise Passing(f"answers {response.status_code} and asks to wait {wait_s:,.0f} s", wait_s)
    raise Passing(f"answers {response.status_code}", wait_s)


def _retry_after(written: str, now: float) -> float | None:
    """Seconds to wait, from a number of them or a date; None if there is neither."""
    if written.strip().isdecimal() and len(written.strip()) < 10:
        return float(written)
    try:
        date = parsedate_to_datetime(written)
    except ValueError:
        return None
    return max(0.0, date.replace(tzinfo=date.tzinfo or UTC).timestamp() - now)


def chunks(response: httpx.Response, largest: int, name: str) -> Iterator[bytes]:
    """The body as it arrives. Raises SourceError when it has more bytes, or a form that was not asked for."""
    if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise SourceError(f"{name} sent its answer compressed, which nobody asked for.", REMEDY)
    declared = response.headers.get("content-length", "")
    too_large = SourceError(f"What {name} sends is larger than {largest / 1e6:,.0f} MB.", "It was left out.")
    if declared.isdecimal() and int(declared[:20]) > largest:
        raise too_large
    total = 0
    for chunk in response.iter_raw(_CHUNK):
        total += len(chunk)
        if total > largest:
            raise too_large
        yield chunk


def write_pdf(response: httpx.Response, file: BinaryIO, largest: int, name: str) -> None:
    """Write a PDF as it arrives. Raises SourceError for anything else, Passing for one without its end."""
    head = tail = b""
    arriving = chunks(response, largest, name)
    for chunk in arriving:
        head += chunk
        if len(head) >= _HEAD:
            break
    if not head.startswith(b"%PDF-"):
        raise SourceError(f"{name} sent {_called(head)} instead of a PDF.", "Get the file in a browser, and ingest it.")
    file.write(head)
    tail = head[-_TAIL:]
    for chunk in arriving:
        file.write(chunk)
        tail = (tail + chunk)[-_TAIL:]
    # Without a length the end of the connection is the end of the file, also when the connection broke.
    is_framed = "content-length" in response.headers or "transfer-encoding" in response.headers
    if not is_framed and b"%%EOF" not in tail:
        raise Passing("broke off before the end of the file")


def refusal(response: httpx.Response, name: str) -> SourceError:
    """Why a server sent nothing, by its status and the beginning of its page."""
    head = b""
    for chunk in response.iter_raw(_HEAD):
        head += chunk
        if len(head) >= _HEAD:
            break
    status = response.status_code
    words = {401: " (it wants a key)", 403: " (it refuses)", 404: " (not found)", 410: " (it is gone)"}
    if _HTML.match(head) and _ROBOT.search(head):
        return SourceError(f"{name} asks whether you are a robot.", "Get the file in a browser, and ingest it.")
    return SourceError(f"{name} answers {status}{words.get(status, '')}.", REMEDY)


def _called(head: bytes) -> str:
    if not head:
        return "nothing"
    if not _HTML.match(head):
        return "something else"
    return 'a page that asks "are you a robot?"' if _ROBOT.search(head) else "a web page"


# Connections to public addresses alone: a host's name is resolved once, checked, and the connection made to that.
#
# A name that stands for an address of a private network is refused, whatever it stands for a moment later.

# host, port -> IP addresses
Resolve = Callable[[str, int], list[str]]


def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host, as the system knows them. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class PublicBackend(httpcore.SyncBackend):
    """Connects to the addresses that `may_connect` allows, and ends what lasts beyond the deadline."""

    def __init__(
        self,
        may_connect: Callable[[str, int, str], bool],
        resolve: Resolve = resolve,
        check_cancelled: Callable[[], None] = lambda: None,
    ) -> None:
        """may_connect: whether a host at a port may be reached at an IP address. check_cancelled: called before each
        read and write; raises to end them."""
        self._may_connect = may_connect
        self._resolve = resolve
        self._check_cancelled = check_cancelled
        self._deadline = float("inf")

    def limit(self, seconds: float) -> None:
        """Let what follows last so many seconds altogether."""
        self._deadline = monotonic() + seconds

    def seconds_left(self, timeout: float | None) -> float:
        """The part of a timeout that the deadline leaves."""
        self._check_cancelled()
        left = self._deadline - monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout("it took too long")
        return left if timeout is None else min(timeout, left)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            addresses = self._resolve(host, port)
        except OSError as error:
            raise httpcore.ConnectError(f"the name {host} is not known") from error
        if not all(self._may_connect(host, port, address) for address in addresses):
            raise SourceError(f"Not asked: {host} is in a private network.", "Nothing was sent there.")
        failed: Exception = httpcore.ConnectError(f"the name {host} is not known")
        for address in addresses:
            try:
                stream = super().connect_tcp(address, port, self.seconds_left(timeout), local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
            else:
                return _Stream(stream, self.seconds_left)
        raise failed


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, seconds_left: Callable[[float | None], float]) -> None:
        self._stream = stream
        self._seconds_left = seconds_left

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._seconds_left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._seconds_left(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(
            self._stream.start_tls(ssl_context, server_hostname, self._seconds_left(timeout)), self._seconds_left
        )

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


# How often each host is asked: sliding windows of pyrate-limiter, with a clock that is given.


class RateLimits:
    """Waits until a request may be sent; thread-safe, so that the clients of one process can share it.

    Pyrate's own Limiter waits by the system's clock alone, so it is not used.
    """

    def __init__(self) -> None:
        self._windows: dict[str, InMemoryBucket] = {}
        self._lock = Lock()

    def wait(self, lane: str, rate: tuple[int, float], clock: Clock) -> None:
        """Wait for a turn. lane: requests of different lanes do not wait for each other.

        rate: so many requests in so many seconds; the first one of a lane counts.
        """
        while wait_ms := self._ms_to_wait(lane, rate, clock):
            clock.sleep(wait_ms / 1000)

    def _ms_to_wait(self, lane: str, rate: tuple[int, float], clock: Clock) -> int:
        """0 if the turn is taken; else the milliseconds after which to ask again, 1 or more."""
        requests, seconds = rate
        with self._lock:
            if lane not in self._windows:
                self._windows[lane] = InMemoryBucket([Rate(requests, round(seconds * 1000))])
            window = self._windows[lane]
            if window.put(turn := RateItem(lane, int(clock.now() * 1000))):
                return 0
            wait_ms = window.waiting(turn)
        assert isinstance(wait_ms, int)
        return max(1, wait_ms)


LARGEST_ANSWER = 32 * 2**20  # bytes
_SILENCE_S = 30.0  # until a read or a connection fails
_ANSWER_S, _FILE_S = 120.0, 900.0  # for all of an answer, all of a file
_ATTEMPTS = 4
_REDIRECTS = 5
_TOLD_S = 5  # a longer wait is told

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks: an address for complaints, which the services answer sooner, and keys."""

    contact_email: str = ""
    openalex_key: str = field(default="", repr=False)
    semanticscholar_key: str = field(default="", repr=False)

    def parameters(self, service: Service) -> dict[str, str]:
        """What is added to a service's addresses."""
        mail = {"email" if service == "unpaywall" else "mailto": self.contact_email} if self.contact_email else {}
        if service == "openalex":
            return mail | ({"api_key": self.openalex_key} if self.openalex_key else {})
        return mail if service in ("crossref", "unpaywall") else {}

    def headers(self, service: Service | None) -> dict[str, str]:
        """The headers of a request to a service, or to a host of PDFs."""
        contact = f" (mailto:{self.contact_email})" if self.contact_email else ""
        found = {"User-Agent": f"folio-papers/{__version__}{contact}", "Accept-Encoding": "identity"}
        if service == "semanticscholar" and self.semanticscholar_key:
            found["x-api-key"] = self.semanticscholar_key
        return found


class HttpClient:
    """Asks the services and downloads files. Use it as a context manager."""

    def __init__(
        self,
        addresses: ServiceAddresses,
        identity: Identity,
        cache: ResponseCache,
        *,
        notice: Callable[[str], None],
        clock: Clock | None = None,
        limits: RateLimits | None = None,
        resolve: Resolve = resolve,
        check_cancelled: Callable[[], None] = lambda: None,
        silence_s: float = _SILENCE_S,
    ) -> None:
        """notice: told about waits and old answers. limits: those of other clients, if there are any.

        check_cancelled: called often while something arrives; raises to cancel. silence_s: until a read fails.
        """
        self.addresses = addresses
        self.identity = identity
        self.requests = 0  # sent so far
        self._cache = cache
        self._keeps = True  # until an answer could not be kept
        self._notice = notice
        self._clock = clock or SystemClock()
        self._limits = limits or RateLimits()
        self._backend = PublicBackend(addresses.may_connect, resolve, check_cancelled)
        transport = PooledTransport(httpx.create_ssl_context(trust_env=False), self._backend)
        self._http = httpx.Client(transport=transport, trust_env=False, timeout=silence_s, follow_redirects=False)
        self._down: dict[str, SourceError] = {}  # services that are asked no more in this run

    def __enter__(self) -> HttpClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def get(self, service: Service, path: str, parameters: Mapping[str, str]) -> Reply:
        """What a service answers, with status 200, 400 or 404; from the disk if it did so within a day.

        An older answer is asked for again, and stands if the service says so or cannot be asked. Raises SourceError.
        """
        address = httpx.URL(f"{self.addresses.api(service)}{path}", params=dict(parameters))
        known = self._cache.get(str(address))
        if known is not None and self._cache.is_fresh(known):
            return known
        headers = self.identity.headers(service)
        if known is not None and known.etag:
            headers["If-None-Match"] = known.etag
        if known is not None and known.modified:
            headers["If-Modified-Since"] = known.modified
        asked = address.copy_merge_params(self.identity.parameters(service))
        try:
            found = self._ask(service, str(address), str(asked), headers)
        except SourceError as error:
            if known is None:
                raise
            self._notice(f"{error.happened} Its answer of an earlier day is used.")
            return known
        if found is None and known is None:
            raise SourceError(f"{NAMES[service]} says that nothing changed, but was not asked that.", REMEDY)
        reply = found or known
        assert reply is not None
        return self._kept(reply) if _is_worth_keeping(service, reply) else reply

    def _kept(self, reply: Reply) -> Reply:
        """The reply, kept for later where that is possible: a run is worth more than its cache."""
        if self._keeps:
            try:
                return self._cache.put(reply)
            except (OSError, DiskFull) as error:
                self._keeps = False
                why = error.happened if isinstance(error, DiskFull) else unusable(error).happened
                self._notice(f"{why} Answers of services are not kept: the next run asks for them again.")
        return reply

    def _ask(self, service: Service, address: str, asked: str, headers: Mapping[str, str]) -> Reply | None:
        """Ask a service; None if the answer that is known still stands."""
        if service in self._down:
            raise self._down[service]
        name = NAMES[service]

        def attempt() -> Reply | None:
            with self._opened(asked, headers, service, _ANSWER_S) as response:
                if response.status_code == 304:
                    return None
                if response.status_code not in (200, 400, 404):
                    raise refusal(response, name)
                data = b"".join(chunks(response, LARGEST_ANSWER, name))
            text = data.decode("utf-8-sig", errors="replace")
            etag, modified = (response.headers.get(header, "")[:1000] for header in ("etag", "last-modified"))
            return Reply(url=address, status=response.status_code, text=text, etag=etag, modified=modified)

        try:
            return self._retried(attempt, name)
        except Passing as error:
            self._down[service] = SourceError(f"{name} {error}.", REMEDY)
            raise self._down[service] from error

    def download(self, url: str, file: BinaryIO, largest: int) -> None:
        """Write the PDF at an address into an empty file. Raises SourceError if it is none or has more bytes."""
        name = host_of(url)
        self.addresses.require_pdf(url)

        def attempt() -> None:
            file.seek(0)
            file.truncate()
            with self._opened(url, self.identity.headers(None), None, _FILE_S) as response:
                if response.status_code != 200:
                    raise refusal(response, name)
                write_pdf(response, file, largest, name)

        try:
            self._retried(attempt, name)
        except Passing as error:
            raise SourceError(f"{name} {error}.", REMEDY) from error

    def _retried(self, attempt: Callable[[], ResultT], name: str) -> ResultT:
        """Try until it succeeds or there is no hope. Raises SourceError, Passing."""

        def before_sleep(state: RetryCallState) -> None:
            if state.next_action and state.next_action.sleep >= _TOLD_S:
                self._notice(f"{name} is asked again in {state.next_action.sleep:.0f} s.")

        retrying = Retrying(
            retry=retry_if_exception(_has_hope),
            wait=_seconds_to_wait,
            stop=stop_after_attempt(_ATTEMPTS),
            sleep=self._clock.sleep,
            before_sleep=before_sleep,
            reraise=True,
        )
        return retrying(attempt)

    @contextmanager
    def _opened(
        self, url: str, headers: Mapping[str, str], service: Service | None, seconds: float
    ) -> Iterator[httpx.Response]:
        """A response whose body is still to be read, after its redirects. service: None for a PDF.

        Raises SourceError, Passing, also while the body is read.
        """
        sent = dict(headers)
        self._backend.limit(seconds)
        try:
            for _ in range(_REDIRECTS + 1):
                lane = service or f"PDFs of {host_of(url)}"
                self._limits.wait(lane, RATES[service] if service else PDF_RATE, self._clock)
                self.requests += 1
                with self._http.stream("GET", url, headers=sent) as response:
                    if response.status_code not in REDIRECTED:
                        raise_if_passing(response, self._clock.now())
                        yield response
                        return
                    target = _joined(url, response.headers.get("location", ""))
                if service:
                    self.addresses.require_api(target)
                else:
                    self.addresses.require_redirect(target)
                if host_of(target) != host_of(url):
                    sent.pop("x-api-key", None)
                url = target
        except httpx.TimeoutException as error:
            raise Passing("did not answer in time") from error
        except httpx.InvalidURL as error:
            raise SourceError(f"{host_of(url)} sent Folio to something that is no address.", REMEDY) from error
        except httpx.HTTPError as error:
            raise Passing(f"could not be reached, or broke off ({error})") from error
        raise SourceError(f"{host_of(url)} redirects without end.", REMEDY)


def _is_worth_keeping(service: Service, reply: Reply) -> bool:
    """Whether an answer may stand for a day: not one that is cut or that says that the question was wrong."""
    if reply.status != 200:
        return reply.status == 404
    if reply.url.endswith("/x-bibtex"):
        return reply.text.rstrip().endswith("}")
    if service == "arxiv":
        return reply.text.rstrip().endswith("</feed>")
    try:
        json.loads(reply.text)
    except (ValueError, RecursionError):
        return False
    return True


def _joined(url: str, location: str) -> str:
    try:
        return urljoin(url, location)
    except ValueError:
        return ""


def _has_hope(error: BaseException) -> bool:
    return isinstance(error, Passing) and (error.wait_s or 0) <= LONGEST_WAIT_S


def _seconds_to_wait(state: RetryCallState) -> float:
    """What the server asked for; else twice as long each time."""
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, Passing) and error.wait_s is not None:
        return error.wait_s
    return float(2 ** (state.attempt_number - 1))
