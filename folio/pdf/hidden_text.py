"""Text of a page that no reader can see: by its style, and by comparing it with a picture of the page.

Where there is text there must be ink, and letters in the colour of their background leave none. A first check looks at
all text of a page at once (contrast.py), because it must be fast; a second one looks closely at the doubtful rest.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from folio.pdf.contrast import (
    MIN_IMAGE_CONTRAST,
    SAME_COLOUR,
    Colour,
    Picture,
    Rect,
    Span,
    contrast,
    crop,
    find_doubtful,
    frame_pixels,
    inner_pixels,
    not_clearly_visible,
    outer_boxes,
    split_span,
)
from folio.pdf.drawing import SearchWork, draw
from folio.text import one_line, shorten


class View(Protocol):
    def __call__(self, scale: float, part: Rect | None = None, boxes: Sequence[Rect] = ()) -> Picture | None:
        """The page, or a part of it, drawn at `scale` pixels per point, or fewer if that is too large.

        boxes: only these need to be drawn. Returns None if drawing fails.
        """


# Smaller type, in points, cannot be read: 2.5 pt is 0.9 mm, a third of a footnote. Figures that were shrunk to fit a
# page have labels of 2.6 pt, which are still legible on a screen; 173 real files have no words between that and 2 pt.
_MIN_SIZE = 2.5
# In runs of this many characters, glyphs packed more tightly than this share of the type size are piled up, not spaced.
_MIN_ADVANCE, _MIN_RUN = 0.1, 12
# Ink makes at least this many levels between the darkest and the lightest pixel; thin grey type makes few more.
_MIN_CONTRAST = 6
# Pixels per point in the first and the second check.
_COARSE, _SHARP = 0.5, 2.0
# Text too small in a picture of the whole page is checked in parts of the page of this many points.
_PART = 800.0
# Type that is fewer pixels high than this cannot be judged in the second check.
_MIN_HEIGHT = 4
# A span has the colour of its background if this share of its box has it, and this share of the box's frame, which
# letters hardly touch.
_BACKGROUND, _FRAME = 0.45, 0.7
# Ink in a smaller share of a box's rows or columns is a rule and not the outline of letters.
_RULE = 0.4
# Columns without ink, as a share of the height of capitals and a little more, that separate words and not letters
_APART = 0.15
# A scan's image covers more of the page than this. If no image is found, because the scan is drawn in another way,
# there are this many times as many invisible letters as visible ones.
_MIN_SCAN, _MIN_RATIO = 1 / 3, 10

_WORD = re.compile(r"[^\W\d_]{2,}")
_LATIN = re.compile(r"[A-Za-z0-9]")
_EXCERPT = 40
# The fixed cost of comparing a span, in pixels that take as long
_SPAN_PIXELS = 1000


def find_hidden(
    spans: Sequence[Span],
    view: View,
    images: Callable[[], Sequence[Rect]],
    take: Callable[[int], bool] = lambda pixels: True,
) -> dict[int, str]:
    """The indexes of the spans that a reader cannot see, each with the reason: "white on white", "invisible".

    images: returns the boxes of the page's pictures. take: called before a number of pixels is compared; if it returns
    False, unchecked text counts as visible. If the page cannot be drawn, only the style of the spans is checked.
    Invisible text over a scan is its OCR layer, which repeats what the reader sees, so it is not hidden.
    """
    with_text = [(index, span) for index, span in enumerate(spans) if any(map(str.isalnum, span.text))]
    if not with_text:
        return {}
    reasons = {index: "too small to read" for index, span in with_text if _is_tiny(span)}
    legible = [(index, span) for index, span in with_text if index not in reasons]
    unpainted = [index for index, span in legible if _is_unpainted(span)]
    painted = [(index, span) for index, span in legible if not _is_unpainted(span)]
    picture, sharp = view(_COARSE, boxes=[span.rect for _, span in legible]), None
    if picture:
        # Below the coarse scale, type is too small to judge.
        if picture.scale < _COARSE:
            doubtful = [index for index, _ in painted]
        else:
            doubtful = find_doubtful(not_clearly_visible(painted, picture), picture, take)
        if doubtful or unpainted:
            sharp = view(_SHARP, boxes=[spans[index].rect for index in (*doubtful, *unpainted)])
            picture = sharp or picture
        rects = np.array([span.rect for _, span in painted])
        for part, indexes in _sharp_views(spans, doubtful, picture, view):
            layers = cache(partial(_layers, rects, part))
            for index in indexes:
                if not take(_cost(spans[index], part)):
                    break
                if reason := _why_unseen(spans[index], part, layers):
                    reasons[index] = reason
    if unpainted:
        visible = [span for index, span in painted if index not in reasons]
        ocr = _ocr_layer(spans, unpainted, visible, images(), sharp, take)
        reasons.update((index, "invisible") for index in unpainted if index not in ocr)
    return dict(sorted(reasons.items()))


def summarise_hidden(lines: Iterable[str], visible: str, reasons: Iterable[str]) -> str:
    """One line, without control characters, about the text left out of a page; "" if it is not worth mentioning.

    lines: the text left out. visible: the remaining text; a line that also occurs in it, as a shadow does, is ignored.
    """
    visible = _letters(visible)
    texts = [one_line("".join(c if c.isprintable() else " " for c in line)) for line in lines]
    texts = [text for text in texts if _is_word(text) and _letters(text) not in visible]
    if not texts:
        return ""
    excerpt = shorten(texts[0], _EXCERPT)
    others = f" and {len(texts) - 1} more" if len(texts) > 1 else ""
    return f'hidden text was left out: "{excerpt}"{others} ({", ".join(dict.fromkeys(reasons))})'


def _is_word(text: str) -> bool:
    """Whether a text contains a word. Figures repeat one letter of a symbol font to draw dots."""
    return any(len(set(word.casefold())) > 1 for word in _WORD.findall(text))


def _letters(text: str) -> str:
    # Not text.fold, which drops accents and ligatures: the notes that are stored would change.
    return "".join(character for character in text.casefold() if character.isalnum())


def _is_tiny(span: Span) -> bool:
    x0, y0, x1, y1 = span.rect
    long, short = max(x1 - x0, y1 - y0), min(x1 - x0, y1 - y0)
    if span.size >= _MIN_SIZE and long >= _MIN_ADVANCE * span.size * len(span.text):
        return False
    count = len("".join(span.text.split()))
    # Check both: some fonts have size 1 and are scaled up, and the box of a single letter may be thin.
    if span.size < _MIN_SIZE and (long if count == 1 else short) < 1.5 * _MIN_SIZE:
        return True
    return count >= _MIN_RUN and long < _MIN_ADVANCE * span.size * count


def _is_unpainted(span: Span) -> bool:
    return not span.painted or span.opacity == 0


def _sharp_views(
    spans: Sequence[Span], doubtful: Sequence[int], page: Picture, view: View
) -> Iterator[tuple[Picture, list[int]]]:
    """Pictures in which doubtful spans are large enough to judge, each with the indexes of those spans."""
    large = [index for index in doubtful if _is_legible(spans[index], page)]
    if large:
        yield page, large
    parts: dict[tuple[int, int], list[int]] = {}
    if page.scale < _SHARP:
        for index in sorted(set(doubtful) - set(large)):
            x0, y0, _, _ = spans[index].rect
            parts.setdefault((int(x0 // _PART), int(y0 // _PART)), []).append(index)
    for indexes in parts.values():
        lefts, tops, rights, bottoms = zip(*(spans[index].rect for index in indexes), strict=True)
        if picture := view(_SHARP, (min(lefts), min(tops), max(rights), max(bottoms))):
            yield picture, [index for index in indexes if _is_legible(spans[index], picture)]


def _is_legible(span: Span, picture: Picture) -> bool:
    x0, y0, x1, y1 = span.rect
    return min(x1 - x0, y1 - y0) * picture.scale >= _MIN_HEIGHT


def _has_colour(span: Span, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Which pixels have the span's colour. Transparency makes differences smaller."""
    difference = np.abs(pixels.astype(np.int16) - span.colour).max(axis=-1)
    has_colour: npt.NDArray[np.bool_] = difference * (span.opacity / 255) < SAME_COLOUR
    return has_colour


