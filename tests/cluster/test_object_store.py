"""RECORDS_URI=s3://...: a library's records in an object store, which is a small server on the loopback."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import httpx
import pytest

pytest.importorskip("pymilvus", reason="pymilvus is not installed (requirements-cluster.txt)")
pytest.importorskip("milvus_lite", reason="milvus-lite is not installed (requirements-cluster.txt)")
pytest.importorskip("s3fs", reason="s3fs is not installed")
pytest.importorskip("moto.server", reason="moto[s3,server] is not installed")

import s3fs
from moto.server import ThreadedMotoServer

from folio import workers
from folio.cluster.record_files import RecordFiles
from folio.errors import StoreError, StoreMissing
from tests.helpers.factories import GLACIERS, OTTERS, write_pdf
from tests.helpers.fakes import HashingApp, read_once
from tests.helpers.milvus import again, lite_app, milvus_of

URI = "s3://papers/library"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of an object store with an empty bucket."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    running = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture
def store(server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The same, as its users find it: by the environment."""
    use(server, monkeypatch)
    httpx.put(f"{server}/papers", headers={"Authorization": _SIGNED}, trust_env=False).raise_for_status()
    yield server
    httpx.post(f"{server}/moto-api/reset", trust_env=False).raise_for_status()
    s3fs.S3FileSystem.clear_instance_cache()


# The server looks for a region in it; it checks signatures only where a test asks it to.
_SIGNED = "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"


def use(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    s3fs.S3FileSystem.clear_instance_cache()
    settings = {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "a-key",
        "AWS_SECRET_ACCESS_KEY": "a-secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_MAX_ATTEMPTS": "2",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)


class CutProxy:
    """Passes connections on to a port of this computer, but cuts the first `cuts` of them after some of the request."""

    def __init__(self, target: int, cuts: int) -> None:
        self._target, self.left = target, cuts
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def close(self) -> None:
        """Stop, with all connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _accept(self) -> None:
        with suppress(OSError):  # it was closed
            while True:
                client, _ = self._listener.accept()
                if self.left:
                    self.left -= 1
                    client.recv(100)
                    client.close()
                    continue
                server = socket.create_connection(("127.0.0.1", self._target))
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    @staticmethod
    def _pass_on(source: socket.socket, target: socket.socket) -> None:
        with source, suppress(OSError):
            while data := source.recv(65_536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


def test_a_library_is_repaired_from_its_object_store(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "run_guarded", read_once)
    write_pdf(tmp_path / "papers" / "otters.pdf", OTTERS, "On Sea Otters")
    write_pdf(tmp_path / "papers" / "glaciers.pdf", GLACIERS, "The Aletsch Glacier")
    with lite_app(tmp_path / "store", tmp_path / "papers", RECORDS_URI=URI) as app:
        app.run()
        with closing(app.open_library()) as library:
            papers, files = library.papers(), library.files()
        for name in milvus_of(app).collections():
            milvus_of(app).drop(name)
        assert again(app).repair() == sum(paper.chunks for paper in papers)
        with closing(again(app).open_library()) as library:
            assert (library.papers(), library.files()) == (papers, files)
        assert not list((tmp_path / "store").rglob("records*"))  # nothing of it in a folder of this computer


def test_what_another_computer_wrote_is_seen(store: str) -> None:
    ours = RecordFiles(URI)
    ours.write_metadata("first", {"user": {"year": 2014}})
    assert [paper for paper, _ in ours.metadata()] == ["first"]
    s3fs.S3FileSystem.clear_instance_cache()  # what another process has
    RecordFiles(URI).write_metadata("second", {})
    assert [paper for paper, _ in ours.metadata()] == ["first", "second"]
    RecordFiles(URI).write_library({"epoch": "e"})
    assert ours.library() == {"epoch": "e"}
    ours.delete("e", "nobody")


def test_a_dropped_epoch_is_gone(store: str) -> None:
    records = RecordFiles(URI)
    for paper in ("a", "b"):
        records.write_files("old", paper, "[]")
    records.write_files("new", "a", "[]")
    records.drop_epoch("old")
    records.drop_epoch("old")
    assert s3fs.S3FileSystem().find("papers/library") == ["papers/library/new/files/a.json"]


def test_a_bucket_that_is_missing(store: str) -> None:
    records = RecordFiles("s3://elsewhere/library")
    with pytest.raises(StoreMissing, match="There are no records of papers at s3://elsewhere/library"):
        records.library()
    with pytest.raises(StoreError, match="cannot be used: The specified bucket does not exist") as raised:
        records.write_library({})
    assert raised.value.remedy.startswith("Check RECORDS_URI")


def test_wrong_keys(store: str) -> None:
    records = RecordFiles(URI)
    records.write_library({"epoch": "e"})
    httpx.post(f"{store}/moto-api/reset-auth", content=b"0", trust_env=False).raise_for_status()  # from now on
    try:
        with pytest.raises(StoreError, match=r"at s3://papers/library cannot be used: Forbidden\.$"):
            records.library()
        with pytest.raises(StoreError, match=r"The AWS Access Key Id you provided does not exist in our records\.$"):
            records.write_library({})
    finally:
        httpx.post(f"{store}/moto-api/reset-auth", content=b"1000000", trust_env=False).raise_for_status()
    assert records.library() == {"epoch": "e"}


def test_a_connection_that_is_cut_once_is_tried_again(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(CutProxy(int(store.rpartition(":")[2]), cuts=1)) as proxy:
        use(proxy.url, monkeypatch)
        RecordFiles(URI).write_library({"epoch": "e"})
        assert proxy.left == 0
        assert RecordFiles(URI).library() == {"epoch": "e"}


def test_a_connection_that_is_always_cut_is_an_error_and_leaves_nothing(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "run_guarded", read_once)
    write_pdf(tmp_path / "papers" / "glaciers.pdf", GLACIERS, "The Aletsch Glacier")
    with (
        closing(CutProxy(int(store.rpartition(":")[2]), cuts=0)) as proxy,
        lite_app(tmp_path / "store", tmp_path / "papers", RECORDS_URI=URI) as app,
    ):
        use(proxy.url, monkeypatch)
        app.run()
        write_pdf(tmp_path / "papers" / "otters.pdf", OTTERS, "On Sea Otters")
        proxy.left = 10**6
        use(proxy.url, monkeypatch)  # without the connections that are open
        with pytest.raises(StoreError, match="The records at s3://papers/library cannot be used"):
            again(app).run()
        assert files_of(again(app)) == ["glaciers.pdf"]
        proxy.left = 0
        again(app).run()
        assert files_of(again(app)) == ["glaciers.pdf", "otters.pdf"]


def files_of(app: HashingApp) -> list[str]:
    with closing(app.open_library()) as library:
        return [paper.file for paper in library.papers()]
