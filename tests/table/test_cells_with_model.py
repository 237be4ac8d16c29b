"""Cells with a chat model, on a stand-in for Ollama: the paper is read once, and quotes are cut out by the program."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from folio.store.library import Library
from folio.table.cell import Cell, Column
from tests.helpers.factories import shelf
from tests.helpers.ollama_models import Json
from tests.helpers.ollama_server import OllamaStandIn

DIET = Column("Diet", "What does the sea otter eat?")
HAIRS = Column("Hairs", "How many hairs has the fur on each square centimetre?", "number")
MOON = Column("Moon", "How far away is the moon?")


def reply(messages: list[Json]) -> str:
    """It chooses the sentence about the diet or the hairs, in its own or in the paper's words, and knows no moon."""
    prompt = str(messages[-1]["content"])
    if "Question of fact" in prompt:
        return "yes"
    evidence, _, question = prompt.rpartition("Question:")
    if "moon" in question:
        return json.dumps({"statements": [], "answered": False})
    if "limitations" in question:
        return json.dumps({"statements": [], "answered": False})
    words = "urchins" if "eat" in question else "155,000"
    line = next(line for line in evidence.splitlines() if words in line)
    number = int(line[line.index("[") + 1 : line.index("]")])
    said = "It eats urchins, clams and crabs." if "eat" in question else line.partition("] ")[2]
    return json.dumps({"statements": [{"support": [number], "statement": said}], "answered": True})


@pytest.fixture
def server() -> Iterator[OllamaStandIn]:
    with OllamaStandIn(reply=reply) as server:
        yield server


def filled(folder: Path, server: OllamaStandIn, *columns: Column) -> tuple[list[Cell], Library]:
    app = shelf(folder, LLM="ollama", OLLAMA_HOST=server.url)
    library = app.open_library()
    with closing(library):
        paper = next(paper for paper in library.papers() if paper.file == "otters.pdf")
        cells = [cell for _, cell in app.cell_finder(library).fill(paper, columns)]
        for cell in cells:
            for finding in cell.findings:
                assert library.text(paper.id, *finding.quote.span) == finding.quote.quote
    return cells, library


def questions(server: OllamaStandIn) -> list[str]:
    contents = [str(body["messages"][-1]["content"]) for body in server.bodies("/api/chat")]
    return [content for content in contents if '"support" has' in content]


def test_the_model_chooses_and_the_program_quotes(tmp_path: Path, server: OllamaStandIn) -> None:
    (diet, hairs, moon), _ = filled(tmp_path, server, DIET, HAIRS, MOON)
    assert "urchins, clams and crabs" in diet.findings[0].quote.quote
    assert (hairs.findings[0].value, hairs.findings[0].number) == ("about 155,000 hairs", 155_000.0)
    assert not hairs.findings[0].by_model
    assert moon.findings == ()


def test_every_prompt_about_a_paper_begins_with_the_same_evidence(tmp_path: Path, server: OllamaStandIn) -> None:
    filled(tmp_path, server, DIET, HAIRS, MOON)
    asked = questions(server)
    assert len(asked) == 3
    evidence = {prompt.rpartition("</evidence>")[0] for prompt in asked}
    assert len(evidence) == 1
    assert "urchins" in evidence.pop()


def test_a_server_that_is_gone_leaves_the_cells_to_the_built_in_finder(tmp_path: Path, server: OllamaStandIn) -> None:
    server.reply = lambda messages: "{"  # nothing that can be read
    (diet,), _ = filled(tmp_path, server, DIET)
    assert "urchins, clams and crabs" in diet.findings[0].shown


def test_a_question_about_the_whole_paper_reads_its_beginning(
    tmp_path: Path, server: OllamaStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("folio.table.finder.PASSAGES", 1)
    about_diet = "What are the limitations of the diet of urchins, clams and crabs in this paper?"
    filled(tmp_path, server, Column("Limits of the diet", about_diet))
    (asked, *_) = questions(server)
    assert "sleep on their backs" in asked
