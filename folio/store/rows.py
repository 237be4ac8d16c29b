"""Rows of the library -> dataclasses, and back: papers, chunks, vectors, the log, conversations.

Digests of stored values make a flipped bit on the disk an error and never a wrong quote or page. A function that takes
the columns of a row checks the type and the constraints of every value, and raises ValueError if the row has changed
since it was written, with a clause that completes "The library is damaged: ...". `Database.read` turns any error of
such a function into StoreDamaged.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from folio.papers.identifiers import bare_arxiv
from folio.papers.metadata import SOURCES, Metadata, Source, from_json, to_json
from folio.papers.model import Chunk, Failure, Grain, NewPaper, PageMap, Paper, SourceFile, Vectors
from folio.papers.sections import KINDS, PaperSection, SectionMap
from folio.store.database import Database, UserDataChanged, storable

_DIGEST_BYTES = 16
# A stored vector consists of its numbers (float32, little-endian), this mark, and the numbers' CRC-32.
_MARK, _CRC_BYTES = b"c", 4


def text_hash(text: str) -> str:
    """A 16-byte hash of a text, in hex, to embed equal texts once and to notice changes."""
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()


def text_crc(text: str) -> int:
    """The CRC-32 of a paper's text in UTF-8. Nearly every question checks it, and a CRC is five times as fast."""
    return zlib.crc32(text.encode())


def row_digest(table: str, *values: object) -> bytes:
    """A 16-byte hash of a row: its table and its values (None, numbers, strings)."""
    serialized = json.dumps([table, *values])
    return hashlib.blake2b(serialized.encode(), digest_size=_DIGEST_BYTES).digest()


def pack_vector(vector: Vectors) -> bytes:
    """A vector in its stored form: numbers, mark, CRC-32."""
    numbers = vector.astype("<f4").tobytes()
    return numbers + _MARK + zlib.crc32(numbers).to_bytes(_CRC_BYTES, "little")


def vector_bytes(blob: bytes) -> bytes:
    """The numbers of a stored vector. Raises ValueError if they have changed since they were stored."""
    numbers_end = len(blob) - _CRC_BYTES
    if blob[-_CRC_BYTES:] != zlib.crc32(memoryview(blob)[: numbers_end - 1]).to_bytes(_CRC_BYTES, "little"):
        raise ValueError("a vector has changed since it was stored")
    return blob[: numbers_end - 1]


T = TypeVar("T")
# Characters of a title, and of a name or an identifier, in the columns for look-ups: PostgreSQL cannot index more
TITLE_START, _KEY_START = 20, 200


