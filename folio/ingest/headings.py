"""Finds the headings of a paper among the lines that may be headings (pdf/heading_lines.py), and their levels. Pure.

Headings are known by what they say ("Abstract"), by their numbers, which count up, and by the file's outline. How those
are set then shows which other lines are headings, and of which level.
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
# What is never a section's heading
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
# A title alone that is a heading wherever it is set apart
_KNOWN = re.compile(
    r"abstract|summary|introduction|references|bibliography|acknowledge?ments?|conclusions?|discussion|results|methods"
    r"|materials and methods|related work|background|appendix|keywords|categories and subject descriptors|general terms"
    r"|statement of need|limitations",
    re.I,
)
_ABSTRACT = re.compile(r"abstract|summary|acknowledge?ments?", re.I)
# Sections that are no part of another one
_ALWAYS_TOP = re.compile(r"abstract|introduction|references|bibliography|acknowledge?ments?", re.I)
# A title has at most this many words.
_MAX_WORDS = 18
# A heading is smaller than ordinary text by at most this many points, unless it is known by its words.
_SMALLER = 0.6
# Larger than ordinary text, and so much that it is a heading even where headings have numbers
_LARGER, _MUCH_LARGER = 0.4, 0.9
# Headings of one level differ by at most this many points: in scans, sizes are guesses.
_SIZES_APART = 1.0
# An appendix "A" counts as section 101.
_APPENDIX = 100
# At least this share of an outline's entries stand in the text, if it is believed.
_TRUE = 0.5
# The most styles that are tried; a file can have as many as it has lines.
_STYLES = 50
# A paper with this many numbered headings numbers its sections.
_COUNTED = 4
# At least this share of the lines set alike stand over ordinary text, if they are headings.
_PURE = 0.7
_MAX_LEVEL = 6
# Where less of the text is in its most common size, the sizes are guesses of an OCR program.
_SCANNED = 0.3
# A line on this many pages is a running head.
_RUNNING = 3


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading, without its place in the text."""

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
    found = _NUMBERED.match(line.text)
    number, title = (found["number"], line.text[found.end() :]) if found else ("", line.text)
    if found and found["number"].islower():  # "a simple scheme"
        number, title = "", line.text
    return Heading(line, number, title.strip().rstrip(":.—– "), 0)


def _without_letter(heading: Heading) -> Heading:
    """A heading whose first letter turned out to be a word: "A simple scheme"."""
    if heading.number.isalpha() and heading.line.text.startswith(f"{heading.number} "):
        return replace(heading, number="", title=heading.line.text)
    return heading


def _without_contents(lines: Sequence[HeadingLine]) -> list[HeadingLine]:
    """The lines without those of a table of contents, which end with a page's number."""
    count = Counter(line.page for line in lines)
    entries = Counter(line.page for line in lines if _CONTENTS.search(line.text))
    contents = {page for page in entries if entries[page] >= _ENTRIES and 2 * entries[page] >= count[page]}
    return [line for line in lines if not (_CONTENTS if line.page in contents else _LEADERS).search(line.text)]


def _without_running(lines: Sequence[HeadingLine]) -> list[HeadingLine]:
    """The lines without those that are repeated on several pages."""
    pages: defaultdict[tuple[str, Style], set[int]] = defaultdict(set)
    keys = [(re.sub(r"\d+", "#", line.text), line.style) for line in lines]
    for key, line in zip(keys, lines, strict=True):
        pages[key].add(line.page)
    return [line for key, line in zip(keys, lines, strict=True) if len(pages[key]) < _RUNNING]


def _squashed(text: str) -> str:
    # Not text.fold, which drops accents: the sections that are stored would change.
    return "".join(filter(str.isalnum, normalize_characters(text).casefold()))


