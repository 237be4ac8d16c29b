"""The query log in SQLite: feedback, and what it waits for. What holds in both engines is in the contract."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from folio.errors import DiskFull, FolioError, StoreBusy, StoreDamaged, StoreError, StoreProtected, UsageError
from folio.papers.model import Failure
from folio.store import indexes
from folio.store.conversations import Conversations
from folio.store.library import Library
from folio.store.query_log import QueryLog
from folio.store.rows import text_hash
from folio.store.user_file import user_file_of
from tests.helpers import libraries
from tests.helpers.answers import ANSWER
from tests.helpers.engines import add, file, paper, vectors

pytestmark = pytest.mark.fast

ENTRY = replace(libraries.ENTRY, feedback="")


@pytest.fixture
def log(library: Library) -> QueryLog:
    return QueryLog(library.database)


def _questions(path: Path) -> list[tuple[str, str]]:
    """Each question with its feedback, in the file that belongs to a library."""
    with closing(sqlite3.connect(user_file_of(path))) as connection:
        return connection.execute("SELECT question, feedback FROM queries ORDER BY id").fetchall()


def test_a_trace_is_kept_and_belongs_to_the_entry(log: QueryLog, library: Library) -> None:
    with_trace = replace(ENTRY, trace={"events": [{"why": "Größe \x00"}], "left_out": 0})
    log.add(with_trace)
    assert log.last() == with_trace
    library.database.execute("UPDATE queries SET trace = '{}'")
    with pytest.raises(StoreDamaged, match="has changed since it was written"):
        log.last()
    library.database.execute("UPDATE queries SET trace = NULL")
    with pytest.raises(StoreDamaged):
        log.last()


# Feedback


def test_feedback_goes_to_the_own_or_to_the_latest_question(log: QueryLog, path: Path) -> None:
    with closing(Library(path)) as other, closing(Library(path)) as third:
        log.add(replace(ENTRY, question="first"))
        QueryLog(other.database).add(replace(ENTRY, question="other"))
        assert log.mark("good").question == "first"
        assert QueryLog(third.database).mark("bad").question == "other"
    assert _questions(path) == [("first", "good"), ("other", "bad")]


def test_feedback_on_an_unlogged_question_goes_to_no_other(library: Library, log: QueryLog, path: Path) -> None:
    log.add(ENTRY)
    library.database.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError):
        log.add(replace(ENTRY, question="Why?"))
    library.database.execute("PRAGMA query_only = OFF")
    with pytest.raises(UsageError):
        log.mark("bad")
    assert _questions(path) == [(ENTRY.question, "")]


def test_any_question_can_be_marked_by_its_row(log: QueryLog, path: Path) -> None:
    first, second = log.add(replace(ENTRY, question="0?")), log.add(replace(ENTRY, question="1?"))
    assert first != second
    log.mark_row(first, "bad")
    assert _questions(path) == [("0?", "bad"), ("1?", "")]
    log.mark_row(second, "bad")
    log.mark_row(first, "good")
    assert _questions(path) == [("0?", "good"), ("1?", "bad")]
    with closing(Library(path)) as other:
        QueryLog(other.database).mark_row(first, "bad")  # whichever process added it
    assert _questions(path) == [("0?", "bad"), ("1?", "bad")]


# Independence of the papers


def test_questions_and_conversations_change_nothing_about_the_papers(
    library: Library, log: QueryLog, path: Path
) -> None:
    with library.reading() as before:
        counts = library.counts()
    with closing(Conversations(path)) as conversations:
        id = conversations.begin()
        conversations.add(id, {}, ANSWER, ENTRY)
        conversations.mark(id, 1, "good")
        log.mark("good")
        conversations.remove(id)
        log.clear()
        log.add(ENTRY)
    with library.reading() as after:
        assert after == before
        assert library.counts() == counts
    assert library.check() == []


def test_a_question_waits_for_a_short_transaction_of_another_process(log: QueryLog, path: Path) -> None:
    committed: list[float] = []
    with closing(sqlite3.connect(user_file_of(path), isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("INSERT INTO work_marks VALUES ('doi 10.1/x', '0')")

        def commit() -> None:
            committed.append(time.monotonic())
            other.execute("COMMIT")

        edit = threading.Timer(0.2, commit)
        edit.start()
        log.add(ENTRY)
        assert time.monotonic() >= committed[0]
        edit.join()
    assert log.last() == ENTRY


def test_a_question_does_not_wait_for_an_ingest(
    library: Library, log: QueryLog, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("folio.store.query_log.BUSY_TIMEOUT_S", 0.1)
    with closing(Library(path)) as ingest, ingest.database.transaction("library"):
        ingest.database.execute("INSERT INTO removed VALUES (1, 1)")
        log.add(ENTRY)
        log.mark("good")
        assert library.removed(0) == []  # it is not committed yet
        assert _questions(path) == [(ENTRY.question, "good")]
        log.clear()
    assert library.removed(0) == [1]
    edit = Library(path)
    with closing(edit), edit.database.transaction(), pytest.raises(StoreBusy):  # of both parts
        log.add(ENTRY)


def test_an_ingest_does_not_wait_for_a_question(library: Library, path: Path) -> None:
    with closing(Library(path)) as server, server.database.transaction("user"):
        server.database.execute("INSERT INTO work_marks VALUES ('doi 10.1/x', '0')")
        library.set_fingerprint({"embedder": "test", "dimension": "4"})
        library.record_failure(Failure(file("a.pdf", "a"), "Torn.", "Glue."))
        library.forget_failure("/papers/a.pdf")
        library.drop("/papers/a.pdf")
        add(library, "a.pdf", paper("a"))
        library.link([file("b.pdf", "a")])
        library.remember([text_hash("two")], vectors(["two"]))
        library.forget_pending()
    assert [each.name for each in library.files()] == ["a.pdf", "b.pdf"]


@pytest.mark.parametrize(
    ("pragma", "error"), [("PRAGMA query_only = ON", StoreProtected), ("PRAGMA user.max_page_count = 1", DiskFull)]
)
def test_failed_writes_raise(library: Library, log: QueryLog, path: Path, pragma: str, error: type[FolioError]) -> None:
    log.add(ENTRY)
    library.database.execute(pragma)  # as on a disk that is read-only, or full
    with pytest.raises(error) as caught:
        log.add(replace(ENTRY, answer="x" * 300_000))
    assert type(caught.value) is error
    assert caught.value.remedy
    assert _questions(path) == [(ENTRY.question, "")]
    assert library.check() == []


# Its size


def test_the_size_of_a_store(library: Library, log: QueryLog, path: Path, tmp_path: Path) -> None:
    assert indexes.size(tmp_path / "none") == 0
    before = indexes.size(path.parent)
    assert before == sum(part.stat().st_size for part in path.parent.iterdir())
    (path.parent / "lexical").mkdir()
    (path.parent / "lexical" / "folio.json").write_bytes(b"x" * 1000)
    (path.parent / "gone").symlink_to(tmp_path / "none")
    after = indexes.size(path.parent)
    assert before + 1000 < after < before + 1500
    measured = path.parent / "evaluations" / "texts"
    measured.mkdir(parents=True)
    (measured / "library.sqlite").write_bytes(b"x" * 1000)
    assert indexes.size(path.parent) == after
    (path.parent / "lexical" / "evaluations").write_bytes(b"x" * 100)
    assert indexes.size(path.parent) == after + 100
