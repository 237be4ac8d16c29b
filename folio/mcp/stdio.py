"""The server over standard input and output, one JSON object a line: for assistants that start it as a program.

The SDK's own transport reads and writes in threads that nothing can interrupt, so that Ctrl-C and SIGTERM would wait
for the client. Here the reader is a daemon, and a write that waits is given up.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, BinaryIO, cast

import anyio
from anyio import CapacityLimiter, to_thread
from mcp.server.stdio import stdio_server

from folio.app import App
from folio.mcp.server import make_server, stopping
from folio.mcp.tools import Backend
from folio.system.threads import leave

LONGEST_LINE = 2**22  # bytes of a message; a longer one is answered with an error
FINISH_S = 2.0  # for what still works when the client has left


def serve(app: App, *, writes: bool) -> None:
    """Serve the client that started this program, until it closes standard input."""
    received, sent = _own_streams()
    with suppress(KeyboardInterrupt, SystemExit):
        anyio.run(_serve, app, writes, received, sent)
    leave(FINISH_S)


def _own_streams() -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output for the protocol alone: what else reads gets nothing, what else prints is shown."""
    received, sent = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    sys.stdout.flush()
    os.dup2(2, 1)
    return received, sent


async def _serve(app: App, writes: bool, received: BinaryIO, sent: BinaryIO) -> None:
    server, requests = make_server(Backend(app, writes=writes))
    # The SDK's transport needs no more of a file than this.
    lines, output = cast(Any, _Lines(received)), cast(Any, _Output(sent))
    with anyio.CancelScope() as scope:
        for number in (signal.SIGINT, signal.SIGTERM):  # elsewhere they would be raised inside a task
            with suppress(NotImplementedError):  # Windows
                asyncio.get_running_loop().add_signal_handler(number, scope.cancel)
        async with stopping(requests), stdio_server(lines, output) as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())


class _Lines:
    """The lines of a file, read by a daemon thread."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        threading.Thread(target=self._read, name="stdin", daemon=True).start()

    def _read(self) -> None:
        try:
            while line := self._file.readline(LONGEST_LINE):
                if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                    while (rest := self._file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                        pass
                    line = b"{"  # which is refused
                self._put(line.decode(errors="replace"))
        finally:
            self._put(None)

    def _put(self, line: str | None) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._queue.put_nowait, line)

    async def __aiter__(self) -> AsyncIterator[str]:
        while (line := await self._queue.get()) is not None:
            yield line


class _Output:
    """A file that is written by threads that need not be waited for."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._slots = CapacityLimiter(1)

    async def write(self, text: str) -> None:
        await to_thread.run_sync(self._write, text.encode(), abandon_on_cancel=True, limiter=self._slots)

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]

    async def flush(self) -> None: ...
