"""A cross-encoder from local files: a model that reads question and passage together and scores the pair.

A BERT-type model runs on onnxruntime, as a graph that is built once and cached (bert_onnx.py, onnx_cache.py). A new
graph is compared with sentence-transformers on the same files. If they disagree, or the model is of another type,
sentence-transformers runs it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from folio.errors import ModelMissing, fetch_command
from folio.files import sha256_file, write_json
from folio.models.bert_onnx import TABLES, VERSION, Sizes, build_graph
from folio.models.onnx_cache import OnnxCache
from folio.models.onnx_session import Ids, OnnxEncoder, read_tensors
from folio.protocols import TermWeights
from folio.types import Hit, Vectors

Pair = tuple[str, str]  # a question and a passage
Scorer = Callable[[Sequence[Pair]], Vectors]  # one logit for each pair

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
DIGESTS = "sha256.json"  # of the files as they were downloaded; a folder that somebody else filled has none
# One of these must exist: without them transformers silently creates a tokenizer with an empty vocabulary.
TOKENIZERS = (TOKENIZER, "vocab.txt")

# A new graph is checked with these: passages that answer, that do not, that are empty and that are too long.
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
# The exact graph's logits may differ from those of sentence-transformers by this share of the largest.
EXACT_TOLERANCE = 1e-3
# The root mean square difference of the quantised graph's logits may be this share of their standard deviation.
# Otherwise the exact graph is used.
QUANTISED_TOLERANCE = 0.05


def find_model(name: str, models: Path) -> Path | None:
    """The folder of a cross-encoder: `name` as a path, in `models`, or in Hugging Face's cache. None if not found.

    Uses no network, and not Hugging Face's package, which takes a quarter of a second to import. A relative path begins
    with a dot: the name of a model must not lead into the current folder, which may be one of papers.
    """
    is_path = name.startswith(".") or Path(name).is_absolute()
    folders = [Path(name)] if is_path else [models / name.rpartition("/")[2]]
    try:
        cached = _hub_cache() / f"models--{name.replace('/', '--')}"
        if (cached / "refs" / "main").is_file():
            folders.append(cached / "snapshots" / (cached / "refs" / "main").read_text(encoding="utf-8").strip())
        return next((folder for folder in folders if (folder / CONFIG).is_file()), None)
    except (OSError, ValueError):  # a name that no file can have
        return None


def _hub_cache() -> Path:
    """As in https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables."""
    if folder := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(folder).expanduser()
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    return Path(home, "hub").expanduser()


def record_digests(folder: Path) -> None:
    """Record the SHA-256 of each file of a model that has just been downloaded, so that a change is noticed."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and ".cache" not in path.parts)
    write_json(folder / DIGESTS, {path.relative_to(folder).as_posix(): sha256_file(path) for path in files})


