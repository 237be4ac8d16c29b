"""An embedding model on a server, with the prefixes that such models expect before a query and a passage.

A model that was trained with a prefix ranks worse without it. Each row of the table names the model's card. The names
are those of Ollama's library, and of GGUF files of the same models.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from time import monotonic

import numpy as np
import numpy.typing as npt

from folio.errors import ContextTooSmall, EmbedderAway, ModelMissing, ModelServerError, NoVector
from folio.models.model_server import ModelInfo, ModelServer, first_wait
from folio.models.server_errors import is_transient
from folio.papers.model import Vectors
from folio.protocols import Embedder
from folio.text import one_line

# In a prefix: the title of the passage's paper
TITLE = "{title}"
_NO_TITLE = "none"  # as embeddinggemma's card says
MAX_TITLE = 200  # bytes of UTF-8


@dataclass(frozen=True, slots=True)
class Prefixes:
    """The exact texts before each query and passage; a passage's may contain TITLE."""

    query: str = ""
    passage: str = ""


NONE = Prefixes()
_SEARCHING = Prefixes(query="Represent this sentence for searching relevant passages: ")
# The instruction that both cards give for retrieval
_WEB_SEARCH = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"

# A pattern for the beginning of a model's base_name, and its prefixes. The first match wins.
_TABLE: tuple[tuple[str, Prefixes], ...] = (
    # https://huggingface.co/nomic-ai/nomic-embed-text-v1.5 and .../nomic-embed-text-v2-moe, "Task instruction prefixes"
    (r"nomic-embed-text", Prefixes("search_query: ", "search_document: ")),
    # https://huggingface.co/mixedbread-ai/mxbai-embed-large-v1: the prompt is for queries alone
    (r"mxbai-embed-(?:large|2d-large)", _SEARCHING),
    # https://huggingface.co/Snowflake/snowflake-arctic-embed-l-v2.0 and -m-v2.0
    (r"snowflake-arctic-embed(?:2|-[ml]-v2)", Prefixes(query="query: ")),
    # https://huggingface.co/Snowflake/snowflake-arctic-embed-m and its sizes xs, s, m, m-long, m-v1.5 and l
    (r"snowflake-arctic-embed", _SEARCHING),
    # https://huggingface.co/BAAI/bge-m3: "no instruction" for queries or passages
    (r"bge-m3", NONE),
    # https://huggingface.co/BAAI/bge-large-zh-v1.5, "Model List"
    (r"bge-(?:small|base|large)-zh", Prefixes(query="为这个句子生成表示以用于检索相关文章：")),
    # https://huggingface.co/BAAI/bge-large-en-v1.5, "Model List". Ollama's bge-large is this model.
    (r"bge-(?:small|base|large)", _SEARCHING),
    # https://huggingface.co/intfloat/e5-mistral-7b-instruct and multilingual-e5-large-instruct: get_detailed_instruct
    (r"(?:intfloat-)?(?:multilingual-)?e5-[\w.-]*instruct", Prefixes(query=f"{_WEB_SEARCH} ")),
    # https://huggingface.co/intfloat/multilingual-e5-large and .../e5-large-v2: "query: " and "passage: "
    (r"(?:intfloat-)?(?:multilingual-)?e5-(?:small|base|large)", Prefixes("query: ", "passage: ")),
    # https://huggingface.co/google/embeddinggemma-300m, "Prompt Instructions": Retrieval-query, Retrieval-document
    (r"embeddinggemma", Prefixes("task: search result | query: ", f"title: {TITLE} | text: ")),
    # https://huggingface.co/Qwen/Qwen3-Embedding-0.6B: get_detailed_instruct, without a space after "Query:"
    (r"qwen3-embedding", Prefixes(query=_WEB_SEARCH)),
    # https://huggingface.co/ibm-granite/granite-embedding-278m-multilingual: its examples encode texts as they are
    (r"granite-embedding", NONE),
    # https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2: texts as they are
    (r"all-minilm", NONE),
    # https://huggingface.co/sentence-transformers/paraphrase-multilingual-mpnet-base-v2: texts as they are
    (r"paraphrase-multilingual", NONE),
)
_KNOWN = tuple((re.compile(rf"{pattern}(?![a-z])"), prefixes) for pattern, prefixes in _TABLE)


