"""Searching for papers on the internet and fetching them, and who cites whom: GET /discover, POST /papers/fetch, ..."""

from __future__ import annotations

from typing import Annotated

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Query, Request
from sse_starlette import EventSourceResponse

from folio.app import App
from folio.schema_parts import Sha256
from folio.web.fetch_schema import DiscoverQuery, DiscoverReply, FetchRequest, LibraryCitations, PaperCitations
from folio.web.openapi_responses import event_stream
from folio.web.paper_citations import library_citations, paper_citations
from folio.web.paper_fetcher import PaperFetcher
from folio.web.sse import EventStream, RequestThreads, finishing_response, reply_unless_left

MAX_CONCURRENT_SEARCHES = 4


def fetch_routes(app: App, fetcher: PaperFetcher, threads: RequestThreads) -> APIRouter:
    routes = APIRouter(tags=["Papers from the internet"])
    searches, one_at_a_time = CapacityLimiter(MAX_CONCURRENT_SEARCHES), CapacityLimiter(1)

    @routes.get("/discover")
    async def discover_works(request: Request, query: Annotated[DiscoverQuery, Query()]) -> DiscoverReply:
        """Search services on the internet for works, and say which of them are here. Needs ONLINE or `--online`."""
        stream = EventStream(threads)  # its events are not read: only the reply counts
        running = threads.start(fetcher.discover, query, stream.check_cancelled, slots=searches)
        return await reply_unless_left(request, running, stream)

    responses = event_stream("notice", "progress", "added", "failed", "done")

    @routes.post("/papers/fetch", response_class=EventSourceResponse, responses=responses)
    async def fetch_papers(request: FetchRequest) -> EventSourceResponse:
        """Download works and add them, one after the other. Sends `progress` and, for each, `added` or `failed`; then
        `done`. If the client disconnects, no other download begins, and a file that is whole is added. Needs ONLINE or
        `--online`."""
        wanted = await to_thread.run_sync(fetcher.require_fetchable, request.ids)
        stream = EventStream(threads)

        def fetch() -> None:
            stream.send("done", fetcher.fetch(wanted, stream.send, stream.check_cancelled, threads.check_cancelled))

        return finishing_response(stream.run(fetch, one_at_a_time))

    @routes.get("/citations")
    def list_citations() -> LibraryCitations:
        """Which paper of the library cites which, as far as that is kept. Nobody is asked."""
        return library_citations(app)

    @routes.get("/papers/{paper}/citations")
    def list_paper_citations(paper: Sha256) -> PaperCitations:
        """What a paper cites and what cites it, as far as that is kept. Nobody is asked."""
        return paper_citations(app, paper)

    @routes.post("/papers/{paper}/citations")
    async def look_up_citations(request: Request, paper: Sha256) -> PaperCitations:
        """Ask services what a paper cites and what cites it, keep that, and list it. Needs ONLINE or `--online`."""

        def look_up() -> PaperCitations:
            fetcher.look_up_citations(paper, stream.check_cancelled)
            return paper_citations(app, paper)

        stream = EventStream(threads)  # its events are not read: only the reply counts
        return await reply_unless_left(request, threads.start(look_up, slots=searches), stream)

    return routes
