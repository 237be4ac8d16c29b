"""Conversations: LangChain's ConversationalRetrievalChain over both answerers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from desk import shelf
from langchain_classic.chains import ConversationalRetrievalChain
from ollama_server import OllamaStandIn

from folio.chat import Chat
from folio.errors import ModelError, OllamaError, UsageError
from folio.library import Library
from folio.types import REFUSAL, Sentence

LENGTH, THICK = "How long is the Aletsch glacier?", "How thick is the Aletsch glacier?"
IS_LONG = "The Aletsch glacier has a length of 23 kilometres and covers 82 square kilometres of the Bernese Alps."
IS_THICK = "At the Konkordiaplatz the ice of the Aletsch glacier has a thickness of 800 metres."
Start = Callable[..., Chat]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a chat over two papers; settings by name."""
    opened: list[Library] = []

    def chat(*, top_k: int = 3, paper: str | None = None, **settings: str) -> Chat:
        app = shelf(tmp_path, **settings)
        opened.append(app.open_library())
        return app.chat(opened[-1], top_k=top_k, paper=paper)

    yield chat
    for library in opened:
        library.close()


@pytest.fixture
def with_ollama(start: Start, ollama_server: OllamaStandIn) -> Start:
    return lambda **settings: start(LLM="ollama", OLLAMA_HOST=ollama_server.url, **settings)


def quoted(sentences: tuple[Sentence, ...]) -> list[tuple[str, int, str]]:
    return [(c.file, c.page, " ".join(c.quote.split())) for sentence in sentences for c in sentence.citations]


def searched(chat: Chat) -> list[str]:
    """Every question that was looked for, in order."""
    queries: list[str] = chat._retriever.embedder.queries  # type: ignore[attr-defined]
    return queries


# Extractive


def test_the_chain_is_langchains_own(start: Start) -> None:
    assert type(start()._chain) is ConversationalRetrievalChain


def test_a_question_is_answered_with_quotes_and_the_evidence_it_had(start: Start) -> None:
    told: list[Sentence] = []
    chat = start()
    reply = chat.ask("  How long is the Aletsch glacier, and how many square kilometres does it cover? ", told.append)
    assert reply.answer.sentences == tuple(told)
    assert quoted(reply.answer.sentences)[0] == ("glaciers.pdf", 1, IS_LONG)
    assert reply.answer.question == "How long is the Aletsch glacier, and how many square kilometres does it cover?"
    assert reply.answer.text.startswith(IS_LONG)
    assert not reply.answer.refused
    assert len(reply.hits) == 3
    assert [hit.score for hit in reply.hits] == sorted((hit.score for hit in reply.hits), reverse=True)
    assert {"embed", "dense", "bm25", "retrieve", "answer"} <= reply.timings_ms.keys()
    assert chat.models == {"embedder": "hashing", "reranker": "built in", "llm": "extractive (built in)"}


def test_a_follow_up_is_joined_to_what_it_follows_up_on(start: Start) -> None:
    chat = start()
    chat.ask(LENGTH)
    reply = chat.ask("And what thickness has its ice at the Konkordiaplatz?")
    assert searched(chat)[1] == LENGTH  # the first question: once to search, once to answer
    joined = f"{LENGTH} And what thickness has its ice at the Konkordiaplatz?"
    assert joined in searched(chat)
    assert reply.answer.standalone_question == joined
    assert reply.answer.question == "And what thickness has its ice at the Konkordiaplatz?"
    assert ("glaciers.pdf", 2, IS_THICK) in quoted(reply.answer.sentences)
    assert LENGTH not in reply.answer.text


def test_a_new_conversation_forgets(start: Start) -> None:
    chat = start()
    chat.ask(LENGTH)
    chat.start_anew()
    assert chat.ask("How thick is it?").answer.standalone_question == "How thick is it?"


def test_nothing_that_fits_is_a_refusal(start: Start) -> None:
    told: list[Sentence] = []
    reply = start().ask("Who painted the ceiling of the Sistine chapel in Rome?", told.append)
    assert reply.answer.refused
    assert (reply.answer.text, reply.answer.citations, told) == (REFUSAL, (), [])


def test_one_paper_alone_can_be_asked(start: Start) -> None:
    reply = start(paper="SEA otters").ask(LENGTH)
    assert {hit.paper.file for hit in reply.hits} == {"otters.pdf"}
    with pytest.raises(UsageError, match=r"No paper in the index is called otter\.pdf. Close to it: otters\.pdf"):
        start(paper="otter.pdf")


def test_top_k_is_how_many_passages_there_are(start: Start) -> None:
    assert len(start(top_k=1).ask(LENGTH).hits) == 1


@pytest.mark.parametrize("question", ["", "  \n"])
def test_an_empty_question_is_refused_and_not_remembered(start: Start, question: str) -> None:
    chat = start()
    with pytest.raises(UsageError, match="The question is empty"):
        chat.ask(question)
    assert chat._turns == []


# With Ollama


