"""Brings the PDFs of works into a folder: written beside and renamed, so that only whole files have a name there."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path

from folio.errors import SourceError
from folio.services.http import HttpClient
from folio.services.keep import Candidate
from folio.services.lookup import Lookup
from folio.system.files import KEPT_S, no_space, replace, shortened, sync


def download(
    wanted: Iterable[Candidate], lookup: Lookup, largest: int, on_failure: Callable[[str], None]
) -> Iterator[Candidate | None]:
    """Download the files that are not there, one after the other: each that is there then, None for one that is not.

    largest: bytes of a file. on_failure: told one sentence about each link that leads to no PDF.
    """
    for each in wanted:
        is_there = download_work(each, lookup, largest, partial(_tell, on_failure, each.work.title[:80]))
        yield each if is_there else None


def download_work(wanted: Candidate, lookup: Lookup, largest: int, on_failure: Callable[[str], None]) -> bool:
    """Download a work's file unless it is there; whether it is there then. See download."""
    if wanted.path.is_file():
        return True
    links = lookup.pdf_links(wanted.work)
    first = next(links, None)
    if first is None:
        on_failure("no open PDF is known.")
        return False
    return download_pdf(lookup.client, chain([first], links), wanted.path, largest, on_failure)


def _tell(on_failure: Callable[[str], None], title: str, why: str) -> None:
    on_failure(f'"{title}": {why}')


def download_pdf(
    client: HttpClient, links: Iterable[str], path: Path, largest: int, on_failure: Callable[[str], None]
) -> bool:
    """Write the first PDF that one of the links leads to; whether there was one. Raises OSError, DiskFull.

    largest: bytes that it may have. on_failure: told one sentence about each link that leads to none.
    """
    _delete_old(path.parent)
    # A name of its own: the page and a command may bring the same paper at once.
    part = path.with_name(f".{shortened(path.name, 100)}.{secrets.token_hex(4)}.part")
    try:
        for link in links:
            try:
                with no_space(path.parent):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with part.open("wb") as file:
                        client.download(link, file, largest)
                    sync(part)
                    replace(part, path)
            except SourceError as error:
                on_failure(error.happened)
            else:
                return True
    finally:
        part.unlink(missing_ok=True)
    return False


def _delete_old(folder: Path) -> None:
    """Delete what killed downloads have left behind."""
    with suppress(OSError):
        for part in folder.glob(".*.part"):
            if time.time() - part.lstat().st_mtime > KEPT_S:
                part.unlink(missing_ok=True)
