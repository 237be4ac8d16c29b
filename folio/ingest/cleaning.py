"""Text repair: what PDFs do to words, lines and pages is undone, as far as it can be told. Pure.

Compatibility forms are not folded wholesale (Unicode's NFKC): that would turn 10⁻³ into 10-3 and x² into x2. Only
what a typesetter put in for looks is undone: ligatures, hyphens at line ends, exotic spaces, running heads.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from folio.types import Page, PageMap

_LIGATURES = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st"}
# U+FFFF is what some fonts give for a dash or another sign that they have no letter for: it parts words too.
_SPACES = dict.fromkeys([0xFFFF, 0x09, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], " ")
_BREAKS = dict.fromkeys([0x0B, 0x0C, 0x85, 0x2028, 0x2029], "\n")
# The hyphens proper look and mean the same as the one on the keyboard; bullets come out of Wingdings and Symbol.
_LOOKALIKES = {0x2010: "-", 0x2011: "-", 0xF0B7: "•", 0xF0A7: "▪"}
_REPLACED = {**_LIGATURES, **_SPACES, **_BREAKS, **_LOOKALIKES}
# Controls, zero-width characters, directions, lone surrogates, private use, noncharacters. The zero-width joiners of
# Persian and of Indian scripts go too: a word with and without them is one word to whoever searches for it.
_DROPPED = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufdd0-\ufdef"
    "\ufffe\uffff\ud800-\udfff\ue000-\uf8ff\U000f0000-\U0010ffff]"
)
_SOFT_HYPHEN = "\xad"
# While words are put together, pages are parted by a form feed, or by a vertical tab where a word goes on.
_PAGE_END, _WORD_GOES_ON = "\f", "\v"
# A hyphen on a word at the end of a line or of a page, and the word that follows.
_BROKEN = re.compile(r"(?<=\w)([-\xad]) *(\n|\f+) *(?=(\w[\w-]*))")
_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_LAST_TOKEN = re.compile(r"\S+$")
_LAST_WORD = re.compile(r"[\w-]+$")
_LONGEST_WORD = 60
# Small words that end a compound ("built-in") but hardly ever a broken word.
_ENDINGS = frozenset(("in", "up", "to", "of", "by", "off"))
# After these the hyphen stands for what comes later: "pre- and postsynaptic".
_SUSPENDING = frozenset(("and", "or", "und", "oder"))
_BLANK_LINES = re.compile(r"\n(?:[ ]*\n){2,}")
_TRAILING = re.compile(r" +$", re.M)

# Running heads and feet are looked for among this many lines at the top and at the bottom of each page, and, as they
# can have more lines than that, again after those found are gone.
_EDGE, _ROUNDS = 3, 3
# A line is one if it stands on this share of the pages: left and right pages may have their own.
_SHARE = 0.4
# Fewer letters than this are no running head: rows of a table look alike with their digits folded.
_MIN_LETTERS = 4
# Less than this share of the text never remains.
_LEAST_LEFT = 0.2
_DIGITS = re.compile(r"\d{1,9}")
_PAGE_NUMBER = re.compile(
    r"(?:page\s*|p\.\s*)?[-\u2013\u2014|\[(]?\s*(\d{1,4}|[ivxlc]{1,8})\s*[-\u2013\u2014|\])]?(?:\s*(?:of|/|\|)\s*\d{1,4})?",
    re.I,
)
_CAPTION = re.compile(
    r"\s*(?:fig|tab|chapter|section|appendix|part|exercise|question|problem|example|listing|algorithm|theorem|lemma|step)",
    re.I,
)
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}

# A page's lines by number: those that are taken away are None.
_Lines = list[str | None]


class _Place(NamedTuple):
    page: int  # from 0
    line: int


def clean(pages: Sequence[Page]) -> tuple[str, PageMap]:
    """The text of a whole paper, and where in it each page begins.

    text[starts[i]:starts[i + 1]] is the text of page i + 1 and what joins it to the next page that has text: a blank
    line, a newline where a sentence goes on, nothing where a word does. The text can be written as UTF-8.
    """
    texts = [_characters(page.text) for page in pages]
    texts = _without_running_lines(texts, [page.label for page in pages])
    whole = _whole_words(_PAGE_END.join(text.strip() for text in texts))
    texts = [_whitespace(text) for text in re.split("[\f\v]", whole)] if pages else []
    ends = re.findall("[\f\v]", whole)

    parts: list[str] = []
    starts = [0] * len(texts)
    length = before = 0
    for index, text in enumerate(texts):
        if not text:
            continue
        if parts:
            parts.append("" if _WORD_GOES_ON in ends[before:index] else _joint(texts[before], text))
            length += len(parts[-1])
        starts[index] = length
        parts.append(text)
        length += len(text)
        before = index
    for index in reversed(range(len(texts))):
        if not texts[index]:
            starts[index] = starts[index + 1] if index + 1 < len(texts) else length
    return "".join(parts), PageMap(tuple(starts), tuple(page.label for page in pages))


def _characters(text: str) -> str:
    """The characters of the text as a person would type them."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_REPLACED)
    # Accents drawn over a letter become one character with it; nothing else is composed or decomposed.
    return unicodedata.normalize("NFC", _DROPPED.sub("", text))


