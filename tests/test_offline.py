"""Nothing but the configured model server is contacted: whole commands with the network closed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import offline_guard
from tests.helpers.cli_runner import CliResult, CliRunner
from tests.helpers.factories import small_papers
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.openai_server import OpenAIStandIn
from tests.helpers.paths import ROOT, SAMPLE
from tests.helpers.serve_process import Served

QUESTION = "How long is the Aletsch glacier?"
# What a person's environment may hold, and what may follow from it: each would lead to another computer.
TRAPS = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy"), "http://192.0.2.1:3128"),
    **dict.fromkeys(("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2", "FASTAPI_OTEL_AUTO_CONFIGURE"), "true"),
    **dict.fromkeys(("LANGSMITH_API_KEY", "OLLAMA_API_KEY", "HF_TOKEN"), "a-secret"),
    **dict.fromkeys(("HF_HUB_OFFLINE", "ORT_DISABLE_TELEMETRY"), "0"),
    **dict.fromkeys(("OPENAI_API_BASE", "OPENAI_PROXY", "LANGSMITH_GATEWAY_BASE_URL"), "http://192.0.2.1:80"),
    **dict.fromkeys(("OPENAI_ORG_ID", "OPENAI_ADMIN_KEY", "LANGSMITH_GATEWAY_API_KEY"), "a-secret"),
    "OPENAI_CUSTOM_HEADERS": "X-Mine: a-secret",
    "ALL_PROXY": "socks5://192.0.2.1:1080",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "http://192.0.2.1:4318",
}
needs_filter = pytest.mark.skipif(not offline_guard.can_close(), reason="the kernel's filter needs Linux")


@pytest.fixture
def guard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that makes the guard the sitecustomize of every Python that has it on its path."""
    folder = tmp_path_factory.mktemp("guard")
    shutil.copy(offline_guard.__file__, folder / "sitecustomize.py")
    return folder


@pytest.fixture
def closed(desk: CliRunner, guard: Path) -> Iterator[CliRunner]:
    """A desk with papers, whose commands have a closed network and an environment full of traps."""
    small_papers(desk.papers)
    shutil.copy(SAMPLE, desk.papers)
    desk.settings |= {**TRAPS, "PYTHONPATH": str(guard), "OFFLINE_GUARD": "loopback", "RERANKER": "auto"}
    yield desk
    assert list((desk.folder / "home").rglob("*")) == []  # no cache, no id of this computer, no log to be sent later


def python(guard: Path, code: str, mode: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(guard), "OFFLINE_GUARD": mode}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "code",
    [
        "import socket; socket.create_connection(('192.0.2.1', 9), timeout=1)",
        "import socket; socket.getaddrinfo('example.com', 80)",
        "import socket; socket.gethostbyname('example.com')",
        "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))",
        "import httpx; httpx.get('http://192.0.2.1', trust_env=False)",
    ],
)
def test_the_guard_holds(guard: Path, code: str) -> None:
    ran = python(guard, code, "loopback")
    assert (ran.returncode, "BROKE OUT" in ran.stderr) == (offline_guard.BROKE_OUT, True)


def test_the_guard_lets_the_loopback_through(guard: Path, ollama_server: OllamaStandIn) -> None:
    ran = python(guard, f"import httpx; print(httpx.get({ollama_server.url!r}, trust_env=False).text)", "loopback")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "Ollama is running\n", "")


@needs_filter
@pytest.mark.parametrize("length", [16, 28])
def test_the_guard_holds_native_code_too(guard: Path, length: int) -> None:
    code = f"import ctypes; ctypes.CDLL(None).connect(0, b'x' * {length}, {length})"
    assert python(guard, code, "none").returncode == -signal.SIGSYS
    assert python(guard, f"{code[:-1]} + 1); print('fine')", "none").stdout == "fine\n"


def answered(ran: CliResult) -> dict[str, Any]:
    assert "BROKE OUT" not in ran.err
    assert ran.code == 0
    assert not ran.object["refused"]
    assert ran.object["citations"][0]["file"] == "alps/glaciers.pdf"
    return ran.object


