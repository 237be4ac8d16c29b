"""A server of models: its address, how it is called, and what Folio asks of it, whatever its API.

ollama.py and openai_server.py have the two APIs. Chat uses LangChain's class for each, everything else the HTTP client
of ModelServer. Only the configured host is contacted. server_errors.translate translates all errors.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from folio.errors import ModelMissing, UsageError
from folio.models.server_errors import ServerWords, cloud_model, not_listening, translate
from folio.models.thinking import NO_THINKING, Thinking, ThinkSetting
from folio.system.network import is_loopback

if TYPE_CHECKING:
    import httpx
    from langchain_core.messages import AIMessageChunk

CONNECT_S = 5.0
# Seconds for a reply and to connect: for lists and descriptions, which need no loaded model; and for checking whether a
# server runs, which is slow to answer while it loads a model
METADATA, PROBE = (30.0, CONNECT_S), (5.0, 1.0)
FIRST_WAIT_S = 0.5  # before the first retry of a failed call; each further wait is twice as long
LONGEST = 2**31 - 1  # tokens; the largest count in Ollama
# Context sizes to load a model with, in tokens. Few, because Ollama reloads the model for each change. The first one is
# assumed of a model whose server does not tell its context.
CONTEXT_SIZES = (4096, 8192, 16384, 32768, 65536, 131072)
TEMPLATE_TOKENS = 64  # added around the messages by a model's chat template
# The key of the thought in the pieces of a reply, as in langchain-ollama
THOUGHT = "reasoning_content"

Capability = Literal["completion", "embedding"]


def first_wait() -> float:
    """FIRST_WAIT_S; tests set a shorter one."""
    return FIRST_WAIT_S


def base_url(host: str, setting: str, default_port: int) -> str:
    """The setting of a server's address as a URL with scheme, host and port, without a trailing slash.

    Follows Ollama's rules: the default port is `default_port`, or 80 or 443 after http:// or https://; a path is kept;
    a listening address (0.0.0.0, [::]) means this computer. Quotes and blanks around it are left out. Raises
    UsageError.
    """
    value = re.sub(r"^[\s\"'“”]+|[\s\"'“”]+$", "", host)
    if _is_ipv6(value):
        value = f"[{value}]"
    scheme, separator, rest = value.partition("://")
    if not separator:
        scheme, rest = "http", value
    scheme = scheme.lower()
    default = {"http": 80, "https": 443}.get(scheme) if separator else default_port
    try:
        split = urlsplit(f"http://{rest}")
        name, port = split.hostname or "127.0.0.1", split.port or default
    except ValueError as error:
        raise _bad_host(host, setting, default_port) from error
    if default is None or not port or "@" in split.netloc or split.query or split.fragment:
        raise _bad_host(host, setting, default_port)
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)
    if _is_ipv6(name):
        name = f"[{name}]"
    elif not re.fullmatch(r"[\w.-]+", name) or re.search(r"\s", split.path):
        raise _bad_host(host, setting, default_port)
    path = split.path.strip("/")
    return f"{scheme}://{name}:{port}" + (f"/{path}" if path else "")


def is_local(url: str) -> bool:
    """Whether a URL from `base_url` is a loopback address, so that no text leaves this computer."""
    return is_loopback(urlsplit(url).hostname or "")


def require_allowed(url: str, setting: str, *, allow_remote: bool) -> None:
    """Raise UsageError for another computer unless that is allowed."""
    if not (allow_remote or is_local(url)):
        raise UsageError(
            f"{setting} is {url}, another computer: questions and passages would be sent there.",
            f"Set ALLOW_REMOTE_OLLAMA=true to allow that, or let {setting} name a server on this computer.",
        )


def client_kwargs(
    words: ServerWords,
    timeout_s: float,
    connect_s: float = CONNECT_S,
    check_cancelled: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Arguments for httpx's client: contact only the configured host, and bound its replies.

    Only for synchronous requests. timeout_s: seconds that the server may be silent. connect_s: seconds to accept a
    connection. check_cancelled: see CancellableTransport.

    trust_env=False: no proxy, .netrc or SSL_CERT_FILE from the environment. No redirects, which the clients of Ollama
    and OpenAI follow by default. The transport keeps no connections between requests: they could become stale or stay
    open.
    """
    import httpx

    from folio.models.server_http import CancellableTransport

    return {
        "timeout": httpx.Timeout(timeout_s, connect=min(connect_s, timeout_s)),
        "trust_env": False,
        "follow_redirects": False,
        "transport": CancellableTransport(check_cancelled, words),
    }


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The server's description of a model; None for unknown values."""

    name: str  # as the server names it
    digest: str  # changes with the model; on Ollama SHA-256 of the manifest, in hex
    context_length: int | None  # tokens that the model can read
    embedding_length: int | None  # dimension of its vectors
    remote: str  # the host that runs a cloud model; "" for a local one
    num_ctx: int | None = None  # context length in its Modelfile, in tokens
    weights: str = ""  # SHA-256 of each file of weights, joined by "+"; "" if unknown
    capabilities: frozenset[str] | None = None  # "completion", "embedding", ...; None if the server does not say
    thinking: Thinking = NO_THINKING  # how to ask it to think or not


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request to a chat model, at temperature 0."""

    model: str  # its full name
    rules: str  # the system message; not sent if empty
    prompt: str
    context: int  # tokens, from ChatModel.context_for
    longest: int  # the most tokens of the reply, with its thought
    thinking: Thinking
    shape: dict[str, Any] | None = None  # a JSON Schema for the reply
    top_logprobs: int = 0  # alternatives to each token, with their log probabilities
    check_cancelled: Callable[[], None] = lambda: None  # an exception that it raises ends the request


@dataclass(frozen=True)
class ModelServer(ABC):
    """A server, and how to run models on it.

    url: from `base_url`. timeout_s: seconds that it may be silent. think: whether models that can think do so.
    """

    url: str
    timeout_s: float = 300.0
    think: ThinkSetting = "auto"
    # Model -> how to ask it to think or not, after it ignored or refused the first way; shared by all ChatModels
    learnt: dict[str, Thinking] = field(default_factory=dict, compare=False, repr=False)
    # Model -> the last chosen context in tokens, for servers that do not report loaded models
    contexts: dict[str, int] = field(default_factory=dict, compare=False, repr=False)

    @property
    @abstractmethod
    def words(self) -> ServerWords:
        """How errors name it."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """As LLM and EMBEDDER name it."""

    @property
    @abstractmethod
    def label(self) -> str:
        """What stands in brackets after a model's name, wherever a person reads it."""

    @abstractmethod
    def version(self) -> str | None:
        """The server's version; None if no such server answers."""

    @abstractmethod
    def models(self) -> dict[str, str]:
        """The digest of every model on the server, by name. Raises ModelServerError."""

    @abstractmethod
    def chat_models(self) -> list[str]:
        """The names of its chat models, sorted, without cloud models. Raises ModelServerError."""

    @abstractmethod
    def describe(self, model: str) -> ModelInfo:
        """The server's description of a model. Raises ModelServerError, ModelMissing."""

    def only_model(self, capability: Capability) -> str:
        """The name of the server's only model for this. Raises ModelServerError, and ModelMissing if there are more."""
        raise ModelMissing(f"{self.words.name} at {self.url} was asked for a model without a name.", "Name one.")

    @abstractmethod
    def loaded_context(self, name: str) -> int:
        """The context in tokens of a loaded model; 0 if the model is not loaded or the server does not say."""

    @abstractmethod
    def chat(self, request: ChatRequest) -> Iterator[AIMessageChunk]:
        """The pieces of a reply. Raises its client's errors, see `errors`.

        The metadata of one of the last pieces has "done_reason"; "stop", or "length" if the reply was cut off. Pieces
        of a thought that the server tells apart have it as THOUGHT in additional_kwargs. "logprobs", if asked for: a
        list with "token", "logprob" and "top_logprobs" of each token.
        """

    @abstractmethod
    def embed(self, model: str, texts: list[str], window: int) -> list[list[float]]:
        """The vectors of texts as the server sends them, unchecked. Raises httpx's errors, see `errors`.

        window: tokens that the model must read of each text.
        """

    @abstractmethod
    def identity(self, info: ModelInfo) -> dict[str, str]:
        """What tells this embedding model from others, for a store's fingerprint. Raises ModelError."""

    def require_local(self, model: str, capability: Capability) -> ModelInfo:
        """The description of a model that runs on the server itself and, as far as known, has this capability.

        Raises CloudModel, WrongModel, ModelServerError, ModelMissing.
        """
        refuse_cloud_name(model)
        info = self.describe(model or self.only_model(capability))
        refuse_cloud_name(info.name)
        if info.remote:
            raise cloud_model(model, info.remote)
        if info.capabilities is not None and capability not in info.capabilities:
            raise self.words.wrong_model(model or info.name, capability)
        return info

    def translated(self, error: Exception, model: str) -> Exception:
        """Folio's error for one of a call."""
        return translate(error, model, self.url, self.words)

    def _require_listening(self) -> None:
        """Raise ModelServerError if no local server listens, before importing httpx, which takes 0.1 s."""
        place = urlsplit(self.url)
        if is_local(self.url):
            try:
                address = (place.hostname or "", place.port or 0)
                socket.create_connection(address, min(CONNECT_S, self.timeout_s)).close()
            except OSError as error:
                raise not_listening(self.url, self.words) from error

    def _kwargs(self, read_s: float, connect_s: float) -> dict[str, Any]:
        return client_kwargs(self.words, read_s, connect_s)

    def _client(self, read_s: float, connect_s: float = CONNECT_S) -> httpx.Client:
        import httpx

        return httpx.Client(base_url=self.url, **self._kwargs(min(read_s, self.timeout_s), connect_s))

    def _json(
        self, method: str, path: str, body: dict[str, Any] | None = None, wait_s: tuple[float, float] = METADATA
    ) -> Any:
        """path: after the base URL, or a whole URL of the same server. wait_s: the longest time for the reply, and to
        connect."""
        with self._client(*wait_s) as client:
            return client.request(method, path, json=body).raise_for_status().json()

    @contextmanager
    def errors(self, model: str) -> Iterator[None]:
        """Raise errors of a request, or of the shape of a reply, as ModelError."""
        import httpx

        try:
            yield
        except (
            httpx.HTTPError, OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError
        ) as error:  # fmt: skip
            raise translate(error, model, self.url, self.words) from error


def is_cloud(model: str) -> bool:
    """Whether a model's name is that of one of Ollama's cloud models."""
    return model.casefold().removesuffix(":latest").endswith(("-cloud", ":cloud"))


def refuse_cloud_name(model: str) -> None:
    if is_cloud(model):
        raise cloud_model(model, "ollama.com")


def _bad_host(host: str, setting: str, port: int) -> UsageError:
    return UsageError(
        f"{setting} is {host!r}, which is not a server address.",
        f"Set it to a host, host:port or a URL without a password, for example 127.0.0.1:{port}.",
    )


def length_of(value: object) -> int | None:
    """A server's number of tokens, or of a vector's numbers; None for an impossible number."""
    return value if type(value) is int and 0 < value <= LONGEST else None


def _is_ipv6(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).version == 6
    except ValueError:
        return False
