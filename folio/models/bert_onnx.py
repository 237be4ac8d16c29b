"""BERT-type models as ONNX graphs: the encoder of all-MiniLM-L6-v2, and cross-encoders with their classifier.

Architecture: BERT (Devlin et al. 2019, https://arxiv.org/abs/1810.04805). A graph reads one text at a time: nothing is
padded, so no text's states depend on what is read beside it, and the attention needs no mask, which is its faster way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from folio.types import Vectors

if TYPE_CHECKING:
    from onnx import NodeProto

# Which way of making graphs this is: one that was kept from another is made anew, and vectors of another do not match.
VERSION = "int8-1"

# The largest whole number of a rounded weight. Eight bits would have 127, but processors without VNNI add two products
# in 16 bits and overflow there (onnxruntime's "reduce_range"): the vectors would depend on the processor.
LARGEST = 63
# A rounded input is divided by its token's largest number, and is then a whole number of these: (step, zero, least
# that it is divided by). What comes out of GELU is never below -0.17, so that nearly all of the 256 numbers are free
# for what is above 0.
SIGNED = (1 / 127, 128, 1e-6)
AFTER_GELU = (1 / 235, 20, 2.0)

# The tables of embeddings, by what they are of.
TABLES = ("word", "position", "token_type")


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a model's config.json says of its network."""

    layers: int
    heads: int
    dimension: int
    epsilon: float  # of the layer normalisations


class _Graph:
    """An ONNX graph in the making. Operators of com.microsoft are onnxruntime's fused ones."""

    def __init__(self, tensors: Mapping[str, Vectors], sizes: Sizes, terms: int) -> None:
        self.tensors = tensors
        self.sizes = sizes
        self.terms = terms
        self.held: dict[str, npt.NDArray[Any]] = {}  # the weights and constants that the nodes refer to
        self.nodes: list[NodeProto] = []

    def weight(self, name: str) -> str:
        return self.constant(name, self.tensors[name])

    def constant(self, name: str, value: npt.NDArray[Any]) -> str:
        self.held[name] = value
        return name

    def add(self, operator: str, inputs: Sequence[str], name: str, domain: str = "", **attributes: Any) -> str:
        """One node; returns the name of its output."""
        from onnx import helper

        self.nodes.append(helper.make_node(operator, inputs, [name], domain=domain, **attributes))
        return name

    def normed(self, x: str, module: str) -> str:
        norm = [self.weight(f"{module}.{part}") for part in ("weight", "bias")]
        return self.add("LayerNormalization", [x, *norm], f"{module}.normed", axis=-1, epsilon=self.sizes.epsilon)

    def exact(self, x: str, module: str, *, bias: bool = True) -> str:
        """x W^T, and the bias unless the operator that follows adds it."""
        inputs = [x, self.weight(f"{module}.weight"), *([self.weight(f"{module}.bias")] if bias else [])]
        return self.add("Gemm", inputs, f"{module}.product", transB=1)

    def linear(self, x: str, module: str, kind: tuple[float, int, float] = SIGNED, *, bias: bool = True) -> str:
        """The same, rounded where the graph is. kind: of the input, SIGNED or AFTER_GELU."""
        if not self.terms:
            return self.exact(x, module, bias=bias)
        steps, zero, largest, rounded = self.quantised(x, kind)
        rest = self.tensors[f"{module}.weight"]
        products = []
        for term in range(self.terms):
            step = (np.abs(rest).max(axis=1) / LARGEST).astype(np.float32)  # of each output
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

    def quantised(self, x: str, kind: tuple[float, int, float]) -> tuple[str, str, str, str]:
        """The names of x's step, its zero, the number that each token was divided by, and x in eight bits.

        Each token has its own scale: a few tokens of a text have numbers ten times as large as all others.
        """
        step, zero, least = kind
        steps = self.constant(f"step.{zero}", np.array(step, np.float32))
        zeros = self.constant(f"zero.{zero}", np.array(zero, np.uint8))
        if not any(f"{x}.rounded" in node.output for node in self.nodes):  # queries and keys share one
            sizes = self.add("Abs", [x], f"{x}.sizes") if kind == SIGNED else x
            largest = self.add("ReduceMax", [sizes], f"{x}.most", axes=[1], keepdims=1)
            floor = self.constant(f"least.{zero}", np.array([[least]], np.float32))
            largest = self.add("Max", [largest, floor], f"{x}.largest")
            scaled = self.add("Div", [x, largest], f"{x}.scaled")
            self.add("QuantizeLinear", [scaled, steps, zeros], f"{x}.rounded")
        return steps, zeros, f"{x}.largest", f"{x}.rounded"

    def attention(self, asking: str, x: str, module: str) -> str:
        """Multi-head attention of the tokens that ask to those of x; (tokens that ask, dimension).

        The values' product is exact in any case: the errors of its weights are the same in every token and do not
        average out, so that a tenth of the time buys a third of the accuracy.
        """
        parts = [f"{module}.{part}" for part in ("query", "key", "value")]
        products = [
            self.linear(asking, parts[0], bias=False),
            self.linear(x, parts[1], bias=False),
            self.exact(x, parts[2], bias=False),
        ]
        bias = np.concatenate([self.tensors[f"{part}.bias"] for part in parts])
        heads = [self.add("Unsqueeze", [product, "first"], f"{product}.heads") for product in products]
        inputs = [*heads, self.constant(f"{module}.bias", bias)]
        count = self.sizes.heads
        context = self.add("MultiHeadAttention", inputs, f"{module}.out", domain="com.microsoft", num_heads=count)
        return self.add("Squeeze", [context, "first"], f"{module}.flat")

    def layer(self, x: str, module: str, *, first_alone: bool = False) -> str:
        """One transformer layer. BiasGelu is the exact GELU, by the error function, as in training.

        first_alone: of the first token only, which is all that a classifier looks at.
        """
        asking = self.add("Gather", [x, "first"], "first_token", axis=0) if first_alone else x
        attended = self.attention(asking, x, f"{module}.attention.self")
        attended = self.linear(attended, f"{module}.attention.output.dense")
        attended = self.add("Add", [attended, asking], f"{module}.attention.sum")
        x = self.normed(attended, f"{module}.attention.output.LayerNorm")
        inner = self.linear(x, f"{module}.intermediate.dense", bias=False)
        inputs = [inner, self.weight(f"{module}.intermediate.dense.bias")]
        inner = self.add("BiasGelu", inputs, f"{module}.gelu", domain="com.microsoft")
        output = self.linear(inner, f"{module}.output.dense", AFTER_GELU)
        output = self.add("Add", [output, x], f"{module}.sum")
        return self.normed(output, f"{module}.output.LayerNorm")

    def classified(self, x: str) -> str:
        """The classifier's logits, shape (1, labels), from the state of the first token."""
        pooled = self.add("Tanh", [self.exact(x, "pooler.dense")], "pooled")
        return self.exact(pooled, "classifier")


