"""A process of its own that works on a shared library, as another computer does; it can be killed at any moment.

Its main takes ACTION FOLDER STORE URL SECONDS: FOLDER has the papers, STORE is this computer's folder, SECONDS is what
each batch of passages takes. What is done is printed, a line each, once it is done.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from folio.ingest import discovery
from folio.papers.metadata import Field, Metadata, simple_metadata
from folio.papers.model import Vectors
from folio.store import indexes
from folio.system import workers
from tests.helpers.answers import ANSWER
from tests.helpers.fakes import HashingApp, HashingEmbedder, RecordedProgress, hashing_app, read_here
from tests.helpers.forks import Run, forks_of
from tests.helpers.libraries import ENTRY


def shared_app(folder: Path, store: Path, url: str, pause_s: float = 0, **more: Any) -> HashingApp:
    """The tool over a shared library, as on one of several computers. pause_s: what a batch of passages takes."""

    class SlowEmbedder(HashingEmbedder):
        def embed_passages(self, texts: Sequence[str]) -> Vectors:
            time.sleep(pause_s)
            return super().embed_passages(texts)

    chosen = {"STORE": "postgres", "DATABASE_URL": url, "VECTORSTORE_DIR": store, "LLM": "builtin", **more}
    chosen["INGESTED_JSON"] = store / "ingested.json"
    app = hashing_app(folder, SlowEmbedder() if pause_s else None, **chosen)
    return replace(app, notice=lambda text: None)


@dataclass
class Writer:
    """A process at work."""

    run: Run

    def wait_for(self, lines: int) -> list[str]:
        """The next lines that it prints."""
        return [self.run.out.readline().strip() for _ in range(lines)]

    def kill(self) -> list[str]:
        """SIGKILL; returns what it had printed."""
        self.run.kill()
        return self._rest()

    def finish(self) -> list[str]:
        """The rest of its lines. It must end by itself, and well."""
        lines = self._rest()
        assert self.run.wait() == 0, lines
        return lines

    def _rest(self) -> list[str]:
        lines = self.run.out.read().splitlines()
        self.run.wait()
        return lines


@contextmanager
def writer(action: str, folder: Path, store: Path, url: str, pause_s: float = 0) -> Iterator[Writer]:
    """Start a process; it is killed if it still works at the end."""
    run = forks_of(__name__).start(action, folder, store, url, pause_s)
    try:
        yield Writer(run)
    finally:
        run.kill()
        run.wait()


# In the process


def _tell(*words: object) -> None:
    sys.stdout.write(f"{' '.join(map(str, words))}\n")
    sys.stdout.flush()


def _report(outcomes: Iterable[Any]) -> None:
    for outcome in outcomes:
        _tell(outcome.status, outcome.file.name, *outcome.notes[:1])


def _ingest(app: HashingApp, *, rebuilds: bool) -> None:
    with indexes.writing(app.settings.VECTORSTORE_DIR):
        progress = RecordedProgress()
        files, _ = discovery.hash_files(discovery.find_pdfs([app.settings.PAPERS_DIR]), progress)
        work = app.rebuild(files, progress) if rebuilds else app.ingest(files, progress, jobs=1, retry=frozenset())
        _report(work)
        app.finish_ingest()


def _with_longer_venue(said: Metadata) -> Metadata:
    return replace(said, venue=Field(f"{said.venue.value}x", "person", True))


def _say(app: HashingApp) -> None:
    """Edit, log and talk, 6 times each."""
    with closing(app.open_library()) as library, closing(app.conversations()) as conversations:
        log, own = app.query_log(library), conversations.begin()
        for number in range(6):
            log.add(replace(ENTRY, question=f"{os.getpid()} {number}"))
            conversations.add(own, {}, ANSWER, replace(ENTRY, question=f"said {os.getpid()} {number}"))
            conversations.add("together" * 2, {}, ANSWER, None)
            for paper in library.papers():
                library.change_metadata(paper.id, "person", _with_longer_venue)
            library.set_metadata(f"{os.getpid()} {number}", "bibliography", simple_metadata("Elsewhere"))
            _tell("said", number)


def main(action: str, folder: str, store: str, url: str, pause_s: str) -> None:
    workers.run_guarded = read_here  # type: ignore[assignment]
    app = shared_app(Path(folder), Path(store), url, float(pause_s))
    if action == "say":
        _say(app)
    else:
        _ingest(app, rebuilds=action == "rebuild")
    _tell("done")
