"""Protocols with several implementations: embedders, BM25 engines, rerankers, answerers, verifiers."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from folio.answer_types import Answer, Checking, Evidence, Quote, RejectedSentence, Sentence, Style, Thinking
from folio.errors import require
from folio.papers.model import Hit, Passage, Reading, Tokens, Vectors

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

    def identity(self) -> dict[str, str]:
        """The embedder's part of a store's fingerprint. A store with another fingerprint cannot be searched."""

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dimension), rows of unit length. Raises ModelError."""

    def embed_query(self, text: str) -> Vectors:
        """Shape (dimension,), of unit length. Raises ModelError."""

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dimension), rows of unit length, in one call of the model. Raises ModelError."""


@runtime_checkable
class TitledEmbedder(Protocol):
    """An embedder that may read a passage with the title of its paper."""

    @property
    def reads_titles(self) -> bool:
        """Whether titles change the vectors."""

    def embed_titled(self, passages: Sequence[tuple[str, str]]) -> Vectors:
        """Shape (len(passages), dimension), rows of unit length. passages: text and title, "" for none.

        Raises ModelError.
        """


class TokenEmbedder(Embedder, Protocol):
    """An embedder that also gives the embedding of each token."""

    def load_in_background(self) -> None:
        """Start loading the model in a thread; the first call waits for it and raises its errors."""

    def is_word(self, word: str) -> bool:
        """Whether the model's vocabulary has this lower-case word whole. Raises ModelError."""

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """The token embeddings of each text, in order. Raises ModelError."""


class LexicalIndex(Protocol):
    """BM25 over the chunks of a library."""

    def search(self, query: str, k: int, papers: frozenset[str] | None = None) -> list[tuple[int, float]]:
        """At most k pairs (chunk id, BM25 score), best first, ties by id. papers: search only these."""

    def rarity(self, token: str) -> float:
        """The weight of a token: its inverse document frequency, 0 or more."""

    def passages_with(self, token: str) -> int:
        """The number of passages with a token."""

    def passages_of(self, token: str, k: int) -> list[int]:
        """The chunk ids of at most k passages with a token, by BM25 score, best first."""

    def vocabulary(self) -> Mapping[str, int]:
        """Token -> number of passages with it. Has only frequent words, of letters alone, in two or more passages."""


@dataclass(frozen=True, slots=True)
class Written:
    """Texts that a model wrote to search with, in addition to the question."""

    wordings: tuple[str, ...] = ()
    passage: str = ""  # a made-up answer; the search finds passages with vectors near its own


NOTHING_WRITTEN = Written()


class QueryWriter(Protocol):
    """A model that writes texts to search with, in addition to the question. Thread-safe."""

    def write(self, question: str) -> Written:
        """NOTHING_WRITTEN if the model gives nothing usable. Raises ModelError if there is no such model."""


class PassageReader(Protocol):
    """A model that reads a question and a passage together."""

    def read(self, question: str, passages: Sequence[Passage]) -> list[Reading]:
        """One reading for each passage, in order. Raises ModelError."""

    def load_in_background(self) -> None:
        """Start loading the model in a thread; the first call waits for it."""


class Reranker(Protocol):
    """Scores candidates for a question; higher is better."""

    name: str
    reads: int | None  # number of best candidates to rerank; None for all

    def scores(self, question: Question, hits: Sequence[Hit], weights: TermWeights) -> list[float]:
        """One score in [0, 1] for each hit, in the order given. weights: of the question's tokens."""


class Answerer(Protocol):
    """Turns a question and evidence into the sentences of an answer, each with its citations.

    Answers one question at a time: `notice`, `failed`, `unanswered` and `raw` describe the last answer.
    """

    name: str
    notice: str  # a remark to show with the answer, such as that it was cut off; "" for none
    failed: bool  # whether the model's server failed during the last answer
    # The questions in one that got no statement, in their own words; None if they were not asked one by one
    unanswered: tuple[str, ...] | None
    raw: str  # what the model wrote, as it came; "" if none wrote
    evidence_tokens: int  # room for evidence
    quotes_only: bool  # whether its sentences are quotes, not a model's words

    def sentences(
        self, question: Question, evidence: Sequence[Evidence], style: Style = "plain"
    ) -> Generator[Sentence | RejectedSentence | Checking | Thinking, None, float | None]:
        """Yield the answer's sentences; a yielded sentence is final. Raises ModelError.

        Returns the confidence that the evidence answers, 0 to 1; None if unknown. An answerer refuses below a
        threshold of its own.
        """

    def nearest(self, question: Question, evidence: Sequence[Evidence]) -> Quote | None:
        """The sentence closest to a refused question; None if its paper is about something else. Raises ModelError."""

    def standalone(self, question: str, history: Sequence[Answer]) -> str:
        """A follow-up rewritten so that it stands alone. Raises ModelError, and NotUnderstoodError (followup.py)."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement, and the sentences of a paper that it cites."""

    statement: str
    premise: str  # the cited sentences with their neighbours, in reading order, as they stand in the paper
    title: str = ""  # of their paper


@dataclass(frozen=True, slots=True)
class Entailment:
    """A verifier's verdict on a claim."""

    entails: float | None  # probability that the statement follows from the premise; None if not known
    contradicts: float = 0.0  # probability that the premise contradicts it; 0 if the verifier cannot tell

    def __post_init__(self) -> None:
        require(self.entails is None or 0 <= self.entails <= 1, "entails is a probability")
        require(0 <= self.contradicts <= 1, "contradicts is a probability")


@dataclass(frozen=True, slots=True)
class PromptStart:
    """The beginning that all requests of one answer share, byte for byte, so that the server reads it once."""

    rules: str  # the system message
    evidence: str  # the beginning of the user message: all evidence, ending in a newline
    context: int  # num_ctx in tokens


class Verifier(Protocol):
    """Judges whether cited sentences entail a statement."""

    name: str

    def is_judge(self) -> bool:
        """Whether it tells true statements from false. A chat model is tried once. Raises ModelError."""

    def for_answer(self, start: PromptStart) -> Verifier:
        """A verifier whose prompts begin like the answer's; a verifier without prompts returns itself."""

    def entails(self, claims: Sequence[Claim]) -> Iterator[Entailment]:
        """The verdict on each claim, in order, each as soon as it is known. Raises ModelError."""
