"""What a worker does with a paper, and the embedders of workers. No Ray is needed for it."""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import folio
from folio.app import App
from folio.errors import FolioError, ModelServerError, PaperError, PaperLimit, StoreMismatch, UsageError
from folio.ingest.pipeline import Limits
from folio.ingest.queue import EmbeddedPaper
from folio.models.minilm import BuiltinEmbedder
from folio.models.ollama import OllamaServer
from folio.models.server_embedder import ServerEmbedder
from folio.papers.model import SourceFile
from folio.shared import ray
from folio.shared.ray import Job, PaperWorker
from folio.store.fingerprint import Reading
from folio.store.rows import text_hash
from tests.helpers import worker_embedders
from tests.helpers.factories import small_papers
from tests.helpers.fakes import HashingEmbedder, hashing_app
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.pdfs import endless_page

JOB = Job(Reading(100, 20, "fast", False), Limits(1, 3, 2048, 10), HashingEmbedder().identity(), (HashingEmbedder,), 2)


@pytest.fixture(scope="module", autouse=True)
def environment_of_ray_as_before() -> Iterator[None]:
    """A worker deletes the token of its Ray; in this process, a Ray of other tests may be running."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("RAY_AUTH_")]:
            patch.delenv(name)
        yield


@pytest.fixture(scope="module")
def worker() -> Iterator[PaperWorker]:
    with closing(PaperWorker(JOB)) as made:
        yield made


def read(worker: PaperWorker, path: Path) -> EmbeddedPaper | FolioError:
    content = path.read_bytes()
    return worker.read(SourceFile(str(path), path.name, hashlib.sha256(content).hexdigest()), content)


def test_a_paper_comes_back_with_all_its_vectors(worker: PaperWorker, tmp_path: Path) -> None:
    found = read(worker, next(small_papers(tmp_path).glob("*.pdf")))
    assert isinstance(found, EmbeddedPaper)
    texts = [found.paper.text[start:end] for start, end in found.paper.chunk_spans]
    assert len(texts) > 2
    vectors = np.stack([found.vectors[text_hash(text)] for text in texts])
    assert np.array_equal(vectors, HashingEmbedder().embed_passages(texts))
    assert len(found.vectors) == len(set(texts)) + 1  # and of the paper as a whole


def test_a_hanging_or_broken_pdf_ends_only_its_process(worker: PaperWorker, tmp_path: Path) -> None:
    hung = read(worker, endless_page(tmp_path / "slow.pdf"))
    assert isinstance(hung, PaperLimit)
    # The first on a computer that is not busy
    assert re.match(r"Reading the file took longer than 3 s|The file could not be read within 15 s", hung.happened)
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7")
    broken = read(worker, tmp_path / "broken.pdf")
    assert isinstance(broken, FolioError)
    assert broken.happened.startswith("The file is damaged or cut short")
    assert isinstance(read(worker, next(small_papers(tmp_path).glob("*.pdf"))), EmbeddedPaper)


def test_an_embedder_that_fails_is_told(tmp_path: Path, worker: PaperWorker) -> None:
    path = next(small_papers(tmp_path).glob("*.pdf"))
    worker._embedder, embedder = worker_embedders.DownEmbedder(), worker._embedder
    failed = read(worker, path)
    worker._embedder = embedder
    assert isinstance(failed, ModelServerError)
    assert failed.happened == "Nobody is there."


def test_workers_of_another_version_or_model_are_refused(tmp_path: Path) -> None:
    path = next(small_papers(tmp_path).glob("*.pdf"))
    with closing(PaperWorker(replace(JOB, version="0.1"))) as old:
        wrong = read(old, path)
    assert isinstance(wrong, UsageError)
    assert wrong.happened == f"A worker of Ray has Folio {folio.__version__}, and this is 0.1."
    with closing(PaperWorker(replace(JOB, embedders=(worker_embedders.other_model,)))) as other:
        refused = read(other, path)
    assert isinstance(refused, StoreMismatch)
    assert refused.happened.endswith("has another embedder than the index: its dimension differs.")


def test_a_process_keeps_its_worker_within_a_job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ray, "_worker", None)
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    file, content = SourceFile("a.pdf", "a.pdf", "a" * 64), b"%PDF-1.7"
    used = []
    for job in (JOB, pickle.loads(pickle.dumps(JOB)), replace(JOB, id="another")):
        assert isinstance(ray.read_in_worker(job, file, content), PaperError)
        used.append(ray._worker)
    assert used[0] is used[1] is not used[2]
    assert used[2] is not None
    used[2].close()


def test_built_in_vectors_are_the_same_on_one_thread(tmp_path: Path) -> None:
    texts = ["Ice is old.", "Sea otters eat sea urchins."]
    (make,) = App.worker_embedders(hashing_app(tmp_path), BuiltinEmbedder())
    one = make()
    assert one.identity() == BuiltinEmbedder().identity()
    assert np.array_equal(one.embed_passages(texts), BuiltinEmbedder().embed_passages(texts))


def on_servers(*urls: str) -> Job:
    """A job whose embedders are the servers."""
    made = [partial(ServerEmbedder, OllamaServer(url, 5), "nomic-embed-text", 2, 1) for url in urls]
    return replace(JOB, made_with=made[-1]().identity(), embedders=tuple(made))


def test_workers_leave_a_server_that_fails(ollama_server: OllamaStandIn, tmp_path: Path) -> None:
    path = next(small_papers(tmp_path).glob("*.pdf"))
    with OllamaStandIn(dimension=64) as second:
        job = on_servers(ollama_server.url, second.url)
        assert {PaperWorker(job)._place for _ in range(40)} == {0, 1}
        with closing(PaperWorker(job)) as worker:
            worker._place = 1
            first = read(worker, path)
            assert isinstance(first, EmbeddedPaper)
            assert second.embedded()
            assert not ollama_server.embedded()
            second.faults.fails = 100
            again = read(worker, path)
            assert isinstance(again, EmbeddedPaper)
            assert all(np.array_equal(row, again.vectors[digest]) for digest, row in first.vectors.items())
            assert ollama_server.embedded()
            asked = len(second.embedded())
            read(worker, path)  # from the one that works
            assert len(second.embedded()) == asked
            ollama_server.faults.fails = 100
            assert isinstance(read(worker, path), ModelServerError)


def test_a_server_that_is_down_at_the_start_is_skipped(ollama_server: OllamaStandIn, tmp_path: Path) -> None:
    path = next(small_papers(tmp_path).glob("*.pdf"))
    with closing(PaperWorker(on_servers("http://127.0.0.1:9", ollama_server.url))) as worker:
        worker._place = 0
        assert isinstance(read(worker, path), EmbeddedPaper)


def test_a_server_with_another_model_is_refused(ollama_server: OllamaStandIn, tmp_path: Path) -> None:
    path = next(small_papers(tmp_path).glob("*.pdf"))
    with OllamaStandIn(dimension=32) as other, closing(PaperWorker(on_servers(ollama_server.url, other.url))) as worker:
        worker._place = 0
        refused = read(worker, path)
    assert isinstance(refused, StoreMismatch)
    assert "OLLAMA_HOSTS" in refused.remedy


def test_the_servers_are_those_of_the_settings(tmp_path: Path) -> None:
    app = hashing_app(tmp_path, OLLAMA_HOSTS="127.0.0.1:1, localhost:2,127.0.0.1:1")
    assert app.ollama_servers() == ("http://127.0.0.1:1", "http://localhost:2")
    assert hashing_app(tmp_path).ollama_servers() == ("http://127.0.0.1:11434",)
    with pytest.raises(UsageError, match=r"^OLLAMA_HOSTS is http://gpu:11434, another computer"):
        hashing_app(tmp_path, OLLAMA_HOSTS="127.0.0.1,gpu").ollama_servers()
    allowed = hashing_app(tmp_path, OLLAMA_HOSTS="gpu", ALLOW_REMOTE_OLLAMA=True)
    assert allowed.ollama_servers() == ("http://gpu:11434",)


def test_each_server_of_the_settings_has_its_embedder(ollama_server: OllamaStandIn, tmp_path: Path) -> None:
    app = hashing_app(tmp_path, OLLAMA_HOST=ollama_server.url, OLLAMA_HOSTS=f"{ollama_server.url},127.0.0.1:2")
    first, _ = App.worker_embedders(app, ServerEmbedder(OllamaServer(ollama_server.url), "nomic-embed-text", 2))
    assert pickle.loads(pickle.dumps(first))().identity() == first().identity()
