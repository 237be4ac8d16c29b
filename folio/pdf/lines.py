"""The lines of a page as a reader sees them, from the lines that were drawn.

A PDF draws text in any order: a formula after its paragraph, an exponent as a line of its own, the words of a line from
the last to the first, a title twice so that it looks bold. Here copies are dropped, and pieces are put into the line
where they stand. Positions decide. Pages that are drawn line by line, as nearly all are, stay as they are.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

from folio.pdf.mupdf import around

# Left, top, right and bottom, in points from the left and the top of the page
Rect = tuple[float, float, float, float]
# MuPDF's blocks, lines and spans, see visible.py; a letter has "c", "bbox" and "origin".
Block = Mapping[str, Any]
Line = Mapping[str, Any]
Span = dict[str, Any]
Letter = Mapping[str, Any]
# The letters of each span, in the order of the spans
Letters = Callable[[], Sequence[Sequence[Letter]]]

# Lengths are shares of the type size, unless they say otherwise.
# A copy has the same text as what was drawn before, and is shifted by less than this, to the side and down.
_COPY_SHIFT = 0.15
# A letter is at least about so wide; and those of a piece are on average, unless they are piled up.
_NARROW, _PILED = 0.3, 0.25
# Letters of a word are dropped if at least this share of them are copies, and the word if nearly all are.
_COPIED, _WHOLE = 0.4, 0.8
# Baselines of one line differ by at most this: scans and typewriters are uneven.
_UNEVEN = 0.25
# Those of pieces that were not drawn together differ by at most this.
_SAME_BASE = 0.08
# Words of a line are at most so far apart; a wider gap may separate cells. MuPDF's own lines have wider ones.
_WORD_GAP, _LINE_GAP = 0.5, 0.8
# A wider gap needs a space, as in MuPDF; and how wide a space at the end of a piece is about.
_SPACE, _SPACE_WIDTH = 0.15, 0.25
# Raised and lowered pieces are smaller than this share of the type beside them, and at most so far from it.
_SMALL, _SMALL_GAP = 0.88, 0.3
# The parts of a fraction, which have space around them, are at most so far.
_FRACTION_GAP = 0.6
# Their baseline is at least and at most so far above or below the line's.
_RAISED, _LOWERED = (0.12, 0.9), (0.04, 0.5)
# TeX's roots, sums and brackets hang from their origin: their baseline is about so far below. Brackets vary.
_HUNG, _HANGING = 0.75, (-0.45, 0.3)
# Two stacked parts are a fraction if their baselines are at least so many of their sizes apart.
_RULE = 0.98
# Their centres differ by less than this; and they are at least so far from what stands before them.
_CENTRED, _TOUCHING = 0.15, 0.1
# Lines of a column end, or begin, at places that differ by at most this.
_FLUSH = 0.3
# Type of a label and of the heading beside it differs by more than this factor.
_OTHER_SIZE = 0.95
# The baselines of lines that follow each other are at least and at most so far apart.
_LINE_STEP = 1.12, 2.0
# Parts above each other are at most so far from what they touch.
_TIGHT = 0.1
# The most characters of a raised or lowered piece
_SMALL_CHARACTERS = 24
# Letters overlap if they share more than this of the narrower one: italics lean into what is beside them.
_OVERLAP, _LEAN = 0.3, 0.25
# Pieces of this many characters are columns, unless they are of one block.
_LONG = 30
# Type sizes of one line differ at most by this factor; a larger letter is an initial.
_LARGER = 1.6
# Type 3 fonts may state any size; below this one, in points, the height of the box counts.
_MIN_SIZE = 3.0
# Baselines differ if they are so many points apart.
_UNLEVEL = 0.2
# The cosine of the angle at which lines count as level
_LEVEL = 0.9
# An initial is at most so far from its line, and its top is at most so far from the line's; the height of capitals
_INITIAL_GAP, _TOP, _CAPITAL = 1.2, 0.5, 0.7
# The most initials of a page
_MOST_INITIALS = 20
_INITIAL = re.compile(r"[\"'“‘«]?[^\W\d_]")
_PUNCTUATION = ".,;:!?()[]\"'“”‘’«»"
# The most rows and pieces that are tried for a raised or lowered piece
_MOST_ROWS, _MOST_NEAR = 20, 60
# Short pieces are looked up by strips of the page of this width, in points.
_STRIP = 10.0

_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
# TeX's fonts of signs and of large signs
_TEX_SIGNS, _TEX_EXTENSION = re.compile(r"SY\d"), re.compile(r"EX\d")
# A word, which a sign or the mark of a note is not; and one that few formulas have
_WORD, _LONG_WORD = re.compile(r"[^\W\d_]{2}"), re.compile(r"[^\W\d_]{3}")
# A sum or a difference, not in brackets
_TERMS = re.compile(r"^[^()]+[+−±–-]|\)[^()]*[+−±–-]")
# The end of a text that has neither exponent nor index
_NOTHING_TO_RAISE = re.compile(r"[\s(\[{,=+*·−–-]$")
# Three letters one after the other, each drawn twice: "HHeellll"
_DOUBLED = re.compile(r"([^\W\d_])\1\s*([^\W\d_])\2\s*([^\W\d_])\3")


def true_lines(blocks: Sequence[Block], letters: Letters) -> list[Block]:
    """The blocks of a page with its true lines.

    blocks: the visible text, from MuPDF. letters: called only if the places of single letters matter. Each span gets
    its "number" among all spans of `blocks`; one that is a part of a drawn span has that number, and the "chars" of the
    part.
    """
    spans = [span for block in blocks for line in block.get("lines", ()) for span in line["spans"]]
    for number, span in enumerate(spans):
        span["number"] = number
    _level_leading_spaces(spans)
    drawn = _pieces(blocks)
    pieces = _with_initials(_without_copies(drawn, letters))
    groups = _Groups(pieces, letters)
    rows = _rows(pieces)
    for row in rows:
        if len(row) > 1:
            groups.join_row(row)
    groups.join_small(pieces, rows)
    if groups.joined:  # an index may fill the gap between two pieces of a line
        for row in rows:
            if len(row) > 1:
                groups.join_row(row)
    if not groups.joined and len(pieces) == len(drawn) and all(a is b for a, b in zip(pieces, drawn, strict=True)):
        return list(blocks)
    return _rebuilt(blocks, {piece.place: piece for piece in pieces}, groups)


def letters_of(span: Mapping[str, Any], letters: Letters) -> Sequence[Letter]:
    """The letters of a span of true_lines. letters: as for true_lines."""
    chars: Sequence[Letter] | None = span.get("chars")
    return letters()[span["number"]] if chars is None else chars


def _level_leading_spaces(spans: Sequence[Span]) -> None:
    """Put the origin of spans that begin with a space on the baseline of their letters.

    MuPDF gives a space that it adds behind an exponent the exponent's baseline, and with it the span behind.
    """
    behind = [span for span in spans if span["text"][:1].isspace() and not span["text"].isspace()]
    styles = {(span["font"], span["size"]) for span in behind}
    heights: dict[tuple[str, float], tuple[float, float]] = {}  # font and size -> height, and how far below the origin
    for span in spans if behind else ():
        style = span["font"], span["size"]
        if style in styles and not span["text"][:1].isspace():
            heights[style] = span["bbox"][3] - span["bbox"][1], span["bbox"][3] - span["origin"][1]
    for span in behind:
        height, below = heights.get((span["font"], span["size"]), (math.inf, 0.0))
        (x0, top, x1, bottom), (x, base) = span["bbox"], span["origin"]
        shift = bottom - top - height
        if shift > _UNLEVEL:
            if abs(bottom - base - below) < _UNLEVEL:  # the space is lower
                span["origin"], span["bbox"] = (x, base - shift), (x0, top, x1, bottom - shift)
            else:
                span["origin"], span["bbox"] = (x, base + shift), (x0, top + shift, x1, bottom)


def size_of(span: Mapping[str, Any]) -> float:
    """The type size of a span, in points; an estimate where its font states none."""
    size: float = span["size"]
    return size if size >= _MIN_SIZE else float(span["bbox"][3] - span["bbox"][1])


def base_of(span: Mapping[str, Any]) -> float:
    """Where the baseline of a span is, in points from the top. TeX's roots and large signs hang from their origin."""
    base: float = span["origin"][1]
    return base + _HUNG * size_of(span) if _hangs(span) else base


