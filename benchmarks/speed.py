"""Folio's speed compared with the plain design's: what `make bench` measures, as ratios of medians from one run.

python benchmarks/speed.py                                    everything, on stores modelled on the sample paper
python benchmarks/speed.py --papers ~/papers --articles covidqa.json     on stores modelled on real papers
python benchmarks/speed.py --only sizes models --runs 3       some parts, fewer runs

Whole processes of Folio and the plain design run alternately; time and peak memory are measured from outside. Stores of
any size are generated (synthetic.py), with the same texts and vectors for both designs, and kept in --work for the next
run. The table goes to RESULTS.md, the chart to docs/.
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

# A script run as a file can import only from its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import curve, ingesting, synthetic
from benchmarks.plain import save_index
from config import Settings
from folio.app import App
from folio.ingest import discovery
from folio.models.minilm import DIMENSION
from folio.papers.model import NewPaper, SourceFile, Vectors
from folio.store import indexes
from folio.store.fingerprint import fingerprint
from folio.store.library import Library
from folio.system.files import sha256_file

ROOT = Path(__file__).resolve().parent.parent
QUESTION = "What happens when the computer loses power during an ingest?"
SMALL, LARGE = 12_000, 232_523  # passages: 200 papers, and the collection of the model card's user
SIZES = (1_000, SMALL, 60_000, LARGE)
LARGE_DIMENSION = 768  # of the vectors at LARGE, like nomic-embed-text's; elsewhere the built-in model's 384
PAPERS = 1_000  # in the store that an ingest adds nothing or one paper to
PASSAGES_PER_PAPER = 60


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table; its texts may be empty."""

    what: str
    folio: str
    plain: str  # the plain design, or what else Folio is compared with
    ratio: str
    target: str
    met: bool | None  # None without a target


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """What a whole process used."""

    seconds: float
    peak_mb: float


@dataclass(frozen=True, slots=True)
class Options:
    """Where stores are kept, what they are modelled on, and how often everything is timed."""

    work: Path
    papers: Sequence[Path]
    articles: Path | None
    runs: int

    def environment(self, folder: Path, **settings: str) -> dict[str, str]:
        """The environment of a process that uses the store in this folder. settings: override the defaults."""
        models = {"EMBEDDER": "builtin", "LLM": "builtin", "RERANKER": "builtin", "QUERY_LOG": "false"}
        paths = {
            "PAPERS_DIR": folder / "papers",
            "VECTORSTORE_DIR": folder,
            "INGESTED_JSON": folder / "ingested.json",
            "MODELS_DIR": self.work / "models",
        }
        return {**models, **{name: str(path) for name, path in paths.items()}, **settings}


def app_with(environment: Mapping[str, str]) -> App:
    """The app with the settings in this environment."""
    settings = {name: value for name, value in environment.items() if name in Settings.model_fields}
    return App(Settings.model_validate(settings), lambda text: None)


# Runs a command and prints its seconds, its peak memory in the system's unit, and its exit code. It is a process of its
# own because a child's peak starts at its parent's memory when it was forked, and this process may have gigabytes.
_LAUNCHER = """
import os, subprocess, sys, time
began = time.perf_counter()
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
print(time.perf_counter() - began, usage.ru_maxrss, os.waitstatus_to_exitcode(status))
"""


def run_python(arguments: Sequence[str], environment: Mapping[str, str]) -> ProcessUsage:
    """Run Python with these arguments, in the project's folder. Raises RuntimeError if it fails."""
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
    return ProcessUsage(float(seconds), float(peak) / (2**20 if sys.platform == "darwin" else 2**10))


def median_usage(runs: int, *jobs: Callable[[], ProcessUsage]) -> list[ProcessUsage]:
    """Each job's medians over so many alternating runs, after a warm-up run that does not count."""
    rounds = [[job() for job in jobs] for _ in range(runs + 1)][1:]
    by_job = list(zip(*rounds, strict=True))
    return [ProcessUsage(median(u.seconds for u in usages), median(u.peak_mb for u in usages)) for usages in by_job]


# Stores


def store_template(options: Options) -> synthetic.Template:
    """What stores are modelled on: the papers given, which are ingested first, or the sample paper."""
    if not options.papers:
        return synthetic.random_template(DIMENSION)
    folder = options.work / "real"
    with _build_once(folder) as is_new:
        if is_new:
            run_python(["ingest.py", *map(str, options.papers)], options.environment(folder))
    return synthetic.template_from(folder)


