"""A store in a folder of this computer: library.sqlite, and the indexes beside it. `StoreBackend` is its protocol."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from folio.citation_label import CitationStyle
from folio.protocols import Embedder
from folio.store import indexes
from folio.store.fingerprint import Reading
from folio.store.library import Library
from folio.store.paper_store import PaperStore, SearchIndexes
from folio.store.query_log import QueryLog
from folio.types import Notice, SourceFile

if TYPE_CHECKING:
    from folio.ingest.pipeline import Limits, PaperReader
    from folio.ingest.progress import IngestProgress, Outcome
    from folio.store.history import ConversationStore, QuestionLog


class StoreBackend(Protocol):
    """Where a library is kept: opening it, and what is done to all of it."""

    @property
    def database_path(self) -> Path:
        """The SQLite file with the library."""
        ...

    @property
    def place(self) -> str:
        """Where it is, in words: a folder, or an address."""
        ...

    def exists(self) -> bool:
        """Whether something was ever written there."""
        ...

    def open(self, *, create: bool = False) -> PaperStore:
        """The library. create: make a missing one, for callers that hold the writer lock; else StoreMissing."""
        ...

    def query_log(self, library: PaperStore) -> QuestionLog:
        """The log of questions. library: as it was opened here."""
        ...

    def conversations(self) -> ConversationStore:
        """The conversations of the web app. The library may not exist yet, and may be replaced later."""
        ...

    def open_indexes(self, library: PaperStore) -> SearchIndexes:
        """The indexes at the library's current generation."""
        ...

    def update_indexes(self, library: PaperStore) -> None:
        """Bring the indexes to the library's generation. The caller holds the writer lock."""
        ...

    def index_faults(self, library: PaperStore) -> list[str]:
        """What is missing, damaged or out of date in the indexes, one sentence each."""
        ...

    def check_in_background(self) -> None:
        """Check the indexes' files to their end in threads."""
        ...

    def made_with(self) -> dict[str, str]:
        """The fingerprint of the store; empty without a readable store."""
        ...

    def known_files(self, record: Path, *, thorough: bool) -> dict[Path, str]:
        """Absolute path -> name of the files that it was made from. record: ingested.json. thorough: see rebuild.py."""
        ...

    def rebuild(
        self,
        files: Sequence[SourceFile],
        embedder: Embedder,
        reading: Reading,
        limits: Limits,
        progress: IngestProgress,
        batch: int,
        read: PaperReader | None = None,
    ) -> Iterator[Outcome]:
        """Make the library again from these files, while the old one stays in use. The caller holds the writer lock.

        read: see pipeline.ingest.
        """
        ...

    def verify(self) -> list[str]:
        """The faults of library and indexes, one sentence each."""
        ...

    def is_sound(self) -> bool:
        """Whether the library itself has no fault. Reads all of it."""
        ...

    def repair(self) -> int:
        """Make everything derived again; returns the number of passages."""
        ...


@dataclass(frozen=True)
class LocalStore:
    """The store in a folder."""

    folder: Path
    engine: indexes.Engine
    citation_style: CitationStyle
    notice: Notice

    @property
    def database_path(self) -> Path:
        """See StoreBackend."""
        return self.folder / indexes.LIBRARY

    @property
    def place(self) -> str:
        """See StoreBackend."""
        return str(self.folder)

    def exists(self) -> bool:
        """See StoreBackend."""
        return self.database_path.exists()

    def open(self, *, create: bool = False) -> Library:
        """See StoreBackend."""
        return Library(self.database_path, create=create, citation_style=self.citation_style)

    def query_log(self, library: PaperStore) -> QueryLog:
        """See StoreBackend."""
        return QueryLog(library.database)

    def conversations(self) -> ConversationStore:
        """See StoreBackend."""
        from folio.store.conversations import Conversations

        return Conversations(self.database_path)

    def open_indexes(self, library: PaperStore) -> indexes.Indexes:
        """See StoreBackend."""
        return indexes.open_indexes(self.folder, _own(library), self.engine, self.notice)

    def update_indexes(self, library: PaperStore) -> None:
        """See StoreBackend."""
        indexes.update_indexes(self.folder, _own(library), self.engine, self.notice)

    def index_faults(self, library: PaperStore) -> list[str]:
        """See StoreBackend."""
        return indexes.faults(self.folder, _own(library), self.engine)

    def check_in_background(self) -> None:
        """See StoreBackend."""
        indexes.check_in_background(self.folder, self.engine)

    def made_with(self) -> dict[str, str]:
        """See StoreBackend."""
        from folio.ingest import rebuild

        return rebuild.read_if_sound(self.database_path, Library.fingerprint) or {}

    def known_files(self, record: Path, *, thorough: bool) -> dict[Path, str]:
        """See StoreBackend and rebuild.known_files."""
        from folio.ingest import rebuild

        return rebuild.known_files(self.database_path, record, thorough=thorough)

    def rebuild(
        self,
        files: Sequence[SourceFile],
        embedder: Embedder,
        reading: Reading,
        limits: Limits,
        progress: IngestProgress,
        batch: int,
        read: PaperReader | None = None,
    ) -> Iterator[Outcome]:
        """See StoreBackend and rebuild.rebuild."""
        from folio.ingest import rebuild

        path = self.database_path
        say = self.notice
        return rebuild.rebuild(path, files, embedder, reading, limits, progress, batch=batch, notice=say, read=read)

    def verify(self) -> list[str]:
        """See StoreBackend."""
        with closing(self.open()) as library:
            return indexes.verify(self.folder, library, self.engine)

    def is_sound(self) -> bool:
        """See StoreBackend."""
        with closing(self.open()) as library:
            return not library.check()

    def repair(self) -> int:
        """See StoreBackend: both indexes, from the library."""
        with closing(self.open()) as library:
            indexes.rebuild_indexes(self.folder, library, self.engine)
            return library.chunk_count()


def _own(library: PaperStore) -> Library:
    """The library as it was opened here."""
    assert isinstance(library, Library)
    return library
