"""A conversation about the papers: each question goes through LangChain's chain (chain.py) with the turns before it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import PurePath
from typing import TYPE_CHECKING, Generic, TypeVar

from folio.answer import library_questions
from folio.answer.evidence import gather, without
from folio.answer.excerpts import shortest
from folio.answer.instructions import effect_notice
from folio.answer.library_questions import papers_described
from folio.answer.passages import PassageSearch
from folio.answer.subjects import without_quote
from folio.answer_types import (
    ALSO,
    CLOSEST,
    FROM_PAPERS,
    Answer,
    AnswerStopped,
    Checking,
    Evidence,
    RejectedSentence,
    Scope,
    Section,
    Selected,
    Sentence,
    SourceNumbers,
    Style,
    Thinking,
)
from folio.errors import StoreAway, StoreCut, UsageError, command
from folio.papers.model import Hit, Paper
from folio.protocols import Answerer
from folio.question import followup
from folio.question.kind import QuestionKind
from folio.question.language import foreign_words
from folio.question.library import FactsQuestion, LibraryQuestion, WantedPapers
from folio.question.parts import last_question
from folio.question.question import Question
from folio.search.filters import SectionFilter, Selection
from folio.search.retriever import Retriever, SearchResult
from folio.shown_text import name_line, short_line
from folio.store.instructions import Instruction
from folio.store.query_log import LogEntry, LoggedSource
from folio.system.threads import IMPORTING, SharedResult, Stopwatch, run_in_background
from folio.text import estimate_tokens, one_line, tokenize, whole_words

if TYPE_CHECKING:
    from langchain_classic.chains import ConversationalRetrievalChain

OnSentence = Callable[[Sentence], None]
OnHits = Callable[[Sequence[Hit]], None]
OnProgress = Callable[[Checking | Thinking], None]
# Standalone question -> the passages to answer it from, best first
Find = Callable[[Question], SearchResult]
MakeChain = Callable[..., "ConversationalRetrievalChain"]
Written = Sentence | RejectedSentence | Checking | Thinking
T = TypeVar("T")
R = TypeVar("R")

# Replies to a greeting, to thanks and to other remarks
REMARKS: dict[QuestionKind, str] = {
    "greeting": "Hello. Ask a question about your papers, such as: What is this paper about?",
    "thanks": "You are welcome. Ask another question about your papers whenever you like.",
    "ok": "All right. Ask another question about your papers whenever you like.",
    "wrong": "Sorry. Ask again in other words, or name the paper that has the answer.",
    "translated": "Folio shows the papers in their own words, and does not translate them.",
}
REQUESTS: frozenset[QuestionKind] = frozenset({"again", "shorter", "more"})  # about the last answer
NO_ANSWER = "There is no answer yet. Ask a question about your papers, such as: What is this paper about?"
NOT_SHORTER = "The last answer is as short as its source allows."
NO_MORE = "The search finds nothing more for the last question."
IN_ENGLISH = "The papers are in English; ask in English, or use a model."
ONLY_THERE = "Only “{}” was searched, which the last answer is about. Name another paper, or ask a whole question."
MOST_SELECTED, MOST_SELECTED_TOKENS = 1200, 400  # characters and tokens searched for and shown to a model
NO_CONFLICT = "No sentence that was found contradicts the selected words."
NEAREST, MOST_OF_NEAREST = "The closest passage says: “{}” {}", 400  # characters
STOPPED = "You stopped this answer."
MOST_UNREAD = 3  # unreadable files named in a notice


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, the hits it is based on, and the milliseconds of each stage."""

    answer: Answer
    hits: tuple[Hit, ...] = ()
    timings_ms: dict[str, float] = field(default_factory=dict)
    confidence: float | None = None  # the answerer's, 0 to 1; None without a search or from an answerer that gives none
    stopped: bool = False  # ended by AnswerStopped: the answer has the sentences that were shown before
    question: Question | None = None  # as it was searched; None without a search
    papers: tuple[Paper, ...] = ()  # the papers that were searched, if the question stayed on them
    raw: str = ""  # what the model wrote, as it came; "" if none wrote


