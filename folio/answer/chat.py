"""A conversation: asks LangChain's chain (chain.py) each question, with the turns before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import zip_longest
from types import ModuleType
from typing import TYPE_CHECKING

from folio.answer import followup, library_questions
from folio.answer.evidence import GatheredEvidence, gather
from folio.answer.extractive import WITHOUT_MODEL, is_about
from folio.answer.facts_question import papers_described
from folio.answer.question_type import QuestionKind, QuestionType, question_type
from folio.answer.unread_files import unread_notice
from folio.answer.whole_paper import whole_paper_hits
from folio.answer_types import CLOSEST, Answer, Evidence, Sentence, SourceNumbers, Style
from folio.background import IMPORTING, SharedResult, run_in_background
from folio.errors import UsageError, command
from folio.paper_versions import is_superseded
from folio.protocols import Answerer
from folio.search.candidate_filter import SectionFilter
from folio.search.paper_filter import Selection
from folio.search.question_parts import compared_things, parts_alone, thing_in
from folio.search.retriever import Retriever, SearchResult
from folio.search.stopwatch import Stopwatch
from folio.shown_text import name_line
from folio.store.query_log import LogEntry, LoggedSource
from folio.text import tokenize
from folio.types import Hit, Paper

if TYPE_CHECKING:
    from langchain_classic.chains import ConversationalRetrievalChain

OnSentence = Callable[[Sentence], None]
OnHits = Callable[[Sequence[Hit]], None]
OnChecking = Callable[[int], None]
OnThinking = Callable[[], None]
# A standalone question -> the passages to answer it from, best first
Find = Callable[[str], SearchResult]

# What is said to a greeting and to thanks, which no paper answers
REMARKS: dict[QuestionKind, str] = {
    "greeting": "Hello. Ask a question about your papers, such as: What is this paper about?",
    "thanks": "You are welcome. Ask another question about your papers whenever you like.",
}
# Passages of a paper that is asked about as a whole, at least, and of each part of a question
WHOLE_PAPER_PASSAGES, OF_EACH_PART = 6, 4
# Papers that are read for a question which asks for papers, and passages in which their best ones are looked for
WANTED_PAPERS, OF_WANTED = 12, 36
FRONT_PAGES = 2  # pages of a paper on which its authors, its year and its venue are looked for
# Earlier turns whose evidence is a candidate for the next question.
REMEMBERED_EVIDENCE = 3


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, the hits it was made from, and the milliseconds that each stage took."""

    answer: Answer
    hits: tuple[Hit, ...]
    timings_ms: dict[str, float]
    confidence: float | None = None  # of the answerer, 0 to 1; None for one that gives none, and without a search


def _import_chain() -> ModuleType:
    with IMPORTING:
        return import_module("folio.answer.chain")


_chain_module = SharedResult(_import_chain)


def _ignore(_: object) -> None:
    """The default callback."""


