"""What people said, in user.sqlite: copied once a day, restored from the newest sound copy, and forgotten for good."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from filelock import FileLock

from folio.errors import StoreDamaged, StoreError, UserFileDamaged
from folio.papers.metadata import simple_metadata
from folio.store import replacing, user_file
from folio.store.conversations import Conversations
from folio.store.database import LIBRARY_VERSION, TABLES, USER, USER_VERSION, added_since
from folio.store.library import Library
from folio.store.query_log import QueryLog
from folio.store.readings import readings, record_reading
from folio.store.user_file import before_change, copies, copy_changed, copy_now, set_aside
from folio.store.user_repair import repair
from folio.system.files import make_private
from tests.helpers.answers import ANSWER
from tests.helpers.damage import PAGE, at_once, flip, page_of, tamper, zero_pages
from tests.helpers.exhaustive import sample
from tests.helpers.libraries import ENTRY
from tests.helpers.paths import ROOT
from tests.helpers.permissions import read_only_tree
from tests.helpers.sqlite_faults import sqlite_faults
from tests.helpers.stores import TEXTS, Notices, Store

FIRST, LAST = date(2026, 3, 29), date(2026, 4, 2)


class Clock:
    """The day as user_file.py sees it."""

    def __init__(self, day: date = LAST) -> None:
        self.day = day

    def today(self) -> date:
        return self.day

    def go_on(self) -> None:
        self.day = date.fromordinal(self.day.toordinal() + 1)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of three papers with 20 questions from each of three days, and 20 of today."""
    made, clock = Store(tmp_path_factory.mktemp("pristine") / "store"), Clock(FIRST)
    for name, text in TEXTS.items():
        made.add(name, text)
    with pytest.MonkeyPatch.context() as patch, closing(made.library):
        patch.setattr(user_file, "date", clock)
        while clock.day != LAST:
            clock.go_on()
            for number in range(20):
                question = f"{number}? ({clock.day})"
                QueryLog(made.library.database).add(replace(ENTRY, question=question, answer="It is. " * 99))
    return made.folder


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(user_file, "date", made)
    monkeypatch.setattr(user_file, "_changed", set())
    return made


@pytest.fixture
def path(pristine: Path, tmp_path: Path, clock: Clock) -> Path:
    return shutil.copytree(pristine, tmp_path / "store") / "library.sqlite"


@pytest.fixture
def user(path: Path) -> Path:
    return user_file.user_file_of(path)


def _count(path: Path) -> int:
    """How many questions a file has."""
    with closing(sqlite3.connect(path)) as opened:
        return int(opened.execute("SELECT count(*) FROM queries").fetchone()[0])


def _days(path: Path) -> list[str]:
    return [copy.name for copy in copies(path)]


def _questions(path: Path, notices: Notices | None = None) -> int:
    """How many questions Folio finds there."""
    with closing(Library(path, notice=Notices() if notices is None else notices)) as library:
        assert len(library.papers()) == 3
        return QueryLog(library.database).counts().questions


def _holds(folder: Path, text: bytes) -> list[str]:
    return [part.name for part in folder.rglob("*") if part.is_file() and text in part.read_bytes()]


# Copies


def test_the_first_change_of_a_day_makes_a_copy(user: Path) -> None:
    assert _days(user) == ["user-2026-03-31.sqlite", "user-2026-04-01.sqlite", "user-2026-04-02.sqlite"]
    assert [_count(copy) for copy in copies(user)] == [20, 40, 60]
    assert _count(user) == 80


@pytest.mark.parametrize(
    "change",
    [
        lambda library: QueryLog(library.database).mark("good"),
        lambda library: library.set_metadata("0" * 64, "person", simple_metadata("Otters")),
        lambda library: library.set_metadata_of("bibliography", {"0" * 64: simple_metadata("Otters")}),
    ],
)
def test_any_change_makes_the_days_copy(
    path: Path, user: Path, clock: Clock, change: Callable[[Library], object]
) -> None:
    clock.go_on()
    with closing(Library(path)) as library:
        assert "user-2026-04-03.sqlite" not in _days(user)
        change(library)
        assert _days(user) == ["user-2026-04-01.sqlite", "user-2026-04-02.sqlite", "user-2026-04-03.sqlite"]
        made = copies(user)[-1].stat().st_mtime_ns
        change(library)
        assert copies(user)[-1].stat().st_mtime_ns == made


def test_reading_and_what_is_made_from_pdfs_make_no_copy(path: Path, user: Path, clock: Clock) -> None:
    before = _days(user)
    clock.go_on()
    with closing(Library(path)) as library, closing(Conversations(path)) as kept:
        library.set_fingerprint({"embedder": "other"})
        assert library.check() == []
        assert kept.summaries() == ()
    assert _days(user) == before


