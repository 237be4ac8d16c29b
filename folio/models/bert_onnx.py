"""ONNX graphs of BERT-type models: built from a model's files, which this module finds, and cached.

Architecture: BERT (Devlin et al. 2019, https://arxiv.org/abs/1810.04805), for the encoder of all-MiniLM-L6-v2 and for
cross-encoders with their classifier. A graph reads one text at a time, without padding: a text's hidden states depend
only on that text, and attention needs no mask, which is faster.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import get_ident
from time import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from folio.papers.model import Vectors
from folio.system.files import sha256_file, sync, write_json

if TYPE_CHECKING:
    from onnx import NodeProto


# Version of the graphs. A change rebuilds cached graphs, and stored vectors of another version no longer match.
VERSION = "int8-1"

# The largest quantised weight. Eight bits allow 127, but then sums of two products overflow on processors without VNNI,
# which add them in 16 bits (onnxruntime's "reduce_range"), and the vectors would depend on the processor.
MAX_WEIGHT = 63

# The names of the embedding tables in safetensors files
TABLES = ("word", "position", "token_type")
# The files of a model
CONFIG = "config.json"
WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
DIGESTS = "sha256.json"  # of the downloaded files; missing in a folder that somebody else filled
# The folder for graphs, in MODELS_DIR
GRAPHS = "onnx"
_STALE_S = 600  # seconds after which the temporary file of a killed process is removed


class _InputRange(NamedTuple):
    """How to quantise an input to eight bits, after dividing each token's values by its largest."""

    step: float
    zero: int  # the quantised 0
    min_divisor: float


SIGNED = _InputRange(1 / 127, 128, 1e-6)
# GELU never returns less than -0.17, so nearly all of the 256 values can be positive numbers.
AFTER_GELU = _InputRange(1 / 235, 20, 2.0)


@dataclass(frozen=True, slots=True)
class Sizes:
    """A model's dimensions, from its config.json."""

    layers: int
    heads: int
    dimension: int
    epsilon: float  # of the layer normalisations


