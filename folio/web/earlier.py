"""The turns of a conversation that a client kept as text: what its answers cited is found by their links."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from folio.answer_types import Answer, Citation, Evidence, Sentence, SourceNumbers
from folio.question import followup
from folio.search.pool import Reader

MOST_TURNS = 20  # the latest ones, which are read
_MOST_QUOTES = 20  # of an answer
# papers/link.py
_LINK = re.compile(r"#paper/(?P<paper>[0-9a-f]{64})/p/\d+\?from=(?P<start>\d{1,9})&(?:amp;)?to=(?P<end>\d{1,9})")


@dataclass(frozen=True, slots=True)
class EarlierTurn:
    """A question, and what was replied, as Markdown with links to the cited words; "" if nothing was."""

    question: str
    reply: str


def earlier_answers(reader: Reader, turns: Sequence[EarlierTurn]) -> list[Answer]:
    """The answers, in order. Their statements are the cited words, as they stand in the library now."""
    return reader.retriever.repeat(lambda: _answers(reader, turns)) if turns else []


def _answers(reader: Reader, turns: Sequence[EarlierTurn]) -> list[Answer]:
    answers: list[Answer] = []
    with reader.library.reading():
        for turn in turns[-MOST_TURNS:]:
            try:
                meant = followup.standalone(turn.question, answers)
            except followup.NotUnderstoodError:
                meant = turn.question
            evidence, numbers = tuple(_evidence(reader, turn.reply)), SourceNumbers()
            quoted = [numbers.numbered(Sentence(each.text, (_citation(each),))) for each in evidence]
            # One that quoted has also said what a chat model would add.
            answers.append(Answer(turn.question, meant, tuple(quoted), evidence, offers_model=bool(evidence)))
    return answers


def _citation(evidence: Evidence) -> Citation:
    """The citation of a whole piece of evidence."""
    return Citation(evidence.paper, evidence.start, evidence.end, evidence.text, evidence.number, support=1)


def _evidence(reader: Reader, reply: str) -> Iterator[Evidence]:
    """The words that a reply links to, each once, in order; without those that the library does not have."""
    places = list(dict.fromkeys((m["paper"], int(m["start"]), int(m["end"])) for m in _LINK.finditer(reply)))
    papers = {paper.id: paper for paper in reader.library.papers_by_id({paper for paper, _, _ in places})}
    number = 0
    for paper_id, start, end in places[:_MOST_QUOTES]:
        paper = papers.get(paper_id)
        if paper is None or not start < end <= paper.length:
            continue
        first, last = paper.pages.pages_of(start, end)
        text = reader.library.text(paper.id, start, end)
        hits = [hit for hit in reader.retriever.passages(paper) if hit.span[0] < end and start < hit.span[1]]
        if first == last and hits and text == text.strip():
            number += 1
            yield Evidence(number, paper, start, end, text, (hits[0],))
