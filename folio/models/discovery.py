"""Finds the model servers that run on this computer, at the ports that they use unless told otherwise."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from folio.errors import FolioError
from folio.models.model_server import ModelServer
from folio.models.ollama import OllamaServer
from folio.models.openai_server import OpenAIServer

# Ollama, LM Studio, llama.cpp and LocalAI, vLLM and llama-cpp-python, Jan
PORTS = (11434, 1234, 8080, 8000, 1337)
HOST = "127.0.0.1"
KNOCK_S, REPLY_S = 0.5, 5.0


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A server that answers."""

    url: str
    program: str  # as far as it can be told
    chat_models: tuple[str, ...]
    settings: str  # that make Folio use it: "LLM=openai OPENAI_BASE_URL=http://127.0.0.1:1234/v1"


def find_servers(ports: Sequence[int] | None = None) -> list[FoundServer]:
    """The servers at these ports of loopback, in this order; by default at PORTS. No key is sent."""
    ports = PORTS if ports is None else ports
    with ThreadPoolExecutor(len(ports)) as pool:
        return [found for found in pool.map(_at, ports) if found]


def _at(port: int) -> FoundServer | None:
    try:
        socket.create_connection((HOST, port), KNOCK_S).close()
    except OSError:
        return None
    url = f"http://{HOST}:{port}"
    ollama = OllamaServer(url, REPLY_S)
    if version := ollama.version():
        return _found(ollama, f"Ollama {version}", f"LLM=ollama OLLAMA_HOST={HOST}:{port}")
    server = OpenAIServer(f"{url}/v1", REPLY_S)
    return _found(server, "", f"LLM=openai OPENAI_BASE_URL={server.url}")


def _found(server: ModelServer, program: str, settings: str) -> FoundServer | None:
    """None for another program at this port."""
    try:
        models = tuple(server.chat_models())
        return FoundServer(server.url, program or server.version() or "", models, settings)
    except FolioError:
        return None
