"""What a real model said of excerpts, and which sentences are chosen by it.

The model, the questions and the passages are those of test_real_replies.py. "verdicts" has for each excerpt whether it
states the answer: the likeliest first tokens, with the logarithm of their probability. "chosen" is what is shown if the
model only chooses; it was read, and is not right for every question. Some questions have them.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from folio.answer.extractive import ExtractiveAnswerer
from folio.answer_types import Sentence
from folio.models.minilm import BuiltinEmbedder
from folio.models.reader import Reader
from tests.helpers.factories import even_weights, evidence_of, hits_on
from tests.helpers.ollama_models import Scripted
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.paths import ROOT
from tests.helpers.replies import Make

FILE = ROOT / "tests" / "data" / "real_replies.jsonl"
CASES = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines() if '"verdicts"' in line]


@pytest.fixture(scope="module")
def builtin() -> ExtractiveAnswerer:
    """The answerer without a model, as it is used."""
    return ExtractiveAnswerer(BuiltinEmbedder(), Reader(), even_weights, evidence_tokens=6000)


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_real_verdicts_choose_the_same_sentences(
    case: dict[str, Any], ollama_server: OllamaStandIn, make: Make, builtin: ExtractiveAnswerer
) -> None:
    hits = [hits_on(each["text"], file=each["file"], title=each["title"])[0] for each in case["evidence"]]

    def verdict(asked: str) -> Scripted:
        excerpt = asked.partition(">\n")[2].partition("\n</evidence>")[0]
        (text, _), *_ = alternatives = [(text, odds) for text, odds in case["verdicts"][excerpt]]
        return Scripted(text, tuple(alternatives))

    ollama_server.stated = verdict
    answerer = make(answer_format="quote", strict=True)
    answerer._stand_in = builtin
    found = answerer.sentences(case["question"], evidence_of(hits))
    assert [part.text for part in found if isinstance(part, Sentence)] == case["chosen"]
