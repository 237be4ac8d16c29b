"""Other wordings and passages by a model: odd replies and time limits."""

from __future__ import annotations

import json
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from folio.answer.query_writer import MOST_WORDINGS, LlmQueryWriter
from folio.errors import ModelMissing
from folio.models.ollama import OllamaServer
from folio.protocols import NOTHING_WRITTEN, Written
from folio.question.question import Question
from folio.search.retriever import Retriever, SearchRequest, SearchResult
from tests.helpers.factories import shelf
from tests.helpers.fakes import HashingEmbedder
from tests.helpers.ollama_server import OllamaStandIn

QUESTION = "What do sea otters eat?"
ANSWER = "Sea otters feed on urchins and clams, which they open with stones on their bellies."


def writer(
    server: OllamaStandIn,
    how: Literal["llm", "hyde"] = "llm",
    told: list[str] | None = None,
    seconds: float = 20,
    model: str = "llama3.1:8b",
) -> LlmQueryWriter:
    notice = (told if told is not None else []).append
    return LlmQueryWriter(OllamaServer(server.url, 5.0), model, how, tokens=6768, seconds=seconds, notice=notice)


def queries(*texts: object) -> str:
    return json.dumps({"queries": texts})


def test_wordings_are_printable_lines_and_none_is_the_question() -> None:
    reply = queries(
        "what do sea otters eat", "the diet\nof Enhydra\x1b[31m lutris", "Otter food", 7, "more", "and more"
    )
    with OllamaStandIn(reply=[reply]) as server:
        found = writer(server).write(QUESTION)
        (asked,) = server.bodies("/api/chat")
    assert found == Written(wordings=("the diet of Enhydra lutris", "Otter food"))
    assert len(found.wordings) <= MOST_WORDINGS
    assert asked["format"]["required"] == ["queries"]
    assert QUESTION in asked["messages"][-1]["content"]


def test_a_passage_is_one_line() -> None:
    with OllamaStandIn(reply=[json.dumps({"passage": ANSWER.replace(" which", "\nwhich")})]) as server:
        assert writer(server, "hyde").write(QUESTION) == Written(passage=ANSWER)


@pytest.mark.parametrize(
    ("how", "odd"),
    [
        ("llm", "Otters!"), ("llm", queries()), ("llm", queries(QUESTION)), ("llm", queries("???", 7, None)),
        ("llm", '{"queries": "otters"}'), ("llm", "[" * 100_000), ("hyde", json.dumps({"passage": "Urchins."})),
        ("hyde", json.dumps({"passage": 7})), ("hyde", ""),
    ],
)  # fmt: skip
def test_an_unusable_reply_leaves_the_question_unchanged(how: Literal["llm", "hyde"], odd: str) -> None:
    told: list[str] = []
    with OllamaStandIn(reply=[odd] * 4) as server:
        server.ignores_format = True
        asks = writer(server, how, told)
        assert [asks.write(QUESTION), asks.write(f"{QUESTION} And why?")] == [NOTHING_WRITTEN] * 2
        assert len(server.bodies("/api/chat")) == 4  # each question twice
    (line,) = told
    assert line.startswith(f"QUERY_VARIANTS={how}: llama3.1:8b wrote nothing usable")
    assert "Set QUERY_VARIANTS=off" in line


def test_replies_are_cached() -> None:
    with OllamaStandIn(reply=[queries("otter food")]) as server:
        asks = writer(server)
        assert asks.write(QUESTION) == asks.write(QUESTION)
        assert len(server.bodies("/api/chat")) == 1


def test_only_a_missing_model_is_an_error() -> None:
    for fault, value in (("first_byte_s", 30), ("fails", 9)):
        told: list[str] = []
        began = time.monotonic()
        with OllamaStandIn(reply=[queries("otter food")]) as server:
            setattr(server.faults, fault, value)
            assert writer(server, told=told, seconds=0.3).write(QUESTION) == NOTHING_WRITTEN
        assert time.monotonic() - began < 20  # the server is silent for longer
        assert len(told) == 1
    with OllamaStandIn() as server, pytest.raises(ModelMissing):
        writer(server, model="none:1b").write(QUESTION)


@pytest.mark.parametrize("how", ["llm", "hyde"])
def test_wordings_find_additional_passages(tmp_path: Path, how: Literal["llm", "hyde"]) -> None:
    asked = "Which glacier of the Alps is long, and thick?"
    app = shelf(tmp_path)
    with closing(app.open_library()) as library, OllamaStandIn() as server:
        (otters,) = (paper for paper in library.papers() if paper.file == "otters.pdf")
        other = library.text(otters.id, 0, 190)
        server.reply = [queries(other) if how == "llm" else json.dumps({"passage": other})]
        fusion = replace(app.models.fusion, candidates=1, mode="dense")
        retriever = Retriever(
            library, lambda: app.open_indexes(library), HashingEmbedder(256), None, fusion, writer=writer(server, how)
        )

        def files(result: SearchResult) -> set[str]:
            return {paper.file for _, paper, _ in library.read_chunks(result.ranked["fused"])}

        assert files(retriever.search(asked, 1)) == {"otters.pdf", "glaciers.pdf"}
        assert files(retriever.find(SearchRequest(Question(asked), 1, written=False))) == {"glaciers.pdf"}
        assert files(retriever.without_writer().search(asked, 1)) == {"glaciers.pdf"}
        assert len(server.bodies("/api/chat")) == 1
