"""Hits -> the numbered evidence that an answer may cite: no text twice, neighbours joined, nothing broken off. Pure.

A chunk ends where its characters run out: in the middle of a sentence, of an algorithm, of a table. As a chunk is a
span of its paper's text, mending that is moving two numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from folio.text import estimate_tokens, sentence_spans, stripped
from folio.types import Evidence, Hit, Paper

# The characters [start, end) of the paper with this id; nothing where it is no longer there
ReadText = Callable[[str, int, int], str]

# Characters that evidence grows by at each end at most: as much again as a chunk.
WIDEST = 1500
# A sentence that is broken off is made whole when this many characters are missing at most.
LONGEST_SENTENCE = 600
# Tokens of the line above each piece of evidence that names its paper and pages.
HEADER_TOKENS = 40

_STEP = re.compile(
    r"[ ]*(?:(?:step[ ]+)?\(?\d{1,3}(?:[.)][ ]+|[ ]?:(?!\d)[ ]*)\S|step[ ]+\d"
    r"|[•▪‣*–-][ ]+\S|\(?(?:[a-z]|[ivx]{1,4})\)[ ]+\S"
    r"|(?:require|ensure|input|output)s?[ ]?:|(?:for|while|if|else[ ]?if|until)\b.{0,70}(?:\bdo|\bthen|:)[ ]*$"
    r"|(?:else|repeat|end(?:[ ]?(?:for|while|if))?|return\b.{0,40})[ ]*$)",
    re.I,
)
# A line of an algorithm, "12: return x", goes no further.
_LINE_OF_CODE = re.compile(r"[ ]*\d{1,3}[ ]?:")
_ROW = re.compile(r"[ ]*\S+(?:[ ]\S+)*(?:[ ]{2,}\S+(?:[ ]\S+)*)+[ ]*$")
# A line between the rows of a table that names the next ones.
_ROWS_NAME = re.compile(r"[ ]*[^\W\d_]{3}[^.]{0,37}$")
_TABLE = re.compile(r"[ ]*table[ ]*[\dIVX]", re.I)
_LEADS_IN = re.compile(r"[ ]*(?:table|algorithm|listing|box|procedure)[ ]*\d|.*:[ ]*$", re.I)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
# Items of one list, with their further lines, are this many characters apart at most.
_ITEM_GAP = 500
# or, with a paragraph of its own between them, such as a formula, this many.
_PARAGRAPH_GAP = 200
# Lines of a caption above its table at most.
_CAPTION_LINES = 4


@dataclass(frozen=True, slots=True)
class GatheredEvidence:
    """The evidence for an answer, best first, and how many hits did not fit into the tokens that it may have."""

    evidence: tuple[Evidence, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class _Span:
    paper: Paper
    start: int
    end: int
    text: str
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class _Unit:
    """What should not be broken off: the span [start, end), and whether that is where it really begins and ends."""

    start: int
    end: int
    begins: bool = True
    ends: bool = True


def gather(hits: Sequence[Hit], read: ReadText, budget: int) -> GatheredEvidence:
    """The evidence that these hits, best first, make. budget: tokens at most; the best hit is kept in any case.

    Hits come in as long as they fit, then each grows to whole sentences, lists and tables where that fits too. The
    order is that of each piece's best hit.
    """
    spans: list[_Span] = []
    taken = 0
    for hit in hits:
        if not hit.text.strip() or any(_says_all(span.text, hit.text) for span in spans):
            taken += 1
            continue
        joined = _joined(spans, _Span(hit.paper, hit.chunk.start, hit.chunk.end, hit.text, (hit,)))
        if spans and _tokens(joined) > budget:
            break
        spans = joined
        taken += 1
    for span in list(spans):
        if (wider := _widened(span, read)) != span:
            joined = _joined([other for other in spans if other != span], wider)
            if _tokens(joined) <= budget:
                spans = joined
    best_first = sorted(spans, key=lambda span: hits.index(span.hits[0]))
    evidence = (Evidence(n, s.paper, s.start, s.end, s.text, s.hits) for n, s in enumerate(best_first, 1))
    return GatheredEvidence(tuple(evidence), len(hits) - taken)


def _tokens(spans: Sequence[_Span]) -> int:
    return sum(estimate_tokens(span.text) + HEADER_TOKENS for span in spans)


def _says_all(text: str, other: str) -> bool:
    """Whether a text holds another one word for word: the same page in a second file adds nothing."""
    return " ".join(other.split()) in " ".join(text.split())


def _joined(spans: Sequence[_Span], new: _Span) -> list[_Span]:
    """The spans and a new one, those of one paper that overlap or touch made one."""
    apart: list[_Span] = []
    for span in spans:
        first, second = sorted((span, new), key=lambda either: either.start)
        if span.paper == new.paper and second.start <= first.end:
            text = first.text + second.text[max(0, first.end - second.start) :]
            new = _Span(span.paper, first.start, first.start + len(text), text, _best_first(span.hits, new.hits))
        else:
            apart.append(span)
    return [*apart, new]


def _best_first(hits: tuple[Hit, ...], others: tuple[Hit, ...]) -> tuple[Hit, ...]:
    return tuple(sorted(dict.fromkeys((*hits, *others)), key=lambda hit: -hit.score))


def _widened(span: _Span, read: ReadText) -> _Span:
    """The span with the sentence, list or table that it breaks off made whole."""
    low, high = max(0, span.start - WIDEST), min(span.paper.length, span.end + WIDEST)
    around = read(span.paper.id, low, high)
    start, end = span.start - low, span.end - low
    if around[start:end] != span.text:  # the paper was replaced meanwhile
        return span
    units = list(_lists_and_tables(around, low == 0, high == span.paper.length))
    for unit in units:
        if unit.begins and unit.start < start < unit.end:
            start = unit.start
        if unit.ends and unit.start < end < unit.end:
            end = unit.end
    ended = end in {unit.end for unit in units}  # what follows is no part of it, even where no full stop tells
    for first, last in sentence_spans(around):
        if last - first <= LONGEST_SENTENCE:
            start = first if first < start < last else start
            end = last if first < end < last and not ended else end
    start, end = stripped(around, start, end)
    return replace(span, start=low + start, end=low + end, text=around[start:end])


def _lists_and_tables(text: str, begins: bool, ends: bool) -> Iterator[_Unit]:
    """The lists, algorithms and tables of a text, each with the line that announces it, then their items and rows.

    begins, ends: whether the paper does so where the text does; otherwise more of a list may stand beyond.
    """
    lines = [stripped(text, *match.span()) for match in re.finditer(r"[^\n]*\S[^\n]*", text)]
    parts: list[_Unit] = []
    for first, last, items in (*_lists(text, lines), *_tables(text, lines)):
        parts += [_Unit(lines[item][0], lines[after - 1][1]) for item, after in pairwise((*items, last + 1))]
        years = sum(bool(_YEAR.search(text, part.start, part.end)) for part in parts[-len(items) :])
        if items and 2 * years > len(items) > 1 and not _ROW.match(text, *lines[items[0]]):
            continue  # of the references, one is enough
        start, end = lines[first][0], lines[last][1]
        yield _Unit(start, end, begins or start > _ITEM_GAP, ends or len(text) - end > _ITEM_GAP)
    yield from parts


# First and last line of a list or table, and the lines where its items begin
_Run = tuple[int, int, list[int]]


def _lists(text: str, lines: Sequence[tuple[int, int]]) -> Iterator[_Run]:
    """The further lines of the last item belong to it up to a paragraph's or a sentence's end."""
    starts = [number for number, line in enumerate(lines) if _STEP.match(text, *line)]

    def together(one: int, two: int) -> bool:
        paragraphs = sum(text[lines[n][1] : lines[n + 1][0]].count("\n") > 1 for n in range(one, two))
        return lines[two][0] - lines[one][0] <= (_ITEM_GAP if paragraphs < 2 else _PARAGRAPH_GAP) and paragraphs < 3

    for items in _groups(starts, together):
        last = items[-1]
        goes_on = not _LINE_OF_CODE.match(text, *lines[last])
        while goes_on and last + 1 < len(lines) and lines[last][1] - lines[items[-1]][0] <= _ITEM_GAP:
            in_paragraph = text[lines[last][1] : lines[last + 1][0]].count("\n") == 1
            goes_on = in_paragraph and text[lines[last][1] - 1] not in ".!?"
            last += goes_on
        if len(items) > 1:
            before = items[0] - 1
            yield before if before >= 0 and _LEADS_IN.match(text, *lines[before]) else items[0], last, items


def _tables(text: str, lines: Sequence[tuple[int, int]]) -> Iterator[_Run]:
    """Rows, with the caption above or below them."""
    rows = [number for number, line in enumerate(lines) if _ROW.match(text, *line)]

    def together(one: int, two: int) -> bool:
        names = _ROWS_NAME.match(text, *lines[two - 1]) and text[lines[two - 1][1] : lines[two][0]].count("\n") == 1
        return two == one + 1 or (two == one + 2 and bool(names))

    for items in _groups(rows, together):
        if len(items) < 2:
            continue
        above = range(items[0] - 1, max(-1, items[0] - 1 - _CAPTION_LINES), -1)
        first = next((number for number in above if _TABLE.match(text, *lines[number])), items[0])
        if first == items[0] and first and _LEADS_IN.match(text, *lines[first - 1]):
            first -= 1
        below = items[-1] + 1
        is_caption = first == items[0] and below < len(lines) and _TABLE.match(text, *lines[below])
        yield first, below if is_caption else items[-1], items


def _groups(numbers: Sequence[int], together: Callable[[int, int], bool]) -> list[list[int]]:
    groups: list[list[int]] = []
    for number in numbers:
        if groups and together(groups[-1][-1], number):
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups
