"""SIGKILL at every write step: each paper is in its old or new state, and nothing is embedded twice."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from folio.errors import StoreMissing
from folio.papers.metadata import simple_metadata
from folio.store.indexes import open_indexes
from folio.store.library import Library
from folio.store.query_log import QueryLog
from folio.store.rows import text_hash
from folio.store.user_file import set_aside
from folio.system import workers
from tests.helpers.exhaustive import EXHAUSTIVE, sample
from tests.helpers.fakes import HashingApp, HashingEmbedder, digest, hashing_app, make_pdf, read_once
from tests.helpers.forks import forks_of
from tests.helpers.libraries import ENTRY
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.paths import ROOT

BATCH = 2

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork and can be killed")

# Steps that begin a transaction: of both parts of a library, or of one (SqliteDatabase.transaction)
_BEGUN = ("sql BEGIN IMMEDIATE", "sql UPDATE meta SET value = value WHERE", "sql UPDATE kept SET value = value WHERE")
# File name -> everything the library has about its paper
State = dict[str, tuple[object, ...]]


@dataclass(frozen=True)
class Scenario:
    """The store at first, the changes to the papers, and the command."""

    change: Callable[[Path], object]
    filled: bool = True
    prune: bool = False
    rebuild: bool = False
    embedder: str = "hashing"
    before: str = "single"  # INDEX, of the store at first
    index: str = "single"  # and of the command
    is_damaged: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        return index_settings(self.index)

    @property
    def is_variant(self) -> bool:
        """Whether it does what another does with one index, with two."""
        return (self.before, self.index) != ("single", "single")


def index_settings(index: str) -> dict[str, Any]:
    return {"INDEX": index, "COARSE_SIZE": 200, "FINE_SIZE": 60}


def _replace(papers: Path) -> None:
    make_pdf(papers / "sponges.pdf", "gradients", headings=("1 Introduction", "2 Other Methods"))
    make_pdf(papers / "trees.pdf", "trees", change="A splay tree moves what was asked for to the root.")


def _remove(papers: Path) -> None:
    (papers / "lattices.pdf").unlink()
    (papers / "trees.pdf").unlink()


SCENARIOS = {
    "ingest": Scenario(lambda papers: None, filled=False),
    "replacement": Scenario(_replace),
    "prune": Scenario(_remove, prune=True),
    "rebuild": Scenario(_replace, rebuild=True, embedder="other"),
    "ingest, dual": Scenario(lambda papers: None, filled=False, before="dual", index="dual"),
    "replacement, dual": Scenario(_replace, before="dual", index="dual"),
    "prune, dual": Scenario(_remove, prune=True, before="dual", index="dual"),
    "rebuild, single to dual": Scenario(_replace, rebuild=True, embedder="other", index="dual"),
    "rebuild, dual to single": Scenario(_replace, rebuild=True, embedder="other", before="dual"),
}


@pytest.fixture(autouse=True)
def _no_worker_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "run_guarded", read_once)


def _state(app: HashingApp) -> State:
    """Everything about each file's paper: text, pages, chunks, vectors. Empty before the library is made."""
    try:
        library = app.open_library()
    except StoreMissing:
        return {}
    with library.reading():
        papers = {paper.id: paper for paper in library.papers()}
        found: State = {}
        for file in library.files():
            paper = papers[file.sha256]
            ids = library.chunk_ids_of([paper.id])
            chunks = [*library.chunks(ids).values(), *(one for fine in library.fine_in(ids).values() for one in fine)]
            vectors = library.vectors_of([chunk.id for chunk in chunks]).tolist()
            spans = sorted(
                (chunk.start, chunk.end, chunk.id, chunk.parent or 0, tuple(vector))
                for chunk, vector in zip(chunks, vectors, strict=True)
            )
            text = library.text(paper.id, 0, paper.length)
            whole = library.paper_vectors()[paper.id]
            about = (paper.pages, paper.sections, whole.text_hash, tuple(whole.vector.tolist()))
            found[file.name] = (file, paper.title, about, paper.problems, text, paper.chunks, *spans)
    library.close()
    return found


