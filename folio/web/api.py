"""The web API and the page, over one service: what comes over HTTP, and what goes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
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
from starlette.types import Message, Receive, Scope, Send

from folio.app import App
from folio.errors import (
    DiskFull,
    FolioError,
    ModelError,
    NotKnown,
    PaperError,
    StoreBusy,
    StoreMismatch,
    StoreMissing,
    UsageError,
)
from folio.files import disk_full, is_full, unusable
from folio.ingest.progress import Outcome
from folio.schema import Sha256
from folio.types import SourceFile
from folio.web.request_guard import Allowed, RequestGuard
from folio.web.schema import (
    NOT_BLANK,
    ChatReply,
    ChatRequest,
    Citations,
    Conversation,
    ConversationId,
    ConversationList,
    ErrorBody,
    FeedbackRequest,
    Health,
    IngestProgress,
    PaperDetails,
    PaperList,
    RemovedJson,
    Saved,
    SearchReply,
    SearchRequest,
    TakenIn,
    error_body,
)
from folio.web.service import Busy, Service
from folio.web.sse import Client, Gone, Tell, Work

STATIC = Path(__file__).resolve().parent / "static"
# Answers that are worked on at once; more wait. Everything else has threads of its own, and never waits for an answer.
ANSWERING = 8
# Pictures of pages that are drawn or waited for at once: a hostile page may take its drawer minutes
DRAWING = 4
# Each error with its status, the most special first.
STATUSES: tuple[tuple[type[FolioError], int], ...] = (
    (NotKnown, 404),
    (Busy, 409),
    (UsageError, 400),
    (StoreMissing, 409),
    (StoreMismatch, 409),
    (StoreBusy, 409),
    (DiskFull, 507),
    (PaperError, 422),
    (ModelError, 503),
)

# FastAPI would send traces, with what failed in them, to wherever the environment says.
_NO_TELEMETRY: TelemetryConfig = {
    "auto_configure": False,
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
}
# Errors where what is answered else is no JSON.
_ERROR = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}}
_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"description": "What happened, and what to do.", "content": _ERROR} for status in ("4XX", "5XX")
}


def _stream(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """How a stream of events is described: each of these kinds, its data an object in JSON."""
    told = {
        "type": "object",
        "properties": {
            "event": {"type": "string", "enum": [*kinds, "error"]},
            "data": {"type": "string", "contentMediaType": "application/json"},
        },
        "required": ["event", "data"],
    }
    return {200: {"description": "Server-sent events.", "content": {"text/event-stream": {"schema": told}}}, **_ERRORS}


def make_web(app: App, allowed: Allowed) -> FastAPI:
    """The whole of it over one store, behind the guard."""
    service, work = Service(app), Work()

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        service.warm_up()
        yield
        await work.end()
        await to_thread.run_sync(service.close)

    web = FastAPI(
        title="Folio",
        version="1",
        description="Questions to a folder of PDF papers, answered with a page for every sentence.",
        lifespan=life,
        docs_url=None,
        redoc_url=None,
        responses={"4XX": {"model": ErrorBody}, "5XX": {"model": ErrorBody}},
        telemetry=_NO_TELEMETRY,
    )
    _handle_errors(web)
    for routes in (_answers(service, work), _conversations(service), _papers(service, work)):
        web.include_router(routes)
    _page(web)
    largest = app.limits(1).max_file_mb * 10**6
    web.add_middleware(
        RequestGuard, allowed=allowed, limit=lambda path: largest + _ROOM if path == "/papers" else _ROOM
    )
    return web


# Bytes of a request's body: of the largest question with all its papers, and of what stands around an uploaded file
_ROOM = 10**7


def _answers(service: Service, work: Work) -> APIRouter:
    routes = APIRouter(tags=["Questions"])
    slots = CapacityLimiter(ANSWERING)

    @routes.get("/health")
    def health() -> Health:
        """What is in the store, which models are in use, and what would make it better."""
        return service.health()

    @routes.post("/search")
    def search(asked: SearchRequest) -> SearchReply:
        """Passages for a query, without an answer: no language model is called."""
        return service.search(asked)

    @routes.post("/chat")
    async def chat(request: Request, asked: ChatRequest) -> ChatReply:
        """An answer with its citations, whole. A client that leaves ends it."""
        client = Client(work)
        working = work.begin(service.ask, asked, client, slots=slots)
        try:
            while not (await asyncio.wait([working], timeout=_LOOK_S))[0]:
                if await request.is_disconnected():
                    client.leave()
            return working.result()
        finally:
            client.leave()

    told = _stream("retrieved", "sentence", "citations", "done")

    @routes.post("/chat/stream", response_class=EventSourceResponse, responses=told)
    async def chat_stream(asked: ChatRequest) -> EventSourceResponse:
        """The same as it comes: `retrieved`, each `sentence`, `citations`, `done` with the whole; or `error`."""
        await to_thread.run_sync(service.require_answerable, asked)
        client = Client(work)

        def answer() -> None:
            reply = service.ask(asked, client)
            client.tell("citations", Citations(citations=reply.citations))
            client.tell("done", reply)

        return EventSourceResponse(client.events(answer, slots))

    @routes.post("/feedback", status_code=204)
    def feedback(given: FeedbackRequest) -> None:
        """What an answer was worth."""
        service.mark(given.conversation, given.turn, given.feedback)

    return routes


# Seconds between looks whether a client is still there
_LOOK_S = 0.5


def _conversations(service: Service) -> APIRouter:
    routes = APIRouter(tags=["Conversations"])

    @routes.get("/conversations")
    def conversations() -> ConversationList:
        return service.conversations()

    @routes.get("/conversations/{conversation}")
    def conversation(conversation: ConversationId) -> Conversation:
        return service.conversation(conversation)

    @routes.delete("/conversations/{conversation}", status_code=204)
    def forget(conversation: ConversationId) -> None:
        service.forget(conversation)

    @routes.get(
        "/conversations/{conversation}/markdown", response_class=PlainTextResponse, responses=_kind("text/markdown")
    )
    def markdown(conversation: ConversationId) -> Response:
        """The conversation as Markdown, with its citations."""
        text, name = service.markdown(conversation)
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(text, media_type="text/markdown", headers=headers)

    return routes


def _papers(service: Service, work: Work) -> APIRouter:
    routes = APIRouter(tags=["Papers"])
    one_at_a_time, drawing = CapacityLimiter(1), CapacityLimiter(DRAWING)

    @routes.get("/papers")
    def papers() -> PaperList:
        return service.papers()

    @routes.post("/papers", response_class=EventSourceResponse, responses=_stream("saved", "progress", "done"))
    async def add(file: UploadFile) -> EventSourceResponse:
        """Put a PDF in: `saved`, `progress`, `done`; or `error`. It is read even when the client leaves."""
        upload = await to_thread.run_sync(service.shelf.take_in, file.file, file.filename or "")
        client = Client(work)
        client.tell("saved", Saved(file=upload.file.name))

        def read() -> None:
            outcome = service.shelf.ingest(upload, _Watch(client.tell, work.check_cancelled))
            paper = service.added(upload.file.sha256)
            client.tell("done", TakenIn(status=outcome.status, paper=paper, notes=list(outcome.notes)))

        return EventSourceResponse(client.events(read, one_at_a_time))

    @routes.get("/papers/{paper}")
    def paper(paper: Sha256) -> PaperDetails:
        """A paper, with what is needed to cite it."""
        return service.paper(paper)

    @routes.delete("/papers/{paper}")
    def remove(paper: Sha256) -> RemovedJson:
        """Take a paper out of the index. Its file is kept."""
        removed = service.remove(paper)
        return RemovedJson(file=removed.file, kept_at=removed.kept_at)

    @routes.get("/pdf/{paper}", response_class=FileResponse, responses=_kind("application/pdf"))
    def pdf(paper: Sha256) -> FileResponse:
        """The PDF itself, whole or in ranges."""
        path = service.pdf(paper)
        return _PdfResponse(path, media_type="application/pdf", filename=path.name, content_disposition_type="inline")

    @routes.get("/papers/{paper}/pages/{page}.png", response_class=Response, responses=_kind("image/png"))
    async def picture(
        request: Request,
        paper: Sha256,
        page: Annotated[int, InPath(ge=1, le=10**6)],
        quote: Annotated[list[Annotated[str, Query(max_length=20_000)]], Query(max_length=50)] = [],  # noqa: B006
    ) -> Response:
        """A page as a picture, quotes marked in yellow. `Folio-Marked` tells of each whether it is: 1 or 0."""
        async with drawing:
            if await request.is_disconnected():
                raise Gone
            found = await to_thread.run_sync(service.picture, paper, page, quote)
        marked = ",".join(str(int(each)) for each in found.found)
        headers = {"Folio-Marked": marked, "Cache-Control": "private, max-age=600"}
        return Response(found.png, media_type="image/png", headers=headers)

    return routes


class _PdfResponse(FileResponse):
    """A PDF, whole or in ranges; for a range that is not there, an error like any other."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = False

        async def pass_on(message: Message) -> None:
            nonlocal refused
            if message["type"] != "http.response.start" or message["status"] < 400:
                if not refused:
                    await send(message)
                return
            refused = True
            body = ErrorBody(error="There is no such part of the file.", remedy="Ask for bytes it has, or for all.")
            kept = {name.decode(): value.decode() for name, value in message["headers"] if name == b"content-range"}
            await JSONResponse(body.model_dump(), message["status"], kept)(scope, receive, send)

        await super().__call__(scope, receive, pass_on)


