"""A server that goes away and comes back, connections that are cut, answers that are lost, requests that come twice."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

pytest.importorskip("pymilvus", reason="pymilvus is not installed (requirements-cluster.txt)")
pytest.importorskip("milvus_lite", reason="milvus-lite is not installed (requirements-cluster.txt)")

import grpc
from pymilvus.grpc_gen import common_pb2, milvus_pb2

from folio import workers
from folio.cluster.collections import CHUNKS
from folio.cluster.milvus_client import Milvus
from folio.errors import StoreError
from folio.search.retriever import Retriever
from folio.search.retriever_pool import RetrieverPool
from folio.store.paper_store import PaperStore
from tests.helpers.factories import small_papers, write_pdf
from tests.helpers.fakes import HashingApp, hashing_app, read_once
from tests.helpers.milvus import again
from tests.helpers.milvus_server import CuttingProxy, LiteServer, call_proxy
from tests.helpers.paths import ROOT

WRITES = {"Insert", "Upsert", "Delete"}


@pytest.fixture(autouse=True)
def _no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "run_guarded", read_once)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LiteServer]:
    made = LiteServer(tmp_path)
    yield made
    made.stop()


def app_of(folder: Path, uri: str, timeout_s: float = 20) -> HashingApp:
    settings: dict[str, Any] = {"STORE": "milvus", "MILVUS_URI": uri, "MILVUS_TIMEOUT_S": timeout_s}
    return hashing_app(folder, PAPERS_DIR=folder / "papers", **settings)


def found(app: HashingApp) -> list[tuple[str, str]]:
    with closing(app.open_library()) as library:
        hits = app.retriever(library).search("glacier otter ice fur", 20).hits
        return [(hit.paper.file, hit.text) for hit in hits]


@pytest.fixture
def expected(tmp_path: Path) -> list[tuple[str, str]]:
    """What a library on this computer finds in the papers."""
    small_papers(tmp_path / "papers")
    app = hashing_app(tmp_path / "local", PAPERS_DIR=tmp_path / "papers")
    app.run()
    return found(app)


def test_a_server_is_used_as_a_file_is(tmp_path: Path, server: LiteServer, expected: list[tuple[str, str]]) -> None:
    app = app_of(tmp_path, server.uri)
    assert [outcome.status for outcome in app.run()] == ["added", "added"]
    assert found(again(app)) == expected
    assert again(app).verify() == []


@pytest.mark.parametrize("at", [1, 200, 2_000, 20_000])
def test_connections_that_are_cut_are_made_again(
    tmp_path: Path, server: LiteServer, expected: list[tuple[str, str]], at: int
) -> None:
    proxy = CuttingProxy(server.port, [at + 97 * each for each in range(4)])
    with closing(proxy):
        app = app_of(tmp_path, proxy.uri)
        happened = set()
        for _ in range(5):  # one that cannot be made at all ends the command
            try:
                app.run()
                break
            except StoreError as error:
                happened.add(error.happened)
                app = again(app)
        assert happened <= {f"Milvus at {proxy.uri} does not answer."}
        assert proxy.cut == 4 or at == 20_000
        assert found(again(app)) == expected
    assert again(app_of(tmp_path, server.uri)).verify() == []


def test_lost_answers_and_requests_that_come_twice_change_nothing(
    tmp_path: Path, server: LiteServer, expected: list[tuple[str, str]]
) -> None:
    done: Counter[str] = Counter()

    def treat(name: str, request: bytes, send: Callable[[], bytes], context: grpc.ServicerContext) -> bytes:
        if name in WRITES:
            done[name] += 1
            answer = send()
            if done[name] % 3 == 0:
                context.abort(grpc.StatusCode.UNAVAILABLE, "the connection was lost")  # it is done all the same
            return send() if done[name] % 3 == 1 else answer
        return send()

    with call_proxy(server.port, treat) as uri:
        app = app_of(tmp_path, uri)
        assert [outcome.status for outcome in app.run()] == ["added", "added"]
        write_pdf(tmp_path / "papers" / "otters.pdf", ["Now it is about the glacier in winter."], "Otters Again")
        assert sorted(outcome.status for outcome in again(app).run()) == ["replaced", "unchanged"]
        assert min(done["Upsert"], done["Delete"]) > 6
        through = found(again(app))
    clean = app_of(tmp_path, server.uri)
    assert found(clean) == through
    assert clean.verify() == []
    local = hashing_app(tmp_path / "again", PAPERS_DIR=tmp_path / "papers")
    local.run()
    assert found(local) == through


def test_an_ingest_without_its_server_ends_with_a_sentence_and_goes_on_later(
    tmp_path: Path, server: LiteServer, expected: list[tuple[str, str]]
) -> None:
    written = 0

    def treat(name: str, request: bytes, send: Callable[[], bytes], context: grpc.ServicerContext) -> bytes:
        nonlocal written
        written += name == "Upsert"
        if written > 8:
            context.abort(grpc.StatusCode.UNAVAILABLE, "Connection refused")
        return send()

    with call_proxy(server.port, treat) as uri:
        app = app_of(tmp_path, uri, 1)
        began = monotonic()
        with pytest.raises(StoreError) as refused:
            app.run()
        assert monotonic() - began < 8
        assert refused.value.happened == f"Milvus at {uri} does not answer."
    app = app_of(tmp_path, server.uri)
    assert {outcome.status for outcome in app.run()} <= {"added", "unchanged"}
    assert found(again(app)) == expected
    assert app.verify() == []


def test_a_server_that_never_answers_is_not_waited_for_longer_than_the_setting(
    tmp_path: Path, server: LiteServer, expected: list[tuple[str, str]]
) -> None:
    app_of(tmp_path, server.uri).run()
    stuck = False

    def treat(name: str, request: bytes, send: Callable[[], bytes], context: grpc.ServicerContext) -> bytes:
        if stuck:
            while context.is_active():
                context.time_remaining()
        return send()

    with call_proxy(server.port, treat) as uri:
        app = app_of(tmp_path, uri, 1)
        with closing(app.open_library()) as library:
            retriever = app.retriever(library)
            assert retriever.search("ice", 3).hits
            stuck, began = True, monotonic()
            with pytest.raises(StoreError, match="does not answer"):
                retriever.search("fur", 3)
            assert monotonic() - began < 4
            stuck = False
            assert retriever.search("fur", 3).hits


def test_readers_come_back_by_themselves_when_their_server_does(
    tmp_path: Path, server: LiteServer, expected: list[tuple[str, str]]
) -> None:
    app_of(tmp_path, server.uri).run()
    app = app_of(tmp_path, server.uri, 2)

    def retriever_of(library: PaperStore) -> Retriever:
        return app.retriever_over(library, app.hashing, lambda: app.open_indexes(library))

    with closing(RetrieverPool(app.open_library, retriever_of, app.open_indexes)) as pool:

        def ask() -> list[tuple[str, str]]:
            with pool.acquire() as reader:
                hits = reader.retriever.search("glacier otter ice fur", 20).hits
                return [(hit.paper.file, hit.text) for hit in hits]

        assert ask() == expected
        for _ in range(2):
            server.stop()
            began = monotonic()
            with pytest.raises(StoreError) as refused:
                ask()
            assert monotonic() - began < 5
            assert refused.value.happened == f"Milvus at {server.uri} does not answer."
            assert "MILVUS_URI" in refused.value.remedy
            server.start()
            assert ask() == expected


@pytest.mark.slow
def test_several_processes_read_and_write_at_once(
    tmp_path: Path, server: LiteServer, expected: list[tuple[str, str]]
) -> None:
    app = app_of(tmp_path, server.uri)
    app.run()
    code = f"""
