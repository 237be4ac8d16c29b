"""`folio.open()`: from Python, the same answers and passages as from the terminal."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import folio
from folio.cli.command import FILTERS
from folio.errors import NotKnown, StoreMissing, UsageError
from folio.open_library import Filters, OpenLibrary
from folio.schema.answers import DeepAnswerJson, SentenceJson
from tests.helpers.cli_runner import CliRunner
from tests.helpers.paths import ROOT

DIET = "What does an adult otter eat each day?"


@pytest.fixture(scope="module")
def library(two_papers: Path) -> Iterator[OpenLibrary]:
    with pytest.MonkeyPatch.context() as patch:
        settings: dict[str, Any] = CliRunner(two_papers, patch).settings
        with folio.open(**settings, EMBEDDER="builtin", LLM="builtin") as opened:
            yield opened


def test_import_is_light() -> None:
    """Only the version is imported: a program may never open a library."""
    script = "import folio, sys; print(sorted(name for name in sys.modules if name.startswith(('folio', 'pydantic'))))"
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout == "['folio', 'folio.version']\n"


def test_the_answer_is_that_of_the_terminal(ready: CliRunner) -> None:
    ready.settings |= {"EMBEDDER": "builtin", "LLM": "builtin"}
    printed = ready.query("--json", "--no-log", DIET).object
    chosen: dict[str, Any] = {**ready.settings, "VECTORSTORE_DIR": "elsewhere"}
    with folio.open(ready.store, **chosen) as library:
        answer = library.ask(DIET).model_dump(mode="json")
    assert answer["sentences"][0]["citations"][0]["page"] == 2
    timings: dict[str, Any] = {"timings_ms": {}}
    assert {**answer, **timings} == {**printed, **timings}


def test_each_statement_has_its_quotes(library: OpenLibrary) -> None:
    seen: list[SentenceJson] = []
    answer = library.ask(DIET, on_sentence=seen.append)
    assert answer.sentences == seen
    (cited,) = answer.sentences[0].citations
    assert (cited.title, cited.page) == ("On Sea Otters", 2)
    assert "a quarter of its own weight" in cited.quote


def test_filters_are_those_of_the_commands(library: OpenLibrary) -> None:
    assert tuple(Filters.__annotations__) == FILTERS
    assert {hit.file for hit in library.search("ice and fur", top_k=9).hits} == {"otters.pdf", "alps/glaciers.pdf"}
    assert {hit.file for hit in library.search("ice and fur", top_k=9, paper="glaciers").hits} == {"alps/glaciers.pdf"}
    both = library.search("ice and fur", top_k=9, paper=["glaciers", "otters"])
    assert {hit.file for hit in both.hits} == {"otters.pdf", "alps/glaciers.pdf"}
    assert library.ask(DIET, paper="glaciers").refused
    with pytest.raises(NotKnown, match=r"No paper .*walrus"):
        library.ask(DIET, paper="walrus")
    with pytest.raises(NotKnown, match="the year"):
        library.search("ice", year=1999)
    with pytest.raises(TypeError, match="papers is no filter"):
        library.search("ice", papers="otters")  # type: ignore[call-arg]


def test_a_search_says_what_it_did(library: OpenLibrary) -> None:
    assert library.search("xqzzyv").hits == []
    assert library.search("xqzzyv").notice == "None of these words is in your papers."
    assert len(library.search("glacier", top_k=2).hits) == 2


def test_a_conversation_understands_follow_ups(library: OpenLibrary) -> None:
    chat = library.chat(top_k=2)
    chat.ask("How thick is the Aletsch glacier?")
    followed = chat.ask("And how long is it?")
    assert "23 kilometres" in followed.answer
    assert "Aletsch" in followed.standalone_question
    assert library.ask("And how long is it?").standalone_question == "And how long is it?"


def test_a_deep_answer_has_its_trace(library: OpenLibrary) -> None:
    answer = library.ask(DIET, deep=True)
    assert isinstance(answer, DeepAnswerJson)
    assert answer.trace.rounds == 1
    assert answer.evidence_profile is not None
    assert "a quarter" in answer.answer


def test_an_exception_of_the_program_ends_the_answer(library: OpenLibrary) -> None:
    def leave(sentence: SentenceJson) -> None:
        raise LookupError(sentence.text)

    with pytest.raises(LookupError, match="a quarter"):
        library.ask(DIET, on_sentence=leave)
    assert "a quarter" in library.ask(DIET).answer


def test_threads_share_a_library(library: OpenLibrary) -> None:
    questions = [DIET, "How thick is the Aletsch glacier?"] * 4
    alone = [library.ask(question).answer for question in questions[:2]] * 4
    with ThreadPoolExecutor(4) as threads:
        assert [answer.answer for answer in threads.map(library.ask, questions)] == alone


def test_nothing_is_logged(ready: CliRunner, library: OpenLibrary) -> None:
    asked = "How thick is the fur that {} asks about?"
    library.ask(asked.format("a program"))
    ready.query(asked.format("a person"))
    stored = b"".join(file.read_bytes() for file in ready.store.glob("*.sqlite*"))
    assert asked.format("a person").encode() in stored
    assert asked.format("a program").encode() not in stored


def test_what_cannot_be_opened_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing):
        folio.open(tmp_path / "nothing", EMBEDDER="builtin", LLM="builtin")
    assert not (tmp_path / "nothing").exists()
    with pytest.raises(UsageError, match="TOPK is not a setting") as mistyped:
        folio.open(tmp_path, TOPK=3)
    assert "did you mean TOP_K?" in mistyped.value.happened
    with pytest.raises(UsageError, match="CHUNK_SIZE: ") as wrong:
        folio.open(tmp_path, CHUNK_SIZE=0)
    assert wrong.value.remedy.startswith("Correct it in the call or ")
