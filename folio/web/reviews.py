"""The routes of reviews, and the work behind them.

    POST   /reviews                         ReviewRequest -> ReviewJson (202)
    GET    /reviews/{id}                    ReviewJson
    POST   /reviews/{id}/stop               204
    GET    /reviews/{id}/export?format=md|docx

A review is made in a thread, one at a time, and kept in memory: the latest ones, until the server ends.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from anyio import CapacityLimiter
from fastapi import APIRouter
from fastapi.responses import Response

from folio.app import App
from folio.bibliography.document import Block, document_markdown
from folio.bibliography.word import word_of_blocks
from folio.errors import NotKnown
from folio.papers.model import Paper, Progress
from folio.review.report import Citing, report
from folio.review.review import COMPARING, Review
from folio.schema import reviews as schema
from folio.schema.web import ErrorBody, paper_filter
from folio.search.filters import fitting_papers
from folio.search.pool import RetrieverPool
from folio.shown_text import counted, name_line
from folio.store.library import Library
from folio.table.cell import Column
from folio.web.papers import require_papers
from folio.web.questions import Busy
from folio.web.stream import RequestCancelled, RequestThreads, error_of, log_internal

if TYPE_CHECKING:
    from folio.table.finder import CellFinder

MOST_KEPT = 16  # reviews
MOST_WAITING = 8
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
ReviewFormat = Literal["md", "docx"]


@dataclass
class _Job:
    """A review that is made, or was. Its fields change under the lock of the reviews."""

    id: str
    title: str
    state: schema.ReviewState = "waiting"
    done: int = 0
    total: int = 0
    error: ErrorBody | None = None
    review: Review | None = None
    stop: Event = field(default_factory=Event)

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "stopped", "failed")


class Reviews:
    """Makes reviews and keeps the latest ones. Thread-safe."""

    def __init__(self, app: App, threads: RequestThreads, retrievers: RetrieverPool, page: str) -> None:
        """page: the address of Folio's page, for links in exports."""
        self._app = app
        self._threads = threads
        self._retrievers = retrievers
        self._page = page
        self._slots = CapacityLimiter(1)
        self._lock = Lock()
        self._jobs: OrderedDict[str, _Job] = OrderedDict()

    def start(self, request: schema.ReviewRequest) -> schema.ReviewJson:
        """Begin a review, in the loop of the server. Raises UsageError for a filter that is none, Busy."""
        columns = [Column(question, question) for question in request.questions]
        wanted = replace(paper_filter(request), ids=frozenset(request.papers))
        job = _Job(secrets.token_hex(8), request.title.strip())
        with self._lock:
            if sum(not each.is_over for each in self._jobs.values()) >= MOST_WAITING:
                raise Busy("Too many reviews are waiting.", "Try again when one is done.")
            self._jobs[job.id] = job
            for id in [id for id, each in self._jobs.items() if each.is_over][: max(0, len(self._jobs) - MOST_KEPT)]:
                del self._jobs[id]

        def find(library: Library) -> list[Paper]:
            with library.reading():
                require_papers(library, request.papers)
                return fitting_papers(library, wanted)

        self._threads.start(self._make, job, find, columns, slots=self._slots)
        return self.show(job.id)

    def _make(self, job: _Job, find: Callable[[Library], list[Paper]], columns: Sequence[Column]) -> None:
        try:
            with self._opened(has_questions=bool(columns)) as (library, finder):
                papers = find(library)
                title = job.title or f"Review of {counted(len(papers), 'paper')}"
                reviewer = self._app.reviewer(library, finder, lambda: self._check(job))
                review = reviewer.review(papers, title, columns, self._progress(job), lambda: self._check(job))
            self._set(job, state="done", review=review, title=title)
        except RequestCancelled:
            self._set(job, state="stopped")
        except Exception as error:
            log_internal(error)
            self._set(job, state="failed", error=error_of(error))

    @contextmanager
    def _opened(self, *, has_questions: bool) -> Iterator[tuple[Library, CellFinder | None]]:
        """A library for a review, and what answers its questions."""
        if has_questions:
            with self._retrievers.acquire() as reader:
                yield reader.library, self._app.cell_finder(reader.library, reader.retriever)
        else:
            with closing(self._app.open_library()) as library:
                self._app.require_paper(library)
                yield library, None

    def _progress(self, job: _Job) -> Progress:
        def progress(label: str, done: int, total: int) -> None:
            if label == COMPARING:
                self._set(job, state="comparing")
            else:
                self._set(job, state="reading", done=done, total=total)

        return progress

    def _check(self, job: _Job) -> None:
        self._threads.check_cancelled()
        if job.stop.is_set():
            raise RequestCancelled

    def _set(self, job: _Job, **changes: Any) -> None:
        with self._lock:
            for name, value in changes.items():
                setattr(job, name, value)

    def show(self, id: str) -> schema.ReviewJson:
        """Raises NotKnown."""
        with self._lock:
            job = self._find(id)
            review = job.review
            shown = schema.ReviewJson(
                id=id,
                title=name_line(job.title),
                state=job.state,
                done=job.done,
                total=job.total,
                error=job.error,
                blocks=[],
            )
        if review is None:
            return shown
        blocks = [schema.block_json(block) for block in self._blocks(review, "")]
        return shown.model_copy(update={"blocks": blocks})

    def stop(self, id: str) -> None:
        """Raises NotKnown."""
        with self._lock:
            self._find(id).stop.set()

    def export(self, id: str, kind: ReviewFormat) -> tuple[bytes, str, str]:
        """The file, its media type and its name. Raises NotKnown, also for a review that is not done."""
        with self._lock:
            review = self._find(id).review
        if review is None:
            raise NotKnown("The review is not done.", "Wait until it is, or make another one.")
        blocks, name = self._blocks(review, self._page), f"folio-review.{kind}"
        if kind == "docx":
            return word_of_blocks(blocks), WORD, name
        return document_markdown(blocks).encode(), "text/markdown; charset=utf-8", name

    def _find(self, id: str) -> _Job:
        if job := self._jobs.get(id):
            return job
        raise NotKnown("The review is not there any more.", "Make it again: reviews are kept until Folio ends.")

    def _blocks(self, review: Review, page: str) -> list[Block]:
        return report(review, Citing(self._app.numbers_citations, page))


