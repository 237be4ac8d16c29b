"""Splits a paper's text into chunks. A chunk is a span of the text, so its words always match its pages.

The text is cut where sections begin and end (`parts`), and each part is split separately: at paragraphs, else at lines,
sentences and words. A few words at a part's start or end stay with the neighbouring text (SHORT).

LangChain's splitter returns pieces of text without their positions, and searching for them fails where a paper repeats
itself (rows of a table, dots in a table of contents). So the splitter gets a shadow of the text: same length, white
space and sentence ends, but every other character replaced by one that encodes its position. The first character of a
piece then gives its start.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from folio.papers.model import NewPaper
from folio.papers.sections import PaperSection
from folio.store.fingerprint import Reading
from folio.system.threads import IMPORTING
from folio.text import sentence_spans, stripped

if TYPE_CHECKING:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

# Two ranges of code points for the shadow (first, count): ordinary characters, and full stops before a space
_WORD, _WORDS = 0x20000, 0x80000
_STOP, _STOPS = 0xA0000, 0x60000
# All white space characters
_WHITE = np.array([code for code in range(0x3001) if chr(code).isspace()], np.uint32)

# A section with fewer characters joins a neighbour. This many characters, but at most a quarter of a chunk, stay
# together at each end of a part, so that a heading or a last line alone is never a passage.
SHORT = 200

# Paragraph, line, sentence, word; then anywhere.
SEPARATORS = ("\n\n", "\n", f"[{chr(_STOP)}-{chr(_STOP + _STOPS - 1)}] ", " ", "")


@lru_cache(maxsize=4)
def _splitter(size: int, overlap: int) -> RecursiveCharacterTextSplitter:
    with IMPORTING:
        from langchain_text_splitters import RecursiveCharacterTextSplitter

    return RecursiveCharacterTextSplitter(
        chunk_size=size,
        chunk_overlap=overlap,
        separators=list(SEPARATORS),
        is_separator_regex=True,
        keep_separator="end",  # a full stop belongs to the sentence before it
        strip_whitespace=True,
    )


# The spans of passages, and for each passage the spans of its fine passages
Chunks = tuple[tuple[tuple[int, int], ...], tuple[tuple[tuple[int, int], ...], ...]]


def chunk_text(text: str, reading: Reading, sections: Sequence[PaperSection] = ()) -> Chunks:
    """A paper's passages and, if `reading` has a fine size, fine passages."""
    spans = split(text, reading.chunk_size, reading.chunk_overlap, sections)
    return spans, fine_spans(text, spans, reading.fine_size) if reading.fine_size else ()


def split(text: str, size: int, overlap: int, sections: Sequence[PaperSection] = ()) -> tuple[tuple[int, int], ...]:
    """Spans [start, end) of at most `size` characters, in order; neighbours overlap by at most `overlap`.

    Together they cover all characters except white space; no span begins or ends with white space, or crosses a border
    of `parts`. sections: as for `parts`.
    """
    return tuple(
        (start + first, start + last)
        for start, end in parts(text, size, sections)
        for first, last in _split(text[start:end], size, overlap)
    )


