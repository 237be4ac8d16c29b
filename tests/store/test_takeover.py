"""A library of the release before is taken over once: all of it, or it stays where it was."""

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

import numpy as np
import pytest

from folio.errors import DiskFull, StoreBusy, StoreDamaged, StoreError, StoreMismatch
from folio.ingest import rebuild
from folio.store import sqlite, works
from folio.store.conversations import Conversations
from folio.store.database import LIBRARY_VERSION
from folio.store.library import Library
from folio.store.query_log import QueryLog
from folio.store.rows import row_digest, text_hash
from folio.store.user_file import copies, user_file_of
from tests.helpers.answers import ANSWER
from tests.helpers.damage import at_once, tamper, zero_pages
from tests.helpers.exhaustive import sample
from tests.helpers.forks import forks_of
from tests.helpers.paths import ROOT
from tests.helpers.permissions import read_only, read_only_tree
from tests.helpers.sqlite_faults import sqlite_faults

# Made by the code of the release before: 3 papers in 4 files, a file that could not be read, a log of 3 questions, a
# conversation of 2 turns, works, citations, a notice, and what people and services said of papers
OLD = ROOT / "tests" / "data" / "library-15.sqlite.gz"
# Table -> what it had, and what it has; a paper's row is looked at apart
SAID = {
    "queries": ("id, asked, question, standalone_question, chunks, answer, sources, timings_ms, model, feedback,"
                " confidence, trace",) * 2,
    "conversations": ("id, title, begun, updated",) * 2,
    "turns": ("id, conversation, place, asked, reply, memory, query",) * 2,
    "metadata": ("paper, source, fields, updated",) * 2,
    "works": ("id, version_of, said",) * 2,
    "work_marks": ("mark, work",) * 2,
    "citations": ("rowid, citing, cited, source, said_at", "place, citing, cited, source, said_at"),
    "paper_works": ("paper, work, found_by, score",) * 2,
    "notices": ("work, kind, dated, link, source, said_at",) * 2,
}  # fmt: skip
MADE = {
    "files": ("rowid, path, name, paper", "place, path, name, paper"),
    "failures": ("path, name, sha256, happened, remedy",) * 2,
    "chunks": ('id, paper, start, "end", lower(hex(text_hash)), generation, parent',
               'id, paper, start, "end", text_hash, generation, parent'),
    "vectors": ("chunk, data",) * 2,
    "removed": ("chunk, generation",) * 2,
    "paper_vectors": ("paper, lower(hex(text_hash)), data", "paper, text_hash, data"),
}  # fmt: skip
PAPERS = (
    "SELECT id, length, starts, labels, problems, added, generation, text FROM papers",
    "SELECT id, length, starts, labels, problems, added, generation, text FROM papers JOIN texts ON paper = id",
)
META = "SELECT key, value FROM meta WHERE key != 'version'"
Rows = dict[str, list[tuple[Any, ...]]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A library of the release before."""
    path = tmp_path / "store" / "library.sqlite"
    path.parent.mkdir()
    path.write_bytes(gzip.decompress(OLD.read_bytes()))
    return path


def _query(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as opened:
        return opened.execute(sql).fetchall()


def _said(path: Path, *, old: bool) -> Rows:
    """What people and services said, in a library of the release before or in user.sqlite."""
    only = {"metadata": "WHERE source != 'pdf'"} if old else {}
    return {
        table: sorted(_query(path, f"SELECT {columns[not old]} FROM {table} {only.get(table, '')}"), key=repr)
        for table, columns in SAID.items()
    }


def _made(path: Path, *, old: bool) -> Rows:
    """What was made from the PDFs."""
    found = {table: _query(path, f"SELECT {columns[not old]} FROM {table}") for table, columns in MADE.items()}
    found |= {"papers": _query(path, PAPERS[not old]), "meta": _query(path, META)}
    return {table: sorted(rows, key=repr) for table, rows in found.items()}


def _version(path: Path) -> int:
    return int(_query(path, "PRAGMA user_version")[0][0])


def _assert_taken_over(path: Path, said: Rows, made: Rows) -> None:
    assert _version(path) == LIBRARY_VERSION
    assert _said(user_file_of(path), old=False) == said
    assert _made(path, old=False) == made
    with closing(Library(path)) as library:
        assert library.check() == []


# All of it


def test_every_row_is_taken_over(path: Path) -> None:
    said, made = _said(path, old=True), _made(path, old=True)
    assert all(said.values())
    assert all(made.values())
    Library(path).close()
    _assert_taken_over(path, said, made)
    assert not path.with_name("takeover").exists()
    (day,) = copies(user_file_of(path))
    assert _said(day, old=False) == said


def test_papers_are_as_they_were(path: Path) -> None:
    with closing(Library(path)) as library:
        papers = {paper.file: paper for paper in library.papers()}
        assert {file: (paper.title, paper.year, paper.chunks) for file, paper in papers.items()} == {
            "a copy.pdf": ("Somewhere", 1999, 1),
            "alps/glaciers.pdf": ("The Aletsch Glacier", None, 7),
            "otters.pdf": ("Otters Asleep", 2021, 5),
        }
        assert papers["alps/glaciers.pdf"].label == "“The Aletsch Glacier”"
        assert papers["otters.pdf"].authors == ("Ada Byte",)
        assert [file.name for file in library.files()] == [
            "a copy.pdf", "alps/glaciers.pdf", "otters.pdf", "bees.pdf"
        ]  # fmt: skip
        assert [failure.happened for failure in library.failures()] == ["The file is not a PDF."]
        glaciers = papers["alps/glaciers.pdf"]
        assert library.text(glaciers.id, 0, 55) == "The Aletsch glacier is the largest glacier of the Alps."
        assert {
            source: layer.title.value for source, layer in library.metadata_layers(papers["otters.pdf"].id).items()
        } == {
            "pdf": "On Sea Otters",
            "person": "Otters Asleep",
        }
        assert library.metadata_layers("0" * 64)["bibliography"].title.value == "Not here"
        assert library.paper_vectors().keys() == {paper.id for paper in papers.values()}
        with library.reading() as stamp:
            assert (stamp.epoch, stamp.generation) == ("f2127694a3de4766b7092b2e327ced8a", 6)
        assert library.fingerprint()["embedder"] == "hashing"
        ids = library.chunk_ids_of([glaciers.id])
        assert np.linalg.norm(library.vectors_of(ids), axis=1) == pytest.approx(np.ones(7))
        ((kept, *_),) = (works.of_papers(library.database, [papers["otters.pdf"].id]).values(),)
        assert kept.found_by == "doi"


def test_the_log_and_the_conversation_are_as_they_were(path: Path) -> None:
    with closing(Library(path)) as library, closing(Conversations(path)) as kept:
        log = QueryLog(library.database)
        assert [(row, entry.question, entry.feedback, entry.confidence) for row, entry in log.entries()] == [
            (3, "How long is the Aletsch glacier?", "good", 0.5),
            (2, "Why?", "", None),
            (1, "How long is the Aletsch glacier?", "good", 0.5),
        ]
        (summary,) = kept.summaries()
        assert (summary.title, summary.turns) == ("How long is the Aletsch glacier?", 2)
        turns = kept.turns(summary.id, library)
        assert [(turn.place, turn.reply["turn"], turn.reply.get("feedback")) for turn in turns] == [
            (1, 1, None), (2, 2, "bad")
        ]  # fmt: skip
        assert [turn.query for turn in turns] == [3, None]
        assert kept.add(summary.id, {"turn": 3}, ANSWER, None) == 3


def _with_more(path: Path) -> None:
    """Give a library sections, and fine passages whose ids come before those of their passages (INDEX=dual)."""
    with closing(sqlite3.connect(path, isolation_level=None)) as old:
        paper, crc = old.execute("SELECT paper, text FROM paper_digests ORDER BY paper DESC").fetchone()
        sections = [[0, 90, 1, "2", "Fur", "methods"], [20, 60, 2, "", "Rafts", "other"]]
        old.executemany("INSERT INTO sections VALUES (?, ?, ?, ?, ?, ?, ?)", [(paper, *each) for each in sections])
        digest = row_digest("sections", paper, crc, sections)
        old.execute("UPDATE paper_digests SET sections = ? WHERE paper = ?", (digest, paper))
        (parent, text) = old.execute(
            "SELECT c.id, p.text FROM chunks c JOIN papers p ON p.id = paper WHERE paper = ? AND start = 0", (paper,)
        ).fetchone()
        for id, start, end in ((1, 0, 10), (2, 10, 20)):
            written = bytes.fromhex(text_hash(text[start:end]))
            digest = row_digest("chunks", id, paper, start, end, written.hex().upper(), parent)
            values = (id, paper, start, end, written, 5, parent, digest)
            old.execute("INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
            old.execute("INSERT INTO vectors SELECT ?, data FROM vectors WHERE chunk = ?", (id, parent))
        old.execute("UPDATE meta SET value = '2' WHERE key = 'fine'")


def test_sections_and_fine_passages_are_taken_over(path: Path) -> None:
    _with_more(path)
    said, made = _said(path, old=True), _made(path, old=True)
    Library(path).close()
    _assert_taken_over(path, said, made)
    with closing(Library(path)) as library:
        paper = library.papers()[-1]
        assert [(section.number, section.title) for section in paper.sections.sections] == [("2", "Fur"), ("", "Rafts")]
        assert (paper.chunks, library.chunk_count("fine")) == (5, 2)
        ((fine,)) = [found for found in library.fine_in(library.chunk_ids_of([paper.id])).values() if found]
        assert [chunk.id for chunk in fine] == [1, 2]


def test_vectors_of_folio_0_3_get_a_checksum(path: Path) -> None:
    made = _made(path, old=True)
    for table in ("vectors", "paper_vectors"):
        tamper(path, f"UPDATE {table} SET data = substr(data, 1, 256)")
    Library(path).close()
    assert _made(path, old=False) == made


def test_the_mode_of_the_file_is_kept(path: Path) -> None:
    path.chmod(0o600)
    Library(path).close()
    assert {file.stat().st_mode & 0o777 for file in (path, user_file_of(path), *copies(user_file_of(path)))} == {0o600}


# Kills, and others at the same time


def test_a_kill_leaves_the_old_library_or_the_new_one(path: Path, tmp_path: Path) -> None:
    said, made = _said(path, old=True), _made(path, old=True)

    def killed(step: int) -> Path:
        folder = shutil.copytree(path.parent, tmp_path / "killed" / str(step))
        code, out = forks_of("tests.helpers.kill_steps").run("takeover", folder, step)
        assert code == (-signal.SIGKILL if step else 0), out
        return folder

    names = json.loads((killed(0) / "steps.json").read_text())
    # Rows of one table are much alike: the first of them, and every step that is none
    steps = [step for step, name in enumerate(names, 1) if step == 1 or name != names[step - 2]]
    for step in sorted({*sample(steps, 24), *steps[-3:]}):
        own = killed(step) / "library.sqlite"
        if _version(own) == sqlite.OLD_VERSION:
            assert (_said(own, old=True), _made(own, old=True)) == (said, made)
        Library(own).close()
        _assert_taken_over(own, said, made)
        assert _said(copies(user_file_of(own))[-1], old=False) == said


def test_many_open_it_at_once(path: Path) -> None:
    said, made = _said(path, old=True), _made(path, old=True)

    def look(number: int) -> None:
        if number % 3:
            with closing(Library(path)) as library:
                assert len(library.papers()) == 3
                assert QueryLog(library.database).counts().questions == 3
        else:
            with closing(Conversations(path)) as kept:
                assert len(kept.summaries()) in (0, 1)

    at_once(6, look)
    _assert_taken_over(path, said, made)


def test_two_processes_open_it_at_once(path: Path) -> None:
    said, made = _said(path, old=True), _made(path, old=True)
    code = "import sys; from pathlib import Path; from folio.store.library import Library; Library(Path(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(path)]
    processes = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE) for _ in range(3)]
    assert [process.communicate()[1] for process in processes] == [b""] * 3
    _assert_taken_over(path, said, made)


def test_conversations_that_were_open_before_have_all(path: Path) -> None:
    with closing(Conversations(path)) as kept:
        assert kept.summaries() == ()
        Library(path).close()
        assert len(kept.summaries()) == 1


def test_a_program_of_the_previous_release_is_not_cut_off(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said, made = _said(path, old=True), _made(path, old=True)
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_S", 0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as server:
        for statements in (
            ("BEGIN", "SELECT count(*) FROM papers"),
            ("BEGIN IMMEDIATE", "INSERT INTO meta VALUES ('x', '')"),
        ):
            for statement in statements:
                server.execute(statement).fetchall()
            if statements[0] == "BEGIN":
                tamper(path, "INSERT INTO meta VALUES ('x', '')", "DELETE FROM meta WHERE key = 'x'")
            with pytest.raises(StoreBusy):
                Library(path)
            server.execute("ROLLBACK")
            assert (_version(path), _made(path, old=True)) == (sqlite.OLD_VERSION, made)
    Library(path).close()
    _assert_taken_over(path, said, made)


# Where it cannot be done


def test_a_folder_that_cannot_be_written(path: Path) -> None:
    before = path.read_bytes()
    with read_only_tree(path.parent):
        with pytest.raises(StoreMismatch, match="cannot be updated: its folder cannot be written") as caught:
            Library(path)
        assert "Make its folder and every file in it writable" in caught.value.remedy
        assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == before


def test_a_file_that_cannot_be_written(path: Path) -> None:
    made = _made(path, old=True)
    with read_only(path), pytest.raises(StoreError, match="cannot be used now"):
        Library(path)
    assert (_version(path), _made(path, old=True)) == (sqlite.OLD_VERSION, made)


def _error_of_opening(path: Path) -> StoreError | None:
    try:
        Library(path).close()
    except StoreError as error:
        return error
    return None


@pytest.mark.parametrize("kind", ["space", "write", "read"])
def test_a_full_or_failing_disk_leaves_the_old_library(path: Path, kind: str) -> None:
    said, made, old = _said(path, old=True), _made(path, old=True), path.read_bytes()
    with sqlite_faults(kind) as counted:
        Library(path).close()
    errors: list[StoreError] = []
    for first in sample(range(counted.made), 60):
        shutil.rmtree(path.parent)
        path.parent.mkdir()
        path.write_bytes(old)
        with sqlite_faults(kind, first, failing=10**6):
            error = _error_of_opening(path)
        errors += [] if error is None else [error]
        if _version(path) == sqlite.OLD_VERSION:
            assert (_said(path, old=True), _made(path, old=True)) == (said, made)
            assert not path.with_name("takeover").exists()
        assert _error_of_opening(path) is None
        _assert_taken_over(path, said, made)
    assert len(errors) > 1
    assert kind != "space" or DiskFull in map(type, errors)
    # SQLite itself takes a page of the schema that it did not get for a damaged one.
    assert kind == "read" or StoreDamaged not in map(type, errors)


@pytest.mark.parametrize("version", [1, 14])
def test_an_older_library_is_refused_and_unchanged(path: Path, version: int) -> None:
    tamper(path, f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    for create in (True, False):
        with pytest.raises(StoreMismatch, match="older than the one before this") as caught:
            Library(path, create=create)
        assert "Open it once with that version" in caught.value.remedy
    assert path.read_bytes() == before
    assert not user_file_of(path).exists()


@pytest.mark.parametrize("version", [3, sqlite.OLD_VERSION])
def test_a_library_with_a_false_older_version_is_damaged(path: Path, version: int) -> None:
    Library(path).close()
    said = _said(user_file_of(path), old=False)
    tamper(path, f"PRAGMA user_version = {version}")
    with pytest.raises(StoreDamaged, match=f"its version is said to be {version}, but its tables are those of"):
        Library(path)
    assert _said(user_file_of(path), old=False) == said


# Damage


Damage = str | tuple[str, ...]  # a statement, or tables whose first page is zeros


def _do(path: Path, damage: Damage) -> None:
    if isinstance(damage, str):
        tamper(path, damage)
    else:
        zero_pages(path, *damage)


def _require_damaged(path: Path) -> None:
    """Opening it is an error each time that it is tried, and it stays where it is."""
    for _ in range(2):
        with pytest.raises(StoreDamaged) as caught:
            Library(path)
        assert "--rebuild" in caught.value.remedy
    assert _version(path) == sqlite.OLD_VERSION
    assert not path.with_name("takeover").exists()


@pytest.mark.parametrize(
    "damage",
    [
        ("papers",),
        ("vectors",),
        ("chunks",),
        "UPDATE papers SET text = replace(text, 'otter', 'other')",
        "UPDATE papers SET labels = '[\"7\"]'",
        "UPDATE chunks SET start = start + 1 WHERE start = 0",
        "UPDATE files SET name = 'b.pdf' WHERE name = 'bees.pdf'",
        "UPDATE metadata SET fields = replace(fields, 'Bees', 'Been') WHERE source = 'pdf'",
        "UPDATE vectors SET data = x'0000803f0000803f' WHERE chunk < 1000000000000000000",
        "UPDATE vectors SET data = zeroblob(256) WHERE chunk < 1000000000000000000",
        "DELETE FROM paper_digests",
        "DROP TABLE vectors",
    ],
)
def test_what_people_said_is_kept_where_papers_are_damaged(path: Path, damage: Damage) -> None:
    said = _said(path, old=True)
    _do(path, damage)
    before = path.read_bytes()
    _require_damaged(path)
    assert _said(user_file_of(path), old=False) == said
    assert path.read_bytes() == before
    assert rebuild.read_if_sound(path, Library.papers) is None
    new = path.with_name(rebuild.UNFINISHED)
    Library(new, create=True).close()
    aside = rebuild.take_place(path, new)  # as a rebuild does at its end
    assert aside is not None
    assert aside.read_bytes() == before
    with closing(Library(path)) as library:
        assert library.papers() == []
        assert QueryLog(library.database).counts().questions == 3
    assert _said(user_file_of(path), old=False) == said


@pytest.mark.parametrize(
    ("damage", "lost"),
    [
        (("queries",), {"queries": 3}),
        (("turns",), {"turns": 2}),
        (("conversations",), {"conversations": 1, "turns": 2}),
        (("works", "notices"), {"works": 2, "notices": 1}),
        ("UPDATE queries SET answer = 'It is 24 km.' WHERE id = 2", {"queries": 1}),
        ("UPDATE turns SET reply = '{}' WHERE place = 2", {"turns": 1}),
        ("UPDATE metadata SET fields = '{' WHERE source = 'person'", {"metadata": 1}),
        ("UPDATE works SET said = CAST(x'ff' AS TEXT) WHERE rowid = 2", {"works": 1}),
        ("DROP TABLE turns", {"turns": 2}),
    ],
)
def test_all_readable_rows_of_what_people_said_are_kept(path: Path, damage: Damage, lost: dict[str, int]) -> None:
    said = _said(path, old=True)
    _do(path, damage)
    _require_damaged(path)
    kept = _said(user_file_of(path), old=False)
    assert {table: len(said[table]) - len(kept[table]) for table in said if said[table] != kept[table]} in (
        lost,
        {**lost, "turns": 0},  # they no longer name their question
    )
    with closing(Conversations(path)) as conversations:
        assert [summary.turns for summary in conversations.summaries()] == (
            [] if not kept["turns"] else [len(kept["turns"])]
        )


def test_what_was_said_since_is_not_overwritten(path: Path) -> None:
    old = path.read_bytes()
    with closing(Library(path)) as library:
        QueryLog(library.database).mark_row(2, "bad")
        library.set_metadata("1" * 64, "person", library.metadata_layers("0" * 64)["bibliography"])
    said = _said(user_file_of(path), old=False)
    path.write_bytes(old)  # a backup is put back
    Library(path).close()
    assert _said(user_file_of(path), old=False) == said
    assert _version(path) == LIBRARY_VERSION


def test_an_interrupted_rebuild_of_the_release_before_takes_nothing_away(path: Path) -> None:
    unfinished = path.with_name(rebuild.UNFINISHED)
    shutil.copy(path, unfinished)
    tamper(unfinished, *(f"DELETE FROM {table}" for table in ("turns", "queries", "conversations", "works", "notices")))
    said = _said(path, old=True)
    Library(path).close()
    Library(unfinished).close()
    assert _said(user_file_of(path), old=False) == said
