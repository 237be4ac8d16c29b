"""The FastAPI application: the page, the routes of the API, the responses to errors, and the OpenAPI document."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir
from typing import Annotated, Any, Literal, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, FastAPI, Query, Request, UploadFile
from fastapi import Path as InPath
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, Response
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles
from fastapi.telemetry import TelemetryConfig
from sse_starlette import EventSourceResponse
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES as ALREADY_COMPRESSED
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from folio import errors
from folio.app import App
from folio.bibliography.export import library_bibtex, library_csl_json
from folio.bibliography.notes import markdown
from folio.bibliography.word import word_document
from folio.mcp.http import Endpoint
from folio.mcp.tools import Backend
from folio.papers.model import Paper
from folio.schema import notes as note_schema
from folio.schema import web as schema
from folio.schema.invalid import what_is_wrong
from folio.schema.openai import PREFIX, error_at
from folio.schema.papers import Sha256
from folio.search.filters import fitting_papers
from folio.store import works
from folio.system.files import disk_full, is_full, is_protected, unusable
from folio.web.answering import Answers
from folio.web.events import Broadcast, TellsOfChanges, TooManyListeners
from folio.web.fetcher import Online, PaperFetcher
from folio.web.filling import Fillings
from folio.web.guard import ALIVE, AccessRules, RequestGuard
from folio.web.instructions import instruction_routes
from folio.web.notes import add_note, bibtex_of_notes, change_note, chosen_notes, list_notes, remove_note
from folio.web.openai import openai_routes
from folio.web.own_questions import own_question_routes
from folio.web.papers import library_citations, paper_citations, require_papers
from folio.web.projects import project_routes
from folio.web.questions import Busy
from folio.web.reviews import Reviews, review_routes
from folio.web.service import Service
from folio.web.settings import MAX_BACKUP, MAX_BIBLIOGRAPHY, NotYours, SettingsDesk
from folio.web.settings_routes import settings_routes
from folio.web.stream import (
    EventStream,
    RequestCancelled,
    RequestThreads,
    Stage,
    StageProgress,
    finishing_response,
    reply_unless_left,
)
from folio.web.tables import table_routes
from folio.web.undo import UNDO, Undo, UndoKey
from folio.web.uploads import UploadQueue

STATIC = Path(__file__).resolve().parent / "static"
MAX_CONCURRENT_SEARCHES = 4  # at services on the internet
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_NoteExport = Literal["md", "docx", "bib"]
# A hostile page can take minutes to render, so few requests may wait for pages at once.
MAX_CONCURRENT_PAGES = 4
# Only JSON is compressed: events must not wait, and browsers keep the page's files.
_NOT_JSON = ("text/*", "image/*", "application/pdf", "application/octet-stream")
# A page that may be asked for soon waits until nobody waits for another one: RFC 9218, section 4.1
_AHEAD = re.compile(r"\bu=[567]\b")
_PAGE_CACHE = "private, max-age=600"
_VERSION = re.compile("[0-9a-f]{16}")
# Routes for POST that only read; and tries of a request whose connection to the database is cut, before the last one
_READING = frozenset({"/search", "/scope", f"{PREFIX}embeddings"})
_TRIES = 5
_FOREVER = "private, max-age=31536000, immutable"
TurnInPath = Annotated[int, InPath(ge=1, le=10**6)]
PageNumber = Annotated[int, InPath(ge=1, le=10**6)]
_SEARCHING = ("papers", "evidence", "search_again", "search_ended")
_ANSWER_EVENTS = (
    *("asked", *_SEARCHING, "retrieved", "thinking", "sentence", "checking", "citations"),
    *("done", "stopped"),
)
T = TypeVar("T")
# Bytes: the largest question with all its paper ids; also enough for the multipart headers around an upload
_MAX_BODY = 10**7
# By default FastAPI sends traces, error details included, to the address that the environment names.
_NO_TELEMETRY: TelemetryConfig = {
    "auto_configure": False,
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
}


def make_web(
    app: App,
    rules: AccessRules,
    online: Online | None = None,
    *,
    assistants_write: bool = False,
    go_online: Callable[[], Online] | None = None,
) -> FastAPI:
    """The API and the page for one store, behind the request guard. online: services on the internet, if allowed.

    assistants_write: whether assistants at /mcp may add notes. go_online: opens the services once a person allows it in
    the page.
    """
    service, threads = Service(app, online), RequestThreads()
    answers = Answers(service, threads)
    fillings = Fillings(app, threads)
    own_questions = service.own_questions(lambda: answers.is_answering)
    broadcast = Broadcast(service.watch())
    assistants = Endpoint(lambda: Backend(app, service.retrievers, writes=assistants_write))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        fillings.watch()
        yield
        fillings.close()
        await broadcast.close()
        await assistants.close()
        own_questions.stop()
        await threads.shut_down()
        await answers.close()
        await to_thread.run_sync(service.close)

    web = FastAPI(
        title="Folio",
        version="1",
        description="Ask questions about a folder of PDF papers and get answers that cite a page for every sentence.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        responses={"4XX": {"model": schema.ErrorBody}, "5XX": {"model": schema.ErrorBody}},
        servers=[{"url": rules.path}] if rules.path != "/" else None,
        telemetry=_NO_TELEMETRY,
    )
    handle_errors(web)
    for routes in (
        _question_routes(service, answers),
        _conversation_routes(service, answers),
        _turn_routes(service, answers),
        _paper_routes(service, threads),
        _file_routes(service),
        _bibliography_routes(app),
        _note_routes(app, service.undo, rules.url),
        project_routes(service.projects, service.undo, _RepeatedRoute),
        instruction_routes(app, service.undo, _RepeatedRoute),
        own_question_routes(own_questions, _RepeatedRoute),
        _undo_routes(service.undo),
        _fetch_routes(app, service.fetcher, threads),
        _upload_routes(service.uploads),
        _event_routes(broadcast),
        review_routes(Reviews(app, threads, service.retrievers, rules.url)),
        table_routes(app, fillings, service.undo, rules.url, _RepeatedRoute),
        settings_routes(SettingsDesk(app, service, rules, go_online), service.tasks, _RepeatedRoute),
        openai_routes(app, service, answers, threads, rules, _RepeatedRoute),
    ):
        web.include_router(routes)
    _add_page(web, service.prepare_pages)
    web.router.routes.append(Route("/mcp", assistants, include_in_schema=False))
    web.add_middleware(TellsOfChanges, broadcast=broadcast)
    max_upload = app.limits(1).max_file_mb * 10**6
    limits = {"/papers": max_upload + _MAX_BODY, "/uploads": max_upload, "/backup": MAX_BACKUP}
    limits |= dict.fromkeys(("/bibliography", "/bibliography/preview"), MAX_BIBLIOGRAPHY)
    web.add_middleware(
        GZipMiddleware, minimum_size=1000, compresslevel=6, exclude_content_types=(*ALREADY_COMPRESSED, *_NOT_JSON)
    )
    web.add_middleware(RequestGuard, rules=rules, limit=lambda path: limits.get(path, _MAX_BODY))
    return web


class _RepeatedRoute(APIRoute):
    """A route whose requests that only read are done again if the connection to the database was cut meanwhile."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_again(request: Request) -> Response:
            for _ in range(_TRIES if request.method == "GET" or request.url.path in _READING else 0):
                with suppress(errors.StoreCut):
                    return await handle(request)
            return await handle(request)

        return handle_again


