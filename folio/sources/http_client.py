"""The one module that speaks HTTP to the internet: rates, retries, limits, a cache. Only `folio fetch` and
`folio serve --online` use it.

Every request goes to a service of service_addresses.py or to a host that PDFs are taken from, over https, to a public
address. What comes back is bounded while it arrives.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO, TypeVar
from urllib.parse import urljoin

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt

from folio import __version__
from folio.errors import DiskFull, SourceError
from folio.files import unusable
from folio.pooled_transport import PooledTransport
from folio.sources.clock import Clock, SystemClock
from folio.sources.http_body import (
    LONGEST_WAIT_S,
    REDIRECTED,
    REMEDY,
    Passing,
    chunks,
    raise_if_passing,
    refusal,
    write_pdf,
)
from folio.sources.public_network import PublicBackend, Resolve, resolve
from folio.sources.rate_limits import RateLimits
from folio.sources.response_cache import Reply, ResponseCache
from folio.sources.service_addresses import NAMES, PDF_RATE, RATES, Service, ServiceAddresses, host_of

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
