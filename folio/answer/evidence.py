"""Hits -> numbered evidence: duplicates dropped, neighbours joined, broken sentences and tables completed. Pure.

A chunk ends at its size limit, perhaps in the middle of a sentence, an algorithm or a table. A chunk is a span of its
paper's text, so completing it means moving two offsets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from folio.answer_types import Evidence
from folio.text import estimate_tokens, sentence_spans, stripped
from folio.types import Hit, Paper

# The characters [start, end) of the paper with this id; "" if the paper was removed
ReadText = Callable[[str, int, int], str]

# Characters that evidence may grow by at each end: the size of a chunk.
MAX_GROWTH = 1500
# Characters of the longest sentence that evidence is extended to complete.
LONGEST_SENTENCE = 600
# Tokens for the header of each piece of evidence, with paper and pages.
HEADER_TOKENS = 40

_STEP = re.compile(
    r"[ ]*(?:(?:step[ ]+)?\(?\d{1,3}(?:[.)][ ]+|[ ]?:(?!\d)[ ]*)\S|step[ ]+\d"
    r"|[•▪‣*–-][ ]+\S|\(?(?:[a-z]|[ivx]{1,4})\)[ ]+\S"
    r"|(?:require|ensure|input|output)s?[ ]?:|(?:for|while|if|else[ ]?if|until)\b.{0,70}(?:\bdo|\bthen|:)[ ]*$"
    r"|(?:else|repeat|end(?:[ ]?(?:for|while|if))?|return\b.{0,40})[ ]*$)",
    re.I,
)
# A line of an algorithm, "12: return x", has no continuation lines.
_LINE_OF_CODE = re.compile(r"[ ]*\d{1,3}[ ]?:")
_ROW = re.compile(r"[ ]*\S+(?:[ ]\S+)*(?:[ ]{2,}\S+(?:[ ]\S+)*)+[ ]*$")
# A line between table rows that names the rows after it.
_GROUP_LABEL = re.compile(r"[ ]*[^\W\d_]{3}[^.]{0,37}$")
_TABLE = re.compile(r"[ ]*table[ ]*[\dIVX]", re.I)
_LEADS_IN = re.compile(r"[ ]*(?:table|algorithm|listing|box|procedure)[ ]*\d|.*:[ ]*$", re.I)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
# Characters between the starts of two items of one list, at most.
_ITEM_GAP = 500
# The same where a separate paragraph, such as a formula, comes between them.
_PARAGRAPH_GAP = 200
# Lines of a caption above its table, at most.
_CAPTION_LINES = 4


@dataclass(frozen=True, slots=True)
class GatheredEvidence:
    """The evidence for an answer, best first, and how many hits did not fit into the token budget."""

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
    """A list, table, item or row to keep whole: the span [start, end), and whether its true start and end are known."""

    start: int
    end: int
    begins: bool = True
    ends: bool = True


def gather(hits: Sequence[Hit], read: ReadText, budget: int) -> GatheredEvidence:
    """Evidence from these hits, best first. budget: in tokens; the best hit is kept even if it exceeds it.

    Hits are added as long as they fit. Then each piece is extended to whole sentences, lists and tables if that still
    fits. The pieces are in the order of their best hits.
    """
    spans: list[_Span] = []
    taken = 0
    for hit in hits:
        if not hit.text.strip() or any(_contains(span.text, hit.text) for span in spans):
            taken += 1
            continue
        joined = _merged(spans, _Span(hit.paper, hit.chunk.start, hit.chunk.end, hit.text, (hit,)))
        if spans and _tokens(joined) > budget:
            break
        spans = joined
        taken += 1
    for span in list(spans):
        if (wider := _extended(span, read)) != span:
            joined = _merged([other for other in spans if other != span], wider)
            if _tokens(joined) <= budget:
                spans = joined
    best_first = sorted(spans, key=lambda span: hits.index(span.hits[0]))
    evidence = (Evidence(n, s.paper, s.start, s.end, s.text, s.hits) for n, s in enumerate(best_first, 1))
    return GatheredEvidence(tuple(evidence), len(hits) - taken)


def _tokens(spans: Sequence[_Span]) -> int:
    return sum(estimate_tokens(span.text) + HEADER_TOKENS for span in spans)


def _contains(text: str, other: str) -> bool:
    """Whether a text contains another one word for word, such as the same page from a second file."""
    return " ".join(other.split()) in " ".join(text.split())


def _merged(spans: Sequence[_Span], new: _Span) -> list[_Span]:
    """The spans with a new one; overlapping and adjacent spans of one paper are merged."""
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


def _extended(span: _Span, read: ReadText) -> _Span:
    """The span, extended to complete the sentence, list or table at each end."""
    low, high = _room(span)
    around = read(span.paper.id, low, high)
    start, end = span.start - low, span.end - low
    if around[start:end] != span.text:  # the paper was replaced in the meantime
        return span
    begins, ends = low == 0 or span.start - low < MAX_GROWTH, high == span.paper.length or high - span.end < MAX_GROWTH
    units = list(_lists_and_tables(around, begins, ends))
    for unit in units:
        if unit.begins and unit.start < start < unit.end:
            start = unit.start
        if unit.ends and unit.start < end < unit.end:
            end = unit.end
    at_unit_end = end in {unit.end for unit in units}  # complete even without a full stop
    for first, last in sentence_spans(around):
        if last - first <= LONGEST_SENTENCE:
            start = first if first < start < last else start
            end = last if first < end < last and not at_unit_end else end
    start, end = stripped(around, start, end)
    return replace(span, start=low + start, end=low + end, text=around[start:end])


def _room(span: _Span) -> tuple[int, int]:
    """The text that a span may grow into: neither references nor a licence, unless it begins or ends in one."""
    low, high = max(0, span.start - MAX_GROWTH), min(span.paper.length, span.end + MAX_GROWTH)
    for start, end in span.paper.sections.apart():
        if end <= span.start:
            low = max(low, end)
        elif start >= span.end:
            high = min(high, start)
    return low, high


def _lists_and_tables(text: str, begins: bool, ends: bool) -> Iterator[_Unit]:
    """The lists, algorithms and tables of a text, each with the line that introduces it, then their items and rows.

    begins, ends: whether the paper begins or ends where the text does; if not, a list may continue beyond the text.
    """
    lines = [stripped(text, *match.span()) for match in re.finditer(r"[^\n]*\S[^\n]*", text)]
    parts: list[_Unit] = []
    for first, last, items in (*_lists(text, lines), *_tables(text, lines)):
        parts += [_Unit(lines[item][0], lines[after - 1][1]) for item, after in pairwise((*items, last + 1))]
        years = sum(bool(_YEAR.search(text, part.start, part.end)) for part in parts[-len(items) :])
        if items and 2 * years > len(items) > 1 and not _ROW.match(text, *lines[items[0]]):
            continue  # a bibliography: single entries are enough
        start, end = lines[first][0], lines[last][1]
        yield _Unit(start, end, begins or start > _ITEM_GAP, ends or len(text) - end > _ITEM_GAP)
    yield from parts


# First and last line of a list or table, and the lines where its items begin
_Run = tuple[int, int, list[int]]


def _lists(text: str, lines: Sequence[tuple[int, int]]) -> Iterator[_Run]:
    """Lists and algorithms. Lines after the last item belong to it until a paragraph or sentence ends."""
    starts = [number for number, line in enumerate(lines) if _STEP.match(text, *line)]

    def together(one: int, two: int) -> bool:
        paragraphs = sum(text[lines[n][1] : lines[n + 1][0]].count("\n") > 1 for n in range(one, two))
        return lines[two][0] - lines[one][0] <= (_ITEM_GAP if paragraphs < 2 else _PARAGRAPH_GAP) and paragraphs < 3

    for items in _groups(starts, together):
        last = items[-1]
        continues = not _LINE_OF_CODE.match(text, *lines[last])
        while continues and last + 1 < len(lines) and lines[last][1] - lines[items[-1]][0] <= _ITEM_GAP:
            in_paragraph = text[lines[last][1] : lines[last + 1][0]].count("\n") == 1
            continues = in_paragraph and text[lines[last][1] - 1] not in ".!?"
            last += continues
        if len(items) > 1:
            before = items[0] - 1
            yield before if before >= 0 and _LEADS_IN.match(text, *lines[before]) else items[0], last, items


def _tables(text: str, lines: Sequence[tuple[int, int]]) -> Iterator[_Run]:
    """Tables: their rows, with the caption above or below."""
    rows = [number for number, line in enumerate(lines) if _ROW.match(text, *line)]

    def together(one: int, two: int) -> bool:
        names = _GROUP_LABEL.match(text, *lines[two - 1]) and text[lines[two - 1][1] : lines[two][0]].count("\n") == 1
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