def test_a_turn_makes_the_days_copy(path: Path, user: Path, clock: Clock) -> None:
    clock.go_on()
    with closing(Conversations(path)) as kept:
        kept.add(kept.begin(), {}, ANSWER, ENTRY)
    assert _days(user)[-1] == "user-2026-04-03.sqlite"
    assert (_count(copies(user)[-1]), _count(user)) == (80, 81)


def test_copies_of_days_to_come_do_not_displace_todays(user: Path) -> None:
    for copy in copies(user):  # the clock was wrong
        copy.rename(copy.with_name(copy.name.replace("2026", "2062")))
    before_change(user, date(2026, 4, 3))
    assert _days(user) == ["user-2062-04-01.sqlite", "user-2062-04-02.sqlite", "user-2026-04-03.sqlite"]
    for day in (4, 5):
        before_change(user, date(2026, 4, day))
    assert _days(user) == [f"user-2026-04-0{day}.sqlite" for day in (3, 4, 5)]


def test_a_copy_of_a_wrong_day_wins_no_repair(path: Path, user: Path, clock: Clock) -> None:
    clock.day = date(2099, 1, 1)
    with closing(Library(path)) as library:
        QueryLog(library.database).add(ENTRY)
        clock.day = date(2026, 4, 3)
        for _ in range(9):
            QueryLog(library.database).add(ENTRY)
    copy_changed()
    assert _days(user)[-2:] == ["user-2099-01-01.sqlite", "user-2026-04-03.sqlite"]
    user.write_bytes(b"no database")
    notices = Notices()
    assert not repair(path, notices)
    assert "Taken from the copy of 2026-04-03: 90 questions." in notices[0]


def test_copies_of_an_earlier_folio_come_first(user: Path) -> None:
    for copy in copies(user):  # they have no number, and the clock was wrong
        with copy.open("rb+") as file:
            file.seek(68)
            file.write(bytes(4))
        copy.rename(copy.with_name(copy.name.replace("2026", "2062")))
    before_change(user, date(2026, 4, 3))
    assert _days(user) == ["user-2062-04-01.sqlite", "user-2062-04-02.sqlite", "user-2026-04-03.sqlite"]


def test_damaged_copies_have_no_number(user: Path) -> None:
    first, second, third = copies(user)
    first.write_bytes(b"\xff" * 9999)
    flip(second, 68, 0x80)
    before_change(user, date(2026, 4, 3))
    assert _days(user) == [second.name, third.name, "user-2026-04-03.sqlite"]


def test_a_days_changes_are_in_its_copy_when_the_command_has_ended(path: Path, user: Path, clock: Clock) -> None:
    clock.go_on()
    with closing(Library(path)) as library:
        QueryLog(library.database).add(ENTRY)
        assert _count(copies(user)[-1]) == 80
        QueryLog(library.database).mark("good")
    copy_changed()
    assert (_days(user)[-1], _count(copies(user)[-1])) == ("user-2026-04-03.sqlite", 81)
    made = copies(user)[-1].stat().st_mtime_ns
    with closing(Library(path)) as library:
        assert QueryLog(library.database).counts().good == 81
    copy_changed()  # nothing was changed
    assert copies(user)[-1].stat().st_mtime_ns == made


def test_other_files_are_no_copies(user: Path) -> None:
    others = [user.with_name(name) for name in ("user-notes.sqlite", "user-2026-4-2.sqlite", "user-2026-04-02.txt")]
    for other in others:
        other.write_bytes(b"not a copy")
    before = _days(user)
    before_change(user, date(2026, 4, 3))
    assert _days(user) == [*before[1:], "user-2026-04-03.sqlite"]
    assert [other.exists() for other in others] == [True, True, True]


def test_a_copy_is_a_database_of_its_own(user: Path) -> None:
    folder = sorted(path.name for path in user.parent.iterdir())
    copy = copies(user)[-1]
    assert user_file._is_usable(copy)
    assert sorted(path.name for path in user.parent.iterdir()) == folder  # no log beside it
    assert copy.stat().st_mode == user.stat().st_mode


def test_where_there_is_no_room_there_is_no_copy(path: Path, user: Path, clock: Clock) -> None:
    before = _days(user)
    clock.go_on()
    with sqlite_faults("space") as counted:
        copy_now(user)
    copies(user)[-1].unlink()
    for first in sample(range(counted.made), 10):
        with sqlite_faults("space", first, failing=10**6):
            before_change(user)
        assert _days(user) == before[1:]
        assert list(user.parent.glob("*.new*")) == []
    with closing(Library(path)) as library, FileLock(user.with_name("user.lock")):  # another process copies
        QueryLog(library.database).add(ENTRY)
    assert (_days(user), _count(user)) == (before[1:], 81)