def review_routes(reviews: Reviews) -> APIRouter:
    routes = APIRouter(tags=["Reviews"])

    @routes.post("/reviews", status_code=202)
    async def make_review(request: schema.ReviewRequest) -> schema.ReviewJson:
        """Begin a review of papers: what each contributes in its own words, by theme, where they agree and differ, what
        they leave open, and their references."""
        return reviews.start(request)

    @routes.get("/reviews/{review}")
    def get_review(review: schema.ReviewId) -> schema.ReviewJson:
        """A review, or how far it is."""
        return reviews.show(review)

    @routes.post("/reviews/{review}/stop", status_code=204)
    def stop_review(review: schema.ReviewId) -> None:
        """Stop a review that is being made."""
        reviews.stop(review)

    content: dict[str, Any] = {
        "text/markdown": {"schema": {"type": "string"}},
        WORD: {"schema": {"type": "string", "format": "binary"}},
    }

    @routes.get(
        "/reviews/{review}/export",
        response_class=Response,
        responses={200: {"description": "The file.", "content": content}},
    )
    def export_review(review: schema.ReviewId, format: ReviewFormat = "md") -> Response:
        """A review that is done as Markdown or as a Word document."""
        data, media_type, name = reviews.export(review, format)
        disposition = f"attachment; filename*=UTF-8''{quote(name)}"
        return Response(data, media_type=media_type, headers={"Content-Disposition": disposition})

    return routes
