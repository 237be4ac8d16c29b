"""serve.py in a process of its own, as a person runs it."""

from __future__ import annotations

import queue
import re
import signal
import subprocess
import sys
import threading
from types import TracebackType
from typing import Self

import httpx
import pytest

from tests.helpers.cli_runner import CliRunner
from tests.helpers.paths import ROOT

WAIT_S = 120.0
LINE = re.compile(
    r"Folio is at (http://(\S+?):(\d+)/)(\?token=TOKEN, with your token for TOKEN)? - Ctrl-C stops it\.\n"
)


class Served:
    """serve.py in a process of its own, ended by Ctrl-C; `out` and `err` are what it printed."""

    def __init__(self, desk: CliRunner, *arguments: str, **more: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "serve.py"), "--port", "0", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**desk.environment(), **more},
            cwd=desk.folder,
            text=True,
        )
        self.out = self.err = ""

    def __enter__(self) -> Self:
        lines: queue.Queue[str] = queue.Queue()
        assert self.process.stdout
        reading = threading.Thread(target=lambda out: lines.put(out.readline()), args=(self.process.stdout,))
        reading.start()
        try:
            self.first = lines.get(timeout=WAIT_S)
        except queue.Empty:
            self.process.kill()
        reading.join()
        found = LINE.fullmatch(self.first)
        if not found:
            self.process.kill()
            pytest.fail(f"It did not start: {self.process.communicate()}")
        self.url, self.port = found[1], int(found[3])
        self.client = httpx.Client(base_url=self.url, timeout=WAIT_S, trust_env=False, verify=False)
        return self

    def interrupt(self) -> int:
        """Ctrl-C, and the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            self.out, self.err = self.process.communicate(timeout=WAIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        return self.process.returncode

    def kill(self) -> None:
        """As a crash or the end of the computer does."""
        self.process.kill()
        self.out, self.err = self.process.communicate(timeout=WAIT_S)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.client.close()
        if self.process.returncode is None:
            self.interrupt()