class _Assets(StaticFiles):
    """The page's files. At an address with their version, such as /assets/VERSION/app.js, browsers keep them."""

    def __init__(self) -> None:
        super().__init__(directory=STATIC)
        self._known: tuple[dict[str, tuple[int, int]], str] = {}, ""  # name -> time of change and size; their version

    def version(self) -> str:
        """A checksum of all files as they are now; they are read again once one has changed."""
        files = {
            path.relative_to(STATIC).as_posix(): path.stat() for path in sorted(STATIC.rglob("*")) if path.is_file()
        }
        states = {name: (file.st_mtime_ns, file.st_size) for name, file in files.items()}
        known, version = self._known
        if states != known:
            digests = (f"{name}\n{sha256((STATIC / name).read_bytes()).hexdigest()}\n" for name in states)
            version = sha256("".join(digests).encode()).hexdigest()[:16]
            self._known = states, version
        return version

    async def get_response(self, path: str, scope: Scope) -> Response:
        version, _, name = path.replace(os.sep, "/").partition("/")
        if not _VERSION.fullmatch(version):
            return await super().get_response(path, scope)
        response = await super().get_response(name, scope)
        states, known = self._known
        file = response.stat_result if isinstance(response, FileResponse) else None
        # Otherwise a tab from before an update asks, or the file has changed since the page was loaded.
        if file and version == known and states.get(name) == (file.st_mtime_ns, file.st_size):
            response.headers["cache-control"] = _FOREVER
        return response


def _add_page(web: FastAPI, on_open: Callable[[], None]) -> None:
    assets = _Assets()

    @web.get("/", include_in_schema=False)
    def page() -> HTMLResponse:
        on_open()
        text = (STATIC / "index.html").read_text(encoding="utf-8")
        return HTMLResponse(text.replace('"assets/', f'"assets/{assets.version()}/'))

    @web.get("/docs", include_in_schema=False)
    def docs() -> FileResponse:
        return FileResponse(STATIC / "docs.html")

    web.mount("/assets", assets)
    web.mount("/docs/assets", StaticFiles(packages=[("fastapi_offline", "static")]))


