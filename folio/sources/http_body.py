"""What a server sends, bounded while it arrives: answers, PDFs, refusals, and how long it asks to wait."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import BinaryIO

import httpx

from folio.errors import SourceError

LONGEST_WAIT_S = 120.0  # that a server may ask for; beyond, it is asked no more
REDIRECTED = frozenset({301, 302, 303, 307, 308})
REMEDY = "Try again later."
_PASSING = frozenset({429, 500, 502, 503, 504})
_CHUNK = 2**16  # bytes
_HEAD = 4096  # bytes that tell what a file is
_TAIL = 2048  # bytes in which a PDF says that it ends
_HTML = re.compile(rb"\s*(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html|head|\?xml)", re.I)
_ROBOT = re.compile(rb"captcha|robot|just a moment|cloudflare|verify (?:that )?you are|unusual traffic", re.I)


class Passing(Exception):
    """A failure that another attempt may not meet; the text goes behind the server's name."""

    def __init__(self, happened: str, wait_s: float | None = None) -> None:
        """wait_s: seconds that the server asks to wait; None if it does not say."""
        super().__init__(happened)
        self.wait_s = wait_s


def raise_if_passing(response: httpx.Response, now: float) -> None:
    """Raise Passing for a status that says "later". now: seconds since 1970."""
    if response.status_code not in _PASSING:
        return
    wait_s = _retry_after(response.headers.get("retry-after", ""), now)
    if wait_s is not None and wait_s > LONGEST_WAIT_S:
        raise Passing(f"answers {response.status_code} and asks to wait {wait_s:,.0f} s", wait_s)
    raise Passing(f"answers {response.status_code}", wait_s)


def _retry_after(written: str, now: float) -> float | None:
    """Seconds to wait, from a number of them or a date; None if there is neither."""
    if written.strip().isdecimal() and len(written.strip()) < 10:
        return float(written)
    try:
        date = parsedate_to_datetime(written)
    except ValueError:
        return None
    return max(0.0, date.replace(tzinfo=date.tzinfo or UTC).timestamp() - now)


def chunks(response: httpx.Response, largest: int, name: str) -> Iterator[bytes]:
    """The body as it arrives. Raises SourceError when it has more bytes, or a form that was not asked for."""
    if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise SourceError(f"{name} sent its answer compressed, which nobody asked for.", REMEDY)
    declared = response.headers.get("content-length", "")
    too_large = SourceError(f"What {name} sends is larger than {largest / 1e6:,.0f} MB.", "It was left out.")
    if declared.isdecimal() and int(declared[:20]) > largest:
        raise too_large
    total = 0
    for chunk in response.iter_raw(_CHUNK):
        total += len(chunk)
        if total > largest:
            raise too_large
        yield chunk


def write_pdf(response: httpx.Response, file: BinaryIO, largest: int, name: str) -> None:
    """Write a PDF as it arrives. Raises SourceError for anything else, Passing for one without its end."""
    head = tail = b""
    arriving = chunks(response, largest, name)
    for chunk in arriving:
        head += chunk
        if len(head) >= _HEAD:
            break
    if not head.startswith(b"%PDF-"):
        raise SourceError(f"{name} sent {_called(head)} instead of a PDF.", "Get the file in a browser, and ingest it.")
    file.write(head)
    tail = head[-_TAIL:]
    for chunk in arriving:
        file.write(chunk)
        tail = (tail + chunk)[-_TAIL:]
    # Without a length the end of the connection is the end of the file, also when the connection broke.
    is_framed = "content-length" in response.headers or "transfer-encoding" in response.headers
    if not is_framed and b"%%EOF" not in tail:
        raise Passing("broke off before the end of the file")


def refusal(response: httpx.Response, name: str) -> SourceError:
    """Why a server sent nothing, by its status and the beginning of its page."""
    head = b""
    for chunk in response.iter_raw(_HEAD):
        head += chunk
        if len(head) >= _HEAD:
            break
    status = response.status_code
    words = {401: " (it wants a key)", 403: " (it refuses)", 404: " (not found)", 410: " (it is gone)"}
    if _HTML.match(head) and _ROBOT.search(head):
        return SourceError(f"{name} asks whether you are a robot.", "Get the file in a browser, and ingest it.")
    return SourceError(f"{name} answers {status}{words.get(status, '')}.", REMEDY)


def _called(head: bytes) -> str:
    if not head:
        return "nothing"
    if not _HTML.match(head):
        return "something else"
    return 'a page that asks "are you a robot?"' if _ROBOT.search(head) else "a web page"
