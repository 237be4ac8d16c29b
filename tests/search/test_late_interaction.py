"""Late interaction over hand-made states of three numbers, so that every score can be checked on paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from folio.papers.model import Tokens
from folio.search.late_interaction import CONTEXT_WEIGHT, Matches, Query, evidence_coverage
from tests.helpers.fakes import HashingEmbedder

pytestmark = pytest.mark.fast

EAST, NORTH, UP = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
BETWEEN = (0.6, 0.8, 0.0)  # 0.6 of the way east, 0.8 north
WEST = (-1.0, 0.0, 0.0)


def tokens(*states: Sequence[float]) -> Tokens:
    """One token per state, each one character long, separated by spaces."""
    rows = np.array(states, dtype=np.float32).reshape(-1, 3)
    return Tokens(rows, tuple((2 * place, 2 * place + 1) for place in range(len(states))))


def query(*states: Sequence[float], shares: Sequence[float], squared: Sequence[float] | None = None) -> Query:
    given = np.array(shares, dtype=np.float32)
    return Query(tokens(*states).states, given, given if squared is None else np.array(squared, dtype=np.float32))


def matched(asked: Query, passage: Tokens, title: Tokens | None = None) -> Matches:
    return Matches.of(asked, passage, title or tokens())


def values(*numbers: float) -> Any:
    return pytest.approx(list(numbers), abs=1e-6)


@pytest.mark.parametrize(
    ("question", "spans", "weights", "shares", "squared"),
    [
        # The tokens of a word share its weight: the | ott ers ' | kelp; weights count by their squares, 9 to 1
        ("the otters' kelp", ((0, 3), (4, 7), (7, 10), (10, 11), (12, 16)), {"otter": 3.0, "kelp": 1.0},
         (0, 1 / 4, 1 / 4, 1 / 4, 1 / 4), (0, 3 / 10, 3 / 10, 3 / 10, 1 / 10)),
        # A compound has the weight of its rarest part, a repeated word counts twice
        ("ML-KEM keys", ((0, 2), (2, 3), (3, 6), (7, 11)), {"ml-kem": 3.0, "ml": 1.0, "kem": 2.0, "key": 1.0},
         (1 / 4, 1 / 4, 1 / 4, 1 / 4), (3 / 10, 3 / 10, 3 / 10, 1 / 10)),
        ("kelp ice kelp", ((0, 4), (5, 8), (9, 13)), {"kelp": 1.0, "ice": 2.0}, (1 / 4, 1 / 2, 1 / 4),
         (1 / 6, 4 / 6, 1 / 6)),
        # Without a word that has weight they count equally
        *(("the otters kelp", ((0, 3), (4, 7), (7, 10), (11, 15)), weights, (1 / 4,) * 4, (1 / 4,) * 4)
          for weights in ({}, {"otter": 0.0, "kelp": 0.0})),
    ],
)  # fmt: skip
def test_tokens_share_the_weights_of_words(
    question: str,
    spans: tuple[tuple[int, int], ...],
    weights: dict[str, float],
    shares: tuple[float, ...],
    squared: tuple[float, ...],
) -> None:
    read = Tokens(np.eye(len(spans), dtype=np.float32), spans)
    asked = Query.of(question, read, weights)
    assert asked.shares.tolist() == values(*shares)
    assert asked.squared_shares.tolist() == values(*squared)
    assert {vector.dtype.name for vector in (asked.shares, asked.squared_shares)} == {"float32"}
    assert asked.states is read.states


@pytest.mark.parametrize("question", ["", " \n"])
def test_a_question_without_a_word_matches_nothing(question: str) -> None:
    asked = Query.of(question, tokens(), {})
    assert (asked.states.shape, asked.shares.shape, asked.squared_shares.shape) == ((0, 3), (0,), (0,))
    found = matched(asked, tokens(EAST, NORTH), tokens(UP))
    assert (found.best.shape, found.whole, found.window, found.sentence(0, 3)) == ((0,), 0.0, 0.0, 0.0)
    assert evidence_coverage([found]) == evidence_coverage([]) == 0.0


def test_words_are_found_by_position_whatever_separates_them() -> None:
    question = "\u3000Ice\u00a0caps\n\tmelt?!"
    (read,) = HashingEmbedder(64).tokens([question])
    assert [question[start:end] for start, end in read.spans] == ["Ice", "caps", "melt"]
    asked = Query.of(question, read, {"ice": 1.0, "cap": 2.0, "melt": 5.0})
    assert asked.shares.tolist() == values(1 / 8, 2 / 8, 5 / 8)


def test_each_token_takes_its_best_match_and_none_below_zero() -> None:
    asked = query(EAST, NORTH, UP, shares=(0.5, 0.3, 0.2))
    found = matched(asked, tokens(WEST, BETWEEN, NORTH))
    assert found.best.tolist() == values(0.6, 1.0, 0.0)
    assert found.whole == pytest.approx(0.5 * 0.6 + 0.3, abs=1e-6)
    found = matched(query(EAST, shares=(1.0,)), tokens(WEST), tokens(WEST))
    assert (found.best.tolist(), found.whole, found.window, found.sentence(0, 1)) == ([0.0], 0.0, 0.0, 0.0)


def test_a_title_counts_as_its_passage_does() -> None:
    asked = query(EAST, NORTH, UP, shares=(0.5, 0.3, 0.2))
    found = matched(asked, tokens(NORTH), tokens(UP, BETWEEN))
    assert found.titles.tolist() == values(0.6, 0.8, 1.0)
    assert found.best.tolist() == values(0.6, 1.0, 1.0)
    expected = pytest.approx(0.5 * 0.6 + 0.3 + 0.2, abs=1e-6)
    assert found.whole == found.window == found.sentence(0, 1) == expected
    asked = query(EAST, NORTH, shares=(0.75, 0.25))
    assert (matched(asked, tokens()).whole, matched(asked, tokens()).window) == (0.0, 0.0)
    found = matched(asked, tokens(), tokens(EAST))
    assert [found.whole, found.window, found.sentence(0, 10)] == values(0.75, 0.75, 0.75)


def test_a_sentence_is_scored_in_its_context() -> None:
    asked = query(EAST, NORTH, UP, shares=(0.5, 0.3, 0.2))
    found = matched(asked, tokens(EAST, BETWEEN, NORTH), tokens(UP))  # at 0, 2 and 4
    own = [found.sentence(0, 1), found.sentence(2, 3), found.sentence(4, 5), found.sentence(0, 5)]
    assert own == values(
        (1 - CONTEXT_WEIGHT) * (0.5 + 0.2) + CONTEXT_WEIGHT,  # the passage as a whole has 1, the title 0.2
        (1 - CONTEXT_WEIGHT) * (0.5 * 0.6 + 0.3 * 0.8 + 0.2) + CONTEXT_WEIGHT,
        (1 - CONTEXT_WEIGHT) * (0.3 + 0.2) + CONTEXT_WEIGHT,
        1.0,
    )


def test_a_sentence_has_the_tokens_that_begin_in_it() -> None:
    asked = query(EAST, shares=(1.0,))
    found = matched(asked, tokens(NORTH, EAST, NORTH))  # east at [2, 3)
    assert [found.sentence(*span) for span in [(2, 3), (1, 5), (0, 2), (3, 5), (9, 9)]] == values(
        1, 1, *[CONTEXT_WEIGHT] * 3
    )


@pytest.mark.parametrize("length", [1, 63, 64, 65, 79, 80, 81, 96, 97, 100, 200, 333])
def test_every_token_is_in_some_window(length: int) -> None:
    asked = query(EAST, shares=(1.0,))
    for place in range(length):
        states = [NORTH] * length
        states[place] = EAST
        assert matched(asked, tokens(*states)).window == 1.0, place


@pytest.mark.parametrize(
    ("length", "one", "other", "together"),
    [
        (64, 0, 63, True), (65, 0, 63, True),
        (65, 0, 64, False),  # 65 tokens apart fit into no window
        (65, 16, 64, True),  # the last window has the last token
        (80, 16, 79, True), (80, 15, 79, False),
        (81, 31, 80, False),  # windows begin at 0, 16 and 32: 31 is in none that has 80
        (81, 32, 80, True),
        (200, 100, 147, True),  # as near as WINDOW - STEP: in one window wherever they are
        (200, 111, 158, True), (200, 111, 160, False),
    ],
)  # fmt: skip
def test_a_window_covers_matches_that_are_close_together(length: int, one: int, other: int, together: bool) -> None:
    asked = query(EAST, NORTH, shares=(0.5, 0.5))
    states = [UP] * length
    states[one], states[other] = EAST, NORTH
    found = matched(asked, tokens(*states))
    assert found.whole == 1.0
    assert found.window == (1.0 if together else 0.5)


def test_a_window_is_where_the_questions_heaviest_words_are() -> None:
    asked = query(EAST, NORTH, UP, shares=(0.5, 0.3, 0.2))
    states = [WEST] * 300
    states[0], states[1], states[290] = NORTH, UP, EAST
    assert matched(asked, tokens(*states)).window == 0.5
    states[290] = BETWEEN  # 0.6 of 0.5, and 0.8 of 0.3
    assert matched(asked, tokens(*states)).window == pytest.approx(0.3 * 0.8 + 0.5 * 0.6, abs=1e-6)


def test_coverage_adds_up_by_weight_to_at_most_one() -> None:
    asked = query(EAST, NORTH, UP, shares=(0.2, 0.2, 0.6), squared=(0.5, 0.3, 0.2))
    east, north = matched(asked, tokens(EAST)), matched(asked, tokens(BETWEEN), tokens(UP))
    assert evidence_coverage([east]) == pytest.approx(0.5)
    assert evidence_coverage([north]) == pytest.approx(0.5 * 0.6 + 0.3 * 0.8 + 0.2)
    assert evidence_coverage([east, north]) == evidence_coverage([north, east]) == pytest.approx(0.5 + 0.3 * 0.8 + 0.2)
    read = Tokens(np.eye(3, dtype=np.float32), ((0, 4), (5, 8), (9, 16)))
    asked = Query.of("kelp ice sistine", read, {"kelp": 1.0, "ice": 1.0, "sistin": 3.0})
    found = matched(asked, tokens(EAST, NORTH))
    assert found.whole == pytest.approx(2 / 5)
    assert evidence_coverage([found]) == pytest.approx(2 / 11)
    assert evidence_coverage([matched(asked, tokens(UP))]) == pytest.approx(9 / 11)
    asked = query(EAST, EAST, EAST, shares=(1 / 3, 1 / 3, 1 / 3), squared=(0.33334, 0.33334, 0.33334))
    assert evidence_coverage([matched(asked, tokens(EAST))]) == 1.0
