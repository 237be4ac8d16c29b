"""The sections of a paper: locates its headings in the cleaned text and builds the tree of sections. Pure.

The first headings are recognised among the lines that may be headings (pdf/headings.py) by the file's outline, by
numbers that count up, and by titles such as "Abstract". Their styles then show which other lines are headings, and of
which level.

Captions, footnotes, licence lines, affiliations and algorithms are blocks without a heading. A block is recognised by
the beginning of its paragraph, a footnote by its place on the page, an algorithm by its label and steps
(algorithms.py). In doubt, a paragraph is ordinary text, because search leaves out licences and the like.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise, takewhile

from folio.ingest.algorithms import Algorithm, find_algorithms
from folio.ingest.cleaning import normalize_characters
from folio.papers.model import PageMap
from folio.papers.sections import (
    FootnoteLines,
    HeadingLine,
    HeadingLines,
    Kind,
    PaperSection,
    SectionMap,
    Style,
    overlap,
)
from folio.text import one_line

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
    algorithms = find_algorithms(text)
    located = _located(find_headings(headings), text, pages)
    tree = _tree([each for each in located if not _is_inside(each[0], algorithms)], len(text))
    without_heading = blocks(text, pages, tree, _footnotes(headings.footnotes, text, pages), algorithms)
    return tuple(sorted((*tree, *without_heading), key=lambda section: section.start))


def _is_inside(place: int, algorithms: Sequence[Algorithm]) -> bool:
    """Whether a place is within an algorithm, after its first character."""
    before = bisect_left(algorithms, place, key=lambda algorithm: algorithm.start) - 1
    return before >= 0 and place < algorithms[before].end


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


_ROMAN = {"I": 1, "V": 5, "X": 10, "L": 50}
# The number of a section: "5.2", "IV.", "A.", "A.1", "2)"; "Appendix A", "Chapter 3"
_NUMBERED = re.compile(
    r"(?P<word>appendix|chapter|section|part)?\s*"
    r"(?P<number>\d{1,2}(?:\.\d{1,2}){0,4}|[IVXL]{1,6}(?=[.\s:])|[A-Z](?:\.\d{1,2}){0,3}(?=[.\s:)]))"
    r"(?P<mark>[.)]|\s*[:—–])?\s+(?=\S)",
    re.I,
)
# Labels of objects that are never the heading of a section
_NOT_HEADING = re.compile(
    r"(?:fig(?:ure|\.)?|tab(?:le|\.)?|listing|algorithm|theorem|lemma|proposition|corollary|definition|proof|remark|claim"
    r"|property|invariant|axiom|rule|example|exercise|scheme|function|procedure|phase|step|case|eq(?:uation|\.)?)\s*"
    r"(?:\d|[A-Z]\b|[IVX]+\b|\(|[.:]|$)",
    re.I,
)
_LEADERS = re.compile(r"(?:\.\s?){4,}")
_CONTENTS = re.compile(rf"{_LEADERS.pattern}|\s\d{{1,3}}$")
# A page of contents has at least this many entries.
_ENTRIES = 4
_OPENING = "[(\"'“‘«¿¡"
# A title that is a heading wherever its style differs from body text
_KNOWN = re.compile(
    r"abstract|summary|introduction|references|bibliography|acknowledge?ments?|conclusions?|discussion|results|methods"
    r"|materials and methods|related work|background|appendix|keywords|categories and subject descriptors|general terms"
    r"|statement of need|limitations",
    re.I,
)
_ABSTRACT = re.compile(r"abstract|summary|acknowledge?ments?", re.I)
# Sections that are never a subsection
_ALWAYS_TOP = re.compile(r"abstract|introduction|references|bibliography|acknowledge?ments?", re.I)
# A title has at most this many words.
_MAX_WORDS = 18
# A heading is at most this many points smaller than body text, unless it is recognised by its words.
_SMALLER = 0.6
# Points above body text from which type counts as larger, and as a heading even where headings have numbers
_LARGER, _MUCH_LARGER = 0.4, 0.9
# Headings of one level differ by at most this many points, because the sizes in scans are estimates.
_MAX_SIZE_DIFFERENCE = 1.0
# An appendix "A" counts as section 101.
_APPENDIX_LINES = 100
# An outline is used if at least this share of its entries match lines of the text.
_MIN_MATCHED = 0.5
# The most styles that are tried; a file can have as many as it has lines.
_STYLES = 50
# A paper with at least this many numbered headings numbers its sections.
_MIN_NUMBERED_HEADINGS = 4
# A style is that of headings if at least this share of its lines are directly above body text.
_MIN_INTRODUCING = 0.7
_MAX_LEVEL = 6
# If a smaller share of the text has the most common size, the sizes are estimates of an OCR program.
_SCANNED = 0.3
# A line on this many pages is a running head.
_RUNNING = 3


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading, before its position in the text is known."""

    line: HeadingLine
    number: str  # "5.2", "IV", "A"; "" for none
    title: str
    level: int  # 0 if it is not known yet


