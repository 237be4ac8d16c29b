"""The server over its two transports, with real processes, real connections and the SDK's own client."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from folio.mcp import http as mcp_http
from folio.papers.model import Vectors
from folio.search.builtin_reranker import BuiltinReranker
from folio.store.library import Library
from folio.system import workers
from tests.helpers.cli_runner import CliRunner
from tests.helpers.fakes import HashingApp, HashingEmbedder, read_here
from tests.helpers.live_server import LIMIT_S, Live, until
from tests.helpers.mcp_client import ERAS, Era, command, given, http_client, in_memory, over_http, over_stdio, text_of
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.paths import ROOT
from tests.helpers.web_client import TOKEN, small_app

FUR, LENGTH = "How many hairs has the fur of a sea otter?", "How long is the Aletsch glacier?"
LARGEST = "Which is the largest glacier of the Alps?"


async def talk(client: Client) -> tuple[list[str], str]:
    """A conversation that both transports must carry; returns the messages of progress, and the answer."""
    messages: list[str] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        assert progress == len(messages) + 1
        messages.append(message or "")

    assert "ask" in {tool.name for tool in (await client.list_tools()).tools}
    result = await client.call_tool("ask", {"question": FUR}, progress_callback=on_progress)
    assert not result.is_error, text_of(result)
    found = await given(client, "search_passages", query="glacier", limit=1)
    assert found["passages"][0]["file"] == "alps/glaciers.pdf"
    uri = found["passages"][0]["uri"]
    (page,) = (await client.read_resource(uri)).contents
    assert "Aletsch" in getattr(page, "text", "")
    return messages, text_of(result)


def check(said: tuple[list[str], str], words: str = "155,000 hairs") -> None:
    """words: of the answer."""
    messages, answer = said
    assert messages[0] == "Searching"
    assert any(words in message for message in messages)
    assert words in answer
    assert "otters.pdf p.1" in answer


def endless(server: OllamaStandIn) -> None:
    """Makes the model write for minutes."""
    server.faults.endless, server.faults.between_pieces_s = "nothing", 0.02


async def cancel_while_it_answers(client: Client, model: OllamaStandIn) -> None:
    """Ask a model that writes for minutes, cancel the request once it writes, and ask for something else."""
    endless(model)
    asked, left = len(model.bodies("/api/chat")), model.left
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.call_tool, "ask", {"question": LENGTH})
        await anyio.to_thread.run_sync(until, lambda: len(model.bodies("/api/chat")) > asked)
        tasks.cancel_scope.cancel()
    await anyio.to_thread.run_sync(until, lambda: model.left > left)  # the model is asked to stop
    assert (await given(client, "search_passages", query="glacier"))["passages"]


@pytest.mark.parametrize(("era", "ends"), [("legacy", "leaves"), ("auto", "killed")])
def test_an_assistant_starts_it_as_a_program(
    ready: CliRunner, ollama_server: OllamaStandIn, era: Era, ends: str
) -> None:
    """It asks, cancels a question, and is in the middle of the next one when it leaves, or the server is killed."""
    ready.settings |= {"OLLAMA_HOST": ollama_server.url, "LLM": "ollama"}

    async def session(client: Client) -> tuple[list[str], str]:
        said = await talk(client)
        await cancel_while_it_answers(client, ollama_server)
        asked = len(ollama_server.bodies("/api/chat"))

        def end() -> None:
            until(lambda: len(ollama_server.bodies("/api/chat")) > asked)
            if ends == "killed":
                os.kill(server_of(ready), signal.SIGKILL)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask_in_vain, client, ends)
            await anyio.to_thread.run_sync(end)
            if ends == "leaves":
                tasks.cancel_scope.cancel()
        return said

    # the stand-in answers with the first sentence of the evidence
    check(over_stdio(ready, session, "--write", era=era), "Sea otters sleep on their backs")
    until(lambda: ollama_server.left == 2)
    assert "Traceback" not in (ready.folder / "mcp.err").read_text()
    with closing(Library(ready.store / "library.sqlite")) as library:
        assert library.check() == []


async def ask_in_vain(client: Client, ends: str) -> None:
    with pytest.raises(MCPError) if ends == "killed" else nullcontext():
        await client.call_tool("ask", {"question": LENGTH, "deep": True})


def server_of(desk: CliRunner) -> int:
    """The process of `folio mcp` that was started in this desk's folder."""
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0") if folder.name.isdigit() else []
            if b"mcp" in words and (folder / "cwd").resolve() == desk.folder.resolve():
                return int(folder.name)
    raise AssertionError("there is none")


