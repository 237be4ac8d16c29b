"""Rebuilding a store while the old one stays in use until the new one is complete."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from folio.errors import StoreDamaged, StoreError, StoreMismatch
from folio.ingest import pipeline
from folio.ingest.progress import IngestProgress, Outcome
from folio.protocols import Embedder
from folio.store.conversations import Conversations
from folio.store.fingerprint import Reading, fingerprint
from folio.store.library import Library
from folio.store.query_log import QueryLog
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
) -> Iterator[Outcome]:
    """Rebuild the library at `path` from these files; the last step replaces its papers in one transaction.

    An interrupted rebuild is continued. Raises StoreError if no file could be read: the old library stays. The caller
    holds the writer lock, and updates the indexes afterwards.
    """
    unfinished = path.with_name(UNFINISHED)
    library = _open_unfinished(unfinished, fingerprint(embedder, reading))
    paths = frozenset(file.path for file in files)
    try:
        for old in library.files():
            if old.path not in paths:
                library.drop(old.path)
        yield from pipeline.ingest(
            library, files, lambda: embedder, reading, limits, progress, batch=batch, retry=paths
        )
        is_empty = not library.chunk_count()
    finally:
        library.close()
    if is_empty:
        _delete(unfinished)
        raise StoreError("None of the files could be read.", "See the reasons above. The index has not been changed.")
    try:
        _take_over(path, unfinished)
    except (StoreDamaged, StoreMismatch):
        damaged = _set_aside(path)
        notice(f"The old library could not be read and was renamed {damaged.name}.")
        _take_over(path, unfinished, damaged)
    _delete(unfinished)


def known_files(path: Path, record: Path) -> dict[Path, str]:
    """The files that a library was made from: absolute path -> display name.

    If the library cannot be read, they are taken from ingested.json (`record`).
    """
    files = read_if_sound(path, Library.files)
    if files is not None:
        return {Path(file.path): file.name for file in files}
    if not path.exists():
        return {}
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


def _open_unfinished(path: Path, fingerprint: dict[str, str]) -> Library:
    """The library left by an interrupted rebuild if it can be continued, otherwise an empty one."""
    try:
        library = Library(path, create=True)
        if library.fingerprint() in ({}, fingerprint):
            return library
        library.close()
    except (StoreDamaged, StoreMismatch):
        pass
    _delete(path)
    return Library(path, create=True)


def _take_over(path: Path, new: Path, damaged: Path | None = None) -> None:
    """Replace the papers at `path` with those of `new`.

    damaged: the old library, whose questions and conversations are copied if they can be read.
    """
    library = Library(path, create=True)
    try:
        with closing(Conversations(path)) as conversations:
            log = QueryLog(library.database)
            # These raise if a table is damaged that replacing the papers would not repair.
            log.counts()
            conversations.summaries()
            library.replace_with(new)
            if damaged is not None:
                offset = None
                with suppress(StoreError):
                    offset = log.take_over(damaged)
                with suppress(StoreError):
                    conversations.take_over(damaged, offset)
    finally:
        library.close()


def _set_aside(path: Path) -> Path:
    """Rename a library that cannot be read; returns its new path."""
    name = f"damaged-{datetime.now(UTC):%Y%m%dT%H%M%S}-{path.name}"
    for suffix in ("", "-wal", "-shm"):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.replace(path.with_name(name + suffix))
    return path.with_name(name)


def _delete(database: Path) -> None:
    for suffix in ("-wal", "-shm", ""):
        database.with_name(database.name + suffix).unlink(missing_ok=True)
