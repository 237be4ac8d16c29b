"""An answerer that gives the parts it was made with, so that every outcome is shown by whole commands and the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Sequence

import pytest

from folio.answer_types import Answer, Checking, Citation, Evidence, RejectedSentence, Sentence, Style, Thinking
from folio.model_choice import ModelChoice
from folio.question.question import Question

Part = Sentence | RejectedSentence | Checking | Thinking
Script = Callable[[Sequence[Evidence]], Iterator[Part]]

IS_LONG = "The Aletsch glacier has a length of 23 kilometres and covers 82 square kilometres of the Bernese Alps."
RETREATS = "The tongue of the glacier retreats by 40 metres each year, and the loss has become faster since 1980."
IS_THICK = "At the Konkordiaplatz the ice of the Aletsch glacier has a thickness of 800 metres."
GAUGE = "The gauge stands in the river Massa and was built in 1922."
STEPS = "To read the gauge:\n1. Go to Blatten.\n2. Find the river:\n   | river | built |\n   | Massa | 1922  |"
FALSE = "The glacier grows by 40 metres each year."
REASON = "it says the opposite"
OTHER_REASON = "no evidence says this"


class ScriptedAnswerer:
    """Implements Answerer: the script gets the evidence and yields the parts of the answer."""

    name = "scripted"
    notice = ""
    failed = False
    raw = ""
    unanswered: tuple[str, ...] | None = None
    evidence_tokens = 6000
    quotes_only = False

    def __init__(self, script: Script) -> None:
        self._script = script

    def sentences(
        self, question: Question, evidence: Sequence[Evidence], style: Style = "plain"
    ) -> Generator[Part, None, None]:
        yield from self._script(evidence)

    def nearest(self, question: Question, evidence: Sequence[Evidence]) -> None:
        return None

    def standalone(self, question: str, history: Sequence[Answer]) -> str:
        return question


def script_answers(monkeypatch: pytest.MonkeyPatch, script: Script) -> None:
    """Have every command and server of this process answer by this script."""
    monkeypatch.setattr(ModelChoice, "answerer", lambda *_, **__: ScriptedAnswerer(script))


def cited(evidence: Sequence[Evidence], quote: str, support: float = 1.0) -> Citation:
    """The citation of these words of the evidence, whatever the lines they stand on."""
    words = re.compile(r"\s+".join(map(re.escape, quote.split())))
    for piece in evidence:
        if found := words.search(piece.text):
            start = piece.start + found.start()
            return Citation(piece.paper, start, piece.start + found.end(), found.group(), piece.number, support)
    raise AssertionError(f"no evidence says: {quote}")


def every_outcome(evidence: Sequence[Evidence]) -> Iterator[Part]:
    """An answer on the papers of factories.GLACIERS with every outcome, in one line and in several."""
    yield Sentence(IS_LONG, (cited(evidence, IS_LONG),))
    yield Checking(1)
    yield Checking(2)
    yield Sentence(
        "Its tongue gets shorter by about 40 metres a year.",
        (cited(evidence, RETREATS, 0.5),),
        outcome="reworded",
        verified_by="llama3.1:8b (Ollama)",
    )
    yield Checking(1)
    yield RejectedSentence(FALSE, REASON)
    yield Checking(0)
    yield Sentence(IS_THICK, (cited(evidence, IS_THICK),), instead_of=FALSE)
    yield Sentence(STEPS, (cited(evidence, GAUGE, 0.4),), outcome="reworded", verified_by="llama3.1:8b (Ollama)")
    yield RejectedSentence("Then:\n1. Stop.\n2. Rest.", OTHER_REASON)
