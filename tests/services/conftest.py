"""The clients of the services, over a server on the loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from folio.services.addresses import ServiceAddresses
from folio.services.cache import ResponseCache
from folio.services.http import HttpClient, Identity
from tests.helpers.source_server import FakeClock, SourceServer


@pytest.fixture
def client(server: SourceServer, tmp_path: Path) -> Iterator[HttpClient]:
    clock = FakeClock()
    cache = ResponseCache(tmp_path / "cache", clock)
    with HttpClient(ServiceAddresses(server.url), Identity(), cache, notice=print, clock=clock) as made:
        yield made
