"""Brings up deploy/compose.yaml, breaks it in every way that a person might meet, and prints whether it held.

    python scripts/try_compose.py
    python scripts/try_compose.py --papers FOLDER      with more PDFs than the sample and the made-up ones
    python scripts/try_compose.py --only rolling_restart full_volume

It needs Docker with Compose and the packages of requirements/development.txt; for `full_volume` root on Linux, which
mounts a small volume. The stack has its own project, folder and port, and is removed at the end. Ollama is left out, so
that answers come from the built-in models in a moment. It takes about fifteen minutes.

"Acknowledged" is what a client was told: an answer with status 200 must be in its conversation from then on, and a
paper that was listed must stay.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import pymupdf
import yaml

ROOT = Path(__file__).resolve().parent.parent
PROJECT = "foliotry"
SERVERS = ("folio-1", "folio-2")
# What a request may take: a connection to the database is tried again for 20 s
TIMEOUT_S = 60
_ISLES = "Brenholt Karvelo Mistrand Ovendal Pellworm Quarnes Rossvik Skarholm Tarvig Uldeby".split()
_SEAS = "North South East West Inner Outer Upper Lower Old New".split()
_BUILT_IN = {"LLM": "builtin", "EMBEDDER": "builtin", "RERANKER": "builtin", "VERIFIER": "none"}
# In a container: send a request to the server in it, and print status and body as JSON
_ASK_INSIDE = """
import json, sys, urllib.error, urllib.request
method, path, body = sys.argv[1:4]
token = open("/run/secrets/token").readline().strip()
headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
request = urllib.request.Request("http://127.0.0.1:8420" + path, body.encode() or None, headers, method=method)
try:
    with urllib.request.urlopen(request, timeout=60) as reply:
        print(json.dumps([reply.status, reply.read().decode(errors="replace")]))
except urllib.error.HTTPError as error:
    print(json.dumps([error.code, error.read().decode()]))
