"""The Ollama server: its address, its models, and calls to it.

Chat uses langchain-ollama (ollama_chat.py), everything else the HTTP client of OllamaServer. Both get `client_kwargs`,
so that only the configured host is contacted. ollama_errors.translate translates their errors.
"""

from __future__ import annotations

import ipaddress
import json
import re
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from folio.errors import ModelError, UsageError
from folio.models.ollama_errors import (
    broke_off,
    cloud_model,
    model_missing,
    not_listening,
    server_message,
    translate,
    wrong_model,
)
from folio.models.thinking import NO_THINKING, Thinking, ThinkSetting, thinking_of
from folio.papers.model import Progress
from folio.system.network import is_loopback

if TYPE_CHECKING:
    import httpx

DEFAULT_PORT = 11434
CONNECT_S = 5.0
# Seconds for a reply and to connect: for lists and descriptions, which need no loaded model; and for checking whether a
# server runs, which is slow to answer while it loads a model
METADATA, PROBE = (30.0, CONNECT_S), (5.0, 1.0)
FIRST_WAIT_S = 0.5  # before the first retry of a failed call; each further wait is twice as long
DESCRIBED_AT_ONCE = 8  # models
LONGEST = 2**31 - 1  # tokens; the largest count in Ollama

# Digest of a model -> whether it can chat and runs on its server. Kept by the process: the web page asks often.
_CAN_CHAT: dict[str, bool] = {}

Capability = Literal["completion", "embedding"]

# In a Modelfile: a file of the model (weights, adapters, projectors), named after the SHA-256 of its content. Comments,
# templates and licences have lines that begin with FROM too, but no line that ends like this.
_BLOB = re.compile(r'^(?:FROM|ADAPTER)\s.*sha256-([0-9a-f]{64})"?\s*$', re.MULTILINE)


def first_wait() -> float:
    """FIRST_WAIT_S; tests set a shorter one."""
    return FIRST_WAIT_S


def base_url(host: str) -> str:
    """OLLAMA_HOST as a URL with scheme, host and port, without a trailing slash.

    Follows Ollama's rules: the default port is 11434, or 80 or 443 after http:// or https://; a path is kept; a
    listening address (0.0.0.0, [::]) means this computer. Quotes and blanks around it are left out. Raises UsageError.
    """
    value = re.sub(r"^[\s\"'“”]+|[\s\"'“”]+$", "", host)
    if _is_ipv6(value):
        value = f"[{value}]"
    scheme, separator, rest = value.partition("://")
    if not separator:
        scheme, rest = "http", value
    scheme = scheme.lower()
    default = {"http": 80, "https": 443}.get(scheme) if separator else DEFAULT_PORT
    try:
        split = urlsplit(f"http://{rest}")
        name, port = split.hostname or "127.0.0.1", split.port or default
    except ValueError as error:
        raise _bad_host(host) from error
    if default is None or not port or "@" in split.netloc or split.query or split.fragment:
        raise _bad_host(host)
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)
    if _is_ipv6(name):
        name = f"[{name}]"
    elif not re.fullmatch(r"[\w.-]+", name) or re.search(r"\s", split.path):
        raise _bad_host(host)
    path = split.path.strip("/")
    return f"{scheme}://{name}:{port}" + (f"/{path}" if path else "")


def is_local(url: str) -> bool:
    """Whether a URL from `base_url` is a loopback address, so that no text leaves this computer."""
    return is_loopback(urlsplit(url).hostname or "")


def server_url(host: str, *, allow_remote: bool, setting: str = "OLLAMA_HOST") -> str:
    """A setting as a URL, like `base_url`. Raises UsageError, also for another computer unless that is allowed."""
    url = base_url(host)
    if not (allow_remote or is_local(url)):
        raise UsageError(
            f"{setting} is {url}, another computer: questions and passages would be sent there.",
            f"Set ALLOW_REMOTE_OLLAMA=true to allow that, or {setting}=127.0.0.1 to use Ollama on this computer.",
        )
    return url


