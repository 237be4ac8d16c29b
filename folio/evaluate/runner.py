"""Runs an evaluation set against a store and records what each question found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from pydantic import TypeAdapter, ValidationError

from folio.app import App
from folio.errors import ModelError, ModelFailed, UsageError, command
from folio.evaluate import followups
from folio.evaluate.dataset import Document, EvalSet, Question
from folio.evaluate.followups import Resolution
from folio.evaluate.metrics import AnswerResult, QuestionResult
from folio.evaluate.relevance import GoldProblem, RelevanceJudge, Targets, papers_by_file, rank_of
from folio.ingest import chunking, queue
from folio.papers.metadata import simple_metadata
from folio.papers.model import NewPaper, PageMap, Paper, Progress, SourceFile
from folio.protocols import Embedder
from folio.question.question import Question as AskedQuestion
from folio.search.retriever import Retriever, SearchRequest, SearchResult
from folio.shown_text import name_line
from folio.store import indexes
from folio.store.fingerprint import Reading, fingerprint
from folio.store.library import Library
from folio.system.files import json_bytes, write_output
from folio.text import plain_words, without_ending

if TYPE_CHECKING:
    from folio.answer.chat import Chat, Reply
    from folio.answer_types import Answer
    from folio.evaluate.judge import Judge
    from folio.protocols import Answerer


SavedRun = TypeVar("SavedRun")


# Hits per search, as many as the largest recall cut-off.
DEPTH = 20
# Stop after this many model failures in a row: the server is down or the model is gone.
MAX_CONSECUTIVE_FAILURES = 3
# Papers that a note names, and the most characters of a name
_NAMED, _NAME = 20, 80
# Increase when older saved runs can no longer be read.
FORM = 1


@dataclass(frozen=True, slots=True)
class FailedQuestion:
    """A question on which a model failed; no metric counts it."""

    question: str  # its id
    happened: str
    remedy: str


@dataclass(frozen=True)
class Run:
    """One complete evaluation: its name, configuration and the result of every question.

    Saved as JSON under these field names; older files must stay readable.
    """

    name: str
    made: datetime
    source: str  # the file or folder of the set
    is_text: bool  # a plain text set: documents are one-page papers, and nothing is measured by page
    models: dict[str, str]
    store: dict[str, str]
    settings: dict[str, str]
    stages: tuple[str, ...]  # in ranking order
    asked: tuple[QuestionResult, ...]
    faults: tuple[GoldProblem, ...]
    notes: tuple[str, ...]
    seconds: float
    form: int = FORM
    failed: tuple[FailedQuestion, ...] = ()
    resolution: Resolution | None = None  # of a set of conversations with rewrites by people


def load(path: Path) -> Run:
    """Load a saved run. Raises UsageError if the file is missing or is not a run."""
    return load_run(path, Run, ("form", FORM), "a saved run", f"Save one: {command('evaluate EVAL_SET --json FILE')}.")


class Runner:
    """Asks the questions of one set."""

    def __init__(
        self,
        evalset: EvalSet,
        library: Library,
        retriever: Retriever,
        chat: Chat | None = None,
        answerer: Answerer | None = None,
        judge: Judge | None = None,
        papers: Sequence[Paper] | None = None,
    ) -> None:
        """chat: if given, answers are measured too. answerer: used by chat; its confidence counts, and its rewrites.

        judge: if given, grades the answers to questions that have one. papers: search only these, as the chat does.
        """
        self._set = evalset
        self._retriever = retriever
        self._chat = chat
        self._answerer = answerer
        self._grader = judge
        self._papers = papers
        self._ungraded = 0
        self._judge = RelevanceJudge(evalset, library)
        self._problems: list[GoldProblem] = []

    def run(self, made: datetime, store: Mapping[str, str], settings: Mapping[str, str], progress: Progress) -> Run:
        """Ask every question. progress: called with a label, the questions done and their total.

        A question on which a model fails is recorded and the run continues, until MAX_CONSECUTIVE_FAILURES in a row.
        Raises UsageError if none of the set's papers is in the library, and ModelError if every question failed.
        """
        began = perf_counter()
        questions = self._set.questions
        named = {gold.paper for question in questions for gold in question.gold}
        if named and not named & set(self._judge.papers):
            raise UsageError(
                f"None of the papers that {self._set.path.name} asks about is in the index.",
                f"Name their folder: {command(f'evaluate {self._set.path} --papers FOLDER')}.",
            )
        self._retriever.search(questions[0].text, DEPTH)  # warm up: load models and open files before timing
        asked: list[QuestionResult] = []
        failed: list[FailedQuestion] = []
        failures = 0
        for done, question in enumerate(questions):
            progress("Asking", done, len(questions))
            try:
                asked.append(self._ask(question))
                failures = 0
            except ModelError as error:
                failed.append(FailedQuestion(question.id, error.happened, error.remedy))
                failures += 1
                last = done + 1 == len(questions)
                if not asked and (last or failures == MAX_CONSECUTIVE_FAILURES):
                    raise
                if failures == MAX_CONSECUTIVE_FAILURES:
                    break
        remaining = len(questions) - len(asked) - len(failed)
        progress("Asking", len(questions) - remaining, len(questions))
        return Run(
            name=self._set.name,
            made=made,
            source=str(self._set.path),
            is_text=bool(self._set.documents),
            models=self._chat.models if self._chat else self._retriever.models,
            store=dict(store),
            settings=dict(settings),
            stages=tuple(dict.fromkeys(stage for question in asked for stage in question.ranks)),
            asked=tuple(asked),
            faults=tuple(self._problems),
            notes=tuple(self._notes(remaining)),
            seconds=round(perf_counter() - began, 1),
            failed=tuple(failed),
            resolution=self._resolution(),
        )

    def _resolution(self) -> Resolution | None:
        if not self._set.rewrites or not self._answerer:
            return None
        return followups.resolution(self._set.rewrites, self._answerer.standalone)

    def _ask(self, question: Question) -> QuestionResult:
        targets, problems = self._judge.targets(question)
        self._problems += problems
        replies = self._replies(question)
        result = self._search(question, replies)
        timings = dict(result.timings_ms)
        answer: AnswerResult | None = None
        if replies:
            answer = self._judge_answer(replies[-1], targets, question)
            timings["answer"] = replies[-1].timings_ms["answer"]
            timings["question to answer"] = replies[-1].timings_ms["total"]
        kind, answerable, every = question.type, question.answerable, question.every
        outcome = QuestionResult(question.id, kind, answerable, every, {}, {}, timings, answer, question.difficulty)
        if self._set.relevance is not None:
            return self._graded(outcome, self._set.relevance.get(question.id, {}), result)
        ranks = {stage: self._judge.ranks(targets, ids) for stage, ids in result.ranked.items()}
        return replace(outcome, gains={unit: (1.0,) * len(targets.groups) for unit in targets.units}, ranks=ranks)

    def _graded(self, outcome: QuestionResult, grades: Mapping[str, int], result: SearchResult) -> QuestionResult:
        """Score by document: its rank is that of its best chunk and its gain is its grade."""
        relevant = {name: grade for name, grade in grades.items() if grade > 0}
        if not relevant:
            return outcome
        ids = [self._judge.papers[name].id if name in self._judge.papers else "" for name in relevant]
        orders = {stage: self._judge.paper_order(ids) for stage, ids in result.ranked.items()}
        ranks = {stage: {"paper": tuple(rank_of(order, id) for id in ids)} for stage, order in orders.items()}
        return replace(outcome, gains={"paper": tuple(map(float, relevant.values()))}, ranks=ranks)

    def _replies(self, question: Question) -> list[Reply]:
        """The replies to the questions of a conversation, in order; none if answers are not measured."""
        if self._chat is None:
            return []
        self._chat.reset()
        replies = [self._chat.ask(text) for text in (*question.history, question.text)]
        for reply in replies:
            if reply.answer.model_failed:  # the fallback answer shows nothing about the model
                raise ModelFailed(reply.answer.notice, "Ask it again when the model's server is well.")
        return replies

    def _search(self, question: Question, replies: Sequence[Reply]) -> SearchResult:
        """Search as the chat does: with several readings, and with earlier evidence among the candidates.

        A set of conversations has no replies, so followups.search resolves its follow-ups from their history.
        """
        if self._set.relevance is not None and question.history and self._answerer:
            return followups.search(self._retriever, question, DEPTH, self._answerer.standalone)
        understood = replies[-1].question if replies else None
        if len(replies) < 2 or understood is None:
            return self._retriever.search(question.text, DEPTH, self._papers)
        from folio.answer.passages import remembered

        first, *others = understood.readings or (understood.text,)
        also = remembered([reply.answer for reply in replies[:-1]]) if others else ()
        papers = replies[-1].papers or self._papers
        return self._retriever.find(SearchRequest(AskedQuestion(first), DEPTH, papers, also=also, readings=others))

    def _judge_answer(self, reply: Reply, targets: Targets, question: Question) -> AnswerResult:
        answer = reply.answer
        citations = dict.fromkeys(citation for sentence in answer.sentences for citation in sentence.citations)
        return AnswerResult(
            refused=answer.refused,
            sentences=len(answer.sentences),
            with_citation=sum(bool(sentence.citations) for sentence in answer.sentences),
            citations=tuple(self._judge.check_citation(citation, targets) for citation in citations),
            confidence=reply.confidence,
            has_gold_page=any(place.pages for places in targets.groups for place in places),
            gold_shown=self._judge.is_shown(tuple(citations), targets),
            topics=(sum(_names(answer.text, topic) for topic in question.topics), len(question.topics)),
            words=sum(len(sentence.text.split()) for sentence in answer.sentences),
            grade=self._grade(answer, question),
        )

    def _grade(self, answer: Answer, question: Question) -> int | None:
        """The judge's grade of an answer to an answerable question; a refusal gets 0 without the judge."""
        if self._grader is None or not question.answerable:
            return None
        if answer.refused:
            return 0
        quotes = [citation.quote for citation in answer.citations]
        graded = self._grader(answer.standalone_question, answer.text, quotes, question.answer)
        if graded is None:
            self._ungraded += 1
        return graded.grade if graded else None

    def _notes(self, remaining: int) -> Iterator[str]:
        if remaining:
            yield f"Stopped after {MAX_CONSECUTIVE_FAILURES} failures in a row; questions not asked: {remaining}."
        if self._ungraded:
            yield f"Answers that the model gave no grade: {self._ungraded}."
        if missing := list(dict.fromkeys(self._judge.source_pages.missing)):
            yield f"Missing or changed since they were ingested, so the indexed pages were used: {', '.join(missing)}."
        rewrites = self._chat or (self._set.relevance is not None and self._answerer)
        if not rewrites and any(question.history for question in self._set.questions):
            yield "Follow-ups were searched without rewriting, because answers were not measured."
        if self._set.unknown:
            named = ", ".join(name_line(name, _NAME) for name in self._set.unknown[:_NAMED])
            further = f" and {len(self._set.unknown) - _NAMED} more" if len(self._set.unknown) > _NAMED else ""
            yield f"Papers of the set that the index does not have: {len(self._set.unknown)} ({named}{further})."
        if self._set.left_out:
            yield f"Questions left out, because the index has none of their papers: {self._set.left_out}."
        if self._set.outside:
            yield f"Questions left out, because they need papers that are not in the project: {self._set.outside}."
        if self._set.pending:
            yield f"Questions written by a model and not yet reviewed: {self._set.pending}."


