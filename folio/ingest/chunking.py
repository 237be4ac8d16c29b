"""Splitting a paper's text into chunks. A chunk is a span of the text, so its words and its pages always agree.

LangChain's splitter returns pieces of text without their positions, and searching for them fails where a paper repeats
itself (rows of a table, dots in a table of contents). So the splitter gets a shadow of the text: same length, white
space and sentence ends, but every other character replaced by one that encodes its position. The first character of a
piece then gives its start.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

# Two ranges of code points for the shadow (first, count): ordinary characters, and full stops before a space
_WORD, _WORDS = 0x20000, 0x80000
_STOP, _STOPS = 0xA0000, 0x60000
# All white space characters
_WHITE = np.array([code for code in range(0x3001) if chr(code).isspace()], np.uint32)

# Paragraph, line, sentence, word; then anywhere.
SEPARATORS = ("\n\n", "\n", f"[{chr(_STOP)}-{chr(_STOP + _STOPS - 1)}] ", " ", "")


@lru_cache(maxsize=4)
def _splitter(size: int, overlap: int) -> RecursiveCharacterTextSplitter:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    return RecursiveCharacterTextSplitter(
        chunk_size=size,
        chunk_overlap=overlap,
        separators=list(SEPARATORS),
        is_separator_regex=True,
        keep_separator="end",  # a full stop belongs to the sentence before it
        strip_whitespace=True,
    )


def split(text: str, size: int, overlap: int) -> tuple[tuple[int, int], ...]:
    """Spans [start, end) of at most `size` characters, in order; neighbours overlap by at most `overlap`.

    Together they cover all characters except white space; no span begins or ends with white space.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    for piece in _splitter(size, overlap).split_text(_shadow(text)):
        if piece.isspace():  # the splitter keeps these if size is 1
            continue
        start = _position(piece[0], start)
        spans.append((start, start + len(piece)))
    return tuple(spans)


def _shadow(text: str) -> str:
    # In NumPy for speed. `surrogatepass` admits lone surrogates from broken PDFs.
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    places = np.arange(len(codes), dtype=np.uint32)
    is_stop = (codes == ord(".")) & (np.append(codes[1:], 0) == ord(" "))
    shadow = np.where(is_stop, _STOP + places % _STOPS, _WORD + places % _WORDS)
    shadow = np.where(np.isin(codes, _WHITE), codes, shadow)
    return shadow.astype("<u4").tobytes().decode("utf-32-le")


def _position(char: str, after: int) -> int:
    """The first position from `after` on whose shadow is this character: pieces come in order and close together."""
    base, cycle = (_STOP, _STOPS) if ord(char) >= _STOP else (_WORD, _WORDS)
    return after + (ord(char) - base - after) % cycle


def chunk_id(paper: str, start: int, end: int, kind: str = "passage") -> int:
    """The first 63 bits of SHA-256 over paper, span and kind: a positive 64-bit integer, as SQLite and FAISS need.

    Among a million chunks, the chance of a collision is about one in 20 million; the library's primary key would
    reject it.
    """
    digest = hashlib.sha256(f"{paper}:{start}:{end}:{kind}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
