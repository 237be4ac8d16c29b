"""PyMuPDF, quiet and light. The only room that imports it."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any


@cache
def pymupdf() -> Any:
    """The module, told to keep MuPDF's messages to itself. Imported when needed: it takes 0.2 s."""
    # Its import tries to load the models of its layout analyser, which only layout_parser() uses: another 0.5 s and
    # 270 MB of address space in every worker. None in sys.modules makes an import fail, and this one is allowed to.
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
def layout_parser() -> Any:
    """pymupdf4llm's parse_document, with the models of the layout analyser loaded. Both come with PyMuPDF 2."""
    pymupdf()
    import pymupdf4llm
    from pymupdf4llm.helpers.document_layout import parse_document

    pymupdf4llm.use_layout(True)
    return parse_document
