"""Requests to Folio's web API: in the process that a desk forks, or to a serve.py of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tests.helpers.paths import ROOT

if TYPE_CHECKING:
    from campaign.desk import Desk, Work

ACKNOWLEDGED = "acknowledged.jsonl"


@dataclass(frozen=True)
class Request:
    """upload: a path; chat: a message, which continues the conversation of the one before; remove: a SHA-256;
    conversations: nothing, and all turns are printed."""

    kind: Literal["upload", "chat", "remove", "conversations"]
    value: str


def session(desk: Desk, requests: Sequence[Request]) -> Work:
    """What a process does that sends these requests in turn; 1 if one is refused.

    What was answered is in the file `ACKNOWLEDGED` of the desk, one line for each.
    """

    def work() -> int:
        from folio.console import complain

        conversation = None
        with _client(desk) as client:
            for request in requests:
                reply, conversation = _send(client, request, conversation)
                if "error" in reply:
                    return complain(f"{request.kind} was refused: {reply['error']}", str(reply.get("remedy", "")), 1)
                with open(desk.root / ACKNOWLEDGED, "a", encoding="utf-8") as file:
                    file.write(json.dumps({"kind": request.kind, **reply}) + "\n")
                if request.kind == "conversations":
                    sys.stdout.write(json.dumps(reply["turns"]) + "\n")
        sys.stdout.flush()
        os._exit(0)  # no thread of the server has anything left to do

    return work


def acknowledged(desk: Desk) -> list[dict[str, Any]]:
    """What the last session was told had happened."""
    path = Path(desk.root / ACKNOWLEDGED)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _send(client: Any, request: Request, conversation: str | None) -> tuple[dict[str, Any], str | None]:
    if request.kind == "upload":
        path = Path(request.value)
        reply = client.post("/papers", files={"file": (path.name, path.read_bytes(), "application/pdf")})
        events = re.findall(r"^event: (\w+)\r?\ndata: (.*?)\r?$", reply.text, re.MULTILINE)
        if not reply.is_success:
            return _refused(reply), conversation
        if not events or events[-1][0] not in ("done", "error"):
            raise RuntimeError(f"The stream ended without done or error: {reply.text[-200:]}")
        return json.loads(events[-1][1]), conversation
    if request.kind == "chat":
        asked = {"message": request.value, **({"conversation": conversation} if conversation else {})}
        reply = client.post("/chat", json=asked)
        if not reply.is_success:
            return _refused(reply), conversation
        said = reply.json()
        kept = {"message": said["message"], "answer": said["answer"]}
        return {**kept, "saved": "could not be saved" not in said["notice"]}, said["conversation"]
    if request.kind == "remove":
        reply = client.delete(f"/papers/{request.value}")
        return (reply.json() if reply.is_success else _refused(reply)), conversation
    listed = client.get("/conversations")
    if not listed.is_success:
        return _refused(listed), conversation
    turns = {}
    for found in listed.json()["conversations"]:
        reply = client.get(f"/conversations/{found['id']}")
        if not reply.is_success:
            return _refused(reply), conversation
        turns[found["id"]] = [{"message": t["message"], "answer": t["answer"]} for t in reply.json()["turns"]]
    return {"turns": turns}, conversation


def _refused(reply: Any) -> dict[str, Any]:
    try:
        body = reply.json()
        return {"error": f"{reply.status_code} {body['error']}", "remedy": body["remedy"]}
    except (ValueError, KeyError, TypeError):
        raise RuntimeError(f"{reply.status_code} without a sentence: {reply.text[:200]}") from None


@contextmanager
def _client(desk: Desk) -> Iterator[Any]:
    if not desk.whole:
        from fastapi.testclient import TestClient

        from folio.app import from_environment
        from folio.console import say
        from folio.web.api import make_web
        from folio.web.guard import AccessRules

        web = make_web(from_environment(say), AccessRules(host="127.0.0.1", port=8420))
        # What it raises is answered with 500, as by a server, and its traceback is printed there.
        with TestClient(web, base_url="http://127.0.0.1:8420", raise_server_exceptions=False) as client:
            yield client
        return
    import httpx

    command = [sys.executable, str(ROOT / "serve.py"), "--port", "0"]
    served = subprocess.Popen(command, stdout=subprocess.PIPE, env=desk.environment(), cwd=desk.root, text=True)
    assert served.stdout
    found = re.search(r"http://\S+?:\d+/", served.stdout.readline())
    assert found, "serve.py did not start"
    with httpx.Client(base_url=found[0], timeout=300, trust_env=False) as client:
        yield client
