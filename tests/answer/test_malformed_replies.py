"""Thirty replies that are nearly the JSON that was asked for: each true statement is read and shown.

Half of them ("kept") were written with the others and not looked at while the reader was made.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from folio.answer.layout import Layout
from folio.answer.parser import ParsedSentence
from folio.answer.validation import Validator, parts_of
from folio.answer_types import Sentence
from folio.grounding.grounder import Grounder
from tests.helpers.factories import evidence_on, to_the_end
from tests.helpers.paths import ROOT

pytestmark = pytest.mark.fast

FILE = ROOT / "tests" / "data" / "malformed_replies.jsonl"
CASES = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_malformed_reply_keeps_its_statements(case: dict[str, Any]) -> None:
    layout = Layout(case["question"], evidence_on("\n".join(case["evidence"])), "statements", "plain")
    texts = []
    for size in (len(case["reply"]), 1):
        pieces = [case["reply"][at : at + size] for at in range(0, len(case["reply"]), size)]
        texts.append([part.text for part in parts_of(pieces, layout.parser()) if isinstance(part, ParsedSentence)])
    assert texts == [case["right"]] * 2
    parts, result = to_the_end(Validator(Grounder(layout.evidence)).check(map(ParsedSentence, texts[0])))
    assert [type(part) for part in parts] == [Sentence] * len(case["right"])
    assert (result.shown, result.rejected) == (len(case["right"]), ())
