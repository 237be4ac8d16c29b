"""The built-in reranker's last stage: a reader's log-odds on top of another order."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from folio.papers.model import Hit, Passage, Reading
from folio.protocols import Reranker
from folio.question.question import Question
from folio.search.builtin_reranker import MOST_ODDS, READ, SCORE_WEIGHT, ReaderReranker
from folio.search.retriever import reranked
from tests.helpers.factories import even_weights, one_page_hits
from tests.helpers.fakes import CoverageReranker

pytestmark = pytest.mark.fast

QUESTION = "Do otters float in kelp?"
WHOLE = SCORE_WEIGHT + 2 * MOST_ODDS


class Odds:
    """Gives each passage the odds of its text, and remembers what was read."""

    def __init__(self, odds: dict[str, float]) -> None:
        self.odds = odds
        self.seen: list[Passage] = []

    def read(self, question: str, passages: Sequence[Passage]) -> list[Reading]:
        self.seen += passages
        return [Reading(self.odds.get(passage.text, 0.0), (), ()) for passage in passages]

    def load_in_background(self) -> None: ...


def files(hits: Sequence[Hit]) -> list[str]:
    return [hit.paper.file for hit in hits]


def test_the_readers_odds_are_added_to_the_score() -> None:
    texts = ("Otters float.", "Otters float in kelp.", "Kelp.")
    hits = one_page_hits(*texts)
    reader = Odds({"Otters float.": 9.0, "Otters float in kelp.": -2.0, "Kelp.": 99.0})
    reranker: Reranker = ReaderReranker(CoverageReranker(), reader)
    assert reranker.scores(Question(QUESTION), hits, even_weights(QUESTION)) == [
        pytest.approx((SCORE_WEIGHT * 2 / 3 + 9 + MOST_ODDS) / WHOLE),
        pytest.approx((SCORE_WEIGHT - 2 + MOST_ODDS) / WHOLE),
        pytest.approx((SCORE_WEIGHT / 3 + 2 * MOST_ODDS) / WHOLE),  # no more than these
    ]
    assert {(passage.above, passage.text) for passage in reader.seen} == {("A Paper", text) for text in texts}


def test_only_the_best_are_read() -> None:
    best = [f"Otters float in kelp. {number}" for number in range(READ)]
    hits = one_page_hits("Ice.", "Otters.", *best, "Otters float.")
    reader = Odds(dict.fromkeys(best, -MOST_ODDS) | {"Ice.": MOST_ODDS})
    found = reranked(ReaderReranker(CoverageReranker(), reader), Question(QUESTION), hits, even_weights(QUESTION))
    assert [passage.text for passage in reader.seen] == best
    assert files(found) == files([*hits[2 : 2 + READ], hits[-1], hits[1], hits[0]])
    assert all(0 <= hit.score <= 1 for hit in found)


def test_nothing_to_read_and_scores_of_zero() -> None:
    reranker = ReaderReranker(CoverageReranker(), Odds({}))
    assert reranker.scores(Question(QUESTION), [], even_weights(QUESTION)) == []
    none = one_page_hits(*["Ice."] * (READ + 2))
    assert reranker.scores(Question(QUESTION), none, even_weights(QUESTION)) == [
        *[pytest.approx(MOST_ODDS / WHOLE)] * READ,
        *[0.0] * 2,
    ]
