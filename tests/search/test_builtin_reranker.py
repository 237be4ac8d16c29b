"""The built-in reranker: terms, IDF, bigrams, late interaction and the retrieval scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from folio.models.minilm import BuiltinEmbedder
from folio.paper_metadata import simple_metadata
from folio.protocols import Reranker
from folio.search.builtin_reranker import FUSED_WEIGHT, LATE_INTERACTION_TOP_N, BuiltinReranker
from folio.search.retriever import reranked
from folio.types import Hit, Tokens
from tests.helpers.factories import even_weights, one_page_hits
from tests.helpers.fakes import HashingEmbedder

QUESTION = "What do sea otters eat?"
TEXTS = (
    "The glacier is long and the ice is thick.",
    "Sea otters eat urchins and clams.",
    "Urchins eat kelp.",
    "Sea otters float in kelp.",
)


def found(dense: Sequence[float | None], lexical: Sequence[float | None]) -> list[Hit]:
    hits = one_page_hits(*TEXTS)
    return [replace(hit, dense=d, lexical=b) for hit, d, b in zip(hits, dense, lexical, strict=True)]


def builtin() -> BuiltinReranker:
    """With so many dimensions that different words do not collide."""
    return BuiltinReranker(HashingEmbedder(4096))


def test_passages_with_the_questions_words_come_first() -> None:
    reranker: Reranker = builtin()
    hits = found([0.5] * 4, [1.0] * 4)
    scores = reranker.scores(QUESTION, hits, even_weights(QUESTION))
    # Of sea, otters and eat: late interaction with passage and window, BM25, bigrams, best sentence
    assert scores == [
        pytest.approx((10 * whole + 10 * whole + 1 + pairs + whole) / 23, abs=1e-6)
        for whole, pairs in [(0, 0), (1, 1), (1 / 3, 0), (2 / 3, 1 / 2)]
    ]
    order = [hit.paper.file for hit in reranked(reranker, QUESTION, hits, even_weights(QUESTION))]
    assert order == ["paper2.pdf", "paper4.pdf", "paper3.pdf", "paper1.pdf"]


def test_a_rare_word_counts_for_more_than_common_ones() -> None:
    weights = {"sea": 1.0, "otter": 1.0, "eat": 5.0}
    scores = builtin().scores(QUESTION, found([0.5] * 4, [1.0] * 4), weights)
    assert scores[1] > scores[2] > scores[3] > scores[0]


def test_the_title_is_read_with_the_passage() -> None:
    (hit,) = one_page_hits("Urchins are what they eat.")
    hits = [hit, replace(hit, paper=replace(hit.paper, metadata=simple_metadata("On Sea otters")))]
    weights = even_weights(QUESTION)
    assert builtin().scores(QUESTION, hits, weights) == [
        pytest.approx((20 / 3 + 1 / 3) / 23, abs=1e-6),
        pytest.approx((20 + 1 / 2 + 1 / 3) / 23, abs=1e-6),  # bigrams in the title count; the title is not a sentence
    ]


def test_matches_that_are_close_together_score_higher() -> None:
    apart = f"Sea otters float in kelp. {'The glacier is long and the ice is thick. ' * 10}Urchins eat kelp."
    near = f"{'The glacier is long and the ice is thick. ' * 10}Urchins eat kelp. Sea otters float in kelp."
    hits = one_page_hits(apart, near)
    scores = builtin().scores(QUESTION, hits, even_weights(QUESTION))
    assert scores == [pytest.approx((10 + 10 * part + 1 / 2 + 2 / 3) / 23, abs=1e-6) for part in (2 / 3, 1)]


def test_both_retrieval_scores_count() -> None:
    weights = even_weights("xyzzy")
    by_bm25 = reranked(builtin(), "xyzzy", found([None] * 4, [2.0, None, 1.0, 8.0]), weights)
    assert [hit.paper.file for hit in by_bm25] == ["paper4.pdf", "paper1.pdf", "paper3.pdf", "paper2.pdf"]
    assert [hit.score for hit in by_bm25] == [pytest.approx(part / 23) for part in (1, 1 / 4, 1 / 8, 0)]
    # The cosine decides which passages reach the second stage.
    close = [replace(hit, dense=0.01 * place) for place, hit in enumerate(one_page_hits(*["Otters float."] * 15), 1)]
    by_cosine = reranked(builtin(), "otters", close, even_weights("otters"))
    assert [hit.paper.file for hit in by_cosine] == [f"paper{n}.pdf" for n in (*range(4, 16), 3, 2, 1)]
    # First stage: the cosine by the largest, all terms in the passage, and all in one sentence
    # and the fused score, which is the same for all, with a weight from the best cosine's lead over the fifth
    trust = FUSED_WEIGHT * ((15 - 11) / 15) ** 2
    first = [0.3 * cosine / 15 + 0.2 + 0.1 + trust for cosine in (3, 2, 1)]
    best = (21 / 23 + trust) / (1 + trust)
    behind = [best * 0.99 * score / first[0] for score in first]
    assert [hit.score for hit in by_cosine] == [pytest.approx(score) for score in [best] * 12 + behind]


@pytest.mark.parametrize(
    ("cosines", "first"),
    [
        # All passages are about alike: the one with the question's words
        ((0.5, 0.49, 0.49, 0.48), "paper2.pdf"),
        # The cosines tell them apart: the best by the fused score
        ((0.6, 0.4, 0.3, 0.2), "paper1.pdf"),
    ],
)
def test_the_fused_score_decides_where_cosines_tell_passages_apart(cosines: Sequence[float], first: str) -> None:
    hits = [
        replace(hit, dense=cosine, score=score)
        for hit, cosine, score in zip(one_page_hits(*TEXTS), cosines, (1.0, 0.4, 0.3, 0.2), strict=True)
    ]
    order = reranked(builtin(), QUESTION, hits, even_weights(QUESTION))
    assert order[0].paper.file == first
    assert all(0 <= hit.score <= 1 for hit in order)


def test_the_lead_is_over_the_fifth_cosine_and_counts_squared() -> None:
    texts = ["Otters float.", *["The ice is thick."] * 5]
    cosines = (0.2, 0.5, 0.5, 0.5, 0.4, 0.1)  # the fifth best is 0.2
    hits = [replace(hit, dense=c, score=c) for hit, c in zip(one_page_hits(*texts), cosines, strict=True)]
    scores = builtin().scores("otters", hits, even_weights("otters"))
    trust = FUSED_WEIGHT * ((0.5 - 0.2) / 0.5) ** 2
    assert scores[:2] == [
        pytest.approx((21 / 23 + trust * 0.4) / (1 + trust), abs=1e-6),
        pytest.approx(trust / (1 + trust), abs=1e-6),
    ]


def test_only_the_best_of_the_first_stage_are_scored_by_late_interaction() -> None:
    read: list[str] = []

    class Reader(HashingEmbedder):
        def tokens(self, texts: Sequence[str]) -> list[Tokens]:
            read.extend(texts)
            return super().tokens(texts)

    texts = [f"Otters number {number} float." for number in range(14)]
    hits = [replace(hit, lexical=float(place)) for place, hit in enumerate(one_page_hits(*texts))]
    scores = BuiltinReranker(Reader(4096)).scores("otters", hits, even_weights("otters"))
    assert read == ["otters", "A Paper", *reversed(texts[14 - LATE_INTERACTION_TOP_N :])]  # the shared title once
    assert scores == sorted(scores)
    assert len(set(scores)) == 14


def test_missing_scores_and_empty_questions() -> None:
    assert builtin().scores(QUESTION, [], even_weights(QUESTION)) == []
    assert builtin().scores("", found([None] * 4, [None] * 4), {}) == [0.0] * 4
    opposite = builtin().scores("", found([-0.5] * 4, [0.0] * 4), {})
    assert opposite == [0.0] * 4


def test_ties_keep_their_order() -> None:
    hits = [replace(hit, dense=0.5) for hit in one_page_hits(*TEXTS * 5)]
    assert reranked(builtin(), "xyzzy", hits, {}) == [replace(hit, score=0.0) for hit in hits]


def test_a_paraphrase_outranks_a_stray_word_match() -> None:
    hits = one_page_hits(
        "Ships that crossed the sea in winter were often lost, and their crews with them.",
        "These marine mammals feed on urchins, clams and crabs.",
    )
    hits = [replace(hit, lexical=bm25) for hit, bm25 in zip(hits, (3.0, None), strict=True)]
    weights = even_weights(QUESTION)
    by_words = reranked(builtin(), QUESTION, hits, weights)
    assert [hit.paper.file for hit in by_words] == ["paper1.pdf", "paper2.pdf"]
    by_meaning = reranked(BuiltinReranker(BuiltinEmbedder()), QUESTION, hits, weights)
    assert [hit.paper.file for hit in by_meaning] == ["paper2.pdf", "paper1.pdf"]