"""


@dataclass(frozen=True)
class Reply:
    """A status, 0 if none came, and a body: what JSON has, or the reason why none came."""

    status: int
    body: Any
    seconds: float = 0.0

    @property
    def answered(self) -> bool:
        return self.status == 200

    def __str__(self) -> str:
        said = f"{self.body['error']} {self.body['remedy']}" if self.is_plain else str(self.body)[:160]
        return f"{self.status} after {self.seconds:.1f} s: {said}"

    @property
    def is_plain(self) -> bool:
        """Whether it is an error as every other: a sentence of what happened, and one of what to do."""
        has_both = isinstance(self.body, dict) and {"error", "remedy"} <= self.body.keys()
        return has_both and "Traceback" not in str(self.body)


@dataclass
class Stack:
    """The running stack."""

    folder: Path
    port: int
    command: list[str]
    token: str = field(repr=False)
    build: tuple[str, ...]
    heights: dict[str, int] = field(default_factory=dict)  # lighthouse -> metres

    @property
    def papers(self) -> Path:
        return self.folder / "papers"

    # Docker

    def compose(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        base = [*self.command, "--project-name", PROJECT, "--project-directory", str(ROOT / "deploy")]
        return _run([*base, "--file", str(self.folder / "compose.yaml"), *arguments], check=check)

    def container(self, service: str) -> str:
        return self.compose("ps", "--quiet", service).stdout.strip().splitlines()[0]

    def inside(self, service: str, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return _run(["docker", "exec", self.container(service), *command], check=check)

    def kill(self, service: str) -> None:
        _run(["docker", "kill", "--signal", "KILL", self.container(service)])

    def start(self, service: str) -> None:
        _run(["docker", "start", self.container_of_any_state(service)])

    def container_of_any_state(self, service: str) -> str:
        label = f"label=com.docker.compose.service={service}"
        filters = ["--filter", f"label=com.docker.compose.project={PROJECT}", "--filter", label]
        return _run(["docker", "ps", "--all", "--quiet", "--no-trunc", *filters]).stdout.split()[0]

    def health(self, service: str) -> str:
        shown = ["docker", "inspect", "--format", "{{.State.Health.Status}}", self.container_of_any_state(service)]
        return _run(shown, check=False).stdout.strip()

    def until_healthy(self, *services: str, seconds: float = 120) -> float:
        return until(lambda: all(self.health(each) == "healthy" for each in services), seconds)

    # HTTP

    def ask_balancer(self, method: str, path: str, body: bytes = b"", kind: str = "application/json") -> Reply:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, body or None, headers, method=method)
        began = time.monotonic()
        status, content = 0, b""
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:
                status, content = reply.status, reply.read()
        except urllib.error.HTTPError as error:
            status, content = error.code, error.read()
        except (OSError, http.client.HTTPException) as error:
            content = repr(error).encode()
        return Reply(status, _parsed(content), time.monotonic() - began)

    def ask_server(self, server: str, method: str, path: str, body: dict[str, Any] | None = None) -> Reply:
        began = time.monotonic()
        sent = json.dumps(body) if body else ""
        done = self.inside(server, "python", "-c", _ASK_INSIDE, method, path, sent, check=False)
        try:
            status, content = json.loads(done.stdout)
        except ValueError:
            status, content = 0, done.stderr[-300:]
        return Reply(status, _parsed(content.encode()), time.monotonic() - began)

    def listed(self) -> set[str]:
        """The names of the files of the papers that are listed; empty if no list comes."""
        reply = self.ask_balancer("GET", "/papers")
        return {paper["file"] for paper in reply.body["papers"]} if reply.answered else set()

    def ask(self, n: int = 0) -> Reply:
        """The answer to a question, from either server."""
        return self.ask_balancer("POST", "/chat", json.dumps({"message": self.question(n)[0]}).encode())

    def is_kept(self, conversation: str, turns: int = 1) -> bool:
        reply = self.ask_balancer("GET", f"/conversations/{conversation}")
        return reply.answered and len(reply.body["turns"]) >= turns

    def question(self, n: int = 0) -> tuple[str, str]:
        """A question, and what its answer has."""
        names = sorted(self.heights)
        name = names[n % len(names)]
        return f"How many metres tall is the lighthouse of {name}?", f"{self.heights[name]} metres"

    # Papers

    def make_papers(self, count: int, pages: int = 3) -> set[str]:
        """New made-up papers in the folder; returns their names."""
        made = set()
        for _ in range(count):
            place = len(self.heights)
            name = f"{_SEAS[place // 10 % 10]} {_ISLES[place % 10]}" + (f" {place // 100}" if place >= 100 else "")
            self.heights[name] = 20 + place
            file = f"lighthouse-{place}.pdf"
            _write_paper(self.papers / file, name, self.heights[name], pages)
            made.add(file)
        return made

    def sql(self, statement: str, database: str = "folio") -> str:
        """What the superuser gets for it, unaligned."""
        psql = ("psql", "-U", "postgres", "-d", database, "-At", "-v", "ON_ERROR_STOP=1", "-c", statement)
        return self.inside("database", *psql).stdout.strip()

    def in_worker(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run a script of the shell in the worker; `any_database` is a file of passwords for every database."""
        passwords = "sed 's/:folio:folio:/:*:*:/' /tmp/.pgpass > /tmp/any && chmod 600 /tmp/any"
        done = self.inside("worker", "sh", "-c", f"{passwords}; {script}", check=False)
        self.inside("worker", "sh", "-c", "rm -rf /tmp/any /tmp/tried*", check=False)
        return done

    def ingest(self, *, seconds: float = 300) -> float:
        """Let the worker read what is new, and wait until every paper is listed."""
        self.compose("restart", "--timeout", "15", "worker")
        wanted = {path.name for path in self.papers.glob("*.pdf")}
        return until(lambda: wanted <= self.listed(), seconds)

    def faults(self) -> str:
        """What is wrong with the library and the indexes of the worker, once it rests; empty if nothing is."""
        found: list[str] = []

        def is_sound() -> bool:
            verify = self.inside("worker", "python", "ingest.py", "--verify", check=False)
            found.append(" ".join((verify.stdout + verify.stderr).split()))
            return verify.returncode == 0

        return "" if until(is_sound, 90) else found[-1]


