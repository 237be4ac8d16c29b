"""serve.py from the command line: arguments it refuses, requests it refuses, start and shutdown."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from config import Settings
from folio.app import App
from tests.helpers.cli_runner import CliRunner
from tests.helpers.factories import GLACIERS, write_pdf
from tests.helpers.live_server import until
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.paths import ROOT
from tests.helpers.serve_process import WAIT_S, Served

TOKEN = "a-token-of-24-characters"
MAKE_ONE = (
    'Make one with python -c "import secrets; print(secrets.token_urlsafe())" and put it into FOLIO_TOKEN, or into a'
    " file for --token-file."
)
QUESTION = "How long is the Aletsch glacier?"
FIRST = "The Aletsch glacier has a length of 23 kilometres"


@pytest.fixture(scope="module")
def served(two_papers: Path) -> Iterator[Served]:
    """A server with two papers, for tests that do not change them."""
    with pytest.MonkeyPatch.context() as patch, Served(CliRunner(two_papers, patch)) as found:
        yield found


def raw(served: Served, request: bytes) -> bytes:
    """The status line of the response to raw bytes."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=WAIT_S) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(65536), b"")).partition(b"\r\n")[0]


# Arguments


NOT_HERE = "{} is not an address of this computer."
OMIT = "Leave out --host, or give an address of this computer."
REQUIRED = "Other computers can reach {}, so a token is required."
TOO_SHORT = "The token is shorter than 16 characters."


@pytest.mark.parametrize(
    ("arguments", "public", "happened", "remedy"),
    [
        (["--host", "0.0.0.0"], "", REQUIRED.format("0.0.0.0"), MAKE_ONE),
        (["--host", "::"], "", REQUIRED.format("::"), MAKE_ONE),
        (["--host", "localhost."], "", REQUIRED.format("localhost."), MAKE_ONE),
        ([], "https://papers.example.org", REQUIRED.format("papers.example.org"), MAKE_ONE),
        ([], "https://example.org/folio/", REQUIRED.format("example.org"), MAKE_ONE),
        (["--token", "x" * 15], "", TOO_SHORT, MAKE_ONE),
        (["--host", "0.0.0.0", "--token", ""], "", TOO_SHORT, MAKE_ONE),
        (["--token", "sixteen;letters&more"], "", "The token has characters other than A-Z, a-z, 0-9, and . _ ~ -",
         MAKE_ONE),
        (["--host", "192.0.2.1", "--token", TOKEN], "", NOT_HERE.format("192.0.2.1"), OMIT),  # RFC 5737: documentation
        (["--host", "a..b", "--token", TOKEN], "", NOT_HERE.format("a..b"), OMIT),
    ],
)  # fmt: skip
def test_an_address_or_token_that_cannot_be_used_is_refused(
    desk: CliRunner, arguments: Sequence[str], public: str, happened: str, remedy: str
) -> None:
    desk.settings["PUBLIC_URL"] = public
    ran = desk.serve("--port", "0", *arguments)
    assert (ran.code, ran.out, ran.err.splitlines()) == (2, "", [happened, remedy])


@pytest.mark.parametrize("port", ["65536", "-1", "http", "80.5", "", "²"])
def test_port_is_a_number(desk: CliRunner, port: str) -> None:
    with pytest.raises(SystemExit) as ended:
        desk.serve(f"--port={port}")
    assert ended.value.code == 2
    assert desk.capsys
    assert "must be a number from 1 to 65535, or 0 for any free port" in desk.capsys.readouterr().err


def test_a_port_in_use_is_reported_in_two_lines(desk: CliRunner) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        ran = desk.spawn("serve.py", "--port", str(port))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines() == [
        f"Port {port} is already in use, by another Folio or another program.",
        "Use the Folio that is running, or choose another port: --port 0 finds a free one.",
    ]


# Requests


