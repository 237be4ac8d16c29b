"""deploy/Caddyfile in front of two servers: events come as they are sent, and a dead server is passed over."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from folio.web.server import FINISH_S
from tests.helpers.cli_runner import CliRunner
from tests.helpers.live_server import until
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.paths import ROOT
from tests.helpers.serve_process import WAIT_S, Served

pytestmark = [
    pytest.mark.skipif(shutil.which("caddy") is None, reason="caddy is not installed (Debian: caddy)"),
    pytest.mark.skipif(sys.platform == "win32", reason="servers are killed by a signal"),
]
TOKEN = "a-token-of-24-characters"
QUESTION = "How long is the Aletsch glacier?"
SENTENCES = ("The Aletsch glacier has a length of 23 kilometres [1].", "It is the longest glacier of the Alps [1].")


@dataclass
class Balanced:
    """A balancer in front of two servers, which ask one model."""

    url: str
    client: httpx.Client
    servers: list[Served]
    ports: list[int]
    model: OllamaStandIn


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def refuses_connections(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=WAIT_S).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.fixture(scope="module")
def balanced(two_papers: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Balanced]:
    home = tmp_path_factory.mktemp("balancer")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with ExitStack() as stack:
        model = stack.enter_context(OllamaStandIn())
        desk = CliRunner(two_papers, stack.enter_context(pytest.MonkeyPatch.context()))
        desk.settings |= {"LLM": "ollama", "OLLAMA_HOST": model.url, "VERIFIER": "none", "QUERY_LOG": "false"}
        desk.settings |= {"FOLIO_TOKEN": TOKEN, "PUBLIC_URL": url}
        ports = [free_port(), free_port()]
        # Both at once: a server takes a second or two to start.
        started = [Served(desk, "--port", str(each)) for each in ports]
        servers = [stack.enter_context(each) for each in started]
        settings = {
            "FOLIO_SERVERS": " ".join(f"127.0.0.1:{each}" for each in ports),
            "BALANCER_HOST": "127.0.0.1",
            "BALANCER_PORT": str(port),
            **{name: str(home) for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")},
        }
        command = ["caddy", "run", "--config", str(ROOT / "deploy" / "Caddyfile"), "--adapter", "caddyfile"]
        log = stack.enter_context((home / "log").open("wb"))
        balancer = subprocess.Popen(command, env={**os.environ, **settings}, stdout=log, stderr=log)
        stack.callback(balancer.wait, WAIT_S)
        stack.callback(balancer.terminate)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        client = httpx.Client(base_url=url, timeout=WAIT_S, headers=headers, trust_env=False, verify=False)
        stack.enter_context(client)
        until(lambda: answers(client))
        yield Balanced(url, client, servers, ports, model)


def sends_again() -> bool:
    """Whether this Caddy sends a question to another server if the first did not take it: caddy issue 7546."""
    shown = subprocess.run(["caddy", "version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", shown)
    return found is not None and tuple(map(int, found.groups())) >= (2, 11, 2)


def answers(client: httpx.Client) -> bool:
    try:
        return client.get("/alive").status_code == 204
    except httpx.TransportError:
        return False


def test_the_page_is_served_at_the_public_address_alone(balanced: Balanced) -> None:
    client = balanced.client
    assert all(server.url == f"{balanced.url}/" for server in balanced.servers)  # as the servers print it
    for headers, status in (
        ({"Origin": balanced.url}, 200),
        ({"Authorization": ""}, 401),
        ({"Origin": "http://evil.example"}, 403),
        ({"Host": "evil.example", "X-Forwarded-Host": balanced.url.partition("//")[2]}, 403),
    ):
        assert client.get("/health", headers=headers).status_code == status
    assert client.get("/").headers["content-security-policy"].startswith("default-src 'none'")


def test_events_come_as_they_are_sent(balanced: Balanced) -> None:
    balanced.model.reply = " ".join(SENTENCES)
    balanced.model.faults.between_pieces_s = 0.05
    came: dict[str, float] = {}
    with balanced.client.stream("POST", "/chat/stream", json={"message": QUESTION}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        for line in response.iter_lines():
            if line.startswith("event: "):
                came.setdefault(line.removeprefix("event: "), time.monotonic())
    balanced.model.faults.between_pieces_s = 0.0
    assert next(iter(came)) == "retrieved"
    assert came["done"] - came["retrieved"] > 0.5  # not all of them at the end


def test_long_questions_and_slow_answers_are_not_cut(balanced: Balanced) -> None:
    balanced.model.reply = " ".join(SENTENCES)
    balanced.model.faults.first_byte_s = 3.5  # longer than any time limit of the balancer
    long = f"{QUESTION} {'Is it so? ' * 990}"
    reply = balanced.client.post("/chat", json={"message": long})
    balanced.model.faults.first_byte_s = 0.0
    assert (reply.status_code, reply.json()["refused"]) == (200, False)
    assert any(long.strip() in json.dumps(body) for body in balanced.model.bodies("/api/chat"))


def test_a_client_that_leaves_ends_its_answer(balanced: Balanced) -> None:
    balanced.model.reply = "It is so " + "and so on " * 500
    balanced.model.faults.between_pieces_s = 0.05
    before = balanced.model.left
    with balanced.client.stream("POST", "/chat/stream", json={"message": QUESTION}) as response:
        assert any(line.startswith("event: retrieved") for line in response.iter_lines())
        until(lambda: balanced.model.bodies("/api/chat"))
    until(lambda: balanced.model.left > before)
    balanced.model.faults.between_pieces_s = 0.0


def test_a_server_that_was_killed_is_passed_over(balanced: Balanced) -> None:
    if not sends_again():
        pytest.skip("this Caddy is older than 2.11.2")
    balanced.model.reply = SENTENCES[0]
    balanced.servers[0].process.kill()
    balanced.servers[0].process.communicate(timeout=WAIT_S)
    until(lambda: refuses_connections(balanced.ports[0]))  # what it accepted before is lost with it
    for _ in range(6):  # GETs go to another server by themselves; a question must too
        assert balanced.client.get("/health").json()["status"] == "ready"
        reply = balanced.client.post("/chat", json={"message": QUESTION})
        assert (reply.status_code, reply.json()["refused"]) == (200, False)


def test_a_server_that_is_replaced_finishes_its_answers(balanced: Balanced) -> None:
    balanced.model.reply = "".join(f"The Aletsch glacier has a length of 23 kilometres [{n}]. " for n in [1] * 4)
    balanced.model.faults.between_pieces_s = 2 * FINISH_S / 24  # it takes longer than an answer gets after Ctrl-C
    process = balanced.servers[1].process
    with ThreadPoolExecutor() as pool:
        whole = pool.submit(balanced.client.post, "/chat", json={"message": QUESTION})
        with balanced.client.stream("POST", "/chat/stream", json={"message": QUESTION}) as response:
            lines = response.iter_lines()
            assert any(line.startswith("event: retrieved") for line in lines)
            until(lambda: len(balanced.model.bodies("/api/chat")) >= 2)
            process.terminate()
            assert [line for line in lines if line.startswith("event: ")][-1] == "event: done"
        assert (whole.result().status_code, whole.result().json()["refused"]) == (200, False)
    process.communicate(timeout=WAIT_S)
