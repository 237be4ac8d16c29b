"""The text of a PyMuPDF page that a reader can see, found with a limit on the work for each file.

A PDF can contain text that programs read and people do not, which can smuggle instructions for a model into a paper.
Hidden text is recognised by its style (invisible, tiny) and by comparing it with a picture of the page: where there is
text there must be ink, and letters in the colour of their background leave none. A first check looks at all text of a
page at once, in NumPy arrays, because it must be fast; a second one looks closely at the doubtful rest.
"""

from __future__ import annotations

import math
import mmap
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from folio.pdf.glyphs import raw_blocks, texts
from folio.pdf.mupdf import CLIPPED, FILLED, STROKED, line_text, lines, place_vertical, pymupdf, spans_of
from folio.pdf.shredded import in_words
from folio.system.workers import drawing_limit, run_apart
from folio.text import one_line, shorten

Colour = tuple[int, int, int]  # red, green, blue, each 0 to 255
Rect = tuple[float, float, float, float]  # left, top, right, bottom, in points from the page's upper left corner
Pixels = npt.NDArray[np.uint8]  # height x width x 3: red, green, blue
PixelRect = tuple[int, int, int, int]  # left, top, right, bottom in pixels, the last two exclusive
Boxes = npt.NDArray[np.int64]  # many PixelRects: 4 x count

# The most pixels to draw of one page; each takes three bytes.
_MAX_PIXELS = 4_000_000
# The most pixels to draw and compare in one file: 190 scanned A4 pages, or 3,000 printed ones. It takes 20 to 50 s.
_FILE_PIXELS = 400_000_000
# The most seconds of processor time to draw one file, far more than an ordinary file takes
_DRAW_CPU_S = 75.0
# The most for one picture that is drawn apart (SearchWork)
_PICTURE_CPU_S = 15.0
# MuPDF cannot be interrupted while it draws. A page whose text takes _BUSY_S to extract has thousands of objects and is
# drawn in strips: the first is this share of the page, each further one as high as all before it, while time is left.
# The same holds if the coarse picture of a page takes half of _SLOW_S.
_BUSY_S, _SLOW_S, _FIRST_STRIP = 0.05, 1.0, 1 / 64