class _Graph:
    """An ONNX graph under construction. The com.microsoft operators are onnxruntime's fused ones."""

    def __init__(self, tensors: Mapping[str, Vectors], sizes: Sizes, terms: int) -> None:
        self.tensors = tensors
        self.sizes = sizes
        self.terms = terms
        self.constants: dict[str, npt.NDArray[Any]] = {}  # the weights and constants that nodes refer to
        self.nodes: list[NodeProto] = []

    def weight(self, name: str) -> str:
        return self.constant(name, self.tensors[name])

    def constant(self, name: str, value: npt.NDArray[Any]) -> str:
        self.constants[name] = value
        return name

    def add(self, operator: str, inputs: Sequence[str], name: str, domain: str = "", **attributes: Any) -> str:
        """Add a node; returns the name of its output."""
        from onnx import helper

        self.nodes.append(helper.make_node(operator, inputs, [name], domain=domain, **attributes))
        return name

    def layer_norm(self, x: str, module: str) -> str:
        norm = [self.weight(f"{module}.{part}") for part in ("weight", "bias")]
        return self.add("LayerNormalization", [x, *norm], f"{module}.normed", axis=-1, epsilon=self.sizes.epsilon)

    def float_linear(self, x: str, module: str, *, bias: bool = True) -> str:
        """x W^T, plus the bias unless the next operator adds it."""
        inputs = [x, self.weight(f"{module}.weight"), *([self.weight(f"{module}.bias")] if bias else [])]
        return self.add("Gemm", inputs, f"{module}.product", transB=1)

    def linear(self, x: str, module: str, input_range: _InputRange = SIGNED, *, bias: bool = True) -> str:
        """Like float_linear, quantised if the graph is."""
        if not self.terms:
            return self.float_linear(x, module, bias=bias)
        steps, zero, largest, rounded = self.quantise(x, input_range)
        rest = self.tensors[f"{module}.weight"]
        products = []
        for term in range(self.terms):
            step = (np.abs(rest).max(axis=1) / MAX_WEIGHT).astype(np.float32)  # one for each output
            step[step == 0] = 1
            whole = np.rint(rest / step[:, None])
            rest = rest - whole * step[:, None]
            name = f"{module}.{term}"
            weights = [self.constant(f"{name}.whole", np.ascontiguousarray(whole.astype(np.int8).T)), steps]
            factors = [rounded, *weights, self.constant(f"{name}.step", step), zero]
            products.append(self.add("MatMulIntegerToFloat", factors, f"{name}.product", domain="com.microsoft"))
        product = self.add("Sum", products, f"{module}.sum") if len(products) > 1 else products[0]
        product = self.add("Mul", [product, largest], f"{module}.product")
        return self.add("Add", [product, self.weight(f"{module}.bias")], f"{module}.biased") if bias else product

    def quantise(self, x: str, input_range: _InputRange) -> tuple[str, str, str, str]:
        """The names of x's step, its zero point, each token's divisor, and x in eight bits.

        Each token has its own scale: a few tokens of a text have values ten times as large as the others.
        """
        step, zero, min_divisor = input_range
        steps = self.constant(f"step.{zero}", np.array(step, np.float32))
        zeros = self.constant(f"zero.{zero}", np.array(zero, np.uint8))
        if not any(f"{x}.rounded" in node.output for node in self.nodes):  # queries and keys share one
            sizes = self.add("Abs", [x], f"{x}.sizes") if input_range == SIGNED else x
            largest = self.add("ReduceMax", [sizes], f"{x}.most", axes=[1], keepdims=1)
            floor = self.constant(f"least.{zero}", np.array([[min_divisor]], np.float32))
            largest = self.add("Max", [largest, floor], f"{x}.largest")
            scaled = self.add("Div", [x, largest], f"{x}.scaled")
            self.add("QuantizeLinear", [scaled, steps, zeros], f"{x}.rounded")
        return steps, zeros, f"{x}.largest", f"{x}.rounded"

    def attention(self, queries: str, x: str, module: str) -> str:
        """Multi-head attention from the tokens of `queries` to those of x; shape (query tokens, dimension).

        The value projection is never quantised: errors in its weights are the same in every token and do not cancel.
        This costs a tenth of the time and removes a third of the error.
        """
        parts = [f"{module}.{part}" for part in ("query", "key", "value")]
        products = [
            self.linear(queries, parts[0], bias=False),
            self.linear(x, parts[1], bias=False),
            self.float_linear(x, parts[2], bias=False),
        ]
        bias = np.concatenate([self.tensors[f"{part}.bias"] for part in parts])
        heads = [self.add("Unsqueeze", [product, "first"], f"{product}.heads") for product in products]
        inputs = [*heads, self.constant(f"{module}.bias", bias)]
        count = self.sizes.heads
        context = self.add("MultiHeadAttention", inputs, f"{module}.out", domain="com.microsoft", num_heads=count)
        return self.add("Squeeze", [context, "first"], f"{module}.flat")

    def layer(self, x: str, module: str, *, only_first: bool = False) -> str:
        """One transformer layer. BiasGelu is the exact GELU, with the error function, as in training.

        only_first: compute only the first token's state, for a classifier.
        """
        queries = self.add("Gather", [x, "first"], "first_token", axis=0) if only_first else x
        attended = self.attention(queries, x, f"{module}.attention.self")
        attended = self.linear(attended, f"{module}.attention.output.dense")
        attended = self.add("Add", [attended, queries], f"{module}.attention.sum")
        x = self.layer_norm(attended, f"{module}.attention.output.LayerNorm")
        inner = self.linear(x, f"{module}.intermediate.dense", bias=False)
        inputs = [inner, self.weight(f"{module}.intermediate.dense.bias")]
        inner = self.add("BiasGelu", inputs, f"{module}.gelu", domain="com.microsoft")
        output = self.linear(inner, f"{module}.output.dense", AFTER_GELU)
        output = self.add("Add", [output, x], f"{module}.sum")
        return self.layer_norm(output, f"{module}.output.LayerNorm")

    def classify(self, x: str) -> str:
        """The classifier's logits, shape (1, labels), from the state of the first token."""
        pooled = self.add("Tanh", [self.float_linear(x, "pooler.dense")], "pooled")
        return self.float_linear(pooled, "classifier")


