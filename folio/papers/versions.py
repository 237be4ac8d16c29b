"""Recognises versions of one paper in a library by their own identifiers. Pure.

Nothing is merged: a search leaves out older versions unless a user names them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from folio.papers.identifiers import bare_arxiv, version_number
from folio.papers.metadata import Metadata
from folio.papers.model import Paper
from folio.papers.people import families
from folio.papers.work import WorkNotice, ordered
from folio.text import fold

# The least likeness of the titles of papers with one DOI: a comment, a supplement or a citing paper may name it too.
# Versions at arXiv may have other titles, but not other authors.
_SAME_TITLE = 0.9


def relation(own: Metadata, other: Metadata) -> Literal["", "older", "newer", "same"]:
    """Whether a paper is an older or a newer version of another, or the same paper again; "" for another paper.

    "same" also if it is not known which version is newer.
    """
    if bare_arxiv(own.arxiv.value) and bare_arxiv(own.arxiv.value) == bare_arxiv(other.arxiv.value):
        if not _share_author(own, other) and not _same_title(own, other) and _are_described(own, other):
            return ""
        return _order(version_number(own.arxiv.value), version_number(other.arxiv.value))
    if not (own.doi.sure and other.doi.sure and own.doi.value.casefold() == other.doi.value.casefold()):
        return ""
    if not own.doi.value or not _same_title(own, other):
        return ""
    if own.authors.value and other.authors.value and not _share_author(own, other):
        return ""
    if bool(own.arxiv.value) != bool(other.arxiv.value):  # only one is a preprint
        return "older" if own.arxiv.value else "newer"
    years = [paper.year.value if paper.year.sure else None for paper in (own, other)]
    return _order(*years)


def with_versions(paper: Paper, others: Iterable[Metadata]) -> Paper:
    """The paper, with a notice if one of these others is a version of it that is not older."""
    relations = [(relation(paper.metadata, other), _link(other)) for other in others]
    newer, same = ([link for kind, link in relations if kind == wanted] for wanted in ("older", "same"))
    if not newer and not same:
        return paper
    notice = WorkNotice("older-version" if newer else "same-paper", link=max(newer or same, key=_by_number))
    return replace(paper, notices=ordered((*paper.notices, notice)))


def is_superseded(paper: Paper) -> bool:
    """Whether the library has a newer version of a paper."""
    return any(notice.kind == "older-version" for notice in paper.notices)


def newest(papers: Sequence[Paper]) -> list[Paper]:
    """The papers that have no newer version; all papers if none would be left."""
    return [paper for paper in papers if not is_superseded(paper)] or list(papers)


def version_keys(metadata: Metadata) -> list[str]:
    """The keys that versions of a paper share: "arxiv 2301.01234", "doi 10.1234/x"."""
    arxiv, doi = bare_arxiv(metadata.arxiv.value), metadata.doi.value.casefold() if metadata.doi.sure else ""
    return [f"{kind} {value}" for kind, value in (("arxiv", arxiv), ("doi", doi)) if value]


def _order(own: int | None, other: int | None) -> Literal["older", "newer", "same"]:
    if own is None or other is None or own == other:
        return "same"
    return "older" if own < other else "newer"


def _link(other: Metadata) -> str:
    """The name of another version in a notice: its arXiv id, or else its DOI."""
    return other.arxiv.value or other.doi.value


def _by_number(link: str) -> tuple[int, str]:
    return version_number(link) or 0, link


def _are_described(own: Metadata, other: Metadata) -> bool:
    """Whether both titles and authors are known, so that they can distinguish the papers."""
    return all(paper.title.value and paper.authors.value for paper in (own, other))


def _share_author(own: Metadata, other: Metadata) -> bool:
    return bool(families(own.authors.value) & families(other.authors.value))


def _same_title(own: Metadata, other: Metadata) -> bool:
    from rapidfuzz import fuzz

    titles = fold(own.title.value), fold(other.title.value)
    return all(titles) and fuzz.ratio(*titles) / 100 >= _SAME_TITLE
