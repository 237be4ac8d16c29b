"""Recognises versions and copies of one paper in a library, by their own identifiers and their texts. Pure.

Versions share an identifier and much of their text: a supplement has its article's identifiers, title and authors, and
other text, as have the chapters of one book. Copies, such as two downloads, need no identifier and no title: they have
the same text, but for stamps. Nothing is merged: a search leaves out older versions, and all copies but one, unless a
user names them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
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
# Words in a shingle, and the least shares of the shorter and of the longer text's shingles that versions have in
# common. A thorough revision keeps more, and so does a scan read by OCR; an article and its supplement have next to
# none in common, and short ones their title, authors and abstract.
_SHINGLE, _SHARED, _SHARED_OF_LONGER = 10, 0.3, 0.1
# Copies have all lines in common but stamps and pages in front, and in all at least this share of them. Stamps are
# among so many lines at the top and the bottom of a page, and those that are on one page only within this share of it:
# what else differs in so few lines may be a number that was corrected.
_EDGE_LINES, _EDGE, _SAME_LINES = 3, 1 / 8, 0.7
# The least likeness of a line to the one that it was before a correction
_SAME_LINE = 0.7
# The fewest words of a title by which copies are looked for: there are many editorials.
_TELLING = 3
# The fewest characters of a text that shows that it is a copy: two scans that nobody could read have the same cover.
_ENOUGH = 200
_KINDS = ("arxiv", "doi")


@dataclass(frozen=True)
class PaperText:
    """The text of a paper in the forms in which it is compared, each made once. pages: the text of each page."""

    pages: Sequence[str]

    @cached_property
    def shingles(self) -> frozenset[tuple[str, ...]]:
        words = [word for page in self.pages for word in page.casefold().split()]
        return frozenset(zip(*(words[place:] for place in range(_SHINGLE)), strict=False))

    @cached_property
    def whole(self) -> str:
        """Without spaces and line breaks."""
        return "".join("".join(self.pages).split())

    @cached_property
    def lines(self) -> list[list[str]]:
        """The lines of each page."""
        return [[" ".join(line.split()) for line in page.splitlines() if line.strip()] for page in self.pages]

    @cached_property
    def count(self) -> Counter[str]:
        """How often each line is there."""
        return Counter(line for page in self.lines for line in page)

    @cached_property
    def pages_with(self) -> Counter[str]:
        """The number of pages with a line, by its form without numbers."""
        return Counter(kind for page in self.lines for kind in {_without_numbers(line) for line in page})


@dataclass(frozen=True)
class Other:
    """Another paper, and what its text has in common with a paper's. texts: of both.

    Without texts, the papers count as versions if their metadata say so, and never as copies.
    """

    metadata: Metadata
    id: str = ""
    texts: Callable[[], tuple[PaperText, PaperText] | None] = lambda: None

    @cached_property
    def shares_text(self) -> bool:
        """Whether much of the shorter text is in the other one."""
        texts = self.texts()
        if texts is None:
            return True
        own, other = (text.shingles for text in texts)
        few, many = sorted((len(own), len(other)))
        return not few or len(own & other) >= max(_SHARED * few, _SHARED_OF_LONGER * many)

    @cached_property
    def is_copy(self) -> bool:
        """Whether the texts differ at most in line breaks, or at the edges of pages, where downloads have stamps, and
        by pages in front.
        """
        texts = self.texts()
        if texts is None or min(len(text.whole) for text in texts) < _ENOUGH:
            return False
        own, other = texts
        if own.whole == other.whole:
            return True
        has_common = not own.count.keys().isdisjoint(other.count)
        return has_common and _adds_edges_alone(own, other) and _adds_edges_alone(other, own)


def relation(
    own: Metadata, other: Metadata, shares_text: Callable[[], bool] = lambda: True
) -> Literal["", "older", "newer", "same"]:
    """Whether a paper is an older or a newer version of another, or the same paper again; "" for another paper.

    "same" also if it is not known which version is newer. shares_text: whether their texts are alike.
    """
    if bare_arxiv(own.arxiv.value) and bare_arxiv(own.arxiv.value) == bare_arxiv(other.arxiv.value):
        if not _share_author(own, other) and not _same_title(own, other) and _are_described(own, other):
            return ""
        order = _order(version_number(own.arxiv.value), version_number(other.arxiv.value))
        # A supplement prints the number of its article, but hardly another version of it under its title.
        is_sure = order != "same" and _same_title(own, other)
        return order if is_sure or shares_text() else ""
    if not (own.doi.sure and other.doi.sure and own.doi.value.casefold() == other.doi.value.casefold()):
        return ""
    if not own.doi.value or not _same_title(own, other):
        return ""
    if own.authors.value and other.authors.value and not _share_author(own, other):
        return ""
    if not shares_text():  # a supplement, or an answer to it under its title
        return ""
    if bool(own.arxiv.value) != bool(other.arxiv.value):  # only one is a preprint
        return "older" if own.arxiv.value else "newer"
    years = [paper.year.value if paper.year.sure else None for paper in (own, other)]
    return _order(*years)


def with_versions(paper: Paper, others: Iterable[Other]) -> Paper:
    """The paper, with a notice if one of these others is a version of it that is not older, or a copy."""
    newer, same, copies = list[str](), list[str](), list[Other]()
    for other in others:
        kind = relation(paper.metadata, other.metadata, lambda other=other: other.shares_text)  # type: ignore[misc]
        if kind == "older":
            newer.append(_link(other.metadata))
        elif kind != "newer" and may_be_copies(paper.metadata, other.metadata) and other.is_copy:
            copies.append(other)
        elif kind == "same":
            same.append(_link(other.metadata))
    first = min(copies, key=lambda other: _rank(other.metadata, other.id), default=None)
    if first is not None and _rank(first.metadata, first.id) < _rank(paper.metadata, paper.id):
        paper = replace(paper, copy_of=first.id)
        same.append("")
    if not newer and not same:
        return paper
    notice = WorkNotice("older-version" if newer else "same-paper", link=max(newer or same, key=_by_number))
    return replace(paper, notices=ordered((*paper.notices, notice)))


def may_be_copies(own: Metadata, other: Metadata) -> bool:
    """Whether no identifier says that two papers are different."""
    identifiers = ((getattr(own, kind).value.casefold(), getattr(other, kind).value.casefold()) for kind in _KINDS)
    return all(not first or not second or first == second for first, second in identifiers)


def is_superseded(paper: Paper) -> bool:
    """Whether the library has a newer version of a paper, or a copy that is searched in its place."""
    return paper.is_copy or any(notice.kind == "older-version" for notice in paper.notices)


def newest(papers: Sequence[Paper]) -> list[Paper]:
    """The papers that are not superseded; all papers if none would be left."""
    return [paper for paper in papers if not is_superseded(paper)] or list(papers)


def version_keys(metadata: Metadata) -> list[str]:
    """The keys that versions or copies of a paper share: "arxiv 2301.01234", "doi 10.1234/x", "title ..."."""
    arxiv, doi = bare_arxiv(metadata.arxiv.value), metadata.doi.value.casefold() if metadata.doi.sure else ""
    title = fold(metadata.title.value) if len(metadata.title.value.split()) >= _TELLING else ""
    return [f"{kind} {value}" for kind, value in (("arxiv", arxiv), ("doi", doi), ("title", title)) if value]


def _rank(metadata: Metadata, id: str) -> tuple[bool, bool, str]:
    """The copy that is searched is the first: one with an identifier, if only some have any."""
    return not metadata.doi.value, not metadata.arxiv.value, id


def _adds_edges_alone(own: PaperText, other: PaperText) -> bool:
    """Whether the first text has nothing that the second lacks but stamps at the edges of pages, and pages in front."""
    left, lacking = other.count.copy(), other.count - own.count

    def is_on_one_page(line: str) -> bool:
        return own.pages_with[_without_numbers(line)] == 1

    has_begun, new, count = False, 0, 0
    for page in own.lines:
        missing = []
        for place, line in enumerate(page):
            if left[line] > 0:
                left[line] -= 1
            else:
                missing.append((min(place, len(page) - 1 - place), line))
        if not has_begun and len(missing) == len(page):
            continue  # a cover
        has_begun = True
        if any(
            from_edge >= _EDGE_LINES
            or (is_on_one_page(line) and (from_edge >= int(_EDGE * len(page)) or _is_changed(line, lacking)))
            for from_edge, line in missing
        ):
            return False
        new, count = new + len(missing), count + len(page)
    return count > 0 and new <= (1 - _SAME_LINES) * count


def _without_numbers(line: str) -> str:
    """A line by which stamps with dates and page numbers are the same."""
    return re.sub(r"\d+", "0", line)


def _is_changed(line: str, others: Iterable[str]) -> bool:
    """Whether a line is one of these with a few other words: a correction rather than a stamp."""
    from rapidfuzz import fuzz

    return any(fuzz.ratio(line, other) / 100 >= _SAME_LINE for other in others)


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
