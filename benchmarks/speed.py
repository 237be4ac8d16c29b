"""How fast Folio is, beside the plain design, as ratios of medians from one run: what `make bench` does.

python benchmarks/speed.py                                    everything, over stores that it makes
python benchmarks/speed.py --papers ~/papers --articles covidqa.json     made stores modelled on real papers
python benchmarks/speed.py --only sizes models --runs 3       some parts, fewer runs

Whole processes are started in turn, Folio's and the plain design's, and timed from outside with their peak memory.
Stores are made (synthetic.py) with as many passages as asked for; both designs get the same texts and vectors. What was
made stays in --work, for the next run. The table goes to RESULTS.md, the chart to docs/.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

# Run as a file, a script sees only the modules in its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import curve, ingesting, synthetic
from benchmarks.plain import save
from config import Settings
from folio.app import App
from folio.files import sha256_file
from folio.ingest import discovery
from folio.models.minilm import DIMENSION
from folio.store import indexes
from folio.store.fingerprint import fingerprint
from folio.store.library import Library
from folio.types import NewPaper, SourceFile, Vectors

ROOT = Path(__file__).resolve().parent.parent
QUESTION = "What happens when the computer loses power during an ingest?"
SMALL, LARGE = 12_000, 232_523  # passages: 200 papers, and the collection of the model card's user
SIZES = (1_000, SMALL, 60_000, LARGE)
WIDE = 768  # numbers of a vector at LARGE, as nomic-embed-text has them; elsewhere the built-in model's 384
PARTS = ("help", "sizes", "warm", "models", "reading", "embedding", "adding")
MANY = 1_000  # papers that an ingest finds nothing new in, or adds one to
PER_PAPER = 60  # passages


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the table. What is told in words may be empty."""

    what: str
    folio: str
    plain: str
    ratio: str
    reach: str
    holds: bool | None  # None where there is nothing to reach


@dataclass(frozen=True, slots=True)
class Took:
    """A whole process."""

    seconds: float
    peak_mb: float


@dataclass(frozen=True, slots=True)
class EvaluationStore:
    """Where things are made, what they are modelled on, and how often each is timed."""

    work: Path
    papers: Sequence[Path]
    articles: Path | None
    runs: int

    def settings(self, folder: Path, **more: str) -> dict[str, str]:
        """The environment of a process over the store in this folder."""
        chosen = {"EMBEDDER": "builtin", "LLM": "builtin", "RERANKER": "builtin", "QUERY_LOG": "false"}
        places = {
            "PAPERS_DIR": folder / "papers",
            "VECTORSTORE_DIR": folder,
            "INGESTED_JSON": folder / "ingested.json",
            "MODELS_DIR": self.work / "models",
        }
        return {**chosen, **{name: str(place) for name, place in places.items()}, **more}

    def app(self, environment: Mapping[str, str]) -> App:
        chosen = {name: value for name, value in environment.items() if name in Settings.model_fields}
        return App(Settings.model_validate(chosen), lambda text: None)


# Starts a command and tells its seconds, its peak in the system's unit and its exit code. It is a process of its own: a
# child's peak begins with what its parent had when it was forked, which here may be gigabytes.
_LAUNCHER = """
import os, subprocess, sys, time
began = time.perf_counter()
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
print(time.perf_counter() - began, usage.ru_maxrss, os.waitstatus_to_exitcode(status))
"""


