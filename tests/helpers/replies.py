"""What a scripted model writes, in each form of an answer, and a verifier that says what a test tells it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from folio.answer.generative import GenerativeAnswerer
from folio.answer.layout import AnswerFormat
from folio.answer_types import REFUSAL, Checking, Evidence, RejectedSentence, Sentence, Style, Thinking
from folio.errors import ModelFailed
from folio.grounding.sentences import number_sentences
from folio.protocols import Claim, Entailment, PromptStart
from tests.helpers.factories import evidence_on
from tests.helpers.ollama_server import OllamaStandIn

Make = Callable[..., GenerativeAnswerer]

CHAT = "/api/chat"
every_form = pytest.mark.parametrize("answer_format", ["quote", "statements", "prose"], indirect=True)
_MARKER = re.compile(r"\s*\[(\d+)\]")
_PARTS = {"Summary": "summary", "Analysis": "analysis"}


def written(
    answer_format: AnswerFormat, evidence: Sequence[Evidence], *said: str, answered: bool = True, style: Style = "plain"
) -> str:
    """A reply in this form. said: statements, each with the [numbers] of the evidence that it names behind it.

    The form of a quote has none, and its report is in JSON. In JSON these numbers become those of the sentence that is
    nearest, as a model would choose them. A line "# Summary" or "# Analysis", or "## " and a subheading, begins a part
    of a report.
    """
    if answer_format == "quote" and style == "plain":
        said = tuple(_MARKER.sub("", line) for line in said)
        return "\n".join(("Answer: " + "\n".join(said), *([] if answered else [REFUSAL])))
    if answer_format == "prose":
        return "\n".join((*said, *([] if answered else [REFUSAL])))
    statements: list[dict[str, object]] = []
    part, heading = "summary", ""
    for line in said:
        if line.startswith("#"):
            name = line.strip("# ")
            part, heading = (_PARTS[name], "") if name in _PARTS else ("analysis", name)
            continue
        place = {"part": part, "heading": heading} if style == "report" else {}
        support = _support(evidence, line)
        statements.append({**place, "support": support, "statement": _MARKER.sub("", line)})
    return json.dumps({"statements": statements, "answered": answered}, ensure_ascii=False, separators=(",", ":"))


def _support(evidence: Sequence[Evidence], line: str) -> list[int]:
    """The numbers of the nearest sentence in each piece that a statement names, or in all of them."""
    words = set(re.findall(r"\w+", _MARKER.sub("", line).casefold()))
    sentences = number_sentences(evidence)
    found: list[int] = []
    for number in [int(number) for number in _MARKER.findall(line)]:
        own = [sentence for sentence in sentences if sentence.evidence.number == number] or sentences
        nearest = max(own, key=lambda one: len(words & set(re.findall(r"\w+", one.text.casefold()))))
        found.append(nearest.number)
    return found or [1]


def told(found: Sentence | RejectedSentence | Checking | Thinking) -> tuple[str, list[tuple[int, str]]]:
    """A statement, and the evidence and words of each quote; none for one that is left out."""
    assert not isinstance(found, Checking | Thinking)
    return found.text, [(c.evidence, c.quote) for c in found.citations] if isinstance(found, Sentence) else []


def asked(
    answerer: GenerativeAnswerer, *texts: str, question: str = "What?", **style: Any
) -> list[Sentence | RejectedSentence | Checking | Thinking]:
    """All parts of an answer from these texts."""
    return list(answerer.sentences(question, evidence_on(*texts), **style))


def options(server: OllamaStandIn) -> list[dict[str, Any]]:
    """The options of each request for an answer."""
    return [body["options"] for body in server.answering]


def prompt_of(server: OllamaStandIn, call: int = 0) -> str:
    """The user's message of a request for an answer."""
    return str(server.answering[call]["messages"][-1]["content"])


class ScriptedVerifier:
    """A verifier that says what a test tells it, and keeps what it was asked.

    verdicts: for each statement, or a function of the claim; other statements follow from their sentences. fails_at: it
    fails when it is asked for this claim, counted from 0.
    """

    name = "a reader"

    def __init__(
        self,
        verdicts: Mapping[str, Entailment] | Callable[[Claim], Entailment] | None = None,
        *,
        fails_at: int | None = None,
    ) -> None:
        self._verdicts = verdicts or {}
        self._fails_at = fails_at
        self.asked: list[Claim] = []
        self.starts: list[PromptStart] = []

    def is_judge(self) -> bool:
        return True

    def for_answer(self, start: PromptStart) -> ScriptedVerifier:
        self.starts.append(start)
        return self

    def entails(self, claims: Sequence[Claim]) -> Iterator[Entailment]:
        for at, claim in enumerate(claims):
            if at == self._fails_at:
                raise ModelFailed("The reader fell asleep.", "Wake it.")
            self.asked.append(claim)
            verdicts = self._verdicts
            yield verdicts(claim) if callable(verdicts) else verdicts.get(claim.statement, AGREES)


AGREES, REFUSES, UNSURE = Entailment(0.9), Entailment(0.1), Entailment(None)
DENIES = Entailment(0.05, contradicts=0.9)
