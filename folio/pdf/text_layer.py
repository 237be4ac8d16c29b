"""The text layer of a page: where each word of the library's text is drawn; its links; and the sizes of all pages."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, NamedTuple

from folio.pdf.letters import Letters, Piece, Rect, covered, drawn_letters, fold_word, line_boxes, place
from folio.pdf.render import opened, page_of
from folio.pdf.units import load_page

# Words between spaces. Scripts without spaces are taken letter by letter.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\s\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
# The layer of a page is of use if this share of its letters is placed. Pages that were read by OCR have none.
_MIN_SHARE = 0.5
# Words of a gap that are compared one by one; a longer gap is compared only so far.
_MOST_IN_GAP = 400
_MOST_LINKS, _LONGEST_LINK = 1000, 2000
_LINK = re.compile(r"(?:https?://|mailto:|doi:)[^\s\x00-\x20\x7f-\x9f]+", re.I)
_MOST_SIZES = 100_000


class DrawnWord(NamedTuple):
    """A word of the library's text, or the part of it on one line: its span in the paper, and its box."""

    start: int
    end: int
    box: Rect


class PageLink(NamedTuple):
    """A link inside a PDF to one of its pages, from 1, or to an address."""

    box: Rect
    page: int  # 0 for an address
    uri: str
    at: tuple[float, float] | None = None  # where on the page it leads: left and top; None: to the page


@dataclass(frozen=True, slots=True)
class TextLayer:
    """The words drawn on a page, in the order of the library's text; none unless `placed`."""

    width: float  # points, of the page as shown
    height: float
    words: tuple[DrawnWord, ...]
    placed: bool  # whether most of the text is drawn on the page; not if it was read by OCR
    links: tuple[PageLink, ...]


def text_layer(path: Path, page: int, text: str, start: int) -> TextLayer:
    """The layer of physical page `page`, from 1. text: of the page in the library. start: its offset in the paper.

    Raises PaperError as render.page_png does.
    """
    with opened(path) as document, page_of(document, path, page) as loaded:
        width, height = loaded.rect.width, loaded.rect.height
        words, placed = place_words(text, start, drawn_letters(loaded))
        return TextLayer(width, height, words, placed, tuple(_links(document, loaded)))


def page_sizes(path: Path) -> list[tuple[float, float]]:
    """The width and the height of each page as shown, in points. Raises PaperError as render.page_png does."""
    with opened(path) as document:
        rects = (load_page(document, number).rect for number in range(min(len(document), _MOST_SIZES)))
        return [(round(rect.width, 1), round(rect.height, 1)) for rect in rects]


def place_words(text: str, start: int, letters: Letters) -> tuple[tuple[DrawnWord, ...], bool]:
    """The drawn words of a text, and whether most of it is drawn. start: the offset of the text in its paper."""
    words = _Words.of(text)
    pieces = place(words.letters, letters)
    pieces = sorted([*pieces, *_fill_gaps(words, letters, pieces)])
    if not words.letters or covered(pieces) < _MIN_SHARE * len(words.letters):
        return (), False
    return tuple(_drawn(text, start, words, letters, pieces)), True


class _Words(NamedTuple):
    """The words of a text that have letters."""

    spans: list[tuple[int, int]]  # in the text
    folded: list[str]
    starts: list[int]  # the index of the first letter of each among all letters, and the end
    letters: str

    @classmethod
    def of(cls, text: str) -> _Words:
        folded = [(match.span(), fold_word(match.group())) for match in _WORD.finditer(text)]
        folded = [(span, word) for span, word in folded if word]
        words = [word for _, word in folded]
        return cls([span for span, _ in folded], words, [0, *accumulate(map(len, words))], "".join(words))