KILLED = """
import os, signal, sys
from datetime import date
from pathlib import Path
from folio.store import user_file
kill = lambda *args: os.kill(os.getpid(), signal.SIGKILL)
setattr(user_file, sys.argv[2], kill)
user_file.copy_now(Path(sys.argv[1]), date(2026, 4, 3))
"""


@pytest.mark.parametrize("at", ["_write_copy", "sync", "replace"])
def test_a_kill_leaves_no_half_copy(path: Path, user: Path, clock: Clock, at: str) -> None:
    before = _days(user)
    ran = subprocess.run([sys.executable, "-c", KILLED, str(user), at], cwd=ROOT, check=False)
    assert ran.returncode == -9
    assert _days(user) == before
    assert user.with_name("user-2026-04-03.sqlite.new").exists() == (at != "_write_copy")
    user.write_bytes(b"")
    repair(path, Notices())
    assert _questions(path) == 60  # of the newest whole copy
    clock.go_on()
    with closing(Library(path)) as library:
        QueryLog(library.database).add(ENTRY)
    assert _days(user) == [*before[1:], "user-2026-04-03.sqlite"]
    assert list(user.parent.glob("*.new")) == []


# Damage


def _zero_the_schema(path: Path) -> None:
    with path.open("rb+") as file:
        file.seek(100)
        file.write(bytes(PAGE - 100))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "flipped header": lambda path: flip(path, 3, 0x40),
    "flipped page": lambda path: flip(path, page_of(path, "queries"), 0x10),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "a page of zeros": lambda path: zero_pages(path, "queries"),
    "the first page of zeros": _zero_the_schema,
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
    "truncated within a page": lambda path: os.truncate(path, path.stat().st_size - 1000),
    "a text": lambda path: path.write_bytes(b"This is a text and no database.\n" * 200),
}


# What is no damage


def test_another_program_that_has_it_locked_is_no_damage(
    path: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = user.read_bytes()
    with monkeypatch.context() as patch, closing(sqlite3.connect(user, isolation_level=None)) as other:
        patch.setattr(user_file, "_connect", lambda address: sqlite3.connect(address, uri=True, timeout=0.1))
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        other.execute("SELECT * FROM kept").fetchall()
        assert user_file.is_sound(user)
        other.execute("ROLLBACK")
    assert repair(path, Notices())
    assert (user.read_bytes(), set_aside(user)) == (content, [])
    assert _questions(path) == 80


@pytest.mark.parametrize("kind", ["read", "open", "space", "write"])
def test_a_disk_that_fails_is_no_damage(path: Path, user: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    def unreadable(_: Path) -> str:
        raise OSError(5, "Input/output error")

    def use() -> StoreError | None:
        try:
            with closing(Library(path)) as library:
                QueryLog(library.database).add(ENTRY)
                assert len(library.check()) == 0
        except StoreError as error:
            return error
        return None

    with sqlite_faults(kind) as counted:
        assert use() is None
    errors = []
    for first in sample(range(counted.made), 12):
        for failing in (1, 10**6):
            with monkeypatch.context() as patch, sqlite_faults(kind, first, failing):
                if kind == "read":
                    patch.setattr(user_file, "sha256_file", unreadable)
                errors.append(use())
            assert set_aside(user) == []
    assert any(errors)
    assert not any(isinstance(error, StoreDamaged) for error in errors)
    assert _count(user) > 80
    assert _questions(path) == _count(user)


# Apart from the library


def test_a_read_only_library_needs_no_user_file(path: Path, user: Path) -> None:
    for file in (user, *copies(user)):
        file.unlink()
    before = sorted(file.name for file in path.parent.iterdir())
    with read_only_tree(path.parent):
        with closing(Library(path)) as library, closing(Conversations(path)) as kept:
            assert (len(library.papers()), QueryLog(library.database).counts().questions) == (3, 0)
            assert library.check() == []
            assert not kept.are_stored
            id = kept.begin()
            kept.add(id, {}, ANSWER, None)
            assert [turn.place for turn in kept.turns(id)] == [1]
        assert sorted(file.name for file in path.parent.iterdir()) == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b"no database"),
        lambda path: zero_pages(path, "texts"),
        lambda path: os.truncate(path, path.stat().st_size // 2),
    ],
)
def test_a_damaged_library_leaves_it_as_it_is(path: Path, user: Path, damage: Callable[[Path], object]) -> None:
    content, notices = user.read_bytes(), Notices()
    damage(path)
    assert replacing.read_if_sound(path, replacing.sound_files, notices) is None
    assert (user.read_bytes(), set_aside(user), notices) == (content, [], [])
    new = path.with_name(replacing.UNFINISHED)
    Library(new, create=True).close()
    assert replacing.take_place(path, new) is not None
    with closing(Library(path)) as library:
        assert QueryLog(library.database).counts().questions == 80


