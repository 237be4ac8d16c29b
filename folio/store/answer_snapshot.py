"""Answers saved for follow-ups: the spans of their papers, without the text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, fields
from typing import Any

from folio.answer_types import Answer, Citation, Evidence, RejectedSentence, Section, Sentence
from folio.store.digests import text_hash
from folio.store.library import Library
from folio.types import Chunk, Hit, Paper


def snapshot_of(answer: Answer) -> str:
    """The answer as ASCII JSON, for `restore`."""
    sentences = [
        {
            **_values(sentence),
            "section": str(sentence.section),
            "citations": list(map(_citation_fields, sentence.citations)),
            "against": list(map(_citation_fields, sentence.against)),
        }
        for sentence in answer.sentences
    ]
    evidence = list(map(_evidence_fields, answer.evidence))
    left_out = list(map(astuple, answer.left_out))
    return json.dumps({**_values(answer), "sentences": sentences, "evidence": evidence, "left_out": left_out})


def restore(snapshot: str, library: Library) -> Answer | None:
    """The answer with its texts read from the library; None if a paper is gone or its text has changed."""
    answer = json.loads(snapshot)
    with library.reading():
        papers = {paper.id: paper for paper in library.papers_by_id({saved["paper"] for saved in answer["evidence"]})}
        evidence: list[Evidence] = []
        for saved in answer["evidence"]:
            restored = _restore_evidence(len(evidence) + 1, saved, papers.get(saved["paper"]), library)
            if restored is None:
                return None
            evidence.append(restored)
    try:
        sentences = tuple(_restore_sentence(kept, evidence) for kept in answer["sentences"])
    except ValueError:  # the text is the same, but its pages begin elsewhere
        return None
    # What an older Folio did not keep has the default of the dataclass.
    left_out = tuple(RejectedSentence(*kept) for kept in answer.get("left_out", ()))
    return Answer(**{**answer, "sentences": sentences, "evidence": tuple(evidence), "left_out": left_out})


def _values(kept: Answer | Sentence) -> dict[str, Any]:
    return {field.name: getattr(kept, field.name) for field in fields(kept)}


def _restore_sentence(kept: Mapping[str, Any], evidence: Sequence[Evidence]) -> Sentence:
    made = {
        "section": Section.parse(kept["section"]),
        "citations": tuple(_restore_citation(citation, evidence) for citation in kept["citations"]),
        "against": tuple(_restore_citation(citation, evidence) for citation in kept["against"]),
        "marks": tuple(map(tuple, kept.get("marks", ()))),
        "short": tuple(kept["short"]) if kept.get("short") else None,
    }
    return Sentence(**{**kept, **made})


def _citation_fields(citation: Citation) -> list[float]:
    """The fields of a citation without its paper, which its evidence has."""
    return [citation.evidence, citation.start, citation.end, citation.support]


def _restore_citation(saved: Sequence[Any], evidence: Sequence[Evidence]) -> Citation:
    number, start, end, support = saved
    source = evidence[number - 1]
    quote = source.text[start - source.start : end - source.start]
    return Citation(source.paper, start, end, quote, number, support)


def _evidence_fields(evidence: Evidence) -> dict[str, Any]:
    """The fields of evidence without its number, which is its position, and without the paper of its hits."""
    hits = [[hit.chunk.id, hit.chunk.start, hit.chunk.end, hit.score, hit.dense, hit.lexical] for hit in evidence.hits]
    return {
        "paper": evidence.paper.id,
        "start": evidence.start,
        "end": evidence.end,
        "hits": hits,
        "digest": _digest(evidence.text, evidence.hits),
    }


def _restore_evidence(number: int, saved: Mapping[str, Any], paper: Paper | None, library: Library) -> Evidence | None:
    if paper is None:
        return None
    start, end = saved["start"], saved["end"]
    low, high = min(start, *(hit[1] for hit in saved["hits"])), max(end, *(hit[2] for hit in saved["hits"]))
    context = library.text(paper.id, low, high)
    hits = tuple(
        Hit(Chunk(id, paper.id, first, last), paper, context[first - low : last - low], score, dense, lexical)
        for id, first, last, score, dense, lexical in saved["hits"]
    )
    text = context[start - low : end - low]
    return Evidence(number, paper, start, end, text, hits) if _digest(text, hits) == saved["digest"] else None


def _digest(text: str, hits: Sequence[Hit]) -> str:
    """A hash of the text of evidence and its hits: reading a PDF again may give another text."""
    return text_hash("\n".join([text, *(hit.text for hit in hits)]))