@dataclass(frozen=True, slots=True)
class Turn:
    """One question on its way through the chain."""

    question: Question  # standalone, once its references are resolved
    original: Question  # as it was asked, with its spelling corrected
    on_sentence: OnSentence
    on_hits: OnHits
    on_progress: OnProgress
    find: Find | None  # used instead of the chat's own search
    clock: Stopwatch
    selected: Selected | None = None  # the words that the question is about
    papers: tuple[Paper, ...] = ()  # the paper of the last answer, if the question stays on it, and others it names
    meant: int = 1  # how many of them "it" or "they" mean
    is_clear: bool = False  # it needs no earlier question
    heading: Section | None = None  # of all excerpts, instead of their own
    hits: Sequence[Hit] | None = None  # its passages, if the search ran before the chain was imported
    known: tuple[Answer, ...] = ()  # the library's answers to other questions in it; `question` has the rest


def _after(evidence: Sequence[Evidence], known: Sequence[Answer]) -> tuple[list[Sentence], tuple[Evidence, ...]]:
    """The sentences of answers by the library, and the evidence with theirs after it."""
    whole, sentences = list(evidence), list[Sentence]()
    for answer in known:
        first = len(whole)
        whole += (replace(piece, number=first + piece.number) for piece in answer.evidence)
        for told in answer.sentences:
            cited = tuple(replace(quote, evidence=first + quote.evidence) for quote in told.citations)
            sentences.append(replace(told, citations=cited))
    return sentences, tuple(whole)


def stopped(reply: Reply) -> Reply:
    """The reply with what was shown of an answer that was stopped."""
    return replace(reply, answer=replace(reply.answer, notice=STOPPED), stopped=True)


class Returning(Generic[T, R]):
    """Iterates over a generator and keeps its return value."""

    returned: R

    def __init__(self, parts: Generator[T, None, R]) -> None:
        self._parts = parts

    def __iter__(self) -> Iterator[T]:
        self.returned = yield from self._parts


def _import_chain() -> MakeChain:
    with IMPORTING:
        from folio.answer.chain import make_chain
    return make_chain


_make_chain = SharedResult(_import_chain)


def _ignore(_: object) -> None:
    """The default callback."""


