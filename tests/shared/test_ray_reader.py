"""How papers are sent to workers and come back, over a stand-in for Ray. test_ray_ingest.py needs Ray itself."""

from __future__ import annotations

import os
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from folio import errors
from folio.errors import ClusterError, FolioError, ModelServerError, PackagesMissing, PaperBusy, PaperError
from folio.ingest.discovery import find_pdfs, hash_files
from folio.ingest.pipeline import Limits
from folio.ingest.queue import EmbeddedPaper
from folio.papers.metadata import NO_METADATA
from folio.papers.model import NewPaper, PageMap, SourceFile
from folio.shared import ray as ray_reader
from folio.shared.ray import Job, RayReader
from folio.store.fingerprint import Reading
from folio.system.workers import Finished
from tests.helpers.fakes import HashingEmbedder, RecordedProgress
from tests.helpers.ray_stand_in import RayStandIn, WorkerEnded

JOB = Job(Reading(100, 20, "fast", False), Limits(1, 3, 2048, 10), {}, (HashingEmbedder,), 2)
Read = Callable[[Job, SourceFile, bytes], Any]


@pytest.fixture(autouse=True)
def environment_as_before() -> Iterator[None]:
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def files(tmp_path: Path) -> list[SourceFile]:
    for name in "abcdef":
        (tmp_path / f"{name}.pdf").write_text(name)
    return hash_files(find_pdfs([tmp_path]), RecordedProgress())[0]


def read(job: Job, file: SourceFile, content: bytes) -> EmbeddedPaper:
    """As a worker does it, but at once."""
    text = content.decode()
    return EmbeddedPaper(NewPaper(file.sha256, NO_METADATA, text, PageMap((0,), ("",)), ((0, 1),), ()), {})


def results(
    files: list[SourceFile], monkeypatch: pytest.MonkeyPatch, worker: Read, ray: RayStandIn | None = None
) -> dict[str, Any]:
    """What came back of each file, by its name."""
    monkeypatch.setitem(sys.modules, "ray", ray or RayStandIn())
    monkeypatch.setattr(ray_reader, "read_in_worker", worker)
    found = list(RayReader("", None, lambda: JOB)(files, tuple))
    return {each.item.name: each.result for each in found if isinstance(each, Finished)}


def test_each_file_comes_back_once_or_as_an_error(files: list[SourceFile], monkeypatch: pytest.MonkeyPatch) -> None:
    Path(files[2].path).write_text("another")
    ray = RayStandIn()
    found = results(files, monkeypatch, read, ray)
    assert {name: each.paper.text for name, each in found.items() if isinstance(each, EmbeddedPaper)} == {
        f"{name}.pdf": name for name in "abdef"
    }
    assert isinstance(found["c.pdf"], PaperBusy)
    assert not ray.is_running


def test_as_many_files_are_taken_as_there_are_workers(files: list[SourceFile], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", RayStandIn(cpus=8))
    monkeypatch.setattr(ray_reader, "read_in_worker", read)
    taken, done = 0, 0

    def source() -> Iterator[SourceFile]:
        nonlocal taken
        for file in files:
            taken += 1
            assert taken - done <= 2
            yield file

    for each in RayReader("", 2, lambda: JOB)(source(), tuple):
        done += isinstance(each, Finished)
    assert (taken, done) == (6, 6)


def test_a_paper_that_ends_its_workers_costs_itself_alone(
    files: list[SourceFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: Counter[bytes] = Counter()

    def deadly(job: Job, file: SourceFile, content: bytes) -> EmbeddedPaper:
        tries[content] += 1
        if content == b"b" or (content == b"d" and tries[content] < 3):
            raise WorkerEnded
        return read(job, file, content)

    found = results(files, monkeypatch, deadly)
    assert (tries[b"b"], tries[b"d"], tries[b"a"]) == (3, 3, 1)
    assert isinstance(found["b.pdf"], PaperBusy)
    assert found["b.pdf"].happened == "3 workers of Ray crashed while they read the file."
    assert [name for name, each in sorted(found.items()) if not isinstance(each, PaperError)] == [
        f"{name}.pdf" for name in "acdef"
    ]


@pytest.mark.parametrize("was_running", [True, False])
def test_an_error_that_ends_the_ingest_ends_pending_papers(
    files: list[SourceFile], monkeypatch: pytest.MonkeyPatch, was_running: bool
) -> None:
    """They are cancelled in a Ray that goes on; a Ray that was started for them ends with them."""
    ray = RayStandIn()
    ray.is_running = was_running

    def down(job: Job, file: SourceFile, content: bytes) -> ModelServerError:
        return ModelServerError("Nobody is there.", "Come later.")

    with pytest.raises(ModelServerError, match=r"^Nobody is there\.$"):
        results(files, monkeypatch, down, ray)
    assert len(ray.cancelled) == was_running  # of the two that were away, the other
    assert ray.is_running == was_running


def test_a_worker_without_a_package_is_one_sentence(files: list[SourceFile], monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(job: Job, file: SourceFile, content: bytes) -> EmbeddedPaper:
        raise ModuleNotFoundError("the function failed to import:\n  No module named 'faiss'")

    with pytest.raises(ClusterError, match=r"^Ray has failed: its workers lack the package faiss\.$"):
        results(files, monkeypatch, lacking)


def test_a_ray_that_does_not_start_is_one_sentence(files: list[SourceFile], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ClusterError, match=r"^Ray could not be started: no room\.$"):
        results(files, monkeypatch, read, RayStandIn(refuses=OSError("no\n room")))


def refusal(address: str) -> FolioError:
    with pytest.raises(ClusterError) as refused, RayReader(address, 1, lambda: JOB)._running():
        pass
    return refused.value


def test_an_address_where_nobody_answers_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", RayStandIn())
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    error = refusal(f"127.0.0.1:{port}")
    assert error.happened == f"Ray at 127.0.0.1:{port} does not answer."
    assert error.remedy.startswith("Check RAY_ADDRESS")
    for wrong in ("cluster", "http://127.0.0.1:6379", "ray://127.0.0.1:10001", "127.0.0.1:many", "auto"):
        assert refusal(wrong).happened == f"RAY_ADDRESS is {wrong!r}, which is not the address of a cluster."


def test_a_cluster_that_cannot_be_joined_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    said = RuntimeError("Version mismatch: The cluster was started with:\n    Ray: 2.9.0\n    Python: 3.9.1\n")
    monkeypatch.setitem(sys.modules, "ray", RayStandIn(refuses=said))
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as head:
        error = refusal(f"127.0.0.1:{head.getsockname()[1]}")
    assert error.happened.endswith(
        " cannot be used: Version mismatch: The cluster was started with: Ray: 2.9.0 Python: 3.9.1."
    )
    assert "RAY_AUTH_TOKEN" not in os.environ  # that of the cluster is its user's


def test_without_files_no_ray_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    assert results([], monkeypatch, read, RayStandIn(refuses=AssertionError())) == {}


def test_without_rays_package_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "find_spec", lambda name: None)
    with pytest.raises(PackagesMissing, match=r"^--on ray needs packages that are not installed: ray\.$") as refused:
        RayReader("", None, lambda: JOB)
    assert "requirements/ray.txt" in refused.value.remedy
