"""Translates errors of an Ollama server, of httpx and of langchain-ollama into Folio's errors."""

from __future__ import annotations

import json
import re
from contextlib import suppress

from folio.errors import (
    CloudModel,
    ContextTooSmall,
    ModelError,
    ModelFailed,
    ModelMissing,
    NoVector,
    OllamaError,
    ThoughtAlone,
    WrongModel,
)
from folio.models.thinking import ThinkSetting
from folio.text import one_line, shorten

IN_STREAM = -1  # the status of an error that arrives as a line of a stream
# 500 or a line of a stream: Ollama starts a fresh runner for the next request.
_TRANSIENT = frozenset({IN_STREAM, 429, 500, 502, 503, 504})
_FROM_OLLAMA = frozenset({IN_STREAM, 400, 500, 503})  # another status may come from another program
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
_THINK_REFUSED = re.compile(r"\bthink(?:ing)?\b", re.IGNORECASE)
_CONTEXT_EXCEEDED = re.compile(r"context (length|size|window)", re.IGNORECASE)


def translate(error: Exception, model: str, url: str) -> ModelError:
    """Folio's error for an error of httpx, ollama or langchain-ollama in a call of a model."""
    import httpx

    if isinstance(error, ModelError):
        return error
    if refusal := _refusal(error):
        return _from_status(*refusal, model, url)
    if isinstance(error, httpx.ReadTimeout | httpx.WriteTimeout | httpx.PoolTimeout):
        return OllamaError(
            f"Ollama at {url} was silent for too long while working with {model}.",
            "Try again when the computer is less busy, set OLLAMA_TIMEOUT_S higher, or choose a smaller model.",
        )
    # The Ollama client turns a refused connection into ConnectionError, except when it streams.
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout) or type(error) is ConnectionError:
        return not_listening(url)
    if isinstance(error, httpx.TransportError | ConnectionError):
        return broke_off(model, url)
    if isinstance(error, ValueError | TypeError | LookupError | AttributeError | RecursionError):
        # Broken JSON, nested too deep or of another shape: the Ollama client does not check replies.
        return OllamaError(
            f"{url} did not answer like an Ollama server when called for {model}.",
            "Check that OLLAMA_HOST points to Ollama, and that Ollama is up to date.",
        )
    return OllamaError(
        f"The call to Ollama at {url} for {model} failed: {type(error).__name__}: {server_message(error)}.",
        "Look at the log of the Ollama server, then try again.",
    )


def not_listening(url: str) -> OllamaError:
    return OllamaError(
        f"No Ollama server answers at {url}.",
        "Start it with `ollama serve`, or set LLM=builtin and EMBEDDER=builtin to work without it.",
    )


def not_ollama(sent: str, url: str) -> OllamaError:
    """The error for a reply that no Ollama server sends. sent: the reply, "a line of more than 1 MB"."""
    return OllamaError(
        f"What answers at {url} cannot be an Ollama server: it sent {sent}.", "Check that OLLAMA_HOST points to Ollama."
    )


def broke_off(model: str, url: str) -> ModelFailed:
    """The error for an answer whose connection ended early."""
    return ModelFailed(
        f"Ollama at {url} broke off in the middle of an answer from {model}.",
        "Try again; if it happens again, look at the log of the Ollama server.",
    )


def is_transient(error: Exception) -> bool:
    """Whether the same call may succeed a moment later.

    True if the server is restarting, is busy, or lost its runner, also in the middle of a stream. False if it was
    silent for the whole timeout, the request is wrong, or the answer cannot be read.
    """
    import httpx

    if refusal := _refusal(error):
        status, text = refusal
        may_pass = status in _TRANSIENT or (status == 400 and _RUNNER_LOST.search(text) is not None)
        return may_pass and not any(always.search(text) for always in (_CONTEXT_EXCEEDED, _BAD_REQUEST, _NO_VECTOR))
    return isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError | httpx.ConnectTimeout | ConnectionError)


def refuses_thinking(error: Exception) -> bool:
    """Whether a server refused a request because of its `think`."""
    refusal = _refusal(error)
    return refusal is not None and refusal[0] == 400 and bool(_THINK_REFUSED.search(refusal[1]))