def _hangs(span: Mapping[str, Any]) -> bool:
    font = span["font"]
    return ("EX" in font and _TEX_EXTENSION.search(font) is not None) or (
        "SY" in font and span["text"].strip() == "√" and _TEX_SIGNS.search(font) is not None
    )


class _Piece:
    """A drawn line that has text and runs from left to right."""

    __slots__ = ("base", "line", "main", "order", "place", "size", "spans", "starts", "text", "x0", "x1")

    def __init__(self, line: Line, spans: list[Span], place: tuple[int, int], order: int) -> None:
        """spans: those of the line that are not only spaces. place: the number of its block, and of its line in it."""
        self.line, self.spans, self.place, self.order = line, spans, place, order
        self.starts: list[float] | None = None
        main = last = spans[0]
        self.x0: float = main["bbox"][0]
        self.x1: float = main["bbox"][2]
        self.text: str = main["text"]
        if len(line["spans"]) > 1:
            main, last = _main(spans), spans[-1]
            self.x0, self.x1 = min([span["bbox"][0] for span in spans]), max([span["bbox"][2] for span in spans])
            self.text = "".join([span["text"] for span in line["spans"]])
        self.main, self.size, self.base = main, size_of(main), base_of(main)
        if last["text"][-1] == " ":
            self.x1 -= _SPACE_WIDTH * self.size

    def spans_at(self, left: float, right: float) -> list[Span]:
        """The spans that may reach into a strip."""
        if self.starts is None:
            self.spans.sort(key=lambda span: span["bbox"][0])
            self.starts = [span["bbox"][0] for span in self.spans]
        return self.spans[max(0, bisect_left(self.starts, left) - 2) : bisect_left(self.starts, right)]


def _main(spans: Sequence[Span]) -> Span:
    """The span whose size and baseline are those of the line: the longest, unless it is raised or lowered."""
    main = max(spans, key=lambda span: len(span["text"]))
    base, size = base_of(main), main["size"] / _SMALL
    larger = [span for span in spans if span["size"] >= size and abs(base_of(span) - base) > _LOWERED[0] * size]
    return max(larger, key=lambda span: len(span["text"])) if larger else main


def _pieces(blocks: Iterable[Block], first: int = 0) -> list[_Piece]:
    """The pieces of blocks in the order they were drawn. first: the number of the first block."""
    pieces: list[_Piece] = []
    for number, block in enumerate(blocks, first):
        for index, line in enumerate(block.get("lines", ())):
            if line["dir"][0] > _LEVEL and (
                spans := [span for span in line["spans"] if span["text"] and not span["text"].isspace()]
            ):
                pieces.append(_Piece(line, spans, (number, index), len(pieces)))
    return pieces


def _has_text(line: Line) -> bool:
    """Whether a line has text and runs from left to right."""
    return line["dir"][0] > _LEVEL and any(span["text"] and not span["text"].isspace() for span in line["spans"])


def _rows(pieces: Iterable[_Piece]) -> list[list[_Piece]]:
    """The pieces by baseline, from the top; those of a row from left to right."""
    rows: list[list[_Piece]] = []
    anchor = 0.0
    for piece in sorted(pieces, key=lambda piece: piece.base):
        if rows and piece.base - anchor <= _UNEVEN * piece.size:
            rows[-1].append(piece)
        else:
            rows.append([piece])
            anchor = piece.base
    for row in rows:
        if len(row) > 1:
            row.sort(key=lambda piece: piece.x0)
    return rows


