"""Sections of a paper: spans of its text with headings; and the lines of a PDF that may be headings."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice, pairwise, takewhile
from typing import Literal, NamedTuple, get_args

Kind = Literal[
    "abstract", "introduction", "methods", "results", "discussion", "conclusion", "limitations", "references",
    "acknowledgements", "appendix", "caption", "footnote", "boilerplate", "algorithm", "other",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
# Sections excluded from evidence by default
NOT_EVIDENCE: frozenset[Kind] = frozenset({"references", "acknowledgements", "boilerplate"})


class Style(NamedTuple):
    """The typographic style of a line."""

    size: float  # in points, rounded to halves
    font: str
    is_bold: bool
    is_italic: bool
    is_upper: bool  # only capitals


@dataclass(frozen=True, slots=True)
class HeadingLine:
    """One or more lines of a page that may be a heading, with their style."""

    page: int  # physical, from 1
    text: str
    style: Style
    introduces: bool  # a line of body text follows below it
    is_run_in: bool = False  # its text continues on the same line: "Abstract. We show that"


@dataclass(frozen=True, slots=True)
class FootnoteLines:
    """The lines of one or several consecutive footnotes at the foot of a column, unchanged from the page."""

    page: int  # physical, from 1
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """An entry of the file's outline (its bookmarks), which may be wrong."""

    level: int  # from 1
    title: str


@dataclass(frozen=True, slots=True)
class HeadingLines:
    """The heading candidates of a file, in reading order as far as known, with its outline and footnotes."""

    lines: tuple[HeadingLine, ...] = ()
    outline: tuple[OutlineEntry, ...] = ()
    body_size: float = 0.0  # of body text, in points
    body_font: str = ""
    body_share: float = 1.0  # the share of the text with this size
    footnotes: tuple[FootnoteLines, ...] = ()


NO_HEADINGS = HeadingLines()


@dataclass(frozen=True, slots=True)
class PaperSection:
    """A section of a paper: the span [start, end) of its text, with its heading and its subsections.

    Level 0 is a block without a heading: a caption, a footnote, a licence line, an algorithm with its label. It is
    inside a section or before the first one, and contains no other section.
    """

    start: int
    end: int
    level: int  # from 1; 0 for a block
    number: str  # "5.2", "IV", "A"; "" for none
    title: str
    kind: Kind

    @property
    def shown(self) -> str:
        """The displayed name: "§5.2 Leader election", "Abstract"."""
        return f"§{self.number} {self.title}" if self.number else self.title

    @property
    def plain(self) -> str:
        """Its heading as printed: "5.2 Leader election", "Abstract"."""
        return f"{self.number} {self.title}".strip()


# Spans [start, end) of a text, in order, without overlap
Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class SectionMap:
    """The sections of a paper, ordered by their start. Two sections are nested or do not overlap."""

    sections: tuple[PaperSection, ...] = ()

    @property
    def headed(self) -> tuple[PaperSection, ...]:
        """The sections with a heading, without blocks."""
        return tuple(section for section in self.sections if section.level)

    def of(self, start: int, end: int) -> tuple[PaperSection, ...]:
        """The innermost sections of the text [start, end), in order; none before the first heading.

        Leaves out blocks: a caption belongs to the section around it.
        """
        innermost: list[PaperSection] = []
        for section in self.sections:
            if section.start >= end:
                break
            if not section.level:
                continue
            if section.start <= start:
                # These sections are nested; the last one that contains the start is the innermost.
                innermost = [section] if start < section.end else innermost
            else:
                innermost.append(section)
        return tuple(innermost)

    def kind(self, start: int, end: int) -> Kind | None:
        """The kind of the section with most of the text [start, end); None before the first heading."""
        sections = self.of(start, end)
        edges = [max(start, section.start) for section in sections] + [end]
        lengths = [second - first for first, second in pairwise(edges)]
        return sections[lengths.index(max(lengths))].kind if sections else None

    def shown(self, start: int, end: int) -> str:
        """The section of the text [start, end) in words; "§5.2 Log – §6 Clients" for several, "" for none.

        Text in a caption has the caption's name: "Figure 3 in §5.2 Log". So has text in an algorithm.
        """
        sections = self.of(start, end)
        ends = (sections[0], sections[-1]) if len(sections) > 1 else sections
        place = " – ".join(section.shown for section in ends)
        captions = (section for section in self.sections if section.kind in ("caption", "algorithm"))
        caption = next((section for section in captions if section.start <= start < section.end), None)
        if caption is None or caption.level or caption.end < end:
            return place
        return f"{caption.title} in {place}" if place else caption.title

    def spans(self, chosen: Callable[[PaperSection], bool]) -> Spans:
        """The spans of the chosen sections and blocks, with everything inside them."""
        spans: list[tuple[int, int]] = []
        for section in self.sections:
            if chosen(section) and not (spans and section.start < spans[-1][1]):
                spans.append((section.start, section.end))
        return tuple(spans)

    def spans_of_kinds(self, kinds: frozenset[Kind] = NOT_EVIDENCE) -> Spans:
        """The spans whose innermost section or block is of these kinds, so without a caption among references."""
        spans: list[tuple[int, int]] = []
        open_: list[PaperSection] = []  # the sections that have not ended, outermost first
        at = 0
        for section in (*self.sections, None):
            while open_ and (section is None or open_[-1].end <= section.start):
                innermost = open_.pop()
                if innermost.kind in kinds:
                    _add(spans, at, innermost.end)
                at = innermost.end
            if section is not None:
                if open_ and open_[-1].kind in kinds:
                    _add(spans, at, section.start)
                at = section.start
                open_.append(section)
        return tuple(spans)


def _add(spans: list[tuple[int, int]], start: int, end: int) -> None:
    """Add a span, joined to the last one if they touch."""
    if start < end:
        joined = spans.pop()[0] if spans and spans[-1][1] == start else start
        spans.append((joined, end))


def overlap(spans: Spans, start: int, end: int) -> int:
    """How many characters of [start, end) are in the spans."""
    first = bisect_right(spans, start, key=lambda span: span[1])
    inside = takewhile(lambda span: span[0] < end, islice(spans, first, None))
    return sum(min(high, end) - max(low, start) for low, high in inside)


NO_SECTIONS = SectionMap()