@pytest.mark.parametrize("damage", ["a page of zeros", "truncated", "a text"])
def test_a_damaged_file_does_not_damage_the_library(path: Path, user: Path, damage: str) -> None:
    DAMAGE[damage](user)
    notices = Notices()
    for _ in range(2):
        with suppress(UserFileDamaged):
            files = replacing.read_if_sound(path, replacing.sound_files, notices)
            assert files is not None
            assert len(files) == 3
    assert (set_aside(path), set_aside(user), notices) == ([], [], [])


def test_a_changed_row_is_an_error_but_needs_no_rebuild(path: Path, user: Path) -> None:
    tamper(user, "UPDATE queries SET answer = 'It is not.' WHERE id = 7")
    with closing(Library(path)) as library:
        log = QueryLog(library.database)
        with pytest.raises(StoreDamaged, match="question 7 of the log has changed since it was written") as caught:
            log.entries()
        assert "--repair" in caught.value.remedy
        assert "--rebuild" not in caught.value.remedy
        assert log.entry(8) is not None
        assert len(library.check()) == 1
    assert replacing.read_if_sound(path, replacing.sound_files) is not None


def test_a_file_of_a_newer_version_is_left_alone(path: Path, user: Path) -> None:
    tamper(user, "UPDATE kept SET value = '99' WHERE key = 'version'", "PRAGMA user_version = 99")
    content = user.read_bytes()
    for open_it in (lambda: Library(path).close(), lambda: Conversations(path).summaries()):
        with pytest.raises(StoreError, match=r"user\.sqlite was written by a newer version of Folio") as caught:
            open_it()
        assert not isinstance(caught.value, StoreDamaged)
    assert user.read_bytes() == content


def to_first_version(user: Path) -> None:
    """Make the file one of the first version: without the tables that later versions added."""
    added = re.findall(r"CREATE TABLE (\w+)", added_since(1))
    drops = [f"DROP TABLE {table}" for table in reversed(added)]
    tamper(user, *drops, "UPDATE kept SET value = '1' WHERE key = 'version'", "PRAGMA user_version = 1")


def test_the_tables_of_a_new_file_are_those_of_an_updated_one() -> None:
    assert TABLES["user"] == USER + added_since(1)
    assert added_since(USER_VERSION) == ""


def test_a_file_of_an_older_version_gets_the_tables_that_it_lacks(path: Path, user: Path) -> None:
    to_first_version(user)
    at_once(4, lambda _: Library(path).close())
    with closing(Library(path)) as library:
        assert library.check() == []
        assert len(QueryLog(library.database).entries()) == 80
        assert library.database.query("SELECT count(*) FROM notes") == [(0,)]
        assert library.database.query("PRAGMA user.user_version") == [(USER_VERSION,)]
    assert user_file.is_sound(user)


def test_an_older_file_that_cannot_be_written_is_read(path: Path, user: Path) -> None:
    to_first_version(user)
    content = user.read_bytes()
    with read_only_tree(path.parent), closing(Library(path)) as library:
        assert library.is_read_only
        assert library.database.query("SELECT count(*) FROM notes") == [(0,)]
        assert len(QueryLog(library.database).entries()) == 80
    assert user.read_bytes() == content


def test_a_copy_of_an_older_version_is_restored_and_updated(path: Path, user: Path) -> None:
    for copy in copies(user):
        to_first_version(copy)
    user.write_bytes(b"no database")
    assert not repair(path, Notices())
    with closing(Library(path)) as library:
        assert len(QueryLog(library.database).entries()) == 60
        assert library.check() == []


def test_a_row_is_taken_from_a_copy_of_an_older_version(path: Path, user: Path) -> None:
    for copy in copies(user):
        to_first_version(copy)
    tamper(
        user,
        "UPDATE queries SET answer = 'It is not.' WHERE id = 7",
        "INSERT INTO notes VALUES ('n', '', 'Hm.', '', NULL, NULL, '2026-01-02', '2026-01-02', 1)",
    )
    lines: list[str] = []
    repair(path, lines.append)
    assert lines[0].endswith("that could not be read: 2. Taken from a copy of an earlier day: 1; lost: 1.")
    with closing(Library(path)) as library:
        assert library.check() == []