def _question_routes(service: Service, answers: Answers) -> APIRouter:
    routes = APIRouter(tags=["Questions"], route_class=_RepeatedRoute)

    @routes.get("/health")
    def get_health() -> schema.Health:
        """What is in the index, which models are in use, and what would improve answers."""
        return service.health()

    @routes.get("/model-servers")
    def find_model_servers() -> schema.ModelServerList:
        """The model servers that answer at the usual ports of this server's own computer."""
        return service.model_servers()

    @routes.get(ALIVE, status_code=204)
    async def answer_balancer() -> None:
        """Whether the server is alive, for balancers. It needs no token."""

    @routes.post("/search")
    def search(request: schema.SearchRequest) -> schema.SearchReply:
        """Rank passages for a query. No language model is called."""
        return service.questions.search(request)

    @routes.post("/chat")
    async def answer_message(request: Request, question: schema.ChatRequest) -> schema.ChatReply:
        """Answer a message, with citations. The question is stored at once. If the client disconnects, the answer is
        stopped, unless the question is `listed`."""
        place = await answers.start(question)
        result = asyncio.ensure_future(answers.result(*place))
        result.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # nobody may ask for it any more
        leave = partial(answers.abandon, *place) if not question.listed else lambda: None
        return await reply_unless_left(request, result, leave)

    responses = _event_stream(*_ANSWER_EVENTS)

    @routes.post("/chat/stream", response_class=EventSourceResponse, responses=responses)
    async def stream_answer(question: schema.ChatRequest) -> EventSourceResponse:
        """Answer a message as server-sent events: `asked` once it is stored, `retrieved`, each `sentence`, `citations`,
        then `done` with the whole reply; `stopped` or `error` if there is no answer. `thinking`: the model thinks
        before it writes. `checking`: the number of statements waiting for the verifier. With the mode "deep", the steps
        of the search come first: `papers`, each `evidence`, `search_again`, `search_ended`. If the client disconnects,
        the answer is stopped, unless the question is `listed`: the sentences until then are stored as the answer."""
        place = await answers.start(question)
        return finishing_response(answers.viewed(*place, is_owned=not question.listed))

    @routes.get("/examples")
    def list_examples() -> schema.SuggestedQuestions:
        """A few questions that the library answers, each about another paper; none if there are no good ones. The
        search for them takes limited time: after an empty reply, another request goes on."""
        return schema.SuggestedQuestions(questions=service.suggestions.examples())

    @routes.post("/feedback", status_code=204)
    def record_feedback(request: schema.FeedbackRequest) -> None:
        """Rate an answer as good or bad."""
        service.questions.record_feedback(request.conversation, request.turn, request.feedback)

    return routes


def _conversation_routes(service: Service, answers: Answers) -> APIRouter:
    routes = APIRouter(tags=["Conversations"], route_class=_RepeatedRoute)

    @routes.get("/conversations")
    def list_conversations(query: Annotated[str, Query(max_length=500)] = "") -> schema.ConversationList:
        """All conversations, or those whose title, questions and answers have all words of the query: pinned ones
        first, then the latest first."""
        return service.conversations(query)

    @routes.get("/conversations/{conversation}")
    def get_conversation(
        conversation: schema.ConversationId, turn: Annotated[int | None, Query(ge=1, le=1_000_000)] = None
    ) -> schema.Conversation:
        """A conversation with its answers: the path to the latest turn; with `turn`, the path through that turn, to
        the latest one that follows it."""
        return service.conversation(conversation, turn)

    @routes.patch("/conversations/{conversation}")
    def change_conversation(
        conversation: schema.ConversationId, changes: schema.ConversationChanges, undo: UndoKey = None
    ) -> schema.ConversationSummary:
        """Rename or pin a conversation."""
        return service.change_conversation(conversation, changes, undo)

    @routes.delete("/conversations/{conversation}", status_code=204)
    async def delete_conversation(conversation: schema.ConversationId, undo: UndoKey = None) -> None:
        """Delete a conversation, and its questions from the log. An answer that is being made is stopped."""
        await to_thread.run_sync(service.delete_conversation, conversation, undo)
        answers.stop_deleted(conversation)

    @routes.get(
        "/conversations/{conversation}/markdown",
        response_class=PlainTextResponse,
        responses=_content("text/markdown", "The Markdown file."),
    )
    def export_conversation(
        conversation: schema.ConversationId, turn: Annotated[int | None, Query(ge=1, le=1_000_000)] = None
    ) -> Response:
        """Export a conversation as Markdown, with its citations. turn: see `GET /conversations/{conversation}`."""
        text, name = service.markdown(conversation, turn)
        return _download(text, "text/markdown", name)

    @routes.get(
        "/conversations/{conversation}/zotero-note",
        response_class=PlainTextResponse,
        responses=_content("text/plain", "The HTML of the note, as text."),
    )
    def export_zotero_note(
        conversation: schema.ConversationId,
        turn: Annotated[int | None, Query(ge=1, le=1_000_000)] = None,
        through: Annotated[int | None, Query(ge=1, le=1_000_000)] = None,
    ) -> Response:
        """A conversation, or one answer (`turn`), as the HTML of a Zotero note with links to the cited pages. through:
        as `turn` of `GET /conversations/{conversation}`."""
        return PlainTextResponse(service.zotero_note(conversation, turn, through))

    return routes


def _turn_routes(service: Service, answers: Answers) -> APIRouter:
    routes = APIRouter(tags=["Conversations"], route_class=_RepeatedRoute)
    path = "/conversations/{conversation}/turns/{turn}"
    stream: dict[str, Any] = {"response_class": EventSourceResponse, "responses": _event_stream(*_ANSWER_EVENTS)}

    @routes.get(f"{path}/events", **stream)
    async def follow_answer(
        conversation: schema.ConversationId, turn: TurnInPath
    ) -> EventSourceResponse:
        """The events of `POST /chat/stream` for a question that was asked before, from the beginning; only the last
        ones if it was answered before, or is being answered by another server. Leaving stops nothing."""
        await answers.require(conversation, turn)
        return finishing_response(answers.viewed(conversation, turn, is_owned=False))

    @routes.post(f"{path}/again", **stream)
    async def ask_again(
        conversation: schema.ConversationId, turn: TurnInPath, how: schema.AgainRequest
    ) -> EventSourceResponse:
        """Ask a question again that has no answer: it gets the answer in its place. The same events as above."""
        await answers.start_again(conversation, turn, how.model)
        return finishing_response(answers.viewed(conversation, turn, is_owned=False))

    @routes.post(f"{path}/stop", status_code=204)
    async def stop_answer(conversation: schema.ConversationId, turn: TurnInPath) -> None:
        """Stop an answer that is being made, whoever asked: the sentences until then are stored as the answer."""
        await answers.stop(conversation, turn)

    @routes.get(f"{path}/followups")
    def list_followups(conversation: schema.ConversationId, turn: TurnInPath) -> schema.SuggestedQuestions:
        """At most three questions that the papers cited by an answer answer from other passages."""
        return schema.SuggestedQuestions(questions=service.suggestions.followups(conversation, turn))

    return routes


