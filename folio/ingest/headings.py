"""Finds the headings of a paper among the lines that may be headings (pdf/heading_lines.py), and their levels. Pure.

The first headings are recognised by the file's outline, by numbers that count up, and by titles such as "Abstract".
Their styles then show which other lines are headings, and of which level.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from folio.ingest.cleaning import normalize_characters
from folio.sections import HeadingLine, HeadingLines, Style
from folio.text import one_line

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
_APPENDIX = 100
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
            for title in {_squashed(heading.title), _squashed(heading.number + heading.title)}:
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
            yield [_APPENDIX + letter, *map(int, lower)]


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
    return last < numbers[-1] <= last + 2 or (numbers[-1] == _APPENDIX + 1 and last < _APPENDIX)


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