@needs_filter
def test_built_in_models_connect_to_nothing(closed: CliRunner) -> None:
    """Not even in native code; the models' graph is made by the first command."""
    closed.settings["MODELS_DIR"] = str(closed.folder / "models")
    built_in = {"OFFLINE_GUARD": "none", "EMBEDDER": "builtin", "LLM": "builtin"}
    ingested = closed.spawn("ingest.py", more=built_in)
    assert (ingested.code, ingested.err) == (0, "")
    answered(closed.spawn("query.py", "--json", QUESTION, more=built_in))


def test_without_a_server_everything_stays_here(closed: CliRunner) -> None:
    assert closed.ingest().code == 0
    found = answered(closed.spawn("query.py", "--json", QUESTION))
    assert found["models"]["embedder"] == "all-MiniLM-L6-v2 (built in)"
    doctor = closed.spawn("query.py", "--doctor")
    assert (doctor.code, doctor.err) == (0, "")


def test_with_ollama(closed: CliRunner, ollama_server: OllamaStandIn) -> None:
    ollama_server.reply = lambda messages: "The Aletsch glacier has a length of 23 kilometres [1]."
    closed.settings |= {"OLLAMA_HOST": ollama_server.url, "EMBEDDER": "ollama", "LLM": "ollama"}
    ingested = closed.spawn("ingest.py")
    assert (ingested.code, ingested.err) == (0, "")
    chatted = closed.spawn("query.py", typed=f"{QUESTION}\nHow thick is it?\n")
    assert (chatted.code, "alps/glaciers.pdf" in chatted.out, "BROKE OUT" in chatted.err) == (0, True, False)
    assert {request.path for request in ollama_server.requests} == {
        *("/api/tags", "/api/show", "/api/ps", "/api/embed", "/api/chat")
    }
    for request in ollama_server.requests:
        assert "authorization" not in request.headers
        assert "secret" not in str(request)
        assert request.headers["host"] == ollama_server.url.removeprefix("http://")


def test_with_another_server(closed: CliRunner) -> None:
    with OpenAIStandIn(dimension=64) as server:
        server.reply = lambda messages: "The Aletsch glacier has a length of 23 kilometres [1]."
        closed.settings |= {"OPENAI_BASE_URL": server.url, "EMBEDDER": "openai", "LLM": "openai"}
        ingested = closed.spawn("ingest.py")
        assert (ingested.code, ingested.err) == (0, "")
        answered(closed.spawn("query.py", "--json", QUESTION))
        assert "a-secret" not in str(server.requests)
        assert {"authorization", "openai-organization", "x-mine"}.isdisjoint(
            name for request in server.requests for name in request.headers
        )


def test_the_web_page(closed: CliRunner) -> None:
    assert closed.ingest().code == 0
    with Served(closed) as served:
        (paper, *_) = served.client.get("papers").json()["papers"]
        assert served.client.get(f"papers/{paper['id']}/pages/1.png").status_code == 200
        assert served.client.get("/").status_code == 200
        reply = served.client.post("chat", json={"message": QUESTION}).json()
        assert reply["citations"][0]["file"] == "alps/glaciers.pdf"
        torn = served.client.post("papers", json={})
        assert torn.status_code == 422
        assert served.interrupt() == 0
    assert served.err == ""


def test_a_redirect_to_another_computer_is_not_followed(closed: CliRunner, ollama_server: OllamaStandIn) -> None:
    closed.settings |= {"OLLAMA_HOST": ollama_server.url, "EMBEDDER": "builtin", "LLM": "ollama"}
    assert closed.ingest().code == 0
    ollama_server.faults.redirect_to = "http://192.0.2.1:11434"
    ran = closed.spawn("query.py", QUESTION)
    assert ran.code == 1
    assert "redirects to another address" in ran.err
    assert "BROKE OUT" not in ran.err


_WARNED = """
import sys, warnings
from folio.system.network import go_offline

go_offline()
other = warnings.catch_warnings()
other.__enter__()  # as another thread does


class LeavesJustThen:
    def find_spec(self, name, path=None, target=None):
        if name == "urllib3.contrib.socks":
            other.__exit__(None, None, None)


sys.meta_path.insert(0, LeavesJustThen())
import requests

assert "urllib3.contrib.socks" not in sys.modules
"""


def test_nothing_is_said_about_proxies_while_threads_import(tmp_path: Path) -> None:
    script = tmp_path / "warned.py"
    script.write_text(_WARNED)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
