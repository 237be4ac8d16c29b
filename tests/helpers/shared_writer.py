"""A process of its own that works on a shared library, as another computer does; it can be killed at any moment.

`python -m tests.helpers.shared_writer ACTION FOLDER STORE URL [SECONDS]`: FOLDER has the papers, STORE is this
computer's folder, SECONDS is what each batch of passages takes. What is done is printed, a line each, once it is done.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tests.helpers.paths import ROOT

if TYPE_CHECKING:
    from folio.types import Vectors
    from tests.helpers.fakes import HashingApp


def shared_app(folder: Path, store: Path, url: str, pause_s: float = 0, **more: Any) -> HashingApp:
    """The tool over a shared library, as on one of several computers. pause_s: what a batch of passages takes."""
    from tests.helpers.fakes import HashingEmbedder, hashing_app

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

    process: subprocess.Popen[str]

    @property
    def out(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    def wait_for(self, lines: int) -> list[str]:
        """The next lines that it prints."""
        return [self.out.readline().strip() for _ in range(lines)]

    def kill(self) -> list[str]:
        """SIGKILL; returns what it had printed."""
        self.process.kill()
        return self._rest()

    def finish(self) -> list[str]:
        """The rest of its lines. It must end by itself, and well."""
        lines = self._rest()
        assert self.process.returncode == 0, lines
        return lines

    def _rest(self) -> list[str]:
        with self.process:
            return self.out.read().splitlines()


@contextmanager
def writer(action: str, folder: Path, store: Path, url: str, pause_s: float = 0) -> Any:
    """Start a process; it is killed if it still works at the end."""
    command = [sys.executable, "-m", "tests.helpers.shared_writer", action, *map(str, (folder, store, url, pause_s))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT)
    try:
        yield Writer(process)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


# In the process


def _tell(*words: object) -> None:
    sys.stdout.write(f"{' '.join(map(str, words))}\n")
    sys.stdout.flush()


def _report(outcomes: Iterable[Any]) -> None:
    for outcome in outcomes:
        _tell(outcome.status, outcome.file.name, *outcome.notes[:1])


def _ingest(app: HashingApp, *, rebuilds: bool) -> None:
    from folio.ingest import discovery
    from folio.store import indexes
    from tests.helpers.fakes import RecordedProgress

    with indexes.writing(app.settings.VECTORSTORE_DIR):
        progress = RecordedProgress()
        files, _ = discovery.hash_files(discovery.find_pdfs([app.settings.PAPERS_DIR]), progress)
        work = app.rebuild(files, progress) if rebuilds else app.ingest(files, progress, jobs=1, retry=frozenset())
        _report(work)
        app.finish_ingest()


def _say(app: HashingApp) -> None:
    """Edit, log and talk, 6 times each."""
    import os

    from folio.paper_metadata import simple_metadata
    from tests.helpers.answers import ANSWER
    from tests.helpers.libraries import ENTRY

    with closing(app.open_library()) as library, closing(app.conversations()) as conversations:
        log, own = app.query_log(library), conversations.begin()
        for number in range(6):
            log.add(replace(ENTRY, question=f"{os.getpid()} {number}"))
            conversations.add(own, {}, ANSWER, replace(ENTRY, question=f"said {os.getpid()} {number}"))
            conversations.add("together" * 2, {}, ANSWER, None)
            for paper in library.papers():
                library.change_metadata(
                    paper.id,
                    "person",
                    lambda said: replace(
                        said, venue=replace(said.venue, value=said.venue.value + "x", origin="person", sure=True)
                    ),
                )
            library.set_metadata(f"{os.getpid()} {number}", "bibliography", simple_metadata("Elsewhere"))
            _tell("said", number)


def main(action: str, folder: str, store: str, url: str, pause_s: str) -> None:
    from folio import workers
    from tests.helpers.fakes import read_here

    workers.run_guarded = read_here  # type: ignore[assignment]
    app = shared_app(Path(folder), Path(store), url, float(pause_s))
    if action == "say":
        _say(app)
    else:
        _ingest(app, rebuilds=action == "rebuild")
    _tell("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
