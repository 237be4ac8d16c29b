"""What is kept of a paper: in rows of Milvus, and whole in one JSON file that the rows can be made of again. Pure.

What is read is checked as untrusted: its types, its bounds, and that spans lie in the text.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from folio.paper_metadata import Metadata, from_json, to_json
from folio.sections import PaperSection, SectionMap
from folio.store.digests import row_digest
from folio.store.paper_vectors import PaperVector
from folio.store.rows import require_tree, typed
from folio.types import NewPaper, PageMap, Vectors

Span = tuple[int, int]
# Characters in one text field: at most four bytes each
PART = 16_000
# Characters of a record's file: the largest paper has some 20 million of text
MOST_CHARACTERS = 2**28


@dataclass(frozen=True, slots=True)
class Structure:
    """What is known of a paper besides its text and passages."""

    metadata: Metadata  # as its PDF says
    pages: PageMap
    problems: tuple[str, ...]
    sections: SectionMap
    length: int  # characters of text
    parts: tuple[int, ...]  # where each part of its pages begins, see page_parts


def structure_of(paper: NewPaper) -> dict[str, Any]:
    """As JSON."""
    require_tree(paper.sections, len(paper.text), "the list of sections")
    return {
        "metadata": to_json(paper.metadata),
        "starts": paper.pages.starts,
        "labels": paper.pages.labels,
        "problems": paper.problems,
        "sections": [astuple(section) for section in paper.sections],
        "length": len(paper.text),
    }


def structure(written: Any) -> Structure:
    """From JSON. Raises ValueError and TypeError if it is not as `structure_of` makes it."""
    what = "the record of a paper"
    fields = typed(dict, written, what)
    pages = PageMap(_listed(int, fields["starts"]), _listed(str, fields["labels"]))
    if len(pages.starts) != len(pages.labels) or any(second < first for first, second in pairwise((0, *pages.starts))):
        raise ValueError(f"{what} has pages out of order")
    length = typed(int, fields["length"], what)
    sections = tuple(PaperSection(*section) for section in _listed(list, fields["sections"]))
    require_tree(sections, length, what)
    return Structure(
        from_json(typed(dict, fields["metadata"], what)),
        pages,
        _listed(str, fields["problems"]),
        SectionMap(sections),
        length,
        tuple(start for start, _ in _part_spans(pages, length)),
    )


def parts(text: str) -> list[str]:
    """A text in parts that fit into a field; one, if it is empty."""
    return [text[at : at + PART] for at in range(0, len(text), PART)] or [""]


def page_parts(text: str, pages: PageMap) -> Iterator[tuple[int, str]]:
    """A paper's text by page, a long page in parts: where each begins, and its text."""
    for start, end in _part_spans(pages, len(text)):
        yield start, text[start:end]


def _part_spans(pages: PageMap, length: int) -> Iterator[Span]:
    for page in range(1, len(pages.starts) + 1):
        start, end = pages.bounds(page, length)
        for at in range(start, end, PART):
            yield at, min(at + PART, end)


@dataclass(frozen=True, slots=True, eq=False)
class PaperRecord:
    """All that an ingest found out about a paper: enough to make its rows again."""

    paper: NewPaper
    version: str
    added: str  # ISO, UTC
    chunk_ids: tuple[int, ...]
    vectors: Vectors  # of its chunks
    as_a_whole: PaperVector | None

    def to_text(self) -> str:
        """As the JSON of a file."""
        whole = self.as_a_whole
        fields = {
            "id": self.paper.id,
            "version": self.version,
            "added": self.added,
            "text": self.paper.text,
            **structure_of(self.paper),
            "chunks": [[id, *span] for id, span in zip(self.chunk_ids, self.paper.chunk_spans, strict=True)],
            "parents": self.paper.parents[len(self.paper.spans) :],  # of the last chunks, which are fine passages
            "vectors": _packed(self.vectors),
            "as_a_whole": [whole.text_hash.hex(), _packed(whole.vector)] if whole else None,
        }
        written = json.dumps(fields, ensure_ascii=False)
        return json.dumps({"record": written, "digest": row_digest("record", written).hex()}, ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str) -> PaperRecord:
        """From the JSON of a file. Raises ValueError, TypeError and KeyError if it is not as it was written."""
        what = "a paper's record"
        outer = typed(dict, json.loads(text), what)
        if outer["digest"] != row_digest("record", outer["record"]).hex():
            raise ValueError(f"{what} has changed since it was written")
        fields = typed(dict, json.loads(typed(str, outer["record"], what)), what)
        found, paper_text = structure(fields), typed(str, fields["text"], what)
        chunks = [tuple(_listed(int, chunk)) for chunk in _listed(list, fields["chunks"])]
        if found.length != len(paper_text) or any(not 0 <= start < end <= found.length for _, start, end in chunks):
            raise ValueError(f"{what} has a passage outside its text")
        places = _listed(int, fields.get("parents", []))
        spans, fine = nested([(start, end) for _, start, end in chunks], places)
        id, sections = typed(str, fields["id"], what), found.sections.sections
        paper = NewPaper(id, found.metadata, paper_text, found.pages, spans, found.problems, sections, fine)
        vectors = _unpacked(fields["vectors"]).reshape(len(chunks), -1)
        whole = fields["as_a_whole"]
        return cls(
            paper,
            typed(str, fields["version"], what),
            typed(str, fields["added"], what),
            tuple(id for id, _, _ in chunks),
            vectors,
            PaperVector(bytes.fromhex(whole[0]), _unpacked(whole[1])) if whole else None,
        )


def nested(chunks: Sequence[Span], places: Sequence[int]) -> tuple[tuple[Span, ...], tuple[tuple[Span, ...], ...]]:
    """The spans of passages, and for each those of its fine passages: `spans` and `fine_spans` of NewPaper.

    chunks: those of passages, then those of fine ones, in the order of their passages. places: for each of the fine
    ones, the place of its passage. Raises ValueError for one that is not in its passage.
    """
    count = len(chunks) - len(places)
    if count < 0 or list(places) != sorted(places) or not set(places) <= set(range(count)):
        raise ValueError("fine passages are in no passage")
    found: list[list[Span]] = [[] for _ in range(count)]
    for (start, end), place in zip(chunks[count:], places, strict=True):
        if not chunks[place][0] <= start < end <= chunks[place][1]:
            raise ValueError("a fine passage lies outside its passage")
        found[place].append((start, end))
    return tuple(chunks[:count]), tuple(map(tuple, found)) if places else ()


def _listed(kind: type, written: Any) -> tuple[Any, ...]:
    values = typed(list, written, "the record of a paper")
    if not set(map(type, values)) <= {kind}:
        raise ValueError("the record of a paper cannot be read")
    return tuple(values)


def _packed(vectors: Vectors) -> str:
    return base64.b64encode(vectors.astype("<f4").tobytes()).decode()


def _unpacked(text: str) -> Vectors:
    return np.frombuffer(base64.b64decode(text), dtype="<f4").astype(np.float32, copy=False)


def joined(found: Sequence[tuple[int, str]]) -> str:
    """A text of its parts, each with its place."""
    return "".join(text for _, text in sorted(found))
