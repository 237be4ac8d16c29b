"""What has two implementations: embedders, BM25 engines, rerankers, answerers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from folio.types import Answer, Evidence, Hit, RejectedSentence, Sentence, Style, Tokens, Vectors

# Token of a question -> how much it tells (LexicalIndex.rarity)
TermWeights = Mapping[str, float]


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


class TokenEmbedder(Embedder, Protocol):
    """One that also tells what it makes of each token of a text."""

    def load_in_background(self) -> None:
        """Begin to load the model beside whatever else is done; the first text waits for it, and has the errors."""
        ...

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """The tokens of each text, in order. Raises ModelError."""
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
    """Question and evidence to the sentences of an answer, each with its citations, one at a time.

    One answers one question at a time: `notice` is of the last one.
    """

    name: str
    notice: str  # what is to be said about the last answer besides; "" for nothing
    evidence_tokens: int  # how much evidence it takes

    def sentences(
        self, question: str, evidence: Sequence[Evidence], style: Style = "plain"
    ) -> Iterator[Sentence | RejectedSentence]:
        """A sentence is final once it has been yielded. Raises ModelError."""
        ...

    def standalone(self, question: str, history: Sequence[Answer]) -> str:
        """A follow-up with what it refers to filled in. Raises ModelError."""
        ...