def client_kwargs(
    timeout_s: float, connect_s: float = CONNECT_S, check_cancelled: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Arguments for Ollama's client and httpx's client: contact only the configured host, and bound its replies.

    Only for synchronous requests. timeout_s: seconds that the server may be silent. connect_s: seconds to accept a
    connection. check_cancelled: see CancellableTransport.

    trust_env=False: no proxy, .netrc or SSL_CERT_FILE from the environment. No redirects, which the Ollama client
    follows by default. The header keeps the client from reading OLLAMA_API_KEY, a key for ollama.com that it sends to
    any host; the auth hook removes the header, and asks the server not to truncate long texts, for which neither
    package has an option. The transport keeps no connections between requests: they could become stale or stay open.
    """
    import httpx

    from folio.models.ollama_http import CancellableTransport

    return {
        "timeout": httpx.Timeout(timeout_s, connect=min(connect_s, timeout_s)),
        "trust_env": False,
        "follow_redirects": False,
        "headers": {"Authorization": "none"},
        "auth": _adapt_request,
        "transport": CancellableTransport(check_cancelled),
    }


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The server's description of a model; None for unknown values."""

    name: str  # with the tag
    digest: str  # SHA-256 of the manifest, in hex; changes with weights, template, parameters and licence
    context_length: int | None  # tokens that the model can read
    embedding_length: int | None  # dimension of its vectors
    remote: str  # the host that runs a cloud model; "" for a local one
    num_ctx: int | None = None  # context length in its Modelfile, in tokens
    weights: str = ""  # SHA-256 of each file of weights, joined by "+"; "" if unknown
    capabilities: frozenset[str] | None = None  # "completion", "embedding", ...; None from servers before 0.6.4
    thinking: Thinking = NO_THINKING  # how to ask it to think or not


@dataclass(frozen=True)
class OllamaServer:
    """An Ollama server, and how to run models on it.

    url: from `base_url`. timeout_s: seconds that it may be silent. think: whether models that can think do so.
    keep_alive: how long a model stays loaded after a request, in seconds or in Ollama's words; None for the server's
    setting.
    """

    url: str
    timeout_s: float = 300.0
    think: ThinkSetting = "auto"
    keep_alive: str | int | None = None
    # Model -> how to ask it to think or not, after it ignored or refused the first way; shared by all ChatModels
    learnt: dict[str, Thinking] = field(default_factory=dict, compare=False, repr=False)
    # Model -> the last chosen context in tokens, for servers that do not report loaded models
    contexts: dict[str, int] = field(default_factory=dict, compare=False, repr=False)

    def version(self) -> str | None:
        """The server's version; None if no Ollama server answers."""
        try:
            with self.errors("its version"):
                version = self._json("GET", "/api/version", wait_s=PROBE)["version"]
        except ModelError:
            return None
        return version if isinstance(version, str) else None

    def models(self) -> dict[str, str]:
        """The digest of every model on the server, by name with tag. Raises OllamaError."""
        self._require_listening()
        with self.errors("the list of models"):
            return {model["name"]: model["digest"] for model in self._json("GET", "/api/tags")["models"]}

    def chat_models(self) -> list[str]:
        """The names of its chat models, sorted, without cloud models. Raises OllamaError.

        Each model's capabilities are requested once, several models at a time. If an old server does not report them,
        the names decide which models embed.
        """
        models = {name: digest for name, digest in self.models().items() if not _is_cloud(name)}
        new = {digest: name for name, digest in models.items() if digest not in _CAN_CHAT}
        if new:
            with ThreadPoolExecutor(min(DESCRIBED_AT_ONCE, len(new))) as pool:
                for digest, can_chat in zip(new, pool.map(self._chats, new.values()), strict=True):
                    if can_chat is not None:
                        _CAN_CHAT[digest] = can_chat
        return sorted(name for name, digest in models.items() if _CAN_CHAT.get(digest, "embed" not in name.casefold()))

    def _chats(self, name: str) -> bool | None:
        """Whether a model can chat and runs on this server; None if the server does not say."""
        try:
            with self.errors(name):
                shown = self._show(name)
                capabilities = shown.get("capabilities")
                return None if capabilities is None else "completion" in capabilities and not shown.get("remote_host")
        except ModelError:  # list the other models all the same
            return None

    def _require_listening(self) -> None:
        """Raise OllamaError if no local server listens, before importing httpx, which takes 0.1 s."""
        place = urlsplit(self.url)
        if is_local(self.url):
            try:
                address = (place.hostname or "", place.port or 0)
                socket.create_connection(address, min(CONNECT_S, self.timeout_s)).close()
            except OSError as error:
                raise not_listening(self.url) from error

    def resolve(self, model: str) -> tuple[str, str]:
        """A model's full name and digest. Raises OllamaError if the server is down, ModelMissing."""
        models = self.models()
        # Ollama ignores case in names.
        names = {name.casefold(): name for name in models}
        name = names.get(_tagged(model).casefold())
        if name is None:
            raise model_missing(model, self.url)
        return name, models[name]

    def describe(self, model: str) -> ModelInfo:
        """The server's description of a model. Raises OllamaError, ModelMissing."""
        name, digest = self.resolve(model)
        with self.errors(name):
            shown = self._show(name)
            details: dict[str, Any] = shown.get("model_info") or {}
            names = shown.get("capabilities")
            capabilities = None if names is None else frozenset(names)
            architecture = details.get("general.architecture", "")
            num_ctx = re.search(r"^num_ctx\s+(\d+)", shown.get("parameters") or "", re.MULTILINE)
            return ModelInfo(
                name=name,
                digest=digest,
                context_length=_length(details.get(f"{architecture}.context_length")),
                embedding_length=_length(details.get(f"{architecture}.embedding_length")),
                remote=str(shown.get("remote_host") or ""),
                num_ctx=_length(int(num_ctx[1])) if num_ctx else None,
                weights="+".join(modelfile_digests(shown.get("modelfile") or "")),
                capabilities=capabilities,
                thinking=thinking_of(self.think, name, architecture, capabilities, shown.get("template") or ""),
            )

    def loaded_context(self, name: str) -> int:
        """The context in tokens of a loaded model; 0 if the model is not loaded or the server does not say."""
        try:
            with self.errors(name):
                running = self._json("GET", "/api/ps", wait_s=PROBE)["models"]
                return next((_length(model["context_length"]) or 0 for model in running if model["name"] == name), 0)
        except ModelError:
            return 0

    def embed(self, model: str, texts: list[str], num_ctx: int) -> list[list[float]]:
        """The vectors of texts as the server sends them, unchecked. Raises httpx's errors, see `errors`.

        num_ctx: context in tokens. The server may be set to a smaller context than the model's, and truncate there.
        """
        body: dict[str, Any] = {"model": model, "input": texts, "options": {"num_ctx": num_ctx}}
        if self.keep_alive is not None:
            body["keep_alive"] = self.keep_alive
        vectors: list[list[float]] = self._json("POST", "/api/embed", body, (self.timeout_s, CONNECT_S))["embeddings"]
        return vectors

    def _show(self, name: str) -> dict[str, Any]:
        shown: dict[str, Any] = self._json("POST", "/api/show", {"model": name})
        return shown

    def require_local(self, model: str, capability: Capability) -> ModelInfo:
        """The description of a model that runs on the server itself and, as far as known, has this capability.

        Raises CloudModel, WrongModel, OllamaError, ModelMissing.
        """
        _refuse_cloud_name(model)
        info = self.describe(model)
        if info.remote:
            raise cloud_model(model, info.remote)
        if info.capabilities is not None and capability not in info.capabilities:
            raise wrong_model(model, capability)
        return info

    def pull(self, model: str, progress: Progress) -> None:
        """Let the server download a model. progress gets the current step, bytes so far, and total bytes or 0.

        Raises CloudModel, OllamaError, and ModelError if the server cannot download it.
        """
        _refuse_cloud_name(model)
        with (
            self.errors(model),
            self._client(self.timeout_s) as client,
            client.stream("POST", "/api/pull", json={"model": model, "stream": True}) as response,
        ):
            if not response.is_success:
                response.read()
            response.raise_for_status()
            for line in response.iter_lines():
                part = json.loads(line)
                if "error" in part:
                    raise ModelError(
                        f"Ollama could not download {model}: {server_message(part['error'])}.",
                        "Check the name at ollama.com/library and that the server can reach the network.",
                    )
                progress(str(part["status"]), part.get("completed") or 0, part.get("total") or 0)
                if part["status"] == "success":
                    return
        raise broke_off(model, self.url)

    def _client(self, read_s: float, connect_s: float = CONNECT_S) -> httpx.Client:
        import httpx

        kwargs = client_kwargs(min(read_s, self.timeout_s), connect_s)
        return httpx.Client(base_url=self.url, **kwargs)

    def _json(
        self, method: str, path: str, body: dict[str, Any] | None = None, wait_s: tuple[float, float] = METADATA
    ) -> Any:
        """wait_s: the longest time for the reply, and to connect."""
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
            raise translate(error, model, self.url) from error


def _is_cloud(model: str) -> bool:
    return model.casefold().removesuffix(":latest").endswith(("-cloud", ":cloud"))


def _refuse_cloud_name(model: str) -> None:
    if _is_cloud(model):
        raise cloud_model(model, "ollama.com")


def _bad_host(host: str) -> UsageError:
    return UsageError(
        f"OLLAMA_HOST is {host!r}, which is not a server address.",
        "Set it to a host, host:port or a URL without a password, for example 127.0.0.1:11434.",
    )


def _length(value: object) -> int | None:
    """A server's number of tokens, or of a vector's numbers; None for an impossible number."""
    return value if type(value) is int and 0 < value <= LONGEST else None


def modelfile_digests(modelfile: str) -> list[str]:
    """The SHA-256 of each file of a model, from its Modelfile: the weights first."""
    return _BLOB.findall(modelfile)


def _tagged(model: str) -> str:
    """A model's name with a tag. A colon before the last slash belongs to a registry's port."""
    return model if ":" in model.rpartition("/")[2] else f"{model}:latest"


def _is_ipv6(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).version == 6
    except ValueError:
        return False


def _adapt_request(request: httpx.Request) -> httpx.Request:
    """The request without an API key, and with fields that turn a too long text into an error.

    `truncate` and `shift` are not model options but fields of the request; older versions of Ollama ignore them.
    """
    import httpx

    request.headers.pop("Authorization", None)
    by_path = {"/api/chat": {"truncate": False, "shift": False}, "/api/embed": {"truncate": False}}
    fields = next((fields for path, fields in by_path.items() if request.url.path.endswith(path)), None)
    if fields is None:
        return request
    body = json.dumps({**json.loads(request.content), **fields}).encode()
    headers = {name: value for name, value in request.headers.items() if name.lower() != "content-length"}
    return httpx.Request(request.method, request.url, headers=headers, content=body, extensions=request.extensions)
