"""What was read from the cluster is checked as it is made into values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from folio.errors import FolioError, StoreDamaged


@contextmanager
def as_written(damaged: Callable[[str], StoreDamaged]) -> Iterator[None]:
    """Any error inside, where rows or files are made into values, means that they are not as they were written.

    damaged: makes the error to raise from what the one inside said. Folio's own errors pass.
    """
    try:
        yield
    except FolioError:
        raise
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError) as error:
        raise damaged(str(error)) from error