def _by_outline(parsed: Sequence[Heading], headings: HeadingLines, anchors: dict[int, Heading]) -> None:
    """Adds the lines that the outline names, in its order, if it names most of its entries truly."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for index, heading in enumerate(parsed):
        if not heading.line.is_run_in:
            for title in {_squashed(heading.title), _squashed(heading.number + heading.title)}:
                places[title].append(index)
    found: dict[int, int] = {}
    after = 0
    for entry in headings.outline:
        at = places.get(_squashed(entry.title), [])
        if (next_place := bisect_left(at, after)) < len(at):
            found[at[next_place]], after = entry.level, at[next_place] + 1
    if len(found) < max(2, _TRUE * len(headings.outline)):
        return
    first, *rest = sorted(found)
    if rest and found[first] < min(found[index] for index in rest) and parsed[first].line.page == 1:
        del found[first]  # the paper's title, above all others
    top = min(found.values())
    for index, level in found.items():
        anchors[index] = replace(parsed[index], level=level - top + 1)


def _by_number(parsed: Sequence[Heading], headings: HeadingLines, anchors: dict[int, Heading]) -> None:
    """Adds the lines whose numbers count up, each level set alike."""
    best: list[tuple[int, int]] = []
    tops = Counter(_look(heading) for heading in parsed if heading.number and not heading.line.is_run_in)
    for top, _ in tops.most_common(_STYLES):
        best = max(best, list(_counted(parsed, top, headings)), key=len)
    if sum(level == 1 for _, level in best) < 2:
        return
    for index, level in best:
        anchors.setdefault(index, replace(parsed[index], level=level))


def _look(heading: Heading) -> tuple[float, bool, bool]:
    """What is alike in the headings of a level."""
    style = heading.line.style
    return style.size, style.is_bold, style.is_italic


def _counted(
    parsed: Sequence[Heading], top: tuple[float, bool, bool], headings: HeadingLines
) -> Iterator[tuple[int, int]]:
    """The lines that count up from a first section set like this, with their levels."""
    styles: dict[int, tuple[float, bool, bool]] = {1: top}
    place: list[int] = []  # the numbers of the current section and those above it
    is_roman = False
    for index, heading in enumerate(parsed):
        if not heading.number or not _is_set_apart(heading.line, headings):
            continue
        style = _look(heading)
        for numbers in _readings(heading, is_roman, place):
            level = len(numbers)
            if not _follows(place, numbers) or (level == 1 and heading.line.is_run_in):
                continue
            if abs(styles.setdefault(level, style)[0] - style[0]) > _SIZES_APART or styles[level][1:] != style[1:]:
                continue
            if not place and heading.number.isalpha():
                is_roman = True
            place = numbers
            yield index, level
            break


def _readings(heading: Heading, is_roman: bool, place: Sequence[int]) -> Iterator[list[int]]:
    """What a number can mean: the numbers of its section and those above it."""
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
    first, *rest = number.split(".")
    if len(first) == 1:
        letter = ord(first) - ord("A") + 1
        if is_roman:
            yield [*place[:1], letter]
        elif place:  # an appendix: counted after the sections
            yield [_APPENDIX + letter, *map(int, rest)]


def _roman(number: str) -> int:
    values = [_ROMAN[sign] for sign in number]
    return sum(-value if value < max(values[index:]) else value for index, value in enumerate(values))


def _follows(place: Sequence[int], numbers: Sequence[int]) -> bool:
    """Whether a section may come after the one at `place`: the next beside it or one above it, or its first."""
    level = len(numbers)
    if not place:
        return list(numbers) in ([1], [0])
    if not numbers or level > len(place) + 1 or list(numbers[: level - 1]) != list(place[: level - 1]):
        return False
    last = place[level - 1] if level <= len(place) else 0
    return last < numbers[-1] <= last + 2 or (numbers[-1] == _APPENDIX + 1 and last < _APPENDIX)


def _is_set_apart(line: HeadingLine, headings: HeadingLines) -> bool:
    """Whether a line is set otherwise than ordinary text, and not much smaller."""
    style = line.style
    if style.size < headings.body_size - _SMALLER:
        return False
    return _is_marked(style, headings) or style.font != headings.body_font


def _by_words(parsed: Sequence[Heading], headings: HeadingLines, anchors: dict[int, Heading]) -> None:
    """Adds the lines that are headings by what they say."""
    top = {heading.line.style for heading in anchors.values() if heading.level == 1}
    below = {heading.line.style for heading in anchors.values() if heading.level > 1} - top
    ranks: dict[str, tuple[float, bool, bool, bool]] = {}  # of each title, as it is set where it first stands
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
    """Adds the lines without a number that are set as headings are, after the first heading that is known otherwise."""
    first = min(anchors, default=0)
    title = max((heading.line.style.size for heading in parsed if heading.line.page == 1), default=0.0)
    is_counted = sum(bool(heading.number) for heading in anchors.values()) >= _COUNTED
    levels, deepest = _levels(anchors.values())
    rest: defaultdict[Style, list[int]] = defaultdict(list)
    for index in range(first, len(parsed)):
        line = parsed[index].line
        is_title = not anchors and line.page == 1 and line.style.size == title
        if not (index in anchors or parsed[index].number or line.is_run_in or is_title):
            rest[line.style].append(index)
    if headings.body_share < _SCANNED:  # every line of a scan has its own size
        rest = defaultdict(list, {style: rest[style] for style in rest if style in levels})
    common = sorted(rest, key=lambda style: len(rest[style]), reverse=True)[:_STYLES]
    for style in sorted(common, key=_rank, reverse=True):
        lines = [index for index in rest[style] if parsed[index].line.introduces]
        if not _is_set_apart(parsed[rest[style][0]].line, headings):
            continue
        if style not in levels:
            if not _is_heading_style(style, headings, is_counted, len(lines), len(rest[style])):
                continue
            above = [level for known, level in deepest.items() if _rank(known) > _rank(style)]
            levels[style] = deepest[style] = min(max(above, default=0) + 1, _MAX_LEVEL)
        for index in lines if style.size <= headings.body_size + _LARGER else rest[style]:
            anchors[index] = replace(parsed[index], level=levels[style])


def _levels(anchors: Iterable[Heading]) -> tuple[dict[Style, int], dict[Style, int]]:
    """How headings are set -> their highest level, and their deepest."""
    standing = [heading for heading in anchors if not heading.line.is_run_in]
    # An abstract is often set as no other heading is.
    usual = [heading for heading in standing if not _ABSTRACT.fullmatch(heading.title)] or standing
    highest: dict[Style, int] = {}
    deepest: dict[Style, int] = {}
    for heading in usual:
        style, level = heading.line.style, heading.level
        highest[style], deepest[style] = min(highest.get(style, level), level), max(deepest.get(style, 0), level)
    return highest, deepest


def _is_heading_style(style: Style, headings: HeadingLines, is_counted: bool, introducing: int, lines: int) -> bool:
    """Whether lines set like this are headings, though none is known to be one.

    is_counted: whether the paper numbers its sections; then only larger type marks others. introducing: how many of
    the lines stand over ordinary text.
    """
    if introducing < _PURE * lines or not introducing:
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