def _texts(state: State) -> set[str]:
    """Every passage of these papers."""
    return {text[start:end] for text, spans in map(_unpacked, state.values()) for start, end in spans}


def _unpacked(paper: tuple[Any, ...]) -> tuple[str, list[tuple[int, int]]]:
    """Its text and its spans."""
    return paper[4], [(span[0], span[1]) for span in paper[6:]]


def _record(app: HashingApp) -> list[dict[str, object]]:
    entries: list[dict[str, object]] = json.loads(app.settings.INGESTED_JSON.read_text(encoding="utf-8"))
    return [{key: value for key, value in entry.items() if key != "added"} for entry in entries]


def _log(folder: Path) -> list[str]:
    path = folder / "embedded.log"
    return path.read_text(encoding="ascii").split() if path.exists() else []


def _kill_at(scenario: Scenario, papers: Path, job: Path, runs: list[tuple[Path, int]]) -> list[int]:
    """Run the ingest in each folder until this write step; returns the signals."""
    job.write_text(
        json.dumps(
            {name: getattr(scenario, name) for name in ("embedder", "settings", "prune", "rebuild", "is_damaged")}
            | {"papers": str(papers), "runs": [(str(folder), step) for folder, step in runs]}
        )
    )
    code, out = forks_of("tests.helpers.kill_child").run(job)
    assert code == 0, out
    assert "Traceback" not in out, out
    return [int(line) for line in out.split()]


def _app(folder: Path, papers: Path, index: str, name: str = "hashing", notices: list[str] | None = None) -> HashingApp:
    embedder = HashingEmbedder(name=name, log=folder / "embedded.log")
    app = hashing_app(folder, embedder, PAPERS_DIR=papers, **index_settings(index))
    return app if notices is None else HashingApp(app.settings, notices.append, app.hashing)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_kill_at_a_write_step_loses_nothing(name: str, tmp_path: Path) -> None:
    scenario, papers, start = SCENARIOS[name], tmp_path / "papers", tmp_path / "start"
    for subject in ("lattices", "sponges", "trees"):
        make_pdf(papers / f"{subject}.pdf", subject, headings=("1 Introduction", "2 Methods"))
    start.mkdir()
    if scenario.filled:
        _app(start, papers, scenario.before).run()
        (start / "embedded.log").unlink()
    before = _state(_app(start, papers, scenario.before))
    scenario.change(papers)

    undisturbed = shutil.copytree(start, tmp_path / "undisturbed")
    assert _kill_at(scenario, papers, tmp_path / "job", [(undisturbed, 0)]) == [0]
    steps = json.loads((undisturbed / "steps.json").read_text())
    after = _state(_app(undisturbed, papers, scenario.index))
    record = _record(_app(undisturbed, papers, scenario.index))
    assert before != after
    assert "Methods" in str({**before, **after}["sponges.pdf"][2])
    once = set(_log(undisturbed))
    assert len(_log(undisturbed)) == len(once)

    chosen = _chosen(steps, is_variant=scenario.is_variant)
    runs = [(shutil.copytree(start, tmp_path / f"{step:03}"), step) for step in chosen]
    assert _kill_at(scenario, papers, tmp_path / "job", runs) == [signal.SIGKILL] * len(runs)
    for folder, step in runs:
        try:
            _assert_nothing_lost(scenario, folder, papers, before, after, record, once)
        except BaseException as error:
            error.add_note(f"killed at step {step} of {len(steps)}: {steps[step - 1]}")
            raise
        shutil.rmtree(folder, ignore_errors=True)  # tantivy may still be removing files of its own


