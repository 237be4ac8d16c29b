"""Repairs the text of PDF pages: ligatures, hyphenated words, unusual spaces, running heads. Pure.

Unicode's NFKC is not applied, because it would turn 10⁻³ into 10-3 and x² into x2. Only typographic changes are undone.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from folio.papers.model import Page, PageMap
from folio.pdf.accents import compose_accents
from folio.pdf.order import without_lines
from folio.text import one_line

_LIGATURES = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st"}
# Some fonts yield U+FFFF for a dash or another sign without a code, so it separates words.
_SPACES = dict.fromkeys([0xFFFF, 0x09, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], " ")
_BREAKS = dict.fromkeys([0x0B, 0x0C, 0x85, 0x2028, 0x2029], "\n")
# Unicode's hyphens become the keyboard's; the bullets are those of Wingdings and Symbol.
_LOOKALIKES = {0x2010: "-", 0x2011: "-", 0xF0B7: "•", 0xF0A7: "▪"}
_REPLACED = {**_LIGATURES, **_SPACES, **_BREAKS, **_LOOKALIKES}
# Control, zero-width and direction characters, lone surrogates, private use, noncharacters. Zero-width joiners, used in
# Persian and Indic scripts, are dropped too: a search should find a word with or without them.
_DROPPED = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufdd0-\ufdef"
    "\ufffe\uffff\ud800-\udfff\ue000-\uf8ff\U000f0000-\U0010ffff]"
)
_SOFT_HYPHEN = "\xad"
# Page separators while words are being joined; the second stands inside a word that continues on the next page.
_PAGE_BREAK, _PAGE_BREAK_IN_WORD = "\f", "\v"
# A hyphen at the end of a line or page, and the next word.
_HYPHENATION = re.compile(r"(?<=\w)([-\xad]) *(\n|\f+) *(?=(\w[\w-]*))")
_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_LAST_TOKEN = re.compile(r"\S+$")
_LAST_WORD = re.compile(r"[\w-]+$")
_MAX_WORD_LENGTH = 60
# Short words that end a compound ("built-in") but hardly ever a hyphenated word.
_COMPOUND_ENDINGS = frozenset(("in", "up", "to", "of", "by", "off"))
# A hyphen before these is a suspended one: "pre- and postsynaptic".
_SUSPENDING = frozenset(("and", "or", "und", "oder"))
_BLANK_LINES = re.compile(r"\n(?:[ ]*\n){2,}")
_TRAILING = re.compile(r" +$", re.M)

# Running heads and feet are among this many lines at the top and bottom of each page. Each round removes some, and the
# next round checks the lines that are then at the edge.
_EDGE_LINES, _ROUNDS = 3, 3
# The share of pages on which a line must be repeated; left and right pages may have different heads.
_MIN_SHARE = 0.4
# Letters that a running head must have: rows of a table look alike once digits are masked.
_MIN_LETTERS = 4
# If less than this share of the text would remain, nothing is removed.
_MIN_REMAINING = 0.2
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

# A page's lines; removed lines are None.
_Lines = list[str | None]


class _LineRef(NamedTuple):
    page: int  # from 0
    line: int


def clean(pages: Sequence[Page]) -> tuple[str, PageMap]:
    """The cleaned text of a whole paper, and where each page begins in it.

    text[starts[i]:starts[i + 1]] is the text of page i + 1 and its separator from the next page with text: a blank
    line, a newline if a sentence continues, nothing if a word does. The text can always be encoded as UTF-8.
    """
    texts = compose_accents([normalize_characters(page.text) for page in pages])
    texts = _remove_running_lines(texts, [page.label for page in pages])
    texts = [without_lines(text, page.furniture) for text, page in zip(texts, pages, strict=True)]
    texts = [_without_edges(text, page.inside) for text, page in zip(texts, pages, strict=True)]
    joined = _join_hyphenated(_PAGE_BREAK.join(text.strip() for text in texts))
    texts = [_normalize_whitespace(text) for text in re.split("[\f\v]", joined)] if pages else []
    breaks = re.findall("[\f\v]", joined)

    parts: list[str] = []
    starts = [0] * len(texts)
    length = previous = 0
    for index, text in enumerate(texts):
        if not text:
            continue
        if parts:
            in_word = _PAGE_BREAK_IN_WORD in breaks[previous:index]
            goes_on = pages[previous].goes_on and index == previous + 1
            parts.append("" if in_word else "\n" if goes_on else _separator(texts[previous], text))
            length += len(parts[-1])
        starts[index] = length
        parts.append(text)
        length += len(text)
        previous = index
    for index in reversed(range(len(texts))):
        if not texts[index]:
            starts[index] = starts[index + 1] if index + 1 < len(texts) else length
    return "".join(parts), PageMap(tuple(starts), tuple(page.label for page in pages))


def is_numbers_alone(pages: Sequence[Page]) -> bool:
    """Whether the pages with text have nothing but the number of the page: a figure on each, or a form left empty."""
    lines = [page.text.strip() for page in pages if page.text.strip()]
    return bool(lines) and all(_PAGE_NUMBER.fullmatch(line) and any(map(str.isalnum, line)) for line in lines)


def _without_edges(text: str, unwanted: Sequence[str]) -> str:
    """A page's text without these lines where they are its first or last ones."""
    if not unwanted:
        return text
    left = Counter(one_line(normalize_characters(line)) for line in unwanted)
    lines = text.split("\n")
    for step in (0, -1):
        while lines and (not lines[step].strip() or left[one_line(lines[step])]):
            left[one_line(lines.pop(step))] -= 1
    return "\n".join(lines)