class _Places:
    """Where texts were drawn, to find those that are drawn there again."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, int], tuple[float, float, float]] = {}

    def is_new(self, text: str, origin: tuple[float, float], size: float) -> bool:
        """Whether this text was not drawn here yet; it then counts as drawn."""
        x, base = origin
        near = _COPY_SHIFT * max(round(size), 1)
        column, row = int(x // near), int(base // near)
        for key in ((text, column + i, row + j) for i in (0, -1, 1) for j in (0, -1, 1)):
            if (known := self._known.get(key)) is None:
                continue
            other_x, other_base, other_size = known
            if abs(x - other_x) <= near and abs(base - other_base) <= near and abs(size - other_size) <= 0.05 * size:
                return False
        self._known[text, column, row] = x, base, size
        return True


def _without_copies(pieces: list[_Piece], letters: Letters) -> list[_Piece]:
    """The pieces without those, and without the words, that were drawn at the same place before."""
    counts = Counter([piece.text for piece in pieces])
    if len(counts) < len(pieces):
        places = _Places()
        pieces = [p for p in pieces if counts[p.text] == 1 or places.is_new(p.text, (p.x0, p.base), p.size)]
    doubtful = {p.order for p in pieces if p.x1 - p.x0 < _PILED * p.size * (len(p.text) - 1)}
    if _DOUBLED.search("\n".join(counts)):  # asked of the page first, because hardly any has one
        doubtful.update(piece.order for piece in pieces if _DOUBLED.search(piece.text))
    for row in _rows(pieces):
        if len(row) > 1:
            doubtful.update(_overlaid(row))
    if not doubtful:
        return pieces
    places, kept = _Places(), list[_Piece]()
    for piece in pieces:
        if piece.order not in doubtful:
            kept.append(piece)
            continue
        drawn = piece.line["spans"]
        spans = [_without_copied_words(span, letters_of(span, letters), places) for span in drawn]
        if all(new is old for new, old in zip(spans, drawn, strict=True)):
            kept.append(piece)
            continue
        spans = [span for span in spans if span["text"]]
        if left := [span for span in spans if not span["text"].isspace()]:
            line = {**piece.line, "spans": spans, "bbox": around(spans)}
            kept.append(_Piece(line, left, piece.place, piece.order))
    return kept


def _overlaid(row: Sequence[_Piece]) -> Iterator[int]:
    """The numbers of the pieces of a row that are drawn over each other and share a word that fits there."""
    cover, words = row[0], frozenset[str]()
    for piece in row[1:]:
        overlap = min(cover.x1, piece.x1) - piece.x0
        size = min(piece.size, cover.size)
        if overlap > 0.5 * size and max(piece.size, cover.size) <= 1.1 * size:
            words = words or frozenset(cover.text.split())
            longest = overlap / (_NARROW * size)
            shared = [word for word in words.intersection(piece.text.split()) if len(word) <= longest]
            if any(len(word) > 2 for word in shared) or (shared and _may_repeat(cover, piece, overlap)):
                yield cover.order
                yield piece.order
        if piece.x1 > cover.x1:
            cover, words = piece, frozenset()


def _may_repeat(cover: _Piece, piece: _Piece, overlap: float) -> bool:
    """Whether a piece repeats a short word at either end of the one below it. Formulas are full of such words."""
    first, words = piece.text.split()[0], cover.text.split()
    if first == words[0] and piece.x0 - cover.x0 <= _COPY_SHIFT * piece.size:
        return True
    return first == words[-1] and overlap <= 0.8 * piece.size * len(first)


def _without_copied_words(span: Span, letters: Sequence[Letter], places: _Places) -> Span:
    """The span without the letters that were drawn at the same place before; itself if there are none."""
    kept: list[Letter] = []
    dropped, size = False, size_of(span)
    for is_space, run in groupby(letters, lambda letter: letter["c"].isspace()):
        word = list(run)
        if not is_space:
            new = [letter for letter in word if places.is_new(letter["c"], letter["origin"], size)]
            if len(word) - len(new) >= _COPIED * len(word):
                word, dropped = new if len(word) - len(new) < _WHOLE * len(word) else [], True
        elif dropped:
            word = word[: len(kept) > 0 and not kept[-1]["c"].isspace()]
        kept += word
    return _part(span, kept) if dropped else span


def _part(span: Span, letters: Sequence[Letter]) -> Span:
    """A span with only these of its letters."""
    if not letters:
        return {**span, "text": "", "chars": ()}
    left, right = min([letter["bbox"][0] for letter in letters]), max([letter["bbox"][2] for letter in letters])
    return {
        **span,
        "text": "".join([letter["c"] for letter in letters]),
        "bbox": (left, span["bbox"][1], right, span["bbox"][3]),
        "origin": letters[0]["origin"],
        "chars": tuple(letters),
    }


def _with_initials(pieces: list[_Piece]) -> list[_Piece]:
    """The pieces with large initials in the words that they begin."""
    body = max(pieces, key=lambda piece: len(piece.text)).size if pieces else 0.0
    initials = [piece for piece in pieces if piece.size > _LARGER * body and _INITIAL.fullmatch(piece.text.strip())]
    for initial in initials[:_MOST_INITIALS]:
        # The lines that stand behind it, from the one at its top to the one at its foot
        behind = [
            other
            for other in pieces
            if initial.size > _LARGER * other.size
            and -_LEAN < (other.x0 - initial.x1) / other.size < _INITIAL_GAP
            and initial.base - initial.size < other.base < initial.base + _UNEVEN * other.size
        ]
        behind.sort(key=lambda piece: piece.base)
        if len(behind) > 1 and abs(initial.base - _CAPITAL * (initial.size - behind[0].size) - behind[0].base) < (
            _TOP * behind[0].size
        ):
            word = _begun(initial, behind, pieces)
            pieces = [word if piece is behind[0] else piece for piece in pieces if piece is not initial]
    return pieces


def _begun(initial: _Piece, behind: Sequence[_Piece], pieces: Iterable[_Piece]) -> _Piece:
    """The first of the lines behind an initial, with it."""
    first, second = behind[:2]
    letter, rest = initial.text.strip(), first.text.split()[0].casefold()
    words = {word for piece in pieces if piece is not first and piece is not initial for word in _words_of(piece)}
    # A word of one letter has a space behind it, or the page uses the rest as a word, and not both together.
    is_word = first.x0 - second.x0 > _SPACE * first.size or (
        letter.casefold() in words and rest in words and letter.casefold() + rest not in words
    )
    (left, _, right, _), (_, top, _, bottom) = initial.main["bbox"], first.main["bbox"]
    span = {
        **initial.main,
        "text": letter + (" " if is_word else ""),
        "size": first.main["size"],
        "bbox": (left, top, right, bottom),
        "origin": (left, first.base),
    }
    spans = [span, *first.line["spans"]]
    line = {**first.line, "spans": spans, "bbox": around([span, {"bbox": first.line["bbox"]}])}
    return _Piece(line, [span, *first.spans], first.place, first.order)


def _words_of(piece: _Piece) -> list[str]:
    return [word.strip(_PUNCTUATION) for word in piece.text.casefold().split()]


class _Groups:
    """The pieces of which each true line consists, found by joining two at a time."""

    def __init__(self, pieces: Sequence[_Piece], letters: Letters) -> None:
        self.letters = letters
        self.joined = False
        self._parents = {piece.order: piece for piece in pieces}
        self._inks: dict[int, list[Rect]] = {}
        self._edges: dict[int, tuple[float, float]] = {}  # of each block, left and right
        self._pieces = {piece.order: piece for piece in pieces}
        self._in_block: dict[int, list[_Piece]] = {}
        for piece in pieces:
            left, right = self._edges.get(piece.place[0], (piece.x0, piece.x1))
            self._edges[piece.place[0]] = min(left, piece.x0), max(right, piece.x1)
            self._in_block.setdefault(piece.place[0], []).append(piece)

    def first(self, piece: _Piece) -> _Piece:
        """The piece that stands for the group of this one."""
        parents = self._parents
        while (parent := parents[piece.order]) is not piece:
            parents[piece.order] = parents[parent.order]
            piece = parent
        return piece

    def join(self, piece: _Piece, other: _Piece) -> None:
        a, b = self.first(piece), self.first(other)
        if a is not b:
            self.joined = True
            self._parents[b.order] = a

    def _are_columns(self, left: _Piece, right: _Piece) -> bool:
        """Whether two pieces are lines of two columns, such as a label in the margin and a heading beside it.

        They differ in size; all lines of one are at one side of the other, and at least two end, or begin, beside it.
        """
        if min(left.size, right.size) > _OTHER_SIZE * max(left.size, right.size) or not _WORD.search(left.text):
            return False
        room, (lines, near) = _FLUSH * left.size, self._lines_of(left, right)
        ends = [piece for piece in (*lines, *near) if abs(piece.x1 - left.x1) <= room]
        if _are_lines(ends) and max([piece.x1 for piece in lines]) <= min(left.x1, right.x0) + room:
            return True
        if not _WORD.search(right.text):
            return False
        room, (lines, near) = _FLUSH * right.size, self._lines_of(right, left)
        starts = [piece for piece in (*lines, *near) if abs(piece.x0 - right.x0) <= room]
        return _are_lines(starts) and min([piece.x0 for piece in lines]) >= max(right.x0, left.x1) - room

    def _lines_of(self, piece: _Piece, beside: _Piece) -> tuple[Sequence[_Piece], Sequence[_Piece]]:
        """The lines of the block of a piece, and those drawn before and after it that may go on in its column.

        MuPDF puts small type and a heading beside it into one block. The parts of a fraction are closer.
        """
        lines = self._in_block[piece.place[0]] if piece.place[0] != beside.place[0] else [piece]
        near = [self._pieces.get(order) for order in (piece.order - 1, piece.order + 1)]
        return lines, [
            other
            for other in near
            if other
            and other.size == piece.size
            and _LINE_STEP[0] < abs(other.base - piece.base) / piece.size < _LINE_STEP[1]
            and _LONG_WORD.search(other.text)
        ]

    def join_row(self, row: Sequence[_Piece]) -> None:
        """Join the words of one line. row: from left to right."""
        last = row[0]
        for piece in row[1:]:
            small, large = sorted((last.size, piece.size))
            gap = (piece.x0 - last.x1) / large
            may_join = gap <= _LINE_GAP and large <= _LARGER * small and not _are_right_to_left(last, piece)
            if may_join and (self._shares_row(last, piece) if gap < -_LEAN else self._is_near(last, piece, gap)):
                self.join(last, piece)
            if piece.x1 > last.x1:
                last = piece

    def _is_near(self, left: _Piece, right: _Piece, gap: float) -> bool:
        """Whether two pieces are words of one line. gap: between them, in type sizes."""
        if not _are_level(left.spans[-1], right.spans[0], max(left.size, right.size)):
            return False
        if left.place[0] == right.place[0] and not self._are_columns(left, right):
            return gap <= (_LINE_GAP if right.order == left.order + 1 else _WORD_GAP)
        if gap > _WORD_GAP or min(len(left.text), len(right.text)) >= _LONG or self._are_columns(left, right):
            return False
        is_sign = _is_sign(left) or _is_sign(right)
        if not is_sign and abs(left.base - right.base) > _SAME_BASE * left.size:
            return False
        if gap < _SPACE and _only_touch(left, right):
            return False
        if max(len(left.text), len(right.text)) < _LONG and gap <= _SMALL_GAP:
            return True
        room = _WORD_GAP * left.size
        edge, other_edge = self._edges[left.place[0]][1], self._edges[right.place[0]][0]
        return right.x1 <= edge + room or left.x0 >= other_edge - room

    def _shares_row(self, host: _Piece, piece: _Piece) -> bool:
        """Whether a piece stands in gaps of another one of its row, or goes on where the other one ends."""
        if piece.place[0] != host.place[0] and min(len(host.text), len(piece.text)) >= _LONG:
            first = piece.line["spans"][0]
            if not any(_are_stacked(first, span, host.size) for span in host.spans_at(first["bbox"][0], piece.x1)):
                return False
        return self._fits(host, piece)

    def _fits(self, host: _Piece, piece: _Piece) -> bool:
        """Whether a piece stands in gaps of another one, or above or below raised and lowered spans of it."""
        return not any(
            self._overlap(span, other)
            for span in piece.spans
            for other in host.spans_at(span["bbox"][0], span["bbox"][2])
            if _share(span["bbox"], other["bbox"]) > _OVERLAP and not _are_stacked(span, other, host.size)
        )

    def _overlap(self, span: Span, other: Span) -> bool:
        """Whether letters of two spans overlap whose boxes do."""
        if " " not in span["text"].strip() and " " not in other["text"].strip():
            return True
        ink = self._ink(other)
        for box in self._ink(span):
            at = bisect_left(ink, box)
            if any(_share(box, near) > _OVERLAP for near in ink[max(0, at - 2) : at + 2]):
                return True
        return False

    def _ink(self, span: Span) -> list[Rect]:
        """The boxes of the letters of a span, from left to right."""
        if id(span) not in self._inks:
            letters = letters_of(span, self.letters)
            self._inks[id(span)] = sorted(letter["bbox"] for letter in letters if not letter["c"].isspace())
        return self._inks[id(span)]

    def join_small(self, pieces: Sequence[_Piece], rows: Sequence[Sequence[_Piece]]) -> None:
        """Join raised and lowered pieces, and large brackets, to their lines."""
        bases = [min([piece.base for piece in row]) for row in rows]
        largest = [max([piece.size for piece in row]) for row in rows]
        starts: dict[int, list[float]] = {}
        short = [p for p in pieces if len(p.text) <= _SMALL_CHARACTERS and not _are_right_to_left(p)]
        short.sort(key=_is_sign, reverse=True)  # brackets first: what they enclose touches them and not the line
        columns: dict[int, list[_Piece]] = {}
        for piece in short:
            for strip in range(int(piece.x0 // _STRIP), min(int(piece.x1 // _STRIP), int(piece.x0 // _STRIP) + 9) + 1):
                columns.setdefault(strip, []).append(piece)
        body = max(pieces, key=lambda piece: len(piece.text)).size if pieces else 0.0
        for piece in short:
            is_sign = _is_sign(piece)
            least = piece.size * (0.9 if is_sign else 1 / _SMALL)
            found: list[tuple[float, float, int, _Piece]] = []
            first = bisect_left(bases, piece.base - 1.5 * piece.size)
            for number in range(first, min(first + _MOST_ROWS, bisect_right(bases, piece.base + 2 * piece.size))):
                if largest[number] < least:
                    continue
                if number not in starts:
                    starts[number] = [other.x0 for other in rows[number]]
                at = bisect_right(starts[number], (piece.x0 + piece.x1) / 2)
                for host in rows[number][max(0, at - 3) : at + 2]:
                    if host is piece or _hangs(host.main) or (host.main["size"] < _MIN_SIZE and host.size > 1.5 * body):
                        continue
                    if distance := self._distance(piece, host, is_sign, columns):
                        found.append((*distance, host.order, host))
            if found:
                host = min(found)[-1]
                self.join(host, piece)
                if pair := _pair(piece, host, columns):
                    self.join(host, pair)
                host.x0, host.x1 = min(host.x0, piece.x0), max(host.x1, piece.x1)

    def _distance(
        self, piece: _Piece, host: _Piece, is_sign: bool, columns: Mapping[int, Sequence[_Piece]]
    ) -> tuple[float, float] | None:
        """How far a piece is from the line in which it is raised or lowered, to the side and down; None for another.

        columns: the number of a strip of the page -> the short pieces that reach into it.
        """
        size = host.size
        rise = (host.base - piece.base) / size
        behind = (host.x0 - piece.x1) / size
        gap = max((piece.x0 - host.x1) / size, behind)
        is_small = piece.size <= _SMALL * size
        is_raised = is_small and _RAISED[0] <= rise <= _RAISED[1]
        is_lowered = is_small and _LOWERED[0] <= -rise <= _LOWERED[1]
        hangs = is_sign and _HANGING[0] <= rise <= _HANGING[1] and piece.size <= 1.1 * size
        if not (is_raised or is_lowered or hangs) or gap > _FRACTION_GAP or _are_right_to_left(host):
            return None
        # What is lowered stands behind something. In front of a line it is below a sum, or a fraction.
        if (gap > _SMALL_GAP or (is_lowered and behind > -_LEAN)) and not _pair(piece, host, columns):
            return None
        if gap >= 0 and self._are_columns(*((piece, host) if behind >= 0 else (host, piece))):
            return None
        if gap < -_LEAN and not self._fits(host, piece):
            return None
        return max(gap, 0.0), abs(rise)


def _pair(piece: _Piece, host: _Piece, columns: Mapping[int, Sequence[_Piece]]) -> _Piece | None:
    """The other part of the fraction, in this line, of which a small piece is one; None if there is none."""
    if piece.size > _SMALL * host.size:
        return None
    middle = host.base - 0.25 * host.size
    for other in columns.get(int((piece.x0 + piece.x1) / 2 // _STRIP), ())[:_MOST_NEAR]:
        shared = min(other.x1, piece.x1) - max(other.x0, piece.x0)
        if (
            abs(other.size - piece.size) <= 0.1 * piece.size
            and 0.5 * piece.size <= abs(other.base - piece.base) <= 1.6 * piece.size
            and (other.base > middle) != (piece.base > middle)
            and abs(other.base - host.base) < _RAISED[1] * host.size
            and shared > 0.5 * min(other.x1 - other.x0, piece.x1 - piece.x0)
        ):
            return other
    return None


def _are_lines(pieces: Sequence[_Piece]) -> bool:
    """Whether pieces of one block are on two lines or more."""
    bases = [piece.base for piece in pieces]
    return len(bases) > 1 and max(bases) - min(bases) > _LINE_STEP[0] * max([piece.size for piece in pieces])


def _only_touch(left: _Piece, right: _Piece) -> bool:
    """Whether two pieces without a space between them are not of one line: labels, or a foot and its number."""
    texts = left.text.rstrip(), right.text.lstrip()
    if texts[0][-1].isdigit() and texts[1][0].isdigit():
        return True
    has_number = any(text.strip().isdigit() for text in texts)
    small, large = sorted((left.size, right.size))
    return has_number and texts[0][-1].isalnum() and texts[1][0].isalnum() and small <= _SMALL * large


def _is_sign(piece: _Piece) -> bool:
    """Whether a piece is a root, a sum or a bracket that hangs down."""
    return len(piece.text.strip()) <= 2 and _hangs(piece.spans[0])


def _are_level(span: Span, other: Span, size: float) -> bool:
    """Whether two spans that touch may be of one line: on one baseline, or one of them small. size: of the line."""
    if min(size_of(span), size_of(other)) <= _SMALL * size:
        return True
    return abs(base_of(span) - base_of(other)) <= _UNEVEN * size


def _share(box: Rect, other: Rect) -> float:
    """How much of the narrower of two boxes lies under the other one, from left to right."""
    width = min(box[2] - box[0], other[2] - other[0])
    return (min(box[2], other[2]) - max(box[0], other[0])) / width if width > 0 else 0.0


def _are_stacked(span: Span, other: Span, size: float) -> bool:
    """Whether one of two small spans is raised and the other lowered. size: of the type beside them."""
    a, b = size_of(span), size_of(other)
    return max(a, b) <= _SMALL * size and abs(base_of(span) - base_of(other)) >= 0.5 * min(a, b)


def _are_right_to_left(*pieces: _Piece) -> bool:
    return any(not piece.text.isascii() and _RIGHT_TO_LEFT.search(piece.text) for piece in pieces)


def _rebuilt(blocks: Sequence[Block], pieces: Mapping[tuple[int, int], _Piece], groups: _Groups) -> list[Block]:
    """The blocks with only these pieces, of which each group is one line."""
    members: dict[int, list[_Piece]] = {}
    for piece in pieces.values():
        members.setdefault(groups.first(piece).order, []).append(piece)
    joined: dict[tuple[int, int], Line | None] = {}  # where a line of a group was -> what is there now
    continued: set[int] = set()  # the numbers of blocks that go on in the next one
    shuffled: dict[int, list[Line]] = {}  # the number of a block -> its lines that were drawn in another order
    ends = _ends(pieces)
    for group in members.values():
        if len(group) > 1:
            joined |= dict.fromkeys([piece.place for piece in group])
            place = _place_of(group)
            joined[place] = line = _joined(group, groups.letters)
            places = sorted(piece.place for piece in group)
            continued.update(a[0] for a, b in pairwise(places) if a[0] != b[0] and ends.get(a) == b)
            if _is_shuffled(group):
                shuffled.setdefault(place[0], []).append(line)
    continued |= _continued(shuffled)
    rebuilt: list[Block] = []
    is_continued = False
    for number, block in enumerate(blocks):
        lines = []
        for index, line in enumerate(block.get("lines", ())):
            place = number, index
            new = joined[place] if place in joined else pieces[place].line if place in pieces else line
            if new is not None and (place in pieces or not _has_text(line)):
                lines.append(new)
        # All lines of a block may have moved into the next one: what stands above need not go on there.
        if is_continued and rebuilt and _are_near(rebuilt[-1].get("lines", ()), lines):
            rebuilt[-1] = {**rebuilt[-1], "lines": [*rebuilt[-1]["lines"], *lines]}
        elif lines or not block.get("lines", ()):
            rebuilt.append({**block, "lines": lines} if lines else block)
        is_continued = number in continued or (is_continued and not lines)
    return rebuilt


def _are_near(above: Sequence[Line], below: Sequence[Line]) -> bool:
    """Whether the first of some lines is no farther than a line below the last of others, or one of them is empty."""
    if not above or not below:
        return True
    _, top, _, bottom = below[0]["bbox"]
    return bool(top - above[-1]["bbox"][3] <= bottom - top)


def _is_shuffled(group: Sequence[_Piece]) -> bool:
    """Whether the words of a line were not drawn from left to right."""
    orders = [piece.order for piece in sorted(group, key=lambda piece: piece.x0)]
    return len(orders) > 2 and sum(b < a for a, b in pairwise(orders)) >= max(2, len(orders) // 4)


def _continued(shuffled: Mapping[int, Sequence[Line]]) -> set[int]:
    """The numbers of blocks that the next block goes on: MuPDF makes blocks of lines whose words are out of order."""
    continued = set()
    for number, lines in shuffled.items():
        if below := shuffled.get(number + 1):
            (x0, _, x1, bottom), (left, top, right, low) = lines[-1]["bbox"], below[0]["bbox"]
            if -0.5 < (top - bottom) / max(low - top, 1.0) < 0.5 and left < x1 and x0 < right:
                continued.add(number)
    return continued


def _ends(pieces: Iterable[tuple[int, int]]) -> dict[tuple[int, int], tuple[int, int]]:
    """The last line with text of each block -> the first one of the next block."""
    return {a: b for a, b in pairwise(sorted(pieces)) if a[0] != b[0]}


def _place_of(group: Sequence[_Piece]) -> tuple[int, int]:
    """Where the line of a group stands: where the last of its long pieces was.

    What follows that in its row, as the number of a formula does, then follows the whole line.
    """
    longest = max(len(piece.text) for piece in group)
    return max(piece.place for piece in group if 2 * len(piece.text) >= longest)


def _joined(group: Sequence[_Piece], letters: Letters) -> Line:
    """The pieces of a group as one line."""
    host = max(group, key=lambda piece: len(piece.text))
    centres = sorted((span["bbox"][0] + span["bbox"][2]) / 2 for piece in group for span in piece.spans)
    placed: list[tuple[float, int, Span]] = []
    for piece in sorted(group, key=lambda piece: piece.x0):
        key = piece.x0
        for span in piece.line["spans"]:
            x0, _, x1, _ = span["bbox"]
            is_split = " " in span["text"].strip() and bisect_right(centres, x1) - bisect_left(centres, x0) > 1
            for part in _words(span, letters) if is_split else (span,):
                # Accents are drawn before the letters below them, so the order within a piece stays.
                key = max(key, (part["bbox"][0] + part["bbox"][2]) / 2)
                placed.append((key, piece.order, part))
    placed.sort(key=lambda entry: entry[0])
    parts = _stacked([(order, part) for _, order, part in placed], host)
    spans = _spaced(_rejoined(parts), host)
    x0, _, x1, _ = around(spans)
    # Signs, and what is raised, would make the line overlap its neighbours.
    return {**host.line, "spans": spans, "bbox": (x0, host.main["bbox"][1], x1, host.main["bbox"][3])}


def _words(span: Span, letters: Letters) -> Iterator[Span]:
    """The words of a span, each with one of the spaces behind it."""
    word: list[Letter] = []
    for is_space, run in groupby(letters_of(span, letters), lambda letter: letter["c"].isspace()):
        if is_space:
            if word:
                yield _part(span, [*word, next(run)])
            word = []
        else:
            word = list(run)
    if word:
        yield _part(span, word)


def _stacked(parts: Sequence[tuple[int, Span]], host: _Piece) -> list[tuple[int, Span]]:
    """The parts of a line with an exponent before the index below it, and fractions on the line: (a+b)/c."""
    ordered: list[tuple[int, Span]] = []
    for is_shifted, run in groupby(parts, lambda part: _rise(part[1], host) != 0.0):
        if not is_shifted:
            ordered += run
            continue
        for stack in _columns(list(run), _TIGHT * host.size):
            ups = [part for part in stack if _rise(part[1], host) > 0]
            downs = [part for part in stack if _rise(part[1], host) < 0]
            above, below = (around([span for _, span in side]) if side else None for side in (ups, downs))
            if not above or not below or _share(above, below) <= _OVERLAP or not _are_of_one_size(ups, downs):
                ordered += stack
            elif _are_fraction(ups, downs, above, below, ordered[-1][1] if ordered else None, host):
                ordered += _fraction(ups, downs, host)
            else:
                ordered += [*ups, *downs]
    return ordered


def _are_of_one_size(ups: Sequence[tuple[int, Span]], downs: Sequence[tuple[int, Span]]) -> bool:
    """Whether two stacked parts belong to what stands before them, and one not to the other."""
    upper, lower = (size_of(_main([span for _, span in side])) for side in (ups, downs))
    return abs(upper - lower) <= 0.15 * max(upper, lower)


def _rise(span: Span, host: _Piece) -> float:
    """How far a small span is raised, or lowered (below 0), in type sizes of its line; 0 for one on the line."""
    if size_of(span) > _SMALL * host.size:
        return 0.0
    rise = (host.base - base_of(span)) / host.size
    # The index of an exponent is only a little above the line.
    return rise if abs(rise) >= _LOWERED[0] else 0.0


def _columns(parts: Sequence[tuple[int, Span]], gap: float) -> Iterator[list[tuple[int, Span]]]:
    """The parts that stand above each other or touch. gap: between two columns, in points."""
    column: list[tuple[int, Span]] = []
    right = 0.0
    for part in sorted(parts, key=lambda part: part[1]["bbox"][0]):
        if column and part[1]["bbox"][0] > right + gap:
            yield column
            column = []
        right = max(right, part[1]["bbox"][2]) if column else part[1]["bbox"][2]
        column.append(part)
    if column:
        yield column


def _are_fraction(
    ups: Sequence[tuple[int, Span]],
    downs: Sequence[tuple[int, Span]],
    above: Rect,
    below: Rect,
    last: Span | None,
    host: _Piece,
) -> bool:
    """Whether stacked parts are a fraction, and not an exponent and an index.

    The parts of a fraction are far enough apart for a rule and have one centre; an exponent and an index begin at the
    same place, which touches what they belong to. above, below: the boxes of the parts. last: what stands before them.
    """
    upper, lower = (_main([span for _, span in side]) for side in (ups, downs))
    size = max(size_of(upper), size_of(lower))
    if base_of(lower) - base_of(upper) < _RULE * size:
        return False
    if abs(above[0] + above[2] - below[0] - below[2]) > 2 * _CENTRED * size:
        return False
    if last is None or _NOTHING_TO_RAISE.search(last["text"]):
        return True
    touches = min(above[0], below[0]) - last["bbox"][2] < _TOUCHING * host.size
    return not touches or abs(above[0] - below[0]) >= _CENTRED * size


def _fraction(
    ups: Sequence[tuple[int, Span]], downs: Sequence[tuple[int, Span]], host: _Piece
) -> list[tuple[int, Span]]:
    """A fraction in the size and on the baseline of its line: "1/2", "(a+b)/c". Its order is -1, unlike any piece's."""
    above, below = (
        _on_line([span for _, span in side], host, side is downs) for side in (ups, downs)
    )
    above[-1] = {**above[-1], "text": above[-1]["text"].rstrip()}
    return [(-1, span) for span in (*above, _sign("/", above[-1], host), *below)]


