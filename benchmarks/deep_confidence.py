"""Calibrates the confidence of deep answers without a model: how often answers of each kind were right.

    LLM=builtin python benchmarks/deep_confidence.py covidqa/dev.json qa/squad2-dev.json mtrag --to asked.jsonl
    python benchmarks/deep_confidence.py --to asked.jsonl

Sets are those of answer/extractive.py; of conversations, the first turns. An answer is right if its quotes have 60 % of
the gold span, or in a folder of conversations, if it cites a gold passage. One to a question that the set calls
unanswerable is wrong. Refusals have no confidence and are counted apart. The second form only prints the tables again.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

# A script run as a file can import only from its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.answerability import SEED, Asked, questions
from folio.answer.chat import Chat
from folio.answer_types import Answer
from folio.app import App, from_environment
from folio.deep.types import RELEVANT, EvidenceScored
from folio.evaluate import dataset, runner

SHOWN = 0.6  # the share of a gold span that an answer has to show


def ask(app: App, path: Path, most: int) -> Iterator[dict[str, Any]]:
    """What is known of each deep answer to at most this many questions of a set. Raises UsageError and ModelError."""
    asked = [question for question in questions(path) if not question.history]
    random.Random(SEED).shuffle(asked)
    with runner.open_text_store(app, dataset.load(path), lambda *_: None) as store:
        answerer = app.models.answerer(store.retriever)
        for question in asked[:most]:
            chat = Chat(store.retriever, answerer, top_k=app.top_k)
            search = app.models.deep_search(chat)
            reply = chat.ask(question.text, find=search.find)
            events = search.trace.events if search.trace else ()
            scored = [event for event in events if isinstance(event, EvidenceScored)]
            yield {
                "set": "/".join(path.parts[-2:]),
                "question": question.text,
                "answerable": question.answerable,
                "refused": reply.answer.refused,
                "right": question.answerable and is_right(question, reply.answer),
                "scored": [(event.hit.paper.file, event.assessment.relevance) for event in scored],
            }


def is_right(question: Asked, answer: Answer) -> bool:
    """Whether an answer shows a gold answer of its question."""
    return any(
        _shown(answer, document, start, end) or (end == sys.maxsize and _cites(answer, document))
        for document, start, end in question.gold
    )


def _cites(answer: Answer, document: str) -> bool:
    return any(citation.paper.file == document for citation in answer.citations)


def _shown(answer: Answer, document: str, start: int, end: int) -> bool:
    places = [(c.start, c.end) for c in answer.citations if c.paper.file == document]
    covered = {offset for first, last in places for offset in range(max(first, start), min(last, end))}
    return len(covered) >= SHOWN * (end - start)


def table(rows: Sequence[dict[str, Any]], value: Callable[[dict[str, Any]], int], heading: str) -> Iterator[str]:
    """How many of the answers with each value were right, for each set."""
    yield f"{heading}: right answers of all"
    for name in dict.fromkeys(row["set"] for row in rows):
        counts: dict[int, list[bool]] = {}
        for row in rows:
            if row["set"] == name and not row["refused"]:
                counts.setdefault(value(row), []).append(row["right"])
        refused = sum(row["set"] == name and row["refused"] for row in rows)
        shown = ", ".join(f"{at}: {sum(right)} of {len(right)}" for at, right in sorted(counts.items()))
        yield f"  {name}: {shown}; {refused} refused"


def best(row: dict[str, Any]) -> int:
    """The relevance of the best passage."""
    return max((relevance or 0 for _, relevance, *_ in row["scored"]), default=0)


def papers(row: dict[str, Any]) -> int:
    """How many papers have relevant passages."""
    return len({file for file, relevance, *_ in row["scored"] if (relevance or 0) >= RELEVANT})


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", type=Path, metavar="SET")
    parser.add_argument("--questions", type=int, default=110, help="at most, of each set (default: 110)")
    parser.add_argument("--to", type=Path, required=True, help="JSON Lines to add to, one for each question")
    parsed = parser.parse_args(arguments)
    if parsed.sets:
        app = from_environment(lambda line: print(line, file=sys.stderr))
        with parsed.to.open("a", encoding="utf-8") as file:
            for path in parsed.sets:
                for found in ask(app, path, parsed.questions):
                    file.write(json.dumps(found) + "\n")
                    file.flush()
    rows = [json.loads(line) for line in parsed.to.read_text(encoding="utf-8").splitlines()]
    for line in (*table(rows, best, "Best passage"), *table(rows, papers, "Papers with relevant passages")):
        print(line)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
