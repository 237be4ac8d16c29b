"""What one of pytest's workers has made for all of them."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import TypeVar

import pytest
from filelock import FileLock

T = TypeVar("T")


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[], T]) -> T:
    """What `make` returns, which takes long: made by the first worker that asks, and read by the others."""
    if "PYTEST_XDIST_TESTRUNUID" not in os.environ:
        return make()
    path = factory.getbasetemp().parent / f"{name}.pickle"
    with FileLock(f"{path}.lock"):
        if not path.exists():
            path.write_bytes(pickle.dumps(make()))
    found: T = pickle.loads(path.read_bytes())
    return found