def _sign(text: str, beside: Span, host: _Piece) -> Span:
    """A span with a sign that is not drawn, on the line."""
    x0, _, x1, _ = beside["bbox"]
    box = (x0, host.main["bbox"][1], x1, host.main["bbox"][3])
    return {**host.main, "text": text, "bbox": box, "origin": (x1, host.base), "chars": ()}


def _on_line(spans: Sequence[Span], host: _Piece, is_below: bool) -> list[Span]:
    """A part of a fraction in the size and on the baseline of its line, in brackets if it has several terms."""
    main = _main(spans)
    base, scale = main["origin"][1], host.size / size_of(main)
    moved = [
        {**s, "size": s["size"] * scale, "origin": (s["origin"][0], host.base + (s["origin"][1] - base) * scale)}
        for s in spans
    ]
    text = "".join([span["text"] for span in spans if abs(span["origin"][1] - base) < _LOWERED[0] * main["size"]])
    text = text.strip()
    if not text.isdigit() and len(text) > 1 and (is_below or _TERMS.search(text)):
        moved[-1] = {**moved[-1], "text": moved[-1]["text"].rstrip()}
        moved = [_sign("(", moved[0], host), *moved, _sign(")", moved[-1], host)]
    return moved


def _rejoined(parts: Iterable[tuple[int, Span]]) -> list[tuple[int, Span]]:
    """The parts, with words of one span that still follow each other as one part."""
    joined: list[tuple[int, Span]] = []
    for order, part in parts:
        last = joined[-1][1] if joined else None
        if last and last.get("chars") and part.get("chars") and last["number"] == part["number"]:
            joined[-1] = order, _part(last, [*last["chars"], *part["chars"]])
        else:
            joined.append((order, part))
    return joined