def find_headings(headings: HeadingLines) -> list[Heading]:
    """The headings among the lines, each with its level."""
    lines = [replace(line, text=clean_line(line.text)) for line in headings.lines]
    lines = [line for line in lines if line.text and _may_be(line)]
    lines = _without_running(_without_contents(lines))
    parsed = [_parsed(line) for line in lines]
    anchors: dict[int, Heading] = {}
    _by_outline(parsed, headings, anchors)
    _by_number(parsed, headings, anchors)
    parsed = [anchors.get(index, _without_letter(heading)) for index, heading in enumerate(parsed)]
    _by_words(parsed, headings, anchors)
    _by_style(parsed, headings, anchors)
    return [anchors[index] for index in sorted(anchors)]


def _may_be(line: HeadingLine) -> bool:
    text = line.text
    if _NOT_HEADING.match(text) or len(text.split()) > _MAX_WORDS or text[-1] in ",;-=":
        return False
    numbered = _NUMBERED.match(text)
    title = text[numbered.end() :] if numbered and numbered["number"][0].isdecimal() else text
    first = next((character for character in title if character.isalpha()), "a")
    return (text[0].isalnum() or text[0] in _OPENING) and not first.islower()


def _parsed(line: HeadingLine) -> Heading:
    match = _NUMBERED.match(line.text)
    number, title = (match["number"], line.text[match.end() :]) if match else ("", line.text)
    if match and match["number"].islower():  # "a simple scheme"
        number, title = "", line.text
    return Heading(line, number, title.strip().rstrip(":.—– "), 0)


def _without_letter(heading: Heading) -> Heading:
    """A heading whose leading letter is a word and not a number: "A simple scheme"."""
    if heading.number.isalpha() and heading.line.text.startswith(f"{heading.number} "):
        return replace(heading, number="", title=heading.line.text)
    return heading


def _without_contents(lines: Sequence[HeadingLine]) -> list[HeadingLine]:
    """The lines without those of a table of contents, which end with a page number."""
    count = Counter(line.page for line in lines)
    entries = Counter(line.page for line in lines if _CONTENTS.search(line.text))
    contents = {page for page in entries if entries[page] >= _ENTRIES and 2 * entries[page] >= count[page]}
    return [line for line in lines if not (_CONTENTS if line.page in contents else _LEADERS).search(line.text)]


def _without_running(lines: Sequence[HeadingLine]) -> list[HeadingLine]:
    """The lines without running heads, which are repeated on several pages."""
    pages: defaultdict[tuple[str, Style], set[int]] = defaultdict(set)
    keys = [(re.sub(r"\d+", "#", line.text), line.style) for line in lines]
    for key, line in zip(keys, lines, strict=True):
        pages[key].add(line.page)
    return [line for key, line in zip(keys, lines, strict=True) if len(pages[key]) < _RUNNING]


