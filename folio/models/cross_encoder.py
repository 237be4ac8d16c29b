"""Cross-encoders from local files, which read two texts together: a reranker, and an NLI or groundedness verifier.

A model of BERT's or RoBERTa's type runs on onnxruntime, as a graph that the package onnx builds once (bert_onnx.py).
Models of other types run on sentence-transformers, if that is installed.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from folio.errors import ModelMissing, fetch_command, install_command
from folio.models.bert_onnx import (
    CONFIG,
    TABLES,
    TOKENIZER,
    TOKENIZER_CONFIG,
    VERSION,
    WEIGHTS,
    OnnxCache,
    Sizes,
    build_graph,
    changed_file,
    read_json,
)
from folio.models.minilm import Ids, OnnxEncoder, read_tensors
from folio.papers.model import Hit, Vectors
from folio.protocols import Claim, Entailment, PromptStart, TermWeights
from folio.text import one_line, sentence_spans

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from folio.question.question import Question

Pair = tuple[str, str]

# Without one of these files, transformers silently creates a tokenizer with an empty vocabulary.
TOKENIZERS = (TOKENIZER, "vocab.txt")
# model_type in config.json -> architecture, and the prefix of the names of the encoder's tensors
_TYPES = {
    "bert": ("BertForSequenceClassification", "bert."),
    "roberta": ("RobertaForSequenceClassification", "roberta."),
    "xlm-roberta": ("XLMRobertaForSequenceClassification", "roberta."),
}
# The weights that a graph uses. A model with other weights is of another type.
_WEIGHTS = re.compile(
    r"(embeddings\.((word|position|token_type)_embeddings\.weight|LayerNorm\.(weight|bias))"
    r"|encoder\.layer\.\d+\.(attention\.self\.(query|key|value)|attention\.output\.(dense|LayerNorm)"
    r"|intermediate\.dense|output\.(dense|LayerNorm))\.(weight|bias)"
    r"|pooler\.dense\.(weight|bias)|classifier\.(weight|bias))"
)
_POSITIONS = "embeddings.position_embeddings.weight"
_POSITIONS_BY_DEFAULT = 512  # for a config.json without a number
_TORCH_BATCH = 8  # pairs; each batch gives its logits before the next one runs


class PairModel(Protocol):
    """A loaded cross-encoder."""

    max_tokens: int  # of a pair, special tokens included; longer pairs are truncated, the longer text first
    special_tokens: int  # in a pair

    def logits(self, pairs: Sequence[Pair]) -> Iterator[Vectors]:
        """Shape (labels,) for each pair, in order, as computed. The texts have no lone surrogates."""

    def count_tokens(self, text: str) -> int:
        """The number of a text's tokens, without special ones."""


class OnnxPairs:
    """A cross-encoder on onnxruntime: a graph of bert_onnx.py, with the model's embedding tables and tokenizer."""

    def __init__(self, folder: Path, graph: bytes) -> None:
        from tokenizers import Tokenizer

        _, tensors = read_model(folder)
        words, positions, types = (tensors[f"embeddings.{table}_embeddings.weight"] for table in TABLES)
        self._encoder = OnnxEncoder(graph, words, positions, types)
        self._has_types = len(types) > 1
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        # "[SEP]" in a paper is text, and must not end the text for the model.
        self._tokenizer.encode_special_tokens = True
        self._tokenizer.no_padding()
        self.max_tokens = max_tokens(folder)
        self.special_tokens = int(self._tokenizer.num_special_tokens_to_add(is_pair=True))
        self._tokenizer.enable_truncation(self.max_tokens, strategy="longest_first")

    def logits(self, pairs: Sequence[Pair]) -> Iterator[Vectors]:
        """See PairModel."""
        encodings = self._tokenizer.encode_batch(list(pairs))
        rows = [(np.array(one.ids, dtype=np.int32), np.array(one.type_ids, dtype=np.int32)) for one in encodings]
        return self._encoder.map(self._run, rows)

    def _run(self, row: tuple[Ids, Ids]) -> Vectors:
        ids, types = row
        logits: Vectors = self._encoder.run(ids, types if self._has_types else None)[0]
        return logits

    @cached_property
    def _counter(self) -> Tokenizer:
        from tokenizers import Tokenizer

        counter = Tokenizer.from_str(self._tokenizer.to_str())
        counter.no_truncation()
        counter.encode_special_tokens = True
        return counter

    def count_tokens(self, text: str) -> int:
        """See PairModel."""
        return len(self._counter.encode(text, add_special_tokens=False).ids)


