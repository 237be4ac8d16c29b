"""ingest.py with an OCR engine that is slow by design, in this process and in its workers. Used by test_scans.py.

    python -m tests.helpers.slow_ocr [OPTIONS OF ingest.py]

The engine hangs on the pages that the file OCR_HANGS lists, by their indexes. Those that it finishes it writes down,
one a line, in the file OCR_LOG; also those of OCR_TOO_LARGE ("1,4"), which need more memory than a page may take. What
it reads on a page depends on the page alone.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import ingest
from folio.pdf import ocr
from folio.pdf.order import Box

_WORDS = ("curlew", "snipe", "plover", "godwit", "dunlin", "ruff", "knot")


def page_words(index: int) -> str:
    """What stands on a page."""
    return f"On plot {index + 1} the {_WORDS[index % len(_WORDS)]} was counted {3 * index + 2} times in two seasons."


def _read(page: Any) -> ocr.Blocks:
    while page.number in json.loads(Path(os.environ["OCR_HANGS"]).read_text()):
        time.sleep(0.05)
    with open(os.environ["OCR_LOG"], "a", encoding="utf-8") as log:
        log.write(f"{page.number}\n")
    if str(page.number) in os.environ.get("OCR_TOO_LARGE", "").split(","):
        raise MemoryError
    return [[Box(60.0, 80.0, 500.0, 92.0, page_words(page.number))]]


if __name__ in ("__main__", "__mp_main__"):  # the latter in its workers
    ocr.engine = lambda: ocr.Engine("Slow", _read, "1.0")  # type: ignore[assignment]

if __name__ == "__main__":
    sys.exit(ingest.main(sys.argv[1:]))