def _squashed(text: str) -> str:
    # Not text.fold, which drops accents: the sections that are stored would change.
    return "".join(filter(str.isalnum, normalize_characters(text).casefold()))


def _by_outline(parsed: Sequence[Heading], headings: HeadingLines, anchors: dict[int, Heading]) -> None:
    """Adds the lines that the outline lists, in its order, if most of its entries match a line."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for index, heading in enumerate(parsed):
        if not heading.line.is_run_in:
            whole = heading.line.text  # an outline may have the word too: "Appendix B — Zetas Array"
            for title in {_squashed(each) for each in (heading.title, heading.number + heading.title, whole)}:
                places[title].append(index)
    level_of: dict[int, int] = {}
    after = 0
    for entry in headings.outline:
        at = places.get(_squashed(entry.title), [])
        if (next_place := bisect_left(at, after)) < len(at):
            level_of[at[next_place]], after = entry.level, at[next_place] + 1
    if len(level_of) < max(2, _MIN_MATCHED * len(headings.outline)):
        return
    first, *later = sorted(level_of)
    if later and level_of[first] < min(level_of[index] for index in later) and parsed[first].line.page == 1:
        del level_of[first]  # the paper's title, above all others
    top = min(level_of.values())
    for index, level in level_of.items():
        anchors[index] = replace(parsed[index], level=level - top + 1)


def _by_number(parsed: Sequence[Heading], headings: HeadingLines, anchors: dict[int, Heading]) -> None:
    """Adds the lines whose numbers count up, if the lines of each level have one style."""
    best: list[tuple[int, int]] = []
    tops = Counter(_level_style(heading) for heading in parsed if heading.number and not heading.line.is_run_in)
    for top, _ in tops.most_common(_STYLES):
        best = max(best, list(_counted(parsed, top, headings)), key=len)
    if sum(level == 1 for _, level in best) < 2:
        return
    for index, level in best:
        anchors.setdefault(index, replace(parsed[index], level=level))


def _level_style(heading: Heading) -> tuple[float, bool, bool]:
    """The part of a heading's style that all headings of its level share: size, bold, italic."""
    style = heading.line.style
    return style.size, style.is_bold, style.is_italic


def _counted(
    parsed: Sequence[Heading], top: tuple[float, bool, bool], headings: HeadingLines
) -> Iterator[tuple[int, int]]:
    """The lines whose numbers count up from a first section in the style `top`: their indexes and levels."""
    styles: dict[int, tuple[float, bool, bool]] = {1: top}
    place: list[int] = []  # the numbers of the current section and those above it
    is_roman = False
    for index, heading in enumerate(parsed):
        if not heading.number or not _is_distinct(heading.line, headings):
            continue
        style = _level_style(heading)
        for numbers in _readings(heading, is_roman, place):
            level = len(numbers)
            if not _follows(place, numbers) or (level == 1 and heading.line.is_run_in):
                continue
            if (
                abs(styles.setdefault(level, style)[0] - style[0]) > _MAX_SIZE_DIFFERENCE
                or styles[level][1:] != style[1:]
            ):
                continue
            if not place and heading.number.isalpha():
                is_roman = True
            place = numbers
            yield index, level
            break


def _readings(heading: Heading, is_roman: bool, place: Sequence[int]) -> Iterator[list[int]]:
    """The possible meanings of a number: each the numbers of its section and of those above it."""
    number = heading.number.upper()
    if number[0].isdecimal():
        numbers = list(map(int, number.split(".")))
        if is_roman or heading.line.text[len(number) : len(number) + 1] == ")":
            if len(numbers) == 1:  # "1)" below "A."
                yield [*place[:2], *numbers] if len(place) >= 2 else []
            return
        yield numbers
        return
    if set(number) <= set(_ROMAN) and (is_roman or not place):
        yield [_roman(number)]
    first, *lower = number.split(".")
    if len(first) == 1:
        letter = ord(first) - ord("A") + 1
        if is_roman:
            yield [*place[:1], letter]
        elif place:  # an appendix: its number comes after those of the sections
            yield [_APPENDIX_LINES + letter, *map(int, lower)]


