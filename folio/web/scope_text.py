"""What a question was restricted to, in words, for exports. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from folio.shown_text import counted, name_line

_MOST = 10  # papers that are named
_FIELDS = ("year", "author", "venue", "section", "collection", "tag", "cited_by")


def asked_only(scope: Mapping[str, Any] | None) -> str:
    """The papers and the sections that were asked: "“On Sea Otters”; year 2010-2015 or 2020-"; "" if all were.

    scope: a ScopeJson as a dictionary; None for an answer of an older Folio.
    """
    scope = scope or {}
    papers = [f"“{name_line(paper['title'] or paper['file'])}”" for paper in scope.get("papers", ())]
    more = [counted(len(papers) - _MOST, "more paper")] if len(papers) > _MOST else []
    parts = [", ".join([*papers[:_MOST], *more])] if papers else []
    for field in _FIELDS:
        if values := scope.get(field):
            parts.append(f"{field.replace('_', ' ')} {' or '.join(map(name_line, values))}")
    return "; ".join(parts)
