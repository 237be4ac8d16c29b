"""Copies of PDFs with notes as real annotations: highlights, areas and comments. The original is never written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path, PurePath
from typing import TypeAlias

from folio.errors import PaperError, UsageError
from folio.papers.model import Paper
from folio.pdf.annotations import AnnotatedCopy, PdfMark
from folio.store.library import Library
from folio.store.note_places import PlacedNote, PlacedQuote
from folio.store.notes import Colour, Note
from folio.system.files import no_device, no_space, replace, sha256_file, shortened, sync

_SUFFIX = " (annotated)"
_MAX_NAME_BYTES = 200  # without the suffix; file systems allow 255
# The colours of the page's highlights
_COLOURS: dict[Colour, str] = {
    "yellow": "#ffd83d", "green": "#5fc264", "blue": "#5aa7ee", "pink": "#f078ab", "": "#bbbbbb",
}  # fmt: skip
# Writes a copy in a worker process; returns how many marks have a place, or why it failed
Write: TypeAlias = Callable[[AnnotatedCopy], int | PaperError]
CopyOf: TypeAlias = Callable[[str], Path | None]  # paper id -> its PDF


@dataclass(frozen=True, slots=True)
class Copied:
    """What became of the copy of a paper."""

    paper: Paper
    path: Path | None  # where it is; None if there is none
    notes: int
    why: str = ""  # there is none


def require_outside(folder: Path, read: Iterable[Path], files: Iterable[str]) -> None:
    """Raise UsageError for a folder whose PDFs an ingest would read. read: the folders that it reads; files: of the
    library. Hidden folders are skipped by it."""
    place = folder.resolve()
    for parent in {*(path.resolve() for path in read), *(Path(file).parent.resolve() for file in files)}:
        if place.is_relative_to(parent) and not any(part.startswith(".") for part in place.relative_to(parent).parts):
            raise UsageError(
                f"The copies would be read as papers: {folder} is in {parent}, whose PDFs are in the index.",
                "Name another folder, or a hidden one in it.",
            )


def write_copies(
    library: Library, notes: Sequence[PlacedNote], folder: Path, copy_of: CopyOf, write: Write
) -> Iterator[Copied]:
    """Write a copy of each paper of these notes into a folder, under a name that is free. Raises DiskFull, OSError.

    copy_of: a paper's PDF that the store keeps, for one whose file is not there.
    """
    of_paper: dict[str, list[tuple[Note, PlacedQuote]]] = {}
    for placed in notes:
        for each in placed.quotes:
            if each.paper is not None:
                of_paper.setdefault(each.paper.id, []).append((placed.note, each))
    with no_space(folder):
        folder.mkdir(parents=True, exist_ok=True)
    files = library.files()
    for id, quotes in of_paper.items():
        paper = quotes[0][1].paper
        assert paper is not None
        paths = [Path(file.path) for file in files if file.sha256 == id]
        path = next((path for path in paths if _is_paper(path, id)), None) or copy_of(id)
        marks = tuple(mark for note, each in quotes for mark in _marks(paper, note, each))
        if path is None:
            yield Copied(paper, None, len(quotes), "its file is missing or has changed since it was read")
        else:
            yield _write_copy(AnnotatedCopy(path, folder, marks), paper, len(quotes), write)


def _write_copy(copy: AnnotatedCopy, paper: Paper, notes: int, write: Write) -> Copied:
    """copy: its target is the folder."""
    folder = copy.target
    name = no_device(shortened(PurePath(paper.file).stem, _MAX_NAME_BYTES))
    unfinished = folder / f".{name}.new"
    try:
        with no_space(folder):
            result = write(AnnotatedCopy(copy.path, unfinished, copy.marks))
            if isinstance(result, PaperError):
                return Copied(paper, None, notes, result.happened)
            sync(unfinished)
            target = next(path for path in _names(folder, name) if not os.path.lexists(path))
            replace(unfinished, target)
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
    return Copied(paper, target, notes)


def _names(folder: Path, name: str) -> Iterator[Path]:
    for number in count(1):
        yield folder / f"{name}{_SUFFIX}{f' {number}' if number > 1 else ''}.pdf"


def _is_paper(path: Path, paper: str) -> bool:
    try:
        return sha256_file(path) == paper
    except OSError:
        return False


def _marks(paper: Paper, note: Note, each: PlacedQuote) -> Iterator[PdfMark]:
    """One for each page that the words are on; the first has the text."""
    shade = (note.origin.shade if note.origin else "") or _COLOURS[note.colour]
    red, green, blue = (int(shade[at : at + 2], 16) / 255 for at in (1, 3, 5))
    text = "\n\n".join(filter(None, (note.statement, note.text)))
    quote, colour = each.quote, (red, green, blue)
    if not quote.quote or each.place == "lost":
        words = quote.quote if each.place == "lost" else ""
        yield PdfMark(max(1, min(quote.page, paper.page_count)), words, quote.area, colour, text)
        return
    first, last = paper.pages.pages_of(quote.start, quote.end)
    for page in range(first, last + 1):
        start, end = paper.pages.bounds(page, paper.length)
        words = quote.quote[max(0, start - quote.start) : max(0, end - quote.start)].strip()
        if words:
            yield PdfMark(page, words, None, colour, text if page == first else "")
