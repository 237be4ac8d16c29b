"""What a search for works asks of a service. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Sort = Literal["relevance", "date", "citations"]
SearchSource = Literal["openalex", "semanticscholar", "arxiv"]


@dataclass(frozen=True, slots=True)
class SearchQuery:
    words: str
    since: int | None = None  # the first year
    is_open: bool = False  # only what somebody may read without paying
    min_cited: int = 0  # works that cite it, at least
    most: int = 20
    sort: Sort = "relevance"
