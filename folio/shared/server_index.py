"""The indexes of a shared library as tables of its server, for libraries that are too large for index files.

They are in the schema of the library:

    search_state        the state of the other tables: their generation, settings and counts; one row
    search_vectors_N    vectors of passages in half precision, with an HNSW index (extension `vector`)
    search_fine_N       the same for fine passages, if there are any
    search_papers_N     each paper's passages: their numbers, which are consecutive, and the terms in them
    search_postings_N   packed postings (shared/server_index.py): a row for each term in each block of BLOCK numbers

An update is one transaction: a reader finds the old state or the new one, and a kill changes nothing. Removed passages
are deleted from every row, so that scores do not depend on history. A rebuild fills tables with another number N, so
that a reader with an older snapshot still finds its tables; the next rebuild deletes the old ones.

Postings are scored by tantivy's formula, so that a server ranks like an index on disk. A posting of a term is the
number of a passage with it, the term's count in the passage, and the passage's length. Lengths are stored in one byte,
as in tantivy.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from itertools import chain, islice

import numpy as np
import numpy.typing as npt

from folio.errors import DiskFull, IndexDamaged, StoreBusy, StoreError
from folio.papers.model import Grain, Vectors
from folio.shared.postgres import USER_SCHEMA, PostgresDatabase
from folio.store.bm25 import _body as terms_of
from folio.store.library import Library
from folio.store.rows import Passage, Stamp
from folio.text import VERSION

Numbers = npt.NDArray[np.int64]
# BM25's constants, as in tantivy
K1, B = 1.2, 0.75
# A row has the postings of a term in this many passages. Smaller blocks mean more rows to read for a frequent term;
# larger ones mean that adding a paper rewrites longer rows.
BLOCK = 2**14
# Longer terms are stored as their hash, because an index of the server cannot hold them
_LONGEST = 100
_CRC_BYTES = 4
_WIDE_GAPS, _WIDE_COUNTS = 1, 2


@dataclass(frozen=True, slots=True)
class Postings:
    """The postings of one term. All arrays have the shape (passages with the term,)."""

    numbers: Numbers  # of the passages, in ascending order
    counts: Numbers  # of the term in each passage
    norms: npt.NDArray[np.uint8]  # the index in FIELD_NORMS of each passage's length

    def __len__(self) -> int:
        return len(self.numbers)

    def without(self, numbers: Numbers) -> Postings:
        remaining = ~np.isin(self.numbers, numbers)
        return Postings(self.numbers[remaining], self.counts[remaining], self.norms[remaining])


NONE = Postings(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint8))


FORMAT = 1
# HNSW (Malkov and Yashunin 2016): edges of a node, and the number of candidates for them
M, EF_CONSTRUCTION = 16, 100
# The most memory of the server for building a graph; a graph that needs more takes several times as long.
_MOST_MEMORY_KB = 2 * 2**20
_BATCH = 2000
_TRIES = 3


@dataclass(frozen=True, slots=True)
class State:
    """The state of the tables."""

    epoch: str
    generation: int
    build: int  # the number in the tables' names
    extension: str  # the schema of the extension `vector`
    dimension: int
    is_dual: bool
    passages: int = 0
    tokens: int = 0  # in all passages
    numbers: int = 0  # the next number for a passage; some smaller ones are no longer used
    format: int = FORMAT
    tokenizer: int = VERSION

    @property
    def stamp(self) -> Stamp:
        return Stamp(self.epoch, self.generation)

    @property
    def postings(self) -> str:
        return f"search_postings_{self.build}"

    @property
    def papers(self) -> str:
        return f"search_papers_{self.build}"

    def vectors(self, grain: Grain) -> str:
        return f"search_{'vectors' if grain == 'passage' else 'fine'}_{self.build}"

    @property
    def grains(self) -> tuple[Grain, ...]:
        return ("passage", "fine") if self.is_dual else ("passage",)


def read_state(database: PostgresDatabase, *, lock: bool = False) -> State | None:
    """The state; None if there is none, or it is of another version. lock: lock it until the end of the transaction."""
    if not lock and database.query("SELECT 1 WHERE to_regclass('search_state') IS NULL"):
        return None
    rows = database.query(f"SELECT value FROM search_state {'FOR UPDATE' if lock else ''}")
    try:
        state = State(**json.loads(rows[0][0]))
    except (ValueError, TypeError, IndexError):
        return None
    return state if (state.format, state.tokenizer) == (FORMAT, VERSION) else None


def update(database: PostgresDatabase, library: Library, *, rebuild: bool = False) -> State:
    """Bring the tables to the library's generation. The database has no open snapshot or transaction.

    rebuild: make new tables. Raises StoreBusy if another process is updating them, and StoreError if the server lacks
    the extension `vector`.
    """
    with library.reading():  # finds the current schema
        pass
    extension = _extension(database)
    with suppress(StoreError):  # another process has just made it; any other fault shows in the next statement
        database.execute("CREATE TABLE IF NOT EXISTS search_state (one BIGINT PRIMARY KEY, value TEXT NOT NULL)")
    database.execute("INSERT INTO search_state VALUES (1, '{}') ON CONFLICT DO NOTHING")
    for tries_left in reversed(range(_TRIES)):
        try:
            with database.deriving(), library.reading() as stamp:
                before = read_state(database, lock=True)
                state = _updated(database, library, before, stamp, extension, rebuild)
                value = json.dumps(asdict(state))
                database.execute("UPDATE search_state SET value = :value", value=value)
            return state
        except StoreBusy:  # another process was faster
            if not tries_left:
                raise
    raise AssertionError


def _extension(database: PostgresDatabase) -> str:
    """The schema of the extension `vector`.

    A missing extension is created, but not in the schema of the library, which a rebuild drops.
    """
    sql = (
        "SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace"
        " WHERE extname = 'vector'"
    )
    if not database.query(sql):
        try:
            database.execute(f"CREATE EXTENSION IF NOT EXISTS vector SCHEMA {USER_SCHEMA}")
        except StoreError as error:
            if not database.query(sql):
                raise StoreError(
                    f"{database.place[0].upper()}{database.place[1:]} cannot search vectors: {error.happened}",
                    "Ask who runs the server to install pgvector and to run CREATE EXTENSION vector in this database,"
                    " or set SEARCH=local.",
                ) from error
    return str(database.query(sql)[0][0])


def _updated(
    database: PostgresDatabase, library: Library, before: State | None, stamp: Stamp, extension: str, rebuild: bool
) -> State:
    """Update the tables to this stamp, or make new ones if that is impossible; returns their state."""
    dimension = int(library.fingerprint().get("dimension", "1"))
    new = State(stamp.epoch, stamp.generation, 1, extension, dimension, library.is_dual)
    if before is not None and not rebuild:
        updated = replace(before, generation=stamp.generation)
        counts = {name: getattr(updated, name) for name in ("build", "passages", "tokens", "numbers")}
        is_same = updated == replace(new, **counts)
        if is_same and before.generation <= stamp.generation:
            try:
                return _Update(database, library, updated).run(before.generation)
            except IndexDamaged:
                pass
    build = _next_build(database)
    return _Update(database, library, replace(new, build=build)).rebuild()


def _next_build(database: PostgresDatabase) -> int:
    """An unused number for new tables. Deletes all tables but the last ones."""
    sql = (
        "SELECT relname, CAST(substring(relname FROM '[0-9]+$') AS BIGINT) FROM pg_class WHERE relkind = 'r'"
        " AND relname ~ '^search_(vectors|fine|papers|postings)_[0-9]+$'"
        " AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('search_state'))"
    )
    tables = database.query(sql)
    last = max((build for _, build in tables), default=0)
    for name, build in tables:
        if build < last:
            database.execute(f"DROP TABLE {name}")
    return int(last) + 1


@dataclass
class _Update:
    """One update of the tables of a state, in the caller's transaction."""

    database: PostgresDatabase
    library: Library
    state: State

    def rebuild(self) -> State:
        """Make the tables and fill them."""
        for grain in self.state.grains:
            table = self.state.vectors(grain)
            kind = f"{self.state.extension}.halfvec({self.state.dimension})"
            self.database.execute(f"CREATE TABLE {table} (chunk BIGINT PRIMARY KEY, data {kind} NOT NULL)")
            self.database.execute(f"ALTER TABLE {table} ALTER data SET STORAGE PLAIN")
        self.database.execute(
            f'CREATE TABLE {self.state.postings} (term TEXT COLLATE "C", block BIGINT, count BIGINT NOT NULL,'
            " data BYTEA NOT NULL, PRIMARY KEY (term, block))"
        )
        self.database.execute(
            f"CREATE TABLE {self.state.papers} (paper TEXT PRIMARY KEY, first BIGINT UNIQUE NOT NULL,"
            " passages BIGINT NOT NULL, tokens BIGINT NOT NULL, ids BYTEA NOT NULL, terms BYTEA NOT NULL)"
        )
        for grain in self.state.grains:
            self._add_vectors(grain, -1)
            self._build_graph(grain)
        self._add_passages(-1)
        for table in (self.state.postings, self.state.papers, *map(self.state.vectors, self.state.grains)):
            self.database.execute(f"ANALYZE {table}")
        return self._complete()

    def run(self, since: int) -> State:
        """Bring the tables from the generation `since` to this one. Raises IndexDamaged."""
        if since < self.state.generation:
            for grain in self.state.grains:
                gone = "SELECT chunk FROM removed WHERE generation > :since"
                self.database.execute(f"DELETE FROM {self.state.vectors(grain)} WHERE chunk IN ({gone})", since=since)
                self._add_vectors(grain, since)
            self._remove_papers(since)
            self._add_passages(since)
        return self._complete()

    def _complete(self) -> State:
        """The state. Raises IndexDamaged if the tables do not match the library."""
        counts = [self.library.chunk_count(grain) for grain in self.state.grains]
        tables = ", ".join(f"(SELECT count(*) FROM {self.state.vectors(grain)})" for grain in self.state.grains)
        if self.state.passages != counts[0] or list(self.database.query(f"SELECT {tables}")[0]) != counts:
            raise IndexDamaged("the indexes on the server and the library hold different passages")
        if self.state.numbers > 2 * max(BLOCK, self.state.passages):
            raise IndexDamaged("most numbers of the BM25 index on the server belong to no passage")
        return self.state

    def _add_vectors(self, grain: Grain, since: int) -> None:
        ids = sorted(self.library.chunk_ids(since, grain))
        batches = (ids[first : first + _BATCH] for first in range(0, len(ids), _BATCH))
        rows = (vector_rows(batch, self.library.vectors_of(batch)) for batch in batches)
        for batch in rows:  # one COPY for each batch, because the connection cannot read during a COPY
            self.database.copy_in(self.state.vectors(grain), [batch])

    def _build_graph(self, grain: Grain) -> None:
        table, count = self.state.vectors(grain), self.library.chunk_count(grain)
        needed_kb = count * (2 * self.state.dimension + 16 * M + 200) // 800
        memory = min(_MOST_MEMORY_KB, max(64 * 2**10, needed_kb))
        self.database.query("SELECT set_config('maintenance_work_mem', :memory, true)", memory=f"{memory}kB")
        sql = (
            f"CREATE INDEX ON {table} USING hnsw (data {self.state.extension}.halfvec_ip_ops)"
            f" WITH (m = {M}, ef_construction = {EF_CONSTRUCTION})"
        )
        self.database.execute("SAVEPOINT graph")
        try:
            self.database.execute(sql)
        except DiskFull:  # several processes share memory, of which containers often have little
            self.database.execute("ROLLBACK TO graph")
            self.database.query("SELECT set_config('max_parallel_maintenance_workers', '0', true)")
            self.database.execute(sql)

    def _remove_papers(self, since: int) -> None:
        """Remove the papers that the library no longer has, or has added again after a generation."""
        sql = (
            f"DELETE FROM {self.state.papers} s WHERE NOT EXISTS (SELECT 1 FROM papers p WHERE p.id = s.paper"
            " AND p.generation <= :since) RETURNING first, passages, tokens, terms"
        )
        numbers: dict[int, list[Numbers]] = defaultdict(list)
        terms: dict[int, set[str]] = defaultdict(set)
        for first, passages, tokens, packed in self.database.execute(sql, since=since):
            paper_terms = _terms(packed, first)
            for block in range(first // BLOCK, (first + passages - 1) // BLOCK + 1):
                numbers[block].append(np.arange(first, first + passages))
                terms[block] |= paper_terms
            self.state = replace(self.state, passages=self.state.passages - passages, tokens=self.state.tokens - tokens)
        for block, gone in numbers.items():
            self._write(block, dict.fromkeys(terms[block], NONE), np.concatenate(gone))

    def _add_passages(self, since: int) -> None:
        """Number the passages that were added after a generation, and write their postings, block by block."""
        paper = _Paper()
        passages = self.library.passages(since)
        while batch := list(islice(passages, BLOCK - self.state.numbers % BLOCK)):
            first, block = self.state.numbers, self.state.numbers // BLOCK
            bodies = [terms_of(passage) for passage in batch]
            finished = []
            for number, (passage, body) in enumerate(zip(batch, bodies, strict=True), first):
                if passage.paper_id != paper.id:
                    finished.append(paper.row())
                    paper = _Paper(passage.paper_id, number)
                paper.add(passage, body)
            self.database.copy_in(self.state.papers, filter(None, finished))
            self._write(block, postings_of(first, bodies))
            self.state = replace(
                self.state,
                numbers=first + len(batch),
                passages=self.state.passages + len(batch),
                tokens=self.state.tokens + sum(map(len, bodies)),
            )
        self.database.copy_in(self.state.papers, filter(None, [paper.row()]))

    def _write(self, block: int, added: dict[str, Postings], removed: Numbers = NONE.numbers) -> None:
        """Change the rows of these terms in a block. Raises IndexDamaged."""
        table, condition = self.state.postings, "block = :block AND term IN (SELECT value FROM json_each(:terms))"
        terms = list(added)
        before: dict[str, Postings] = {}
        if self.state.numbers > block * BLOCK and terms:
            sql = f"SELECT term, count, data FROM {table} WHERE {condition}"
            rows = self.database.query_binary(sql, block=block, terms=terms)
            before = {term: unpack(term, block, count, data).without(removed) for term, count, data in rows}
            self.database.execute(f"DELETE FROM {table} WHERE {condition}", block=block, terms=terms)
        merged = ((term, joined([before.get(term, NONE), new])) for term, new in added.items())
        self.database.copy_in(table, (_posting_row(term, block, all_of) for term, all_of in merged if len(all_of)))


class _Paper:
    """A paper whose passages are being numbered."""

    def __init__(self, id: str = "", first: int = 0) -> None:
        self.id, self._first = id, first
        self._ids: list[int] = []
        self._terms: set[str] = set()
        self._tokens = 0

    def add(self, passage: Passage, body: Sequence[str]) -> None:
        self._ids.append(passage.id)
        self._terms.update(body)
        self._tokens += len(body)

    def row(self) -> bytes:
        """The paper's row; b"" if it has no passages."""
        if not self._ids:
            return b""
        counts = struct.pack("!q", self._first), struct.pack("!q", len(self._ids)), struct.pack("!q", self._tokens)
        ids = checked(np.array(self._ids, dtype="<i8").tobytes(), self._first)
        terms = checked(zlib.compress("\n".join(sorted(map(key, self._terms))).encode()), self._first)
        return copy_row(self.id.encode(), *counts, ids, terms)


def ids_of(first: int, passages: int, stored: bytes) -> list[int]:
    """The ids of a paper's passages, from its row. Raises IndexDamaged."""
    ids: list[int] = np.frombuffer(verified(stored, first), dtype="<i8").tolist()
    if len(ids) != passages:
        raise damaged()
    return ids


def _terms(stored: bytes, first: int) -> set[str]:
    return set(zlib.decompress(verified(stored, first)).decode().split("\n"))


def _posting_row(term: str, block: int, postings: Postings) -> bytes:
    numbers = struct.pack("!q", block), struct.pack("!q", len(postings))
    return copy_row(term.encode(), *numbers, pack(term, block, postings))


def copy_row(*fields: bytes) -> bytes:
    """A row in the format of PostgreSQL's binary COPY."""
    return struct.pack("!h", len(fields)) + b"".join(struct.pack("!i", len(field)) + field for field in fields)


def vector_rows(ids: Iterable[int], vectors: Vectors) -> bytes:
    """Rows of ids and vectors (count x dimension) in PostgreSQL's binary COPY, in pgvector's half precision."""
    count, dimension = vectors.shape
    fields = [("n", ">i2"), ("a", ">i4"), ("id", ">i8"), ("b", ">i4"), ("d", ">i2"), ("0", ">i2")]
    rows = np.zeros(count, dtype=np.dtype([*fields, ("data", ">f2", (dimension,))]))
    rows["n"], rows["a"], rows["b"], rows["d"] = 2, 8, 4 + 2 * dimension, dimension
    rows["id"], rows["data"] = list(ids), vectors
    return rows.tobytes()


def _field_norms() -> Iterator[int]:
    """Lucene's SmallFloat.byte4ToInt, a table in tantivy: the first 24 lengths are exact, others have four bits."""
    for byte in range(256):
        rest = max(0, byte - 24)
        shift = max(0, (rest >> 3) - 1)
        yield byte if byte < 24 else 24 + (rest if rest < 8 else (rest & 7 | 8) << shift)


FIELD_NORMS = np.array(list(_field_norms()), dtype=np.int64)


def joined(parts: Sequence[Postings]) -> Postings:
    """The concatenated postings of parts, whose numbers ascend from one part to the next."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return NONE
    return Postings(
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.norms for part in parts]),
    )


def key(term: str) -> str:
    """The stored form of a term."""
    return term if len(term) <= _LONGEST else f"#{blake2b(term.encode(), digest_size=16).hexdigest()}"


def postings_of(first: int, bodies: Sequence[Sequence[str]]) -> dict[str, Postings]:
    """Term -> its postings in passages with the numbers `first`, `first` + 1, ... bodies: the terms of each passage."""
    places: dict[str, int] = {}
    terms = np.fromiter((places.setdefault(term, len(places)) for term in chain.from_iterable(bodies)), dtype=np.int64)
    lengths = np.fromiter(map(len, bodies), dtype=np.int64, count=len(bodies))
    norms = (np.searchsorted(FIELD_NORMS, lengths, side="right") - 1).astype(np.uint8)
    passages = np.repeat(np.arange(len(bodies)), lengths)
    pairs, counts = np.unique(terms * len(bodies) + passages, return_counts=True)
    of_term, passages = np.divmod(pairs, max(1, len(bodies)))
    ends = np.searchsorted(of_term, np.arange(len(places)), side="right").tolist()
    numbers, norms, start = first + passages, norms[passages], 0
    by_term: dict[str, Postings] = {}
    for term, end in zip(places, ends, strict=True):
        by_term[key(term)] = Postings(numbers[start:end], counts[start:end], norms[start:end])
        start = end
    return by_term


def pack(term: str, block: int, postings: Postings) -> bytes:
    """The postings of a term in a block as bytes: checksum, widths, then the gaps between numbers, counts and norms."""
    gaps = np.diff(postings.numbers, prepend=block * BLOCK)
    counts = np.minimum(postings.counts, 65_535)
    widths = _WIDE_GAPS * bool(gaps.max() > 255) | _WIDE_COUNTS * bool(counts.max() > 255)
    numbers = gaps.astype("<u2" if widths & _WIDE_GAPS else "u1").tobytes()
    often = counts.astype("<u2" if widths & _WIDE_COUNTS else "u1").tobytes()
    data = b"".join((bytes([widths]), numbers, often, postings.norms.tobytes()))
    return checked(data, term, block, len(postings))


def unpack(term: str, block: int, count: int, stored: bytes) -> Postings:
    """The postings from the bytes of `pack`. Raises IndexDamaged if they are not those of this term in this block."""
    data = verified(stored, term, block, count)
    widths = data[0] if data else 0
    gap_bytes, count_bytes = (2 if widths & wide else 1 for wide in (_WIDE_GAPS, _WIDE_COUNTS))
    counts_at, norms_at = 1 + gap_bytes * count, 1 + (gap_bytes + count_bytes) * count
    if len(data) != norms_at + count:
        raise damaged()
    gaps = np.frombuffer(data, f"<u{gap_bytes}", count, 1)
    counts = np.frombuffer(data, f"<u{count_bytes}", count, counts_at)
    numbers = np.cumsum(gaps, dtype=np.int64) + block * BLOCK
    return Postings(numbers, counts.astype(np.int64), np.frombuffer(data, np.uint8, count, norms_at))


def checked(data: bytes, *keys: object) -> bytes:
    """Bytes, preceded by a checksum over them and their keys."""
    return _crc(data, keys) + data


def verified(stored: bytes, *keys: object) -> bytes:
    """The bytes without their checksum. Raises IndexDamaged if it does not match them and their keys."""
    data = stored[_CRC_BYTES:]
    if stored[:_CRC_BYTES] != _crc(data, keys):
        raise damaged()
    return data


def _crc(data: bytes, keys: tuple[object, ...]) -> bytes:
    return zlib.crc32(data, zlib.crc32("\n".join(map(str, keys)).encode())).to_bytes(_CRC_BYTES, "little")


def damaged() -> IndexDamaged:
    return IndexDamaged("a row of the BM25 index on the server has changed since it was written")


@dataclass(frozen=True, slots=True)
class Bm25:
    """The statistics of all passages."""

    passages: int
    tokens: int  # in all of them

    def scores(self, postings: Postings) -> npt.NDArray[np.float32]:
        """The score of each passage for one term, in single precision as in tantivy (Bm25Weight)."""
        passages_without = self.passages - len(postings) + 0.5
        weight = np.float32(math.log(1 + passages_without / (len(postings) + 0.5)) * (1 + K1))
        average = np.float32(self.tokens / max(1, self.passages)) or np.float32(1)
        by_length = (np.float32(K1) * (1 - np.float32(B) + np.float32(B) * FIELD_NORMS / average)).astype(np.float32)
        counts = postings.counts.astype(np.float32)
        return np.asarray(weight * counts / (counts + by_length[postings.norms]), dtype=np.float32)
