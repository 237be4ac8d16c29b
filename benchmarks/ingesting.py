"""How fast papers are read, and how well the embedder is kept at work while they are.

python benchmarks/ingesting.py ~/papers          both figures, on these PDFs

Reading: pages a second of parse + clean + split against those of PyMuPDF's bare `get_text`, each in two processes that
are up and have imported everything. Embedding: papers that the program makes, and a server of its own on the loopback
that speaks as much of Ollama as an ingest asks for and takes a fixed time for each request.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any, Self

# Run as a file, a script sees only the modules in its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from config import Settings
from folio.app import App
from folio.ingest import discovery, pipeline
from folio.ingest.progress import Outcome
from folio.pdf.mupdf import pymupdf
from folio.store import indexes
from folio.store.fingerprint import Reading
from folio.types import SourceFile

PROCESSES = 2
_READING = Reading(chunk_size=1500, chunk_overlap=200)
_MAX_FILE_MB = 500
_WORDS = 4000  # that made papers are written with
_LINES, _PER_LINE = 45, 12


@dataclass(frozen=True, slots=True)
class ReadingFigures:
    """One figure a run, in seconds, in the order of the runs; each run reads all papers both ways."""

    pages: int
    bare: tuple[float, ...]
    folio: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Folio's pages a second over those of bare `get_text`: the median of the runs' ratios."""
        return median(bare / folio for bare, folio in zip(self.bare, self.folio, strict=True))


@dataclass(frozen=True, slots=True)
class EmbeddingFigures:
    """What the server saw of one ingest."""

    papers: int
    passages: int
    requests: int
    seconds: float  # from the beginning of the first request to the end of the last one
    busy_s: float  # of these, those in which it had a request to work on

    @property
    def busy(self) -> float:
        return self.busy_s / self.seconds


def reading(papers: Sequence[Path], runs: int = 5) -> ReadingFigures:
    """Read these PDFs in PROCESSES processes, `runs` times bare and by Folio in turn. Start-up is not counted."""
    with ProcessPoolExecutor(PROCESSES, get_context("spawn"), _warm_up, (str(papers[0]),)) as pool:
        pages = sum(len(future.result()) for future in [pool.submit(bare, str(paper)) for paper in papers])
        bare_s, folio_s = [], []
        for _ in range(runs):
            bare_s.append(_timed(pool, bare, papers))
            folio_s.append(_timed(pool, by_folio, papers))
    return ReadingFigures(pages, tuple(bare_s), tuple(folio_s))


def bare(path: str) -> list[str]:
    """The text of each page as PyMuPDF gives it."""
    document = pymupdf().open(path)
    try:
        return [page.get_text() for page in document]
    finally:
        document.close()


def by_folio(path: str) -> object:
    """The paper as an ingest reads it: in order, repaired, without hidden text, split."""
    return pipeline.read_paper(SourceFile(path, Path(path).name, ""), _READING, _MAX_FILE_MB)


def _warm_up(path: str) -> None:
    bare(path)
    by_folio(path)


def _timed(pool: ProcessPoolExecutor, read: Callable[[str], object], papers: Sequence[Path]) -> float:
    started = time.perf_counter()
    futures: list[Future[object]] = [pool.submit(read, str(paper)) for paper in papers]
    wait(futures)
    seconds = time.perf_counter() - started
    for future in futures:
        future.result()
    return seconds


def embedding(papers: int = 40, pages: int = 1, latency_s: float = 0.5, batch: int = 32) -> EmbeddingFigures:
    """Ingest papers of so many pages, about two passages each, with a server that takes latency_s for a request.

    batch: passages in a request.
    """
    with tempfile.TemporaryDirectory() as name, Server(latency_s) as server:
        folder = Path(name)
        make_papers(folder / "papers", papers, pages)
        chosen: dict[str, Any] = {
            "_env_file": None,
            "PAPERS_DIR": folder / "papers",
            "VECTORSTORE_DIR": folder / "store",
            "INGESTED_JSON": folder / "ingested.json",
            "EMBEDDER": "ollama",
            "OLLAMA_HOST": server.url,
            "EMBED_BATCH": batch,
        }
        app, progress = App(Settings(**chosen), lambda text: None), _Silent()
        with indexes.writing(folder / "store"):
            files, _ = discovery.hash_files(discovery.find_pdfs([folder / "papers"]), progress)
            done = list(app.ingest(files, progress, jobs=PROCESSES, retry=frozenset()))
        landed = [outcome for outcome in done if outcome.status == "added"]
        return server.figures(len(landed), sum(outcome.chunks for outcome in landed))


