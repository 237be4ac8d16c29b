"""HTTP to the internet: rates, retries, limits, a cache. No other module does it, and only `folio fetch`
and, with --online, `folio ask` and `folio serve` use it.

Every request goes over https to a service or a PDF host of services/addresses.py, at a public IP address: a host's name
is resolved once, and the connection is made to the address that was checked. Replies are bounded while they arrive.
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

from folio.errors import DiskFull, SourceError
from folio.services.addresses import LANES, NAMES, PDF_RATE, RATES, Service, ServiceAddresses, host_of
from folio.services.cache import Clock, Reply, ResponseCache, SystemClock
from folio.system.files import unusable
from folio.system.transport import PooledTransport
from folio.version import __version__

LARGEST_ANSWER = 32 * 2**20  # bytes
_LONGEST_WAIT_S = 120.0  # a service that asks for a longer wait is not asked again
_SILENCE_S = 30.0  # until a read or a connection fails
_ANSWER_S, _FILE_S = 120.0, 900.0  # for a whole reply, a whole file
_ATTEMPTS = 4
_REDIRECTS = 5
_REPORTED_S = 5  # a wait from this length on is reported
_REDIRECTED = frozenset({301, 302, 303, 307, 308})
_TEMPORARY = frozenset({429, 500, 502, 503, 504})
_XML_ENDS: dict[Service, str] = {"arxiv": "</feed>", "arxivoai": "</OAI-PMH>"}
_CHUNK = 2**16  # bytes
_HEAD = 4096  # bytes that show the type of a file
_TAIL = 2048  # bytes in which the end mark of a PDF stands
_HTML = re.compile(rb"\s*(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html|head|\?xml)", re.I)
_ROBOT = re.compile(rb"captcha|robot|just a moment|cloudflare|verify (?:that )?you are|unusual traffic", re.I)
_REMEDY = "Try again later."

ResultT = TypeVar("ResultT")
Resolve = Callable[[str, int], list[str]]  # host, port -> IP addresses


def resolve(host: str, port: int) -> list[str]:
    """The IP addresses of a host, from the system's resolver. Raises OSError."""
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in infos))


@dataclass(frozen=True, slots=True)
class Identity:
    """How Folio identifies itself: a contact address, for which services answer sooner, and keys."""

    contact_email: str = ""
    openalex_key: str = field(default="", repr=False)
    semanticscholar_key: str = field(default="", repr=False)

    def parameters(self, service: Service) -> dict[str, str]:
        """The parameters that identify Folio in a service's addresses."""
        mail = {"email" if service == "unpaywall" else "mailto": self.contact_email} if self.contact_email else {}
        if service == "openalex":
            return mail | ({"api_key": self.openalex_key} if self.openalex_key else {})
        return mail if service in ("crossref", "unpaywall") else {}

    def headers(self, service: Service | None) -> dict[str, str]:
        """The headers of a request. service: None for a PDF host."""
        contact = f" (mailto:{self.contact_email})" if self.contact_email else ""
        headers = {"User-Agent": f"folio-papers/{__version__}{contact}", "Accept-Encoding": "identity"}
        if service == "semanticscholar" and self.semanticscholar_key:
            headers["x-api-key"] = self.semanticscholar_key
        return headers