def _chosen(steps: list[str], *, is_variant: bool) -> list[int]:
    """The write steps to be killed at; with EXHAUSTIVE=1 all of them, which takes some minutes.

    Steps between which nothing becomes durable leave the same files behind, so one of them stands for all. Of these,
    one in three of the kinds, told by what was done just before and what would come next; and the middle of the
    longest transaction. Of a variant: those about its fine passages, and one in sixteen. Many more: campaign/kills.py.
    """
    if EXHAUSTIVE:
        return list(range(1, len(steps) + 1))
    differing, longest = _differing(steps)
    kinds: dict[tuple[str, str], int] = {}
    for step in differing:
        kinds.setdefault((_kind(steps[step - 2]) if step > 1 else "", _kind(steps[step - 1])), step)
    if is_variant:
        kinds = {kind: step for kind, step in kinds.items() if "fine" in f"{kind}"} | dict(list(kinds.items())[::16])
    return sorted({*sample(sorted(kinds.values()), 3), longest})


def _kind(step: str) -> str:
    kind = re.sub(r"[0-9a-f]*\d[0-9a-f]*", "#", step)
    return "sql CREATE" if kind.startswith("sql CREATE") else kind


def _differing(steps: list[str]) -> tuple[list[int], int]:
    """The steps before which something became durable, and the one in the middle of the longest transaction."""
    differing, longest, began, is_new = list[int](), (0, 0), 0, True
    for step, name in enumerate(steps, 1):
        if is_new:
            differing.append(step)
        if name.startswith(_BEGUN):
            began = step
        elif name.startswith("sql COMMIT"):
            longest, began = max(longest, (step - began, (began + step) // 2)), 0
        is_new = not (began and name.startswith("sql")) and "embedded.log" not in name
    return differing, longest[1]


def _assert_nothing_lost(
    scenario: Scenario, folder: Path, papers: Path, before: State, after: State,
    record: list[dict[str, object]], once: set[str],
) -> None:  # fmt: skip
    first_log, notices = _log(folder), list[str]()
    state = _state(_app(folder, papers, scenario.index))
    is_new = state == after
    if scenario.rebuild:
        assert state in (before, after)
    for file in before.keys() | after.keys():
        assert state.get(file) in (before.get(file), after.get(file))
    assert state.keys() <= before.keys() | after.keys()

    remembered = set[str]()
    made_with = scenario.embedder if is_new else "hashing"
    app = _app(folder, papers, scenario.index if is_new else scenario.before, made_with, notices)
    if app.library_path.exists() and (state or before):
        _assert_searchable(app, state)
        assert len(notices) <= 1
        remembered = _remembered(app, after)

    again = _app(folder, papers, scenario.index, scenario.embedder)
    again.run(prune=scenario.prune, rebuild=scenario.rebuild and not is_new)
    assert _state(again) == after
    assert again.verify() == []
    assert _record(again) == record
    _assert_tidy(folder, rebuilt=scenario.rebuild and is_new, dual=scenario.index == "dual")

    # Only the two batches that the first run had not yet saved are embedded again.
    second_log = _log(folder)[len(first_log) :]
    assert not set(second_log) & remembered or scenario.rebuild
    twice = {text for text, times in Counter(first_log + second_log).items() if times > 1}
    assert twice <= set(first_log[-2 * BATCH :])
    assert set(first_log + second_log) == once


def _assert_searchable(app: HashingApp, state: State) -> None:
    """Both indexes match the library, and every paper can be found."""
    library = Library(app.library_path)
    with library.reading() as stamp:
        indexes = open_indexes(app.store_folder, library, "tantivy", app.notice)
        assert indexes.stamp == stamp
        assert indexes.vectors.ids() == indexes.lexical.ids() == library.chunk_ids()
        assert (indexes.fine.ids() if indexes.fine else set()) == library.chunk_ids(grain="fine")
    if state:
        retriever = app.retriever(library)
        for file in state:
            text = _unpacked(state[file])[0]
            hits = retriever.search(text[:60], 3).hits
            assert hits[0].paper.file == file
            assert retriever.search_papers(text[:60], 1)[0].paper.file == file
        assert retriever.papers_without_vector() == 0
    library.close()
    assert app.verify() == []


def _remembered(app: HashingApp, after: State) -> set[str]:
    """The texts needed by the ingest for which the library has vectors."""
    library = app.open_library()
    texts = {text_hash(text): digest(text) for text in _texts(after)}
    found = {texts[key] for key in library.recall(list(texts))}
    library.close()
    return found


def _assert_tidy(folder: Path, rebuilt: bool, dual: bool) -> None:
    """No partial file and no file of an earlier state is left."""
    store = folder / "store"
    names = sorted(path.name for path in store.iterdir() if not path.name.endswith(("-wal", "-shm")))
    known = r"vectors-[0-9a-f]{8}-\d+\.faiss|user-\d{4}-\d\d-\d\d\.sqlite|user\.lock"
    left = [name for name in names if not re.fullmatch(known, name)]
    if rebuilt:  # a rebuild killed after the swap leaves its copy to the next one
        left = [name for name in left if name != "rebuild.sqlite"]
    files = ["lexical", "library.sqlite", "user.sqlite", "vectors.json", "writer.lock"]
    assert left == [*(["fine"] if dual else []), *files]
    for place in (store, store / "fine") if dual else (store,):
        listed = [segment["file"] for segment in json.loads((place / "vectors.json").read_text())["segments"]]
        assert [path.name for path in sorted(place.glob("*.faiss"))] == sorted(listed)
    assert not [path.name for path in folder.rglob("*.new")]
    assert not [path.name for path in folder.rglob(".tmp*")]


@pytest.mark.slow
def test_a_killed_rebuild_of_a_damaged_library_loses_nothing(tmp_path: Path) -> None:
    scenario, papers, start = Scenario(_replace, rebuild=True, is_damaged=True), tmp_path / "papers", tmp_path / "start"
    for subject in ("lattices", "sponges"):
        make_pdf(papers / f"{subject}.pdf", subject)
    start.mkdir()
    app = _app(start, papers, "single")
    app.run()
    with closing(app.open_library()) as library:
        for paper in library.papers():
            library.set_metadata(paper.id, "person", simple_metadata(year=1999, origin="person"))
        QueryLog(library.database).add(ENTRY)
    said = _said(app)
    with closing(sqlite3.connect(app.library_path)) as connection:
        connection.execute("DROP TABLE vectors")

    undisturbed = shutil.copytree(start, tmp_path / "undisturbed")
    assert _kill_at(scenario, papers, tmp_path / "job", [(undisturbed, 0)]) == [0]
    steps = json.loads((undisturbed / "steps.json").read_text())
    after = _state(_app(undisturbed, papers, "single"))
    at_the_end = next(step for step, name in enumerate(steps, 1) if name == "os.rename store/library.sqlite")
    chosen = sorted(
        {*sample(_chosen(steps, is_variant=False), 3), *range(at_the_end - 3, len(steps) + 1, 1 if EXHAUSTIVE else 2)}
    )
    runs = [(shutil.copytree(start, tmp_path / f"{step:03}"), step) for step in chosen]
    assert _kill_at(scenario, papers, tmp_path / "job", runs) == [signal.SIGKILL] * len(runs)
    for folder, step in runs:
        again = _app(folder, papers, "single", notices=[])
        again.run(rebuild=True)
        assert (_state(again), _said(again)) == (after, said), f"killed at step {step} of {len(steps)}"
        assert again.verify() == []
        assert len(set_aside(again.library_path)) == 1
        shutil.rmtree(folder, ignore_errors=True)


def _said(app: HashingApp) -> list[Any]:
    """The edits and the log."""
    with closing(app.open_library()) as library:
        edits = library.database.query("SELECT paper, source, fields FROM metadata ORDER BY paper")
        return [edits, QueryLog(library.database).entries()]


# The whole command, with its worker processes, killed from outside


@pytest.mark.slow
def test_the_command_killed_while_it_embeds_loses_nothing(tmp_path: Path) -> None:
    random_ = random.Random(20260801)
    for subject in ("lattices", "sponges", "trees", "gradients"):
        make_pdf(tmp_path / "papers" / f"{subject}.pdf", subject)
    with OllamaStandIn(dimension=64) as server:
        assert _ingest(tmp_path / "undisturbed", tmp_path, server).wait() == 0
        undisturbed = _cli_state(tmp_path / "undisturbed", tmp_path)
        once = Counter(server.embedded())
        assert set(once.values()) == {1}
        assert len(undisturbed) == 4
        seen = len(server.embedded())
        twice = 0
        for kill in range(40 if EXHAUSTIVE else 2):
            command = _ingest(tmp_path / "killed", tmp_path, server)
            if kill % 2:
                time.sleep(random_.uniform(0.1, 2))
            else:
                wanted = seen + random_.randint(1, len(once) // 4)
                deadline = time.monotonic() + 120
                while len(server.embedded()) < wanted and command.poll() is None:
                    assert time.monotonic() < deadline
                    time.sleep(0.002)
                time.sleep(random_.choice([0, 0.01, 0.03]))
            command.kill()
            command.wait()
            seen = len(server.embedded())
            twice += 2 * BATCH
            found = _cli_state(tmp_path / "killed", tmp_path)
            assert found.items() <= undisturbed.items(), f"kill {kill}"
        assert _ingest(tmp_path / "killed", tmp_path, server).wait() == 0
        assert _cli_state(tmp_path / "killed", tmp_path) == undisturbed
        embedded = Counter(server.embedded()) - once
        assert set(embedded) == set(once)
        assert sum(embedded.values()) <= sum(once.values()) + twice
        verify = _command(tmp_path / "killed", tmp_path, server, "--verify")
        assert verify.wait() == 0
    _assert_tidy(tmp_path / "killed", rebuilt=False, dual=False)


def _ingest(folder: Path, root: Path, server: OllamaStandIn) -> subprocess.Popen[bytes]:
    return _command(folder, root, server, "--jobs", "1")


def _command(folder: Path, root: Path, server: OllamaStandIn, *options: str) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "PAPERS_DIR": str(root / "papers"),
        "VECTORSTORE_DIR": str(folder / "store"),
        "INGESTED_JSON": str(folder / "ingested.json"),
        "EMBEDDER": "ollama",
        "OLLAMA_HOST": server.url,
        "EMBED_BATCH": str(BATCH),
        "CHUNK_SIZE": "100",
        "CHUNK_OVERLAP": "20",
        "LEXICAL": "tantivy",
    }
    return subprocess.Popen(
        [sys.executable, ROOT / "ingest.py", *options],
        cwd=root,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _cli_state(folder: Path, root: Path) -> State:
    return _state(hashing_app(folder, PAPERS_DIR=root / "papers"))


def test_every_kind_of_write_step_is_seen(tmp_path: Path) -> None:
    """The other tests depend on this list of steps."""
    make_pdf(tmp_path / "papers" / "trees.pdf", "trees")
    (tmp_path / "one").mkdir()
    assert _kill_at(SCENARIOS["ingest"], tmp_path / "papers", tmp_path / "job", [(tmp_path / "one", 0)]) == [0]
    steps = " | ".join(json.loads((tmp_path / "one" / "steps.json").read_text()))
    for kind in (
        "open store/writer.lock", "sql PRAGMA main.journal_mode", "sql CREATE TABLE main.papers", "sql COMMIT",
        "sql PRAGMA user.journal_mode", "sql CREATE TABLE user.queries", *_BEGUN[:2],
        "sql INSERT INTO pending", "sql INSERT INTO papers", "sql INSERT INTO chunks",
        "sql INSERT INTO vectors", "torn write_index", "os.rename store/vectors-", "os.rename store/vectors.json",
        "c_call IndexWriter.commit", "c_return IndexWriter.commit", "os.rename store/lexical/folio.json",
        "os.rename ingested.json.new",
    ):  # fmt: skip
        assert kind in steps
