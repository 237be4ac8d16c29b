"""Orders works that services found for a question by title and abstract, each with the sentence that decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from folio.papers.metadata import Field, Metadata
from folio.papers.model import Chunk, Hit, PageMap, Paper
from folio.papers.work import Work
from folio.protocols import Reranker, TermWeights, TokenEmbedder
from folio.question.question import Question
from folio.search.late_interaction import matches
from folio.search.retriever import reranked
from folio.text import coverage, one_line, sentence_spans, tokenize

MOST_RANKED = 100  # works; those after them were found last by every service
_EXPLAINED = 20  # of the best, whose deciding sentence is looked for
_LONGEST_ABSTRACT = 4_000  # characters


@dataclass(frozen=True, slots=True)
class RankedWork:
    place: int  # in the list of works
    score: float
    sentence: str  # of its abstract, the one that fits the question best; "" without an abstract


def rank_works(
    question: Question, works: Sequence[Work], reranker: Reranker | None, embedder: TokenEmbedder, weights: TermWeights
) -> list[RankedWork]:
    """The works, best first, at most MOST_RANKED. weights: of the question's tokens. Raises ModelError."""
    listed = works[:MOST_RANKED]
    if not listed:
        return []
    hits = _hits(question, listed, embedder, weights)
    ordered = (
        reranked(reranker, question, hits, weights) if reranker else sorted(hits, key=lambda hit: -(hit.dense or 0.0))
    )
    passages = [(hit.paper.title, hit.text) for hit in ordered[:_EXPLAINED]]
    matched = matches(embedder, question.text, passages, weights)
    sentences = []
    for hit, match in zip(ordered, matched, strict=False):
        spans = sentence_spans(hit.text) if listed[hit.chunk.id].abstract.strip() else []
        best = max(spans, key=lambda span: match.sentence(*span), default=(0, 0))
        sentences.append(one_line(hit.text[slice(*best)]))
    sentences += [""] * (len(ordered) - len(sentences))
    return [RankedWork(hit.chunk.id, hit.score, said) for hit, said in zip(ordered, sentences, strict=True)]


def _hits(question: Question, works: Sequence[Work], embedder: TokenEmbedder, weights: TermWeights) -> list[Hit]:
    """Each work as a passage of a paper with its title, whose text is its abstract. The chunk's id is its place."""
    texts = [work.abstract.strip()[:_LONGEST_ABSTRACT] or work.title for work in works]
    vectors = embedder.embed_passages([f"{work.title}\n{text}" for work, text in zip(works, texts, strict=True)])
    cosines = vectors @ embedder.embed_query(question.text)
    hits = []
    for place, (work, text, cosine) in enumerate(zip(works, texts, cosines, strict=True)):
        title = Field(work.title, work.source, True)
        paper = Paper(f"{place:064x}", "", Metadata(title=title), PageMap((0,), ("",)), len(text), 1)
        words = coverage(weights, tokenize(f"{work.title} {text}"))
        chunk = Chunk(place, paper.id, 0, len(text))
        hits.append(Hit(chunk, paper, text, max(0.0, float(cosine)), dense=float(cosine), lexical=words))
    return hits