class HttpClient:
    """Sends requests to the services and downloads files. A context manager."""

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
        """notice: gets a sentence about each wait and each outdated reply. limits: shared with other clients.

        check_cancelled: called often while data arrives; raises to cancel. silence_s: until a read fails.
        """
        self.addresses = addresses
        self.identity = identity
        self.requests = 0  # sent so far
        self._cache = cache
        self._can_store = True  # until a reply could not be stored
        self._notice = notice
        self._clock = clock or SystemClock()
        self._limits = limits or RateLimits()
        self._backend = _PublicBackend(addresses.may_connect, resolve, check_cancelled)
        transport = PooledTransport(self._backend)
        self._http = httpx.Client(transport=transport, trust_env=False, timeout=silence_s, follow_redirects=False)
        self._down: dict[str, SourceError] = {}  # services that failed and are not asked again

    def __enter__(self) -> HttpClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def get(self, service: Service, path: str, parameters: Mapping[str, str], *, is_cached: bool = True) -> Reply:
        """A service's reply, with status 200, 400 or 404; from the cache if it is less than a day old.

        is_cached: whether the reply may come from the cache.
        An older reply is revalidated; it is still used if it has not changed or the service fails. Raises SourceError.
        """
        address = httpx.URL(f"{self.addresses.api(service)}{path}", params=dict(parameters))
        known = self._cache.get(str(address)) if is_cached else None
        if known is not None and self._cache.is_fresh(known):
            return known
        headers = self.identity.headers(service)
        if known is not None and known.etag:
            headers["If-None-Match"] = known.etag
        if known is not None and known.modified:
            headers["If-Modified-Since"] = known.modified
        identified = address.copy_merge_params(self.identity.parameters(service))
        try:
            reply = self._ask(service, str(address), str(identified), headers) or known
        except SourceError as error:
            if known is None:
                raise
            self._notice(f"{error.happened} Its answer of an earlier day is used.")
            return known
        if reply is None:
            raise SourceError(f"{NAMES[service]} says that nothing changed, but was not asked that.", _REMEDY)
        return self._stored(reply) if _is_worth_storing(service, reply) else reply

    def _stored(self, reply: Reply) -> Reply:
        """The reply, stored in the cache if possible; a failure to store does not end the run."""
        if self._can_store:
            try:
                return self._cache.put(reply)
            except (OSError, DiskFull) as error:
                self._can_store = False
                why = error.happened if isinstance(error, DiskFull) else unusable(error).happened
                self._notice(f"{why} Answers of services are not kept: the next run asks for them again.")
        return reply

    def _ask(self, service: Service, address: str, identified: str, headers: Mapping[str, str]) -> Reply | None:
        """Send a request; None if the cached reply is still valid. identified: the address with keys, not stored."""
        if service in self._down:
            raise self._down[service]
        name = NAMES[service]

        def attempt() -> Reply | None:
            with self._opened(identified, headers, service, _ANSWER_S) as response:
                if response.status_code == 304:
                    return None
                if response.status_code not in (200, 400, 404):
                    raise _refusal(response, name)
                data = b"".join(_chunks(response, LARGEST_ANSWER, name))
            text = data.decode("utf-8-sig", errors="replace")
            etag, modified = (response.headers.get(header, "")[:1000] for header in ("etag", "last-modified"))
            return Reply(url=address, status=response.status_code, text=text, etag=etag, modified=modified)

        try:
            return self._retried(attempt, name)
        except _TemporaryError as error:
            self._down[service] = SourceError(f"{name} {error}.", _REMEDY)
            raise self._down[service] from error

    def download(self, url: str, file: BinaryIO, largest: int) -> None:
        """Write the PDF at an address into an empty file. Raises SourceError if it is not a PDF or is too large."""
        name = host_of(url)
        self.addresses.require_pdf(url)

        def attempt() -> None:
            file.seek(0)
            file.truncate()
            with self._opened(url, self.identity.headers(None), None, _FILE_S) as response:
                if response.status_code != 200:
                    raise _refusal(response, name)
                _write_pdf(response, file, largest, name)

        try:
            self._retried(attempt, name)
        except _TemporaryError as error:
            raise SourceError(f"{name} {error}.", _REMEDY) from error

    def _retried(self, attempt: Callable[[], ResultT], name: str) -> ResultT:
        """Try until it succeeds or another try is pointless. Raises SourceError, _TemporaryError."""

        def before_sleep(state: RetryCallState) -> None:
            if state.next_action and state.next_action.sleep >= _REPORTED_S:
                self._notice(f"{name} is asked again in {state.next_action.sleep:.0f} s.")

        retrying = Retrying(
            retry=retry_if_exception(_is_worth_retrying),
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
        """A response with its body unread, after redirects. service: None for a PDF.

        Raises SourceError, _TemporaryError, also while the body is read.
        """
        sent = dict(headers)
        self._backend.limit(seconds)
        try:
            for _ in range(_REDIRECTS + 1):
                lane = LANES.get(service, service) if service else f"PDFs of {host_of(url)}"
                self._limits.wait(lane, RATES[service] if service else PDF_RATE, self._clock)
                self.requests += 1
                with self._http.stream("GET", url, headers=sent) as response:
                    if response.status_code not in _REDIRECTED:
                        _raise_if_temporary(response, self._clock.now())
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
            raise _TemporaryError("did not answer in time") from error
        except httpx.InvalidURL as error:
            raise SourceError(f"{host_of(url)} redirects to an invalid address.", _REMEDY) from error
        except httpx.HTTPError as error:
            raise _TemporaryError(f"could not be reached, or broke off ({error})") from error
        raise SourceError(f"{host_of(url)} redirects without end.", _REMEDY)


def _is_worth_storing(service: Service, reply: Reply) -> bool:
    """Whether a reply may be reused for a day: not if it is cut off or reports a bad request."""
    if reply.status != 200:
        return reply.status == 404
    if reply.url.endswith("/x-bibtex"):
        return reply.text.rstrip().endswith("}")
    if service in _XML_ENDS:
        return reply.text.rstrip().endswith(_XML_ENDS[service])
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


def _is_worth_retrying(error: BaseException) -> bool:
    return isinstance(error, _TemporaryError) and (error.wait_s or 0) <= _LONGEST_WAIT_S


def _seconds_to_wait(state: RetryCallState) -> float:
    """The wait that the server asked for; else twice as long each time."""
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, _TemporaryError) and error.wait_s is not None:
        return error.wait_s
    return float(2 ** (state.attempt_number - 1))


