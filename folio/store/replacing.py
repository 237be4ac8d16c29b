"""Puts a library that was made again in the place of the old one, and reads what a damaged one still tells."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

from folio.errors import StoreBusy, StoreDamaged, StoreMismatch, StoreMissing, UserFileDamaged
from folio.papers.model import Notice, SourceFile
from folio.store import metadata
from folio.store.check import LibraryCheck
from folio.store.database import DAMAGED
from folio.store.fingerprint import FORMAT, differences
from folio.store.library import Library
from folio.store.sqlite import SqliteDatabase
from folio.store.user_file import has_log, put_aside, set_aside
from folio.system.files import discard, no_space, replace

# The new library while it is being built
UNFINISHED = "rebuild.sqlite"
T = TypeVar("T")


def known_files(
    path: Path, record: Path, *, thorough: bool = False, notice: Notice = lambda text: None
) -> dict[Path, SourceFile]:
    """The files that a library was made from, by absolute path; for a damaged library, those in `record`. For one that
    has replaced a library of an earlier format, those of that library.

    record: ingested.json. thorough: look for damage in the whole file. notice: see SqliteDatabase.
    """


    def listed(library: Library) -> list[SourceFile]:
        files = sound_files(library) if thorough else library.files()
        if files or FORMAT not in library.fingerprint():
            return files
        return library.files_before() or list(listed_files(record).values())

    files = read_if_sound(path, listed, notice)
    if files is not None:
        return {Path(file.path): file for file in files}
    return listed_files(record) if path.exists() or set_aside(path) else {}


def listed_files(record: Path) -> dict[Path, SourceFile]:
    """The files that ingested.json (`record`) lists; none if it cannot be read."""
    try:
        papers = json.loads(record.read_text(encoding="utf-8"))
        files = [SourceFile(path, Path(path).name, paper["sha256"]) for paper in papers for path in paper["paths"]]
        return {Path(file.path): file for file in files}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def read_if_sound(path: Path, read: Callable[[Library], T], notice: Notice = lambda text: None) -> T | None:
    """The result of `read` on the library; None if the library is missing, or proven to be damaged.

    notice: see SqliteDatabase. Raises UserFileDamaged, and StoreError for errors that do not prove damage: a busy
    library, a full disk, a file that cannot be read now.
    """
    for _ in range(2):  # a disk may fail to read something once; real damage is still there the second time
        try:
            with closing(Library(path, notice=notice)) as library:
                return read(library)
        except StoreMissing:
            return None
        except UserFileDamaged:
            raise
        except StoreDamaged:
            continue
    return None


def open_unfinished(path: Path, fingerprint: dict[str, str]) -> Library:
    """The library of an interrupted rebuild if it is sound and can be continued, otherwise an empty one."""
    with suppress(StoreMismatch):
        if read_if_sound(path, lambda library: _can_continue(library, fingerprint)):
            return Library(path)
    delete(path)
    return Library(path, create=True)


def _can_continue(library: Library, fingerprint: dict[str, str]) -> bool:
    made_with = library.fingerprint()
    return not (made_with and differences(made_with, fingerprint)) and is_sound(library)


def is_sound(library: Library) -> bool:
    """Whether the data made from PDFs has no fault. Reads all of it."""
    return not LibraryCheck(library.database).made_from_pdfs()


def sound_files(library: Library) -> list[SourceFile]:
    """The files of a library. Raises StoreDamaged if the structure of the data made from PDFs has a fault."""
    if LibraryCheck(library.database).structure():
        raise StoreDamaged("The library is damaged.", DAMAGED)
    return library.files()


def replace_library(path: Path, new: Path, notice: Notice) -> None:
    """Replace the library at `path` by `new`. What people made is in another file.

    A sound library stays: its papers are replaced in one transaction. A damaged one is set aside and replaced. A kill
    at any point loses nothing, and the same call continues.
    """
    if read_if_sound(path, sound_files, notice) is not None:
        with closing(SqliteDatabase(path)) as database:
            metadata.replace_papers(database, new)
        for part in _parts(new):
            discard(part)
    elif aside := take_place(path, new):
        notice(f"The old library could not be used and was set aside as {aside.name}.")


def take_place(path: Path, new: Path) -> Path | None:
    """Rename the library `new` to `path`. A damaged library there is renamed first; returns its new path.

    All steps that need disk space come before the renames. Raises StoreBusy while another process uses `new`.
    """
    with closing(SqliteDatabase(new)) as database:
        database.merge_log()
    if has_log(new):
        raise StoreBusy(f"Another process uses {new}.", "Wait until it has finished, then run the same command again.")
    with no_space(path.parent):
        aside = put_aside(path)
        replace(new, path)
    delete(new)  # the empty log
    return aside


def delete(database: Path) -> None:
    for part in _parts(database):
        part.unlink(missing_ok=True)


def _parts(database: Path) -> list[Path]:
    return [database.with_name(database.name + suffix) for suffix in ("-wal", "-shm", "")]