def test_standard_output_has_the_protocol_alone_and_signals_end_it(ready: CliRunner) -> None:
    server = command(ready)
    first = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    lines = [
        "this is no JSON",
        "x" * (2**22 + 10),
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": first}),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        '{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "\\ud800"}}',
        json.dumps({"jsonrpc": "2.0", "id": 3, "method": "nothing/such"}),
        json.dumps({"jsonrpc": "2.0", "id": 4, "method": "tools/call",
                    "params": {"name": "search_passages", "arguments": {"query": "otter"}}}),
    ]  # fmt: skip
    process = subprocess.Popen(
        [server.command, *server.args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=server.env,
        cwd=server.cwd,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    process.stdin.write("\n".join(lines) + "\n")
    process.stdin.flush()
    replies: dict[Any, dict[str, Any]] = {}
    while 4 not in replies:
        reply = json.loads(process.stdout.readline())  # each line is of the protocol
        assert reply["jsonrpc"] == "2.0"
        replies[reply.get("id")] = reply
    assert replies[1]["result"]["serverInfo"]["name"] == "folio"
    assert replies[3]["error"]["code"] == -32601
    assert replies[4]["result"]["structuredContent"]["passages"]
    process.send_signal(signal.SIGTERM)  # its standard input is still open
    out, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, out) == (0, "")
    assert "Traceback" not in err


# Over HTTP


@pytest.fixture
def app(tmp_path: Path, ollama_server: OllamaStandIn) -> HashingApp:
    return small_app(tmp_path, OLLAMA_HOST=ollama_server.url)


@pytest.fixture
def live(app: HashingApp, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    monkeypatch.setattr(workers, "run_guarded", read_here)
    with Live(app, token=TOKEN) as running:
        yield running


@pytest.mark.parametrize("era", ERAS)
def test_the_web_server_offers_it(live: Live, era: Era) -> None:
    check(over_http(live.url, talk, token=TOKEN, era=era))


def test_two_clients_at_once_get_their_own_answers(live: Live) -> None:
    async def one(era: Era, question: str, expected: str) -> None:
        messages: list[str] = []

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            messages.append(message or "")

        async with http_client(live.url, TOKEN, era) as client:
            for _ in range(2):
                result = await client.call_tool("ask", {"question": question}, progress_callback=on_progress)
                assert expected in text_of(result)
        assert sum(expected in message for message in messages) == 2
        assert not any(("glacier" in expected) != ("glacier" in message) for message in messages if "." in message)

    async def both() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, "legacy", FUR, "155,000")
            tasks.start_soon(one, "auto", LARGEST, "largest glacier of the Alps")
            tasks.start_soon(one, "legacy", LARGEST, "largest glacier of the Alps")

    anyio.run(both)


def test_it_is_guarded_as_the_rest_of_the_api(live: Live) -> None:
    accepted = {"Accept": "application/json, text/event-stream", "Authorization": f"Bearer {TOKEN}"}
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    refused: list[tuple[int, dict[str, str], Any]] = [
        (401, {"Authorization": ""}, ping),
        (401, {"Authorization": "Bearer wrong"}, ping),
        (403, {"Origin": "https://evil.example"}, ping),
        (403, {"Host": "evil.example"}, ping),
        (403, {"Sec-Fetch-Site": "cross-site"}, ping),
        (415, {"Content-Type": "text/plain"}, ping),
        (413, {}, {**ping, "x": "y" * 10_100_000}),
        (413, {}, {**ping, "x": "y" * (mcp_http.MOST_BYTES + 1)}),
        (400, {}, ping),  # not of a session
    ]
    with live.client() as client:
        for status, headers, body in refused:
            assert client.post("/mcp", json=body, headers={**accepted, **headers}).status_code == status
        assert client.get("/mcp", headers={"Accept": "text/event-stream"}).status_code == 401
        assert client.get("/mcp", headers={**accepted, "Mcp-Session-Id": "../x"}).status_code == 404
        assert "/mcp" not in client.get("/openapi.json", headers=accepted).json()["paths"]


@pytest.mark.parametrize("writes", [False, True])
def test_it_reads_only_unless_the_server_was_told_otherwise(app: HashingApp, writes: bool) -> None:
    async def offered(client: Client) -> bool:
        if is_there := "add_note" in {tool.name for tool in (await client.list_tools()).tools}:
            await given(client, "add_note", paper="otters", words="Sea otters sleep on their backs", text="By MCP")
        return is_there

    with Live(app, assistants_write=writes) as running:
        assert over_http(running.url, offered) is writes
        assert [note["text"] for note in running.send("GET", "/notes")["notes"]] == ["By MCP"] * writes


class HeldEmbedder(HashingEmbedder):
    """It embeds no question before it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = threading.Event()

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        vectors = super().embed_queries(texts)
        assert self.let_go.wait(LIMIT_S)
        return vectors


@pytest.mark.parametrize(("tool", "argument"), [("search_passages", "query"), ("ask", "question")])
def test_cancelling_ends_a_search_at_its_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, argument: str
) -> None:
    embedder, app = HeldEmbedder(), small_app(tmp_path)
    app = replace(app, hashing=embedder)
    reranked, scores = list[Any](), BuiltinReranker.scores

    def counted(*given: Any) -> list[float]:
        reranked.append(given)
        return scores(*given)

    monkeypatch.setattr(BuiltinReranker, "scores", counted)
    threads: list[threading.Thread] = []

    async def cancelled(client: Client) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, tool, {argument: LARGEST})
            await anyio.to_thread.run_sync(until, lambda: embedder.queries)
            tasks.cancel_scope.cancel()
        threads.extend(thread for thread in threading.enumerate() if "AnyIO" in thread.name)
        embedder.let_go.set()

    in_memory(app, cancelled)
    for thread in threads:
        thread.join(LIMIT_S)
    assert (len(embedder.queries), reranked) == (1, [])


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("transport", ["memory", "http"])
def test_cancelling_ends_the_work_of_the_model_too(
    app: HashingApp, ollama_server: OllamaStandIn, era: Era, transport: str
) -> None:
    answering = replace(app, settings=app.settings.model_copy(update={"LLM": "ollama"}))

    async def cancelled(client: Client) -> None:
        await cancel_while_it_answers(client, ollama_server)

    if transport == "memory":
        in_memory(answering, cancelled, era=era)
    else:
        with Live(answering) as running:
            over_http(running.url, cancelled, era=era)


def test_the_sdk_is_imported_with_the_first_request() -> None:
    code = "import sys, folio.cli.mcp, folio.web.api; print([name for name in sys.modules if name.startswith('mcp')])"
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (ran.stdout, ran.returncode) == ("[]\n", 0)