def _roman(number: str) -> int:
    values = [_ROMAN[sign] for sign in number]
    return sum(-value if value < max(values[index:]) else value for index, value in enumerate(values))


def _follows(place: Sequence[int], numbers: Sequence[int]) -> bool:
    """Whether a section may come after the one at `place`: as a next one of its level or above, or its first part."""
    level = len(numbers)
    if not place:
        return list(numbers) in ([1], [0])
    if not numbers or level > len(place) + 1 or list(numbers[: level - 1]) != list(place[: level - 1]):
        return False
    last = place[level - 1] if level <= len(place) else 0
    return last < numbers[-1] <= last + 2 or (numbers[-1] == _APPENDIX_LINES + 1 and last < _APPENDIX_LINES)


def _is_distinct(line: HeadingLine, headings: HeadingLines) -> bool:
    """Whether the style of a line differs from body text, and is not much smaller."""
    style = line.style
    if style.size < headings.body_size - _SMALLER:
        return False
    return _is_marked(style, headings) or style.font != headings.body_font


def _by_words(parsed: Sequence[Heading], headings: HeadingLines, anchors: dict[int, Heading]) -> None:
    """Adds the lines whose titles are those of well-known sections."""
    top = {heading.line.style for heading in anchors.values() if heading.level == 1}
    below = {heading.line.style for heading in anchors.values() if heading.level > 1} - top
    ranks: dict[str, tuple[float, bool, bool, bool]] = {}  # title -> the rank of its first occurrence
    for index, heading in enumerate(parsed):
        if index in anchors or heading.number or not _KNOWN.fullmatch(heading.title):
            continue
        style = heading.line.style
        is_sub = top and style in below and not _ALWAYS_TOP.fullmatch(heading.title)
        if is_sub or not (_is_marked(style, headings) or style.font != headings.body_font):
            continue
        best = ranks.setdefault(heading.title.casefold(), _rank(style))
        if best == _rank(style) or heading.line.is_run_in:
            anchors[index] = replace(heading, level=1)


def _is_marked(style: Style, headings: HeadingLines) -> bool:
    return style.is_bold or style.is_italic or style.is_upper or style.size > headings.body_size + _LARGER


def _by_style(parsed: Sequence[Heading], headings: HeadingLines, anchors: dict[int, Heading]) -> None:
    """Adds unnumbered lines in the style of headings, after the first heading that is already known."""
    first = min(anchors, default=0)
    title = max((heading.line.style.size for heading in parsed if heading.line.page == 1), default=0.0)
    is_counted = sum(bool(heading.number) for heading in anchors.values()) >= _MIN_NUMBERED_HEADINGS
    levels, deepest = _levels(anchors.values())
    by_style: defaultdict[Style, list[int]] = defaultdict(list)
    for index in range(first, len(parsed)):
        line = parsed[index].line
        is_title = not anchors and line.page == 1 and line.style.size == title
        if not (index in anchors or parsed[index].number or line.is_run_in or is_title):
            by_style[line.style].append(index)
    if headings.body_share < _SCANNED:  # every line of a scan has its own size
        by_style = defaultdict(list, {style: by_style[style] for style in by_style if style in levels})
    common = sorted(by_style, key=lambda style: len(by_style[style]), reverse=True)[:_STYLES]
    for style in sorted(common, key=_rank, reverse=True):
        lines = [index for index in by_style[style] if parsed[index].line.introduces]
        if not _is_distinct(parsed[by_style[style][0]].line, headings):
            continue
        if style not in levels:
            if not _is_heading_style(style, headings, is_counted, len(lines), len(by_style[style])):
                continue
            above = [level for other, level in deepest.items() if _rank(other) > _rank(style)]
            levels[style] = deepest[style] = min(max(above, default=0) + 1, _MAX_LEVEL)
        for index in lines if style.size <= headings.body_size + _LARGER else by_style[style]:
            anchors[index] = replace(parsed[index], level=levels[style])