def test_a_follow_up_is_rewritten_for_the_search_and_never_shown(
    with_ollama: Start, ollama_server: OllamaStandIn
) -> None:
    ollama_server.reply = [f"{IS_LONG[:-1]} [1].", THICK, f"{IS_THICK} [1]"]
    chat = with_ollama()
    chat.ask(LENGTH)
    told: list[Sentence] = []
    reply = chat.ask("And how thick is it?", told.append)
    assert searched(chat) == [LENGTH, THICK]
    assert reply.answer.question == "And how thick is it?"
    assert reply.answer.standalone_question == THICK
    assert [sentence.text for sentence in told] == [IS_THICK]
    assert reply.answer.text == IS_THICK
    assert quoted(reply.answer.sentences) == [("glaciers.pdf", 2, IS_THICK)]
    first, rewriting, answering = (body["messages"] for body in ollama_server.bodies("/api/chat"))
    assert f"Question: {LENGTH}" in first[-1]["content"]
    assert f"Q: {LENGTH}\nA: {IS_LONG}" in rewriting[-1]["content"]
    assert f"Question: {THICK}" in answering[-1]["content"]
    assert "And how thick is it?" not in answering[-1]["content"]
    assert chat.models["llm"] == "llama3.1:8b (Ollama)"
    assert {"rewrite", "retrieve", "answer"} <= reply.timings_ms.keys()


def test_a_first_question_is_not_rewritten(with_ollama: Start, ollama_server: OllamaStandIn) -> None:
    chat = with_ollama()
    chat.ask(LENGTH)
    chat.start_anew()
    chat.ask(THICK)
    assert len(ollama_server.bodies("/api/chat")) == 2
    assert searched(chat) == [LENGTH, THICK]


def test_sentences_that_nothing_supports_are_counted(with_ollama: Start, ollama_server: OllamaStandIn) -> None:
    ollama_server.reply = [f"Paris is in France [1]. {IS_LONG} [2] Rome was built by wolves."]
    reply = with_ollama().ask(LENGTH)
    assert reply.answer.text == IS_LONG
    assert reply.answer.dropped == 2


def test_an_answer_without_any_support_is_a_refusal(with_ollama: Start, ollama_server: OllamaStandIn) -> None:
    ollama_server.reply = ["Paris is in France [1]."]
    reply = with_ollama().ask(LENGTH)
    assert reply.answer.refused
    assert (reply.answer.text, reply.answer.dropped) == (REFUSAL, 1)


@pytest.mark.parametrize("where", ["rewriting", "answering"])
def test_a_failure_leaves_the_conversation_as_it_was(
    with_ollama: Start, ollama_server: OllamaStandIn, where: str
) -> None:
    chat = with_ollama()
    chat.ask(LENGTH)
    before = list(chat._turns)
    if where == "rewriting":
        ollama_server.faults.fails = 1
    else:
        ollama_server.faults.error_after = 30  # the rewritten question is shorter, an answer is not
    ollama_server.reply = [THICK] * 2 + [IS_THICK * 9] * 9
    with pytest.raises(ModelError):
        chat.ask("And how thick is it?")
    assert chat._turns == before
    ollama_server.faults.error_after = None
    ollama_server.reply = lambda messages: THICK if len(messages) == 1 else f"{IS_THICK} [1]"
    reply = chat.ask("And how thick is it?")
    assert reply.answer.text == IS_THICK
    assert [turn.question for turn in chat._turns] == [LENGTH, "And how thick is it?"]
    assert [turn.standalone_question for turn in chat._turns] == [LENGTH, THICK]


def test_a_server_that_went_away_is_told_and_may_come_back(with_ollama: Start, ollama_server: OllamaStandIn) -> None:
    chat = with_ollama()
    ollama_server.faults.dropped = 1
    with pytest.raises(OllamaError, match="broke off"):
        chat.ask(LENGTH)
    assert not chat.ask(LENGTH).answer.refused


@pytest.mark.parametrize("llm", ["builtin", "ollama"])
def test_ctrl_c_stops_the_answer_and_not_the_chat(start: Start, ollama_server: OllamaStandIn, llm: str) -> None:
    def interrupted(sentence: Sentence) -> None:
        raise KeyboardInterrupt

    chat = start(LLM=llm, OLLAMA_HOST=ollama_server.url)
    ollama_server.reply = lambda messages: f"{IS_LONG} [1] {IS_THICK} [1]"
    with pytest.raises(KeyboardInterrupt):
        chat.ask("What length has the Aletsch glacier?", interrupted)
    assert chat._turns == []
    reply = chat.ask("What length has the Aletsch glacier?")
    assert not reply.answer.refused
    assert reply.answer.standalone_question == "What length has the Aletsch glacier?"
    assert len(chat._turns) == 1


def test_a_reply_is_made_of_plain_values(start: Start) -> None:
    timings = start().ask(LENGTH).timings_ms
    assert json.loads(json.dumps(timings)) == timings