def test_it_prints_its_address_and_answers_there(served: Served) -> None:
    assert served.first == f"Folio is at http://127.0.0.1:{served.port}/ - Ctrl-C stops it.\n"
    response = served.client.get("/health")
    assert (response.status_code, response.json()["status"]) == (200, "ready")
    assert "server" not in response.headers
    assert response.headers["x-content-type-options"] == "nosniff"
    assert served.client.get(f"http://localhost:{served.port}/health").status_code == 200


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {"Host": "evil.example"}, 403),
        ("GET", {"Origin": "null"}, 403),
        ("GET", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, 403),
        ("POST", {"Content-Type": "text/plain"}, 415),
    ],
)
def test_another_site_is_refused(served: Served, method: str, headers: dict[str, str], status: int) -> None:
    content = b'{"message": "What?"}' if method == "POST" else None
    response = served.client.request(method, "/chat", content=content, headers=headers)
    assert response.status_code == status
    assert list(response.json()) == ["error", "remedy"]
    assert "default-src 'none'" in response.headers["content-security-policy"]


def test_the_request_line_does_not_bypass_the_host_check(served: Served) -> None:
    for request in (
        f"GET http://127.0.0.1:{served.port}/health HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        "GET /health HTTP/1.0\r\n\r\n",
        "GET /health HTTP/1.0\r\nHost:\r\n\r\n",
    ):
        assert raw(served, request.encode()) == b"HTTP/1.1 403 Forbidden"


def test_websocket_is_not_opened(served: Served) -> None:
    upgrade = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n"
    headers = f"Host: localhost:{served.port}\r\nConnection: Upgrade, close\r\n{upgrade}"
    assert b" 101 " not in raw(served, f"GET /health HTTP/1.1\r\n{headers}\r\n".encode())


@pytest.mark.parametrize("whole", [True, False], ids=["with Content-Length", "chunked"])
def test_an_oversized_message_is_refused_and_drained(served: Served, *, whole: bool) -> None:
    size, piece = 64, b" " * 1_000_000
    content = piece * size if whole else (piece for _ in range(size))
    response = served.client.post("/chat", content=content, headers={"Content-Type": "application/json"})
    assert response.status_code == 413
    assert list(response.json()) == ["error", "remedy"]
    assert served.client.get("/health").status_code == 200


@pytest.mark.parametrize(
    ("path", "whole", "status"),
    [
        *((path, True, 413) for path in ("/chat", "/uploads", "/nowhere")),
        ("/chat", False, 413),
        ("/nowhere", False, 404),  # nobody reads it
        ("/chat?", True, 403),
        ("/chat?", False, 403),
    ],
)
def test_a_refused_body_is_not_read_to_its_end(served: Served, path: str, status: int, *, whole: bool) -> None:
    host = "evil.example" if status == 403 else f"localhost:{served.port}"
    kind = "application/pdf" if path == "/uploads" else "application/json"
    length = "Content-Length: 99999999999" if whole else "Transfer-Encoding: chunked"
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\n{length}\r\n\r\n"
    content = b"%PDF-1.7" + b" " * 999_992
    piece = content if whole else b"%x\r\n%b\r\n" % (len(content), content)
    sent = 0
    with socket.create_connection(("127.0.0.1", served.port), timeout=WAIT_S) as connection:
        connection.sendall(head.encode())
        with suppress(ConnectionError):  # the server has closed it
            while sent < 3000:
                connection.sendall(piece)
                sent += 1
        assert sent < 800, "megabytes were taken"
    with socket.create_connection(("127.0.0.1", served.port), timeout=WAIT_S) as connection:
        connection.sendall(head.encode() + (b"" if whole else piece * 20))
        reply = b"".join(iter(lambda: connection.recv(65536), b""))
    assert reply.startswith(b"HTTP/1.1 %d " % status)
    assert b"connection: close" in reply.lower()


def test_a_connection_is_kept_after_a_short_refused_request(served: Served) -> None:
    for _ in range(2):
        response = served.client.post("/chat", content=b"{}", headers={"Content-Type": "text/plain"})
        assert (response.status_code, response.headers.get("connection")) == (415, None)


# The token


