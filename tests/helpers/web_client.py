"""Clients of the web API over a small store, and what its replies say."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from folio.app import App
from folio.system import workers
from folio.web.api import make_web
from folio.web.guard import AccessRules
from tests.helpers.factories import small_papers
from tests.helpers.fakes import HashingApp, HashingEmbedder, hashing_app, read_once

TOKEN = "a-token-of-24-characters"
NOBODY = "0" * 64  # the id of no paper


def small_app(folder: Path, hashing: HashingEmbedder | None = None, **settings: Any) -> HashingApp:
    """The tool over the papers of a folder, the two small ones unless it has others, read without processes."""
    chosen = {"LLM": "builtin", "RERANKER": "builtin", "CHUNK_SIZE": 300, "CHUNK_OVERLAP": 50, **settings}
    app = hashing_app(folder, hashing, **chosen)
    if not app.settings.PAPERS_DIR.exists():
        small_papers(app.settings.PAPERS_DIR)
    if not app.library_path.exists():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(workers, "run_guarded", read_once)
            app.run()
    return app


def client_of(app: App, token: str | None = None) -> TestClient:
    """A client of the tool's API; an error of the server is a response with status 500."""
    web = make_web(app, AccessRules(host="127.0.0.1", port=8420, token=token))
    return TestClient(web, base_url="http://127.0.0.1:8420", raise_server_exceptions=False)


def json_of(response: Any, status: int = 200) -> dict[str, Any]:
    """The JSON of a response with this status."""
    assert response.status_code == status, response.text
    body: dict[str, Any] = response.json()
    return body


def refusal(response: Any, status: int) -> str:
    """The error message of a response with this status, which has the usual form."""
    body = json_of(response, status)
    assert body.keys() - {"field"} == {"error", "remedy"}
    assert body["error"].startswith(body.get("field", ""))
    assert body["remedy"]
    return str(body["error"])


def ask(client: Any, message: str, **more: Any) -> dict[str, Any]:
    """The reply to a question."""
    return json_of(client.post("/chat", json={"message": message, **more}))


def events_in(text: str) -> list[tuple[str, dict[str, Any]]]:
    """The kind and the data of each event of a stream."""
    events = []
    for block in text.replace("\r\n", "\n").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "event" in fields:
            events.append((fields["event"], json.loads(fields["data"])))
    return events


def ask_streamed(client: Any, message: str, **more: Any) -> list[tuple[str, dict[str, Any]]]:
    """The events of a streamed answer, after the one that says that the question was stored."""
    response = client.post("/chat/stream", json={"message": message, **more})
    assert response.status_code == 200, response.text
    (kind, asked), *events = events_in(response.text)
    assert (kind, asked["message"], asked["state"]) == ("asked", message, "running")
    return events


def papers_by_file(client: Any, **query: Any) -> dict[str, dict[str, Any]]:
    """The papers that are listed for a query, by the names of their files."""
    return {paper["file"]: paper for paper in json_of(client.get("/papers", params=query))["papers"]}


def send_request(port: int, path: str, body: dict[str, Any] | None = None) -> socket.socket:
    """A connection on which this request was sent: a POST if it has a body, otherwise a GET."""
    content = json.dumps(body).encode() if body else b""
    connection = socket.create_connection(("127.0.0.1", port), timeout=120)
    headers = f"Host: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: {len(content)}"
    connection.sendall(f"{'POST' if body else 'GET'} {path} HTTP/1.1\r\n{headers}\r\n\r\n".encode() + content)
    return connection
