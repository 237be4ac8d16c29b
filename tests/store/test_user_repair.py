"""A damaged user.sqlite: reading changes nothing, and a repair brings back what can still be read."""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from folio.errors import DiskFull, StoreDamaged, UserFileDamaged
from folio.papers.metadata import simple_metadata
from folio.store import sqlite_pages, user_file, user_repair
from folio.store.conversations import Conversations
from folio.store.database import COLUMNS, NAMES
from folio.store.library import Library
from folio.store.query_log import QueryLog
from folio.store.readings import record_reading
from folio.store.user_file import copies, set_aside
from folio.store.user_repair import repair
from tests.helpers.answers import ANSWER
from tests.helpers.damage import PAGE, at_once, flip, page_of, tamper, zero_pages
from tests.helpers.libraries import ENTRY
from tests.helpers.paths import ROOT
from tests.helpers.permissions import read_only_tree
from tests.helpers.stores import TEXTS, Notices, Store

BEFORE, ALL = 30, 60  # questions when the copy was made, and in all


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with a copy of its user data from the middle of a day; long answers lie on several pages."""
    made = Store(tmp_path_factory.mktemp("pristine") / "store")
    for name, text in TEXTS.items():
        made.add(name, text)
    with closing(made.library), closing(Conversations(made.folder / "library.sqlite")) as kept:
        log, id = QueryLog(made.library.database), kept.begin()
        made.library.set_metadata("a" * 64, "person", simple_metadata("Otters"))
        for number in range(1, ALL + 1):
            answer = "It is. " * (3000 if number % 7 == 0 else 60)
            log.add(replace(ENTRY, question=f"{number}?", answer=answer, confidence=1.0))
            if number % 10 == 0:
                kept.add(id, {"answer": answer}, ANSWER, None)
                record_reading(made.library.database, f"{number:064}", number)
            if number == BEFORE:
                user_file.copy_now(user_file.user_file_of(made.folder / "library.sqlite"))
        made.library.set_metadata("b" * 64, "person", simple_metadata("Stoats"))
    return made.folder


@pytest.fixture
def path(pristine: Path, tmp_path: Path) -> Path:
    return shutil.copytree(pristine, tmp_path / "store") / "library.sqlite"


@pytest.fixture
def user(path: Path) -> Path:
    return user_file.user_file_of(path)


def _content(user: Path) -> dict[str, bytes]:
    """The user data and all that lies beside it, without SQLite's own side files."""
    return {
        file.name: file.read_bytes()
        for file in user.parent.iterdir()
        if file.name.startswith("user") and not file.name.endswith(("-wal", "-shm", ".lock"))
    }


def _rows(user: Path) -> dict[str, set[tuple[object, ...]]]:
    with closing(sqlite3.connect(user)) as opened:
        return {
            table: set(opened.execute(f"SELECT {', '.join(_compared(table))} FROM {table}"))
            for table in NAMES["user"]
            if table != "kept"
        }


def _compared(table: str) -> list[str]:
    """The columns of a table but the time at which a conversation went on, which is earlier in a copy."""
    return [f'"{name}"' for name in COLUMNS[table] if (table, name) != ("conversations", "updated")]


def _zero(first: int, last: int) -> Callable[[Path], object]:
    """Overwrite pages of a file with zeros."""

    def act(path: Path) -> None:
        with path.open("rb+") as file:
            file.seek((first - 1) * PAGE)
            file.write(bytes((last + 1 - first) * PAGE))

    return act


def _zero_the_schema(path: Path) -> None:
    with path.open("rb+") as file:
        file.seek(100)
        file.write(bytes(PAGE - 100))


def _zero_within_the_last_long_answer(path: Path) -> None:
    content = bytearray(path.read_bytes())
    at = content.rfind(b"It is. " * 500)
    content[at : at + 100] = bytes(100)
    path.write_bytes(bytes(content))


