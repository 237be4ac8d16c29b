"""Columns to suggest for a table: what the section headings and table captions of its papers have in common. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from folio.papers.model import Paper
from folio.papers.sections import NOT_EVIDENCE, Kind
from folio.table.cell import Column
from folio.text import one_line, shorten, tokenize

MOST, LEAST_PAPERS, LEAST_SHARE = 8, 2, 0.15  # suggestions; papers with it, and their share of all
MOST_WORDS = 4  # of a heading
LONGEST_CAPTION = 200  # characters that are read
_OF_KIND: dict[Kind, str] = {
    "methods": "Method",
    "results": "Main result",
    "limitations": "Limitations",
    "conclusion": "Conclusion",
}
# Kinds of sections that ask nothing of a paper, and titles that every kind of paper has
_NOTHING: frozenset[Kind] = NOT_EVIDENCE | {"abstract", "introduction", "discussion", "appendix", "footnote"}
_COMMON = re.compile(
    r"(?:related|previous|prior|future) work|background|overview|summary|preliminaries|keywords|contents"
    r"|supplementary.*|funding|declarations?|ethics.*|notation|examples?|discussion",
    re.I,
)
_TABLE = re.compile(r"table\s+[\dIVX]+[.:]?\s*(?P<words>.*)", re.I | re.S)
_CUT = re.compile(r"[.:;,(]|\b(?:of|for|in|by|with|from|on|at|to|used|and|between|across|per)\b", re.I)


@dataclass(frozen=True, slots=True)
class SuggestedColumn:
    """A column, and how many of the papers have a section or a table of that name."""

    column: Column
    papers: int


def suggested_columns(
    papers: Sequence[Paper], read: Callable[[str, int, int], str], have: Sequence[Column] = ()
) -> tuple[SuggestedColumn, ...]:
    """The columns to suggest, those of most papers first. read: see Retriever.text. have: columns of the table."""
    counts, names = Counter[frozenset[str]](), dict[frozenset[str], str]()
    for paper in papers:
        own = {frozenset(tokenize(name)): name for name in _names(paper, read)}
        counts.update(words for words in own if words)
        names = own | names
    known = {frozenset(tokenize(column.name)) for column in have}
    least = max(LEAST_PAPERS, LEAST_SHARE * len(papers))
    shared = [(words, count) for words, count in counts.items() if count >= least and words not in known]
    ranked = sorted(shared, key=lambda each: (-each[1], names[each[0]]))
    return tuple(SuggestedColumn(Column(names[words]), count) for words, count in ranked[:MOST])


def _names(paper: Paper, read: Callable[[str, int, int], str]) -> Iterator[str]:
    """What the sections and tables of a paper are called."""
    for section in paper.sections.sections:
        if section.kind == "caption":
            caption = one_line(read(paper.id, section.start, min(section.end, section.start + LONGEST_CAPTION)))
            if table := _TABLE.match(caption):
                yield from _as_name(_CUT.split(table["words"], maxsplit=1)[0])
        elif section.kind in _OF_KIND:
            yield _OF_KIND[section.kind]
        elif section.level and section.kind not in _NOTHING:
            yield from _as_name(section.title)


def _as_name(title: str) -> Iterator[str]:
    """A title as a column's name; nothing for one that is too long, or says too little."""
    plain = one_line(title).strip(" .:;–—-")
    words = plain.split()
    if 1 <= len(words) <= MOST_WORDS and plain[0].isalpha() and len(plain) > 2 and not _COMMON.fullmatch(plain):
        name = plain.lower() if plain.isupper() and len(plain) > 5 else plain
        yield shorten(name[0].upper() + name[1:], 60)