def with_title(prefix: str, title: str) -> str:
    """A passage's prefix with the title of its paper, on one line, cut off at MAX_TITLE; "none" without a title."""
    line = one_line(title.replace("|", "/"))
    cut = line.encode(errors="replace")[:MAX_TITLE].decode(errors="ignore")
    return prefix.replace(TITLE, cut or _NO_TITLE)


def base_name(model: str) -> str:
    """A model's name without namespaces, the word that LM Studio puts before it, and tag, in lower case.

    >>> base_name("hf.co/Qwen/Qwen3-Embedding-0.6B-GGUF:Q8_0"), base_name("text-embedding-bge-m3")
    ('qwen3-embedding-0.6b-gguf', 'bge-m3')
    """
    return model.rpartition("/")[2].partition(":")[0].casefold().removeprefix("text-embedding-")


def known_prefixes(model: str) -> Prefixes | None:
    """The prefixes of a model, by its name; None for a model that is not in the table."""
    name = base_name(model)
    return next((prefixes for pattern, prefixes in _KNOWN if pattern.match(name)), None)


# Ollama truncates a long text unless asked not to (ollama.py), and old versions always do. So no sent text can be too
# long: whatever the tokenizer, a token has at least one byte of UTF-8.
MAX_WINDOW = 2048  # tokens: the limit of nomic-embed-text, enough for any passage
UNKNOWN_WINDOW = 512  # tokens, for a model that does not state its context length: BERT's limit
RESERVE = 48  # tokens for the prefix and the special tokens at both ends; more for a long prefix
SPECIAL = 8  # tokens at both ends, at most
MAX_WAIT_S = 8.0
_TOO_LARGE = "a vector with numbers that are too large"
RETRIES = 4
# Texts without a vector are left out, unless there are more of them than this, and more than those with one: then the
# model is broken
MOST_WITHOUT = 8