def _names(answer: str, topic: str) -> bool:
    """Whether an answer has all words of a topic, in any form."""
    said = {without_ending(word) for word in plain_words(answer)}
    return {without_ending(word) for word in plain_words(topic)} <= said


# Settings for locations and display, which do not affect the metrics.
_IRRELEVANT_SETTINGS = {"PAPERS_DIR", "VECTORSTORE_DIR", "INGESTED_JSON", "MODELS_DIR", "QUERY_LOG", "PDF_VIEWER"}


@dataclass(frozen=True, slots=True)
class OpenedStore:
    """An opened store to evaluate."""

    library: Library
    retriever: Retriever
    about: dict[str, str]  # the store's folder, size and fingerprint


def app_for_papers(app: App, papers: Path) -> App:
    """The app over a separate store for this folder of papers, kept below the index.

    The store's name depends on the folder and everything that affects its vectors: each configuration has a store.
    """
    made_with = fingerprint(app.new_embedder(), app.reading)
    place = papers.resolve()
    key = hashlib.sha256(json.dumps([str(place), made_with], sort_keys=True).encode()).hexdigest()[:12]
    return app.over(place, app.store_folder / indexes.EVALUATIONS / f"{place.name}-{key}")


@contextmanager
def open_paper_store(app: App) -> Iterator[OpenedStore]:
    """Open the app's store. Raises StoreMissing, StoreMismatch and ModelError."""
    library = app.open_library()
    try:
        yield OpenedStore(library, app.retriever(library, measured=True), _about(library, app.store_folder))
    finally:
        library.close()


