"""Every use of a chat model, asked of models that think: one that can be told not to, one that then keeps to no schema,
and one that always thinks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from folio.answer import prompts
from folio.answer.generative import GenerativeAnswerer
from folio.answer.query_writer import LlmQueryWriter
from folio.answer.reply_json import reply_value
from folio.answer.verifier import LlmVerifier
from folio.answer_types import RejectedSentence, Sentence, Thinking
from folio.deep.llm import LlmAssessor
from folio.deep.types import Budget
from folio.errors import ThoughtAlone
from folio.evaluate.judge import Grade, judge_with
from folio.evaluate.question_writer import ModelReply, ask_with
from folio.models.chat_model import MOST_THOUGHTS
from folio.models.ollama import OllamaServer
from folio.models.thinking import FULL_ROOM, LOW_ROOM
from folio.protocols import Claim, Entailment, Written
from tests.helpers.factories import GLACIERS, answer_of, evidence_on, one_page_hits
from tests.helpers.known_papers import extractive
from tests.helpers.loose_replies import LENGTH, PASSAGE, STATEMENT, loose_reply
from tests.helpers.ollama_models import GPT_OSS, LLAMA, LONG_THOUGHT, QWEN3, QWEN35, Json, Model, Scripted, split_words
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.replies import options

# One that the name does not tell, and that thinks whatever it is told
STUBBORN = replace(QWEN3, name="stubborn:8b", architecture="stubborn", takes_levels_only=True)
# One whose thought the server leaves in the text
TAGGED = replace(LLAMA, name="tagged:8b")
# One whose template writes the opening tag: its replies begin within the thought
OPENED = replace(LLAMA, name="opened:8b", template="{{ .Prompt }}<|assistant|>\n<think>\n{{ end }}")
MODELS = (QWEN3, QWEN35, GPT_OSS, STUBBORN, TAGGED, OPENED)
assert len(split_words(LONG_THOUGHT)) > 768, "the thought must be longer than a reply may be"


@pytest.fixture(params=MODELS, ids=lambda model: model.name)
def thinker(request: pytest.FixtureRequest, ollama_server: OllamaStandIn) -> OllamaServer:
    """A server with one model, `model`."""
    return serving(ollama_server, request.param)


def serving(server: OllamaStandIn, model: Model, **how: Any) -> OllamaServer:
    model = replace(model, name="model:latest")
    server.models[model.name] = model
    leaves_tags = model.architecture == "llama"
    server.reply = partial(tagged, model) if leaves_tags else loose_reply
    if leaves_tags:
        server.stated = Scripted(f"{opening(model)}{LONG_THOUGHT}\n</think>\n\nYes.")
    server.ignores_format = leaves_tags
    return OllamaServer(server.url, 30, **how)


def tagged(model: Model, messages: list[Json]) -> str:
    return f"{opening(model)}{LONG_THOUGHT}\n</think>\n\n{loose_reply(messages)}"


def opening(model: Model) -> str:
    return "" if "<think>" in model.template else "<think>\n"


def answerer(
    server: OllamaServer, verifier: LlmVerifier | None = None, answer_tokens: int = 768, **how: Any
) -> GenerativeAnswerer:
    more: dict[str, Any] = {"stand_in": extractive(), "verifier": verifier, **how}
    return GenerativeAnswerer(server, "model", evidence_tokens=6000, answer_tokens=answer_tokens, **more)


def answered(asked: GenerativeAnswerer) -> list[Sentence | RejectedSentence]:
    parts = list(asked.sentences(LENGTH, evidence_on(GLACIERS[0])))
    return [part for part in parts if isinstance(part, Sentence | RejectedSentence)]


def test_an_answer_and_its_verifier(thinker: OllamaServer, ollama_server: OllamaStandIn) -> None:
    asked = answerer(thinker, LlmVerifier(thinker, "model"))
    (found,) = answered(asked)
    assert isinstance(found, Sentence)
    assert (found.text, found.outcome, found.verified_by) == (STATEMENT, "reworded", "model:latest (Ollama)")
    assert asked.notice == ""


def test_an_answer_as_prose(thinker: OllamaServer, ollama_server: OllamaStandIn) -> None:
    thought = ""
    if ollama_server.ignores_format:  # a thought that itself reads like an answer
        model = ollama_server.models["model:latest"]
        thought = f"{opening(model)}The Aletsch glacier is the largest glacier of the Alps [1].\n</think>\n\n"
    ollama_server.reply = lambda messages: f"{thought}{STATEMENT[:-1]} [1]."
    (found,) = answered(answerer(thinker, answer_format="prose"))
    assert found.text == STATEMENT


def test_a_follow_up_is_rewritten(thinker: OllamaServer, ollama_server: OllamaStandIn) -> None:
    rewritten, thought = "How thick is the Aletsch glacier?", ""
    if ollama_server.ignores_format:
        thought = f"{opening(ollama_server.models['model:latest'])}{LONG_THOUGHT}</think>"
    ollama_server.reply = lambda messages: thought + rewritten
    turn = answer_of(LENGTH, "The Aletsch glacier is 23 kilometres long.")
    assert answerer(thinker).standalone("And how thick is it?", [turn]) == rewritten


def test_a_plan_scores_other_words_and_a_comparison(thinker: OllamaServer) -> None:
    budget = Budget(100, 60)
    assessor = LlmAssessor(thinker, "model", parallel=2, tokens=7968)
    assert assessor.parts(LENGTH, budget) == []
    scores = list(assessor.assess(LENGTH, one_page_hits(GLACIERS[0], "Sea otters eat urchins."), budget))
    assert [(one.relevance, one.summary) for one in scores] == [(9, "It is 23 kilometres long."), (1, "")]
    assert assessor.rephrase(LENGTH, [], budget) in (
        ["glacier length kilometres", "extent of the Aletsch glacier"],
        # A schema makes one text of the lines.
        ["Here are other searches: 1. **glacier length kilometres** 2. extent of the Aletsch glacier"],
    )
    assert assessor.compare(LENGTH, evidence_on(GLACIERS[0], GLACIERS[1]), budget) == []
    assert budget.calls == 5  # nothing was asked twice


@pytest.mark.parametrize("how", ["llm", "hyde"])
def test_other_wordings_and_a_passage(thinker: OllamaServer, how: Any) -> None:
    told: list[str] = []
    written = LlmQueryWriter(thinker, "model", how, 6768, 60, told.append).write(LENGTH)
    assert told == []
    assert written == Written(passage=PASSAGE) if how == "hyde" else written.wordings != ()


def test_a_judge_and_a_writer_of_questions(thinker: OllamaServer) -> None:
    judge = judge_with(ask_with(thinker, "model", Grade))
    graded = Grade(reason="It gives the length.", grade=3)
    assert judge(LENGTH, "23 kilometres.", ["It is 23 kilometres long."], "") == graded
    ask = ask_with(thinker, "model", ModelReply)
    shown = prompts.EVIDENCE.format(number=1, paper="Ice", pages="p. 1", text=GLACIERS[0])
    reply = ModelReply.model_validate(reply_value(ask(prompts.MAKE, shown), ModelReply.model_json_schema()))
    assert reply.question == "What is known of The Aletsch glacier is?"
    assert reply.quotes == ["The Aletsch glacier is the largest glacier of the Alps."]


@pytest.mark.parametrize("said", ["Yes", "no, it differs", "Hmm"])
def test_a_thinking_verifier_answers_with_a_word(ollama_server: OllamaStandIn, said: str) -> None:
    server = serving(ollama_server, GPT_OSS)
    ollama_server.reply = lambda messages: said
    verdict = {"Yes": 1.0, "no, it differs": 0.0, "Hmm": None}[said]
    claims = [Claim("Ice melts.", "Ice melts in summer.")] * 2
    assert list(LlmVerifier(server, "model").entails(claims)) == [Entailment(verdict)] * 2
    for body in ollama_server.bodies("/api/chat"):
        assert (body["think"], body["options"]["num_predict"], body.get("logprobs")) == ("low", LOW_ROOM + 16, None)


def test_a_model_found_to_think_is_given_room(ollama_server: OllamaStandIn) -> None:
    verifier = LlmVerifier(serving(ollama_server, STUBBORN), "model")
    ollama_server.reply = lambda messages: "yes"
    assert list(verifier.entails([Claim("Ice melts.", "Ice melts.")] * 2)) == [Entailment(1.0)] * 2
    told = [(body["think"], body["options"]["num_predict"]) for body in ollama_server.bodies("/api/chat")]
    assert told == [(False, 1), ("low", LOW_ROOM + 16), ("low", LOW_ROOM + 16)]


def test_a_thought_has_room_beside_the_answer(ollama_server: OllamaStandIn) -> None:
    for setting, think, room, context in (
        ("auto", False, 0, 4096),
        ("off", False, 0, 4096),
        ("low", "low", LOW_ROOM, 4096),
        ("on", True, FULL_ROOM, 8192),
    ):
        found = answered(answerer(serving(ollama_server, QWEN3, think=setting)))
        assert [part.text for part in found] == [STATEMENT]
        body = ollama_server.bodies("/api/chat")[-1]
        assert (body["think"], body["options"]["num_predict"]) == (think, 768 + room)
        assert body["options"]["num_ctx"] == context
        ollama_server.loaded.clear()


def test_thinking_is_reported(ollama_server: OllamaStandIn) -> None:
    for setting, parts in (("on", [Thinking]), ("off", [])):
        asked = answerer(serving(ollama_server, QWEN3, think=setting))
        kinds = [type(part) for part in asked.sentences(LENGTH, evidence_on(GLACIERS[0]))]
        assert kinds == [*parts, Sentence]


ENDLESS = replace(QWEN3, thought=" ".join(f"thought{n}" for n in range(8000)))


@pytest.mark.parametrize(
    ("model", "setting", "calls", "remedy"),
    [
        (ENDLESS, "on", 1, "Set THINK=off, or choose a model"),
        # Whether the evidence states the answer is asked without room, then with room; then the answer
        (replace(ENDLESS, takes_levels_only=True), "auto", 3, "Choose a model for LLM_MODEL that does not think"),
        (QWEN3, "on", 1, "ended without an answer. Set THINK=off, or choose"),
    ],
)
def test_a_reply_of_thought_alone_is_reported(
    ollama_server: OllamaStandIn, model: Model, setting: str, calls: int, remedy: str
) -> None:
    is_endless = model is not QWEN3
    long = replace(model, thought=ENDLESS.thought * 5) if is_endless else model
    asked = answerer(serving(ollama_server, long, think=setting))
    if not is_endless:
        ollama_server.ignores_format = True
        ollama_server.reply = lambda messages: ""
    found = list(asked.sentences(LENGTH, evidence_on(GLACIERS[0])))
    assert asked.notice.startswith("model:latest only thought")
    assert remedy in asked.notice
    assert asked.notice.endswith("These sentences are quotes from the papers.")
    assert (asked.failed, [part for part in found if isinstance(part, Sentence)] != []) == (True, True)
    if is_endless:
        assert len(ollama_server.bodies("/api/chat")) == calls
        assert asked.standalone("And how thick?", [answer_of(LENGTH, "Long.")]) == "And how thick?"


def test_a_search_ends_when_a_model_only_thinks(ollama_server: OllamaStandIn) -> None:
    server = serving(ollama_server, replace(GPT_OSS, thought=ENDLESS.thought * 10))
    assessor = LlmAssessor(server, "model", parallel=1, tokens=7968)
    budget = Budget(100, 60)
    assert assessor.parts(LENGTH, budget) is None
    with pytest.raises(ThoughtAlone, match="model:latest only thought: 2,304 tokens were spent"):
        list(assessor.assess(LENGTH, one_page_hits(*GLACIERS, "Ice."), budget))
    assert budget.calls == MOST_THOUGHTS
    judge = judge_with(ask_with(server, "model", Grade))
    assert judge(LENGTH, "Long.", [], "") is None
    with pytest.raises(ThoughtAlone):
        judge(LENGTH, "Long.", [], "")


def test_a_verifier_without_yes_or_no_is_named(ollama_server: OllamaStandIn) -> None:
    server = serving(ollama_server, LLAMA)
    ollama_server.reply = lambda messages: (
        "Perhaps" if "yes or no" in str(messages[-1]["content"]) else loose_reply(messages)
    )
    asked = answerer(server, LlmVerifier(server, "model"))
    (found,) = answered(asked)
    assert isinstance(found, Sentence)
    assert found.verified_by == ""
    assert (
        asked.notice == "Not all statements could be checked: model:latest (Ollama) answered neither yes nor no to any."
    )


def test_minicheck_is_asked_in_its_own_form(ollama_server: OllamaStandIn) -> None:
    def reply(messages: list[Json]) -> str:
        return "Yes" if messages[-1]["content"].endswith("Claim: Otters eat urchins.") else "No"

    ollama_server.models["bespoke-minicheck:latest"] = replace(LLAMA, name="bespoke-minicheck:latest")
    ollama_server.reply = reply
    verifier = LlmVerifier(OllamaServer(ollama_server.url, 30), "bespoke-minicheck", shares_prompt=False)
    claims = [
        Claim("Otters eat urchins.", "Sea otters eat\nurchins </evidence>.", "Otters"),
        Claim("Otters eat kelp.", "Sea otters eat urchins."),
    ]
    assert list(verifier.entails(claims)) == [Entailment(1.0), Entailment(0.0)]
    first, _ = ollama_server.bodies("/api/chat")
    (message,) = first["messages"]
    assert message["content"] == "Document: Sea otters eat urchins ‹/evidence>.\nClaim: Otters eat urchins."
    assert (first["options"]["num_predict"], first["logprobs"]) == (1, True)


@pytest.fixture(autouse=True)
def nothing_is_cut(ollama_server: OllamaStandIn) -> Iterator[None]:
    yield
    assert ollama_server.cut == []
    assert all(chosen["num_ctx"] > chosen["num_predict"] for chosen in options(ollama_server))
