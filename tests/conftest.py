"""Fixtures that several tests share."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from folio import model_choice
from folio.models import minilm, model_server, reader
from folio.services.cache import CancellableClock
from folio.store import indexes
from folio.store.library import Library
from tests.helpers.cli_runner import HUB_AND_TRACING, CliRunner
from tests.helpers.factories import small_papers
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.paths import ROOT
from tests.helpers.source_server import SourceServer

# The same examples in every run, and no failure because a computer is busy.
settings.register_profile("folio", derandomize=True, deadline=None)
settings.load_profile("folio")

# Bytecode is kept, whatever the shell says: each of the hundreds of commands that the tests start would compile all
# modules again (half a second each), and each worker all tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Workers of the tests share the cores. Threads of FAISS in each of them would mostly wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# No test waits for what it made fail; those of the waits themselves say how long they are.
model_server.FIRST_WAIT_S = 0.01


def _is_roomy(folder: Path) -> bool:
    """Whether files can be written there, 4 GiB of them, and started as programs."""
    if not folder.is_dir() or os.statvfs(folder).f_flag & os.ST_NOEXEC:
        return False
    return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > 4 * 2**30


# The tests' folders are in memory if they can be: the store syncs its files, which takes long on many disks.
if _is_roomy(Path("/dev/shm")):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")
if (ROOT / ".env").exists():
    pytest.exit("The .env of this checkout would change what the tests see: move it away while they run.", 1)

# A shell that runs the tests in the background has Ctrl-C ignored, and so would every command that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    """One more than the cores: many tests wait for processes that they started."""
    return (os.cpu_count() or 1) + 1


# Markers of whole files
_FILE_MARKERS = ("environment", "fast")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import the files that lack the marker which a run asks for first: that takes longer than the run."""
    marker = config.getoption("markexpr").partition(" ")[0]
    if marker not in _FILE_MARKERS or not collection_path.match("test_*.py"):
        return None
    return f"pytest.mark.{marker}" not in collection_path.read_text(encoding="utf-8") or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use Chromium, before others are deselected by their markers."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")


def pytest_collection_finish() -> None:
    """Exempt what stays for the whole run, the tests themselves, from garbage collection: a tenth of the run's time."""
    gc.collect()
    gc.freeze()


_ENVIRONMENT = {name: os.environ.get(name) for name in HUB_AND_TRACING}


@pytest.fixture(autouse=True)
def environment_as_before() -> Iterator[None]:
    """Put back what a command that ran in this process has set, so that it tells no program of a later test."""
    yield
    for name, value in _ENVIRONMENT.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@pytest.fixture(autouse=True, scope="session")
def built_in_model_loaded_once() -> Iterator[None]:
    """Load the built-in model once for all commands and servers of this process: it never changes."""
    with pytest.MonkeyPatch.context() as patch:
        for model in (minilm._Model, reader._Model):
            patch.setattr(model, "load", cache(model.load))
        yield


@pytest.fixture
def ollama_server() -> Iterator[OllamaStandIn]:
    """An Ollama server on the loopback with llama3.1:8b, nomic-embed-text (64 numbers, for speed) and a cloud model."""
    with OllamaStandIn(dimension=64) as server:
        yield server


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the library of a store lies."""
    return tmp_path / "store" / indexes.LIBRARY


@pytest.fixture
def library(path: Path) -> Iterator[Library]:
    """A new one, open."""
    opened = Library(path, create=True)
    yield opened
    opened.close()


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CliRunner:
    """A new user's folder, without papers yet, and the two scripts at work on it."""
    return CliRunner(tmp_path, monkeypatch, capsys)


@pytest.fixture
def server() -> Iterator[SourceServer]:
    """A server on the loopback in place of the services on the internet."""
    with SourceServer() as running:
        yield running


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between requests to services pass at once: they move the clock that the rates are counted by."""
    skipped = 0.0

    def sleep(clock: CancellableClock, seconds: float) -> None:
        nonlocal skipped
        clock._check()
        skipped += seconds

    monkeypatch.setattr(CancellableClock, "sleep", sleep)
    monkeypatch.setattr(CancellableClock, "now", lambda clock: time.time() + skipped)


@pytest.fixture
def online(desk: CliRunner, server: SourceServer, hurried: None) -> CliRunner:
    """A new user's folder, with the server in place of the services."""
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin", "SOURCES_STAND_IN": server.url}
    return desk


@pytest.fixture
def filled(desk: CliRunner) -> CliRunner:
    """A desk with two papers read, one of them in a folder of its own."""
    small_papers(desk.papers)
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin"}
    assert desk.ingest().code == 0
    return desk


@pytest.fixture(scope="session")
def two_papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a desk with two papers in its index, to ask and not to change."""
    folder = tmp_path_factory.mktemp("two-papers")
    with pytest.MonkeyPatch.context() as patch:
        desk = CliRunner(folder, patch)
        small_papers(desk.papers)
        assert desk.ingest().code == 0
    return folder


@pytest.fixture
def ready(two_papers: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CliRunner:
    """A desk with two papers in its index, to ask and not to change."""
    desk = CliRunner(two_papers, monkeypatch, capsys)
    for mark in desk.store.glob(f"{model_choice.PREFIX}*"):
        mark.unlink()  # as on a new day
    return desk