class SearchWork:
    """The work of searching the pages of a file for hidden text, counted in pixels.

    A count stops at the same place on every computer, however busy it is. Only drawings that are slow on purpose also
    reach the limit on processor time. A single one that takes longer ends the worker (drawing_limit); the file is then
    read again with each picture drawn apart, in a process of its own, so that it costs its own page's check alone.
    """

    def __init__(self, *, apart: bool = False) -> None:
        """apart: draw each picture in a process of its own."""
        self.apart = apart

    pixels = 0  # drawn and compared
    cpu_s = 0.0  # spent on drawing
    is_busy = False  # the current page is drawn in strips
    checked = True  # whether the current page was checked completely

    def begin_page(self, is_busy: bool) -> None:
        self.is_busy, self.checked = is_busy, True

    def take(self, pixels: int) -> bool:
        """Whether this many pixels may be drawn or compared; if so, they are counted."""
        if self.pixels + pixels > _FILE_PIXELS:
            self.pixels = _FILE_PIXELS
            self.checked = False
            return False
        self.pixels += pixels
        return True

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Counts the processor time of what is drawn inside."""
        started = time.process_time()
        try:
            with drawing_limit(_DRAW_CPU_S - self.cpu_s):
                yield
        finally:
            self.cpu_s += time.process_time() - started

    def is_too_slow(self, cpu_s: float) -> bool:
        """Whether a drawing that needs this much processor time must be left out."""
        if self.cpu_s + cpu_s > _DRAW_CPU_S:
            self.checked = False
        return self.cpu_s + cpu_s > _DRAW_CPU_S


def images(page: Any) -> list[Rect]:
    """The boxes of the pictures on a page, clipped to it. Without TEXT_CLIP, MuPDF drops those that cross its edge."""
    flags = pymupdf().TEXT_PRESERVE_IMAGES | pymupdf().TEXT_CLIP
    return [tuple(block[:4]) for block in page.get_textpage(flags=flags).extractBLOCKS() if block[6] == 1]


class VisibleText(NamedTuple):
    """The text of a page that a reader can see."""

    blocks: list[dict[str, Any]]  # from MuPDF, without hidden spans
    hidden: frozenset[int] = frozenset()  # the indexes of the hidden spans among all spans of the page
    problem: str = ""  # a message about the hidden text
    checked: bool = True  # False: it takes too much work to draw, so some hidden text may be left
    # The letters of each span, if the spans are not those that MuPDF finds on the page
    letters: Sequence[Sequence[Mapping[str, Any]]] | None = None


def visible_text(page: Any, work: SearchWork) -> VisibleText:
    """The text of a page without text that no reader can see."""
    started = time.process_time()
    blocks = page.get_textpage(flags=pymupdf().TEXTFLAGS_TEXT).extractDICT()["blocks"]
    rebuilt = in_words(blocks, partial(raw_blocks, page))
    blocks = rebuilt or blocks
    place_vertical(blocks)
    spans = list(spans_of(blocks))
    work.begin_page(time.process_time() - started > _BUSY_S)
    # One display list for all pictures of the page. Text extracted from a display list would lack some spaces.
    draw, pictures = partial(_draw, cache(page.get_displaylist), page.rect, work), partial(images, page)
    reasons = find_hidden([_span(span) for span in spans], draw, pictures, work.take)
    for span, text in zip(spans, texts(page, spans) if rebuilt is None else (), strict=rebuilt is None):
        span["text"] = text
    letters = [span.pop("chars") for n, span in enumerate(spans) if n not in reasons] if rebuilt else None
    if not reasons:
        return VisibleText(blocks, checked=work.checked, letters=letters)
    hidden = {id(spans[index]) for index in reasons}
    left_out = ["".join(s["text"] for s in line["spans"] if id(s) in hidden) for line in lines(blocks)]
    for line in lines(blocks):
        line["spans"] = [span for span in line["spans"] if id(span) not in hidden]
    problem = summarise_hidden(left_out, "".join(line_text(line) for line in lines(blocks)), reasons.values())
    return VisibleText(blocks, frozenset(reasons), problem, work.checked, letters)


def have_ink(page: Any, work: SearchWork, boxes: Sequence[Rect]) -> list[bool]:
    """Whether something more than a rule is drawn apart in each of these boxes; False if that takes too long.

    Ink that goes on at the left or the right of a box, without a gap as between words, is of what stands there.
    """
    picture = _draw(cache(page.get_displaylist), page.rect, work, _SHARP, boxes=boxes)
    if picture is None:
        return [False] * len(boxes)
    found = []
    for box in boxes:
        pixels = crop(tuple(_outer_boxes(np.array([box]), picture)[:, 0].tolist()), picture).max(axis=2).astype(int)
        is_dark = pixels < int(pixels.max()) - _MIN_IMAGE_CONTRAST
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


def _span(span: Mapping[str, Any]) -> Span:
    return Span(span["bbox"], span["text"], span["size"], *_paint_of(span["char_flags"], span["color"], span["alpha"]))


@lru_cache(maxsize=256)  # a page has few kinds of paint
def _paint_of(flags: int, colour: int, alpha: int) -> tuple[Colour, int, bool, bool]:
    """The last four fields of a Span from MuPDF's numbers."""
    clipped, stroked = bool(flags & CLIPPED), bool(flags & STROKED)
    return (
        (colour >> 16 & 255, colour >> 8 & 255, colour & 255),
        255 if clipped else alpha,  # MuPDF reports 0 for letters used as a clip path
        clipped or stroked or bool(flags & FILLED),
        not (clipped or stroked),
    )


