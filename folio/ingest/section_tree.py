"""The sections of a paper: its headings found in the cleaned text, and the tree that they make. Pure."""

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

# Titles that say what a section is. The first that matches counts.
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
    """The sections and blocks of a paper, ordered by their start. text: cleaned; pages: where each begins in it."""
    tree = _tree(_placed(find_headings(headings), text, pages), len(text))
    found = blocks(text, pages, tree, _footnotes(headings.footnotes, text, pages))
    return tuple(sorted((*tree, *found), key=lambda section: section.start))


def _footnotes(footnotes: Sequence[FootnoteLines], text: str, pages: PageMap) -> list[tuple[int, int]]:
    """The spans of the footnotes that stand in the text."""
    found: list[tuple[int, int]] = []
    for page, group in groupby(footnotes, key=lambda footnote: footnote.page):
        start, end = pages.bounds(page, len(text))
        lines = _PageLines(text[start:end])
        for footnote in group:
            spans = lines.span(footnote.lines)
            if spans is not None:
                found.append((start + spans[0], start + spans[1]))
    return found


def _placed(found: Sequence[Heading], text: str, pages: PageMap) -> list[tuple[int, Heading]]:
    """The headings that stand in the text, each at the start of a line, with that start; in order."""
    placed: dict[int, Heading] = {}
    for page, group in groupby(found, key=lambda heading: heading.line.page):
        start, end = pages.bounds(page, len(text))
        lines = _PageLines(text[start:end])
        for heading in group:
            at = lines.find(heading.line.text, whole=not heading.line.is_run_in)
            if at is not None:
                placed[start + at] = heading
    return sorted(placed.items(), key=lambda each: each[0])


class _PageLines:
    """A page's text, in which lines are found by their letters and digits alone: cleaning changes the others."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._places = [place for place, character in enumerate(text) if character.isalnum()]
        self._letters = _lower("".join([text[place] for place in self._places]))
        self._taken: set[int] = set()
        self._searched: dict[str, int] = {}  # how far each line has been looked for

    def find(self, line: str, whole: bool) -> int | None:
        """Where a line begins that has not been found before; None for none. whole: it must end there too."""
        wanted = _lower("".join(filter(str.isalnum, normalize_characters(line))))
        at = self._letters.find(wanted, self._searched.get(wanted, 0)) if wanted else -1
        while at >= 0:
            start, end = self._between(at - 1), self._between(at + len(wanted) - 1)
            newline = self._text.rfind("\n", *start)
            if (newline >= 0 or not at) and at not in self._taken and (not whole or self._ends_line(*end)):
                self._taken.add(at)
                self._searched[wanted] = at + 1
                first = newline + 1 if newline >= 0 else 0
                return next(place for place in range(first, len(self._text)) if not self._text[place].isspace())
            at = self._letters.find(wanted, at + 1)
        self._searched[wanted] = len(self._letters)
        return None

    def span(self, lines: Sequence[str]) -> tuple[int, int] | None:
        """Where lines stand that follow each other, as many of them as do; None if the first begins no line."""
        start = self.find(lines[0], whole=False)
        if start is None:
            return None
        at = bisect_left(self._places, start)
        for line in lines:
            wanted = _lower("".join(filter(str.isalnum, normalize_characters(line))))
            if not self._letters.startswith(wanted, at):
                break
            at += len(wanted)
        end = self._places[at - 1] + 1
        newline = self._text.find("\n", end)
        return start, newline if newline >= 0 else len(self._text)

    def _between(self, index: int) -> tuple[int, int]:
        """The span after a letter up to the next one."""
        after = self._places[index] + 1 if index >= 0 else 0
        return after, self._places[index + 1] if index + 1 < len(self._places) else len(self._text)

    def _ends_line(self, start: int, end: int) -> bool:
        return end == len(self._text) or "\n" in self._text[start:end]


def _lower(text: str) -> str:
    """In lower case, with as many characters as before."""
    lower = text.lower()
    return lower if len(lower) == len(text) else text


def _tree(placed: Sequence[tuple[int, Heading]], length: int) -> tuple[PaperSection, ...]:
    """Each heading's section: up to the next heading of its level or a higher one."""
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
