"""The commands with a server of OpenAI's API: reading, asking, what is ready, and which servers run here."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from folio.models import discovery
from folio.models.discovery import find_servers
from tests.helpers.cli_runner import CliRunner
from tests.helpers.factories import small_papers
from tests.helpers.ollama_models import LLAMA, NOMIC, QWEN3, VERSION
from tests.helpers.ollama_server import OllamaStandIn, closed_url
from tests.helpers.openai_server import CHAT, EMBED, OpenAIStandIn

QUESTION = "How long is the Aletsch glacier?"


@pytest.fixture
def stand_in() -> Iterator[OpenAIStandIn]:
    with OpenAIStandIn(dimension=64) as server:
        yield server


@pytest.fixture
def local(desk: CliRunner, stand_in: OpenAIStandIn) -> CliRunner:
    """A desk with two papers, none read yet, that names the server for all."""
    small_papers(desk.papers)
    desk.settings |= {
        "LLM": "openai", "EMBEDDER": "openai", "OPENAI_BASE_URL": stand_in.url, "OPENAI_API_KEY": "sk-mine",
    }  # fmt: skip
    stand_in.habits.key = "sk-mine"
    return desk


def paths(stand_in: OllamaStandIn) -> set[str]:
    return {request.path for request in stand_in.requests}


def port_of(stand_in: OllamaStandIn) -> int:
    return urlsplit(stand_in.url).port or 0


def test_papers_are_read_and_a_question_is_answered(local: CliRunner, stand_in: OpenAIStandIn) -> None:
    assert (local.ingest().code, local.ingest().err) == (0, "")
    found = local.query("--json", QUESTION).object
    server = stand_in.url.removeprefix("http://")
    assert found["models"]["llm"] == f"{LLAMA.name} ({server})"
    assert found["models"]["embedder"] == f"{NOMIC.name} ({server})"
    assert found["citations"]
    assert not found["refused"]
    assert {CHAT, EMBED} <= paths(stand_in)
    assert {request.headers["authorization"] for request in stand_in.requests} == {"Bearer sk-mine"}
    assert "sk-mine" not in f"{local.query('--doctor').out}{found}"


def test_auto_keeps_the_embedder_of_the_index_and_asks_no_other(local: CliRunner, stand_in: OpenAIStandIn) -> None:
    local.ingest()
    local.settings |= {"LLM": "auto", "EMBEDDER": "auto"}
    before = len([request for request in stand_in.requests if request.path == CHAT])
    found = local.query("--json", QUESTION).object
    assert found["models"]["llm"] == "extractive (built in)"
    assert found["models"]["embedder"].startswith(NOMIC.name)
    assert len([request for request in stand_in.requests if request.path == CHAT]) == before
    local.settings["OPENAI_BASE_URL"] = closed_url()
    away = local.query("--sources", QUESTION)
    assert away.code == 0
    assert "So only words were searched (BM25)" in away.err


def test_a_deep_search_asks_the_server_under_a_schema(local: CliRunner, stand_in: OpenAIStandIn) -> None:
    local.ingest()
    assert local.query("--deep", "--json", QUESTION).code == 0
    shaped = [each.body["response_format"] for each in stand_in.requests if each.body.get("response_format")]
    assert {shape["type"] for shape in shaped} == {"json_schema"}
    fields = {name for shape in shaped for name in shape["json_schema"]["schema"]["properties"]}
    assert {"relevance", "summary", "parts"} <= fields
    assert "Length" not in str(shaped)


def test_another_model_at_the_same_name_needs_a_rebuild(local: CliRunner, stand_in: OpenAIStandIn) -> None:
    local.ingest()
    local.settings["OPENAI_EMBED_CONTEXT"] = "100"
    ran = local.query(QUESTION)
    assert ran.code == 1
    assert "part_bytes" in ran.err
    assert "ingest.py --rebuild" in ran.err


def test_the_only_chat_model_needs_no_name(local: CliRunner, stand_in: OpenAIStandIn) -> None:
    local.ingest()
    stand_in.models["qwen3:8b"] = QWEN3
    ran = local.query(QUESTION)
    assert ran.code == 1
    assert "has 2 chat models: llama3.1:8b, qwen3:8b." in ran.err
    assert "Set LLM_MODEL to one of them." in ran.err
    assert local.query("--model", "qwen3:8b", "--json", QUESTION).object["models"]["llm"].startswith("qwen3:8b")


def test_the_doctor(local: CliRunner, stand_in: OpenAIStandIn) -> None:
    local.ingest()
    ready = local.query("--doctor")
    text = " ".join(ready.out.split())
    assert ready.code == 0
    assert f"✓ model server llama.cpp b9000 at {stand_in.url}/v1" in text
    assert "✓ chat model llama3.1:8b, context of 8,192 tokens" in text
    assert "Ollama" not in text
    stand_in.habits.tells_context = ""
    assert "so 4,096 tokens are assumed Set OPENAI_CONTEXT" in " ".join(local.query("--doctor").out.split())
    local.settings["OPENAI_BASE_URL"] = closed_url()
    gone = local.query("--doctor")
    assert gone.code == 1
    assert "✗ model server no server answers at" in " ".join(gone.out.split())


@pytest.mark.parametrize("setting", ["OPENAI_BASE_URL", "OPENAI_EMBED_BASE_URL"])
def test_another_computer_has_to_be_allowed(local: CliRunner, setting: str) -> None:
    local.settings[setting] = "http://192.0.2.1:1234/v1"
    ran = local.query(QUESTION)
    assert ran.code == 2
    assert ran.err.startswith(f"{setting} is http://192.0.2.1:1234/v1, another computer")


def test_servers_are_found_at_their_ports(stand_in: OpenAIStandIn, ollama_server: OllamaStandIn) -> None:
    stand_in.habits.tells_context = "studio"
    ports = [port_of(ollama_server), port_of(stand_in), int(closed_url().rpartition(":")[2])]
    ollama, studio = find_servers(ports)
    assert (ollama.program, ollama.chat_models) == (f"Ollama {VERSION}", (LLAMA.name,))
    assert ollama.settings == f"LLM=ollama OLLAMA_HOST=127.0.0.1:{ports[0]}"
    assert (studio.program, studio.chat_models) == ("LM Studio", (LLAMA.name,))
    assert studio.settings == f"LLM=openai OPENAI_BASE_URL=http://127.0.0.1:{ports[1]}/v1"


def test_the_doctor_finds_servers_when_asked_to_and_sends_them_no_key(
    desk: CliRunner, stand_in: OpenAIStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.settings["OPENAI_API_KEY"] = "sk-mine"
    monkeypatch.setattr(discovery, "PORTS", (port_of(stand_in),))
    desk.query("--doctor")
    assert stand_in.requests == []
    text = " ".join(desk.query("--doctor", "--find-servers").out.split())
    assert f"✓ found llama.cpp b9000 at {stand_in.url}/v1: llama3.1:8b" in text
    assert "Set LLM=openai" in text
    assert all("authorization" not in request.headers for request in stand_in.requests)
    ran = desk.query("--find-servers", QUESTION)
    assert (ran.code, ran.err.splitlines()[0]) == (2, "--find-servers needs --doctor.")