class Stream:
    """Questions through the balancer, from several threads, until it is stopped."""

    def __init__(self, stack: Stack, threads: int = 3, pause_s: float = 0.1) -> None:
        self._stack, self._pause_s = stack, pause_s
        self._stop, self._lock = Event(), Lock()
        self.replies: list[Reply] = []
        self.kept: list[str] = []  # conversations that were acknowledged
        self.unsaved = 0  # answers that said so themselves: they were given, and not acknowledged
        self.wrong = 0
        self._threads = [Thread(target=self._ask, args=(n,), daemon=True) for n in range(threads)]

    def __enter__(self) -> Stream:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, n: int) -> None:
        while not self._stop.is_set():
            expected, reply = self._stack.question(n)[1], self._stack.ask(n)
            with self._lock:
                self.replies.append(reply)
                if reply.answered and "could not be saved" in json.dumps(reply.body):
                    self.unsaved += 1
                elif reply.answered:
                    self.kept.append(reply.body["conversation"])
                if reply.answered:
                    self.wrong += expected not in json.dumps(reply.body)
            n += len(self._threads)
            time.sleep(self._pause_s)

    def more(self, count: int) -> None:
        """Wait for this many further replies, however slow this computer is now."""
        wanted = len(self.replies) + count
        until(lambda: len(self.replies) >= wanted, 180)

    @property
    def failed(self) -> list[Reply]:
        return [reply for reply in self.replies if not reply.answered]

    def lost(self) -> int:
        """How many acknowledged conversations are gone."""
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(self._stack.is_kept, self.kept)).count(False)

    def summary(self) -> str:
        slowest = max((reply.seconds for reply in self.replies), default=0)
        text = f"{len(self.replies)} questions, {len(self.failed)} failed, slowest {slowest:.1f} s"
        said = [each.body["error"] if each.is_plain else each.body for each in self.failed]
        kinds = Counter(f"{each.status} {words}"[:110] for each, words in zip(self.failed, said, strict=True))
        if self.unsaved:
            text += f", {self.unsaved} said that they could not be saved"
        return text + "".join(f"; {count} x {kind}" for kind, count in kinds.most_common(3))


# What is tried. Each takes the stack, and returns whether it held, and what happened.

Held = tuple[bool, str]


def start(stack: Stack) -> Held:
    began = time.monotonic()
    stack.compose("up", "--detach", *stack.build)
    stack.until_healthy("database", *SERVERS, "balancer", seconds=300)
    healthy = time.monotonic() - began
    reply = stack.ask_balancer("POST", "/chat", b'{"message": "What is a chunk?"}')
    return reply.answered or reply.is_plain, f"all healthy after {healthy:.0f} s; a question at once: {str(reply)[:60]}"


def networks_apart(stack: Stack) -> Held:
    def reaches(service: str, host: str, port: int) -> bool:
        code = f"import socket; socket.create_connection(({host!r}, {port}), 3)"
        return stack.inside(service, "python", "-c", code, check=False).returncode == 0

    seen = _networks(stack, "balancer") & _networks(stack, "database")
    outwards = any(reaches(each, "1.1.1.1", 443) for each in (*SERVERS, "worker"))
    inwards = all(reaches(each, "database", 5432) for each in (*SERVERS, "worker"))
    wget = ["wget", "-q", "-T", "3", "-O", "/dev/null"]
    finds = [stack.inside("balancer", *wget, f"http://{host}:8420/alive", check=False).returncode for host in SERVERS]
    refused = stack.inside("balancer", *wget, "http://database:5432/", check=False).returncode != 0
    held = not seen and inwards and not outwards and refused and not any(finds)
    return held, f"Caddy finds no database; servers reach it: {inwards}; they reach the internet: {outwards}"


def few_rights(stack: Stack) -> Held:
    rights = "SELECT rolsuper OR rolcreaterole OR rolcreatedb FROM pg_roles WHERE rolname = 'folio'"
    role = stack.sql(rights, "postgres")
    secret = (stack.folder / "secrets/database_password").read_text().strip()
    superuser = "import psycopg, sys; psycopg.connect(f'postgresql://postgres:{sys.argv[1]}@database/postgres')"
    refused = stack.inside("worker", "python", "-c", superuser, secret, check=False).returncode != 0
    shown = stack.compose("config").stdout + stack.compose("logs", "--no-color").stdout
    leaked = secret in shown or stack.token in shown
    everything = (*SERVERS, "worker", "database", "balancer")
    users = {stack.inside(each, "id", "-u").stdout.strip() for each in everything}
    written = [each for each in everything if stack.inside(each, "touch", "/usr/tried", check=False).returncode == 0]
    held = role == "f" and refused and not leaked and not written and "0" not in users
    return held, (
        f"the role may nothing but its database: {role == 'f'}; the superuser is refused over the network: {refused};"
        f" users {sorted(users)}; a secret in logs or config: {leaked}; roots that can be written: {written}"
    )


def ingest(stack: Stack) -> Held:
    seconds = stack.ingest()
    return bool(seconds), f"{len(stack.listed())} papers listed after {seconds:.0f} s"


