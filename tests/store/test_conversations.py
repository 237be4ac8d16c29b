"""Conversations: saved, listed, deleted for good, used by many threads. That they outlive rebuilds: tests/ingest."""

from __future__ import annotations

import re
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from folio.answer_types import Answer
from folio.errors import NotKnown, StoreBusy, StoreDamaged, StoreMissing
from folio.store.conversations import Conversations, Turn
from folio.store.library import Library
from folio.store.query_log import QueryLog
from folio.store.sqlite import SqliteDatabase
from folio.store.user_file import user_file_of
from folio.system import workers
from tests.helpers.answers import ANSWER, REFUSED, REPORT
from tests.helpers.damage import at_once, tamper
from tests.helpers.fakes import hashing_app, make_pdf, read_here
from tests.helpers.libraries import ENTRY

pytestmark = pytest.mark.fast

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")


def asking(question: str) -> Answer:
    return replace(REFUSED, question=question)


@pytest.fixture(params=["on disk", "in memory"])
def kept(request: pytest.FixtureRequest, path: Path) -> Iterator[Conversations]:
    """Conversations on disk and in memory."""
    if request.param == "on disk":
        request.getfixturevalue("library")
    with closing(Conversations(path if request.param == "on disk" else None)) as opened:
        yield opened


@pytest.fixture
def written(library: Library, path: Path) -> Iterator[Conversations]:
    """Conversations on disk."""
    with closing(Conversations(path)) as opened:
        yield opened


# Saved turns


def test_nothing_is_there_before_the_first_turn(kept: Conversations) -> None:
    ids = {kept.begin() for _ in range(100)}
    assert len(ids) == 100
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{16}", id) for id in ids)
    assert kept.summaries() == ()
    with pytest.raises(NotKnown):
        kept.turns(ids.pop())


def test_turns_are_returned_in_order(kept: Conversations) -> None:
    one, two = kept.begin(), kept.begin()
    said: dict[str, Any] = {"answer": "Größe \ud83d 🦀 'x'", "hits": [{"score": 0.1, "pages": [1, 2]}], "none": None}
    assert kept.add(one, {**said, "turn": 1}, ANSWER, None) == 1
    assert kept.add(two, {"answer": "other"}, REFUSED, None) == 1
    assert kept.add(one, {"answer": "more", "turn": 2}, REPORT, None) == 2
    first, second = kept.turns(one)
    assert ISO.fullmatch(first.asked)
    assert first == Turn(1, first.asked, {**said, "turn": 1}, None, None)
    assert second == Turn(2, second.asked, {"answer": "more", "turn": 2}, None, None)
    assert [turn.reply for turn in kept.turns(two)] == [{"answer": "other"}]


def test_the_list_has_the_latest_first(kept: Conversations) -> None:
    ids = [kept.begin() for _ in range(3)]
    for number, id in enumerate([*ids, ids[0]]):
        kept.add(id, {}, asking(f"Question\n{number}?"), None)
    assert [(found.id, found.title, found.turns) for found in kept.summaries()] == [
        (ids[0], "Question 0?", 2),
        (ids[2], "Question 2?", 1),
        (ids[1], "Question 1?", 1),
    ]
    assert all(ISO.fullmatch(found.updated) for found in kept.summaries())
    assert [kept.require(id) for id in (ids[0], ids[2], ids[1])] == list(kept.summaries())


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 79 + "…"),
        ("Why " + "x" * 77, "Why…"),
        ("word " * 16, ("word " * 16).strip()),
        ("word " * 17, ("word " * 16).strip() + "…"),
        ("words " * 30, ("words " * 13).strip() + "…"),
        ("氷" * 100, "氷" * 79 + "…"),
        ("half \ud83d of a pair", "half \ufffd of a pair"),
    ],
)
def test_a_title_is_cut_between_words(kept: Conversations, question: str, title: str) -> None:
    kept.add(kept.begin(), {}, asking(question), None)
    assert kept.summaries()[0].title == title
    assert len(title) <= 80


def test_unknown_conversations_and_turns_raise(kept: Conversations) -> None:
    id = kept.begin()
    kept.add(id, {}, ANSWER, None)
    other = kept.begin()
    unknown: list[Callable[[], object]] = [
        lambda: kept.require(other),
        lambda: kept.turns(other),
        lambda: kept.remove(other),
        lambda: kept.query(other, 1),
        lambda: kept.query(id, 2),
        lambda: kept.query(id, 0),
        lambda: kept.mark(other, 1, "good"),
        lambda: kept.mark(id, 2, "good"),
    ]
    for ask in unknown:
        with pytest.raises(NotKnown, match="There is no such conversation") as caught:
            ask()
        assert caught.value.remedy
    assert kept.turns(id)[0].reply == {}


