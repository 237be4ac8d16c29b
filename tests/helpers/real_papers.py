"""Real papers, each read once for all tests of a process."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from folio.papers.model import ParsedPdf
from folio.pdf.reader import read_pdf


@cache
def read_real(path: Path) -> ParsedPdf:
    """What is read from a paper that no test changes."""
    return read_pdf(path)
