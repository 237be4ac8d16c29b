"""The types of a deep search: limits, budget, assessments, the events that people see, and the evidence profile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Annotated, Any, Literal, NamedTuple, Protocol, runtime_checkable

from folio.answer_types import Evidence, Quote
from folio.errors import require
from folio.papers.model import Hit, Paper

RELEVANT, MOST_RELEVANCE = 5, 10  # the least relevance of evidence, and the maximum
MOST_OPEN = 3  # sentences about open questions


@dataclass(frozen=True, slots=True)
class ByReference:
    """Marks a type whose values stay in the library: pydantic stores a reference of the type `stored` in its place.

    The context's `refer` makes the reference to a value, and `resolve` finds the value.
    """

    stored: type

    def __get_pydantic_core_schema__(self, _: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.with_info_after_validator_function(
            lambda reference, info: info.context.resolve(reference),
            handler.generate_schema(self.stored),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda value, info: info.context.refer(value), info_arg=True
            ),
        )


class HitReference(NamedTuple):
    """A hit without its paper and its text."""

    chunk: int  # its id
    score: float
    dense: float | None
    lexical: float | None
    highlights: tuple[tuple[int, int], ...]
    summary: str


LibraryPaper = Annotated[Paper, ByReference(str)]  # its id
LibraryHit = Annotated[Hit, ByReference(HitReference)]


@dataclass(frozen=True, slots=True)
class DeepLimits:
    """Limits of a deep search; each field is a setting of config.py."""

    papers: int  # found by one search for papers
    evidence: int  # passages assessed in a round, and passages for the answer
    least: int  # relevant passages that are enough
    rounds: int
    mmr_lambda: float  # 1: the best passages; less: more diverse passages
    calls: int  # of a model, before the answer is written
    seconds: float  # before the answer is written


@dataclass(frozen=True, slots=True)
class Assessment:
    """How much a passage helps to answer a question."""

    relevance: int | None  # 0 to MOST_RELEVANCE; None if it could not be scored
    summary: str = ""  # a model's, for the question; never shown as an answer

    def __post_init__(self) -> None:
        require(self.relevance is None or 0 <= self.relevance <= MOST_RELEVANCE, "relevance is from 0 to 10")


class Budget:
    """Model calls and seconds that a deep search may take. Safe for several threads."""

    def __init__(self, calls: int, seconds: float, calls_taken: int = 0, seconds_taken: float = 0.0) -> None:
        """calls_taken, seconds_taken: already used before the search was resumed."""
        self._most_calls, self._most_seconds = calls, seconds
        self._began = monotonic() - seconds_taken
        self._lock = Lock()
        self._has_refused = False
        self.calls = calls_taken  # so far

    @property
    def seconds(self) -> float:
        return monotonic() - self._began

    @property
    def out_of_time(self) -> bool:
        return self.seconds >= self._most_seconds

    @property
    def spent(self) -> bool:
        return self.out_of_time or self.calls >= self._most_calls

    @property
    def fell_short(self) -> bool:
        """Whether the budget cut something short: a call was refused, or time is over."""
        return self._has_refused or self.out_of_time

    def take_call(self) -> bool:
        """Take one model call; False if none is left."""
        with self._lock:
            if self.spent:
                self._has_refused = True
                return False
            self.calls += 1
            return True


@dataclass(frozen=True, slots=True)
class NamedClaim:
    """A model's unchecked claim, with the numbers of the evidence sentences for and against it."""

    claim: str
    same: tuple[int, ...]  # sentences that agree
    other: tuple[int, ...]  # sentences that disagree


@runtime_checkable
class Comparer(Protocol):
    """Finds agreements and disagreements between papers."""

    name: str

    def compare(self, question: str, evidence: Sequence[Evidence], budget: Budget) -> list[NamedClaim]:
        """Claims with sentence numbers as of number_sentences; [] for none or without budget. Raises ModelError."""
        ...