@dataclass(frozen=True, slots=True)
class Stamp:
    """A state of the library: a rebuild starts a new epoch, and each added paper a new generation."""

    epoch: str
    generation: int


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk with its text, for the BM25 index."""

    id: int
    paper_id: str
    title: str
    text: str


def typed(kind: type[T], value: object, label: str) -> T:
    """The value, which must have exactly this type. label: for the error. Raises ValueError."""
    if type(value) is not kind:
        raise ValueError(f"{label} cannot be read")
    return value


def listed(kind: type[T], text: object, label: str) -> tuple[T, ...]:
    """A JSON list of values of one type. Raises ValueError."""
    values = typed(list, json.loads(typed(str, text, label)), label)
    if not set(map(type, values)) <= {kind}:
        raise ValueError(f"{label} cannot be read")
    return tuple(values)


def mapped(text: object, label: str) -> dict[str, Any]:
    """A JSON object. Raises ValueError."""
    return typed(dict, json.loads(typed(str, text, label)), label)


def number(value: object) -> int:
    return typed(int, value, "a number")


def string(value: object) -> str:
    return typed(str, value, "a text")


# Everything that is shown about papers, except the metadata from people and services
PAPER_COLUMNS = "id, length, starts, labels, problems, sections, metadata, added, passages, text_crc"
SELECT_PAPERS = (
    f"SELECT {PAPER_COLUMNS}, digest, (SELECT min(name) FROM files WHERE files.paper = papers.id) FROM papers"
)
CHUNK_COLUMNS = 'id, paper, start, "end", text_hash, parent'
METADATA_COLUMNS = "paper, source, fields"


def paper(*row: Any) -> Paper:
    """A paper from SELECT_PAPERS, with the metadata of its PDF."""
    *columns, digest, file = row
    id, length, starts, labels, problems, sections, metadata, _, passages, _ = columns
    label = f"the record of paper {str(id)[:12]}"
    if digest != row_digest("papers", *columns):
        raise ValueError(f"{label} has changed since it was written")
    pages = PageMap(listed(int, starts, label), listed(str, labels, label))
    if len(pages.starts) != len(pages.labels) or any(second < first for first, second in pairwise((0, *pages.starts))):
        raise ValueError(f"{label} has pages out of order")
    tree = tuple(PaperSection(*section) for section in listed(list, sections, label))
    require_tree(tree, length, label)
    from_pdf = from_json(mapped(metadata, label))
    return Paper(
        id, string(file), from_pdf, pages, length, number(passages), listed(str, problems, label), SectionMap(tree)
    )


def metadata_layer(paper: object, source: object, fields: object) -> tuple[str, Source, Metadata]:
    """From METADATA_COLUMNS: a paper, a source, and the source's metadata of the paper."""
    label = f"the metadata of paper {string(paper)[:12]}"
    if source not in SOURCES:
        raise ValueError(f"{label} is from an unknown source")
    return string(paper), source, from_json(mapped(fields, label))


def search_keys(metadata: Metadata) -> dict[str, object]:
    """The columns for finding papers with the same label or other versions of a paper; None for unknown values."""
    authors = metadata.authors.value
    return {
        "family": storable(authors[0].family[:_KEY_START]) if authors else None,
        "title_start": storable(metadata.title.value[:TITLE_START]) or None,
        "arxiv": storable(bare_arxiv(metadata.arxiv.value)[:_KEY_START]) or None,
        "doi": storable(metadata.doi.value.casefold()[:_KEY_START]) or None,
        "year": metadata.year.value if metadata.year.sure else None,
    }


def require_tree(sections: Sequence[PaperSection], length: int, label: str) -> None:
    """Raises ValueError unless each section is within the text, and within the sections that contain its start."""
    ends = [length]
    last = -1
    for section in sections:
        while ends and ends[-1] <= section.start:
            ends.pop()
        if not (last < section.start < section.end and ends and section.end <= ends[-1] and section.kind in KINDS):
            raise ValueError(f"{label} has sections out of order")
        ends.append(section.end)
        last = section.start


def paper_text(paper: object, value: object, crc: object) -> tuple[str, str]:
    """A paper and its text. Raises ValueError if the text does not have this CRC."""
    if text_crc(string(value)) != crc:
        raise ValueError(f"the text of paper {string(paper)[:12]} is not the one that was stored")
    return string(paper), string(value)


# The text of one paper, to compare its pages with another's
SELECT_PAGES = """SELECT p.id, t.text, p.text_crc, p.starts FROM papers p JOIN texts t ON t.paper = p.id
    WHERE p.id = :paper"""


def page_texts(paper: object, value: object, crc: object, starts: object) -> list[str]:
    """The text of each page of a paper, from SELECT_PAGES. Raises ValueError if the text has another CRC."""
    id, text = paper_text(paper, value, crc)
    begins = listed(int, starts, f"the record of paper {id[:12]}")
    return [text[start:end] for start, end in pairwise((*begins, len(text)))]


def source_file(path: object, name: object, paper: object) -> SourceFile:
    return SourceFile(string(path), string(name), string(paper))


def failure(path: object, name: object, sha256: object, happened: object, remedy: object) -> Failure:
    return Failure(source_file(path, name, sha256), string(happened), string(remedy))


