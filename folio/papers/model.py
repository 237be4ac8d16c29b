"""The frozen dataclasses that pass between packages. answer_types.py has those of an answer."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from folio.errors import NotKnown
from folio.papers.identifiers import without_version
from folio.papers.metadata import NO_METADATA, Metadata
from folio.papers.sections import NO_HEADINGS, NO_SECTIONS, HeadingLines, PaperSection, SectionMap
from folio.papers.work import WorkNotice, flag
from folio.shown_text import page_words
from folio.text import without_ending

Vectors = npt.NDArray[np.float32]
# Passages are searched, ranked and shown. A passage may contain fine passages: a few sentences with their own vector.
Grain = Literal["passage", "fine"]


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a PDF."""

    number: int  # physical, from 1
    label: str  # the label printed on it ("iv", "127"); "" if the file states none
    text: str
    problem: str = ""  # the problem in reading it, for the ingest report
    furniture: tuple[str, ...] = ()  # lines that other pages repeat at the same place, without page numbers
    goes_on: bool = False  # whether its last sentence goes on at the beginning of the next page
    inside: tuple[str, ...] = ()  # running heads and feet within a sentence that goes on over a page break


class Described:
    """A base class for objects with metadata, with shortcuts to its most used values."""

    __slots__ = ()
    metadata: Metadata

    @property
    def title(self) -> str:
        return self.metadata.title.value

    @property
    def authors(self) -> tuple[str, ...]:
        """The authors' names as people write them."""
        return tuple(map(str, self.metadata.authors.value))

    @property
    def year(self) -> int | None:
        return self.metadata.printed_year

    @property
    def arxiv(self) -> str:
        """arXiv identifier, with the version if it is known: "2301.01234v2"."""
        return self.metadata.arxiv.value


@dataclass(frozen=True, slots=True)
class ParsedPdf(Described):
    """A parsed PDF: its pages and metadata."""

    pages: tuple[Page, ...]
    metadata: Metadata = NO_METADATA
    problems: tuple[str, ...] = ()  # of the file as a whole
    headings: HeadingLines = NO_HEADINGS


@dataclass(frozen=True, slots=True)
class PageMap:
    """The offset of each page in a paper's text.

    starts[i] is the offset, in characters, of physical page i + 1; starts[0] is 0 and the offsets never decrease. A
    page without text has the offset of the next one.
    """

    starts: tuple[int, ...]
    labels: tuple[str, ...]

    def page_at(self, offset: int) -> int:
        """The physical page, from 1, with the character at this offset."""
        return max(1, bisect_right(self.starts, offset))

    def pages_of(self, start: int, end: int) -> tuple[int, int]:
        """First and last physical page of the text [start, end)."""
        return self.page_at(start), self.page_at(max(start, end - 1))

    def bounds(self, page: int, length: int) -> tuple[int, int]:
        """The span [start, end) of a physical page in a text of this length."""
        end = self.starts[page] if page < len(self.starts) else length
        return self.starts[page - 1], end

    def label(self, page: int) -> str:
        """The label printed on a physical page, or its number if it has none."""
        return self.labels[page - 1] or str(page)


@dataclass(frozen=True, slots=True)
class Paper(Described):
    """A paper in the library, without its text."""

    id: str  # SHA-256 of its file, in hex
    file: str  # the displayed file name
    metadata: Metadata  # from all sources
    pages: PageMap
    length: int  # characters of text
    chunks: int
    problems: tuple[str, ...] = ()
    sections: SectionMap = NO_SECTIONS
    # Its name in citations, "Ongaro & Ousterhout 2014b"; "" if uncertain or not wanted: then citations use the key
    label: str = ""
    by_file: bool = False  # whether its key is its file name even if it has an arXiv identifier
    has_versions: bool = False  # whether the library has several versions of it, so that its name includes the version
    notices: tuple[WorkNotice, ...] = ()  # retractions, corrections and newer versions
    copy_of: str = ""  # the id of the paper with the same text that is searched in its place

    @property
    def is_copy(self) -> bool:
        """Whether the library has it again, with the same text, and searches that one."""
        return bool(self.copy_of)

    @property
    def flag(self) -> WorkNotice | None:
        """The gravest notice, which everybody who cites the paper must know, such as a retraction."""
        return flag(self.notices)

    @property
    def page_count(self) -> int:
        return len(self.pages.starts)

    @property
    def key(self) -> str:
        """Its name in lists: "arXiv:2301.01234", otherwise its file without the ending: "otters", "seas/otters"."""
        if self.arxiv and not self.by_file:
            return f"arXiv:{self.arxiv if self.has_versions else without_version(self.arxiv)}"
        return without_ending(self.file)

    @property
    def cited_as(self) -> str:
        """Its name in citations without a label: "arXiv:2301.01234", otherwise "otters.pdf", "seas/otters.pdf".

        Labels never end like a file name, so a file cannot have the name of another paper's label.
        """
        return self.key if self.arxiv and not self.by_file else self.file