def _levels(anchors: Iterable[Heading]) -> tuple[dict[Style, int], dict[Style, int]]:
    """Style -> the highest level of the headings in it, and style -> the deepest."""
    standing = [heading for heading in anchors if not heading.line.is_run_in]
    # An abstract often has a style of its own.
    usual = [heading for heading in standing if not _ABSTRACT.fullmatch(heading.title)] or standing
    highest: dict[Style, int] = {}
    deepest: dict[Style, int] = {}
    for heading in usual:
        style, level = heading.line.style, heading.level
        highest[style], deepest[style] = min(highest.get(style, level), level), max(deepest.get(style, 0), level)
    return highest, deepest


def _is_heading_style(style: Style, headings: HeadingLines, is_counted: bool, introducing: int, lines: int) -> bool:
    """Whether lines in this style are headings, although none of them is a known heading.

    is_counted: whether the paper numbers its sections; other headings then need larger type. introducing: how many of
    the lines are directly above body text.
    """
    if introducing < _MIN_INTRODUCING * lines or not introducing:
        return False
    if style.size >= headings.body_size + _MUCH_LARGER:
        return True
    return (
        not is_counted
        and introducing >= 2
        and (style.is_bold or (style.font != headings.body_font and not style.is_italic))
    )


def _rank(style: Style) -> tuple[float, bool, bool, bool]:
    """Larger for headings of higher levels."""
    return style.size, style.is_bold, style.is_upper, not style.is_italic


def clean_line(text: str) -> str:
    """A heading's text in the characters that a person would type."""
    return one_line(normalize_characters(text))


Span = tuple[int, int]

_PARAGRAPH = re.compile(r"[^\n]+(?:\n[^\n]+)*")
_CAPTION = re.compile(
    r"[ ]*(?P<name>(?:supplementary |supplemental |extended data )?"
    r"(?:fig(?:ure|\.)?|table|listing|algorithm|scheme|box))"
    r"[ ]*(?P<number>[A-Z]{0,2}[-.]?\d{1,3}(?:[.-]\d{1,3})?|[IVX]{1,6})[ ]?[.:|](?!\d)[ ]+\S",
    re.I,
)
_DOT_LEADERS = re.compile(r"(?:\.[ ]?){5,}")
# The first words of licences and of standard statements
_FORM = re.compile(
    r"[ ]*(?:permission (?:to (?:make|copy|reprint|republish|reproduce|use)|is (?:hereby )?granted)"
    r"|copyright\s*(?:©|\(c\)|held\b|is held\b|(?:19|20)\d\d)"
    r"|(?:©|\(c\))\s*(?:copyright\b|(?:the )?authors?\b|(?:19|20)\d\d)"
    r"|licen[cs]e\s*\n|licensed under\b|this is an? open[- ]access\b|open access this article"
    r"|this (?:work|article|paper|document|publication) (?:is|was)"
    r" (?:licensed|distributed|published|made available) under\b"
    r"|authors? of papers? retain\b|the authors? retains? (?:the )?copyright\b"
    r"|(?:the )?authors? (?:have )?declared? (?:that )?(?:no\b|they have no|there (?:is|are) no|that no)"
    r"|(?:competing|conflicts? of|declaration of (?:competing )?)\s*interests?(?: statement)?\s*[:.\n—–-]"
    r"|author(?:s|’s|'s|s’|s')? contributions?\s*[:.\n—–-]"
    r"|(?:\W{0,2}\s*)?correspond(?:ing author|ence)\b(?: should be (?:addressed|sent) to\b|[^.\n]{0,40}[:@]))",
    re.I,
)
_FORM_CHARACTERS = 1500
# A sentence in such a paragraph that is about the work itself; some PDFs have no spaces between its words
_CONTENT = re.compile(
    r"[ ]*(?:the[ ]?)?(?:code|data|open[ ]?peer[ ]?review|source|software)[^.\n]{0,40}(?:is|are)", re.I
)
_DATED = re.compile(
    r"[ ]*\W{0,2}[ ]*(?:manuscript )?"
    r"(?:received|accepted|submitted|published|revised|available online|first published)\b"
    r"(?:(?: on| in| online| for publication| in final form)*[ ]*[:;,]?[ ]*)(?:$|\n|[A-Z][a-z]{2,8}\.?[ ]\d|\d)",
    re.I,
)
_DATED_CHARACTERS = 250
# Affiliations
_INSTITUTION = re.compile(
    r"\b(?:universit\w+|università|institut\w*|departe?ment\w*|dept\b|laborator\w+|laboratoire|school of|college"
    r"|facult\w+|cent(?:er|re) for|academy|hospital|polytechnic\w*|inria|cnrs)\b",
    re.I,
)
_EMAIL = re.compile(r"[\w.}+-]+[ ]?@[ ]?[\w-]+(?:\.[\w-]+)+")
_MARKED = re.compile(r"[ ]*(?:\d{1,2}|[*∗†‡§¶a-h](?=[ ]?[A-Z]))[ ]?(?=[A-Z])")
_VERBS = re.compile(
    r"\b(?:is|are|was|were|be|been|has|have|had|we|our|it|this|that|these|which|can|will|would|should|they|not"
    r"|provides?|presents?|shows?|describes?|propose[sd]?|using|used)\b",
    re.I,
)
_AFFILIATION_CHARACTERS = 900
# This many characters of a bibliography without a year or an address are a table or a figure among its entries.
_STRETCH = 900
_CITED = re.compile(r"\b(?:1[5-9]|20)\d\d[a-z]?\b|[’']\d\d\b|https?:|doi|arXiv", re.I)
_APPENDIX = re.compile(r"[ ]*(?:appendi(?:x|ces)|supplement)", re.I)
# At least this share of a paragraph's characters are letters, if it is prose.
_LETTERS = 0.6


