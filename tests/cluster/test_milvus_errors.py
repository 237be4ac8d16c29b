"""What can be wrong with a library in Milvus: one sentence each, its remedy, and nothing replaced without --yes."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from time import monotonic

import pytest

pytest.importorskip("pymilvus", reason="pymilvus is not installed (requirements-cluster.txt)")
pytest.importorskip("milvus_lite", reason="milvus-lite is not installed (requirements-cluster.txt)")

import grpc

from folio import workers
from folio.cluster.collections import CHUNKS
from folio.cluster.library_state import about, write_state
from folio.cluster.milvus_errors import MissingCollection, NoAnswer, translated
from folio.cluster.milvus_library import MilvusLibrary
from folio.cluster.record_files import RecordFiles
from folio.commands import ingest
from folio.errors import FolioError, StoreBusy, StoreDamaged, StoreError, StoreMismatch, StoreMissing, UsageError
from folio.ingest.local_store import LocalStore
from folio.paper_metadata import Field
from tests.helpers.factories import small_papers
from tests.helpers.fakes import HashingApp, hashing_app, read_once
from tests.helpers.milvus import again, lite_app, milvus_of
from tests.helpers.paths import ROOT


@pytest.fixture(autouse=True)
def _no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "run_guarded", read_once)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[HashingApp]:
    """A library of two papers."""
    small_papers(tmp_path / "papers")
    with lite_app(tmp_path, tmp_path / "papers") as made:
        made.run()
        yield made


def run(app: HashingApp, *arguments: str) -> int:
    return ingest.run(app, ingest.parser("ingest.py").parse_args(arguments))


def opened(app: HashingApp) -> MilvusLibrary:
    library = again(app).open_library()
    assert isinstance(library, MilvusLibrary)
    return library


def found(app: HashingApp) -> list[tuple[str, str]]:
    """Every paper with its text and all that finds its passages."""
    with closing(opened(app)) as library:
        retriever = app.retriever(library)
        hits = retriever.search("glacier otter ice fur", 20).hits
        return [(hit.paper.file, hit.text) for hit in hits]


def test_another_fingerprint_is_refused_by_name(app: HashingApp) -> None:
    other = HashingApp(app.settings.model_copy(update={"CHUNK_SIZE": 120}), app.notice, app.hashing)
    with closing(other.open_library()) as library, pytest.raises(StoreMismatch) as refused:
        other.retriever(library)
    assert (
        refused.value.happened == "The index was made with other settings: chunk_size is 100 in the index and 120 now."
    )


def test_another_dimension_is_refused(app: HashingApp) -> None:
    with closing(opened(app)) as library:
        names, milvus = library.names, library.milvus
        made_with = {**library.fingerprint(), "dimension": "3"}
        current = about(names.epoch, made_with)
        milvus.write(names.store, [{"key": "current", "value": json.dumps(current)}])
    with pytest.raises(StoreDamaged, match=r"has vectors of 64 numbers, and its library says 3\.$") as refused:
        opened(app)
    assert "--repair --yes" in refused.value.remedy


def test_words_of_another_tokenizer_are_made_again_by_a_repair(app: HashingApp) -> None:
    before = found(app)
    with closing(opened(app)) as library:
        current = {**about(library.names.epoch, library.fingerprint()), "tokenizer": -1}
        library.milvus.write(library.names.store, [{"key": "current", "value": json.dumps(current)}])
    with pytest.raises(StoreMismatch, match=r"were made by another version of Folio\.$"):
        opened(app)
    assert run(again(app), "--repair", "--yes") == 0
    assert found(app) == before


@pytest.mark.parametrize(
    ("value", "error", "sentence"),
    [
        (
            '{"format": 99}',
            StoreMismatch,
            "were written by another version of Folio (format 99; this version writes 3).",
        ),
        ("[", StoreDamaged, "The state of the library at "),
        ('{"format": 1}', StoreDamaged, "The state of the library at "),
        ("3", StoreDamaged, "The state of the library at "),
    ],
)
def test_a_state_that_this_version_did_not_write_is_refused(
    app: HashingApp, value: str, error: type[FolioError], sentence: str
) -> None:
    with closing(opened(app)) as library:
        library.milvus.write(library.names.store, [{"key": "current", "value": value}])
    with pytest.raises(error, match=re.escape(sentence)):
        opened(app)
    if error is StoreDamaged:
        assert run(again(app), "--rebuild", "--yes") == 0
        assert app.verify() == []


def test_a_library_with_a_collection_missing_is_repaired_from_the_records(app: HashingApp) -> None:
    before = found(app)
    with closing(opened(app)) as library:
        library.set_metadata("0" * 64, "person", library.papers()[0].metadata)  # of a paper that is not here
        gone = [library.names.pages, library.names.metadata]
        for name in gone:
            library.milvus.drop(name)
    with pytest.raises(StoreDamaged, match=f"are missing: {', '.join(sorted(gone))}"):
        opened(app)
    with pytest.raises(UsageError, match="--repair replaces everything in"):
        run(again(app), "--repair")
    passages = len(app.hashing.passages)
    assert run(again(app), "--repair", "--yes") == 0
    assert found(app) == before
    assert len(app.hashing.passages) == passages  # nothing was embedded again
    with closing(opened(app)) as library:
        assert library.metadata_layers("0" * 64).keys() == {"person"}
        assert len(milvus_of(app).collections()) == len(library.names.of_epoch(dual=False) | library.names.shared())
    assert app.verify() == []


def test_a_library_that_is_gone_is_made_again_from_the_records(app: HashingApp) -> None:
    before = found(app)
    for name in milvus_of(app).collections():
        milvus_of(app).drop(name)
    with pytest.raises(StoreMissing, match=r"^There is no library at .*lite\.db \(folio\) yet\.$"):
        opened(app)
    assert run(again(app), "--repair", "--yes") == 0
    assert found(app) == before


def test_a_rebuild_asks_first_and_replaces_the_library(app: HashingApp) -> None:
    before = found(app)
    with pytest.raises(UsageError) as refused:
        run(again(app), "--rebuild")
    assert refused.value.remedy.endswith("--rebuild --yes.")
    with closing(opened(app)) as library:
        epoch = library.names.epoch
        assert run(again(app), "--rebuild", "--yes") == 0
        new = library.names.epoch
        assert new != epoch
    assert found(app) == before
    assert {file.name for file in (app.store_folder / "records").iterdir() if file.is_dir()} == {new}


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        *(("papers", text) for text in ["", "{", '{"record": "x", "digest": "00"}', "[1]", '{"record": 3}']),
        *(("files", text) for text in ["", "[", "{}x", "3", '[["a.pdf"]]']),
    ],
)
def test_a_damaged_record_is_named(app: HashingApp, kind: str, content: str) -> None:
    record = next((app.store_folder / "records").glob(f"*/{kind}/*.json"))
    record.write_text(content)
    with pytest.raises(StoreDamaged, match=f"{kind}/{record.name} is damaged"):
        app.backend.repair()


def test_rows_that_were_changed_are_noticed(app: HashingApp) -> None:
    with closing(opened(app)) as library:
        (row, *_) = library.milvus.rows(library.names.pages, "start == 0", ["key", "version", "start", "text"])
        library.milvus.write(library.names.pages, [{**row, "text": row["text"].replace("e", "a", 1)}])
    with closing(opened(app)) as library, pytest.raises(StoreDamaged, match="is not the one that was stored"):
        [library.text(paper.id, 0, 10) for paper in library.papers()]
    assert any("is not the one that was stored" in fault for fault in again(app).verify())


def test_a_reader_that_a_writer_overtakes_is_told_to_ask_again(app: HashingApp) -> None:
    with closing(opened(app)) as reader, closing(again(app).open_library(create=True)) as writer:
        (first, second) = writer.files()
        with reader.reading():
            ids = reader.chunk_ids_of([first.sha256])
            assert len(reader.chunks(ids)) == len(ids)
            writer.drop(first.path)
            app.backend.update_indexes(writer)
            for read in (reader.vectors_of, reader.read_chunks):
                with pytest.raises(StoreBusy, match=r"^A paper was removed or replaced while it was being read\.$"):
                    read(ids)
        with pytest.raises(StoreBusy, match=r"^The library was rebuilt"):
            read_while(reader, second.sha256, lambda: run(again(app), "--rebuild", "--yes"))


def read_while(reader: MilvusLibrary, paper: str, happens: Callable[[], object]) -> None:
    """A question that reads a paper, and its passages when something has happened."""
    with reader.reading():
        assert reader.papers_by_id([paper])
        happens()
        reader.chunk_ids_of([paper])


def test_a_question_creates_no_file(tmp_path: Path) -> None:
    app = hashing_app(tmp_path, STORE="milvus")
    with pytest.raises(StoreMissing, match=r"^There is no library at .*store/cluster\.db \(folio\) yet\.$"):
        app.open_library()
    assert not app.has_library()
    assert list(tmp_path.iterdir()) == []


def test_nobody_answers(tmp_path: Path) -> None:
    app = hashing_app(tmp_path, STORE="milvus", MILVUS_URI="http://127.0.0.1:9", MILVUS_TIMEOUT_S=1)
    with pytest.raises(StoreError) as refused:
        app.open_library()
    assert refused.value.happened == "Milvus at http://127.0.0.1:9 does not answer."
    assert refused.value.remedy.startswith("Check MILVUS_URI")


@contextmanager
def server(answer: Callable[[grpc.ServicerContext], None]) -> Iterator[str]:
    """A server that answers every request of Milvus's protocol in one way."""

    class Everything(grpc.GenericRpcHandler):  # type: ignore[misc]
        def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
            return grpc.unary_unary_rpc_method_handler(lambda request, context: answer(context))

    made = grpc.server(ThreadPoolExecutor(2), handlers=[Everything()])
    port = made.add_insecure_port("127.0.0.1:0")
    made.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        made.stop(0).wait()


