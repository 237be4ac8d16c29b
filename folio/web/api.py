"""The FastAPI application: the API's routes, the page, and how errors become responses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, FastAPI, Query, Request, UploadFile
from fastapi import Path as InPath
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from fastapi.staticfiles import StaticFiles
from fastapi.telemetry import TelemetryConfig
from sse_starlette import EventSourceResponse
from starlette.types import Message, Receive, Scope, Send

from folio.app import App
from folio.schema_parts import Sha256
from folio.web.bibliography_routes import bibliography_routes
from folio.web.error_responses import handle_errors
from folio.web.fetch_routes import fetch_routes
from folio.web.ingest_events import Stage, StageProgress
from folio.web.openapi_responses import content, event_stream
from folio.web.paper_fetcher import Online
from folio.web.request_guard import ALIVE, AccessRules, RequestGuard
from folio.web.schema import (
    AddedEvent,
    ChatReply,
    ChatRequest,
    CitationsEvent,
    Conversation,
    ConversationId,
    ConversationList,
    ErrorBody,
    FeedbackRequest,
    Health,
    PaperDetails,
    PaperEdits,
    PaperList,
    PaperQuery,
    ProgressEvent,
    RemovedJson,
    SavedEvent,
    SearchReply,
    SearchRequest,
)
from folio.web.service import Service
from folio.web.sse import EventStream, RequestCancelled, RequestThreads, finishing_response, reply_unless_left
from folio.web.upload_routes import upload_routes

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
