"""The library in SQLite: checks and damaged files. What holds in both engines: tests/shared/test_contract.py."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from folio.errors import StoreDamaged, StoreMismatch, StoreMissing
from folio.papers.model import Failure
from folio.papers.sections import PaperSection
from folio.store.database import LIBRARY_VERSION, NAMES
from folio.store.library import Library
from folio.store.metadata import replace_papers
from folio.store.rows import text_hash
from folio.store.sqlite import SqliteDatabase
from tests.helpers.damage import at_once, tamper
from tests.helpers.engines import SPANS, TEXT, add, file, ids, paper

pytestmark = pytest.mark.environment

CHANGED, UNLIKE, FINE_COUNT = (
    "has changed since it was written",
    "is not the one that was stored",
    "number of fine passages differs",
)


@pytest.fixture
def library(path: Path) -> Iterator[Library]:
    with closing(Library(path, create=True)) as opened:
        opened.set_fingerprint({"embedder": "test", "dimension": "4"})
        yield opened


def _sqlite(library: Library) -> SqliteDatabase:
    assert isinstance(library.database, SqliteDatabase)
    return library.database


def test_new_rows_are_read_without_a_full_scan(library: Library) -> None:
    seen: list[str] = []
    database = _sqlite(library)
    database._sqlite.set_trace_callback(seen.append)
    add(library, "a.pdf", paper("a"))
    list(library.passages(0)), library.chunk_ids(0), library.removed(0), library.chunk_count()
    database._sqlite.set_trace_callback(None)
    tables = {*NAMES["library"], *NAMES["user"]} - {"meta", "kept"}
    for sql in (sql for sql in seen if sql.startswith("SELECT")):
        for *_, step in database.query(f"EXPLAIN QUERY PLAN {sql}"):
            assert not re.match(rf"SCAN ({'|'.join(tables)})\b", step), (sql, step)


@pytest.mark.parametrize("wrong", [(0, 71), (3, 3), (-1, 5), (8, 11)])
def test_sections_outside_their_text_or_across_each_other_are_refused(library: Library, wrong: tuple[int, int]) -> None:
    sections = (PaperSection(0, 10, 1, "", "Ice", "other"), PaperSection(*wrong, 1, "", "Sea", "other"))
    with pytest.raises(ValueError, match="out of order"):
        add(library, "a.pdf", replace(paper("a"), sections=sections))
    assert library.papers() == []


def test_replacing_a_library_copies_everything_under_a_new_epoch(library: Library, path: Path) -> None:
    add(library, "old.pdf", paper("e", TEXT + "e"))
    library.remember([text_hash("on its way")], np.ones((1, 4), dtype=np.float32))
    with closing(Library(path.with_name("rebuild.sqlite"), create=True)) as other, closing(Library(path)) as reader:
        other.set_fingerprint({"embedder": "other", "dimension": "4"})
        new = add(other, "new.pdf", paper("a"))
        add(other, "gone.pdf", paper("b", TEXT + "b"))
        other.drop("/papers/gone.pdf")
        other.record_failure(Failure(file("c.pdf", "c"), "Torn.", "Glue."))
        with other.reading() as its, library.reading() as before:
            pass
        with reader.reading() as seen:
            replace_papers(_sqlite(library), path.with_name("rebuild.sqlite"))
            assert [each.file for each in reader.papers()] == ["old.pdf"]  # until its snapshot ends
            assert seen == before
        assert [each.file for each in reader.papers()] == ["new.pdf"]
        with library.reading() as now:
            assert now.epoch not in (its.epoch, before.epoch)
            assert now.generation == its.generation == 3
        assert library.fingerprint() == {"embedder": "other", "dimension": "4"}
        assert library.counts() == other.counts()
        assert library.chunk_count() == len(SPANS)
        assert library.chunk_ids() == set(ids(new))
        assert library.papers() == other.papers()
    assert [failure.file.name for failure in library.failures()] == ["c.pdf"]
    assert library.recall([text_hash("on its way")]) == {}
    assert library.check() == []


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("UPDATE texts SET text = replace(text, 'second', 'sekond')", UNLIKE),
        ("UPDATE texts SET text = text || '.'", UNLIKE),
        ("UPDATE papers SET text_crc = text_crc + 1", CHANGED),
        ("UPDATE papers SET starts = '[0, 18, 45]'", CHANGED),
        ("UPDATE papers SET metadata = replace(metadata, 'Title', 'Titel')", CHANGED),
        ("UPDATE papers SET sections = replace(sections, '60', '61')", CHANGED),
        ("UPDATE chunks SET start = start + 1 WHERE start = 10", "does not match the text it was made from"),
        ("UPDATE vectors SET data = x'0000803f'", "a vector has changed"),
        ("UPDATE vectors SET data = x'00000000'", "a vector has changed"),
        ("DELETE FROM texts", "1 papers have no text"),
        ("DELETE FROM vectors WHERE chunk = (SELECT min(chunk) FROM vectors)", "1 passages have no vector"),
        ("DELETE FROM files", "1 papers have no file"),
        ("DELETE FROM papers", "refers to a missing row"),
        ("INSERT INTO vectors VALUES (1, zeroblob(16))", "refers to a missing row"),
        ("UPDATE meta SET value = 8 WHERE key = 'chunks'", "number of passages differs from the recorded count"),
        ("UPDATE chunks SET parent = NULL WHERE start = 0", FINE_COUNT),
        ("DELETE FROM chunks WHERE parent = (SELECT max(parent) FROM chunks)", FINE_COUNT),
        ("UPDATE chunks SET parent = 17 WHERE parent IS NOT NULL", "refers to a missing row"),
        (
            "UPDATE chunks SET parent = (SELECT id FROM chunks WHERE parent IS NULL AND start = 0)"
            " WHERE parent IS NOT NULL AND start > 0",
            "2 fine passages lie outside their passage",
        ),
        ("UPDATE meta SET value = 5 WHERE key = 'fine'", FINE_COUNT),
    ],
)
def test_a_check_finds_tampering(library: Library, path: Path, statement: str, fault: str) -> None:
    add(library, "a.pdf", paper("a", fine=True))
    assert library.check() == []
    tamper(path, statement)
    assert any(fault in problem for problem in library.check())


def test_a_check_finds_a_flipped_page(library: Library, path: Path) -> None:
    for letter in "abcdef":
        add(library, f"{letter}.pdf", paper(letter, TEXT + letter * 3000))
    library.close()
    path.write_bytes(path.read_bytes()[:-4096] + b"\xa5" * 4096)
    with closing(Library(path)) as damaged:
        try:
            problems = damaged.check()
        except StoreDamaged as error:
            problems = [error.happened]
    assert problems


def test_invalid_text_is_damage(library: Library, path: Path) -> None:
    add(library, "a.pdf", paper("a"))
    tamper(path, "UPDATE texts SET text = CAST(x'fffe00ff' AS TEXT)")
    with pytest.raises(StoreDamaged, match="Could not decode"):
        library.text("a" * 64, 0, 5)


# Files that are not a library


def test_a_missing_library_or_one_whose_creation_was_interrupted(tmp_path: Path) -> None:
    path = tmp_path / "library.sqlite"
    with pytest.raises(StoreMissing, match="no index") as caught:
        Library(path)
    assert "python ingest.py" in caught.value.remedy
    assert list(tmp_path.iterdir()) == []
    path.touch()
    with pytest.raises(StoreMissing):
        Library(path)
    with closing(Library(path, create=True)) as library:
        assert library.papers() == []


@pytest.mark.parametrize("content", [b"This is a text and no database.\n" * 200, b"SQLite format 3\x00" + b"\x00" * 90])
def test_a_file_that_is_not_a_database(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "library.sqlite"
    path.write_bytes(content)
    with pytest.raises(StoreDamaged) as caught, closing(Library(path, create=True)) as library:
        library.papers()
    assert "--rebuild" in caught.value.remedy
    assert path.read_bytes() == content
    if (files := Path("/proc/self/fd")).is_dir():
        assert [file for file in files.iterdir() if file.resolve().is_relative_to(tmp_path)] == []


NEWER = rf"a newer version of Folio \(schema {LIBRARY_VERSION + 1}; this version supports"


@pytest.mark.parametrize(
    ("version", "error", "happened", "remedy"),
    [
        (0, StoreMismatch, "was not written by Folio", "Move it away"),
        (-1, StoreMismatch, "was not written by Folio", "Move it away"),
        (LIBRARY_VERSION + 1, StoreMismatch, NEWER, "Use that version"),
        (LIBRARY_VERSION, StoreDamaged, "no such table", "--rebuild"),
    ],
)
def test_a_database_that_is_not_ours_is_left_alone(
    tmp_path: Path, version: int, error: type[Exception], happened: str, remedy: str
) -> None:
    path = tmp_path / "library.sqlite"
    tamper(path, "CREATE TABLE bookmarks (url TEXT)", f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    for create in (True, False):
        with pytest.raises(error, match=happened) as caught, closing(Library(path, create=create)) as library:
            library.papers()
        assert remedy in caught.value.remedy  # type: ignore[attr-defined]
        assert "python ingest.py" in caught.value.remedy  # type: ignore[attr-defined]
    assert path.read_bytes() == before


def test_a_library_that_another_process_is_creating_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "library.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        ended = threading.Timer(0.3, other.execute, ["ROLLBACK"])
        ended.start()
        with closing(Library(path, create=True)) as library:
            assert library.papers() == []
        ended.join()


def test_readers_may_open_a_library_while_it_is_created(tmp_path: Path) -> None:
    for attempt in range(10):
        path, made = tmp_path / f"{attempt}.sqlite", threading.Event()

        def look(number: int, path: Path = path, made: threading.Event = made) -> None:
            if not number:
                Library(path, create=True).close()
                made.set()
            while not made.is_set():
                with suppress(StoreMissing), closing(Library(path)) as library:
                    assert library.papers() == []

        at_once(4, look)