def build_store(options: Options, chunks: int, environment: Mapping[str, str], dimension: int) -> Path:
    """Build a store of so many passages, with the plain design's index of them, unless an earlier run did."""
    folder = options.work / f"made-{chunks}"
    with _build_once(folder) as is_new:
        if is_new:
            print(f"building a store of {chunks:,} passages", file=sys.stderr)
            template, count = store_template(options), max(1, chunks // PASSAGES_PER_PAPER)
            papers = synthetic.generate_papers(template, chunks, dimension, count)
            app = app_with({**environment, "VECTORSTORE_DIR": str(folder)})
            with closing(_fill_store(folder, app, ((*paper, None) for paper in papers))) as library:
                rows = {id: vector for ids, batch in library.vectors() for id, vector in zip(ids, batch, strict=True)}
                passages = list(library.passages())
                save_index(folder / "plain", [p.text for p in passages], np.stack([rows[p.id] for p in passages]))
    return folder


def build_store_with_files(options: Options) -> Path:
    """Build a store of PAPERS papers whose files exist: copies of the papers given, each with its own comment."""
    folder = options.work / "files"
    originals = options.papers or [synthetic.SAMPLE]

    def copies() -> Iterator[tuple[NewPaper, Vectors, SourceFile]]:
        papers = synthetic.generate_papers(store_template(options), PAPERS * PASSAGES_PER_PAPER, DIMENSION, PAPERS)
        for number, (paper, vectors) in enumerate(papers):
            path = folder / "papers" / f"{number:04}.pdf"
            path.write_bytes(originals[number % len(originals)].read_bytes() + f"\n% {number}\n".encode())
            file = SourceFile(str(path), path.name, sha256_file(path))
            yield replace(paper, id=file.sha256), vectors, file

    with _build_once(folder) as is_new:
        if is_new:
            (folder / "papers").mkdir(parents=True)
            _fill_store(folder, app_with(options.environment(folder)), copies()).close()
    return folder


@contextmanager
def _build_once(folder: Path) -> Iterator[bool]:
    """Yields whether the block must build this folder: it does not exist, or an earlier build did not finish."""
    finished = folder / "whole"
    is_new = not finished.exists()
    if is_new:
        shutil.rmtree(folder, ignore_errors=True)
    yield is_new
    finished.touch()


def _fill_store(folder: Path, app: App, papers: Iterable[tuple[NewPaper, Vectors, SourceFile | None]]) -> Library:
    """Build a store of these papers that the app accepts. Returns its library, open."""
    library = synthetic.fill_library(folder, fingerprint(app.new_embedder(), app.reading), papers)
    indexes.update_indexes(folder, library, "tantivy")
    return library


# Measurements


def measure_help(options: Options) -> Iterator[Row]:
    for script in ("query.py", "ingest.py"):
        (usage,) = median_usage(options.runs, partial(run_python, [script, "--help"], {}))
        yield Row(f"`{script} --help`", _format(usage), "", "", "under 0.25 s", usage.seconds < 0.25)


def measure_sizes(options: Options) -> Iterator[Row]:
    """One-shot questions at each size, and the chart."""
    points = []
    for chunks in SIZES:
        with ingesting.EmbeddingServer(0.0) as server:
            is_large = chunks == LARGE
            settings = {"EMBEDDER": "ollama", "OLLAMA_HOST": server.url} if is_large else {}
            dimension = LARGE_DIMENSION if is_large else DIMENSION
            folder = build_store(options, chunks, options.environment(options.work, **settings), dimension)
            environment = options.environment(folder, **settings)
            search = ["query.py", "--sources", QUESTION]
            reranked, fused, plain = median_usage(
                options.runs,
                partial(run_python, search, environment),
                partial(run_python, search, {**environment, "RERANKER": "none"}),
                partial(run_python, ["benchmarks/plain.py", "--index", str(folder / "plain"), QUESTION], {}),
            )
        points.append(curve.Point(chunks, reranked.seconds, plain.seconds, reranked.peak_mb, plain.peak_mb))
        # The plain design does not rerank, so Folio is also measured without.
        for usage, how in ((reranked, ""), (fused, " without reranking, as in the plain design")):
            what = f"`query.py --sources`{how}, {chunks:,} passages"
            ratio = plain.seconds / usage.seconds
            yield Row(what, _format(usage), _format(plain), f"{ratio:.1f}", *_size_target(chunks, usage, ratio))
        if chunks == SMALL:
            (usage,) = median_usage(options.runs, partial(run_python, ["query.py", QUESTION], environment))
            what = f"`query.py`, built-in answer, {chunks:,} passages"
            yield Row(what, _format(usage), "", "", "under 2 s", usage.seconds < 2)
    (ROOT / "docs" / "speed.png").write_bytes(curve.draw_chart(points))


def _size_target(chunks: int, usage: ProcessUsage, ratio: float) -> tuple[str, bool | None]:
    """The target for a question over so many passages, and whether it is met."""
    if chunks == SMALL:
        return "ratio 15, under 1 s", ratio >= 15 and usage.seconds < 1
    if chunks == LARGE:
        return "ratio 40, under 500 MB", ratio >= 40 and usage.peak_mb < 500
    return "", None


def measure_warm(options: Options) -> Iterator[Row]:
    """Searches in one process at the largest size, and the recall of their dense part."""
    with ingesting.EmbeddingServer(0.0) as server:
        environment = options.environment(options.work, EMBEDDER="ollama", OLLAMA_HOST=server.url)
        folder = build_store(options, LARGE, environment, LARGE_DIMENSION)
        app = app_with({**environment, "VECTORSTORE_DIR": str(folder), "RERANKER": "none"})
        library = Library(app.library_path)
        try:
            questions = synthetic.make_questions(library, 120)
            embedder = synthetic.LookupEmbedder(questions)
            retriever = app.retriever_over(library, embedder, lambda: app.open_indexes(library))
            for question in questions:  # warm up, so that the files are in memory, as in normal use
                retriever.search(question.text, 20)
            dense, milliseconds = [], []
            for question in questions:
                began = perf_counter()
                result = retriever.search(question.text, 20)
                milliseconds.append((perf_counter() - began) * 1000)
                dense.append(set(result.ranked["dense"]))
            exact = exact_nearest(library, np.stack([question.vector for question in questions]), 20)
        finally:
            library.close()
    recall = float(np.mean([len(found & nearest) / 20 for found, nearest in zip(dense, exact, strict=True)]))
    p50 = median(milliseconds)
    what = f"hybrid search in a running process, {LARGE:,} passages, files in memory, p50"
    yield Row(what, f"{p50:.1f} ms", "", "", "under 10 ms", p50 < 10)
    yield Row("recall of the exact 20 nearest passages", f"{recall:.3f}", "", "", "0.99", recall >= 0.99)


def exact_nearest(library: Library, questions: Vectors, k: int) -> list[set[int]]:
    """The ids of the k passages with the largest cosines to each question, by comparing with all passages."""
    best: list[list[tuple[float, int]]] = [[] for _ in questions]
    for ids, vectors in library.vectors():
        cosines = questions @ vectors.T
        for nearest, row in zip(best, cosines, strict=True):
            nearest += zip(row.tolist(), ids, strict=True)
            nearest.sort(reverse=True)
            del nearest[k:]
    return [{id for _, id in nearest} for nearest in best]


def measure_models(options: Options) -> Iterator[Row]:
    """The models on onnxruntime and on torch; only with articles, which a cross-encoder is trained on."""
    from benchmarks import rerank

    if options.articles is None:
        return
    for result in rerank.measure(options.articles, options.runs):
        agreement = 0.95 if result.what.startswith("rerank") else 0.99
        folio, torch = f"{result.folio_s * 1000:.1f} ms", f"{result.torch_s * 1000:.1f} ms"
        met = result.ratio >= 2 and result.agreement >= agreement
        what, target = f"{result.what}: {result.agreement_text}", f"ratio 2, agreement {agreement}"
        yield Row(what, folio, torch, f"{result.ratio:.1f}", target, met)


def measure_reading(options: Options) -> Iterator[Row]:
    papers = options.papers or [synthetic.SAMPLE] * 20
    figures = ingesting.measure_reading(papers, options.runs)
    folio, bare = (f"{figures.pages / median(seconds):.0f} pages/s" for seconds in (figures.folio, figures.bare))
    what = "parse, clean and split in two processes, compared with bare `get_text`"
    yield Row(what, folio, bare, f"{figures.ratio:.2f}", "ratio 0.85", figures.ratio >= 0.85)


def measure_embedding(options: Options) -> Iterator[Row]:
    for papers, pages in ((20, 12), (200, 1)):
        figures = ingesting.measure_embedding(papers, pages)
        what = f"embedder busy, {papers} {pages}-page papers, 0.5 s per request"
        yield Row(what, f"{figures.busy_share:.1%}", "", "", "95 %", figures.busy_share >= 0.95)


def measure_adding(options: Options) -> Iterator[Row]:
    folder = build_store_with_files(options)
    environment = options.environment(folder)
    (unchanged,) = median_usage(options.runs, partial(run_python, ["ingest.py"], environment))
    files = sorted((folder / "papers").glob("*.pdf"))
    began = perf_counter()
    for file in files:
        sha256_file(file)
    hashing_s = perf_counter() - began
    what = f"a second `ingest.py`, {PAPERS:,} papers, nothing new, compared with only hashing them"
    yield Row(what, _format(unchanged), f"{hashing_s:.2f} s", "", "", None)
    with tempfile.TemporaryDirectory(dir=options.work) as name:
        temporary = Path(name)
        ingesting.make_papers(temporary / "new", 2 * (options.runs + 1), 12)
        papers = iter(sorted((temporary / "new").glob("*.pdf")))

        def add_to_full() -> ProcessUsage:
            return run_python(["ingest.py", str(next(papers))], environment)

        def add_to_empty() -> ProcessUsage:
            paper = next(papers)
            return run_python(["ingest.py", str(paper)], options.environment(temporary / f"empty-{paper.stem}"))

        full, empty = median_usage(options.runs, add_to_full, add_to_empty)
    ratio = full.seconds / empty.seconds
    what = f"adding a 12-page paper to {PAPERS:,} papers, compared with an empty store"
    yield Row(what, _format(full), _format(empty), f"{ratio:.2f}", "ratio at most 1.5", ratio <= 1.5)


def _format(usage: ProcessUsage) -> str:
    return f"{usage.seconds:.2f} s, {usage.peak_mb:.0f} MB"


MEASUREMENTS: Mapping[str, Callable[[Options], Iterator[Row]]] = {
    "help": measure_help,
    "sizes": measure_sizes,
    "warm": measure_warm,
    "models": measure_models,
    "reading": measure_reading,
    "embedding": measure_embedding,
    "adding": measure_adding,
}


def _cells(row: Row) -> tuple[str, ...]:
    met = "" if row.met is None else "yes" if row.met else "no"
    return row.what, row.folio, row.plain, row.ratio, row.target, met


def markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def markdown_table(rows: Sequence[Row]) -> str:
    head = ("what", "Folio", "plain design", "ratio", "target", "met")
    return "\n".join(map(markdown_row, (head, ("---",) * len(head), *map(_cells, rows))))


def main(argv: Sequence[str] | None = None) -> int:
    parts = tuple(MEASUREMENTS)
    parser = argparse.ArgumentParser(description="Compare Folio's speed with the plain design's.")
    parser.add_argument("--papers", type=Path, metavar="FOLDER", help="PDFs to model stores on, and to read")
    parser.add_argument("--articles", type=Path, metavar="FILE", help="questions on texts, to train a cross-encoder on")
    parser.add_argument("--work", type=Path, metavar="FOLDER", help="where stores are built and kept (default: build/)")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts, metavar="PART", help=", ".join(parts))
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="alternating runs per median (default: 5)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the table (default: benchmarks/RESULTS.md)")
    arguments = parser.parse_args(argv)
    work = (arguments.work or ROOT / "build").resolve()
    work.mkdir(parents=True, exist_ok=True)
    papers = sorted(discovery.find_pdfs([arguments.papers])) if arguments.papers else []
    options = Options(work, papers, arguments.articles, arguments.runs)
    rows: list[Row] = []
    for part, measure in MEASUREMENTS.items():
        if part in arguments.only:
            for row in measure(options):
                print(markdown_row(_cells(row)), flush=True)
                rows.append(row)
    machine = f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}, Python {platform.python_version()}"
    about = (
        f"{datetime.now(UTC):%Y-%m-%d}, {machine}. Medians of {options.runs} alternating runs; time and peak memory"
        " of whole processes. Made by `make bench`."
    )
    out = arguments.out or ROOT / "benchmarks" / "RESULTS.md"
    out.write_text(f"# Speed\n\n{about}\n\n{markdown_table(rows)}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