@pytest.mark.parametrize("uri", ["http://user:pw@host:19530", "ftp://host", "cluster", "host:19530"])
def test_an_address_that_is_none_is_refused(tmp_path: Path, uri: str) -> None:
    with pytest.raises(ValueError, match="MILVUS_URI"):
        hashing_app(tmp_path, STORE="milvus", MILVUS_URI=uri)


def test_a_separate_index_is_never_in_milvus(app: HashingApp, tmp_path: Path) -> None:
    assert isinstance(app.over(tmp_path / "papers", tmp_path / "apart").backend, LocalStore)


def test_a_wrong_token_is_refused_and_not_shown(tmp_path: Path) -> None:
    def refuse(context: grpc.ServicerContext) -> None:
        said = dict(context.invocation_metadata())
        assert said.get("authorization")
        context.abort(grpc.StatusCode.UNAUTHENTICATED, "auth check failure, please check api key is correct")

    with server(refuse) as address:
        app = hashing_app(tmp_path, STORE="milvus", MILVUS_URI=address, MILVUS_TOKEN="s3cr3t", MILVUS_TIMEOUT_S=5)
        with pytest.raises(StoreError) as refused:
            app.open_library()
    assert refused.value.happened == f"Milvus at {address} refused MILVUS_TOKEN."
    assert "s3cr3t" not in f"{refused.value} {refused.value.remedy} {app.settings_used()}"


