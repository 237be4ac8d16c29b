"""A library of any earlier release is opened: what people made is kept, and the papers are read again."""

from __future__ import annotations

import gzip
import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from folio.errors import DiskFull, StoreBusy, StoreDamaged, StoreError, StoreMismatch
from folio.store import sqlite
from folio.store.conversations import Conversations
from folio.store.database import LIBRARY_VERSION, USER_VERSION
from folio.store.library import Library
from folio.store.query_log import QueryLog
from folio.store.user_file import copies, user_file_of
from tests.helpers.answers import ANSWER
from tests.helpers.damage import at_once, tamper, zero_pages
from tests.helpers.exhaustive import sample
from tests.helpers.fakes import HashingApp, HashingEmbedder, hashing_app
from tests.helpers.forks import forks_of
from tests.helpers.paths import ROOT
from tests.helpers.permissions import read_only, read_only_tree
from tests.helpers.sqlite_faults import sqlite_faults
from tests.helpers.stores import Notices

# Made by the code of the releases, as a person would: 0.3.0 (format 4), 0.4.0 (format 16 and user.sqlite of version 1),
# and one between them (format 14) have the papers beside them, five questions, three of them in a conversation,
# two ratings and, but for 0.3.0, an edit. Format 15 also has works, citations and a notice.
STORES = ROOT / "tests" / "data" / "stores"
FORMATS = {"0.3.0": 4, "format-14": 14, "format-15": 15}
# Table -> its columns in an old library, and in user.sqlite
SAID = {
    "queries": ("id, asked, question, standalone_question, chunks, answer, sources, timings_ms, model, feedback",) * 2,
    "conversations": ("id, title, begun, updated",) * 2,
    "turns": ("id, conversation, place, asked, reply, memory, query",) * 2,
    "metadata": ("paper, source, fields, updated",) * 2,
    "works": ("id, version_of, said",) * 2,
    "work_marks": ("mark, work",) * 2,
    "citations": ("rowid, citing, cited, source, said_at", "place, citing, cited, source, said_at"),
    "paper_works": ("paper, work, found_by, score",) * 2,
    "notices": ("work, kind, dated, link, source, said_at",) * 2,
}  # fmt: skip
Rows = dict[str, list[tuple[Any, ...]]]


