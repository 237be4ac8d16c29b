"""all-MiniLM-L6-v2 on onnxruntime: the built-in embedder, which needs no server and no download.

The model comes with Folio, in FOLDER: its encoder as an ONNX graph (bert_onnx.py), and its word embeddings in half
precision, in a memory-mapped file. scripts/make_minilm.py makes them from the publisher's weights. The model gives
vectors of questions and passages, and token embeddings for late interaction. Its matrices are quantised to eight bits:
three times as fast as sentence-transformers, at a cosine of 0.998 to its vectors. A text's vector depends only on the
text.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from folio.errors import ModelError, ModelMissing
from folio.models.bert_onnx import VERSION
from folio.papers.model import Tokens, Vectors
from folio.system.threads import run_in_background
from folio.text import NOTATION, as_typed, rewritten

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Ids = npt.NDArray[np.int32]
ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
Key = TypeVar("Key", bound=Hashable)
Made = TypeVar("Made")


def read_tensors(path: Path) -> dict[str, Vectors]:
    """The float32 tensors of a safetensors file by name, as read-only views of the memory-mapped file.

    The safetensors package would copy all 90 MB, of which a query needs a few rows. Format: 8 bytes of header length, a
    JSON header, the data (https://github.com/huggingface/safetensors#format). Raises OSError, ValueError.
    """
    mapped = np.memmap(path, dtype=np.uint8, mode="r").view(np.ndarray)
    begin = 8 + int(mapped[:8].view("<u8")[0])
    header: dict[str, dict[str, Any]] = json.loads(mapped[8:begin].tobytes())
    tensors = {}
    for name, entry in header.items():
        if entry.get("dtype") == "F32":
            start, end = entry["data_offsets"]
            tensors[name] = mapped[begin + start : begin + end].view("<f4").reshape(entry["shape"])
    return tensors


class OnnxEncoder:
    """Runs a graph of bert_onnx.py on onnxruntime, with its embedding tables. Thread-safe: it never changes.

    Embeddings are looked up here and not in the graph: the word table is half of a model, and only the needed rows are
    read from disk.
    """

    def __init__(self, graph: bytes, words: Vectors, positions: Vectors, types: Vectors, threads: int = 0) -> None:
        """words: (vocabulary, dimension). positions: (positions, dimension). types: (types, dimension).

        threads: number of texts to run at once; 0 for one per core.
        """
        # Some builds of onnxruntime report usage to Microsoft unless this is set before the import.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        import onnxruntime as ort  # type: ignore[import-untyped]

        options = ort.SessionOptions()
        # Texts run in parallel, each on one thread: threads that share a text mostly wait for each other.
        options.intra_op_num_threads = 1
        options.enable_mem_pattern = False  # it would plan memory for every new text length, and keep it
        # The graph already has the fused operators; a higher level adds a slower fused LayerNormalization.
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        self._session = ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        self._words = words
        self._positions = positions
        self._types = types
        self._threads = threads or _cores()
        self._pool = ThreadPoolExecutor(self._threads, "onnx") if self._threads > 1 else None

    def run(self, ids: Ids, types: Ids | None = None) -> Vectors:
        """The graph's output for one text: (tokens, dimension) or (1, labels). types: 0 or 1 for each token."""
        type_embeddings = self._types[0] if types is None else self._types[types]
        embedded = self._words[ids] + self._positions[: len(ids)] + type_embeddings
        (out,) = self._session.run(["out"], {"embedded": embedded})
        output: Vectors = out
        return output

    def map(self, function: Callable[[ItemT], ResultT], items: Sequence[ItemT]) -> Iterator[ResultT]:
        """The function's results in order, computed in parallel."""
        if self._pool is None or len(items) < 2:
            return map(function, items)
        return self._pool.map(function, items)


def _cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Recent(Generic[Key, Made]):
    """A cache of the values of the last used keys. Thread-safe.

    Unlike lru_cache, it makes all new values in one batch, and its limit may be a sum of sizes.
    """

    def __init__(self, most: int, size: Callable[[Made], int] = lambda made: 1) -> None:
        """most: the largest sum of the sizes of all values."""
        self._most = most
        self._size = size
        self._kept = OrderedDict[Key, Made]()  # the most recently used last
        self._lock = threading.Lock()

    def get(self, keys: Sequence[Key], make: Callable[[list[Key]], Sequence[Made]]) -> list[Made]:
        """The value of each key. make: called without the lock, for the keys without a value, each once."""
        with self._lock:
            known = {key: self._kept[key] for key in keys if key in self._kept}
        if new := [key for key in dict.fromkeys(keys) if key not in known]:
            known.update(zip(new, make(new), strict=True))
        with self._lock:
            for key in keys:
                self._kept[key] = known[key]
                self._kept.move_to_end(key)
            while sum(map(self._size, self._kept.values())) > self._most:
                self._kept.popitem(last=False)
        return [known[key] for key in keys]


FOLDER = Path(__file__).with_name("all-MiniLM-L6-v2")
# words.npy: float16 (vocabulary, DIMENSION). positions.npy: float32 (WINDOW, DIMENSION), plus the embedding of the only
# type of token.
GRAPH, WORDS, POSITIONS, TOKENIZER = "encoder.onnx", "words.npy", "positions.npy", "tokenizer.json"
SHA256 = {
    GRAPH: "18b175440c125ba8f9d859137b1e4126fc4712d4e14c698d02cc5adc2bc56984",
    WORDS: "66ce9d40462b34742e041f6fa577b0800a7971a105a2f6b701e34db63f41be2f",
    POSITIONS: "f6f122df82ef7a768899ebf380a8b8288c182d6a6290ddeef03b4a95b2bd201d",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
# of the publisher's model.safetensors, from which the first three are made
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
ARITHMETIC = f"{VERSION}, words float16, powers as typed"  # with another value, stored vectors no longer match

NAME = "all-MiniLM-L6-v2"
# from the model's config.json
DIMENSION = 384
CLS, SEP = 101, 102
EPSILON = 1e-12  # the smallest divisor for a vector's length

WINDOW = 256  # tokens, [CLS] and [SEP] included: max_seq_length in sentence_bert_config.json
STRIDE = 32  # tokens that neighbouring windows of a long text share, so that no short phrase is split in both
CACHED_TOKENS = 16_384  # hidden states kept, 25 MB: enough for a question, its passages and its evidence


def read_file(folder: Path, name: str, expected: str) -> bytes:
    """A file of a model that comes with Folio. expected: its SHA-256.

    Raises ModelMissing if it does not exist, ModelError if it cannot be read or has changed.
    """
    again = "Install Folio again, or restore the file from the repository."
    try:
        content = (folder / name).read_bytes()
    except FileNotFoundError as error:
        raise ModelMissing(f"The built-in model has no file {name} in {folder}.", again) from error
    except OSError as error:
        raise ModelError(
            f"The built-in model's file {folder / name} cannot be read: {error.strerror}.",
            "Check the file's permissions and the disk.",
        ) from error
    if (digest := hashlib.sha256(content).hexdigest()) != expected:
        raise ModelError(f"{folder / name} is not the file that Folio came with: its SHA-256 is {digest}.", again)
    return content


@cache
def load_tokenizer(folder: Path = FOLDER) -> Tokenizer:
    """The tokenizer of all-MiniLM-L6-v2, without the model. Raises as `read_file` does."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(read_file(folder, TOKENIZER, SHA256[TOKENIZER]).decode())
    # The file truncates at 128 tokens and pads; Folio splits long texts into windows instead.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def token_ids(tokenizer: Tokenizer, text: str) -> tuple[Ids, list[tuple[int, int]]]:
    """A text's token ids, shape (tokens,), without [CLS] and [SEP], and each token's span in the text.

    Raised and lowered characters are read as people type them: the model knows "10^9" better than "10⁹".
    """
    # PDFs have lone surrogates, which the tokenizer refuses: a character stands for each.
    valid = text.encode("utf-8", "replace").decode("utf-8")
    plain, places = rewritten(valid, list(range(len(valid) + 1)), NOTATION, as_typed)
    encoding = tokenizer.encode(plain, add_special_tokens=False)
    spans = encoding.offsets
    if plain is not valid:
        spans = [(places[start], max(places[end], places[start] + 1)) for start, end in spans]
    return np.array(encoding.ids, dtype=np.int32), spans


@dataclass(frozen=True, slots=True)
class _Model:
    """The loaded model. Thread-safe: it never changes."""

    tokenizer: Tokenizer
    encoder: OnnxEncoder

    @classmethod
    def load(cls, folder: Path = FOLDER, threads: int = 0) -> _Model:
        """Raises ModelMissing, ModelError."""
        files = {name: read_file(folder, name, digest) for name, digest in SHA256.items() if name != TOKENIZER}
        words = np.load(folder / WORDS, mmap_mode="r")  # a question needs a few of its rows
        positions = np.load(BytesIO(files[POSITIONS]))
        types = np.zeros((1, DIMENSION), np.float32)  # included in the positions
        return cls(load_tokenizer(folder), OnnxEncoder(files[GRAPH], words, positions, types, threads))


@dataclass(frozen=True, slots=True)
class _Encoded:
    """A text's tokens, and the model's last hidden states of them."""

    spans: tuple[tuple[int, int], ...]  # one for each token
    lengths: tuple[int, ...]  # tokens in each window, [CLS] and [SEP] included
    states: tuple[Vectors, ...]  # one array for each window, shape (its length, DIMENSION)


def _unit(vectors: Vectors) -> Vectors:
    """Rows scaled to unit length; a row of zeros stays zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = (vectors / np.maximum(norms, EPSILON)).astype(np.float32, copy=False)
    return unit


def windows(ids: Ids) -> list[Ids]:
    """A text's tokens in windows of at most WINDOW, each with [CLS] and [SEP]; neighbours share STRIDE tokens.

    Even a text without tokens has a window, and so a vector.
    """
    return [np.concatenate(([CLS], ids[part], [SEP])).astype(np.int32) for part in _parts(len(ids))]


def _parts(tokens: int) -> list[slice]:
    """The slice of a text's tokens in each window."""
    size = WINDOW - 2
    starts = range(0, max(1, tokens - STRIDE), size - STRIDE) if tokens > size else range(1)
    return [slice(start, start + size) for start in starts]


class BuiltinEmbedder:
    """all-MiniLM-L6-v2 as a TokenEmbedder. The first text loads the model. Thread-safe.

    A text of more than WINDOW tokens is read in overlapping windows. Its vector is the mean of their vectors, weighted
    by their numbers of tokens and scaled to unit length.

    folder: the model's files. threads: see OnnxEncoder.
    """

    name = f"{NAME} (built in)"

    def __init__(self, folder: Path = FOLDER, threads: int = 0) -> None:
        self._folder = folder
        self._threads = threads
        self._loaded: _Model | None = None
        self._loading = threading.Lock()
        self._recent = Recent[str, _Encoded](CACHED_TOKENS, lambda encoded: sum(encoded.lengths))

    @property
    def dimension(self) -> int:
        return DIMENSION

    def identity(self) -> dict[str, str]:
        """See protocols.Embedder. Does not load the model: only files with the known digests can load."""
        return {
            "embedder": "builtin",
            "model": NAME,
            "digest": WEIGHTS_SHA256[:12],
            "arithmetic": ARITHMETIC,
            "dimension": str(DIMENSION),
            "passage_prefix": "",
            "query_prefix": "",
            "normalised": "unit",
        }

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), 384), rows of unit length. Raises ModelMissing or ModelError if the model cannot load."""
        if not texts:
            return np.zeros((0, DIMENSION), dtype=np.float32)
        model = self._model()
        encoder = model.encoder
        by_text = [windows(token_ids(model.tokenizer, text)[0]) for text in texts]
        means = encoder.map(lambda ids: encoder.run(ids).mean(axis=0), list(chain.from_iterable(by_text)))
        return np.stack([_pool([len(ids) for ids in parts], list(islice(means, len(parts)))) for parts in by_text])

    def embed_query(self, text: str) -> Vectors:
        """Shape (384,), of unit length. Raises as embed_passages does."""
        vector: Vectors = self.embed_queries([text])[0]
        return vector

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), 384), rows of unit length. Raises as embed_passages does."""
        pooled = [_pool(one.lengths, [states.mean(axis=0) for states in one.states]) for one in self._encode(texts)]
        return np.stack(pooled) if pooled else np.zeros((0, DIMENSION), dtype=np.float32)

    def is_word(self, word: str) -> bool:
        """See protocols.TokenEmbedder. The 30,000 word pieces include the common English words."""
        return load_tokenizer(self._folder).token_to_id(word) is not None

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """See protocols.TokenEmbedder. States have shape (tokens, 384). Raises as embed_passages does."""
        tokens = []
        for encoded in self._encode(texts):
            inner = [_unit(states[1:-1]) for states in encoded.states]  # without [CLS] and [SEP]
            spans = tuple(span for part in _parts(len(encoded.spans)) for span in encoded.spans[part])
            tokens.append(Tokens(np.concatenate(inner), spans))
        return tokens

    def _encode(self, texts: Sequence[str]) -> list[_Encoded]:
        """The tokens and hidden states of each text, from the cache of recent texts if possible.

        A question is embedded, then compared token by token; its passages are reranked, searched for the answer, and
        needed again for the next question of a conversation.
        """
        return self._recent.get(texts, self._encode_new)

    def _encode_new(self, texts: Sequence[str]) -> list[_Encoded]:
        model = self._model()
        tokenized = [token_ids(model.tokenizer, text) for text in texts]
        by_text = [windows(ids) for ids, _ in tokenized]
        states = model.encoder.map(model.encoder.run, list(chain.from_iterable(by_text)))
        return [
            _Encoded(tuple(spans), tuple(len(ids) for ids in parts), tuple(islice(states, len(parts))))
            for (_, spans), parts in zip(tokenized, by_text, strict=True)
        ]

    def load_in_background(self) -> None:
        """See protocols.TokenEmbedder."""
        run_in_background(self._model)

    def _model(self) -> _Model:
        with self._loading:
            if self._loaded is None:
                self._loaded = _Model.load(self._folder, self._threads)
            return self._loaded


def _pool(lengths: Sequence[int], means: Sequence[Vectors]) -> Vectors:
    """A text's vector from its windows' means, weighted by their lengths; shape (DIMENSION,), of unit length."""
    weights = np.array(lengths, dtype=np.float32)
    vector: Vectors = _unit((weights[:, None] * _unit(np.stack(means))).sum(axis=0, keepdims=True))[0]
    return vector
