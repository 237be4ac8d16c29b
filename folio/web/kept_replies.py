"""Replies as they were kept, with what the library says of their papers now: names, labels, notices. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from folio.answer_types import warnings
from folio.schema import cited_as
from folio.schema_parts import NoticeJson
from folio.types import Paper


def papers_of_replies(replies: Iterable[Mapping[str, Any]]) -> set[str]:
    """The ids of the papers that these replies name anywhere. replies: ChatReply objects as dictionaries."""
    return {part["paper"] for reply in replies for part in _parts_of_papers(reply)}


def as_known_now(reply: Mapping[str, Any], papers: Mapping[str, Paper]) -> dict[str, Any]:
    """A reply that calls its papers what the library calls them now. What was said of a paper that is gone stays.

    papers: those that are in the library, by id.
    """
    cited = [citation["paper"] for citation in reply["citations"]]
    now = _renewed(reply, papers)
    return {
        **now,
        "sources_used": list(dict.fromkeys(citation["file"] for citation in now["citations"])),
        "warnings": list(warnings(papers[paper] for paper in cited if paper in papers).values()),
    }


def _parts_of_papers(value: Any) -> Iterator[Mapping[str, Any]]:
    """Everything in a reply that is about a paper: citations, passages, steps of a search, what was asked."""
    if isinstance(value, Mapping):
        if isinstance(value.get("paper"), str):
            yield value
        value = value.values()
    elif not isinstance(value, list):
        return
    for item in value:
        yield from _parts_of_papers(item)


def _renewed(value: Any, papers: Mapping[str, Paper]) -> Any:
    """The value, in which all that has a paper says what that is called now, in the fields that it has."""
    if isinstance(value, list):
        return [_renewed(item, papers) for item in value]
    if not isinstance(value, Mapping):
        return value
    renewed = {name: _renewed(item, papers) for name, item in value.items()}
    paper = papers.get(value["paper"]) if isinstance(value.get("paper"), str) else None
    if paper is None:
        return renewed
    current = cited_as(paper, value.get("page", 1))
    current["notice"] = NoticeJson.model_validate(paper.flag).model_dump() if paper.flag else None
    return renewed | {name: current[name] for name in current if name in value}