def _paper_routes(service: Service, threads: RequestThreads) -> APIRouter:
    routes = APIRouter(tags=["Papers"], route_class=_RepeatedRoute)
    one_at_a_time = CapacityLimiter(1)

    @routes.get("/papers", response_model=schema.PaperList, responses={304: {"description": "It has not changed."}})
    def list_papers(request: Request, query: Annotated[schema.PaperQuery, Query()], response: Response) -> Any:
        """The chosen papers, or all, and the files that could not be read. The list of all has an `ETag`; sent as
        `If-None-Match`, the reply is 304 until a paper or a file is added, changed or removed."""
        if query == schema.PaperQuery():
            tag = service.papers_tag()
            if tag == request.headers.get("If-None-Match"):
                return Response(status_code=304, headers={"ETag": tag})
            response.headers["ETag"] = tag
        return service.papers(query)

    @routes.post(
        "/papers",
        response_class=EventSourceResponse,
        responses=_event_stream("saved", "progress", "done"),
        form_limits={"max_files": 1, "max_fields": 0},
    )
    async def add_paper(file: UploadFile) -> EventSourceResponse:
        """Add a PDF. Sends `saved`, `progress`, then `done`; or `error`. The PDF is read even if the client
        disconnects."""
        upload = await to_thread.run_sync(service.paper_files.save_upload, file.file, file.filename or "")
        stream = EventStream(threads)
        stream.send("saved", schema.SavedEvent(file=upload.file.name))

        def report(stage: Stage, done: int, of: int) -> None:
            stream.send("progress", schema.ProgressEvent(stage=stage, done=done, of=of))

        def ingest() -> None:
            progress = StageProgress(report, threads.check_cancelled)
            outcome = service.paper_files.ingest(upload, progress)
            paper = service.listed_paper(upload.file.sha256)
            stream.send("done", schema.AddedEvent(status=outcome.status, paper=paper, notes=list(outcome.notes)))

        return finishing_response(stream.run(ingest, one_at_a_time))

    @routes.get("/papers/{paper}")
    def get_paper(paper: Sha256) -> schema.PaperDetails:
        """A paper, with every field, its origin and whether it is sure, the sections, and BibTeX."""
        return service.paper(paper)

    @routes.patch("/papers/{paper}")
    def edit_paper(paper: Sha256, edits: schema.PaperEdits, undo: UndoKey = None) -> schema.PaperDetails:
        """Correct the metadata of a paper: a value sets its field, an empty value empties it, and null resets it to the
        value that was read. Edits stay when the paper is read again or its file is replaced by a newer version."""
        return service.edit(paper, edits, undo)

    @routes.delete("/papers/{paper}")
    def remove_paper(paper: Sha256) -> schema.RemovedJson:
        """Remove a paper from the index. Its file is kept."""
        (removed,) = service.paper_files.remove(paper)
        return schema.RemovedJson.model_validate(removed)

    _add_library_routes(routes, service)
    return routes


def _add_library_routes(routes: APIRouter, service: Service) -> None:
    @routes.post("/papers/edits")
    def edit_papers(request: schema.ManyEdits, undo: UndoKey = None) -> schema.ChangedPapers:
        """Change the tags and fields of several papers: of all, or after an error of none. The fields `edits` are those
        of `PATCH /papers/{paper}`."""
        return schema.ChangedPapers(changed=service.edit_many(request, undo))

    @routes.get("/papers/{paper}/about")
    def get_about(paper: Sha256) -> schema.PaperAbout:
        """What a paper is about, in its own words; its references as its own pages list them, with the papers of the
        library that they cite; the papers that cite it, similar papers, and the conversations that cite it."""
        return service.paper_pages.about(paper)

    @routes.put("/papers/{paper}/reading", status_code=204)
    def record_reading(paper: Sha256, request: schema.ReadingRequest) -> None:
        """Record that a paper is open in the reader, and at which page."""
        service.record_reading(paper, request.page)

    @routes.get("/removed")
    def list_removed() -> schema.RemovedPapers:
        """The papers that were removed in the last day, which can be brought back."""
        return service.removed()

    @routes.post("/removed")
    def remove_papers(request: schema.ChosenPapers, undo: UndoKey = None) -> schema.RemovedFiles:
        """Remove several papers from the index: all, or none if one is unknown. Their files are kept."""
        return service.remove(request.papers, undo)

    @routes.post("/removed/empty")
    def empty_removed() -> schema.EmptiedJson:
        """Delete the files of all removed papers now. Files outside the papers folder stay where they are."""
        return schema.EmptiedJson.model_validate(service.paper_files.empty_removed())

    @routes.post("/removed/restore")
    def restore_papers(request: schema.ChosenPapers) -> schema.RestoredPapers:
        """Bring removed papers back, or none if one is unknown: their files move back and are read again. Their edits,
        tags and notes were kept. A paper whose file is gone or cannot be read stays removed."""
        return service.restore(request.papers)