class TorchPairs:
    """A cross-encoder on sentence-transformers: slower to load, but for every type of model.

    The packages raise their own errors for files that they cannot read.
    """

    def __init__(self, folder: Path) -> None:
        import torch
        from sentence_transformers import CrossEncoder
        from transformers.utils import logging

        logging.disable_progress_bar()
        logging.set_verbosity(logging.CRITICAL)  # the caller reports errors, in one sentence
        if not any((folder / name).is_file() for name in TOKENIZERS):
            raise FileNotFoundError(f"it has none of {', '.join(TOKENIZERS)}")
        self.max_tokens = max_tokens(folder)
        self._model = CrossEncoder(
            str(folder),
            device="cpu",
            local_files_only=True,
            activation_fn=torch.nn.Identity(),
            max_length=self.max_tokens,
            processor_kwargs={"split_special_tokens": True},  # as in OnnxPairs
        )
        self.special_tokens = int(self._model.tokenizer.num_special_tokens_to_add(pair=True))

    def logits(self, pairs: Sequence[Pair]) -> Iterator[Vectors]:
        """See PairModel."""
        for start in range(0, len(pairs), _TORCH_BATCH):
            batch = list(pairs[start : start + _TORCH_BATCH])
            logits = self._model.predict(batch, batch_size=_TORCH_BATCH, show_progress_bar=False)
            yield from np.asarray(logits, dtype=np.float32).reshape(len(batch), -1)

    def count_tokens(self, text: str) -> int:
        """See PairModel."""
        return len(self._model.tokenizer(text, add_special_tokens=False)["input_ids"])


def read_model(folder: Path) -> tuple[Sizes, dict[str, Vectors]]:
    """A model's sizes, and its weights under BERT's names. Raises ValueError, KeyError or OSError for another type.

    RoBERTa is BERT with other names in its classifier, one type of token, and positions that start after the padding's
    (Liu et al. 2019, https://arxiv.org/abs/1907.11692).
    """
    config = read_json(folder / CONFIG)
    architecture, prefix = _TYPES[config["model_type"]]
    if config["hidden_act"] != "gelu" or config["architectures"] != [architecture]:
        raise ValueError("its type is another than BERT's or RoBERTa's")
    if config.get("position_embedding_type", "absolute") != "absolute":
        raise ValueError("its positions are not absolute")
    sizes = Sizes(
        config["num_hidden_layers"],
        config["num_attention_heads"],
        config["hidden_size"],
        config["layer_norm_eps"],
    )
    tensors = {name.removeprefix(prefix): value for name, value in read_tensors(folder / WEIGHTS).items()}
    if prefix == "roberta.":
        for part in ("weight", "bias"):
            tensors[f"pooler.dense.{part}"] = tensors.pop(f"classifier.dense.{part}")
            tensors[f"classifier.{part}"] = tensors.pop(f"classifier.out_proj.{part}")
        tensors[_POSITIONS] = tensors[_POSITIONS][config["pad_token_id"] + 1 :]
    if others := [name for name in tensors if not _WEIGHTS.fullmatch(name)]:
        raise ValueError(f"it has weights that BERT has not: {others[0]}")
    return sizes, tensors


def max_tokens(folder: Path) -> int:
    """The most tokens that a model reads. Raises OSError, ValueError."""
    config = read_json(folder / CONFIG)
    positions = int(config.get("max_position_embeddings") or _POSITIONS_BY_DEFAULT)
    if "roberta" in str(config.get("model_type")):
        positions -= int(config.get("pad_token_id", 1)) + 1
    if not (folder / TOKENIZER_CONFIG).is_file():
        return positions
    return min(positions, int(read_json(folder / TOKENIZER_CONFIG).get("model_max_length") or positions))


# A change rebuilds cached graphs. 3: a model's configuration and the names of its weights decide whether it has one.
GRAPH_VERSION = f"{VERSION}, cross-encoder 3"

