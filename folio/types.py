"""The frozen dataclasses that travel between rooms, and the Protocols that have two implementations."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]

REFUSAL = "Not found in the provided papers."


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a PDF as it was read."""

    number: int  # physical, from 1
    label: str  # the label printed on it ("iv", "127"); "" where the file states none
    text: str
    problem: str = ""  # what was odd about it, for the ingest report


@dataclass(frozen=True, slots=True)
class ParsedPdf:
    """A PDF as it was read: its pages and what it says about itself."""

    pages: tuple[Page, ...]
    title: str = ""
    authors: tuple[str, ...] = ()
    year: int | None = None
    problems: tuple[str, ...] = ()  # of the file as a whole


@dataclass(frozen=True, slots=True)
class PageMap:
    """Where each page begins in a paper's text.

    starts[i] is the offset, in characters, of physical page i + 1; starts[0] is 0 and the offsets never fall.
    A page without text starts where the next one does.
    """

    starts: tuple[int, ...]
    labels: tuple[str, ...]

    def page_at(self, offset: int) -> int:
        """The physical page, from 1, that holds the character at this offset."""
        return max(1, bisect_right(self.starts, offset))

    def pages_of(self, start: int, end: int) -> tuple[int, int]:
        """First and last physical page of the text [start, end)."""
        return self.page_at(start), self.page_at(max(start, end - 1))

    def bounds(self, page: int, length: int) -> tuple[int, int]:
        """The span [start, end) of a physical page in a text of this length."""
        end = self.starts[page] if page < len(self.starts) else length
        return self.starts[page - 1], end

    def label(self, page: int) -> str:
        """The label printed on a physical page, or its number where none is."""
        return self.labels[page - 1] or str(page)


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper in the library, without its text."""

    id: str  # SHA-256 of its file, in hex
    file: str  # the name that people see
    title: str
    authors: tuple[str, ...]
    year: int | None
    pages: PageMap
    length: int  # characters of text
    chunks: int
    problems: tuple[str, ...] = ()

    @property
    def page_count(self) -> int:
        return len(self.pages.starts)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span [start, end) of a paper's text."""

    id: int  # 63-bit hash of paper, span and kind; the same number names it in SQLite, FAISS and BM25
    paper: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class NewPaper:
    """A paper as ingest hands it to the library, parsed, cleaned and split."""

    id: str
    title: str
    authors: tuple[str, ...]
    year: int | None
    text: str
    pages: PageMap
    spans: tuple[tuple[int, int], ...]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that a search found, with the scores that speak for it; None where that search did not find it."""

    chunk_id: int
    score: float
    dense: float | None = None
    lexical: float | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage found for a question."""

    chunk: Chunk
    paper: Paper
    text: str
    score: float
    dense: float | None = None  # cosine to the question
    lexical: float | None = None  # BM25

    @property
    def pages(self) -> tuple[int, int]:
        """First and last physical page that the passage stands on."""
        return self.paper.pages.pages_of(self.chunk.start, self.chunk.end)

    @property
    def where(self) -> str:
        """Its pages as people write them: "p. 3" or "pp. 3–4"."""
        first, last = self.pages
        return f"p. {first}" if first == last else f"pp. {first}–{last}"


@dataclass(frozen=True, slots=True)
class Citation:
    """A quote and the page it stands on, word for word."""

    file: str
    title: str
    page: int  # physical, from 1
    label: str  # as printed on the page
    quote: str
    source: int  # the evidence's number, from 1: its rank among the hits


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of an answer with what it stands on."""

    text: str
    citations: tuple[Citation, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What is printed: sentences that all cite a page, or the refusal and no sentence."""

    question: str
    standalone_question: str  # the follow-up with what it refers to filled in
    sentences: tuple[Sentence, ...]
    dropped: int = 0  # sentences a model wrote that no passage supports
    notice: str = ""  # what else is to be said about it, such as that it was cut

    @property
    def refused(self) -> bool:
        return not self.sentences

    @property
    def text(self) -> str:
        return " ".join(sentence.text for sentence in self.sentences) or REFUSAL

    @property
    def citations(self) -> tuple[Citation, ...]:
        """Every citation once, in the order of the answer."""
        return tuple(dict.fromkeys(c for sentence in self.sentences for c in sentence.citations))


@dataclass(frozen=True, slots=True)
class Turn:
    """One question of a chat and what was answered."""

    question: str
    standalone_question: str
    answer: str


class Embedder(Protocol):
    """Texts to vectors of unit length. Queries and passages are different calls."""

    name: str

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        ...

    def identity(self) -> dict[str, str]:
        """What a store must have been made with to be asked with this embedder: part of its fingerprint."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dimension), rows of unit length. Raises ModelError."""
        ...

    def embed_query(self, text: str) -> Vectors:
        """Shape (dimension,), of unit length. Raises ModelError."""
        ...


class LexicalIndex(Protocol):
    """BM25 over the chunks of a library."""

    def search(self, query: str, k: int, papers: frozenset[str] | None = None) -> list[tuple[int, float]]:
        """At most k (chunk id, BM25 score), best first, ties by id; within these papers only where they are given."""
        ...

    def rarity(self, token: str) -> float:
        """How much a token tells: its inverse document frequency, from 0 upwards."""
        ...


class Reranker(Protocol):
    """Question and candidates to scores, higher is better."""

    name: str
    reads: int | None  # how many of the best candidates it is given; None for all of them

    def scores(self, question: str, hits: Sequence[Hit], weights: TermWeights) -> list[float]:
        """One score for each hit, in the order given, each from 0 to 1. weights: of the question's tokens."""
        ...


class Answerer(Protocol):
    """Question and evidence to the sentences of an answer, each with its citations, one at a time."""

    name: str
    notice: str  # what is to be said about the last answer besides; "" for nothing

    def sentences(self, question: str, hits: Sequence[Hit]) -> Iterator[Sentence | None]:
        """None stands for a sentence that was withheld because no passage supports it. Raises ModelError."""
        ...

    def standalone(self, question: str, history: Sequence[Turn]) -> str:
        """A follow-up with what it refers to filled in. Raises ModelError."""
        ...


# Token of a question -> how much it tells (LexicalIndex.rarity)
TermWeights = Mapping[str, float]
# Called as work goes on: what for (a label), done so far, of how many
Progress = Callable[[str, int, int], None]
Notice = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Stamp:
    """Which state of the library something was made from. A rebuild starts a new epoch; a paper, a generation."""

    epoch: str
    generation: int


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A PDF on disk, as ingest found it."""

    path: str  # absolute
    name: str  # what people see: relative to the folder that was ingested
    sha256: str


@dataclass(frozen=True, slots=True)
class Failure:
    """A file that gave no text, and why."""

    file: SourceFile
    happened: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk with its text, as the BM25 index takes it in."""

    id: int
    paper: str
    title: str
    text: str