def _spaced(parts: Sequence[tuple[int, Span]], host: _Piece) -> list[Span]:
    """The spans of a line, with a space in each gap between pieces."""
    spans = [parts[0][1]]
    for (last_order, last), (order, span) in pairwise(parts):
        text, last_text = span["text"], spans[-1]["text"]
        if order != last_order and last_text[-1:].isspace():
            span = {**span, "text": text.lstrip() or text[:1]}
        elif order != last_order and not text[:1].isspace():
            # A word that was split off had a space before it. "1/5 n", and never "51/4".
            is_word, is_raised = "chars" in span and min(order, last_order) >= 0, _rise(span, host) != 0.0
            least = 0.0 if is_word else _SMALL_GAP if is_raised else _SPACE
            is_fraction = min(order, last_order) < 0 and text[:1].isalnum() and last_text[-1:].isalnum()
            if is_fraction or span["bbox"][0] - last["bbox"][2] > least * host.size:
                if size_of(last) > _SMALL * host.size or size_of(span) <= _SMALL * host.size:
                    spans[-1] = {**spans[-1], "text": last_text + " "}
                else:
                    span = {**span, "text": f" {text}"}
        spans.append(span)
    return spans


# A formula that no text explains is marked so.
FORMULA = "[formula]"
# The gap in which it stands: between words, and not wider than this
_MOST_GAP = 12.0
_PROSE = re.compile(r"[^\W\d_]{2,}\W+(?:[^\W\d_]+\W+)*[^\W\d_]{2,}")
# What touches a formula before and behind it
_OPENING, _CLOSING = re.compile(r"[(\[{“‘«\"']{1,2}$"), re.compile(r"[)\]},.;:!?”’»\"']{1,3}(?!\w)")
# The most gaps of a page that are looked at
_MOST_GAPS = 50