class ServerEmbedder:
    """An embedding model on a server.

    A text longer than the model's window is split into parts that certainly fit. Its vector is the mean of their
    vectors, weighted by length. A part has at most 2,000 bytes with nomic-embed-text, more than most passages, and 208
    bytes with all-minilm, whose window is 256 tokens.
    """

    def __init__(
        self,
        server: ModelServer,
        model: str,
        batch: int,
        retries: int = RETRIES,
        first_wait_s: float | None = None,
        *,
        query_prefix: str | None = None,
        passage_prefix: str | None = None,
    ) -> None:
        """Asks the server about the model. Raises as ModelServer.require_local does, and ContextTooSmall.

        batch: most texts in one request. retries: further attempts after a transient error. first_wait_s: seconds
        before the first retry, by default FIRST_WAIT_S; each further wait is twice as long, up to MAX_WAIT_S.
        query_prefix, passage_prefix: the texts before each text; None for those of the table.
        """
        self._server = server
        self._batch = batch
        self._retries = retries
        self._first_wait_s = first_wait() if first_wait_s is None else first_wait_s
        self._model = server.require_local(model, "embedding")
        known = known_prefixes(self._model.name)
        # Whether neither the table nor the caller gives prefixes
        self.prefixes_unknown = known is None and query_prefix is None and passage_prefix is None
        self._query_prefix = (known or NONE).query if query_prefix is None else query_prefix
        self._passage_prefix = (known or NONE).passage if passage_prefix is None else passage_prefix
        self._window = _window(self._model)
        self.reads_titles = TITLE in self._passage_prefix
        self._part_bytes = self._room(with_title(self._passage_prefix, "x" * MAX_TITLE))
        self._query_bytes = self._room(self._query_prefix)
        self._embedded = self._without = 0  # texts with and without a vector so far
        self.name = f"{self._model.name} ({server.label})"

    @property
    def model(self) -> str:
        """The model's name on the server."""
        return self._model.name

    @cached_property
    def dimension(self) -> int:
        """Dimension of the vectors, from a test embedding if the server does not state it. Raises ModelError."""
        if self._model.embedding_length:
            return self._model.embedding_length
        vectors = self._request(["dimension"])
        if not vectors or not vectors[0]:
            raise self._unusable("no vector")
        return len(vectors[0])

    def identity(self) -> dict[str, str]:
        """See protocols.Embedder. Raises ModelError."""
        return {
            "embedder": self._server.kind,
            "model": self._model.name,
            **self._server.identity(self._model),
            "dimension": str(self.dimension),
            "passage_prefix": self._passage_prefix,
            "query_prefix": self._query_prefix,
            "part_bytes": str(self._part_bytes),
            "normalised": "unit",
        }

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dimension), rows of unit length; zeros for a text without a vector. Raises ModelError."""
        return self.embed_titled([(text, "") for text in texts])

    def embed_titled(self, passages: Sequence[tuple[str, str]]) -> Vectors:
        """See TitledEmbedder."""
        prefixes = [with_title(self._passage_prefix, title) for _, title in passages]
        return self._embed([text for text, _ in passages], prefixes, self._part_bytes)

    def embed_query(self, text: str) -> Vectors:
        """Shape (dimension,), of unit length. Raises ModelError."""
        row: Vectors = self.embed_queries([text])[0]
        return row

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dimension), rows of unit length. Raises ModelError, NoVector too."""
        vectors = self._embed(texts, [self._query_prefix] * len(texts), self._query_bytes)
        if not vectors.any(axis=1).all():
            raise NoVector(f"{self._model.name} has no vector for this question.", "Word the question in another way.")
        return vectors

    def _room(self, prefix: str) -> int:
        """The number of bytes that certainly fit into the window after a prefix. Raises ContextTooSmall."""
        room = self._window - max(RESERVE, len(prefix.encode(errors="replace")) + SPECIAL)
        if room <= 0:
            raise ContextTooSmall(
                f"{self._model.name} reads {self._window} tokens, which a prefix of {len(prefix)} characters fills.",
                "Make EMBED_QUERY_PREFIX and EMBED_PASSAGE_PREFIX shorter, or choose another EMBED_MODEL.",
            )
        return room

    def _embed(self, texts: Sequence[str], prefixes: Sequence[str], part_bytes: int) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        parts_by_text = [list(_parts(text, part_bytes)) for text in texts]
        parts = [part for of_text in parts_by_text for part in of_text]
        prompts = [prefix + part for prefix, of_text in zip(prefixes, parts_by_text, strict=True) for part in of_text]
        batches = (prompts[start : start + self._batch] for start in range(0, len(prompts), self._batch))
        rows = np.concatenate([self._rows(batch) for batch in batches])
        if len(parts) == len(texts):
            return rows.astype(np.float32)
        weights = np.array([max(1, len(part.encode())) for part in parts], dtype=np.float64)
        firsts = [0, *accumulate(len(of_text) for of_text in parts_by_text)][:-1]
        means = np.add.reduceat(rows * weights[:, None], firsts, axis=0)
        has_vector = np.logical_or.reduceat(rows.any(axis=1), firsts)
        means[has_vector] = self._unit(means[has_vector])
        return means.astype(np.float32)

    def _rows(self, prompts: list[str]) -> npt.NDArray[np.float64]:
        """Rows of unit length; zeros for a text that the model has no vector for, found by halving the batch."""
        try:
            rows = self._unit_rows(self._request(prompts), len(prompts))
        except NoVector:
            if len(prompts) > 1:
                half = len(prompts) // 2
                return np.concatenate([self._rows(prompts[:half]), self._rows(prompts[half:])])
            self._without += 1
            if self._without > max(MOST_WITHOUT, self._embedded):
                raise
            return np.zeros((1, self.dimension))
        self._embedded += len(prompts)
        return rows

    def _request(self, texts: list[str]) -> list[list[float]]:
        """Send one request, and repeat it after transient errors. Raises ModelError."""
        from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

        retrying = Retrying(
            stop=stop_after_attempt(self._retries + 1),
            wait=wait_exponential(multiplier=self._first_wait_s, max=MAX_WAIT_S),
            retry=retry_if_exception(lambda error: isinstance(error, Exception) and is_transient(error)),
            reraise=True,
        )
        with self._server.errors(self._model.name):
            vectors: list[list[float]] = retrying(self._server.embed, self._model.name, texts, self._window)
        return vectors

    def _unit_rows(self, vectors: list[list[float]], count: int) -> npt.NDArray[np.float64]:
        """The vectors as rows of unit length. Raises ModelServerError if they cannot be those of `count` texts."""
        if type(vectors) is not list or any(type(vector) is not list for vector in vectors):
            raise self._unusable("something that is not a list of vectors")
        if len(vectors) != count:
            raise self._unusable(f"{len(vectors)} vectors for {count} texts")
        lengths = {len(vector) for vector in vectors}
        if lengths != {self.dimension}:
            wrong = min(lengths - {self.dimension})
            raise self._unusable(f"a vector of {wrong} numbers where the model has {self.dimension}")
        if any(not {float, int}.issuperset(map(type, vector)) for vector in vectors):
            raise self._unusable("a vector with something in it that is not a number")
        try:
            return self._unit(np.array(vectors, dtype=np.float64))
        except OverflowError as error:  # an integer
            raise self._unusable(_TOO_LARGE) from error

    def _unit(self, rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Rows scaled to unit length. Raises ModelServerError for a row of zeros, or of numbers that are too large."""
        if not np.isfinite(rows).all():
            raise self._unusable("a vector with a number that is not finite")
        with np.errstate(over="ignore"):
            lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        if not np.isfinite(lengths).all():
            raise self._unusable(_TOO_LARGE)
        if not lengths.all():  # also if all numbers are tiny: their squares are zeros
            raise self._unusable("a vector of zeros")
        scaled: npt.NDArray[np.float64] = rows / lengths
        return scaled

    def _unusable(self, what: str) -> ModelServerError:
        return ModelServerError(
            f"{self._server.words.name} at {self._server.url} returned {what} for {self._model.name}.",
            self._server.words.renew.format(model=self._model.name),
        )


class ReconnectingEmbedder:
    """The embedder that a store was made with, for questions: its server may go and come back.

    While the server is away, or without the model, each call raises EmbedderAway, and the next one connects again: but
    not before as much time has passed as the last attempt took, or a question would wait for a silent server often.
    """

    def __init__(self, model: str, server: str, connect: Callable[[], Embedder]) -> None:
        """server: its label. connect: makes the embedder; raises StoreMismatch if the store was made with another one,
        and ModelError."""
        self.name = f"{model} ({server})"
        self._model, self._server = model, server
        self._connect = connect
        self._embedder: Embedder | None = None
        self._away: EmbedderAway | None = None
        self._next_try = 0.0

    @property
    def dimension(self) -> int:
        with self.connected() as embedder:
            return embedder.dimension

    def identity(self) -> dict[str, str]:
        with self.connected() as embedder:
            return embedder.identity()

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        with self.connected() as embedder:
            return embedder.embed_passages(texts)

    def embed_query(self, text: str) -> Vectors:
        with self.connected() as embedder:
            return embedder.embed_query(text)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        with self.connected() as embedder:
            return embedder.embed_queries(texts)

    @contextmanager
    def connected(self) -> Iterator[Embedder]:
        """The embedder itself. Raises EmbedderAway, and what `connect` raises for a model that is the wrong one."""
        begun = monotonic()
        if self._away and begun < self._next_try:
            raise EmbedderAway(self._away.happened, self._away.remedy)
        try:
            embedder = self._embedder or self._connect()
            self._embedder, self.name, self._next_try = embedder, embedder.name, 0.0
            yield embedder
        except (ModelServerError, ModelMissing) as error:
            if self._embedder is None:
                self._next_try = 2 * monotonic() - begun
            self._embedder, self.name = None, f"{self._model} ({self._server}, away)"
            self._away = EmbedderAway(error.happened, error.remedy)
            raise self._away from error


def _window(model: ModelInfo) -> int:
    """The number of tokens that a model certainly reads. Raises ContextTooSmall."""
    window = min(model.context_length or UNKNOWN_WINDOW, model.num_ctx or MAX_WINDOW, MAX_WINDOW)
    if window <= RESERVE:
        raise ContextTooSmall(
            f"{model.name} reads only {window} tokens of a text.",
            "Choose another EMBED_MODEL, for example nomic-embed-text.",
        )
    return window


def _parts(text: str, limit: int) -> Iterator[str]:
    """The text in parts of at most `limit` bytes of UTF-8, split between words where possible."""
    # A broken PDF can contain lone surrogates, which UTF-8 cannot encode.
    rest = text.encode(errors="replace")
    while len(rest) > limit:
        cut = max(rest.rfind(mark, 0, limit) for mark in (b" ", b"\n")) + 1
        if cut == 0:
            cut = limit
            while rest[cut] & 0xC0 == 0x80:  # in the middle of a character
                cut -= 1
        yield rest[:cut].decode()
        rest = rest[cut:]
    yield rest.decode()
