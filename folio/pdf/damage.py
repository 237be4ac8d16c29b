"""Recognises pages whose content is torn: after a cut, a zeroed block or a transfer as text, a part cannot be read.

MuPDF reads on after damage, with what it has. Its messages are a first hint; they also come for flaws that lose no
text, such as an image that ends early. So what they hint at is read again here, stream by stream.
"""

from __future__ import annotations

import re
import zlib
from typing import Any

from folio.pdf.mupdf import pymupdf

# The problem of a page
TORN = "damaged, so that text is missing"
_HINT = re.compile(r"zlib error|read error|not a stream|content stream|syntax error|cannot find object")
# What MuPDF says of content that is none
_GARBLED = "syntax error"
# What zlib says of data with another checksum. Some programs write a wrong one, and the content is whole.
_WRONG_SUM = "incorrect data check"
# A block of a disk that was never written leaves more of these than a picture in the content has.
_ZEROED = bytes(64)
# Bytes of a stream that are read at once, and of one page in all: more is no page of a paper
_PIECE, _MOST = 2**20, 2**26


def forget_messages() -> None:
    """Forget MuPDF's messages, so that `is_torn` sees those of the page that is read next."""
    pymupdf().TOOLS.reset_mupdf_warnings()


def is_torn(document: Any, page: Any) -> bool:
    """Whether a part of a page's content cannot be read. The page's text was extracted after `forget_messages`."""
    if _is_missing(document, page.xref):
        return True
    messages = pymupdf().TOOLS.mupdf_warnings(reset=True)
    if not _HINT.search(messages):
        return False
    is_garbled, left = _GARBLED in messages, _MOST
    for xref in (*page.get_contents(), *(form[0] for form in page.get_xobjects())):
        size = _whole_size(document, xref, left, is_garbled=is_garbled)
        if size is None:
            return True
        left -= size
        if left <= 0:
            break
    return False


def _is_missing(document: Any, xref: int) -> bool:
    """Whether the page tree names an object that is not in the file."""
    try:
        return not document.xref_get_keys(xref)
    except (ValueError, RuntimeError):
        return True


def _whole_size(document: Any, xref: int, most: int, *, is_garbled: bool) -> int | None:
    """The bytes of a stream, at most about `most`; None if a part of it is missing or damaged.

    is_garbled: whether the page's content, as it was read, has syntax errors.
    """
    try:
        raw = document.xref_stream_raw(xref)
        kind, filters = document.xref_get_key(xref, "Filter")
    except (ValueError, RuntimeError):
        return None
    if raw is None:
        return None
    if kind == "null":
        return None if is_garbled and _ZEROED in raw else len(raw)
    if filters.strip("[] ") != "/FlateDecode":
        return len(raw)
    return _inflated_size(raw, most, is_garbled=is_garbled)


def _inflated_size(raw: bytes, most: int, *, is_garbled: bool) -> int | None:
    inflate, size = zlib.decompressobj(), 0
    try:
        while raw and size < most and not inflate.eof:
            size += len(inflate.decompress(raw, _PIECE))
            raw = inflate.unconsumed_tail
    except zlib.error as error:
        return size if _WRONG_SUM in str(error) and not is_garbled else None
    return size if inflate.eof or size >= most else None