# A reranker's quantised graph is compared with its exact graph on these: passages that answer, do not answer, are empty
# or are too long.
_QUESTIONS = ("What do sea otters eat?", "How thick is the ice of a glacier?")
_PASSAGES = (
    "Sea otters eat urchins, clams and crabs, which they open with stones.",
    "The glacier's ice is 120 metres thick at its tongue and melts by two metres a year.",
    "Kelp grows in cold water.",
    "We thank the reviewers for their comments.",
    "",
    "Sea otters float in kelp, and where they are hunted the urchins eat it. " * 60,
)
CHECK_PAIRS = tuple((question, passage) for question in _QUESTIONS for passage in _PASSAGES)
# For each label, the root mean square error of the quantised graph's logits may be this share of their standard
# deviation. Otherwise the exact graph is used.
QUANTISED_TOLERANCE = 0.05


class CrossEncoder:
    """A cross-encoder, whatever its labels mean; loaded on first use.

    folder: the model's files. otherwise: the setting that works without the model. check_pairs: pairs to check a new
    graph with. cache: the folder for the graph; None for no cache.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        otherwise: str,
        check_pairs: Sequence[Pair],
        cache: Path | None = None,
    ) -> None:
        self.folder = folder
        self.name = name
        self._otherwise = otherwise
        self._check_pairs = check_pairs
        self._cache = cache
        self._model: PairModel | None = None
        self._lock = Lock()

    def load(self) -> PairModel:
        """The model. Builds and caches its graph on the first call. Raises ModelMissing."""
        with self._lock:
            if self._model is None:
                self._model = self._load()
            return self._model

    def unusable(self, reason: str) -> ModelMissing:
        """The error for unusable files. reason: completes "... cannot be loaded: "."""
        return ModelMissing(
            f"The cross-encoder in {self.folder} cannot be loaded: {reason}.",
            f"Delete the folder and run `{fetch_command(self.name)}`, or set {self._otherwise}.",
        )

    def _load(self) -> PairModel:
        """The model on onnxruntime if it has a graph, otherwise on sentence-transformers. Raises ModelMissing."""
        path_hash = hashlib.sha256(os.path.abspath(self.folder).encode()).hexdigest()[:8]
        cached = OnnxCache.read(self._cache, f"{self.folder.name}-{path_hash}")
        names = (CONFIG, WEIGHTS, TOKENIZER, TOKENIZER_CONFIG)
        if changed := changed_file(self.folder):
            raise self.unusable(f"{changed} has changed since it was downloaded")
        try:
            sources = cached.hash_sources([self.folder / name for name in names])
        except OSError:  # sentence-transformers accepts other file names, and otherwise reports the problem
            return self._torch_model()
        if cached.matches(GRAPH_VERSION, sources):
            if content := cached.load():
                return OnnxPairs(self.folder, content)
            if not cached.digest:
                return self._torch_model()
        content, reason = self._build_graph()
        cached.save(GRAPH_VERSION, sources, content)
        return OnnxPairs(self.folder, content) if content else self._torch_model(reason)

    def _build_graph(self) -> tuple[bytes, str]:
        """The graph, quantised if that is accurate enough; or b"" and the reason for none. Raises ModelMissing.

        tests/models/test_cross_encoder.py compares the exact graph with sentence-transformers.
        """
        try:
            sizes, tensors = read_model(self.folder)
            exact = build_graph(tensors, sizes, 0, classifier=True)
            quantised = build_graph(tensors, sizes, 2, classifier=True)
            expected = self._check(exact)
            error = self._check(quantised) - expected
            tolerance = QUANTISED_TOLERANCE * expected.std(axis=0)
            return (quantised if (np.sqrt((error**2).mean(axis=0)) <= tolerance).all() else exact), ""
        except ModuleNotFoundError as error:
            raise ModelMissing(
                f"The cross-encoder in {self.folder} has not been prepared yet, which needs the package {error.name}.",
                f"Run `{install_command('cross-encoders')}`, or set {self._otherwise}.",
            ) from error
        except Exception as error:  # a model of another type, for which each package has its own errors
            return b"", one_line(str(error)).rstrip(".") or type(error).__name__

    def _check(self, graph: bytes) -> Vectors:
        return np.stack(list(OnnxPairs(self.folder, graph).logits(self._check_pairs)))

    def _torch_model(self, reason: str = "it is of another type") -> PairModel:
        """reason: for there being no graph."""
        try:
            return TorchPairs(self.folder)
        except ModuleNotFoundError as error:
            raise ModelMissing(
                f"The cross-encoder in {self.folder} cannot run as a graph ({reason[:160]}), and {error.name}, which"
                " may run it, is not installed.",
                f"Run `{install_command('torch')}`, or set {self._otherwise}.",
            ) from error
        except Exception as error:  # each package has its own errors for files that it cannot read
            raise self.unusable(one_line(str(error)).rstrip(".")[:160]) from error


class CrossEncoderReranker:
    """A cross-encoder with one label, the relevance of a passage to a question. The first question loads the model.

    folder, cache: see CrossEncoder.
    """

    reads: int | None = 20  # each needs a run of the model

    def __init__(self, folder: Path, name: str, cache: Path | None = None) -> None:
        self.name = name
        self._encoder = CrossEncoder(folder, name, otherwise="RERANKER=builtin", check_pairs=CHECK_PAIRS, cache=cache)

    def scores(self, question: Question, hits: Sequence[Hit], weights: TermWeights) -> list[float]:
        """A relevance from 0 to 1 for each hit: the sigmoid of the model's logit. Raises ModelMissing."""
        model = self._encoder.load()
        rows = list(model.logits([(question.text, encodable(hit.text)) for hit in hits]))
        if any(len(row) != 1 for row in rows):
            raise self._encoder.unusable(f"it has {len(rows[0])} labels, and a reranker has one")
        return [1 / (1 + math.exp(-float(row[0]))) for row in rows]

    def load(self) -> None:
        """Load the model. Builds and caches its graph if needed. Raises ModelMissing."""
        self._encoder.load()


