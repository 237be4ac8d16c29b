"""The query log: entries, feedback, statistics, deletion, and rebuilds."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from folio import workers
from folio.errors import DiskFull, FolioError, StoreBusy, StoreDamaged, StoreError, UsageError
from folio.paper_metadata import simple_metadata
from folio.store import indexes
from folio.store.digests import text_hash
from folio.store.library import Library
from folio.store.query_log import LogCounts, LogEntry, LoggedSource, QueryLog
from folio.store.user_file import user_file
from folio.types import Failure, NewPaper, PageMap, SourceFile
from tests.helpers.fakes import HashingApp, HashingEmbedder, hashing_app, make_pdf, read_here

pytestmark = pytest.mark.fast

ENTRY = LogEntry(
    asked="2026-01-02T03:04:05+00:00",
    question="And how long is it?",
    standalone_question="How long is the Aletsch glacier?",
    chunks=(2**63 - 1, 1, 77),
    answer="It is 23 km long. It shrinks.",
    sources=(
        LoggedSource("a" * 64, "alps/glaciers.pdf", 3, "The glacier is 23 km long."),
        LoggedSource("b" * 64, "ice.pdf", 127, "All of them shrink."),
    ),
    timings_ms={"retrieve": 12.5, "answer": 1000.25, "total": 1012.75},
    model="extractive",
)
REFUSAL = replace(ENTRY, question="Why?", answer="Not found in the provided papers.", chunks=(), sources=())


@pytest.fixture
def log(library: Library) -> QueryLog:
    return QueryLog(library.database)


def _questions(path: Path) -> list[tuple[str, str]]:
    """Each question with its feedback, in the file that belongs to a library."""
    connection = sqlite3.connect(user_file(path))
    try:
        return connection.execute("SELECT question, feedback FROM queries ORDER BY id").fetchall()
    finally:
        connection.close()


# Entries


def test_a_new_log_is_empty(log: QueryLog) -> None:
    assert log.last() is None
    assert log.counts() == LogCounts(questions=0, refused=0, good=0, bad=0, median_ms=None, median_confidence=None)


@pytest.mark.parametrize("entry", [ENTRY, REFUSAL, replace(ENTRY, timings_ms={}, feedback="bad")])
def test_an_entry_is_returned_unchanged(log: QueryLog, path: Path, entry: LogEntry) -> None:
    log.add(entry)
    assert log.last() == entry
    again = Library(path)
    assert QueryLog(again.database).last() == entry
    again.close()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Größe von 𝔽₂? 氷河 🦀", "Größe von 𝔽₂? 氷河 🦀"),
        ('\'; DROP TABLE queries; --\n\t"quoted" \\u0041', '\'; DROP TABLE queries; --\n\t"quoted" \\u0041'),
        ("", ""),
        ("x" * 300_000, "x" * 300_000),
        ("from a torn \udcff\ud83d terminal \ud83d", "from a torn \ufffd\ufffd terminal \ufffd"),
        ("both halves \ud83e\udd80", "both halves 🦀"),
    ],
    ids=["beyond ASCII", "SQL", "empty", "long", "lone surrogates", "a pair of surrogates"],
)
def test_any_text_can_be_logged(log: QueryLog, text: str, kept: str) -> None:
    def with_text(of: str) -> LogEntry:
        source = LoggedSource(of, of, 1, of)
        return LogEntry(ENTRY.asked, of, of, (1,), of, (source, source), {of: 1.0}, of)

    log.add(with_text(text))
    assert log.last() == with_text(kept)


def test_a_nul_character_is_replaced_and_in_json_kept(log: QueryLog) -> None:
    quoted = replace(ENTRY, sources=(LoggedSource("a" * 64, "a\x00.pdf", 1, "a\x00b"),))
    log.add(replace(quoted, question="a\x00b", answer="\x00"))
    assert log.last() == replace(quoted, question="a\ufffdb", answer="\ufffd")


def test_the_last_is_the_one_that_was_added_last(log: QueryLog, path: Path) -> None:
    for n, asked in enumerate(["2026-05-01T00:00:00+00:00", "2026-03-01T00:00:00+00:00"]):  # the clock was set back
        log.add(replace(ENTRY, question=f"{n}?", asked=asked))
    last = log.last()
    assert last is not None
    assert last.question == "1?"
    assert _questions(path) == [("0?", ""), ("1?", "")]


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


def test_feedback_is_on_the_last_question(log: QueryLog, path: Path) -> None:
    log.add(replace(ENTRY, question="0?"))
    assert log.mark("good") == replace(ENTRY, question="0?", feedback="good")
    log.add(replace(ENTRY, question="1?"))
    log.mark("good")
    assert log.mark("bad").feedback == "bad"  # feedback can be changed
    assert log.last() == replace(ENTRY, question="1?", feedback="bad")
    assert _questions(path) == [("0?", "good"), ("1?", "bad")]


def test_feedback_before_any_question(log: QueryLog) -> None:
    with pytest.raises(UsageError, match="no answer to rate") as caught:
        log.mark("good")
    assert "python query.py" in caught.value.remedy


def test_each_process_marks_its_own_question_and_a_new_one_the_last_of_all(log: QueryLog, path: Path) -> None:
    other, third = Library(path), Library(path)
    theirs = QueryLog(other.database)
    log.add(replace(ENTRY, question="mine"))
    theirs.add(replace(ENTRY, question="theirs"))
    assert log.mark("good").question == "mine"
    assert QueryLog(third.database).mark("bad").question == "theirs"
    assert _questions(path) == [("mine", "good"), ("theirs", "bad")]
    for library in (other, third):
        library.close()


def test_feedback_on_a_question_that_could_not_be_logged_goes_to_no_other(
    library: Library, log: QueryLog, path: Path
) -> None:
    log.add(ENTRY)
    library.database.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError):
        log.add(REFUSAL)
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
    other = Library(path)
    QueryLog(other.database).mark_row(first, "bad")  # whichever process added it
    other.close()
    assert _questions(path) == [("0?", "bad"), ("1?", "bad")]


def test_a_deleted_question_cannot_be_marked(log: QueryLog, path: Path) -> None:
    row = log.add(ENTRY)
    with pytest.raises(UsageError, match="no longer in the log"):
        log.mark_row(row + 1, "good")
    log.clear()
    with pytest.raises(UsageError, match="no longer in the log"):
        log.mark_row(row, "good")
    assert _questions(path) == []


# Statistics


def test_counts(log: QueryLog) -> None:
    for total in (100.0, 900.0, 300.0):
        log.add(replace(ENTRY, timings_ms={"answer": 1.0, "total": total}, confidence=total / 1000))
        log.mark("good")
    log.add(replace(REFUSAL, timings_ms={"retrieve": 5.0}))
    log.mark("bad")
    log.add(replace(REFUSAL, timings_ms={"total": 500.0}))
    assert log.counts() == LogCounts(questions=5, refused=2, good=3, bad=1, median_ms=400.0, median_confidence=0.3)


def test_an_entry_keeps_its_confidence(log: QueryLog) -> None:
    for confidence in (0.625, None):
        log.add(replace(ENTRY, confidence=confidence))
        assert log.last() == replace(ENTRY, confidence=confidence)


# Independence of the papers


def test_a_question_changes_nothing_about_the_papers(library: Library, log: QueryLog, path: Path) -> None:
    with library.reading() as before:
        counts = library.counts()
    log.add(ENTRY)
    log.mark("good")
    log.clear()
    log.add(ENTRY)
    with library.reading() as after:
        assert after == before
        assert library.counts() == counts
    assert library.check() == []


def test_a_question_waits_for_a_short_transaction_of_another_process(log: QueryLog, path: Path) -> None:
    other = sqlite3.connect(user_file(path), isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    other.execute("INSERT INTO work_marks VALUES ('doi 10.1/x', '0')")
    committed: list[float] = []

    def land() -> None:
        time.sleep(0.3)
        committed.append(time.monotonic())
        other.execute("COMMIT")

    edit = threading.Thread(target=land)
    edit.start()
    log.add(ENTRY)
    assert time.monotonic() >= committed[0]
    edit.join()
    other.close()
    assert log.last() == ENTRY


def test_a_question_does_not_wait_for_a_long_one(
    library: Library, log: QueryLog, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("folio.store.query_log.BUSY_TIMEOUT_S", 0.1)
    other = sqlite3.connect(user_file(path), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    for write in (lambda: log.add(ENTRY), lambda: log.mark("good"), log.clear):
        with pytest.raises(StoreBusy, match="Another process is writing to the library") as caught:
            write()
        assert caught.value.remedy.startswith("Wait until it has finished")
    assert time.monotonic() - began < 30  # the library's own timeout
    other.execute("ROLLBACK")
    other.close()
    with library.database.transaction():  # waits as long as before
        assert library.database.query("PRAGMA busy_timeout") == [(30_000,)]
    log.add(ENTRY)
    assert log.last() == ENTRY


def test_a_question_does_not_wait_for_what_is_made_from_pdfs(
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
        file = SourceFile("/papers/a.pdf", "a.pdf", "a" * 64)
        library.record_failure(Failure(file, "Torn.", "Glue."))
        library.forget_failure(file.path)
        library.drop(file.path)
        text = "One page."
        paper = NewPaper("a" * 64, simple_metadata("A"), text, PageMap((0,), ("",)), ((0, 9),))
        library.add(paper, file, [1], np.ones((1, 4), dtype=np.float32))
        library.link([SourceFile("/papers/b.pdf", "b.pdf", "a" * 64)])
        library.remember([text_hash("two")], np.ones((1, 4), dtype=np.float32))
        library.forget_pending()
    assert [file.name for file in library.files()] == ["a.pdf", "b.pdf"]


@pytest.mark.parametrize(
    ("pragma", "error"), [("PRAGMA query_only = ON", StoreError), ("PRAGMA user.max_page_count = 1", DiskFull)]
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


# Deletion


def test_questions_are_deleted(library: Library, log: QueryLog, path: Path) -> None:
    for _ in range(50):
        log.add(replace(ENTRY, question="Is the merger with Nordwand private?", answer="Nordwand " * 2000))
        log.mark("bad")
    held = b"".join(part.read_bytes() for part in path.parent.iterdir())
    assert b"Nordwand" in held
    assert log.clear() == 50
    assert log.clear() == 0
    assert log.last() is None
    assert log.counts().questions == 0
    with pytest.raises(UsageError):
        log.mark("good")
    assert not [part.name for part in path.parent.iterdir() if b"Nordwand" in part.read_bytes()]
    log.add(ENTRY)
    assert log.last() == ENTRY
    assert library.check() == []


# Rebuilding


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HashingApp:
    """A store with a paper and two questions."""
    monkeypatch.setattr(workers, "run_guarded", read_here)
    made = hashing_app(tmp_path)
    make_pdf(tmp_path / "papers" / "lattices.pdf", "lattices")
    make_pdf(tmp_path / "papers" / "trees.pdf", "trees")
    made.run()
    library = made.open_library()
    log = QueryLog(library.database)
    log.add(ENTRY)
    log.mark("good")
    log.add(REFUSAL)
    library.close()
    return made


HELD = [(ENTRY.question, "good"), (REFUSAL.question, "")]


def test_the_log_stays_when_the_papers_change(app: HashingApp, tmp_path: Path) -> None:
    (tmp_path / "papers" / "trees.pdf").unlink()
    app.run(prune=True)
    assert _questions(app.library_path) == HELD
    app.repair()
    assert _questions(app.library_path) == HELD
    other = hashing_app(tmp_path, HashingEmbedder(name="other"))
    other.run(rebuild=True)
    assert _questions(app.library_path) == HELD
    assert other.verify() == []


@pytest.mark.parametrize(
    "damage", ["PRAGMA user_version = 99", "ALTER TABLE vectors RENAME TO lost", "PRAGMA user_version = 0"]
)
def test_the_log_stays_where_a_library_is_damaged(app: HashingApp, damage: str) -> None:
    with sqlite3.connect(app.library_path) as tamper:
        tamper.execute(damage)
    tamper.close()
    notices: list[str] = []
    again = HashingApp(app.settings, notices.append, app.hashing)
    again.run(rebuild=True)
    assert len(notices) == 1
    assert "was set aside as library.damaged-" in notices[0]
    assert _questions(app.library_path) == HELD
    assert again.verify() == []


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


def test_entries_come_newest_first_with_their_numbers(log: QueryLog) -> None:
    bad = replace(ENTRY, feedback="bad")
    assert [log.add(entry) for entry in (ENTRY, bad, REFUSAL, bad)] == [1, 2, 3, 4]
    assert log.entries() == [(4, bad), (3, REFUSAL), (2, bad), (1, ENTRY)]
    assert log.entries(most=2) == [(4, bad), (3, REFUSAL)]
    assert log.entries("bad", 1) == [(4, bad)]
    assert log.entries("good") == []
    assert (log.entry(3), log.entry(5)) == (REFUSAL, None)