def _file_routes(service: Service) -> APIRouter:
    routes = APIRouter(tags=["Papers"], route_class=_RepeatedRoute)
    slots, slot_ahead = CapacityLimiter(MAX_CONCURRENT_PAGES), CapacityLimiter(1)

    async def read_page(request: Request, read: Callable[..., T], *arguments: object) -> T:
        is_ahead = bool(_AHEAD.search(request.headers.get("Priority", "")))
        async with slot_ahead if is_ahead else slots:
            if await request.is_disconnected():
                raise RequestCancelled
            return await to_thread.run_sync(partial(service.read_page, read, *arguments, is_ahead=is_ahead))

    @routes.get(
        "/pdf/{paper}",
        response_class=FileResponse,
        responses=_content("application/pdf", "The PDF."),
        summary="Get PDF",
    )
    def get_pdf(paper: Sha256) -> FileResponse:
        """The PDF file, whole or in ranges."""
        path = service.pdf(paper)
        return _PdfResponse(path, media_type="application/pdf", filename=path.name, content_disposition_type="inline")

    @routes.get(
        "/papers/{paper}/pages/{page}.png",
        response_class=Response,
        responses=_content("image/png", "The picture."),
    )
    async def get_page_picture(
        request: Request,
        paper: Sha256,
        page: PageNumber,
        quote: Annotated[list[Annotated[str, Query(max_length=20_000)]], Query(max_length=50)] = [],  # noqa: B006
        dpi: Annotated[int, Query(ge=36, le=400)] = 150,
    ) -> Response:
        """A page as a PNG picture with the quotes marked in yellow. The header `Folio-Marked` has 1 for each quote that
        was marked and 0 for each other. A very large page has fewer dots per inch than `dpi`. With a header such as
        `Priority: u=6` (RFC 9218) the page is drawn when nobody waits for another one."""
        picture = await read_page(request, service.picture, paper, page, quote, dpi)
        marked = ",".join(str(int(is_highlighted)) for is_highlighted in picture.highlighted)
        headers = {"Folio-Marked": marked, "Cache-Control": _PAGE_CACHE}
        return Response(picture.png, media_type="image/png", headers=headers)

    @routes.get(
        "/papers/{paper}/pages/{page}/text",
        response_model=schema.PageText,
        responses={304: {"description": "It has not changed."}},
    )
    async def get_page_text(request: Request, paper: Sha256, page: PageNumber) -> Response:
        """The text of a page, with the place of each word on its picture, its headings and its links. Has an `ETag`."""
        text = await read_page(request, service.page_text, paper, page)
        # Its offsets change when the paper is read again, so a browser must ask each time.
        headers = {"ETag": f'"{sha256(text).hexdigest()[:32]}"', "Cache-Control": "private, no-cache"}
        if headers["ETag"] == request.headers.get("If-None-Match"):
            return Response(status_code=304, headers=headers)
        return Response(text, media_type="application/json", headers=headers)

    @routes.get("/papers/{paper}/find")
    def find_in_paper(paper: Sha256, words: Annotated[str, Query(max_length=500)]) -> schema.PlacesJson:
        """Where words stand in a paper, without regard to case, accents, ligatures, signs and line ends."""
        return service.find(paper, words)

    return routes


class _PdfResponse(FileResponse):
    """A PDF, whole or in ranges. A range outside the file gets an error in the usual JSON form."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = False

        async def send_or_refuse(message: Message) -> None:
            nonlocal refused
            if message["type"] != "http.response.start" or message["status"] < 400:
                if not refused:
                    await send(message)
                return
            refused = True
            body = schema.ErrorBody(
                error="The file has no such range.", remedy="Request bytes that it has, or the whole file."
            )
            kept = {name.decode(): value.decode() for name, value in message["headers"] if name == b"content-range"}
            await JSONResponse(body.model_dump(), message["status"], kept)(scope, receive, send)

        await super().__call__(scope, receive, send_or_refuse)


def _bibliography_routes(app: App) -> APIRouter:
    routes = APIRouter(tags=["Papers"], route_class=_RepeatedRoute)

    def read(wanted: schema.FilterRequest) -> tuple[list[Paper], dict[str, str], dict[str, str]]:
        """The chosen papers, the citation keys of all, and the publishers' BibTeX of the chosen. Raises NotKnown."""
        with suppress(errors.StoreMissing), closing(app.open_library()) as library:
            keys = library.citation_keys()
            with library.reading():
                require_papers(library, wanted.papers)
                papers = fitting_papers(library, replace(schema.paper_filter(wanted), ids=frozenset(wanted.papers)))
                papers = [paper for paper in papers if paper.id in keys]  # not one that was added since
                return papers, keys, works.publishers_bibtex(library.database, [paper.id for paper in papers])
        return [], {}, {}

    bibtex = _content("application/x-bibtex", "The BibTeX file.")
    objects = {"type": "array", "items": {"type": "object"}}
    csl_json = _content("application/vnd.citationstyles.csl+json", "The CSL-JSON file.", objects)

    @routes.get("/papers.bib", response_class=Response, responses=bibtex, summary="Export BibTeX")
    def export_bibtex(wanted: Annotated[schema.FilterRequest, Query()]) -> Response:
        """The chosen papers, or all, as BibTeX; the publisher's own entry if it is known. Fields that are not sure are
        left out, with a note."""
        return _download(library_bibtex(*read(wanted)), "application/x-bibtex", "folio.bib")

    @routes.post("/papers.bib", response_class=Response, responses=bibtex, summary="Export many as BibTeX")
    def export_chosen_bibtex(wanted: schema.FilterRequest) -> Response:
        """As GET, for more papers than fit into an address."""
        return export_bibtex(wanted)

    @routes.get("/papers.csl.json", response_class=Response, responses=csl_json, summary="Export CSL-JSON")
    def export_csl_json(wanted: Annotated[schema.FilterRequest, Query()]) -> Response:
        """The chosen papers, or all, as CSL-JSON. Fields that are not sure are left out, with a note."""
        papers, keys, _ = read(wanted)
        text = library_csl_json(papers, keys)
        return _download(text, "application/vnd.citationstyles.csl+json", "folio.json")

    @routes.post("/papers.csl.json", response_class=Response, responses=csl_json, summary="Export many as CSL-JSON")
    def export_chosen_csl_json(wanted: schema.FilterRequest) -> Response:
        """As GET, for more papers than fit into an address."""
        return export_csl_json(wanted)

    return routes