def warm_up() -> None:
    """Start importing the chain, and LangChain with it, in the background.

    The first question that needs the chain waits for the import and raises its errors.
    """
    run_in_background(_make_chain.get)


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
        scope: Scope | None = None,
        style: Style = "plain",
        rerank: bool = True,
        turns: Sequence[Answer] = (),
        instruction: Instruction | None = None,
    ) -> None:
        """top_k: passages per answer. papers, sections: search only these. scope: the same in words. turns: of an
        earlier conversation. instruction: what the answerer was told about the wording."""
        self._passages = PassageSearch(retriever, top_k, papers, sections, rerank)
        self._answerer = answerer
        self._scope = scope
        self._style = style
        self._turns = list(turns)
        self._instruction = instruction
        self._has_offered_model = False  # before the last `reset`
        self._search_notice = ""  # of the search for the current question
        self._unfound: tuple[str, ...] = ()  # parts of the current question that the search found nothing for

    @property
    def models(self) -> dict[str, str]:
        """The display names of the embedder, the reranker and the answerer."""
        return {**self.retriever.models_in(rerank=self._passages.rerank), "llm": self._answerer.name}

    @property
    def quotes_only(self) -> bool:
        """Whether no model has a part in its answers."""
        return self._answerer.quotes_only

    @property
    def instruction(self) -> Instruction | None:
        """What is asked of the wording of its answers."""
        return self._instruction

    @property
    def retriever(self) -> Retriever:
        return self._passages.retriever

    @property
    def selection(self) -> Selection:
        """The papers and sections to search."""
        return Selection(self._passages.papers, self._passages.sections, self._scope)

    def search(self, question: Question) -> SearchResult:
        """The passages for a standalone question, as this conversation finds them."""
        return self._passages.search(question, self._turns)

    def ask(
        self,
        question: str,
        on_sentence: OnSentence = _ignore,
        on_hits: OnHits = _ignore,
        on_progress: OnProgress = _ignore,
        find: Find | None = None,
        selected: Selected | None = None,
    ) -> Reply:
        """Answer a question from the papers.

        on_hits gets the passages found; on_sentence gets each sentence once it is verified. An exception from either
        ends the answer; after AnswerStopped, the sentences that on_sentence took are the answer, if there are any.
        on_progress is called when the model starts to think, and whenever the number of statements waiting for the
        verifier changes. find: used instead of the chat's own search. selected: the words that the question is about.
        Raises UsageError for an empty question, and ModelError. An error leaves the conversation unchanged.
        """
        shown = 0

        def show(sentence: Sentence) -> None:
            nonlocal shown
            shown += 1
            on_sentence(sentence)

        def answer() -> Reply:
            try:
                return self._ask(question, show, on_hits, on_progress, find, selected)
            except StoreCut as error:
                if shown:  # what was shown is not shown again
                    raise StoreAway(error.happened, error.remedy) from error
                raise

        return self.retriever.repeat(answer)

    def _ask(
        self,
        question: str,
        on_sentence: OnSentence,
        on_hits: OnHits,
        on_progress: OnProgress,
        find: Find | None,
        selected: Selected | None,
    ) -> Reply:
        text = question.strip().encode(errors="replace").decode()  # a shell may pass bytes that are not UTF-8
        if not text:
            raise UsageError("The question is empty.", "Ask one: " + command('ask "What is ...?"'))
        about = _about(selected) if selected else ""
        original = Question(last_question(text), about=about)
        turn = Turn(original, original, on_sentence, on_hits, on_progress, find, Stopwatch(), selected)
        kind = "other" if selected else original.type.kind  # "find more evidence for this" is about the selection
        last = next((answer for answer in reversed(self._turns) if answer.sentences), None)
        if told := self._reply_to_remark(kind, last, turn):
            return self._add_turn(turn, told)
        note, is_more, self._search_notice = "", bool(last and kind == "more"), ""
        self._unfound = ()
        with self.retriever.reading():
            if last and is_more:
                find = partial(self._passages.search_others, last, turns=self._turns)
                turn = replace(turn, question=Question(last.standalone_question), is_clear=True, find=find)
            elif self._is_foreign(turn):
                turn, note = self._by_names(turn), IN_ENGLISH
                if not turn.question.text:
                    return self._add_turn(turn, self._remarked(text, IN_ENGLISH))
            else:
                turn, note = self._respelled(turn)
                turn = self._placed(turn)
            direct, turn = (None, turn) if is_more else self._from_library(turn)
            if direct is None and not self._turns:  # without waiting for the import of LangChain
                turn = replace(turn, hits=self._retrieve(turn))
        if direct is not None:
            for sentence in direct.sentences:
                on_sentence(sentence)
            reply = Reply(direct)
        else:
            reply = self._answer_from_papers(turn)
        if is_more and not reply.answer.sentences:
            return self._add_turn(turn, self._remarked(text, NO_MORE))
        notice = " ".join(filter(None, [note, self._search_notice, reply.answer.notice, self._wording_notice(reply)]))
        meant = turn.original.standing if turn.known else reply.answer.standalone_question
        if turn.question.typed and meant == turn.question.text:  # a correction is one more reading
            meant = turn.question.typed
        stays = bool(turn.papers) and turn.find is None  # on fewer papers, which a refusal's notice names
        scope = None if stays and reply.answer.refused else self._scope
        answer = replace(reply.answer, question=text, standalone_question=meant, notice=notice, scope=scope)
        return self._add_turn(turn, replace(reply, answer=answer))

    def _wording_notice(self, reply: Reply) -> str:
        """That the instruction had no effect, where that is so; "" for what the library itself answers."""
        if self._instruction is None or reply.question is None:
            return ""
        return effect_notice(self._instruction, reply.answer, quotes_only=self.quotes_only)

    def _remarked(self, text: str, remark: str) -> Reply:
        """A reply that is only a remark."""
        return Reply(Answer(text, text, (), remark=remark, style=self._style))

    def _reply_to_remark(self, kind: QuestionKind, last: Answer | None, turn: Turn) -> Reply | None:
        """The reply to a remark on the last answer, and to a request that needs no search; None for others."""
        text = turn.question.text
        if remark := REMARKS.get(kind):
            return self._remarked(text, remark)
        if last is None:
            return self._remarked(text, NO_ANSWER) if kind in REQUESTS else None
        return self._repeated(last, turn, is_shorter=kind == "shorter") if kind in ("again", "shorter") else None

    def _repeated(self, last: Answer, turn: Turn, *, is_shorter: bool) -> Reply:
        """The last answer again, or the best sentence of it."""
        text, sentences = turn.question.text, last.sentences
        if is_shorter:
            sentences = (shortest(sentences[0]),)
            if sentences == last.sentences:
                return self._remarked(text, NOT_SHORTER)
        for sentence in sentences:
            turn.on_sentence(sentence)
        return Reply(Answer(text, last.standalone_question, sentences, last.evidence, style=last.style))

    def _is_foreign(self, turn: Turn) -> bool:
        """Whether a question is in another language than the papers, and no model can read it."""
        words = foreign_words(turn.question.text) if self._answerer.quotes_only and not turn.selected else ()
        return bool(words) and not self.retriever.has_language(words)

    def _by_names(self, turn: Turn) -> Turn:
        """The turn with only the names in its question, in the papers that they name."""
        names = self.retriever.paper_names()
        words = [word.strip(".,;:¿?¡!«»“”„\"'") for word in turn.question.text.split()]
        question = Question(" ".join(word for word in words if names.meant(word)))
        papers = self._passages.among(names.meant(question.text))
        return replace(turn, question=question, original=question, papers=papers, is_clear=True, heading=CLOSEST)

    def _respelled(self, turn: Turn) -> tuple[Turn, str]:
        """The turn with its spelling corrected, and a note on that."""
        typed = turn.question
        respelling = self.retriever.respelled(typed.text)
        if not respelling.typed:
            return turn, ""
        if not self._answerer.quotes_only:  # a model reads what was typed
            readings = respelling.question, typed.text
            return replace(turn, question=replace(typed, readings=readings), is_clear=not self._turns), respelling.note
        question = Question(respelling.question, typed.text, about=typed.about)
        return replace(turn, question=question, original=question), respelling.note

    def _placed(self, turn: Turn) -> Turn:
        """The turn with the paper that its question stays on; `is_clear` if it stands alone."""
        if turn.selected:  # "this" is the selection, not something before
            return replace(turn, is_clear=True)
        question = turn.question
        papers = self._passages.among(followup.papers_of(question.text, self._answers))
        if not papers:
            return turn
        names = self.retriever.paper_names()
        if other := followup.with_other_name(question.text, self._answers, lambda words: bool(names.called(words))):
            return replace(turn, question=Question(other), is_clear=True)
        named = self._passages.among(names.meant(question.text))
        has_new_topic = self.retriever.has_new_topic(question, papers[0])
        is_described = not followup.is_followup(question.text) and papers_described(
            question.text, self._passages.current_papers()
        )
        is_named = bool(named or is_described)
        is_about_library = bool(question.topic) or isinstance(question.about_library, LibraryQuestion)
        if is_about_library or not followup.stays(question.text, names_a_paper=is_named, has_new_topic=has_new_topic):
            return replace(turn, is_clear=True)
        return replace(turn, papers=tuple({p.id: p for p in (*papers, *named)}.values()), meant=len(papers))

    def _answer_from_papers(self, turn: Turn) -> Reply:
        """The chain's answer to a question."""
        chain = self._chain  # may wait for the import
        turn.clock.skip()
        history = [(answer.standalone_question, answer.text) for answer in self._turns]
        try:
            reply: Reply = chain.invoke({"question": turn, "chat_history": history})["answer"]
        except followup.NotUnderstoodError as unclear:  # nothing was searched
            text = turn.question.text
            return Reply(Answer(text, text, (), notice=str(unclear), style=self._style))
        return reply

    def _gaps_notice(self, turn: Turn, answer: Answer, known: int) -> str:
        """What an answer leaves out: papers that were not read, or parts of the question; of a refusal, the nearest.

        known: how many sentences are the library's, to other questions.
        """
        question = turn.question
        if question.asks_who_disagrees and self._answerer.quotes_only:
            return "" if any(each.section == FROM_PAPERS for each in answer.sentences) else NO_CONFLICT
        if question.about:
            return ""
        if not answer.sentences:
            nearest = self._answerer.nearest(question, answer.evidence)
            return NEAREST.format(short_line(nearest.quote, MOST_OF_NEAREST), nearest.shown) if nearest else ""
        if question.topic:
            listed = len({quote.paper.id for quote in answer.citations})
            read = len({piece.paper.id for piece in answer.evidence})
            papers, notice = library_questions.narrowed(question, self._passages.shelf(question))
            return f"{notice} {library_questions.listed_notice(listed, read, len(papers))}".strip()
        as_asked = {text: own for each in (turn.original, question) for text, own in each.own_words.items()}
        things = {part.text: question.thing_of(part) for part in question.parts}
        missing = self._unanswered(question, answer, known)
        shown = (name_line(things.get(part) or f"“{as_asked.get(part, part)}”") for part in missing)
        return " ".join(f"Nothing was found about {part}." for part in shown)

    def _missing(self, turn: Turn, answer: Answer, known: int) -> tuple[str, ...]:
        """See Answer.missing. known: see _gaps_notice."""
        question = turn.question
        if question.about or question.asks_who_disagrees or question.topic:
            return ()
        if not answer.sentences or answer.sentences[0].section == CLOSEST:
            return (question.text,)
        return tuple(dict.fromkeys((*self._unanswered(question, answer, known), *self._unfound)))

    def _unanswered(self, question: Question, answer: Answer, known: int) -> tuple[str, ...]:
        """The parts of a question that an answer leaves out. known: see _gaps_notice."""
        missing = self._answerer.unanswered
        if known and len(answer.sentences) == known:
            missing = question.questions or (question.text,)
        if missing is None:
            quoted = [(quote.paper, quote.quote) for quote in answer.citations]
            missing = tuple(without_quote(question, quoted, self.retriever.term_weights))
            if len(missing) == len(question.parts) and not question.things:  # asked as one, and answered as one
                missing = ()
        return missing

    def _unread_notice(self, turn: Turn, answer: Answer) -> str:
        """Which unreadable files may have the missing answer; "" if only selected papers are searched."""
        is_found = bool(answer.sentences) and answer.sentences[0].section.heading != CLOSEST.heading
        if is_found or turn.find is not None or self._passages.papers is not None:
            return ""
        names = self.retriever.unread_files()
        return unread_notice(self.retriever.term_weights(turn.question), names) if names else ""

    def _scope_notice(self, turn: Turn, answer: Answer) -> str:
        """That only the paper of the last answer was searched, where that was not enough."""
        if not turn.papers or turn.find or not answer.refused:
            return ""
        return ONLY_THERE.format(name_line(followup.short_name(turn.papers[0])))

    def _from_library(self, turn: Turn) -> tuple[Answer | None, Turn]:
        """The library's answer to a question, and the turn; of several questions in one, the turn with its answers to
        some, to be asked the rest."""
        question, asked = turn.question, turn.question.questions
        about = question.about_library
        if not asked or (isinstance(about, FactsQuestion) and len(about.facts) >= len(asked)):
            return self._answer_about_library(turn), turn
        told = {text: self._answer_about_library(replace(turn, question=Question(text))) for text in asked}
        known = {text: answer for text, answer in told.items() if answer is not None}
        first, *others = [text for text in asked if text not in known] or ("",)
        if not (known and first):
            return self._answer_about_library(turn), turn
        # A pronoun in what follows means the thing of the first that is left.
        left = replace(question, text="? ".join([first, *map(question.own_words.__getitem__, others)]))
        return None, replace(turn, question=left, known=tuple(known.values()))

    def _answer_about_library(self, turn: Turn) -> Answer | None:
        """The answer to a question about the library itself, which needs no search; None for other questions."""
        question = turn.question
        if turn.papers and not turn.is_clear:  # "Who wrote it?"
            question = Question(followup.about(question.text, turn.papers[: turn.meant]))
        if question.about_library is None and question.papers in (WantedPapers(), WantedPapers(question.topic)):
            return None
        answer = library_questions.answer(question, self._passages.shelf(question, turn.papers))
        if answer is None:
            return None
        numbers = SourceNumbers()
        return replace(answer, sentences=tuple(map(numbers.numbered, answer.sentences)), style=self._style)

    def _add_turn(self, turn: Turn, reply: Reply) -> Reply:
        """Add the answer to the conversation; returns the reply with its timings."""
        self._turns.append(reply.answer)
        clock = turn.clock
        clock.lap("answer")
        total = round(sum(clock.laps.values()), 2)  # "retrieve" is the sum of the retriever's own stages
        return replace(reply, timings_ms={**clock.inside, **clock.laps, "total": total})

    def reset(self) -> None:
        """Forget the conversation."""
        self._has_offered_model = self._offered_model
        self._turns.clear()

    @property
    def _offered_model(self) -> bool:
        """Whether an answer explained what a model would add; once is enough."""
        return self._has_offered_model or any(turn.offers_model for turn in self._turns)

    # The steps of the chain

    @cached_property
    def _chain(self) -> ConversationalRetrievalChain:
        """The chain; waits until LangChain is imported (see warm_up)."""
        return _make_chain.get()(self._rewrite, self._retrieve, self._answer)

    @property
    def _answers(self) -> list[Answer]:
        """The turns before, without remarks; a request such as "more sources" is the question that it is about."""
        return [
            replace(turn, question=turn.standalone_question) if Question(turn.question).type.kind in REQUESTS else turn
            for turn in self._turns
            if not turn.remark
        ]

    def _rewrite(self, turn: Turn) -> Turn:
        """The turn with its follow-up rewritten as a standalone question."""
        if turn.is_clear:
            return turn
        question, history = turn.question, [answer.question for answer in self._answers]
        meant = self._answerer.standalone(question.text, self._answers)
        named = followup.about(question.text, turn.papers[: turn.meant]) if turn.papers else ""
        if named and self._answerer.quotes_only and meant == question.text:
            meant = named
        readings = followup.readings(question.text, meant, history, in_paper=meant == named)
        senses = followup.senses(question.text, meant, history) if self._answerer.quotes_only else ()
        typed = question.typed if meant == question.text else ""
        turn.clock.lap("rewrite")
        return replace(turn, question=Question(meant, typed, tuple(readings), tuple(senses)))

    def _retrieve(self, turn: Turn) -> Sequence[Hit]:
        """The passages to answer from, best first."""
        if turn.hits is not None:
            return turn.hits
        if turn.selected and turn.find is None:
            result = self._passages.search_about(turn.question, turn.selected)
        elif turn.find is not None:
            result = turn.find(turn.question.worded)
        else:
            result = self._passages.within(turn.papers).search(turn.question.worded, self._turns)
        turn.clock.inside |= result.timings_ms
        turn.clock.lap("retrieve")
        turn.on_hits(result.hits)
        self._search_notice, self._unfound = result.notice, result.missing
        return result.hits

    def _answer(self, turn: Turn, hits: Sequence[Hit]) -> Reply:
        """The answer from these passages. Calls the turn's callbacks as parts of it are ready."""
        answerer, question = self._answerer, turn.question
        gathered = gather(hits, self.retriever.text, answerer.evidence_tokens)
        evidence = gathered.evidence
        if turn.selected and answerer.quotes_only:
            evidence = without(evidence, turn.selected)
        turn.clock.lap("evidence")
        parts = Returning(answerer.sentences(question, evidence, self._style))
        known, evidence = _after(evidence, turn.known)
        sentences, left_out, is_stopped = self._shown(chain(known, parts), turn)
        answer = Answer(
            question.text,
            question.standing,
            tuple(sentences),
            evidence,
            len(left_out),
            style=self._style,
            left_out=tuple(left_out),
            model_failed=bool(evidence) and answerer.failed,
        )
        offers_model = bool(evidence and sentences) and answerer.quotes_only and not self._offered_model
        shows_notice = bool(evidence) and (offers_model or not answerer.quotes_only)
        raw = answerer.raw if evidence else ""
        if is_stopped:
            return stopped(Reply(answer, tuple(hits), raw=raw))
        count = gathered.left_out
        left_out_hits = "1 passage" if count == 1 else f"{count} passages"
        notices = (
            *(told.notice or told.remark for told in turn.known),
            self._gaps_notice(turn, answer, len(known)),
            f"{left_out_hits} did not fit into the evidence. Raise CONTEXT_TOKENS to include more." if count else "",
            answerer.notice if shows_notice else "",
            self._unread_notice(turn, answer),
            self._scope_notice(turn, answer),
        )
        missing = self._missing(turn, answer, len(known))
        answer = replace(answer, notice=" ".join(filter(None, notices)), offers_model=offers_model, missing=missing)
        confidence = parts.returned if answer.evidence else None
        return Reply(answer, tuple(hits), confidence=confidence, question=question, papers=turn.papers, raw=raw)

    def _shown(self, parts: Iterable[Written], turn: Turn) -> tuple[list[Sentence], list[RejectedSentence], bool]:
        """The sentences that were shown, those that were left out, and whether the answer was stopped.

        Raises AnswerStopped if it was stopped before the first sentence.
        """
        sentences: list[Sentence] = []
        left_out: list[RejectedSentence] = []
        numbers, heading = SourceNumbers(), ALSO
        try:
            for part in parts:
                if isinstance(part, RejectedSentence):
                    left_out.append(part)
                elif not isinstance(part, Sentence):
                    turn.on_progress(part)
                elif self._is_repeat(part, turn):
                    heading = part.section if heading == ALSO else heading
                else:
                    if not sentences and part.section == ALSO:  # the one before was shown in the last answer
                        part = replace(part, section=heading)
                    numbered = numbers.numbered(replace(part, section=turn.heading or part.section))
                    turn.on_sentence(numbered)
                    sentences.append(numbered)
        except AnswerStopped:
            if not sentences:
                raise
            return sentences, left_out, True
        return sentences, left_out, False

    def _is_repeat(self, sentence: Sentence, turn: Turn) -> bool:
        """Whether the last answer already had this quote, and the quote has no word that the follow-up adds.

        Only for answers of quotes: an excerpt that is the best for two questions answers only one of them.
        """
        if not self._turns or not self._answerer.quotes_only or turn.is_clear:
            return False
        last = self._turns[-1]
        before = frozenset(tokenize(last.question))
        words = turn.original.terms - before
        is_same_question = not words and turn.original.terms == before
        # The same paragraph with different words marked answers a different question.
        shown = any((sentence.text, sentence.marks) == (other.text, other.marks) for other in last.sentences)
        return shown and not is_same_question and words.isdisjoint(tokenize(sentence.text))

