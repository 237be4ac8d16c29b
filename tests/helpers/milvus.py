"""Stores in Milvus Lite for tests: fast to fill, and left without a server afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from folio.cluster.milvus_client import Milvus
from folio.cluster.milvus_store import MilvusStore
from tests.helpers.fakes import HashingApp, HashingEmbedder, hashing_app


@contextmanager
def lite_app(folder: Path, papers: Path, **settings: Any) -> Iterator[HashingApp]:
    """An app over these papers with its store in Milvus Lite."""
    file = folder / "lite.db"
    chosen = {"STORE": "milvus", "MILVUS_URI": str(file), "MILVUS_TIMEOUT_S": 60, "PAPERS_DIR": papers, **settings}
    try:
        yield hashing_app(folder, HashingEmbedder(), **chosen)
    finally:
        release(file)


def again(app: HashingApp) -> HashingApp:
    """The same app as another process would have it: it has read nothing yet."""
    return HashingApp(app.settings, app.notice, app.hashing)


def computer(app: HashingApp, folder: Path) -> HashingApp:
    """The app of another computer over the same library, with a folder of its own."""
    records = app.settings.RECORDS_URI or str(app.store_folder / "records")
    own = {"VECTORSTORE_DIR": folder, "INGESTED_JSON": folder / "ingested.json", "RECORDS_URI": records}
    return HashingApp(app.settings.model_copy(update=own), app.notice, app.hashing)


def release(file: Path) -> None:
    """End the server of Milvus Lite over a file; a client of it has none then."""
    from milvus_lite.server_manager import server_manager_instance

    server_manager_instance.release_server(str(file))


def milvus_of(app: HashingApp) -> Milvus:
    """The connection of an app."""
    assert isinstance(app.backend, MilvusStore)
    return app.backend.milvus


class Killed(BaseException):
    """Stands for the end of the process: nothing of Folio catches it."""


class KilledAt:
    """A connection that ends the process before its write of this number; the writes before it have been done."""

    def __init__(self, milvus: Milvus, fatal: int) -> None:
        self._milvus, self._left = milvus, fatal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._milvus, name)

    def write(self, name: str, rows: Sequence[dict[str, Any]], **more: Any) -> None:
        """See Milvus.write."""
        self._step()
        self._milvus.write(name, rows, **more)

    def delete(self, name: str, where: str) -> None:
        """See Milvus.delete."""
        self._step()
        self._milvus.delete(name, where)

    def _step(self) -> None:
        self._left -= 1
        if self._left == 0:
            raise Killed


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A file of Milvus Lite, which all stores of this process use by one server."""
    file = folder / "served.db"
    try:
        yield str(file)
    finally:
        release(file)


def writer_at(folder: Path, papers: Path, address: str, **settings: Any) -> HashingApp:
    """An app as another computer has it that writes: a folder of its own, and a library and records that all share."""
    chosen = {"STORE": "milvus", "MILVUS_URI": address, "MILVUS_TIMEOUT_S": 60, "PAPERS_DIR": papers, **settings}
    return hashing_app(folder, HashingEmbedder(), RECORDS_URI=str(folder.parent / "records"), **chosen)