def both_servers_answer(stack: Stack) -> Held:
    replies = [(stack.question(n)[1], stack.ask(n)) for n in range(10)]
    right = sum(reply.answered and expected in json.dumps(reply.body) for expected, reply in replies)
    alone = []
    for server in SERVERS:
        question, expected = stack.question(3)
        reply = stack.ask_server(server, "POST", "/chat", {"message": question})
        alone.append(reply.answered and expected in json.dumps(reply.body))
    return right == 10 and all(alone), f"{right} of 10 right through Caddy; each server alone: {alone}"


def events_are_not_buffered(stack: Stack) -> Held:
    question, expected = stack.question(4)
    body = json.dumps({"message": question}).encode()
    reply = stack.ask_balancer("POST", "/chat/stream", body)
    kinds = [line[7:].strip() for line in str(reply.body).splitlines() if line.startswith("event: ")]
    held = reply.answered and kinds[:1] == ["retrieved"] and kinds[-1:] == ["done"] and expected in str(reply.body)
    return held, f"events {', '.join(dict.fromkeys(kinds))} (tests/deploy/test_balancer.py measures when they come)"


def conversation_moves(stack: Stack) -> Held:
    replies = []
    conversation: str | None = None
    for n, server in enumerate((*SERVERS, *SERVERS)):
        question, expected = stack.question(n)
        sent = {"message": question} | ({"conversation": conversation} if conversation else {})
        reply = stack.ask_server(server, "POST", "/chat", sent)
        replies.append(reply.answered and reply.body["turn"] == n + 1 and expected in json.dumps(reply.body))
        conversation = conversation or reply.body["conversation"]
    turns = [len(stack.ask_server(each, "GET", f"/conversations/{conversation}").body["turns"]) for each in SERVERS]
    return all(replies) and turns == [4, 4], f"asked in turn: {replies}; turns that each server reads: {turns}"


def two_servers_one_conversation(stack: Stack) -> Held:
    """A conversation answers one message at a time, whichever servers get them."""
    first = stack.ask_server(SERVERS[0], "POST", "/chat", {"message": stack.question(0)[0]})
    conversation = first.body["conversation"]
    sent = {"message": stack.question(1)[0], "conversation": conversation}
    with ThreadPoolExecutor(2) as pool:
        replies = list(pool.map(lambda server: stack.ask_server(server, "POST", "/chat", sent), SERVERS))
    turns = stack.ask_balancer("GET", f"/conversations/{conversation}").body["turns"]
    numbers = [turn["turn"] for turn in turns]
    told = sum(reply.answered for reply in replies)
    held = numbers == list(range(1, told + 2)) and all(reply.answered or reply.is_plain for reply in replies)
    refused = "; ".join(str(reply) for reply in replies if not reply.answered)
    return held, f"statuses {[reply.status for reply in replies]}, turns {numbers}; {refused}"


def pdf_from_the_database(stack: Stack) -> Held:
    papers = stack.ask_balancer("GET", "/papers").body["papers"]
    paper = next(each for each in papers if each["file"] == "lighthouse-5.pdf")
    path, away = stack.papers / paper["file"], stack.folder / paper["file"]
    shutil.move(path, away)
    try:
        replies = [stack.ask_server(each, "GET", f"/papers/{paper['id']}/pages/1.png") for each in SERVERS]
    finally:
        shutil.move(away, path)
    statuses = [reply.status for reply in replies]
    return statuses == [200, 200], f"a page of it, with its file gone: {statuses}"


def uploads(stack: Stack) -> Held:
    name = "Uploaded Isle"
    path = stack.folder / "uploaded.pdf"
    _write_paper(path, name, 999, 2)
    sent = stack.ask_balancer("POST", "/uploads?name=uploaded.pdf", path.read_bytes(), "application/pdf")
    upload = sent.body["id"]
    seen = [stack.ask_balancer("GET", "/uploads") for _ in range(6)]
    known = [any(each["id"] == upload for each in reply.body["uploads"]) for reply in seen]
    seconds = until(lambda: "uploaded.pdf" in stack.listed(), 60)
    held = sent.status == 202 and all(known) and seconds > 0
    return held, f"status {sent.status}; {sum(known)} of 6 looks at the queue saw it; listed after {seconds:.0f} s"


