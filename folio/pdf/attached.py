"""Files inside a PDF: a portfolio of papers, or a paper's attachments. Folio reads none of them, and says which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from folio.errors import PaperError
from folio.papers.model import Page
from folio.text import one_line, shorten

# Names that are shown, and characters of one
_SHOWN, _LONGEST = 10, 60
# A portfolio's own pages tell how to open it; one with more words than this has something to read.
_COVER_WORDS = 100


def names(document: Any) -> str:
    """The PDFs inside a document, or all files inside a portfolio, as a list for a message; "" for none."""
    try:
        if not document.embfile_count():
            return ""
        keys = document.embfile_names()
        files = [_name(document, key) for key in keys[: 20 * _SHOWN]]
    except MemoryError:
        raise
    except Exception:  # a broken list of files
        return ""
    wanted = files if _is_portfolio(document) else [name for name in files if name.lower().endswith(".pdf")]
    more = len(wanted) - _SHOWN + len(keys) - len(files)
    return ", ".join(wanted[:_SHOWN]) + (f" and {more:,} more" if more > 0 and wanted else "")


def refuse_cover(document: Any, pages: Sequence[Page]) -> None:
    """Raise PaperError for a portfolio whose own page only tells how to open it: the papers are inside."""
    is_cover = len(pages) == 1 and len(pages[0].text.split()) < _COVER_WORDS and _is_portfolio(document)
    if is_cover and (inside := names(document)):
        raise PaperError(
            f"The file is a portfolio, and the files inside it are not read: {inside}.",
            "Open it in a PDF reader, save them into the folder, and move the portfolio out of it.",
        )


def _name(document: Any, key: str) -> str:
    """The name of a file inside, without what could pass for something else in a message."""
    about = document.embfile_info(key)
    name = about.get("ufilename") or about.get("filename") or key
    return shorten(one_line("".join(c if c.isprintable() else " " for c in name)), _LONGEST)


def _is_portfolio(document: Any) -> bool:
    try:
        return bool(document.xref_get_key(document.pdf_catalog(), "Collection")[0] != "null")
    except (ValueError, RuntimeError):
        return False
