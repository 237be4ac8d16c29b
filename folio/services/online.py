"""Opens the services: for `folio fetch`, for `folio ask --online`, and for each request of `folio serve --online`.

Searches for a question go to all services at once, and several papers are downloaded at once. Each thread has a client
of its own; all of them share the rates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from threading import Event
from typing import TypeVar

from folio.errors import SourceError, UsageError
from folio.papers.identifiers import Identifier
from folio.papers.model import Paper
from folio.papers.work import Work
from folio.services import arxiv, crossref, europepmc, openalex, semantic_scholar
from folio.services.addresses import NAMES, InternetAccess, Service, ServiceAddresses
from folio.services.answers import SearchQuery, SearchSource
from folio.services.cache import CancellableClock, ResponseCache, SystemClock
from folio.services.citations import follow
from folio.services.download import download_work
from folio.services.http import HttpClient, Identity, RateLimits
from folio.services.keep import Candidate, Direction, Followed
from folio.services.lookup import Lookup
from folio.store.works import KeptWork

MOST_LINKED = 200  # cited works looked up for a paper, and as many citing works
MOST_FOUND = 10  # works of one search at one service
AT_ONCE = 4  # downloads
_SEARCHES: dict[Service, Callable[[HttpClient, SearchQuery], list[Work]]] = {
    "arxiv": arxiv.search,
    "openalex": openalex.search,
    "semanticscholar": semantic_scholar.search,
    "crossref": crossref.search,
    "europepmc": europepmc.search,
}


ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
Check = Callable[[], None]  # raises to cancel


def _at_once(
    run: Callable[[ItemT, Check], ResultT], items: Sequence[ItemT], most: int, check_cancelled: Check
) -> list[ResultT]:
    """The results of calls in threads, `most` at once. If one fails, or this thread is interrupted, the others end."""
    stopped = Event()

    def check() -> None:
        if stopped.is_set():
            raise CancelledError
        check_cancelled()

    pool = ThreadPoolExecutor(most)
    try:
        return list(pool.map(lambda item: run(item, check), items))
    finally:
        stopped.set()
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def open_lookup(
    access: InternetAccess,
    notice: Callable[[str], None],
    *,
    limits: RateLimits | None = None,
    check_cancelled: Callable[[], None] = lambda: None,
) -> Iterator[Lookup]:
    """The services, over the network.

    notice: gets a sentence about each wait and failure. limits: shared with other lookups. check_cancelled: called
    often; raises to cancel.
    """
    identity = Identity(access.contact_email, access.openalex_key, access.semanticscholar_key)
    cache = ResponseCache(access.cache_folder, SystemClock())
    cache.drop_old()
    with HttpClient(
        ServiceAddresses(access.stand_in),
        identity,
        cache,
        notice=notice,
        clock=CancellableClock(check_cancelled),
        limits=limits,
        check_cancelled=check_cancelled,
    ) as client:
        yield Lookup(client, notice)


class OnlineServices:
    """Opens the services for concurrent requests, which share the rate limits. Thread-safe."""

    def __init__(self, access: InternetAccess) -> None:
        """Raises UsageError for a stand-in that is not on this computer."""
        ServiceAddresses(access.stand_in)
        self._access = access
        self._limits = RateLimits()

    def search_all(
        self, searches: Sequence[str], notice: Callable[[str], None], check_cancelled: Check
    ) -> list[Work]:
        """The works that the services find for these searches, the first of each search and service first.

        Every service gets every search, word for word. notice: gets a sentence about each failure, from any thread.
        Raises SourceError if no service answered.
        """

        def ask(name: Service, check_cancelled: Check) -> list[list[Work]] | None:
            """The works for each search; None if the service answered none."""
            found: list[list[Work]] = []
            answered = False
            with open_lookup(self._access, notice, limits=self._limits, check_cancelled=check_cancelled) as lookup:
                for words in searches:
                    try:
                        found.append(_SEARCHES[name](lookup.client, SearchQuery(words, most=MOST_FOUND)))
                        answered = True
                    except SourceError as error:
                        notice(error.happened)
                        break  # it would fail again
                    except UsageError as error:
                        notice(f"{NAMES[name]}: {error.happened}")
            return found if answered else None

        replies = _at_once(ask, list(_SEARCHES), len(_SEARCHES), check_cancelled)
        if all(reply is None for reply in replies):
            raise SourceError("No service answered.", "Check the connection, or try again later.")
        lists = [works for reply in replies for works in reply or ()]
        return [work for row in zip_longest(*lists) for work in row if work is not None]

    def download_all(
        self,
        wanted: Sequence[Candidate],
        notice: Callable[[str], None],
        on_end: Callable[[], None],
        check_cancelled: Check,
    ) -> list[Candidate]:
        """Download the missing files, several at once; returns the works whose file is present then, in their order.

        notice: gets a sentence about each failure, on_end is called after each work; both from any thread. What was
        complete stays when it is cancelled or fails. Raises DiskFull, OSError.
        """

        def fetch(each: Candidate, check_cancelled: Check) -> bool:
            with self.opened(notice, check_cancelled) as services:
                is_present = services.download(each, lambda why: notice(f'"{each.work.title[:80]}": {why}'))
            on_end()
            return is_present

        present = _at_once(fetch, wanted, AT_ONCE, check_cancelled)
        return [each for each, is_present in zip(wanted, present, strict=True) if is_present]

    @contextmanager
    def opened(self, notice: Callable[[str], None], check_cancelled: Callable[[], None]) -> Iterator[OpenServices]:
        """The services for one request. See open_lookup."""
        with open_lookup(self._access, notice, limits=self._limits, check_cancelled=check_cancelled) as lookup:
            yield OpenServices(lookup, self._access.largest_mb * 10**6)


@dataclass(frozen=True, slots=True)
class OpenServices:
    """The services as a web request uses them."""

    lookup: Lookup
    largest: int  # bytes of a PDF

    def search(self, query: SearchQuery, source: SearchSource | None) -> list[list[Work]]:
        return self.lookup.search(query, source)

    def find(self, identifiers: Sequence[Identifier]) -> list[Work | None]:
        return self.lookup.find(identifiers)

    def follow(self, paper: Paper, kept: Sequence[KeptWork]) -> list[Followed]:
        """The works that a paper cites, and the works that cite it. kept: the paper's known work, in its versions."""
        query = SearchQuery("", most=MOST_LINKED)
        papers, known = {paper.id: paper}, {paper.id: kept}
        directions: tuple[Direction, ...] = ("cites", "cited-by")
        return [follow(papers, known, self.lookup, each, query, 1, lambda *_: None) for each in directions]

    def download(self, wanted: Candidate, on_failure: Callable[[str], None]) -> bool:
        """See download_work."""
        return download_work(wanted, self.lookup, self.largest, on_failure)
