"""`folio ingest --on ray`: the library, the report and the errors of an ingest without it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("ray") is None:  # not imported here: its settings must be there first
    pytest.skip("ray is not installed (requirements/ray.txt)", allow_module_level=True)

from folio.cli import ingest
from folio.errors import ModelServerError, PaperLimit, UsageError
from folio.ingest.discovery import find_pdfs, hash_files
from folio.ingest.pipeline import Limits
from folio.ingest.queue import EmbeddedPaper
from folio.papers.model import SourceFile
from folio.shared import ray as ray_reader
from folio.shared.ray import Job, RayReader
from folio.store.fingerprint import Reading
from folio.store.library import Library
from folio.system import workers
from tests.helpers import worker_embedders
from tests.helpers.factories import small_papers
from tests.helpers.fakes import HashingApp, HashingEmbedder, RecordedProgress, hashing_app, make_pdf, read_once
from tests.helpers.paths import ROOT

PAPERS = 40  # so many that a command is still at work when it is stopped


def kept(library: Library) -> list[Any]:
    """All that a store says of its papers, save when they were added."""
    papers = library.papers()
    ids = library.chunk_ids_of([paper.id for paper in papers])
    hashes = {id: found.text_hash for id, found in library.paper_vectors().items()}
    rows = sorted(library.read_chunks(ids), key=lambda row: row[0].id)
    vectors = library.vectors_of([row[0].id for row in rows]).tolist()
    return [papers, rows, vectors, hashes, sorted(library.files(), key=lambda file: file.path)]


def no_job() -> Job:
    raise AssertionError("nothing is to be read")


def files_in(folder: Path) -> list[SourceFile]:
    return hash_files(find_pdfs([folder]), RecordedProgress())[0]


def job(embedder: Any = HashingEmbedder) -> Job:
    return Job(Reading(100, 20, "fast", False), Limits(1, 60, 2048, 10), HashingEmbedder().identity(), (embedder,), 2)


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    folder = tmp_path / "papers"
    small_papers(folder)
    make_pdf(folder / "more" / "trees.pdf", "trees")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 nothing follows")
    (folder / "copy.pdf").write_bytes((folder / "more" / "trees.pdf").read_bytes())
    return folder


@pytest.fixture
def plain(papers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HashingApp:
    """An ingest without Ray."""
    with monkeypatch.context() as patch:
        patch.setattr(workers, "run_guarded", read_once)
        app = hashing_app(tmp_path / "plain", PAPERS_DIR=papers)
        app.run()
    return app


def test_the_result_is_that_of_an_ingest_without_ray(
    ray: Any, plain: HashingApp, papers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = hashing_app(tmp_path / "ray", PAPERS_DIR=papers)
    outcomes = app.run(on_ray=True)
    with monkeypatch.context() as patch:
        patch.setattr(workers, "run_guarded", read_once)
        expected = hashing_app(app.store_folder.parent / "again", PAPERS_DIR=app.settings.PAPERS_DIR).run()
    assert sorted(outcomes, key=str) == sorted(expected, key=str)
    assert app.hashing.passages == []  # all were embedded in workers
    with closing(plain.open_library()) as first, closing(app.open_library()) as second:
        assert kept(second) == kept(first)
        assert second.failures() == first.failures()
        here, there = plain.retriever(first), app.retriever(second)
        for question in ("How long is the Aletsch glacier?", "rotations of trees"):
            assert [hit.text for hit in there.search(question, 8).hits] == [
                hit.text for hit in here.search(question, 8).hits
            ]
    monkeypatch.setattr(ray_reader.RayReader, "_running", no_job)  # a second run starts no Ray
    assert {outcome.status for outcome in app.run(on_ray=True)} == {"unchanged", "failed"}


def test_killed_workers_cost_only_the_paper_that_kills_them(
    ray: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_reader, "_TRIES", 2)
    folder = tmp_path / "papers"
    for name in ("a", "b", "c"):
        make_pdf(folder / f"{name}.pdf", "trees", change=f"It is {name}.")
    make_pdf(folder / "once.pdf", "sponges", change="It kills once.")
    make_pdf(folder / "poison.pdf", "sponges", change="It kills always.")
    mark = tmp_path / "killed"
    reader = RayReader("", 2, lambda: job(partial(worker_embedders.DeadlyEmbedder, mark)))
    found = {
        each.item.name: each.result for each in reader(files_in(folder), tuple) if isinstance(each, workers.Finished)
    }
    assert mark.exists()
    assert {name for name, result in found.items() if isinstance(result, EmbeddedPaper)} == {
        "a.pdf",
        "b.pdf",
        "c.pdf",
        "once.pdf",
    }
    assert isinstance(found["poison.pdf"], PaperLimit)
    assert found["poison.pdf"].happened == "2 workers of Ray crashed while they read the file."


@pytest.mark.slow
def test_an_embedder_that_is_down_ends_the_ingest(ray: Any, papers: Path, tmp_path: Path) -> None:
    reader = RayReader("", 1, lambda: job(worker_embedders.DownEmbedder))
    with pytest.raises(ModelServerError, match=r"^Nobody is there\.$"):
        list(reader(files_in(papers), tuple))


def test_a_started_ray_listens_on_this_computer_alone(ray: Any) -> None:
    (node,) = ray.nodes()
    assert node["NodeManagerAddress"] == "127.0.0.1"
    tokens = subprocess.run(["ps", "-eo", "args="], capture_output=True, text=True, check=True).stdout
    assert os.environ["RAY_AUTH_MODE"] == "token"
    assert os.environ["RAY_AUTH_TOKEN"] not in tokens


# Without Ray


def test_ray_is_refused_with_verify_or_repair(plain: HashingApp) -> None:
    with pytest.raises(UsageError, match=r"^--verify and --repair read no PDFs\.$"):
        ingest.run(plain, ingest.parser("ingest.py").parse_args(["--verify", "--on", "ray"]))


# The command as a process of its own


def started(folder: Path, papers: Path) -> subprocess.Popen[str]:
    """`python ingest.py --on ray` with one worker, in a home of its own."""
    (folder / "home").mkdir(exist_ok=True)
    (folder / "tmp").mkdir(exist_ok=True)
    chosen = {"PAPERS_DIR": papers, "VECTORSTORE_DIR": folder / "store", "INGESTED_JSON": folder / "ingested.json"}
    environment = {
        **os.environ,
        **{name: str(value) for name, value in chosen.items()},
        "HOME": str(folder / "home"),
        "EMBEDDER": "builtin",
        "S2_API_KEY": "a-key-that-nobody-sees",
    }
    command = [sys.executable, str(ROOT / "ingest.py"), "--on", "ray", "--jobs", "1"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=folder, env=environment, text=True, start_new_session=True, **pipes)


def in_library(folder: Path) -> int:
    app = hashing_app(folder)
    if not app.has_library():
        return 0
    with closing(app.open_library()) as library:
        return len(library.papers())


def wait_until(holds: Callable[[], bool], what: Callable[[], object], most_s: float = 60) -> None:
    until = time.monotonic() + most_s
    while not holds():
        assert time.monotonic() < until, what()
        time.sleep(0.1)


def wait_for(folder: Path, papers: int, process: subprocess.Popen[str]) -> None:
    """Until so many papers are in the library, or the process has ended."""
    wait_until(lambda: in_library(folder) >= papers or process.poll() is not None, process.poll, 200)
    assert process.poll() is None, process.communicate()


def wait_for_the_end(session: int) -> None:
    """Until the processes of a session have ended, which is a moment after the command has."""
    wait_until(lambda: not of_ray(session), lambda: of_ray(session))


def of_ray(session: int) -> list[str]:
    """The processes of a session. Two of Ray's look after a killed one for a minute, and hold no paper."""
    found = subprocess.run(["ps", "-eo", "sid=,stat=,args="], capture_output=True, text=True, check=True)
    rows = [line.split(None, 2) for line in found.stdout.splitlines()]
    there = [args for sid, state, args in rows if int(sid) == session and not state.startswith("Z")]
    return [args for args in there if not args.startswith(("ray::DashboardAgent", "ray::RuntimeEnvAgent"))]