@contextmanager
def open_text_store(app: App, evalset: EvalSet, progress: Progress) -> Iterator[OpenedStore]:
    """Open a store of the set's own documents; it is built if it does not exist yet.

    A BEIR set has one passage per document, as in published results. Raises StoreBusy, DiskFull and ModelError.
    """
    embedder = app.new_embedder()
    folder = build_text_store(
        app.store_folder / indexes.EVALUATIONS,
        evalset.documents,
        embedder,
        app.reading,
        whole=evalset.relevance is not None,
        engine=app.lexical_engine,
        batch=app.embed_batch,
        progress=progress,
    )
    library = Library(folder / indexes.LIBRARY)
    try:
        retriever = app.retriever_over(
            library, embedder, lambda: indexes.open_indexes(folder, library, app.lexical_engine, app.notice)
        )
        yield OpenedStore(library, retriever, _about(library, folder))
    finally:
        library.close()


def files_of(library: Library, papers: Iterable[Paper]) -> set[str]:
    """The names that a set may have for the files of these papers."""
    ids = {paper.id for paper in papers}
    return {name for name, paper in papers_by_file(library).items() if paper.id in ids}


def relevant_settings(app: App) -> dict[str, str]:
    """The settings that may affect the metrics."""
    return {name: value for name, value in app.settings_used().items() if name not in _IRRELEVANT_SETTINGS}