def server_killed(stack: Stack) -> Held:
    with Stream(stack) as stream:
        stream.more(10)
        stack.kill(SERVERS[0])
        stream.more(20)
        stack.start(SERVERS[0])
        stack.until_healthy(SERVERS[0])
        stream.more(10)
    lost = stream.lost()
    # What it was answering when it was killed fails: what a server has taken is not sent to another.
    held = len(stream.failed) <= 3 and not lost and not stream.wrong
    return held, f"{stream.summary()}; acknowledged and lost: {lost}"


def worker_killed(stack: Stack) -> Held:
    new = stack.make_papers(40, pages=6)
    before = stack.listed()
    stack.compose("restart", "--timeout", "15", "worker")
    until(lambda: len(stack.listed() & new) >= 3, 120)
    stack.kill("worker")
    at_kill = stack.listed()
    time.sleep(2)
    kept = at_kill <= stack.listed()
    meanwhile = stack.ask(1)
    stack.start("worker")
    seconds = until(lambda: new <= stack.listed(), 300)
    held = kept and before <= at_kill and len(at_kill & new) < len(new) and seconds > 0 and meanwhile.answered
    faults = stack.faults()
    when = f"killed after {len(at_kill & new)} of 40 papers; all there {seconds:.0f} s after its start"
    return held and not faults, f"{when}; --verify: {faults or 'nothing wrong'}"


def worker_cut_off(stack: Stack) -> Held:
    """Its computer loses the network, or its power: what it had taken to read must become free for another."""
    new = stack.make_papers(20, pages=6)
    stack.compose("restart", "--timeout", "15", "worker")
    until(lambda: bool(stack.listed() & new), 120)
    network, container = f"{PROJECT}_data", stack.container("worker")
    _run(["docker", "network", "disconnect", network, container])
    before = len(stack.listed() & new)
    try:
        seconds = until(lambda: _ingested_elsewhere(stack, new), 240)
    finally:
        _run(["docker", "network", "connect", "--alias", "worker", network, container])
    faults = stack.faults()
    elsewhere = len(stack.listed() & new)
    held = seconds > 0 and not faults
    return held, (
        f"cut off after {before} of 20 papers; a server read the others: {elsewhere} there after"
        f" {seconds:.0f} s; --verify: {faults or 'nothing wrong'}"
    )


def _ingested_elsewhere(stack: Stack, wanted: set[str]) -> bool:
    stack.inside(SERVERS[1], "python", "ingest.py", check=False)
    return wanted <= stack.listed()


def database_killed(stack: Stack) -> Held:
    new = stack.make_papers(25, pages=6)
    with Stream(stack) as stream:
        stack.compose("restart", "--timeout", "15", "worker")
        until(lambda: bool(stack.listed() & new), 120)
        stream.more(10)
        acknowledged = stack.listed()
        stack.kill("database")
        time.sleep(5)
        stack.start("database")
        stack.until_healthy("database")
        stream.more(15)
    lost, gone = stream.lost(), acknowledged - stack.listed()
    finished = until(lambda: new <= stack.listed(), 60)
    by_itself = bool(finished)
    if not by_itself:
        finished = stack.ingest()
    plain = all(reply.is_plain for reply in stream.failed)
    faults = stack.faults()
    held = not lost and not gone and finished > 0 and plain and not faults
    how = "went on by itself" if by_itself else "ended; the next run read the rest"
    return held, (
        f"{stream.summary()}; acknowledged and lost: {lost} questions, {len(gone)} papers; the ingest {how};"
        f" --verify: {faults or 'nothing wrong'}"
    )


def database_stays_away(stack: Stack) -> Held:
    """Longer than a request waits."""
    stack.compose("stop", "database")
    reply, looked = stack.ask(2), stack.ask_balancer("GET", "/papers")
    stack.start("database")
    stack.until_healthy("database")
    after = stack.ask(2)
    held = reply.is_plain and looked.is_plain and after.answered and stack.question(2)[1] in json.dumps(after.body)
    return held, f"meanwhile {reply}; afterwards {after.status} after {after.seconds:.1f} s"


def server_cut_off(stack: Stack) -> Held:
    network, server = f"{PROJECT}_data", SERVERS[0]
    container = stack.container(server)
    _run(["docker", "network", "disconnect", network, container])
    body = {"message": stack.question(3)[0]}
    try:
        alone = stack.ask_server(server, "POST", "/chat", body)
        through = [stack.ask(n) for n in range(6)]
    finally:
        _run(["docker", "network", "connect", "--alias", server, network, container])
    waited = until(lambda: stack.ask_server(server, "POST", "/chat", body).answered, 60)
    logs = _run(["docker", "logs", "--since", "5m", container])
    traceback = "Traceback" in logs.stdout + logs.stderr
    answered = sum(reply.answered for reply in through)
    held = (
        alone.is_plain and all(reply.answered or reply.is_plain for reply in through) and waited > 0 and not traceback
    )
    return held, (
        f"it said {alone}; through Caddy {answered} of 6 answered; it answers again {waited:.0f} s after;"
        f" traceback in its log: {traceback}"
    )


