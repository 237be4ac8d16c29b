"""Reads the passages of a library in Milvus, the fine ones in them, their text and their vectors."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from uuid import uuid4

import numpy as np

from folio.cluster.milvus_client import Row
from folio.cluster.milvus_papers import CHUNK, FINE_CHUNK, MilvusPapers, vector_of
from folio.cluster.paper_filters import FieldFilters
from folio.cluster.paper_record import PaperRecord
from folio.cluster.paper_rows import chunk_key
from folio.errors import IndexDamaged
from folio.store.digests import text_crc, text_hash
from folio.types import Chunk, Grain, NewPaper, Paper, Vectors

# Rows of chunks that one request reads, with their vectors
_AT_ONCE = 4_000
Written = tuple[Chunk, str]  # a chunk, and the hash of its text


class MilvusReader(MilvusPapers):
    """The part of PaperStore that reads."""

    @property
    def filters(self) -> FieldFilters | None:
        """See PaperStore."""
        with self.reading():
            return FieldFilters.of(self)

    # Texts

    def text(self, paper: str, start: int, end: int) -> str:
        """See PaperStore. The whole text is compared with its CRC when it is first read."""
        rows = self.rows_of_papers([paper])
        return self._whole_texts(rows)[paper][max(0, start) : max(0, end)] if rows else ""

    def _whole_texts(self, rows: dict[str, Row]) -> dict[str, str]:
        keys = {paper: (row["version"], int(row["crc"])) for paper, row in rows.items()}
        found = {paper: text for paper, key in keys.items() if (text := self._texts.get(key)) is not None}
        missing = {key[0]: paper for paper, key in keys.items() if paper not in found}
        for version, text in self._complete(self.names.pages, set(missing), ("start", "text")).items():
            paper = missing[version]
            if text_crc(text) != keys[paper][1]:
                raise self.damaged(f"the text of paper {paper[:12]} is not the one that was stored")
            self._texts.add(keys[paper], text)
            found[paper] = text
        return found

    def _texts_of(self, chunks: Sequence[Chunk]) -> dict[int, str]:
        """The text of each of these chunks, as it is stored: only the parts of pages that they lie in are read."""
        rows = self.rows_of_papers({chunk.paper_id for chunk in chunks})
        self._read_structures(row["version"] for row in rows.values())
        found: dict[int, str] = {}
        parts: dict[int, list[str]] = {}  # chunk -> the keys of the rows that it lies in
        for chunk in chunks:
            version, crc = rows[chunk.paper_id]["version"], int(rows[chunk.paper_id]["crc"])
            if (text := self._texts.get((version, crc))) is not None:
                found[chunk.id] = text[chunk.start : chunk.end]
            else:
                starts = self._structures[version].parts
                first, last = bisect_right(starts, chunk.start) - 1, bisect_left(starts, chunk.end)
                parts[chunk.id] = [f"{version}.{start}" for start in starts[max(0, first) : last]]
        known = self._parts({key for keys in parts.values() for key in keys})
        for chunk in chunks:
            if chunk.id in parts:
                keys = parts[chunk.id]
                begin = int(keys[0].rpartition(".")[2]) if keys else 0
                found[chunk.id] = "".join(known[key] for key in keys)[chunk.start - begin : chunk.end - begin]
        return found

    def _parts(self, keys: set[str]) -> dict[str, str]:
        """Parts of pages, by the keys of their rows."""
        known: dict[str, str] = {}
        for strong in sorted({self.strong, True}):
            wanted = keys - known.keys()
            for row in self.milvus.rows_of(self.names.pages, "key", wanted, ("key", "text"), strong=strong):
                known[row["key"]] = str(row["text"])
            if len(known) == len(keys):
                return known
        versions = {key.rpartition(".")[0] for key in keys - known.keys()}
        raise self._missing(versions, "a part of the text of a paper is missing")

    # Chunks

    def require_rows(self) -> None:
        """Raises StoreDamaged if a collection is empty, in a library whose words were counted in passages."""
        keys = {self.names.papers: "id", **{name: "key" for name, _ in self._grains()}}
        for name, key in keys.items():
            if not self.milvus.some(name, f'{key} >= ""', (key,), 1):
                raise self.damaged(f"the collection {name} is empty")

    def chunk_count(self, grain: Grain = "passage") -> int:
        """See PaperStore."""
        with self.reading() as stamp:
            if self._counts is None or self._counts[0] != stamp:
                rows = self.paper_rows()
                passages, fine = (sum(int(row[field]) for row in rows) for field in ("passages", "fine"))
                self._counts = stamp, {"passage": passages, "fine": fine}
            return self._counts[1][grain]

    def admitted(self, rows: Iterable[Row]) -> list[Row]:
        """Those of these rows of chunks whose version counts; their chunks and vectors are known from then on."""
        with self._inside() as snapshot, self.checked("the record of a passage"):
            rows = list(rows)
            papers = self.rows_of_papers({row["paper"] for row in rows})
            kept = [row for row in rows if papers.get(row["paper"], {}).get("version") == row["version"]]
            for row in kept:
                id, parent = int(row["chunk"]), row.get("parent")
                chunk = Chunk(id, row["paper"], int(row["start"]), int(row["end"]), parent and int(parent))
                snapshot.chunks[id] = chunk, row["text_hash"]
                if "vector" in row:
                    snapshot.vectors[id] = vector_of(row)
            return kept

    def _grains(self) -> list[tuple[str, Sequence[str]]]:
        """The collections of chunks, and the fields that tell one of theirs."""
        if not self.state().epoch:
            return []
        fine = [(self.names.fine, FINE_CHUNK)] if self.state().is_dual else []
        return [(self.names.chunks, CHUNK), *fine]

    def _known(self, ids: Iterable[int]) -> dict[int, Written]:
        with self._inside() as snapshot:
            ids = list(ids)
            for strong in sorted({self.strong, True}):
                for name, fields in self._grains():
                    if missing := [id for id in ids if id not in snapshot.chunks]:
                        self.admitted(
                            self.milvus.rows_of(name, "chunk", missing, fields, strong=strong, at_once=_AT_ONCE)
                        )
            return {id: snapshot.chunks[id] for id in ids if id in snapshot.chunks}

    def chunks(self, ids: Iterable[int]) -> dict[int, Chunk]:
        """See PaperStore."""
        return {id: chunk for id, (chunk, _) in self._known(ids).items()}

    def read_chunks(self, ids: Sequence[int]) -> list[tuple[Chunk, Paper, str]]:
        """See PaperStore."""
        with self._inside():
            known = self._known(ids)
            wanted = {chunk.paper_id for chunk, _ in known.values()}
            papers = {paper.id: paper for paper in self.papers_by_id(wanted)}
            if len(known) < len(set(ids)) or papers.keys() != wanted:
                raise self.damaged("a passage or its paper is missing")
            texts = self._texts_of([chunk for chunk, _ in known.values()])
            for id, (_, written) in known.items():
                if text_hash(texts[id]).hex() != written:
                    raise self.damaged(f"passage {id} is not the text that was stored")
            return [(known[id][0], papers[known[id][0].paper_id], texts[id]) for id in ids]

    def chunk_ids_of(self, papers: Iterable[str]) -> list[int]:
        """See PaperStore."""
        with self._inside():
            return [int(row["chunk"]) for row in self.passages_of(self.versions_of(papers), ("chunk",))]

    def versions_of(self, papers: Iterable[str]) -> list[str]:
        """The versions of these papers that count."""
        return [row["version"] for row in self.rows_of_papers(papers).values()]

    def passages_of(
        self, versions: Iterable[str], fields: Sequence[str], grain: Grain = "passage", *, strong: bool = False
    ) -> Iterator[Row]:
        """The rows of the passages, or of the fine ones, of these versions. strong: see Milvus.rows."""
        if grain == "fine" and not self.state().is_dual:
            return iter(())
        name = self.names.fine if grain == "fine" else self.names.chunks
        strong = strong or self.strong
        return self.milvus.rows_of(name, "version", versions, fields, strong=strong, at_once=_AT_ONCE)

    def fine_in(self, passages: Iterable[int]) -> dict[int, list[Chunk]]:
        """See PaperStore. Their vectors are known then, too. Raises StoreDamaged for one outside its passage."""
        with self._inside() as snapshot:
            known = self.chunks(passages)
            found: dict[int, list[Chunk]] = {id: [] for id in known}
            if self.state().is_dual:
                fields = (*FINE_CHUNK, "vector")
                rows = self.milvus.rows_of(
                    self.names.fine, "parent", known, fields, strong=self.strong, at_once=_AT_ONCE
                )
                for row in self.admitted(rows):
                    chunk = snapshot.chunks[int(row["chunk"])][0]
                    passage = known[int(row["parent"])]
                    if (
                        chunk.paper_id != passage.paper_id
                        or not passage.start <= chunk.start < chunk.end <= passage.end
                    ):
                        raise self.damaged("a fine passage lies outside its passage")
                    found[passage.id].append(chunk)
            return {id: sorted(each, key=lambda chunk: chunk.start) for id, each in found.items()}

    def record_of(self, paper: str) -> PaperRecord:
        """A paper's record from its rows, under a new version."""
        rows = self.rows_of_papers([paper])
        (row,) = rows.values()
        (text,) = self._whole_texts(rows).values()
        (found,) = self._papers_of([paper]).values()
        passages = sorted(self.chunks(self.chunk_ids_of([paper])).values(), key=lambda each: (each.start, each.end))
        inside = self.fine_in([chunk.id for chunk in passages])
        spans = tuple((chunk.start, chunk.end) for chunk in passages)
        fine = tuple(tuple((each.start, each.end) for each in inside[chunk.id]) for chunk in passages)
        metadata = self._layers(row)["pdf"]
        kept = found[1]
        made = NewPaper(paper, metadata, text, kept.pages, spans, kept.problems, kept.sections.sections, fine)
        ids = [chunk.id for chunk in (*passages, *(each for chunk in passages for each in inside[chunk.id]))]
        whole = self.paper_vectors().get(paper)
        return PaperRecord(made, uuid4().hex, row["added"], tuple(ids), self.vectors_of(ids), whole)

    # Vectors

    def vectors_of(self, ids: Sequence[int]) -> Vectors:
        """See PaperStore."""
        with self._inside() as snapshot, self.checked("a vector"):
            found = snapshot.vectors
            unknown = [id for id in ids if id not in found]
            known = self._known(unknown)
            versions = {id: self._version_of(chunk) for id, (chunk, _) in known.items()}
            for name, is_fine in ((self.names.chunks, False), (self.names.fine, True)):
                own = [id for id, (chunk, _) in known.items() if (chunk.parent is not None) == is_fine]
                for strong in sorted({self.strong, True}):
                    keys = [chunk_key(versions[id], id) for id in own if id not in found]
                    for row in self.milvus.rows_of(name, "key", keys, ("chunk", "vector"), strong=strong):
                        found[int(row["chunk"])] = vector_of(row)
            if missing := [id for id in ids if id not in found]:
                if gone := [versions[id] for id in missing if id in versions]:
                    raise self._missing(gone, "the vector of a passage is missing")
                raise IndexDamaged(f"The index names a passage that is not in the library: {missing[0]}.")
            return np.stack([found[id] for id in ids])

    def _version_of(self, chunk: Chunk) -> str:
        assert self._snapshot is not None
        row = self._snapshot.papers[chunk.paper_id]
        return str(row["version"]) if row is not None else ""

    def recall(self, hashes: Sequence[bytes]) -> dict[bytes, Vectors]:
        """See PaperStore."""
        with self._inside() as snapshot, self.checked("a vector"):
            if not snapshot.state.epoch:
                return {}
            wanted = {digest.hex() for digest in hashes}
            found: dict[bytes, Vectors] = {}
            names = self.names
            for name, field in (
                (names.pending, "text_hash"),
                *((name, "text_hash") for name, _ in self._grains()),
                (names.papers, "vector_hash"),
            ):
                left = wanted - {digest.hex() for digest in found}
                for row in self.milvus.rows_of(name, field, left, [field, "vector"], strong=True):
                    found[bytes.fromhex(row[field])] = vector_of(row)
            return found
