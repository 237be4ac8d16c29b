"""A store in Milvus: `StoreBackend` over collections, and the files of papers that they can be made of again.

A rebuild, and a repair from the files, fill the collections of a new epoch while the old ones serve; one row then names
the new epoch, and the old collections are dropped. One that was interrupted is continued, or begun again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4

from folio.citation_label import CitationStyle
from folio.cluster import history_copy, milvus_move
from folio.cluster.collections import FORMAT, RECORDS, Names
from folio.cluster.epochs import drop_epoch, drop_unused
from folio.cluster.history_rows import HistoryRows
from folio.cluster.library_state import (
    LibraryState,
    Which,
    about,
    delete_text,
    forget_state,
    read_state,
    read_text,
    set_statistics,
    write_state,
    write_text,
)
from folio.cluster.milvus_check import faults_of, require_whole, unsaid_of
from folio.cluster.milvus_client import Milvus
from folio.cluster.milvus_conversations import MilvusConversations
from folio.cluster.milvus_errors import REPAIR
from folio.cluster.milvus_indexes import MilvusIndexes, MilvusVectors, MilvusWords
from folio.cluster.milvus_library import MilvusLibrary
from folio.cluster.milvus_log import MilvusQueryLog
from folio.cluster.record_files import RecordFiles
from folio.cluster.shared_works import leave_out_damaged
from folio.cluster.term_statistics import TermStatistics
from folio.cluster.word_counts import counted
from folio.errors import StoreDamaged, StoreError, StoreMissing
from folio.ingest.local_store import unfinished_move
from folio.offline import is_loopback
from folio.paper_metadata import SOURCES, from_json
from folio.protocols import Embedder
from folio.store.closing import closed_on_error
from folio.store.database import Database
from folio.store.fingerprint import Reading, differences, fingerprint
from folio.store.history import Asked
from folio.store.paper_store import PaperStore
from folio.types import Notice, SourceFile

if TYPE_CHECKING:
    from folio.ingest.pipeline import Limits, PaperReader
    from folio.ingest.progress import IngestProgress, Outcome
    from folio.store.lasting_tables import Lasting

# A copy of what services say of works (shared_works.py)
OWN_DATABASE = "computer.sqlite"
# Seconds that an ingest waits for another one that counts the words of its papers
_COUNTING_S = 3_600.0
_INGEST = "Put PDFs into papers/ and run `python ingest.py`."


@dataclass(frozen=True)
class MilvusStore:
    """See StoreBackend."""

    uri: str
    token: str
    prefix: str
    records_uri: str
    folder: Path  # of this computer
    citation_style: CitationStyle
    timeout_s: float
    notice: Notice

    @cached_property
    def milvus(self) -> Milvus:
        """The connection, opened when it is first needed."""
        host = urlsplit(self.uri).hostname
        if host is not None and not is_loopback(host):
            self.notice(f"The library is in Milvus at {self.uri}: papers and questions are sent there.")
        return Milvus(self.uri, self.token, self.timeout_s)

    @cached_property
    def _records(self) -> RecordFiles:
        return RecordFiles(self.records_uri)

    @cached_property
    def _statistics(self) -> dict[str, TermStatistics]:
        """The term statistics that were read last, by their key."""
        return {}

    @property
    def database_path(self) -> Path:
        """See StoreBackend."""
        return self.folder / OWN_DATABASE

    @property
    def place(self) -> str:
        """See StoreBackend."""
        return f"{self.uri} ({self.prefix})"

    @property
    def asks_first(self) -> bool:
        """See StoreBackend: others may use the same collections."""
        return True

    def exists(self) -> bool:
        """See StoreBackend."""
        return not self._is_absent and Names(self.prefix).store in self.milvus.collections()

    @property
    def _is_absent(self) -> bool:
        """Whether it is a file that is not there: opening it would create it."""
        return "://" not in self.uri and not Path(self.uri).exists()

    def open(self, *, create: bool = False) -> MilvusLibrary:
        """See StoreBackend. Raises StoreDamaged if a collection is missing, or is not as the library says."""
        return self._opened(create=create, strong=create)

    def _opened(self, *, create: bool = False, strong: bool) -> MilvusLibrary:
        state = LibraryState() if self._is_absent else self._state("current")
        if not state.epoch and self.exists() and self._state("moving").epoch:
            raise unfinished_move(self.place, "milvus")
        if not state.epoch and not create:
            raise StoreMissing(f"There is no library at {self.place} yet.", _INGEST)
        if state.epoch:
            require_whole(self.milvus, Names(self.prefix, state.epoch), state, self.place)
        library = self._library("current", strong=strong)
        papers = Names(self.prefix, state.epoch).papers
        if state.statistics and not self.milvus.some(papers, 'id >= ""', ("id",), 1):
            with closed_on_error(library):
                if self._read_statistics(library).passages:
                    library.require_rows()
        return library

    def open_to_copy(self) -> MilvusLibrary:
        """See StoreBackend."""
        return self._opened(strong=True)

    def is_taken(self) -> bool:
        """See StoreBackend."""
        return self.exists() and milvus_move.is_taken(self.milvus, Names(self.prefix))

    def begin_move(self, made_with: dict[str, str]) -> MilvusLibrary:
        """See StoreBackend."""
        return milvus_move.begin(self._library("moving", strong=True), self._readable_state, made_with)

    def finish_move(self, library: PaperStore, lasting: Lasting, record: Callable[[PaperStore], None]) -> None:
        """See StoreBackend."""
        own = _own(library)
        self.update_indexes(own)
        milvus_move.finish(own, self._readable_state(), self._history, lasting, record)

    def _state(self, which: Which) -> LibraryState:
        try:
            return read_state(self.milvus, Names(self.prefix), which)
        except (ValueError, TypeError, LookupError) as error:
            raise StoreDamaged(f"The state of the library at {self.place} cannot be read: {error}.", REPAIR) from error

    def _readable_state(self) -> LibraryState:
        """The current state, or that of a library without papers if it cannot be read."""
        try:
            return self._state("current")
        except StoreDamaged:
            return LibraryState()

    def _library(self, which: Which, *, strong: bool) -> MilvusLibrary:
        database = Database(self.database_path, (("epoch", uuid4().hex), ("generation", "0")), create=True)
        with closed_on_error(database):
            style, records = self.citation_style, lambda: self._records
            return MilvusLibrary(self.milvus, self.prefix, database, style, records, strong=strong, which=which)

    # Questions

    @cached_property
    def _history(self) -> HistoryRows:
        return HistoryRows(lambda: None if self._is_absent else self.milvus, self.prefix)

    def query_log(self, library: PaperStore) -> MilvusQueryLog:
        """See StoreBackend."""
        return MilvusQueryLog(self._history)

    def conversations(self) -> MilvusConversations:
        """See StoreBackend."""
        return MilvusConversations(self._history)

    def asked(self) -> Iterator[Asked]:
        """See StoreBackend."""
        return history_copy.read_all(self._history)

    def keep_asked(self, asked: Iterable[Asked]) -> int:
        """See StoreBackend. Each is added by itself; a second call goes on."""
        return history_copy.keep_all(self._history, asked)

    # Indexes

    def open_indexes(self, library: PaperStore) -> MilvusIndexes:
        """See StoreBackend."""
        own = _own(library)
        with own.reading() as stamp:
            state = own.state()
            known = self._statistics.get(state.statistics)
            if known is None:
                known = self._read_statistics(own)
                if not state.statistics:  # of an ingest that has not ended
                    known = counted(own, known)
                self._statistics.clear()
                self._statistics[state.statistics] = known
            if known.passages:
                own.require_rows()
            passages, fine = MilvusVectors(own, "passage"), MilvusVectors(own, "fine")
            words, again = MilvusWords(own, known), lambda: self.open_indexes(own)
            return MilvusIndexes(stamp, passages, words, again, fine if state.is_dual else None)

    def _read_statistics(self, library: MilvusLibrary) -> TermStatistics:
        key = library.state().statistics
        if not key:
            return TermStatistics()
        with library.checked("the term statistics"):
            return TermStatistics.from_text(read_text(self.milvus, library.names, key))

    def update_indexes(self, library: PaperStore) -> None:
        """See StoreBackend: count the words of new papers, delete the rows of removed ones, write all to disk."""
        own = _own(library)
        own.name_records()
        own.finish_edits()
        with own.changing("statistics", wait_s=_COUNTING_S), own.reading():
            if self.milvus.is_lite_server:  # it copies all rows that are not on the disk yet for each request
                self.milvus.flush(own.names.chunks)
            try:
                before = self._read_statistics(own)
            except StoreDamaged:
                before = TermStatistics()
            after = counted(own, before)
            if after != before or not own.state().statistics:
                key = f"terms.{time_ns()}"
                write_text(self.milvus, own.names, key, after.to_text())
                set_statistics(self.milvus, own.names, own.which, key, own.state())
            own.sweep()
            for name in (*own.names.of_epoch(dual=own.state().is_dual), *own.names.shared()):
                self.milvus.flush(name)

    def index_faults(self, library: PaperStore) -> list[str]:
        """See StoreBackend."""
        own = _own(library)
        with own.reading():
            known = self._read_statistics(own).counted.keys()
            versions = {str(row["version"]) for row in own.paper_rows()}
        return [] if known == versions else ["The words of some papers are not counted yet"]

    def check_in_background(self) -> None:
        """See StoreBackend: Milvus checks its own files."""

    # Everything

    def made_with(self) -> dict[str, str]:
        """See StoreBackend."""
        return {} if self._is_absent else self._readable_state().fingerprint

    def known_files(self, record: Path, *, thorough: bool) -> dict[Path, str]:
        """See StoreBackend."""
        from folio.ingest import rebuild

        if not self.exists() or (thorough and self._state("moving").epoch):
            return {}
        try:
            with closing(self.open(create=True)) as library:
                return {Path(file.path): file.name for file in library.files()}
        except StoreDamaged:
            if not thorough:
                raise
            return rebuild.listed_files(record)

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
        """See StoreBackend. Raises StoreError if no file could be read: the old library stays."""
        from folio.ingest import paper_vectors, pipeline
        from folio.ingest.scanned_pages import FOLDER, ScannedPages

        made_with = fingerprint(embedder, reading)
        paths = frozenset(file.path for file in files)
        with closing(self._begin(made_with)) as library:
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
                scans=ScannedPages(self.folder / FOLDER),
            )
            paper_vectors.refresh(library, lambda: embedder, batch)
            if not library.chunk_count():
                self._give_up()
                raise StoreError(
                    "None of the files could be read.", "See the reasons above. The index has not been changed."
                )
            self._finish(library)

    def repair(self) -> int:
        """See StoreBackend: all collections from the files of papers, without embedding anything again."""
        kept = self._records.library()
        epoch, made_with = str(kept.get("epoch")), kept.get("fingerprint")
        if kept.get("format") not in range(RECORDS, FORMAT + 1) or not isinstance(made_with, dict):
            raise StoreDamaged(
                f"The records at {self.records_uri} were written by another version of Folio.",
                "Use that version, or read your PDFs again: `python ingest.py --rebuild --yes`.",
            )
        with closing(self._begin({str(key): str(value) for key, value in made_with.items()})) as library:
            done = {paper.id for paper in library.papers()}
            for paper, layers in self._records.metadata():
                with library.checked("the metadata of a paper"):
                    for source in SOURCES:
                        if source in layers:
                            library.set_metadata(paper, source, from_json(layers[source]))
            for record, files in self._records.records(epoch):
                if record.paper.id not in done:
                    library.put_back(record, files)
            self._finish(library)
            return library.chunk_count()

    def _begin(self, made_with: dict[str, str]) -> MilvusLibrary:
        """The library of an interrupted rebuild if it can be continued, otherwise an empty one of a new epoch."""
        library = self._library("building", strong=True)
        with closed_on_error(library):
            library.hold_library()
            there = self.milvus.collections()
            leave_out_damaged(self.milvus, Names(self.prefix))
            state = self._building()
            building = Names(self.prefix, state.epoch)
            is_whole = state.epoch and building.of_epoch(dual=state.is_dual).keys() <= there
            if not is_whole or differences(state.fingerprint, made_with) or not state.is_of_now:
                self._give_up()
                library.look_again()
                library.set_fingerprint(made_with)
            return library

    def _building(self) -> LibraryState:
        """The state of an interrupted rebuild. One that was killed at its end has become the current library."""
        state = self._state("building")
        if not state.epoch or state.epoch != self._readable_state().epoch:
            return state
        forget_state(self.milvus, Names(self.prefix), "building")
        return LibraryState()

    def _give_up(self) -> None:
        """Drop what an interrupted rebuild has left."""
        state = self._building()
        if state.epoch:
            forget_state(self.milvus, Names(self.prefix), "building")
            drop_epoch(self.milvus, Names(self.prefix), self._records, state.epoch)

    def _finish(self, library: MilvusLibrary) -> None:
        """Make the epoch that was filled the current one, and drop the old one."""
        self.update_indexes(library)
        names = Names(self.prefix)
        old, new = self._readable_state(), self._state("building")
        self._records.write_library(about(new.epoch, new.fingerprint))
        write_state(self.milvus, names, new, "current")
        library.is_current()
        forget_state(self.milvus, names, "building")
        for key in {old.statistics, old.outdated} - {new.statistics, new.outdated}:
            delete_text(self.milvus, names, key)
        if old.epoch and old.epoch != new.epoch:
            drop_epoch(self.milvus, names, self._records, old.epoch)
        drop_unused(self.milvus, names, self._records, used={new.epoch})

    def verify(self) -> list[str]:
        """See StoreBackend."""
        with closing(self.open(create=True)) as library:
            found = [*faults_of(library), *unsaid_of(library, self._records)]
            found += [f"{fault}." for fault in self.index_faults(library)]
        return [*found, *history_copy.faults_of(self._history)]

    def is_sound(self) -> bool:
        """See StoreBackend."""
        with closing(self.open(create=True)) as library:
            return not faults_of(library)


def _own(library: PaperStore) -> MilvusLibrary:
    """The library as it was opened here."""
    assert isinstance(library, MilvusLibrary)
    return library
