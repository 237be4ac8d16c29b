"""Rows of the library -> dataclasses. Checks the type of every value, and its constraints. Pure.

Each function takes the columns of a row, and raises ValueError if the row has changed since it was written, with a
clause that completes "The library is damaged: ...". `Database.read` turns any error here into StoreDamaged.
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
from folio.store.database import UserDataChanged, storable
from folio.store.digests import row_digest, text_crc, vector_bytes
from folio.types import Chunk, Failure, PageMap, Paper, SourceFile

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


def text(paper: object, value: object, crc: object) -> tuple[str, str]:
    """A paper and its text. Raises ValueError if the text does not have this CRC."""
    if text_crc(string(value)) != crc:
        raise ValueError(f"the text of paper {string(paper)[:12]} is not the one that was stored")
    return string(paper), string(value)


def source_file(path: object, name: object, paper: object) -> SourceFile:
    return SourceFile(string(path), string(name), string(paper))


def failure(path: object, name: object, sha256: object, happened: object, remedy: object) -> Failure:
    return Failure(source_file(path, name, sha256), string(happened), string(remedy))


def chunk(*row: Any) -> tuple[Chunk, str]:
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


def fingerprint(value: object) -> dict[str, str]:
    label = "the store's fingerprint"
    return {key: typed(str, field, label) for key, field in mapped(value, label).items()}


# The log and the conversations

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
    return (
        asked,
        question,
        standalone,
        listed(int, chunks, label),
        answer,
        cited,
        timings,
        model,
        feedback,
        sure,
        trace_fields,
    )


def turn(*row: Any) -> tuple[str, int, str, dict[str, Any], str, int | None]:
    """From TURN_COLUMNS: conversation, place, time, reply, memory (answer_snapshot.py), row in the query log."""
    conversation, place, asked, reply, memory, query, crc = row
    label = "a turn of a conversation"
    if crc != shown_crc(reply, memory):
        raise UserDataChanged(f"{label} has changed since it was written")
    return conversation, place, asked, mapped(reply, label), string(memory), None if query is None else number(query)