def thought_alone(model: str, spent: int | None, less: ThinkSetting | None) -> ThoughtAlone:
    """The error for a reply with only a thought. spent: its limit of tokens, if it reached that. less: see Thinking."""
    other = "choose a model for LLM_MODEL that does not think, for example llama3.1:8b"
    return ThoughtAlone(
        f"{model} only thought, and ended without an answer."
        if spent is None
        else f"{model} only thought: {spent:,} tokens were spent before it wrote an answer.",
        f"Set THINK={less}, or {other}." if less else f"C{other[1:]}.",
    )


def _from_status(status: int, text: str, model: str, url: str) -> ModelError:
    """status: of the HTTP response, or IN_STREAM."""
    reason = server_message(_RUNNING.sub("", text))
    if _CONTEXT_EXCEEDED.search(text):
        return ContextTooSmall(
            f"The text is longer than the context of {model}: {reason}.",
            "Set CONTEXT_TOKENS lower, or choose a model with a larger context.",
        )
    if status == 404 and "model" in text:
        return model_missing(model, url)
    if 300 <= status < 400:
        return OllamaError(
            f"{url} redirects to another address, and Folio contacts only the configured host.",
            "Set OLLAMA_HOST to the address of the Ollama server itself.",
        )
    if status == 503:
        return ModelFailed(
            f"Ollama at {url} is busy with other requests.",
            "Wait until they are done, or set OLLAMA_NUM_PARALLEL or OLLAMA_MAX_QUEUE higher on the server.",
        )
    if _NO_VECTOR.search(text):
        return NoVector(
            f"{model} on Ollama at {url} has no vector for a text: {reason}.",
            f"Update Ollama, then get the model again with `ollama pull {model}`.",
        )
    if (status in (IN_STREAM, 500) and _RUNNER_DIED.search(text)) or (status == 400 and _RUNNER_LOST.search(text)):
        return ModelFailed(
            f"Ollama stopped while it was running {model}: {reason}.",
            "Try again; if it happens again, close other programs to free memory, or choose a smaller model.",
        )
    if status in (IN_STREAM, 500) and _OUT_OF_MEMORY.search(text):
        return ModelFailed(
            f"Ollama could not keep {model} running: {reason}.",
            "Close other programs to free memory, or choose a smaller model.",
        )
    answered = f"responded with status {status}" if status > 0 else "reported an error"
    happened = f"Ollama at {url} {answered} for {model}: {reason}."
    look = "look at the log of the Ollama server"
    if status in (IN_STREAM, 500) and not _BAD_REQUEST.search(text):
        return ModelFailed(happened, f"Try again; if it happens again, {look}.")
    if status in _FROM_OLLAMA:
        return OllamaError(happened, f"{look.capitalize()}, and update Ollama if it is old.")
    return OllamaError(happened, f"Check that OLLAMA_HOST points to Ollama, and {look}.")


def _refusal(error: Exception) -> tuple[int, str] | None:
    """The status and message in httpx's HTTPStatusError or ollama's ResponseError; None for other errors."""
    source = getattr(error, "response", error)
    status = getattr(source, "status_code", None)
    if not isinstance(status, int):
        return None
    text = str(getattr(source, "text", None) or getattr(source, "error", ""))
    with suppress(ValueError, LookupError, TypeError):  # plain text instead of JSON
        text = str(json.loads(text)["error"])
    return status, text


def server_message(text: object) -> str:
    """A server's message as part of a sentence: one line, at most 160 characters, no full stop."""
    return shorten(one_line(str(text)).rstrip("."), 160) or "no reason given"


def model_missing(model: str, url: str) -> ModelMissing:
    return ModelMissing(f"Ollama at {url} does not have the model {model}.", f"Get it with `ollama pull {model}`.")


def wrong_model(model: str, capability: str) -> WrongModel:
    if capability == "embedding":
        return WrongModel(
            f"{model} is not an embedding model, so its vectors would not say what a text is about.",
            "Set EMBED_MODEL to an embedding model, for example nomic-embed-text.",
        )
    return WrongModel(
        f"{model} cannot write text, so it cannot answer.",
        "Choose a chat model for LLM_MODEL, for example llama3.1:8b.",
    )


def cloud_model(model: str, host: str) -> CloudModel:
    return CloudModel(
        f"{model} is a cloud model: Ollama would send the papers' text to another computer ({host}).",
        "Choose a model that Ollama runs itself, for example llama3.1:8b or nomic-embed-text.",
    )
