"""Rows of the library -> dataclasses. Every value is checked: its type, and what must hold for it. Pure.

Each function takes the columns of a row and raises ValueError if the row is not as it was written, with a clause that
completes "The library is damaged: ..."; `Database.read` makes StoreDamaged of that, and of any other error here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

from folio.identifiers import bare_arxiv
from folio.paper_metadata import SOURCES, Metadata, Source, from_json
from folio.sections import KINDS, PaperSection, SectionMap
from folio.store.database import SaidChanged, storable
from folio.store.digests import row_digest, text_crc, vector_bytes
from folio.types import Chunk, Failure, PageMap, Paper, SourceFile

T = TypeVar("T")
# Characters of a title by which papers are found that are cited alike; and of a name or an identifier: what is longer
# fits in no index of PostgreSQL
TITLE_START, _KEY_START = 20, 200


@dataclass(frozen=True, slots=True)
class Stamp:
    """The state of the library that an index was built from. A rebuild starts a new epoch, each paper a generation."""

    epoch: str
    generation: int


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk with its text, for the BM25 index."""

    id: int
    paper_id: str
    title: str
    text: str


def typed(kind: type[T], value: object, what: str) -> T:
    """The value, which must be of exactly this type. Raises ValueError."""
    if type(value) is not kind:
        raise ValueError(f"{what} cannot be read")
    return value


def listed(kind: type[T], written: object, what: str) -> tuple[T, ...]:
    """A JSON list of values of one type. Raises ValueError."""
    values = typed(list, json.loads(typed(str, written, what)), what)
    if not set(map(type, values)) <= {kind}:
        raise ValueError(f"{what} cannot be read")
    return tuple(values)


def mapped(written: object, what: str) -> dict[str, Any]:
    """A JSON object. Raises ValueError."""
    return typed(dict, json.loads(typed(str, written, what)), what)


def number(value: object) -> int:
    return typed(int, value, "a number")


def string(value: object) -> str:
    return typed(str, value, "a text")


# Everything shown about papers, but what people and services say of them
PAPER_COLUMNS = "id, length, starts, labels, problems, sections, metadata, added, passages, text_crc"
SELECT_PAPERS = (
    f"SELECT {PAPER_COLUMNS}, digest, (SELECT min(name) FROM files WHERE files.paper = papers.id) FROM papers"
)
CHUNK_COLUMNS = 'id, paper, start, "end", text_hash, parent'
METADATA_COLUMNS = "paper, source, fields"


def paper(*row: Any) -> Paper:
    """From SELECT_PAPERS, with what its PDF says of it."""
    *about, digest, file = row
    id, length, starts, labels, problems, sections, metadata, _, passages, _ = about
    what = f"the record of paper {str(id)[:12]}"
    if digest != row_digest("papers", *about):
        raise ValueError(f"{what} has changed since it was written")
    pages = PageMap(listed(int, starts, what), listed(str, labels, what))
    if len(pages.starts) != len(pages.labels) or any(second < first for first, second in pairwise((0, *pages.starts))):
        raise ValueError(f"{what} has pages out of order")
    tree = tuple(PaperSection(*section) for section in listed(list, sections, what))
    require_tree(tree, length, what)
    found = from_json(mapped(metadata, what))
    return Paper(
        id, string(file), found, pages, length, number(passages), listed(str, problems, what), SectionMap(tree)
    )


def metadata_layer(paper: object, source: object, fields: object) -> tuple[str, Source, Metadata]:
    """From METADATA_COLUMNS: a paper, a source, and what that says of it."""
    what = f"the metadata of paper {string(paper)[:12]}"
    if source not in SOURCES:
        raise ValueError(f"{what} is from an unknown source")
    return string(paper), source, from_json(mapped(fields, what))


def search_keys(metadata: Metadata) -> dict[str, object]:
    """The columns by which papers are found that are cited alike, or are versions of one; None for the unknown."""
    authors = metadata.authors.value
    return {
        "family": storable(authors[0].family[:_KEY_START]) if authors else None,
        "title_start": storable(metadata.title.value[:TITLE_START]) or None,
        "arxiv": storable(bare_arxiv(metadata.arxiv.value)[:_KEY_START]) or None,
        "doi": storable(metadata.doi.value.casefold()[:_KEY_START]) or None,
        "year": metadata.year.value if metadata.year.sure else None,
    }


