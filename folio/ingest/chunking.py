"""A paper's text -> chunks. A chunk is a span of the text, so its pages and its words can never disagree.

LangChain's splitter returns pieces of text and not where they stood; looking for them afterwards goes wrong where a
paper repeats itself (rows of a table, the dots of a table of contents). So it is given a shadow of the text to split:
the same length, the same white space and the same ends of sentences, but every other character replaced by one that
tells its own position. Where a piece begins is then read off its first character.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

# Two ranges of code points that no paper's text is compared with: ordinary characters, and full stops before a space.
_WORD, _WORDS = 0x20000, 0x80000
_STOP, _STOPS = 0xA0000, 0x60000
# Every character that is white space
_WHITE = np.array([code for code in range(0x3001) if chr(code).isspace()], np.uint32)

# Paragraph, line, sentence, word, and a bare cut for text that has none of these.
SEPARATORS = ("\n\n", "\n", f"[{chr(_STOP)}-{chr(_STOP + _STOPS - 1)}] ", " ", "")


@lru_cache(maxsize=4)
def _splitter(size: int, overlap: int) -> RecursiveCharacterTextSplitter:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    return RecursiveCharacterTextSplitter(
        chunk_size=size,
        chunk_overlap=overlap,
        separators=list(SEPARATORS),
        is_separator_regex=True,
        keep_separator="end",  # a full stop belongs to the sentence that it ends
        strip_whitespace=True,
    )


def split(text: str, size: int, overlap: int) -> tuple[tuple[int, int], ...]:
    """Spans [start, end) of at most `size` characters, in order, neighbours sharing at most `overlap`.

    Together the spans cover every character of the text that is not white space; none begins or ends with any.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    for piece in _splitter(size, overlap).split_text(_shadow(text)):
        if piece.isspace():  # with a size of 1 the splitter leaves these in
            continue
        start = _position(piece[0], start)
        spans.append((start, start + len(piece)))
    return tuple(spans)


def _shadow(text: str) -> str:
    # As numbers, all characters at once: papers are long. What a broken PDF leaves behind passes too.
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    places = np.arange(len(codes), dtype=np.uint32)
    is_stop = (codes == ord(".")) & (np.append(codes[1:], 0) == ord(" "))
    shadow = np.where(is_stop, _STOP + places % _STOPS, _WORD + places % _WORDS)
    shadow = np.where(np.isin(codes, _WHITE), codes, shadow)
    return shadow.astype("<u4").tobytes().decode("utf-32-le")


def _position(char: str, after: int) -> int:
    """The first position at or behind `after` whose shadow is this character; pieces come in order and close by."""
    base, cycle = (_STOP, _STOPS) if ord(char) >= _STOP else (_WORD, _WORDS)
    return after + (ord(char) - base - after) % cycle


def chunk_id(paper: str, start: int, end: int, kind: str = "passage") -> int:
    """The first 63 bits of SHA-256 over paper, span and kind: positive, so that SQLite and FAISS both take it.

    In a million chunks the chance that any two collide is about one in 20 million; the library's primary key would
    catch it.
    """
    digest = hashlib.sha256(f"{paper}:{start}:{end}:{kind}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