def normalize_characters(text: str) -> str:
    """The text with ligatures, unusual spaces and lookalikes replaced by the characters that a person would type."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_REPLACED)
    # NFC combines letters with their accents and changes little else.
    return unicodedata.normalize("NFC", _DROPPED.sub("", text))


def _normalize_whitespace(text: str) -> str:
    text = _TRAILING.sub("", text.replace(_SOFT_HYPHEN, ""))
    return _BLANK_LINES.sub("\n\n", text).strip()


def _separator(before: str, after: str) -> str:
    """The separator of two pages: a newline if a sentence clearly continues, otherwise a blank line."""
    return "\n" if after[0].islower() and (before[-1].isalnum() or before[-1] in ",;-") else "\n\n"


def _join_hyphenated(text: str) -> str:
    """The text with words joined that are hyphenated at the end of a line or page.

    Whether the hyphen stays depends first on the paper's other spellings of the word, then on the word's parts.
    """
    if not _HYPHENATION.search(text):
        return text
    words = Counter(word.casefold() for word in _WORD.findall(_HYPHENATION.sub(" ", text)))
    first_parts = frozenset(word.partition("-")[0] for word in words if "-" in word)

    def join(match: re.Match[str]) -> str:
        hyphen, gap, right = match.groups()
        token = _LAST_TOKEN.search(text, max(0, match.start() - _MAX_WORD_LENGTH), match.start())
        left = token.group() if token else ""
        across_pages = _PAGE_BREAK in gap
        if right.casefold() in _SUSPENDING or (across_pages and not right[0].islower()):
            return match.group()
        if hyphen == _SOFT_HYPHEN or not _keeps_hyphen(left, right, words, first_parts):
            hyphen = ""
        return hyphen + (gap[:-1] + _PAGE_BREAK_IN_WORD if across_pages else "")

    return _HYPHENATION.sub(join, text)


def _keeps_hyphen(left: str, right: str, words: Counter[str], first_parts: frozenset[str]) -> bool:
    """Whether left-right is a compound rather than one word hyphenated by a typesetter.

    left: the text before the hyphen, back to a space. words: counts of the paper's other words. first_parts: the first
    parts of its compounds. Both are casefolded.
    """
    if "/" in left or "@" in left:  # a URL or an email address
        return True
    # Typesetters hyphenate between lower-case letters.
    lower = left[-1].islower() and right[0].islower()
    last_word = _LAST_WORD.search(left)
    left, right = (last_word.group() if last_word else left).casefold(), right.casefold()
    with_hyphen, without = words[f"{left}-{right}"], words[left + right]
    if with_hyphen != without:
        return with_hyphen > without
    if not lower or len(left) == 1 or right in _COMPOUND_ENDINGS:
        return True
    if "-" in left:
        # "state-of-the-" continues as a compound; in "multi-dimen-" the last part is not a word.
        last = left.rpartition("-")[2]
        return not words[last + right] and words[last] > 0
    # Short first parts are more often syllables than words: in, re, pro, for.
    return len(left) > 3 and left in first_parts and words[left] > 0 and words[right] > 0


def _remove_running_lines(texts: Sequence[str], labels: Sequence[str]) -> list[str]:
    """The pages without running heads, running feet and page numbers; unchanged if fewer than three have text."""
    if sum(bool(text.strip()) for text in texts) < 3:
        return list(texts)
    pages: list[_Lines] = [list(text.split("\n")) for text in texts]
    for _ in range(_ROUNDS):
        edges = [_edges(lines) for lines in pages]
        if not any(edges):
            break
        running = _running_lines(pages, edges) | _page_numbers(pages, edges, labels)
        if not running:
            break
        for ref in running:
            pages[ref.page][ref.line] = None
    remaining = ["\n".join(line for line in lines if line is not None) for lines in pages]
    # If almost nothing remains, the repeated lines are the actual content.
    return remaining if sum(map(len, remaining)) > _MIN_REMAINING * sum(map(len, texts)) else list(texts)


def _edges(lines: _Lines) -> list[int]:
    """The indices of the lines at the top and bottom of a page, sorted."""
    filled = [number for number, line in enumerate(lines) if line and line.strip()]
    return sorted({*filled[:_EDGE_LINES], *filled[-_EDGE_LINES:]})


def _running_lines(pages: Sequence[_Lines], edges: Sequence[Sequence[int]]) -> set[_LineRef]:
    """Lines repeated at the edges of many pages; a number in them may count the pages."""
    groups: dict[str, list[_LineRef]] = {}
    for page, numbers in enumerate(edges):
        for number in numbers:
            key = one_line(_DIGITS.sub("#", pages[page][number] or ""))
            if sum(character.isalpha() for character in key) >= _MIN_LETTERS:
                groups.setdefault(key, []).append(_LineRef(page, number))
    count = sum(bool(numbers) for numbers in edges)
    needed = max(2 if count == 3 else 3, math.ceil(_MIN_SHARE * count))
    running: set[_LineRef] = set()
    for refs in groups.values():
        if len(refs) >= needed:
            refs = _counting_pages(pages, refs)
        if len({ref.page for ref in refs}) >= needed:
            running.update(refs)
    # The running head is often the title, which must stay on the first page.
    first = next(page for page, numbers in enumerate(edges) if numbers)
    return running - {_LineRef(first, number) for number in edges[first][:_EDGE_LINES]}


def _counting_pages(pages: Sequence[_Lines], refs: Sequence[_LineRef]) -> list[_LineRef]:
    """Of lines that differ only in digits, those in which at most one number increases with the page.

    Their other numbers must be the same. "Table 3" and "Table 4" on top of two pages are captions, not a running head.
    """
    first = pages[refs[0].page][refs[0].line] or ""
    counting, rising = list(refs), 0
    for column in range(len(_DIGITS.findall(first))):
        values = {ref: int(_DIGITS.findall(pages[ref.page][ref.line] or "")[column]) for ref in counting}
        same, same_votes = Counter(values.values()).most_common(1)[0]
        shift, shift_votes = Counter(value - ref.page for ref, value in values.items()).most_common(1)[0]
        if same_votes >= shift_votes:
            counting = [ref for ref in counting if values[ref] == same]
        else:
            counting = [ref for ref in counting if values[ref] - ref.page == shift]
            rising += 1
    return [] if rising > 1 or (rising and _CAPTION.match(first)) else counting


def _page_numbers(pages: Sequence[_Lines], edges: Sequence[Sequence[int]], labels: Sequence[str]) -> set[_LineRef]:
    """First and last lines that are only a page number: the page's label, or at the same offset on many pages."""
    numbers: set[_LineRef] = set()
    counted: dict[_LineRef, tuple[bool, int]] = {}  # Roman or not, and its offset from the physical page
    for page, lines in enumerate(edges):
        for line in {*lines[:1], *lines[-1:]}:
            match = _PAGE_NUMBER.fullmatch((pages[page][line] or "").strip())
            if not match:
                continue
            number = match.group(1).casefold()
            counted[_LineRef(page, line)] = (not number.isdecimal(), _value(number) - page)
            if number == labels[page].casefold():
                numbers.add(_LineRef(page, line))
    votes = Counter(counted.values())
    needed_arabic = max(2, math.ceil(0.3 * sum(bool(lines) for lines in edges)))
    for ref, key in counted.items():
        if votes[key] >= (2 if key[0] else needed_arabic):
            numbers.add(ref)
    return numbers


def _value(number: str) -> int:
    """The value of a decimal or Roman number."""
    if number.isdecimal():
        return int(number)
    digits = [_ROMAN[sign] for sign in number]
    return sum(-digit if digit < max(digits[index:]) else digit for index, digit in enumerate(digits))
