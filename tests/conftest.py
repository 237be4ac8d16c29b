"""Fixtures that several tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ollama_server import OllamaStandIn


@pytest.fixture
def ollama_server() -> Iterator[OllamaStandIn]:
    """An Ollama server on the loopback with llama3.1:8b, nomic-embed-text (64 numbers, for speed) and a cloud model."""
    with OllamaStandIn(dimension=64) as server:
        yield server
