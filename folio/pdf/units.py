"""Loads pages at an ordinary size: a PDF may be written in inches, or at a sixth or eight times the size of its paper.

A viewer shows every page as large as its window, so such a file looks like any other. But sizes in points decide what
is too small to read, what is a heading, and where columns part.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

# The longer side of a page, in points. Smaller pages, less than A6, become as large as A4; larger ones as large as A2.
_SMALLEST, _LARGEST, _A4 = 340.0, 1700.0, 842.0


def scale_of(page: Any) -> float:
    """The factor by which load_page scales a page that was loaded without it."""
    left, top, right, bottom = page.rect
    side = max(right - left, bottom - top)
    if _SMALLEST <= side <= _LARGEST or not side > 0:
        return 1.0
    return float((_A4 if side < _SMALLEST else _LARGEST) / side)


def load_page(document: Any, index: int) -> Any:
    """Page `index` (from 0) of a PyMuPDF document, scaled if its size is out of the ordinary."""
    page = document.load_page(index)
    if (scale := scale_of(page)) == 1.0:
        return page
    with suppress(Exception):  # a damaged page keeps its size
        _, stated = document.xref_get_key(page.xref, "UserUnit")
        unit = float(stated) if stated != "null" else 1.0
        document.xref_set_key(page.xref, "UserUnit", f"{unit * scale:.6f}")
        return document.reload_page(page)
    return document.load_page(index)
