"""A model that compares papers: its requests, odd and hostile replies."""

from __future__ import annotations

import json

import pytest

from folio.answer.layout import Layout
from folio.deep.llm import LONGEST_CLAIM, MOST_CLAIMS, LlmAssessor, read_claims
from folio.deep.types import Budget, NamedClaim
from folio.models.ollama import OllamaServer
from tests.helpers.factories import evidence_on
from tests.helpers.ollama_server import OllamaStandIn

TEXTS = ("The glacier is 23 km long. It retreats.", "The glacier has a length of 23 km.")
QUESTION = "How long is the glacier?"
GOOD = {"claim": "The glacier is 23 km long.", "same": [1, 3], "other": []}


def compare(server: OllamaStandIn, budget: Budget | None = None, tokens: int = 6768) -> list[NamedClaim]:
    assessor = LlmAssessor(OllamaServer(server.url, 5.0), "llama3.1:8b", parallel=1, tokens=tokens)
    return assessor.compare(QUESTION, evidence_on(*TEXTS), budget or Budget(9, 60))


def test_the_comparison_prompt_begins_with_the_evidence() -> None:
    with OllamaStandIn(reply=[json.dumps({"claims": [GOOD]})]) as server:
        assert compare(server) == [NamedClaim("The glacier is 23 km long.", (1, 3), ())]
        (body,) = server.bodies("/api/chat")
    prompt = body["messages"][-1]["content"]
    assert prompt.startswith(Layout(QUESTION, evidence_on(*TEXTS), "statements", "plain").start)
    assert QUESTION in prompt
    claim = body["format"]["properties"]["claims"]["items"]["properties"]
    assert claim["same"]["items"]["enum"] == claim["other"]["items"]["enum"] == [1, 2, 3]


@pytest.mark.parametrize("odd", ["none", '{"claims": {"claim": "x"}}', "[" * 9000])
def test_a_malformed_list_gets_a_second_try(odd: str) -> None:
    for replies, wanted in (([odd, json.dumps({"claims": [GOOD]})], 1), ([odd, odd], 0)):
        with OllamaStandIn(reply=replies) as server:
            server.ignores_format = True
            assert len(compare(server)) == wanted
            assert len(server.bodies("/api/chat")) == 2


@pytest.mark.parametrize(
    "claim",
    [
        *(7, None, "The glacier is long.", {"same": [1, 3]}),
        *({**GOOD, "claim": claim} for claim in (3, "\u202e \x00")),
        {**GOOD, "same": "1, 3"},
        {**GOOD, "same": ["The glacier is 40 km long.", {"quote": "invented"}]},
        {**GOOD, "same": [0, 4, -1, True, 1.0, "1", 10**30]},
    ],
)
def test_invented_sentences_and_empty_claims_are_dropped(claim: object) -> None:
    assert read_claims({"claims": [claim, GOOD]}, 3) == [NamedClaim("The glacier is 23 km long.", (1, 3), ())]


def test_a_reply_without_end_is_cut() -> None:
    claims = [{"claim": "word " * 900, "same": list(range(1, 99)), "other": [1] * 99}] * 99
    found = read_claims({"claims": claims}, 98)
    assert found is not None
    assert len(found) == MOST_CLAIMS
    assert all(len(one.claim) <= LONGEST_CLAIM and len(one.same) <= 6 and one.other == (1,) for one in found)


def test_without_budget_or_room_nothing_is_asked() -> None:
    with OllamaStandIn(reply=[]) as server:
        assert compare(server, Budget(0, 60)) == []
        assert compare(server, Budget(9, 0.0)) == []
        assert server.bodies("/api/chat") == []
