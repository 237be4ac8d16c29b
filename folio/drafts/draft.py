"""A draft as paragraphs of text with the places where they cite something; and its sentences. Pure.

The readers (markdown.py, latex.py, word.py) turn what cites into one character each, so that a text can be cleaned and
cut into sentences without losing what is cited where.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from folio.bibliography.entries import Entry
from folio.papers import references
from folio.text import one_line, sentence_spans

FIRST_MARK, MOST_MARKS = 0xF0000, 0xFFFD  # a plane for private use: no text has its characters
_MARK = re.compile(r"[\U000F0000-\U000FFFFD]")
_MARK_BEHIND = re.compile(r"([.!?])\s?([\U000F0000-\U000FFFFD]+)(?=\s|$)")
_SPACE = re.compile(r"\s+(?=[.,;:!?)])|(?<=\()\s+")
_EMPTY = re.compile(r"\(\s*\)|\[\s*\]")
LEAST_WORDS = 3  # of a sentence: less is a heading, or an item's number

NARRATIVE = "The paper "  # stands for the authors that a citation names in a sentence: "Ongaro (2014) shows"

Way = Literal["key", "number", "name", "doi", "arxiv"]


class Cited(NamedTuple):
    """One work that a draft cites, by what it says of it."""

    way: Way
    name: str  # "ongaro2014", "3", "Ongaro", "10.1145/1", "2301.01234"
    year: str = ""  # with the name of an author: "2014", "2014b"
    shown: str = ""  # as the draft has it

    def __str__(self) -> str:
        return self.shown or " ".join(filter(None, (self.name, self.year)))


class Group(NamedTuple):
    """A place of a draft that cites one or several works."""

    line: int  # from 1; in a Word document, of its paragraphs
    cited: tuple[Cited, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of a draft. What cites is one character each, which stands for one of the groups of the draft."""

    line: int  # from 1
    text: str


@dataclass(frozen=True, slots=True)
class Draft:
    """What was read from a draft."""

    paragraphs: tuple[Paragraph, ...]
    groups: tuple[Group, ...]
    listed: tuple[references.Entry, ...] = ()  # its own list of references
    bibliography: tuple[Entry, ...] = ()  # of the .bib files that it names
    problems: tuple[str, ...] = ()  # what could not be read, in sentences


@dataclass(frozen=True, slots=True)
class DraftSentence:
    """A sentence that cites something."""

    line: int  # of what it cites first
    text: str  # without what cites
    cited: tuple[Cited, ...]
    parts: tuple[tuple[str, tuple[Cited, ...]], ...]  # the words before each place that cites, with what that cites


class Marker:
    """Gives each place that cites a character of its own."""

    def __init__(self) -> None:
        self.groups: list[Group] = []

    def mark(self, line: int, cited: Sequence[Cited]) -> str:
        """The character for a place that cites these; "" for none, and when there are too many."""
        if not cited or len(self.groups) >= MOST_MARKS:
            return ""
        self.groups.append(Group(line, tuple(cited)))
        return chr(FIRST_MARK + len(self.groups) - 1)


def without_marks(text: str) -> str:
    """A text without characters that could pass for a mark."""
    return _MARK.sub("\ufffd", text)


def sentences(draft: Draft) -> Iterator[DraftSentence]:
    """The sentences that cite something, in order."""
    for paragraph in draft.paragraphs:
        text = _MARK_BEHIND.sub(r"\2\1", paragraph.text)
        for start, end in sentence_spans(text):
            if found := _sentence(text[start:end], draft.groups):
                yield found


def _sentence(text: str, groups: Sequence[Group]) -> DraftSentence | None:
    marks = list(_MARK.finditer(text))
    if not marks:
        return None
    cited: dict[Cited, None] = {}
    parts: list[tuple[str, tuple[Cited, ...]]] = []
    last = 0
    for mark in marks:
        group = groups[ord(mark.group()) - FIRST_MARK]
        cited.update(dict.fromkeys(group.cited))
        if before := _plain(text[last : mark.start()]):
            parts.append((before, group.cited))
        elif parts:
            parts[-1] = parts[-1][0], (*parts[-1][1], *group.cited)
        last = mark.end()
    rest, plain = _plain(text[last:]), _plain(text)
    if parts and rest.strip(" .,;:!?"):
        parts[-1] = f"{parts[-1][0]} {rest}", parts[-1][1]
    if len(plain.split()) < LEAST_WORDS:
        return None
    line = groups[ord(marks[0].group()) - FIRST_MARK].line
    return DraftSentence(line, plain, tuple(cited), tuple(parts))


