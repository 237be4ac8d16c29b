"""How a question and its evidence are laid out for a model, and how its output is read: as JSON or as prose. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, Literal

from folio.answer import prompts
from folio.answer.fencing import evidence_block, note_line, numbered_block
from folio.answer.parser import OutputParser, StatementParser, schema
from folio.answer.validation import Parser
from folio.answer_types import Evidence, Style
from folio.grounding.grounder import Grounder
from folio.grounding.sentences import EvidenceSentence, number_sentences
from folio.text import estimate_tokens

# Of the notes on the evidence, at most; the best passages' come first.
NOTES_TOKENS = 1200

# statements: JSON in which each statement comes after the numbers of its sentences. prose: text with [n] markers.
AnswerFormat = Literal["statements", "prose"]

_TASKS = {
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
    guided: bool = True  # whether the model sees the notes on the evidence, if there are any

    @cached_property
    def start(self) -> str:
        """The evidence: what all prompts about this answer begin with."""
        if self.format == "prose":
            blocks = [evidence_block(e.number, e.paper, _place(e), e.text) for e in self.evidence]
        else:
            blocks = [
                numbered_block(piece.paper, _place(piece), [(s.number, s.text) for s in sentences])
                for piece, sentences in groupby(self._sentences, key=_piece)
            ]
        return "\n\n".join(blocks) + "\n\n"

    @property
    def prompt(self) -> str:
        """The user's message."""
        return self.start + self.notes + _TASKS[self.format, self.style].format(question=self.question)

    @cached_property
    def notes(self) -> str:
        """What a deep search noted on the evidence; "" without such notes.

        It follows the evidence, because a verifier's prompts begin with that and must not see notes.
        """
        noted = [(piece, hit.summary) for piece in self.evidence for hit in piece.hits if hit.summary]
        lines = [note_line(self._marks(piece), note) for piece, note in noted] if self.guided else []
        while sum(estimate_tokens(line) + 1 for line in lines) > NOTES_TOKENS:
            lines.pop()
        return prompts.NOTES.format(notes="\n".join(lines)) if lines else ""

    def _marks(self, piece: Evidence) -> str:
        """The numbers that the prompt has for a piece of evidence: its own, or those of its sentences."""
        if self.format == "prose":
            return f"[{piece.number}]"
        numbers = [sentence.number for sentence in self._sentences if sentence.evidence is piece]
        return f"[{numbers[0]}] to [{numbers[-1]}]"

    @property
    def shape(self) -> dict[str, Any] | None:
        """The JSON Schema that the output must follow; None for prose."""
        return schema(len(self._sentences), self.style) if self.format == "statements" else None

    def parser(self) -> Parser:
        """A parser for one output."""
        return (
            StatementParser(len(self._sentences)) if self.format == "statements" else OutputParser(len(self.evidence))
        )

    def grounder(self) -> Grounder:
        """Judges the statements of one output."""
        return Grounder(self.evidence)

    @cached_property
    def _sentences(self) -> tuple[EvidenceSentence, ...]:
        return number_sentences(self.evidence)


def _place(evidence: Evidence) -> str:
    return f"{evidence.where}, {evidence.section}" if evidence.section else evidence.where


def _piece(sentence: EvidenceSentence) -> Evidence:
    return sentence.evidence