class CrossEncoderReranker:
    """A cross-encoder with one label. The first question loads the model.

    folder: the model's files. cache: the folder for its graph; None for no cache. threads: see OnnxEncoder.
    """

    reads: int | None = 20  # each costs a run of the model

    def __init__(self, folder: Path, name: str, cache: Path | None = None, threads: int = 0) -> None:
        self.name = name
        self._folder = folder
        self._cache = cache
        self._threads = threads
        self._scorer: Scorer | None = None

    def scores(self, question: str, hits: Sequence[Hit], weights: TermWeights) -> list[float]:
        """A relevance from 0 to 1 for each hit: the sigmoid of the model's logit. Raises ModelMissing."""
        self.load()
        assert self._scorer is not None
        # PDFs contain lone surrogates, which tokenizers refuse; each is replaced by one character, so offsets stay.
        pairs = [(question, hit.text.encode("utf-8", "replace").decode("utf-8")) for hit in hits]
        return [1 / (1 + math.exp(-float(logit))) for logit in self._scorer(pairs)] if pairs else []

    def load(self) -> None:
        """Load the model; build and cache its graph if it is not cached. Raises ModelMissing."""
        if self._scorer is None:
            self._scorer = self._load_scorer()

    def _load_scorer(self) -> Scorer:
        """The model on onnxruntime if its graph is right, else on sentence-transformers. Raises ModelMissing."""
        path_hash = hashlib.sha256(os.path.abspath(self._folder).encode()).hexdigest()[:8]
        cached = OnnxCache.read(self._cache, f"{self._folder.name}-{path_hash}")
        names = (CONFIG, WEIGHTS, TOKENIZER, TOKENIZER_CONFIG)
        self._require_unchanged()
        try:
            sources = cached.hash_sources([self._folder / name for name in names])
        except OSError:  # sentence-transformers accepts other file names, and reports what is wrong if it cannot
            return self._torch_scorer()
        if cached.matches(VERSION, sources):
            if content := cached.load():
                return _onnx_scorer(self._folder, content, self._threads)
            if not cached.digest:
                return self._torch_scorer()
        reference = self._torch_scorer()
        content = self._build_graph(reference(CHECK_PAIRS))
        cached.save(VERSION, sources, content)
        return _onnx_scorer(self._folder, content, self._threads) if content else reference

    def _require_unchanged(self) -> None:
        """Raise ModelMissing if a file is not as it was downloaded, as far as that was recorded."""
        record = self._folder / DIGESTS
        if not record.exists():
            return
        try:
            changed = next((name for name, digest in _json(record).items() if not self._is(name, digest)), "")
        except (OSError, ValueError, AttributeError):
            changed = DIGESTS
        if changed:
            raise self._unusable(f"{changed} is not as it was downloaded")

    def _is(self, name: str, digest: str) -> bool:
        return (self._folder / name).is_file() and sha256_file(self._folder / name) == digest

    def _unusable(self, reason: str) -> ModelMissing:
        return ModelMissing(
            f"The cross-encoder in {self._folder} cannot be loaded: {reason}.",
            f"Delete the folder and run `{fetch_command(self.name)}`, or set RERANKER=builtin.",
        )

    def _build_graph(self, expected: Vectors) -> bytes:
        """A graph with the expected logits for CHECK_PAIRS, quantised if that is accurate enough; b"" if there is none.

        expected: the logits of sentence-transformers.
        """
        try:
            sizes, tensors = _read_model(self._folder)
            exact = build_graph(tensors, sizes, 0, classifier=True)
            error = _onnx_scorer(self._folder, exact, self._threads)(CHECK_PAIRS) - expected
            if not np.abs(error).max() <= EXACT_TOLERANCE * max(1.0, float(np.abs(expected).max())):
                return b""
            quantised = build_graph(tensors, sizes, 2, classifier=True)
            error = _onnx_scorer(self._folder, quantised, self._threads)(CHECK_PAIRS) - expected
            return quantised if np.sqrt((error**2).mean()) <= QUANTISED_TOLERANCE * expected.std() else exact
        except Exception:  # not a BERT-type model; each package has errors of its own for that
            return b""

    def _torch_scorer(self) -> Scorer:
        import torch
        from sentence_transformers import CrossEncoder
        from transformers.utils import logging

        logging.disable_progress_bar()
        logging.set_verbosity(logging.CRITICAL)  # errors are reported below, in one sentence
        try:
            if not any((self._folder / name).is_file() for name in TOKENIZERS):
                raise FileNotFoundError(f"it has none of {', '.join(TOKENIZERS)}")
            model = CrossEncoder(
                str(self._folder), device="cpu", local_files_only=True, activation_fn=torch.nn.Identity()
            )
        except Exception as error:  # each package has errors of its own for files it cannot read
            reason = " ".join(str(error).split()).rstrip(".")
            raise self._unusable(reason[:160]) from error
        return lambda pairs: np.asarray(model.predict(list(pairs), show_progress_bar=False), dtype=np.float32)


def _read_model(folder: Path) -> tuple[Sizes, dict[str, Vectors]]:
    """A model's sizes and weights. Raises ValueError, KeyError or OSError if it is not of BERT's type."""
    config = _json(folder / CONFIG)
    required = {"model_type": "bert", "hidden_act": "gelu", "architectures": ["BertForSequenceClassification"]}
    if any(config[key] != value for key, value in required.items()):
        raise ValueError("not a BERT-type model")
    sizes = Sizes(
        config["num_hidden_layers"],
        config["num_attention_heads"],
        config["hidden_size"],
        config["layer_norm_eps"],
    )
    tensors = {name.removeprefix("bert."): value for name, value in read_tensors(folder / WEIGHTS).items()}
    if len(tensors["classifier.bias"]) != 1:
        raise ValueError("more than one label")
    return sizes, tensors


def _onnx_scorer(folder: Path, content: bytes, threads: int) -> Scorer:
    from tokenizers import Tokenizer

    tensors = read_tensors(folder / WEIGHTS)
    words, positions, types = (tensors[f"bert.embeddings.{table}_embeddings.weight"] for table in TABLES)
    encoder = OnnxEncoder(content, words, positions, types, threads)
    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    max_tokens = min(
        _json(folder / CONFIG)["max_position_embeddings"], _json(folder / TOKENIZER_CONFIG)["model_max_length"]
    )
    tokenizer.enable_truncation(max_tokens, strategy="longest_first")
    tokenizer.no_padding()

    def run(row: tuple[Ids, Ids]) -> float:
        return float(encoder.run(*row)[0, 0])

    def score(pairs: Sequence[Pair]) -> Vectors:
        encodings = tokenizer.encode_batch(list(pairs))
        rows = [(np.array(one.ids, dtype=np.int32), np.array(one.type_ids, dtype=np.int32)) for one in encodings]
        return np.fromiter(encoder.map(run, rows), dtype=np.float32, count=len(rows))

    return score


def _json(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value