def require_page(paper: Paper, page: int) -> None:
    """Raise NotKnown if the paper has no such page."""
    if not 1 <= page <= paper.page_count:
        raise NotKnown(f"The paper has no page {page}.", f"Its last page is {paper.page_count}.")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span [start, end) of a paper's text."""

    id: int  # 63-bit hash of paper, span and kind; its id in SQLite, FAISS and BM25
    paper_id: str
    start: int
    end: int
    parent: int | None = None  # of a fine passage: the id of the passage that contains it


@dataclass(frozen=True, slots=True)
class NewPaper(Described):
    """A parsed, cleaned and split paper, ready for the library."""

    id: str
    metadata: Metadata  # from its PDF
    text: str
    pages: PageMap
    spans: tuple[tuple[int, int], ...]
    problems: tuple[str, ...] = ()
    sections: tuple[PaperSection, ...] = ()
    fine_spans: tuple[tuple[tuple[int, int], ...], ...] = ()  # for each span, those of the fine passages in it

    @property
    def chunk_spans(self) -> tuple[tuple[int, int], ...]:
        """The spans of all its chunks: its passages, then its fine passages."""
        return (*self.spans, *(span for spans in self.fine_spans for span in spans))

    @property
    def parents(self) -> tuple[int | None, ...]:
        """For each of chunk_spans: None for a passage; for a fine passage, the index of its passage."""
        inside = (place for place, spans in enumerate(self.fine_spans) for _ in spans)
        return (*(None for _ in self.spans), *inside)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that a search found, with its scores; None for the score of a search that did not find it."""

    chunk_id: int
    score: float
    dense: float | None = None
    lexical: float | None = None


@dataclass(frozen=True, slots=True)
class Tokens:
    """A text's token embeddings and the span of each token in the text.

    A long text is read in overlapping windows; a token in two windows is listed twice.
    """

    states: Vectors  # (tokens, dimension), rows of unit length
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Passage:
    """The input of the reader model for a question: a text, and its headings."""

    above: str  # the paper's title and the section
    text: str


@dataclass(frozen=True, slots=True)
class Reading:
    """The reader model's log-odds that a passage answers the question, and that the text around each token does."""

    answers: float
    tokens: tuple[float, ...]
    starts: tuple[int, ...]  # the offset of each token in the passage's text, in characters

    def sentence(self, start: int, end: int) -> float:
        """The log-odds that the characters [start, end) answer: the mean of their tokens. -inf without a token."""
        tokens = self.tokens[bisect_left(self.starts, start) : bisect_left(self.starts, end)]
        return sum(tokens) / len(tokens) if tokens else -math.inf


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage found for a question."""

    chunk: Chunk
    paper: Paper
    text: str
    score: float
    dense: float | None = None  # cosine to the question
    lexical: float | None = None  # BM25
    highlights: tuple[tuple[int, int], ...] = ()  # its fine passages nearest to the question: spans of the paper
    summary: str = ""  # a model's summary for the question: it guides an answer, and is never evidence
    # The question, or the parts of it, that a plain search found this for; only while answering, not saved
    found_for: tuple[str, ...] = field(default=(), compare=False)

    @property
    def span(self) -> tuple[int, int]:
        """Its span in the text of the paper."""
        return self.chunk.start, self.chunk.end

    @property
    def pages(self) -> tuple[int, int]:
        """First and last physical page of the passage."""
        return self.paper.pages.pages_of(self.chunk.start, self.chunk.end)

    @property
    def page_breaks(self) -> tuple[int, ...]:
        """The offset in its text of each page after the first, in characters."""
        first, last = self.pages
        return tuple(start - self.chunk.start for start in self.paper.pages.starts[first:last])

    @property
    def where(self) -> str:
        """The pages in words: "p. 3" or "pp. 3–4"."""
        return page_words(self.pages)

    @property
    def section(self) -> str:
        """The section in words, see SectionMap.shown."""
        return self.paper.sections.shown(self.chunk.start, self.chunk.end)


@dataclass(frozen=True, slots=True)
class PaperHit:
    """A paper found by a query, with the reasons."""

    paper: Paper
    score: float
    lexical: float | None = None  # BM25 of its title, abstract, headings, authors and venue
    dense: float | None = None  # the cosine of these texts to the query
    words: tuple[str, ...] = ()  # the words of the query in these texts
    passage: Hit | None = None  # its best passage for the query


# Called as work progresses: label, items done, total items
Progress = Callable[[str, int, int], None]
Notice = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A PDF on disk."""

    path: str  # absolute
    name: str  # the displayed name: relative to the ingested folder
    sha256: str


@dataclass(frozen=True, slots=True)
class Failure:
    """A file that could not be read, with the reason."""

    file: SourceFile
    happened: str
    remedy: str
