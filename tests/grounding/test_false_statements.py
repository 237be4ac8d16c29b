"""Statements made false by one word or sign, and true ones of the same sentences: what is shown of them.

tests/data/false_statements.jsonl and true_statements.jsonl have a statement about each of the same 200 sentences: of
twenty kinds, and of four. `sentence` is as a page has it; the ten sentences of a kind stand on one page. No rule was
chosen on the last ten kinds.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from benchmarks.grounding.answers import load_judged
from folio.answer.parser import ParsedSentence
from folio.answer.validation import Validator
from folio.answer_types import Sentence
from folio.grounding.grounder import Grounder
from folio.text import one_line
from tests.helpers.factories import evidence_on, to_the_end
from tests.helpers.paths import DATA, ROOT, SHARED
from tests.helpers.validation import check

pytestmark = pytest.mark.fast


@cache
def rows(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (DATA / f"{name}_statements.jsonl").read_text("utf-8").splitlines()]


KINDS = list(dict.fromkeys(row["kind"] for row in rows("false")))
PAGES = {kind: [row["sentence"] for row in rows("false") if row["kind"] == kind] for kind in KINDS}


def shown(name: str) -> list[tuple[dict[str, str], Sentence | None]]:
    """Each statement, and what an answer that consists of it shows."""
    found = []
    for row, false in zip(rows(name), rows("false"), strict=True):
        page = PAGES[false["kind"]]
        said = ParsedSentence(row["statement"], support=(page.index(row["sentence"]) + 1,))
        parts = Validator(Grounder(evidence_on(" ".join(page)))).check([said])
        found.append((row, next((part for part in parts if isinstance(part, Sentence)), None)))
    return found


def outcomes(name: str) -> Counter[str]:
    return Counter(part.outcome if part else "left out" for _, part in shown(name))


@pytest.mark.parametrize("name", ["false", "true"])
def test_what_is_quoted_is_the_sentence_of_the_page(name: str) -> None:
    for (row, part), false in zip(shown(name), rows("false"), strict=True):
        if part and part.outcome == "quoted":
            assert row["sentence"] in part.text
            assert part.text in " ".join(PAGES[false["kind"]])
            assert one_line(" ".join(quote.quote for quote in part.citations)) == part.text
            assert name == "true" or one_line(row["statement"]) != part.text


def test_few_false_statements_are_shown_and_few_true_ones_are_not() -> None:
    assert outcomes("false")["reworded"] <= 12
    assert outcomes("true")["left out"] <= 2


# Answers and replies that were written before

JUDGED = [ROOT / "benchmarks" / "judged-8b.jsonl", ROOT / "benchmarks" / "judged-8b-fresh.jsonl"]
JUDGED += [SHARED / "judged" / "mistral7b_pubmed.jsonl", SHARED / "judged" / "mtrag.jsonl"]
REPLIES = SHARED / "cases" / "ask" / "replies.jsonl"


@pytest.mark.parametrize("path", JUDGED, ids=lambda path: path.stem)
def test_no_judged_statement_is_quoted_but_as_the_page_has_it(path: Path) -> None:
    if not path.exists():
        pytest.skip(f"there are no judged answers at {path}")
    for answer in load_judged(path):
        said = [ParsedSentence(statement.text, statement.markers) for statement in answer.statements]
        texts = [without_space(piece.text) for piece in answer.evidence]
        for part in Validator(Grounder(answer.evidence)).check(said):
            if isinstance(part, Sentence) and part.outcome == "quoted":
                assert any(without_space(line) in text for text in texts for line in part.text.split("\n"))
                assert without_space(part.text) == without_space(" ".join(quote.quote for quote in part.citations))


def test_what_recorded_replies_say_wrongly_is_not_quoted() -> None:
    if not REPLIES.exists():
        pytest.skip(f"there are no recorded replies at {REPLIES}")
    for case in map(json.loads, REPLIES.read_text("utf-8").splitlines()):
        evidence = evidence_on(" ".join(case["evidence"]))
        found, _ = to_the_end(check([case["reply"]], evidence, answer_format="statements"))
        quoted = [part.text for part in found if isinstance(part, Sentence) and part.outcome == "quoted"]
        assert set(quoted) <= set(case["evidence"])


def without_space(text: str) -> str:
    return "".join(text.split())