def test_what_serving_imports_is_there_before_the_page_is_announced(ready: CliRunner) -> None:
    """Ctrl-C during an import may be lost."""
    command = [sys.executable, "-X", "importtime", str(ROOT / "serve.py"), "--port", "0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=ready.environment(), cwd=ready.folder, text=True
    )
    assert process.stdout is not None
    line = next(line for line in process.stdout if line.startswith("Folio is at"))
    assert httpx.get(f"{line.split()[3]}health", timeout=WAIT_S).status_code == 200
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0
    assert not re.search(r"\| +(?:uvicorn|h11|asyncio)\b", out)


# Ctrl-C in the callback of a weak reference, once the page is announced. In a process of its own: all streams of a
# process in which uvicorn has once been told to exit end at once.
PRESS = """
import signal, socket, weakref
from folio.web.server import serve

class Thing: ...

async def web(scope, receive, send):
    raise AssertionError("nobody asks")

things = [Thing()]
noticed = weakref.ref(things[0], lambda _: signal.raise_signal(signal.SIGINT))
try:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serve(web, listening, announce=things.clear)
except KeyboardInterrupt:
    print("interrupted", noticed())
"""


def test_ctrl_c_is_not_lost_once_the_page_is_announced() -> None:
    """Python ignores an exception in the callback of a weak reference, where KeyboardInterrupt may be raised."""
    ran = subprocess.run([sys.executable, "-c", PRESS], cwd=ROOT, capture_output=True, text=True, timeout=WAIT_S)
    assert (ran.returncode, ran.stdout) == (0, "interrupted None\n"), ran.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal of POSIX")
