"""Question + evidence -> an answer by a chat model, each of its sentences with citations."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Sequence

from folio.answer import prompts, validation
from folio.answer.fencing import defused, evidence_block
from folio.answer.markup import printable
from folio.answer.refusals import is_refusal
from folio.errors import ContextTooSmall
from folio.grounding.verifier import SentenceVerifier
from folio.models.ollama import OllamaServer
from folio.models.ollama_chat import STOPPED, ChatModel
from folio.protocols import Answerer, Embedder
from folio.text import estimate_tokens, tokenize
from folio.types import Answer, Checking, Evidence, RejectedSentence, Sentence, Style

# Context sizes that a model is loaded with, in tokens. Few, because the server reloads the model for each change.
CONTEXT_SIZES = (4096, 8192, 16384, 32768, 65536, 131072)
# Tokens that a model's chat template adds around the messages.
TEMPLATE_TOKENS = 64
# Tokens reserved for the faults listed in a second attempt, so that it fits the same context.
RETRY_TOKENS = 512
# Tokens reserved for the question and the rules when the space for evidence is computed.
QUESTION_TOKENS = 1024
# Turns of a conversation that the model sees when it rewrites a follow-up.
REMEMBERED_TURNS = 4
# Characters per token in prose, at most. A longer answer means that the server ignored the limit.
LONGEST_TOKEN = 8
_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|$)", re.I | re.S)
# What models write before a rewritten question.
_LABEL = re.compile(r"^\W*(?:(?:standalone|rewritten|follow-up)\s+)*question\W*:", re.I)


class OllamaAnswerer:
    """A chat model on Ollama. Only sentences that the evidence supports are shown (validation.py)."""

    confidence = None

    def __init__(
        self,
        server: OllamaServer,
        model: str,
        *,
        evidence_tokens: int,
        answer_tokens: int,
        meaning: Embedder,
        stand_in: Answerer,
        check_cancelled: Callable[[], None] = lambda: None,
    ) -> None:
        """evidence_tokens: limit for the evidence in a prompt. answer_tokens: reserved for the answer.

        meaning: measures how close a sentence is to its quote. stand_in: answers where nothing that the model wrote
        can be shown. check_cancelled: called often while waiting for the model; what it raises ends the answer and
        the server's work on it. Asks the server about the model. Raises as OllamaServer.require_local does.
        """
        info = server.require_local(model, "completion")
        self._model = ChatModel(server, info.name)
        self._largest = info.context_length or CONTEXT_SIZES[0]
        available = self._largest - answer_tokens - QUESTION_TOKENS - RETRY_TOKENS
        self.evidence_tokens = max(256, min(evidence_tokens, available))
        self._answer_tokens = answer_tokens
        self._meaning = meaning
        self._stand_in = stand_in
        self._check_cancelled = check_cancelled
        self._context = 0  # tokens that the model was last loaded with
        self._cut = False  # whether the last output was cut off at the limit
        self._stopped = False  # whether the model was stopped in the last output, as it repeated itself
        self.notice = ""
        self.name = f"{self._model.name} (Ollama)"

    def sentences(
        self, question: str, evidence: Sequence[Evidence], style: Style = "plain"
    ) -> Iterator[Sentence | RejectedSentence | Checking]:
        """See protocols.Answerer. If nothing that the model wrote can be shown, it is asked once more.

        If that gives nothing either, the stand-in answers from the same evidence. Raises ModelError.
        """
        self.notice = ""
        if not evidence:
            return
        verifier = SentenceVerifier(evidence, self._meaning)
        rules = prompts.REPORT if style == "report" else prompts.ANSWER
        prompt = prompts.QUESTION.format(evidence="\n\n".join(map(_evidence_block, evidence)), question=question)
        result = yield from self._attempt(rules, prompt, verifier, style, RETRY_TOKENS)
        if result.failed:
            again = prompts.RETRY.format(question=prompt, faults=_faults(result.rejected))
            if self._fits(rules, again):
                result = yield from self._attempt(rules, again, verifier, style, 0)
        notices = []
        if result.failed:
            excerpts = list(self._stand_in.sentences(question, evidence, style))
            if excerpts:
                notices.append("The model wrote nothing that the papers support. These sentences are quotes from them.")
            yield from excerpts
        if result.partly_refused:
            notices.append("The model found no evidence for part of the question.")
        if self._cut and result.shown:
            notices.append(
                f"The answer was cut off at {self._answer_tokens} tokens. Raise ANSWER_TOKENS for longer answers."
            )
        self.notice = " ".join(notices)

    def _attempt(
        self, rules: str, prompt: str, verifier: SentenceVerifier, style: Style, spare: int
    ) -> Generator[Sentence | RejectedSentence | Checking, None, validation.ValidationResult]:
        self._cut = self._stopped = False
        return (
            yield from validation.check(
                self._stream(rules, prompt, spare),
                verifier,
                style=style,
                max_chars=LONGEST_TOKEN * self._answer_tokens,
                is_complete=lambda: not (self._cut or self._stopped),
            )
        )

    def standalone(self, question: str, history: Sequence[Answer]) -> str:
        """See protocols.Answerer. If the model writes no usable question, the follow-up stays as it is."""
        turns = [f"Q: {turn.standalone_question}\nA: {_answer_text(turn)}" for turn in history[-REMEMBERED_TURNS:]]
        prompt = prompts.STANDALONE.format(chat_history="\n".join(turns), question=question)
        known = set(tokenize(" ".join([*turns, question])))
        output = _THOUGHTS.sub("", "".join(self._stream("", prompt)))
        for line in printable(output).splitlines():
            rewritten = _LABEL.sub("", line).strip(' *"“”\n')
            if rewritten and not rewritten.endswith(":"):  # "Here is the standalone question:"
                usable = len(rewritten) <= 4 * len(question) + 400 and known.intersection(tokenize(rewritten))
                return rewritten if usable and not is_refusal(rewritten) else question
        return question

    def _stream(self, system: str, prompt: str, spare: int = 0) -> Iterator[str]:
        """The model's output as it arrives, cut off where it exceeds the limit.

        spare: further tokens that the context should hold, if the model allows. Raises OllamaError when the
        stream breaks off, ContextTooSmall for a prompt that the server truncated.
        """
        self._widen(_tokens(system, prompt), spare)
        done, length = "", 0
        for chunk in self._model.stream(
            system, prompt, context=self._context, longest=self._answer_tokens, check_cancelled=self._check_cancelled
        ):
            done = done or str(chunk.response_metadata.get("done_reason") or "")
            prompt_tokens = chunk.usage_metadata["input_tokens"] if chunk.usage_metadata else 0
            if prompt_tokens + TEMPLATE_TOKENS >= self._context:  # no space left: the server cut the prompt
                raise self._too_small(prompt_tokens)
            piece = str(chunk.content)
            length += max(1, len(piece))
            self._cut = length > LONGEST_TOKEN * self._answer_tokens
            yield piece
            if self._cut:
                return
        self._cut, self._stopped = done == "length", done == STOPPED

    def _fits(self, system: str, prompt: str) -> bool:
        return _tokens(system, prompt) + self._answer_tokens <= self._largest

    def _widen(self, prompt_tokens: int, spare: int) -> None:
        """Choose the context size for a prompt. Raises ContextTooSmall if the model has none that large."""
        needed = prompt_tokens + self._answer_tokens
        if needed > self._largest:
            raise self._too_small(prompt_tokens)
        # It never shrinks: the server reloads the model for each change.
        if min(needed + spare, self._largest) > self._context:
            sizes = [size for size in CONTEXT_SIZES if needed + spare <= size <= self._largest]
            self._context = sizes[0] if sizes else self._largest

    def _too_small(self, prompt_tokens: int) -> ContextTooSmall:
        return ContextTooSmall(
            f"The prompt has {prompt_tokens:,} tokens, which leaves {self._model.name} no space to answer"
            f" in its context of {self._context or self._largest:,}.",
            "Lower CONTEXT_TOKENS or TOP_K, or set LLM_MODEL to a model with a longer context.",
        )


def _tokens(system: str, prompt: str) -> int:
    return estimate_tokens(system) + estimate_tokens(prompt) + TEMPLATE_TOKENS


def _evidence_block(evidence: Evidence) -> str:
    return evidence_block(evidence.number, evidence.paper, evidence.where, evidence.text)


def _faults(rejected: Sequence[RejectedSentence]) -> str:
    """The rejected sentences with the reasons, as many lines as fit into RETRY_TOKENS."""
    lines: list[str] = []
    left = RETRY_TOKENS - estimate_tokens(prompts.RETRY)
    for fault in rejected:
        sentence = defused(_shortened(fault.text))
        line = prompts.FAULT.format(sentence=sentence, reason=_shortened(fault.reason))
        left -= estimate_tokens(line) + 1
        if left < 0:
            break
        lines.append(line)
    return "\n".join(lines) or prompts.NO_SENTENCE


def _shortened(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:199]}…"


def _answer_text(turn: Answer) -> str:
    if len(turn.sentences) < 2:
        return defused(turn.text)
    return " ".join(f"({number}) {defused(sentence.text)}" for number, sentence in enumerate(turn.sentences, 1))
