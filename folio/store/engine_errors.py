"""What search engines raise, turned into IndexDamaged: an engine given damaged files may do anything."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from folio.errors import FolioError, IndexDamaged

Found = list[tuple[int, float]]


@contextmanager
def engine_errors(name: str, *passed: type[BaseException]) -> Iterator[None]:
    """Turn errors of the engine of this index into IndexDamaged, all but those in `passed`.

    BaseException, because a panic in Rust is one that is not an Exception.
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


def require_possible(name: str, found: Found, limit: int) -> Found:
    """Raises IndexDamaged for results that no sound index gives: a score that is no number, an id that occurs twice."""
    if len(found) > limit or len({chunk for chunk, _ in found}) < len(found):
        raise IndexDamaged(f"the {name} index finds a passage twice")
    if not all(math.isfinite(score) for _, score in found):
        raise IndexDamaged(f"the {name} index gives a score that is no number")
    return found