def _why_unseen(span: Span, picture: Picture, layers: Callable[[], npt.NDArray[np.int32]]) -> str:
    """Why a span cannot be seen in the picture; "" if it can.

    layers: returns the number of text boxes on each pixel, because the ink may belong to other text.
    """
    blank = True
    for piece in split_span(span):
        inner = inner_pixels(piece, picture)
        pixels = crop(inner, picture)
        blank = blank and contrast(pixels) < _MIN_CONTRAST
        if not span.solid:
            continue
        has_colour = _has_colour(span, pixels)
        if has_colour.mean() > _BACKGROUND and _has_colour(span, frame_pixels(piece, picture)).mean() > _FRAME:
            # Any ink here belongs to a rule or other text, or outlines these letters.
            crossed = min((~has_colour).any(axis=0).mean(), (~has_colour).any(axis=1).mean())
            x0, y0, x1, y1 = inner
            if crossed >= _RULE and layers()[y0:y1, x0:x1].mean() - 1 < 0.5:
                continue
            name = _colour_name(span.colour)
            return f"{name} on {name}" if name and span.opacity > 127 else "in the colour of its background"
    if not span.solid:
        return "not drawn" if blank else ""
    # For fonts that are not embedded, MuPDF can draw Latin letters and digits, but not all others.
    return "covered" if blank and _LATIN.search(span.text) else ""


def _cost(span: Span, picture: Picture) -> int:
    """The work of comparing a span with a picture, in pixels."""
    x0, y0, x1, y1 = span.rect
    height, width = picture.pixels.shape[:2]
    wide, high = (x1 - x0) * picture.scale, (y1 - y0) * picture.scale
    return _SPAN_PIXELS + int(min(max(0.0, wide), width) * min(max(0.0, high), height))