def draw_page(page: Any, work: SearchWork, scale: float) -> Picture | None:
    """The whole page at `scale` pixels per point; None if that fails or takes too much work."""
    display_list, rect, spent = cache(page.get_displaylist), page.rect, work.cpu_s
    strip = (rect.x0, rect.y0, rect.x1, rect.y0 + _FIRST_STRIP * rect.height)
    if not work.is_busy and _draw(display_list, rect, work, scale, strip) is None:
        return None
    work.is_busy = work.is_busy or work.cpu_s - spent > _SLOW_S / 4
    return _draw(display_list, rect, work, scale)


def _draw(
    display_list: Callable[[], Any], page_rect: Any, work: SearchWork, scale: float, part: Rect | None = None,
    boxes: Sequence[Rect] = (),
) -> Picture | None:  # fmt: skip
    """Draw a page or a part of it; None if that fails or takes too much work. See View."""
    mupdf = pymupdf()
    try:
        area = mupdf.Rect(part or page_rect) & page_rect
        scale = min(scale, (_MAX_PIXELS / abs(area)) ** 0.5)
        picture_area = (area * mupdf.Matrix(scale, scale)).round()
        parts = [mupdf.IRect(band) for band in bands(boxes, scale, tuple(picture_area))] if boxes else [picture_area]
        if not work.take(sum(strip.width * strip.height for strip in parts)):
            return None
        corner = picture_area.x0 / scale, picture_area.y0 / scale
        if work.apart:
            drawn = _draw_apart(display_list, work, picture_area, scale, parts)
            return None if drawn is None else Picture(drawn, scale, corner)
        pixels = np.full((picture_area.height, picture_area.width, 3), 255, np.uint8)
        cpu_s = last = work.cpu_s
        if boxes and not work.is_busy:
            for strip in parts:
                if work.is_too_slow(work.cpu_s - last):
                    return None
                last = work.cpu_s
                with work.drawing():
                    _paint(pixels, picture_area, display_list(), scale, strip)
            needed = 2 * (work.cpu_s - cpu_s)
        else:
            needed, top = 0.0, picture_area.y0
            rows = max(1, int(picture_area.height * _FIRST_STRIP)) if work.is_busy else picture_area.height
            while top < picture_area.y1:
                if work.is_too_slow(needed):
                    return None
                cpu_s = work.cpu_s
                strip = mupdf.IRect(picture_area.x0, top, picture_area.x1, min(top + rows, picture_area.y1))
                with work.drawing():
                    _paint(pixels, picture_area, display_list(), scale, strip)
                top, rows = strip.y1, strip.y1 - picture_area.y0
                needed = 2 * (work.cpu_s - cpu_s)
        work.is_busy = work.is_busy or needed > _SLOW_S  # for the next picture, which is sharper
        return Picture(pixels, scale, corner)
    except Exception:  # including MemoryError: the text was read and must not be lost because of a picture
        work.checked = False
        return None


def _draw_apart(
    display_list: Callable[[], Any], work: SearchWork, picture_area: Any, scale: float, parts: Sequence[Any]
) -> Pixels | None:
    """The pixels of a picture, drawn in a process of its own; None if that, or another of its page, takes too long."""
    seconds = min(_PICTURE_CPU_S, _DRAW_CPU_S - work.cpu_s)
    if not work.checked or seconds <= 0:
        work.checked = False
        return None
    shape = picture_area.height, picture_area.width, 3
    pixels = np.frombuffer(mmap.mmap(-1, max(1, math.prod(shape))), np.uint8, math.prod(shape)).reshape(shape)
    pixels[:] = 255

    def paint() -> None:
        for strip in parts:
            _paint(pixels, picture_area, display_list(), scale, strip)

    work.checked, spent = run_apart(paint, seconds)
    work.cpu_s += spent
    return pixels if work.checked else None


def _paint(pixels: Any, picture_area: Any, display_list: Any, scale: float, strip: Any) -> None:
    """Draw one strip of the page into the pixels of the whole picture."""
    mupdf = pymupdf()
    matrix, clip = mupdf.Matrix(scale, scale), mupdf.Rect(*[edge / scale for edge in strip])
    pixmap = display_list.get_pixmap(matrix=matrix, colorspace=mupdf.csRGB, alpha=0, clip=clip)
    rows = np.frombuffer(pixmap.samples_mv, np.uint8).reshape(pixmap.height, pixmap.stride)
    left, top = pixmap.x - picture_area.x0, pixmap.y - picture_area.y0
    target = pixels[top : top + pixmap.height, left : left + pixmap.width]
    target[:] = rows[:, : 3 * pixmap.width].reshape(pixmap.height, pixmap.width, 3)


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


