"""The letters drawn on a page, and where a text of the library stands among them.

The library's text is cleaned: broken words are joined, ligatures expanded, columns reordered, running heads removed. So
only letters and digits are compared, folded, with those of the page in the order they were drawn; those of tables by
row, as in the library's text.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from folio.pdf.mupdf import pymupdf, vertical_shift
from folio.pdf.tables import rows_in_order
from folio.pdf.turned import level_box
from folio.text import fold

# Left, top, right and bottom, in points from the left and the top of the page as shown: rotated and cropped.
Rect = tuple[float, float, float, float]

# A piece of a text has at least this many letters and digits; many shorter ones occur several times on a page.
_MIN_PIECE = 8
# A piece this long that continues the one before is taken without a look for a longer one elsewhere.
_LONG_PIECE = 40
# Places of the page compared for one piece
_MOST_PLACES = 50


class Letters(NamedTuple):
    """The folded letters and digits of a page, in the order they were drawn. Each drawn word has a box."""

    text: str
    starts: list[int]  # the index of the first letter of each word, and the end
    boxes: list[Rect]  # of each word
    lines: list[int]  # the line of each word
    line_starts: list[int]  # the index of the first letter of each line, and the end

    def word_at(self, letter: int) -> int:
        """The word with this letter."""
        return bisect_right(self.starts, letter) - 1


class Piece(NamedTuple):
    """`length` letters of a text, from `start`, that are those of the page from `at`."""

    start: int
    at: int
    length: int


def drawn_letters(page: Any) -> Letters:
    """The letters of a PyMuPDF page."""
    letters: list[str] = []
    starts, boxes, lines, line_starts = list[int](), list[Rect](), list[int](), list[int]()
    count, line = 0, (-1, -1)
    shown = _shown(page)
    textpage = page.get_textpage(flags=pymupdf().TEXTFLAGS_TEXT)
    blocks = textpage.extractDICT()["blocks"]
    words = textpage.extractWORDS()
    if places := _places_by_row(blocks):
        words = sorted(words, key=lambda word: places[word[5], word[6]])  # stable: words of a line keep their order
    is_vertical = any(line["wmode"] for block in blocks for line in block.get("lines", ()))
    for x0, y0, x1, y1, word, block, number, _ in words if is_vertical else _from_left(words):
        right, down = vertical_shift(blocks[block]["lines"][number]) if is_vertical else (0.0, 0.0)
        folded = fold_word(word)
        if not folded:
            continue
        if (block, number) != line:
            line = (block, number)
            line_starts.append(count)
        letters.append(folded)
        starts.append(count)
        boxes.append(shown((x0 + right, y0 + down, x1 + right, y1 + down)))
        lines.append(len(line_starts) - 1)
        count += len(folded)
    return Letters("".join(letters), [*starts, count], boxes, lines, [*line_starts, count])


def _places_by_row(blocks: Sequence[Mapping[str, Any]]) -> dict[tuple[int, int], int]:
    """The place of each block's each line, if the page has tables that were drawn by column; {} if not."""
    boxes = [[level_box(line) for line in block.get("lines", ())] for block in blocks]
    arranged = rows_in_order(boxes)
    if arranged is boxes:
        return {}
    places = {id(box): place for place, box in enumerate(box for block in arranged for box in block)}
    return {
        (number, line): places[id(box)] for number, block in enumerate(boxes) for line, box in enumerate(block)
    }


