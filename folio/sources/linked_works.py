"""What following citations finds, as values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from folio.identifiers import Identifier, Kind
from folio.store.work_rows import FoundBy
from folio.work import Work, merged

Direction = Literal["cites", "cited-by"]


@dataclass(frozen=True, slots=True)
class Linked:
    """A work that was found, with the papers of the library that it is linked with."""

    works: tuple[Work, ...]  # as each source describes it
    papers: frozenset[str]
    depth: int  # steps from these papers

    @property
    def work(self) -> Work:
        return merged(self.works)


@dataclass(frozen=True, slots=True)
class Expansion:
    """What came of following citations."""

    found: list[Linked]  # best first
    starts: dict[str, Work]  # paper -> its work, for those that a service has
    # Works with what they cite, as far as it was looked at: the starts, those that were followed, and what cites them
    citing: list[Work]


@dataclass(frozen=True, slots=True)
class Followed:
    """The citations of papers of the library."""

    expansion: Expansion
    matches: Mapping[str, tuple[FoundBy, float]]  # paper -> how its work was found, and the score


def identifiers_of(work: Work) -> list[Identifier]:
    """What services know a work by."""
    found: tuple[tuple[Kind, str], ...] = (
        ("doi", work.doi),
        ("arxiv", work.arxiv),
        ("openalex", work.openalex),
        ("semanticscholar", work.semanticscholar),
    )
    return [Identifier(kind, value) for kind, value in found if value]
