"""A chat model on a server: calls at temperature 0, translates errors, retries, and chooses its context and thinking.

thinking.py has the rules for models that think.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from folio.errors import ThoughtAlone
from folio.models.model_server import CONTEXT_SIZES, THOUGHT, ChatRequest, ModelServer, first_wait
from folio.models.server_errors import is_transient, refuses_thinking, thought_alone
from folio.models.thinking import FULL_ROOM, NO_THINKING, Thinking, ThoughtSplitter, thinking_anyway, without_thoughts

if TYPE_CHECKING:
    from langchain_core.messages import AIMessageChunk

# The "done_reason" of a reply that was stopped: by the server, which closes the stream without a reason when a model
# repeats a token more than 30 times, or by `stream`, when the model writes only blanks or too much. Nothing failed: the
# reply is valid up to there.
STOPPED = "stopped"
# Characters of white space after which a reply is stopped. A schema allows white space between any two tokens, and a
# small model may write nothing else. Indented code and tables have less.
MAX_BLANKS = 512
# The most characters per token in prose. A longer thought means that the server ignored the limit.
LONGEST_TOKEN = 8
TRIES = 3  # of one call, until the model writes something
TOP_LOGPROBS = 20  # alternatives to a token: the server's maximum
VERDICT_TOKENS = 16  # for a reply of one word
# After this many consecutive replies with only a thought, the model is not asked again
MOST_THOUGHTS = 3
# Minimum probability of "yes" and "no" together. Below it the model was about to write something else, such as a
# thought or a refusal, and the ratio of two such rare words means nothing.
MIN_PROBABILITY = 0.01
_NO_LETTER = re.compile(r"[\W_]+")
_POLL_S = 0.1  # between two calls of check_cancelled while waiting for the next try


@dataclass(frozen=True, slots=True)
class FirstToken:
    """The first token of a reply."""

    text: str  # with blanks; "" if the model ended without one
    # The possible first tokens: (token, natural logarithm of its probability), most likely first, at most TOP_LOGPROBS.
    # Empty after a thought, and from servers before version 0.12.11.
    alternatives: tuple[tuple[str, float], ...]

    @property
    def yes(self) -> float | None:
        """The probability of yes against no; None if the model said neither. Without alternatives, its word decides."""
        sums = {"yes": 0.0, "no": 0.0}
        for text, logprob in self.alternatives or ((self.text, 0.0),):
            word = _NO_LETTER.sub("", text).casefold()
            if word in sums:
                sums[word] += math.exp(logprob)
        total = sums["yes"] + sums["no"]
        return sums["yes"] / total if total >= MIN_PROBABILITY else None


@dataclass(slots=True)
class _Received:
    """The part of a reply received so far. Lengths in characters."""

    thought: int = 0
    blanks: int = 0  # at its end
    has_words: bool = False
    is_done: bool = False
    is_cut: bool = False  # by the limit on tokens, with only a thought
    prompt_tokens: int = 0

    def add(self, piece: AIMessageChunk, most: int) -> None:
        """most: the limit on the reply's tokens."""
        reason, text = piece.response_metadata.get("done_reason"), str(piece.content)
        self.has_words = self.has_words or bool(text.strip())
        self.thought += len(piece.additional_kwargs.get(THOUGHT, ""))
        if piece.usage_metadata:
            self.prompt_tokens = piece.usage_metadata["input_tokens"]
        self.blanks = self.blanks + len(text) if not text.strip() else len(text) - len(text.rstrip())
        # If nothing at all came, the server kept the thought to itself.
        is_at_limit = reason == "length" and bool(self.thought or not self.blanks)
        self.is_cut = not self.has_words and (self.thought > LONGEST_TOKEN * most or is_at_limit)
        self.is_done = self.is_done or bool(reason)

    @property
    def is_thought_alone(self) -> bool:
        return self.is_cut or (self.thought > 0 and not self.has_words)


