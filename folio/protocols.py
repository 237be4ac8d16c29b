"""Protocols with more than one implementation: embedders, BM25 engines, rerankers, answerers, verifiers."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from folio.answer_types import Answer, Checking, Evidence, RejectedSentence, Sentence, Style, Thinking
from folio.papers.model import Hit, Passage, Reading, Tokens, Vectors, require

if TYPE_CHECKING:
    from folio.question.question import Question

# Token of a question -> its weight (LexicalIndex.rarity)
TermWeights = Mapping[str, float]


class Embedder(Protocol):
    """Texts to unit vectors. Queries and passages are embedded by different calls."""

    name: str

    @property
    def dimension(self) -> int:
        """Dimension of the vectors."""
        ...

    def identity(self) -> dict[str, str]:
        """The embedder's part of a store's fingerprint; a store made with another one cannot be searched."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dimension), rows of unit length. Raises ModelError."""
        ...

    def embed_query(self, text: str) -> Vectors:
        """Shape (dimension,), of unit length. Raises ModelError."""
        ...

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dimension), rows of unit length, in one call of the model. Raises ModelError."""
        ...


@runtime_checkable
class TitledEmbedder(Protocol):
    """An embedder that may read a passage with the title of its paper."""

    @property
    def reads_titles(self) -> bool:
        """Whether titles make a difference."""
        ...

    def embed_titled(self, passages: Sequence[tuple[str, str]]) -> Vectors:
        """Shape (len(passages), dimension), rows of unit length. passages: text and title, "" for none.

        Raises ModelError.
        """
        ...


class TokenEmbedder(Embedder, Protocol):
    """An embedder that also gives the embedding of each token."""

    def load_in_background(self) -> None:
        """Start loading the model in a thread; the first call waits for it and raises its errors."""
        ...

    def is_word(self, word: str) -> bool:
        """Whether this word, in small letters, is one that the model knows whole. Raises ModelError."""
        ...

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """The token embeddings of each text, in order. Raises ModelError."""
        ...


class LexicalIndex(Protocol):
    """BM25 over the chunks of a library."""

    def search(self, query: str, k: int, papers: frozenset[str] | None = None) -> list[tuple[int, float]]:
        """At most k (chunk id, BM25 score), best first, ties by id. papers: search only these."""
        ...

    def rarity(self, token: str) -> float:
        """The weight of a token: its inverse document frequency, 0 or more."""
        ...

    def passages_with(self, token: str) -> int:
        """How many passages have a token."""
        ...

    def passages_of(self, token: str, k: int) -> list[int]:
        """At most k chunk ids of passages that have a token, by BM25 score, best first."""
        ...

    def vocabulary(self) -> Mapping[str, int]:
        """Word, as a token -> how many passages have it. Only the most frequent words, of letters, in two or more."""
        ...


@dataclass(frozen=True, slots=True)
class Written:
    """What a question is searched with besides itself."""

    wordings: tuple[str, ...] = ()
    passage: str = ""  # one that would answer it; passages with a vector near its own are found


NOTHING_WRITTEN = Written()


class QueryWriter(Protocol):
    """A model that writes what a question is searched with besides itself. Several threads may ask it."""

    def write(self, question: str) -> Written:
        """NOTHING_WRITTEN where it has nothing usable. Raises ModelError if there is no such model."""
        ...


class PassageReader(Protocol):
    """A model that reads a question and a passage together."""

    def read(self, question: str, passages: Sequence[Passage]) -> list[Reading]:
        """What it makes of each passage. Raises ModelError."""
        ...

    def load_in_background(self) -> None:
        """Start loading it; the first call waits for that."""
        ...


class Reranker(Protocol):
    """Scores candidates for a question; higher is better."""

    name: str
    reads: int | None  # how many of the best candidates it is given; None for all

    def scores(self, question: str, hits: Sequence[Hit], weights: TermWeights) -> list[float]:
        """One score in [0, 1] for each hit, in the order given. weights: of the question's tokens."""
        ...


class Answerer(Protocol):
    """Question and evidence to the sentences of an answer, each with its citations, one at a time.

    It answers one question at a time: `notice` and `failed` are of the last answer.
    """

    name: str
    notice: str  # a remark to show with the answer, such as that it was cut off; "" for none
    failed: bool  # whether the model's server failed during the last answer
    evidence_tokens: int  # how much evidence it takes
    quotes_only: bool  # whether its sentences are the papers' own, chosen and not written

    def sentences(
        self, question: Question, evidence: Sequence[Evidence], style: Style = "plain"
    ) -> Generator[Sentence | RejectedSentence | Checking | Thinking, None, float | None]:
        """Yield the answer's sentences; a yielded sentence is final. Raises ModelError.

        Returns how sure it is that the evidence answers, 0 to 1, or None where it does not know that. An answerer
        refuses below a threshold of its own.
        """
        ...

    def standalone(self, question: str, history: Sequence[Answer]) -> str:
        """A follow-up rewritten so that it stands alone. Raises ModelError, and NotUnderstoodError (followup.py)."""
        ...


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement, and the sentences of a paper that are said to support it."""

    statement: str
    premise: str  # the cited sentences with their neighbours, in reading order, as they stand in the paper
    title: str = ""  # of their paper


@dataclass(frozen=True, slots=True)
class Entailment:
    """What a verifier says of a claim."""

    entails: float | None  # probability that the statement follows from the premise; None: the verifier does not know
    contradicts: float = 0.0  # probability that the premise says the contrary; 0 where the verifier cannot tell

    def __post_init__(self) -> None:
        require(self.entails is None or 0 <= self.entails <= 1, "entails is a probability")
        require(0 <= self.contradicts <= 1, "contradicts is a probability")


@dataclass(frozen=True, slots=True)
class PromptStart:
    """What the requests of one answer share, byte for byte, so that the server reads it once."""

    rules: str  # the system message
    evidence: str  # the beginning of the user message: all evidence, ending in a newline
    context: int  # num_ctx in tokens


class Verifier(Protocol):
    """Judges whether cited sentences entail a statement."""

    name: str

    def for_answer(self, start: PromptStart) -> Verifier:
        """One that shares the beginning of an answer's prompt; a verifier without that prompt returns itself."""
        ...

    def entails(self, claims: Sequence[Claim]) -> Iterator[Entailment]:
        """One for each claim, in order, as each is known. Raises ModelError."""
        ...