def _note_routes(app: App, kept: Undo, page: str) -> APIRouter:
    """page: the address of the page."""
    routes = APIRouter(tags=["Notes"], route_class=_RepeatedRoute)

    @routes.get("/notes")
    def get_notes(choice: Annotated[note_schema.NoteChoice, Query()]) -> note_schema.NoteList:
        """The notes that fit, at the current places of their quotes."""
        return list_notes(app, choice)

    @routes.post("/notes", status_code=201)
    def create_note(new: note_schema.NewNote) -> note_schema.NoteJson:
        """Add a note on places or words of papers; with `statement`, keep a statement of an answer with its quotes."""
        return add_note(app, new)

    @routes.patch("/notes/{note}")
    def edit_note(
        note: note_schema.NoteId, edits: note_schema.NoteEdits, undo: UndoKey = None
    ) -> note_schema.NoteJson:
        """Change a note's text or colour."""
        changed, put_back = change_note(app, note, edits)
        kept.keep(undo, put_back)
        return changed

    @routes.delete("/notes/{note}", status_code=204)
    def delete_note(note: note_schema.NoteId, undo: UndoKey = None) -> None:
        """Delete a note."""
        kept.keep(undo, remove_note(app, note))

    def export(chosen: note_schema.NoteChoice | note_schema.ChosenNotes, kind: _NoteExport) -> Response:
        notes = chosen_notes(app, chosen)
        if kind == "md":
            return _download(markdown(notes, page), "text/markdown", "folio-notes.md")
        if kind == "docx":
            return _download(word_document(notes, page), WORD, "folio-notes.docx")
        return _download(bibtex_of_notes(app, notes), "application/x-bibtex", "folio-notes.bib")

    def add_export(kind: _NoteExport, media_type: str, name: str, what: str) -> None:
        form = {"type": "string", "format": "binary"} if kind == "docx" else None
        responses = _content(media_type, f"The {name} file.", form)
        options: dict[str, Any] = {"response_class": Response, "responses": responses}

        @routes.get(
            f"/notes.{kind}", summary=f"Export notes as {name}", description=f"The notes that fit as {what}.", **options
        )
        def export_notes(choice: Annotated[note_schema.NoteChoice, Query()]) -> Response:
            return export(choice, kind)

        @routes.post(
            f"/notes.{kind}",
            summary=f"Export chosen notes as {name}",
            description=f"These notes, in this order, as {what}.",
            **options,
        )
        def export_chosen_notes(chosen: note_schema.ChosenNotes) -> Response:
            return export(chosen, kind)

    add_export("md", "text/markdown", "Markdown", "Markdown, with links to their pages")
    add_export("docx", WORD, "Word", "a Word document")
    add_export("bib", "application/x-bibtex", "BibTeX", "the BibTeX of the papers that they cite")
    return routes


def _undo_routes(kept: Undo) -> APIRouter:
    routes = APIRouter(tags=["Undo"])

    @routes.post("/undo/{key}", status_code=204)
    def undo_changes(key: Annotated[str, InPath(pattern=UNDO)]) -> None:
        """Undo what was changed or deleted with this key, once. What was changed again since stays as it is (409)."""
        kept.run(key)

    return routes