class RateLimits:
    """Waits until a request may be sent; thread-safe, so that the clients of one process can share it.

    Built on pyrate-limiter's sliding windows; its own Limiter can only wait by the system's clock.
    """

    def __init__(self) -> None:
        self._windows: dict[str, InMemoryBucket] = {}
        self._lock = Lock()

    def wait(self, lane: str, rate: tuple[int, float], clock: Clock) -> None:
        """Wait for a turn. lane: requests in different lanes do not wait for each other.

        rate: number of requests, and the window in seconds; the first rate of a lane holds.
        """
        while wait_ms := self._ms_to_wait(lane, rate, clock):
            clock.sleep(wait_ms / 1000)

    def _ms_to_wait(self, lane: str, rate: tuple[int, float], clock: Clock) -> int:
        """0 if the turn is taken; else the milliseconds until the next try, at least 1."""
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


class _TemporaryError(Exception):
    """A failure that may not occur again; the text follows the server's name."""

    def __init__(self, happened: str, wait_s: float | None = None) -> None:
        """wait_s: seconds that the server asks to wait; None if it does not say."""
        super().__init__(happened)
        self.wait_s = wait_s


def _raise_if_temporary(response: httpx.Response, now: float) -> None:
    """Raise _TemporaryError for a status that means "later". now: seconds since 1970."""
    if response.status_code not in _TEMPORARY:
        return
    wait_s = _retry_after(response.headers.get("retry-after", ""), now)
    if wait_s is not None and wait_s > _LONGEST_WAIT_S:
        raise _TemporaryError(f"answers {response.status_code} and asks to wait {wait_s:,.0f} s", wait_s)
    raise _TemporaryError(f"answers {response.status_code}", wait_s)


def _retry_after(header: str, now: float) -> float | None:
    """Seconds to wait, from a number of seconds or a date; None if the header has neither."""
    if header.strip().isdecimal() and len(header.strip()) < 10:
        return float(header)
    try:
        date = parsedate_to_datetime(header)
    except ValueError:
        return None
    return max(0.0, date.replace(tzinfo=date.tzinfo or UTC).timestamp() - now)


def _chunks(response: httpx.Response, largest: int, name: str) -> Iterator[bytes]:
    """The body as it arrives. Raises SourceError if it has more than `largest` bytes or is compressed."""
    if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise SourceError(f"{name} sent a compressed reply without being asked for one.", _REMEDY)
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


def _write_pdf(response: httpx.Response, file: BinaryIO, largest: int, name: str) -> None:
    """Write a PDF as it arrives. Raises SourceError for any other file, _TemporaryError for an incomplete PDF."""
    arriving = _chunks(response, largest, name)
    head = _head(arriving)
    if not head.startswith(b"%PDF-"):
        kind = _described(head)
        raise SourceError(f"{name} sent {kind} instead of a PDF.", "Get the file in a browser, and ingest it.")
    file.write(head)
    tail = head[-_TAIL:]
    for chunk in arriving:
        file.write(chunk)
        tail = (tail + chunk)[-_TAIL:]
    # Without a length, a broken connection looks like the end of the file.
    is_framed = "content-length" in response.headers or "transfer-encoding" in response.headers
    if not is_framed and b"%%EOF" not in tail:
        raise _TemporaryError("broke off before the end of the file")


def _refusal(response: httpx.Response, name: str) -> SourceError:
    """Why a server did not send the file, by its status and the beginning of its page."""
    head = _head(response.iter_raw(_HEAD))
    status = response.status_code
    words = {401: " (it wants a key)", 403: " (it refuses)", 404: " (not found)", 410: " (it is gone)"}
    if _HTML.match(head) and _ROBOT.search(head):
        return SourceError(f"{name} asks whether you are a robot.", "Get the file in a browser, and ingest it.")
    return SourceError(f"{name} answers {status}{words.get(status, '')}.", _REMEDY)


def _head(arriving: Iterator[bytes]) -> bytes:
    """The first _HEAD bytes or a little more, or all if there are fewer."""
    head = b""
    for chunk in arriving:
        head += chunk
        if len(head) >= _HEAD:
            break
    return head


def _described(head: bytes) -> str:
    if not head:
        return "nothing"
    if not _HTML.match(head):
        return "something else"
    return 'a page that asks "are you a robot?"' if _ROBOT.search(head) else "a web page"


class _PublicBackend(httpcore.SyncBackend):
    """Connects only to the addresses that `may_connect` allows, and ends connections at the deadline."""

    def __init__(
        self, may_connect: Callable[[str, int, str], bool], resolve: Resolve, check_cancelled: Callable[[], None]
    ) -> None:
        """may_connect: host, port, IP address -> whether to connect. check_cancelled: called before each read and
        write; raises to end the connection."""
        self._may_connect = may_connect
        self._resolve = resolve
        self._check_cancelled = check_cancelled
        self._deadline = float("inf")

    def limit(self, seconds: float) -> None:
        """Set the deadline, in seconds from now."""
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