def graph(tensors: Mapping[str, Vectors], sizes: Sizes, terms: int, *, classifier: bool = False) -> bytes:
    """A serialised ONNX model with the weights that it needs; the tables of embeddings are not among them.

    "embedded" (tokens, dimension) float32, the sum of a text's word, position and type embeddings -> "out": the last
    hidden states (tokens, dimension), or with a classifier its logits (1, labels). The same weights, the same bytes.

    terms: of how many whole numbers of eight bits most weights are the sum; each token then has a scale of its own. 0
    leaves everything exact. 1 takes under half of the time, and the vectors of all-MiniLM-L6-v2 then have a cosine of
    0.998 to the exact ones in the mean. 2 takes three quarters of the time; what is left is the rounding of the tokens,
    small enough for a cross-encoder, whose best passages often lie close together. See LOG.md.
    """
    import onnx
    from onnx import helper, numpy_helper

    made = _Graph(tensors, sizes, terms)
    made.constant("first", np.array([0], dtype=np.int64))
    x = made.normed("embedded", "embeddings.LayerNorm")
    for layer in range(sizes.layers):
        x = made.layer(x, f"encoder.layer.{layer}", first_alone=classifier and layer == sizes.layers - 1)
    made.add("Identity", [made.classified(x) if classifier else x], "out")
    floats = onnx.TensorProto.FLOAT
    proto = helper.make_graph(
        made.nodes,
        "bert",
        [helper.make_tensor_value_info("embedded", floats, ["tokens", sizes.dimension])],
        [helper.make_tensor_value_info("out", floats, ["rows", None])],
        [numpy_helper.from_array(np.ascontiguousarray(value), name) for name, value in made.held.items()],
    )
    # Fixed versions: newer ones of the onnx package would otherwise write what an older onnxruntime cannot read.
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    content: bytes = helper.make_model(proto, opset_imports=opsets, ir_version=8).SerializeToString(deterministic=True)
    return content
