"""The encoder of all-MiniLM-L6-v2 as an ONNX graph, over weights that are handed to it.

Architecture: BERT (Devlin et al. 2019, https://arxiv.org/abs/1810.04805) with the sizes of the model's config.json; it
is pooled by the mean and brought to unit length (Reimers and Gurevych 2019, https://arxiv.org/abs/1908.10084) in
minilm.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from folio.types import Vectors

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto

# config.json of the model, which cannot change while the weights do not
LAYERS, HEADS, DIMENSION, EPSILON = 6, 12, 384, 1e-12
# The largest whole number of a rounded weight. Eight bits would have 127, but processors without VNNI add two products
# in 16 bits and overflow there (onnxruntime's "reduce_range").
LARGEST = 63

Weight = npt.NDArray[np.float32] | npt.NDArray[np.int8]


class _Graph:
    """An ONNX graph in the making. Operators of com.microsoft are onnxruntime's fused ones."""

    def __init__(self, tensors: dict[str, Vectors], *, rounded: bool) -> None:
        self.tensors = tensors
        self.rounded = rounded
        self.given: dict[str, Weight] = {}  # the weights that the graph refers to; they are handed over beside it
        self.nodes: list[NodeProto] = []

    def weight(self, name: str, value: Weight | None = None) -> str:
        self.given[name] = self.tensors[name] if value is None else value
        return name

    def add(self, operator: str, inputs: Sequence[str], name: str, domain: str = "", **attributes: Any) -> str:
        """One node; returns the name of its output."""
        from onnx import helper

        self.nodes.append(helper.make_node(operator, inputs, [name], domain=domain, **attributes))
        return name

    def linear(self, x: str, module: str) -> str:
        """x W^T without the bias, which the fused operator that follows adds."""
        if self.rounded:
            weights = self.tensors[f"{module}.weight"]
            step = (np.abs(weights).max(axis=1) / LARGEST).astype(np.float32)  # of each output
            whole = np.ascontiguousarray(np.rint(weights / step[:, None]).astype(np.int8).T)
            inputs = [x, self.weight(f"{module}.whole", whole), self.weight(f"{module}.step", step)]
            return self.add("DynamicQuantizeMatMul", inputs, f"{module}.product", domain="com.microsoft")
        return self.add("Gemm", [x, self.weight(f"{module}.weight")], f"{module}.product", transB=1)

    def add_and_norm(self, x: str, residual: str, module: str) -> str:
        """LayerNorm(x + bias + residual)."""
        norm = [self.weight(f"{module}.LayerNorm.{part}") for part in ("weight", "bias")]
        inputs = [x, residual, *norm, self.weight(f"{module}.dense.bias")]
        name = f"{module}.normed"
        return self.add("SkipLayerNormalization", inputs, name, domain="com.microsoft", epsilon=EPSILON)

    def attention(self, x: str, module: str) -> str:
        """Multi-head self-attention that sees each row's first `lengths` tokens; (tokens, DIMENSION) both ways."""
        parts = [f"{module}.{part}" for part in ("query", "key", "value")]
        bias = self.weight(f"{module}.bias", np.concatenate([self.tensors[f"{part}.bias"] for part in parts]))
        heads = [self.add("Reshape", [self.linear(x, part), "shape"], f"{part}.batch") for part in parts]
        inputs = [*heads, bias, "lengths"]
        context = self.add("MultiHeadAttention", inputs, f"{module}.out", domain="com.microsoft", num_heads=HEADS)
        return self.add("Reshape", [context, "flat"], f"{module}.flat")

    def layer(self, x: str, module: str) -> str:
        """One transformer layer. BiasGelu is the exact GELU, by the error function, that the model was trained with."""
        attended = self.linear(self.attention(x, f"{module}.attention.self"), f"{module}.attention.output.dense")
        x = self.add_and_norm(attended, x, f"{module}.attention.output")
        inner = self.linear(x, f"{module}.intermediate.dense")
        inputs = [inner, self.weight(f"{module}.intermediate.dense.bias")]
        inner = self.add("BiasGelu", inputs, f"{module}.gelu", domain="com.microsoft")
        return self.add_and_norm(self.linear(inner, f"{module}.output.dense"), x, f"{module}.output")


def encoder_graph(tensors: dict[str, Vectors], *, rounded: bool = False) -> tuple[bytes, dict[str, Weight]]:
    """The encoder as a serialised ONNX model of some kilobytes, and the weights that it refers to by name.

    embedded (rows, window, DIMENSION) float32 and lengths (rows,) int32 -> hidden (rows, window, DIMENSION) float32.
    The matrix products run over the tokens of all rows at once, which takes the weights as the file has them, not
    transposed.

    rounded: the products are of whole numbers of eight bits, which takes half of the time; states then point in
    nearly the same direction (cosine 0.99 in the mean, 0.85 the least that was seen). Numbers are rounded by the
    largest of a whole batch, so a text's states depend a little on what is read with it.
    """
    import onnx
    from onnx import helper, numpy_helper

    graph = _Graph(tensors, rounded=rounded)
    norm = [graph.weight(f"embeddings.LayerNorm.{part}") for part in ("weight", "bias")]
    graph.add("LayerNormalization", ["embedded", *norm], "embedded.normed", axis=-1, epsilon=EPSILON)
    graph.add("Shape", ["embedded"], "shape")
    x = graph.add("Reshape", ["embedded.normed", "flat"], "embedded.flat")
    for layer in range(LAYERS):
        x = graph.layer(x, f"encoder.layer.{layer}")
    graph.add("Reshape", [x, "shape"], "hidden")

    flat = numpy_helper.from_array(np.array([-1, DIMENSION], dtype=np.int64), "flat")
    rows = ["rows", "window", DIMENSION]
    proto = helper.make_graph(
        graph.nodes,
        "all-MiniLM-L6-v2",
        [
            helper.make_tensor_value_info("embedded", onnx.TensorProto.FLOAT, rows),
            helper.make_tensor_value_info("lengths", onnx.TensorProto.INT32, ["rows"]),
        ],
        [helper.make_tensor_value_info("hidden", onnx.TensorProto.FLOAT, rows)],
        [flat, *(_placeholder(name, value) for name, value in graph.given.items())],
    )
    # Fixed versions: newer ones of the onnx package would otherwise write what an older onnxruntime cannot read.
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(proto, opset_imports=opsets, ir_version=8).SerializeToString(), graph.given


def _placeholder(name: str, value: Weight) -> TensorProto:
    """Stands in the graph for a weight that is given to the session directly."""
    from onnx import TensorProto, helper

    kind = helper.np_dtype_to_tensor_dtype(value.dtype)
    tensor = TensorProto(name=name, data_type=kind, dims=value.shape, data_location=TensorProto.EXTERNAL)
    for key, entry in (("location", "given"), ("length", str(value.nbytes))):
        tensor.external_data.add(key=key, value=entry)
    return tensor
