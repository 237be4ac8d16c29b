"""Question + evidence -> an answer by a chat model on a server, with citations for each statement."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

from folio.answer import prompts
from folio.answer.excerpts import Excerpt, brief, narrowed
from folio.answer.extractive import ExtractiveAnswerer, Scored, found_for
from folio.answer.fencing import defused
from folio.answer.layout import AnswerFormat, Layout
from folio.answer.markers import printable
from folio.answer.refusals import is_refusal
from folio.answer.validation import Part, ValidationResult, Validator, parts_of
from folio.answer_types import CLOSEST, Answer, Evidence, Quote, RejectedSentence, Sentence, Style, Thinking
from folio.errors import ContextTooSmall, ModelServerError, ThoughtAlone
from folio.grounding.grounder import Grounder
from folio.grounding.sentences import content_words
from folio.models.chat_model import LONGEST_TOKEN, STOPPED, ChatModel
from folio.models.model_server import TEMPLATE_TOKENS, THOUGHT, ModelServer
from folio.models.thinking import without_thoughts
from folio.protocols import PromptStart, Verifier
from folio.question.question import Question
from folio.text import estimate_tokens, tokenize

QUESTION_TOKENS = 1024  # reserved for the question and the rules
REMEMBERED_TURNS = 4  # of the conversation, shown to the model that rewrites a follow-up
LEAST_ROOM = 512  # for a thought, where the context has no room for a long one
NUMBERED = 1.2  # maximum factor by which sentence numbers lengthen the evidence, in tokens
# The evidence states the answer from the first probability on, the mean of the model's and the stand-in's. Otherwise
# quotes are shown from the second one on, that of the stand-in. Chosen on 28 questions of the development set (LOG.md).
LEAST_STATED, VERY_SURE = 0.55, 0.8
LONGEST_JUDGED = 900  # characters of an excerpt, for a model that chooses among the stand-in's
# Weight of the model's log-odds that an excerpt states the answer, relative to 1 for `Excerpt.lead`; that of the
# stand-in's confidence in whether any does, relative to 1 for the best of them; and from where on one does (LOG.md)
ODDS_WEIGHT, SURE_WEIGHT, LEAST_ODDS = 0.3, 0.5, -0.2
NOTHING_HELD = "The model wrote nothing that the papers support. These sentences are quotes from them."
# The rule of a statement that was left out -> what is true of such a model in place of that
_NOT_SHOWN = {
    "strict": "The model did not keep to the papers' own words.",
    "verifier": "The verifier agreed with nothing that the model wrote.",
    "contradiction": "The verifier agreed with nothing that the model wrote.",
    "dangling": "What the model wrote could not be matched with the papers.",
    "too long": "What the model wrote could not be matched with the papers.",
}
NO_JUDGE = "Not checked: {name} does not tell true statements from false ones."
CHOSEN = "Quoted, not written: {name} does not tell true statements from false ones, so it only chose."
NO_ANSWER = "The model gave no answer."
REFUSED_ALONE = "The model found no answer."
TRANSLATED = "Statements in another language than the papers were compared by their numbers and names alone."
NAMED_INSTEAD = "The model found no answer. This is what your question names, as printed."
QUOTES_INSTEAD = "These sentences are quotes from the papers."
# What models write before a rewritten question.
_LABEL = re.compile(r"^\W*(?:(?:standalone|rewritten|follow-up)\s+)*question\W*:", re.I)


@dataclass
class _End:
    """How a model's output ended. reason: "stop", "length", STOPPED. failure: the server's error and its remedy."""

    reason: str = ""
    failure: str = ""
    has_thought: bool = False  # the model thought before it wrote

    def fail(self, error: ModelServerError) -> None:
        self.failure = f"{error.happened} {error.remedy}"

    @property
    def is_early(self) -> bool:
        return bool(self.failure) or self.reason in ("length", STOPPED)

    def notices(self, shown: int, answer_tokens: int) -> Iterator[str]:
        """Sentences about it. shown: number of statements."""
        if self.failure:
            yield f"{self.failure} What the model wrote before is shown." if shown else self.failure
        elif self.reason == STOPPED:
            yield "The model was stopped, because it only repeated itself."
        elif self.reason == "length" and shown:
            yield f"The answer was cut off at {answer_tokens} tokens. Raise ANSWER_TOKENS for longer answers."


class GenerativeAnswerer:
    """A chat model on a server. Only statements that the evidence supports are shown (validation.py)."""

    quotes_only = False

    def __init__(
        self,
        server: ModelServer,
        model: str,
        *,
        evidence_tokens: int,
        answer_tokens: int,
        stand_in: ExtractiveAnswerer,
        verifier: Verifier | None = None,
        answer_format: AnswerFormat = "quote",
        strict: bool = False,
        check_cancelled: Callable[[], None] = lambda: None,
        usual_tokens: int = 0,
        instruction: str = "",
    ) -> None:
        """Asks the server about the model. Raises as ModelServer.require_local does.

        evidence_tokens: limit for the evidence in a prompt. answer_tokens: reserved for the answer. stand_in: answers
        if nothing that the model wrote can be shown. verifier: checks reworded statements. strict: show only quotes.
        check_cancelled: called often while waiting for the model; an exception ends the answer and the server's work
        on it. usual_tokens: as for ChatModel. instruction: what the person asks of the wording.
        """
        self._model = ChatModel.open(server, model, usual_tokens)
        self._largest = self._model.largest
        available = self._largest - self._model.room - answer_tokens - QUESTION_TOKENS - estimate_tokens(instruction)
        if answer_format != "prose":  # a report has statements
            available = int(available / NUMBERED)
        self.evidence_tokens = max(256, min(evidence_tokens, available))
        self._answer_tokens = answer_tokens
        self._stand_in = stand_in
        self._verifier = verifier
        self._judge: Verifier | None = None  # the verifier of the current answer
        self._format = answer_format
        self._strict = strict
        self._instruction = instruction
        self._check_cancelled = check_cancelled
        self._quoted: set[str] = set()  # the chosen excerpts of the current answer
        self._context = 0  # tokens; the context size for the current prompt
        self._end = _End()
        self.notice = ""
        self.failed = False
        self.raw = ""
        self.unanswered: tuple[str, ...] | None = None
        self.name = self._model.title

    def sentences(
        self, question: Question | str, evidence: Sequence[Evidence], style: Style = "plain"
    ) -> Generator[Part | Thinking, None, None]:
        """See protocols.Answerer. Of several questions in one, each is asked by itself.

        If nothing that the model wrote can be shown, or the server fails before a statement is shown, the stand-in
        answers from the same evidence. Raises ModelError for what only a person can fix.
        """
        self.notice, self.failed, self.unanswered, self.raw, self._end = "", False, None, "", _End()
        if not evidence:
            return
        question = Question.of(question)
        self._judge = self._judge_of_statements()
        layout = self._layout(question, evidence, style)
        asked = [*map(Question, question.questions)] if layout.format == "quote" and question.questions else [question]
        notices, unanswered = list[str](), list[str]()
        self._quoted.clear()
        for part in asked:
            own = found_for(part, evidence) if len(asked) > 1 else evidence
            of_part = replace(layout, question=part.text, evidence=own)
            self._end = _End(failure=self._end.failure)  # a server that failed is not asked the next question either
            shown = yield from self._choose(part, of_part, notices)
            if shown is None:
                shown = yield from self._answer(part, of_part, notices)
            unanswered += [] if shown else [part.text]
        self.unanswered = tuple(unanswered) if len(asked) > 1 else None
        self.notice = " ".join(dict.fromkeys(notices))

    def nearest(self, question: Question, evidence: Sequence[Evidence]) -> Quote | None:
        """See protocols.Answerer."""
        return self._stand_in.nearest(question, evidence)

    def _judge_of_statements(self) -> Verifier | None:
        """The verifier, if it is needed and can judge. `_end` says if the server failed."""
        try:
            return self._verifier if self._verifier and not self._strict and self._verifier.is_judge() else None
        except ModelServerError as error:
            self._end.fail(error)
            return None

    def _layout(self, question: Question, evidence: Sequence[Evidence], style: Style) -> Layout:
        """How to ask. A report, a list of papers and a summary of one need more than a quote and an answer."""
        needs_more = style == "report" or question.topic or question.type.aspect == "summary"
        form: AnswerFormat = "statements" if self._format == "quote" and needs_more else self._format
        layout = Layout(question.text, evidence, form, style, about=question.about, instruction=self._instruction)
        return layout if not layout.notes or self._fits(layout) else replace(layout, guided=False)

    def _answer(self, question: Question, layout: Layout, notices: list[str]) -> Generator[Part | Thinking, None, int]:
        """The answer to one question; returns the number of statements shown. notices: gets what to say of it."""
        evidence, style = layout.evidence, layout.style
        asks_first = layout.format == "quote" and not self._end.failure
        sure = self._stand_in.confidence(question, evidence) if asks_first else 0.0
        excerpts: list[Sentence] = []
        if asks_first and not self._is_stated(layout, sure):
            result = ValidationResult(0, (), refused=True, partly_refused=False)
            excerpts = list(self._stand_in.sentences(question, evidence, style)) if sure >= VERY_SURE else []
        else:
            nothing = ValidationResult(0, (), refused=False, partly_refused=False)
            result = nothing if self._end.failure else (yield from self._attempt(question, layout))
            if result.failed:
                stand_in = self._stand_in.closest if self._end.failure else self._stand_in.sentences
                excerpts = list(stand_in(question, evidence, style))
            elif result.in_own_words:
                excerpts = self._sure(question, evidence, style)
        self.failed = self.failed or bool(self._end.failure)
        ended = list(self._end.notices(result.shown, self._answer_tokens))
        if excerpts and result.failed:
            notices += [*ended, QUOTES_INSTEAD] if ended else [_nothing_shown(result.rejected)]
        elif excerpts:
            notices += [*ended, REFUSED_ALONE, QUOTES_INSTEAD]
        else:
            notices += ended
        if not excerpts and result.refused:
            excerpts = self._named(question, evidence, notices)
        yield from excerpts
        if result.partly_refused:
            notices.append("The model found no evidence for part of the question.")
        if result.translated:
            notices.append(TRANSLATED)
        if result.reworded and self._verifier and not (self._judge or self._strict):
            notices.append(NO_JUDGE.format(name=self._verifier.name))
        if result.unverified:
            notices.append(f"Not all statements could be checked: {result.unverified}")
        return result.shown + len(excerpts)

    def _choose(
        self, question: Question, layout: Layout, notices: list[str]
    ) -> Generator[Part | Thinking, None, int | None]:
        """The answer by a model of which nothing that it writes would be shown, so that it need not write.

        Returns the number of statements shown; None if the answer has to be asked for: the model's probabilities are
        not known (one that thinks would also think of each excerpt), or the question is about a selection, whose
        meaning is not said by the sentence that is most like it.
        """
        may_write = bool(self._model.room) or not (self._strict or (self._verifier and not self._judge))
        if may_write or layout.format != "quote" or question.about or self._end.failure:
            return None
        scored = self._stand_in.candidates(question, layout.evidence)
        if not scored.excerpts:
            return None
        try:
            self._widen(_tokens(layout.rules, layout.prompt))  # so that no other question makes the server reload
            chosen = self._chosen(question, layout, scored)
        except ModelServerError as error:
            self._end.fail(error)
            return None
        if chosen is None:
            return None
        if chosen:
            shown = list(self._stand_in.shown(question, chosen, layout.evidence))
            notices += [] if self._strict else [CHOSEN.format(name=self.name)]
        else:
            shown = self._named(question, layout.evidence, notices)
        yield from (one for one in shown if one.text not in self._quoted)  # once, if it answers several questions
        self._quoted.update(one.text for one in shown)
        return len(shown)

    def _chosen(self, question: Question, layout: Layout, scored: Scored) -> list[Excerpt] | None:
        """The excerpts to show: the best, and of a comparison one for each side.

        [] if none states the answer, None if the model's probabilities are not known.
        """
        odds = self._odds_of([(one.block.evidence, one.text) for one in scored.excerpts], layout)
        if not any(odds):
            return None
        if SURE_WEIGHT * _log_odds(scored.confidence) + max(odds) < LEAST_ODDS:
            return []
        pairs = zip(odds, scored.excerpts, strict=True)
        ranked = [one for _, one in sorted(pairs, key=lambda pair: -(pair[1].lead + ODDS_WEIGHT * pair[0]))]
        return [self._narrowed(ranked[0], layout), *self._stand_in.sides(question, ranked)]

    def _narrowed(self, excerpt: Excerpt, layout: Layout) -> Excerpt:
        """The sentences of an excerpt that answer, by the model; of a table the best row and those around it."""
        block = excerpt.block
        if block.kind == "table":
            return brief(excerpt)
        if block.kind != "prose" or excerpt.first == excerpt.last:
            return excerpt
        parts = range(excerpt.first, excerpt.last + 1)
        odds = self._odds_of([(block.evidence, block.text_of(part)) for part in parts], layout)
        return narrowed(excerpt, odds) if odds else excerpt

    def _odds_of(self, texts: Sequence[tuple[Evidence, str]], layout: Layout) -> list[float]:
        """The model's log-odds that each of these texts of the evidence states the answer; 0 where it does not say.

        [] from a server that tells no probabilities: it is asked once.
        """
        odds = list[float]()
        for evidence, text in texts:
            prompt = layout.choice_prompt(evidence, text[:LONGEST_JUDGED])
            token = self._model.first_token(
                prompts.CHOICE_RULES, prompt, context=self._context, check_cancelled=self._check_cancelled
            )
            if not token.alternatives:
                return []
            odds.append(_log_odds(token.yes))
        return odds

    def _named(self, question: Question, evidence: Sequence[Evidence], notices: list[str]) -> list[Sentence]:
        """The algorithm that the question names, where the model found no answer. notices: gets what to say of it."""
        named = self._stand_in.named_algorithm(question, evidence)
        if named:
            notices.append(NAMED_INSTEAD)
        return [named] if named else []

    def _is_stated(self, layout: Layout, sure: float) -> bool:
        """Whether the evidence states the answer: the mean of the model's probability and the stand-in's.

        sure: the stand-in's. A small model that is asked for an answer always gives one, so this is asked first. Where
        the model's judgement is not known, the answer is asked for. A model that thinks gives no probabilities, so it
        is not asked. `_end` says if the server failed.
        """
        if self._model.room:
            return True
        self._widen(_tokens(layout.rules, layout.prompt))  # for the answer, so that the server does not reload
        try:
            token = self._model.first_token(
                layout.rules, layout.stated_prompt, context=self._context, check_cancelled=self._check_cancelled
            )
        except ModelServerError as error:
            self._end.fail(error)
            return True
        if token.yes is None or not token.alternatives:
            return True
        return (token.yes + sure) / 2 >= LEAST_STATED

    def _sure(self, question: Question, evidence: Sequence[Evidence], style: Style) -> list[Sentence]:
        """The stand-in's answer, where it is sure that the papers answer what the model says they do not."""
        excerpts = list(self._stand_in.sentences(question, evidence, style))
        return excerpts if excerpts and excerpts[0].section != CLOSEST else []

    def _attempt(self, question: Question, layout: Layout) -> Generator[Part | Thinking, None, ValidationResult]:
        self._end = _End()
        self._widen(_tokens(layout.rules, layout.prompt))
        start = PromptStart(layout.rules, layout.start, self._context)
        asked = content_words(question.standing) if layout.format == "quote" else frozenset[str]()
        validator = Validator(
            Grounder(layout.evidence, asked),
            self._judge.for_answer(start) if self._judge else None,
            layout.style,
            self._strict,
            partial(self._stand_in.best_quote, question, layout.evidence),
            own_words=layout.format != "quote" or not (self._strict or (self._verifier and not self._judge)),
        )
        longest = LONGEST_TOKEN * self._answer_tokens
        pieces = self._recorded(self._stream(layout.rules, layout.prompt, shape=layout.shape, tolerant=True))
        first, has_reported = "", False
        for first in pieces:
            if first:
                break
            if self._end.has_thought and not has_reported:
                has_reported = True
                yield Thinking()
        parts = parts_of(
            chain([first] if first else [], pieces),
            layout.parser(),
            max_chars=longest,
            is_cut=lambda: self._end.is_early,
        )
        return (yield from validator.check(parts))

    def _recorded(self, pieces: Iterable[str]) -> Iterator[str]:
        """These pieces of a reply, which are added to `raw`; that of another question in one begins a new paragraph."""
        self.raw += "\n\n" if self.raw else ""
        for piece in pieces:
            self.raw += piece
            yield piece

    def standalone(self, question: str, history: Sequence[Answer]) -> str:
        """See protocols.Answerer. If the model writes no usable question, the follow-up is unchanged."""
        turns = [f"Q: {turn.standalone_question}\nA: {_answer_text(turn)}" for turn in history[-REMEMBERED_TURNS:]]
        prompt = prompts.STANDALONE.format(chat_history="\n".join(turns), question=question)
        known = set(tokenize(" ".join([*turns, question])))
        self._end = _End()
        self._widen(_tokens("", prompt))
        try:
            output = without_thoughts("".join(self._stream("", prompt)))
        except ThoughtAlone:
            return question
        for line in printable(output).splitlines():
            rewritten = _LABEL.sub("", line).strip(' *"“”\n')
            if rewritten and not rewritten.endswith(":"):  # "Here is the standalone question:"
                usable = len(rewritten) <= 4 * len(question) + 400 and known.intersection(tokenize(rewritten))
                return rewritten if usable and not is_refusal(rewritten) else question
        return question

    def _stream(
        self, system: str, prompt: str, *, shape: dict[str, Any] | None = None, tolerant: bool = False
    ) -> Iterator[str]:
        """The model's output as it arrives, cut off at the limit. `_end` says how it ended.

        Uses the context of the last `_widen`. tolerant: a failing server ends the output instead of raising
        ModelServerError. Raises ContextTooSmall for a prompt that the server truncated.
        """
        length = 0
        pieces = self._model.stream(
            system,
            prompt,
            context=self._context,
            longest=self._answer_tokens,
            shape=shape,
            check_cancelled=self._check_cancelled,
        )
        try:
            for chunk in pieces:
                self._end.reason = self._end.reason or str(chunk.response_metadata.get("done_reason") or "")
                self._end.has_thought = self._end.has_thought or THOUGHT in chunk.additional_kwargs
                prompt_tokens = chunk.usage_metadata["input_tokens"] if chunk.usage_metadata else 0
                prompt_tokens = 0 if self._end.has_thought else prompt_tokens  # the count includes a thought
                if prompt_tokens + TEMPLATE_TOKENS >= self._context:  # no space left, so the server cut the prompt
                    raise self._too_small(prompt_tokens)
                piece = str(chunk.content)
                length += len(piece) or (THOUGHT not in chunk.additional_kwargs)
                too_long = length > LONGEST_TOKEN * self._answer_tokens
                self._end.reason = "length" if too_long else self._end.reason  # the reader may stop at this piece
                yield piece
                if too_long:
                    return
        except ModelServerError as error:
            if not tolerant:
                raise
            self._end.fail(error)

    def _fits(self, layout: Layout) -> bool:
        return _tokens(layout.rules, layout.prompt) + self._answer_tokens + self._least_room <= self._largest

    @property
    def _least_room(self) -> int:
        """Tokens for a thought, at least: that the model thinks may be found out after the evidence was chosen."""
        return min(self._model.room, LEAST_ROOM)

    def _widen(self, prompt_tokens: int) -> None:
        """Choose the context size for a prompt. Raises ContextTooSmall if the model's largest is too small."""
        needed = prompt_tokens + self._answer_tokens
        if needed + self._least_room > self._largest:
            raise self._too_small(prompt_tokens)
        self._context = self._model.context_for(needed)

    def _too_small(self, prompt_tokens: int) -> ContextTooSmall:
        return ContextTooSmall(
            f"The prompt has {prompt_tokens:,} tokens, which leaves {self._model.name} no space to answer"
            f" in its context of {self._context or self._largest:,}.",
            "Lower CONTEXT_TOKENS or TOP_K, or set LLM_MODEL to a model with a longer context.",
        )


def _nothing_shown(rejected: Sequence[RejectedSentence]) -> str:
    """Why no statement of the model is shown, and that quotes follow."""
    others = [_NOT_SHOWN[each.rule] for each in rejected if each.rule in _NOT_SHOWN]
    if rejected and not others:
        return NOTHING_HELD
    return f"{others[0] if others else NO_ANSWER} {QUOTES_INSTEAD}"


def _log_odds(probability: float | None) -> float:
    """The log-odds of a probability, at most 4 either way; 0 if it is not known."""
    share = min(0.982, max(0.018, 0.5 if probability is None else probability))
    return math.log(share / (1 - share))


def _tokens(system: str, prompt: str) -> int:
    return estimate_tokens(system) + estimate_tokens(prompt) + TEMPLATE_TOKENS


def _answer_text(turn: Answer) -> str:
    """The answer of a turn, its sentences numbered if there are several."""
    if len(turn.sentences) < 2:
        return defused(turn.text)
    return " ".join(f"({number}) {defused(sentence.text)}" for number, sentence in enumerate(turn.sentences, 1))
