"""The routes of a person's own questions: citations that were opened, and how many questions are found.

One run at a time, in a thread: it waits while questions are answered, and rests as long as each search took. Its result
is kept, also over a restart, until the questions, the papers or the settings change.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import closing, suppress
from threading import Event, Lock
from time import perf_counter

from fastapi import APIRouter
from fastapi.routing import APIRoute

from folio.app import App
from folio.errors import FolioError, StoreMissing
from folio.schema import own_questions as schema
from folio.search.own_questions import KnownQuestions, OwnResult, Tried, known_questions, measure, variants
from folio.search.pool import RetrieverPool
from folio.store.conversations import Conversations
from folio.store.library import Library
from folio.system.threads import run_in_background
from folio.web.own_results import keep_result, kept_result, result_key
from folio.web.questions import Questions

logger = logging.getLogger(__name__)

_WAIT_S = 0.2  # between two looks whether questions are still being answered
_LONGEST_REST_S = 1.0


class _Cancelled(Exception):
    """A person has stopped the run, or the server stops."""


class OwnQuestions:
    """Thread-safe."""

    def __init__(
        self,
        app: App,
        retrievers: RetrieverPool,
        conversations: Conversations,
        questions: Questions,
        is_answering: Callable[[], bool],
    ) -> None:
        self._app = app
        self._retrievers = retrievers
        self._conversations = conversations
        self._questions = questions
        self._is_answering = is_answering
        self._lock = Lock()
        self._stop = Event()
        self._is_running = False
        self._done = self._total = 0
        self._problem = ""
        self._result: tuple[str, schema.OwnResultJson] | None = None  # with its key

    def record_opened(self, opened: schema.OpenedRequest) -> None:
        """Record in the log that a person opened a cited page; nothing if questions are not logged.

        Raises NotKnown for an answer that does not exist.
        """
        row = self._conversations.query(opened.conversation, opened.turn)
        if row is None or not self._questions.are_logged:
            return
        with closing(self._app.open_library()) as library:
            self._app.query_log(library).open_citation(row, opened.paper, opened.page)

    def state(self) -> schema.OwnQuestionsJson:
        """How things stand."""
        logged, key = KnownQuestions((), (), ()), ""
        with suppress(StoreMissing), closing(self._app.open_library()) as library:
            logged, key = self._read(library)
        asked = logged.searched
        with self._lock:
            if key and (self._result is None or self._result[0] != key):
                kept = kept_result(self._app.cache_folder, key, asked)
                self._result = (key, kept) if kept else None
            result = self._result[1] if self._result else None
            return schema.OwnQuestionsJson(
                questions=len(asked),
                opened=sum(question.is_opened for question in asked),
                bad=len(logged.bad),
                logged=self._questions.are_logged,
                state="running" if self._is_running else "failed" if self._problem else "idle",
                done=self._done,
                total=self._total,
                problem=self._problem,
                result=result,
            )

    def start(self) -> None:
        """Begin to measure, unless that is being done."""
        with self._lock:
            if self._is_running:
                return
            self._is_running, self._problem, self._done, self._total = True, "", 0, 0
            self._stop.clear()
        run_in_background(self._run)

    def stop(self) -> None:
        self._stop.set()

    def _read(self, library: Library) -> tuple[KnownQuestions, str]:
        """The questions of the log, and the key of what they are measured on."""
        log = self._app.query_log(library)
        with library.reading():
            papers = {paper.id for paper in library.papers()}
            stamp = library.papers_stamp()
        known = known_questions(log.entries(), papers, log.opened())
        return known, result_key(known.searched, stamp, self._app.settings_used())

    def _run(self) -> None:
        problem = ""
        try:
            with closing(self._app.open_library()) as library:
                logged, key = self._read(library)
            asked = logged.searched
            with self._retrievers.acquire() as reader:
                retriever = reader.retriever.without_writer()
                ways = [*variants(self._app.models.fusion, self._app.top_k, rerank=retriever.has_reranker)]
                result = _result_json(measure(asked, retriever, ways, self._between_searches()))
            keep_result(self._app.cache_folder, key, asked, result)
            with self._lock:
                self._result = key, result
        except _Cancelled:
            pass
        except FolioError as error:
            problem = f"{error.happened} {error.remedy}"
        except Exception:
            logger.exception("A person's questions could not be measured")
            problem = "Something went wrong. Try again."
        finally:
            with self._lock:
                self._is_running, self._problem = False, problem

    def _between_searches(self) -> Callable[[int, int], None]:
        """Called between two searches: rests, waits while questions are answered, and raises _Cancelled."""
        began = perf_counter()

        def rest(done: int, total: int) -> None:
            nonlocal began
            with self._lock:
                self._done, self._total = done, total
            took = perf_counter() - began
            is_stopped = self._stop.wait(min(took, _LONGEST_REST_S) if done else 0)
            while self._is_answering() and not is_stopped:
                is_stopped = self._stop.wait(_WAIT_S)
            if is_stopped:
                raise _Cancelled
            began = perf_counter()

        return rest


def own_question_routes(own: OwnQuestions, route_class: type[APIRoute]) -> APIRouter:
    routes = APIRouter(tags=["Your questions"], route_class=route_class)

    @routes.post("/opened", status_code=204)
    def record_opened(opened: schema.OpenedRequest) -> None:
        """Record in the log that a cited page was opened from an answer; nothing where questions are not logged."""
        own.record_opened(opened)

    @routes.get("/own-questions")
    def get_own_questions() -> schema.OwnQuestionsJson:
        """How many questions of the log are found, and with which settings, once that was measured."""
        return own.state()

    @routes.post("/own-questions/measure", status_code=202)
    def measure_own_questions() -> schema.OwnQuestionsJson:
        """Measure it, in the background. Nothing is changed by it."""
        own.start()
        return own.state()

    @routes.post("/own-questions/stop", status_code=204)
    def stop_measuring() -> None:
        """Stop measuring; what was measured until then is dropped."""
        own.stop()

    return routes


def _result_json(result: OwnResult) -> schema.OwnResultJson:
    return schema.OwnResultJson(
        questions=result.questions,
        opened=result.opened,
        now=_tried_json(result.now),
        others=list(map(_tried_json, result.others)),
        missed=list(result.missed),
    )


def _tried_json(tried: Tried) -> schema.TriedJson:
    return schema.TriedJson(
        settings=dict(tried.settings),
        found=tried.found,
        gained=tried.gained,
        lost=tried.lost,
        verdict=tried.verdict,
    )
