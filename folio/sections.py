"""The sections of a paper: spans of its text with a heading each, and the lines of a PDF that may be headings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

Kind = Literal[
    "abstract", "introduction", "methods", "results", "discussion", "conclusion", "limitations", "references",
    "acknowledgements", "appendix", "caption", "footnote", "boilerplate", "other",
]  # fmt: skip
KINDS: tuple[str, ...] = get_args(Kind)


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


NO_HEADINGS = HeadingLines()


@dataclass(frozen=True, slots=True)
class PaperSection:
    """The span [start, end) of a paper's text that a heading stands over, the heading and its subsections included."""

    start: int
    end: int
    level: int  # from 1
    number: str  # "5.2", "IV", "A"; "" for none
    title: str
    kind: Kind

    @property
    def shown(self) -> str:
        """As shown to people: "§5.2 Leader election", "Abstract"."""
        return f"§{self.number} {self.title}" if self.number else self.title


@dataclass(frozen=True, slots=True)
class SectionMap:
    """The sections of a paper, ordered by their start. Each lies within the one above it, or beside it."""

    sections: tuple[PaperSection, ...] = ()

    def of(self, start: int, end: int) -> tuple[PaperSection, ...]:
        """The innermost section of each part of the text [start, end), in order; parts before any heading have none."""
        found: list[PaperSection] = []
        for section in self.sections:
            if section.start >= end:
                break
            if section.start <= start:
                # One within the others: the last that still holds the start is the innermost there.
                found = [section] if start < section.end else found
            else:
                found.append(section)
        return tuple(found)

    def shown(self, start: int, end: int) -> str:
        """The section of the text [start, end) in words; "§5.2 Log – §6 Clients" for several, "" for none."""
        found = self.of(start, end)
        if not found:
            return ""
        return found[0].shown if len(found) == 1 else f"{found[0].shown} – {found[-1].shown}"


NO_SECTIONS = SectionMap()