def _about(library: Library, folder: Path) -> dict[str, str]:
    counts = library.counts()
    return {
        "store": str(folder),
        "papers": str(counts["papers"]),
        "chunks": str(library.chunk_count()),
        "fine passages": str(library.chunk_count("fine")),
        **library.fingerprint(),
    }


LABEL = "embedding documents"


def build_text_store(
    folder: Path,
    documents: Sequence[Document],
    embedder: Embedder,
    reading: Reading,
    *,
    whole: bool = False,
    engine: indexes.Engine = "tantivy",
    batch: int = 32,
    progress: Progress = lambda label, done, of: None,
) -> Path:
    """Build a store of these documents in a subfolder of `folder`; returns that subfolder.

    It has the layout of any store: `Library(made / indexes.LIBRARY)` and `indexes.open_indexes(made, ...)` open it.
    Each document becomes a one-page paper whose file is the document's id and whose text is the document's, so offsets
    are the same in both. Documents without text are skipped. A complete store of the same documents with the same
    fingerprint is reused; an interrupted build is resumed.

    whole: one passage per document, title and text joined by a space, as in published BEIR results (Thakur et al. 2021,
    arXiv:2104.08663); the paper then has no title, which would count twice. batch: passages per embedder call.
    progress: called with a label, the documents done and their total.

    Raises StoreBusy, DiskFull and ModelError.
    """
    # The chunk settings do not matter if a document is one passage.
    splitting = replace(reading, chunk_size=0, chunk_overlap=0) if whole else reading
    made_with = {**fingerprint(embedder, splitting), "whole": str(whole)}
    papers = {document.id: _paper(document, reading, whole) for document in documents}
    needed = {paper.id: (name, paper) for name, paper in papers.items() if paper.spans}
    store = folder / _key(made_with, needed)
    if _is_complete(store, set(needed), engine):
        progress(LABEL, len(needed), len(needed))
        return store
    with indexes.writing(store):
        library = Library(store / indexes.LIBRARY, create=True)
        try:
            library.set_fingerprint(made_with)
            stored = {paper.id for paper in library.papers()}
            missing = [(SourceFile(name, name, id), paper) for id, (name, paper) in needed.items() if id not in stored]
            if not missing:
                progress(LABEL, len(needed), len(needed))
            for done, _ in enumerate(
                queue.embed_and_add(library, missing, embedder, batch), len(needed) - len(missing) + 1
            ):
                progress(LABEL, done, len(needed))
            library.forget_pending()
            indexes.update_indexes(store, library, engine)
        finally:
            library.close()
    return store