class Span(NamedTuple):
    """Text drawn in one style."""

    rect: Rect
    text: str
    size: float  # points
    colour: Colour
    opacity: int  # 0 to 255
    painted: bool  # False: drawn in a mode that leaves no ink
    solid: bool = True  # False: outlined or filled with a pattern, so its colour is not what a reader sees


class Picture(NamedTuple):
    """A page, or a part of it, as a reader sees it."""

    pixels: Pixels
    scale: float  # pixels per point
    corner: tuple[float, float] = (0.0, 0.0)  # of the part: left and top on the page, in points


# Colours closer than this, of 255 levels, look the same: white on 94 % grey cannot be read.
SAME_COLOUR = 16
# A span is checked in pieces of this many times its type size, because a dark box may cover only part of it.
_PIECE = 10
# In the first check, text is visible if its pixels differ by this many levels, and their mean by this many from its
# colour.
_MIN_IMAGE_CONTRAST, _MIN_DISTANCE = 48, 140
# Text may have the colour of its background if this share of the (blurred) pixels around its box has that colour.
_MIN_FRAME_SHARE = 0.4
# Rows of text farther apart than this, in points, are drawn separately: there may be a picture between them.
_ROW_GAP = 12.0
# Pixels to draw around a box, because its coordinates are rounded.
_MARGIN = 2
# Pixels to process at once; each takes about ten bytes.
_BATCH = 1_000_000


