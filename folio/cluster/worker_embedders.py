"""The embedders of workers: what is sent to other computers, and makes the embedder of a worker there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from folio.errors import ModelError, StoreMismatch
from folio.models.minilm import BuiltinEmbedder
from folio.models.ollama import OllamaServer
from folio.models.ollama_embedder import RETRIES, OllamaEmbedder
from folio.protocols import Embedder
from folio.store.fingerprint import differences
from folio.types import Vectors

T = TypeVar("T")
# Further attempts at a server that failed, where there is another one
_RETRIES = 1


@dataclass(frozen=True)
class BuiltinForWorker:
    """The built-in model on one thread: each processor has a worker of its own."""

    def __call__(self, number: int) -> Embedder:
        """The embedder of the worker with this number."""
        return BuiltinEmbedder(threads=1)


@dataclass(frozen=True)
class OllamaForWorker:
    """A model on Ollama; workers are spread over its servers."""

    servers: tuple[str, ...]  # their URLs
    timeout_s: float
    model: str
    batch: int
    query_prefix: str | None
    passage_prefix: str | None
    keep_alive: str | int | None = None

    def __call__(self, number: int) -> Embedder:
        """The embedder of the worker with this number. Raises ModelError if no server can be used."""
        return OllamaServers(self, number % len(self.servers))

    def on(self, url: str) -> OllamaEmbedder:
        """The embedder on one server. Raises ModelError."""
        return OllamaEmbedder(
            OllamaServer(url, self.timeout_s, keep_alive=self.keep_alive),
            self.model,
            self.batch,
            RETRIES if len(self.servers) == 1 else _RETRIES,
            query_prefix=self.query_prefix,
            passage_prefix=self.passage_prefix,
        )


class OllamaServers:
    """An Embedder on several servers with the same model. One that fails is left for the next."""

    def __init__(self, job: OllamaForWorker, first: int) -> None:
        """first: the place of the server to begin with. Raises ModelError if no server can be used."""
        self._job, self._at = job, first
        self._embedders: dict[str, OllamaEmbedder] = {}
        self._identity: dict[str, str] = {}
        self._identity = self._try(lambda embedder: embedder.identity())
        self.name = self._current().name

    @property
    def dimension(self) -> int:
        """Dimension of the vectors."""
        return int(self._identity["dimension"])

    def identity(self) -> dict[str, str]:
        """What the vectors depend on: the same on all servers."""
        return self._identity

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """See Embedder. Raises ModelError if all servers fail, StoreMismatch for one with another model."""
        return self._try(lambda embedder: embedder.embed_passages(texts))

    @property
    def reads_titles(self) -> bool:
        """See TitledEmbedder."""
        return self._current().reads_titles

    def embed_titled(self, passages: Sequence[tuple[str, str]]) -> Vectors:
        """See TitledEmbedder. Raises as embed_passages does."""
        return self._try(lambda embedder: embedder.embed_titled(passages))

    def embed_query(self, text: str) -> Vectors:
        """See Embedder."""
        return self._try(lambda embedder: embedder.embed_query(text))

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """See Embedder."""
        return self._try(lambda embedder: embedder.embed_queries(texts))

    def _current(self) -> OllamaEmbedder:
        url = self._job.servers[self._at]
        if url not in self._embedders:
            made = self._job.on(url)
            if self._identity and (other := differences(self._identity, made.identity())):
                raise StoreMismatch(
                    f"Ollama at {url} has another {self._job.model} than the others: its {other[0]} is not theirs.",
                    f"Run `ollama pull {self._job.model}` on every computer in OLLAMA_HOSTS.",
                )
            self._embedders[url] = made
        return self._embedders[url]

    def _try(self, call: Callable[[OllamaEmbedder], T]) -> T:
        """The result of a call on the first server, from the current one on, that does not fail."""
        failed: ModelError | None = None
        for _ in self._job.servers:
            try:
                return call(self._current())
            except ModelError as error:
                failed = failed or error
                self._at = (self._at + 1) % len(self._job.servers)
        assert failed is not None
        raise failed
