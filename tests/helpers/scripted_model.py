"""A chat model on a scripted server that writes answers in one of the forms, and the answerer that asks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from folio.answer.generative import GenerativeAnswerer
from folio.answer.layout import AnswerFormat
from folio.answer_types import Checking, Evidence, RejectedSentence, Sentence, Style, Thinking
from tests.helpers.factories import evidence_on
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.replies import Make, prompt_of, told, written

FLOAT, EAT, LONG = "Otters float in rafts of kelp.", "They eat 25 urchins.", "The glacier is 23 kilometres long."
BOTH = evidence_on(f"{FLOAT} {EAT}")
Part = Sentence | RejectedSentence | Checking | Thinking


@dataclass
class ScriptedModel:
    """What a test tells the model to write, and what the answerer makes of it."""

    server: OllamaStandIn
    make: Make
    form: AnswerFormat
    answerer: GenerativeAnswerer = field(init=False)

    def __post_init__(self) -> None:
        self.answerer = self.make(answer_format=self.form)

    def write(self, evidence: Sequence[Evidence], *tries: Sequence[str], **how: Any) -> None:
        """Script the next replies, one for each try, of these statements."""
        replies = [written(self.form, evidence, *said, **how) for said in tries]
        self.server.reply = [*[""] * len(self.calls), *replies]

    def answer(
        self, evidence: Sequence[Evidence], *tries: Sequence[str], question: str = "What?", style: Style = "plain"
    ) -> list[Part]:
        """All parts of the answer, where the model writes these statements, one try after the other."""
        self.write(evidence, *tries, style=style)
        return list(self.answerer.sentences(question, evidence, style))

    def told(self, evidence: Sequence[Evidence], *tries: Sequence[str], **how: Any) -> list[Any]:
        """The text of each part, and the evidence and words of its quotes."""
        return [told(part) for part in self.answer(evidence, *tries, **how)]

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The requests for an answer."""
        return self.server.answering

    def prompt(self, call: int = 0) -> str:
        return prompt_of(self.server, call)
