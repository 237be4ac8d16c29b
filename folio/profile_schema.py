"""What is said of the evidence of a deep answer, as JSON."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from folio.evidence_profile import Agreement, Level
from folio.schema import QuoteJson
from folio.schema_parts import Count, Strict


class ConfidenceJson(Strict):
    """How often answers like this one showed what was asked for: docs/trust.md says how that was measured."""

    value: Annotated[float, Field(ge=0, le=1), AfterValidator(lambda value: round(value, 2))]
    level: Level


class BasisJson(Strict):
    """What the answer rests on, counted."""

    papers: Count
    """Papers that it cites and that were not retracted."""
    relevant: Count
    """Passages that were scored as relevant."""
    scored: Count
    """Passages that were scored."""
    statements: Count
    left_out: Count
    """A model's statements that nothing supports."""


class DifferenceJson(Strict):
    """Papers that disagree."""

    some: Annotated[list[QuoteJson], Field(min_length=1)]
    others: Annotated[list[QuoteJson], Field(min_length=1)]


class AgeJson(Strict):
    """The years of the papers that the answer cites."""

    years: list[int]
    """Of each paper whose year is sure, the oldest first."""
    unknown: Count
    """Papers without such a year."""


def _quotes(group: object) -> object:
    return group.quotes if isinstance(group, Agreement) else group


class EvidenceProfileJson(Strict):
    """What the answer rests on, as a whole. Every quote is the paper's own words."""

    basis: BasisJson
    confidence: ConfidenceJson | None
    """Null where none was measured: for answers that a model wrote."""
    agreements: list[Annotated[list[QuoteJson], Field(min_length=2), BeforeValidator(_quotes)]]
    """Quotes of two papers or more that say the same."""
    differences: list[DifferenceJson]
    open_questions: Annotated[list[QuoteJson], Field(max_length=3)]
    """What the papers say is open."""
    age: AgeJson
    compared_by: str
    """The model that chose which quotes belong together; empty for rules."""
    calls: Count
    """Calls of that model; the search and they take DEEP_CALLS together, at most."""
