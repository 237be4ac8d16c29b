"""Which text of a page no reader can see. Pure: what stands where, and a picture of the page. No PDF library.

A PDF can carry text that a program reads and a person does not: the way to slip a model instructions into a paper. It
is told by how it is drawn (invisible, tiny) and by the picture of the page: where a line stands, there must be ink, and
letters in the colour of what lies around them leave none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Protocol

import numpy as np
import numpy.typing as npt

from folio.pdf.raster import (
    SAME_COLOUR,
    Colour,
    Picture,
    Rect,
    Span,
    box_of,
    contrast_of,
    frame_of,
    inner_of,
    not_inked,
    not_plain,
    pieces_of,
)


class View(Protocol):
    def __call__(self, scale: float, part: Rect | None = None, boxes: Sequence[Rect] = ()) -> Picture | None:
        """The page, or a part of it, drawn at so many pixels per point, or less where that is large.

        boxes: where they lie is all that is looked at; the rest need not be drawn. None where it cannot be drawn.
        """


# Nobody reads type below this: 2 pt is 0.7 mm, a quarter of a footnote. Figures that were shrunk to fit a page have
# labels of 2.7 pt, which can still be read on a screen.
_SMALLEST = 2.0
# In so many characters and more, less room for each than this share of the type's size is no spacing but a heap.
_SQUEEZED, _RUN = 0.1, 12
# Ink leaves at least this many levels between the darkest and the lightest pixel; thin grey type not many more.
_BLANK = 6
# Pixels per point at the first look and at the second.
_COARSE, _SHARP = 0.5, 2.0
# What is too small in a picture of the whole page is looked at in parts of the page of this many points.
_PART = 800.0
# The second look tells nothing of type that is fewer pixels high than this.
_LEGIBLE = 4
# A span's colour is that of its ground where so much of its box has it, and of the box's frame, which letters hardly
# touch.
_GROUND, _FRAME = 0.45, 0.7
# What crosses fewer of a box's rows or columns of pixels is a rule, and no outline of letters.
_RULE = 0.4
# A scanner's picture covers more of the page than this. Where none is found, since it is drawn in some other way, the
# letters over it are so many times as many as those drawn.
_SCAN, _NEXT_TO_NONE = 1 / 3, 10

_WORD = re.compile(r"[^\W\d_]{2,}")
_LATIN = re.compile(r"[A-Za-z0-9]")
_EXCERPT = 40


def hidden(
    spans: Sequence[Span], view: View, images: Callable[[], Sequence[Rect]], is_late: Callable[[], bool] = lambda: False
) -> dict[int, str]:
    """The places in spans of those that cannot be seen, each with why: "white on white", "invisible".

    Without a picture only what the spans say of themselves counts. images gives where pictures lie. It and view are
    asked when needed. What has not been looked at closely when is_late() turns true counts as seen.
    Invisible text over a scanner's picture is what the reader sees in it (OCR), and is left.
    """
    spans_with_text = [(place, span) for place, span in enumerate(spans) if any(map(str.isalnum, span.text))]
    if not spans_with_text:
        return {}
    found = {place: "too small to read" for place, span in spans_with_text if _is_tiny(span)}
    left = [(place, span) for place, span in spans_with_text if place not in found]
    unpainted = [place for place, span in left if _is_unpainted(span)]
    drawn = [(place, span) for place, span in left if not _is_unpainted(span)]
    picture = view(_COARSE, boxes=[span.rect for _, span in left])
    if picture:
        # Where even the first look is at less than its scale, type is too small in it to tell anything.
        is_small = picture.scale < _COARSE
        looked_at = drawn if is_small else not_plain(drawn, picture)
        doubtful = [place for place, _ in looked_at] if is_small else not_inked(looked_at, picture, is_late)
        if doubtful or unpainted:
            picture = view(_SHARP, boxes=[spans[place].rect for place in (*doubtful, *unpainted)]) or picture
        rects = np.array([span.rect for _, span in drawn])
        for part, places in _looks(spans, doubtful, picture, view):
            layers = cache(partial(_layers, rects, part))
            for place in places:
                if is_late():
                    break
                if reason := _unseen(spans[place], part, layers):
                    found[place] = reason
    if unpainted:
        seen = [span for place, span in drawn if place not in found]
        ocr = _ocr(spans, unpainted, seen, images(), picture)
        found.update((place, "invisible") for place in unpainted if place not in ocr)
    return dict(sorted(found.items()))


def summary(lines: Iterable[str], seen: str, reasons: Iterable[str]) -> str:
    """One line on what was left out of a page, "" where that is nothing worth a word. Without control characters.

    lines are those left out; seen is what remains: what also stands there, such as a letter's shadow, is not counted.
    """
    seen = _letters(seen)
    texts = [" ".join("".join(c if c.isprintable() else " " for c in line).split()) for line in lines]
    texts = [text for text in texts if _is_word(text) and _letters(text) not in seen]
    if not texts:
        return ""
    begins = texts[0] if len(texts[0]) <= _EXCERPT else texts[0][: _EXCERPT - 1].rstrip() + "…"
    more = f" and {len(texts) - 1} more" if len(texts) > 1 else ""
    return f'text that no reader can see was left out: "{begins}"{more} ({", ".join(dict.fromkeys(reasons))})'


def _is_word(text: str) -> bool:
    """Whether there is a word in a text: figures draw their dots with one letter of a font of dots."""
    return any(len(set(word.casefold())) > 1 for word in _WORD.findall(text))


def _letters(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


def _is_tiny(span: Span) -> bool:
    x0, y0, x1, y1 = span.rect
    long, short = max(x1 - x0, y1 - y0), min(x1 - x0, y1 - y0)
    count = len("".join(span.text.split()))
    # Both are asked: the size of some fonts is 1, and they are scaled up. A single letter's box may be a thin one.
    if span.size < _SMALLEST and (long if count == 1 else short) < 1.5 * _SMALLEST:
        return True
    return count >= _RUN and long < _SQUEEZED * span.size * count


def _is_unpainted(span: Span) -> bool:
    return not span.painted or span.opacity == 0


def _looks(
    spans: Sequence[Span], doubtful: Sequence[int], page: Picture, view: View
) -> Iterator[tuple[Picture, list[int]]]:
    """Pictures in which the doubtful spans are large enough to be judged, each with the places of those to look for."""
    large = [place for place in doubtful if _is_legible(spans[place], page)]
    if large:
        yield page, large
    parts: dict[tuple[int, int], list[int]] = {}
    if page.scale < _SHARP:
        for place in sorted(set(doubtful) - set(large)):
            x0, y0, _, _ = spans[place].rect
            parts.setdefault((int(x0 // _PART), int(y0 // _PART)), []).append(place)
    for places in parts.values():
        lefts, tops, rights, bottoms = zip(*(spans[place].rect for place in places), strict=True)
        if picture := view(_SHARP, (min(lefts), min(tops), max(rights), max(bottoms))):
            yield picture, [place for place in places if _is_legible(spans[place], picture)]


def _is_legible(span: Span, picture: Picture) -> bool:
    x0, y0, x1, y1 = span.rect
    return min(x1 - x0, y1 - y0) * picture.scale >= _LEGIBLE


def _alike(span: Span, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Which pixels cannot be told from the span's colour. What it lets through makes them differ less."""
    apart = np.abs(pixels.astype(np.int16) - span.colour).max(axis=-1)
    alike: npt.NDArray[np.bool_] = apart * (span.opacity / 255) < SAME_COLOUR
    return alike


