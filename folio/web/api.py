"""The FastAPI application: the API's routes, the page, and how errors become responses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir
from typing import Annotated, Any

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, FastAPI, Query, Request, UploadFile
from fastapi import Path as InPath
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from fastapi.staticfiles import StaticFiles
from fastapi.telemetry import TelemetryConfig
from sse_starlette import EventSourceResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from folio.app import App
from folio.bibliography.export import library_bibtex, library_csl_json
from folio.errors import (
    DiskFull,
    FolioError,
    ModelError,
    NetworkOff,
    NotKnown,
    PaperError,
    SourceError,
    StoreBusy,
    StoreMismatch,
    StoreMissing,
    UsageError,
)
from folio.papers.model import Paper
from folio.schema.papers import SHA256, Sha256
from folio.schema.web import (
    CONVERSATION,
    NOT_BLANK,
    UPLOAD,
    YEARS_PATTERN,
    AddedEvent,
    CancelledUploads,
    ChatReply,
    ChatRequest,
    CitationsEvent,
    Conversation,
    ConversationId,
    ConversationList,
    DiscoverQuery,
    DiscoverReply,
    ErrorBody,
    FeedbackRequest,
    FetchRequest,
    FilterRequest,
    Health,
    LibraryCitations,
    PaperCitations,
    PaperDetails,
    PaperEdits,
    PaperList,
    PaperQuery,
    ProgressEvent,
    RemovedJson,
    RetriedUploads,
    SavedEvent,
    SearchReply,
    SearchRequest,
    UploadId,
    UploadJson,
    UploadName,
    UploadsJson,
    error_body,
    event,
    paper_filter,
)
from folio.store import works
from folio.system.files import disk_full, is_full, unusable
from folio.web.fetcher import Online, PaperFetcher
from folio.web.guard import ALIVE, AccessRules, RequestGuard
from folio.web.papers import fitting_papers, library_citations, paper_citations, require_papers
from folio.web.questions import Busy
from folio.web.service import Service
from folio.web.stream import (
    EventStream,
    RequestCancelled,
    RequestThreads,
    Stage,
    StageProgress,
    finishing_response,
    reply_unless_left,
)
from folio.web.uploads import UploadQueue

# How errors become HTTP responses: every one has the same JSON form.

# Status by error class; subclasses come before their base classes.
STATUSES: tuple[tuple[type[FolioError], int], ...] = (
    (NotKnown, 404),
    (NetworkOff, 403),
    (Busy, 409),
    (UsageError, 400),
    (StoreMissing, 409),
    (StoreMismatch, 409),
    (StoreBusy, 409),
    (DiskFull, 507),
    (SourceError, 502),
    (PaperError, 422),
    (ModelError, 503),
)


def handle_errors(web: FastAPI) -> None:
    """Give every error the same JSON form."""

    def respond(status: int, body: ErrorBody) -> JSONResponse:
        return JSONResponse(body.model_dump(), status)

    def respond_to(error: FolioError) -> JSONResponse:
        status = next((status for kind, status in STATUSES if isinstance(error, kind)), 500)
        return respond(status, error_body(error))

    @web.exception_handler(FolioError)
    async def handle_folio_error(_: Request, error: FolioError) -> Response:
        return respond_to(error)

    @web.exception_handler(OSError)
    async def handle_os_error(_: Request, error: OSError) -> Response:
        return respond_to(unusable(error))

    @web.exception_handler(RequestValidationError)
    async def handle_invalid_request(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
        return respond(422, ErrorBody(error=f"{place}: {_invalid(first)}.", remedy="/docs describes every field."))

    @web.exception_handler(HTTPException)
    async def handle_http_error(request: Request, error: HTTPException) -> Response:
        if isinstance(cause := error.__cause__, OSError):  # large bodies are buffered in the temporary folder
            return respond_to(disk_full(Path(gettempdir())) if is_full(cause) else unusable(cause))
        if error.status_code == 400 and request.url.path == "/papers":
            return respond(400, _NO_UPLOAD)
        message = _HTTP.get(error.status_code, str(error.detail))
        response = respond(error.status_code, ErrorBody(error=message, remedy="/docs lists every address."))
        response.headers.update(error.headers or {})
        return response

    @web.exception_handler(RequestCancelled)
    async def handle_cancelled(_: Request, error: RequestCancelled) -> Response:
        return Response(status_code=499)  # nobody reads it


# What a value is not, by the pattern that it does not have: nobody reads a regular expression
PATTERNS = {
    NOT_BLANK: "must not be empty",
    YEARS_PATTERN: "is not a year or a range of years, such as 2014, 2010-2015, 2020- or -1999",
    CONVERSATION: "is not the id of a conversation",
    SHA256: "is not the id of a paper",
    UPLOAD: "is not the id of an upload",
}


def _invalid(error: Mapping[str, Any]) -> str:
    """What is wrong with a field of a request, in words."""
    if error["type"] != "string_pattern_mismatch":
        return str(error["msg"])
    return PATTERNS.get(error["ctx"]["pattern"], "has not the form that it needs")


_HTTP = {
    400: "The request could not be read.",
    404: "There is nothing at this address.",
    405: "This address does not support that method.",
}
_NO_UPLOAD = ErrorBody(
    error="The form could not be read.", remedy="Send one PDF in the field `file`, and no other field or file."
)


# The library, or the papers that are wanted, as a bibliography: /papers.bib and /papers.csl.json.


def bibliography_routes(app: App) -> APIRouter:
    routes = APIRouter(tags=["Papers"])

    def read(wanted: FilterRequest) -> tuple[list[Paper], dict[str, str]]:
        """The papers that are wanted, and their publishers' BibTeX. Raises NotKnown."""
        with suppress(StoreMissing), closing(app.open_library()) as library, library.reading():
            require_papers(library, wanted.papers)
            papers = fitting_papers(library, replace(paper_filter(wanted), ids=frozenset(wanted.papers)))
            return papers, works.publishers_bibtex(library.database, [paper.id for paper in papers])
        return [], {}

    def download(text: str, media_type: str, name: str) -> Response:
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(text, media_type=media_type, headers=headers)

    def content(media_type: str, description: str, schema: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
        return {200: {"description": description, "content": {media_type: {"schema": schema}}}}

    bibtex = content("application/x-bibtex", "The BibTeX file.", {"type": "string"})
    csl_json = content(
        "application/vnd.citationstyles.csl+json",
        "The CSL-JSON file.",
        {"type": "array", "items": {"type": "object"}},
    )

    @routes.get("/papers.bib", response_class=Response, responses=bibtex, summary="Export BibTeX")
    def export_bibtex(wanted: Annotated[FilterRequest, Query()]) -> Response:
        """The papers that are wanted, or all, as BibTeX, the publisher's where it is known. Fields that are not sure
        are left out, with a note that says so."""
        return download(library_bibtex(*read(wanted)), "application/x-bibtex", "folio.bib")

    @routes.post("/papers.bib", response_class=Response, responses=bibtex, summary="Export many as BibTeX")
    def export_chosen_bibtex(wanted: FilterRequest) -> Response:
        """The same, for more papers than an address can hold."""
        return export_bibtex(wanted)

    @routes.get("/papers.csl.json", response_class=Response, responses=csl_json, summary="Export CSL-JSON")
    def export_csl_json(wanted: Annotated[FilterRequest, Query()]) -> Response:
        """The papers that are wanted, or all, as CSL-JSON. Fields that are not sure are left out, with a note that says
        so."""
        text = library_csl_json(read(wanted)[0])
        return download(text, "application/vnd.citationstyles.csl+json", "folio.json")

    @routes.post("/papers.csl.json", response_class=Response, responses=csl_json, summary="Export many as CSL-JSON")
    def export_chosen_csl_json(wanted: FilterRequest) -> Response:
        """The same, for more papers than an address can hold."""
        return export_csl_json(wanted)

    return routes


# The parts of the OpenAPI document that are not JSON: event streams, files, and the errors that stand beside them.

_ERROR = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}}
_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"description": "What happened and what to do.", "content": _ERROR} for status in ("4XX", "5XX")
}


