"""Keeps libraries offline, so that only the configured model server is contacted; recognises this computer's hosts."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address

PORT = 8420  # of Folio's page, unless another is chosen

def go_offline() -> None:
    """Switch off downloads, tracing and telemetry in the libraries. Call it before they are imported.

    Worker processes import nothing from the current folder, where `python -c` looks first: it may be a folder of papers
    in which somebody has put a multiprocessing.py.
    """
    os.environ.update(
        HF_HUB_OFFLINE="1",
        TRANSFORMERS_OFFLINE="1",
        HF_HUB_DISABLE_TELEMETRY="1",
        ORT_DISABLE_TELEMETRY="1",
        LANGSMITH_TRACING="false",
        LANGSMITH_TRACING_V2="false",
        LANGCHAIN_TRACING="false",
        LANGCHAIN_TRACING_V2="false",
        TOKENIZERS_PARALLELISM="false",
        PYTHONSAFEPATH="1",
    )
    # No proxy is used. requests silences this warning for its own import, but another thread that leaves
    # warnings.catch_warnings restores the filters.
    warnings.filterwarnings("ignore", "SOCKS support in urllib3")


# What HTTP clients and Python's TLS read from the environment, in lower case too: names, and how others begin
_CLIENT_PREFIXES = ("OPENAI_", "AZURE_OPENAI_", "LANGSMITH_", "LANGCHAIN_OPENAI_")
_CLIENT_SETTINGS = (
    "OLLAMA_HOST",
    "OLLAMA_API_KEY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "SSLKEYLOGFILE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
)
_ENVIRONMENT = threading.RLock()


@contextmanager
def without_client_settings() -> Iterator[None]:
    """Sets aside what the environment tells HTTP clients, while one is made or its library is imported.

    Folio's clients follow none of it, and would fail at a certificate file or a folder for keys that is gone, a proxy
    of an unknown kind, a quoted OLLAMA_HOST or a key that is no ASCII. The package ollama makes a client when it is
    imported; openai's would send the headers of OPENAI_CUSTOM_HEADERS and OPENAI_ORG_ID.
    """
    with _ENVIRONMENT:
        names = [
            name for name in os.environ if name.upper() in _CLIENT_SETTINGS or name.upper().startswith(_CLIENT_PREFIXES)
        ]
        kept = {name: os.environ.pop(name) for name in names}
        try:
            yield
        finally:
            os.environ.update(kept)


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this computer's loopback, which no other computer can reach."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
