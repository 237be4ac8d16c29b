"""Calibrates when the built-in answerer refuses: figures on several sets, each with the threshold of the others.

python benchmarks/answerability.py covidqa/dev.json qa/squad2-dev.json mtrag --questions 250
python benchmarks/answerability.py covidqa/dev.json --share 0.05

Sets are in those formats of docs/evaluation-set.md that bring their own texts: articles as in SQuAD or COVID-QA, or a
folder of conversations. Every second answerable question is asked again with its gold passages taken out of what was
found. It counts as unanswerable, which it is not always: papers say things twice. `--share` of the answerable questions
are below the threshold; each set counts the same. Stores are kept below the index, as evaluate.py keeps them.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

# A script run as a file can import only from its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from folio.answer.chat import Returning
from folio.answer.evidence import gather
from folio.answer.extractive import ExtractiveAnswerer
from folio.app import App, from_environment
from folio.evaluate import dataset, followups, runner
from folio.evaluate.dataset import TURNS_FILE, USER, SpokenTurnForm, is_conversations, validated_entries
from folio.papers.model import Hit
from folio.question import followup
from folio.question.question import Question
from folio.search.retriever import Retriever, SearchRequest

DEPTH = 20  # hits per question, of which gold passages are taken out
SEED = 7


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the questions before it, and what answers it: documents, and spans of them if known."""

    text: str
    history: tuple[str, ...]
    answerable: bool
    gold: tuple[tuple[str, int, int], ...]  # document, start, end

    def is_answered_by(self, hit: Hit) -> bool:
        start, end = hit.chunk.start, hit.chunk.end
        return any(hit.paper.file == document and first < end and start < last for document, first, last in self.gold)


@dataclass(slots=True)
class Confidences:
    """The answerer's confidences on one set."""

    answerable: list[float] = field(default_factory=list)
    unanswerable: list[float] = field(default_factory=list)  # those that people marked or wrote as such
    taken_out: list[float] = field(default_factory=list)  # answerable ones without their gold passages


def questions(path: Path) -> list[Asked]:
    """All questions of a set. Raises UsageError."""
    if is_conversations(path):
        return [
            Asked(
                turn.question,
                tuple(spoken.text for spoken in turn.history if spoken.speaker.casefold() == USER),
                turn.answerability.casefold() != "unanswerable",
                tuple((gold, 0, sys.maxsize) for gold in turn.gold),
            )
            for _, turn in validated_entries(SpokenTurnForm, path / TURNS_FILE)
            if turn.answerability.casefold() != "underspecified"
        ]
    return [
        Asked(
            question.text,
            (),
            question.answerable,
            tuple(
                (gold.paper, gold.start, gold.start + len(gold.quote))
                for gold in question.gold
                if gold.start is not None
            ),
        )
        for question in dataset.load(path).questions
    ]


def measure(app: App, path: Path, most: int) -> Confidences:
    """Ask at most this many questions of a set. Raises UsageError and ModelError."""
    asked, found = questions(path), Confidences()
    if len(asked) > most:
        random.Random(SEED).shuffle(asked)
    with runner.open_text_store(app, dataset.load(path), lambda *_: None) as store:
        retriever = store.retriever
        answerer = app.models.answerer(retriever)
        if not isinstance(answerer, ExtractiveAnswerer):
            raise SystemExit("Set LLM=builtin: only the built-in answerer has a confidence.")
        for place, question in enumerate(asked[:most]):
            text, hits = _search(retriever, answerer, question)
            own = _confidence(app, retriever, answerer, text, hits)
            (found.answerable if question.answerable else found.unanswerable).append(own)
            if question.answerable and question.gold and place % 2 == 0:
                without = [hit for hit in hits if not question.is_answered_by(hit)]
                found.taken_out.append(_confidence(app, retriever, answerer, text, without))
    return found


def _search(retriever: Retriever, answerer: ExtractiveAnswerer, asked: Asked) -> tuple[str, Sequence[Hit]]:
    """The question as it is resolved, and its hits, as in a conversation."""
    if not asked.history:
        return asked.text, retriever.search(asked.text, DEPTH).hits
    turns = followups.turns(asked.history, answerer.standalone)
    meant = followups.resolved(asked.text, turns, answerer.standalone)
    first, *others = followup.readings(asked.text, meant, asked.history)
    return meant, retriever.find(SearchRequest(Question(first), DEPTH, readings=others)).hits


def _confidence(
    app: App, retriever: Retriever, answerer: ExtractiveAnswerer, question: str, hits: Sequence[Hit]
) -> float:
    evidence = gather(hits[: app.top_k], retriever.text, answerer.evidence_tokens).evidence
    parts = Returning(answerer.sentences(question, evidence))
    list(parts)
    return parts.returned or 0.0


def threshold(sets: Sequence[Confidences], share: float) -> float:
    """The confidence that this share of the answerable questions is below; each set counts the same."""
    even = np.linspace(0, 1, 401)
    return float(np.quantile(np.concatenate([np.quantile(found.answerable, even) for found in sets]), share))


def _row(name: str, limit: float, found: Confidences) -> str:
    def below(values: Sequence[float]) -> str:
        return f"{mean(value < limit for value in values):.3f} of {len(values)}" if values else "-"

    groups: tuple[Any, ...] = (found.answerable, found.unanswerable, found.taken_out)
    return f"{name:32} {limit:9.3f} " + " ".join(f"{below(values):>14}" for values in groups)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="+", type=Path, metavar="SET")
    parser.add_argument("--questions", type=int, default=250, help="at most, of each set (default: 250)")
    parser.add_argument("--share", type=float, default=0.06, help="of answerable questions refused (default: 0.06)")
    parsed = parser.parse_args(arguments)
    app = from_environment(lambda line: print(line, file=sys.stderr))
    found = {"/".join(path.parts[-2:]): measure(app, path, parsed.questions) for path in parsed.sets}
    print(f"{'refused':32} {'threshold':>9} {'answerable':>14} {'unanswerable':>14} {'gold taken out':>14}")
    for name, confidences in found.items():
        others = [other for label, other in found.items() if label != name]
        if others:
            print(_row(f"{name[:20]}, by others", threshold(others, parsed.share), confidences))
    for name, confidences in found.items():
        print(_row(name, threshold(list(found.values()), parsed.share), confidences))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