def mark_formulas(blocks: Sequence[Block], has_ink: Callable[[Sequence[Rect]], Sequence[bool]]) -> list[Block]:
    """The blocks with FORMULA in gaps of prose where something is drawn that no text explains, such as an image.

    has_ink: whether something is drawn in each of these boxes; called only if there are such gaps.
    """
    gaps = [
        gap
        for number, block in enumerate(blocks)
        if _may_have_gap(block.get("lines", ()))
        for gap in pairwise(_pieces([block], number))
        if _is_gap(*gap)
    ]
    gaps = [gap for gap in gaps[:_MOST_GAPS] if _is_in_paragraph(*gap, blocks)]
    if not gaps:  # nearly every page
        return list(blocks)
    pieces = _pieces(blocks)
    gaps = [gap for gap in gaps if not _is_filled(*gap, pieces)]
    if not gaps:
        return list(blocks)
    inked = has_ink([_between(*gap) for gap in gaps])
    marked = [gap for gap, is_inked in zip(gaps, inked, strict=True) if is_inked]
    lines: dict[tuple[int, int], Line | None] = {piece.place: piece.line for gap in marked for piece in gap}
    for left, right in marked:
        before = lines[left.place] or left.line
        start = "" if left.text[-1].isspace() or _OPENING.search(left.text) else " "
        end = "" if right.text[0].isspace() or _CLOSING.match(right.text) else " "
        spans = [*before["spans"], _sign(f"{start}{FORMULA}{end}", left.spans[-1], left), *right.line["spans"]]
        # Of three pieces with two gaps, the second has moved into the first.
        lines[left.place], lines[right.place] = None, {**right.line, "spans": spans, "bbox": around(spans)}
    return [
        {
            **block,
            "lines": [
                new
                for index, line in enumerate(block.get("lines", ()))
                if (new := lines.get((number, index), line)) is not None
            ],
        }
        for number, block in enumerate(blocks)
    ]


