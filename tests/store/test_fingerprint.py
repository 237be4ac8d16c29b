"""Which fingerprints mean the same vectors."""

from __future__ import annotations

import pytest

from folio.store.fingerprint import differences

MADE = {"embedder": "ollama", "model": "m:latest", "digest": "manifest 1", "weights": "a", "part_bytes": "2000"}
OLD = {name: value for name, value in MADE.items() if name != "weights"}  # by an earlier version


@pytest.mark.parametrize(
    ("made_with", "expected", "differ"),
    [
        (MADE, MADE, []),
        (MADE, MADE | {"digest": "manifest 2"}, []),  # another parameter or template
        (MADE, MADE | {"weights": "b"}, ["weights"]),
        (MADE, MADE | {"weights": "b", "digest": "manifest 2"}, ["weights"]),
        (MADE, MADE | {"weights": "a+b", "digest": "manifest 2"}, ["weights"]),  # with an adapter
        (MADE, MADE | {"part_bytes": "976", "digest": "manifest 2"}, ["part_bytes"]),  # the parameter num_ctx
        (MADE, MADE | {"model": "n:latest"}, ["model"]),
        (MADE | {"passage_prefix": ""}, MADE | {"passage_prefix": "passage: "}, ["passage_prefix"]),
        (MADE | {"query_prefix": ""}, MADE | {"query_prefix": "query: "}, []),  # the store holds no question
        (OLD, MADE, []),
        (OLD, MADE | {"digest": "manifest 2"}, ["digest"]),  # nothing tells whether the weights are the same
        (OLD, OLD, []),
        (MADE, OLD, []),  # a server that does not tell the weights
        (MADE, OLD | {"digest": "manifest 2"}, ["digest"]),
        (MADE, {"embedder": "builtin"}, ["digest", "embedder", "model", "part_bytes"]),
    ],
)
def test_differences(made_with: dict[str, str], expected: dict[str, str], differ: list[str]) -> None:
    assert differences(made_with, expected) == differ
