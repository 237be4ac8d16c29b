"""Works of services are ordered by title and abstract, with the sentence that decided."""

from __future__ import annotations

import pytest

from folio.models.minilm import BuiltinEmbedder
from folio.papers.work import Work
from folio.question.question import Question
from folio.search.builtin_reranker import BuiltinReranker
from folio.search.works import MOST_RANKED, rank_works

QUESTION = Question("How dense is the fur of a sea otter?")
WEIGHTS = dict.fromkeys(QUESTION.tokens, 1.0)
WORKS = [
    Work("arxiv", title="Strings and Branes", abstract="We study strings. Branes are wrapped."),
    Work("openalex", title="Prices of pelts"),
    Work("crossref", title="Mammals of the coast", abstract="Seals dive. The sea otter has the densest fur. So."),
    Work("europepmc", title=""),
]


@pytest.fixture(scope="module")
def embedder() -> BuiltinEmbedder:
    return BuiltinEmbedder()


@pytest.mark.parametrize("has_reranker", [True, False])
def test_the_work_that_answers_comes_first(embedder: BuiltinEmbedder, has_reranker: bool) -> None:
    reranker = BuiltinReranker(embedder) if has_reranker else None
    ranked = rank_works(QUESTION, WORKS, reranker, embedder, WEIGHTS)
    assert (ranked[0].place, ranked[0].sentence) == (2, "The sea otter has the densest fur.")
    assert sorted(each.place for each in ranked) == [0, 1, 2, 3]
    assert {each.sentence for each in ranked if each.place in (1, 3)} == {""}  # nothing but a title
    assert [each.score for each in ranked] == sorted((each.score for each in ranked), reverse=True)


def test_nothing_and_too_much_are_ranked(embedder: BuiltinEmbedder) -> None:
    assert rank_works(QUESTION, [], None, embedder, {}) == []
    many = [Work("arxiv", title=f"Paper {number}") for number in range(MOST_RANKED + 5)]
    assert len(rank_works(QUESTION, many, None, embedder, {})) == MOST_RANKED