def _may_have_gap(lines: Iterable[Line]) -> bool:
    """Whether a line of a block begins at the height of the one before it, where that ends or to the right of that."""
    end, foot = math.inf, 0.0
    for line in lines:
        x0, top, x1, bottom = line["bbox"]
        if top < foot and x0 > end - (bottom - top) and _has_text(line):
            return True
        if x1 - x0 > bottom - top or _has_text(line):
            end, foot = x1, bottom
    return False


def _is_gap(left: _Piece, right: _Piece) -> bool:
    """Whether something as large as a formula is missing between two pieces of prose."""
    gap = (right.x0 - left.x1) / left.size
    return (
        _LINE_GAP < gap < _MOST_GAP
        and abs(left.base - right.base) <= _SAME_BASE * left.size
        and abs(left.size - right.size) <= 0.1 * left.size
        and _PROSE.search(left.text + " " + right.text) is not None
        and (left.text.rstrip()[-1].isalpha() or right.text.lstrip()[0].islower())
    )


def _is_in_paragraph(left: _Piece, right: _Piece, blocks: Sequence[Block]) -> bool:
    """Whether a line above or below has text where the gap is: between columns or cells there is none."""
    lines = blocks[left.place[0]]["lines"]
    near = [lines[index] for index in (left.place[1] - 1, right.place[1] + 1) if 0 <= index < len(lines)]
    return bool(near) and all(line["bbox"][0] < left.x1 and line["bbox"][2] > right.x0 for line in near)


def _is_filled(left: _Piece, right: _Piece, pieces: Iterable[_Piece]) -> bool:
    x0, top, x1, bottom = _gap_box(left, right)
    return any(p.x0 < x1 and p.x1 > x0 and top < p.base and p.base - 0.7 * p.size < bottom for p in pieces)


def _between(left: _Piece, right: _Piece) -> Rect:
    """All that is between two words. Brackets and commas that touch a formula are in it, and the space behind them."""
    _, top, _, bottom = _gap_box(left, right)
    opening, closing = _OPENING.search(left.text), _CLOSING.match(right.text)
    behind = _SPACE_WIDTH if right.text[0].isspace() else _width(closing)
    return left.x1 - _width(opening) * left.size, top, right.x0 + behind * left.size, bottom


def _width(signs: re.Match[str] | None) -> float:
    """About how wide signs are, and a part of the space beside them, in type sizes."""
    return 0.3 * len(signs.group()) + _SPACE if signs else 0.0


def _gap_box(left: _Piece, right: _Piece) -> Rect:
    space = _SPACE * left.size
    return left.x1 + space, left.base - 0.7 * left.size, right.x0 - space, left.base + 0.1 * left.size