def make_papers(folder: Path, count: int, pages: int) -> None:
    """PDFs of words that are none, the same ones each time, no two alike."""
    folder.mkdir(parents=True)
    rng = random.Random(5)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(_WORDS)]
    for number in range(count):
        document = pymupdf().open()
        for _ in range(pages):
            lines = [" ".join(rng.choices(words, k=_PER_LINE)) for _ in range(_LINES)]
            document.new_page().insert_text((50, 60), lines, fontsize=9)
        document.save(folder / f"paper-{number:05}.pdf")
        document.close()


class _Silent:
    """Watches an ingest and says nothing."""

    def hashed(self, file: Path) -> None:
        pass

    def planned(self, files: Sequence[SourceFile]) -> None:
        pass

    def embedded(self, file: SourceFile, chunks: int, of: int) -> None:
        pass

    def done(self, outcome: Outcome) -> None:
        pass


class Server:
    """A server on the loopback, at `url` while its `with` block lasts: one embedding model that takes a fixed time."""

    MODEL, DIMENSION, CONTEXT = "nomic-embed-text:latest", 768, 2048

    def __init__(self, latency_s: float) -> None:
        self.latency_s = latency_s
        self.spans: list[tuple[float, float]] = []  # when each request to embed began and ended
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (_Handler,), {"owner": self}))
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        # Written once: what it costs to make the vectors is no part of the latency.
        self._vector = json.dumps([round(random.Random(5).uniform(-1, 1), 7) for _ in range(self.DIMENSION)])

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self.close()

    def close(self) -> None:
        """Give up the port."""
        self._http.server_close()

    def figures(self, papers: int, passages: int) -> EmbeddingFigures:
        """What it has seen; a moment with two requests counts once."""
        busy, ended = 0.0, 0.0
        for start, end in sorted(self.spans):
            busy += max(0.0, end - max(start, ended))
            ended = max(ended, end)
        first = min(start for start, _ in self.spans)
        return EmbeddingFigures(papers, passages, len(self.spans), ended - first, busy)

    def answer(self, path: str, body: dict[str, Any]) -> str:
        match path:
            case "/api/version":
                return '{"version": "0.12.0"}'
            case "/api/tags":
                return json.dumps({"models": [{"name": self.MODEL, "model": self.MODEL, "digest": "0" * 64}]})
            case "/api/show":
                facts = {"general.architecture": "bert", "bert.context_length": self.CONTEXT}
                return json.dumps({"model_info": {**facts, "bert.embedding_length": self.DIMENSION}})
            case "/api/embed":
                time.sleep(self.latency_s)
                vectors = ", ".join([self._vector] * len(body["input"]))
                return f'{{"model": "{self.MODEL}", "embeddings": [{vectors}]}}'
        raise ValueError(f"nothing is known of {path}")


class _Handler(BaseHTTPRequestHandler):
    owner: Server

    def do_GET(self) -> None:
        self._send({})

    def do_POST(self) -> None:
        started = time.perf_counter()
        self._send(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        if self.path == "/api/embed":
            self.owner.spans.append((started, time.perf_counter()))

    def _send(self, body: dict[str, Any]) -> None:
        content = self.owner.answer(self.path, body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure how fast papers are read and how busy the embedder is kept.")
    parser.add_argument("papers", type=Path, metavar="FOLDER", help="the PDFs to read")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="runs of each reading (default: 5)")
    arguments = parser.parse_args(argv)
    read = reading(sorted(discovery.find_pdfs([arguments.papers])), arguments.runs)
    rates = [f"{read.pages / median(seconds):.0f}" for seconds in (read.bare, read.folio)]
    print(f"{read.pages} pages, pages a second: bare {rates[0]}, Folio {rates[1]}, ratio {read.ratio:.2f}")
    for papers, pages in ((20, 12), (200, 1)):
        seen = embedding(papers, pages)
        print(
            f"{seen.papers} papers of {pages} pages: {seen.passages} passages in {seen.requests} requests,"
            f" embedder busy {seen.busy:.1%} of {seen.seconds:.1f} s"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