def _split(text: str, size: int, overlap: int) -> Iterator[tuple[int, int]]:
    start = 0
    for piece in _splitter(size, overlap).split_text(_shadow(text, min(SHORT, size // 4))):
        if piece.isspace():  # the splitter keeps these if size is 1
            continue
        start = _position(piece[0], start)
        first, last = stripped(text, start, start + len(piece))
        if first < last:
            yield first, last


def _shadow(text: str, margin: int) -> str:
    """The shadow of the text. margin: characters at each end that get no separators, so that they stay together."""
    # In NumPy for speed. `surrogatepass` admits lone surrogates from broken PDFs.
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    places = np.arange(len(codes), dtype=np.uint32)
    first, last = stripped(text, 0, len(text))
    is_separable = (places < first) | (places >= last)
    if last - first > 2 * margin:
        is_separable |= (places >= first + margin) & (places < last - margin)
    is_stop = (codes == ord(".")) & (np.append(codes[1:], 0) == ord(" ")) & is_separable
    shadow = np.where(is_stop, _STOP + places % _STOPS, _WORD + places % _WORDS)
    shadow = np.where(np.isin(codes, _WHITE) & is_separable, codes, shadow)
    return shadow.astype("<u4").tobytes().decode("utf-32-le")


def _position(char: str, after: int) -> int:
    """The first position from `after` on whose shadow is this character. Pieces are in order and close together."""
    base, cycle = (_STOP, _STOPS) if ord(char) >= _STOP else (_WORD, _WORDS)
    return after + (ord(char) - base - after) % cycle


def fine_spans(text: str, spans: Sequence[tuple[int, int]], size: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """For each span of the text, spans within it of at most `size` characters, each with as many sentences as fit.

    In order, without overlap; together they cover all characters but white space. A longer sentence is split like a
    text.
    """
    return tuple(tuple(_fine(text, start, end, size)) for start, end in spans)


def _fine(text: str, start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    first = last = start
    for begin, stop in sentence_spans(text[start:end]):
        if start + stop - first <= size:
            last = start + stop
            continue
        if last > first:
            yield first, last
        first, last = start + begin, start + stop
        if stop - begin > size:
            *cut, (first, last) = ((first + a, first + b) for a, b in _split(text[first:last], size, 0))
            yield from cut
    if last > first:
        yield first, last


@dataclass(frozen=True, slots=True)
class _Part:
    """Text between two borders of sections."""

    start: int
    end: int
    path: tuple[int, ...]  # the starts of the sections that contain it, outermost first
    kind: str  # of the innermost section; "" before any heading
    length: int  # without white space at its ends
    is_bare: bool  # only a heading


def parts(text: str, size: int, sections: Sequence[PaperSection]) -> list[tuple[int, int]]:
    """The spans that chunks of `size` characters stay within, in order; together they are the whole text.

    There is a border where a section or an algorithm begins or ends, with two exceptions: a bare heading stays with
    the text after it, and a part shorter than SHORT joins its neighbour if both are of one kind, are in the same
    section or one in the other, and fit into one chunk. A short text beside an algorithm joins it.

    sections: the tree of sections, ordered by start.
    """
    joined: list[_Part] = []
    for part in _between_borders(text, sections):
        before = joined[-1] if joined else None
        if before and (before.is_bare or _are_joined(before, part, size)):
            path = part.path if before.is_bare else _common(before.path, part.path)
            length = before.length + part.length
            joined[-1] = _Part(before.start, part.end, path, part.kind, length, before.is_bare and part.is_bare)
        else:
            joined.append(part)
    return [(part.start, part.end) for part in joined]


def _between_borders(text: str, sections: Sequence[PaperSection]) -> Iterator[_Part]:
    # A caption stays with the text around it.
    sections = [section for section in sections if section.level or section.kind == "algorithm"]
    borders = {0, len(text), *(place for section in sections for place in (section.start, section.end))}
    enclosing: list[PaperSection] = []
    pending = deque(sections)
    for start, end in pairwise(sorted(borders)):
        while enclosing and enclosing[-1].end <= start:
            enclosing.pop()
        while pending and pending[0].start == start:
            enclosing.append(pending.popleft())
        innermost = enclosing[-1] if enclosing else None
        length = len(text[start:end].strip())
        is_bare = innermost is not None and innermost.start == start and length <= len(innermost.shown)
        yield _Part(start, end, tuple(s.start for s in enclosing), innermost.kind if innermost else "", length, is_bare)


def _are_joined(part: _Part, next_: _Part, size: int) -> bool:
    depth = len(_common(part.path, next_.path))
    return (
        not next_.is_bare
        and min(part.length, next_.length) < SHORT
        and (part.kind == next_.kind or _is_beside_algorithm(part, next_))
        and max(len(part.path), len(next_.path)) <= depth + 1
        and next_.end - part.start <= size
    )


def _is_beside_algorithm(part: _Part, next_: _Part) -> bool:
    """Whether one of two parts is an algorithm, and the other one is short."""
    if part.kind == "algorithm":
        return next_.kind != "algorithm" and next_.length < SHORT
    return next_.kind == "algorithm" and part.length < SHORT


def _common(path: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(start for start, other_start in zip(path, other, strict=False) if start == other_start)


def chunk_id(paper: str, start: int, end: int, kind: str = "passage") -> int:
    """The first 63 bits of SHA-256 over paper, span and kind: a positive 64-bit integer, as SQLite and FAISS need.

    Among a million chunks, the chance of a collision is about one in 20 million; the library's primary key would
    reject it.
    """
    digest = hashlib.sha256(f"{paper}:{start}:{end}:{kind}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def chunk_ids(paper: NewPaper) -> list[int]:
    """The ids of a paper's chunks, in the order of their spans."""
    return [
        chunk_id(paper.id, start, end, "passage" if parent is None else "fine")
        for (start, end), parent in zip(paper.chunk_spans, paper.parents, strict=True)
    ]