def encodable(text: str) -> str:
    """The text with a character for each lone surrogate: PDFs have some, and tokenizers refuse them."""
    return text.encode("utf-8", "replace").decode("utf-8")


# A statement must leave room for this many tokens of the premise. A longer statement is not judged.
MIN_PREMISE_TOKENS = 32
_PREMISES = (
    "Sea otters eat urchins, clams and crabs, which they open with stones.",
    "The glacier's ice is 120 metres thick at its tongue and melts by two metres a year.",
    "We thank the reviewers for their comments. Kelp grows in cold water, but not below 20 metres.",
    "",
    "Sea otters float in kelp, and where they are hunted the urchins eat it. " * 60,
)
_STATEMENTS = (
    "Otters eat clams.",
    "Sea otters do not eat urchins.",
    "The ice is 120 metres thick.",
    "Kelp is an alga.",
)
NLI_CHECK_PAIRS = tuple((premise, statement) for premise in _PREMISES for statement in _STATEMENTS)

_Meaning = Literal["entails", "contradicts", "neither"]
# The beginning of a label's name -> the label's meaning; the first match wins
_MEANINGS: tuple[tuple[str, _Meaning], ...] = (
    (r"(not|non|un|in|no)[_\W]*(entail|support|consistent|grounded|faithful|factual)", "neither"),
    (r"entail|support|consistent|grounded|faithful|factual", "entails"),
    (r"contradict|refut", "contradicts"),
    (r"neutral|hallucinat", "neither"),
)
# The two labels of a groundedness model without names, such as MiniCheck
_UNNAMED = (["0", "1"], ["LABEL_0", "LABEL_1"])
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Labels:
    """The meaning of a model's logits."""

    count: int
    entails: int
    contradicts: int | None = None  # None for a groundedness model


def read_labels(names: Sequence[str]) -> Labels:
    """The labels of a model from their names, in any order and case. Raises ValueError if they are not those of NLI.

    In a model with one label, or with two without names, the last label means that the statement is supported.
    """
    if len(names) == 1 or list(names) in _UNNAMED:
        return Labels(len(names), len(names) - 1)
    meanings = [_meaning(name) for name in names]
    if meanings.count("entails") != 1 or meanings.count("contradicts") > 1 or None in meanings:
        raise ValueError(f"its labels are {', '.join(names)}, not entailment, neutral and contradiction")
    contradicts = meanings.index("contradicts") if "contradicts" in meanings else None
    return Labels(len(names), meanings.index("entails"), contradicts)


def _meaning(name: str) -> _Meaning | None:
    return next((meaning for pattern, meaning in _MEANINGS if re.match(pattern, name.strip(), re.I)), None)