def _plain(text: str) -> str:
    return _SPACE.sub("", one_line(_EMPTY.sub(" ", _MARK.sub(" ", text)))).strip()


# What readers of text share: citations by authors and years, by numbers, by identifiers

_YEAR = r"(?:1[6-9]|20)\d\d[a-z]?"
_NAME = r"(?:(?:[Vv]an|[Vv]on|[Dd]e[nrls]?|[Dd]i|[Ll]a|['’]t) ){0,2}[^\W\d_a-z][\w’'‐-]{1,40}"
_OTHERS = rf"(?:,? et al\.?|(?:,? (?:and|&) {_NAME})|(?:, {_NAME}){{1,4}},? (?:and|&) {_NAME})?"
_ONE = rf"(?P<name>{_NAME}){_OTHERS},? \(?(?P<year>{_YEAR})\)?"
_WORK = re.compile(_ONE)
# "(Ongaro, 2014; Lamport 1998, p. 3)" and Folio's own "[Ongaro & Ousterhout 2014, p. 6]"
_IN_BRACKETS = re.compile(
    rf"[(\[](?:see |e\.g\.,? |cf\. )?(?P<all>{_NAME}[^()\[\]]{{0,300}}?\b{_YEAR}[^()\[\]]{{0,60}})[)\]]"
)
_NARRATIVE = re.compile(rf"(?P<name>{_NAME})(?P<others>{_OTHERS}) [(\[](?P<year>{_YEAR})(?:, [^()\[\]]{{0,30}})?[)\]]")
_NUMBERS = re.compile(r"\[(?P<numbers>\d{1,3}(?:\s?[,;–-]\s?\d{1,3}){0,30})\]")
_DOI = re.compile(r"(?:https?://(?:dx\.)?doi\.org/|doi:\s?)(?P<id>10\.\d{4,9}/[^\s<>\"”)\]}]+[^\s<>\"”)\]}.,;])", re.I)
_ARXIV = re.compile(
    r"(?:https?://arxiv\.org/(?:abs|pdf)/|\barxiv:\s?)"
    r"(?P<id>\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})(?:v\d+)?(?:\.pdf)?",
    re.I,
)
_MOST_NUMBERS = 50  # in a range such as [3-40]


class TextMarker(Marker):
    """Marks what cites in plain text."""

    def marked(self, text: str, line: int) -> str:
        """The text with one character for each place that cites. line: the number of its first line."""

        def line_of(found: re.Match[str]) -> int:
            return line + found.string.count("\n", 0, found.start())

        def by_name(found: re.Match[str]) -> str:
            works = [Cited("name", w["name"], w["year"], w.group().strip(" ()")) for w in _WORK.finditer(found["all"])]
            return self.mark(line_of(found), works) or found.group()

        def narrative(found: re.Match[str]) -> str:
            cited = Cited("name", found["name"], found["year"], found.group())
            return f"{found['name']}{found['others']} {self.mark(line_of(found), [cited])}"

        def numbers(found: re.Match[str]) -> str:
            works = [Cited("number", str(number), shown=f"[{number}]") for number in _numbers(found["numbers"])]
            return self.mark(line_of(found), works) or found.group()

        def identifier(found: re.Match[str]) -> str:
            way: Way = "doi" if found.re is _DOI else "arxiv"
            return self.mark(line_of(found), [Cited(way, found["id"], shown=found.group())])

        text = _ARXIV.sub(identifier, _DOI.sub(identifier, text))
        text = _NARRATIVE.sub(narrative, text)
        text = _IN_BRACKETS.sub(by_name, text)
        return _NUMBERS.sub(numbers, text)


def _numbers(written: str) -> Iterator[int]:
    """The numbers of "3, 5–7"."""
    for part in re.split(r"[,;]", written):
        first, _, last = re.sub(r"\s", "", part).replace("–", "-").partition("-")
        low, high = int(first), int(last or first)
        yield from range(low, min(high, low + _MOST_NUMBERS) + 1)
