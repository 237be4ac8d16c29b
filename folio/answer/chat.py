"""A conversation: questions that follow up on each other, each put to LangChain's chain (chain.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING

from folio.answer.evidence import GatheredEvidence, gather
from folio.background import run_in_background
from folio.errors import UsageError
from folio.protocols import Answerer
from folio.search.retriever import Retriever, SearchResult, Stopwatch
from folio.store.query_log import LogEntry, LoggedSource
from folio.types import Answer, Hit, Paper, Sentence, Style

if TYPE_CHECKING:
    from langchain_classic.chains import ConversationalRetrievalChain

OnSentence = Callable[[Sentence], None]
OnHits = Callable[[Sequence[Hit]], None]

# Turns of a conversation whose evidence stays a candidate.
REMEMBERED_EVIDENCE = 3


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, the evidence that it was given, and the milliseconds that each stage took."""

    answer: Answer
    hits: tuple[Hit, ...]
    timings_ms: dict[str, float]


def _nobody(_: object) -> None:
    """Where nobody listens."""


def import_aside() -> None:
    """Begin to import LangChain beside whatever else is done; who needs it waits for the rest, and has the errors."""
    run_in_background(partial(import_module, "folio.answer.chain"))


def remembered(turns: Sequence[Answer]) -> list[int]:
    """The ids of the chunks that the last answers were made from: candidates for the next question in any case."""
    hits = (hit for turn in turns[-REMEMBERED_EVIDENCE:] for evidence in turn.evidence for hit in evidence.hits)
    return list(dict.fromkeys(hit.chunk.id for hit in hits))


class Chat:
    """Questions and answers that follow up on each other; one at a time, so that each conversation has its own."""

    def __init__(
        self,
        retriever: Retriever,
        answerer: Answerer,
        *,
        top_k: int,
        papers: Sequence[Paper] | None = None,
        style: Style = "plain",
        rerank: bool = True,
        turns: Sequence[Answer] = (),
    ) -> None:
        """top_k: passages of evidence for an answer. papers: asked among these only, where they are given.

        turns: what was said before, where an earlier conversation goes on.
        """
        self._retriever = retriever
        self._answerer = answerer
        self._top_k = top_k
        self._papers = papers
        self._style = style
        self._rerank = rerank
        self._turns = list(turns)
        self._on_hits: OnHits = _nobody
        self._found = SearchResult((), {}, {})
        self._ahead: str | None = None  # the question that _found is of before the chain has asked for it
        self._clock = Stopwatch()

    @property
    def models(self) -> dict[str, str]:
        """What embeds, reranks and answers, by the names that people see."""
        return {**self._retriever.models_in(rerank=self._rerank), "llm": self._answerer.name}

    def ask(self, question: str, on_sentence: OnSentence = _nobody, on_hits: OnHits = _nobody) -> Reply:
        """Answer a question from the papers; `searched` gets what was found, `told` each sentence as it passes.

        What these two raise ends the answer. Raises UsageError for an empty question and ModelError. The conversation
        is then as it was before.
        """
        question = question.strip().encode(errors="replace").decode()  # the shell hands on bytes that are no UTF-8
        if not question:
            raise UsageError("The question is empty.", 'Ask one: python query.py "What is ...?"')
        self._clock, self._on_hits = Stopwatch(), on_hits
        if "_chain" not in vars(self) and not self._turns:  # LangChain is still being imported, and this needs none
            self._search(question)
            self._ahead = question
            self._chain  # noqa: B018
            self._clock.skip()
        history = [(turn.standalone_question, turn.text) for turn in self._turns]
        output = self._chain.invoke({"question": question, "chat_history": history, "on_sentence": on_sentence})
        self._clock.lap("answer")
        answer: Answer = replace(output["answer"], question=question)
        self._turns.append(answer)
        stages = self._clock.laps  # of these, retrieve is made of the retriever's own
        total = round(sum(stages.values()), 2)
        return Reply(answer, self._found.hits, {**self._found.timings_ms, **stages, "total": total})

    def start_anew(self) -> None:
        """Forget the conversation."""
        self._turns.clear()

    @cached_property
    def _chain(self) -> ConversationalRetrievalChain:
        from folio.answer.chain import make_chain

        return make_chain(self._search, self._rewrite, self._gather, self._answerer, self._style)

    def _rewrite(self, question: str) -> str:
        standalone = self._answerer.standalone(question, self._turns)
        self._clock.lap("rewrite")
        return standalone

    def _search(self, question: str) -> Sequence[Hit]:
        if question == self._ahead:
            self._ahead = None
            return self._found.hits
        self._ahead = None
        also = remembered(self._turns)
        self._found = self._retriever.search(question, self._top_k, self._papers, also, rerank=self._rerank)
        self._clock.lap("retrieve")
        self._on_hits(self._found.hits)
        return self._found.hits

    def _gather(self, hits: Sequence[Hit]) -> GatheredEvidence:
        gathered = gather(hits, self._retriever.text, self._answerer.evidence_tokens)
        self._clock.lap("evidence")
        return gathered


# As the log of questions keeps it


def log_entry(reply: Reply, asked: str, model: str) -> LogEntry:
    """asked: ISO time in UTC. model: what answered."""
    answer = reply.answer
    return LogEntry(
        asked,
        answer.question,
        answer.standalone_question,
        tuple(hit.chunk.id for evidence in answer.evidence for hit in evidence.hits),
        answer.text,
        tuple(LoggedSource(c.paper.id, c.paper.file, c.page, c.quote) for c in answer.citations),
        dict(reply.timings_ms),
        model,
    )
