"""Translates errors of a model server, of httpx and of LangChain's clients into Folio's errors."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass

from folio.errors import (
    CloudModel,
    ContextTooSmall,
    ModelError,
    ModelFailed,
    ModelMissing,
    ModelServerError,
    NoVector,
    ThoughtAlone,
    WrongModel,
)
from folio.models.thinking import ThinkSetting
from folio.text import one_line, shorten


@dataclass(frozen=True, slots=True)
class ServerWords:
    """How errors name a kind of server, and what a person can do about it."""

    name: str  # at the beginning of a sentence
    server: str  # with its article
    setting: str  # that has its address
    start: str  # the remedy where none answers
    busy: str  # where it is busy
    get: str  # where it does not have a model; {model}
    renew: str  # where a model gives no usable vectors; {model}
    log: str  # where to look
    fit: str  # what comes before the remedy for a prompt that is too long
    other_chat: str  # another chat model, as a clause
    other_embedder: str

    def wrong_model(self, model: str, capability: str) -> WrongModel:
        """The error for a chat model used for embedding, or the reverse."""
        if capability == "embedding":
            return WrongModel(
                f"{model} is not an embedding model, so its vectors would not say what a text is about.",
                f"S{self.other_embedder[1:]}.",
            )
        return WrongModel(f"{model} cannot write text, so it cannot answer.", f"C{self.other_chat[1:]}.")


OLLAMA = ServerWords(
    name="Ollama",
    server="an Ollama server",
    setting="OLLAMA_HOST",
    start="Start it with `ollama serve`, or set LLM=builtin and EMBEDDER=builtin to work without it.",
    busy="Wait until they are done, or set OLLAMA_NUM_PARALLEL or OLLAMA_MAX_QUEUE higher on the server.",
    get="Get it with `ollama pull {model}`.",
    renew="Update Ollama, then get the model again with `ollama pull {model}`.",
    log="the log of the Ollama server",
    fit="",
    other_chat="choose a chat model for LLM_MODEL, for example llama3.1:8b",
    other_embedder="set EMBED_MODEL to an embedding model, for example nomic-embed-text",
)
OPENAI = ServerWords(
    name="The model server",
    server="an OpenAI-compatible server",
    setting="OPENAI_BASE_URL",
    start="Start it and load a model there, or set LLM=builtin and EMBEDDER=builtin to work without it.",
    busy="Wait until they are done.",
    get="Load it there, or set LLM_MODEL or EMBED_MODEL to a model that the server lists.",
    renew="Update the server, or choose another model for EMBED_MODEL.",
    log="the log of the server",
    fit="Set OPENAI_CONTEXT to the context that the server was started with. ",
    other_chat="choose a chat model of the server for LLM_MODEL",
    other_embedder="set EMBED_MODEL to an embedding model of the server, for example nomic-embed-text",
)


class RefusedError(Exception):
    """A server's refusal that a client library hides. status_code: of the response, or IN_STREAM."""

    def __init__(self, status_code: int, error: str) -> None:
        super().__init__(error)
        self.status_code = status_code
        self.error = error


IN_STREAM = -1  # the status of an error that arrives as a line of a stream
# 500 or a line of a stream: Ollama starts a fresh runner for the next request.
_TRANSIENT = frozenset({IN_STREAM, 429, 500, 502, 503, 504})
_FROM_SERVER = frozenset({IN_STREAM, 400, 500, 503})  # another status may come from another program
_OUT_OF_MEMORY = re.compile(r"memory|runner|resource|killed", re.IGNORECASE)
# A killed runner: "an error was encountered while running the model: unexpected EOF"
_RUNNER_DIED = re.compile(r"\bEOF\b|while running the model", re.IGNORECASE)
_RUNNING = re.compile(r"^an error was encountered while running the model:\s*", re.IGNORECASE)
# The same while embedding, with status 400: 'do embedding request: Post "http://127.0.0.1:36123/embedding": EOF'
_RUNNER_LOST = re.compile(r"^do embedding request:", re.IGNORECASE)
# A 500 that the same request always gets: a bad schema in `format`, an option of another type
_BAD_REQUEST = re.compile(r"^invalid (?:JSON schema|format)|must be of type", re.IGNORECASE)
# A 500 for a vector that JSON cannot hold: "failed to encode response: json: unsupported value: NaN"
_NO_VECTOR = re.compile(r"unsupported value: [+-]?(?:NaN|Inf)", re.IGNORECASE)
# "x" does not support thinking; invalid think value: ...; cannot unmarshal string into ... ChatRequest.think
_THINK_REFUSED = re.compile(r"\bthink(?:ing)?\b|chat_template_kwargs|reasoning_effort", re.IGNORECASE)
# "exceeds the available context size", "maximum context length is 2048 tokens", "context_length_exceeded"; of a text
# to embed "input is too large to process. increase the physical batch size"
_CONTEXT_EXCEEDED = re.compile(r"context[ _](?:length|size|window)|input .{0,40}too (?:large|long)", re.IGNORECASE)
# llama.cpp's two servers, and a server without the model
_NO_EMBEDDER = re.compile(r"not support embeddings|embedding=True", re.IGNORECASE)