class _Watch:
    """An ingest of one file, told as events."""

    def __init__(self, tell: Tell, check_cancelled: Callable[[], None]) -> None:
        self._tell = tell
        self._check_cancelled = check_cancelled
        self._done = 0

    def hashed(self, file: Path) -> None: ...

    def planned(self, files: Sequence[SourceFile]) -> None:
        self._check_cancelled()
        self._tell("progress", IngestProgress(stage="reading", done=0, of=len(files)))

    def embedded(self, file: SourceFile, chunks: int, of: int) -> None:
        self._check_cancelled()
        self._done += chunks
        self._tell("progress", IngestProgress(stage="embedding", done=self._done, of=of))

    def done(self, outcome: Outcome) -> None: ...


def _page(web: FastAPI) -> None:
    @web.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    @web.get("/docs", include_in_schema=False)
    def docs() -> FileResponse:
        return FileResponse(STATIC / "docs.html")

    web.mount("/assets", StaticFiles(directory=STATIC))
    web.mount("/docs/assets", StaticFiles(packages=[("fastapi_offline", "static")]))


def _kind(media_type: str) -> dict[int | str, dict[str, Any]]:
    return {200: {"description": "As it is.", "content": {media_type: {"schema": {"type": "string"}}}}, **_ERRORS}