def _fill_gaps(words: _Words, letters: Letters, pieces: Sequence[Piece]) -> Iterator[Piece]:
    """The short words between the pieces, such as the cells of a table, where the page has them in the same order."""
    taken = bytearray(len(letters.text))
    for piece in pieces:
        taken[piece.at : piece.at + piece.length] = b"\1" * piece.length
    ends = [(piece.start + piece.length, piece.at + piece.length) for piece in pieces]
    begins = [(piece.start, piece.at) for piece in pieces]
    for (gap_start, before), (gap_end, after) in zip([(0, 0), *ends], [*begins, (len(words.letters), -1)], strict=True):
        first, last = bisect_left(words.starts, gap_start), bisect_right(words.starts, gap_end) - 1
        if first >= last:
            continue
        free = _free_words(letters, before, after, taken)
        wanted = words.folded[first : min(last, first + _MOST_IN_GAP)]
        offered = [letters.text[letters.starts[word] : letters.starts[word + 1]] for word in free]
        for match in SequenceMatcher(None, wanted, offered, autojunk=False).get_matching_blocks():
            for n in range(match.size):
                word, drawn = first + match.a + n, free[match.b + n]
                length = words.starts[word + 1] - words.starts[word]
                at = letters.starts[drawn]
                taken[at : at + length] = b"\1" * length
                yield Piece(words.starts[word], at, length)


def _free_words(letters: Letters, before: int, after: int, taken: bytearray) -> list[int]:
    """The drawn words that no piece has: those that follow the letter `before`, and those in front of `after`."""
    count = len(letters.boxes)
    forward = bisect_left(letters.starts, before)
    end = forward
    while end < count and not taken[letters.starts[end]] and end - forward < _MOST_IN_GAP:
        end += 1
    last = count if after < 0 else letters.word_at(after)
    first = last
    while first > 0 and not taken[letters.starts[first] - 1] and last - first < _MOST_IN_GAP:
        first -= 1
    return [*range(forward, end), *(word for word in range(first, last) if not forward <= word < end)]


def _drawn(text: str, start: int, words: _Words, letters: Letters, pieces: Sequence[Piece]) -> Iterator[DrawnWord]:
    """The words of which at least half of the letters are placed, each line's part by itself."""
    number = 0
    for (first, last), begin, folded in zip(words.spans, words.starts, words.folded, strict=False):
        end = begin + len(folded)
        while number < len(pieces) and pieces[number].start + pieces[number].length <= begin:
            number += 1
        parts = list(_parts_of(begin, end, letters, pieces, number))
        if len(parts) == 1 and parts[0][:2] == (0, len(folded)):
            yield DrawnWord(start + first, start + last, parts[0][2])
        elif 2 * sum(b - a for a, b, _ in parts) >= len(folded):
            offsets = [*_letter_offsets(text[first:last]), last - first]
            for a, b, box in parts:
                left, right = offsets[a] if a else 0, offsets[b]
                if left < right:  # a letter of the text may be several when folded
                    yield DrawnWord(start + first + left, start + first + right, box)


def _parts_of(
    begin: int, end: int, letters: Letters, pieces: Sequence[Piece], number: int
) -> Iterator[tuple[int, int, Rect]]:
    """The letters [begin, end) of a text by lines: those of each, from 0, and their box. number: their first piece."""
    for piece in map(pieces.__getitem__, range(number, len(pieces))):
        if piece.start >= end:
            return
        shift = piece.start - piece.at
        first, last = max(begin, piece.start) - shift, min(end, piece.start + piece.length) - shift
        for a, b, box in line_boxes(letters, first, last):
            yield a + shift - begin, b + shift - begin, box


def _letter_offsets(word: str) -> list[int]:
    """The offset in a word of each of its folded letters."""
    return [offset for offset, character in enumerate(word) for _ in fold_word(character)]


def _links(document: Any, page: Any) -> Iterator[PageLink]:
    for link in islice(_each_link(page), _MOST_LINKS):
        box = link.rect & page.rect
        if box.is_empty or not (uri := link.uri):
            continue
        if link.is_external:
            if len(uri) <= _LONGEST_LINK and _LINK.fullmatch(uri):
                yield PageLink(tuple(box), 0, uri)
            continue
        to, x, y = document.resolve_link(uri)
        if isinstance(to, int) and 0 <= to < len(document):
            yield PageLink(tuple(box), to + 1, "", (max(0.0, x), y) if y > 0 else None)


def _each_link(page: Any) -> Iterator[Any]:
    link = page.first_link
    while link:
        yield link
        link = link.next
