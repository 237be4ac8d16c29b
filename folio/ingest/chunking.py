"""Splitting a paper's text into chunks. A chunk is a span of the text, so its words and its pages always agree.

The text is cut where sections begin and end (`parts`), and each part is split on its own: at paragraphs, else at lines,
sentences and words. A few words at a part's start or end stay with the text beside them (SHORT).

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

from folio.background import IMPORTING
from folio.sections import PaperSection
from folio.store.fingerprint import Reading
from folio.text import sentence_spans, stripped
from folio.types import NewPaper

if TYPE_CHECKING:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

# Two ranges of code points for the shadow (first, count): ordinary characters, and full stops before a space
_WORD, _WORDS = 0x20000, 0x80000
_STOP, _STOPS = 0xA0000, 0x60000
# All white space characters
_WHITE = np.array([code for code in range(0x3001) if chr(code).isspace()], np.uint32)

# Characters below which a section joins a neighbour. As many stay together at each end of a part, or a quarter of a
# chunk: a heading is no passage, nor is a last line.
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


# The spans of passages, and for each those of the fine passages in it
Chunked = tuple[tuple[tuple[int, int], ...], tuple[tuple[tuple[int, int], ...], ...]]


def chunked(text: str, reading: Reading, sections: Sequence[PaperSection] = ()) -> Chunked:
    """A paper's passages and, if `reading` wants them, fine passages."""
    spans = split(text, reading.chunk_size, reading.chunk_overlap, sections)
    return spans, fine_spans(text, spans, reading.fine_size) if reading.fine_size else ()


def split(text: str, size: int, overlap: int, sections: Sequence[PaperSection] = ()) -> tuple[tuple[int, int], ...]:
    """Spans [start, end) of at most `size` characters, in order; neighbours overlap by at most `overlap`.

    Together they cover all characters except white space; no span begins or ends with white space. sections: as for
    `parts`, whose borders no span crosses.
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


def _shadow(text: str, whole: int) -> str:
    """whole: at each end of the text, so many characters have no separators, and so stay together."""
    # In NumPy for speed. `surrogatepass` admits lone surrogates from broken PDFs.
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    places = np.arange(len(codes), dtype=np.uint32)
    first, last = stripped(text, 0, len(text))
    is_separable = (places < first) | (places >= last)
    if last - first > 2 * whole:
        is_separable |= (places >= first + whole) & (places < last - whole)
    is_stop = (codes == ord(".")) & (np.append(codes[1:], 0) == ord(" ")) & is_separable
    shadow = np.where(is_stop, _STOP + places % _STOPS, _WORD + places % _WORDS)
    shadow = np.where(np.isin(codes, _WHITE) & is_separable, codes, shadow)
    return shadow.astype("<u4").tobytes().decode("utf-32-le")


def _position(char: str, after: int) -> int:
    """The first position from `after` on whose shadow is this character: pieces come in order and close together."""
    base, cycle = (_STOP, _STOPS) if ord(char) >= _STOP else (_WORD, _WORDS)
    return after + (ord(char) - base - after) % cycle


def fine_spans(text: str, spans: Sequence[tuple[int, int]], size: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """For each span of the text, spans in it of at most `size` characters: sentences, as many as fit into one.

    In order, without overlap; together they cover all characters but white space. A sentence that is longer is cut as
    a text is.
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
    path: tuple[int, ...]  # the starts of the sections that it stands in, outermost first
    kind: str  # of the innermost; "" before any heading
    length: int  # without white space at its ends
    is_bare: bool  # nothing but a heading


def parts(text: str, size: int, sections: Sequence[PaperSection]) -> list[tuple[int, int]]:
    """The spans that no chunk of `size` characters crosses, in order; together they are the whole text.

    There is a border where a section begins or ends, with two exceptions: a bare heading stays with what follows it,
    and a part shorter than SHORT joins its neighbour if both are of one kind, are in the same section or one in the
    other, and fit into one chunk.

    sections: of the text, as a tree: ordered by start, each within the one above it or beside it.
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
    sections = [section for section in sections if section.level]  # a caption stays with the text around it
    borders = {0, len(text), *(place for section in sections for place in (section.start, section.end))}
    around: list[PaperSection] = []
    left = deque(sections)
    for start, end in pairwise(sorted(borders)):
        while around and around[-1].end <= start:
            around.pop()
        while left and left[0].start == start:
            around.append(left.popleft())
        innermost = around[-1] if around else None
        length = len(text[start:end].strip())
        is_bare = innermost is not None and innermost.start == start and length <= len(innermost.shown)
        yield _Part(start, end, tuple(s.start for s in around), innermost.kind if innermost else "", length, is_bare)


def _are_joined(one: _Part, next_: _Part, size: int) -> bool:
    depth = len(_common(one.path, next_.path))
    return (
        not next_.is_bare
        and min(one.length, next_.length) < SHORT
        and one.kind == next_.kind
        and max(len(one.path), len(next_.path)) <= depth + 1
        and next_.end - one.start <= size
    )


def _common(path: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(one for one, two in zip(path, other, strict=False) if one == two)


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
