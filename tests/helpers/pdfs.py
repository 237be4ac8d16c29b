"""PDFs that tests make for themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pymupdf

Spot = tuple[float, float, str]  # points from the left, points from the top to the baseline, text
LEADING = 12.0


def save(path: Path, pages: Iterable[Sequence[Spot]], size: float = 10, metadata: dict[str, str] | None = None) -> Path:
    """A PDF of pages with these lines, drawn in the order given."""
    document = pymupdf.open()
    for spots in pages:
        page = document.new_page()
        for x, y, text in spots:
            page.insert_text((x, y), text, fontsize=size)
    document.set_metadata(metadata or {})
    document.save(path)
    document.close()
    return path


def column(x: float, top: float, name: str, count: int) -> list[Spot]:
    """Lines of prose about 200 points wide, each with its number."""
    return [(x, top + LEADING * n, f"{name} line {n:02d} tells of the matter at some length") for n in range(count)]


def row_by_row(*columns: Sequence[Spot]) -> list[Spot]:
    """Columns as some programs draw them: a line of each in turn."""
    return [spot for row in zip(*columns, strict=True) for spot in row]


def image_page(document: Any, width: int = 200) -> Any:
    """A new page that is covered by a grey picture."""
    page = document.new_page()
    picture = pymupdf.Pixmap(pymupdf.csGRAY, pymupdf.IRect(0, 0, width, width))
    picture.clear_with(200)
    page.insert_image(page.rect, pixmap=picture)
    return page


def scan(document: Any, lines: Sequence[str], turned: int = 0) -> Any:
    """A new page that is a picture of these lines in large type, as a scanner makes it; turned by so many degrees."""
    typed = pymupdf.open()
    page = typed.new_page()
    for number, line in enumerate(lines):
        page.insert_text((60, 90 + 24 * number), line, fontsize=15)
    picture = page.get_pixmap(dpi=200, colorspace=pymupdf.csGRAY)
    typed.close()
    scanned = document.new_page()
    if turned:
        scanned.set_rotation(turned)
        scanned.insert_image(scanned.rect * scanned.derotation_matrix, pixmap=picture, rotate=turned)
    else:
        scanned.insert_image(scanned.rect, pixmap=picture)
    return scanned


def slow_page(path: Path, text: str, fills: int) -> Path:
    """A PDF of one page that is read at once, and takes about 50 ms to draw for each of its `fills`."""
    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((72, 90), text)
    blend = document.get_new_xref()
    document.update_object(blend, "<</Type/ExtGState/BM/Luminosity>>")
    resources = int(document.xref_get_key(page.xref, "Resources")[1].split()[0])
    document.xref_set_key(resources, "ExtGState", f"<</B {blend} 0 R>>")
    (contents,) = page.get_contents()
    drawn = document.xref_stream(contents) + b"\n/B gs 1 0 0 rg\n" + b"0 0 600 850 re f\n" * fills
    document.update_stream(contents, drawn)
    document.save(path)
    document.close()
    return path


def endless_page(path: Path) -> Path:
    """A PDF of one page that takes hours to read: a form draws another one ten times, and this the next one."""
    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((72, 90), "Endless.")
    inner = 0
    for _ in range(9):
        form = document.get_new_xref()
        drawn = f"/XObject<</X {inner} 0 R>>" if inner else ""
        document.update_object(form, f"<</Type/XObject/Subtype/Form/BBox[0 0 600 850]/Resources<<{drawn}>>>>")
        document.update_stream(form, b"/X Do\n" * 10 if inner else b"0 0 1 1 re f\n")
        inner = form
    resources = int(document.xref_get_key(page.xref, "Resources")[1].split()[0])
    document.xref_set_key(resources, "XObject", f"<</X {inner} 0 R>>")
    (contents,) = page.get_contents()
    document.update_stream(contents, document.xref_stream(contents) + b"\n/X Do\n")
    document.save(path)
    document.close()
    return path


class Set(NamedTuple):
    """A line of a made first page: `at` points from the top, centred unless x is given."""

    at: float
    text: str
    size: float = 10
    font: str = "tiro"  # one of MuPDF's built-in names: tiro, tibo, tiit, helv, hebo, cour, symb
    x: float | None = None


def front(path: Path, pages: Iterable[Sequence[Set]], metadata: dict[str, str] | None = None) -> Path:
    """A PDF of pages set like the first pages of papers. In a text, "^{1,2}" is a superscript."""
    document = pymupdf.open()
    for lines in pages:
        page = document.new_page()
        for line in lines:
            pieces = re.split(r"\^\{(.*?)\}", line.text)
            sizes = [line.size * (0.65 if number % 2 else 1) for number in range(len(pieces))]
            widths = [pymupdf.get_text_length(p, line.font, s) for p, s in zip(pieces, sizes, strict=True)]
            x = (page.rect.width - sum(widths)) / 2 if line.x is None else line.x
            for number, (piece, size, width) in enumerate(zip(pieces, sizes, widths, strict=True)):
                raised = 0.38 * line.size if number % 2 else 0
                if piece:
                    page.insert_text((x, line.at - raised), piece, fontsize=size, fontname=line.font)
                x += width
    document.set_metadata(metadata or {})
    document.save(path)
    document.close()
    return path


def body(top: float, columns: int = 1, size: float = 10, heading: str = "") -> list[Set]:
    """Prose down to the foot of the page, below a heading if one is given."""
    prose = "we show that the method holds up well when the load of the machine grows and shrinks again"
    places = [(72.0, 100)] if columns == 1 else [(60.0, 48), (315.0, 48)]
    lines = [Set(top, heading, size + 1, "tibo", 72.0 if columns == 1 else 60.0)] if heading else []
    first = top + (16 if heading else 0)
    for x, characters in places:
        count = int((760 - first) / (1.2 * size))
        lines += [Set(first + 1.2 * size * n, prose[:characters], size, "tiro", x) for n in range(count)]
    return lines


def encoded_page(document: Any, lines: Sequence[str], off: int) -> Any:
    """A new page whose font maps each letter to the one so many codes on, as broken producers do; 0: the right one."""
    page = document.new_page()
    page.insert_font("helv")
    font = document.get_new_xref()  # MuPDF shares one font between all pages
    document.update_object(font, document.xref_object(page.get_fonts()[0][0]))
    codes = list(range(33, 127))
    mapped = "\n".join(f"<{code:02x}> <{(code - 33 + off) % 94 + 33:04x}>" for code in codes)
    stream = document.get_new_xref()
    document.update_object(stream, "<<>>")
    cmap = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Off def /CMapType 2 def\n"
        "1 begincodespacerange <00> <ff> endcodespacerange\n"
        f"1 beginbfchar <20> <0020> endbfchar\n{len(codes)} beginbfchar\n{mapped}\nendbfchar\nendcmap end end"
    )
    document.update_stream(stream, cmap.encode())
    document.xref_set_key(font, "ToUnicode", f"{stream} 0 R")
    for number, line in enumerate(lines):
        page.insert_text((60, 90 + 14 * number), line, fontsize=10, fontname="helv")
    resources = int(document.xref_get_key(page.xref, "Resources")[1].split()[0])
    document.xref_set_key(resources, "Font/helv", f"{font} 0 R")
    return page
