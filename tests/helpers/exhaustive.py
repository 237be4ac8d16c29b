"""Whether tests that sample a long list go through all of it: with EXHAUSTIVE=1 in the environment."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

EXHAUSTIVE = bool(os.environ.get("EXHAUSTIVE"))
T = TypeVar("T")


def sample(items: Sequence[T], every: int = 4) -> Sequence[T]:
    """One in `every` of a long list; with EXHAUSTIVE=1 all of it."""
    return items if EXHAUSTIVE else items[::every]