def not_clearly_visible(spans: Sequence[tuple[int, Span]], picture: Picture) -> list[tuple[int, Span]]:
    """The spans that are not clearly visible, with their indexes.

    A span is clearly visible if one row of pixels through it has contrast and is far from the span's colour on average.
    Only the green channel is used. This check runs on every span, so it must be fast; it need not be complete.
    """
    if not spans:
        return []
    values = [(span.colour[1], _piece_count(span), span.solid and span.opacity > 127) for _, span in spans]
    green, count, is_opaque = np.array(values, np.int64).T
    x0, y0, x1, y1 = _inner_boxes(np.array([span.rect for _, span in spans]), picture)
    length = x1 - x0
    step = np.maximum(2, -(-length // count))
    parts = np.maximum(1, -(-(length - step // 2) // step))
    owner = np.repeat(np.arange(len(spans)), parts)
    first = _starts(parts)
    begin = (np.arange(len(owner)) - first[owner]) * step[owner]
    row = (y0 + y1) // 2 * picture.pixels.shape[1] + x0
    sizes = np.minimum(begin + step[owner], length[owner]) - begin
    levels = picture.pixels[:, :, 1].ravel()[_runs(row[owner] + begin, sizes)].astype(np.int64)
    begins = _starts(sizes)
    spread = np.maximum.reduceat(levels, begins) - np.minimum.reduceat(levels, begins)
    distance = np.abs(np.add.reduceat(levels, begins) / sizes - green[owner])
    is_clear = (spread > _MIN_IMAGE_CONTRAST) & (distance > _MIN_DISTANCE)
    visible = np.logical_and.reduceat(is_clear, first) & (is_opaque > 0) & (length > 1)
    return [entry for entry, is_visible in zip(spans, visible.tolist(), strict=True) if not is_visible]


def find_doubtful(spans: Sequence[tuple[int, Span]], picture: Picture, take: Callable[[int], bool]) -> list[int]:
    """The indexes of the spans with too little contrast, or on a background of their own colour: check these closely.

    take: called before a number of pixels is compared; the check stops early if it returns False.
    """
    parts = [(index, span, piece) for index, span in spans for piece in split_span(span)]
    doubtful: dict[int, None] = {}  # an ordered set
    if not parts:
        return []
    rects = np.array([piece for *_, piece in parts])
    inner, outer = _inner_boxes(rects, picture), _outer_boxes(rects, picture)
    areas = np.cumsum((inner[2] - inner[0]) * (inner[3] - inner[1]))
    begin = 0
    while begin < len(parts):
        # in batches, to limit memory
        before = int(areas[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(areas, before + _BATCH)))
        if not take(int(areas[end - 1]) - before):
            break
        batch = parts[begin:end]
        faint = _contrasts(inner[:, begin:end], picture) < _MIN_IMAGE_CONTRAST / 2
        alike = _frames_alike([span for _, span, _ in batch], outer[:, begin:end], picture) >= _MIN_FRAME_SHARE
        is_solid = np.array([span.solid for _, span, _ in batch])
        doubtful.update((batch[n][0], None) for n in np.flatnonzero(faint | (is_solid & alike)).tolist())
        begin = end
    return list(doubtful)


def _contrasts(boxes: Boxes, picture: Picture) -> npt.NDArray[np.int64]:
    """The largest difference between the pixels of each box, in red, green or blue levels."""
    x0, y0, x1, y1 = boxes
    rows = y1 - y0
    owner = np.repeat(np.arange(len(rows)), rows)
    line = np.arange(len(owner)) - _starts(rows)[owner] + y0[owner]
    width = picture.pixels.shape[1]
    pixels = picture.pixels.reshape(-1, 3)[_runs(line * width + x0[owner], (x1 - x0)[owner])]
    starts = _starts(rows * (x1 - x0))
    most, least = np.maximum.reduceat(pixels, starts), np.minimum.reduceat(pixels, starts)
    contrasts: npt.NDArray[np.int64] = (most.astype(np.int64) - least).max(axis=1)
    return contrasts


def _frames_alike(spans: Sequence[Span], boxes: Boxes, picture: Picture) -> npt.NDArray[np.float64]:
    """The share of pixels along the edges of each span's box that have the span's colour."""
    x0, y0, x1, y1 = boxes
    line = picture.pixels.shape[1]
    wide, high = x1 - x0, y1 - y0
    corner = y0 * line + x0
    begins = np.stack([corner, (y1 - 1) * line + x0, corner, corner + wide - 1], axis=1).ravel()
    sizes = np.stack([wide, wide, high, high], axis=1).ravel()
    strides = np.tile([1, 1, line, line], len(spans))
    pixels = picture.pixels.reshape(-1, 3)[_runs(begins, sizes, strides)].astype(np.int16)
    around = 2 * (wide + high)
    colours = np.array([(*span.colour, span.opacity) for span in spans], np.int16).repeat(around, axis=0)
    alike = np.abs(pixels - colours[:, :3]).max(axis=1) * (colours[:, 3] / 255) < SAME_COLOUR
    shares: npt.NDArray[np.float64] = np.add.reduceat(alike.astype(np.int64), _starts(around)) / around
    return shares


def _starts(sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The start of each run when runs of these sizes are concatenated."""
    return np.cumsum(sizes) - sizes


def _runs(
    begins: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], strides: npt.NDArray[np.int64] | int = 1
) -> npt.NDArray[np.int64]:
    """The numbers begin, begin + stride, ... of each run, concatenated."""
    inside = np.arange(int(sizes.sum())) - np.repeat(_starts(sizes), sizes)
    runs: npt.NDArray[np.int64] = np.repeat(begins, sizes) + inside * np.repeat(strides * np.ones_like(sizes), sizes)
    return runs


def _piece_count(span: Span) -> int:
    """How many pieces a span is checked in."""
    x0, y0, x1, y1 = span.rect
    width, height = x1 - x0, y1 - y0
    return max(1, round(max(width, height) / (_PIECE * max(span.size, min(width, height)))))


def split_span(span: Span) -> list[Rect]:
    """A span's box, split into equal pieces along its line."""
    x0, y0, x1, y1 = span.rect
    width, height = x1 - x0, y1 - y0
    count = _piece_count(span)
    if count < 2:
        return [span.rect]
    if width > height:
        return [(x0 + width * n / count, y0, x0 + width * (n + 1) / count, y1) for n in range(count)]
    return [(x0, y0 + height * n / count, x1, y0 + height * (n + 1) / count) for n in range(count)]


def bands(boxes: Iterable[Rect], scale: float, page: PixelRect) -> list[PixelRect]:
    """The parts of a page, in pixels, that contain all these boxes (in points), from top to bottom.

    Drawing only these skips pictures and figures without text, which take the longest.
    """
    bands_in_points: list[Rect] = []
    for x0, y0, x1, y1 in sorted(boxes, key=lambda box: box[1]):
        if bands_in_points and y0 < bands_in_points[-1][3] + _ROW_GAP:
            left, top, right, bottom = bands_in_points[-1]
            bands_in_points[-1] = min(left, x0), top, max(right, x1), max(bottom, y1)
        else:
            bands_in_points.append((x0, y0, x1, y1))
    parts = []
    for x0, y0, x1, y1 in bands_in_points:
        left = min(max(math.floor(x0 * scale) - _MARGIN, page[0]), page[2] - 1)
        top = min(max(math.floor(y0 * scale) - _MARGIN, page[1]), page[3] - 1)
        right, bottom = min(math.ceil(x1 * scale) + _MARGIN, page[2]), min(math.ceil(y1 * scale) + _MARGIN, page[3])
        parts.append((left, top, max(right, left + 1), max(bottom, top + 1)))
    return parts


def inner_pixels(rect: Rect, picture: Picture) -> PixelRect:
    """The pixels of a box without its edges, which neighbours and rules may touch. At least one pixel."""
    left, top, right, bottom = _inner_boxes(np.array([rect]), picture)[:, 0].tolist()
    return left, top, right, bottom


def _inner_boxes(rects: npt.NDArray[np.float64], picture: Picture) -> Boxes:
    """inner_pixels for many boxes (count x 4)."""
    x0, y0, x1, y1 = (rects - np.tile(picture.corner, 2)).T
    edge = 0.2 * np.minimum(x1 - x0, y1 - y0)
    height, width = picture.pixels.shape[:2]
    corners = np.stack([x0 + edge, y0 + edge, x1 - edge, y1 - edge]) * picture.scale
    left, top, right, bottom = corners.astype(np.int64)  # towards zero
    left, top = np.clip(left, 0, width - 1), np.clip(top, 0, height - 1)
    right, bottom = np.minimum(np.maximum(right, left) + 1, width), np.minimum(np.maximum(bottom, top) + 1, height)
    return np.stack([left, top, right, bottom])


def _outer_boxes(rects: npt.NDArray[np.float64], picture: Picture) -> Boxes:
    """The pixels of many boxes (count x 4), edges included."""
    height, width = picture.pixels.shape[:2]
    x0, y0, x1, y1 = np.rint((rects - np.tile(picture.corner, 2)).T * picture.scale).astype(np.int64)
    x0, y0 = np.clip(x0, 0, width - 1), np.clip(y0, 0, height - 1)
    return np.stack([x0, y0, np.maximum(np.minimum(x1, width), x0 + 1), np.maximum(np.minimum(y1, height), y0 + 1)])


def crop(rect: PixelRect, picture: Picture) -> Pixels:
    x0, y0, x1, y1 = rect
    return picture.pixels[y0:y1, x0:x1]


def frame_pixels(rect: Rect, picture: Picture) -> npt.NDArray[np.uint8]:
    """The colours of the pixels along the edges of a box: count x 3."""
    x0, y0, x1, y1 = _outer_boxes(np.array([rect]), picture)[:, 0].tolist()
    box = picture.pixels[y0:y1, x0:x1]
    return np.concatenate([box[0], box[-1], box[:, 0], box[:, -1]])


def contrast(pixels: Pixels) -> int:
    """The largest difference between the pixels, in red, green or blue levels."""
    colours = pixels.reshape(-1, 3)
    return int((colours.max(axis=0).astype(int) - colours.min(axis=0)).max())
