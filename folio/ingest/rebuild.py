"""Making a store anew, beside the one in use, which serves until the new one is whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from folio.errors import StoreDamaged, StoreError, StoreMismatch
from folio.ingest import pipeline, progress
from folio.protocols import Embedder
from folio.store.conversations import Conversations
from folio.store.fingerprint import Reading, fingerprint
from folio.store.library import Library
from folio.store.query_log import QueryLog
from folio.types import Notice, SourceFile

BESIDE = "rebuild.sqlite"
T = TypeVar("T")


def rebuild(
    path: Path,
    files: Sequence[SourceFile],
    embedder: Embedder,
    reading: Reading,
    limits: pipeline.Limits,
    watch: progress.IngestProgress,
    *,
    batch: int,
    notice: Notice,
) -> Iterator[progress.Outcome]:
    """Make the library at `path` anew from these files; the last step takes all of it over in one transaction.

    A rebuild that was broken off is gone on with. Raises StoreError when no file gave a paper: the old library stays.
    The caller holds the writer's place, and brings the indexes up to date afterwards.
    """
    beside = path.with_name(BESIDE)
    library = _broken_off(beside, fingerprint(embedder, reading))
    paths = frozenset(file.path for file in files)
    try:
        for old in library.files():
            if old.path not in paths:
                library.drop(old.path)
        yield from pipeline.ingest(library, files, lambda: embedder, reading, limits, watch, batch=batch, retry=paths)
        is_empty = not library.chunk_count()
    finally:
        library.close()
    if is_empty:
        _delete(beside)
        raise StoreError("None of the files gave a paper.", "See the reasons; the index was left as it is.")
    try:
        _take_over(path, beside)
    except (StoreDamaged, StoreMismatch):
        aside = _set_aside(path)
        notice(f"The library that could not be read was set aside as {aside.name}.")
        _take_over(path, beside, aside)
    _delete(beside)


def known_files(path: Path, record: Path) -> dict[Path, str]:
    """The files that a library was made from, by absolute path, with their names.

    Where the library is there and cannot be read, ingested.json (`record`) says which they were.
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
    """What is read from a library; None when there is none that can be read."""
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


def _broken_off(beside: Path, fingerprint: dict[str, str]) -> Library:
    """The library that an earlier rebuild left half-way, where it can be gone on with; else an empty one."""
    try:
        library = Library(beside, create=True)
        if library.fingerprint() in ({}, fingerprint):
            return library
        library.close()
    except (StoreDamaged, StoreMismatch):
        pass
    _delete(beside)
    return Library(beside, create=True)


def _take_over(path: Path, beside: Path, aside: Path | None = None) -> None:
    """aside: a library that cannot be read, but whose questions and conversations perhaps can."""
    library = Library(path, create=True)
    try:
        with closing(Conversations(path)) as conversations:
            log = QueryLog(library.database)
            # These raise where something is damaged that taking over the papers would not mend.
            log.counts()
            conversations.listed()
            library.replace_with(beside)
            if aside is not None:
                shift = None
                with suppress(StoreError):
                    shift = log.take_over(aside)
                with suppress(StoreError):
                    conversations.take_over(aside, shift)
    finally:
        library.close()


def _set_aside(path: Path) -> Path:
    """Keep a library that cannot be read under another name; returns where it is."""
    name = f"damaged-{datetime.now(UTC):%Y%m%dT%H%M%S}-{path.name}"
    for suffix in ("", "-wal", "-shm"):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.replace(path.with_name(name + suffix))
    return path.with_name(name)


def _delete(database: Path) -> None:
    for suffix in ("-wal", "-shm", ""):
        database.with_name(database.name + suffix).unlink(missing_ok=True)
