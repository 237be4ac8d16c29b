"""Several computers write to one library in Milvus: each paper is added by one of them, and is whole."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pymilvus", reason="pymilvus is not installed (requirements-cluster.txt)")
pytest.importorskip("milvus_lite", reason="milvus-lite is not installed (requirements-cluster.txt)")

from folio import workers
from folio.cluster import claims
from folio.cluster.claims import Claims
from folio.cluster.collections import Names
from folio.cluster.library_state import read_state
from folio.cluster.milvus_client import Milvus
from folio.cluster.milvus_errors import MissingCollection
from folio.cluster.milvus_library import MilvusLibrary
from folio.errors import StoreBusy, StoreMismatch
from folio.ingest import pipeline
from folio.ingest.chunking import chunk_id
from folio.paper_metadata import simple_metadata
from folio.types import NewPaper, PageMap, SourceFile
from tests.helpers.fakes import HashingApp, make_pdf, read_once
from tests.helpers.milvus import milvus_of, release, served, writer_at

FINGERPRINT = {"embedder": "hashing", "dimension": "4"}


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with served(tmp_path) as found:
        yield found


@pytest.fixture
def two(tmp_path: Path, address: str) -> Iterator[tuple[MilvusLibrary, MilvusLibrary]]:
    """The libraries of two computers, of one paper."""
    first, second = (opened(writer_at(tmp_path / name, tmp_path / "papers", address)) for name in "ab")
    first.set_fingerprint(FINGERPRINT)
    add(first, "old")
    yield first, second
    first.close()
    second.close()


def opened(app: HashingApp) -> MilvusLibrary:
    library = app.open_library(create=True)
    assert isinstance(library, MilvusLibrary)
    return library


def file_of(id: str, path: str = "") -> SourceFile:
    return SourceFile(path or f"/p/{id}.pdf", f"{id}.pdf", id)


def add(library: MilvusLibrary, id: str, path: str = "", text: str = "Ice is old.") -> None:
    spans = ((0, len(text)),)
    paper = NewPaper(id, simple_metadata(title=id), text, PageMap((0,), ("1",)), spans)
    library.add(paper, file_of(id, path), [chunk_id(id, *spans[0])], np.eye(1, 4, dtype=np.float32))


def rows(library: MilvusLibrary, name: str) -> list[str]:
    return sorted(str(row["key"]) for row in library.milvus.rows(name, 'key >= ""', ["key"], strong=True))


def left(library: MilvusLibrary) -> list[str]:
    """What writers have noted."""
    return [key for key in rows(library, library.names.store) if key.startswith(("claim.", "intent."))]


def versions(library: MilvusLibrary) -> set[str]:
    names = library.names
    found = (library.milvus.rows(name, 'key >= ""', ["version"], strong=True) for name in (names.chunks, names.pages))
    return {str(row["version"]) for each in found for row in each}


class Paused:
    """A connection that does something once: before it writes rows of `papers` or `store`, or after it read intents."""

    def __init__(self, library: MilvusLibrary, happens: Any, when: str = "papers") -> None:
        self._milvus, self._happens, self._when = library.milvus, happens, when
        self._collection = library.names.papers if when == "papers" else library.names.store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._milvus, name)

    def write(self, name: str, rows: list[dict[str, Any]], **more: Any) -> None:
        """See Milvus.write."""
        if name == self._collection and self._when != "intents":
            self._step()
        self._milvus.write(name, rows, **more)

    def rows(self, name: str, where: str, *arguments: Any, **more: Any) -> Iterator[dict[str, Any]]:
        """See Milvus.rows."""
        found = list(self._milvus.rows(name, where, *arguments, **more))
        if self._when == "intents" and "intent." in where:
            self._step()
        return iter(found)

    def _step(self) -> None:
        if happens := self._happens:
            self._happens = None
            happens()


def test_the_sweep_of_one_leaves_what_another_is_writing(
    two: tuple[MilvusLibrary, MilvusLibrary], tmp_path: Path, address: str
) -> None:
    first, second = two
    other = writer_at(tmp_path / "b", tmp_path / "papers", address)
    first.milvus = Paused(first, lambda: other.backend.update_indexes(second))  # type: ignore[assignment]
    add(first, "new", path="/p/old.pdf")  # replaces what is there
    assert [file.sha256 for file in second.files()] == ["new"]
    assert [row[2] for row in second.read_chunks(second.chunk_ids_of(["new"]))] == ["Ice is old."]
    assert len(versions(second)) == 2  # the old one, which the first computer has noted
    writer_at(tmp_path / "a", tmp_path / "papers", address).backend.update_indexes(first)
    assert len(versions(second)) == 1
    assert left(second) == []


def test_the_sweep_of_one_writes_the_files_that_another_has_just_moved(
    two: tuple[MilvusLibrary, MilvusLibrary], tmp_path: Path, address: str
) -> None:
    first, second = two
    moved = file_of("old", "/p/moved.pdf")
    with closing(opened(writer_at(tmp_path / "a", tmp_path / "papers", address))) as again:
        again.milvus = Paused(again, lambda: second.link([moved], ["/p/old.pdf"]), "intents")  # type: ignore[assignment]
        again.sweep()  # of a paper whose process may have been killed before it wrote its files
    ((_, files),) = first.records.records(first.names.epoch)
    assert files == [moved]


def test_what_is_said_of_a_paper_that_another_is_adding_is_among_its_words(
    two: tuple[MilvusLibrary, MilvusLibrary],
) -> None:
    first, second = two
    first.milvus = Paused(first, lambda: add(second, "new"), "store")  # type: ignore[assignment]
    first.set_metadata_of("person", {"new": simple_metadata(title="Zebras"), "absent": simple_metadata(title="Foxes")})
    found = second.milvus.rows(second.names.chunks, 'paper == "new"', ["version", "body"], strong=True)
    (current,) = second.versions_of(["new"])
    assert ["zebra" in row["body"] for row in found if row["version"] == current] == [True]
    assert second.metadata_layers("absent")["person"].title.value == "Foxes"


def test_a_reader_may_read_the_statistics_that_a_writer_replaces(
    two: tuple[MilvusLibrary, MilvusLibrary], tmp_path: Path, address: str
) -> None:
    first, _ = two
    writer, reader = (writer_at(tmp_path / name, tmp_path / "papers", address) for name in "ac")
    writer.backend.update_indexes(first)
    with closing(reader.open_library()) as library, library.reading():
        add(first, "new")
        writer.backend.update_indexes(first)
        assert reader.backend.open_indexes(library).lexical.search("ice", 5)


def test_a_rebuild_has_the_library_to_itself(
    two: tuple[MilvusLibrary, MilvusLibrary], tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two
    monkeypatch.setattr(claims, "WAIT_S", 0.2)
    other = writer_at(tmp_path / "c", tmp_path / "papers", address)
    before = first.milvus.collections()
    assert first.claim(file_of("new"))
    with pytest.raises(StoreBusy, match=r"^Another process is changing the same part of the library\.$"):
        other.backend.repair()
    assert first.milvus.collections() == before
    first.release(file_of("new"))
    assert first.claim(file_of("new"))
    first.release(file_of("new"))
    with closing(opened(other)) as rebuilder:
        rebuilder.hold_library()
        for change in (
            lambda: first.claim(file_of("new")),
            lambda: add(first, "new"),
            lambda: first.drop("/p/old.pdf"),
            lambda: second.set_metadata("old", "person", simple_metadata(title="Other")),
            lambda: second.hold_library(),
        ):
            with pytest.raises(StoreBusy, match=r"^Another process is rebuilding or repairing the library, or moves"):
                change()
        add(rebuilder, "other")
    assert second.claim(file_of("new"))
    second.release(file_of("new"))
    assert other.backend.repair() == 2
    for writer in (first, second):  # what they have embedded may be of another model
        with pytest.raises(StoreBusy, match=r"^Another process has rebuilt the library meanwhile"):
            add(writer, "new")
    assert [paper.id for paper in first.papers()] == ["old", "other"]


def test_a_writer_that_was_cut_off_goes_on_only_with_claims_that_are_still_its_own(
    two: tuple[MilvusLibrary, MilvusLibrary], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = two
    mine, other = (Claims(first.milvus, first.names.store, place, "ingest") for place in ("mine", "other"))
    assert mine.take(["x"])
    monkeypatch.setattr(claims, "TRUSTED_S", -1)
    assert mine.take(["y"])
    monkeypatch.setattr(claims, "EXPIRES_S", -1)
    assert not other.take(["x"])  # it sees this claim for the first time
    assert other.take(["x"])  # which has not changed since
    other.release(["x"])
    with pytest.raises(StoreBusy, match=r"^This computer was cut off from Milvus"):
        mine.take(["z"])
    assert mine.take(["x"])
    for each in (mine, other):
        each.close()


def test_a_paper_that_another_is_adding_is_left_to_it(
    two: tuple[MilvusLibrary, MilvusLibrary], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two
    monkeypatch.setattr(claims, "WAIT_S", 0.2)
    assert first.claim(file_of("new"))
    second.files()
    assert not second.claim(file_of("new"))
    assert not second.claim(file_of("other", "/p/new.pdf"))  # another paper, which would take the path over
    with pytest.raises(StoreBusy, match=r"^Another process is changing the same part of the library\.$"):
        add(second, "new")
    add(first, "new")
    first.release(file_of("new"))
    assert not second.claim(file_of("new"))  # it has come since it looked
    assert second.claim(file_of("new"), is_known=True)  # to be read again
    assert [paper.id for paper in second.papers()] == ["new", "old"]


def test_who_waits_for_another_reads_what_that_one_wrote(two: tuple[MilvusLibrary, MilvusLibrary]) -> None:
    first, second = two
    with ThreadPoolExecutor() as pool:
        assert first.claim(file_of("old"), is_known=True)
        waiting = pool.submit(second.change_metadata, "old", "person", lambda _: simple_metadata(title="Other"))
        time.sleep(0.3)
        assert not waiting.done()
        add(first, "old", text="Ice is new.")
        first.release(file_of("old"))
        assert waiting.result()
    assert [row[2] for row in first.read_chunks(first.chunk_ids_of(["old"]))] == ["Ice is new."]
    assert [paper.title for paper in first.papers()] == ["Other"]


def test_the_claim_of_a_writer_that_is_gone_ends(
    two: tuple[MilvusLibrary, MilvusLibrary], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two
    monkeypatch.setattr(claims, "RENEW_S", 0.05)
    monkeypatch.setattr(claims, "EXPIRES_S", 0.5)
    alive, gone = (Claims(first.milvus, first.names.store, place, "ingest") for place in ("alive", "gone"))
    assert alive.take(["x"])
    assert gone.take(["y"])
    gone._stopped.set()  # as when its process is killed
    mine = Claims(second.milvus, second.names.store, "mine", "ingest")
    until = time.monotonic() + 10
    while not mine.take(["y"]):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert not mine.take(["x"])
    assert not mine.take(["x", "z"])
    assert alive.take(["z"])  # what could not be had whole was not kept
    for each in (alive, gone, mine):
        each.close()
    assert [key for key in left(second) if key.startswith("claim.")] == []


def test_the_claims_of_a_killed_ingest_end_when_its_computer_begins_again(
    two: tuple[MilvusLibrary, MilvusLibrary], tmp_path: Path, address: str
) -> None:
    first, second = two
    assert first.claim(file_of("new"))
    assert not second.claim(file_of("new"))
    with closing(opened(writer_at(tmp_path / "a", tmp_path / "papers", address))) as again:
        assert again.claim(file_of("new"))


def test_of_claims_at_the_same_time_one_wins(two: tuple[MilvusLibrary, MilvusLibrary]) -> None:
    writers = [Claims(two[0].milvus, two[0].names.store, f"place{n}", "ingest") for n in range(4)]
    holders: list[int] = []

    def work(n: int) -> None:
        for _ in range(3):
            with writers[n].holding(["thing"]):
                holders.append(n)
                assert len(holders) == 1
                time.sleep(0.01)
                holders.remove(n)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert [key for key in left(two[0]) if key.startswith("claim.")] == []


def test_two_computers_share_the_work_on_one_folder(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "run_guarded", read_once)
    monkeypatch.setattr(pipeline, "_WAITS_S", (0.05,))
    papers = tmp_path / "papers"
    for number in range(8):
        make_pdf(papers / f"{number}.pdf", ("trees", "sponges")[number % 2], change=f"This is number {number}.")
    (papers / "broken.pdf").write_bytes(b"%PDF-1.7")
    (papers / "copy.pdf").write_bytes((papers / "3.pdf").read_bytes())
    apps = [writer_at(tmp_path / name, papers, address) for name in "ab"]
    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(lambda app: app.run(), apps))
    status = [{outcome.file.name: outcome.status for outcome in each} for each in outcomes]
    for name in (f"{number}.pdf" for number in range(8)):
        both = sorted(each[name] for each in status)
        assert both in (["added", "unchanged"], ["duplicate", "unchanged"], ["added", "duplicate"]), (name, both)
    assert {each["broken.pdf"] for each in status} == {"failed"}
    added = [sum(outcome == "added" for outcome in each.values()) for each in status]
    assert sum(added) == 8
    assert min(added) > 0
    with closing(opened(apps[0])) as library:
        assert len(library.papers()) == 8
        assert len(library.files()) == 9
        assert len(versions(library)) == 8
        assert left(library) == []
    for app in apps:
        assert app.verify() == []
        assert [outcome.status for outcome in app.run()].count("unchanged") == 9
    embedded = [text for app in apps for text in app.hashing.passages if "number" in text]
    assert len(embedded) == len(set(embedded)) == 8


def test_a_library_that_another_has_begun_with_other_settings_is_refused(tmp_path: Path, address: str) -> None:
    with (
        closing(opened(writer_at(tmp_path / "a", tmp_path / "papers", address))) as first,
        closing(opened(writer_at(tmp_path / "b", tmp_path / "papers", address))) as second,
    ):
        assert not second.fingerprint()
        first.set_fingerprint(FINGERPRINT)
        with pytest.raises(StoreMismatch, match=r"begun this library with other settings: dimension\.$"):
            second.set_fingerprint({**FINGERPRINT, "dimension": "8"})
        second.set_fingerprint(FINGERPRINT)
        assert second.state() == first.state()
        assert len(milvus_of(writer_at(tmp_path / "a", tmp_path, address)).collections()) == 7


def test_a_library_that_another_computer_creates_while_its_state_is_read_is_read(
    two: tuple[MilvusLibrary, MilvusLibrary], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = two
    rows_of, names = Milvus.rows_of, Names("folio")
    missing = [MissingCollection("A collection of the library is missing.", "")]

    def just_created(self: Milvus, *arguments: Any, **more: Any) -> Iterator[dict[str, Any]]:
        if missing:
            raise missing.pop()
        return rows_of(self, *arguments, **more)

    before = first.state()
    monkeypatch.setattr(Milvus, "rows_of", just_created)
    assert read_state(first.milvus, names) == before
    assert not missing


def test_threads_that_use_a_collection_first_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    milvus = Milvus(str(tmp_path / "lite.db"), "", 30)
    together = threading.Barrier(8)
    names = [f"numbers_{number}" for number in range(5)]

    def add(number: int) -> None:
        for name in names:
            together.wait(30)
            milvus.create_missing(name, {"id": "key"})
            milvus.write(name, [{"id": str(number)}])

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(add, range(8)))
    found = [{row["id"] for row in milvus.rows(name, 'id != ""', ["id"])} for name in names]
    release(tmp_path / "lite.db")
    assert found == [{str(number) for number in range(8)}] * 5
