"""How long an ingest takes without Ray, and with 1 and 2 of its workers; and where the time goes.

    python benchmarks/ingest_on_ray.py FOLDER [--papers 60] [--runs 3]

Each ingest is a process of its own with the built-in embedder and a new store in a temporary folder. The kinds take
turns, so that what else the computer does meets all of them. Then the steps of the same papers are timed one after the
other in this process: reading in a guarded process, embedding on one thread, adding to the library; and starting Ray
with one worker.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import folio
from config import Settings
from folio.app import App
from folio.errors import PaperError
from folio.ingest import chunking, discovery
from folio.ingest.discovery import Outcome
from folio.ingest.queue import EmbeddedPaper, embed_paper
from folio.papers.model import NewPaper, SourceFile
from folio.shared.ray import Job, PaperWorker, RayReader
from folio.store import indexes
from folio.store.fingerprint import fingerprint
from folio.store.library import Library
from folio.store.rows import text_hash
from folio.system.workers import Finished

ROOT = Path(__file__).resolve().parent.parent
KINDS = {"without Ray, --jobs 1": ["--jobs", "1"], "without Ray, --jobs 2": ["--jobs", "2"]} | {
    f"--on ray --jobs {n}": ["--on", "ray", "--jobs", str(n)] for n in (1, 2)
}


@contextmanager
def settings(papers: Path) -> Iterator[dict[str, Any]]:
    """The settings of an ingest into a new folder."""
    with tempfile.TemporaryDirectory() as name:
        yield {
            "PAPERS_DIR": str(papers),
            "VECTORSTORE_DIR": f"{name}/store",
            "INGESTED_JSON": f"{name}/ingested.json",
            "EMBEDDER": "builtin",
            "OCR": "off",
        }


def ingest(papers: Path, arguments: list[str]) -> float:
    """Seconds that a whole ingest takes. Files that cannot be read are no reason to stop."""
    with settings(papers) as chosen:
        began = perf_counter()
        command = [sys.executable, str(ROOT / "ingest.py"), *arguments]
        done = subprocess.run(command, env={**os.environ, **chosen}, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1) or "passages" not in done.stdout:
            raise SystemExit(done.stderr)
        return perf_counter() - began


def steps(papers: Path) -> dict[str, float]:
    """Seconds of each step of an ingest, one after the other."""
    spent = dict.fromkeys(("read", "embed", "put", "update indexes"), 0.0)
    with settings(papers) as chosen:
        app = App(Settings(**{**chosen, "_env_file": None}), print)
        embedder = app.new_embedder()
        job = Job(app.reading, app.limits(1), embedder.identity(), app.worker_embedders(embedder), app.embed_batch)
        files, _ = discovery.hash_files(discovery.find_pdfs([papers]), _Silent())
        own = job.embedders[0]()
        own.embed_passages(["loads the model"])
        with (
            indexes.writing(app.store_folder),
            closing(PaperWorker(job)) as worker,
            closing(app.open_library(create=True)) as library,
        ):
            library.set_fingerprint(fingerprint(embedder, app.reading))
            for file in files:
                began = perf_counter()
                try:
                    paper: NewPaper = worker._paper(file, Path(file.path).read_bytes())
                except PaperError:
                    continue
                finally:
                    spent["read"] += perf_counter() - began
                began = perf_counter()
                embedded = embed_paper(paper, own, app.embed_batch)
                spent["embed"] += perf_counter() - began
                began = perf_counter()
                _put(library, file, embedded)
                spent["put"] += perf_counter() - began
            began = perf_counter()
            app.backend.update_indexes(library)
            spent["update indexes"] += perf_counter() - began
        return spent | _ray(job, files[0])


def _put(library: Library, file: SourceFile, embedded: EmbeddedPaper) -> None:
    paper = embedded.paper
    texts = [paper.text[start:end] for start, end in paper.chunk_spans]
    vectors = np.stack([embedded.vectors[text_hash(text)] for text in texts])
    library.add(paper, file, chunking.chunk_ids(paper), vectors)


def _ray(job: Job, file: SourceFile) -> dict[str, float]:
    """Seconds until Ray runs, until a worker has given back a first paper, and until all has ended."""
    began = perf_counter()
    reader = RayReader("", 1, lambda: job)
    with reader._running():
        running = perf_counter()
        assert [type(each) for each in reader([file], tuple) if isinstance(each, Finished)]
        first = perf_counter()
    ended = perf_counter()
    return {"start Ray": running - began, "a worker's first paper": first - running, "stop Ray": ended - first}


class _Silent:
    """An IngestProgress that shows nothing."""

    def hashed(self, file: Path) -> None: ...

    def planned(self, files: Sequence[SourceFile]) -> None: ...

    def scanned(self, file: SourceFile, pages: int, of: int) -> None: ...

    def embedded(self, file: SourceFile, chunks: int, of: int) -> None: ...

    def done(self, outcome: Outcome) -> None: ...


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--papers", type=int, default=60, help="how many of the folder's PDFs, by name")
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    print(f"Folio {folio.__version__}, {os.cpu_count()} cores, load {' '.join(f'{x:.1f}' for x in os.getloadavg())}")
    with tempfile.TemporaryDirectory() as name:
        papers = Path(name)
        chosen = sorted(arguments.folder.glob("**/*.pdf"))[: arguments.papers]
        for number, path in enumerate(chosen):
            (papers / f"{number:03}-{path.name}").symlink_to(path.resolve())
        print(f"{len(chosen)} papers, {sum(path.stat().st_size for path in chosen) / 1e6:.0f} MB")
        taken: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for _ in range(arguments.runs):
            for kind, options in KINDS.items():
                taken[kind].append(ingest(papers, options))
                load = os.getloadavg()[0]
                print(f"{kind:<24} {taken[kind][-1]:7.1f} s   load {load:.1f}", flush=True)
        for kind, seconds in taken.items():
            print(f"{kind:<24} median {statistics.median(seconds):7.1f} s of {len(seconds)}")
        for step, spent in steps(papers).items():
            print(f"{step:<24} {spent:7.1f} s")


if __name__ == "__main__":
    main()