def _from_left(words: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """The words of a page as drawn; those of a row from left to right, if they were drawn in another order."""
    row: list[tuple[Any, ...]] = []
    for word in words:
        if row and abs(word[1] + word[3] - row[-1][1] - row[-1][3]) > 0.5 * (word[3] - word[1]):
            yield from _sorted_row(row)
            row = []
        row.append(word)
    yield from _sorted_row(row)


def _sorted_row(row: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    # One step back is the next column, or a line that is struck twice.
    back = sum(word[0] < last[0] for last, word in pairwise(row))
    if back < max(2, len(row) // 4) or any(is_right_to_left(word[4][0]) for word in row):
        return row
    block, number = row[0][5:7]
    return [(*word[:5], block, number, word[7]) for word in sorted(row, key=lambda word: word[0])]


def fold_word(word: str) -> str:
    """text.fold, faster for the words of most papers."""
    if word.isascii():
        return word.lower() if word.isalnum() else "".join(filter(str.isalnum, word.lower()))
    return fold(word)


def _shown(page: Any) -> Any:
    """The function from a box of the unrotated page to that of the page as shown."""
    a, b, c, d, e, f = page.rotation_matrix
    width, height, is_turned = page.rect.width, page.rect.height, page.rotation != 0

    def shown(box: Rect) -> Rect:
        x0, y0, x1, y1 = box
        if not is_turned and x0 >= 0 and y0 >= 0 and x1 <= width and y1 <= height:
            return box
        xs = sorted((a * x0 + c * y0 + e, a * x1 + c * y1 + e))
        ys = sorted((b * x0 + d * y0 + f, b * x1 + d * y1 + f))
        return max(xs[0], 0.0), max(ys[0], 0.0), min(xs[1], width), min(ys[1], height)

    return shown


def place(text: str, letters: Letters) -> list[Piece]:
    """The pieces of a folded text that the page has, in the order of the text. No letter of the page is in two.

    The pieces are as long as possible, because a column or a running head may be drawn in between.
    """
    pieces: list[Piece] = []
    taken, seeds = bytearray(len(letters.text)), _Seeds(letters.text)
    start = after = 0  # the letter of the text, and that of the page after the last piece
    while start + _MIN_PIECE <= len(text):
        at, length = _longest(text, start, seeds, after, taken)
        if not length:
            start += 1
            continue
        if start + length < len(text):
            # Only whole lines are drawn in between, so the piece ends with its last whole line, if it has one.
            line_end = letters.line_starts[bisect_right(letters.line_starts, at + length) - 1]
            if line_end - at >= _MIN_PIECE:
                length = line_end - at
        pieces.append(Piece(start, at, length))
        taken[at : at + length] = b"\1" * length
        start, after = start + length, at + length
    return pieces


class _Seeds:
    """Where each run of _MIN_PIECE letters of a page is; found out when it is first needed, which it seldom is."""

    def __init__(self, drawn: str) -> None:
        self.drawn = drawn

    @cached_property
    def places(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for at in range(len(self.drawn) - _MIN_PIECE + 1):
            known = places.setdefault(self.drawn[at : at + _MIN_PIECE], [])
            if len(known) < _MOST_PLACES:
                known.append(at)
        return places


def _longest(text: str, start: int, seeds: _Seeds, after: int, taken: bytearray) -> tuple[int, int]:
    """The place and the length of the longest match of text[start:]: that at `after`, or else the first; 0 for none."""
    drawn = seeds.drawn
    seed = text[start : start + _MIN_PIECE]
    best, length = after, 0
    if drawn.startswith(seed, after):
        length = _common(text, start, drawn, after, taken)
        if length >= _LONG_PIECE:
            return best, length
    for at in seeds.places.get(seed, ()):
        if (longer := _common(text, start, drawn, at, taken)) > length:
            best, length = at, longer
    return (best, length) if length >= _MIN_PIECE else (best, 0)


def _common(text: str, start: int, drawn: str, at: int, taken: bytearray) -> int:
    """How many letters text[start:] and drawn[at:] share before the first that is taken."""
    free = taken.find(1, at)
    most = min(len(text) - start, (len(drawn) if free < 0 else free) - at)
    low, high = 0, 1
    while high <= most and text[start + low : start + high] == drawn[at + low : at + high]:
        low, high = high, 2 * high
    high = min(high, most + 1)  # low letters are shared, high are not
    while high - low > 1:
        middle = (low + high) // 2
        if text[start + low : start + middle] == drawn[at + low : at + middle]:
            low = middle
        else:
            high = middle
    return low


def line_boxes(letters: Letters, start: int, end: int) -> Iterator[tuple[int, int, Rect]]:
    """The letters [start, end) of the page by lines: each part's letters and the box around them, without empty boxes.

    A word of which only some letters are meant gives that share of its box.
    """
    word = letters.word_at(start)
    if letters.starts[word] == start and letters.starts[word + 1] == end:  # most often
        x0, y0, x1, y1 = box = letters.boxes[word]
        if x0 < x1 and y0 < y1:
            yield start, end, box
        return
    parts = [start, *(at for at in letters.line_starts[bisect_right(letters.line_starts, start) :] if at < end), end]
    for first, last in pairwise(parts):
        words = range(letters.word_at(first), letters.word_at(last - 1) + 1)
        boxes = [_box_of(letters, word, first, last) for word in words]
        box = (min(b[0] for b in boxes), min(b[1] for b in boxes), max(b[2] for b in boxes), max(b[3] for b in boxes))
        if box[0] < box[2] and box[1] < box[3]:
            yield first, last, box


def _box_of(letters: Letters, word: int, start: int, end: int) -> Rect:
    """The part of a word's box with its letters in [start, end)."""
    first, last = letters.starts[word], letters.starts[word + 1]
    box = letters.boxes[word]
    x0, y0, x1, y1 = box
    if (start <= first and last <= end) or y1 - y0 > x1 - x0:  # an upright box may be of text in any direction
        return box
    before, behind = ((x1 - x0) * max(0, left) / (last - first) for left in (start - first, last - end))
    if is_right_to_left(letters.text[first]):
        before, behind = behind, before
    return x0 + before, y0, x1 - behind, y1


def is_right_to_left(letter: str) -> bool:
    return unicodedata.bidirectional(letter) in ("R", "AL")


def is_whole_words(letters: Letters, start: int, end: int) -> bool:
    """Whether the letters [start, end) begin and end with a word."""
    return letters.starts[letters.word_at(start)] == start and letters.starts[letters.word_at(end - 1) + 1] == end


def covered(pieces: Sequence[Piece]) -> int:
    return sum(piece.length for piece in pieces)
