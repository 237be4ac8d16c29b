"""What lets several computers write to a library in Milvus: what one of them alone may change for now.

Whoever changes a paper, or what a path holds, claims it (claims.py), and reads it then.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from folio.citation_label import CitationStyle
from folio.cluster.claims import LIBRARY, Claims
from folio.cluster.collections import Names
from folio.cluster.library_state import Which, short_hash
from folio.cluster.milvus_client import Milvus
from folio.cluster.milvus_filters import any_of
from folio.cluster.milvus_reader import MilvusReader
from folio.cluster.paper_rows import files_of
from folio.cluster.record_files import RecordFiles
from folio.errors import StoreBusy
from folio.store.database import Database
from folio.types import SourceFile

# Paths in one filter
_PATHS = 50


class MilvusWriter(MilvusReader):
    """The part of PaperStore that papers are changed with."""

    def __init__(
        self,
        milvus: Milvus,
        prefix: str,
        database: Database,
        citation_style: CitationStyle,
        records: Callable[[], RecordFiles],
        *,
        strong: bool = False,
        which: Which = "current",
    ) -> None:
        """records: opens the files of papers, for writers. strong: see MilvusReader. which: see library_state.py."""
        super().__init__(milvus, prefix, database, citation_style, strong=strong, which=which)
        self._open_records, self._holds_lock = records, strong
        self._made_claims: Claims | None = None
        self._epoch = ""  # that it has written to
        place = database.query("SELECT value FROM meta WHERE key = 'epoch'")[0][0]
        self._place = short_hash(socket.gethostname(), str(place))  # of the writer that holds this computer's lock

    @property
    def records(self) -> RecordFiles:
        """The files of papers."""
        return self._open_records()

    # Several writers

    @property
    def _claims(self) -> Claims:
        """What this writer alone may change. Who holds this computer's lock is the only such one."""
        if self._made_claims is None:
            self.create_shared()
            role = "ingest" if self._holds_lock else ""
            self._made_claims = Claims(self.milvus, Names(self._prefix).store, self._place, role)
        return self._made_claims

    @contextmanager
    def changing(self, *names: str, wait_s: float | None = None) -> Iterator[None]:
        """Inside, no other writer changes these papers, files and parts of the library. wait_s: see Claims.wait_for.

        Raises StoreBusy.
        """
        with self._claims.holding(names, wait_s):
            try:
                with self._as_it_is_now():
                    yield
            finally:
                self._memory.forget()

    def hold_library(self) -> None:
        """No other process writes to the library until this one is closed. Raises StoreBusy."""
        self._claims.wait_for([LIBRARY])

    @contextmanager
    def _as_it_is_now(self) -> Iterator[None]:
        """Inside, the library is read anew. Raises StoreBusy for an ingest if a rebuild has replaced its library."""
        self.look_again()
        with self._inside() as snapshot:
            epoch = snapshot.state.epoch
            if self._holds_lock and self._epoch and epoch != self._epoch:
                raise StoreBusy(
                    "Another process has rebuilt the library meanwhile, or put another in its place.",
                    "Run the same command again.",
                )
            self._epoch = epoch
            yield

    def claim(self, file: SourceFile, *, is_known: bool = False) -> bool:
        """See PaperStore."""
        names = (file.sha256, file.path)
        if not self._claims.take(names):
            return False
        with self._as_it_is_now():
            is_new = is_known or not self.rows_of_papers([file.sha256])
        if not is_new:
            self._claims.release(names)  # somebody else has just added it
        return is_new

    def release(self, file: SourceFile) -> None:
        """See PaperStore."""
        self._claims.release((file.sha256, file.path))

    def close(self) -> None:
        """See MilvusPapers."""
        if self._made_claims is not None:
            self._made_claims.close()
        super().close()

    @contextmanager
    def _changing_holders(self, paths: Iterable[str]) -> Iterator[set[str]]:
        """The papers that hold these paths, which this writer claims. Inside, no other one changes them either."""
        held = self._holding(paths)
        with self.changing(*held):
            yield held

    def _holding(self, paths: Iterable[str]) -> set[str]:
        wanted, found = set(paths), set()
        with self._inside() as snapshot, self.checked("the record of a file"):
            keys = [short_hash(path) for path in sorted(wanted)] if snapshot.state.epoch else []
            for at in range(0, len(keys), _PATHS):
                where = any_of("paths", keys[at : at + _PATHS])
                for row in self.milvus.rows(self.names.papers, where, ["id", "visible", "files"], strong=True):
                    if row["visible"] and wanted & {file.path for file in files_of(row)}:
                        found.add(str(row["id"]))
        return found

    def create_shared(self) -> None:
        """Create the collections that outlive an epoch."""
        for name, fields in Names(self._prefix).shared().items():
            self.milvus.create_missing(name, fields)