def _fetch_routes(app: App, fetcher: PaperFetcher, threads: RequestThreads) -> APIRouter:
    routes = APIRouter(tags=["Papers from the internet"], route_class=_RepeatedRoute)
    searches, one_at_a_time = CapacityLimiter(MAX_CONCURRENT_SEARCHES), CapacityLimiter(1)

    @routes.get("/discover")
    async def discover_works(request: Request, query: Annotated[schema.DiscoverQuery, Query()]) -> schema.DiscoverReply:
        """Search services on the internet for works, and mark those in the library. Needs ONLINE or `--online`."""
        stream = EventStream(threads)  # only for cancelling
        running = threads.start(fetcher.discover, query, stream.check_cancelled, slots=searches)
        return await reply_unless_left(request, running, stream.cancel)

    @routes.post("/searches")
    def propose_searches(request: schema.MissingRequest) -> schema.ProposedSearches:
        """Searches for papers that may answer a question which the library does not answer. Nothing is sent. Needs
        ONLINE or `--online`."""
        return fetcher.propose(request)

    @routes.post("/discover")
    async def discover_for_question(request: Request, wanted: schema.SearchesRequest) -> schema.DiscoverReply:
        """Send these searches to arXiv, OpenAlex, Semantic Scholar, Crossref and Europe PMC, and order what they find
        by how well it fits the question. Needs ONLINE or `--online`."""
        stream = EventStream(threads)  # only for cancelling
        running = threads.start(fetcher.find_for, wanted, stream.check_cancelled, slots=searches)
        return await reply_unless_left(request, running, stream.cancel)

    responses = _event_stream("notice", "progress", "added", "failed", "done")

    @routes.post("/papers/fetch", response_class=EventSourceResponse, responses=responses)
    async def fetch_papers(request: schema.FetchRequest) -> EventSourceResponse:
        """Download works and add them, one after the other. Sends `progress` and, for each work, `added` or `failed`;
        then `done`. If the client disconnects, no further download begins, and a complete file is still added. Needs
        ONLINE or `--online`."""
        identifiers = await to_thread.run_sync(fetcher.require_fetchable, request.ids)
        stream = EventStream(threads)

        def fetch() -> None:
            done = fetcher.fetch(identifiers, stream.send, stream.check_cancelled, threads.check_cancelled)
            stream.send("done", done)

        return finishing_response(stream.run(fetch, one_at_a_time))

    @routes.get("/citations")
    def list_citations() -> schema.LibraryCitations:
        """The citations between papers of the library that are stored. No service is contacted."""
        return library_citations(app)

    @routes.get("/papers/{paper}/citations")
    def list_paper_citations(paper: Sha256) -> schema.PaperCitations:
        """The stored citations of a paper: the works it cites and the works that cite it. No service is contacted."""
        return paper_citations(app, paper)

    @routes.post("/papers/{paper}/citations")
    async def look_up_citations(request: Request, paper: Sha256) -> schema.PaperCitations:
        """Look up the citations of a paper at services, store them and list them. Needs ONLINE or `--online`."""

        def look_up() -> schema.PaperCitations:
            fetcher.look_up_citations(paper, stream.check_cancelled)
            return paper_citations(app, paper)

        stream = EventStream(threads)  # only for cancelling
        return await reply_unless_left(request, threads.start(look_up, slots=searches), stream.cancel)

    return routes


_BODY = {"required": True, "content": {"application/pdf": {"schema": {"type": "string", "format": "binary"}}}}


def _upload_routes(queue: UploadQueue) -> APIRouter:
    routes = APIRouter(tags=["Uploads"], route_class=_RepeatedRoute)

    @routes.post("/uploads", status_code=202, openapi_extra={"requestBody": _BODY})
    async def queue_upload(request: Request, name: Annotated[schema.UploadName, Query()] = "") -> schema.UploadJson:
        """Queue a PDF, sent as the body. After the reply the file is stored, so the client may leave; it is added after
        the files queued before it. An incomplete body is not queued."""
        incoming = await to_thread.run_sync(queue.receive, name)
        refused: errors.FolioError | OSError | None = None
        try:
            async for block in request.stream():
                if refused is None:
                    try:
                        await to_thread.run_sync(incoming.write, block)
                    except (errors.FolioError, OSError) as error:
                        refused = error  # raised after the whole body: a client that still sends reads no reply
            if refused is not None:
                raise refused
            return await to_thread.run_sync(incoming.commit)
        except ClientDisconnect:
            raise RequestCancelled from None
        finally:
            incoming.discard()

    @routes.get("/uploads")
    def list_uploads() -> schema.UploadsJson:
        """The queue: files that wait, are being added, or failed; and added files until a client has seen them."""
        return queue.state()

    @routes.delete("/uploads")
    def cancel_uploads(failed: bool = False) -> schema.CancelledUploads:
        """Cancel all files that wait or are being added; with `failed`, remove all that failed from the queue."""
        return schema.CancelledUploads(cancelled=queue.cancel_all(failed=failed))

    @routes.delete("/uploads/{upload}", status_code=204)
    def cancel_upload(upload: schema.UploadId) -> None:
        """Remove a file from the queue. If it is being added, it is stopped at its next step."""
        queue.cancel(upload)

    @routes.post("/uploads/retry")
    def retry_uploads() -> schema.RetriedUploads:
        """Queue all failed files again."""
        return schema.RetriedUploads(retried=queue.retry_all())

    @routes.post("/uploads/{upload}/retry")
    def retry_upload(upload: schema.UploadId) -> schema.UploadJson:
        """Queue a failed file again."""
        return queue.retry(upload)

    return routes


def _event_routes(broadcast: Broadcast) -> APIRouter:
    routes = APIRouter(tags=["Events"], route_class=_RepeatedRoute)
    kinds = ("hello", "papers", "failures", "uploads", "notes", "tables", "conversations", "projects", "tasks")

    @routes.get("/events", response_class=EventSourceResponse, responses=_event_stream(*kinds))
    async def follow_events() -> EventSourceResponse:
        """What changes in the library, also by other programs, within two seconds: `hello` first, then `papers`,
        `failures`, `uploads`, `notes`, `tables`, `projects`, `conversations` and `tasks`. After another `hello`, load
        everything again."""
        broadcast.require_room()
        return EventSourceResponse(broadcast.listen())

    return routes


