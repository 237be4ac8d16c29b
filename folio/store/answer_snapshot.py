"""An answer as it is kept for follow-ups: which spans of which papers it was made from, and not their texts again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from folio.store.library import Library, text_hash
from folio.types import Answer, Chunk, Citation, Evidence, Hit, Paper, Sentence


def memory_of(answer: Answer) -> str:
    """JSON, in ASCII."""
    return json.dumps(
        {
            "question": answer.question,
            "standalone_question": answer.standalone_question,
            "sentences": [
                {
                    "text": sentence.text,
                    "section": sentence.section,
                    "citations": [_citation(citation) for citation in sentence.citations],
                    "against": [_citation(citation) for citation in sentence.against],
                }
                for sentence in answer.sentences
            ],
            "evidence": [_evidence(evidence) for evidence in answer.evidence],
            "dropped": answer.dropped,
            "notice": answer.notice,
            "style": answer.style,
        }
    )


def recalled(memory: str, library: Library) -> Answer | None:
    """The answer again, with its texts as the library has them; None where a paper is gone, or no longer says that."""
    held = json.loads(memory)
    with library.reading():
        papers = {paper.id: paper for paper in library.papers_by_id({kept["paper"] for kept in held["evidence"]})}
        evidence: list[Evidence] = []
        for kept in held["evidence"]:
            again = _evidence_again(len(evidence) + 1, kept, papers.get(kept["paper"]), library)
            if again is None:
                return None
            evidence.append(again)
    try:
        sentences = tuple(
            Sentence(
                kept["text"],
                tuple(_citation_again(citation, evidence) for citation in kept["citations"]),
                tuple(_citation_again(citation, evidence) for citation in kept["against"]),
                kept["section"],
            )
            for kept in held["sentences"]
        )
    except ValueError:  # the words are the same, and the pages begin elsewhere
        return None
    return Answer(
        held["question"],
        held["standalone_question"],
        sentences,
        tuple(evidence),
        held["dropped"],
        held["notice"],
        held["style"],
    )


def _citation(citation: Citation) -> list[float]:
    """Its paper is that of its evidence."""
    return [citation.evidence, citation.start, citation.end, citation.support]


def _citation_again(kept: Sequence[Any], evidence: Sequence[Evidence]) -> Citation:
    number, start, end, support = kept
    source = evidence[number - 1]
    quote = source.text[start - source.start : end - source.start]
    return Citation(source.paper, start, end, quote, number, support)


def _evidence(evidence: Evidence) -> dict[str, Any]:
    """Its number is its place; its hits are of its paper."""
    hits = [[hit.chunk.id, hit.chunk.start, hit.chunk.end, hit.score, hit.dense, hit.lexical] for hit in evidence.hits]
    return {
        "paper": evidence.paper.id,
        "start": evidence.start,
        "end": evidence.end,
        "hits": hits,
        "digest": _digest(evidence.text, evidence.hits),
    }


def _evidence_again(number: int, kept: Mapping[str, Any], paper: Paper | None, library: Library) -> Evidence | None:
    if paper is None:
        return None
    start, end = kept["start"], kept["end"]
    low, high = min(start, *(hit[1] for hit in kept["hits"])), max(end, *(hit[2] for hit in kept["hits"]))
    around = library.text(paper.id, low, high)
    hits = tuple(
        Hit(Chunk(id, paper.id, first, last), paper, around[first - low : last - low], score, dense, lexical)
        for id, first, last, score, dense, lexical in kept["hits"]
    )
    text = around[start - low : end - low]
    return Evidence(number, paper, start, end, text, hits) if _digest(text, hits) == kept["digest"] else None


def _digest(text: str, hits: Sequence[Hit]) -> str:
    """Stands for the text of evidence and of what it was made from: another reading of a PDF may give other words."""
    return text_hash("\n".join([text, *(hit.text for hit in hits)])).hex()
