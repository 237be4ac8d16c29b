"""The built-in reranker: terms, IDF, bigrams, late interaction and the retrieval scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from folio.models.minilm import BuiltinEmbedder
from folio.papers.metadata import simple_metadata
from folio.papers.model import Hit, Tokens
from folio.protocols import Reranker
from folio.question.question import Question
from folio.search.builtin_reranker import FUSED_WEIGHT, LATE_INTERACTION_TOP_N, LEAST_FUSED_WEIGHT, BuiltinReranker
from folio.search.retriever import reranked
from tests.helpers.factories import even_weights, one_page_hits
from tests.helpers.fakes import HashingEmbedder

pytestmark = pytest.mark.fast

QUESTION = "What do sea otters eat?"
TEXTS = (
    "The glacier is long and the ice is thick.",
    "Sea otters eat urchins and clams.",
    "Urchins eat kelp.",
    "Sea otters float in kelp.",
)


def of_one_paper(*texts: str) -> list[Hit]:
    """A hit for each text, named paper1.pdf and so on, with the id of one paper."""
    return [replace(hit, paper=replace(hit.paper, id="one")) for hit in one_page_hits(*texts)]


def found(dense: Sequence[float | None], lexical: Sequence[float | None]) -> list[Hit]:
    hits = of_one_paper(*TEXTS)
    return [replace(hit, dense=d, lexical=b) for hit, d, b in zip(hits, dense, lexical, strict=True)]


def builtin() -> BuiltinReranker:
    """With so many dimensions that different words do not collide."""
    return BuiltinReranker(HashingEmbedder(4096))


def test_passages_with_the_questions_words_come_first() -> None:
    reranker: Reranker = builtin()
    hits = found([0.5] * 4, [1.0] * 4)
    scores = reranker.scores(Question(QUESTION), hits, even_weights(QUESTION))
    # Of sea, otters and eat: late interaction with passage and window, BM25, bigrams, best sentence
    assert scores == [
        pytest.approx((10 * whole + 10 * whole + 1 + pairs + whole) / 23, abs=1e-6)
        for whole, pairs in [(0, 0), (1, 1), (1 / 3, 0), (2 / 3, 1 / 2)]
    ]
    order = [hit.paper.file for hit in reranked(reranker, Question(QUESTION), hits, even_weights(QUESTION))]
    assert order == ["paper2.pdf", "paper4.pdf", "paper3.pdf", "paper1.pdf"]


def test_a_rare_word_counts_for_more_than_common_ones() -> None:
    weights = {"sea": 1.0, "otter": 1.0, "eat": 5.0}
    scores = builtin().scores(Question(QUESTION), found([0.5] * 4, [1.0] * 4), weights)
    assert scores[1] > scores[2] > scores[3] > scores[0]


def test_the_title_is_read_with_the_passage() -> None:
    (hit,) = one_page_hits("Urchins are what they eat.")
    hits = [hit, replace(hit, paper=replace(hit.paper, metadata=simple_metadata("On Sea otters")))]
    weights = even_weights(QUESTION)
    assert builtin().scores(Question(QUESTION), hits, weights) == [
        pytest.approx((20 / 3 + 1 / 3) / 23, abs=1e-6),
        pytest.approx((20 + 1 / 2 + 1 / 3) / 23, abs=1e-6),  # bigrams in the title count; the title is not a sentence
    ]


def test_matches_that_are_close_together_score_higher() -> None:
    apart = f"Sea otters float in kelp. {'The glacier is long and the ice is thick. ' * 10}Urchins eat kelp."
    near = f"{'The glacier is long and the ice is thick. ' * 10}Urchins eat kelp. Sea otters float in kelp."
    hits = of_one_paper(apart, near)
    scores = builtin().scores(Question(QUESTION), hits, even_weights(QUESTION))
    assert scores == [pytest.approx((10 + 10 * part + 1 / 2 + 2 / 3) / 23, abs=1e-6) for part in (2 / 3, 1)]


def test_both_retrieval_scores_count() -> None:
    weights = even_weights("xyzzy")
    by_bm25 = reranked(builtin(), Question("xyzzy"), found([None] * 4, [2.0, None, 1.0, 8.0]), weights)
    assert [hit.paper.file for hit in by_bm25] == ["paper4.pdf", "paper1.pdf", "paper3.pdf", "paper2.pdf"]
    assert [hit.score for hit in by_bm25] == [pytest.approx(part / 23) for part in (1, 1 / 4, 1 / 8, 0)]
    # The cosine decides which passages reach the second stage.
    close = [replace(hit, dense=0.01 * place) for place, hit in enumerate(of_one_paper(*["Otters float."] * 15), 1)]
    by_cosine = reranked(builtin(), Question("otters"), close, even_weights("otters"))
    assert [hit.paper.file for hit in by_cosine] == [f"paper{n}.pdf" for n in (*range(4, 16), 3, 2, 1)]
    # First stage: the cosine by the largest, all terms in the passage and in one sentence, and the fused score
    first = [0.3 * cosine / 15 + 0.2 + 0.1 + LEAST_FUSED_WEIGHT for cosine in (3, 2, 1)]
    behind = [21 / 23 * 0.99 * score / first[0] for score in first]
    assert [hit.score for hit in by_cosine] == [pytest.approx(score) for score in [21 / 23] * 12 + behind]


def fused(hits: Sequence[Hit], *scores: float) -> list[Hit]:
    return [replace(hit, score=score) for hit, score in zip(hits, scores, strict=True)]


def test_words_rank_passages_and_fused_scores_rank_papers() -> None:
    scores = (1.0, 0.5, 0.3, 0.2)
    weights = even_weights(QUESTION)
    within = reranked(builtin(), Question(QUESTION), fused(of_one_paper(*TEXTS), *scores), weights)
    assert [hit.paper.file for hit in within] == ["paper2.pdf", "paper4.pdf", "paper3.pdf", "paper1.pdf"]
    across = reranked(builtin(), Question(QUESTION), fused(one_page_hits(*TEXTS), *scores), weights)
    assert [hit.paper.file for hit in across] == ["paper1.pdf", "paper2.pdf", "paper3.pdf", "paper4.pdf"]
    assert all(0 <= hit.score <= 1 for hit in (*within, *across))


def test_fused_scores_weigh_more_where_papers_are_single() -> None:
    texts = ("Otters float.", "The ice is thick.", "The moon is far.", "Bees dance.")
    first, second, third, fourth = fused(one_page_hits(*texts), 0.4, 0.8, 0.2, 0.2)
    hits = [first, second, third, replace(fourth, paper=third.paper)]  # two of four are alone
    trust = FUSED_WEIGHT * 0.5**4
    assert builtin().scores(Question("otters"), hits, even_weights("otters")) == [
        pytest.approx((21 / 23 + trust * 0.5) / (1 + trust), abs=1e-6),
        pytest.approx(trust / (1 + trust), abs=1e-6),
        pytest.approx(trust * 0.25 / (1 + trust), abs=1e-6),
        pytest.approx(trust * 0.25 / (1 + trust), abs=1e-6),
    ]


def test_the_fused_score_helps_to_reach_late_interaction() -> None:
    hits = fused(of_one_paper(*["Otters float."] * 13), *[0.5] * 12, 1.0)
    read = reranked(builtin(), Question("otters"), hits, even_weights("otters"))
    assert read[-1].paper.file == "paper12.pdf"  # the last of the others


def test_late_interaction_scores_only_the_best() -> None:
    read: list[str] = []

    class Reader(HashingEmbedder):
        def tokens(self, texts: Sequence[str]) -> list[Tokens]:
            read.extend(texts)
            return super().tokens(texts)

    texts = [f"Otters number {number} float." for number in range(14)]
    hits = [replace(hit, lexical=float(place)) for place, hit in enumerate(of_one_paper(*texts))]
    scores = BuiltinReranker(Reader(4096)).scores(Question("otters"), hits, even_weights("otters"))
    assert read == ["otters", "A Paper", *reversed(texts[14 - LATE_INTERACTION_TOP_N :])]  # the shared title once
    assert scores == sorted(scores)
    assert len(set(scores)) == 14


def test_missing_scores_are_zero_and_ties_keep_their_order() -> None:
    assert builtin().scores(Question(QUESTION), [], even_weights(QUESTION)) == []
    assert builtin().scores(Question(""), found([None] * 4, [None] * 4), {}) == [0.0] * 4
    opposite = builtin().scores(Question(""), found([-0.5] * 4, [0.0] * 4), {})
    assert opposite == [0.0] * 4
    hits = [replace(hit, dense=0.5) for hit in of_one_paper(*TEXTS * 5)]
    assert reranked(builtin(), Question("xyzzy"), hits, {}) == [replace(hit, score=0.0) for hit in hits]


def test_a_paraphrase_outranks_a_stray_word_match() -> None:
    hits = of_one_paper(
        "Ships that crossed the sea in winter were often lost, and their crews with them.",
        "These marine mammals feed on urchins, clams and crabs.",
    )
    hits = [replace(hit, lexical=bm25) for hit, bm25 in zip(hits, (3.0, None), strict=True)]
    weights = even_weights(QUESTION)
    by_words = reranked(builtin(), Question(QUESTION), hits, weights)
    assert [hit.paper.file for hit in by_words] == ["paper1.pdf", "paper2.pdf"]
    by_meaning = reranked(BuiltinReranker(BuiltinEmbedder()), Question(QUESTION), hits, weights)
    assert [hit.paper.file for hit in by_meaning] == ["paper2.pdf", "paper1.pdf"]
