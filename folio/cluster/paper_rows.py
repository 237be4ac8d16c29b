"""A paper's record as rows of the collections. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable

from folio.citation_label import citation_label
from folio.cluster.library_state import short_hash
from folio.cluster.milvus_client import MOST_BYTES, Row
from folio.cluster.paper_record import PaperRecord, page_parts, parts, structure_of
from folio.cluster.token_words import body
from folio.errors import StoreRefused
from folio.paper_metadata import Metadata, bare_arxiv
from folio.sections import APART, SectionMap, overlap
from folio.store.digests import text_crc, text_hash
from folio.text import plain_words
from folio.types import SourceFile

# In place of the names of so many authors that no field holds them
ANY_NAME = "*"


def structure_rows(record: PaperRecord) -> list[Row]:
    """Rows of `structure`."""
    version = record.version
    written = parts(json.dumps(structure_of(record.paper), ensure_ascii=False))
    return [{"key": f"{version}.{n}", "version": version, "part": n, "value": part} for n, part in enumerate(written)]


def page_rows(record: PaperRecord) -> list[Row]:
    """Rows of `pages`."""
    version, paper = record.version, record.paper
    return [
        {"key": f"{version}.{start}", "version": version, "start": start, "text": text}
        for start, text in page_parts(paper.text, paper.pages)
    ]


def chunk_rows(record: PaperRecord, metadata: Metadata) -> tuple[list[Row], list[Row]]:
    """Rows of `chunks` and of `fine`; metadata: of all sources. Raises StoreRefused.

    The words of the paper's title are words of its passages, too.
    """
    paper, kinds = record.paper, PassageKinds(SectionMap(record.paper.sections))
    passages: list[Row] = []
    fine: list[Row] = []
    for place, ((start, end), parent) in enumerate(zip(paper.chunk_spans, paper.parents, strict=True)):
        id, text = record.chunk_ids[place], paper.text[start:end]
        row = {
            "key": chunk_key(record.version, id),
            "chunk": id,
            "paper": paper.id,
            "version": record.version,
            "start": start,
            "end": end,
            "text_hash": text_hash(text).hex(),
            "year": metadata.printed_year or 0,
            "kinds": barred(kinds.of(start, end)),
            "apart": kinds.apart(start, end),
            "vector": record.vectors[place].tolist(),
        }
        if parent is None:
            passages.append({**row, "body": fitting(body(metadata.title.value, text))})
        else:
            fine.append({**row, "parent": record.chunk_ids[parent]})
    return passages, fine


def chunk_key(version: str, id: int) -> str:
    """The key of a chunk's row."""
    return f"{version}.{id}"


class PassageKinds:
    """The kinds of sections of parts of a paper."""

    def __init__(self, sections: SectionMap) -> None:
        self._sections = sections.sections
        self._apart = {kind: sections.apart(frozenset({kind})) for kind in sorted(APART)}

    def of(self, start: int, end: int) -> set[str]:
        """Those of the sections that a part lies in, in part at least."""
        return {section.kind for section in self._sections if section.start < end and start < section.end}

    def apart(self, start: int, end: int) -> str:
        """The kind of APART that most of it is of; "" for none."""
        half = (end - start) / 2
        return next((kind for kind, spans in self._apart.items() if overlap(spans, start, end) > half), "")


def barred(words: Iterable[str]) -> str:
    """Words as a text in which `like "%|word|%"` finds each of them."""
    return f"|{'|'.join(sorted(set(words)))}|"


def paper_row(record: PaperRecord, metadata: Metadata, files: Iterable[SourceFile]) -> Row:
    """The row of `papers`; metadata: of all sources. Raises StoreRefused."""
    paper, whole = record.paper, record.as_a_whole
    dimension = record.vectors.shape[1]
    return {
        "id": paper.id,
        "version": record.version,
        "visible": 1,
        **files_fields(files),
        "added": record.added,
        "crc": text_crc(paper.text),
        "passages": len(paper.spans),
        "fine": len(paper.chunk_spans) - len(paper.spans),
        **found_by(metadata),
        "vector_hash": whole.text_hash.hex() if whole else "",
        "vector": whole.vector.tolist() if whole else [1.0] + [0.0] * (dimension - 1),
    }


def found_by(metadata: Metadata) -> Row:
    """The fields of a paper's row that say what is known about it: what filters find it by.

    `alike` and `work` are the same for papers that citations would name alike.
    """
    label, work = citation_label(metadata), bare_arxiv(metadata.arxiv.value)
    people = metadata.authors.value
    names = barred(word for name in people for word in plain_words(f"{name.given} {name.family}"))
    return {
        "year": metadata.printed_year or 0,
        "names": names if len(names.encode(errors="replace")) <= MOST_BYTES else ANY_NAME,
        "alike": short_hash(label) if label else "",
        "work": short_hash(work) if work else "",
    }


def files_from(text: str, paper: str) -> list[SourceFile]:
    """The files of a paper, as they are kept. Raises ValueError, TypeError."""
    return [SourceFile(str(path), str(name), paper) for path, name in json.loads(text)]


def files_of(row: Row) -> list[SourceFile]:
    """The files of a paper, of its row. Raises ValueError, TypeError."""
    return files_from(row["files"], row["id"])


def files_fields(files: Iterable[SourceFile]) -> Row:
    """The fields of a paper's row that say where its files are. Raises StoreRefused."""
    kept = list(files)
    text = json.dumps([[file.path, file.name] for file in kept])
    return {"files": fitting(text), "paths": [short_hash(file.path) for file in kept]}


def fitting(text: str) -> str:
    """The text, if a field can hold it. Raises StoreRefused."""
    if len(text.encode(errors="replace")) > MOST_BYTES:
        raise StoreRefused(
            f"Milvus cannot hold a text of more than {MOST_BYTES:,} bytes in a field: {text[:60]!r}...",
            "Leave out what you were adding, and run the same command again.",
        )
    return text
