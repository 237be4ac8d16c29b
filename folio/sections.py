"""The sections of a paper: spans of its text with a heading each, and the lines of a PDF that may be headings."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

Kind = Literal[
    "abstract", "introduction", "methods", "results", "discussion", "conclusion", "limitations", "references",
    "acknowledgements", "appendix", "caption", "footnote", "boilerplate", "other",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
# What is no evidence unless a question asks for it
APART: frozenset[Kind] = frozenset({"references", "acknowledgements", "boilerplate"})


class Style(NamedTuple):
    """How a line is set."""

    size: float  # in points, rounded to halves
    font: str
    is_bold: bool
    is_italic: bool
    is_upper: bool  # only capitals


@dataclass(frozen=True, slots=True)
class HeadingLine:
    """One or more lines of a page that may be a heading, as they are set."""

    page: int  # physical, from 1
    text: str
    style: Style
    introduces: bool  # a line of ordinary text follows below it
    is_run_in: bool = False  # text goes on in the same line: "Abstract. We show that"


@dataclass(frozen=True, slots=True)
class FootnoteLines:
    """A footnote, or several that follow each other at the foot of a column: its lines as they stand on the page."""

    page: int  # physical, from 1
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """An entry of the file's outline (its bookmarks). Nothing in it can be trusted."""

    level: int  # from 1
    title: str


@dataclass(frozen=True, slots=True)
class HeadingLines:
    """What a file says about its headings, in reading order as far as that is known."""

    lines: tuple[HeadingLine, ...] = ()
    outline: tuple[OutlineEntry, ...] = ()
    body_size: float = 0.0  # of ordinary text, in points
    body_font: str = ""
    body_share: float = 1.0  # the share of the text that is of this size
    footnotes: tuple[FootnoteLines, ...] = ()


NO_HEADINGS = HeadingLines()


@dataclass(frozen=True, slots=True)
class PaperSection:
    """The span [start, end) of a paper's text that a heading stands over, the heading and its subsections included.

    Level 0 is a block that has no heading: a caption, a footnote, a licence line. It lies within a section or before
    the first one, and nothing lies within it.
    """

    start: int
    end: int
    level: int  # from 1; 0 for a block
    number: str  # "5.2", "IV", "A"; "" for none
    title: str
    kind: Kind

    @property
    def shown(self) -> str:
        """As shown to people: "§5.2 Leader election", "Abstract"."""
        return f"§{self.number} {self.title}" if self.number else self.title


# Spans [start, end) of a text, in order, none overlapping another
Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class SectionMap:
    """The sections of a paper, ordered by their start. Each lies within the one above it, or beside it."""

    sections: tuple[PaperSection, ...] = ()

    @property
    def headed(self) -> tuple[PaperSection, ...]:
        """The sections that have a heading: all but the blocks."""
        return tuple(section for section in self.sections if section.level)

    def of(self, start: int, end: int) -> tuple[PaperSection, ...]:
        """The innermost section of each part of the text [start, end), in order; parts before any heading have none.

        Blocks are left out: a caption stands in the section around it.
        """
        found: list[PaperSection] = []
        for section in self.sections:
            if section.start >= end:
                break
            if not section.level:
                continue
            if section.start <= start:
                # One within the others: the last that still holds the start is the innermost there.
                found = [section] if start < section.end else found
            else:
                found.append(section)
        return tuple(found)

    def kind(self, start: int, end: int) -> Kind | None:
        """The kind of the section that holds most of the text [start, end); None before any heading."""
        found = self.of(start, end)
        edges = [max(start, section.start) for section in found] + [end]
        lengths = [second - first for first, second in pairwise(edges)]
        return found[lengths.index(max(lengths))].kind if found else None

    def shown(self, start: int, end: int) -> str:
        """The section of the text [start, end) in words; "§5.2 Log – §6 Clients" for several, "" for none.

        A text within a caption is named after it too: "Figure 3 in §5.2 Log".
        """
        found = self.of(start, end)
        place = f"{found[0].shown} – {found[-1].shown}" if len(found) > 1 else "".join(one.shown for one in found)
        caption = next((one for one in self.sections if one.kind == "caption" and one.start <= start < one.end), None)
        if caption is None or caption.level or caption.end < end:
            return place
        return f"{caption.title} in {place}" if place else caption.title

    def spans(self, chosen: Callable[[PaperSection], bool]) -> Spans:
        """The text of the sections and blocks that are chosen, with all that lies in them."""
        found: list[tuple[int, int]] = []
        for section in self.sections:
            if chosen(section) and not (found and section.start < found[-1][1]):
                found.append((section.start, section.end))
        return tuple(found)

    def apart(self, kinds: frozenset[Kind] = APART) -> Spans:
        """The text whose innermost section or block is of these kinds: a caption among the references is none."""
        found: list[tuple[int, int]] = []
        open_: list[PaperSection] = []  # the sections that have not ended, outermost first
        at = 0
        for section in (*self.sections, None):
            while open_ and (section is None or open_[-1].end <= section.start):
                innermost = open_.pop()
                if innermost.kind in kinds:
                    _add(found, at, innermost.end)
                at = innermost.end
            if section is not None:
                if open_ and open_[-1].kind in kinds:
                    _add(found, at, section.start)
                at = section.start
                open_.append(section)
        return tuple(found)


def _add(found: list[tuple[int, int]], start: int, end: int) -> None:
    """Adds a span, joined to the last one if they touch."""
    if start < end:
        joined = found.pop()[0] if found and found[-1][1] == start else start
        found.append((joined, end))


def overlap(spans: Spans, start: int, end: int) -> int:
    """How many characters of [start, end) lie in the spans."""
    first = bisect_right(spans, start, key=lambda span: span[1])
    count = 0
    for low, high in spans[first:]:
        if low >= end:
            break
        count += min(high, end) - max(low, start)
    return count


NO_SECTIONS = SectionMap()
