"""The sections of a paper: locates its headings in the cleaned text and builds the tree of sections. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import groupby

from folio.ingest.cleaning import normalize_characters
from folio.ingest.headings import Heading, clean_line, find_headings
from folio.ingest.text_blocks import blocks
from folio.sections import FootnoteLines, HeadingLines, Kind, PaperSection
from folio.types import PageMap

# The kind of a section by its title; the first match counts.
_KINDS: tuple[tuple[Kind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.I))  # type: ignore[misc]
    for kind, pattern in (
        ("abstract", r"(?:extended |executive )?(?:abstract|summary)$"),
        ("references", r"(?:references|bibliography|literature cited|works cited|references (?:and|&) notes)\b"),
        ("acknowledgements", r"acknowledge?ments?\b|funding\b"),
        ("appendix", r"appendi(?:x|ces)\b|supplement"),
        ("boilerplate", r"(?:categories and subject|general terms|keywords?\b|index terms|copyright|licen[cs]e"
         r"|authors?.? (?:contributions?|addresses)|(?:competing|conflicts?) (?:of )?interests?"
         r"|publisher.?s note|contents$|table of contents|list of (?:figures|tables))"),
        ("limitations", r".*\b(?:limitations?|threats to validity)\b"),
        ("introduction", r"introduction\b|(?:background|motivation)\b|statement of need"),
        ("discussion", r"(?:general )?discussion\b"),
        ("conclusion", r"(?:.*\b)?(?:conclusions?|concluding remarks|summary and outlook|future work)\b"),
        ("methods", r"(?:.*\b)?(?:methods?|methodology|materials and methods"
         r"|experiment(?:al)? (?:setup|design))\b"),
        ("results", r"(?:.*\b)?(?:results|evaluation|experiments|findings|performance)\b"),
    )
)  # fmt: skip


def sections(headings: HeadingLines, text: str, pages: PageMap) -> tuple[PaperSection, ...]:
    """The sections and blocks of a paper, ordered by their start.

    text: the cleaned text. pages: where each page begins in it.
    """
    tree = _tree(_located(find_headings(headings), text, pages), len(text))
    without_heading = blocks(text, pages, tree, _footnotes(headings.footnotes, text, pages))
    return tuple(sorted((*tree, *without_heading), key=lambda section: section.start))


def _footnotes(footnotes: Sequence[FootnoteLines], text: str, pages: PageMap) -> list[tuple[int, int]]:
    """The spans of the footnotes that are in the text."""
    located: list[tuple[int, int]] = []
    for page, group in groupby(footnotes, key=lambda footnote: footnote.page):
        start, end = pages.bounds(page, len(text))
        lines = _PageLines(text[start:end])
        for footnote in group:
            span = lines.span(footnote.lines)
            if span is not None:
                located.append((start + span[0], start + span[1]))
    return located


def _located(headings: Sequence[Heading], text: str, pages: PageMap) -> list[tuple[int, Heading]]:
    """The headings that begin a line of the text, each with the offset of that line; in order."""
    placed: dict[int, Heading] = {}
    for page, group in groupby(headings, key=lambda heading: heading.line.page):
        start, end = pages.bounds(page, len(text))
        lines = _PageLines(text[start:end])
        for heading in group:
            at = lines.find(heading.line.text, whole=not heading.line.is_run_in)
            if at is not None:
                placed[start + at] = heading
    return sorted(placed.items(), key=lambda each: each[0])


class _PageLines:
    """A page's text, for finding lines by their letters and digits only: cleaning changes the other characters."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._places = [place for place, character in enumerate(text) if character.isalnum()]
        self._letters = _lower("".join([text[place] for place in self._places]))
        self._taken: set[int] = set()
        self._searched: dict[str, int] = {}  # line -> where its next search starts

    def find(self, line: str, whole: bool) -> int | None:
        """The start of the next occurrence of a line; None if there is none. whole: it must also end a line."""
        key = _lower("".join(filter(str.isalnum, normalize_characters(line))))
        at = self._letters.find(key, self._searched.get(key, 0)) if key else -1
        while at >= 0:
            start, end = self._between(at - 1), self._between(at + len(key) - 1)
            newline = self._text.rfind("\n", *start)
            if (newline >= 0 or not at) and at not in self._taken and (not whole or self._ends_line(*end)):
                self._taken.add(at)
                self._searched[key] = at + 1
                first = newline + 1 if newline >= 0 else 0
                return next(place for place in range(first, len(self._text)) if not self._text[place].isspace())
            at = self._letters.find(key, at + 1)
        self._searched[key] = len(self._letters)
        return None

    def span(self, lines: Sequence[str]) -> tuple[int, int] | None:
        """The span of these lines, up to the first that does not follow; None if the first line does not begin one."""
        start = self.find(lines[0], whole=False)
        if start is None:
            return None
        at = bisect_left(self._places, start)
        for line in lines:
            key = _lower("".join(filter(str.isalnum, normalize_characters(line))))
            if not self._letters.startswith(key, at):
                break
            at += len(key)
        end = self._places[at - 1] + 1
        newline = self._text.find("\n", end)
        return start, newline if newline >= 0 else len(self._text)

    def _between(self, index: int) -> tuple[int, int]:
        """The span between a letter and the next one."""
        after = self._places[index] + 1 if index >= 0 else 0
        return after, self._places[index + 1] if index + 1 < len(self._places) else len(self._text)

    def _ends_line(self, start: int, end: int) -> bool:
        return end == len(self._text) or "\n" in self._text[start:end]


def _lower(text: str) -> str:
    """The text in lower case, unless that changes its length."""
    lower = text.lower()
    return lower if len(lower) == len(text) else text


def _tree(placed: Sequence[tuple[int, Heading]], length: int) -> tuple[PaperSection, ...]:
    """Each heading's section, which ends at the next heading of its level or a higher one."""
    ends = [length] * len(placed)
    kinds: list[Kind] = []
    open_: list[int] = []  # the sections that have not ended, outermost first
    for index, (start, heading) in enumerate(placed):
        while open_ and placed[open_[-1]][1].level >= heading.level:
            ends[open_.pop()] = start
        kinds.append(_kind(heading) or (kinds[open_[-1]] if open_ else "other"))
        open_.append(index)
    return tuple(
        PaperSection(start, end, heading.level, heading.number, clean_line(heading.title), kind)
        for (start, heading), end, kind in zip(placed, ends, kinds, strict=True)
    )


def _kind(heading: Heading) -> Kind | None:
    if heading.line.text[:8].casefold() == "appendix":
        return "appendix"
    return next((kind for kind, pattern in _KINDS if pattern.match(heading.title)), None)