def blocks(
    text: str,
    pages: PageMap,
    sections: Sequence[PaperSection],
    footnotes: Sequence[Span],
    algorithms: Sequence[Algorithm] = (),
) -> tuple[PaperSection, ...]:
    """The blocks of a text, ordered by their start, each within one of the sections or before them.

    text: the cleaned text. sections: those with headings, ordered by their start. footnotes: their spans. Of blocks
    that overlap, algorithms come first.
    """
    starts = {section.start for section in sections}
    borders = sorted(starts.union(section.end for section in sections))
    cited = SectionMap(tuple(sections)).spans(lambda section: section.kind == "references")
    blocks_so_far: list[PaperSection] = []
    spans: list[Span] = []
    found: list[_Block] = [
        ("algorithm", clean_line(each.name), "", (each.start, each.end)) for each in algorithms
    ]
    for kind, title, number, (start, end) in (
        *found,
        *(("footnote", "", "", span) for span in footnotes if not overlap(cited, *span)),
        *_paragraph_blocks(text, pages, sections),
        *_foreign_blocks(text, sections),
    ):
        after = bisect_right(borders, start)
        end = min(end, borders[after]) if after < len(borders) else end
        end = start + len(text[start:end].rstrip())
        place = bisect_left(spans, (start, end))
        is_free = (place == 0 or spans[place - 1][1] <= start) and (place == len(spans) or end <= spans[place][0])
        if start < end and start not in starts and is_free:
            spans.insert(place, (start, end))
            blocks_so_far.append(PaperSection(start, end, 0, number, title, kind))
    return _joined(sorted(blocks_so_far, key=lambda block: block.start), text)