def unpacked(release: str, folder: Path) -> Path:
    """The library of a release in a new folder; returns its path."""
    folder.mkdir(parents=True)
    for packed in (STORES / release).iterdir():
        (folder / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
    return folder / "library.sqlite"


@pytest.fixture(params=FORMATS)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def path(release: str, tmp_path: Path) -> Path:
    return unpacked(release, tmp_path / "store")


@pytest.fixture
def newest(tmp_path: Path) -> Path:
    """A library of the last of the earlier formats."""
    return unpacked("format-15", tmp_path / "store")


def _query(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as opened:
        return opened.execute(sql).fetchall()


def _said(path: Path, *, old: bool) -> Rows:
    """What people and services said, in a library of an earlier format or in user.sqlite."""
    tables = {name for (name,) in _query(path, "SELECT name FROM sqlite_master")}
    only = {"metadata": "WHERE source != 'pdf'"} if old else {}
    return {
        table: sorted(_query(path, f"SELECT {columns[not old]} FROM {table} {only.get(table, '')}"), key=repr)
        if table in tables
        else []
        for table, columns in SAID.items()
    }


def _version(path: Path) -> int:
    return int(_query(path, "PRAGMA user_version")[0][0])


def _aside(path: Path) -> Path:
    (aside,) = path.parent.glob("library.format-*.sqlite")
    return aside


def _assert_taken_over(path: Path, said: Rows, old: bytes) -> None:
    assert _version(path) == LIBRARY_VERSION
    assert _said(user_file_of(path), old=False) == said
    assert _said(copies(user_file_of(path))[-1], old=False) == said
    assert _aside(path).read_bytes() == old
    assert not path.with_name("takeover").exists()
    with closing(Library(path)) as library:
        assert library.check() == []
        assert library.papers() == []


# All that people made


def test_all_that_people_made_is_kept_and_one_line_says_so(path: Path, release: str) -> None:
    said, old, notices = _said(path, old=True), path.read_bytes(), Notices()
    assert said["queries"]
    assert said["turns"]
    assert bool(said["metadata"]) == (release != "0.3.0")
    with closing(Library(path, notice=notices)) as library:
        assert {file.name for file in library.files_before()} >= {"otters.pdf"}
    _assert_taken_over(path, said, old)
    (line,) = notices
    assert line.startswith(f"The library was made by an earlier Folio (format {FORMATS[release]}). Kept from it: ")
    assert f"{len(said['queries'])} questions, 1 conversation" in line
    assert "must be read again: run `python ingest.py --rebuild`." in line
    assert f"The old file is now library.format-{FORMATS[release]}.sqlite;" in line
    Library(path, notice=notices).close()
    assert len(notices) == 1


@pytest.mark.parametrize("release", [*FORMATS, "0.4.0"])
def test_ratings_answers_and_conversations_can_be_used(path: Path, release: str) -> None:
    with closing(Library(path)) as library, closing(Conversations(path)) as kept:
        entries = QueryLog(library.database).entries()
        assert {entry.feedback for _, entry in entries} >= {"good"}
        assert all(entry.answer for _, entry in entries)
        (summary,) = kept.summaries()
        turns = kept.turns(summary.id, library)
        assert [turn.place for turn in turns] == list(range(1, summary.turns + 1))
        assert all(turn.reply for turn in turns)
        assert kept.add(summary.id, {"turn": summary.turns + 1}, ANSWER, None) == summary.turns + 1
        assert library.check() == []


@pytest.mark.parametrize("release", [*FORMATS, "0.4.0"])
def test_every_command_opens_it_and_a_rebuild_reads_the_papers_again(path: Path, release: str) -> None:
    folder = path.parents[1]
    shutil.copytree(STORES / "papers", folder / "papers")
    notices = Notices()
    app = HashingApp(hashing_app(folder).settings, notices, HashingEmbedder())
    tamper(path, f"UPDATE files SET path = '{folder}' || path")
    tamper(path, "UPDATE files SET path = replace(path, 'papers/glaciers', 'papers/alps/glaciers')")
    before = {file.name: file.read_bytes() for file in path.parent.glob("*.sqlite")}
    if release == "0.4.0":
        app.verify()
    else:
        with pytest.raises(StoreMismatch, match="must be read again") as caught:
            app.verify()
        assert "--rebuild" in caught.value.remedy
    assert {file.name: file.read_bytes() for file in path.parent.glob("*.sqlite")} == before
    with pytest.raises(StoreMismatch) as caught:
        app.run()
    assert "--rebuild" in caught.value.remedy
    app.repair()
    app.run(rebuild=True)
    assert app.verify() == []
    with closing(app.open_library()) as library:
        assert {paper.file for paper in library.papers()} >= {"otters.pdf"}
        assert QueryLog(library.database).counts().questions >= 3
        assert library.files_before() == []
        if release in ("format-14", "0.4.0"):
            assert [(paper.title, paper.year) for paper in library.papers() if paper.file == "otters.pdf"] == [
                ("Otters Asleep", 1999)
            ]
    assert _version(user_file_of(path)) == USER_VERSION


def test_papers_outside_the_folder_are_read_again(newest: Path) -> None:
    app = hashing_app(newest.parents[1])
    with closing(Library(newest)) as library:
        known = {Path(file.path): file for file in library.files_before()}
    assert len(known) == 4
    assert app.known_files() == known
    assert app.known_files(thorough=True) == known


def test_the_mode_of_the_file_is_kept(path: Path) -> None:
    path.chmod(0o600)
    Library(path).close()
    assert {file.stat().st_mode & 0o777 for file in (path, user_file_of(path), *copies(user_file_of(path)))} == {0o600}


# Kills, and others at the same time


def test_a_kill_leaves_the_old_library_or_the_new_one(newest: Path, tmp_path: Path) -> None:
    said, old = _said(newest, old=True), newest.read_bytes()

    def killed(step: int) -> Path:
        folder = shutil.copytree(newest.parent, tmp_path / "killed" / str(step))
        code, out = forks_of("tests.helpers.kill_steps").run("takeover", folder, step)
        assert code == (-signal.SIGKILL if step else 0), out
        return folder

    names = json.loads((killed(0) / "steps.json").read_text())
    # Rows of one table are much alike: the first of them, and every step that is none
    steps = [step for step, name in enumerate(names, 1) if step == 1 or name != names[step - 2]]
    for step in sorted({*sample(steps, 24), *steps[-3:]}):
        own = killed(step) / "library.sqlite"
        Library(own).close()
        _assert_taken_over(own, said, old)


def test_many_open_it_at_once(path: Path) -> None:
    said, old, notices = _said(path, old=True), path.read_bytes(), Notices()

    def look(number: int) -> None:
        if number % 3:
            with closing(Library(path, notice=notices)) as library:
                assert QueryLog(library.database).counts().questions == len(said["queries"])
        else:
            with closing(Conversations(path)) as kept:
                assert len(kept.summaries()) in (0, 1)

    at_once(6, look)
    _assert_taken_over(path, said, old)
    assert len(notices) == 1


def test_two_processes_open_it_at_once(newest: Path) -> None:
    said, old = _said(newest, old=True), newest.read_bytes()
    code = "import sys; from pathlib import Path; from folio.store.library import Library; Library(Path(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(newest)]
    processes = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE) for _ in range(3)]
    assert [process.communicate()[1] for process in processes] == [b""] * 3
    _assert_taken_over(newest, said, old)