@dataclass(slots=True)
class ChatModel:
    """One model on one server. Thread-safe.

    name: with the tag. first_wait_s: before the second try; doubled before the third. initial: how to ask the model to
    think or not, until the server refuses that or the model ignores it. largest: tokens of its context. usual: tokens
    of the longest expected prompt with its reply. digest: see ModelInfo.
    """

    server: ModelServer
    name: str
    first_wait_s: float = field(default_factory=first_wait)
    initial: Thinking = NO_THINKING
    largest: int = CONTEXT_SIZES[0]
    usual: int = 0
    digest: str = ""
    _only_thoughts: int = 0  # consecutive replies with only a thought

    @classmethod
    def open(cls, server: ModelServer, model: str, usual: int = 0) -> ChatModel:
        """Asks the server about the model. Raises as ModelServer.require_local does."""
        info = server.require_local(model, "completion")
        largest = info.context_length or CONTEXT_SIZES[0]
        return cls(server, info.name, initial=info.thinking, largest=largest, usual=usual, digest=info.digest)

    @property
    def title(self) -> str:
        """The name, and the server, for people."""
        return f"{self.name} ({self.server.label})"

    @property
    def thinking(self) -> Thinking:
        """How to ask the model to think or not, now."""
        return self.server.learnt.get(self.name, self.initial)

    @property
    def room(self) -> int:
        """Tokens that a reply needs for its thought."""
        return self.thinking.room

    @property
    def only_thinks(self) -> bool:
        """Whether the last replies had only a thought, so that the next would, too."""
        return self._only_thoughts >= MOST_THOUGHTS

    def context_for(self, tokens: int) -> int:
        """The context length for a prompt and its reply of this many tokens, and for the thought before the reply.

        The loaded context if it is large enough, because the server would reload the model for another. Otherwise the
        first of CONTEXT_SIZES that is, also for the usual prompt and the last choice. At most the model's own.
        """
        needed = min(tokens + self.room, self.largest)
        loaded = self.server.loaded_context(self.name)
        if needed <= loaded <= self.largest:
            return loaded
        needed = max(needed, min(self.usual + self.room, self.largest), self.server.contexts.get(self.name, 0))
        size = next((size for size in CONTEXT_SIZES if needed <= size <= self.largest), self.largest)
        self.server.contexts[self.name] = size
        return size

    def stream(
        self,
        rules: str,
        prompt: str,
        *,
        context: int,
        longest: int,
        shape: dict[str, Any] | None = None,
        check_cancelled: Callable[[], None] = lambda: None,
    ) -> Iterator[AIMessageChunk]:
        """The pieces of the model's reply as they arrive. One of the last two has "done_reason" in its metadata.

        The reason is "stop", "length" if the reply was cut off at `longest`, or STOPPED. Pieces of a thought come
        first, without content, with the thought as THOUGHT in their additional_kwargs.

        rules: the system message; not sent if empty. context: the context length in tokens, from `context_for`.
        longest: the most tokens in a reply, without its thought. shape: a JSON Schema for the reply, which some servers
        ignore. check_cancelled: called often, also while the model loads; an exception that it raises ends the reply
        and the server's work on it.

        Raises ModelError: ModelFailed if the server fails, after retries until the model writes something; ThoughtAlone
        if the reply has only a thought although the model had room for one.
        """
        while True:
            thinking = self.thinking
            most, received = longest + thinking.room, _Received()
            pieces = self._pieces(rules, prompt, context, check_cancelled, longest=most, shape=shape)
            with closing(pieces):
                for piece in pieces:
                    received.add(piece, most)
                    if received.is_cut:
                        break
                    yield piece
                    if received.blanks > MAX_BLANKS:
                        break
            if not received.is_thought_alone:
                self._only_thoughts = 0
                if not received.is_done:
                    yield _made("", done_reason=STOPPED)
                return
            if thinking.room:
                self._only_thoughts += 1
                spent = most if received.is_cut else None
                raise thought_alone(self.name, spent, thinking.less, self.server.words)
            # The model had no room for a thought, because it was asked not to think.
            self.server.learnt[self.name] = thinking_anyway(thinking)
            context = max(context, self.context_for(received.prompt_tokens + longest))

    def write(
        self,
        rules: str,
        prompt: str,
        *,
        context: int,
        longest: int,
        shape: dict[str, Any] | None = None,
        check_cancelled: Callable[[], None] = lambda: None,
    ) -> str:
        """The whole reply, cut off if the server ignores the limit. See `stream`."""
        text = ""
        pieces = self.stream(
            rules, prompt, context=context, longest=longest, shape=shape, check_cancelled=check_cancelled
        )
        for piece in pieces:
            text += str(piece.content)
            if len(text) > LONGEST_TOKEN * longest:
                break
        return text

    def first_token(
        self, rules: str, prompt: str, *, context: int, check_cancelled: Callable[[], None] = lambda: None
    ) -> FirstToken:
        """The first token of a reply, with the log probabilities of its alternatives. Raises as `stream` does.

        Without a schema, under which the first token is a quotation mark or a bracket. With the same messages and
        `context` as `stream`, the server reuses its work on the common beginning of the prompts. For a model that
        thinks, the result is the first word after the thought, without alternatives.
        """
        if not self.room:
            options = {"longest": 1, "top_logprobs": TOP_LOGPROBS}
            text, alternatives, is_cut = "", list[tuple[str, float]](), False
            for piece in self._pieces(rules, prompt, context, check_cancelled, **options):
                text += str(piece.content)
                is_cut = is_cut or piece.response_metadata.get("done_reason") == "length"
                for entry in piece.response_metadata.get("logprobs") or ():
                    top = entry.get("top_logprobs") or [entry]
                    alternatives += [(token["token"], token["logprob"]) for token in top]
            if not (is_cut and _begins_a_thought(text)):
                return FirstToken(text, tuple(sorted(alternatives, key=lambda pair: -pair[1])[:TOP_LOGPROBS]))
            self.server.learnt[self.name] = thinking_anyway(self.thinking)
            context = max(context, self.context_for(context))
        try:
            reply = self.write(rules, prompt, context=context, longest=VERDICT_TOKENS, check_cancelled=check_cancelled)
        except ThoughtAlone:
            return FirstToken("", ())
        return FirstToken(next(iter(without_thoughts(reply).split()), ""), ())

    def _pieces(
        self, rules: str, prompt: str, context: int, check_cancelled: Callable[[], None], **options: Any
    ) -> Generator[AIMessageChunk, None, None]:
        """The pieces of a reply, with a thought in tags moved to THOUGHT.

        options: further fields of ChatRequest. Repeats the request after a transient failure, if the reply has no text
        yet; and without `think`, if the server refuses that.
        """
        from httpx import RemoteProtocolError

        cancellations: list[Exception] = []

        def check() -> None:
            try:
                check_cancelled()
            except Exception as error:
                cancellations.append(error)
                raise

        attempt = 1
        while True:
            is_empty, thinking = True, self.thinking
            splitter = ThoughtSplitter(is_begun=thinking.is_begun)
            try:
                request = ChatRequest(
                    self.name, rules, prompt, context, thinking=thinking, check_cancelled=check, **options
                )
                for piece in self.server.chat(request):
                    is_empty = is_empty and not piece.content and THOUGHT not in piece.additional_kwargs
                    yield _parted(piece, splitter)
                thought, text = splitter.end()
                if thought or text:  # the stream ended without a reason
                    yield _made(text, thought)
                if splitter.closes_unopened:
                    self.server.learnt[self.name] = Thinking(None, FULL_ROOM, is_begun=True)
                return
            except Exception as error:  # from LangChain, a client or httpx
                if error in cancellations:
                    raise
                if type(error) is ValueError:
                    # LangChain raises this for a stream without a single piece. A stopped model wrote some.
                    error = RemoteProtocolError("the stream ended before it began")
                if thinking.field is not None and refuses_thinking(error):
                    self.server.learnt[self.name] = replace(thinking, field=None)
                    continue
                if attempt == TRIES or not is_empty or not is_transient(error):
                    raise self.server.translated(error, self.name) from error
            _wait(self.first_wait_s * 2 ** (attempt - 1), check_cancelled)
            attempt += 1


