"""A cross-encoder from local files: a model that reads two texts together, as a reranker a question and a passage.

A model of BERT's or RoBERTa's type runs on onnxruntime, as a graph that is built once, with the package onnx, and
cached (bert_onnx.py, onnx_cache.py). A model of another type runs on sentence-transformers, where that is installed.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import numpy as np

from folio.errors import ModelMissing, fetch_command, install_command
from folio.models.bert_onnx import VERSION, build_graph
from folio.models.model_files import CONFIG, TOKENIZER, TOKENIZER_CONFIG, WEIGHTS, changed_file
from folio.models.onnx_cache import OnnxCache
from folio.models.pair_models import OnnxPairs, Pair, PairModel, TorchPairs, read_model
from folio.protocols import TermWeights
from folio.text import one_line
from folio.types import Hit, Vectors

# A change rebuilds cached graphs. 3: a model's configuration and the names of its weights decide whether it has one.
GRAPH_VERSION = f"{VERSION}, cross-encoder 3"

# A new reranker's quantised graph is compared with the exact one on these: passages that answer, that do not, that are
# empty and that are too long.
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
# The root mean square difference of the quantised graph's logits may be this share of their standard deviation, for
# each label. Otherwise the exact graph is used.
QUANTISED_TOLERANCE = 0.05


class CrossEncoder:
    """A cross-encoder, whatever its labels mean; loaded on first use.

    folder: the model's files. otherwise: the setting that does without it. check_pairs: what a new graph is checked
    with. cache: the folder for its graph; None for no cache. threads: see OnnxEncoder.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        otherwise: str,
        check_pairs: Sequence[Pair],
        cache: Path | None = None,
        threads: int = 0,
    ) -> None:
        self.folder = folder
        self.name = name
        self._otherwise = otherwise
        self._check_pairs = check_pairs
        self._cache = cache
        self._threads = threads
        self._model: PairModel | None = None
        self._lock = Lock()

    def load(self) -> PairModel:
        """The model; builds and caches its graph if it is not cached. Raises ModelMissing."""
        with self._lock:
            if self._model is None:
                self._model = self._load()
            return self._model

    def unusable(self, reason: str) -> ModelMissing:
        """The error for files that cannot be used; the reason completes "... cannot be loaded: "."""
        return ModelMissing(
            f"The cross-encoder in {self.folder} cannot be loaded: {reason}.",
            f"Delete the folder and run `{fetch_command(self.name)}`, or set {self._otherwise}.",
        )

    def _load(self) -> PairModel:
        """The model on onnxruntime if it has a graph, else on sentence-transformers. Raises ModelMissing."""
        path_hash = hashlib.sha256(os.path.abspath(self.folder).encode()).hexdigest()[:8]
        cached = OnnxCache.read(self._cache, f"{self.folder.name}-{path_hash}")
        names = (CONFIG, WEIGHTS, TOKENIZER, TOKENIZER_CONFIG)
        if changed := changed_file(self.folder):
            raise self.unusable(f"{changed} is not as it was downloaded")
        try:
            sources = cached.hash_sources([self.folder / name for name in names])
        except OSError:  # sentence-transformers accepts other file names, and reports what is wrong if it cannot
            return self._torch_model()
        if cached.matches(GRAPH_VERSION, sources):
            if content := cached.load():
                return OnnxPairs(self.folder, content, self._threads)
            if not cached.digest:
                return self._torch_model()
        content, reason = self._build_graph()
        cached.save(GRAPH_VERSION, sources, content)
        return OnnxPairs(self.folder, content, self._threads) if content else self._torch_model(reason)

    def _build_graph(self) -> tuple[bytes, str]:
        """The graph, quantised if that is accurate enough; or b"" and why there is none. Raises ModelMissing.

        tests/models/test_cross_encoder.py holds the exact graph against sentence-transformers.
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
        except Exception as error:  # a model of another type; each package has errors of its own for that
            return b"", one_line(str(error)).rstrip(".") or type(error).__name__

    def _check(self, graph: bytes) -> Vectors:
        return np.stack(list(OnnxPairs(self.folder, graph, self._threads).logits(self._check_pairs)))

    def _torch_model(self, reason: str = "it is of another type") -> PairModel:
        """reason: why there is no graph."""
        try:
            return TorchPairs(self.folder)
        except ModuleNotFoundError as error:
            raise ModelMissing(
                f"The cross-encoder in {self.folder} cannot run as a graph ({reason[:160]}), and {error.name}, which"
                " may run it, is not installed.",
                f"Run `{install_command('torch')}`, or set {self._otherwise}.",
            ) from error
        except Exception as error:  # each package has errors of its own for files it cannot read
            raise self.unusable(one_line(str(error)).rstrip(".")[:160]) from error


class CrossEncoderReranker:
    """A cross-encoder with one label: how well a passage answers a question. The first question loads the model.

    folder, cache, threads: see CrossEncoder.
    """

    reads: int | None = 20  # each costs a run of the model

    def __init__(self, folder: Path, name: str, cache: Path | None = None, threads: int = 0) -> None:
        self.name = name
        self._encoder = CrossEncoder(
            folder, name, otherwise="RERANKER=builtin", check_pairs=CHECK_PAIRS, cache=cache, threads=threads
        )

    def scores(self, question: str, hits: Sequence[Hit], weights: TermWeights) -> list[float]:
        """A relevance from 0 to 1 for each hit: the sigmoid of the model's logit. Raises ModelMissing."""
        model = self._encoder.load()
        rows = list(model.logits([(question, encodable(hit.text)) for hit in hits]))
        if any(len(row) != 1 for row in rows):
            raise self._encoder.unusable(f"it has {len(rows[0])} labels, and a reranker has one")
        return [1 / (1 + math.exp(-float(row[0]))) for row in rows]

    def load(self) -> None:
        """Load the model; build and cache its graph if it is not cached. Raises ModelMissing."""
        self._encoder.load()


def encodable(text: str) -> str:
    """The text without lone surrogates, which PDFs contain and tokenizers refuse.

    Each is replaced by one character, so offsets stay.
    """
    return text.encode("utf-8", "replace").decode("utf-8")
