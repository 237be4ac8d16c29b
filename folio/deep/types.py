"""What a deep search passes on: assessments of passages, its budget, and the events that people see."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Annotated, Any, Literal, NamedTuple, Protocol, runtime_checkable

from folio.answer_types import Evidence, Quote
from folio.papers.model import Hit, Paper, require

# A passage of this relevance or more counts as evidence, of 10.
RELEVANT = 5
MOST_RELEVANCE = 10


@dataclass(frozen=True, slots=True)
class ByReference:
    """Marks a type whose values stay in the library: pydantic writes and reads a reference to each, of the type `kept`.

    Its context knows how: `refer` gives the reference to a value, `resolve` the value.
    """

    kept: type

    def __get_pydantic_core_schema__(self, _: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.with_info_after_validator_function(
            lambda reference, info: info.context.resolve(reference),
            handler.generate_schema(self.kept),
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
    """How far a deep search goes; each field is a setting of config.py."""

    papers: int  # that one search of papers finds
    evidence: int  # passages that are assessed in a round, and that the answer is made from
    least: int  # relevant passages that are enough
    rounds: int
    mmr_lambda: float  # 1: the best passages; less: passages that say different things
    calls: int  # of a model, before the answer
    seconds: float  # before the answer


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a passage has for a question. relevance: 0 to MOST_RELEVANCE; None if it could not be scored."""

    relevance: int | None
    summary: str = ""  # in the question's light, by a model; never shown as an answer

    def __post_init__(self) -> None:
        require(self.relevance is None or 0 <= self.relevance <= MOST_RELEVANCE, "relevance is from 0 to 10")


class Budget:
    """Model calls and seconds that a deep search may take. Several threads may ask it."""

    def __init__(self, calls: int, seconds: float, calls_taken: int = 0, seconds_taken: float = 0.0) -> None:
        """calls_taken, seconds_taken: of them, before the search was stopped and resumed."""
        self._most_calls, self._most_seconds = calls, seconds
        self._began = monotonic() - seconds_taken
        self._lock = Lock()
        self._has_refused = False
        self.calls = calls_taken  # so far

    @property
    def seconds(self) -> float:
        """Since it began."""
        return monotonic() - self._began

    @property
    def out_of_time(self) -> bool:
        return self.seconds >= self._most_seconds

    @property
    def spent(self) -> bool:
        return self.out_of_time or self.calls >= self._most_calls

    @property
    def fell_short(self) -> bool:
        """Whether something was left undone for it: a call was refused, or time is over."""
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
    """What papers say on one thing, as a model names it: numbers of evidence sentences. Nothing in it is checked."""

    claim: str
    same: tuple[int, ...]  # that say so
    other: tuple[int, ...]  # that say otherwise


@runtime_checkable
class Comparer(Protocol):
    """Compares what papers say."""

    name: str

    def compare(self, question: str, evidence: Sequence[Evidence], budget: Budget) -> list[NamedClaim]:
        """What these say the same and otherwise, by the numbers of number_sentences; [] for nothing, or no budget.

        Raises ModelError.
        """
        ...


class Assessor(Protocol):
    """Splits a question into its parts, scores passages for them, and asks them in other words."""

    name: str
    uses_model: bool  # whether it takes calls from the budget

    def parts(self, question: str, budget: Budget) -> list[str] | None:
        """The questions to search for one by one; [] if it has no parts, None to split it by rules.

        Raises ModelError.
        """
        ...

    def assess(self, question: str, hits: Sequence[Hit], budget: Budget) -> Iterator[Assessment]:
        """One for each hit, in order. Without budget the rest are not scored. Raises ModelError."""
        ...

    def rephrase(self, question: str, asked: Sequence[str], budget: Budget) -> list[str]:
        """The question in other words that were not asked yet; [] for none. Raises ModelError."""
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
    """Too little was found. queries: what is asked next; with `expand`, titles of papers that are read."""

    how: Again
    why: str
    queries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SearchEnded:
    """No more is searched, and why."""

    why: str


DeepEvent = PapersFound | EvidenceScored | SearchAgain | SearchEnded
OnEvent = Callable[[DeepEvent], None]


@dataclass(frozen=True, slots=True)
class DeepTrace:
    """All events of one deep search, in order, and what it took."""

    events: tuple[DeepEvent, ...]
    assessor: str
    rounds: int
    calls: int
    seconds: float


# What is said of the evidence of a deep answer as a whole. Each quote is a paper's own words, on its page.

MOST_OPEN = 3  # sentences on what the papers leave open

Level = Literal["medium", "low"]  # nothing that was measured tells a higher one apart


@dataclass(frozen=True, slots=True)
class Confidence:
    """How often answers like this one showed what was asked for; docs/trust.md says how that was measured."""

    value: float  # 0 to 1
    level: Level

    def __post_init__(self) -> None:
        require(0 <= self.value <= 1, "a confidence is from 0 to 1")


@dataclass(frozen=True, slots=True)
class Basis:
    """What an answer rests on, counted."""

    papers: int  # that its statements cite and that were not retracted
    relevant: int  # passages that were scored as relevant
    scored: int  # passages that were scored
    statements: int
    left_out: int  # a model's statements that nothing supports


@dataclass(frozen=True, slots=True)
class Agreement:
    """Quotes of two papers or more that say the same."""

    quotes: tuple[Quote, ...]

    def __post_init__(self) -> None:
        require(len({quote.paper.id for quote in self.quotes}) > 1, "two papers agree")


@dataclass(frozen=True, slots=True)
class Difference:
    """Quotes of other papers that say otherwise than some do."""

    some: tuple[Quote, ...]
    others: tuple[Quote, ...]

    def __post_init__(self) -> None:
        papers = [{quote.paper.id for quote in side} for side in (self.some, self.others)]
        require(all(papers) and not papers[0] & papers[1], "the sides of a difference are papers apart")


@dataclass(frozen=True, slots=True)
class Age:
    """The years of the papers that an answer cites."""

    years: tuple[int, ...]  # of each whose year is sure, in order
    unknown: int  # papers without such a year


@dataclass(frozen=True, slots=True)
class EvidenceProfile:
    """What a deep answer rests on: how sure it is, where its papers agree and differ, what they leave open, its age."""

    basis: Basis
    confidence: Confidence | None  # None where none was measured, see docs/trust.md
    agreements: tuple[Agreement, ...]
    differences: tuple[Difference, ...]
    open_questions: tuple[Quote, ...]
    age: Age
    compared_by: str = ""  # the model that chose which sentences belong together; "" for rules
    calls: int = 0  # of the model, of those that the search left

    def __post_init__(self) -> None:
        require(len(self.open_questions) <= MOST_OPEN, "at most three sentences tell what is open")

    @property
    def quotes(self) -> tuple[Quote, ...]:
        """Every quote once, in order."""
        agreeing = (quote for group in self.agreements for quote in group.quotes)
        differing = (quote for group in self.differences for quote in (*group.some, *group.others))
        return tuple(dict.fromkeys((*agreeing, *differing, *self.open_questions)))
