"""Reads a library in Milvus: papers, their text, passages and vectors, each question within one state of it.

Searches and reads by key use the consistency level "Bounded": a reader may be some seconds behind the writers, and
never waits for them. A paper's row becomes visible last, but it may reach a reader before the paper's other rows do:
these are then read again with "Strong", which waits until everything that was written before is seen. snapshot.py says
what is read with Strong at once.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

import numpy as np

from folio.citation_label import CitationStyle
from folio.cluster.as_written import as_written
from folio.cluster.collections import Names
from folio.cluster.library_state import LibraryState, Which, read_state
from folio.cluster.milvus_client import Milvus, Row
from folio.cluster.milvus_errors import REPAIR, MissingCollection
from folio.cluster.milvus_filters import is_key
from folio.cluster.paper_record import Structure, joined, structure
from folio.cluster.paper_rows import files_of
from folio.cluster.shared_works import SharedWorks
from folio.cluster.snapshot import Snapshot, SnapshotMemory
from folio.errors import IndexDamaged, StoreBusy, StoreDamaged, StoreError
from folio.paper_metadata import SOURCES, Metadata, Source, from_json, merged
from folio.store import citation_labels
from folio.store.checked_texts import CheckedTexts
from folio.store.database import Database
from folio.store.notices import attached, attached_to_all
from folio.store.paper_vectors import PaperVector
from folio.store.rows import Stamp
from folio.types import Failure, Grain, Paper, SourceFile, Vectors

T = TypeVar("T")

_PAPER = ("id", "version", "files", "added", "crc", "passages", "fine", "alike", "work", "vector_hash")
VISIBLE = "visible == 1"
# The fields that tell a passage, and a fine one
CHUNK = ("chunk", "paper", "version", "start", "end", "text_hash")
FINE_CHUNK = (*CHUNK, "parent")
# Structures of papers that are kept in memory, and shared by the readers of a process no further
_STRUCTURES_KEPT = 2_000
_AGAIN = "Run the same command again."


class MilvusPapers:
    """The part of PaperStore that reads papers. One thread at a time may use it."""

    def __init__(
        self,
        milvus: Milvus,
        prefix: str,
        database: Database,
        citation_style: CitationStyle,
        *,
        strong: bool = False,
        which: Which = "current",
    ) -> None:
        """database: of this computer. strong: read all that was ever written, as a writer must."""
        self.milvus, self._database = milvus, database
        self._works = SharedWorks(milvus, prefix, database)
        self._prefix, self._citation_style, self._strong, self.which = prefix, citation_style, strong, which
        self._texts = CheckedTexts()
        self._structures: dict[str, Structure] = {}  # by version: a version never changes
        self._counts: tuple[Stamp, dict[Grain, int]] | None = None
        self._snapshot: Snapshot | None = None
        self._memory = SnapshotMemory(strong=strong, is_current=milvus.is_lite)

    def close(self) -> None:
        """Close what is of this computer; the connection is shared."""
        self._database.close()

    @property
    def database(self) -> Database:
        """See PaperStore: a copy, at its newest state, of what all computers share."""
        with self._inside() as snapshot:
            stamp = self._stamp(snapshot.state)
            self._works.note_papers(f"{stamp.epoch}.{stamp.generation}", self.rows_of_papers)
        return self._database

    @property
    def is_read_only(self) -> bool:
        """See PaperStore."""
        return self._database.is_read_only

    # The state

    def identity(self) -> Hashable:
        """See PaperStore."""
        return self._read_state().epoch or None

    @contextmanager
    def reading(self) -> Iterator[Stamp]:
        """See PaperStore. Papers that were read once stay as they were; others may be newer than the generation."""
        if self._snapshot is not None:
            yield self._stamp(self._snapshot.state)
            return
        state = self._read_state()
        self._works.refresh(state.works)
        self._snapshot = self._memory.snapshot_of(state)
        try:
            yield self._stamp(self._snapshot.state)
        except (MissingCollection, StoreDamaged, IndexDamaged) as error:
            before, now = self._snapshot.state, self._read_state()
            if now.epoch != before.epoch:
                raise StoreBusy("The library was rebuilt while it was being read.", _AGAIN) from error
            if (now.generation, now.statistics) != (before.generation, before.statistics):
                raise StoreBusy("The library was changed while it was being read.", _AGAIN) from error
            raise
        finally:
            self._memory.keep(self._snapshot)
            self._snapshot = None

    def look_again(self) -> None:
        """What was read before may have changed."""
        self._memory.forget()
        if self._snapshot is not None:
            self._snapshot = self._memory.snapshot_of(self._read_state())

    @property
    def strong(self) -> bool:
        """Whether to wait for all that was written before."""
        return self._strong if self._snapshot is None else self._snapshot.strong

    @contextmanager
    def _inside(self) -> Iterator[Snapshot]:
        with self.reading():
            assert self._snapshot is not None
            yield self._snapshot

    @contextmanager
    def _as_writer(self) -> Iterator[Snapshot]:
        """As `_inside`, with all that was ever written: for a change by one who opened the library to read."""
        before, self._strong = self._strong, True
        self._memory.strong = True
        try:
            self.look_again()
            with self._inside() as snapshot:
                yield snapshot
        finally:
            self._strong = self._memory.strong = before
            self._memory.forget()

    def state(self) -> LibraryState:
        """The state that is read."""
        with self._inside() as snapshot:
            return snapshot.state

    @property
    def names(self) -> Names:
        """The collections of the epoch that is read."""
        return Names(self._prefix, self.state().epoch, self.which == "moving")

    def _read_state(self) -> LibraryState:
        with self.checked("the state of the library"):
            return read_state(self.milvus, Names(self._prefix), self.which)

    @staticmethod
    def _stamp(state: LibraryState) -> Stamp:
        return Stamp(state.epoch, state.generation)

    def fingerprint(self) -> dict[str, str]:
        """See PaperStore."""
        return self.state().fingerprint

    @property
    def dimension(self) -> int:
        """Of the vectors; 0 in a new store."""
        return int(self.fingerprint().get("dimension", 0))

    def papers_stamp(self) -> tuple[Stamp, int]:
        """See PaperStore."""
        state = self.state()
        return self._stamp(state), state.described

    # Papers

    def papers(self) -> list[Paper]:
        """See PaperStore."""
        with self._inside() as snapshot:
            if not snapshot.state.epoch:
                return []
            rows = self.paper_rows()
            self._read_structures(row["version"] for row in rows)
            layers: dict[str, dict[Source, Metadata]] = {row["id"]: {} for row in rows}
            for row in self._rows(self.names.metadata, 'key >= ""', ("paper", "source", "fields")):
                if row["paper"] in layers:
                    layers[row["paper"]] |= self._layer(row)
            snapshot.layers |= layers
            made = sorted((self._paper(row) for row in rows), key=lambda paper: (paper.file, paper.id))
        return citation_labels.name_all(attached_to_all(self._database, made), self._citation_style)

    def papers_by_id(self, ids: Iterable[str]) -> list[Paper]:
        """See PaperStore."""
        with self._inside():
            wanted = list(ids)
            found = self._papers_of(wanted)
            # Those that citations would name alike count too: they get letters.
            everybody = dict(found)
            while True:
                rows = [row for row, _ in everybody.values()]
                others = [id for name in ("alike", "work") for id in self._alike(name, {row[name] for row in rows})]
                new = [id for id in dict.fromkeys(others) if id not in everybody]
                if not new:
                    break
                everybody |= self._papers_of(new)
            named = citation_labels.name_all([paper for _, paper in everybody.values()], self._citation_style)
        by_id = {paper.id: paper for paper in named}
        return attached(self._database, [by_id[id] for id in wanted if id in found])

    def _alike(self, field: str, hashes: set[str]) -> list[str]:
        """The papers that have one of these hashes in this field."""
        with self._inside() as snapshot:
            missing = hashes - snapshot.alike.keys() - {""}
            snapshot.alike |= {each: [] for each in missing}
            wanted = ["id", "visible", field]
            for row in self.milvus.rows_of(self.names.papers, field, missing, wanted, strong=self.strong):
                if row["visible"]:
                    snapshot.alike[row[field]].append(row["id"])
            return [id for each in hashes - {""} for id in snapshot.alike[each]]

    def _papers_of(self, ids: Iterable[str]) -> dict[str, tuple[Row, Paper]]:
        """Papers without their letters, with their rows."""
        with self._inside() as snapshot:
            rows = self.rows_of_papers(ids)
            self._read_structures(row["version"] for row in rows.values())
            missing = [id for id in rows if id not in snapshot.layers]
            for id in missing:
                snapshot.layers[id] = {}
            fields = ("paper", "source", "fields")
            for row in self.milvus.rows_of(self.names.metadata, "paper", missing, fields, strong=self.strong):
                snapshot.layers[row["paper"]] |= self._layer(row)
            return {id: (row, self._paper(row)) for id, row in rows.items()}

    def paper_rows(self) -> list[Row]:
        """The row of every paper, in the order they were added."""
        with self._inside() as snapshot:
            if not snapshot.state.epoch:
                return []
            rows = list(self._rows(self.names.papers, VISIBLE, _PAPER))
            snapshot.papers |= {row["id"]: row for row in rows}
            return sorted(rows, key=lambda row: (row["added"], row["id"]))

    def rows_of_papers(self, ids: Iterable[str]) -> dict[str, Row]:
        """The rows of these papers; unknown ids are skipped."""
        with self._inside() as snapshot:
            known = snapshot.papers
            missing = (
                [id for id in dict.fromkeys(ids) if id not in known and is_key(id)] if snapshot.state.epoch else []
            )
            known |= dict.fromkeys(missing)
            fields = (*_PAPER, "visible")
            for found in self.milvus.rows_of(self.names.papers, "id", missing, fields, strong=self.strong):
                known[found["id"]] = found if found["visible"] else None
            return {id: row for id in ids if (row := known.get(id)) is not None}

    def _paper(self, row: Row) -> Paper:
        found = self._structures[row["version"]]
        layers = self._layers(row)
        with self.checked("the record of a paper"):
            file = min(files_of(row), key=lambda file: file.name)
            return Paper(
                row["id"],
                file.name,
                merged(layers),
                found.pages,
                found.length,
                int(row["passages"]),
                found.problems,
                found.sections,
            )

    def _layers(self, row: Row) -> dict[Source, Metadata]:
        assert self._snapshot is not None
        return {"pdf": self._structures[row["version"]].metadata, **self._snapshot.layers.get(row["id"], {})}

    def _layer(self, row: Row) -> dict[Source, Metadata]:
        with self.checked("the metadata of a paper"):
            if row["source"] not in SOURCES:
                raise ValueError("it is from an unknown source")
            return {row["source"]: from_json(json.loads(row["fields"]))}

    def _read_structures(self, versions: Iterable[str]) -> None:
        wanted = set(versions)
        while len(self._structures) > max(_STRUCTURES_KEPT, len(wanted)):
            self._structures.pop(next(iter(self._structures)))
        missing = wanted - self._structures.keys()
        for version, text in self._complete(self.names.structure, missing, ("part", "value")).items():
            with self.checked("the record of a paper"):
                self._structures[version] = structure(json.loads(text))

    def _complete(self, name: str, versions: set[str], fields: tuple[str, str]) -> dict[str, str]:
        """The text of each of these versions, of its parts. Raises StoreDamaged if one has none."""
        place, value = fields
        found: dict[str, list[tuple[int, str]]] = {}
        for strong in (self.strong, True):
            missing = versions - found.keys()
            for row in self.milvus.rows_of(name, "version", missing, ["version", *fields], strong=strong):
                found.setdefault(row["version"], []).append((int(row[place]), str(row[value])))
            if len(found) == len(versions):
                return {version: joined(each) for version, each in found.items()}
        raise self._missing(versions - found.keys(), "the record of a paper is missing")

    def _missing(self, versions: Iterable[str], what: str) -> StoreError:
        """The error for rows of versions that are not there: damage, unless somebody has just removed their papers."""
        wanted, fields = set(versions), ["version", "visible"]
        rows = self.milvus.rows_of(self.names.papers, "version", wanted, fields, strong=True)
        if wanted <= {row["version"] for row in rows if row["visible"]}:
            return self.damaged(what)
        return StoreBusy("A paper was removed or replaced while it was being read.", _AGAIN)

    def files(self) -> list[SourceFile]:
        """See PaperStore."""
        with self.checked("the record of a file"):
            return [file for row in self.paper_rows() for file in files_of(row)]

    def added(self) -> dict[str, str]:
        """See PaperStore."""
        return {row["id"]: row["added"] for row in self.paper_rows()}

    def failures(self) -> list[Failure]:
        """See PaperStore."""
        with self._inside() as snapshot, self.checked("the record of a file that could not be read"):
            if not snapshot.state.epoch and self.names.store not in self.milvus.collections():
                return []
            rows = self._rows(self.names.store, f'key like "{self.names.failures}%"', ("key", "value"))
            found = [json.loads(row["value"]) for row in rows]
            made = [Failure(SourceFile(*map(str, each[:3])), str(each[3]), str(each[4])) for each in found]
        return sorted(made, key=lambda failure: failure.file.path)

    def counts(self) -> dict[str, int]:
        """See PaperStore."""
        papers = self.paper_rows()
        files = sum(len(files_of(row)) for row in papers)
        return {"papers": len(papers), "files": files, "failures": len(self.failures())}

    def papers_without_sections(self) -> int:
        """See PaperStore: no version that knew no sections wrote to Milvus."""
        return 0

    def described(self) -> set[str]:
        """See PaperStore."""
        with self._inside() as snapshot:
            if not snapshot.state.epoch:
                return set()
            return {row["paper"] for row in self._rows(self.names.metadata, 'source != "pdf"', ("paper",))}

    def metadata_layers(self, paper: str) -> dict[Source, Metadata]:
        """See PaperStore."""
        with self._inside():
            if paper in self._papers_of([paper]):
                return self._layers(self.rows_of_papers([paper])[paper])
            if not is_key(paper) or not self.state().epoch:
                return {}
            fields = ("paper", "source", "fields")
            rows = list(self.milvus.rows_of(self.names.metadata, "paper", [paper], fields, strong=self.strong))
            return {source: said for row in rows for source, said in self._layer(row).items()}

    def paper_vectors(self) -> dict[str, PaperVector]:
        """See PaperStore."""
        with self._inside() as snapshot, self.checked("the vector of a paper"):
            if not snapshot.state.epoch:
                return {}
            rows = self._rows(self.names.papers, VISIBLE, ("id", "vector_hash", "vector"))
            return {
                row["id"]: PaperVector(bytes.fromhex(row["vector_hash"]), vector_of(row))
                for row in rows
                if row["vector_hash"]
            }

    def _rows(self, name: str, where: str, fields: Sequence[str]) -> Iterator[Row]:
        return self.milvus.rows(name, where, fields, strong=self.strong)

    def damaged(self, what: str) -> StoreDamaged:
        """The error that says what is wrong with the collections."""
        return StoreDamaged(f"The library in Milvus at {self.milvus.uri} is damaged: {what}.", REPAIR)

    def checked(self, what: str) -> AbstractContextManager[None]:
        """See as_written."""
        return as_written(lambda said: self.damaged(f"{what} cannot be read ({said[:100]})"))


def vector_of(row: Row) -> Vectors:
    return np.asarray(row["vector"], dtype=np.float32)
