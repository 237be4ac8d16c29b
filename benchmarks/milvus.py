"""A library in Milvus Lite compared with one in a folder: build, disk, memory, recall, and the time of a question.

    python benchmarks/milvus.py --work /tmp/scale                          12,000, 60,000 and 232,523 passages
    python benchmarks/milvus.py --work /tmp/scale --like vectorstore/      texts and vectors modelled on a store's
    python benchmarks/milvus.py --work /tmp/scale --only questions         of the stores that an earlier run built
    python benchmarks/milvus.py --work /tmp/scale --only wire --sizes 12000   bytes of a question, between the two
    python benchmarks/milvus.py --work /tmp/scale --only table --out benchmarks/milvus-measured.json   all of it again

The same made-up papers (synthetic.py) are added to both stores with `PaperStore.add`, as an ingest adds them, and the
indexes are brought up to date; only parsing and embedding are left out. Each store is built, and asked, in a process of
its own. Questions are retrieval alone: candidates, fusion, and the text of the hits. Rounds alternate between the two
stores; the figures are medians over the rounds, and their ratios are of one run.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any, Literal, get_args

import numpy as np

# A script run as a file can import only from its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import loopback_proxy, milvus_table, synthetic
from benchmarks.speed import PASSAGES_PER_PAPER, app_with, exact_nearest
from folio.app import App
from folio.ingest.chunking import chunk_id
from folio.search.fusion import Mode
from folio.search.retriever import Retriever, SearchResult
from folio.store import indexes
from folio.store.library import Library
from folio.types import SourceFile

SIZES = (12_000, 60_000, 232_523)
DIMENSION = 768
TOP = 20  # passages that a question asks for, and that recall is of
MODES: tuple[Mode, ...] = ("dense", "lexical", "hybrid")
Store = Literal["local", "milvus"]
STORES: tuple[Store, ...] = get_args(Store)
SCRIPT = Path(__file__).resolve()


def app_over(folder: Path, store: Store, uri: str = "") -> App:
    """The app over one of the stores in a folder. uri: of a server that serves the Milvus Lite file."""
    models = {"EMBEDDER": "builtin", "LLM": "builtin", "RERANKER": "none", "QUERY_LOG": "false"}
    place = {"STORE": store, "VECTORSTORE_DIR": str(folder / store), "MILVUS_TIMEOUT_S": "600"}
    return app_with({**models, **place, "MILVUS_URI": uri} if uri else {**models, **place})


# Building


def build(folder: Path, store: Store, chunks: int, like: Path | None) -> dict[str, Any]:
    """Build a store and return what that took."""
    template = synthetic.template_from(like) if like else synthetic.random_template(DIMENSION)
    count = max(1, chunks // PASSAGES_PER_PAPER)
    app = app_over(folder, store)
    load = os.getloadavg()[0]
    add_s, add_processor_s, done = 0.0, 0.0, 0
    with indexes.writing(app.store_folder), closing(app.open_library(create=True)) as library:
        library.set_fingerprint(synthetic.fingerprint(DIMENSION))
        for paper, vectors in synthetic.generate_papers(template, chunks, DIMENSION, count):
            ids = [chunk_id(paper.id, start, end) for start, end in paper.spans]
            file = SourceFile(f"/papers/{paper.title}.pdf", f"{paper.title}.pdf", paper.id)
            began, used = perf_counter(), process_time()
            library.add(paper, file, ids, vectors)
            add_s += perf_counter() - began
            add_processor_s += process_time() - used
            done += len(ids)
            if done // 5_000 > (done - len(ids)) // 5_000:
                print(f"{store}: {done:,} passages, {done / add_s:.0f} a second", file=sys.stderr, flush=True)
        began, used = perf_counter(), process_time()
        app.backend.update_indexes(library)
        update_s = perf_counter() - began
        update_processor_s = process_time() - used
    return {
        "chunks": chunks,
        "papers": count,
        "add_s": add_s,
        "update_s": update_s,
        "add_processor_s": add_processor_s,
        "update_processor_s": update_processor_s,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "disk_mb": {part.name: _size_mb(part) for part in sorted(app.store_folder.iterdir())},
        "load": [load, os.getloadavg()[0]],
    }


def _size_mb(path: Path) -> float:
    total = 0
    for each in [path] if path.is_file() else path.rglob("*"):
        with suppress(FileNotFoundError):  # Milvus Lite merges files in the background
            total += each.stat().st_blocks * 512 if each.is_file() else 0
    return total / 2**20


def make_questions(folder: Path, count: int) -> None:
    """Write questions about the library in a folder, and the passages that are nearest to each."""
    with closing(Library(folder / "local" / indexes.LIBRARY)) as library:
        questions = synthetic.make_questions(library, count)
        vectors = np.stack([question.vector for question in questions])
        nearest = [sorted(ids) for ids in exact_nearest(library, vectors, TOP)]
    np.save(folder / "questions.npy", vectors)
    texts = [{"text": each.text, "chunk": each.chunk} for each in questions]
    (folder / "questions.json").write_text(json.dumps({"questions": texts, "nearest": nearest}))


def read_questions(folder: Path) -> tuple[list[synthetic.Question], list[set[int]]]:
    """What `make_questions` wrote."""
    kept = json.loads((folder / "questions.json").read_text())
    vectors = np.load(folder / "questions.npy")
    pairs = zip(kept["questions"], vectors, strict=True)
    questions = [synthetic.Question(each["text"], vector, each["chunk"]) for each, vector in pairs]
    return questions, [set(ids) for ids in kept["nearest"]]


# Questions


def answer_requests(folder: Path, store: Store, uri: str = "") -> None:
    """Ask the questions that stdin names, a JSON object a line, and print what came of it."""
    questions, _ = read_questions(folder)
    app = app_over(folder, store, uri)
    began = perf_counter()
    with closing(app.open_library()) as library:
        embedder = synthetic.LookupEmbedder(questions)
        fusion = {mode: replace(app.models.fusion, mode=mode) for mode in MODES}
        opened = app.open_indexes(library)

        def retriever_in(mode: Mode) -> Retriever:
            return Retriever(library, lambda: opened, embedder, None, fusion[mode])

        retrievers = {mode: retriever_in(mode) for mode in MODES}
        retrievers["hybrid"].search(questions[0].text, TOP)
        print(json.dumps({"open_s": perf_counter() - began}), flush=True)
        for line in sys.stdin:
            asked = json.loads(line)
            results = [_ask(retrievers[asked["mode"]], questions[place]) for place in asked["places"]]
            memory = {"resident_mb": _status_mb("VmRSS"), "peak_mb": _status_mb("VmHWM")}
            print(json.dumps({"results": results, **memory}), flush=True)


def _ask(retriever: Retriever, question: synthetic.Question) -> dict[str, Any]:
    began, used = perf_counter(), process_time()
    result: SearchResult = retriever.search(question.text, TOP)
    milliseconds, processor_ms = (perf_counter() - began) * 1000, (process_time() - used) * 1000
    return {
        "ms": milliseconds,
        "processor_ms": processor_ms,  # Milvus Lite is in this process
        "stages": result.timings_ms,
        "hits": [hit.chunk.id for hit in result.hits],
        "dense": result.ranked.get("dense", ()),
    }


def _status_mb(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:")), 0.0)


class Asker:
    """A process that asks one store."""

    def __init__(self, folder: Path, store: Store, uri: str = "") -> None:
        command = [sys.executable, str(SCRIPT), "--work", str(folder), "--answer", store, "--uri", uri]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.open_s = float(self._read()["open_s"])

    def ask(self, mode: Mode, places: Sequence[int]) -> dict[str, Any]:
        """Ask these questions in a mode."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"mode": mode, "places": list(places)}) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("a process that asks has ended; see its error above")
        return dict(json.loads(line))

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(120)


