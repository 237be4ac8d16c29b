"""How fast papers are read, and how busy an ingest keeps the embedder.

python benchmarks/ingesting.py ~/papers          both measurements; these PDFs are the ones read

Reading: pages per second of parse + clean + split, compared with PyMuPDF's bare `get_text`, each in two processes that
have already imported everything. Embedding: generated papers are ingested with a local server that implements the part
of Ollama's API that an ingest uses, and takes a fixed time per request.
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

# A script run as a file can import only from its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from config import Settings
from folio.app import App
from folio.ingest import discovery, pipeline
from folio.ingest.discovery import Outcome
from folio.papers.model import SourceFile
from folio.pdf.mupdf import pymupdf
from folio.store import indexes
from folio.store.fingerprint import Reading
from folio.system.files import sha256_file

PROCESSES = 2
_READING = Reading(chunk_size=1500, chunk_overlap=200)
_MAX_FILE_MB = 500
# Generated papers
_VOCABULARY = 4000  # words
_SYLLABLES = "al an as at con de der en er es in ing is ma men ne of on or pro re se st ter the ti to ver".split()
_LINES_PER_PAGE, _WORDS_PER_LINE = 45, 12


@dataclass(frozen=True, slots=True)
class ReadingFigures:
    """Seconds per run, in order; each run reads all papers both ways."""

    pages: int
    bare: tuple[float, ...]
    folio: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Folio's pages per second divided by those of bare `get_text`: the median of the runs' ratios."""
        return median(bare / folio for bare, folio in zip(self.bare, self.folio, strict=True))


@dataclass(frozen=True, slots=True)
class EmbeddingFigures:
    """One ingest as the server saw it."""

    papers: int
    passages: int
    requests: int
    seconds: float  # from the start of the first request to the end of the last
    busy_s: float  # the part of `seconds` with a request in progress

    @property
    def busy_share(self) -> float:
        return self.busy_s / self.seconds


def measure_reading(papers: Sequence[Path], runs: int = 5) -> ReadingFigures:
    """Read these PDFs in PROCESSES processes, `runs` times, alternating bare and Folio. Start-up is not counted."""
    with ProcessPoolExecutor(PROCESSES, get_context("spawn"), _warm_up, (str(papers[0]),)) as pool:
        pages = sum(len(future.result()) for future in [pool.submit(read_bare, str(paper)) for paper in papers])
        bare_s, folio_s = [], []
        for _ in range(runs):
            bare_s.append(_time_reading(pool, read_bare, papers))
            folio_s.append(_time_reading(pool, read_with_folio, papers))
    return ReadingFigures(pages, tuple(bare_s), tuple(folio_s))


def read_bare(path: str) -> list[str]:
    """The text of each page as PyMuPDF returns it."""
    document = pymupdf().open(path)
    try:
        return [page.get_text() for page in document]
    finally:
        document.close()


def read_with_folio(path: str) -> object:
    """The paper as an ingest reads it: in reading order, cleaned, without hidden text, split."""
    return pipeline.read_paper(SourceFile(path, Path(path).name, sha256_file(Path(path))), _READING, _MAX_FILE_MB)


def _warm_up(path: str) -> None:
    read_bare(path)
    read_with_folio(path)


def _time_reading(pool: ProcessPoolExecutor, read: Callable[[str], object], papers: Sequence[Path]) -> float:
    """Seconds to read all papers."""
    started = time.perf_counter()
    futures: list[Future[object]] = [pool.submit(read, str(paper)) for paper in papers]
    wait(futures)
    seconds = time.perf_counter() - started
    for future in futures:
        future.result()
    return seconds


def measure_embedding(papers: int = 40, pages: int = 1, latency_s: float = 0.5, batch: int = 32) -> EmbeddingFigures:
    """Ingest generated papers, about three passages per page, with a server that takes latency_s per request.

    pages: per paper. batch: passages per request.
    """
    with tempfile.TemporaryDirectory() as name, EmbeddingServer(latency_s) as server:
        folder = Path(name)
        make_papers(folder / "papers", papers, pages)
        settings: dict[str, Any] = {
            "_env_file": None,
            "PAPERS_DIR": folder / "papers",
            "VECTORSTORE_DIR": folder / "store",
            "INGESTED_JSON": folder / "ingested.json",
            "EMBEDDER": "ollama",
            "OLLAMA_HOST": server.url,
            "EMBED_BATCH": batch,
        }
        app, progress = App(Settings(**settings), lambda text: None), _NoProgress()
        with indexes.writing(folder / "store"):
            files, _ = discovery.hash_files(discovery.find_pdfs([folder / "papers"]), progress)
            outcomes = list(app.ingest(files, progress, jobs=PROCESSES, retry=frozenset()))
        added = [outcome for outcome in outcomes if outcome.status == "added"]
        return server.figures(len(added), sum(outcome.chunks for outcome in added))