def test_a_changed_reading_is_restored_from_a_copy(path: Path, user: Path) -> None:
    with closing(Library(path)) as library:
        record_reading(library.database, "a" * 64, 3)
    user_file.copy_now(user)
    tamper(user, "UPDATE readings SET page = 0")
    with closing(Library(path)) as library:
        assert len(library.check()) == 1
    notices: list[str] = []
    repair(path, notices.append)
    assert "Taken from a copy of an earlier day: 1; lost: 0." in notices[0]
    with closing(Library(path)) as library:
        assert readings(library.database)["a" * 64].page == 3


def test_the_file_and_its_copies_are_private(path: Path, user: Path) -> None:
    make_private(path.parent)
    assert len(list(path.parent.glob("user*"))) == 5
    assert {file.stat().st_mode & 0o077 for file in (path.parent, *path.parent.iterdir())} == {0}


def test_papers_and_what_people_said_are_in_two_files(path: Path, user: Path) -> None:
    with closing(sqlite3.connect(path)) as library, closing(sqlite3.connect(user)) as said:
        tables = [
            {name for (name,) in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            for opened in (library, said)
        ]
        assert library.execute("PRAGMA user_version").fetchone() == (LIBRARY_VERSION,)
    assert "papers" in tables[0]
    assert "queries" in tables[1]
    assert tables[0].isdisjoint(tables[1])


# Forgetting


@pytest.fixture
def private(path: Path, clock: Clock) -> Iterator[tuple[Path, str]]:
    """A library with private words in the log, in a conversation, in copies of two days and in a log of SQLite's."""
    with closing(Conversations(path)) as kept, closing(Library(path)) as library:
        id, other = kept.begin(), kept.begin()
        entry = replace(ENTRY, question="Is the merger with Nordwand private?", answer="Nordwand " * 2000)
        for _ in range(3):
            clock.go_on()
            for _ in range(5):
                kept.add(id, {"answer": "Nordwand " * 2000}, ANSWER, entry)
            kept.add(other, {"answer": "Eiger"}, ANSWER, replace(ENTRY, question="Eiger?"))
        path.with_name("user-2026-04-09.sqlite.new").write_bytes(b"Nordwand" * 999)  # of a copy that was killed
        library.database.execute("PRAGMA user.secure_delete = OFF")  # as some builds of SQLite have it
        yield path, id


def test_a_deleted_conversation_is_in_no_file(private: tuple[Path, str], user: Path, clock: Clock) -> None:
    path, id = private
    assert len(_holds(path.parent, b"Nordwand")) > 3
    with closing(Conversations(path)) as kept:
        kept.remove(id)
        assert _holds(path.parent, b"Nordwand") == []
        assert [summary.turns for summary in kept.summaries()] == [3]
    assert _days(user) == [f"user-{clock.day}.sqlite"]  # what is left is copied at once
    assert (_count(copies(user)[0]), _count(user)) == (83, 83)


def test_a_copy_that_another_process_was_making_is_deleted_too(private: tuple[Path, str], user: Path) -> None:
    path, id = private
    old = copies(user)[-1].read_bytes()
    lock, made = FileLock(user.with_name("user.lock")), threading.Event()

    def copy() -> None:
        with lock:
            made.set()
            time.sleep(0.3)
            user.with_name("user-2026-04-20.sqlite").write_bytes(old)

    other = threading.Thread(target=copy)
    other.start()
    made.wait()
    with closing(Conversations(path)) as kept:
        kept.remove(id)
    other.join()
    assert _holds(path.parent, b"Nordwand") == []


def test_a_deleted_log_is_in_no_file(private: tuple[Path, str], user: Path) -> None:
    path, id = private
    with closing(Conversations(path)) as kept:
        kept.remove(id)
    with closing(Library(path)) as library:
        QueryLog(library.database).add(replace(ENTRY, question="And Nordwand?"))
        assert QueryLog(library.database).clear() == 84
    assert _holds(path.parent, b"Nordwand") == []
    assert _count(copies(user)[0]) == 0


def test_all_conversations_are_in_no_file(private: tuple[Path, str], user: Path) -> None:
    path, _ = private
    with closing(Library(path)) as library:
        QueryLog(library.database).clear()
    with closing(Conversations(path)) as kept:
        assert kept.clear() == 2
    assert _holds(path.parent, b"Nordwand") == []
    with closing(Library(path)) as library:
        assert library.check() == []