class Assessor(Protocol):
    """Splits a question into parts, scores passages for them, and rephrases them."""

    name: str
    uses_model: bool  # whether it takes calls from the budget

    def parts(self, question: str, budget: Budget) -> list[str] | None:
        """The questions to search one by one; [] for a question without parts, None to use rules. Raises ModelError."""
        ...

    def assess(self, question: str, hits: Sequence[Hit], budget: Budget) -> Iterator[Assessment]:
        """One for each hit, in order; relevance None once the budget is spent. Raises ModelError."""
        ...

    def rephrase(self, question: str, earlier: Sequence[str], budget: Budget) -> list[str]:
        """The question in other words that are not in `earlier`; [] for none. Raises ModelError."""
        ...


@dataclass(frozen=True, slots=True)
class PapersFound:
    """A search for papers. papers: best first."""

    query: str
    papers: tuple[LibraryPaper, ...]


@dataclass(frozen=True, slots=True)
class EvidenceScored:
    """A passage was read for a part of the question."""

    part: str
    hit: LibraryHit
    assessment: Assessment


Again = Literal["reformulate", "expand", "offset"]


@dataclass(frozen=True, slots=True)
class SearchAgain:
    """Too little evidence, so the search continues. queries: the next ones; for `expand`, titles of papers."""

    how: Again
    why: str
    queries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SearchEnded:
    """The search ends, and why."""

    why: str


DeepEvent = PapersFound | EvidenceScored | SearchAgain | SearchEnded
OnEvent = Callable[[DeepEvent], None]


@dataclass(frozen=True, slots=True)
class DeepTrace:
    """All events of one deep search, in order, and its cost."""

    events: tuple[DeepEvent, ...]
    assessor: str
    rounds: int
    calls: int
    seconds: float


# The profile of the evidence. Each quote is a paper's own words, on its page.

Level = Literal["medium", "low"]  # no measured quantity identifies a higher level


@dataclass(frozen=True, slots=True)
class Confidence:
    """How often similar answers were right; docs/trust.md says how that was measured."""

    value: float  # 0 to 1
    level: Level

    def __post_init__(self) -> None:
        require(0 <= self.value <= 1, "a confidence is from 0 to 1")


@dataclass(frozen=True, slots=True)
class Basis:
    """The numbers behind an answer."""

    papers: int  # cited and not retracted
    relevant: int  # passages scored as relevant
    scored: int  # passages
    statements: int
    left_out: int  # unsupported statements of a model


@dataclass(frozen=True, slots=True)
class Agreement:
    """Quotes of two or more papers that agree."""

    quotes: tuple[Quote, ...]

    def __post_init__(self) -> None:
        require(len({quote.paper.id for quote in self.quotes}) > 1, "two papers agree")


@dataclass(frozen=True, slots=True)
class Difference:
    """Quotes of papers that disagree: `some` against `others`."""

    some: tuple[Quote, ...]
    others: tuple[Quote, ...]

    def __post_init__(self) -> None:
        papers = [{quote.paper.id for quote in side} for side in (self.some, self.others)]
        require(all(papers) and not papers[0] & papers[1], "the sides of a difference are different papers")


@dataclass(frozen=True, slots=True)
class Age:
    """The years of the papers that an answer cites."""

    years: tuple[int, ...]  # the sure ones, in order
    unknown: int  # papers without a sure year


@dataclass(frozen=True, slots=True)
class EvidenceProfile:
    """The evidence of a deep answer: numbers, confidence, agreements and differences, open questions, age."""

    basis: Basis
    confidence: Confidence | None  # None where it was not measured, see docs/trust.md
    agreements: tuple[Agreement, ...]
    differences: tuple[Difference, ...]
    open_questions: tuple[Quote, ...]
    age: Age
    compared_by: str = ""  # the model that grouped the sentences; "" for rules
    calls: int = 0  # of that model

    def __post_init__(self) -> None:
        require(len(self.open_questions) <= MOST_OPEN, "at most three open questions")

    @property
    def quotes(self) -> tuple[Quote, ...]:
        """Every quote once, in order."""
        agreeing = (quote for group in self.agreements for quote in group.quotes)
        differing = (quote for group in self.differences for quote in (*group.some, *group.others))
        return tuple(dict.fromkeys((*agreeing, *differing, *self.open_questions)))