def require_tree(sections: Sequence[PaperSection], length: int, what: str) -> None:
    """Raises ValueError unless each section lies in the text, and within those that are open where it starts."""
    ends = [length]
    last = -1
    for section in sections:
        while ends and ends[-1] <= section.start:
            ends.pop()
        if not (last < section.start < section.end and ends and section.end <= ends[-1] and section.kind in KINDS):
            raise ValueError(f"{what} has sections out of order")
        ends.append(section.end)
        last = section.start


def text(paper: object, written: object, crc: object) -> tuple[str, str]:
    """A paper and its text. Raises ValueError if that does not have its CRC."""
    found = string(written)
    if text_crc(found) != crc:
        raise ValueError(f"the text of paper {string(paper)[:12]} is not the one that was stored")
    return string(paper), found


def source_file(path: object, name: object, paper: object) -> SourceFile:
    return SourceFile(string(path), string(name), string(paper))


def failure(path: object, name: object, sha256: object, happened: object, remedy: object) -> Failure:
    return Failure(source_file(path, name, sha256), string(happened), string(remedy))


def chunk(*row: Any) -> tuple[Chunk, str]:
    """From CHUNK_COLUMNS: a chunk and the hash of its text."""
    id, paper, start, end, text_hash, parent = row
    found = Chunk(number(id), string(paper), number(start), number(end), None if parent is None else number(parent))
    return found, string(text_hash)


def vector(id: object, blob: object) -> tuple[int, bytes]:
    """A chunk's id and the numbers of its vector (float32, little-endian)."""
    return number(id), vector_bytes(typed(bytes, blob, "a vector"))


def text_pair(key: object, value: object) -> tuple[str, str]:
    return string(key), string(value)


def stamp(meta: Mapping[str, str]) -> Stamp:
    """From the table meta: its epoch and its generation."""
    return Stamp(meta["epoch"], int(meta["generation"]))


def fingerprint(value: object) -> dict[str, str]:
    what = "the store's fingerprint"
    return {key: typed(str, field, what) for key, field in mapped(value, what).items()}


# The log and the conversations

# Without its feedback, which is added later, and its checksum
QUERY_COLUMNS = (
    "id, asked, question, standalone_question, chunks, answer, sources, timings_ms, model, confidence, trace"
)
TURN_COLUMNS = "conversation, place, asked, reply, memory, query, crc"
LoggedFields = tuple[
    str, str, str, tuple[int, ...], str, tuple[list[Any], ...], dict[str, float], str, Any, float | None,
    dict[str, Any] | None,
]  # fmt: skip


def shown_crc(*values: object) -> int:
    """The checksum of what people saw: it has quotes."""
    return text_crc(json.dumps(values))


def query(*row: Any) -> LoggedFields:
    """From QUERY_COLUMNS, feedback and crc: the fields of a LogEntry (query_log.py), its sources as lists."""
    *about, feedback, crc = row
    id, asked, question, standalone, chunks, answer, sources, timings_ms, model, confidence, trace = about
    what = f"question {id} of the log"
    if crc != shown_crc(*about[1:]):
        raise SaidChanged(f"{what} has changed since it was written")
    if feedback not in ("", "good", "bad"):
        raise ValueError(f"the feedback on {what} cannot be read")
    sure = None if confidence is None else typed(float, confidence, what)
    cited, timings = listed(list, sources, what), mapped(timings_ms, what)
    found = None if trace is None else mapped(trace, what)
    return asked, question, standalone, listed(int, chunks, what), answer, cited, timings, model, feedback, sure, found


def turn(*row: Any) -> tuple[str, int, str, dict[str, Any], str, int | None]:
    """From TURN_COLUMNS: conversation, place, time, reply, memory (answer_snapshot.py), row in the query log."""
    conversation, place, asked, reply, memory, query, crc = row
    what = "a turn of a conversation"
    if crc != shown_crc(reply, memory):
        raise SaidChanged(f"{what} has changed since it was written")
    return conversation, place, asked, mapped(reply, what), string(memory), None if query is None else number(query)
