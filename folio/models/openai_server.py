"""A server with OpenAI's API: LM Studio, llama.cpp, vLLM, LocalAI, Jan. Chat uses langchain-openai.

The API tells little about a model and has no field for a context size. So each server is asked in its own ways, and
what it refuses (a schema, log probabilities) is left out from then on. Many cut a prompt that is too long and say
nothing: prompts are counted before they are sent, and compared with what the server says it read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from folio.errors import ContextTooSmall, ModelError, ModelMissing, UsageError
from folio.models import model_server
from folio.models.model_server import (
    CONNECT_S,
    CONTEXT_SIZES,
    PROBE,
    TEMPLATE_TOKENS,
    THOUGHT,
    Capability,
    ChatRequest,
    ModelInfo,
    ModelServer,
    is_cloud,
    length_of,
    require_allowed,
)
from folio.models.server_embedder import known_prefixes
from folio.models.server_errors import (
    IN_STREAM,
    OPENAI,
    RefusedError,
    ServerWords,
    exceeds_context,
    model_missing,
    refusal_of,
    refuses_thinking,
)
from folio.models.thinking import CAPABILITY, Thinking, thinking_of
from folio.system.network import without_client_settings
from folio.text import estimate_tokens

if TYPE_CHECKING:
    import httpx
    from langchain_core.messages import AIMessageChunk
    from langchain_openai.chat_models.base import BaseChatOpenAI

DEFAULT_PORT = 1234
NO_KEY = "none"  # sent to a server without a key: its client insists on one
# The share of a prompt's tokens, or of its words where they are not counted, that a server must have read. Below it,
# the server has cut the prompt: a tokenizer has at least one token for each word.
LEAST_READ = 0.9
MOST_NAMED = 8  # models in an error
# A text whose vector tells an embedding model from others, and how many of its numbers are kept
PROBE_TEXT = "Glaciers in the Alps have lost a third of their volume since the turn of the century."
PROBE_NUMBERS = 32
_SCHEMA_WORDS = re.compile(r"response_format|json_schema|json_object|schema|grammar", re.I)
_LOGPROB_WORDS = re.compile(r"logprob", re.I)
_USAGE_WORDS = re.compile(r"stream_options|include_usage", re.I)
_PENALTY_WORDS = re.compile(r"repeat_penalty", re.I)
_NAMED = (_SCHEMA_WORDS, _LOGPROB_WORDS, _USAGE_WORDS, _PENALTY_WORDS)
_MAX_CONTEXT = re.compile(r"(?:maximum|available) context (?:length|size)\D{0,24}(\d+)", re.I)
_EMBEDS = re.compile(r"embed|\bgte-|\bbge-|(?<![a-z])e5-|minilm", re.I)
# What a server may refuse of a request; a server that refuses all of it is asked for nothing but text
_REFUSES = frozenset({400, 415, 422, 500, 501})


def server_url(address: str, *, allow_remote: bool, setting: str = "OPENAI_BASE_URL") -> str:
    """A setting as a URL, /v1 included. Raises UsageError, also for another computer unless that is allowed."""
    url = model_server.base_url(address, setting, DEFAULT_PORT)
    require_allowed(url, setting, allow_remote=allow_remote)
    return url if "/" in url.partition("://")[2] else f"{url}/v1"


@dataclass(frozen=True, slots=True)
class Ways:
    """What a server takes for one model. The first way is tried until the server refuses it."""

    schema: tuple[str, ...] = ("json_schema", "json_object")  # kinds of response_format; () for none
    logprobs: tuple[int, ...] = (20, 5)  # alternatives that may be asked for; () for none
    usage: bool = True  # whether a stream may be asked for the number of tokens read
    # Whether the field is taken that switches off llama.cpp's and LM Studio's penalty on words that were said before,
    # which spoils copies
    penalty: bool = True

    def fewer(self, request: ChatRequest, text: str) -> Ways | None:
        """Without what was refused in these words, or else without one thing that was asked for; None for nothing."""
        can = {
            _PENALTY_WORDS: replace(self, penalty=False) if self.penalty else None,
            _USAGE_WORDS: replace(self, usage=False) if self.usage else None,
            _LOGPROB_WORDS: replace(self, logprobs=self.logprobs[1:])
            if self.logprobs and request.top_logprobs
            else None,
            _SCHEMA_WORDS: replace(self, schema=self.schema[1:]) if self.schema and request.shape else None,
        }
        named = [fewer for words, fewer in can.items() if fewer and words.search(text)]
        return next(iter([*named, *filter(None, can.values())]), None)

    def body(self, request: ChatRequest) -> dict[str, Any]:
        """The fields of a request that a server may refuse."""
        fields: dict[str, Any] = {}
        if request.shape and self.schema:
            if self.schema[0] == "json_schema":
                named = {"name": "reply", "strict": True, "schema": request.shape}
                fields["response_format"] = {"type": "json_schema", "json_schema": named}
            else:
                fields["response_format"] = {"type": "json_object", "schema": request.shape}
        if request.top_logprobs and self.logprobs:
            fields |= {"logprobs": True, "top_logprobs": min(request.top_logprobs, self.logprobs[0])}
        if self.penalty:
            fields["repeat_penalty"] = 1.0
        if self.usage:
            fields["stream_options"] = {"include_usage": True}
        return fields | _thinking_fields(request.thinking)


@dataclass(frozen=True)
class OpenAIServer(ModelServer):
    """An OpenAI-compatible server.

    key: sent with each request; "" for none. context: tokens that its models take, as the settings say; 0 to ask.
    """

    key: str = ""
    context: int = 0
    # Model -> what the server takes, and how it counts tokens: a path and the field for the text; None if it does not
    ways: dict[str, Ways] = field(default_factory=dict, compare=False, repr=False)
    counters: dict[str, tuple[str, str] | None] = field(default_factory=dict, compare=False, repr=False)
    # Model -> its context in tokens, as the server said when it refused a longer prompt
    limits: dict[str, int] = field(default_factory=dict, compare=False, repr=False)

    @property
    def words(self) -> ServerWords:
        return OPENAI

    @property
    def kind(self) -> str:
        return "openai"

    @property
    def label(self) -> str:
        return self.url.partition("://")[2].partition("/")[0]

    @property
    def root(self) -> str:
        """The URL before /v1, where servers have what is not OpenAI's."""
        return self.url.removesuffix("/v1")

    # What the server says

    def version(self) -> str | None:
        """The server's program, as far as it can be told; None if no server answers."""
        try:
            self.models()
        except ModelError:
            return None
        if props := self._told("GET", "/props"):
            return f"llama.cpp {props.get('build_info', '')}".strip()
        if self._told("GET", "/api/v0/models"):
            return "LM Studio"
        if told := self._told("GET", "/version"):
            return f"vLLM {told.get('version', '')}".strip()
        if self._counted("", "a", "/extras/tokenize/count", "input"):
            return "llama-cpp-python"
        return "a server with OpenAI's API"

    def models(self) -> dict[str, str]:
        """The digest of what the server says of every model, by name. Raises ModelServerError, UsageError."""
        return {name: _digest(entry) for name, entry in self._listed().items()}

    def _listed(self) -> dict[str, dict[str, Any]]:
        """What /v1/models says of every model, by name. Raises ModelServerError, and UsageError for an Ollama."""
        self._require_listening()
        with self.errors("the list of models"):
            listed = self._json("GET", f"{self.url}/models")["data"]
            models = {str(entry["id"]): dict(entry) for entry in listed}
        if any(entry.get("owned_by") == "library" for entry in models.values()) and self._is_ollama():
            raise UsageError(
                f"{self.url} is an Ollama server, which cuts prompts here without a word.",
                f"Set LLM=ollama or EMBEDDER=ollama, and OLLAMA_HOST={self.label}.",
            )
        return models

    def _is_ollama(self) -> bool:
        told = self._told("GET", "/api/version")
        return bool(told and "version" in told) and not self._told("GET", "/props")

    def chat_models(self) -> list[str]:
        """The names of its chat models, sorted, without cloud models. Raises ModelServerError.

        LM Studio says which models embed. Elsewhere the names decide.
        """
        return self._models_for("completion")

    def only_model(self, capability: Capability) -> str:
        """See ModelServer."""
        names = self._models_for(capability)
        if len(names) == 1:
            return names[0]
        kind, setting = ("chat", "LLM_MODEL") if capability == "completion" else ("embedding", "EMBED_MODEL")
        listed = f": {', '.join(names[:MOST_NAMED])}" if names else ""
        raise ModelMissing(
            f"{self.words.name} at {self.url} has {len(names) or 'no'} {kind} model{'s' if names else ''}{listed}.",
            f"Set {setting} to one of them." if names else f"Load one there, or set {setting} to its name.",
        )

    def _models_for(self, capability: Capability) -> list[str]:
        kinds = self._kinds()
        wants = capability == "embedding"
        names = [name for name in self._listed() if not is_cloud(name)]
        return sorted(name for name in names if _is_embedder(name, kinds.get(name)) == wants)

    def _kinds(self) -> dict[str, str]:
        """LM Studio's "llm", "vlm" or "embeddings" by name; {} of other servers."""
        told = self._told("GET", "/api/v0/models")
        listed = told.get("data") if told else None
        entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
        return {str(entry.get("id")): str(entry.get("type")) for entry in entries}

    def resolve(self, model: str) -> tuple[str, dict[str, Any]]:
        """A model's name on the server, and what the list says of it.

        Case is ignored, and so are the folder and the ending of a file. Raises ModelServerError, ModelMissing.
        """
        models = self._listed()
        for fold in (str, str.casefold, _stem):
            found = [name for name in models if fold(name) == fold(model)]
            if len(found) == 1:
                return found[0], models[found[0]]
        raise model_missing(model, self.url, OPENAI, tuple(sorted(models)[:MOST_NAMED]))

    def describe(self, model: str) -> ModelInfo:
        """What the server tells of a model, in the ways of llama.cpp, vLLM and LM Studio. Raises as `resolve`."""
        name, entry = self.resolve(model)
        props = self._told("GET", "/props") or {}
        studio = self._told("GET", f"/api/v0/models/{quote(name)}") or {}
        meta = _mapping(entry.get("meta"))
        told = (
            length_of(_mapping(props.get("default_generation_settings")).get("n_ctx"))  # llama.cpp: of each slot
            or length_of(entry.get("max_model_len"))  # vLLM
            or length_of(studio.get("loaded_context_length"))
            or length_of(meta.get("n_ctx"))
        )
        context = min(filter(None, (self.context, told, self.limits.get(name))), default=None)
        self.contexts[name] = context or CONTEXT_SIZES[0]
        kind = studio.get("type")
        can: Capability = "embedding" if _is_embedder(name, kind) else "completion"
        # The settings decide what may embed where only a name speaks against it.
        capabilities = frozenset({can}) if kind or can == "embedding" else None
        facts = {"listed": entry, "path": props.get("model_path"), **{key: studio.get(key) for key in _STUDIO_FACTS}}
        return ModelInfo(
            name=name,
            digest=_digest(facts),
            context_length=context,
            embedding_length=None,
            remote="",
            capabilities=capabilities,
            thinking=thinking_of(self.think, name, "", frozenset({CAPABILITY})),
        )

    def loaded_context(self, name: str) -> int:
        """The only context that there is."""
        return self.contexts.get(name, 0)

    def count_tokens(self, model: str, text: str) -> int | None:
        """The tokens of a text, by llama.cpp's, vLLM's or LocalAI's tokenizer; None from other servers."""
        if model in self.counters:
            counter = self.counters[model]
            return self._counted(model, text, *counter) if counter else None
        for path, name in _COUNTERS:
            count = self._counted(model, text, path, name)
            if count is not None:
                self.counters[model] = (path, name)
                return count
        self.counters[model] = None
        return None

    def _counted(self, model: str, text: str, path: str, name: str) -> int | None:
        told = self._told("POST", path, {"model": model, name: text}) or {}
        tokens = told.get("tokens")
        return length_of(told.get("count")) or (len(tokens) if isinstance(tokens, list) and tokens else None)

    def _told(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """A JSON object from a path that not every server has; None without one."""
        try:
            with self.errors(path):
                told = self._json(method, f"{self.root}{path}", body, wait_s=PROBE)
        except ModelError:
            return None
        return told if isinstance(told, dict) and "error" not in told else None

    def _kwargs(self, read_s: float, connect_s: float) -> dict[str, Any]:
        return client_kwargs(self.key, read_s, connect_s)

    # Chat

    def chat(self, request: ChatRequest) -> Iterator[AIMessageChunk]:
        """See ModelServer. Raises RefusedError, errors of httpx, and ContextTooSmall for a prompt that is too long.

        What the server refuses is left out, now and later.
        """
        tokens, left = self._require_fitting(request)
        request = replace(request, longest=min(request.longest, left))  # vLLM refuses to write beyond the context
        ways, first = self.ways.get(request.model, Ways()), None
        while True:
            pieces = self._pieces(request, ways, tokens)
            try:
                begun = _beginning(pieces)
            except ValueError as error:
                if type(error) is ValueError:  # LangChain's, for a stream without a single piece
                    self._require_reason(request)
                raise
            except RefusedError as refused:
                first = first or refused
                fewer = None if self._is_final(request.model, refused) else ways.fewer(request, refused.error)
                if fewer is None:
                    raise first from refused
                ways = fewer
                continue
            self.ways[request.model] = ways
            yield from begun
            yield from pieces
            return

    def _is_final(self, model: str, refused: RefusedError) -> bool:
        """Whether a request would fail without a schema and log probabilities, too."""
        if exceeds_context(refused.error):
            if most := _MAX_CONTEXT.search(refused.error):
                self.limits[model] = int(most[1])
            return True
        if any(words.search(refused.error) for words in _NAMED):
            return refused.status_code not in _REFUSES | {IN_STREAM}
        return refused.status_code not in _REFUSES - {500} or refuses_thinking(refused)

    def _require_fitting(self, request: ChatRequest) -> tuple[int | None, int]:
        """The tokens of a prompt as the server counts them, if it does, and those left for the reply.

        Raises ContextTooSmall.
        """
        text = f"{request.rules}\n{request.prompt}"
        estimate = estimate_tokens(text)
        room = request.context - min(request.longest, request.context // 2)
        counted = self.count_tokens(request.model, text) if estimate > room // 2 else None
        needed = (estimate if counted is None else counted) + TEMPLATE_TOKENS
        if needed > max(room, TEMPLATE_TOKENS):
            raise ContextTooSmall(
                f"The prompt has {needed:,} tokens, which leaves {request.model} no space to answer in its context of"
                f" {request.context:,}.",
                "Lower CONTEXT_TOKENS, or load the model with a longer context and set OPENAI_CONTEXT to it.",
            )
        return counted, max(1, request.context - needed)

    def _pieces(self, request: ChatRequest, ways: Ways, tokens: int | None) -> Iterator[AIMessageChunk]:
        from langchain_core.messages import HumanMessage, SystemMessage

        model = _chat_model(self, request, ways.body(request))
        messages = [*([SystemMessage(request.rules)] if request.rules else []), HumanMessage(request.prompt)]
        least = LEAST_READ * (len(f"{request.rules} {request.prompt}".split()) if tokens is None else tokens)
        try:
            for piece in model.stream(messages):
                if piece.usage_metadata and 0 < (read := piece.usage_metadata["input_tokens"]) < least:
                    raise self._was_cut(request.model, read, round(least / LEAST_READ))
                yield piece
        except Exception as error:
            source = _source(error)
            if source is error:
                raise
            raise source from error

    def _was_cut(self, model: str, read: int, sent: int) -> ContextTooSmall:
        return ContextTooSmall(
            f"{self.words.name} at {self.url} read only {read:,} of at least {sent:,} tokens that {model} was sent.",
            "Load the model with a longer context, set OPENAI_CONTEXT to its size, or lower CONTEXT_TOKENS.",
        )

    def _require_reason(self, request: ChatRequest) -> None:
        """Raise RefusedError with a server's words for a stream without a piece: llama-cpp-python has none there."""
        import httpx

        system = [{"role": "system", "content": request.rules}] if request.rules else []
        body = {
            "model": request.model,
            "max_tokens": 1,
            "messages": [*system, {"role": "user", "content": request.prompt}],
        }
        options = client_kwargs(self.key, self.timeout_s, check_cancelled=request.check_cancelled)
        with httpx.Client(**options) as client, suppress(httpx.TransportError):
            try:
                client.post(f"{self.url}/chat/completions", json=body).raise_for_status()
            except httpx.HTTPStatusError as error:
                refused = RefusedError(*(refusal_of(error) or (error.response.status_code, "")))
                self._is_final(request.model, refused)  # which remembers the context
                raise refused from error

    # Embedding

    def embed(self, model: str, texts: list[str], window: int) -> list[list[float]]:
        """See ModelServer. Raises ContextTooSmall if the server says that it read less than the texts."""
        body = {"model": model, "input": texts, "encoding_format": "float"}
        reply = self._json("POST", f"{self.url}/embeddings", body, (self.timeout_s, CONNECT_S))
        read, words = _mapping(reply.get("usage")).get("prompt_tokens"), sum(len(text.split()) for text in texts)
        if type(read) is int and 0 < read < LEAST_READ * words:
            raise ContextTooSmall(
                f"{self.words.name} at {self.url} read only {read:,} of at least {words:,} tokens sent to {model}.",
                "Set OPENAI_EMBED_CONTEXT to the tokens that the server takes, then read the papers again.",
            )
        rows = [row["embedding"] for row in sorted(reply["data"], key=lambda row: int(row.get("index", 0)))]
        if any(isinstance(row[0], list) for row in rows if isinstance(row, list) and row):
            raise OPENAI.wrong_model(model, "embedding")  # llama.cpp gives a chat model's vectors of each token
        return rows

    def identity(self, info: ModelInfo) -> dict[str, str]:
        """The beginning of the vector of a fixed text: the API tells nothing by which one model is known from another.

        fingerprint.differences compares the numbers with a tolerance: other hardware, or a quantisation that is nearly
        lossless, gives nearly the same ones.
        """
        with self.errors(info.name):
            row = np.array(self.embed(info.name, [PROBE_TEXT], 0)[0], dtype=np.float64)
            length = float(np.linalg.norm(row))
            scaled = row[:PROBE_NUMBERS] * (np.sqrt(row.size) / length if length else 0.0)
            return {"probe": " ".join(f"{number:.2f}" for number in scaled)}


# What tells one model of LM Studio from another at the same name
_STUDIO_FACTS = ("arch", "quantization", "publisher")
# Paths that count tokens, and their field for the text
_COUNTERS = (
    ("/tokenize", "content"),  # llama.cpp
    ("/tokenize", "prompt"),  # vLLM
    ("/extras/tokenize/count", "input"),  # llama-cpp-python
    ("/v1/tokenize", "content"),  # LocalAI
)


def client_kwargs(
    key: str, timeout_s: float, connect_s: float = CONNECT_S, check_cancelled: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """As model_server.client_kwargs, with the key, and without the headers by which OpenAI's client tells of itself."""
    shared = model_server.client_kwargs(OPENAI, timeout_s, connect_s, check_cancelled)

    def only_ours(request: httpx.Request) -> httpx.Request:
        for name in [name for name in request.headers if name.lower().startswith(("openai-", "x-stainless-"))]:
            del request.headers[name]
        request.headers.pop("Authorization", None)
        if key:
            request.headers["Authorization"] = f"Bearer {key}"
        return request

    return {**shared, "auth": only_ours}


def _chat_model(server: OpenAIServer, request: ChatRequest, body: dict[str, Any]) -> BaseChatOpenAI:
    import httpx

    options = client_kwargs(server.key, server.timeout_s, check_cancelled=request.check_cancelled)
    with without_client_settings():
        return _chat_class()(
            model=request.model,
            base_url=server.url,
            api_key=server.key or NO_KEY,  # type: ignore[arg-type]
            temperature=0,
            max_tokens=request.longest,
            max_retries=0,
            use_responses_api=False,
            output_version="v0",
            stream_chunk_timeout=None,
            extra_body=body,
            timeout=options["timeout"],
            http_client=httpx.Client(**options),
            async_client=_NO_CLIENT,
        )


_NO_CLIENT = object()  # in place of one that would never be used


@cache
def _chat_class() -> type[BaseChatOpenAI]:
    """LangChain's class, whose pieces have Ollama's names for how a reply ended, and the thought.

    ChatOpenAI would send `max_completion_tokens`, which many servers ignore.
    """
    with without_client_settings():
        from langchain_core.messages import AIMessageChunk
        from langchain_core.outputs import ChatGenerationChunk
        from langchain_openai.chat_models.base import BaseChatOpenAI

    class LocalChat(BaseChatOpenAI):
        def _convert_chunk_to_generation_chunk(
            self, chunk: dict[str, Any], default_chunk_class: type, base_generation_info: dict[str, Any] | None
        ) -> ChatGenerationChunk | None:
            choice = next(iter(chunk.get("choices") or ()), None) or {}
            delta, reason = _mapping(choice.get("delta")), choice.get("finish_reason")
            thought = delta.get("reasoning_content") or delta.get("reasoning")
            usage = _mapping(chunk.get("usage"))
            read, written = length_of(usage.get("prompt_tokens")) or 0, length_of(usage.get("completion_tokens")) or 0
            metadata: dict[str, Any] = {"done_reason": "length" if reason == "length" else "stop"} if reason else {}
            if logprobs := _mapping(choice.get("logprobs")).get("content"):
                metadata["logprobs"] = logprobs
            message = AIMessageChunk(
                content=str(delta.get("content") or ""),
                additional_kwargs={THOUGHT: str(thought)} if thought else {},
                response_metadata=metadata,
                usage_metadata={"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
                if read
                else None,
            )
            return ChatGenerationChunk(message=message)

    return LocalChat


def _beginning(pieces: Iterator[AIMessageChunk]) -> list[AIMessageChunk]:
    """The pieces up to the first that says something: before that, a server may still refuse."""
    begun: list[AIMessageChunk] = []
    for piece in pieces:
        begun.append(piece)
        if piece.content or piece.additional_kwargs or piece.response_metadata:
            break
    return begun


def _source(error: Exception) -> Exception:
    """The error behind those of the client: httpx's, the caller's, or RefusedError for what the server refused."""
    refused = refusal_of(error)
    if refused and _is_of_client(error):
        return RefusedError(*refused)
    if _is_of_client(error):
        cause = error.__cause__
        if isinstance(cause, Exception):
            return _source(cause)
        told = getattr(error, "body", None)
        message = told.get("message") if isinstance(told, dict) else told
        return RefusedError(IN_STREAM, str(message or error))
    return error


def _is_of_client(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] in ("openai", "langchain_openai")


def _thinking_fields(thinking: Thinking) -> dict[str, Any]:
    """How a model is told to think or not: llama.cpp, vLLM and SGLang pass the first on to the template."""
    match thinking.field:
        case None:
            return {}
        case False:
            return {"chat_template_kwargs": {"enable_thinking": False}}
        case True:
            return {"chat_template_kwargs": {"enable_thinking": True}}
    level = thinking.field
    return {"chat_template_kwargs": {"enable_thinking": True, "reasoning_effort": level}, "reasoning_effort": level}


def _is_embedder(name: str, kind: str | None) -> bool:
    """kind: as LM Studio tells it. Otherwise the name decides."""
    if kind:
        return kind == "embeddings"
    return known_prefixes(name) is not None or _EMBEDS.search(_stem(name)) is not None


def _stem(name: str) -> str:
    """A model's name without a folder or an organisation, and without the ending of a file, in small letters."""
    return re.split(r"[\\/]", name)[-1].casefold().removesuffix(".gguf")


def _digest(facts: Mapping[str, Any]) -> str:
    lasting = {key: value for key, value in facts.items() if key not in ("created", "permission", "permissions")}
    if isinstance(listed := lasting.get("listed"), dict):
        lasting["listed"] = {key: value for key, value in listed.items() if key not in _FLEETING}
    return hashlib.sha256(json.dumps(lasting, sort_keys=True, default=str).encode()).hexdigest()


_FLEETING = ("created", "permission", "permissions", "status")


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
