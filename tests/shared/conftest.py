"""Ray and a PostgreSQL server for the tests of this folder, each started once."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from typing import Any

import pytest

from folio.shared.ray import RayReader
from tests.helpers.postgres import PostgresServer, running_server


@pytest.fixture(scope="session")
def ray() -> Iterator[Any]:
    """Ray's module, with a Ray of two processors as `--on ray` starts it; an ingest uses one that it finds running."""
    if find_spec("ray") is None:
        pytest.skip("ray is not installed (requirements/ray.txt)")
    running = ExitStack()
    yield running.enter_context(RayReader("", 2, lambda: pytest.fail("no job is wanted"))._running())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # Ray does not wait for the processes that it ends
        running.close()
        gc.collect()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server that no test ends."""
    with running_server() as server:
        yield server


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    """The address of a new database, over a Unix socket."""
    name = postgres.new_database()
    yield postgres.url(name)
    postgres.drop_database(name)
