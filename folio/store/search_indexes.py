"""What a search needs of indexes, whether they are files of this computer or a server's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol

from folio.protocols import LexicalIndex
from folio.store.rows import Stamp
from folio.types import Vectors

# How to open indexes: files checked up to a limit, or wholly; or rebuilt from the library without a look at them
Trust = Literal["sample", "checked", "none"]


class DenseIndex(Protocol):
    """The vectors of the chunks of one grain."""

    def search(self, query: Vectors, k: int, papers: frozenset[str] | None = None) -> list[tuple[int, float]]:
        """At most k (chunk id, cosine), best first, ties by id. papers: search only these. Raises IndexDamaged."""
        ...

    def search_all(
        self, query: Vectors, k: int, allowed: Callable[[Iterable[int]], set[int]]
    ) -> list[tuple[int, float]] | None:
        """The same exactly, among the chunks that `allowed` leaves; None where `search` misses none that it could find.

        An approximate search may read only chunks that are not allowed, however deep it goes.
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
        """None where there are none."""
        ...

    @property
    def lexical(self) -> LexicalIndex: ...

    def found_damaged(self) -> bool:
        """Whether a check in the background has found one of them damaged."""
        ...

    @property
    def reopen(self) -> Callable[[Trust], SearchIndexes]:
        """Opens them again after IndexDamaged, and repairs what is damaged."""
        ...
