"""Brings the PDFs of works into a folder: written beside and renamed, so that only whole files have a name there."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from folio.errors import SourceError
from folio.files import no_space, sync
from folio.paper_metadata import bare_arxiv
from folio.sources.http_client import HttpClient
from folio.work import Work

_LONGEST_TITLE = 80  # characters of a file's name
_LONGEST_ID = 60
_NO_NAME = re.compile(r"[^\w.()-]+")


def pdf_name(work: Work) -> str:
    """The name of a work's file: "2312.10997 Retrieval-Augmented Generation for Large Language Models.pdf"."""
    identifier = bare_arxiv(work.arxiv) or work.doi or work.openalex or work.semanticscholar[:12]
    start = _NO_NAME.sub("_", identifier)[:_LONGEST_ID].strip("._") or "paper"
    words = " ".join(_NO_NAME.sub(" ", work.title).split())
    if len(words) > _LONGEST_TITLE:
        words = words[:_LONGEST_TITLE].rpartition(" ")[0] or words[:_LONGEST_TITLE]
    return f"{start} {words}".rstrip(" .") + ".pdf"


def download_pdf(
    client: HttpClient, links: Iterable[str], path: Path, largest: int, on_failure: Callable[[str], None]
) -> bool:
    """Write the first PDF that one of the links leads to; whether there was one. Raises OSError, DiskFull.

    largest: bytes that it may have. on_failure: told one sentence about each link that leads to none.
    """
    part = path.with_name(f".{path.name[:100]}.part")
    try:
        for link in links:
            try:
                with no_space(path.parent):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with part.open("wb") as file:
                        client.download(link, file, largest)
                    sync(part)
                    os.replace(part, path)
            except SourceError as error:
                on_failure(error.happened)
            else:
                return True
    finally:
        part.unlink(missing_ok=True)
    return False