def event_stream(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """The responses of a route that streams events of these kinds, each with a JSON object as data."""
    schema = {
        "type": "object",
        "properties": {
            "event": {"type": "string", "enum": [*kinds, "error"]},
            "data": {"type": "string", "contentMediaType": "application/json"},
        },
        "required": ["event", "data"],
    }
    return {
        200: {"description": "Server-sent events.", "content": {"text/event-stream": {"schema": schema}}},
        **_ERRORS,
    }


def content(media_type: str, description: str) -> dict[int | str, dict[str, Any]]:
    """The responses of a route that returns this media type."""
    found = {media_type: {"schema": {"type": "string"}}}
    return {200: {"description": description, "content": found}, **_ERRORS}


# Searching for papers on the internet and fetching them, and who cites whom: GET /discover, POST /papers/fetch, ...

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


# The queue of uploads: POST /uploads queues a PDF, GET /uploads/events tells how far the queue is, ...

# Seconds between looks whether the queue has changed
_LOOK_S = 0.25
_BODY = {"required": True, "content": {"application/pdf": {"schema": {"type": "string", "format": "binary"}}}}


def upload_routes(queue: UploadQueue) -> APIRouter:
    routes = APIRouter(tags=["Uploads"])

    @routes.post("/uploads", status_code=202, openapi_extra={"requestBody": _BODY})
    async def queue_upload(request: Request, name: Annotated[UploadName, Query()] = "") -> UploadJson:
        """Queue a PDF, sent as the body. It is kept when this replies, and added when those before it are done: the
        client may leave. A body that ends too early is not queued."""
        incoming = await to_thread.run_sync(queue.receive, name)
        refused: FolioError | OSError | None = None
        try:
            async for block in request.stream():
                if refused is None:
                    try:
                        await to_thread.run_sync(incoming.write, block)
                    except (FolioError, OSError) as error:
                        refused = error  # told when all has come: a connection that is cut has no reply
            if refused is not None:
                raise refused
            return await to_thread.run_sync(incoming.commit)
        except ClientDisconnect:
            raise RequestCancelled from None
        finally:
            incoming.discard()

    @routes.get("/uploads")
    def list_uploads() -> UploadsJson:
        """The queue: what waits, is being added, or failed. What was added is listed until a client was told."""
        return queue.state()

    @routes.get("/uploads/events", response_class=EventSourceResponse, responses=event_stream("uploads", "done"))
    async def follow_uploads() -> EventSourceResponse:
        """The queue each time it changes, as `uploads`; as `done`, the last event, when nothing waits any more."""
        return EventSourceResponse(_follow(queue))

    @routes.delete("/uploads")
    def cancel_uploads(failed: bool = False) -> CancelledUploads:
        """Cancel all that wait or are being added; with `failed`, forget all that failed."""
        return CancelledUploads(cancelled=queue.cancel_all(failed=failed))

    @routes.delete("/uploads/{upload}", status_code=204)
    def cancel_upload(upload: UploadId) -> None:
        """Take one from the queue. One that is being added is stopped at its next step."""
        queue.cancel(upload)

    @routes.post("/uploads/retry")
    def retry_uploads() -> RetriedUploads:
        """Queue all that failed again."""
        return RetriedUploads(retried=queue.retry_all())

    @routes.post("/uploads/{upload}/retry")
    def retry_upload(upload: UploadId) -> UploadJson:
        """Queue one that failed again."""
        return queue.retry(upload)

    return routes


async def _follow(queue: UploadQueue) -> AsyncIterator[dict[str, str]]:
    version: object = None
    sent = None
    while True:
        if version != queue.version:
            version = queue.version
            state = await to_thread.run_sync(queue.state)
            if state != sent:
                yield event("uploads" if state.active else "done", state)
            if not state.active:
                return
            sent = state
        await asyncio.sleep(_LOOK_S)


STATIC = Path(__file__).resolve().parent / "static"
# Further questions wait. Other requests have their own threads and never wait for an answer.
MAX_CONCURRENT_ANSWERS = 8
# A deep search may take minutes; with slots of their own, they delay no other question.
MAX_CONCURRENT_DEEP_ANSWERS = 4
# A hostile page can take minutes to render, so few requests may wait for pictures at once.
MAX_CONCURRENT_PICTURES = 4

# By default FastAPI sends traces, error details included, to wherever the environment says.
_NO_TELEMETRY: TelemetryConfig = {
    "auto_configure": False,
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
}


def make_web(app: App, rules: AccessRules, online: Online | None = None) -> FastAPI:
    """The API and the page for one store, behind the request guard. online: the services on the internet, if it may ask
    them."""
    service, threads = Service(app, online), RequestThreads()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        await threads.shut_down()
        await to_thread.run_sync(service.close)

    web = FastAPI(
        title="Folio",
        version="1",
        description="Ask questions about a folder of PDF papers and get answers that cite a page for every sentence.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        responses={"4XX": {"model": ErrorBody}, "5XX": {"model": ErrorBody}},
        telemetry=_NO_TELEMETRY,
    )
    handle_errors(web)
    for routes in (
        _question_routes(service, threads),
        _conversation_routes(service),
        _paper_routes(service, threads),
        _file_routes(service),
        bibliography_routes(app),
        fetch_routes(app, service.fetcher, threads),
        upload_routes(service.uploads),
    ):
        web.include_router(routes)
    _add_page(web)
    max_upload = app.limits(1).max_file_mb * 10**6
    limits = {"/papers": max_upload + _MAX_BODY, "/uploads": max_upload}
    web.add_middleware(RequestGuard, rules=rules, limit=lambda path: limits.get(path, _MAX_BODY))
    return web


# Bytes: the largest question with all its paper ids; also enough for the multipart headers around an upload
_MAX_BODY = 10**7


def _question_routes(service: Service, threads: RequestThreads) -> APIRouter:
    routes = APIRouter(tags=["Questions"])
    slots = {
        "quick": CapacityLimiter(MAX_CONCURRENT_ANSWERS),
        "deep": CapacityLimiter(MAX_CONCURRENT_DEEP_ANSWERS),
    }

    @routes.get("/health")
    def get_health() -> Health:
        """What is in the index, which models are in use, and what would improve answers."""
        return service.health()

    @routes.get(ALIVE, status_code=204)
    async def answer_balancer() -> None:
        """That this server answers, and nothing else: for balancers. It needs no token."""

    @routes.post("/search")
    def search(request: SearchRequest) -> SearchReply:
        """Rank passages for a query. No language model is called."""
        return service.questions.search(request)

    @routes.post("/chat")
    async def answer_message(request: Request, question: ChatRequest) -> ChatReply:
        """Answer a message, with citations. If the client disconnects, the answer is cancelled."""
        stream = EventStream(threads)  # its events are not read: only the reply counts
        answer = threads.start(service.questions.ask, question, stream, slots=slots[question.mode])
        return await reply_unless_left(request, answer, stream)

    searching = ("papers", "evidence", "search_again", "search_ended")
    responses = event_stream(*searching, "retrieved", "thinking", "sentence", "checking", "citations", "done")

    @routes.post("/chat/stream", response_class=EventSourceResponse, responses=responses)
    async def stream_answer(question: ChatRequest) -> EventSourceResponse:
        """Answer a message as server-sent events: `retrieved`, each `sentence`, `citations`, then `done` with the whole
        reply; or `error`. `thinking` says that the model thinks before it writes, `checking` how many statements wait
        for their verifier. With the mode "deep", the steps of the search come first: `papers`, each `evidence`,
        `search_again`, `search_ended`."""
        await to_thread.run_sync(service.questions.require_answerable, question)
        stream = EventStream(threads)

        def answer() -> None:
            reply = service.questions.ask(question, stream)
            stream.send("citations", CitationsEvent(citations=reply.citations))
            stream.send("done", reply)

        return finishing_response(stream.run(answer, slots[question.mode]))

    @routes.post("/feedback", status_code=204)
    def record_feedback(request: FeedbackRequest) -> None:
        """Rate an answer as good or bad."""
        service.questions.record_feedback(request.conversation, request.turn, request.feedback)

    return routes


def _conversation_routes(service: Service) -> APIRouter:
    routes = APIRouter(tags=["Conversations"])

    @routes.get("/conversations")
    def list_conversations() -> ConversationList:
        """All conversations, latest first."""
        return service.conversations()

    @routes.get("/conversations/{conversation}")
    def get_conversation(conversation: ConversationId) -> Conversation:
        """A conversation with its answers."""
        return service.conversation(conversation)

    @routes.delete("/conversations/{conversation}", status_code=204)
    def delete_conversation(conversation: ConversationId) -> None:
        """Delete a conversation, and its questions from the log."""
        service.delete_conversation(conversation)

    @routes.get(
        "/conversations/{conversation}/markdown",
        response_class=PlainTextResponse,
        responses=content("text/markdown", "The Markdown file."),
    )
    def export_conversation(conversation: ConversationId) -> Response:
        """Export a conversation as Markdown, with its citations."""
        text, name = service.markdown(conversation)
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(text, media_type="text/markdown", headers=headers)

    @routes.get(
        "/conversations/{conversation}/zotero-note",
        response_class=PlainTextResponse,
        responses=content("text/plain", "The HTML of the note, as text."),
    )
    def export_zotero_note(
        conversation: ConversationId, turn: Annotated[int | None, Query(ge=1, le=1_000_000)] = None
    ) -> Response:
        """A conversation, or one answer of it, as the HTML of a Zotero note with links to the cited pages."""
        return PlainTextResponse(service.zotero_note(conversation, turn))

    return routes


def _paper_routes(service: Service, threads: RequestThreads) -> APIRouter:
    routes = APIRouter(tags=["Papers"])
    one_at_a_time = CapacityLimiter(1)

    @routes.get("/papers", response_model=PaperList, responses={304: {"description": "It has not changed."}})
    def list_papers(request: Request, query: Annotated[PaperQuery, Query()], response: Response) -> Any:
        """The papers that are wanted, or all, and the files that could not be read. All of them have an `ETag`; with it
        in `If-None-Match`, the reply is 304 while nothing was added, changed or removed."""
        if query == PaperQuery():
            tag = service.papers_tag()
            if tag == request.headers.get("If-None-Match"):
                return Response(status_code=304, headers={"ETag": tag})
            response.headers["ETag"] = tag
        return service.papers(query)

    @routes.post(
        "/papers",
        response_class=EventSourceResponse,
        responses=event_stream("saved", "progress", "done"),
        form_limits={"max_files": 1, "max_fields": 0},
    )
    async def add_paper(file: UploadFile) -> EventSourceResponse:
        """Add a PDF. Sends `saved`, `progress`, then `done`; or `error`. The PDF is read even if the client
        disconnects."""
        upload = await to_thread.run_sync(service.paper_files.save_upload, file.file, file.filename or "")
        stream = EventStream(threads)
        stream.send("saved", SavedEvent(file=upload.file.name))

        def report(stage: Stage, done: int, of: int) -> None:
            stream.send("progress", ProgressEvent(stage=stage, done=done, of=of))

        def ingest() -> None:
            progress = StageProgress(report, threads.check_cancelled)
            outcome = service.paper_files.ingest(upload, progress)
            paper = service.listed_paper(upload.file.sha256)
            stream.send("done", AddedEvent(status=outcome.status, paper=paper, notes=list(outcome.notes)))

        return finishing_response(stream.run(ingest, one_at_a_time))

    @routes.get("/papers/{paper}")
    def get_paper(paper: Sha256) -> PaperDetails:
        """A paper, with every field, where it comes from and whether it is sure, its sections, and BibTeX."""
        return service.paper(paper)

    @routes.patch("/papers/{paper}")
    def edit_paper(paper: Sha256, edits: PaperEdits) -> PaperDetails:
        """Correct what is known about a paper: fields that are named are set, emptied by an empty value, or reset to
        what was read by null. It is kept when the paper is read again or its file is replaced by a newer version."""
        return service.edit(paper, edits)

    @routes.delete("/papers/{paper}")
    def remove_paper(paper: Sha256) -> RemovedJson:
        """Remove a paper from the index. Its file is kept."""
        removed = service.remove(paper)
        return RemovedJson(file=removed.file, kept_at=removed.kept_at)

    return routes


def _file_routes(service: Service) -> APIRouter:
    routes = APIRouter(tags=["Papers"])
    picture_slots = CapacityLimiter(MAX_CONCURRENT_PICTURES)

    @routes.get(
        "/pdf/{paper}",
        response_class=FileResponse,
        responses=content("application/pdf", "The PDF."),
        summary="Get PDF",
    )
    def get_pdf(paper: Sha256) -> FileResponse:
        """The PDF file, whole or in ranges."""
        path = service.pdf(paper)
        return _PdfResponse(path, media_type="application/pdf", filename=path.name, content_disposition_type="inline")

    @routes.get(
        "/papers/{paper}/pages/{page}.png",
        response_class=Response,
        responses=content("image/png", "The picture."),
    )
    async def get_page_picture(
        request: Request,
        paper: Sha256,
        page: Annotated[int, InPath(ge=1, le=10**6)],
        quote: Annotated[list[Annotated[str, Query(max_length=20_000)]], Query(max_length=50)] = [],  # noqa: B006
    ) -> Response:
        """A page as a PNG picture with the quotes marked in yellow. The header `Folio-Marked` has 1 for each quote that
        could be marked and 0 for each that could not."""
        async with picture_slots:
            if await request.is_disconnected():
                raise RequestCancelled
            picture = await to_thread.run_sync(service.picture, paper, page, quote)
        marked = ",".join(str(int(is_highlighted)) for is_highlighted in picture.highlighted)
        headers = {"Folio-Marked": marked, "Cache-Control": "private, max-age=600"}
        return Response(picture.png, media_type="image/png", headers=headers)

    return routes


class _PdfResponse(FileResponse):
    """A PDF, whole or in ranges. A range that does not exist gets an error in the usual form."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = False

        async def send_or_refuse(message: Message) -> None:
            nonlocal refused
            if message["type"] != "http.response.start" or message["status"] < 400:
                if not refused:
                    await send(message)
                return
            refused = True
            body = ErrorBody(
                error="The file has no such range.", remedy="Request bytes that it has, or the whole file."
            )
            kept = {name.decode(): value.decode() for name, value in message["headers"] if name == b"content-range"}
            await JSONResponse(body.model_dump(), message["status"], kept)(scope, receive, send)

        await super().__call__(scope, receive, send_or_refuse)


def _add_page(web: FastAPI) -> None:
    @web.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    @web.get("/docs", include_in_schema=False)
    def docs() -> FileResponse:
        return FileResponse(STATIC / "docs.html")

    web.mount("/assets", StaticFiles(directory=STATIC))
    web.mount("/docs/assets", StaticFiles(packages=[("fastapi_offline", "static")]))