from pathlib import Path
from folio import workers
from tests.cluster.test_milvus_outages import app_of
from tests.helpers.fakes import read_once
workers.run_guarded = read_once
app_of(Path({str(tmp_path)!r}), {server.uri!r}).run()
"""
    for place in range(3):
        write_pdf(tmp_path / "papers" / f"new{place}.pdf", [f"Glacier number {place} in winter ice."], f"Paper {place}")
    writer = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)

    def read(_: int) -> set[str]:
        mine = app_of(tmp_path, server.uri)
        mine = HashingApp(mine.settings, lambda text: None, mine.hashing)
        seen: set[str] = set()
        with closing(mine.open_library()) as library:
            retriever = mine.retriever(library)
            while writer.poll() is None:
                hits = retriever.search("glacier otter ice fur", 20).hits
                assert all(hit.text in library.text(hit.paper.id, 0, 10**6) for hit in hits)
                seen |= {hit.paper.file for hit in hits}
        return seen

    with ThreadPoolExecutor(2) as threads:
        seen = list(threads.map(read, range(2)))
    assert writer.wait() == 0
    assert all({"otters.pdf", "alps/glaciers.pdf"} <= each for each in seen)
    assert len({file for file, _ in found(again(app))}) == 5
    assert again(app).verify() == []


def written(message: Any) -> bytes:
    made: bytes = message.SerializeToString()
    return made


def test_the_index_is_chosen_by_the_number_of_vectors(server: LiteServer) -> None:
    asked: dict[str, dict[str, str]] = {}

    def treat(name: str, request: bytes, send: Callable[[], bytes], context: grpc.ServicerContext) -> bytes:
        """A server of Milvus, as far as a collection is created: Lite has neither this analyzer nor DISKANN."""
        if name == "GetVersion":
            return written(milvus_pb2.GetVersionResponse(status=common_pb2.Status(), version="v2.6.0"))
        if name == "CreateIndex":
            found = milvus_pb2.CreateIndexRequest.FromString(request)
            asked[f"{found.collection_name}.{found.field_name}"] = {each.key: each.value for each in found.extra_params}
        if name in ("CreateCollection", "CreateIndex"):
            return written(common_pb2.Status())
        if name == "DescribeIndex":
            status = common_pb2.Status(code=700, error_code="IndexNotExist", reason="index not found")
            return written(milvus_pb2.DescribeIndexResponse(status=status))
        return send()

    with call_proxy(server.port, treat) as uri:
        milvus = Milvus(uri, "", 5)
        milvus.create("few", CHUNKS, 768, 1_000_000)
        milvus.create("many", CHUNKS, 768, 20_000_000)
    assert asked["few.vector"] == {"index_type": "HNSW", "metric_type": "COSINE", "M": "16", "efConstruction": "200"}
    assert asked["many.vector"] == {"index_type": "DISKANN", "metric_type": "COSINE"}
    assert asked["many.sparse"]["index_type"] == "SPARSE_INVERTED_INDEX"