def _whitespace(text: str) -> str:
    text = _TRAILING.sub("", text.replace(_SOFT_HYPHEN, ""))
    return _BLANK_LINES.sub("\n\n", text).strip()


def _joint(before: str, after: str) -> str:
    """What parts two pages: a newline where a sentence plainly goes on, else a blank line."""
    return "\n" if after[0].islower() and (before[-1].isalnum() or before[-1] in ",;-") else "\n\n"


def _whole_words(text: str) -> str:
    """The text with words put together that a line's or a page's end breaks.

    Whether the hyphen belongs to the word is decided by how the paper writes it elsewhere, then by its parts.
    """
    if not _BROKEN.search(text):
        return text
    words = Counter(word.casefold() for word in _WORD.findall(_BROKEN.sub(" ", text)))
    openings = frozenset(word.partition("-")[0] for word in words if "-" in word)

    def put_together(match: re.Match[str]) -> str:
        hyphen, gap, right = match.groups()
        ahead = _LAST_TOKEN.search(text, max(0, match.start() - _LONGEST_WORD), match.start())
        left = ahead.group() if ahead else ""
        across_pages = _PAGE_END in gap
        if right.casefold() in _SUSPENDING or (across_pages and not right[0].islower()):
            return match.group()
        if hyphen == _SOFT_HYPHEN or not _keeps_hyphen(left, right, words, openings):
            hyphen = ""
        return hyphen + (gap[:-1] + _WORD_GOES_ON if across_pages else "")

    return _BROKEN.sub(put_together, text)


def _keeps_hyphen(left: str, right: str, words: Counter[str], openings: frozenset[str]) -> bool:
    """Whether left-right is a compound rather than one word broken by a typesetter.

    left is what stands before the hyphen up to a space. words counts the paper's unbroken words, openings are the first
    parts of its compounds; both casefolded.
    """
    if "/" in left or "@" in left:  # an address
        return True
    # Typesetters break words between small letters.
    small = left[-1].islower() and right[0].islower()
    found = _LAST_WORD.search(left)
    left, right = (found.group() if found else left).casefold(), right.casefold()
    kept, joined = words[f"{left}-{right}"], words[left + right]
    if kept != joined:
        return kept > joined
    if not small or len(left) == 1 or right in _ENDINGS:
        return True
    if "-" in left:
        # "state-of-the-" goes on as it began; in "multi-dimen-" the last part is no word.
        last = left.rpartition("-")[2]
        return not words[last + right] and words[last] > 0
    # Short openings are syllables more often than words: in, re, pro, for.
    return len(left) > 3 and left in openings and words[left] > 0 and words[right] > 0


