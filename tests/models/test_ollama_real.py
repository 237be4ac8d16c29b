"""The whole tool against a real Ollama server, where one answers at OLLAMA_HOST and has the models."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from config import load_settings
from folio.answer_types import REFUSAL
from folio.errors import FolioError
from folio.models.ollama import OllamaServer, server_url
from tests.helpers.cli_runner import CliRunner
from tests.helpers.factories import small_papers
from tests.helpers.paths import SAMPLE

pytestmark = [pytest.mark.ollama, pytest.mark.slow, pytest.mark.timeout(1800)]


def missing() -> str:
    """What keeps these tests from running; nothing where a server is ready."""
    settings = load_settings(print)
    try:
        server = OllamaServer(server_url(settings.OLLAMA_HOST, allow_remote=False), settings.OLLAMA_TIMEOUT_S)
        if server.version() is None:
            return f"no Ollama server answers at {server.url}"
        server.require_local(settings.EMBED_MODEL, "embedding")
        server.require_local(settings.LLM_MODEL, "completion")
    except FolioError as error:
        return error.happened
    return ""


@pytest.fixture
def real(desk: CliRunner) -> CliRunner:
    """A desk with papers that asks the real server, or a skipped test."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    settings = load_settings(print)
    small_papers(desk.papers)
    shutil.copy(SAMPLE, desk.papers)
    desk.settings |= {
        "OLLAMA_HOST": settings.OLLAMA_HOST,
        "EMBED_MODEL": settings.EMBED_MODEL,
        "LLM_MODEL": settings.LLM_MODEL,
        "EMBEDDER": "ollama",
        "LLM": "ollama",
    }
    return desk


def quotes_are_on_their_pages(found: dict[str, Any]) -> None:
    """Each citation of a `--json` answer is a slice of the evidence that it names, and lies within its pages."""
    for citation in found["citations"]:
        evidence = found["evidence"][citation["evidence"] - 1]
        assert evidence["number"] == citation["evidence"]
        assert evidence["paper"] == citation["paper"]
        assert citation["quote"] in evidence["text"]
        assert evidence["pages"][0] <= citation["page"] <= evidence["pages"][1]


def test_papers_are_read_and_questions_answered(real: CliRunner) -> None:
    ingested = real.ingest()
    assert (ingested.code, ingested.err) == (0, "")
    assert [paper["file"] for paper in real.record()] == ["alps/glaciers.pdf", "folio-sample.pdf", "otters.pdf"]
    assert real.ingest("--verify").code == 0

    found = real.query("--json", "How long is the Aletsch glacier?").object
    assert not found["refused"]
    assert "23" in found["answer"]
    assert ("alps/glaciers.pdf", 1) in [(citation["file"], citation["page"]) for citation in found["citations"]]
    quotes_are_on_their_pages(found)
    assert found["models"]["llm"].endswith("(Ollama)")
    assert found["models"]["embedder"].endswith("(Ollama)")

    refused = real.query("--json", "Who painted the ceiling of the Sistine chapel?").object
    assert (refused["answer"], refused["citations"]) == (REFUSAL, [])

    doctor = real.query("--doctor")
    assert doctor.code == 0
    assert "Ready to answer." in doctor.out


def test_a_chat_follows_up(real: CliRunner) -> None:
    real.ingest()
    ran = real.query(typed="How long is the Aletsch glacier?\nAnd how thick is its ice at the Konkordiaplatz?\n/quit\n")
    assert ran.code == 0
    first, second = ran.out.split("\nSources\n")[:2]
    assert "23" in first
    assert "800" in second
    assert "[“The Aletsch Glacier”, p. 2]" in second