def _begins_a_thought(text: str) -> bool:
    """Whether the first token of a reply belongs to a thought: a tag, or nothing if the server removed the thought."""
    return not text or text.lstrip().lower().startswith("<think")


def _parted(piece: AIMessageChunk, splitter: ThoughtSplitter) -> AIMessageChunk:
    """The piece, with the part of a thought in tags moved to THOUGHT."""
    thought, text = splitter.feed(str(piece.content))
    if piece.response_metadata.get("done_reason"):
        thought, text = (part + rest for part, rest in zip((thought, text), splitter.end(), strict=True))
    if text == piece.content:
        return piece
    known = {**piece.additional_kwargs, **({THOUGHT: thought} if thought else {})}
    return piece.model_copy(update={"content": text, "additional_kwargs": known})


def _made(text: str, thought: str = "", **metadata: str) -> AIMessageChunk:
    from langchain_core.messages import AIMessageChunk

    more = {THOUGHT: thought} if thought else {}
    return AIMessageChunk(content=text, additional_kwargs=more, response_metadata=metadata)


def _wait(seconds: float, check_cancelled: Callable[[], None]) -> None:
    end = monotonic() + seconds
    while (left := end - monotonic()) > 0:
        check_cancelled()
        sleep(min(_POLL_S, left))
    check_cancelled()
