"""The confidence of a deep answer: only for what was measured, one question without parts."""

from __future__ import annotations

import pytest

from folio.deep.profile import LEVELS, deep_confidence
from folio.deep.types import Assessment, EvidenceScored, PapersFound, SearchEnded
from tests.helpers.factories import one_page_hits

(HIT,) = one_page_hits("Otters eat urchins.")
WHOLE, FIRST, SECOND = "What do otters eat, and where do they sleep?", "What do otters eat", "where do they sleep"


def level(*scored: tuple[str, int | None]) -> str:
    events = [EvidenceScored(part, HIT, Assessment(relevance)) for part, relevance in scored]
    found = deep_confidence([PapersFound(WHOLE, ()), *events, SearchEnded("enough")])
    return f"{found.level} {found.value}" if found else ""


def shown(least: int) -> str:
    return next(f"{name} {share}" for at, name, share in LEVELS if least >= at)


@pytest.mark.parametrize("best", range(11))
def test_the_best_passage_counts(best: int) -> None:
    assert level((WHOLE, 0), (WHOLE, best), (WHOLE, None)) == shown(best)


def test_several_parts_have_no_level() -> None:
    assert level((WHOLE, 0), (FIRST, 9), (SECOND, 6), (FIRST, 1)) == ""
    assert level() == ""
    assert [share for _, _, share in LEVELS] == sorted((share for _, _, share in LEVELS), reverse=True)
    assert LEVELS[-1][0] == 0
