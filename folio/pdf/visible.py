"""The text of a PyMuPDF page that a reader can see, found with a limit on the work for each file.

A PDF can contain text that programs read and people do not, which can smuggle instructions for a model into a paper.
It is left out, and named. hidden_text.py finds it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

from folio.pdf.contrast import Colour, Span
from folio.pdf.drawing import SearchWork, draw, images
from folio.pdf.glyphs import raw_blocks, texts
from folio.pdf.hidden_text import find_hidden, summarise_hidden
from folio.pdf.mupdf import CLIPPED, FILLED, STROKED, line_text, lines, place_vertical, pymupdf, spans_of
from folio.pdf.shredded import in_words


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
    work.begin_page(time.process_time() - started)
    # One display list for all pictures of the page. Text extracted from a display list would lack some spaces.
    view, pictures = partial(draw, cache(page.get_displaylist), page.rect, work), partial(images, page)
    reasons = find_hidden([_span(span) for span in spans], view, pictures, work.take)
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
