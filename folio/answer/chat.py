"""A conversation: asks LangChain's chain (chain.py) each question, with the turns before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from folio.answer import followup
from folio.answer.evidence import GatheredEvidence, gather
from folio.answer_types import Answer, Sentence, Style
from folio.background import run_in_background
from folio.errors import UsageError
from folio.protocols import Answerer
from folio.search.candidate_filter import SectionFilter
from folio.search.retriever import Retriever, SearchResult, Stopwatch
from folio.store.query_log import LogEntry, LoggedSource
from folio.text import tokenize
from folio.types import Hit, Paper

if TYPE_CHECKING:
    from langchain_classic.chains import ConversationalRetrievalChain

OnSentence = Callable[[Sentence], None]
OnHits = Callable[[Sequence[Hit]], None]
OnChecking = Callable[[int], None]

# Earlier turns whose evidence is a candidate for the next question.
REMEMBERED_EVIDENCE = 3


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, the hits it was made from, and the milliseconds that each stage took."""

    answer: Answer
    hits: tuple[Hit, ...]
    timings_ms: dict[str, float]


def _ignore(_: object) -> None:
    """The default callback."""


def warm_up() -> None:
    """Begin to import the chain, and with it LangChain, in the background.

    The first question that needs the chain waits for the import, and raises what the import raises.
    """
    run_in_background(partial(import_module, "folio.answer.chain"))


def remembered(turns: Sequence[Answer]) -> list[int]:
    """The ids of the chunks behind the last answers; they are candidates for the next question."""
    hits = (hit for turn in turns[-REMEMBERED_EVIDENCE:] for evidence in turn.evidence for hit in evidence.hits)
    return list(dict.fromkeys(hit.chunk.id for hit in hits))


class Chat:
    """One conversation. Answers one question at a time."""

    def __init__(
        self,
        retriever: Retriever,
        answerer: Answerer,
        *,
        top_k: int,
        papers: Sequence[Paper] | None = None,
        sections: SectionFilter | None = None,
        style: Style = "plain",
        rerank: bool = True,
        turns: Sequence[Answer] = (),
    ) -> None:
        """top_k: passages for an answer. papers, sections: search only these. turns: of an earlier conversation."""
        self._retriever = retriever
        self._answerer = answerer
        self._top_k = top_k
        self._papers = papers
        self._sections = sections
        self._style = style
        self._rerank = rerank
        self._turns = list(turns)
        self._on_hits: OnHits = _ignore
        self._typed = self._spelt = ""  # a question as it was typed, if it was misspelt, and as it is searched
        self._found = SearchResult((), {}, {})
        self._prefetched: str | None = None  # the question whose hits _found has before the chain searches
        self._clock = Stopwatch()
        self._chain: ConversationalRetrievalChain | None = None

    @property
    def models(self) -> dict[str, str]:
        """The embedder, the reranker and the answerer, by the names that people see."""
        return {**self._retriever.models_in(rerank=self._rerank), "llm": self._answerer.name}

    def ask(
        self,
        question: str,
        on_sentence: OnSentence = _ignore,
        on_hits: OnHits = _ignore,
        on_checking: OnChecking = _ignore,
    ) -> Reply:
        """Answer a question from the papers.

        on_hits is called with the passages found, on_sentence with each sentence as soon as it is verified; what they
        raise ends the answer. on_checking is called with the number of statements that wait for their verifier, each
        time that it changes. Raises UsageError for an empty question, and ModelError. After an error the conversation
        is as it was before.
        """
        question = question.strip().encode(errors="replace").decode()  # a shell may pass bytes that are not UTF-8
        if not question:
            raise UsageError("The question is empty.", 'Ask one: python query.py "What is ...?"')
        self._clock, self._on_hits = Stopwatch(), on_hits
        typed, spelt = question, self._retriever.respelled(question)
        self._typed, question = (typed, spelt.question) if spelt.typed else ("", question)
        self._spelt = spelt.question
        chain = self._chain
        if chain is None and not self._turns:  # search while LangChain is being imported
            self._search(question)
            self._prefetched = question
            chain = self._loaded_chain()
            self._clock.skip()
        history = [(turn.standalone_question, turn.text) for turn in self._turns]
        inputs = {
            "question": question,
            "chat_history": history,
            "on_sentence": on_sentence,
            "on_checking": on_checking,
            "is_repeat": self._is_repeat,
        }
        try:
            answer: Answer = (chain or self._loaded_chain()).invoke(inputs)["answer"]
        except followup.NotUnderstoodError as unclear:  # nothing was searched
            self._found = SearchResult((), {}, {})
            answer = Answer(question, question, (), notice=str(unclear), style=self._style)
        notice = " ".join(filter(None, [spelt.note, answer.notice]))
        answer = replace(answer, question=typed, notice=notice)
        self._clock.lap("answer")
        self._turns.append(answer)
        stages = self._clock.laps  # "retrieve" is the sum of the retriever's own stages
        total = round(sum(stages.values()), 2)
        return Reply(answer, self._found.hits, {**self._found.timings_ms, **stages, "total": total})

    def reset(self) -> None:
        """Forget the conversation."""
        self._turns.clear()

    def _loaded_chain(self) -> ConversationalRetrievalChain:
        """The chain, once LangChain is imported (see warm_up)."""
        if self._chain is None:
            from folio.answer.chain import make_chain

            self._chain = make_chain(self._search, self._rewrite, self._gather, self._answerer, self._style)
        return self._chain

    def _rewrite(self, question: str) -> str:
        standalone = self._answerer.standalone(question, self._turns)
        self._clock.lap("rewrite")
        return standalone

    def _search(self, question: str) -> Sequence[Hit]:
        prefetched, self._prefetched = self._prefetched, None
        if question == prefetched:
            return self._found.hits
        also = remembered(self._turns)
        typed = self._typed if question == self._spelt else ""
        first, *readings = followup.readings(self._spelt, question, [turn.question for turn in self._turns])
        self._found = self._retriever.search(
            first,
            self._top_k,
            self._papers,
            also,
            sections=self._sections,
            readings=readings,
            rerank=self._rerank,
            typed=typed,
        )
        self._clock.lap("retrieve")
        self._on_hits(self._found.hits)
        return self._found.hits

    def _is_repeat(self, sentence: Sentence) -> bool:
        """Whether a quote was in the last answer already, and has nothing of what the follow-up adds to its question.

        A model's statements are its own business; an excerpt that is the best for two questions answers only one.
        """
        if not self._turns or not self._answerer.quotes_only:
            return False
        last = self._turns[-1]
        words = set(tokenize(self._spelt)).difference(tokenize(last.question))
        again = not words and set(tokenize(self._spelt)) == set(tokenize(last.question))
        shown = any(sentence.text == before.text for before in last.sentences)
        return shown and not again and words.isdisjoint(tokenize(sentence.text))

    def _gather(self, hits: Sequence[Hit]) -> GatheredEvidence:
        gathered = gather(hits, self._retriever.text, self._answerer.evidence_tokens)
        self._clock.lap("evidence")
        return gathered


def log_entry(reply: Reply, asked: str, model: str) -> LogEntry:
    """A reply for the query log. asked: ISO time in UTC. model: the answerer's name."""
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
