"""What runs a cross-encoder: its graph on onnxruntime, or sentence-transformers. Pairs of texts in, logits out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from folio.models.bert_onnx import TABLES, Sizes
from folio.models.model_files import CONFIG, TOKENIZER, TOKENIZER_CONFIG, WEIGHTS, read_json
from folio.models.onnx_session import Ids, OnnxEncoder, read_tensors
from folio.types import Vectors

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Pair = tuple[str, str]

# Without one of these files, transformers silently creates a tokenizer with an empty vocabulary.
TOKENIZERS = (TOKENIZER, "vocab.txt")
# model_type in config.json -> architecture, and what the names of the encoder's tensors begin with
_TYPES = {
    "bert": ("BertForSequenceClassification", "bert."),
    "roberta": ("RobertaForSequenceClassification", "roberta."),
    "xlm-roberta": ("XLMRobertaForSequenceClassification", "roberta."),
}
# The weights that a graph uses. A model with others is of another type.
_WEIGHTS = re.compile(
    r"(embeddings\.((word|position|token_type)_embeddings\.weight|LayerNorm\.(weight|bias))"
    r"|encoder\.layer\.\d+\.(attention\.self\.(query|key|value)|attention\.output\.(dense|LayerNorm)"
    r"|intermediate\.dense|output\.(dense|LayerNorm))\.(weight|bias)"
    r"|pooler\.dense\.(weight|bias)|classifier\.(weight|bias))"
)
_POSITIONS = "embeddings.position_embeddings.weight"
_POSITIONS_BY_DEFAULT = 512  # of a model whose config.json has no number
_TORCH_BATCH = 8  # pairs; the logits of each batch are there before the next one is run


class PairModel(Protocol):
    """A loaded cross-encoder."""

    max_tokens: int  # of a pair, special tokens included; longer pairs are truncated, the longer text first
    special_tokens: int  # in a pair

    def logits(self, pairs: Sequence[Pair]) -> Iterator[Vectors]:
        """Shape (labels,) for each pair, in order, as each is computed. The texts have no lone surrogates."""
        ...

    def count_tokens(self, text: str) -> int:
        """Tokens of a text, without special ones."""
        ...


class OnnxPairs:
    """A graph of bert_onnx.py, with the model's embedding tables and tokenizer."""

    def __init__(self, folder: Path, graph: bytes, threads: int = 0) -> None:
        from tokenizers import Tokenizer

        _, tensors = read_model(folder)
        words, positions, types = (tensors[f"embeddings.{table}_embeddings.weight"] for table in TABLES)
        self._encoder = OnnxEncoder(graph, words, positions, types, threads)
        self._has_types = len(types) > 1
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        # "[SEP]" in a paper is text: it must not end the text for the model.
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
    """sentence-transformers on the same files: slower to load, but for every type of model.

    Its packages raise errors of their own for files that they cannot read.
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

    RoBERTa is BERT with other names in its classifier, one type of token, and positions that are counted from behind
    that of padding (Liu et al. 2019, https://arxiv.org/abs/1907.11692).
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