def measure_questions(folder: Path, runs: int, timed: int) -> dict[str, Any]:
    """Recall over all questions, and the times of the first `timed` in `runs` rounds; both stores take turns."""
    questions, nearest = read_questions(folder)
    everything, some = range(len(questions)), range(min(timed, len(questions)))
    figures: dict[str, Any] = {"load": [os.getloadavg()[0]]}
    with closing(Asker(folder, "local")) as local, closing(Asker(folder, "milvus")) as milvus:
        askers: Mapping[Store, Asker] = {"local": local, "milvus": milvus}
        for store, asker in askers.items():
            figures[store] = {"open_s": asker.open_s}
        for mode in MODES:
            # The first round warms up too: it is not timed.
            found = {store: asker.ask(mode, everything)["results"] for store, asker in askers.items()}
            if mode == "dense":
                for store in askers:
                    shares = [
                        len(set(r["dense"]) & exact) / TOP for r, exact in zip(found[store], nearest, strict=True)
                    ]
                    figures[store]["recall"] = float(np.mean(shares))
            else:
                pairs = zip(found["local"], found["milvus"], strict=True)
                shares = [len(set(a["hits"]) & set(b["hits"])) / max(1, len(a["hits"])) for a, b in pairs]
                figures[f"{mode}_in_common"] = float(np.mean(shares))
            rounds: dict[Store, list[dict[str, Any]]] = {store: [] for store in askers}
            for _ in range(runs):
                for store, asker in askers.items():
                    rounds[store].append(asker.ask(mode, some))
            for store in askers:
                figures[store] |= _summary(mode, rounds[store])
    figures["load"].append(os.getloadavg()[0])
    return figures


