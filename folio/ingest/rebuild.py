"""Rebuilding a store while the old one stays in use until the new one is complete."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from folio.errors import StoreBusy, StoreDamaged, StoreError, StoreMismatch, StoreMissing
from folio.files import discard, no_space, replace
from folio.ingest import paper_vectors, pipeline
from folio.ingest.progress import IngestProgress, Outcome
from folio.ingest.scanned_pages import FOLDER, ScannedPages
from folio.protocols import Embedder
from folio.store import replacement, salvage
from folio.store.database import DAMAGED, set_aside
from folio.store.fingerprint import Reading, differences, fingerprint
from folio.store.immutable_file import has_log
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
            library,
            files,
            lambda: embedder,
            reading,
            limits,
            progress,
            batch=batch,
            retry=paths,
            read=read,
            scans=ScannedPages(path.with_name(FOLDER)),
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
    """The result of `read` on the library; None if the library is missing, or proven to be damaged.

    Raises StoreError for all that proves nothing: a busy library, a full disk, a file that cannot be read now.
    """
    for _ in range(2):  # what proves damage is there the second time too: a disk may fail to read something once
        try:
            with closing(Library(path)) as library:
                return read(library)
        except StoreMissing:
            return None
        except StoreDamaged:
            continue
    return None


def open_unfinished(path: Path, fingerprint: dict[str, str]) -> Library:
    """The library of an interrupted rebuild if it is sound and can be continued, otherwise an empty one."""
    with suppress(StoreMismatch):
        if read_if_sound(path, lambda found: _can_continue(found, fingerprint)):
            return Library(path)
    delete(path)
    return Library(path, create=True)


def _can_continue(library: Library, fingerprint: dict[str, str]) -> bool:
    made_with = library.fingerprint()
    return not (made_with and differences(made_with, fingerprint)) and not library.check()


def sound_files(library: Library) -> list[SourceFile]:
    if LibraryCheck(library.database).structure():
        raise StoreDamaged("The library is damaged.", DAMAGED)
    return library.files()


def _replace(path: Path, new: Path, notice: Notice) -> None:
    """Put the library `new` in the place of the one at `path`, whose questions and conversations are kept.

    A sound library stays: its papers are replaced in one transaction. What can be read of a damaged one goes into the
    new library, which then takes its place; a kill at any point loses nothing, and the same call continues.
    """
    if read_if_sound(path, sound_files) is not None:
        with closing(Library(path)) as library:
            replacement.replace_papers(library.database, new)
        for part in _parts(new):
            discard(part)
        return
    damaged = path if _has_content(path) else put_aside(path)
    found = salvage.read(damaged) if damaged is not None else None
    if found is not None:
        with closing(Library(new, create=True)) as library:
            salvage.restore(found, library.database)
    aside = take_place(path, new)
    if aside is not None and found is not None:
        notice(_what_happened(aside, found))


def take_place(path: Path, new: Path) -> Path | None:
    """Rename the library `new` to `path`, a damaged one there to another name, which is returned.

    Whatever may fail for lack of space is done before anything is renamed. Raises StoreBusy while another process has
    a part of `new` in its hands.
    """
    with closing(Library(new)) as library:
        library.database.merge_log()
    if has_log(new):
        raise StoreBusy(f"Another process uses {new}.", "Wait until it has finished, then run the same command again.")
    with no_space(path.parent):
        aside = put_aside(path)
        replace(new, path)
    delete(new)  # the empty log
    return aside


def put_aside(path: Path) -> Path | None:
    """Rename a damaged library; returns its new path, None if there is none. Continues after a kill."""
    wal, shm = (path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))
    aside: Path | None = None
    if _has_content(path):
        aside = path.with_name(f"{path.stem}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S%f}{path.suffix}")
        replace(path, aside)
    elif earlier := set_aside(path):
        aside = earlier[-1]
    if aside is not None and wal.exists():
        replace(wal, aside.with_name(f"{aside.name}-wal"))
    for log in (wal, shm):  # it would be taken for the new library's
        log.unlink(missing_ok=True)
    return aside


def _has_content(path: Path) -> bool:
    """Whether there is a library at a path, sound or not, or at least the log of one."""
    return path.exists() and (path.stat().st_size > 0 or has_log(path))


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
    for part in _parts(database):
        part.unlink(missing_ok=True)


def _parts(database: Path) -> list[Path]:
    return [database.with_name(database.name + suffix) for suffix in ("-wal", "-shm", "")]
