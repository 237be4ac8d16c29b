"""What a table asks of each paper, and what was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from folio.answer_types import Quote

# What the cells of a column hold: words of the paper, a number with its unit, yes or no, or one of a list
ColumnKind = Literal["text", "number", "yes_no", "choice"]


@dataclass(frozen=True, slots=True)
class Column:
    """A question that is put to each paper."""

    name: str  # the heading
    question: str = ""  # "" asks for the name: "Sample size"
    kind: ColumnKind = "text"
    unit: str = ""  # of a number column, to sort its cells; "" for numbers without a unit, or any unit
    choices: tuple[str, ...] = ()  # of a choice column


@dataclass(frozen=True, slots=True)
class Finding:
    """Words of a paper that answer a column's question."""

    quote: Quote
    value: str = ""  # what is shown first: "23 km", "yes", one of the choices, or a model's words; "" for the quote
    number: float | None = None  # of a number column, in the column's unit if the value can be converted
    by_model: bool = False  # whether the value is in a model's words

    @property
    def shown(self) -> str:
        return self.value or self.quote.quote


@dataclass(frozen=True, slots=True)
class Cell:
    """The answer of one paper to one column; without findings the paper does not say, as far as was found.

    Several findings are places that disagree, best first.
    """

    findings: tuple[Finding, ...] = ()
    confidence: float | None = None  # from 0 to 1; None if a model answered
    closest: Quote | None = None  # of a cell without findings: the words of the paper that come closest to an answer
