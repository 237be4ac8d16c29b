"""The interface of a library's search indexes, whether they are local files or on a server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol

from folio.protocols import LexicalIndex
from folio.store.rows import Stamp
from folio.types import Vectors

# How to open indexes. "sample": check files up to a limit. "checked": check them completely. "none": rebuild them.
Trust = Literal["sample", "checked", "none"]


class DenseIndex(Protocol):
    """The vectors of the chunks of one grain."""

    def search(self, query: Vectors, k: int, papers: frozenset[str] | None = None) -> list[tuple[int, float]]:
        """At most k (chunk id, cosine), best first, ties by id. papers: search only these. Raises IndexDamaged."""
        ...

    def search_all(
        self, query: Vectors, k: int, allowed: Callable[[Iterable[int]], set[int]]
    ) -> list[tuple[int, float]] | None:
        """Exact search among the chunks that `allowed` returns; None if `search` misses nothing anyway.

        An approximate search may otherwise find only chunks that are not allowed.
        """
        ...

    def cosines(self, ids: Sequence[int], query: Vectors) -> list[float]:
        """The exact cosine of each chunk with a unit vector. Raises IndexDamaged for an unknown id."""
        ...


class SearchIndexes(Protocol):
    """The indexes of a library at one generation."""

    @property
    def stamp(self) -> Stamp: ...

    @property
    def passages(self) -> DenseIndex: ...

    @property
    def fine_passages(self) -> DenseIndex | None:
        """The vectors of fine passages; None if the library has no fine passages."""
        ...

    @property
    def lexical(self) -> LexicalIndex: ...

    def found_damaged(self) -> bool:
        """Whether a check in the background has found damage."""
        ...

    @property
    def reopen(self) -> Callable[[Trust], SearchIndexes]:
        """Opens the indexes again after IndexDamaged, and repairs them."""
        ...