def rolling_restart(stack: Stack) -> Held:
    with Stream(stack, threads=4) as stream:
        stream.more(15)
        for server in SERVERS:
            stack.compose("restart", "--timeout", "75", server)
            stack.until_healthy(server)
            stream.more(15)
    lost = stream.lost()
    return not stream.failed and not lost, f"{stream.summary()}; acknowledged and lost: {lost}"


def replaced_containers(stack: Stack) -> Held:
    """As after a new image: a container is removed and made anew, with another address."""
    with Stream(stack, threads=4) as stream:
        stream.more(15)
        for server in SERVERS:
            stack.compose("up", "--detach", "--no-deps", "--force-recreate", server)
            stack.until_healthy(server)
            stream.more(15)
    lost = stream.lost()
    return not stream.failed and not lost, f"{stream.summary()}; acknowledged and lost: {lost}"


def backup(stack: Stack) -> Held:
    """pg_dump is enough: a copy of the database answers."""
    listed = len(stack.listed())
    steps = (
        "createdb -U postgres --owner=folio copy && pg_dump -U postgres -Fc folio > /tmp/dump"
        " && pg_restore -U postgres -d copy /tmp/dump && wc -c < /tmp/dump; rm -f /tmp/dump"
    )
    dumped = stack.inside("database", "sh", "-c", steps)
    size = int(dumped.stdout.split()[-1])
    question, expected = stack.question(6)
    there = "PGPASSFILE=/tmp/any DATABASE_URL=postgresql://folio@database/copy VECTORSTORE_DIR=/tmp/tried"
    answer = stack.in_worker(f"{there} INGESTED_JSON=/tmp/tried.json python query.py '{question}'")
    stack.inside("database", "dropdb", "-U", "postgres", "--force", "copy")
    held = expected in answer.stdout
    said = "right" if held else (answer.stdout + answer.stderr)[-300:]
    return held, f"{listed} papers, {size / 2**20:.1f} MB; asked from the copy: {said}"


def move_back(stack: Stack) -> Held:
    """`folio move` to a folder, and from there into another database."""
    question, expected = stack.question(7)
    stack.inside("database", "createdb", "-U", "postgres", "--owner=folio", "moved")
    here = "VECTORSTORE_DIR=/tmp/tried INGESTED_JSON=/tmp/tried.json"
    there = "PGPASSFILE=/tmp/any DATABASE_URL=postgresql://folio@database/moved"
    again = "VECTORSTORE_DIR=/tmp/tried-again INGESTED_JSON=/tmp/tried-again.json"
    done = stack.in_worker(
        f"{here} python -m folio move --to local && STORE=local {here} python query.py '{question}'"
        f" && {there} STORE=local {here} python -m folio move --to postgres"
        f" && {there} {again} python query.py '{question}'"
    )
    stack.inside("database", "dropdb", "-U", "postgres", "--force", "moved")
    held = done.returncode == 0 and done.stdout.count(expected) >= 2
    moved = [line for line in done.stdout.splitlines() if line.startswith("Moved")]
    return held, moved[-1] if held else (done.stdout + done.stderr)[-400:]


def role_that_reads(stack: Stack) -> Held:
    """It can ask; it cannot ingest or edit, and is told so."""
    secret = (stack.folder / "secrets/database_password").read_text().strip()
    stack.sql(f"CREATE ROLE reader LOGIN PASSWORD '{secret}'; GRANT pg_read_all_data TO reader")
    question, expected = stack.question(8)
    there = "PGPASSFILE=/tmp/any DATABASE_URL=postgresql://reader@database/folio VECTORSTORE_DIR=/tmp/tried"
    there += " INGESTED_JSON=/tmp/tried.json"
    asked = stack.in_worker(f"{there} python query.py '{question}'")
    edited = stack.in_worker(f"{there} python -m folio papers edit lighthouse-1.pdf year=1999")
    ingested = stack.in_worker(f"{there} python ingest.py")
    stack.sql("DROP OWNED BY reader; DROP ROLE reader")
    refused = [each.returncode != 0 and "Traceback" not in each.stderr for each in (edited, ingested)]
    said = " ".join((edited.stderr or edited.stdout).split())[-230:]
    return expected in asked.stdout and all(refused), f"asks: {expected in asked.stdout}; edit: {said}"


