"""The official SDK's client of the Model Context Protocol, at each of the transports, for tests that are not async."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal, TypeVar

import anyio
import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

from folio.app import App
from folio.mcp.server import make_server, stopping
from folio.mcp.tools import Backend
from tests.helpers.cli_runner import CliRunner
from tests.helpers.live_server import LIMIT_S

T = TypeVar("T")
Era = Literal["legacy", "auto"]  # with an `initialize` and a session, or each request by itself
ERAS: tuple[Era, ...] = ("legacy", "auto")
Talk = Callable[[Client], Awaitable[T]]


def in_memory(app: App, talk: Talk[T], *, writes: bool = False, era: Era = "auto") -> T:
    """What a conversation with a server in this process gives, without a transport."""

    async def run() -> T:
        server, requests = make_server(Backend(app, writes=writes))
        async with stopping(requests):
            return await _talk(Client(server, mode=era), talk)

    return anyio.run(run)


async def _talk(client: AbstractAsyncContextManager[Client], talk: Talk[T]) -> T:
    """An error of `talk` is raised as it is, not in the groups of the client's tasks."""
    said: list[T] = []
    error: Exception | None = None
    async with client as opened:
        try:
            said.append(await talk(opened))
        except Exception as raised:
            error = raised
    if error is not None:
        raise error
    return said[0]


def over_stdio(desk: CliRunner, talk: Talk[T], *arguments: str, era: Era = "auto") -> T:
    """The same with `folio mcp` in a process of its own."""

    async def run() -> T:
        with open(desk.folder / "mcp.err", "a") as errors:
            return await _talk(Client(stdio_client(command(desk, *arguments), errlog=errors), mode=era), talk)

    return anyio.run(run)


def command(desk: CliRunner, *arguments: str) -> StdioServerParameters:
    """What an assistant is told to start."""
    words = ["-P", "-W", "error", "-m", "folio", "mcp", *arguments]
    environment = {**desk.environment(), "PYTHONPATH": sys.path[0]}
    return StdioServerParameters(command=sys.executable, args=words, env=environment, cwd=desk.folder)


def over_http(url: str, talk: Talk[T], *, token: str = "", era: Era = "auto") -> T:
    """The same with /mcp of a server."""

    async def run() -> T:
        return await _talk(http_client(url, token, era), talk)

    return anyio.run(run)


@asynccontextmanager
async def http_client(url: str, token: str = "", era: Era = "auto") -> AsyncIterator[Client]:
    """An open client of /mcp."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(headers=headers, trust_env=False, verify=False, timeout=LIMIT_S) as http:
        transport = streamable_http_client(f"{url.rstrip('/')}/mcp", http_client=http)
        async with Client(transport, mode=era) as client:
            yield client


async def given(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured result of a tool, which must succeed."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    structured: dict[str, Any] = result.structured_content
    return structured


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """The error of a tool, which must fail."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, text_of(result)
    return text_of(result)


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert content.type == "text"
    return content.text
