"""The cells of a paper with a chat model: it chooses numbered sentences of the paper, and says in a few words what they
say.

All prompts about a paper begin with the same evidence, so that the server reads it once for all columns. What is shown
as a quote is cut out by the program. The model's words are the cell's value only if a verifier agreed with them.
"""

from __future__ import annotations

from collections.abc import Sequence

from folio.answer.generative import GenerativeAnswerer
from folio.answer_types import EXCERPTS, Evidence, Quote, Sentence
from folio.question.question import Question
from folio.table.cell import Cell, Column, Finding
from folio.table.headings import asked
from folio.table.values import value_in

MOST = 2  # statements of a model in one cell
# What a column of each kind asks a model to say
_SAYS = {
    "text": "Answer in one short phrase.",
    "number": "Answer with the number and its unit.",
    "yes_no": "Answer yes or no, as the paper says it.",
    "choice": "Answer with one of: {choices}.",
}


class ModelCells:
    """Asks a model for one cell after another."""

    def __init__(self, answerer: GenerativeAnswerer) -> None:
        """answerer: with the format "statements"."""
        self._answerer = answerer

    @property
    def evidence_tokens(self) -> int:
        """Room for the evidence of a paper."""
        return self._answerer.evidence_tokens

    def cell(self, column: Column, evidence: Sequence[Evidence]) -> Cell | None:
        """The cell that the model finds in the evidence; None if it finds none that holds, or its server failed.

        Raises ModelError for what only a person can fix.
        """
        says = _SAYS[column.kind].format(choices="; ".join(column.choices))
        question = Question(asked(column))
        told = self._answerer.sentences(Question(f"{question.text} {says}"), evidence)
        said = [one for one in told if isinstance(one, Sentence) and one.section.heading not in EXCERPTS]
        findings = [_finding(column, question, one) for one in said[:MOST]]
        return Cell(tuple(findings)) if findings and not self._answerer.failed else None


def _finding(column: Column, question: Question, said: Sentence) -> Finding:
    """A statement of the model as a finding: the value in its quote, if the quote says one, or else its words."""
    cited = said.citations[0]
    quote = Quote(cited.paper, cited.start, cited.end, cited.quote)
    value = value_in(column, question, quote.quote)
    if value and value[0]:
        return Finding(quote, *value)
    is_own = said.outcome == "reworded" and bool(said.verified_by)
    return Finding(quote, said.text if is_own else "", None, by_model=is_own)
