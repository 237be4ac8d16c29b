"""The Ollama server: its address, its models, and calls to it. Chat uses langchain-ollama."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from folio.errors import ModelError
from folio.models import model_server
from folio.models.model_server import (
    CONNECT_S,
    PROBE,
    ChatRequest,
    ModelInfo,
    ModelServer,
    is_cloud,
    length_of,
    refuse_cloud_name,
    require_allowed,
)
from folio.models.server_errors import OLLAMA, ServerWords, broke_off, model_missing, server_message
from folio.models.thinking import thinking_of
from folio.papers.model import Progress
from folio.system.network import without_client_settings

if TYPE_CHECKING:
    import httpx
    from langchain_core.messages import AIMessageChunk
    from langchain_ollama import ChatOllama

DEFAULT_PORT = 11434
DESCRIBED_AT_ONCE = 8  # models

# Digest of a model -> whether it can chat and runs on its server. Kept by the process: the web page asks often.
_CAN_CHAT: dict[str, bool] = {}

# In a Modelfile: a file of the model (weights, adapters, projectors), named after the SHA-256 of its content. Comments,
# templates and licences have lines that begin with FROM too, but no line that ends like this.
_BLOB = re.compile(r'^(?:FROM|ADAPTER)\s.*sha256-([0-9a-f]{64})"?\s*$', re.MULTILINE)


def base_url(host: str, setting: str = "OLLAMA_HOST") -> str:
    """OLLAMA_HOST as a URL. Raises UsageError."""
    return model_server.base_url(host, setting, DEFAULT_PORT)


def server_url(host: str, *, allow_remote: bool, setting: str = "OLLAMA_HOST") -> str:
    """A setting as a URL, like `base_url`. Raises UsageError, also for another computer unless that is allowed."""
    url = base_url(host, setting)
    require_allowed(url, setting, allow_remote=allow_remote)
    return url


def client_kwargs(
    timeout_s: float, connect_s: float = CONNECT_S, check_cancelled: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """As model_server.client_kwargs, for Ollama's client too.

    The header keeps the client from reading OLLAMA_API_KEY, a key for ollama.com that it sends to any host; the auth
    hook removes the header, and asks the server not to truncate long texts, for which neither package has an option.
    """
    shared = model_server.client_kwargs(OLLAMA, timeout_s, connect_s, check_cancelled)
    return {**shared, "headers": {"Authorization": "none"}, "auth": _adapt_request}


@dataclass(frozen=True)
class OllamaServer(ModelServer):
    """An Ollama server.

    keep_alive: how long a model stays loaded after a request, in seconds or in Ollama's words; None for the server's
    setting.
    """

    keep_alive: str | int | None = None

    @property
    def words(self) -> ServerWords:
        return OLLAMA

    @property
    def kind(self) -> str:
        return "ollama"

    @property
    def label(self) -> str:
        return "Ollama"

    def version(self) -> str | None:
        """The server's version; None if no Ollama server answers."""
        try:
            with self.errors("its version"):
                version = self._json("GET", "/api/version", wait_s=PROBE)["version"]
        except ModelError:
            return None
        return version if isinstance(version, str) else None

    def models(self) -> dict[str, str]:
        """The digest of every model on the server, by name with tag. Raises ModelServerError."""
        self._require_listening()
        with self.errors("the list of models"):
            return {model["name"]: model["digest"] for model in self._json("GET", "/api/tags")["models"]}

    def sizes(self) -> dict[str, int]:
        """The bytes of every model on the server's disk, by name with tag. Raises ModelServerError."""
        self._require_listening()
        with self.errors("the list of models"):
            listed = self._json("GET", "/api/tags")["models"]
            return {model["name"]: size if type(size := model.get("size")) is int else 0 for model in listed}

    def chat_models(self) -> list[str]:
        """The names of its chat models, sorted, without cloud models. Raises ModelServerError.

        Each model's capabilities are requested once, several models at a time. If an old server does not report them,
        the names decide which models embed.
        """
        models = {name: digest for name, digest in self.models().items() if not is_cloud(name)}
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

    def resolve(self, model: str) -> tuple[str, str]:
        """A model's full name and digest. Raises ModelServerError if the server is down, ModelMissing."""
        models = self.models()
        # Ollama ignores case in names.
        names = {name.casefold(): name for name in models}
        name = names.get(_tagged(model).casefold())
        if name is None:
            raise model_missing(model, self.url, OLLAMA)
        return name, models[name]

    def describe(self, model: str) -> ModelInfo:
        """The server's description of a model. Raises ModelServerError, ModelMissing."""
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
                context_length=length_of(details.get(f"{architecture}.context_length")),
                embedding_length=length_of(details.get(f"{architecture}.embedding_length")),
                remote=str(shown.get("remote_host") or ""),
                num_ctx=length_of(int(num_ctx[1])) if num_ctx else None,
                weights="+".join(modelfile_digests(shown.get("modelfile") or "")),
                capabilities=capabilities,
                thinking=thinking_of(self.think, name, architecture, capabilities, shown.get("template") or ""),
            )

    def loaded_context(self, name: str) -> int:
        """The context in tokens of a loaded model; 0 if the model is not loaded or the server does not say."""
        try:
            with self.errors(name):
                running = self._json("GET", "/api/ps", wait_s=PROBE)["models"]
                return next((length_of(model["context_length"]) or 0 for model in running if model["name"] == name), 0)
        except ModelError:
            return 0

    def embed(self, model: str, texts: list[str], window: int) -> list[list[float]]:
        """The vectors of texts as the server sends them, unchecked. Raises httpx's errors, see `errors`.

        window: sent as the context. The server may be set to a smaller context than the model's, and truncate there.
        """
        body: dict[str, Any] = {"model": model, "input": texts, "options": {"num_ctx": window}}
        if self.keep_alive is not None:
            body["keep_alive"] = self.keep_alive
        vectors: list[list[float]] = self._json("POST", "/api/embed", body, (self.timeout_s, CONNECT_S))["embeddings"]
        return vectors

    def _show(self, name: str) -> dict[str, Any]:
        shown: dict[str, Any] = self._json("POST", "/api/show", {"model": name})
        return shown

    def identity(self, info: ModelInfo) -> dict[str, str]:
        """The digests of the manifest and of the files of weights."""
        weights = {"weights": info.weights} if info.weights else {}
        return {"digest": info.digest, **weights}

    def chat(self, request: ChatRequest) -> Iterator[AIMessageChunk]:
        """See ModelServer. Raises errors of ollama and httpx, and ValueError for a stream without a piece."""
        from langchain_core.messages import HumanMessage, SystemMessage

        logprobs: dict[str, Any] = {}
        if request.top_logprobs:
            logprobs = {"logprobs": True, "top_logprobs": request.top_logprobs}
        model = _chat_class()(
            model=request.model,
            base_url=self.url,
            temperature=0,
            num_ctx=request.context,
            num_predict=request.longest,
            keep_alive=self.keep_alive,
            reasoning=True,  # return the thought, too
            client_kwargs=client_kwargs(self.timeout_s, check_cancelled=request.check_cancelled),
            format=request.shape,
            **logprobs,
        )
        messages = [*([SystemMessage(request.rules)] if request.rules else []), HumanMessage(request.prompt)]
        return model.stream(messages, think=request.thinking.field)

    def pull(self, model: str, progress: Progress, check_cancelled: Callable[[], None] = lambda: None) -> None:
        """Let the server download a model. progress gets the current step, bytes so far, and total bytes or 0.
        check_cancelled: raises to end it; the server keeps what it has, for the next time.

        Raises CloudModel, ModelServerError, and ModelError if the server cannot download it.
        """
        refuse_cloud_name(model)
        with (
            self.errors(model),
            self._pulling_client(check_cancelled) as client,
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
        raise broke_off(model, self.url, OLLAMA)

    def _kwargs(self, read_s: float, connect_s: float) -> dict[str, Any]:
        return client_kwargs(read_s, connect_s)

    def _pulling_client(self, check_cancelled: Callable[[], None]) -> httpx.Client:
        import httpx

        kwargs = client_kwargs(self.timeout_s, check_cancelled=check_cancelled)
        return httpx.Client(base_url=self.url, **kwargs)


@cache
def _chat_class() -> type[ChatOllama]:
    """LangChain's class; its client library makes a client of its own when it is imported."""
    with without_client_settings():
        from langchain_ollama import ChatOllama
    return ChatOllama


def modelfile_digests(modelfile: str) -> list[str]:
    """The SHA-256 of each file of a model, from its Modelfile: the weights first."""
    return _BLOB.findall(modelfile)


def _tagged(model: str) -> str:
    """A model's name with a tag. A colon before the last slash belongs to a registry's port."""
    return model if ":" in model.rpartition("/")[2] else f"{model}:latest"


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