def full_volume(stack: Stack) -> Held:
    """The database on a small volume that runs full, and has room again."""
    if os.name == "nt" or os.geteuid() != 0:
        return True, "not tried: it needs root, to mount a small volume"
    volume = stack.folder / "small"
    volume.mkdir()
    stack.compose("down", "--volumes", "--timeout", "20")
    _run(["mount", "-t", "tmpfs", "-o", "size=220m,mode=1777", "tmpfs", str(volume)])
    try:
        _derive(stack, database=str(volume))
        stack.compose("up", "--detach")
        stack.until_healthy("database", *SERVERS, "balancer")
        if not stack.ingest():
            return False, "the first ingest did not end"
        filler = volume / "filler"
        with filler.open("wb") as file:
            file.write(b"\0" * max(0, shutil.disk_usage(volume).free - 3 * 2**20))
        acknowledged = stack.listed()
        new = stack.make_papers(40, pages=12)
        with Stream(stack, threads=2) as stream:
            stack.compose("restart", "--timeout", "15", "worker")
            full_after = until(lambda: "o space left" in _logs(stack, "worker") + _logs(stack, "database"), 150)
            stream.more(6)
            acknowledged |= stack.listed()
            said = " ".join(_logs(stack, "worker").split())
            room = shutil.disk_usage(volume).free
            filler.unlink()
            time.sleep(5)
            stack.until_healthy("database")
        lost, gone = stream.lost(), acknowledged - stack.listed()
        went_on = stack.ingest()
        plain = all(each.is_plain for each in stream.failed)
        held = full_after > 0 and not lost and not gone and went_on > 0 and stack.ask(1).answered and plain
        at = said.find("space left")
        words = said[max(0, at - 60) : at + 170] if at >= 0 else said[-170:]
        return held and new <= stack.listed(), (
            f"{room / 2**20:.1f} MB were left; {stream.summary()}; the worker said: ...{words}...; acknowledged and"
            f" lost: {lost} questions, {len(gone)} papers; the rest was read after room was made: {went_on > 0}"
        )
    finally:
        stack.compose("down", "--volumes", "--timeout", "20", check=False)
        _run(["umount", "--lazy", str(volume)], check=False)


CHECKS: tuple[Callable[[Stack], Held], ...] = (
    start,
    networks_apart,
    ingest,
    few_rights,
    both_servers_answer,
    events_are_not_buffered,
    conversation_moves,
    two_servers_one_conversation,
    pdf_from_the_database,
    uploads,
    server_killed,
    worker_killed,
    worker_cut_off,
    database_killed,
    database_stays_away,
    server_cut_off,
    rolling_restart,
    replaced_containers,
    backup,
    move_back,
    role_that_reads,
    full_volume,
)
_ALWAYS = (start, ingest)


# The stack


def _derive(stack: Stack, database: str = "") -> None:
    """compose.yaml as it is, but for Ollama, the port and the files of this run. database: a folder for its volume."""
    text = (ROOT / "deploy/compose.yaml").read_text(encoding="utf-8")
    given = {"PAPERS": str(stack.papers), "PUBLIC_URL": f"http://127.0.0.1:{stack.port}"}
    for name, value in given.items():
        text = text.replace(f"${{{name}:?set it in deploy/.env}}", value)
    made = yaml.safe_load(text)
    services = {name: each for name, each in made["services"].items() if not name.startswith("ollama")}
    for service in services.values():
        service.get("depends_on", {}).pop("ollama", None)
        if service["image"] == "folio:local":
            service["environment"] = {**service["environment"], **_BUILT_IN}
            service["build"] = {"context": str(ROOT), "dockerfile": "deploy/Dockerfile"}
    services["balancer"]["ports"] = [f"127.0.0.1:{stack.port}:8420"]
    made["services"] = services
    made["secrets"] = {name: {"file": str(stack.folder / "secrets" / name)} for name in made["secrets"]}
    if database:
        made["volumes"]["database"] = {"driver_opts": {"type": "none", "o": "bind", "device": database}}
    (stack.folder / "compose.yaml").write_text(yaml.safe_dump(made, sort_keys=False), encoding="utf-8")


