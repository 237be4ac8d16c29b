"""Question + evidence -> an answer by a chat model on Ollama, with citations for each statement."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

from folio.answer import prompts
from folio.answer.extractive import ExtractiveAnswerer
from folio.answer.fencing import defused
from folio.answer.layout import AnswerFormat, Layout
from folio.answer.markers import printable
from folio.answer.refusals import is_refusal
from folio.answer.validation import Part, ValidationResult, Validator, parts_of
from folio.answer_types import CLOSEST, Answer, Evidence, RejectedSentence, Sentence, Style, Thinking
from folio.errors import ContextTooSmall, OllamaError, ThoughtAlone
from folio.grounding.grounder import Grounder
from folio.models.ollama import OllamaServer
from folio.models.ollama_chat import LONGEST_TOKEN, STOPPED, THOUGHT, ChatModel
from folio.models.thinking import without_thoughts
from folio.protocols import PromptStart, Verifier
from folio.question.question import Question
from folio.text import estimate_tokens, shorten, tokenize

TEMPLATE_TOKENS = 64  # added around the messages by a model's chat template
RETRY_TOKENS = 512  # reserved for the faults listed in a second attempt, so that it fits the same context
QUESTION_TOKENS = 1024  # reserved for the question and the rules
REMEMBERED_TURNS = 4  # of the conversation, shown to the model that rewrites a follow-up
NUMBERED = 1.2  # maximum factor by which sentence numbers lengthen the evidence, in tokens
NOTHING_HELD = "The model wrote nothing that the papers support. These sentences are quotes from them."
# The rule of a statement that was left out -> what is true of such a model in place of that
_NOT_SHOWN = {
    "strict": "The model did not keep to the papers' own words.",
    "verifier": "The verifier agreed with nothing that the model wrote.",
    "contradiction": "The verifier agreed with nothing that the model wrote.",
    "dangling": "What the model wrote could not be matched with the papers.",
    "too long": "What the model wrote could not be matched with the papers.",
}
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


class OllamaAnswerer:
    """A chat model on Ollama. Only statements that the evidence supports are shown (validation.py)."""

    quotes_only = False

    def __init__(
        self,
        server: OllamaServer,
        model: str,
        *,
        evidence_tokens: int,
        answer_tokens: int,
        stand_in: ExtractiveAnswerer,
        verifier: Verifier | None = None,
        answer_format: AnswerFormat = "statements",
        strict: bool = False,
        check_cancelled: Callable[[], None] = lambda: None,
        usual_tokens: int = 0,
    ) -> None:
        """Asks the server about the model. Raises as OllamaServer.require_local does.

        evidence_tokens: limit for the evidence in a prompt. answer_tokens: reserved for the answer. stand_in: answers
        if nothing that the model wrote can be shown. verifier: checks reworded statements. strict: show only quotes.
        check_cancelled: called often while waiting for the model; an exception ends the answer and the server's work
        on it. usual_tokens: as for ChatModel.
        """
        self._model = ChatModel.open(server, model, usual_tokens)
        self._largest = self._model.largest
        available = self._largest - self._model.room - answer_tokens - QUESTION_TOKENS - RETRY_TOKENS
        if answer_format == "statements":
            available = int(available / NUMBERED)
        self.evidence_tokens = max(256, min(evidence_tokens, available))
        self._answer_tokens = answer_tokens
        self._stand_in = stand_in
        self._verifier = verifier
        self._format = answer_format
        self._strict = strict
        self._check_cancelled = check_cancelled
        self._context = 0  # tokens; the context size for the current prompt
        self._end = _End()
        self.notice = ""
        self.failed = False
        self.name = f"{self._model.name} (Ollama)"

    def sentences(
        self, question: Question | str, evidence: Sequence[Evidence], style: Style = "plain"
    ) -> Generator[Part | Thinking, None, None]:
        """See protocols.Answerer. If nothing that the model wrote can be shown, the model is asked once more.

        If that gives nothing either, or the server fails before a statement is shown, the stand-in answers from the
        same evidence. Raises ModelError for what only a person can fix.
        """
        self.notice, self.failed = "", False
        if not evidence:
            return
        question = Question.of(question)
        layout = Layout(question.text, evidence, self._format, style, about=question.about)
        if layout.notes and not self._fits(prompts.RULES, layout.prompt):
            layout = replace(layout, guided=False)
        best_quote = partial(self._stand_in.best_quote, question, evidence)
        result = yield from self._attempt(layout, layout.prompt, RETRY_TOKENS, best_quote)
        rejected = result.rejected
        if result.failed and not self._end.failure:
            again = prompts.RETRY.format(prompt=layout.prompt, faults=_faults(result.rejected))
            if self._fits(prompts.RULES, again):
                result = yield from self._attempt(layout, again, 0, best_quote)
                rejected += result.rejected
        self.failed = bool(self._end.failure)
        notices = list(self._end.notices(result.shown, self._answer_tokens))
        if result.failed:
            stand_in = self._stand_in.closest if self.failed else self._stand_in.sentences
            excerpts = list(stand_in(question, evidence, style))
            if excerpts:
                notices += [QUOTES_INSTEAD] if notices else [_nothing_shown(rejected)]
            yield from excerpts
        if result.in_own_words and (excerpts := self._sure(question, evidence, style)):
            notices += [REFUSED_ALONE, QUOTES_INSTEAD]
            yield from excerpts
        elif result.refused and (named := self._stand_in.named_algorithm(question, evidence)):
            notices.append(NAMED_INSTEAD)
            yield named
        if result.partly_refused:
            notices.append("The model found no evidence for part of the question.")
        if result.translated:
            notices.append(TRANSLATED)
        if result.unverified:
            notices.append(f"Not all statements could be checked: {result.unverified}")
        self.notice = " ".join(notices)

    def _sure(self, question: Question, evidence: Sequence[Evidence], style: Style) -> list[Sentence]:
        """The stand-in's answer, where it is sure that the papers answer what the model says they do not."""
        excerpts = list(self._stand_in.sentences(question, evidence, style))
        return excerpts if excerpts and excerpts[0].section != CLOSEST else []

    def _attempt(
        self, layout: Layout, prompt: str, spare: int, best_quote: Callable[[], Sentence | None]
    ) -> Generator[Part | Thinking, None, ValidationResult]:
        self._end = _End()
        self._widen(_tokens(prompts.RULES, prompt), spare)
        start = PromptStart(prompts.RULES, layout.start, self._context)
        validator = Validator(
            Grounder(layout.evidence),
            self._verifier.for_answer(start) if self._verifier else None,
            layout.style,
            self._strict,
            best_quote,
        )
        longest = LONGEST_TOKEN * self._answer_tokens
        pieces = self._stream(prompts.RULES, prompt, shape=layout.shape, tolerant=True)
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

    def standalone(self, question: str, history: Sequence[Answer]) -> str:
        """See protocols.Answerer. If the model writes no usable question, the follow-up is unchanged."""
        turns = [f"Q: {turn.standalone_question}\nA: {_answer_text(turn)}" for turn in history[-REMEMBERED_TURNS:]]
        prompt = prompts.STANDALONE.format(chat_history="\n".join(turns), question=question)
        known = set(tokenize(" ".join([*turns, question])))
        self._end = _End()
        self._widen(_tokens("", prompt), 0)
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
        OllamaError. Raises ContextTooSmall for a prompt that the server truncated.
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
        except OllamaError as error:
            if not tolerant:
                raise
            self._end.failure = f"{error.happened} {error.remedy}"

    def _fits(self, system: str, prompt: str) -> bool:
        return _tokens(system, prompt) + self._answer_tokens + self._model.room <= self._largest

    def _widen(self, prompt_tokens: int, spare: int) -> None:
        """Choose the context size for a prompt. Raises ContextTooSmall if the model's largest is too small."""
        needed = prompt_tokens + self._answer_tokens
        if needed + self._model.room > self._largest:
            raise self._too_small(prompt_tokens)
        self._context = self._model.context_for(needed + spare)

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


def _tokens(system: str, prompt: str) -> int:
    return estimate_tokens(system) + estimate_tokens(prompt) + TEMPLATE_TOKENS


def _faults(rejected: Sequence[RejectedSentence]) -> str:
    """The rejected sentences with the reasons, as many lines as fit into RETRY_TOKENS."""
    lines: list[str] = []
    left = RETRY_TOKENS - estimate_tokens(prompts.RETRY)
    for fault in rejected:
        sentence = defused(shorten(fault.text, 200))
        line = prompts.FAULT.format(sentence=sentence, reason=shorten(fault.reason, 200))
        left -= estimate_tokens(line) + 1
        if left < 0:
            break
        lines.append(line)
    return "\n".join(lines) or prompts.NO_SENTENCE


def _answer_text(turn: Answer) -> str:
    """The answer of a turn, its sentences numbered if there are several."""
    if len(turn.sentences) < 2:
        return defused(turn.text)
    return " ".join(f"({number}) {defused(sentence.text)}" for number, sentence in enumerate(turn.sentences, 1))
