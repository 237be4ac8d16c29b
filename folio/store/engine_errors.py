"""Turns errors of search engines into IndexDamaged, because an engine may do anything with damaged files."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from folio.errors import FolioError, IndexDamaged

Hits = list[tuple[int, float]]  # chunk ids with scores


@contextmanager
def engine_errors(name: str, *passed: type[BaseException]) -> Iterator[None]:
    """Turn errors of an index's engine into IndexDamaged, except those in `passed`. name: of the index.

    Catches BaseException, because a panic in Rust is not an Exception.
    """
    try:
        yield
    except (FolioError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        if isinstance(error, passed):
            raise
        reason = (str(error).splitlines() or [""])[0][:200] or type(error).__name__
        raise IndexDamaged(f"the {name} index cannot be read: {reason}") from error


def require_possible(name: str, hits: Hits, limit: int) -> Hits:
    """Raises IndexDamaged for hits that no sound index gives: a score that is not finite, an id that occurs twice."""
    if len(hits) > limit or len({chunk for chunk, _ in hits}) < len(hits):
        raise IndexDamaged(f"the {name} index finds a passage twice")
    if not all(math.isfinite(score) for _, score in hits):
        raise IndexDamaged(f"the {name} index gives a score that is no number")
    return hits