def build_graph(tensors: Mapping[str, Vectors], sizes: Sizes, terms: int, *, classifier: bool = False) -> bytes:
    """A serialised ONNX model with its weights, but without the embedding tables.

    Input "embedded": float32 (tokens, dimension), the sum of a text's word, position and type embeddings. Output "out":
    the last hidden states (tokens, dimension), or with a classifier its logits (1, labels). The same weights always
    give the same bytes.

    terms: number of 8-bit integers whose sum represents most weights; 0 quantises nothing. 1 takes less than half the
    time, with a mean cosine of 0.998 to the exact vectors of all-MiniLM-L6-v2. 2 takes three quarters of the time and
    leaves only the error of the quantised inputs: accurate enough for a cross-encoder, whose best passages often have
    close scores. See LOG.md.
    """
    import onnx
    from onnx import helper, numpy_helper

    builder = _Graph(tensors, sizes, terms)
    builder.constant("first", np.array([0], dtype=np.int64))
    x = builder.layer_norm("embedded", "embeddings.LayerNorm")
    for layer in range(sizes.layers):
        x = builder.layer(x, f"encoder.layer.{layer}", only_first=classifier and layer == sizes.layers - 1)
    builder.add("Identity", [builder.classify(x) if classifier else x], "out")
    floats = onnx.TensorProto.FLOAT
    proto = helper.make_graph(
        builder.nodes,
        "bert",
        [helper.make_tensor_value_info("embedded", floats, ["tokens", sizes.dimension])],
        [helper.make_tensor_value_info("out", floats, ["rows", None])],
        [numpy_helper.from_array(np.ascontiguousarray(value), name) for name, value in builder.constants.items()],
    )
    # Fixed versions: the defaults of a newer onnx package may be too new for an older onnxruntime.
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    content: bytes = helper.make_model(proto, opset_imports=opsets, ir_version=8).SerializeToString(deterministic=True)
    return content


@dataclass(frozen=True, slots=True)
class Source:
    """A file that a graph was built from, at the time of hashing."""

    path: str  # absolute
    size: int
    mtime_ns: int
    sha256: str