@pytest.mark.parametrize("is_typed", [True, False], ids=["typed", "from the environment"])
def test_only_a_typed_token_is_shown_at_the_terminal(ready: CliRunner, *, is_typed: bool) -> None:
    import pty

    mine, its = pty.openpty()
    command = [sys.executable, str(ROOT / "serve.py"), "--port", "0", *(("--token", TOKEN) if is_typed else ())]
    env = {**ready.environment(), **({} if is_typed else {"FOLIO_TOKEN": TOKEN})}
    process = subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=env, cwd=ready.folder)
    os.close(its)
    with os.fdopen(mine, encoding="utf-8", errors="replace") as terminal:
        line = next(line for line in terminal if line.startswith("Folio is at"))
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 0
    assert (f"?token={TOKEN} - Ctrl-C" in line) == is_typed
    assert (TOKEN in line) == is_typed


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_token_file_hides_the_token_from_other_users(ready: CliRunner, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    with Served(ready, "--host", "0.0.0.0", "--token-file", str(tmp_path / "token")) as served:
        name = socket.gethostname()
        assert served.url == f"http://{name}:{served.port}/"
        assert TOKEN not in Path(f"/proc/{served.process.pid}/cmdline").read_text()
        at, token = f"http://127.0.0.1:{served.port}/health", {"Authorization": f"Bearer {TOKEN}"}
        for headers, status in (
            ({}, 401),
            (token, 200),
            ({**token, "Host": f"{name}:{served.port}"}, 200),
            ({**token, "Host": f"evil.example:{served.port}"}, 403),
        ):
            assert served.client.get(at, headers=headers).status_code == status
        assert served.interrupt() == 0
    assert TOKEN not in served.first + served.out + served.err  # a container keeps what it prints


def test_token_files_that_cannot_be_used(desk: CliRunner, tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff" * 20)
    (tmp_path / "empty").touch()
    for name, happened in (
        ("bytes", f"{tmp_path / 'bytes'} cannot be read: it is not plain text."),
        ("nowhere", f"{tmp_path / 'nowhere'} cannot be read: No such file or directory."),
        (".", f"{tmp_path} cannot be read: Is a directory."),
        ("empty", "The token is shorter than 16 characters."),
    ):
        ran = desk.serve("--port", "0", "--token-file", str(tmp_path / name))
        assert (ran.code, ran.out, ran.err.splitlines()[0]) == (2, "", happened)


# Start and shutdown


def test_the_token_is_in_no_record_of_the_settings() -> None:
    settings = App(Settings(FOLIO_TOKEN=TOKEN), pytest.fail).settings_used()  # type: ignore[arg-type]
    assert ("TOP_K" in settings, TOKEN in str(settings)) == (True, False)


@pytest.fixture
def slow(ready: CliRunner, ollama_server: OllamaStandIn) -> CliRunner:
    """A CLI runner whose answers take longer than any test waits."""
    ready.settings |= {"LLM": "ollama", "OLLAMA_HOST": ollama_server.url, "ANSWER_FORMAT": "statements"}
    ollama_server.reply = lambda messages: f"{FIRST} [1]. It is so " + "and so on " * 500
    ollama_server.faults.between_pieces_s = 0.2
    return ready


@pytest.fixture
def browsed(ready: CliRunner, tmp_path: Path) -> Path:
    """Where the address is that a browser was opened with."""
    opened, browser = tmp_path / "opened", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s" "$1" > {opened}.part && mv {opened}.part {opened}\n')
    browser.chmod(0o755)
    ready.settings["BROWSER"] = f"{browser} %s"
    return opened


@pytest.mark.skipif(sys.platform == "win32", reason="the browser is a shell script")
def test_open_passes_the_address_to_the_browser(ready: CliRunner, browsed: Path) -> None:
    with Served(ready, "--open") as served:
        until(browsed.exists)
        assert browsed.read_text() == served.url


@pytest.mark.skipif(sys.platform == "win32", reason="the browser is a shell script")
def test_the_address_with_the_token_opens_the_page(ready: CliRunner, browsed: Path) -> None:
    with Served(ready, "--open", "--token", TOKEN) as served:
        assert served.client.get("/health").status_code == 401
        opened = served.client.get("/", params={"token": TOKEN})
        assert (opened.status_code, opened.headers["location"]) == (303, "/")
        assert served.client.get("/health").status_code == 200  # by the cookie
        assert served.interrupt() == 0
    assert TOKEN not in served.first + served.out + served.err
    assert ("its address would show the token" in served.err, browsed.exists()) == (True, False)


@pytest.mark.parametrize(
    "silent",
    [pytest.param(False, id="the model writes"), pytest.param(True, id="the model is silent", marks=pytest.mark.slow)],
)
def test_ctrl_c_during_answers_exits_cleanly(slow: CliRunner, ollama_server: OllamaStandIn, *, silent: bool) -> None:
    if silent:
        ollama_server.faults.first_byte_s = 3 * WAIT_S
        ollama_server.faults.paths = ("/api/chat",)
    with Served(slow) as served, ThreadPoolExecutor() as pool:

        def ask() -> bool:
            try:
                return served.client.post("/chat", json={"message": QUESTION}).is_success
            except httpx.TransportError:
                return False

        succeeded = pool.submit(ask)
        until(lambda: bool(ollama_server.bodies("/api/chat")))
        with served.client.stream("POST", "/chat/stream", json={"message": QUESTION}) as response:
            lines = response.iter_lines()
            assert any(("event: retrieved" if silent else FIRST) in line for line in lines)
            assert served.interrupt() == 0
        assert not succeeded.result()
    assert (served.out, served.err) == ("", "")


def test_ctrl_c_during_an_upload_exits_cleanly_and_leaves_nothing(desk: CliRunner) -> None:
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin", "EMBED_BATCH": "2"}
    long = write_pdf(desk.folder / "long.pdf", [f"Page {number}. " + " ".join(GLACIERS * 6) for number in range(24)])
    with (
        Served(desk) as served,
        served.client.stream("POST", "/papers", files={"file": ("long.pdf", long.read_bytes())}) as response,
    ):
        assert any(re.search(r'"stage": ?"embedding", ?"done": ?[1-9]', line) for line in response.iter_lines())
        assert served.interrupt() == 0
    assert (served.out, served.err) == ("", "")
    assert list(desk.papers.rglob("*.pdf")) == []
