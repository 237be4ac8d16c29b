"""A library in Milvus, to read and to write: `PaperStore` over collections, with a file for each paper beside them.

A paper is added in this order: its record as a file, an intent, its rows, and last its row in `papers`, which makes it
visible and hides what its file held before, in one request. A kill in between leaves rows that no paper names; the
intent says which, and the next writer sweeps them away. Milvus has no transactions over collections, so this order is
what a transaction is elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from time import time
from uuid import uuid4

from folio.cluster import unfinished_edits
from folio.cluster.collections import PAPERS, Names
from folio.cluster.epochs import create_epoch
from folio.cluster.library_state import LibraryState, about, note, short_hash, write_state
from folio.cluster.milvus_client import Row
from folio.cluster.milvus_filters import is_key
from folio.cluster.milvus_metadata import NEW_PAPER, MilvusMetadata
from folio.cluster.paper_record import PaperRecord
from folio.cluster.paper_rows import (
    chunk_rows,
    files_fields,
    files_of,
    fitting,
    found_by,
    page_rows,
    paper_row,
    structure_rows,
)
from folio.errors import StoreMismatch, StoreRefused
from folio.paper_metadata import NO_METADATA, Metadata, Source, merged
from folio.store.digests import text_hash
from folio.store.fingerprint import differences
from folio.store.paper_vectors import PaperVector
from folio.types import Failure, NewPaper, SourceFile, Vectors

# Seconds after which another computer's intent is that of an ingest that was killed
_INTENT_S = 86_400


class MilvusLibrary(MilvusMetadata):
    """See PaperStore."""

    @cached_property
    def _filed(self) -> set[str]:
        """The versions of papers whose files are in the records, as far as they were written here."""
        return set()

    # What the store was made with

    def set_fingerprint(self, fingerprint: dict[str, str]) -> None:
        """See PaperStore. The first one creates the collections. Raises StoreMismatch if another has just done so."""
        with self.changing("fingerprint"):
            self._set_fingerprint(fingerprint)

    def _set_fingerprint(self, fingerprint: dict[str, str]) -> None:
        epoch, made_with = self.state().epoch, self.state().fingerprint
        if other := differences(made_with, fingerprint) if made_with else []:
            raise StoreMismatch(
                f"Another computer has just begun this library with other settings: {', '.join(other)}.",
                "Give all computers the same settings, and run the same command again.",
            )
        if not epoch:
            if self.which == "current":
                self.records.require_unused()
            epoch = create_epoch(self.milvus, self._prefix, fingerprint)
        write_state(self.milvus, self.names, LibraryState(epoch, fingerprint), self.which)
        self.look_again()
        self.name_records()

    def name_records(self) -> None:
        """Have the records of papers say which epoch is the current one."""
        current = about(self.names.epoch, self.fingerprint())
        if self.which == "current" and self.records.read_library() != current:
            self.records.write_library(current)

    def is_current(self) -> None:
        """The epoch that was filled has become the current one."""
        self.which = "current"
        self.look_again()

    # Papers

    def add(
        self,
        paper: NewPaper,
        file: SourceFile,
        chunk_ids: Sequence[int],
        vectors: Vectors,
        as_a_whole: PaperVector | None = None,
        added: str = "",
    ) -> None:
        """See PaperStore."""
        if not is_key(paper.id) or (any(paper.fine_spans) and not self.state().is_dual):
            raise StoreRefused(f"The library cannot hold the paper {paper.id[:80]!r}.", NEW_PAPER)
        added = added or datetime.now(UTC).isoformat(timespec="microseconds")
        record = PaperRecord(paper, uuid4().hex, added, tuple(chunk_ids), vectors, as_a_whole)
        # Whoever changes what this path holds now needs the path too.
        with self.changing(file.path, paper.id), self._changing_holders([file.path]) as held, self._inside():
            before = self.rows_of_papers([paper.id])
            others = held - {paper.id}
            for id in others:
                self._inherit(id, paper)
            kept = [each for row in before.values() for each in files_of(row) if each.path != file.path]
            self.records.write(self.names.epoch, record)
            self._replace(record, [*kept, file], self._rows_without({file.path}, others))
            self._changed(file.path)
        done = [text_hash(paper.text[start:end]).hex() for start, end in paper.chunk_spans]
        done += [as_a_whole.text_hash.hex()] if as_a_whole else []
        self.milvus.delete_of(self.names.pending, "text_hash", done)

    def put_back(self, record: PaperRecord, files: Sequence[SourceFile]) -> None:
        """Add a paper from its record, for a repair."""
        with self.changing(record.paper.id), self._inside():
            self.records.write(self.names.epoch, record)
            self._replace(record, files)
            self._changed()

    def _replace(self, record: PaperRecord, files: Iterable[SourceFile], rows: Sequence[Row] = ()) -> None:
        """Write a paper's rows, then make them count, together with these rows of other papers."""
        outdated = [row["version"] for row in self.rows_of_papers([record.paper.id]).values()]
        self._intend([record.version, *outdated], record.paper.id)
        for row in rows:
            self._intend([row["version"]], row["id"])
        metadata = merged({**self._said_of(record.paper.id), "pdf": record.paper.metadata})
        self._write_parts(record, metadata)
        own = paper_row(record, metadata, files)
        # One request, and one shard: it is seen as a whole.
        self.milvus.write(self.names.papers, [*rows, own], is_searched=True)
        self._write_files_of([*rows, own])

    def _write_parts(self, record: PaperRecord, metadata: Metadata) -> None:
        names = self.names
        self.milvus.write(names.structure, structure_rows(record))
        self.milvus.write(names.pages, page_rows(record))
        passages, fine = chunk_rows(record, metadata)
        self.milvus.write(names.fine, fine, is_searched=True)
        self.milvus.write(names.chunks, passages, is_searched=True)

    def link(self, files: Sequence[SourceFile], gone: Sequence[str] = ()) -> None:
        """See PaperStore."""
        paths = {*(file.path for file in files), *gone}
        papers = {file.sha256 for file in files}
        with self.changing(*paths, *papers), self._changing_holders(paths) as held, self._inside():
            rows = {row["id"]: row for row in self._rows_without(paths, held)}
            whole = self._whole_rows(papers - rows.keys())
            rows |= {row["id"]: row for row in whole if row["visible"]}
            for file in files:
                if file.sha256 not in rows:
                    raise StoreRefused(f"The library has no paper for {file.path[:300]!r}.", NEW_PAPER)
                row = rows[file.sha256]
                row |= {**files_fields([*files_of(row), file]), "visible": 1}
            self._write_rows(list(rows.values()))
            self._changed(*(file.path for file in files))

    def drop(self, path: str) -> None:
        """See PaperStore."""
        with self.changing(path), self._changing_holders([path]) as held, self._inside():
            self._write_rows(self._rows_without({path}, held))
            self._changed(path)

    def _write_rows(self, rows: list[Row]) -> None:
        for row in rows:
            self._intend([row["version"]], row["id"])
        self.milvus.write(self.names.papers, rows, is_searched=True)
        self._write_files_of(rows)

    def _write_files_of(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if row["visible"]:
                self.records.write_files(self.names.epoch, row["id"], row["files"])
            else:
                self.records.delete(self.names.epoch, row["id"])
            self._filed.add(row["version"])

    def _rows_without(self, paths: set[str], papers: Iterable[str]) -> list[Row]:
        """The rows of papers that hold these paths, without them; a paper without any other is not visible then."""
        rows = self._whole_rows(papers)
        for row in rows:
            left = [file for file in files_of(row) if file.path not in paths]
            row |= {**files_fields(left), "visible": int(bool(left))}
        return rows

    def _whole_rows(self, papers: Iterable[str]) -> list[Row]:
        wanted = list(papers)
        found = self.milvus.rows_of(self.names.papers, "id", wanted, list(PAPERS), strong=True)
        return [{**row, "paths": list(row["paths"]), "vector": [float(x) for x in row["vector"]]} for row in found]

    def _changed(self, *paths: str) -> None:
        """Papers have changed: failures of these paths are over, and a reader has to look again."""
        for path in paths:
            self.forget_failure(path)
        note(self.milvus, Names(self._prefix), self.which, "generation", "described")
        self.look_again()

    # Versions that no paper names

    def _intend(self, versions: Iterable[str], paper: str) -> None:
        """Note versions whose rows are to be deleted, unless they count by then, and whose files may change."""
        value = json.dumps([paper, self._place if self._holds_lock else f"{self._place}.edit", time()])
        self.milvus.write(self.names.store, [{"key": f"{self._intents}{each}", "value": value} for each in versions])

    @property
    def _intents(self) -> str:
        return f"intent.{self.names.epoch}."

    def sweep(self) -> None:
        """Delete the rows of versions that do not count: of removed papers, and of ingests that were killed here.

        The caller holds this computer's writer lock, and writes nothing else. What other writers have noted is left
        alone for a day: what does not count yet, they may be writing; what counts, they may be about to replace.
        """
        with self._inside(), self.checked("an intent"):
            names = self.names
            rows = {row["version"]: row for row in self.paper_rows()}
            current = {version: row["id"] for version, row in rows.items()}
            hidden = self.milvus.rows(names.papers, "visible == 0", ["version"], strong=True)
            removed = {str(row["version"]) for row in hidden}  # nobody is writing these
            done, dead, unfiled = [], {}, set[str]()
            for row in self.milvus.rows(names.store, f'key like "{self._intents}%"', ["key", "value"], strong=True):
                version = str(row["key"]).removeprefix(self._intents)
                paper, where, when = json.loads(row["value"])
                is_removed = where == f"{self._place}.edit" and version in removed
                if where == self._place or is_removed or time() - float(when) > _INTENT_S:
                    done.append(str(row["key"]))
                    if version not in current and is_key(version) and is_key(paper):
                        dead[version] = paper
                    elif version in current and version not in self._filed:  # its process was killed before that
                        unfiled.add(paper)
            for paper in unfiled:
                with self.changing(paper):
                    self._write_files_of(self._whole_rows([paper]))
            if dead:  # before their rows are gone: readers that know them look again
                note(self.milvus, names, self.which, "generation")
            for name in (*(name for name, _ in self._grains()), names.pages, names.structure):
                self.milvus.delete_of(name, "version", dead)
            for paper in set(dead.values()) - set(current.values()):
                with self.changing(paper):
                    if not self.rows_of_papers([paper]):  # nobody has added it again meanwhile
                        self.records.delete(names.epoch, paper)
                        self.milvus.delete(names.papers, f'id == "{paper}" and visible == 0')
            self.milvus.delete_of(names.store, "key", done)

    # Failures

    def record_failure(self, failure: Failure) -> None:
        """See PaperStore."""
        file = failure.file
        fields = [file.path, file.name, file.sha256, failure.happened, failure.remedy]
        self.create_shared()
        row = {"key": self._failure(file.path), "value": fitting(json.dumps(fields, ensure_ascii=False))}
        self.milvus.write(self.names.store, [row])

    def forget_failure(self, path: str) -> None:
        """See PaperStore."""
        self.milvus.delete(self.names.store, f'key == "{self._failure(path)}"')

    def _failure(self, path: str) -> str:
        return f"{self.names.failures}{short_hash(path)}"

    # Papers as a whole, and what is known of them

    def set_paper_vectors(self, vectors: Mapping[str, PaperVector]) -> None:
        """See PaperStore."""
        with self.changing(*vectors), self._inside():
            rows = self._whole_rows(vectors.keys())
            for row in rows:
                each = vectors[row["id"]]
                row["vector_hash"], row["vector"] = each.text_hash.hex(), each.vector.tolist()
            self.milvus.write(self.names.papers, rows, is_searched=True)
            note(self.milvus, self.names, self.which, "described")
            self.look_again()

    def set_metadata(self, paper: str, source: Source, metadata: Metadata) -> None:
        """See PaperStore."""
        self.change_metadata(paper, source, lambda _: metadata)

    def set_metadata_of(self, source: Source, said: Mapping[str, Metadata]) -> None:
        """See PaperStore."""
        for paper in self._write_absent(source, said):
            self.set_metadata(paper, source, said[paper])

    def change_metadata(self, paper: str, source: Source, change: Callable[[Metadata], Metadata]) -> bool:
        """See PaperStore. A paper with another title or year is written again under another version."""
        with self.changing(paper), self._as_writer():
            layers = self.metadata_layers(paper)
            said = change(layers.get(source, NO_METADATA))
            is_here = bool(self.rows_of_papers([paper]))
            is_torn = is_here and unfinished_edits.begin(self.milvus, self.names, paper)
            self._write_layer(paper, source, said)
            self.look_again()
            before, after = merged(layers), merged({**layers, source: said})
            is_found_otherwise = (before.title.value, before.printed_year) != (after.title.value, after.printed_year)
            is_written_again = is_here and (is_found_otherwise or is_torn)
            if is_written_again:
                self._write_again(paper)
            elif is_here and found_by(before) != found_by(after):
                whole = [{**row, **found_by(after)} for row in self._whole_rows([paper])]
                self.milvus.write(self.names.papers, whole, is_searched=True)
            note(self.milvus, self.names, self.which, "described", "edited")
            if is_written_again:
                note(self.milvus, self.names, self.which, "generation")
            if is_here:
                unfinished_edits.end(self.milvus, self.names, paper)
            self.look_again()
        return is_written_again

    def finish_edits(self) -> None:
        """Finish the edits that were killed. The caller holds this computer's writer lock."""
        for paper in unfinished_edits.papers(self.milvus, self.names):
            with self.changing(paper), self._as_writer():
                if self.rows_of_papers([paper]):
                    self._write_again(paper)
                note(self.milvus, self.names, self.which, "generation", "described", "edited")
                unfinished_edits.end(self.milvus, self.names, paper)

    def _write_again(self, paper: str) -> None:
        """A paper's rows under another version: its passages are searched by its title and year too."""
        record = self.record_of(paper)
        self.records.write(self.names.epoch, record)
        (row,) = self.rows_of_papers([paper]).values()
        self._replace(record, files_of(row))

    # Vectors of papers that are still being embedded

    def remember(self, hashes: Sequence[bytes], vectors: Vectors) -> None:
        """See PaperStore."""
        pairs = zip(hashes, vectors, strict=True)
        rows = [{"text_hash": digest.hex(), "vector": vector.tolist()} for digest, vector in pairs]
        self.milvus.write(self.names.pending, rows, is_searched=True)

    def forget_pending(self) -> None:
        """See PaperStore."""
        if self.state().epoch:
            self.milvus.delete(self.names.pending, 'text_hash >= ""')