def chunk_of_row(*row: Any) -> tuple[Chunk, str]:
    """From CHUNK_COLUMNS: a chunk and the hash of its text."""
    id, paper, start, end, text_hash, parent = row
    parent = None if parent is None else number(parent)
    return Chunk(number(id), string(paper), number(start), number(end), parent), string(text_hash)


def vector(id: object, blob: object) -> tuple[int, bytes]:
    """A chunk's id and the numbers of its vector (float32, little-endian)."""
    return number(id), vector_bytes(typed(bytes, blob, "a vector"))


def text_pair(key: object, value: object) -> tuple[str, str]:
    return string(key), string(value)


def stamp(meta: Mapping[str, str]) -> Stamp:
    """The stamp from the table meta."""
    return Stamp(meta["epoch"], int(meta["generation"]))


# The row of the table meta with the files of a library of an earlier format, which must be read again
FILES_BEFORE = "files"


def files_before(value: object) -> list[SourceFile]:
    """From the row FILES_BEFORE."""
    return [source_file(*file) for file in listed(list, value, "the list of files to read again")]


def fingerprint(value: object) -> dict[str, str]:
    label = "the store's fingerprint"
    return {key: typed(str, field, label) for key, field in mapped(value, label).items()}


# The columns of a question that its checksum covers; feedback is added later
QUERY_COLUMNS = (
    "id, asked, question, standalone_question, chunks, answer, sources, timings_ms, model, confidence, trace"
)
TURN_COLUMNS = "conversation, place, asked, reply, memory, query, crc"
LoggedFields = tuple[
    str, str, str, tuple[int, ...], str, tuple[list[Any], ...], dict[str, float], str, Any, float | None,
    dict[str, Any] | None,
]  # fmt: skip


def shown_crc(*values: object) -> int:
    """The checksum of what a user was shown, which contains quotes."""
    return text_crc(json.dumps(values))


def query(*row: Any) -> LoggedFields:
    """From QUERY_COLUMNS, feedback and crc: the fields of a LogEntry (query_log.py), its sources as lists."""
    *columns, feedback, crc = row
    id, asked, question, standalone, chunks, answer, sources, timings_ms, model, confidence, trace = columns
    label = f"question {id} of the log"
    if crc != shown_crc(*columns[1:]):
        raise UserDataChanged(f"{label} has changed since it was written")
    if feedback not in ("", "good", "bad"):
        raise ValueError(f"the feedback on {label} cannot be read")
    sure = None if confidence is None else typed(float, confidence, label)
    cited, timings = listed(list, sources, label), mapped(timings_ms, label)
    trace_fields = None if trace is None else mapped(trace, label)
    chunk_ids = listed(int, chunks, label)
    return asked, question, standalone, chunk_ids, answer, cited, timings, model, feedback, sure, trace_fields


def turn(*row: Any) -> tuple[str, int, str, dict[str, Any], str, int | None]:
    """From TURN_COLUMNS: conversation, place, time, reply, memory (store/conversations.py), row in the query log."""
    conversation, place, asked, reply, memory, query, crc = row
    label = "a turn of a conversation"
    if crc != shown_crc(reply, memory):
        raise UserDataChanged(f"{label} has changed since it was written")
    return conversation, place, asked, mapped(reply, label), string(memory), None if query is None else number(query)


def insert_paper(database: Database, paper: NewPaper, generation: int, added: str) -> None:
    """Insert a paper with its text; the caller adds its file, chunks and vectors.

    added: when it was first added (ISO, UTC); "" for now. Raises ValueError for sections outside the text.
    """
    require_tree(paper.sections, len(paper.text), "the list of sections")
    columns: dict[str, object] = {
        "id": paper.id,
        "length": len(paper.text),
        "starts": json.dumps(paper.pages.starts),
        "labels": json.dumps(paper.pages.labels),
        "problems": json.dumps(paper.problems),
        "sections": json.dumps([astuple(section) for section in paper.sections]),
        "metadata": json.dumps(to_json(paper.metadata), ensure_ascii=False),
        "added": added or datetime.now(UTC).isoformat(timespec="seconds"),
        "passages": len(paper.spans),
        "text_crc": text_crc(storable(paper.text)),
    }
    keys = {"generation": generation, **search_keys(paper.metadata)}
    database.insert("papers", [{**columns, "digest": row_digest("papers", *columns.values()), **keys}])
    database.insert("texts", [{"paper": paper.id, "text": storable(paper.text)}])