def _unseen(span: Span, picture: Picture, layers: Callable[[], npt.NDArray[np.int32]]) -> str:
    """Why a span cannot be seen in the picture, "" where it can.

    layers gives how many texts' boxes lie on each pixel: the ink may be that of others.
    """
    blank = True
    for piece in pieces_of(span):
        place = inner_of(piece, picture)
        pixels = box_of(place, picture)
        blank = blank and contrast_of(pixels) < _BLANK
        if not span.plain:
            continue
        alike = _alike(span, pixels)
        if alike.mean() > _GROUND and _alike(span, frame_of(piece, picture)).mean() > _FRAME:
            # Ink here is that of a rule or of other text, or else outlines these letters.
            crossed = min((~alike).any(axis=0).mean(), (~alike).any(axis=1).mean())
            x0, y0, x1, y1 = place
            if crossed >= _RULE and layers()[y0:y1, x0:x1].mean() - 1 < 0.5:
                continue
            name = _name(span.colour)
            return f"{name} on {name}" if name and span.opacity > 127 else "in the colour of its ground"
    if not span.plain:
        return "not drawn" if blank else ""
    # Of fonts that a file does without, MuPDF has Latin letters and digits, but not all others.
    return "covered" if blank and _LATIN.search(span.text) else ""


def _ocr(
    spans: Sequence[Span], unpainted: Sequence[int], seen: Sequence[Span], images: Sequence[Rect], page: Picture | None
) -> set[int]:
    """Those of the unpainted spans that say in letters what the reader sees as a picture.

    They have ink under them that is not that of other text, and belong to a scan: they lie on a picture as large as
    one, or next to no text is drawn beside them.
    """
    letters = sum(len(spans[place].text) for place in unpainted)
    outnumber = letters > _NEXT_TO_NONE * sum(len(span.text) for span in seen)
    if page is None:
        return {place for place in unpainted if outnumber and any(_inside(spans[place].rect, rect) for rect in images)}
    imaged, written = (_layers(np.array(rects), page) > 0 for rects in (images, [span.rect for span in seen]))
    is_scan = imaged.mean() > _SCAN
    found = set()
    for place in unpainted:
        x0, y0, x1, y1 = inner_of(spans[place].rect, page)
        if written[y0:y1, x0:x1].mean() > 0.5 or contrast_of(box_of((x0, y0, x1, y1), page)) < _BLANK:
            continue
        if outnumber or (is_scan and imaged[y0:y1, x0:x1].mean() > 0.5):
            found.add(place)
    return found


def _inside(rect: Rect, image: Rect) -> bool:
    """Whether the middle of a box lies in a picture."""
    x, y = (rect[0] + rect[2]) / 2, (rect[1] + rect[3]) / 2
    return image[0] <= x <= image[2] and image[1] <= y <= image[3]


def _layers(rects: npt.NDArray[np.float64], picture: Picture) -> npt.NDArray[np.int32]:
    """How many of the boxes (count x 4) lie on each pixel."""
    height, width = picture.pixels.shape[:2]
    # Counted up at a box's beginning and down at its end; the sums of that are the layers.
    steps = np.zeros((height + 1, width + 1), np.int32)
    places = np.rint((rects.reshape(-1, 2, 2) - picture.corner) * picture.scale)
    (x0, y0), (x1, y1) = np.clip(places, 0, (width, height)).astype(int).transpose(1, 2, 0)
    for rows, columns, step in ((y0, x0, 1), (y1, x1, 1), (y0, x1, -1), (y1, x0, -1)):
        np.add.at(steps, (rows, columns), step)
    np.cumsum(steps, axis=0, out=steps)
    np.cumsum(steps, axis=1, out=steps)
    return steps[:-1, :-1]


def _name(colour: Colour) -> str:
    if min(colour) > 255 - SAME_COLOUR:
        return "white"
    return "black" if max(colour) < SAME_COLOUR else ""