@pytest.mark.slow
def test_a_file_that_another_process_uses_is_busy(app: HashingApp) -> None:
    code = f"""
from tests.helpers.fakes import hashing_app
from pathlib import Path
from folio.errors import StoreBusy
app = hashing_app(Path({str(app.store_folder.parent)!r}), STORE="milvus", MILVUS_URI={app.settings.MILVUS_URI!r})
try:
    app.open_library()
except StoreBusy as error:
    print(error.happened)
"""
    # Set as people set it: pymilvus takes a setting of this name for an address
    environment = {**os.environ, "MILVUS_URI": app.settings.MILVUS_URI}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("cannot be opened: another process is using it, or Milvus Lite did not write it.\n")
    assert done.stderr == ""


def test_a_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "lite.db"
    file.write_bytes(b"SQLite format 3\0")
    with pytest.raises(StoreBusy, match="cannot be opened"):
        hashing_app(tmp_path, STORE="milvus", MILVUS_URI=str(file)).open_library()
    assert file.read_bytes() == b"SQLite format 3\0"


def test_records_that_cannot_be_written_end_the_ingest(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    small_papers(tmp_path / "papers")
    records = str(tmp_path / "file" / "records")
    with (
        lite_app(tmp_path, tmp_path / "papers", RECORDS_URI=records) as app,
        pytest.raises(StoreError, match=re.escape(f"The records at {records} cannot be used: ")),
    ):
        app.run()
    with pytest.raises(StoreError, match="cannot be used"):
        RecordFiles("nonsense://bucket")


@pytest.mark.slow
def test_a_process_that_is_killed_loses_no_paper(tmp_path: Path) -> None:
    """By SIGKILL, while the file of Milvus Lite is open."""
    code = f"""
import os, signal
from pathlib import Path
from folio import workers
from tests.helpers.factories import small_papers
from tests.helpers.fakes import read_once
from tests.helpers.milvus import lite_app
from folio.cluster.library_state import about, write_state
from folio.cluster.milvus_library import MilvusLibrary
workers.run_guarded = read_once
folder = Path({str(tmp_path)!r})
small_papers(folder / "papers")
added = 0
def killed(*arguments, add=MilvusLibrary._write_parts):
    global added
    add(*arguments)
    added += 1
    if added == 2:
        os.kill(os.getpid(), signal.SIGKILL)
MilvusLibrary._write_parts = killed
with lite_app(folder, folder / "papers") as app:
    app.run()
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    with lite_app(tmp_path, tmp_path / "papers") as app:
        with closing(app.open_library()) as library:
            assert len(library.papers()) == 1
            assert library.read_chunks(library.chunk_ids_of([library.papers()[0].id]))
        assert sorted(outcome.status for outcome in app.run()) == ["added", "unchanged"]
        assert app.verify() == []


def emptied(app: HashingApp, kind: str) -> str:
    """The collection of a kind, without its rows."""
    with closing(opened(app)) as library:
        name = str(getattr(library.names, kind))
        key = "id" if kind == "papers" else "text_hash" if kind == "pending" else "key"
        library.milvus.delete(name, f'{key} >= ""')
    return name


def said_on_asking(app: HashingApp) -> tuple[str, str]:
    """What a question says of a library that is not whole; "" if it finds something."""
    try:
        assert found(again(app))
    except FolioError as error:
        return error.happened, error.remedy
    return "", ""


@pytest.mark.parametrize("kind", ["store", "metadata", "papers", "structure", "pages", "chunks", "pending"])
def test_a_library_that_was_deleted_in_part_says_so_and_is_repaired(app: HashingApp, kind: str) -> None:
    before = found(app)
    with closing(opened(app)) as library:
        paper = library.papers()[0].id
        library.change_metadata(paper, "person", lambda said: replace(said, venue=Field("Ice", "person", True)))
    for drop in (False, True):
        name = emptied(app, kind)
        if drop:
            milvus_of(app).drop(name)
        happened, remedy = said_on_asking(app)
        if kind == "store":
            assert happened.startswith("There is no library at ")
            with pytest.raises(StoreMismatch, match="are of a library that is not in Milvus") as refused:
                run(again(app))
            happened, remedy = refused.value.happened, refused.value.remedy
        if kind == "metadata" and not drop:
            assert again(app).verify() == [f"What is known about paper {paper[:12]} is not what its record says."]
        elif kind == "pending" and not drop:
            assert happened == ""
            continue
        else:
            assert happened
            assert "--repair --yes" in remedy
        assert run(again(app), "--repair", "--yes") == 0
        assert found(again(app)) == before
        assert again(app).verify() == []
        with closing(opened(app)) as library:
            assert library.metadata_layers(paper)["person"].venue.value == "Ice"


def test_a_library_whose_collections_have_other_fields_says_so(app: HashingApp) -> None:
    with closing(opened(app)) as library:
        name = library.names.chunks
        library.milvus.drop(name)
        library.milvus.create(name, {each: kind for each, kind in CHUNKS.items() if each != "version"}, 64)
    happened, remedy = said_on_asking(app)
    assert happened.startswith("A field of the library is missing in Milvus at ") or " is empty." in happened
    assert "--repair --yes" in remedy


def listening(accepts: Callable[[socket.socket], object]) -> Iterator[int]:
    """The port of a server that does one thing with each connection."""
    listener = socket.create_server(("127.0.0.1", 0))
    kept: list[socket.socket] = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                kept.append(listener.accept()[0])
                accepts(kept[-1])

    thread = Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
        for each in kept:
            each.close()


def _says_it_is_a_website(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
    connection.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("scheme", "accepts"),
    [
        ("http", lambda connection: None),
        ("http", lambda connection: connection.shutdown(socket.SHUT_RDWR)),
        ("http", _says_it_is_a_website),
        ("https", _says_it_is_a_website),
    ],
    ids=["silent", "closing", "website", "no TLS"],
)
def test_what_is_no_server_of_milvus_is_named_in_time(
    tmp_path: Path, scheme: str, accepts: Callable[[socket.socket], object]
) -> None:
    with contextmanager(listening)(accepts) as port:
        address = f"{scheme}://127.0.0.1:{port}"
        app = hashing_app(tmp_path, STORE="milvus", MILVUS_URI=address, MILVUS_TIMEOUT_S=1)
        began = monotonic()
        with pytest.raises(StoreError) as refused:
            app.open_library()
        assert monotonic() - began < 3
    assert refused.value.happened == f"Milvus at {address} does not answer."
    assert "http:// or https://" in refused.value.remedy


def test_a_rebuild_that_was_killed_at_its_very_end_is_never_thrown_away(app: HashingApp) -> None:
    before = found(app)
    with closing(opened(app)) as library:
        state = library.state()
        write_state(library.milvus, library.names, state, "building")  # as between the last two steps of a rebuild
    other = HashingApp(app.settings.model_copy(update={"CHUNK_SIZE": 120}), app.notice, app.hashing)
    app.backend._give_up()  # type: ignore[attr-defined]
    assert found(again(app)) == before
    with closing(opened(app)) as library:
        write_state(library.milvus, library.names, state, "building")
    assert run(other, "--rebuild", "--yes") == 0
    assert again(other).verify() == []


@pytest.mark.parametrize(
    "said",
    [
        "failed to query: loaded collection do not find any channel in target, may be in recovery: collection on"
        " recovering[collection=4711]",
        "collection not fully loaded[collection=4711]",
        "channel not available[channel=by-dev-rootcoord-dml_0]",
        "service not ready[querycoord=3]: Initializing",
        "Milvus Proxy is not ready yet. please wait",
        "node not found[node=4]",
        "no available shard leaders",
        "quota exceeded[reason=flush rate]",
    ],
)
def test_what_a_server_says_while_it_starts_is_no_missing_collection(said: str) -> None:
    error = translated(Exception(said), "http://milvus:19530", is_lite=False)
    assert type(error) is NoAnswer
    assert error.happened == f"Milvus at http://milvus:19530 is not ready: {said}."


@pytest.mark.parametrize(
    "said",
    [
        "collection not found[database=default][collection=folio_store]",
        "can't find collection[database=default][collection=folio_store]",
        "collection 'folio_store' does not exist",
    ],
)
def test_a_missing_collection_is_told_from_a_server_that_starts(said: str) -> None:
    assert type(translated(Exception(said), "http://milvus:19530", is_lite=False)) is MissingCollection
