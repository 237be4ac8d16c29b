"""Question + evidence -> the sentences of an answer, each with its citations: by a chat model."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Generator, Iterator, Sequence

from folio.answer import prompts, validation
from folio.answer.markup import printable
from folio.answer.refusals import is_refusal
from folio.errors import ContextTooSmall
from folio.grounding.verifier import SentenceVerifier
from folio.models.ollama import OllamaServer
from folio.models.ollama_chat import ChatModel
from folio.protocols import Answerer, Embedder
from folio.text import estimate_tokens, tokenize
from folio.types import Answer, Evidence, RejectedSentence, Sentence, Style

# Sizes of context that a model is loaded with. Few, because each change makes the server load the model again.
CONTEXT_SIZES = (4096, 8192, 16384, 32768, 65536, 131072)
# Tokens that a model's own template puts around the messages.
TEMPLATE_TOKENS = 64
# Tokens kept for the faults that a second try is told of, so that it does not need another context.
RETRY_TOKENS = 512
# Tokens kept for a question and the rules when it is reckoned how much evidence a model can take.
QUESTION_TOKENS = 1024
# Turns of a conversation that a follow-up is rewritten from.
REMEMBERED_TURNS = 4
# Characters that a token stands for at most in prose: an answer that is longer was not held to its limit by the server.
LONGEST_TOKEN = 8
# A paper's own references, "[12]" or "[3, 4]", which a model would take for numbers of evidence; not an index, "x[1]".
_REFERENCES = re.compile(r"(?<![\w\]])(?:\[\d{1,3}(?:\s*[,–-]\s*\d{1,3})*\])+")
# What ends or begins a turn in the templates of chat models, and our own fence: the server would read them as such.
_CONTROLS = re.compile(
    r"<(?=[\s/]*(?:evidence|s|think(?:ing)?|start_of_turn|end_of_turn|bos|eos|system|user|assistant)\b)|<(?=[|｜])"
    r"|(?<=[|｜])>|\[(?=/?(?:INST|SYS)\b)|<(?=</?SYS)",
    re.I,
)
_NO_MARKUP = str.maketrans('<>"', "‹›'")
_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|$)", re.I | re.S)
# What models put before a question that they rewrote.
_LABEL = re.compile(r"^\W*(?:(?:standalone|rewritten|follow-up)\s+)*question\W*:", re.I)


class OllamaAnswerer:
    """A chat model that Ollama serves, held to the evidence by cite.check."""

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
        """evidence_tokens: of the evidence in a prompt at most. answer_tokens: room that is kept for the answer.

        meaning: measures how near a sentence is to its quote. stand_in: answers where nothing of what the model wrote
        can be shown. check_cancelled: called often while the model is waited for; what it raises ends the answer, and
        the server's work on it. Asks the server about the model. Raises OllamaError, ModelMissing, CloudModel.
        """
        info = server.require_local(model)
        self._model = ChatModel(server, info.name)
        self._largest = info.context_length or CONTEXT_SIZES[0]
        room = self._largest - answer_tokens - QUESTION_TOKENS - RETRY_TOKENS
        self.evidence_tokens = max(256, min(evidence_tokens, room))
        self._answer_tokens = answer_tokens
        self._meaning = meaning
        self._stand_in = stand_in
        self._check_cancelled = check_cancelled
        self._context = 0  # tokens; the size that the model was last loaded with
        self._cut = False  # whether the model's last words were cut off at the limit
        self.notice = ""
        self.name = f"{self._model.name} (Ollama)"

    def sentences(
        self, question: str, evidence: Sequence[Evidence], style: Style = "plain"
    ) -> Iterator[Sentence | RejectedSentence]:
        """See protocols.Answerer. The model is asked once more where nothing that it wrote could be shown.

        Where that gives nothing either, the stand-in answers from the same evidence. Raises ModelError.
        """
        self.notice = ""
        if not evidence:
            return
        judge = SentenceVerifier(evidence, self._meaning)
        rules = prompts.REPORT if style == "report" else prompts.ANSWER
        prompt = prompts.QUESTION.format(evidence="\n\n".join(map(_as_read, evidence)), question=question)
        ended = yield from self._checked(rules, prompt, judge, style, RETRY_TOKENS)
        if ended.failed:
            again = prompts.RETRY.format(question=prompt, faults=_faults(ended.withheld))
            if self._fits(rules, again):
                ended = yield from self._checked(rules, again, judge, style, 0)
        notices = []
        if ended.failed:
            standing_in = list(self._stand_in.sentences(question, evidence, style))
            if standing_in:
                notices.append("The model wrote nothing that the papers support; these are their own sentences.")
            yield from standing_in
        if ended.partly:
            notices.append("The model found no evidence for a part of the question.")
        if self._cut and ended.shown:
            limit = f"{self._answer_tokens} tokens"
            notices.append(f"The answer was cut at {limit}; raise ANSWER_TOKENS for a longer one.")
        self.notice = " ".join(notices)

    def _checked(
        self, rules: str, prompt: str, judge: SentenceVerifier, style: Style, spare: int
    ) -> Generator[Sentence | RejectedSentence, None, validation.Ended]:
        self._cut = False
        return (
            yield from validation.check(
                self._stream(rules, prompt, spare),
                judge,
                style=style,
                longest=LONGEST_TOKEN * self._answer_tokens,
                whole=lambda: not self._cut,
            )
        )

    def standalone(self, question: str, history: Sequence[Answer]) -> str:
        """See protocols.Answerer. What is no question is not believed: the follow-up is then taken as it was asked."""
        turns = [f"Q: {turn.standalone_question}\nA: {_numbered(turn)}" for turn in history[-REMEMBERED_TURNS:]]
        prompt = prompts.STANDALONE.format(chat_history="\n".join(turns), question=question)
        known = set(tokenize(" ".join([*turns, question])))
        written = _THOUGHTS.sub("", "".join(self._stream("", prompt)))
        for line in printable(written).splitlines():
            rewritten = _LABEL.sub("", line).strip(' *"“”\n')
            if rewritten and not rewritten.endswith(":"):  # "Here is the standalone question:"
                believed = len(rewritten) <= 4 * len(question) + 400 and known.intersection(tokenize(rewritten))
                return rewritten if believed and not is_refusal(rewritten) else question
        return question

    def _stream(self, system: str, prompt: str, spare: int = 0) -> Iterator[str]:
        """The model's words as they come, left where they do not end.

        spare: tokens that the context is to have room for besides, if the model has. Raises OllamaError when the
        answer breaks off, ContextTooSmall for a cut prompt.
        """
        self._widen(_tokens(system, prompt), spare)
        done, length = "", 0
        for chunk in self._model.stream(
            system, prompt, context=self._context, longest=self._answer_tokens, check_cancelled=self._check_cancelled
        ):
            done = done or str(chunk.response_metadata.get("done_reason") or "")
            read = chunk.usage_metadata["input_tokens"] if chunk.usage_metadata else 0
            if read + TEMPLATE_TOKENS >= self._context:  # the server filled the context, and left out the rest
                raise self._too_small(read)
            piece = str(chunk.content)
            length += max(1, len(piece))
            self._cut = length > LONGEST_TOKEN * self._answer_tokens
            yield piece
            if self._cut:
                return
        self._cut = done == "length"

    def _fits(self, system: str, prompt: str) -> bool:
        return _tokens(system, prompt) + self._answer_tokens <= self._largest

    def _widen(self, prompt_tokens: int, spare: int) -> None:
        """Choose the context that a prompt needs. Raises ContextTooSmall where the model has none so large."""
        needed = prompt_tokens + self._answer_tokens
        if needed > self._largest:
            raise self._too_small(prompt_tokens)
        # It never shrinks: a change would have the server load the model again.
        if min(needed + spare, self._largest) > self._context:
            sizes = [size for size in CONTEXT_SIZES if needed + spare <= size <= self._largest]
            self._context = sizes[0] if sizes else self._largest

    def _too_small(self, prompt_tokens: int) -> ContextTooSmall:
        return ContextTooSmall(
            f"The prompt of {prompt_tokens:,} tokens leaves {self._model.name} no room to answer"
            f" in a context of {self._context or self._largest:,}.",
            "Lower CONTEXT_TOKENS or TOP_K, or set LLM_MODEL to a model with a longer context.",
        )


def _tokens(system: str, prompt: str) -> int:
    return estimate_tokens(system) + estimate_tokens(prompt) + TEMPLATE_TOKENS


def _as_read(evidence: Evidence) -> str:
    """A piece of evidence as the model reads it: fenced, and without what it could take for a fence or a marker."""
    text = _REFERENCES.sub(_in_words, _defused(evidence.text))
    paper = " ".join((evidence.paper.title or evidence.paper.file).split()).translate(_NO_MARKUP)
    return prompts.EVIDENCE.format(number=evidence.number, paper=paper, pages=evidence.where, text=text)


def _defused(text: str) -> str:
    """The text without what a chat model's template means something by; a paper can hold it, and so can an answer."""
    seen = "".join(char for char in text if unicodedata.category(char) != "Cf")
    return _CONTROLS.sub(lambda sign: {"<": "‹", ">": "›", "[": "("}[sign.group()], seen)


def _in_words(references: re.Match[str]) -> str:
    return references.group().replace("][", ", ").replace("[", "(ref. ").replace("]", ")")


def _faults(withheld: Sequence[RejectedSentence]) -> str:
    """What was wrong, in as many lines as RETRY_TOKENS have room for."""
    lines: list[str] = []
    left = RETRY_TOKENS - estimate_tokens(prompts.RETRY)
    for fault in withheld:
        sentence = _defused(_shortened(fault.text))
        line = prompts.FAULT.format(sentence=sentence, reason=_shortened(fault.reason))
        left -= estimate_tokens(line) + 1
        if left < 0:
            break
        lines.append(line)
    return "\n".join(lines) or prompts.NO_SENTENCE


def _shortened(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:199]}…"


def _numbered(turn: Answer) -> str:
    if len(turn.sentences) < 2:
        return _defused(turn.text)
    return " ".join(f"({number}) {_defused(sentence.text)}" for number, sentence in enumerate(turn.sentences, 1))
