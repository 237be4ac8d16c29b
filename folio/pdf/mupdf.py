"""Loads PyMuPDF, quietly and without its layout models. The only module that imports it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cache
from typing import Any

from folio.pdf import limits

# MuPDF's flags of a span of text: FZ_STEXT_FILLED, FZ_STEXT_STROKED, FZ_STEXT_CLIPPED
FILLED, STROKED, CLIPPED = 16, 32, 64
# How far below its upper edge a letter of vertical writing has its horizontal origin, as a share of the type size
_VERTICAL_ORIGIN = 0.88


@cache
def pymupdf() -> Any:
    """The pymupdf module, with MuPDF's messages turned off. Imported on first use, which takes 0.2 s."""
    # The import tries to load the layout models, which only layout_parser() needs: another 0.5 s and 270 MB of address
    # space in every worker. None in sys.modules makes that import fail, which PyMuPDF tolerates.
    modules: dict[str, Any] = sys.modules
    modules.setdefault("pymupdf.layout", None)
    try:
        import pymupdf
    finally:
        if modules["pymupdf.layout"] is None:
            del modules["pymupdf.layout"]
    pymupdf.TOOLS.mupdf_display_errors(False)
    pymupdf.TOOLS.mupdf_display_warnings(False)
    return pymupdf


@cache
def _document_class() -> Any:
    class Document(pymupdf().Document):  # type: ignore[misc]
        def _loadOutline(self) -> None:  # noqa: N802
            """Nothing: Folio uses no outline, and MuPDF takes a minute to load one of 100,000 entries."""

    return Document


def open_pdf(content: bytes) -> Any:
    """A PyMuPDF document of the bytes of a PDF, without its outline. Raises whatever MuPDF raises."""
    return _document_class()(stream=content, filetype="pdf")


def unlock(document: Any) -> bool:
    """Make a document readable that is encrypted without a password. Returns False if it needs a password."""
    if not document.needs_pass or document.authenticate(""):
        return True
    # "Identity" leaves text unencrypted. The password is then only for attachments, which MuPDF does not distinguish.
    if any(document.xref_get_key(-1, f"Encrypt/{kind}")[1] != "/Identity" for kind in ("StmF", "StrF")):
        return False
    document.is_encrypted = False
    document.init_doc()
    return True


@cache
def layout_parser() -> Any:
    """pymupdf4llm's parse_document, with the layout models loaded. Both come with PyMuPDF 2."""
    pymupdf()
    import pymupdf4llm
    from pymupdf4llm.helpers.document_layout import parse_document

    pymupdf4llm.use_layout(True)
    return parse_document


def file_metadata(document: Any) -> dict[str, str]:
    """The metadata of a file, with its XMP packet as "xmp"; values longer than limits.METADATA are left out."""
    return {**_metadata(document), "xmp": _xmp(document)}


def _metadata(document: Any) -> dict[str, str]:
    try:
        texts = {key: value for key, value in (document.metadata or {}).items() if isinstance(value, str)}
        return {key: value for key, value in texts.items() if len(value) <= limits.METADATA}
    except MemoryError:
        raise
    except Exception:  # the text can be read without metadata
        return {}


def _xmp(document: Any) -> str:
    try:
        packet = document.get_xml_metadata()
        return packet if isinstance(packet, str) and len(packet) <= limits.METADATA else ""
    except MemoryError:
        raise
    except Exception:
        return ""


def lines(blocks: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The lines of MuPDF's blocks."""
    for block in blocks:
        yield from block.get("lines", ())


def vertical_shift(line: Mapping[str, Any]) -> tuple[float, float]:
    """How far the letters of a line are from their boxes, in points: (0, 0) unless they are vertical writing.

    MuPDF lets the box of such a letter begin at its horizontal origin, which is most of its size below its upper edge
    (the default of DW2, ISO 32000-1, 9.7.4.3).
    """
    if not line["wmode"] or not line["spans"]:
        return 0.0, 0.0
    (x, y), size = line["dir"], line["spans"][0]["size"]
    return -_VERTICAL_ORIGIN * size * x, -_VERTICAL_ORIGIN * size * y


def place_vertical(blocks: Sequence[Mapping[str, Any]]) -> None:
    """Move the boxes of vertical writing to their letters, in place."""
    for line in lines(blocks):
        if line["wmode"]:
            right, down = vertical_shift(line)
            for part in (line, *line["spans"]):
                x0, y0, x1, y1 = part["bbox"]
                part["bbox"] = x0 + right, y0 + down, x1 + right, y1 + down


def spans_of(blocks: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The spans of MuPDF's blocks, in its order."""
    for line in lines(blocks):
        yield from line["spans"]


def without_lines(blocks: Sequence[Mapping[str, Any]], places: Set[tuple[float, float]]) -> Sequence[Mapping[str, Any]]:
    """The blocks without the lines at these places: their left and top, in points."""
    if not places:
        return blocks
    return [
        {**block, "lines": [line for line in block.get("lines", ()) if tuple(line["bbox"][:2]) not in places]}
        for block in blocks
    ]


def line_text(line: Mapping[str, Any]) -> str:
    """The text of a line from MuPDF."""
    return "".join(span["text"] for span in line["spans"])


def around(parts: Iterable[Mapping[str, Any]]) -> tuple[float, float, float, float]:
    """The box around spans or lines from MuPDF; there is at least one."""
    lefts, tops, rights, bottoms = zip(*[part["bbox"] for part in parts], strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)