def _ocr_layer(
    spans: Sequence[Span],
    unpainted: Sequence[int],
    visible: Sequence[Span],
    images: Sequence[Rect],
    page: Picture | None,
    take: Callable[[int], bool],
) -> set[int]:
    """The indexes of the unpainted spans that are the text layer of a scan.

    There is ink under them that belongs to no other text, and either they lie on an image as large as a scan or the
    page has hardly any visible text. Where pixels were not drawn or compared, ink is assumed.
    """
    letters = sum(len(spans[index].text) for index in unpainted)
    outnumber = letters > _MIN_RATIO * sum(len(span.text) for span in visible)
    layer = set()
    unchecked = deque(unpainted)
    if page is not None:
        on_image, on_text = (_layers(np.array(rects), page) > 0 for rects in (images, [span.rect for span in visible]))
        is_scan = on_image.mean() > _MIN_SCAN
        while unchecked and take(_cost(spans[unchecked[0]], page)):
            index = unchecked.popleft()
            x0, y0, x1, y1 = inner_pixels(spans[index].rect, page)
            if on_text[y0:y1, x0:x1].mean() > 0.5 or contrast(crop((x0, y0, x1, y1), page)) < _MIN_CONTRAST:
                continue
            if outnumber or (is_scan and on_image[y0:y1, x0:x1].mean() > 0.5):
                layer.add(index)
    if outnumber or _covers_page(images, [spans[index].rect for index in unpainted]):
        layer.update(index for index in unchecked if any(_is_inside(spans[index].rect, image) for image in images))
    return layer


def _covers_page(images: Sequence[Rect], texts: Sequence[Rect]) -> bool:
    """Whether one of the images is as large as a scan, on a page that reaches as far as its images and these texts."""
    if not images:
        return False
    lefts, tops, rights, bottoms = zip(*images, *texts, strict=True)
    area = (max(rights) - min(lefts)) * (max(bottoms) - min(tops))
    return bool(max((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in images) > _MIN_SCAN * area)


def _is_inside(rect: Rect, image: Rect) -> bool:
    """Whether the centre of a box lies in an image."""
    x, y = (rect[0] + rect[2]) / 2, (rect[1] + rect[3]) / 2
    return image[0] <= x <= image[2] and image[1] <= y <= image[3]


def _layers(rects: npt.NDArray[np.float64], picture: Picture) -> npt.NDArray[np.int32]:
    """How many of the boxes (count x 4) cover each pixel."""
    height, width = picture.pixels.shape[:2]
    # +1 at the start of each box and -1 at its end; cumulative sums give the layers.
    steps = np.zeros((height + 1, width + 1), np.int32)
    corners = np.rint((rects.reshape(-1, 2, 2) - picture.corner) * picture.scale)
    (x0, y0), (x1, y1) = np.clip(corners, 0, (width, height)).astype(int).transpose(1, 2, 0)
    for rows, columns, step in ((y0, x0, 1), (y1, x1, 1), (y0, x1, -1), (y1, x0, -1)):
        np.add.at(steps, (rows, columns), step)
    np.cumsum(steps, axis=0, out=steps)
    np.cumsum(steps, axis=1, out=steps)
    return steps[:-1, :-1]


def _colour_name(colour: Colour) -> str:
    if min(colour) > 255 - SAME_COLOUR:
        return "white"
    return "black" if max(colour) < SAME_COLOUR else ""


def have_ink(page: Any, work: SearchWork, boxes: Sequence[Rect]) -> list[bool]:
    """Whether something more than a rule is drawn apart in each of these boxes; False if that takes too long.

    Ink that goes on at the left or the right of a box, without a gap as between words, is of what stands there.
    """
    picture = draw(cache(page.get_displaylist), page.rect, work, _SHARP, boxes=boxes)
    if picture is None:
        return [False] * len(boxes)
    found = []
    for box in boxes:
        pixels = crop(tuple(outer_boxes(np.array([box]), picture)[:, 0].tolist()), picture).max(axis=2).astype(int)
        is_dark = pixels < int(pixels.max()) - MIN_IMAGE_CONTRAST
        gap = max(2, round(_APART * len(is_dark)))
        inked = _apart(is_dark.any(axis=0), gap)
        width = max(len(inked) - 2 * gap, 1)  # without the spaces beside what is drawn
        found.append(bool(min(inked.sum() / width, is_dark[:, inked].any(axis=1).mean()) > _RULE))
    return found


def _apart(inked: npt.NDArray[np.bool_], gap: int) -> npt.NDArray[np.bool_]:
    """Which columns of pixels have ink, without what reaches the first or the last ones. gap: between two words."""
    columns = np.flatnonzero(inked)
    apart = np.zeros_like(inked)
    for word in np.split(columns, np.flatnonzero(np.diff(columns) > gap) + 1):
        if len(word) and word[0] >= gap and word[-1] < len(inked) - gap:
            apart[word[0] : word[-1] + 1] = inked[word[0] : word[-1] + 1]
    return apart
