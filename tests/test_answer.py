"""Answers: by a chat model over an Ollama server on the loopback, and extractive."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from desk import GLACIERS, OTTERS, even_weights, hit_on, hits_on, one_page_hits
from doubles import HashingEmbedder
from ollama_models import LLAMA, Model
from ollama_server import OllamaStandIn, closed_url

from folio import prompts
from folio.answer import CONTEXT_SIZES, ExtractiveAnswerer, OllamaAnswerer, leans_back
from folio.errors import CloudModel, ContextTooSmall, ModelError, ModelMissing, OllamaError
from folio.ollama import OllamaServer
from folio.sentences import sentence_spans
from folio.tokens import estimate_tokens
from folio.types import REFUSAL, Answerer, Hit, Sentence, Turn

Make = Callable[..., OllamaAnswerer]
CHAT = "/api/chat"
FLOAT, EAT, LONG = "Otters float in rafts of kelp.", "They eat 25 urchins.", "The glacier is 23 kilometres long."


@pytest.fixture
def make(ollama_server: OllamaStandIn) -> Make:
    def answerer(model: str = "llama3.1:8b", *, timeout_s: float = 5, **sizes: int) -> OllamaAnswerer:
        sizes = {"evidence_tokens": 6000, "answer_tokens": 768, **sizes}
        return OllamaAnswerer(OllamaServer(ollama_server.url, timeout_s), model, **sizes)

    return answerer


def told(found: Sentence | None) -> tuple[str, list[tuple[int, str]]] | None:
    if found is None:
        return None
    return found.text, [(citation.source, citation.quote) for citation in found.citations]


def options(server: OllamaStandIn) -> list[dict[str, Any]]:
    return [body["options"] for body in server.bodies(CHAT)]


# A model's answer


def test_sentences_cite_what_holds_them_up(ollama_server: OllamaStandIn, make: Make) -> None:
    ollama_server.reply = [f"{FLOAT} [1] Paris is in France [2]. The length of the glacier is 23 kilometres [1]."]
    answerer: Answerer = make()
    assert answerer.name == "llama3.1:8b (Ollama)"
    found = list(answerer.sentences("What of it?", one_page_hits(f"{FLOAT} {EAT}", f"{LONG} It melts.")))
    assert [told(sentence) for sentence in found] == [
        (FLOAT, [(1, FLOAT)]),
        None,
        ("The length of the glacier is 23 kilometres.", [(2, LONG)]),
    ]


def test_the_prompt_is_what_was_promised(ollama_server: OllamaStandIn, make: Make) -> None:
    hits = [hit_on(FLOAT, file="sea/otters.pdf"), hits_on("Ice.", LONG, file="ice.pdf")[0]]
    list(make().sentences("How long is it?", hits))
    (body,) = ollama_server.bodies(CHAT)
    system, user = body["messages"]
    assert (system["role"], system["content"]) == ("system", prompts.ANSWER)
    assert REFUSAL in system["content"]
    assert user["role"] == "user"
    evidence = f"[1] sea/otters.pdf, p. 1\n{FLOAT}\n\n[2] ice.pdf, pp. 1–2\nIce.\n\n{LONG}\n\n"
    assert f"Evidence:\n\n{evidence}Question: How long is it?" in user["content"]
    assert body["model"] == "llama3.1:8b"
    assert options(ollama_server) == [{"num_ctx": 4096, "num_predict": 768, "temperature": 0.0}]


def test_a_refusal_is_no_sentence_and_no_evidence_no_call(ollama_server: OllamaStandIn, make: Make) -> None:
    ollama_server.reply = [REFUSAL]
    assert list(make().sentences("Who?", one_page_hits(FLOAT))) == []
    assert list(make().sentences("Who?", [])) == []
    assert len(ollama_server.bodies(CHAT)) == 1


def test_braces_in_a_question_or_a_paper_are_text(ollama_server: OllamaStandIn, make: Make) -> None:
    list(make().sentences("What is {x}?", one_page_hits("A set {y} of {0}.")))
    content = ollama_server.bodies(CHAT)[0]["messages"][1]["content"]
    assert "Question: What is {x}?" in content
    assert "A set {y} of {0}." in content


def test_a_sentence_is_told_before_the_model_has_ended(ollama_server: OllamaStandIn, make: Make) -> None:
    ollama_server.reply = [f"{FLOAT} [1] {EAT} [1] " + "more " * 200]
    ollama_server.faults.between_pieces_s = 0.01
    answer = make().sentences("What?", one_page_hits(f"{FLOAT} {EAT}"))
    assert told(next(answer)) == (FLOAT, [(1, FLOAT)])
    answer.close()  # type: ignore[attr-defined]  # as a person stops it; nothing is left open, or a warning would fail this


# The context


def words(count: int, seed: str) -> str:
    return " ".join(f"{seed}{number:04d}" for number in range(count))


def test_the_context_is_one_of_few_sizes_and_never_shrinks(ollama_server: OllamaStandIn, make: Make) -> None:
    answerer = make(evidence_tokens=60_000)
    for count in (10, 1500, 10, 6000, 700, 10):
        list(answerer.sentences("What?", one_page_hits(words(count, "w"))))
    answerer.standalone("Why?", [Turn("What?", "What?", "So.")])
    sizes = [chosen["num_ctx"] for chosen in options(ollama_server)]
    assert sizes == [4096, 8192, 8192, 32768, 32768, 32768, 32768]
    assert set(sizes) <= set(CONTEXT_SIZES)
    assert ollama_server.cut == []


@pytest.mark.parametrize("count", [1, 400, 700, 1500, 3000, 6000, 12_000])
def test_the_context_holds_the_whole_prompt_and_an_answer(count: int) -> None:
    with OllamaStandIn(count_tokens=estimate_tokens) as server:
        answerer = OllamaAnswerer(OllamaServer(server.url), "llama3.1:8b", evidence_tokens=100_000, answer_tokens=768)
        list(answerer.sentences("What?", one_page_hits(words(count, "w"))))
        (size,) = (chosen["num_ctx"] for chosen in options(server))
        read = sum(estimate_tokens(message["content"]) for message in server.read[0])
    assert server.cut == []
    assert read + 768 <= size
    assert size == 4096 or size / 2 < read + 768 + 100


def test_a_model_is_never_asked_for_more_than_it_has(ollama_server: OllamaStandIn, make: Make) -> None:
    ollama_server.models["mid:latest"] = Model("mid:latest", "llama", 10_000, 64, ("completion",))
    answerer = make("mid", evidence_tokens=9_000)
    list(answerer.sentences("What?", one_page_hits(words(2500, "w"))))
    list(answerer.sentences("What?", one_page_hits("A few.")))
    assert [chosen["num_ctx"] for chosen in options(ollama_server)] == [10_000, 10_000]


def test_a_model_that_does_not_say_is_taken_for_a_small_one(ollama_server: OllamaStandIn, make: Make) -> None:
    ollama_server.models["mum:latest"] = Model("mum:latest", "llama", 0, 64, ("completion",))
    answerer = make("mum")
    with pytest.raises(ContextTooSmall):
        list(answerer.sentences("What?", one_page_hits(words(2000, "w"))))
    assert ollama_server.bodies(CHAT) == []


def test_the_weakest_passages_are_left_out_first(ollama_server: OllamaStandIn, make: Make) -> None:
    hits = one_page_hits(*(words(100, seed) for seed in "abcd"))
    each = estimate_tokens(prompts.EVIDENCE.format(number=1, file="paper1.pdf", pages="p. 1", text=hits[0].text))
    list(make(evidence_tokens=3 * each - 1).sentences("What?", hits))
    content = ollama_server.bodies(CHAT)[0]["messages"][1]["content"]
    assert [number for number in range(1, 5) if f"[{number}] paper{number}.pdf" in content] == [1, 2]
    assert ollama_server.cut == []


def test_a_marker_of_a_passage_that_was_left_out_is_not_believed(ollama_server: OllamaStandIn, make: Make) -> None:
    ollama_server.reply = [f"{LONG} [2]"]
    hits = one_page_hits(f"{FLOAT} {words(300, 'a')}", LONG)
    assert list(make(evidence_tokens=400).sentences("What?", hits)) == [None]


def test_the_best_passage_stays_whatever_its_length(ollama_server: OllamaStandIn, make: Make) -> None:
    list(make(evidence_tokens=256).sentences("What?", one_page_hits(words(600, "a"), "Short.")))
    content = ollama_server.bodies(CHAT)[0]["messages"][1]["content"]
    assert "a0599" in content
    assert "Short." not in content


def test_a_prompt_larger_than_the_model_is_an_error_before_it_is_sent(ollama_server: OllamaStandIn, make: Make) -> None:
    ollama_server.models["tiny:latest"] = Model("tiny:latest", "llama", 1024, 64, ("completion",))
    with pytest.raises(ContextTooSmall) as caught:
        list(make("tiny").sentences("What?", one_page_hits(words(300, "w"))))
    assert "tiny:latest" in caught.value.happened
    assert "1,024" in caught.value.happened
    assert caught.value.remedy == "Lower CONTEXT_TOKENS or TOP_K, or set LLM_MODEL to a model with a longer context."
    assert ollama_server.bodies(CHAT) == []


def test_a_prompt_that_was_cut_in_silence_is_an_error(ollama_server: OllamaStandIn, make: Make) -> None:
    ollama_server.count_tokens = lambda text: 20 * len(text)  # a tokenizer that no estimate foresees
    ollama_server.reply = [f"{FLOAT} [1]"]
    with pytest.raises(ContextTooSmall) as caught:
        list(make().sentences("What?", one_page_hits(FLOAT + words(200, "w"))))
    assert ollama_server.cut
    assert "4,096" in caught.value.happened
    assert "CONTEXT_TOKENS" in caught.value.remedy


# What goes wrong with the server


def test_a_slow_server_is_waited_for(ollama_server: OllamaStandIn, make: Make) -> None:
    ollama_server.faults.first_byte_s, ollama_server.faults.between_pieces_s = 0.3, 0.02
    ollama_server.reply = [f"{FLOAT} [1]"]
    assert [told(s) for s in make(timeout_s=2).sentences("What?", one_page_hits(FLOAT))] == [(FLOAT, [(1, FLOAT)])]


@pytest.mark.parametrize(
    ("fault", "error", "happened", "remedy"),
    [
        ({"first_byte_s": 3}, OllamaError, "silent for too long", "OLLAMA_TIMEOUT_S"),
        ({"between_pieces_s": 3}, OllamaError, "silent for too long", "OLLAMA_TIMEOUT_S"),
        ({"busy": 1}, OllamaError, "busy", "OLLAMA_NUM_PARALLEL"),
        ({"fails": 1}, OllamaError, "could not keep llama3.1:8b running", "smaller model"),
        ({"dropped": 1}, OllamaError, "broke off", "log of the Ollama server"),
        ({"break_after": 2}, OllamaError, "broke off", "log of the Ollama server"),
        ({"end_after": 2}, OllamaError, "broke off", "log of the Ollama server"),
        ({"error_after": 2}, OllamaError, "could not keep llama3.1:8b running", "smaller model"),
        ({"garbage": "html"}, OllamaError, "not what an Ollama server says", "OLLAMA_HOST"),
        ({"garbage": "json"}, OllamaError, "not what an Ollama server says", "OLLAMA_HOST"),
        ({"garbage": "list"}, OllamaError, "not what an Ollama server says", "OLLAMA_HOST"),
        ({"redirect_to": "http://127.0.0.2:1"}, OllamaError, "redirects", "OLLAMA_HOST"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_faults(
    ollama_server: OllamaStandIn,
    make: Make,
    fault: dict[str, Any],
    error: type[ModelError],
    happened: str,
    remedy: str,
) -> None:
    answerer = make(timeout_s=0.3)
    ollama_server.reply = [f"{FLOAT} [1] {EAT} [1]"] * 2
    for name, value in fault.items():
        setattr(ollama_server.faults, name, value)
    hits = one_page_hits(f"{FLOAT} {EAT}")
    with pytest.raises(error) as caught:
        list(answerer.sentences("What?", hits))
    assert type(caught.value) is error
    assert happened in caught.value.happened
    assert remedy in caught.value.remedy
    assert len(ollama_server.bodies(CHAT)) == 1  # an answer is not asked for twice behind one's back
    setattr(ollama_server.faults, *next(iter(fault.items())))
    with pytest.raises(error):
        answerer.standalone("And they?", [Turn("What?", "What?", "So.")])


def test_sentences_before_the_break_are_told(ollama_server: OllamaStandIn, make: Make) -> None:
    ollama_server.reply = [f"{FLOAT} [1] {EAT} [1]"]
    ollama_server.faults.break_after = len(f"{FLOAT} [1] They".split())
    answer = make().sentences("What?", one_page_hits(f"{FLOAT} {EAT}"))
    assert told(next(answer)) == (FLOAT, [(1, FLOAT)])
    with pytest.raises(OllamaError, match="broke off"):
        next(answer)


def test_a_server_that_is_not_there_or_went_away(ollama_server: OllamaStandIn, make: Make) -> None:
    with pytest.raises(OllamaError, match="No Ollama server answers at") as caught:
        OllamaAnswerer(OllamaServer(closed_url()), "llama3.1:8b", evidence_tokens=6000, answer_tokens=768)
    assert "ollama serve" in caught.value.remedy
    with OllamaStandIn() as other:
        answerer = OllamaAnswerer(OllamaServer(other.url), "llama3.1:8b", evidence_tokens=6000, answer_tokens=768)
    with pytest.raises(OllamaError, match="No Ollama server answers at"):
        list(answerer.sentences("What?", one_page_hits(FLOAT)))


def test_a_model_that_is_not_there_or_was_removed(ollama_server: OllamaStandIn, make: Make) -> None:
    with pytest.raises(ModelMissing) as caught:
        make("mistral:7b")
    assert "`ollama pull mistral:7b`" in caught.value.remedy
    answerer = make()
    del ollama_server.models[LLAMA.name]
    with pytest.raises(ModelMissing) as caught:
        list(answerer.sentences("What?", one_page_hits(FLOAT)))
    assert "`ollama pull llama3.1:8b`" in caught.value.remedy


def test_a_model_that_cannot_chat(make: Make) -> None:
    with pytest.raises(OllamaError, match="does not support chat"):
        list(make("nomic-embed-text").sentences("What?", one_page_hits(FLOAT)))


def test_a_cloud_model_is_refused(ollama_server: OllamaStandIn, make: Make) -> None:
    with pytest.raises(CloudModel, match="cloud model"):
        make("gpt-oss:120b-cloud")
    ollama_server.models["mine:latest"] = Model("mine:latest", "x", 4096, 64, ("completion",), "", "https://ollama.com")
    with pytest.raises(CloudModel, match="another computer"):
        make("mine")
    assert ollama_server.bodies(CHAT) == []


# Follow-ups

ALETSCH = Turn("How long is the Aletsch glacier?", "How long is the Aletsch glacier?", LONG)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("How thick is the Aletsch glacier?", "How thick is the Aletsch glacier?"),
        ('  "How thick is the Aletsch glacier?"\n', "How thick is the Aletsch glacier?"),
        ("Standalone question: How thick is the glacier?", "How thick is the glacier?"),
        ("Here is the standalone question:\n\nHow thick is the glacier?", "How thick is the glacier?"),
        ("How thick is the glacier?\n\nI replaced it by the glacier.", "How thick is the glacier?"),
        ("**How thick is the glacier?**", "How thick is the glacier?"),
        # What is no question about this is not believed
        ("", "How thick is it?"),
        ("\n \n", "How thick is it?"),
        ("Certainly! I can help.", "How thick is it?"),
        (REFUSAL, "How thick is it?"),
        ("The glacier " * 100, "How thick is it?"),
    ],
)
def test_a_follow_up_is_rewritten(ollama_server: OllamaStandIn, make: Make, written: str, expected: str) -> None:
    ollama_server.reply = [written]
    assert make().standalone("How thick is it?", [ALETSCH]) == expected
    (body,) = ollama_server.bodies(CHAT)
    (message,) = body["messages"]
    assert f"Q: {ALETSCH.question}\nA: {LONG}\n" in message["content"]
    assert message["content"].endswith("Follow-up question: How thick is it?\nStandalone question:")


def test_a_follow_up_is_rewritten_from_the_last_turns(ollama_server: OllamaStandIn, make: Make) -> None:
    history = [Turn(f"asked{n}?", f"standalone{n}?", f"answer{n}.") for n in range(6)]
    make().standalone("And then?", history)
    content = ollama_server.bodies(CHAT)[0]["messages"][0]["content"]
    assert [n for n in range(6) if f"Q: standalone{n}?\nA: answer{n}." in content] == [2, 3, 4, 5]
    assert "asked5" not in content


# Extractive


def extractive() -> ExtractiveAnswerer:
    return ExtractiveAnswerer(HashingEmbedder(256), even_weights)


def papers() -> list[Hit]:
    return [hit_on(*OTTERS, file="otters.pdf"), hit_on(*GLACIERS, file="glaciers.pdf")]


def test_extractive_sentences_are_quoted_word_for_word_from_their_page() -> None:
    answerer: Answerer = extractive()
    hits = papers()
    found = list(answerer.sentences("How thick is the ice of the Aletsch glacier at the Konkordiaplatz?", hits))
    assert found[0] is not None
    (citation,) = found[0].citations
    assert (citation.file, citation.page, citation.source) == ("glaciers.pdf", 2, 2)
    assert citation.quote == "At the Konkordiaplatz the ice of the Aletsch glacier has a thickness of 800 metres."
    assert found[0].text == citation.quote
    for sentence in found:
        assert sentence is not None
        (citation,) = sentence.citations
        hit = hits[citation.source - 1]
        first, last = hit.paper.pages.bounds(citation.page, hit.paper.length)
        assert citation.quote in hit.text[first:last]
        assert citation.quote in [hit.text[start:end] for start, end in sentence_spans(hit.text)]


def test_a_line_break_inside_a_quote_is_a_space_in_the_answer() -> None:
    (found,) = extractive().sentences("Do otters float in rafts?", one_page_hits("Sea otters float\nin rafts of kelp."))
    assert found is not None
    assert found.text == "Sea otters float in rafts of kelp."
    assert found.citations[0].quote == "Sea otters float\nin rafts of kelp."


def test_extractive_answers_are_always_the_same() -> None:
    question = "What does an otter eat?"
    assert list(extractive().sentences(question, papers())) == list(extractive().sentences(question, papers()))


@pytest.mark.parametrize("question", ["Who painted the ceiling of the Sistine chapel?", "xyzzy plugh?", "", "?"])
def test_extractive_refuses_where_nothing_fits(question: str) -> None:
    assert list(extractive().sentences(question, papers())) == []


def test_extractive_without_evidence_or_sentences() -> None:
    assert list(extractive().sentences("What do otters eat?", [])) == []
    assert list(extractive().sentences("What do otters eat?", one_page_hits("Otters\n\nEat", "1 2 3"))) == []


def test_the_same_sentence_in_two_papers_is_told_once() -> None:
    hits = [hit_on(OTTERS[0], file="a.pdf"), hit_on(OTTERS[0], file="b.pdf")]
    found = list(extractive().sentences("How do sea otters sleep and float in rafts of kelp?", hits))
    assert [sentence and sentence.citations[0].file for sentence in found][:1] == ["a.pdf"]
    texts = [sentence.text for sentence in found if sentence]
    assert len(texts) == len(set(texts))


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        # Points back
        ("How thick is it?", True),
        ("And its tongue?", True),
        ("What are they made of?", True),
        ("What about glaciers in Norway?", True),
        ("Why is that the case for glaciers?", True),
        ("Does the same hold for the Rhone glacier?", True),
        ("Which one is the largest in the Alps?", True),
        ("Who measured the ice there in winter?", True),
        ("But how thick was the ice in 1980?", True),
        ("Are such glaciers common in Norway?", True),
        # Names hardly anything
        ("Why?", True),
        ("How thick?", True),
        ("Tell me more", True),
        # Stands alone
        ("How thick is the Aletsch glacier?", False),
        ("Why do glaciers retreat faster each year?", False),
        ("Is there a gauge at the river Massa?", False),
        ("Which animals such as otters use stones as tools?", False),
        ("What is a one-time pad in cryptography?", False),
        ("Where was the gauge of the river Massa built?", False),
        ("Does butter melt faster than ice on a glacier?", False),  # no "but", no "it" inside a word
    ],
)
def test_leans_back(question: str, expected: bool) -> None:
    assert leans_back(question) is expected


def test_a_follow_up_is_joined_to_the_last_question_that_stood_alone() -> None:
    answerer = extractive()
    assert answerer.standalone("How thick is it?", []) == "How thick is it?"
    assert answerer.standalone("How thick is it?", [ALETSCH]) == f"{ALETSCH.question} How thick is it?"
    between = Turn("And its tongue?", "...", "It retreats.")
    assert answerer.standalone("How thick is it?", [ALETSCH, between]) == f"{ALETSCH.question} How thick is it?"
    assert answerer.standalone("Why?", [between]) == "And its tongue? Why?"
    alone = "What do sea otters eat each day?"
    assert answerer.standalone(alone, [ALETSCH]) == alone


def test_the_extractive_score_is_bounded() -> None:
    scored = extractive()._score("What do sea otters eat?", papers())
    assert all(-0.5 <= sentence.score <= 1 + 1e-6 and math.isfinite(sentence.score) for sentence in scored)
    assert [s.score for s in scored] == sorted((s.score for s in scored), reverse=True)
