"""A chat model on Ollama: called at temperature 0, on the configured host only, its errors translated and retried.

How a model thinks is decided here and in thinking.py, and so is the context that it is loaded with.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from folio.errors import ThoughtAlone
from folio.models.ollama import OllamaServer, client_kwargs, first_wait
from folio.models.ollama_errors import is_transient, refuses_thinking, thought_alone, translate
from folio.models.thinking import NO_THINKING, Thinking, ThoughtSplitter, although_told_not_to, without_thoughts

if TYPE_CHECKING:
    from langchain_core.messages import AIMessageChunk

# Context sizes that a model is loaded with, in tokens. Few, because the server reloads the model for each change.
CONTEXT_SIZES = (4096, 8192, 16384, 32768, 65536, 131072)
# The "done_reason" of a reply that was stopped: by the server, which closes the stream in good order but without a
# reason when a model writes the same token more than 30 times running, or by `stream`, when it writes only blanks or
# more than it may. Nothing failed, and what came before stands.
STOPPED = "stopped"
# Characters of white space after which a reply is stopped. A schema allows white space between any two tokens, and a
# small model may write nothing else. No indented code or table has as many.
MAX_BLANKS = 512
# Characters per token in prose, at most. A longer thought means that the server ignored the limit.
LONGEST_TOKEN = 8
TRIES = 3  # of one call, as long as the model has written nothing
TOP_LOGPROBS = 20  # alternatives to a token, the most that the server gives
VERDICT_TOKENS = 16  # of a reply of which only the first word counts
# Where the thought is in the pieces of a reply, as in langchain-ollama
THOUGHT = "reasoning_content"
# After so many replies of thought alone, none of them with an answer, no other is waited for.
MOST_THOUGHTS = 3
_POLL_S = 0.1  # between two calls of check_cancelled while waiting for the next try


@dataclass(frozen=True, slots=True)
class FirstToken:
    """The first token of a reply."""

    text: str  # as written, blanks included; "" if the model ended without one
    # What could have been written: (token, natural logarithm of its probability), most likely first, at most
    # TOP_LOGPROBS. Empty if the server gives none (before version 0.12.11), and behind a thought.
    alternatives: tuple[tuple[str, float], ...]


@dataclass(slots=True)
class _Received:
    """What has come of a reply so far, in characters."""

    thought: int = 0
    blanks: int = 0  # at its end
    has_words: bool = False
    is_done: bool = False
    is_cut: bool = False  # by a limit of tokens, with nothing but a thought
    prompt_tokens: int = 0

    def add(self, piece: AIMessageChunk, most: int) -> None:
        """most: the tokens that the reply may have."""
        reason, text = piece.response_metadata.get("done_reason"), str(piece.content)
        self.has_words = self.has_words or bool(text.strip())
        self.thought += len(piece.additional_kwargs.get(THOUGHT, ""))
        if piece.usage_metadata:
            self.prompt_tokens = piece.usage_metadata["input_tokens"]
        self.blanks = self.blanks + len(text) if not text.strip() else len(text) - len(text.rstrip())
        # Where nothing at all came, a server kept the thought to itself.
        is_at_limit = reason == "length" and bool(self.thought or not self.blanks)
        self.is_cut = not self.has_words and (self.thought > LONGEST_TOKEN * most or is_at_limit)
        self.is_done = self.is_done or bool(reason)

    @property
    def is_thought_alone(self) -> bool:
        return self.is_cut or (self.thought > 0 and not self.has_words)


@dataclass(slots=True)
class ChatModel:
    """One model on one server; name includes the tag. Several threads may ask it.

    first_wait_s: before the second try; doubled before the third. told: what the model is told about thinking, until
    the server refuses that or the model thinks all the same. largest: tokens of its context. usual: tokens of the
    longest prompt and its reply that are to be expected, of all that a run asks the model.
    """

    server: OllamaServer
    name: str
    first_wait_s: float = field(default_factory=first_wait)
    told: Thinking = NO_THINKING
    largest: int = CONTEXT_SIZES[0]
    usual: int = 0
    _thoughts_alone: int = 0  # replies in a row of thought alone

    @classmethod
    def open(cls, server: OllamaServer, model: str, usual: int = 0) -> ChatModel:
        """Asks the server about the model. Raises as OllamaServer.require_local does."""
        info = server.require_local(model, "completion")
        largest = info.context_length or CONTEXT_SIZES[0]
        return cls(server, info.name, told=info.thinking, largest=largest, usual=usual)

    @property
    def thinking(self) -> Thinking:
        """What the model is told now."""
        return self.server.learnt.get(self.name, self.told)

    @property
    def room(self) -> int:
        """Tokens that a reply needs for its thought."""
        return self.thinking.room

    @property
    def only_thinks(self) -> bool:
        """Whether its last replies were thought alone, and there is no hope for the next."""
        return self._thoughts_alone >= MOST_THOUGHTS

    def context_for(self, tokens: int) -> int:
        """The context length for a prompt and its reply of so many tokens, and for the thought before it.

        The one that the model is loaded with, if that is enough, for the server would load it again with any other;
        else the first of CONTEXT_SIZES that is, also for what is usual and what was chosen before. No more than the
        model has.
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
        """The model's reply, piece by piece as it arrives; one of the last two has "done_reason" in its metadata.

        The reason is "stop", "length" if the reply was cut off at `longest`, or STOPPED. Pieces of a thought come
        first, without content, the thought as THOUGHT in their additional_kwargs.

        rules: the system message; not sent if empty. context: the context length to load the model with, in tokens,
        from `context_for`. longest: the most tokens in a reply, besides its thought. shape: a JSON Schema that the
        reply must follow; some servers do not hold a model to it. check_cancelled: called often, also while the model
        loads and sends nothing; an exception that it raises ends the reply and the server's work on it.

        Raises ModelError: ModelFailed if the server answers but fails, which is tried again as long as the model has
        written nothing; ThoughtAlone if the reply has a thought and nothing else, of a model that had room for one.
        """
        while True:
            told = self.thinking
            most, received = longest + told.room, _Received()
            pieces = self._pieces(rules, prompt, context, check_cancelled, num_predict=most, format=shape)
            with closing(pieces):
                for piece in pieces:
                    received.add(piece, most)
                    if received.is_cut:
                        break
                    yield piece
                    if received.blanks > MAX_BLANKS:
                        break
            if not received.is_thought_alone:
                self._thoughts_alone = 0
                if not received.is_done:
                    yield _made("", done_reason=STOPPED)
                return
            if told.room:
                self._thoughts_alone += 1
                raise thought_alone(self.name, most if received.is_cut else None, told.less)
            # It thought although it was told not to, and had no room for that.
            self.server.learnt[self.name] = although_told_not_to(told)
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
        """The whole reply, cut off where the server ignores the limit. See `stream`."""
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
        """One token of a reply, with the log probabilities of what else it could have been. Raises as `stream` does.

        No schema: under one, the first token is a quotation mark or a bracket. The messages are those of `stream`, and
        so is the prompt, so the server reuses what it has computed for the part that both begin with, if `context`
        is the same too. Of a model that thinks first, it is the first word behind the thought, without alternatives.
        """
        if not self.room:
            options = {"num_predict": 1, "logprobs": True, "top_logprobs": TOP_LOGPROBS}
            text, alternatives, is_cut = "", list[tuple[str, float]](), False
            for piece in self._pieces(rules, prompt, context, check_cancelled, **options):
                text += str(piece.content)
                is_cut = is_cut or piece.response_metadata.get("done_reason") == "length"
                for entry in piece.response_metadata.get("logprobs") or ():
                    alternatives += [(each["token"], each["logprob"]) for each in entry.get("top_logprobs") or [entry]]
            if not (is_cut and _begins_a_thought(text)):
                return FirstToken(text, tuple(sorted(alternatives, key=lambda each: -each[1])[:TOP_LOGPROBS]))
            self.server.learnt[self.name] = although_told_not_to(self.thinking)
            context = max(context, self.context_for(context))
        try:
            said = self.write(rules, prompt, context=context, longest=VERDICT_TOKENS, check_cancelled=check_cancelled)
        except ThoughtAlone:
            return FirstToken("", ())
        return FirstToken(next(iter(without_thoughts(said).split()), ""), ())

    def _pieces(
        self, rules: str, prompt: str, context: int, check_cancelled: Callable[[], None], **options: Any
    ) -> Generator[AIMessageChunk, None, None]:
        """The pieces of a reply, a thought in tags at its beginning moved to where the server puts one that it knows.

        The reply is asked for again after a failure that may pass, if it has no text yet, and of a server that refuses
        `think`, without that.
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
            is_empty, told = True, self.thinking
            splitter = ThoughtSplitter(is_begun=told.is_begun)
            try:
                for piece in self._ask(rules, prompt, context, check, told, options):
                    is_empty = is_empty and not piece.content and THOUGHT not in piece.additional_kwargs
                    yield _parted(piece, splitter)
                thought, text = splitter.end()
                if thought or text:  # the stream ended without a reason
                    yield _made(text, thought)
                return
            except Exception as error:  # from langchain-ollama, ollama or httpx
                if error in cancellations:
                    raise
                if type(error) is ValueError:
                    # LangChain's way to say that the stream ended without a single piece. A model that was stopped
                    # wrote some.
                    error = RemoteProtocolError("the stream ended before it began")
                if told.field is not None and refuses_thinking(error):
                    self.server.learnt[self.name] = replace(told, field=None)
                    continue
                if attempt == TRIES or not is_empty or not is_transient(error):
                    raise translate(error, self.name, self.server.url) from error
            _wait(self.first_wait_s * 2 ** (attempt - 1), check_cancelled)
            attempt += 1

    def _ask(
        self,
        rules: str,
        prompt: str,
        context: int,
        check_cancelled: Callable[[], None],
        told: Thinking,
        options: dict[str, Any],
    ) -> Iterator[AIMessageChunk]:
        from langchain_core.messages import HumanMessage, SystemMessage
        from langchain_ollama import ChatOllama

        model = ChatOllama(
            model=self.name,
            base_url=self.server.url,
            temperature=0,
            num_ctx=context,
            keep_alive=self.server.keep_alive,
            reasoning=True,  # give the thought too, whatever the model is told
            client_kwargs=client_kwargs(self.server.timeout_s, check_cancelled=check_cancelled),
            **options,
        )
        messages = [*([SystemMessage(rules)] if rules else []), HumanMessage(prompt)]
        return model.stream(messages, think=told.field)


def _begins_a_thought(text: str) -> bool:
    """Whether the first token of a reply is no answer: nothing, as where the server parts the thought, or a tag."""
    return not text or text.lstrip().lower().startswith("<think")


def _parted(piece: AIMessageChunk, splitter: ThoughtSplitter) -> AIMessageChunk:
    """The piece, what it has of a thought in tags moved to where the server puts a thought that it knows."""
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