def warm_up() -> None:
    """Begin to import the chain, and with it LangChain, in the background.

    The first question that needs the chain waits for the import, and raises what the import raises.
    """
    run_in_background(_chain_module.get)


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
        self._find: Find = self.search
        self._typed = self._spelt = ""  # a question as it was typed, if it was misspelt, and as it is searched
        self._found = SearchResult((), {}, {})
        self._prefetched: str | None = None  # the question whose hits _found has before the chain searches
        self._clock = Stopwatch()
        self._chain: ConversationalRetrievalChain | None = None
        self._told = False  # whether it was said what a model would add

    @property
    def models(self) -> dict[str, str]:
        """The embedder, the reranker and the answerer, by the names that people see."""
        return {**self._retriever.models_in(rerank=self._rerank), "llm": self._answerer.name}

    @property
    def retriever(self) -> Retriever:
        return self._retriever

    @property
    def selection(self) -> Selection:
        """The papers and sections that it asks."""
        return Selection(self._papers, self._sections)

    def ask(
        self,
        question: str,
        on_sentence: OnSentence = _ignore,
        on_hits: OnHits = _ignore,
        on_checking: OnChecking = _ignore,
        find: Find | None = None,
        on_thinking: OnThinking = lambda: None,
    ) -> Reply:
        """Answer a question from the papers.

        on_hits is called with the passages found, on_sentence with each sentence as soon as it is verified; what they
        raise ends the answer. on_checking is called with the number of statements that wait for their verifier, each
        time that it changes, on_thinking when the model begins to think. find: searches in place of the chat's own
        search. Raises UsageError for an empty question, and ModelError. After an error the conversation is as it was
        before.
        """
        question = question.strip().encode(errors="replace").decode()  # a shell may pass bytes that are not UTF-8
        if not question:
            raise UsageError("The question is empty.", "Ask one: " + command('ask "What is ...?"'))
        self._clock, self._on_hits, self._find = Stopwatch(), on_hits, find or self.search
        self._found = SearchResult((), {}, {})
        if remark := REMARKS.get(question_type(question).kind):
            return self._reply(Answer(question, question, (), remark=remark, style=self._style))
        typed = question
        with self._retriever.reading():
            spelt = self._retriever.respelled(question)
            self._typed, question = (typed, spelt.question) if spelt.typed else ("", question)
            self._spelt = spelt.question
            direct = self._direct(question)
            if direct is None and not self._turns:  # also while LangChain is being imported
                self._search(question)
                self._prefetched = question
        if direct is not None:
            for sentence in direct.sentences:
                on_sentence(sentence)
            return self._reply(
                replace(direct, question=typed, notice=" ".join(filter(None, [spelt.note, direct.notice])))
            )
        chain = self._loaded_chain()
        self._clock.skip()
        history = [(turn.standalone_question, turn.text) for turn in self._turns]
        inputs = {
            "question": question,
            "chat_history": history,
            "on_sentence": on_sentence,
            "on_checking": on_checking,
            "on_thinking": on_thinking,
            "is_repeat": self._is_repeat,
        }
        try:
            answer: Answer = chain.invoke(inputs)["answer"]
        except followup.NotUnderstoodError as unclear:  # nothing was searched
            self._found = SearchResult((), {}, {})
            answer = Answer(question, question, (), notice=str(unclear), style=self._style)
        notice = " ".join(filter(None, [spelt.note, answer.notice, self._not_said(answer), self._unread(answer)]))
        confidence = self._answerer.confidence if answer.evidence else None
        answer = replace(answer, question=typed, notice=notice)
        self._clock.lap("answer")
        if WITHOUT_MODEL in answer.notice:  # once is enough
            told = self._told or answer.refused or any(WITHOUT_MODEL in turn.notice for turn in self._turns)
            self._told = self._told or not answer.refused
            answer = replace(answer, notice=answer.notice.replace(WITHOUT_MODEL, "").strip()) if told else answer
        return self._reply(answer, confidence)

    def _not_said(self, answer: Answer) -> str:
        """What an answer leaves out: papers that were not read, a thing of a comparison that nothing is said of."""
        if not answer.sentences:
            return ""
        if library_questions.wanted_papers(answer.standalone_question):
            listed = len({quote.paper.id for quote in answer.citations})
            read = len({piece.paper.id for piece in answer.evidence})
            papers = len(self._retriever.papers() if self._papers is None else self._papers)
            return library_questions.listed_notice(listed, read, papers)
        things = compared_things(answer.standalone_question)
        if not things:
            return ""
        said = " ".join(f"{quote.paper.title} {quote.quote}" for quote in answer.citations)
        cited = {quote.paper.id for quote in answer.citations}
        names = self._retriever.paper_names()
        missing = [
            thing
            for thing in things
            if not is_about(self._retriever.term_weights(thing), said)
            and cited.isdisjoint(paper.id for paper in names.meant(thing))
        ]
        return " ".join(f"Nothing is quoted about {name_line(thing)}." for thing in missing)

    def _unread(self, answer: Answer) -> str:
        """Which files that could not be read may have what was not found; "" if only chosen papers are asked."""
        is_found = bool(answer.sentences) and answer.sentences[0].section.heading != CLOSEST.heading
        if is_found or not self._found.ranked or self._papers is not None:
            return ""
        names = self._retriever.unread_files()
        return unread_notice(self._retriever.term_weights(answer.standalone_question), names) if names else ""

    def _direct(self, question: str) -> Answer | None:
        """The answer to a question about the library, which needs no search; else None."""
        if library_questions.library_question(question) is None:
            return None
        papers = self._retriever.papers() if self._papers is None else self._papers
        answer = library_questions.answer(question, papers, self._retriever.paper_names, self._front_of)
        if answer is None:
            return None
        numbers = SourceNumbers()
        return replace(answer, sentences=tuple(map(numbers.numbered, answer.sentences)), style=self._style)

    def _front_of(self, paper: Paper) -> Evidence | None:
        """The first pages of a paper; None if it has no passage."""
        hits = self._retriever.passages(paper, 1)
        _, end = paper.pages.bounds(min(FRONT_PAGES, paper.page_count), paper.length)
        text = self._retriever.text(paper.id, 0, end)
        return Evidence(1, paper, 0, end, text, tuple(hits)) if hits and text else None

    def _reply(self, answer: Answer, confidence: float | None = None) -> Reply:
        """The reply with this answer, which becomes a turn of the conversation."""
        self._turns.append(answer)
        stages = self._clock.laps  # "retrieve" is the sum of the retriever's own stages
        if "answer" not in stages:
            self._clock.lap("answer")
        total = round(sum(stages.values()), 2)
        return Reply(answer, self._found.hits, {**self._found.timings_ms, **stages, "total": total}, confidence)

    def reset(self) -> None:
        """Forget the conversation."""
        self._turns.clear()

    def _loaded_chain(self) -> ConversationalRetrievalChain:
        """The chain, once LangChain is imported (see warm_up)."""
        if self._chain is None:
            make_chain = _chain_module.get().make_chain
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
        self._found = self._find(question)
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
        # The same paragraph with other words marked answers something else.
        shown = any((sentence.text, sentence.marks) == (before.text, before.marks) for before in last.sentences)
        return shown and not again and words.isdisjoint(tokenize(sentence.text))

    def search(self, question: str) -> SearchResult:
        """The passages for a standalone question, with those that its kind asks for.

        A question about one paper as a whole, named or chosen, gets the sections that answer it. Each part of a
        question, such as each thing that it compares, gets passages of its own.
        """
        with self._retriever.reading():
            return self._searched(question)

    def _searched(self, question: str) -> SearchResult:
        if topic := library_questions.wanted_papers(question):
            return self._best_of_papers(topic)
        asked = question_type(question)
        paper = None if self._sections else self._paper_as_a_whole(question, asked)
        if paper:
            found = self._search_in(question, (paper,))
            whole, most = self._retriever.passages(paper), max(self._top_k, WHOLE_PAPER_PASSAGES)
            aspect = asked.aspect or "about"
            hits = whole_paper_hits(aspect, question, whole, found.hits, most)
            return _joined({question: replace(found, hits=tuple(hits))})
        parts = parts_alone(question)
        if not parts:
            return _joined({question: self._search_in(question, self._papers, also=remembered(self._turns))})
        meant = self._meant_by(parts, compared_things(question))
        return _joined({part: self._search_in(part, meant[part], top_k=OF_EACH_PART) for part in parts})

    def _best_of_papers(self, topic: str) -> SearchResult:
        """The best passage of each of the best papers for a subject, the best paper first."""
        ranked = self._retriever.search_papers(topic, WANTED_PAPERS, papers=self._papers, sections=self._sections)
        found = self._search_in(topic, [hit.paper for hit in ranked], top_k=OF_WANTED)
        best = {hit.paper.id: hit for hit in (*(one.passage for one in ranked if one.passage), *reversed(found.hits))}
        hits = [replace(best[one.paper.id], score=one.score) for one in ranked if one.paper.id in best]
        return replace(found, hits=tuple(hits))

    def _meant_by(self, parts: Sequence[str], things: Sequence[str]) -> dict[str, Sequence[Paper] | None]:
        """For each part, the one paper that it names or, of a thing that is compared, describes; or all."""
        among = self._papers_asked()
        found: dict[str, Sequence[Paper] | None] = {}
        for part in parts:
            thing = thing_in(part, things)
            meant = self._named_or_described(part, f"the {thing} paper" if thing else "", among)
            found[part] = meant if len(meant) == 1 else self._papers
        return found

    def _named_or_described(self, names: str, describes: str, among: Sequence[Paper]) -> Sequence[Paper]:
        """Those of these papers that a text names; if it names none, those that another describes."""
        ids = {paper.id for paper in among}
        named = [paper for paper in self._retriever.paper_names().meant(names) if paper.id in ids]
        return named or papers_described(describes, among)

    def _papers_asked(self) -> Sequence[Paper]:
        """The chosen papers, or all but older versions."""
        if self._papers is not None:
            return self._papers
        return [paper for paper in self._retriever.papers() if not is_superseded(paper)]

    def _paper_as_a_whole(self, question: str, asked: QuestionType) -> Paper | None:
        """The one paper that a question is about as a whole; None if there is none, or more than one is meant."""
        if asked.kind != "paper":
            return None
        among = self._papers_asked()
        if len(among) == 1:
            return among[0]
        meant = self._named_or_described(question, question, among)
        return meant[0] if len(meant) == 1 else None

    def _search_in(
        self, question: str, papers: Sequence[Paper] | None, *, also: Sequence[int] | None = None, top_k: int = 0
    ) -> SearchResult:
        """Search these papers. also: chunk ids that are candidates, too; None: it is no follow-up."""
        first, readings = question, list[str]()
        if also is not None:
            first, *readings = followup.readings(self._spelt, question, [turn.question for turn in self._turns])
        return self._retriever.search(
            first,
            top_k or self._top_k,
            papers,
            also or (),
            sections=self._sections,
            readings=readings,
            rerank=self._rerank,
            typed=self._typed if question == self._spelt else "",
            written=also is not None,
        )

    def _gather(self, hits: Sequence[Hit]) -> GatheredEvidence:
        gathered = gather(hits, self._retriever.text, self._answerer.evidence_tokens)
        self._clock.lap("evidence")
        return gathered


def _joined(found: Mapping[str, SearchResult]) -> SearchResult:
    """What was found for a question, or for each part of it in turn; the orders of the first."""
    hits: dict[int, Hit] = {}
    for of_rank in zip_longest(*(one.hits for one in found.values())):
        for part, hit in zip(found, of_rank, strict=True):
            if hit is not None:
                known = hits.get(hit.chunk.id, hit)
                hits[hit.chunk.id] = replace(known, found_for=(*known.found_for, part))
    first = next(iter(found.values()))
    laps = {stage: sum(one.timings_ms.get(stage, 0.0) for one in found.values()) for stage in first.timings_ms}
    return replace(first, hits=tuple(hits.values()), timings_ms=laps)


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
        confidence=reply.confidence,
    )