def _paper(document: Document, reading: Reading, whole: bool) -> NewPaper:
    """A document as a one-page paper. Its id also depends on the document's id, so equal texts stay distinct."""
    text, title = document.text, document.title
    if whole:
        text, title = f"{title} {text}".strip(), ""
        spans: tuple[tuple[int, int], ...] = ((0, len(text)),) if text else ()
        fine = chunking.fine_spans(text, spans, reading.fine_size) if reading.fine_size else ()
    else:
        spans, fine = chunking.chunk_text(text, reading)
    id = hashlib.sha256(f"{document.id}\0{text}".encode()).hexdigest()
    return NewPaper(id, simple_metadata(title), text, PageMap((0,), ("",)), spans, fine_spans=fine)


def _key(made_with: dict[str, str], papers: dict[str, tuple[str, NewPaper]]) -> str:
    """The store's folder name, from the documents and the fingerprint."""
    contents = [made_with, sorted((id, paper.title) for id, (_, paper) in papers.items())]
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()[:16]


def _is_complete(store: Path, papers: set[str], engine: indexes.Engine) -> bool:
    """Whether this store is complete and sound."""
    if not (store / indexes.LIBRARY).exists():
        return False
    library = Library(store / indexes.LIBRARY)
    try:
        return {paper.id for paper in library.papers()} == papers and not indexes.faults(store, library, engine)
    finally:
        library.close()


def save(path: Path, run: object) -> None:
    """Save a run as JSON where a person said. Raises DiskFull."""
    write_output(path, json_bytes(TypeAdapter(type(run)).dump_python(run, mode="json")))


def load_run(path: Path, kind: type[SavedRun], form: tuple[str, int], name: str, remedy: str) -> SavedRun:
    """Load a saved run.

    form: the field with the version of the form, and the version that is supported. name: "a saved run", for the
    message. Raises UsageError if the file is missing or is not such a run.
    """
    field, version = form
    try:
        text = path.read_text(encoding="utf-8")
        if json.loads(text)[field] != version:
            raise UsageError(f"{path} was saved by another version of evaluate.py.", "Run that evaluation again.")
        return TypeAdapter(kind).validate_json(text)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.", "Check the path.") from error
    except (ValueError, TypeError, KeyError, ValidationError) as error:
        raise UsageError(f"{path} is not {name}.", remedy) from error