def make_papers(folder: Path, count: int, pages: int) -> None:
    """Write PDFs of random words, all different and the same on every call."""
    folder.mkdir(parents=True)
    rng = random.Random(5)
    # Of syllables: words of random letters are taken for encoded text, and not indexed.
    words = ["".join(rng.choices(_SYLLABLES, k=rng.randint(1, 4))) for _ in range(_VOCABULARY)]
    for number in range(count):
        document = pymupdf().open()
        for _ in range(pages):
            lines = [" ".join(rng.choices(words, k=_WORDS_PER_LINE)) for _ in range(_LINES_PER_PAGE)]
            document.new_page().insert_text((50, 60), lines, fontsize=9)
        document.save(folder / f"paper-{number:05}.pdf")
        document.close()


class _NoProgress:
    """Ignores the progress of an ingest."""

    def hashed(self, file: Path) -> None:
        pass

    def planned(self, files: Sequence[SourceFile]) -> None:
        pass

    def scanned(self, file: SourceFile, pages: int, of: int) -> None:
        pass

    def embedded(self, file: SourceFile, chunks: int, of: int) -> None:
        pass

    def done(self, outcome: Outcome) -> None:
        pass


class EmbeddingServer:
    """A local Ollama server with one embedding model and a fixed latency, at `url` inside its `with` block."""

    MODEL, DIMENSION, CONTEXT = "nomic-embed-text:latest", 768, 2048

    def __init__(self, latency_s: float) -> None:
        self.latency_s = latency_s
        self.spans: list[tuple[float, float]] = []  # start and end of each embedding request
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (_Handler,), {"owner": self}))
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        # Serialised once, so that making vectors does not add to the latency.
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
        """Release the port."""
        self._http.server_close()

    def figures(self, papers: int, passages: int) -> EmbeddingFigures:
        """The figures of all requests so far; time with two requests in progress counts once."""
        busy, ended = 0.0, 0.0
        for start, end in sorted(self.spans):
            busy += max(0.0, end - max(start, ended))
            ended = max(ended, end)
        first = min(start for start, _ in self.spans)
        return EmbeddingFigures(papers, passages, len(self.spans), ended - first, busy)

    def respond(self, path: str, body: dict[str, Any]) -> str:
        """The JSON response to a request. Raises ValueError for an unknown path."""
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
        raise ValueError(f"unknown path: {path}")


class _Handler(BaseHTTPRequestHandler):
    owner: EmbeddingServer

    def do_GET(self) -> None:
        self._respond({})

    def do_POST(self) -> None:
        started = time.perf_counter()
        self._respond(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        if self.path == "/api/embed":
            self.owner.spans.append((started, time.perf_counter()))

    def _respond(self, body: dict[str, Any]) -> None:
        content = self.owner.respond(self.path, body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Measure how fast papers are read and how busy an ingest keeps the embedder."
    )
    parser.add_argument("papers", type=Path, metavar="FOLDER", help="the PDFs to read")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="runs of each reader (default: 5)")
    arguments = parser.parse_args(argv)
    reading = measure_reading(sorted(discovery.find_pdfs([arguments.papers])), arguments.runs)
    bare, folio = (f"{reading.pages / median(seconds):.0f}" for seconds in (reading.bare, reading.folio))
    print(f"{reading.pages} pages; pages per second: bare {bare}, Folio {folio}, ratio {reading.ratio:.2f}")
    for papers, pages in ((20, 12), (200, 1)):
        embedding = measure_embedding(papers, pages)
        print(
            f"{embedding.papers} {pages}-page papers: {embedding.passages} passages in {embedding.requests} requests,"
            f" embedder busy for {embedding.busy_share:.1%} of {embedding.seconds:.1f} s"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