def insert_chunks(
    database: Database, paper: NewPaper, ids: Sequence[int], vectors: Vectors, generation: int
) -> list[str]:
    """Insert a paper's chunks and their vectors, passages first; returns the hashes of their texts.

    ids, vectors: in the order of chunk_spans.
    """
    hashes = [text_hash(paper.text[start:end]) for start, end in paper.chunk_spans]
    database.insert(
        "chunks",
        [
            {
                "id": id,
                "paper": paper.id,
                "start": start,
                "end": end,
                "text_hash": digest,
                "generation": generation,
                "parent": None if parent is None else ids[parent],
            }
            for id, (start, end), digest, parent in zip(ids, paper.chunk_spans, hashes, paper.parents, strict=True)
        ],
    )
    packed = [{"chunk": id, "data": pack_vector(vector)} for id, vector in zip(ids, vectors, strict=True)]
    database.insert("vectors", packed)
    return hashes


# Grain -> the condition on its chunks, and the key in the table meta of their number
ONLY: dict[Grain, str] = {"passage": "parent IS NULL", "fine": "parent IS NOT NULL"}
COUNTED: dict[Grain, str] = {"passage": "chunks", "fine": "fine"}


def increase(database: Database, key: str, change: int = 1, table: str = "meta") -> None:
    """Add to a number in the table `meta` or `kept`. The caller has a transaction."""
    number = "CAST(CAST(value AS BIGINT) + :change AS TEXT)"
    database.execute(f"UPDATE {table} SET value = {number} WHERE key = :key", change=change, key=key)


def change_chunk_counts(database: Database, paper: str, sign: int) -> None:
    """Add the numbers of a paper's chunks, times `sign`, to the recorded counts."""
    for grain, key in COUNTED.items():
        sql = f"SELECT count(*) FROM chunks WHERE paper = :paper AND {ONLY[grain]}"
        increase(database, key, sign * database.query(sql, paper=paper)[0][0])


def read_fine(database: Database, passages: Mapping[int, Chunk]) -> dict[int, list[Chunk]]:
    """The fine passages in each of these passages, in the order of the text.

    Raises StoreDamaged if one is not within its passage.
    """
    fine: dict[int, list[Chunk]] = {id: [] for id in passages}
    among = "parent IN (SELECT value FROM json_each(:ids))"
    sql = f"SELECT {CHUNK_COLUMNS} FROM chunks WHERE {among} ORDER BY start, id"
    for chunk, _ in database.read(chunk_of_row, sql, ids=list(passages)):
        assert chunk.parent is not None
        passage = passages[chunk.parent]
        if chunk.paper_id != passage.paper_id or not passage.start <= chunk.start <= chunk.end <= passage.end:
            raise database.damaged("a fine passage lies outside its passage")
        fine[chunk.parent].append(chunk)
    return fine


def read_passages(database: Database, size: int | None, batch: int) -> Iterator[tuple[list[int], Vectors]]:
    """Every passage's id and vector, shape (n, dimension), in batches. size: see matrix. Raises StoreDamaged."""
    last = -1
    sql = (
        f"SELECT chunk, data FROM vectors JOIN chunks ON id = chunk WHERE chunk > :last AND {ONLY['passage']}"
        " ORDER BY chunk LIMIT :batch"
    )
    while pairs := database.read(vector, sql, last=last, batch=batch):
        ids = [chunk for chunk, _ in pairs]
        if any(first >= second for first, second in pairwise([last, *ids])):
            raise database.damaged("the vectors are not in order")
        last = ids[-1]
        yield ids, matrix(database, [numbers for _, numbers in pairs], size)


