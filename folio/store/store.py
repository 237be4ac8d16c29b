"""Where a library is kept: `Store` has the operations on a whole library, `LocalStore` keeps it in a local folder.

Several computers share a library in PostgreSQL (folio/shared/store.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from folio.papers.label import CitationStyle
from folio.papers.model import Notice, SourceFile
from folio.store import indexes, replacing
from folio.store.claims import Claims, OneWriter
from folio.store.indexes import SearchIndexes
from folio.store.library import Library
from folio.store.query_log import QueryLog

if TYPE_CHECKING:
    from folio.store.conversations import Conversations


@dataclass(frozen=True, slots=True)
class Repaired:
    """The result of a repair."""

    passages: int  # in the indexes
    is_complete: bool = True  # whether nothing that people made is lost


class Rebuild(ABC):
    """A library that is made again while the old one stays in use. Close it at the end, also of a failed one."""

    library: Library  # the new one: empty, or that of an interrupted rebuild

    @abstractmethod
    def finish(self) -> None:
        """Put the new library, which is complete, in the place of the old one."""

    @abstractmethod
    def abandon(self) -> None:
        """Forget the new library, which has nothing."""

    @abstractmethod
    def close(self) -> None:
        """Close what is open."""


@dataclass(frozen=True)
class Store(ABC):
    """Where a library is kept: opens it, and has the operations on all of it."""

    folder: Path  # a local folder, for the indexes
    engine: indexes.Engine
    citation_style: CitationStyle
    notice: Notice

    @property
    @abstractmethod
    def place(self) -> str:
        """The location in words: a folder, or an address."""

    @abstractmethod
    def exists(self) -> bool:
        """Whether the store was ever written."""

    @abstractmethod
    def open(self, *, create: bool = False) -> Library:
        """The library. create: make a missing one; the caller holds the writer lock. Otherwise raises StoreMissing."""

    @abstractmethod
    def conversations(self) -> Conversations:
        """The conversations of the web app. The library may not exist yet, or may be replaced later."""

    @abstractmethod
    def made_with(self) -> dict[str, str]:
        """The fingerprint of the store; empty without a readable store."""

    @abstractmethod
    def known_files(self, record: Path, *, thorough: bool) -> dict[Path, SourceFile]:
        """Absolute path -> file, for the files of the library.

        record: ingested.json, read if the library is damaged. thorough: look for damage in all of it.
        """

    @abstractmethod
    def begin_rebuild(self, made_with: dict[str, str]) -> Rebuild:
        """Begin to make the library again, or continue; ingest/rebuild.py does the rest. made_with: its fingerprint.

        The caller holds the writer lock.
        """

    def query_log(self, library: Library) -> QueryLog:
        """The log of questions. library: opened from this store."""
        return QueryLog(library.database)

    def open_indexes(self, library: Library) -> SearchIndexes:
        """The indexes at the library's current generation."""
        return indexes.open_indexes(self.folder, library, self.engine, self.notice)

    def update_indexes(self, library: Library) -> None:
        """Bring the indexes to the library's generation. The caller holds the writer lock."""
        indexes.update_indexes(self.folder, library, self.engine, self.notice)

    def index_faults(self, library: Library) -> list[str]:
        """The faults of the indexes, missing, damaged or out of date, one sentence each."""
        return indexes.faults(self.folder, library, self.engine)

    def check_in_background(self) -> None:
        """Check the indexes' files completely, in threads."""
        indexes.check_in_background(self.folder, self.engine)

    def claims(self, library: Library) -> Claims:
        """What keeps the writers of the library apart."""
        return OneWriter()

    def copy_of(self, library: Library, paper: str, folder: Path) -> Path | None:
        """A copy in `folder` of a paper's PDF that the store keeps; None if it keeps none."""
        return None

    def open_as_it_is(self) -> Library:
        """The library, which is not changed. Raises StoreMismatch for one of an earlier format, UserFileDamaged."""
        return self.open()

    def verify(self) -> list[str]:
        """The faults of library and indexes, one sentence each."""
        with closing(self.open_as_it_is()) as library:
            return indexes.verify(self.folder, library, self.engine)

    def is_sound(self) -> bool:
        """Whether the papers' data is undamaged; reads all of it. Does not check the indexes."""
        with closing(self.open_as_it_is()) as library:
            return replacing.is_sound(library)

    def repair(self) -> Repaired:
        """Restore what people made as far as it can be, and rebuild everything derived."""
        with closing(self.open()) as library:
            indexes.rebuild_indexes(self.folder, library, self.engine)
            return Repaired(library.chunk_count())


@dataclass(frozen=True)
class LocalStore(Store):
    """A store in a folder: library.sqlite, user.sqlite, and the indexes."""

    @property
    def database_path(self) -> Path:
        """The file with the papers."""
        return self.folder / indexes.LIBRARY

    @property
    def place(self) -> str:
        return str(self.folder)

    def exists(self) -> bool:
        return self.database_path.exists()

    def open(self, *, create: bool = False) -> Library:
        style, notice = self.citation_style, self.notice
        return Library(self.database_path, create=create, citation_style=style, notice=notice)

    def conversations(self) -> Conversations:
        from folio.store.conversations import Conversations

        return Conversations(self.database_path, notice=self.notice)

    def made_with(self) -> dict[str, str]:
        return replacing.read_if_sound(self.database_path, Library.fingerprint, self.notice) or {}

    def known_files(self, record: Path, *, thorough: bool) -> dict[Path, SourceFile]:
        """See Store and replacing.known_files."""
        return replacing.known_files(self.database_path, record, thorough=thorough, notice=self.notice)

    def open_as_it_is(self) -> Library:
        from folio.store import user_repair

        user_repair.require_whole(self.database_path)
        style, notice = self.citation_style, self.notice
        return Library(self.database_path, citation_style=style, notice=notice, updates=False)

    def begin_rebuild(self, made_with: dict[str, str]) -> Rebuild:
        """See Store. Raises UserFileDamaged."""
        from folio.store import user_repair

        user_repair.require_sound(self.database_path)  # the end of the rebuild reads it, and it may take long
        return LocalRebuild(self.database_path, made_with, self.notice)

    def repair(self) -> Repaired:
        from folio.store import user_repair

        is_complete = user_repair.repair(self.database_path, self.notice)
        return replace(super().repair(), is_complete=is_complete)


class LocalRebuild(Rebuild):
    """A library that is made again in a file next to the old one."""

    def __init__(self, path: Path, made_with: dict[str, str], notice: Notice) -> None:
        """path: of the old one."""
        self._path, self._notice = path, notice
        self._unfinished = path.with_name(replacing.UNFINISHED)
        self.library = replacing.open_unfinished(self._unfinished, made_with)

    def finish(self) -> None:
        """See Rebuild. A sound library stays, with other papers; a damaged one is set aside."""
        self.close()
        replacing.replace_library(self._path, self._unfinished, self._notice)

    def abandon(self) -> None:
        self.close()
        replacing.delete(self._unfinished)

    def close(self) -> None:
        self.library.close()