# Questions without an answer

REPLY = {"answer": "It is long.", "turn": 1, "parent": 0}


def asked(turn: int = 1, key: str = "", **more: Any) -> dict[str, Any]:
    return {"turn": turn, "parent": turn - 1, "message": f"Question {turn}?", "key": key or f"key {turn}", **more}


def test_a_question_is_a_turn_before_it_has_an_answer(library: Library, written: Conversations) -> None:
    id = written.begin()
    assert written.ask(id, asked(state="running"), "one")
    (turn,) = written.turns(id, library)
    assert turn == Turn(1, turn.asked, {}, None, None, asked(state="running"), is_running=True)
    (summary,) = written.summaries()
    assert (summary.title, summary.turns, summary.running) == ("Question 1?", 1, 1)
    assert written.query(id, 1) is None
    assert [found.id for found in written.search("question")] == [id]
    written.answer(id, "one", REPLY, ANSWER, ENTRY)
    (turn,) = written.turns(id, library)
    assert (turn.reply, turn.query, turn.question, turn.is_running) == (REPLY, 1, None, False)
    assert written.summaries()[0].running == 0
    assert [found.id for found in written.search("long")] == [id]
    assert QueryLog(library.database).counts().questions == 1
    assert library.check() == []


def test_a_question_that_failed_is_asked_again_in_its_place(kept: Conversations) -> None:
    id = kept.begin()
    for turn in (1, 2, 3):
        assert kept.ask(id, asked(turn), "one")
        kept.leave(id, "one", asked(turn, state="failed"))
    assert kept.ask(id, asked(1, state="running"), "two")
    kept.answer(id, "two", REPLY, ANSWER, None)
    assert [(turn.reply, turn.question) for turn in kept.turns(id)] == [
        (REPLY, None),
        ({}, asked(2, state="failed")),
        ({}, asked(3, state="failed")),
    ]


def test_a_place_and_a_conversation_have_one_question_at_a_time(kept: Conversations) -> None:
    id = kept.begin()
    assert kept.ask(id, asked(1), "one")
    assert kept.ask(id, asked(1), "one")  # as after a lost connection
    assert not kept.ask(id, asked(1), "two")
    assert not kept.ask(id, asked(2), "two")  # the conversation is busy
    kept.leave(id, "one", asked(1))
    assert not kept.ask(id, asked(1, "another"), "two")
    assert not kept.ask(id, asked(3), "two")
    assert kept.ask(id, asked(2), "two")
    kept.answer(id, "two", {**REPLY, "turn": 2}, ANSWER, None)
    assert not kept.ask(id, asked(2), "two")  # it has its answer
    assert [turn.place for turn in kept.turns(id)] == [1, 2]


def test_who_does_not_answer_a_question_cannot_end_it(kept: Conversations) -> None:
    id = kept.begin()
    kept.ask(id, asked(1), "one")
    ways: list[Callable[[], object]] = [
        lambda: kept.answer(id, "two", REPLY, ANSWER, None),
        lambda: kept.leave(id, "two", asked(1, state="failed")),
    ]
    for end in ways:
        with pytest.raises(NotKnown, match="was deleted or continued elsewhere"):
            end()
    assert kept.turns(id)[0].question == asked(1)
    kept.answer(id, "one", REPLY, ANSWER, None)
    kept.answer(id, "one", REPLY, ANSWER, None)  # as after a lost connection
    kept.remove(id)
    with pytest.raises(NotKnown):
        kept.answer(id, "one", REPLY, ANSWER, None)
    assert kept.summaries() == ()


def test_a_server_that_was_killed_answers_no_more(kept: Conversations, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = kept.begin(), kept.begin()
    monkeypatch.setattr("folio.store.conversations.ANSWERING_S", -1)
    kept.ask(one, asked(1), "killed")
    monkeypatch.undo()
    kept.ask(two, asked(1), "lives")
    assert {found.id: found.running for found in kept.summaries()} == {one: 0, two: 1}
    assert [kept.turns(id)[0].is_running for id in (one, two)] == [False, True]
    assert kept.renew("lives") == {(two, 1)}
    assert kept.renew("killed") == {(one, 1)}  # it was only asleep
    kept.stop(two, 1)
    kept.stop(two, 2)  # nobody answers that
    kept.remove(one)
    assert kept.renew("lives") == kept.renew("killed") == set()


# Answers, for follow-ups


def test_a_conversation_can_be_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "run_guarded", read_here)
    app = hashing_app(tmp_path, LLM="builtin")
    for subject in ("lattices", "sponges", "trees"):
        make_pdf(tmp_path / "papers" / f"{subject}.pdf", subject)
    app.run()
    with closing(app.open_library()) as library, closing(Conversations(app.library_path)) as kept:
        chat = app.chat(library, top_k=2)
        id = kept.begin()
        asked = "What does a sponge do with its input?", "Who painted it?", "How are trees balanced after an insertion?"
        answers = [chat.ask(question).answer for question in asked]
        for answer in answers:
            kept.add(id, {}, answer, None)
        assert [turn.answer for turn in kept.turns(id, library)] == answers
        assert [turn.answer for turn in kept.turns(id)] == [None] * 3
        (tmp_path / "papers" / "trees.pdf").unlink()
        app.run(prune=True)
        without = [turn.answer for turn in kept.turns(id, library)]
        assert without[0] == answers[0]
        assert without[2] is None