def read_vectors(database: Database, ids: Iterable[int], size: int | None) -> dict[int, Vectors]:
    """The vectors of these chunks; unknown ids are skipped. size: see matrix."""
    sql = "SELECT chunk, data FROM vectors WHERE chunk IN (SELECT value FROM json_each(:ids))"
    pairs = database.read(vector, sql, ids=list(ids))
    vectors = matrix(database, [numbers for _, numbers in pairs], size) if pairs else ()
    return dict(zip((id for id, _ in pairs), vectors, strict=True))


def recall_vectors(database: Database, hashes: Sequence[str], size: int | None) -> dict[str, Vectors]:
    """The vectors already computed for texts with these hashes: of passages, of papers, and pending ones."""
    among = "text_hash IN (SELECT value FROM json_each(:hashes))"
    sql = (
        f"SELECT text_hash, data FROM pending WHERE {among}"
        f" UNION ALL SELECT c.text_hash, v.data FROM vectors v JOIN"
        f" (SELECT text_hash, min(id) AS id FROM chunks WHERE {among} GROUP BY text_hash) c ON v.chunk = c.id"
        f" UNION ALL SELECT text_hash, data FROM paper_vectors WHERE {among}"
    )
    unique = list(dict.fromkeys(hashes))
    pairs = database.read(lambda key, blob: (string(key), vector(0, blob)[1]), sql, hashes=unique)
    return {key: matrix(database, [numbers], size)[0] for key, numbers in pairs}


def keep_pending(database: Database, hashes: Sequence[str], vectors: Vectors) -> None:
    """Keep vectors until their paper is added."""
    packed = {key: pack_vector(vector) for key, vector in zip(hashes, vectors, strict=True)}
    database.insert("pending", [{"text_hash": key, "data": data} for key, data in packed.items()], replace=True)


def matrix(database: Database, numbers: Sequence[bytes], size: int | None) -> Vectors:
    """Vectors as the rows of a matrix, shape (len(numbers), dimension).

    numbers: the bytes of each vector. size: the dimension of the store; None if unknown. Raises StoreDamaged if a
    vector has another dimension.
    """
    expected = 4 * size if size else len(numbers[0])
    if any(len(vector) != expected for vector in numbers):
        raise database.damaged("a vector has another dimension than the store")
    return np.frombuffer(b"".join(numbers), dtype="<f4").astype(np.float32, copy=False).reshape(len(numbers), -1)


@dataclass(frozen=True, slots=True, eq=False)
class PaperVector:
    """The vector of a whole paper. A changed hash shows that it is outdated; it is used until an ingest replaces it."""

    text_hash: str  # of the text that it was made from (papers/metadata.py)
    vector: Vectors  # (dimension,), of unit length


def read_paper_vectors(database: Database) -> dict[str, PaperVector]:
    """Paper id -> its vector. Raises StoreDamaged."""
    return dict(database.read(paper_vector, "SELECT paper, text_hash, data FROM paper_vectors ORDER BY paper"))


def write_paper_vectors(database: Database, vectors: Mapping[str, PaperVector]) -> None:
    """Insert or replace the vectors of papers that are in the library. The caller has a transaction."""
    packed = [
        {"paper": paper, "text_hash": each.text_hash, "data": pack_vector(each.vector)}
        for paper, each in vectors.items()
    ]
    database.insert("paper_vectors", packed, replace=True)
    count_description_change(database)


def paper_vector(paper: object, text_hash: object, data: object) -> tuple[str, PaperVector]:
    """A paper's id and vector. Raises ValueError if the vector has changed since it was written."""
    numbers = np.frombuffer(vector_bytes(typed(bytes, data, "the vector of a paper")), dtype="<f4")
    return string(paper), PaperVector(string(text_hash), numbers.astype(np.float32, copy=False))


def count_description_change(database: Database) -> None:
    """Record that the text by which whole papers are searched has changed."""
    increase(database, "described")