def _download(content: str | bytes, media_type: str, name: str) -> Response:
    """A reply that a browser saves as a file with this name."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=media_type, headers=headers)


# Errors: all have the same JSON form.

# Status by error class; subclasses come before their base classes.
STATUSES: tuple[tuple[type[errors.FolioError], int], ...] = (
    (errors.NotKnown, 404),
    (errors.NetworkOff, 403),
    (NotYours, 403),
    (TooManyListeners, 503),
    (Busy, 409),
    (errors.ChangedElsewhere, 409),
    (errors.NameTaken, 409),
    (errors.UsageError, 400),
    (errors.StoreMissing, 409),
    (errors.StoreMismatch, 409),
    (errors.StoreBusy, 409),
    (errors.StoreProtected, 403),
    (errors.StoreRefused, 422),
    (errors.StoreAway, 503),
    (errors.DiskFull, 507),
    (errors.SourceError, 502),
    (errors.PaperError, 422),
    (errors.ModelError, 503),
)


# Seconds after which a client may ask again for what can pass by itself
RETRY_AFTER_S = 5


# Status of an error -> the one that OpenAI's clients expect
OPENAI_STATUSES = {422: 400}


def handle_errors(web: FastAPI) -> None:
    """Give every error the same JSON form; those of the OpenAI-compatible routes have OpenAI's."""

    def respond(request: Request, status: int, body: schema.ErrorBody, code: str | None = None) -> JSONResponse:
        path = request.url.path
        status = OPENAI_STATUSES.get(status, status) if path.startswith(PREFIX) else status
        return JSONResponse(error_at(path, status, body, code).model_dump(), status)

    def respond_to(request: Request, error: errors.FolioError) -> JSONResponse:
        status = next((status for kind, status in STATUSES if isinstance(error, kind)), 500)
        is_busy = isinstance(error, Busy) and request.url.path.startswith(PREFIX)
        code = "model_not_found" if isinstance(error, errors.NotKnown) else None
        response = respond(request, 429 if is_busy else status, schema.error_body(error), code)
        if isinstance(error, errors.StoreAway | TooManyListeners) or is_busy:
            response.headers["Retry-After"] = str(RETRY_AFTER_S)
        elif request.url.path.startswith(PREFIX):
            response.headers["X-Should-Retry"] = "false"  # which OpenAI's clients would do twice
        return response

    def respond_to_os(request: Request, error: OSError) -> JSONResponse:
        if is_full(error):
            return respond_to(request, disk_full(Path(error.filename or gettempdir())))
        return respond(request, 403 if is_protected(error) else 500, schema.error_body(unusable(error)))

    @web.exception_handler(errors.FolioError)
    async def handle_folio_error(request: Request, error: errors.FolioError) -> Response:
        return respond_to(request, error)

    @web.exception_handler(OSError)
    async def handle_os_error(request: Request, error: OSError) -> Response:
        return respond_to_os(request, error)

    @web.exception_handler(RequestValidationError)
    async def handle_invalid_request(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
        happened, remedy = f"{place}: {what_is_wrong(first)}.", "/docs describes every field."
        return respond(request, 422, schema.InvalidBody(error=happened, remedy=remedy, field=place))

    @web.exception_handler(HTTPException)
    async def handle_http_error(request: Request, error: HTTPException) -> Response:
        if isinstance(cause := error.__cause__, OSError):  # Starlette buffers large bodies in the temporary folder
            return respond_to_os(request, cause)
        if error.status_code == 400 and request.url.path == "/papers":
            return respond(request, 400, _NO_UPLOAD)
        message = _HTTP.get(error.status_code, str(error.detail))
        body = schema.ErrorBody(error=message, remedy="/docs lists every address.")
        response = respond(request, error.status_code, body)
        response.headers.update(error.headers or {})
        return response

    @web.exception_handler(RequestCancelled)
    async def handle_cancelled(_: Request, error: RequestCancelled) -> Response:
        return Response(status_code=499)  # the client has left


_HTTP = {
    400: "The request could not be read.",
    404: "There is nothing at this address.",
    405: "This address does not support that method.",
}
_NO_UPLOAD = schema.ErrorBody(
    error="The form could not be read.", remedy="Send one PDF in the field `file`, and no other field or file."
)


# Responses in the OpenAPI document that are not JSON: event streams and files, with their errors.

_ERROR = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}}
_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"description": "What happened and what to do.", "content": _ERROR} for status in ("4XX", "5XX")
}


def _event_stream(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """The responses of a route that streams events of these kinds, each with a JSON object as data."""
    stream = {
        "type": "object",
        "properties": {
            "event": {"type": "string", "enum": [*kinds, "error"]},
            "data": {"type": "string", "contentMediaType": "application/json"},
        },
        "required": ["event", "data"],
    }
    return _content("text/event-stream", "Server-sent events.", stream)


def _content(media_type: str, description: str, form: dict[str, Any] | None = None) -> dict[int | str, dict[str, Any]]:
    """The responses of a route that returns this media type."""
    return {
        200: {"description": description, "content": {media_type: {"schema": form or {"type": "string"}}}},
        **_ERRORS,
    }