def _handle_errors(web: FastAPI) -> None:
    """Every error in one shape."""

    def answered(status: int, body: ErrorBody) -> JSONResponse:
        return JSONResponse(body.model_dump(), status)

    def told(error: FolioError) -> JSONResponse:
        status = next((status for kind, status in STATUSES if isinstance(error, kind)), 500)
        return answered(status, error_body(error))

    @web.exception_handler(FolioError)
    async def folio(_: Request, error: FolioError) -> Response:
        return told(error)

    @web.exception_handler(OSError)
    async def system(_: Request, error: OSError) -> Response:
        return told(unusable(error))

    @web.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
        is_blank = first["type"] == "string_pattern_mismatch" and first["ctx"]["pattern"] == NOT_BLANK
        said = f"{place}: {'it is empty' if is_blank else first['msg']}."
        return answered(422, ErrorBody(error=said, remedy="/docs tells what is taken."))

    @web.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> Response:
        if isinstance(cause := error.__cause__, OSError):  # a body that is large waits in the system's folder for files
            return told(disk_full(Path(gettempdir())) if is_full(cause) else unusable(cause))
        said = _HTTP.get(error.status_code, str(error.detail))
        response = answered(error.status_code, ErrorBody(error=said, remedy="/docs tells what there is."))
        response.headers.update(error.headers or {})
        return response

    @web.exception_handler(Gone)
    async def gone(_: Request, error: Gone) -> Response:
        return Response(status_code=499)  # nobody reads it


_HTTP = {
    400: "What was sent cannot be read.",
    404: "There is nothing at this address.",
    405: "This address does not take that method.",
}