# The query log and feedback


def test_a_turn_knows_its_row_in_the_log(library: Library, written: Conversations) -> None:
    log, id = QueryLog(library.database), written.begin()
    before = log.add(ENTRY)
    for entry in (ENTRY, None, ENTRY):
        written.add(id, {}, ANSWER, entry)
    rows = [before + 1, None, before + 2]
    assert [turn.query for turn in written.turns(id)] == rows
    assert [written.query(id, place) for place in (1, 2, 3)] == rows
    assert log.last() == ENTRY
    log.clear()
    log.add(ENTRY)  # reuses a deleted row id
    assert [turn.query for turn in written.turns(id)] == [None] * 3
    assert library.check() == []


def test_feedback_is_in_the_reply(kept: Conversations) -> None:
    id = kept.begin()
    for _ in range(2):
        kept.add(id, {"answer": "\ud83d", "feedback": ""}, ANSWER, None)
    kept.mark(id, 2, "good")
    assert [turn.reply["feedback"] for turn in kept.turns(id)] == ["", "good"]
    kept.mark(id, 2, "bad")
    assert kept.turns(id)[1].reply == {"answer": "\ud83d", "feedback": "bad"}


# Deletion


def test_a_conversation_is_deleted_and_the_others_stay(kept: Conversations) -> None:
    ids = [kept.begin() for _ in range(3)]
    for id in ids:
        kept.add(id, {}, ANSWER, None)
        kept.add(id, {}, ANSWER, None)
    kept.remove(ids[1])
    assert [found.id for found in kept.summaries()] == [ids[2], ids[0]]
    with pytest.raises(NotKnown):
        kept.turns(ids[1])
    assert kept.clear() == 2
    assert kept.clear() == 0
    assert kept.summaries() == ()


def test_a_conversation_deleted_while_answering_stays_deleted(kept: Conversations) -> None:
    id = kept.begin()
    kept.add(id, {"turn": 1}, ANSWER, None)
    kept.remove(id)
    with pytest.raises(NotKnown, match="was deleted or continued elsewhere"):
        kept.add(id, {"turn": 2}, ANSWER, None)
    assert kept.summaries() == ()
    kept.add(id, {"turn": 1}, ANSWER, None)
    with pytest.raises(NotKnown, match="was deleted or continued elsewhere"):
        kept.add(id, {"turn": 1}, ANSWER, None)
    assert kept.require(id).turns == 1


def test_a_turn_that_is_not_saved_is_not_logged_either(library: Library, written: Conversations) -> None:
    id = written.begin()
    written.add(id, {"turn": 1}, ANSWER, ENTRY)
    written.remove(id)
    with pytest.raises(NotKnown):
        written.add(id, {"turn": 2}, ANSWER, ENTRY)
    assert QueryLog(library.database).counts().questions == 0


