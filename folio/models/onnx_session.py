"""Runs the graphs of bert_onnx.py on onnxruntime: token ids in, numbers out, several texts at once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from folio.types import Vectors

Ids = npt.NDArray[np.int32]
ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


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
    """A loaded graph and its embedding tables. It never changes, so any number of threads may share it.

    Embeddings are looked up here and not in the graph: the word table is half of a model, and only the rows in use
    are read from disk.
    """

    def __init__(self, graph: bytes, words: Vectors, positions: Vectors, types: Vectors, threads: int = 0) -> None:
        """words: (vocabulary, dimension). positions: (positions, dimension). types: (types, dimension).

        threads: how many texts to run at once; 0 for one per core.
        """
        # Some builds of onnxruntime report usage to Microsoft unless this is set before the import.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        import onnxruntime as ort  # type: ignore[import-untyped]

        options = ort.SessionOptions()
        # Texts run in parallel, each on one thread: threads that share one text mostly wait for each other.
        options.intra_op_num_threads = 1
        options.enable_mem_pattern = False  # it would plan and keep memory for every new text length
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