def _summary(mode: Mode, rounds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    times = [[result["ms"] for result in each["results"]] for each in rounds]
    processor = [median(result["processor_ms"] for result in each["results"]) for each in rounds]
    stages: dict[str, list[float]] = {}
    for each in rounds:
        for result in each["results"]:
            for name, ms in result["stages"].items():
                stages.setdefault(name, []).append(ms)
    return {
        f"{mode}_p50_ms": median(float(np.percentile(each, 50)) for each in times),
        f"{mode}_p95_ms": median(float(np.percentile(each, 95)) for each in times),
        f"{mode}_processor_ms": median(processor),
        f"{mode}_stages_ms": {name: median(each) for name, each in stages.items()},
        "resident_mb": rounds[-1]["resident_mb"],
        "peak_mb": rounds[-1]["peak_mb"],
    }


# What goes over the wire


def measure_wire(folder: Path, count: int) -> dict[str, Any]:
    """Requests and bytes of a question, by mode: a server of Milvus Lite behind a proxy that counts."""
    figures: dict[str, Any] = {}
    count = min(count, (len(read_questions(folder)[0]) - 1) // len(MODES))
    with (
        _lite_server(folder / "milvus" / "cluster.db") as port,
        loopback_proxy.serving(port) as proxy,
        closing(Asker(folder, "milvus", f"http://127.0.0.1:{proxy.port}")) as asker,
    ):
        for place, mode in enumerate(MODES):  # other questions each: a process keeps the texts that it has read
            asker.ask(mode, [0])
            before = proxy.counted()
            asker.ask(mode, range(1 + place * count, 1 + (place + 1) * count))
            sent, received = (now - then for now, then in zip(proxy.counted(), before, strict=True))
            figures[mode] = {"sent_bytes": sent / count, "received_bytes": received / count}
    return figures


@contextmanager
def _lite_server(file: Path) -> Iterator[int]:
    """Milvus Lite over a file, in a process of its own; yields its port."""
    code = (
        "import sys, time\n"
        "from milvus_lite.adapter.grpc.server import start_server_in_thread\n"
        "server, database, port = start_server_in_thread(data_dir=sys.argv[1], host='127.0.0.1', port=0)\n"
        "print(port, flush=True)\n"
        "sys.stdin.read()\n"
        "server.stop(grace=0)\n"
        "database.close()\n"
    )
    command = [sys.executable, "-c", code, str(file)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()
        process.wait(60)


# All of it


def build_both(work: Path, chunks: int, like: Path | None, questions: int) -> None:
    """Build both stores of a size, unless an earlier run did, and their questions."""
    folder = work / str(chunks)
    folder.mkdir(parents=True, exist_ok=True)
    for store in STORES:
        if not (folder / f"built-{store}.json").exists():
            also = ["--like", str(like)] if like else []
            command = [sys.executable, str(SCRIPT), "--work", str(folder), "--build", store, "--sizes", str(chunks)]
            subprocess.run([*command, *also], check=True)
    if not (folder / "questions.json").exists():
        make_questions(folder, questions)


def measured(work: Path, sizes: Sequence[int]) -> dict[str, Any]:
    """All that was measured at these sizes, for scale_model.py, which reckons from the first."""
    found: dict[str, Any] = {"base": str(sizes[0]), "wire": _kept(work / str(sizes[0]) / "wire.json"), "sizes": {}}
    for chunks in sizes:
        folder = work / str(chunks)
        built: dict[str, Any] = {store: _kept(folder / f"built-{store}.json") for store in STORES}
        asked = _kept(folder / "asked.json")
        found["sizes"][str(chunks)] = {**built, "asked": asked}
    return found


def _kept(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text())) if path.exists() else {}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compare a library in Milvus Lite with one in a folder.")
    parser.add_argument("--work", type=Path, required=True, help="where stores are built and kept")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N", help="passages")
    parser.add_argument("--like", type=Path, metavar="STORE", help="the store that texts and vectors are modelled on")
    parser.add_argument("--only", choices=("build", "questions", "wire", "table"), help="one part")
    parser.add_argument("--out", type=Path, metavar="FILE", help="all that was measured so far, as JSON")
    parser.add_argument("--runs", type=int, default=5, help="rounds (default: 5)")
    parser.add_argument("--questions", type=int, default=60, help="questions that recall is of (default: 60)")
    parser.add_argument("--timed", type=int, default=20, help="questions of a timed round (default: 20)")
    parser.add_argument("--build", choices=STORES, help=argparse.SUPPRESS)
    parser.add_argument("--answer", choices=STORES, help=argparse.SUPPRESS)
    parser.add_argument("--uri", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    work = arguments.work.resolve()
    if arguments.build:
        built = build(work, arguments.build, arguments.sizes[0], arguments.like)
        (work / f"built-{arguments.build}.json").write_text(json.dumps(built))
        return 0
    if arguments.answer:
        answer_requests(work, arguments.answer, arguments.uri)
        return 0
    for chunks in arguments.sizes:
        folder = work / str(chunks)
        if arguments.only in (None, "build"):
            build_both(work, chunks, arguments.like, arguments.questions)
        if arguments.only in (None, "questions"):
            (folder / "asked.json").write_text(json.dumps(measure_questions(folder, arguments.runs, arguments.timed)))
        if arguments.only == "wire":
            (folder / "wire.json").write_text(json.dumps(measure_wire(folder, arguments.timed)))
    found = measured(work, arguments.sizes)
    print(milvus_table.markdown(found))
    if arguments.out:
        arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
