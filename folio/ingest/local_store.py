"""A store in a folder of this computer: library.sqlite, and the indexes beside it. `StoreBackend` is its protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from folio.citation_label import CitationStyle
from folio.errors import StoreDamaged, StoreUnfinished
from folio.protocols import Embedder
from folio.store import indexes
from folio.store.closing import closed_on_error
from folio.store.fingerprint import Reading
from folio.store.library import Library
from folio.store.paper_store import PaperStore, SearchIndexes
from folio.store.query_log import QueryLog
from folio.types import Notice, SourceFile

if TYPE_CHECKING:
    from folio.ingest.pipeline import Limits, PaperReader
    from folio.ingest.progress import IngestProgress, Outcome
    from folio.store.history import Asked, ConversationStore, QuestionLog
    from folio.store.lasting_tables import Lasting


class StoreBackend(Protocol):
    """Where a library is kept: opening it, and what is done to all of it."""

    @property
    def database_path(self) -> Path:
        """The SQLite file of this computer: the library, or a copy of what is known about works."""
        ...

    @property
    def place(self) -> str:
        """Where it is, in words: a folder, or an address."""
        ...

    @property
    def asks_first(self) -> bool:
        """Whether to ask before everything in it is replaced, because others may use it."""
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

    def asked(self) -> Iterator[Asked]:
        """All that is kept of questions, to be copied to another store; nothing if there is no library."""
        ...

    def keep_asked(self, asked: Iterable[Asked]) -> int:
        """Add what another store has kept to this library; returns how many questions were not here already."""
        ...

    def open_to_copy(self) -> PaperStore:
        """The library, all that was ever written to it, only to be read: it is not even migrated.

        Raises StoreMissing, and StoreMismatch where it would have to be.
        """
        ...

    def is_taken(self) -> bool:
        """Whether there is a library, or what is left of one, that a move would replace."""
        ...

    def begin_move(self, made_with: dict[str, str]) -> PaperStore:
        """A library to fill beside the one that serves, with what an interrupted move has brought; see move.py.

        made_with: the fingerprint of what is moved. Raises UsageError if it cannot be held here. The caller holds the
        writer lock.
        """
        ...

    def finish_move(self, library: PaperStore, lasting: Lasting, record: Callable[[PaperStore], None]) -> None:
        """Let the library that was filled take the place of what is there, and close it.

        lasting: what outlives papers. record: called when all else is written, before the move counts as ended.
        """
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


# The new library while a move fills it
UNFINISHED_MOVE = "move.sqlite"


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

    @property
    def asks_first(self) -> bool:
        """See StoreBackend."""
        return False

    def exists(self) -> bool:
        """See StoreBackend."""
        return self.database_path.exists()

    def open(self, *, create: bool = False) -> Library:
        """See StoreBackend."""
        if not self.exists() and (self.folder / UNFINISHED_MOVE).exists():
            raise unfinished_move(self.place, "local")
        return self._finished(self._opened(create=create))

    def _opened(self, *, create: bool = False, only_read: bool = False) -> Library:
        style = self.citation_style
        return Library(self.database_path, create=create, citation_style=style, only_read=only_read)

    def open_to_copy(self) -> Library:
        """See StoreBackend."""
        return self._finished(self._opened(only_read=True))

    def _finished(self, library: Library) -> Library:
        """The library. Raises StoreUnfinished, and closes it, if a move into it has not ended."""
        with closed_on_error(library), suppress(StoreDamaged):  # whoever reads it finds out
            if is_unfinished(library):
                raise unfinished_move(self.place, "local")
        return library

    def is_taken(self) -> bool:
        """See StoreBackend."""
        from folio.ingest import local_move

        return local_move.is_taken(self.database_path)

    def begin_move(self, made_with: dict[str, str]) -> Library:
        """See StoreBackend."""
        from folio.ingest import local_move

        return local_move.begin(self.database_path, made_with)

    def finish_move(self, library: PaperStore, lasting: Lasting, record: Callable[[PaperStore], None]) -> None:
        """See StoreBackend."""
        from folio.ingest import local_move

        def derive(library: Library) -> None:
            self.update_indexes(library)
            record(library)

        local_move.finish(self.database_path, _own(library), lasting, derive, self.notice)

    def query_log(self, library: PaperStore) -> QueryLog:
        """See StoreBackend."""
        return QueryLog(library.database)

    def conversations(self) -> ConversationStore:
        """See StoreBackend."""
        from folio.store.conversations import Conversations

        return Conversations(self.database_path)

    def asked(self) -> Iterator[Asked]:
        """See StoreBackend."""
        from folio.store.asked_rows import read_all

        if self.exists():
            with closing(self.open_to_copy()) as library:
                yield from read_all(library.database)

    def keep_asked(self, asked: Iterable[Asked]) -> int:
        """See StoreBackend. One transaction adds all."""
        from folio.store.asked_rows import keep_all

        with closing(self.open()) as library:
            return keep_all(library.database, asked)

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


def is_unfinished(library: Library) -> bool:
    """Whether a move into a library has not ended. Raises StoreDamaged."""
    return bool(library.database.query("SELECT 1 FROM meta WHERE key = 'moving'"))


def unfinished_move(place: str, to: str) -> StoreUnfinished:
    """The error for a place that a move into has not ended."""
    return StoreUnfinished(
        f"The move of a library to {place} has not ended.",
        f"Run `python -m folio move --to {to}` again: it goes on where it stopped. Or give it up, and read your PDFs:"
        f" `python ingest.py --rebuild{' --yes' * (to == 'milvus')}`.",
    )


def _own(library: PaperStore) -> Library:
    """The library as it was opened here."""
    assert isinstance(library, Library)
    return library
