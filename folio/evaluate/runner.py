"""A set of questions, asked of a store -> a record of what each found, which figures are made of."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from folio.errors import ModelError, UsageError
from folio.evaluate.dataset import EvalSet, Question
from folio.evaluate.metrics import Answered, Asked
from folio.evaluate.relevance import Fault, Needs, RelevanceJudge, rank_of
from folio.files import write_json
from folio.search.retriever import Retriever, SearchResult
from folio.store.library import Library
from folio.types import Progress

if TYPE_CHECKING:
    from folio.answer.chat import Chat, Reply
    from folio.protocols import Answerer

# Hits that are asked for: as many as the widest cut looks at.
DEPTH = 20
# Questions in a row that a model fails on before the others are given up: the server is down then, or the model gone.
MOST_FAILURES = 3
# Goes up when a record of before can no longer be read.
FORM = 1


@dataclass(frozen=True, slots=True)
class Failed:
    """A question that a model failed on, which no figure counts."""

    question: str  # its id
    happened: str
    remedy: str


@dataclass(frozen=True)
class Run:
    """One evaluation, whole: what it is called, what it was made with, and every question's outcome."""

    name: str
    made: datetime
    source: str  # the file or folder of the set
    is_text: bool  # of a plain text set: its documents are papers of one page, and there are no figures by page
    models: dict[str, str]
    store: dict[str, str]
    settings: dict[str, str]
    stages: tuple[str, ...]  # in the order in which they rank
    asked: tuple[Asked, ...]
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]
    seconds: float
    form: int = FORM
    failed: tuple[Failed, ...] = ()


def save(path: Path, run: Run) -> None:
    """Replace a file by a run, as JSON. Raises DiskFull."""
    write_json(path, TypeAdapter(Run).dump_python(run, mode="json"))


def load(path: Path) -> Run:
    """A run that was saved. Raises UsageError for a file that is not there or holds none."""
    try:
        text = path.read_text(encoding="utf-8")
        form = json.loads(text)["form"]
        if form != FORM:
            raise UsageError(f"{path} was saved by another version of evaluate.py.", "Run that evaluation again.")
        return TypeAdapter(Run).validate_json(text)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.", "Check the path.") from error
    except (ValueError, TypeError, KeyError, ValidationError) as error:
        raise UsageError(
            f"{path} holds no run of evaluate.py.", "Save one: python evaluate.py EVAL_SET --json FILE."
        ) from error


