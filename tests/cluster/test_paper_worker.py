"""What a worker does with a paper, and the embedders of workers. No Ray is needed for it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import folio
from folio.cluster.paper_worker import Job, PaperWorker
from folio.cluster.worker_embedders import BuiltinForWorker, OllamaForWorker
from folio.errors import FolioError, OllamaError, PaperLimit, StoreMismatch, UsageError
from folio.ingest.embedding_queue import EmbeddedPaper
from folio.ingest.pipeline import Limits
from folio.models.minilm import BuiltinEmbedder
from folio.store.digests import text_hash
from folio.store.fingerprint import Reading
from folio.types import SourceFile
from tests.helpers import worker_embedders
from tests.helpers.factories import small_papers
from tests.helpers.fakes import HashingEmbedder, hashing_app, hashing_for_worker
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.pdfs import slow_page

JOB = Job(Reading(100, 20, "fast", False), Limits(1, 3, 2048, 10), HashingEmbedder().identity(), hashing_for_worker, 2)


@pytest.fixture(scope="module", autouse=True)
def environment_of_ray_as_before() -> Iterator[None]:
    """A worker deletes the token of its Ray; in this process, a Ray of other tests may be running."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("RAY_AUTH_")]:
            patch.delenv(name)
        yield


@pytest.fixture(scope="module")
def worker() -> Iterator[PaperWorker]:
    made = PaperWorker(JOB, 0)
    assert made.start(folio.__version__) is None
    with closing(made):
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


def test_a_pdf_that_hangs_or_is_broken_ends_its_own_process_alone(worker: PaperWorker, tmp_path: Path) -> None:
    slow = slow_page(tmp_path / "slow.pdf", "Slow.", 1_000_000)
    hung = read(worker, slow)
    assert isinstance(hung, PaperLimit)
    assert hung.happened == "Reading the file took longer than 3 s of processor time."
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7")
    broken = read(worker, tmp_path / "broken.pdf")
    assert isinstance(broken, FolioError)
    assert broken.happened.startswith("The file is damaged or cut short")
    assert isinstance(read(worker, next(small_papers(tmp_path).glob("*.pdf"))), EmbeddedPaper)


def test_an_embedder_that_fails_is_told(tmp_path: Path, worker: PaperWorker) -> None:
    path = next(small_papers(tmp_path).glob("*.pdf"))
    worker._embedder, embedder = worker_embedders.down(0), worker._embedder
    failed = read(worker, path)
    worker._embedder = embedder
    assert isinstance(failed, OllamaError)
    assert failed.happened == "Nobody is there."


def test_workers_of_another_version_or_model_are_refused() -> None:
    with closing(PaperWorker(JOB, 0)) as old:
        wrong = old.start("0.1")
    assert isinstance(wrong, UsageError)
    assert wrong.happened == f"A worker of Ray has Folio {folio.__version__}, and this is 0.1."
    job = Job(JOB.reading, JOB.limits, JOB.made_with, worker_embedders.other_model, 2)
    with closing(PaperWorker(job, 0)) as other:
        refused = other.start(folio.__version__)
    assert isinstance(refused, StoreMismatch)
    assert refused.happened.endswith("is another one: its dimension is not the one of the index.")


def test_the_built_in_model_gives_the_same_vectors_on_one_thread() -> None:
    texts = ["Ice is old.", "Sea otters eat sea urchins."]
    one = BuiltinForWorker()(3)
    assert one.identity() == BuiltinEmbedder().identity()
    assert np.array_equal(one.embed_passages(texts), BuiltinEmbedder().embed_passages(texts))


def servers(*urls: str) -> OllamaForWorker:
    return OllamaForWorker(urls, 5, "nomic-embed-text", 2, None, None)


def test_workers_are_spread_over_the_servers_and_leave_one_that_fails(ollama_server: OllamaStandIn) -> None:
    with OllamaStandIn(dimension=64) as second:
        job = servers(ollama_server.url, second.url)
        workers = [job(number) for number in range(3)]
        for number, each in enumerate(workers):
            each.embed_passages([f"text {number}"])
        assert ollama_server.embedded() == ["search_document: text 0", "search_document: text 2"]
        assert second.embedded() == ["search_document: text 1"]
        expected = workers[1].embed_passages(["more"])
        second.faults.fails = 100
        assert np.array_equal(workers[1].embed_passages(["more"]), expected)
        assert ollama_server.embedded()[-1] == "search_document: more"
        asked = len(second.embedded())
        workers[1].embed_passages(["again"])  # from the one that works
        assert len(second.embedded()) == asked
        ollama_server.faults.fails = 100
        with pytest.raises(OllamaError):
            workers[1].embed_passages(["more"])


def test_a_server_that_is_down_when_a_worker_starts_is_left_out(ollama_server: OllamaStandIn) -> None:
    found = servers("http://127.0.0.1:9", ollama_server.url)(0)
    assert found.dimension == 64
    assert found.embed_query("ice").shape == (64,)
    with pytest.raises(OllamaError):
        servers("http://127.0.0.1:9")(0)


def test_a_server_with_another_model_is_refused(ollama_server: OllamaStandIn) -> None:
    with OllamaStandIn(dimension=32) as other:
        found = servers(ollama_server.url, other.url)(0)
        ollama_server.faults.fails = 100
        with pytest.raises(StoreMismatch, match=r"has another nomic-embed-text than the others: its dimension is"):
            found.embed_passages(["text"])


def test_the_servers_are_those_of_the_settings(tmp_path: Path) -> None:
    app = hashing_app(tmp_path, OLLAMA_HOSTS="127.0.0.1:1, localhost:2,127.0.0.1:1")
    assert app.ollama_servers() == ("http://127.0.0.1:1", "http://localhost:2")
    assert hashing_app(tmp_path).ollama_servers() == ("http://127.0.0.1:11434",)
    with pytest.raises(UsageError, match=r"^OLLAMA_HOSTS is http://gpu:11434, another computer"):
        hashing_app(tmp_path, OLLAMA_HOSTS="127.0.0.1,gpu").ollama_servers()
    allowed = hashing_app(tmp_path, OLLAMA_HOSTS="gpu", ALLOW_REMOTE_OLLAMA=True)
    assert allowed.ollama_servers() == ("http://gpu:11434",)
