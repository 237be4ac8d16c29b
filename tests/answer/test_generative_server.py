"""Answers by a chat model whose server has little room, is slow, fails, stops or never ends."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from folio.answer.generative import NUMBERED
from folio.answer.layout import AnswerFormat
from folio.answer_types import REFUSAL, Sentence
from folio.errors import CloudModel, ContextTooSmall, ModelError, ModelMissing, ModelServerError, WrongModel
from folio.models.chat_model import LONGEST_TOKEN, TRIES
from folio.models.model_server import CONTEXT_SIZES
from folio.text import estimate_tokens
from tests.helpers.factories import answer_of
from tests.helpers.ollama_models import LLAMA, Model, Scripted
from tests.helpers.ollama_server import OllamaStandIn, closed_url
from tests.helpers.replies import CHAT, Make, asked, every_form, options, told, written
from tests.helpers.scripted_model import BOTH, EAT, FLOAT, ScriptedModel


@pytest.mark.parametrize(
    ("said", "endless", "tokens"), [(f"{FLOAT} [1] {EAT} [1]", "", 9), (f"{FLOAT} [1] ", "words", 100)]
)
def test_a_cut_answer_loses_its_unfinished_part(
    ollama_server: OllamaStandIn, make: Make, said: str, endless: Any, tokens: int
) -> None:
    ollama_server.reply = lambda messages: said
    ollama_server.faults.endless = endless
    answerer = make(answer_tokens=tokens)
    assert [told(part) for part in asked(answerer, f"{FLOAT} {EAT}")] == [(FLOAT, [(1, FLOAT)])]
    assert answerer.notice == f"The answer was cut off at {tokens} tokens. Raise ANSWER_TOKENS for longer answers."


@pytest.mark.parametrize("tokens", [100, 1000])
def test_an_answer_has_a_maximum_of_characters(ollama_server: OllamaStandIn, make: Make, tokens: int) -> None:
    ollama_server.reply = lambda messages: ""
    ollama_server.faults.endless = "words"
    answerer = make(answer_tokens=tokens)
    answerer._widen(8)
    pieces = list(answerer._stream("", "What?"))
    assert LONGEST_TOKEN * tokens < len("".join(pieces)) <= LONGEST_TOKEN * tokens + len("word10000 ")


@pytest.mark.parametrize("endless", ["words", "nothing"])
def test_an_endless_server_costs_one_call(ollama_server: OllamaStandIn, make: Make, endless: Any) -> None:
    ollama_server.reply = lambda messages: ""
    ollama_server.faults.endless = endless
    answerer = make(answer_tokens=200)
    assert [s for s in asked(answerer, FLOAT, question="Who sang?") if isinstance(s, Sentence)] == []
    assert len(ollama_server.bodies(CHAT)) == 1
    assert answerer.standalone("And they?", [answer_of("What?", FLOAT)]) == "And they?"


def words(count: int, seed: str) -> str:
    return " ".join(f"{seed}{number:04d}" for number in range(count))


def test_the_context_is_one_of_few_sizes_and_never_shrinks(ollama_server: OllamaStandIn, make: Make) -> None:
    ollama_server.reply = lambda messages: REFUSAL
    answerer = make(evidence_tokens=60_000)
    for count in (10, 1500, 10, 6000, 700, 10):
        asked(answerer, words(count, "w"))
    answerer.standalone("Why?", [answer_of("What?", "So.")])
    sizes = [chosen["num_ctx"] for chosen in options(ollama_server)]
    assert sizes == [4096, 8192, 8192, 32768, 32768, 32768, 32768]
    assert set(sizes) <= set(CONTEXT_SIZES)
    assert ollama_server.cut == []


@every_form
@pytest.mark.parametrize("count", [1, 700, 3000, 12_000])
def test_the_context_holds_the_whole_prompt_and_an_answer(count: int, make: Make, answer_format: AnswerFormat) -> None:
    with OllamaStandIn(count_tokens=estimate_tokens) as server:
        server.reply, server.stated = lambda messages: REFUSAL, Scripted("Perhaps")
        asked(make(url=server.url, evidence_tokens=100_000, answer_format=answer_format), words(count, "w"))
        (size,) = (chosen["num_ctx"] for chosen in options(server))
        read = sum(estimate_tokens(message["content"]) for message in server.read[0])
    assert server.cut == []
    assert read + 768 <= size
    assert size == 4096 or size / 2 < read + 768 + 100


def test_a_model_is_never_asked_for_more_than_it_has(ollama_server: OllamaStandIn, make: Make) -> None:
    for name, context in (("mid", 10_000), ("mum", 0)):  # one that does not say is taken for a small one
        ollama_server.models[f"{name}:latest"] = Model(f"{name}:latest", "llama", context, 64, ("completion",))
    with pytest.raises(ContextTooSmall):
        asked(make("mum"), words(2000, "w"))
    assert ollama_server.bodies(CHAT) == []
    ollama_server.reply = lambda messages: REFUSAL
    answerer = make("mid", evidence_tokens=9_000)
    asked(answerer, words(2500, "w"))
    asked(answerer, "A few.")
    assert [chosen["num_ctx"] for chosen in options(ollama_server)] == [10_000, 10_000]


@every_form
@pytest.mark.parametrize(
    ("context", "in_prose", "numbered"),
    [(131_072, 6000, 6000), (16_384, 6000, 6000), (8192, 6000, 5333), (4096, 2304, 1920), (2048, 256, 256)],
)
def test_a_small_model_takes_less_evidence(
    ollama_server: OllamaStandIn, make: Make, answer_format: AnswerFormat, context: int, in_prose: int, numbered: int
) -> None:
    """numbered: where the numbers of the sentences need space too, if only in a report."""
    ollama_server.models["small:latest"] = Model("small:latest", "llama", context, 64, ("completion",))
    ollama_server.reply = lambda messages: REFUSAL
    answerer = make("small", answer_format=answer_format)
    taken = in_prose if answer_format == "prose" else numbered
    assert numbered == max(256, min(6000, int((context - 768 - 1024) / NUMBERED)))
    assert answerer.evidence_tokens == taken
    if context > 2048:  # as much as it takes is no error
        text = words(taken // 3, "w")
        while estimate_tokens(text) > taken:
            text = text[:-6]
        asked(answerer, text)
        assert ollama_server.bodies(CHAT)[0]["options"]["num_ctx"] <= context


@pytest.mark.parametrize(
    ("model", "is_old", "happened", "remedy", "calls"),
    [
        ("tiny", False, "leaves tiny:latest no space to answer in its context of 1,024",
         "Lower CONTEXT_TOKENS or TOP_K, or set LLM_MODEL", 0),
        ("llama3.1:8b", True, "4,096", "CONTEXT_TOKENS", 1),  # it cuts in silence
        ("llama3.1:8b", False,
         "The text is longer than the context of llama3.1:8b: the input length exceeds the context length.",
         "Set CONTEXT_TOKENS lower, or choose a model with a larger context.", 1),
    ],
)  # fmt: skip
def test_a_prompt_longer_than_the_context_is_an_error(
    ollama_server: OllamaStandIn, make: Make, model: str, is_old: bool, happened: str, remedy: str, calls: int
) -> None:
    ollama_server.models["tiny:latest"] = Model("tiny:latest", "llama", 1024, 64, ("completion",))
    ollama_server.count_tokens = lambda text: 20 * len(text)  # a tokenizer that no estimate foresees
    ollama_server.faults.ignores_truncate = is_old
    ollama_server.reply = [f"{FLOAT} [1]"]
    with pytest.raises(ContextTooSmall) as caught:
        asked(make(model), FLOAT + words(300, "w"))
    assert bool(ollama_server.cut) is is_old
    assert happened in caught.value.happened
    assert remedy in caught.value.remedy
    assert len(ollama_server.bodies(CHAT)) == calls


FAULTS: list[tuple[dict[str, Any], str, str]] = [
    ({"first_byte_s": 3}, "silent for too long", "OLLAMA_TIMEOUT_S"),
    ({"between_pieces_s": 3}, "silent for too long", "OLLAMA_TIMEOUT_S"),
    ({"busy": TRIES}, "busy", "OLLAMA_NUM_PARALLEL"),
    ({"fails": TRIES}, "could not keep llama3.1:8b running", "smaller model"),
    ({"dropped": TRIES}, "broke off", "log of the Ollama server"),
    ({"break_after": 2}, "broke off", "log of the Ollama server"),
    ({"error_after": 2}, "could not keep llama3.1:8b running", "smaller model"),
    ({"garbage": "html"}, "did not answer like an Ollama server", "OLLAMA_HOST"),
    ({"garbage": "json"}, "did not answer like an Ollama server", "OLLAMA_HOST"),
    ({"garbage": "list"}, "did not answer like an Ollama server", "OLLAMA_HOST"),
    ({"redirect_to": "http://127.0.0.2:1"}, "redirects", "OLLAMA_HOST"),
]
QUOTES = "These sentences are quotes from the papers."


@every_form
@pytest.mark.parametrize(
    ("fault", "happened", "remedy"), FAULTS, ids=lambda value: "-".join(value) if isinstance(value, dict) else ""
)
def test_after_a_server_failure_the_papers_are_quoted(
    model: ScriptedModel, fault: dict[str, Any], happened: str, remedy: str
) -> None:
    answerer = model.make(timeout_s=0.3 if "silent" in happened else 60, answer_format=model.form)
    model.write(BOTH, *[[f"{FLOAT} [1]", f"{EAT} [1]"]] * 2)
    model.server.stated = Scripted("Perhaps")
    for name, value in fault.items():
        setattr(model.server.faults, name, value)
    found = list(answerer.sentences("Who painted it?", BOTH))  # nothing that the papers would answer
    assert found
    for sentence in found:
        assert isinstance(sentence, Sentence)
        assert (sentence.outcome, sentence.citations[0].quote) == ("quoted", sentence.text)
    assert answerer.failed
    assert happened in answerer.notice
    assert remedy in answerer.notice
    assert answerer.notice.endswith(QUOTES)
    tries = TRIES if fault.keys() <= {"busy", "fails", "dropped"} else 1  # what has begun is not asked for twice
    # The form of a quote asks first whether the evidence states the answer, which these faults come too late for
    tries += model.form == "quote" and fault.keys() <= {"break_after", "error_after"}
    assert len(model.server.bodies(CHAT)) == tries
    setattr(model.server.faults, *next(iter(fault.items())))
    with pytest.raises(ModelServerError) as caught:  # a question cannot be quoted instead
        answerer.standalone("And they?", [answer_of("What?", "So.")])
    assert happened in caught.value.happened
    assert remedy in caught.value.remedy


@pytest.mark.parametrize(("ending", "happened"), [("cut", "broke off"), ("error", "Ollama stopped while")])
def test_sentences_before_a_server_failure_stay(
    model: ScriptedModel, ending: Literal["cut", "error"], happened: str
) -> None:
    whole = written(model.form, BOTH, f"{FLOAT} [1]", f"{EAT} [1]")
    model.server.reply = [Scripted(whole[: whole.index("25")], ending=ending), whole]
    assert [told(part) for part in model.answerer.sentences("What?", BOTH)] == [(FLOAT, [(1, FLOAT)])]
    assert model.answerer.failed
    assert happened in model.answerer.notice
    assert model.answerer.notice.endswith(" What the model wrote before is shown.")
    assert len(model.calls) == 1
    assert [told(part)[0] for part in model.answerer.sentences("What?", BOTH)] == [FLOAT, EAT]
    assert (model.answerer.failed, model.answerer.notice) == (False, "")


def test_a_model_that_is_stopped_is_no_failure(model: ScriptedModel) -> None:
    notice = "The model was stopped, because it only repeated itself."
    whole = written(model.form, BOTH, f"{FLOAT} [1]", f"{EAT} [1]")
    at_once = Scripted('{"statements":[' if model.form == "statements" else "Otters", ending="stopped")
    # Behind a statement, and before the first one
    model.server.reply = [whole[: whole.index("25")] + " -" * 50, at_once]
    for said, shown in ((notice, FLOAT), (f"{notice} {QUOTES}", f"{FLOAT} {EAT}")):
        found = list(model.answerer.sentences("Do otters float in rafts?", BOTH))
        assert [told(part)[0] for part in found] == [shown]
        assert (model.answerer.failed, model.answerer.notice) == (False, said)


@every_form
def test_a_missing_or_lost_server(make: Make, answer_format: AnswerFormat) -> None:
    with pytest.raises(ModelServerError, match="No Ollama server answers at") as caught:
        make(url=closed_url())
    assert "ollama serve" in caught.value.remedy
    with OllamaStandIn() as other:
        answerer = make(url=other.url, answer_format=answer_format)
    assert [told(part) for part in asked(answerer, FLOAT)] == [(FLOAT, [(1, FLOAT)])]
    assert answerer.failed
    assert "No Ollama server answers at" in answerer.notice
    assert "ollama serve" in answerer.notice


def test_a_missing_or_removed_model(ollama_server: OllamaStandIn, make: Make) -> None:
    with pytest.raises(ModelMissing) as caught:
        make("mistral:7b")
    assert "`ollama pull mistral:7b`" in caught.value.remedy
    answerer = make()
    del ollama_server.models[LLAMA.name]
    with pytest.raises(ModelMissing) as caught:
        asked(answerer, FLOAT)
    assert "`ollama pull llama3.1:8b`" in caught.value.remedy


def test_models_that_cannot_chat_or_are_elsewhere_are_refused(ollama_server: OllamaStandIn, make: Make) -> None:
    ollama_server.models["own:latest"] = Model("own:latest", "x", 4096, 64, ("completion",), "", "https://ollama.com")
    refused: list[tuple[str, type[ModelError], str]] = [
        ("nomic-embed-text", WrongModel, "nomic-embed-text cannot write text"),
        ("gpt-oss:120b-cloud", CloudModel, "cloud model"),
        ("own", CloudModel, "another computer"),
    ]
    for name, error, happened in refused:
        with pytest.raises(error, match=happened):
            make(name)
    assert ollama_server.bodies(CHAT) == []