def translate(error: Exception, model: str, url: str, words: ServerWords = OLLAMA) -> ModelError:
    """Folio's error for an error of httpx, or of a client, in a call of a model."""
    import httpx

    if isinstance(error, ModelError):
        return error
    if refusal := refusal_of(error):
        return _from_status(*refusal, model, url, words)
    if isinstance(error, httpx.ReadTimeout | httpx.WriteTimeout | httpx.PoolTimeout):
        return ModelServerError(
            f"{words.name} at {url} was silent for too long while working with {model}.",
            "Try again when the computer is less busy, set OLLAMA_TIMEOUT_S higher, or choose a smaller model.",
        )
    # The Ollama client turns a refused connection into ConnectionError, except when it streams.
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout) or type(error) is ConnectionError:
        return not_listening(url, words)
    if isinstance(error, httpx.TransportError | ConnectionError):
        return broke_off(model, url, words)
    if isinstance(error, ValueError | TypeError | LookupError | AttributeError | RecursionError):
        # Broken JSON, nested too deep or of another shape: the clients do not check replies.
        return ModelServerError(
            f"{url} did not answer like {words.server} when called for {model}.",
            f"Check that {words.setting} points to {_bare(words)}, and that it is up to date.",
        )
    return ModelServerError(
        f"The call to {_within(words)} at {url} for {model} failed: {type(error).__name__}: {server_message(error)}.",
        f"Look at {words.log}, then try again.",
    )


def _within(words: ServerWords) -> str:
    """The server's name within a sentence."""
    return words.name.replace("The ", "the ", 1)


def _bare(words: ServerWords) -> str:
    return "Ollama" if words is OLLAMA else words.server


def not_listening(url: str, words: ServerWords = OLLAMA) -> ModelServerError:
    kind = words.server.partition(" ")[2]
    return ModelServerError(f"No {kind} answers at {url}.", words.start)


def not_a_server(sent: str, url: str, words: ServerWords = OLLAMA) -> ModelServerError:
    """The error for a reply that no such server sends. sent: the reply, "a line of more than 1 MB"."""
    return ModelServerError(
        f"What answers at {url} cannot be {words.server}: it sent {sent}.",
        f"Check that {words.setting} points to {_bare(words)}.",
    )


def broke_off(model: str, url: str, words: ServerWords = OLLAMA) -> ModelFailed:
    """The error for an answer whose connection ended early."""
    return ModelFailed(
        f"{words.name} at {url} broke off in the middle of an answer from {model}.",
        f"Try again; if it happens again, look at {words.log}.",
    )


def is_transient(error: Exception) -> bool:
    """Whether the same call may succeed a moment later.

    True if the server is restarting, is busy, or lost its runner, also in the middle of a stream. False if it was
    silent for the whole timeout, the request is wrong, or the answer cannot be read.
    """
    import httpx

    if refusal := refusal_of(error):
        status, text = refusal
        may_pass = status in _TRANSIENT or (status == 400 and _RUNNER_LOST.search(text) is not None)
        return may_pass and not any(always.search(text) for always in (_CONTEXT_EXCEEDED, _BAD_REQUEST, _NO_VECTOR))
    return isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError | httpx.ConnectTimeout | ConnectionError)


def refuses_thinking(error: Exception) -> bool:
    """Whether a server refused a request because of its `think`, or of the other APIs' fields for it."""
    refusal = refusal_of(error)
    return refusal is not None and refusal[0] in (400, 422) and bool(_THINK_REFUSED.search(refusal[1]))


def thought_alone(
    model: str, spent: int | None, less: ThinkSetting | None, words: ServerWords = OLLAMA
) -> ThoughtAlone:
    """The error for a reply with only a thought. spent: its limit of tokens, if it reached that. less: see Thinking."""
    example = ", for example llama3.1:8b" if words is OLLAMA else ""
    other = f"choose a model for LLM_MODEL that does not think{example}"
    return ThoughtAlone(
        f"{model} only thought, and ended without an answer."
        if spent is None
        else f"{model} only thought: {spent:,} tokens were spent before it wrote an answer.",
        f"Set THINK={less}, or {other}." if less else f"C{other[1:]}.",
    )


