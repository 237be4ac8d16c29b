"""Rebuilding a store while the old one stays in use until the new one is complete."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from folio.errors import StoreDamaged, StoreError, StoreMismatch
from folio.ingest import paper_vectors, pipeline
from folio.ingest.progress import IngestProgress, Outcome
from folio.protocols import Embedder
from folio.store import replacement, salvage
from folio.store.database import DAMAGED, set_aside
from folio.store.fingerprint import Reading, differences, fingerprint
from folio.store.library import Library
from folio.store.library_check import LibraryCheck
from folio.types import Notice, SourceFile

# The new library while it is being built
UNFINISHED = "rebuild.sqlite"
T = TypeVar("T")


def rebuild(
    path: Path,
    files: Sequence[SourceFile],
    embedder: Embedder,
    reading: Reading,
    limits: pipeline.Limits,
    progress: IngestProgress,
    *,
    batch: int,
    notice: Notice,
    read: pipeline.PaperReader | None = None,
) -> Iterator[Outcome]:
    """Rebuild the library at `path` from these files; the last step replaces its papers, or a damaged library.

    read: see pipeline.ingest. An interrupted rebuild is continued. Raises StoreError if no file could be read: the old
    library stays. The caller holds the writer lock, and updates the indexes afterwards.
    """
    unfinished = path.with_name(UNFINISHED)
    library = open_unfinished(unfinished, fingerprint(embedder, reading))
    paths = frozenset(file.path for file in files)
    try:
        for old in library.files():
            if old.path not in paths:
                library.drop(old.path)
        yield from pipeline.ingest(
            library, files, lambda: embedder, reading, limits, progress, batch=batch, retry=paths, read=read
        )
        is_empty = not library.chunk_count()
    finally:
        library.close()
    if is_empty:
        delete(unfinished)
        raise StoreError("None of the files could be read.", "See the reasons above. The index has not been changed.")
    _replace(path, unfinished, notice)
    with closing(Library(path)) as library:  # what people said of papers has come back
        paper_vectors.refresh(library, lambda: embedder, batch)


def known_files(path: Path, record: Path, *, thorough: bool = False) -> dict[Path, str]:
    """The files that a library was made from: absolute path -> display name.

    From a damaged library they are taken as far as they can be read, and from ingested.json (`record`). thorough: look
    for damage in the whole file.
    """
    files = read_if_sound(path, sound_files if thorough else Library.files)
    if files is not None:
        return {Path(file.path): file.name for file in files}
    damaged = [path] if path.exists() else set_aside(path)
    if not damaged:
        return {}
    found = {Path(file.path): file.name for file in salvage.read(damaged[-1]).files.values()}
    return listed_files(record) | found


def listed_files(record: Path) -> dict[Path, str]:
    """The files that ingested.json (`record`) lists, as far as it can be read."""
    try:
        papers = json.loads(record.read_text(encoding="utf-8"))
        return {Path(file): Path(file).name for paper in papers for file in paper["paths"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def read_if_sound(path: Path, read: Callable[[Library], T]) -> T | None:
    """The result of `read` on the library; None if the library is missing or cannot be read."""
    try:
        library = Library(path)
    except StoreError:
        return None
    try:
        return read(library)
    except StoreError:
        return None
    finally:
        library.close()


def open_unfinished(path: Path, fingerprint: dict[str, str]) -> Library:
    """The library of an interrupted rebuild or move if it is sound and can be continued, otherwise an empty one."""
    try:
        library = Library(path, create=True)
        made_with = library.fingerprint()
        if not (made_with and differences(made_with, fingerprint)) and not library.check():
            return library
        library.close()
    except (StoreDamaged, StoreMismatch):
        pass
    delete(path)
    return Library(path, create=True)


def sound_files(library: Library) -> list[SourceFile]:
    if LibraryCheck(library.database).structure():
        raise StoreDamaged("The library is damaged.", DAMAGED)
    return library.files()


def _replace(path: Path, new: Path, notice: Notice) -> None:
    """Put the library `new` in the place of the one at `path`, whose questions and conversations are kept.

    A sound library stays: its papers are replaced in one transaction. A damaged one is set aside, what can be read of
    it goes into the new library, and that is renamed. After a kill in between, the library is missing, and the same
    call with the same new library continues.
    """
    if read_if_sound(path, sound_files) is not None:
        with closing(Library(path)) as library:
            replacement.replace_papers(library.database, new)
        delete(new)
        return
    aside = put_aside(path)
    if aside is not None:
        found = salvage.read(aside)
        with closing(Library(new, create=True)) as library:
            salvage.restore(found, library.database)
        notice(_what_happened(aside, found))
    os.replace(new, path)


def put_aside(path: Path) -> Path | None:
    """Rename a damaged library; returns its new path, None if there is none. Continues after a kill."""
    wal, shm = (path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))
    aside: Path | None = None
    if path.exists() and any(part.exists() and part.stat().st_size for part in (path, wal)):
        aside = path.with_name(f"{path.stem}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S%f}{path.suffix}")
        path.replace(aside)
    elif earlier := set_aside(path):
        aside = earlier[-1]
    if aside is not None and wal.exists():
        wal.replace(aside.with_name(f"{aside.name}-wal"))
    for log in (wal, shm):  # it would be taken for the new library's
        log.unlink(missing_ok=True)
    return aside


def _what_happened(aside: Path, found: salvage.Salvage) -> str:
    questions, conversations = len(found.queries), len(found.turns)
    kept = f"Kept: {_count(questions, 'logged question')} and {_count(conversations, 'conversation')}"
    lost = [
        _count(number, what)
        for number, what in ((found.questions_lost, "logged question"), (found.turns_lost, "turn of a conversation"))
        if number
    ]
    end = f"lost: at least {' and '.join(lost)}." if lost else "as far as can be seen, none was lost."
    return f"The old library could not be used and was set aside as {aside.name}. {kept}; {end}"


def _count(number: int, what: str) -> str:
    one, _, of = what.partition(" of ")
    return f"{number} {one}{'' if number == 1 else 's'}{' of ' if of else ''}{of}"


def delete(database: Path) -> None:
    for suffix in ("-wal", "-shm", ""):
        database.with_name(database.name + suffix).unlink(missing_ok=True)