def _about(selected: Selected) -> str:
    """The selected words on one line, cut to what fits beside a question."""
    words = one_line(selected.text)
    words = words if len(words) <= MOST_SELECTED else whole_words(words, MOST_SELECTED)
    while estimate_tokens(words) > MOST_SELECTED_TOKENS:
        words = words[: 3 * len(words) // 4]
    return words


def unread_notice(weights: Mapping[str, float], names: Iterable[str]) -> str:
    """A sentence about unreadable files that may have the answer: their names have the question's rarest word.

    weights: token of the question -> its IDF. names: the unreadable files. "" if no name has that word.
    """
    words = {token: weight for token, weight in weights.items() if not token.isdecimal()}
    rarest = {token for token, weight in words.items() if weight == max(words.values())}
    files = sorted(name for name in set(names) if rarest.intersection(tokenize(PurePath(name).stem)))
    if not files:
        return ""
    listed = ", ".join(f"“{name_line(name)}”" for name in files[:MOST_UNREAD])
    which, whose = ("A file", "its name") if len(files) == 1 else ("Files", "their names")
    return f"{which} that could not be read may have the answer, judging by {whose}: {listed}."


def log_entry(reply: Reply, asked_at: str, model: str) -> LogEntry:
    """A reply for the query log. asked_at: ISO time in UTC. model: the answerer's name."""
    answer = reply.answer
    return LogEntry(
        asked_at,
        answer.question,
        answer.standalone_question,
        tuple(hit.chunk.id for evidence in answer.evidence for hit in evidence.hits),
        answer.text,
        tuple(LoggedSource(c.paper.id, c.paper.file, c.page, c.quote) for c in answer.citations),
        dict(reply.timings_ms),
        model,
        confidence=reply.confidence,
        scope=answer.scope.line if answer.scope else "",
    )
