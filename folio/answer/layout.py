"""The prompt for a question and its evidence, and the parser for the output: a quote, JSON or prose. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import Any, Literal

from folio.answer import prompts
from folio.answer.fencing import (
    evidence_block,
    excerpt_block,
    instruction_block,
    note_line,
    numbered_block,
    selection_block,
)
from folio.answer.parser import OutputParser, StatementParser, schema
from folio.answer.quote_reply import QuoteParser
from folio.answer.validation import Parser
from folio.answer_types import Evidence, Style
from folio.grounding.sentences import EvidenceSentence, number_sentences
from folio.text import estimate_tokens

NOTES_TOKENS = 1200  # maximum for the notes on the evidence; those on the best passages come first

# quote: a quote, then a short answer. statements: JSON with the sentence numbers before each statement. prose: text
# with [n] markers.
AnswerFormat = Literal["quote", "statements", "prose"]

_TASKS = {
    ("quote", "plain"): prompts.QUOTE,
    ("statements", "plain"): prompts.STATEMENTS,
    ("statements", "report"): prompts.STATEMENTS_REPORT,
    ("prose", "plain"): prompts.PROSE,
    ("prose", "report"): prompts.PROSE_REPORT,
}


@dataclass(frozen=True)
class Layout:
    """One question over one body of evidence."""

    question: str
    evidence: Sequence[Evidence]
    format: AnswerFormat
    style: Style
    guided: bool = True  # show the model the notes on the evidence, if there are any
    about: str = ""  # the selected words that the question is about
    instruction: str = ""  # what the person asks of the wording

    @cached_property
    def start(self) -> str:
        """The evidence, which every prompt about this answer begins with."""
        if self.format == "quote":
            blocks = [excerpt_block(e.paper, _place(e), e.text) for e in self.evidence]
        elif self.format == "prose":
            blocks = [evidence_block(e.number, e.paper, _place(e), e.text) for e in self.evidence]
        else:
            blocks = [
                numbered_block(piece.paper, _place(piece), [(s.number, s.text) for s in sentences])
                for piece, sentences in groupby(self._sentences, key=attrgetter("evidence"))
            ]
        return "\n\n".join(blocks) + "\n\n"

    @property
    def rules(self) -> str:
        """The system message."""
        return prompts.EXCERPT_RULES if self.format == "quote" else prompts.RULES

    @property
    def prompt(self) -> str:
        """The user's message."""
        wording = instruction_block(self.instruction) if self.instruction else ""
        return self.start + self.notes + wording + self._task(_TASKS[self.format, self.style])

    @property
    def stated_prompt(self) -> str:
        """The user's message that asks whether the evidence states the answer, whatever its wording."""
        return self.start + self.notes + self._task(prompts.STATED)

    def choice_prompt(self, evidence: Evidence, text: str) -> str:
        """The user's message that asks whether an excerpt of this evidence states the answer."""
        return f"{excerpt_block(evidence.paper, _place(evidence), text)}\n\n{self._task(prompts.CHOICE)}"

    def _task(self, task: str) -> str:
        selection = selection_block(self.about) if self.about else ""
        return selection + task.format(question=self.question)

    @cached_property
    def notes(self) -> str:
        """The notes of a deep search on the evidence; "" without notes.

        They follow the evidence: a verifier's prompts begin with the evidence and must not contain notes.
        """
        noted = [(piece, hit.summary) for piece in self.evidence for hit in piece.hits if hit.summary]
        lines = [note_line(self._marks(piece), note) for piece, note in noted] if self.guided else []
        while sum(estimate_tokens(line) + 1 for line in lines) > NOTES_TOKENS:
            lines.pop()
        return prompts.NOTES.format(notes="\n".join(lines)) if lines else ""

    def _marks(self, piece: Evidence) -> str:
        """The numbers of a piece of evidence in the prompt: its own, or those of its sentences."""
        if self.format != "statements":
            return f"[{piece.number}]"
        numbers = [sentence.number for sentence in self._sentences if sentence.evidence is piece]
        return f"[{numbers[0]}] to [{numbers[-1]}]"

    @property
    def shape(self) -> dict[str, Any] | None:
        """The JSON Schema of the output; None for prose."""
        return schema(len(self._sentences), self.style) if self.format == "statements" else None

    def parser(self) -> Parser:
        """A parser for one output."""
        if self.format == "quote":
            return QuoteParser(len(self._sentences))
        is_prose = self.format == "prose"
        return OutputParser(len(self.evidence)) if is_prose else StatementParser(len(self._sentences), self.style)

    @cached_property
    def _sentences(self) -> tuple[EvidenceSentence, ...]:
        return number_sentences(self.evidence)


def _place(evidence: Evidence) -> str:
    return f"{evidence.where}, {evidence.section}" if evidence.section else evidence.where