@pytest.mark.slow
def test_ctrl_c_and_a_kill_keep_what_has_landed(tmp_path: Path) -> None:
    papers = tmp_path / "papers"
    for number in range(PAPERS):
        make_pdf(papers / f"{number}.pdf", "trees", change=f"It is number {number}.")
    (tmp_path / "numpy.py").write_text("raise SystemExit('the current folder is imported from')")
    before = set(Path("/tmp").glob("folio-ray-*"))
    process = started(tmp_path, papers)
    wait_for(tmp_path, 2, process)
    own = set(Path("/tmp").glob("folio-ray-*")) - before
    logs = [file for folder in own for file in folder.rglob("*")]
    assert logs
    assert not [file for file in logs if file.is_file() and b"a-key-that-nobody" in file.read_bytes()]
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does it
    began = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - began < 30
    assert process.returncode == 130, err
    landed = in_library(tmp_path)
    assert 2 <= landed < PAPERS
    assert out == ""
    assert err.startswith("Stopped. Papers read so far: ")
    assert len(err.splitlines()) == 1
    wait_for_the_end(process.pid)
    assert not [folder for folder in own if folder.exists()]
    assert list((tmp_path / "home").iterdir()) == []

    process = started(tmp_path, papers)
    wait_for(tmp_path, landed + 2, process)
    process.kill()
    process.communicate()
    wait_for_the_end(process.pid)
    landed = in_library(tmp_path)
    assert landed < PAPERS

    out, err = started(tmp_path, papers).communicate(timeout=250)
    assert err == ""
    assert re.search(rf"^skipped +{landed} ", out, re.MULTILINE)
    assert in_library(tmp_path) == PAPERS
    for folder in set(Path("/tmp").glob("folio-ray-*")) - before:  # of the killed one
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
def test_a_computer_of_the_cluster_that_dies_costs_no_paper(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.helpers.ray_nodes", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=250)
    assert done.stdout.splitlines()[-1:] == ["6 6"], done.stderr[-2000:]