# What is damaged, and how many questions can still be read at least
DAMAGE: dict[str, tuple[Callable[[Path], object], int]] = {
    "flipped header": (lambda path: flip(path, 3, 0x40), ALL),
    "flipped page": (lambda path: flip(path, page_of(path, "queries"), 0x10), ALL),
    "the root of the questions": (lambda path: zero_pages(path, "queries"), ALL),
    "the roots of all others": (lambda path: zero_pages(path, *(set(NAMES["user"]) - {"queries", "kept"})), ALL),
    "the first page": (_zero(1, 1), ALL),
    "the schema": (_zero_the_schema, ALL),
    "truncated": (lambda path: os.truncate(path, path.stat().st_size * 2 // 3), BEFORE),
    "truncated within a page": (lambda path: os.truncate(path, path.stat().st_size - 1000), ALL - 8),
    "within a long answer": (_zero_within_the_last_long_answer, ALL - 1),
    "zeros": (lambda path: path.write_bytes(bytes(path.stat().st_size)), BEFORE),
    "a text": (lambda path: path.write_bytes(b"This is a text and no database.\n" * 200), BEFORE),
    "empty": (lambda path: path.write_bytes(b""), BEFORE),
    "deleted": (lambda path: path.unlink(), BEFORE),
}


def _use(path: Path) -> None:
    with closing(Library(path)) as library, closing(Conversations(path)) as kept:
        library.papers()
        library.check()
        QueryLog(library.database).entries()
        for summary in kept.summaries():
            kept.turns(summary.id, library)


@pytest.mark.parametrize("damage", DAMAGE)
def test_reading_changes_nothing_and_a_repair_brings_back_what_can_be_read(
    path: Path, user: Path, damage: str
) -> None:
    library, expected = path.read_bytes(), _rows(user)
    act, least = DAMAGE[damage]
    act(user)
    before = _content(user)
    for _ in range(3):
        with pytest.raises(StoreDamaged) as caught:
            _use(path)
        assert "--repair" in caught.value.remedy
        assert _content(user) == before
    notices = Notices()
    assert not repair(path, notices)
    found = _rows(user)
    assert least <= len(found["queries"]) <= ALL
    assert {table for table in found if not found[table] <= expected[table]} == set()
    line = notices[0]
    if damage == "within a long answer":  # SQLite does not notice it
        assert line.endswith("Taken from a copy of an earlier day: 0; lost: 1.")
        return
    assert re.match(r"user\.sqlite was (damaged and set aside as user\.damaged-\S+\.sqlite|missing)\. ", line)
    assert "Missing: " in line
    damaged = [content for name, content in before.items() if name == "user.sqlite" and content]
    assert [aside.read_bytes() for aside in set_aside(user)] == damaged
    assert path.read_bytes() == library
    notices.clear()
    assert repair(path, notices)
    assert notices == []
    with closing(Library(path)) as again:
        assert again.check() == []
    _use(path)


def test_what_was_deleted_stays_deleted_where_its_table_is_whole(path: Path, user: Path) -> None:
    with closing(Library(path)) as library:
        library.set_metadata("a" * 64, "person", simple_metadata(""))
    zero_pages(user, "queries")
    assert not repair(path, Notices())
    assert {row[0] for row in _rows(user)["metadata"]} == {"b" * 64}


def test_questions_that_are_lost_are_named(path: Path, user: Path) -> None:
    with closing(sqlite3.connect(user)) as opened:
        (long,) = opened.execute("SELECT group_concat(id, ', ') FROM queries WHERE id IN (35, 42)").fetchone()
    tamper(user, f"UPDATE queries SET answer = 'It is not.' WHERE id IN ({long})")
    zero_pages(user, "queries")
    notices = Notices()
    assert not repair(path, notices)
    assert notices[0].endswith(
        "Missing: 2 questions (number 35, 42), and what was written since that copy and cannot be read."
    )


def test_a_turn_whose_conversation_is_lost_gets_another(path: Path, user: Path) -> None:
    for copy in copies(user):
        copy.unlink()
    zero_pages(user, "conversations")
    notices = Notices()
    assert not repair(path, notices)
    assert "There is no sound copy of it" in notices[0]
    with closing(Conversations(path)) as kept:
        (summary,) = kept.summaries()
        assert (summary.title, summary.turns) == ("?", 6)


def test_a_damaged_copy_is_skipped(path: Path, user: Path) -> None:
    older = user.with_name("user-2020-01-01.sqlite")
    shutil.copy(copies(user)[0], older)
    with older.open("rb+") as file:
        file.seek(68)
        file.write(bytes(4))
    zero_pages(copies(user)[-1], "turns")
    user.write_bytes(b"no database")
    notices = Notices()
    assert not repair(path, notices)
    assert "Taken from the copy of 2020-01-01: 30 questions" in notices[0]


def test_without_a_copy_the_user_file_begins_anew(path: Path, user: Path) -> None:
    for copy in copies(user):
        copy.write_bytes(b"no database")
    user.write_bytes(b"neither")
    assert not repair(path, Notices())
    assert [aside.read_bytes() for aside in set_aside(user)] == [b"neither"]
    with closing(Library(path)) as library:
        assert QueryLog(library.database).counts().questions == 0
        QueryLog(library.database).add(ENTRY)


def test_a_damaged_file_is_neither_copied_nor_written(path: Path, user: Path) -> None:
    copies(user)[0].rename(user.with_name("user-2020-01-01.sqlite"))
    with closing(Library(path)) as library:
        zero_pages(user, "citations")
        before = _content(user)
        with pytest.raises(UserFileDamaged, match="its check finds faults"):
            QueryLog(library.database).add(ENTRY)
    assert _content(user) == before


def test_what_its_log_holds_is_brought_back(path: Path, user: Path) -> None:
    """After a kill, the newest rows are only in SQLite's write-ahead log."""
    with closing(Library(path)) as library:
        QueryLog(library.database).add(replace(ENTRY, question="Where is Nordwand?"))
        log, content = user.with_name("user.sqlite-wal").read_bytes(), user.read_bytes()
    stale = bytearray(log[32 : 32 + 24 + PAGE])  # a frame from before the log began anew
    stale[8:16] = b"12345678"
    for damaged in (content, bytes(PAGE) + content[PAGE:], b"x" * len(content)):
        with closing(Library(path)):
            pass
        user.with_name("user.sqlite-wal").write_bytes(log + bytes(stale))
        user.write_bytes(damaged)
        repair(path, Notices())
        with closing(Library(path)) as library:
            assert "Where is Nordwand?" in {entry.question for _, entry in QueryLog(library.database).entries()}


def test_many_repair_it_at_once_and_nothing_is_lost(path: Path, user: Path) -> None:
    zero_pages(user, "queries")
    at_once(4, lambda _: repair(path, Notices()))
    assert len(set_aside(user)) == 1
    assert len(_rows(user)["queries"]) == ALL


def test_an_open_library_notices_that_its_user_file_was_replaced(path: Path, user: Path) -> None:
    with closing(Library(path)) as server, closing(Conversations(path)) as kept:
        opened = server.identity()
        server.database.execute("PRAGMA user.wal_checkpoint(TRUNCATE)")
        user.write_bytes(b"no database")
        repair(path, Notices())
        assert server.identity() != opened
        assert [summary.turns for summary in kept.summaries()] == [3]


REPAIRING = """
import os, signal, sys
from pathlib import Path
from folio.store import user_file, user_repair
calls = []
def before(act):
    def counted(*args, **named):
        calls.append(args)
        if len(calls) == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return act(*args, **named)
    return counted
user_repair.replace, user_file.replace = before(user_repair.replace), before(user_file.replace)
user_repair.sync, user_file._link = before(user_repair.sync), before(user_file._link)
user_repair.repair(Path(sys.argv[1]), print)
"""


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_killed_repair_is_continued(path: Path, user: Path, nth: int) -> None:
    zero_pages(user, "queries")
    damaged = user.read_bytes()
    ran = subprocess.run([sys.executable, "-c", REPAIRING, str(path), str(nth)], cwd=ROOT, check=False)
    assert ran.returncode == -9
    assert not repair(path, Notices())
    assert [aside.read_bytes() for aside in set_aside(user)] == [damaged]
    assert len(_rows(user)["queries"]) == ALL
    assert not user.with_name("repair").exists()


def test_a_repair_that_has_no_room_takes_nothing_away(
    path: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.write_bytes(b"no database")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(user_repair, "sync", full)
        with pytest.raises(DiskFull):
            repair(path, Notices())
    assert (user.read_bytes(), set_aside(user)) == (b"no database", [])


def test_a_folder_that_cannot_be_written_with_a_damaged_file(path: Path, user: Path) -> None:
    user.write_bytes(b"no database")
    with read_only_tree(path.parent):
        with pytest.raises(UserFileDamaged):
            Library(path)
        assert set_aside(user) == []


def test_every_record_of_a_sound_file_is_read(user: Path) -> None:
    found: dict[str, int] = {}
    for row_id, values in sqlite_pages.records(user):
        table, _ = user_repair._recognised(row_id, values)
        found[table] = found.get(table, 0) + 1
    with closing(sqlite3.connect(user)) as opened:
        for table in NAMES["user"]:
            assert found.get(table, 0) == opened.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


@pytest.mark.parametrize("page_size", [512, 4096, 65_536])
def test_values_of_every_kind_and_length_are_read(tmp_path: Path, page_size: int) -> None:
    made, path = random.Random(page_size), tmp_path / "any.sqlite"
    numbers = (None, 0, 1, -1, 127, -128, 40_000, -(2**31), 2**40, -(2**60), 1.5, -2.25e300)
    pairs = {(f"{made.random()}{'x' * made.choice((0, 0, 900, 3000))}", str(number)) for number in range(900)}
    stored = {
        (number, made.choice(numbers), "é" * made.choice((0, 1, 50, 9000)), made.randbytes(made.choice((0, 5000))))
        for number in (*range(1, 600), 2**40, 2**62)
    }
    with closing(sqlite3.connect(path)) as opened, opened:
        opened.execute(f"PRAGMA page_size = {page_size}")
        opened.execute("CREATE TABLE pairs (one TEXT, other TEXT, PRIMARY KEY (one, other)) WITHOUT ROWID")
        opened.execute("CREATE TABLE stored (id INTEGER PRIMARY KEY, number, text, bytes)")
        opened.executemany("INSERT INTO pairs VALUES (?, ?)", pairs)
        opened.executemany("INSERT INTO stored VALUES (?, ?, ?, ?)", stored)
    found = list(sqlite_pages.records(path))
    assert {tuple(values) for row_id, values in found if row_id is None} == pairs
    assert {(row_id, *values[1:]) for row_id, values in found if row_id and len(values) == 4} == stored


@pytest.mark.parametrize("seed", range(40))
def test_bytes_of_any_kind_are_read_without_an_error(user: Path, seed: int) -> None:
    made, content = random.Random(seed), bytearray(user.read_bytes())
    for _ in range(200):
        content[made.randrange(len(content))] = made.randrange(256)
    user.write_bytes(bytes(content))
    for row_id, values in sqlite_pages.records(user):
        user_repair._recognised(row_id, values)