def test_a_program_of_an_earlier_release_is_not_cut_off(newest: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = _said(newest, old=True)
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_S", 0.1)
    with closing(sqlite3.connect(newest, isolation_level=None)) as server:
        for statements in (
            ("BEGIN", "SELECT count(*) FROM papers"),
            ("BEGIN IMMEDIATE", "INSERT INTO meta VALUES ('x', '')"),
        ):
            for statement in statements:
                server.execute(statement).fetchall()
            if statements[0] == "BEGIN":
                tamper(newest, "INSERT INTO meta VALUES ('x', '')", "DELETE FROM meta WHERE key = 'x'")
            with pytest.raises(StoreBusy):
                Library(newest)
            server.execute("ROLLBACK")
            assert _version(newest) == 15
    Library(newest).close()
    assert _said(user_file_of(newest), old=False) == said


# Where it cannot be done


def test_a_folder_that_cannot_be_written(path: Path) -> None:
    before = path.read_bytes()
    with read_only_tree(path.parent):
        with pytest.raises(StoreMismatch, match="cannot be updated: its folder cannot be written") as caught:
            Library(path)
        assert "Make its folder and every file in it writable" in caught.value.remedy
        assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == before


def test_a_file_that_cannot_be_written(newest: Path) -> None:
    with read_only(newest), pytest.raises(StoreError, match="cannot be used now"):
        Library(newest)
    assert _version(newest) == 15


def _error_of_opening(path: Path) -> StoreError | None:
    try:
        Library(path).close()
    except StoreError as error:
        return error
    return None


@pytest.mark.parametrize("kind", ["space", "write", "read"])
def test_a_full_or_failing_disk_leaves_the_old_library(newest: Path, kind: str) -> None:
    said, old = _said(newest, old=True), newest.read_bytes()
    with sqlite_faults(kind) as counted:
        Library(newest).close()
    errors: list[StoreError] = []
    for first in sample(range(counted.made), 40):
        shutil.rmtree(newest.parent)
        newest.parent.mkdir()
        newest.write_bytes(old)
        with sqlite_faults(kind, first, failing=10**6):
            error = _error_of_opening(newest)
        errors += [] if error is None else [error]
        assert _error_of_opening(newest) is None
        _assert_taken_over(newest, said, old)
    assert len(errors) > 1
    assert kind != "space" or DiskFull in map(type, errors)


@pytest.mark.parametrize("version", [3, 15])
def test_a_library_with_a_false_older_version_is_damaged(newest: Path, version: int) -> None:
    Library(newest).close()
    said = _said(user_file_of(newest), old=False)
    tamper(newest, f"PRAGMA user_version = {version}")
    with pytest.raises(StoreDamaged, match=f"its version is said to be {version}, but its tables are those of"):
        Library(newest)
    assert _said(user_file_of(newest), old=False) == said


def test_a_newer_library_is_refused(newest: Path) -> None:
    tamper(newest, "PRAGMA user_version = 99")
    before = newest.read_bytes()
    with pytest.raises(StoreMismatch, match="newer version of Folio"):
        Library(newest)
    assert newest.read_bytes() == before


# Damage


Damage = str | tuple[str, ...]  # a statement, or tables whose first page is zeros


def _do(path: Path, damage: Damage) -> None:
    if isinstance(damage, str):
        tamper(path, damage)
    else:
        zero_pages(path, *damage)


@pytest.mark.parametrize(
    "damage",
    [
        ("papers",),
        ("vectors",),
        ("files",),
        ("meta",),
        "UPDATE papers SET text = replace(text, 'otter', 'other')",
        "DELETE FROM paper_digests",
        "DROP TABLE vectors",
        "DROP TABLE files",
    ],
)
def test_what_people_said_is_kept_where_papers_are_damaged(newest: Path, damage: Damage) -> None:
    said = _said(newest, old=True)
    _do(newest, damage)
    old = newest.read_bytes()
    Library(newest).close()
    _assert_taken_over(newest, said, old)


@pytest.mark.parametrize(
    ("damage", "lost"),
    [
        (("queries",), {"queries": 3}),
        (("turns",), {"turns": 2}),
        (("works", "notices"), {"works": 2, "notices": 1}),
        ("UPDATE queries SET answer = 'It is 24 km.' WHERE id = 2", {"queries": 1}),
        ("UPDATE turns SET reply = '{}' WHERE place = 2", {"turns": 1}),
        ("UPDATE metadata SET fields = '{' WHERE source = 'person'", {"metadata": 1}),
        ("UPDATE works SET said = CAST(x'ff' AS TEXT) WHERE rowid = 2", {"works": 1}),
        ("DROP TABLE turns", {"turns": 2}),
    ],
)
def test_all_readable_rows_of_what_people_said_are_kept(
    newest: Path, damage: Damage, lost: dict[str, int]
) -> None:
    said, notices = _said(newest, old=True), Notices()
    _do(newest, damage)
    Library(newest, notice=notices).close()
    kept = _said(user_file_of(newest), old=False)
    found = {table: len(said[table]) - len(kept[table]) for table in said if said[table] != kept[table]}
    assert found in (lost, {**lost, "turns": 0})  # turns that no longer name their question
    assert "(rows that could not be read: " in notices[0]


def test_what_was_said_since_is_not_overwritten(newest: Path) -> None:
    old = newest.read_bytes()
    with closing(Library(newest)) as library:
        QueryLog(library.database).mark_row(2, "bad")
        library.set_metadata("1" * 64, "person", library.metadata_layers("0" * 64)["bibliography"])
    said = _said(user_file_of(newest), old=False)
    newest.write_bytes(old)  # a backup is put back
    Library(newest).close()
    assert _said(user_file_of(newest), old=False) == said
    assert _version(newest) == LIBRARY_VERSION
