"""Opens the services: for a run of `folio fetch`, and for each request of `folio serve --online`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from folio.papers.identifiers import Identifier
from folio.papers.model import Paper
from folio.papers.work import Work
from folio.services.addresses import InternetAccess, ServiceAddresses
from folio.services.answers import SearchQuery, SearchSource
from folio.services.cache import CancellableClock, ResponseCache, SystemClock
from folio.services.citations import follow
from folio.services.download import download_work
from folio.services.http import HttpClient, Identity, RateLimits
from folio.services.keep import Candidate, Direction, Followed
from folio.services.lookup import Lookup
from folio.store.works import KeptWork

MOST_LINKED = 200  # cited works looked up for a paper, and as many citing works


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