class NliVerifier:
    """An NLI or groundedness cross-encoder as a verifier, without a server. The first claim loads the model.

    The meaning of the labels comes from their names in config.json. folder, cache: see CrossEncoder.
    """

    def __init__(self, folder: Path, name: str, cache: Path | None = None) -> None:
        self.name = name
        self._encoder = CrossEncoder(folder, name, otherwise="VERIFIER=none", check_pairs=NLI_CHECK_PAIRS, cache=cache)

    def load(self) -> None:
        """Load the model. Builds and caches its graph if needed. Raises ModelMissing."""
        self._labels()
        self._encoder.load()

    def is_judge(self) -> bool:
        """See protocols.Verifier. This one was made for it."""
        return True

    def for_answer(self, start: PromptStart) -> NliVerifier:
        """See protocols.Verifier. This verifier has no prompt."""
        return self

    def entails(self, claims: Sequence[Claim]) -> Iterator[Entailment]:
        """See protocols.Verifier. A long premise is read in parts, and the best part counts.

        The verdict is not known for a claim without words, or with a statement that is too long. The title is not read:
        a statement that repeats it would seem to follow from any sentence of the paper. Raises ModelMissing.
        """
        labels = self._labels()
        model = self._encoder.load()
        parts = [_pairs(claim, model) for claim in claims]
        logits = model.logits([pair for pairs in parts for pair in pairs])
        for pairs in parts:
            yield _verdict(np.stack([next(logits) for _ in pairs]), labels) if pairs else Entailment(None)

    def _labels(self) -> Labels:
        try:
            names = read_json(self._encoder.folder / CONFIG).get("id2label") or dict(enumerate(_UNNAMED[1]))
            return read_labels([str(names[key]) for key in sorted(names, key=int)])
        except (OSError, ValueError, AttributeError, TypeError) as error:
            raise self._encoder.unusable(one_line(str(error))[:160]) from error


def _pairs(claim: Claim, model: PairModel) -> list[Pair]:
    """The model's input for a claim: each part of the premise with the whole statement."""
    premise, statement = encodable(claim.premise).strip(), encodable(claim.statement).strip()
    room = model.max_tokens - model.special_tokens - model.count_tokens(statement)
    if not (premise and statement) or room < MIN_PREMISE_TOKENS:
        return []
    return [(part, statement) for part in _split(premise, room, model)]


def _split(premise: str, room: int, model: PairModel) -> list[str]:
    """The premise in parts of whole sentences, at most `room` tokens each. Neighbours share a sentence."""
    if model.count_tokens(premise) <= room:
        return [premise]
    spans = [piece for span in sentence_spans(premise) for piece in _pieces(premise, *span, room, model)]
    starts, ends = [start for start, _ in spans], [end for _, end in spans]

    def fits(first: int, last: int) -> bool:
        return model.count_tokens(premise[starts[first] : ends[last]]) <= room

    parts, first, last = [], 0, 0
    while True:
        while last + 1 < len(spans) and fits(first, last + 1):
            last += 1
        parts.append(premise[starts[first] : ends[last]])
        if last + 1 == len(spans):
            return parts
        first, last = (last, last + 1) if fits(last, last + 1) else (last + 1, last + 1)


def _pieces(text: str, start: int, end: int, room: int, model: PairModel) -> list[tuple[int, int]]:
    """The span of a sentence; if that is too long, the spans of its words, or of parts of words."""
    if end - start < 2 or model.count_tokens(text[start:end]) <= room:
        return [(start, end)]
    spans = [word.span() for word in _WORD.finditer(text, start, end)]
    if len(spans) < 2:
        middle = (start + end) // 2
        spans = [(start, middle), (middle, end)]
    return [piece for span in spans for piece in _pieces(text, *span, room, model)]


def _verdict(logits: Vectors, labels: Labels) -> Entailment:
    """The verdict from each part's logits, shape (parts, labels).

    A contradiction in one part counts only as far as no other part entails the statement.
    """
    if labels.count == 1:
        return Entailment(float((1 / (1 + np.exp(-logits.astype(np.float64)))).max()))
    odds = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    shares = odds / odds.sum(axis=1, keepdims=True)
    entails = float(shares[:, labels.entails].max())
    contradicts = 0.0 if labels.contradicts is None else float(shares[:, labels.contradicts].max())
    return Entailment(entails, min(contradicts, 1 - entails))
