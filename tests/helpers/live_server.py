"""The web server at work in a thread, over real connections, and a store for it with the built-in models."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest
import uvicorn
from sse_starlette.sse import AppStatus
from starlette.types import ASGIApp, Receive, Scope, Send

from config import Settings
from folio.app import App
from folio.ingest import discovery
from folio.services.online import OnlineServices
from folio.store import indexes
from folio.system import workers
from folio.web.api import make_web
from folio.web.guard import AccessRules
from folio.web.server import make_config
from tests.helpers.fakes import RecordedProgress, read_once
from tests.helpers.paths import models_folder

LIMIT_S = 120
LATE_S = float(os.environ.get("LATE_S", "0"))  # such as 0.8
# For httpx: no proxy, and no certificates for https, which each client reads for 0.1 s.
HTTP_ONLY: dict[str, Any] = {"trust_env": False, "verify": False}


class Late:
    """ASGI middleware: each reply comes later, by LATE_S seconds at most. A test that counts on their order fails."""

    def __init__(self, web: ASGIApp) -> None:
        self._web = web

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not scope["path"].startswith("/assets/"):
            await asyncio.sleep(random.uniform(0, LATE_S))
        await self._web(scope, receive, send)


class Live:
    """A server at a port of the loopback address, a free one unless it is named, in a thread."""

    _left: ClassVar[list[int]] = []  # ports of earlier servers: a browser has their page's files in its cache

    def __init__(
        self, app: App, port: int = 0, *, is_online: bool = False, assistants_write: bool = False, **rules: Any
    ) -> None:
        """rules: further ones of AccessRules."""
        self._socket = self._listen(port)
        self.port: int = self._socket.getsockname()[1]
        online = OnlineServices(app.internet) if is_online else None
        access = AccessRules(host="127.0.0.1", port=self.port, **rules)
        web = make_web(app, access, online, assistants_write=assistants_write)
        self._server = uvicorn.Server(make_config(Late(web) if LATE_S else web))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})
        self.url = f"http://127.0.0.1:{self.port}"

    def _listen(self, port: int) -> socket.socket:
        if port == 0 and self._left:
            with suppress(OSError):  # another program has taken it
                return socket.create_server(("127.0.0.1", self._left.pop()))
        return socket.create_server(("127.0.0.1", port))

    def __enter__(self) -> Live:
        assert not AppStatus.should_exit, "uvicorn was told to exit in this process: all its streams end at once"
        self._thread.start()
        return self

    def stop(self) -> None:
        """As Ctrl-C does."""
        self._server.should_exit = True

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._thread.join(LIMIT_S)
        self._socket.close()
        assert not self._thread.is_alive()
        self._left.append(self.port)

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=LIMIT_S, **HTTP_ONLY)

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of the reply to a request, which must succeed; None without one."""
        with self.client() as client:
            reply = client.request(method, path, json=body)
            assert reply.is_success, reply.text
            return reply.json() if reply.content else None


def builtin_app(folder: Path, papers: Path, **chosen: str) -> App:
    """The tool with its built-in models over the papers of a folder, all of them ingested; settings by name."""
    app = new_builtin_app(folder, papers, **chosen)
    assert all(status == "added" for status in ingest(app))
    return app


def new_builtin_app(folder: Path, papers: Path, **chosen: str) -> App:
    """The same before the first ingest."""
    settings = Settings(
        _env_file=None,  # type: ignore[call-arg]
        PAPERS_DIR=papers,
        VECTORSTORE_DIR=folder / "store",
        INGESTED_JSON=folder / "ingested.json",
        MODELS_DIR=models_folder(),
        CROSS_ENCODER="nobody/has-this",
        NLI_MODEL="nobody/has-that",
        **{"CACHE_DIR": str(folder / "cache"), "EMBEDDER": "builtin", "LLM": "builtin", "RERANKER": "builtin"}
        | chosen,  # type: ignore[arg-type]
    )
    return App(settings, lambda text: None)


def ingest(app: App) -> list[str]:
    """What an ingest of the folder of papers does to each file."""
    with pytest.MonkeyPatch.context() as patch, indexes.writing(app.settings.VECTORSTORE_DIR):
        patch.setattr(workers, "run_guarded", read_once)
        files, _ = discovery.hash_files(discovery.find_pdfs([app.settings.PAPERS_DIR]), RecordedProgress())
        outcomes = list(app.ingest(files, RecordedProgress(), jobs=1, retry=frozenset()))
        app.finish_ingest()
    return [outcome.status for outcome in outcomes]


def until(holds: Callable[[], object]) -> None:
    """Wait for what must come to hold."""
    for _ in range(LIMIT_S * 50):
        if holds():
            return
        time.sleep(0.02)
    raise AssertionError("it never came to hold")