def test_in_memory_they_are_lost_on_close(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(Conversations(None)) as one, closing(Conversations(None)) as two:
        id = one.begin()
        one.add(id, {"answer": "x"}, ANSWER, None)
        assert two.summaries() == ()
    assert list(tmp_path.iterdir()) == []
    with closing(one):
        assert one.summaries() == ()


# Concurrency


def test_many_threads_may_write_and_read(kept: Conversations) -> None:
    def talk(number: int) -> None:
        id, name = kept.begin(), f"thread {number}"
        for place in range(1, 9):
            assert kept.add(id, {"said": f"{name} {place}", "turn": place}, asking(name), None) == place
            kept.mark(id, place, "good")
            assert [turn.reply["said"] for turn in kept.turns(id)] == [f"{name} {n}" for n in range(1, place + 1)]
            assert id in {found.id for found in kept.summaries()}

    at_once(6, talk)
    assert sorted((found.title, found.turns) for found in kept.summaries()) == [(f"thread {n}", 8) for n in range(6)]


def test_another_program_sees_what_is_written(written: Conversations, path: Path) -> None:
    with closing(Conversations(path)) as other:
        id = written.begin()
        written.add(id, {"answer": "here"}, ANSWER, None)
        assert [turn.reply for turn in other.turns(id)] == [{"answer": "here"}]
        assert other.add(id, {"answer": "there"}, ANSWER, None) == 2
        assert [turn.reply["answer"] for turn in written.turns(id)] == ["here", "there"]
        assert other.clear() == 1
        assert written.summaries() == ()


def test_a_long_transaction_of_another_program_is_not_waited_for(
    library: Library, written: Conversations, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("conversations", "query_log"):
        monkeypatch.setattr(f"folio.store.{module}.BUSY_TIMEOUT_S", 0.05)
    log, id = QueryLog(library.database), written.begin()
    written.add(id, {}, ANSWER, None)
    writes: list[Callable[[], object]] = [
        lambda: written.add(id, {}, ANSWER, None),
        lambda: written.mark(id, 1, "good"),
        lambda: written.remove(id),
        written.clear,
        lambda: log.add(ENTRY),
        lambda: log.mark("good"),
        log.clear,
    ]
    with closing(sqlite3.connect(user_file_of(path), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        for write in writes:
            with pytest.raises(StoreBusy, match="Another process is writing to the library") as caught:
                write()
            assert caught.value.remedy.startswith("Wait until it has finished")
        assert time.monotonic() - began < 30  # the library's own timeout
        assert written.require(id).turns == 1  # reading still works
    with library.database.transaction():  # waits as long as before
        assert library.database.query("PRAGMA busy_timeout") == [(30_000,)]
    assert (written.add(id, {}, ANSWER, None), log.add(ENTRY)) == (2, 1)


def test_what_is_made_from_pdfs_is_not_waited_for(
    library: Library, written: Conversations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("folio.store.conversations.BUSY_TIMEOUT_S", 0.1)
    id = written.begin()
    with library.database.transaction("library"):
        library.database.execute("INSERT INTO removed VALUES (1, 1)")
        written.add(id, {}, ANSWER, ENTRY)
        written.mark(id, 1, "good")
        assert written.require(id).turns == 1
        written.remove(id)
    assert library.removed(0) == [1]
    assert QueryLog(library.database).counts().questions == 0


# The store


def test_a_store_that_is_not_there_yet(path: Path) -> None:
    with closing(Conversations(path)) as kept:
        id = kept.begin()
        assert kept.summaries() == ()
        assert kept.clear() == 0
        for ask in (kept.require, kept.turns, kept.remove):
            with pytest.raises(NotKnown):
                ask(id)
        with pytest.raises(StoreMissing):
            kept.add(id, {}, ANSWER, None)
        assert not path.parent.exists()
        Library(path, create=True).close()
        assert kept.summaries() == ()
        kept.add(id, {}, ANSWER, None)
        assert [found.id for found in kept.summaries()] == [id]


def test_a_replaced_or_deleted_store_is_reopened(written: Conversations, path: Path) -> None:
    id = written.begin()
    written.add(id, {}, ANSWER, None)
    shutil.move(path.parent, path.parents[1] / "away")
    assert written.summaries() == ()
    with pytest.raises(StoreMissing):
        written.add(id, {}, ANSWER, None)
    Library(path, create=True).close()
    assert written.summaries() == ()
    other = written.begin()
    written.add(other, {}, ANSWER, None)
    assert [found.id for found in written.summaries()] == [other]
    shutil.rmtree(path.parent)
    shutil.move(path.parents[1] / "away", path.parent)
    assert [found.id for found in written.summaries()] == [id]


@pytest.mark.parametrize("changed", ["reply = '{}'", "memory = '{}'", "crc = crc + 1"])
def test_a_changed_turn_is_an_error_and_can_be_deleted(written: Conversations, path: Path, changed: str) -> None:
    ids = [written.begin(), written.begin()]
    for id in ids:
        written.add(id, {"answer": "It is 23 km long."}, ANSWER, ENTRY)
    tamper(user_file_of(path), f"UPDATE turns SET {changed} WHERE conversation = '{ids[0]}'")
    for read in (
        lambda: written.turns(ids[0]),
        lambda: written.query(ids[0], 1),
        lambda: written.mark(ids[0], 1, "bad"),
    ):
        with pytest.raises(StoreDamaged, match="a turn of a conversation has changed since it was written") as caught:
            read()
        assert "--repair" in caught.value.remedy
    assert len(written.turns(ids[1])) == 1
    written.remove(ids[0])
    assert [found.id for found in written.summaries()] == [ids[1]]
    with closing(SqliteDatabase(user_file_of(path), "user")) as database:
        assert database.faults("user") == []