def _without_running_lines(texts: Sequence[str], labels: Sequence[str]) -> list[str]:
    """The pages without running heads, running feet and page numbers. Papers of less than three pages stay whole."""
    if sum(bool(text.strip()) for text in texts) < 3:
        return list(texts)
    pages: list[_Lines] = [list(text.split("\n")) for text in texts]
    for _ in range(_ROUNDS):
        edges = [_edges(lines) for lines in pages]
        running = _running_lines(pages, edges) | _page_numbers(pages, edges, labels)
        if not running:
            break
        for place in running:
            pages[place.page][place.line] = None
    kept = ["\n".join(line for line in lines if line is not None) for lines in pages]
    # Where next to nothing is left, the lines that come back are what the pages say.
    return kept if sum(map(len, kept)) > _LEAST_LEFT * sum(map(len, texts)) else list(texts)


def _edges(lines: _Lines) -> list[int]:
    """The numbers of the lines at the top and at the bottom of a page, in order."""
    filled = [number for number, line in enumerate(lines) if line and line.strip()]
    return sorted({*filled[:_EDGE], *filled[-_EDGE:]})


def _running_lines(pages: Sequence[_Lines], edges: Sequence[Sequence[int]]) -> set[_Place]:
    """Lines that come back at the edge of page after page, but for numbers that count the pages."""
    alike: dict[str, list[_Place]] = {}
    for page, numbers in enumerate(edges):
        for number in numbers:
            key = " ".join(_DIGITS.sub("#", pages[page][number] or "").split())
            if sum(character.isalpha() for character in key) >= _MIN_LETTERS:
                alike.setdefault(key, []).append(_Place(page, number))
    count = sum(bool(numbers) for numbers in edges)
    needed = max(2 if count == 3 else 3, math.ceil(_SHARE * count))
    running: set[_Place] = set()
    for places in alike.values():
        if len(places) >= needed:
            places = _counting_pages(pages, places)
        if len({place.page for place in places}) >= needed:
            running.update(places)
    # The head of the other pages is often the title, which stays where it stands for itself.
    opening = next(page for page, numbers in enumerate(edges) if numbers)
    return running - {_Place(opening, number) for number in edges[opening][:_EDGE]}


def _counting_pages(pages: Sequence[_Lines], places: Sequence[_Place]) -> list[_Place]:
    """Of lines that are alike but for their digits, those with one number at most that rises with the page.

    All others stay the same. "Table 3" and "Table 4" at the top of two pages are captions and not a running head.
    """
    first = pages[places[0].page][places[0].line] or ""
    kept, rising = list(places), 0
    for column in range(len(_DIGITS.findall(first))):
        values = {place: int(_DIGITS.findall(pages[place.page][place.line] or "")[column]) for place in kept}
        same, same_votes = Counter(values.values()).most_common(1)[0]
        shift, shift_votes = Counter(value - place.page for place, value in values.items()).most_common(1)[0]
        if same_votes >= shift_votes:
            kept = [place for place in kept if values[place] == same]
        else:
            kept = [place for place in kept if values[place] - place.page == shift]
            rising += 1
    return [] if rising > 1 or (rising and _CAPTION.match(first)) else kept


def _page_numbers(pages: Sequence[_Lines], edges: Sequence[Sequence[int]], labels: Sequence[str]) -> set[_Place]:
    """First and last lines that hold nothing but the number of their page, by its label or by the others' counting."""
    numbers: set[_Place] = set()
    counted: dict[_Place, tuple[bool, int]] = {}  # Roman or not, and how far ahead of the physical page
    for page, lines in enumerate(edges):
        for line in {*lines[:1], *lines[-1:]}:
            found = _PAGE_NUMBER.fullmatch((pages[page][line] or "").strip())
            if not found:
                continue
            number = found.group(1).casefold()
            counted[_Place(page, line)] = (not number.isdecimal(), _value(number) - page)
            if number == labels[page].casefold():
                numbers.add(_Place(page, line))
    votes = Counter(counted.values())
    arabic = max(2, math.ceil(0.3 * sum(bool(lines) for lines in edges)))
    for place, key in counted.items():
        if votes[key] >= (2 if key[0] else arabic):
            numbers.add(place)
    return numbers


def _value(number: str) -> int:
    """The value of a decimal or Roman number."""
    if number.isdecimal():
        return int(number)
    digits = [_ROMAN[sign] for sign in number]
    return sum(-digit if digit < max(digits[place:]) else digit for place, digit in enumerate(digits))