@contextmanager
def stack_of(command: list[str], more: Path | None, build: tuple[str, ...], keep: bool) -> Iterator[Stack]:
    with tempfile.TemporaryDirectory(prefix="folio-try-") as name:
        folder = Path(name)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
        folder.chmod(0o755)
        stack = Stack(folder, port, command, secrets.token_urlsafe(32), build)
        stack.papers.mkdir()
        stack.papers.chmod(0o777)  # the containers' user adds papers
        for path in [*(ROOT / "papers").glob("*.pdf"), *(more.rglob("*.pdf") if more else ())]:
            shutil.copy(path, stack.papers / path.name)
        stack.make_papers(20)
        (folder / "secrets").mkdir(mode=0o755)
        (folder / "secrets/token").write_text(f"{stack.token}\n")
        (folder / "secrets/database_password").write_text(f"{secrets.token_urlsafe(32)}\n")
        _derive(stack)
        try:
            yield stack
        finally:
            if not keep:
                stack.compose("down", "--volumes", "--timeout", "20", check=False)
                with suppress(OSError):
                    shutil.rmtree(folder)


def _networks(stack: Stack, service: str) -> set[str]:
    shown = ["docker", "inspect", "--format", "{{json .NetworkSettings.Networks}}", stack.container(service)]
    return set(json.loads(_run(shown).stdout))


def _logs(stack: Stack, service: str) -> str:
    done = _run(["docker", "logs", "--since", "3m", stack.container_of_any_state(service)], check=False)
    return done.stdout + done.stderr


def _write_paper(path: Path, name: str, metres: int, pages: int) -> None:
    with pymupdf.open() as pdf:
        for number in range(pages):
            fact = f"The lighthouse of {name} is {metres} metres tall. " if number == 1 else ""
            year = 1700 + (metres * 13 + number) % 300
            filler = (
                f"Ships that pass {name} by night keep the light on their left, as chapter {number + 1} describes. "
                f"Keeper number {metres * 7 + number} of {name} wrote the log of the year {year}. "
            )
            page = pdf.new_page()
            page.insert_textbox((72, 72, 523, 770), f"{fact}{filler * 12}", fontsize=11)
        pdf.set_metadata({"title": f"On the Lighthouse of {name}"})
        content = pdf.tobytes()
    path.write_bytes(content)
    path.chmod(0o644)


def until(condition: Callable[[], bool], seconds: float) -> float:
    """Seconds until a condition holds; 0 if it does not in time."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        if condition():
            return max(time.monotonic() - began, 0.1)
        time.sleep(0.5)
    return 0.0


def _parsed(content: bytes) -> Any:
    text = content.decode(errors="replace")
    try:
        return json.loads(text)
    except ValueError:
        return text


def _run(command: list[str], *, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(command)[:200]}\n{(done.stderr or done.stdout)[-1000:]}")
    return done


def _compose_command() -> list[str]:
    if subprocess.run(["docker", "compose", "version"], capture_output=True).returncode == 0:
        return ["docker", "compose"]
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    raise SystemExit("Docker Compose is not installed.")


def main() -> int:
    parser = argparse.ArgumentParser(description="Bring up deploy/compose.yaml, break it, and say whether it held.")
    names = [check.__name__ for check in CHECKS]
    parser.add_argument("--papers", type=Path, metavar="FOLDER", help="more PDFs to read")
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=f"of {', '.join(names)}")
    parser.add_argument("--no-build", action="store_true", help="use the image folio:local as it is")
    parser.add_argument("--keep", action="store_true", help="leave the stack running")
    arguments = parser.parse_args()
    results: list[tuple[str, bool, str]] = []
    build = () if arguments.no_build else ("--build",)
    with stack_of(_compose_command(), arguments.papers, build, arguments.keep) as stack:
        for check in CHECKS:
            name = check.__name__
            if arguments.only and name not in arguments.only and check not in _ALWAYS:
                continue
            try:
                held, detail = check(stack)
            except Exception as error:  # the others are tried all the same
                held, detail = False, f"{type(error).__name__}: {error}"
            results.append((name, held, detail))
            print(f"{'held' if held else 'FAILED':7}{name.replace('_', ' ')}: {detail}", flush=True)
    print("\n| what | held | what happened |\n| --- | --- | --- |")
    for name, held, detail in results:
        words = " ".join(detail.split()).replace("|", "/")
        print(f"| {name.replace('_', ' ')} | {'yes' if held else 'NO'} | {words} |")
    return 0 if all(held for _, held, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main())