def process(arguments: Sequence[str], environment: Mapping[str, str]) -> Took:
    """Run a script of the project to its end. Raises RuntimeError where it fails."""
    launched = subprocess.run(
        [sys.executable, "-S", "-c", _LAUNCHER, sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, peak, code = launched.stdout.split()
    if int(code):
        raise RuntimeError(f"{' '.join(arguments)} failed: {launched.stderr[-2000:]}")
    return Took(float(seconds), float(peak) / (2**20 if sys.platform == "darwin" else 2**10))


def in_turn(runs: int, *jobs: Callable[[], Took]) -> list[Took]:
    """The medians of so many runs of each job, run in turn; one more of each comes before, and does not count."""
    took = [[job() for job in jobs] for _ in range(runs + 1)][1:]
    columns = list(zip(*took, strict=True))
    return [Took(median(t.seconds for t in own), median(t.peak_mb for t in own)) for own in columns]


# What is made


def model(bench: EvaluationStore) -> synthetic.Model:
    """What made stores are modelled on: the papers given, once they are ingested, else the sample and chance."""
    if not bench.papers:
        return synthetic.model_of_nothing(DIMENSION)
    folder = bench.work / "real"
    with _once(folder) as is_new:
        if is_new:
            process(["ingest.py", *map(str, bench.papers)], bench.settings(folder))
    return synthetic.modelled_on(folder)


def made(bench: EvaluationStore, chunks: int, environment: Mapping[str, str], dimension: int) -> Path:
    """A store of so many passages, and the plain design's index of the same beside it; made once."""
    folder = bench.work / f"made-{chunks}"
    with _once(folder) as is_new:
        if is_new:
            print(f"making a store of {chunks:,} passages", file=sys.stderr)
            papers = synthetic.papers(model(bench), chunks, dimension, max(1, chunks // PER_PAPER))
            app = bench.app({**environment, "VECTORSTORE_DIR": str(folder)})
            with closing(_filled(folder, app, ((*paper, None) for paper in papers))) as library:
                rows = {id: vector for ids, batch in library.vectors() for id, vector in zip(ids, batch, strict=True)}
                passages = list(library.passages())
                save(folder / "plain", [p.text for p in passages], np.stack([rows[p.id] for p in passages]))
    return folder


def with_files(bench: EvaluationStore) -> Path:
    """A store of MANY papers whose PDFs are there: copies of the papers given, each with a remark of its own."""
    folder = bench.work / "files"
    originals = bench.papers or [synthetic.SAMPLE]

    def copies() -> Iterator[tuple[NewPaper, Vectors, SourceFile]]:
        papers = synthetic.papers(model(bench), MANY * PER_PAPER, DIMENSION, MANY)
        for number, (paper, vectors) in enumerate(papers):
            path = folder / "papers" / f"{number:04}.pdf"
            path.write_bytes(originals[number % len(originals)].read_bytes() + f"\n% {number}\n".encode())
            file = SourceFile(str(path), path.name, sha256_file(path))
            yield replace(paper, id=file.sha256), vectors, file

    with _once(folder) as is_new:
        if is_new:
            (folder / "papers").mkdir(parents=True)
            _filled(folder, bench.app(bench.settings(folder)), copies()).close()
    return folder


@contextmanager
def _once(folder: Path) -> Iterator[bool]:
    """Whether what the block makes in this folder is to be made: it is not there, or was broken off."""
    whole = folder / "whole"
    is_new = not whole.exists()
    if is_new:
        shutil.rmtree(folder, ignore_errors=True)
    yield is_new
    whole.touch()


def _filled(folder: Path, app: App, papers: Iterable[tuple[NewPaper, Vectors, SourceFile | None]]) -> Library:
    """A library of these papers that the app may ask, open, with its indexes."""
    library = synthetic.fill(folder, fingerprint(app.new_embedder(), app.reading), papers)
    indexes.update_indexes(folder, library, "tantivy")
    return library


# What is measured


def helps(bench: EvaluationStore) -> Iterator[Line]:
    for script in ("query.py", "ingest.py"):
        (took,) = in_turn(bench.runs, partial(process, [script, "--help"], {}))
        yield Line(f"`{script} --help`", _s(took), "", "", "under 0.25 s", took.seconds < 0.25)


def sizes(bench: EvaluationStore) -> Iterator[Line]:
    """One-shot questions at each size, and the chart."""
    points = []
    for chunks in SIZES:
        with ingesting.Server(0.0) as server:
            wide = chunks == LARGE
            more = {"EMBEDDER": "ollama", "OLLAMA_HOST": server.url} if wide else {}
            folder = made(bench, chunks, bench.settings(bench.work, **more), WIDE if wide else DIMENSION)
            environment = bench.settings(folder, **more)
            search = ["query.py", "--sources", QUESTION]
            ours, fused, plain = in_turn(
                bench.runs,
                partial(process, search, environment),
                partial(process, search, {**environment, "RERANKER": "none"}),
                partial(process, ["benchmarks/plain.py", "--index", str(folder / "plain"), QUESTION], {}),
            )
        points.append(curve.Point(chunks, ours.seconds, plain.seconds, ours.peak_mb, plain.peak_mb))
        # The plain design does not rerank: what it does is told beside what is asked of the whole command.
        for took, how in ((ours, ""), (fused, " not reranked, as in the plain design")):
            what = f"`query.py --sources`{how}, {chunks:,} passages"
            yield Line(what, _s(took), _s(plain), f"{plain.seconds / took.seconds:.1f}", *_reached(chunks, took, plain))
        if chunks == SMALL:
            (took,) = in_turn(bench.runs, partial(process, ["query.py", QUESTION], environment))
            what = f"`query.py`, built-in answer, {chunks:,} passages"
            yield Line(what, _s(took), "", "", "under 2 s", took.seconds < 2)
    (ROOT / "docs" / "speed.png").write_bytes(curve.picture(points))


def _reached(chunks: int, ours: Took, plain: Took) -> tuple[str, bool | None]:
    """What is asked of a question to so many passages, and whether it holds."""
    times = plain.seconds / ours.seconds
    if chunks == SMALL:
        return "15 times, under 1 s", times >= 15 and ours.seconds < 1
    if chunks == LARGE:
        return "40 times, under 500 MB", times >= 40 and ours.peak_mb < 500
    return "", None


def warm(bench: EvaluationStore) -> Iterator[Line]:
    """Searches in one process at the largest size, and what they find of the exact nearest."""
    with ingesting.Server(0.0) as server:
        environment = bench.settings(bench.work, EMBEDDER="ollama", OLLAMA_HOST=server.url)
        folder = made(bench, LARGE, environment, WIDE)
        app = bench.app({**environment, "VECTORSTORE_DIR": str(folder), "RERANKER": "none"})
        library = app.open_library()
        try:
            asked = synthetic.questions(library, 120)
            retriever = app.retriever_over(library, synthetic.Lookup(asked), lambda: app.open_indexes(library))
            for question in asked:  # once before, so that the files are in memory, as they are in use
                retriever.search(question.text, 20)
            found, milliseconds = [], []
            for question in asked:
                began = perf_counter()
                result = retriever.search(question.text, 20)
                milliseconds.append((perf_counter() - began) * 1000)
                found.append(set(result.ranked["dense"]))
            exact = _nearest(library, np.stack([question.vector for question in asked]), 20)
        finally:
            library.close()
    recall = float(np.mean([len(own & best) / 20 for own, best in zip(found, exact, strict=True)]))
    half = median(milliseconds)
    what = f"hybrid search in a running process, {LARGE:,} passages, files in memory, p50"
    yield Line(what, f"{half:.1f} ms", "", "", "under 10 ms", half < 10)
    yield Line("of the exact 20 nearest it finds", f"{recall:.3f}", "", "", "0.99", recall >= 0.99)


def _nearest(library: Library, asked: Vectors, k: int) -> list[set[int]]:
    """The ids of the k passages with the largest cosines to each vector, by comparing with all."""
    best: list[list[tuple[float, int]]] = [[] for _ in asked]
    for ids, vectors in library.vectors():
        cosines = asked @ vectors.T
        for own, row in zip(best, cosines, strict=True):
            own += zip(row.tolist(), ids, strict=True)
            own.sort(reverse=True)
            del own[k:]
    return [{id for _, id in own} for own in best]


def models(bench: EvaluationStore) -> Iterator[Line]:
    """The built-in model's network on onnxruntime and on torch; only with articles to train a cross-encoder on."""
    from benchmarks import rerank

    if bench.articles is None:
        return
    for row in rerank.measured(bench.articles, bench.runs):
        least = 0.95 if row.what.startswith("rerank") else 0.99
        ours, torch = f"{row.folio_s * 1000:.1f} ms", f"{row.torch_s * 1000:.1f} ms"
        holds = row.ratio >= 2 and row.agreement >= least
        yield Line(f"{row.what}: {row.agree}", ours, torch, f"{row.ratio:.1f}", f"2 times, {least}", holds)


def reading(bench: EvaluationStore) -> Iterator[Line]:
    papers = bench.papers or [synthetic.SAMPLE] * 20
    seen = ingesting.reading(papers, bench.runs)
    ours, bare = (f"{seen.pages / median(times):.0f} pages/s" for times in (seen.folio, seen.bare))
    what = "parse, clean and split, two processes; beside it bare `get_text`"
    yield Line(what, ours, bare, f"{seen.ratio:.2f}", "0.85", seen.ratio >= 0.85)


def embedding(bench: EvaluationStore) -> Iterator[Line]:
    for papers, pages in ((20, 12), (200, 1)):
        seen = ingesting.embedding(papers, pages)
        what = f"embedder at work, {papers} papers of {pages} pages, 0.5 s a request"
        yield Line(what, f"{seen.busy:.1%}", "", "", "95 %", seen.busy >= 0.95)


def adding(bench: EvaluationStore) -> Iterator[Line]:
    folder = with_files(bench)
    environment = bench.settings(folder)
    (nothing,) = in_turn(bench.runs, partial(process, ["ingest.py"], environment))
    files = sorted((folder / "papers").glob("*.pdf"))
    began = perf_counter()
    for file in files:
        sha256_file(file)
    hashed = perf_counter() - began
    what = f"a second `ingest.py`, {MANY:,} papers, nothing new; beside it their hashing alone"
    yield Line(what, _s(nothing), f"{hashed:.2f} s", "", "", None)
    with tempfile.TemporaryDirectory(dir=bench.work) as name:
        new = Path(name)
        ingesting.make_papers(new / "new", 2 * (bench.runs + 1), 12)
        papers = iter(sorted((new / "new").glob("*.pdf")))

        def into_full() -> Took:
            return process(["ingest.py", str(next(papers))], environment)

        def into_empty() -> Took:
            paper = next(papers)
            return process(["ingest.py", str(paper)], bench.settings(new / f"empty-{paper.stem}"))

        full, empty = in_turn(bench.runs, into_full, into_empty)
    ratio = full.seconds / empty.seconds
    what = f"adding a paper of 12 pages to {MANY:,} papers; beside it to none"
    yield Line(what, _s(full), _s(empty), f"{ratio:.2f}", "at most 1.5", ratio <= 1.5)


def _s(took: Took) -> str:
    return f"{took.seconds:.2f} s, {took.peak_mb:.0f} MB"


MEASURES: Mapping[str, Callable[[EvaluationStore], Iterator[Line]]] = dict(
    zip(PARTS, (helps, sizes, warm, models, reading, embedding, adding), strict=True)
)


def table(lines: Sequence[Line]) -> str:
    """The lines as a table in Markdown."""
    head = ("what", "Folio", "plain design", "ratio", "to reach", "reached")
    rows = [head, ("---",) * len(head)]
    for line in lines:
        reached = "" if line.holds is None else "yes" if line.holds else "no"
        rows.append((line.what, line.folio, line.plain, line.ratio, line.reach, reached))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure Folio's speed beside the plain design's.")
    parser.add_argument("--papers", type=Path, metavar="FOLDER", help="PDFs to model made stores on, and to read")
    parser.add_argument("--articles", type=Path, metavar="FILE", help="questions on texts, to train a cross-encoder on")
    parser.add_argument("--work", type=Path, metavar="FOLDER", help="where stores are made and kept (default: build/)")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="runs of each (default: 5)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the table (default: benchmarks/RESULTS.md)")
    arguments = parser.parse_args(argv)
    work = (arguments.work or ROOT / "build").resolve()
    work.mkdir(parents=True, exist_ok=True)
    found = discovery.find_pdfs([arguments.papers]) if arguments.papers else {}
    bench = EvaluationStore(work, sorted(found), arguments.articles, arguments.runs)
    lines: list[Line] = []
    for part in PARTS:
        if part in arguments.only:
            for line in MEASURES[part](bench):
                print(table([line]).splitlines()[-1], flush=True)
                lines.append(line)
    machine = f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}, Python {platform.python_version()}"
    about = (
        f"{datetime.now(UTC):%Y-%m-%d}, {machine}. Medians of {bench.runs} runs in turn; whole processes with their"
        " peak memory. Made by `make bench`."
    )
    out = arguments.out or ROOT / "benchmarks" / "RESULTS.md"
    out.write_text(f"# Speed\n\n{about}\n\n{table(lines)}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
