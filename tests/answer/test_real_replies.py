"""What a real model wrote, and what becomes of it.

`tests/data/real_replies.jsonl` has replies of Qwen2.5-Coder-1.5B-Instruct (Apache 2.0) to questions on papers of
ReScience C, the Journal of Open Source Education (both CC BY 4.0) and NIST SP 800-207 (public domain), with the
passages that it read. "answer" is what the papers say, empty where they do not; "shown" was read against it by hand:
the outcome and the text of each statement. The first question that a model is asked, whether the passages state the
answer, is not in it. "verdicts" and "chosen": test_real_verdicts.py.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from folio.answer.layout import Layout
from folio.answer.validation import Validator, parts_of
from folio.answer_types import Evidence, RejectedSentence, Sentence
from folio.grounding.grounder import Grounder
from folio.grounding.sentences import content_words
from tests.helpers.factories import evidence_of, hits_on, to_the_end
from tests.helpers.paths import ROOT

pytestmark = pytest.mark.fast

FILE = ROOT / "tests" / "data" / "real_replies.jsonl"
CASES = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def evidence_in(case: dict[str, Any]) -> list[Evidence]:
    hits = [hits_on(each["text"], file=each["file"], title=each["title"])[0] for each in case["evidence"]]
    return evidence_of(hits)


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_real_reply_is_shown_as_read_by_hand(case: dict[str, Any]) -> None:
    evidence = evidence_in(case)
    layout = Layout(case["question"], evidence, "quote", "plain")
    validator = Validator(Grounder(evidence, content_words(case["question"])))
    parts, _ = to_the_end(validator.check(parts_of([case["reply"]], layout.parser())))
    shown = [[part.outcome, part.text] for part in parts if isinstance(part, Sentence)]
    left_out = [["left out", part.text] for part in parts if isinstance(part, RejectedSentence)]
    assert shown + left_out == case["shown"]
    for part in parts:
        quotes = part.citations if isinstance(part, Sentence) else ()
        assert all(any(quote.quote in piece.text for piece in evidence) for quote in quotes)
        assert len(quotes) <= 2 or (isinstance(part, Sentence) and part.outcome == "quoted")