@dataclass(frozen=True, slots=True)
class OnnxCache:
    """The cached graph of a name, with its JSON record: its version, and size, time and SHA-256 of each source file.

    A graph that is missing, damaged or built from other sources counts as absent. Files are replaced atomically, so
    processes may share the folder. Nothing is cached if the folder is None or not writable.
    """

    folder: Path | None
    name: str
    version: str = ""
    digest: str = ""  # SHA-256 of the graph; "" if none can be built from these sources
    sources: tuple[Source, ...] = ()

    @classmethod
    def read(cls, folder: Path | None, name: str) -> OnnxCache:
        """Never raises: a record that cannot be read counts as absent."""
        if folder is None:
            return cls(None, name)
        try:
            record: dict[str, Any] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
            sources = tuple(Source(**source) for source in record["sources"])
            return cls(folder, name, str(record["version"]), str(record["graph"]), sources)
        except (OSError, ValueError, TypeError, KeyError):
            return cls(folder, name)

    def hash_sources(self, paths: Sequence[Path]) -> tuple[Source, ...]:
        """The current state of these files. Hashes only files whose size or time has changed. Raises OSError."""
        known = {(source.path, source.size, source.mtime_ns): source for source in self.sources}
        hashed = []
        for path in paths:
            status = path.stat()
            key = (os.path.abspath(path), status.st_size, status.st_mtime_ns)
            hashed.append(known.get(key) or Source(*key, sha256_file(path)))
        return tuple(hashed)

    def matches(self, version: str, sources: Sequence[Source]) -> bool:
        """Whether this version built the graph from files with these contents."""
        return self.version == version and [s.sha256 for s in self.sources] == [s.sha256 for s in sources]

    def load(self) -> bytes | None:
        """The graph; None if it is absent or its SHA-256 differs."""
        if self.folder is None or not self.digest:
            return None
        try:
            content = self._file(self.digest).read_bytes()
        except OSError:
            return None
        return content if hashlib.sha256(content).hexdigest() == self.digest else None

    def save(self, version: str, sources: Sequence[Source], content: bytes) -> None:
        """Replace the cached graph and its record. Empty content records that these sources give no graph.

        The record is written last and names the graph by its hash, so both always match. Never raises OSError.
        """
        if self.folder is None:
            return
        digest = hashlib.sha256(content).hexdigest() if content else ""
        entries = [{field: getattr(source, field) for field in Source.__slots__} for source in sources]
        record = json.dumps({"version": version, "graph": digest, "sources": entries}, indent=1)
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            if content:
                self._replace(self._file(digest), content)
            self._replace(self.folder / f"{self.name}.json", record.encode())
            self._remove_stale(self._file(digest))

    def _file(self, digest: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{self.name}.{digest[:16]}.onnx"

    def _replace(self, path: Path, content: bytes) -> None:
        temporary = path.with_name(f"{path.name}.{os.getpid()}-{get_ident()}.new")  # unique to this thread
        try:
            temporary.write_bytes(content)
            sync(temporary)
            os.replace(temporary, path)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            raise

    def _remove_stale(self, current: Path) -> None:
        """Remove replaced graphs and the temporary files of killed processes."""
        assert self.folder is not None
        for path in self.folder.glob(f"{self.name}.*"):
            is_replaced = path.suffix == ".onnx" and path != current
            is_abandoned = path.suffix == ".new" and path.stat().st_mtime < time() - _STALE_S
            if is_replaced or is_abandoned:
                path.unlink(missing_ok=True)


def find_model(name: str, models: Path) -> Path | None:
    """The folder of a cross-encoder: `name` as a path, in `models`, or in Hugging Face's cache. None if not found.

    Uses no network, and not Hugging Face's package, which takes a quarter of a second to import. A relative path begins
    with a dot: a model's name must not lead into the current folder, which may be a folder of papers.
    """
    is_path = name.startswith(".") or Path(name).is_absolute()
    folders = [Path(name)] if is_path else [models / name.rpartition("/")[2]]
    try:
        cached = _hub_cache() / f"models--{name.replace('/', '--')}"
        if (cached / "refs" / "main").is_file():
            folders.append(cached / "snapshots" / (cached / "refs" / "main").read_text(encoding="utf-8").strip())
        return next((folder for folder in folders if (folder / CONFIG).is_file()), None)
    except (OSError, ValueError, RuntimeError):  # a name that no file can have; no home folder
        return None


def _hub_cache() -> Path:
    """As in https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables."""
    if folder := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(folder).expanduser()
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    return Path(home, "hub").expanduser()


def record_digests(folder: Path) -> None:
    """Record the SHA-256 of each file of a model after its download, to detect changes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and ".cache" not in path.parts)
    write_json(folder / DIGESTS, {path.relative_to(folder).as_posix(): sha256_file(path) for path in files})


def changed_file(folder: Path) -> str:
    """The name of a file that has changed since its download, if that was recorded; "" if there is none."""
    record = folder / DIGESTS
    if not record.exists():
        return ""
    try:
        return next((name for name, digest in read_json(record).items() if not _is(folder / name, digest)), "")
    except (OSError, ValueError, AttributeError):
        return DIGESTS


def _is(path: Path, digest: str) -> bool:
    return path.is_file() and sha256_file(path) == digest


def read_json(path: Path) -> dict[str, Any]:
    """Raises OSError, ValueError."""
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value
