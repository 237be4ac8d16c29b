"""Where a library is kept: `Store` has the operations on a whole library, `LocalStore` keeps it in a local folder.

Several computers share a library in PostgreSQL (folio/shared/store.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from folio.papers.label import CitationStyle
from folio.papers.model import Notice, SourceFile
from folio.store import indexes
from folio.store.indexes import SearchIndexes
from folio.store.library import Library
from folio.store.query_log import QueryLog

if TYPE_CHECKING:
    from folio.ingest.discovery import Outcome
    from folio.ingest.rebuild import RebuildPlan
    from folio.store.conversations import Conversations


@dataclass(frozen=True, slots=True)
class Repaired:
    """The result of a repair."""

    passages: int  # in the indexes
    is_complete: bool = True  # whether nothing that people made is lost


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
    def rebuild(self, plan: RebuildPlan) -> Iterator[Outcome]:
        """Make the library again, while the old one stays in use. The caller holds the writer lock."""

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

    def open_as_it_is(self) -> Library:
        """The library, which is not changed. Raises StoreMismatch for one of an earlier format, UserFileDamaged."""
        return self.open()

    def verify(self) -> list[str]:
        """The faults of library and indexes, one sentence each."""
        with closing(self.open_as_it_is()) as library:
            return indexes.verify(self.folder, library, self.engine)

    def is_sound(self) -> bool:
        """Whether the papers' data is undamaged; reads all of it. Does not check the indexes."""
        from folio.ingest import rebuild

        with closing(self.open_as_it_is()) as library:
            return rebuild.is_sound(library)

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
        from folio.ingest import rebuild

        return rebuild.read_if_sound(self.database_path, Library.fingerprint, self.notice) or {}

    def known_files(self, record: Path, *, thorough: bool) -> dict[Path, SourceFile]:
        """See Store and rebuild.known_files."""
        from folio.ingest import rebuild

        return rebuild.known_files(self.database_path, record, thorough=thorough, notice=self.notice)

    def open_as_it_is(self) -> Library:
        from folio.store import user_repair

        user_repair.require_whole(self.database_path)
        style, notice = self.citation_style, self.notice
        return Library(self.database_path, citation_style=style, notice=notice, updates=False)

    def rebuild(self, plan: RebuildPlan) -> Iterator[Outcome]:
        """See Store and rebuild.rebuild."""
        from folio.ingest import rebuild

        return rebuild.rebuild(self.database_path, plan, self.notice)

    def repair(self) -> Repaired:
        from folio.store import user_repair

        is_complete = user_repair.repair(self.database_path, self.notice)
        return replace(super().repair(), is_complete=is_complete)
