"""Downloads the PDFs of works into a folder. A file gets its name only when it is complete."""

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
    """Download missing files one after the other; yields each work that has a file now, None for one without.

    largest: bytes of a file. on_failure: gets one sentence about each link that leads to no PDF.
    """
    for each in wanted:
        is_present = download_work(each, lookup, largest, partial(_report, on_failure, each.work.title[:80]))
        yield each if is_present else None


def _report(on_failure: Callable[[str], None], title: str, why: str) -> None:
    on_failure(f'"{title}": {why}')


def download_work(wanted: Candidate, lookup: Lookup, largest: int, on_failure: Callable[[str], None]) -> bool:
    """Download a work's file if it is missing; returns whether the file is present now. See download."""
    if wanted.path.is_file():
        return True
    links = lookup.pdf_links(wanted.work)
    first = next(links, None)
    if first is None:
        on_failure("no open PDF is known.")
        return False
    return download_pdf(lookup.client, chain([first], links), wanted.path, largest, on_failure)


def download_pdf(
    client: HttpClient, links: Iterable[str], path: Path, largest: int, on_failure: Callable[[str], None]
) -> bool:
    """Write the first PDF that the links lead to; returns whether there was one. Raises OSError, DiskFull.

    largest: bytes of the file. on_failure: gets one sentence about each link that leads to no PDF.
    """
    _delete_old(path.parent)
    # A unique name: the web page and a command may download the same paper at once.
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
    """Delete the leftovers of killed downloads."""
    with suppress(OSError):
        for part in folder.glob(".*.part"):
            if time.time() - part.lstat().st_mtime > KEPT_S:
                part.unlink(missing_ok=True)
