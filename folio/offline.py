"""Nothing but the configured Ollama host is contacted: the hub's libraries are told so before they are imported.

And which hosts are this computer itself.
"""

from __future__ import annotations

import os
from ipaddress import ip_address


def go_offline() -> None:
    """Nothing but the configured Ollama host is contacted: hub libraries stay offline, nothing is traced or counted."""
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
    )


def is_loopback(host: str) -> bool:
    """Whether an address or name is of this computer and can be reached from it only."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