def _joined(separate: Sequence[PaperSection], text: str) -> tuple[PaperSection, ...]:
    """The blocks, with adjacent ones of the kind "other" joined."""
    joined: list[PaperSection] = []
    for block in separate:
        last = joined[-1] if joined else None
        if last and last.kind == block.kind == "other" and not text[last.end : block.start].strip():
            joined[-1] = replace(last, end=block.end)
        else:
            joined.append(block)
    return tuple(joined)


_Block = tuple[Kind, str, str, Span]  # kind, title, number, span


def _paragraph_blocks(text: str, pages: PageMap, sections: Sequence[PaperSection]) -> Iterator[_Block]:
    # Only text before the first heading on the first page can be an affiliation.
    front = min([pages.bounds(1, len(text))[1], *(section.start for section in sections if section.level)])
    for index, paragraph in enumerate(_PARAGRAPH.finditer(text)):
        start, end = paragraph.span()
        caption = _CAPTION.match(text, start, end)
        if caption and not _DOT_LEADERS.search(text, start, end):
            yield "caption", f"{clean_line(caption['name']).capitalize()} {caption['number']}", "", (start, end)
        elif (form := _FORM.match(text, start, end)) and end - start <= _FORM_CHARACTERS:
            yield "boilerplate", "", "", (start, _content_after(text, form.end(), end))
        elif _is_dates(text[start:end]) or (index > 0 and end <= front and _is_affiliation(text[start:end])):
            yield "boilerplate", "", "", (start, end)


def _content_after(text: str, start: int, end: int) -> int:
    """The start of the first line about the work itself; the end if there is none."""
    lines = (match.end() for match in re.compile("\n").finditer(text, start, end))
    return next((line for line in lines if _CONTENT.match(text, line, end)), end)


def _is_dates(paragraph: str) -> bool:
    """Whether a paragraph consists of dates of a manuscript: "Received 3 May 1843; accepted ..."."""
    if len(paragraph) > _DATED_CHARACTERS or not _DATED.match(paragraph):
        return False
    words = re.findall(r"[^\W\d_]{3,}", paragraph)
    return len(words) <= 14 and not _VERBS.search(paragraph)


def _is_affiliation(paragraph: str) -> bool:
    if len(paragraph) > _AFFILIATION_CHARACTERS or _VERBS.search(paragraph):
        return False
    if not _INSTITUTION.search(paragraph):
        return bool(_EMAIL.search(paragraph)) and len(paragraph) <= 200
    lines = paragraph.split("\n")
    begins = any(_MARKED.match(line) or _INSTITUTION.match(line.strip()) for line in lines)
    return begins or bool(_EMAIL.search(paragraph)) or (len(lines) > 1 and "," in paragraph)


def _foreign_blocks(text: str, sections: Sequence[PaperSection]) -> Iterator[_Block]:
    """Blocks among references or acknowledgements that are neither: a table, an appendix without a heading."""
    for section, after in pairwise((*sections, None)):
        assert section is not None
        end = min(section.end, after.start if after else section.end)
        paragraphs = [match.span() for match in _PARAGRAPH.finditer(text, section.start, end)]
        if section.kind == "acknowledgements":
            thanks = list(takewhile(lambda span: _is_thanks(text[slice(*span)]), paragraphs))
            for span in paragraphs[max(1, len(thanks)) :]:
                yield "other", "", "", span
        elif section.kind == "references":
            cited = [match.start() for match in _CITED.finditer(text, section.start, end)]
            for low, high in pairwise((*cited, end)):
                if high - low > _STRETCH:
                    inside = [span for span in paragraphs if low < span[0] and span[1] < high]
                    for span in inside if inside and inside[-1][1] - inside[0][0] > _STRETCH else ():
                        yield "other", "", "", span


def _is_thanks(paragraph: str) -> bool:
    """Whether a paragraph may continue the acknowledgements: it is prose and does not begin an appendix."""
    if _APPENDIX.match(paragraph):
        return False
    letters = sum(map(str.isalpha, paragraph))
    return letters >= _LETTERS * sum(not character.isspace() for character in paragraph)