class Runner:
    """Asks the questions of one set."""

    def __init__(
        self,
        evalset: EvalSet,
        library: Library,
        retriever: Retriever,
        chat: Chat | None = None,
        answerer: Answerer | None = None,
    ) -> None:
        """chat: asked for answers too, where it is given; answerer: the one behind it, for its confidence."""
        self._set = evalset
        self._retriever = retriever
        self._chat = chat
        self._answerer = answerer
        self._judge = RelevanceJudge(evalset, library)
        self._faults: list[Fault] = []

    def run(self, made: datetime, store: Mapping[str, str], settings: Mapping[str, str], progress: Progress) -> Run:
        """Ask every question; progress: gets how many are done, and of how many.

        A question that a model fails on is told in the run, and the others are asked all the same, until MOST_FAILURES
        come in a row. Raises UsageError when none of the set's papers is in the library, and ModelError when no
        question at all went well.
        """
        began = perf_counter()
        questions = self._set.questions
        named = {gold.paper for question in questions for gold in question.gold}
        if named and not named & set(self._judge.papers):
            raise UsageError(
                f"None of the papers that {self._set.path.name} asks about is in the index.",
                f"Name their folder: python evaluate.py {self._set.path} --papers FOLDER.",
            )
        self._retriever.search(questions[0].text, DEPTH)  # models load and files open before the clock runs
        asked: list[Asked] = []
        failed: list[Failed] = []
        in_a_row = 0
        for done, question in enumerate(questions):
            progress("Asking", done, len(questions))
            try:
                asked.append(self._ask(question))
                in_a_row = 0
            except ModelError as error:
                failed.append(Failed(question.id, error.happened, error.remedy))
                in_a_row += 1
                last = done + 1 == len(questions)
                if not asked and (last or in_a_row == MOST_FAILURES):
                    raise
                if in_a_row == MOST_FAILURES:
                    break
        left = len(questions) - len(asked) - len(failed)
        progress("Asking", len(questions) - left, len(questions))
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
            faults=tuple(self._faults),
            notes=tuple(self._notes(left)),
            seconds=round(perf_counter() - began, 1),
            failed=tuple(failed),
        )

    def _ask(self, question: Question) -> Asked:
        needs, faults = self._judge.needs(question)
        self._faults += faults
        replies = self._replies(question)
        found = self._search(question, replies)
        timings = dict(found.timings_ms)
        answer: Answered | None = None
        if replies:
            answer = self._answered(replies[-1], needs)
            timings["answer"] = replies[-1].timings_ms["answer"]
            timings["question to answer"] = replies[-1].timings_ms["total"]
        outcome = Asked(question.id, question.type, question.answerable, question.every, {}, {}, timings, answer)
        if self._set.relevance is not None:
            return self._graded(outcome, self._set.relevance.get(question.id, {}), found)
        ranks = {stage: self._judge.ranks(needs, ids) for stage, ids in found.ranked.items()}
        return replace(outcome, gains={unit: (1.0,) * len(needs.things) for unit in needs.units}, ranks=ranks)

    def _graded(self, outcome: Asked, grades: Mapping[str, int], found: SearchResult) -> Asked:
        """A document ranks by its best chunk, and gains its grade; one that is not in the store is never found."""
        relevant = {name: grade for name, grade in grades.items() if grade > 0}
        if not relevant:
            return outcome
        wanted = [self._judge.papers[name].id if name in self._judge.papers else "" for name in relevant]
        orders = {stage: self._judge.paper_order(ids) for stage, ids in found.ranked.items()}
        ranks = {stage: {"paper": tuple(rank_of(order, id) for id in wanted)} for stage, order in orders.items()}
        return replace(outcome, gains={"paper": tuple(map(float, relevant.values()))}, ranks=ranks)

    def _replies(self, question: Question) -> list[Reply]:
        """The replies to a conversation's questions, in order; none where answers are not asked for."""
        if self._chat is None:
            return []
        self._chat.start_anew()
        return [self._chat.ask(text) for text in (*question.history, question.text)]

    def _search(self, question: Question, replies: Sequence[Reply]) -> SearchResult:
        """A follow-up is searched for as the chat did: rewritten, with the evidence of earlier turns as candidates."""
        if len(replies) < 2:
            return self._retriever.search(question.text, DEPTH)
        from folio.answer.chat import remembered

        also = remembered([reply.answer for reply in replies[:-1]])
        return self._retriever.search(replies[-1].answer.standalone_question, DEPTH, also=also)

    def _answered(self, reply: Reply, needs: Needs) -> Answered:
        answer = reply.answer
        citations = dict.fromkeys(citation for sentence in answer.sentences for citation in sentence.citations)
        return Answered(
            refused=answer.refused,
            sentences=len(answer.sentences),
            with_citation=sum(bool(sentence.citations) for sentence in answer.sentences),
            citations=tuple(self._judge.cited(citation, needs) for citation in citations),
            confidence=getattr(self._answerer, "confidence", None),
            has_gold_page=any(place.pages for places in needs.things for place in places),
        )

    def _notes(self, left: int) -> Iterator[str]:
        if left:
            yield f"Given up after {MOST_FAILURES} failures in a row; questions that were not asked: {left}."
        if gone := list(dict.fromkeys(self._judge.originals.gone)):
            yield f"Not there, or not as ingested, so that the index's own pages had to do: {', '.join(gone)}."
        if not self._chat and any(question.history for question in self._set.questions):
            yield "Follow-ups were searched for as they stand, since no answers were asked for."
        if self._set.pending:
            yield f"Questions that a model wrote and no person has looked at: {self._set.pending}."