def _from_status(status: int, text: str, model: str, url: str, words: ServerWords) -> ModelError:
    """status: of the HTTP response, or IN_STREAM."""
    reason = server_message(_RUNNING.sub("", text))
    at = f"{words.name} at {url}"
    if exceeds_context(text):
        return ContextTooSmall(
            f"The text is longer than the context of {model}: {reason}.",
            f"{words.fit}Set CONTEXT_TOKENS lower, or choose a model with a larger context.",
        )
    if status == 404 and "model" in text:
        return model_missing(model, url, words)
    if status in (401, 403):
        return ModelServerError(f"{at} refused the key: {reason}.", "Set OPENAI_API_KEY to one that the server takes.")
    if 300 <= status < 400:
        return ModelServerError(
            f"{url} redirects to another address, and Folio contacts only the configured host.",
            f"Set {words.setting} to the address of the server itself.",
        )
    if status in (429, 503):
        return ModelFailed(f"{at} is busy with other requests.", words.busy)
    if _NO_VECTOR.search(text):
        return NoVector(
            f"{model} on {_within(words)} at {url} has no vector for a text: {reason}.", words.renew.format(model=model)
        )
    if _NO_EMBEDDER.search(text):
        return words.wrong_model(model, "embedding")
    if (status in (IN_STREAM, 500) and _RUNNER_DIED.search(text)) or (status == 400 and _RUNNER_LOST.search(text)):
        return ModelFailed(
            f"{words.name} stopped while it was running {model}: {reason}.",
            "Try again; if it happens again, close other programs to free memory, or choose a smaller model.",
        )
    if status in (IN_STREAM, 500) and _OUT_OF_MEMORY.search(text):
        return ModelFailed(
            f"{words.name} could not keep {model} running: {reason}.",
            "Close other programs to free memory, or choose a smaller model.",
        )
    return _other_status(status, text, f"for {model}: {reason}", at, words)


def _other_status(status: int, text: str, why: str, at: str, words: ServerWords) -> ModelServerError:
    happened = f"{at} {f'responded with status {status}' if status > 0 else 'reported an error'} {why}."
    look = f"look at {words.log}"
    if status in (IN_STREAM, 500) and not _BAD_REQUEST.search(text):
        return ModelFailed(happened, f"Try again; if it happens again, {look}.")
    if status in _FROM_SERVER:
        return ModelServerError(happened, f"{look.capitalize()}, and update it if it is old.")
    return ModelServerError(happened, f"Check that {words.setting} points to {_bare(words)}, and {look}.")


def refusal_of(error: Exception) -> tuple[int, str] | None:
    """The status and message of a server's refusal; None for other errors.

    In httpx's HTTPStatusError, ollama's ResponseError, openai's APIStatusError and RefusedError.
    """
    source = getattr(error, "response", error)
    status = getattr(source, "status_code", None)
    if not isinstance(status, int):
        return None
    text = str(getattr(source, "text", None) or getattr(source, "error", ""))
    with suppress(ValueError, LookupError, TypeError):  # plain text instead of JSON
        told = json.loads(text)["error"]
        text = str(told["message"] if isinstance(told, dict) else told)
    return status, text


def exceeds_context(text: str) -> bool:
    """Whether a server says that a text is too long."""
    return _CONTEXT_EXCEEDED.search(text) is not None


def server_message(text: object) -> str:
    """A server's message as part of a sentence: one line, at most 160 characters, no full stop."""
    return shorten(one_line(str(text)).rstrip("."), 160) or "no reason given"


def model_missing(model: str, url: str, words: ServerWords = OLLAMA, listed: tuple[str, ...] = ()) -> ModelMissing:
    """listed: names of models that the server has, to choose from."""
    names = f" It has {', '.join(server_message(name) for name in listed)}." if listed else ""
    return ModelMissing(
        f"{words.name} at {url} does not have the model {model}.{names}", words.get.format(model=model)
    )


def cloud_model(model: str, host: str) -> CloudModel:
    return CloudModel(
        f"{model} is a cloud model: Ollama would send the papers' text to another computer ({host}).",
        "Choose a model that Ollama runs itself, for example llama3.1:8b or nomic-embed-text.",
    )
